"""A run of a distributed Map: every iteration is an execution of its own (Specification 6.3).

A child sees no variables and no history of its parent, has its own `$$.Execution`, and leaves no
records behind: what becomes of it, its parent is told and nobody else.
"""

from asl.core.values import Json
from asl.engine.execution import Execution
from asl.engine.frame import Frame, digest
from asl.program import Machine
from asl.states.host import Record

__all__ = ["MapRun"]


class ChildExecution(Execution):
    """The execution of one iteration. What it uses counts for its parent, too."""

    recorded = False

    def __init__(self, parent: Execution, run: "MapRun", data: Json, started: float) -> None:
        super().__init__(parent.program, data, "", started, [], run.express)
        self.emit = _unrecorded
        self.parent = parent
        self.prices = parent.prices
        self.home, self.workflow = parent.home, run.workflow
        self.run = run.id
        self.index = 0

    @property
    def name(self) -> str:
        """The name, made of that of the run and the number of the iteration."""
        return f"{self.run}-{self.index}"

    def account(self, state: str, result: Json) -> None:
        """Count the usage that an agent reports, here and in the whole."""
        super().account(state, result)
        self.parent.account(state, result)


class MapRun:
    """One run: its names, and its children (protocol `asl.states.host.Run`)."""

    def __init__(self, at: Frame, machine: Machine, label: str, express: bool, pure: bool) -> None:
        self.at = at
        self.machine = machine
        self.express = express
        self.pure = pure
        self.workflow = f"{at.execution.workflow}/{label}"
        self.id = _uuid(digest(at.execution.id, at.visit_key, at.retries))
        self.arn = f"{at.execution.home}:mapRun:{self.workflow}:{self.id}"
        at.begin_fork()
        self.view = at.child(0, machine, None, None).before_start()
        self.spare: tuple[Frame, ChildExecution] | None = None
        """The last child, where its frame may be used again."""

    def selected(self, index: int, item: Json, source: str) -> Frame:
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        view = self.view
        view.index, view.item, view.source = index, item, source
        view.drawn = -1, 0
        return view

    def child(self, index: int, data: Json, item: Json, source: str) -> Frame:
        """Return the frame of a child execution, standing at its start.

        Children of pure states never wait, so one frame serves them all: making it anew is half of
        what such a child costs.
        """
        now = self.at.now
        if self.spare is None:
            execution = ChildExecution(self.at.execution, self, data, now)
            frame = Frame(execution, self.at.host, self.machine.start, data, now, {})
            frame.parent, frame.origin = self.at, self.at.forking
            if self.pure:
                self.spare = frame, execution
        else:
            frame, execution = self.spare
            execution.input, execution.started = data, now
            frame.step, frame.data, frame.now, frame.variables = self.machine.start, data, now, {}
            frame.visit = 0
            frame.drawn = -1, 0
        execution.index = frame.index = index
        frame.item, frame.source = item, source
        return frame


def _uuid(digits: str) -> str:
    """Return a version 4 UUID of hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def _unrecorded(record: Record) -> None:
    """Keep no record."""
