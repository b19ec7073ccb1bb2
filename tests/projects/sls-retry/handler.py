import os

import boto3

table = boto3.resource("dynamodb").Table(os.environ["TABLE"])


class Throttled(Exception):
    pass


def call(event, context):
    """Fail as often as the event says."""
    if event["failures"] < 0:
        raise ValueError("no such number of failures")
    counted = table.update_item(
        Key={"id": event["id"]},
        UpdateExpression="ADD calls :one",
        ExpressionAttributeValues={":one": 1},
        ReturnValues="UPDATED_NEW",
    )
    calls = int(counted["Attributes"]["calls"])
    if calls <= event["failures"]:
        raise Throttled(f"attempt {calls}")
    return {"attempts": calls, "memory": context.memory_limit_in_mb}
