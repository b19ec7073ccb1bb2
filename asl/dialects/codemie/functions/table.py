"""The functions of the dialect for JSONata: one row each.

All are pure and bounded by their data; `docs/dialects/codemie.md` describes them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from asl.core.dialect_parts import DialectFunction
from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import WorkMeter, fail_beyond_limits
from asl.dialects.codemie.functions import context_store, outputs, transforms
from asl.dialects.codemie.functions.conditions import holds
from asl.dialects.codemie.functions.outputs import as_text, coerce_literals, parse_output
from asl.dialects.codemie.functions.placeholders import (
    fill,
    find_placeholders,
    look_up,
    resolve_argument,
)
from asl.expr.agent_answers import answer_of
from asl.expr.jsonata.javascript import UNDEFINED

__all__ = ["TABLE"]

NO_OPTIONS: Final[Mapping[str, Json]] = {}


Options: TypeAlias = Mapping[str, Json]
"""Options of a function that reads names: `deep` to resolve placeholders within values, `from` for
the places of the names in other languages.
"""


def _text(data: Json, template: Json, options: Options = NO_OPTIONS) -> Json:
    text, scope = as_text(answer_of(template)), context_store.scope_of(data)
    with fail_beyond_limits():
        return fill(text, scope, deep=bool(options.get("deep")))


def _arguments(data: Json, arguments: Json, options: Options = NO_OPTIONS) -> Json:
    with fail_beyond_limits():
        deep = bool(options.get("deep"))
        return _resolved(data, arguments, options.get("input_key"), WorkMeter(), deep)


def _resolved(
    data: Json, arguments: Json, input_key: Json, meter: WorkMeter, deep: bool
) -> dict[str, Json]:
    scope = context_store.scope_of(data)
    if input_key is not None:
        steps = next(find_placeholders(f"{{{{{input_key}}}}}")).steps
        found = look_up(steps, scope, meter) if steps else None
        found = parse_output(found) if isinstance(found, str) else found
        if not isinstance(found, dict):
            raise StateError("CM.ToolArguments", f"the context has no object at {input_key!r}")
        scope = found
    given = {key: scope.get(key) if each in (None, "") else each for key, each in arguments.items()}
    resolved = {key: resolve_argument(each, scope, meter, deep=deep) for key, each in given.items()}
    return {key: each for key, each in resolved.items() if each is not None}


def _output(data: Json, key: str = "") -> Json:
    return context_store.last_object(data)


def _holds(data: Json, condition: str, key: str = "") -> Json:
    found = parse_output(context_store.open_data(data)[1].get("last", ""))
    return isinstance(found, dict) and holds(condition, coerce_literals(found))


def _branch(data: Json, item: Json = UNDEFINED, include: Json = None) -> Json:
    if item is UNDEFINED:
        return context_store.start_branch(data)
    return context_store.start_item(
        data, item, context_store.EVERYTHING if include is None else include
    )


_ROWS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "text": ("<xxo?:s>", _text),
    "arguments": ("<xoo?:o>", _arguments),
    "context": ("<x:o>", context_store.context_of),
    "history": ("<xs?:a>", lambda data, key="": context_store.history(data)),
    "item": ("<xs?:x>", lambda data, key="": context_store.item_of(data)),
    "store": (
        "<xxx?o?:o>",
        lambda data, result, state=None, flags=NO_OPTIONS: context_store.store_result(
            data, answer_of(result), state, flags
        ),
    ),
    "step": ("<xn:o>", context_store.check_recursion_limit),
    "output": ("<xs?:o>", _output),
    "holds": ("<xss?:b>", _holds),
    "items": ("<xss?:a>", lambda data, key, source="": context_store.list_items(data, key)),
    "branch": ("<xx?x?:o>", _branch),
    "join": (
        "<xaa?:o>",
        lambda data, branches, keys=(): context_store.join_branches(data, branches),
    ),
    "resume": (
        "<xxx?:o>",
        lambda data, record, state=None: context_store.resume_data(data, record, state),
    ),
    "valid": (
        "<xo:x>",
        lambda result, schema: outputs.validate_output(answer_of(result), schema),
    ),
    "refuse": (
        "<xon:o>",
        lambda data, error, limit: context_store.refuse_answer(data, error, int(limit)),
    ),
    "errors": ("<x:a>", context_store.refusal_causes),
    "at": (
        "<xs:x>",
        lambda result, pointer: context_store.pick_part(answer_of(result), pointer),
    ),
    "transform": (
        "<xoo?:x>",
        lambda data, config, options=NO_OPTIONS: transforms.transform(data, config),
    ),
}
"""Signatures and functions by the name after `$codemie_`."""

TABLE: Mapping[str, DialectFunction] = {name: DialectFunction(*row) for name, row in _ROWS.items()}
