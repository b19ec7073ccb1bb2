"""The journal: what a host keeps of an execution so that it survives, as plain JSON.

An execution is a tree of machines. Each machine has at most one *position* (where it stood when a
state began) and the *answers* of the effects since then. Recovery runs a machine from its position
again: pure states are computed anew, an effect with an answer is not performed a second time
(design of durability: docs/notes/durability.md). Records of the history are written once each.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json
from asl.engine.awaited import Awaited
from asl.engine.checkpoints import Checkpoint
from asl.engine.events import HistoryFull
from asl.engine.execution import NO_USAGE, Execution, Spent, Usage
from asl.engine.frame import NO_VARIABLES, Frame
from asl.engine.records import AGAIN, BROKEN, CAUGHT, EXITED, FAILED, RETRIED, STRETCH, WHOLE
from asl.expr.frame import Variables, assigned
from asl.expr.references import member_of
from asl.program import Machine, Program, Step
from asl.states.calls import Options
from asl.states.decisions import Asked
from asl.states.errors import HeartbeatMissed, Raised, Reported
from asl.states.host import ABSENT, Record

if TYPE_CHECKING:
    from asl.engine.result import Result

__all__ = [
    "STARTED",
    "WHOLE_PATH",
    "Journal",
    "RecordReader",
    "read_beginning",
    "read_error",
    "read_spending",
    "read_spent",
    "read_usage",
    "tells_next",
    "written_error",
    "written_record",
    "written_spending",
    "written_spent",
    "written_usage",
    "written_whole",
]

STARTED = "!"
"""Ends the key of an effect under which stands which execution it has started, and when."""
WHOLE_PATH = "*"
"""Where records of the execution as a whole stand, beside the paths of machines."""


class Journal(Protocol):
    """Where one execution is kept. What is put is durable once `commit` has returned."""

    positions: dict[str, Json]
    """Positions found at recovery, by the path of the machine."""
    answers: dict[str, Json]
    """Answers found at recovery, by the key of the effect."""
    recorded: dict[str, int]
    """How many records each machine had written before, by its path."""
    began: dict[str, Json]
    """When each child began, and what had been spent by then, by its path."""

    requests: dict[str, Asked]
    """Requests found at recovery, by the key of the effect."""
    tasks: dict[str, Awaited]
    """The same of those that are answered by task token."""

    at_work: set[int]
    """Stands for the executions that may put something into the same transaction."""
    reached: Callable[[str], object]
    """Called at named instants, for tests that end the process there."""
    commit_soon: Callable[[], object]
    """Makes all that was put durable by the end of this turn of the event loop."""
    saved: list[tuple[str, str]]
    """Ids and names of the checkpoints found at recovery."""
    paused: bool
    """Whether the execution was paused when it was found."""

    @property
    def gathered(self) -> int:
        """The bytes that were put and wait for the next commit."""
        ...

    def records_of(self, reader: "RecordReader") -> Iterable[Record]:
        """Return the records that were found at recovery, in order; *reader* reads them."""
        ...

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has had, by its hash."""
        ...

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Keep where a machine stands, instead of its earlier position and its answers.

        Of the machines that it has forked, those whose paths begin with *kept* stay. Returns the
        size of the position in bytes.
        """
        ...

    def stand(self, position: Json, kept: str) -> None:
        """Say where the top machine stands at the end, if the execution has not succeeded."""
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        ...

    def put_answer(self, key: str, answer: Json) -> int:
        """Keep an answer; returns its size in bytes."""
        ...

    @property
    def latest(self) -> tuple[int, int] | None:
        """Stands for the answer that was put last, None once it is written."""
        ...

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return what stands in a record for the value of an answer, None once that is written."""
        ...

    def put_request(self, asked: Asked, received: bool = False) -> None:
        """Keep a request, or what became of an open one; with *received* its answers, too."""
        ...

    def cut_off(self, within: str, now: float) -> None:
        """Give up the machines whose paths begin so: what they ask, what they have started."""
        ...

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Keep what the execution came to."""
        ...

    def take_up(self, id: str) -> None:
        """Say that the answer to a request has been gone on with."""
        ...

    def put_task(self, task: Awaited) -> None:
        """Keep a new request that is answered by its token."""
        ...

    def put_sign(self, task: Awaited) -> None:
        """Keep that somebody has taken a task, or is at work on it."""
        ...

    def put_outcome(self, task: Awaited) -> None:
        """Keep what became of a task that was open."""
        ...

    def look(self, task: Awaited) -> None:
        """Read what others have said of a task meanwhile."""
        ...

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        ...

    def put_last_record(self, path: str, record: Json) -> int:
        """Append that of a child which says what it came to; returns its size in bytes."""
        ...

    def put_filled(self, path: str, values: Json) -> None:
        """Keep what the data has filled in, in the machine of an included document."""
        ...

    spending: Json
    """What the execution had spent at recovery, None for nothing."""

    def put_spending(self, spending: Json) -> None:
        """Keep what the execution has spent."""
        ...

    def put_result(self, result: "Result", until: float | None = None) -> None:
        """Keep what the execution came to, or that it waits: *until* something happens, at most."""
        ...

    def flush(self) -> None:
        """Make all that was put durable at once."""
        ...

    def commit(self, together: bool) -> Awaitable[None]:
        """Return what is done when all that was put is durable.

        *together* with what others put in this turn of the event loop, otherwise at once.
        """
        ...


# Errors and usage

_ERRORS: Mapping[str, Callable[[str | None, str | None], StateError]] = {
    "StateError": StateError,
    "Raised": Raised,
    "Reported": Reported,
    "HeartbeatMissed": lambda name, cause: HeartbeatMissed(cause),
    "HistoryFull": lambda name, cause: HistoryFull(),
}


def written_error(error: StateError) -> Json:
    """Return an error as JSON: its kind, name and cause, and where an expression failed."""
    if isinstance(error, EvaluationFailed):
        return ["EvaluationFailed", error.location, error.cause]
    kind = type(error).__name__
    return [kind if kind in _ERRORS else "StateError", error.name, error.cause]


def read_error(written: Json) -> StateError:
    """Return the error again."""
    kind, name, cause = written
    if kind == "EvaluationFailed":
        return EvaluationFailed(cause, name)
    return _ERRORS[kind](name, cause)


def written_usage(usage: Usage) -> Json:
    """Return usage as JSON, money as text; without what may be spent where nothing limits it."""
    written = [str(usage.cost), usage.tokens]
    return written if usage.max_cost is None else [*written, str(usage.max_cost)]


def read_usage(written: Json) -> Usage:
    """Return the usage again."""
    cost, tokens, *most = written
    return Usage(Decimal(cost), tokens, Decimal(most[0]) if most else None)


def written_spending(execution: Execution) -> Json:
    """Return what an execution has spent so far as JSON: in all, by state, by model, its ledger."""
    tables = (execution.by_state, execution.by_model)
    written = [
        written_usage(execution.usage),
        *({key: [str(cost), used] for key, (cost, used) in table.items()} for table in tables),
    ]
    return written if execution.ledger is None else [*written, execution.ledger.written()]


def read_spending(written: Json, execution: Execution) -> None:
    """Let an execution have spent this already; its ledger is read when it is opened."""
    total, *tables = written[:3]
    execution.usage = read_usage(total)
    for table, found in zip((execution.by_state, execution.by_model), tables, strict=True):
        table.update({key: (Decimal(cost), used) for key, (cost, used) in found.items()})


def written_spent(spent: Spent) -> Json:
    """Return what an execution has spent, in all and by model, as JSON."""
    models = {key: [str(cost), used] for key, (cost, used) in spent.by_model.items()}
    return [written_usage(spent.usage), models]


def read_spent(written: Json) -> Spent:
    """Return it again."""
    total, models = written
    found = {key: (Decimal(cost), used) for key, (cost, used) in models.items()}
    return Spent(read_usage(total), found)


# Records of the history


def written_whole(time: float, event: str, details: dict[str, Json]) -> Json:
    """Return a record of the execution as a whole as JSON."""
    return [WHOLE, time, 0, None, event, {"json": details}]


_NOBODY: Any = None
"""The host of a frame that only stands for a machine of the past."""


def written_record(
    record: Record,
    last: Sequence[int] = (),
    given: Json = None,
    reference: Json = None,
    whole: bool = False,
) -> tuple[Json, Sequence[int]]:
    """Return `[kind, time, visit, state or null, ...]`, and the identities of the containers in it.

    A container that stood in this record already, or in the *last* one of its machine, is written
    as a reference to there: a state's input is the output of the state before. Of an output that
    is the input with the answer as a member only that member is written; where it is to be *whole*,
    it stands in this record. The value *given*, a container or a text, is written as the
    *reference* to where it stands. What stood where is known by identity, so the last record must
    be alive. A stretch of no states ends as it begins, and its end is left out; one that follows
    from the end of a state is not written at all, see `tells_next`; nor are variables where the
    machine has had none.
    """
    seen: list[int] = []
    kind = record[0]
    if kind is STRETCH:
        return _written_stretch(record, seen, last, given, reference), seen
    if kind is EXITED:
        return _written_exit(record, seen, last, given, reference, whole), seen
    _, time, _, visit, step, *rest = record
    slots = [_written(value, seen, last, given, reference) for value in rest]
    return [kind, time, visit, None if step is None else step.pointer, *slots], seen


_Seen: TypeAlias = Sequence[int]
"""The identities of the containers of a record."""


def _written_stretch(
    record: Record, seen: list[int], last: _Seen, given: Json, reference: Json
) -> Json:
    _, time, _, visit, step, first, data, variables, usage, count, output, after = record
    pointer = None if step is None else step.pointer
    begun = _written(data, seen, last, given, reference)
    own = None if variables is NO_VARIABLES else _written(variables, seen, last)
    if count == 0:
        return [STRETCH, time, visit, pointer, begun, own, _spent(usage)]
    left = _written(output, seen, last, given, reference)
    then = None if after is NO_VARIABLES else _written(after, seen, last)
    first = {"step": first.pointer}
    return [STRETCH, time, visit, pointer, first, begun, own, _spent(usage), count, left, then]


def _written_exit(
    record: Record, seen: list[int], last: _Seen, given: Json, reference: Json, whole: bool
) -> Json:
    _, time, frame, visit, step, answer, output, variables, after, goto = record
    before = () if whole else last
    result = _written(answer, seen, before, given, reference)
    member, data = None if answer is ABSENT else member_of(step.finish), id(frame.data)
    if member is not None and data in before:
        left = {"+": [before.index(data), member]}
        seen.append(id(output))
    else:
        left = _written(output, seen, before, given, reference)
    own = None if variables is NO_VARIABLES else _written(variables, seen, last)
    then = None if after is NO_VARIABLES else _written(after, seen, last)
    following = {"enter": goto.pointer} if _begins_next(record) else _step(goto)
    return [EXITED, time, visit, step.pointer, result, left, own, then, following]


def _begins_next(exited: Record) -> bool:
    """Whether a state that reaches the world begins where this one ends, with what it leaves.

    The interpreter emits the record of that, a stretch of no states, at once; nothing of it is new.
    """
    frame, goto = exited[2], exited[9]
    if goto is None or goto.work is None:
        return False
    execution = frame.execution
    return execution.usage is NO_USAGE and (
        execution.program.between is None or frame.parent is not None
    )


def tells_next(written: Json) -> bool:
    """Whether a written record stands for that stretch, too."""
    return written[0] == EXITED and written[-1] is not None and "enter" in written[-1]


def _written(
    value: Any, seen: list[int], last: _Seen, given: Json = None, reference: Json = None
) -> Json:
    """Return what is written of a value; a container is seen from here on."""
    of = type(value)
    if of in _SIMPLE:
        return value if of is not str or value is not given else reference
    identity = id(value)
    written: Json
    if identity in seen:
        written = _HERE[seen.index(identity)]
    elif value is given:
        written = reference
    elif identity in last:
        written = _BEFORE[last.index(identity)]
    elif of is dict or of is list:
        written = {"json": value}
    elif of is Variables:
        written = {"variables": [value, value.assigned]}
    else:
        return _marked(value)
    seen.append(identity)
    return written


_SIMPLE = frozenset({type(None), bool, int, float, str})
_VARIABLES = {STRETCH: (2, 6), EXITED: (2, 3)}
"""Where variables stand in a record, behind its state."""
_SHORT = 7
"""The length of a stretch of no states."""
_HERE: Sequence[Json] = [{"=": index} for index in range(8)]
_BEFORE: Sequence[Json] = [{"<": index} for index in range(8)]


def _marked(value: Any) -> Json:
    """Return what is no JSON under the name of its kind."""
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, Step):
        return _step(value)
    if isinstance(value, Usage):
        return _spent(value)
    if isinstance(value, StateError):
        return {"error": written_error(value)}
    if isinstance(value, Options):
        return {"options": [value.timeout, value.heartbeat, value.state, value.credentials]}
    raise TypeError(f"no record holds {type(value).__name__}")


def _step(step: Step | None) -> Json:
    return None if step is None else {"step": step.pointer}


def _spent(usage: Usage) -> Json:
    return _NOTHING_SPENT if usage is NO_USAGE else {"usage": written_usage(usage)}


_NOTHING_SPENT = {"usage": written_usage(NO_USAGE)}


def read_beginning(first: Json) -> Json:
    """Return when a machine began and what had been spent by then, from its first record."""
    usage = first[6] if len(first) == _SHORT else first[7]  # it is of a stretch
    return first[1], usage["usage"]


_FAILING = (FAILED, RETRIED, CAUGHT, BROKEN)
"""The kinds of records whose first value is an error."""
_GOING_ON = (STRETCH, AGAIN, EXITED)
"""The kinds after which an error is another one."""


class RecordReader:
    """Turns JSON into records again, and paths into frames that stand for their machines.

    *later* are the records that follow: their machines are the same ones. *program_of* gives the
    program of a document by its hash, for an execution that has had several.
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
        """The states of machines that the data has filled in, by their paths."""

    def begin(self, document: str) -> None:
        """Read from now on by the document of this hash."""
        if self._program_of is not None:
            self._program = self._program_of(document)
            self._steps = _steps(self._program.machines)

    def read(self, path: str, written: Json) -> Iterator[Record]:
        """Yield what a written record of the machine at *path* stands for: one record, or two."""
        record = self._read_one(path, written)
        yield record
        if tells_next(written):
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
        """Return the very error that a machine, or one within it, has failed with just now.

        Which record told of it first says where it comes from.
        """
        written = written_error(error)
        known = self._failures.get(path)
        for each in [*([] if known is None else [known]), *self._within.pop(path, ())]:
            if written_error(each) == written:
                error = each
                break
        self._failures[path] = error
        if ends and path:
            self._within.setdefault(path.rpartition("/")[0], []).append(error)
        return error

    def _frame(self, path: str, step: Step | None) -> Frame:
        """Return the frame of a path: `/Each@12.0[17]`; *step* is one of its machine."""
        known = self._frames.get(path)
        if known is not None:
            return known
        parent, forking, effect, index = self._fork(path)
        visit, ordinal = map(int, effect.split("."))
        parent.forking = forking, visit, ordinal
        if step is None:  # of a child of a distributed Map only what it tells stands there
            forked = self._program.forked(forking, index)
            step = None if forked is None else forked.start
        frame = self._frames[path] = Frame().init(
            parent.execution, _NOBODY, step or parent.step, None, parent.now, {}
        )
        frame.parent, frame.origin, frame.index = parent, parent.forking, index
        return frame

    def _fork(self, path: str) -> tuple[Frame, Step, str, int]:
        """Return what has forked the machine at *path*: frame, state, visit and effect, index."""
        above, _, last = path.rpartition("/")
        place, _, index = last[:-1].rpartition("[")
        name, _, effect = place.rpartition("@")
        parent = self._frame(above, None)
        machine = parent.step.pointer.rpartition("/")[0]
        return parent, self._steps_of(above)[f"{machine}/{name}"], effect, int(index)

    def fill(self, path: str, values: Json) -> None:
        """Know the states of the included document that runs at *path* with these values."""
        _, include, *_ = self._fork(path)
        assert include.fill is not None
        self._own[path] = _steps(include.fill(values))

    def _steps_of(self, path: str) -> Mapping[str, Step]:
        """Return the states by their pointers as the machine at *path* knows them."""
        while path and self._own:
            if path in self._own:
                return self._own[path]
            path = path.rpartition("/")[0]
        return self._steps

    def _value(self, written: Json, values: list[Any], seen: list[Json], last: list[Json]) -> Any:
        """Return what is written in a record behind *values*; *seen* are the containers of these.

        Those of the record before are the *last*.
        """
        if type(written) is not dict:
            return written
        ((mark, content),) = written.items()
        if mark not in ("json", "variables", "=", "<", "+"):
            return self._read(mark, content)
        if mark == "variables":
            value: Json = assigned(*content)
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
        return Options(*content)


def _steps(machines: Mapping[str, Machine]) -> dict[str, Step]:
    """Return the states of all machines by their pointers."""
    return {step.pointer: step for machine in machines.values() for step in machine.steps.values()}
