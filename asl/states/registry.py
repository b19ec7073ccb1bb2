"""The state types by name: those of the language, and those that packages and programs add."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import RLock
from typing import Final
from warnings import warn

from asl.core.diagnostics import Finding
from asl.core.errors import AslError
from asl.core.lazy import LazyTable, load_plugin, plugin_error, wrap_errors
from asl.core.values import Json
from asl.program import Step
from asl.states.base import Compiler, Node, StateType

__all__ = ["BUILT_IN", "GROUP", "STATE_TYPES", "UNKNOWN", "StateTypeRegistry", "type_of"]

BUILT_IN: Final[Mapping[str, str]] = {
    "Task": "asl.states.task:TASK",
    "Choice": "asl.states.choice:CHOICE",
    "Map": "asl.states.map:MAP",
    "Parallel": "asl.states.parallel:PARALLEL",
    "Pass": "asl.states.pass_:PASS",
    "Wait": "asl.states.wait:WAIT",
    "Succeed": "asl.states.succeed:SUCCEED",
    "Fail": "asl.states.fail:FAIL",
    "Include": "asl.states.include:INCLUDE",
    "Approval": "asl.states.approval:APPROVAL",
    "Workflow": "asl.states.workflow:WORKFLOW",
    "Checkpoint": "asl.states.checkpoint:CHECKPOINT",
    "Debate": "asl.states.debate:DEBATE",
}
"""The state types of the language, whose schemas are files; those of Amazon States Language come
first."""
GROUP: Final = "asl.states"
"""The group of entry points that add state types; the value of each is a `StateType`."""


class StateTypeRegistry(Mapping[str, StateType]):
    """State types by name.

    Installed packages are searched once, when a name is unknown or all types are listed, so that a
    document of the language alone does not pay for it. What is wrong with a package is an error of
    the type that its entry point is named after, and a warning for all others.

    Args:
        rows: The state types to begin with, each loaded when a document has it.
    """

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._built_in = LazyTable[StateType](rows)
        self._added: dict[str, StateType] = {}
        self._broken: dict[str, AslError] = {}
        """Why the entry points that cannot be used cannot, by their names."""
        self._searched = False
        self._searching = RLock()

    def __getitem__(self, name: str) -> StateType:
        if name not in self:
            raise KeyError(name)
        return self._built_in[name] if name in self._built_in else self._added[name]

    def __contains__(self, name: object) -> bool:
        if not self._has(name):
            self._search(name)
            if name in self._broken:
                raise self._broken[str(name)]
        return self._has(name)

    def __iter__(self) -> Iterator[str]:
        self._search()
        yield from self._built_in
        yield from self._added

    def __len__(self) -> int:
        self._search()
        return len(self._built_in) + len(self._added)

    def _has(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    def register(self, added: StateType) -> None:
        """Add a state type.

        Args:
            added: The descriptor, with a JSON Schema.

        Raises:
            AslError: if there is a type of this name, or the descriptor is wrong.
        """
        if type(added.name) is not str or not added.name:
            raise AslError(f"the name of a state type must be a text, not {added.name!r:.100}")
        if self._has(added.name):
            raise AslError(f"there is a state type {added.name!r} already")
        if (fault := _fault(added)) is not None:
            raise AslError(fault)
        self._added[added.name] = _guarded(added)

    def unregister(self, name: str) -> None:
        """Remove a state type that was added."""
        del self._added[name]

    def _search(self, name: object = None) -> None:
        """Add the state types of installed packages, once; *name* is the one that is wanted."""
        if self._searched:
            return
        with self._searching:
            if not self._searched:
                self._searched = True
                self._add_installed(name)

    def _add_installed(self, wanted: object) -> None:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP):
            try:
                found = load_plugin(entry)
                if not isinstance(found, StateType):
                    raise plugin_error(entry, f"is no StateType: {found!r:.100}")
                try:
                    self.register(found)
                except AslError as fault:
                    raise plugin_error(entry, f"cannot be used: {fault}") from None
            except AslError as fault:
                if not self._has(entry.name):
                    self._broken[entry.name] = fault
                if entry.name != wanted:
                    warn(f"{fault}; it is ignored", stacklevel=2)


def _fault(added: StateType) -> str | None:
    """Return what is wrong with the descriptor of a type that is added, None for nothing."""
    of = f"the state type {added.name!r}"
    for field in ("compile", "check", "calls", "describe"):
        if not callable(getattr(added, field)):
            return f"{of} has no function as {field!r}"
    if added.schema is None:
        return f"{of} has no schema"
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(added.schema)
    except SchemaError as fault:
        return f"the schema of {of} is wrong at {fault.json_path}: {fault.message:.200}"
    urn = f"urn:asl:schema:states:{added.name}"
    if not isinstance(added.schema, Mapping) or added.schema.get("$id") != urn:
        return f'the schema of {of} needs the "$id" {urn!r}'
    if not isinstance(added.schema.get("properties"), Mapping):
        return f'the schema of {of} has no "properties"'
    for reference in _references(added.schema):
        if not reference.startswith(("#", "urn:asl:schema:")):
            return f"the schema of {of} refers to {reference!r:.100}, which cannot be read"
    return None


def _references(schema: Json) -> Iterator[str]:
    """Yield the references in a schema."""
    inner = schema.values() if isinstance(schema, Mapping) else schema
    if isinstance(schema, Mapping) and type(schema.get("$ref")) is str:
        yield schema["$ref"]
    if isinstance(schema, Mapping | list):
        for each in inner:
            yield from _references(each)


def _guarded(added: StateType) -> StateType:
    """Return the descriptor of a type that is added, with errors that name it for its faults."""

    def check(node: Node) -> Iterator[Finding]:
        with wrap_errors(f"the check of the state type {added.name!r} failed for {node.name!r}"):
            for finding in added.check(node):
                if not isinstance(finding, Finding):
                    raise TypeError(f"{finding!r:.100} is no Finding")
                yield finding

    def compile(compiler: Compiler, step: Step) -> None:
        with wrap_errors(f"the state type {added.name!r} cannot compile {step.name!r}"):
            added.compile(compiler, step)
            made = (step.transform, step.choose, step.work)
            if sum(map(callable, made)) != 1:
                raise TypeError("it has to set one of 'transform', 'choose' and 'work'")

    return replace(added, check=check, compile=compile)


STATE_TYPES: Final = StateTypeRegistry(BUILT_IN)
"""The state types."""


def _no_step(compiler: Compiler, step: Step) -> None:
    raise AssertionError(f"{step.name!r} has a type that no check lets through")


def _no_findings(node: Node) -> Iterator[Finding]:
    return iter(())


UNKNOWN: Final = StateType("", _no_step, _no_findings, effect=True)
"""The type of a state with an unknown type; it may have any field."""


def type_of(state: Mapping[str, Json]) -> StateType:
    """Return the type of a state as it is written, UNKNOWN where there is no such type."""
    kind = state.get("Type")
    try:
        return STATE_TYPES[kind] if type(kind) is str else UNKNOWN
    except KeyError:
        return UNKNOWN
