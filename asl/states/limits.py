"""The limits of calls: `TimeoutSeconds`, `HeartbeatSeconds` and their Path twins (4.5)."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.values import Json, is_integer
from asl.expr.frame import Frame
from asl.states.base import Compiler, Node
from asl.states.numbers import MAX_SECONDS, number

__all__ = ["Limits", "check_limits", "compile_limits"]

Limits: TypeAlias = tuple[float | None, float | None]
"""Timeout and heartbeat in seconds, None for none."""


def compile_limits(compiler: Compiler) -> Callable[[Json, Frame], Limits] | None:
    """Compile `(effective input, frame) -> limits`, None where there are none."""
    least = 0 if compiler.jsonata else 1  # AWS (observed)
    timeout = number(compiler, "TimeoutSeconds", least, MAX_SECONDS)
    heartbeat = number(compiler, "HeartbeatSeconds", least, MAX_SECONDS)
    if timeout is None and heartbeat is None:
        return None
    return lambda data, frame: (
        None if timeout is None else timeout(data, frame),
        None if heartbeat is None else heartbeat(data, frame),
    )


def check_limits(node: Node) -> Iterator[Finding]:
    """One form of each limit, a heartbeat shorter than the timeout."""
    for field in ("TimeoutSeconds", "HeartbeatSeconds"):
        if field in node.value and f"{field}Path" in node.value:
            yield Finding(
                "V-TASK-04",
                f"'{field}' and '{field}Path' exclude each other",
                node.at(f"{field}Path"),
                at_key=True,
                aws=Wording(aws_messages.at_most_one(field, f"{field}Path"), at=node.pointer),
            )
    timeout, heartbeat = node.value.get("TimeoutSeconds"), node.value.get("HeartbeatSeconds")
    if timeout is None or heartbeat is None:
        return
    if is_integer(timeout) and is_integer(heartbeat) and heartbeat >= timeout:
        yield Finding(
            "V-TASK-07",
            f"the heartbeat must be shorter than the timeout of {timeout} seconds",
            node.at("HeartbeatSeconds"),
        )
