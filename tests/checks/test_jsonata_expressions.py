"""JSONata in documents: what can be seen before it runs, and exactly where."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl import variable_references
from asl.checks import check
from asl.core.diagnostics import Diagnostic, Severity
from asl.core.document import read
from asl.core.profile import AWS, DEFAULT

pytestmark = pytest.mark.quick

Json = Any

S = "/States/S"
DONE = {"Type": "Succeed"}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
PROCESSOR = {"StartAt": "I", "States": {"I": DONE}}
MAP = {"Type": "Map", "ItemProcessor": PROCESSOR, "End": True}


def machine(**states: Json) -> Json:
    return {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}


def passing(output: Json) -> Json:
    return machine(S={"Type": "Pass", "Output": output, "End": True})


def task(**fields: Json) -> Json:
    return machine(S={**TASK, **fields})


def catching(**fields: Json) -> Json:
    return machine(S={**TASK, "Catch": [{"ErrorEquals": ["A"], "Next": "Z", **fields}]}, Z=DONE)


def mapping(**fields: Json) -> Json:
    return machine(S={**MAP, **fields})


def choice(**fields: Json) -> Json:
    rule = {"Condition": True, "Next": "Z", **fields}
    return machine(S={"Type": "Choice", "Choices": [rule], "Default": "Z"}, Z=DONE)


def found(document: Json, **settings: Any) -> list[tuple[str, str]]:
    return [(each.code, each.pointer) for each in check(read(document), **settings)]


UNREADABLE: list[tuple[Json, str]] = [
    (passing("{% 1 + %}"), f"{S}/Output"),
    (passing("{%%}"), f"{S}/Output"),
    (passing({"a": [{"b/c": "{% a[1,2) %}"}]}), f"{S}/Output/a/0/b~1c"),
    (task(Arguments={"x": "{% ( %}"}), f"{S}/Arguments/x"),
    (task(Assign={"v": "{% ( %}"}), f"{S}/Assign/v"),
    (task(TimeoutSeconds="{% ( %}"), f"{S}/TimeoutSeconds"),
    (task(Credentials={"RoleArn": "{% ( %}"}), f"{S}/Credentials/RoleArn"),
    (catching(Output="{% ( %}"), f"{S}/Catch/0/Output"),
    (catching(Assign={"v": "{% ( %}"}), f"{S}/Catch/0/Assign/v"),
    (choice(Condition="{% ( %}"), f"{S}/Choices/0/Condition"),
    (choice(Output="{% ( %}"), f"{S}/Choices/0/Output"),
    (choice(Assign={"v": "{% ( %}"}), f"{S}/Choices/0/Assign/v"),
    (machine(S={"Type": "Wait", "Seconds": "{% ( %}", "End": True}), f"{S}/Seconds"),
    (machine(S={"Type": "Wait", "Timestamp": "{% ( %}", "End": True}), f"{S}/Timestamp"),
    (machine(S={"Type": "Fail", "Error": "{% ( %}"}), f"{S}/Error"),
    (machine(S={"Type": "Fail", "Cause": "{% ( %}"}), f"{S}/Cause"),
    (mapping(Items="{% ( %}"), f"{S}/Items"),
    (mapping(Items=[1, "{% ( %}"]), f"{S}/Items/1"),
    (mapping(ItemSelector={"x": "{% ( %}"}), f"{S}/ItemSelector/x"),
    (mapping(MaxConcurrency="{% ( %}"), f"{S}/MaxConcurrency"),
    (mapping(ToleratedFailureCount="{% ( %}"), f"{S}/ToleratedFailureCount"),
    (mapping(ItemBatcher={"MaxItemsPerBatch": "{% ( %}"}), f"{S}/ItemBatcher/MaxItemsPerBatch"),
    (mapping(ItemBatcher={"MaxItemsPerBatch": 1, "BatchInput": ["{% ( %}"]}),
     f"{S}/ItemBatcher/BatchInput/0"),
    (mapping(ItemReader={"Resource": "arn:aws:states:::s3:getObject",
                         "Arguments": {"Bucket": "{% ( %}"}}), f"{S}/ItemReader/Arguments/Bucket"),
    (mapping(ItemReader={"Resource": "arn:aws:states:::s3:getObject",
                         "ReaderConfig": {"MaxItems": "{% ( %}"}}),
     f"{S}/ItemReader/ReaderConfig/MaxItems"),
    (mapping(ResultWriter={"Resource": "arn:aws:states:::s3:putObject",
                           "Arguments": {"Bucket": "{% ( %}"}}),
     f"{S}/ResultWriter/Arguments/Bucket"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "pointer"), UNREADABLE)
def test_every_field_that_takes_an_expression_is_read(document: Json, pointer: str) -> None:
    """V-JSONATA-01, wherever AWS evaluates JSONata."""
    assert ("V-JSONATA-01", pointer) in found(document)


@pytest.mark.parametrize(
    "document",
    [
        machine(S={**DONE, "Comment": "{% ( %}"}),
        task(Retry=[{"ErrorEquals": ["{% ( %}"]}]),
        mapping(
            ItemReader={
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "GIVEN",
                                 "CSVHeaders": ["{% ( %}"]},
            }
        ),
    ],
)  # fmt: skip
def test_other_texts_are_not_read(document: Json) -> None:
    """Comments, error names and column names stay what they are (AWS, recorded)."""
    assert not {code for code, _ in found(document) if code.startswith("V-JSONATA")}


MEMBERS: list[tuple[Json, str, bool]] = [
    (task(Output="{% $states.result %}"), f"{S}/Output", True),
    (task(Assign={"v": "{% $states.result %}"}), f"{S}/Assign/v", True),
    (task(Arguments="{% $states.result %}"), f"{S}/Arguments", False),
    (mapping(Output="{% $states.result %}"), f"{S}/Output", True),
    (mapping(ItemSelector="{% $states.result %}"), f"{S}/ItemSelector", False),
    (passing("{% $states.result %}"), f"{S}/Output", False),
    (choice(Output="{% $states.result %}"), f"{S}/Choices/0/Output", False),
    (catching(Output="{% $states.result %}"), f"{S}/Catch/0/Output", False),
    (catching(Output="{% $states.errorOutput.Cause %}"), f"{S}/Catch/0/Output", True),
    (catching(Assign={"v": "{% $states.errorOutput %}"}), f"{S}/Catch/0/Assign/v", True),
    (task(Output="{% $states.errorOutput %}"), f"{S}/Output", False),
    (passing("{% $states.context.State.Name & $states.input.x %}"), f"{S}/Output", True),
    (passing("{% $states.inputs %}"), f"{S}/Output", False),
    (passing("{% $states %}"), f"{S}/Output", True),
    (passing("{% $map($states.input.a, function($x) { $states.result }) %}"), f"{S}/Output", False),
    (passing("{% ($states := {'result': 1}; $states.result) %}"), f"{S}/Output", True),
]


@pytest.mark.parametrize(("document", "pointer", "exists"), MEMBERS)
def test_members_of_states_exist_by_place(document: Json, pointer: str, exists: bool) -> None:
    """V-JSONATA-04: a result only afterwards, an error only in a catcher."""
    assert (("V-JSONATA-04", pointer) not in found(document)) is exists


CONTEXT: list[tuple[str, list[str]]] = [
    ("phone", ["phone"]),
    ("phone[0]", ["phone"]),
    ("aaa + bbb & aaa", ["aaa", "bbb"]),
    ("$.phone", ["$"]),
    ("$$.phone", ["$$"]),
    ("{'v': phone}", ["phone"]),
    ("[phone]", ["phone"]),
    ("$map($states.input.a, function($x) { b })", ["b"]),
    ("items{name: $sum(price)}", ["items"]),
    ("$states.input.items[price > $$.limit]", ["$$"]),
    ("$states.input.phone", []),
    ("$states.input.items[price > 3].name", []),
    ("$states.input.items[$ > 3]", []),
    ("$states.input.items.{'n': name, 'whole': $}", []),
    ("$states.input.items^(price).name", []),
    ("$states.input.items{name: $sum(price)}", []),
    ("$states.input ~> |items|{'price': price * 2}|", []),
    ("$map($states.input.a, function($x) { $x.phone })", []),
    ("($phone := 1; $phone)", []),
]


@pytest.mark.parametrize(("query", "names"), CONTEXT)
def test_names_need_something_to_be_looked_up_in(query: str, names: list[str]) -> None:
    """V-JSONATA-03: each name that stands at the top of an expression, once (AWS, recorded)."""
    report = check(read(passing(f"{{% {query} %}}")), AWS)
    errors = [each.aws.message for each in report.errors if each.aws]
    expected = [
        f"Reference to '{name}' {'is' if name == '$$' else 'at the top level is'} not supported."
        for name in names
    ]
    assert errors == expected


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("{% $states.input", True),
        ("$states.input %}", True),
        ("{%", True),
        (" {% 1 %} ", False),
        ("{% 1 %}", False),
        ("100 %", False),
        ("{ % }", False),
    ],
)
def test_half_an_expression_is_a_mistake(text: str, half: bool) -> None:
    """V-JSONATA-02: a warning, as it is literal text, and an error to AWS."""
    assert (("V-JSONATA-02", f"{S}/Output") in found(passing(text))) is half
    assert check(read(passing(text)), DEFAULT).ok
    assert check(read(passing(text)), AWS).ok is not half


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (
            "Hi {% $name %}, it is {% $now() %}.",
            "V-JSONATA-07",
            "write a single expression: {% 'Hi ' & $name & ', it is ' & ($now()) & '.' %}",
        ),
        ("{% $name %}!", "V-JSONATA-02", "write a single expression: {% $name & '!' %}"),
        (
            "C:\\dir {% 1 %}.",
            "V-JSONATA-07",
            r"write a single expression: {% 'C:\\dir ' & 1 & '.' %}",
        ),
        ("it's {% 1 %}", "V-JSONATA-02", 'write a single expression: {% "it\'s " & 1 %}'),
        (
            "{% $a > 1 %}-{% $b %}",
            "V-JSONATA-01",
            "write a single expression: {% ($a > 1) & '-' & $b %}",
        ),
        (
            " {% $name %} ",
            "V-JSONATA-07",
            "an expression is written '{% ... %}', without blanks before or after",
        ),
        (
            "x" * 200 + "{% $name %}.",
            "V-JSONATA-07",
            "join texts and values in one expression: {% 'text' & $value %}",
        ),
    ],
)
def test_expression_within_a_text_is_reported(text: str, code: str, hint: str) -> None:
    """The hint says the whole text as one expression."""
    (found,) = check(read(passing(text)), DEFAULT)
    assert (found.code, found.hint) == (code, hint)


def test_a_long_text_is_not_gone_through_for_a_hint() -> None:
    """That it has an expression is enough."""
    (found,) = check(read(passing("{% $name %}." * 100_000)), DEFAULT)
    assert (found.code, found.hint) == (
        "V-JSONATA-02",
        "join texts and values in one expression: {% 'text' & $value %}",
    )


@pytest.mark.parametrize("text", ["100 {%", "{% and {%", "%} {%", "{ % 1 % }", "no {percent}"])
def test_a_text_without_an_expression_is_left_alone(text: str) -> None:
    """What is not closed in it is none: V-JSONATA-07 says nothing."""
    assert "V-JSONATA-07" not in [each.code for each in check(read(passing(text)), DEFAULT)]


def test_braces_insert_nothing_in_jsonata() -> None:
    """V-ST-11: what JSONPath states write into texts is no expression of JSONata."""
    prompt = {"title": "Publish {{ $.title }}?", "more": ["{% 'a {{ $ }}' %}", "{{ name }}"]}
    state = {"Type": "Approval", "Prompt": prompt, "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "S", "States": {"S": state}}
    found = [(each.code, each.pointer) for each in check(read(machine), DEFAULT)]
    assert found == [("V-ST-11", "/States/S/Prompt/title")]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("$upercase('a')", "did you mean '$uppercase'?"),
        ("$eval('1')", "$parse reads JSON text"),
        ("'a' ~> $nothing_like_it", None),
    ],
)
def test_unknown_functions_draw_a_warning(query: str, hint: str | None) -> None:
    """V-JSONATA-05: AWS finds it only when the expression runs (recorded)."""
    (each,) = check(read(passing(f"{{% {query} %}}")), AWS)
    assert (each.code, each.severity, each.hint) == ("V-JSONATA-05", Severity.WARNING, hint)


@pytest.mark.parametrize(
    "query", ["$partition([1], 1)", "$hash('a', 'MD5')", "$uuid()", "$parse('1')", "$range(1,2,1)",
              "$random()", "($f := function($x) { $x }; $f(1))", "$map([1], $string)"]
)  # fmt: skip
def test_functions_that_exist_are_no_matter(query: str) -> None:
    """JSONata's own, AWS's and those that the expression defines."""
    assert found(passing(f"{{% {query} %}}")) == []


@pytest.mark.parametrize(
    ("document", "pointer", "fits"),
    [
        (machine(S={"Type": "Wait", "Seconds": "{% '5' %}", "End": True}), f"{S}/Seconds", False),
        (machine(S={"Type": "Wait", "Seconds": "{% 5 %}", "End": True}), f"{S}/Seconds", True),
        (mapping(Items="{% {'a': 1} %}"), f"{S}/Items", False),
        (mapping(Items="{% [1] %}"), f"{S}/Items", True),
        (mapping(Items="{% null %}"), f"{S}/Items", False),
        (choice(Condition="{% 'true' %}"), f"{S}/Choices/0/Condition", False),
        (choice(Condition="{% true %}"), f"{S}/Choices/0/Condition", True),
        (machine(S={"Type": "Fail", "Cause": "{% 1 %}"}), f"{S}/Cause", False),
        (task(TimeoutSeconds="{% [1] %}"), f"{S}/TimeoutSeconds", False),
    ],
)
def test_a_constant_must_fit_its_field(document: Json, pointer: str, fits: bool) -> None:
    """V-JSONATA-06: AWS fails when it runs, so it is a warning (recorded)."""
    assert (("V-JSONATA-06", pointer) not in found(document)) is fits
    assert check(read(document), AWS).ok


# Places ---------------------------------------------------------------------------------------


def first(text: str, **settings: Any) -> Diagnostic:
    return next(iter(check(read(text, **settings))))


def test_the_place_is_that_of_the_character() -> None:
    """Line and column of what is wrong, not of the string."""
    text = json.dumps(passing("{% 1 + phone %}"), indent=1)
    each = first(text)
    line = text.split("\n")[each.line - 1]
    assert line[each.column - 1 :].startswith("phone")


def test_the_place_survives_escapes() -> None:
    """A character of the string may be written with several of the text."""
    text = json.dumps(passing('{% "ä\n\U0001f600\\"" & phone %}'))
    each = first(text)
    assert text[each.column - 1 :].startswith("phone")


def test_the_place_in_a_block_of_yaml_is_found() -> None:
    """Expressions of several lines are usually written so."""
    text = """
QueryLanguage: JSONata
StartAt: S
States:
  S:
    Type: Pass
    End: true
    Output: |-
      {% (
        $x := $states.input.x;
        $x + phone
      ) %}
"""
    each = first(text, format="yaml")
    assert (each.line, each.column) == (11, 14)


def test_the_place_in_a_folded_text_is_that_of_the_string() -> None:
    """Where it cannot be told it is not guessed."""
    text = """
{QueryLanguage: JSONata, StartAt: S, States: {S: {Type: Pass, End: true, Output: '{% 1 +
  phone %}'}}}
"""
    each = first(text, format="yaml")
    assert each.line == 2


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), st.booleans())
def test_the_place_is_right_whatever_stands_before(prefix: str, ascii_only: bool) -> None:
    """Law: the text at the place begins with the name that is wrong."""
    quoted = json.dumps(prefix)
    text = json.dumps(passing(f"{{% {quoted} & phone %}}"), ensure_ascii=ascii_only)
    wrong = [each for each in check(read(text)) if each.code == "V-JSONATA-03"]
    for each in wrong:
        lines = text.split("\n")
        assert lines[each.line - 1][each.column - 1 :].startswith("phone")


# Variables ------------------------------------------------------------------------------------


def chain(*states: Json, **last: Json) -> Json:
    names = [f"S{i}" for i in range(len(states))]
    nexts = [*names[1:], None]
    return machine(
        **{
            name: {**state, **({"Next": after} if after else {"End": True})}
            for name, state, after in zip(names, states, nexts, strict=True)
        }
    )


SETTING = {"Type": "Pass", "Assign": {"v": 1}}
READING = {"Type": "Pass", "Output": "{% $v %}"}


def unassigned(document: Json) -> list[tuple[str, str | None]]:
    return [(each.message, each.hint) for each in check(read(document)) if each.code == "V-VAR-03"]


def test_a_variable_is_there_from_the_next_state_on() -> None:
    """V-VAR-03 follows the transitions."""
    assert unassigned(chain(SETTING, READING)) == []
    ((message, hint),) = unassigned(chain(READING, SETTING))
    assert message == "no state that comes before 'S0' assigns the variable 'v'"
    ((_, hint),) = unassigned(chain({**SETTING, **READING}))
    assert hint == "what a state assigns is there from the next state on"


def test_a_loop_brings_a_variable_back() -> None:
    """What a later state assigns may be there the next time."""
    document = chain(READING, SETTING)
    document["States"]["S1"] = {
        "Type": "Choice",
        "Choices": [{"Condition": True, "Next": "S0", "Assign": {"v": 1}}],
        "Default": "S2",
    }
    document["States"]["S2"] = DONE
    assert unassigned(document) == []


def test_a_rule_assigns_on_its_own_way_only() -> None:
    """The state that `Default` leads to does not see it."""
    document = machine(
        C={
            "Type": "Choice",
            "Choices": [{"Condition": True, "Next": "A", "Assign": {"v": 1}}],
            "Default": "B",
        },
        A={**READING, "End": True},
        B={"Type": "Pass", "Output": "{% $v + 1 %}", "End": True},
    )
    pointers = [each.pointer for each in check(read(document)) if each.code == "V-VAR-03"]
    assert pointers == ["/States/B/Output"]


def test_inner_machines_see_the_variables_around_them() -> None:
    """But not those of a distributed Map's surroundings, and never the other way round."""
    inner = {"StartAt": "I", "States": {"I": {**READING, "End": True}}}
    assert unassigned(chain(SETTING, {**MAP, "ItemProcessor": inner})) == []
    apart = {**inner, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    ((message, hint),) = unassigned(chain(SETTING, {**MAP, "ItemProcessor": apart}))
    assert message == "no state assigns the variable 'v'"
    assert hint == "a machine sees the variables of those around it, but for a distributed Map"
    setting = {"StartAt": "I", "States": {"I": {**SETTING, "End": True}}}
    assert len(unassigned(chain({**MAP, "ItemProcessor": setting}, READING))) == 1


def test_a_misspelt_states_is_recognised() -> None:
    """`$state` is the usual slip."""
    ((_, hint),) = unassigned(passing("{% $state.input %}"))
    assert hint == "did you mean '$states'?"


def test_variables_that_an_expression_binds_are_its_own() -> None:
    """Parameters of functions and bindings are no variables of the workflow."""
    assert unassigned(passing("{% ($a := 1; $map([1], function($b) { $a + $b })) %}")) == []


def test_references_are_listed_by_state() -> None:
    """As AWS's `variableReferences`: sorted, without dollars, no states that read none."""
    document = chain(SETTING, READING, {"Type": "Pass", "Output": {"b": ["{% $b + $a %}"]}})
    assert variable_references(document) == {"S1": ["v"], "S2": ["a", "b"]}
