"""The catalogues of finding codes (`codes.toml`) and of error names (`failures.toml`)."""

import os
from functools import cache
from typing import NamedTuple

__all__ = ["Code", "ErrorName", "all_codes", "all_error_names", "lookup"]


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


USUALLY = "A retrier or catcher matches it by this name, States.TaskFailed or States.ALL."


class ErrorName(NamedTuple):
    """One error name: a short title, what leads to it, what matches it, and what to do about it."""

    name: str
    title: str
    explain: str
    matched: str
    hint: str | None

    @property
    def family(self) -> str:
        """Who raises it: `States`, the language, or an `Agent`."""
        return self.name.partition(".")[0]


@cache
def all_error_names() -> tuple[ErrorName, ...]:
    """Every error name that the language reserves or that is raised by itself."""
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "failures.toml"), "rb") as file:
        entries = tomllib.load(file)
    return tuple(_failure(name, **entry) for name, entry in entries.items())


def _failure(
    name: str, title: str, explain: str, matched: str = USUALLY, hint: str | None = None
) -> ErrorName:
    return ErrorName(name, title, explain.strip(), matched, hint)
