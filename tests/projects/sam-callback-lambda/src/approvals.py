import json
import os

import boto3

requests = boto3.resource("dynamodb").Table(os.environ["REQUESTS"])
states = boto3.client("stepfunctions")


def request(event, context):
    """Store the token until somebody decides; the state waits for it."""
    requests.put_item(Item={"id": event["id"], "token": event["token"]})


def decide(event, context):
    """Answer the token of a request."""
    token = requests.get_item(Key={"id": event["id"]})["Item"]["token"]
    states.send_task_success(
        taskToken=token, output=json.dumps({"approved": event["amount"] < 100})
    )
    return "decided"
