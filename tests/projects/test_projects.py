"""Projects in the usual layouts, deployed to `asl serve` with moto behind it.

Each folder is a project as its users have it, and `project.yaml` says how it is tried:

    serve: [template.yaml, --var, Name=value]   what follows `asl serve`; `asl serve` deploys it
    deploy: {name: definition.json}             instead: definitions that boto3 deploys
    command: true                               as a process, not in this one
    node: true                                  its functions need node
    tables: {orders: id}                        tables with their keys, before the start
    queues, buckets, topics                     the same
    prepare: [call]                             other calls before the start
    executions:                                 executions that boto3 starts, one after the other
      - machine: orders                         name, with `:version` or `:alias`
        input, status, output, error, cause
        sync: true                              by StartSyncExecution
        meanwhile, after: [call]                calls while it runs, and when it has ended
    after: [call]                               what must have become of it

A call is `{call: sqs.send_message, with: {...}, find: JMESPath, equals: value, save: name}`; it is
repeated until what it finds is there, and equal to what is expected. `find` may be a list of
paths, each into what the one before found; a JSON text is its value.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ruamel.yaml import YAML

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto")
pytest.importorskip("uvicorn")

import jmespath  # noqa: E402
from botocore.config import Config  # noqa: E402

from asl.cli.main import cli  # noqa: E402
from tests.projects.conftest import ACCOUNT, serve_by_command, serve_in_process  # noqa: E402

PROJECTS = sorted(path.parent for path in Path(__file__).parent.glob("*/project.yaml"))
REGION = "us-east-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/any"
PATIENCE = 30
"""Seconds until a call must find what it expects."""
PAUSE = 0.02
Clients = Callable[[str], Any]


class WebService(BaseHTTPRequestHandler):
    """A web service outside AWS: it answers with the request that it got."""

    requests: list[Any] = []

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        key = self.headers.get("X-Api-Key")
        found = {"path": self.path, "body": json.loads(body or "null"), "key": key}
        text = json.dumps(found).encode()
        self.send_response(503 if "unavailable" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *words: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def web_url() -> Iterator[str]:
    """The URL of the web service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), WebService)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_project(
    folder: Path, endpoint: str, web_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = YAML(typ="safe").load((folder / "project.yaml").read_text())
    if project.get("node") and shutil.which("node") is None:
        pytest.skip("node is not installed")
    known = {"web": web_url, "moto": endpoint, "account": ACCOUNT, "region": REGION}
    session = boto3.Session("test", "test", region_name=REGION)
    made: dict[str, Any] = {}

    def clients(service: str, url: str = endpoint) -> Any:
        if service not in made:
            config = Config(inject_host_prefix=False)
            made[service] = session.client(service, endpoint_url=url, config=config)
        return made[service]

    prepare(clients, project, folder)
    perform(clients, project.get("prepare", ()), known)
    deployed = [] if "deploy" in project else ["--functions"]
    words = [*map(str, filled(project.get("serve", []), known)), *deployed]
    words += ["--aws-endpoint", endpoint, "--account", ACCOUNT, "--region", REGION]
    serve = serve_by_command if project.get("command") else serve_in_process
    with serve(folder, words) as url, closing_all(made):
        clients("stepfunctions", url)
        for name, file in project.get("deploy", {}).items():
            deploy(clients, name, folder / file, known)
        for execution in project["executions"]:
            run(clients, execution, known)
            perform(clients, execution.get("after", ()), known)
        perform(clients, project.get("after", ()), known)


@contextmanager
def closing_all(clients: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    finally:
        for client in clients.values():
            client.close()


def prepare(clients: Clients, project: Any, folder: Path) -> None:
    """Create the resources that the template declares."""
    for table, key in project.get("tables", {}).items():
        clients("dynamodb").create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        )
    for queue in project.get("queues", ()):
        clients("sqs").create_queue(QueueName=queue)
    for bucket, files in project.get("buckets", {}).items():
        clients("s3").create_bucket(Bucket=bucket)
        for key, file in files.items():
            body = (folder / file).read_bytes()
            clients("s3").put_object(Bucket=bucket, Key=key, Body=body)
    for topic, queues in project.get("topics", {}).items():
        arn = clients("sns").create_topic(Name=topic)["TopicArn"]
        for queue in queues:
            target = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"
            clients("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=target)


def deploy(clients: Clients, name: str, file: Path, known: dict[str, Any]) -> None:
    """Create a state machine, from a definition or from the plan of `terraform show -json`."""
    kind, found = "STANDARD", json.loads(file.read_text())
    definition = json.dumps(found)
    for resource in found.get("planned_values", {}).get("root_module", {}).get("resources", ()):
        values = resource["values"]
        if resource["type"] == "aws_sfn_state_machine" and values["name"] == name:
            kind, definition = values["type"], values["definition"]
    clients("stepfunctions").create_state_machine(
        name=name, type=kind, definition=definition, roleArn=ROLE
    )


def run(clients: Clients, execution: Any, known: dict[str, Any]) -> None:
    """Start an execution, do what happens meanwhile, and compare its end."""
    states = clients("stepfunctions")
    arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{execution['machine']}"
    text = json.dumps(filled(execution.get("input", {}), known))
    if execution.get("sync"):
        done = states.start_sync_execution(stateMachineArn=arn, input=text)
    else:
        started = states.start_execution(stateMachineArn=arn, input=text)["executionArn"]
        known["execution"] = started
        perform(clients, execution.get("meanwhile", ()), known)
        done = {"status": "RUNNING"}
        limit = time.monotonic() + PATIENCE
        while done["status"] == "RUNNING" and time.monotonic() < limit:
            time.sleep(PAUSE)
            done = states.describe_execution(executionArn=started)
    assert done["status"] == execution.get("status", "SUCCEEDED"), done
    if "output" in execution:
        assert json.loads(done["output"]) == filled(execution["output"], known)
    for key in ("error", "cause"):
        if key in execution:
            assert done[key] == execution[key], done


def perform(clients: Clients, calls: Any, known: dict[str, Any]) -> None:
    """Perform calls in their order."""
    for call in calls:
        service, _, operation = call["call"].partition(".")
        parameters = filled(call.get("with", {}), known)
        limit = time.monotonic() + PATIENCE
        while True:
            answer = getattr(clients(service), operation)(**parameters)
            body = answer.get("Body")
            if hasattr(body, "read"):
                answer["Body"] = read(body.read().decode())
            found = find(answer, call.get("find", "@"))
            wanted = filled(call.get("equals", found), known)
            if (found is not None and found == wanted) or time.monotonic() > limit:
                break
            time.sleep(PAUSE)
        assert found == wanted, call
        if "save" in call:
            known[call["save"]] = found


def find(answer: Any, paths: str | list[str]) -> Any:
    """Return what a path finds, or the last of several."""
    for path in [paths] if type(paths) is str else paths:
        found = jmespath.search(path, answer)
        answer = read(found) if type(found) is str else found
    return answer


def read(text: str) -> Any:
    """Return the value of a JSON text; the text itself if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def filled(value: Any, known: dict[str, Any]) -> Any:
    """Return a value with `<name>` and `<name.member>` replaced by what is known."""
    if type(value) is dict:
        return {key: filled(item, known) for key, item in value.items()}
    if type(value) is list:
        return [filled(item, known) for item in value]
    if type(value) is not str:
        return value
    if whole := re.fullmatch(r"<([a-zA-Z.]+)>", value):
        return jmespath.search(whole[1], known)
    return re.sub(r"<([a-zA-Z.]+)>", lambda name: str(jmespath.search(name[1], known)), value)


def test_projects_are_checked_as_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asl check` finds all of them, and no warning in any."""
    monkeypatch.chdir(Path(__file__).parent)
    words = ["check", "--strict", "--quiet", "--profile", "aws", "."]
    assert cli.main(words, prog_name="asl", standalone_mode=False) in (0, None)
