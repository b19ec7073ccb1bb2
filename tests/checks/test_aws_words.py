"""What AWS's own validation says of a fault, beside our rule, place and hint."""

import json
from typing import Any

import pytest

import asl
from asl.checks import check
from asl.core.aws_messages import location
from asl.core.diagnostics import InvalidDocument, Severity
from asl.core.document import read
from asl.core.profile import AWS, DEFAULT
from asl.core.render.formats import render_aws
from asl.core.render.text import render_text

Json = Any

DONE = {"Type": "Succeed"}
PASS = {"Type": "Pass", "End": True}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
PROCESSOR = {"StartAt": "I", "States": {"I": DONE}}
MAP = {"Type": "Map", "ItemProcessor": PROCESSOR, "End": True}
RULE = {"Variable": "$.a", "IsNull": True}
SCHEMA = "SCHEMA_VALIDATION_FAILED"
TARGET = "MISSING_TRANSITION_TARGET"


def machine(**states: Json) -> Json:
    return {"StartAt": next(iter(states)), "States": states}


def passing(**fields: Json) -> Json:
    return machine(S={**PASS, **fields})


def task(**fields: Json) -> Json:
    return machine(S={**TASK, **fields})


def mapping(**fields: Json) -> Json:
    return machine(S={**MAP, **fields})


def reading(**config: Json) -> Json:
    processor = {
        **PROCESSOR,
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    }
    resource, place = "arn:aws:states:::s3:getObject", {"Bucket": "b", "Key": "k"}
    reader = {"Resource": resource, "Parameters": place, "ReaderConfig": config}
    return machine(S={"Type": "Map", "ItemProcessor": processor, "ItemReader": reader, "End": True})


def choice(rule: Json, **fields: Json) -> Json:
    return machine(S={"Type": "Choice", "Choices": [rule], "Default": "Z", **fields}, Z=DONE)


def answer(document: Json, **settings: Any) -> list[tuple[str, str, str | None]]:
    """Return `(code, message, location)` of what AWS would report as errors."""
    found = json.loads(render_aws(check(read(document), AWS, **settings)))["diagnostics"]
    return [
        (each["code"], each["message"], each.get("location"))
        for each in found
        if each["severity"] == "ERROR"
    ]


def only_one(*fields: str) -> str:
    return f"There should only be one of the following fields: [{', '.join(fields)}]"


SHAPES: list[tuple[Json, str, str, str]] = [
    ({}, SCHEMA, "These fields are required: [States, StartAt]", "/"),
    ({"StartAt": "A"}, SCHEMA, "These fields are required: [States]", "/"),
    ({**passing(), "TimeOut": 5}, SCHEMA, "Field 'TimeOut' is not supported", "/"),
    ({**passing(), "Version": "2.0"}, SCHEMA, "Value should be one of the following: [1.0]",
     "/Version"),
    ({**passing(), "QueryLanguage": "jsonata"}, SCHEMA,
     "Value should be one of the following: [JSONPath, JSONata]", "/QueryLanguage"),
    ({**passing(), "QueryLanguage": 5}, SCHEMA, "Expected value of type [STRING]",
     "/QueryLanguage"),
    (passing(Comment=5), SCHEMA, "Expected value of type [STRING]", "/States/S/Comment"),
    (passing(TimeoutSeconds=5), SCHEMA, "Field 'TimeoutSeconds' is not supported", "/States/S"),
    (passing(Catch=[]), SCHEMA, "Field 'Catch' is not supported", "/States/S"),
    (machine(S={**DONE, "Next": "S"}), SCHEMA, "Field 'Next' is not supported", "/States/S"),
    (task(Memory={}), SCHEMA, "Field 'Memory' is not supported", "/States/S"),
    (task(TimeoutSeconds=0), SCHEMA, "Minimum value is 1", "/States/S/TimeoutSeconds"),
    (task(TimeoutSeconds=100_000_000), SCHEMA, "Maximum value is 99999999",
     "/States/S/TimeoutSeconds"),
    (task(TimeoutSeconds="5"), SCHEMA, "Expected value of type Integer",
     "/States/S/TimeoutSeconds"),
    (mapping(ToleratedFailurePercentage=101), SCHEMA, "Maximum value is 100.0",
     "/States/S/ToleratedFailurePercentage"),
    (mapping(MaxConcurrency=-1), SCHEMA, "Minimum value is 0", "/States/S/MaxConcurrency"),
    (task(Retry=[{}]), SCHEMA, "These fields are required: [ErrorEquals]", "/States/S/Retry[0]"),
    (task(Retry=[{"ErrorEquals": []}]), SCHEMA, "Value cannot be empty",
     "/States/S/Retry[0]/ErrorEquals"),
    (task(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "DECORRELATED"}]), SCHEMA,
     "Value should be one of the following: [NONE, FULL]", "/States/S/Retry[0]/JitterStrategy"),
    (task(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "some"}]), SCHEMA,
     "Value should be one of the following: [NONE, FULL]", "/States/S/Retry[0]/JitterStrategy"),
    (task(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": 5}]), SCHEMA,
     "Expected value of type [STRING]", "/States/S/Retry[0]/JitterStrategy"),
    (task(Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": -1}]), SCHEMA, "Minimum value is 0",
     "/States/S/Retry[0]/IntervalSeconds"),
    (task(Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": "1"}]), SCHEMA,
     "Expected value of type Integer", "/States/S/Retry[0]/IntervalSeconds"),
    (task(Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": 1.5}]), SCHEMA,
     "Expected value of type Integer", "/States/S/Retry[0]/IntervalSeconds"),
    (task(Retry=[{"ErrorEquals": ["A"], "MaxDelaySeconds": 31_622_401}]), SCHEMA,
     "Maximum value is 31622400", "/States/S/Retry[0]/MaxDelaySeconds"),
    (machine(S={"Type": "Parallel", "Branches": [], "End": True}), SCHEMA, "Value cannot be empty",
     "/States/S/Branches"),
    (machine(S={"Type": "Parallel", "Branches": [{"States": {"I": DONE}}], "End": True}), SCHEMA,
     "These fields are required: [StartAt]", "/States/S/Branches[0]"),
    (choice(RULE), SCHEMA, "These fields are required: [Next]", "/States/S/Choices[0]"),
    (choice({"Not": {**RULE, "Next": "Z"}, "Next": "Z"}), SCHEMA, "Field 'Next' is not supported",
     "/States/S/Choices[0]/Not"),
]  # fmt: skip

MEANINGS: list[tuple[Json, str, str, str]] = [
    (task(Catch=[{"ErrorEquals": ["A"], "Next": "B"}]), TARGET, "Missing 'Next' target: B",
     "/States/S/Catch[0]/Next"),
    (machine(A={"Type": "Pass", "Next": "B"}, B=DONE, C=DONE), TARGET,
     'State "C" is not reachable.', "/States/C"),
    (choice({**RULE, "Next": "Y"}), TARGET, "Missing 'Next' target: Y",
     "/States/S/Choices[0]/Next"),
    (choice({**RULE, "Next": "Z"}, Default="Y"), TARGET, "Missing 'Next' target: Y",
     "/States/S/Default"),
    ({"StartAt": "Z", "States": {"S": {**TASK, "Catch": [{"ErrorEquals": ["A"], "Next": "S"}]}}},
     TARGET, "Missing 'Next' target: Z", "/StartAt"),
    (machine(**{"a/b": {**TASK, "Catch": [{"ErrorEquals": ["A"], "Next": "c~d"}]}}), TARGET,
     "Missing 'Next' target: c~d", "/States/a/b/Catch[0]/Next"),
    (machine(S={**MAP, "ItemProcessor": {"StartAt": "S", "States": {"S": DONE}}}),
     "DUPLICATE_STATE_NAME", "Duplicate State name: S", "/States/S/ItemProcessor/States/S"),
    (machine(S={"Type": "Pass"}), SCHEMA,
     "This object should have only one of the following fields: [Next, End]", "/States/S"),
    (machine(S={**PASS, "Next": "T"}, T=DONE), SCHEMA, only_one("Next", "End"), "/States/S"),
    (machine(S={"Type": "Wait", "End": True, "Seconds": 1, "Timestamp": "2030-01-01T00:00:00Z"}),
     SCHEMA, only_one("SecondsPath", "Seconds", "TimestampPath", "Timestamp"), "/States/S"),
    (machine(S={"Type": "Wait", "End": True, "Timestamp": "2030-02-30T00:00:00Z"}), SCHEMA,
     "String does not match RFC3339 timestamp", "/States/S/Timestamp"),
    (task(TimeoutSeconds=1, TimeoutSecondsPath="$.t"), SCHEMA,
     only_one("TimeoutSeconds", "TimeoutSecondsPath"), "/States/S"),
    (mapping(Iterator={"StartAt": "J", "States": {"J": DONE}}), SCHEMA,
     only_one("ItemProcessor", "Iterator"), "/States/S"),
    (task(Retry=[{"ErrorEquals": ["States.ALL", "A"]}]), SCHEMA,
     "States.ALL must appear alone and at end of list", "/States/S/Retry[0]/ErrorEquals"),
    (task(Resource="echo"), SCHEMA, "Value is not a valid resource ARN", "/States/S/Resource"),
    (task(Credentials={"Role": "r"}), SCHEMA, "The field 'RoleArn' is required but was missing",
     "/States/S/Credentials"),
    (passing(Parameters={"x.$": "name"}), SCHEMA, "The value for the field 'x.$' must be a valid "
     "JSONPath or a valid intrinsic function call", "/States/S/Parameters"),
    (passing(InputPath="name"), SCHEMA, "Value must be a valid JSONPath.", "/States/S/InputPath"),
    (passing(ResultPath="$.a[*]"), SCHEMA, "Value is not a Reference Path",
     "/States/S/ResultPath"),
    (choice({"Variable": "a", "IsNull": True, "Next": "Z"}), SCHEMA,
     "Value is not a Reference Path: Reference path didn't start with '$'",
     "/States/S/Choices[0]/Variable"),
    (choice({**RULE, "IsString": True, "Next": "Z"}), SCHEMA, only_one("IsString", "IsNull"),
     "/States/S/Choices[0]"),
    (passing(Arguments={}), SCHEMA, "Field 'Arguments' is not supported", "/States/S"),
    (reading(Transformation="LOAD_AND_FLATTEN"), SCHEMA, "The field 'InputType' is required",
     "/States/S/ItemReader/ReaderConfig"),
    (reading(InputType="JSON", ManifestType="ATHENA_DATA"), SCHEMA,
     "Field 'ManifestType' is not supported", "/States/S/ItemReader/ReaderConfig"),
    (reading(InputType="JSON", ItemsPointer="a/b"), SCHEMA,
     "Invalid input: JSON Pointer expression must start with '/': \"a/b\"",
     "/States/S/ItemReader/ReaderConfig/ItemsPointer"),
    (machine(S={**PASS, "Type": "Foo"}), SCHEMA,
     "The field 'Type' should have one of these values: "
     "[Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map]", "/States/S/Type"),
    (machine(S={"End": True}), SCHEMA, "The field 'Type' is required", "/States/S"),
    (machine(A={"Type": "Pass", "Assign": {"v": 1}, "Next": "S"},
             S={"Type": "Parallel", "End": True,
                "Branches": [machine(I={**PASS, "Assign": {"v": 2}})]}), "DUPLICATE_VARIABLE_NAME",
     "The variable name 'v' was already defined in a parent scope.",
     "/States/S/Branches[0]/States/I/Assign/v"),
    (task(Arguments={}), SCHEMA, "The QueryLanguage is set to 'JSONPath', but field 'Arguments' is "
     "only supported for the 'JSONata' QueryLanguage", "/States/S"),
    ({**passing(InputPath="$"), "QueryLanguage": "JSONata"}, SCHEMA,
     "The QueryLanguage is set to 'JSONata', but field 'InputPath' is only supported for the "
     "'JSONPath' QueryLanguage", "/States/S"),
]  # fmt: skip


def test_rule_without_operator_lists_all_operators() -> None:
    """They stand in the order of a set (recorded)."""
    ((code, message, place),) = answer(choice({"Variable": "$.a", "Next": "Z"}))
    assert (code, place) == (SCHEMA, "/States/S/Choices[0]")
    assert message.startswith(
        "This object should have only one of the following fields: "
        "[StringEquals, IsBoolean, StringLessThan, "
    )
    assert message.count(",") == 38


@pytest.mark.parametrize(("document", "code", "message", "place"), [*SHAPES, *MEANINGS])
def test_aws_reports_this(document: Json, code: str, message: str, place: str) -> None:
    """Code, words and location are AWS's, and nothing else is reported."""
    assert answer(document) == [(code, message, place)]


def test_a_workflow_without_any_end_is_refused_without_a_place() -> None:
    """AWS gives no location for it, and accepts the same loop inside a Map (recorded)."""
    loop = machine(A={"Type": "Pass", "Next": "B"}, B={"Type": "Pass", "Next": "A"})
    assert answer(loop) == [("MISSING_END_STATE", "Workflow has no terminal state", None)]
    assert answer(mapping(ItemProcessor=loop)) == []


def test_a_missing_end_comes_last_and_hides_what_is_not_reached() -> None:
    """One diagnostic for a loop beside an unreachable state; targets before the end."""
    loop = {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}}
    for states, codes in (
        ({**loop, "C": {"Type": "Pass", "Next": "A"}}, ["MISSING_END_STATE"]),
        ({**loop, "C": PASS}, [TARGET]),
        ({"A": {"Type": "Pass", "Next": "Gone"}}, [TARGET, "MISSING_END_STATE"]),
    ):
        answer = json.loads(render_aws(check(read(machine(**states)), AWS)))
        assert [each["code"] for each in answer["diagnostics"]] == codes


def test_only_the_aws_profile_speaks_of_aws() -> None:
    """Under the others a diagnostic has nothing of AWS's."""
    document = passing(Comment=5, Next="T")
    assert all(each.aws is None for each in check(read(document), DEFAULT))
    assert all(each.aws for each in check(read(document), AWS).errors)


def test_strictness_is_ours() -> None:
    """A warning that `strict` makes an error is still none that AWS reports."""
    report = check(read(task(Retry=[{"ErrorEquals": ["States.Runtime"]}])), AWS, strict=True)
    (found,) = report.errors
    assert (found.code, found.aws) == ("V-RETRY-09", None)


def test_a_fault_that_aws_words_once_is_reported_once() -> None:
    """Two findings of ours may be one diagnostic of AWS."""
    report = check(read({}), AWS)
    assert [each.code for each in report] == ["V-TOP-02", "V-TOP-03"]
    assert len(answer({})) == 1


def test_text_shows_what_aws_says() -> None:
    """One more line below place and hint."""
    text = '{"StartAt": "A",\n "States": {"A": {"Type": "Pass", "Next": "B"}}}'
    lines = render_text(check(read(text), AWS)).split("\n")
    assert f"  = aws: {TARGET}: Missing 'Next' target: B at /States/A/Next" in lines


@pytest.mark.parametrize(
    ("pointer", "written"),
    [("", "/"), ("/a/0/b", "/a[0]/b"), ("/o/0", "/o/0"), ("/x~1y~0z/1", "/x/y~z/1")],
)
def test_places_are_written_as_aws_does(pointer: str, written: str) -> None:
    """Positions stand in brackets, names as they are."""
    assert location({"a": [{"b": 1}], "o": {"0": 1}}, pointer) == written


def test_aws_severity_of_a_warning() -> None:
    """What AWS only warns of is a warning in its answer too."""
    report = check(read(passing(Parameters={"x.$": "$nobody"})), AWS)
    (found,) = json.loads(render_aws(report))["diagnostics"]
    assert report.of(Severity.WARNING)
    assert (found["severity"], found["code"]) == ("WARNING", "POSSIBLY_UNDEFINED_VARIABLE")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{not json", "INVALID_JSON_DESCRIPTION"),
        ('{"a": 1, "a": 2}', "INVALID_JSON_DESCRIPTION"),
        ("[]", "INVALID_JSON_DESCRIPTION"),
        (" \n", "SCHEMA_VALIDATION_FAILED"),
    ],
)
def test_what_is_no_document_has_a_code_too(text: str, code: str) -> None:
    """A text that cannot be read is refused with a report that AWS's code stands in."""
    with pytest.raises(InvalidDocument) as refused:
        asl.check(text.encode(), profile="aws")
    assert {each.aws.code for each in refused.value.report} == {code}
    with pytest.raises(InvalidDocument) as refused:
        asl.check(text.encode())
    assert {each.aws for each in refused.value.report} == {None}


def test_a_placeholder_that_is_left_says_what_it_waits_for() -> None:
    """It stays text, so it is neither a number nor an ARN."""
    document = task(Resource="${Fn}", TimeoutSeconds="${Limit}")
    hints = {each.pointer: each.hint for each in check(read(document), AWS, for_run=True)}
    assert hints["/States/S/TimeoutSeconds"] == "give the placeholder a value: --var Limit=..."
    assert hints["/States/S/Resource"] == "give the placeholder a value: --var Fn=..."
