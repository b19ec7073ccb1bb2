"""Conditions of other languages take the same branch after a conversion, whatever they read."""

from typing import Any

import pytest

import asl

ARN = "arn:aws:lambda:us-east-1:123456789012:function:a"
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    3,
    5,
    "",
    "x",
    "xa",
    "ax",
    "X",
    [],
    ["x"],
    ["y"],
    {},
    {"x": 1},
)
LOSSES = {"CX-OPERATOR", "FL-OPERATOR", "L-FUNCTION"}


def workflow(condition: str) -> dict[str, Any]:
    """Return a workflow that calls `two` where the answer of `one` fits, else `three`."""
    to = {"condition": {"expression": condition, "then": "two", "otherwise": "three"}}
    states = [{"id": "one", "assistant_id": "a", "task": "t1", "next": to}]
    for name in ("two", "three"):
        last = {"id": name, "assistant_id": "a", "task": name, "next": {"state_id": "end"}}
        states.append(last)
    return {"assistants": [{"id": "a", "system_prompt": "x"}], "states": states}


def branch(document: Any, language: str, answer: Any) -> str:
    """Return which assistant is called behind the answer."""
    calls: list[str] = []

    def agent(request: Any, *_: Any) -> Any:
        calls.append(str(request))
        return answer

    data = {"contenox": "", "flujo": {"input": "", "context": {}}}.get(language, {})
    names = ("a", "agents.a", "one", "two", "three")
    agents = {**dict.fromkeys(names, agent), "one:if": lambda request: request["input"]}
    resources = {ARN: agent} if language == "amazon" else {}
    result = asl.run(document, data, agents=agents, resources=resources, clock="virtual")
    assert result.status == "SUCCEEDED", result.cause
    return next(each for each in ("two", "three") if each in calls[-1])


@pytest.mark.parametrize("language", ["amazon", "contenox", "flujo"])
@pytest.mark.parametrize(
    "condition",
    [
        "'x' in v",
        "'x' not in v",
        "v.contains('x')",
        "v.startswith('x')",
        "v.lower() == 'x'",
        "v == w",
        "v is None",
        "v",
        "v > 3",
        "v + w == 'xy'",
    ],
)
def test_condition_decides_alike(condition: str, language: str) -> None:
    """A null is a missing value in Flujo, which is a loss of its own."""
    conversion = asl.convert(workflow(condition), language)
    codes = {each.code for each in conversion.losses}
    if codes & LOSSES:
        return
    answers = [*({"v": each, "w": "y"} for each in VALUES), {"w": "y"}]
    for answer in answers:
        if answer.get("v", None) is None and "FL-NULL" in codes:
            continue
        given = branch(workflow(condition), "codemie", answer)
        text = conversion.text if language == "flujo" else conversion.document
        assert branch(text, language, answer) == given, answer


def test_condition_of_a_chain_makes_each_test_once() -> None:
    """The tests of the object that all parts of a condition read stand in front."""
    conversion = asl.convert(workflow("a == 'x' and (n > 3 or n < 1)"), "contenox")
    template = conversion.document["tasks"][1]["prompt_template"]
    assert template == (
        '{{if and (kindIs "map" .one) (eq .one.a "x") (kindIs "float64" .one.n) '
        "(or (gt .one.n 3.0) (lt .one.n 1.0))}}two{{else}}three{{end}}"
    )


@pytest.mark.parametrize("language", ["amazon", "contenox", "codemie"])
@pytest.mark.parametrize(
    "rule",
    [
        "context.f",
        "not context.f",
        "'x' in context.f",
        "'x' not in context.f",
        "context.f.startswith('x')",
        "context.f == context.g",
        "1 < context.f <= 4",
        "context.f.get('x') == 1",
        "output.last_output.f == 'x'",
    ],
)
def test_rule_of_a_machine_decides_alike(rule: str, language: str) -> None:
    """A rule whose condition fails does not match; the answer is merged into the context."""
    ends = ("yes", "no")
    step = {"name": "w", "uses": "d:s", "updates_context": True}
    machine = {
        "kind": "StateMachine",
        "name": "m",
        "start_state": "s",
        "end_states": ["end"],
        "states": {
            "s": [step],
            **{name: [{"name": f"at_{name}", "uses": f"d:{name}"}] for name in ends},
        },
        "transitions": [
            {"from": "s", "on": "success", "to": "yes", "when": rule},
            {"from": "s", "on": "success", "to": "no"},
            *({"from": name, "on": "success", "to": "end"} for name in ends),
        ],
    }
    document = {"steps": [machine]}
    conversion = asl.convert(document, language)
    assert not {"L-TRANSFORM", *LOSSES} & {each.code for each in conversion.losses}
    for value in VALUES:
        given, made = (called(each, value) for each in (document, conversion.document))
        assert given == made, value


def called(document: Any, value: Any) -> list[str]:
    """Return which agents are called where the first answers with a value."""
    calls: list[str] = []

    def agent(name: str) -> Any:
        def answer(*_: Any) -> Any:
            calls.append(name)
            return {"f": value}

        return answer

    names = ("s", "yes", "no")
    prefix = ARN.removesuffix("a")
    agents = {f"{mark}{name}": agent(name) for name in names for mark in ("", "d:", "d_")}
    result = asl.run(
        document,
        {"input": "", "context": {}},
        agents={**agents, "s:success": lambda request: request["input"]},
        resources={f"{prefix}d-{name}": agent(name) for name in names},
        clock="virtual",
    )
    assert result.status == "SUCCEEDED", result.cause
    return calls
