"""From a document of the state language to a chain of tasks, and what that cannot say.

A chain has no data that all tasks share, no states side by side and one way out of a failure. What
it has no words for becomes the nearest that it has, or nothing, and is reported either way.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from asl.checks import check
from asl.core.diagnostics import Finding, Severity, escape
from asl.core.document import Document
from asl.core.errors import ExpressionFault
from asl.core.profile import LENIENT
from asl.core.values import Json, compact
from asl.dialects.base import Written
from asl.dialects.contenox.chain import END
from asl.dialects.contenox.conditions import condition
from asl.dialects.contenox.meanings import CAUGHT, Reader
from asl.dialects.contenox.restoring import kept, restored
from asl.dialects.contenox.values import (
    Constant,
    Env,
    Members,
    Moving,
    Part,
    Text,
    Unknown,
    Value,
    Why,
    as_json,
    at,
    joined,
    merged,
    placed,
    renamed,
    renewed,
    roots,
    shown,
)
from asl.expr.contenox.templates import macros_in, parse
from asl.expr.paths.syntax import parse_path

__all__ = ["write"]

ANYTHING: Final = "otherwise"
"""What a choice evaluates to when no rule holds and there is no default."""
INTEGRATION: Final = "arn:aws:states:::"
"""What the resources of integrations begin with."""
ROUNDS: Final = 40
"""How often a state is looked at, until everything about its data is taken as unknown."""
_NAMES: Final = frozenset((END, "input", "previous_output", "last_error", ANYTHING))
_OF_MACHINE: Final = frozenset(
    ("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata")
)
_DATA: Final = frozenset(
    ("InputPath", "OutputPath", "ResultPath", "ResultSelector", "Output", "Assign")
) | {"Parameters", "Arguments"}
_OF_ALL: Final = frozenset(("Type", "Comment", "QueryLanguage", "Next", "End")) | _DATA
_COMPUTED: Final[Mapping[str, str]] = {
    "InputPath": "CX-INPUTPATH",
    "OutputPath": "CX-OUTPUT",
    "ResultSelector": "CX-SELECTOR",
    "Output": "CX-OUTPUT",
    "Assign": "CX-OUTPUT",
    "Parameters": "CX-PASS",
}
"""Fields that may lead nowhere, and then fail a run in the state language."""
_ERRORS: Final = frozenset(("Retry", "Catch"))
_SAID: Final[Mapping[str, frozenset[str]]] = {
    "Task": frozenset(("Agent", "Resource", "TimeoutSeconds")) | _ERRORS,
    "Choice": frozenset(("Choices", "Default")),
    "Pass": frozenset(("Result",)),
    "Fail": frozenset(("Error", "Cause")),
    "Succeed": frozenset(),
}
"""The fields of each type that its writer deals with; for others the whole state is reported."""
_STANDS_IN: Final[Mapping[str, str]] = {
    "Parallel": "CX-PARALLEL",
    "Map": "CX-MAP",
    "Debate": "CX-DEBATE",
    "Approval": "CX-APPROVAL",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}


def write(document: Document, *, profile: str = "union") -> Written:
    """Write a document as a chain; one that was read from a chain becomes that again.

    With the profile `seed` tools are called hooks, as documented; with any other as engines do.
    Raises InvalidDocument for a document with errors.
    """
    found = restored(document.whole)
    if found is None:
        check(document, LENIENT).raise_for_errors()
    writer = None if found is not None else _Writer(document.whole, profile)
    chain = found if writer is None else writer.chain()
    text = json.dumps(chain, ensure_ascii=False, indent=2) + "\n"
    return Written(chain, text, () if writer is None else tuple(dict.fromkeys(writer.losses)))


Variables: TypeAlias = tuple[tuple[str, Value], ...]
Way: TypeAlias = tuple[str, Env]
"""A state that follows, and what is known when it does."""


class _Writer:
    """One chain under construction: each state is looked at until nothing new is learnt."""

    def __init__(self, value: Mapping[str, Any], profile: str) -> None:
        self.value = value
        self.seed = profile == "seed"
        self.states: Mapping[str, Any] = value["States"]
        self.losses: list[Finding] = []
        self.tasks: list[dict[str, Json]] = []
        self.ids: dict[str, str] = {}
        self.envs: dict[str, Env] = {}
        self.entries = {value["StartAt"], *_caught(self.states)}
        """States that must have a task."""
        for name in self.states:
            self.id(name)

    def lost(
        self,
        code: str,
        message: str,
        pointer: str,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        self.losses.append(Finding(code, message, pointer, instead, at_key=True, severity=severity))

    def chain(self) -> dict[str, Json]:
        value = self.value
        start = value["StartAt"]
        self.learn(start)
        self.losses, self.tasks = [], []
        if kept(value) is not None:
            self.lost(
                "L-CHANGED",
                "the document is not the one that was read from a chain any more",
                "/Metadata",
                "the chain is written anew",
            )
        for field in value:
            if field not in _OF_MACHINE:
                self.lost("CX-META", f"a chain has no {field!r}", f"/{field}", *_LEFT)
        reached = [start, *(name for name in self.states if name != start and name in self.envs)]
        for name in reached:
            for _ in self.looked_at(name):
                pass
        self.told(reached)
        head: dict[str, Json] = {"id": _slug(str(value.get("Comment") or start))}
        if type(value.get("Comment")) is str:
            head["description"] = value["Comment"]
        return {**head, "tasks": [*self.tasks]}

    def learn(self, start: str) -> None:
        """Follow the data along all ways, until nothing new is learnt."""
        given = Part("input")
        self.envs = {start: Env(given, given)}
        seen: dict[str, int] = {}
        todo = [start]
        while todo:
            name = todo.pop(0)
            seen[name] = seen.get(name, 0) + 1
            for target, env in self.looked_at(name):
                if target not in self.states:
                    continue  # a template says it once it is filled in
                old = self.envs.get(target)
                new = env if old is None else joined(target, old, env)
                if seen.get(target, 0) > ROUNDS:
                    new = Env(Unknown(), Part(Moving(target)))
                if new != old:
                    self.envs[target] = new
                    todo += [target] if target not in todo else []

    def told(self, reached: list[str]) -> None:
        """Say which states have another name there, and which are left out."""
        for name, id in self.ids.items():
            where = _pointer(name)
            if name in self.states and id != name and name in reached:
                self.lost("L-NAME", f"no task can be called {name!r}", where, f"{id!r}")
        for name in self.states:
            if name not in reached:
                message = "no transition of the chain leads here any more"
                self.lost("L-DROPPED", message, _pointer(name), "the state is left out")

    def id(self, name: str) -> str:
        """Return the name of the task of a state, or of what stands beside it."""
        if name not in self.ids:
            found, number = name or "task", 1
            while found in _NAMES or found.endswith("_error") or found in self.ids.values():
                number += 1
                found = f"{name.removesuffix('_error')}_{number}"
            self.ids[name] = found
        return self.ids[name]

    def looked_at(self, name: str) -> Iterator[Way]:
        """Write a state with what is known about its data; yield where it leads."""
        state = self.states[name]
        env = self.envs[name]
        yield from _State(self, name, state, env).written()


class _State:
    """One state of the document, at work."""

    def __init__(self, writer: _Writer, name: str, state: Mapping[str, Any], env: Env) -> None:
        self.writer = writer
        self.name = name
        self.state = state
        self.env = env
        language = state.get("QueryLanguage", writer.value.get("QueryLanguage", "JSONPath"))
        self.jsonata = language == "JSONata"
        self.raw = env.data
        self.input = env.data
        if not self.jsonata and "InputPath" in state:
            path = state["InputPath"]
            why = ("CX-INPUTPATH", self.at("InputPath"))
            self.input = Constant({}) if path is None else self.reader(why).expression(path)

    def at(self, *steps: str | int) -> str:
        return _pointer(self.name) + "".join(f"/{escape(str(step))}" for step in steps)

    def lost(
        self,
        code: str,
        message: str,
        pointer: str | None = None,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        self.writer.lost(code, message, pointer or self.at(), instead, severity)

    def reader(self, why: Why, result: Value | None = None, *, caught: bool = False) -> Reader:
        source = self.raw if self.jsonata else getattr(self, "input", self.raw)
        return Reader(self.env, source, result or Unknown(), why, caught)

    def written(self) -> Iterator[Way]:
        kind = str(self.state.get("Type"))
        self.shared(kind)
        yield from _KINDS[kind](self)

    def shared(self, kind: str) -> None:
        """Report every field that no task has."""
        if kind not in _SAID:
            return  # all of it is reported by what stands in
        for field, code in _COMPUTED.items():
            if self.state.get(field, "$") != "$" and (field != "Parameters" or kind == "Pass"):
                told = "nothing is computed there until somebody asks for it"
                self.lost(code, told, self.at(field), severity=Severity.INFO)
        for field in self.state:
            plain = field.removesuffix(".$")
            if field not in _OF_ALL and field not in _SAID[kind] and plain != "Metadata":
                self.lost("CX-META", f"no task has {plain!r}", self.at(field), *_LEFT)

    # What a task is given

    def given(self, value: Value, code: str, where: str) -> tuple[dict[str, Json], Value]:
        """Return what makes a value the input of a task, and what that is then."""
        found = self.sayable(value, code, where)
        if found is None:
            self.inexpressible(value, code, where)
            return {}, self.env.flow
        return found, value

    def sayable(self, value: Value, code: str, where: str) -> dict[str, Json] | None:
        if value == self.env.flow:
            return {}
        if isinstance(value, Part) and not value.path and isinstance(value.root, str):
            return {"input_var": value.root}
        if isinstance(value, Text) or (
            isinstance(value, Constant) and isinstance(value.value, str)
        ):
            said = shown(value, self.env)
            if said is not None and isinstance(value, Text):
                self.lost(
                    "CX-GOFMT",
                    "a template shows numbers, objects and what is missing in its own way",
                    where,
                )
        elif isinstance(value, Part):
            said = shown(value, self.env)
            if said is not None:
                told = "a part of a variable is filled in as a text"
                self.lost("CX-INPUTPATH", told, where, said, Severity.WARNING)
        else:
            said = as_json(value, self.env)
            if said is not None:
                told = "a task can only be given a variable or a text"
                self.lost(code, told, where, "the text of the JSON", Severity.WARNING)
        if said is None or not _parses(said):
            return None
        return {"prompt_template": said or '{{""}}'}

    def inexpressible(self, value: Value, code: str, where: str) -> None:
        why = getattr(value, "why", None) or (code, where)
        self.lost(why[0], _INEXPRESSIBLE.get(why[0], "no task says this"), why[1], *_MOVES_ON)

    # Where a state leads

    def leave(self, data: Value, flow: Value, variables: Variables) -> Iterator[Way]:
        """Add the transition of the task that was added last; yield where the state leads."""
        env = Env(data, flow, variables)
        following = self.state.get("Next")
        if following is not None:
            goto = self.goto(str(following))
            self.then([_default(goto)])
            yield str(following), env
            return
        self.ended(env, f"{self.name}:end", "OutputPath")

    def goto(self, name: str) -> str:
        """Return where a branch leads that leads to a state."""
        state = self.writer.states.get(name)
        if state is None or (state["Type"] == "Succeed" and not self.needed(name)):
            return END
        return self.writer.id(name)

    def needed(self, name: str) -> bool:
        """Whether a Succeed has a task: what it gives is not what has moved along.

        A failure leads to a task as well, and a chain begins with one.
        """
        env = self.writer.envs.get(name)
        if env is None or name in self.writer.entries:
            return name in self.writer.entries
        return _State(self.writer, name, self.writer.states[name], env).output() != env.flow

    def then(self, branches: list[Json], on_failure: str | None = None) -> None:
        task = self.writer.tasks[-1]
        transition: dict[str, Json] = dict(task.get("transition") or {})
        if on_failure is not None:
            transition["on_failure"] = on_failure
        transition["branches"] = branches
        task["transition"] = transition

    def ended(self, env: Env, name: str, field: str) -> None:
        """End the chain with the data of the document."""
        if env.data == env.flow:
            self.then([_default(END)])
            return
        last = _State(self.writer, self.name, self.state, env)
        where = self.at(field) if field in self.state else self.at()
        found = last.sayable(env.data, "CX-OUTPUT", where)
        if found is None:
            last.inexpressible(env.data, "CX-OUTPUT", where)
            self.then([_default(END)])
            return
        id = self.writer.id(name)
        self.then([_default(id)])
        self.add({"id": id, "handler": "noop", **found})
        self.then([_default(END)])

    def add(self, task: dict[str, Json]) -> None:
        comment = self.state.get("Comment")
        if type(comment) is str and comment and task["id"] == self.writer.id(self.name):
            id, *rest = task.items()
            task = dict([id, ("description", comment), *rest])
        self.writer.tasks.append(task)

    def assigned(self, holder: Mapping[str, Any], reader: Reader) -> Variables:
        """Return the variables of the document after an `Assign`."""
        given = holder.get("Assign")
        if type(given) is not dict:
            return self.env.variables
        found = reader.structure(given) if self.jsonata else reader.template(given)
        new = {name.removesuffix(".$"): at(found, (name.removesuffix(".$"),)) for name in given}
        return self.env.assigned(new)

    # Data

    def payload(self) -> tuple[Value, str]:
        """Return what the agent of a task is given, and where that is said."""
        for field in ("Arguments", "Parameters"):
            if field in self.state:
                reader = self.reader(("CX-PARAMS", self.at(field)))
                given = self.state[field]
                found = reader.structure(given) if self.jsonata else reader.template(given)
                return found, self.at(field)
        return self.input, self.at("InputPath" if "InputPath" in self.state else "Type")

    def output(self, result: Value | None = None) -> Value:
        """Return the output of a state with a result, or without one."""
        why = ("CX-OUTPUT", self.at("Output"))
        if self.jsonata:
            if "Output" not in self.state:
                return self.raw if result is None else result
            return self.reader(why, result).structure(self.state["Output"])
        found = self.input if result is None else result
        if result is not None and "ResultSelector" in self.state:
            own = ("CX-SELECTOR", self.at("ResultSelector"))
            found = Reader(self.env, result, why=own).template(self.state["ResultSelector"])
        if result is not None:
            found = self.resulting(self.raw, self.state, found, "ResultPath")
        path = self.state.get("OutputPath", "$")
        if path is None:
            return Constant({})
        return Reader(self.env, found, why=("CX-OUTPUT", self.at("OutputPath"))).expression(path)

    def resulting(
        self, raw: Value, holder: Mapping[str, Any], result: Value, *way: str | int
    ) -> Value:
        """Return the data after a result is placed by a `ResultPath`."""
        text = holder.get("ResultPath", "$")
        if text is None:
            return raw
        try:
            path = parse_path(text)
        except (ExpressionFault, TypeError):
            return Unknown(("CX-RESULTPATH", self.at(*way)))
        steps = tuple(each for each in path.segments if isinstance(each, str | int))
        if path.root != "$":
            return raw
        if steps and not isinstance(raw, Members | Constant):
            self.lost(
                "CX-RESULTPATH",
                "a task leaves its output under its own name, whatever the data is",
                self.at(*way),
                severity=Severity.INFO,
            )
        return placed(raw, steps, result, ("CX-RESULTPATH", self.at(*way)))

    # Tasks

    def task(self) -> Iterator[Way]:
        agent = str(self.state.get("Agent", self.state.get("Resource")))
        self.lost(
            "L-RESOURCE",
            f"{agent!r} is a tool there",
            self.at("Agent" if "Agent" in self.state else "Resource"),
            "it is given its input under 'input' and what is written out under 'args'",
        )
        if agent.startswith(INTEGRATION):
            told = "nothing waits for a job or a token there"
            self.lost("L-INTEGRATION", told, self.at("Resource"), "a tool of the same name")
        yield from self.calling(agent, *self.payload())

    def calling(self, tool: str, payload: Value, where: str) -> Iterator[Way]:
        yield from self.call(tool, payload, where)
        yield from self.resulted(Part(self.writer.id(self.name)))

    def call(self, tool: str, payload: Value, where: str) -> list[Way]:
        """Add a task that calls a tool; return where its failure leads."""
        id = self.writer.id(self.name)
        named: dict[str, Json] = {"name": tool}
        dynamic = payload
        members = _members(payload)
        if members is not None:
            constant = {key: each for key, each in members.items() if isinstance(each, Constant)}
            if not members:
                told = "a tool is always given what moves along"
                self.lost("CX-PARAMS", told, where, None, Severity.WARNING)
            args = {key: self.argument(each.value, where) for key, each in constant.items()}
            if args:
                named["args"] = args
            others = {key: each for key, each in members.items() if key not in constant}
            dynamic = self.env.flow
            if len(others) == 1:
                (dynamic,) = others.values()
            elif others:
                dynamic = Members(None, tuple(others.items()), ("CX-PARAMS", where))
        fields, given = self.given(dynamic, "CX-PARAMS", where)
        word = "hook" if self.writer.seed else "tools"
        task: dict[str, Json] = {"id": id, "handler": word, **fields, word: named}
        limit = self.state.get("TimeoutSeconds")
        if type(limit) is int:
            task["timeout"] = f"{limit}s"
        elif limit is not None:
            self.lost("CX-META", "no time limit is computed", self.at("TimeoutSeconds"), *_LEFT)
        attempts = self.retries()
        if attempts:
            task["retry_on_failure"] = attempts
        self.add(task)
        ways = [*self.catching(id, given)]
        self.env = renewed(self.env, id)
        self.raw = self.input = self.env.data
        return ways

    def resulted(self, result: Value) -> Iterator[Way]:
        """Leave a state with a result."""
        reader = self.reader(None, result) if self.jsonata else Reader(self.env, result)
        yield from self.leave(self.output(result), result, self.assigned(self.state, reader))

    def argument(self, value: Json, where: str) -> str:
        text = value if isinstance(value, str) else compact(value)
        if text is not value:
            told = f"arguments of tools are texts, and {text[:60]} is none"
            self.lost("CX-PARAMS", told, where, "its JSON", Severity.WARNING)
        elif any(macros_in(text)):
            self.lost("CX-PARAMS", "this text is expanded there", where, None, Severity.WARNING)
        return text

    def retries(self) -> int:
        """Return how often a task is tried again."""
        retriers = [each for each in self.state.get("Retry", ()) if type(each) is dict]
        if not retriers:
            return 0
        where = self.at("Retry")
        chosen = next((each for each in retriers if _takes_all(each)), None)
        if chosen is None or len(retriers) > 1 or not _takes_all(chosen, self.limited):
            self.lost(
                "CX-RETRY",
                "every failure is tried again, as often as one number says",
                where,
                "that of the first retrier for all errors, else of the first one",
            )
        chosen = chosen or retriers[0]
        count = chosen.get("MaxAttempts", 3)
        if type(count) is not int:
            self.lost("CX-RETRY", "no number of attempts is computed", where, "3")
            count = 3
        if count and any(_number(each, "IntervalSeconds", 1) for each in retriers):
            self.lost("CX-DELAY", "a task is tried again at once", where)
        return count

    @property
    def limited(self) -> bool:
        return "TimeoutSeconds" in self.state

    def catching(self, id: str, given: Value) -> Iterator[Way]:
        """Lead a failure where the document does, as far as a chain can."""
        catchers = [each for each in self.state.get("Catch", ()) if type(each) is dict]
        if not catchers:
            return
        index = next((n for n, each in enumerate(catchers) if _takes_all(each, True)), None)
        if index is None:
            index = next((n for n, each in enumerate(catchers) if _takes_all(each)), 0)
        chosen = catchers[index]
        if len(catchers) > 1 or not _takes_all(chosen, self.limited):
            self.lost(
                "CX-CATCH", "every failure leads to one task", self.at("Catch"), chosen["Next"]
            )
        # What failed leaves its input under its own name.
        if given == self.env.flow:
            env = renamed(self.env, id)
        else:
            env = renewed(self.env, id)
            same = given == self.env.data
            env = Env(Part(id) if same else env.data, Part(id), env.variables)
        data = env.data
        self_ = _State(self.writer, self.name, self.state, env)
        way = ("Catch", index, "ResultPath")
        if self.jsonata:
            reader = self_.reader(("CX-CATCH", self.at("Catch", index, "Output")), caught=True)
            found = reader.structure(chosen["Output"]) if "Output" in chosen else CAUGHT
        else:
            found = self_.resulting(data, chosen, CAUGHT, *way)
        variables = self_.assigned(chosen, Reader(self_.env, CAUGHT, caught=True))
        if "last_error" in roots(found):
            self.lost(
                "CX-CATCH",
                "of an error one text is left: which task failed, and why",
                self.at("Catch", index),
                "{{.last_error}}",
            )
        target = str(chosen["Next"])
        self.then([], self.writer.id(target) if target in self.writer.states else None)
        yield target, Env(found, env.flow, variables)

    # Other states

    def pass_(self) -> Iterator[Way]:
        id = self.writer.id(self.name)
        data, where = (self.output(), self.at("Output")) if self.jsonata else self.passed()
        variables = self.assigned(self.state, self.reader(None, data))
        found = self.sayable(data, "CX-PASS", where) if self.wanted(data) else None
        self.add({"id": id, "handler": "noop", **(found or {})})
        env = Env(data, self.env.flow, variables)
        if found:
            env = Env(data, data, variables)
        if env.flow != Part(id):
            named = id in roots(env.flow) or isinstance(env.flow, Text) or _moving(env.flow)
            env = renamed(env, id) if named else renewed(env, id)
        yield from self.leave(env.data, env.flow, env.variables)

    def wanted(self, data: Value) -> bool:
        """Whether a Pass can hand on its data exactly; else whoever uses it says what is lost."""
        if isinstance(data, Constant):
            return isinstance(data.value, str)
        return isinstance(data, Text) or (isinstance(data, Part) and not data.path)

    def passed(self) -> tuple[Value, str]:
        for field in ("Result", "Parameters"):
            if field in self.state:
                why = ("CX-PASS", self.at(field))
                given = self.state[field]
                result = Constant(given)
                if field == "Parameters":
                    result = self.reader(why).template(given)  # type: ignore[assignment]
                return self.output(result), self.at(field)
        return self.output(self.input), self.at()

    def succeed(self) -> Iterator[Way]:
        if not self.needed(self.name):
            return
        id = self.writer.id(self.name)
        data = self.output()
        where = self.at("Output" if "Output" in self.state else "Type")
        fields = self.sayable(data, "CX-OUTPUT", where)
        if fields is None:
            self.inexpressible(data, "CX-OUTPUT", where)
        self.add({"id": id, "handler": "noop", **(fields or {})})
        self.then([_default(END)])
        yield from ()

    def fail(self) -> Iterator[Way]:
        parts = []
        for field in ("Error", "Cause"):
            value = self.said(field)
            if value is not None:
                parts.append(value)
        said = ": ".join(each or "" for each in parts) or "failed"
        self.lost(
            "L-FAIL", "an error has no name there", self.at(), "its name is part of the message"
        )
        self.add(
            {"id": self.writer.id(self.name), "handler": "raise_error", "prompt_template": said}
        )
        yield from ()

    def said(self, field: str) -> str | None:
        """Return a field of a Fail as part of a template, None where it is absent."""
        reader = self.reader(None)
        if f"{field}Path" in self.state:
            value = reader.expression(self.state[f"{field}Path"])
        elif field in self.state:
            value = (
                reader.structure(self.state[field]) if self.jsonata else Constant(self.state[field])
            )
        else:
            return None
        found = shown(value, self.env) if not isinstance(value, Unknown | Members) else None
        return found if found is not None else f"({field.lower()})"

    def skipped(self) -> Iterator[Way]:
        """Put a task without effect where nothing does what the state does."""
        kind = str(self.state["Type"])
        if kind == "Wait":
            self.lost("CX-WAIT", "no task waits", None, "a task without effect")
        else:
            told = "an engine keeps its runs by itself"
            self.lost("CX-CHECKPOINT", told, None, "a task without effect")
        yield from self.pass_()

    def stand_in(self) -> Iterator[Way]:
        """Put a tool where something stands that has no counterpart."""
        kind = str(self.state["Type"])
        self.lost(
            _STANDS_IN[kind],
            f"there are no {kind} states there",
            None,
            "a tool of its name has to do that",
        )
        if kind == "Approval":
            yield from self.approval()
        else:
            yield from self.calling(self.name, self.input, self.at())

    def approval(self) -> Iterator[Way]:
        """Let a tool ask people; what it answers decides where to go."""
        id = self.writer.id(self.name)
        yield from self.call(self.name, self.env.flow, self.at())
        record = Part(id)
        if self.jsonata or "ResultPath" not in self.state:
            names = ("approval", "approver", "timestamp", "comment")
            new: dict[str, Value] = {name: at(record, (name,)) for name in names}
            data = merged(self.raw, new, ("CX-APPROVAL", self.at()))
        else:
            data = self.resulting(self.raw, self.state, record, "ResultPath")
        self.env = Env(data, record, self.env.variables)
        rules = self.state.get("Choices") or []
        otherwise = self.state.get("Default", self.state.get("Next"))
        if not rules and otherwise is not None:
            self.then([_default(self.goto(str(otherwise)))])
            yield str(otherwise), self.env
            return
        if not rules:
            self.ended(self.env, f"{self.name}:end", "Type")
            return
        self.raw = self.input = Members(data, (("approval", at(record, ("approval",))),))
        self.then([_default(self.writer.id(f"{self.name}:if"))])
        yield from self.choosing(f"{self.name}:if", rules, otherwise)

    # Choices

    def choice(self) -> Iterator[Way]:
        id = self.writer.id(self.name)
        data = self.env.data
        if any(isinstance(root, Moving) for root in roots(data)) and _moving(self.env.flow):
            # What moves along gets a name before the choice takes its place.
            self.add({"id": id, "handler": "noop"})
            self.then([_default(self.writer.id(f"{self.name}:if"))])
            self.env = renamed(self.env, id)
            here = _State(self.writer, self.name, self.state, self.env)
            self.raw, self.input = here.raw, here.input
            yield from self.choosing(
                f"{self.name}:if", self.state["Choices"], self.state.get("Default")
            )
        else:
            yield from self.choosing(self.name, self.state["Choices"], self.state.get("Default"))

    def choosing(self, name: str, rules: list[Any], otherwise: str | None) -> Iterator[Way]:
        """Add a task that says in its text which rule holds, and the branches behind it."""
        id = self.writer.id(name)
        if any(isinstance(root, str) for root in roots(self.input)):
            self.lost(
                "CX-CHOICE", "what is missing equals nothing there", None, None, Severity.INFO
            )
        ways: list[tuple[str, Env]] = []
        parts: list[str] = []
        labels: dict[str, str] = {}
        branches: list[Json] = []
        env = renewed(self.env, id)
        for index, rule in enumerate(rules):
            where = self.at("Choices", index)
            reader = self.reader(("CX-CHOICE", where))
            test = condition(rule, where, reader, self.lost)
            if not _parses(f"{{{{if {test}}}}}{{{{end}}}}"):
                self.lost("CX-OPERATOR", "no condition says this; it is never true", where)
                test = "false"
            after = self.after(rule, env, id)
            goto = self.goto(str(rule["Next"]))
            label = _label(goto, labels)
            if goto not in labels:
                labels[goto] = label
                branches.append({"operator": "equals", "when": label, "goto": goto})
            parts.append(f"{{{{{'if' if not parts else 'else if'} {test}}}}}{label}")
            ways.append((str(rule["Next"]), after))
        last = ANYTHING
        if otherwise is not None:
            after = self.after(self.state, env, id)
            goto = self.goto(otherwise)
            last = _label(goto, labels)
            branches = [each for each in branches if each["goto"] != goto]
            branches.append(_default(goto))
            ways.append((otherwise, after))
        text = f"/{''.join(parts)}{{{{else}}}}{last}{{{{end}}}}"
        task: dict[str, Json] = {"id": id, "handler": "parse_transition", "prompt_template": text}
        self.add(task)
        self.then(branches)
        yield from ways

    def after(self, holder: Mapping[str, Any], env: Env, id: str) -> Env:
        """Return what is known behind a rule, or behind none."""
        here = _State(self.writer, self.name, self.state, Env(env.data, Part(id), env.variables))
        if self.state["Type"] == "Approval":
            return here.env
        why = ("CX-OUTPUT", self.at("Output"))
        data = here.output()
        if self.jsonata and "Output" in holder:
            data = here.reader(why).structure(holder["Output"])
        return Env(data, Part(id), here.assigned(holder, here.reader(None)))


_LEFT: Final = ("it is left out", Severity.ERROR)
_MOVES_ON: Final = ("what moves along is there instead",)
_INEXPRESSIBLE: Final[Mapping[str, str]] = {
    "CX-PARAMS": "a tool is given what moves along, or one variable, or a text",
    "CX-RESULTPATH": "a result takes the place of what moved along; no data grows around it",
    "CX-SELECTOR": "no part of a result is selected like this",
    "CX-INPUTPATH": "no variable of the chain holds this",
    "CX-OUTPUT": "a chain ends with what moves along",
    "CX-PASS": "a task without effect hands on a variable or a text",
    "CX-CATCH": "of an error one text is left",
    "CX-APPROVAL": "a record takes the place of what moved along",
}


def _caught(states: Mapping[str, Any]) -> Iterator[str]:
    """Yield the states that failures lead to."""
    for state in states.values():
        yield from (each["Next"] for each in state.get("Catch", ()) if "Next" in each)


def _pointer(name: str) -> str:
    return f"/States/{escape(name)}"


def _default(goto: str) -> dict[str, Json]:
    return {"operator": "default", "when": "", "goto": goto}


def _members(payload: Value) -> dict[str, Value] | None:
    """Return the members of an object that is written out, None for anything else."""
    if isinstance(payload, Members) and payload.base is None:
        return dict(payload.members)
    if isinstance(payload, Constant) and isinstance(payload.value, dict):
        return {key: Constant(each) for key, each in payload.value.items()}
    return None


def _moving(value: Value) -> bool:
    return isinstance(value, Part) and isinstance(value.root, Moving)


def _label(goto: str, labels: Mapping[str, str]) -> str:
    """Return a word for a target."""
    if goto in labels:
        return labels[goto]
    base = re.sub(r"[\s{}]+", "_", goto)
    found, number = base, 1
    while found in labels.values() or found == ANYTHING:
        number += 1
        found = f"{base}_{number}"
    return found


def _parses(template: str) -> bool:
    try:
        parse(template)
    except ExpressionFault:
        return False
    return True


def _takes_all(holder: Mapping[str, Any], strictly: bool = False) -> bool:
    """Whether a retrier or catcher takes every error; without *strictly* a timeout aside."""
    names = holder.get("ErrorEquals", ())
    return "States.ALL" in names or (not strictly and "States.TaskFailed" in names)


def _number(holder: Mapping[str, Any], field: str, default: float) -> float:
    value = holder.get(field, default)
    return value if type(value) in (int, float) else default


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "chain"


_Handler = Callable[[_State], Iterator[Way]]
_KINDS: Final[Mapping[str, _Handler]] = {
    "Task": _State.task,
    "Choice": _State.choice,
    "Pass": _State.pass_,
    "Wait": _State.skipped,
    "Checkpoint": _State.skipped,
    "Succeed": _State.succeed,
    "Fail": _State.fail,
    **dict.fromkeys(_STANDS_IN, _State.stand_in),
}
