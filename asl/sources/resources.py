"""What a deployment makes of the resources that workflows call: their names, ARNs and addresses.

As CloudFormation documents what `Ref` and `Fn::GetAtt` return, by the type of the resource.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.sources.reading import ACCOUNT, PARTITION, REGION

__all__ = ["ACTIVITY", "FUNCTION", "MACHINE", "RESOURCES", "Made"]

FUNCTION: Final = f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:"
MACHINE: Final = f"arn:{PARTITION}:states:{REGION}:{ACCOUNT}:stateMachine:"
ACTIVITY: Final = f"arn:{PARTITION}:states:{REGION}:{ACCOUNT}:activity:"
_QUEUES: Final = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"


class Made(NamedTuple):
    """One type of resources."""

    name: str | None
    """The property that names one."""
    arn: str
    """How its ARN begins; its name completes it."""
    ref: str | None = None
    """How what `Ref` gives begins: '' where it is the name, None where it is the ARN."""
    others: Mapping[str, str] = {}
    """How the values of attributes begin that are neither the name nor the ARN."""
    called: bool = False
    """Whether a stand-in without a name of its own has that of the template."""


def _arn(service: str, kind: str = "") -> str:
    return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{kind}"


RESOURCES: Final[Mapping[str, Made]] = {
    "AWS::DynamoDB::Table": Made("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::ECS::Cluster": Made("ClusterName", _arn("ecs", "cluster/"), ""),
    "AWS::Events::EventBus": Made("Name", _arn("events", "event-bus/"), ""),
    "AWS::Lambda::Alias": Made(None, FUNCTION, called=True),
    "AWS::Lambda::Function": Made("FunctionName", FUNCTION, "", called=True),
    "AWS::Lambda::Version": Made(None, FUNCTION, called=True),
    "AWS::S3::Bucket": Made("BucketName", f"arn:{PARTITION}:s3:::", ""),
    "AWS::SNS::Topic": Made("TopicName", _arn("sns")),
    "AWS::SQS::Queue": Made("QueueName", _arn("sqs"), _QUEUES, {"QueueUrl": _QUEUES}),
    "AWS::Serverless::Function": Made("FunctionName", FUNCTION, "", called=True),
    "AWS::Serverless::SimpleTable": Made("TableName", _arn("dynamodb", "table/"), ""),
    "AWS::Serverless::StateMachine": Made("Name", MACHINE, called=True),
    "AWS::StepFunctions::Activity": Made("Name", ACTIVITY, called=True),
    "AWS::StepFunctions::StateMachine": Made("StateMachineName", MACHINE, called=True),
}
