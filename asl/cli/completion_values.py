"""What shells complete: files, states, executions, codes, errors, languages and agents."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from asl.cli.arguments import DEFAULT_ORIGIN, read_document
from asl.cli.project import find_project
from asl.cli.stores import find_execution, open_store
from asl.core.codes import all_codes, all_error_names
from asl.core.errors import AslError
from asl.core.profile import DEFAULT
from asl.core.values import Json
from asl.states.base import Node

if TYPE_CHECKING:
    from asl.executions import Store

__all__ = ["VALUES", "ValueType"]

Values: TypeAlias = Iterator[tuple[str, str]]
"""Values with a text for people, which may be empty."""
Parameters: TypeAlias = Mapping[str, Any]
"""The values of parameters by their names."""
MAX_EXECUTIONS: Final = 200
"""Only the newest executions of a store are completed."""


class ValueType(click.types.StringParamType):
    """The type of a parameter whose values can be listed.

    Args:
        find: Returns the values, or the type of file that the shell completes itself.
        known: The values of the parameters before the cursor.
    """

    def __init__(self, find: "Finder", known: Parameters) -> None:
        self.find = find
        self.known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Return the values that begin as the word at the cursor; none if they cannot be read."""
        if isinstance(self.find, str):
            return [CompletionItem(incomplete, type=self.find)]
        try:
            found = [*self.find(self.known)]
        except AslError:
            return []  # the command itself reports it
        return [
            CompletionItem(value, help=text or None)
            for value, text in found
            if value.startswith(incomplete) and value.isprintable()
        ]


Finder: TypeAlias = str | Callable[[Parameters], Values]


def _codes(known: Parameters) -> Values:
    for code in all_codes():
        yield code.id, code.title
    yield from _error_names(known)


def _error_names(known: Parameters) -> Values:
    for each in all_error_names():
        yield each.name, each.title


def _dialects(known: Parameters) -> Values:
    from asl.dialects.registry import all_dialects

    for each in all_dialects():
        yield each.name, each.title


def _store(known: Parameters) -> "Store":
    return open_store(known.get("store_file") or find_project().store)


def _executions(known: Parameters) -> Values:
    with _store(known) as store:
        for each in store.executions(limit=MAX_EXECUTIONS):
            yield each.name, each.status


def _written_states(known: Parameters) -> Iterator[Node]:
    document = read_document(str(known.get("document")), DEFAULT_ORIGIN)
    return _nodes(document.composed_value)


def _nodes(document: Json) -> Iterator[Node]:
    from asl.checks.workflow import split_machines

    for scope in split_machines(document, DEFAULT).scopes:
        yield from scope.nodes


def _states(known: Parameters) -> Values:
    for node in _written_states(known):
        yield node.name, str(node.value.get("Type", ""))


def _agents(known: Parameters) -> Values:
    for node in _written_states(known):
        agent = node.value.get("Agent")
        if isinstance(agent, str):
            yield f"{agent}=", node.name


def _stored_states(known: Parameters) -> Values:
    with _store(known) as store:
        stored = find_execution(store, str(known.get("execution")))
        document = store.session.values.document(stored.document)
    for node in _nodes(document):
        yield node.name, str(node.value.get("Type", ""))


VALUES: Final[dict[str, Finder]] = {
    "-s": _states,
    "--agent": _agents,
    "--at": _stored_states,
    "--dialect": _dialects,
    "--error": _error_names,
    "--after": _executions,
    **dict.fromkeys(("EXECUTION", "EXECUTION...", "[EXECUTION]", "[EXECUTION...]"), _executions),
    "[CODE]...": _codes,
    "DIALECT": _dialects,
    **dict.fromkeys(("DOC", "DOC...", "[DOC...]", "BEFORE", "AFTER", "[PATH]..."), "file"),
    **dict.fromkeys(("FILE", "FILE#CASE", "FILE|FOLDER/"), "file"),
    **dict.fromkeys(("FOLDER", "[FOLDER]"), "dir"),
}
"""The values by the option, or by the placeholder of an option or argument in the help."""
