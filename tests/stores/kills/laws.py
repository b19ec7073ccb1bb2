"""What must hold of executions whatever has become of the processes that ran them."""

import json
import re
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from asl.core.errors import AslError
from asl.executions import Store
from asl.stores.journal import StoreJournal
from asl.stores.requests import ALL, find_requests, find_tasks
from tests.sql import rows
from tests.stores.kills.scenes import SCENES

__all__ = ["Laws", "Whole"]

SEGMENT = re.compile(r"/[^/@]*@(\d+)(?:\.(\d+))?(?:\[\d+\])?")
ANY = 1_000
"""Stands for any effect of a visit: a call that is one of several has no number of its own."""
Place = tuple[str, str]
"""A machine: the name of its execution and its path."""
Step = tuple[float, float]
"""Where a machine is: the visit, and the effect of the visit."""

ITEM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+")
"""The name of an iteration of a distributed Map, which is kept with the execution of the Map."""
PAUSES = ("ExecutionPaused", "ExecutionResumed")
"""How often an execution is paused depends on when its processes die."""


def steps(name: str, key: str, effect: int = 0) -> Iterator[tuple[Place, Step]]:
    """Yield where each machine is that a key names, the outermost first.

    *effect* is that of the last one where the key does not say.
    """
    for found in SEGMENT.finditer(key):
        visit, ordinal = found.groups()
        yield (
            (name, key[: found.start()]),
            (int(visit), effect if ordinal is None else int(ordinal)),
        )


class Whole:
    """What came of executions that nobody disturbed."""

    def __init__(self, outcome: dict[str, Any], asked: dict[str, Any]) -> None:
        self.outcome = outcome
        self.asked = asked


class Laws:
    """Watches over the executions of one store, life after life; every fault is a sentence."""

    def __init__(self, scene: str, store: Path, log: Path, whole: Whole | None) -> None:
        self.scene = SCENES[scene]
        self.store = store
        self.log = log
        self.whole = whole
        self.now = 0.0
        """The latest time that anything was told."""
        self.starts: list[float] = []
        """When each life began."""
        self.asked: dict[str, Any] = {}
        """What each call was asked, by its key and attempt."""
        self.handed: set[str] = set()
        """The task tokens that were handed over by a life that has paused: it waits for them."""
        self.acknowledged: set[str] = set()
        """The requests whose answer somebody has been thanked for."""
        self._read = 0
        self._reached: dict[Place, Step] = {}
        """The earliest step at which each machine may still be."""
        self._latest: dict[Place, int] = {}
        """The round that each debate has come to, by its visit."""
        self._chains: dict[str, list[bytes]] = {}
        self._names: set[str] = set()
        self._logs: dict[str, StoreJournal] = {}

    def after_life(self, paused: bool = False) -> Iterator[str]:
        """Yield what is wrong with what a process has left behind, which may have *paused*."""
        yield from self._calls()
        if paused:
            tokens = (parameters.get("token") for parameters in self.asked.values())
            self.handed |= {token for token in tokens if token is not None}
        if not self.store.exists():
            if self._names:
                yield "the store is gone"
            return
        with Store(self.store) as store:
            yield from store.faults()
            self.names = dict(rows(store, "SELECT number, name FROM execution"))
            if lost := self._names - set(self.names.values()):
                yield f"executions that have called agents are lost: {sorted(lost)}"
            yield from self._histories(store)
            yield from self._journals(store)
            yield from self._decisions(store)

    # What happened in the world

    def _calls(self) -> Iterator[str]:
        """No machine goes back behind what it was known to have done; one life calls once."""
        lines = self.log.read_bytes().splitlines() if self.log.exists() else []
        lines, self._read = lines[self._read :], len(lines)
        called = set()
        for line in map(json.loads, lines):
            if "answered" in line:
                self.acknowledged.add(line["answered"])
                continue
            before, _, visit = line["key"].partition(":/")
            name, key = before.rpartition(":")[2], f"/{visit}"
            name = "e0" if ITEM.fullmatch(name) else name
            self._names.add(name)
            self.now = max(self.now, line["now"])
            again = line["parameters"].get("redrives", 0)
            call = f"{name}{key}#{line['attempt']}~{again}"
            token = line["parameters"].get("token")
            if token in self.handed:
                yield f"{call} was handed over again"
            if call in called:
                yield f"{call} was called twice in one life"
            called.add(call)
            if self.asked.setdefault(call, line["parameters"]) != line["parameters"]:
                yield f"{call} was asked something else the second time"
            if self.whole is not None and self.whole.asked.get(call) != line["parameters"]:
                yield f"{call} was asked {line['parameters']}, not {self.whole.asked.get(call)}"
            yield from self._rounds(name, key)
            effect = ANY if "#" in key else 2 * (line["attempt"] - 1)
            for place, step in steps(name, key, effect):
                if step < self._reached.get(place, (0, 0)):
                    yield f"{call} was called although its machine was further: {place}"
                self._reach(place, step)

    def _rounds(self, name: str, key: str) -> Iterator[str]:
        """No debate goes back behind the round in which somebody has spoken."""
        visit, part, turn = key.partition("#")
        if part:
            number = int(turn.partition("/")[0])
            latest = self._latest.setdefault((name, visit), number)
            if number < latest:
                yield f"{name}{key} was called although round {latest} had begun"
            self._latest[name, visit] = max(number, latest)

    def _reach(self, place: Place, step: Step) -> None:
        self._reached[place] = max(self._reached.get(place, (0, 0)), step)

    # What stands in the store

    def _histories(self, store: Store) -> Iterator[str]:
        """Records that were there stay; what a record tells has a time."""
        self._logs = {name: self._log(store, number) for number, name in self.names.items()}
        chains = {}
        for name, journal in self._logs.items():
            steps = list(journal.read())
            chains[name] = [hash for _, hash, _ in steps]
            for _, _, entries in steps:
                for _, record in journal.written_records(entries):
                    self.now = max(self.now, record[1])
        for name, chain in self._chains.items():
            if chains.get(name, [])[: len(chain)] != chain:
                yield f"{name}: the history was rewritten"
        self._chains = chains

    def _log(self, store: Store, number: int) -> StoreJournal:
        journal = StoreJournal(store.session, number, "")
        journal.load()
        return journal

    def _journals(self, store: Store) -> Iterator[str]:
        """Nothing of the past is taken for the present; what is answered is behind us."""
        positions, answers = {}, {}
        for name, journal in self._logs.items():
            positions |= {(name, path): each["visit"] for path, each in journal.positions.items()}
            answers |= {(name, key): each for key, each in journal.answers.items()}
        keys = list(answers)
        for name, key in [*keys, *positions]:
            for place, (visit, _) in steps(name, key):
                if visit < positions.get(place, 0):
                    yield f"{name}{key} is kept, which is past for {place}"
        for place, visit in positions.items():
            self._reach(place, (visit, 0))
        for name, key in keys:
            if key.endswith("]"):
                if answers[name, key][3] is None:  # one that has failed may be redriven
                    self._reach((name, key), (inf, 0))
            elif key.startswith("/") and not key.endswith("!"):
                *_, (place, (visit, ordinal)) = steps(name, key)
                self._reach(place, (visit, ordinal + 1))
        for name, status in rows(store, "SELECT name, status FROM execution"):
            if status == "SUCCEEDED":
                self._reach((name, ""), (inf, 0))

    def _decisions(self, store: Store) -> Iterator[str]:
        """What somebody was thanked for is decided, and asks for going on."""
        for asked in find_requests(store.session, ALL):
            if asked.status in ("open", "closed") and asked.id in self.acknowledged:
                yield f"the answer to {asked.id} is lost"
        for task in find_tasks(store.session, ALL):
            if task.status != "answered" and task.token in self.acknowledged:
                yield f"the answer to the token of {task.key} is lost"
        for name, wake in rows(store, "SELECT name, wake FROM execution WHERE status = 'PAUSED'"):
            if wake is None and not (store.pending() or store.pending_callbacks() or store.due()):
                yield f"{name} is paused, and nothing lets it go on"

    # The end

    def outcome(self) -> dict[str, Any]:
        """Return what the executions came to, all times and pauses left out."""
        told: dict[str, Any] = {}
        with Store(self.store) as store:
            for number, name in self.names.items():
                result = store.result(name)
                told[name] = {
                    "status": result.status,
                    "output": result.output,
                    "error": result.error,
                    # What is at work at a time differs, and what is cut off then.
                    "usage": {**result.usage, "reserved": None, "assumed": None},
                    "visited": sorted(result.visited),
                    "events": sum(event.type not in PAUSES for event in result.events),
                    "records": self._records(store, number),
                }
        return told

    def _records(self, store: Store, number: int) -> dict[str, list[Any]]:
        """Return the records of each machine: kind, visit, state, and the event that is noted."""
        found: dict[str, list[Any]] = {}
        for path, (kind, _, visit, state, *rest) in self._told(store, number):
            if kind == "whole":
                continue
            event = rest[0] if kind == "noted" else None
            found.setdefault(path, []).append([kind, visit, state, event])
        return found

    def _told(self, store: Store, number: int) -> Iterator[tuple[str, Any]]:
        journal = self._log(store, number)
        for _, _, entries in journal.read():
            yield from journal.written_records(entries)

    def at_the_end(self) -> Iterator[str]:
        """Yield what differs from executions that nobody disturbed."""
        assert self.whole is not None
        try:
            outcome = self.outcome()
        except AslError as error:
            yield f"the result cannot be read: {error}"
            return
        for name, expected in self.whole.outcome.items():
            for what, value in expected.items():
                found = outcome.get(name, {}).get(what)
                if found != value:
                    yield f"{name}: {what} is {_shown(found, value)}"
        if missing := self.whole.asked.keys() - self.asked.keys():
            yield f"never called: {sorted(missing)}"
        with Store(self.store) as store:
            for number, name in self.names.items():
                document = store.program(name).document
                for said in self._timers(store, number, document):
                    yield f"{name}: {said}"

    def _timers(self, store: Store, number: int, document: Any) -> Iterator[str]:
        """What waits is over at its time, or when the next process begins after that."""
        due: dict[tuple[str, int], float] = {}
        for path, (kind, now, visit, state, *rest) in self._told(store, number):
            place = path, visit
            if kind == "stretch" and state is not None and (seconds := self._wait(document, state)):
                due[place] = now + seconds
            elif kind == "retried":
                due[place] = now + rest[1]
            elif kind in ("exited", "again") and place in due:
                when = due.pop(place)
                if now != when and not (now > when and now in self.starts):
                    yield f"{path}{state}@{visit} ended {now - when:+g} s from its time"
            elif kind == "noted" and rest[0] == "ApprovalRequested":
                due[place] = now + 3600
            elif kind == "noted" and rest[0] == "ApprovalTimedOut" and now != due[place]:
                yield f"{path}{state}@{visit} timed out {now - due[place]:+g} s from its time"
            elif kind == "noted":
                due.pop(place, None)

    def _wait(self, state: Any, pointer: str) -> float:
        for part in pointer.split("/")[1:]:
            if type(state) is str:  # the machine in which an agent of a Debate speaks
                return 0
            state = state[int(part) if type(state) is list else part]
        return state["Seconds"] if state["Type"] == "Wait" else 0


def _shown(found: Any, expected: Any) -> str:
    """Show what differs, no more."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in {**expected, **found}:
            if found.get(key) != expected.get(key):
                return f"{key}: {_shown(found.get(key), expected.get(key))}"
    if isinstance(found, list) and isinstance(expected, list):
        for index in range(max(len(found), len(expected))):
            if found[index : index + 1] != expected[index : index + 1]:
                return f"[{index}] {found[index:][:2]} instead of {expected[index:][:2]}"
    return f"{found!r} instead of {expected!r}"
