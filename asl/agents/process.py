"""Agents that are programs of their own, spoken to in lines of JSON.

Each call writes one line to the program's standard input:
`{"parameters": ..., "call": {"execution", "state", "attempt", "key"}}`, and reads lines from its
standard output until one ends the call: `{"return": value}` or `{"error": name, "cause": text}`,
beside which may stand what it has used (`_tokens`, `_usage`, `_cost`, `model`).
A line `{"heartbeat": true}`, `{"progress": percent, "message": text}` or `{"chunk": text}`, a
piece of the answer, is a sign of life.
A line `{"tool": name, "arguments": {...}}` uses a tool of the run; what it answers is written to
the program's standard input, as `{"return": value}` or `{"error": name, "cause": text}`.
A program serves one call at a time and is kept for the next; calls at the same time start more.
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakSet

from asl.agents.kind import Home, Kind, Spec
from asl.agents.secrets import Discreet, secrets_of
from asl.core.diagnostics import Finding
from asl.core.errors import StateError, lost
from asl.core.json_text import read_data
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Call, Held, Outsider
from asl.engine.execution import usage_in
from asl.states.errors import Raised

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter, Task, WriteTransport

__all__ = ["MAX_LINE", "PROCESS", "ProcessAgent", "Program", "check_folder"]

MAX_LINE = 64 * 1024 * 1024
LAST_WORDS = 1.0
"""Seconds in which a program that has closed its output may end and say why."""
STDERR_KEPT = 65_536
"""Characters of standard error: more than is shown, so that a secret in it is seen as a whole."""
SHOWN = 2000
"""Characters of it that the cause of an error shows."""


class ProcessAgent:
    """A command that answers calls in lines of JSON; its processes end with the execution.

    `folder` is where it runs, `environment` holds variables that are set in addition.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.folder = folder
        self.environment = dict(environment or {})
        self.runs: WeakSet[_Programs] = WeakSet()

    def opened(self, held: Held) -> Agent:
        """Return the agent as one run sees it, with processes of its own; it echoes no key."""
        programs = _Programs(self)
        self.runs.add(programs)
        secrets = secrets_of(self.environment)
        return Discreet(programs, secrets).opened(held) if secrets else programs

    @property
    def alive(self) -> set[Program]:
        """The processes there are now, of all runs together."""
        return {program for run in self.runs for program in run.alive}


class _Programs(Outsider):
    """The processes of one run."""

    def __init__(self, agent: ProcessAgent) -> None:
        self.agent = agent
        self.folder = agent.folder
        self.idle: list[Program] = []
        self.alive: set[Program] = set()

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask one process; raises Raised with the name it gives, or `States.TaskFailed`."""
        assert call is not None
        program = self.idle.pop() if self.idle else await self._start()
        try:
            result = await program.ask(payload, call)
        except Raised:
            self.idle.append(program)
            raise
        except BaseException:
            # It broke the protocol, died or is no longer waited for: nobody can ask it again.
            self._end(program)
            raise
        self.idle.append(program)
        return result

    async def confined(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the program in a sandbox of its own for each call."""
        from asl.agents.sandbox import confined_program

        agent = self.agent
        return await confined_program(
            agent.command, agent.folder, agent.environment, settings, tool
        )

    async def _start(self) -> Program:
        agent = self.agent
        program = Program(agent.command, agent.folder, {**os.environ, **agent.environment})
        self.alive.add(program)
        try:
            await program.connect()
        except BaseException:
            self._end(program)
            raise
        return program

    def _end(self, program: Program) -> None:
        self.alive.discard(program)
        program.end()

    async def close(self) -> None:
        """End every process."""
        self.idle.clear()
        for program in self.alive:  # first all, which takes no longer than one
            program.kill()
        for program in list(self.alive):
            self._end(program)


class Program:
    """One running process, its pipes, and what it said on standard error last.

    The process starts and ends in one step each, which no cancellation cuts in two, and nobody
    watches it who would report to an event loop: a run can be ended at any instant.
    """

    requests: StreamWriter
    answers: StreamReader
    listening: Task[None]
    hide: Callable[[Json], Json] = staticmethod(Call.hide)

    def __init__(
        self, command: list[str], folder: str | None, environment: Mapping[str, str]
    ) -> None:
        from subprocess import PIPE, Popen

        try:
            self.process = Popen(
                command,
                bufsize=0,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,  # so that its own children can be ended with it
            )
        except OSError as error:
            raise StateError(
                "States.TaskFailed", f"cannot start {command[0]!r}: {error.strerror}"
            ) from error
        self.said = ""
        self.garbled = ""
        """The last line of an MCP server that is no message."""
        self.held = ExitStack()
        """What is let go of at the end, the last first."""

    async def connect(self) -> None:
        """Take the pipes to the running event loop."""
        from asyncio import ensure_future

        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            self.held.callback(pipe.close)
        self.answers = await self._reader(process.stdout)
        errors = await self._reader(process.stderr)
        self.requests = await self._writer(process.stdin)
        self.listening = ensure_future(self._listen(errors))
        self.held.callback(self.listening.cancel)

    async def _reader(self, pipe: IO[bytes]) -> StreamReader:
        from asyncio import StreamReader, StreamReaderProtocol, get_running_loop

        reader = StreamReader(MAX_LINE)
        transport, _ = await get_running_loop().connect_read_pipe(
            lambda: StreamReaderProtocol(reader), pipe
        )
        self.held.callback(transport.close)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> StreamWriter:
        from asyncio import StreamReader, StreamReaderProtocol, StreamWriter, get_running_loop

        loop = get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: StreamReaderProtocol(StreamReader()), pipe
        )
        self.held.callback(_abort, transport)
        return StreamWriter(transport, protocol, None, loop)

    async def _listen(self, errors: StreamReader) -> None:
        """Keep standard error flowing, so that the program never blocks on it."""
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        while said := await errors.read(65536):
            self.said = self.hide(self.said + decoder.decode(said))[-STDERR_KEPT:]

    async def ask(self, payload: Json, call: Call) -> Json:
        """Send a request and read lines until one answers it.

        Raises Raised with the name that the program gives, or StateError("States.TaskFailed").
        """
        self.hide = call.hide
        request = {
            "parameters": payload,
            "call": {
                "execution": call.execution_id,
                "state": call.state_name,
                "attempt": call.attempt,
                "key": call.idempotency_key,
                **({} if call.context is None else {"context": call.context}),
            },
        }
        with suppress(BrokenPipeError, ConnectionResetError):  # then there is no answer to read
            self.requests.write(compact(request).encode() + b"\n")
            await self.requests.drain()
        while True:
            message = await self._message()
            if "return" in message:
                return message["return"]
            if "error" in message:
                failure = Raised(_text(message["error"]), _text(message.get("cause")))
                failure.usage = usage_in(message)
                raise failure
            if "progress" in message:
                call.report_progress(message["progress"], str(message.get("message", "")))
            elif type(message.get("chunk")) is str:
                call.report_chunk(message["chunk"])
            elif "tool" in message:
                await self._use(message, call)
            elif "heartbeat" in message:
                call.heartbeat()
            else:
                text = "a line with none of return, error, progress, chunk, heartbeat, tool"
                shown = self.shown(compact(message).encode())
                raise lost(StateError("States.TaskFailed", f"{text}: {shown}"))

    async def _use(self, message: Mapping[str, Json], call: Call) -> None:
        """Use a tool for the program, and tell it what came of that."""
        answer: dict[str, Json]
        try:
            answer = {"return": await call.tools.call(message["tool"], message.get("arguments"))}
        except StateError as error:
            answer = {"error": error.name, "cause": error.cause}
        with suppress(BrokenPipeError, ConnectionResetError):
            self.requests.write(compact(answer).encode() + b"\n")
            await self.requests.drain()

    async def _message(self) -> dict[str, Any]:
        line = b"\n"
        try:
            while line.isspace():
                line = await self.answers.readline()
        except ValueError:
            text = f"an answer of more than {MAX_LINE} bytes"
            raise lost(StateError("States.TaskFailed", text)) from None
        if not line:
            raise await self._died()
        try:
            message = read_data(line.decode())
        except ValueError:
            message = None
        if type(message) is not dict:
            text = f"a line that is no JSON object: {self.shown(line)}"
            raise lost(StateError("States.TaskFailed", text))
        return message

    async def _died(self) -> StateError:
        from asyncio import wait

        # What has only closed its output may live on, or what it has started.
        _, alive = await wait([self.listening], timeout=LAST_WORDS)
        self.end()
        what = f"ended with exit code {self.process.returncode}"
        if alive:
            what = "closed its output"
        text = f"the process {what} before it answered"
        text = f"{text}: {self.tail}" if self.tail else text
        return lost(StateError("States.TaskFailed", text))

    @property
    def tail(self) -> str:
        """The end of what the program said on standard error."""
        return str(self.hide(self.said))[-SHOWN:].strip()

    def shown(self, line: bytes) -> str:
        """Return the beginning of a line, with no secret in it."""
        text = self.hide(line.decode(errors="replace"))
        return repr(text[:200].rstrip("\n"))

    def kill(self) -> None:
        """Kill the process, unless it has ended by itself, and all of its group."""
        import signal

        if self.process.returncode is None:  # until then no other process has its number
            with suppress(ProcessLookupError, PermissionError):  # none of the group is left
                os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process, let go of its pipes and see it gone."""
        self.kill()
        self.held.close()
        self.process.wait()


def _abort(transport: WriteTransport) -> None:
    if not transport.is_closing():  # it closes by itself when the process does not read any more
        transport.abort()


def _text(value: Json) -> str | None:
    return value if value is None or type(value) is str else compact(value)


def check_folder(spec: Spec, home: Home) -> Iterator[Finding]:
    """Yield what is wrong with the folder of a program."""
    folder = spec.get("folder", ".")
    if not (home.folder / folder).is_dir():
        yield Finding("AGENTS-04", f"'folder' is no folder: {folder!r}", "/folder")


def _build(spec: Spec, home: Home) -> ProcessAgent:
    folder = home.folder / spec.get("folder", ".")
    return ProcessAgent(spec["command"], folder=str(folder), environment=spec.get("environment"))


PROCESS = Kind("agents:Process", _build, check_folder, secrets=("environment",))
