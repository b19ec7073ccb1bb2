"""An interpreter behind a command that answers lines of JSON (conformance/README.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Thread
from typing import IO

from asl.conformance.case import Case
from asl.core.errors import AslError
from asl.core.values import Json, compact

__all__ = ["ExternalImplementation"]

STDERR_SHOWN = 2000
GRACE = 1.0
"""Real seconds in which a process may end by itself when its input has ended."""


class ExternalImplementation:
    """Runs cases through a command, one at a time; starts it anew when it has crashed.

    `time_limit` is in real seconds for one case. Raises AslError if the command cannot be started.
    """

    def __init__(self, command: Sequence[str], time_limit: float) -> None:
        self.command = list(command)
        self.time_limit = time_limit
        self.process: _Process | None = None

    def observe(self, case: Case) -> Mapping[str, Json]:
        """Send one case and read its answer; anything but an answer is a crash."""
        if self.process is None:
            self.process = _Process(self.command)
        try:
            return self._answer(self.process, case)
        except _Crash as crash:
            said = self.process.end()
            self.process = None
            return {"crash": f"{crash}: {said}" if said else str(crash)}

    def _answer(self, process: _Process, case: Case) -> Mapping[str, Json]:
        line = process.ask(compact(case.request()), self.time_limit)
        try:
            answer = json.loads(line)
        except ValueError:
            raise _Crash(f"the answer is not JSON: {line[:200]!r}") from None
        if type(answer) is not dict or answer.get("id") != case.id:
            raise _Crash(f"the answer is no object with the id {case.id!r}: {line[:200]!r}")
        return answer

    def close(self) -> None:
        """End the process: its input ends, and what has not stopped soon after is killed."""
        if self.process is not None:
            self.process.dismiss()
            self.process.end()
            self.process = None


class _Crash(Exception):
    """The process gave no answer; the text says what it did instead."""


class _Process:
    """The running command. Threads write and read, so that waiting for either can end."""

    def __init__(self, command: list[str]) -> None:
        self.stderr: IO[bytes] = TemporaryFile()  # noqa: SIM115  # lives as long as the process
        try:
            self.popen = Popen(command, stdin=PIPE, stdout=PIPE, stderr=self.stderr)
        except OSError as error:
            self.stderr.close()
            raise AslError(f"cannot start {command[0]!r}: {error.strerror}") from error
        self.requests: SimpleQueue[bytes | None] = SimpleQueue()
        self.lines: SimpleQueue[bytes] = SimpleQueue()
        self.threads = [Thread(target=run, daemon=True) for run in (self._write, self._read)]
        for thread in self.threads:
            thread.start()

    def _write(self) -> None:
        assert self.popen.stdin is not None
        with suppress(OSError):  # the process has ended; the reader will say so
            while (request := self.requests.get()) is not None:
                self.popen.stdin.write(request + b"\n")
                self.popen.stdin.flush()
        with suppress(OSError):  # what was left in the buffer has no reader
            self.popen.stdin.close()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.strip():
                self.lines.put(line)
        self.lines.put(b"")

    def ask(self, request: str, time_limit: float) -> str:
        """Write one line and read one; raises _Crash."""
        self.requests.put(request.encode())
        try:
            line = self.lines.get(timeout=time_limit)
        except Empty:
            raise _Crash(f"no answer within {time_limit:g} seconds") from None
        if not line:
            code = self.popen.wait()
            raise _Crash(f"the process ended with exit code {code} before it answered")
        return line.decode(errors="replace")

    def dismiss(self) -> None:
        """Let the process end by itself."""
        self.requests.put(None)
        with suppress(TimeoutExpired):
            self.popen.wait(GRACE)

    def end(self) -> str:
        """Stop the process and return the end of what it wrote to standard error."""
        assert self.popen.stdout is not None
        self.popen.kill()
        self.popen.wait()
        self.requests.put(None)
        for thread in self.threads:
            thread.join()
        self.popen.stdout.close()
        self.stderr.seek(0)
        said = self.stderr.read().decode(errors="replace").strip()
        self.stderr.close()
        return said[-STDERR_SHOWN:]
