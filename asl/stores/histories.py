"""One pass over the steps of all executions, to verify the hash chains and collect references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from asl.core.values import Json
from asl.engine.events import CREATED
from asl.engine.records import ADVANCED, NOTED, WHOLE
from asl.stores.errors import StoreDamaged
from asl.stores.log import RECORDS, REQUESTED, Log
from asl.stores.session import Session
from asl.stores.statements import Select
from asl.stores.tables import EXECUTION, HEAD, STEP

__all__ = ["History", "chain_faults", "read_histories"]

REDRIVEN = "ExecutionRedriven"
SUBMITTED = "Submitted"
NOTABLE = re.compile(f'"large":|{REQUESTED}|{CREATED}|{REDRIVEN}|"{SUBMITTED}"'.encode())
"""Matches the steps to decode; the hash suffices for all others."""
BEGINNINGS = Select(EXECUTION, ("number", "name", "chain"))
STEPS = Select(STEP, tuple(STEP.columns), order=("place",))
LAST_PLACE = Select(STEP, ("place",), order=("-place",), limited=True)
HEADS = Select(HEAD, ("execution", "step", "place"))
OFTEN = 20_000
"""Number of steps between two reports of progress."""


@dataclass(slots=True)
class History:
    """The history of one execution, as far as it has been read."""

    name: str
    hash: bytes
    """The hash of the last step, or before the first one."""
    steps: int = 0
    place: int = 0
    whole: bool = True
    fault: str | None = None
    """Why the content of a step cannot be read, None if it can."""
    digests: dict[str, str] = field(default_factory=dict)
    """Digest of the content of each request, by its id."""
    requests: set[str] = field(default_factory=set)
    """Requests that must be in the store: those since the last redrive."""
    submitted: set[str] = field(default_factory=set)
    """Machines whose Task waits for its token, according to the history."""
    checkpoints: int = 0
    large: set[str] = field(default_factory=set)
    """Hashes of the large values that its steps refer to."""

    def add(self, place: int, number: int, before: int, hash: bytes, body: bytes) -> bool:
        """Take the next step; return whether it continues the chain."""
        follows = number == self.steps + 1 and before == self.place
        if not follows or not type(self.hash) is type(hash) is type(body) is bytes:
            return False
        if sha256(self.hash + body).digest() != hash:
            return False
        self.steps, self.place, self.hash = number, place, hash
        return True

    def note(self, entries: list[Json]) -> None:
        """Collect the references of the entries of a step."""
        for what, machine, *content in entries:
            for slot in content[0] if what in RECORDS else content:
                if type(slot) is dict and "large" in slot:
                    self.large.add(slot["large"])
            self._leave(machine)
            if what in RECORDS:
                self._note_record(machine, content[0])

    def _leave(self, place: str) -> None:
        """Record that a machine continued, so that nothing in it waits."""
        left = [each for each in self.submitted if f"{place}/".startswith(f"{each}/")]
        self.submitted.difference_update(left)
        within = f"{place}/"
        self.submitted -= {each for each in self.submitted if each.startswith(within)}

    def _note_record(self, machine: str, record: list[Json]) -> None:
        kind, event = record[0], record[4]
        if kind == WHOLE and event == REDRIVEN:
            self.requests.clear()
            self.submitted.clear()
        elif kind == ADVANCED and event == SUBMITTED and not _is_execution(record[5]):
            self.submitted.add(machine)
        elif kind == NOTED and event == CREATED:
            self.checkpoints += 1
        elif kind == NOTED and event == REQUESTED and "json" in record[5]:
            details = record[5]["json"]
            self.requests.add(details["requestId"])
            if "digest" in details:  # older stores have none
                self.digests[details["requestId"]] = details["digest"]


def _is_execution(details: Json) -> bool:
    """Return whether a submitted Task started an execution, which needs no callback."""
    output = details.get("json", {}).get("output")
    return type(output) is dict and "ExecutionArn" in output


def read_histories(session: Session, report: Callable[[str], object]) -> dict[int, History]:
    """Return the history of each execution by its number; damaged ones are not `whole`.

    Args:
        session: The store.
        report: Receives the number of checked steps and their total, periodically.
    """
    found = {number: History(name, chain) for number, name, chain in session.select(BEGINNINGS)}
    last = session.select(LAST_PLACE, 1)
    total = last[0][0] if last else 0
    for done, (place, execution, number, before, hash, body) in enumerate(session.scan(STEPS)):
        if done % OFTEN == 0:
            report(f"histories ({done:,} of {total:,} steps)")
        history = found.get(execution)
        if history is None or not history.whole:
            continue
        history.whole = history.add(place, number, before, hash, body)
        if history.whole and (history.submitted or NOTABLE.search(body)):
            try:
                with session.damage_reports(f"step {number} of the history"):
                    history.note(session.values.read(body))
            except StoreDamaged as fault:
                history.whole, history.fault = False, fault.what
    heads = {number: ends for number, *ends in session.select(HEADS)}
    for number, history in found.items():
        history.whole &= heads.get(number) == [history.steps, history.place]
    return found


def chain_faults(session: Session, number: int, history: History) -> Iterator[str]:
    """Yield a sentence on the chain of a damaged history."""
    try:
        for _ in Log(session, number).read():
            pass
    except StoreDamaged as fault:
        yield f"{history.name}: {fault.what}"
        return
    other = "steps of the history were added or do not follow one another"
    yield f"{history.name}: {history.fault or other}"
