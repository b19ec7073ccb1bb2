"""Redaction: no reader of a history sees what is hidden, whatever the path."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.core.values import compact
from asl.core.work import WorkExceeded, WorkLimits, WorkMeter
from asl.expr.paths import parse_path
from asl.expr.paths.nodes import replace_nodes
from asl.expr.paths.selection import select

Json = Any
HIDDEN = "[REDACTED]"
DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Task",
            "Agent": "A",
            "Parameters": {"card.$": "$.card"},
            "ResultPath": "$.r",
            "Audit": {"LogLevel": "debug", "Redact": ["$..card"]},
            "OutputPath": "$.r.id",
            "End": True,
        }
    },
}
VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), part, max_size=3)
    ),
    max_leaves=12,
)
PATHS = ("$", "$.a", "$..a", "$.a.b", "$..a[*]", "$.*", "$[0]", "$[-1].a", "$..[?(@.a)]",
         "$['a','c']", "$[0:2].b", "$..*", "$.a..b")  # fmt: skip


@given(VALUES, st.sampled_from(PATHS))
def test_nothing_that_a_path_reaches_is_left(value: Json, text: str) -> None:
    """Whatever it reached has another value, the rest stays, and the original is untouched."""
    segments = parse_path(text).segments
    before, found = compact(value), select(segments, value, value)
    shown = replace_nodes(segments, value, HIDDEN)
    assert compact(value) == before
    if found:
        assert HIDDEN in compact(shown)
    else:
        assert shown == value
    if "?" not in text:  # a filter asks for what is hidden now
        left = select(segments, shown, shown)
        assert all(HIDDEN in compact(each) for each in left)


BROAD = {str(n): {str(m): {"x": [[[1]]] * 5} for m in range(60)} for n in range(60)}
ENDLESS = "$..*..*..*..nothing"


def test_a_replacement_is_bounded() -> None:
    """What would have to look at too much gives up."""
    with pytest.raises(WorkExceeded):
        replace_nodes(parse_path(ENDLESS).segments, BROAD, HIDDEN)


def test_what_cannot_be_looked_through_is_hidden_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A path that would take too long hides everything."""
    meter = partial(WorkMeter, WorkLimits(steps=1_000))
    monkeypatch.setattr("asl.expr.paths.segments.WorkMeter", meter)
    task = {"Type": "Task", "Agent": "A", "Audit": {"Redact": [ENDLESS]}, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    result = asl.run(document, BROAD, agents={"A": {"return": 1}})
    assert result.ok
    entered = next(event for event in result.events if event.type == "TaskStateEntered")
    assert entered.details["input"] == HIDDEN


def test_no_reader_sees_what_is_hidden(tmp_path: Path) -> None:
    """Not a listener, not a history, not its export, not a store that is read later."""
    heard: list[asl.Event] = []
    data = {"card": "4111", "n": 1}
    agents = {"A": {"return": {"id": 5, "card": "4111", "deep": [{"card": "4111"}]}}}
    with asl.open_store(tmp_path / "runs.db", agents=agents, listener=heard.append) as store:
        result = store.run(DOCUMENT, data, name="x")
        assert result.output == 5
        later = list(store.events("x"))
    seen = [event for event in (*heard, *later, *result.events) if event.path]
    assert seen
    assert "4111" not in compact([event.to_json() for event in seen])
    told = [each for each in result.history()["events"] if "Execution" not in each["type"]]
    assert "4111" not in json.dumps(told)


def test_an_agent_gets_what_is_hidden() -> None:
    """The data of the execution is not touched."""
    agents = {"A": lambda parameters: {"id": parameters["card"]}}
    assert asl.run(DOCUMENT, {"card": "4111"}, agents=agents).output == "4111"


def test_a_metric_that_is_not_measured_is_refused() -> None:
    """At its place, with those that there are."""
    task = {"Type": "Task", "Agent": "A", "Audit": {"Metrics": ["tokens", "accuracy"]}, "End": True}
    with pytest.raises(asl.InvalidDocument, match="'accuracy' is not measured") as refusal:
        asl.compile({"StartAt": "A", "States": {"A": task}})
    (found,) = refusal.value.report.errors
    assert (found.code, found.pointer) == ("EXEC-02", "/States/A/Audit/Metrics/1")


def test_the_level_of_tools_leaves_arguments_out() -> None:
    """`minimal` tells of a tool its name alone."""
    agents = {"A": {"use": [{"tool": "find", "arguments": {"q": "secret"}}]}}
    told = []
    for level in ("minimal", "standard"):
        tools = {"Audit": {"LogLevel": level}}
        task = {"Type": "Task", "Agent": "A", "Tools": tools, "End": True}
        document = {"StartAt": "S", "States": {"S": task}}
        result = asl.run(document, {}, agents=agents, tools={"find": {"return": 1}})
        (event,) = [each for each in result.events if each.type == "ToolCalled"]
        told.append(sorted(event.details))
    assert told == [["seconds", "tool"], ["arguments", "seconds", "tool"]]
