"""Names, ARNs and URLs of deployed resources by type.

Prefixes have fields for partition, region and account (`ReadContext.locate`).
Source: results of `Ref` and `Fn::GetAtt` in the CloudFormation documentation.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = [
    "ACTIVITY",
    "FUNCTION",
    "MACHINE",
    "MACHINE_ALIAS",
    "MACHINE_VERSION",
    "RESOURCES",
    "ResourceType",
]

FUNCTION: Final = "arn:{partition}:lambda:{region}:{account}:function:"
MACHINE: Final = "arn:{partition}:states:{region}:{account}:stateMachine:"
ACTIVITY: Final = "arn:{partition}:states:{region}:{account}:activity:"
_QUEUES: Final = "https://sqs.{region}.amazonaws.com/{account}/"


class ResourceType(NamedTuple):
    """One type of AWS resource."""

    name: str | None
    """Property that holds its name; None if it has none."""
    arn: str
    """Prefix of its ARN; the name completes it."""
    ref: str | None = None
    """Prefix of the result of `Ref`: '' for the name, None for the ARN."""
    others: Mapping[str, str] = {}
    """Prefixes of the values of further attributes."""
    called: bool = False
    """Whether a stand-in for a resource without a name uses its logical name."""


def _arn(service: str, kind: str = "") -> str:
    return f"arn:{{partition}}:{service}:{{region}}:{{account}}:{kind}"


MACHINE_VERSION: Final = "AWS::StepFunctions::StateMachineVersion"
MACHINE_ALIAS: Final = "AWS::StepFunctions::StateMachineAlias"
"""Resources whose ARN begins with that of another one."""
RESOURCES: Final[Mapping[str, ResourceType]] = {
    "AWS::DynamoDB::Table": ResourceType("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::ECS::Cluster": ResourceType("ClusterName", _arn("ecs", "cluster/"), ""),
    "AWS::Events::EventBus": ResourceType("Name", _arn("events", "event-bus/"), ""),
    "AWS::Lambda::Alias": ResourceType(None, FUNCTION, called=True),
    "AWS::Lambda::Function": ResourceType("FunctionName", FUNCTION, "", called=True),
    "AWS::Lambda::Version": ResourceType(None, FUNCTION, called=True),
    "AWS::S3::Bucket": ResourceType("BucketName", "arn:{partition}:s3:::", ""),
    "AWS::SNS::Topic": ResourceType("TopicName", _arn("sns")),
    "AWS::SQS::Queue": ResourceType("QueueName", _arn("sqs"), _QUEUES, {"QueueUrl": _QUEUES}),
    "AWS::Serverless::Function": ResourceType("FunctionName", FUNCTION, "", called=True),
    "AWS::Serverless::SimpleTable": ResourceType("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::Serverless::StateMachine": ResourceType("Name", MACHINE, called=True),
    "AWS::StepFunctions::Activity": ResourceType("Name", ACTIVITY, called=True),
    "AWS::StepFunctions::StateMachine": ResourceType("StateMachineName", MACHINE, called=True),
}
