"""Small documents, one for each feature of each language: what the matrix is made of."""

from collections.abc import Mapping
from typing import Any

__all__ = ["FEATURES"]

Json = Any

# ------------------------------------------------------------------------------------------------
# The language itself, and Amazon's


def _machine(states: dict[str, Json], **more: Json) -> Json:
    for state in states.values():
        if not {"Next", "End", "Choices", "Error"} & state.keys() and state["Type"] != "Succeed":
            state["End"] = True
    return {"StartAt": next(iter(states)), "States": states, **more}


def _native(worker: dict[str, Json], checker: dict[str, Json]) -> dict[str, Json]:
    """Documents that both languages have, with either way to say who works."""
    work: dict[str, Json] = {"Type": "Task", **worker}
    check: dict[str, Json] = {"Type": "Task", **checker}
    inner = _machine({"X": {**work}})
    route = {"Type": "Choice", "Default": "Last"}
    last = {"Type": "Succeed"}
    catch = {"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "Sorry"}
    sorry = {"Type": "Pass", "Result": "sorry"}
    return {
        "one agent after another": _machine({"A": {**work, "Next": "B"}, "B": {**check}}),
        "an agent is told something": _machine({"A": {**work, "Parameters": {"task": "do it"}}}),
        "an agent is given a part of the data": _machine({"A": {**work, "InputPath": "$.kind"}}),
        "a text is put together": _machine(
            {"A": {**work, "Parameters": {"task.$": "States.Format('of {}', $.kind)"}}}
        ),
        "a result stands beside the data": _machine(
            {"A": {**work, "ResultPath": "$.a", "Next": "B"}, "B": {**check, "ResultPath": "$.b"}}
        ),
        "a result is used later": _machine(
            {
                "A": {**work, "ResultPath": "$.a", "Next": "B"},
                "B": {**check, "Next": "C"},
                "C": {**work, "Parameters": {"task": "again"}},
            }
        ),
        "a choice on a text": _machine(
            {
                "A": {**work, "ResultPath": "$.a", "Next": "R"},
                "R": {
                    **route,
                    "Choices": [{"Variable": "$.a", "StringEquals": "yes", "Next": "B"}],
                },
                "B": {**check},
                "Last": last,
            }
        ),
        "a choice on a number": _machine(
            {
                "A": {**work, "ResultPath": "$.a", "Next": "R"},
                "R": {
                    **route,
                    "Choices": [{"Variable": "$.a", "NumericGreaterThan": 5, "Next": "B"}],
                },
                "B": {**check},
                "Last": last,
            }
        ),
        "a loop": _machine(
            {
                "A": {**work, "ResultPath": "$.a", "Next": "R"},
                "R": {
                    "Type": "Choice",
                    "Choices": [{"Variable": "$.a", "StringEquals": "yes", "Next": "Last"}],
                    "Default": "A",
                },
                "Last": last,
            }
        ),
        "a retry": _machine(
            {
                "A": {
                    **work,
                    "Retry": [
                        {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}
                    ],
                }
            }
        ),
        "a failure is caught": _machine({"A": {**work, "Catch": [catch]}, "Sorry": sorry}),
        "failures are told apart": _machine(
            {
                "A": {**work, "Catch": [{**catch, "ErrorEquals": ["Agent.Odd"]}]},
                "Sorry": sorry,
            }
        ),
        "a time limit": _machine({"A": {**work, "TimeoutSeconds": 60}}),
        "a wait": _machine({"W": {"Type": "Wait", "Seconds": 5, "Next": "A"}, "A": {**work}}),
        "a failure on purpose": _machine(
            {"A": {**work, "Next": "F"}, "F": {"Type": "Fail", "Error": "Sad", "Cause": "so it is"}}
        ),
        "a constant": _machine(
            {"P": {"Type": "Pass", "Result": "tea", "Next": "A"}, "A": {**work}}
        ),
        "side by side": _machine(
            {"P": {"Type": "Parallel", "Branches": [inner, _machine({"Y": {**check}})]}}
        ),
        "for each item": _machine(
            {"M": {"Type": "Map", "ItemsPath": "$.list", "ItemProcessor": inner}}
        ),
        "queries": _machine(
            {
                "A": {
                    **work,
                    "Arguments": {"task": "{% 'of ' & $states.input.kind %}"},
                    "Output": "{% $merge([$states.input, {'a': $states.result}]) %}",
                    "Next": "R",
                },
                "R": {
                    **route,
                    "Choices": [{"Condition": "{% $states.input.a = 'yes' %}", "Next": "B"}],
                },
                "B": {**check},
                "Last": {"Type": "Succeed"},
            },
            QueryLanguage="JSONata",
        ),
    }


_ARN = "arn:aws:lambda:us-east-1:123456789012:function:"
_ASL = {
    **_native({"Agent": "worker"}, {"Agent": "checker"}),
    "people decide": _machine(
        {
            "P": {
                "Type": "Approval",
                "Prompt": "Go on?",
                "ResultPath": "$.p",
                "Choices": [{"Variable": "$.approval", "StringEquals": "approve", "Next": "A"}],
                "Default": "No",
            },
            "A": {"Type": "Task", "Agent": "worker"},
            "No": {"Type": "Fail", "Error": "Refused"},
        }
    ),
    "a checkpoint": _machine(
        {
            "C": {"Type": "Checkpoint", "Name": "c", "Next": "A"},
            "A": {"Type": "Task", "Agent": "worker"},
        }
    ),
    "a debate": _machine(
        {"D": {"Type": "Debate", "Topic": "tea", "Agents": ["worker", "checker"], "Rounds": 1}}
    ),
    "a budget": _machine(
        {"A": {"Type": "Task", "Agent": "worker", "Budget": {"MaxCost": "$1.00"}}}
    ),
}
_AMAZON = _native({"Resource": f"{_ARN}worker"}, {"Resource": f"{_ARN}checker"})

# ------------------------------------------------------------------------------------------------
# CodeMie


def _flow(*states: Json, **more: Json) -> Json:
    listed = [{"id": id, "system_prompt": "You help."} for id in ("worker", "checker")]
    used = str(states)
    return {
        "assistants": [each for each in listed if each["id"] in used],
        "states": [*states],
    } | more


def _state(id: str, to: Json, who: str = "worker", task: str = "do it", **more: Json) -> Json:
    to = {"state_id": to} if isinstance(to, str) else to
    return {"id": id, "assistant_id": who, "task": task, **more, "next": to}


_CODEMIE = {
    "one agent after another": _flow(_state("a", "b"), _state("b", "end", "checker")),
    "an agent is told something": _flow(_state("a", "end")),
    "a text is put together": _flow(_state("a", "end", task="of {{kind}}")),
    "a result stands beside the data": _flow(
        _state("a", {"state_id": "b", "output_key": "x"}),
        _state("b", {"state_id": "end", "output_key": "y"}, "checker"),
    ),
    "a result is used later": _flow(
        _state("a", {"state_id": "b", "output_key": "x"}),
        _state("b", "end", "checker", "of {{x}}"),
    ),
    "a choice on a text": _flow(
        _state("a", {"condition": {"expression": "kind == 'a'", "then": "b", "otherwise": "end"}}),
        _state("b", "end", "checker"),
    ),
    "a choice on a number": _flow(
        _state("a", {"condition": {"expression": "n > 5", "then": "b", "otherwise": "end"}}),
        _state("b", "end", "checker"),
    ),
    "a loop": _flow(
        _state("a", {"condition": {"expression": "kind == 'a'", "then": "end", "otherwise": "a"}})
    ),
    "a retry": _flow(_state("a", "end", retry_policy={"max_attempts": 3})),
    "side by side": _flow(
        _state("a", {"state_ids": ["b", "c"]}),
        _state("b", "d", "checker"),
        _state("c", "d"),
        _state("d", "end"),
    ),
    "for each item": _flow(
        _state("a", {"state_id": "b", "iter_key": "list"}),
        _state("b", "c", "checker", "of {{task}}"),
        _state("c", "end"),
    ),
    "people decide": _flow(_state("a", "b"), _state("b", "end", "checker", interrupt_before=True)),
    "a constant": _flow(
        {"id": "p", "custom_node_id": "p", "next": {"state_id": "a"}},
        _state("a", "end"),
        custom_nodes=[
            {
                "id": "p",
                "custom_node_id": "transform_node",
                "config": {"mappings": [{"output_field": "t", "type": "constant", "value": "tea"}]},
            }
        ],
    ),
}

# ------------------------------------------------------------------------------------------------
# Contenox


def _chain(*tasks: Json) -> Json:
    return {"id": "c", "tasks": [*tasks]}


def _to(*branches: Json, **more: Json) -> Json:
    listed = [
        {"operator": "default", "when": "", "goto": each}
        if isinstance(each, str)
        else dict(zip(("operator", "when", "goto"), each, strict=True))
        for each in branches
    ]
    return {"branches": listed, **more}


def _tool(id: str, to: Json, name: str = "worker", **more: Json) -> Json:
    to = _to(to) if isinstance(to, str) else to
    return {"id": id, "handler": "tools", "tools": {"name": name}, **more, "transition": to}


def _told(id: str, to: Json, **more: Json) -> Json:
    to = _to(to) if isinstance(to, str) else to
    return {"id": id, "handler": "prompt_to_string", **more, "transition": to}


_SORRY = {"id": "sorry", "handler": "noop", "prompt_template": "sorry", "transition": _to("end")}
_CONTENOX = {
    "one agent after another": _chain(_tool("a", "b"), _tool("b", "end", "checker")),
    "an agent is told something": _chain(
        {
            "id": "a",
            "handler": "tools",
            "tools": {"name": "worker", "args": {"task": "do it"}},
            "transition": _to("end"),
        }
    ),
    "a text is put together": _chain(_tool("a", "end", prompt_template="of {{.input}}")),
    "a result is used later": _chain(
        _tool("a", "b"), _tool("b", "c", "checker"), _tool("c", "end", input_var="a")
    ),
    "a choice on a text": _chain(
        _told("a", _to(("equals", "yes", "b"), "end"), prompt_template="well?"),
        _tool("b", "end", "checker"),
    ),
    "a choice on a number": _chain(
        _told("a", _to(("gt", "5", "b"), "end"), prompt_template="well?"),
        _tool("b", "end", "checker"),
    ),
    "a loop": _chain(_told("a", _to(("equals", "yes", "end"), "a"), prompt_template="well?")),
    "a retry": _chain(_tool("a", "end", retry_on_failure=2)),
    "a failure is caught": _chain(_tool("a", _to("end", on_failure="sorry")), _SORRY),
    "a time limit": _chain(_tool("a", "end", timeout="60s")),
    "a failure on purpose": _chain(
        _tool("a", "f"), {"id": "f", "handler": "raise_error", "prompt_template": "Sad: so it is"}
    ),
    "a constant": _chain(
        {"id": "p", "handler": "noop", "prompt_template": "tea", "transition": _to("a")},
        _tool("a", "end"),
    ),
}

# ------------------------------------------------------------------------------------------------
# Flujo


def _steps(*steps: Json) -> Json:
    return {"name": "main", "steps": [*steps]}


def _step(name: str, who: str = "worker", **more: Json) -> Json:
    return {"name": name, "uses": f"desk:{who}", **more}


def _states(states: dict[str, Json], *transitions: Json) -> Json:
    machine = {
        "kind": "StateMachine",
        "name": "main_machine",
        "start_state": next(iter(states)),
        "end_states": ["done"],
        "states": {name: {"steps": [each]} for name, each in states.items()},
        "transitions": [*transitions],
    }
    return {"name": "main", "steps": [machine]}


def _rule(before: str, to: str, when: str | None = None, on: str = "success") -> Json:
    found = {"from": before, "on": on, "to": to}
    return found if when is None else {**found, "when": when}


_FLUJO = {
    "one agent after another": _steps(_step("a"), _step("b", "checker")),
    "an agent is told something": _steps(_step("a", input="do it")),
    "a text is put together": _steps(_step("a", input="of {{ context.kind }}")),
    "a result stands beside the data": _steps(
        _step("a", sink_to="x"), _step("b", "checker", sink_to="y")
    ),
    "a result is used later": _steps(
        _step("a"), _step("b", "checker"), _step("c", input="{{ steps.a.output }}")
    ),
    "a choice on a text": _states(
        {"a": _step("w"), "b": _step("v", "checker")},
        _rule("a", "b", "output.last_output == 'yes'"),
        _rule("a", "done"),
        _rule("b", "done"),
    ),
    "a choice on a number": _states(
        {"a": _step("w"), "b": _step("v", "checker")},
        _rule("a", "b", "output.last_output > 5"),
        _rule("a", "done"),
        _rule("b", "done"),
    ),
    "a loop": _states(
        {"a": _step("w")}, _rule("a", "done", "output.last_output == 'yes'"), _rule("a", "a")
    ),
    "rounds are counted": _steps(
        {
            "kind": "loop",
            "name": "l",
            "loop": {
                "body": [_step("a")],
                "max_loops": 2,
                "exit_expression": "previous_step == 'yes'",
            },
        }
    ),
    "side by side": _steps(
        {
            "kind": "parallel",
            "name": "p",
            "branches": {"one": [_step("a")], "two": [_step("b", "checker")]},
        }
    ),
    "for each item": _steps(
        {"kind": "map", "name": "m", "map": {"iterable_input": "list", "body": [_step("a")]}}
    ),
    "a constant": _steps(
        {
            "name": "p",
            "agent": {"id": "flujo.builtins.context_set"},
            "input": {"path": "t", "value": "tea"},
        },
        _step("a"),
    ),
    "a retry": _steps(_step("a", config={"max_retries": 2})),
    "a failure is caught": _states(
        {"a": _step("w"), "sorry": _step("v", "checker")},
        _rule("a", "done"),
        _rule("a", "sorry", on="failure"),
        _rule("sorry", "done"),
    ),
    "people decide": _steps({"kind": "hitl", "name": "ask", "message": "Go on?"}, _step("a")),
}

FEATURES: Mapping[str, Mapping[str, Json]] = {
    "asl": _ASL,
    "amazon": _AMAZON,
    "codemie": _CODEMIE,
    "contenox": _CONTENOX,
    "flujo": _FLUJO,
}
"""The documents of each language, by feature."""
