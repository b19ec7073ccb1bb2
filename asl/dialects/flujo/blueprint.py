"""A blueprint as the reader sees it: steps of one shape, machines with states and rules.

It is made of a value whose shape has been checked.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from typing import Any, Final, NamedTuple

from asl.core.pointers import escape
from asl.core.values import Json, compact

__all__ = [
    "ANY",
    "EVENTS",
    "KINDS",
    "STEP",
    "Blueprint",
    "BlueprintMachine",
    "BlueprintStep",
    "Rule",
    "StepBody",
    "body_of",
    "named",
    "steps_of",
]

ANY: Final = "*"
STEP: Final = "_step"
"""Ends the name of a state's only step, where a field of the context has that of the state."""
CONTEXT_SET: Final = "flujo.builtins.context_set"
EVENTS: Final = ("success", "failure", "pause")
KINDS: Final = (
    "step", "parallel", "conditional", "loop", "map", "dynamic_router", "hitl", "cache",
    "agentic_loop", "tree_search", "StateMachine",
)  # fmt: skip
_SCRATCHPAD: Final = re.compile(r"scratchpad(?:\.get\(|\[|\.)[\\'\"]*current_state")
_TRUE = frozenset(("True", "TRUE"))
_FALSE = frozenset(("False", "FALSE"))


def named(value: Json) -> str:
    """Return a name as text, as the platform turns any scalar into one."""
    return value if isinstance(value, str) else str(value)


class StepBody(NamedTuple):
    """Steps that follow each other, and where they are written."""

    steps: "tuple[BlueprintStep, ...]"
    pointer: str


def body_of(value: Json, pointer: str) -> StepBody:
    """Return the steps of a body: a list, an object with `steps`, or a single step."""
    if isinstance(value, dict) and "steps" in value:
        value, pointer = value["steps"], f"{pointer}/steps"
    if isinstance(value, dict):
        return StepBody((BlueprintStep(value, pointer),), pointer)
    listed = value if isinstance(value, list) else []
    return StepBody(
        tuple(BlueprintStep(each, f"{pointer}/{at}") for at, each in enumerate(listed)), pointer
    )


@dataclass(frozen=True)
class Rule:
    """One entry of `transitions`."""

    index: int
    source: str
    event: str
    target: str
    when: str | None
    pointer: str


@dataclass(frozen=True)
class BlueprintStep:
    """One step."""

    value: Mapping[str, Any]
    pointer: str

    @property
    def kind(self) -> str:
        kind: str = self.value.get("kind") or "step"
        return kind

    @property
    def name(self) -> str:
        return named(self.value.get("name", self.value.get("step", "")))

    def at(self, *keys: str) -> str:
        """Return the JSON Pointer of something in this step."""
        return self.pointer + "".join(f"/{escape(key)}" for key in keys)

    @property
    def config(self) -> Mapping[str, Any]:
        return self.value.get("config") or {}

    @property
    def retries(self) -> int:
        """How often a failing attempt is repeated."""
        found: int = self.config.get("max_retries", 1)
        return found

    @property
    def timeout(self) -> float | None:
        """Seconds that an attempt may take."""
        found = self.config.get("timeout_s", self.config.get("timeout"))
        return float(found) if found else None

    @property
    def flags(self) -> dict[str, Json]:
        """What is written into the context."""
        found: dict[str, Json] = {}
        if self.value.get("updates_context") is True:
            found["updates_context"] = True
        if isinstance(self.value.get("sink_to"), str):
            found["sink_to"] = self.value["sink_to"]
        return found

    @property
    def agent(self) -> str | None:
        """The agent that is asked, by its name, id or import path."""
        uses = self.value.get("uses")
        if isinstance(uses, str) and uses:
            return uses.removeprefix("agents.")
        agent = self.value.get("agent")
        if isinstance(agent, dict):
            agent = agent.get("id", agent.get("path"))
        return agent if isinstance(agent, str) and agent else None

    @property
    def params(self) -> Mapping[str, Json]:
        """The parameters of the agent."""
        agent = self.value.get("agent")
        found = agent.get("params") if isinstance(agent, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def requested(self) -> str | None:
        """The state that the step itself names as the next one, None for most steps."""
        held = self.params or self.value.get("input")
        if self.agent is None or self.agent.replace(":", ".") != CONTEXT_SET:
            return None
        if not isinstance(held, dict) or held.get("path") not in (
            "next_state",
            "context.next_state",
        ):
            return None
        return held["value"] if isinstance(held.get("value"), str) else None

    @property
    def outputs(self) -> Iterator[dict[str, Json]]:
        """What comes back of an import: `{child, parent}`, paths of both contexts."""
        outputs = self.config.get("outputs")
        if isinstance(outputs, dict):
            outputs = [{"child": child, "parent": parent} for child, parent in outputs.items()]
        for each in outputs or ():
            child, parent = each.get("child", each.get("from")), each.get("parent", each.get("to"))
            yield {"child": child, "parent": parent}

    # What steps hold

    def body(self, *keys: str) -> StepBody:
        """Return the steps at some keys."""
        value: Any = self.value
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return body_of(value, self.at(*keys))

    @property
    def spec(self) -> Mapping[str, Any]:
        """What a loop, a map or a router says under its own key."""
        key = {"dynamic_router": "router"}.get(self.kind, self.kind)
        found = self.value.get(key)
        return found if isinstance(found, dict) else {}

    @cached_property
    def branches(self) -> dict[str, StepBody]:
        """The branches of a parallel, a conditional or a router, by name."""
        keys = ("router", "branches") if self.kind == "dynamic_router" else ("branches",)
        held = self.spec if self.kind == "dynamic_router" else self.value
        listed = held.get("branches") or {}
        return {_branch(key): self.body(*keys, key) for key in listed}

    @property
    def default(self) -> StepBody | None:
        """The branch of a conditional that is taken where no other is."""
        return None if self.value.get("default_branch") is None else self.body("default_branch")

    @property
    def conditions(self) -> Iterator[tuple[str, str]]:
        """The conditions of the step, with their places."""
        if self.kind == "StateMachine":
            yield from (
                (rule.when, f"{rule.pointer}/when") for rule in self.machine.rules if rule.when
            )
        expression = self.value.get("condition_expression")
        if self.kind == "conditional" and isinstance(expression, str):
            yield expression, self.at("condition_expression")
        over = self.spec.get("exit_expression") if self.kind == "loop" else None
        if isinstance(over, str):
            yield over, self.at("loop", "exit_expression")

    @property
    def fallback(self) -> "BlueprintStep | None":
        found = self.value.get("fallback")
        return BlueprintStep(found, self.at("fallback")) if isinstance(found, dict) else None

    @property
    def wrapped(self) -> "BlueprintStep":
        """What a cache wraps."""
        return BlueprintStep(self.value["wrapped_step"], self.at("wrapped_step"))

    @cached_property
    def machine(self) -> "BlueprintMachine":
        """The state machine that this step is."""
        return BlueprintMachine(self)

    def bodies(self) -> Iterator[StepBody]:
        """Yield everything with steps in it."""
        match self.kind:
            case "StateMachine":
                yield from self.machine.states.values()
            case "parallel" | "conditional" | "dynamic_router":
                yield from self.branches.values()
                if self.default is not None:
                    yield self.default
            case "loop" | "map":
                yield self.body(self.kind, "body")
            case "cache":
                yield StepBody((self.wrapped,), self.at("wrapped_step"))
        if self.fallback is not None:
            yield StepBody((self.fallback,), self.at("fallback"))


def _branch(key: str) -> str:
    return "true" if key in _TRUE else "false" if key in _FALSE else key


class BlueprintMachine:
    """The states of a machine, and the rules between them."""

    def __init__(self, step: BlueprintStep) -> None:
        value = step.value
        self.name = step.name
        self.pointer = step.pointer
        self.start = named(value["start_state"])
        ends = value.get("end_states") or []
        self.ends = [named(each) for each in (ends if isinstance(ends, list) else [ends])]
        self.states = {
            name: step.body("states", name) for name in value["states"] if name not in self.ends
        }
        """The states that run, without the end states."""
        self.listed = [*value["states"]]
        """All entries under `states`."""
        self.cap = max(1, 10 * len(self.listed))
        self.rules = [
            Rule(
                index,
                named(rule["from"]),
                rule["on"],
                named(rule["to"]),
                _when(rule.get("when")),
                f"{step.pointer}/transitions/{index}",
            )
            for index, rule in enumerate(value.get("transitions") or [])
        ]
        self._of: dict[tuple[str, str], list[Rule]] = {}
        self._first: dict[tuple[str, str, str | None], Rule] = {}
        for rule in self.rules:
            self._of.setdefault((rule.source, rule.event), []).append(rule)
            self._first.setdefault((rule.source, rule.event, rule.when), rule)

    def applying(self, state: str, event: str) -> Iterator[Rule]:
        """Yield the rules that are tried behind a state at an event, in their order."""
        own = self._of.get((state, event), ())
        others = self._of.get((ANY, event), ()) if state != ANY else ()
        return merge(own, others, key=lambda rule: rule.index)

    def hiding(self, rule: Rule) -> Rule | None:
        """Return the first rule that always matches before a rule, if there is one."""
        firsts = (
            self._first.get((source, rule.event, when))
            for source in {ANY, rule.source}
            for when in {None, rule.when}
        )
        earlier = [each for each in firsts if each is not None and each.index < rule.index]
        return min(earlier, key=lambda each: each.index, default=None)

    def tried(self, state: str, event: str) -> list[Rule]:
        """Return the rules that are tried behind a state at an event, up to one that always holds.

        A rule with the condition of an earlier one is left out.
        """
        found: list[Rule] = []
        seen: set[str] = set()
        for rule in self.applying(state, event):
            if rule.when in seen:
                continue
            found.append(rule)
            if rule.when is None:
                break
            seen.add(rule.when)
        return found

    def covers(self, state: str, event: str) -> bool:
        """Whether some rule matches in any case."""
        return any(rule.when is None for rule in self.tried(state, event))

    @cached_property
    def targets(self) -> dict[str, set[str]]:
        """The states that each state leads to, without pauses that stay in it."""
        return {
            name: {
                rule.target
                for rule in self.rules
                if rule.source in (ANY, name) and (rule.event, rule.target) != ("pause", name)
            }
            & self.states.keys()
            | ({str(each.requested) for each in body.steps[-1:]} & self.states.keys())
            for name, body in self.states.items()
        }

    @cached_property
    def leads(self) -> dict[str, set[str]]:
        """The states that may run after each state, and the state itself."""
        found: dict[str, set[str]] = {}
        for name in self.states:
            reached, todo = {name}, [name]
            while todo:
                for each in self.targets[todo.pop()] - reached:
                    reached.add(each)
                    todo.append(each)
            found[name] = reached
        return found

    @property
    def repeats(self) -> bool:
        """Whether a state may run again."""
        return any(
            name in self.leads[target]
            for name, targets in self.targets.items()
            for target in targets
        )


def _when(value: Json) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


class Blueprint:
    """A whole blueprint."""

    def __init__(self, value: Mapping[str, Any], base: str = "") -> None:
        self.value = value
        self.steps = body_of(value["steps"], f"{base}/steps").steps
        agents = value.get("agents")
        self.agents: Mapping[str, Any] = agents if isinstance(agents, dict) else {}
        imports = value.get("imports")
        self.imports: Mapping[str, Any] = imports if isinstance(imports, dict) else {}
        self.imported: dict[str, Blueprint] = {}
        """Those of its imports that were read."""

    def of(self, step: "BlueprintStep") -> "Blueprint | None":
        """Return the blueprint that a step runs, None for any other step."""
        uses = step.value.get("uses")
        holder, _, alias = uses.partition(".") if isinstance(uses, str) else ("", "", "")
        return self.imported.get(alias) if holder == "imports" else None

    @cached_property
    def names_scratchpad(self) -> bool:
        """Whether something reads the current state of a machine in `context.scratchpad`."""
        return _SCRATCHPAD.search(compact(self.value)) is not None

    @cached_property
    def all_steps(self) -> list[BlueprintStep]:
        """Every step, from top to bottom."""
        return [*steps_of(self.steps)]


def steps_of(steps: tuple[BlueprintStep, ...]) -> Iterator[BlueprintStep]:
    """Yield steps and all steps in them."""
    for step in steps:
        yield step
        for body in step.bodies():
            yield from steps_of(body.steps)


IDENTIFIER: Final = r"[A-Za-z_]\w*"
USES: Final = re.compile(rf"{IDENTIFIER}(?:\.{IDENTIFIER})*(?::{IDENTIFIER}(?:\.{IDENTIFIER})*)?")
"""`agents.NAME`, `imports.NAME`, `pkg.mod` or `pkg.mod:attr`."""
