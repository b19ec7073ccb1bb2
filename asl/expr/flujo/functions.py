"""The functions of the dialect, as JSONata sees them: one row each.

All are pure and bounded by their data; `docs/dialects/flujo.md` says what each one is for.
"""

from collections.abc import Callable
from typing import Any

from asl.core.values import Json
from asl.expr.flujo import control_flow, pipeline_data, state_machines
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.functions.dialects import function_table

__all__ = ["TABLE"]


def _input(found: Json) -> Json:
    return pipeline_data.opened(found)["previous_step"]


def _context(found: Json) -> Json:
    return pipeline_data.opened(found)["context"]


_ROWS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "data": ("<x:o>", pipeline_data.opened, 1),
    "input": ("<x:x>", _input, 1),
    "context": ("<x:o>", _context, 1),
    "text": ("<xs:x>", pipeline_data.filled, 2),
    "done": ("<xsxo?:o>", pipeline_data.done, 4),
    "failed": ("<xso:o>", pipeline_data.failed, 3),
    "answered": ("<xsxo?:o>", pipeline_data.answered, 4),
    "close": ("<oa<s>:o>", pipeline_data.closed, 2),
    "result": ("<x:o>", pipeline_data.result, 1),
    "decide": ("<xx:o>", pipeline_data.decided, 2),
    "confirmed": ("<x:s>", pipeline_data.confirmed, 1),
    "key": ("<xs?s?:x>", pipeline_data.key, 3),
    "until": ("<xss?:x>", pipeline_data.until, 3),
    "set": ("<xssx:o>", pipeline_data.set_, 4),
    "merge": ("<xssx:o>", pipeline_data.merge_value, 4),
    "get": ("<xsx?:x>", pipeline_data.got, 3),
    "stringify": ("<x:s>", pipeline_data.stringified, 1),
    "loop": ("<xsa<o>?:o>", control_flow.begun, 3),
    "again": ("<oso?:o>", control_flow.again, 3),
    "prepared": ("<xa<o>:o>", control_flow.prepared, 2),
    "rounds": ("<xs:n>", control_flow.rounds, 2),
    "looped": ("<xso?:o>", control_flow.ended, 3),
    "join": ("<xsaa<s>o?:o>", control_flow.joined, 5),
    "items": ("<xs:a>", control_flow.items, 2),
    "item": ("<xx:o>", control_flow.item, 2),
    "collect": ("<xsao?:o>", control_flow.collected, 4),
    "routed": ("<xsx:o>", control_flow.routed, 3),
    "import": ("<xxo:o>", pipeline_data.begin_import, 3),
    "returned": ("<xsoo:o>", pipeline_data.returned, 4),
    "start": ("<xss:o>", state_machines.started, 3),
    "enter": ("<oso?:o>", state_machines.entered, 3),
    "capped": ("<os:o>", state_machines.capped, 2),
    "left": ("<os?:o>", state_machines.left, 2),
    "ended": ("<os?:o>", state_machines.ended, 2),
    "when": ("<oss?:b>", state_machines.when, 3),
    "pausing": ("<oso?:b>", state_machines.pausing, 3),
    "following": ("<o:x>", state_machines.following, 1),
    "follow": ("<o:o>", state_machines.followed, 1),
    "inner": ("<x:o>", state_machines.inner, 1),
    "outer": ("<xso:o>", state_machines.outer, 3),
    "pause": ("<os:o>", state_machines.paused, 2),
    "resume": ("<oxo?:o>", state_machines.resumed, 3),
}
"""Signature, function and number of arguments by the name behind `$flujo_`."""

TABLE: dict[str, Native] = function_table("flujo", _ROWS)
"""Every function by its name in a query."""
