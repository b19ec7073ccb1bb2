"""What a history tells of a state machine: `HopStarted`, `RuleMatched`, `RuleSkipped`, and so on.

Nothing of it is written down while a machine runs. Which rule matched, and which failed, follows
from the rules (the blueprint in the document's `Metadata`) and from the data with which a state is
entered.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.pointers import resolve_pointer
from asl.core.values import Json
from asl.expr.flujo.conditions import MODES, Failure, Names, expression
from asl.expr.flujo.data import names_of
from asl.expr.flujo.machines import pausing_names
from asl.expr.history_hooks import HistoryHook

__all__ = ["Told", "history_hook"]

Told: TypeAlias = tuple[str, dict[str, Json]]
"""The type and the details of an event."""
EVENTS = ("success", "failure", "pause")


class _Machine(NamedTuple):
    """A machine as its history needs it."""

    states: Mapping[str, str]
    """Its states by the names that they have in the document."""
    ends: frozenset[str]
    rules: list[Mapping[str, Any]]
    cap: int


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return what tells of the states of a blueprint, None where there is no state machine."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("machines"), dict):
        return None
    machines = {
        name: found
        for name, about in metadata["machines"].items()
        if (found := _machine(metadata.get("blueprint"), about)) is not None
    }
    reading = metadata.get("reading")
    options: Mapping[str, Any] = reading if isinstance(reading, dict) else {}
    return _Teller(machines, options).told if machines else None


def _machine(blueprint: Json, about: Json) -> _Machine | None:
    if not isinstance(about, dict) or not isinstance(about.get("at"), str):
        return None
    step = resolve_pointer(blueprint, about["at"])
    if not isinstance(step, dict) or not isinstance(step.get("states"), dict):
        return None
    ends, rules = step.get("end_states"), step.get("transitions")
    names = about.get("names")
    renamed = names if isinstance(names, dict) else {}
    ended = [str(each) for each in (ends if isinstance(ends, list) else [ends] if ends else [])]
    states = {str(renamed.get(each, each)): each for each in (*step["states"], *ended)}
    listed = [each for each in (rules if isinstance(rules, list) else ()) if _is_rule(each)]
    return _Machine(states, frozenset(ended), listed, max(1, 10 * len(step["states"])))


def _is_rule(rule: Json) -> bool:
    return isinstance(rule, dict) and rule.get("on") in EVENTS and "from" in rule and "to" in rule


class _Teller:
    def __init__(self, machines: Mapping[str, _Machine], options: Mapping[str, Any]) -> None:
        self.machines = machines
        mode = options.get("expressions", "")
        self.mode: str = mode if mode in MODES else ""
        self.running = options.get("pause") == "runtime"

    def told(self, name: str, kind: str, beside: Collection[str], data: Json) -> Iterator[Told]:
        """Yield what is to tell of a state that is entered."""
        about = data.get("machine") if isinstance(data, dict) else None
        if not isinstance(about, dict) or about.get("name") not in self.machines:
            return
        machine = self.machines[about["name"]]
        source = about.get("state")
        if name in machine.states:
            yield from self._entered(machine, machine.states[name], source, data)
        elif name == f"{about['name']}:stop" and not about.get("max_hops_reached"):
            yield from self._rules(machine, source, _event(data), data)
        elif name.endswith(":pause") or (kind == "Approval" and not _is_ruled(name, beside)):
            forked = not any(each in beside for each in machine.states)  # no rule is tried there
            rules = [] if forked else [*self._rules(machine, source, "pause", data)]
            told = _told(source, "pause", rules, source)
            yield "PauseDetected", {**told, "step": name.removesuffix(":pause")}
            yield from rules

    def _entered(
        self, machine: _Machine, state: str, source: Json, data: Mapping[str, Any]
    ) -> Iterator[Told]:
        rules = [*self._rules(machine, source, _event(data), data)] if source else []
        if _event(data) != "pause":  # what it has matched was told when it paused
            yield from rules
        told = _told(source, _event(data) if source else None, rules, state)
        hop = data["machine"].get("hops", 0) + 1
        if state in machine.ends:
            yield "TerminalReached", {**told, "to": state, "state": state}
        elif hop <= machine.cap:
            yield "HopStarted", {**told, "to": state, "state": state, "hop": hop}

    def _rules(
        self, machine: _Machine, source: Json, event: Json, data: Mapping[str, Any]
    ) -> Iterator[Told]:
        """Yield the rules that fail behind a state, and the one that matches."""
        names = self._names(event, dict(data))
        for index, rule in enumerate(machine.rules):
            if rule["on"] != event or str(rule["from"]) not in ("*", source):
                continue
            told = {"from": source, "event": event, "to": str(rule["to"]), "rule": index}
            when = rule.get("when")
            if isinstance(when, str) and when.strip():
                told["when"] = when
                try:
                    if not expression(when, self.mode).value(names):
                        continue
                except (Failure, ExpressionFault) as failure:
                    yield "RuleSkipped", {**told, "reason": str(failure)}
                    continue
            yield "RuleMatched", told
            return

    def _names(self, event: Json, data: dict[str, Any]) -> Names:
        if event == "pause":
            return pausing_names(data, self.running)
        return names_of(data, data["output"])


def _is_ruled(name: str, beside: Collection[str]) -> bool:
    """Whether rules of a pause stand in front of a question: they have told of it."""
    return f"{name}:pause" in beside or f"{name.rpartition('>')[0]}:pause" in beside


def _event(data: Mapping[str, Any]) -> Json:
    output = data.get("output")
    return output.get("event") if isinstance(output, dict) else None


def _told(source: Json, event: Json, rules: list[Told], otherwise: Json) -> dict[str, Json]:
    """Return where a machine goes, and by which rule."""
    matched = next((details for kind, details in rules if kind == "RuleMatched"), None)
    if matched is None:
        return {"from": source, "event": event, "to": otherwise, "rule": None}
    return {"from": source, "event": event, "to": matched["to"], "rule": matched["rule"]}
