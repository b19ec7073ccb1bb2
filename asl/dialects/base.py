"""Dialects: their descriptor, the results of their writers, and conversions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asl.core.codes import lookup
from asl.core.diagnostics import Finding, Report, Severity
from asl.core.dialect_parts import DialectFunction
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition, NoDefinitions
from asl.program import EntryEvents

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


def _no_losses(document: Document) -> Iterable[Finding]:
    return ()


def _sample_texts(document: Document) -> Iterable[tuple[Json, Json]]:
    return ("text", "text"), ({}, {})


def _no_agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    return NoDefinitions


def _states(document: Mapping[str, Json]) -> Iterable[tuple[str, Json]]:
    states = document.get("States")
    return states.items() if isinstance(states, dict) else ()


def _no_coverage() -> Coverage | None:
    return None


def _no_description(part: Mapping[str, Json], source: Json) -> str | None:
    return None


def _no_functions() -> Mapping[str, DialectFunction]:
    return {}


def _no_events(metadata: Json) -> EntryEvents | None:
    return None


def _no_schema() -> Mapping[str, Json] | None:
    return None


def _own_value(document: Document, with_definitions: bool) -> Json:
    return document.composed_value


def _no_meanings() -> Meanings:
    return {}


class Dialect(NamedTuple):
    """A workflow language that documents are read from and written to.

    The dialects of the package are rows of `asl.dialects.registry`; an installed package offers one
    under the entry point group `asl.dialects`, by the name of the dialect. Functions that need
    further modules import them when they are called, so a dialect that is not used costs nothing.

    Attributes:
        name: Name of the dialect in options and results, and the prefix of its functions: lower
            case.
        title: Name for people.
        matches_text: Whether a YAML text is of the dialect, by its shape.
        matches_value: Whether a parsed object is of the dialect, by its shape.
        read: Reader, `read(source_or_document, limits, **options)`: returns a document of Agent
            State Language with its findings, or raises InvalidDocument. None for a language that
            needs no conversion.
        write: Writer, `write(document, **options)`.
        source_losses: Losses of writing a document that was read from the dialect in another one.
        read_options: Names of the options of the reader.
        write_options: Names of the options of the writer.
        reads_imports: Whether documents import others: the reader takes `files`
            (`asl.compose.files`).
        sample_data: Pairs of an input and an answer to try a document with, if neither is known.
        describe_part: Description of a choice rule or a state in terms of the dialect, from the
            part and its source (null if there is none). None if the part needs no description.
        named_states: Names and values of the states, or what corresponds to them, of the value of a
            document of the dialect, in order. By default the members of `States`.
        takes_prompts: Whether documents define their agents: the writer takes `prompts`, the system
            prompts of agents by their names, and reports what is unknown.
        takes_agents: Whether the writer also takes `agents`, the definitions of agents by their
            names.
        coverage: Fields that the writer supports. Without a declaration every conversion fails.
        agents: Agents that the value of a document read from the dialect defines, by their names.
        namespace: Name of the dialect within documents: the member of `Metadata` with the data of
            its reader, and the namespace of its intrinsic functions. In lower case it is the name;
            None for the name with a capital letter.
        functions: Functions that its documents use. The function `join` of the dialect `steps` is
            `$steps_join` in JSONata and `Steps.Join` in JSONPath.
        history_events: Function from the dialect's member of `Metadata` to a function that yields
            further history events of an entered state. None for a document without such events.
        codes: Path of a TOML file with its finding codes, in the form of `asl/core/codes.toml`.
        error_names: Path of a TOML file with the names of its errors, in the form of
            `asl/core/failures.toml`.
        json_schema: JSON Schema of its documents, for editors.
        file_ending: Ending of the names of its files.
        meanings: What the functions of the dialect compute, for the writers of other languages.
        portable_value: Value of a document of the dialect for the writers of other languages, with
            the names that actors have elsewhere. Its second argument is whether the other language
            defines agents, with their prompts.
        marks: Regular expressions that every document of a repository contains and hardly another
            file: `asl check FOLDER` finds documents by them. None are found without any.
        meaning_losses: What the meanings leave out: losses of writing a document of the dialect in
            any other language but that of states itself.
    """

    name: str
    title: str
    matches_text: Callable[[str], bool]
    matches_value: Callable[[Mapping[str, Any]], bool]
    read: Callable[..., Document] | None
    write: Callable[..., WriterResult]
    source_losses: Callable[[Document], Iterable[Finding]] = _no_losses
    read_options: frozenset[str] = frozenset()
    write_options: frozenset[str] = frozenset()
    reads_imports: bool = False
    sample_data: Callable[[Document], Iterable[tuple[Json, Json]]] = _sample_texts
    describe_part: Callable[[Mapping[str, Json], Json], str | None] = _no_description
    takes_prompts: bool = False
    coverage: Callable[[], Coverage | None] = _no_coverage
    agents: Callable[[Mapping[str, Any]], Mapping[str, AgentDefinition]] = _no_agents
    namespace: str | None = None
    functions: Callable[[], Mapping[str, DialectFunction]] = _no_functions
    history_events: Callable[[Json], EntryEvents | None] = _no_events
    codes: str | None = None
    error_names: str | None = None
    json_schema: Callable[[], Mapping[str, Json] | None] = _no_schema
    file_ending: str = ".yaml"
    meanings: Callable[[], Meanings] = _no_meanings
    portable_value: Callable[[Document, bool], Json] = _own_value
    takes_agents: bool = False
    meaning_losses: Callable[[Document], Iterable[Finding]] = _no_losses
    named_states: Callable[[Mapping[str, Json]], Iterable[tuple[str, Json]]] = _states
    marks: tuple[str, ...] = ()


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
        """Whether nothing is approximated either, and no information is about another behaviour."""
        return all(
            each.severity is Severity.INFO and not lookup(each.code).changes for each in self.losses
        )


_MARKS = frozenset("[]{}\"'")


def parse_names(option: str, given: object) -> tuple[str, ...]:
    """Return the names that an option lists: a list, or a text that has them parted by commas.

    Raises AslError for anything else.
    """
    written = isinstance(given, str)
    names = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        raise AslError(f"{option} must list names, got {given!r} (write {option}=one,other)")
    for each in names:
        if not isinstance(each, str) or not each or (written and _MARKS.intersection(each)):
            raise AslError(f"{option}: {each!r} is not a name (write {option}=one,other)")
    return tuple(names)
