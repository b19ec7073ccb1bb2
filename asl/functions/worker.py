"""One process of a function."""

from __future__ import annotations

import os
import signal
from asyncio import FIRST_COMPLETED, Future, StreamReader, ensure_future, shield, wait
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, create_subprocess_exec
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from asl.agents.child_process import MARK, end_strays, new_mark
from asl.core.values import encode
from asl.functions.runtime_api import Answer, FunctionEvent, RuntimeApi

__all__ = ["UnreadEvent", "Worker"]

INIT_LIMIT: Final = 10.0
"""Seconds that a function may take to start, in addition to its timeout (AWS, quotas)."""
LAST_LINES: Final = 1.0
"""Seconds to wait for the output of a process that has ended."""
LONGEST_LINE: Final = 65_536
"""Bytes of a line of the log; a longer one is logged in parts."""


class UnreadEvent(Exception):
    """A process that had served before ended without reading its event."""


class Worker:
    """A process that answers the events of a function one by one.

    Args:
        command: The program and its arguments.
        folder: The folder of the code.
        environment: All environment variables of the process.
        log: Receives each line that it writes.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        log: Callable[[str], object],
    ) -> None:
        self.command = command
        self.folder = folder
        self.environment = environment
        self.log = log
        self.mark = new_mark()
        self.served = 0
        """Number of answered events."""

    async def start(self) -> None:
        """Start the process.

        Raises:
            OSError: It cannot be started.
        """
        self.api = RuntimeApi()
        address = await self.api.start()
        try:
            self.process = await create_subprocess_exec(
                *self.command,
                cwd=self.folder,
                env={**self.environment, "AWS_LAMBDA_RUNTIME_API": address, MARK: self.mark},
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,  # so that its own children can be ended with it
            )
        except BaseException:  # raised again, after closing the port: cancelled or not
            await self.api.close()
            raise
        assert self.process.stdout is not None
        self.ended: Future[int] = ensure_future(self.process.wait())
        self.logging = ensure_future(self._read_log(self.process.stdout))

    async def invoke(self, invocation: FunctionEvent) -> Answer:
        """Return the answer to an event, or AWS's error for a process that gives none.

        Raises:
            UnreadEvent: Another process has to answer it.
        """
        self.api.offer(invocation)
        limit = invocation.timeout + (0.0 if self.served else INIT_LIMIT)
        fetched = await self._first(self.api.is_fetched.wait(), limit)
        if fetched:
            await self._first(self.api.answer, invocation.timeout)
        if self.api.answer.done():
            self.served += 1
            return self.api.answer.result()
        if not self.ended.done():
            return _failure(
                "Sandbox.Timedout",
                f"RequestId: {invocation.request_id} Error: Task timed out after "
                f"{invocation.timeout:.2f} seconds",
            )
        if self.served and not self.api.is_fetched.is_set():
            raise UnreadEvent
        return _failure(
            "Runtime.ExitError",
            f"RequestId: {invocation.request_id} Error: Runtime exited "
            f"{_end_of(self.ended.result())}",
        )

    async def _first(self, expected: Awaitable[Any], seconds: float) -> bool:
        """Wait until something happens, the process ends or time is over; return the former."""
        awaited = ensure_future(expected)
        try:
            await wait(
                {awaited, self.ended, self.api.answer},
                timeout=seconds,
                return_when=FIRST_COMPLETED,
            )
            return awaited.done()
        finally:
            if awaited is not self.api.answer:
                awaited.cancel()

    async def _read_log(self, output: StreamReader) -> None:
        """Pass each line of the output on, so that the process never blocks on it."""
        rest = b""
        while read := await output.read(LONGEST_LINE):
            *lines, rest = (rest + read).split(b"\n")
            if len(rest) > LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._log_line(line)
        if rest:
            self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        self.log(line.decode(errors="replace").rstrip("\r"))

    async def end(self) -> None:
        """Kill the process and its descendants; repeat this if it is cancelled."""
        if not self.ended.done():
            with suppress(ProcessLookupError, PermissionError):  # none of the group is left
                os.killpg(self.process.pid, signal.SIGKILL)
        end_strays(self.mark)
        await shield(self.ended)
        await wait({self.logging}, timeout=LAST_LINES)
        self.logging.cancel()
        await self.api.close()


def _failure(name: str, message: str) -> Answer:
    return Answer(False, encode({"errorType": name, "errorMessage": message}), reusable=False)


def _end_of(status: int) -> str:
    """Return how a process ended in the words of AWS."""
    if status < 0:
        name = signal.strsignal(-status) or f"{-status}"
        return f"with error: signal: {name.lower()}"
    return f"with error: exit status {status}" if status else "without providing a reason"
