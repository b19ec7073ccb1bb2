"""Real processes that run executions and are killed: `python -m tests.stores.kills.lives`.

The server has imported everything and forks a process for each life, which costs a few
milliseconds. It reads a life as a line of JSON and answers with what came of it. A life ends by
itself, by SIGKILL that it sends to itself at a named instant, or by one from outside.
"""

import asyncio
import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asl import VirtualClock, compile
from asl.effects.journaled import log
from asl.executions import Store
from tests.stores.kills.broken import VARIANTS
from tests.stores.kills.scenes import CHILD, SCENES, answer, pause

PROGRAMS = {scene.name: compile(scene.document) for scene in SCENES.values()}
CHILD_PROGRAM = compile(CHILD)
AGENTS = ("Work", "Optimist", "Sceptic")
EPOCH = 1_704_067_200.0

__all__ = ["End", "Life", "Server", "server"]


@dataclass
class Life:
    """What one process is to do, and when it dies."""

    scene: str
    store: str
    log: str
    clock: float
    """The virtual time at which it begins."""
    point: str = ""
    """The instant at which it dies, `*` for any of them, empty for none."""
    times: int = 0
    """At which one of these instants."""
    after: float | None = None
    """The real seconds after which it is killed from outside."""
    answers: list[list[Any]] = field(default_factory=list)
    """The requests that it answers first, and how."""
    replies: list[list[Any]] = field(default_factory=list)
    """The task tokens that it answers, too."""
    variant: str = ""
    """The fault that is planted."""


@dataclass
class End:
    """What came of a life."""

    killed: bool
    statuses: dict[str, str] = field(default_factory=dict)
    """The status of each execution, if it was not killed."""
    reached: dict[str, int] = field(default_factory=dict)
    """How often each instant was reached."""
    said: str = ""
    """The traceback of a fault."""


class Agent:
    """Answers, and writes down every call before: what is written survives the process."""

    def __init__(self, log: str, clock: VirtualClock, spends: bool) -> None:
        self.clock = clock
        self.spends = spends
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, line: dict[str, Any]) -> None:
        os.write(self.log, json.dumps({**line, "life": os.getpid()}).encode() + b"\n")

    def called(self, parameters: Any, call: Any) -> None:
        self.write(
            {
                "key": call.idempotency_key,
                "attempt": call.attempt,
                "parameters": parameters,
                "now": self.clock.now(),
            }
        )

    async def answer(self, parameters: Any, call: Any) -> Any:
        self.called(parameters, call)
        await call.sleep(pause(parameters))
        return answer(parameters, call.attempt, self.spends)

    def answer_at_once(self, parameters: Any, call: Any) -> Any:
        self.called(parameters, call)
        return answer(parameters, call.attempt, self.spends)


def live(life: Life) -> dict[str, Any]:
    """Go on with all executions of a scene until they end, wait for people, or the process dies."""
    scene, clock = SCENES[life.scene], VirtualClock(life.clock)
    log.MIN_WEIGHT = scene.worth
    agent = Agent(life.log, clock, scene.spends)
    work = agent.answer if scene.sleeps else agent.answer_at_once
    store = Store(
        life.store,
        synchronous="OFF",
        clock=clock,
        agents=dict.fromkeys(AGENTS, work),
        resources={"arn:aws:states:::sqs:*": work},
        workflows={"child": CHILD_PROGRAM},
    )
    counted: dict[str, int] = {}

    def reached(point: str) -> None:
        counted[point] = counted.get(point, 0) + 1
        times = sum(counted.values()) if life.point == "*" else counted[point]
        if life.point in ("*", point) and times == life.times:
            os.kill(os.getpid(), signal.SIGKILL)

    store.session.on_fail_point = reached
    with VARIANTS[life.variant]() if life.variant else _as_it_is():
        for id, option in life.answers:
            store.answer(id, option, by="ann", timestamp="2030-01-01T00:00:00Z")
            agent.write({"answered": id, "option": option})
        for token, output in life.replies:
            store.tokens.send_task_success(token, output)
            agent.write({"answered": token, "option": output})
        if scene.sleeps:
            results = asyncio.Runner(loop_factory=clock.new_event_loop).run(_all(store, life.scene))
        else:
            results = [
                store.run(PROGRAMS[life.scene], data, name=f"e{number}")
                for number, data in enumerate(scene.inputs)
            ]
        store.close()
    statuses = {f"e{number}": result.status for number, result in enumerate(results)}
    return {"statuses": statuses, "reached": counted}


async def _all(store: Store, name: str) -> list[Any]:
    scene = SCENES[name]
    return await asyncio.gather(
        *(
            _one(store, PROGRAMS[name], data, f"e{number}")
            for number, data in enumerate(scene.inputs)
        )
    )


async def _one(store: Store, program: Any, data: Any, name: str) -> Any:
    """Run an execution; one that has failed goes on from there."""
    result = await store.arun(program, data, name=name)
    return await store.aredrive(name) if result.status == "FAILED" else result


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


# The server


def _fork(life: Life) -> End:
    """Run a life in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        _child(life, read, write)
    os.close(write)
    if life.after is not None:
        select.select([read], [], [], life.after)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return End(True)
    if not said.startswith(b"{"):
        return End(False, said=said.decode())
    return End(False, **json.loads(said))


def _child(life: Life, read: int, write: int) -> None:
    """Live, say what came of it and leave without a trace of the server."""
    os.close(read)
    try:
        said = json.dumps(live(life))
    except BaseException:
        import traceback

        said = traceback.format_exc()
    os.write(write, said.encode())
    os._exit(0)


def main() -> None:
    """Serve until the input ends."""
    with TemporaryDirectory() as folder:  # loads all that a life needs
        for name in SCENES:
            live(Life(name, f"{folder}/{name}.db", f"{folder}/log", EPOCH))
    gc.collect()
    gc.freeze()  # the children share these pages and do not touch them
    for line in sys.stdin:
        print(json.dumps(asdict(_fork(Life(**json.loads(line))))), flush=True)


class Server:
    """The server as its client sees it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )

    def live(self, life: Life) -> End:
        """Run one life."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asdict(life)) + "\n")
        self.process.stdin.flush()
        return End(**json.loads(self.process.stdout.readline()))


@contextmanager
def server() -> Iterator[Server]:
    """Start a server; it ends with its input."""
    running = Server()
    with running.process:
        yield running


if __name__ == "__main__":
    main()
