"""The optimized integrations: a row for each service, each action and each kind of job.

Requests and responses here have the names of Step Functions. `JobPolling` rows describe how `.sync`
watches what an action has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from asl.aws.errors import ErrorForm
from asl.core.json_text import read_data
from asl.core.values import Json, compact
from asl.effects.service_agent import uuid_of
from asl.engine.agent import Call
from asl.states.errors import RaisedError

__all__ = ["ACTIONS", "SERVICES", "ActionRow", "JobPolling", "ServiceRow", "job_status", "pick"]

Fields: TypeAlias = dict[str, Json]
Prepare: TypeAlias = Callable[[Fields, Call], Fields]
Shape: TypeAlias = Callable[[Fields], Json]


class ServiceRow(NamedTuple):
    """A service as optimized integrations call it."""

    model: str
    """botocore's name of it."""
    prefix: str
    """The service in names of errors."""
    legacy: tuple[str, str] | None = None
    """Service and base exception in version 1 of the SDK for Java; None for version 2."""

    @property
    def errors(self) -> ErrorForm | None:
        """The names in errors; None for those of version 2."""
        return None if self.legacy is None else ErrorForm(self.prefix, *self.legacy, legacy=True)


class JobPolling(NamedTuple):
    """How to follow a job: `describe` returns what is at `item`, with a status at `status`."""

    describe: str
    request: Callable[[Fields, Fields], Fields]
    """Returns the request of `describe` for the request and the response that began the job."""
    status: str
    succeeded: tuple[str, ...]
    failed: tuple[str, ...]
    item: str = ""
    stop: tuple[str, Callable[[Fields, Fields], Fields]] | None = None
    """The operation that stops the job, and its request."""
    name: str = ""
    """The field of the result that holds the item; the item itself if empty."""
    gone: bool = False
    """Whether the job has succeeded when the service no longer knows its subject."""
    judge: Callable[[Fields], bool] | None = None
    """Whether a job that has ended was successful; None for always."""


def _unchanged(parameters: Fields, call: Call) -> Fields:
    return parameters


def _whole(response: Fields) -> Json:
    return response


class PartLookup(NamedTuple):
    """How to find the id of a part of a cluster by its name."""

    part: str
    """The kind of part: `InstanceFleet`."""
    operation: str
    """The operation that lists the parts of a cluster."""

    def request(self, parameters: Fields, listed: Fields) -> Fields:
        """Return the parameters with the id of the part instead of its name.

        Raises:
            RaisedError: EMR.InvalidRequestException; the cluster has no such part.
        """
        name, parts = parameters.get(f"{self.part}Name"), listed.get(f"{self.part}s")
        for each in parts if isinstance(parts, list) else ():
            if pick(each, "Name") == name:
                change = {f"{self.part}Id": pick(each, "Id"), **(parameters.get(self.part) or {})}
                return {"ClusterId": parameters.get("ClusterId"), self.part: change}
        raise RaisedError("EMR.InvalidRequestException", f"the cluster has no {self.part} {name!r}")


class ActionRow(NamedTuple):
    """An action of an optimized integration."""

    operation: str = ""
    """botocore's operation; the name of the action with a capital if empty."""
    prepare: Prepare = _unchanged
    """Returns the request for the parameters of a state."""
    shape: Shape = _whole
    """Returns the result for the response; raises RaisedError for a failure in it."""
    job: JobPolling | None = None
    lookup: PartLookup | None = None
    """A request before the action that finds an id; None without one."""
    metadata: bool = True
    """Whether the result has the metadata of the response, if errors are of version 1."""
    model: str = ""
    """botocore's name of the service, if it is not that of the other actions."""


def pick(value: Json, path: str) -> Json:
    """Return a member of a response by its dotted path, None if it is missing."""
    for name in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def job_status(job: JobPolling, item: Fields) -> bool | None:
    """Return whether a job was successful, None while it runs."""
    status = pick(item, job.status)
    if status in job.succeeded:
        return job.judge is None or job.judge(item)
    return False if status in job.failed else None


# Requests and responses of single actions --------------------------------------------------------


def _as_events(parameters: Fields, call: Call) -> Fields:
    """Add the ARNs of execution and state machine to the resources of each event (AWS)."""
    entries = parameters.get("Entries")
    if not isinstance(entries, list):
        return parameters
    arns = [call.at.execution_id, call.at.execution.workflow_id]
    return {
        **parameters,
        "Entries": [
            {**each, "Resources": [*(each.get("Resources") or ()), *arns]}
            if isinstance(each, dict)
            else each
            for each in entries
        ],
    }


def _put_events(response: Fields) -> Json:
    if response.get("FailedEntryCount"):
        raise RaisedError("EventBridge.FailedEntry", compact(response))
    return response


def _tasks(response: Fields) -> Json:
    if response.get("Failures"):
        raise RaisedError("AmazonECS.Unknown", compact(response))
    return response


def _named_execution(parameters: Fields, call: Call) -> Fields:
    """Name the execution by the call, so that a repeated call after a crash starts no other."""
    named = {"Name": uuid_of(call, "execution"), **parameters}
    named.pop("AssociateWithParent", None)
    return named


def _renamed(**names: str) -> Prepare:
    """Return a function that renames parameters; a name that ends in `s` gets a list."""

    def rename(parameters: Fields, call: Call) -> Fields:
        found: Fields = {}
        for name, value in parameters.items():
            new = names.get(name, name)
            found[new] = [value] if new == f"{name}s" or new == "JobFlowIds" else value
        return found

    return rename


def _only(**paths: str) -> Shape:
    """Return a function that makes a result of these fields of a response."""
    return lambda response: {name: pick(response, path) for name, path in paths.items()}


def _model_answer(response: Fields) -> Json:
    body = response.get("Body")
    try:
        return {**response, "Body": read_data(body) if isinstance(body, str) else body}
    except ValueError:
        return response


# Jobs --------------------------------------------------------------------------------------------


def _same(*fields: str) -> Callable[[Fields, Fields], Fields]:
    """Return a function that makes a request of fields of the response, else of the request."""
    return lambda sent, got: {name: got.get(name, sent.get(name)) for name in fields}


def _exit_codes(task: Fields) -> bool:
    containers = task.get("Containers")
    each = containers if isinstance(containers, list) else []
    return all(pick(container, "ExitCode") == 0 for container in each)


def _training(kind: str, failed: tuple[str, ...] = ("Failed", "Stopped")) -> JobPolling:
    """Return the row for a kind of job of SageMaker, whose fields repeat the kind."""
    name = f"{kind}Name"
    return JobPolling(
        f"Describe{kind}", _same(name), f"{kind}Status", ("Completed",), failed,
        stop=(f"Stop{kind}", _same(name)),
    )  # fmt: skip


def _cluster_part(kind: str, *, gone: bool = False) -> JobPolling:
    """Return the row for a part of a cluster of EKS that is made, or deleted."""
    fields = ("Name",) if kind == "Cluster" else ("ClusterName", f"{kind}Name")
    return JobPolling(
        f"Describe{kind}",
        lambda sent, got: {name: sent.get(name) for name in fields},
        f"{kind}.Status",
        () if gone else ("ACTIVE",),
        ("FAILED", "CREATE_FAILED", "DELETE_FAILED", "DEGRADED"),
        gone=gone,
    )


def _application(*succeeded: str) -> JobPolling:
    """Return the row for a change of an application of EMR Serverless."""
    failed = tuple({"TERMINATED"} - set(succeeded))
    return JobPolling(
        "GetApplication",
        _same("ApplicationId"),
        "Application.State",
        succeeded,
        failed,
        gone="TERMINATED" in succeeded,
    )


_QUERY = JobPolling(
    "GetQueryExecution",
    _same("QueryExecutionId"),
    "QueryExecution.Status.State",
    ("SUCCEEDED",),
    ("FAILED", "CANCELLED"),
    stop=("StopQueryExecution", _same("QueryExecutionId")),
)
_BATCH = JobPolling(
    "DescribeJobs",
    lambda sent, got: {"Jobs": [got["JobId"]]},
    "Status",
    ("SUCCEEDED",),
    ("FAILED",),
    item="Jobs.0",
    stop=(
        "TerminateJob",
        lambda sent, got: {"JobId": got["JobId"], "Reason": "The task was stopped"},
    ),
)
_CUSTOMIZATION = JobPolling(
    "GetModelCustomizationJob",
    lambda sent, got: {"JobIdentifier": got["JobArn"]},
    "Status",
    ("Completed",),
    ("Failed", "Stopped"),
    stop=("StopModelCustomizationJob", lambda sent, got: {"JobIdentifier": got["JobArn"]}),
)
_BUILD = JobPolling(
    "BatchGetBuilds",
    lambda sent, got: {"Ids": [pick(got, "Build.Id")]},
    "BuildStatus",
    ("SUCCEEDED",),
    ("FAILED", "FAULT", "STOPPED", "TIMED_OUT"),
    item="Builds.0",
    stop=("StopBuild", lambda sent, got: {"Id": pick(got, "Build.Id")}),
    name="Build",
)
_BUILD_BATCH = JobPolling(
    "BatchGetBuildBatches",
    lambda sent, got: {"Ids": [pick(got, "BuildBatch.Id")]},
    "BuildBatchStatus",
    ("SUCCEEDED",),
    ("FAILED", "FAULT", "STOPPED", "TIMED_OUT"),
    item="BuildBatches.0",
    stop=("StopBuildBatch", lambda sent, got: {"Id": pick(got, "BuildBatch.Id")}),
    name="BuildBatch",
)
_RECIPE = JobPolling(
    "DescribeJobRun",
    _same("Name", "RunId"),
    "State",
    ("SUCCEEDED",),
    ("FAILED", "STOPPED", "TIMEOUT"),
    stop=("StopJobRun", _same("Name", "RunId")),
)
_CONTAINERS = JobPolling(
    "DescribeTasks",
    lambda sent, got: {"Cluster": sent.get("Cluster"), "Tasks": [pick(got, "Tasks.0.TaskArn")]},
    "LastStatus",
    ("STOPPED", "DELETED"),
    (),
    item="Tasks.0",
    stop=(
        "StopTask",
        lambda sent, got: {"Cluster": sent.get("Cluster"), "Task": pick(got, "Tasks.0.TaskArn")},
    ),
    judge=_exit_codes,
)
_STEP = JobPolling(
    "DescribeStep",
    _same("ClusterId", "StepId"),
    "Step.Status.State",
    ("COMPLETED",),
    ("FAILED", "CANCELLED", "INTERRUPTED"),
    stop=(
        "CancelSteps",
        lambda sent, got: {"ClusterId": sent.get("ClusterId"), "StepIds": [got["StepId"]]},
    ),
)
_CLUSTER = JobPolling(
    "DescribeCluster",
    _same("ClusterId"),
    "Cluster.Status.State",
    ("WAITING", "TERMINATED"),
    ("TERMINATED_WITH_ERRORS",),
)
_CLUSTER_END = _CLUSTER._replace(succeeded=("TERMINATED", "TERMINATED_WITH_ERRORS"), failed=())
_VIRTUAL_CLUSTER = JobPolling(
    "DescribeVirtualCluster",
    _same("Id"),
    "VirtualCluster.State",
    ("TERMINATED",),
    ("ARRESTED",),
)
_VIRTUAL_JOB = JobPolling(
    "DescribeJobRun",
    _same("Id", "VirtualClusterId"),
    "JobRun.State",
    ("COMPLETED",),
    ("FAILED", "CANCELLED"),
    stop=("CancelJobRun", _same("Id", "VirtualClusterId")),
)
_SERVERLESS_JOB = JobPolling(
    "GetJobRun",
    _same("ApplicationId", "JobRunId"),
    "JobRun.State",
    ("SUCCESS",),
    ("FAILED", "CANCELLED"),
    stop=("CancelJobRun", _same("ApplicationId", "JobRunId")),
)
_GLUE = JobPolling(
    "GetJobRun",
    lambda sent, got: {"JobName": sent.get("JobName"), "RunId": got["JobRunId"]},
    "JobRunState",
    ("SUCCEEDED",),
    ("FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"),
    item="JobRun",
    stop=(
        "BatchStopJobRun",
        lambda sent, got: {"JobName": sent.get("JobName"), "JobRunIds": [got["JobRunId"]]},
    ),
)
_MEDIA = JobPolling(
    "GetJob",
    lambda sent, got: {"Id": pick(got, "Job.Id")},
    "Job.Status",
    ("COMPLETE",),
    ("ERROR", "CANCELED"),
    stop=("CancelJob", lambda sent, got: {"Id": pick(got, "Job.Id")}),
)
_EXECUTION = JobPolling(
    "DescribeExecution",
    _same("ExecutionArn"),
    "Status",
    ("SUCCEEDED",),
    ("FAILED", "TIMED_OUT", "ABORTED"),
    stop=("StopExecution", _same("ExecutionArn")),
)


# Tables ------------------------------------------------------------------------------------------

SERVICES: Final[Mapping[str, ServiceRow]] = {
    "athena": ServiceRow("athena", "Athena", ("AmazonAthena", "AmazonAthenaException")),
    "batch": ServiceRow("batch", "Batch", ("AWSBatch", "AWSBatchException")),
    "bedrock": ServiceRow("bedrock-runtime", "Bedrock"),
    "bedrock-agentcore": ServiceRow("bedrock-agentcore", "BedrockAgentCore"),
    "codebuild": ServiceRow("codebuild", "CodeBuild", ("AWSCodeBuild", "AWSCodeBuildException")),
    "databrew": ServiceRow("databrew", "DataBrew"),
    "dynamodb": ServiceRow("dynamodb", "DynamoDB", ("AmazonDynamoDBv2", "AmazonDynamoDBException")),
    "ecs": ServiceRow("ecs", "ECS", ("AmazonECS", "AmazonECSException")),
    "eks": ServiceRow("eks", "EKS", ("AmazonEKS", "AmazonEKSException")),
    "elasticmapreduce": ServiceRow(
        "emr", "EMR", ("AmazonElasticMapReduce", "AmazonElasticMapReduceException")
    ),
    "emr-containers": ServiceRow("emr-containers", "EmrContainers"),
    "emr-serverless": ServiceRow("emr-serverless", "EmrServerless"),
    "events": ServiceRow(
        "events", "EventBridge", ("AmazonEventBridge", "AmazonEventBridgeException")
    ),
    "glue": ServiceRow("glue", "Glue", ("AWSGlue", "AWSGlueException")),
    "lambda": ServiceRow("lambda", "Lambda", ("AWSLambda", "AWSLambdaException")),
    "mediaconvert": ServiceRow("mediaconvert", "MediaConvert"),
    "sagemaker": ServiceRow(
        "sagemaker", "SageMaker", ("AmazonSageMaker", "AmazonSageMakerException")
    ),
    "sns": ServiceRow("sns", "SNS", ("AmazonSNS", "AmazonSNSException")),
    "sqs": ServiceRow("sqs", "SQS", ("AmazonSQS", "AmazonSQSException")),
    "states": ServiceRow(
        "stepfunctions", "StepFunctions", ("AWSStepFunctions", "AWSStepFunctionsException")
    ),
}
"""The services by their names in resources. Those of dynamodb, events, lambda, sns and states are
recorded from AWS; the others follow the same rule."""

ACTIONS: Final[Mapping[str, ActionRow]] = {
    "athena:getQueryExecution": ActionRow(),
    "athena:getQueryResults": ActionRow(),
    "athena:startQueryExecution": ActionRow(job=_QUERY),
    "athena:stopQueryExecution": ActionRow(),
    "batch:submitJob": ActionRow(job=_BATCH),
    "bedrock-agentcore:invokeHarness": ActionRow(),
    "bedrock:createModelCustomizationJob": ActionRow(job=_CUSTOMIZATION, model="bedrock"),
    "bedrock:invokeModel": ActionRow(shape=_model_answer),
    "codebuild:batchDeleteBuilds": ActionRow(),
    "codebuild:batchGetReports": ActionRow(),
    "codebuild:deleteBuildBatch": ActionRow(),
    "codebuild:retryBuildBatch": ActionRow(job=_BUILD_BATCH),
    "codebuild:startBuild": ActionRow(job=_BUILD),
    "codebuild:startBuildBatch": ActionRow(job=_BUILD_BATCH),
    "codebuild:stopBuild": ActionRow(),
    "codebuild:stopBuildBatch": ActionRow(),
    "databrew:startJobRun": ActionRow(job=_RECIPE),
    "dynamodb:deleteItem": ActionRow(),
    "dynamodb:getItem": ActionRow(),
    "dynamodb:putItem": ActionRow(),
    "dynamodb:updateItem": ActionRow(),
    "ecs:runTask": ActionRow(shape=_tasks, job=_CONTAINERS),
    "eks:createCluster": ActionRow(job=_cluster_part("Cluster")),
    "eks:createFargateProfile": ActionRow(job=_cluster_part("FargateProfile")),
    "eks:createNodegroup": ActionRow(job=_cluster_part("Nodegroup")),
    "eks:deleteCluster": ActionRow(job=_cluster_part("Cluster", gone=True)),
    "eks:deleteFargateProfile": ActionRow(job=_cluster_part("FargateProfile", gone=True)),
    "eks:deleteNodegroup": ActionRow(job=_cluster_part("Nodegroup", gone=True)),
    "elasticmapreduce:addStep": ActionRow(
        "AddJobFlowSteps",
        _renamed(ClusterId="JobFlowId", Step="Steps"),
        _only(StepId="StepIds.0"),
        _STEP,
    ),
    "elasticmapreduce:cancelStep": ActionRow(
        "CancelSteps",
        _renamed(StepId="StepIds"),
        _only(CancelStepsInfo="CancelStepsInfoList.0"),
    ),
    "elasticmapreduce:createCluster": ActionRow(
        "RunJobFlow", shape=_only(ClusterId="JobFlowId", ClusterArn="ClusterArn"), job=_CLUSTER
    ),
    "elasticmapreduce:modifyInstanceFleetByName": ActionRow(
        "ModifyInstanceFleet", lookup=PartLookup("InstanceFleet", "ListInstanceFleets")
    ),
    "elasticmapreduce:modifyInstanceGroupByName": ActionRow(
        "ModifyInstanceGroups",
        _renamed(InstanceGroup="InstanceGroups"),
        lookup=PartLookup("InstanceGroup", "ListInstanceGroups"),
    ),
    "elasticmapreduce:setClusterTerminationProtection": ActionRow(
        "SetTerminationProtection", _renamed(ClusterId="JobFlowIds")
    ),
    "elasticmapreduce:terminateCluster": ActionRow(
        "TerminateJobFlows", _renamed(ClusterId="JobFlowIds"), job=_CLUSTER_END
    ),
    "emr-containers:createVirtualCluster": ActionRow(),
    "emr-containers:deleteVirtualCluster": ActionRow(job=_VIRTUAL_CLUSTER),
    "emr-containers:startJobRun": ActionRow(job=_VIRTUAL_JOB),
    "emr-serverless:cancelJobRun": ActionRow(
        job=_SERVERLESS_JOB._replace(
            succeeded=("CANCELLED", "SUCCESS"), failed=("FAILED",), stop=None
        )
    ),
    "emr-serverless:createApplication": ActionRow(job=_application("CREATED", "STARTED")),
    "emr-serverless:deleteApplication": ActionRow(job=_application("TERMINATED")),
    "emr-serverless:startApplication": ActionRow(job=_application("STARTED")),
    "emr-serverless:startJobRun": ActionRow(job=_SERVERLESS_JOB),
    "emr-serverless:stopApplication": ActionRow(job=_application("STOPPED", "CREATED")),
    "events:putEvents": ActionRow(prepare=_as_events, shape=_put_events, metadata=False),
    "glue:startJobRun": ActionRow(job=_GLUE),
    "mediaconvert:createJob": ActionRow(job=_MEDIA),
    "sagemaker:createEndpoint": ActionRow(),
    "sagemaker:createEndpointConfig": ActionRow(),
    "sagemaker:createHyperParameterTuningJob": ActionRow(job=_training("HyperParameterTuningJob")),
    "sagemaker:createLabelingJob": ActionRow(job=_training("LabelingJob")),
    "sagemaker:createModel": ActionRow(),
    "sagemaker:createProcessingJob": ActionRow(job=_training("ProcessingJob")),
    "sagemaker:createTrainingJob": ActionRow(job=_training("TrainingJob")),
    "sagemaker:createTransformJob": ActionRow(job=_training("TransformJob")),
    "sagemaker:updateEndpoint": ActionRow(),
    "sns:publish": ActionRow(),
    "sqs:sendMessage": ActionRow(),
    "states:startExecution": ActionRow(prepare=_named_execution, job=_EXECUTION),
}
"""The actions that one operation performs; `lambda:invoke`, `http:invoke` and `apigateway:invoke`
have their own modules."""
