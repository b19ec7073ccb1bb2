"""`.sync`: jobs are looked at on the clock of the execution until they end."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asl
import asl.aws
from asl.aws import Integrations
from asl.aws.catalog import ACTIONS, SERVICES
from asl.checks.service_catalog import optimized_integrations
from tests.aws.endpoint_server import Answer, Received, endpoint_server
from tests.aws.tasks import failure, output, task

Client = Callable[[str], Any]


def test_every_action_has_a_row() -> None:
    """The table has the actions that AWS lists, with `.sync` where AWS has it."""
    own = {"apigateway:invoke", "http:invoke", "lambda:invoke"}
    missing = {"eks:call", "eks:runJob"}
    integrations = optimized_integrations()
    listed = {f"{name}:{action}" for name, each in integrations.items() for action in each}
    assert listed - ACTIONS.keys() == own | missing
    for label, row in ACTIONS.items():
        service, _, action = label.partition(":")
        assert (".sync" in integrations[service][action].patterns) == (row.job is not None), label


@pytest.mark.parametrize("label", ACTIONS)
def test_operations_of_a_row_exist(label: str) -> None:
    """botocore has the operations of an action and its job, with the fields that jobs send."""
    from botocore.session import get_session

    row = ACTIONS[label]
    service, _, action = label.partition(":")
    model = get_session().get_service_model(row.model or SERVICES[service].model)
    operation = row.operation or action[0].upper() + action[1:]
    names = [operation]
    if row.lookup is not None:
        names.append(row.lookup.operation)
    if row.job is not None:
        names += [row.job.describe, *([row.job.stop[0]] if row.job.stop else [])]
    assert set(names) <= set(model.operation_names)
    if row.job is not None:
        known = {
            name.lower() for name in model.operation_model(row.job.describe).input_shape.members
        }
        got = _Everything()
        assert {name.lower() for name in row.job.request(got, got)} <= known
        if row.job.stop is not None:
            stop, request = row.job.stop
            known = {name.lower() for name in model.operation_model(stop).input_shape.members}
            assert {name.lower() for name in request(got, got)} <= known


class _Everything(dict[str, Any]):
    """A response with every field."""

    def __missing__(self, name: str) -> str:
        return name


# Against a server with answers of the test


def glue(*states: str) -> Callable[[Received], Answer]:
    """Return the answers of Glue: the states of a job run, one after the other."""
    left = list(states)

    def answer(request: Received) -> Answer:
        operation = request.headers["X-Amz-Target"].partition(".")[2]
        if operation == "StartJobRun":
            return Answer({"JobRunId": "jr-1"})
        if operation == "BatchStopJobRun":
            return Answer({"SuccessfulSubmissions": []})
        state = left.pop(0) if len(left) > 1 else left[0]
        if state.isdigit():
            return Answer({"__type": "InternalServiceException", "message": "busy"}, int(state))
        return Answer({"JobRun": {"Id": "jr-1", "JobRunState": state, "StartedOn": 1.5}})

    return answer


def operations(received: list[Received]) -> list[str]:
    return [each.headers["X-Amz-Target"].partition(".")[2] for each in received]


def test_polling_in_virtual_time() -> None:
    with endpoint_server(glue(*["RUNNING"] * 6, "SUCCEEDED")) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        document = task("glue:startJobRun.sync", {"JobName": "etl"})
        result = asl.run(document, aws=aws, clock="virtual")
    assert result.output == {"Id": "jr-1", "JobRunState": "SUCCEEDED", "StartedOn": 1500}
    assert operations(received) == ["StartJobRun", *["GetJobRun"] * 7]
    assert result.elapsed == 1 + 2 + 4 + 8 + 16 + 30 + 30
    assert json.loads(received[1].body) == {"JobName": "etl", "RunId": "jr-1"}
    types = [event.type for event in result.events]
    assert types.count("TaskSubmitted") == 1


def test_failed_job() -> None:
    with endpoint_server(glue("RUNNING", "FAILED")) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        name, cause = failure(aws, "glue:startJobRun.sync", {"JobName": "etl"})
    assert name == "States.TaskFailed"
    assert json.loads(cause)["JobRunState"] == "FAILED"


def test_failed_looks_are_repeated() -> None:
    with endpoint_server(glue("500", "500", "500", "500", "SUCCEEDED")) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        assert output(aws, "glue:startJobRun.sync", {"JobName": "etl"})["Id"] == "jr-1"
    with endpoint_server(glue("500")) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        name, cause = failure(aws, "glue:startJobRun.sync", {"JobName": "etl"})
    assert name == "Glue.InternalServiceException"
    assert cause.startswith("busy (Service: AWSGlue; Status Code: 500; ")
    assert len(received) == 1 + 5


def test_timeout_stops_the_job() -> None:
    with endpoint_server(glue("RUNNING")) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        document = task("glue:startJobRun.sync", {"JobName": "etl"}, TimeoutSeconds=100)
        result = asl.run(document, aws=aws, clock="virtual")
    assert (result.error, result.elapsed) == ("States.Timeout", 100)
    assert operations(received)[-1] == "BatchStopJobRun"
    assert json.loads(received[-1].body) == {"JobName": "etl", "JobRunIds": ["jr-1"]}


def test_end_of_the_execution_stops_the_job() -> None:
    with endpoint_server(glue("RUNNING")) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        document = {**task("glue:startJobRun.sync", {"JobName": "etl"}), "TimeoutSeconds": 50}
        result = asl.run(document, aws=aws, clock="virtual")
    assert result.status == "TIMED_OUT"
    assert operations(received)[-1] == "BatchStopJobRun"


def test_mediaconvert_create_job() -> None:
    """MediaConvert is not in moto: a job in a REST protocol, with another name in each status."""

    def answer(request: Received) -> Answer:
        status = "SUBMITTED" if request.method == "POST" else "COMPLETE"
        return Answer({"job": {"id": "j-1", "status": status, "timing": {"startTime": 1.0}}})

    with endpoint_server(answer) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        found = output(aws, "mediaconvert:createJob.sync", {"Role": "r", "Settings": {}})
    assert found["Job"] == {
        "Id": "j-1",
        "Status": "COMPLETE",
        "Timing": {"StartTime": "1970-01-01T00:00:01.000Z"},
    }
    assert [each.path for each in received] == ["/2017-08-29/jobs", "/2017-08-29/jobs/j-1"]
    assert json.loads(received[0].body)["clientRequestToken"]  # the same when the call is repeated


@pytest.mark.parametrize("code", [0, 1])
def test_ecs_exit_codes(code: int) -> None:
    """A container that ends with another code than 0 fails the task."""
    started = {"tasks": [{"taskArn": "arn:t", "lastStatus": "PENDING"}]}
    ended = {"taskArn": "arn:t", "lastStatus": "STOPPED", "containers": [{"exitCode": code}]}

    def answer(request: Received) -> Answer:
        begins = request.headers["X-Amz-Target"].endswith(".RunTask")
        return Answer(started if begins else {"tasks": [ended]})

    with endpoint_server(answer) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        result = asl.run(
            task("ecs:runTask.sync", {"TaskDefinition": "t"}), aws=aws, clock="virtual"
        )
    assert result.error == (None if code == 0 else "States.TaskFailed")


def test_ecs_failures() -> None:
    failures = {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY"}]}
    with endpoint_server(lambda request: Answer(failures)) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        name, cause = failure(aws, "ecs:runTask", {"TaskDefinition": "t"})
    assert (name, json.loads(cause)["Failures"]) == (
        "AmazonECS.Unknown",
        [{"Reason": "RESOURCE:MEMORY"}],
    )


def test_job_outlives_the_process(tmp_path: Path) -> None:
    """An execution that continues in another process waits for the job that was started."""
    states = ["RUNNING"]
    answers = glue("RUNNING")
    looked = threading.Event()

    def answer(request: Received) -> Answer:
        if request.headers["X-Amz-Target"].endswith(".GetJobRun"):
            looked.set()
            return glue(*states)(request)
        return answers(request)

    async def interrupt(store: asl.Store) -> None:
        work = asyncio.create_task(store.arun(document, name="one"))
        await asyncio.to_thread(looked.wait, 30)
        work.cancel()
        await asyncio.wait({work})

    document = task("glue:startJobRun.sync", {"JobName": "etl"})
    with endpoint_server(answer) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        with asl.open_store(tmp_path / "runs.db", aws=aws) as store:
            asyncio.run(interrupt(store))
            states[:] = ["SUCCEEDED"]
            result = store.resume("one")
    assert result.output["JobRunState"] == "SUCCEEDED"
    assert operations(received).count("StartJobRun") == 1
    assert "BatchStopJobRun" not in operations(received)


# Against moto


def test_batch_submit_job(aws: Integrations, client: Client) -> None:
    role = client("iam").create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    batch = client("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="env", type="UNMANAGED", state="ENABLED", serviceRole=role
    )["computeEnvironmentArn"]
    batch.create_job_queue(
        jobQueueName="queue",
        state="ENABLED",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    batch.register_job_definition(
        jobDefinitionName="definition",
        type="container",
        containerProperties={"image": "busybox", "vcpus": 1, "memory": 64, "command": ["true"]},
    )
    parameters = {"JobName": "job", "JobQueue": "queue", "JobDefinition": "definition"}
    assert output(aws, "batch:submitJob", parameters)["JobName"] == "job"
    job = output(aws, "batch:submitJob.sync", parameters)
    assert (job["JobName"], job["Status"]) == ("job", "SUCCEEDED")
    assert {"JobId", "JobQueue", "CreatedAt", "Container"} <= set(job)


def test_ecs_run_task(aws: Integrations, client: Client, moto_api: Callable[..., None]) -> None:
    change = {"progression": "manual", "times": 1}
    moto_api("state-manager/set-transition", {"model_name": "ecs::task", "transition": change})
    client("ecs").create_cluster(clusterName="cluster")
    client("ecs").register_task_definition(
        family="work",
        containerDefinitions=[{"name": "c", "image": "busybox", "memory": 64}],
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
    )
    subnet = client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    parameters = {
        "Cluster": "cluster",
        "TaskDefinition": "work",
        "LaunchType": "FARGATE",
        "NetworkConfiguration": {
            "AwsvpcConfiguration": {"Subnets": [subnet], "SecurityGroups": []}
        },
    }
    found = output(aws, "ecs:runTask.sync", parameters)
    assert found["LastStatus"] == "STOPPED"


def test_athena_query(aws: Integrations) -> None:
    parameters = {"QueryString": "SELECT 1", "ResultConfiguration": {"OutputLocation": "s3://b/"}}
    found = output(aws, "athena:startQueryExecution.sync", parameters)
    assert found["QueryExecution"]["Status"]["State"] == "SUCCEEDED"
    id = {"QueryExecutionId": found["QueryExecution"]["QueryExecutionId"]}
    assert output(aws, "athena:getQueryExecution", id)["QueryExecution"]["Query"] == "SELECT 1"
    assert "ResultSet" in output(aws, "athena:getQueryResults", id)
    assert output(aws, "athena:stopQueryExecution", id)["SdkHttpMetadata"]


def test_codebuild_start_build(aws: Integrations, client: Client) -> None:
    client("codebuild").create_project(
        name="project",
        source={"type": "S3", "location": "bucket/path"},
        artifacts={"type": "NO_ARTIFACTS"},
        environment={
            "type": "LINUX_CONTAINER",
            "image": "i",
            "computeType": "BUILD_GENERAL1_SMALL",
        },
        serviceRole="arn:aws:iam::123456789012:role/service-role/role",
    )
    found = output(aws, "codebuild:startBuild.sync", {"ProjectName": "project"})
    assert found["Build"]["BuildStatus"] == "SUCCEEDED"
    stopped = output(aws, "codebuild:stopBuild", {"Id": found["Build"]["Id"]})
    assert stopped["Build"]["BuildStatus"] == "STOPPED"


def test_glue_start_job_run(aws: Integrations, client: Client) -> None:
    client("glue").create_job(Name="etl", Role="r", Command={"Name": "glueetl"})
    found = output(aws, "glue:startJobRun.sync", {"JobName": "etl", "Arguments": {"--a": "1"}})
    assert (found["JobName"], found["JobRunState"]) == ("etl", "SUCCEEDED")


def test_emr_cluster_and_step(aws: Integrations) -> None:
    instances = {
        "MasterInstanceType": "m5.large",
        "InstanceCount": 1,
        "KeepJobFlowAliveWhenNoSteps": True,
    }
    cluster = {"Name": "c", "Instances": instances, "JobFlowRole": "r", "ServiceRole": "s"}
    made = output(aws, "elasticmapreduce:createCluster", cluster)
    found = output(aws, "elasticmapreduce:createCluster.sync", cluster)
    assert found["Cluster"]["Status"]["State"] == "WAITING"
    step = {"Name": "s", "HadoopJarStep": {"Jar": "j"}}
    added = output(aws, "elasticmapreduce:addStep", {"ClusterId": made["ClusterId"], "Step": step})
    assert added["StepId"].startswith("s-")
    protect = {"ClusterId": made["ClusterId"], "TerminationProtected": False}
    output(aws, "elasticmapreduce:setClusterTerminationProtection", protect)
    ended = output(aws, "elasticmapreduce:terminateCluster.sync", {"ClusterId": made["ClusterId"]})
    assert ended["Cluster"]["Status"]["State"] == "TERMINATED"


def test_emr_part_by_name() -> None:
    """The id of a fleet or a group is looked up by its name."""

    def answer(request: Received) -> Answer:
        part = "InstanceFleets" if "Fleet" in request.headers["X-Amz-Target"] else "InstanceGroups"
        return Answer({part: [{"Id": "i-1", "Name": "one"}, {"Id": "i-2", "Name": "two"}]})

    with endpoint_server(answer) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        for part, change in (("Fleet", {"TargetSpotCapacity": 3}), ("Group", {"InstanceCount": 2})):
            action = f"elasticmapreduce:modifyInstance{part}ByName"
            parameters = {"ClusterId": "c", f"Instance{part}Name": "two"}
            output(aws, action, {**parameters, f"Instance{part}": change})
            parameters[f"Instance{part}Name"] = "three"
            name, cause = failure(aws, action, parameters)
            assert (name, "'three'" in cause) == ("EMR.InvalidRequestException", True)
    assert [json.loads(received[index].body) for index in (1, 4)] == [
        {"ClusterId": "c", "InstanceFleet": {"InstanceFleetId": "i-2", "TargetSpotCapacity": 3}},
        {"ClusterId": "c", "InstanceGroups": [{"InstanceGroupId": "i-2", "InstanceCount": 2}]},
    ]


def test_emr_serverless_application(aws: Integrations) -> None:
    made = output(
        aws,
        "emr-serverless:createApplication.sync",
        {"Name": "a", "ReleaseLabel": "emr-6.6.0", "Type": "SPARK"},
    )
    id = {"ApplicationId": made["Application"]["ApplicationId"]}
    assert (
        output(aws, "emr-serverless:startApplication.sync", id)["Application"]["State"] == "STARTED"
    )
    assert (
        output(aws, "emr-serverless:stopApplication.sync", id)["Application"]["State"] == "STOPPED"
    )


def test_emr_containers(aws: Integrations, client: Client) -> None:
    client("eks").create_cluster(
        name="cluster", roleArn="arn:aws:iam::123456789012:role/r", resourcesVpcConfig={}
    )
    provider = {"Id": "cluster", "Type": "EKS", "Info": {"EksInfo": {"Namespace": "n"}}}
    made = output(
        aws, "emr-containers:createVirtualCluster", {"Name": "v", "ContainerProvider": provider}
    )
    ended = output(aws, "emr-containers:deleteVirtualCluster.sync", {"Id": made["Id"]})
    assert ended["VirtualCluster"]["State"] == "TERMINATED"


def test_eks_cluster_and_nodegroup(aws: Integrations) -> None:
    cluster = {"Name": "c", "RoleArn": "arn:aws:iam::123456789012:role/r", "ResourcesVpcConfig": {}}
    assert output(aws, "eks:createCluster.sync", cluster)["Cluster"]["Status"] == "ACTIVE"
    group = {
        "ClusterName": "c",
        "NodegroupName": "g",
        "Subnets": ["s"],
        "NodeRole": "arn:aws:iam::123456789012:role/n",
    }
    assert output(aws, "eks:createNodegroup.sync", group)["Nodegroup"]["Status"] == "ACTIVE"
    output(aws, "eks:deleteNodegroup.sync", {"ClusterName": "c", "NodegroupName": "g"})
    output(aws, "eks:deleteCluster.sync", {"Name": "c"})


def test_sagemaker_jobs(aws: Integrations) -> None:
    role = "arn:aws:iam::123456789012:role/r"
    training = {
        "TrainingJobName": "train",
        "RoleArn": role,
        "AlgorithmSpecification": {"TrainingImage": "i", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://b/"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    }
    found = output(aws, "sagemaker:createTrainingJob.sync", training)
    assert found["TrainingJobStatus"] == "Completed"
    model = {"ModelName": "m", "ExecutionRoleArn": role, "PrimaryContainer": {"Image": "i"}}
    assert output(aws, "sagemaker:createModel", model)["ModelArn"]


def test_bedrock_invoke_model(aws: Integrations) -> None:
    parameters = {"ModelId": "anthropic.claude-v2", "Body": {"prompt": "hi"}}
    assert output(aws, "bedrock:invokeModel", parameters)["Body"] == {}
