import os


def handler(event, context):
    size = "large" if event["size"] >= int(os.environ["LARGE"]) else "small"
    return {"kind": f"{size} {event['key'].rpartition('.')[2]}", "table": os.environ["TABLE"]}
