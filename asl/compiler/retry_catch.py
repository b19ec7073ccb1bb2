"""`Retry` entries and the error names that `ErrorEquals` takes (Specification 4.1 to 4.3)."""

from collections.abc import Callable, Mapping

from asl.core.errors import StateError
from asl.core.profile import Profile
from asl.core.values import Json
from asl.program import Retrier
from asl.states.errors import HeartbeatMissed

__all__ = ["compile_matcher", "compile_retrier"]

NEVER_MATCHED = "States.Runtime"
HEARTBEAT = "States.HeartbeatTimeout"
DATA_LIMIT = "States.DataLimitExceeded"
BARE_NAMES = ("RateLimitExceeded", "BudgetExceeded")
"""Errors that documents write with and without `States.` (register C-14)."""


def compile_retrier(entry: Mapping[str, Json], profile: Profile) -> Retrier:
    """Return one entry of `Retry` with the defaults for what it does not say (4.3)."""
    return Retrier(
        matches=compile_matcher(entry["ErrorEquals"], profile),
        interval=entry.get("IntervalSeconds", 1),
        max_attempts=entry.get("MaxAttempts", 3),
        backoff_rate=entry.get("BackoffRate", 2.0),
        max_delay=entry.get("MaxDelaySeconds", entry.get("MaxIntervalSeconds")),
        jitter=entry.get("JitterStrategy", "NONE").upper(),
    )


def compile_matcher(names: list[str], profile: Profile) -> Callable[[StateError], bool]:
    """Compile `ErrorEquals` (Specification 4.1, 4.2)."""
    listed = set(names)
    for bare in BARE_NAMES:
        if listed & {bare, f"States.{bare}"}:
            listed |= {bare, f"States.{bare}"}
    listed.discard(NEVER_MATCHED)
    exempt = {NEVER_MATCHED}
    if not profile.wildcard_matches_data_limit:
        exempt.add(DATA_LIMIT)
    if "States.ALL" in listed:
        return lambda error: error.name in listed or error.name not in exempt
    if "States.TaskFailed" in listed:
        exempt |= {"States.Timeout", "States.QueryEvaluationError" if profile.aws else DATA_LIMIT}
        return lambda error: _listed(error, listed) or error.name not in exempt
    return lambda error: _listed(error, listed)


def _listed(error: StateError, names: set[str]) -> bool:
    return error.name in names or (HEARTBEAT in names and isinstance(error, HeartbeatMissed))
