"""Documents that are open in an editor."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from lsprotocol.types import TextDocumentContentChangeEvent, TextDocumentContentChangePartial

from asl.checks.workflow import CheckedWorkflow, MachineScope, split_machines
from asl.core.pointers import pointer_to
from asl.core.profile import DEFAULT
from asl.core.values import Json
from asl.editor.json_syntax import parse_json, parse_json_before
from asl.editor.positions import TextIndex
from asl.editor.syntax import Step, SyntaxPart, SyntaxTree
from asl.editor.yaml_syntax import CURSOR, parse_yaml, parse_yaml_before
from asl.states.base import Node

__all__ = ["Cursor", "Definition", "EditedDocument", "TextVersion", "is_yaml_name"]

_ROOT_FIELDS: Final = frozenset(("StartAt", "States"))


class Cursor(NamedTuple):
    """A place in a text, found from the text before it alone.

    `steps` lead to the member at the place. `at_key` says that a key is typed there, `typed` is the
    part of the key or value before the place, and `start` its first character.
    """

    steps: tuple[Step, ...]
    at_key: bool
    typed: str
    start: int


class Definition(NamedTuple):
    """A workflow within a document: the document itself, or a part of a template."""

    steps: tuple[Step, ...]
    root: SyntaxPart
    value: Json

    @property
    def workflow(self) -> CheckedWorkflow:
        """The workflow, split into its machines and states."""
        return split_machines(self.value, DEFAULT)


class TextVersion:
    """One version of a text, with what is known of it; parsed on first use."""

    def __init__(self, text: str, is_yaml: bool) -> None:
        self.text = text
        self.is_yaml = is_yaml
        self.index = TextIndex(text)

    @cached_property
    def tree(self) -> SyntaxTree:
        """The parts of the text."""
        return _parse(self.text, self.is_yaml)

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The workflows in the text."""
        return tuple(_definitions(self.tree.root, ()))

    @cached_property
    def workflows(self) -> tuple[tuple[Definition, CheckedWorkflow], ...]:
        """The workflows in the text with their machines."""
        return tuple((each, each.workflow) for each in self.definitions)

    def definition_at(self, steps: Sequence[Step]) -> Definition:
        """Return the workflow that holds a place; the whole text if none does."""
        for each in self.definitions:
            if tuple(steps[: len(each.steps)]) == each.steps:
                return each
        return Definition((), self.tree.root, self.value)

    @cached_property
    def value(self) -> Json:
        """The value of the whole text."""
        return self.tree.root.to_json()

    def scope_at(
        self, steps: Sequence[Step]
    ) -> tuple[Definition, MachineScope, Node | None] | None:
        """Return the workflow, innermost machine and state that hold a place."""
        for definition, workflow in self.workflows:
            if tuple(steps[: len(definition.steps)]) != definition.steps:
                continue
            place = pointer_to(map(str, steps[len(definition.steps) :])) + "/"
            for scope in reversed(workflow.scopes):
                if place.startswith(f"{scope.pointer}/"):
                    nodes = (n for n in scope.nodes if place.startswith(f"{n.pointer}/"))
                    return definition, scope, next(nodes, None)
        return None

    def cursor(self, offset: int) -> Cursor:
        """Return what is typed at an offset."""
        parse = parse_yaml_before if self.is_yaml else parse_json_before
        return _cursor(parse(self.tree.root, self.text, offset, CURSOR), offset)

    def steps_at(self, offset: int) -> tuple[tuple[Step, ...], bool, SyntaxPart]:
        """Return the steps to the innermost part at an offset, whether it is a key, and the part.

        Args:
            offset: Characters from 0.
        """
        part = self.tree.root
        steps: list[Step] = []
        while True:
            part = part.embedded or part
            for step, member in part.steps():
                key, value = member
                if key is not None and key.start <= offset <= key.end:
                    return (*steps, step), True, key
                if value.start <= offset <= value.end and value.kind != "missing":
                    steps.append(step)
                    part = value
                    break
            else:
                return tuple(steps), False, part


class EditedDocument:
    """A document that is open in an editor.

    Args:
        uri: Its URI.
        path: Its path; None for a document that is no file.
        text: Its text.
        version: The version of the text that the editor gave it.
    """

    def __init__(self, uri: str, path: str | None, text: str, version: int) -> None:
        self.uri = uri
        self.path = path
        self.version = version
        self.kind = "asl"
        """Its language as far as checks have found it out: `asl`, `agents` or a dialect."""
        self._is_yaml = is_yaml_name(path or uri)
        self.current = TextVersion(text, self._is_yaml or not text.lstrip().startswith(("{", "[")))
        self.complete = self.current
        """The last version that was complete; the first one if none was."""

    def change(
        self,
        changes: Sequence[TextDocumentContentChangeEvent],
        version: int,
    ) -> None:
        """Apply changes of the editor."""
        text, index = self.current.text, self.current.index
        for change in changes:
            if isinstance(change, TextDocumentContentChangePartial):
                start = index.offset(change.range.start)
                end = max(start, index.offset(change.range.end))
                text = text[:start] + change.text + text[end:]
            else:
                text = change.text
            if len(changes) > 1:
                index = TextIndex(text)
        if "tree" in vars(self.current) and self.current.tree.is_complete:
            self.complete = self.current
        self.current = TextVersion(text, self.current.is_yaml)
        self.version = version

    @property
    def format(self) -> str:
        """The format of the text: `json` or `yaml`."""
        return "yaml" if self.current.is_yaml else "json"


def is_yaml_name(name: str) -> bool:
    """Return whether a file has an ending of YAML."""
    return name.lower().endswith((".yaml", ".yml"))


def _parse(text: str, is_yaml: bool) -> SyntaxTree:
    return parse_yaml(text) if is_yaml else parse_json(text)


def _cursor(root: SyntaxPart, offset: int) -> Cursor:
    """Return what is typed at the end of a text, which has the root."""
    steps: list[Step] = []
    part, at_key = root, False
    while True:
        part = part.embedded or part
        if not part.members:
            break
        member = part.members[-1]
        if part.kind == "array":
            steps.append(len(part.members) - 1)
        else:
            steps.append(str(member.key.value) if member.key is not None else "")
        part = member.value
        if member.key is not None and CURSOR in str(member.key.value):
            part, at_key = member.key, True
            break
    typed = str(part.value) if part.kind == "string" else ""
    if at_key and steps:
        steps[-1] = typed.partition(CURSOR)[0]
    start = part.start if part.kind == "string" else offset
    return Cursor(tuple(steps), at_key, typed.partition(CURSOR)[0], start)


def _definitions(part: SyntaxPart, steps: tuple[Step, ...]) -> Iterator[Definition]:
    """Yield the outermost parts with the fields of a workflow."""
    held = part.embedded or part
    if held.kind == "object" and any(step in _ROOT_FIELDS for step, _ in held.steps()):
        yield Definition(steps, held, held.to_json())
        return
    for step, member in held.steps():
        if member.value.kind != "missing":
            yield from _definitions(member.value, (*steps, step))
