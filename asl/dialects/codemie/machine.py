"""The machine of a workflow: its states, in JSONata.

Each state becomes a Task whose `Output` writes its answer into the context. A condition or a switch
becomes a Choice behind it, a fork a Parallel, an iteration a Map, a gate an Approval in front.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.codemie.conditions import translated
from asl.dialects.codemie.config import END, CodemieState, Config
from asl.dialects.codemie.graph import Ambiguous, Graph
from asl.dialects.codemie.options import DEFAULT, CodemieOptions
from asl.dialects.codemie.tasks import INPUT, Tasks
from asl.dialects.expressions import query
from asl.dialects.names import FreshNames
from asl.expr.jsonata.javascript import literal
from asl.states.machines import nested_machines

__all__ = ["CodemieMachine", "build_machine"]

MAX_NAME: Final = 80
RECURSION_LIMIT: Final = 50
"""How many states a run may enter where the workflow does not say."""
MAX_DEPTH: Final = 30
"""How deep iterations and forks may stand in each other."""


class CodemieMachine(NamedTuple):
    """A machine, where its parts were written, and what there is to say."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    reached: frozenset[str]
    findings: list[Finding]
    owners: Mapping[str, str]
    """The state of the workflow to which each of the machine belongs."""


class RegionScope(NamedTuple):
    """The part of a workflow for one machine: its end, whether it runs for an item, its depth."""

    stop: str = END
    item: bool = False
    depth: int = 0


def build_machine(config: Config, options: CodemieOptions = DEFAULT) -> CodemieMachine:
    """Build the machine of a workflow without errors."""
    builder = _Builder(config, options)
    machine = builder.machine(config.start.id, RegionScope())
    findings = [*builder.findings, *builder.tasks.findings]
    reached = frozenset(builder.reached)
    return CodemieMachine(machine, builder.origins, reached, findings, builder.owners)


class _Builder:
    def __init__(self, config: Config, options: CodemieOptions) -> None:
        self.config = config
        self.graph = Graph(config.states)
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.reached: set[str] = set()
        self.findings: list[Finding] = []
        self.waiting: set[str] = set()
        """States that were reported to wait while others do."""
        self.names = FreshNames()
        self.owners: dict[str, str] = {}
        self.left = 20 * len(config.states) + 200
        limit = config.value.get("recursion_limit", RECURSION_LIMIT)
        self.limits = dict.fromkeys(self.graph.counted(limit), limit)
        """How many states a run may enter, by the states behind which it may have entered them."""
        self.tasks = Tasks(config, options, self.limits)

    def name(self, text: str) -> str:
        """Return a name that no other state of the whole document has."""
        return self.names.new(text if len(text) <= MAX_NAME else text[: MAX_NAME - 6])

    def named(self, state: str, part: str = "") -> str:
        """Return such a name for a state of the workflow, or for a part of one."""
        found = self.name(f"{state}:{part}" if part else state)
        self.owners[found] = state
        return found

    def found(self, code: str, message: str, pointer: str, hint: str | None = None) -> None:
        self.findings.append(Finding(code, message, pointer, hint))

    def written(self, value: dict[str, Json], pointer: str) -> dict[str, Json]:
        """Remember where an object of the machine is written."""
        self.origins.append((value, pointer))
        return value

    def machine(self, start: str, scope: RegionScope, *, asked: bool = False) -> dict[str, Json]:
        """Build the machine that begins with a state; *asked* says that its gate is behind us."""
        return _Machine(self, scope).build_machine(start, asked)

    def parted(self, state: CodemieState, scope: RegionScope) -> dict[str, Json]:
        """Build the machine of an iteration whose first state forks."""
        return _Machine(self, scope).parted(state)

    def fits(
        self, state: CodemieState, heads: Iterable[str], stop: str, scope: RegionScope
    ) -> bool:
        """Whether the states from *heads* on can stand in a machine of their own."""
        if state.id in self.graph.reachable(heads, stop) or scope.depth >= MAX_DEPTH:
            self.found(
                "CM-UNSTRUCTURED",
                f"a branch leads back to {state.id!r}, the state that started it",
                f"{state.pointer}/next",
                f"join the branches first ({stop!r} is their join), and lead back from there",
            )
            return False
        return True

    def stored(self, machine: Mapping[str, Any]) -> list[Json]:
        """Return the keys of the answers that the states of a machine store."""
        keys = self.tasks.answers.keys
        return [*dict.fromkeys(keys[each] for each in self.working(machine))]

    def collected(self, machine: Mapping[str, Any]) -> list[Json]:
        """Return the keys whose answers an iteration collects for all items."""
        states = self.config.states
        appended = (
            each for each in self.working(machine) if "append_to_context" in states[each].next
        )
        found = (*self.last(machine), *appended)
        return [*dict.fromkeys(self.tasks.answers.keys[each] for each in found)]

    def last(self, machine: Mapping[str, Any]) -> Iterator[str]:
        """Yield the state of the workflow that ends a machine, and those that end its branches."""
        states = machine["States"].items()
        ends = ((name, each) for name, each in states if each.get("End") and name in self.owners)
        for name, state in islice(ends, 1):
            yield self.owners[name]
            for _, inner in nested_machines(state):
                yield from self.last(inner)

    def working(self, machine: Mapping[str, Any]) -> Iterator[str]:
        """Yield the states of the workflow that run in a machine."""
        for name, state in machine["States"].items():
            if state["Type"] in ("Task", "Pass") and name in self.owners:
                yield self.owners[name]
            for _, inner in nested_machines(state):
                yield from self.working(inner)

    def waits(self, name: str, meeting: str) -> None:
        """Report a state that waits for others while branches are on their way to another one."""
        if meeting == END or name in self.waiting:
            return
        self.waiting.add(name)
        self.found(
            "CM-NESTED-JOIN",
            f"{name!r} joins branches before {meeting!r} does; the platform may run that twice",
            f"{self.config.states[name].pointer}/id",
            f"let all branches join in {meeting!r}",
        )


class _Machine:
    """One machine under construction."""

    def __init__(self, builder: _Builder, scope: RegionScope) -> None:
        self.builder = builder
        self.config = builder.config
        self.scope = scope
        self.states: dict[str, Json] = {}
        self.tasks: dict[str, str] = {}
        """The names of the Tasks by state."""
        self.gates: dict[str, str] = {}
        self.todo: list[str] = []
        self.ending: str | None = None
        self.cancelled: str | None = None

    def build_machine(self, start: str, asked: bool) -> dict[str, Json]:
        entry = self.task(start) if asked else self.entry(start)
        if entry is None:  # a branch without states
            entry = self.builder.name(END)
            self.states[entry] = {"Type": "Pass", "End": True}
        return self.closed(entry)

    def parted(self, state: CodemieState) -> dict[str, Json]:
        to = state.next
        entry = self.fork(state, to["state_ids"]) if "state_ids" in to else self.choice(state)
        return self.closed(entry)

    def closed(self, entry: str) -> dict[str, Json]:
        """Build what is still to be built of the machine that begins here."""
        while self.todo:
            self.state(self.config.states[self.todo.pop(0)])
        if self.ending is not None:
            self.states[self.ending] = {"Type": "Succeed"}
        if self.cancelled is not None:
            self.states[self.cancelled] = {
                "Type": "Fail",
                "Error": "CM.Aborted",
                "Cause": "the run was cancelled at a confirmation",
            }
        return {"StartAt": entry, "States": self.states}

    # Names

    def task(self, name: str) -> str:
        """Return the name of a state's Task, which is to be built in this machine."""
        if name not in self.tasks:
            self.tasks[name] = self.builder.named(name)
            self.todo.append(name)
        return self.tasks[name]

    def entry(self, name: str) -> str | None:
        """Return where to go for a state: its gate, if it has one; None where this machine ends."""
        if name in (self.scope.stop, END):
            return None
        state = self.config.states[name]
        if not state.gated:
            return self.task(name)
        if name not in self.gates:
            # The Task is named first: it has the author's name.
            task = self.task(name)
            self.gates[name] = self.gate(state, task)
            if self.scope.item:
                self.builder.found(
                    "CM-PERITEM-GATE",
                    f"{name!r} runs for each item, so its confirmation is requested for each item",
                    state.pointer,
                )
        return self.gates[name]

    def target(self, name: str) -> str:
        """Return the name of the state that a Choice leads to."""
        entry = self.entry(name)
        if entry is not None:
            return entry
        if self.ending is None:
            self.ending = self.builder.name(END)
        return self.ending

    def going(self, name: str) -> dict[str, Json]:
        """Return the transition to a state."""
        entry = self.entry(name)
        return {"End": True} if entry is None else {"Next": entry}

    # States

    def state(self, state: CodemieState) -> None:
        builder = self.builder
        builder.reached.add(state.id)
        builder.left -= 1
        if builder.left < 0:
            builder.found(
                "CM-UNSTRUCTURED",
                "the branches of this workflow lead into each other",
                state.pointer,
            )
            self.todo.clear()
            return
        name = self.tasks[state.id]
        made = self.written(state, builder.tasks.task(state, name, item=self.scope.item))
        self.states[name] = made
        if made["Type"] == "Fail":
            return
        to = state.next
        if state.iter_key is not None and (state.finishes or not self.scope.item):
            self.iterated(state, made)
        elif "condition" in to or ("switch" in to and to["switch"]["cases"]):
            made["Next"] = self.choice(state)
        elif len(to.get("state_ids", ())) > 1:
            made["Next"] = self.fork(state, to["state_ids"])
        else:  # a switch without cases, a fork of one branch, or a plain transition
            ((target, _),) = state.targets()
            made |= self.going(target)

    def written(
        self, state: CodemieState, value: dict[str, Json], below: str = ""
    ) -> dict[str, Json]:
        return self.builder.written(value, f"{state.pointer}{below}")

    # Transitions

    def choice(self, state: CodemieState) -> str:
        """Build the Choice of a state's conditions; return its name."""
        builder = self.builder
        name = builder.named(state.id, "if")
        self.states[name] = choice = self.written(state, {"Type": "Choice"}, "/next")
        choice["Choices"] = [
            self.written(
                state,
                {
                    "Condition": translated(text, builder.tasks.answers.keys[state.id]),
                    **self.counted(state, target),
                    "Next": self.target(target),
                },
                f"/next/{place}",
            )
            for text, target, place in state.conditions()
        ]
        choice |= {**self.counted(state, state.otherwise), "Default": self.target(state.otherwise)}
        if self.scope.item:
            self.builder.found(
                "CM-PERITEM-BRANCH",
                f"{state.id!r} branches for each item; the platform runs each target once",
                f"{state.pointer}/next",
            )
        return name

    def counted(self, state: CodemieState, target: str) -> dict[str, Json]:
        """Return what a Choice does to hold the bound on states."""
        limit = self.builder.limits.get(state.id)
        if limit is None or target == END:
            return {}
        return {"Output": query(f"$codemie_step({INPUT}, {limit})")}

    def fork(self, state: CodemieState, heads: list[str]) -> str:
        """Build the Parallel of a state's branches; return its name."""
        builder, scope = self.builder, self.scope
        meeting = builder.graph.meeting(heads)
        name = builder.named(state.id, "fork")
        if not builder.fits(state, heads, meeting, scope):
            return name
        for each in sorted(builder.graph.reachable(heads, meeting)):
            if builder.graph.entries[each] > 1:
                builder.waits(each, meeting)
        inner = RegionScope(meeting, scope.item, scope.depth + 1)
        self.states[name] = fork = self.written(
            state,
            {
                "Type": "Parallel",
                "Arguments": query(f"$codemie_branch({INPUT})"),
                "Branches": [],
                "Output": "",
            },
            "/next",
        )
        going = self.going(meeting)  # what follows has the plain names
        branches = [builder.machine(head, inner) for head in heads]
        fork["Branches"] = [*branches]
        again = builder.graph.is_repeated(state.id)
        fork["Output"] = self.joined([builder.stored(each) for each in branches] if again else [])
        fork |= going
        return name

    def joined(self, keys: list[Json]) -> str:
        """Return the data behind branches; *keys* are those of their answers."""
        parts = [INPUT, "$states.result", *([literal(keys)] if keys else [])]
        return query(f"$codemie_join({', '.join(parts)})")

    def iterated(self, state: CodemieState, made: dict[str, Json]) -> None:
        builder, scope = self.builder, self.scope
        worker, key = state.next.get("state_id"), state.next["iter_key"]
        heads = [target for target, _ in state.targets()]
        try:
            graph = builder.graph
            meeting = graph.parting(state.id) if worker is None else graph.join(worker)
        except Ambiguous as targets:
            builder.found(
                "CM-AMBIGUOUS-JOIN",
                f"the last states of this iteration lead to different states: {targets}",
                f"{state.pointer}/next",
                "let all states with 'finish_iteration' lead to the same state",
            )
            return
        if not builder.fits(state, heads, meeting, scope):
            return
        if scope.depth and meeting not in (scope.stop, END):
            builder.waits(meeting, scope.stop)
        name = builder.named(state.id, "each")
        source = builder.tasks.answers.keys[state.id]
        include = state.next.get("include_in_iterator_context")
        parts = [INPUT, "$states.context.Map.Item.Value"]
        if include is not None:
            parts.append(literal(include))
        each = self.written(
            state,
            {
                "Type": "Map",
                "Items": query(f"$codemie_items({INPUT}, {literal(key)}, {literal(source)})"),
                "ItemSelector": query(f"$codemie_branch({', '.join(parts)})"),
            },
            "/next",
        )
        if "max_concurrency" in self.config.value:
            each["MaxConcurrency"] = self.config.value["max_concurrency"]
        inner = RegionScope(meeting, True, scope.depth + 1)
        made["Next"] = name
        if worker is None:
            each["ItemProcessor"] = builder.parted(state, inner)
        else:
            first = self.config.states[worker]
            each["ItemProcessor"] = builder.machine(worker, inner, asked=True)
            if first.gated:
                made["Next"] = self.gate(first, name)
            self._mismatches(worker, key)
        self.states[name] = each
        each["Output"] = self.joined(builder.collected(each["ItemProcessor"]))
        each |= self.going(meeting)

    def _mismatches(self, worker: str, key: str) -> None:
        seen: set[str] = set()
        name = worker
        while name != END and name not in seen:
            seen.add(name)
            each = self.config.states[name]
            if each.iter_key is None or each.finishes:
                return
            if each.iter_key != key:
                self.builder.found(
                    "CM-ITER-MISMATCH",
                    f"the item is passed on; {each.iter_key!r} of this output is not iterated",
                    f"{each.pointer}/next/iter_key",
                    "set 'finish_iteration' on the state to iterate its own output",
                )
            name = each.next["state_id"]

    def gate(self, state: CodemieState, following: str) -> str:
        """Put a gate in front of a state; return its name."""
        builder = self.builder
        name = builder.named(state.id, "gate")
        if self.cancelled is None:
            self.cancelled = builder.name("cancelled")
        prompt: dict[str, Json] = {"Title": f"Continue with {state.id}?"}
        if state.value.get("task"):
            prompt["Description"] = builder.tasks.text(state, item=self.scope.item)
        parts = [INPUT, "$states.result"]
        if self.config.talks:
            prompt["History"] = query(f"$codemie_history({INPUT})")
            parts.append(literal(state.id))
        self.states[name] = self.written(
            state,
            {
                "Type": "Approval",
                "Prompt": prompt,
                "Options": ["continue", "cancel"],
                "Choices": [
                    {"Condition": query(f"{INPUT}.approval = 'cancel'"), "Next": self.cancelled}
                ],
                "Output": query(f"$codemie_resume({', '.join(parts)})"),
                "Next": following,
            },
        )
        return name
