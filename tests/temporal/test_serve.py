"""The service on Temporal: AWS's protocol, REST and the pages, on registered state machines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import pytest

import asl
from asl.core.errors import StateError
from asl.executions.store import Store
from asl.server.access.control import AccessSettings
from asl.server.application import ServerApplication, projects_of
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError
from asl.service.http import AwsEndpoint
from asl.service.operations import perform
from asl.service.server import serving
from asl.service.service import ACCOUNT, REGION, StatesService

boto3 = pytest.importorskip("boto3")
httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

ROLE = "arn:aws:iam::123456789012:role/runs"
ASK = json.dumps({
    "StartAt": "Ask",
    "States": {
        "Ask": {"Type": "Approval", "Prompt": "Ship it?", "Options": ["ship", "hold"],
                "Next": "Write"},
        "Write": {"Type": "Task", "Agent": "Writer", "End": True},
    },
})  # fmt: skip
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9999, "End": True}}}


def task(resource: str) -> str:
    state = {"Type": "Task", "Resource": resource, "End": True}
    return json.dumps({"StartAt": "T", "States": {"T": state}})


def until(holds: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Return the first true value of a function."""
    end = monotonic() + seconds
    while not (found := holds()):
        assert monotonic() < end, "it did not happen"
        sleep(0.05)
    return found


@pytest.fixture
def worker(address: str) -> Iterator[list[str]]:
    """A worker whose resource fails while the yielded list has an error."""
    errors = list[str]()

    def work(data: Any) -> Any:
        if errors:
            raise StateError(errors[0], "no")
        return {"done": data}

    bindings: Any = {
        "agents": {"Writer": lambda data: {"text": "written"}},
        "resources": {"arn:aws:lambda:*": work},
    }
    with asl.open_store(address, **bindings) as store, store.runner():
        yield errors


@pytest.fixture
def url(address: str) -> Iterator[str]:
    """The URL of a service."""
    with asl.open_store(address) as store:
        application = ServerApplication(
            projects_of(store, {}, ACCOUNT, REGION),
            AccessSettings(local=True),
            aws=lambda project: AwsEndpoint(project.amazon),
        )
        with serving(application) as found:
            yield found


def aws_client(url: str) -> Any:
    from botocore.config import Config

    return boto3.client(
        "stepfunctions",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="AK",
        aws_secret_access_key="S",
        config=Config(inject_host_prefix=False),
    )


def test_boto3(worker: list[str], url: str) -> None:
    aws = aws_client(url)
    definition = task("arn:aws:lambda:us-east-1:123456789012:function:work")
    machine = aws.create_state_machine(name="M", definition=definition, roleArn=ROLE)
    arn = machine["stateMachineArn"]
    started = aws.start_execution(stateMachineArn=arn, name="good", input='{"a": 1}')
    good = started["executionArn"]
    found = until(lambda: ended(aws, good))
    assert (found["status"], json.loads(found["output"])) == ("SUCCEEDED", {"done": {"a": 1}})
    assert (found["stateMachineArn"], found["name"]) == (arn, "good")
    events = aws.get_execution_history(executionArn=good)["events"]
    assert [events[0]["type"], events[-1]["type"]] == ["ExecutionStarted", "ExecutionSucceeded"]
    with pytest.raises(aws.exceptions.ExecutionAlreadyExists):
        aws.start_execution(stateMachineArn=arn, name="good", input="{}")

    worker.append("Bad")
    failing = aws.start_execution(stateMachineArn=arn, name="failing")["executionArn"]
    assert until(lambda: ended(aws, failing))["error"] == "Bad"
    worker.clear()
    aws.redrive_execution(executionArn=failing)
    found = until(lambda: ended(aws, failing))
    assert (found["status"], found["redriveCount"]) == ("SUCCEEDED", 1)
    with pytest.raises(aws.exceptions.ExecutionNotRedrivable):
        aws.redrive_execution(executionArn=failing)

    waiting = aws.create_state_machine(name="W", definition=json.dumps(WAIT), roleArn=ROLE)
    long = aws.start_execution(stateMachineArn=waiting["stateMachineArn"])["executionArn"]
    with pytest.raises(aws.exceptions.ExecutionNotRedrivable):
        aws.redrive_execution(executionArn=long)
    aws.stop_execution(executionArn=long, error="Enough", cause="stopped")
    found = aws.describe_execution(executionArn=long)
    assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "Enough", "stopped")

    listed = until(lambda: with_size(aws.list_executions(stateMachineArn=arn)["executions"], 2))
    assert {each["name"] for each in listed} == {"good", "failing"}
    assert not aws.list_executions(stateMachineArn=arn, statusFilter="ABORTED")["executions"]


def test_a_state_starts_a_registered_state_machine(worker: list[str], url: str) -> None:
    """It is named in the document, and names another one itself."""
    aws = aws_client(url)
    definition = task("arn:aws:lambda:us-east-1:123456789012:function:work")
    for name in ("Inner", "Middle", "Outer"):
        machine = aws.create_state_machine(name=name, definition=definition, roleArn=ROLE)
        state: dict[str, Any] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Parameters": {"StateMachineArn": machine["stateMachineArn"], "Input.$": "$"},
            "OutputPath": "$.Output",
            "End": True,
        }
        definition = json.dumps({"StartAt": "S", "States": {"S": state}})
    started = aws.start_execution(stateMachineArn=machine["stateMachineArn"], input="[1]")
    found = until(lambda: ended(aws, started["executionArn"]))
    assert found.get("output") == '{"done":[1]}', found


def test_a_state_starts_a_state_machine_of_a_computed_arn(worker: list[str], url: str) -> None:
    aws = aws_client(url)
    start = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Parameters": {"StateMachineArn.$": "$.arn", "Input": {"a": 1}},
        "End": True,
    }
    definition = json.dumps({"StartAt": "S", "States": {"S": start}})
    outer = aws.create_state_machine(name="Outer", definition=definition, roleArn=ROLE)
    inner = task("arn:aws:lambda:us-east-1:123456789012:function:work")
    arn = aws.create_state_machine(name="Inner", definition=inner, roleArn=ROLE)["stateMachineArn"]
    started = aws.start_execution(
        stateMachineArn=outer["stateMachineArn"], input=json.dumps({"arn": arn})
    )
    found = until(lambda: ended(aws, started["executionArn"]))
    child = json.loads(found["output"])["ExecutionArn"]
    found = until(lambda: ended(aws, child))
    assert (found["output"], found["stateMachineArn"]) == ('{"done":{"a":1}}', arn)
    listed = until(lambda: aws.list_executions(stateMachineArn=arn)["executions"])
    assert [each["executionArn"] for each in listed] == [child]


def test_express_executions(worker: list[str], url: str) -> None:
    aws = aws_client(url)
    definition = task("arn:aws:lambda:us-east-1:123456789012:function:work")
    machine = aws.create_state_machine(
        name="E", definition=definition, roleArn=ROLE, type="EXPRESS"
    )
    found = aws.start_sync_execution(stateMachineArn=machine["stateMachineArn"], input="1")
    assert (found["status"], found["output"]) == ("SUCCEEDED", '{"done":1}')
    worker.append("Bad")
    found = aws.start_sync_execution(stateMachineArn=machine["stateMachineArn"])
    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Bad", "no")


def ended(aws: Any, arn: str) -> Any:
    """Return the description of an ended execution."""
    found = aws.describe_execution(executionArn=arn)
    return found if found["status"] != "RUNNING" else None


def with_size(listed: list[Any], size: int) -> list[Any] | None:
    return listed if len(listed) == size else None


def test_rest_and_pages(worker: list[str], url: str) -> None:
    with httpx.Client(base_url=url, follow_redirects=True) as web:
        published = web.post("/api/v1/documents", json={"text": ASK, "name": "Ship"})
        assert (published.status_code, published.json()["version"]) == (201, 1)
        body = {"document": "Ship", "input": {"a": 1}, "name": "one"}
        started = web.post("/api/v1/executions", json=body)
        assert started.status_code == 201, started.text
        path = f"/api/v1/executions/{started.json()['id']}"
        (request,) = until(lambda: web.get(path).json()["pending"])
        assert [each["id"] for each in web.get("/api/v1/requests").json()["requests"]] == [
            request["id"]
        ]
        page = web.get(f"/ui/executions/{started.json()['id']}")
        assert (page.status_code, "Ship it?" in page.text) == (200, True)
        inbox = web.get("/ui/inbox")
        assert (inbox.status_code, "Ship it?" in inbox.text) == (200, True)
        answer = web.post(f"/api/v1/requests/{request['id']}/answer", json={"approval": "ship"})
        assert answer.status_code == 200, answer.text
        found = until(lambda: (shown := web.get(path).json())["status"] == "SUCCEEDED" and shown)
        assert found["output"] == {"text": "written"}
        listed = until(lambda: web.get("/api/v1/executions").json()["executions"])
        assert [each["workflow"] for each in listed] == ["Ship"]
        events = web.get(f"{path}/stream").text
        assert "ExecutionSucceeded" in events
        for name in ("/ui/", "/ui/costs", "/ui/documents/Ship", "/metrics", "/readyz"):
            assert web.get(name).status_code == 200, name


def test_map_runs(worker: list[str], url: str, address: str) -> None:
    """They are read from the execution, also by a server that has not seen it."""
    aws = aws_client(url)
    each = json.loads(task("arn:aws:lambda:us-east-1:123456789012:function:work"))
    each["ProcessorConfig"] = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    state = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": each, "End": True}
    definition = json.dumps({"StartAt": "Each", "States": {"Each": state}})
    machine = aws.create_state_machine(name="M", definition=definition, roleArn=ROLE)
    started = aws.start_execution(stateMachineArn=machine["stateMachineArn"], input="[1, 2, 3]")
    until(lambda: ended(aws, started["executionArn"]))
    (run,) = aws.list_map_runs(executionArn=started["executionArn"])["mapRuns"]
    with asl.open_store(address) as other:
        service = StatesService(other, "aws")
        found = request(service, "DescribeMapRun", mapRunArn=run["mapRunArn"])
        refused = {"mapRunArn": run["mapRunArn"], "maxConcurrency": 2}
        with pytest.raises(ServiceError, match="cannot be changed"):
            request(service, "UpdateMapRun", **refused)
    assert (found["status"], found["itemCounts"]["succeeded"]) == ("SUCCEEDED", 3)
    children = aws.list_executions(mapRunArn=run["mapRunArn"])["executions"]
    assert [child["status"] for child in children] == ["SUCCEEDED"] * 3


def test_tasks_of_activities(worker: list[str], url: str) -> None:
    aws = aws_client(url)
    arn = aws.create_activity(name="A")["activityArn"]
    machine = aws.create_state_machine(name="M", definition=task(arn), roleArn=ROLE)
    started = aws.start_execution(stateMachineArn=machine["stateMachineArn"], input='{"a": 1}')
    found = aws.get_activity_task(activityArn=arn, workerName="me")
    assert json.loads(found["input"]) == {"a": 1}
    aws.send_task_heartbeat(taskToken=found["taskToken"])
    aws.send_task_success(taskToken=found["taskToken"], output="[2]")
    ends = until(lambda: ended(aws, started["executionArn"]))
    assert (ends["status"], ends["output"]) == ("SUCCEEDED", "[2]")
    events = aws.get_execution_history(executionArn=started["executionArn"])["events"]
    (begun,) = (each for each in events if each["type"] == "ActivityStarted")
    assert begun["activityStartedEventDetails"] == {"workerName": "me"}


def test_without_a_worker_the_service_says_so(url: str) -> None:
    with httpx.Client(base_url=url) as web:
        text = json.dumps(WAIT)
        started = web.post("/api/v1/executions", json={"text": text, "name": uuid4().hex})
        found = web.get(f"/api/v1/executions/{started.json()['id']}").json()
        assert (found["status"], found["needs"]) == ("PAUSED", ["no worker runs its workflow"])


SCOPE = RequestScope(ACCOUNT, REGION)


def request(service: StatesService, operation: str, **members: Any) -> dict[str, Any]:
    return asyncio.run(perform(service, operation, members, SCOPE))


def test_servers_share_registered_resources(address: str) -> None:
    """A version, an alias, tags and an activity; what one changes the other sees."""

    def used(store: Store) -> StatesService:
        return StatesService(store, "aws")

    definition = json.dumps(WAIT)
    with asl.open_store(address) as one, asl.open_store(address) as two:
        first, second = used(one), used(two)
        made = request(first, "CreateStateMachine", name="M", definition=definition, roleArn=ROLE)
        arn = made["stateMachineArn"]
        version = request(second, "PublishStateMachineVersion", stateMachineArn=arn)
        route = {"stateMachineVersionArn": version["stateMachineVersionArn"], "weight": 100}
        alias = request(first, "CreateStateMachineAlias", name="live", routingConfiguration=[route])
        for number, service in enumerate((first, second, first)):
            tags = [{"key": f"k{number}", "value": "v"}]
            request(service, "TagResource", resourceArn=arn, tags=tags)
        assert len(request(second, "ListTagsForResource", resourceArn=arn)["tags"]) == 3
        request(second, "CreateActivity", name="A")
        assert len(request(first, "ListActivities")["activities"]) == 1
        started = request(second, "StartExecution", stateMachineArn=alias["stateMachineAliasArn"])
        found = request(first, "DescribeExecution", executionArn=started["executionArn"])
        assert (found["stateMachineVersionArn"], found["status"]) == (f"{arn}:1", "RUNNING")
    with asl.open_store(address) as later:
        service = used(later)
        assert request(service, "DescribeStateMachine", stateMachineArn=arn)["name"] == "M"
        request(service, "DeleteStateMachine", stateMachineArn=arn)
        assert request(service, "ListStateMachines")["stateMachines"] == []
