"""The structure of a blueprint: its keys and the types of their values."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.schema import Codes, DialectSchema

__all__ = ["SCHEMA", "check"]

SCHEMA: Final = DialectSchema(
    os.path.join(os.path.dirname(__file__), "schema.json"),
    Codes("FL-SHAPE", "FL-NEAR-MISS", "FL-UNKNOWN-KEY"),
)


def check(value: Json) -> Iterator[Finding]:
    """Yield what does not fit a blueprint, and rules of state machines that name no state."""
    yield from SCHEMA.check(value)
    if type(value) is dict:
        yield from _body(value.get("steps"), "/steps")


def _body(value: Json, pointer: str) -> Iterator[Finding]:
    if type(value) is dict and "steps" in value:
        value, pointer = value["steps"], f"{pointer}/steps"
    if type(value) is dict:
        yield from _step(value, pointer)
    elif type(value) is list:
        for index, each in enumerate(value):
            if type(each) is dict:
                yield from _step(each, f"{pointer}/{index}")


def _step(value: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    if value.get("kind") == "StateMachine":
        yield from _machine(value, pointer)
    for each, at in _bodies(value, pointer):
        yield from _body(each, at)


def _bodies(value: Mapping[str, Any], pointer: str) -> Iterator[tuple[Json, str]]:
    """Yield what holds steps, and where it is."""
    kind = value.get("kind")
    if kind == "StateMachine":
        held, at = value.get("states") or {}, f"{pointer}/states"
    elif kind == "dynamic_router":
        router = value.get("router")
        held = (router.get("branches") or {}) if type(router) is dict else {}
        at = f"{pointer}/router/branches"
    else:
        held, at = value.get("branches") or {}, f"{pointer}/branches"
    if type(held) is dict:
        for name, each in held.items():
            yield each, f"{at}/{escape(name)}"
    if kind in ("loop", "map") and type(value.get(kind)) is dict:
        yield value[kind].get("body"), f"{pointer}/{kind}/body"
    for key in ("default_branch", "wrapped_step", "fallback"):
        if key in value:
            yield value[key], f"{pointer}/{key}"


def _machine(value: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    states, ends, rules = value.get("states"), value.get("end_states"), value.get("transitions")
    if type(rules) is not list or type(states) is not dict:
        return
    known = [*states, *(map(str, ends) if type(ends) is list else [str(ends)] if ends else [])]
    for index, rule in enumerate(rules):
        if type(rule) is dict:
            yield from _rule(rule, states, known, f"{pointer}/transitions/{index}")


def _rule(
    rule: Mapping[str, Json], states: Mapping[str, Json], known: list[str], pointer: str
) -> Iterator[Finding]:
    source, target = rule.get("from"), rule.get("to")
    if "from" in rule and source != "*" and str(source) not in states:
        if type(source) is list:
            hint: str | None = "write one rule for each of them"
        elif str(source) in known:
            hint = "an end state is never left; give it steps under states to run it"
        else:
            near = did_you_mean(str(source), [*states, "*"])
            hint = near or "name one of states, or * for any of them"
        message = f"there is no state {source!r} to come from"
        yield Finding("FL-FROM", message, f"{pointer}/from", hint)
    if "to" in rule and str(target) not in known:
        hint = did_you_mean(str(target), known) or "name it under states or in end_states"
        yield Finding("FL-TO", f"there is no state {target!r}", f"{pointer}/to", hint)
