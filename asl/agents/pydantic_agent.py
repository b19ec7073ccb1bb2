"""Agents of pydantic-ai as they are: `agents={"Writer": pydantic_ai.Agent(...)}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asl.agents.conversation import read_conversation
from asl.agents.framework import (
    FrameworkAgent,
    framework_result,
    named_exception,
    waits_for_person,
)
from asl.agents.model_messages import model_history, new_messages, user_prompt
from asl.agents.model_runs import (
    chunk_handler,
    complete,
    misbehaviour,
    named_failure,
    refused_by,
    responses,
    usage_of,
    with_usage,
)
from asl.core.errors import StateError, cause_for
from asl.core.values import Json, compact
from asl.engine.agent import Call

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.messages import ModelMessage

__all__ = ["PydanticAgent"]

UNKNOWN: Final = "unknown"
"""The model of an agent that has none."""
OUTPUT: Final = "final_result"
"""How the names of the tools begin by which an agent gives a structured output."""


class PydanticAgent(FrameworkAgent):
    """An agent of pydantic-ai.

    Args:
        agent: The agent, with its model, instructions, tools and output type.
        deps: The dependencies of its tools and instructions.
    """

    def __init__(self, agent: AbstractAgent[Any, Any], *, deps: Any = None) -> None:
        self.agent = agent
        self.deps = deps

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Run the agent; its text is `response`, its structured output the result.

        Raises:
            StateError: The run failed; its usage is attached.
        """
        assert call is not None
        from pydantic_ai import (
            DeferredToolRequests,
            UnexpectedModelBehavior,
            capture_run_messages,
        )
        from pydantic_ai.capabilities import ReinjectSystemPrompt

        conversation = read_conversation(payload)
        name = self._model_name(call)
        history = model_history(conversation)
        agent: Any = self.agent  # of any output, whose overloads no type checker gets through
        with capture_run_messages() as messages:
            try:
                run: Any = await agent.run(
                    user_prompt(conversation, call.context),
                    message_history=history or None,
                    capabilities=[ReinjectSystemPrompt()] if history else None,
                    deps=self.deps,
                    model=None if call.model is None else name,
                    model_settings={**call.generation} or None,
                    event_stream_handler=None if call.listener is None else chunk_handler(call),
                )
                output = complete(run.output, messages, streamed=call.listener is not None)
            except StateError as error:
                raise with_usage(error, name, messages) from None
            except UnexpectedModelBehavior as error:
                failure = refused_by(error) or misbehaviour(error, "", messages, _outputs(messages))
                spent = with_usage(failure, name, messages, error)
                raise spent from cause_for(spent, error)
            except Exception as error:  # of the framework, a provider, or a tool of the agent
                spent = with_usage(_failure(error, call), name, messages, error)
                raise spent from cause_for(spent, error)
            except BaseException:  # cancelled in the middle of a request
                if any(responses(messages)):
                    call.usage = usage_of(name, messages)
                raise
        usage = usage_of(name, messages)
        if isinstance(output, DeferredToolRequests):
            failure = waits_for_person("a tool of the agent")
            failure.usage = usage
            raise failure
        result = framework_result(output, conversation, (), usage)
        if conversation.continued:
            shown = output if type(output) is str else compact(_own(result))
            added = new_messages(conversation, run.new_messages(), shown, _outputs(messages))
            return framework_result(output, conversation, added, usage)
        return result

    def _model_name(self, call: Call) -> str:
        """Return the model of a call with its provider."""
        model = getattr(self.agent, "model", None)
        own = model if isinstance(model, str) else ""
        if model is not None and not own:
            own = f"{model.system}:{model.model_name}"
        if call.model is None or ":" in call.model or not own:
            return call.model or own or UNKNOWN
        return f"{own.partition(':')[0]}:{call.model}"


def _own(result: dict[str, Json]) -> Json:
    """Return the output in a result without what is reported of the call."""
    reported = ("messages", "_tokens", "_usage", "model")
    own = {key: value for key, value in result.items() if key not in reported}
    return own["response"] if list(own) == ["response"] else own


def _outputs(messages: list[ModelMessage]) -> tuple[str, ...]:
    """Return the tools by which the model has given structured outputs."""
    calls = (part.tool_name for response in responses(messages) for part in response.tool_calls)
    return tuple({name for name in calls if name.startswith(OUTPUT)})


def _failure(error: Exception, call: Call) -> StateError:
    """Return the failure for an exception of the library, of a provider or of a tool's code."""
    own = type(error).__module__.partition(".")[0] == "pydantic_ai"
    if own or refused_by(error) is not None:
        return named_failure(error, call)
    return named_exception(error, call, {})[0]
