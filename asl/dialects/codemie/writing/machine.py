"""One machine of a document as states of a workflow: names, transitions, and states in one."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.fields import report
from asl.dialects.codemie.writing.results import ITEM, Result, key_of, path_of, steps
from asl.dialects.codemie.writing.workflow import Workflow

__all__ = ["Kind", "Machine"]

State: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Machine, str, State], None]"

_FIELD: Final = re.compile(r"\$\.([A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_])")


class Kind(NamedTuple):
    """How a state type is written: a row of the table.

    `fields` are those that its handler deals with, beside those of all states; None where the
    handler reports the state as a whole. `fits(machine, state, result)` says whether the state in
    front, which has that result, can say in its own `next` what this state does, and
    `said(machine, name, state, result)` returns that.
    """

    write: Handler
    fields: frozenset[str] | None = None
    fits: "Callable[[Machine, State, Result], bool] | None" = None
    said: "Callable[[Machine, str, State, Result], dict[str, Json]] | None" = None


class Machine:
    """The states of one machine; where it ends, control goes to `after`."""

    def __init__(
        self,
        workflow: Workflow,
        kinds: Mapping[str, Kind],
        machine: Mapping[str, Any],
        pointer: str = "",
        after: str = END,
        *,
        item: bool = False,
        last: Mapping[str, Json] | None = None,
        selected: Mapping[str, str] | None = None,
    ) -> None:
        self.workflow = workflow
        self.kinds = kinds
        self.machine = machine
        self.pointer = pointer
        self.after = after
        self.item = item
        self.last = last
        """What goes into `next` of each state that ends a branch or a worker; None on top."""
        self.selected = selected or {}
        """The fields that a Map selects for its items, and the paths that stand for them."""
        self.states: Mapping[str, State] = machine["States"]
        self.ids: dict[str, str] = {}
        self.gates: dict[str, tuple[str, str]] = {}
        """Prompts of the gates in front of states, and where they are asked."""
        self.behind: list[dict[str, Any]] = []
        """States that follow the one that is being written."""

    def inner(
        self,
        machine: Mapping[str, Any],
        pointer: str,
        after: str,
        *,
        item: bool,
        last: Mapping[str, Json],
        selected: Mapping[str, str] | None = None,
    ) -> "Machine":
        """Return a machine within a state of this one."""
        inner = (self.workflow, self.kinds, machine, pointer, after)
        return Machine(*inner, item=item, last=last, selected=selected)

    def written(self) -> str:
        """Write the machine; return the name of its first state."""
        start = self.machine["StartAt"]
        self.workflow.count_branches(self.states)
        for name, state in self.states.items():
            if state.get("Type") == "Approval":
                self.kinds["Approval"].write(self, name, state)
        entry = self.lead(start)
        if entry is None:
            first, order = self.workflow.tail(f"{start}_pass", self.after), [*self.states]
        else:
            first, order = self.id(entry), [entry, *(each for each in self.states if each != entry)]
        merged = set(self.merged.values())
        for name in order:
            state = self.states[name]
            kind = self.kinds.get(str(state.get("Type")))
            if kind is not None:
                fields = kind.fields
                if fields is not None and copies(state):
                    fields |= {"InputPath"}
                report(self, name, state, fields)
                if name not in merged and state.get("Type") != "Approval":
                    kind.write(self, name, state)
        return first

    # Places and names

    def at(self, name: str, *steps: str | int) -> str:
        """Return the JSON Pointer of a place in a state."""
        way = "".join(f"/{escape(str(step))}" for step in steps)
        return f"{self.pointer}/States/{escape(name)}{way}"

    def lost(
        self, code: str, message: str, pointer: str, instead: str | None = None, key: bool = True
    ) -> None:
        """Report what the workflow does not say."""
        self.workflow.lost(code, message, pointer, instead, key)

    def id(self, name: str) -> str:
        """Return the name of a state in the workflow."""
        if name not in self.ids:
            self.ids[name] = id = self.workflow.id(name)
            self.workflow.places[id] = self.at(name)
            if id != name:
                message = f"{name!r} is no name of a state there"
                self.lost("L-NAME", message, self.at(name), f"{id!r}")
        return self.ids[name]

    # Paths

    def meant(self, path: Json) -> Json:
        """Return a path with what a Map has selected in place of the field that has it."""
        found = path_of(path)
        match = _FIELD.match(found) if type(found) is str else None
        selected = self.selected.get(match[1]) if match else None
        return found if match is None or selected is None else selected + found[match.end() :]

    def way(self, path: Json) -> tuple[str, ...] | None:
        """Return the keys and positions that a path leads along in the context.

        The keys of an item stand in it beside all others.
        """
        found = self.meant(path)
        if type(found) is str and found.startswith(ITEM):
            return steps(f"${found.removeprefix(ITEM)}") if self.item else None
        return self.workflow.way(found)

    # Transitions

    def lead(self, name: str) -> str | None:
        """Return the state to which a transition leads, None where that ends the machine.

        States without a counterpart are passed.
        """
        seen: set[str] = set()
        found: str | None = name
        while found is not None and found not in seen:
            seen.add(found)
            state = self.states.get(found)
            if state is None or state.get("Type") == "Succeed":
                return None
            if not passes(state):
                return found
            found = approved(state) if state["Type"] == "Approval" else state.get("Next")
        return None

    def target(self, name: Json) -> str:
        """Return the name in the workflow of where a transition leads."""
        lead = self.lead(name) if type(name) is str else None
        return self.after if lead is None else self.id(lead)

    def next(self, state: State) -> dict[str, Json]:
        """Return where a state goes."""
        if "Next" in state and self.lead(state["Next"]) is not None:
            return {"state_id": self.target(state["Next"])}
        return {"state_id": self.after, **(self.last or {})}

    def going(self, name: str, state: State, stored: Mapping[str, Json]) -> dict[str, Json]:
        """Return `next` of a state that runs an actor: where its output and control go."""
        follower = self.merged.get(name)
        if follower is None:
            return {**self.kept(stored), **self.next(state)}
        following, result = self.states[follower], Result.of(state)
        said = self.kinds[following["Type"]].said
        assert said is not None
        assert result is not None
        self.lost(
            "L-MERGED",
            f"{self.id(name)!r} does this itself",
            self.at(follower),
            "no state of its own is needed",
        )
        return {**stored, **said(self, follower, following, result)}

    def kept(self, stored: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return what is written; no branch clears the context that it shares with others."""
        if self.last is None:
            return stored
        return {key: value for key, value in stored.items() if key != "clear_context_store"}

    @cached_property
    def merged(self) -> dict[str, str]:
        """States that say in their own `next` what the state behind them does, with that."""
        before = Counter(self.leads())
        found: dict[str, str] = {}
        for name, state in self.states.items():
            if state.get("Type") != "Task" or type(state.get("Next")) is not str:
                continue
            follower, result = self.lead(state["Next"]), Result.of(state)
            if follower is None or result is None or before[follower] != 1:
                continue
            following = self.states[follower]
            fits = self.kinds[following["Type"]].fits if following["Type"] in self.kinds else None
            if fits is not None and follower not in self.gates and fits(self, following, result):
                found[name] = follower
        return found

    def leads(self) -> Iterator[str]:
        """Yield the states to which the beginning and the transitions lead, each as often."""
        targets = [self.machine["StartAt"]]
        for state in self.states.values():
            if not passes(state):
                targets += [state.get("Next"), state.get("Default")]
                targets += [rule.get("Next") for rule in state.get("Choices", ())]
        for target in targets:
            lead = self.lead(target) if type(target) is str else None
            if lead is not None:
                yield lead

    # States

    def add(self, name: str, state: dict[str, Json]) -> None:
        """Add a state that runs an actor, behind its gate if it has one."""
        if name in self.gates:
            prompt, pointer = self.gates[name]
            state["interrupt_before"] = True
            if prompt:
                state["task"] = f"{prompt}\n\n{state.get('task', '')}".rstrip("\n")
                self.lost(
                    "L-PROMPT",
                    "a gate shows the task of its state",
                    pointer,
                    "the prompt is part of it",
                )
        to = state.pop("next")
        self.workflow.states += [{**state, "next": to}, *self.behind]
        self.behind = []

    def node(self, name: str, config: dict[str, Json], to: dict[str, Json], **more: Json) -> None:
        """Write a state as a transformation."""
        self.add(name, {**self.workflow.transforming(self.id(name), config, to), **more})

    def followed(self, inner: "Machine") -> str:
        """Write a machine behind the state that is being written; return its first state."""
        states = self.workflow.states
        begun = len(states)
        first = inner.written()
        self.behind += states[begun:]
        del states[begun:]
        return first


def passes(state: State) -> bool:
    """Whether a state does nothing that a workflow could say."""
    kind = state.get("Type")
    if kind == "Pass":
        makes = any(key in state for key in ("Result", "Parameters", "Output"))
        return not makes and not copies(state)
    return kind in ("Wait", "Approval", "Checkpoint")


def copies(state: State) -> bool:
    """Whether a Pass puts one part of the data under a key, and changes nothing else."""
    made = ("Result", "Parameters", "Output", "OutputPath", "Assign")
    return (
        state.get("Type") == "Pass"
        and key_of(state) is not None
        and bool(steps(state.get("InputPath")))
        and not any(key in state for key in made)
    )


def approved(state: State) -> str | None:
    """Return where an Approval leads when it is approved."""
    options = state.get("Options")
    first = options[0] if type(options) is list and options else "approve"
    for rule in state.get("Choices", ()):
        if first == rule.get("StringEquals") or repr(first) in str(rule.get("Condition")):
            return str(rule["Next"])
    found = state.get("Next", state.get("Default"))
    if found is None and state.get("Choices"):
        found = state["Choices"][0].get("Next")
    return None if found is None else str(found)
