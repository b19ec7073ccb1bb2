"""Failures: a task is attempted again without delay, and one task follows its failure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.contenox.writing.knowledge import (
    Cause,
    Knowledge,
    assign,
    name_flow,
    renew,
    variable,
)
from asl.dialects.contenox.writing.steps import TaskWriter
from asl.dialects.contenox.writing.transitions import ChainTransition, goto, set_failure
from asl.dialects.lowering import Handler
from asl.dialects.terms import ERROR, Term, paths_of

__all__ = ["catch", "retries"]

_ALL: Final = "States.ALL"
_TASKS: Final = "States.TaskFailed"


def retries(writer: TaskWriter) -> int:
    """Return how often the task of a step is attempted again."""
    state = writer.step.state
    retriers = [each for each in state.get("Retry", ()) if type(each) is dict]
    if not retriers:
        return 0
    where = writer.at("Retry")
    chosen = next((each for each in retriers if _takes_all(each["ErrorEquals"])), retriers[0])
    if len(retriers) > 1 or not _takes_all(
        chosen["ErrorEquals"], limited="TimeoutSeconds" in state
    ):
        writer.report(
            "CX-RETRY",
            "a task has one number of retries, for every error",
            where,
            "the number of the first retrier for all errors, else of the first one",
            Severity.ERROR,
        )
    count = chosen.get("MaxAttempts", 3)
    if type(count) is not int:
        writer.report(
            "CX-RETRY", "a computed number of attempts becomes 3", where, None, Severity.ERROR
        )
        count = 3
    if count and any(_number(each, "IntervalSeconds", 1) for each in retriers):
        writer.report("CX-DELAY", "a task is retried immediately", where)
    return count


def catch(writer: TaskWriter, task: dict[str, Json], given: Term) -> Iterator[ChainTransition]:
    """Let a failure lead where the document says, as far as a chain can.

    Args:
        writer: The writer of the step.
        task: Its task.
        given: The input of the task.
    """
    handlers = writer.step.handlers
    if not handlers:
        return
    chosen = _chosen(handlers)
    limited = "TimeoutSeconds" in writer.step.state
    if len(handlers) > 1 or not _takes_all(chosen.errors, limited=limited):
        where = writer.at("Catch")
        told = "every failure leads to one task"
        writer.report("CX-CATCH", told, where, chosen.target, Severity.ERROR)
    failed = TaskWriter(writer.chain, writer.step, _failed(writer, given))
    cause = Cause("CX-CATCH", chosen.pointer)
    data = failed.resolve(chosen.output, cause)
    new = {name: failed.resolve(term, cause) for name, term in chosen.assign.items()}
    if any(each.root == ERROR for each in paths_of(chosen.output)):
        told = "an error becomes one text, with the task and the cause"
        writer.report("CX-CATCH", told, chosen.pointer, "{{.last_error}}")
    known = failed.known
    if chosen.target in writer.chain.flow.steps:  # else a template names it once it is filled in
        set_failure(task, goto(writer.chain, chosen.target))
    yield ChainTransition(chosen.target, Knowledge(data, known.flow, assign(known, new)))


def _chosen(handlers: Sequence[Handler]) -> Handler:
    """Return the handler that takes the most errors."""
    everything = (each for each in handlers if _ALL in each.errors)
    tasks = (each for each in handlers if _takes_all(each.errors))
    return next(everything, None) or next(tasks, None) or handlers[0]


def _failed(writer: TaskWriter, given: Term) -> Knowledge:
    """Return what is known once a task has failed: it leaves its input under its own name."""
    if given == writer.known.flow:
        return name_flow(writer.known, writer.id)
    known = renew(writer.known, writer.id)
    own = variable(writer.id)
    return Knowledge(own if given == writer.known.data else known.data, own, known.variables)


def _takes_all(errors: Sequence[str], *, limited: bool = False) -> bool:
    """Return whether a retrier or catcher takes every error; *limited* if a task may time out."""
    return _ALL in errors or (_TASKS in errors and (not limited or "States.Timeout" in errors))


def _number(holder: Mapping[str, Any], field: str, otherwise: float) -> float:
    value = holder.get(field, otherwise)
    return value if type(value) in (int, float) else otherwise
