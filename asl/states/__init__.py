"""Layer 3: the state types. A type is one module that ends in one descriptor."""

from asl.states.base import Compiler, Node, Outline, StateType, Tone, Transitions
from asl.states.registry import STATE_TYPES, UNKNOWN, type_of

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
