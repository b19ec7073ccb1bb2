"""Facts about the data of states, traced back to the input and the results of tasks.

Only plain paths are traced, not the results of functions.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from asl.core.values import Json, compact, is_integer
from asl.states import type_of
from asl.states.base import StateType
from asl.states.fields import FieldIndex
from asl.states.machines import machine_fields

__all__ = [
    "ABSENT",
    "TEXT",
    "Facts",
    "Place",
    "add_facts",
    "facts_of_answer",
    "facts_of_memory",
    "facts_of_pass",
    "facts_of_queries",
    "facts_of_results",
    "facts_of_variables",
    "firmest",
    "handed_on",
    "of_branches",
    "of_item",
    "outside",
    "place_of",
    "put",
    "read",
    "read_of_input",
    "trace",
    "value_of",
]

Place: TypeAlias = tuple[str | int, ...]
"""Names of members and positions of items."""
Facts: TypeAlias = dict[Place, Json]
"""Required values by place in a state's data; `ABSENT` for no value."""

ABSENT: Json = object()
TEXT: Json = "text"
_STEP = r"(?:\.[A-Za-z_][\w-]*|\['[^']*'\]|\[\d\])"
_PATH = re.compile(rf"\$({_STEP}*)")
_STEPS = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']*)'\]|\[(\d)\]")


def place_of(path: Json) -> Place | None:
    """Return the steps of a plain path, None for any other."""
    match = _PATH.fullmatch(path) if type(path) is str else None
    return None if match is None else steps_of(match[1])


def steps_of(path: str) -> Place:
    """Return the steps of a path behind its root: names in either form, and small indices."""
    return tuple(
        int(index) if index else name or quoted for name, quoted, index in _STEPS.findall(path)
    )


_OF_EXECUTION = re.compile(rf"(?:\$\$|\$states\.context)\.Execution\.Input({_STEP}+)")


def read_of_input(machine: Mapping[str, Json]) -> Facts:
    """Return facts about what any state reads of the execution's own input."""
    return {steps_of(path): TEXT for path in _OF_EXECUTION.findall(compact(machine))}


def outside(facts: Facts, place: Place | None) -> Facts:
    """Return the facts outside of a place."""
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
"""Sample first arguments of intrinsic functions, where they are not strings."""
_OF_PATH = re.compile(rf"\s*States\.(\w+)\(\s*\$({_STEP}*)\s*(?:,\s*([^(),]*?)\s*)?\)\s*")
"""A call for a path and at most one constant."""
_INTEGER = re.compile(r"-?\d{1,9}")
LONGEST = 100
"""Items of an array of a required length."""
_ALIKE = ("MathAdd", "MathSubtract", "MathMultiply", "ArrayConcat", "JsonMerge", "Merge")
"""Functions with all arguments of the type of the first."""
_BEGUN = r"(?<![\w$])\$(states\.(?:input|result)|\w*)"
_UNNAMED_PREDICATE = r"\[\s*\w+\s*=\s*(?:'[^'\]]*'|-?\d{1,15})\s*\]"
_PREDICATE = re.compile(r"\[\s*(\w+)\s*=\s*(?:'([^'\]]*)'|(-?\d{1,15}))\s*\]")
_QUERIED = re.compile(_BEGUN + rf"((?:\.[A-Za-z_]\w*|\[\d\]|{_UNNAMED_PREDICATE})+)")
_READ = re.compile(_BEGUN + rf"({_STEP}+)")
"""In a path; in a query a hyphen is a minus."""
_INPUT, _RESULT = "states.input", "states.result"
_COUNTED = re.compile(r"(?:[-+*/%]|[<>]=?\s*-?\d)")
"""The text after a path that must lead to a number."""
_ASKED: Mapping[str, Json] = {
    **{key: [1] for key in ("sum", "average", "max", "min")},
    **dict.fromkeys(("abs", "ceil", "floor", "power", "range", "round", "sqrt"), 1),
    **{
        key: ["text"] for key in ("append", "count", "filter", "join", "map", "partition", "reduce")
    },
    **{key: {} for key in ("each", "keys", "merge", "sift")},
    "number": "1",
    "parse": "{}",
    "toMillis": "2024-01-01T00:00:00Z",
}
"""Sample first arguments of JSONata functions, where they are not strings."""
_THEN_COUNTED = ("formatBase", "pad", "partition", "power", "range", "round", "substring")
"""Those that take a number behind it."""
_SAMPLES: Mapping[str, Json] = {"number": 1, "timestamp": "2024-01-01T00:00:00Z"}
"""Values of computed fields by their type."""
_LIMITS: Mapping[str, Json] = {"TimeoutSeconds": 60, "HeartbeatSeconds": 30}
"""Values of fields that depend on each other: a heartbeat is shorter than the timeout."""
_TYPED = FieldIndex(lambda field: len(field.place) == 1 and field.jsonata in _SAMPLES)
"""The fields whose value has one of these types; in JSONPath they have a twin that ends in Path."""
_ITEM = "$$.Map.Item.Value"
_NOT_READ = (
    *("Choices", "Retry", "Catch", "OutputPath"),
    *("ResultSelector", "Output", "Assign", "Result", "Memory"),
)
"""The fields that speak of other data than a state's input, or of other states."""
_HELD = ("Items", "ItemsPath", "ItemReader")
"""The fields that say where a Map has its items; without them the input is these."""
_WRITTEN = ("Path", "ProgressPath", "ResultPath")
"""The fields of paths to which something is written."""


def read(state: Mapping[str, Json], items: Json = None) -> Facts:
    """Return facts about the parts of the input that a state reads.

    *items* are those of a Map.
    """
    taken = place_of(state.get("InputPath"))
    if taken:
        rest = read({field: each for field, each in state.items() if field != "InputPath"}, items)
        return {(*taken, *at): value for at, value in (rest or {(): {}}).items()}
    if state["Type"] == "Map" and state.keys().isdisjoint(_HELD):
        return {(): items}
    apart = (*machine_fields(type_of(state)), *_NOT_READ)
    fields = {field: value for field, value in state.items() if field not in apart}
    found = {place: sample for root, place, sample in _reads(fields) if root in ("", _INPUT)}
    found |= _taken(fields)
    expected = {**_expected(type_of(state)), "ItemsPath": items, "Items": items}
    for field, value in expected.items():
        for root, place, _ in _reads({f"{field}.$": state.get(field)}):
            if root in ("", _INPUT):
                found[place] = value
    made = {field: state.get(field) for field in ("Output", "Assign")}
    asked = {place: sample for root, place, sample in _reads(made) if root == _INPUT}
    return add_facts(asked, found)


def _expected(kind: StateType) -> dict[str, Json]:
    """Return values that the fields of a state type may have, by their names."""
    expected: dict[str, Json] = {"InputPath": {}}
    for name, fields in _TYPED.fields(kind).items():
        value = _LIMITS.get(name, _SAMPLES[fields[0].jsonata or ""])
        expected |= {name: value, f"{name}Path": value}
    return expected


def _taken(part: Json) -> Facts:
    """Return facts about what functions take of the data, by the kinds that they want."""
    found: Facts = {}
    for name, arguments in _CALL.findall(compact(part)):
        taken = _READ.findall(arguments)[: None if name in _ALIKE else 1]
        for root, place in taken if name in _TAKEN else ():
            if not root:
                found[steps_of(place)] = _TAKEN[name]
    return found


def handed_on(state: Mapping[str, Json], facts: Facts) -> Facts:
    """Return what must be there before the `OutputPath` of a state takes its part."""
    place = place_of(state.get("OutputPath", "$"))
    if not place:
        return facts
    return {(*place, *at): value for at, value in (facts or {(): TEXT}).items()}


def facts_of_queries(state: Mapping[str, Json]) -> tuple[Facts, Facts]:
    """Return facts about what the queries of a state read of its result, and of variables.

    The place of the latter begins with the variable's name.
    """
    apart = machine_fields(type_of(state))
    own = {field: value for field, value in state.items() if field not in apart}
    result: Facts = {}
    variables: Facts = {}
    for root, place, sample in _reads(own):
        if root == _RESULT:
            result = firmest(result, {place: sample})
    selector = state.get("ResultSelector")
    plain = {place: sample for root, place, sample in _reads(selector) if not root}
    result = firmest(result, plain | _taken(selector))
    for root, place, sample in _reads(state):
        if root not in ("", _INPUT, _RESULT):
            variables = firmest(variables, {(root, *place): sample})
    return result, variables


def firmest(facts: Facts, others: Facts) -> Facts:
    """Merge facts; the others win, except those with the sample text."""
    said = {at: value for at, value in others.items() if at not in facts or value != TEXT}
    return facts | said


def _reads(template: Json, dynamic: bool = False) -> Iterator[tuple[str, Place, Json]]:
    """Yield the root, the place and a sample value of each path in a template."""
    if type(template) is dict:
        for key, each in template.items():
            read = key.endswith((".$", "Fields", "Path", "Variable")) and key not in _WRITTEN
            yield from _reads(each, read)
    elif type(template) is list:
        for each in template:
            yield from _reads(each, dynamic)
    elif type(template) is str and (dynamic or template.startswith("{%")):
        text = template.removeprefix("{%").removesuffix("%}")
        for match in (_READ if dynamic else _QUERIED).finditer(text):
            sample = TEXT if dynamic else _sample(text[: match.start()], text[match.end() :])
            yield match[1], steps_of(match[2]), sample
            for found in _PREDICATE.finditer(match[2]):
                member, quoted, number = found.groups()
                at = (*steps_of(match[2][: found.start()]), member)
                yield match[1], at, quoted if number is None else int(number)


def _sample(before: str, behind: str) -> Json:
    """Return a sample value for a path in a query, by the text around it."""
    if _COUNTED.match(behind.lstrip()) or before.rstrip().endswith(("-", "+", "*", "/")):
        return 1
    called, _, given = before.rpartition("(")
    _, dollar, name = called.rpartition("$")
    if not dollar or ")" in given:
        return TEXT
    if given.rstrip().endswith(","):
        return 1 if name in _THEN_COUNTED else TEXT
    return TEXT if given.strip() else _ASKED.get(name, TEXT)


def _below(facts: Facts, place: Place | None) -> Facts:
    """Return the facts about what is written to a place, as they begin there."""
    if place is None:
        return {}
    count = len(place)
    return {at[count:]: value for at, value in facts.items() if at[:count] == place}


def facts_of_answer(state: Mapping[str, Json], facts: Facts) -> tuple[Facts, Facts]:
    """Return what the answer of a Task must be, and what must be there before it."""
    if "Output" in state:  # JSONata: what it says of the answer is followed
        output = state["Output"]
        found = _source(output, facts, r"\{%\s*\$states\.result((?:\.\w+)*)\s*%\}")
        asked = [each for each in facts.values() if type(each) in (str, int) and each != TEXT]
        if not found and asked and type(output) is str:  # a function takes the answer as a whole
            found = {(): asked[0]}
        return found, {}
    place = place_of(state.get("ResultPath", "$"))
    result = _below(facts, place)
    if "ResultSelector" in state:
        result = _selected(state["ResultSelector"], result)
    return result, outside(facts, place)


def facts_of_results(facts: Facts, index: int) -> Facts:
    """Return what one of several results must be by the facts about their array."""
    return {at[1:]: value for at, value in facts.items() if at and at[0] == index}


def facts_of_variables(state: Mapping[str, Json], assign: Json, variables: Facts) -> list[Facts]:
    """Return what facts about variables are before an `Assign` has made these.

    They are facts about the state's input, about its result, and about variables.
    """
    if type(assign) is not dict:
        return [{}, {}, variables]
    path = r"((?:\.\w+)*)\s*%\}"
    given = _source(assign, variables, r"\{%\s*\$states\.input" + path)
    result = _source(assign, variables, r"\{%\s*\$states\.result" + path)
    selected = _selected(assign, variables)
    others = {
        at: value
        for at, value in variables.items()
        if assign.keys().isdisjoint((at[0], f"{at[0]}.$"))
    }
    if state["Type"] == "Task":
        return [given, result | selected, others]
    return [given | selected, result, others]


def trace(reasoning: Mapping[str, Json]) -> Facts:
    """Return the trace without which an answer would be refused."""
    if not reasoning.get("Required"):
        return {}
    thoughts = [{"step": step + 1, "thought": ""} for step in range(reasoning.get("MinSteps", 1))]
    return {("reasoning",): {"steps": thoughts}}


def facts_of_memory(state: Mapping[str, Json]) -> Facts:
    """Return facts about what a state writes to its memory, so that it is there."""
    write = state.get("Memory", {}).get("Write", [])
    entries = write if type(write) is list else [write]
    places = [place_of(entry.get("Value.$")) for entry in entries]
    return {place: "text" for place in places if place}


def add_facts(more: Facts, facts: Facts) -> Facts:
    """Add facts about other places."""
    found = dict(facts)
    for place, value in more.items():
        if not any(at[: len(place)] == place[: len(at)] for at in facts):
            found[place] = value
    return found


def facts_of_pass(state: Mapping[str, Json], facts: Facts) -> Facts:
    """Return the facts before a Pass state."""
    if "Output" in state:
        return _source(state["Output"], facts, r"\{%\s*\$states\.input((?:\.\w+)*)\s*%\}")
    place = place_of(state.get("ResultPath", "$"))
    if "Result" in state:
        return outside(facts, place)
    if "Parameters" in state:
        selected = _selected(state["Parameters"], _below(facts, place))
        taken = _taken_place(state)
        return outside(facts, place) | {(*taken, *at): each for at, each in selected.items()}
    return facts


def of_branches(state: Mapping[str, Json], facts: Facts) -> Facts:
    """Return facts about the input of a Parallel by those about the input of its branches."""
    given = state.get("Parameters", state.get("Arguments"))
    if given is not None:
        query = r"\{%\s*\$states\.input((?:\.\w+)*)\s*%\}"
        facts = _selected(given, facts) | _source(given, facts, query)
    return {(*_taken_place(state), *at): value for at, value in facts.items()}


def _taken_place(state: Mapping[str, Json]) -> Place:
    """Return the place that the `InputPath` of a state takes; the root without a plain one."""
    return place_of(state.get("InputPath")) or ()


def of_item(state: Mapping[str, Json], facts: Facts) -> Facts:
    """Return facts about an item of a Map by those about the input of its processor."""
    if "ItemBatcher" in state:
        batch = facts.get(("Items",))
        first = batch[0] if type(batch) is list and batch else {}
        facts = {(key,): each for key, each in first.items()} if type(first) is dict else {}
    selector = state.get("ItemSelector", state.get("Parameters"))
    if type(selector) is not dict:
        return facts
    whole = {
        key: "$" + each.removeprefix(_ITEM)
        for key, each in selector.items()
        if type(each) is str and each.startswith(_ITEM)
    }
    query = r"\{%\s*\$states\.context\.Map\.Item\.Value((?:\.\w+)*)\s*%\}"
    return _selected(whole, facts) | _source(selector, facts, query)


def _selected(template: Json, facts: Facts) -> Facts:
    """Return the facts about the data of a payload template that make those about its value."""
    found: Facts = {}
    for key in dict.fromkeys(at[0] for at in facts if at) if type(template) is dict else ():
        own = _below(facts, (key,))
        source = template.get(f"{key}.$")
        place = place_of(source)
        if place is not None:
            found |= {(*place, *at): value for at, value in own.items()}
        elif type(source) is str:
            found |= _computed(source, own)
    return found


def _computed(call: str, facts: Facts) -> Facts:
    """Return facts about the first argument of an intrinsic function by those about its value."""
    match = _OF_PATH.fullmatch(call)
    if match is None:
        return {}
    name, path, argument = match.groups()
    place, value = steps_of(path), value_of(facts)
    if name == "StringToJson":
        return {place: compact(value)}
    if name == "ArrayGetItem" and argument and argument.isdecimal():
        return {(*place, int(argument), *at): each for at, each in facts.items()}
    if name == "ArrayLength" and is_integer(value) and 0 <= value <= LONGEST:
        return {place: [TEXT] * value}
    if name == "MathAdd" and argument and is_integer(value) and _INTEGER.fullmatch(argument):
        return {place: value - int(argument)}
    return {}


def _source(template: Json, facts: Facts, pattern: str) -> Facts:
    """Like `_selected`, for an `Output` with plain paths as expressions."""
    found: Facts = {}
    for at, value in facts.items():
        inner, rest = template, at
        while type(inner) is dict and rest:
            inner, rest = inner.get(rest[0]), rest[1:]
        match = re.fullmatch(pattern, inner) if type(inner) is str else None
        if match is not None:
            found[(*match[1].split(".")[1:], *rest)] = value
    return found


def value_of(facts: Facts) -> Json:
    """Return an object about which the facts hold."""
    if facts.keys() == {()}:
        return facts[()]
    value: Json = {}
    for at, fact in sorted(facts.items(), key=lambda each: len(each[0])):
        if at:
            value = put(value, at, fact)
    return value


def put(holder: Json, place: Place, value: Json) -> Json:
    """Return a value with another one at a place; other values on the path are replaced.

    `ABSENT` makes the objects around the place, and puts nothing there.
    """
    if not place:
        return value
    step, rest = place[0], place[1:]
    if type(step) is int:
        items = [*holder] if type(holder) is list else []
        items += [{} for _ in range(step + 1 - len(items))]
        if rest or value is not ABSENT:
            items[step] = put(items[step], rest, value)
        return items
    inside = holder if type(holder) is dict else {}
    if not rest and value is ABSENT:
        return inside
    return {**inside, step: put(inside.get(step), rest, value)}
