import os


class Poison(Exception):
    pass


def handle(event, context):
    assert os.environ["QUEUE_URL"].endswith("/orders-work-dev")
    if event["Body"] == "poison":
        raise Poison(event["MessageId"])
