"""What a dialect is: one module (or folder) and one row of the table (`asl.dialects.registry`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asl.core.diagnostics import Finding, Report, Severity
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json
from asl.dialects.jsonpath_form import JsonPathForm
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["Conversion", "Coverage", "Dialect", "WriterResult", "parse_names"]


@dataclass(frozen=True, slots=True)
class WriterResult:
    """A document in another dialect: its value, its text, and what was lost on the way to it.

    The losses point into the document that was written. `files` are the texts of further files that
    it imports, by their paths from its own folder. `given` tells how it is given its input, where
    that is not the data of a run, and stands for what is told of that on the way.
    """

    value: Json
    text: str
    losses: tuple[Finding, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    given: Finding | None = None
    restored: bool = False
    """Whether it is the text that the document was once read from: then nothing is lost."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The fields that a writer deals with: it writes them in some form, or reports them itself.

    Every other field of a document is a loss (`asl.dialects.coverage`). Fields without effect on a
    run, such as `Comment`, need no declaration.

    Attributes:
        states: The fields by state type. A type that is not there is unknown to the writer.
        document: The fields of the document.
        replaced: State types that are lost as a whole, which the writer reports at the state.
        complete: Whether the writer keeps every field of every type as it stands.
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


class Dialect(NamedTuple):
    """One row of the table.

    `of_text` and `of_value` say by its shape whether a text in YAML, or a value, is of the dialect.
    `read(source or document, limits, **options)` makes a document of Agent State Language of
    either, whose findings are what there is to say about it; it raises InvalidDocument. It is None
    for what is read without a detour. `lost` says
    what such a document cannot say of the one that was read, and
    `write(document, **options)` is the way back. `plain(document)` returns its machine for the
    writers of further languages, and what that loses; None where any writer can do with it.
    `reading` and `writing` are the names of the options that both take. What is `importing` reads
    further files: its `read` takes `files`, as `asl.compose.files` has them. `unsaid(document)`
    are the input and an answer of its agents, to be tried where nothing is known of either.
    `words(part, written)` says in the words of the language when a choice rule is taken, or what a
    state does; *written* is what either was read from, null where nothing is. None leaves the part
    to speak for itself. What is `defining` says what its agents are made of: its `write` takes
    `prompts`, the system prompts of agents by their names, and tells of what is not known.
    `coverage()` declares what its `write` carries; without it every conversion is an error.
    `agents(value)` returns the agents that the value of a document defines, by their names in it;
    none for a document that was not read from this language.
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
