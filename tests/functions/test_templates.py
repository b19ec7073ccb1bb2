"""Functions of projects in their layouts: SAM, CloudFormation, CDK, Serverless, Terraform."""

import json
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.errors import AslError
from asl.functions import LocalFunctions
from asl.sources.functions import load_functions
from asl.sources.lambda_function import LambdaFunction

pytestmark = pytest.mark.quick

ARN = "arn:aws:lambda:us-east-1:111111111111:function:"
Project = Callable[..., Path]
HANDLER = "import os\ndef handler(event, context):\n    return [event, os.environ.get('STAGE')]\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Write files and return the path of the first."""
    (tmp_path / ".git").mkdir()

    def write(**files: str) -> Path:
        paths = []
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
            paths.append(path)
        return paths[0]

    return write


def functions_of(path: Path, **variables: Any) -> dict[str, LambdaFunction]:
    return {each.logical: each for each in load_functions(path, variables=variables)}


def run_with_functions(path: Path, event: Any) -> Any:
    with LocalFunctions(load_functions(path, variables={})) as functions:
        result = asl.run(asl.load(path), event, resources=functions.resources)
    assert result.status == "SUCCEEDED", result.cause
    return result.output


SAM = """\
    Transform: AWS::Serverless-2016-10-31
    Parameters:
      Stage: {Type: String, Default: test}
    Globals:
      Function:
        Runtime: python3.11
        Timeout: 30
        Layers: [!Ref Shared]
        Environment: {Variables: {STAGE: !Ref Stage, LIMIT: 10}}
    Resources:
      Shared: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer/}}
      Charge:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub "charge-${Stage}"
          CodeUri: src/charge/
          Handler: app.handler
          MemorySize: 256
          Layers: ["arn:aws:lambda:us-east-1:1:layer:Powertools:3"]
          Environment: {Variables: {TABLE: !Ref Orders, LIMIT: 20}}
      Live:
        Type: AWS::Lambda::Alias
        Properties: {FunctionName: !Ref Charge, FunctionVersion: "1", Name: live}
      Inline:
        Type: AWS::Serverless::Function
        Properties:
          Handler: index.handler
          InlineCode: |
            def handler(event, context):
                return {"got": event}
      Image: {Type: AWS::Serverless::Function, Properties: {PackageType: Image}}
      Orders: {Type: AWS::DynamoDB::Table}
      Flow:
        Type: AWS::Serverless::StateMachine
        Properties:
          Definition:
            StartAt: A
            States:
              A: {Type: Task, Resource: !Ref Live, Next: B}
              B:
                Type: Task
                Resource: arn:aws:states:::lambda:invoke
                Parameters: {FunctionName: !GetAtt Inline.Arn, "Payload.$": $}
                OutputPath: $.Payload
                Next: C
              C: {Type: Task, Resource: !Sub "${Charge.Arn}:live", End: true}
    """


def test_sam(project: Project, tmp_path: Path) -> None:
    path = project(template_dot_yaml=SAM, src__charge__app_dot_py=HANDLER)
    found = functions_of(path)
    charge = found["Charge"]
    assert (charge.name, charge.other_names) == ("charge-test", ("Charge",))
    assert charge.arns == (f"{ARN}charge-test", f"{ARN}Live")
    assert (charge.runtime, charge.handler, charge.timeout, charge.memory) == (
        *("python3.11", "app.handler", 30.0, 256),
    )
    assert charge.code == str(tmp_path / "src/charge")
    assert charge.layers == (str(tmp_path / "layer"),)
    assert charge.missing_layers == ("arn:aws:lambda:us-east-1:1:layer:Powertools:3",)
    assert charge.environment == {"STAGE": "test", "LIMIT": "20", "TABLE": "${Orders}"}
    assert found["Image"].problem == "its code is a container image"
    assert functions_of(path, Stage="prod")["Charge"].name == "charge-prod"
    assert run_with_functions(path, 1) == [{"got": [1, "test"]}, "test"]


CLOUDFORMATION = """\
    Resources:
      Charge:
        Type: AWS::Lambda::Function
        Properties: {Runtime: python3.11, Handler: app.handler, Code: src, Timeout: "30"}
      Inline:
        Type: AWS::Lambda::Function
        Properties:
          Runtime: nodejs20.x
          Handler: index.handler
          Code: {ZipFile: "exports.handler = async (event) => event"}
      Stored:
        Type: AWS::Lambda::Function
        Properties: {Runtime: python3.11, Handler: a.b, Code: {S3Bucket: b, S3Key: k.zip}}
      Outside:
        Type: AWS::Lambda::Function
        Properties: {Runtime: python3.11, Handler: a.b, Code: ../other}
      Unknown:
        Type: AWS::Lambda::Function
        Properties: {Runtime: python3.11, Handler: a.b, Code: !Ref Folder}
      Flow:
        Type: AWS::StepFunctions::StateMachine
        Properties:
          DefinitionString: !Sub |
            {"StartAt": "A",
             "States": {"A": {"Type": "Task", "Resource": "${Charge.Arn}", "End": true}}}
    """


def test_cloudformation(project: Project) -> None:
    path = project(template_dot_yaml=CLOUDFORMATION, src__app_dot_py=HANDLER)
    found = functions_of(path)
    assert found["Charge"].timeout == 30.0
    assert found["Inline"].inline == "exports.handler = async (event) => event"
    problems = {name: each.problem for name, each in found.items() if each.problem}
    assert problems == {
        "Stored": "its code is in an S3 bucket, not in the project",
        "Outside": "the file '../other' is outside the repository of the template",
        "Unknown": "the path '${Folder}' is known only after deployment",
    }
    assert run_with_functions(path, 1) == [1, None]


def test_cdk(project: Project, tmp_path: Path) -> None:
    fields = {"Runtime": "python3.11", "Handler": "app.handler", "Timeout": 30}
    code = {"S3Bucket": {"Fn::Sub": "cdk-${AWS::AccountId}"}, "S3Key": "ab12.zip"}
    function = {"Type": "AWS::Lambda::Function", "Properties": {**fields, "Code": code}}
    metadata = {"aws:asset:path": "asset.ab12", "aws:asset:property": "Code"}
    arn = {"Fn::GetAtt": ["Charge9F", "Arn"]}
    text = ['{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"', arn, '","End":true}}}']
    properties = {"DefinitionString": {"Fn::Join": ["", text]}}
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
    resources = {
        "Charge9F": {**function, "Metadata": metadata},
        "Refund7A": function,
        "Other5B": {
            "Type": "AWS::Lambda::Function",
            "Properties": {**fields, "Code": {**code, "S3Key": "other.zip"}},
        },
        "Flow1D": machine,
    }
    source = {"path": "asset.ab12", "packaging": "zip"}
    place = {"objectKey": "ab12.zip", "bucketName": "b"}
    manifest = {"files": {"ab12": {"source": source, "destinations": {"current": place}}}}
    path = project(
        Stack_dot_template_dot_json=json.dumps({"Resources": resources}),
        Stack_dot_assets_dot_json=json.dumps(manifest),
        asset_dot_ab12__app_dot_py=HANDLER,
    )
    found = functions_of(path)
    asset = str(tmp_path / "asset.ab12")
    assert [found[name].code for name in ("Charge9F", "Refund7A")] == [asset, asset]
    assert found["Other5B"].problem == "its code is in an S3 bucket, not in the project"
    assert run_with_functions(path, 1) == [1, None]


SERVERLESS = """\
    service: shop
    provider:
      name: aws
      runtime: python3.11
      timeout: 30
      environment: {STAGE: "${sls:stage}"}
    layers:
      common-parts: {path: layer}
    functions:
      charge:
        handler: src/app.handler
        memorySize: 512
        layers: [{Ref: CommonDashpartsLambdaLayer}]
        environment: {LIMIT: 5, SERVICE: "${self:service}"}
      refund: {name: "refund-${sls:stage}", handler: src/app.handler, timeout: 9}
      image: {image: "repository:tag"}
    stepFunctions:
      stateMachines:
        flow:
          definition:
            StartAt: A
            States:
              A: {Type: Task, Resource: {"Fn::GetAtt": [ChargeLambdaFunction, Arn]}, Next: B}
              B:
                Type: Task
                Resource: "arn:aws:lambda:${aws:region}:${aws:accountId}:function:refund-dev"
                Next: C
              C:
                Type: Task
                Resource: "arn:aws:lambda:eu-west-1:222222222222:function:shop-dev-charge"
                End: true
    """


def test_serverless(project: Project, tmp_path: Path) -> None:
    path = project(serverless_dot_yml=SERVERLESS, src__app_dot_py=HANDLER)
    found = functions_of(path)
    charge, refund = found["charge"], found["refund"]
    assert (charge.name, charge.timeout, charge.memory) == ("shop-dev-charge", 30.0, 512)
    assert charge.environment == {"STAGE": "dev", "LIMIT": "5", "SERVICE": "shop"}
    assert (charge.code, charge.layers) == (str(tmp_path), (str(tmp_path / "layer"),))
    assert (refund.name, refund.timeout, refund.memory) == ("refund-dev", 9.0, 1024)
    assert found["image"].problem == "its code is a container image"
    assert run_with_functions(path, 1) == [[[1, "dev"], "dev"], "dev"]


def test_serverless_without_state_machines(project: Project) -> None:
    text = "service: shop\nprovider: {runtime: python3.11}\nfunctions:\n  a: {handler: b.c}\n"
    assert functions_of(project(serverless_dot_yml=text))["a"].name == "shop-dev-a"


TERRAFORM = """\
    variable "stage" { default = "test" }
    data "archive_file" "charge" {
      source_dir  = "${path.module}/src"
      output_path = "charge.zip"
    }
    data "archive_file" "one" { source_file = "src/app.py" }
    data "archive_file" "other" { output_path = "other.zip" }
    resource "aws_lambda_function" "charge" {
      function_name = "${var.stage}-charge"
      runtime       = "python3.11"
      handler       = "app.handler"
      timeout       = 30
      memory_size   = 256
      filename      = data.archive_file.charge.output_path
      layers        = [aws_lambda_layer_version.shared.arn, "arn:aws:lambda:us-east-1:1:layer:a:1"]
      environment {
        variables = { STAGE = var.stage, LIMIT = 5 }
      }
    }
    resource "aws_lambda_layer_version" "shared" { filename = "layer" }
    resource "aws_lambda_function" "one" {
      runtime  = "python3.11"
      handler  = "app.handler"
      filename = data.archive_file.one.output_path
    }
    resource "aws_lambda_function" "image" { image_uri = "repository:tag" }
    resource "aws_lambda_function" "stored" { s3_bucket = "code" }
    resource "aws_lambda_function" "other" { filename = data.archive_file.other.output_path }
    resource "aws_sfn_state_machine" "flow" {
      definition = jsonencode({
        StartAt = "A"
        States = {
          A = { Type = "Task", Resource = aws_lambda_function.charge.arn, Next = "B" }
          B = { Type = "Task", Resource = aws_lambda_function.one.arn, End = true }
        }
      })
    }
    """


def test_terraform(project: Project, tmp_path: Path) -> None:
    path = project(main_dot_tf=TERRAFORM, src__app_dot_py=HANDLER)
    found = functions_of(path)
    charge = found["charge"]
    assert (charge.name, charge.other_names) == ("test-charge", ("charge",))
    assert charge.arns == (f"{ARN}test-charge",)
    assert (charge.runtime, charge.handler, charge.timeout, charge.memory) == (
        *("python3.11", "app.handler", 30.0, 256),
    )
    assert charge.environment == {"STAGE": "test", "LIMIT": "5"}
    assert (charge.code, found["one"].code) == (str(tmp_path / "src"), str(tmp_path / "src"))
    assert charge.layers == (str(tmp_path / "layer"),)
    problems = {name: each.problem for name, each in found.items() if each.problem}
    assert problems == {
        "image": "its code is a container image",
        "stored": "its code is in an S3 bucket, not in the project",
        "other": "the archive 'other' has neither source_dir nor source_file",
    }
    assert run_with_functions(path, 1) == [[1, "test"], None]


def test_files_without_functions(project: Project) -> None:
    path = project(order_dot_asl_dot_json='{"StartAt": "A", "States": {}}')
    with pytest.raises(AslError, match="is no template with Lambda functions"):
        load_functions(path, variables={})


REASONS = [
    ({"code": "missing"}, "its code 'missing' does not exist"),
    ({"code": "app.zip"}, "its code 'app.zip' is an archive: extract it"),
    ({"handler": "other.handler"}, "its code has no other.py for the handler 'other.handler'"),
    (
        {"handler": "built.handler", "runtime": "nodejs20.x"},
        "its code has no built.js, .mjs or .cjs for the handler 'built.handler': "
        "build built.ts first, and name the built template",
    ),
    ({"runtime": ""}, "the template names no runtime for it"),
    ({"environment": {"A": "\0"}}, "its environment variable 'A' cannot be set"),
    ({"environment": {"A=B": ""}}, "its environment variable 'A=B' cannot be set"),
    (
        {"handler": "../app.handler", "runtime": "nodejs20.x"},
        "the handler '../app.handler' is outside its code",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), REASONS)
def test_reasons(
    project: Project, monkeypatch: pytest.MonkeyPatch, fields: Any, reason: str
) -> None:
    path = project(app_dot_py=HANDLER, app_dot_zip="", built_dot_ts="")
    monkeypatch.chdir(path.parent)
    given = {"runtime": "python3.11", "handler": "app.handler", "code": ".", **fields}
    with LocalFunctions([LambdaFunction("F", "F", (f"{ARN}F",), **given)]) as functions:
        assert functions.lines() == [f"F is not bound: {reason}"]


def test_code_of_the_template_is_written_to_a_folder_of_its_own(project: Project) -> None:
    path = project(template_dot_yaml=SAM, src__charge__app_dot_py=HANDLER)
    function = functions_of(path)["Inline"]
    outside = replace(function, logical=f"{path.parent}/outside")
    with LocalFunctions([outside]) as functions:
        (agent,) = functions.agents.values()
        folder = Path(agent.processes.spec.folder)
        assert (folder / "index.py").read_text(encoding="utf-8") == function.inline
    assert not folder.exists()
    assert not (path.parent / "outside").exists()


def test_path_that_cannot_exist(project: Project) -> None:
    path = project(template_dot_yaml=CLOUDFORMATION.replace("Code: src", r'Code: "a\0b"'))
    assert functions_of(path)["Charge"].problem == r"the path 'a\x00b' has a NUL"


def test_functions_that_are_bound_already(project: Project) -> None:
    path = project(template_dot_yaml=SAM, src__charge__app_dot_py=HANDLER)
    bound = ["arn:aws:lambda:*:function:charge-*"]
    with LocalFunctions(load_functions(path, variables={}), bound=bound) as functions:
        assert "Charge is not bound: an agents file binds it" in functions.lines()
        assert not any("harge" in name for name in functions.resources)
