"""Runs cases on an interpreter and judges what came of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Protocol, TypeAlias

from asl.conformance.case import CHECK_FACTS, Case
from asl.conformance.external import ExternalImplementation
from asl.conformance.local import LocalImplementation
from asl.core.json_patterns import matches, mismatches
from asl.core.values import Json, compact, is_number

__all__ = [
    "CaseResult",
    "Implementation",
    "Observation",
    "SuiteReport",
    "judge",
    "run_case",
    "run_suite",
]

Observation: TypeAlias = Mapping[str, Json]
"""What an interpreter answers: the facts asked for by name; or `skip` or `crash` with a text."""

TIME_LIMIT = 60.0
"""Real seconds that an interpreter of its own process may take for one case."""

ELAPSED_TOLERANCE = 1e-6
SHOWN = 300
MAX_REASONS = 100
"""Differences of a case that are reported."""


class Implementation(Protocol):
    """An interpreter under test."""

    def observe(self, case: Case) -> Observation:
        """Run one case; a failure of the interpreter itself is `{"crash": text}`."""
        ...

    def close(self) -> None:
        """Release what the interpreter holds."""
        ...


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of one case: `passed`, `failed` or `skipped`.

    `reasons` are the differences of a failed case or why it was skipped; `seconds` are real ones.
    """

    case: Case
    outcome: str
    reasons: tuple[str, ...]
    observation: Observation
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The verdicts in the order of the cases, and the real seconds that all took."""

    verdicts: tuple[CaseResult, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no case failed."""
        return not self.failed

    @property
    def passed(self) -> tuple[CaseResult, ...]:
        return self.with_outcome("passed")

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return self.with_outcome("failed")

    @property
    def skipped(self) -> tuple[CaseResult, ...]:
        return self.with_outcome("skipped")

    def with_outcome(self, outcome: str) -> tuple[CaseResult, ...]:
        """Return the verdicts with one outcome."""
        return tuple(each for each in self.verdicts if each.outcome == outcome)


def run_suite(
    cases: Sequence[Case],
    implementation: Implementation | Sequence[str] | None = None,
    *,
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    on_verdict: Callable[[CaseResult], None] | None = None,
) -> SuiteReport:
    """Run cases on this interpreter, or on the one that a command (a list of words) starts.

    With `jobs` above 1 so many processes share the cases. `on_verdict` hears of every verdict as
    it comes. Raises AslError if a command cannot be started.
    """
    began = perf_counter()
    workers = _workers(implementation, min(jobs, len(cases)), time_limit)
    try:
        verdicts: dict[str, CaseResult] = {}
        for verdict in _verdicts(cases, workers):
            verdicts[verdict.case.id] = verdict
            if on_verdict is not None:
                on_verdict(verdict)
    finally:
        for worker in workers:
            worker.close()
    return SuiteReport(tuple(verdicts[case.id] for case in cases), perf_counter() - began)


def _workers(
    implementation: Implementation | Sequence[str] | None, jobs: int, time_limit: float
) -> list[Implementation]:
    if implementation is None and jobs <= 1:
        return [LocalImplementation()]
    if implementation is None:
        implementation = (sys.executable, "-P", "-m", "asl.conformance.local")
    if isinstance(implementation, Sequence):
        command = implementation
        return [ExternalImplementation(command, time_limit) for _ in range(max(jobs, 1))]
    return [implementation]


def _verdicts(cases: Sequence[Case], workers: list[Implementation]) -> Iterator[CaseResult]:
    """Yield verdicts as they come."""
    if len(workers) == 1:
        for case in cases:
            yield run_case(case, workers[0])
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed
    from queue import SimpleQueue

    idle: SimpleQueue[Implementation] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def run(case: Case) -> CaseResult:
        worker = idle.get()
        try:
            return run_case(case, worker)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        futures = [pool.submit(run, case) for case in cases]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_case(case: Case, implementation: Implementation) -> CaseResult:
    """Run one case and judge it."""
    began = perf_counter()
    observation = implementation.observe(case)
    return judge(case, observation, perf_counter() - began)


def judge(case: Case, observation: Observation, seconds: float = 0.0) -> CaseResult:
    """Compare what was observed with what the case expects."""
    if "skip" in observation:
        return CaseResult(case, "skipped", (str(observation["skip"]),), observation, seconds)
    if "crash" in observation:
        reasons = [f"the interpreter failed: {observation['crash']}"]
    else:
        reasons = [*islice(_differences(case.expect, observation), MAX_REASONS + 1)]
        if len(reasons) > MAX_REASONS:
            reasons[MAX_REASONS] = "there are more differences"
    outcome = "failed" if reasons else "passed"
    return CaseResult(case, outcome, tuple(reasons), observation, seconds)


def _differences(expect: Mapping[str, Json], seen: Observation) -> Iterator[str]:
    runs = not expect.keys() <= CHECK_FACTS
    if runs and "status" not in seen:
        yield f"the document was refused: {_errors(seen)}"
    elif not runs and "valid" not in expect:
        yield from _valid(_implied_validity(expect["diagnostics"]), seen)
    for fact, judge_fact in _JUDGES.items():
        if fact in expect and (fact in CHECK_FACTS or "status" in seen):
            exact = _EXACT.get(fact) if expect.get(f"{fact}_exact") else None
            yield from (exact or judge_fact)(expect[fact], seen)


def _implied_validity(diagnostics: Json) -> bool:
    """A document is refused unless all that is expected of it are warnings."""
    return all(each.get("severity") in ("warning", "info") for each in diagnostics)


def _plain(fact: str) -> Callable[[Json, Observation], Iterator[str]]:
    def differences(expected: Json, seen: Observation) -> Iterator[str]:
        yield from sorted(mismatches(expected, seen.get(fact), fact))

    return differences


def _status(expected: Json, seen: Observation) -> Iterator[str]:
    for text in mismatches(expected, seen["status"], "status"):
        yield f"{text} ({_ending(seen)})"


def _output(expected: Json, seen: Observation) -> Iterator[str]:
    if "output" in seen:
        yield from sorted(mismatches(expected, seen["output"], "output"))
    else:
        yield f"output: expected {_short(expected)}, but there is none ({_ending(seen)})"


def _error(expected: Json, seen: Observation) -> Iterator[str]:
    for text in mismatches(expected, seen.get("error"), "error"):
        yield f"{text} ({_ending(seen)})"


def _elapsed(expected: Json, seen: Observation) -> Iterator[str]:
    elapsed = seen.get("elapsed")
    if is_number(expected) and is_number(elapsed):
        if abs(expected - elapsed) > ELAPSED_TOLERANCE:
            yield f"elapsed: expected {expected} seconds, got {elapsed}"
    else:
        yield from mismatches(expected, elapsed, "elapsed")


def _cost(expected: Json, seen: Observation) -> Iterator[str]:
    yield from mismatches(expected, (seen.get("usage") or {}).get("cost"), "cost")


def _events(expected: Json, seen: Observation) -> Iterator[str]:
    """Every expected event occurs, in this order, with others between them."""
    events = seen.get("events") or []
    start = 0
    for index, pattern in enumerate(expected):
        found = next((i for i in range(start, len(events)) if _is_event(pattern, events[i])), None)
        if found is None:
            later = [each["type"] for each in events[start:]]
            yield f"events[{index}]: no {_short(pattern)} among {_short(later)}"
            same = [e for e in events[start:] if e["type"] == pattern["type"]]
            if same:
                yield f"events[{index}]: the next {pattern['type']} is {_short(same[0])}"
            return
        start = found + 1


def _exact_events(expected: Json, seen: Observation) -> Iterator[str]:
    """The expected events are all that there are."""
    types = [each["type"] for each in seen.get("events") or []]
    differences = list(mismatches([each["type"] for each in expected], types, "events"))
    yield from differences or _events(expected, seen)


def _is_event(pattern: Json, event: Json) -> bool:
    if "details" in pattern:
        pattern = {**pattern, "details": {"$partial": pattern["details"]}}
    return matches({"$partial": pattern}, event)


def _checkpoints(expected: Json, seen: Observation) -> Iterator[str]:
    """These checkpoints were saved, in this order, and no others."""
    found = seen.get("checkpoints") or []
    patterns = [{"$partial": pattern} for pattern in expected]
    yield from sorted(mismatches(patterns, found, "checkpoints"))


def _diagnostics(expected: Json, seen: Observation) -> Iterator[str]:
    found = seen.get("diagnostics") or []
    for pattern in expected:
        if not any(_is_diagnostic(pattern, each) for each in found):
            near = [each for each in found if each.get("code") == pattern["code"]] or found
            among = _short([_brief(each) for each in near])
            yield f"diagnostics: no {_short(pattern)} among {among}"


def _exact_diagnostics(expected: Json, seen: Observation) -> Iterator[str]:
    """The expected diagnostics are all that there are."""
    yield from _diagnostics(expected, seen)
    for each in seen.get("diagnostics") or []:
        if not any(_is_diagnostic(pattern, each) for pattern in expected):
            yield f"diagnostics: nothing expects {_short(_brief(each))}"


def _is_diagnostic(pattern: Json, diagnostic: Json) -> bool:
    if type(pattern.get("aws")) is dict:
        pattern = {**pattern, "aws": {"$partial": pattern["aws"]}}
    return matches({"$partial": pattern}, diagnostic)


def _objects(expected: Json, seen: Observation) -> Iterator[str]:
    found = seen.get("objects") or []
    for pattern in expected:
        if not any(matches({"$partial": pattern}, each) for each in found):
            yield f"objects: no {_short(pattern)} among {_short(found)}"


def _sent(expected: Json, seen: Observation) -> Iterator[str]:
    """These events were sent to these channels, in this order, and no others."""
    found = seen.get("sent") or {}
    for name in sorted({*expected, *found}):
        channel, pattern = found.get(name, {"settings": {}, "events": []}), expected.get(name, {})
        settings = {"$partial": pattern.get("settings", {})}
        yield from sorted(mismatches(settings, channel["settings"], f"sent to {name}: settings"))
        wanted, events = pattern.get("events", []), channel["events"]
        if len(wanted) != len(events) or not all(map(_is_event, wanted, events)):
            types = [event["type"] for event in events]
            yield f"sent to {name}: expected {_short(wanted)}, got {_short(types)}"


def _brief(diagnostic: Json) -> Json:
    keys = ("code", "severity", "file", "pointer", "line", "hint", "aws")
    return {key: diagnostic[key] for key in keys if diagnostic.get(key) is not None}


def _valid(expected: Json, seen: Observation) -> Iterator[str]:
    if seen.get("valid") is not expected:
        if expected:
            yield f"valid: expected a document without errors, but {_errors(seen)}"
        else:
            yield "valid: expected a document that is refused, but it has no errors"


def _errors(seen: Observation) -> str:
    errors = [each for each in seen.get("diagnostics") or [] if each.get("severity") == "error"]
    if not errors:
        return "no reason was given"
    return "; ".join(
        f"{each.get('code')} at {each.get('pointer')!r}: {each.get('message')}" for each in errors
    )


def _ending(seen: Observation) -> str:
    if "output" in seen:
        return f"{seen['status']}, output {_short(seen['output'])}"
    cause = f": {seen['cause']}" if seen.get("cause") else ""
    return f"{seen['status']}, error {seen.get('error')}{cause}{_items(seen)}"


def _items(seen: Observation) -> str:
    """Tell the first failed items of the distributed Maps."""
    found = [
        f"item {each['index']} of {run['state']!r}: {each.get('error')}: {each.get('cause')}"
        for run in seen.get("failed_items", ())
        for each in run["failures"]
    ]
    return f" ({_short('; '.join(found))})" if found else ""


def _short(value: Json) -> str:
    text = compact(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


_Judge = Callable[[Json, Observation], Iterator[str]]
_EXACT: Mapping[str, _Judge] = {"events": _exact_events, "diagnostics": _exact_diagnostics}
"""Facts that a case may require completely."""
_JUDGES: Mapping[str, _Judge] = {
    "status": _status,
    "output": _output,
    "error": _error,
    "cause": _plain("cause"),
    "pending": _plain("pending"),
    "refused": _plain("refused"),
    "checkpoints": _checkpoints,
    "visited": _plain("visited"),
    "events": _events,
    "diagnostics": _diagnostics,
    "valid": _valid,
    "elapsed": _elapsed,
    "usage": _plain("usage"),
    "cost": _cost,
    "objects": _objects,
    "sent": _sent,
}
