"""Names, ARNs and URLs of the resources of Terraform's AWS provider."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.sources.aws_resources import ACTIVITY, FUNCTION, MACHINE
from asl.sources.aws_resources import RESOURCES as CLOUDFORMATION

__all__ = ["RESOURCES", "TerraformResource"]

_FUNCTION_ARNS: Final = dict.fromkeys(("arn", "qualified_arn", "invoke_arn"), FUNCTION)


class TerraformResource(NamedTuple):
    """One type of resource: its argument with a name, and the prefixes of its attributes."""

    name: str
    attributes: Mapping[str, str]
    called: bool = False
    """Whether a resource without a known name has stand-ins with the name of its block."""


def _arns(resource: str, *attributes: str) -> dict[str, str]:
    return dict.fromkeys(attributes, CLOUDFORMATION[resource].arn)


_QUEUE: Final = str(CLOUDFORMATION["AWS::SQS::Queue"].ref)
RESOURCES: Final[Mapping[str, TerraformResource]] = {
    "aws_cloudwatch_event_bus": TerraformResource("name", _arns("AWS::Events::EventBus", "arn")),
    "aws_dynamodb_table": TerraformResource(
        "name", {**_arns("AWS::DynamoDB::Table", "arn"), "id": ""}
    ),
    "aws_ecs_cluster": TerraformResource("name", _arns("AWS::ECS::Cluster", "arn", "id")),
    "aws_lambda_alias": TerraformResource("function_name", _FUNCTION_ARNS, True),
    "aws_lambda_function": TerraformResource(
        "function_name", {**_FUNCTION_ARNS, "id": "", "function_name": ""}, True
    ),
    "aws_s3_bucket": TerraformResource("bucket", {**_arns("AWS::S3::Bucket", "arn"), "id": ""}),
    "aws_sfn_activity": TerraformResource("name", {"arn": ACTIVITY, "id": ACTIVITY}, True),
    "aws_sfn_state_machine": TerraformResource("name", {"arn": MACHINE, "id": MACHINE}, True),
    "aws_sns_topic": TerraformResource("name", _arns("AWS::SNS::Topic", "arn", "id")),
    "aws_sqs_queue": TerraformResource(
        "name", {**_arns("AWS::SQS::Queue", "arn"), "id": _QUEUE, "url": _QUEUE}
    ),
}
"""Types of resources whose attributes follow from their names."""
