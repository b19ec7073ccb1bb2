"""Documents with placeholders, and the values that are given for them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.core.diagnostics import Severity

pytestmark = pytest.mark.quick

JSON = """{
  "StartAt": "A",
  "States": {
    "A": {"Type": "Task", "Resource": "${Arn}", "TimeoutSeconds": ${Seconds}, "End": true}
  }
}"""
YAML = """\
StartAt: A
States:
  A:
    Type: Task
    Resource: ${Arn}
    Comment: "${Seconds}"
    TimeoutSeconds: ${Seconds}
    End: true
"""


def passing(value: object) -> dict[str, object]:
    return {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": value, "End": True}}}


def found(document: asl.Document) -> list[tuple[str, str, int | None, int | None]]:
    return [(each.code, each.message, each.line, each.column) for each in asl.check(document)]


@pytest.mark.parametrize("text", [JSON, YAML])
def test_placeholder_in_a_string_or_for_a_value(text: str) -> None:
    """A placeholder may stand in a string or for a whole value."""
    document = asl.load(text, variables={"Arn": "arn:aws:states:::sns:publish", "Seconds": 30})
    state = document.value["States"]["A"]
    assert (state["Resource"], state["TimeoutSeconds"]) == ("arn:aws:states:::sns:publish", 30)
    assert found(document) == []


def test_text_value() -> None:
    """What the command line gives is text, and is inserted as such."""
    state = asl.load(JSON, variables={"Arn": "a:b", "Seconds": "30"}).value["States"]["A"]
    assert state["TimeoutSeconds"] == 30


@pytest.mark.parametrize(
    ("value", "inserted"), [(True, "true"), (None, "null"), (1.5, "1.5"), ({"a": [1]}, '{"a":[1]}')]
)
def test_json_value(value: object, inserted: str) -> None:
    """Within a string stands the JSON of a value, elsewhere the value."""
    text = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": [${X}, "b"], "End": true}}}'
    if value is not None:
        document = asl.load(text, variables={"X": value})
        assert document.value["States"]["A"]["Result"][0] == value
    written = asl.load(passing("-${X}-"), variables={"X": value}).value["States"]["A"]["Result"]
    assert written == (f"-{inserted}-" if value is not None else "-${X}-")


YAML_VALUES = {
    "number": ("Result: ${X}", "30", 30),
    "word": ("Result: ${X}", "true", True),
    "text with a colon": ("Result: ${X}", "arn: a #b", "arn: a #b"),
    "in double quotes": ('Result: "${X}"', '30 "\\n', '30 "\\n'),
    "in single quotes": ("Result: 'it is ${X}'", "'", "it is '"),
    "in a block": ("Result: |-\n      a ${X}", "b\nc: d", "a b\nc: d"),
    "in braces": ("Result: {a: ${X}, b: [${X}]}", "1", {"a": 1, "b": [1]}),
    "an array": ("Result: ${X}", '[{"a": 1}]', [{"a": 1}]),
    "no array": ("Result: ${X}", "[a", "[a"),
    "a key": ("Result: {${X}: 1}", "k", {"k": 1}),
    "without a value": ("Result: {a: '${Y}', b: ${Y}}", "1", {"a": "${Y}", "b": "${Y}"}),
}


@pytest.mark.parametrize("case", YAML_VALUES)
def test_yaml_value_cannot_change_its_surroundings(case: str) -> None:
    """A value has its meaning by YAML's rules and cannot change what stands around it."""
    line, value, expected = YAML_VALUES[case]
    text = f"StartAt: A\nStates:\n  A:\n    Type: Pass\n    {line}\n    End: true\n"
    assert asl.load(text, variables={"X": value}).value["States"]["A"] == {
        "Type": "Pass",
        "Result": expected,
        "End": True,
    }


def test_placeholders_in_values_are_not_replaced() -> None:
    """What a value holds is not filled in, so nothing can grow without bounds."""
    document = asl.load(passing("${A}"), variables={"A": "${B}${A}", "B": "x"})
    assert document.value["States"]["A"]["Result"] == "${B}${A}"


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_json_value_cannot_change_its_surroundings(value: str) -> None:
    """Whatever a value is, it stays within the string of its placeholder."""
    document = asl.load(passing(["${X}", "next"]), variables={"X": value})
    first, second = document.value["States"]["A"]["Result"]
    assert second == "next"
    assert first == value or "\\" in value


@pytest.mark.parametrize(
    ("value", "warned"),
    [
        ("${Arn}", True),
        ("${AWS::Region}", True),
        ("${Function.Arn}", True),
        ("a ${Name} within a text", False),
        ("${$$.Execution.StartTime}", False),
        ("${}", False),
        ("{% '${x}' %}", False),
        ("$.name", False),
    ],
)
def test_string_of_one_placeholder_without_a_value_is_a_warning(value: str, warned: bool) -> None:
    """A string that is nothing but a placeholder is a warning; other texts mean what they say."""
    found = [each for each in asl.check(passing(value)) if each.code == "READ-11"]
    assert [(each.pointer, each.hint) for each in found] == [
        ("/States/A/Result", f"give it one: --var {value[2:-1]}=...")
    ] * warned


def test_resource_with_a_placeholder_without_a_value_is_a_warning() -> None:
    """A name of a resource is complete or cannot be bound."""
    text = JSON.replace('"${Arn}"', '"arn:${Part}:x"').replace("${Seconds}", "1")
    assert found(asl.load(text)) == [("READ-11", "no value is given for ${Part}", 4, 39)]


def test_repeated_placeholder_without_a_value_is_one_warning() -> None:
    """It is told once, at the first, with the others beside it."""
    states = {"A": {"Type": "Pass", "Result": ["${X}", "${Y}", "${X}"], "End": True}}
    found = asl.check({"StartAt": "A", "States": states})
    places = [(each.pointer, [other.pointer for other in each.related]) for each in found]
    assert places == [
        ("/States/A/Result/0", ["/States/A/Result/2"]),
        ("/States/A/Result/1", []),
    ]


def test_unfilled_placeholder_of_a_number_is_a_warning() -> None:
    """A placeholder in the place of a JSON value is read, and its place is known."""
    assert found(asl.load(JSON)) == [
        ("READ-11", "no value is given for ${Arn}", 4, 39),
        ("READ-11", "no value is given for ${Seconds}", 4, 67),
    ]


UNFILLED = {
    "resource": '"Type": "Task", "Resource": "${Arn}"',
    "part of a resource": '"Type": "Task", "Resource": "arn:${AWS::Partition}:lambda:x"',
    "format": """"Type": "Pass", "Parameters": {"a.$": "States.Format('s3://${B}/{}', $.k)"}""",
    "path": '"Type": "Pass", "InputPath": "$.${Key}"',
    "number as text": '"Type": "Wait", "Seconds": "${Delay}"',
    "number": '"Type": "Wait", "Seconds": ${Delay}',
    "last member": '"Type": "Pass", "Result": {"Subnets": ${Ids}}',
    "parts of a number": '"Type": "Wait", "Seconds": ${Delay}${Zeros}0',
    "timestamp": '"Type": "Wait", "Timestamp": "${When}"',
    "items": '"Type": "Pass", "Result": [${One}, ${Two}]',
    "retriers": '"Type": "Task", "Resource": "arn:aws:lambda:::x", "Retry": ${Retry}',
    "error names": """"Type": "Task", "Resource": "arn:aws:lambda:::x",
        "Retry": [{"ErrorEquals": ["${Error}"], "MaxAttempts": "${Attempts}"}]""",
    "jsonata": '"QueryLanguage": "JSONata", "Type": "Pass", "Output": "{% $f(${x} %}"',
    "dynamic reference": '"Type": "Wait", "Seconds": "{{resolve:ssm:delay}}"',
    "token": """"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": ${Request}""",
}


@pytest.mark.parametrize("profile", ["default", "aws"])
@pytest.mark.parametrize("case", UNFILLED)
def test_unfilled_placeholder_breaks_no_rule(case: str, profile: str) -> None:
    """What a placeholder stands for may be right, whatever the rule."""
    state = f"{{{UNFILLED[case]}, "
    text = f'{{"StartAt": "A", "States": {{"A": {state}"End": true}}}}}}'
    assert {each.code for each in asl.check(asl.load(text), profile=profile)} <= {"READ-11"}


def test_unfilled_transition_makes_all_states_reachable() -> None:
    """No state is unreachable where one names its successor by a placeholder."""
    states = {
        "A": {"Type": "Pass", "Next": "${Next}"},
        "B": {"Type": "Pass", "End": True},
    }
    assert [each.code for each in asl.check({"StartAt": "A", "States": states})] == ["READ-11"]


def test_other_values_are_checked() -> None:
    """Only the string with the placeholder is opaque."""
    states = {"A": {"Type": "Wait", "Seconds": "${Delay}", "Next": "B"}}
    found = [each.code for each in asl.check({"StartAt": "A", "States": states})]
    assert found == ["READ-11", "V-ST-03"]


def test_run_refuses_an_unfilled_placeholder_that_breaks_a_rule() -> None:
    """A workflow does not start with a text in the place of a number."""
    states = {"A": {"Type": "Wait", "Seconds": "${Delay}", "End": True}}
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.run({"StartAt": "A", "States": states})
    assert [each.code for each in refusal.value.report.errors] == ["V-WAIT-02"]


def test_jsonata_object_constructor_is_not_a_placeholder() -> None:
    """`${"key": value}` groups the context value, so the expression is checked."""
    state = {"Type": "Pass", "Output": '{% [1].${"a": $nosuch()} %}', "End": True}
    document = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}
    assert [each.code for each in asl.check(document)] == ["V-JSONATA-05"]


@pytest.mark.parametrize("text", [JSON, YAML])
def test_positions_after_inserted_values(text: str) -> None:
    """Values of any length move no place."""
    text = text.replace('"End"', '"Nxt": 1, "End"').replace("    End", "    Nxt: 1\n    End")
    document = asl.load(text, variables={"Arn": "x" * 300, "Seconds": 1})
    (warning,) = asl.check(document)
    assert warning.code == "V-TOP-09"
    assert warning.line is not None
    assert warning.column is not None
    assert text.split("\n")[warning.line - 1][warning.column - 1 :].lstrip('"').startswith("Nxt")


def test_position_of_an_invalid_value_is_its_placeholder() -> None:
    """A value that is no JSON where it stands is reported at its placeholder."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(JSON, variables={"Arn": "x" * 50, "Seconds": "soon"})
    (fault,) = refusal.value.report
    assert (fault.code, fault.line, fault.column) == ("READ-01", 4, 67)
    assert fault.hint == 'put it in double quotes: "soon"'


def test_position_within_a_string_after_inserted_values() -> None:
    """A fault within an expression is found behind values that were inserted before it."""
    text = '{"StartAt": "A", "QueryLanguage": "JSONata", "States": {"A": {"Type": "Pass",\n'
    text += '"Comment": "${X}", "Output": "{% ${X} + ) %}", "End": true}}}'
    (error,) = asl.check(asl.load(text, variables={"X": "12345678"})).errors
    (plain,) = asl.check(text.replace("${X}", "1234")).errors
    assert (error.line, error.column) == (plain.line, plain.column)
    assert plain.column is not None
    assert plain.column > text.index("+") - text.index("\n")


def test_unused_variable_is_a_warning() -> None:
    """A misspelt name is found."""
    document = asl.load(passing("${Stage}"), variables={"Stgae": "x", "Other": 1})
    unused = [each for each in asl.check(document) if each.code == "READ-13"]
    assert [(each.message, each.hint) for each in unused] == [
        ("the value 'Stgae' is not used", "did you mean 'Stage'?"),
        ("the value 'Other' is not used", "there are Stage"),
    ]
    assert all(each.severity is Severity.WARNING for each in unused)


def test_escaped_value_is_a_warning() -> None:
    """AWS would refuse what is put right here."""
    document = asl.load(passing("${Q}"), variables={"Q": 'SELECT "a"'})
    assert document.value["States"]["A"]["Result"] == 'SELECT "a"'
    assert [each.code for each in asl.check(document)] == ["READ-15"]


def test_resource_of_a_document_is_an_error() -> None:
    """There is no resource to choose in a plain document."""
    with pytest.raises(asl.AslError, match="not a template"):
        asl.load(passing(1), resource="A")


def test_document_without_placeholders_is_unchanged(tmp_path: Path) -> None:
    """A file without placeholders is read as it is, and is called by its name."""
    file = tmp_path / "plain.asl.json"
    file.write_text('{"StartAt": "A", "States": {"A": {"Type": "Succeed", "Comment": "${"}}}')
    document = asl.load(file)
    assert (document.name, document.findings, document.resource) == ("plain", (), None)
