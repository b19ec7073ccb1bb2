"""Decoding of history records from a journal (`asl.engine.record_writer` encodes them)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.execution import Execution
from asl.engine.frame import NO_VARIABLES, Frame
from asl.engine.journal_values import read_error, read_usage, write_error
from asl.engine.record_writer import includes_next_stretch
from asl.engine.records import (
    AGAIN,
    BROKEN,
    CAUGHT,
    EXITED,
    FAILED,
    RETRIED,
    STRETCH,
    WHOLE,
    WHOLE_PATH,
)
from asl.engine.usage import NO_USAGE
from asl.expr.frame import assign_variables
from asl.program import Machine, Program, Step
from asl.states.calls import CallOptions
from asl.states.effects import ABSENT, Record

__all__ = ["RecordReader", "read_beginning"]

_NOBODY: Any = None
"""Effects of a frame that is only part of a history."""
_VARIABLES = {STRETCH: (2, 6), EXITED: (2, 3)}
"""Index of the variables in a record, after its state."""
_SHORT = 7
"""Length of a stretch of no states."""
_FAILING = (FAILED, RETRIED, CAUGHT, BROKEN)
"""Kinds of records whose first value is an error."""
_GOING_ON = (STRETCH, AGAIN, EXITED)
"""Kinds of records after which an error is a new one."""


def read_beginning(first: Json) -> Json:
    """Return the start time of a machine and the usage by then, from its first record."""
    usage = first[6] if len(first) == _SHORT else first[7]  # only stretches have it
    return first[1], usage["usage"]


class RecordReader:
    """Decodes records, and creates the frames of their machines.

    Args:
        execution: The execution.
        later: Records that follow, which share the machines.
        program_of: Returns the program of a document by its hash, for an execution that has had
            several.
    """

    def __init__(
        self,
        execution: Execution,
        later: Iterable[Record] = (),
        program_of: Callable[[str], Program] | None = None,
    ) -> None:
        program = execution.program
        self._program_of = program_of
        top = Frame().init(execution, _NOBODY, program.machine.start, None, execution.started, {})
        self._frames: dict[str, Frame] = {"": top, WHOLE_PATH: top}
        self._frames |= {record[2].path: record[2] for record in later}
        self._last: dict[str, list[Json]] = {}
        self._failures: dict[str, StateError] = {}
        self._within: dict[str, list[StateError]] = {}
        self._program, self._steps = program, _steps(program.machines)
        self._own: dict[str, dict[str, Step]] = {}
        """States of machines of included documents with computed parameters, by path."""

    def begin(self, document: str) -> None:
        """Read the following records with the document of this hash."""
        if self._program_of is not None:
            self._program = self._program_of(document)
            self._steps = _steps(self._program.machines)

    def read(self, path: str, written: Json) -> Iterator[Record]:
        """Yield the one or two records that a written record of the machine at *path* contains."""
        record = self._read_one(path, written)
        yield record
        if includes_next_stretch(written):
            _, time, frame, visit, _, _, data, _, variables, goto = record
            yield (
                STRETCH, time, frame, visit + 1, goto, goto, data, variables, NO_USAGE, 0, data,
                variables,
            )  # fmt: skip

    def _read_one(self, path: str, written: Json) -> Record:
        kind, time, visit, pointer, *rest = written
        steps = self._steps_of(path)
        seen: list[Json] = []
        last = self._last.get(path, [])
        values: list[Any] = []
        for value in rest:
            if type(value) is dict and ("step" in value or "enter" in value):
                values.append(steps[next(iter(value.values()))])
            else:
                values.append(self._value(value, values, seen, last))
        self._last[path] = seen
        if kind in _FAILING:
            values[0] = self._failure(path, values[0], kind == BROKEN)
        elif kind in _GOING_ON:
            self._failures.pop(path, None)
        if kind == WHOLE and "document" in values[1]:
            self.begin(values[1]["document"])
        step = None if pointer is None else steps[pointer]
        if kind == STRETCH and len(written) == _SHORT:
            values = [step, *values, 0, *values[:2]]
        for slot in _VARIABLES.get(kind, ()):
            if values[slot] is None:
                values[slot] = NO_VARIABLES
        first = next((value for value in (step, *values) if isinstance(value, Step)), None)
        return (kind, time, self._frame(path, first), visit, step, *values)

    def _failure(self, path: str, error: StateError, ends: bool) -> StateError:
        """Return the same error object with which the machine, or one within it, has just failed.

        The first record of an error determines its origin.
        """
        written = write_error(error)
        known = self._failures.get(path)
        for each in [*([] if known is None else [known]), *self._within.pop(path, ())]:
            if write_error(each) == written:
                error = each
                break
        self._failures[path] = error
        if ends and path:
            self._within.setdefault(path.rpartition("/")[0], []).append(error)
        return error

    def _frame(self, path: str, step: Step | None) -> Frame:
        """Return the frame of a path (`/Each@12.0[17]`); *step* is a state of its machine."""
        known = self._frames.get(path)
        if known is not None:
            return known
        parent, forking, effect, index = self._fork(path)
        visit, ordinal = map(int, effect.split("."))
        parent.fork_origin = forking, visit, ordinal
        if step is None:  # a child of a distributed Map has only block events
            forked = self._program.forked_machine(forking, index)
            step = None if forked is None else forked.start
        frame = self._frames[path] = Frame().init(
            parent.execution, _NOBODY, step or parent.step, None, parent.now, {}
        )
        frame.parent, frame.origin, frame.index = parent, parent.fork_origin, index
        return frame

    def _fork(self, path: str) -> tuple[Frame, Step, str, int]:
        """Return the origin of the machine at *path*: frame, state, visit and effect, index."""
        above, _, last = path.rpartition("/")
        place, _, index = last[:-1].rpartition("[")
        name, _, effect = place.rpartition("@")
        parent = self._frame(above, None)
        machine = parent.step.pointer.rpartition("/")[0]
        return parent, self._steps_of(above)[f"{machine}/{name}"], effect, int(index)

    def fill(self, path: str, values: Json) -> None:
        """Register the states of an included document that runs at *path* with these parameters."""
        _, include, *_ = self._fork(path)
        assert include.fill is not None
        self._own[path] = _steps(include.fill(values))

    def _steps_of(self, path: str) -> Mapping[str, Step]:
        """Return the states of the machine at *path* by their pointers."""
        while path and self._own:
            if path in self._own:
                return self._own[path]
            path = path.rpartition("/")[0]
        return self._steps

    def _value(self, written: Json, values: list[Any], seen: list[Json], last: list[Json]) -> Any:
        """Return a decoded value.

        Args:
            written: The encoded value.
            values: Values decoded before it in the same record.
            seen: Containers of these values.
            last: Containers of the machine's previous record.
        """
        if type(written) is not dict:
            return written
        ((mark, content),) = written.items()
        if mark not in ("json", "variables", "=", "<", "+"):
            return self._read(mark, content)
        if mark == "variables":
            value: Json = assign_variables(*content)
        elif mark == "+":
            index, member = content
            value = {**last[index], member: values[0]}
        else:
            value = content if mark == "json" else (seen if mark == "=" else last)[content]
        seen.append(value)
        return value

    def _read(self, mark: str, content: Json) -> Any:
        if mark == "absent":
            return ABSENT
        if mark == "error":
            return read_error(content)
        if mark == "usage":
            return read_usage(content)
        return CallOptions(*content)


def _steps(machines: Mapping[str, Machine]) -> dict[str, Step]:
    """Return the states of all machines by their pointers."""
    return {step.pointer: step for machine in machines.values() for step in machine.steps.values()}
