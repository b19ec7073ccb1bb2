"""The functions of the dialect, as JSONata sees them: one row each.

All are pure and bounded by their data; `docs/dialects/flujo.md` says what each one is for.
"""

from collections.abc import Callable
from typing import Any

from asl.core.values import Json
from asl.expr.flujo import builtins, data, forks, imports, loops, machines
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.functions.dialects import function_table

__all__ = ["TABLE"]


def _input(found: Json) -> Json:
    return data.opened(found)["previous_step"]


def _context(found: Json) -> Json:
    return data.opened(found)["context"]


_ROWS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "data": ("<x:o>", data.opened, 1),
    "input": ("<x:x>", _input, 1),
    "context": ("<x:o>", _context, 1),
    "text": ("<xs:x>", data.filled, 2),
    "done": ("<xsxo?:o>", data.done, 4),
    "failed": ("<xso:o>", data.failed, 3),
    "answered": ("<xsxo?:o>", data.answered, 4),
    "close": ("<oa<s>:o>", data.closed, 2),
    "result": ("<x:o>", data.result, 1),
    "decide": ("<xx:o>", data.decided, 2),
    "confirmed": ("<x:s>", builtins.confirmed, 1),
    "key": ("<xs?s?:x>", data.key, 3),
    "until": ("<xss?:x>", data.until, 3),
    "set": ("<xssx:o>", builtins.set_, 4),
    "merge": ("<xssx:o>", builtins.merged, 4),
    "get": ("<xsx?:x>", builtins.got, 3),
    "stringify": ("<x:s>", builtins.stringified, 1),
    "loop": ("<xsa<o>?:o>", loops.begun, 3),
    "again": ("<oso?:o>", loops.again, 3),
    "prepared": ("<xa<o>:o>", loops.prepared, 2),
    "rounds": ("<xs:n>", loops.rounds, 2),
    "looped": ("<xso?:o>", loops.ended, 3),
    "join": ("<xsaa<s>o?:o>", forks.joined, 5),
    "items": ("<xs:a>", forks.items, 2),
    "item": ("<xx:o>", forks.item, 2),
    "collect": ("<xsao?:o>", forks.collected, 4),
    "routed": ("<xsx:o>", forks.routed, 3),
    "import": ("<xxo:o>", imports.begun, 3),
    "returned": ("<xsoo:o>", imports.returned, 4),
    "start": ("<xss:o>", machines.started, 3),
    "enter": ("<oso?:o>", machines.entered, 3),
    "capped": ("<os:o>", machines.capped, 2),
    "left": ("<os?:o>", machines.left, 2),
    "ended": ("<os?:o>", machines.ended, 2),
    "when": ("<oss?:b>", machines.when, 3),
    "pausing": ("<oso?:b>", machines.pausing, 3),
    "following": ("<o:x>", machines.following, 1),
    "follow": ("<o:o>", machines.followed, 1),
    "inner": ("<x:o>", machines.inner, 1),
    "outer": ("<xso:o>", machines.outer, 3),
    "pause": ("<os:o>", machines.paused, 2),
    "resume": ("<oxo?:o>", machines.resumed, 3),
}
"""Signature, function and number of arguments by the name behind `$flujo_`."""

TABLE: dict[str, Native] = function_table("flujo", _ROWS)
"""Every function by its name in a query."""
