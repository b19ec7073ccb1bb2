"""State machines in templates of SAM, CloudFormation and CDK."""

import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

import asl
from asl.core.diagnostics import Severity

MACHINE = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
FN = "arn:aws:lambda:us-east-1:111111111111:function:"
STATES = "arn:aws:states:us-east-1:111111111111:"


def template(machine: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A template with a state machine `Flow`, a function, a table, and more sections."""
    return {
        "Resources": {
            "Flow": {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine},
            "Work": {"Type": "AWS::Serverless::Function"},
            "Plain": {"Type": "AWS::Lambda::Function"},
            "Live": {"Type": "AWS::Lambda::Alias"},
            "Other": {"Type": "AWS::Serverless::StateMachine"},
            "Desk": {"Type": "AWS::StepFunctions::Activity"},
            "Table": {"Type": "AWS::DynamoDB::Table"},
            "Orders": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "orders"}},
            "Queue": {
                "Type": "AWS::SQS::Queue",
                "Properties": {"QueueName": {"Fn::Sub": "jobs-${Stage}"}},
            },
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "news"}},
            "Sizer": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "size"}},
            "Ring": {
                "Type": "AWS::S3::Bucket",
                "Properties": {"BucketName": {"Fn::Join": ["-", [{"Ref": "Ring"}, "x"]]}},
            },
        },
        "Parameters": {
            "Stage": {"Type": "String", "Default": "dev"},
            "Count": {"Type": "Number", "Default": 3},
            "Zones": {"Type": "CommaDelimitedList", "Default": "a, b"},
            "Secret": {"Type": "String"},
        },
        "Mappings": {"Limits": {"dev": {"Size": "7", "Names": ["x", "y"]}}},
        "Conditions": {
            "IsDev": {"Fn::Equals": [{"Ref": "Stage"}, "dev"]},
            "IsProd": {"Fn::Not": [{"Condition": "IsDev"}]},
            "Both": {"Fn::And": [{"Condition": "IsDev"}, {"Condition": "IsProd"}]},
            "One": {"Fn::Or": [{"Condition": "IsDev"}, {"Condition": "IsProd"}]},
        },
        **sections,
    }


def passing(result: Any) -> dict[str, Any]:
    return {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": result, "End": True}}}


def result(document: asl.Document) -> Any:
    return document.value["States"]["A"]["Result"]


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "default of a parameter": ({"Ref": "Stage"}, "dev"),
    "a number parameter is text": ({"Ref": "Count"}, "3"),
    "list parameter": ({"Ref": "Zones"}, ["a", "b"]),
    "parameter without default": ({"Ref": "Secret"}, "${Secret}"),
    "region": ({"Ref": "AWS::Region"}, "us-east-1"),
    "function by name": ({"Ref": "Work"}, "Work"),
    "function by ARN": ({"Fn::GetAtt": ["Work", "Arn"]}, f"{FN}Work"),
    "function in one word": ({"Fn::GetAtt": "Plain.Arn"}, f"{FN}Plain"),
    "alias": ({"Ref": "Live"}, f"{FN}Live"),
    "version that SAM makes": ({"Ref": "Work.Version"}, f"{FN}Work"),
    "state machine": ({"Ref": "Other"}, f"{STATES}stateMachine:Other"),
    "name of a state machine": ({"Fn::GetAtt": ["Other", "Name"]}, "Other"),
    "activity": ({"Ref": "Desk"}, f"{STATES}activity:Desk"),
    "table": ({"Ref": "Table"}, "${Table}"),
    "attribute of a table": ({"Fn::GetAtt": ["Table", "StreamArn"]}, "${Table.StreamArn}"),
    "table with a name": ({"Ref": "Orders"}, "orders"),
    "ARN of a table": (
        {"Fn::GetAtt": ["Orders", "Arn"]},
        "arn:aws:dynamodb:us-east-1:111111111111:table/orders",
    ),
    "stream of a table with a name": (
        {"Fn::GetAtt": ["Orders", "StreamArn"]},
        "${Orders.StreamArn}",
    ),
    "queue": ({"Ref": "Queue"}, "https://sqs.us-east-1.amazonaws.com/111111111111/jobs-dev"),
    "ARN of a queue": (
        {"Fn::GetAtt": ["Queue", "Arn"]},
        "arn:aws:sqs:us-east-1:111111111111:jobs-dev",
    ),
    "name of a queue": ({"Fn::GetAtt": ["Queue", "QueueName"]}, "jobs-dev"),
    "topic": ({"Ref": "Topic"}, "arn:aws:sns:us-east-1:111111111111:news"),
    "function with a name": ({"Fn::GetAtt": ["Sizer", "Arn"]}, f"{FN}size"),
    "its name": ({"Ref": "Sizer"}, "size"),
    "name out of itself": ({"Ref": "Ring"}, "${Ring}-x"),
    "sub": ({"Fn::Sub": "${Stage}-${AWS::Region}-${Work.Arn}"}, f"dev-us-east-1-{FN}Work"),
    "sub with own values": (
        {"Fn::Sub": ["${a}-${Stage}-${!b}", {"a": {"Ref": "Work"}}]},
        "Work-dev-${b}",
    ),
    "sub leaves the context object alone": ({"Fn::Sub": "${$$.State.Name}"}, "${$$.State.Name}"),
    "join": ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}, 1]]}, "a-dev-1"),
    "join of a list": ({"Fn::Join": ["+", {"Ref": "Zones"}]}, "a+b"),
    "split": ({"Fn::Split": ["-", "a-b"]}, ["a", "b"]),
    "select": ({"Fn::Select": ["1", {"Fn::Split": ["-", "a-b"]}]}, "b"),
    "map": ({"Fn::FindInMap": ["Limits", {"Ref": "Stage"}, "Size"]}, "7"),
    "list of a map": ({"Fn::FindInMap": ["Limits", "dev", "Names"]}, ["x", "y"]),
    "default of a map": ({"Fn::FindInMap": ["Limits", "no", "Size", {"DefaultValue": "1"}]}, "1"),
    "if": ({"Fn::If": ["IsDev", "yes", "no"]}, "yes"),
    "if not": ({"Fn::If": ["IsProd", "yes", "no"]}, "no"),
    "and": ({"Fn::If": ["Both", 1, 2]}, 2),
    "or": ({"Fn::If": ["One", 1, 2]}, 1),
    "no value": ([1, {"Fn::If": ["IsDev", {"Ref": "AWS::NoValue"}, 2]}], [1]),
    "no member": ({"a": 1, "b": {"Ref": "AWS::NoValue"}}, {"a": 1}),
    "base64": ({"Fn::Base64": {"Ref": "Stage"}}, "ZGV2"),
    "length": ({"Fn::Length": {"Ref": "Zones"}}, 2),
    "json": ({"Fn::ToJsonString": {"a": {"Ref": "Stage"}}}, '{"a":"dev"}'),
    "import": ({"Fn::ImportValue": {"Fn::Sub": "${Stage}-arn"}}, "${dev-arn}"),
    "secret": ("{{resolve:ssm:/a/b}}", "{{resolve:ssm:/a/b}}"),
    "nested": ({"a": [{"b": {"Ref": "Stage"}}]}, {"a": [{"b": "dev"}]}),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_in_a_definition_object(case: str) -> None:
    """In a definition that is an object every function has its value, or a stand-in."""
    written, expected = FUNCTIONS[case]
    document = asl.load(template({"Definition": passing(written)}), resource="Flow")
    assert result(document) == expected
    assert asl.check(document).ok


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_in_a_definition_string(case: str) -> None:
    """In a definition that is a text they are worked out before it is read."""
    written, expected = FUNCTIONS[case]
    if type(expected) is not str:
        return
    before, after = json.dumps(passing("@")).split("@")
    machine = {"DefinitionString": {"Fn::Join": ["", [before, written, after]]}}
    assert result(asl.load(template(machine), resource="Flow")) == expected


def test_yaml_tags_of_functions() -> None:
    """Tags mean what the functions of the same names do."""
    short = """
    Resources:
      Work: {Type: AWS::Lambda::Function}
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            States:
              A:
                Type: Pass
                Result:
                  - !Ref Work
                  - !GetAtt Work.Arn
                  - !GetAtt [Work, Arn]
                  - !Sub "${Work}-x"
                  - !Sub ["${a}", {a: !Ref Work}]
                  - !Join [",", [a, !Select [1, !Split ["-", "p-q"]]]]
                  - !If [Never, 1, !FindInMap [M, k, v]]
                  - !ImportValue out
                  - !Base64 a
                End: yes
    Mappings: {M: {k: {v: found}}}
    Conditions:
      Never: !Not [!Or [!Condition Yes, !Equals [a, b]]]
      Yes: !And [!Equals [a, a], !Equals [b, b]]
    """
    assert result(asl.load(dedent(short))) == [
        "Work", f"{FN}Work", f"{FN}Work", "Work-x", "Work", "a,q", "found", "${out}", "YQ=="
    ]  # fmt: skip


def test_variables_override_the_template() -> None:
    """A value may be given for a parameter, a pseudo parameter, a reference, a substitution."""
    written = [{"Ref": "Stage"}, {"Ref": "AWS::Region"}, {"Fn::GetAtt": ["Work", "Arn"]}, "${Sub}"]
    machine = {"Definition": passing(written), "DefinitionSubstitutions": {"Sub": "own"}}
    values = {"Stage": "prod", "AWS::Region": "eu-west-1", "Work.Arn": "arn:mine"}
    document = asl.load(template(machine), resource="Flow", variables=values)
    assert result(document) == ["prod", "eu-west-1", "arn:mine", "own"]
    assert document.findings == ()
    document = asl.load(template(machine), resource="Flow", variables={"Sub": "given"})
    assert result(document)[3] == "given"


def test_conditions_use_variables() -> None:
    """What a condition chooses depends on the values that are given."""
    machine = {"Definition": passing({"Fn::If": ["IsProd", "p", "d"]})}
    document = asl.load(template(machine), resource="Flow", variables={"Stage": "prod"})
    assert result(document) == "p"


def test_definition_substitutions() -> None:
    """DefinitionSubstitutions replace placeholders, also in keys, and may refer to each other."""
    machine = {
        "Definition": passing({"${Key}": "${Arn}/${Count}/${On}"}),
        "DefinitionSubstitutions": {
            "Arn": "${Base}:x",
            "Base": {"Fn::GetAtt": ["Work", "Arn"]},
            "Count": 3,
            "On": True,
            "Key": "k",
        },
    }
    assert result(asl.load(template(machine), resource="Flow")) == {"k": f"{FN}Work:x/3/true"}


def test_substitution_with_the_name_of_its_reference() -> None:
    """`Table: !Ref Table` is how most people write it."""
    machine = {
        "DefinitionString": json.dumps(passing("${Table}")),
        "DefinitionSubstitutions": {"Table": {"Ref": "Table"}},
    }
    document = asl.load(template(machine), resource="Flow")
    assert result(document) == "${Table}"
    assert [(each.code, each.pointer) for each in document.findings] == [
        ("READ-12", "/States/A/Result")
    ]


def test_placeholder_of_a_number_without_quotes() -> None:
    """A number may be written as a placeholder without quotes."""
    text = json.dumps(passing("@")).replace('"@"', "${N}")
    machine = {"DefinitionString": text, "DefinitionSubstitutions": {"N": {"Ref": "Count"}}}
    assert result(asl.load(template(machine), resource="Flow")) == 3


def test_stand_in_is_reported_once() -> None:
    """Each thing that only a deployment knows is a piece of information, where it is used first."""
    written = [{"Ref": "Table"}, {"Ref": "Table"}, {"Fn::Sub": "x ${Work.Arn}"}]
    document = asl.load(template({"Definition": passing(written)}), resource="Flow")
    found = asl.check(document).of(Severity.INFO)
    assert [(each.code, each.pointer, each.hint) for each in found] == [
        ("READ-12", "/States/A/Result/0", "give it a value: --var Table=..."),
        ("READ-12", "/States/A/Result/2", "give it a value: --var Work.Arn=..."),
    ]


def test_name_in_the_template_has_no_stand_in() -> None:
    """No stand-in, unless the place of a deployment belongs to it."""
    written = [{"Ref": "Orders"}, {"Fn::GetAtt": ["Queue", "QueueName"]}, {"Ref": "Topic"}]
    document = asl.load(template({"Definition": passing(written)}), resource="Flow")
    assert [each.pointer for each in asl.check(document).of(Severity.INFO)] == [
        "/States/A/Result/2"
    ]


def test_unknown_reference_is_a_warning() -> None:
    """A misspelt name is found; a macro may make resources that are not written down."""
    machine = {"Definition": passing([{"Ref": "Tabel"}, {"Fn::GetAtt": ["WorkRole", "Arn"]}])}
    codes = [
        (each.code, each.hint)
        for each in asl.load(template(machine), resource="Flow").findings
        if each.code == "READ-17"
    ]
    assert codes == [("READ-17", "did you mean 'Table'?"), ("READ-17", None)]
    transformed = template(machine, Transform="AWS::Serverless-2016-10-31")
    codes = [
        (each.code, each.hint)
        for each in asl.load(transformed, resource="Flow").findings
        if each.code == "READ-17"
    ]
    assert codes == [("READ-17", "did you mean 'Table'?")]


WRONG: dict[str, tuple[Any, str]] = {
    "no list": ({"Fn::Join": "a"}, "an array of 2 arguments is expected here"),
    "too many": ({"Fn::Join": ["a", [], 1]}, "an array of 2 arguments is expected here"),
    "an object in a text": ({"Fn::Join": ["", [{"a": 1}]]}, "a string is expected here"),
    "delimiter": ({"Fn::Join": [{"a": 1}, []]}, "the delimiter must be a string"),
    "empty delimiter": ({"Fn::Split": ["", "a"]}, "the delimiter is empty"),
    "index": ({"Fn::Select": [2, ["a"]]}, "there is no item '2' of 1"),
    "no array": ({"Fn::Select": [0, "a"]}, "an array is expected here"),
    "map": ({"Fn::FindInMap": ["Limits", "prod", "Size"]}, "the mapping has no 'prod'"),
    "condition": ({"Fn::If": ["IsDv", 1, 2]}, "there is no condition 'IsDv'"),
    "ref": ({"Ref": ["Stage"]}, "Ref takes the name of a parameter or a resource"),
    "attribute": ({"Fn::GetAtt": "Work"}, "Fn::GetAtt takes a resource and an attribute"),
    "sub": ({"Fn::Sub": ["${a}", "b"]}, "an object with values is expected here"),
    "function": ({"Fn::Joinn": ["", ["a"]]}, "there is no function Fn::Joinn"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_arguments_of_functions(case: str) -> None:
    """A function with arguments that it does not take is an error with its place."""
    written, message = WRONG[case]
    text = json.dumps(template({"Definition": passing(written)}), indent=1)
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(text, resource="Flow")
    (error,) = refusal.value.report
    assert error.code == "READ-16"
    assert error.message.startswith(message)
    assert error.line is not None
    begin = text.index('"Result"')
    assert begin < len("\n".join(text.split("\n")[: error.line])) < text.index('"Work"') + 20


CIRCLES = {
    "conditions": (
        {"Definition": passing({"Fn::If": ["A", 1, 2]})},
        {"Conditions": {"A": {"Fn::Not": [{"Condition": "B"}]}, "B": {"Condition": "A"}}},
        "the condition 'A' depends on itself",
    ),
    "substitutions": (
        {
            "DefinitionString": json.dumps(passing("${X}")),
            "DefinitionSubstitutions": {"X": "a${Y}", "Y": "b${X}"},
        },
        {},
        "the substitutions X and Y refer to each other",
    ),
}


@pytest.mark.parametrize("case", CIRCLES)
def test_circular_references_are_refused(case: str) -> None:
    """Values that refer to each other end in an error."""
    machine, sections, message = CIRCLES[case]
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(template(machine, **sections), resource="Flow")
    (error,) = refusal.value.report
    assert (error.code, error.message) == ("READ-16", message)


MISSING: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "none": ({"RoleArn": "r"}, "Flow has no definition", "give it one of Definition, "),
    "misspelt": ({"DefintionString": "{}"}, "Flow has no definition", "did you mean 'DefinitionS"),
    "two": (
        {"Definition": MACHINE, "DefinitionUri": "a.json"},
        "Flow has Definition and DefinitionUri",
        "keep one of them",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_unavailable_definition_is_an_error(case: str) -> None:
    """The error says what is missing and what to do."""
    machine, message, hint = MISSING[case]
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(template(machine), resource="Flow")
    (error,) = refusal.value.report
    assert (error.code, error.message) == ("READ-14", message)
    assert (error.hint or "").startswith(hint or "")


ELSEWHERE = {
    "bucket": (
        {"DefinitionS3Location": {"Bucket": "b", "Key": "k"}},
        "the definition of Flow is in an S3 bucket",
    ),
    "uri": ({"DefinitionUri": "s3://b/k"}, "'s3://b/k' is not a local file"),
    "path": (
        {"DefinitionUri": {"Fn::Sub": "${Folder}/flow.json"}},
        "the path '${Folder}/flow.json' is known only after deployment",
    ),
    "macro": (
        {"Definition": {"Fn::Transform": {"Name": "Mine"}}},
        "the macro 'Mine' runs only in a deployment",
    ),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_definition_outside_the_repository_is_information_for_check(case: str) -> None:
    """Nothing is wrong with the template; nothing can be run from it either."""
    machine, message = ELSEWHERE[case]
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(template(machine), resource="Flow")
    assert [(each.code, each.message) for each in refusal.value.report] == [("READ-18", message)]
    assert refusal.value.report.ok


UNKNOWN = {
    "account of a stack": {"Fn::Select": [4, {"Fn::Split": [":", {"Ref": "AWS::StackId"}]}]},
    "piece of an attribute": {
        "Fn::Select": [5, {"Fn::Split": [":", {"Fn::GetAtt": ["Elsewhere", "Arn"]}]}]
    },
    "zone": {"Fn::Select": [0, {"Fn::GetAZs": {"Ref": "AWS::Region"}}]},
    "network": {"Fn::Select": [1, {"Fn::Cidr": [{"Ref": "Network"}, 4, 8]}]},
    "mapping": {"Fn::FindInMap": ["Regions", {"Ref": "AWS::Region"}, "size"]},
    "list": {"Fn::Join": [",", {"Ref": "Elsewhere"}]},
    "macro": {"Fn::Transform": {"Name": "Mine"}},
    "notifications": {"Fn::Select": [0, {"Ref": "AWS::NotificationARNs"}]},
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_function_of_an_unknown_value_has_a_stand_in(case: str) -> None:
    """What only a deployment knows has a stand-in, also where a function takes it apart."""
    machine = {"Definition": passing(UNKNOWN[case])}
    document = asl.load(
        {**template(machine), "Mappings": {"Regions": {"eu-west-9": {"size": 1}}}}, resource="Flow"
    )
    assert {each.code for each in asl.check(document)} <= {"READ-12", "READ-17"}


def test_stack_id_has_the_form_of_an_arn() -> None:
    """The stand-in has the form of a stack's ARN, which ends with a UUID."""
    uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    machine = {"Definition": passing({"Fn::Select": [4, {"Fn::Split": ["-", uuid]}]})}
    document = asl.load(template(machine), resource="Flow")
    assert document.value["States"]["A"]["Result"] == "1" * 12


def test_definition_is_an_object_and_definition_string_a_string() -> None:
    """AWS refuses both as well; the hint names the other property."""
    for machine, hint in (
        ({"Definition": json.dumps(MACHINE)}, "use DefinitionString for a string"),
        ({"DefinitionString": MACHINE}, "use Definition for an object"),
    ):
        with pytest.raises(asl.InvalidDocument) as refusal:
            asl.load(template(machine), resource="Flow")
        (error,) = refusal.value.report
        assert (error.code, error.hint) == ("READ-16", hint)


# Places ------------------------------------------------------------------------------------------

BODY = """\
{
  "StartAt": "A",
  "States": {
    "A": {
      "Type": "Pass", "Comment": "é \\" ${Long}", "Nxt": "B",
      "End": true
    }
  }
}
"""


SUB = ("literal with Sub", "long form")
"""Where `${Long}` is a reference and no placeholder of the definition."""


def embedded(style: str) -> str:
    """A template in YAML or JSON whose DefinitionString is the text above, in many styles."""
    head = "Resources:\n  Flow:\n    Type: AWS::StepFunctions::StateMachine\n    Properties:\n"
    tail = "      DefinitionSubstitutions: {Long: " + "long" * 50 + "}\n"
    block = indent(BODY, " " * 10)
    match style:
        case "literal":
            return f"{head}      DefinitionString: |\n{block}{tail}"
        case "literal with Sub":
            return f"{head}      DefinitionString: !Sub |-\n{block}{tail}"
        case "Sub with values":
            return (
                f"{head}      DefinitionString: !Sub\n        - |\n{block}        - {{Long: x}}\n"
            )
        case "folded":
            return f"{head}      DefinitionString: >-\n{block}{tail}"
        case "single quotes":
            return f"{head}      DefinitionString: '\n{block}'\n{tail}"
        case "double quotes":
            return f"{head}      DefinitionString: {json.dumps(BODY)}\n{tail}"
        case "long form":
            return f"{head}      DefinitionString:\n        Fn::Sub: |\n{block}{tail}"
    machine = {"DefinitionString": BODY, "DefinitionSubstitutions": {"Long": "long" * 50}}
    if style == "JSON with Join":
        head, rest = BODY.split("${Long}")
        machine = {"DefinitionString": {"Fn::Join": ["", [head, {"Ref": "AWS::StackId"}, rest]]}}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    return json.dumps({"Resources": {"Flow": resource}}, indent=2)


@pytest.mark.parametrize(
    "style",
    [
        "literal", "literal with Sub", "Sub with values", "folded", "single quotes",
        "double quotes", "long form", "JSON", "JSON with Join",
    ],
)  # fmt: skip
def test_positions_in_a_definition_string(style: str) -> None:
    """A finding points to the very characters, however the definition is written there."""
    text = embedded(style)
    document = asl.load(text, name="template", variables={"Long": ""} if style in SUB else {})
    (warning,) = asl.check(document).warnings
    assert warning.code == "V-TOP-09"
    assert warning.line is not None
    assert warning.column is not None
    assert text.split("\n")[warning.line - 1][warning.column - 1 :].lstrip('\\"').startswith("Nxt")
    assert document.source.text == text


def test_positions_in_a_definition_object() -> None:
    """So are those of a definition that is an object, functions included."""
    text = dedent("""\
    Resources:
      Work: {Type: AWS::Lambda::Function}
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            States:
              A:
                Type: Task
                Resource: !GetAtt Work.Arn
                Nxt: B
                End: true
    """)
    report = asl.check(asl.load(text, name="t.yaml"))
    assert [(each.code, each.line, each.column) for each in report] == [
        ("READ-12", 11, 23),
        ("V-TOP-09", 12, 13),
    ]
    assert {each.file for each in report} == {"t.yaml"}


def test_position_of_a_syntax_error_in_a_definition_string() -> None:
    """What is wrong with the JSON of a DefinitionString is shown where it stands."""
    text = embedded("literal").replace('"B",', '"B"')
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(text)
    (error,) = refusal.value.report
    assert (error.code, error.line) == ("READ-01", 10)
    assert error.hint == "separate members with ','"


# Files -------------------------------------------------------------------------------------------

SAM = """\
Resources:
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: {uri}
      DefinitionSubstitutions: {{Seconds: 5}}
"""


def sam(folder: Path, uri: str) -> Path:
    file = folder / "template.yaml"
    file.write_text(SAM.format(uri=uri))
    return file


def test_definition_uri(tmp_path: Path) -> None:
    """DefinitionUri leads to the file; its findings are placed in it, whatever its format."""
    (tmp_path / "flows").mkdir()
    wait = {
        "StartAt": "A",
        "States": {"A": {"Type": "Wait", "Seconds": "@", "Nxt": 1, "End": True}},
    }
    text = json.dumps(wait, indent=1).replace('"@"', "${Seconds}")
    (tmp_path / "flows" / "a.asl.json").write_text(text)
    (tmp_path / "flows" / "a.asl.yaml").write_text(text)
    for uri in ("flows/a.asl.json", "./flows/a.asl.yaml"):
        document = asl.load(sam(tmp_path, uri))
        assert document.value["States"]["A"]["Seconds"] == 5
        assert document.name == "Flow"
        (warning,) = asl.check(document)
        assert (warning.code, warning.line) == ("V-TOP-09", 7)
        assert warning.file == str(tmp_path / uri.removeprefix("./"))


def test_files_outside_the_root_are_not_read(tmp_path: Path) -> None:
    """A template leads to files below its own folder, or below the one that is named."""
    (tmp_path / "infra").mkdir()
    (tmp_path / "flow.json").write_text(json.dumps(MACHINE))
    (tmp_path / "infra" / "link.json").symlink_to(tmp_path / "flow.json")
    for uri in ("../flow.json", str(tmp_path / "flow.json"), "link.json"):
        file = sam(tmp_path / "infra", uri)
        with pytest.raises(asl.InvalidDocument) as refusal:
            asl.load(file)
        (error,) = refusal.value.report
        assert (error.code, error.line, error.column) == ("READ-14", 5, 22)
        assert "--root" in (error.hint or "")
        assert asl.load(file, root=str(tmp_path)).value == MACHINE


def test_missing_file_is_an_error_at_its_name(tmp_path: Path) -> None:
    """The error stands where the file is named."""
    (tmp_path / "order.asl.json").write_text("{}")
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(sam(tmp_path, "ordre.asl.json"))
    (error,) = refusal.value.report
    assert (error.code, error.line) == ("READ-14", 5)
    assert "did you mean 'order.asl.json'?" in error.message


def test_template_without_a_file_reads_no_files() -> None:
    """Text that came from anywhere cannot make this read a file."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(SAM.format(uri="/etc/passwd"))
    assert [each.code for each in refusal.value.report] == ["READ-14"]


def test_aws_include(tmp_path: Path) -> None:
    """AWS::Include may hold the whole definition or a part of it, if it names a local file."""
    include = {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "m.json"}}}
    file = tmp_path / "t.json"
    (tmp_path / "m.json").write_text(json.dumps(MACHINE))
    for machine in ({"Definition": include}, {"DefinitionString": include}):
        file.write_text(json.dumps(template(machine)))
        assert asl.load(file, resource="Flow").value == MACHINE
    (tmp_path / "m.json").write_text('["x"]')
    file.write_text(json.dumps(template({"Definition": passing(include)})))
    assert result(asl.load(file, resource="Flow")) == ["x"]


def test_asset_of_a_cdk_stack(tmp_path: Path) -> None:
    """A definition that CDK uploads lies beside the template that it has made."""
    (tmp_path / "asset.0f.json").write_text(json.dumps(MACHINE))
    location = {"Bucket": {"Fn::Sub": "assets-${AWS::AccountId}"}, "Key": "0f.json"}
    file = tmp_path / "S.template.json"
    file.write_text(json.dumps(template({"DefinitionS3Location": location})))
    assert asl.load(file, resource="Flow").value == MACHINE


# Choosing ----------------------------------------------------------------------------------------


def several() -> dict[str, Any]:
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"Definition": MACHINE}}
    path = {"Metadata": {"aws:cdk:path": "Stack/Order/Resource"}}
    return {"Resources": {"Order5B2D9E77": {**machine, **path}, "Refund": machine}}


def test_resource_is_a_logical_name_or_a_cdk_name() -> None:
    """A resource is named by its logical name, or by what it is called in CDK."""
    assert asl.load(several(), resource="Refund").name == "Refund"
    for name in ("Order5B2D9E77", "Order", "Stack/Order"):
        assert asl.load(several(), resource=name).name == "Order5B2D9E77"


def test_single_state_machine_needs_no_resource() -> None:
    """With one state machine in the template there is nothing to choose."""
    only = several()
    del only["Resources"]["Refund"]
    assert asl.load(only).name == "Order5B2D9E77"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (None, "has 2 state machines: name one with --resource (Order5B2D9E77, Refund)"),
        ("Refnud", "has no state machine 'Refnud' (did you mean 'Refund'?)"),
        ("Nothing", "has no state machine 'Nothing' (there are Order5B2D9E77, Refund)"),
    ],
)
def test_unknown_resource_lists_the_state_machines(resource: str | None, message: str) -> None:
    """The caller is told what can be chosen."""
    with pytest.raises(asl.AslError) as error:
        asl.load(several(), resource=resource)
    assert message in str(error.value)


def test_template_without_state_machines_is_an_error() -> None:
    """There must be something to run."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load({"Resources": {"A": {"Type": "AWS::S3::Bucket"}}})
    assert [each.code for each in refusal.value.report] == ["READ-14"]


def test_document_with_a_member_resources() -> None:
    """What has States is a document, whatever else it has."""
    text = '{"StartAt": "A", "Resources": {}, "States": {"A": {"Type": "Succeed"}}}'
    assert asl.load(text).resource is None
    named = {"StartAt": "Resources", "States": {"Resources": {"Type": "Succeed"}}}
    assert asl.load(json.dumps(named)).resource is None


def test_templates_are_yaml_1_1() -> None:
    """YAML 1.1: merge keys, words for booleans, keys that are numbers, in unrelated parts too."""
    text = """\
    Common: &common {Runtime: python3.12, Timeout: 3}
    Mappings: {Accounts: {111111111111: {Name: me}}}
    Resources:
      Work:
        Type: AWS::Lambda::Function
        Properties: {<<: *common, Timeout: 5}
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            States:
              A: {Type: Pass, Result: !FindInMap [Accounts, !Ref "AWS::AccountId", Name], End: Yes}
    """
    document = asl.load(dedent(text))
    assert document.value["States"]["A"] == {"Type": "Pass", "Result": "me", "End": True}


def test_duplicate_key_elsewhere_in_a_template_is_a_warning() -> None:
    """CloudFormation takes the last one, and the state machines are read."""
    text = """\
    Resources:
      Table:
        Type: AWS::DynamoDB::Table
        Type: AWS::DynamoDB::GlobalTable
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            StartAt: B
            States:
              B: { Type: Pass, End: true }
    """
    document = asl.load(dedent(text))
    assert document.value["StartAt"] == "B"
    messages = [(each.code, each.message) for each in asl.check(document)]
    assert messages == [
        (
            "READ-19",
            "line 4 of the template: the key 'Type' is given twice, the last one counts",
        ),
        (
            "READ-19",
            "line 10 of the template: the key 'StartAt' is given twice, the last one counts",
        ),
    ]


def test_duplicate_key_in_a_json_template_is_a_warning() -> None:
    """JSON templates are taken as YAML ones are."""
    text = json.dumps(template({"Definition": MACHINE}))
    text = text.replace('{"Resources":', '{"Description": "a", "Description": "b", "Resources":')
    document = asl.load(text, resource="Flow")
    assert document.value == MACHINE
    assert [each.code for each in asl.check(document)] == ["READ-19"]


def test_unknown_tag_in_another_resource_leaves_the_definition_readable() -> None:
    """A fault of the state machine itself is an error, one elsewhere a warning."""
    text = """\
    Resources:
      Table: { Type: "AWS::DynamoDB::Table", Properties: !Other x }
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties: { Definition: { StartAt: A, States: { A: { Type: Pass, End: true } } } }
      Wrong:
        Type: AWS::Serverless::StateMachine
        Properties: { Definition: !Mine { StartAt: A } }
    """
    found = asl.load(dedent(text), resource="Flow")
    assert {each.code for each in asl.check(found)} == {"READ-19"}
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(dedent(text), resource="Wrong")
    assert [each.code for each in refusal.value.report] == ["READ-07"]


def test_definition_file_that_is_not_json_is_read_as_yaml(tmp_path: Path) -> None:
    """CloudFormation does so, whatever the file is called."""
    text = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": ${N}, "End": true},}}'
    (tmp_path / "flow.json").write_text(text)
    file = tmp_path / "template.json"
    machine = {"DefinitionUri": "flow.json", "DefinitionSubstitutions": {"N": "5"}}
    file.write_text(json.dumps(template(machine)))
    document = asl.load(file, resource="Flow")
    assert document.value["States"]["A"]["Result"] == 5
    assert [each.code for each in asl.check(document)] == ["READ-19"]
    (tmp_path / "flow.json").write_text("{StartAt: [}")
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(file, resource="Flow")
    assert [each.code for each in refusal.value.report] == ["READ-01"]


def test_logical_id_as_resource_has_a_hint() -> None:
    """Within a definition a name is only a text."""
    state = {"Type": "Task", "Resource": "Work", "End": True}
    machine = {"Definition": {"StartAt": "A", "States": {"A": state}}}
    (found,) = asl.check(asl.load(template(machine), resource="Flow"), profile="aws").errors
    assert (found.code, found.hint) == ("V-TASK-02", "write !GetAtt Work.Arn")


def test_condition_of_the_state_machine_is_assumed() -> None:
    """Otherwise there would be no such state machine."""
    given = template(
        {"Definition": passing({"Fn::If": ["IsLive", "yes", {"Ref": "AWS::NoValue"}]})},
        Conditions={"IsLive": {"Fn::Equals": ["a", "b"]}},
    )
    given["Resources"]["Flow"]["Condition"] = "IsLive"
    document = asl.load(given, resource="Flow")
    assert document.value["States"]["A"]["Result"] == "yes"


def test_versions_and_aliases() -> None:
    """Their ARNs begin with that of the state machine, which is deployed with them."""
    text = """
Resources:
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: flow
      AutoPublishAlias: auto
      Definition:
        StartAt: A
        States: {A: {Type: Pass, Result: [!Ref Version, !Ref Live, !Ref Stray], End: true}}
  Version:
    Type: AWS::StepFunctions::StateMachineVersion
    Properties: {StateMachineArn: !Ref Flow}
  Live:
    Type: AWS::StepFunctions::StateMachineAlias
    Properties: {Name: live, DeploymentPreference: {StateMachineVersionArn: !Ref Version}}
  Stray: {Type: AWS::StepFunctions::StateMachineAlias, Properties: {Name: stray}}
"""
    document = asl.load(text)
    machine = "arn:aws:states:us-east-1:111111111111:stateMachine:flow"
    assert document.qualifiers == ("auto", "1", "live")
    found = document.value["States"]["A"]["Result"]
    assert found == [f"{machine}:1", f"{machine}:live", "${Stray}"]


def test_account_and_region_of_arns() -> None:
    variables = {"AWS::Region": "cn-north-1", "AWS::AccountId": "2", "AWS::Partition": "aws-cn"}
    text = """
Resources:
  Work: {Type: AWS::Lambda::Function}
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      Definition: {StartAt: A, States: {A: {Type: Task, Resource: !GetAtt Work.Arn, End: true}}}
"""
    document = asl.load(text, variables=variables)
    assert (
        document.value["States"]["A"]["Resource"] == "arn:aws-cn:lambda:cn-north-1:2:function:Work"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"Type": [1]},
        {"Type": {"a": 1}},
        {
            "Type": "AWS::StepFunctions::StateMachineAlias",
            "Properties": {"RoutingConfiguration": [{"StateMachineVersionArn": [1]}]},
        },
        {"Type": "AWS::StepFunctions::StateMachineVersion", "Properties": {"StateMachineArn": [1]}},
        {
            "Type": "AWS::Events::Rule",
            "Properties": {"ScheduleExpression": [1], "Targets": [{"Arn": [1]}]},
        },
        {"Type": "AWS::Scheduler::Schedule", "Properties": {"Target": {"Arn": {"Fn::Sub": []}}}},
    ],
)
def test_fault_of_another_resource(other: dict[str, Any]) -> None:
    """A state machine that does not use the resource is read."""
    flow = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"Definition": flow}}
    template = {"Resources": {"Other": other, "Flow": machine}}
    assert asl.load(json.dumps(template).encode(), name="t.json").value == flow
