"""Tool policies: the allowed tools of an agent, their limits and bounds (Specification 8.9).

A policy is plain data, from the `DefaultTools` of a document and the `Tools` of a state. A nested
call is bound by all policies around it, so permissions only shrink.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json, is_integer, is_number
from asl.expr.frame import Evaluate
from asl.expr.text_matching import compile_glob
from asl.expr.times import parse_duration
from asl.states.blocks.consent import REQUIRE_APPROVAL, consent_rules

__all__ = [
    "WINDOWS",
    "AccessBounds",
    "Matcher",
    "Mount",
    "RateLimit",
    "ToolHook",
    "ToolPolicy",
    "ToolRules",
    "host_pattern",
    "overlay",
    "parse_image",
    "parse_mounts",
    "parse_processors",
    "parse_size",
    "path_pattern",
    "tool_categories",
]

UNITED: Final = ("Denied", "DeniedCategories", "DeniedDomains", "DeniedPaths", REQUIRE_APPROVAL)
"""The lists that only grow."""
REPLACED: Final = ("Allowed", "AllowedCategories")
"""The lists that a state replaces; one of them replaces both."""
MERGED: Final = {
    "RateLimits": 2,
    "Parameters": 2,
    "Validation": 3,
    "Sandbox": 1,
    "Domains": 1,
    "Network": 1,
    "FileSystem": 1,
    "Audit": 1,
}
"""The maps that are merged by key, and how deep."""
WINDOWS: Final = {
    "BurstLimit": 1.0,
    "MaxPerMinute": 60.0,
    "MaxPerHour": 3600.0,
    "MaxPerDay": 86400.0,
}
"""Seconds of the windows, by the fields with their limits."""
ON_EXCEED: Final = ("fail", "wait", "queue")
LEVELS: Final = ("minimal", "standard", "detailed", "full", "debug")
"""The levels of detail in events."""
_SIZE: Final = r"([0-9]+)([KMG]?)B?"
_IMAGE: Final = r"[A-Za-z0-9][A-Za-z0-9._:/@-]*"
_HOST: Final = r"(?!\.)[^\s/\\?#@:]*|\[?[0-9a-f]*:(?=[^:*]*[:*])[0-9a-f:.*]*(?:%\w+)?\]?"
"""A name or an address with stars in it; only an address of IPv6 has colons."""
_AROUND_HOST: Final = r"\s*(?:[a-z*][a-z0-9+.*-]*://|//)?(?:[^/@]*@)?([^\s/\\?#@:]*)"
"""The part of a URL before its host."""
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3}

Matcher: TypeAlias = Callable[[Iterable[str]], bool]
"""Returns whether one of the names of a tool matches."""


class ToolHook(NamedTuple):
    """An agent called before or after each tool call; its fields see the effective input."""

    agent: Evaluate
    parameters: Evaluate | None
    block: Mapping[str, Json]
    """Its block, with its query language."""


class ToolRules(NamedTuple):
    """The evaluated rules of a block of tools."""

    block: Mapping[str, Json]
    hooks: Mapping[str, ToolHook]
    """By `Before` and `After`."""
    data: Json
    """The data of hooks: the effective input of the state, or the execution input."""
    constant: bool
    """Whether the block is the same object in every run."""


class RateLimit(NamedTuple):
    """The maximum calls of the tools that match a pattern."""

    pattern: str
    matches: Matcher
    maximum: Mapping[str, int]
    """Calls by the field of the window, or `MaxConcurrent`."""
    waits: bool
    """Whether a call beyond the limit waits."""


def parse_size(value: Json) -> int:
    """Return the bytes of a size: `512`, `"512"`, `"10K"`, `"1MB"`.

    Raises:
        ValueError: The value is no size.
    """
    if is_integer(value) and value >= 0:
        return int(value)
    found = re.fullmatch(_SIZE, value) if type(value) is str else None
    if found is None:
        raise ValueError(f"{value!r} is not a size such as '512K' or '1MB'")
    return int(found[1]) << 10 * _POWERS[found[2]]


def tool_categories(workflow: Mapping[str, Json]) -> Mapping[str, list[str]]:
    """Return the `ToolCategories` of a document."""
    categories = workflow.get("ToolCategories")
    return categories if type(categories) is dict else {}


def overlay(
    below: Mapping[str, Json] | None, above: Mapping[str, Json] | None
) -> Mapping[str, Json] | None:
    """Return the block of a document overlaid by that of a state."""
    if below is None or above is None:
        return below if above is None else above
    block = {**below, **above}
    if not above.keys().isdisjoint(REPLACED):
        for name in REPLACED:
            if name not in above:
                block.pop(name, None)
    for name in UNITED:
        if name in below and name in above:
            block[name] = [*_listed(below[name]), *_listed(above[name])]
    for name, depth in MERGED.items():
        if name in below and name in above:
            block[name] = _merged(below[name], above[name], depth)
    return block


def _listed(value: Json) -> list[Json]:
    return value if type(value) is list else [value]


def _merged(below: Json, above: Json, depth: int) -> Json:
    if depth == 0 or type(below) is not dict or type(above) is not dict:
        return above
    merged = dict(below)
    for name, value in above.items():
        if name in UNITED and type(value) is list and type(below.get(name)) is list:
            merged[name] = [*below[name], *value]
        elif name in below:
            merged[name] = _merged(below[name], value, depth - 1)
        else:
            merged[name] = value
    return merged


class ToolPolicy:
    """A policy of one level: the rules of a state, or of a whole document.

    Raises:
        ValueError: A computed field has a wrong value.
    """

    def __init__(self, block: Mapping[str, Json], categories: Mapping[str, list[str]]) -> None:
        self.block = block
        self.categories = categories
        denied = _texts(block, "Denied")
        named = _matcher(denied, {})  # a tool may be called like a category
        members = _matcher([*denied, *_texts(block, "DeniedCategories")], categories)
        self.denied: Matcher = lambda names: named(names) or members(names)
        self.allowed: Matcher | None = None
        if not block.keys().isdisjoint(REPLACED):
            listed = [*_texts(block, "Allowed"), *_texts(block, "AllowedCategories")]
            self.allowed = _matcher(listed, categories)
        self.tests = {name: _matcher([name], categories) for name in categories}
        """Tests for the members of each category."""
        self.limits = tuple(self._limits(categories))
        self.parameters = self._by_tool("Parameters", categories)
        self.validation = self._by_tool("Validation", categories)
        self.sandbox = self._sandbox()
        times = [
            block.get("Timeout"),
            None if self.sandbox is None else self.sandbox.get("Timeout"),
        ]
        seconds = [_seconds(each) for each in times if each is not None]
        self.timeout = min(seconds) if seconds else None
        self.consents = consent_rules(
            block.get(REQUIRE_APPROVAL), lambda patterns: _matcher(patterns, categories)
        )
        self.hosts = AccessBounds.of_hosts(block)
        self.files = AccessBounds.of_files(block)

    def refusal(self, names: tuple[str, ...]) -> str | None:
        """Return the reason to refuse a tool, None for an allowed one; denial wins."""
        if self.denied(names):
            return "is denied"
        if self.allowed is not None and not self.allowed(names):
            return "is not allowed"
        return None

    def arguments(self, names: tuple[str, ...]) -> dict[str, Json]:
        """Return the default arguments of a tool; those of its own name win."""
        return {
            name: value
            for given in self._for(self.parameters, names)
            for name, value in given.items()
        }

    def checks(self, names: tuple[str, ...], side: str) -> Iterator[Mapping[str, Json]]:
        """Yield the validations of the `Input` or `Output` of a tool."""
        for each in self._for(self.validation, names):
            if side in each:
                yield each[side]

    @property
    def level(self) -> str:
        """The level of detail in events: `minimal`, `standard` or `full`.

        Raises:
            ValueError: `Audit.LogLevel` is unknown.
        """
        audit = self.block.get("Audit", True)
        if type(audit) is bool:
            return "standard" if audit else "minimal"
        if audit.get("Enabled", True) is not True:
            return "minimal"
        level = audit.get("LogLevel", "standard")
        if level not in LEVELS:
            raise ValueError(f"Audit.LogLevel is one of {', '.join(LEVELS)}, not {level!r}")
        level = level if level in ("minimal", "standard") else "full"
        if "IncludeParameters" in audit and level != "full":
            return "standard" if audit["IncludeParameters"] is True else "minimal"
        return level

    def _limits(self, categories: Mapping[str, list[str]]) -> Iterator[RateLimit]:
        for pattern, given in self.block.get("RateLimits", {}).items():
            most = {}
            for name in (*WINDOWS, "MaxConcurrent"):
                if name in given:
                    most[name] = _positive(given[name], f"RateLimits.{pattern}.{name}")
            action = given.get("OnExceed", "fail")
            if action not in ON_EXCEED:
                raise ValueError(f"RateLimits.{pattern}.OnExceed is one of {', '.join(ON_EXCEED)}")
            yield RateLimit(pattern, _matcher([pattern], categories), most, action != "fail")

    @property
    def requests(self) -> int | None:
        """Maximum network requests in a minute; None for no limit."""
        most = self.block.get("Network", {}).get("MaxRequestsPerMinute")
        return None if most is None else _positive(most, "Network.MaxRequestsPerMinute")

    def _by_tool(
        self, name: str, categories: Mapping[str, list[str]]
    ) -> list[tuple[str, Matcher, Mapping[str, Json]]]:
        return [
            (tool, _matcher([tool], categories), given)
            for tool, given in self.block.get(name, {}).items()
        ]

    def _for(
        self, table: list[tuple[str, Matcher, Mapping[str, Json]]], names: tuple[str, ...]
    ) -> list[Mapping[str, Json]]:
        """Return the entries for a tool, those for its own name last."""
        found = [(tool in names, given) for tool, matches, given in table if matches(names)]
        return [given for _, given in sorted(found, key=lambda each: each[0])]

    def _sandbox(self) -> Mapping[str, Json] | None:
        settings: Mapping[str, Json] | None = self.block.get("Sandbox")
        wanted = self.block.get("Sandboxed", settings is not None)
        if type(wanted) is not bool:
            raise ValueError("Sandboxed is true or false")
        return (settings or {}) if wanted else None


class AccessBounds(NamedTuple):
    """Allowed and denied hosts or files, by patterns; denial wins."""

    allowed: tuple[str, ...] | None
    denied: tuple[str, ...]
    extensions: tuple[str, ...] | None = None
    max_bytes: int | None = None
    """Maximum bytes of a file."""

    @classmethod
    def of_hosts(cls, block: Mapping[str, Json]) -> "AccessBounds | None":
        """Return the bounds of hosts, in either form or both; None for no bounds."""
        forms: list[tuple[Any, str, str]] = [
            (block.get("Domains"), "Allowed", "Denied"),
            (block.get("Network"), "AllowedDomains", "DeniedDomains"),
        ]
        denied: list[str] = []
        allowed: list[str] | None = None
        for given, allow, deny in forms:
            if given is not None:
                denied += map(host_pattern, _texts(given, deny))
                if allow in given:
                    allowed = [*(allowed or ()), *map(host_pattern, _texts(given, allow))]
        if allowed is None and not denied:
            return None
        return cls(None if allowed is None else tuple(allowed), tuple(denied))

    @classmethod
    def of_files(cls, block: Mapping[str, Json]) -> "AccessBounds | None":
        """Return the bounds of files, None for no bounds."""
        given = block.get("FileSystem")
        if given is None:
            return None
        most = given.get("MaxFileSize")
        return cls(
            tuple(map(path_pattern, _texts(given, "AllowedPaths")))
            if "AllowedPaths" in given
            else None,
            tuple(map(path_pattern, _texts(given, "DeniedPaths"))),
            tuple(f".{each.lstrip('.')}".lower() for each in _texts(given, "AllowedExtensions"))
            if "AllowedExtensions" in given
            else None,
            None if most is None else parse_size(most),
        )


def host_pattern(text: str) -> str:
    """Return a pattern of hosts in lower case.

    Raises:
        ValueError: No host can match the pattern.
    """
    pattern = text.lower()
    if re.fullmatch(_HOST, pattern):
        return pattern
    if re.fullmatch(r"[0-9a-f.:]+/[0-9]+", pattern):
        raise ValueError(f"no host can fit {text!r}: write a range of addresses as '10.0.*'")
    found = re.match(_AROUND_HOST, pattern)
    host = found[1] if found else ""
    meant = f"*{host}" if host.startswith(".") else host or "evil.com"
    raise ValueError(f"no host can fit {text!r}: write it as {meant!r}, a name and nothing else")


def path_pattern(text: str) -> str:
    """Return a pattern of paths.

    Raises:
        ValueError: No path can match the pattern.
    """
    if text.lower().startswith("file:"):
        raise ValueError(f"no path can fit {text!r}: write the path alone, without 'file:'")
    if text.endswith("/"):
        meant = f"{text.rstrip('/')}/**"
        raise ValueError(f"no path can fit {text!r}: write {meant!r} for all that is in a folder")
    return text


def _texts(block: Mapping[str, Json], name: str) -> list[str]:
    value = block.get(name, [])
    if type(value) is not list or not all(type(each) is str for each in value):
        raise ValueError(f"{name} must be a list of texts, not {value!r}")
    return value


def _positive(value: Json, name: str) -> int:
    if not is_integer(value) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
    return int(value)


def _seconds(value: Json) -> float:
    try:
        return parse_duration(value)
    except ExpressionFault as fault:
        raise ValueError(fault.message) from None


def _matcher(patterns: Iterable[str], categories: Mapping[str, list[str]]) -> Matcher:
    """Return a test for the names of a tool; a category matches its members."""
    tests = [
        compile_glob(each) for pattern in patterns for each in categories.get(pattern, (pattern,))
    ]
    return lambda names: any(test(name) for test in tests for name in names)


class Mount(NamedTuple):
    """A folder mounted in a sandbox."""

    target: str
    """Its path in the sandbox."""
    source: str
    read_only: bool


def parse_processors(value: Json) -> float:
    """Return the `CPU` of a sandbox: a number above 0, or its text.

    Raises:
        ValueError: The value is no such number.
    """
    try:
        found = float(value) if type(value) is str else value
    except ValueError:
        found = 0
    if not is_number(found) or found <= 0:
        raise ValueError(f"CPU must be a number of processors, not {value!r}")
    return float(found)


def parse_image(value: Json) -> str:
    """Return the `Image` of a sandbox, a name such as `python:3.12`.

    A name cannot begin with `-`, as docker would take it for an option.

    Raises:
        ValueError: The value is no such name.
    """
    if type(value) is not str or re.fullmatch(_IMAGE, value) is None:
        raise ValueError(f"Image must be the name of an image, not {value!r}")
    return value


def parse_mounts(value: Json) -> list[Mount]:
    """Return the `Mounts` of a sandbox.

    They are an object `{TARGET: SOURCE}` or `{TARGET: {"Source", "ReadOnly"}}`, or a list of texts
    `"SOURCE:TARGET"` or `"SOURCE:TARGET:ro"`.

    Raises:
        ValueError: The value has another form.
    """
    found = []
    if type(value) is dict:
        for target, given in value.items():
            given = {"Source": given} if type(given) is str else given
            if type(given) is not dict or type(given.get("Source")) is not str:
                raise ValueError(f"Mounts.{target}: a text, or an object with 'Source'")
            found.append(Mount(target, given["Source"], given.get("ReadOnly", False) is True))
    elif type(value) is list:
        for given in value:
            parts = given.split(":") if type(given) is str else []
            if len(parts) not in (2, 3) or parts[2:] not in ([], ["ro"], ["rw"]):
                raise ValueError(f"Mounts: {given!r} is not 'SOURCE:TARGET' or 'SOURCE:TARGET:ro'")
            found.append(Mount(parts[1], parts[0], parts[2:] == ["ro"]))
    else:
        raise ValueError("Mounts are an object or a list of texts")
    for each in found:
        if not each.target.startswith("/"):
            raise ValueError(f"Mounts: {each.target!r} is no absolute path")
    return found
