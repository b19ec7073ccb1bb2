"""Clients of AWS, unchanged, against our endpoint: the command line, JavaScript and Python."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

boto3 = pytest.importorskip("boto3")
pytest.importorskip("uvicorn")
NODE_MODULES = Path(__file__).resolve().parents[2] / "build" / "js" / "node_modules"
"""Where the gate installs the JavaScript SDK."""
ROLE = "arn:aws:iam::123456789012:role/runs"
PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
KEYS = {"AKIDEXAMPLE": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
SCRIPT = """
const { SFNClient, CreateStateMachineCommand, StartExecutionCommand, DescribeExecutionCommand,
  StartSyncExecutionCommand } = require("@aws-sdk/client-sfn");
const client = new SFNClient({ endpoint: process.argv[2], region: "eu-west-1",
  disableHostPrefix: true, credentials: { accessKeyId: "AK", secretAccessKey: "S" } });
const [definition, roleArn] = process.argv.slice(3);
async function main() {
  const machine = await client.send(
    new CreateStateMachineCommand({ name: "js", definition, roleArn }));
  const { stateMachineArn } = machine;
  const { executionArn } = await client.send(
    new StartExecutionCommand({ stateMachineArn, input: '{"a":1}' }));
  let found;
  do found = await client.send(new DescribeExecutionCommand({ executionArn }));
  while (found.status === "RUNNING");
  const express = await client.send(
    new CreateStateMachineCommand({ name: "fast", definition, roleArn, type: "EXPRESS" }));
  const sync = await client.send(
    new StartSyncExecutionCommand({ stateMachineArn: express.stateMachineArn, input: "2" }));
  let error;
  try { await client.send(new DescribeExecutionCommand({ executionArn: executionArn + "0" })); }
  catch (refusal) { error = refusal.name; }
  console.log(JSON.stringify({ output: found.output, isDate: found.startDate instanceof Date,
    sync: sync.output, error }));
}
main();
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as found:
        yield found


def serving(keys: dict[str, str] | None = None) -> Any:
    from contextlib import contextmanager

    from asl.service.http import AwsEndpoint, aws_application
    from asl.service.server import serving as serve
    from asl.service.service import StatesService

    @contextmanager
    def both() -> Iterator[str]:
        with Store("memory:", tokens=asl.TaskTokens()) as store:
            endpoint = AwsEndpoint(StatesService(store), keys=keys)
            with serve(aws_application(endpoint)) as found:
                yield found

    return both()


def aws(url: str, *words: str) -> Any:
    """Run the AWS command line."""
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AK",
        "AWS_SECRET_ACCESS_KEY": "S",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_SFN": url,
        "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    done = subprocess.run(
        [sys.executable, "-m", "awscli", "stepfunctions", *words, "--output", "json"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_line_of_aws_runs_an_express_workflow(url: str) -> None:
    """Without a prefix of the host, as `asl serve` says."""
    pytest.importorskip("awscli")
    machine = aws(
        url,
        *("create-state-machine", "--name", "cli", "--type", "EXPRESS"),
        *("--definition", PASS, "--role-arn", ROLE),
    )
    arn = machine["stateMachineArn"]
    assert arn == "arn:aws:states:eu-west-1:111111111111:stateMachine:cli"
    found = aws(url, "start-sync-execution", "--state-machine-arn", arn, "--input", '{"a": 1}')
    assert (found["status"], found["output"]) == ("SUCCEEDED", '{"a":1}')


@pytest.mark.skipif(
    shutil.which("node") is None or not NODE_MODULES.exists(),
    reason="the JavaScript SDK is not installed",
)
def test_the_javascript_sdk_runs_workflows(url: str) -> None:
    done = subprocess.run(
        ["node", "-e", SCRIPT, "script", url, PASS, ROLE],
        env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "output": '{"a":1}',
        "isDate": True,
        "sync": "2",
        "error": "ExecutionDoesNotExist",
    }


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [
        ("AKIDEXAMPLE", KEYS["AKIDEXAMPLE"], None),
        ("AKIDEXAMPLE", "another", "InvalidSignatureException"),
        ("AKIDOTHER", "x", "UnrecognizedClientException"),
    ],
)
def test_signatures_are_checked_where_keys_are_required(
    key: str, secret: str, code: str | None
) -> None:
    from botocore.exceptions import ClientError

    with serving(KEYS) as url:
        client = boto3.client(
            "stepfunctions",
            endpoint_url=url,
            region_name="eu-west-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )
        if code is None:
            assert client.list_state_machines()["stateMachines"] == []
        else:
            with pytest.raises(ClientError) as refusal:
                client.list_state_machines()
            assert refusal.value.response["Error"]["Code"] == code
