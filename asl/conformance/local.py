"""This project's own interpreter as an implementation under test."""

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO, TypeAlias

import asl
from asl.conformance.case import CHECK_FACTS, NAME, Case
from asl.conformance.scripted_tokens import ScriptedTaskTokens
from asl.core.diagnostics import Diagnostic, InvalidDocument, Report
from asl.core.values import Json, compact
from asl.engine.events import Event
from asl.engine.execution import Execution
from asl.engine.map_run import ChildExecution
from asl.engine.memory import ProcessMemory
from asl.engine.result import Result
from asl.expr.times import parse_duration, parse_epoch
from asl.program import Program

__all__ = ["LocalImplementation", "children_listener", "observe", "serve"]

NOT_EXECUTED = "EXEC-"
Buckets: TypeAlias = Mapping[str, Mapping[str, str]]
"""Texts by bucket and key."""


class LocalImplementation:
    """Runs cases in this process, on the virtual clock."""

    def observe(self, case: Case) -> Mapping[str, Json]:
        """Run one case."""
        return observe(case.request())

    def close(self) -> None:
        """Nothing is held."""


def observe(request: Mapping[str, Json]) -> dict[str, Json]:
    """Answer one request of the protocol, without the `id`."""
    try:
        return _observed(request)
    except Exception as error:  # whatever the interpreter raises is a failure of this case
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {"crash": f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"}


def _observed(request: Mapping[str, Json]) -> dict[str, Json]:
    from asl.dialects import load
    from asl.dialects.registry import BUILT_IN

    if request["dialect"] not in BUILT_IN:
        return {"skip": f"the dialect {request['dialect']!r} is not supported by this version"}
    wanted = set(request["observe"])
    seen: dict[str, Json] = {}
    try:
        what = request.get("document")
        document = load(
            request["document_text"].encode() if what is None else what,
            name=_called(what, request.get("workflows", {})),
            dialect=request["dialect"],
            reading=request.get("reading"),
            files=request.get("files", {}),
            parameters=request.get("parameters"),
        )
        if wanted & CHECK_FACTS:
            report = asl.check(
                document,
                profile=request["profile"],
                agents=request.get("agents"),
                workflows=request.get("workflows"),
            )
            seen = _checked(report)
            if wanted <= CHECK_FACTS or not report.ok:
                return seen
        program = asl.compile(document, profile=request["profile"])
    except InvalidDocument as refusal:
        return _refused(refusal.report)
    buckets = {name: dict(objects) for name, objects in request.get("buckets", {}).items()}
    sent: dict[str, Json] = {}
    children: list[Json] = []
    given: dict[str, Any] = {"sinks": {"*": _taking(sent)}}
    if "children" in wanted:
        given["listener"] = _Whole(children)
    facts = _facts(*_run(program, request, buckets, given), wanted)
    if "children" in wanted:
        facts["children"] = children
    if "sent" in wanted:
        facts["sent"] = sent
    if "objects" in wanted:
        facts["objects"] = list(_written(buckets, request.get("buckets", {})))
    return seen | facts


def _called(document: Json, workflows: Mapping[str, Json]) -> str | None:
    """Return the name by which a document can start itself, None where it cannot."""
    names = [
        name for name, other in workflows.items() if document is not None and other == document
    ]
    return names[0] if names else None


def _run(
    program: Program, request: Mapping[str, Json], buckets: Buckets, hearing: Mapping[str, Any]
) -> tuple[Result, str | None]:
    """Run a case and resume it as it says; returns the result and why going on was refused.

    *hearing* are the bindings of listeners.
    """
    memory = dict.fromkeys(("memory", *request.get("memory", ())), ProcessMemory())
    given = {**hearing, "memory": memory}
    clock = (
        asl.VirtualClock(parse_epoch(request["clock"]))
        if "clock" in request
        else asl.VirtualClock()
    )
    result = asl.run(
        program,
        request["input"],
        requestor=request.get("requestor"),
        clock=clock,
        name=request.get("name", NAME),
        **_bindings(request, buckets),
        **given,
    )
    for again in request.get("resume", ()):
        clock.elapsed += parse_duration(again.get("after", 0))
        try:
            result = asl.resume(
                result,
                again["from"],
                document=again.get("document"),
                force=again.get("force", False),
                clock=clock,
                **_bindings({**request, **again}, buckets),
                **given,
            )
        except asl.CheckpointRefused as refusal:
            return result, refusal.error
    return result, None


def _bindings(request: Mapping[str, Json], buckets: Buckets) -> dict[str, Any]:
    answers = request.get("answers")
    outside = None if answers is None else ScriptedTaskTokens(answers)
    return {
        "agents": request.get("agents"),
        "resources": request.get("resources"),
        "mocks": request.get("mocks"),
        "tools": request.get("tools"),
        "tokens": outside,
        "approvals": None if outside is None else outside.decide,
        "workflows": request.get("workflows"),
        "buckets": buckets,
        "prices": request.get("prices"),
        "pools": request.get("pools"),
        "checkpoints": {"file": {}, "elsewhere": {}, "broken": _Broken()},
    }


def _taking(sent: dict[str, Json]) -> Callable[[dict[str, Json], dict[str, Json]], None]:
    """Return what takes the events of all channels, and keeps them by the name of the channel."""

    def take(event: dict[str, Json], channel: dict[str, Json]) -> None:
        known = sent.setdefault(channel["name"], {"settings": channel, "events": []})
        known["events"].append(event)

    return take


def children_listener(events: list[Json]) -> Callable[[Event], None]:
    """Return a listener that adds the events of the items of distributed Maps to a list."""
    return _Whole(events)


class _Whole:
    """Listens to an execution for the sake of the items of its distributed Maps.

    They have histories of their own, in the same document.
    """

    def __init__(self, events: list[Json]) -> None:
        self.told = events

    def __call__(self, event: Event) -> None:
        """Ignore events of the execution itself."""

    def within(self, place: object) -> "_Within":
        """Return the listener of what the state at a place starts."""
        return _Within(self.told)


class _Within:
    def __init__(self, events: list[Json]) -> None:
        self.told = events

    def of(self, execution: Execution) -> _Whole:
        """Return the listener of a child execution; other documents are ignored."""
        return _Child(self.told) if isinstance(execution, ChildExecution) else _Whole([])


class _Child(_Whole):
    """Listens to an item."""

    def __call__(self, event: Event) -> None:
        """Keep what it does."""
        self.told.append(event.to_json())


class _Broken:
    """A storage of checkpoints that takes none."""

    def __setitem__(self, id: str, checkpoint: Json) -> None:
        raise OSError("no room")


def _written(buckets: Buckets, before: Buckets) -> Iterator[Json]:
    """Yield the objects that were not there before."""
    for name, objects in buckets.items():
        for key, text in objects.items():
            if before[name].get(key) != text:
                yield {"bucket": name, "key": key, "text": text}


def _facts(result: Result, refused: str | None, wanted: Iterable[str]) -> dict[str, Json]:
    facts: dict[str, Json] = {"status": result.status, "error": result.error, "cause": result.cause}
    if result.ok:
        facts["output"] = result.output
    if result.status == "PAUSED":
        facts["pending"] = result.pending
    for name in ("visited", "elapsed", "usage"):
        if name in wanted:
            facts[name] = getattr(result, name)
    if not result.ok and result.failed_items:
        facts["failed_items"] = result.failed_items
    if refused is not None:
        facts["refused"] = refused
    if "checkpoints" in wanted:
        facts["checkpoints"] = result.checkpoints_to_json()
    if "events" in wanted:
        facts["events"] = [event.to_json() for event in result.events]
    return {name: value for name, value in facts.items() if name == "output" or value is not None}


def _checked(report: Report) -> dict[str, Json]:
    return {"valid": report.ok, "diagnostics": [_diagnostic(each) for each in report]}


def _refused(report: Report) -> dict[str, Json]:
    if report.errors and all(each.code.startswith(NOT_EXECUTED) for each in report.errors):
        return {"skip": report.errors[0].message}
    return _checked(report)


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Json]:
    facts = {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "file": diagnostic.file,
        "pointer": diagnostic.pointer,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "hint": diagnostic.hint,
        "aws": diagnostic.aws and diagnostic.aws.to_json(),
    }
    return {name: value for name, value in facts.items() if value is not None}


def serve(
    requests: TextIO,
    answers: TextIO,
    answer: Callable[[Mapping[str, Json]], dict[str, Json]] = observe,
) -> None:
    """Answer every line of *requests* with one line, until there is none."""
    for line in requests:
        request = json.loads(line)
        answers.write(compact({"id": request["id"], **answer(request)}) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a TextIOWrapper here
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a TextIOWrapper here
    serve(sys.stdin, sys.stdout)
