"""One Lambda function as a template defines it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LambdaFunction", "read_number"]


@dataclass(frozen=True, slots=True)
class LambdaFunction:
    """The configuration of a Lambda function, and where its code is."""

    logical: str
    """Its name in the template."""
    name: str
    """Its name in AWS."""
    arns: tuple[str, ...]
    """Its ARNs as state machines of the template refer to it, those of aliases included."""
    other_names: tuple[str, ...] = ()
    """Further names by which state machines may call it."""
    runtime: str = ""
    handler: str = ""
    code: str = ""
    """The folder of its code."""
    inline: str | None = None
    """Its code, if the template contains it."""
    layers: tuple[str, ...] = ()
    """The folders of its layers."""
    missing_layers: tuple[str, ...] = ()
    """Layers that are not in the project."""
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    timeout: float = 3.0
    """Seconds that a call may take."""
    memory: int = 128
    """Megabytes; for the context only."""
    problem: str | None = None
    """Why its code cannot be run here; None if it can, as far as the template shows."""


def read_number(text: str, default: float) -> float:
    """Return the number in a text; the default for any other text."""
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text) else default
