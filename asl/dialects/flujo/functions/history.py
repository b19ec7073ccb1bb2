"""History events of state machines, such as `HopStarted` and `RuleMatched`.

They are not recorded during a run: they follow from the rules (the blueprint in the document's
`Metadata`) and from the data of each entered state.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.pointers import resolve_pointer
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import (
    MODES,
    FlujoConditionError,
    FlujoNames,
    compile_expression,
)
from asl.dialects.flujo.functions.pipeline_data import names_of

__all__ = ["HistoryEvent", "history_hook"]

HistoryEvent: TypeAlias = tuple[str, dict[str, Json]]
"""The type and the details of a history event."""
HistoryHook: TypeAlias = Callable[[str, str, Collection[str], Json], Iterator[HistoryEvent]]
"""Yields the events of an entered state, see `asl.program.EntryEvents`."""
EVENTS: Final = ("success", "failure", "pause")


class _Machine(NamedTuple):
    """The parts of a machine that its history needs."""

    name: str
    states: Mapping[str, str]
    """Its states by their names in the document."""
    last: Mapping[str, str]
    """The names of the last steps of its states."""
    sinks: Mapping[str, str]
    """The fields of the context that the last steps of its states write."""
    ends: frozenset[str]
    rules: list[Mapping[str, Any]]
    asks: Mapping[str, str]
    """The names of its questions by the states of the document that ask them."""


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return the hook for the states of a blueprint, None without a state machine."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("machines"), dict):
        return None
    found = [_machine(metadata.get("blueprint"), *each) for each in metadata["machines"].items()]
    machines = [each for each in found if each is not None]
    reading = metadata.get("reading")
    options: Mapping[str, Any] = reading if isinstance(reading, dict) else {}
    return _HistoryWriter(machines, options).events if machines else None


def _machine(blueprint: Json, name: str, about: Json) -> _Machine | None:
    if not isinstance(about, dict) or not isinstance(about.get("at"), str):
        return None
    step = resolve_pointer(blueprint, about["at"])
    if not isinstance(step, dict) or not isinstance(step.get("states"), dict):
        return None
    ends, rules = step.get("end_states"), step.get("transitions")
    names, asks = about.get("names"), about.get("asks")
    renamed = names if isinstance(names, dict) else {}
    ended = [str(each) for each in (ends if isinstance(ends, list) else [ends] if ends else [])]
    states = {str(renamed.get(each, each)): each for each in (*step["states"], *ended)}
    steps = {key: _last_step(body) for key, body in step["states"].items()}
    last = {key: str(each.get("name", each.get("step", ""))) for key, each in steps.items() if each}
    sinks = {key: str(each["sink_to"]) for key, each in steps.items() if "sink_to" in each}
    listed = [each for each in (rules if isinstance(rules, list) else ()) if _is_rule(each)]
    asking = asks if isinstance(asks, dict) else {}
    return _Machine(name, states, last, sinks, frozenset(ended), listed, asking)


def _last_step(body: Json) -> Mapping[str, Json]:
    """Return the last step of a state, an empty object without steps."""
    if isinstance(body, dict):
        body = body.get("steps", body)
    steps = body if isinstance(body, list) else [body]
    last = steps[-1] if steps else None
    return last if isinstance(last, dict) else {}


def _is_rule(rule: Json) -> bool:
    return isinstance(rule, dict) and rule.get("on") in EVENTS and "from" in rule and "to" in rule


class _HistoryWriter:
    def __init__(self, machines: list[_Machine], options: Mapping[str, Any]) -> None:
        self.machines = machines
        mode = options.get("expressions", "")
        self.mode: str = mode if mode in MODES else ""
        self.running = options.get("pause") == "runtime"
        self.fail_fast = options.get("event") == "fail-fast"

    def events(
        self, name: str, kind: str, beside: Collection[str], data: Json
    ) -> Iterator[HistoryEvent]:
        """Yield the events of an entered state."""
        if not isinstance(data, dict) or not _is_opened(data):
            return
        about = data.get("machine")
        latest: Mapping[str, Json] = about if isinstance(about, dict) else {}
        for machine in self.machines:
            state = machine.states.get(name)
            if state is not None:
                yield from self._entered(machine, state, latest, data)
            if name == f"{machine.name}:stop":
                yield from self._rules(machine, *self._left(machine, data), data)
            if name in machine.asks:
                yield from self._paused(machine, name, beside, data)

    def _paused(
        self, machine: _Machine, name: str, beside: Collection[str], data: Mapping[str, Any]
    ) -> Iterator[HistoryEvent]:
        source = data["context"].get("current_state")
        in_machine = any(each in beside for each in machine.states)
        rules = [*self._rules(machine, source, "pause", data)] if in_machine else []
        details = _transition_details(source, "pause", rules, source)
        yield "PauseDetected", {**details, "step": str(machine.asks[name])}
        yield from rules

    def _entered(
        self,
        machine: _Machine,
        state: str,
        latest: Mapping[str, Json],
        data: Mapping[str, Any],
    ) -> Iterator[HistoryEvent]:
        source, event = latest.get("from"), latest.get("on")
        if data["context"].get("current_state") != state:
            source, event = self._left(machine, data)
        rules = [*self._rules(machine, source, event, data)] if source else []
        if event != "pause":  # the events of a pause are written already
            yield from rules
        details = _transition_details(source, event, rules, state)
        if state in machine.ends:
            yield "TerminalReached", {**details, "to": state, "state": state}
            return
        hop = latest.get("hops", None if source else 1)
        counted = {} if hop is None else {"hop": hop}
        yield "HopStarted", {**details, "to": state, "state": state, **counted}

    def _left(self, machine: _Machine, data: Mapping[str, Any]) -> tuple[Json, str]:
        """Return the state that a machine leaves without entering another one, and the event."""
        source, failure = data["context"].get("current_state"), data.get("failure")
        failed = failure.get("step") if isinstance(failure, dict) else None
        last = machine.last.get(str(source))
        if failed is not None and (failed == last or self.fail_fast):
            return source, "failure"
        return source, "success"

    def _rules(
        self, machine: _Machine, source: Json, event: Json, data: Mapping[str, Any]
    ) -> Iterator[HistoryEvent]:
        """Yield the events of failed rules, and of the one that matches."""
        names = self._names(machine, source, event, data)
        for index, rule in enumerate(machine.rules):
            if rule["on"] != event or str(rule["from"]) not in ("*", source):
                continue
            details = {"from": source, "event": event, "to": str(rule["to"]), "rule": index}
            when = rule.get("when")
            if isinstance(when, str) and when.strip():
                details["when"] = when
                try:
                    if not compile_expression(when, self.mode).value(names):
                        continue
                except (FlujoConditionError, ExpressionFault) as failure:
                    yield "RuleSkipped", {**details, "reason": str(failure)}
                    continue
            yield "RuleMatched", details
            return

    def _names(
        self, machine: _Machine, source: Json, event: Json, data: Mapping[str, Any]
    ) -> FlujoNames:
        """Return the values that the rules have read."""
        before = dict(data)
        about = data.get("machine")
        main = about.get("main") if event == "pause" and isinstance(about, dict) else None
        if isinstance(main, dict) and not self.running:
            before |= main
        before["context"] = {**before["context"], "current_state": source}
        failure = data.get("failure")
        known = failure if isinstance(failure, dict) else {}
        last = machine.last.get(str(source))
        output: dict[str, Json] = {"event": event, "last_output": None, "last_step": None}
        if event == "failure":
            feedback = known.get("feedback")
            step = {"name": known.get("step"), "success": False, "feedback": feedback}
            output["last_step"] = step
        elif event == "success":
            succeeded = None if last is None else True
            output["last_output"] = self._last_output(machine, str(source), data)
            output["last_step"] = {"name": last, "success": succeeded, "feedback": None}
        return names_of(before, output)

    def _last_output(self, machine: _Machine, source: str, data: Mapping[str, Any]) -> Json:
        """Return the output of the last step of a state, or the field that it was written to."""
        last, sink = machine.last.get(source), machine.sinks.get(source)
        if last is None or last in data["steps"] or sink is None:
            return None if last is None else data["steps"].get(last)
        return data["context"].get(sink.removeprefix("context."))


def _is_opened(data: Mapping[str, Json]) -> bool:
    """Whether data has a context and the outputs of steps."""
    return isinstance(data.get("context"), dict) and isinstance(data.get("steps"), dict)


def _transition_details(
    source: Json, event: Json, rules: list[HistoryEvent], otherwise: Json
) -> dict[str, Json]:
    """Return the details of a transition: its target and its rule."""
    matched = next((details for kind, details in rules if kind == "RuleMatched"), None)
    if matched is None:
        return {"from": source, "event": event, "to": otherwise, "rule": None}
    return {"from": source, "event": event, "to": matched["to"], "rule": matched["rule"]}
