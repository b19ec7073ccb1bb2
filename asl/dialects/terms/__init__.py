"""What the expressions of documents compute, in one form for all query and template languages.

A path, an intrinsic call, a payload template, a choice rule and a JSONata expression are read into
the same *terms*, and a writer prints terms in its language. So every language is read once and
written once, whatever it is converted from or to.

A term has the meaning of JSONata: what is missing is nothing, equals nothing and is no member of an
object. A `Comparison` with a `kind` holds only for values of that kind, as a choice rule does. What
no term says is `Unknown`, with its text.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from asl.core.values import Json, compact, json_equal

__all__ = [
    "ERROR",
    "INDEX",
    "INPUT",
    "ITEM",
    "NOTHING",
    "RESULT",
    "Choose",
    "Comparison",
    "DataPath",
    "Exists",
    "FunctionCall",
    "Items",
    "Literal",
    "Logic",
    "Meaning",
    "Meanings",
    "Negation",
    "Placement",
    "Record",
    "RewrittenMeanings",
    "Step",
    "Term",
    "Text",
    "Unknown",
    "as_text",
    "children",
    "concatenate",
    "known_truth",
    "member",
    "merge",
    "own_part",
    "paths_of",
    "placement",
    "put",
    "replace",
    "rewritten",
    "walk",
]

Step: TypeAlias = str | int
"""A step of a path: the key of a member, or the index of an item."""

INPUT: Final = "input"
"""Root of a path: the input of the state."""
RESULT: Final = "result"
"""The answer of what the state called."""
ERROR: Final = "error"
"""The error that a handler caught, an object with `Error` and `Cause`."""
ITEM: Final = "item"
"""The item of an iteration."""
INDEX: Final = "index"
"""The position of an item, from 0."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out."""

    value: Json


@dataclass(frozen=True, slots=True)
class DataPath:
    """A value in the data.

    Attributes:
        root: One of the roots of this module, a variable `$name`, or `context` for the context
            object of the execution.
        steps: The keys and indices that lead from there.
    """

    root: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is put together; a part that is no text is shown as JSON."""

    parts: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An object: the members of `base`, if there is one, and those that are added or replaced."""

    base: "Term | None"
    members: tuple[tuple[str, "Term"], ...]


@dataclass(frozen=True, slots=True)
class Items:
    """An array."""

    items: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two values.

    Attributes:
        operator: `=`, `!=`, `<`, `<=`, `>`, `>=` or `in`.
        left: The value that is compared.
        right: What it is compared with.
        kind: `string`, `number`, `boolean` or `timestamp` if it holds for such values only.
    """

    operator: str
    left: "Term"
    right: "Term"
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether a value is there."""

    value: "Term"


@dataclass(frozen=True, slots=True)
class Logic:
    """Conditions joined by `and` or `or`, which are evaluated from the left."""

    operator: str
    parts: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """Whether a condition does not hold."""

    condition: "Term"


@dataclass(frozen=True, slots=True)
class Choose:
    """One of two values."""

    condition: "Term"
    then: "Term"
    otherwise: "Term | None"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function or of an arithmetic operator.

    Attributes:
        function: Name of a function of JSONata without `$`, one of `+ - * / %`, `matches` (a text
            and a pattern in which `*` matches any characters), `includes` (whether a text has a
            part, an array an item or an object a key), or `shared` (a value that all work of a
            run can read, see `own_part`).
        arguments: The arguments.
    """

    function: str
    arguments: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression that has no form as a term.

    Attributes:
        text: The expression, as it is written.
    """

    text: str


Term: TypeAlias = (
    Literal
    | DataPath
    | Text
    | Record
    | Items
    | Comparison
    | Exists
    | Logic
    | Negation
    | Choose
    | FunctionCall
    | Unknown
)


NOTHING: Final = Choose(Literal(False), Literal(None), None)
"""No value: an object or a state has no member for it; a handler with it as its output is never
taken.
"""

Meaning: TypeAlias = Callable[[tuple[Term, ...]], Term]
"""What a call of a function of a dialect computes, from its arguments."""
Meanings: TypeAlias = Mapping[str, Meaning]
"""The meanings of functions, by their names without `$`."""


class RewrittenMeanings(dict[str, Meaning]):
    """Meanings of the functions of a dialect whose data has another layout elsewhere.

    Attributes:
        rewrite: Returns the term that takes the place of another one, None to look within it.
    """

    def __init__(self, rows: Meanings, rewrite: "Callable[[Term], Term | None]") -> None:
        super().__init__(rows)
        self.rewrite = rewrite


def rewritten(term: "Term", meanings: Meanings) -> "Term":
    """Return a term in the layout that other languages have for the data of a dialect."""
    return replace(term, meanings.rewrite) if isinstance(meanings, RewrittenMeanings) else term


def children(term: Term) -> tuple[Term, ...]:
    """Return the terms directly within a term."""
    match term:
        case Text(parts) | Logic(_, parts):
            return parts
        case Items(items):
            return items
        case Record(base, members):
            inner = tuple(value for _, value in members)
            return inner if base is None else (base, *inner)
        case Comparison(_, left, right):
            return left, right
        case Exists(value) | Negation(value):
            return (value,)
        case Choose(condition, then, otherwise):
            return (condition, then) if otherwise is None else (condition, then, otherwise)
        case FunctionCall(_, arguments):
            return arguments
    return ()


def walk(term: Term) -> Iterator[Term]:
    """Yield a term and all terms within it."""
    todo = [term]
    while todo:
        found = todo.pop()
        yield found
        todo += reversed(children(found))


def paths_of(term: Term) -> Iterator[DataPath]:
    """Yield the paths within a term, in text order."""
    return (each for each in walk(term) if isinstance(each, DataPath))


def replace(term: Term, change: Callable[[Term], Term | None]) -> Term:
    """Return a term with other terms in the place of some.

    Args:
        term: The term.
        change: Returns the term that takes the place of one, or None to look within it.

    Returns:
        The changed term. Members and parts of what is put in are resolved.
    """
    found = change(term)
    if found is not None:
        return found
    match term:
        case Text(parts):
            return concatenate(*(replace(each, change) for each in parts))
        case Items(items):
            return Items(tuple(replace(each, change) for each in items))
        case Record(base, members):
            made = tuple((key, replace(value, change)) for key, value in members)
            if base is None:
                return Record(None, made)
            whole = replace(base, change)
            for key, value in made:
                whole = put(whole, (key,), value)
            return whole
        case Comparison(operator, left, right, kind):
            return Comparison(operator, replace(left, change), replace(right, change), kind)
        case Exists(value):
            return Exists(replace(value, change))
        case Logic(operator, parts):
            return Logic(operator, tuple(replace(each, change) for each in parts))
        case Negation(condition):
            return Negation(replace(condition, change))
        case Choose(condition, then, otherwise):
            last = None if otherwise is None else replace(otherwise, change)
            return Choose(replace(condition, change), replace(then, change), last)
        case FunctionCall(function, arguments):
            return FunctionCall(function, tuple(replace(each, change) for each in arguments))
    return term


def member(value: Term, steps: tuple[Step, ...]) -> Term:
    """Return the term of what a path within the value of a term leads to."""
    for at, step in enumerate(steps):
        match value:
            case DataPath(root, known):
                return DataPath(root, (*known, *steps[at:]))
            case Record(base, members):
                found = dict(members).get(step) if isinstance(step, str) else None
                if found is not None:
                    value = found
                elif base is not None and isinstance(step, str):
                    value = member(base, (step,))
                else:
                    return FunctionCall("lookup", (value, *map(Literal, steps[at:])))
            case Literal(held):
                inner = _held(held, step)
                if inner is None:
                    return FunctionCall("lookup", (value, *map(Literal, steps[at:])))
                value = inner
            case Items(items) if isinstance(step, int) and -len(items) <= step < len(items):
                value = items[step]
            case FunctionCall("lookup", arguments):
                return FunctionCall("lookup", (*arguments, *map(Literal, steps[at:])))
            case FunctionCall("merge", (Items((older, newer)),)) if isinstance(step, str):
                value = _merged_member(older, newer, step)
            case _:
                return FunctionCall("lookup", (value, *map(Literal, steps[at:])))
    return value


def _merged_member(older: Term, newer: Term, key: str) -> Term:
    """Return the member of two merged objects: that of the newer one, if it has one."""
    match newer:
        case Choose(Comparison("=", FunctionCall("type")) as is_object, value, Literal({})):
            found = member(value, (key,))
            test: Term = Logic("and", (is_object, Exists(found)))
        case _:
            found = member(newer, (key,))
            test = Exists(found)
    return Choose(test, found, member(older, (key,)))


def _held(value: Json, step: Step) -> Literal | None:
    """Return a member or an item of a value, None if it is missing."""
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return Literal(value[step])
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return Literal(value[step])
    return None


def known_truth(condition: Term) -> bool | None:
    """Return whether a condition holds, None if that depends on the data."""
    match condition:
        case Literal(bool(value)):
            return value
        case Comparison("=", Literal(one), Literal(other)):
            return json_equal(one, other)
    return None


def own_part(term: Term) -> Term:
    """Return an object without the members that are shared by all work of a run.

    An object with one other member is the value of that.
    """
    if not isinstance(term, Record) or term.base is not None:
        return term
    own = tuple(each for each in term.members if not _is_shared(each[1]))
    if len(own) == len(term.members):
        return term
    return own[0][1] if len(own) == 1 else Record(None, own)


def _is_shared(term: Term) -> bool:
    return isinstance(term, FunctionCall) and term.function == "shared"


def put(value: Term, steps: tuple[Step, ...], new: Term) -> Term:
    """Return the term of a value in which another one is at the end of a path.

    Args:
        value: What it is put into.
        steps: The keys of the path; without any, the new value replaces the old one.
        new: What is put there.
    """
    if not steps:
        return new
    first, *rest = steps
    if not isinstance(first, str):
        return FunctionCall("put", (value, Items(tuple(map(Literal, steps))), new))
    inner = put(member(value, (first,)), tuple(rest), new) if rest else new
    if isinstance(value, Record):
        return Record(value.base, tuple({**dict(value.members), first: inner}.items()))
    if isinstance(value, Literal) and isinstance(value.value, dict):
        known = {key: Literal(each) for key, each in value.value.items()}
        return Record(None, tuple({**known, first: inner}.items()))
    return Record(value, ((first, inner),))


def merge(*values: Term) -> Term:
    """Return the term of objects that are merged; a later member replaces an earlier one."""
    made: Term | None = None
    for each in values:
        if made is None:
            made = each
        elif isinstance(each, Record) and each.base is None:
            for key, value in each.members:
                made = put(made, (key,), value)
        elif isinstance(each, Literal) and isinstance(each.value, Mapping):
            for key, value in each.value.items():
                made = put(made, (key,), Literal(value))
        else:
            made = FunctionCall("merge", (Items((made, each)),))
    return made or Literal({})


def concatenate(*parts: Term) -> Term:
    """Return the term of a text: neighbouring literals are joined, texts within it opened."""
    found: list[Term] = []
    for part in parts:
        for each in part.parts if isinstance(part, Text) else (part,):
            last = found[-1] if found else None
            if isinstance(each, Literal) and isinstance(last, Literal):
                found[-1] = Literal(as_text(last.value) + as_text(each.value))
            elif each != Literal(""):
                found.append(Literal(as_text(each.value)) if isinstance(each, Literal) else each)
    if not found:
        return Literal("")
    if len(found) == 1 and isinstance(found[0], Literal):
        return found[0]
    return Text(tuple(found))


def as_text(value: Json) -> str:
    """Return a value as a text shows it."""
    return value if isinstance(value, str) else compact(value)


class Placement(NamedTuple):
    """Where a state puts what it has made.

    Attributes:
        steps: The keys of its place in the data; none if it replaces all data.
        value: What is put there.
    """

    steps: tuple[str, ...]
    value: Term


def placement(output: Term) -> Placement | None:
    """Return where the output of a state has something new; None if it is its input.

    Args:
        output: The data behind the state, over its input and its result.

    Returns:
        The one place that differs from the input, or the whole output where there is no such.
    """
    if output == DataPath(INPUT):
        return None
    steps: tuple[str, ...] = ()
    value = output
    while isinstance(value, Record) and len(value.members) == 1 and value.base is not None:
        ((key, inner),) = value.members
        if value.base != DataPath(INPUT, steps):
            break
        steps, value = (*steps, key), inner
    return Placement(steps, value)
