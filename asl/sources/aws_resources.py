"""Names, ARNs and URLs of deployed resources by type.

Source: results of `Ref` and `Fn::GetAtt` in the CloudFormation documentation.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.sources.read_context import ACCOUNT, PARTITION, REGION

__all__ = ["ACTIVITY", "FUNCTION", "MACHINE", "RESOURCES", "ResourceType"]

FUNCTION: Final = f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:"
MACHINE: Final = f"arn:{PARTITION}:states:{REGION}:{ACCOUNT}:stateMachine:"
ACTIVITY: Final = f"arn:{PARTITION}:states:{REGION}:{ACCOUNT}:activity:"
_QUEUES: Final = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"


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
    return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{kind}"


RESOURCES: Final[Mapping[str, ResourceType]] = {
    "AWS::DynamoDB::Table": ResourceType("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::ECS::Cluster": ResourceType("ClusterName", _arn("ecs", "cluster/"), ""),
    "AWS::Events::EventBus": ResourceType("Name", _arn("events", "event-bus/"), ""),
    "AWS::Lambda::Alias": ResourceType(None, FUNCTION, called=True),
    "AWS::Lambda::Function": ResourceType("FunctionName", FUNCTION, "", called=True),
    "AWS::Lambda::Version": ResourceType(None, FUNCTION, called=True),
    "AWS::S3::Bucket": ResourceType("BucketName", f"arn:{PARTITION}:s3:::", ""),
    "AWS::SNS::Topic": ResourceType("TopicName", _arn("sns")),
    "AWS::SQS::Queue": ResourceType("QueueName", _arn("sqs"), _QUEUES, {"QueueUrl": _QUEUES}),
    "AWS::Serverless::Function": ResourceType("FunctionName", FUNCTION, "", called=True),
    "AWS::Serverless::SimpleTable": ResourceType("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::Serverless::StateMachine": ResourceType("Name", MACHINE, called=True),
    "AWS::StepFunctions::Activity": ResourceType("Name", ACTIVITY, called=True),
    "AWS::StepFunctions::StateMachine": ResourceType("StateMachineName", MACHINE, called=True),
}
