"""What the scalars, tags and keys of a YAML text mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asl.core.values import Json

__all__ = ["CONSTANTS", "CORE", "Schema"]

CONSTANTS: Final[Mapping[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
"""The plain scalars of the core schema that stand for a constant."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What scalars, tags and keys mean.

    `words` are the plain scalars that stand for a constant. A tag of `tags` (`!Sub`) makes its node
    the only member of an object, under the key that the table gives. `old` is YAML 1.1: merge keys
    (`<<`) are followed, and a key may be any scalar. `expand` rewrites every scalar before it is
    resolved. `number` reads what begins like a number, where that is not as in YAML 1.2.
    """

    words: Mapping[str, Json]
    tags: Mapping[str, str]
    old: bool = False
    expand: Callable[[str], str] | None = None
    number: Callable[[str], Json] | None = None


CORE = Schema(CONSTANTS, {})
"""The core schema of YAML 1.2."""
