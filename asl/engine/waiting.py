"""The calls that wait until a budget lets them begin."""

from __future__ import annotations

from collections import deque
from typing import Protocol

__all__ = ["Waiting"]


class Turn(Protocol):
    """What one call waits for, such as a future."""

    def done(self) -> bool:
        """Whether the call goes on, or is given up."""
        ...

    def set_result(self, result: None, /) -> object:
        """Let the call go on."""
        ...


class Waiting:
    """The calls of a run that wait for others to end; they keep their order."""

    def __init__(self) -> None:
        self.outermost: deque[Turn] = deque()
        self.nested: deque[Turn] = deque()
        """Calls within others, which go first: the others end only after them."""

    def wake(self) -> None:
        """Let all nested calls, and the first of the outermost ones, try again."""
        for turn in self.nested:
            if not turn.done():
                turn.set_result(None)
        while self.outermost:
            turn = self.outermost.popleft()
            if not turn.done():
                turn.set_result(None)
                return
