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
    from asyncio.subprocess import Process

__all__ = ["ProcessAgent"]

MAX_LINE = 64 * 1024 * 1024
STDERR_SHOWN = 2000


class ProcessAgent:
    """A command that answers calls in lines of JSON; processes end with the execution."""

    blocking = False
    needs_loop = True
    real = True
    simple = False
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
        self.idle: list[Process] = []
        self.alive: set[Process] = set()

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask one process; raises Raised with the name it gives, or `States.TaskFailed`."""
        assert call is not None
        request = {
            "parameters": payload,
            "call": {
                "execution": call.execution_id,
                "state": call.state_name,
                "attempt": call.attempt,
                "key": call.idempotency_key,
            },
        }
        process = self.idle.pop() if self.idle else await self._start()
        try:
            result = await self._converse(process, compact(request).encode(), call)
        except StateError as error:
            if isinstance(error, Raised) and process.returncode is None:
                self.idle.append(process)
            raise
        except BaseException:
            await self._kill(process)
            raise
        self.idle.append(process)
        return result

    async def _start(self) -> Process:
        import os
        from asyncio import create_subprocess_exec
        from asyncio.subprocess import PIPE

        environment = None if self.environment is None else {**os.environ, **self.environment}
        try:
            process = await create_subprocess_exec(
                *self.command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=self.folder,
                env=environment,
                limit=MAX_LINE,
            )
        except OSError as error:
            raise StateError(
                "States.TaskFailed", f"cannot start {self.command[0]!r}: {error.strerror}"
            ) from error
        self.alive.add(process)
        return process

    async def _converse(self, process: Process, request: bytes, call: Call) -> Json:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request + b"\n")
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise await self._died(process) from None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                await self._kill(process)
                raise StateError(
                    "States.TaskFailed", f"an answer of more than {MAX_LINE} bytes"
                ) from None
            if not line:
                raise await self._died(process)
            if not line.strip():
                continue
            message = await self._message(process, line)
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise Raised(_text(message["error"]), _text(message.get("cause")))
            if "progress" in message:
                call.report_progress(message["progress"], str(message.get("message", "")))
            elif "heartbeat" in message:
                call.heartbeat()
            else:
                await self._kill(process)
                raise StateError(
                    "States.TaskFailed",
                    f"a line with none of return, error, progress, heartbeat: {_shown(line)}",
                )

    async def _message(self, process: Process, line: bytes) -> dict[str, Any]:
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            message = None
        if type(message) is not dict:
            await self._kill(process)
            raise StateError("States.TaskFailed", f"a line that is no JSON object: {_shown(line)}")
        return message

    async def _died(self, process: Process) -> StateError:
        assert process.stderr is not None
        said = await process.stderr.read()
        code = await process.wait()
        self.alive.discard(process)
        tail = said.decode(errors="replace").strip()[-STDERR_SHOWN:]
        text = f"the process ended with exit code {code} before it answered"
        return StateError("States.TaskFailed", f"{text}: {tail}" if tail else text)

    async def _kill(self, process: Process) -> None:
        self.alive.discard(process)
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it may have ended by itself just now
                process.kill()
        await process.wait()

    async def close(self) -> None:
        """End every process."""
        self.idle.clear()
        for process in list(self.alive):
            await self._kill(process)


def _text(value: Json) -> str | None:
    return value if value is None or type(value) is str else compact(value)


def _shown(line: bytes) -> str:
    return repr(line[:200].decode(errors="replace").rstrip("\n"))
