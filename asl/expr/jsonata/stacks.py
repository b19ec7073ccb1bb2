"""Carrying on with another stack: how deep a query may go must not depend on its caller."""

import sys
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def cramped() -> bool:
    """Whether the interpreter's stack is more than half full."""
    frames, frame = 0, sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        frames += 1
    return frames > sys.getrecursionlimit() // 2


def elsewhere(call: Callable[[], Result]) -> Result:
    """Make a call on a stack of its own and wait for what it returns or raises."""
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # whatever it is belongs to the caller
            failures.append(error)

    thread = Thread(target=run, name="jsonata")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
