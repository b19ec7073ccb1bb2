"""The documents of the cases, with faults put in, end as everything does: nothing crashes or hangs.

A document that cannot be read or run is refused, a run fails; anything else is a fault of ours.
"""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

import asl
from asl.conformance import Case
from asl.core.profile import PROFILES
from asl.dialects import load
from tests.bundled import bundled
from tests.laws.mutants import TEXTS, VALUES, mutant
from tests.test_bad_input import in_time

QUICK = (240, 9)
"""How many mutants a batch has, of the cases in one of how many files."""
FULL = (6_000, 1)
LANGUAGES = ("asl", "amazon", "codemie", "contenox", "flujo")


@cache
def cases(files: int) -> list[Case]:
    """The cases with a document that is a value, of one of so many files."""
    return [each for each in bundled(each=files) if each.document is not None]


def lived(case: Case, random: Random) -> None:
    """Let a mutant of a case go through everything that a document can go through."""
    what, data = mutant(case.document, random), case.input
    if random.random() < 0.3 and isinstance(data, dict | list):
        data = mutant(data, random)
    document = load(what, dialect=case.dialect, reading=case.reading)
    profile = PROFILES[case.profile]._replace(max_transitions=1_000)
    asl.check(document, profile=profile)
    if random.random() < 0.2:
        asl.convert(document, random.choice(LANGUAGES))
    if random.random() < 0.2:
        for form in ("mermaid", "dot", "svg"):
            asl.graph(document, format=form)
        asl.diff(document, load(case.document, dialect=case.dialect, reading=case.reading))
        asl.plan(document, profile=profile)
    mocks = {name: {"return": random.choice((*VALUES, *TEXTS, {"a": 1}))} for name in tasks(what)}
    result = asl.run(document, data, profile=profile, clock="virtual", mocks=mocks)
    result.to_json()
    [event.to_json() for event in result.events]


def tasks(value: Any) -> Iterator[str]:
    """Yield the names of the states at any depth."""
    if type(value) is dict:
        states = value.get("States")
        if type(states) is dict:
            yield from states
        for member in value.values():
            yield from tasks(member)
    elif type(value) is list:
        for member in value:
            yield from tasks(member)


@pytest.mark.parametrize(
    ("seed", "mutants", "files"),
    [(0, *QUICK), *(pytest.param(seed, *FULL, marks=pytest.mark.full) for seed in range(1, 5))],
)
def test_documents_with_faults_never_crash(seed: int, mutants: int, files: int) -> None:
    random = Random(seed)
    for _ in range(mutants):
        case = random.choice(cases(files))
        before = random.getstate()
        try:
            with in_time():
                lived(case, random)
        except asl.AslError:
            pass
        except Exception as fault:
            random.setstate(before)
            pytest.fail(f"{case.id}: {fault!r} for {str(mutant(case.document, random))[:2000]}")
