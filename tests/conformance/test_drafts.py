"""Cases for the ways through a document: each is found, tried, and passes."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.conformance import load_suite, run_suite
from asl.conformance.drafts import draft_cases
from asl.conformance.drafts.paths import DraftStep, RunInputs
from asl.conformance.drafts.search import ALL_STEPS, ATTEMPT, MORE_STEPS, Attempts, search

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "agent-asl"
PASS: dict[str, Any] = {"Type": "Pass", "End": True}
END = {"End": True}
FAILED = asl.run({"StartAt": "A", "States": {"A": {"Type": "Fail", "Error": "E"}}})
BOTH = "States.Array(States.MathAdd($.m, 1), States.ArrayLength($.m))"
"""No value is a number and an array."""


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def taken(document: dict[str, Any], limit: int = 100) -> tuple[list[list[str]], int]:
    """Return the ways for which there are cases, and how many there are besides."""
    cases, missed, _ = draft_cases(asl.load(document), limit)
    return [case["expect"]["visited"] for case in cases], len(missed)


def choice(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a machine with a Choice of one rule, before which a Task answers."""
    task = {"Type": "Task", "Agent": "A", "ResultPath": "$.a", "Next": "C"}
    rules = [{**rule, "Next": "Yes"}]
    return machine(
        T=task, C={"Type": "Choice", "Choices": rules, "Default": "No"}, Yes=PASS, No=PASS
    )


@pytest.mark.parametrize("value", ["$.a", [{"ErrorEquals": ["States.ALL"], "Next": "P"}]])
def test_a_catch_without_effect_is_no_way(value: Any) -> None:
    """The document can be run all the same: it is only warned of."""
    assert taken(machine(P={**PASS, "Catch": value})) == ([["P"]], 0)


OPERANDS: list[tuple[str, Any]] = [
    *((f"String{each}", "m") for each in ("Equals", "GreaterThan", "LessThan")),
    *((f"String{each}", "m") for each in ("GreaterThanEquals", "LessThanEquals")),
    ("StringMatches", "a*b"),
    *((f"Numeric{each}", 5) for each in ("Equals", "GreaterThan", "LessThan")),
    *((f"Numeric{each}", 0.5) for each in ("GreaterThanEquals", "LessThanEquals")),
    *((f"Timestamp{each}", "2024-02-03T04:05:06Z") for each in ("Equals", "GreaterThan")),
    *((f"Timestamp{each}", "2024-02-03T04:05:06Z") for each in ("LessThan", "LessThanEquals")),
    ("BooleanEquals", True),
    ("BooleanEquals", False),
    *((f"Is{each}", True) for each in ("Present", "Null", "String", "Numeric", "Boolean")),
    *((f"Is{each}", False) for each in ("Null", "String", "Numeric", "Boolean", "Timestamp")),
    *((f"{each}EqualsPath", "$.b") for each in ("String", "Numeric", "Boolean", "Timestamp")),
    ("NumericGreaterThanPath", "$.b"),
]


@pytest.mark.parametrize(("operator", "operand"), OPERANDS)
def test_both_sides_of_a_comparison_are_found(operator: str, operand: Any) -> None:
    """In the answer of the Task, or in the input."""
    for variable in ("$.a.x", "$.other"):
        document = choice({"Variable": variable, operator: operand})
        assert taken(document) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)


@pytest.mark.parametrize(
    "rule",
    [
        {
            "And": [
                {"Variable": "$.a.x", "IsPresent": True},
                {"Variable": "$.a.x", "NumericEquals": 1},
            ]
        },
        {"Or": [{"Variable": "$.a.x", "NumericEquals": 1}, {"Variable": "$.b", "IsNull": True}]},
        {"Not": {"Variable": "$.a.x", "StringEquals": "s"}},
    ],
)
def test_combined_rules_are_found(rule: dict[str, Any]) -> None:
    """And, Or and Not."""
    assert taken(choice(rule)) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)


@pytest.mark.parametrize(
    "condition",
    [
        "{% $states.input.x > 5 %}",
        "{% $states.input.x = 'a' and $states.input.y.z != 2 %}",
        "{% $states.input.x <= 1.5 or $states.input.y = true %}",
        "{% $states.input.x %}",
    ],
)
def test_conditions_in_jsonata_are_found(condition: str) -> None:
    """Comparisons of the input with constants."""
    rules = [{"Condition": condition, "Next": "Yes"}]
    task = {"Type": "Task", "Agent": "A", "Next": "C"}
    document = machine(
        T=task, C={"Type": "Choice", "Choices": rules, "Default": "No"}, Yes=PASS, No=PASS
    )
    assert taken({**document, "QueryLanguage": "JSONata"}) == (
        [["T", "C", "Yes"], ["T", "C", "No"]],
        0,
    )


def test_a_loop_is_taken_once() -> None:
    """A Task that is asked twice answers differently."""
    document = machine(
        T={"Type": "Task", "Agent": "A", "ResultPath": "$.a", "Next": "C"},
        C={
            "Type": "Choice",
            "Choices": [{"Variable": "$.a.done", "BooleanEquals": True, "Next": "End"}],
            "Default": "T",
        },
        End=PASS,
    )
    assert taken(document) == ([["T", "C", "End"], ["T", "C", "T", "C", "End"]], 0)
    document["States"]["C"]["Default"] = "W"
    document["States"]["W"] = {"Type": "Wait", "SecondsPath": "$.s", "Next": "T2"}
    document["States"]["T2"] = {**document["States"]["T"], "Next": "C2"}
    document["States"]["C2"] = {**document["States"]["C"], "Default": "W"}
    ways, missed = taken(document)
    assert (len(ways), missed) == (3, 0)


def test_a_poll_loop_is_gone_round_once() -> None:
    """Its first Task is asked again, and decides again."""
    rules = [{"Variable": "$.a.status", "StringEquals": "DONE", "Next": "End"}]
    document = machine(
        T={"Type": "Task", "Agent": "A", "ResultPath": "$.a", "Next": "C"},
        C={"Type": "Choice", "Choices": rules, "Default": "W"},
        W={"Type": "Wait", "Seconds": 30, "Next": "T"},
        End=PASS,
    )
    once = ["T", "C", "End"]
    assert taken(document) == ([once, ["T", "C", "W", *once]], 0)


@pytest.mark.parametrize(
    ("template", "data"),
    [
        ({"x.$": "$.Roots[0].Id"}, {"Roots": [{"Id": "text"}]}),
        ({"x.$": "$.l[1].a[0]"}, {"l": [{}, {"a": ["text"]}]}),
        ({"x.$": "$.a['b-c'].d"}, {"a": {"b-c": {"d": "text"}}}),
        ({"x.$": "$$.Execution.Input.a.b"}, {"a": {"b": "text"}}),
        ({"x.$": "States.ArrayGetItem($.l, 0)"}, {"l": ["text"]}),
        ({"x.$": "States.StringToJson($.t)"}, {"t": "{}"}),
    ],
)
def test_an_input_has_the_form_that_paths_ask_for(template: Any, data: Any) -> None:
    """Arrays where they index, members by their names in either form."""
    cases, _, _ = draft_cases(asl.load(machine(P={**PASS, "Parameters": template})), 10)
    assert [case["input"] for case in cases] == [data]


def test_an_input_is_followed_through_input_path() -> None:
    """What branches of a Parallel read at the same and at different places."""
    first = {**PASS, "InputPath": "$.data.identity", "Parameters": {"e.$": "$.identity.email"}}
    second = {**PASS, "Parameters": {"e.$": "$.identity.email"}}
    branches = [machine(X=first), machine(Y=second)]
    assert taken(machine(P={"Type": "Parallel", "Branches": branches, "End": True}))[1] == 0


def test_draft_with_an_input() -> None:
    """It is used as it is where it leads through; what a way needs besides is added."""
    rule = {"Variable": "$.kind", "StringEquals": "b", "Next": "B"}
    document = machine(
        P={"Type": "Pass", "Parameters": {"x.$": "States.Hash($.t, $.h)"}, "Next": "C"},
        C={"Type": "Choice", "Choices": [rule], "Default": "A"},
        A=PASS,
        B=PASS,
    )
    document["States"]["P"]["ResultPath"] = "$.hash"
    given = {"t": "some", "h": "SHA-1", "kind": "a"}
    cases, missed, _ = draft_cases(asl.load(document), 10, "aws", given)
    assert [case["input"] for case in cases] == [{**given, "kind": "b"}, given]
    assert missed == []


def test_attempts_are_bounded_for_a_document() -> None:
    """The search ends; each way is tried as it begins all the same."""
    none: list[Any] = []
    attempts = Attempts(lambda given: none.append(given) or FAILED, steps=1_000)
    ways = [tuple(DraftStep(name, "next") for name in ("A", "B"))] * 50
    document = machine(A={**PASS, "Next": "B"}, B=PASS)
    for way in ways:
        search(document, way, [RunInputs({}, {})], [], attempts)
    assert len(none) < 1_000 / ATTEMPT + len(ways) + 1


def test_templates_are_followed_back() -> None:
    """Through ResultSelector, a Pass and the members that a template reads."""
    document = choice({"Variable": "$.seen.ok", "BooleanEquals": True})
    document["States"]["T"] |= {
        "Parameters": {"text.$": "States.Format('{}', $.deep.text)"},
        "ResultSelector": {"good.$": "$.body.good"},
        "Next": "P",
    }
    document["States"]["P"] = {
        "Type": "Pass",
        "Parameters": {"ok.$": "$.a.good"},
        "ResultPath": "$.seen",
        "Next": "C",
    }
    assert taken(document) == ([["T", "P", "C", "Yes"], ["T", "P", "C", "No"]], 0)


def test_errors_are_ways() -> None:
    """Each catcher, also that of a state with machines of its own."""
    one, two = (machine(**{name: {"Type": "Task", "Agent": "B", "End": True}}) for name in "IJ")
    bad = {"ErrorEquals": ["States.ALL"], "Next": "Bad"}
    catch = [{"ErrorEquals": ["Busy"], "Next": "Late"}, bad]
    document = machine(
        T={"Type": "Task", "Agent": "A", "Catch": catch, "Next": "P"},
        P={"Type": "Parallel", "Branches": [one], "Catch": [bad], "Next": "M"},
        M={"Type": "Map", "ItemsPath": "$", "ItemProcessor": two, "End": True},
        Late=PASS,
        Bad={"Type": "Fail", "Error": "Bad"},
    )
    ways, missed = taken(document)
    assert ways == [["T", "P", "M"], ["T", "P", "Bad"], ["T", "Late"], ["T", "Bad"]]
    assert missed == 0


def test_what_is_computed_is_tried() -> None:
    """A number that becomes another one, and what has to be of a kind before it is compared."""
    document = choice({"Variable": "$.a.x", "NumericEquals": 3})
    document["States"]["T"]["ResultSelector"] = {"x.$": "States.MathAdd($.n, 1)"}
    assert taken(document) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)
    document["States"]["T"]["ResultSelector"] = {"x.$": "States.ArrayLength($.deep.list)"}
    document["States"]["C"]["Choices"][0]["NumericEquals"] = 2
    assert taken(document) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)


def test_what_cannot_be_found_is_named() -> None:
    """No case is made up for a way that was not taken; ways that begin alike are named once."""
    document = choice({"Variable": "$.a.x", "NumericEquals": 3})
    document["States"]["T"]["ResultSelector"] = {"x.$": "States.MathRandom(100, 200, $.n)"}
    document["States"]["Yes"] = {"Type": "Choice", "Choices": [], "Default": "No"}
    document["States"]["Yes"]["Choices"] = [
        {"Variable": "$.m", "IsPresent": True, "Next": "No"},
    ]
    cases, missed, _ = draft_cases(asl.load(document), 100)
    assert [case["expect"]["visited"] for case in cases] == [["T", "C", "No"]]
    assert missed == [(("T", "C", "Yes"), "it continues at No instead of Yes")]


QUERIES = [
    "$count($states.input.items) = 2",
    "$total > 1000",
    "$contains($states.input.text, 'urgent')",
    "$states.input.order[0].state in ['new', 'open']",
    "$lowercase($states.input.deep.kind) = 'b'",
    "$states.input.(a = 1)",
    "$exists($states.input.x)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_tried(query: str) -> None:
    """In the input, and in a variable that an answer fills."""
    rules = [{"Condition": f"{{% {query} %}}", "Next": "Yes"}]
    document = machine(
        T={
            "Type": "Task",
            "Agent": "A",
            "Assign": {"total": "{% $states.result.body.total %}"},
            "Output": "{% $states.input %}",
            "Next": "C",
        },
        C={"Type": "Choice", "Choices": rules, "Default": "No"},
        Yes=PASS,
        No=PASS,
    )
    assert taken({**document, "QueryLanguage": "JSONata"}) == (
        [["T", "C", "Yes"], ["T", "C", "No"]],
        0,
    )


def test_variables_are_followed_back() -> None:
    """To the input or the answer that they are made of, with values of the kind wanted."""
    ordered = {"order": "{% $states.input %}", "left": "{% $states.result.stock %}"}
    priced = {
        "price": "{% $order.price * $order.quantity %}",
        "number": "{% $string($order.quantity) %}",
        "rest": "{% $left - 1 %}",
    }
    branch = machine(Mail={**PASS, "Output": "{% $order.mail & $sum($order.weights) %}"})
    document = machine(
        Reserve={"Type": "Task", "Agent": "R", "Assign": ordered, "Next": "Charge"},
        Charge={"Type": "Task", "Agent": "C", "Arguments": priced, "Next": "Tell"},
        Tell={"Type": "Parallel", "Branches": [branch], "End": True},
    )
    cases, missed, _ = draft_cases(asl.load({**document, "QueryLanguage": "JSONata"}), 10)
    assert not missed
    assert [case["expect"]["status"] for case in cases] == ["SUCCEEDED"]


def test_branches_of_a_selected_input_are_followed() -> None:
    """What a branch decides by, behind `InputPath` and `Parameters`, and the selected results."""
    rules = [{"Variable": "$.mail", "StringMatches": "*@*", "Next": "Y"}]
    deciding = machine(
        X={"Type": "Choice", "Choices": rules, "Default": "Z"},
        Y={**PASS, "Parameters": {"m.$": "$.mail"}},
        Z={"Type": "Fail", "Error": "Bad"},
    )
    document = machine(
        P={
            "Type": "Parallel",
            "InputPath": "$.data",
            "Parameters": {"mail.$": "$.user.email"},
            "Branches": [deciding, machine(Q={"Type": "Task", "Agent": "A", "End": True})],
            "ResultSelector": {"first.$": "$[0].m", "second.$": "$[1].v"},
            "ResultPath": "$.out",
            "Next": "C",
        },
        C={
            "Type": "Choice",
            "Choices": [{"Variable": "$.out.second", "NumericEquals": 7, "Next": "Yes"}],
            "Default": "No",
        },
        Yes=PASS,
        No=PASS,
    )
    assert taken(document) == ([["P", "C", "Yes"], ["P", "C", "No"]], 0)


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        ("States.StringToJson($.x)", {"Variable": "$.a.kind", "StringEquals": "k"}),
        ("States.ArrayGetItem($.x, 2)", {"Variable": "$.a.on", "BooleanEquals": True}),
        ("States.ArrayLength($.x)", {"Variable": "$.a", "NumericEquals": 37}),
        ("States.MathAdd($.x, -12)", {"Variable": "$.a", "NumericGreaterThan": 99}),
    ],
)
def test_functions_are_followed_back(made: str, rule: dict[str, Any]) -> None:
    """The argument is found that gives a function the required value."""
    document = choice(rule)
    document["States"]["T"] = {
        "Type": "Pass", "InputPath": "$.data", "Parameters": {"a.$": made}, "Next": "C",
    }  # fmt: skip
    assert taken(document) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)


def test_predicates_of_queries_are_followed() -> None:
    """Members that a predicate compares have the value."""
    output = "{% $states.input.orders[status='open'][size=3].lines %}"
    document = {**machine(P={**PASS, "Output": output}), "QueryLanguage": "JSONata"}
    cases, missed, _ = draft_cases(asl.load(document), 10)
    assert not missed
    assert cases[0]["input"] == {"orders": {"status": "open", "size": 3, "lines": "text"}}


def test_map_with_a_reader_in_a_loop() -> None:
    """The answer of its reader repeats."""
    reader = {"Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": {"InputType": "JSON"}}
    reader["Parameters"] = {"Bucket": "b", "Key.$": "$.key"}
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}
    document = machine(
        M={
            "Type": "Map",
            "ItemReader": reader,
            "ItemProcessor": {**mode, **machine(J={"Type": "Task", "Agent": "A", "End": True})},
            "Next": "C",
        },
        C={
            "Type": "Choice",
            "Choices": [{"Variable": "$[0].more", "IsPresent": True, "Next": "M"}],
            "Default": "End",
        },
        End=PASS,
    )
    assert taken(document) == ([["M", "C", "End"]], 1)


def test_attempt_that_stays_in_a_loop_ends_soon() -> None:
    """The other paths are still found."""
    document = machine(
        W={"Type": "Wait", "Seconds": 1, "Next": "C"},
        C={
            "Type": "Choice",
            "Choices": [{"Variable": "$.more", "IsPresent": True, "Next": "W"}],
            "Default": "End",
        },
        End=PASS,
    )
    assert taken(document) == ([["W", "C", "End"]], 1)


def test_draft_with_the_answer_of_a_branch() -> None:
    """What a state makes of its own result is looked for there first."""
    ask = {"Type": "Task", "Agent": "A", "End": True}
    branches = [machine(Left=ask), machine(Right=ask)]
    output = {"left": "{% $states.result[0].id %}", "right": "{% $states.result[1].name %}"}
    both = {"Type": "Parallel", "Branches": branches, "Output": output, "End": True}
    cases, missed, _ = draft_cases(asl.load({**machine(Both=both), "QueryLanguage": "JSONata"}), 10)
    assert not missed
    assert cases[0]["expect"]["status"] == "SUCCEEDED"


def test_drafted_answer_conforms_to_its_schema() -> None:
    """An answer has all that a schema of its Task asks for."""
    schema = {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "kind": {"enum": ["a", "b"]},
            "more": {"type": "array"},
        },
        "required": ["ok", "kind", "more"],
    }
    document = choice({"Variable": "$.a.ok", "BooleanEquals": False})
    document["States"]["T"]["Guardrails"] = {
        "Output": {"Schema": schema, "OnViolation": "fail"},
    }
    assert taken(document) == ([["T", "C", "Yes"], ["T", "C", "No"]], 0)


def test_a_state_that_cannot_be_carried_out_is_no_case() -> None:
    """Only a Fail state is expected to fail."""
    sums = {"Type": "Pass", "Parameters": {"n.$": BOTH}, "End": True}
    assert taken(machine(P=sums)) == ([], 1)
    assert taken(machine(P={"Type": "Pass", "Next": "F"}, F={"Type": "Fail"})) == ([["P", "F"]], 0)


def test_what_is_remembered_is_there() -> None:
    """What a Task writes to its memory is part of its answer; the backend is that of the case."""
    task = {
        "Type": "Task",
        "Agent": "A",
        "Memory": {"Write": [{"Key": "k", "Value.$": "$.kept.it"}, {"Key": "l", "Value.$": "$.n"}]},
        "Next": "C",
    }
    rule = {"Variable": "$.n", "NumericEquals": 2, "Next": "Yes"}
    document = {
        "Memory": {"Backend": "redis"},
        **machine(
            T=task, C={"Type": "Choice", "Choices": [rule], "Default": "No"}, Yes=PASS, No=PASS
        ),
    }
    cases, missed, _ = draft_cases(asl.load(document), 10)
    assert not missed
    assert [case["expect"]["visited"][-1] for case in cases] == ["Yes", "No"]
    assert cases[0]["mocks"]["T"]["return"] == {"n": 2, "kept": {"it": "text"}}
    assert cases[0]["memory"] == ["redis"]


def test_what_people_may_edit_is_there() -> None:
    """An Approval shows the fields that may be edited, so they are part of the input."""
    fields = {"Fields": ["$.draft.text"], "ResultPath": "$.edited"}
    ask = {"Type": "Approval", "Prompt": "p", "Options": ["yes"], "Editable": fields, "End": True}
    cases, missed, _ = draft_cases(asl.load(machine(A=ask)), 10)
    assert not missed
    assert cases[0]["input"] == {"draft": {"text": "text"}}


def test_what_a_state_writes_it_does_not_read() -> None:
    """Nothing has to be there before where a path says only where to write."""
    ask = {"n.$": "$.n"}
    task = {"Type": "Task", "Agent": "A"}
    last = {**task, "Parameters": ask, "Progress": {"Path": "$.p"}, "End": True}
    cases, missed, _ = draft_cases(asl.load(machine(T={**task, "Next": "U"}, U=last)), 10)
    assert not missed
    assert cases[0]["mocks"]["T"]["return"] == {"n": "text"}


def test_a_way_that_was_left_says_where() -> None:
    """By the first state that is another one, or by the error."""
    sums = {"Type": "Pass", "Parameters": {"n.$": BOTH}, "Next": "C"}
    rule = {"Variable": "$.n", "NumericEquals": 2, "Next": "Yes"}
    document = machine(
        P=sums, C={"Type": "Choice", "Choices": [rule], "Default": "No"}, Yes=PASS, No=PASS
    )
    _, missed, _ = draft_cases(asl.load(document), 10)
    assert len(missed) == 1
    assert all(each.why.startswith("P fails with States.IntrinsicFailure: ") for each in missed)


def test_the_number_of_ways_is_bounded() -> None:
    """A document with more of them says so."""
    states: dict[str, Any] = {}
    for index in range(20):
        rule = {"Variable": f"$.v{index}", "IsPresent": True, "Next": f"C{index + 1}"}
        states[f"C{index}"] = {"Type": "Choice", "Choices": [rule], "Default": f"D{index}"}
        states[f"D{index}"] = {"Type": "Pass", "Next": f"C{index + 1}"}
    states["C20"] = PASS
    cases, missed, complete = draft_cases(asl.load(machine(**states)), 30)
    assert (len(cases) + len(missed), complete) == (30, False)


def test_queries_of_long_texts_are_read_in_bearable_time() -> None:
    """It would take minutes, were the rest looked through at each blank or brace."""
    spaced = f"{{% $length({' ' * 60_000}'x' & $states.input.a) %}}"
    braces = f"{{% '{'{%' * 30_000}' & $states.input.a %}}"
    states = {f"P{index}": {"Type": "Pass", "Output": spaced} for index in range(10)}
    last = {"Type": "Pass", "Output": braces, "End": True}
    document = machine(
        **{
            name: {**state, "Next": f"P{index + 1}"}
            for index, (name, state) in enumerate(states.items())
        },
        P10=last,
    )
    assert taken({"QueryLanguage": "JSONata", **document}) == ([[*states, "P10"]], 0)


@pytest.mark.skipif(not CORPUS.exists(), reason="collected documents are not here")
def test_cases_for_collected_documents_pass(tmp_path: Path) -> None:
    """What is written for documents of others holds when it is run as a suite."""
    made = 0
    for file in sorted(CORPUS.glob("*.json")):
        try:
            document = asl.load(file)
            cases, *_ = draft_cases(document, 20)
        except asl.InvalidDocument:
            continue
        if cases:
            suite = {"suite": "Ways", "document": document.composed_value, "cases": cases}
            target = tmp_path / f"{made}.asl-test.json"
            target.write_text(json.dumps(suite))
            made += 1
            report = run_suite(load_suite(target))
            assert report.ok, (file.name, [each.reasons for each in report.verdicts])
    assert made > 10


ITEMS: list[tuple[dict[str, Any], dict[str, Any], Any, Any]] = [
    ({"ItemsPath": "$.l"}, {"InputPath": "$.a.b"}, [{"a": {"b": {}}}], [{}]),
    (
        {"ItemsPath": "$.l", "ItemSelector": {"x.$": "$$.Map.Item.Value.y"}},
        {"Parameters": {"z.$": "$.x"}},
        [{"y": "text"}],
        [{}],
    ),
    (
        {
            "QueryLanguage": "JSONata",
            "Items": "{% $states.input.l %}",
            "ItemSelector": {"x": "{% $states.context.Map.Item.Value.y %}"},
            "Output": "{% $sum($states.result.price) %}",
        },
        {"QueryLanguage": "JSONata", "Arguments": {"n": "{% $states.input.x + 1 %}"}},
        [{"y": 1}],
        1,
    ),
]


@pytest.mark.parametrize(("given", "task", "items", "output"), ITEMS)
def test_a_map_gets_an_item_that_its_machine_can_read(
    given: dict[str, Any], task: dict[str, Any], items: Any, output: Any
) -> None:
    """The item goes through the selector, and each answer has what is read of the results."""
    inner = machine(T={"Type": "Task", "Agent": "A", **task, "End": True})
    document = machine(M={"Type": "Map", **given, "ItemProcessor": inner, "End": True})
    [case], missed, _ = draft_cases(asl.load(document), 100)
    assert (missed, case["input"], case["expect"]["output"]) == ([], {"l": items}, output)


def test_what_is_random_is_as_in_the_case(tmp_path: Path) -> None:
    """The case runs as the same execution of the same workflow: names, ids and numbers agree."""
    made = {
        "name.$": "$$.Execution.Name",
        "id.$": "$$.Execution.Id",
        "machine.$": "$$.StateMachine.Name",
        "begun.$": "$$.Execution.StartTime",
        "uuid.$": "States.UUID()",
        "number.$": "States.MathRandom(1, 1000000)",
    }
    file = tmp_path / "named.asl.json"
    file.write_text(json.dumps(machine(P={"Type": "Pass", "Parameters": made, "End": True})))
    cases, *_ = draft_cases(asl.load(file), 10)
    suite = tmp_path / "named.asl-test.json"
    suite.write_text(json.dumps({"suite": "S", "document_file": file.name, "cases": cases}))
    assert [each.reasons for each in run_suite(load_suite(suite)).verdicts] == [()]


READ = {"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "b", "Key": "k"}}
WRITTEN = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "c"}}
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
ASKED = machine(T={"Type": "Task", "Agent": "A", "Parameters": {"n.$": "$.n"}, "End": True})


@pytest.mark.parametrize(
    ("fields", "inner", "items"),
    [
        ({"ItemReader": READ}, ASKED, [{"n": "text"}]),
        ({"ItemReader": READ, "ResultWriter": WRITTEN}, ASKED, [{"n": "text"}]),
        (
            {"ItemReader": READ, "ItemBatcher": {"MaxItemsPerBatch": 2}},
            machine(M={"Type": "Map", "ItemsPath": "$.Items", "Iterator": ASKED, "End": True}),
            [{"n": "text"}],
        ),
    ],
)
def test_what_a_reader_reads_is_answered(fields: Any, inner: Any, items: Any) -> None:
    """No bucket is needed to read; one for what is written is empty."""
    document = machine(R={"Type": "Map", **fields, "ItemProcessor": inner | DISTRIBUTED, **END})
    [case], missed, _ = draft_cases(asl.load(document), 10)
    assert (missed, case["mocks"]["R"]) == ([], {"return": items})
    assert case["expect"]["status"] == "SUCCEEDED"
    assert case.get("buckets") == ({"c": {}} if "ResultWriter" in fields else None)


@pytest.mark.parametrize(
    ("error", "raised"),
    [("States.ItemReaderFailed", "R"), ("States.ExceedToleratedFailureThreshold", "T")],
)
def test_what_fails_is_what_is_caught(error: str, raised: str) -> None:
    """A reader or an item, also where what is caught leads to the same state as what succeeds."""
    catch = [{"ErrorEquals": [error], "Next": "P"}]
    read = {"Type": "Map", "ItemReader": READ, "ItemProcessor": ASKED | DISTRIBUTED}
    document = machine(R={**read, "Catch": catch, "Next": "P"}, P=PASS)
    cases, missed, _ = draft_cases(asl.load(document), 10)
    assert not missed
    assert [case["title"] for case in cases] == ["R > P", f"R (catch {error}) > P"]
    assert list(cases[1]["mocks"][raised]) == ["raise"]


TAKEN: list[tuple[dict[str, Any], Any, Any]] = [
    ({"OutputPath": "$.p"}, {"n.$": "$.n"}, {"p": {"n": "text"}}),
    ({"OutputPath": "$.p"}, {"n": 1}, {"p": "text"}),
    ({"ResultPath": "$.r", "OutputPath": "$.r.p"}, {"n.$": "$.n"}, {"p": {"n": "text"}}),
    ({"ResultSelector": {"a.$": "$.x.y"}}, {"n": 1}, {"x": {"y": "text"}}),
    ({"ResultSelector": {"a.$": "States.StringToJson($.x)"}}, {"n": 1}, {"x": "{}"}),
    ({}, {"n.$": "$.detail-type"}, {"detail-type": "text"}),
]


@pytest.mark.parametrize(("fields", "parameters", "answer"), TAKEN)
def test_an_answer_has_what_is_taken_of_it(
    fields: dict[str, Any], parameters: dict[str, Any], answer: Any
) -> None:
    """By the state itself, and by the one behind it."""
    task = {"Type": "Task", "Agent": "A", **fields, "Next": "P"}
    document = machine(T=task, P={"Type": "Pass", "Parameters": parameters, "End": True})
    [case], missed, _ = draft_cases(asl.load(document), 10)
    assert (missed, case["input"], case["mocks"]["T"]) == ([], {}, {"return": answer})


def test_a_map_of_its_whole_input_gets_an_item() -> None:
    """The input is an array then."""
    document = machine(M={"Type": "Map", "ItemProcessor": ASKED, "End": True})
    [case], missed, _ = draft_cases(asl.load(document), 10)
    assert (missed, case["input"]) == ([], [{"n": "text"}])


@pytest.mark.parametrize("catching", [False, True])
def test_steps_of_all_attempts_are_bounded(catching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many states read the input, and however many ways lead through them."""
    count = 300
    catch = {"Catch": [{"ErrorEquals": ["E"], "Next": "Failed"}]} if catching else {}
    states: dict[str, Any] = {
        f"S{i}": {
            "Type": "Task",
            "Agent": "A",
            "Parameters": {"x.$": f"$.in{i}"},
            "ResultPath": None,
            **catch,
            "Next": f"S{i + 1}",
        }
        for i in range(count)
    }
    states[f"S{count}"] = PASS
    if catching:
        states["Failed"] = {"Type": "Fail", "Error": "E"}
    visited: list[int] = []
    attempt = Attempts.__call__

    def counted(self: Attempts, given: RunInputs) -> asl.Result:
        result = attempt(self, given)
        visited.append(len(result.visited))
        return result

    monkeypatch.setattr(Attempts, "__call__", counted)
    cases, _, complete = draft_cases(asl.load(machine(**states)), 100)
    assert cases
    assert complete is not catching
    assert sum(visited) <= ALL_STEPS + MORE_STEPS + 3 * count
