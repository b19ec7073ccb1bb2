"""Layer 3: the state types. A type is one module that ends in one descriptor."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.program import Step
from asl.states.approval import APPROVAL
from asl.states.base import Compiler, Node, StateType
from asl.states.checkpoint import CHECKPOINT
from asl.states.choice import CHOICE
from asl.states.debate import DEBATE
from asl.states.fail import FAIL
from asl.states.include import INCLUDE
from asl.states.map import MAP
from asl.states.parallel import PARALLEL
from asl.states.pass_ import PASS
from asl.states.registry import Registry
from asl.states.succeed import SUCCEED
from asl.states.task import TASK
from asl.states.wait import WAIT
from asl.states.workflow import WORKFLOW

__all__ = ["STATE_TYPES", "UNKNOWN", "type_of"]

STATE_TYPES: Final = Registry(
    (
        TASK,
        CHOICE,
        MAP,
        PARALLEL,
        PASS,
        WAIT,
        SUCCEED,
        FAIL,
        INCLUDE,
        APPROVAL,
        WORKFLOW,
        CHECKPOINT,
        DEBATE,
    )
)
"""The state types; those of Amazon States Language come first."""


def _no_step(compiler: Compiler, step: Step) -> None:
    raise AssertionError(f"{step.name!r} has a type that no check lets through")


def _no_findings(node: Node) -> Iterator[Finding]:
    return iter(())


UNKNOWN: Final = StateType("", _no_step, _no_findings, effect=True)
"""Stands for the type of a state that has none of these, which may have any field."""


def type_of(state: Mapping[str, Json]) -> StateType:
    """Return the type of a state as it is written, UNKNOWN where there is no such type."""
    kind = state.get("Type")
    return STATE_TYPES.get(kind, UNKNOWN) if type(kind) is str else UNKNOWN
