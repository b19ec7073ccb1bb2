"""State machines of one template that start each other."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl

START = "arn:aws:states:::states:startExecution.sync:2"


def parent(arn: Any) -> dict[str, Any]:
    state = {
        "Type": "Task",
        "Resource": START,
        "Parameters": {"StateMachineArn": arn, "Input.$": "$"},
        "OutputPath": "$.Output",
        "End": True,
    }
    return {"StartAt": "A", "States": {"A": state}}


CHILD = {"StartAt": "B", "States": {"B": {"Type": "Pass", "Result": 7, "End": True}}}


def cloudformation(**properties: Any) -> str:
    machines = {
        "Parent": {"Definition": parent({"Ref": "Child"})},
        "Child": {"Definition": CHILD, **properties},
        "Broken": {"DefinitionUri": "missing.json"},
    }
    return json.dumps(
        {
            "Resources": {
                name: {"Type": "AWS::StepFunctions::StateMachine", "Properties": each}
                for name, each in machines.items()
            }
        }
    )


SERVERLESS = """\
stepFunctions:
  stateMachines:
    Parent:
      definition: %s
    Child:
      name: the-${self:service}-child
      definition: %s
service: shop
""" % (json.dumps(parent({"Ref": "ChildStepFunctionsStateMachine"})), json.dumps(CHILD))  # noqa: UP031
TERRAFORM = """
resource "aws_sfn_state_machine" "Parent" {{
  definition = jsonencode({})
}}
resource "aws_sfn_state_machine" "Child" {{
  name       = "kid"
  definition = <<EOF
{}
EOF
}}
""".format(
    json.dumps(parent("ARN")).replace('"ARN"', "aws_sfn_state_machine.Child.arn"),
    json.dumps(CHILD),
)
TEMPLATES = {
    "logical id": (cloudformation(), "template.json"),
    "name": (cloudformation(StateMachineName="kid"), "template.json"),
    "name put together": (
        cloudformation(StateMachineName={"Fn::Sub": "${AWS::StackName}-kid"}),
        "template.json",
    ),
    "serverless": (SERVERLESS, "serverless.yml"),
    "terraform": (TERRAFORM, "main.tf"),
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_state_machines_of_a_template_can_start_each_other(case: str) -> None:
    """They are bound by themselves, by the ARNs that stand for them."""
    text, name = TEMPLATES[case]
    document = asl.load(text.encode(), name=name, resource="Parent")
    assert asl.run(document, {}, clock="virtual", profile="aws").output == 7


def test_workflows_option_overrides_a_sibling() -> None:
    """What the caller binds wins."""
    other = {"StartAt": "B", "States": {"B": {"Type": "Pass", "Result": 8, "End": True}}}
    document = asl.load(cloudformation().encode(), resource="Parent")
    assert asl.run(document, {}, workflows={"Child": other}, clock="virtual").output == 8


def test_workflow_option_takes_logical_ids(tmp_path: Path) -> None:
    """`--workflow Child=t.json#Child` is found by the ARN with the name of the state machine."""
    from click.testing import CliRunner

    from asl.cli.main import cli

    file, flow = tmp_path / "t.json", tmp_path / "flow.asl.json"
    file.write_text(cloudformation(StateMachineName="kid"))
    flow.write_text(json.dumps(parent("arn:aws:states:us-east-1:111111111111:stateMachine:kid")))
    words = ["run", str(flow), "--workflow", f"Child={file}#Child"]
    assert CliRunner().invoke(cli, words, prog_name="asl").stdout == "7\n"
