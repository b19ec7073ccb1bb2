"""Agents that are programs of their own, spoken to in lines of JSON.

Each call writes one line to the program's standard input:
`{"parameters": ..., "call": {"execution", "state", "attempt", "key"}}`, and reads lines from its
standard output until one ends the call: `{"return": value}` or `{"error": name, "cause": text}`.
A line `{"heartbeat": true}` or `{"progress": percent, "message": text}` is a sign of life.
A program serves one call at a time and is kept for the next; calls at the same time start more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.engine.agent import Call
from asl.states.host import Raised

if TYPE_CHECKING:
    from asyncio import Task
    from asyncio.subprocess import Process

__all__ = ["ProcessAgent"]

MAX_LINE = 64 * 1024 * 1024
STDERR_KEPT = 2000


class ProcessAgent:
    """A command that answers calls in lines of JSON; its processes end with the execution."""

    blocking = False
    needs_loop = True
    real = True
    direct = None
    takes_call = False
    holds = True

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.folder = folder
        self.environment = environment
        self.idle: list[_Program] = []
        self.alive: set[_Program] = set()

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask one process; raises Raised with the name it gives, or `States.TaskFailed`."""
        assert call is not None
        program = self.idle.pop() if self.idle else await self._start()
        request = {
            "parameters": payload,
            "call": {
                "execution": call.execution_id,
                "state": call.state_name,
                "attempt": call.attempt,
                "key": call.idempotency_key,
            },
        }
        try:
            result = await program.ask(request, call)
        except Raised:
            self.idle.append(program)
            raise
        except BaseException:
            # It broke the protocol, died or is no longer waited for: nobody can ask it again.
            await self._end(program)
            raise
        self.idle.append(program)
        return result

    async def _start(self) -> _Program:
        program = await _Program.start(self.command, self.folder, self.environment)
        self.alive.add(program)
        return program

    async def _end(self, program: _Program) -> None:
        self.alive.discard(program)
        await program.end()

    async def close(self) -> None:
        """End every process."""
        self.idle.clear()
        for program in list(self.alive):
            await self._end(program)


class _Program:
    """One running process and what it said on standard error last."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.said = b""
        self.listening: Task[None] | None = None

    @classmethod
    async def start(
        cls, command: list[str], folder: str | None, environment: Mapping[str, str] | None
    ) -> _Program:
        import os
        from asyncio import create_subprocess_exec, ensure_future
        from asyncio.subprocess import PIPE

        try:
            process = await create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=folder,
                env=None if environment is None else {**os.environ, **environment},
                limit=MAX_LINE,
                start_new_session=True,  # so that its own children can be ended with it
            )
        except OSError as error:
            raise StateError(
                "States.TaskFailed", f"cannot start {command[0]!r}: {error.strerror}"
            ) from error
        program = cls(process)
        program.listening = ensure_future(program._listen())
        return program

    async def _listen(self) -> None:
        """Keep standard error flowing, so that the program never blocks on it."""
        assert self.process.stderr is not None
        while said := await self.process.stderr.read(65536):
            self.said = (self.said + said)[-STDERR_KEPT:]

    async def ask(self, request: Json, call: Call) -> Json:
        """Send a request and read lines until one answers it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):  # then there is no answer to read
            self.process.stdin.write(compact(request).encode() + b"\n")
            await self.process.stdin.drain()
        while True:
            message = await self._message()
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise Raised(_text(message["error"]), _text(message.get("cause")))
            if "progress" in message:
                call.report_progress(message["progress"], str(message.get("message", "")))
            elif "heartbeat" in message:
                call.heartbeat()
            else:
                raise StateError(
                    "States.TaskFailed",
                    "a line with none of return, error, progress, heartbeat: "
                    + _shown(compact(message).encode()),
                )

    async def _message(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = b"\n"
        try:
            while line.isspace():
                line = await self.process.stdout.readline()
        except ValueError:
            raise StateError(
                "States.TaskFailed", f"an answer of more than {MAX_LINE} bytes"
            ) from None
        if not line:
            raise await self._died()
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            message = None
        if type(message) is not dict:
            raise StateError("States.TaskFailed", f"a line that is no JSON object: {_shown(line)}")
        return message

    async def _died(self) -> StateError:
        code = await self.process.wait()
        assert self.listening is not None
        await self.listening
        text = f"the process ended with exit code {code} before it answered"
        tail = self.said.decode(errors="replace").strip()
        return StateError("States.TaskFailed", f"{text}: {tail}" if tail else text)

    async def end(self) -> None:
        """Kill the process and all of its group, and wait until its pipes are closed."""
        import os
        import signal

        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.listening is not None
        self.process.stdin.close()
        await self.process.stdout.read()
        await self.listening
        await self.process.wait()


def _text(value: Json) -> str | None:
    return value if value is None or type(value) is str else compact(value)


def _shown(line: bytes) -> str:
    return repr(line[:200].decode(errors="replace").rstrip("\n"))
