"""Effects that share no code with those of the package: their own event loop, clock and ids.

Coroutines are driven by hand: whatever one yields is a time at which it wants to go on.
"""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from asl.core.errors import StateError
from asl.states.calls import Handover, Invocation, TargetCheck
from asl.states.effects import (
    CallEffect,
    CheckpointRequest,
    ChildWorkflow,
    FanIn,
    FanOut,
    Record,
    RequestContent,
    ServiceCall,
    StateFrame,
)
from asl.states.map_data import Bucket, ObjectFault

Interpret = Callable[[Any], Coroutine[Any, Any, Any]]
Agent = Callable[[Any], Any]


class At:
    """Awaited until a time."""

    def __init__(self, time: float) -> None:
        self.time = time

    def __await__(self) -> Generator[float, None, None]:
        yield self.time


class Loop:
    """An event loop whose time jumps to whatever comes next; also the runtime of an execution."""

    def __init__(self) -> None:
        self.time = 0.0
        self.queue: list[tuple[float, int, Coroutine[Any, Any, Any]]] = []
        self.numbers = count()
        self.waiting: dict[int, tuple[Callable[[Any], object], Callable[[StateError], object]]] = {}

    def now(self) -> float:
        return self.time

    def bucket(self, name: str) -> Bucket:
        raise ObjectFault(f"no bucket {name}")

    def ends(self, stop: BaseException) -> bool:
        return isinstance(stop, StateError)

    def spawn(self, work: Coroutine[Any, Any, Any], done: Any, failed: Any) -> None:
        self.waiting[id(work)] = done, failed
        heappush(self.queue, (self.time, next(self.numbers), work))

    def run(self) -> None:
        while self.queue:
            self.time, _, work = heappop(self.queue)
            done, failed = self.waiting[id(work)]
            try:
                heappush(self.queue, (max(self.time, work.send(None)), next(self.numbers), work))
            except StopIteration as end:
                done(end.value)
            except StateError as error:
                failed(error)


@dataclass
class ForeignEffects:
    """Agents are plain functions, people always approve, checkpoints are a list."""

    interpret: Interpret
    agents: dict[str, Agent]
    runtime: Loop = field(default_factory=Loop)
    direct: None = None
    history: list[Record] = field(default_factory=list)
    saved: list[str | None] = field(default_factory=list)

    def record(self, record: Record) -> None:
        self.history.append(record)

    async def call(self, at: StateFrame, effect: CallEffect) -> Any:
        at.count_effect()
        await At(self.runtime.time + 1)  # every call takes a second
        at.now = self.runtime.time
        match effect:
            case Invocation(target, payload) | Handover(target, payload):
                return self.agents[target.name](payload)
            case TargetCheck():
                return None
            case ServiceCall(service):
                raise StateError("Foreign.NoService", service)

    async def timer(self, at: StateFrame, when: float) -> None:
        at.count_effect()
        await At(when)
        at.now = self.runtime.time

    async def request(self, at: StateFrame, question: RequestContent) -> Any:
        at.count_effect()
        return {"record": {"approval": "approve"}, "goto": None}

    async def child(self, at: StateFrame, child: ChildWorkflow) -> Any:
        at.count_effect()
        return {"ran": child.workflow, "with": child.data}

    async def fan_out(self, at: StateFrame, fan: FanOut) -> FanIn:
        at.count_effect()
        at.begin_fork()
        results: dict[int, Any] = {}
        failures: list[StateError] = []
        assert fan.length is not None
        for index in range(fan.length):
            frame = fan.child(index)
            work = self.interpret(frame)
            self.runtime.spawn(work, partial(results.__setitem__, index), failures.append)
        while len(results) + len(failures) < fan.length:
            await At(self.runtime.time + 0.25)
        at.now = self.runtime.time
        if failures:
            raise failures[0]
        return FanIn([results[index] for index in range(fan.length)], 0)

    async def checkpoint(self, at: StateFrame, saving: CheckpointRequest) -> Any:
        at.count_effect()
        self.saved.append(saving.name)
        return saving.leave({"checkpoint": {"id": "1"}})

    async def yield_(self, at: StateFrame) -> None:
        await At(self.runtime.time)
        at.now = self.runtime.time


def drive(effects: ForeignEffects, work: Coroutine[Any, Any, Any]) -> tuple[Any, StateError | None]:
    """Run a coroutine to its end; return its value, or the error that it failed with."""
    ended: list[Any] = []
    failed: list[StateError] = []
    effects.runtime.spawn(work, ended.append, failed.append)
    effects.runtime.run()
    return (None, failed[0]) if failed else (ended[0], None)
