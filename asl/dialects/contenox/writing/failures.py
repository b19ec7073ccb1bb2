"""What becomes of failures: a task is tried again at once, and has one way out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asl.checks.workflow import handlers
from asl.dialects.contenox.writing.knowledge import Env, renamed, renewed
from asl.dialects.contenox.writing.meanings import CAUGHT, Reader
from asl.dialects.contenox.writing.outputs import assigned, resulting
from asl.dialects.contenox.writing.state import State, Way
from asl.dialects.contenox.writing.values import Part, Value, roots

__all__ = ["caught", "retries"]


def retries(state: State) -> int:
    """Return how often the task of a state is tried again."""
    retriers = [each for each in state.value.get("Retry", ()) if type(each) is dict]
    if not retriers:
        return 0
    where = state.at("Retry")
    chosen = next((each for each in retriers if _takes_all(each)), None)
    if chosen is None or len(retriers) > 1 or not _takes_all(chosen, _limited(state)):
        state.lost(
            "CX-RETRY",
            "every failure is tried again, as often as one number says",
            where,
            "that of the first retrier for all errors, else of the first one",
        )
    chosen = chosen or retriers[0]
    count = chosen.get("MaxAttempts", 3)
    if type(count) is not int:
        state.lost("CX-RETRY", "no number of attempts is computed", where, "3")
        count = 3
    if count and any(_number(each, "IntervalSeconds", 1) for each in retriers):
        state.lost("CX-DELAY", "a task is tried again at once", where)
    return count


def caught(state: State, given: Value) -> Iterator[Way]:
    """Lead a failure where the document does, as far as a chain can.

    *given* is the input of the task that was added last.
    """
    catchers = [each for _, each in handlers(state.value, "Catch")]
    if not catchers:
        return
    index = _chosen(catchers)
    chosen = catchers[index]
    if len(catchers) > 1 or not _takes_all(chosen, _limited(state)):
        state.lost("CX-CATCH", "every failure leads to one task", state.at("Catch"), chosen["Next"])
    here = state.knowing(_failed(state, given))
    found = _caught(here, chosen, index)
    variables = assigned(here, chosen, Reader(here.env, CAUGHT, caught=True))
    if "last_error" in roots(found):
        state.lost(
            "CX-CATCH",
            "of an error one text is left: which task failed, and why",
            state.at("Catch", index),
            "{{.last_error}}",
        )
    target = str(chosen["Next"])
    state.then([], state.chain.id(target) if target in state.chain.states else None)
    yield target, Env(found, here.env.flow, variables)


def _chosen(catchers: Sequence[Mapping[str, Any]]) -> int:
    """Return the position of the catcher that takes the most."""
    index = next((n for n, each in enumerate(catchers) if _takes_all(each, True)), None)
    if index is None:
        index = next((n for n, each in enumerate(catchers) if _takes_all(each)), 0)
    return index


def _failed(state: State, given: Value) -> Env:
    """Return what is known once the task has failed: it leaves its input under its own name."""
    id = state.id
    if given == state.env.flow:
        return renamed(state.env, id)
    env = renewed(state.env, id)
    same = given == state.env.data
    return Env(Part(id) if same else env.data, Part(id), env.variables)


def _caught(here: State, catcher: Mapping[str, Any], index: int) -> Value:
    """Return the data behind a catcher."""
    if not here.jsonata:
        return resulting(here, here.env.data, catcher, CAUGHT, "Catch", index, "ResultPath")
    reader = here.reader(("CX-CATCH", here.at("Catch", index, "Output")), caught=True)
    return reader.structure(catcher["Output"]) if "Output" in catcher else CAUGHT


def _limited(state: State) -> bool:
    return "TimeoutSeconds" in state.value


def _takes_all(holder: Mapping[str, Any], strictly: bool = False) -> bool:
    """Whether a retrier or catcher takes every error; without *strictly* a timeout aside."""
    names = holder.get("ErrorEquals", ())
    return "States.ALL" in names or (not strictly and "States.TaskFailed" in names)


def _number(holder: Mapping[str, Any], field: str, default: float) -> float:
    value = holder.get(field, default)
    return value if type(value) in (int, float) else default
