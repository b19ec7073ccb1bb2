"""Layer 6: workflows in other languages, read as documents of Agent State Language.

A dialect is one module and one row of `BUILT_IN`; others come from outside by the entry point
`asl.dialects`, whose value is a `Dialect`. What is read from one is checked, compiled and run like
any document, and every finding names the place in the file that the author wrote.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Final
from warnings import warn

from asl.compose import load as load_document
from asl.compose import load_each as load_documents
from asl.compose.files import DiskFiles, Files, MappedFiles
from asl.core.codes import lookup
from asl.core.diagnostics import (
    Finding,
    InvalidDocument,
    Report,
    bounded_suggestions,
    did_you_mean,
    place,
)
from asl.core.document import Document, Loadable, parse_source, path_of
from asl.core.errors import AslError
from asl.core.plugins import blaming, load_plugin, plugin_error
from asl.core.pointers import resolve_pointer
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.base import Conversion, Coverage, Dialect
from asl.dialects.coverage import write
from asl.dialects.logic import simplify
from asl.dialects.plain import Plain
from asl.dialects.unfilled import unfilled
from asl.sources import Foreign

__all__ = [
    "BUILT_IN",
    "NATIVE",
    "Conversion",
    "Coverage",
    "Dialect",
    "converted",
    "detect",
    "dialect",
    "load",
    "load_each",
    "said_plainly",
    "worded",
]

NATIVE: Final = "asl"
"""The name of the language itself, and of what it shares with Amazon's."""
BUILT_IN: Final[Mapping[str, str]] = {
    NATIVE: "asl.dialects.native",
    "amazon": "asl.dialects.amazon",
    "codemie": "asl.dialects.rows.codemie",
    "contenox": "asl.dialects.rows.contenox",
    "flujo": "asl.dialects.rows.flujo",
}
"""The module of each dialect by its name; it has a `DIALECT`."""
GROUP: Final = "asl.dialects"


def dialect(name: str) -> Dialect:
    """Return the dialect of this name; raises AslError if there is none."""
    if not isinstance(name, str):
        raise AslError(f"a dialect is called by its name, not by {type(name).__name__}")
    if name in BUILT_IN:
        return _built_in(name)
    known = [*BUILT_IN]
    for other in _outside(name):
        if other.name == name:
            return other
        known.append(other.name)
    hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
    raise AslError(f"no dialect {name!r} ({hint})")


def _built_in(name: str) -> Dialect:
    found: Dialect = import_module(BUILT_IN[name]).DIALECT
    return found


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
        with blaming(f"the dialect {found.name!r} cannot read the document"):
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
    if isinstance(what, Document):
        return _of_value(what.value), what
    text = what.text
    if text is None or (what.format == "json" and '"States"' in text):
        return None, what
    if what.format != "json":
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
    yield from map(_built_in, BUILT_IN)


def load(
    what: Loadable,
    *,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> Document:
    """Read a document in any dialect, found out by its shape where it is not named.

    `reading` are options of the dialect's reader; raises AslError for one that it does not have.
    Everything else is as in `asl.compose.load`.
    """
    return load_document(what, foreign=_reader(what, dialect, reading, options), **options)


def load_each(
    what: Loadable,
    *,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Document | InvalidDocument]:
    """Read a document in any dialect, or all that a template holds: each, or why it cannot be."""
    return load_documents(what, foreign=_reader(what, dialect, reading, options), **options)


def _reader(
    what: Loadable, name: str | None, reading: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> Foreign:
    """Return what reads the text of *what*; *options* say where further files lie."""
    files = partial(_files, what, options.get("root"), options.get("files"))
    return partial(_foreign, name, reading or {}, files)


def _files(what: Loadable, root: Any, files: Mapping[str, Loadable] | None) -> Files:
    return DiskFiles(path_of(what), root) if files is None else MappedFiles(files)


def _foreign(
    name: str | None,
    reading: Mapping[str, Any],
    files: Callable[[], Files],
    what: Source | Document,
    limits: Limits,
) -> Document | None:
    """Read what is of another language; None for what is not."""
    if name is None:
        found, what = _recognised(what, limits)
    else:
        found = dialect(name)
    if found is None or found.read is None:
        return None
    _known(found, "read", reading, found.reading)
    given = {"files": files()} if found.importing else {}
    with bounded_suggestions():
        return found.read(what, limits, **given, **reading)


def _known(found: Dialect, done: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise AslError for an option that a dialect is not read or written with."""
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known) or f"there is {', '.join(sorted(known)) or 'none'}"
            raise AslError(f"no option {option!r} for what is {done} as {found.name} ({hint})")


def said_plainly(document: Document) -> Json:
    """Return the machine of a document in plain JSONPath, as the writers of other languages get it.

    That of a native document, and of one with errors, is as it stands.
    """
    from asl.checks import check

    plain = dialect(document.dialect).plain
    if plain is None or not _convertible(document, check(document)):
        return document.whole
    machine, _ = plain(document)
    return machine


def worded(document: Document) -> Callable[[Mapping[str, Json], str], str | None]:
    """Return what tells a state or a choice rule, by its JSON Pointer, in its language's words."""
    words = dialect(document.dialect).words
    origins = document.composition.origins if document.composition is not None else {}

    def said(part: Mapping[str, Json], pointer: str) -> str | None:
        source, at = origins.get(pointer, (None, ""))
        return words(part, None if source is None else resolve_pointer(source.value, at))

    return said


def _convertible(document: Document, report: Report) -> bool:
    """Whether nothing is wrong with a document but that something is not there that it names."""
    return all(
        each.code in ELSEWHERE
        and (each.code != "V-ST-03" or type(resolve_pointer(document.whole, each.pointer)) is str)
        for each in report.errors
    )


ELSEWHERE: Final = frozenset(("V-ST-03", "V-TOP-11", "V-IMP-01"))
"""The errors that a document may have and be converted: a state or a file is not there."""


def converted(document: Document, to: str, writing: Mapping[str, Any] | None = None) -> Conversion:
    """Return a document in another dialect, with what is lost on the way.

    `writing` are options of the dialect's writer. Raises AslError if there is no such dialect, and
    for an option that it does not have; InvalidDocument for a document with
    other errors than that something is not there.
    """
    from asl.checks import check

    target = dialect(to)
    _known(target, "written", writing or {}, target.writing)
    report = check(document)
    if not _convertible(document, report):
        raise InvalidDocument(report)
    if document.whole.get("Module") is True and to not in (NATIVE, document.dialect):
        raise AslError("a module has no machine of its own: convert a document that includes it")
    if document.whole.get("Parameters") and to not in (NATIVE, document.dialect):
        _filled(document)
    lost = [] if document.dialect in (NATIVE, to) else [*dialect(document.dialect).lost(document)]
    said = document
    made = Plain()
    plain = dialect(document.dialect).plain if to not in (NATIVE, document.dialect) else None
    if plain is not None:
        machine, made = plain(document)
        simplify(machine)
        said = replace(document, value=machine, dialect=NATIVE)
    prompts = {"prompts": made.prompts} if target.defining else {}
    written = write(target, said, **(writing or {}), **prompts)
    given = (made.placed(written.given),) if written.given else tuple(filter(None, (made.given,)))
    if to != NATIVE:  # nothing is kept there
        listed = (each for each in lost if each.code != "L-ACTOR" or not target.defining)
        lost = [each._replace(hint=None) for each in listed]
    once = {each.code for each in made.losses} & {"L-MISSING"}
    others = (made.placed(each) for each in written.losses if each.code not in once)
    losses = map(_advised, (*lost, *given, *made.losses, *others))
    report = place(document, losses)
    # What stands for several states of the document is told once.
    report = replace(report, diagnostics=tuple(dict.fromkeys(report)), document=document)
    return Conversion(written.text, written.value, report, to, written.files)


def _filled(document: Document) -> None:
    """Raise AslError if what stands in a template is known only with its parameters."""
    for pointer in unfilled(document.whole):
        message = (
            f"a parameter stands at {pointer}: give it a value before the template is converted"
        )
        raise AslError(message)


def _advised(loss: Finding) -> Finding:
    """Return a loss with what to do about it."""
    return loss if loss.hint else loss._replace(hint=lookup(loss.code).hint)
