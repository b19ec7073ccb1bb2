"""Small machines in both query languages that say the same.

`machines()` draws one in a form of its own, as a list of states; `in_jsonpath` and `in_jsonata`
write it down. A JSONata expression finds nothing where JSONPath raises an error, and it looks into
all elements of an array; so the translation steps with `$step`, which does neither.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Json = Any

HELPERS = {
    "$step": "function($v, $k) { $type($v) = 'object' and $exists($lookup($v, $k)) "
    "? $lookup($v, $k) : $error('nothing there') }",
    "$at": "function($v, $i) { $type($v) = 'array' and $count($v) > $i "
    "? $v[$i] : $error('nothing there') }",
    "$has": "function($v, $k) { $type($v) = 'object' and $exists($lookup($v, $k)) }",
    "$given": "function($v) { $exists($v) ? $v : $error('not assigned') }",
}

# Data -------------------------------------------------------------------------------------------

names = st.sampled_from("abc")
scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b", "é {% 1 %}"])
)
data = st.recursive(
    scalars,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(names, part, max_size=3),
    max_leaves=8,
)
objects = st.fixed_dictionaries(
    {"a": data, "b": st.integers(-9, 9), "list": st.lists(data, max_size=3)},
    optional={"c": data},
)

# Paths and templates ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Path:
    """A definite path: its root is `` for the data at hand, else the name of a variable."""

    root: str
    steps: tuple[str | int, ...]

    def jsonpath(self) -> str:
        return f"${self.root}" + "".join(
            f"[{step}]" if type(step) is int else f".{step}" for step in self.steps
        )

    def jsonata(self, here: str) -> str:
        text = f"$given(${self.root})" if self.root else here
        for step in self.steps:
            function, argument = ("at", step) if type(step) is int else ("step", f"'{step}'")
            text = f"${function}({text}, {argument})"
        return text


def paths(variables: tuple[str, ...]) -> st.SearchStrategy[Path]:
    """Draw paths, of which most find something."""
    likely = st.sampled_from([(), (), ("list",), ("list",), ("b",), ("a",)])
    step = st.sampled_from(["a", "b", "c", "list", "r", 0, 1])
    here = st.just("") if not variables else st.just("") | st.sampled_from(variables)
    return st.builds(Path, here, likely | st.lists(step, max_size=2).map(tuple))


def templates(variables: tuple[str, ...]) -> st.SearchStrategy[Json]:
    """Draw templates: JSON in which a Path stands for what it finds."""
    return st.dictionaries(
        st.sampled_from(["a", "b", "r", "list"]),
        st.recursive(
            scalars | paths(variables) | paths(variables),
            lambda part: st.lists(part, max_size=2) | st.dictionaries(names, part, max_size=2),
            max_leaves=3,
        ),
        min_size=1,
        max_size=2,
    )


def payload_template(template: Json) -> Json:
    """Write a template as JSONPath does; arrays hold paths in objects only."""
    if type(template) is list:
        return [
            {"p.$": part.jsonpath()} if isinstance(part, Path) else payload_template(part)
            for part in template
        ]
    if type(template) is dict:
        return {
            f"{key}.$" if isinstance(part, Path) else key: part.jsonpath()
            if isinstance(part, Path)
            else payload_template(part)
            for key, part in template.items()
        }
    return template


def constructor(template: Json, here: str) -> str:
    """Write a template as one JSONata expression."""
    if isinstance(template, Path):
        return template.jsonata(here)
    if type(template) is list:
        parts = [
            f"{{'p': {part.jsonata(here)}}}" if isinstance(part, Path) else constructor(part, here)
            for part in template
        ]
        return f"[{', '.join(parts)}]"
    if type(template) is dict:
        members = [
            f"{json.dumps(key)}: {constructor(part, here)}" for key, part in template.items()
        ]
        return f"{{{', '.join(members)}}}"
    return json.dumps(template, ensure_ascii=False)


def jsonata_template(template: Json, here: str) -> Json:
    """Write a template as JSON that holds an expression for each path."""
    if isinstance(template, Path):
        return query(template.jsonata(here))
    if type(template) is list:
        return [
            {"p": query(part.jsonata(here))}
            if isinstance(part, Path)
            else jsonata_template(part, here)
            for part in template
        ]
    if type(template) is dict:
        return {key: jsonata_template(part, here) for key, part in template.items()}
    return template if type(template) is not str else query(json.dumps(template))


def query(source: str) -> str:
    """Write an expression with the helpers that it calls."""
    helpers = [f"{name} := {body}; " for name, body in HELPERS.items() if f"{name}(" in source]
    return f"{{% ({''.join(helpers)}{source}) %}}"


# Conditions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A comparison of the value at a path, or `And`, `Or`, `Not` of others."""

    operator: str
    path: Path | None = None
    operand: Json = None
    parts: tuple["Condition", ...] = ()

    def jsonpath(self) -> Json:
        if self.operator == "Not":
            return {"Not": self.parts[0].jsonpath()}
        if self.parts:
            return {self.operator: [part.jsonpath() for part in self.parts]}
        assert self.path is not None
        return {"Variable": self.path.jsonpath(), self.operator: self.operand}

    def jsonata(self) -> str:
        if self.parts:
            sources = [part.jsonata() for part in self.parts]
            if self.operator == "Not":
                return f"$not({sources[0]})"
            text = sources[-1]
            for source in reversed(sources[:-1]):
                text = (
                    f"({source} ? {text} : false)"
                    if self.operator == "And"
                    else f"({source} ? true : {text})"
                )
            return text
        return _COMPARISONS[self.operator](self)


def _present(condition: Condition) -> str:
    assert condition.path is not None
    (name,) = condition.path.steps
    return f"($has($states.input, '{name}') = {json.dumps(condition.operand)})"


def _compared(kind: str, sign: str) -> Callable[[Condition], str]:
    def source(condition: Condition) -> str:
        assert condition.path is not None
        value = condition.path.jsonata("$states.input")
        operand = json.dumps(condition.operand, ensure_ascii=False)
        return f"($v := {value}; $type($v) = '{kind}' ? $v {sign} {operand} : false)"

    return source


def _typed(kind: str) -> Callable[[Condition], str]:
    def source(condition: Condition) -> str:
        assert condition.path is not None
        value = condition.path.jsonata("$states.input")
        return f"(($type({value}) = '{kind}') = {json.dumps(condition.operand)})"

    return source


_COMPARISONS: dict[str, Callable[[Condition], str]] = {
    "IsPresent": _present,
    "NumericGreaterThan": _compared("number", ">"),
    "NumericEquals": _compared("number", "="),
    "StringEquals": _compared("string", "="),
    "BooleanEquals": _compared("boolean", "="),
    "IsNull": _typed("null"),
    "IsString": _typed("string"),
}
_OPERANDS = {
    "NumericGreaterThan": st.integers(-9, 9),
    "NumericEquals": st.integers(-9, 9),
    "StringEquals": st.sampled_from(["", "a", "b"]),
    "BooleanEquals": st.booleans(),
    "IsNull": st.booleans(),
    "IsString": st.booleans(),
}


@st.composite
def conditions(draw: st.DrawFn, variables: tuple[str, ...], depth: int = 1) -> Condition:
    operator = draw(st.sampled_from([*_COMPARISONS, *(["And", "Or", "Not"] if depth else [])]))
    if operator in ("And", "Or", "Not"):
        part = conditions(variables, depth - 1)
        parts = draw(st.lists(part, min_size=1, max_size=1 if operator == "Not" else 3))
        return Condition(operator, parts=tuple(parts))
    if operator == "IsPresent":
        return Condition(operator, Path("", (draw(names),)), draw(st.booleans()))
    return Condition(operator, draw(paths(variables)), draw(_OPERANDS[operator]))


# States -----------------------------------------------------------------------------------------


@dataclass
class State:
    """One state; a machine is a list of them, each leading to the next."""

    kind: str
    parameters: Json = None
    selector: Json = None
    place: str | None = ""
    """The field of the input that takes the result, `` for the whole, None for none at all."""
    assign: Json = None
    result: Json = None
    condition: Condition | None = None
    machines: list[list["State"]] = field(default_factory=list)
    caught: bool = False


@st.composite
def machines(draw: st.DrawFn, scope: int = 0, outer: tuple[str, ...] = ()) -> list[State]:
    """Draw a machine; its variables are named by its depth, so that none hides another."""
    own = (f"x{scope}", f"y{scope}")
    kinds = ["Pass", "Result", "Choice", "Task", "Wait"]
    if scope < 2:
        kinds += ["Map", "Parallel"]
    states = []
    assigned: tuple[str, ...] = outer
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds))
        state = State(kind, place=draw(st.sampled_from(["", "r", "r", "list", None])))
        if kind in ("Pass", "Task", "Parallel") and draw(st.booleans()):
            state.parameters = draw(templates(assigned))
        if kind in ("Task", "Map", "Parallel") and draw(st.booleans()):
            state.selector = draw(templates(assigned))
        if kind == "Result":
            state.result = draw(data)
        if kind == "Choice":
            state.condition = draw(conditions(assigned))
        if kind == "Task":
            state.caught = draw(st.booleans())
        if kind in ("Map", "Parallel"):
            inner = machines(scope + 1, assigned)
            state.machines = draw(st.lists(inner, min_size=1, max_size=1 if kind == "Map" else 2))
        if kind == "Map":
            state.parameters = draw(templates(assigned))
        if draw(st.booleans()):
            state.assign = draw(st.dictionaries(st.sampled_from(own), paths(assigned), min_size=1))
            assigned = tuple(dict.fromkeys((*assigned, *state.assign)))
        states.append(state)
    return states


Write = Callable[[State, str], Json]


def machine(states: list[State], write: Write, prefix: str = "") -> Json:
    """Chain the states; names are unique in the whole document."""
    found = {}
    for index, state in enumerate(states):
        name = f"{prefix}{state.kind}{index}"
        following = "".join(f"{prefix}{s.kind}{index + 1}" for s in states[index + 1 : index + 2])
        written = write(state, name)
        written["Type"] = "Pass" if state.kind == "Result" else state.kind
        if state.kind == "Choice":
            written["Choices"][0]["Next"] = following or f"{prefix}End"
            written["Default"] = f"{prefix}Else{index}"
            found[f"{prefix}Else{index}"] = {"Type": "Pass", "End": True}
        elif following:
            written["Next"] = following
        else:
            written["End"] = True
        if state.caught:
            written["Catch"][0]["Next"] = f"{prefix}Caught{index}"
            found[f"{prefix}Caught{index}"] = {"Type": "Pass", "End": True}
        found[name] = written
    if states[-1].kind == "Choice":
        found[f"{prefix}End"] = {"Type": "Succeed"}
    return {"StartAt": f"{prefix}{states[0].kind}0", "States": found}


def _write(state: State, name: str, write: Write) -> Json:
    """Write what is the same in both languages."""
    written: Json = {}
    if state.kind == "Task":
        written["Agent"] = "Worker"
    if state.kind == "Wait":
        written["Seconds"] = 1
    inner = [machine(each, write, f"{name}.{i}.") for i, each in enumerate(state.machines)]
    if state.kind == "Map":
        written["ItemProcessor"] = inner[0]
    if state.kind == "Parallel":
        written["Branches"] = inner
    return written


def in_jsonpath(states: list[State]) -> Json:
    """Write a machine down in JSONPath."""
    return machine(states, _jsonpath)


def _jsonpath(state: State, name: str) -> Json:
    written = _write(state, name, _jsonpath)
    assign = {f"{key}.$": path.jsonpath() for key, path in (state.assign or {}).items()}
    if assign:
        written["Assign"] = assign
    if state.kind in ("Choice", "Wait"):
        if state.condition is not None:
            rule = {**state.condition.jsonpath(), **({"Assign": assign} if assign else {})}
            written["Choices"] = [rule]
        return written
    if state.kind == "Result":
        written["Result"] = state.result
    elif state.parameters is not None:
        written["ItemSelector" if state.kind == "Map" else "Parameters"] = payload_template(
            state.parameters
        )
    if state.kind == "Map":
        written["ItemsPath"] = "$.list"
    if state.selector is not None:
        written["ResultSelector"] = payload_template(state.selector)
    if state.place != "":
        written["ResultPath"] = None if state.place is None else f"$.{state.place}"
    if state.caught:
        written["Catch"] = [{"ErrorEquals": ["E"], "ResultPath": "$.error"}]
    return written


def in_jsonata(states: list[State]) -> Json:
    """Write a machine down in JSONata."""
    return {"QueryLanguage": "JSONata", **machine(states, _jsonata)}


def _jsonata(state: State, name: str) -> Json:
    written = _write(state, name, _jsonata)
    result = _result(state)
    if state.assign is not None:
        written["Assign"] = {
            key: query(f"$here := {result}; {path.jsonata('$here')}")
            for key, path in state.assign.items()
        }
    if state.kind in ("Choice", "Wait"):
        if state.condition is not None:
            rule: Json = {"Condition": query(state.condition.jsonata())}
            if "Assign" in written:
                rule["Assign"] = written["Assign"]
            written["Choices"] = [rule]
        return written
    if state.kind in ("Task", "Parallel") and state.parameters is not None:
        written["Arguments"] = jsonata_template(state.parameters, "$states.input")
    if state.kind == "Map":
        written["Items"] = query("$step($states.input, 'list')")
        written["ItemSelector"] = jsonata_template(state.parameters, "$states.input")
    written["Output"] = query(_placed(state.place, result))
    if state.caught:
        output = query(_placed("error", "$states.errorOutput"))
        written["Catch"] = [{"ErrorEquals": ["E"], "Output": output}]
    return written


def _result(state: State) -> str:
    """Write the result after `ResultSelector`, which is what Assign sees."""
    if state.kind in ("Choice", "Wait"):
        return "$states.input"
    if state.kind == "Result":
        return json.dumps(state.result, ensure_ascii=False)
    if state.kind == "Pass":
        if state.parameters is None:
            return "$states.input"
        return constructor(state.parameters, "$states.input")
    if state.selector is not None:
        return constructor(state.selector, "$states.result")
    return "$states.result"


def _placed(place: str | None, result: str) -> str:
    """Write what `ResultPath` does."""
    if place is None:
        return f"($r := {result}; $states.input)"
    if place == "":
        return result
    return (
        f"$type($states.input) = 'object' "
        f"? $merge([$states.input, {{'{place}': {result}}}]) : $error('no object')"
    )
