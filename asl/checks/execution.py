"""What this version checks but does not execute: `EXEC-...`."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final

from asl.checks.workflow import CheckedWorkflow, below
from asl.core.diagnostics import Finding, Severity
from asl.core.environment import install_command
from asl.core.pointers import escape
from asl.core.values import Json
from asl.states.base import Node
from asl.states.blocks import AGENT_BLOCKS, BLOCKS, DOCUMENT_BLOCKS, STATE_BLOCKS
from asl.states.blocks.budget_limits import WINDOWS

__all__ = ["check"]


def check(workflow: CheckedWorkflow, *, for_run: bool, ignore_blocks: bool) -> Iterator[Finding]:
    """Yield what a run of this document would need and this version lacks.

    Errors if the document is to be run, otherwise information. With *ignore_blocks* the run goes
    on without the agent blocks, so those draw a warning.
    """
    severity = Severity.ERROR if for_run else Severity.INFO
    # A check says by V-TOP-09 that a block is not computed as a whole; a run is refused for it.
    whole = _computed(workflow) if for_run or ignore_blocks else ()
    for finding in (*_unexecuted(workflow), *whole):
        if finding.code == "EXEC-02" and ignore_blocks:
            yield finding._replace(
                message=f"{finding.message}: the run ignores it, so its limits are not enforced",
                severity=Severity.WARNING,
            )
        else:
            yield finding._replace(severity=severity)


def _unexecuted(workflow: CheckedWorkflow) -> Iterator[Finding]:
    for field in DOCUMENT_BLOCKS:
        if field in workflow.value:
            yield from _of_block(field, workflow.value[field], f"/{field}")
    for scope in workflow.scopes:
        if scope.is_included:
            for field in DOCUMENT_BLOCKS:
                if field in scope.value:
                    yield from _of_block(field, scope.value[field], f"{scope.pointer}/{field}")
            yield from _of_whole(workflow, below(scope.value, "Budget"), f"{scope.pointer}/Budget")
            if "TimeoutSeconds" in scope.value:
                yield _about_executions("TimeoutSeconds", scope.pointer)
    if workflow.module:
        yield Finding("EXEC-05", "a module is included, not run by itself", "/Module", at_key=True)
    for node in workflow.nodes():
        yield from _of_state(node)


OF_WHOLE: Final = (*WINDOWS, "Pool", "MaxFromPool", "ReleaseOnComplete", "TrackBy", "ResetPeriod")
"""The fields of a budget that are about executions."""


def _of_whole(
    workflow: CheckedWorkflow, budget: Mapping[str, Json], pointer: str
) -> Iterator[Finding]:
    """Yield what the budget of an included document says of executions, which are not its own."""
    currency = below(workflow.value, "Budget").get("Currency", "USD")
    for field in budget:
        name = field.removesuffix(".$")
        if name in OF_WHOLE or (name == "Currency" and budget[field] != currency):
            yield _about_executions(field, pointer)


def _about_executions(field: str, pointer: str) -> Finding:
    name = field.removesuffix(".$")
    message = f"{name!r} of an included document is not executed: it is about executions"
    hint = "write it in the document around it"
    return Finding("EXEC-02", message, f"{pointer}/{field}", hint, at_key=True)


def _of_state(node: Node) -> Iterator[Finding]:
    kind = node.value.get("Type")
    for field in node.value:
        name = field.removesuffix(".$")
        if _is_block(name, node) and (name == field or BLOCKS[name].scalar):
            yield from _of_block(name, node.value[field], node.at(field), node)
    if kind == "Map":
        yield from _of_map(node)


def _computed(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield the blocks that are to be computed as a whole."""
    for scope in workflow.scopes:
        if scope.pointer == scope.home:
            for field in DOCUMENT_BLOCKS:
                if f"{field}.$" in scope.value:
                    yield _whole(field, f"{scope.pointer}/{field}.$")
    for node in workflow.nodes():
        for field in node.value:
            name = field.removesuffix(".$")
            if name != field and _is_block(name, node) and not BLOCKS[name].scalar:
                yield _whole(name, node.at(field))


def _whole(field: str, pointer: str) -> Finding:
    message = f"{field!r} cannot be computed as a whole, so it has no effect"
    hint = f"write {field!r}; its fields may be computed"
    return Finding("EXEC-02", message, pointer, hint, at_key=True)


def _of_block(field: str, block: Json, pointer: str, node: Node | None = None) -> Iterator[Finding]:
    """Yield the block, or what of it this version does not execute."""
    executed = BLOCKS.get(field)
    if executed is None:
        yield Finding("EXEC-02", f"{field!r} is not executed yet", pointer, at_key=True)
        return
    for place, why in executed.missing(block, node) if type(block) is dict else ():
        yield Finding("EXEC-02", why, f"{pointer}{place}", at_key=True)
    for way in executed.lacks:
        *steps, last = way.split("/")
        holder = below(block, *steps) if type(block) is dict else {}
        for name in holder:
            if last in (name, name.removesuffix(".$")):
                message = f"{name!r} of {field!r} is not executed yet"
                place = "".join(f"/{escape(step)}" for step in (*steps, name))
                yield Finding("EXEC-02", message, pointer + place, at_key=True)


def _is_block(block: str, node: Node) -> bool:
    """Whether the language itself would heed the block on this state (V-TASK-08, V-MEM-04)."""
    if block not in STATE_BLOCKS:
        return False
    kind = node.value.get("Type")
    if kind == "Task":
        return "Agent" in node.value or block not in AGENT_BLOCKS
    return block != "Memory" or kind == "Pass"


def _of_map(node: Node) -> Iterator[Finding]:
    reader = node.value.get("ItemReader")
    config = reader.get("ReaderConfig") if type(reader) is dict else None
    parquet = type(config) is dict and config.get("InputType") == "PARQUET"
    if parquet and find_spec("pyarrow") is None:
        place = node.at("ItemReader", "ReaderConfig", "InputType")
        message = "files in PARQUET are read by 'pyarrow', which is not installed"
        yield Finding("EXEC-04", message, place, install_command("parquet"))
