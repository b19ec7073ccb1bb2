"""Templates of SAM and CloudFormation that contain others."""

import json
import textwrap
from pathlib import Path

import pytest

import asl
from asl.sources import load_each
from asl.sources.functions import load_functions

pytestmark = pytest.mark.quick

ROOT = """\
    Transform: AWS::Serverless-2016-10-31
    Resources:
      Work:
        Type: AWS::Serverless::Application
        Properties:
          Location: work/template.yaml
          Parameters: {Stage: test, Table: !Ref Orders}
      Orders: {Type: AWS::DynamoDB::Table, Properties: {TableName: orders}}
      Remote:
        Type: AWS::CloudFormation::Stack
        Properties: {TemplateURL: "https://bucket.s3.amazonaws.com/t.yaml"}
      Main:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            States:
              A: {Type: Task, Resource: !GetAtt Work.Outputs.ChargeArn, Next: B}
              B:
                Type: Pass
                Result:
                  - !GetAtt Work.Outputs.Flow
                  - !GetAtt Remote.Outputs.X
                  - !GetAtt Work.Outputs.No
                End: true
    """
WORK = """\
    Transform: AWS::Serverless-2016-10-31
    Parameters: {Stage: {Type: String}, Table: {Type: String, Default: none}}
    Resources:
      Charge:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub "charge-${Stage}"
          Handler: app.handler
          Runtime: python3.11
          CodeUri: src
          Environment: {Variables: {TABLE: !Ref Table}}
      Inner:
        Type: AWS::StepFunctions::StateMachine
        Properties:
          StateMachineName: !Sub "inner-${Stage}"
          StateMachineType: EXPRESS
          DefinitionString: !Sub |
            {"StartAt": "P",
             "States": {"P": {"Type": "Pass", "Result": "${Table}", "End": true}}}
    Outputs:
      ChargeArn: {Value: !GetAtt Charge.Arn}
      Flow: {Value: !Ref Inner}
    """
ARN = "arn:aws:lambda:us-east-1:111111111111:function:charge-test"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "template.yaml").write_text(textwrap.dedent(WORK))
    path = tmp_path / "template.yaml"
    path.write_text(textwrap.dedent(ROOT))
    return path


def test_outputs_of_nested_stacks(template: Path) -> None:
    states = asl.load(template, resource="Main").value["States"]
    assert states["A"]["Resource"] == ARN
    assert states["B"]["Result"] == [
        "arn:aws:states:us-east-1:111111111111:stateMachine:inner-test",
        "${Remote.Outputs.X}",
        "${Work.Outputs.No}",
    ]


def test_state_machines_of_nested_stacks_have_their_parameters(template: Path) -> None:
    used: set[str] = set()
    found = load_each(template, used=used)
    shown = [(each.deployed, each.express) for each in found if isinstance(each, asl.Document)]
    assert shown == [("Main", False), ("inner-test", True)]
    assert str(template.parent / "work" / "template.yaml") in used
    inner = asl.load(template, resource="Inner")
    assert inner.value["States"]["P"]["Result"] == "orders"


def test_functions_of_nested_stacks(template: Path) -> None:
    (charge,) = load_functions(template, variables={})
    assert (charge.name, charge.arns, charge.environment) == (
        *("charge-test", (ARN,), {"TABLE": "orders"}),
    )
    assert charge.code == str(template.parent / "work" / "src")


def test_assets_of_cdk(tmp_path: Path) -> None:
    url = {"Fn::Join": ["", ["https://s3.", {"Ref": "AWS::URLSuffix"}, "/assets/1.json"]]}
    stack = {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {"TemplateURL": url},
        "Metadata": {"aws:asset:path": "Inner.nested.template.json"},
    }
    definition = {"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"Definition": definition}}
    (tmp_path / "S.template.json").write_text(json.dumps({"Resources": {"Inner": stack}}))
    (tmp_path / "Inner.nested.template.json").write_text(
        json.dumps({"Resources": {"Flow": machine}})
    )
    assert asl.load(tmp_path / "S.template.json").deployed == "Flow"


def test_template_that_contains_itself_is_a_warning(template: Path) -> None:
    work = template.parent / "work" / "template.yaml"
    again = "  Again: {Type: AWS::Serverless::Application, Properties: {Location: template.yaml}}\n"
    work.write_text(work.read_text().replace("Resources:\n", f"Resources:\n{again}"))
    found = asl.check(asl.load(template, resource="Main"))
    assert any("contains itself" in each.message for each in found if each.code == "READ-19")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Resources:\n  A: [1\n b: }", "READ-01"),
        (
            "Resources: {S: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: x.yaml}}}",
            "itself",
        ),
        ("[1]", None),
    ],
)
def test_state_machines_beside_an_unreadable_stack(
    tmp_path: Path, text: str, reason: str | None
) -> None:
    """The fault is a warning; state machines that do not use the stack are read."""
    (tmp_path / "x.yaml").write_text(text)
    flow = "{Type: AWS::StepFunctions::StateMachine, Properties: {Definition: DEFINITION}}"
    definition = "{StartAt: A, States: {A: {Type: Succeed}}}"
    stack = "{Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: x.yaml}}"
    (tmp_path / "template.yaml").write_text(
        f"Resources:\n  Bad: {stack}\n  Flow: {flow.replace('DEFINITION', definition)}\n"
    )
    document = asl.load(tmp_path / "template.yaml")
    assert document.value["StartAt"] == "A"
    found = [each for each in asl.check(document) if each.code == "READ-19"]
    assert [reason in each.message for each in found if reason] == [True] * (reason is not None)


def test_missing_template_has_stand_ins(template: Path) -> None:
    (template.parent / "work" / "template.yaml").unlink()
    document = asl.load(template)
    assert document.value["States"]["A"]["Resource"] == "${Work.Outputs.ChargeArn}"
