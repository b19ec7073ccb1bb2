import os

from money import format_amount


class CardDeclined(Exception):
    pass


def handler(event, context):
    print("charging order", event["id"])
    if event["amount"] > 1000:
        raise CardDeclined(f"no credit for {event['id']}")
    return {**event, "paid": format_amount(event["amount"], os.environ["CURRENCY"])}
