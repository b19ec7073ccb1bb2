"""Agents whose answers are written down: for tests, conformance cases and dry runs.

A script is a JSON object with one of these keys, and optionally `delay` (seconds before the
answer), `heartbeat` (seconds between signs of life during the delay) and `reports` (sent before
the answer, after the delay: a list of objects with `chunk`, a piece of the answer, or
`progress`, a percentage, and `message`; each maybe with `after`, seconds before it):

| key | answer |
| --- | --- |
| `return` | the value |
| `raise` | an error: `{"Error": name, "Cause": text}`, both optional |
| `echo` | `true`: the request itself; `context`, `generation`, ...: what the call has besides |
| `hang` | `true`: none, ever |
| `sequence` | the scripts of the list one after the other; the last one repeats |
| `table` | the script `then` of the first row whose pattern `when` matches the request |
| `use` | the list of what tools answer that are asked one after the other: `{"tool": name, |
| | "arguments": {...}}`; with `after` seconds before it, with `"tolerate": true` its failure |
| | is an entry. Those of a list within the list are asked at the same time |
| `offered` | `true`: the names of the tools that may be used |
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

from asl.agents.agent_kinds import AgentKind, AgentSpec, FileContext
from asl.core.diagnostics import Finding, did_you_mean
from asl.core.errors import AslError, StateError
from asl.core.json_patterns import matches
from asl.core.values import Json, compact, is_number
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["SCRIPT", "SCRIPTS", "ScriptedAgent", "check_script"]

FOREVER = 99_999_999.0
"""Seconds after which a call that never answers times out, as a task without a timeout does."""


class ScriptedAgent(Agent):
    """Answers from a script; one object serves one execution."""

    __slots__ = ("answers",)

    enforces_hosts = True

    def __init__(self, script: Mapping[str, Json]) -> None:
        check_script(script)
        self.answers = _compile(script)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Give the next answer of the script."""
        assert call is not None
        return await self.answers(payload, call)

    async def confine(self, settings: Json, tool: str) -> "ScriptedAgent":
        """Return the same in a sandbox: a script runs nothing."""
        return self


_Answer = Callable[[Json, Call], Awaitable[Json]]


def _compile(script: Mapping[str, Json]) -> _Answer:
    key = next(each for each in script if each in _KINDS)
    answer = _KINDS[key](script[key])
    delay, pulse = script.get("delay", 0), script.get("heartbeat")
    reports: list[Json] = script.get("reports", [])
    if not delay and not reports:
        return answer

    async def delayed(payload: Json, call: Call) -> Json:
        if delay:
            await _wait(call, delay, pulse)
        for report in reports:
            await _report(call, report)
        return await answer(payload, call)

    return delayed


async def _report(call: Call, report: Mapping[str, Json]) -> None:
    if "after" in report:
        await call.sleep(report["after"])
    if "chunk" in report:
        call.report_chunk(report["chunk"])
    if "progress" in report:
        call.report_progress(report["progress"], report.get("message", ""))


async def _wait(call: Call, delay: float, pulse: float | None) -> None:
    while pulse is not None and delay > pulse:
        await call.sleep(pulse)
        call.heartbeat()
        delay -= pulse
    await call.sleep(delay)


def _return(value: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        return value

    return answer


def _raise(error: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        raise RaisedError(error.get("Error"), error.get("Cause"))

    return answer


def _echo(value: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        return payload if value is True else getattr(call, value)

    return answer


def _hang(value: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        await call.sleep(FOREVER)
        raise RaisedError("States.Timeout", "the agent never answered")

    return answer


def _sequence(scripts: Json) -> _Answer:
    answers = [_compile(script) for script in scripts]
    calls = iter(range(len(answers)))

    async def answer(payload: Json, call: Call) -> Json:
        return await answers[next(calls, len(answers) - 1)](payload, call)

    return answer


def _table(rows: Json) -> _Answer:
    choices = [(row.get("when", {"$any": True}), _compile(row["then"])) for row in rows]

    async def answer(payload: Json, call: Call) -> Json:
        for pattern, then in choices:
            if matches(pattern, payload):
                return await then(payload, call)
        raise RaisedError("States.TaskFailed", "no row of the script matches the request")

    return answer


def _use(wanted: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        return [await _used(each, payload, call) for each in wanted]

    return answer


async def _used(wanted: Json, payload: Json, call: Call) -> Json:
    if type(wanted) is list:
        await call.sleep(0)  # which gets an event loop
        from asyncio import gather

        answers = (_used(each, payload, call) for each in wanted)
        found = await gather(*answers, return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return found
    if "after" in wanted:
        await call.sleep(wanted["after"])
    arguments = wanted.get("arguments", {})
    try:
        return await call.tools.call(wanted["tool"], arguments)
    except StateError as error:
        if not wanted.get("tolerate"):
            raise
        return {"Error": error.name, "Cause": error.cause}


def _offered(value: Json) -> _Answer:
    async def answer(payload: Json, call: Call) -> Json:
        names: list[Json] = await call.tools.names()
        return names

    return answer


_KINDS: Mapping[str, Callable[[Json], _Answer]] = MappingProxyType(
    {
        "return": _return,
        "raise": _raise,
        "echo": _echo,
        "hang": _hang,
        "sequence": _sequence,
        "table": _table,
        "use": _use,
        "offered": _offered,
    }
)
SCRIPTS = tuple(_KINDS)
"""The keys for the kind of a script; it has exactly one."""
BESIDES = (
    "budget",
    "context",
    "generation",
    "idempotency_key",
    "metadata",
    "model",
    "quality",
    "reasoning",
)
"""What a script can echo of its call."""
SCRIPT_KEYS = (*SCRIPTS, "delay", "heartbeat", "reports")
_REPORTS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"chunk": (str,), "progress": (int, float), "message": (str,), "after": (int, float)}
)


def _is_error(value: Json) -> bool:
    return (
        type(value) is dict
        and value.keys() <= {"Error", "Cause"}
        and all(type(text) is str for text in value.values())
    )


def _is_use(value: Json) -> bool:
    if type(value) is list:
        return bool(value) and all(type(each) is dict and _is_use(each) for each in value)
    return (
        type(value) is dict
        and type(value.get("tool")) is str
        and value.keys() <= {"tool", "arguments", "after", "tolerate"}
        and type(value.get("tolerate", True)) is bool
        and is_number(value.get("after", 0))
    )


def check_script(script: Json, place: str = "script") -> None:
    """Raise AslError, with the place inside the script, unless it has the shape above."""
    if type(script) is not dict:
        raise AslError(f"{place}: a script is an object with one of {', '.join(_KINDS)}")
    for key in script:
        if key not in SCRIPT_KEYS:
            hint = did_you_mean(key, SCRIPT_KEYS)
            raise AslError(f"{place}: unknown key {key!r}" + (f" ({hint})" if hint else ""))
    kinds = [key for key in script if key in _KINDS]
    if len(kinds) != 1:
        raise AslError(f"{place}: exactly one of {', '.join(_KINDS)} is needed")
    for key in ("delay", "heartbeat"):
        if key in script and not (is_number(script[key]) and 0 < script[key] <= FOREVER):
            raise AslError(f"{place}.{key}: a number of seconds above 0, at most {FOREVER:.0f}")
    _check_reports(script.get("reports", []), f"{place}.reports")
    (kind,) = kinds
    value = script[kind]
    if kind == "raise" and not _is_error(value):
        raise AslError(f"{place}.raise: an object with texts 'Error' and 'Cause', both optional")
    if kind == "echo" and value is not True and value not in BESIDES:
        raise AslError(f"{place}.echo: true, or one of {', '.join(BESIDES)}")
    if kind == "use" and not (type(value) is list and value and all(map(_is_use, value))):
        raise AslError(f"{place}.use: a list of tool calls with 'tool' and maybe 'arguments'")
    if kind == "sequence":
        if type(value) is not list or not value:
            raise AslError(f"{place}.sequence: a list of at least one script")
        for index, part in enumerate(value):
            check_script(part, f"{place}.sequence[{index}]")
    if kind == "table":
        if type(value) is not list or not value:
            raise AslError(f"{place}.table: a list of rows with 'when' and 'then'")
        for index, row in enumerate(value):
            here = f"{place}.table[{index}]"
            if type(row) is not dict or "then" not in row or not row.keys() <= {"when", "then"}:
                raise AslError(f"{here}: a row has 'then' and maybe 'when'")
            check_script(row["then"], f"{here}.then")


def _check_reports(reports: Json, place: str) -> None:
    if type(reports) is not list:
        raise AslError(f"{place}: a list of objects with 'chunk' or 'progress'")
    for index, report in enumerate(reports):
        here = f"{place}[{index}]"
        if type(report) is not dict or report.keys().isdisjoint(("chunk", "progress")):
            raise AslError(f"{here}: an object with 'chunk' or 'progress'")
        for key, value in report.items():
            if key not in _REPORTS or type(value) not in _REPORTS[key]:
                raise AslError(f"{here}: {key!r} does not fit")
        if not 0 <= report.get("after", 0) <= FOREVER:
            raise AslError(f"{here}: 'after' is a number of seconds from 0")


_FAULT = r"script((?:\.\w+|\[\d+\])*): ((?s:.*))"
_STEP = r"\.(\w+)|\[(\d+)\]"


def _check(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    try:
        check_script(spec)
    except AslError as error:
        found = re.fullmatch(_FAULT, str(error))
        assert found is not None
        pointer = "".join(f"/{key or index}" for key, index in re.findall(_STEP, found[1]))
        yield Finding("AGENTS-03", found[2], pointer)


def _raised(error: Json) -> str | None:
    return f"write {compact({'Error': error})}" if type(error) is str else None


SCRIPT = AgentKind(
    "agents:Script", lambda spec, home: spec, _check, meant={"raise": _raised}, discreet=True
)
