"""What the meanings of the functions of workflows leave out, for the writers of other languages."""

import ast
from collections.abc import Iterator
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.errors import ExpressionFault
from asl.dialects.codemie.answer_places import names_in
from asl.dialects.codemie.config import CodemieState, Config
from asl.dialects.codemie.functions.conditions import parse
from asl.dialects.codemie.functions.outputs import parse_schema
from asl.dialects.codemie.graph import Graph
from asl.dialects.codemie.machine import RECURSION_LIMIT
from asl.dialects.codemie.round_trip import workflow

__all__ = ["meaning_losses"]

_REMOVED: Final = ("clear_context_store", "reset_keys_in_context_store")


def meaning_losses(document: Document) -> Iterator[Finding]:
    """Yield what a workflow does here and its meaning does not say.

    Args:
        document: A document that was read from a workflow.

    Yields:
        A loss for each cause and state, with its place in the workflow.
    """
    config = workflow(document.value)
    start = f"{config.start.pointer}/id"
    yield Finding(
        "L-ROOTMERGE",
        "an answer is stored under a key of its own, and its members are not merged into the data",
        start,
        "read them there; the key is the output_key of the state, or its id",
        at_key=True,
    )
    yield Finding(
        "L-INPUT",
        "an input that is a text is not the first message of the conversation",
        start,
        "give an object as the input",
        at_key=True,
    )
    yield Finding(
        "L-MISSING",
        "what the platform refuses, such as an output without the iter_key, does not fail the run",
        start,
        at_key=True,
    )
    yield from _of_whole(config, start)
    for state in config.states.values():
        yield from _of_state(config, state)


def _of_whole(config: Config, start: str) -> Iterator[Finding]:
    graph = Graph(config.states)
    limit = config.value.get("recursion_limit", RECURSION_LIMIT)
    if graph.longest > limit:
        place = f"{config.base}/recursion_limit" if "recursion_limit" in config.value else start
        message = f"the run does not fail after {limit} states"
        yield Finding("L-LIMIT", message, place, at_key=True)
    assistants = sum("assistant_id" in each.value for each in config.states.values())
    if assistants > 2 or (assistants and graph.longest == float("inf")):
        message = "an assistant gets the last answer, not all messages of the conversation"
        yield Finding("L-HISTORY", message, start, at_key=True)


def _of_state(config: Config, state: CodemieState) -> Iterator[Finding]:
    to, place = state.next, f"{state.pointer}/next"
    if any(names_in(state.value.get("task", ""))):
        message = "a placeholder without a value is not left as it is: nothing is inserted"
        at = f"{state.pointer}/task"
        yield Finding("L-REQUIRED", message, at, severity=Severity.INFO, at_key=True)
    for flag in _REMOVED:
        if to.get(flag):
            message = f"{flag!r} removes nothing from the data"
            yield Finding("L-REPLACE", message, f"{place}/{flag}", at_key=True)
    for text, _, below in state.conditions():
        if _has_types(state, text):
            continue
        message = "a condition compares an answer as it is: a text is not read as a value"
        hint = "return an object with numbers and booleans instead of texts"
        at, error = f"{place}/{below}", Severity.ERROR
        yield Finding("L-COERCE", message, at, hint, severity=error, at_key=True)
    if state.iter_key is not None:
        message = "the answers for the items become a list, under the key of the last state"
        yield Finding("L-MAPRESULT", message, f"{place}/iter_key", at_key=True)
    if "output_schema" in state.value and "assistant_id" in state.value:
        message = "an answer is not validated against the schema"
        yield Finding("L-ANSWER", message, f"{state.pointer}/output_schema", at_key=True)
    if state.gated:
        message = "the decision of a person stays in the data, and its input is not merged into it"
        field = "interrupt_before" if state.value.get("interrupt_before") else _OLD_GATE
        yield Finding("L-RECORD", message, f"{state.pointer}/{field}", at_key=True)
    actor = config.actor(state)
    if state.actor[0] == "tool_id" and actor.get("resolve_dynamic_values_in_response"):
        message = "placeholders in the result of a tool are not resolved"
        yield Finding("L-TEMPLATE", message, f"{state.pointer}/tool_id", at_key=True)


def _has_types(state: CodemieState, condition: str) -> bool:
    """Whether the schema of an answer gives the types of what a condition reads."""
    schema = parse_schema(state.value.get("output_schema", ""))
    properties = {} if schema is None else schema.get("properties")
    try:
        names = [each.id for each in ast.walk(parse(condition)) if isinstance(each, ast.Name)]
    except ExpressionFault:
        return False
    return isinstance(properties, dict) and all(
        isinstance(each := properties.get(name), dict) and "type" in each for name in names
    )


_OLD_GATE: Final = "wait_for_user_confirmation"
