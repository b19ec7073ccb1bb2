"""Runs of documents of any language with scripted agents.

Agents are distinguished by their names alone, and their answers depend on how often they were
called; so two documents that call the same agents in the same order get the same answers.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asl
from asl.core.document import Document
from asl.core.values import compact
from asl.states.machines import nested_machines

__all__ = [
    "Run",
    "Script",
    "adapted",
    "agent_key",
    "distinct_answers",
    "first_option",
    "observe",
    "scripted",
]

Json = Any
Script = Callable[[str, int], Json]
"""The answer of an agent, by its name and the number of the call; it may raise StateError."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        status: Its status; ENDLESS if it was stopped.
        error: Name of the error.
        output: Output.
        agents: Names of the agents in the order of their calls.
        payloads: What each call got.
        elapsed: Duration in seconds of the virtual clock.
        entered: Event in which each state was entered first, and the number of calls before it.
        happened: Events of a kind, and the number of calls before them: `decided` (data has chosen
            a transition or a number of iterations), `failed` (something has failed, caught or not),
            `limited` (a limit or an agent block has ended something), `missing` (data was missing
            or could not be used).
    """

    status: str
    error: str | None
    output: Json
    agents: Sequence[str]
    payloads: Sequence[Json]
    elapsed: float
    entered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    happened: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def calls_before(self, kind: str, event: int = 0) -> int | None:
        """Return the number of calls before the first event of a kind, None if there is none.

        Args:
            kind: Kind of `happened`.
            event: Number of the first event to look at.
        """
        return min(
            (calls for at, calls in self.happened.get(kind, ()) if at >= event), default=None
        )


class _Endless(BaseException):
    """The run has too many events."""


_CALLBACK: Final = "arn:aws:states:::lambda:invoke.waitForTaskToken"
_START: Final = "2024-01-01T00:00:00.000Z"
_MOST_CALLS: Final = 12
_MOST_EVENTS: Final = 1000
_DECIDING: Final = ("ChoiceStateEntered", "MapStateEntered", "ApprovalStateEntered")
_ERRORS: Final = {
    "limited": re.compile(
        r"States\.(Timeout|HeartbeatTimeout|InvalidTTL|(Checkpoint|Memory|Cache|Budget|Guardrail|Tool|Agent).*)"
    ),
    "missing": re.compile(
        r"States\.(Runtime|ParameterPathFailure|ResultPathMatchFailure|IntrinsicFailure|.*Evaluation.*)"
        r"|(CM|Contenox|Flujo)\..*"
    ),
}
"""Errors by kind of event."""


def scripted(seed: int, answers: Sequence[Json], failing: float = 0.15) -> Script:
    """Return a script of random answers, and of failures of this share."""

    def script(name: str, count: int) -> Json:
        draw = random.Random(f"{seed}:{name}:{count}")
        if draw.random() < failing:
            raise asl.StateError(draw.choice(["Agent.Down", "Agent.Odd"]), "a scripted failure")
        return draw.choice(answers)

    return script


def distinct_answers(name: str, count: int) -> Json:
    """Return a text that no other answer contains, so that a lost answer shows."""
    return f"<{name} {count}>"


def agent_key(name: str) -> str:
    """Return the name of an agent in a form that all languages can spell."""
    arn = r"^(?:agents\.)?arn[:_].*?"
    own = re.sub(rf"{arn}[:_](?:function|activity)[:_]|{arn}states[:_]+", "", name)
    return re.sub(r"[^a-z0-9]+", "", own.rpartition("/")[2].lower())


def adapted(input: Json, conversion: asl.Conversion) -> Json:
    """Return an input in the form that the report of a conversion demands."""
    hints = {loss.hint for loss in conversion.losses}
    found = input
    if 'give the input as {"input": ...}' in hints:
        named = isinstance(input, dict) and input.keys() & {"vars", "context"}
        found = input if named else {"input": input}
    if 'give the input as {"input": ..., and the fields of the context}' in hints:
        opened = isinstance(input, dict) and "context" in input
        if opened and input.keys() <= {"input", "context"}:
            found = {"input": input.get("input"), **input["context"]}
        else:
            found = {"input": input}
    if "give the value of 'input' as the input" in hints and isinstance(input, dict):
        found = input.get("input", input)
    if "give an object as the input" in hints and not isinstance(input, dict):
        found = {"text": input}
    if "give the input as {context: ...}" in hints:
        return {"context": found}
    # A chain takes an input of these two apart; one that is the input itself is wrapped.
    chain = conversion.dialect == "contenox" and conversion.losses.diagnostics
    if chain and isinstance(found, dict) and found.keys() == {"input", "vars"}:
        return {"input": found, "vars": {}}
    return found


def observe(document: Document, input: Json, script: Script, answer: str = "approve") -> Run:
    """Run a document with scripted agents.

    Args:
        document: The document.
        input: Its input.
        script: The answers of agents.
        answer: The answer of people where any is allowed; otherwise they take the first option.
    """
    return _Observation(script, answer).run(document, input)


def first_option(document: Document) -> str:
    """Return the first option of the first Approval with options."""
    listed = re.search(r"'Options': \['([^'*]+)'", str(document.composed_value))
    return listed[1] if listed else "approve"


class _Observation:
    def __init__(self, script: Script, answer: str) -> None:
        self.script = script
        self.answer = answer
        self.agents: list[str] = []
        self.payloads: list[Json] = []
        self.entered: dict[str, tuple[int, int]] = {}
        self.happened: dict[str, list[tuple[int, int]]] = {}
        self.tokens = asl.TaskTokens()
        self.last = 0
        self.leaves_placeholders = False

    def run(self, document: Document, input: Json) -> Run:
        machine = document.composed_value
        self.leaves_placeholders = document.dialect not in ("asl", "amazon")
        resources = {name: self.agent(name) for name in _names(machine, "Resource")}
        try:
            result = asl.run(
                document,
                input,
                agents={name: self.agent(name) for name in _names(machine, "Agent")},
                resources={**resources, _CALLBACK: self.approve},
                approvals=lambda request: {"approval": self.option(request["options"])},
                tokens=self.tokens,
                listener=self.listen,
                clock="virtual",
                name="run",
                ignore_blocks=True,
            )
        except _Endless:
            return self.ended("ENDLESS", None, None, 0)
        elapsed = round(result.events[-1].timestamp - result.events[0].timestamp)
        return self.ended(result.status, result.error, result.output, elapsed)

    def ended(self, status: str, error: str | None, output: Json, elapsed: float) -> Run:
        calls = (self.agents, self.payloads)
        return Run(status, error, output, *calls, elapsed, self.entered, self.happened)

    def agent(self, name: str) -> Any:
        async def answer(parameters: Json) -> Json:  # in order: threads would race
            called = name
            if isinstance(parameters, dict) and "provider" in parameters:
                called = str(parameters["provider"])  # a tool of a chain, called by its task
            called = agent_key(called)
            if len(self.agents) == _MOST_CALLS:
                raise asl.StateError("States.TaskFailed", "too many calls")
            self.agents.append(called)
            self.payloads.append(parameters)
            if self.leaves_placeholders and "{{" in compact(parameters):
                self.note("missing")
            return self.script(called, self.agents.count(called))

        return answer

    def approve(self, parameters: Json) -> None:
        payload = parameters["Payload"]
        option = self.option(payload["options"])
        record = {"approval": option, "approver": "handler", "comment": None}
        self.tokens.send_task_success(payload["token"], {**record, "timestamp": _START})

    def option(self, options: Sequence[str]) -> str:
        return self.answer if options[0] == "*" else options[0]

    def listen(self, event: asl.Event) -> None:
        self.last = event.id
        if event.id > _MOST_EVENTS:
            raise _Endless
        if event.type.endswith("StateEntered"):
            self.entered.setdefault(event.details["name"], (event.id, len(self.agents)))
        if event.type in _DECIDING:
            self.note("decided")
        error = event.details.get("error")
        if error:
            self.note("failed")
        for kind, pattern in _ERRORS.items():
            if type(error) is str and pattern.fullmatch(error):
                self.note(kind)

    def note(self, kind: str) -> None:
        self.happened.setdefault(kind, []).append((self.last, len(self.agents)))


def _names(machine: Mapping[str, Json], field: str) -> Iterator[str]:
    for state in machine["States"].values():
        if field in state:
            yield str(state[field])
        for _, inner in nested_machines(state):
            yield from _names(inner, field)
