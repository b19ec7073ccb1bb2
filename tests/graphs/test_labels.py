"""The words of drawings."""

from asl.graphs.labels import distinguish, shorten
from asl.graphs.model import graph_of

LONG = "$states.input.order.delivery.address.country = "


def test_long_conditions_of_a_choice_stay_apart() -> None:
    """What they share at their beginning is left out, so that what differs is drawn."""
    rules = [{"Condition": f"{{% {LONG}'{country}' %}}", "Next": "Z"} for country in ("de", "fr")]
    states = {
        "A": {
            "Type": "Choice",
            "QueryLanguage": "JSONata",
            "Choices": [*rules, {"Condition": "{% true %}", "Next": "Z"}],
            "Default": "Z",
        },
        "Z": {"Type": "Succeed"},
    }
    labels = [
        each.label
        for each in graph_of({"StartAt": "A", "States": states}).transitions
        if each.kind == "choice"
    ]
    assert labels == ["…'de'", "…'fr'", "true"]


def test_short_distinct_labels_are_whole() -> None:
    """Short ones, equal ones, and those that differ early."""
    for labels in (["a = 1", "a = 2"], [LONG * 2, LONG * 2], [f"{LONG}1", f"not {LONG}1"]):
        assert distinguish(labels) == [each.strip() for each in labels]
    first, second = distinguish([f"{'x' * 60}1", f"{'x' * 60}2"])
    assert shorten(first, 44) != shorten(second, 44)
