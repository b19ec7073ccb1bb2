"""What the functions of a document do to the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asl.core.values import Json
from asl.dialects.flujo.plain.conditions import Known
from asl.dialects.flujo.plain.places import Env, Makers
from asl.dialects.flujo.plain.terms import Call, Term, Way, term_of
from asl.dialects.flujo.plain.values import FAILED, NOBODY, Fields, Parts, Values
from asl.dialects.formats import said
from asl.dialects.plain import path_to

__all__ = ["After", "Effects"]


@dataclass
class After:
    """What is known behind a state, and what is done to the data on the way there."""

    env: Env
    passes: list[Fields] = field(default_factory=list)
    """The fields of Passes."""


class Effects:
    """The effects of the functions of one machine."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.places = values.places

    def after(self, output: Json, env: Env, name: str) -> After:
        """Return what an `Output` does."""
        after = After(dict(env))
        if output is not None:
            self.done(term_of(output), after, name)
        return after

    def done(self, term: Term, after: After, name: str) -> None:
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
                    self.values.lost(
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
                self.values.lost("L-CONDITION", message, name)
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
                self.values.lost("L-TRANSFORM", message, name)
            case "failed":
                self.blamed(after, term)

    def finished(self, after: After, step: str, makers: Makers, flags: Mapping[str, Any]) -> None:
        """Take down what a step has come to."""
        env = after.env
        env["previous_step"] = env[f"steps.{step}"] = makers
        if flags.get("updates_context") and makers:
            env["updates"] = makers
        if "event" in env:
            env |= {"last_output": makers, "event": Makers(("success",)), "step": Makers((step,))}

    def blamed(self, after: After, term: Call) -> None:
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

    def counted(self, after: After, term: Call) -> None:
        """Count the rounds of a loop."""
        place = self.values.rounds(str(term.literal(1)))
        if term.name == "loop":
            after.passes.append({"Result": {"n": 1}, "ResultPath": place})
        else:
            more = f"States.MathAdd({place}.n, 1)"
            after.passes.append({"Parameters": {"n.$": more}, "ResultPath": place})

    def value_of(
        self, term: Term, after: After, name: str, step: str, flags: Mapping[str, Any]
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
                found = self.values.given(term, env, name)
                format = isinstance(found, list) and said(found)[0] and len(found) > 1
                self.places.made(name, step, ("text",) if format else (), sink)
                self.computed(after, found, name)
                return Makers((name,))
        self.copied(after, name)
        return Makers((name,))

    def computed(self, after: After, found: Known | Parts, name: str) -> None:
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

    def copied(self, after: After, name: str) -> None:
        """Copy what a state has made to wherever it is looked for."""
        for source, target in self.places.copies(name):
            after.passes.append({"InputPath": source, "ResultPath": target})
            after.env[f"@{target}"] = Makers((name,))
        after.env[f"@{self.places.record(name)}"] = Makers((name,))

    def sunk(self, after: After, makers: Makers, flags: Mapping[str, Any], name: str) -> None:
        """Copy what others have made into the context."""
        sink = flags.get("sink_to")
        if makers and isinstance(sink, str):
            place = path_to(*sink.split("."))
            after.passes.append(
                {"InputPath": self.values.at(makers, after.env, name), "ResultPath": place}
            )
