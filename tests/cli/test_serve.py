"""`asl serve`: what it registers, prints and answers."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

TEMPLATE = """
Resources:
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: orders
      Type: EXPRESS
      Definition: {StartAt: P, States: {P: {Type: Pass, End: true}}}
  Other:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      RoleArn: r
      Definition:
        StartAt: T
        States: {T: {Type: Task, Resource: "arn:aws:lambda:us-east-1:1:function:f", End: true}}
"""


@contextmanager
def server_process(
    folder: Path, *words: str, lines: list[str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start a server; yields its process and its URL. The lines printed until then are added."""
    with subprocess.Popen(
        [sys.executable, "-m", "asl", "serve", "--port", "0", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        printed = [] if lines is None else lines
        try:
            for line in process.stdout:
                printed.append(line.rstrip())
                if found := re.search(r"AWS_ENDPOINT_URL_SFN=(\S+)", line):
                    yield process, found[1]
                    break
            else:
                raise AssertionError(printed)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


@contextmanager
def server(folder: Path, *words: str) -> Iterator[tuple[str, list[str]]]:
    """Start a server; yields its URL and the lines that it printed until it was ready."""
    lines: list[str] = []
    with server_process(folder, *words, lines=lines) as (_, url):
        yield url, lines


def send(url: str, operation: str, **request: Any) -> Any:
    headers = {"X-Amz-Target": f"AWSStepFunctions.{operation}"}
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        connection.request("POST", "/", json.dumps(request), headers)
        return json.loads(connection.getresponse().read())


def test_an_express_workflow_that_aws_refuses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(
        TEMPLATE.replace(
            "Type: Pass,", 'Type: Task, Resource: "arn:aws:states:::ecs:runTask.sync",'
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "asl", "serve", "--port", "0", "template.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "an express workflow does not support '.sync'" in done.stderr


def test_the_state_machines_of_a_template_are_registered_and_kept_in_a_store(
    tmp_path: Path,
) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    prefix = "arn:aws:states:us-east-1:111111111111:stateMachine"
    with server(tmp_path, "template.yaml", "--store", "runs.db") as (url, lines):
        assert f"{prefix}:orders  EXPRESS" in lines
        assert f"{prefix}:Other  STANDARD" in lines
        assert (
            "    no handler for the resource 'arn:aws:lambda:us-east-1:1:function:f' is registered"
            in lines
        )
        answer = send(url, "StartSyncExecution", stateMachineArn=f"{prefix}:orders", input="7")
        assert answer["output"] == "7"
    with server(tmp_path, "--store", "runs.db") as (url, _):
        listed = send(url, "ListStateMachines")["stateMachines"]
        assert [each["name"] for each in listed] == ["Other", "orders"]


def asl_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "asl", *words], capture_output=True, text=True, timeout=60
    )


def test_executions_of_a_running_service_are_started_and_listed(tmp_path: Path) -> None:
    (tmp_path / "add.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": 3, "End": true}}}'
    )
    with server(tmp_path, "add.asl.json") as (url, _):
        done = asl_command("start", "add", "--name", "one", "--wait", "--endpoint", url)
        assert (done.returncode, done.stdout) == (0, "3\n")
        arn = "arn:aws:states:us-east-1:111111111111:execution:add:one"
        assert asl_command("ls", "--endpoint", url).stdout.startswith(f"{arn}  SUCCEEDED")
        shown = asl_command("show", arn, "--endpoint", url).stdout
        assert "output   3" in shown
        assert "PassStateEntered  P" in shown
        unknown = asl_command("start", "none", "--endpoint", url)
        assert unknown.returncode == 2
        assert "no state machine 'none'; there are add" in unknown.stderr


def test_an_invalid_definition_prevents_the_start(tmp_path: Path) -> None:
    (tmp_path / "flow.asl.json").write_text('{"StartAt": "A", "States": {}}')
    done = subprocess.run(
        [sys.executable, "-m", "asl", "serve", "flow.asl.json", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "V-TOP" in done.stderr


def test_an_address_in_use_is_an_error(tmp_path: Path) -> None:
    with server(tmp_path) as (url, _):
        port = url.rpartition(":")[2]
        done = subprocess.run(
            [sys.executable, "-m", "asl", "serve", "--port", port],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


FUNCTION = """
Resources:
  Double:
    Type: AWS::Lambda::Function
    Properties: {Runtime: python3.11, Handler: app.handler, Code: src, Timeout: 30}
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      Type: EXPRESS
      Definition:
        StartAt: A
        States: {A: {Type: Task, Resource: !GetAtt Double.Arn, End: true}}
"""


def test_functions_of_a_template_run_from_their_code(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(FUNCTION)
    (tmp_path / "src").mkdir()
    code = tmp_path / "src" / "app.py"
    code.write_text("def handler(event, context): return 2 * event\n")
    arn = "arn:aws:states:us-east-1:111111111111:stateMachine:Flow"
    with server(tmp_path, "template.yaml", "--functions", "--watch") as (url, lines):
        assert "asl: function Double: src/app.handler (python3.11)" in lines
        assert send(url, "StartSyncExecution", stateMachineArn=arn, input="4")["output"] == "8"
        code.write_text("def handler(event, context): raise ValueError('no')\n")
        failed = send(url, "StartSyncExecution", stateMachineArn=arn, input="4")
        assert failed["error"] == "ValueError"


PLACED = """
Resources:
  Child:
    Type: AWS::Serverless::StateMachine
    Properties:
      Definition: {StartAt: A, States: {A: {Type: Task, Resource: !GetAtt Look.Arn, End: true}}}
  Parent:
    Type: AWS::Serverless::StateMachine
    Properties:
      Type: EXPRESS
      Definition:
        StartAt: A
        States:
          A:
            Type: Task
            Resource: arn:aws:states:::states:startExecution
            Parameters: {StateMachineArn: !Ref Child}
            ResultSelector: {arn.$: $.ExecutionArn}
            End: true
  Look:
    Type: AWS::Lambda::Function
    Properties:
      Runtime: python3.11
      Handler: index.handler
      Timeout: 30
      Code:
        ZipFile: |
          import os
          def handler(event, context):
              names = ("AWS_REGION", "AWS_ENDPOINT_URL_SFN", "AWS_ENDPOINT_URL")
              return [context.invoked_function_arn, *map(os.environ.get, names)]
"""


def test_account_and_region_are_those_of_the_template_and_of_its_functions(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(PLACED)
    place = "eu-west-1:000000000000"
    options = ["--region", "eu-west-1", "--account", "000000000000", "--functions"]
    emulator = "http://127.0.0.1:9"
    with server(tmp_path, "template.yaml", *options, "--aws-endpoint", emulator) as (url, _):
        parent = f"arn:aws:states:{place}:stateMachine:Parent"
        started = send(url, "StartSyncExecution", stateMachineArn=parent)
        child = json.loads(started["output"])["arn"]
        assert child.startswith(f"arn:aws:states:{place}:execution:Child:")
        done = {"status": "RUNNING"}
        while done["status"] == "RUNNING":
            done = send(url, "DescribeExecution", executionArn=child)
        function = f"arn:aws:lambda:{place}:function:Look"
        assert json.loads(done["output"]) == [function, "eu-west-1", url, emulator]


DEPLOYED = """
Resources:
  Inspect: {Type: AWS::StepFunctions::Activity, Properties: {Name: inspect}}
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      AutoPublishAlias: live
      Definition:
        StartAt: A
        States:
          A: {Type: Task, Resource: !Ref Inspect, Next: B}
          B: {Type: Task, Resource: "arn:aws:states:::sqs:sendMessage", Parameters: {}, End: true}
"""


def test_activities_versions_and_aliases_are_deployed(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(DEPLOYED)
    arn = "arn:aws:states:us-east-1:111111111111:stateMachine:Flow"
    words = ["template.yaml", "--store", "runs.db", "--aws-endpoint", "http://127.0.0.1:9"]
    for _ in range(2):
        with server(tmp_path, *words) as (url, lines):
            assert not any("no handler" in line for line in lines)
            (activity,) = send(url, "ListActivities")["activities"]
            assert activity["name"] == "inspect"
            (alias,) = send(url, "ListStateMachineAliases", stateMachineArn=arn)[
                "stateMachineAliases"
            ]
            assert alias["stateMachineAliasArn"] == f"{arn}:live"


CALL_EMULATOR = "add --aws-endpoint URL to call an emulator of AWS, or --aws to call AWS"
LIST_HTTP = "list http under 'services' in the section 'aws' of an agents file"


@pytest.mark.parametrize(
    ("action", "options", "hint"),
    [
        ("sqs:sendMessage", [], CALL_EMULATOR),
        ("http:invoke", ["--aws-endpoint", "http://127.0.0.1:9"], LIST_HTTP),
    ],
)
def test_missing_services_are_named_once_with_a_hint(
    tmp_path: Path, action: str, options: list[str], hint: str
) -> None:
    resource = f"arn:aws:states:::{action}"
    states = {
        "A": {"Type": "Task", "Resource": resource, "Next": "B"},
        "B": {"Type": "Task", "Resource": resource, "End": True},
    }
    (tmp_path / "send.asl.json").write_text(json.dumps({"StartAt": "A", "States": states}))
    with server(tmp_path, "send.asl.json", *options) as (_, lines):
        shown = [line.strip() for line in lines if line.startswith("    ")]
        assert shown[:2] == [f"no handler for the resource {resource!r} is registered", hint]


FAULTY = """
Resources:
  Run:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: run
      Definition:
        StartAt: T
        States: {T: {Type: Task, Resource: !GetAtt Faulty.Arn, End: true}}
  Faulty:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.11
      Handler: faulty.handler
      CodeUri: .
      Timeout: 1
"""
CODE = """
import os, time

def handler(event, context):
    print('{"not": "an answer"}', flush=True)
    os.write(1, b"neither is this\\\\n")
    if event == "hang":
        time.sleep(600)
    if event == "crash":
        os._exit(7)
    return "x" * (6 * 1024 * 1024 + 1) if event == "large" else event
"""


def test_functions_that_misbehave_leave_the_server_up(tmp_path: Path) -> None:
    """One that prints answers as ever; one that hangs, ends or answers 6 MB fails by name."""
    (tmp_path / "template.yaml").write_text(FAULTY)
    (tmp_path / "faulty.py").write_text(CODE)
    machine = "arn:aws:states:us-east-1:111111111111:stateMachine:run"
    with server(tmp_path, "template.yaml", "--functions") as (url, _):

        def ended(event: str) -> Any:
            started = send(url, "StartExecution", stateMachineArn=machine, input=json.dumps(event))
            while True:
                arn = started["executionArn"]
                found = send(url, "DescribeExecution", executionArn=arn)
                if found["status"] != "RUNNING":
                    return found
                time.sleep(0.02)

        assert ended("ok")["output"] == '"ok"'
        errors = {event: ended(event)["error"] for event in ("hang", "crash", "large")}
        assert errors == {
            "hang": "Sandbox.Timedout",
            "crash": "Runtime.ExitError",
            "large": "States.DataLimitExceeded",
        }
        assert ended("ok")["output"] == '"ok"'


PLANNED = """
Resources:
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: orders
      Definition: {StartAt: P, States: {P: {Type: Pass, End: true}}}
      Events:
        Nightly:
          Type: Schedule
          Properties: {Schedule: "cron(0 2 * * ? *)", Input: '{"full": true}'}
        Off:
          Type: ScheduleV2
          Properties:
            ScheduleExpression: rate(5 minutes)
            ScheduleExpressionTimezone: Europe/Berlin
            State: DISABLED
        Push: {Type: Api, Properties: {Path: /, Method: post}}
  Often:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: !Sub "rate(${Minutes} minutes)"
      StartDate: "2031-01-01T00:00:00Z"
      Target: {Arn: !GetAtt Orders.Arn, RoleArn: r}
  Wrong:
    Type: AWS::Events::Rule
    Properties:
      ScheduleExpression: cron(0 2 3W * ? *)
      Targets: [{Id: a, Arn: "arn:aws:lambda:x:1:function:f"}, {Id: b, Arn: !Ref Orders}]
Parameters: {Minutes: {Type: Number, Default: 7}}
"""


def test_schedules_of_a_template(tmp_path: Path) -> None:
    """They are used with --schedules only; a wrong one is named."""
    pytest.importorskip("cronsim")
    (tmp_path / "template.yaml").write_text(PLANNED)
    with server(tmp_path, "template.yaml", "--store", "runs.db") as (_, lines):
        assert "    add --schedules to start it by the 4 schedules of the template" in lines
    words = ("--store", str(tmp_path / "runs.db"))
    assert asl_command("schedules", "ls", *words).stdout == ""
    for _ in range(2):  # the second time they are there already
        with server(tmp_path, "template.yaml", "--schedules", *words) as (_, lines):
            assert "    schedule Orders-Nightly: cron(0 2 * * ? *)" in lines
            (wrong,) = (line for line in lines if "'Wrong-1' cannot be used" in line)
            assert "'LW' only" in wrong
    listed = asl_command("schedules", "ls", "--json", *words).stdout.splitlines()
    found = {each["name"]: each for each in map(json.loads, listed)}
    assert found.keys() == {"Orders-Nightly", "Orders-Off", "Often"}
    assert found["Orders-Off"]["paused"]
    assert found["Often"]["expression"] == "rate(7 minutes)"
    assert found["Often"]["next"] == "2031-01-01T00:07:00.000Z"
