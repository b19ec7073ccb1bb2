"""MCP servers: their tools as agents, and as tools of language models.

A server is a program that speaks the Model Context Protocol on its standard streams, or a URL. It
starts with the first call of a run that needs it, serves all calls of this run, and ends with it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from asl.agents.http import MAX_BYTES, NAMES, UNCOMPRESSED, Refused, bounded, pinning
from asl.agents.kind import Home, Kind, Spec
from asl.agents.process import check_folder, words
from asl.agents.secrets import Discreet, hiding, secrets_of
from asl.core.diagnostics import Finding
from asl.core.errors import AslError, StateError, lost
from asl.core.extras import needed
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Call, Held, Outsider, opened
from asl.engine.tools import Bounds, Offer, Offers
from asl.states.errors import Raised

if TYPE_CHECKING:
    from asyncio import Future, Task

    import httpx2
    import mcp

    from asl.agents.program import Program
    from asl.agents.sandbox import Confined

__all__ = ["MCP", "McpServer", "McpTool", "fingerprint"]

TIMEOUT = 60.0
MAX_TOOLS = 1000
"""How many tools of one server are listed."""
GRACE = 2.0
"""Seconds that a program may take to end after its standard input has."""
BROKEN = ("Agent.NetworkError", "Agent.ParseError", "States.DataLimitExceeded")
"""The errors after which the connection is made anew."""
UNTOLD = (*BROKEN, "States.Timeout")
"""The errors of calls of which nobody knows what they have used."""
SHOWN = 2000
"""Characters of what a server says that the cause of an error shows."""


class McpServer:
    """A server of the Model Context Protocol: a program (`command`) or a `url`.

    `folder` and `environment` are those of the program, which sees PATH, HOME and a few variables
    more, but no others of this process. `headers` are sent to the URL. `timeout` is how many
    seconds its start, and each call, may take. `pins` maps names of tools to their `fingerprint`: a
    tool that has another one is refused, and so is one that is not listed there.

    Raises AslError where the extra `mcp` is not installed.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        url: str | None = None,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        pins: Mapping[str, str] | None = None,
    ) -> None:
        needed("mcp", "mcp", "an MCP server")
        if (command is None) == (url is None):
            raise AslError("an MCP server is a command or a URL")
        self.command = None if command is None else words(command)
        self.url = url
        self.folder = folder
        self.environment = dict(environment or {})
        self.headers = dict(headers or {})
        self.timeout = timeout
        self.pins = pins
        self.name = ""
        """What it is bound to: its tools are `NAME/TOOL` to the policies of documents."""
        self.secrets = secrets_of({**self.environment, **self.headers})
        """What of this nobody may see."""

    @property
    def label(self) -> str:
        """What the server is called in causes."""
        return self.command[0] if self.command else str(self.url)

    def tool(self, name: str) -> McpTool:
        """Return one tool of the server, as an agent and as a tool."""
        return McpTool(self, name)

    def opened(self, held: Held) -> _Session:
        """Return the server as one run sees it."""
        return _Session(self)

    def offers(self, held: Held) -> Offers:
        """Return what tells of all its tools in one run."""
        session = _session(self, held)

        async def listed(call: Call) -> list[Offer]:
            asked = await session.asked_by(call)
            names = await asked.tools() if self.pins is None else self.pins
            return [asked.offer(await asked.tool(name)) for name in names]

        return listed


class McpTool:
    """One tool of a server: an agent whose parameters are the arguments of the tool."""

    def __init__(self, server: McpServer, name: str) -> None:
        self.server = server
        self.name = name

    def opened(self, held: Held) -> Agent:
        """Return the agent as one run sees it."""
        return _session(self.server, held).used(self.name)

    def offers(self, held: Held) -> Offers:
        """Return what tells of this tool in one run."""
        session = _session(self.server, held)

        async def listed(call: Call) -> list[Offer]:
            asked = await session.asked_by(call)
            return [asked.offer(await asked.tool(self.name))]

        return listed


def _session(server: McpServer, held: Held) -> _Session:
    session = opened(server, held)
    assert isinstance(session, _Session)
    return session


def fingerprint(name: str, description: str | None, input: Json, output: Json) -> str:
    """Return what stands for all that a server says of a tool: `sha256:` and 64 digits."""
    from hashlib import sha256

    import orjson

    said = orjson.dumps([name, description, input, output], option=orjson.OPT_SORT_KEYS)
    return f"sha256:{sha256(said).hexdigest()}"


class _Session(Outsider):
    """A server in one run.

    Its connection lives in a task of its own, since it must be closed by the task that has opened
    it. The task ends when it is told to, and whoever closes the session waits for that.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.living: Task[None] | None = None
        self.program: Program | None = None
        self.hide = hiding(server.secrets)
        self.listed: dict[str, Any] = {}
        self.known: dict[str, str] = {}
        """The fingerprints of the tools that were used, or offered, in this run."""
        self.bounds: dict[object, Bounds] = {}
        """What the connection is held to: the bounds of all calls that limit the network."""
        self.status: int | None = None
        """With what a request over HTTP was refused, until that is told: the library drops it."""
        self.refused: Refused | None = None
        """Why an answer over HTTP was not read, until that is told: the library drops it, too."""
        self.sandbox: Confined | None = None
        """How the program is started where it has to be confined."""
        self.sandboxed: dict[str, _Session] = {}
        """The same server in sandboxes, by their settings."""

    async def asked_by(self, call: Call) -> _Session:
        """Return the session that tells a call what there is: within the bounds of its tools."""
        label = self.server.label
        settings = None if call.sandbox is None else call.sandbox(label)
        if settings is not None:
            return await self.in_sandbox(settings, label)
        await self.keep_to(call.bounds)
        return self

    async def in_sandbox(self, settings: Mapping[str, Json], tool: str) -> _Session:
        """Return the server as it runs in a sandbox, which lasts as long as the run.

        Raises Raised("States.Permissions") for one that runs elsewhere.
        """
        key, server = compact(settings), self.server
        if self.sandbox is not None or key in self.sandboxed:
            return self.sandboxed.get(key, self)
        if server.command is None:
            text = f"tool {tool!r}: a server with a URL runs elsewhere, and in no sandbox of ours"
            raise Raised("States.Permissions", text)
        from asl.agents.sandbox import confined_command

        made = _Session(server)
        made.sandbox = await confined_command(
            server.command, server.folder, server.environment, settings, tool
        )
        made.known = self.known
        return self.sandboxed.setdefault(key, made)

    def answer(self, payload: Json, call: Call | None) -> Any:
        """Refuse: a server answers by its tools only."""
        message = f"{self.server.label} is a server: bind one of its tools, server.tool(NAME)"
        raise StateError("States.TaskFailed", message)

    async def connected(self) -> mcp.Client:
        """Return the connection, which is made at the first need, and again when it has broken."""
        from asyncio import create_task, get_running_loop, shield, timeout

        import anyio

        if self.living is None:
            self.listed = {}
            self.ready: Future[mcp.Client] = get_running_loop().create_future()
            self.ready.add_done_callback(_seen)
            self.stop, self.scope = anyio.Event(), anyio.CancelScope()
            self.living = create_task(self._live())
        ready = self.ready
        try:
            async with timeout(self.server.timeout):
                return await shield(ready)
        except TimeoutError as late:
            await self.close()
            raise self._failed(late) from None
        except StateError:  # the next call may find it better
            if self.ready is ready:
                await self.close()
            raise

    async def _live(self) -> None:
        """Keep the connection from the first call to the end of the run."""
        try:
            with self.scope:
                async with AsyncExitStack() as stack:
                    client = await self._transport(stack)
                    self.ready.set_result(await stack.enter_async_context(client))
                    await self.stop.wait()
        except Exception as error:  # of a library that raises what its transports raise
            if not self.ready.done():
                self.ready.set_exception(self._failed(error))
        finally:
            self.ready.cancel()

    async def _transport(self, stack: AsyncExitStack) -> mcp.Client:
        from logging import CRITICAL, NullHandler, getLogger

        import mcp

        server = self.server
        logger = getLogger("mcp")
        if not logger.handlers:  # what it logs the error tells: Python need not print it
            logger.addHandler(NullHandler())
        if server.secrets:  # what it cannot read the library logs, with all that a server has said
            logger.setLevel(CRITICAL)
        if server.command is not None:
            from asl.agents.program import Program

            if self.sandbox is None:
                environment = {**_inherited(), **server.environment}
                self.program = Program(server.command, server.folder, environment)
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
                transport=pinning(lambda request: self.bounds.values()) if self.bounds else None,
            )
            await stack.enter_async_context(client)
            transport = streamable_http_client(server.url, http_client=client)
        return mcp.Client(transport, read_timeout_seconds=server.timeout)

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method != "POST":  # nobody waits for what else a server has to say
            return await bounded("Agent.ParseError", MAX_BYTES)(response)
        if response.is_error:
            self.status = response.status_code
        return await bounded("Agent.ParseError", MAX_BYTES, self._refuse)(response)

    def _refuse(self, refused: Refused) -> None:
        self.refused = refused

    async def close(self) -> None:
        """End the connection and the program, and wait until that is done."""
        for each in self.sandboxed.values():
            await each.close()
        if self.living is None:
            return
        from asyncio import wait

        living, self.living = self.living, None
        self.stop.set()
        if not self.ready.done():  # nobody waits for it any more
            self.scope.cancel()
        await wait([living], timeout=2 * GRACE)
        if self.program is not None:  # whatever has become of the task, it does not stay
            self.program.end()
            if self.sandbox is not None:
                self.sandbox.end(self.program)
        living.cancel()
        await wait([living], timeout=GRACE)

    async def tools(self) -> dict[str, Any]:
        """Return the tools of the server by their names, as it describes them."""
        client = await self.connected()
        if not self.listed:
            found, cursor = [], None
            while True:
                page = await self._answered(client.list_tools(cursor=cursor))
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or not page.tools or len(found) > MAX_TOOLS:
                    break  # a page of nothing may have endless others behind it
            self.listed = {each.name: each for each in found if self.hide(each.name) == each.name}
        return self.listed

    async def _answered(self, asked: Awaitable[Any]) -> Any:
        """Return what the server answers; a connection that has broken is made anew next time."""
        try:
            return await asked
        except Exception as error:  # of a library that raises what its transports raise
            failure = self._failed(error)
            if failure.name in BROKEN:
                await self.close()
            raise failure from error

    def _failed(self, error: BaseException) -> Raised:
        """Return the error of the specification for what the library raised."""
        while isinstance(error, BaseExceptionGroup):  # its task groups wrap what happens in them
            error = error.exceptions[0]
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

        label = self.server.label
        refused, self.refused = self.refused, None
        status, self.status = self.status, None
        if refused is not None:
            return Raised(refused.name, f"{label}: {refused.cause}")
        code = error.code if isinstance(error, MCPError) else None
        if isinstance(error, TimeoutError) or code == REQUEST_TIMEOUT:
            text = f"{label}: no answer within {self.server.timeout:g} s"
            garbled = "" if self.program is None else self.program.garbled
            text = f"{text}; it said {garbled}, which is no message" if garbled else text
            return Raised("States.Timeout", text)
        if isinstance(error, StateError):  # it could not be started
            return Raised("Agent.NetworkError", str(error.cause))
        said = str(error) or type(error).__name__
        said = str(self.hide(said))[:SHOWN]
        if isinstance(error, ValueError) or code == PARSE_ERROR:
            return Raised("Agent.ParseError", f"{label}: the answer makes no sense: {said}")
        if status is not None:
            text = f"{label}: {status}: {said}"
            return Raised(NAMES.get(status, "Agent.NetworkError"), text)
        tail = self.program.tail if self.program is not None else ""
        text = f"{label}: {said}: {tail}" if tail else f"{label}: {said}"
        broken = code is None or code == CONNECTION_CLOSED
        return Raised("Agent.NetworkError" if broken else "Agent.ToolError", self.hide(text))

    async def tool(self, name: str) -> Any:
        """Return a tool as the server describes it; raises Raised for one that is not there."""
        tools = await self.tools()
        if name not in tools:
            raise Raised("Agent.ToolError", f"{self.server.label}: there is no tool {name!r}")
        tool = tools[name]
        pins = self.server.pins
        found = fingerprint(name, tool.description, tool.input_schema, tool.output_schema)
        why = None
        if pins is not None and pins.get(name) != found:
            why = "is another one than is pinned" if name in pins else "is not pinned"
        elif self.known.setdefault(name, found) != found:
            why = "is another one than it was before in this run"
        if why is not None:
            text = f"{self.server.label}: the tool {name!r} {why}: its fingerprint is {found}"
            raise Raised("States.Permissions", text)
        return tool

    def offer(self, tool: Any) -> Offer:
        """Return a tool as a model is told of it."""
        said = self.hide(tool.description or "")
        schema, server = self.hide(tool.input_schema), self.server.name
        return Offer(tool.name, said, schema, self.used(tool.name), server)

    def used(self, name: str) -> Agent:
        """Return a tool as an agent, which lets no secret of the server out."""
        agent = _Used(self, name)
        return Discreet(agent, self.server.secrets).opened({}) if self.server.secrets else agent

    async def use(self, name: str, arguments: Json, call: Call) -> Json:
        """Use a tool and return its result; raises Raised with the name of what goes wrong."""
        if type(arguments) is not dict:
            raise Raised("Agent.InvalidInput", "the arguments of a tool are an object")
        await self.keep_to(call.bounds)
        await self.tool(name)
        client = await self.connected()

        async def progress(
            progress: float, total: float | None, message: str | None
        ) -> None:  # the names are those of the library
            call.report_progress(100 * progress / total if total else 0.0, message or "")

        asked = client.call_tool(name, arguments, progress_callback=progress)
        try:
            result = await self._answered(asked)
        except Raised as failure:  # it was asked: only an answer says what it has used
            if failure.name in UNTOLD:
                lost(failure)
            raise
        if result.is_error:
            said = str(call.hide(_text(result.content)))[:SHOWN]
            raise Raised("Agent.ToolError", f"{name}: {said}")
        return _result(result)

    async def keep_to(self, bounds: Bounds | None) -> None:
        """See to it that the connection goes to an address that may be reached."""
        if bounds is None or not bounds.limits_network or self.server.url is None:
            return  # nobody sees what a program connects to
        from urllib.parse import urlsplit

        url = urlsplit(self.server.url)
        await bounds.address(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))
        if not self.bounds:
            await self.close()  # it was made without looking where it goes
        self.bounds[bounds.hosts] = bounds


class _Used(Outsider):
    """A tool of a server, in one run."""

    def __init__(self, session: _Session, name: str) -> None:
        self.session = session
        self.name = name
        self.keeps_hosts = self.reaches_network = session.server.url is not None
        if session.sandbox is not None:
            self.keeps_hosts = not session.sandbox.network
            self.reaches_network = session.sandbox.network
        self.folder = session.server.folder

    async def confined(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the tool of the server in a sandbox."""
        return _Used(await self.session.in_sandbox(settings, tool), self.name)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Use the tool."""
        assert call is not None
        return await self.session.use(self.name, payload, call)

    async def close(self) -> None:
        """End the session."""
        await self.session.close()


def _seen(future: Future[Any]) -> None:
    """Take note of a failure of which nobody may hear."""
    if not future.cancelled():
        future.exception()


def _inherited() -> dict[str, str]:
    """Return what a server sees of this process' environment: nothing that could be a secret."""
    from mcp.client.stdio import get_default_environment

    return get_default_environment()


@asynccontextmanager
async def _spoken_to(program: Program) -> AsyncGenerator[tuple[Any, Any], None]:
    """Speak MCP with a program: one message on a line, in both directions."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    heard, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, said = anyio.create_memory_object_stream[Any](0)

    async def listen() -> None:
        with heard, suppress(ValueError, anyio.BrokenResourceError):  # too long a line; no listener
            while line := await program.answers.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    program.garbled = program.shown(line)
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


async def _ended(program: Program) -> None:
    """Let a program end by itself, as the protocol wants it, as long as that takes no time."""
    import anyio

    with anyio.CancelScope(shield=True), anyio.move_on_after(GRACE):
        program.finish()
        while program.process.poll() is None:
            await anyio.sleep(0.005)


def _text(content: list[Any]) -> str:
    return "\n".join(getattr(each, "text", f"[{each.type}]") for each in content)


def _result(result: Any) -> Json:
    """Return what a tool answers: its structure, else its text, else all that it has sent."""
    structure = result.structured_content
    if structure is not None:
        # A server wraps what is no object, and says so by this one name.
        return structure["result"] if structure.keys() == {"result"} else structure
    if all(each.type == "text" for each in result.content):
        return _text(result.content)
    return [
        each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in result.content
    ]


# In an agents file


def _check(spec: Spec, home: Home) -> Iterator[Finding]:
    yield from home.server_faults(spec["server"], "/server")


def _build(spec: Spec, home: Home) -> McpTool:
    return home.server(spec["server"]).tool(spec["tool"])


MCP = Kind("agents:Mcp", _build, _check, discreet=True)


SERVER_SECRETS = ("environment", "headers")
"""The fields of a server in which secrets may stand."""


def check_server(spec: Spec, home: Home) -> Iterator[Finding]:
    """Yield what the schema of a server cannot see; pointers begin there."""
    programs, urls = ("command", "folder", "environment"), ("url", "headers")
    first, others = (programs, urls) if "command" in spec else (urls, programs)
    if first[0] not in spec:
        yield Finding("AGENTS-03", "an MCP server is a command or a url", "")
        return
    for field in others:
        if field in spec:
            message = f"{first[0]!r} and {field!r} exclude each other"
            yield Finding("AGENTS-03", message, f"/{field}", at_key=True)
    yield from check_folder(spec, home)


def build_server(name: str, spec: Spec, home: Home, secrets: frozenset[str]) -> McpServer:
    """Return the server that a file describes; its tools let no secret out."""
    options = dict(spec)
    if "command" in spec:
        options["folder"] = str(home.folder / spec.get("folder", "."))
    server = McpServer(options.pop("command", None), **options)
    server.secrets |= secrets
    server.name = name
    return server
