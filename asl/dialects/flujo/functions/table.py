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
    return pipeline_data.open_data(found)["input"]


def _context(found: Json) -> Json:
    return pipeline_data.open_data(found)["context"]


_ROWS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "data": ("<x:o>", pipeline_data.open_data),
    "input": ("<x:x>", _input),
    "context": ("<x:o>", _context),
    "answer": ("<x:x>", answer_of),
    "text": ("<xsx?:x>", pipeline_data.fill_template),
    "stringify": ("<x:s>", pipeline_data.stringify),
    "key": ("<xsx?s?:x>", pipeline_data.branch_key),
    "branch": ("<x:x>", pipeline_data.branch_name),
    "agrees": ("<x:b>", pipeline_data.agrees),
    "confirmed": ("<x:s>", pipeline_data.confirm),
    "fails": ("<xsx?s?:b>", pipeline_data.condition_fails),
    "put": ("<osxb?:o>", pipeline_data.put_value),
    "merge": ("<osx:o>", pipeline_data.merge_at),
    "get": ("<osx?:x>", pipeline_data.get_value),
    "prepared": ("<xa<o>x?:o>", control_flow.apply_operations),
    "next": ("<xsx?:x>", control_flow.next_input),
    "output": ("<xxx?:x>", control_flow.make_output),
    "outputs": ("<aa?:x>", control_flow.outputs_of),
    "reduced": ("<os:x>", control_flow.reduce_outputs),
    "merged": ("<oas?:o>", control_flow.merge_contexts),
    "items": ("<os:a>", control_flow.list_items),
    "routes": ("<x:a>", control_flow.chosen_branches),
    "import": ("<xxo:o>", pipeline_data.begin_import),
    "returned": ("<ooo:o>", pipeline_data.end_import),
    "when": ("<xsx?s?:b>", state_machines.condition_holds),
    "requested": ("<oa:x>", state_machines.next_state),
    "start": ("<xx?:o>", state_machines.start_machine),
    "resumes": ("<os?:b>", state_machines.resumes_in),
    "enter": ("<osx?o?:o>", state_machines.enter_state),
    "exhausted": ("<on:b>", state_machines.hops_are_exhausted),
    "stopped": ("<os:o>", state_machines.stop_at),
    "ended": ("<oso?:o>", state_machines.end_machine),
    "inner": ("<x:o>", state_machines.start_inner),
    "outer": ("<oo:o>", state_machines.end_inner),
    "snapshot": ("<o:o>", state_machines.store_snapshot),
    "restored": ("<o:o>", state_machines.restore_snapshot),
}
"""Signatures and functions by the name after `$flujo_`."""

TABLE: Mapping[str, DialectFunction] = {
    name: DialectFunction(*row, json=True) for name, row in _ROWS.items()
}
