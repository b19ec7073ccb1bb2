"""A document and what it is converted to do the same, unless the report says otherwise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from tests.dialects.behaviour import adapted, observe, scripted, unreported

ANSWERS: list[Any] = ["yes", "no", "", "a b", 7, 0.5, True, None, {"kind": "a", "n": 7}, ["x"]]
ANSWERS += [{"kind": "b", "n": 2, "text": "two words"}, {"kind": 3}, {"n": "7"}]
INPUTS: list[Any] = [{}, {"kind": "a", "n": 7, "text": "hello {{.x}}"}, {"kind": "b"}, "text", 3]

NAMES = ("A", "B", "C", "D", "E")
PATHS = st.sampled_from(["$", "$.kind", "$.n", "$.a", "$.b", "$.a.kind", "$.b.n", "$.text"])
PLACES = st.sampled_from([None, "$", "$.a", "$.b", "$.a.b"])


@st.composite
def rules(draw: Any, depth: int = 0) -> dict[str, Any]:
    kinds = ["leaf"] * 4 + ([] if depth > 1 else ["And", "Or", "Not"])
    kind = draw(st.sampled_from(kinds))
    if kind == "Not":
        return {"Not": draw(rules(depth + 1))}
    if kind != "leaf":
        return {kind: draw(st.lists(rules(depth + 1), min_size=1, max_size=3))}
    operator, value = draw(
        st.sampled_from(
            [
                *(("StringEquals", each) for each in ("a", "yes", "a b", "")),
                *(("NumericEquals", each) for each in (7, 0.5)),
                ("NumericGreaterThan", 2),
                ("NumericLessThanEquals", 2),
                ("BooleanEquals", True),
                ("IsNull", True),
                ("IsPresent", True),
                ("IsString", True),
                ("StringMatches", "a*"),
                ("StringMatches", "*e*"),
                ("StringMatches", "y*s"),
                ("StringLessThan", "n"),
                ("StringEqualsPath", "$.kind"),
            ]
        )
    )
    return {"Variable": draw(PATHS), operator: value}


@st.composite
def states(draw: Any, name: str, later: list[str], every: list[str]) -> dict[str, Any]:
    kinds = ["Task"] * 4 + ["Choice"] * 2 + ["Pass"] * 2 + ["Wait", "Fail", "Succeed"]
    kind = draw(st.sampled_from(kinds if later else ["Task", "Pass", "Succeed"]))
    others = every if kind == "Task" else later  # whatever goes round asks an agent
    following = draw(st.sampled_from([None, *others]))
    state: dict[str, Any] = {"Type": kind}
    if kind == "Choice":
        listed = draw(st.lists(rules(), min_size=1, max_size=3))
        state["Choices"] = [{**each, "Next": draw(st.sampled_from(others))} for each in listed]
        if draw(st.booleans()):
            state["Default"] = draw(st.sampled_from(others))
        return state
    if kind == "Fail":
        return {
            "Type": "Fail",
            "Error": "Broken",
            "Cause": draw(st.sampled_from(["", "so {{x}} it is"])),
        }
    if kind == "Succeed":
        return state
    if following is None:
        state["End"] = True
    else:
        state["Next"] = following
    if kind == "Wait":
        state["Seconds"] = 5
        return state
    if draw(st.integers(0, 3)) == 0:
        state["InputPath"] = draw(PATHS)
    if draw(st.integers(0, 1)):
        state["Parameters"] = draw(
            st.sampled_from(
                [
                    {"task": "do it"},
                    {"task": "do it", "n": 3},
                    {"text.$": "$"},
                    {"text.$": "$.kind", "say": "hi"},
                    {"one.$": "$.a", "other.$": "$.b"},
                    {"text.$": "States.Format('{} and \\{{}\\}', $.kind, $.n)"},
                    {"t.$": "States.Format('{{ {}', $.a)"},
                ]
            )
        )
    if draw(st.integers(0, 1)):
        state["ResultPath"] = draw(PLACES)
    if draw(st.integers(0, 4)) == 0:
        state["OutputPath"] = draw(PATHS)
    if kind == "Pass":
        if draw(st.booleans()):
            state["Result"] = draw(st.sampled_from(["text", 5, {"kind": "a"}, ""]))
            state.pop("Parameters", None)
        return state
    state["Agent"] = f"agent {name}"
    if draw(st.integers(0, 3)) == 0:
        state["ResultSelector"] = draw(
            st.sampled_from([{"kind.$": "$.kind"}, {"x": 1, "n.$": "$"}])
        )
    if draw(st.integers(0, 2)) == 0:
        state["Retry"] = draw(
            st.lists(
                st.sampled_from(
                    [
                        {"ErrorEquals": ["Agent.Odd"]},
                        {"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 2},
                    ]
                ),
                min_size=1,
                max_size=2,
            )
        )
        if draw(st.booleans()):
            state["Retry"] += [
                {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3, "MaxAttempts": 1}
            ]
    if later and draw(st.integers(0, 2)) == 0:
        state["Catch"] = [
            {"ErrorEquals": each, "Next": draw(st.sampled_from(later))}
            | draw(st.sampled_from([{}, {"ResultPath": None}, {"ResultPath": "$.a"}]))
            for each in draw(
                st.sampled_from(
                    [[["States.ALL"]], [["Agent.Odd"]], [["Agent.Odd"], ["States.ALL"]]]
                )
            )
        ]
    return state


@st.composite
def documents(draw: Any) -> dict[str, Any]:
    count = draw(st.integers(1, 5))
    listed = list(NAMES[:count])
    made = {
        name: draw(states(name, listed[index + 1 :], listed)) for index, name in enumerate(listed)
    }
    reached: set[str] = set()
    todo = ["A"]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        state = made[name]
        ways = [state.get("Next"), state.get("Default")]
        ways += [each["Next"] for key in ("Choices", "Catch") for each in state.get(key, ())]
        todo += [each for each in ways if each]
    kept = {name: made[name] for name in listed if name in reached}
    return {"StartAt": "A", "States": kept}


@pytest.mark.parametrize("dialect", ["amazon", "codemie", "contenox", "flujo"])
@given(documents(), st.sampled_from(INPUTS), st.integers(0, 10))
@settings(deadline=None, max_examples=40)
def test_what_changes_is_reported(dialect: str, document: Any, input: Any, seed: int) -> None:
    """Native documents, in every other language."""
    if dialect == "codemie" and not isinstance(input, dict):
        input = {"text": input}  # any other input is a message there
    native = asl.load(document)
    assert asl.check(native).ok, str(asl.check(native).errors)
    conversion = asl.convert(native, dialect)
    script = scripted(seed, ANSWERS)
    before = observe(native, input, script)
    there = asl.load(conversion.text, dialect=dialect)
    after = observe(there, adapted(input, conversion), script)
    changed = unreported(before, after, conversion, native)
    assert not changed, (changed, before, after, conversion.text)
