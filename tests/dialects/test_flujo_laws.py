"""Laws of the Flujo dialect, on conditions, templates and machines that nobody has written."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import asl
from asl.core.document import Document
from asl.core.errors import ExpressionFault, StateError
from asl.core.source import Source
from asl.dialects.flujo.functions.conditions import (
    MODES,
    FlujoConditionError,
    FlujoNames,
    compile_expression,
)
from asl.dialects.flujo.functions.templates import MAX_LENGTH, TemplateScope, parse, render
from asl.dialects.flujo.machine.conditions import ConditionNames, print_condition
from asl.dialects.flujo.reader import read
from asl.dialects.flujo.round_trip import restored
from asl.dialects.flujo.writing.conditions import ConditionPrinter, Unprintable
from asl.dialects.flujo.writing.places import CONTEXT, resolve
from asl.dialects.terms import INPUT, DataPath
from asl.dialects.terms.jsonpath import read_rule
from tests.dialects.choosing import BOOLEAN, NUMERIC, OPERANDS, decided, rules, values
from tests.dialects.spoilt import read_or_refused, spoilt
from tests.examples import examples

SCALARS = st.sampled_from([None, True, False, 0, 1, 7, -2, 2.5, "", "a", "7", "no", "yes"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(st.data())
@settings(deadline=None, max_examples=examples(100))
def test_a_rule_as_a_condition_without_loss_decides_like_the_original(data: st.DataObject) -> None:
    """For values of all types."""
    rule = data.draw(rules(OPERANDS | NUMERIC | BOOLEAN))
    a, b, d = (data.draw(values([1, 0, 2.5, True, False, "1", "2.5"])) for _ in range(3))
    losses: list[str] = []
    printer = ConditionPrinter(lambda code, message: losses.append(code))
    try:
        said = printer.print(resolve(read_rule(rule), {INPUT: DataPath(CONTEXT)}))
    except Unprintable:
        assume(False)
    assume(not losses)
    names = {"r": {"a": a, "b": b, "c": {"d": d}}}
    try:
        found = bool(compile_expression(said).value(FlujoNames(None, names, {})))
    except FlujoConditionError:
        found = False
    assert found == decided(rule, names), said


WORDS = st.sampled_from(
    [
        *(
            "context",
            "output",
            "steps",
            "previous_step",
            ".a",
            ".b",
            "['a']",
            "[0]",
            "(",
            ")",
            "[",
            "]",
        ),
        *("and", "or", "not", "in", "is", "==", "!=", "<", ">=", "'a'", "'7'", "7", "-1", "None"),
        *(
            "True",
            ".get('a')",
            ".lower()",
            ".strip(1)",
            "len(",
            "+",
            ",",
            "lambda: 1",
            "é",
            "\\",
            "x",
        ),
    ]
)


@given(st.lists(WORDS, max_size=12).map(" ".join), VALUES, st.sampled_from(MODES))
@settings(deadline=None, max_examples=examples(100))
def test_a_condition_has_a_value_or_fails(text: str, value: Any, mode: str) -> None:
    """Or it is none; nothing else happens, whatever there is to be compared."""
    try:
        found = compile_expression(text, mode)
    except ExpressionFault as fault:
        assert fault.code == "FL-EXPRESSION"
        assert 0 <= fault.offset <= len(text)
        return
    assert all(0 <= offset <= len(text) and reason for offset, reason, _ in found.doomed)
    try:
        found.value(FlujoNames(value, {"a": value}, {"a": value, "b": 1}))
    except FlujoConditionError as failure:
        assert str(failure)


@pytest.mark.parametrize(
    "text", ["(" * 300, "not " * 300 + "a", "context" + ".a" * 300, "a" * 5000]
)
def test_a_condition_that_is_too_deep_is_refused(text: str) -> None:
    """Before the stack ends."""
    with pytest.raises(ExpressionFault):
        compile_expression(text)


PLAIN = st.recursive(
    st.sampled_from(
        [
            *("context.a == 'a'", "'a' != context.b", "context.c != 'a'", "context.a == '7'"),
            *("context.a == None", "context.c == None", "context.b != None", "context.c"),
            *("context.a == True", "context.b != False", "context.a", "context.b", "steps.x"),
            *("context.a in ['a', 'no']", "context.b not in ['a']", "context.c in ['a']"),
            *("output.event == 'success'", "output.last_step.success == True", "output.event"),
            *("output.last_output == 'yes'", "output.last_step.name == 'one'", "true"),
            *("previous_step.last_output in ['a', 'no']", "steps.one != 'a'", "output.nothing"),
            *("output.last_output", "output.last_output == None", "resume_input == None"),
            *("output.last_step.feedback == None", "output.last_output == True"),
        ]
    ),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda each: f"({' '.join(each)})"
        )
        | inner.map(lambda each: f"not ({each})")
    ),
    max_leaves=4,
)


@given(PLAIN, VALUES, VALUES)
@settings(deadline=None, max_examples=examples(50))
def test_condition_in_jsonata_decides_like_the_function(text: str, output: Any, held: Any) -> None:
    """For values of all types, and missing ones."""
    rule = {"from": "s", "on": "success", "to": "yes", "when": text}
    document = _ruled(rule)
    assert "$flujo_when" not in str(document.value["States"])
    other = _ruled({**rule, "when": f"1 < 2 and ({text})"})
    assert "$flujo_when" in str(other.value["States"])
    assert _end(document, output, held) == _end(other, output, held)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("context.a == 'a'", "$states.input.context.a = 'a'"),
        ("context.a != 'a'", "$not($states.input.context.a = 'a')"),
        ("context.a == '7'", "$states.input.context.a in ['7', 7]"),
        ("context.a == True", "$states.input.context.a in [true, 1]"),
        ("not context.a == 'a' and true", "$not($states.input.context.a = 'a')"),
        ("context.a > 5", None),
        ("context.a == 7", None),
        ("context.a.b == 'a'", None),
        ("context.a.lower() == 'a'", None),
        ("'a' in context.a", None),
        ("context.step == None", None),
        ("context.step == 'a'", "$states.input.context.step = 'a'"),
    ],
)
def test_condition_is_jsonata_where_jsonata_means_the_same(text: str, printed: str | None) -> None:
    assert print_condition(text, ConditionNames(steps={"step"})) == printed


def _ruled(rule: dict[str, Any]) -> Document:
    rules = [rule, {"from": "s", "on": "success", "to": "no"}]
    step = {"name": "one", "uses": "d:one", "config": {"max_retries": 0}}
    return _document(_machine({"s": [step]}, rules, ["yes", "no"]))


def _end(document: Document, output: Any, held: Any) -> list[str]:
    given = {"input": None, "context": {"a": held, "b": held}}
    result = asl.run(document, given, agents={"d:one": lambda _: output})
    assert result.ok, result.cause
    return [each for each in result.visited if each in ("yes", "no")]


def _machine(states: Any, rules: Any, ends: list[str]) -> dict[str, Any]:
    machine = {
        "kind": "StateMachine",
        "name": "m",
        "start_state": next(iter(states)),
        "end_states": ends,
        "states": states,
        "transitions": rules,
    }
    return {"steps": [machine]}


def _document(blueprint: Any) -> Document:
    return read(Document(blueprint, Source()))


# --------------------------------------------------------------------------------------------
# Machines, held against the rules as they are told


NAMES = ("s0", "s1", "s2")
TARGETS = st.sampled_from([*NAMES, "end"])
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "from": st.sampled_from([*NAMES, "*"]),
            "on": st.sampled_from(["success", "failure"]),
            "to": TARGETS,
        },
        optional={
            "when": st.sampled_from(
                [
                    "output.last_output == 'yes'",
                    "output.last_output > 1",
                    "output.last_output + 1 == 2",
                    "context.n == None",
                    "'no' in output.last_step.feedback",
                ]
            )
        },
    ),
    max_size=6,
)
OUTCOMES = st.lists(
    st.sampled_from(["yes", "no", 1, 2, None, "!no", "!other", {"next_state": "s1"}]),
    min_size=1,
    max_size=8,
)


def _told(rules: list[dict[str, Any]], outcomes: list[Any]) -> list[str]:
    """The states of a machine in the order in which it enters them."""
    found, state, hops = [], "s0", 0
    while state != "end" and hops < 30:
        found.append(state)
        said = outcomes[min(hops, len(outcomes) - 1)]
        hops += 1
        failed = isinstance(said, str) and said.startswith("!")
        following = None
        for rule in rules:
            if rule["on"] != ("failure" if failed else "success"):
                continue
            if rule["from"] in ("*", state) and _holds(rule.get("when"), said, failed):
                following = rule["to"]
                break
        if following is None and isinstance(said, dict):
            following = said["next_state"]
        if following is None:
            return found
        state = following
    return [*found, state] if state == "end" else found


def _holds(when: str | None, said: Any, failed: bool) -> bool:
    if when is None or when == "context.n == None":
        return True
    if when == "'no' in output.last_step.feedback":
        return failed and "no" in said
    if failed:
        return False
    if when == "output.last_output > 1":
        return isinstance(said, int) and said > 1
    return when == "output.last_output == 'yes'" and said == "yes"


@given(RULES, OUTCOMES)
@settings(deadline=None, max_examples=examples(35))
def test_a_machine_goes_where_its_rules_say(
    rules: list[dict[str, Any]], outcomes: list[Any]
) -> None:
    """By a few lines that follow the reference, and as the history tells it."""
    states = {
        name: [{"name": f"a{name}", "uses": "d:one", "config": {"max_retries": 0}}]
        for name in NAMES
    }
    count = 0

    def one(parameters: Any) -> Any:
        nonlocal count
        said = outcomes[min(count, len(outcomes) - 1)]
        count += 1
        if isinstance(said, str) and said.startswith("!"):
            raise asl.StateError("Tool.Failed", said)
        return said

    result = asl.run(_document(_machine(states, rules, ["end"])), "x", agents={"d:one": one})
    assert result.ok, result.cause
    told = [
        event.details["state"]
        for event in result.events
        if event.type in ("HopStarted", "TerminalReached")
    ]
    assert told == _told(rules, outcomes)


# --------------------------------------------------------------------------------------------
# Templates


PARTS = st.sampled_from(
    [
        *("{{", "}}", "\\{{", "{{#if context.a}}", "{{/if}}", "{{#each context.a}}", "{{/each}}"),
        *("context.a", "this", "steps.b.output", "previous_step", " or ", "'x'", " | ", "upper"),
        *("join(',')", "default('d')", "nope", "{{ context.a }}", "{{ this }}", "é", "\n", "["),
    ]
)


@given(st.lists(PARTS, max_size=14).map("".join), VALUES)
@settings(deadline=None, max_examples=examples(85))
def test_a_template_is_filled_in_or_given_up(text: str, value: Any) -> None:
    """Whatever it holds, and whatever there is to be filled in."""
    scope = TemplateScope({"a": value}, value, {"b": value})
    try:
        parse(text)
    except ExpressionFault as fault:
        assert fault.code == "FL-TEMPLATE"
        assert 0 <= fault.offset <= len(text)
        assert render(text, scope) is None
        return
    found = render(text, scope)
    assert found is not None
    assert len(found) <= MAX_LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "{{ context.a | join(" + " " * 50_000 + "! }}",
        "{{ context.a | join" + " " * 50_000 + "! }}",
        "{{ context.a" + " " * 50_000 + "! }}",
        "{{ context.a }}" + "{{" * 50_000,
    ],
)
def test_a_long_template_is_read_in_bearable_time(text: str) -> None:
    """It would take hours, where blanks or braces were looked through again and again."""
    assert render(text, TemplateScope({}, None, {})) in (None, "{{" * 50_000)


def test_a_template_that_grows_is_stopped() -> None:
    """Rounds within rounds do not go on for ever."""
    text = "{{#each context.a}}" * 3 + "x" + "{{/each}}" * 3
    with pytest.raises(StateError) as stopped:
        render(text, TemplateScope({"a": list(range(2000))}, None, {}))
    assert stopped.value.name == "States.Runtime"


# --------------------------------------------------------------------------------------------
# Blueprints


BLUEPRINT: dict[str, Any] = {
    "name": "all",
    "agents": {"w": {"model": "m", "system_prompt": "p", "output_schema": {}}},
    "imports": {"c": "c.yaml"},
    "steps": [
        {"name": "a", "uses": "agents.w", "config": {"max_retries": 2, "timeout": 5}},
        {"kind": "hitl", "name": "h", "message": "Go {{ context.x }}?", "sink_to": "h"},
        {
            "kind": "StateMachine",
            "name": "m",
            "start_state": "s",
            "end_states": ["done"],
            "states": {
                "s": [
                    {"kind": "hitl", "name": "q"},
                    {
                        "kind": "loop",
                        "name": "l",
                        "loop": {"body": [{"name": "b"}], "max_loops": 2},
                    },
                ],
                "t": {"steps": [{"name": "i", "uses": "imports.c", "fallback": {"name": "f"}}]},
            },
            "transitions": [
                {"from": "s", "on": "pause", "to": "t", "when": "context.x"},
                {"from": "*", "on": "success", "to": "done"},
            ],
        },
        {"kind": "parallel", "name": "p", "branches": {"x": [{"name": "px"}]}, "reduce": "values"},
        {"kind": "map", "name": "n", "map": {"iterable_input": "l", "body": [{"name": "nx"}]}},
        {
            "kind": "conditional",
            "name": "c",
            "condition_expression": "previous_step == 'x'",
            "branches": {"true": [{"name": "cx"}]},
            "default_branch": {"name": "cd"},
        },
    ],
}


@given(st.data(), VALUES)
@settings(deadline=None, max_examples=examples(65))
def test_a_spoilt_blueprint_is_read_or_refused(data: st.DataObject, value: Any) -> None:
    """Any value in any place: a document that is right, or findings with known codes."""
    read_or_refused(spoilt(data, BLUEPRINT, value), "FL-", read, restored)


@given(VALUES, VALUES)
@settings(deadline=None, max_examples=examples(15))
def test_metadata_that_is_made_up_does_no_harm(machines: Any, blueprint: Any) -> None:
    """A history is told without it."""
    document = {
        "QueryLanguage": "JSONata",
        "StartAt": "s",
        "States": {"s": {"Type": "Pass", "End": True}},
        "Metadata": {"Flujo": {"machines": {"m": machines}, "blueprint": blueprint}},
    }
    given = {"machine": {"name": "m", "state": "s"}, "output": {"event": "success"}, "context": {}}
    result = asl.run(document, given)
    assert [event.type for event in result.events][-1] == "ExecutionSucceeded"
