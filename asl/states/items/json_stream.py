"""JSON text read block by block: one value at a time, and nothing of it before it is asked for."""

import re
from typing import BinaryIO, Final, NoReturn

from asl.states.items.base import BOM, MAX_VALUES, DataFault

__all__ = ["JsonStream"]

BLOCK: Final = 1 << 16
"""Bytes of a block."""
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_SCALAR: Final = re.compile(rb'[^\s\[\]{},:"]*')
_MARKS: Final = re.compile(rb'(?:[^"\[\]{}]++|"[^"]*+")*+([\[\]{}"])')
"""Whole strings and what is between them, then what matters to find the end of a value, in a text
whose escapes are masked."""


class JsonStream:
    """A JSON text, and the place in it up to which it has been read.

    Args:
        file: The file to read.
        longest: Bytes that may be read between two calls of `begin_item`.
        first: What has been read of the file already.
    """

    def __init__(self, file: BinaryIO, longest: int, first: bytes = b"") -> None:
        self.file = file
        self.longest = longest
        self._block = self._masked = b""
        self._at = 0
        self._rest = first.removeprefix(BOM)
        self._line, self._column = 1, 1
        self._size = self._values = self._depth = 0
        self._in_string = False
        self._fill()

    def begin_item(self) -> None:
        """Count the bytes and values of the next item."""
        self._size = self._values = 0

    def peek(self) -> bytes:
        """Skip blanks and return the next character, b"" at the end."""
        while True:
            blanks = _BLANKS.match(self._masked, self._at)
            assert blanks is not None  # it matches nothing at least
            self._move(blanks.end())
            if self._at < len(self._masked):
                return self._masked[self._at : self._at + 1]
            if not self._fill():
                return b""

    def take(self, *expected: bytes) -> bytes:
        """Skip blanks, read the next character, one of those *expected*, and return it."""
        found = self.peek()
        if found not in expected:
            self.refuse(f"{' or '.join(each.decode() for each in expected)} is expected")
        self._move(self._at + 1)
        return found

    def place(self) -> tuple[int, int]:
        """Return line and column of the next value, counted from 1."""
        self.peek()
        return self._line, self._column

    def value(self) -> bytes:
        """Return the text of the next value."""
        parts: list[bytes] = []
        self._walk(parts)
        return b"".join(parts)

    def skip(self) -> None:
        """Pass over the next value."""
        self._walk(None)

    def refuse(self, message: str) -> NoReturn:
        """Raise Fault for the text at this place."""
        raise DataFault(f"no JSON: {message}", f"line {self._line}, column {self._column}")

    def _walk(self, parts: list[bytes] | None) -> None:
        found = self.peek()
        if found not in (b'"', b"[", b"{"):
            self._walk_scalar(parts)
            return
        self._depth, self._in_string = 0, False
        while not (end := self._find_end()):
            self._keep(parts, len(self._masked))
            if not self._fill():
                self.refuse("the text ends within a value")
        self._keep(parts, end)

    def _find_end(self) -> int:
        """Return where the value ends in this block, 0 if it goes on in the next one."""
        start = self._at
        if not self._depth and not self._in_string and self._masked[start : start + 1] == b'"':
            self._in_string = True
            start += 1
        if self._in_string:
            start = self._masked.find(b'"', start) + 1
            if not start:
                return 0
            self._in_string = False
            if not self._depth:
                return start
        while mark := _MARKS.match(self._masked, start):
            text, start = mark[1], mark.end()
            self._values += 1
            if self._values > 2 * MAX_VALUES:  # a closing bracket is counted, too
                raise DataFault(f"an item of more than {MAX_VALUES} values", f"line {self._line}")
            if text in (b"[", b"{"):
                self._depth += 1
                continue
            if text == b'"':
                self._in_string = True
                return 0
            if text in (b"]", b"}"):
                self._depth -= 1
            if not self._depth:
                return start
        return 0

    def _walk_scalar(self, parts: list[bytes] | None) -> None:
        read = 0
        while True:
            scalar = _SCALAR.match(self._masked, self._at)
            assert scalar is not None  # it matches nothing at least
            read += len(scalar[0])
            self._keep(parts, scalar.end())
            if self._at < len(self._masked) or not self._fill():
                break
        if not read:
            self.refuse("a value is expected")

    def _keep(self, parts: list[bytes] | None, end: int) -> None:
        if parts is not None:
            parts.append(self._block[self._at : end])
        self._move(end)

    def _move(self, end: int) -> None:
        """Go on to a place in the block."""
        lines = self._block.count(b"\n", self._at, end)
        if lines:
            self._line += lines
            self._column = end - self._block.rfind(b"\n", self._at, end)
        else:
            self._column += end - self._at
        self._at = end

    def _fill(self) -> bool:
        """Read the next block, without half an escape at its end; return whether there is one."""
        block = self._rest or self.file.read(BLOCK)
        self._rest = b""
        self._size += len(block)
        if self._size > self.longest + 2 * BLOCK:
            text = f"more than {self.longest} bytes in one item, or before the first one"
            raise DataFault(text, f"line {self._line}")
        if (len(block) - len(block.rstrip(b"\\"))) % 2:
            escaped = self.file.read(1)
            block += escaped
        self._block, self._at = block, 0
        self._masked = block.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        return bool(block)
