"""A run of a distributed Map: every iteration is an execution of its own (Specification 6.3).

A child sees no variables and no history of its parent, has its own `$$.Execution`, and leaves no
records behind: what becomes of it, its parent is told, and whoever listens to the executions that
states start.
"""

from collections.abc import Iterator
from typing import Any, Self

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.events import PAUSED, error_details
from asl.engine.execution import Execution, Identity, Spent, Used
from asl.engine.frame import NO_VARIABLES, Frame, digest
from asl.engine.records import WHOLE
from asl.program import Machine
from asl.states.host import Entry, Fan, Record, Source

__all__ = ["MapRun"]

_NOTHING_DRAWN = (-1, 0)


class ChildExecution(Execution):
    """The execution of one iteration. What it uses counts for its parent, too."""

    recorded = False

    parent: Execution
    run: str
    """The id of the run."""
    latest: float
    """When the latest record was made."""

    def of(self, parent: Execution, run: "MapRun") -> Self:
        """Belong to a run, and return it."""
        self.init(parent.program, None, 0.0, [], run.identity)
        self.emit = _unrecorded
        self.parent, self.run = parent, run.id
        self.prices, self.ledger = parent.prices, parent.ledger
        return self

    def listen(self, listener: Any) -> None:
        """Have its events told; they are kept until it ends."""
        self.listener, self.emit = listener.of(self), self._tell

    def _tell(self, record: Record) -> None:
        self.latest = record[1]
        self.history.extend(record)
        for event in self.follower.news():
            self.listener(event)

    def end(self, status: str, details: dict[str, Json]) -> None:
        """Tell of its end, if it was told that it has begun."""
        if self.history:
            self.listener(self.follower.expander.end(status, self.latest, details))
            self.history, self.emit = [], _unrecorded

    @property
    def name(self) -> str:
        """The name, made of that of the run and the number of the iteration."""
        return f"{self.run}-{self.index}"

    def account(self, state: str, result: Json) -> Used:
        """Count the usage that an agent reports, here and in the whole."""
        super().account(state, result)
        return self.parent.account(state, result)

    def absorb(self, state: str, child: Spent, before: Spent | None = None) -> Used:
        """Count what an execution that *state* has started has spent, here and in the whole."""
        super().absorb(state, child, before)
        return self.parent.absorb(state, child, before)


class MapRun:
    """One run: its names, and its children (protocol `asl.states.host.Run`)."""

    def __init__(self, at: Frame, machine: Machine, label: str, express: bool, pure: bool) -> None:
        self.at = at
        self.machine = machine
        self.listener = at.listening()
        """Who listens to the children, None for nobody."""
        self.pure = pure and self.listener is None
        self.open: dict[int, Frame] = {}
        """Those that somebody listens to and that have not ended."""
        workflow_id = f"{at.execution.workflow_id}/{label}"
        self.identity = Identity(workflow_id=workflow_id, express=express)
        """Who its children are."""
        self.id = _uuid(digest(at.execution.id, at.visit_key, at.retries))
        self.arn = f"{workflow_id.replace(':stateMachine:', ':mapRun:')}:{self.id}"
        at.begin_fork()
        self.view = at.child(0, machine, None, None).before_start()

    def selected(self, index: int, item: Json, source: str) -> Frame:
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        view = self.view
        view.index, view.item, view.source = index, item, source
        view.drawn = _NOTHING_DRAWN
        return view

    def child(self, index: int, data: Json, item: Json, source: str) -> Frame:
        """Return the frame of a child execution, standing at its start."""
        at = self.at
        execution = ChildExecution().of(at.execution, self)
        frame = Frame().init(execution, at.host, self.machine.start, data, at.now)
        frame.parent, frame.origin = at, at.forking
        frame.index = execution.index = index
        execution.input, execution.started = data, at.now
        frame.item, frame.source = item, source
        if self.listener is not None:
            execution.listen(self.listener)
            self.open[index] = frame
        return frame

    def children(self, source: Source) -> Iterator[Frame]:
        """Yield a child for each item, which is its input.

        Children of pure states never wait, so one frame serves them all: making it anew is half of
        what such a child costs.
        """
        index = -1
        if self.pure:
            at, start = self.at, self.machine.start
            frame = self.child(0, None, None, "")
            execution = frame.execution
            for index, item in enumerate(source):
                if frame.visit:  # the last child took so long that it was interpreted
                    frame.visit, frame.step, frame.log = 0, start, None
                frame.index = execution.index = index
                frame.data = execution.input = item.input if type(item) is Entry else item
                frame.now = execution.started = at.now
                frame.item, frame.source = item, source.name
                frame.variables, frame.drawn = NO_VARIABLES, _NOTHING_DRAWN
                yield frame
        else:
            for index, item in enumerate(source):
                data = item.input if type(item) is Entry else item
                yield self.child(index, data, item, source.name)
        source.length = index + 1

    def told(self, fan: Fan) -> Fan:
        """Return a fan that tells how each child has ended, where anybody listens."""
        if self.listener is None:
            return fan
        kept, failed, aborted = fan.ended, fan.failed, fan.aborted
        assert kept is not None

        def on_end(child: Any, value: Json) -> None:
            self._end(child, "SUCCEEDED", {"output": value})
            kept(child, value)

        def on_failure(child: Any, error: StateError) -> StateError | None:
            self._end(child, "FAILED", error_details(error))
            return failed(child, error)

        def on_abort(child: Any) -> None:
            self._end(child, "ABORTED", {})
            aborted(child)

        return Fan(
            fan.length, fan.child, fan.limit, failed=on_failure, ended=on_end, aborted=on_abort
        )

    def _end(self, child: Any, status: str, details: dict[str, Json]) -> None:
        del self.open[child.index]
        child.execution.end(status, details)

    def pause(self) -> None:
        """Tell that the children which have not ended wait for people."""
        for child in self.open.values():
            child.emit((WHOLE, child.now, child, 0, None, PAUSED, {}))


def _uuid(digits: str) -> str:
    """Return a version 4 UUID of hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def _unrecorded(record: Record) -> None:
    """Keep no record."""
