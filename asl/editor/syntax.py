"""Parts of a text that may have errors: objects, arrays and scalars with their extent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from asl.core.pointers import tokens
from asl.core.values import Json

__all__ = ["Step", "SyntaxMember", "SyntaxPart", "SyntaxTree"]

Step: TypeAlias = str | int
"""The key of a member, or the number of an item."""


class SyntaxMember(NamedTuple):
    """A member of an object, or an item of an array, which has no key."""

    key: "SyntaxPart | None"
    value: "SyntaxPart"


@dataclass(slots=True, eq=False)
class SyntaxPart:
    """A value in the text from `start` to `end`, with its quotes or brackets.

    `kind` is `object`, `array`, `string` (also a number or a word), or `missing`: a key has no
    value yet. `embedded` is the definition within a string that holds one.
    """

    kind: str
    start: int
    end: int
    value: Json = None
    members: list[SyntaxMember] = field(default_factory=list)
    embedded: "SyntaxPart | None" = None

    def steps(self) -> Iterator[tuple[Step, SyntaxMember]]:
        """Yield the members with the steps to them."""
        for index, member in enumerate(self.members):
            if self.kind == "array":
                yield index, member
            elif member.key is not None:
                yield str(member.key.value), member

    def member(self, step: Step) -> SyntaxMember | None:
        """Return the member at a step, the last one of several; None if there is none."""
        if self.embedded is not None:
            return self.embedded.member(step)
        if self.kind == "array":
            known = type(step) is int and step < len(self.members)
            return self.members[int(step)] if known else None
        return next(
            (each for each in reversed(self.members) if each.key and each.key.value == step), None
        )

    def find(self, steps: tuple[Step, ...]) -> "SyntaxPart | None":
        """Return the part that steps lead to; None if there is none."""
        part: SyntaxPart | None = self
        for step in steps:
            member = None if part is None else part.member(step)
            part = None if member is None else member.value
        return part

    def at_pointer(self, pointer: str) -> "SyntaxPart | None":
        """Return the part at a JSON Pointer; None if there is none."""
        found: SyntaxPart | None = self
        for token in tokens(pointer):
            if found is None:
                break
            is_array = (found.embedded or found).kind == "array"
            member = found.member(int(token) if is_array and token.isdecimal() else token)
            found = None if member is None else member.value
        return found

    def to_json(self) -> Json:
        """Return the value, in which a missing one is null."""
        if self.embedded is not None:
            return self.embedded.to_json()
        if self.kind == "object":
            return {str(step): member.value.to_json() for step, member in self.steps()}
        if self.kind == "array":
            return [member.value.to_json() for member in self.members]
        return self.value


class SyntaxTree(NamedTuple):
    """The root of a text, and whether it is complete: no bracket, key or value is missing."""

    root: SyntaxPart
    is_complete: bool
