"""Rules of the engine that a blueprint names: what works here and fails there."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.values import compact
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.functions.conditions import compile_expression, parse_number

__all__ = ["ENGINE", "of_engine"]

ENGINE: Final = "0.6.11"
"""The version of the engine that blueprints are written for."""
CODE: Final = "FL-ENGINE"
SCRATCHPAD: Final = re.compile(r"context\.scratchpad\b|\"(?:sink_to|path)\":\"scratchpad\b")
_PASSTHROUGH: Final = "flujo.builtins.passthrough"


def of_engine(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield what the engine that a blueprint names refuses or evaluates otherwise.

    Args:
        blueprint: A blueprint without errors.
    """
    if blueprint.value.get("x-engine") != ENGINE:
        return
    if SCRATCHPAD.search(compact(blueprint.value["steps"])):
        message = f"engine {ENGINE} refuses a context with 'scratchpad'"
        yield Finding(CODE, message, "/steps", "put its fields into the context", at_key=True)
    yield from _of_steps(blueprint.steps, in_branch=False)
    for step in blueprint.all_steps:
        for text, place in step.conditions:
            yield from _of_condition(text, place)


def _of_steps(steps: tuple[BlueprintStep, ...], *, in_branch: bool) -> Iterator[Finding]:
    for first, second in pairwise(steps):
        typed = second.kind == "conditional" or second.agent == _PASSTHROUGH
        if first.kind == "StateMachine" and typed:
            message = f"{second.name!r} fails after a state machine, whose output is null"
            hint = "put a step with flujo.builtins.stringify between them"
            yield Finding(CODE, message, second.pointer, hint)
    for step in steps:
        if in_branch and step.kind == "hitl":
            message = f"engine {ENGINE} chooses the branch again with the answer to {step.name!r}"
            yield Finding(CODE, message, step.pointer, "ask before the branches")
        for body in step.bodies():
            yield from _of_steps(body.steps, in_branch=step.kind == "conditional")


def _of_condition(text: str, place: str) -> Iterator[Finding]:
    for node in ast.walk(compile_expression(text).tree):
        match node:
            case ast.Compare(ast.Constant(str(part)), [ast.In() | ast.NotIn(), *_]):
                if parse_number(part) is not None:
                    message = f"engine {ENGINE} reads {part!r} as a number, which is in no text"
                    hint = "compare the whole value, or a part with other characters"
                    yield Finding(CODE, message, place, hint)
            case ast.Call(ast.Attribute(owner, "get")) if _lacks_get(owner):
                message = f"engine {ENGINE} has no get for the context, so this never matches"
                yield Finding(CODE, message, place, "write context.NAME")


def _lacks_get(owner: ast.expr) -> bool:
    return ast.unparse(owner) in ("context", "context.import_artifacts")
