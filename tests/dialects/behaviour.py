"""What a document does with random scripted agents, whichever language it is written in.

Agents are told apart by their names alone, and answer by how often they have been asked; so two
documents that ask the same agents in the same order are given the same answers.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import asl
from asl.core.document import Document
from asl.core.values import compact, json_equal
from asl.states.base import machines_of

Json = Any
Script = Callable[[str, int], Json]
"""What an agent answers, by its name and how often it was asked; it may raise StateError."""


@dataclass(frozen=True)
class Seen:
    """A run as the world sees it."""

    status: str
    error: str | None
    output: Json
    asked: list[str]
    given: list[Json]
    elapsed: float
    stumbled: bool = False
    """Whether a state, caught or not, was led nowhere by its data."""
    failed: bool = False
    """Whether anything, caught or not, has failed."""
    decided: bool = False
    """Whether data has decided where to go, or how often."""
    bound: bool = False
    """Whether a time limit, or a block of an agent, has ended something."""


class Enough(BaseException):
    """Agents have been asked often enough: the run goes round for ever."""


PEOPLE = "arn:aws:states:::lambda:invoke.waitForTaskToken"
BEGIN = "2024-01-01T00:00:00.000Z"
MOST = 12
"""How often agents are asked until a run is stopped."""
DECIDING = ("ChoiceStateEntered", "MapStateEntered", "ApprovalStateEntered")
LONGEST = 1000
"""How many events a run has until it is stopped."""


def plain(name: str) -> str:
    """An agent's name as all languages can spell it."""
    own = re.sub(r"^(agents\.)?arn[:_].*([:_](function|activity)[:_]|states[:_]+)", "", name)
    return re.sub(r"[^a-z0-9]+", "", own.rpartition("/")[2].lower())


def names(machine: Mapping[str, Json], field: str) -> Iterator[str]:
    for state in machine["States"].values():
        if field in state:
            yield str(state[field])
        for _, inner in machines_of(state):
            yield from names(inner, field)


def adapted(input: Json, conversion: asl.Conversion) -> Json:
    """Return an input in the form that a report asks for."""
    hints = {loss.hint for loss in conversion.losses}
    given = input
    if 'give the input as {"input": ...}' in hints:
        named = isinstance(input, dict) and input.keys() & {"vars", "context"}
        given = input if named else {"input": input}
    if 'give the input as {"input": ..., and the fields of the context}' in hints:
        opened = (
            isinstance(input, dict)
            and "context" in input
            and input.keys()
            <= {
                "input",
                "context",
            }
        )
        given = {"input": input.get("input"), **input["context"]} if opened else {"input": input}
    if "give an object as the input" in hints and not isinstance(input, dict):
        given = {"text": input}
    return {"context": given} if "give the input as {context: ...}" in hints else given


def observe(document: Document, input: Json, script: Script) -> Seen:
    """Run a document with scripted agents."""
    asked: list[str] = []
    given: list[Json] = []
    counts: dict[str, int] = {}

    def agent(name: str) -> Any:
        def answering(parameters: Json) -> Json:
            own, payload = name, parameters
            if isinstance(parameters, dict) and "provider" in parameters:
                own = str(parameters["provider"])  # a tool of a chain, called by its task
            own = plain(own)
            if len(asked) == MOST:
                raise Enough
            counts[own] = counts.get(own, 0) + 1
            asked.append(own)
            given.append(payload)
            return script(own, counts[own])

        return answering

    def people(parameters: Json) -> None:
        payload = parameters["Payload"]
        record = {"approval": payload["options"][0], "approver": "handler", "comment": None}
        tokens.send_task_success(payload["token"], {**record, "timestamp": BEGIN})

    def listener(event: asl.Event) -> None:
        if event.id > LONGEST:
            raise Enough

    tokens = asl.TaskTokens()
    machine = document.whole
    resources = {name: agent(name) for name in names(machine, "Resource")}
    try:
        result = asl.run(
            document,
            input,
            agents={name: agent(name) for name in names(machine, "Agent")},
            resources={**resources, PEOPLE: people},
            approvals=lambda request: {"approval": request["options"][0]},
            tokens=tokens,
            listener=listener,
            clock="virtual",
            name="run",
            ignore_blocks=True,
        )
    except Enough:
        # What has happened so far is not told, so all of it may have.
        return Seen("ENDLESS", None, None, asked, given, 0, True, True, True, True)
    elapsed = round(result.events[-1].timestamp - result.events[0].timestamp)
    told = [each.details.get("error") for each in result.events]
    facts = (
        any(type(each) is str and DATA_FLOW.fullmatch(each) for each in told),
        any(told),
        any(each.type in DECIDING for each in result.events),
        any(type(each) is str and BOUNDS.fullmatch(each) for each in told),
    )
    return Seen(result.status, result.error, result.output, asked, given, elapsed, *facts)


def differences(before: Seen, after: Seen, dialect: str) -> set[str]:
    """What has changed on the way to a dialect: `asked`, `given`, `output`, `failed`, `time`."""
    found: set[str] = set()
    if before.asked != after.asked:
        found.add("asked")
    pairs = zip(before.given, after.given, strict=False)
    if not all(same_payload(one, other, dialect) for one, other in pairs):
        found.add("given")
    if before.status != after.status:
        found.add("status")
    elif before.status == "SUCCEEDED" and not same_output(before.output, after.output, dialect):
        found.add("output")
    elif before.error != after.error:
        found.add("error")
    if before.elapsed != after.elapsed:
        found.add("time")
    return found


def same_output(one: Json, other: Json, dialect: str) -> bool:
    if dialect == "codemie" and isinstance(other, dict):
        other = {key: each for key, each in other.items() if key != "cm"}
        one = {key: each for key, each in one.items() if key != "cm"} if type(one) is dict else one
    if dialect == "flujo" and isinstance(other, dict) and other.keys() >= {"output", "context"}:
        other = other if json_equal(one, other) else other["output"]
    return json_equal(one, other)


def same_payload(one: Json, other: Json, dialect: str) -> bool:
    """Whether an agent is given the same, in the form that the dialect has for it."""
    if dialect == "contenox" and "provider" in str(other) and "provider" not in str(one):
        args = other.get("args", {})
        if not args:
            inner = [*one.values()] if isinstance(one, dict) and len(one) == 1 else []
            return json_equal(one, other["input"]) or any(
                json_equal(each, other["input"]) for each in inner
            )
        if not isinstance(one, dict) or any(one.get(key) != args[key] for key in args):
            return False
        rest = [each for key, each in one.items() if key not in args]
        return len(rest) < 2 and all(json_equal(each, other["input"]) for each in rest)
    said = f"{other} {compact(other)}"
    return json_equal(one, other) or all(text in said for text in texts(one))


def texts(value: Json) -> Iterator[str]:
    """What a payload says, without what only its own platform hands on."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in ("history", "provider", "approver", "timestamp", "comment"):
                yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    else:
        yield value if isinstance(value, str) else compact(value)


def scripted(seed: int, answers: list[Json], failing: float = 0.15) -> Script:
    """Agents that answer at random, and fail now and then."""

    def script(name: str, count: int) -> Json:
        draw = random.Random(f"{seed}:{name}:{count}")
        if draw.random() < failing:
            raise asl.StateError(draw.choice(["Agent.Down", "Agent.Odd"]), "for no reason")
        return draw.choice(answers)

    return script


# --------------------------------------------------------------------------------------------
# What a loss excuses


class Excuse(NamedTuple):
    """What may change where a loss is reported, and what must have happened for it."""

    changes: frozenset[str] = frozenset()
    when: str = ""
    """A fact of one of both runs without which it excuses nothing: see `Seen`."""


EVERYTHING = frozenset(("asked", "given", "output", "status", "error", "time"))
NOTHING = Excuse()
GIVEN = Excuse(frozenset(("given",)))
OUTPUT = Excuse(frozenset(("output",)))
DATA = Excuse(frozenset(("given", "output")))
"""Data lies elsewhere; what decides by data may decide otherwise (see `excused`)."""
TIME = Excuse(frozenset(("time",)))
WAITING = Excuse(frozenset(("time",)))
"""What does not wait does not fail for a time that it cannot wait for either."""
ERROR = Excuse(frozenset(("error",)))
CHOICE = Excuse(EVERYTHING, "decided")
FAILURE = Excuse(EVERYTHING, "failed")
MISSING = Excuse(EVERYTHING, "stumbled")
OTHERWISE = Excuse(EVERYTHING)
"""Something else stands in the place of a state."""

LIMITED = Excuse(EVERYTHING, "bound")
"""What a limit ends goes on."""

EXCUSES: Mapping[str, Excuse] = {
    code: excuse
    for excuse, codes in (
        (NOTHING, "L-ACTOR L-CHANGED L-CONCURRENCY L-DROPPED L-MERGED L-NAME L-AWS"),
        (NOTHING, "L-INPUT L-PROMPT L-RESOURCE L-SETTING FL-OPTIONS"),
        (LIMITED, "L-BLOCK L-LIMIT L-TIMEOUT L-CHECKPOINT"),
        (LIMITED, "CX-META CX-CHECKPOINT FL-META FL-CHECKPOINT"),
        (MISSING, "L-MISSING"),
        (Excuse(EVERYTHING, "stumbled"), "L-REQUIRED"),
        (TIME, "L-RETRY CX-DELAY"),
        (WAITING, "L-WAIT CX-WAIT FL-WAIT"),
        (ERROR, "L-FAIL L-NODEFAULT FL-FAIL"),
        (GIVEN, "L-MODEL L-TEMPLATE L-PARAMETERS L-CONTEXT L-INTRINSIC L-PATH"),
        (GIVEN, "CX-PARAMS FL-PAYLOAD L-SHARED"),
        (OUTPUT, "L-OUTPUT FL-OUTPUT"),
        (
            DATA,
            "L-UPDATES L-TRANSFORM L-JSONATA L-DEEP L-MAPRESULT L-PARRESULT L-REPLACE L-ROOTMERGE",
        ),
        (DATA, "L-HISTORY L-ANSWER L-RECORD L-SELECTOR L-INTEGRATION"),
        (DATA, "CX-OUTPUT CX-INPUTPATH CX-RESULTPATH CX-SELECTOR CX-PASS CX-GOFMT"),
        (DATA, "FL-INTRINSIC FL-PATHS FL-RESULTPATH FL-APPROVAL"),
        (CHOICE, "L-NEXT L-CONDITION L-PATTERN L-TIMESTAMP L-COERCE L-PRESENT"),
        (CHOICE, "CX-CHOICE CX-NUMERIC CX-OPERATOR FL-OPERATOR FL-NEGATIVE FL-NULL FL-COERCE"),
        (FAILURE, "L-CATCH L-CATCH-FAIL L-RETRY-NAMES CX-CATCH CX-RETRY"),
        (FAILURE, "FL-ERROR FL-RETRY FL-ABORT FL-PARTIAL"),
        (OTHERWISE, "L-APPROVAL L-DEBATE L-INCLUDE L-MAP L-NESTED L-NESTEDJOIN L-PERITEM"),
        (OTHERWISE, "CX-APPROVAL CX-DEBATE CX-MAP CX-PARALLEL"),
        (OTHERWISE, "FL-DEBATE FL-KIND FL-MAP FL-NESTED"),
    )
    for code in codes.split()
}
"""What each loss may change."""
ACTING = (
    "Memory",
    "Context",
    "Cache",
    "CacheResult",
    "Guardrails",
    "Feedback",
    "Generation",
    "Progress",
    "Reasoning",
    "Budget",
    "Metadata",
    "Model",
)
"""Blocks that change what is asked, given or answered, wherever they stand."""
BOUNDS = re.compile(
    r"States\.(Timeout|HeartbeatTimeout|(Checkpoint|Memory|Cache|Budget|Guardrail|Tool|Agent).*)"
    r"|CM\.RecursionLimit"
)
"""Errors of limits and blocks."""
DATA_FLOW = re.compile(
    r"States\.(Runtime|ParameterPathFailure|ResultPathMatchFailure|IntrinsicFailure|.*Evaluation.*)"
    r"|(CM|Contenox|Flujo)\..*"
)
"""Errors of data that leads nowhere: not a run that works."""


def excused(loss: Any, before: Seen, after: Seen) -> frozenset[str]:
    """Return what may have changed between two runs where a loss is reported."""
    excuse = EXCUSES[loss.code]
    if excuse is WAITING and before.stumbled:
        return EVERYTHING
    if excuse is LIMITED and (loss.pointer.endswith(ACTING) or before.stumbled):
        return EVERYTHING
    if excuse is MISSING and not before.stumbled:
        return frozenset()  # to stumble there is another matter
    if excuse.when and not (getattr(before, excuse.when) or getattr(after, excuse.when)):
        return frozenset()
    if excuse.changes >= DATA.changes and (before.decided or after.decided):
        return EVERYTHING  # a decision on data that has changed
    return excuse.changes


def unreported(before: Seen, after: Seen, conversion: Any, dialect: str) -> set[str]:
    """What has changed without a word in the report."""
    changed = differences(before, after, dialect)
    for loss in conversion.losses:
        changed -= excused(loss, before, after)
    return changed
