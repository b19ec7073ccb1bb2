"""What a document does with random scripted agents, whichever language it is written in.

Agents are told apart by their names alone, and answer by how often they have been asked; so two
documents that ask the same agents in the same order are given the same answers.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import asl
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.values import compact, json_equal
from asl.dialects.contenox.functions.texts import template_text
from asl.states.machines import nested_machines

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
    entered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The states that were entered: in which event first, and how often agents had been asked."""
    happened: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)
    """In which events something was so, and how often agents had been asked by then.

    `decided`: data has decided where to go, or how often. `failed`: something has, caught or not.
    `stumbled`: data has led a state nowhere. `rounds`: a state was entered ten times, or a bound on
    states has ended something. `bound`: a time limit, or a block of an agent, has. `nulls`: there
    is null in the input, or in an answer. `answered`: an agent, or a state by itself, has made an
    object.
    """
    answered: frozenset[str] = frozenset()
    """The keys of objects that agents, or states by themselves, have made."""

    def since(self, fact: str, event: int = 0) -> int | None:
        """Return how often agents had been asked when something first was so, from an event on."""
        return min((asks for at, asks in self.happened.get(fact, ()) if at >= event), default=None)


class Enough(BaseException):
    """Agents have been asked often enough: the run goes round for ever."""


PEOPLE = "arn:aws:states:::lambda:invoke.waitForTaskToken"
BEGIN = "2024-01-01T00:00:00.000Z"
MOST = 12
"""How often agents are asked until a run is stopped."""
DECIDING = ("ChoiceStateEntered", "MapStateEntered", "ApprovalStateEntered")
ROUND = 10
"""How often a state is entered until a bound on states may end a run."""
ENDLESS = "ENDLESS"
LONGEST = 1000
"""How many events a run has until it is stopped."""


def plain(name: str) -> str:
    """An agent's name as all languages can spell it."""
    arn = r"^(?:agents\.)?arn[:_].*?"
    own = re.sub(rf"{arn}[:_](?:function|activity)[:_]|{arn}states[:_]+", "", name)
    return re.sub(r"[^a-z0-9]+", "", own.rpartition("/")[2].lower())


def names(machine: Mapping[str, Json], field: str) -> Iterator[str]:
    for state in machine["States"].values():
        if field in state:
            yield str(state[field])
        for _, inner in nested_machines(state):
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
    if "give the value of 'input' as the input" in hints and isinstance(input, dict):
        given = input.get("input", input)
    if "give an object as the input" in hints and not isinstance(input, dict):
        given = {"text": input}
    if "give the input as {context: ...}" in hints:
        return {"context": given}
    # A chain takes an input of just these apart; one that is itself again expects that.
    chain = conversion.dialect == "contenox" and conversion.losses.diagnostics
    if chain and isinstance(given, dict) and given.keys() == {"input", "vars"}:
        return {"input": given, "vars": {}}
    return given


def observe(document: Document, input: Json, script: Script) -> Seen:
    """Run a document with scripted agents."""
    asked: list[str] = []
    given: list[Json] = []
    counts: dict[str, int] = {}
    answered = {*made_keys(document.composed_value)}
    entered: dict[str, tuple[int, int]] = {}
    visits: dict[str, int] = {}
    happened: dict[str, list[tuple[int, int]]] = {}
    last = 0

    def notice(fact: str, so: bool) -> None:
        if so:
            happened.setdefault(fact, []).append((last, len(asked)))

    notice("nulls", nulls(input))
    notice("answered", bool(answered))

    def agent(name: str) -> Any:
        async def answering(parameters: Json) -> Json:  # in turn: threads would race
            own, payload = name, parameters
            if isinstance(parameters, dict) and "provider" in parameters:
                own = str(parameters["provider"])  # a tool of a chain, called by its task
            own = plain(own)
            if len(asked) == MOST:
                raise asl.StateError("States.TaskFailed", "asked often enough")
            counts[own] = counts.get(own, 0) + 1
            asked.append(own)
            given.append(payload)
            answer = script(own, counts[own])
            notice("nulls", nulls(answer))
            if isinstance(answer, dict):
                notice("answered", True)
                answered.update(answer)
            return answer

        return answering

    def people(parameters: Json) -> None:
        payload = parameters["Payload"]
        record = {"approval": payload["options"][0], "approver": "handler", "comment": None}
        tokens.send_task_success(payload["token"], {**record, "timestamp": BEGIN})

    def listener(event: asl.Event) -> None:
        nonlocal last
        last = event.id
        if event.id > LONGEST:
            raise Enough
        if event.type.endswith("StateEntered"):
            name = event.details["name"]
            entered.setdefault(name, (event.id, len(asked)))
            visits[name] = visits.get(name, 0) + 1
            notice("rounds", visits[name] == ROUND)
        notice("decided", event.type in DECIDING)
        error = event.details.get("error")
        notice("failed", bool(error))
        if type(error) is str:
            for fact, pattern in ERRORS.items():
                notice(fact, pattern.fullmatch(error) is not None)

    tokens = asl.TaskTokens()
    machine = document.composed_value
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
        return Seen(ENDLESS, None, None, asked, given, 0, entered, happened, frozenset(answered))
    elapsed = round(result.events[-1].timestamp - result.events[0].timestamp)
    ended = (result.status, result.error, result.output, asked, given, elapsed)
    return Seen(*ended, entered, happened, frozenset(answered))


class Part(NamedTuple):
    """A part of what was seen that has changed.

    `kind` is `asked`, `order` where the same agents are asked in another order, `given`, `status`,
    `error`, `time` or, of the output, `output`; `text` where a value has become its text, or has
    been one, `none` where nothing comes out, `kept` where something is there that was not, `own`
    where that has the name of a state, `named` where it is the input, `within` where one of both is
    a part of the other, `keys` where a key has another value, or none, that an object has had which
    was answered or made. `at` is the number of the question, or the key of the output.
    """

    kind: str
    at: int | str = ""


def differences(before: Seen, after: Seen, source: str, target: str) -> set[Part]:
    """What has changed on the way from one language to another."""
    found: set[Part] = set()
    pairs = enumerate(zip(before.asked, after.asked, strict=False))
    shorter = min(len(before.asked), len(after.asked))
    first = next((index for index, (one, other) in pairs if one != other), shorter)
    if before.asked != after.asked:
        same = sorted(before.asked) == sorted(after.asked)
        found.add(Part("order" if same else "asked", first))
    for index in range(first):  # the same ones are asked so far
        if not same_payload(before.given[index], after.given[index], target):
            found.add(Part("given", index))
    if before.status != after.status:
        found.add(Part("status"))
    elif before.status == "SUCCEEDED":
        one, other = _aligned(before.output, after.output, source, target)
        answered = {*before.answered, *after.answered}
        found |= {*_changed(one, other, answered, {*map(plain, before.entered)})}
    elif before.error != after.error:
        found.add(Part("error"))
    if before.elapsed != after.elapsed:
        found.add(Part("time"))
    return found


def _aligned(one: Json, other: Json, source: str, target: str) -> tuple[Json, Json]:
    """Return two outputs without what only one of the languages has about them."""
    if json_equal(one, other):
        return one, other
    one, other = (_without(each, "cm") for each in (one, other))
    if target == "flujo":
        other = _told(other, one)
    if source == "flujo":
        one = _told(one, other)
    return one, other


def _told(output: Json, wanted: Json) -> Json:
    """Return the output of a blueprint: its last one or, as the data of a machine, its context."""
    if not isinstance(output, dict) or not output.keys() >= {"output", "context"}:
        return output
    if json_equal(output["output"], wanted) or not isinstance(wanted, dict):
        return output["output"]
    return _without(output["context"], "current_state", "next_state")


def _without(value: Json, *keys: str) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in keys}


def _changed(one: Json, other: Json, answered: set[str], states: set[str]) -> Iterator[Part]:
    """Yield in what two outputs differ."""
    if json_equal(one, other):
        return
    for part, whole in ((one, other), (other, one)):
        if part != {} and any(
            json_equal(part, each) or _is_text_of(part, each) for each in _held(whole)
        ):
            yield Part("within")
            return
    if not isinstance(one, dict) or not isinstance(other, dict):
        yield Part("none" if other is None else "text" if _is_text_of(other, one) else "output")
        return
    for key in one.keys() | other.keys():
        if key in one and key in other and json_equal(one[key], other[key]):
            continue
        if key in answered and (key in one or plain(key) not in states):
            yield Part("keys", key)
        elif key not in one:
            kind = (
                "named" if key in ("input", "text") else "own" if plain(key) in states else "kept"
            )
            yield Part(kind, key)
        elif _is_text_of(other.get(key), one[key]):
            yield Part("text", key)
        else:
            yield Part("own" if plain(key) in states else "output", key)


def _held(value: Json) -> Iterator[Json]:
    """Yield what an object holds, and what objects within hold."""
    for each in value.values() if isinstance(value, dict) else ():
        yield each
        yield from _held(each)


def _is_text_of(one: Json, other: Json) -> bool:
    texts = [json.dumps(each) for each in (one, other)]
    return one in (other, texts[1], compact(other)) or other in (texts[0], compact(one))


def same_payload(one: Json, other: Json, dialect: str) -> bool:
    """Whether an agent is given the same, in a form that the dialect has for it."""
    if json_equal(one, other) or (dialect == "contenox" and _called(one, other)):
        return True
    said = _close(" ".join((str(other), compact(other), *texts(other))))
    return _is_said(one, said)


def _called(one: Json, other: Json) -> bool:
    """Whether a tool of a chain is called with what an agent is given."""
    if "provider" not in str(other) or "provider" in str(one):
        return False
    args = other.get("args", {})
    if isinstance(one, dict):  # the messages of a conversation belong to their platform
        one = {key: each for key, each in one.items() if key != "history"}
    if not args:
        inner = [*one.values()] if isinstance(one, dict) and len(one) == 1 else []
        return any(json_equal(each, other["input"]) for each in (one, *inner))
    if not isinstance(one, dict) or any(one.get(key) != args[key] for key in args):
        return False
    rest = [each for key, each in one.items() if key not in args]
    return len(rest) < 2 and all(json_equal(each, other["input"]) for each in rest)


def _is_said(value: Json, said: str) -> bool:
    """Whether a text has all in it that a value says: as it is, as JSON, or as a chain shows it."""
    if isinstance(value, dict):  # without what only its own platform hands on
        within = [each for key, each in value.items() if key not in PLATFORM]
    else:
        within = value if isinstance(value, list) else None
    if within is not None and all(_is_said(each, said) for each in within):
        return True
    text = value if isinstance(value, str) else compact(value)
    ways = (text, json.dumps(text)[1:-1], template_text(value, nested=True))
    return any(_close(way) in said for way in ways)


PLATFORM = ("history", "provider", "approver", "timestamp", "comment")


def _close(text: str) -> str:
    """Return a text with the JSON in it as the closest platform writes it."""
    return re.sub(r"([,:]) ", r"\1", text)


def texts(value: Json) -> Iterator[str]:
    """What a payload says."""
    within = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for each in within:
            yield from texts(each)
    else:
        yield value if isinstance(value, str) else compact(value)


def nulls(value: Json) -> bool:
    """Whether a value is null, or has null in it."""
    within = value.values() if isinstance(value, dict) else value
    return value is None or (isinstance(value, dict | list) and any(map(nulls, within)))


def made_keys(value: Json) -> Iterator[str]:
    """Yield the keys of the objects that states make without asking anybody."""
    if isinstance(value, list):
        for each in value:
            yield from made_keys(each)
    if not isinstance(value, dict):
        return
    if value.get("Type") == "Pass":
        for field in ("Result", "Parameters"):
            made = value.get(field)
            if isinstance(made, dict):
                yield from (key.removesuffix(".$") for key in made)
    if "output_field" in value:
        yield str(value["output_field"])
    for each in value.values():
        yield from made_keys(each)


def scripted(seed: int, answers: list[Json], failing: float = 0.15) -> Script:
    """Agents that answer at random, and fail now and then."""

    def script(name: str, count: int) -> Json:
        draw = random.Random(f"{seed}:{name}:{count}")
        if draw.random() < failing:
            raise asl.StateError(draw.choice(["Agent.Down", "Agent.Odd"]), "for no reason")
        return draw.choice(answers)

    return script


def told_apart(name: str, count: int) -> Json:
    """Answer what no other answer has in it, so that it is seen where it is not handed on."""
    return f"<{name} {count}>"


# --------------------------------------------------------------------------------------------
# What a loss excuses


class Excuse(NamedTuple):
    """What may change where a loss is reported, and what must have happened for it."""

    changes: frozenset[str] = frozenset()
    """The kinds of parts, see `Part`."""
    own: bool = False
    """Whether that is about nobody but the agents of the state at which the loss stands."""
    when: str = ""
    """What must have happened in one of both runs, see `Seen`: before that it excuses nothing."""
    written: bool = False
    """Whether that is, of an output, about nothing but the keys that the state may have written."""


ASKING = frozenset(("asked", "order", "given"))
"""Parts that are about a question."""
RUN = ASKING | {"status", "error", "time"}
OUTPUTS = frozenset(("output", "text", "none", "kept", "own", "named", "within", "keys"))
EVERYTHING = RUN | OUTPUTS
NOTHING = Excuse()
GIVEN = Excuse(frozenset(("given",)))
TOLD = Excuse(GIVEN.changes, own=True)
"""The agent of the state is told something else."""
OUTPUT = Excuse(OUTPUTS)
WHOLE = Excuse(frozenset(("kept", "own", "named", "within")))
"""A run comes to more, or to a part."""
CONTEXT = Excuse(WHOLE.changes | {"none"})
"""What is no object is no context, so nothing comes out."""
TEXTS = Excuse(GIVEN.changes | {"output", "text", "keys"})
"""A text that an agent is given, or that comes out, misses a part."""
DATA = Excuse(GIVEN.changes | OUTPUT.changes)
"""Data lies elsewhere; what decides by data may decide otherwise (see `excused`)."""
WRITTEN = DATA._replace(written=True)
"""Where other data stays beside it."""
TEXT = Excuse(frozenset(("text", "own")))
KEYS = Excuse(GIVEN.changes | {"keys", "text", "own", "within"}, when="answered")
"""The keys of an answer that is an object stand elsewhere; it may be a text, too."""
KEPT = Excuse(GIVEN.changes | {"kept", "keys", "output"})
TIME = Excuse(frozenset(("time", "order")))
"""What waits longer is asked behind what runs beside it."""
WAITING = Excuse(frozenset(("time",)))
"""What does not wait does not fail for a time that it cannot wait for either."""
ERROR = Excuse(frozenset(("error",)))
CHOICE = Excuse(EVERYTHING, when="decided")
FAILURE = Excuse(EVERYTHING, when="failed")
MISSING = Excuse(EVERYTHING, when="stumbled")
REQUIRED = MISSING._replace(own=True)
"""A placeholder without a value is left as it stands, or not; where that fails a run, it ends."""
OTHERWISE = Excuse(EVERYTHING)
"""Something else stands in the place of a state."""

LIMITED = Excuse(EVERYTHING, when="bound")
"""What a limit ends goes on."""

EXCUSES: Mapping[str, Excuse] = {
    code: excuse
    for excuse, codes in (
        (NOTHING, "L-ACTOR L-CHANGED L-CONCURRENCY L-DROPPED L-NAME L-AWS"),
        (NOTHING, "L-PROMPT L-RESOURCE L-SETTING L-INERT FL-OPTIONS FL-PAYLOAD"),
        (LIMITED, "L-BLOCK L-TIMEOUT L-CHECKPOINT"),
        (Excuse(EVERYTHING, when="rounds"), "L-LIMIT"),
        (LIMITED, "CX-META CX-CHECKPOINT FL-META FL-CHECKPOINT"),
        (MISSING, "L-MISSING"),
        (REQUIRED, "L-REQUIRED"),
        (TIME, "L-RETRY CX-DELAY"),
        (WAITING, "L-WAIT CX-WAIT FL-WAIT"),
        (ERROR, "L-FAIL L-NODEFAULT FL-FAIL"),
        (TEXTS, "L-TEMPLATE"),
        (TOLD, "L-MODEL L-PARAMETERS"),
        (Excuse(GIVEN.changes | {"output"}), "L-CONTEXT L-INTRINSIC L-PATH"),
        (Excuse(TEXTS.changes, when="nulls"), "L-NULL"),
        (TOLD, "CX-PARAMS L-SHARED"),
        (
            WRITTEN,
            "L-UPDATES L-TRANSFORM L-JSONATA L-DEEP L-MAPRESULT L-PARRESULT",
        ),
        (KEYS, "L-ROOTMERGE"),
        (Excuse(GIVEN.changes, when="failed"), "L-CAUSE"),
        (Excuse(frozenset(("named",))), "L-INPUT"),
        (WHOLE, "L-OUTPUT"),
        (CONTEXT, "FL-OUTPUT"),
        (KEPT, "L-REPLACE"),
        (TOLD, "L-HISTORY"),
        (WRITTEN, "L-ANSWER L-RECORD"),
        (DATA, "CX-OUTPUT CX-INPUTPATH CX-SELECTOR CX-PASS CX-GOFMT"),
        (WRITTEN, "FL-INTRINSIC FL-PATHS FL-RESULTPATH FL-APPROVAL"),
        (CHOICE, "L-NEXT L-CONDITION L-PATTERN L-TIMESTAMP L-COERCE L-PRESENT"),
        (CHOICE, "CX-OPERATOR FL-OPERATOR FL-NEGATIVE FL-NULL FL-COERCE"),
        (FAILURE, "L-CATCH L-CATCH-FAIL L-RETRY-NAMES CX-CATCH CX-RETRY"),
        (FAILURE, "L-ERRORS FL-ERROR FL-RETRY FL-ABORT"),
        (
            OTHERWISE,
            "L-INTEGRATION L-APPROVAL L-DEBATE L-INCLUDE L-MAP L-NESTED L-NESTEDJOIN L-PERITEM",
        ),
        (OTHERWISE, "L-FIELD L-TYPE CX-APPROVAL CX-DEBATE CX-MAP CX-PARALLEL"),
        (OTHERWISE, "FL-DEBATE FL-KIND FL-MAP FL-NESTED FL-RESERVED"),
    )
    for code in codes.split()
}
"""What each loss may change."""
SAID: Mapping[str, Excuse] = {"CX-PARAMS": NOTHING}
"""What a loss may change where it is no error: all is said, if in another way."""
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
ERRORS = {
    "bound": re.compile(
        r"States\.(Timeout|HeartbeatTimeout|InvalidTTL|(Checkpoint|Memory|Cache|Budget|Guardrail|Tool|Agent).*)"
    ),
    "rounds": re.compile(r"CM\.RecursionLimit|Flujo\.MaxHops"),
    "stumbled": re.compile(
        r"States\.(Runtime|ParameterPathFailure|ResultPathMatchFailure|IntrinsicFailure|.*Evaluation.*)"
        r"|(CM|Contenox|Flujo)\..*"
    ),
}
"""Errors of limits and blocks, of bounds on states, and of data that leads nowhere."""


def excuse_of(loss: Any) -> Excuse:
    """Return what a loss may change."""
    said = SAID.get(loss.code) if loss.severity is not asl.Severity.ERROR else None
    return said or EXCUSES[loss.code]


def excused(loss: Any, part: Part, before: Seen, after: Seen, places: "Places") -> bool:
    """Whether a part of two runs may have changed where a loss is reported.

    It may not before the state was entered at which the loss stands, nor before what must have
    happened for it.
    """
    at = begun(loss, before, places)
    if excuse_of(loss).own and part.kind == "given":
        agents = {agent for name in places(loss) for agent in places.agents[name]}
        if agents and before.asked[int(part.at)] not in agents:
            return False
    return at is not None and any(
        part.kind in changes and (part.kind not in ASKING or int(part.at) >= asks)
        for changes, asks in _excuses(loss, part, places, before, after, *at)
    )


def begun(loss: Any, before: Seen, places: "Places") -> tuple[int, int] | None:
    """Return in which event a run comes to a loss, and how often agents had been asked by then."""
    states = places(loss)
    if not states or excuse_of(loss) is MISSING:  # that is wherever data is read
        return 0, 0
    return min((before.entered[each] for each in states if each in before.entered), default=None)


def _excuses(
    loss: Any, part: Part, places: "Places", before: Seen, after: Seen, event: int, asks: int
) -> Iterator[tuple[frozenset[str], int]]:
    """Yield what may have changed, and after how many questions."""
    excuse = excuse_of(loss)
    if excuse is MISSING:
        stumbled = before.since("stumbled")
        if stumbled is not None:
            yield excuse.changes, stumbled
        return
    if excuse is LIMITED and loss.pointer.endswith(ACTING):
        yield EVERYTHING, asks
    if excuse in (WAITING, LIMITED):
        stumbled = before.since("stumbled", event)
        if stumbled is not None:
            yield EVERYTHING, stumbled
    if excuse is KEYS:
        yield TEXT.changes, asks
    if excuse is REQUIRED:
        yield GIVEN.changes, asks
    since = asks if not excuse.when else _since(excuse.when, before, after, event, asks)
    if since is None:
        return
    changes = excuse.changes
    if excuse.written and part.kind in OUTPUTS and not places.written(loss, str(part.at)):
        changes -= {part.kind}
    yield changes, since
    if excuse.changes > GIVEN.changes:  # a decision on data that has changed
        decided = before.since("decided", event)
        if decided is not None:
            yield EVERYTHING, max(since, decided)


def _since(fact: str, before: Seen, after: Seen, event: int, asks: int) -> int | None:
    """Return how often agents had been asked when something first was so, in either run."""
    if fact in ("answered", "nulls"):  # whenever it was so
        return asks if before.happened.get(fact) or after.happened.get(fact) else None
    found = before.since(fact, event)
    others = [at for _, at in after.happened.get(fact, ()) if at >= asks]
    return min([*others, *([] if found is None else [found])], default=None)


class Places:
    """Tells the states of a document at which a loss stands, and whom each of them asks."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.agents: dict[str, set[str]] = {}
        self.stated: list[tuple[str | None, str, str]] = []
        self._machine(document.composed_value, "")

    def _machine(self, machine: Json, pointer: str, around: str | None = None) -> set[str]:
        every: set[str] = set()
        for own, each in machine["States"].items():
            name = around or own  # a child execution tells nobody which states it enters
            at = f"{pointer}/States/{escape(own)}"
            home, written = self.document.origin(at)
            self.stated.append((home.source.name, written, name))
            asked = {plain(str(each[key])) for key in ("Agent", "Resource") if key in each}
            given = each.get("Arguments")
            if isinstance(given, dict) and isinstance(given.get("provider"), str):
                asked.add(plain(given["provider"]))
            for steps, inner in nested_machines(each):
                apart = inner.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
                way = at + "".join(f"/{step}" for step in steps)
                asked |= self._machine(inner, way, name if around or apart else None)
            self.agents.setdefault(name, set()).update(asked)
            every |= asked
        return every

    def __call__(self, loss: Any) -> frozenset[str]:
        """Return the names of the states; none where it is a loss of the whole document."""
        around = [
            (written, name)
            for file, written, name in self.stated
            if file == loss.file and f"{loss.pointer}/".startswith(f"{written}/")
        ]
        nearest = max((len(written) for written, _ in around), default=0)
        return frozenset(name for written, name in around if written and len(written) == nearest)

    def written(self, loss: Any, key: str) -> bool:
        """Whether a key of the output may hold what has passed the states of a loss.

        Where other languages keep their data nobody knows here: then any key may.
        """
        whole, names = self.document.composed_value, self(loss)
        if not key or not names or "JSONata" in str(whole):
            return True
        found: set[str] = set()
        for name, state in whole["States"].items():
            if name in names or any(f"{each!r}:" in str(state) for each in names):
                found |= _writes(state)
        reading = ("Pass", "Map", "Parallel", "Include")  # agents answer whatever they are told
        for state in whole["States"].values() if found else ():
            if state["Type"] in reading:
                found |= _writes(state)
        below = any(key.startswith(f"{each}_") for each in found)  # it has a key of its own
        return below or bool(found & {key, ANY_KEY})


ANY_KEY = "$"


def _writes(state: Json) -> set[str]:
    """Return the keys of the data that a state in JSONPath may write."""
    if state.keys() & {"OutputPath", "Assign"}:
        return {ANY_KEY}
    if state["Type"] in ("Choice", "Wait", "Succeed", "Fail"):
        return {ANY_KEY} if "InputPath" in state else set()
    placed = [each.get("ResultPath", "$") for each in (state, *state.get("Catch", ()))]
    steps = (re.split(r"[.\[]", f"{path}.")[1] for path in placed if path is not None)
    return {step.strip("'\"]") or ANY_KEY for step in steps}


def unreported(
    before: Seen, after: Seen, conversion: asl.Conversion, document: Document
) -> set[Part]:
    """What has changed, from a document to its conversion, without a word in the report."""
    places = Places(document)
    return {
        part
        for part in differences(before, after, document.dialect, conversion.dialect)
        if not any(
            excused(loss, part, before, after, places) for loss in each_loss(conversion.losses)
        )
    }


def each_loss(losses: Iterable[asl.Diagnostic]) -> Iterator[asl.Diagnostic]:
    """Yield losses, one for each place."""
    for loss in losses:
        yield from (loss._replace(**each._asdict()) for each in loss.all_places)
