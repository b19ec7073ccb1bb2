"""The states of a machine as steps that every writer prints: what each does, and where it leads.

* `lower` reads each state into a `WorkStep`: its input, its output and its conditions as terms, its
  exits, handlers and machines. Both query languages give the same steps.
* `fold` gives the exits of a Choice to the step in front of it, and leaves out states that only
  pass on, so that a writer whose steps decide for themselves needs no states in between.

`asl.dialects.lowering.structure` arranges them further, for languages without jumps.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from asl.checks.workflow import handlers, objects
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.terms import (
    ERROR,
    INPUT,
    NOTHING,
    RESULT,
    DataPath,
    Literal,
    Meanings,
    Record,
    RewrittenMeanings,
    Term,
    Unknown,
    known_truth,
    own_part,
    put,
    rewritten,
)
from asl.dialects.terms import replace as replace_term
from asl.dialects.terms.jsonata import read_field
from asl.dialects.terms.jsonpath import read_path, read_rule, read_template
from asl.expr.paths.syntax import parse_path
from asl.states.machines import nested_machines

__all__ = [
    "Flow",
    "Handler",
    "StepExit",
    "WorkStep",
    "bypass",
    "fold",
    "lower",
    "passes_on",
]


class StepExit(NamedTuple):
    """A way out of a step.

    Attributes:
        condition: Term over the data behind the step (its root is the input); None for the way that
            is taken where no other is. A rule of an Approval reads its input and its decision (the
            root `result`), whatever the state makes of both.
        target: Name of the next step, None where the machine ends.
        pointer: JSON Pointer of the rule or the field in the document.
        output: Data that the rule hands on, over the same root; None if it changes nothing.
        assign: Variables that the rule sets.
    """

    condition: Term | None
    target: str | None
    pointer: str
    output: Term | None = None
    assign: Mapping[str, Term] = {}


class Handler(NamedTuple):
    """A catcher of a step.

    Attributes:
        errors: Names of errors.
        target: Name of the next step.
        pointer: JSON Pointer of the catcher.
        output: Data that it hands on, over the roots `input` and `error`.
        assign: Variables that it sets.
    """

    errors: tuple[str, ...]
    target: str
    pointer: str
    output: Term
    assign: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class WorkStep:
    """A state, with what it computes as terms.

    Attributes:
        name: Name of the state.
        pointer: JSON Pointer of the state.
        state: The state itself, for fields without a term.
        kind: Type of the state, such as `Task`.
        input: What is handed to the work of the state, over the root `input`.
        output: Data behind the state, over the roots `input` and `result`.
        assign: Variables that the state sets, over the same roots.
        exits: Ways out; the last one has no condition unless the state fails where none holds.
        handlers: Catchers.
        machines: Machines within the state, by the steps to the field that holds each.
        fields: Other fields with terms: `Items`, `ItemSelector`, `Seconds`, `Prompt`, ...
        jsonata: Whether the state is written in JSONata, where a missing value is nothing; in
            JSONPath it fails the run.
        choice: JSON Pointer of the Choice whose exits a folded step has, None without such.
    """

    name: str
    pointer: str
    state: Mapping[str, Any]
    kind: str
    input: Term
    output: Term
    assign: Mapping[str, Term]
    exits: tuple[StepExit, ...]
    handlers: tuple[Handler, ...]
    machines: Mapping[tuple[str | int, ...], "Flow"]
    fields: Mapping[str, Term]
    jsonata: bool
    choice: str | None = None

    @property
    def decides(self) -> bool:
        """Whether a condition decides where the step leads."""
        return any(each.condition is not None for each in self.exits)

    @property
    def targets(self) -> Iterator[str]:
        """The names of the steps that may come next."""
        yield from (each.target for each in self.exits if each.target is not None)
        yield from (each.target for each in self.handlers)


class Flow(NamedTuple):
    """The steps of a machine.

    Attributes:
        start: Name of the first step.
        steps: The steps by name, in the order of the document.
        pointer: JSON Pointer of the machine.
    """

    start: str
    steps: Mapping[str, WorkStep]
    pointer: str


# Lowering --------------------------------------------------------------------------------------

_TERM_FIELDS: Final = (
    *("Items", "ItemSelector", "MaxConcurrency", "Seconds", "Timestamp", "TimeoutSeconds"),
    *("HeartbeatSeconds", "Prompt", "Error", "Cause", "Title", "Topic", "Label"),
)
"""Fields in which either query language may compute a value."""


def lower(machine: Mapping[str, Any], meanings: Meanings | None = None) -> Flow:
    """Return the steps of a machine.

    Args:
        machine: Value of a document without errors, or a machine within one.
        meanings: What the functions of the document's dialect compute.
    """
    return _Lowering(meanings or {}).flow(machine, "", machine.get("QueryLanguage") == "JSONata")


class _Lowering:
    def __init__(self, meanings: Meanings) -> None:
        self.meanings = meanings

    def flow(self, machine: Mapping[str, Any], pointer: str, jsonata: bool) -> Flow:
        steps = {
            name: self.step(name, state, f"{pointer}/States/{escape(name)}", jsonata)
            for name, state in machine["States"].items()
        }
        steps = {name: _known(step, steps) for name, step in steps.items()}
        found = Flow(machine["StartAt"], steps, pointer)
        return bypass(found) if isinstance(self.meanings, RewrittenMeanings) else found

    def step(self, name: str, state: Mapping[str, Any], pointer: str, outer: bool) -> WorkStep:
        jsonata = state.get("QueryLanguage", "JSONata" if outer else "JSONPath") == "JSONata"
        read = _JsonataState(state, self.meanings) if jsonata else _JsonPathState(state)
        machines = {
            steps: self.flow(inner, pointer + "".join(f"/{each}" for each in steps), outer)
            for steps, inner in nested_machines(state)
            if "StartAt" in inner  # a module has no machine of its own
        }
        caught = tuple(
            Handler(
                tuple(each["ErrorEquals"]),
                each["Next"],
                f"{pointer}/Catch/{index}",
                read.caught(each),
                read.assigned(each, caught=True),
            )
            for index, each in handlers(state, "Catch")
            if read.caught(each) != NOTHING
        )
        exits = _taken((*_rules(state, pointer, read), *_ends(state, pointer, read)))
        output = read.output()
        changes = output != DataPath(INPUT) or any(each.output is not None for each in exits[-1:])
        if state["Type"] in _HANDS_ON and not changes:
            state = {key: value for key, value in state.items() if key != "Output"}
        return WorkStep(
            name,
            pointer,
            state,
            state["Type"],
            read.input(),
            output,
            read.assigned(state),
            exits,
            caught,
            machines,
            read.fields(),
            jsonata,
        )


def _known(step: WorkStep, steps: Mapping[str, WorkStep]) -> WorkStep:
    """Return a step that ends the machine where its state leads to one that does not exist."""
    targets = {*step.targets}
    if targets <= steps.keys():
        return step
    exits = (each if each.target in steps else each._replace(target=None) for each in step.exits)
    caught = (each for each in step.handlers if each.target in steps)
    return replace(step, exits=tuple(exits), handlers=tuple(caught))


class _JsonataState:
    """Reads the fields of a state whose query language is JSONata."""

    def __init__(self, state: Mapping[str, Any], meanings: Meanings) -> None:
        self.state = state
        self.meanings = meanings

    def field(self, value: Json) -> Term:
        found = own_part(read_field(value, self.meanings))
        return rewritten(found, self.meanings)

    def input(self) -> Term:
        """Return what the work of the state gets."""
        return self.field(self.state["Arguments"]) if "Arguments" in self.state else DataPath(INPUT)

    def output(self) -> Term:
        """Return the data behind the state."""
        kind = self.state["Type"]
        if kind == "Choice":  # what it has is handed on where no rule holds
            return DataPath(INPUT)
        output = self.field(self.state["Output"]) if "Output" in self.state else NOTHING
        if output != NOTHING:
            return output
        if kind == "Approval":
            return _DECIDED
        if kind == "Pass" and "Result" in self.state:
            return Literal(self.state["Result"])
        return DataPath(INPUT) if kind in _HANDS_ON else DataPath(RESULT)

    def condition(self, rule: Mapping[str, Any]) -> Term:
        found = read_field(rule["Condition"], self.meanings, self.roots())
        return rewritten(found, self.meanings)

    def roots(self) -> Mapping[str, Term]:
        """Return what the roots are within a rule."""
        return {INPUT: _DECIDED} if self.state["Type"] == "Approval" else {}

    def handed(self, rule: Mapping[str, Any]) -> Term | None:
        """Return the data that a rule of a Choice hands on."""
        if "Output" not in rule:
            return None
        found = own_part(read_field(rule["Output"], self.meanings, self.roots()))
        return None if found == NOTHING else rewritten(found, self.meanings)

    def caught(self, catcher: Mapping[str, Any]) -> Term:
        return self.field(catcher["Output"]) if "Output" in catcher else DataPath(ERROR)

    def assigned(self, holder: Mapping[str, Any], *, caught: bool = False) -> dict[str, Term]:
        return {key: self.field(value) for key, value in (holder.get("Assign") or {}).items()}

    def fields(self) -> dict[str, Term]:
        return {key: self.field(self.state[key]) for key in _TERM_FIELDS if key in self.state}


_HANDS_ON: Final = frozenset(("Pass", "Choice", "Wait", "Succeed", "Fail", "Checkpoint"))
"""Types without a result, or whose input is their output where no field says otherwise."""
_DECIDED: Final = Record(
    DataPath(INPUT),
    tuple(
        (key, DataPath(RESULT, (key,))) for key in ("approval", "approver", "timestamp", "comment")
    ),
)
"""The input of an Approval with its decision merged into it."""


class _JsonPathState:
    """Reads the fields of a state whose query language is JSONPath."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.state = state
        self.data = read_path(state.get("InputPath", "$"))

    def input(self) -> Term:
        """Return what the work of the state gets."""
        if "Parameters" in self.state:
            return read_template(self.state["Parameters"], self.data)
        return self.data

    def result(self) -> Term:
        """Return the result of the state, selected."""
        result: Term = DataPath(RESULT)
        if self.state["Type"] in _HANDS_ON - {"Checkpoint"}:
            result = Literal(self.state["Result"]) if "Result" in self.state else self.input()
        if "ResultSelector" in self.state:
            return read_template(self.state["ResultSelector"], result)
        return result

    def output(self) -> Term:
        """Return the data behind the state."""
        made, kind = self.data, self.state["Type"]
        if kind == "Approval" and "ResultPath" not in self.state:
            made = _DECIDED
        elif "ResultPath" in self.state or kind == "Pass" or kind not in _HANDS_ON:
            made = _placed(self.state.get("ResultPath", "$"), self.result())
        return read_path(self.state.get("OutputPath", "$"), made)

    def condition(self, rule: Mapping[str, Any]) -> Term:
        return read_rule(rule, self.decided() if self.state["Type"] == "Approval" else self.data)

    def decided(self) -> Term:
        """Return what the rules of an Approval read: its decision at the root and at ResultPath."""
        path = self.state.get("ResultPath")
        if path == "$":
            return DataPath(RESULT)
        placed = _placed(path, DataPath(RESULT))
        return replace_term(_DECIDED, lambda each: placed if each == DataPath(INPUT) else None)

    def handed(self, rule: Mapping[str, Any]) -> Term | None:
        """Return the data that a rule of a Choice hands on."""
        return None

    def caught(self, catcher: Mapping[str, Any]) -> Term:
        return _placed(catcher.get("ResultPath", "$"), DataPath(ERROR))

    def assigned(self, holder: Mapping[str, Any], *, caught: bool = False) -> dict[str, Term]:
        data: Term = DataPath(ERROR)
        if not caught:
            data = self.result() if holder is self.state else DataPath(INPUT)
        return _members(read_template(holder.get("Assign") or {}, data))

    def fields(self) -> dict[str, Term]:
        found: dict[str, Term] = {
            key: Literal(self.state[key]) for key in _TERM_FIELDS if key in self.state
        }
        for key, value in self.state.items():
            if key.endswith("Path") and key not in _STAGES:
                found[key.removesuffix("Path")] = read_path(value, self.data)
        if "ItemsPath" in self.state or self.state["Type"] == "Map":
            found.setdefault("Items", read_path(self.state.get("ItemsPath", "$"), self.data))
        for key in ("ItemSelector", "Prompt"):
            if key in self.state:
                found[key] = read_template(self.state[key], self.data)
        if self.state["Type"] == "Map" and "Parameters" in self.state:
            found["ItemSelector"] = read_template(self.state["Parameters"], self.data)
        return found


_STAGES: Final = frozenset(("InputPath", "ResultPath", "OutputPath"))
"""Fields that say where data comes from and goes to, which `input` and `output` have."""


def _members(term: Term) -> dict[str, Term]:
    """Return the members of an object that is written out."""
    if isinstance(term, Record):
        return dict(term.members)
    held = term.value if isinstance(term, Literal) and isinstance(term.value, dict) else {}
    return {key: Literal(value) for key, value in held.items()}


def _placed(path: Json, value: Term) -> Term:
    """Return the input of a state in which something is at a ResultPath."""
    if path is None:
        return DataPath(INPUT)
    try:
        segments = parse_path(str(path)).segments
    except ExpressionFault:
        return Unknown(str(path))
    steps = tuple(each for each in segments if isinstance(each, str | int))
    return put(DataPath(INPUT), steps, value)


def _rules(
    state: Mapping[str, Any], pointer: str, read: "_JsonataState | _JsonPathState"
) -> Iterator[StepExit]:
    """Yield the exits with conditions."""
    for index, rule in objects(state, "Choices"):
        yield StepExit(
            read.condition(rule),
            rule.get("Next"),
            f"{pointer}/Choices/{index}",
            read.handed(rule),
            read.assigned(rule),
        )


def _ends(
    state: Mapping[str, Any], pointer: str, read: "_JsonataState | _JsonPathState"
) -> Iterator[StepExit]:
    """Yield the exit without a condition, none where a Choice fails instead."""
    if state["Type"] in ("Succeed", "Fail"):
        return
    for field in ("Default", "Next"):
        if field in state:
            output = read.handed(state) if state["Type"] == "Choice" else None
            yield StepExit(None, state[field], f"{pointer}/{field}", output)
            return
    if state["Type"] != "Choice":
        yield StepExit(None, None, pointer)


def _taken(exits: tuple[StepExit, ...]) -> tuple[StepExit, ...]:
    """Return the exits that may be taken, where it is known whether some conditions hold.

    If none holds the last one is left, so that the state still decides, and fails.
    """
    found: list[StepExit] = []
    for each in exits:
        holds = True if each.condition is None else known_truth(each.condition)
        if holds is False:
            continue
        output = None if each.output == DataPath(INPUT) else each.output
        condition = each.condition if holds is None else None
        found.append(each._replace(condition=condition, output=output))
        if holds:
            break
    return tuple(found) or exits[-1:]


# Folding ---------------------------------------------------------------------------------------


def passes_on(step: WorkStep) -> bool:
    """Whether a step does nothing but lead to the next one."""
    if step.kind not in ("Pass", "Choice") or len(step.exits) != 1:
        return False
    (only,) = step.exits
    changes = (
        step.output != DataPath(INPUT) or step.assign or only.output is not None or only.assign
    )
    return not changes and only.condition is None and only.target is not None


def fold(flow: Flow, omit: Callable[[WorkStep], bool] = passes_on) -> Flow:
    """Return a flow whose steps decide for themselves what comes next.

    Args:
        flow: The steps of a machine.
        omit: Whether a step is left out because it does nothing in the writer's language; it must
            have one exit.

    Returns:
        The flow without such steps, and without a Choice that only one step leads to: its exits
        are that step's.
    """
    flow = bypass(flow, omit)
    before = Counter(target for step in flow.steps.values() for target in step.targets)
    before[flow.start] += 1
    steps = dict(flow.steps)
    for name in flow.steps:
        step = steps.get(name)
        if step is None:
            continue
        while (choice := _foldable(step, steps, before)) is not None:
            del steps[choice.name]
            exits = (*step.exits[:-1], *choice.exits)
            step = replace(step, exits=exits, choice=step.choice or choice.pointer)
        steps[name] = step
    return Flow(flow.start, steps, flow.pointer)


def _foldable(
    step: WorkStep, steps: Mapping[str, WorkStep], before: Mapping[str, int]
) -> WorkStep | None:
    """Return the Choice behind a step whose exits may be the step's own."""
    if not step.exits or step.kind in ("Succeed", "Fail"):
        return None
    last = step.exits[-1]
    following = steps.get(last.target or "")
    if following is None or following.kind != "Choice" or following is step:
        return None
    if last.condition is not None or last.output is not None or last.assign:
        return None
    if following.output != DataPath(INPUT) or following.assign or before[following.name] != 1:
        return None
    return following


def bypass(flow: Flow, omit: Callable[[WorkStep], bool] = passes_on) -> Flow:
    """Return a flow without some of its steps: the ways to each lead to the step behind it.

    Args:
        flow: The steps of a machine.
        omit: Whether a step is left out; it must have one exit.
    """
    leads = {
        name: str(step.exits[0].target)
        for name, step in flow.steps.items()
        if len(step.exits) == 1 and step.exits[0].target is not None and omit(step)
    }

    def target(name: str | None) -> str | None:
        seen = set[str]()
        while name in leads and name not in seen:
            seen.add(name)
            name = leads[name]
        return name

    kept = {name for name in flow.steps if name not in leads}
    kept |= {name for name in leads if target(name) in leads}  # a cycle of omitted steps
    steps = {
        name: replace(
            step,
            exits=tuple(each._replace(target=target(each.target)) for each in step.exits),
            handlers=tuple(
                each._replace(target=target(each.target) or each.target) for each in step.handlers
            ),
        )
        for name, step in flow.steps.items()
        if name in kept
    }
    return Flow(target(flow.start) or flow.start, steps, flow.pointer)
