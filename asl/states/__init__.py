"""Layer 3: the state types. A type is one module that ends in one descriptor."""

from asl.states.approval import APPROVAL
from asl.states.base import Compiler, Node, Outline, StateType, Tone, Transitions
from asl.states.checkpoint import CHECKPOINT
from asl.states.choice import CHOICE
from asl.states.debate import DEBATE
from asl.states.fail import FAIL
from asl.states.include import INCLUDE
from asl.states.map import MAP
from asl.states.parallel import PARALLEL
from asl.states.pass_ import PASS
from asl.states.registry import STATE_TYPES, UNKNOWN, type_of
from asl.states.succeed import SUCCEED
from asl.states.task import TASK
from asl.states.wait import WAIT
from asl.states.workflow import WORKFLOW

__all__ = [
    "STATE_TYPES",
    "UNKNOWN",
    "Compiler",
    "Node",
    "Outline",
    "StateType",
    "Tone",
    "Transitions",
    "type_of",
]

STATE_TYPES.define(
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
