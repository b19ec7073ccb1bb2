"""The functions of the dialect for JSONata: one row each.

All are pure and bounded by their data; `docs/dialects/contenox.md` describes them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from asl.core.dialect_parts import DialectFunction
from asl.core.errors import StateError
from asl.core.values import Json
from asl.dialects.contenox.functions import chain_data, handlers, rendering, texts
from asl.expr.agent_answers import answer_of

__all__ = ["TABLE"]


def _requests_tool(chat: Json, tools: list[str]) -> Json:
    """Return whether the last message calls one of these tools."""
    return bool(handlers.tool_calls(chat, tools))


def _fail_task(found: Json, task: str, error: Json, *given: Json) -> Json:
    return chain_data.fail_task(
        found, task, error, given[0] if given else chain_data.input_of(found)
    )


def _try_handler(found: Json, task: str, handler: str, given: Json) -> Json:
    """Return the data after a task without an agent; a failure of its handler is caught."""
    try:
        return chain_data.complete_task(found, task, _LOCAL_HANDLERS[handler](given))
    except StateError as error:
        if error.name == "States.Runtime":
            raise
        return chain_data.fail_task(found, task, {"Error": error.name, "Cause": error.cause}, given)


def _run_handler(found: Json, task: str, handler: str, given: Json) -> Json:
    """Return the data after a task without an agent; raises StateError with the first failure in
    its cause.
    """
    try:
        return chain_data.complete_task(found, task, _LOCAL_HANDLERS[handler](given))
    except StateError as error:
        if error.name == "States.Runtime":
            raise
        told: Any = chain_data.final_error(found, task, {"Error": error.name, "Cause": error.cause})
        raise StateError(told["Error"], told["Cause"]) from None


_LOCAL_HANDLERS: Mapping[str, Callable[[Json], handlers.HandlerResult]] = {
    "parse_transition": handlers.parse_transition,
    "parse_key_value": handlers.parse_key_value,
    "convert_to_openai_chat_response": handlers.to_openai_response,
}
"""The handlers of tasks without an agent."""


def _of_answer(
    handler: Callable[..., handlers.HandlerResult],
) -> Callable[..., handlers.HandlerResult]:
    """Return a handler of an answer as a function of the raw result of its agent."""

    def handle(result: Json, *others: Any) -> handlers.HandlerResult:
        return handler(answer_of(result), *others)

    return handle


def _route(given: Json, result: Json, labels: list[str]) -> handlers.HandlerResult:
    return handlers.route(given, answer_of(result), labels)


def _execute_tool_calls(chat: Json, result: Json, *others: Any) -> handlers.HandlerResult:
    return handlers.execute_tool_calls(chat, answer_of(result), *others)


def _prompt_to_js(answer: Json) -> handlers.HandlerResult:
    return handlers.handler_result(answer, "ok" if texts.input_text(answer) else "empty_js")


_ROWS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "input": ("<x:x>", chain_data.input_of),
    "begun": ("<xa<s>x:x>", rendering.require_caller_values),
    "variable": ("<xs:x>", chain_data.get_variable),
    "text": ("<xss?:s>", rendering.render),
    "expanded": ("<xss?:s>", rendering.expand_macros),
    "prompt": ("<xb?:s>", texts.prompt_text),
    "done": ("<xso:o>", chain_data.complete_task),
    "failed": ("<xsox?:o>", _fail_task),
    "tried": ("<xssx:o>", _try_handler),
    "own": ("<xssx:o>", _run_handler),
    "after": ("<xso:o>", chain_data.final_error),
    "counted": ("<xs:o>", chain_data.count_transition),
    "edge_count": ("<xs:n>", chain_data.transition_count),
    "compose": ("<xsos?:o>", chain_data.compose_output),
    "gt": ("<sn:b>", texts.is_greater),
    "lt": ("<sn:b>", texts.is_less),
    "in_range": ("<snn:b>", texts.is_between),
    "noop": ("<x:o>", lambda given: handlers.handler_result(given, "noop")),
    "echo": ("<s:o>", lambda text: handlers.handler_result(text, text)),
    "answer": ("<xs:o>", _of_answer(handlers.handler_result)),
    "prompt_to_string": ("<x:o>", _of_answer(handlers.prompt_to_string)),
    "prompt_to_js": ("<x:o>", _of_answer(_prompt_to_js)),
    "condition_key": ("<xo:o>", _of_answer(handlers.condition_key)),
    "parse_number": ("<x:o>", _of_answer(handlers.parse_number)),
    "parse_score": ("<x:o>", _of_answer(handlers.parse_score)),
    "parse_range": ("<x:o>", _of_answer(handlers.parse_range)),
    "route": ("<xxa<s>:o>", _route),
    "tool": ("<xss?:o>", _of_answer(handlers.tool_result)),
    "chat": ("<xs?:o>", handlers.to_chat),
    "chat_completion": ("<xxs?:o>", handlers.chat_completion),
    "calls": ("<xx?:a>", handlers.tool_calls),
    "execute_tool_calls": ("<xxx?s?:o>", _execute_tool_calls),
    "parse_transition": ("<x:o>", handlers.parse_transition),
    "parse_key_value": ("<x:o>", handlers.parse_key_value),
    "convert_to_openai_chat_response": ("<x:o>", handlers.to_openai_response),
    "asked": ("<xa<s>:b>", _requests_tool),
}
"""Signatures and functions by the name after `$contenox_`."""

TABLE: Mapping[str, DialectFunction] = {
    name: DialectFunction(*row, json=True) for name, row in _ROWS.items()
}
