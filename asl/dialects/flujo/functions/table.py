"""The functions of the dialect for JSONata: one row each.

All are pure and bounded by their data; `docs/dialects/flujo.md` describes them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from asl.core.dialect_parts import DialectFunction
from asl.core.values import Json
from asl.dialects.flujo.functions import control_flow, pipeline_data, state_machines
from asl.expr.agent_answers import answer_of

__all__ = ["TABLE"]


def _input(found: Json) -> Json:
    return pipeline_data.open_data(found)["previous_step"]


def _context(found: Json) -> Json:
    return pipeline_data.open_data(found)["context"]


def _done(data: Json, step: str, result: Json, flags: Json = None) -> Json:
    return pipeline_data.complete_step(data, step, answer_of(result), flags or None)


_ROWS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "data": ("<x:o>", pipeline_data.open_data),
    "input": ("<x:x>", _input),
    "context": ("<x:o>", _context),
    "text": ("<xs:x>", pipeline_data.fill_template),
    "done": ("<xsxo?:o>", _done),
    "failed": ("<xso:o>", pipeline_data.fail_step),
    "answered": ("<xsxo?:o>", pipeline_data.answer_question),
    "close": ("<oa<s>:o>", pipeline_data.close_steps),
    "result": ("<x:o>", pipeline_data.pipeline_result),
    "decide": (
        "<xx:o>",
        lambda data, result: pipeline_data.set_decision(data, answer_of(result)),
    ),
    "confirmed": ("<x:s>", pipeline_data.confirm),
    "key": ("<xs?s?:x>", pipeline_data.branch_key),
    "until": ("<xss?:x>", pipeline_data.is_loop_over),
    "set": ("<xssx:o>", pipeline_data.set_value),
    "merge": ("<xssx:o>", pipeline_data.merge_value),
    "get": ("<xsx?:x>", pipeline_data.get_value),
    "stringify": ("<x:s>", pipeline_data.stringify),
    "loop": ("<xsa<o>?:o>", control_flow.start_loop),
    "again": ("<oso?:o>", control_flow.next_round),
    "prepared": ("<xa<o>:o>", control_flow.apply_operations),
    "rounds": ("<xs:n>", control_flow.count_rounds),
    "looped": ("<xso?:o>", control_flow.end_loop),
    "join": ("<xsaa<s>o?:o>", control_flow.join_branches),
    "items": ("<xs:a>", control_flow.list_items),
    "item": ("<xx:o>", control_flow.start_item),
    "collect": ("<xsao?:o>", control_flow.collect_items),
    "routed": (
        "<xsx:o>",
        lambda data, step, result: control_flow.route_branches(data, step, answer_of(result)),
    ),
    "import": ("<xxo:o>", pipeline_data.begin_import),
    "returned": ("<xsoo:o>", pipeline_data.end_import),
    "start": ("<xsso?:o>", state_machines.start_machine),
    "enter": ("<oso?:o>", state_machines.enter_state),
    "capped": ("<os:o>", state_machines.stop_at_hop_limit),
    "left": ("<os?:o>", state_machines.leave_machine),
    "ended": ("<os?:o>", state_machines.end_machine),
    "when": ("<oss?:b>", state_machines.rule_holds),
    "pausing": ("<oso?:b>", state_machines.pause_rule_holds),
    "following": ("<o:x>", state_machines.next_state),
    "follow": ("<o:o>", state_machines.follow_next_state),
    "inner": ("<x:o>", state_machines.start_inner),
    "outer": ("<xso:o>", state_machines.end_inner),
    "pause": ("<os:o>", state_machines.pause_machine),
    "resume": ("<oxo?:o>", state_machines.resume_machine),
}
"""Signatures and functions by the name after `$flujo_`."""

TABLE: Mapping[str, DialectFunction] = {
    name: DialectFunction(*row, json=True) for name, row in _ROWS.items()
}
