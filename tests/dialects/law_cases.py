"""Documents for the law of conversions: published ones, conformance cases, and random ones."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import asl
from asl.conformance import Case as ConformanceCase
from asl.conformance.case import CHECK_FACTS
from asl.core.document import Document
from asl.dialects import load
from tests.bundled import bundled
from tests.dialects.behaviour import Script, distinct_answers, observe, scripted
from tests.dialects.corpora import PRESENT, corpus
from tests.dialects.generated import GENERATED, INPUTS, Draw

__all__ = ["SCRIPTS", "Case", "cases", "generated"]

Json = Any
ANSWERS: Final[tuple[Json, ...]] = (
    *("yes", "no", "", "a b", 7, 0.5, True, None, ["x"]),
    *({"kind": "a", "n": 7}, {"kind": "b", "n": 2, "text": "two words"}, {"kind": 3}, {"n": "7"}),
)
SIMPLE: Final = scripted(2, ["yes", "no", "a", "a b"], failing=0)
SCRIPTS: Final[tuple[Script, ...]] = (
    scripted(0, ANSWERS),
    scripted(1, ANSWERS),
    SIMPLE,
    scripted(3, ["yes", 7, "a"], failing=0.3),
    distinct_answers,
)
EXCLUDED: Final = {
    "checkpointing/storage": "its storage exists in its case only",
    "distributed-map/endless-child": "it runs for a second",
    "execution/assign-default": "its text is longer than an expression of a chain may be",
    "execution/payload-default": "its text is longer than an expression of a chain may be",
    "execution/assign-aws": "its text is longer than an expression of a chain may be",
    "execution/payload-aws": "its text is longer than an expression of a chain may be",
    "execution/payload-aws-fits": "its text is longer than an expression of a chain may be",
}
"""Conformance cases that are not compared, with the reason."""


class Case(NamedTuple):
    """A document, and an input that it may be run with."""

    name: str
    document: Document
    input: Json
    reading: Mapping[str, Json] = {}

    def works(self) -> bool:
        """Whether a run calls an agent and misses no value, so that most of it is compared."""
        run = observe(self.document, self.input, SIMPLE)
        return bool(run.agents) and "missing" not in run.happened


def cases(source: str, each: int, count: int) -> Iterator[Case]:
    """Yield documents of a language.

    Args:
        source: The language.
        each: One document of so many of the corpora and the conformance cases is taken.
        count: Number of random documents.
    """
    for name, document in [*corpus(source).items()][::each] if PRESENT else ():
        if not _is_template(document):
            yield Case(name, document, INPUTS[source][0])
    listed = [one for one in _conformance(min(each, 7)) if one[1].dialect == source]
    for case, document in listed[::each]:
        yield Case(case.id, document, case.input, case.reading)
    for seed in range(count):
        yield generated(source, seed)


@cache
def _conformance(files: int) -> list[tuple[ConformanceCase, Document]]:
    """Return the documents of one conformance file of so many, each once."""
    found: dict[str, tuple[ConformanceCase, Json]] = {}
    for case in bundled(each=files):
        if CHECK_FACTS.issuperset(case.observe) or case.id in EXCLUDED:
            continue
        what = case.document if case.document is not None else str(case.document_text).encode()
        key = f"{case.dialect} {json.dumps(case.reading)} {case.input} {what!r}"
        if "waitForTaskToken" not in key:  # no one completes the token
            found.setdefault(key, (case, what))
    return [*_runnable(found.values())]


def _runnable(found: Any) -> Iterator[tuple[ConformanceCase, Document]]:
    for case, what in found:
        try:
            document = load(what, dialect=case.dialect, reading=case.reading)
        except asl.InvalidDocument:
            continue
        complete = "States" in document.composed_value and not _is_template(document)
        if complete and asl.check(document).ok:
            yield case, document


def _is_template(document: Document) -> bool:
    return "Parameters" in document.value or "Imports" in document.value


_DRAWS: Final = 16
_AS_DRAWN: Final = 4
"""One document of so many is taken as it is drawn, whether it works or not."""
_ENDLESS: Final = {"V-TOP-12", "CX-NO-END"}
"""Findings about documents that cannot end, so that there is no output to compare."""


def generated(source: str, seed: int) -> Case:
    """Return a random document, in most cases one that works if any of the draws does."""
    drawn = _drawn(source, seed)
    first = next(drawn)
    if seed % _AS_DRAWN == 0 or first.works():
        return first
    return next((each for each in drawn if each.works()), first)


def _drawn(source: str, seed: int) -> Iterator[Case]:
    for count in range(_DRAWS):
        draw = Draw(f"{source}:{seed}:{count}")
        made = GENERATED[source](draw)
        document = load(made.document, dialect=source, files=made.files)
        report = asl.check(document)
        if report.ok and not _ENDLESS.intersection(each.code for each in report):
            yield Case(f"generated {seed}", document, draw.choice(INPUTS[source]))
