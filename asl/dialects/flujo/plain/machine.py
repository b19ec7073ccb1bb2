"""A machine of a blueprint said again: each state by what its functions do to the data.

What moves along has no place of its own there, so it is followed along all ways to the states that
have made it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asl.core.diagnostics import escape
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.plain.conditions import Beyond, Conditions, Known, Rule, named
from asl.dialects.flujo.plain.places import START, Env, Makers, Places, joined
from asl.dialects.flujo.plain.terms import Call, Literal, Members, Operation, Term, Way, term_of
from asl.dialects.formats import Path, said
from asl.dialects.names import fresh
from asl.dialects.plain import Plain, leads, path_to
from asl.expr.flujo.builtins import YES
from asl.expr.flujo.forks import REDUCERS
from asl.expr.flujo.templates import Block, Text, parse

__all__ = ["FAILED", "Machine", "Whole"]

FAILED: Final = "last_error"
"""The key of what is left of a failure."""
NOBODY: Final = Makers()
Fields = dict[str, Json]
Parts = list[str]
State = Mapping[str, Any]


@dataclass
class Whole:
    """What all machines of a document share while it is said again."""

    places: Places
    sunk: frozenset[str]
    """Fields of the context that steps write."""
    names: set[str]
    made: Plain = field(default_factory=Plain)
    looking: bool = True
    """Whether ways are followed, and nothing is written."""
    read: set[str] = field(default_factory=set)
    """The keys that were read."""


@dataclass
class _After:
    """What is known behind a state, and what is done to the data on the way there."""

    env: Env
    passes: list[Fields] = field(default_factory=list)
    """The fields of Passes."""


class Machine:
    """One machine; *env* is what is known where it begins."""

    def __init__(
        self, whole: Whole, value: State, way: tuple[str | int, ...], env: Env, failing: str = ""
    ) -> None:
        self.whole = whole
        self.places = whole.places
        self.value = value
        self.way = way
        self.failing = failing
        """What becomes of a branch that fails: it has `failed`, `null` comes, or an `error`."""
        self.states: dict[str, Json] = {}
        self.envs: dict[str, Env] = {str(value["StartAt"]): env}
        self.ends: Env = {}

    def said(self) -> Fields:
        """Return the machine in plain JSONPath."""
        self.learn()
        for name in self.value["States"]:
            if name in self.envs:
                self.states[name] = self.state(name, self.envs[name])[0]
        start = str(self.value["StartAt"])
        passed = {name: each for name, each in self.states.items() if _only_leads(each)}

        def lead(name: Any) -> Any:
            seen: set[str] = set()
            while name in passed and name not in seen:
                seen.add(name)
                name = passed[name]["Next"]
            return name

        for state in self.states.values():
            _led(state, lead)
        start = self.via(_After({}, self.begun()), lead(start), start)
        return {
            "StartAt": start,
            "States": {name: self.states[name] for name in self._order(start)},
        }

    def begun(self) -> list[Fields]:
        """Return the Passes that copy the input of a run to wherever it is looked for."""
        copies = [] if self.way else self.places.copies(START)
        return [{"InputPath": here, "ResultPath": there} for here, there in copies]

    def _order(self, start: str) -> list[str]:
        """Return the states that are reached, as ways lead to them."""
        found: dict[str, None] = {}
        todo = [start]
        while todo:
            name = todo.pop(0)
            if name not in found:
                found[name] = None
                todo += [each for each in leads(self.states[name]) if each not in found]
        return [*found]

    def learn(self) -> None:
        """Follow the data along all ways, until nothing new is learnt."""
        looking, self.whole.looking = self.whole.looking, True
        todo = [*self.envs]
        while todo:
            name = todo.pop()
            for target, env in self.state(name, self.envs[name])[1]:
                old = self.envs.get(target)
                new = env if old is None else joined(old, env)
                if new != old:
                    self.envs[target] = new
                    todo.append(target)
        self.whole.looking = looking

    def lost(self, code: str, message: str, name: str, *way: str | int, hint: str = "") -> None:
        """Report what is not said, unless ways are only followed."""
        if not self.whole.looking:
            steps = (*self.way, "States", name, *way)
            self.whole.made.lost_at(code, message, steps, hint or None)

    # States

    def state(self, name: str, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        """Return a state said again, and where it leads with what is known then."""
        state = self.value["States"][name]
        match state["Type"]:
            case "Choice":
                return self.choice(name, state, env)
            case "Succeed":
                self.ends = joined(self.ends, env) if self.ends else env
                return self.succeeded(name, state, env), []
            case "Fail":
                return self.failed(name, state, env), []
            case "Pass":
                return self.passed(name, state, env)
            case "Approval":
                made = self.question(name, state, env)
            case "Parallel":
                made = self.fork(name, state, env)
            case "Map":
                made = self.iteration(name, state, env)
            case _:
                made = self.task(name, state, env)
        after = self.after(state.get("Output"), env, name)
        made["ResultPath"] = self.places.record(name) if name in self.places.values else None
        made |= {key: state[key] for key in ("Comment",) if key in state}
        ways: list[tuple[str, Env]] = []
        catchers: list[Json] = []
        for catcher in state.get("Catch", ()):
            if self.failing == "failed" and self._hands_back(catcher["Next"]):
                continue  # its failure is that of all branches
            behind = self.after(catcher.get("Output"), env, name)
            ways.append((catcher["Next"], behind.env))
            caught = {"ErrorEquals": catcher["ErrorEquals"], "ResultPath": path_to(FAILED)}
            catchers.append({**caught, "Next": self.via(behind, catcher["Next"], name)})
        if catchers:
            made["Catch"] = catchers
        return self.leaving(made, state, after, name), ways + self._next(state, after)

    def _next(self, state: State, after: _After) -> list[tuple[str, Env]]:
        if "Next" in state:
            return [(state["Next"], after.env)]
        self.ends = joined(self.ends, after.env) if self.ends else after.env
        return []

    def _hands_back(self, name: str) -> bool:
        output = self.value["States"][name].get("Output")
        term = term_of(output) if output is not None else None
        return isinstance(term, Members) and term.get("failed") is not None

    def leaving(self, made: Fields, state: State, after: _After, name: str) -> Fields:
        """Return a state with where it goes: past the Passes behind it."""
        if "Next" in state:
            return {**made, "Next": self.via(after, state["Next"], name)}
        out: Fields = {"End": True}
        makers = after.env.get("previous_step", NOBODY)
        if makers:
            out["OutputPath"] = self.at(makers, after.env, name)
        if not after.passes:
            return {**made, **out}
        *first, last = after.passes
        end = self.beside(f"{name}:end", {"Type": "Pass", **last, **out}, name)
        return {**made, "Next": self.via(_After(after.env, first), end, name)}

    def via(self, after: _After, target: str, name: str) -> str:
        """Return where to go for a target behind Passes."""
        for each in reversed(after.passes):
            target = self.beside(f"{name}:then", {"Type": "Pass", **each, "Next": target}, name)
        return target

    def beside(self, wanted: str, state: Fields, of: str) -> str:
        """Add a state that is a part of another one; return its name."""
        if self.whole.looking:
            return wanted
        name = fresh(wanted, self.whole.names)
        self.whole.names.add(name)
        self.states[name] = state
        here, there = (
            "".join(f"/{escape(str(step))}" for step in (*self.way, "States", each))
            for each in (name, of)
        )
        self.whole.made.beside[here] = there
        return name

    def succeeded(self, name: str, state: State, env: Env) -> Fields:
        term = term_of(state["Output"])
        made: Fields = {"Type": "Succeed"}
        makers = env.get("previous_step", NOBODY)
        if isinstance(term, Call) and term.name == "ended":
            self.lost("L-OUTPUT", "a run ends with all of its data", name, "Output")
        elif makers:
            if isinstance(term, Call):
                told = "a run ends with its last output, without the context"
                self.lost("L-OUTPUT", told, name, "Output")
            made["OutputPath"] = self.at(makers, env, name)
        return made

    def failed(self, name: str, state: State, env: Env) -> Fields:
        cause = term_of(state.get("Cause", ""))
        made: Fields = {"Type": "Fail", "Error": state["Error"]}
        if isinstance(cause, Literal):
            return {**made, "Cause": cause.value}
        told = isinstance(cause, Call) and cause.name == "string"
        if told and "failure" in env.get("event", NOBODY):
            return {**made, "CausePath": path_to(FAILED, "Cause")}
        return {**made, "Cause": "no branch or state of this name"}

    def passed(self, name: str, state: State, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        made: Fields = {"Type": "Pass"}
        made |= {key: state[key] for key in ("Comment",) if key in state}
        term = term_of(state.get("Output", "{% $states.input %}"))
        if isinstance(term, Members):  # a branch has failed
            self.ends = joined(self.ends, env) if self.ends else env
            if self.failing == "error":
                cause = path_to(FAILED, "Cause")
                return {**made, "Parameters": {"error.$": cause}, "End": True}, []
            return {**made, "Result": None, "End": True}, []
        if isinstance(term, Literal):
            return {**made, "Result": term.value, "End": True}, []
        after = self.after(state.get("Output"), env, name)
        if after.passes:
            made |= after.passes.pop(0)
        return self.leaving(made, state, after, name), self._next(state, after)

    def task(self, name: str, state: State, env: Env) -> Fields:
        made: Fields = {"Type": "Task", "Agent": state["Agent"]}
        parameters: Fields = {}
        for key, each in state["Arguments"].items():
            if key == "context":
                message = "an agent is given its input, without the context"
                self.lost("L-SHARED", message, name, "Arguments", "context")
            elif key == "input":
                self.put(parameters, key, self.given(term_of(each), env, name))
            else:
                parameters[key] = each
        made["Parameters"] = parameters
        return made | {key: state[key] for key in ("TimeoutSeconds", "Retry") if key in state}

    def question(self, name: str, state: State, env: Env) -> Fields:
        made: Fields = {"Type": "Approval"}
        prompt = self.given(term_of(state["Prompt"]), env, name)
        self.put(made, "Prompt", prompt)
        return {**made, "Options": state["Options"]}

    # Branches and items

    def inner(
        self, name: str, machine: State, env: Env, failing: str, *way: str | int
    ) -> "Machine":
        """Return a machine within a state."""
        return Machine(self.whole, machine, (*self.way, "States", name, *way), env, failing)

    def fork(self, name: str, state: State, env: Env) -> Fields:
        output = term_of(state["Output"])
        call = _call(output, "join", "outer")
        flags = (call.literal(4) or {}) if call is not None else {}
        failing = "error" if flags.get("ignore") else "failed"
        begin = dict(env)
        if call is not None and call.name == "outer":
            failing = ""
            for key in ("state", "machine"):
                begin.pop(key, None)
        branches: list[Json] = []
        for index, machine in enumerate(state["Branches"]):
            inner = self.inner(name, machine, begin, failing, "Branches", index)
            if self.whole.looking:
                inner.learn()
            else:
                branches.append(inner.said())
        made: Fields = {"Type": "Parallel", "Branches": branches}
        message = "what branches write into the context, and their steps, stay within them"
        self.lost("L-PARRESULT", message, name, "Branches")
        if failing == "failed":
            message = "the other branches of one that fails are stopped"
            self.lost("FL-ABORT", message, name, "Branches")
        if call is None or call.name == "outer":
            return made
        names, reduce = call.literal(3), flags.get("reduce")
        if reduce is None:
            made["ResultSelector"] = {
                f"{each}.$": f"$[{index}]" for index, each in enumerate(names)
            }
        elif reduce in REDUCERS and reduce not in ("values", "first", "last"):
            message = f"nothing makes {reduce!r} of the outputs of branches"
            self.lost("L-TRANSFORM", message, name, "Output", hint="the outputs in a list")
        return made

    def iteration(self, name: str, state: State, env: Env) -> Fields:
        items = term_of(state["Items"])
        item = f"{name}:item"
        self.places.made(item, "item")
        inner = self.inner(
            name,
            state["ItemProcessor"],
            {**env, "previous_step": Makers((item,))},
            "null",
            "ItemProcessor",
        )
        if self.whole.looking:
            inner.learn()
            return {}
        outside, self.whole.read = self.whole.read, set()
        processor = inner.said()
        keys = [self.places.record(item), *(there for _, there in self.places.copies(item))]
        own = {self._key(each) for each in (item, *inner.envs) if each in self.places.values}
        used = sorted(self.whole.read - own - {*(each.removeprefix("$.") for each in keys)})
        self.whole.read = outside | self.whole.read
        selector: Fields = {f"{each.removeprefix('$.')}.$": "$$.Map.Item.Value" for each in keys}
        selector |= {f"{each}.$": path_to(each) for each in used}
        if used:
            message = "a value that is not there may fail the run"
            self.lost(
                "L-REQUIRED", message, name, "ItemSelector", hint=f"let there be {', '.join(used)}"
            )
        message = "what is done for an item, and its failure, stay within it"
        self.lost("L-MAPRESULT", message, name, "ItemProcessor")
        made: Fields = {"Type": "Map"}
        if isinstance(items, Call):
            made["ItemsPath"] = path_to(*str(items.literal(1)).removeprefix("context.").split("."))
        else:
            message = "items are data, none are written out"
            self.lost("L-TRANSFORM", message, name, "Items", hint="they are taken from 'items'")
            made["ItemsPath"] = path_to("items")
        return {
            **made,
            "ItemSelector": selector,
            "MaxConcurrency": 1,
            "ItemProcessor": processor,
        }

    def _key(self, maker: str) -> str:
        return self.places.record(maker).removeprefix("$.").partition(".")[0]

    # What becomes of the data

    def after(self, output: Json, env: Env, name: str) -> _After:
        """Return what an `Output` does."""
        after = _After(dict(env))
        if output is not None:
            self.done(term_of(output), after, name)
        return after

    def done(self, term: Term, after: _After, name: str) -> None:
        if not isinstance(term, Call):
            return  # the data as it is
        if term.given:
            self.done(term.given[0], after, name)
        env = after.env
        match term.name:
            case "done" | "answered":
                flags = term.literal(3) or {}
                makers = self.value_of(term.given[2], after, name, str(term.literal(1)), flags)
                self.finished(after, str(term.literal(1)), makers, flags)
                if term.name == "answered":
                    env["resume_input"] = makers
            case "join" | "collect":
                flags = term.literal(4 if term.name == "join" else 3) or {}
                within = {"first": (0,), "last": (len(term.literal(3) or [0]) - 1,)}
                way = within.get(str(flags.get("reduce")), ()) if term.name == "join" else ()
                step = str(term.literal(1))
                self.places.made(name, step, way, flags.get("sink_to"))
                self.copied(after, name)
                self.finished(after, step, Makers((name,)), flags)
            case "looped":
                step, flags = str(term.literal(1)), term.literal(2) or {}
                makers = env.get("previous_step", NOBODY)
                self.sunk(after, makers, flags, name)
                self.finished(after, step, makers, flags)
            case "set" | "merge":
                step, path = str(term.literal(1)), str(term.literal(2))
                path = path.removeprefix("context.")
                if term.name == "merge":
                    self.lost(
                        "L-TRANSFORM",
                        "no objects are merged",
                        name,
                        "Output",
                        hint="the value takes the place of what was there",
                    )
                self.places.made(name, step, (), path)
                self.computed(after, Known(term.literal(3)), name)
                self.finished(after, step, Makers((name,)), {})
            case "close":
                for step in term.literal(1) or ():
                    env[f"steps.{step}"] = env.get("previous_step", NOBODY)
                    if "event" in env:
                        env["step"] = Makers((step,))
            case "outer":
                self.finished(after, str(term.literal(1)), NOBODY, {})
            case "decide":
                self.places.made(name, "decision")
                env["decision"] = Makers((name,))
            case "loop" | "again":
                self.counted(after, term)
            case "routed":
                message = "all branches run, whichever are named"
                self.lost("L-CONDITION", message, name)
                self.places.made(name, str(term.literal(1)))
                env["previous_step"] = env.get("previous_step", NOBODY)
            case "start":
                env["machine"] = env.get("previous_step", NOBODY)
                env["state"] = Makers((str(term.literal(2)),))
            case "enter":
                env["previous_step"] = env.get("machine", NOBODY)
                env |= {"last_output": NOBODY, "event": Makers(("success",)), "step": NOBODY}
                env["state"] = Makers((str(term.literal(1)),))
            case "left" | "ended":
                env["previous_step"] = NOBODY
                for key in ("event", "machine", "state"):
                    env.pop(key, None)
            case "resume":
                self.places.made(name, name, ("approval",), (term.literal(2) or {}).get("sink_to"))
                self.copied(after, name)
                for key in ("previous_step", "machine", "resume_input"):
                    env[key] = Makers((name,))
            case "pause":
                message = "what the state has done before the question stays done"
                self.lost("L-TRANSFORM", message, name)
            case "failed":
                self.blamed(after, term)

    def finished(self, after: _After, step: str, makers: Makers, flags: Mapping[str, Any]) -> None:
        """Take down what a step has come to."""
        env = after.env
        env["previous_step"] = env[f"steps.{step}"] = makers
        if flags.get("updates_context") and makers:
            env["updates"] = makers
        if "event" in env:
            env |= {"last_output": makers, "event": Makers(("success",)), "step": Makers((step,))}

    def blamed(self, after: _After, term: Call) -> None:
        """Put a failure into the data that no agent has had."""
        after.env |= {"last_output": NOBODY, "event": Makers(("failure",))}
        after.env["step"] = Makers((str(term.literal(1)),))
        told = term.given[2]
        if isinstance(told, Way):
            return
        found = term.literal(2)
        if not isinstance(found, dict):
            found = {"Error": "Flujo.NoBranch", "Cause": "no branch is named so"}
        after.passes.append({"Result": found, "ResultPath": path_to(FAILED)})

    def counted(self, after: _After, term: Call) -> None:
        """Count the rounds of a loop."""
        place = self._rounds(str(term.literal(1)))
        if term.name == "loop":
            after.passes.append({"Result": {"n": 1}, "ResultPath": place})
        else:
            more = f"States.MathAdd({place}.n, 1)"
            after.passes.append({"Parameters": {"n.$": more}, "ResultPath": place})

    def _rounds(self, loop: str) -> str:
        maker = f"{loop}:rounds"
        self.places.made(maker, f"{loop}_rounds")
        return self.places.record(maker)

    def value_of(
        self, term: Term, after: _After, name: str, step: str, flags: Mapping[str, Any]
    ) -> Makers:
        """Return who has made what a step has come to: its agent, itself, or others before it."""
        sink, env = flags.get("sink_to"), after.env
        match term:
            case Way(("result",)):
                self.places.made(name, step, (), sink)
            case Way(("result", "approval")):
                self.places.made(name, step, ("approval",), sink)
            case Way(("input", "previous_step")) | Call("input"):
                makers = env.get("previous_step", NOBODY)
                self.sunk(after, makers, flags, name)
                return makers
            case _:
                found = self.given(term, env, name)
                format = isinstance(found, list) and said(found)[0] and len(found) > 1
                self.places.made(name, step, ("text",) if format else (), sink)
                self.computed(after, found, name)
                return Makers((name,))
        self.copied(after, name)
        return Makers((name,))

    def computed(self, after: _After, found: Known | Parts, name: str) -> None:
        """Put a value into the data."""
        place = self.places.record(name)
        if isinstance(found, Known):
            after.passes.append({"Result": found.value, "ResultPath": place})
        else:
            ending, value = said(found)
            if not ending:
                after.passes.append({"Result": value, "ResultPath": place})
            elif len(found) == 1:
                after.passes.append({"InputPath": value, "ResultPath": place})
            else:
                after.passes.append({"Parameters": {f"text{ending}": value}, "ResultPath": place})
        self.copied(after, name)

    def copied(self, after: _After, name: str) -> None:
        """Copy what a state has made to wherever it is looked for."""
        for source, target in self.places.copies(name):
            after.passes.append({"InputPath": source, "ResultPath": target})
            after.env[f"@{target}"] = Makers((name,))
        after.env[f"@{self.places.record(name)}"] = Makers((name,))

    def sunk(self, after: _After, makers: Makers, flags: Mapping[str, Any], name: str) -> None:
        """Copy what others have made into the context."""
        sink = flags.get("sink_to")
        if makers and isinstance(sink, str):
            place = path_to(*sink.split("."))
            after.passes.append(
                {"InputPath": self.at(makers, after.env, name), "ResultPath": place}
            )

    # Values

    def at(self, makers: Makers, env: Env, name: str) -> str:
        """Return the path where a value stands that one of these states has made."""
        if self.whole.looking:
            return "$"
        path = self.places.at(makers)
        self.whole.read.add(path.removeprefix("$.").partition(".")[0])
        if self.places.settled and not env.get(f"@{path}", NOBODY) <= makers:
            message = "what moves along may be what another step has left after it"
            self.lost("L-TEMPLATE", message, name)
        return path

    def put(self, members: Fields, key: str, found: Known | Parts) -> None:
        if isinstance(found, Known):
            members[key] = found.value
        else:
            ending, value = said(found)
            members[f"{key}{ending}"] = value

    def given(self, term: Term, env: Env, name: str) -> Known | Parts:
        """Return a value: one that is written out, or the parts of a text."""
        match term:
            case Literal(str() as text):
                return [text]
            case Literal(value):
                return Known(value)
            case Call("text"):
                return self.filled(str(term.literal(1)), env, name)
            case Call("stringify", (inner,)):
                return self.given(inner, env, name)
            case Call("get"):
                steps = str(term.literal(1)).removeprefix("context.").split(".")
                value = self.found(("context", *steps), env, name, template=True)
                return value if isinstance(value, Known) else [Path(value)]
            case Call("confirmed"):
                message = "nothing says whether people agree"
                self.lost("L-TRANSFORM", message, name, hint="their answer is handed on")
        makers = env.get("previous_step", NOBODY)
        return [Path(self.at(makers, env, name))] if makers else Known(None)

    def filled(self, template: str, env: Env, name: str) -> Parts:
        """Return the parts of a template."""
        try:
            listed = parse(template)
        except ExpressionFault:
            return [template]
        parts: Parts = []
        for part in listed:
            if isinstance(part, Text):
                parts.append(part.text)
                continue
            if isinstance(part, Block) or part.filters or len(part.choices) > 1:
                message = "no placeholder says this part of a template"
                self.lost("L-TEMPLATE", message, name, hint="what it names is put in, if anything")
            if isinstance(part, Block):
                continue
            choice = part.choices[0]
            if isinstance(choice, Text):
                parts.append(choice.text)
                continue
            found = self.found(choice, env, name, template=True)
            if isinstance(found, str):
                parts.append(Path(found))
        return parts

    def found(
        self, steps: tuple[str, ...], env: Env, name: str, *, template: bool = False
    ) -> Known | str:
        """Return where the value of a name stands, or what it is."""
        root, *rest = steps
        makers = NOBODY
        match root:
            case "context":
                return self.context(rest, env, name, template=template)
            case "steps" if rest:
                makers = env.get(f"steps.{rest.pop(0)}", NOBODY)
                if template and rest[:1] == ["output"]:
                    rest = rest[1:]
            case "previous_step" | "resume_input":
                makers = env.get(root, NOBODY)
        if not makers:
            return Known(None)
        if rest and template:
            self.required(name, steps)
        return self.at(makers, env, name) + path_to(*map(_index, rest))[1:]

    def context(self, rest: list[str], env: Env, name: str, *, template: bool) -> Known | str:
        if not rest:
            return Known(None) if template else "$"
        first, *way = rest
        if first == "current_state" and len(env.get("state", NOBODY)) == 1:
            return Known(min(env["state"]))
        if template:
            self.required(name, ("context", *rest))
        if first not in self.whole.sunk:
            step, updates = env.get(f"steps.{first}", NOBODY), env.get("updates", NOBODY)
            if step:
                way = way[1:] if way[:1] == ["output"] else way
                return self.at(step, env, name) + path_to(*map(_index, way))[1:]
            if updates:
                message = f"{first!r} is read from the answer that was last written to the context"
                self.lost("L-UPDATES", message, name, hint="let there be no other of this name")
                return self.at(updates, env, name) + path_to(*map(_index, rest))[1:]
        self.whole.read.add(first)
        return path_to(*map(_index, rest))

    def required(self, name: str, steps: tuple[str, ...]) -> None:
        message = "a value that is not there may fail the run, instead of being an empty text"
        self.lost("L-REQUIRED", message, name, hint=f"let there be {'.'.join(steps)!r}")

    # Choices

    def choice(self, name: str, state: State, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        rules: list[Json] = []
        ways: list[tuple[str, Env]] = []
        last = {key: state[key] for key in ("Output", "Default") if key in state}
        for index, rule in enumerate(state["Choices"]):
            try:
                test = self.test(term_of(rule["Condition"]), env, name)
            except Beyond:
                message = "no rule says this condition, so it never holds"
                self.lost("L-CONDITION", message, name, "Choices", index)
                continue
            if test is False:
                continue
            if test is True:
                last = {"Default": rule["Next"], "Output": rule.get("Output")}
                break
            after = self.after(rule.get("Output"), env, name)
            ways.append((rule["Next"], after.env))
            rules.append({**test, "Next": self.via(after, rule["Next"], name)})
        after = self.after(last.get("Output"), env, name)
        target = str(last["Default"])
        ways.append((target, after.env))
        following = self.via(after, target, name)
        if not rules:
            return {"Type": "Pass", "Next": following}, ways
        return {"Type": "Choice", "Choices": rules, "Default": following}, ways

    def test(self, term: Term, env: Env, name: str) -> Rule:
        """Return the rule of a condition, or its truth; raises Beyond."""
        conditions = self.conditions(env, name, machine=False)
        match term:
            case Operation("=", Call("key" | "until"), Literal(None)):
                return False  # it fails
            case Operation("=", Call("key") as call, Literal(str() as value)):
                return conditions.branch(call.literal(1), value)
            case Operation("=", Call("until") as call, Literal(True)):
                return conditions.said(str(call.literal(1)))
            case Operation("=", Call("confirmed"), Literal(value)):
                makers = env.get("previous_step", NOBODY)
                self.lost("L-ANSWER", "an answer is compared in lower case only", name)
                if not makers:
                    return bool(value != "approved")
                path = self.at(makers, env, name)
                yes: Fields = {
                    "Or": [{"Variable": path, "StringEquals": each} for each in sorted(YES)]
                }
                return yes if value == "approved" else {"Not": yes}
            case Operation("=", Way(("input", "decision")), Literal(str() as value)):
                return named(self.at(env.get("decision", NOBODY), env, name), value)
            case Operation("<", Call("rounds") as call, Literal(most)):
                place = self._rounds(str(call.literal(1)))
                return {"Variable": f"{place}.n", "NumericLessThan": most}
            case Operation(">=", Way(("input", "machine", "hops"))):
                start = str(self.value["StartAt"])
                self.lost("L-LIMIT", "a machine makes any number of hops", start)
                return False
            case Operation("=", Call("following"), Literal(None)):
                message = "where no rule holds a machine ends, whatever next_state says"
                self.lost("L-NEXT", message, name)
                return True
            case Call("when" | "pausing" as word):
                if word == "pausing":
                    env = {**env, "event": Makers(("pause",)), "last_output": NOBODY}
                return self.conditions(env, name, machine=True).said(str(term.literal(1)))
        return conditions.term(term)

    def conditions(self, env: Env, name: str, *, machine: bool) -> Conditions:
        def find(steps: tuple[str, ...]) -> Known | str:
            if steps[0] == "output" or (machine and steps[0] == "previous_step"):
                if machine or "event" in env:
                    return self.outcome(steps[1:], env, name)
                steps = ("previous_step", *steps[1:])
            if steps[0] not in ("context", "steps", "previous_step", "resume_input"):
                raise Beyond
            return self.found(steps, env, name)

        return Conditions(find, lambda told: self.lost("L-ANSWER", told, name))

    def outcome(self, steps: tuple[str, ...], env: Env, name: str) -> Known | str:
        """Return what rules of a machine see of the last step."""
        events = env.get("event", NOBODY)
        match steps:
            case ("event",) if len(events) == 1:
                return Known(min(events))
            case ("last_output", *rest):
                makers = env.get("last_output", NOBODY)
                if not makers:
                    return Known(None)
                return self.at(makers, env, name) + path_to(*map(_index, rest))[1:]
            case ("last_step", "name") if len(env.get("step", NOBODY)) == 1:
                return Known(min(env["step"]))
            case ("last_step", "feedback") if events == {"failure"}:
                return path_to(FAILED, "Cause")
            case ("last_step", "feedback") if "failure" not in events:
                return Known(None)
        raise Beyond


def _only_leads(state: Json) -> bool:
    return isinstance(state, dict) and state["Type"] == "Pass" and state.keys() <= {"Type", "Next"}


def _led(state: Any, lead: Any) -> None:
    """Let a state lead past those that do nothing."""
    for key in ("Next", "Default"):
        if key in state:
            state[key] = lead(state[key])
    for key in ("Choices", "Catch"):
        for each in state.get(key, ()):
            each["Next"] = lead(each["Next"])


def _index(step: str) -> str | int:
    return int(step) if step.isdecimal() else step


def _call(term: Term, *names: str) -> Call | None:
    """Return the call of one of these functions that a term is, or is about."""
    while isinstance(term, Call):
        if term.name in names:
            return term
        if not term.given:
            return None
        term = term.given[0]
    return None
