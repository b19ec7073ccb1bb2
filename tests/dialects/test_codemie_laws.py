"""Laws of the CodeMie dialect, on workflows and outputs that nobody has written."""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import asl
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Source
from asl.core.yaml_schema import CORE, PLATFORM
from asl.core.yaml_text import loads
from asl.dialects.codemie.condition_terms import condition_term
from asl.dialects.codemie.conditions import translated
from asl.dialects.codemie.functions.conditions import holds
from asl.dialects.codemie.functions.outputs import NOTHING, coerce_literals, parse_output
from asl.dialects.codemie.functions.placeholders import fill
from asl.dialects.codemie.reader import read
from asl.dialects.codemie.round_trip import restored
from asl.dialects.codemie.writing.expressions import Expressions
from asl.dialects.codemie.writing.names import OutputNames
from asl.dialects.terms import INPUT, DataPath
from asl.dialects.terms.jsonata import print_jsonata
from asl.dialects.terms.jsonpath import read_rule
from asl.dialects.yaml_writer import to_yaml
from tests.dialects.choosing import BOOLEAN, NUMERIC, OPERANDS, decided, rules, values
from tests.dialects.codemie_reference import Failed, Reference
from tests.examples import examples
from tests.reality.codemie import plain, visited

NAMES = st.sampled_from(["a", "b", "ok", "in_", "keys_"])
CONSTANTS = st.sampled_from(["1", "0", "-2", "2.5", "'x'", "'y'", "True", "False", "None", "''"])
NUMBERS = st.sampled_from(["1", "0", "-2", "2.5"])
SCALARS = st.sampled_from([1, 0, -2, 2.5, "x", "y", "1", "true", "None", True, False, None, "", 3])
OUTPUTS = st.dictionaries(
    st.sampled_from(["a", "b", "ok", "in_", "keys_"]),
    SCALARS | st.lists(SCALARS, max_size=2) | st.just({"k": 1}),
)


def _comparisons() -> st.SearchStrategy[str]:
    listed = st.lists(CONSTANTS, max_size=3).map(lambda each: f"[{', '.join(each)}]")
    return st.one_of(
        st.builds("{} {} {}".format, NAMES, st.sampled_from(["==", "!="]), CONSTANTS),
        st.builds("{} {} {}".format, NAMES, st.sampled_from(["<", "<=", ">", ">="]), NUMBERS),
        st.builds("{} {} {}".format, NAMES, st.sampled_from(["<", ">="]), st.just("'x'")),
        st.builds("{} {} {}".format, NUMBERS, st.sampled_from(["<", "<=", "=="]), NAMES),
        st.builds("{} {} {}".format, NAMES, st.sampled_from(["in", "not in"]), listed),
        st.builds("'{}' {} keys".format, NAMES, st.sampled_from(["in", "not in"])),
        st.builds("{} is {}".format, NAMES, st.sampled_from(["None", "not None", "True"])),
        NAMES,
    )


def _conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        _comparisons(),
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("not {}".format, inner),
        ),
        max_leaves=4,
    )


@given(_conditions(), OUTPUTS)
@settings(deadline=None, max_examples=examples(50))
def test_a_translated_condition_decides_like_the_original(condition: str, output: Any) -> None:
    """In JSONata a condition holds for the same outputs, whatever is missing or of another type."""
    seen = coerce_literals(output)
    # A boolean is not ordered among numbers in JSONata (docs/dialects/codemie.md).
    ordered = any(sign in condition for sign in "<>")
    assume(not (ordered and any(type(each) is bool for each in seen.values())))
    said = {"Condition": translated(condition, "a")}
    data = {"cm": {"last": json.dumps(output)}}
    assert decided(said, data) == holds(condition, seen), translated(condition, "a")


@example("a is True", {"a": 1})
@given(_conditions(), OUTPUTS)
@settings(deadline=None, max_examples=examples(50))
def test_a_condition_as_a_term_decides_like_the_original(condition: str, output: Any) -> None:
    """What fails in it makes all of it false; L-COERCE reports texts that are read as values."""
    assume(coerce_literals(output) == output)
    ordered = any(sign in condition for sign in "<>")
    assume(not (ordered and any(type(each) is bool for each in output.values())))
    term = condition_term(condition, lambda steps: DataPath(INPUT, ("answer", *steps)))
    said = print_jsonata(term)
    assume(said is not None)
    made = decided({"Condition": f"{{% {said} %}}"}, {"answer": output})
    assert made == holds(condition, output), said


@pytest.mark.parametrize(
    ("operands", "scalars"), [(NUMERIC, [1, 0, -2, 2.5]), (BOOLEAN, [True, False])]
)
@given(st.data())
@settings(deadline=None, max_examples=examples(50))
def test_a_rule_as_a_condition_decides_like_the_original(
    operands: Any, scalars: list[Any], data: st.DataObject
) -> None:
    """For values of all types; L-COERCE tells of texts that say values, and that true is 1."""
    rule = data.draw(rules(OPERANDS | operands))
    a, b, d = (data.draw(values(scalars)) for _ in range(3))
    output = {"a": a, "b": b, "c": {"d": d}}
    said = Expressions(OutputNames(("r",))).condition(read_rule(rule))
    assert holds(said, output) == decided(rule, {"r": output}), said


@given(st.text(max_size=60))
@settings(max_examples=examples(50))
def test_any_text_is_a_condition_or_is_refused(text: str) -> None:
    """Nothing else comes of a text, and nothing is executed."""
    assert holds(text, {"a": 1}) in (True, False)
    assert translated(text, "a").startswith("{%")


@pytest.mark.parametrize(("start", "becomes"), [("", ""), ("{{a}}", "x")])
def test_a_text_full_of_braces_is_filled_in_bearable_time(start: str, becomes: str) -> None:
    """It would take hours, were the rest looked through for an end at each of them."""
    assert fill(start + "{{" * 300_000, {"a": "x"}) == becomes + "{{" * 300_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[" + " " * 500_000 + "x", NOTHING),
        ("```json" + " " * 500_000, NOTHING),
        ('{"' + '\\"' * 200_000, NOTHING),
        ("so: {'say': 'a \" b'} " + '\\"' * 200_000, {"say": 'a " b'}),
    ],
)
def test_a_long_output_is_parsed_in_bearable_time(text: str, found: Any) -> None:
    """It would take hours, were the rest looked through at each blank or quote."""
    assert parse_output(text) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_an_output_in_json_is_read_as_it_is(value: Any) -> None:
    """JSON says what it says; but null says nothing."""
    text = json.dumps(value)
    assume(value is not None)
    assert parse_output(text) == value


@given(JSON)
def test_an_output_as_python_writes_it_is_read(value: Any) -> None:
    """So do Python's literals, unless they are JSON that says something else."""
    assume(value is not None)
    assert parse_output(repr(value)) == value


@given(st.dictionaries(st.text(min_size=1, max_size=6), JSON, min_size=1, max_size=4))
@settings(max_examples=examples(50))
def test_yaml_is_read_as_it_was_written(value: Any) -> None:
    """By YAML 1.1 and by YAML 1.2."""
    text = to_yaml(value)
    assume("<<" not in text)  # a merge key of YAML 1.1, quoted or not
    for schema in (CORE, PLATFORM):
        found, _, faults = loads(text, DEFAULT_LIMITS, schema)
        assert not faults, text
        assert found == value, text


@pytest.mark.parametrize("length", [1022, 1024, 1025, 5000])
@pytest.mark.parametrize("value", [1, "x\ny", {"b": [{"c": {"d": 1}}]}, []])
def test_a_long_key_is_read_as_it_was_written(length: int, value: Any) -> None:
    """YAML wants a mark before it."""
    whole = {"s": {"#" * length: value, "z": 1}}
    for schema in (CORE, PLATFORM):
        found, _, faults = loads(to_yaml(whole), DEFAULT_LIMITS, schema)
        assert (found, [*faults]) == (whole, [])


CONDITION = st.sampled_from(["ok", "not ok", "n > 1", "n == 2 or ok", "kind == 'x'", "'n' in keys"])
FLAGS: dict[str, st.SearchStrategy[Any]] = {
    "append_to_context": st.just(True),
    "output_key": st.sampled_from(["k0", "k1", "n"]),
    "store_in_context": st.just(False),
    "include_in_llm_history": st.just(False),
    "clear_prior_messages": st.just(True),
    "clear_context_store": st.sampled_from([True, "keep_current"]),
    "reset_keys_in_context_store": st.just(["n", "k0"]),
    "override_task": st.just(True),
    "include_in_iterator_context": st.sampled_from([["n"], ["*"]]),
}


@st.composite
def workflows(draw: st.DrawFn, *, loops: bool = False) -> dict[str, Any]:
    """Workflows with choices, forks, iterations, gates and flags.

    Their transitions lead forward, with *loops* those of choices anywhere.
    """
    names = [f"s{number}" for number in range(draw(st.integers(1, 7)))]
    states = []
    for number, name in enumerate(names):
        target = st.sampled_from([*names[number + 1 :], "end"])
        routed = st.sampled_from([*names, "end"]) if loops else target
        kind = draw(st.sampled_from(["plain", "plain", "condition", "switch", "fork", "each"]))
        to: dict[str, Any] = {"state_id": draw(target)}
        if kind == "condition":
            then, otherwise = draw(routed), draw(target)
            said = {"expression": draw(CONDITION), "then": then, "otherwise": otherwise}
            to = {"condition": said}
        elif kind == "switch":
            case = st.fixed_dictionaries({"condition": CONDITION, "state_id": routed})
            to = {"switch": {"cases": draw(st.lists(case, max_size=2)), "default": draw(target)}}
        elif kind == "fork":
            to = {"state_ids": draw(st.lists(target, min_size=1, max_size=3))}
        elif kind == "each":
            to["iter_key"] = draw(st.sampled_from(["items", "items", "."]))
        for flag in draw(st.lists(st.sampled_from(list(FLAGS)), max_size=2, unique=True)):
            to[flag] = draw(FLAGS[flag])
        state: dict[str, Any] = {"id": name, "assistant_id": "a", "task": f"{name} {{{{k0}}}}"}
        for key in ("interrupt_before", "result_as_human_message", "finish_iteration"):
            if draw(st.integers(0, 5)) == 0:
                state[key] = True
        states.append({**state, "next": to})
    return {"assistants": [{"id": "a", "system_prompt": "x"}], "states": states}


ANSWERS = st.sampled_from(
    [
        '{"ok": true, "items": [1, {"n": 2}]}',
        '{"ok": false, "n": 2, "items": []}',
        '{"kind": "x", "n": 1, "items": {"n": 5, "k1": "v"}}',
        '[{"n": 3}, {"ok": 1}]',
        "[1, 2]",
        "text",
        "None",
    ]
)
REFUSED = {"CM-AMBIGUOUS-JOIN", "CM-UNSTRUCTURED"}


@given(workflows(), st.lists(ANSWERS))
@settings(deadline=None, max_examples=examples(20))
def test_a_workflow_comes_back_and_runs(workflow: dict[str, Any], answers: list[str]) -> None:
    """A workflow becomes a document that is right, ends, and becomes the workflow again."""
    try:
        document = read(Document(workflow, Source()))
    except asl.InvalidDocument as refusal:
        assert {each.code for each in refusal.report.errors} <= REFUSED
        return
    assert asl.check(document).ok
    assert restored(document.value) == workflow
    again = read(Source("flow.yaml", to_yaml(workflow), "yaml"))
    assert again.value == document.value
    left = iter(answers)
    result = asl.run(
        document,
        agents={"a": lambda parameters: next(left, '{"ok": false, "items": [3]}')},
        approvals=lambda request: "continue",
    )
    assert result.ok or result.error in ("CM.IterKey", "CM.RecursionLimit"), result.cause


@given(workflows(loops=True), st.lists(ANSWERS, min_size=1), st.sampled_from([{}, {"n": 1}]))
@settings(deadline=None, max_examples=examples(35))
def test_a_converted_workflow_does_what_the_workflow_does(
    workflow: dict[str, Any], answers: list[str], given: dict[str, Any]
) -> None:
    """It visits the same states, asks as often, and leaves the same context and messages."""
    try:
        converted = asl.convert(workflow, "asl")
    except asl.InvalidDocument as refusal:
        assert {each.code for each in refusal.report.errors} <= REFUSED
        return

    def script(asked: Counter[Any]) -> Callable[[str, tuple[int, ...]], str]:
        def answer(state: str, way: tuple[int, ...]) -> str:
            asked[state, way] += 1
            return answers[(asked[state, way] * 3 + int(state[1:]) + sum(way)) % len(answers)]

        return answer

    wanted: Counter[Any] = Counter()
    reference = Reference(workflow, script(wanted))
    seen, data, error = None, None, None
    try:
        seen, data = reference.run(dict(given))
    except Failed as failure:
        error = str(failure)
    found: Counter[Any] = Counter()
    actor = script(found)

    def agent(parameters: Any, call: Any) -> str:
        way = tuple(map(int, re.findall(r"\[(\d+)\]", call.at.path)))
        return actor(plain(call.state_name), way)

    result = asl.run(
        json.loads(converted.text),
        given,
        agents={"a": agent},
        approvals=lambda request: "continue",
    )
    assert result.error == error, result.cause
    if data is not None:
        assert found == wanted
        assert visited(result) == seen
        assert {key: each for key, each in result.output.items() if key != "cm"} == data["context"]
        assert result.output["cm"]["last"] == data["last"]
        assert result.output["cm"]["history"] == data["history"]
