"""State machines: their data, their rules, their pauses and their history events.

`machine` in the data has the `name`, the `input` of every state, the current `state`, the number of
`hops` and the `next` state that a step requested. States that ask a person also have `main`: the
context and the steps at their start.

History events such as `HopStarted` and `RuleMatched` are not recorded during a run. They follow
from the rules (the blueprint in the document's `Metadata`) and from the data of each entered state.
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
from asl.dialects.flujo.functions.pipeline_data import (
    Data,
    complete_step,
    names_of,
    open_data,
    pipeline_result,
    put_value,
    requested_state,
    store_output,
    value_at,
)

__all__ = [
    "PAUSE",
    "HistoryEvent",
    "end_inner",
    "end_machine",
    "enter_state",
    "follow_next_state",
    "history_hook",
    "leave_machine",
    "next_state",
    "pause_machine",
    "pause_names",
    "pause_rule_holds",
    "resume_machine",
    "rule_holds",
    "start_inner",
    "start_machine",
    "stop_at_hop_limit",
]

EMPTY: Final[Mapping[str, Json]] = {
    "event": "success",
    "last_output": None,
    "last_step": {"name": None, "success": None, "feedback": None},
}
"""The values for rules after a state without steps."""
PAUSE: Final[Mapping[str, Json]] = {"event": "pause", "last_output": None, "last_step": None}
"""The values for rules at a pause."""
Options = Mapping[str, Any]


def start_machine(data: Json, name: str, first: str, options: Options | None = None) -> Data:
    """Return the data at the start of a machine.

    Args:
        data: The data before.
        name: Name of the machine.
        first: Its first state, where it starts unless the context names another one.
        options: With `scratchpad` the current state is also written to `scratchpad.current_state`
            (Flujo, design of declarative transitions, 6.3).
    """
    found = open_data(data)
    context = found["context"]
    current = context.get("current_state")
    if not isinstance(current, str):
        current = value_at(context, "scratchpad.current_state")
    if not isinstance(current, str):
        current = first
    machine = {"name": name, "input": found["previous_step"], "hops": 0}
    if options and options.get("scratchpad"):
        context = put_value(context, "scratchpad.current_state", current)
    return {**found, "context": _in_state(context, current), "machine": machine}


def _in_state(context: Data, state: str | None) -> Data:
    """Return a context that names the current state."""
    scratchpad = context.get("scratchpad")
    if isinstance(scratchpad, dict) and "current_state" in scratchpad:
        context = {**context, "scratchpad": {**scratchpad, "current_state": state}}
    return {**context, "current_state": state}


def enter_state(data: Data, state: str, options: Options | None = None) -> Data:
    """Return the data at the start of a state, with the input of the machine.

    Args:
        data: The data before.
        state: The state.
        options: `asks` stores the context and the steps of now; with `next_state` of `engine` the
            latest `next_state` remains.
    """
    options = options or {}
    before: dict[str, Any] = data["machine"]
    machine = {
        "name": before["name"],
        "input": before["input"],
        "hops": before["hops"] + 1,
        "state": state,
    }
    context = _in_state(data["context"], state)
    if options.get("next_state") != "engine":
        context.pop("next_state", None)
        scratchpad = context.get("scratchpad")
        if isinstance(scratchpad, dict) and "next_state" in scratchpad:
            kept = {key: each for key, each in scratchpad.items() if key != "next_state"}
            context["scratchpad"] = kept
    elif before["hops"]:
        context["next_state"] = state
    if options.get("asks"):
        machine["main"] = {"context": context, "steps": data["steps"]}
    return {
        **data,
        "previous_step": before["input"],
        "context": context,
        "output": EMPTY,
        "machine": machine,
    }


def stop_at_hop_limit(data: Data, state: str) -> Data:
    """Return the data of a machine that stops before a state after too many hops."""
    machine = {**data["machine"], "max_hops_reached": True}
    return {**_at(data, state), "machine": machine}


def _at(data: Data, state: str) -> Data:
    context = {**_in_state(data["context"], state), "next_state": state}
    return {**data, "context": context}


def leave_machine(data: Data, state: str | None = None) -> Data:
    """Return the data after a machine: in an end state, or where it stopped."""
    at = data if state is None else _at(data, state)
    after = {key: each for key, each in at.items() if key not in ("machine", "output")}
    if data["machine"].get("max_hops_reached"):
        after["max_hops_reached"] = True
    return {**after, "previous_step": None}


def end_machine(data: Data, state: str | None = None) -> Data:
    """Return the result of a pipeline that ends with its machine."""
    after = leave_machine(data, state)
    flag = {"max_hops_reached": True} if "max_hops_reached" in after else {}
    return {**pipeline_result(after), **flag}


# --------------------------------------------------------------------------------------------
# Nested machines

_CONTROL: Final = ("current_state", "next_state")


def start_inner(data: Json) -> Data:
    """Return the data at the start of a nested machine, which has its own control fields."""
    found = open_data(data)
    after = {key: each for key, each in found.items() if key not in ("machine", "output")}
    kept = {key: each for key, each in found["context"].items() if key not in _CONTROL}
    return {**after, "context": kept}


def end_inner(data: Json, step: str, behind: Data) -> Data:
    """Return the data after a nested machine, with the control fields of the outer one."""
    found = open_data(data)
    kept = {key: each for key, each in behind["context"].items() if key not in _CONTROL}
    control = {key: found["context"][key] for key in _CONTROL if key in found["context"]}
    return complete_step(
        {**found, "context": {**kept, **control}, "steps": behind["steps"]}, step, None
    )


# --------------------------------------------------------------------------------------------
# Rules


def rule_holds(data: Data, condition: str, mode: str = "") -> bool:
    """Return whether the condition of a rule holds after a state; a failed one does not."""
    return _holds(condition, mode, names_of(data, data["output"]))


def pause_rule_holds(data: Data, condition: str, options: Options | None = None) -> bool:
    """Return whether the condition of a rule holds at a pause.

    It reads the context before the state; with the option `pause` of `runtime` the current one.
    """
    options = options or {}
    mode = options.get("expressions", "")
    return _holds(condition, mode, pause_names(data, options.get("pause") == "runtime"))


def pause_names(data: Data, running: bool) -> FlujoNames:
    """Return the values that a rule may read at a pause."""
    main = data["machine"].get("main", data)
    kept = data if running else {**data, "context": main["context"], "steps": main["steps"]}
    return names_of(kept, dict(PAUSE))


def _holds(condition: str, mode: str, names: FlujoNames) -> bool:
    try:
        return bool(compile_expression(condition, mode).value(names))
    except (FlujoConditionError, ExpressionFault):
        return False


def next_state(data: Data) -> str | None:
    """Return the state requested with `next_state`, None without a request."""
    asked = requested_state(data["context"])
    return data["machine"].get("next") if asked is None else asked


def follow_next_state(data: Data) -> Data:
    """Return the data on the transition to the requested state."""
    context = _in_state(data["context"], next_state(data))
    return {**data, "context": context}


# --------------------------------------------------------------------------------------------
# Pauses


def pause_machine(data: Data, state: str) -> Data:
    """Return the data of a pause before another state, without the effects of the current one."""
    main = data["machine"]["main"]
    context = {**_in_state(main["context"], state), "next_state": state}
    return {**data, "context": context, "steps": main["steps"], "output": PAUSE}


def resume_machine(data: Data, answer: Json, flags: Mapping[str, Json] | None = None) -> Data:
    """Return the data after such a pause: the answer is the new input of the machine."""
    context = store_output(data["context"], answer, flags) if flags else data["context"]
    machine = {**data["machine"], "input": answer}
    return {
        **data,
        "context": context,
        "previous_step": answer,
        "resume_input": answer,
        "machine": machine,
    }


HistoryEvent: TypeAlias = tuple[str, dict[str, Json]]
"""The type and the details of a history event."""
HistoryHook: TypeAlias = Callable[[str, str, Collection[str], Json], Iterator[HistoryEvent]]
"""Yields the events of an entered state, see `asl.program.EntryEvents`."""
EVENTS = ("success", "failure", "pause")


class _Machine(NamedTuple):
    """The parts of a machine that its history needs."""

    states: Mapping[str, str]
    """Its states by their names in the document."""
    ends: frozenset[str]
    rules: list[Mapping[str, Any]]
    cap: int


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return the hook for the states of a blueprint, None without a state machine."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("machines"), dict):
        return None
    machines = {
        name: found
        for name, about in metadata["machines"].items()
        if (found := _machine(metadata.get("blueprint"), about)) is not None
    }
    reading = metadata.get("reading")
    options: Mapping[str, Any] = reading if isinstance(reading, dict) else {}
    return _HistoryWriter(machines, options).told if machines else None


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


class _HistoryWriter:
    def __init__(self, machines: Mapping[str, _Machine], options: Mapping[str, Any]) -> None:
        self.machines = machines
        mode = options.get("expressions", "")
        self.mode: str = mode if mode in MODES else ""
        self.running = options.get("pause") == "runtime"

    def told(
        self, name: str, kind: str, beside: Collection[str], data: Json
    ) -> Iterator[HistoryEvent]:
        """Yield the events of an entered state."""
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
            forked = not any(each in beside for each in machine.states)  # no rules apply there
            rules = [] if forked else [*self._rules(machine, source, "pause", data)]
            told = _transition_details(source, "pause", rules, source)
            yield "PauseDetected", {**told, "step": name.removesuffix(":pause")}
            yield from rules

    def _entered(
        self, machine: _Machine, state: str, source: Json, data: Mapping[str, Any]
    ) -> Iterator[HistoryEvent]:
        rules = [*self._rules(machine, source, _event(data), data)] if source else []
        if _event(data) != "pause":  # the events of a pause are written already
            yield from rules
        told = _transition_details(source, _event(data) if source else None, rules, state)
        hop = data["machine"].get("hops", 0) + 1
        if state in machine.ends:
            yield "TerminalReached", {**told, "to": state, "state": state}
        elif hop <= machine.cap:
            yield "HopStarted", {**told, "to": state, "state": state, "hop": hop}

    def _rules(
        self, machine: _Machine, source: Json, event: Json, data: Mapping[str, Any]
    ) -> Iterator[HistoryEvent]:
        """Yield the events of failed rules, and of the one that matches."""
        names = self._names(event, dict(data))
        for index, rule in enumerate(machine.rules):
            if rule["on"] != event or str(rule["from"]) not in ("*", source):
                continue
            told = {"from": source, "event": event, "to": str(rule["to"]), "rule": index}
            when = rule.get("when")
            if isinstance(when, str) and when.strip():
                told["when"] = when
                try:
                    if not compile_expression(when, self.mode).value(names):
                        continue
                except (FlujoConditionError, ExpressionFault) as failure:
                    yield "RuleSkipped", {**told, "reason": str(failure)}
                    continue
            yield "RuleMatched", told
            return

    def _names(self, event: Json, data: dict[str, Any]) -> FlujoNames:
        if event == "pause":
            return pause_names(data, self.running)
        return names_of(data, data["output"])


def _is_ruled(name: str, beside: Collection[str]) -> bool:
    """Return whether rules of a pause precede a question: their events are written already."""
    return f"{name}:pause" in beside or f"{name.rpartition('>')[0]}:pause" in beside


def _event(data: Mapping[str, Any]) -> Json:
    output = data.get("output")
    return output.get("event") if isinstance(output, dict) else None


def _transition_details(
    source: Json, event: Json, rules: list[HistoryEvent], otherwise: Json
) -> dict[str, Json]:
    """Return the details of a transition: its target and its rule."""
    matched = next((details for kind, details in rules if kind == "RuleMatched"), None)
    if matched is None:
        return {"from": source, "event": event, "to": otherwise, "rule": None}
    return {"from": source, "event": event, "to": matched["to"], "rule": matched["rule"]}
