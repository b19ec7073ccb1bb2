"""Compiled graphs of LangGraph: `agents={"Writer": graph}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

from asl.agents.conversation import Conversation, Message, ToolUse, read_conversation
from asl.agents.framework import (
    FrameworkAgent,
    RequestLog,
    failures_reported,
    framework_result,
    prompt_parts,
    waits_for_person,
)
from asl.core.values import Json
from asl.engine.agent import Call
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import BaseMessage
    from langgraph.pregel import Pregel

__all__ = ["GraphAgent"]

MESSAGES: Final = "messages"
INTERRUPT: Final = "__interrupt__"
ROLES: Final = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
"""Roles by the types of LangChain's messages."""
ERRORS: Final = {
    "GraphRecursionError": "Agent.ModelError",
    "OutputParserException": "Agent.InvalidOutput",
    "InvalidUpdateError": "Agent.InvalidOutput",
    "EmptyInputError": "Agent.InvalidInput",
    "ContextOverflowError": "Agent.ContextOverflow",
}


class GraphAgent(FrameworkAgent):
    """A compiled graph of LangGraph.

    The parameters are the input of the graph and its final state is the result. A graph whose state
    has `messages` also takes a prompt or a conversation, and its result has the text of the last
    message as `response`.

    Args:
        graph: The compiled graph.
        config: The configuration of each run: `configurable`, `recursion_limit`, `tags`, ...
    """

    def __init__(
        self, graph: Pregel[Any, Any, Any, Any], *, config: Mapping[str, Any] | None = None
    ) -> None:
        self.graph = graph
        self.config = dict(config or {})

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Run the graph."""
        assert call is not None
        log = RequestLog()
        talks = MESSAGES in self.graph.channels
        conversation = read_conversation(payload) if talks else Conversation((), None, False)
        given = self._input(payload, conversation, call)
        with failures_reported(call, log, ERRORS):
            state = await self.graph.ainvoke(given, self._config(call, log))
        return _result(state, given, conversation, log, call)

    def _input(self, payload: Json, conversation: Conversation, call: Call) -> Json:
        """Return the input of the graph; raises RaisedError("Agent.InvalidInput") for no object."""
        channels = self.graph.channels
        own = dict(payload) if type(payload) is dict else {}
        if MESSAGES not in channels:
            if type(payload) is not dict:
                raise RaisedError("Agent.InvalidInput", "the input of a graph is an object")
            return own
        history = conversation.history
        asked = [Message("user", part) for part in prompt_parts(conversation, call.context)]
        state = {key: value for key, value in own.items() if key in channels and key != MESSAGES}
        messages = [*_messages((*history, *asked), call)]
        return {**state, MESSAGES: messages}

    def _config(self, call: Call, log: RequestLog) -> Any:
        """Return the configuration of one run, which is a thread of its own unless one is named."""
        own = self.config
        thread = {"thread_id": f"{call.idempotency_key}:{call.attempt}"}
        return {
            **own,
            "configurable": {**thread, **own.get("configurable", {})},
            "callbacks": [*own.get("callbacks", ()), _handler(log)],
        }


def _messages(messages: tuple[Message, ...], call: Call) -> Iterator[BaseMessage]:
    """Yield the messages of a conversation for LangChain, with ids that a repetition repeats."""
    from langchain_core import messages as chain

    for index, each in enumerate(messages):
        own = str(uuid5(NAMESPACE_URL, f"{call.idempotency_key}:{call.attempt}:{index}"))
        if each.role == "system":
            yield chain.SystemMessage(each.content, id=own)
        elif each.role == "user":
            yield chain.HumanMessage(each.content, id=own)
        elif each.role == "tool":
            use = each.answers or ToolUse("", "", {})
            yield chain.ToolMessage(each.content, tool_call_id=use.id, name=use.name, id=own)
        else:
            calls = [
                chain.ToolCall(name=use.name, args=use.arguments, id=use.id) for use in each.uses
            ]
            yield chain.AIMessage(each.content, tool_calls=calls, id=own)


def _result(
    state: Any, given: Json, conversation: Conversation, log: RequestLog, call: Call
) -> Json:
    usage = log.usage(call)
    if type(state) is dict and state.get(INTERRUPT):
        failure = waits_for_person("the graph is interrupted and")
        failure.usage = usage or None
        raise failure
    if type(state) is not dict or type(state.get(MESSAGES)) is not list:
        return framework_result(state, conversation, (), usage)
    earlier = {each.id for each in given.get(MESSAGES, ())} if type(given) is dict else set()
    new = [each for each in state[MESSAGES] if each.id not in earlier]
    own = {key: value for key, value in state.items() if key != MESSAGES}
    answer = new[-1].text if new else ""
    if not usage:  # a node that asks a model by itself may say what it has used
        for each in new:
            if getattr(each, "usage_metadata", None) is not None:
                log.begin()
                _end(log, each)
        usage = log.usage(call)
    added = (*conversation.new, *map(_message, new))
    return framework_result({"response": str(answer), **own}, conversation, added, usage)


def _message(written: BaseMessage) -> Message:
    """Return a message of LangChain as one of a conversation."""
    role, content = ROLES.get(written.type, "user"), str(written.text)
    calls = getattr(written, "tool_calls", ())
    if role == "tool":
        use_id = getattr(written, "tool_call_id", "")
        return Message(role, content, answers=ToolUse(use_id, written.name or "", {}))
    return Message(
        role,
        content,
        tuple(ToolUse(each["id"] or "", each["name"], each["args"]) for each in calls),
    )


def _end(log: RequestLog, message: Any) -> None:
    """Record the answer of a model."""
    used = getattr(message, "usage_metadata", None) or {}
    metadata = getattr(message, "response_metadata", None) or {}
    name, provider = metadata.get("model_name"), metadata.get("model_provider")
    model = f"{provider}:{name}" if name and provider else name
    log.end(model, used.get("input_tokens", 0), used.get("output_tokens", 0))


def _handler(log: RequestLog) -> BaseCallbackHandler:
    """Return a callback of LangChain that records requests to models."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Handler(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, *given: Any, **more: Any) -> None:
            log.begin()

        def on_llm_start(self, *given: Any, **more: Any) -> None:
            log.begin()

        def on_llm_end(self, response: Any, **more: Any) -> None:
            (generations, *_) = response.generations or [[]]
            _end(log, getattr(generations[0], "message", None) if generations else None)

    return Handler()
