"""The types of the values that conditions read, where the document gives them."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.values import Json
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import (
    INPUT,
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Literal,
    Logic,
    Negation,
    Step,
    Term,
    Text,
    member,
    paths_of,
    placement,
)

__all__ = ["MISSING", "reads_one_type", "value_types"]

MISSING: Final = "missing"
"""The type of a value that need not be there."""
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "%", "count", "length", "sum", "abs", "round"))
_OF_JSON: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_MOST: Final = 20
"""Paths that are followed from one."""
_SAFE: Final = (frozenset(("number",)), frozenset(("boolean",)))
"""Types whose values no language reads as other values."""

Types = frozenset[str]


def reads_one_type(flow: Flow, step: WorkStep, condition: Term) -> bool:
    """Whether a condition behind a step compares nothing but numbers, or nothing but booleans.

    No text is read as a value then, and true is not compared with 1.
    """
    found: set[str] = set()
    for path in paths_of(condition):
        types = value_types(flow, step, path)
        if types is None:
            return False
        found |= types
    constants = (each for each in _compared(condition))
    return frozenset((*found, *map(_type_of, constants))) in _SAFE


def value_types(flow: Flow, step: WorkStep, path: DataPath) -> Types | None:
    """Return the types of a value behind a step, None if the document does not give them."""
    return _Types(flow, step).behind(path)


def _compared(condition: Term) -> Iterator[Json]:
    match condition:
        case Comparison(_, left, right):
            for each in (left, right):
                if isinstance(each, Literal):
                    yield from each.value if isinstance(each.value, list) else (each.value,)
        case Logic(_, parts):
            for part in parts:
                yield from _compared(part)
        case Negation(inner):
            yield from _compared(inner)


class _Types:
    def __init__(self, flow: Flow, reader: WorkStep) -> None:
        self.flow = flow
        self.reader = reader
        self.earlier = [*_leading_to(flow, reader)]
        self.open: set[DataPath] = set()
        """The paths whose types are looked for: the first of them collects those of all others."""

    def behind(self, path: DataPath) -> Types | None:
        """Return the types of the value at a path of the data behind the reader."""
        if path.root != INPUT or not path.steps or not self.is_written(path):
            return None
        return self.at(path)

    def at(self, path: DataPath) -> Types | None:
        """Return the types of what the steps up to the reader write to a path."""
        if path in self.open:
            return frozenset()
        if len(self.open) == _MOST:
            return None
        self.open.add(path)
        found: Types = frozenset()
        for step in self.earlier:
            for output in (step.output, *(each.output for each in step.handlers)):
                written = _written(output, path.steps)
                types = frozenset() if written is None else self.of(step, written)
                if types is None:
                    return None
                found |= types
        return found

    def of(self, step: WorkStep, term: Term) -> Types | None:
        match term:
            case Literal(value):
                return frozenset((_type_of(value),))
            case Text():
                return frozenset(("string",))
            case Comparison() | Exists() | Logic() | Negation():
                return frozenset(("boolean",))
            case FunctionCall(function, _) if function in _ARITHMETIC:
                return frozenset(("number",))
            case Choose(_, then, otherwise):
                one = self.of(step, then)
                other = frozenset((MISSING,)) if otherwise is None else self.of(step, otherwise)
                return None if one is None or other is None else one | other
            case DataPath("input", steps) if steps:
                return self.at(term)
            case DataPath("result", steps):
                return _promised(step, steps)
        return None

    def is_written(self, path: DataPath) -> bool:
        """Whether every path through the flow writes a value before the reader has ended."""
        todo, seen = [self.flow.start], set[str]()
        while todo:
            name = todo.pop()
            step = self.flow.steps.get(name)
            if step is None or name in seen:
                continue
            seen.add(name)
            if not _writes(step.output, path.steps):
                if step.name == self.reader.name:
                    return False
                todo += [each.target for each in step.exits if each.target is not None]
            todo += [each.target for each in step.handlers if not _writes(each.output, path.steps)]
        return True


def _leading_to(flow: Flow, step: WorkStep) -> Iterator[WorkStep]:
    """Yield a step and those before it, on any path."""
    sources: dict[str, list[str]] = {}
    for each in flow.steps.values():
        for target in each.targets:
            sources.setdefault(target, []).append(each.name)
    todo, seen = [step.name], set[str]()
    while todo:
        name = todo.pop()
        if name in flow.steps and name not in seen:
            seen.add(name)
            yield flow.steps[name]
            todo += sources.get(name, ())


def _written(output: Term, steps: tuple[Step, ...]) -> Term | None:
    """Return what an output has newly at a path, None if that is as before."""
    place = placement(output)
    if place is None:
        return None
    length = len(place.steps)
    if steps[:length] != place.steps[: len(steps)]:
        return None
    found = member(place.value, steps[length:])
    return None if found == DataPath(INPUT, steps) else found


def _writes(output: Term, steps: tuple[Step, ...]) -> bool:
    return _written(output, steps) is not None


def _promised(step: WorkStep, steps: tuple[Step, ...]) -> Types | None:
    """Return the types that the schema of an answer gives to a part of it."""
    given = step.state.get("Arguments", step.state.get("Parameters"))
    schema = given.get("output_schema") if isinstance(given, dict) else None
    found: Types = frozenset()
    for key in steps:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or key not in properties:
            return None
        assert isinstance(schema, dict)
        if key not in schema.get("required", ()):
            found |= {MISSING}
        schema = properties[key]
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = kind if isinstance(kind, list) else [kind]
    if not kinds or not all(isinstance(each, str) for each in kinds):
        return None
    return found | {"number" if each == "integer" else str(each) for each in kinds}


def _type_of(value: Json) -> str:
    return _OF_JSON.get(type(value), "null")
