"""The shop behind the workflows."""

import asl

ORDERS = {
    17: {"status": "on its way", "total": 20},
    18: {"status": "delivered", "total": 90},
}


def find_order(parameters):
    """Return an order by its number."""
    number = parameters["order"]
    if number not in ORDERS:
        raise asl.StateError("Shop.UnknownOrder", f"there is no order {number}")
    return ORDERS[number]


def pay_back(parameters):
    """Pay the total of an order back."""
    return {"refunded": parameters["amount"]}
