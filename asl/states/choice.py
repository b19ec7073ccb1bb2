"""Choice: goes to the first rule that holds, else to `Default` (6.2)."""

import json
from collections.abc import Iterator, Mapping

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.choice_rules import COMBINATORS, OPERATORS, Predicate
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.times import instant, parse_relative
from asl.program import Choose, Finish, Step
from asl.states.base import Compiler, Node, Outline, StateType, Tone, Transitions


def compile_choice(compiler: Compiler, step: Step) -> None:
    """Compile a Choice into one pure closure that yields the next step and the output."""
    count = len(compiler.state["Choices"])
    rules = [_rule(compiler.compiler_at("Choices", index)) for index in range(count)]
    default = _default(compiler)
    unmatched = _unmatched(compiler)
    shapes = "InputPath" in compiler.state
    if shapes or any(leave for *_, leave in (*rules, *([default] if default else ()))):
        step.choose = _filtered(rules, default, unmatched, compiler.input())
    else:
        step.choose = _plain(rules, default, unmatched)


_Target = tuple[Step, Finish | None]
_Rule = tuple[Predicate, Step, Finish | None]
_Failure = tuple[str, str]
"""An error's name and cause."""


def _rule(compiler: Compiler) -> _Rule:
    return compiler.condition(), compiler.step(compiler.state["Next"]), compiler.leave()


def _default(compiler: Compiler) -> _Target | None:
    if "Default" not in compiler.state:
        return None
    return compiler.step(compiler.state["Default"]), compiler.leave()


def _unmatched(compiler: Compiler) -> _Failure:
    """Return how the state fails if no rule matches; AWS does not say what it documents."""
    way = "Failed to transition out of the state"
    if compiler.profile.aws:
        return "States.Runtime", f"{way}. The state does not point to a next state."
    missing = "no rule of 'Choices' matches and there is no 'Default'"
    return "States.NoChoiceMatched", f"{way} '{compiler.name}': {missing}"


def _chosen(
    rules: list[_Rule],
    default: _Target | None,
    unmatched: _Failure,
    data: Json,
    frame: ExpressionFrame,
) -> _Target:
    for holds, target, leave in rules:
        if holds(data, frame):
            return target, leave
    if default is None:
        raise StateError(*unmatched)
    return default


def _plain(rules: list[_Rule], default: _Target | None, unmatched: _Failure) -> Choose:
    """Compile the usual Choice: nothing is filtered and nothing assigned."""
    targets = [(holds, target) for holds, target, _ in rules]

    def choose(data: Json, frame: ExpressionFrame) -> tuple[Step | None, Json]:
        for holds, target in targets:
            if holds(data, frame):
                return target, data
        return _chosen([], default, unmatched, data, frame)[0], data

    return choose


def _filtered(
    rules: list[_Rule], default: _Target | None, unmatched: _Failure, effective_input: Evaluate
) -> Choose:
    def choose(data: Json, frame: ExpressionFrame) -> tuple[Step | None, Json]:
        effective = effective_input(data, frame)
        target, leave = _chosen(rules, default, unmatched, effective, frame)
        return target, effective if leave is None else leave(data, effective, frame)

    return choose


def check_choice(node: Node) -> Iterator[Finding]:
    """Rules have one shape and one operator, and lead somewhere in every case."""
    yield from check_rules(node)
    if "Default" not in node.value:
        yield Finding(
            "V-CHOICE-06",
            f"{node.name!r} fails if no rule matches",
            node.pointer,
            "add 'Default'",
            at_key=True,
        )


def check_rules(node: Node) -> Iterator[Finding]:
    """Find what is wrong with the rules in `Choices`, beyond their schema and expressions."""
    choices = node.value.get("Choices")
    rules = choices if type(choices) is list else []
    earlier: dict[str, str] = {}
    for index, rule in enumerate(rules):
        if type(rule) is not dict:
            continue
        pointer = node.at("Choices", index)
        if node.query_language == "JSONPath":
            yield from _check_rule(rule, pointer)
        elif "Condition" not in rule:
            yield Finding("V-CHOICE-03", "the rule has no 'Condition'", pointer)
        condition = _condition(rule)
        if condition in earlier:
            yield Finding(
                "V-CHOICE-08",
                "an earlier rule has the same condition, so this one is never used",
                pointer,
                related=((earlier[condition], "the earlier rule"),),
            )
        earlier.setdefault(condition, pointer)


def _condition(rule: Mapping[str, Json]) -> str:
    """Return what decides whether the rule holds, the same text for the same condition."""
    if type(rule.get("Condition")) is str:
        return str(rule["Condition"])
    aside = ("Next", "Assign", "Output", "Comment")
    condition = {field: value for field, value in rule.items() if field not in aside}
    return json.dumps(condition, sort_keys=True)


def _check_rule(rule: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    yield from _check_form(rule, pointer)
    for field, value in rule.items():
        if field in ("And", "Or"):
            for index, part in enumerate(value if type(value) is list else ()):
                if type(part) is dict:
                    yield from _check_rule(part, f"{pointer}/{field}/{index}")
        elif field == "Not" and type(value) is dict:
            yield from _check_rule(value, f"{pointer}/{field}")
        elif field in OPERATORS:
            yield from _check_operand(field, value, f"{pointer}/{field}")
    if "Variable.$" in rule:
        yield Finding(
            "V-CHOICE-07", "AWS has no 'Variable.$'", f"{pointer}/Variable.$", at_key=True
        )


def _check_form(rule: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """One of And, Or, Not, or a variable with one operator."""
    combinators = [field for field in COMBINATORS if field in rule]
    operators = [field for field in rule if field in OPERATORS]
    variables = [field for field in ("Variable", "Variable.$") if field in rule]
    if combinators:
        yield from _exclusive([*combinators, *variables, *operators], pointer)
    elif "Condition" in rule:
        return  # a rule of the other query language, which is a fault of its own
    elif not variables:
        words = f"The object must have only one of the following fields, {_SELECTORS}"
        yield Finding("V-CHOICE-03", "the rule has no 'Variable'", pointer, aws=Wording(words))
    elif not operators and rule.keys() <= _FIELDS:
        message = "the rule compares its variable with nothing"
        yield Finding(
            "V-CHOICE-03", message, pointer, aws=Wording(aws_messages.exactly_one(*_COMPARISONS))
        )
    else:
        yield from _exclusive(operators, pointer)
    if len(variables) == 2:
        yield Finding(
            "V-ST-09",
            "both 'Variable' and 'Variable.$' are given",
            f"{pointer}/Variable.$",
            at_key=True,
        )


def _several(conditions: list[str]) -> str:
    if any(field in COMBINATORS for field in conditions):
        return f"The object must have only one of the following fields, {_SELECTORS}"
    return aws_messages.at_most_one(*conditions)


_SELECTORS = "[And, Or, Not, Variable, Condition]"

_COMPARISONS = sorted(OPERATORS, key=lambda name: name.startswith("Is"))

_FIELDS = frozenset({"Variable", "Variable.$", "Next", "Assign", "Comment"})


def _exclusive(conditions: list[str], pointer: str) -> Iterator[Finding]:
    if len(conditions) > 1:
        yield Finding(
            "V-CHOICE-03",
            f"a rule has one condition: {' and '.join(map(repr, conditions))} are several",
            pointer,
            'combine several rules with "And"',
            related=tuple((f"{pointer}/{field}", "one of them") for field in conditions),
            aws=Wording(_several(conditions)),
        )


def _check_operand(name: str, value: Json, pointer: str) -> Iterator[Finding]:
    if type(value) is not str:
        return
    if name == "StringMatches" and set(value) & set("?["):
        yield Finding("V-CHOICE-10", "only * is a wildcard here; ? and [ are literal", pointer)
    if OPERATORS[name].operand != "timestamp":
        return
    if parse_relative(value) is not None:
        message = f"AWS has no times relative to now, such as {value!r}"
        yield Finding("V-CHOICE-07", message, pointer)
    elif instant(value) is None:
        yield Finding(
            "V-CHOICE-04",
            f"{value!r} names no real date and time",
            pointer,
            'a timestamp looks like "2030-01-31T13:45:00Z"',
        )


CHOICE = StateType(
    "Choice",
    compile_choice,
    check_choice,
    aws=True,
    transitions=Transitions.RULES,
    outline=Outline.DIAMOND,
    tone=Tone.CHOICE,
)
