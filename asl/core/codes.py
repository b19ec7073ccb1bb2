"""The catalogues of finding codes (`codes.toml`) and of error names (`failures.toml`).

Dialects add files of the same form.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeVar

from asl.core.dialect_parts import DialectPart
from asl.core.lazy import wrap_errors

__all__ = [
    "Code",
    "ErrorName",
    "all_codes",
    "all_error_names",
    "error_group",
    "error_names_of",
    "is_anonymous",
    "lookup",
]


T = TypeVar("T")


class Code(NamedTuple):
    """One rule: its severity in the default profile, a short title and an explanation.

    `hint` is the default advice of a conversion loss. If all losses of a code have one cause,
    `cause` is the message of an entry with several places. `aws_severity` is the severity in the
    `aws` profile where it differs, `aws_code` the diagnostic code of AWS for the same fault. A code
    of a dialect may report the same as a rule of the language, which it `replaces`. `changes` lists
    what a conversion loss that is no error may change: `payload`, what an agent gets; `value`, what
    a state writes; `output`, the form of the output of a run; `input`, the form of its input;
    `error`, a failure or its name; `time`, delays and the order of independent calls. Neither path
    nor status is among them: what changes those is an error.
    """

    id: str
    severity: str
    title: str
    explain: str
    aws_severity: str | None = None
    aws_code: str | None = None
    hint: str | None = None
    replaces: str | None = None
    cause: str | None = None
    changes: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The prefix that the codes of one subject share: `V-TASK`, `READ`, `L`."""
        return self.id.rpartition("-")[0] if self.id[-1].isdigit() else self.id.partition("-")[0]


CODES: Final = DialectPart[str | None]("codes")
"""Files with the finding codes of dialects."""
ERROR_NAMES: Final = DialectPart[str | None]("error_names")
"""Files with the error names of dialects."""


def _beside(name: str) -> str:
    """Return the path of a file in the folder of this module."""
    return os.path.join(os.path.dirname(__file__), name)


@cache
def _codes(path: str) -> Mapping[str, Code]:
    """Return the codes in a TOML file."""
    return _entries(path, _code)


def _entries(path: str, make: Callable[..., T]) -> dict[str, T]:
    """Return the entries of a TOML file.

    Raises:
        AslError: The file cannot be read, or an entry has a wrong form.
    """
    import tomllib

    with wrap_errors(f"the codes or error names in {path!r} cannot be used"):
        with open(path, "rb") as file:
            entries = tomllib.load(file)
        return {name: make(name, **entry) for name, entry in entries.items()}


def _code(
    id: str,
    severity: str,
    title: str,
    explain: str,
    aws_severity: str | None = None,
    aws_code: str | None = None,
    hint: str | None = None,
    replaces: str | None = None,
    cause: str | None = None,
    changes: Iterable[str] = (),
) -> Code:
    about = (id, severity, title, explain.strip())
    return Code(*about, aws_severity, aws_code, hint, replaces, cause, tuple(changes))


def lookup(code: str) -> Code:
    """Return the rule of a code.

    Raises:
        KeyError: Neither the language nor a dialect has the code.
    """
    found = _codes(_beside("codes.toml")).get(code)
    if found is not None:
        return found
    for codes in _codes_of_dialects():
        if code in codes:
            return codes[code]
    raise KeyError(code)


def _codes_of_dialects() -> Iterator[Mapping[str, Code]]:
    return (_codes(path) for path in CODES if path is not None)


def all_codes() -> tuple[Code, ...]:
    """Return every rule: those of the language in the order of the specification, then others."""
    tables = _codes(_beside("codes.toml")), *_codes_of_dialects()
    return tuple(code for codes in tables for code in codes.values())


RETRYABLE: Final = "Retryable"
USUALLY = "A retrier or catcher matches it by this name, States.TaskFailed or States.ALL."


class ErrorName(NamedTuple):
    """One error name: its title, its cause, the names that match it, and advice.

    An `anonymous` name means an error that its dialect raises on purpose, without a name. A name
    that is never raised may be a group: in `ErrorEquals` it means the names that it
    `matches`, without those that it `excludes`.
    """

    name: str
    title: str
    explain: str
    matched: str
    hint: str | None
    anonymous: bool = False
    matches: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The part before the dot: `States` for the language, or `Agent`."""
        return self.name.partition(".")[0]


def all_error_names() -> tuple[ErrorName, ...]:
    """Return every error name that the language, its agents or dialects reserve or raise."""
    paths = _beside("failures.toml"), *filter(None, ERROR_NAMES)
    return tuple(name for path in paths for name in _error_names(path))


def error_names_of(namespace: str) -> tuple[ErrorName, ...]:
    """Return the error names of the dialect with this namespace, none for an unknown one."""
    path = ERROR_NAMES.of_namespace(namespace)
    return () if path is None else _error_names(path)


@cache
def _error_names(path: str) -> tuple[ErrorName, ...]:
    """Return the error names in a TOML file."""
    return tuple(_entries(path, _failure).values())


def _failure(
    name: str,
    title: str,
    explain: str,
    matched: str = USUALLY,
    hint: str | None = None,
    anonymous: bool = False,
    matches: Iterable[str] = (),
    excludes: Iterable[str] = (),
) -> ErrorName:
    about = (name, title, explain.strip(), matched, hint, anonymous)
    return ErrorName(*about, tuple(matches), tuple(excludes))


def error_group(name: str) -> ErrorName | None:
    """Return the errors of a dialect that another attempt may mend, by their name.

    The name is `Retryable` in the namespace of the dialect, so that no other name loads one.
    """
    namespace, _, rest = name.partition(".")
    if rest != RETRYABLE:
        return None
    return next((each for each in error_names_of(namespace) if each.name == name), None)


def is_anonymous(name: str) -> bool:
    """Return whether an error name means an error that its dialect gives no name."""
    return any(each.anonymous and each.name == name for each in all_error_names())
