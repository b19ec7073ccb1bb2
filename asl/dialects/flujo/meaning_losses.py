"""What the meanings of the functions of blueprints leave out."""

import ast
from collections.abc import Iterator
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.values import Json
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep, StepBody, steps_of
from asl.dialects.flujo.functions.conditions import compile_expression
from asl.dialects.flujo.reader import METADATA
from asl.expr.query_protocol import query_source

__all__ = ["meaning_losses"]

_NUMBER: Final = "only a number is compared, not a text that reads as one"
_WITHIN: Final = "a computed value is looked for in lists only, not in texts and objects"


def meaning_losses(document: Document) -> Iterator[Finding]:
    """Yield what a blueprint does here and its meaning does not state.

    Args:
        document: A document that was read from a blueprint.

    Yields:
        A loss for each cause and place in the blueprint.
    """
    blueprint = Blueprint(document.value["Metadata"][METADATA]["blueprint"])
    place = blueprint.steps[0].pointer if blueprint.steps else "/steps"
    message = "the input is the field $.input, next to the fields of the context"
    hint = 'give the input as {"input": ..., and the fields of the context}'
    yield Finding("L-INPUT", message, place, hint)
    message = "an agent gets its input, without the context"
    yield Finding("L-SHARED", message, place, "put what it needs into its input")
    message = "a run results in its last output, without the context"
    yield Finding("L-OUTPUT", message, place, "return what is needed from the last step")
    for step in blueprint.all_steps:
        yield from _of_conditions(step)
        yield from _of_texts(step)
        match step.kind:
            case "StateMachine":
                yield from _of_machine(step)
            case "parallel" | "dynamic_router":
                yield from _of_branches(step)
            case "map":
                yield from _of_items(step)


# Conditions and texts ---------------------------------------------------------------------------


def _of_conditions(step: BlueprintStep) -> Iterator[Finding]:
    for text, place in step.conditions:
        for node in ast.walk(compile_expression(text).tree):
            if not isinstance(node, ast.Compare):
                continue
            values = (node.left, *node.comparators)
            known = [each.value for each in values if isinstance(each, ast.Constant)]
            if any(type(each) in (int, float) for each in known):
                yield Finding("L-ANSWER", _NUMBER, place, severity=Severity.ERROR)
            for op, part, whole in zip(node.ops, values, node.comparators, strict=False):
                known_part = isinstance(part, ast.Constant) or isinstance(
                    whole, ast.List | ast.Tuple
                )
                if isinstance(op, ast.In | ast.NotIn) and not known_part:
                    yield Finding("L-ANSWER", _WITHIN, place, severity=Severity.ERROR)


def _of_texts(step: BlueprintStep) -> Iterator[Finding]:
    for key in ("input", "message"):
        text = step.value.get(key)
        if isinstance(text, str) and "{{" in text and query_source(text) is None:
            message = "null in a text is 'null', instead of nothing"
            yield Finding("L-NULL", message, step.at(key))


# Machines and branches ----------------------------------------------------------------------------


def _of_machine(step: BlueprintStep) -> Iterator[Finding]:
    machine = step.machine
    message = "a run begins in start_state, even if current_state of its input names another state"
    place = step.at("start_state")
    hint = "start a run of the states that are left"
    yield Finding("L-NEXT", message, place, hint, severity=Severity.INFO)
    if machine.repeats:
        message = "a machine that repeats its states has no limit of hops"
        hint = "let a rule count the rounds"
        yield Finding("L-LIMIT", message, step.pointer, hint, severity=Severity.ERROR)
    for name, body in machine.states.items():
        if not machine.covers(name, "success") and any(each.agent for each in body.steps):
            message = "where no rule matches the machine ends, whatever next_state names"
            yield Finding("L-NEXT", message, body.pointer, severity=Severity.ERROR)
        for each in steps_of(body.steps):
            if each.kind == "StateMachine":
                message = "the context of the inner machine is not that of the outer one"
                yield Finding("L-NESTED", message, each.pointer, severity=Severity.ERROR)
        leads = any(rule.target != name for rule in machine.tried(name, "pause"))
        asking = [each for each in body.steps[1:] if each.kind == "hitl"]
        for each in asking if leads else ():
            message = "the effects of the state before the question are not undone"
            yield Finding("L-TRANSFORM", message, each.pointer)


def _of_branches(step: BlueprintStep) -> Iterator[Finding]:
    if any(map(_writes, step.branches.values())):
        message = "the fields of the context that branches write are not merged"
        hint = "return them as the output of the branch"
        yield Finding("L-PARRESULT", message, step.pointer, hint, severity=Severity.ERROR)


def _of_items(step: BlueprintStep) -> Iterator[Finding]:
    if _writes(step.body("map", "body")):
        message = "the fields of the context that items write are not visible outside of their item"
        hint = "return them as the output of the item"
        yield Finding("L-MAPRESULT", message, step.pointer, hint, severity=Severity.ERROR)


def _writes(body: StepBody) -> Json:
    return any(each.flags or "context_" in str(each.agent) for each in steps_of(body.steps))
