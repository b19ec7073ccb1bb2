"""The Lambda function that computes a bill."""

CENTS = {"home": 30, "shop": 25}


class WrongReading(Exception):
    """The meter ran backwards."""


def handler(row, context):
    """Return the bill for a row of the file; all values of the row are texts."""
    used = int(row["after"]) - int(row["before"])
    if used < 0:
        raise WrongReading(f"{row['customer']}: {used} kWh")
    return {"customer": row["customer"], "kwh": used, "euro": used * CENTS[row["tariff"]] / 100}
