"""Findings of the checks, and the diagnostics and reports made of them.

A check yields a `Finding`, which points into the document's value. `place` turns findings into
`Diagnostic`s with a position in the text and a severity, and collects them in a `Report`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from asl.core.aws_messages import NOWHERE, location
from asl.core.codes import lookup
from asl.core.errors import AslError
from asl.core.pointers import resolve_pointer
from asl.core.source import WrittenDocument
from asl.core.values import Json


class Severity(StrEnum):
    """The severity of a diagnostic; only an error prevents a document from running."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Wording(NamedTuple):
    """AWS's own report of a fault, as far as it is known and differs from ours.

    `at` is the JSON Pointer that AWS names if it is not the finding's own. `code` replaces the AWS
    code of the rule; it is empty where AWS accepts the document.
    """

    message: str | None = None
    at: str | None = None
    code: str | None = None


class Finding(NamedTuple):
    """The result of a check, without a position in the text.

    `pointer` is a JSON Pointer. `at_key` selects the key of the member instead of its value.
    `related` holds `(pointer, message)` pairs. `severity` overrides the severity of the code. `aws`
    is AWS's own wording, for the `aws` profile. `inside` counts the characters of a string before
    the fault.
    """

    code: str
    message: str
    pointer: str
    hint: str | None = None
    related: tuple[tuple[str, str], ...] = ()
    severity: Severity | None = None
    at_key: bool = False
    aws: Wording | None = None
    inside: int | None = None


class AwsDiagnostic(NamedTuple):
    """The same fault as AWS's ValidateStateMachineDefinition reports it.

    `message` is None where AWS's words are not known, `location` where AWS gives no place.
    """

    code: str
    message: str | None = None
    location: str | None = None

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}" if self.message else self.code
        return f"{text} at {self.location}" if self.location else text

    def to_json(self) -> dict[str, Json]:
        """Return `{"code", "message", "location"}`; null for unknown parts."""
        return {"code": self.code, "message": self.message, "location": self.location}


class ReportedPlace(NamedTuple):
    """A further place of a diagnostic, with what is reported there."""

    message: str
    pointer: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class Diagnostic(NamedTuple):
    """A finding with its severity and position; `line` and `column` count from 1, in characters.

    `aws` is set in the `aws` profile for faults that AWS reports, too. `places` lists all places
    of an entry with several, its own first, each with its own message (see `place`).
    """

    code: str
    severity: Severity
    message: str
    pointer: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    related: tuple[ReportedPlace, ...] = ()
    aws: AwsDiagnostic | None = None
    places: tuple[ReportedPlace, ...] = ()

    @property
    def where(self) -> str:
        """`file:line:column` as far as known, else the JSON Pointer."""
        if self.line is None:
            return ":".join(part for part in (self.file, self.pointer) if part) or "document"
        return f"{self.file or '<document>'}:{self.line}:{self.column}"

    @property
    def all_places(self) -> tuple[ReportedPlace, ...]:
        """All places of the diagnostic, its own first."""
        own = ReportedPlace(
            self.message, self.pointer, self.file, self.line, self.column, self.hint
        )
        return self.places or (own,)

    @property
    def is_of_itself(self) -> bool:
        """Whether a related position is the diagnostic's own."""
        return any((each.file, each.pointer) == (self.file, self.pointer) for each in self.related)

    def __str__(self) -> str:
        text = f"{self.where}: {self.severity} {self.code}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


@dataclass(frozen=True, slots=True)
class Report:
    """All diagnostics of one document in text order; `str()` renders them as `asl check` does."""

    diagnostics: tuple[Diagnostic, ...] = ()
    document: WrittenDocument | None = None

    def __str__(self) -> str:
        from asl.core.render.text import render_text

        return render_text(self)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return self.of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self.of(Severity.WARNING)

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of one severity."""
        return tuple(each for each in self.diagnostics if each.severity is severity)

    def raise_for_errors(self) -> None:
        """Raise `InvalidDocument` unless the report is `ok`."""
        if not self.ok:
            raise InvalidDocument(self)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)


class InvalidDocument(AslError):
    """A document has errors; `report` says which and where."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.report.errors)


ProfileSeverity = Callable[[str, Severity], Severity | None]


def default_severity(_code: str, severity: Severity) -> Severity:
    """Return the severity of the code unchanged: the default profile."""
    return severity


def place(
    document: WrittenDocument,
    findings: Iterable[Finding],
    profile_severity: ProfileSeverity = default_severity,
    *,
    by_cause: bool = False,
) -> Report:
    """Give findings their severity and position, and sort them by file, line, column and code.

    Args:
        document: The document that the findings point into.
        findings: The findings to report.
        profile_severity: Maps a code and its default severity to the effective one; None drops the
            finding. A severity set on the finding itself wins.
        by_cause: Whether findings of one code, severity and cause are one diagnostic with several
            places. The cause is that of the code; for a code without one it is the message.

    Returns:
        The report.
    """
    files = {name: number for number, name in enumerate(document.sources)}
    graded: dict[Severity, list[Finding]] = {severity: [] for severity in Severity}
    for finding in findings:
        severity = finding.severity or profile_severity(
            finding.code, Severity(lookup(finding.code).severity)
        )
        if severity is not None:
            graded[severity].append(finding)
    shown, omitted = _most_severe(graded)
    placed = []
    for severity, finding in shown:
        diagnostic, offset = _diagnostic(document, finding, severity)
        if severity is not Severity.ERROR and diagnostic.is_of_itself:
            continue  # one text that is included twice
        order = (files[diagnostic.file], offset, diagnostic.code)
        placed.append((order, diagnostic))
    placed.sort(key=lambda each: each[0])
    found: Iterable[Diagnostic] = (diagnostic for _, diagnostic in placed)
    if by_cause:
        found = _by_cause(found)
    # What is included twice is wrong in one place all the same.
    distinct = found if len(files) == 1 else dict.fromkeys(found)
    return Report((*distinct, *omitted_findings(document.source.name, omitted)), document)


def _by_cause(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield one diagnostic for those of one cause, at the first of their places."""
    groups: dict[tuple[str, Severity, str], dict[Diagnostic, None]] = {}
    for each in found:
        cause = lookup(each.code).cause or each.message
        groups.setdefault((each.code, each.severity, cause), {})[each] = None
    for group in groups.values():
        first, *others = group
        yield _joined(first, others) if others else first


def _joined(first: Diagnostic, others: list[Diagnostic]) -> Diagnostic:
    """Return one diagnostic for several of one cause."""
    code, each = lookup(first.code), (first, *others)
    same = len({one.message for one in each}) == 1
    return first._replace(
        message=first.message if same else code.cause or first.message,
        hint=first.hint if len({one.hint for one in each}) == 1 else code.hint,
        places=tuple(place for one in each for place in one.all_places),
    )


MAX_FINDINGS: Final = 500
"""Findings reported for one document; the others are counted."""


def _most_severe(
    graded: Mapping[Severity, list[Finding]],
) -> tuple[list[tuple[Severity, Finding]], Mapping[Severity, int]]:
    """Return the findings to report, errors first, and the counts of the others."""
    shown = [(severity, each) for severity in Severity for each in graded[severity][:MAX_FINDINGS]]
    del shown[MAX_FINDINGS:]
    counts = Counter(severity for severity, _ in shown)
    return shown, {severity: len(graded[severity]) - counts[severity] for severity in Severity}


def omitted_findings(file: str | None, counts: Mapping[Severity, int]) -> Iterator[Diagnostic]:
    """Yield a diagnostic with the number of unreported findings, if there are any."""
    number = sum(counts.values())
    if number:
        kinds = ", ".join(f"{counts[each]} of severity {each}" for each in Severity if counts[each])
        message = f"{number} more findings are not listed: {kinds}"
        hint = "fix the listed ones and check again"
        yield Diagnostic("READ-20", Severity.INFO, message, "", file, hint=hint)


LONGEST_MESSAGE: Final = 2000
"""Characters of a reported message or hint."""


def _shortened(text: str) -> str:
    """Shorten a message to a bounded length."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:1200]}…{text[-600:]}"


def raise_for_errors(document: WrittenDocument, findings: Iterable[Finding]) -> None:
    """Raise InvalidDocument with all findings if one of them is an error."""
    found = dict.fromkeys(findings)
    if any(map(is_error, found)):  # places cost time, so only a raised error has them
        raise InvalidDocument(place(document, found))


def is_error(finding: Finding) -> bool:
    """Return whether a finding is an error in the default profile."""
    severity = finding.severity or lookup(finding.code).severity
    return severity == Severity.ERROR


def _diagnostic(
    document: WrittenDocument, finding: Finding, severity: Severity
) -> tuple[Diagnostic, int]:
    """Return the diagnostic of a finding and its offset."""
    home, pointer = document.origin(finding.pointer)
    inside, value = finding.inside, resolve_pointer(document.value, finding.pointer)
    if home is not document and value is not None and resolve_pointer(home.value, pointer) != value:
        inside = None  # it counts the characters of a text into which something was filled
    offset = home.offset(pointer, finding.at_key, inside)
    at = home.source.place(offset)
    related = []
    for place, message in finding.related:
        there, place = document.origin(place)
        other = there.locate(place, at_key=True)
        related.append(ReportedPlace(message, place, there.source.name, other.line, other.column))
    diagnostic = Diagnostic(
        finding.code,
        severity,
        _shortened(finding.message),
        pointer,
        home.source.name,
        at.line,
        at.column,
        finding.hint and _shortened(finding.hint),
        tuple(related),
        _aws(document, finding),
    )
    return diagnostic, offset


def _aws(document: WrittenDocument, finding: Finding) -> AwsDiagnostic | None:
    if finding.aws is None or not finding.aws.code:
        return None
    if finding.aws.code in NOWHERE:
        return AwsDiagnostic(finding.aws.code, finding.aws.message)
    at = finding.pointer if finding.aws.at is None else finding.aws.at
    return AwsDiagnostic(finding.aws.code, finding.aws.message, location(document.value, at))


LONGEST: Final = 200
"""Characters of a word for which suggestions are made: the time grows with their square."""


@dataclass(slots=True)
class Suggestions:
    """The bounded work of suggestions for misspelt names in one document.

    Comparing names is slow, and a document may hold any number of unknown ones.
    """

    left: int = 500_000
    """Pairs of letters that may still be compared."""
    answers: dict[tuple[str, tuple[str, ...]], str | None] = field(default_factory=dict)
    """The answers so far, by word and candidates."""

    def near(self, word: str, candidates: Collection[str]) -> str | None:
        """Return `did you mean ...?` for the nearest candidate, None if none is near."""
        return _meant(self.nearest(word, candidates))

    def nearest(self, word: str, candidates: Collection[str]) -> str | None:
        """Return the nearest candidate, None if none is near or the work is used up."""
        self.left -= len(candidates)  # adding up their lengths is work, too
        if self.left < 0:
            return None
        asked = (word, tuple(candidates))
        if asked not in self.answers:  # a document names one error in many places
            self.answers[asked] = self._compare(word, candidates)
        return self.answers[asked]

    def _compare(self, word: str, candidates: Collection[str]) -> str | None:
        cost = len(word) * sum(map(len, candidates))
        if cost > self.left:
            return None
        self.left -= cost
        return _nearest(word, candidates)

    def misspelt(self, field: str, others: Collection[str]) -> str | None:
        """Return the hint at an unknown field that may be a misspelt required one.

        Args:
            field: The missing field.
            others: The unknown fields of the same object.
        """
        same = next((each for each in sorted(others) if each.casefold() == field.casefold()), None)
        written = self.nearest(field, others) if same is None else same
        if written is None:
            return None
        hint = f'write "{field}" for {written!r}'
        small = same is not None and field[0].isupper() and not same[0].isupper()
        return f"{hint}: fields begin with a capital" if small else hint


_SUGGESTIONS: ContextVar[Suggestions | None] = ContextVar("suggestions", default=None)


@contextmanager
def bounded_suggestions() -> Iterator[None]:
    """Bound the total work of all calls of `did_you_mean` in the block."""
    token = _SUGGESTIONS.set(Suggestions())
    try:
        yield
    finally:
        _SUGGESTIONS.reset(token)


def did_you_mean(word: str, candidates: Collection[str]) -> str | None:
    """Return the hint `did you mean 'Next'?` for a similar candidate, None without one.

    Within `bounded_suggestions` it is None once their work is used up.
    """
    suggestions = _SUGGESTIONS.get()
    if suggestions is None:
        return _meant(_nearest(word, candidates))
    return suggestions.near(word, candidates)


def misspelt(field: str, others: Collection[str]) -> str | None:
    """Return the hint of `Suggestions.misspelt`, within the bound of `did_you_mean`."""
    return (_SUGGESTIONS.get() or Suggestions()).misspelt(field, others)


def _meant(nearest: str | None) -> str | None:
    return None if nearest is None else f"did you mean {nearest!r}?"


def _nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the nearest candidate, None if none is near.

    Case is ignored; swapping two neighbouring letters counts as one edit. Of two equally near
    candidates the one that only adds or drops letters at an end wins. A candidate must share a
    letter.
    """
    if len(word) > LONGEST:
        return None
    wanted = word.casefold()
    ranked = sorted(
        (_distance(wanted, name := candidate.casefold()), not _cut(wanted, name), candidate)
        for candidate in set(candidates)
        if candidate != word and abs(len(candidate) - len(word)) <= _tolerance(word)
    )
    if not ranked:
        return None
    slips, _, nearest = ranked[0]
    near = slips <= _tolerance(word) and slips < max(len(word), len(nearest))
    return nearest if near else None


def _cut(one: str, other: str) -> bool:
    """Return whether one word is a prefix of the other."""
    return one.startswith(other) or other.startswith(one)


def _tolerance(word: str) -> int:
    """Return the allowed number of edits: one for three letters, at most three."""
    return min(3, (len(word) + 2) // 3)


def _distance(one: str, other: str) -> int:
    """Return the optimal string alignment distance: insert, delete, replace or swap."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
