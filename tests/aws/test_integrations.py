"""Optimized integrations: requests, results and errors as Step Functions has them."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import asl
import asl.aws
from asl.aws import Integrations

Json = Any
Client = Callable[[str], Any]


def task(resource: str, parameters: Json, **fields: Json) -> Json:
    """Return a document of one Task."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "End": True}
    return {"StartAt": "Call", "States": {"Call": {**state, "Parameters": parameters, **fields}}}


def output(aws: Integrations, resource: str, parameters: Json, **fields: Json) -> Json:
    result = asl.run(task(resource, parameters, **fields), aws=aws, clock="virtual")
    result.raise_for_status()
    return result.output


def failure(aws: Integrations, resource: str, parameters: Json, **fields: Json) -> tuple[str, str]:
    result = asl.run(task(resource, parameters, **fields), aws=aws, clock="virtual")
    assert result.status == "FAILED", result.output
    return str(result.error), str(result.cause)


@pytest.fixture
def table(client: Client) -> str:
    client("dynamodb").create_table(
        TableName="Orders",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "Orders"


def test_dynamodb_items(aws: Integrations, table: str) -> None:
    key = {"id": {"S": "1"}}
    item = {**key, "n": {"N": "7"}, "tags": {"SS": ["a", "b"]}, "raw": {"B": "aGk="}}
    put = output(aws, "dynamodb:putItem", {"TableName": table, "Item": item})
    assert put["SdkHttpMetadata"]["HttpStatusCode"] == 200
    assert set(put) == {"SdkHttpMetadata", "SdkResponseMetadata"}
    update = {
        "UpdateExpression": "SET n = :n",
        "ExpressionAttributeValues": {":n": {"N": "8"}},
        "ReturnValues": "UPDATED_NEW",
    }
    changed = output(aws, "dynamodb:updateItem", {"TableName": table, "Key": key, **update})
    assert changed["Attributes"] == {"n": {"N": "8"}}
    found = output(aws, "dynamodb:getItem", {"TableName": table, "Key": key})
    assert found["Item"]["n"] == {"N": "8"}
    assert sorted(found["Item"]["tags"]["SS"]) == ["a", "b"]
    output(aws, "dynamodb:deleteItem", {"TableName": table, "Key": key})
    assert "Item" not in output(aws, "dynamodb:getItem", {"TableName": table, "Key": key})


def test_dynamodb_errors(aws: Integrations, table: str) -> None:
    condition = {"ConditionExpression": "attribute_exists(id)"}
    parameters = {"TableName": table, "Item": {"id": {"S": "1"}}, **condition}
    name, cause = failure(aws, "dynamodb:putItem", parameters)
    assert name == "DynamoDB.ConditionalCheckFailedException"
    assert re.fullmatch(
        r"The conditional request failed \(Service: AmazonDynamoDBv2; Status Code: 400; "
        r"Error Code: ConditionalCheckFailedException; Request ID: \w+; Proxy: null\)",
        cause,
    )
    name, cause = failure(aws, "aws-sdk:dynamodb:putItem", parameters)
    assert name == "DynamoDb.ConditionalCheckFailedException"
    assert re.fullmatch(
        r"The conditional request failed \(Service: DynamoDb, Status Code: 400, Request ID: \w+\)",
        cause,
    )


def test_sqs_send_message(aws: Integrations, client: Client) -> None:
    url = client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    sent = output(aws, "sqs:sendMessage", {"QueueUrl": url, "MessageBody": {"n": 1}})
    assert {"MD5OfMessageBody", "MessageId", "SdkHttpMetadata"} <= set(sent)
    (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == '{"n":1}'


def test_sns_publish(aws: Integrations, client: Client) -> None:
    arn = client("sns").create_topic(Name="news")["TopicArn"]
    assert output(aws, "sns:publish", {"TopicArn": arn, "Message": {"n": 1}})["MessageId"]
    name, cause = failure(aws, "sns:publish", {"TopicArn": f"{arn}-none", "Message": "x"})
    assert name == "SNS.NotFoundException"
    assert "(Service: AmazonSNS; Status Code: 404; Error Code: NotFound; " in cause


def test_events_put_events(aws: Integrations, client: Client) -> None:
    client("events").create_event_bus(Name="bus")
    entry = {"Detail": {"n": 1}, "DetailType": "t", "EventBusName": "bus", "Source": "s"}
    sent = output(aws, "events:putEvents", {"Entries": [entry]})
    assert set(sent) == {"Entries", "FailedEntryCount"}
    entry.pop("Source")
    name, cause = failure(aws, "events:putEvents", {"Entries": [entry]})
    assert name == "EventBridge.FailedEntry"
    assert json.loads(cause)["FailedEntryCount"] == 1


def test_retry_by_error_name(aws: Integrations, table: str) -> None:
    parameters = {"TableName": "Missing", "Key": {"id": {"S": "1"}}}
    retry = [{"ErrorEquals": ["DynamoDB.ResourceNotFoundException"], "MaxAttempts": 2}]
    document = task("dynamodb:getItem", parameters, Retry=retry)
    result = asl.run(document, aws=aws, clock="virtual")
    assert (result.error, result.elapsed) == ("DynamoDB.ResourceNotFoundException", 1 + 2)


def test_a_binding_of_the_user_wins(aws: Integrations) -> None:
    document = task("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "x"})
    result = asl.run(document, resources={"*": lambda sent: "own"}, aws=aws)
    assert result.output == "own"
