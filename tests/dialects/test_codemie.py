"""The CodeMie dialect by its front door: options of reading, one retrier, and bad input."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.core.document import Document
from asl.dialects.codemie.tasks import RETRIED

pytestmark = pytest.mark.quick

HEAD = "assistants:\n  - {id: a, system_prompt: x}\n"
ONE_STATE = HEAD + "states: [{id: s, assistant_id: a, next: {state_id: end}}]\n"
PARTING = (
    HEAD
    + """\
states:
  - id: s
    assistant_id: a
    next:
      iter_key: items
      condition: {expression: "kind == 'big'", then: b, otherwise: c}
  - {id: b, assistant_id: a, next: {state_id: done}}
  - {id: c, assistant_id: a, next: {state_id: done}}
  - {id: done, assistant_id: a, next: {state_id: end}}
"""
)
FORKING = (
    HEAD
    + """\
states:
  - {id: s, assistant_id: a, next: {iter_key: items, state_ids: [b, c]}}
  - {id: b, assistant_id: a, next: {state_id: done}}
  - {id: c, assistant_id: a, next: {state_id: done}}
  - {id: done, assistant_id: a, next: {state_id: end}}
"""
)
MODEL = """\
assistants: [{id: a, model: gpt}]
states: [{id: s, assistant_id: a, next: {state_id: end}}]
"""


def paths(result: asl.Result) -> list[str]:
    """The states that were entered, wherever they stand."""
    return [
        each.path[-1]
        for each in result.events
        if each.type in ("TaskStateEntered", "ChoiceStateEntered")
    ]


@pytest.mark.parametrize("text", [PARTING, FORKING, MODEL])
def test_older_workflows_are_refused_unless_asked_for(text: str) -> None:
    """What the platform refuses today is an error, and with the option a warning."""
    with pytest.raises(asl.InvalidDocument):
        asl.load(text)
    report = asl.check(asl.load(text, reading={"accept_legacy": True}))
    assert report.ok
    assert "CM-LEGACY" in {each.code for each in report}


@pytest.mark.parametrize(("kind", "worker"), [("big", "b"), ("small", "c")])
def test_the_items_of_an_older_workflow_part(kind: str, worker: str) -> None:
    """Each item goes the way that the condition says of the output that they come from."""
    document = asl.load(PARTING, reading={"accept_legacy": True})
    result = asl.run(document, agents={"a": {"return": {"kind": kind, "items": [1, 2]}}})
    assert result.ok, result.cause
    assert paths(result) == ["s", "s:if", worker, "s:if", worker, "done"]


def test_the_items_of_an_older_workflow_go_all_ways() -> None:
    """A fork beside the items runs for each of them."""
    document = asl.load(FORKING, reading={"accept_legacy": True})
    result = asl.run(document, agents={"a": {"return": {"items": [1, 2]}}})
    assert result.ok, result.cause
    assert paths(result) == ["s", "b", "c", "b", "c", "done"]


@pytest.mark.parametrize("text", [PARTING, FORKING, MODEL])
def test_an_older_workflow_comes_back(text: str) -> None:
    """How a workflow was read is kept, so the way back is the same."""
    there = asl.convert(text, "asl", reading={"accept_legacy": True})
    back = asl.convert(there.text, "codemie")
    assert back.faithful
    written = asl.load(text, reading={"accept_legacy": True}).composition
    assert written is not None
    assert back.document == written.written


def test_the_command_reads_an_older_workflow(tmp_path: Path) -> None:
    """The option is there wherever a document is."""
    path = tmp_path / "flow.yaml"
    path.write_text(PARTING, encoding="utf-8")
    assert CliRunner().invoke(cli, ["check", str(path)]).exit_code == 3
    run = CliRunner().invoke(cli, ["check", str(path), "--reading", "accept_legacy"])
    assert run.exit_code == 0
    assert "CM-LEGACY" in run.stdout
    unknown = CliRunner().invoke(cli, ["check", str(path), "--reading", "accept_legcy"])
    assert unknown.exit_code == 2
    assert "did you mean 'accept_legacy'?" in unknown.stderr


def test_values_are_text_unless_expand_values() -> None:
    """What an actor said is no text with placeholders."""
    text = HEAD + (
        "tools: [{id: t, tool: do, tool_args: {x: 'is {{said}}', y: '{{said}}'}}]\n"
        "states: [{id: s, assistant_id: a, task: 'is {{said}}', next: {state_id: u}},"
        " {id: u, tool_id: t, next: {state_id: end}}]\n"
    )
    for reading, seen in (({}, "{{key}}"), ({"expand_values": True}, "K")):
        asked: list[Any] = []
        document = asl.load(text, reading=reading)

        def agent(parameters: Any, asked: list[Any] = asked) -> str:
            asked.append(parameters)
            return "ok"

        result = asl.run(document, {"said": "{{key}}", "key": "K"}, agents={"a": agent, "t": agent})
        assert result.ok, result.cause
        assert asked[0]["task"] == f"is {seen}"
        assert asked[1] == {"x": f"is {seen}", "y": seen}
        assert asl.convert(asl.convert(document, "asl").text, "codemie").faithful


def test_a_task_is_tried_again_unless_its_failure_stays() -> None:
    """One retrier, for what may pass."""
    [retrier] = asl.load(ONE_STATE).value["States"]["s"]["Retry"]
    assert (retrier["ErrorEquals"], retrier["MaxAttempts"]) == ([RETRIED], 9)
    without = asl.load(ONE_STATE, reading={"implicit_retry": False})
    assert "Retry" not in without.value["States"]["s"]


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        *(("States.Permissions", 1), ("CM.Forbidden", 1), ("Agent.InvalidInput", 1)),
        *(("States.Timeout", 10), ("States.RateLimitExceeded", 10), ("Some.Failure", 10)),
    ],
)
def test_only_failures_that_may_pass_are_retried(error: str, calls: int) -> None:
    """Also in a hub document whose handler lists further names."""
    native = asl.load(asl.convert(asl.load(ONE_STATE), "asl").text)
    assert _calls(asl.load(ONE_STATE), error) == _calls(native, error) == calls
    native.value["States"]["s"]["Retry"][0]["ErrorEquals"].append("CM.Forbidden")
    assert _calls(native, error) == (10 if error == "CM.Forbidden" else calls)


def _calls(document: Document, error: str) -> int:
    """Return how often the actor of a workflow is called if it always fails."""
    failing: list[Any] = []

    def fail(parameters: Any) -> None:
        failing.append(parameters)
        raise asl.StateError(error, "a scripted failure")

    assert asl.run(document, {}, agents={"a": fail}, clock="virtual").error == error
    return len(failing)


def test_an_actor_without_a_binding_fails_immediately() -> None:
    result = asl.run(asl.load(ONE_STATE), {}, clock="virtual")
    assert result.error == "States.AgentNotFound"
    assert result.events[-1].timestamp == result.events[0].timestamp


def flow(next_: str, more: str = "") -> str:
    """A workflow whose first state goes on like this."""
    return HEAD + (
        f"states:\n  - id: s\n    assistant_id: a\n    next: {{{next_}}}\n{more}"
        "  - {id: t, assistant_id: a, next: {state_id: end}}\n"
    )


def choosing(expression: str) -> str:
    """A workflow that chooses by this."""
    return flow(f'condition: {{expression: "{expression}", then: t, otherwise: end}}')


BAD = {
    "attribute": (choosing("user.name == 1"), "CM-EXPR-UNSUPPORTED"),
    "dunder": (choosing("().__class__.__bases__[0]"), "CM-EXPR-UNSUPPORTED"),
    "call": (choosing("open('/etc/passwd')"), "CM-EXPR-UNSUPPORTED"),
    "import": (choosing("__import__('os').system('x')"), "CM-EXPR-UNSUPPORTED"),
    "comprehension": (choosing("[x for x in items]"), "CM-EXPR-UNSUPPORTED"),
    "lambda": (choosing("(lambda: 1)()"), "CM-EXPR-UNSUPPORTED"),
    "power": (choosing("9**9**9**9"), "CM-EXPR-UNSUPPORTED"),
    "format": (choosing("'{0.__class__}'.format(x)"), "CM-EXPR-UNSUPPORTED"),
    "f-string": (choosing("f'{x}' == 'y'"), "CM-EXPR-UNSUPPORTED"),
    "percent": (choosing("x === 1"), "CM-EXPR-SYNTAX"),
    "target": (flow("state_id: tt"), "CM-UNDEFINED-REF"),
    "far target": (flow("state_id: publication"), "CM-UNDEFINED-REF"),
    "twice": (
        flow("state_id: t", "  - {id: t, assistant_id: a, next: {state_id: end}}\n"),
        "CM-DUPLICATE-ID",
    ),
    "iterated fork": (flow("state_ids: [t, end], iter_key: x"), "CM-NEXT-CONFLICT"),
    "no default": (
        flow("switch: {cases: [{condition: x, state_id: t}]}"),
        "CM-SCHEMA",
    ),
    "on": (flow("state_id: t, output_key: on"), "CM-SCHEMA"),
    "NO": (flow("state_id: t, output_key: NO"), "CM-SCHEMA"),
    "12:30": (flow("state_id: t, output_key: 12:30"), "CM-SCHEMA"),
}


@pytest.mark.parametrize(("text", "code"), BAD.values(), ids=list(BAD))
def test_bad_input_is_a_finding_with_a_place_and_a_hint(text: str, code: str) -> None:
    """Nothing of it is executed, and nothing takes long."""
    try:
        report = asl.check(asl.load(text))
    except asl.InvalidDocument as refusal:
        report = refusal.report
    (found,) = (each for each in report if each.code == code)
    assert found.line is not None
    assert found.line > 2
    assert found.column is not None
    assert found.hint, found.message
    if report.ok:
        result = asl.run(asl.load(text), agents={"a": {"return": {"x": 3, "items": [1]}}})
        assert result.visited == ["s", "s:if", "end"]


def test_yaml_1_1_draws_a_warning_where_it_is_no_error() -> None:
    """A value that is no text for the platform is told, with what it is."""
    text = flow("state_id: t") + "meta: {when: 12:30, where: NO, how: on}\n"
    report = asl.check(asl.load(text))
    found = [each for each in report if each.code == "CM-YAML-SCALAR"]
    assert [re.sub(r".*reads ", "", each.message) for each in found] == [
        "12:30 as 750",
        "NO as false",
        "on as true",
    ]
    assert all(each.hint for each in found)
