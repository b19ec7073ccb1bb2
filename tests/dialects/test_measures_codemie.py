"""Sizes of conversions of workflows and to workflows, names of states, and lengths of reports."""

from collections.abc import Iterator, Mapping
from functools import cache
from statistics import median
from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.dialects import load
from asl.states.machines import nested_machines
from tests.dialects.corpora import PRESENT, corpus

pytestmark = pytest.mark.skipif(not PRESENT, reason="the documents are not here")

Json = Any
FROM = ("asl", "amazon")
"""Languages that a workflow is measured in."""
TO = ("asl", "amazon", "contenox", "flujo")
"""Languages whose documents are measured as workflows."""
TIMES = 1.5
"""States of a conversion for each element of its source."""
LONGEST = 2.0
"""The same for the longest one: a Task in front of which its input is computed."""
WARNINGS = 3
"""Entries with the severity `warning` in the median report."""


@cache
def conversions(source: str, target: str) -> list[tuple[Document, asl.Conversion]]:
    return [(each, asl.convert(each, target)) for each in corpus(source).values()]


def states(machine: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names of the states of a machine, and of the machines within."""
    for name, state in machine["States"].items():
        yield name
        for _, inner in nested_machines(state):
            if "States" in inner:
                yield from states(inner)


def config(value: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the workflow that a document was read from."""
    found: Mapping[str, Json] = value["Metadata"]["CodeMie"]["config"]
    return found


def elements(state: Mapping[str, Json]) -> int:
    """Return the number of states of another language that one of a workflow is by itself."""
    to = state["next"]
    decides = "condition" in to or "switch" in to or len(to.get("state_ids", ())) > 1
    gated = state.get("interrupt_before") or state.get("wait_for_user_confirmation")
    return 1 + bool(decides) + bool(to.get("iter_key")) + bool(gated)


@pytest.mark.parametrize("target", FROM)
def test_a_workflow_is_about_as_long_in_another_language(target: str) -> None:
    """Beside a state for each of its own, and one for each end and for cancelled runs."""
    factors = []
    for document, conversion in conversions("codemie", target):
        length = sum(map(elements, config(document.value)["states"]))
        found = len([*states(conversion.document)])
        assert found <= TIMES * length + 1
        factors.append(found / length)
    assert median(factors) <= 1


@pytest.mark.parametrize("source", TO)
def test_another_document_is_about_as_long_as_a_workflow(source: str) -> None:
    factors = []
    for document, conversion in conversions(source, "codemie"):
        length = len([*states(document.composed_value)])
        written = conversion.document.get("execution_config", conversion.document)
        factors.append(len(written["states"]) / length)
    assert max(factors) <= LONGEST
    assert sum(each > TIMES for each in factors) <= 2
    assert median(factors) <= 1


@pytest.mark.parametrize("target", FROM)
def test_states_keep_the_names_of_the_author(target: str) -> None:
    for document, conversion in conversions("codemie", target):
        known = {*states(document.value)}
        named = {each["id"] for each in config(document.value)["states"]} & known
        assert named <= {*states(conversion.document)}


@pytest.mark.parametrize("target", FROM)
def test_reports_are_short(target: str) -> None:
    counts = [
        len(conversion.losses.of(asl.Severity.WARNING))
        for _, conversion in conversions("codemie", target)
    ]
    assert median(counts) <= WARNINGS


@pytest.mark.parametrize("source", TO)
def test_a_written_workflow_has_no_errors(source: str) -> None:
    for _, conversion in conversions(source, "codemie"):
        assert asl.check(load(conversion.text, dialect="codemie")).ok


def test_no_function_of_the_dialect_is_left_without_an_error() -> None:
    for _, conversion in conversions("codemie", "amazon"):
        assert ("$codemie_" not in conversion.text) or not conversion.ok


def test_conditions_of_published_workflows_are_jsonata() -> None:
    """All but a few, whose values may be of several types."""
    texts = [conversion.text for _, conversion in conversions("codemie", "asl")]
    own = sum(text.count("$codemie_holds(") for text in texts)
    assert own <= sum(text.count("$codemie_output(") for text in texts) / 4


def test_steps_are_counted_in_cycles_only() -> None:
    """And where a path is longer than the limit."""
    flow = {
        "assistants": [{"id": "a", "system_prompt": "You help."}],
        "states": [
            {
                "id": "s",
                "assistant_id": "a",
                "next": {"condition": {"expression": "x > 1", "then": "t", "otherwise": "end"}},
            },
            {"id": "t", "assistant_id": "a", "next": {"state_id": "end"}},
        ],
    }
    assert "$codemie_step" not in asl.convert(load(flow, dialect="codemie"), "asl").text
    flow["states"][1]["next"] = {"state_id": "s"}  # type: ignore[index]
    assert "$codemie_step" in asl.convert(load(flow, dialect="codemie"), "asl").text


def test_steps_are_not_counted_before_a_cycle() -> None:
    """A path to a cycle is shorter than the limit, unless the limit is very small."""

    def counting(limit: int) -> list[str]:
        to = {"condition": {"expression": "x > 1", "then": "b", "otherwise": "c"}}
        nexts = {"a": to, "b": {"state_id": "c"}, "c": {"state_id": "c"}}
        states = [{"id": name, "assistant_id": "a", "next": nexts[name]} for name in nexts]
        flow = {"assistants": [{"id": "a", "system_prompt": "x"}], "states": states}
        flow["recursion_limit"] = limit  # type: ignore[assignment]
        made = asl.convert(load(flow, dialect="codemie"), "asl").document["States"]
        limits = ("recursion_limit", "$codemie_step")
        return [name for name in made if any(each in str(made[name]) for each in limits)]

    assert counting(50) == ["c"]
    assert counting(2) == ["a:if", "b", "c"]
