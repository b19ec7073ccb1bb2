import os


def handler(event, context):
    name = event["image"].partition(".")[0]
    return {"id": f"{event['album']}/{name}", "width": os.environ["WIDTH"]}
