"""Audit: records of calls, and redaction of their data (Specification 8.3).

The data of an execution stays unchanged; values are redacted in the copies that events show
(`Step.redact`).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact, is_number, measure
from asl.core.work import WorkExceeded
from asl.expr.paths import parse_path
from asl.expr.paths.nodes import replace_nodes
from asl.expr.paths.selection import select
from asl.expr.times import format_timestamp
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings

__all__ = ["AUDIT", "HIDDEN", "Redaction", "compile_redaction", "record_call", "redact_text"]

RECORDED: Final = "AuditRecorded"
HIDDEN: Final = "[REDACTED]"
LEVELS: Final = ("minimal", "standard", "full", "debug")
LARGEST: Final = 2**62
SHORT: Final = 3
"""Minimum length of a redacted text that is also redacted within words."""

_Measure = Callable[["_Call"], Json]


class _Call:
    """An attempt with its result or error."""

    def __init__(
        self, attempt: Attempt, began: float, result: Json, error: StateError | None
    ) -> None:
        self.attempt = attempt
        self.began = began
        self.result = result
        self.error = error
        usage = error.usage if error is not None else result
        self.used: Any = attempt.frame.reported_usage(usage)


METRICS: Final[Mapping[str, _Measure]] = MappingProxyType(
    {
        "duration": lambda call: round(call.attempt.frame.now - call.began, 3),
        "tokens": lambda call: call.used.tokens,
        "inputTokens": lambda call: call.used.input,
        "outputTokens": lambda call: call.used.output,
        "cost": lambda call: float(call.used.cost),
        "attempts": lambda call: call.attempt.frame.retries + 1,
        "inputSize": lambda call: measure(call.attempt.payload, LARGEST),
        "outputSize": lambda call: measure(call.result, LARGEST),
    }
)
"""The metrics: seconds, tokens, money, numbers, bytes of compact JSON."""
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"latency": "duration", "tokenusage": "tokens", "tokencount": "tokens", "retries": "attempts"}
)
_BY_NAME: Final[Mapping[str, str]] = {**{name.lower(): name for name in METRICS}, **ALIASES}


def _metric(written: str) -> str:
    """Return the metric of a name in any spelling; empty for none."""
    return _BY_NAME.get(written.lower().replace("_", "").replace("-", ""), "")


class Redaction:
    """The redacted values of a state's data, selected by paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.segments = [parse_path(path).segments for path in paths]

    def __call__(self, value: Json) -> Json:
        """Return a redacted copy of a document."""
        try:
            for each in self.segments:
                value = replace_nodes(each, value, HIDDEN)
        except WorkExceeded:  # a value too large to search is redacted as a whole
            return HIDDEN
        return value

    def quoted_texts(self, value: Json) -> Iterator[str]:
        """Yield the redacted texts of a document, which other texts may quote."""
        hidden = self(value)
        if hidden is value:
            return
        if hidden is HIDDEN:  # as a whole
            yield from _texts(value)
            return
        for each in self.segments:
            for found in select(each, value, value):
                yield from _texts(found)


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts and numbers of a value."""
    if type(value) is dict or type(value) is list:
        for each in value.values() if type(value) is dict else value:
            yield from _texts(each)
    elif type(value) is str and value:
        yield from {value, compact(value)[1:-1], repr(value)[1:-1]}
    elif is_number(value):
        yield compact(value)


def redact_text(text: str, quoted: Collection[str]) -> str:
    """Return a text without quotations of redacted texts.

    Short ones are replaced as whole words only.
    """
    if not quoted:
        return text
    longest = sorted(quoted, key=len, reverse=True)
    forms = (
        re.escape(each) if len(each) >= SHORT else rf"(?<!\w){re.escape(each)}(?!\w)"
        for each in longest
    )
    return re.sub("|".join(forms), HIDDEN, text)


def record_call(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the audit record of an attempt, for success and failure."""
    fields = compile_settings(compiler, "Audit", ("LogLevel", "Metrics", "Trace"))
    redact = compile_redaction(compiler) or Redaction(())

    async def perform(attempt: Attempt) -> Json:
        found, began = fields(attempt.data, attempt.frame), attempt.frame.now
        level, trace = found.choice("LogLevel", LEVELS) or "standard", found.flag("Trace")
        metrics = found.texts("Metrics") or []
        if not all(map(_metric, metrics)):
            raise found.invalid_value("Metrics", f"a list out of {', '.join(METRICS)}")

        def record(call: _Call) -> None:
            details = _details(call, LEVELS.index(level), redact)
            if metrics:
                details["metrics"] = {each: METRICS[_metric(each)](call) for each in metrics}
            if trace:
                details["trace"] = _trace(call)
            attempt.frame.note(RECORDED, {"level": level, **details})

        try:
            result = await inner(attempt)
        except StateError as error:
            record(_Call(attempt, began, None, error))
            raise
        record(_Call(attempt, began, result, None))
        return result

    return perform


def _details(call: _Call, level: int, redact: Redaction) -> dict[str, Json]:
    """Return the details of a record at a level."""
    attempt, error = call.attempt, call.error
    details: dict[str, Json] = {"outcome": "succeeded" if error is None else "failed"}
    if error is not None:
        details["error"] = error.name
    if level >= LEVELS.index("standard"):
        details |= {
            "agent": attempt.target.name,
            "attempt": attempt.frame.retries + 1,
            "duration": METRICS["duration"](call),
            "tokens": call.used.tokens,
            "cost": float(call.used.cost),
        }
        if call.used.model is not None:
            details["model"] = call.used.model
        if error is not None:
            data = (attempt.raw, attempt.payload)
            quoted = {text for each in data for text in redact.quoted_texts(each)}
            details["cause"] = None if error.cause is None else redact_text(error.cause, quoted)
    if level >= LEVELS.index("full"):
        details["parameters"] = redact(attempt.payload)
        if error is None:
            details["result"] = redact(call.result)
    if level >= LEVELS.index("debug"):
        details["input"] = redact(attempt.raw)
        details["retries"] = attempt.frame.retries
    return details


def _trace(call: _Call) -> dict[str, Json]:
    """Return the ids and times of a call for other systems."""
    frame = call.attempt.frame
    return {
        "executionId": frame.execution_id,
        "key": frame.visit_key,
        "attempt": frame.retries + 1,
        "startedAt": format_timestamp(call.began),
        "endedAt": format_timestamp(frame.now),
    }


def compile_redaction(compiler: Compiler) -> Redaction | None:
    """Compile the redaction of a state's data; None if nothing is redacted."""
    paths = compiler.state.get("Audit", {}).get("Redact")
    return Redaction(paths) if paths and "Agent" in compiler.state else None


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    paths = node.value["Audit"].get("Redact")
    for index, text in enumerate(paths if type(paths) is list else ()):
        if type(text) is not str or node.open(text):
            continue
        pointer = node.at("Audit", "Redact", index)
        try:
            path = parse_path(text)
        except ExpressionFault as fault:
            yield Finding("V-AUD-01", fault.message, pointer, fault.hint)
            continue
        if path.root != "$":
            message = f"{text!r} does not lead into the data of the state"
            yield Finding("V-AUD-01", message, pointer, "a path such as $.customer.email")


def _missing(block: Mapping[str, Json], node: Node | None) -> Iterator[tuple[str, str]]:
    metrics = block.get("Metrics")
    for index, name in enumerate(metrics if type(metrics) is list else ()):
        if type(name) is str and not _metric(name):
            known = did_you_mean(name, METRICS) or f"there are {', '.join(METRICS)}"
            yield f"/Metrics/{index}", f"{name!r} is not measured ({known})"


AUDIT = Block("Audit", _check, missing=_missing, lacks=("Redact.$",))
