"""The functions of the dialect, as JSONata sees them: one row each.

All are pure and bounded by their data; `docs/dialects/codemie.md` says what each one is for.
"""

from collections.abc import Callable
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import WorkMeter, fail_beyond_limits
from asl.expr.codemie import context_store, outputs, transforms
from asl.expr.codemie.conditions import holds
from asl.expr.codemie.outputs import as_text, coerced, parsed
from asl.expr.codemie.placeholders import argument, filled, looked_up, placeholders
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.functions.dialects import function_table
from asl.expr.jsonata.javascript import UNDEFINED

__all__ = ["TABLE"]


def _text(data: Json, template: Json, deep: bool = False) -> Json:
    with fail_beyond_limits():
        return filled(as_text(template), context_store.in_scope(data), deep=deep)


def _arguments(data: Json, arguments: Json, input_key: Json = None, deep: bool = False) -> Json:
    with fail_beyond_limits():
        return _resolved(data, arguments, input_key, WorkMeter(), deep)


def _resolved(
    data: Json, arguments: Json, input_key: Json, meter: WorkMeter, deep: bool
) -> dict[str, Json]:
    scope = context_store.in_scope(data)
    if input_key is not None:
        steps = next(placeholders(f"{{{{{input_key}}}}}")).steps
        found = looked_up(steps, scope, meter) if steps else None
        found = parsed(found) if isinstance(found, str) else found
        if not isinstance(found, dict):
            raise StateError("CM.ToolArguments", f"the context has no object at {input_key!r}")
        scope = found
    given = {key: scope.get(key) if each in (None, "") else each for key, each in arguments.items()}
    resolved = {key: argument(each, scope, meter, deep=deep) for key, each in given.items()}
    return {key: each for key, each in resolved.items() if each is not None}


def _output(data: Json) -> Json:
    return context_store.last_object(data)


def _holds(data: Json, condition: str) -> Json:
    found = parsed(context_store.opened(data)[1].get("last", ""))
    return isinstance(found, dict) and holds(condition, coerced(found))


def _branch(data: Json, item: Json = UNDEFINED, include: Json = None) -> Json:
    if item is UNDEFINED:
        return context_store.begun(data)
    return context_store.entered(
        data, item, context_store.EVERYTHING if include is None else include
    )


_ROWS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "text": ("<xxb?:s>", _text, 3),
    "arguments": ("<xo(sl)?b?:o>", _arguments, 4),
    "context": ("<x:o>", context_store.context_of, 1),
    "history": ("<x:a>", context_store.history, 1),
    "store": (
        "<xxx?o?:o>",
        lambda data, result, state=None, flags=None: context_store.stored(
            data, result, state, flags or {}
        ),
        4,
    ),
    "step": ("<xn:o>", context_store.stepping, 2),
    "output": ("<x:o>", _output, 1),
    "holds": ("<xs:b>", _holds, 2),
    "items": ("<xs:a>", context_store.items, 2),
    "branch": ("<xx?x?:o>", _branch, 3),
    "join": ("<xa:o>", context_store.joined, 2),
    "resume": (
        "<xxx?:o>",
        lambda data, record, state=None: context_store.resumed(data, record, state),
        3,
    ),
    "valid": ("<xo:x>", outputs.valid, 2),
    "refuse": (
        "<xon:o>",
        lambda data, error, limit: context_store.refused(data, error, int(limit)),
        3,
    ),
    "errors": ("<x:a>", context_store.errors, 1),
    "at": ("<xs:x>", context_store.picked, 2),
    "transform": ("<xo:x>", transforms.transformed, 2),
}
"""Signature, function and number of arguments by the name behind `$codemie_`."""

TABLE: dict[str, Native] = function_table("codemie", _ROWS)
"""Every function by its name in a query."""
