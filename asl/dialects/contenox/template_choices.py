"""Templates that compute the next task: `/{{if eq .a "x"}}one{{else}}other{{end}}` as choice rules.

A chain has no conditions on its variables but those of templates, so a task that decides fills in
the word to choose by and has a branch for each. In a language with rules the conditions are those.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json
from asl.dialects.contenox.chain import Branch, Chain, Task
from asl.dialects.contenox.functions import handlers
from asl.dialects.contenox.functions.templates import (
    Expression,
    Node,
    ShowAction,
    TemplateBlock,
    TemplateCall,
    TemplateConstant,
    TemplateField,
    parse,
)
from asl.dialects.contenox.functions.texts import template_text
from asl.expr.text_matching import escape_glob

__all__ = ["NoRuleEquivalent", "TemplateCase", "cases", "rule"]

Rule = dict[str, Json]
Find = Callable[[tuple[str, ...]], str | None]
"""Returns the path of a variable of the chain, None or nothing if there is none."""


class NoRuleEquivalent(Exception):
    """The condition has no equivalent choice rule."""


class TemplateCase(NamedTuple):
    """A condition (None for the default), the text if it is true, and the branch for that text.

    The text is a value of the data where a task shows that. The branch is the default branch if no
    other matches, None if there is none.
    """

    test: Expression | None
    text: str | TemplateField
    branch: Branch | None


def cases(chain: Chain, task: Task) -> list[TemplateCase] | None:
    """Return the cases of a task that only decides, None for any other."""
    decides = task.handler == "parse_transition" or task.echoes
    if not decides or not task.template or task.on_failure is not None:
        return None
    explicit, default = chain.ordered(task)
    if not explicit or any(each.operator != "equals" for each in explicit):
        return None
    if task.value.get("compose") or any(each.compose for each in task.branches):
        return None
    try:
        nodes = parse(task.template)
        match nodes:
            case (ShowAction(TemplateField() as value),) if task.echoes:
                return _compared(value, explicit, default)
        listed = _listed(nodes)
        words = [
            (test, text, text if task.echoes else str(handlers.parse_transition(text)["eval"]))
            for test, text in listed or ()
        ]
    except (ExpressionFault, StateError):
        return None
    found = (
        (test, text, next((each for each in explicit if each.when == word), default))
        for test, text, word in words
    )
    return [TemplateCase(*each) for each in found] or None


def _compared(
    value: TemplateField, explicit: Sequence[Branch], default: Branch | None
) -> list[TemplateCase]:
    """Return the cases of a task that compares one value with texts."""
    found = [
        TemplateCase(TemplateCall("eq", (value, TemplateConstant(each.when))), each.when, each)
        for each in explicit
    ]
    return [*found, TemplateCase(None, value, default)]


def _listed(nodes: Sequence[Node]) -> list[tuple[Expression | None, str]] | None:
    """Return the texts of a template with one `if`, None for any other."""
    blocks = [index for index, each in enumerate(nodes) if isinstance(each, TemplateBlock)]
    if not blocks:
        text = _text(nodes)
        return None if text is None else [(None, text)]
    block = nodes[blocks[0]]
    before, after = _text(nodes[: blocks[0]]), _text(nodes[blocks[0] + 1 :])
    if (
        not isinstance(block, TemplateBlock)
        or block.kind != "if"
        or before is None
        or after is None
    ):
        return None
    body, others = _text(block.body), _listed(block.otherwise)
    if body is None or others is None:
        return None
    inner = [(block.value, body), *others]
    return [(test, f"{before}{text}{after}") for test, text in inner]


def _text(nodes: Sequence[Node]) -> str | None:
    """Return a text that is written out, None for one that is filled in."""
    parts: list[str] = []
    for node in nodes:
        match node:
            case str():
                parts.append(node)
            case ShowAction(TemplateConstant(value)):
                parts.append(template_text(value))
            case _:
                return None
    return "".join(parts)


# --------------------------------------------------------------------------------------------
# Conditions

_ORDERED: Final[Mapping[str, str]] = {
    "lt": "LessThan",
    "le": "LessThanEquals",
    "gt": "GreaterThan",
    "ge": "GreaterThanEquals",
}
_TURNED: Final[Mapping[str, str]] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_TESTS: Final = {"string": "IsString", "float64": "IsNumeric", "bool": "IsBoolean"}
_PATTERNS: Final[Mapping[str, str]] = {
    "contains": "*{}*",
    "hasPrefix": "{}*",
    "hasSuffix": "*{}",
}


def rule(test: Expression, find: Find) -> Rule | bool:
    """Return a condition as a rule, or its truth where it is known; raises NoRuleEquivalent."""
    match test:
        case TemplateConstant(value):
            return bool(value)
        case TemplateCall("and" | "or" as word, given):
            return _joined(word == "and", [rule(each, find) for each in given])
        case TemplateCall("not", (inner,)):
            return _not(rule(inner, find))
        case TemplateCall("eq", (first, *others)):
            return _joined(False, [_equal(first, each, find) for each in others])
        case TemplateCall("ne", (first, other)):
            return _not(_equal(first, other, find))
        case TemplateCall("kindIs", (TemplateConstant("map"), TemplateField())):
            return True  # a path through anything else leads nowhere
        case TemplateCall("hasKey", (TemplateField(names), TemplateConstant(str(key)))):
            return {"Variable": _path((*names, key), find), "IsPresent": True}
        case TemplateCall("kindIs", (TemplateConstant(str(kind)), TemplateField(names))) if (
            kind in _TESTS
        ):
            return {"Variable": _path(names, find), _TESTS[kind]: True}
        case TemplateCall(word, (TemplateConstant() as first, TemplateField() as second)) if (
            word in _TURNED
        ):
            return rule(TemplateCall(_TURNED[word], (second, first)), find)
        case TemplateCall(word, (TemplateField(names), TemplateConstant(value))) if (
            word in _ORDERED
        ):
            return {"Variable": _path(names, find), f"{_kind(value)}{_ORDERED[word]}": value}
        case TemplateCall(word, (TemplateConstant(str() as part), TemplateField(names))) if (
            word in _PATTERNS
        ):
            pattern = _PATTERNS[word].format(escape_glob(part))
            return {"Variable": _path(names, find), "StringMatches": pattern}
    raise NoRuleEquivalent


def _joined(every: bool, parts: list[Rule | bool]) -> Rule | bool:
    """Return what holds where every part does, or any."""
    if any(each is not every for each in parts if isinstance(each, bool)):
        return not every
    rules = [each for each in parts if not isinstance(each, bool)]
    left: list[Json] = [each for each in rules if not (every and _implied(each, rules))]
    if not left:
        return every
    found = left[0] if len(left) == 1 else {"And" if every else "Or": left}
    assert isinstance(found, dict)
    return found


def _implied(rule: Rule, rules: list[Rule]) -> bool:
    """Return whether a test of a type is implied by another rule about the same value."""
    kinds = {"IsString": "String", "IsNumeric": "Numeric", "IsBoolean": "Boolean"}
    kind = next((kinds[key] for key in rule if key in kinds), None)
    return kind is not None and any(
        each.get("Variable") == rule["Variable"] and any(key.startswith(kind) for key in each)
        for each in rules
    )


def _not(found: Rule | bool) -> Rule | bool:
    return not found if isinstance(found, bool) else {"Not": found}


def _equal(one: Expression, other: Expression, find: Find) -> Rule | bool:
    match one, other:
        case TemplateConstant(left), TemplateConstant(right):
            return type(left) is type(right) and left == right
        case TemplateConstant(), TemplateField():
            return _equal(other, one, find)
        case TemplateField(names), TemplateConstant(None):
            path = _path(names, find)
            return {
                "Or": [{"Variable": path, "IsPresent": False}, {"Variable": path, "IsNull": True}]
            }
        case TemplateField(names), TemplateConstant(value):
            return {"Variable": _path(names, find), f"{_kind(value)}Equals": value}
    raise NoRuleEquivalent


def _kind(value: Json) -> str:
    """Return how operators that compare with a value begin."""
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int | float):
        return "Numeric"
    if isinstance(value, str):
        return "String"
    raise NoRuleEquivalent


def _path(names: tuple[str, ...], find: Find) -> str:
    found = find(names)
    if not found:
        raise NoRuleEquivalent
    return str(found)  # of a text that knows that it is a path only the text
