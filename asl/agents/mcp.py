"""MCP servers: their tools as agents, and as tools of language models.

A server is a program that speaks the Model Context Protocol on its standard streams, or a URL. It
starts with the first call of a run that needs it, serves all calls of this run, and ends with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from asl.agents.agent_kinds import AgentKind, AgentSpec, FileContext
from asl.agents.mcp_connection import SHOWN, Connection
from asl.agents.process import check_folder, words
from asl.agents.secrets import SecretFilter, secret_filter, secrets_of
from asl.core.diagnostics import Finding, did_you_mean
from asl.core.environment import require_extra
from asl.core.errors import AslError, StateError, mark_usage_unknown
from asl.core.schemas import faults, schema_faults
from asl.core.values import Json, compact
from asl.engine.agent import (
    Agent,
    Call,
    ExternalAgent,
    Openable,
    OpenAgents,
    ToolBounds,
    open_agent,
)
from asl.engine.tools import ListTools, ToolListing, ToolOffer
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from asl.agents.sandbox import SandboxedProgram

__all__ = ["MCP", "McpServer", "McpTool", "fingerprint"]

TIMEOUT = 60.0
BROKEN = ("Agent.NetworkError", "Agent.ParseError", "States.DataLimitExceeded")
"""The errors after which the connection is made anew."""
UNKNOWN_USAGE = (*BROKEN, "States.Timeout")
"""The errors of calls with unknown usage."""


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
        require_extra("mcp", "mcp", "an MCP server")
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
        """The secret values of environment and headers."""

    @property
    def label(self) -> str:
        """What the server is called in causes."""
        return str(self.url) if self.command is None else self.name or self.command[0]

    def tool(self, name: str) -> McpTool:
        """Return one tool of the server, as an agent and as a tool."""
        return McpTool(self, name)

    def open_agent(self, open_agents: OpenAgents) -> _Session:
        """Return the server as one run sees it."""
        return _Session(self)

    def offers(self, open_agents: OpenAgents) -> ListTools:
        """Return the listing of its tools in one run."""
        session = _session(self, open_agents)

        async def listed(call: Call) -> list[ToolOffer]:
            asked = await session.asked_by(call)
            names = await asked.tools() if self.pins is None else self.pins
            return [asked.offer(await asked.tool(name)) for name in names]

        return ToolListing(listed, session.tool_agent(""), server=self.name)


class McpTool:
    """One tool of a server: an agent whose parameters are the arguments of the tool."""

    def __init__(self, server: McpServer, name: str) -> None:
        self.server = server
        self.name = name

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent as one run sees it."""
        return _session(self.server, open_agents).tool_agent(self.name)

    def offers(self, open_agents: OpenAgents) -> ListTools:
        """Return the listing of this tool in one run."""
        session = _session(self.server, open_agents)

        async def listed(call: Call) -> list[ToolOffer]:
            asked = await session.asked_by(call)
            return [asked.offer(await asked.tool(self.name))]

        server = self.server.name
        names = (f"{server}/{self.name}", self.name) if server else (self.name,)
        return ToolListing(listed, session.tool_agent(self.name), names)


def _session(server: McpServer, open_agents: OpenAgents) -> _Session:
    session = open_agent(server, open_agents)
    assert isinstance(session, _Session)
    return session


def fingerprint(name: str, description: str | None, input: Json, output: Json) -> str:
    """Return the fingerprint of a tool's description: `sha256:` and 64 digits."""
    from hashlib import sha256

    import orjson

    said = orjson.dumps([name, description, input, output], option=orjson.OPT_SORT_KEYS)
    return f"sha256:{sha256(said).hexdigest()}"


class _Session(ExternalAgent):
    """A server in one run."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.connection: Connection | None = None
        self.hide = secret_filter(server.secrets)
        self.known: dict[str, str] = {}
        """The fingerprints of the tools that were used, or offered, in this run."""
        self.bounds: dict[object, ToolBounds] = {}
        """What the connection is held to: the bounds of all calls that limit the network."""
        self.sandbox: SandboxedProgram | None = None
        """How the program is started where it has to be confined."""
        self.sandboxed: dict[str, _Session] = {}
        """The same server in sandboxes, by their settings."""

    async def asked_by(self, call: Call) -> _Session:
        """Return the session that lists tools for a call, within the bounds of its tools."""
        label = self.server.label
        settings = None if call.sandbox is None else call.sandbox(label)
        if settings is not None:
            return await self.in_sandbox(settings, label)
        await self.keep_to(call.bounds)
        return self

    async def in_sandbox(self, settings: Mapping[str, Json], tool: str) -> _Session:
        """Return the server as it runs in a sandbox, which lasts as long as the run.

        Raises RaisedError("States.Permissions") for one that runs elsewhere.
        """
        key, server = compact(settings), self.server
        if self.sandbox is not None or key in self.sandboxed:
            return self.sandboxed.get(key, self)
        if server.command is None:
            text = f"tool {tool!r}: a server with a URL runs elsewhere, and in no sandbox of ours"
            raise RaisedError("States.Permissions", text)
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

    async def connect(self) -> Connection:
        """Return the connection, which is made at the first need, and again when it has broken."""
        if self.connection is None:
            bounds = self.bounds.values()
            self.connection = Connection(self.server, bounds, self.sandbox)
        connection = self.connection
        try:
            await connection.wait_until_ready()
        except StateError:  # the next call may find it better
            await self.drop(connection)
            raise
        return connection

    async def drop(self, connection: Connection) -> None:
        """End a connection; where another one has taken its place, that one stays."""
        if self.connection is connection:
            self.connection = None
        await connection.close()

    async def close(self) -> None:
        """End the connection and the program, and wait until that is done."""
        for each in self.sandboxed.values():
            await each.close()
        if self.connection is not None:
            await self.drop(self.connection)

    async def tools(self) -> dict[str, Any]:
        """Return the tools of the server by their names, as it describes them."""
        connection = await self.connect()
        tools: dict[str, Any] = await self._kept(connection, connection.tools())
        return tools

    async def _kept(self, connection: Connection, answer: Awaitable[Any]) -> Any:
        """Return what the server answers; a connection that has broken is made anew next time."""
        try:
            return await answer
        except RaisedError as failure:
            if failure.name in BROKEN:
                await self.drop(connection)
            raise

    async def tool(self, name: str) -> Any:
        """Return a tool as the server describes it; raises RaisedError for an unknown one."""
        tools = await self.tools()
        if name not in tools:
            near = did_you_mean(name, tools)
            text = f"{self.server.label}: there is no tool {name!r}"
            raise RaisedError("Agent.ToolError", f"{text} ({near})" if near else text)
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
            raise RaisedError("States.Permissions", text)
        return tool

    def offer(self, tool: Any) -> ToolOffer:
        """Return a tool as it is offered to a model."""
        said = self.hide(tool.description or "")
        schema, server = self.hide(tool.input_schema), self.server.name
        return ToolOffer(tool.name, said, schema, self.tool_agent(tool.name), server)

    def tool_agent(self, name: str) -> Agent:
        """Return a tool as an agent, which lets no secret of the server out."""
        agent = _Used(self, name)
        return (
            SecretFilter(agent, self.server.secrets).open_agent({})
            if self.server.secrets
            else agent
        )

    async def use(self, name: str, arguments: Json, call: Call) -> Json:
        """Use a tool and return its result; raises RaisedError with the name of what goes wrong."""
        if type(arguments) is not dict:
            raise RaisedError("Agent.InvalidInput", "the arguments of a tool are an object")
        await self.keep_to(call.bounds)
        tool = await self.tool(name)
        connection = await self.connect()

        async def progress(
            progress: float, total: float | None, message: str | None
        ) -> None:  # the names are those of the library
            call.report_progress(100 * progress / total if total else 0.0, message or "")

        asked = connection.client.call_tool(name, arguments, progress_callback=progress)
        try:
            result = await self._kept(connection, connection.answer(asked))
        except RaisedError as failure:  # it was asked: only an answer says what it has used
            if failure.name in UNKNOWN_USAGE:
                mark_usage_unknown(failure)
            raise
        if result.is_error:
            said = str(call.hide(_text(result.content)))[:SHOWN]
            raise RaisedError("Agent.ToolError", f"{name}: {said}")
        if tool.output_schema is not None:
            _check_structure(name, tool.output_schema, result.structured_content)
        return _result(result)

    async def keep_to(self, bounds: ToolBounds | None) -> None:
        """See to it that the connection goes to an address that may be reached."""
        if bounds is None or not bounds.limits_network or self.server.url is None:
            return  # connections of a program are not visible
        from urllib.parse import urlsplit

        url = urlsplit(self.server.url)
        await bounds.address(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))
        if not self.bounds:
            await self.close()  # it was made without looking where it goes
        self.bounds[bounds.hosts] = bounds


class _Used(ExternalAgent):
    """A tool of a server, in one run."""

    def __init__(self, session: _Session, name: str) -> None:
        self.session = session
        self.name = name
        self.enforces_hosts = self.reaches_network = session.server.url is not None
        self.opens_files = session.server.url is None
        if session.sandbox is not None:
            self.enforces_hosts = not session.sandbox.network
            self.reaches_network = session.sandbox.network
            self.opens_files = session.sandbox.opens_files
        self.folder = session.server.folder

    async def confine(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the tool of the server in a sandbox."""
        return _Used(await self.session.in_sandbox(settings, tool), self.name)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Use the tool."""
        assert call is not None
        return await self.session.use(self.name, payload, call)

    async def close(self) -> None:
        """End the session."""
        await self.session.close()


def _check_structure(name: str, schema: Json, structure: Json) -> None:
    """Check the structured content of a result against the output schema of its tool.

    Raises:
        RaisedError: `Agent.ParseError`; it does not conform, or the schema is invalid.
    """
    invalid = next(schema_faults("", schema, ""), None)
    wrong = faults(schema, structure) if invalid is None else f"output schema: {invalid.message}"
    if wrong:
        text = f"{name}: the result does not fit the output schema of the tool: {wrong}"
        raise RaisedError("Agent.ParseError", text[:SHOWN])


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


def _check(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    yield from context.server_faults(spec["server"], "/server")


def _build(spec: AgentSpec, context: FileContext) -> Openable:
    return context.server(spec["server"]).tool(spec["tool"])


MCP = AgentKind("agents:Mcp", _build, _check, discreet=True)


SERVER_SECRETS = ("environment", "headers")
"""The fields of a server in which secrets may stand."""


def check_server(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    """Yield what the schema of a server cannot see; pointers begin there."""
    programs, urls = ("command", "folder", "environment"), ("url", "headers")
    first, others = (programs, urls) if "command" in spec else (urls, programs)
    if first[0] not in spec:
        yield Finding("AGENTS-03", "an MCP server needs 'command' or 'url'", "")
        return
    for field in others:
        if field in spec:
            message = f"{first[0]!r} and {field!r} exclude each other"
            yield Finding("AGENTS-03", message, f"/{field}", at_key=True)
    yield from check_folder(spec, context)


def build_server(
    name: str, spec: AgentSpec, context: FileContext, secrets: frozenset[str]
) -> McpServer:
    """Return the server that a file describes; its tools let no secret out."""
    options = dict(spec)
    if "command" in spec:
        options["folder"] = str(context.folder / spec.get("folder", "."))
    server = McpServer(options.pop("command", None), **options)
    server.secrets |= secrets
    server.name = name
    return server
