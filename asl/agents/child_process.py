"""Child processes: their pipes, their output and their end.

A descendant that left the process group (`setsid`) still has the environment variable `MARK`, by
which it is found and killed on Linux; elsewhere only the process group is killed. A process that
cleared its environment is not found; a sandbox ends that too.
"""

from __future__ import annotations

import os
import signal
from asyncio import (
    StreamReader,
    StreamReaderProtocol,
    StreamWriter,
    Task,
    WriteTransport,
    ensure_future,
    get_running_loop,
    sleep,
    wait,
)
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import IO, Any, Final

from asl.core.environment import require_posix
from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import ReadingPace
from asl.engine.agent import Call

__all__ = ["MARK", "MAX_LINE", "ChildProcess", "ProgramOutput", "end_strays", "new_mark"]

MARK: Final = "ASL_PROCESS"
"""The variable that holds the mark of a program."""
ROUNDS: Final = 20
"""The number of searches for strays: one that is ending may start others."""


def new_mark() -> str:
    """Return a mark that no other program has."""
    return os.urandom(16).hex()


def end_strays(mark: str) -> None:
    """Kill all processes of this user that were started under a mark."""
    sought = f"{MARK}={mark}".encode()
    for _ in range(ROUNDS):
        found = [number for number in _numbers() if _has(number, sought)]
        if not found:
            return
        for number in found:
            with suppress(OSError):  # it has ended by itself
                _kill(number, sought)


def _numbers() -> Iterator[int]:
    """Yield the numbers of all processes but this one, none where the system does not show them."""
    with suppress(OSError):
        own = os.getpid()
        yield from (
            int(each) for each in os.listdir("/proc") if each.isdigit() and int(each) != own
        )


def _has(number: int, sought: bytes) -> bool:
    """Whether a variable is in the environment of a process, as far as that can be read."""
    try:
        with open(f"/proc/{number}/environ", "rb", buffering=0) as file:
            return sought in file.read().split(b"\0")
    except OSError:
        return False


def _kill(number: int, sought: bytes) -> None:
    """Kill a process, unless its number belongs to another one by now."""
    handle = os.pidfd_open(number)
    try:
        if _has(number, sought):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


MAX_LINE: Final = 16 * 1024 * 1024
"""Bytes of a line that a program answers: a text of them may take four times as many in memory."""
LAST_WORDS = 1.0
"""Seconds that a program without an answer has to end and report an error."""
STDERR_KEPT = 65_536
"""Characters of standard error: more than is shown, so that a secret in it is seen as a whole."""
SHOWN = 2000
"""Characters of it that the cause of an error shows."""
A_MOMENT = 0.001
"""Seconds between two checks whether a program is reading."""


class ProgramOutput(StreamReader):
    """The standard output of a program, line by line."""

    unread = 0
    """Received bytes that no line has returned yet."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.pace = ReadingPace()

    def feed_data(self, data: Any) -> None:
        self.unread += len(data)
        super().feed_data(data)

    async def readline(self) -> bytes:
        line = await super().readline()
        self.unread -= len(line)
        await self.pace.count(len(line))
        return line


class ChildProcess:
    """One running process, its pipes, and the end of its standard error.

    The process starts and ends in one step each, which no cancellation interrupts. No child watcher
    of an event loop is involved, so a run can end at any time.
    """

    requests: StreamWriter
    answers: ProgramOutput
    listening: Task[None]
    hide: Callable[[Json], Json] = staticmethod(Call.hide)

    def __init__(
        self, command: list[str], folder: str | None, environment: Mapping[str, str]
    ) -> None:
        from subprocess import PIPE, Popen

        require_posix(f"the program {command[0]!r}")
        mark = new_mark()
        try:
            self.process = Popen(
                command,
                bufsize=0,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=folder,
                env={**environment, MARK: mark},
                start_new_session=True,  # so that its own children can be ended with it
            )
        except OSError as error:
            where = f" in the folder {folder!r}" if error.filename == folder else ""
            text = f"cannot start {command[0]!r}{where}: {error.strerror}"
            raise StateError("States.TaskFailed", text) from error
        self.call_count = 0
        """The number of its calls."""
        self.stderr_text = ""
        self.invalid_line = ""
        """The last line of an MCP server that is no message."""
        self.overflow_reason = ""
        """Why the output of an MCP server is read no further."""
        self.resources = ExitStack()
        """Cleanup at the end, in reverse order."""
        self.resources.callback(end_strays, mark)

    async def connect(self) -> None:
        """Take the pipes to the running event loop."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            self.resources.callback(pipe.close)
        self.answers = ProgramOutput(MAX_LINE)
        await self._read(process.stdout, self.answers)
        errors = StreamReader(MAX_LINE)
        await self._read(process.stderr, errors)
        # The transport closes its pipe when the reader is gone; our copy still shows unread bytes.
        self.requests = await self._writer(os.fdopen(os.dup(process.stdin.fileno()), "wb", 0))
        self.listening = ensure_future(self._listen(errors))
        self.resources.callback(self.listening.cancel)

    async def _read(self, pipe: IO[bytes], reader: StreamReader) -> None:
        transport, _ = await get_running_loop().connect_read_pipe(
            lambda: StreamReaderProtocol(reader), pipe
        )
        self.resources.callback(transport.close)

    async def _writer(self, pipe: IO[bytes]) -> StreamWriter:
        self.resources.callback(pipe.close)
        loop = get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: StreamReaderProtocol(StreamReader()), pipe
        )
        self.resources.callback(_abort, transport)
        return StreamWriter(transport, protocol, None, loop)

    async def _listen(self, errors: StreamReader) -> None:
        """Read standard error, so the program never blocks on it."""
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        while said := await errors.read(65536):
            self.stderr_text = self.hide(self.stderr_text + decoder.decode(said))[-STDERR_KEPT:]

    async def send(self, line: bytes) -> bool:
        """Write a line; return False where the program stopped to read before its end."""
        try:
            self.requests.write(line + b"\n")
            await self.requests.drain()
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def send_blank(self) -> None:
        """Send the first blank of the next line: a program that reads it has written its answer."""
        self.requests.write(b" ")

    async def is_at_rest(self) -> bool:
        """Wait until it reads its input; return False if it ends or writes output instead."""
        while not self._has_news:
            if not self.has_unread:
                return not self._has_news  # it may have spoken between the two looks
            await sleep(A_MOMENT)
        return False

    @property
    def _has_news(self) -> bool:
        """Whether it has unread output, or has closed its input or output."""
        from select import POLLIN, poll

        if self.answers.unread or self.answers.at_eof() or self.requests.is_closing():
            return True
        assert self.process.stdout is not None
        waiting = poll()  # what has come since the event loop has looked last, or an end
        waiting.register(self.process.stdout, POLLIN)
        return bool(waiting.poll(0))

    @property
    def has_unread(self) -> bool:
        """Whether the end of what was sent is known to lie in its standard input, unread."""
        from fcntl import ioctl
        from sys import byteorder
        from termios import FIONREAD

        assert self.process.stdin is not None
        try:
            return int.from_bytes(ioctl(self.process.stdin, FIONREAD, bytes(4)), byteorder) > 0
        except OSError:  # a system that does not tell that of a pipe
            return False

    def finish(self) -> None:
        """Let it see the end of its standard input."""
        self.requests.close()
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def last_words(self) -> bool:
        """End it, after a time in which it may say why; return whether it has ended by itself."""
        # What has only closed its output may live on, or what it has started.
        _, alive = await wait([self.listening], timeout=LAST_WORDS)
        self.end()
        return not alive

    @property
    def tail(self) -> str:
        """The end of its standard error."""
        return str(self.hide(self.stderr_text))[-SHOWN:].strip()

    def redacted_line(self, line: bytes) -> str:
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
        """Kill the process and its descendants, close its pipes and wait for its end."""
        self.kill()
        self.resources.close()
        self.process.wait()


def _abort(transport: WriteTransport) -> None:
    if not transport.is_closing():  # it closes by itself when the process does not read any more
        transport.abort()
