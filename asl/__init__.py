"""Run, check and test Agent State Language and Amazon States Language documents.

    import asl

    program = asl.compile(asl.load("review.asl.json"))
    result = asl.run(program, {"code": "x"}, agents={"Reviewer": review})
    print(result.status, result.output)

Importing this package is cheap: what a call needs is loaded by that call.
"""

from __future__ import annotations

import sys

if sys.argv[:1] == ["-m"] and sys.path and not sys.flags.safe_path:
    # `python -m asl` has put the current folder first on the path, where a file could stand in for
    # a library of the same name. The word that names the module may hold the option: `-masl`.
    _word = sys.orig_argv[-len(sys.argv)]
    if (_word.partition("m")[2] if _word[0] == "-" else _word).partition(".")[0] == "asl":
        del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asl.core.errors import (
    AslError,
    DocumentNotFound,
    InvalidTest,
    NotJson,
    StateError,
)

if TYPE_CHECKING:
    from asl.agents.tool import Tool
    from asl.bindings import Bindings
    from asl.core.diagnostics import Diagnostic, InvalidDocument, Report, Severity
    from asl.core.document import Document
    from asl.core.profile import Profile
    from asl.dialects.base import Conversion
    from asl.documents.checking import check, variable_references
    from asl.documents.comparison import diff
    from asl.documents.compiling import compile
    from asl.documents.conversion import convert, detect
    from asl.documents.drawing import graph
    from asl.documents.loading import load
    from asl.documents.planning import plan
    from asl.effects.clock import Clock, VirtualClock, WallClock
    from asl.effects.middleware import Effect, Middleware, Proceed
    from asl.effects.single_state import StateResult
    from asl.effects.task_tokens import TaskTokens
    from asl.engine.agent import Agent, Call
    from asl.engine.checkpoints import (
        Checkpoint,
        CheckpointExpired,
        CheckpointIncompatible,
        CheckpointNotFound,
        CheckpointRefused,
        NotResumable,
    )
    from asl.engine.events import Event
    from asl.engine.memory import Memory, MemoryEntry
    from asl.engine.result import ExecutionFailed, Result
    from asl.executions import (
        BindingsMissing,
        ExecutionBusy,
        ExecutionExists,
        ExecutionNotFound,
        ExecutionNotRedrivable,
        RequestNotFound,
        Store,
        open_store,
    )
    from asl.executions.handle import Handle
    from asl.graphs.difference import Difference
    from asl.graphs.planning import Plan
    from asl.program import Program
    from asl.runs.feedback import give_feedback
    from asl.runs.resumption import aresume, resume
    from asl.runs.running import arun, run
    from asl.runs.state_tests import load_mocks, test_state
    from asl.service.client import StepFunctions
    from asl.service.errors import ServiceError
    from asl.states.approval_answers import AnswerRefused
    from asl.states.approval_request import request_digest
    from asl.stores.backend import StoreBackend
    from asl.stores.errors import StoreDamaged, StoreError

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AnswerRefused",
    "AslError",
    "Bindings",
    "BindingsMissing",
    "Call",
    "Checkpoint",
    "CheckpointExpired",
    "CheckpointIncompatible",
    "CheckpointNotFound",
    "CheckpointRefused",
    "Clock",
    "Conversion",
    "Diagnostic",
    "Difference",
    "Document",
    "DocumentNotFound",
    "Effect",
    "Event",
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionFailed",
    "ExecutionNotFound",
    "ExecutionNotRedrivable",
    "Handle",
    "InvalidDocument",
    "InvalidTest",
    "Memory",
    "MemoryEntry",
    "Middleware",
    "NotJson",
    "NotResumable",
    "Plan",
    "Proceed",
    "Profile",
    "Program",
    "Report",
    "RequestNotFound",
    "Result",
    "ServiceError",
    "Severity",
    "StateError",
    "StateResult",
    "StepFunctions",
    "Store",
    "StoreBackend",
    "StoreDamaged",
    "StoreError",
    "TaskTokens",
    "Tool",
    "VirtualClock",
    "WallClock",
    "aresume",
    "arun",
    "check",
    "compile",
    "convert",
    "detect",
    "diff",
    "give_feedback",
    "graph",
    "load",
    "load_mocks",
    "open_store",
    "plan",
    "request_digest",
    "resume",
    "run",
    "test_state",
    "variable_references",
]

_LAZY = {
    "Agent": "asl.engine.agent",
    "AnswerRefused": "asl.states.approval_answers",
    "Bindings": "asl.bindings",
    "BindingsMissing": "asl.executions",
    "Call": "asl.engine.agent",
    "Checkpoint": "asl.engine.checkpoints",
    "CheckpointExpired": "asl.engine.checkpoints",
    "CheckpointIncompatible": "asl.engine.checkpoints",
    "CheckpointNotFound": "asl.engine.checkpoints",
    "CheckpointRefused": "asl.engine.checkpoints",
    "Clock": "asl.effects.clock",
    "Conversion": "asl.dialects.base",
    "Diagnostic": "asl.core.diagnostics",
    "Difference": "asl.graphs.difference",
    "Document": "asl.core.document",
    "Effect": "asl.effects.middleware",
    "Event": "asl.engine.events",
    "ExecutionBusy": "asl.executions",
    "ExecutionExists": "asl.executions",
    "ExecutionFailed": "asl.engine.result",
    "ExecutionNotFound": "asl.executions",
    "ExecutionNotRedrivable": "asl.executions",
    "Handle": "asl.executions.handle",
    "Memory": "asl.engine.memory",
    "MemoryEntry": "asl.engine.memory",
    "Middleware": "asl.effects.middleware",
    "NotResumable": "asl.engine.checkpoints",
    "Plan": "asl.graphs.planning",
    "Proceed": "asl.effects.middleware",
    "Profile": "asl.core.profile",
    "Program": "asl.program",
    "InvalidDocument": "asl.core.diagnostics",
    "Report": "asl.core.diagnostics",
    "RequestNotFound": "asl.executions",
    "Result": "asl.engine.result",
    "Severity": "asl.core.diagnostics",
    "StateResult": "asl.effects.single_state",
    "ServiceError": "asl.service.errors",
    "StepFunctions": "asl.service.client",
    "Store": "asl.executions",
    "StoreBackend": "asl.stores.backend",
    "StoreDamaged": "asl.stores.errors",
    "StoreError": "asl.stores.errors",
    "TaskTokens": "asl.effects.task_tokens",
    "Tool": "asl.agents.tool",
    "VirtualClock": "asl.effects.clock",
    "WallClock": "asl.effects.clock",
    "aresume": "asl.runs.resumption",
    "arun": "asl.runs.running",
    "check": "asl.documents.checking",
    "compile": "asl.documents.compiling",
    "convert": "asl.documents.conversion",
    "detect": "asl.documents.conversion",
    "diff": "asl.documents.comparison",
    "give_feedback": "asl.runs.feedback",
    "graph": "asl.documents.drawing",
    "load": "asl.documents.loading",
    "load_mocks": "asl.runs.state_tests",
    "open_store": "asl.executions",
    "plan": "asl.documents.planning",
    "request_digest": "asl.states.approval_request",
    "resume": "asl.runs.resumption",
    "run": "asl.runs.running",
    "test_state": "asl.runs.state_tests",
    "variable_references": "asl.documents.checking",
}
"""Modules of the names that are loaded on first use."""

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            found = globals()[name] = getattr(import_module(_LAZY[name]), name)
            return found
        raise AttributeError(f"module 'asl' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
