"""Compilation of documents; large ones are compiled outside of the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from asl.compiler import compile_workflow
from asl.compose import compose_runnable
from asl.core.document import Document, Loadable
from asl.core.environment import has_running_loop
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json
from asl.documents.loading import resolve_document, resolve_profile
from asl.effects.threads import run_in_thread
from asl.program import Program

__all__ = ["compile", "is_small", "prepare", "resolve_program"]

Prepared = TypeVar("Prepared")

SMALL: Final = 10_000
"""Characters, or values, of a document that is read and compiled in a few milliseconds."""


def compile(
    document: Document | Loadable,
    *,
    profile: str | Profile = "default",
    ignore_blocks: bool = False,
) -> Program:
    """Check and compile a document.

    Args:
        document: A document (`asl.load`), or its path, text or dict.
        profile: Rules of the language: `"default"`, `"aws"`, `"lenient"` or a `Profile`.
        ignore_blocks: Whether to compile it without its agent blocks, whose limits are then not
            enforced; False by default.

    Returns:
        A program for `asl.run`; it can run any number of times.

    Raises:
        InvalidDocument: The document has errors, or uses a feature that this version does not
            execute; the exception carries the report.
        DocumentNotFound: No file exists at the path.
        AslError: The profile is unknown.
    """
    from asl.checks import raise_for_errors

    loaded, chosen = compose_runnable(resolve_document(document)), resolve_profile(profile)
    raise_for_errors(loaded, chosen, ignore_blocks=ignore_blocks)
    return compile_workflow(loaded.composed_value, chosen, loaded.name)


def resolve_program(
    workflow: Program | Document | Loadable, profile: str | Profile | None, ignore_blocks: bool
) -> Program:
    """Return a compiled program unchanged; compile anything else.

    Raises:
        AslError: A compiled program comes with a profile or `ignore_blocks`.
        InvalidDocument: The document has errors.
    """
    if not isinstance(workflow, Program):
        return compile(
            workflow, profile="default" if profile is None else profile, ignore_blocks=ignore_blocks
        )
    if profile is not None or ignore_blocks:
        raise AslError(
            "a compiled program takes no 'profile' or 'ignore_blocks': pass them to asl.compile"
        )
    return workflow


async def prepare(work: Callable[..., Prepared], workflow: Any, *arguments: Any) -> Prepared:
    """Return `work(workflow, *arguments)`, computed in a thread for a large workflow or a file.

    Without a running event loop, or with a small workflow, it is computed in the calling thread.
    """
    if not has_running_loop() or is_small(workflow):
        return work(workflow, *arguments)
    from asyncio import get_running_loop

    prepared: Prepared = await run_in_thread(get_running_loop(), work, workflow, *arguments)
    return prepared


def is_small(workflow: Program | Document | Loadable | None) -> bool:
    """Return whether a workflow is compiled, or small enough to compile in a few milliseconds."""
    if workflow is None or isinstance(workflow, Program):
        return True
    if isinstance(workflow, Document):
        workflow = workflow.composed_value
    if isinstance(workflow, dict):
        return _has_few_values(workflow)
    if isinstance(workflow, str):
        is_text = "\n" in workflow or workflow.lstrip().startswith("{")
        return is_text and len(workflow) <= SMALL
    return isinstance(workflow, bytes) and len(workflow) <= SMALL


def _has_few_values(value: Json) -> bool:
    """Return whether a value has few members on all levels together, and no long text."""
    count, todo = 0, [value]
    while todo and count <= SMALL // 10:
        each = todo.pop()
        count += 1 + len(each) // 100 if isinstance(each, str) else 1
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return not todo and count <= SMALL // 10
