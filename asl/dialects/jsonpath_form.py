"""Documents of other languages in plain JSONPath, for the writers of further ones.

What was read from another language runs with functions of its own, so that it does exactly what it
did there. No third language has those. So each dialect rewrites its documents before a conversion
to one: the input of an agent as `Parameters`, the place of its answer as `ResultPath`, a condition
as a rule. The states keep their names; losses are reported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asl.checks.workflow import handlers, objects
from asl.core.diagnostics import Finding
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.names import FreshNames
from asl.states.machines import nested_machines

__all__ = [
    "JsonPathForm",
    "leads",
    "missing_value_loss",
    "path_to",
    "reached",
    "reads_data",
    "returned_to",
]

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass
class JsonPathForm:
    """A machine in plain JSONPath, and its losses."""

    states: dict[str, Json] = field(default_factory=dict)
    losses: list[Finding] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)
    """Pointers of states that the document does not have -> of the one that each is a part of."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The system prompts of agents, by their names."""
    given: Finding | None = None
    """How to pass the input of a run, if not as in the document."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Pointers of states that have another name here -> of the one in the document."""
    names: FreshNames = field(default_factory=FreshNames)
    """The names of states that are taken."""

    def add(self, wanted: str, state: dict[str, Json], of: str) -> str:
        """Add a state that is a part of another one; return its name."""
        name = self.names.new(wanted)
        self.states[name] = state
        self.beside[f"/States/{escape(name)}"] = f"/States/{escape(of)}"
        return name

    def placed(self, finding: Finding) -> Finding:
        """Return a finding about the machine as one about the document that it says again."""
        known = finding.pointer
        while known and known not in self.beside and known not in self.renamed:
            known = known.rpartition("/")[0]
        if known in self.renamed:
            rest = finding.pointer.removeprefix(known)
            return finding._replace(pointer=self.renamed[known] + rest)
        return finding._replace(pointer=self.beside[known]) if known else finding

    def lost(
        self, code: str, message: str, name: str, *way: str | int, hint: str | None = None
    ) -> None:
        """Report a loss at a state or within it; each is reported once."""
        self.lost_at(code, message, ("States", name, *way), hint)

    def lost_at(
        self, code: str, message: str, way: Iterable[str | int], hint: str | None = None
    ) -> None:
        """Report a loss at a place, by its steps."""
        place = "".join(f"/{escape(str(each))}" for each in way)
        finding = Finding(code, message, place, hint, at_key=True)
        if finding not in self.losses:
            self.losses.append(finding)

    def named(self, message: str, name: str, hint: str) -> None:
        """Report, at the first state, that the input of a run has a name."""
        self.given = Finding("L-INPUT", message, f"/States/{escape(name)}", hint, at_key=True)

    def unrefused(self, name: str) -> None:
        """Report, at the first state, that nothing refuses what the platform would."""
        message = "what the platform refuses to fill in, or to take, fails no run there"
        self.lost("L-MISSING", message, name)


def path_to(*steps: str | int) -> str:
    """Return the path that leads along these steps."""
    return "$" + "".join(_step(each) for each in steps)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _NAME.fullmatch(step):
        return f".{step}"
    return "['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']"


def reached(start: str, states: Mapping[str, Any]) -> set[str]:
    """Return the reachable states."""
    found: set[str] = set()
    todo: list[Any] = [start]
    while todo:
        name = todo.pop()
        if name in states and name not in found:
            found.add(name)
            todo += leads(states[name])
    return found


def leads(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the targets of a state."""
    holders = [each for _, each in (*objects(state, "Choices"), *handlers(state, "Catch"))]
    for holder, key in ((state, "Next"), *((each, "Next") for each in holders), (state, "Default")):
        if key in holder:
            yield holder[key]


def returned_to(start: str, states: Mapping[str, Any]) -> str | None:
    """Return a state that is part of a cycle, None if there is none."""
    open_: dict[str, Iterator[str]] = {start: leads(states[start])}
    closed: set[str] = set()
    while open_:
        name = next(reversed(open_))
        target = next(open_[name], None)
        if target is None:
            del open_[name]
            closed.add(name)
        elif target in open_:
            return target
        elif target in states and target not in closed:
            open_[target] = leads(states[target])
    return None


_VARIABLE: Final = re.compile(r"\$[A-Za-z_]")
_HARMLESS: Final = frozenset(("Comment", "Agent", "Resource", "Type", "Next"))


def missing_value_loss(value: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a loss, once, for a document in which a value may be missing.

    Its place is the first such value.
    """
    place = next(_reading_places(value, ""), None)
    if place is not None:
        message = "here, and wherever data is read, what is missing fails no run there"
        hint = "it is nothing, null, or left as it stands"
        yield Finding("L-MISSING", message, place, hint, at_key=True)


def _reading_places(machine: Mapping[str, Any], pointer: str) -> Iterator[str]:
    """Yield where the states of a machine read data that may not be there."""
    for name, state in machine["States"].items():
        place = f"{pointer}/States/{escape(name)}"
        inner = [*nested_machines(state)]
        within = {steps[0] for steps, _ in inner}
        for key, each in state.items():
            if key not in _HARMLESS and key not in within and reads_data(each):
                yield f"{place}/{escape(key)}"
        if "Choices" in state and "Default" not in state and state["Type"] == "Choice":
            yield f"{place}/Choices"
        for steps, each in inner:
            yield from _reading_places(each, place + "".join(f"/{step}" for step in steps))


def reads_data(value: Json) -> bool:
    """Whether a field has a path, an intrinsic function or a query."""
    if isinstance(value, dict):
        return any(key.endswith(".$") or reads_data(each) for key, each in value.items())
    if isinstance(value, list):
        return any(map(reads_data, value))
    if not isinstance(value, str):
        return False
    return value.startswith(("$.", "$[", "$$.", "{%")) or _VARIABLE.match(value) is not None
