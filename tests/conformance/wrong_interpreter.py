"""An interpreter that is wrong on purpose: ours with one planted bug, behind the protocol.

    python wrong_interpreter.py BUG

Some bugs change the document before it runs, others a part of the engine while it does. Three
more words make a process that does not keep to the protocol: `dies`, `mute`, `babbles`.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from asl.conformance import Case
from asl.conformance.local import observe, serve
from asl.effects.local import LocalEffects
from asl.engine import interpreter
from asl.expr.intrinsics import numeric

State = dict[str, Any]


def absent_instead_of_null(field: str) -> Callable[[State], None]:
    """A null field is taken for one that is not there."""

    def change(state: State) -> None:
        if field in state and state[field] is None:
            del state[field]

    return change


def without(field: str) -> Callable[[State], None]:
    """A field is ignored."""

    def change(state: State) -> None:
        state.pop(field, None)

    return change


def catcher_keeps_input(state: State) -> None:
    """A catcher without ResultPath leaves the input as it is."""
    for catcher in state.get("Catch", []):
        catcher.setdefault("ResultPath", None)


def catch_before_retry(state: State) -> None:
    """A state that can catch never retries."""
    if "Catch" in state:
        state.pop("Retry", None)


def task_failed_catches_timeout(state: State) -> None:
    """`States.TaskFailed` stands for a timeout too."""
    for entry in (*state.get("Catch", []), *state.get("Retry", [])):
        if "States.TaskFailed" in entry["ErrorEquals"] and "States.ALL" not in entry["ErrorEquals"]:
            entry["ErrorEquals"].append("States.Timeout")


def no_backoff(state: State) -> None:
    """The pause between retries does not grow."""
    for retrier in state.get("Retry", []):
        retrier["BackoffRate"] = 1


def last_rule_wins(state: State) -> None:
    """Of several rules that match, the last one is taken."""
    if type(state.get("Choices")) is list:
        state["Choices"].reverse()


def null_is_not_present(state: State) -> None:
    """`IsPresent` takes a null for nothing."""
    state["Choices"] = [_present(rule) for rule in state["Choices"]] if "Choices" in state else []
    if not state["Choices"]:
        del state["Choices"]


def _present(rule: State) -> State:
    if rule.get("IsPresent") is not True:
        return rule
    there = {key: value for key, value in rule.items() if key in ("Variable", "IsPresent")}
    rest = {key: value for key, value in rule.items() if key not in there}
    null = {"Variable": rule["Variable"], "IsNull": True}
    return {"And": [there, {"Not": null}], **rest}


def waits_a_second(state: State) -> None:
    """Every Wait takes one second."""
    if state.get("Type") == "Wait":
        for field in ("SecondsPath", "Timestamp", "TimestampPath"):
            state.pop(field, None)
        state["Seconds"] = 1


DOCUMENT_BUGS: Mapping[str, Callable[[State], None]] = {
    "result-path-null": absent_instead_of_null("ResultPath"),
    "input-path-null": absent_instead_of_null("InputPath"),
    "output-path-null": absent_instead_of_null("OutputPath"),
    "no-result-selector": without("ResultSelector"),
    "no-catch": without("Catch"),
    "catcher-keeps-input": catcher_keeps_input,
    "catch-before-retry": catch_before_retry,
    "task-failed-catches-timeout": task_failed_catches_timeout,
    "no-backoff": no_backoff,
    "last-rule-wins": last_rule_wins,
    "null-is-not-present": null_is_not_present,
    "waits-a-second": waits_a_second,
}

_retry_delay = interpreter._retry_delay
_fork = LocalEffects.fan_out


def shared_retry_count(frame: Any, retriers: Any, error: Any) -> float | None:
    """All retriers of a state count together."""
    made = max(frame.attempts.values(), default=(0, 1.0))
    frame.attempts.update(dict.fromkeys(range(len(retriers)), made))
    return _retry_delay(frame, retriers, error)


async def backwards(self: LocalEffects, at: Any, fan: Any) -> Any:
    """The results of branches and items come in another order."""
    joined = await _fork(self, at, fan)
    joined.values.reverse()
    return joined


def unrounded(function: str, position: int, value: Any) -> Any:
    """`MathAdd` takes its arguments as they are."""
    return value


ENGINE_BUGS: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "shared-retry-count": lambda: patch.object(interpreter, "_retry_delay", shared_retry_count),
    "results-backwards": lambda: patch.object(LocalEffects, "fan_out", backwards),
    "math-add-unrounded": lambda: patch.object(numeric, "round_argument", unrounded),
}

UNCHECKED = "accepts-everything"
BUGS = (*DOCUMENT_BUGS, *ENGINE_BUGS, UNCHECKED)


class Wrong:
    """The wrong interpreter in this process."""

    def __init__(self, bug: str) -> None:
        self.bug = bug

    def observe(self, case: Case) -> dict[str, Any]:
        return answer(self.bug, json.loads(json.dumps(case.request())))

    def close(self) -> None:
        pass


def answer(bug: str, request: dict[str, Any]) -> dict[str, Any]:
    """Answer as our interpreter would if it had the bug."""
    if bug in DOCUMENT_BUGS:
        for state in _states(request.get("document")):
            DOCUMENT_BUGS[bug](state)
    if bug in ENGINE_BUGS:
        with ENGINE_BUGS[bug]():
            return observe(request)
    seen = observe(request)
    if bug == UNCHECKED and "valid" in seen:
        seen |= {"valid": True, "diagnostics": []}
    return seen


def _states(value: Any) -> Iterator[State]:
    """Every state below a value, however nested."""
    if type(value) is list:
        for item in value:
            yield from _states(item)
    elif type(value) is dict:
        for item in list(value.values()):
            yield from _states(item)
        if "Type" in value:
            yield value


def main(bug: str) -> None:
    """Speak the protocol, or break it."""
    if bug == "dies":
        sys.exit("out of luck")
    for line in sys.stdin if bug in ("mute", "babbles") else ():
        if bug == "babbles":
            print("hello", len(line), flush=True)
    serve(sys.stdin, sys.stdout, lambda request: answer(bug, dict(request)))


if __name__ == "__main__":
    main(sys.argv[1])
