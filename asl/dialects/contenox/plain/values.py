"""What tasks are given, as paths and texts: effective inputs, templates and macros."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from asl.core.errors import ExpressionFault
from asl.dialects.contenox.chain import END, Chain, Task
from asl.dialects.contenox.functions.templates import (
    Macro,
    ShowAction,
    TemplateCall,
    TemplateConstant,
    TemplateField,
    find_macros,
    parse,
)
from asl.dialects.contenox.functions.texts import template_text
from asl.dialects.contenox.plain.keys import FAILED, INPUT, TEXT, is_shared, keys, picks
from asl.dialects.expressions import TextReference, said
from asl.dialects.jsonpath_form import JsonPathForm, path_to, reached
from asl.dialects.names import FreshNames

__all__ = ["Values"]


class Values:
    """The values of one chain, and what is lost of them: `made` is told."""

    def __init__(self, chain: Chain, value: Mapping[str, Any]) -> None:
        self.chain = chain
        self.value = value
        self.made = JsonPathForm()
        self.keys = keys(chain)
        self.picks = picks(chain)
        self.composed: frozenset[str] = frozenset()
        """Keys of objects that hold a text which is put together."""
        self.composed = frozenset(self.composing())
        # What was told so far is told again.
        self.made = JsonPathForm(names=FreshNames({*value["States"]} - {END}))

    def composing(self) -> Iterator[str]:
        """Yield the keys under which one task alone leaves a text that it puts together."""
        makers: dict[str, list[Task]] = {}
        for task in self.chain.tasks.values():
            makers.setdefault(self.keys[task.id], []).append(task)
        for key, tasks in makers.items():
            if key != self.keys[INPUT] and len(tasks) == 1 and tasks[0].handler == "noop":
                _, value = said(self.given(tasks[0].id, tasks[0]))
                if str(value).startswith("States."):
                    yield key

    def at(self, task: Any, *way: str) -> str:
        """Return where the output of a task stands; for `("", task)` what moves along to it."""
        key = self.keys[task]
        return path_to(key, *((TEXT,) if key in self.composed else ()), *way)

    def given(self, name: str, task: Task) -> Iterator[str]:
        """Yield the parts of a task's effective input."""
        if task.template:
            yield from self.filled(name, task.template, lambda names: self.known(name, task, names))
        else:
            own = self.variable(name, task.input_var) if task.input_var else None
            yield TextReference(own or self.at(("", task.id)))

    def filled(
        self, name: str, template: str, find: Callable[[tuple[str, ...]], str | None]
    ) -> Iterator[str]:
        """Yield the parts of a template; *find* returns what its fields show."""
        try:
            nodes = parse(template)
        except ExpressionFault:
            nodes = (template,)
        for node in nodes:
            match node:
                case str():
                    yield node
                case ShowAction(TemplateConstant(value)):
                    yield template_text(value)
                case ShowAction(TemplateField(names)) if (part := find(names)) is not None:
                    message = "what is no text is shown in another way"
                    self.made.lost("CX-GOFMT", message, name, hint="let it be a text")
                    yield part
                case ShowAction(TemplateCall("toJson", (TemplateField(names),))) if isinstance(
                    part := find(names), TextReference
                ):
                    message = "JSON is written with its keys in the order that they have"
                    self.made.lost("CX-GOFMT", message, name, hint="let them be in order")
                    yield TextReference(f"States.JsonToString({part})")
                case Macro():
                    yield self.macro(name, node)
                case _:
                    message = "no placeholder says this part of a template"
                    self.made.lost("L-TEMPLATE", message, name, hint="it is left out")

    def known(self, name: str, task: Task, names: tuple[str, ...]) -> str | None:
        """Return what a field of a task's template shows, None where nothing says that."""
        if not names:
            return None
        root, *way = names
        self.within(name, way)
        if root == "previous_output":
            first = task.id == self.chain.start.id and not self.entered(task.id)
            return "<no value>" if first else TextReference(self.at(("", task.id), *way))
        found = self.variable(name, root)
        return TextReference(found + path_to(*way)[1:]) if found else ""

    def within(self, name: str, way: Sequence[str]) -> None:
        """Report that a run needs what lies on a way within a value."""
        if way:
            message = "a value that is not there may fail the run"
            self.made.lost("L-REQUIRED", message, name, hint=f"let there be {way[-1]!r}")

    def expanded(self, name: str, text: str) -> list[str]:
        parts, at = [], 0
        for start, end, macro in find_macros(text):
            parts += [text[at:start], self.macro(name, macro)]
            at = end
        return [*parts, text[at:]]

    def macro(self, name: str, macro: Macro) -> str:
        if macro.name == "chain" and macro.payload == "id":
            return str(self.chain.value.get("id") or "")
        if macro.name == "var":
            key, bar, default = macro.payload.partition("|")
            if not bar:
                return TextReference(path_to("vars", key.strip()))
            self.made.lost("L-TEMPLATE", f"nothing is given for {key!r}", name, hint=default)
            return default
        message = f"nothing says {macro.written}"
        self.made.lost("L-TEMPLATE", message, name, hint="the text is left")
        return macro.written

    def variable(self, name: str, wanted: str) -> str | None:
        """Return the path of what a task has left, or of the input; None of what may be nothing."""
        message = f"{wanted!r} may not be there, which fails the run"
        if wanted == FAILED or wanted.endswith("_error"):
            self.made.lost("L-REQUIRED", message, name, hint="let there be a failure before")
            return path_to(wanted, TEXT)
        key = self.keys.get(wanted)
        if key is None:
            self.made.lost("L-TEMPLATE", f"no task leaves {wanted!r}", name)
            return None
        if wanted in self.picks:
            hint = f"let {wanted!r} be composed before"
            self.made.lost("L-REQUIRED", message, name, hint=hint)
        elif wanted in self.chain.tasks and name in self.past(wanted):
            self.made.lost("L-REQUIRED", message, name, hint=f"let {wanted!r} run before")
        if sum(1 for each in self.keys.values() if each == key) > 2 and is_shared(self.keys, key):
            message = f"what {wanted!r} has left may be what another task left after it"
            self.made.lost("L-TEMPLATE", message, name)
        return self.at(wanted)

    def entered(self, name: str) -> bool:
        """Whether any task leads to one."""
        tasks = self.chain.tasks.values()
        targets = [each.on_failure for each in tasks]
        return name in targets or any(each.goto == name for task in tasks for each in task.branches)

    def past(self, name: str) -> set[str]:
        """Return the states that a run may come to without this one, or in it first."""
        states = {each: state for each, state in self.value["States"].items() if each != name}
        return {name, *reached(self.value["StartAt"], states)}
