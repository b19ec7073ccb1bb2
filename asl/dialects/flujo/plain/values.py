"""Where values stand, and what names, templates and conditions say of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.expressions import TextReference, said, texted
from asl.dialects.flujo.functions.pipeline_data import YES
from asl.dialects.flujo.functions.templates import BlockPart, TextPart, parse
from asl.dialects.flujo.plain.conditions import Beyond, Conditions, Known, Rule, named
from asl.dialects.flujo.plain.places import ABSENT, Env, Makers, Places
from asl.dialects.flujo.plain.terms import Call, Literal, Operation, Term, Way
from asl.dialects.jsonpath_form import JsonPathForm, path_to
from asl.dialects.names import FreshNames

__all__ = ["CURRENT", "FAILED", "NOBODY", "Fields", "Parts", "Values", "Whole"]

CURRENT: Final = "current_state"
"""The key of the state in which a machine is, or has ended."""
FAILED: Final = "last_error"
"""The key of what is left of a failure."""
NOBODY: Final = Makers()
Fields = dict[str, Json]
Parts = list[str]


@dataclass
class Whole:
    """What all machines of a document share while it is said again."""

    places: Places
    sunk: frozenset[str]
    """Fields of the context that steps write."""
    names: FreshNames
    authored: Mapping[str, str]
    """Names of states -> those that the blueprint has for them, where these are others."""
    made: JsonPathForm = field(default_factory=JsonPathForm)
    looking: bool = True
    """Whether ways are followed, and nothing is written."""
    read: set[str] = field(default_factory=set)
    """The keys that were read."""
    stated: bool = False
    """Whether anybody reads within a machine in which of several states it is."""


class Values:
    """The values of one machine; *way* leads to it in the document, and it begins with *start*."""

    def __init__(self, whole: Whole, way: tuple[str | int, ...], start: str) -> None:
        self.whole = whole
        self.start = start
        self.places = whole.places
        self.way = way

    def lost(self, code: str, message: str, name: str, *way: str | int, hint: str = "") -> None:
        """Report what is not said, unless ways are only followed."""
        if not self.whole.looking:
            steps = (*self.way, "States", name, *way)
            self.whole.made.lost_at(code, message, steps, hint or None)

    def rounds(self, loop: str) -> str:
        """Return the place where the rounds of a loop are counted."""
        maker = f"{loop}:rounds"
        self.places.made(maker, f"{loop}rounds")
        return self.places.record(maker)

    def text(self, parts: Parts, name: str) -> tuple[str, Json]:
        """Return how a field ends that gives the text of these parts, and it."""
        ending, value = texted(parts)
        if ending:
            self.shown(name)
        return ending, value

    def at(self, makers: Makers, env: Env, name: str, *, tested: bool = False) -> str:
        """Return the path where a value stands that one of these states has made.

        A condition has *tested* whether anything stands there.
        """
        if ABSENT in makers:
            makers -= {ABSENT}
            if not tested:
                message = "a step may not have run yet whose output is read, which may fail the run"
                self.lost("L-REQUIRED", message, name, hint="let it come before, on all ways")
        if self.whole.looking:
            return "$"
        path = self.places.at(makers)
        self.whole.read.add(path.removeprefix("$.").partition(".")[0])
        if self.places.settled and not env.get(f"@{path}", NOBODY) <= makers:
            message = "what moves along may be what another step has left after it"
            self.lost("L-TEMPLATE", message, name)
        return path

    def shown(self, name: str) -> None:
        """Report that a state puts values into a text."""
        message = "in a text that is put together null is 'null', instead of nothing"
        self.lost("L-NULL", message, name)

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
                return value if isinstance(value, Known) else [TextReference(value)]
            case Call("confirmed"):
                message = "nothing says whether people agree"
                self.lost("L-TRANSFORM", message, name, hint="their answer is handed on")
        makers = env.get("previous_step", NOBODY)
        return [TextReference(self.at(makers, env, name))] if makers else Known(None)

    def filled(self, template: str, env: Env, name: str) -> Parts:
        """Return the parts of a template."""
        try:
            listed = parse(template)
        except ExpressionFault:
            message = "a text that cannot be filled in is taken as it stands, not left out"
            self.lost("L-TEMPLATE", message, name)
            return [template]
        parts: Parts = []
        for part in listed:
            if isinstance(part, TextPart):
                parts.append(part.text)
                continue
            if isinstance(part, BlockPart) or part.filters or len(part.choices) > 1:
                message = "no placeholder says this part of a template"
                self.lost("L-TEMPLATE", message, name, hint="what it names is put in, if anything")
            if isinstance(part, BlockPart):
                continue
            choice = part.choices[0]
            if isinstance(choice, TextPart):
                parts.append(choice.text)
                continue
            found = self.found(choice, env, name, template=True)
            if isinstance(found, str):
                if len(listed) > 1:
                    self.shown(name)
                parts.append(TextReference(found))
            elif found.value is not None:
                parts.append(str(found.value))
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
        return self.at(makers, env, name, tested=not template) + path_to(*map(_index, rest))[1:]

    def context(self, rest: list[str], env: Env, name: str, *, template: bool) -> Known | str:
        if not rest:
            return Known(None) if template else "$"
        first, *way = rest
        if first == CURRENT and env.get("state", NOBODY):
            if len(env["state"]) == 1:
                return Known(min(env["state"]))
            self.whole.read.add(CURRENT)
            self.whole.stated = self.whole.stated or "machine" in env
            return path_to(CURRENT)
        if template:
            self.required(name, ("context", *rest))
        if first not in self.whole.sunk:
            step, updates = env.get(f"steps.{first}", NOBODY), env.get("updates", NOBODY)
            if step:
                way = way[1:] if way[:1] == ["output"] else way
                place = self.at(step, env, name, tested=not template)
                return place + path_to(*map(_index, way))[1:]
            if updates:
                message = f"{first!r} is read from the answer that was last written to the context"
                self.lost("L-UPDATES", message, name, hint="let there be no other of this name")
                return self.at(updates, env, name) + path_to(*map(_index, rest))[1:]
        self.whole.read.add(first)
        return path_to(*map(_index, rest))

    def required(self, name: str, steps: tuple[str, ...]) -> None:
        message = "a placeholder without value is no empty text: it stays, or fails the run"
        self.lost("L-REQUIRED", message, name, hint=f"let there be {'.'.join(steps)!r}")

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
                return named(self.at(env.get("decision", NOBODY), env, name, tested=True), value)
            case Operation("<", Call("rounds") as call, Literal(most)):
                place = self.rounds(str(call.literal(1)))
                return {"Variable": f"{place}.n", "NumericLessThan": most}
            case Operation(">=", Way(("input", "machine", "hops"))):
                self.lost("L-LIMIT", "a machine makes any number of hops", self.start)
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
                place = self.at(makers, env, name, tested=True)
                return place + path_to(*map(_index, rest))[1:]
            case ("last_step", "name") if len(env.get("step", NOBODY)) == 1:
                return Known(min(env["step"]))
            case ("last_step", "feedback") if events == {"failure"}:
                return path_to(FAILED, "Cause")
            case ("last_step", "feedback") if "failure" not in events:
                return Known(None)
        raise Beyond


def _index(step: str) -> str | int:
    return int(step) if step.isdecimal() else step
