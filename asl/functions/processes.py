"""The processes of one function."""

from __future__ import annotations

import os
from asyncio import Semaphore
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from asl.functions.runtime_api import Answer, FunctionEvent
from asl.functions.worker import UnreadEvent, Worker

__all__ = ["MAX_WORKERS", "FunctionProcesses", "ProcessSpec"]

MAX_WORKERS: Final = 10
"""Default number of processes of one function: further events wait."""
_SKIPPED: Final = frozenset(("__pycache__", "node_modules", "site-packages"))
"""Folders of third-party code, which is not watched. Hidden folders are skipped too."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How a process of a function is started."""

    command: Sequence[str]
    folder: str
    """The folder of the code."""
    environment: Mapping[str, str]
    watched: tuple[str, ...] = ()
    """Folders: a process is replaced when a file in them has changed."""


class FunctionProcesses:
    """Answers the events of one function, each by a process that does nothing else meanwhile.

    A process is used again, unless it has ended, was too slow or answered too much.

    Args:
        spec: How a process is started.
        log: Receives each line that a process writes.
        limit: Maximum number of processes at the same time.
    """

    def __init__(
        self, spec: ProcessSpec, log: Callable[[str], object], limit: int = MAX_WORKERS
    ) -> None:
        self.spec = spec
        self.log = log
        self.idle: list[Worker] = []
        self.alive: set[Worker] = set()
        self.slots = Semaphore(limit)
        self.files = _files(spec.watched)

    async def invoke(self, invocation: FunctionEvent) -> Answer:
        """Return the answer of a process to an event.

        Raises:
            OSError: A process cannot be started.
        """
        async with self.slots:
            await self._end_outdated()
            while self.idle:
                with suppress(UnreadEvent):
                    return await self._call(self.idle.pop(), invocation)
            return await self._call(await self._start(), invocation)

    async def _start(self) -> Worker:
        worker = Worker(self.spec.command, self.spec.folder, self.spec.environment, self.log)
        await worker.start()
        self.alive.add(worker)
        return worker

    async def _end(self, worker: Worker) -> None:
        await worker.end()
        self.alive.discard(worker)

    async def _call(self, worker: Worker, invocation: FunctionEvent) -> Answer:
        files, answer = self.files, None
        try:
            answer = await worker.invoke(invocation)
            return answer
        finally:
            if answer is not None and answer.reusable and files is self.files:
                self.idle.append(worker)
            else:
                await self._end(worker)

    async def _end_outdated(self) -> None:
        """End the processes that were started before a file of the code has changed."""
        files = _files(self.spec.watched)
        if files != self.files:
            self.files = files
            while self.idle:
                await self._end(self.idle.pop())

    async def close(self) -> None:
        """End all processes."""
        self.idle.clear()
        for worker in [*self.alive]:
            await self._end(worker)


def _files(folders: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return time of change and size of each file in folders."""
    return {path: found for folder in folders for path, found in _walk(folder)}


def _walk(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for here, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each[0] != "." and each not in _SKIPPED]
        for name in names:
            path = os.path.join(here, name)
            try:
                found = os.stat(path)
            except OSError:  # it was removed meanwhile
                continue
            yield path, (found.st_mtime_ns, found.st_size)
