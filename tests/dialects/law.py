"""The law of conversions: what a report does not name is the same.

A document and its conversion run with the same scripted agents (`observe`), and their runs are
compared. A loss allows a difference

* if it is an error: any, from the moment on at which its state is entered. A loss in `Catch` or
  `Retry` allows one only after a failure, in a time limit only after a limit, in what an agent gets
  only in that, of a limit on states only if a run reaches it;
* otherwise: what the row of its code lists in `changes`, at its place; never another path or
  status.

Nothing is compared after a value was missing in the source: of such runs `ok` says nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, Literal, NamedTuple

import asl
from asl.core.codes import lookup
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.values import json_equal
from asl.dialects import load
from asl.states.machines import nested_machines
from tests.dialects.behaviour import Run, Script, adapted, agent_key, first_option, observe
from tests.dialects.payloads import received, same_payload

__all__ = [
    "Difference",
    "Places",
    "Way",
    "allows",
    "convert_and_back",
    "differences",
    "each_loss",
    "unreported",
    "violation",
    "way",
]

Json = Any
Kind = Literal["path", "order", "payload", "status", "error", "time", "output"]


class Difference(NamedTuple):
    """A difference between two runs.

    Attributes:
        kind: What differs; `order` where the same agents are called in another order.
        call: Index of the call, of a path, an order or a payload.
        key: Key of the output that differs; empty for the whole output.
    """

    kind: Kind
    call: int | None = None
    key: str = ""


# --------------------------------------------------------------------------------------------
# Conversions


class Way(NamedTuple):
    """A document, its conversion, and that read again."""

    document: Document
    conversion: asl.Conversion
    there: Document


def way(document: Document, target: str, reading: Mapping[str, Any] | None = None) -> Way:
    """Convert a document, and read what was written.

    Raises:
        InvalidDocument: What was written has errors.
    """
    conversion = asl.convert(document, target)
    there = load(conversion.text, dialect=target, files=conversion.files, reading=reading)
    asl.check(there).raise_for_errors()
    return Way(document, conversion, there)


def convert_and_back(
    document: Document, target: str, home: str = "", reading: Mapping[str, Any] | None = None
) -> list[Way]:
    """Convert a document, and the result back, where it is read with the same options.

    Options that name states are left out: the result has states of its own.
    """
    there = way(document, target)
    again = {option: value for option, value in (reading or {}).items() if option != "fail_states"}
    return [there, way(there.there, home or document.dialect, again)]


def each_loss(losses: Iterator[asl.Diagnostic] | asl.Report) -> Iterator[asl.Diagnostic]:
    """Yield losses, one for each place."""
    for loss in losses:
        yield from (loss._replace(**each._asdict()) for each in loss.all_places)


def violation(
    ways: Sequence[Way], input: Json, scripts: Sequence[Script]
) -> tuple[str, Difference] | None:
    """Return the first difference that no loss allows, and the language in which it occurs.

    Raises:
        AslError: The source cannot be run.
    """
    answer = first_option(ways[0].document)
    for script in scripts:
        given, before = input, observe(ways[0].document, input, script, answer)
        for each in ways:
            given = adapted(given, each.conversion)
            if each.conversion.dialect == "flujo" and _leads_machine(given):
                break  # FL-OUTPUT
            after = observe(each.there, given, script, answer)
            found = next(unreported(before, after, each), None)
            if found is not None:
                return each.conversion.dialect, found
            before = after
    return None


def _leads_machine(input: Json) -> bool:
    """Whether an input has the fields of a context that lead the machine of a blueprint."""
    context = input.get("context") if isinstance(input, dict) else None
    return isinstance(context, dict) and bool({"current_state", "next_state"} & context.keys())


def unreported(before: Run, after: Run, converted: Way) -> Iterator[Difference]:
    """Yield the differences between two runs that no loss allows."""
    places = Places(converted.document)
    losses = [*each_loss(converted.conversion.losses)]
    source, target = converted.document.dialect, converted.conversion.dialect
    for each in differences(before, after, source, target):
        if not any(allows(loss, each, before, after, places) for loss in losses):
            yield each


# --------------------------------------------------------------------------------------------
# Differences


def differences(before: Run, after: Run, source: str, target: str) -> Iterator[Difference]:
    """Yield the differences between two runs, up to the first missing value."""
    missing = before.calls_before("missing")
    most = len(before.agents) if missing is None else missing
    calls = zip(before.agents, after.agents, strict=False)
    shorter = min(len(before.agents), len(after.agents))
    same = next((at for at, (one, other) in enumerate(calls) if one != other), shorter)
    for at in range(min(same, most)):
        one, other = before.payloads[at], after.payloads[at]
        if not any(
            same_payload(received(one, mine), received(other, yours))
            for mine, yours in product((source, target), repeat=2)  # one may be back from the other
        ):
            yield Difference("payload", at)
    if missing is not None:
        if same < missing:
            yield Difference("path", same)
        return
    if before.agents != after.agents:
        reordered = sorted(before.agents) == sorted(after.agents)
        yield Difference("order" if reordered else "path", same)
    if before.status != after.status:
        yield Difference("status")
    elif before.status == "SUCCEEDED":
        for key in _different_keys(*_comparable(before.output, after.output, source, target)):
            yield Difference("output", key=key)
    elif before.error != after.error:
        yield Difference("error")
    if before.elapsed != after.elapsed:
        yield Difference("time")


def _comparable(one: Json, other: Json, source: str, target: str) -> tuple[Json, Json]:
    """Return two outputs without what only one of the languages has around them."""
    if json_equal(one, other):
        return one, other
    one, other = (_without(each, "cm") for each in (one, other))
    if target == "flujo":
        other = _output_of_blueprint(other, one)
    if source == "flujo":
        one = _output_of_blueprint(one, other)
    return one, other


def _output_of_blueprint(output: Json, wanted: Json) -> Json:
    """Return the last output of a blueprint or, as the data of a machine, its context."""
    if not isinstance(output, dict) or not output.keys() >= {"output", "context"}:
        return output
    if json_equal(output["output"], wanted) or not isinstance(wanted, dict):
        return output["output"]
    return _without(output["context"], "current_state", "next_state")


def _without(value: Json, *keys: str) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in keys}


def _different_keys(one: Json, other: Json) -> Iterator[str]:
    """Yield the keys of two outputs that differ; one empty key for other values."""
    if json_equal(one, other):
        return
    if not isinstance(one, dict) or not isinstance(other, dict):
        yield ""
        return
    for key in sorted(one.keys() | other.keys()):
        if key not in one or key not in other or not json_equal(one[key], other[key]):
            yield key


# --------------------------------------------------------------------------------------------
# Losses

_AFTER: Final = {
    "Catch": "failed",
    "Retry": "failed",
    "TimeoutSeconds": "limited",
    "HeartbeatSeconds": "limited",
}
"""What has to happen before an error in a field of a state allows a difference."""
_PAYLOADS: Final = ("Parameters", "Arguments")


def allows(
    loss: asl.Diagnostic, found: Difference, before: Run, after: Run, places: "Places"
) -> bool:
    """Whether a loss allows a difference between two runs."""
    states = places(loss)
    if loss.severity is asl.Severity.ERROR:
        return _error_allows(loss, states, found, before, after, places)
    changes = lookup(loss.code).changes
    if found.kind == "output":
        return "output" in changes or ("value" in changes and places.writes(loss, found.key))
    if found.kind == "order":
        return "time" in changes
    if found.kind != "payload":
        return found.kind in changes
    assert found.call is not None
    if "payload" in changes and (not states or before.agents[found.call] in places.agents_at(loss)):
        return True
    start = _start(states, before)
    written = bool({"value", "output"} & {*changes})
    return written and start is not None and start[1] <= found.call


def _error_allows(
    loss: asl.Diagnostic,
    states: frozenset[str],
    found: Difference,
    before: Run,
    after: Run,
    places: "Places",
) -> bool:
    start = _start(states, before)
    if start is None or (loss.code == "L-LIMIT" and not any(map(_reaches_limit, (before, after)))):
        return False
    event, calls = start
    field = places.field(loss)
    if field in _PAYLOADS and places.agents_at(loss):
        is_payload = found.kind == "payload" and found.call is not None
        return is_payload and before.agents[found.call or 0] in places.agents_at(loss)
    if field in _AFTER:
        kind = _AFTER[field]
        first = [before.calls_before(kind, event), after.calls_before(kind)]
        known = [each for each in first if each is not None]
        if not known:
            return False
        calls = max(calls, min(known))
    return found.call is None or found.call >= calls


def _reaches_limit(run: Run) -> bool:
    """Whether a run enters more states than a machine of a blueprint, or a test, allows."""
    stopped = isinstance(run.output, dict) and "max_hops_reached" in run.output
    return stopped or run.status == "ENDLESS"


def _start(states: frozenset[str], run: Run) -> tuple[int, int] | None:
    """Return the event in which the first of the states is entered, and the calls before it."""
    if not states:
        return 0, 0
    return min((run.entered[each] for each in states if each in run.entered), default=None)


_ANY_KEY: Final = "$"


class Places:
    """The states of a document, by the places of losses."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.agents: dict[str, set[str]] = {}
        self.origins: list[tuple[str | None, str, str]] = []
        self._machine(document.composed_value, "")

    def _machine(self, machine: Json, pointer: str, around: str | None = None) -> None:
        for own, state in machine["States"].items():
            name = around or own  # the states of a child execution have no events here
            at = f"{pointer}/States/{escape(own)}"
            home, written = self.document.origin(at)
            self.origins.append((home.source.name, written, name))
            called = {agent_key(str(state[key])) for key in ("Agent", "Resource") if key in state}
            arguments = state.get("Arguments")
            if isinstance(arguments, dict) and isinstance(arguments.get("provider"), str):
                called.add(agent_key(arguments["provider"]))
            for steps, inner in nested_machines(state):
                is_child = inner.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
                within = at + "".join(f"/{step}" for step in steps)
                self._machine(inner, within, name if around or is_child else None)
            self.agents.setdefault(name, set()).update(called)

    def _nearest(self, loss: asl.Diagnostic) -> tuple[str, frozenset[str]]:
        around = [
            (written, name)
            for file, written, name in self.origins
            if file == loss.file and f"{loss.pointer}/".startswith(f"{written}/")
        ]
        nearest = max((written for written, _ in around), key=len, default="")
        return nearest, frozenset(
            name for written, name in around if written and written == nearest
        )

    def __call__(self, loss: asl.Diagnostic) -> frozenset[str]:
        """Return the names of the states at the place; none for the whole document."""
        return self._nearest(loss)[1]

    def field(self, loss: asl.Diagnostic) -> str:
        """Return the field of its state in which a loss is, empty for the state itself."""
        nearest, names = self._nearest(loss)
        inner = loss.pointer[len(nearest) :].lstrip("/").partition("/")[0] if names else ""
        return inner.removesuffix(".$").removesuffix("Path")

    def agents_at(self, loss: asl.Diagnostic) -> set[str]:
        """Return the agents that the states at the place call."""
        return {agent for name in self(loss) for agent in self.agents[name]}

    def writes(self, loss: asl.Diagnostic, key: str) -> bool:
        """Whether a key of the output may hold what the states at the place have written.

        Any key may if the document does not show where its data is.
        """
        whole, names = self.document.composed_value, self(loss)
        if not key or not names or "JSONata" in str(whole):
            return True
        found: set[str] = set()
        for name, state in whole["States"].items():
            if name in names or any(f"{each!r}:" in str(state) for each in names):
                found |= _written_keys(state)
        reading = ("Pass", "Map", "Parallel", "Include")  # agents answer regardless of payloads
        for state in whole["States"].values() if found else ():
            if state["Type"] in reading:
                found |= _written_keys(state)
        return any(key.startswith(f"{each}_") for each in found) or bool(found & {key, _ANY_KEY})


def _written_keys(state: Json) -> set[str]:
    """Return the keys of the data that a state in JSONPath may write."""
    if state.keys() & {"OutputPath", "Assign"}:
        return {_ANY_KEY}
    if state["Type"] in ("Choice", "Wait", "Succeed", "Fail"):
        return {_ANY_KEY} if "InputPath" in state else set()
    placed = [each.get("ResultPath", "$") for each in (state, *state.get("Catch", ()))]
    steps = (re.split(r"[.\[]", f"{path}.")[1] for path in placed if path is not None)
    return {step.strip("'\"]") or _ANY_KEY for step in steps}
