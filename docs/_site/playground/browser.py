"""The interpreter in a browser: check, draw and run a document.

A browser has neither threads nor sockets, so a run gets an event loop without them, which jumps to
the next timer. Agents are scripts, which need no threads.
"""

import asyncio
import json
from asyncio.events import _set_running_loop
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asl
from asl.agents.file import load_bindings
from asl.core.render.formats import diagnostic_to_json

START = 1_704_067_200.0
"""Time at which a run begins, 2024-01-01T00:00:00Z, as on the virtual clock."""
SECTIONS = ("agents", "resources", "mocks", "tools")
AGENTS = "agents.yaml"
"""Name of the agents file in diagnostics."""
MAX_EVENTS = 500
"""Events that the page shows of a run."""


class TimerLoop(asyncio.BaseEventLoop):
    """An event loop that advances to the next timer instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self.elapsed = 0.0

    def time(self) -> float:
        """Return the seconds since the start."""
        return self.elapsed

    def select(self, timeout: float | None) -> list[Any]:
        """Advance to the next timer.

        Raises:
            AslError: There is none, so nothing can happen any more.
        """
        if timeout is None:
            raise asl.AslError("an agent waits for something that cannot happen in the browser")
        self.elapsed += max(timeout, 0.0)
        return []

    def _process_events(self, events: list[Any]) -> None:
        """Do nothing: there are no files to read."""

    def _write_to_self(self) -> None:
        """Do nothing: no other thread waits for this one."""


class LoopClock(asl.WallClock):
    """The time of a loop, for an execution in it."""

    def __init__(self, loop: TimerLoop) -> None:
        self.external_waits = {}
        self.now = lambda: START + loop.elapsed


def check(document: str, profile: str) -> dict[str, Any]:
    """Return the diagnostics of a document."""
    report = asl.check(document, profile=profile)
    return {"diagnostics": [diagnostic_to_json(each) for each in report]}


def graph(document: str) -> dict[str, Any]:
    """Return the drawing of a document as SVG."""
    return {"svg": asl.graph(document, format="svg")}


def run(document: str, agents: str, input: str, profile: str) -> dict[str, Any]:
    """Run a document with scripted agents and return its result."""
    bindings = bindings_in(agents)
    given = json.loads(input) if input.strip() else {}
    with closing(TimerLoop()) as loop:
        clock = LoopClock(loop)
        result = loop.run_until_complete(
            asl.arun(document, given, profile=profile, clock=clock, **bindings)
        )
    return {
        "status": result.status,
        "output": result.output,
        "error": result.error,
        "cause": result.cause,
        "pending": result.pending,
        "elapsed": result.elapsed,
        "usage": dict(result.usage),
        "events": [
            {"at": each.timestamp - START, "type": each.type, "path": each.path}
            for each in result.events[:MAX_EVENTS]
        ],
    }


def bindings_in(text: str) -> Mapping[str, Any]:
    """Return the bindings in the text of an agents file, in YAML or JSON."""
    if not text.strip():
        return {}
    with TemporaryDirectory() as folder:
        path = Path(folder, AGENTS)
        path.write_text(text, encoding="utf-8")
        found = load_bindings(path)
    return {name: getattr(found, name) for name in SECTIONS}


CALLS: Mapping[str, Callable[..., dict[str, Any]]] = {"check": check, "graph": graph, "run": run}


def answer(call: str, arguments: str) -> str:
    """Return the result of a call as JSON; a failure is an object with `problem`."""
    _set_running_loop(None)  # Pyodide marks its own loop as running, also in plain calls
    try:
        result = CALLS[call](**json.loads(arguments))
    except asl.InvalidDocument as refused:
        result = {"diagnostics": [diagnostic_to_json(each) for each in refused.report]}
    except (asl.AslError, ValueError) as error:
        result = {"problem": str(error)}
    return json.dumps(result)
