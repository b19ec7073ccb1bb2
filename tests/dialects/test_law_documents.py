"""Small documents, each for one rule of a writer, run beside their conversions."""

from typing import Any

import pytest

import asl
from tests.dialects.behaviour import Script, scripted
from tests.dialects.law import convert_and_back, violation

ANSWERS = scripted(
    0,
    [{"kind": "a", "n": 7}, {"n": "7"}, {"kind": None}, "text", ["x"], None],
    failing=0.2,
)
"""Answers of different types, some of which lack what is read."""


def task(agent: str, **more: Any) -> dict[str, Any]:
    ends = {} if "Next" in more else {"End": True}
    return {"Type": "Task", "Agent": agent, **more, **ends}


def queries(states: dict[str, Any]) -> dict[str, Any]:
    return {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}


def deciding(condition: str, default: str | None = "no") -> dict[str, Any]:
    """Return a document that decides by the answer of its first agent."""
    rule = {"Condition": f"{{% {condition} %}}", "Next": "yes"}
    ask = task("a", Output="{% $merge([$states.input, {'r': $states.result}]) %}", Next="which")
    states = {"ask": ask, "which": {"Type": "Choice", "Choices": [rule]}, "yes": task("y")}
    if default is not None:
        states["which"]["Default"] = default
        states[default] = task("n")
    return queries(states)


def chain(template: str) -> dict[str, Any]:
    """Return a chain whose second task is given a text."""
    tools = {"handler": "tools"}
    return {
        "id": "c",
        "tasks": [
            {"id": "one", **tools, "tools": {"name": "a"}, "input_var": "input"},
            {"id": "two", **tools, "tools": {"name": "b"}, "prompt_template": template},
        ],
    }


CAUSE = {
    "ErrorEquals": ["States.ALL"],
    "Output": "{% {'why': $states.errorOutput.Cause} %}",
    "Next": "tell",
}
DOCUMENTS: dict[str, tuple[str, Any]] = {
    "truth": ("asl", deciding("$not($states.input.r.kind)")),
    "truth of parts": ("asl", deciding("$exists($states.input.r) and $states.input.r.n")),
    "null": ("asl", deciding("$states.input.r.kind = null")),
    "missing": ("asl", deciding("$exists($states.input.r.kind)")),
    "no default": ("asl", deciding("$states.input.r.n = 7", None)),
    "number": ("asl", deciding("$states.input.r.n > 3")),
    "never": ("asl", deciding("false", None)),
    "text through nothing": (
        "asl",
        queries(
            {
                "ask": task("a", Output="{% {'r': $states.result} %}", Next="tell"),
                "tell": task("b", Arguments={"task": "{% 'of ' & $states.input.r.n.m %}"}),
            }
        ),
    ),
    "part of an answer": (
        "asl",
        queries(
            {"ask": task("a", Output="{% $merge([$states.input, {'n': $states.result.n}]) %}")}
        ),
    ),
    "record beside a text": (
        "asl",
        {
            "StartAt": "ask",
            "States": {
                "ask": task("a", Next="approve"),
                "approve": {"Type": "Approval", "Prompt": "Publish?", "End": True},
            },
        },
    ),
    "condition that is known": (
        "flujo",
        {
            "version": "0.1",
            "steps": [
                {
                    "kind": "conditional",
                    "name": "which",
                    "condition_expression": "True",
                    "branches": {"true": [{"name": "yes", "agent": {"id": "a"}}]},
                }
            ],
        },
    ),
    "cause of a caught error": (
        "asl",
        queries(
            {
                "ask": task("a", Catch=[CAUSE], Next="tell"),
                "tell": task("b", Arguments={"task": "{% 'of ' & $states.input.why %}"}),
            }
        ),
    ),
    "index from the end": ("asl", deciding("$states.input.list[-1] = 'q'")),
    "text of the input": ("contenox", chain("{{.input.kind}}")),
}


@pytest.mark.parametrize("target", ["amazon", "codemie", "contenox", "flujo"])
@pytest.mark.parametrize("name", [*DOCUMENTS])
def test_conversion_changes_only_what_its_report_names(name: str, target: str) -> None:
    source, value = DOCUMENTS[name]
    if source != target:
        ways = convert_and_back(asl.load(value, dialect=source), target)
        scripts: list[Script] = [ANSWERS, lambda agent, count: {"kind": "a", "n": count % 2}]
        assert violation(ways, {"kind": "a", "list": ["p", "q"]}, scripts) is None


def failing_map(handler: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose Map has a handler, and puts its result beside the data."""
    items = {"StartAt": "I", "States": {"I": task("a")}}
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Z", **handler}]
    each = {
        "Type": "Map",
        "ItemsPath": "$.list",
        "MaxConcurrency": 1,
        "ItemProcessor": items,
        "ResultPath": "$.r",
        "Catch": catch,
        "Next": "Y",
    }
    ends = {name: task(name.lower(), ResultPath=f"$.{name}") for name in "YZ"}
    return {"StartAt": "M", "States": {"M": each, **ends}}


def test_state_of_a_blueprint_fails_where_any_of_its_steps_does() -> None:
    """The step that stores a result is not the one that decides."""
    conversion = asl.convert(failing_map({}), "flujo")
    assert conversion.ok
    assert "kind: loop" in conversion.text

    def fail(request: Any) -> None:
        raise asl.StateError("Bad", "it broke")

    calls: list[str] = []
    others = {name: lambda request, name=name: calls.append(name) for name in "yz"}
    data = {"context": {"list": [1]}}
    document = asl.load(conversion.text, dialect="flujo")
    asl.run(document, data, agents={"a": fail, **others}, clock="virtual")
    assert calls == ["z"]


def test_catcher_by_name_is_an_error_of_a_blueprint() -> None:
    """A message need not contain the name of its error."""
    conversion = asl.convert(failing_map({"ErrorEquals": ["Bad"]}), "flujo")
    assert [each.code for each in conversion.losses.errors] == ["FL-ERROR"]


@pytest.mark.parametrize(("second", "ok"), [(["b"], True), (["b", "c"], False)])
def test_branch_that_calls_on_after_a_failure_is_an_error(second: list[str], ok: bool) -> None:
    """All branches begin, whichever fails; a blueprint ends the others only at their end."""
    last = second[-1]
    states = {name: task(name, **({} if name == last else {"Next": last})) for name in second}
    branches = [
        {"StartAt": "a", "States": {"a": task("a")}},
        {"StartAt": "b", "States": states},
    ]
    fork = {"Type": "Parallel", "Branches": branches, "ResultPath": "$.r", "End": True}
    conversion = asl.convert({"StartAt": "P", "States": {"P": fork}}, "flujo")
    assert conversion.ok is ok
    assert "FL-ABORT" in {each.code for each in conversion.losses}


def test_lost_policy_of_an_approval_is_an_error() -> None:
    policy = {"RequiredApprovals": 2}
    state = {"Type": "Approval", "Prompt": "?", "Policy": policy, "End": True}
    document = {"StartAt": "A", "States": {"A": state}}
    for target in ("codemie", "flujo"):
        errors = asl.convert(document, target).losses.errors
        assert [each.pointer for each in errors] == ["/States/A/Policy"], target


def test_answers_of_a_nested_iteration_are_collected() -> None:
    """The last answer before the state behind both is that of the inner worker."""
    text = """\
assistants: [{id: a, system_prompt: x}]
states:
  - {id: first, assistant_id: a, next: {state_id: outer, iter_key: items}}
  - {id: outer, assistant_id: a, finish_iteration: true, next: {state_id: inner, iter_key: parts}}
  - {id: inner, assistant_id: a, finish_iteration: true, next: {state_id: last}}
  - {id: last, assistant_id: a, next: {state_id: end}}
"""
    document = asl.convert(text, "amazon").document
    assert "'inner'" in str(document["States"]["first:each"]["Output"])


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("target", ["codemie", "flujo"])
@pytest.mark.parametrize(
    ("ask", "ok"),
    [
        (task("a", Output={"r": "{% $states.result %}"}, Next="which"), False),
        (
            task(
                "a",
                Arguments={"output_schema": SCHEMA},
                Output={"r": "{% $states.result %}"},
                Next="which",
            ),
            True,
        ),
        ({"Type": "Pass", "Output": {"r": {"n": 7}}, "Next": "which"}, True),
        (
            {
                "Type": "Pass",
                "Output": {"r": {"n": "{% $states.input.n + 1 %}"}},
                "Next": "which",
            },
            True,
        ),
    ],
)
def test_text_that_is_read_as_a_number_is_an_error(ask: Any, ok: bool, target: str) -> None:
    """Unless the document gives the type: by a schema, a constant or a sum."""
    document = deciding("$states.input.r.n > 3")
    document["States"]["ask"] = ask
    losses = asl.convert(asl.load(document), target).losses
    found = [each for each in losses if each.code in ("L-COERCE", "FL-COERCE")]
    assert [each.severity for each in found] == ([] if ok else [asl.Severity.ERROR])
