"""Profiles: three variants of the language (Specification 0.3).

The caller chooses a profile; it is bound when a document is checked and compiled, and not read
while a workflow runs.
"""

import sys
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from asl.core.errors import AslError

__all__ = [
    "AWS",
    "DEFAULT",
    "LENIENT",
    "NO_QUOTAS",
    "PROFILES",
    "Missing",
    "Profile",
    "Quotas",
    "profile_named",
]


class Missing(Enum):
    """The behaviour of a path that finds nothing, by its place (Specification 3.3)."""

    RUNTIME = "States.Runtime"
    PARAMETER = "States.ParameterPathFailure"
    NULL = "null"


class Quotas(NamedTuple):
    """Quotas that a service sets on definitions and executions; None for no limit."""

    history_events: int | None = None
    """Events in the history of a standard execution."""
    express_seconds: int | None = None
    """Duration of an express execution."""
    standard_seconds: int | None = None
    """Duration of a standard execution."""
    input_characters: int | None = None
    """Length of the input of an execution, as compact JSON."""
    definition_characters: int | None = None
    """Length of a definition."""


NO_QUOTAS = Quotas()


class Profile(NamedTuple):
    """One variant of the language. All sizes are bytes of compact JSON in UTF-8."""

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
    """Whether the payload limit applies to every output and Assign, not only to the input and
    output of the execution."""
    max_payload: int = 64 * 1024 * 1024
    max_transitions: int = 1_000_000
    """Transitions of one machine; a loop guard (Specification 1.2)."""
    max_effects: int = 25_000
    """Attempts of one machine to perform an effect: tasks, waits, forks, with their retries."""
    max_items: int = 250_000
    """Items of all inline Map states of an execution, nested ones included."""

    quotas: Quotas = NO_QUOTAS

    @property
    def aws(self) -> bool:
        """Whether this is the `aws` profile: AWS's behaviour and messages."""
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
        return self._replace(
            max_payload=max_payload or self.max_payload,
            max_transitions=max_transitions or self.max_transitions,
            max_effects=max_effects or self.max_effects,
            max_items=max_items or self.max_items,
        )

    def with_quotas(self, **quotas: int | None) -> "Profile":
        """Return this profile with other quotas and bounds; `history_events=None` lifts that one.

        The bounds are `max_transitions`, `max_effects` and `max_items`.

        The name of the profile names them too, so that a stored execution keeps them.

        Raises:
            AslError: for a quota that does not exist or is not a positive integer.
        """
        for name, value in quotas.items():
            if name not in CHANGEABLE:
                listed = ", ".join(CHANGEABLE)
                raise AslError(f"there is no quota {name!r}; the quotas are {listed}")
            if value is not None and (type(value) is not int or value < 1):
                raise AslError(
                    f"the quota {name!r} must be a positive integer or None, not {value!r}"
                )
        limits = {name: value for name, value in quotas.items() if name in QUOTAS}
        bounds = {name: value or UNBOUNDED for name, value in quotas.items() if name in BOUNDS}
        # Profiles without quotas share one object, by which they are recognized.
        changed = self.quotas._replace(**limits) if limits else self.quotas
        name, _, _ = self.name.partition(":")
        profile = self.with_limits(**bounds)._replace(quotas=changed)
        own = PROFILES.get(name, Profile(name))
        others = [
            f"{each}={_NONE if value in (None, UNBOUNDED) else value}"
            for each in CHANGEABLE
            if (value := profile._limit(each)) != own._limit(each)
        ]
        return profile._replace(name=":".join((name, *others)))

    def _limit(self, name: str) -> int | None:
        found: int | None = getattr(self.quotas if name in QUOTAS else self, name)
        return found


QUOTAS = Quotas._fields
BOUNDS = ("max_transitions", "max_effects", "max_items")
CHANGEABLE = (*QUOTAS, *BOUNDS)
UNBOUNDED = sys.maxsize
_NONE = "none"


def profile_named(name: str) -> Profile | None:
    """Return the profile of a name such as `aws` or `aws:history_events=none`, else None."""
    plain, *quotas = name.split(":")
    if plain not in PROFILES:
        return None
    pairs = (each.partition("=") for each in quotas)
    changes = {key: None if text == _NONE else _number(text) for key, _, text in pairs}
    return PROFILES[plain].with_quotas(**changes) if changes else PROFILES[plain]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise AslError(f"a quota must be a positive integer or {_NONE!r}, not {text!r}")
    return int(text)


DEFAULT = Profile("default")
LENIENT = DEFAULT._replace(name="lenient", template=Missing.NULL, variable=Missing.NULL)
AWS = Profile(
    "aws",
    agent_native=False,
    template=Missing.RUNTIME,
    wildcard_matches_data_limit=True,
    java_format=True,
    checks_every_state=True,
    max_payload=256 * 1024,
    # Source: AWS Step Functions Developer Guide, "Service quotas", and the lengths in its API
    # reference; November 2026.
    quotas=Quotas(
        history_events=25_000,
        express_seconds=300,
        standard_seconds=31_536_000,
        input_characters=262_144,
        definition_characters=1_048_576,
    ),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({p.name: p for p in (DEFAULT, AWS, LENIENT)})
