"""Where values stand in the data, once it is known who reads what somebody has made.

A value that only one state can have made stands where that has put it. Where several may have, each
of them leaves what it makes in one place for all of them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from asl.dialects.jsonpath_form import path_to
from asl.dialects.names import FreshNames

__all__ = ["ABSENT", "START", "Env", "Makers", "Places", "joined"]

Makers = frozenset[str]
"""The states that may have made a value."""
Env = dict[str, Makers]
"""What is known of the data in front of a state: who may have made what."""
START: Final = ""
"""Who has made the input of a run."""
ABSENT: Final = "{{?}}"
"""Stands among the makers of a value that may not be there, as on some way nobody has made it."""


def joined(one: Env, other: Env) -> Env:
    """Return what is known where two ways meet."""
    return {key: _either(key, one.get(key), other.get(key)) for key in one | other}


def _either(key: str, one: Makers | None, other: Makers | None) -> Makers:
    both = (one or Makers()) | (other or Makers())
    value = key.startswith("steps.") or key in ("previous_step", "resume_input", "last_output")
    return both | {ABSENT} if value and both and not (one and other) else both


@dataclass(frozen=True, slots=True)
class _Value:
    wanted: str
    within: tuple[str | int, ...]
    """Where the value stands in what its state puts into the data."""
    sink: tuple[str, ...]
    """The place in the context where the document has it."""


class Places:
    """The places of all values; until `settle` they are only taken down."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.values: dict[str, _Value] = {}
        self.read: dict[Makers, None] = {}
        self.own: dict[str, str] = {}
        """The key under which a state puts what it makes."""
        self.common: dict[Makers, str] = {}
        """The key where several leave a value."""
        self.taken = FreshNames(taken, "_")
        self.settled = False

    def made(
        self, maker: str, wanted: str, within: tuple[str | int, ...] = (), sink: str | None = None
    ) -> None:
        """Take down that a state makes a value, with the name of a key for it."""
        self.values[maker] = _Value(wanted, within, tuple(sink.split(".")) if sink else ())

    def settle(self) -> None:
        """Give all values their keys."""
        self.settled = True
        for maker, value in self.values.items():
            only = self._only(maker)
            if only is None:
                self.own[maker] = self._key(value.wanted)
            else:
                if only not in self.common:
                    self.common[only] = self._key(value.wanted)
                self.own[maker] = self.common[only]
        for makers in self.read:
            if len(makers) > 1 and makers not in self.common:
                names = [self.values[each].wanted for each in sorted(makers)]
                self.common[makers] = self._key("_or_".join(names[:2]))

    def _only(self, maker: str) -> Makers | None:
        """Return the one reading of a value, if that is of several and takes it as it is made."""
        value = self.values[maker]
        found = [each for each in self.read if maker in each]
        direct = not value.within and not value.sink
        return found[0] if direct and len(found) == 1 and len(found[0]) > 1 else None

    def _key(self, wanted: str) -> str:
        slug = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "step"
        return self.taken.new(f"at_{slug}" if slug[0].isdigit() else slug)

    def record(self, maker: str) -> str:
        """Return the path where a state puts what it makes; the root until there are keys."""
        if not self.settled:
            return "$"
        value = self.values[maker]
        if value.sink and not value.within:
            return path_to(*value.sink)
        return path_to(self.own[maker])

    def copies(self, maker: str) -> Iterator[tuple[str, str]]:
        """Yield from where to where a value is copied behind its state."""
        if not self.settled:
            return
        value, here = self.values[maker], self._value(maker)
        wanted = [path_to(key) for makers, key in self.common.items() if maker in makers]
        wanted += [path_to(*value.sink)] if value.sink else []
        yield from ((here, there) for there in wanted if there != here)

    def _value(self, maker: str) -> str:
        return self.record(maker) + path_to(*self.values[maker].within)[1:]

    def at(self, makers: Makers) -> str:
        """Return the path where a value stands that one of these has made."""
        if not self.settled:
            self.read[makers] = None
            return "$"
        return self._value(min(makers)) if len(makers) == 1 else path_to(self.common[makers])
