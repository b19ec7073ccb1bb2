"""Rows of executions: identity, status and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from asl.core.errors import AslError
from asl.core.values import Json
from asl.stores.backend import Write
from asl.stores.errors import StoreDamaged
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Insert, Select, Update, at_most, below, one_of
from asl.stores.tables import EXECUTION, REQUEST

__all__ = [
    "BIND",
    "ENDED",
    "LARGEST_NUMBER",
    "MAKE_DUE",
    "STATUSES",
    "STORED",
    "UNREGISTERED",
    "ExecutionFilter",
    "ExecutionOrigin",
    "StoredExecution",
    "add_execution",
    "bind_as",
    "descendants",
    "due_executions",
    "end_descendants",
    "execution_of_number",
    "executions_of",
    "find_execution",
    "list_executions",
    "name_of",
    "numbers_below",
    "read_row",
    "read_value",
    "search_executions",
    "top_of",
]

ENDED: Final = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
"""The statuses of ended executions."""
STATUSES: Final = ("RUNNING", "PAUSED", *ENDED)
LARGEST_NUMBER: Final = 2**62
"""What the numbers of executions are below."""
DAMAGED: Final = "DAMAGED"
"""The listed status of an execution with a damaged row."""


class ExecutionOrigin(NamedTuple):
    """Where the execution of a registered state machine comes from; its name is its ARN."""

    workflow_id: str | None = None
    """ARN of the state machine; None for a document without registration."""
    role: str | None = None
    """Role ARN of the state machine."""
    version: str | None = None
    """Number of the version that it runs, None for a revision without one."""
    alias: str | None = None
    """Name of the alias by which it was started."""
    trace_header: str | None = None
    """Trace header of the request that started it."""


UNREGISTERED: Final = ExecutionOrigin()
"""ExecutionOrigin of an execution that is not one of a registered state machine."""


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """The row of an execution; times in seconds since the epoch.

    The last fields are those of its `ExecutionOrigin`.
    """

    number: int
    name: str
    workflow: str
    document: str
    profile: str
    express: bool
    requestor: str | None
    status: str
    started: float
    ended: float | None
    wake: float | None
    """Time of the next timeout or escalation."""
    error: str | None
    cause: str | None
    redrives: int
    parent: int | None
    """The number of its parent execution."""
    redriven: float | None
    """Time of the last redrive."""
    workflow_id: str | None = None
    role: str | None = None
    version: str | None = None
    alias: str | None = None
    trace_header: str | None = None


STORED: Final = tuple(StoredExecution.__slots__)
FIND = Select(EXECUTION, STORED, {"name": PARAMETER}, checked=True)
PAGE = Select(
    EXECUTION,
    STORED,
    {"parent": None, "number": below()},
    order=("-number",),
    limited=True,
    checked=True,
)
PAGE_OF_STATUS = Select(
    EXECUTION,
    STORED,
    {"status": PARAMETER, "parent": None, "number": below()},
    order=("-number",),
    limited=True,
    checked=True,
)
PAGE_OF_WORKFLOW = Select(
    EXECUTION,
    STORED,
    {"workflow_id": PARAMETER, "status": one_of(), "number": below()},
    order=("-number",),
    limited=True,
    checked=True,
    by="workflow_id",
)
STARTED_BY = Select(EXECUTION, ("number",), {"parent": one_of()})
STARTED_UNDER = Select(EXECUTION, ("number",), {"parent": PARAMETER, "name": one_of()})
OF_NUMBERS = Select(EXECUTION, STORED, {"number": one_of()}, order=("number",), checked=True)
PARENT_BY_NAME = Select(EXECUTION, ("parent",), {"name": PARAMETER})
PARENT = Select(EXECUTION, ("name", "parent"), {"number": PARAMETER})
DUE = Select(
    EXECUTION,
    ("name",),
    {"status": "PAUSED", "wake": at_most()},
    order=("wake",),
    by="wake",
)
VALUES = {
    column: Select(EXECUTION, (column,), {"number": PARAMETER}) for column in EXECUTION.values
}
ADD = Insert(
    EXECUTION,
    (
        "number",
        "name",
        "workflow",
        "document",
        "profile",
        "express",
        "input",
        "requestor",
        "status",
        "started",
        "written_by",
        "chain",
        "parent",
        "bound",
        *ExecutionOrigin._fields,
    ),
)
BIND = Update(EXECUTION, {"bound": PARAMETER}, {"number": PARAMETER})
MAKE_DUE: Final = Update(EXECUTION, {"wake": 0.0}, {"number": PARAMETER, "status": "PAUSED"})
"""Makes a paused execution due."""
NAME = Select(EXECUTION, ("name",), {"number": PARAMETER})
ABORT = Update(
    EXECUTION,
    {"status": "ABORTED", "ended": PARAMETER, "wake": None},
    {"number": one_of(), "status": one_of("RUNNING", "PAUSED")},
)
CLOSE = Update(
    REQUEST, {"status": "closed", "wake": None}, {"execution": one_of(), "status": "open"}
)


def add_execution(
    session: Session,
    stored: StoredExecution,
    data: bytes,
    written_by: str,
    chain: bytes,
    bound: bytes | None,
) -> None:
    """Store a new execution with the next commit.

    Args:
        session: The store.
        stored: The execution.
        data: The JSON text of its input.
        written_by: The version of the program that writes it.
        chain: The hash before its first step.
        bound: The packed names of its bindings.
    """
    session.begin(stored.name)
    session.write(
        ADD,
        stored.number,
        stored.name,
        stored.workflow,
        stored.document,
        stored.profile,
        int(stored.express),
        session.values.pack(data),
        stored.requestor,
        stored.status,
        stored.started,
        written_by,
        chain,
        stored.parent,
        bound,
        stored.workflow_id,
        stored.role,
        stored.version,
        stored.alias,
        stored.trace_header,
    )


def find_execution(session: Session, name: str) -> StoredExecution | None:
    """Return the execution of this name, None without one; pending changes are not written."""
    found = session.read_one(FIND, name)
    return None if found is None else read_row(session, found)


def execution_of_number(session: Session, number: int) -> StoredExecution | None:
    """Return the execution of a number, None without one."""
    found = session.select(OF_NUMBERS, [number]) if number < LARGEST_NUMBER else []
    return read_row(session, found[0]) if found else None


def read_row(session: Session, row: Sequence[Any]) -> StoredExecution:
    """Return the execution of a row of the columns `STORED`.

    Raises:
        StoreDamaged: The row is damaged.
    """
    *columns, whole = row
    values = dict(zip(STORED, columns, strict=True))
    for name, value in values.items():
        column = EXECUTION.columns[name]
        is_right = type(value) is column.type or (value is None and column.optional)
        session.check(is_right, f"the {name} of an execution")
    session.check(values["status"] in STATUSES, "the status of an execution")
    session.check(whole == 1, f"the execution {values['name']!r}")
    values["express"] = bool(values["express"])
    return StoredExecution(**values)


def list_executions(
    session: Session, *, status: str | None = None, before: int | None = None, limit: int = 50
) -> list[StoredExecution]:
    """Return a page of root executions, newest first.

    A damaged row has the status `DAMAGED`, and the damage as `cause`.

    Args:
        session: The store.
        status: Status of the executions; None for all.
        before: Number of the last execution of the previous page; None for the first page.
        limit: Maximum number.

    Raises:
        AslError: There is no such status.
    """
    values: list[str | int] = [LARGEST_NUMBER if before is None else before, limit]
    if status is None:
        return [_listed(session, row) for row in session.select(PAGE, *values)]
    if status not in STATUSES:
        *others, last = STATUSES
        raise AslError(f"an execution is {', '.join(others)} or {last}, not {status!r}")
    return [_listed(session, row) for row in session.select(PAGE_OF_STATUS, status, *values)]


class ExecutionFilter(NamedTuple):
    """Conditions on executions; None for no condition."""

    status: str | None = None
    workflow: str | None = None
    """Name of the workflow."""
    text: str | None = None
    """Part of the name, the workflow, the error or the cause, in any case."""
    since: float | None = None
    until: float | None = None
    """Limits of the start in epoch seconds, both included."""

    def accepts(self, stored: StoredExecution) -> bool:
        """Return whether an execution meets all conditions but that on its status."""
        return (
            (self.workflow is None or stored.workflow == self.workflow)
            and (self.since is None or stored.started >= self.since)
            and (self.until is None or stored.started <= self.until)
            and (self.text is None or self._has_text(stored))
        )

    def _has_text(self, stored: StoredExecution) -> bool:
        wanted = (self.text or "").casefold()
        texts = (stored.name, stored.workflow, stored.error, stored.cause)
        return any(wanted in each.casefold() for each in texts if each)


SCANNED: Final = 1000
"""Number of rows that a search reads at a time."""
MAX_SCANNED: Final = 20_000
"""Number of rows after which a search returns what it has found."""


def search_executions(
    session: Session, wanted: ExecutionFilter, *, before: int | None = None, limit: int = 50
) -> tuple[list[StoredExecution], int | None]:
    """Return a page of root executions that meet conditions, newest first.

    Returns:
        The executions, and the position `before` of the next page, None after the last one. A page
        may have fewer executions than the limit, or none, although others follow.

    Raises:
        AslError: There is no such status.
    """
    found: list[StoredExecution] = []
    for _ in range(MAX_SCANNED // SCANNED):
        rows = list_executions(session, status=wanted.status, before=before, limit=SCANNED)
        for each in rows:
            if wanted.accepts(each):
                found.append(each)
                if len(found) == limit:
                    return found, each.number
        if len(rows) < SCANNED or _is_before(rows[-1], wanted.since):
            return found, None
        before = rows[-1].number
    return found, before


def _is_before(stored: StoredExecution, time: float | None) -> bool:
    """Return whether an execution, and so all with a smaller number, started before a time."""
    return time is not None and stored.started < time - CLOCK_SKEW


CLOCK_SKEW: Final = 3600.0
"""Seconds by which the clocks of those who start executions may differ."""


def executions_of(
    session: Session, workflow_id: str, statuses: Sequence[str], before: int, limit: int
) -> list[StoredExecution]:
    """Return a page of the executions of a registered state machine, newest first.

    Args:
        session: The store.
        workflow_id: ARN of the state machine.
        statuses: Statuses of the executions.
        before: Number of the last execution of the previous page, or `LARGEST_NUMBER`.
        limit: Maximum number.
    """
    rows = session.select(PAGE_OF_WORKFLOW, workflow_id, [*statuses], before, limit)
    return [_listed(session, row) for row in rows]


def _listed(session: Session, row: Sequence[Any]) -> StoredExecution:
    """Return the execution of a row, also of a damaged one."""
    try:
        return read_row(session, row)
    except StoreDamaged as damage:
        number, name, workflow = row[:3]
        return StoredExecution(
            number, str(name), str(workflow), "", "", False, None, DAMAGED, 0.0, None, None,
            None, damage.what, 0, None, None,
        )  # fmt: skip


def read_value(session: Session, number: int, column: str) -> Json:
    """Return the value of a column (`input`, `output`, `usage`, `bound`), None without one.

    Pending changes are written first.
    """
    ((body,),) = session.select(VALUES[column], number)
    return None if body is None else session.values.unpack(body)


def name_of(session: Session, number: int) -> str | None:
    """Return the name of the execution of a number, None without one."""
    found = session.select(NAME, number)
    return str(found[0][0]) if found else None


# Descendants


def descendants(session: Session, number: int) -> list[StoredExecution]:
    """Return the descendants of an execution, oldest first."""
    session.flush()
    found = session.connection.select(OF_NUMBERS, ([*_numbers_below(session, number)],))
    return [read_row(session, row) for row in found]


def _numbers_below(session: Session, number: int) -> Iterator[int]:
    """Yield the numbers of the descendants, without writing pending changes."""
    level, seen = [number], {number}
    while level:
        rows = session.connection.select(STARTED_BY, (level,))
        level = [found for (found,) in rows if found not in seen]
        seen.update(level)  # damaged rows may form a cycle
        yield from level


def numbers_below(session: Session, number: int) -> list[int]:
    """Return the numbers of the descendants of an execution."""
    session.flush()
    return [*_numbers_below(session, number)]


def top_of(session: Session, name: str) -> str:
    """Return the name of the root of an execution."""
    found = session.select(PARENT_BY_NAME, name)
    parent = found[0][0] if found else None
    seen = set()
    while parent is not None:
        above = session.select(PARENT, parent)
        session.check(len(above) > 0 and parent not in seen, f"what has started {name!r}")
        seen.add(parent)
        ((name, parent),) = above
    return name


def end_descendants(
    session: Session, number: int, ended: float, names: Sequence[str] | None = None
) -> Iterator[Write]:
    """Yield the changes that abort the descendants of an execution and close their requests.

    Pass it to `Session.write`; it finds the descendants within the transaction.

    Args:
        session: The store.
        number: The execution.
        ended: The time of the end.
        names: The names of the children to abort, with their descendants; None for all.
    """
    if names is None:
        numbers = [*_numbers_below(session, number)]
    else:
        found = session.connection.select(STARTED_UNDER, (number, [*names]))
        numbers = [each for (each,) in found]
        numbers += [below for each in numbers for below in _numbers_below(session, each)]
    if numbers:
        yield ABORT, (ended, numbers)
        yield CLOSE, (numbers,)


def bind_as(session: Session, number: int, other: int) -> Iterator[Write]:
    """Yield the change that copies the recorded binding names of an execution to another one.

    Pass it to `Session.write`; it reads the names within the transaction.
    """
    ((bound,),) = session.connection.select(VALUES["bound"], (other,))
    yield BIND, (bound, number)


def due_executions(session: Session, now: float) -> list[str]:
    """Return the roots of the paused executions that can continue now."""
    due = session.select(DUE, now)
    return [*dict.fromkeys(top_of(session, name) for (name,) in due)]
