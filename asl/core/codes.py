"""The catalogue of rules: one entry of `codes.toml` for every code a diagnostic can carry."""

import os
from functools import cache
from typing import NamedTuple


class Code(NamedTuple):
    """One rule: its severity under the default profile, a short title and an explanation.

    `hint` is what to do about it where a finding does not say, of losses.
    `aws_severity` is set where the `aws` profile judges the rule differently, `aws_code` where AWS
    has a diagnostic code of its own for the fault.
    """

    id: str
    severity: str
    title: str
    explain: str
    aws_severity: str | None = None
    aws_code: str | None = None
    hint: str | None = None

    @property
    def family(self) -> str:
        """What the codes of rules about one thing begin with: `V-TASK`, `READ`, `L`."""
        return self.id.rpartition("-")[0] if self.id[-1].isdigit() else self.id.partition("-")[0]


@cache
def _catalogue() -> dict[str, Code]:
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "codes.toml"), "rb") as file:
        entries = tomllib.load(file)
    return {id: _code(id, **entry) for id, entry in entries.items()}


def _code(
    id: str,
    severity: str,
    title: str,
    explain: str,
    aws_severity: str | None = None,
    aws_code: str | None = None,
    hint: str | None = None,
) -> Code:
    return Code(id, severity, title, explain.strip(), aws_severity, aws_code, hint)


def lookup(code: str) -> Code:
    """The rule of this id; KeyError if there is none."""
    return _catalogue()[code]


def all_codes() -> tuple[Code, ...]:
    """Every rule, in the order of the specification."""
    return tuple(_catalogue().values())
