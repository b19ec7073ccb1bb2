"""Errors and usage as JSON in a journal."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt
from asl.engine.events import HistoryFull
from asl.engine.execution import Execution
from asl.engine.usage import (
    ExecutionSpending,
    UsageTotals,
    read_amounts,
    read_tokens,
    read_totals,
    write_amounts,
    write_totals,
)
from asl.states.errors import CallbackError, HeartbeatMissed, RaisedError

__all__ = [
    "check_position",
    "read_error",
    "read_spending",
    "read_spent",
    "read_time",
    "read_usage",
    "write_error",
    "write_spending",
    "write_spent",
    "write_usage",
]

LAST_TIME = 253_402_300_799
"""The last second of the year 9999."""

_ERRORS: Mapping[str, Callable[[str | None, str | None], StateError]] = {
    "StateError": StateError,
    "RaisedError": RaisedError,
    "CallbackError": CallbackError,
    "HeartbeatMissed": lambda name, cause: HeartbeatMissed(cause),
    "HistoryFull": lambda name, cause: HistoryFull(cause),
}


def write_error(error: StateError) -> Json:
    """Return an error as JSON: its kind, name and cause, and where an expression failed."""
    if isinstance(error, EvaluationFailed):
        return ["EvaluationFailed", error.location, error.cause]
    kind = type(error).__name__
    return [kind if kind in _ERRORS else "StateError", error.name, error.cause]


def read_error(written: Json) -> StateError:
    """Return the error written by `write_error`.

    Raises:
        ValueError: The JSON is not of this form.
    """
    kind, name, cause = written
    for text in (name, cause):
        if text is not None and type(text) is not str:
            raise TypeError(f"the name and the cause of an error are texts, not {excerpt(text)}")
    if kind == "EvaluationFailed":
        return EvaluationFailed(cause, name)
    return _ERRORS[kind](name, cause)


def read_time(written: Json) -> float:
    """Return a time in epoch seconds.

    Raises:
        ValueError: The value is not a number, or is beyond the year 9999.
    """
    if type(written) not in (int, float) or not 0 <= written <= LAST_TIME:
        raise ValueError(f"a time cannot be {excerpt(written)}")
    return float(written)


def check_position(written: Json) -> None:
    """Check the fields of a position that later code computes with.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has another type.
        ValueError: The time is invalid.
    """
    read_time(written["now"])
    for field, kind in {"visit": int, "records": int, "variables": dict}.items():
        if type(written[field]) is not kind:
            raise TypeError(f"{field!r} of a position cannot be {excerpt(written[field])}")


def write_usage(usage: UsageTotals) -> Json:
    """Return usage as JSON, amounts of money as text; the limit only if there is one."""
    written = [str(usage.cost), usage.tokens]
    return written if usage.max_cost is None else [*written, str(usage.max_cost)]


def read_usage(written: Json) -> UsageTotals:
    """Return the usage written by `write_usage`."""
    cost, tokens, *most = written
    return UsageTotals(Decimal(cost), read_tokens(tokens), Decimal(most[0]) if most else None)


def write_spending(execution: Execution) -> Json:
    """Return the spending of an execution as JSON: total, by state, by model, its ledger."""
    tables = (execution.by_state, execution.by_model)
    written = [
        write_usage(execution.usage),
        *map(write_totals, tables),
    ]
    return written if execution.ledger is None else [*written, execution.ledger.to_json()]


def read_spending(written: Json, execution: Execution) -> None:
    """Restore the spending of an execution, without its ledger."""
    total, *tables = written[:3]
    execution.usage = read_usage(total)
    for table, found in zip((execution.by_state, execution.by_model), tables, strict=True):
        table.update(read_totals(found))


def write_spent(spent: ExecutionSpending) -> Json:
    """Return the spending of an execution as JSON: total, by model, assumed amounts."""
    return [write_usage(spent.usage), write_totals(spent.by_model), write_amounts(spent.assumed)]


def read_spent(written: Json) -> ExecutionSpending:
    """Return the spending written by `write_spent`."""
    total, models, *assumed = written  # older stores lack the last member
    return ExecutionSpending(read_usage(total), read_totals(models), *map(read_amounts, assumed))
