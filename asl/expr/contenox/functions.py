"""The functions of the dialect, as JSONata sees them: one row each.

All are pure and bounded by their data; `docs/dialects/contenox.md` says what each one is for.
"""

from collections.abc import Callable, Mapping
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.contenox import chain_data, handlers, rendering, texts
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.functions.dialects import function_table

__all__ = ["TABLE"]


def _asked(chat: Json, tools: list[str]) -> Json:
    """Whether the last message asks for any of these tools."""
    return bool(handlers.calls(chat, tools))


def _failed(found: Json, task: str, error: Json, *given: Json) -> Json:
    return chain_data.failed(found, task, error, given[0] if given else chain_data.input_of(found))


def _tried(found: Json, task: str, handler: str, given: Json) -> Json:
    """Do a task that no agent does; behind its failure the data evaluates to nothing."""
    try:
        return chain_data.done(found, task, _OWN[handler](given))
    except StateError as error:
        if error.name == "States.Runtime":
            raise
        return chain_data.failed(found, task, {"Error": error.name, "Cause": error.cause}, given)


def _own(found: Json, task: str, handler: str, given: Json) -> Json:
    """Do a task that no agent does; behind a failure its own tells of the first one."""
    try:
        return chain_data.done(found, task, _OWN[handler](given))
    except StateError as error:
        if error.name == "States.Runtime":
            raise
        told: Any = chain_data.after(found, task, {"Error": error.name, "Cause": error.cause})
        raise StateError(told["Error"], told["Cause"]) from None


_OWN: Mapping[str, Callable[[Json], handlers.Handled]] = {
    "parse_transition": handlers.command,
    "parse_key_value": handlers.pairs,
    "convert_to_openai_chat_response": handlers.converted,
}
"""What handlers do that ask nobody."""

_ROWS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "input": ("<x:x>", chain_data.input_of, 1),
    "begun": ("<xa<s>x:x>", rendering.begun, 3),
    "variable": ("<xs:x>", chain_data.variable, 2),
    "text": ("<xss?:s>", rendering.filled, 3),
    "expanded": ("<xss?:s>", rendering.expanded, 3),
    "prompt": ("<xb?:s>", texts.prompt, 2),
    "done": ("<xso:o>", chain_data.done, 3),
    "failed": ("<xsox?:o>", _failed, 4),
    "tried": ("<xssx:o>", _tried, 4),
    "own": ("<xssx:o>", _own, 4),
    "after": ("<xso:o>", chain_data.after, 3),
    "counted": ("<xs:o>", chain_data.counted, 2),
    "edge_count": ("<xs:n>", chain_data.traversals, 2),
    "compose": ("<xsos?:o>", chain_data.composed, 4),
    "gt": ("<sn:b>", texts.greater, 2),
    "lt": ("<sn:b>", texts.less, 2),
    "in_range": ("<snn:b>", texts.between, 3),
    "noop": ("<x:o>", lambda given: handlers.handled(given, "noop"), 1),
    "answer": ("<xs:o>", handlers.handled, 2),
    "prompt_to_string": ("<x:o>", handlers.text, 1),
    "prompt_to_js": (
        "<x:o>",
        lambda answer: handlers.handled(answer, "ok" if texts.handed(answer) else "empty_js"),
        1,
    ),
    "condition_key": ("<xo:o>", handlers.condition, 2),
    "parse_number": ("<x:o>", handlers.number, 1),
    "parse_score": ("<x:o>", handlers.score, 1),
    "parse_range": ("<x:o>", handlers.range_of, 1),
    "route": ("<xxa<s>:o>", handlers.route, 3),
    "tool": ("<xss?:o>", handlers.tool, 3),
    "chat": ("<xs?:o>", handlers.chat_of, 2),
    "chat_completion": ("<xxs?:o>", handlers.answered, 3),
    "calls": ("<xx?:a>", handlers.calls, 2),
    "execute_tool_calls": ("<xxx?s?:o>", handlers.ran, 4),
    "parse_transition": ("<x:o>", handlers.command, 1),
    "parse_key_value": ("<x:o>", handlers.pairs, 1),
    "convert_to_openai_chat_response": ("<x:o>", handlers.converted, 1),
    "asked": ("<xa<s>:b>", _asked, 2),
}
"""Signature, function and number of arguments by the name behind `$contenox_`."""

TABLE: dict[str, Native] = function_table("contenox", _ROWS)
"""Every function by its name in a query."""
