"""Agents, and the calls that they answer (Specification 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from asl.core.errors import AslError
from asl.core.values import Json, copy_foreign, replace_surrogates
from asl.engine.definitions import AgentDefinition
from asl.engine.frame import Frame
from asl.engine.memory import MemoryView
from asl.engine.reservations import Reservation
from asl.engine.turns import TurnPlace
from asl.states.blocks.tool_policy import AccessBounds, ToolRules
from asl.states.calls import CallOptions, CallPart, Target
from asl.states.errors import RaisedError

__all__ = [
    "Agent",
    "AgentWrapper",
    "Call",
    "CallbackHandler",
    "ExternalAgent",
    "Find",
    "OpenAgents",
    "Openable",
    "TaskTokenApi",
    "ToolBounds",
    "open_agent",
]


LONGEST_MESSAGE: Final = 1000
"""Maximum length of a progress message in characters."""


class TaskTokenApi(Protocol):
    """Answers to task tokens, by the method names of AWS's API."""

    def send_task_success(self, taskToken: str, output: Json) -> object:  # noqa: N803
        """Answer the task of a token."""
        ...

    def send_task_failure(
        self,
        taskToken: str,  # noqa: N803
        error: str | None = None,
        cause: str | None = None,
    ) -> object:
        """Fail the task of a token."""
        ...

    def send_task_heartbeat(self, taskToken: str) -> object:  # noqa: N803
        """Report that the work on the task of a token continues."""
        ...


class ToolBounds(Protocol):
    """The hosts that a tool may reach during one call."""

    limits_network: bool
    """Whether the hosts are limited at all."""
    hosts: tuple[AccessBounds, ...]
    """A value that identifies the limits: equal for equal bounds."""

    async def address(self, host: str, port: int) -> str:
        """Return the address to connect to.

        Raises:
            RaisedError: States.Permissions; the host is not allowed.
        """
        ...

    def admit(self, host: str, address: str) -> None:
        """Check that *host* may be reached at this address.

        Raises:
            RaisedError: States.Permissions; it may not.
        """
        ...


class CallSlot(Protocol):
    """The slot of a call among those that run in threads at the same time."""

    async def take(self) -> None:
        """Wait for a free slot, unless the call has ended."""
        ...

    def release(self) -> None:
        """Release the slot to another call."""
        ...


class ToolBroker(Protocol):
    """The runtime's side of `call.tools`; agents see `asl.engine.tools.CallTools`."""

    def blocking_tools(self) -> object:
        """Return the same tools for a plain function, which waits in its thread."""
        ...

    def end(self) -> None:
        """Cancel the running tool calls, because the call of the agent has ended."""
        ...


class Performer(Protocol):
    """The part of the runtime that performs a call, as the agent sees it."""

    @property
    def limit(self) -> int:
        """Maximum size of an answer in bytes."""
        ...

    @property
    def now(self) -> Callable[[], float]:
        """A function that returns the current time in epoch seconds."""
        ...

    def pause(self, seconds: float) -> Awaitable[None]:
        """Wait on the clock of the execution."""
        ...

    def task_token_service(self) -> TaskTokenApi:
        """Return the task token service of the run."""
        ...

    def remember(self, frame: Frame, request: Json) -> Json:
        """Perform a memory request of an agent during its call; safe from any thread."""
        ...

    def broker(self, call: Call) -> ToolBroker:
        """Return the tools of a call."""
        ...

    def definition(self, call: Call) -> AgentDefinition | None:
        """Return how the document of a call defines the agent; None if it does not."""
        ...

    def reach(self, agent: Agent, payload: Json, call: Call) -> Awaitable[Json]:
        """Call another agent in the way that its kind requires: awaited, or in a thread."""
        ...


class Call:
    """One call of an agent. Times are epoch seconds; safe to use from any thread."""

    agent: Agent | None = None
    """Name of the agent."""
    bounds: ToolBounds | None = None
    """Limits of what a tool may reach; None if it is not limited or the call is not one of a
    tool."""
    deadline: float | None = None
    """Time at which the state times out, in epoch seconds; None for never."""
    usage: Mapping[str, Json] | None = None
    """Usage until the agent is cancelled, if the agent reports any."""
    is_complete = False
    """Whether `usage` is the usage of a complete answer that came too late."""
    cancelled = False
    """Whether the answer is no longer needed; the agent should stop."""
    progress: tuple[float, str] | None = None
    """The latest report: percentage and message."""
    sandbox: Callable[[str], Mapping[str, Json] | None] | None = None
    """Returns the sandbox settings of a tool that is listed; raises as `Agent.confine`."""
    hide: Callable[[Json], Json] = staticmethod(lambda value: value)
    """Removes redacted data from a value."""
    listener: Callable[[str], object] | None = None
    """Receives the pieces of a streamed answer; None without a listener."""
    on_progress: Callable[[Json, str], bool] | None = None
    """Receives progress reports and returns whether a report counts as a heartbeat; None without a
    listener."""
    slot: CallSlot | None = None
    """Slot of the call among the calls in threads; None if it runs on the event loop."""
    performer: Performer
    client_context: Json = None
    """The decoded `ClientContext` of a request for a Lambda function, None without one."""
    _on_heartbeat: Callable[[], object] | None = None
    _memory: MemoryView | None = None
    _broker: ToolBroker | None = None
    place: TurnPlace | None = None
    """Place in a turn that may pause for approvals; None if no tool requires consent."""

    def __init__(self, frame: Frame, target: Target, options: CallOptions | None) -> None:
        self.at = frame
        """The frame of the calling machine."""
        self.target = target
        self._options = options
        if options is not None and "turn" in options.blocks:
            self.place = options.blocks["turn"]
        if options is not None and options.timeout is not None:
            self.deadline = frame.now + (options.remaining(frame.now) or 0.0)

    @property
    def state_name(self) -> str:
        """Name of the calling state."""
        return self.target.state

    @property
    def resource(self) -> str | None:
        """`Resource` of the state as written, None for an agent."""
        return self.target.name if self.target.kind == "resource" else None

    @property
    def credentials(self) -> Json:
        """Value of the state's `Credentials`, None without them."""
        return None if self._options is None else self._options.credentials

    @property
    def options(self) -> CallOptions | None:
        """Limits of the state and values of its blocks, None for neither."""
        return self._options

    @property
    def limited(self) -> bool:
        """Whether the state has a timeout or a heartbeat."""
        return self._options is not None and self._options.is_limited

    @property
    def token(self) -> str:
        """Task token of this attempt, as in `$$.Task.Token`."""
        return self.at.token

    @property
    def tokens(self) -> TaskTokenApi:
        """The task token service of the run."""
        return self.performer.task_token_service()

    @property
    def model(self) -> str | None:
        """Model to use, None if the document names none."""
        model: str | None = self._block("model")
        return model

    @property
    def generation(self) -> Mapping[str, Json]:
        """Model settings: `temperature`, `top_p`, `max_tokens`, `stop_sequences`."""
        return self._block("generation") or {}

    @property
    def reasoning(self) -> Mapping[str, Json]:
        """The state's `Reasoning` block, empty without one."""
        return self._block("reasoning") or {}

    @property
    def metadata(self) -> Json:
        """Value of the state's `Metadata`, None without it."""
        return self._block("metadata")

    @property
    def definition(self) -> AgentDefinition | None:
        """The agent as the document defines it, None if the document defines no agents."""
        return self.performer.definition(self)

    @property
    def context(self) -> Json:
        """Copy of the data that the state's `Context` selects, None without one.

        `{"parts": [{"path", "value", "tokens", "truncated"}, ...], "tokens": n}`.
        """
        context = self._block("context")
        return None if context is None else copy_foreign(context)

    @property
    def memory(self) -> MemoryView | None:
        """Memory that the state's `Memory` block grants to the agent, None without one."""
        rights = self._block("memory")
        if self._memory is None and rights is not None:
            self._memory = MemoryView(rights, partial(self.performer.remember, self.at))
        return self._memory

    @property
    def quality(self) -> str | None:
        """`reduced` if a budget asks for lower quality, else None."""
        quality: str | None = self._block("quality")
        return quality

    @property
    def budget(self) -> dict[str, dict[str, Json]]:
        """Limits and remaining amounts, by `workflow` and `state`.

        Both are empty without limits.
        """
        return self.at.remaining_budgets()

    def _block(self, name: str) -> Any:
        return None if self._options is None else self._options.blocks.get(name)

    @property
    def reservation(self) -> Reservation | None:
        """The budget reservation of the call, None without one."""
        return None if self._options is None else self._options.enclosing

    @property
    def execution_id(self) -> str:
        """Id of the execution."""
        return self.at.execution_id

    @property
    def idempotency_key(self) -> str:
        """Key that all attempts of one visit to a state share, and no other visit has.

        Several calls in one visit have different keys. The key of an `Idempotent` field takes
        precedence.
        """
        key: str | None = self._block("idempotency_key")
        if key is None:
            part = self._part
            key = f"{self.at.execution_id}:{self.at.visit_key if part is None else part.key}"
        return key

    @property
    def attempt(self) -> int:
        """Number of the attempt in this visit: 1 for the first, 2 for its first retry."""
        return self.at.retries + 1 if self._part is None else self._part.attempt

    @property
    def _part(self) -> CallPart | None:
        return None if self._options is None else self._options.part

    def heartbeat(self) -> None:
        """Report that the agent is alive: restart the heartbeat timeout."""
        if self._on_heartbeat is not None:
            self._on_heartbeat()

    def report_progress(self, percent: float, message: str = "") -> None:
        """Report the progress of the work.

        It counts as a heartbeat, unless the state's Progress block excludes that.

        Args:
            percent: Percentage done, 0 to 100.
            message: Text for the history; cut after `LONGEST_MESSAGE` characters.

        Raises:
            TypeError: The message is not text.
        """
        if not isinstance(message, str):
            raise TypeError(f"'message' must be text, got {type(message).__name__}")
        percent, message = (
            self.hide(percent),
            self.hide(replace_surrogates(message))[:LONGEST_MESSAGE],
        )
        self.progress = (percent, message)
        if self.on_progress is None or self.on_progress(percent, message):
            self.heartbeat()

    def report_chunk(self, text: str) -> None:
        """Stream a piece of the answer to listeners; counts as a heartbeat.

        Args:
            text: The next piece.

        Raises:
            TypeError: The piece is not text.
            StateError: States.DataLimitExceeded; all pieces together exceed the size of an answer.
        """
        if not isinstance(text, str):
            raise TypeError(f"'text' must be text, got {type(text).__name__}")
        if self.listener is not None:
            self.listener(text)
        self.heartbeat()

    @property
    def tools(self) -> Any:
        """The tools that the agent may use: `tools.call(name, arguments)` and `tools.names()`.

        `call` blocks in a plain function and is awaitable for other agents. A failed tool raises
        StateError with the specification's error name (8.9).

        Raises:
            AslError: The call is over or has no tools.
        """
        if self._broker is None:
            self._broker = self.performer.broker(self)
            if self.cancelled:  # a call that was stored beyond its end has no tools
                self._broker.end()
        blocking = self.agent is not None and self.agent.blocking
        return self._broker.blocking_tools() if blocking else self._broker

    @property
    def tool_rules(self) -> ToolRules | None:
        """The state's rules for tools, None without any."""
        rules: ToolRules | None = self._block("tools")
        return rules

    @property
    def tool_depth(self) -> int:
        """Number of enclosing tool calls."""
        return self._block("tool_depth") or 0

    @property
    def tool_keys(self) -> list[tuple[str, tuple[str, ...]]]:
        """Names and categories of the enclosing tool calls, for limits of calls."""
        return self._block("tool_keys") or []

    def end(self) -> None:
        """End the call: cancel its tool calls and record its use of the memory."""
        self.cancelled = True
        if self._broker is not None:
            self._broker.end()
        if self._memory is not None:
            for event, keys in self._memory.end():
                self.at.note(event, {"keys": keys, "agent": self.target.name})

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait on the execution's clock, virtual or real.

        Args:
            seconds: Time to wait in seconds.

        Raises:
            AslError: The agent is a plain function, which cannot await it.
        """
        if self.agent is not None and self.agent.blocking:
            raise AslError("call.sleep must be awaited: make the function async, or use time.sleep")
        return self.performer.pause(seconds)

    def attach(
        self, performer: Performer, on_heartbeat: Callable[[], object] | None = None
    ) -> None:
        """Connect the call to the runtime that performs it; *on_heartbeat* takes its heartbeats."""
        self.performer = performer
        self._on_heartbeat = on_heartbeat


class Agent:
    """An agent, which answers calls. Its attributes define how the runtime calls it.

    By default it is awaited, needs no event loop and holds no resources.
    """

    __slots__ = ()

    blocking: bool = False
    """Whether it runs in a thread and answers by returning."""
    needs_loop: bool = False
    """Whether it must be awaited on an event loop."""
    waits_outside: bool = False
    """Whether it waits for something outside (a thread, a process, the network), so that a virtual
    clock must not advance meanwhile."""
    has_resources: bool = False
    """Whether it holds resources and has to be closed at the end."""
    takes_call: bool = False
    """Whether user code receives the call."""
    is_internal: bool = False
    """Whether it is part of the runtime: an exception in it is a bug, not the failure of a task."""
    applies_timeout: bool = False
    """Whether it applies the timeout itself: it may return an answer that arrived while no process
    ran."""
    limits_itself: bool = False
    """Whether it applies all limits of the state where it runs, so that the caller sets no
    timers."""
    direct: Callable[[Json], Awaitable[Json]] | None = None
    """Synchronous shortcut of `answer` for an agent that needs only its parameters."""
    enforces_hosts: bool = False
    """Whether it connects only to hosts that the bounds of a call allow."""
    reaches_network: bool = False
    """Whether each of its calls reaches the network."""
    opens_files: bool = False
    """Whether it may open any file of this machine without a check by the runtime."""
    is_auditable: bool = False
    """Whether it is Python code, which an audit hook can watch."""
    folder: str | None = None
    """Base of relative paths; None for the current folder of this process."""

    def answer(self, payload: Json, call: Call | None) -> Any:
        """Return the raw result or an awaitable of it.

        Args:
            payload: Parameters of the call.
            call: The call; None if `takes_call` is false.

        Raises:
            StateError: The agent fails.
        """
        raise NotImplementedError

    def bound_to(
        self, target: Target, *, aws: bool, definition: AgentDefinition | None = None
    ) -> Agent:
        """Return the agent for one target.

        Args:
            target: Whom the state calls.
            aws: Whether the rules of AWS apply.
            definition: The agent as the document defines it.
        """
        return self

    async def confine(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the agent in a sandbox (8.9).

        Args:
            settings: Settings of the sandbox.
            tool: Name of the tool, for messages.

        Raises:
            RaisedError: States.Permissions; the agent cannot run in a sandbox.
        """
        raise RaisedError("States.Permissions", f"tool {tool!r}: it cannot be run in a sandbox")

    async def close(self) -> None:
        """Release the agent's resources; called once at the end of the execution."""


class ExternalAgent(Agent):
    """An agent outside of this process, behind a connection or a pipe."""

    needs_loop = waits_outside = has_resources = True


class AgentWrapper(Agent):
    """An agent around another one, called in the same way."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        for name in _CALLED:
            setattr(self, name, getattr(agent, name))

    async def close(self) -> None:
        """Release the resources of the wrapped agent."""
        await self.agent.close()


_CALLED: Final = (
    "blocking",
    "needs_loop",
    "waits_outside",
    "has_resources",
    "takes_call",
    "enforces_hosts",
    "reaches_network",
    "opens_files",
    "is_auditable",
    "folder",
)
"""Attributes that a wrapper copies from its agent: how it is called."""


OpenAgents: TypeAlias = "dict[object, Agent]"
"""The agents that a run has opened."""


class Openable(Protocol):
    """A factory of agents with own resources (processes, connections) in each run."""

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent of one run; agents that it needs are opened in *open_agents* as well."""
        ...


def open_agent(agent: Agent | Openable, open_agents: OpenAgents) -> Agent:
    """Return the agent of one run: the same one for every use in the run."""
    if not hasattr(agent, "open_agent"):
        return agent
    if agent not in open_agents:
        open_agents[agent] = agent.open_agent(open_agents)
    return open_agents[agent]


class CallbackHandler(AgentWrapper):
    """A handler of a request that is answered through the task token of the call.

    It is called like its handler; the return value is ignored.
    """

    def __init__(self, handler: Agent) -> None:
        super().__init__(handler)
        self.direct = handler.direct
        self.answer = handler.answer  # type: ignore[method-assign]  # without another step


Find = Callable[[Target], Agent]
"""Resolve a target; raises StateError("States.AgentNotFound") or the like."""
