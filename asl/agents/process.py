"""Agents that are programs of their own, spoken to in lines of JSON.

Each call writes one line to the program's standard input:
`{"id": number, "parameters": ..., "call": {"execution", "state", "attempt", "key"}}`, and reads
lines from its standard output until one ends the call: `{"return": value}` or
`{"error": name, "cause": text}`, with its usage in the same object (`_tokens`, `_usage`,
`_cost`, `model`).
A line `{"heartbeat": true}`, `{"progress": percent, "message": text}` or `{"chunk": text}`, a
piece of the answer, is a sign of life.
A line `{"tool": name, "arguments": {...}}` uses a tool of the run; what it answers is written to
the program's standard input, as `{"return": value}` or `{"error": name, "cause": text}`.
Each line may repeat the `id` of its call.

A program serves one call at a time and is kept for the next; calls at the same time start more.
It is reused only if it ended the call itself, reads its input, still lives and wrote nothing since.
If a process ends without reading a call, another process gets the call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from asl.agents.agent_kinds import AgentKind, AgentSpec, FileContext
from asl.agents.secrets import SecretFilter, secrets_of
from asl.core.diagnostics import Finding
from asl.core.errors import AslError, StateError, mark_usage_unknown
from asl.core.json_text import MAX_ANSWER_VALUES, ValueCounter, read_data
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Call, ExternalAgent, OpenAgents
from asl.engine.usage import usage_of_failure
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from asl.agents.child_process import ChildProcess

__all__ = ["PROCESS", "ProcessAgent", "answer_in", "ask", "check_folder", "words"]

ANSWER = '{"return": VALUE}'


class ProcessAgent:
    """A command that answers calls in lines of JSON; its processes end with the execution.

    `folder` is where it runs, `environment` holds variables that are set in addition.

    Raises AslError for a command that is not a sequence of a program and its arguments.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = words(command)
        self.folder = folder
        self.environment = dict(environment or {})
        self.runs: WeakSet[_Programs] = WeakSet()

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent as one run sees it, with processes of its own; it echoes no key."""
        programs = _Programs(self)
        self.runs.add(programs)
        secrets = secrets_of(self.environment)
        return SecretFilter(programs, secrets).open_agent(open_agents) if secrets else programs

    @property
    def alive(self) -> set[ChildProcess]:
        """The processes there are now, of all runs together."""
        return {program for run in self.runs for program in run.alive}


class _Unread(StateError):
    """The program did not read the call: it ended, or wrote unexpected output."""


class _Programs(ExternalAgent):
    """The processes of one run."""

    opens_files = True

    def __init__(self, agent: ProcessAgent) -> None:
        self.agent = agent
        self.folder = agent.folder
        self.idle: list[ChildProcess] = []
        self.alive: set[ChildProcess] = set()

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask one process; raises RaisedError with the name it gives, or `States.TaskFailed`."""
        assert call is not None
        while self.idle:
            with suppress(_Unread):
                return await self._ask(self.idle.pop(), payload, call)
        return await self._ask(await self._start(), payload, call)

    async def _ask(self, program: ChildProcess, payload: Json, call: Call) -> Json:
        try:
            message = await ask(program, payload, call)
        except BaseException:
            # The call ended, but not by the program: what it says next would be read as an answer.
            self._end(program)
            raise
        program.send_blank()
        self.idle.append(program)
        return answer_in(message)

    async def confine(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the program in a sandbox of its own for each call."""
        from asl.agents.sandbox import confined_program

        agent = self.agent
        return await confined_program(
            agent.command, agent.folder, agent.environment, settings, tool
        )

    async def _start(self) -> ChildProcess:
        from asl.agents.child_process import ChildProcess

        agent = self.agent
        program = ChildProcess(agent.command, agent.folder, {**os.environ, **agent.environment})
        self.alive.add(program)
        try:
            await program.connect()
        except BaseException:
            self._end(program)
            raise
        return program

    def _end(self, program: ChildProcess) -> None:
        self.alive.discard(program)
        program.end()

    async def close(self) -> None:
        """End every process."""
        self.idle.clear()
        for program in self.alive:  # first all, which takes no longer than one
            program.kill()
        for program in list(self.alive):
            self._end(program)


async def ask(program: ChildProcess, payload: Json, call: Call) -> Mapping[str, Json]:
    """Send a call to a program and read lines until one ends it; return that one.

    Raises StateError("States.TaskFailed") where the program breaks the protocol or ends, and what
    reports of the call raise. After any of them the program cannot be asked again.
    """
    if program.call_count and not await program.is_at_rest():
        raise _Unread("States.TaskFailed", "the process ended or wrote unexpected output")
    program.hide = call.hide
    program.call_count += 1
    request = {
        "id": program.call_count,
        "parameters": payload,
        "call": {
            "execution": call.execution_id,
            "state": call.state_name,
            "attempt": call.attempt,
            "key": call.idempotency_key,
            **({} if call.context is None else {"context": call.context}),
        },
    }
    is_sent = await program.send(compact(request).encode())
    said = 0
    while line := await _line(program):
        message = await _message(program, line)
        if message.get("id") in range(1, program.call_count):
            continue  # of an earlier call
        said += 1
        if "return" in message:
            if (usage := usage_of_failure(message)) is not None:
                raise await _misused(program, usage)
            return message
        if "error" in message:
            return message
        if "progress" in message:
            call.report_progress(message["progress"], str(message.get("message", "")))
        elif type(message.get("chunk")) is str:
            call.report_chunk(message["chunk"])
        elif "tool" in message:
            await _use(program, message, call)
        elif "heartbeat" in message:
            call.heartbeat()
        else:
            text = "a line with none of return, error, progress, chunk, heartbeat, tool"
            raise await _breach(program, f"{text}: {program.redacted_line(line)}")
    raise await _died(program, has_read=said > 0 or (is_sent and not program.has_unread))


def answer_in(message: Mapping[str, Json]) -> Json:
    """Return the answer in the last line of a call; raises RaisedError with its name."""
    if "return" in message:
        return message["return"]
    failure = RaisedError(_text(message["error"]), _text(message.get("cause")))
    failure.usage = usage_of_failure(message)
    raise failure


async def _use(program: ChildProcess, message: Mapping[str, Json], call: Call) -> None:
    """Use a tool for a program, and tell it what came of that."""
    answer: dict[str, Json]
    try:
        answer = {"return": await call.tools.call(message["tool"], message.get("arguments"))}
    except StateError as error:
        answer = {"error": error.name, "cause": error.cause}
    await program.send(compact(answer).encode())


async def _line(program: ChildProcess) -> bytes:
    """Return the next line that is not empty, b"" at the end of the output."""
    from asl.agents.child_process import MAX_LINE

    line = b"\n"
    try:
        while line.isspace():
            line = await program.answers.readline()
    except ValueError:
        raise await _breach(program, f"an answer of more than {MAX_LINE} bytes") from None
    if len(line) > MAX_ANSWER_VALUES and not ValueCounter(MAX_ANSWER_VALUES).feed(line):
        raise await _breach(program, f"an answer of more than {MAX_ANSWER_VALUES} values")
    return line


async def _message(program: ChildProcess, line: bytes) -> dict[str, Any]:
    try:
        message = read_data(line.decode())
    except ValueError:
        message = None
    if type(message) is not dict:
        text = f"a line that is no JSON object: {program.redacted_line(line)}"
        raise await _breach(
            program, f"{text}; write an answer as one line {ANSWER}, and all else to standard error"
        )
    return message


async def _breach(program: ChildProcess, text: str) -> StateError:
    """Return the error of a program that writes what the protocol does not know."""
    program.finish()  # so that it may end, and say why
    ended = await program.last_words()
    if ended and program.process.returncode > 0:
        text = f"{text}; the process ended with exit code {program.process.returncode}"
    return _told(program, text)


async def _misused(program: ChildProcess, usage: Mapping[str, Json]) -> StateError:
    """Return the error of a program with usage inside the returned value."""
    told = compact({"return": dict(usage)})
    text = f"the usage belongs next to 'return', not into its value, as in {told}"
    failure = await _breach(program, text)
    failure.usage, failure.lost = usage, False
    return failure


async def _died(program: ChildProcess, *, has_read: bool) -> StateError:
    """Return the error of a program that has closed its output before it answered."""
    what = "closed its output"
    if await program.last_words():
        what = f"ended with exit code {program.process.returncode}"
    kind = StateError if has_read else _Unread
    return _told(program, f"the process {what} before it answered", kind)


def _told(program: ChildProcess, text: str, kind: type[StateError] = StateError) -> StateError:
    text = f"{text}: {program.tail}" if program.tail else text
    return mark_usage_unknown(kind("States.TaskFailed", text))


def words(command: Sequence[str]) -> list[str]:
    """Return the words of a command; raises AslError for a text, and for no words at all."""
    if isinstance(command, str) or not command:
        text = "a command is a program and its arguments, such as ['python3', 'agent.py']"
        raise AslError(f"{text}, not {command!r}")
    return list(command)


def _text(value: Json) -> str | None:
    return value if value is None or type(value) is str else compact(value)


def check_folder(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    """Yield what is wrong with the folder of a program."""
    folder = spec.get("folder", ".")
    if not (context.folder / folder).is_dir():
        yield Finding("AGENTS-04", f"'folder' is no folder: {folder!r}", "/folder")


def _build(spec: AgentSpec, context: FileContext) -> ProcessAgent:
    folder = context.folder / spec.get("folder", ".")
    return ProcessAgent(spec["command"], folder=str(folder), environment=spec.get("environment"))


PROCESS = AgentKind("agents:Process", _build, check_folder, secrets=("environment",))
