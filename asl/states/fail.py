"""Fail: ends its machine with an error name and a cause (6.8)."""

from collections.abc import Iterator

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.errors import StateError
from asl.core.values import Json, type_name
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.program import Step
from asl.states.base import Compiler, Node, Outline, StateType, Tone, Transitions, describe_field
from asl.states.errors import RaisedError


def compile_fail(compiler: Compiler, step: Step) -> None:
    """Compile a Fail; an absent `Error` or `Cause` stays absent in the result (C-29)."""
    error, cause = _text(compiler, "Error"), _text(compiler, "Cause")

    def choose(data: Json, frame: ExpressionFrame) -> tuple[Step | None, Json]:
        raise RaisedError(error(data, frame), cause(data, frame))

    step.choose = choose


def _text(compiler: Compiler, field: str) -> Evaluate:
    for computed in (f"{field}Path", f"{field}.$"):
        if computed in compiler.state:
            return _string(compiler.expression(computed, compiler.state[computed]), computed)
    return compiler.computed_field(field, "string") or constant(compiler.state.get(field))


def _string(evaluate: Evaluate, field: str) -> Evaluate:
    def text(data: Json, frame: ExpressionFrame) -> Json:
        value = evaluate(data, frame)
        if type(value) is not str:
            raise StateError(
                "States.Runtime", f"'{field}' must give a string, not {type_name(value)}"
            )
        return value

    return text


def check_fail(node: Node) -> Iterator[Finding]:
    """One source for the name, one for the cause, and nothing that a failing state ignores."""
    for field in ("Error", "Cause"):
        given = [form for form in (field, f"{field}Path", f"{field}.$") if form in node.value]
        for surplus in given[1:]:
            yield Finding(
                "V-FAIL-01",
                f"{given[0]!r} and {surplus!r} exclude each other",
                node.at(surplus),
                at_key=True,
                aws=Wording(aws_messages.at_most_one(given[0], surplus), at=node.pointer),
            )
    for field in ("InputPath", "OutputPath"):
        if field in node.value:
            yield Finding(
                "V-FAIL-02",
                f"{field!r} has no effect in a Fail state",
                node.at(field),
                severity=Severity.WARNING,
                at_key=True,
                aws=Wording(aws_messages.unknown_field(field), at=node.pointer),
            )
    name = node.value.get("Error")
    if type(name) is str and name.startswith("States."):
        yield Finding(
            "V-FAIL-04",
            f"{name!r} looks like an error of the language itself",
            node.at("Error"),
            hint="names that begin with 'States.' are reserved",
        )


FAIL = StateType(
    "Fail",
    compile_fail,
    check_fail,
    aws=True,
    transitions=Transitions.NOTHING,
    outline=Outline.OVAL,
    tone=Tone.BAD,
    describe=describe_field("Error"),
)
