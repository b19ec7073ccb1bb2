"""The rules of guardrails: what they find in a content, and what can be cut out (8.2)."""

import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from asl.core.regex import escape, find_all, linear
from asl.core.values import MAX_DEPTH, Json, compact
from asl.core.work import Spend, WorkExceeded, WorkMeter
from asl.states.blocks.pii import (
    KINDS,
    TextSpan,
    normal_form,
    personal_finder,
    personal_test,
    remove_overlaps,
)

__all__ = [
    "CUTTABLE",
    "ContentVerdict",
    "FindSpans",
    "Inspect",
    "NeedsInspection",
    "Prefilter",
    "always",
    "collect_texts",
    "compile_cutter",
    "compile_prefilter",
    "content_rule",
    "length_rule",
    "personal_kind",
]

MASK: Final = "[MASKED]"
CONTROLS: Final = {each: " " if chr(each).isspace() else None for each in (*range(32), 127)}
"""What the normal form makes of the control characters of ASCII."""
_BLANKS: Final = re.compile("  +")
CUTTABLE: Final = ("pattern", "regex", "pii")
"""The types of rules that find something which can be cut out."""
MATCH: Final = 40
"""Steps that a match of a regular expression costs."""
GAP: Final = "\0"
"""Stands between two texts: in nothing that is found by its digits, letters and signs."""
LITERAL: Final = re.compile(r"[A-Za-z0-9 _@#%&=~:;,<>/!'\"-]*")
ALIASES: Final = {"ip_address": "ip", "creditcard": "credit_card", "credit-card": "credit_card"}

FindSpans: TypeAlias = Callable[[str, Spend], list[TextSpan]]
"""Returns what a rule finds in a text, with counted work."""
NeedsInspection: TypeAlias = Callable[[Json, Spend], bool]
"""Whether the rules of a side may object to a content; most contents are harmless."""
Inspect: TypeAlias = Callable[[Json, list[str], Spend], "ContentVerdict | None"]
"""Judges the content and the texts in it; None for no violation."""


class ContentVerdict(NamedTuple):
    """The verdict of a rule or a validator on a content."""

    reason: str | None
    """Why it is violated, None where it is not."""
    content: tuple[Json, ...] = ()
    """What the content is to be instead, if there is anything."""
    cuttable: bool = False
    """Whether what violates it can be cut out."""


class Prefilter(NamedTuple):
    """Properties of a content with ASCII texts to which a rule does not object."""

    least: int = 0
    most: float = math.inf
    """Between these is its length."""
    words: tuple[str, ...] = ()
    """In none of its texts is one of these, in whatever case."""
    begins: tuple[str, ...] = ()
    """Nor one of these as it is."""
    holds: Callable[[str, Spend], bool] | None = None
    """Nor is this true of all of them in one, with `GAP` between."""
    find: FindSpans | None = None
    """Nor is anything found in one of them by this."""


def always(content: Json, spend: Spend) -> bool:
    """Suspect every content."""
    return True


def compile_prefilter(clues: list[Prefilter]) -> NeedsInspection:
    """Return what suspects a content that the clues do not clear."""
    least, most = max((each.least for each in clues), default=0), math.inf
    words: list[str] = []
    begins: list[str] = []
    checks: list[Callable[[str, Spend], bool]] = []
    finds: list[FindSpans] = []
    for clue in clues:
        most = min(most, clue.most)
        words += clue.words
        begins += clue.begins
        checks += () if clue.holds is None else (clue.holds,)
        finds += () if clue.find is None else (clue.find,)
    measured = least > 0 or most < math.inf

    def doubts(content: Json, spend: Spend) -> bool:
        texts = collect_texts(content, spend)
        if measured and not least <= len(_text(content)) <= most:
            return True
        text = GAP.join(texts)
        if not text.isascii():
            return True
        if words:
            lower = text.translate(
                CONTROLS
            ).lower()  # no letter beyond ASCII stands for one of a word
            for word in words:
                if word in lower:
                    return True
        for begin in begins:
            if begin in text:
                return True
        for holds in checks:
            if holds(text, spend):
                return True
        for find in finds:
            for each in texts:
                if find(each, spend):
                    return True
        return False

    return doubts


def _text(content: Json) -> str:
    """Return the content as what its length is measured in."""
    return content if type(content) is str else compact(content)


def length_rule(written: Mapping[str, Json]) -> tuple[Prefilter, Inspect]:
    """Compile a rule on the length of a content."""
    least, most = written.get("Min", 0), written.get("Max", math.inf)

    def look(content: Json, texts: list[str], spend: Spend) -> ContentVerdict | None:
        length = len(_text(content))
        if length < least:
            return ContentVerdict(f"{length} characters are fewer than {least}")
        if length > most:
            return ContentVerdict(f"{length} characters are more than {most}")
        return None

    return Prefilter(least, most), look


def _finding(find: FindSpans, missing: Callable[[list[str], Spend], bool] | None) -> Inspect:
    def look(content: Json, texts: list[str], spend: Spend) -> ContentVerdict | None:
        if missing is not None and missing(texts, spend):
            return ContentVerdict("nothing of what is allowed is found")
        spans = list(chain.from_iterable(find(text, spend) for text in texts))
        if spans:
            labels = [span.label for span in spans]
            kinds = ", ".join(sorted({each.strip("[]").lower() for each in labels}))
            what = "something is" if kinds == "masked" else f"{kinds} is"
            reason = f"{what} found in {len(labels)} place{'s' * (len(labels) > 1)}"
            return ContentVerdict(reason, cuttable=True)
        return None

    return look


CHARACTERS: Final = 32
"""Characters of a text that a step reads."""


def collect_texts(content: Json, spend: Spend, level: int = 1) -> list[str]:
    """Return every text in the content, in order; raises WorkExceeded for too much or too deep."""
    kind = type(content)
    if kind is str:
        if len(content) > CHARACTERS:
            spend(len(content) // CHARACTERS)
        return [content]
    if kind is dict:
        content = content.values()
    elif kind is not list:
        return []
    if level > MAX_DEPTH:
        raise WorkExceeded("levels", MAX_DEPTH)
    found: list[str] = []
    characters = 0
    for each in content:
        kind = type(each)
        if kind is str:
            characters += len(each)
            found.append(each)
        elif kind is dict or kind is list:
            found += collect_texts(each, spend, level + 1)
    spend(4 + len(content) + characters // CHARACTERS)
    return found


def compile_cutter(find: FindSpans, action: str) -> Callable[[Json, Spend], Json]:
    """Return what takes everything that is found out of the texts of a content."""

    def cut_text(text: str, spend: Spend) -> str:
        pieces: list[str] = []
        end = 0
        for span in find(text, spend):
            pieces += text[end : span.start], span.label if action == "mask" else ""
            end = span.end
        return "".join((*pieces, text[end:]))

    def cut(content: Json, spend: Spend) -> Json:
        if type(content) is str:
            return cut_text(content, spend)
        if type(content) is dict:
            return {key: cut(each, spend) for key, each in content.items()}
        return [cut(each, spend) for each in content] if type(content) is list else content

    return cut


def _pattern(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    entries = [entry for entry in written.get("Block", ()) if entry]
    if not entries:
        return lambda text, spend: [], Prefilter()
    find = _words(entries)
    if not all(entry.isascii() and entry.isprintable() and " " not in entry for entry in entries):
        return find, Prefilter(find=find)
    return find, Prefilter(words=tuple(entry.lower() for entry in entries))


def _words(entries: Sequence[str]) -> FindSpans:
    """Return what finds the entries in a text, however either is disguised (`normal_form`)."""
    spend = WorkMeter().spend
    plain = [_comparable(entry, spend)[0] for entry in entries]
    search = _literals([each for each in plain if each])
    unseen = _literals([entry for entry, each in zip(entries, plain, strict=True) if not each])

    def find(text: str, spend: Spend) -> list[TextSpan]:
        found = unseen(text, spend)
        if text.isascii():
            spend(len(text) // CHARACTERS)
            if not search(_BLANKS.sub(" ", text.translate(CONTROLS)), spend):
                return found
        comparable, origins = _comparable(text, spend)
        found += [
            TextSpan(origins[start], origins[end - 1] + 1, label)
            for start, end, label in search(comparable, spend)
        ]
        return remove_overlaps(found)

    return find


def _literals(entries: Sequence[str]) -> FindSpans:
    """Return what finds any of the entries in a text, in either case."""
    if not entries:
        return lambda text, spend: []
    return _expression("|".join(map(escape, entries)), "i")


def _comparable(text: str, spend: Spend) -> tuple[str, Sequence[int]]:
    """Return the normal form of a text with each run of blanks as one, and where it comes from."""
    plain, origins = normal_form(text, spend)
    if "  " not in plain:
        return plain, origins
    spend(len(plain))
    kept = [at for at, each in enumerate(plain) if each != " " or plain[at - 1 : at] != " "]
    return "".join([plain[at] for at in kept]), array("I", [origins[at] for at in kept])


def _missing(written: Mapping[str, Json]) -> Callable[[list[str], Spend], bool] | None:
    """Return whether nothing that a pattern rule allows is found."""
    if "Allow" not in written:
        return None
    entries = written["Allow"]
    find = _words(entries)
    return lambda texts, spend: not any(find(text, spend) for text in texts if entries)


def _regex(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    pattern, flags = written["Pattern"], written.get("Flags", "")
    find = _expression(pattern, flags)
    begins = _beginning(pattern)
    if not begins:
        return find, Prefilter(find=find)
    if "i" in flags:
        return find, Prefilter(words=(begins.lower(),))
    return find, Prefilter(begins=(begins,))


def _beginning(pattern: str) -> str:
    """Return a text with which all begins that an expression matches, empty for none."""
    found = LITERAL.match(pattern)
    assert found is not None
    repeated = pattern[found.end() : found.end() + 1] in ("?", "*", "{")
    return "" if "|" in pattern else found[0][: -1 if repeated else None]


def _expression(pattern: str, flags: str) -> FindSpans:
    compiled = linear(pattern, flags)

    def find(text: str, spend: Spend) -> list[TextSpan]:
        # The places of bytes are those of characters, and cost the library less.
        searched = text.encode() if text.isascii() else text
        found: list[TextSpan] = []
        for match in find_all(compiled, searched, spend):
            spend(MATCH)
            found.append(TextSpan(match.start(), match.end(), MASK))
        return found

    return find


def _personal(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    kinds = [*map(personal_kind, written.get("Types", KINDS))]
    return personal_finder(kinds), Prefilter(holds=personal_test(kinds))


def personal_kind(written: str) -> str:
    """Return the name of a kind of personal data by one of its names."""
    name = written.lower()
    return ALIASES.get(name, name)


_FINDERS: Mapping[str, Callable[[Mapping[str, Json]], tuple[FindSpans, Prefilter]]] = {
    "pattern": _pattern,
    "regex": _regex,
    "pii": _personal,
}


def content_rule(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter | None, Inspect]:
    """Compile a rule that finds something in texts, of a type in `CUTTABLE`.

    Args:
        written: The rule.

    Returns:
        What it finds, what shows that it finds nothing, and its verdict on a content.
    """
    (find, clue), missing = _FINDERS[written["Type"]](written), _missing(written)
    return find, clue if missing is None else None, _finding(find, missing)
