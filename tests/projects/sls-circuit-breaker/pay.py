class Unavailable(Exception):
    pass


def handler(event, context):
    if event["amount"] < 0:
        raise Unavailable("down")
    return {"paid": event["amount"]}
