"""Chunks of a streamed text, and the buffer that collects them (8.12)."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["LONGEST", "MODES", "Buffer", "Chunker"]

LONGEST: Final = 65_536
"""Maximum characters of a chunk; a longer line is cut."""
DOUBLED: Final = 4096
"""Number of chunks after which the minimum length doubles, which bounds their number."""
_LOOKBACK: Final = 32
_SENTENCE: Final = r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）]*"
_LINE: Final = "\n"


def _whatever(text: str, start: int, least: int) -> int:
    return len(text)


def _exactly(text: str, start: int, least: int) -> int:
    return least if len(text) >= least else 0


def _at(pattern: str) -> Callable[[str, int, int], int]:
    def end(text: str, start: int, least: int) -> int:
        for match in re.compile(pattern).finditer(text, start):
            if match.end() >= least and (match.end() < len(text) or match[0][-1] == "\n"):
                return match.end()
        return 0

    return end


MODES: Final[Mapping[str, Callable[[str, int, int], int]]] = MappingProxyType(
    {
        "token": _whatever,
        "line": _at(_LINE),
        "sentence": _at(_SENTENCE),
        "chunk": _exactly,
    }
)
"""Functions that find the end of a chunk, by mode: `(text, start, least length)`; 0 for none.

A sentence ends at the start of the next one, since blanks belong to it.
"""


class Chunker:
    """Cuts a streamed text into chunks of whole units with at least *least* characters."""

    def __init__(self, mode: str, least: int) -> None:
        self.end = MODES[mode]
        self.minimum = least
        self.text = ""
        self.looked = 0
        """Position up to which there is no end."""
        self.count = 0

    def feed(self, piece: str) -> Iterator[str]:
        """Add a piece and yield the complete chunks."""
        self.text += piece
        while self.text:
            least = min(LONGEST, self.minimum << self.count // DOUBLED)
            end = 0
            if len(self.text) >= least:
                end = min(self.end(self.text, self.looked, least), LONGEST)
                if not end and len(self.text) >= LONGEST:
                    end = LONGEST
            if not end:
                self.looked = max(0, len(self.text) - _LOOKBACK)
                return
            chunk, self.text, self.looked = self.text[:end], self.text[end:], 0
            self.count += 1
            yield chunk

    def rest(self) -> str:
        """Return the remaining text at the end."""
        rest, self.text = self.text, ""
        return rest


class Buffer:
    """Collects chunks up to *size* characters, or to the end of a line."""

    def __init__(self, size: int, on_newline: bool) -> None:
        self.size = size
        self.on_newline = on_newline
        self.held = ""

    def put(self, chunk: str) -> Iterator[str]:
        """Add a chunk and yield the texts to send."""
        if self.held and len(self.held) + len(chunk) > self.size:
            yield self.flush()
        self.held += chunk
        if len(self.held) >= self.size or (self.on_newline and "\n" in chunk):
            yield self.flush()

    def flush(self) -> str:
        """Return the collected text and clear the buffer."""
        held, self.held = self.held, ""
        return held
