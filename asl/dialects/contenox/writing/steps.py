"""One step at work: what it reads in terms of the chain, and the tasks that it becomes."""

from typing import Final, NamedTuple

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.contenox.writing.chain import ChainBuilder
from asl.dialects.contenox.writing.knowledge import (
    GIVEN,
    Cause,
    Knowledge,
    Lost,
    causes,
    is_variable,
    variable,
)
from asl.dialects.contenox.writing.templates import EXPRESSIBLE, Printer, parses
from asl.dialects.lowering import WorkStep
from asl.dialects.terms import (
    ERROR,
    INPUT,
    RESULT,
    DataPath,
    FunctionCall,
    Items,
    Literal,
    Record,
    Step,
    Term,
    Text,
    Unknown,
    member,
    replace,
    walk,
)

__all__ = ["CAUGHT", "Fields", "TaskWriter"]

Fields = dict[str, Json]
"""The fields that make a value the input of a task."""

_MESSAGE: Final = variable("last_error")
CAUGHT: Final = Record(None, (("Error", _MESSAGE), ("Cause", _MESSAGE)))
"""The error that a handler catches: a chain has one text of it."""
_EXECUTION_INPUT: Final = ("Execution", "Input")
_INEXPRESSIBLE: Final = {
    "CX-PARAMS": "a tool gets the current data, a variable or a text",
    "CX-SELECTOR": "this part of a result cannot be selected",
    "CX-INPUTPATH": "no variable of the chain has this value",
    "CX-OUTPUT": "the output of a chain is the current data",
    "CX-PASS": "a task without effect passes on a variable or a text",
    "CX-CATCH": "an error becomes one text",
}
_FALLBACK: Final = "the current data is passed instead"


class _Form(NamedTuple):
    """How a task is given a value: its fields, and what that loses."""

    fields: Fields
    loss: str | None = None
    """What is approximated, None if nothing is."""
    instead: str | None = None


class TaskWriter:
    """Writes the tasks of one step.

    Args:
        chain: The chain under construction.
        step: The step.
        known: What is known in front of it.
    """

    def __init__(self, chain: ChainBuilder, step: WorkStep, known: Knowledge) -> None:
        self.chain = chain
        self.step = step
        self.known = known
        self.id = chain.id(step.name)

    # Places and losses

    def at(self, *fields: str) -> str:
        """Return the place of the first of these fields that the state has, else of the state."""
        found = next((each for each in fields if each in self.step.state), None)
        return self.step.pointer if found is None else f"{self.step.pointer}/{found}"

    def report(
        self,
        code: str,
        message: str,
        pointer: str | None = None,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a loss; without a pointer, of the step as a whole."""
        self.chain.report(code, message, pointer or self.step.pointer, instead, severity)

    # Data

    def resolve(
        self,
        term: Term,
        cause: Cause,
        result: Term | None = None,
        data: Term | None = None,
    ) -> Term:
        """Return a term of the document over the variables of the chain.

        Args:
            term: The term.
            cause: Code and place of the loss of a part that no chain has.
            result: The answer of what the step called; None without one.
            data: The data that it reads; None for that in front of the step.
        """
        roots = {
            INPUT: self.known.data if data is None else data,
            RESULT: Lost("", cause) if result is None else result,
            ERROR: CAUGHT,
        }

        def change(each: Term) -> Term | None:
            match each:
                case DataPath("context", steps) if steps[:2] == _EXECUTION_INPUT:
                    return _part(GIVEN, steps[2:])
                case DataPath(root, steps) if root in roots:
                    return _part(roots[root], steps)
                case DataPath(root, steps) if root.startswith("$"):
                    return _part(self.known.variable(root[1:]), steps)
                case DataPath(root, _):
                    return Lost(root, cause)
                case FunctionCall(name, _) if name not in EXPRESSIBLE:
                    return Lost(name, cause)
                case Unknown(text):
                    return each if isinstance(each, Lost) else Lost(text, cause)
                case FunctionCall("lookup", (value, *steps)) if all(
                    isinstance(step, Literal) for step in steps
                ):
                    keys = tuple(step.value for step in steps if isinstance(step, Literal))
                    return _part(self.resolve(value, cause, result, data), keys)
            return None

        return replace(term, change)

    @property
    def printer(self) -> Printer:
        """The printer of templates in front of the step."""
        whole = self.chain.given == GIVEN  # the data of a document is an object
        objects = frozenset((GIVEN,)) if whole else frozenset()
        return Printer(self.known.flow, lenient=self.step.jsonata, objects=objects)

    # Tasks

    def add(self, task: dict[str, Json]) -> dict[str, Json]:
        """Add a task, and return it; that of the step itself gets its comment."""
        comment = self.step.state.get("Comment")
        if type(comment) is str and comment and task["id"] == self.id:
            id, *rest = task.items()
            task = dict([id, ("description", comment), *rest])
        self.chain.tasks.append(task)
        return task

    def given(self, value: Term, code: str, pointer: str) -> tuple[Fields, Term]:
        """Return the fields that make a value the input of a task, and what it is then given."""
        fields = self.express(value, code, pointer)
        return ({}, self.known.flow) if fields is None else (fields, value)

    def express(self, value: Term, code: str, pointer: str, *, ends: bool = False) -> Fields | None:
        """Return the fields that make a value the input of a task, and report what that loses.

        Args:
            value: The value.
            code: Code of the losses.
            pointer: Place where the value is read.
            ends: Whether it is the output of a run.

        Returns:
            The fields; None if no task can be given the value.
        """
        kept = _known_members(value)
        form = self.form(kept)
        if form is None or kept != value:
            self.report_lost(
                value, code, pointer, None if form is None else "the other fields are passed"
            )
        if form is None:
            return None
        if ends and isinstance(kept, Literal | Record | Items) and form.loss is not None:
            told = "a chain ends with a variable or a text, and its other data is not its output"
            self.report(code, told, pointer, "the run ends with the current data", Severity.ERROR)
            return None
        if form.loss is not None:
            severity = Severity.ERROR if ends else Severity.WARNING
            self.report(code, form.loss, pointer, form.instead, severity)
        self.report_approximations(kept, pointer)
        return form.fields

    def form(self, value: Term) -> _Form | None:
        """Return how a task is given a value, None if no task can be."""
        if value == self.known.flow:
            return _Form({})
        if is_variable(value):
            assert isinstance(value, DataPath)
            return _Form({"input_var": value.root[1:]})
        printer = self.printer
        if isinstance(value, Text) or (isinstance(value, Literal) and isinstance(value.value, str)):
            return _form(printer.text(value))
        if isinstance(value, Literal | Record | Items):
            loss = "a task gets a variable or a text"
            return _form(printer.json(value), loss, "it gets the data as JSON text")
        return _form(printer.text(value), "a part of a variable becomes text", None)

    def report_lost(self, value: Term, code: str, pointer: str, instead: str | None = None) -> None:
        """Report a value that no task can be given, where it was lost and where it is read.

        In a cycle it may be read before it is lost.
        """
        for each in causes(value) or [None]:
            cause = each or Cause(code, pointer)
            told = _INEXPRESSIBLE.get(cause.code, "no task can express this")
            if cause.pointer in self.chain.selecting:
                told = "an answer that selects a branch becomes the compared text"
            self.chain.lose(cause)
            for place in dict.fromkeys((cause.pointer, pointer)):
                self.report(cause.code, told, place, instead or _FALLBACK, Severity.ERROR)

    def report_approximations(self, value: Term, pointer: str) -> None:
        """Report what a template shows in another way, or requires to be there."""
        if isinstance(value, Text) and any(map(_is_data, value.parts)):
            told = "a template shows numbers, objects and missing values in its own format"
            self.report("CX-GOFMT", told, pointer)
        if self.step.jsonata and any(_reaches(each) for each in walk(value)):
            told = (
                "a path through a list leads to nothing, as do other paths in the same text as JSON"
            )
            self.report("L-REQUIRED", told, pointer)


def _part(value: Term, steps: tuple[Step, ...]) -> Term:
    """Return what a path leads to within a value, which stays lost if it is lost."""
    found = member(value, steps)
    while isinstance(found, FunctionCall) and found.function == "lookup" and found.arguments:
        inner = found.arguments[0]
        if isinstance(inner, Lost):
            return inner
        if not isinstance(inner, FunctionCall):
            break
        found = inner
    return member(value, steps)


def _known_members(value: Term) -> Term:
    """Return grown data without the members that are lost."""
    if not isinstance(value, Record) or value.base is None or causes(value.base):
        return value
    kept = tuple((key, _known_members(each)) for key, each in value.members)
    known = tuple((key, each) for key, each in kept if not causes(each))
    return Record(value.base, known) if known else value.base


def _form(
    template: str | None, loss: str | None = None, instead: str | None = None
) -> _Form | None:
    if template is None or not parses(template):
        return None
    return _Form({"prompt_template": template or '{{""}}'}, loss, instead)


def _is_data(part: Term) -> bool:
    return not isinstance(part, Literal) and part != _MESSAGE


def _reaches(term: Term) -> bool:
    """Whether a term reads a part of a variable."""
    return isinstance(term, DataPath) and bool(term.steps)
