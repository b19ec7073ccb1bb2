"""What all machines of a document share: names, findings, and where things were written."""

from collections.abc import Mapping
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.flujo.options import Options

__all__ = ["Whole"]

MAX_NAME: Final = 80
ROOM: Final = 16
"""Characters of a name that are left for what is put behind it."""


class Whole:
    """A document under construction."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.findings: list[Finding] = []
        self.machines: dict[str, Json] = {}
        self.taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.first: str | None = None
        """The state that is given the input of the execution as it is."""

    def name(self, text: str, within: str = "") -> str:
        """Return a name that no other state of the whole document has, with room for a part."""
        longest = MAX_NAME - ROOM
        base = text[:longest] or "_"
        if base in self.taken and within:
            base = f"{within}/{text}"[:longest]
        return self._fresh(base, longest)

    def part(self, name: str, part: str) -> str:
        """Return the name of a state that is a part of one."""
        return self._fresh(f"{name}:{part}"[:MAX_NAME], MAX_NAME)

    def _fresh(self, base: str, longest: int) -> str:
        stem = base[: longest - 6]
        found, number = base, self._numbers.get(stem, 1)
        while found in self.taken:
            number += 1
            found = f"{stem}~{number}"
        if found != base:
            self._numbers[stem] = number
        self.taken.add(found)
        return found
