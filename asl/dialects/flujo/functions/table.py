"""The functions of the dialect for JSONata: one row each.

All are pure and bounded by their data; `docs/dialects/flujo.md` describes them.
"""

from collections.abc import Callable
from typing import Any

from asl.core.values import Json
from asl.dialects.flujo.functions import control_flow, pipeline_data, state_machines
from asl.expr.agent_answers import answer_of
from asl.expr.jsonata.calls import NativeFunction
from asl.expr.jsonata.functions.dialects import function_table

__all__ = ["TABLE"]


def _input(found: Json) -> Json:
    return pipeline_data.open_data(found)["previous_step"]


def _context(found: Json) -> Json:
    return pipeline_data.open_data(found)["context"]


def _done(data: Json, step: str, result: Json, flags: Json = None) -> Json:
    return pipeline_data.complete_step(data, step, answer_of(result), flags or None)


_ROWS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "data": ("<x:o>", pipeline_data.open_data, 1),
    "input": ("<x:x>", _input, 1),
    "context": ("<x:o>", _context, 1),
    "text": ("<xs:x>", pipeline_data.fill_template, 2),
    "done": ("<xsxo?:o>", _done, 4),
    "failed": ("<xso:o>", pipeline_data.fail_step, 3),
    "answered": ("<xsxo?:o>", pipeline_data.answer_question, 4),
    "close": ("<oa<s>:o>", pipeline_data.close_steps, 2),
    "result": ("<x:o>", pipeline_data.pipeline_result, 1),
    "decide": (
        "<xx:o>",
        lambda data, result: pipeline_data.set_decision(data, answer_of(result)),
        2,
    ),
    "confirmed": ("<x:s>", pipeline_data.confirm, 1),
    "key": ("<xs?s?:x>", pipeline_data.branch_key, 3),
    "until": ("<xss?:x>", pipeline_data.is_loop_over, 3),
    "set": ("<xssx:o>", pipeline_data.set_value, 4),
    "merge": ("<xssx:o>", pipeline_data.merge_value, 4),
    "get": ("<xsx?:x>", pipeline_data.get_value, 3),
    "stringify": ("<x:s>", pipeline_data.stringify, 1),
    "loop": ("<xsa<o>?:o>", control_flow.start_loop, 3),
    "again": ("<oso?:o>", control_flow.next_round, 3),
    "prepared": ("<xa<o>:o>", control_flow.apply_operations, 2),
    "rounds": ("<xs:n>", control_flow.count_rounds, 2),
    "looped": ("<xso?:o>", control_flow.end_loop, 3),
    "join": ("<xsaa<s>o?:o>", control_flow.join_branches, 5),
    "items": ("<xs:a>", control_flow.list_items, 2),
    "item": ("<xx:o>", control_flow.start_item, 2),
    "collect": ("<xsao?:o>", control_flow.collect_items, 4),
    "routed": (
        "<xsx:o>",
        lambda data, step, result: control_flow.route_branches(data, step, answer_of(result)),
        3,
    ),
    "import": ("<xxo:o>", pipeline_data.begin_import, 3),
    "returned": ("<xsoo:o>", pipeline_data.end_import, 4),
    "start": ("<xss:o>", state_machines.start_machine, 3),
    "enter": ("<oso?:o>", state_machines.enter_state, 3),
    "capped": ("<os:o>", state_machines.stop_at_hop_limit, 2),
    "left": ("<os?:o>", state_machines.leave_machine, 2),
    "ended": ("<os?:o>", state_machines.end_machine, 2),
    "when": ("<oss?:b>", state_machines.rule_holds, 3),
    "pausing": ("<oso?:b>", state_machines.pause_rule_holds, 3),
    "following": ("<o:x>", state_machines.next_state, 1),
    "follow": ("<o:o>", state_machines.follow_next_state, 1),
    "inner": ("<x:o>", state_machines.start_inner, 1),
    "outer": ("<xso:o>", state_machines.end_inner, 3),
    "pause": ("<os:o>", state_machines.pause_machine, 2),
    "resume": ("<oxo?:o>", state_machines.resume_machine, 3),
}
"""Signature, function and number of arguments by the name after `$flujo_`."""

TABLE: dict[str, NativeFunction] = function_table("flujo", _ROWS)
"""The functions by their names in a query."""
