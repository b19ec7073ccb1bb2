"""The catalogues of finding codes (`codes.toml`) and of error names (`failures.toml`)."""

import os
from functools import cache
from typing import NamedTuple

__all__ = ["Code", "ErrorName", "all_codes", "all_error_names", "lookup"]


class Code(NamedTuple):
    """One rule: its severity in the default profile, a short title and an explanation.

    `hint` is the default advice of a conversion loss. `aws_severity` is the severity in the `aws`
    profile where it differs, `aws_code` the diagnostic code of AWS for the same fault.
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
        """The prefix that the codes of one subject share: `V-TASK`, `READ`, `L`."""
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
    """Return the rule of a code; raises KeyError for an unknown one."""
    return _catalogue()[code]


def all_codes() -> tuple[Code, ...]:
    """Return every rule, in the order of the specification."""
    return tuple(_catalogue().values())


USUALLY = "A retrier or catcher matches it by this name, States.TaskFailed or States.ALL."


class ErrorName(NamedTuple):
    """One error name: its title, its cause, the names that match it, and advice."""

    name: str
    title: str
    explain: str
    matched: str
    hint: str | None

    @property
    def family(self) -> str:
        """The part before the dot: `States` for the language, or `Agent`."""
        return self.name.partition(".")[0]


@cache
def all_error_names() -> tuple[ErrorName, ...]:
    """Return every error name that the language reserves or raises itself."""
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "failures.toml"), "rb") as file:
        entries = tomllib.load(file)
    return tuple(_failure(name, **entry) for name, entry in entries.items())


def _failure(
    name: str, title: str, explain: str, matched: str = USUALLY, hint: str | None = None
) -> ErrorName:
    return ErrorName(name, title, explain.strip(), matched, hint)
