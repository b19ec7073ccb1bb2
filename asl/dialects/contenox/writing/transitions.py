"""Where a step leads: to the task of another step, or to the end with the data of the document."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from asl.core.values import Json
from asl.dialects.contenox.chain import END
from asl.dialects.contenox.writing.branches import BranchRule, Selection, default
from asl.dialects.contenox.writing.chain import ChainBuilder
from asl.dialects.contenox.writing.knowledge import Cause, Knowledge, assign
from asl.dialects.contenox.writing.steps import TaskWriter
from asl.dialects.lowering import StepExit
from asl.dialects.terms import Term

__all__ = [
    "ChainTransition",
    "branch",
    "goto",
    "is_needed",
    "leave",
    "output",
    "rules",
    "set_failure",
    "set_selection",
    "set_transition",
]


class ChainTransition(NamedTuple):
    """A step that may follow, and what is known when it does."""

    target: str
    known: Knowledge


def set_transition(task: dict[str, Json], branches: Sequence[Json]) -> None:
    """Give a task its branches."""
    task["transition"] = {**_transition(task), "branches": [*branches]}


def set_failure(task: dict[str, Json], goto: str) -> None:
    """Give a task the one that follows its failure."""
    task["transition"] = {"on_failure": goto, **_transition(task)}


def _transition(task: dict[str, Json]) -> dict[str, Json]:
    found = task.get("transition")
    return found if isinstance(found, dict) else {}


def output(writer: TaskWriter, result: Term | None = None) -> Term:
    """Return the data behind a step, from its answer if it has one."""
    step = writer.step
    place = writer.at("Output", "OutputPath", "ResultSelector", "ResultPath", "Parameters")
    code = "CX-SELECTOR" if place.endswith("/ResultSelector") else "CX-OUTPUT"
    if step.kind in ("Pass", "Checkpoint") and code == "CX-OUTPUT":
        code = "CX-PASS"
    return writer.resolve(step.output, Cause(code, place), result)


def goto(chain: ChainBuilder, name: str) -> str:
    """Return where a branch to a step leads."""
    step = chain.flow.steps.get(name)
    if step is None or (step.kind == "Succeed" and not is_needed(chain, name)):
        return END
    return chain.id(name)


def is_needed(chain: ChainBuilder, name: str) -> bool:
    """Return whether a Succeed has a task: its output is not what has moved along.

    A failure leads to a task as well, and a chain begins with one.
    """
    known = chain.known.get(name)
    if known is None or name in chain.entries:
        return name in chain.entries
    return output(TaskWriter(chain, chain.flow.steps[name], known)) != known.flow


def rules(
    writer: TaskWriter, behind: Term, result: Term | None, known: Knowledge | None = None
) -> list[BranchRule]:
    """Return the exits of a step, with their conditions over the variables of the chain.

    Args:
        writer: The writer of the step.
        behind: The data behind the step.
        result: Its answer, None without one.
        known: What is known behind it; None while that is not settled.
    """
    found = []
    for each in writer.step.exits:
        condition = None
        if each.condition is not None:
            own = writer.step.kind == "Approval" and each.pointer.startswith(writer.step.pointer)
            data = writer.known.data if own else behind
            cause = Cause("CX-OPERATOR", each.pointer)
            condition = writer.resolve(each.condition, cause, result, data)
        found.append(BranchRule(condition, _target(writer, each, known)))
    return found


def _target(writer: TaskWriter, exit: StepExit, known: Knowledge | None) -> str:
    if exit.target is not None:
        return goto(writer.chain, exit.target)
    return END if known is None else end(writer, known)


def leave(writer: TaskWriter, known: Knowledge) -> Iterator[ChainTransition]:
    """Yield where the exits of a step lead; *known* is what is known behind it."""
    for each in writer.step.exits:
        if each.target is None:
            continue
        cause = Cause("CX-OUTPUT", each.pointer)
        data = known.data
        if each.output is not None:
            data = writer.resolve(each.output, cause, data=known.data)
        new = {
            name: writer.resolve(term, cause, data=known.data) for name, term in each.assign.items()
        }
        yield ChainTransition(each.target, Knowledge(data, known.flow, assign(known, new)))


def branch(
    writer: TaskWriter, task: dict[str, Json], known: Knowledge
) -> Iterator[ChainTransition]:
    """Let the one exit of a step follow a task."""
    for each in writer.step.exits:
        set_transition(task, [default(_target(writer, each, known))])
    yield from leave(writer, known)


def end(writer: TaskWriter, known: Knowledge) -> str:
    """Return where a branch leads that ends the chain with the data of the document."""
    if known.data == known.flow:
        return END
    last = TaskWriter(writer.chain, writer.step, known)
    where = writer.at("Output", "OutputPath", "ResultPath", "ResultSelector")
    fields = last.express(known.data, "CX-OUTPUT", where, ends=True)
    if fields is None:
        return END
    id = writer.chain.id(f"{writer.step.name} output")
    task: dict[str, Json] = {"id": id, "handler": "noop", **fields}
    set_transition(task, [default(END)])
    if task not in writer.chain.added:
        writer.chain.added.append(task)
    return id


def set_selection(selection: Selection, task: dict[str, Json]) -> None:
    """Let a task select its branches by the text that it evaluates to."""
    task["output_template"] = selection.template
    set_transition(task, selection.branches)
