"""Descriptions of failed executions for the terminal."""

from collections.abc import Sequence

import asl
from asl.cli.console import error_text, item_failures
from asl.cli.state_paths import state_name
from asl.core.document import Document
from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json
from asl.engine.exception_mapping import is_fault, leaf_exceptions
from asl.engine.result import Result
from asl.program import Step
from asl.states.calls import is_function

__all__ = ["describe_failure"]


def describe_failure(result: Result, document: Document) -> str:
    """Return the error, its cause, the failed state with its position, and a hint."""
    lines = [f"asl: workflow {_outcome(result)}"]
    if result.origin is not None:
        _, _, frame, _, step, error, *_ = result.origin
        lines.append(f"  in {state_name((*frame.place, step.name))}")
        home, pointer = document.origin(step.pointer + _field_pointer(error))
        place = home.locate(pointer, at_key=True)
        if place.line is not None:
            lines[-1] += f" at {home.source.name}:{place.line}:{place.column}"
        if error.__cause__ is not None and (raised := _raised_at(error.__cause__)):
            lines.append(f"  raised at {raised}")
        if result.error == "States.AgentNotFound":
            lines.append(f"  hint: {_binding_hint(step)}")
    lines += [f"  {line}" for line in describe_item_failures(result.failed_items)]
    return "\n".join(lines)


def describe_item_failures(failed: Sequence[Json]) -> list[str]:
    """Return lines with the failed items of the last distributed Map and their errors.

    Args:
        failed: Maps with failed items, as `Result.failed_items`.
    """
    if not failed:
        return []
    latest = failed[-1]
    head, *items = item_failures(latest, latest["failures"])
    return [f"{state_name(tuple(latest['path']))}: {head}", *(f"  {line}" for line in items)]


def _raised_at(error: BaseException) -> str | None:
    """Return the last position of the user's code in a traceback; None if there is none."""
    import sysconfig
    from traceback import walk_tb

    error = next(leaf_exceptions(error))
    if not is_fault(error):
        return None
    paths = sysconfig.get_paths()
    others = (*asl.__path__, paths["purelib"], paths["platlib"], paths["stdlib"], "<")
    own = [
        f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(others)
    ]
    return own[-1] if own else None


def _binding_hint(step: Step) -> str:
    if step.resource is None:
        return "bind it with --agent NAME=module:function or --agents FILE"
    from asl.checks.service_catalog import action_of

    resource = step.resource
    code = "run its code with --functions TEMPLATE, " if ":lambda:" in resource else ""
    called = action_of(resource) is not None or is_function(resource)
    service = ", call the service with --aws or --aws-endpoint URL" if called else ""
    return (
        f"bind it under 'resources' in an --agents FILE{service}, {code}"
        "or mock the state with --mock FILE#CASE"
    )


def _field_pointer(error: StateError) -> str:
    """Return the JSON Pointer from a state to the field whose expression failed."""
    if not isinstance(error, EvaluationFailed) or error.location is None:
        return ""
    return "/" + error.location.replace("[", "/").replace("]", "")


def _outcome(result: Result) -> str:
    if result.status == "TIMED_OUT":
        return f"timed out after {result.elapsed:g} s ('TimeoutSeconds' of the document)"
    if result.status == "ABORTED":
        return "was aborted"
    reason = error_text(result.error, result.cause)
    return f"failed: {reason}" if reason else "failed without an error name"
