"""The steps of a blueprint: those of a machine, and of the machines within its states."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.dialects.flujo.engine import ENGINE
from asl.dialects.flujo.writing.fallbacks import take_fallbacks
from asl.dialects.flujo.writing.layout import WORKING, DataLayout, StepNames, fields_written
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.machine import MachineWriter
from asl.dialects.flujo.writing.pipeline import PipelineWriter
from asl.dialects.flujo.writing.places import CONTEXT, FLOW, PREVIOUS, Environment
from asl.dialects.flujo.writing.steps import Body, StepWriter, unwritten
from asl.dialects.lowering import Flow, WorkStep, bypass
from asl.dialects.lowering.structure import Block, Branch, Loop, structure
from asl.dialects.terms import INPUT, RESULT, DataPath, paths_of

__all__ = ["written_steps"]

NAME: Final = "workflow"
_OWN: Final = "current_state|next_state"
_RESERVED: Final = re.compile(rf"\"({_OWN})(?:\.\$)?\":|[.'\[]({_OWN})\b")
"""A field that a machine writes itself, as a key or in a path."""
_REFUSED: Final = re.compile(r"\$(?:states\.input)?\.(?:context\.)?scratchpad\b")
"""The field of the context that the engine does not allow."""


def written_steps(flow: Flow, losses: Losses) -> list[Json]:
    """Return the steps of a blueprint that does what a machine does."""
    return _Writer(losses, StepNames(fields_written(flow))).whole(flow)


class _Writer:
    def __init__(self, losses: Losses, names: StepNames) -> None:
        self.losses = losses
        self.names = names
        self.within_machine = False
        """Whether the steps are in a state of a state machine."""

    def whole(self, flow: Flow) -> list[Json]:
        """Return the steps of the document."""
        for each in _all_steps(flow):
            for key in unwritten(each.state):
                place = f"{each.pointer}/{escape(key)}"
                self.losses.add("FL-META", f"a blueprint has no {key!r}", place, at_key=True)
            if _REFUSED.search(compact(each.state)):
                message = f"engine {ENGINE} refuses a context with 'scratchpad'"
                self.losses.add("FL-RESERVED", message, each.pointer, at_key=True)
            if each.kind != "Task" and "Retry" in each.state:
                message = "only steps that call an agent are retried"
                self.losses.add("FL-RETRY", message, f"{each.pointer}/Retry", at_key=True)
        flow, fallbacks = take_fallbacks(bypass(flow))
        block = _block(flow)
        given = DataPath(PREVIOUS) if block is not None and _replaces(flow) else DataPath(CONTEXT)
        environment = {INPUT: given, FLOW: DataPath(PREVIOUS)}
        layout = DataLayout(flow, self.names, environment, linear=block is not None)
        steps = self.steps(layout, block, fallbacks)
        self._output(layout, given, steps)
        return steps

    def steps(
        self, layout: DataLayout, block: Block | None, fallbacks: Mapping[str, WorkStep]
    ) -> list[Json]:
        """Return the steps of a machine: of its block, or the state machine that it is."""
        writer = StepWriter(self.losses, layout, self.body, fallbacks)
        if block is not None:
            return PipelineWriter(self.losses, layout, writer).block(block)
        self._reserved(layout)
        outer, self.within_machine = self.within_machine, True
        name = self.names.new(NAME)
        made = MachineWriter(self.losses, layout, writer, name).written()
        self.within_machine = outer
        return [made]

    def body(self, flow: Flow, given: Environment) -> Body:
        """Return the steps of a machine within a state."""
        flow, fallbacks = take_fallbacks(bypass(flow))
        block = _block(flow)
        if block is None:
            message = "engines run no state machine within branches, items or states"
            hint = "make it a workflow of its own"
            self.losses.add("FL-NESTED", message, flow.pointer, hint)
        layout = DataLayout(flow, self.names, given, shared=False, linear=block is not None)
        exact = all(each[INPUT] == each[FLOW] for _, each in layout.ends)
        return Body(self.steps(layout, block, fallbacks), exact and block is not None)

    def _reserved(self, layout: DataLayout) -> None:
        for step in layout.flow.steps.values():
            found = _RESERVED.search(compact(step.state))
            if found is not None:
                message = f"a machine stores its position in {found[1] or found[2]!r}"
                self.losses.add("FL-RESERVED", message, step.pointer, at_key=True)

    def _output(self, layout: DataLayout, given: DataPath, steps: list[Json]) -> None:
        """Report how the result of a run differs."""
        for step, found in layout.ends:
            if found[INPUT] not in (DataPath(CONTEXT), found[FLOW]):
                message = "the result of the run is not the data after this state"
                hint = "combine the data in an agent"
                error = Severity.ERROR
                self.losses.add("FL-PATHS", message, step.pointer, hint, severity=error)
        if not steps:
            return
        if given == DataPath(PREVIOUS):
            self.losses.add("FL-OUTPUT", "the result of a run is its output and its context", "")
            return
        machine = any(
            isinstance(each, dict) and each.get("kind") == "StateMachine" for each in steps
        )
        message = "the data of a run is its context"
        message += ", with current_state and next_state of the machine" if machine else ""
        hint = "give the input as {context: ...}"
        self.losses.add("FL-OUTPUT", message, "", hint)


def _all_steps(flow: Flow) -> Iterator[WorkStep]:
    for step in flow.steps.values():
        yield step
        for inner in step.machines.values():
            yield from _all_steps(inner)


def _replaces(flow: Flow) -> bool:
    """Whether the first step gets the whole input of a run, which nothing reads behind it."""
    first = flow.steps[flow.start]
    again = any(flow.start in step.targets for step in flow.steps.values())
    moves = first.kind in WORKING and "Items" not in first.fields and not again
    read = {each.steps[:1] for each in paths_of(first.input) if each.root == INPUT}
    return moves and () in read and first.output == DataPath(RESULT)


def _block(flow: Flow) -> Block | None:
    """Return the block of a machine, None for one that has to be a state machine."""
    if any(step.handlers for step in flow.steps.values()):
        return None
    block = structure(flow)
    return block if block is not None and _is_pausable(block) else None


def _is_pausable(block: Block, *, inside: bool = False) -> bool:
    """Whether questions are asked by steps of the pipeline itself: elsewhere engines fail."""
    for part in block:
        match part:
            case Branch(step, cases):
                inner = all(_is_pausable(body, inside=True) for _, body in cases)
                if not inner or (inside and step.kind == "Approval"):
                    return False
            case Loop(body, decides):
                own = decides.kind not in WORKING and bool(body)
                if not own or not _is_pausable(body, inside=True):
                    return False
            case WorkStep(kind="Approval") if inside:
                return False
    return True
