"""`asl run --trace`, and what is shown on a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from asl.cli.progress import Progress
from asl.core.document import Document, read
from asl.effects.clock import VirtualClock

from .conftest import Asl

import asl as front_door  # isort: skip

WORK = {
    "Type": "Task",
    "Agent": "Worker",
    "Parameters": {"value.$": "$", "greeting.$": "$greeting"},
    "Retry": [{"ErrorEquals": ["Flaky"]}],
    "End": True,
}
FLOW = {
    "StartAt": "Prepare",
    "States": {
        "Prepare": {
            "Type": "Pass",
            "Parameters": {"n.$": "$.n"},
            "ResultPath": "$.p",
            "Assign": {"greeting": "hi"},
            "Next": "Nap",
        },
        "Nap": {"Type": "Wait", "SecondsPath": "$.n", "Next": "Each"},
        "Each": {
            "Type": "Map",
            "InputPath": "$.items",
            "ItemsPath": "$",
            "ItemProcessor": {"StartAt": "Work", "States": {"Work": WORK}},
            "Next": "Last",
        },
        "Last": {"Type": "Pass", "InputPath": "$[0]", "End": True},
    },
}
AGENTS = {"sequence": [{"raise": {"Error": "Flaky", "Cause": "again"}}, {"return": "ok"}]}


def test_trace_prints_the_data_of_every_state(asl: Asl, folder: Path) -> None:
    """Input, effective input, parameters, result and output of every state, with its line."""
    (folder / "flow.json").write_text(json.dumps(FLOW, indent=2))
    (folder / "worker.json").write_text(json.dumps({"Worker": AGENTS}))
    done = asl(
        "run", "flow.json", "-i", '{"n":2,"items":[7]}',
        "--agents", "worker.json", "--virtual-time", "--trace",
    )  # fmt: skip
    assert done.stdout == '"ok"\n'
    assert (
        done.stderr
        == """\
Prepare  Pass, flow.json:4, at 0.000 s
  input            {"n":2,"items":[7]}
  effective input  {"n":2,"items":[7]}
  result           {"n":2}
  output           {"n":2,"items":[7],"p":{"n":2}}
  variables        {"greeting":"hi"}

Nap  Wait, flow.json:15, at 0.000 s
  input            {"n":2,"items":[7],"p":{"n":2}}
  effective input  {"n":2,"items":[7],"p":{"n":2}}
  output           {"n":2,"items":[7],"p":{"n":2}}

Each  Map, flow.json:20, at 2.000 s
  input            {"n":2,"items":[7],"p":{"n":2}}
  effective input  [7]

Each[0] / Work  Task, flow.json:27, at 2.000 s
  input            7
  effective input  7
  parameters       {"value":7,"greeting":"hi"}
  error            Flaky: again
  retry            number 1, after 1 s
  parameters       {"value":7,"greeting":"hi"}
  result           "ok"
  output           "ok"

Each, continued
  result           ["ok"]
  output           ["ok"]

Last  Pass, flow.json:47, at 3.000 s
  input            ["ok"]
  effective input  "ok"
  result           "ok"
  output           "ok"
"""
    )


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (40, ["the same"] * 3),
        (10, ['"xxxxxxxxxx"'] * 3),
        (3000, [f'"{"x" * 1999}… (3002 characters)'] * 3),
    ],
)
def test_trace_prints_a_repeated_value_once(
    size: int, shown: list[str], asl: Asl, folder: Path
) -> None:
    """A line says of a value that it is that of the line above, if both are shown as a whole."""
    document = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    (folder / "pass.json").write_text(json.dumps(document))
    done = asl("run", "pass.json", "-i", json.dumps("x" * size), "--trace")
    assert [line[19:] for line in done.stderr.splitlines()[2:]] == shown


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ({"Type": "Pass", "InputPath": "$$.Execution.Input.n"}, "effective input  1"),
        ({"Type": "Pass", "InputPath": "$$.State.Name"}, 'effective input  "A"'),
        ({"Type": "Pass", "InputPath": "$.none"}, "input            {"),
        ({"Type": "Pass", "Parameters": {"u.$": "States.UUID()"}}, "output           {"),
        ({"Type": "Pass", "Result": {"a": 1}, "ResultPath": "$.r"}, 'result           {"a":1}'),
    ],
)
def test_trace_evaluates_fields_without_events(
    state: dict[str, Any], shown: str, asl: Asl, folder: Path
) -> None:
    """A field that needs unknown values is omitted."""
    document = {"StartAt": "A", "States": {"A": {**state, "End": True}}}
    (folder / "one.json").write_text(json.dumps(document))
    done = asl("run", "one.json", "-i", '{"n":1}', "--trace")
    assert shown in done.stderr or done.exit_code == 1


def test_trace_truncates_long_values(asl: Asl) -> None:
    """A trace stays readable whatever the data."""
    done = asl("run", "pass.asl.json", "-i", json.dumps("x" * 10_000), "--trace")
    assert "… (10002 characters)" in done.stderr


def progress_at(moment: str, document: Document, agents: dict[str, Any], data: Any) -> list[Any]:
    """Return the lines that are shown just after the first event of this type."""
    clock = VirtualClock()
    progress = Progress(document, clock)
    shown: list[Any] = []

    def listen(event: front_door.Event) -> None:
        progress.listen(event)
        if event.type == moment and not shown:
            shown.extend(progress.lines())

    result = front_door.run(document, data, agents=agents, clock=clock, listener=listen)
    assert result.ok
    assert not progress.active
    return shown


@pytest.mark.parametrize(
    ("moment", "lines"),
    [
        ("WaitStateEntered", [("Nap", "Wait", "waits, 1 h 15 min left")]),
        ("MapStateStarted", [("Each", "Map", "0/3 items")]),
        ("RetryScheduled", [("Each", "Map", "0/3 items"),
                            ("Each[0] / Work", "Task", "retry 1, 1 s left")]),
        ("MapIterationSucceeded", [("Each", "Map", "1/3 items")]),
    ],
)  # fmt: skip
def test_progress_shows_states_items_and_waits(moment: str, lines: list[Any]) -> None:
    """Waits say how long they last, Maps how many items are done, retries when they come."""
    shown = progress_at(moment, read(FLOW), {"Worker": AGENTS}, {"n": 4500, "items": [1, 2, 3]})
    assert shown[: len(lines)] == lines


TALK = {
    "Type": "Debate",
    "Agents": ["Ann", "Bob"],
    "Topic": "Tea?",
    "Rounds": 1,
    "Consensus": {"Required": True, "Arbiter": "Judge", "Method": "voting"},
    "OutputPath": "$.decision",
    "End": True,
}
TALKERS = {
    "Ann": {"return": {"response": "Yes.", "vote": 1}},
    "Bob": {"return": {"response": {"say": "No."}, "vote": 2}, "delay": 2},
    "Judge": {"return": "tea"},
}


@pytest.mark.parametrize("style", ["turn_based", "simultaneous"])
def test_trace_prints_the_turns_of_a_debate(style: str, asl: Asl, folder: Path) -> None:
    """Who said what in which round, and what was decided."""
    talk = {**TALK, "Communication": {"Style": style}}
    document = {"StartAt": "Talk", "States": {"Talk": talk}}
    (folder / "talk.json").write_text(json.dumps(document))
    (folder / "talkers.json").write_text(json.dumps(TALKERS))
    done = asl("run", "talk.json", "--agents", "talkers.json", "--virtual-time", "--trace")
    assert done.stdout == '"tea"\n'
    assert (
        done.stderr
        == """\
Talk  Debate, talk.json:1, at 0.000 s
  input            {}
  effective input  {}
  round 1          Ann: "Yes."
  round 1          Bob: {"say":"No."}
  arbiter          Judge: "tea"
  decision         "tea", by arbiter, votes {"Ann":1,"Bob":2}
  output           "tea"
"""
    )


@pytest.mark.parametrize(
    ("moment", "says"), [("DebateTurnStarted", "round 1, Ann"), ("DebateStateStarted", "0 s")]
)
def test_progress_shows_the_round_of_a_debate(moment: str, says: str) -> None:
    """A debate says its round and who speaks."""
    document = read({"StartAt": "Talk", "States": {"Talk": TALK}})
    assert progress_at(moment, document, TALKERS, {}) == [("Talk", "Debate", says)]


def test_progress_of_a_short_run_shows_nothing() -> None:
    """A run that is over at once shows nothing."""
    progress = Progress(read(FLOW), VirtualClock())
    with progress:
        assert progress._live is None


def test_progress_prints_streamed_answers_as_lines() -> None:
    """A title says who speaks; what a terminal would obey is shown as a symbol."""
    script = {"return": 1, "reports": [{"chunk": "one\ntw"}, {"chunk": "o\x1b[2J"}]}
    task = {"Type": "Task", "Agent": "A", "Streaming": {}, "End": True}
    document = read({"StartAt": "A", "States": {"A": task}})
    progress = Progress(document, VirtualClock())
    front_door.run(document, agents={"A": script}, clock="virtual", listener=progress.listen)
    assert progress.unprinted == ["A:", "one", "two␛[2J"]


def test_trace_prints_streamed_chunks(asl: Asl, folder: Path) -> None:
    """Piece by piece, as everything else."""
    task = {"Type": "Task", "Agent": "A", "Streaming": {"Mode": "line"}, "End": True}
    (folder / "one.json").write_text(json.dumps({"StartAt": "A", "States": {"A": task}}))
    (folder / "agents.json").write_text(json.dumps({"A": {"return": "one\ntwo"}}))
    done = asl("run", "one.json", "--agents", "agents.json", "--trace")
    assert 'says             "one\\n"' in done.stderr
