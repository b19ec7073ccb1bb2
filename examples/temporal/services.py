"""The agents of the workflow: on Temporal each call is an activity."""


def score(person):
    """Return a risk from 0 to 9."""
    return {"risk": len(person["name"]) % 10}


def open_account(parameters, call):
    """Open an account; a bank takes the key, so that a repeated call opens no second one."""
    assert call.idempotency_key
    return {"account": f"A-{parameters['name'].upper()}"}


def send_mail(account):
    """Send a welcome."""
    return {"sent": account["account"]}
