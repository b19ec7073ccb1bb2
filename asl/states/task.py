"""Task: calls an agent or a resource handler (6.1)."""

from collections.abc import Callable, Iterator, Mapping

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.values import Json, type_name
from asl.expr.frame import Evaluate
from asl.program import Step, Work
from asl.states.base import Compiler, Node, StateType
from asl.states.blocks import (
    AGENT_BLOCKS,
    compile_details,
    compile_inserts,
    find_wraps,
    reads_memory,
)
from asl.states.blocks.audit import compile_redaction
from asl.states.blocks.base import compile_call
from asl.states.blocks.feedback import compile_feedback
from asl.states.blocks.memory import INSERTIONS
from asl.states.calls import CallOptions, Handover, Invocation, Target
from asl.states.effects import StateFrame
from asl.states.numbers import check_time_limits, compile_time_limits


def compile_task(compiler: Compiler, step: Step) -> None:
    """Compile a Task: `InputPath`, `Parameters`, the call, then the result's way to the output."""
    target, effective_input = _target(compiler), compiler.input()
    payload = compiler.payload()
    # Values read from memory cannot be computed again; such a call records its payload.
    step.payload = None if reads_memory(compiler.state) else payload
    step.resource = compiler.state.get("Resource")
    limits = step.limits = _options(compiler, effective_input)
    wraps = list(find_wraps(compiler.state))
    if wraps:
        step.work = compile_call(compiler, target, limits, iter(wraps))
    else:
        step.work = _work(target, payload, limits)
        step.call = target if limits is None and not _answered_later(target) else None
    step.finish = compiler.finish(inserts=compile_inserts(compiler))
    step.details = compile_details(compiler)
    step.redact = compile_redaction(compiler)
    step.feedback = compile_feedback(compiler)


def _target(compiler: Compiler) -> Target:
    kind = "agent" if "Agent" in compiler.state else "resource"
    return Target(kind, compiler.state[kind.capitalize()], compiler.name)


_Options = Callable[[Json, StateFrame], CallOptions]


def _options(compiler: Compiler, effective_input: Evaluate) -> _Options | None:
    limits = compile_time_limits(compiler)
    credentials = compiler.template("Credentials") if "Resource" in compiler.state else None
    if limits is None and credentials is None:
        return None
    # AWS gives a timed-out task no cause (recorded).
    state = None if compiler.profile.aws else compiler.name

    def options(raw: Json, frame: StateFrame) -> CallOptions:
        data = effective_input(raw, frame)
        timeout, heartbeat = (None, None) if limits is None else limits(data, frame)
        given = None if credentials is None else credentials(data, frame)
        return CallOptions(timeout, heartbeat, state, given)

    return options


def _work(target: Target, payload: Evaluate, options: _Options | None) -> Work:
    if _answered_later(target):
        return lambda data, frame: frame.effects.call(
            frame,
            Handover(
                target, payload(data, frame), None if options is None else options(data, frame)
            ),
        )
    if options is None:
        return lambda data, frame: frame.effects.call(
            frame, Invocation(target, payload(data, frame))
        )
    limits = options
    return lambda data, frame: frame.effects.call(
        frame, Invocation(target, payload(data, frame), limits(data, frame))
    )


def _answered_later(target: Target) -> bool:
    return bool(target.pattern) or target.is_activity


COMPUTED = ("$.", "$$", "{%")
"""What no name of an agent or a resource begins with: there it would be an expression."""


def check_task(node: Node) -> Iterator[Finding]:
    """One target, one form of each limit, a heartbeat shorter than the timeout."""
    yield from _check_target(node)
    yield from check_time_limits(node)
    if "Credentials" in node.value and "Resource" not in node.value:
        yield Finding(
            "V-TASK-06",
            "'Credentials' has no effect on an agent",
            node.at("Credentials"),
            severity=Severity.WARNING,
            at_key=True,
        )
    if "Agent" in node.value and type(node.value.get("Parameters", {})) is not dict:
        yield Finding(
            "V-TASK-09",
            f"agents usually take an object, not {type_name(node.value['Parameters'])}",
            node.at("Parameters"),
            "wrap the value into an object",
            severity=Severity.WARNING,
        )


def _check_target(node: Node) -> Iterator[Finding]:
    for field in ("Agent", "Resource"):
        name = node.value.get(field)
        if type(name) is str and name.startswith(COMPUTED):
            yield Finding(
                "V-TASK-02",
                f"{field!r} is a fixed name, not an expression",
                node.at(field),
                "choose between agents with a Choice state",
            )
    agent, resource = "Agent" in node.value, "Resource" in node.value
    if agent and resource:
        yield Finding(
            "V-TASK-01",
            "'Agent' and 'Resource' exclude each other",
            node.pointer,
            "remove one of them",
            related=((node.at("Resource"), "'Resource' is here"),),
            at_key=True,
        )
    elif not agent and not resource:
        yield Finding(
            "V-TASK-01",
            f"{node.name!r} has neither 'Agent' nor 'Resource'",
            node.pointer,
            "'Agent' is a fixed name: choose between agents with a Choice state"
            if "Agent.$" in node.value
            else "add 'Agent' or 'Resource'",
            at_key=True,
            aws=Wording(aws_messages.required_fields(["Resource"])),
        )
    elif resource:
        for block in AGENT_BLOCKS:
            if block in node.value:
                yield Finding(
                    "V-TASK-08",
                    f"{block!r} has no effect on a resource, only on an agent",
                    node.at(block),
                    at_key=True,
                )


def describe_task(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield whom the state calls."""
    if type(state.get("Agent")) is str:
        yield state["Agent"]
    elif type(state.get("Resource")) is str:
        yield _target_of(state["Resource"])


def _target_of(arn: str) -> str:
    """Return the distinctive part of an ARN: `lambda:invoke`, `function:f`."""
    parts = arn.split(":")
    if not arn.startswith("arn:") or len(parts) < 6:
        return arn
    return ":".join(parts[5:])


TASK = StateType(
    "Task",
    compile_task,
    check_task,
    aws=True,
    effect=True,
    budgeted=True,
    insertions=(*INSERTIONS, ("Feedback", "Question")),
    describe=describe_task,
)
