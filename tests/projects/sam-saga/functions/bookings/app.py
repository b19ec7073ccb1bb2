class CardDeclined(Exception):
    pass


def reserve_flight(event, context):
    return {"id": f"flight-{event['trip']}", "kind": "flight"}


def reserve_hotel(event, context):
    return {"id": f"hotel-{event['trip']}", "kind": "hotel"}


def charge_card(event, context):
    if event["amount"] > 1000:
        raise CardDeclined(f"no credit for {event['trip']}")
    return {"charged": event["amount"]}
