"""This interpreter as a command that speaks the conformance protocol in lines of JSON.

    python -m asl.conformance.serve

It ends with its input.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import TextIO

from asl.conformance.local import observe
from asl.core.values import Json, compact

__all__ = ["serve"]


def serve(
    requests: TextIO,
    answers: TextIO,
    answer: Callable[[Mapping[str, Json]], dict[str, Json]] = observe,
) -> None:
    """Answer every line of *requests* with one line, until there is none."""
    for line in requests:
        request = json.loads(line)
        answers.write(compact({"id": request["id"], **answer(request)}) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a TextIOWrapper here
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a TextIOWrapper here
    serve(sys.stdin, sys.stdout)
