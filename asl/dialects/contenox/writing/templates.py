"""Terms as templates of Go: in an action, as a text, as JSON, as a condition."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.dialects.contenox.functions.templates import parse
from asl.dialects.contenox.writing.knowledge import is_moving
from asl.dialects.terms import (
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Negation,
    Record,
    Step,
    Term,
    Text,
    as_text,
    children,
    concatenate,
)
from asl.expr.text_matching import escape_glob, literal_pieces

__all__ = ["EXPRESSIBLE", "Printer", "escaped", "literal", "parses"]

_NAME: Final = re.compile(r"[^\W\d]\w*")
_KINDS: Final[Mapping[str, str]] = {
    "string": "string",
    "number": "float64",
    "boolean": "bool",
    "array": "slice",
    "object": "map",
}
"""The kinds of Go by the types of JSON."""
_OBJECT: Final = f'"{_KINDS["object"]}"'
_ARRAY: Final = f'"{_KINDS["array"]}"'
_ORDERED: Final[Mapping[str, str]] = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FUNCTIONS: Final[Mapping[str, str]] = {
    "lowercase": "lower",
    "uppercase": "upper",
    "trim": "trim",
    "count": "len",
}
"""Functions of one argument, by their names in JSONata."""


EXPRESSIBLE: Final = frozenset(
    (
        *_FUNCTIONS,
        "join",
        "lookup",
        "contains",
        "matches",
        "boolean",
        "substring",
        "type",
        "includes",
        "merge",
    )
)
"""The functions of JSONata that templates have, in values or in conditions."""
_CHOICES: Final = 4
"""Choices within a text that is written as JSON: each doubles it."""
_MOST: Final = 8
"""Values that one `eq` compares with."""


class _Unprintable(Exception):
    """A term has no form in a template."""


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints terms whose paths begin at variables of the chain.

    Attributes:
        flow: What moves along; the variable `previous_output` where it has no other name.
        dot: The root of the value that a template is about; None for the variables.
        lenient: Whether a path through an answer that is no object leads to nothing, as in
            JSONata; without that it ends the run, as in JSONPath.
        objects: Values that are objects in every run.
    """

    flow: Term
    dot: str | None = None
    lenient: bool = False
    objects: frozenset[Term] = frozenset()

    def operand(self, term: Term) -> str | None:
        """Return a value as it is in an action; None if no template has it."""
        return _printed(self._operand, term)

    def condition(self, term: Term) -> str | None:
        """Return a condition of a template; None if no template has it."""
        return _printed(self._condition, term)

    def text(self, term: Term) -> str | None:
        """Return a template that shows a value as a text; None if none does."""
        return _printed(self._text, term)

    def _guards(self, term: Term) -> list[str]:
        """Return the conditions under which the paths within a term lead somewhere."""
        if not self.lenient:
            return []
        holders = (
            (DataPath(path.root, path.steps[:end]), step)
            for path in _paths_read(term)
            for end, step in enumerate(path.steps)
        )
        asked = (each for each in holders if each[0] not in self.objects)
        tests = (test for each in asked for test in self._holds(*each))
        return [*dict.fromkeys(tests)]

    def _holds(self, holder: DataPath, step: Step) -> list[str]:
        """Return the conditions under which a step leads from a value to another one."""
        shown = self._argument(holder)
        if isinstance(step, str):
            return [f"kindIs {_OBJECT} {shown}"]
        return [f"kindIs {_ARRAY} {shown}", f"gt (len {shown}) {step}"]

    def json(self, term: Term) -> str | None:
        """Return a template that shows a value as JSON; None if none does."""
        return _printed(self._json, term)

    # Values

    def _operand(self, term: Term) -> str:
        match term:
            case Literal(dict() | list() as value):
                return self._operand(_opened(value))
            case Literal(value):
                return literal(value)
            case Items(items):
                return " ".join(("list", *map(self._argument, items)))
            case Record(None, members):
                pairs = (f"{literal(key)} {self._argument(each)}" for key, each in members)
                return " ".join(("dict", *pairs))
            case Record(base, members) if base is not None:
                found = f"deepCopy {self._argument(base)}"
                for key, member in members:
                    found = f"set {_grouped(found)} {literal(key)} {self._argument(member)}"
                return found
            case Text(parts):
                return f"print {' '.join(_grouped(self._operand(each)) for each in parts)}"
            case DataPath(root, steps):
                return self._path(term, root, steps)
            case Choose() if (defaulted := _defaulted(term)) is not None:
                holder, key, other = defaulted
                return self._dug(holder, key, self._argument(other))
            case FunctionCall("join", (values, separator)):
                return f"join {self._argument(separator)} {self._argument(values)}"
            case FunctionCall(name, (value,)) if name in _FUNCTIONS:
                return f"{_FUNCTIONS[name]} {self._argument(value)}"
            case Choose(Exists(value), then, Literal(None)) if then == value:
                return self._operand(value)
            case FunctionCall("lookup", (Text(), *_)):
                raise _Unprintable  # a text has no members
            case FunctionCall("lookup", (value, Literal(str(key)))) if self.lenient:
                return self._dug(value, key, "nil")
            case FunctionCall("lookup", (value, Literal(step))) if isinstance(step, int | str):
                return f"index {self._argument(value)} {literal(step)}"
        raise _Unprintable

    def _dug(self, holder: Term, key: str, default: str) -> str:
        """Return the member of a value, which need not be an object, or a default."""
        shown = self._argument(holder)
        return f"dig {literal(key)} {default} (ternary {shown} (dict) (kindIs {_OBJECT} {shown}))"

    def _argument(self, term: Term) -> str:
        return _grouped(self._operand(term))

    def _path(self, term: DataPath, root: str, steps: tuple[Step, ...]) -> str:
        if self.dot is not None:
            if root != self.dot:
                raise _Unprintable
            if not steps:
                return "."
        elif is_moving(term):
            if not isinstance(self.flow, DataPath) or self.flow != DataPath(root):
                raise _Unprintable
            steps = ("previous_output", *steps)
        elif root.startswith("."):
            steps = (root[1:], *steps)
        else:
            raise _Unprintable
        if any(isinstance(step, int) and step < 0 for step in steps):
            raise _Unprintable
        if all(isinstance(step, str) and _NAME.fullmatch(step) for step in steps):
            return "".join(f".{step}" for step in steps)
        return f"index . {' '.join(literal(step) for step in steps)}"

    # Texts

    def _text(self, term: Term) -> str:
        match term:
            case Literal(value):
                return escaped(as_text(value))
            case Text(parts):
                return "".join(self._text(each) for each in parts)
            case Choose(condition, then, otherwise):
                last = "" if otherwise is None else f"{{{{else}}}}{self._text(otherwise)}"
                return f"{{{{if {self._condition(condition)}}}}}{self._text(then)}{last}{{{{end}}}}"
        return self._guarded(term, f"{{{{{self._operand(term)}}}}}", "")

    def _guarded(self, term: Term, shown: str, otherwise: str) -> str:
        """Return an action behind the condition that the paths within a term lead somewhere."""
        guards = self._guards(term)
        if not guards:
            return shown
        last = f"{{{{else}}}}{otherwise}" if otherwise else ""
        return f"{{{{if {_all(guards)}}}}}{shown}{last}{{{{end}}}}"

    def _json(self, term: Term) -> str:
        match term:
            case Literal(value):
                return escaped(compact(value))
            case Record(None, members):
                parts = (f"{escaped(compact(key))}: {self._json(each)}" for key, each in members)
                return f"{{{', '.join(parts)}}}"
            case Items(items):
                return f"[{', '.join(self._json(each) for each in items)}]"
            case Choose(condition, then, otherwise) if otherwise is not None:
                test, then_json, else_json = (
                    self._condition(condition),
                    self._json(then),
                    self._json(otherwise),
                )
                return f"{{{{if {test}}}}}{then_json}{{{{else}}}}{else_json}{{{{end}}}}"
            case Text(inner) if chosen := _choices(inner):
                if len(chosen) > _CHOICES:
                    raise _Unprintable
                return self._json(_lifted(term, chosen[0]))
            case Text(inner) if self._guards(term):
                shown = f"{{{{toJson {self._argument(term)}}}}}"
                without = concatenate(*(each for each in inner if not self._guards(each)))
                return self._guarded(term, shown, self._json(without))
        return self._guarded(term, f"{{{{toJson {self._argument(term)}}}}}", "null")

    # Conditions

    def _condition(self, term: Term, known: Collection[str] = ()) -> str:
        """Return a condition.

        Args:
            term: The condition.
            known: Tests that hold where it is evaluated; they are left out.
        """
        return _all(self._tests(term, known))

    def _tests(self, term: Term, known: Collection[str] = ()) -> list[str]:
        """Return the tests that all hold where a condition does, but for those that are known."""
        if isinstance(term, Logic) and term.operator == "and":
            found: list[str] = []
            for each in term.parts:
                found += self._tests(each, {*known, *found})
            return found
        return [each for each in dict.fromkeys(self._own_tests(term, known)) if each not in known]

    def _own_tests(self, term: Term, known: Collection[str]) -> list[str]:
        match term:
            case Literal(bool(value)):
                return ["true" if value else "false"]
            case Logic(_, parts):
                ways = (_grouped(self._condition(each, known)) for each in parts)
                return [f"or {' '.join(ways)}"]
            case Negation(condition):
                return [f"not {_grouped(self._condition(condition, known))}"]
            case Exists(DataPath(root, (*steps, str(key)))):
                return self._exists(DataPath(root, tuple(steps)), key)
            case Exists(value):
                return [f"ne {self._argument(value)} nil"]
            case Comparison():
                return [*self._guards(term), *self._presence(term), *self._comparison(term)]
            case FunctionCall("contains", (value, part)):
                return [f"contains {self._argument(part)} {self._argument(value)}"]
            case FunctionCall("includes", (value, Literal(str(part)))):
                return [*self._guards(value), self._included(self._argument(value), literal(part))]
            case FunctionCall("matches", (value, Literal(str(pattern)))):
                return self._pattern(self._argument(value), pattern)
            case FunctionCall("boolean", (value,)):
                return self._tests(value, known)
            case DataPath() | FunctionCall("lookup", _) | Choose():
                return [*self._guards(term), self._operand(term)]
        raise _Unprintable

    def _included(self, value: str, part: str) -> str:
        tests = {"string": f"contains {part} {value}", "map": f"hasKey {value} {part}"}
        tests["slice"] = f"has {part} {value}"
        ways = (_all([f"kindIs {literal(kind)} {value}", test]) for kind, test in tests.items())
        return f"or {' '.join(map(_grouped, ways))}"

    def _exists(self, holder: DataPath, key: str) -> list[str]:
        outer = []
        if holder.steps and isinstance(holder.steps[-1], str):
            outer = self._exists(DataPath(holder.root, holder.steps[:-1]), holder.steps[-1])
        shown = self._argument(holder)
        return [*outer, f"kindIs {_OBJECT} {shown}", f"hasKey {shown} {literal(key)}"]

    def _presence(self, term: Comparison) -> list[str]:
        """Return the condition that a value is there which may be null: a missing one is nil."""
        match term:
            case Comparison("=", FunctionCall("type", (DataPath() as path,)), Literal("null")):
                pass
            case Comparison("=", DataPath() as path, Literal(None)):
                pass
            case Comparison("in", DataPath() as path, Literal(list(items))) if None in items:
                pass
            case _:
                return []
        if not self.lenient or not path.steps or not isinstance(path.steps[-1], str):
            return []
        holder = self._argument(DataPath(path.root, path.steps[:-1]))
        return [f"hasKey {holder} {literal(path.steps[-1])}"]

    def _comparison(self, term: Comparison) -> list[str]:
        match term:
            case Comparison("=", FunctionCall("type", (value,)), Literal(str(kind))) if (
                kind in _KINDS
            ):
                return [f"kindIs {literal(_KINDS[kind])} {self._argument(value)}"]
            case Comparison("in", FunctionCall("type", (value,)) as kind, Literal(list(names))):
                ways = (self._comparison(Comparison("=", kind, Literal(each))) for each in names)
                return [f"or {' '.join(_grouped(_all(each)) for each in ways)}"]
            case Comparison("=", FunctionCall("type", (value,)), Literal("null")):
                return [f"eq {self._argument(value)} nil"]
            case Comparison("=", FunctionCall("substring", (value, *ends)), Literal(str(part))) if (
                ends
                in (
                    [Literal(0), Literal(len(part))],
                    [Literal(-len(part))],
                )
            ):
                pattern = f"{escape_glob(part)}*" if len(ends) > 1 else f"*{escape_glob(part)}"
                return self._pattern(self._argument(value), pattern)
            case Comparison("in", value, Literal(list(items))) if 0 < len(items) <= _MOST:
                return [" ".join(("eq", self._argument(value), *map(_constant, items)))]
            case Comparison("in", value, items):
                listed = f"has {self._argument(value)} {self._argument(items)}"
                if not isinstance(items, DataPath):
                    return [listed]
                listed = _all([f"kindIs {_ARRAY} {self._argument(items)}", listed])
                single = _all(self._comparison(Comparison("=", items, value)))
                return [f"or {_grouped(listed)} {_grouped(single)}"]
            case Comparison("=" | "!=" as sign, left, Literal(constant)):
                word = "eq" if sign == "=" else "ne"
                return [f"{word} {self._argument(left)} {_constant(constant)}"]
            case Comparison(kind="timestamp"):
                raise _Unprintable
        return self._relation(term)

    def _relation(self, term: Comparison) -> list[str]:
        """Return a comparison of two values, which are of a kind if it is for such values only."""
        sides = [
            _constant(each.value) if isinstance(each, Literal) else self._argument(each)
            for each in (term.left, term.right)
        ]
        word = {"=": "eq", "!=": "ne", **_ORDERED}[term.operator]
        found = " ".join((word, *sides))
        if term.kind is None:
            is_path = isinstance(term.left, DataPath) and self.lenient and term.operator == "="
            return [*self._tests(Exists(term.left)), found] if is_path else [found]
        literals = [each.value for each in (term.left, term.right) if isinstance(each, Literal)]
        if any(_kind(each) != term.kind for each in literals):
            return ["false"]
        given = [
            shown
            for value, shown in zip((term.left, term.right), sides, strict=True)
            if not isinstance(value, Literal)
        ]
        kind = literal(_KINDS[term.kind])
        return [*(f"kindIs {kind} {each}" for each in given), found]

    def _pattern(self, value: str, pattern: str) -> list[str]:
        parts = literal_pieces(pattern)
        if len(parts) == 1:
            return [f"eq {value} {literal(parts[0])}"]
        first, *middle, last = parts
        if len(middle) > 1 or (middle and (first or last)):
            raise _Unprintable
        tests = [f"kindIs {literal('string')} {value}"]
        if middle:
            tests.append(f"contains {literal(middle[0])} {value}")
        if first:
            tests.append(f"hasPrefix {literal(first)} {value}")
        if last:
            tests.append(f"hasSuffix {literal(last)} {value}")
        if first and last:
            tests.append(f"ge (len {value}) {len(first) + len(last)}")
        return tests


def _choices(parts: tuple[Term, ...]) -> list[Choose]:
    return [each for each in parts if isinstance(each, Choose) and each.otherwise is not None]


def _defaulted(term: Term) -> tuple[DataPath, str, Term] | None:
    """Return the holder and the key of a member, and what takes its place if it is missing."""
    match term:
        case Choose(test, DataPath(root, (*steps, str(key))) as found, other) if other is not None:
            holder = DataPath(root, tuple(steps))
            is_object = Comparison("=", FunctionCall("type", (holder,)), Literal("object"))
            if test in (Exists(found), Logic("and", (is_object, Exists(found)))):
                return holder, key, other
    return None


def _paths_read(term: Term) -> Iterator[DataPath]:
    """Yield the paths within a term that lead nowhere if they are missing."""
    defaulted = _defaulted(term)
    if defaulted is not None:
        yield from _paths_read(defaulted[2])
    elif isinstance(term, DataPath):
        yield term
    else:
        for each in children(term):
            yield from _paths_read(each)


def _lifted(text: Text, choice: Choose) -> Choose:
    """Return a text with a choice in it, however often, as a choice between two texts."""

    def chosen(value: Term | None) -> Term:
        parts = (value if each == choice else each for each in text.parts)
        found = concatenate(*(each for each in parts if each is not None))
        return found if isinstance(found, Literal | Text) else Text((found,))

    return Choose(choice.condition, chosen(choice.then), chosen(choice.otherwise))


def _opened(value: dict[str, Json] | list[Json]) -> Term:
    """Return an object or an array as a term of its members."""
    if isinstance(value, list):
        return Items(tuple(map(Literal, value)))
    return Record(None, tuple((key, Literal(each)) for key, each in value.items()))


def _kind(value: Json) -> str:
    """Return the type of a value under its name in JSON."""
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object" if isinstance(value, dict) else "null")


def _all(tests: list[str]) -> str:
    """Return a condition that holds where all of these do."""
    if not tests:
        return "true"
    return tests[0] if len(tests) == 1 else f"and {' '.join(map(_grouped, tests))}"


def _printed(write: Callable[[Term], str], term: Term) -> str | None:
    try:
        found = write(term)
    except (_Unprintable, RecursionError):
        return None
    return found


def _grouped(action: str) -> str:
    return f"({action})" if " " in action and action[0] not in '("' else action


def literal(value: Json) -> str:
    """Return a value as a constant of a template.

    Raises:
        _Unprintable: The value is an object, an array or a number that is too long.
    """
    if value is None:
        return "nil"
    if isinstance(value, str):
        return compact(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = compact(value)
    if isinstance(value, int | float) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", shown):
        return shown
    raise _Unprintable


def _constant(value: Json) -> str:
    """Return what a value is compared with: numbers of data are floats in Go."""
    shown = literal(value)
    return f"{shown}.0" if type(value) is int else shown


def escaped(text: str) -> str:
    """Return a text as it is in a template; braces that would begin an action are shown."""
    return re.sub(r"\{(?=\{)|\{$", '{{"{"}}', text)


def parses(template: str) -> bool:
    """Return whether a template can be read."""
    try:
        parse(template)
    except ExpressionFault:
        return False
    return True
