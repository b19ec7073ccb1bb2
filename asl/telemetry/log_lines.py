"""Logs as lines, JSON or text, with the fields of the request that is being answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TextIO, TypeAlias

from asl.core.printable import printable
from asl.core.values import Json, compact
from asl.engine.result import Result
from asl.expr.times import format_timestamp

__all__ = ["LogFormat", "add_log_fields", "log", "log_context", "log_outcome", "write_logs"]

LogFormat: TypeAlias = Literal["json", "text"]
_context: ContextVar[dict[str, Json] | None] = ContextVar("asl_log_fields", default=None)


@contextmanager
def log_context(fields: dict[str, Json]) -> Iterator[None]:
    """Add fields to everything that is logged while the block runs.

    Args:
        fields: The fields; `add_log_fields` adds more.
    """
    token = _context.set(fields)
    try:
        yield
    finally:
        _context.reset(token)


def add_log_fields(**fields: Json) -> None:
    """Add fields to the current context, if there is one."""
    current = _context.get()
    if current is not None:
        current.update(fields)


def log(logger: str, message: str, **fields: Json) -> None:
    """Log an event.

    Args:
        logger: Name of the logger.
        message: What happened.
        fields: Its details, such as `execution`.
    """
    logging.getLogger(logger).info(message, extra={"fields": fields})


def log_outcome(project: str, name: str, outcome: Result | str) -> None:
    """Log the outcome of an execution as a runner reports it: its end, pause, or what it lacks."""
    fields: dict[str, Json] = {"execution": name, "project": project}
    if isinstance(outcome, str):
        log("asl.executions", "execution cannot run here", **fields, reason=outcome)
        return
    fields |= {"workflow": outcome.execution.workflow, "status": outcome.status}
    if outcome.error is not None:
        fields |= {"error": outcome.error, "cause": outcome.cause}
    if outcome.needs:
        fields["needs"] = [*outcome.needs]
    log(
        "asl.executions",
        "execution paused" if outcome.status == "PAUSED" else "execution ended",
        **fields,
    )


def write_logs(format: LogFormat, stream: TextIO) -> None:
    """Write the logs of this process to a stream, a line for each event.

    Args:
        format: Format of the lines.
        stream: Where they are written.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines() if format == "json" else _TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    logging.getLogger("asl").setLevel(logging.INFO)


def _fields(record: logging.LogRecord) -> dict[str, Json]:
    """Return the fields of an event: those of the context, then its own."""
    return {**(_context.get() or {}), **getattr(record, "fields", {})}


class _JsonLines(logging.Formatter):
    """Formats an event as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Json] = {
            "time": format_timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return compact(line)


class _TextLines(logging.Formatter):
    """Formats an event as `TIME LEVEL MESSAGE NAME=VALUE ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        head = f"{format_timestamp(record.created)} {record.levelname:<7} {record.getMessage()}"
        pairs = (
            f"{name}={value if isinstance(value, str) else compact(value)}"
            for name, value in _fields(record).items()
        )
        line = printable(" ".join((head, *pairs)))
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line
