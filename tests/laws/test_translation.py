"""A machine in JSONPath and its translation into JSONata are the same machine."""

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

import asl
from asl.core.values import json_equal
from tests.laws.translation import (
    State,
    data,
    in_jsonata,
    in_jsonpath,
    machines,
    objects,
)

Json = Any


async def worker(parameters: Json) -> Json:
    """Hand back what it is given, in different forms; some of it fails."""
    if parameters is None or parameters in ("a", []):
        raise asl.StateError("E", "as asked")
    if type(parameters) is dict and len(parameters) == 1:
        return {"a": parameters, "b": len(str(parameters)), "list": list(parameters.values())}
    return parameters


def run(document: Json, given: Json) -> Any:
    return asl.run(document, given, agents={"Worker": worker}, clock="virtual")


@given(machines(), objects | data)
def test_both_languages_agree(states: list[State], given: Json) -> None:
    """They succeed with the same output, or fail both; and they take the same way."""
    one, other = run(in_jsonpath(states), given), run(in_jsonata(states), given)
    event(f"{one.status}, {len(one.visited)} states")
    assert (one.status, one.visited) == (other.status, other.visited), (one.cause, other.cause)
    assert json_equal(one.output, other.output)
    assert one.elapsed == other.elapsed


@given(machines(), machines(), st.booleans(), objects)
def test_languages_can_be_mixed(
    first: list[State], second: list[State], upwards: bool, given: Json
) -> None:
    """States of either language may follow each other: the output of one is the other's input."""
    whole = chained(in_jsonpath(first), in_jsonpath(second))
    mixed = (
        chained(in_jsonata(first), in_jsonpath(second))
        if upwards
        else chained(in_jsonpath(first), in_jsonata(second))
    )
    one, other = run(whole, given), run(mixed, given)
    assert one.status == other.status, (one.cause, other.cause)
    assert json_equal(one.output, other.output)


def chained(first: Json, second: Json) -> Json:
    """Put two machines one after the other, as branches of their own."""
    states = {}
    for name, each in (("First", first), ("Second", second)):
        language = each.pop("QueryLanguage", "JSONPath")
        states[name] = {
            "Type": "Parallel",
            "Branches": [written_in(language, renamed(each, name))],
            "OutputPath": "$[0]",
            **({"Next": "Second"} if name == "First" else {"End": True}),
        }
    return {"StartAt": "First", "States": states}


def renamed(machine: Json, prefix: str) -> Json:
    """Put a prefix before the name of every state, nested ones included."""
    named = {"Next", "Default", "StartAt"}

    def walk(value: Json) -> Json:
        if type(value) is list:
            return [walk(part) for part in value]
        if type(value) is not dict:
            return value
        done: Json = {
            key: f"{prefix}.{part}" if key in named and type(part) is str else walk(part)
            for key, part in value.items()
        }
        if "StartAt" in value:
            done["States"] = {f"{prefix}.{k}": part for k, part in done["States"].items()}
        return done

    return walk(machine)


def written_in(language: str, machine: Json) -> Json:
    """Say of every state of a machine, nested ones included, what it is written in."""
    for state in machine["States"].values():
        state["QueryLanguage"] = language
        for inner in [state.get("ItemProcessor"), *state.get("Branches", [])]:
            if inner is not None:
                written_in(language, inner)
    return machine
