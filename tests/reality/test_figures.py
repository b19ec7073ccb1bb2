"""Figures: how much of what the real service recorded, beyond the outcome, is the same here.

They are printed (`pytest -rA` shows them), recorded as properties, and must not fall below what
they were; docs/notes/aws-figures.md says what they are made of.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asl.engine.result import Result

from .aws import agrees, agrees_with_event, needs_recordings, recordings, replay

pytestmark = needs_recordings

CAUSES = (68, 68)
"""Executions whose cause is the recorded one, of those with a recorded cause."""
HISTORIES = (375, 375)
"""Executions whose event types come in the recorded order, of those with an ordered history."""
DETAILS = (375, 375)
"""Executions whose events say what was recorded, all of it and nothing else, of the same."""

Record = Callable[[str, object], None]
Figure = Callable[[str, int, int], None]


def cases() -> Iterator[Any]:
    for parameters in recordings():
        (case,) = parameters.values
        yield case


def ordered_histories() -> Iterator[Any]:
    for case in cases():
        if "events" in case and not case.get("events_sorted"):
            yield case


def failures() -> Iterator[Any]:
    for case in cases():
        if case["expected"].get("cause") is not None:
            yield case


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """The executions whose cause or ordered history was recorded, each replayed once."""
    wanted = [*ordered_histories(), *failures()]
    return {case["id"]: replay(case) for case in {case["id"]: case for case in wanted}.values()}


@pytest.fixture
def figure(record_property: Record) -> Figure:
    """Show one figure on the terminal and in reports."""

    def show(name: str, equal: int, total: int) -> None:
        text = f"{equal} of {total}"
        record_property(name, text)
        print(f"{name}: {text}")

    return show


def test_causes_are_those_recorded(figure: Figure, results: dict[str, Result]) -> None:
    """The cause of a failed execution, word by word."""
    with_cause = [*failures()]
    equal = sum(agrees(case["expected"]["cause"], results[case["id"]].cause) for case in with_cause)
    figure("causes", equal, len(with_cause))
    assert equal >= CAUSES[0]
    assert len(with_cause) >= CAUSES[1]


def test_event_types_come_in_the_recorded_order(figure: Figure, results: dict[str, Result]) -> None:
    """The types of all events of an execution, from its start to its end."""
    ordered = list(ordered_histories())
    equal, differences = 0, Counter[str]()
    for case in ordered:
        recorded = [event["type"] for event in case["events"]]
        ours = [event.type for event in results[case["id"]].events]
        equal += ours == recorded
        differences.update(f"not here: {each}" for each in Counter(recorded) - Counter(ours))
        differences.update(f"only here: {each}" for each in Counter(ours) - Counter(recorded))
    figure("event types in order", equal, len(ordered))
    for reason, count in differences.most_common():
        print(f"  {count:3} executions, {reason}")
    assert equal >= HISTORIES[0]
    assert len(ordered) >= HISTORIES[1]


def test_events_say_what_was_recorded(figure: Figure, results: dict[str, Result]) -> None:
    """The details of all events of an execution, as they are exported."""
    ordered = list(ordered_histories())
    equal, differences = 0, Counter[str]()
    for case in ordered:
        recorded, events = case["events"], results[case["id"]].history()["events"]
        others = [
            each["type"]
            for each, event in zip(recorded, events, strict=False)
            if not agrees_with_event(each, event)
        ]
        equal += len(recorded) == len(events) and not others
        differences.update(set(others))
    figure("event details", equal, len(ordered))
    for kind, count in differences.most_common():
        print(f"  {count:3} executions, {kind}")
    assert equal >= DETAILS[0]
    assert len(ordered) >= DETAILS[1]
