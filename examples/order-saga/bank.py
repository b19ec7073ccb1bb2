"""The Lambda functions of the shop: plain handlers, deployed to AWS as they are."""


class CardDeclined(Exception):
    """The bank does not accept the card."""


def charge(event, context):
    """Charge the card of an order."""
    if event["card"] == "expired":
        raise CardDeclined("the card has expired")
    return {"charge": f"charge-of-{event['card']}"}


def refund(event, context):
    """Pay a charge back."""
    return {"refunded": event["charge"]}
