"""The steps of a document as tasks: each is visited until nothing new is learned of its data."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.contenox.writing.chain import LEFT_OUT, ChainBuilder
from asl.dialects.contenox.writing.knowledge import GIVEN, STALE, Knowledge, join, moving
from asl.dialects.contenox.writing.states import CALLED, FIELDS, write_step
from asl.dialects.contenox.writing.steps import TaskWriter
from asl.dialects.contenox.writing.transitions import ChainTransition
from asl.dialects.lowering import WorkStep, fold
from asl.states.schemas import inert_fields

__all__ = ["OF_ALL", "ChainWriter"]

ROUNDS: Final = 40
"""How often a step is visited until everything about its data is taken as lost."""
OF_ALL: Final = frozenset(
    (
        *("Type", "QueryLanguage", "Next", "End", "InputPath", "OutputPath", "ResultSelector"),
        *("ResultPath", "Parameters", "Arguments", "Output", "Assign"),
    )
)
"""Fields of all states that are written, or reported where they have an effect."""


class ChainWriter:
    """All steps of a chain under construction.

    Args:
        chain: The chain.
    """

    def __init__(self, chain: ChainBuilder) -> None:
        self.chain = chain
        self.folded = fold(chain.flow, lambda step: False).steps

    def write(self) -> dict[str, Json]:
        """Return the chain with the tasks of all steps that are reached."""
        apart = -1
        while apart < len(self.chain.apart):
            apart = len(self.chain.apart)
            self.learn()
            self.chain.begin()
            reached = self.visit_all()
        self.report_names(reached)
        return self.chain.written()

    def step(self, name: str) -> WorkStep:
        """Return a step, with the exits of a Choice behind it if its answer selects them."""
        found = self.chain.flow.steps[name]
        calls = found.kind == "Task" or found.kind in CALLED
        return self.folded[name] if calls and name not in self.chain.apart else found

    def learn(self) -> None:
        """Follow the data along all transitions, until nothing new is learned."""
        known, start = self.chain.known, self.chain.flow.start
        known.clear()
        known[start] = Knowledge(self.chain.given, GIVEN)
        visits: dict[str, int] = {}
        todo = {start: None}  # in order
        while todo:
            name = next(iter(todo))
            del todo[name]
            visits[name] = visits.get(name, 0) + 1
            for target, arriving in self.visit(name):
                if target not in self.chain.flow.steps:
                    continue  # a template names it once it is filled in
                old = known.get(target)
                new = arriving if old is None else join(target, old, arriving)
                if visits.get(target, 0) > ROUNDS:
                    new = Knowledge(STALE, moving(target))
                if new != old:
                    known[target] = new
                    todo.setdefault(target)

    def visit_all(self) -> Mapping[str, None]:
        """Write the steps that are reached, the first one in front; return their names."""
        chain = self.chain
        others = (name for name in chain.flow.steps if name in chain.known)
        reached = dict.fromkeys([chain.flow.start, *others])
        for name in reached:
            for _ in self.visit(name):
                pass
            chain.tasks += chain.added
            chain.added = []
        return reached

    def visit(self, name: str) -> Iterator[ChainTransition]:
        """Write a step with what is known about its data; yield where it leads."""
        writer = TaskWriter(self.chain, self.step(name), self.chain.known[name])
        if FIELDS.get(writer.step.kind):  # of others everything is reported that is lost
            _report_fields(writer)
        yield from write_step(writer)

    def report_names(self, reached: Mapping[str, None]) -> None:
        """Report the steps that have another name there, and those that are left out."""
        chain = self.chain
        folded = {*chain.selecting.values()}
        for name, step in chain.flow.steps.items():
            if name not in reached and not self.is_folded(step, folded - chain.apart):
                told = "no transition of the chain leads to the state"
                chain.report("L-DROPPED", told, step.pointer, "the state is left out")
            elif chain.id(name) != name and name in reached:
                told = f"no task can be called {name!r}"
                chain.report("L-NAME", told, step.pointer, f"{chain.id(name)!r}")

    def is_folded(self, step: WorkStep, into: set[str]) -> bool:
        """Return whether a Choice is written as the branches of a step in front."""
        return any(
            each.pointer.startswith(f"{step.pointer}/")
            for name in into
            for each in self.folded[name].exits
        )


def _report_fields(writer: TaskWriter) -> None:
    """Report the fields of a state that no task has."""
    kind = writer.step.kind
    written = OF_ALL | FIELDS[kind] | inert_fields(f"states:{kind}")
    for field in writer.step.state:
        if field not in written:
            told = f"no task has {field.removesuffix('.$')!r}"
            place = f"{writer.step.pointer}/{field}"
            writer.report("CX-META", told, place, LEFT_OUT, Severity.ERROR)
