"""The state types by name: those of the language, and those that packages and programs add."""

from collections.abc import Iterator, Mapping
from threading import RLock
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.errors import AslError
from asl.core.values import Json
from asl.program import Step
from asl.states.base import Compiler, Node, StateType

__all__ = ["GROUP", "STATE_TYPES", "UNKNOWN", "Registry", "type_of"]

GROUP: Final = "asl.states"
"""The group of entry points that add state types; the value of each is a `StateType`."""


class Registry(Mapping[str, StateType]):
    """State types by name.

    Installed packages are searched once, when a name is unknown or all types are listed, so that a
    document of the language alone does not pay for it.
    """

    def __init__(self) -> None:
        self._types: dict[str, StateType] = {}
        self._searched = False
        self._searching = RLock()

    def __getitem__(self, name: str) -> StateType:
        if name not in self._types:
            self._search()
        return self._types[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._types:
            self._search()
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(self._types)

    def __len__(self) -> int:
        self._search()
        return len(self._types)

    def define(self, *types: StateType) -> None:
        """Add the state types of the language, whose schemas are files."""
        self._types |= {each.name: each for each in types}

    def register(self, added: StateType) -> None:
        """Add a state type.

        Args:
            added: The descriptor, with a JSON Schema.

        Raises:
            AslError: if there is a type of this name, or the descriptor has no schema.
        """
        if added.name in self._types:
            raise AslError(f"there is a state type {added.name!r} already")
        if added.schema is None:
            raise AslError(f"the state type {added.name!r} has no schema")
        self._types[added.name] = added

    def unregister(self, name: str) -> None:
        """Remove a state type that was added."""
        del self._types[name]

    def _search(self) -> None:
        """Add the state types of installed packages, once."""
        if self._searched:
            return
        with self._searching:
            if not self._searched:
                for found in _installed():
                    self.register(found)
                self._searched = True


def _installed() -> list[StateType]:
    """Return the state types of installed packages.

    Raises:
        AslError: if a package cannot be imported, or its entry point is no StateType.
    """
    from importlib.metadata import entry_points

    types: list[StateType] = []
    for entry in entry_points(group=GROUP):
        try:
            found = entry.load()
        except (ImportError, AttributeError) as fault:
            message = f"the entry point {entry.name!r} of {GROUP} cannot be loaded: {fault}"
            raise AslError(message) from fault
        if not isinstance(found, StateType):
            raise AslError(f"the entry point {entry.name!r} of {GROUP} is no StateType: {found!r}")
        types.append(found)
    return types


STATE_TYPES: Final = Registry()
"""The state types; those of Amazon States Language come first."""


def _no_step(compiler: Compiler, step: Step) -> None:
    raise AssertionError(f"{step.name!r} has a type that no check lets through")


def _no_findings(node: Node) -> Iterator[Finding]:
    return iter(())


UNKNOWN: Final = StateType("", _no_step, _no_findings, effect=True)
"""Stands for the type of a state that has none of these, which may have any field."""


def type_of(state: Mapping[str, Json]) -> StateType:
    """Return the type of a state as it is written, UNKNOWN where there is no such type."""
    kind = state.get("Type")
    try:
        return STATE_TYPES[kind] if type(kind) is str else UNKNOWN
    except KeyError:
        return UNKNOWN
