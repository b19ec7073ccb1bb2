"""A block of lines at the bottom of a terminal, redrawn during a run."""

import sys
import threading
import unicodedata
from collections.abc import Callable
from shutil import get_terminal_size
from typing import TextIO

__all__ = ["LiveBlock", "fit"]

INTERVAL = 0.1
"""Seconds between two drawings."""
CLEAR = "\r\x1b[J"
"""Moves to the start of the line and clears the screen from there."""


class LiveBlock:
    """Draws lines below all other output of the process.

    Args:
        stream: The terminal.
        lines: Returns the printable lines to draw now.
    """

    def __init__(self, stream: TextIO, lines: Callable[[], list[str]]) -> None:
        self.stream = stream
        self.lines = lines
        self.height = 0
        """Number of lines on the screen."""
        self.partial = False
        """Whether the text above the block ends without a line break."""
        self.replaced: tuple[TextIO, TextIO] | None = None
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True)

    def start(self) -> None:
        """Start drawing; other output appears above the block."""
        self.replaced = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (_Above(self, each) for each in self.replaced)
        self._thread.start()

    def stop(self) -> None:
        """Clear the block and end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.replaced is not None:
            sys.stdout, sys.stderr = self.replaced
            self.replaced = None
        with self._lock:
            self._clear()
            self.stream.flush()

    def write_above(self, text: str, stream: TextIO | None = None) -> int:
        """Write text above the block; returns the number of characters."""
        with self._lock:
            self._clear()
            written = (stream or self.stream).write(text)
            if text:
                self.partial = not text.endswith("\n")
            return written

    def _redraw(self) -> None:
        while not self._stopped.wait(INTERVAL):
            with self._lock:
                self._clear()
                self._draw()
                self.stream.flush()

    def _draw(self) -> None:
        size = get_terminal_size()
        shown = [fit(line, size.columns) for line in self.lines()[: max(1, size.lines - 1)]]
        if self.partial or not shown:
            return  # drawing would overwrite the partial line
        self.stream.write("".join(f"{line}\n" for line in shown))
        self.height = len(shown)

    def _clear(self) -> None:
        if self.height:
            self.stream.write(f"\x1b[{self.height}A{CLEAR}")
            self.height = 0


class _Above:
    """A stream that writes above the block."""

    def __init__(self, block: LiveBlock, stream: TextIO) -> None:
        self._block = block
        self._stream = stream

    def write(self, text: str) -> int:
        return self._block.write_above(text, self._stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def fit(line: str, columns: int) -> str:
    """Truncate a printable line to a number of columns."""
    room = columns
    for at, each in enumerate(line):
        room -= _width(each)
        if room < 0:
            return line[:at]
    return line


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
