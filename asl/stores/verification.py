"""Verification of a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from asl.core.values import Json
from asl.engine.checkpoints import Checkpoint
from asl.states.blocks.budget_limits import WINDOWS
from asl.stores.audit import audit_faults
from asl.stores.backend import StoreBackend
from asl.stores.errors import StoreDamaged, StoreError
from asl.stores.executions import ENDED, STORED, name_of, read_row
from asl.stores.histories import History, chain_faults, read_histories
from asl.stores.pools import TOOLS, StoreBudgets, holder_of
from asl.stores.requests import BY_ID, TASKS, find_requests, owner_of
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Select, is_set, none_of, one_of
from asl.stores.tables import (
    BLOB,
    BUDGET,
    CHECKPOINT,
    CLAIM,
    DOCUMENT,
    EXECUTION,
    HEAD,
    REQUEST,
    STEP,
    TABLES,
)
from asl.stores.values import is_hashed

__all__ = ["find_faults"]

OWNERS: Final = {
    Select(STEP, ("execution",)): "steps of the history",
    Select(HEAD, ("execution",)): "ends of histories",
    Select(REQUEST, ("execution",)): "requests",
    Select(CHECKPOINT, ("execution",)): "checkpoints",
}
NUMBERS = Select(EXECUTION, ("number",))
DOCUMENTS = Select(EXECUTION, ("name", "document"))
ALL = Select(EXECUTION, (*STORED, "output"), checked=True)
CHECKED: Final = {
    table: Select(table, table.key, checked=True)
    for table in TABLES
    if table.guarded and table is not EXECUTION  # their rows are checked when they are read
}
OF_TASKS = Select(REQUEST, ("execution", "key"), {"kind": one_of(*TASKS)})
OF_PEOPLE = Select(REQUEST, ("id", "execution"), {"kind": none_of(*TASKS)})
CHECKPOINTS = Select(CHECKPOINT, ("execution", "id", "name", "body"))
VALUES: Final = {
    (table, column): Select(table, (table.key[0], column), {column: is_set()})
    for table in TABLES
    for column in table.values
}
"""Owner and content of every value."""
LARGE = Select(BLOB, ("hash", "body"))
ENDED_NAMES = Select(EXECUTION, ("workflow", "name"), {"status": one_of(*ENDED)})
BUDGETS = Select(BUDGET, ("name", "body"))
PAUSED = Select(EXECUTION, ("number", "name", "wake"), {"status": "PAUSED"})
WAITING = Select(REQUEST, ("execution",), {"status": one_of("open", "answered")})
STARTED = Select(
    EXECUTION, ("parent",), {"parent": is_set(), "status": one_of("PAUSED", "RUNNING")}
)
CLAIMS = Select(CLAIM, ("execution", "needs", "timer"))
SPENT = Select(
    EXECUTION, ("name", "workflow", "document"), {"usage": is_set(), "parent": None}, ("name",)
)
BODIES = Select(DOCUMENT, ("body",), {"hash": PARAMETER})
Progress: TypeAlias = Callable[[str], object]
"""Receives the name of the part that is checked next, and its progress."""


def _nothing(part: str) -> None:
    """Report no progress."""


def find_faults(
    backend: StoreBackend, session: Session, report: Progress = _nothing
) -> Iterator[str]:
    """Yield a sentence for each fault: of the storage, of histories, missing references, damaged
    values.
    """
    try:
        yield from _faults(session, report)
    except StoreDamaged as damage:  # it cannot be read further
        yield from (f"the file: {fault}" for fault in backend.faults())
        yield f"the file: {damage.what}"
    except StoreError as fault:
        yield str(fault)


def _faults(session: Session, report: Progress) -> Iterator[str]:
    report("the file")
    session.flush()
    yield from (f"the file: {fault}" for fault in session.connection.faults())
    histories = read_histories(session, report)
    for number, history in histories.items():
        if not history.whole:
            yield from chain_faults(session, number, history)
    report("executions")
    yield from _orphans(session)
    yield from _documents(session)
    yield from _executions(session)
    yield from _changed(session)
    yield from _requests(session, histories)
    yield from _paused(session)
    yield from _tasks(session, histories)
    yield from _checkpoints(session, histories)
    report("values")
    yield from _values(session)
    yield from _large(session, histories)
    yield from _reservations(session)
    yield from _pools(session)
    report("the audit log")
    yield from _audit_log(session)


def _orphans(session: Session) -> Iterator[str]:
    known = {number for (number,) in session.select(NUMBERS)}
    for select, what in OWNERS.items():
        count = sum(1 for (number,) in session.scan(select) if number not in known)
        if count:
            yield f"{count} {what} belong to no execution"


def _documents(session: Session) -> Iterator[str]:
    """Check that every document is intact, and that those of all executions exist."""
    used = {key: name for name, key in session.select(DOCUMENTS)}
    for key, name in used.items():
        try:
            session.values.document(key)
        except StoreDamaged as fault:
            yield f"{name}: {fault.what}"


def _executions(session: Session) -> Iterator[str]:
    """Check that every execution can be read, and that a successful one has an output."""
    for *row, output, whole in session.select(ALL):
        try:
            known = read_row(session, [*row, whole])
        except StoreDamaged as fault:
            yield f"{row[1]}: {fault.what}"
        else:
            if known.status == "SUCCEEDED" and output is None:
                yield f"{known.name}: the output of an execution is missing"


def _changed(session: Session) -> Iterator[str]:
    """Check the checksum of every row, except those of executions."""
    for table, select in CHECKED.items():
        for *key, whole in session.scan(select):
            if whole != 1:
                yield f"the {table.name} {key[-1]!r} was changed"


def _requests(session: Session, histories: Mapping[int, History]) -> Iterator[str]:
    """Check that every request matches the history, and that none is missing."""
    there = set()
    for id, number in session.select(OF_PEOPLE):
        there.add(id)
        history = histories.get(number)
        recorded = None if history is None else history.digests.get(id)
        try:
            for request in find_requests(session, BY_ID, id) if recorded is not None else ():
                session.check(request.content_digest == recorded, f"what the request {id} asks")
        except StoreDamaged as fault:
            yield f"{_name(session, number)}: {fault.what}"
    for history in histories.values():
        for id in sorted(history.requests - there):
            yield f"{history.name}: the request {id} is missing"


def _paused(session: Session) -> Iterator[str]:
    """Check that every paused execution waits for an answer, a time or a child execution."""
    waits = {number for (number,) in session.scan(WAITING)}
    waits |= {parent for (parent,) in session.select(STARTED)}
    waits |= {
        number
        for number, needs, timer in session.select(CLAIMS)
        if needs is not None or timer is not None
    }
    for number, name, wake in session.select(PAUSED):
        if wake != 0 and number not in waits:
            yield f"{name}: it is paused, and the request that it waits for is missing"


def _tasks(session: Session, histories: Mapping[int, History]) -> Iterator[str]:
    """Check that the current Tasks of paused executions have their task tokens."""
    there: dict[int, set[str]] = {}
    for number, key in session.select(OF_TASKS):
        there.setdefault(number, set()).add(str(key).rpartition("/")[0])
    for number, name, _ in session.select(PAUSED):
        history = histories.get(number)
        for machine in sorted(history.submitted - there.get(number, set()) if history else ()):
            yield f"{name}: the request by task token of {machine or 'its Task'} is missing"


def _checkpoints(session: Session, histories: Mapping[int, History]) -> Iterator[str]:
    """Check that every checkpoint has its saved name, and that none is missing."""
    count: dict[int, int] = {}
    for number, id, name, body in session.scan(CHECKPOINTS):
        count[number] = count.get(number, 0) + 1
        try:
            with session.damage_reports(f"the checkpoint {name!r}"):
                saved = Checkpoint.read(session.values.unpack(body))
            session.check((saved.id, saved.name) == (id, name), f"the checkpoint {name!r}")
        except StoreDamaged as fault:
            yield f"{_name(session, number)}: {fault.what}"
    for number, history in histories.items():
        missing = history.checkpoints - count.get(number, 0)
        if missing > 0:
            yield f"{history.name}: checkpoints are missing: {missing}"


def _values(session: Session) -> Iterator[str]:
    """Check that every value is intact, and that large ones exist."""
    for (table, column), select in VALUES.items():
        for owner, body in session.select(select):
            try:
                session.values.check(body)
            except StoreDamaged as fault:
                of = _name(session, owner) if type(owner) is int else _owner(session, owner)
                yield f"{of}: {column} of {table.name}: {fault.what}"


def _large(session: Session, histories: Mapping[int, History]) -> Iterator[str]:
    """Check that every large value has its hash, and that referenced ones exist."""
    there = set()
    for key, body in session.scan(LARGE):
        there.add(key.hex() if type(key) is bytes else None)
        if type(key) is not bytes or not is_hashed(body, key):
            name = key.hex()[:12] if type(key) is bytes else repr(key)
            yield f"the large value {name} was changed"
    for history in histories.values():
        for key in sorted(history.large - there):
            yield f"{history.name}: the large value {key[:12]} is missing"


def _reservations(session: Session) -> Iterator[str]:
    """Check that ended executions hold no reservations, and those of dead processes none for
    calls.
    """
    budgets = StoreBudgets(session)
    ended = {*session.select(ENDED_NAMES)}
    for budget, body in session.select(BUDGETS):
        if type(budget) is not str or budget.startswith(TOOLS):  # reported elsewhere
            continue
        with suppress(StoreDamaged):  # reported elsewhere
            yield from _left_reservations(budgets, budget, session.values.unpack(body), ended)


def _left_reservations(
    budgets: StoreBudgets, budget: str, kept: Json, ended: Container[tuple[object, ...]]
) -> Iterator[str]:
    """Yield a sentence about each orphaned reservation in a shared budget."""
    for entry in kept["open"]:
        holder = holder_of(entry)
        if holder is None:
            continue
        if (holder.workflow, holder.name) in ended:
            why = "which has ended"
        elif entry != holder.id and not budgets.is_at_work(holder):
            why = "whose process has died"
        else:
            continue
        left = f"a reservation is left of {holder.name}, {why}"
        yield f"{budget}: {left}; --release gives it back"


def _audit_log(session: Session) -> Iterator[str]:
    """Check the chain of the audit log."""
    with suppress(StoreDamaged):  # a damaged row is reported elsewhere
        yield from audit_faults(session)


def _pools(session: Session) -> Iterator[str]:
    """Check that every shared budget with spending has its row."""
    there = {name for name, _ in session.select(BUDGETS) if type(name) is str}
    first: dict[tuple[str, str], str] = {}
    for name, workflow, document in session.select(SPENT):
        first.setdefault((document, workflow), name)
    for (document, workflow), name in first.items():
        for budget, what in _shared(session, document, workflow):
            if not any(map(budget.fullmatch, there)):
                yield f"{name}: what was spent from {what} is missing"


def _shared(
    session: Session, document: str, workflow: str
) -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield patterns of the names of a document's shared budgets, and their descriptions."""
    for (body,) in session.select(BODIES, document):
        if type(body) is not bytes or b'"Budget":' not in body:
            continue
        budget: Json = {}
        with suppress(StoreDamaged):  # a damaged document is reported elsewhere
            budget = session.values.read(body).get("Budget", {})
        if type(budget.get("Pool")) is str:
            yield re.compile(re.escape(f"Pool {budget['Pool']}")), f"the pool {budget['Pool']!r}"
        for field in WINDOWS:
            if field in budget:
                ids = re.compile(rf"{field} .*:{re.escape(workflow)}", re.DOTALL)
                yield ids, f"{field} of the workflow {workflow!r}"


def _owner(session: Session, key: str) -> str:
    """Return the name of the execution of a request, or the name of a budget."""
    number = owner_of(session, key)
    return key if number is None else _name(session, number)


def _name(session: Session, number: int) -> str:
    return name_of(session, number) or f"execution {number}"
