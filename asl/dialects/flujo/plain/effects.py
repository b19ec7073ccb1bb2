"""What the functions of a document do to the data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asl.core.values import Json
from asl.dialects.expressions import TextReference, said
from asl.dialects.flujo.plain.conditions import Known
from asl.dialects.flujo.plain.places import Env, Makers
from asl.dialects.flujo.plain.terms import Call, Term, Way, term_of
from asl.dialects.flujo.plain.values import CURRENT, FAILED, NOBODY, Fields, Parts, Values
from asl.dialects.jsonpath_form import path_to

__all__ = ["After", "Effects", "operations"]


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
        if effect := EFFECTS.get(term.name):
            effect(self, after, term, name)

    # One function each

    def answered(self, after: After, term: Call, name: str) -> None:
        """An agent or a person has answered."""
        step, flags = str(term.literal(1)), term.literal(3) or {}
        makers = self.value_of(term.given[2], after, name, step, flags)
        self.finished(after, step, makers, flags)
        if term.name == "answered":
            after.env["resume_input"] = makers

    def joined(self, after: After, term: Call, name: str) -> None:
        """Branches, or the rounds of a map, have come together."""
        flags = term.literal(4 if term.name == "join" else 3) or {}
        within = {"first": (0,), "last": (len(term.literal(3) or [0]) - 1,)}
        way = within.get(str(flags.get("reduce")), ()) if term.name == "join" else ()
        step, made = str(term.literal(1)), flags.get("output")
        sink = flags.get("sink_to") if made is None else None
        self.places.made(name, step, way, sink)
        self.copied(after, name)
        makers = Makers((name,))
        if made is not None:
            after.env["previous_step"] = makers
            makers = self.output(after, made, step, flags, name)
        self.finished(after, step, makers, flags)

    def looped(self, after: After, term: Call, name: str) -> None:
        """A loop has come to its end."""
        step, flags = str(term.literal(1)), term.literal(2) or {}
        makers = after.env.get("previous_step", NOBODY)
        if flags.get("output") is not None:
            makers = self.output(after, flags["output"], step, flags, name)
        else:
            self.sunk(after, makers, flags, name)
        self.finished(after, step, makers, flags)

    def put(self, after: After, term: Call, name: str) -> None:
        """A step has put a value into the context."""
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

    def closed(self, after: After, term: Call, name: str) -> None:
        """Steps around the one before have come to what it has come to."""
        env = after.env
        for step in term.literal(1) or ():
            env[f"steps.{step}"] = env.get("previous_step", NOBODY)
            if "event" in env:
                env["step"] = Makers((step,))

    def passed_by(self, after: After, term: Call, name: str) -> None:
        """A step has come to nothing."""
        self.finished(after, str(term.literal(1)), NOBODY, {})

    def decided(self, after: After, term: Call, name: str) -> None:
        """It is known which branch is taken."""
        self.places.made(name, "decision")
        after.env["decision"] = Makers((name,))

    def round(self, after: After, term: Call, name: str) -> None:
        """A round of a loop begins."""
        self.prepared(after, operations(term), name)
        self.counted(after, term)
        between = term.literal(2) if term.name == "again" else None
        if between and "next_input" in between:
            self.next(after, str(between["next_input"]), name)

    def routed(self, after: After, term: Call, name: str) -> None:
        """An agent has named branches."""
        self.values.lost("L-CONDITION", "all branches run, whichever are named", name)
        self.places.made(name, str(term.literal(1)))
        after.env["previous_step"] = after.env.get("previous_step", NOBODY)

    def started(self, after: After, term: Call, name: str) -> None:
        """A state machine begins."""
        after.env["machine"] = after.env.get("previous_step", NOBODY)
        after.env["state"] = Makers((str(term.literal(2)),))

    def entering(self, after: After, term: Call, name: str) -> None:
        """A machine enters a state."""
        env = after.env
        env["previous_step"] = env.get("machine", NOBODY)
        env |= {"last_output": NOBODY, "event": Makers(("success",)), "step": NOBODY}
        self.entered(after, str(term.literal(1)), self.values.whole.stated)

    def left(self, after: After, term: Call, name: str) -> None:
        """A machine leaves a state, or has ended."""
        after.env["previous_step"] = NOBODY
        for key in ("event", "machine"):
            after.env.pop(key, None)
        if term.name == "left":
            self.entered(after, str(term.literal(1)), CURRENT in self.values.whole.read)

    def resumed(self, after: After, term: Call, name: str) -> None:
        """A machine goes on with what a person has answered."""
        self.places.made(name, name, ("approval",), (term.literal(2) or {}).get("sink_to"))
        self.copied(after, name)
        for key in ("previous_step", "machine", "resume_input"):
            after.env[key] = Makers((name,))

    def paused(self, after: After, term: Call, name: str) -> None:
        """A machine has asked a person in the midst of a state."""
        message = "what the state has done before the question stays done"
        self.values.lost("L-TRANSFORM", message, name)

    def blamed(self, after: After, term: Call, name: str) -> None:
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

    def changed(self, after: After, term: Call, name: str) -> None:
        """The context is changed before a step."""
        self.prepared(after, operations(term), name)

    # What they have in common

    def finished(self, after: After, step: str, makers: Makers, flags: Mapping[str, Any]) -> None:
        """Take down what a step has come to."""
        env = after.env
        env["previous_step"] = env[f"steps.{step}"] = makers
        if flags.get("updates_context") and makers:
            env["updates"] = makers
        if "event" in env:
            env |= {"last_output": makers, "event": Makers(("success",)), "step": Makers((step,))}

    def entered(self, after: After, state: str, read: bool) -> None:
        """Take down in which state a machine is, and put it into the data where that is *read*."""
        after.env["state"] = Makers((state,))
        if read:
            after.passes.append({"Result": state, "ResultPath": path_to(CURRENT)})

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
                text = isinstance(term, Call) and term.name in ("text", "stringify")
                return self.kept(after, name, name, step, found, sink, text=text)
        self.copied(after, name)
        return Makers((name,))

    def kept(
        self,
        after: After,
        name: str,
        maker: str,
        wanted: str,
        found: Known | Parts,
        sink: str | None = None,
        *,
        text: bool = False,
    ) -> Makers:
        """Put a value into the data behind a state, as one that *maker* has made.

        It may have to be a *text*.
        """
        parts = [each for each in found if each] if isinstance(found, list) else []
        put = any(isinstance(each, TextReference) for each in parts) and (text or len(parts) > 1)
        self.places.made(maker, wanted, ("text",) if put else (), sink)
        if put and isinstance(found, list):
            ending, value = self.values.text(found, name)
            place = self.places.record(maker)
            after.passes.append({"Parameters": {f"text{ending}": value}, "ResultPath": place})
            self.copied(after, maker)
        else:
            self.computed(after, found, maker)
        return Makers((maker,))

    def computed(self, after: After, found: Known | Parts, name: str) -> None:
        """Put a value into the data that is written out, or stands elsewhere."""
        place = self.places.record(name)
        if isinstance(found, Known):
            after.passes.append({"Result": found.value, "ResultPath": place})
        else:
            ending, value = said(found)
            after.passes.append({"InputPath" if ending else "Result": value, "ResultPath": place})
        self.copied(after, name)

    # Around rounds

    def prepared(self, after: After, listed: Iterable[Mapping[str, Any]], name: str) -> None:
        """Carry out operations on the context."""
        for each in listed:
            path, value = str(each["path"]), each["value"]
            if each["op"] == "set":
                text = isinstance(value, str)
                found = self.values.filled(value, after.env, name) if text else Known(value)
                self.kept(after, name, f"{name}:{path}", path, found, path, text=text)
                continue
            told = "nothing is added to a list" if each["op"] == "append" else "nothing is merged"
            self.values.lost(
                "L-TRANSFORM",
                f"{told}, so context.{path} stays as it is",
                name,
                hint="let an agent give the whole value, and sink_to take it",
            )

    def next(self, after: After, wanted: str, name: str) -> None:
        """Make the input of the next round."""
        if wanted == "context":
            message = "the next round is given what the last one gave, not the context"
            hint = "let its steps read the fields of the context that they need"
            self.values.lost("L-TRANSFORM", message, name, hint=hint)
            return
        if wanted.lstrip()[:1] in ("{", "["):
            self.values.lost("L-ANSWER", "a text stays one, even if it is that of a value", name)
        found = self.values.filled(wanted, after.env, name)
        made = self.kept(after, name, f"{name}:next", "next", found, text=True)
        after.env["previous_step"] = made

    def output(
        self, after: After, wanted: Json, step: str, flags: Mapping[str, Any], name: str
    ) -> Makers:
        """Make an output of that of the last round, or of the results."""
        env, maker, sink = after.env, f"{name}:made", flags.get("sink_to")
        if isinstance(wanted, str):
            found = self.values.filled(wanted, env, name)
            return self.kept(after, name, maker, step, found, sink, text=True)
        made: Fields = {}
        for key, each in wanted.items():
            ending, value = self.values.text(self.values.filled(each, env, name), name)
            made[f"{key}{ending}"] = value
        self.places.made(maker, step, (), sink)
        field = "Parameters" if any(key.endswith(".$") for key in made) else "Result"
        after.passes.append({field: made, "ResultPath": self.places.record(maker)})
        self.copied(after, maker)
        return Makers((maker,))

    # Imports

    def returned(self, after: After, term: Call, name: str) -> None:
        """Take over what an imported blueprint has come to: the one result of its Parallel."""
        step, settings = str(term.literal(1)), term.literal(3) or {}
        if settings.get("updates"):
            self.values.lost(
                "L-PARRESULT",
                "what the imported blueprint writes into its context does not come back",
                name,
                "Output",
                hint="let its last step give what is needed, and sink_to take it",
            )
        self.places.made(name, step, (), settings.get("sink_to"))
        branch = self.places.record(f"{name}:branch")
        after.passes.append({"InputPath": f"{branch}[0]", "ResultPath": self.places.record(name)})
        self.copied(after, name)
        self.finished(after, step, Makers((name,)), {})

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


EFFECTS: Mapping[str, Callable[[Effects, After, Call, str], None]] = {
    "again": Effects.round,
    "answered": Effects.answered,
    "close": Effects.closed,
    "collect": Effects.joined,
    "decide": Effects.decided,
    "done": Effects.answered,
    "ended": Effects.left,
    "enter": Effects.entering,
    "failed": Effects.blamed,
    "join": Effects.joined,
    "left": Effects.left,
    "loop": Effects.round,
    "looped": Effects.looped,
    "merge": Effects.put,
    "outer": Effects.passed_by,
    "pause": Effects.paused,
    "prepared": Effects.changed,
    "resume": Effects.resumed,
    "returned": Effects.returned,
    "routed": Effects.routed,
    "set": Effects.put,
    "start": Effects.started,
}
"""What each function does; the others leave the data as it is."""


def operations(call: Call) -> Iterable[Mapping[str, Any]]:
    """Return the operations on the context that a function carries out."""
    if call.name not in ("prepared", "loop", "again"):
        return ()
    found = call.literal(1 if call.name == "prepared" else 2) or ()
    listed: Iterable[Mapping[str, Any]] = (
        found.get("state", ()) if call.name == "again" and found else found
    )
    return listed
