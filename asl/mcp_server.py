"""Workflows as tools of a server of the Model Context Protocol.

Each workflow is a tool that starts it; further tools show executions and answer their requests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import NoBackChannelError

from asl import __version__
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.schemas import faults, input_schema
from asl.core.values import Json, compact
from asl.executions import Store
from asl.executions.handle import Handle
from asl.states.approval_request import request_digest
from asl.stores.executions import ENDED

__all__ = ["WorkflowTools", "mcp_server", "serve_standard_streams"]

WAIT: Final = 30.0
"""Default number of seconds for which a tool waits for the end of an execution."""
LISTED: Final = 50
"""Maximum number of listed executions and requests."""
_SEPARATORS = re.compile(r"[^A-Za-z0-9_-]+")
_EXECUTION: Final[dict[str, Json]] = {"type": "string", "description": "Name of the execution."}
_DECISION: Final = "decision"
"""Key of the form in requests of the protocol without a channel back to the client."""
_Context = ServerRequestContext[Any, Any]


class _ToolCall(NamedTuple):
    """A call of a tool: its arguments, its context, and what the client's user has filled in."""

    arguments: Mapping[str, Any]
    context: _Context
    responses: Mapping[str, Any]


class _InputRequired(Exception):
    """The client has to show a form to its user and to call the tool again."""

    def __init__(self, form: types.ElicitRequest) -> None:
        super().__init__()
        self.form = form


_Action = Callable[[_ToolCall], Awaitable[Json]]


class WorkflowTools:
    """The tools of a store and its workflows.

    Args:
        store: The store; a runner performs its executions.
        workflows: The workflows by name.
        user: Name of the user for whom the tools act.
        wait: Seconds to wait for the end of an execution before its status is returned.
        answers: Whether there is a tool that answers requests.
    """

    def __init__(
        self,
        store: Store,
        workflows: Mapping[str, Document],
        user: str,
        *,
        wait: float = WAIT,
        answers: bool = True,
    ) -> None:
        self._store = store
        self._user = user
        self._wait = wait
        self._workflows = {tool_name(name): document for name, document in workflows.items()}
        if len(self._workflows) < len(workflows):
            raise AslError(f"two workflows have the same tool name: {', '.join(workflows)}")
        self._actions: dict[str, tuple[types.Tool, _Action]] = {}
        for name, document in self._workflows.items():
            self._add(_start_tool(name, document), self._starter(name))
        self._add(_STATUS, self._status)
        self._add(_LIST, self._list)
        self._add(_REQUESTS, self._requests)
        self._add(_STOP, self._stop)
        if answers:
            self._add(_ANSWER, self._answer)

    def _add(self, tool: types.Tool, action: _Action) -> None:
        if tool.name in self._actions:
            raise AslError(f"a workflow cannot have the name of the tool {tool.name!r}")
        self._actions[tool.name] = tool, action

    def tools(self) -> list[types.Tool]:
        """Return the descriptions of the tools."""
        return [tool for tool, _ in self._actions.values()]

    async def call(
        self, params: types.CallToolRequestParams, context: _Context
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool; an error of its use is a result, so that the assistant can correct it."""
        name, arguments = params.name, params.arguments or {}
        try:
            tool, action = self._action(name)
            _check_arguments(tool, arguments)
            found = await action(_ToolCall(arguments, context, params.input_responses or {}))
        except AslError as error:
            return _result({"error": str(error)}, is_error=True)
        except _InputRequired as required:
            return types.InputRequiredResult(input_requests={_DECISION: required.form})
        return _result(found, is_error=False)

    def _action(self, name: str) -> tuple[types.Tool, _Action]:
        if name not in self._actions:
            raise AslError(f"there is no tool {name!r}; there are {', '.join(self._actions)}")
        return self._actions[name]

    def _starter(self, name: str) -> _Action:
        async def start(call: _ToolCall) -> Json:
            handle = await self._store.astart(
                self._workflows[name], dict(call.arguments), requestor=self._user
            )
            await self._await_end(handle, call.context)
            return self._described(handle.name)

        return start

    async def _await_end(self, handle: Handle, context: _Context) -> None:
        """Wait until an execution ends or waits for people, with its states as progress."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait):
                async for event in handle.events():
                    if event.type.endswith("StateEntered"):
                        await _report(context, event.id, " / ".join(map(str, event.path)))
                    if event.type == "ExecutionPaused" and handle.pending():
                        return

    async def _status(self, call: _ToolCall) -> Json:
        handle = self._store.handle(call.arguments["execution"])
        waits = call.arguments.get("wait", False)
        if waits and handle.status() not in ENDED and not handle.pending():
            await self._await_end(handle, call.context)
        return self._described(handle.name)

    def _described(self, name: str) -> dict[str, Json]:
        """Return the status of an execution with its outcome, or what it waits for."""
        stored, store = self._store.get(name), self._store
        found: dict[str, Json] = {"execution": name, "status": stored.status}
        if stored.status == "SUCCEEDED":
            found["output"] = store.output(name)
        elif stored.error is not None or stored.cause is not None:
            found |= {"error": stored.error, "cause": stored.cause}
        if stored.status not in ENDED:
            found["requests"] = store.pending(name, limit=LISTED)
            found["tasks"] = store.pending_callbacks(name, limit=LISTED)
            found["needs"] = list[Json](store.needs(name))
        return found

    async def _list(self, call: _ToolCall) -> Json:
        found = self._store.executions(status=call.arguments.get("status"), limit=LISTED)
        return {
            "executions": [
                {"execution": each.name, "workflow": each.workflow, "status": each.status}
                for each in found
            ]
        }

    async def _requests(self, call: _ToolCall) -> Json:
        return {"requests": self._store.pending(call.arguments.get("execution"), limit=LISTED)}

    async def _stop(self, call: _ToolCall) -> Json:
        name = self._store.get(call.arguments["execution"]).name
        self._store.cancel(name, call.arguments.get("reason"))
        return {"execution": name, "status": "stopping"}

    async def _answer(self, call: _ToolCall) -> Json:
        arguments = call.arguments
        request = self._store.request(arguments["request"])
        chosen, comment = arguments["approval"], arguments.get("comment")
        if _can_ask(call.context):
            chosen, comment = await _ask(call, request, chosen, comment)
        record = self._store.answer(
            arguments["request"],
            chosen,
            by=self._user,
            comment=comment,
            edited=arguments.get("edited"),
            digest=request_digest(request),
        )
        return {"record": record, "complete": record is not None}


def tool_name(name: str) -> str:
    """Return the name of a workflow in the characters of tool names."""
    return _SEPARATORS.sub("_", name).strip("_")[:64] or "workflow"


def _start_tool(name: str, document: Document) -> types.Tool:
    """Return the description of a workflow as a tool."""
    value = document.composed_value
    comment = value.get("Comment") if isinstance(value, dict) else None
    words = [str(comment)] if comment else [f"Run the workflow {name}."]
    words.append("The arguments are its input. Returns its output, or its status if it goes on.")
    return types.Tool(name=name, description=" ".join(words), input_schema=_arguments_schema(value))


def _arguments_schema(document: Json) -> dict[str, Json]:
    """Return the schema of a document's input; tools take objects only."""
    metadata = document.get("Metadata") if type(document) is dict else None
    schema = input_schema(metadata) if type(metadata) is dict else {}
    if not schema or schema.get("type", "object") != "object":
        return {"type": "object", "additionalProperties": True}
    return {"type": "object", **schema}


def _tool(
    name: str, description: str, required: Iterable[str], *, reads: bool, **properties: Json
) -> types.Tool:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "required": list[Json](required),
        "additionalProperties": False,
    }
    hints = types.ToolAnnotations(read_only_hint=reads, destructive_hint=not reads)
    return types.Tool(name=name, description=description, input_schema=schema, annotations=hints)


_STATUS: Final = _tool(
    "execution_status",
    "Show the status of an execution, with its output, its error or what it waits for.",
    ["execution"],
    reads=True,
    execution=_EXECUTION,
    wait={"type": "boolean", "description": "Whether to wait for its end for a while."},
)
_LIST: Final = _tool(
    "list_executions",
    "List the latest executions.",
    [],
    reads=True,
    status={"type": "string", "description": "Only executions with this status."},
)
_REQUESTS: Final = _tool(
    "list_requests",
    "List the requests that wait for a person, of an execution or of all.",
    [],
    reads=True,
    execution=_EXECUTION,
)
_STOP: Final = _tool(
    "stop_execution",
    "Stop an execution.",
    ["execution"],
    reads=False,
    execution=_EXECUTION,
    reason={"type": "string"},
)
_ANSWER: Final = _tool(
    "answer_request",
    "Answer a request with the decision of the user. Ask the user first; never decide yourself.",
    ["request", "approval"],
    reads=False,
    request={"type": "string", "description": "The requestId."},
    approval={"description": "The chosen option."},
    comment={"type": "string"},
    edited={"type": "object", "description": "New values of the editable fields."},
)


def _check_arguments(tool: types.Tool, arguments: Mapping[str, Any]) -> None:
    """Check the names and types of arguments.

    Raises:
        AslError: One is missing, unknown or of another type.
    """
    found = faults(tool.input_schema, dict(arguments))
    if found:
        raise AslError(f"the arguments do not fit: {found}")


def _can_ask(context: _Context) -> bool:
    """Return whether the client can show a form to its user."""
    wanted = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    return context.session.check_client_capability(wanted)


async def _ask(
    call: _ToolCall, request: dict[str, Json], chosen: Json, comment: str | None
) -> tuple[Json, str | None]:
    """Show a request to the user of the client and return option and comment.

    Raises:
        AslError: The user gives no answer.
    """
    answer = call.responses.get(_DECISION)
    if answer is None:
        answer = await _elicit(call.context, _form(request, chosen, comment))
    content = getattr(answer, "content", None)
    if getattr(answer, "action", None) != "accept" or not content:
        raise AslError("the user has not decided")
    given = content.get("comment")
    return content.get("approval"), given if isinstance(given, str) and given else None


async def _elicit(context: _Context, form: types.ElicitRequestFormParams) -> types.ElicitResult:
    """Show a form to the user of the client.

    Raises:
        _InputRequired: The client takes forms only as results.
    """
    try:
        return await context.session.elicit_form(
            form.message, form.requested_schema, context.request_id
        )
    except NoBackChannelError:
        raise _InputRequired(types.ElicitRequest(params=form)) from None


def _form(
    request: dict[str, Json], chosen: Json, comment: str | None
) -> types.ElicitRequestFormParams:
    """Return the form of a request, with the decision that the assistant proposes."""
    options = [each for each in request["options"] if isinstance(each, str)]
    first = chosen if chosen in options else options[0]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {
            "approval": {"type": "string", "title": "Decision", "enum": options, "default": first},
            "comment": {"type": "string", "title": "Comment", "default": comment or ""},
        },
        "required": ["approval"],
    }
    text = request.get("promptText") or compact(request.get("prompt"))
    return types.ElicitRequestFormParams(message=str(text), requested_schema=schema)


async def _report(context: _Context, count: int, message: str) -> None:
    """Report progress if the client has asked for it."""
    token = None if context.meta is None else context.meta.get("progress_token")
    if token is not None:
        await context.session.send_progress_notification(token, count, message=message)


def _result(value: Json, *, is_error: bool) -> types.CallToolResult:
    text = types.TextContent(type="text", text=compact(value))
    return types.CallToolResult(content=[text], structured_content=value, is_error=is_error)


def mcp_server(tools: WorkflowTools) -> Server[Any]:
    """Return a server of the protocol with these tools."""

    async def list_tools(
        context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools.tools())

    async def call_tool(
        context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await tools.call(params, context)

    return Server(
        "asl",
        version=__version__,
        title="Workflows",
        instructions="Each workflow is a tool. A status PAUSED with requests waits for a person.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_standard_streams(server: Server[Any]) -> None:
    """Serve on standard input and output until the client closes them."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
