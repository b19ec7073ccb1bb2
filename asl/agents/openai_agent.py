"""Agents of the OpenAI Agents SDK: `agents={"Writer": agents.Agent(...)}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from asl.agents.conversation import Message, ToolUse, read_conversation
from asl.agents.framework import (
    FrameworkAgent,
    RequestLog,
    failures_reported,
    framework_result,
    prompt_parts,
    waits_for_person,
)
from asl.core.values import Json, compact
from asl.engine.agent import Call

if TYPE_CHECKING:
    import agents

__all__ = ["OpenAiAgent"]

TURNS: Final = 20
ERRORS: Final = {
    "MaxTurnsExceeded": "Agent.ModelError",
    "ModelBehaviorError": "Agent.InvalidOutput",
    "ModelRefusalError": "Agent.ModelError",
    "ModelTimeoutError": "States.Timeout",
    "InputGuardrailTripwireTriggered": "Agent.GuardrailViolation",
    "OutputGuardrailTripwireTriggered": "Agent.GuardrailViolation",
    "ToolInputGuardrailTripwireTriggered": "Agent.GuardrailViolation",
    "ToolOutputGuardrailTripwireTriggered": "Agent.GuardrailViolation",
    "ToolTimeoutError": "Agent.ToolError",
    "UserError": "Agent.InvalidInput",
}


class OpenAiAgent(FrameworkAgent):
    """An agent of the OpenAI Agents SDK.

    Args:
        agent: The agent, with its model, instructions, tools, handoffs and output type.
        context: The context object of its tools and hooks.
        turns: Requests to models that one call may need.
        tracing: Whether runs are traced by the SDK, which sends them to OpenAI.
    """

    def __init__(
        self,
        agent: agents.Agent[Any],
        *,
        context: Any = None,
        turns: int = TURNS,
        tracing: bool = False,
    ) -> None:
        self.agent = agent
        self.context = context
        self.turns = turns
        self.tracing = tracing

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Run the agent; its text is `response`, its structured output the result.

        Raises:
            StateError: The run failed; its usage is attached.
        """
        assert call is not None
        from agents import RunConfig, Runner

        conversation, log = read_conversation(payload), RequestLog()
        asked = [Message("user", part) for part in prompt_parts(conversation, call.context)]
        given: Any = [*_items((*conversation.history, *asked))]
        with failures_reported(call, log, ERRORS):
            run = await Runner.run(
                self.agent,
                given,
                context=self.context,
                max_turns=self.turns,
                hooks=_hooks(log, call.model),
                run_config=RunConfig(
                    model=None if call.model is None else _spoken(call.model),
                    model_settings=_settings(call.generation),
                    tracing_disabled=not self.tracing,
                ),
            )
        if run.interruptions:
            failure = waits_for_person("a tool of the agent")
            failure.usage = log.usage(call) or None
            raise failure
        added = (*conversation.new, *_messages(run.to_input_list()[len(given) :]))
        return framework_result(run.final_output, conversation, added, log.usage(call))


def _settings(generation: Mapping[str, Json]) -> agents.ModelSettings:
    """Return the settings of a model for what the state's `Generation` says."""
    from agents import ModelSettings

    known = ("temperature", "top_p", "max_tokens")
    settings = {name: generation[name] for name in known if name in generation}
    if "stop_sequences" in generation:
        settings["extra_args"] = {"stop": generation["stop_sequences"]}
    return ModelSettings(**settings)


def _items(messages: Iterable[Message]) -> Iterator[dict[str, Json]]:
    """Yield the items of a conversation as the SDK takes them."""
    for each in messages:
        if each.answers is not None:
            yield {
                "type": "function_call_output",
                "call_id": each.answers.id,
                "output": each.content,
            }
            continue
        if each.content or not each.uses:
            yield {"role": each.role, "content": each.content}
        for use in each.uses:
            yield {
                "type": "function_call",
                "call_id": use.id,
                "name": use.name,
                "arguments": compact(use.arguments),
            }


def _messages(items: Iterable[Any]) -> Iterator[Message]:
    """Yield the messages of items that a run has added."""
    uses: dict[str, ToolUse] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            use = ToolUse(item["call_id"], item["name"], _arguments(item["arguments"]))
            uses[use.id] = use
            yield Message("assistant", "", (use,))
        elif kind == "function_call_output":
            use = uses.get(item["call_id"], ToolUse(item["call_id"], "", {}))
            output = item["output"]
            text = output if type(output) is str else compact(output)
            yield Message("tool", text, answers=use)
        elif kind == "message":
            yield Message(item.get("role", "assistant"), _text(item["content"]))


def _arguments(text: str) -> dict[str, Json]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if type(read) is dict else {}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content)


def _model_name(model: str | agents.Model | None) -> str | None:
    """Return the name of a model with its provider; None if the model does not name itself."""
    if model is None:
        from agents.models.default_models import get_default_model

        model = get_default_model()
    if not isinstance(model, str):
        model = getattr(model, "model", None)
    if not isinstance(model, str) or ":" in model:
        return model
    provider, slash, name = model.removeprefix("litellm/").partition("/")
    return f"{provider}:{name}" if slash else f"openai:{model}"


def _spoken(model: str) -> str:
    """Return the name that the SDK has for a model of the document."""
    provider, colon, name = model.partition(":")
    if not colon:
        return model
    return f"openai/{name}" if provider == "openai" else f"litellm/{provider}/{name}"


def _hooks(log: RequestLog, wanted: str | None) -> agents.RunHooks[Any]:
    """Return hooks of the SDK that record requests to models.

    Args:
        log: The requests of the call.
        wanted: The model that the document wants; None for those of the agents.
    """
    from agents import RunHooks

    class UsageHooks(RunHooks[Any]):
        async def on_llm_start(self, *given: Any, **more: Any) -> None:
            log.begin()

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            used = response.usage
            log.end(_model_name(wanted or agent.model), used.input_tokens, used.output_tokens)

    return UsageHooks()
