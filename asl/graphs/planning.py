"""Plan a document without running it: its paths, agents and maximum cost.

A bound holds for agents that stay within the budget reserved for a call (8.11). It is no estimate:
without a limit in the document there is none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from asl.core.values import Json, is_integer
from asl.graphs.model import START, GraphState, MachineGraph, graph_of
from asl.graphs.paths import first_paths, strongly_connected
from asl.states import type_of
from asl.states.machines import nested_machines, scoped_states
from asl.states.numbers import parse_amount

__all__ = ["Bound", "Plan", "make_plan"]

STOPS: Final = ("Fail", "PauseAndNotify")
"""Budget actions that prevent further spending."""
ATTEMPTS: Final = 3
"""The default `MaxAttempts` of a retrier."""
ZERO: Final = Decimal(0)
_Scopes: TypeAlias = tuple[Mapping[str, Json], ...]
"""The documents around a state that say what tools it may use, the whole one first."""
_Found: TypeAlias = tuple[str, Mapping[str, Json], _Scopes]
"""A state by its name, with those."""
_Names: TypeAlias = Callable[[Mapping[str, Json], _Scopes], Iterable[str]]
_ASKED: Final = ("Agent", "Arbiter", "Check", "Using", "Validator")
"""The fields of blocks that name an agent."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum of a cost or token count.

    `most` is None without a bound; then `states` are the unlimited states. Otherwise one call of
    one of `states` may exceed it, and one call in each visit of a state in `visits`: a limit is
    exceeded by one call at most.
    """

    maximum: Decimal | None
    states: tuple[str, ...] = ()
    visits: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the bound as a JSON object."""
        if self.maximum is None:
            return {"most": None, "unlimited": list(self.states)}
        return {
            "most": float(self.maximum),
            "callsOf": list(self.states),
            "callPerVisitOf": list(self.visits),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The possible behaviour of a document (`asl.plan`); names come with their states."""

    ways: tuple[tuple[str, ...], ...]
    """The paths through the top-level states that take no transition twice."""
    complete: bool
    """Whether `ways` lists all paths."""
    agents: Mapping[str, list[str]]
    resources: Mapping[str, list[str]]
    tools: Mapping[str, list[str]]
    """The tools that agents may use, as written; `*` without a limit."""
    models: Mapping[str, list[str]]
    workflows: Mapping[str, list[str]]
    people: tuple[str, ...]
    """The states that ask people."""
    consent: Mapping[str, list[str]]
    """The tools whose calls need approval, as written."""
    counted: Mapping[str, list[str]]
    """Limits on tool calls, such as `search: 3`."""
    currency: str
    cost: Bound
    tokens: Bound

    def to_json(self) -> dict[str, Json]:
        """Return the plan as a JSON object."""
        return {
            "ways": [list(way) for way in self.ways],
            "complete": self.complete,
            "agents": dict(self.agents),
            "resources": dict(self.resources),
            "tools": dict(self.tools),
            "models": dict(self.models),
            "workflows": dict(self.workflows),
            "people": list(self.people),
            "consent": dict(self.consent),
            "counted": dict(self.counted),
            "currency": self.currency,
            "cost": self.cost.to_json(),
            "tokens": self.tokens.to_json(),
        }


def make_plan(document: Mapping[str, Json], prices: Mapping[str, Any], limit: int) -> Plan:
    """Return the plan of a valid document.

    Args:
        document: The document.
        prices: The price of a token by model (`asl.effects.prices.Prices`).
        limit: The largest number of listed paths.
    """
    document = _known(document)
    machine = graph_of(document)
    found = list(scoped_states(document, (document,)))
    ways, complete = _ways(machine, limit)
    budget = document.get("Budget", {})
    return Plan(
        ways,
        complete,
        _by_name(found, _agents),
        _by_name(found, _resources),
        _by_name(found, _tools),
        _by_name(found, _models),
        _by_name(found, lambda state, scopes: _text(state.get("WorkflowId"))),
        tuple(name for name, state, _ in found if state.get("Type") == "Approval"),
        _by_name(found, _consent),
        _by_name(found, _counted),
        budget.get("Currency", "USD"),
        _Measure("MaxCost", document, prices).document_bound(),
        _Measure("MaxTokens", document, prices).document_bound(),
    )


def _known(part: Json) -> Any:
    """Return a part of a template without states that depend on its parameters."""
    if type(part) is list:
        return [_known(each) for each in part]
    if type(part) is not dict:
        return part
    states = part.get("States")
    if type(states) is dict:
        part = {**part, "States": {key: states[key] for key in states if type(states[key]) is dict}}
    return {key: _known(each) for key, each in part.items()}


def _ways(machine: MachineGraph, limit: int) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Return the paths from START to the end that take no transition twice, and whether these are
    all.

    Transitions between the same two states count as one, such as two rules of a Choice.
    """
    further: dict[object, dict[object, None]] = {}
    for each in machine.transitions:
        further.setdefault(each.source, {})[each.target] = None

    def onwards(source: object) -> Iterator[tuple[tuple[object, object], object]]:
        for target in further.get(source, ()):
            # An Approval may go on by its answer alone, say.
            yield (source, target), target if target in further else None

    start: object = START
    found, complete = first_paths(start, onwards, limit)
    names = [tuple(name for _, name in way if isinstance(name, str)) for way in found]
    return tuple(names), complete


# Who is asked


def _by_name(found: list[_Found], names: _Names) -> dict[str, list[str]]:
    """Return the names used by states, each with its states."""
    table: dict[str, list[str]] = {}
    for name, state, scopes in found:
        for each in dict.fromkeys(names(state, scopes)):
            table.setdefault(each, []).append(name)
    return dict(sorted(table.items()))


def _text(value: Json) -> Iterator[str]:
    if type(value) is str:
        yield value


def _agents(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    if "Agent" in state:
        yield from _text(state["Agent"])
        fallback = scopes[0].get("Budget", {}).get("Fallback", {})
        if type(fallback) is dict and state.get("Budget", {}).get("Priority") != "critical":
            for entry in (fallback, *fallback.get("Cascade", ())):
                yield from _text(entry.get("Agent"))
    for agent in state.get("Agents", ()):
        yield from _text(agent)
    for block in ("Guardrails", "Context", "Tools", "Consensus"):
        yield from _asked(state.get(block))
    yield from _text(state.get("Arbiter"))
    streaming = state.get("Streaming")
    if type(streaming) is dict:
        for each in streaming.get("Callbacks", {}).values():
            yield from _text(each)


def _asked(block: Json) -> Iterator[str]:
    """Yield the agents that a block names at any depth, or the expressions of their names."""
    if type(block) is dict:
        for key, value in block.items():
            if key.removesuffix(".$") in _ASKED and type(value) is str:
                yield value
            else:
                yield from _asked(value)
    elif type(block) is list:
        for each in block:
            yield from _asked(each)


def _resources(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    yield from _text(state.get("Resource"))


def _tools(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    """Yield the tools that the agent of a Task may use under all policies."""
    if "Agent" not in state:
        return
    found: list[str] | None = None
    for document in scopes:
        listed, denied = _policy(document, state.get("Tools", {}) if document is scopes[-1] else {})
        if listed is not None:
            found = [each for each in listed if found is None or each in found]
        if found is not None:
            found = [each for each in found if each not in denied]
    yield from ["*"] if found is None else found


def _blocks(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[Mapping[str, Json]]:
    """Yield the tool policies that apply to the agent of a state."""
    if "Agent" in state or "Agents" in state:
        for block in (*(each.get("DefaultTools") for each in scopes), state.get("Tools")):
            if type(block) is dict:
                yield block


def _consent(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    """Yield the tools of a state whose calls need approval."""
    for block in _blocks(state, scopes):
        written = block.get("RequireApproval", block.get("RequireApproval.$", []))
        for rule in written if type(written) is list else [written]:
            for tool in rule.get("Tools", ()) if type(rule) is dict else [rule]:
                yield from _text(tool)


def _counted(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    """Yield the limits on calls of tools and agents of a state, as written."""
    own, whole = state.get("Budget", {}), scopes[0].get("Budget", {})
    for block in (*_blocks(state, scopes), *((own, whole) if "Agent" in state else ())):
        written = block.get("MaxCalls", block.get("MaxCalls.$"))
        if type(written) is dict:
            yield from (f"{name}: {most}" for name, most in written.items())
        elif written is not None:
            yield f"calls of agents: {written}"


def _policy(
    document: Mapping[str, Json], own: Mapping[str, Json]
) -> tuple[list[str] | None, set[str]]:
    """Return the tools that a document and a state allow (None for all), and those they deny."""
    default, categories = document.get("DefaultTools", {}), document.get("ToolCategories", {})
    names = {
        name
        for each in (default, own)
        for key in ("Denied", "DeniedCategories")
        for name in each.get(key, ())
    }
    denied = names | {each for name in names for each in categories.get(name, ())}
    policy = {**default, **own}
    if not policy.keys() & {"Allowed", "AllowedCategories"}:
        return None, denied
    listed = [*policy.get("Allowed", ()), *policy.get("AllowedCategories", ())]
    return [each for name in listed for each in categories.get(name, [name])], denied


def _models(state: Mapping[str, Json], scopes: _Scopes) -> Iterator[str]:
    model = state.get("Model", {})
    yield from _text(model.get("Preferred"))
    others = model.get("Fallback", [])
    for each in others if type(others) is list else [others]:
        yield from _text(each)
    fallback = scopes[0].get("Budget", {}).get("Fallback", {})
    if "Agent" in state and type(fallback) is dict:
        for entry in (fallback, *fallback.get("Cascade", ())):
            yield from _text(entry.get("UseModel"))


# What it may cost


class _Measure:
    """Computes the bound of one measure, `MaxCost` or `MaxTokens`."""

    def __init__(self, field: str, document: Mapping[str, Json], prices: Mapping[str, Any]) -> None:
        self.field = field
        self.document = document
        self.prices = prices
        self.unlimited: dict[str, None] = {}
        """The states without a limit, in order."""
        self.exceeded: dict[str, None] = {}
        """The states of several agents whose own limits one call may exceed, in order."""
        self.largest = ZERO
        """The maximum of one visit of a limited state."""

    def document_bound(self) -> Bound:
        """Return the bound of the whole document."""
        most = self._machine(self.document)
        limit = self._limit(self.document.get("Budget", {}))
        if limit is not None and (most is None or most > limit):
            return Bound(limit + self.largest, tuple({**self.unlimited, **self.exceeded}))
        if most is None:
            return Bound(None, tuple(self.unlimited))
        return Bound(most, visits=tuple(self.exceeded))

    def _limit(self, budget: Mapping[str, Json]) -> Decimal | None:
        """Return the limit of a budget that stops the execution when exceeded."""
        if not _stops(budget):
            return None
        fields = [self.field] + ["MaxFromPool"] * (self.field == "MaxCost")
        found = [each for field in fields if (each := parse_amount(budget.get(field))) is not None]
        return min(found) if found else None

    def _machine(self, value: Mapping[str, Json]) -> Decimal | None:
        """Return the maximum over the paths through a machine."""
        machine = graph_of(value)
        written = value["States"]
        sizes = {  # a template may lead to a state that only its parameters name
            each.name: self._state(written[each.name], each) if each.name in written else ZERO
            for each in machine.states
        }
        further: dict[str, list[str]] = {}
        for each in machine.transitions:
            if isinstance(each.source, str) and isinstance(each.target, str):
                further.setdefault(each.source, []).append(each.target)
        starts = [value["StartAt"]] if "StartAt" in value else list(sizes)
        dearest: dict[str, Decimal | None] = {}
        for group, again in strongly_connected(sizes, further):
            if again:
                self._repeated(group, sizes)
            onwards = {each for name in group for each in further.get(name, ())} - set(group)
            rest = _largest([dearest[each] for each in onwards])
            most = _sum([rest, *(sizes[name] for name in group)])
            dearest.update(dict.fromkeys(group, most))
        return _largest([dearest[each] for each in starts])

    def _repeated(self, group: list[str], sizes: dict[str, Decimal | None]) -> None:
        """Mark the states of a loop as unlimited: the number of visits is unknown."""
        for name in group:
            if sizes[name] != ZERO:
                self.unlimited[name] = None
                sizes[name] = None

    def _state(self, state: Mapping[str, Json], node: GraphState) -> Decimal | None:
        """Return the maximum of one visit of a state, with all attempts."""
        within = [self._machine(inner) for _, inner in nested_machines(state)]
        size: Decimal | None = _sum(within)
        kind = state.get("Type")
        if kind == "Map" and size is not None and size != ZERO:
            times = _items(state)
            size = None if times is None else size * times * _retries(state)
            if size is None:
                self.unlimited[node.name] = None
        elif type_of(state).calls(state):
            size = self._call(state) if kind == "Task" else None
        elif kind == "Workflow":
            size = None
        elif size is not None and within:
            size *= _retries(state)
        included = state.get("Template") if kind == "Include" else None
        holder = included if type(included) is dict else state
        limit = self._limit(holder.get("Budget", {}))
        if limit is not None and (size is None or size > limit):
            for name in (node.name, *(each.name for m in node.machines for each in m.all_states())):
                self.unlimited.pop(name, None)
                self.exceeded.pop(name, None)
            if within or kind == "Debate":
                self.exceeded[node.name] = None
            size = limit
        if size is None and not within:
            self.unlimited[node.name] = None
        if size is not None and not within and node.name not in self.exceeded:
            self.largest = max(self.largest, size)
        return size

    def _call(self, state: Mapping[str, Json]) -> Decimal | None:
        """Return the maximum of a Task's calls by the limits of each call."""
        budget, generation = state.get("Budget", {}), state.get("Generation", {})
        if not _stops(budget):
            return None
        given, made = budget.get("MaxInputTokens"), budget.get("MaxOutputTokens")
        attempts = _attempts(state) if made is None else 1
        made = generation.get("MaxTokens") if made is None else made
        if not (is_integer(given) and is_integer(made)) or attempts is None:
            return None
        models = [each for name in _models(state, (self.document,)) for each in [self._price(name)]]
        others = set(_agents(state, (self.document,))) - {state["Agent"]}
        if others and (self.field == "MaxCost" or "MaxOutputTokens" not in budget):
            return None  # of unknown models, with unlimited answers
        if self.field == "MaxTokens":
            return Decimal(given + made * attempts)
        if not models or None in models or _is_computed(state.get("Model", {}), "Preferred"):
            return None
        asked: Decimal = max(each.input for each in models) * given
        answered: Decimal = max(each.output for each in models) * made * attempts
        return asked + answered

    def _price(self, model: str) -> Any:
        return self.prices.get(model)


def _stops(budget: Mapping[str, Json]) -> bool:
    """Return whether a budget stops the execution when exceeded."""
    return budget.get("OnExceed", "Fail") in STOPS and "OnExceed.$" not in budget


def _items(state: Mapping[str, Json]) -> int | None:
    """Return the largest number of items of a Map, None if it depends on the data."""
    if type(state.get("Items")) is list:
        return len(state["Items"])
    most = state.get("ItemReader", {}).get("ReaderConfig", {}).get("MaxItems")
    return int(most) if is_integer(most) and most > 0 else None


def _retries(state: Mapping[str, Json]) -> int:
    """Return the largest number of retries of a visit."""
    again: int = sum(each.get("MaxAttempts", ATTEMPTS) for each in state.get("Retry", ()))
    return 1 + again


def _attempts(state: Mapping[str, Json]) -> int | None:
    """Return the largest number of agent calls of a visit, None if it depends on the data."""
    output, model = state.get("Guardrails", {}).get("Output", {}), state.get("Model", {})
    again = any(
        rule.get("Action") == "retry" or _is_computed(rule, "Action")
        for rule in output.get("Rules", ())
    )
    if _is_computed(model, "Fallback") or (again and _is_computed(output, "MaxRetries")):
        return None
    models = model.get("Fallback", [])
    others = len(models) if type(models) is list else 1
    return _retries(state) * (1 + again * int(output.get("MaxRetries", 1))) * (1 + others)


def _is_computed(holder: Mapping[str, Json], field: str) -> bool:
    value = holder.get(field)
    return f"{field}.$" in holder or (type(value) is str and value.startswith("{%"))


def _sum(sizes: Iterable[Decimal | None]) -> Decimal | None:
    total = ZERO
    for each in sizes:
        if each is None:
            return None
        total += each
    return total


def _largest(sizes: list[Decimal | None]) -> Decimal | None:
    return (
        None if None in sizes else max((each for each in sizes if each is not None), default=ZERO)
    )
