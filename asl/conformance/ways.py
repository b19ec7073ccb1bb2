"""Cases for the ways through a document: what an execution must be given to take each of them.

A way is a sequence of transitions from `StartAt` to an end that takes none of them twice. What its
states ask for is followed back to where it comes from: the answer of a Task, which a mock can give,
or the input. Each way is then tried; what it came to is the case. A way that was not taken all the
same (its data comes out of a template that cannot be followed) is left to a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from asl.core.values import Json, compact
from asl.states.base import machines_of

if TYPE_CHECKING:
    from asl.core.document import Document
    from asl.engine.result import Result

__all__ = ["Missed", "Way", "cases_of", "ways"]

Place: TypeAlias = tuple[str, ...]
Facts: TypeAlias = dict[Place, Json]
"""What must stand where in a state's data; `ABSENT` where nothing may stand."""

ABSENT: Json = object()
TEXT: Json = "text"
_PATH = re.compile(r"\$((?:\.[A-Za-z_]\w*)*)")
_CONDITION = re.compile(
    r"\$states\.input\.([\w.]+)\s*(?:(=|!=|>=|<=|>|<)\s*"
    r"(?:\"([^\"]*)\"|'([^']*)'|(-?\d+(?:\.\d+)?)|(true|false)))?"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One state on a way, and by which of its transitions the way goes on."""

    name: str
    by: str
    """`next`, `end`, `rule`, `default` or `catch`."""
    index: int = 0
    """Of the rule or the catcher."""


Way: TypeAlias = tuple[Step, ...]


def ways(machine: Mapping[str, Json]) -> Iterator[Way]:
    """Yield the ways through a machine that take no transition twice."""
    waiting: list[tuple[str, Way]] = [(machine["StartAt"], ())]
    while waiting:
        name, way = waiting.pop()
        further = []
        for step, following in _transitions(name, machine["States"][name]):
            if step in way:
                continue
            if following is None:
                yield (*way, step)
            else:
                further.append((following, (*way, step)))
        waiting += reversed(further)


def _transitions(name: str, state: Mapping[str, Json]) -> Iterator[tuple[Step, str | None]]:
    for index, rule in enumerate(state.get("Choices", ())):
        yield Step(name, "rule", index), rule["Next"]
    if "Default" in state:
        yield Step(name, "default"), state["Default"]
    if "Next" in state:
        yield Step(name, "next"), state["Next"]
    elif state["Type"] not in ("Choice", "Approval"):
        yield Step(name, "end"), None
    for index, catcher in enumerate(state.get("Catch", ())):
        yield Step(name, "catch", index), catcher["Next"]


class Missed(NamedTuple):
    """A way that was tried and not taken."""

    way: Way
    why: str
    """Where it was left, and for what."""


def cases_of(document: Document, limit: int) -> tuple[list[dict[str, Json]], list[Missed], bool]:
    """Return a case for each way that could be taken, the other ways, and whether these are all.

    No more than *limit* ways are tried. Raises InvalidDocument for a document that cannot be run.
    """
    import asl
    from asl.engine.memory import ProcessMemory

    program = asl.compile(document)
    machine = document.whole
    cases: dict[tuple[str, ...], dict[str, Json]] = {}
    missed: list[Missed] = []
    backend = machine.get("Memory", {}).get("Backend", "memory")
    every, agents = ways(machine), dict(_asides(machine))
    for _, way in zip(range(limit), every, strict=False):
        left: list[str] = []
        for unsaid in _UNSAID.get(document.dialect, (TEXT, {})):
            data, mocks = _needs(machine, way, unsaid)
            memory = {each: ProcessMemory() for each in ("memory", backend)}
            given: dict[str, Any] = {"mocks": mocks, "agents": agents, "memory": memory}
            result = asl.run(program, data, clock="virtual", **given)
            if _taken(machine, way, result):
                break
            left.append(_left(way, result))
        else:
            missed.append(Missed(way, left[0]))
            continue
        if tuple(result.visited) in cases:  # several ways wait for the same people
            continue
        cases[tuple(result.visited)] = {
            "id": f"{document.name}/{len(cases) + 1}",
            "title": " > ".join(result.visited),
            "input": data,
            **({"mocks": mocks} if mocks else {}),
            **({"agents": agents} if agents else {}),
            **({} if backend == "memory" else {"memory": [backend]}),
            "expect": _expected(result),
        }
    return list(cases.values()), missed, next(every, None) is None


_UNSAID: Mapping[str, tuple[Json, ...]] = {"asl": ({},)}
"""What inputs and answers are where nothing is asked of them, by the language of the document.

Agents of other languages speak in texts.
"""


def _expected(result: Result) -> dict[str, Json]:
    """Return what a case expects that came to this."""
    expect: dict[str, Json] = {"status": result.status, "visited": result.visited}
    if result.ok:
        expect["output"] = _literal(result.output)
    elif result.error is not None:
        expect["error"] = result.error
    return expect


def _taken(machine: Mapping[str, Json], way: Way, result: Result) -> bool:
    """Whether an execution went a way to its end, or waits for people on it."""
    names = [step.name for step in way]
    if result.status == "PAUSED":
        return names[: len(result.visited)] == result.visited
    fails = machine["States"][names[-1]]["Type"] == "Fail"
    return result.visited == names and (result.status == "FAILED") == fails


def _left(way: Way, result: Result) -> str:
    """Say where an execution has left a way."""
    names = [step.name for step in way]
    for expected, found in zip(names, result.visited, strict=False):
        if expected != found:
            return f"it goes on to {found} instead of {expected}"
    last = result.visited[-1] if result.visited else names[0]
    if result.status == "FAILED":
        cause = (result.cause or "").partition("\n")[0]
        told = f"{result.error}: {cause}" if cause else result.error
        return f"{last} fails with {told}"
    return f"it ends at {last}: {result.status}"


def _literal(value: Json) -> Json:
    from asl.conformance.recorder import literal

    return literal(value)


def _needs(machine: Mapping[str, Json], way: Way, unsaid: Json) -> tuple[Json, dict[str, Json]]:
    """Return the input and the mocks with which an execution should go a way.

    *unsaid* is what they are where nothing is asked of them.
    """
    facts: Facts = {}
    scripts: dict[str, list[Json]] = {}
    for step in reversed(way):
        state = machine["States"][step.name]
        if step.by == "catch":
            catcher = state["Catch"][step.index]
            facts = _outside(facts, _place(catcher.get("ResultPath", "$")))
            error = catcher["ErrorEquals"][0]
            name = "States.TaskFailed" if error == "States.ALL" else error
            script: Json = {"raise": {"Error": name}}
            for task in [step.name] if state["Type"] == "Task" else list(_tasks(state))[:1]:
                scripts.setdefault(task, []).insert(0, script)
        elif state["Type"] == "Choice":
            facts |= _chosen(state, step)
        elif state["Type"] == "Task":
            result, facts = _answered(state, facts)
            result |= _trace(state.get("Reasoning", {}))
            if "ResultSelector" not in state:
                result = _beside(_remembered(state), result)
            answer = _value(result) if result else unsaid
            scripts.setdefault(step.name, []).insert(0, {"return": answer})
        elif state["Type"] == "Pass":
            facts = _beside(_remembered(state), _passed(state, facts))
        for task in _tasks(state):
            scripts.setdefault(task, [{"return": unsaid}])
        facts = _read(state) | facts
    sequences = {name: {"sequence": each} for name, each in scripts.items()}
    mocks = {name: each[0] if len(each) == 1 else sequences[name] for name, each in scripts.items()}
    return _value(facts) if facts else unsaid, mocks


def _asides(part: Json) -> Iterator[tuple[str, Json]]:
    """Yield the agents that a document asks beside those of its Tasks, with what they answer."""
    if type(part) is list:
        for each in part:
            yield from _asides(each)
    elif type(part) is dict:
        for field, answer in _ANSWERS.items():
            if type(part.get(field)) is str:
                yield part[field], {"return": answer}
        if part.get("Type") == "Debate":
            for name in part.get("Agents", ()):
                yield name, {"return": {"response": TEXT}}
        for each in part.values():
            yield from _asides(each)


_ANSWERS: Mapping[str, Json] = {
    "Check": {"valid": True},
    "Validator": {"valid": True},
    "Using": {"summary": "text"},
}
"""What agents answer by the fields that name them: rules and validators, summarisers."""


def _tasks(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names of the Tasks in the machines of a state."""
    for _, machine in machines_of(state):
        for name, inner in machine.get("States", {}).items():
            if inner.get("Type") == "Task":
                yield name
            yield from _tasks(inner)


# Where data comes from


def _place(path: Json) -> Place | None:
    """Return the steps of a plain path, None for any other."""
    match = _PATH.fullmatch(path) if type(path) is str else None
    return None if match is None else tuple(match[1].split(".")[1:])


def _outside(facts: Facts, place: Place | None) -> Facts:
    """Return the facts that a value written to a place does not decide."""
    if place is None:
        return facts
    return {at: value for at, value in facts.items() if at[: len(place)] != place}


_CALL = re.compile(r"States\.(\w+)\(([^()]*)\)")
_TAKEN: Mapping[str, Json] = {
    "MathAdd": 1,
    "MathSubtract": 1,
    "MathMultiply": 1,
    "ArrayContains": [],
    "ArrayGetItem": ["text"],
    "ArrayLength": [],
    "ArrayPartition": [],
    "ArrayUnique": [],
    "ArrayConcat": [],
    "Base64Decode": "dGV4dA==",
    "JsonMerge": {},
    "Merge": {},
    "Omit": {},
    "Pick": {},
    "StringToJson": "{}",
}
"""What functions take as their first argument, where it is no text."""
_ALIKE = ("MathAdd", "MathSubtract", "MathMultiply", "ArrayConcat", "JsonMerge", "Merge")
"""Those of which all arguments are as the first one."""
_READ = re.compile(r"(?<!\$)\$((?:\.[A-Za-z_]\w*)+)|\$states\.input((?:\.[A-Za-z_]\w*)+)")
_EXPECTED: Mapping[str, Json] = {
    "ItemsPath": [],
    "Items": [],
    "SecondsPath": 1,
    "Seconds": 1,
    "TimestampPath": "2024-01-01T00:00:00Z",
    "Timestamp": "2024-01-01T00:00:00Z",
    "TimeoutSecondsPath": 60,
    "HeartbeatSecondsPath": 30,
    "MaxConcurrencyPath": 1,
    "InputPath": {},
}
_NOT_READ = (
    *("Branches", "ItemProcessor", "Iterator", "Template", "Choices", "Retry", "Catch"),
    *("ResultSelector", "Output", "Assign", "Result", "Memory"),
)
"""The fields that speak of other data than a state's input, or of other states."""


def _read(state: Mapping[str, Json]) -> Facts:
    """Return facts about what a state reads, so that it is there."""
    read = {field: value for field, value in state.items() if field not in _NOT_READ}
    found: Facts = dict.fromkeys(_paths(read), "text")
    for name, arguments in _CALL.findall(compact(read)):
        taken = _READ.findall(arguments)[: None if name in _ALIKE else 1]
        for place, _ in taken if name in _TAKEN else ():
            found[tuple(place.split(".")[1:])] = _TAKEN[name]
    for field, value in _EXPECTED.items():
        found |= dict.fromkeys(_paths({f"{field}.$": state.get(field)}), value)
    return found


def _paths(template: Json, dynamic: bool = False) -> Iterator[Place]:
    """Yield the places that the expressions of a template read."""
    if type(template) is dict:
        for key, each in template.items():
            yield from _paths(each, key.endswith(".$"))
    elif type(template) is list:
        for each in template:
            yield from _paths(each)
    elif type(template) is str and (dynamic or template.startswith("{%")):
        for match in _READ.finditer(template):
            yield tuple((match[1] or match[2]).split(".")[1:])


def _below(facts: Facts, place: Place | None) -> Facts:
    """Return the facts about what is written to a place, as they begin there."""
    if place is None:
        return {}
    count = len(place)
    return {at[count:]: value for at, value in facts.items() if at[:count] == place}


def _answered(state: Mapping[str, Json], facts: Facts) -> tuple[Facts, Facts]:
    """Return what the answer of a Task must be, and what must be there before it."""
    if "Output" in state:  # JSONata: what it says of the answer is followed
        output = state["Output"]
        found = _source(output, facts, r"\{%\s*\$states\.result((?:\.\w+)*)\s*%\}")
        asked = [each for each in facts.values() if type(each) in (str, int) and each != TEXT]
        if not found and asked and type(output) is str:  # a function takes the answer as a whole
            found = {(): asked[0]}
        return found, {}
    place = _place(state.get("ResultPath", "$"))
    result = _below(facts, place)
    if "ResultSelector" in state:
        result = _selected(state["ResultSelector"], result)
    return result, _outside(facts, place)


def _trace(reasoning: Mapping[str, Json]) -> Facts:
    """Return the trace without which an answer would be refused."""
    if not reasoning.get("Required"):
        return {}
    thoughts = [{"step": step + 1, "thought": ""} for step in range(reasoning.get("MinSteps", 1))]
    return {("reasoning",): {"steps": thoughts}}


def _remembered(state: Mapping[str, Json]) -> Facts:
    """Return facts about what a state writes to its memory, so that it is there."""
    write = state.get("Memory", {}).get("Write", [])
    entries = write if type(write) is list else [write]
    places = [_place(entry.get("Value.$")) for entry in entries]
    return {place: "text" for place in places if place}


def _beside(more: Facts, facts: Facts) -> Facts:
    """Return facts with those of others that are about other places."""
    found = dict(facts)
    for place, value in more.items():
        if not any(at[: len(place)] == place[: len(at)] for at in facts):
            found[place] = value
    return found


def _passed(state: Mapping[str, Json], facts: Facts) -> Facts:
    """Return what must be there before a Pass."""
    if "Output" in state:
        return _source(state["Output"], facts, r"\{%\s*\$states\.input((?:\.\w+)*)\s*%\}")
    place = _place(state.get("ResultPath", "$"))
    if "Result" in state:
        return _outside(facts, place)
    if "Parameters" in state:
        return _outside(facts, place) | _selected(state["Parameters"], _below(facts, place))
    return facts


def _selected(template: Json, facts: Facts) -> Facts:
    """Return the facts about the data of a payload template that make those about its value."""
    found: Facts = {}
    for at, value in facts.items():
        source = _place(template.get(f"{at[0]}.$")) if at and type(template) is dict else None
        if source is not None:
            found[(*source, *at[1:])] = value
    return found


def _source(template: Json, facts: Facts, pattern: str) -> Facts:
    """Do the same for an `Output` whose expressions are plain paths."""
    found: Facts = {}
    for at, value in facts.items():
        inner, rest = template, at
        while type(inner) is dict and rest:
            inner, rest = inner.get(rest[0]), rest[1:]
        match = re.fullmatch(pattern, inner) if type(inner) is str else None
        if match is not None:
            found[(*match[1].split(".")[1:], *rest)] = value
    return found


def _value(facts: Facts) -> Json:
    """Return an object about which the facts hold."""
    if facts.keys() == {()}:
        return facts[()]
    value: dict[str, Json] = {}
    for at, fact in sorted(facts.items(), key=lambda each: len(each[0])):
        if not at:
            continue
        holder = value
        for step in at[:-1]:
            inner = holder.setdefault(step, {})
            if type(inner) is not dict:
                inner = holder[step] = {}
            holder = inner
        if fact is not ABSENT:
            holder[at[-1]] = fact
    return value


# What Choice states ask for


def _chosen(state: Mapping[str, Json], step: Step) -> Facts:
    """Return the facts by which a Choice takes a transition."""
    rules = state["Choices"]
    facts: Facts = {}
    for rule in rules if step.by == "default" else rules[: step.index]:
        facts |= _holds(rule, False)
    return facts if step.by == "default" else facts | _holds(rules[step.index], True)


def _holds(rule: Mapping[str, Json], wanted: bool) -> Facts:
    """Return facts that make a rule hold, or not hold."""
    if "Condition" in rule:
        return _condition(rule["Condition"], wanted)
    if "Not" in rule:
        return _holds(rule["Not"], not wanted)
    for field, all_of in (("And", wanted), ("Or", not wanted)):
        if field in rule:
            parts = rule[field] if all_of else rule[field][:1]
            return {at: value for part in parts for at, value in _holds(part, wanted).items()}
    place = _place(rule.get("Variable"))
    operator = next(key for key in rule if key not in ("Variable", "Next", "Assign", "Comment"))
    operand = rule[operator]
    if place is None:
        return {}
    if operator.endswith("Path"):
        other = _place(operand)
        operand = next(value for kind, value in _SAMPLES.items() if operator.startswith(kind))
        operator = operator.removesuffix("Path")
        facts = {} if other is None else {other: operand}
        return {**facts, place: _compared(operator, operand, wanted)}
    return {place: _compared(operator, operand, wanted)}


_SAMPLES: Mapping[str, Json] = {
    "String": "m",
    "Numeric": 5,
    "Boolean": True,
    "Timestamp": "2024-06-01T00:00:00Z",
}
_TESTS: Mapping[str, tuple[Json, Json]] = {
    "IsPresent": ("present", ABSENT),
    "IsNull": (None, "value"),
    "IsString": ("text", 1),
    "IsNumeric": (1, "text"),
    "IsBoolean": (True, "text"),
    "IsTimestamp": ("2024-01-01T00:00:00Z", "text"),
}


def _compared(operator: str, operand: Json, wanted: bool) -> Json:
    """Return a value of which a comparison holds, or does not."""
    if operator in _TESTS:
        return _TESTS[operator][0 if operand is wanted else 1]
    if operator == "StringMatches":
        return re.sub(r"\\?\*", "", operand) if wanted else f"no {operand}".replace("*", "-")
    kind = next(kind for kind in _SAMPLES if operator.startswith(kind))
    relation = operator.removeprefix(kind).removesuffix("Equals")
    equal = operator.endswith("Equals")
    if kind == "Boolean":
        return operand if wanted else not operand
    if wanted and equal:
        return operand
    above = (relation == "GreaterThan") == wanted
    if not wanted and not equal and relation:
        return operand
    return _neighbour(kind, operand, above)


def _neighbour(kind: str, operand: Json, above: bool) -> Json:
    """Return a value above or below another one of its kind."""
    if kind == "Numeric":
        return operand + 1 if above else operand - 1
    if kind == "Timestamp":
        return "9998-01-01T00:00:00Z" if above else "0002-01-01T00:00:00Z"
    return f"{operand}~" if above else operand[:-1]


def _condition(text: Json, wanted: bool) -> Facts:
    """Return facts for a condition in JSONata that compares input with constants."""
    inner = text.removeprefix("{%").removesuffix("%}").strip() if type(text) is str else ""
    word = " and " if wanted else " or "
    parts = inner.split(word) if f" {'or' if wanted else 'and'} " not in inner else []
    first = re.split(r" (?:and|or) ", inner)[:1]
    facts: Facts = {}
    for part in parts or first:
        match = _CONDITION.fullmatch(part.strip(" ()"))
        if match is None:
            continue
        path, relation, *quoted, number, truth = match.groups()
        place = tuple(path.split("."))
        if relation is None:
            facts[place] = wanted
            continue
        text_ = next((each for each in quoted if each is not None), None)
        kind = "Boolean" if truth else "Numeric" if number else "String"
        operand = truth == "true" if truth else _number(number) if number else text_
        name = {"=": "Equals", "!=": "Equals", ">": "GreaterThan", "<": "LessThan"}.get(
            relation, "GreaterThanEquals" if relation == ">=" else "LessThanEquals"
        )
        facts[place] = _compared(f"{kind}{name}", operand, wanted != (relation == "!="))
    return facts


def _number(text: str) -> Json:
    return float(text) if "." in text else int(text)
