"""The connection to an MCP server: a program spoken to on its standard streams, or a URL."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from asl.agents.http import (
    MAX_BYTES,
    NAMES,
    UNCOMPRESSED,
    AnswerLimits,
    AnswerRefusal,
    pinned_transport,
    size_hook,
)
from asl.agents.secrets import secret_filter
from asl.core.errors import StateError
from asl.core.json_text import MAX_ANSWER_VALUES, ValueCounter
from asl.engine.agent import ToolBounds
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from asyncio import Future

    import httpx2
    import mcp

    from asl.agents.child_process import ChildProcess
    from asl.agents.sandbox import SandboxedProgram

__all__ = ["SHOWN", "Connection"]

GRACE = 2.0
"""Seconds that a program may take to end after its standard input has."""
MAX_TOOLS = 1000
"""How many tools of one server are listed."""
MAX_LISTING = 2 * 1024 * 1024
"""Bytes of all descriptions of the tools of a server."""
LOGGERS = ("mcp", "client")
"""The loggers of the library."""
SHOWN = 2000
"""Characters of what a server says that the cause of an error shows."""


class _Heard:
    """The HTTP response to one request; the library drops it."""

    status: int | None = None
    """With what the request was refused."""
    refused: AnswerRefusal | None = None
    """Why the answer was not read."""


_HEARD: ContextVar[_Heard] = ContextVar("heard")
"""That of the request that is under way: the library sends each in the context of who asks."""


class McpAddress(Protocol):
    """A server, as a connection reaches it: it is a command or has a URL."""

    command: list[str] | None
    url: str | None
    folder: str | None
    environment: dict[str, str]
    """The environment of the program, in addition to a few variables of this process."""
    headers: dict[str, str]
    timeout: float
    """Seconds that the start, and each call, may take."""
    secrets: frozenset[str]
    """The secret values of environment and headers."""

    @property
    def label(self) -> str:
        """What the server is called in causes."""
        ...


class Connection:
    """One connection to a server, from its start to its end.

    It lives in a task of its own, since it must be closed by the task that has opened it. The task
    ends on request, and closing the connection waits for that. It connects only to hosts that all
    of *bounds* allow, and starts the program in *sandbox*, if there is one.
    """

    client: mcp.Client
    """What calls the server, as soon as `opened` has returned."""

    def __init__(
        self, server: McpAddress, bounds: Collection[ToolBounds], sandbox: SandboxedProgram | None
    ) -> None:
        from asyncio import create_task, get_running_loop

        import anyio

        self.server = server
        self.bounds = bounds
        self.sandbox = sandbox
        self.hide = secret_filter(server.secrets)
        self.program: ChildProcess | None = None
        self.tool_listings: dict[str, Any] = {}
        """The tools by their names, as the server describes them, once they are asked for."""
        self.ready: Future[None] = get_running_loop().create_future()
        self.ready.add_done_callback(_seen)
        self.stop, self.scope = anyio.Event(), anyio.CancelScope()
        self.task = create_task(self._live())

    async def wait_until_ready(self) -> None:
        """Wait until the server is ready; raises RaisedError after the time limit."""
        from asyncio import shield, timeout

        try:
            async with timeout(self.server.timeout):
                await shield(self.ready)
        except TimeoutError as late:
            raise self._failed(late, _Heard()) from None

    async def answer(self, response: Awaitable[Any]) -> Any:
        """Return what the server answers; raises RaisedError."""
        heard = _Heard()
        before = _HEARD.set(heard)
        try:
            return await response
        except Exception as error:  # of a library that raises what its transports raise
            raise self._failed(error, heard) from error
        finally:
            _HEARD.reset(before)

    async def tools(self) -> dict[str, Any]:
        """Return the tools of the server by name; raises RaisedError."""
        if not self.tool_listings:
            from asyncio import timeout

            try:
                async with timeout(self.server.timeout):
                    found = await self._pages()
            except TimeoutError as late:
                raise self._failed(late, _Heard()) from None
            self.tool_listings = {
                each.name: each for each in found if self.hide(each.name) == each.name
            }
        return self.tool_listings

    async def _pages(self) -> list[Any]:
        """Return the tools of all pages.

        Raises:
            RaisedError: `States.DataLimitExceeded`; the pages are too large together.
        """
        found, cursor, size = [], None, 0
        while True:
            page = await self.answer(self.client.list_tools(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            size += len(page.model_dump_json())
            if size > MAX_LISTING:
                text = f"{self.server.label}: its tools take more than {MAX_LISTING} bytes"
                raise RaisedError("States.DataLimitExceeded", text)
            if cursor is None or not page.tools or len(found) > MAX_TOOLS:
                return found  # a page of nothing may have endless others behind it

    async def _live(self) -> None:
        """Hold the connection open until it is to stop."""
        heard = _Heard()
        _HEARD.set(heard)
        closed = RaisedError(
            "Agent.NetworkError", f"{self.server.label}: the connection was closed"
        )
        try:
            with self.scope:
                async with AsyncExitStack() as stack:
                    client = await self._transport(stack)
                    self.client = await stack.enter_async_context(client)
                    validate: Any = _accept
                    self.client.session.validate_tool_result = validate  # type: ignore[method-assign]
                    self.ready.set_result(None)
                    await self.stop.wait()
        except Exception as error:  # of a library that raises what its transports raise
            closed = self._failed(error, heard)
        finally:
            if not self.ready.done():
                self.ready.set_exception(closed)

    async def _transport(self, stack: AsyncExitStack) -> mcp.Client:
        from logging import CRITICAL, NullHandler, getLogger

        import mcp

        server = self.server
        for logger in map(getLogger, LOGGERS):
            if not logger.handlers:  # the error has the same text: no need to print the log
                logger.addHandler(NullHandler())
            if server.secrets:  # the library logs unreadable answers, which may hold secrets
                logger.setLevel(CRITICAL)
        if server.command is not None:
            from asl.agents.child_process import ChildProcess

            if self.sandbox is None:
                environment = {**_inherited(), **server.environment}
                self.program = ChildProcess(server.command, server.folder, environment)
            else:
                self.program = self.sandbox.start()
            self.program.hide = self.hide
            transport: Any = _spoken_to(self.program)
        else:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            assert server.url is not None
            client = httpx2.AsyncClient(
                headers={**UNCOMPRESSED, **server.headers},
                timeout=server.timeout,
                event_hooks={"response": [self._note]},
                transport=pinned_transport(lambda request: self.bounds) if self.bounds else None,
            )
            await stack.enter_async_context(client)
            transport = streamable_http_client(server.url, http_client=client)
        return mcp.Client(transport, read_timeout_seconds=server.timeout)

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method != "POST":  # the library waits for no answer to other methods
            return await size_hook("Agent.ParseError", AnswerLimits(MAX_BYTES))(response)
        heard = _HEARD.get()
        if response.is_error:
            heard.status = response.status_code

        def refuse(refused: AnswerRefusal) -> None:
            heard.refused = refused

        return await size_hook("Agent.ParseError", AnswerLimits(MAX_BYTES), refuse)(response)

    async def close(self) -> None:
        """End the connection and the program, and wait until that is done."""
        from asyncio import wait

        self.stop.set()
        if not self.ready.done():  # its opener has stopped waiting
            self.scope.cancel()
        await wait([self.task], timeout=2 * GRACE)
        if self.program is not None:  # whatever has become of the task, it does not stay
            self.program.end()
            if self.sandbox is not None:
                await self.sandbox.end(self.program)
        self.task.cancel()
        await wait([self.task], timeout=GRACE)

    def _failed(self, error: BaseException, heard: _Heard) -> RaisedError:
        """Return the error of the specification for what the library raised."""
        while isinstance(error, BaseExceptionGroup):  # its task groups wrap what happens in them
            error = error.exceptions[0]
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

        label = self.server.label
        if heard.refused is not None:
            return RaisedError(heard.refused.name, f"{label}: {heard.refused.cause}")
        if self.program is not None and self.program.overflow_reason:
            text = f"{label}: {self.program.overflow_reason}"
            return RaisedError("States.DataLimitExceeded", text)
        code = error.code if isinstance(error, MCPError) else None
        if isinstance(error, TimeoutError) or code == REQUEST_TIMEOUT:
            text = f"{label}: no answer within {self.server.timeout:g} s"
            garbled = "" if self.program is None else self.program.invalid_line
            text = f"{text}; it wrote {garbled}, which is not a message" if garbled else text
            return RaisedError("States.Timeout", text)
        if isinstance(error, StateError):  # it could not be started
            return RaisedError("Agent.NetworkError", str(error.cause))
        said = str(error) or type(error).__name__
        said = str(self.hide(said))[:SHOWN]
        if isinstance(error, ValueError) or code == PARSE_ERROR:
            return RaisedError("Agent.ParseError", f"{label}: the answer is not valid: {said}")
        if heard.status is not None:
            text = f"{label}: {heard.status}: {said}"
            return RaisedError(NAMES.get(heard.status, "Agent.NetworkError"), text)
        tail = self.program.tail if self.program is not None else ""
        text = f"{label}: {said}: {tail}" if tail else f"{label}: {said}"
        broken = code is None or code == CONNECTION_CLOSED
        return RaisedError("Agent.NetworkError" if broken else "Agent.ToolError", self.hide(text))


async def _accept(name: str, result: object) -> None:
    """Accept a result: `McpServer` validates it, the library would without any bound."""


def _seen(future: Future[Any]) -> None:
    """Retrieve the exception of a future, so asyncio does not log it."""
    if not future.cancelled():
        future.exception()


def _inherited() -> dict[str, str]:
    """Return what a server sees of this process' environment: nothing that could be a secret."""
    from mcp.client.stdio import get_default_environment

    return get_default_environment()


@asynccontextmanager
async def _spoken_to(program: ChildProcess) -> AsyncGenerator[tuple[Any, Any], None]:
    """Speak MCP with a program: one message on a line, in both directions."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    heard, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, said = anyio.create_memory_object_stream[Any](0)

    async def listen() -> None:
        with heard, suppress(anyio.BrokenResourceError):  # no listener
            while line := await _message_line(program):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    program.invalid_line = program.redacted_line(line)
                    await heard.send(error)
                else:
                    await heard.send(SessionMessage(message))

    async def speak() -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # then it ends to answer, too
            async for each in said:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                program.requests.write(text.encode() + b"\n")
                await program.requests.drain()

    with heard, incoming, outgoing, said:
        try:
            await program.connect()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                tasks.start_soon(speak)
                try:
                    yield incoming, outgoing
                finally:
                    await _ended(program)
                    tasks.cancel_scope.cancel()
        finally:
            program.end()


async def _message_line(program: ChildProcess) -> bytes:
    """Return the next line of a program, b"" at the end and for one that is too large to read."""
    try:
        line = await program.answers.readline()
    except ValueError:
        program.overflow_reason = "an answer of too many bytes"
        return b""
    if len(line) > MAX_ANSWER_VALUES and not ValueCounter(MAX_ANSWER_VALUES).feed(line):
        program.overflow_reason = f"an answer of more than {MAX_ANSWER_VALUES} values"
        return b""
    return line


async def _ended(program: ChildProcess) -> None:
    """Let a program end by itself, as the protocol wants it, as long as that takes no time."""
    import anyio

    with anyio.CancelScope(shield=True), anyio.move_on_after(GRACE):
        program.finish()
        while program.process.poll() is None:
            await anyio.sleep(0.005)
