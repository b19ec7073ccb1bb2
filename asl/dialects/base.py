"""Protocol of dialects: the row of a dialect, the results of its writer, and conversions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asl.core.diagnostics import Finding, Report, Severity
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json
from asl.dialects.jsonpath_form import JsonPathForm
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["Conversion", "Coverage", "Dialect", "WriterResult", "parse_names"]


@dataclass(frozen=True, slots=True)
class WriterResult:
    """A document as a writer returns it, in another dialect.

    Attributes:
        value: Value of the document.
        text: Text of the document.
        losses: Losses; their pointers lead into the document that the writer got.
        files: Texts of further files that the document imports, by their paths from its folder.
        given: Loss about the input of a run, if it differs from the data of a run.
        restored: Whether it is the text that the document was read from: then nothing is lost.
    """

    value: Json
    text: str
    losses: tuple[Finding, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    given: Finding | None = None
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """The fields that a writer deals with: it writes them in some form, or reports them itself.

    Every other field of a document is a loss (`asl.dialects.coverage`). Fields without effect on a
    run, such as `Comment`, need no declaration.

    Attributes:
        states: The fields by state type. A type that is not there is unknown to the writer.
        document: The fields of the document.
        replaced: State types that are lost as a whole, which the writer reports at the state.
        complete: Whether the writer copies every field of every type unchanged.
        lacks: The fields of objects within states that the writer neither writes nor reports, by
            the schema of the object: `Retrier`, `Catcher`, `ChoiceRule` or `SubMachine`.
    """

    states: Mapping[str, frozenset[str]] = field(default_factory=dict)
    document: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    complete: bool = False
    lacks: Mapping[str, frozenset[str]] = field(default_factory=dict)


def _nothing(document: Document) -> Iterable[Finding]:
    return ()


def _texts(document: Document) -> Iterable[tuple[Json, Json]]:
    return ("text", "text"), ({}, {})


def _no_agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    return NoDefinitions


def _undeclared() -> Coverage | None:
    return None


def _no_words(part: Mapping[str, Json], written: Json) -> str | None:
    return None


def _no_meanings() -> Meanings:
    return {}


class Dialect(NamedTuple):
    """A language that documents are read from and written to: a row of `asl.dialects.registry`.

    Attributes:
        name: Name of the dialect in options and results.
        title: Name for people.
        of_text: Whether a YAML text is of the dialect, by its shape.
        of_value: Whether a parsed document is of the dialect, by its shape.
        read: Reader, `read(source_or_document, limits, **options)`: returns a document of Agent
            State Language with its findings, or raises InvalidDocument. None for a language that
            needs no conversion.
        write: Writer, `write(document, **options)`.
        lost: Losses of a document that was read from the dialect.
        reading: Names of the options of the reader.
        writing: Names of the options of the writer.
        plain: Function that returns the machine of a document in plain JSONPath, for the writers of
            other languages, and its losses. None if writers can use the document itself.
        importing: Whether the reader takes `files` (`asl.compose.files`) for imported documents.
        unsaid: Function that yields pairs of an input and an answer to try a document with, if
            neither is known.
        words: Description of a choice rule or a state in terms of the language, from the part and
            its source (null if there is none). None if the part needs no description.
        defining: Whether documents define their agents: the writer takes `prompts`, the system
            prompts of agents by their names, and reports what is unknown.
        coverage: Fields that the writer supports. Without a declaration every conversion fails.
        agents: Agents that the value of a document defines, by their names; empty for a document
            that was not read from the dialect.
        meanings: What the functions of the dialect compute, for the writers of other languages.
    """

    name: str
    title: str
    of_text: Callable[[str], bool]
    of_value: Callable[[Mapping[str, Any]], bool]
    read: Callable[..., Document] | None
    write: Callable[..., WriterResult]
    lost: Callable[[Document], Iterable[Finding]] = _nothing
    reading: frozenset[str] = frozenset()
    writing: frozenset[str] = frozenset()
    plain: Callable[[Document], tuple[dict[str, Json], JsonPathForm]] | None = None
    importing: bool = False
    unsaid: Callable[[Document], Iterable[tuple[Json, Json]]] = _texts
    words: Callable[[Mapping[str, Json], Json], str | None] = _no_words
    defining: bool = False
    coverage: Callable[[], Coverage | None] = _undeclared
    agents: Callable[[Mapping[str, Any]], Mapping[str, AgentDefinition]] = _no_agents
    meanings: Callable[[], Meanings] = _no_meanings


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted document, and what was lost.

    `document` is its value, `text` its text. `losses` are diagnostics: a code, a severity (`error`
    where behaviour is lost, `warning` where it is approximated), the place in the document that was
    given, a sentence, and as the hint what was done instead. `files` are the texts of further files
    that it imports, by their paths from its own folder.
    """

    text: str
    document: Json
    losses: Report
    dialect: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether no behaviour is lost."""
        return self.losses.ok

    @property
    def faithful(self) -> bool:
        """Whether nothing is lost or approximated either."""
        return len(self.losses.of(Severity.INFO)) == len(self.losses)


_MARKS = frozenset("[]{}\"'")


def parse_names(option: str, given: object) -> tuple[str, ...]:
    """Return the names that an option lists: a list, or a text that has them parted by commas.

    Raises AslError for anything else.
    """
    written = isinstance(given, str)
    names = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        raise AslError(f"{option} lists names, which {given!r} does not (write {option}=one,other)")
    for each in names:
        if not isinstance(each, str) or not each or (written and _MARKS.intersection(each)):
            raise AslError(f"{option}: {each!r} is no name (write {option}=one,other)")
    return tuple(names)
