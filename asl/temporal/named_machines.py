"""Registered state machines that a document names, for the workflow of its execution."""

from __future__ import annotations

import re
from typing import Final

from asl.core.values import Json, compact
from asl.executions.execution_reader import ExecutionReader
from asl.executions.registrations import resolve_arn
from asl.program import Program

__all__ = ["named_machines"]

_MACHINE: Final = re.compile(r"arn:[\w-]+:states:[\w-]+:\d{12}:stateMachine:[\w.:-]+")


def named_machines(reader: ExecutionReader, program: Program) -> dict[str, Json]:
    """Return the documents of registered state machines by the ARN under which one names them.

    A workflow cannot look them up when a state starts them. Those that they name in turn are among
    them.

    Args:
        reader: Reads the registry.
        program: The program of the execution.
    """
    found: dict[str, Json] = {}
    waiting: list[Json] = [program.document]
    while waiting:
        for arn in _MACHINE.findall(compact(waiting.pop())):
            if arn not in found and (registration := resolve_arn(reader.session, arn)) is not None:
                found[arn] = registration.program(reader).document
                waiting.append(found[arn])
    return found
