"""Checkpoint states and automatic checkpoints: V-CKPT-03, V-CKPT-04, V-CKPG-01."""

from collections.abc import Iterator, Mapping

from asl.checks.workflow import CheckedWorkflow, text
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr.times import parse_duration

__all__ = ["check"]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield checkpoints inside branches, with equal names, or with impossible intervals."""
    first: dict[str, str] = {}
    for scope in workflow.scopes:
        for node in scope.nodes:
            if node.value.get("Type") != "Checkpoint":
                continue
            if scope.holder is not None:
                yield Finding(
                    "V-CKPT-03",
                    f"no execution can be resumed here, within {scope.holder.name!r}",
                    node.pointer,
                    "save before or after it, at the top level",
                    at_key=True,
                )
            name = text(node.value, "Name")
            if name is None or "{{" in name:
                continue
            if name in first:
                yield Finding(
                    "V-CKPT-04",
                    f"there is another checkpoint named {name!r}",
                    node.at("Name"),
                    "give each its own name: an execution resumes from the latest one of a name",
                    related=((first[name], "the other one is here"),),
                )
            first.setdefault(name, node.at("Name"))
    written = workflow.value.get("Checkpointing")
    if type(written) is dict:
        yield from _automatic(written)


def _automatic(written: Mapping[str, Json]) -> Iterator[Finding]:
    every, lifetime = text(written, "Every"), text(written, "TTL")
    if every is not None and every.rstrip("mshdw").strip("0") == "" and every[:1] == "0":
        yield Finding(
            "V-CKPG-01",
            f"'Every' is never due with {every!r}",
            "/Checkpointing/Every",
            '"state" saves after every transition, "5" after every fifth, "10m" after ten minutes',
        )
    elif every is not None and _is_beyond(every):
        message = "'Every' is more than any number of transitions or seconds"
        yield Finding("V-CKPG-01", message, "/Checkpointing/Every", 'write "5" or "10m"')
    if lifetime is not None and lifetime.startswith("{%"):
        yield Finding(
            "V-CKPG-01",
            "'TTL' has no state whose data an expression could read",
            "/Checkpointing/TTL",
            'write a duration such as "7d", or "never"',
        )
    elif lifetime is not None and _is_beyond(lifetime):
        message = "'TTL' is longer than any number of seconds"
        yield Finding("V-CKPG-01", message, "/Checkpointing/TTL", 'write "never"')


def _is_beyond(written: str) -> bool:
    """Return whether a text looks like a duration but is too large for one."""
    try:
        parse_duration(written, allow_never=True)
    except ExpressionFault:
        return written.rstrip("mshdw").isdecimal()
    return False
