"""Profiles: the same language read three ways (Specification 0.3).

A profile is chosen by the caller and bound when a document is checked and compiled; nothing reads
it while a workflow runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

__all__ = ["AWS", "DEFAULT", "LENIENT", "PROFILES", "Missing", "Profile"]


class Missing(Enum):
    """What a path that finds nothing does, by the place where it stands (Specification 3.3)."""

    RUNTIME = "States.Runtime"
    PARAMETER = "States.ParameterPathFailure"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to read the language. All sizes are bytes of compact JSON in UTF-8."""

    name: str
    agent_native: bool = True
    """Agent states, fields and intrinsics are part of the language."""
    template: Missing = Missing.PARAMETER
    """A missing path in a payload template, an intrinsic argument or interpolated text."""
    variable: Missing = Missing.RUNTIME
    """A missing `Variable` of a choice rule."""
    wildcard_matches_data_limit: bool = False
    """`States.ALL` also matches `States.DataLimitExceeded` (register C-13)."""
    java_format: bool = False
    """Intrinsic functions print and compare values the way the recorded service does, as Java."""
    checks_every_state: bool = False
    """The payload limit holds for every effect's output and every Assign, not the border alone."""
    max_payload: int = 64 * 1024 * 1024
    max_transitions: int = 1_000_000
    """Transitions of one machine; a loop guard (Specification 1.2)."""
    max_effects: int = 25_000
    """Attempts of one machine to reach the world: tasks, waits, forks, with their retries."""
    max_items: int = 250_000
    """Items of all Map states of an execution that are not distributed, nested ones included."""

    @property
    def aws(self) -> bool:
        """Whether this is the `aws` profile: AWS's behaviour and wording."""
        return not self.agent_native

    def with_limits(
        self,
        *,
        max_payload: int | None = None,
        max_transitions: int | None = None,
        max_effects: int | None = None,
        max_items: int | None = None,
    ) -> "Profile":
        """Return this profile with other bounds."""
        return replace(
            self,
            max_payload=max_payload or self.max_payload,
            max_transitions=max_transitions or self.max_transitions,
            max_effects=max_effects or self.max_effects,
            max_items=max_items or self.max_items,
        )


DEFAULT = Profile("default")
LENIENT = replace(DEFAULT, name="lenient", template=Missing.NULL, variable=Missing.NULL)
AWS = Profile(
    "aws",
    agent_native=False,
    template=Missing.RUNTIME,
    wildcard_matches_data_limit=True,
    java_format=True,
    checks_every_state=True,
    max_payload=256 * 1024,
    # The history quota of a standard execution: 25,000 events, the first and the last of them
    # aside at least two a transition.
    max_transitions=12_499,
)
PROFILES: Mapping[str, Profile] = MappingProxyType({p.name: p for p in (DEFAULT, AWS, LENIENT)})
