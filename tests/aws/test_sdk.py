"""`aws-sdk:SERVICE:ACTION`: any action of any service, in the names of Step Functions."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.session import get_session

from asl import aws as services
from asl.aws import Integrations
from asl.aws.names import class_name, exception_name, field_name, service_name
from asl.checks.service_catalog import sdk_services
from tests.aws.endpoint_server import Answer, endpoint_server
from tests.aws.tasks import failure, output

Client = Callable[[str], Any]

ACTIONS = {
    "accessanalyzer:listAnalyzers": {},
    "acm:listCertificates": {},
    "apigateway:getRestApis": {},
    "appconfig:listApplications": {},
    "applicationautoscaling:describeScalableTargets": {"ServiceNamespace": "ecs"},
    "athena:listDataCatalogs": {},
    "autoscaling:describeAutoScalingGroups": {},
    "backup:listBackupVaults": {},
    "batch:describeJobQueues": {},
    "bedrockruntime:invokeModel": {"ModelId": "m", "Body": {"a": 1}},
    "cloudformation:describeStacks": {"StackName": "s"},
    "cloudfront:listDistributions": {},
    "cloudwatch:putMetricData": {"Namespace": "n", "MetricData": [{"MetricName": "m", "Value": 1}]},
    "cloudwatchlogs:describeLogGroups": {},
    "codebuild:listProjects": {},
    "cognitoidentityprovider:listUserPools": {"MaxResults": 1},
    "costexplorer:listCostCategoryDefinitions": {},
    "databasemigration:describeEndpoints": {},
    "dynamodb:listTables": {},
    "ec2:describeInstances": {"InstanceIds": ["i-1"]},
    "ecr:describeRepositories": {},
    "ecs:listClusters": {},
    "efs:describeFileSystems": {},
    "eks:listClusters": {},
    "elasticloadbalancingv2:describeLoadBalancers": {},
    "emr:listClusters": {},
    "eventbridge:listRules": {},
    "firehose:putRecord": {"DeliveryStreamName": "d", "Record": {"Data": {"a": 1}}},
    "glue:getDatabases": {},
    "iam:listUsers": {},
    "kinesis:listStreams": {},
    "kms:listKeys": {},
    "lambda:listFunctions": {},
    "organizations:listAccounts": {},
    "rds:describeDBClusters": {"DbClusterIdentifier": "c"},
    "redshiftdata:listStatements": {},
    "route53:listHostedZones": {},
    "s3:listBuckets": {},
    "sagemaker:listModels": {},
    "scheduler:listSchedules": {},
    "secretsmanager:listSecrets": {},
    "ses:listIdentities": {},
    "sesv2:listEmailIdentities": {},
    "sfn:listStateMachines": {},
    "sns:listTopics": {},
    "sqs:listQueues": {},
    "ssm:getParameter": {"Name": "p"},
    "sts:getCallerIdentity": {},
    "textract:getDocumentAnalysis": {"JobId": "j"},
    "transcribe:listTranscriptionJobs": {},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_requests_of_many_services(action: str) -> None:
    """Each protocol of botocore takes the parameters; an error has the name of its service."""
    with endpoint_server(lambda request: Answer(b"", 500)) as (url, received):
        aws = services.integrations(endpoint_url=url)
        name, cause = failure(aws, f"aws-sdk:{action}", ACTIONS[action])
    service = action.partition(":")[0]
    prefix, _, base = name.partition(".")
    assert (prefix.lower(), base) == (service, f"{prefix}Exception")
    assert f"(Service: {prefix}, Status Code: 500, Request ID: " in cause
    assert len(received) == 1
    assert received[0].headers["Authorization"].startswith("AWS4-HMAC-SHA256 ")


def test_every_service_has_a_model() -> None:
    """The services that checks know are those of botocore, by the names of errors: a sample."""
    session = get_session()
    for name, each in [*sdk_services().items()][::9]:
        model = session.get_service_model(each.model)
        assert service_name(str(model.service_id)).lower() == name


def test_names_of_the_sdk_for_java() -> None:
    assert [field_name(each) for each in ("jobId", "DBClusters", "ETag", "MD5OfBody", "ARN")] == [
        *("JobId", "DbClusters", "ETag", "Md5OfBody", "Arn"),
    ]
    assert [class_name(each) for each in ("DynamoDB", "SFN", "API Gateway", "EC2", "SSM")] == [
        *("DynamoDb", "Sfn", "ApiGateway", "Ec2", "Ssm"),
    ]
    assert exception_name("NoSuchKey") == "NoSuchKeyException"
    assert exception_name("DBInstanceNotFoundFault") == "DbInstanceNotFoundException"
    assert exception_name("InvalidParameterException", legacy=True) == "InvalidParameterException"


def test_s3_objects(aws: Integrations, client: Client) -> None:
    client("s3").create_bucket(Bucket="bucket")
    place = {"Bucket": "bucket", "Key": "a/b c.json"}
    for body, text in (({"Dict": "Value"}, '{"Dict":"Value"}'), ("text", "text"), (0, "0")):
        put = output(aws, "aws-sdk:s3:putObject", {**place, "Body": body})
        assert {"ETag", "ChecksumCRC32"} <= put.keys()
        assert "SdkHttpMetadata" not in put
        got = output(aws, "aws-sdk:s3:getObject", place)
        assert got["Body"] == text
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", got["LastModified"])
    listed = output(aws, "aws-sdk:s3:listObjectsV2", {"Bucket": "bucket"})
    assert [each["Key"] for each in listed["Contents"]] == ["a/b c.json"]
    name, cause = failure(aws, "aws-sdk:s3:getObject", {**place, "Key": "none"})
    assert name == "S3.NoSuchKeyException"
    assert re.fullmatch(
        r"The specified key does not exist\. \(Service: S3, Status Code: 404, .*\)", cause
    )
    assert failure(aws, "aws-sdk:s3:listObjectsV2", {"Bucket": "none"})[0] == (
        "S3.NoSuchBucketException"
    )


def test_binary_body_is_base64(aws: Integrations, client: Client) -> None:
    client("s3").create_bucket(Bucket="bucket")
    client("s3").put_object(Bucket="bucket", Key="raw", Body=b"\xff\xfe")
    got = output(aws, "aws-sdk:s3:getObject", {"Bucket": "bucket", "Key": "raw"})
    assert got["Body"] == "//4="


def test_secrets_and_parameters(aws: Integrations) -> None:
    output(aws, "aws-sdk:secretsmanager:createSecret", {"Name": "n", "SecretString": {"a": 1}})
    found = output(aws, "aws-sdk:secretsmanager:getSecretValue", {"SecretId": "n"})
    assert found["SecretString"] == '{"a":1}'
    assert found["CreatedDate"].endswith("Z")
    assert found["Arn"].startswith("arn:aws:secretsmanager:")
    put = {"Name": "/p", "Value": "v", "Type": "String"}
    output(aws, "aws-sdk:ssm:putParameter", put)
    found = output(aws, "aws-sdk:ssm:getParameter", {"Name": "/p"})
    assert found["Parameter"]["Value"] == "v"


def test_kms_blobs(aws: Integrations) -> None:
    key = output(aws, "aws-sdk:kms:createKey", {})["KeyMetadata"]["KeyId"]
    sealed = output(aws, "aws-sdk:kms:encrypt", {"KeyId": key, "Plaintext": "hi"})
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", sealed["CiphertextBlob"])


def test_dynamodb_scan(aws: Integrations, client: Client) -> None:
    output(
        aws,
        "aws-sdk:dynamodb:createTable",
        {
            "TableName": "T",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    for id in ("1", "2"):
        output(aws, "aws-sdk:dynamodb:putItem", {"TableName": "T", "Item": {"id": {"S": id}}})
    found = output(aws, "aws-sdk:dynamodb:scan", {"TableName": "T"})
    assert (found["Count"], found["ScannedCount"]) == (2, 2)


def test_rds_names(aws: Integrations) -> None:
    cluster = {"DbClusterIdentifier": "c", "Engine": "aurora-mysql", "MasterUsername": "u"}
    output(aws, "aws-sdk:rds:createDBCluster", {**cluster, "MasterUserPassword": "password"})
    found = output(aws, "aws-sdk:rds:describeDBClusters", {"DbClusterIdentifier": "c"})
    assert found["DbClusters"][0]["DbClusterIdentifier"] == "c"
    name, _ = failure(aws, "aws-sdk:rds:describeDBClusters", {"DbClusterIdentifier": "none"})
    assert name == "Rds.DbClusterNotFoundException"


def test_unknown_and_wrong_parameters(aws: Integrations) -> None:
    for parameters, reason in (
        ({"QueueUrls": "q"}, 'The field "QueueUrls" is not supported by Step Functions'),
        ({"MaxResults": 1.5}, "The value of the field 'MaxResults' has an invalid format"),
        ({"MaxResults": "many"}, "The value of the field 'MaxResults' has an invalid format"),
    ):
        name, cause = failure(aws, "aws-sdk:sqs:listQueues", parameters)
        assert name == "States.Runtime"
        assert reason in cause


def test_missing_member_of_the_path(aws: Integrations) -> None:
    name, cause = failure(aws, "aws-sdk:s3:getObject", {"Bucket": "bucket"})
    assert name == "States.Runtime"
    assert '"Key" is required' in cause


def test_unknown_action(aws: Integrations) -> None:
    name, cause = failure(aws, "aws-sdk:sqs:listQueuez", {})
    assert (name, "upgrade boto3" in cause) == ("States.Runtime", True)


def test_deep_parameters(aws: Integrations) -> None:
    """A value as deep as a document can be reaches the service, or fails the Task."""
    value: Any = {"S": "x"}
    for _ in range(45):
        value = {"M": {"a": {"L": [value]}}}
    parameters = {"TableName": "T", "Item": {"id": value}}
    name, _ = failure(aws, "aws-sdk:dynamodb:putItem", parameters)
    assert name.startswith("DynamoDb.")
