"""The table of dialects: languages that are read and written as Agent State Language.

A dialect is one folder and one row of `BUILT_IN`; others come from installed packages by the entry
point group `asl.dialects`. A document that was read from one is checked, compiled and run like any
other, and every finding names the place in the file that the author wrote.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

from asl.compose.files import Files
from asl.core.diagnostics import InvalidDocument, bounded_suggestions, did_you_mean
from asl.core.dialect_parts import DialectFunction
from asl.core.document import Document, parse_source
from asl.core.errors import AslError, StateError
from asl.core.lazy import LazyTable, lazy_pattern, load_plugin, plugin_error, wrap_errors
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.dialects import is_native
from asl.dialects.base import Dialect
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "BUILT_IN",
    "NATIVE",
    "agent_definitions",
    "all_dialects",
    "check_options",
    "detect",
    "dialect",
    "find",
    "find_namespace",
    "meanings_of",
    "namespace_of",
    "origin_of",
    "read_foreign",
]

NATIVE: Final = "asl"
"""The name of the language itself, and of what it shares with Amazon's."""
BUILT_IN: Final[Mapping[str, Dialect]] = LazyTable(
    {
        NATIVE: "asl.dialects.native:DIALECT",
        "amazon": "asl.dialects.amazon:DIALECT",
        "codemie": "asl.dialects.codemie:DIALECT",
        "contenox": "asl.dialects.contenox:DIALECT",
        "flujo": "asl.dialects.flujo:DIALECT",
    }
)
"""The dialects of the package by name."""
GROUP: Final = "asl.dialects"


def dialect(name: str) -> Dialect:
    """Return the dialect with this name.

    Raises:
        AslError: There is none, or its package cannot be used.
    """
    if not isinstance(name, str):
        raise AslError(f"the name of a dialect must be text, got {type(name).__name__}")
    found = find(name)
    if found is None:
        known = [*BUILT_IN, *_entries()]
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise AslError(f"no dialect {name!r} ({hint})")
    return found


def find(name: str) -> Dialect | None:
    """Return the dialect with this name, None if there is none.

    Raises:
        AslError: The entry point of this name cannot be used.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    return _load(name) if name in _entries() else None


def find_namespace(namespace: str) -> Dialect | None:
    """Return the dialect with this namespace in documents, None if there is none."""
    if not namespace[:1].isupper():
        return None
    found = find(namespace.lower())
    return found if found is not None and namespace_of(found) == namespace else None


def namespace_of(found: Dialect) -> str:
    """Return the name of a dialect within documents."""
    return found.name.capitalize() if found.namespace is None else found.namespace


def all_dialects() -> Iterator[Dialect]:
    """Yield the dialects of the package, then those of installed packages.

    One that cannot be used is a warning.
    """
    yield from BUILT_IN.values()
    for name in _entries():
        try:
            yield _load(name)
        except AslError as fault:
            warn(f"{fault}; it is ignored", stacklevel=2)


@cache
def _entries() -> Mapping[str, "EntryPoint"]:
    """Return the entry points of installed packages, by the name of the dialect."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP) if each.name not in BUILT_IN}


@cache
def _load(name: str) -> Dialect:
    """Return the dialect of an entry point.

    Raises:
        AslError: It cannot be imported, or is no dialect of this name.
    """
    entry = _entries()[name]
    found = load_plugin(entry)
    if not isinstance(found, Dialect):
        raise plugin_error(entry, f"is no Dialect: {found!r:.100}")
    if found.name != name:
        raise plugin_error(entry, f"cannot be used: the name of its dialect is {found.name!r:.100}")
    if namespace_of(found).lower() != name:
        raise plugin_error(entry, f"cannot be used: its namespace is {found.namespace!r:.100}")
    functions = partial(_guarded_functions, found)
    return found._replace(read=found.read and _guarded_reader(found), functions=functions)


def _guarded_functions(found: Dialect) -> Mapping[str, DialectFunction]:
    """Return the functions of a dialect of a package; their exceptions become errors that name it.

    A StateError is the failure of a state.
    """
    with wrap_errors(f"the functions of the dialect {found.name!r} cannot be used"):
        return {
            name: each._replace(call=_guarded_call(f"${found.name}_{name}", each.call))
            for name, each in found.functions().items()
        }


def _guarded_call(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except StateError:
            raise
        except Exception as fault:  # foreign code
            raise AslError(
                f"the function {name} failed: {type(fault).__name__}: {fault}"
            ) from fault

    return guarded


def _guarded_reader(found: Dialect) -> Callable[..., Document]:
    """Return the reader of a dialect of a package; its exceptions become errors that name it."""

    def read(*args: Any, **options: Any) -> Document:
        assert found.read is not None
        with wrap_errors(f"the dialect {found.name!r} cannot read the document"):
            document = found.read(*args, **options)
            if not isinstance(document, Document):
                raise TypeError(f"{document!r:.100} is no Document")
            return replace(document, dialect=found.name)

    return read


def detect(what: Source | Document) -> Dialect | None:
    """Return the dialect of a text or a value by its shape, None for the language itself."""
    return _recognised(what, DEFAULT_LIMITS)[0]


def has_marks(text: bytes) -> bool:
    """Return whether a text has all marks of a dialect, and so is probably a document of it."""
    return any(
        found.marks and all(_compiled(mark).search(text) for mark in found.marks)
        for found in all_dialects()
    )


@cache
def _compiled(mark: str) -> re.Pattern[bytes]:
    return re.compile(mark.encode(), re.MULTILINE)


def _recognised(
    what: Source | Document, limits: Limits
) -> tuple[Dialect | None, Source | Document]:
    """Return the dialect of a text or a value, and that parsed where it had to be."""
    if is_native(what):
        return None, what
    if isinstance(what, Document):
        return _of_value(what.value), what
    text = what.text or ""
    if what.format != "json" and not _FLOW.match(text):
        return next((each for each in all_dialects() if each.matches_text(text)), None), what
    try:
        document = parse_source(what, limits)
    except InvalidDocument:
        return None, what
    # The reader of a dialect parses YAML itself, with the scalars of its platform.
    return _of_value(document.value), document if what.format == "json" else what


_FLOW: Final = lazy_pattern(r"(?:\s|#.*\n|---\s)*\{")
"""The start of a YAML text that is one object in braces, as JSON is."""


def _of_value(value: Any) -> Dialect | None:
    if type(value) is not dict or "States" in value:
        return None
    return next((each for each in all_dialects() if each.matches_value(value)), None)


def agent_definitions(document: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """Return the agents that a document defines in the dialect that it was read from.

    Args:
        document: Value of a document of Agent State Language, with an object as its `Metadata`.

    Returns:
        The definitions by the names of the agents.
    """
    agents: dict[str, AgentDefinition] = {}
    for namespace in document["Metadata"]:
        found = find_namespace(namespace)
        if found is not None:
            agents |= found.agents(document)
    return agents


def origin_of(document: Document) -> Dialect:
    """Return the dialect that a document was read from, also if it was written natively since."""
    metadata = document.value.get("Metadata")
    if document.dialect == NATIVE and isinstance(metadata, dict):
        found = (find_namespace(each) for each in metadata)
        return next((each for each in found if each is not None), dialect(NATIVE))
    return dialect(document.dialect)


def meanings_of(document: Document) -> Meanings:
    """Return what the functions of the dialect compute that a document was read from."""
    return dialect(document.dialect).meanings()


def read_foreign(
    name: str | None,
    reading: Mapping[str, Any],
    files: Callable[[], Files],
    what: Source | Document,
    limits: Limits,
) -> Document | None:
    """Read a document in another language.

    Args:
        name: The dialect; None to find it out by the shape of the document.
        reading: Options of the dialect's reader.
        files: Makes what finds further files.
        what: The text or the value.
        limits: Limits on reading.

    Returns:
        The document in Agent State Language, None for one that is in it already.
    """
    if name is None:
        found, what = _recognised(what, limits)
    else:
        found = dialect(name)
    if found is None:
        found = BUILT_IN[NATIVE]
    check_options(found, "read", reading, found.read_options)
    if found.read is None:
        return None
    given = {"files": files()} if found.reads_imports else {}
    with bounded_suggestions():
        return found.read(what, limits, **given, **reading)


def check_options(
    found: Dialect, done: str, given: Mapping[str, Any], known: frozenset[str]
) -> None:
    """Raise AslError for an option that a dialect is not read or written with."""
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known) or f"there is {', '.join(sorted(known)) or 'none'}"
            raise AslError(f"no option {option!r} for a document {done} as {found.name} ({hint})")
