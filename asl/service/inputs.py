"""Inputs of executions: JSON texts, refused with AWS's messages."""

from __future__ import annotations

from asl.core.json_messages import parser_message
from asl.core.json_text import read_data
from asl.core.values import Json
from asl.service.errors import ServiceError

__all__ = ["read_input"]


def read_input(text: str) -> Json:
    """Return the value of the input of an execution.

    Raises:
        ServiceError: InvalidExecutionInput.
    """
    try:
        return read_data(text)
    except ValueError:
        said = parser_message(text) if text.strip() else None
        why = "Invalid execution input." if said is None else said.text
    message = f"Invalid State Machine Execution Input: '{why}'"
    raise ServiceError("InvalidExecutionInput", message)
