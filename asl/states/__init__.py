"""Layer 3: the state types. A member of the family is one module and one row of the table."""

from collections.abc import Mapping
from types import MappingProxyType

from asl.states.approval import APPROVAL
from asl.states.base import StateType
from asl.states.checkpoint import CHECKPOINT
from asl.states.choice import CHOICE
from asl.states.debate import DEBATE
from asl.states.fail import FAIL
from asl.states.include import INCLUDE
from asl.states.map import MAP
from asl.states.parallel import PARALLEL
from asl.states.pass_ import PASS
from asl.states.succeed import SUCCEED
from asl.states.task import TASK
from asl.states.wait import WAIT
from asl.states.workflow import WORKFLOW

__all__ = ["KNOWN_TYPES", "STATE_TYPES"]

STATE_TYPES: Mapping[str, StateType] = MappingProxyType(
    {
        each.name: each
        for each in (
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
    }
)
"""The state types of the language."""

KNOWN_TYPES = tuple(STATE_TYPES)
"""Their names; those of Amazon States Language come first."""
