"""One machine of a document as states of a workflow: names, transitions, and states in one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Severity
from asl.core.pointers import escape, unescape
from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.expressions import Expressions, Unsayable
from asl.dialects.codemie.writing.fields import report
from asl.dialects.codemie.writing.gates import Decision, decide
from asl.dialects.codemie.writing.names import READ, Extracted, Loss, OutputNames, ValueNames
from asl.dialects.codemie.writing.scope import ContextScope, key_of
from asl.dialects.codemie.writing.workflow import Workflow
from asl.dialects.lowering import Flow, StepExit, WorkStep, fold
from asl.dialects.lowering.value_types import reads_one_type
from asl.dialects.terms import INPUT, DataPath, Literal, Term

__all__ = ["SILENT", "WorkflowMachine", "Writers", "never"]

State: TypeAlias = dict[str, Any]
Handler: TypeAlias = "Callable[[WorkflowMachine, WorkStep], None]"
Region: TypeAlias = "Callable[[WorkflowMachine, WorkStep, WorkStep | None], dict[str, Json]]"
SILENT: Final[Mapping[str, Json]] = {"store_in_context": False, "include_in_llm_history": False}
OMITTED: Final = frozenset(("Wait", "Checkpoint"))
"""Types of states that do nothing there."""


class Writers(NamedTuple):
    """How the steps of each type are written.

    Attributes:
        states: Writes a step, by its type.
        prepare: Makes what a Task is given.
        regions: Returns `next` of a state that leads into the machines of a step, by its type;
            the last argument is the step whose output has the items.
    """

    states: Mapping[str, Handler]
    prepare: Handler
    regions: Mapping[str, Region]


class WorkflowMachine:
    """The steps of one machine.

    Args:
        workflow: The workflow under construction.
        writers: How the steps of each type are written.
        flow: The steps.
        scope: Where its data is.
        after: The state to which control goes where the machine ends.
        last: What goes into `next` of each state that ends a branch or a worker; None on top.
    """

    def __init__(
        self,
        workflow: Workflow,
        writers: Writers,
        flow: Flow,
        scope: ContextScope,
        after: str = END,
        last: Mapping[str, Json] | None = None,
    ) -> None:
        self.workflow = workflow
        self.writers = writers
        self.whole = flow
        self.flow = fold(flow, _idle)
        self.steps = self.flow.steps
        self.scope = scope
        self.after = after
        self.last = last
        self.ids: dict[str, str] = {}
        self.given: dict[str, dict[str, Json]] = {}
        """What the actors of Tasks are given."""
        self.prepared: dict[str, State] = {}
        """States in front of Tasks, which compute a part of what they are given."""
        self.computed: dict[str, list[str]] = {}
        """The keys of what they compute."""
        self.behind: list[State] = []
        """States that follow the one that is being written."""

    def inner(
        self, flow: Flow, scope: ContextScope, after: str, last: Mapping[str, Json]
    ) -> "WorkflowMachine":
        """Return a machine within a state of this one."""
        return WorkflowMachine(self.workflow, self.writers, flow, scope, after, last)

    def write(self) -> str:
        """Write the machine; return the name of its first state."""
        for step in self.whole.steps.values():
            report(self, step)
        entry = self.lead(self.flow.start)
        if entry is None:
            return self.workflow.tail(f"{self.flow.start}_pass", self.after)
        order = [entry, *(each for each in self.steps.values() if each is not entry)]
        for step in order:
            if step.kind == "Task":
                self.writers.prepare(self, step)
        for step in order:
            if step.name not in self.joined.values() and not self.ends(step):
                self.writers.states[step.kind](self, step)
        return self.entry(entry)

    # Places and losses

    def at(self, step: WorkStep, *fields: str) -> str:
        """Return the JSON Pointer of the first field that a step has, of the step without any."""
        field = next((each for each in fields if each in step.state), None)
        return step.pointer if field is None else f"{step.pointer}/{escape(field)}"

    def lost(
        self,
        code: str,
        message: str,
        pointer: str,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report what the workflow does not say."""
        self.workflow.lost(code, message, pointer, instead, severity)

    def told(self, losses: Iterable[Loss], pointer: str) -> None:
        """Report what expressions do not say."""
        for code, message, severity in losses:
            self.lost(code, message, pointer, severity=severity)

    def id(self, step: WorkStep) -> str:
        """Return the name of a step in the workflow."""
        if step.name not in self.ids:
            self.ids[step.name] = id = self.workflow.id(step.name)
            self.workflow.places[id] = step.pointer
            if id != step.name:
                self.lost("L-NAME", "the name of the state is changed", step.pointer, id)
        return self.ids[step.name]

    # Transitions

    def ends(self, step: WorkStep) -> bool:
        """Whether a step does nothing but end the machine."""
        return step.kind == "Succeed" or (_idle(step) and step.exits[0].target is None)

    def lead(self, name: str | None) -> WorkStep | None:
        """Return the step to which a transition leads, None where that ends the machine."""
        seen = set[str]()
        while name is not None and name not in seen:
            seen.add(name)
            step = self.steps.get(name)
            if step is None or self.ends(step):
                return None
            if name not in self.gates:
                return step
            name = self.gates[name].granted
        return None

    def entry(self, step: WorkStep) -> str:
        """Return the name of the state that is entered for a step."""
        prepared = self.prepared.get(step.name)
        return self.id(step) if prepared is None else str(prepared["id"])

    def target(self, name: str | None) -> str:
        """Return the name in the workflow of where a transition leads."""
        found = self.lead(name)
        return self.after if found is None else self.entry(found)

    def next(self, name: str | None) -> dict[str, Json]:
        """Return the `next` of a state that leads to a step."""
        if self.lead(name) is None:
            return {"state_id": self.after, **(self.last or {})}
        return {"state_id": self.target(name)}

    @cached_property
    def before(self) -> Counter[str]:
        """How many ways lead to each step."""
        targets = [self.flow.start]
        for step in self.steps.values():
            targets += [each.target for each in step.exits if each.target is not None]
        return Counter(targets)

    @cached_property
    def gates(self) -> Mapping[str, Decision]:
        """The Approvals that are a gate of the step behind them."""
        found: dict[str, Decision] = {}
        for step in self.steps.values():
            decision = decide(step, self.flow) if step.kind == "Approval" else None
            granted = None if decision is None else self.steps.get(decision.granted or "")
            if decision is None or granted is None:
                continue
            fits = granted.kind in ("Task", "Pass", "Map", "Parallel") and not _idle(granted)
            if fits and self.before[granted.name] == 1:
                found[step.name] = decision
        return found

    @cached_property
    def joined(self) -> Mapping[str, str]:
        """Steps whose `next` does what a Map or a Parallel behind them does, with that."""
        found: dict[str, str] = {}
        for step in self.steps.values():
            if step.kind != "Task" or step.decides or key_of(step) is None:
                continue
            following = self.steps.get(step.exits[0].target or "")
            if following is None or self.before[following.name] != 1:
                continue
            if following.kind == "Parallel" or (
                following.kind == "Map" and self.items_key(step, following) is not None
            ):
                found[step.name] = following.name
        return found

    def items_key(self, step: WorkStep, following: WorkStep) -> str | None:
        """Return the key under which the output of a step has the items of a Map."""
        place, items = key_of(step), following.fields.get("Items")
        if self.scope.item or place is None or not isinstance(items, DataPath):
            return None
        steps = OutputNames(place).within(items)
        if steps is None:
            return None
        if not steps:
            return "."
        plain = len(steps) == 1 and isinstance(steps[0], str)
        return str(steps[0]) if plain else "/" + "/".join(escape(str(each)) for each in steps)

    # Values

    def scope_of(self, step: WorkStep) -> ContextScope:
        """Return the scope of a step, which knows whether the data is the output in front of it."""
        sources = [
            each
            for each in self.steps.values()
            if any(exit.target == step.name for exit in each.exits)
        ]
        answers = all(each.kind == "Task" and key_of(each) == () for each in sources)
        first = step.name == self.flow.start
        return self.scope._replace(answer=bool(sources) and answers and not first)

    def routed(
        self, step: WorkStep, exits: tuple[StepExit, ...], names: ValueNames
    ) -> dict[str, Json]:
        """Return the form of `next` that decides; raises Unsayable."""
        cases: list[Any] = []
        losses: list[tuple[Loss, str]] = []
        for each in exits:
            if each.condition is None:
                continue
            expressions = Expressions(names)
            text = expressions.condition(self.scope.meant(each.condition))
            found = self.decisive(step, each.condition, expressions.losses)
            losses += ((loss, each.pointer) for loss in dict.fromkeys(found))
            cases.append({"condition": text, "state_id": self.target(each.target)})
        for loss, pointer in losses:
            self.told([loss], pointer)
        for each in exits:
            if each.output is not None or each.assign:
                self.lost(
                    "L-TRANSFORM",
                    "a case has a target only; output and variables of the rule are lost",
                    each.pointer,
                )
        if exits[-1].condition is None:
            otherwise = self.target(exits[-1].target)
        else:
            pointer = step.choice or step.pointer
            self.lost(
                "L-NODEFAULT",
                "a switch has a default: the run does not fail if no rule matches",
                pointer,
            )
            otherwise = self.failing(f"{self.id(step)}_unmatched", "States.NoChoiceMatched")
        if len(cases) != 1:
            return {"switch": {"cases": cases, "default": otherwise}}
        (case,) = cases
        said = {"expression": case["condition"], "then": case["state_id"], "otherwise": otherwise}
        return {"condition": said}

    def decisive(self, step: WorkStep, condition: Term, losses: Iterable[Loss]) -> Iterator[Loss]:
        """Yield losses of a condition; a value that is read as another one leads elsewhere."""
        for loss in losses:
            if loss != READ:
                yield loss
            elif not reads_one_type(self.whole, step, condition):
                yield loss._replace(severity=Severity.ERROR)

    def going(self, step: WorkStep, stored: Mapping[str, Json]) -> dict[str, Json]:
        """Return `next` of a state that runs an actor: where its output and control go."""
        kept = {
            key: value
            for key, value in stored.items()
            if key != "clear_context_store" or self.last is None
        }
        if step.name in self.joined:
            following = self.steps[self.joined[step.name]]
            return {**stored, **self.writers.regions[following.kind](self, following, step)}
        if not step.decides:
            return {**kept, **self.next(step.exits[0].target)}
        place = key_of(step)
        if place is not None:
            try:
                return {**stored, **self.routed(step, step.exits, OutputNames(place))}
            except Unsayable:
                pass
        return {**stored, "state_id": self.choosing(step)}

    def choosing(self, step: WorkStep) -> str:
        """Put a state behind the one that is being written that decides; return its name."""
        pointer = step.choice or step.pointer
        name = self.workflow.id(unescape(pointer.rpartition("/")[2]))
        self.workflow.places[name] = pointer
        self.behind.append(self.decider(name, step))
        return name

    def decider(self, id: str, step: WorkStep) -> State:
        """Return a state that takes what it decides by out of the context."""
        names = Extracted(self.scope_of(step).key)
        exits = []
        for each in step.exits:
            try:
                if each.condition is not None:
                    Expressions(names).condition(self.scope.meant(each.condition))
            except Unsayable as fault:
                self.told([fault.loss], each.pointer)
                each = each._replace(condition=Literal(False))
            exits.append(each)
        names = Extracted(self.scope_of(step).key)
        to = self.routed(step, tuple(exits), names)
        return self.workflow.transforming(id, {"mappings": names.mappings()}, {**SILENT, **to})

    # States

    def add(self, step: WorkStep, state: State) -> None:
        """Add the state of a step, behind its gate if it has one."""
        for gate, decision in self.gates.items():
            if decision.granted == step.name:
                self.gated(self.steps[gate], state)
        to = state.pop("next")
        if step.name in self.prepared:
            self.workflow.states.append(self.prepared[step.name])
        self.workflow.states += [{**state, "next": to}, *self.behind]
        self.behind = []

    def gated(self, gate: WorkStep, state: State) -> None:
        """Let people be asked before a state."""
        state["interrupt_before"] = True
        prompt = gate.fields.get("Prompt")
        if isinstance(prompt, Literal) and isinstance(prompt.value, str) and prompt.value:
            state["task"] = f"{prompt.value}\n\n{state.get('task', '')}".rstrip("\n")
            message = "a confirmation shows the task of its state, not a prompt"
            self.lost("L-PROMPT", message, gate.pointer, "the prompt is added to the task")

    def node(self, step: WorkStep, config: State, to: Mapping[str, Json], **more: Json) -> None:
        """Write a step as a transformation."""
        made = self.workflow.transforming(self.id(step), config, {**to})
        self.add(step, {**made, **more})

    def failing(self, name: str, error: str) -> str:
        """Put a state that fails behind the one that is being written; return its name."""
        id = self.workflow.id(name)
        self.behind.append(self.workflow.transforming(id, never(error), {"state_id": END}))
        return id

    def followed(self, inner: "WorkflowMachine") -> str:
        """Write a machine behind the state that is being written; return its first state."""
        states = self.workflow.states
        begun = len(states)
        first = inner.write()
        self.behind += states[begun:]
        del states[begun:]
        return first


def never(needed: str) -> State:
    """Return the configuration of a transformation that fails for what is needed."""
    return {"mappings": [], "on_error": "fail", "output_schema": {"required": [needed]}}


def _idle(step: WorkStep) -> bool:
    """Whether a step does nothing there."""
    if step.kind == "Pass":
        return step.output == DataPath(INPUT) and not step.assign and not step.decides
    return step.kind in OMITTED
