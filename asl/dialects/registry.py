"""The table of dialects: languages that are read and written as Agent State Language.

A dialect is one module and one row of `BUILT_IN`; others come from outside by the entry point
`asl.dialects`, whose value is a `Dialect`. What is read from one is checked, compiled and run like
any document, and every finding names the place in the file that the author wrote.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from warnings import warn

from asl.compose.files import Files
from asl.core.diagnostics import InvalidDocument, bounded_suggestions, did_you_mean
from asl.core.document import Document, parse_source
from asl.core.errors import AslError
from asl.core.lazy import LazyTable, load_plugin, plugin_error, wrap_errors
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.dialects import is_native
from asl.dialects.base import Dialect
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition

__all__ = [
    "BUILT_IN",
    "NATIVE",
    "agent_definitions",
    "check_options",
    "detect",
    "dialect",
    "meanings_of",
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
    """Return the dialect of this name; raises AslError if there is none."""
    if not isinstance(name, str):
        raise AslError(f"a dialect is called by its name, not by {type(name).__name__}")
    if name in BUILT_IN:
        return BUILT_IN[name]
    known = [*BUILT_IN]
    for other in _outside(name):
        if other.name == name:
            return other
        known.append(other.name)
    hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
    raise AslError(f"no dialect {name!r} ({hint})")


def _outside(name: str) -> Iterator[Dialect]:
    """Yield the dialects of installed packages.

    What cannot be used is an error where the entry point has the *name*, a warning elsewhere.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            found = load_plugin(entry)
            if not isinstance(found, Dialect):
                raise plugin_error(entry, f"is no Dialect: {found!r:.100}")
            if found.name in BUILT_IN or type(found.name) is not str:
                raise plugin_error(entry, f"cannot be used: its name is {found.name!r:.100}")
        except AslError as fault:
            if entry.name == name:
                raise
            warn(f"{fault}; it is ignored", stacklevel=2)
        else:
            yield found if found.read is None else found._replace(read=_guarded(found))


def _guarded(found: Dialect) -> Callable[..., Document]:
    """Return the reader of a dialect of a package, with errors that name it for its faults."""

    def read(*args: Any, **options: Any) -> Document:
        assert found.read is not None
        with wrap_errors(f"the dialect {found.name!r} cannot read the document"):
            document = found.read(*args, **options)
            if not isinstance(document, Document):
                raise TypeError(f"{document!r:.100} is no Document")
            return document

    return read


def detect(what: Source | Document) -> Dialect | None:
    """Return the dialect of a text or a value by its shape, None for the language itself."""
    return _recognised(what, DEFAULT_LIMITS)[0]


def _recognised(
    what: Source | Document, limits: Limits
) -> tuple[Dialect | None, Source | Document]:
    """Return the dialect of a text or a value, and that parsed where it had to be."""
    if is_native(what):
        return None, what
    if isinstance(what, Document):
        return _of_value(what.value), what
    if what.format != "json":
        text = what.text or ""
        return next((each for each in _every() if each.of_text(text)), None), what
    try:
        document = parse_source(what, limits)
    except InvalidDocument:
        return None, what
    return _of_value(document.value), document


def _of_value(value: Any) -> Dialect | None:
    if type(value) is not dict or "States" in value:
        return None
    return next((each for each in _every() if each.of_value(value)), None)


def _every() -> Iterator[Dialect]:
    yield from BUILT_IN.values()


def agent_definitions(document: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """Return the agents that a document defines in the language that it was read from.

    Args:
        document: Value of a document of Agent State Language.

    Returns:
        The definitions by the names of the agents.
    """
    found: dict[str, AgentDefinition] = {}
    for each in _every():
        found |= each.agents(document)
    return found


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
    if found is None or found.read is None:
        return None
    check_options(found, "read", reading, found.reading)
    given = {"files": files()} if found.importing else {}
    with bounded_suggestions():
        return found.read(what, limits, **given, **reading)


def check_options(
    found: Dialect, done: str, given: Mapping[str, Any], known: frozenset[str]
) -> None:
    """Raise AslError for an option that a dialect is not read or written with."""
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known) or f"there is {', '.join(sorted(known)) or 'none'}"
            raise AslError(f"no option {option!r} for what is {done} as {found.name} ({hint})")
