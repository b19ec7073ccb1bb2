"""Blueprints that are written: how documents look there, what is lost, and how they run."""

import json
from typing import Any

import pytest

import asl
from asl.dialects.flujo.writing.conditions import ConditionPrinter, Unprintable
from asl.dialects.flujo.writing.places import CONTEXT, resolve
from asl.dialects.terms import INPUT, DataPath
from asl.dialects.terms.jsonpath import read_rule
from tests.dialects.test_convert import REFUND

Json = Any


ROUND: Json = {"StartAt": "R", "States": {"R": {"Type": "Task", "Agent": "A", "Next": "R"}}}
"""A branch that leads back to its beginning."""


def written(states: Json, **more: Json) -> asl.Conversion:
    return asl.convert({"StartAt": next(iter(states)), "States": states, **more}, "flujo")


def machine_of(conversion: asl.Conversion) -> Json:
    return conversion.document["steps"][0]


def lost(conversion: asl.Conversion) -> set[str]:
    return {each.code for each in conversion.losses}


TASK = {"Type": "Task", "Agent": "A", "ResultPath": "$.a"}


def crossing(task: Json, **more: Json) -> Json:
    """Return states whose ways cross: a Task that is caught, and a Pass."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "P"}]
    end = {"Type": "Pass", "Result": 1, "ResultPath": "$.p", **more, "End": True}
    return {"T": {**task, "Catch": catch, "Next": "P"}, "P": end}


FAILS = {"B": {"Type": "Fail", "Error": "No"}}


def test_a_line_is_a_list_of_steps() -> None:
    """Each step is given what the one before came to."""
    task = {
        "Type": "Task",
        "Agent": "A",
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0}],
    }
    made = written({"A": {**task, "Next": "B"}, "B": {"Type": "Task", "Agent": "x:y", "End": True}})
    assert made.document["steps"] == [
        {"name": "A", "uses": "agents.A", "config": {"max_retries": 3}},
        {"name": "B", "uses": "x:y", "config": {"max_retries": 0}},
    ]
    assert lost(made) == {"FL-OUTPUT", "L-ACTOR"}
    agents = {"A": lambda given: given["input"] + "a", "x:y": lambda given: given["input"] + "y"}
    assert asl.run(made.text, "x", agents=agents).output["output"] == "xay"


def test_a_document_with_people_runs_as_it_did() -> None:
    """Rules on the decision stand in a state of their own, behind the question."""
    made = asl.convert(REFUND, "flujo")
    agents = {
        "Classifier": lambda given: {"intent": "refund", "amount": 200},
        "Refunds": lambda given: {"refunded": True},
        "Replier": lambda given: {"replied": True},
    }
    given = {"context": {"message": "money back"}}
    for said, field in (("approve", "refunded"), ("reject", "replied")):
        result = asl.run(made.text, given, agents=agents, approvals=lambda request, said=said: said)
        assert result.ok
        assert result.output["context"][field] is True


def test_a_failure_fails_the_run() -> None:
    """The step of a Fail state fails with its Error and Cause; nothing follows it."""
    rule = {"Variable": "$.a", "StringEquals": "yes", "Next": "C"}
    states = {
        "A": {**TASK, "Next": "D"},
        "D": {"Type": "Choice", "Choices": [rule], "Default": "B"},
        "C": {"Type": "Task", "Agent": "C", "End": True},
        "B": {"Type": "Fail", "Error": "No", "Cause": "not so"},
    }
    made = written(states)
    runs = [
        asl.run(made.text, {}, agents={"A": lambda given, said=said: said, "C": lambda given: 1})
        for said in ("yes", "no")
    ]
    assert [each.status for each in runs] == ["SUCCEEDED", "FAILED"]
    assert runs[1].cause == "No branch found for No: not so"


def test_a_state_machine_fails_in_its_fail_states() -> None:
    """It goes on to a state that does not exist, which has the name of the failure."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "B"}]
    end = {"Type": "Succeed"}
    states = {"A": {**TASK, "Catch": catch, "Next": "C"}, "C": end, **FAILS}
    made = written(states)
    assert machine_of(made)["end_states"] == ["C"]

    def fail(given: Json) -> Json:
        raise asl.StateError("Bad")

    runs = [asl.run(made.text, {}, agents={"A": agent}) for agent in (fail, lambda given: 1)]
    assert [each.status for each in runs] == ["FAILED", "SUCCEEDED"]
    assert runs[0].cause == "Unknown state: No"
    assert not [each for each in asl.check(asl.load(made.text)) if each.code.startswith("FL-NO")]


def test_a_linear_document_comes_home_as_it_was() -> None:
    states = {"A": {**TASK, "Parameters": {"input": "x"}, "Next": "B"}, "B": {"Type": "Succeed"}}
    there = written(states)
    assert [each["name"] for each in there.document["steps"]] == ["A"]
    home = asl.convert(there.text, "amazon")
    assert "Catch" not in home.document["States"]["A"]
    assert [each["name"] for each in asl.convert(home.text, "flujo").document["steps"]] == ["A"]


def test_catchers_are_rules() -> None:
    """On a name by the message, on all errors without a condition; then that of all states."""
    catch = [
        {"ErrorEquals": ["Bad", "Worse"], "Next": "B"},
        {"ErrorEquals": ["States.ALL"], "Next": "C"},
    ]
    made = written({"A": {**TASK, "Catch": catch, "Next": "C"}, "C": {"Type": "Succeed"}, **FAILS})
    when = "'Bad' in output.last_step.feedback or 'Worse' in output.last_step.feedback"
    assert machine_of(made)["transitions"] == [
        {"from": "A", "on": "failure", "to": "B", "when": when},
        {"from": "A", "on": "failure", "to": "C"},
        {"from": "A", "on": "success", "to": "C"},
        {"from": "*", "on": "failure", "to": "failed"},
    ]
    assert "FL-ERROR" in lost(made)


def test_forks_have_lines_in_them() -> None:
    """A Parallel gives a list, a Map takes one from the context."""
    branch = {"StartAt": "P", "States": {"P": {"Type": "Task", "Agent": "A", "End": True}}}
    inner = {"StartAt": "I", "States": {"I": {"Type": "Task", "Agent": "A", "End": True}}}
    states = {
        "F": {"Type": "Parallel", "Branches": [branch], "ResultPath": "$.f", "Next": "M"},
        "M": {
            "Type": "Map",
            "ItemsPath": "$.list",
            "MaxConcurrency": 1,
            "ItemProcessor": inner,
            "ResultPath": "$.m",
            "End": True,
        },
    }
    made = written(states)
    assert "FL-ABORT" not in lost(made)  # there is no other branch
    assert "FL-PARTIAL" not in lost(made)
    result = asl.run(made.text, {"context": {"list": [1, 2]}}, agents={"A": lambda given: "a"})
    assert result.output["context"]["f"] == ["a"]
    assert result.output["context"]["m"] == ["a", "a"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({"W": {"Type": "Wait", "Seconds": 1, "Next": "S"}, "S": {"Type": "Succeed"}}, "FL-WAIT"),
        ({"P": {"Type": "Parallel", "Branches": [ROUND], "End": True}}, "FL-NESTED"),
        ({"T": {**TASK, "Parameters": {"x": 1, "y.$": "$.y"}, "End": True}}, "FL-PAYLOAD"),
        ({"T": {**TASK, "Parameters": {"x.$": "States.UUID()"}, "End": True}}, "FL-INTRINSIC"),
        ({"T": {**TASK, "Retry": [{"ErrorEquals": ["X"]}], "End": True}}, "FL-RETRY"),
        ({"T": {**TASK, "Cache": {"Enabled": True}, "End": True}}, "FL-META"),
        ({"T": {**TASK, "Agent": "a b", "End": True}}, "L-NAME"),
        ({"C": {"Type": "Checkpoint", "Name": "saved", "End": True}}, "FL-CHECKPOINT"),
        ({"A": {"Type": "Approval", "Prompt": "?", "Timeout": "1h", "End": True}}, "FL-APPROVAL"),
        (
            {"P": {"Type": "Pass", "Parameters": {"x.$": "$.y"}, "End": True}},
            "FL-PATHS",
        ),
        (crossing({**TASK, "ResultPath": "$.next_state"}), "FL-RESERVED"),
        (crossing({**TASK, "Parameters": {"x.$": "$.current_state"}}), "FL-RESERVED"),
        (crossing(TASK, Result={"next_state": 1}), "FL-RESERVED"),
    ],
)
def test_what_is_lost_is_told(states: Json, code: str) -> None:
    """With a place in the document that was written."""
    made = written(states)
    assert code in lost(made)
    assert asl.check(asl.load(made.text)).ok


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (r"States.Format('a \{ {} b', $.x)", "a { X b"),
        (r"States.Format('\{\{ n \}\} {}', $.x)", "{{ n }} X"),
        (r"States.Format('{} \{\{ n', $.x)", "X {{ n"),
        (r"States.Format('\\\{\{ n \}\} {}', $.x)", "\\{{ n }} X"),
        (r"States.Format('\{{}\}', $.x)", None),
        (r"States.Format('\\{}', $.x)", None),
        (r"States.Format('\{\{ n {}', $.x)", None),
    ],
)
def test_braces_in_a_text_stay_as_they_are(text: str, given: str | None) -> None:
    """Where they would begin a value, the report says so; alone, and beside another parameter."""
    for more in ({}, {"y": 1}):
        made = written({"T": {**TASK, "Parameters": {"task.$": text, **more}, "End": True}})
        asked: list[Json] = []
        asl.run(made.text, {"context": {"x": "X"}}, agents={"A": asked.append})
        assert ("FL-INTRINSIC" in lost(made)) is (given is None)
        if given is not None:
            told = asked[0]["input"]
            assert (json.loads(told)["task"] if more else told) == given


@pytest.mark.parametrize(
    ("selector", "tasks", "given"),
    [
        (None, [{"task.$": "$.id"}], ["1", "2"]),
        (None, [{"task.$": "$$.Map.Item.Value.id"}], ["1", "2"]),
        (None, [{"task.$": "$.id"}, {"task.$": "$.x"}], ["1", "a1", "2", "a3"]),
        ({"item.$": "$$.Map.Item.Value"}, [{"task.$": "$.item.id"}], ["1", "2"]),
        (
            {"item.$": "$$.Map.Item.Value", "who.$": "$.user.name"},
            [{"task.$": "States.Format('{} for {}', $.item.id, $.who)"}],
            ["1 for Ann", "2 for Ann"],
        ),
    ],
)
def test_a_worker_reads_its_item(selector: Json, tasks: list[Json], given: list[str]) -> None:
    """What a step of a line came to is what the next one is given, the item first."""
    states: Json = {
        f"S{index}": {"Type": "Task", "Agent": "A", "Parameters": each, "Next": f"S{index + 1}"}
        for index, each in enumerate(tasks)
    }
    last = states[f"S{len(tasks) - 1}"]
    del last["Next"]
    mapped = {"Type": "Map", "ItemsPath": "$.list", "MaxConcurrency": 1, "ResultPath": "$.m"}
    mapped |= {} if selector is None else {"ItemSelector": selector}
    processor = {"StartAt": "S0", "States": {**states, f"S{len(tasks) - 1}": {**last, "End": True}}}
    made = written({"M": {**mapped, "ItemProcessor": processor, "End": True}})
    asked: list[Json] = []

    def agent(payload: Json) -> Json:
        asked.append(payload["input"])
        return {"x": f"a{len(asked)}"}

    data = {"list": [{"id": "1"}, {"id": "2"}], "user": {"name": "Ann"}}
    asl.run(made.text, {"context": data}, agents={"A": agent})
    assert asked == given


def test_a_branch_reads_what_is_selected_for_it() -> None:
    task = {"Type": "Task", "Agent": "A", "Parameters": {"task.$": "$.who"}, "End": True}
    branch = {"StartAt": "T", "States": {"T": task}}
    fork = {"Type": "Parallel", "Parameters": {"who.$": "$.user.name"}, "Branches": [branch]}
    made = written({"P": {**fork, "ResultPath": "$.r", "End": True}})
    asked: list[Json] = []
    asl.run(made.text, {"context": {"user": {"name": "Ann"}}}, agents={"A": asked.append})
    assert [each["input"] for each in asked] == ["Ann"]


def test_an_item_is_read_behind_the_first_step() -> None:
    """And a list in it, too, is read as it is; only a Map within takes its items elsewhere."""
    first = {"Type": "Task", "Agent": "A", "ResultPath": "$.r", "Next": "V"}
    last = {"Type": "Task", "Agent": "A", "Parameters": {"task.$": "$.id"}, "End": True}
    mapped = {"Type": "Map", "ItemsPath": "$.list", "MaxConcurrency": 1, "End": True}
    processor = {"StartAt": "W", "States": {"W": first, "V": last}}
    made = written({"M": {**mapped, "ItemProcessor": processor}})
    asked: list[Json] = []
    asl.run(made.text, {"context": {"list": [{"id": "1"}]}}, agents={"A": asked.append})
    assert [each["input"] for each in asked] == [{"id": "1"}, "1"]
    inner = {"StartAt": "W", "States": {"W": {**TASK, "End": True}}}
    nested = {"StartAt": "N", "States": {"N": {**mapped, "ItemProcessor": inner}}}
    assert "FL-MAP" in lost(written({"M": {**mapped, "ItemProcessor": nested}}))


def test_result_path_within_a_field_is_kept() -> None:
    """Several values below one field stand side by side."""
    one, other = ({**TASK, "Agent": each, "ResultPath": f"$.a.{each}"} for each in ("x", "y"))
    made = written({"X": {**one, "Next": "Y"}, "Y": {**other, "End": True}})
    agents = {"x": lambda given: 1, "y": lambda given: 2}
    assert asl.run(made.text, {"context": {}}, agents=agents).output["context"]["a"] == {
        "x": 1,
        "y": 2,
    }


def said(rule: Json) -> tuple[str, set[str]]:
    codes: set[str] = set()
    printer = ConditionPrinter(lambda code, message: codes.add(code))
    try:
        text = printer.print(resolve(read_rule(rule), {INPUT: DataPath(CONTEXT)}))
    except Unprintable:
        return "", codes
    return text, codes


@pytest.mark.parametrize(
    ("rule", "text", "codes"),
    [
        ({"Variable": "$.x", "StringEquals": "a"}, "context.x == 'a'", set()),
        ({"Variable": "$.x", "StringEquals": "7"}, "context.x == '7'", {"FL-COERCE"}),
        ({"Variable": "$.x.y", "NumericGreaterThanEquals": 2}, "context.x.y >= 2", {"FL-COERCE"}),
        (
            {"Variable": "$.x", "NumericLessThan": -1},
            "context.x < -1",
            {"FL-COERCE", "FL-NEGATIVE"},
        ),
        ({"Variable": "$.x", "BooleanEquals": True}, "context.x == True", {"FL-COERCE"}),
        ({"Variable": "$.x", "IsNull": True}, "context.x == None", {"FL-NULL"}),
        ({"Variable": "$.x", "IsPresent": True}, "context.x != None", {"FL-NULL"}),
        ({"Variable": "$.x", "StringMatches": "a*"}, "context.x.startswith('a')", set()),
        ({"Variable": "$.x", "StringMatches": "*a"}, "context.x.endswith('a')", set()),
        ({"Variable": "$.x", "StringMatches": "**a"}, "context.x.endswith('a')", set()),
        ({"Variable": "$.x", "StringMatches": "a\\**"}, "context.x.startswith('a*')", set()),
        (
            {"Not": {"Variable": "$.x", "StringMatches": "a*"}},
            "not context.x.startswith('a')",
            {"FL-COERCE"},
        ),
        ({"Variable": "$.x", "StringMatches": "*a*"}, "'a' in context.x", {"FL-COERCE"}),
        ({"Variable": "$.x", "StringMatches": "a*b"}, "", set()),
        ({"Variable": "$.x", "IsTimestamp": True}, "", set()),
        ({"Variable": "$.x[0]", "NumericEquals": 1}, "", set()),
        ({"Variable": "$.x", "StringEqualsPath": "$.y"}, "context.x == context.y", {"FL-COERCE"}),
        ({"Not": {"Variable": "$.x", "NumericEquals": 1}}, "not (context.x == 1)", {"FL-COERCE"}),
        (
            {
                "Or": [
                    {"Variable": "$.x", "NumericEquals": 1},
                    {"Variable": "$.y", "NumericEquals": 2},
                ]
            },
            "context.x == 1 or context.y == 2",
            {"FL-COERCE"},
        ),
        (
            {"Condition": "{% $states.input.x = 'a' and $not($states.input.n > 2) %}"},
            "context.x == 'a' and not (context.n > 2)",
            {"FL-COERCE"},
        ),
        ({"Condition": "{% $exists($states.input.x) %}"}, "context.x != None", {"FL-NULL"}),
        ({"Condition": "{% $count($states.input.x) > 1 %}"}, "", set()),
    ],
)
def test_rules_are_conditions(rule: Json, text: str, codes: set[str]) -> None:
    """What cannot be said never holds, and is a loss."""
    assert said(rule) == (text, codes)


def test_a_blueprint_that_was_changed_is_written_anew() -> None:
    """Its metadata is not trusted any more."""
    document = asl.load(b"steps:\n  - {name: a, uses: agents.a}\n", dialect="flujo").value
    document["States"]["a"]["TimeoutSeconds"] = 5
    assert "L-CHANGED" in lost(asl.convert(document, "flujo"))


def test_several_parameters_are_the_text_of_an_object() -> None:
    """Values keep their kinds; a text that is put together is one whatever its parts are."""
    parameters = {
        "n.$": "$.n",
        "most": 3,
        "said.$": "States.Format('say \\'{}\\'', $.kind)",
        "kind.$": "States.Format('{}', $.kind)",
        "note": 'so "it" is {{x}}',
    }
    made = written({"A": {**TASK, "Parameters": parameters, "End": True}})
    seen = []
    asl.run(
        made.text,
        {"context": {"n": {"deep": ["a"]}, "kind": "tea"}},
        agents={"A": lambda given: seen.append(given["input"])},
    )
    assert json.loads(seen[0]) == {
        "n": {"deep": ["a"]},
        "most": 3,
        "said": "say 'tea'",
        "kind": "tea",
        "note": 'so "it" is {{x}}',
    }


# Fallbacks


def caught(**handler: Json) -> Json:
    """Return a Task whose handler leads to a Task with another agent, and a Task after both."""
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "F", **handler}]
    work = {"Type": "Task", "Parameters": {"q.$": "$.q"}, "ResultPath": "$.r", "Next": "E"}
    end = {"Type": "Task", "Agent": "end", "Parameters": {"r.$": "$.r"}, "End": True}
    return {"T": {**work, "Agent": "first", "Catch": catch}, "F": {**work, "Agent": "other"}} | {
        "E": end
    }


def test_a_handler_with_another_agent_is_a_fallback() -> None:
    made = written(caught())
    first, last = made.document["steps"]
    other = {"name": "F", "uses": "agents.other", "config": {"max_retries": 0}}
    assert (first["name"], first["fallback"], last["name"]) == ("T", other, "E")
    assert "FL-ERROR" not in lost(made)

    def fail(given: Json) -> Json:
        raise asl.StateError("Broken", "no")

    agents = {"first": fail, "other": lambda given: given["input"] + "!"}
    agents["end"] = lambda given: given["input"] + "?"
    execution = asl.run(asl.load(made.text), {"context": {"q": "yes"}}, agents=agents)
    assert execution.output["output"] == "yes!?"


def test_a_fallback_may_have_handlers() -> None:
    """They are those of the step: it fails if its fallback fails."""
    states = caught()
    states["F"]["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "B"}]
    machine = machine_of(written(states | FAILS))
    assert machine["states"]["T"]["fallback"]["name"] == "F"
    assert {"from": "T", "on": "failure", "to": "B"} in machine["transitions"]


@pytest.mark.parametrize("handler", [{"ErrorEquals": ["A"]}, {"ResultPath": "$.error"}])
def test_other_handlers_are_rules(handler: Json) -> None:
    """A fallback runs after any error, and does not see it."""
    machine = machine_of(written(caught(**handler)))
    assert "fallback" not in machine["states"]["T"]


def test_a_fallback_that_others_lead_to_is_a_state() -> None:
    states = {"C": {"Type": "Choice", "Default": "T"}, **caught()}
    states["C"]["Choices"] = [{"Variable": "$.q", "StringEquals": "x", "Next": "F"}]
    assert "F" in machine_of(written(states))["states"]


@pytest.mark.parametrize("language", ["flujo", "codemie"])
def test_actor_of_an_integration_has_its_name(language: str) -> None:
    """The service and the action, without what all ARNs begin with."""
    task = {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem", "End": True}
    text = asl.convert({"StartAt": "A", "States": {"A": task}}, language).text
    assert "dynamodb_putItem" in text
    assert "arn_aws" not in text
