"""Optimized integrations: requests, results and errors as Step Functions has them."""

import json
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session

import asl
import asl.aws
from asl.aws import Integrations
from tests.aws.endpoint_server import Answer, Received, endpoint_server
from tests.aws.tasks import failure, output, task

Client = Callable[[str], Any]


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


@pytest.fixture
def function(client: Client) -> str:
    """The ARN of a function; moto answers for it."""
    code = BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("main.py", "def handler(event, context): return event")
    role = client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    made = client("lambda").create_function(
        FunctionName="work",
        Runtime="python3.12",
        Role=role,
        Handler="main.handler",
        Code={"ZipFile": code.getvalue()},
    )
    return str(made["FunctionArn"])


def test_lambda_invoke(aws: Integrations, function: str, moto_api: Callable[..., None]) -> None:
    moto_api("static/lambda-simple/response", {"results": ['{"n": 1}', '{"n": 2}']})
    sent = output(aws, "lambda:invoke", {"FunctionName": "work", "Payload": {"n": 0}})
    assert sent["Payload"] == {"n": 1}
    assert sent["StatusCode"] == 200
    assert {"SdkHttpMetadata", "SdkResponseMetadata"} <= set(sent)
    state = {"Type": "Task", "Resource": function, "End": True}
    result = asl.run({"StartAt": "Call", "States": {"Call": state}}, {"n": 0}, aws=aws)
    assert result.output == {"n": 2}


def test_lambda_errors() -> None:
    """An endpoint answers as Lambda does, since moto runs functions in containers only."""
    body = {"errorType": "Broken", "errorMessage": "no"}

    def fail(request: Received) -> Answer:
        if "other" in request.path:
            error = {"x-amzn-ErrorType": "ResourceNotFoundException", "x-amzn-RequestId": "r-1"}
            return Answer({"Message": "Function not found: other", "Type": "User"}, 404, error)
        return Answer(body, headers={"X-Amz-Function-Error": "Unhandled"})

    with endpoint_server(fail) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        name, cause = failure(aws, "lambda:invoke", {"FunctionName": "work", "Payload": {"n": 1}})
        assert (name, json.loads(cause)) == ("Broken", body)
        assert received[0].body == '{"n":1}'
        missing = failure(aws, "lambda:invoke", {"FunctionName": "other", "Payload": {}})
    assert missing == (
        "Lambda.ResourceNotFoundException",
        "Function not found: other (Service: AWSLambda; Status Code: 404; "
        "Error Code: ResourceNotFoundException; Request ID: r-1; Proxy: null)",
    )


def test_bound_functions_and_others(
    aws: Integrations, function: str, moto_api: Callable[..., None]
) -> None:
    """`lambda:invoke` calls a bound function, else that of the service."""
    moto_api("static/lambda-simple/response", {"results": ['"far"']})
    own = {"arn:aws:lambda:us-east-1:123456789012:function:own": lambda event: "own"}
    for name, answer in (("own", "own"), ("work", "far")):
        document = task("lambda:invoke", {"FunctionName": name, "Payload": {}})
        result = asl.run(document, resources=own, aws=aws)
        assert result.output["Payload"] == answer


@pytest.fixture
def machine(client: Client) -> str:
    """The ARN of a state machine of the service."""
    role = client("iam").create_role(RoleName="sfn", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    definition = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    made = client("stepfunctions").create_state_machine(
        name="Far", definition=json.dumps(definition), roleArn=role
    )
    return str(made["stateMachineArn"])


NEAR = {"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}


@pytest.mark.parametrize("workflows", [None, {"Near": NEAR}])
def test_start_execution_of_the_service(aws: Integrations, machine: str, workflows: Any) -> None:
    """A state machine that the run does not know is started by the service."""
    parameters = {"StateMachineArn": machine, "Input": {"n": 1}}
    document = task("states:startExecution.sync:2", parameters)
    result = asl.run(document, aws=aws, workflows=workflows, clock="virtual")
    assert result.output["Status"] == "SUCCEEDED", result.cause
    assert result.output["Input"] == {"n": 1}
    assert type(result.output["StartDate"]) is int
    document = task("states:startExecution", parameters)
    result = asl.run(document, aws=aws, workflows=workflows)
    assert result.ok, result.cause
    started = result.output
    assert started["ExecutionArn"].startswith(machine.replace("stateMachine", "execution"))


def test_start_execution_of_an_unknown_state_machine(aws: Integrations) -> None:
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:None"
    name, cause = failure(aws, "states:startExecution", {"StateMachineArn": arn})
    assert name == "StepFunctions.StateMachineDoesNotExistException"
    assert "(Service: AWSStepFunctions; Status Code: 400; Error Code: StateMachineDoesNot" in cause


def test_wait_for_task_token(aws: Integrations, client: Client) -> None:
    url = client("sqs").create_queue(QueueName="asked")["QueueUrl"]
    tokens = asl.TaskTokens()
    body = {"token.$": "$$.Task.Token"}
    parameters = {"QueueUrl": url, "MessageBody": body}
    document = task("sqs:sendMessage.waitForTaskToken", parameters, TimeoutSeconds=60)

    def answer(event: asl.Event) -> None:
        if event.type == "TaskSubmitted":
            (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
            tokens.send_task_success(json.loads(message["Body"])["token"], {"ok": True})

    result = asl.run(document, aws=aws, tokens=tokens, listener=answer)
    assert result.output == {"ok": True}


def test_apigateway_invoke() -> None:
    def answer(request: Received) -> Answer:
        status = 404 if "missing" in request.path else 200
        return Answer({"got": request.body}, status)

    with endpoint_server(answer) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url)
        parameters = {
            "ApiEndpoint": "abc.execute-api.us-east-1.amazonaws.com",
            "Method": "POST",
            "Stage": "dev",
            "Path": "/pets",
            "QueryParameters": {"a": ["1", "2"]},
            "RequestBody": {"n": 1, "none": None},
            "AuthType": "IAM_ROLE",
        }
        got = output(aws, "apigateway:invoke", parameters)
        assert (got["StatusCode"], got["StatusText"]) == (200, "OK")
        assert got["ResponseBody"] == {"got": '{"n":1}'}
        assert got["Headers"]["Content-Type"] == ["application/json"]
        (sent,) = received
        assert sent.path == "/dev/pets?a=1&a=2"
        assert sent.headers["Host"] == parameters["ApiEndpoint"]
        assert sent.headers["Authorization"].startswith("AWS4-HMAC-SHA256 ")
        parameters["Path"] = "missing"
        assert failure(aws, "apigateway:invoke", parameters)[0] == "ApiGateway.404"
        parameters["Headers"] = {"one": "text"}
        name, cause = failure(aws, "apigateway:invoke", parameters)
        assert name == "States.Runtime"
        assert cause.endswith("[The value of the field 'Headers' has an invalid format]")


def test_http_invoke(endpoint: str, client: Client) -> None:
    """The connection of EventBridge brings credentials; other statuses than 2xx fail."""
    arn = client("events").create_connection(
        Name="shop",
        AuthorizationType="BASIC",
        AuthParameters={"BasicAuthParameters": {"Username": "ada", "Password": "secret"}},
    )["ConnectionArn"]
    with endpoint_server(lambda each: Answer({"path": each.path}, 200 if each.body else 503)) as (
        url,
        received,
    ):
        aws = asl.aws.integrations(endpoint_url=endpoint, services=["http"])
        parameters = {
            "ApiEndpoint": f"{url}/orders",
            "Method": "POST",
            "Authentication": {"ConnectionArn": arn},
            "QueryParameters": {"q": "x y"},
            "RequestBody": {"ids": [1, 2]},
            "Transform": {
                "RequestBodyEncoding": "URL_ENCODED",
                "RequestEncodingOptions": {"ArrayFormat": "BRACKETS"},
            },
        }
        got = output(aws, "http:invoke", parameters)
        assert got["ResponseBody"] == {"path": "/orders?q=x+y"}
        assert received[0].headers["Authorization"] == "Basic YWRhOnNlY3JldA=="
        assert received[0].body == "ids%5B%5D=1&ids%5B%5D=2"
        del parameters["RequestBody"]
        name, cause = failure(aws, "http:invoke", parameters)
        assert name == "States.Http.StatusCode.503"
        assert json.loads(cause) == {"path": "/orders?q=x+y"}


def test_http_invoke_with_other_connections(endpoint: str, client: Client) -> None:
    """An API key, and client credentials of OAuth with what the connection adds."""

    def answer(request: Received) -> Answer:
        return Answer({"access_token": "t-1"})

    with endpoint_server(answer) as (url, received):
        more = {"HeaderParameters": [{"Key": "X-Shop", "Value": "7", "IsValueSecret": False}]}
        oauth = {
            "ClientParameters": {"ClientID": "id", "ClientSecret": "secret"},
            "AuthorizationEndpoint": f"{url}/token",
            "HttpMethod": "POST",
        }
        for kind, authorization in (
            ("API_KEY", {"ApiKeyAuthParameters": {"ApiKeyName": "X-Key", "ApiKeyValue": "k"}}),
            ("OAUTH_CLIENT_CREDENTIALS", {"OAuthParameters": oauth}),
        ):
            arn = client("events").create_connection(
                Name=kind.lower(),
                AuthorizationType=kind,
                AuthParameters={**authorization, "InvocationHttpParameters": more},
            )["ConnectionArn"]
            aws = asl.aws.integrations(endpoint_url=endpoint, services=["http"])
            connection = {"ConnectionArn": arn}
            parameters = {"ApiEndpoint": url, "Method": "GET", "Authentication": connection}
            output(aws, "http:invoke", parameters)
    key, token, bearer = received
    assert (key.headers["X-Key"], key.headers["X-Shop"]) == ("k", "7")
    assert token.body == "grant_type=client_credentials&client_id=id&client_secret=secret"
    assert bearer.headers["Authorization"] == "Bearer t-1"


def test_http_invoke_without_an_answer(endpoint: str) -> None:
    aws = asl.aws.integrations(endpoint_url=endpoint, services=["http"])
    parameters = {"ApiEndpoint": "http://127.0.0.1:1/", "Method": "GET"}
    assert failure(aws, "http:invoke", parameters)[0] == "States.Http.Socket"


def test_role_of_the_task(aws: Integrations, client: Client) -> None:
    """A call is signed with the credentials of the role in `Credentials`."""
    role = client("iam").create_role(RoleName="far", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    identity = "aws-sdk:sts:getCallerIdentity"
    found = output(aws, identity, {}, Credentials={"RoleArn": role})
    assert found["Arn"] == "arn:aws:sts::123456789012:assumed-role/far/asl"
    assert "assumed-role" not in output(aws, identity, {})["Arn"]
    with endpoint_server(lambda request: Answer(b"", 403)) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        name, cause = failure(aws, identity, {}, Credentials={"RoleArn": role})
    assert name == "States.TaskFailed"
    assert cause.startswith(f"the role '{role}' in 'Credentials' cannot be assumed: ")


def test_a_session_of_the_user(endpoint: str) -> None:
    session = Session("own", "key", region_name="eu-west-2")
    with endpoint_server(lambda request: Answer({"Entries": []})) as (url, received):
        aws = asl.aws.integrations(endpoint_url=url, session=session)
        output(aws, "events:putEvents", {"Entries": []})
    assert "Credential=own/" in received[0].headers["Authorization"]
    assert "/eu-west-2/events/" in received[0].headers["Authorization"]


def test_task_in_a_store(aws: Integrations, client: Client, tmp_path: Path) -> None:
    """Calls of an execution in a store, whose token another process answers."""
    url = client("sqs").create_queue(QueueName="asked")["QueueUrl"]
    parameters = {"QueueUrl": url, "MessageBody": {"token.$": "$$.Task.Token"}}
    document = task("sqs:sendMessage.waitForTaskToken", parameters)
    with asl.open_store(tmp_path / "runs.db", aws=aws) as store:
        assert store.run(document, name="one").status == "PAUSED"
        (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
        store.tokens.send_task_success(json.loads(message["Body"])["token"], {"ok": True})
        assert store.resume("one").output == {"ok": True}


def test_state_machines_of_the_service(aws: Integrations, client: Client, machine: str) -> None:
    """Registered state machines call services, and start those that are not registered."""
    url = client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    send = task("sqs:sendMessage", {"QueueUrl": url, "MessageBody": "x"})
    start = task("states:startExecution", {"StateMachineArn": machine})
    role = "arn:aws:iam::123456789012:role/any"
    with asl.StepFunctions(aws=aws) as states:
        for name, document, field in (("send", send, "MessageId"), ("far", start, "ExecutionArn")):
            made = states.create_state_machine(
                name=name, definition=json.dumps(document), roleArn=role, type="EXPRESS"
            )
            ended = states.start_sync_execution(stateMachineArn=made["stateMachineArn"])
            assert ended["status"] == "SUCCEEDED", ended["cause"]
            assert field in json.loads(ended["output"])
