"""A function in a process of its own.

    python -m asl.agents.function_process module:function [FOLDER...]

The process speaks the protocol of `asl.agents.process`, lines of JSON.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asl.agents.typed_functions import json_function
from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.python_imports import import_object
from asl.core.values import encode
from asl.engine.usage import usage_of_failure

__all__ = ["main"]


def main(name: str, folders: Sequence[str] = ()) -> None:
    """Answer calls of a function, found in the folders, until the input ends."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # what the function prints is no answer
    function = json_function(import_object(name, map(Path, folders)))
    for line in sys.stdin.buffer:
        request = read_data(line.decode())
        answers.write(_answer(function, request["parameters"]) + b"\n")
        answers.flush()


def _answer(function: Any, parameters: Any) -> bytes:
    try:
        result = function(parameters)
        if hasattr(result, "__await__"):
            from asyncio import run

            async def awaited() -> Any:
                return await result

            result = run(awaited())
        return encode({"return": result})
    except Exception as error:  # foreign code: anything it raises is its failure
        if isinstance(error, StateError):
            told = {"error": error.name, "cause": error.cause}
            return encode({**told, **(usage_of_failure(dict(error.usage or {})) or {})})
        cause = f"{type(error).__name__}: {error}"
        return encode({"error": "States.TaskFailed", "cause": cause})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
