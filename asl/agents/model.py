"""Agents that are language models, reached through pydantic-ai.

The prompt is the parameter `prompt`, `task`, `message` or `input`, else all parameters as JSON;
`messages` are the conversation before it (`asl.agents.conversation`). The result is
`{"response": TEXT}`, or what the model was asked for by a JSON Schema; in the same object are
its usage, `_tokens`, `_usage` and `model`, and `"finish_reason": "length"` if the text was cut at
its maximum length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asl.agents.agent_kinds import AgentKind, AgentSpec, FileContext
from asl.agents.conversation import message_json, read_conversation
from asl.agents.document_models import document_result, object_schema, requested_tools
from asl.agents.http import UNCOMPRESSED, AnswerLimits, AnswerRefusal, redirect_hook, size_hook
from asl.agents.model_messages import model_history, new_messages, user_prompt
from asl.agents.model_runs import (
    MAX_ARGUMENTS,
    chunk_handler,
    complete,
    forbidden_use,
    misbehaviour,
    named_failure,
    recorded_model,
    refuse_uses,
    refused_by,
    responses,
    text_result,
    tool_uses,
    unreadable_use,
    usage_of,
    use_arguments,
    with_usage,
)
from asl.agents.secrets import LEAST, SecretFilter
from asl.core.diagnostics import Finding, did_you_mean
from asl.core.environment import require_extra
from asl.core.errors import AslError, StateError, cause_for
from asl.core.schemas import faults, schema_faults
from asl.core.values import Json, compact, has_more_values
from asl.engine.agent import Agent, Call, ExternalAgent, OpenAgents
from asl.engine.definitions import ModelRequest
from asl.engine.tools import CallTools, Toolbox, ToolOffer
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    import httpx2
    import pydantic_ai
    from pydantic_ai.models import Model

__all__ = ["MODEL", "PROVIDERS", "ModelAgent"]

REPORTED = ("_tokens", "_usage", "_cost", "model")
"""The keys of a result that report usage: no answer of a model may hold them."""
DEFINED = "*"
"""The name of the model that the document gives the agent."""
ANSWER = "answer"
"""The name of the tool by which a model gives a structured answer."""
FINAL = (
    "States.Permissions",
    "States.RateLimitExceeded",
    "States.BudgetExceeded",
    "States.Timeout",
)
"""The failures of a tool that end the call; a model may try to get around all others."""
PROVIDERS = frozenset(
    {
        *("alibaba", "anthropic", "azure", "azure-responses", "bedrock", "bedrock-mantle"),
        *("cerebras", "cohere", "crusoe", "deepseek", "fireworks", "github", "github-copilot"),
        *("google", "google-cloud", "google-decisions", "groq", "heroku", "huggingface"),
        *("litellm", "meta", "mistral", "moonshotai", "nebius", "ollama", "openai"),
        *("openai-chat", "openai-chatgpt", "openai-codex", "openai-decisions"),
        *("openai-responses", "openrouter", "ovhcloud", "sambanova", "snowflake", "system-one"),
        *("together", "typesafe", "vercel", "vllm", "xai", "zai"),
    }
)
"""The providers of language models that pydantic-ai knows."""
FAMILIES = {"gpt-": "openai", "claude-": "anthropic", "gemini-": "google", "grok-": "xai"}
"""Who provides the models whose names begin so."""
OPENAI = "api.openai.com"
OTHERWISE = "a server that speaks OpenAI's protocol is openai-chat, with its url"
ROUNDS = 20
TIMEOUT = 600.0
REFUSED = "Agent.ModelError"
"""What an answer is that is not read."""
MAX_BYTES = 64 * 1024 * 1024
"""What one answer of a provider may be, with all that it is wrapped in."""
MAX_VALUES = 1_000_000
"""JSON values of all pieces of an answer."""
MAX_PIECE_VALUES = 10_000
"""JSON values of an answer in one piece, or of a piece: the library takes long for each of them."""


class ModelAgent:
    """A language model; its connections and tools end with the execution.

    `model` is `"provider:name"` (`"provider:*"` for the model that the document names) or a model
    of pydantic-ai. `system` is put before every prompt.
    `output` is the JSON Schema of the answer, an object; without it the answer is text. `tools` are
    `Tool`s and MCP servers; without them they are those that the document allows by their names
    among the tools of the run. `retries` says how often the model is asked again when its answer or
    its use of a tool is wrong, `rounds` how many requests one call may need, `timeout` how many
    seconds one request may take. `key` and `url` are those of the provider, which has its own.
    `settings` are `temperature`, `top_p`, `max_tokens`, `stop_sequences` and `seed`.

    Raises AslError where the extra `models` is not installed, or *output* is no schema.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        system: str = "",
        output: Mapping[str, Json] | None = None,
        tools: Sequence[Toolbox] | None = None,
        retries: int = 1,
        rounds: int = ROUNDS,
        timeout: float = TIMEOUT,
        key: str | None = None,
        url: str | None = None,
        settings: Mapping[str, Json] | None = None,
    ) -> None:
        require_extra("pydantic_ai", "models", "a language model")
        for fault in _output_faults(output):
            raise AslError(f"output: {fault.message}")
        self.model = model
        self.system = system
        self.output = output
        self.tools = tools
        self.retries = retries
        self.rounds = rounds
        self.timeout = timeout
        self.key = key
        self.url = url
        self.settings = dict(settings or {})

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent as one run sees it, with connections of its own; it lets no key out."""
        model, key = _Model(self, open_agents), self.key or ""
        return model if len(key) < LEAST else SecretFilter(model, {key}).open_agent(open_agents)


class _Model(ExternalAgent):
    """The model in one run."""

    def __init__(self, agent: ModelAgent, open_agents: OpenAgents) -> None:
        self.agent = agent
        self.tool_offers = [each.offers(open_agents) for each in agent.tools or ()]
        self.models: dict[str, Model] = {}
        self.client: httpx2.AsyncClient | None = None

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask the model; raises RaisedError with the error of the specification."""
        assert call is not None
        asked = self._request(payload, call)
        conversation = read_conversation(asked.parameters)
        offers = await self._offers(asked, call)
        from pydantic_ai import UnexpectedModelBehavior, UsageLimits, capture_run_messages

        name, asking = self._name(call.model, asked.model), _Asking(call)
        model, listens = self._model(name), call.listener is not None
        if call.place is not None:  # what it has answered before a pause is not asked again
            model, listens = recorded_model(model, call, call.place.turn), False
        with capture_run_messages() as messages:
            tools = {each.name for each in offers}
            answers = () if asked.output is None else (ANSWER,)
            try:
                run = await self._asked(model, asked, offers).run(
                    user_prompt(conversation, call.context),
                    message_history=model_history(conversation, asked.system) or None,
                    deps=asking,
                    model_settings=self._settings(call, asked),
                    usage_limits=UsageLimits(request_limit=self.agent.rounds),
                    event_stream_handler=chunk_handler(call) if listens else None,
                )
                output = complete(run.output, messages, streamed=listens)
            except StateError as error:
                refused = error if isinstance(error, AnswerRefusal) else None
                raise with_usage(error, name, messages, refused) from None
            except UnexpectedModelBehavior as error:
                failure = (
                    refused_by(error)
                    or forbidden_use(call, messages, {*tools, *answers})
                    or misbehaviour(error, asking.last_correction, messages, answers)
                )
                spent = with_usage(failure, name, messages, error)
                raise spent from cause_for(spent, error)
            except Exception as error:  # of a library that raises what its own libraries raise
                last = tool_uses(messages, answers)[-1:]
                wrong = [unreadable_use(part) for part in last if use_arguments(part) is None]
                forbidden = forbidden_use(call, messages, {*tools, *answers})
                failure = (
                    RaisedError("Agent.ToolError", wrong[0])
                    if wrong
                    else named_failure(error, call)
                )
                spent = with_usage(forbidden or failure, name, messages, error)
                raise spent from cause_for(spent, error)
            except BaseException:  # given up in the middle of a request
                if any(responses(messages)):
                    call.usage = usage_of(name, messages)
                raise
            finally:
                refuse_uses(call, tool_uses(messages, answers), tools)
        if call.definition is not None:
            return {**document_result(output, asked, messages), **usage_of(name, messages)}
        answer = text_result(output, messages) if type(output) is str else output
        own = {key: value for key, value in answer.items() if key not in REPORTED}
        if conversation.continued:
            text = output if type(output) is str else compact(output)
            added = new_messages(conversation, run.new_messages(), text, answers)
            own = {"messages": [message_json(each) for each in added], **own}
        return {**own, **usage_of(name, messages)}

    def _request(self, payload: Json, call: Call) -> ModelRequest:
        """Return what the model is asked: by the document, unless the agent says otherwise."""
        agent, definition = self.agent, call.definition
        if definition is None:
            return ModelRequest(payload, agent.system, None, agent.settings, agent.output)
        asked = definition.request(payload)
        return asked._replace(
            system=agent.system or asked.system,
            settings={**asked.settings, **agent.settings},
            output=agent.output or asked.output,
        )

    async def _offers(self, request: ModelRequest, call: Call) -> list[ToolOffer]:
        """Return the tools of the agent, else those that the document names."""
        tools: CallTools = call.tools
        if self.agent.tools is None and request.tools:
            return await tools.select_tools(request.tools)
        return await tools.offer_tools(self.tool_offers if self.agent.tools is not None else None)

    def _name(self, wanted: str | None, defined: str | None = None) -> str:
        """Return the name of the model to ask, with its provider.

        Args:
            wanted: The model that the state wants, maybe without provider.
            defined: The model that the document gives the agent; it counts where the agent has the
                model `PROVIDER:*`.

        Raises:
            RaisedError: Agent.InvalidInput; no model is named.
        """
        model = self.agent.model
        own = model if isinstance(model, str) else f"{model.system}:{model.model_name}"
        provider, _, name = own.partition(":")
        if wanted is not None:
            return wanted if ":" in wanted else f"{provider}:{wanted}"
        if name != DEFINED:
            return own
        if defined is None:
            text = f"the document names no model: write {provider}:NAME into the agents file"
            raise RaisedError("Agent.InvalidInput", text)
        return f"{provider}:{defined.rpartition(':')[2]}"

    def _model(self, name: str) -> Model:
        """Return the model of this name, connected by this run."""
        model = self.agent.model
        if not isinstance(model, str) and name == f"{model.system}:{model.model_name}":
            return model
        if name not in self.models:
            from pydantic_ai import UserError
            from pydantic_ai.models import infer_model

            try:
                self.models[name] = infer_model(self._spoken(name), self._provider)
            except (UserError, ImportError) as error:  # no such model, or its library is not there
                raise RaisedError("Agent.InvalidInput", str(error)) from error
        return self.models[name]

    def _spoken(self, name: str) -> str:
        """Return the model by the protocol that its server speaks.

        Only OpenAI itself has its newest protocol for sure: another server that is given as the url
        of its models speaks that of chat completions.
        """
        provider, _, model = name.partition(":")
        own = self._own_provider
        url = self.agent.url if provider == own else None
        if provider != "openai" or url is None or urlsplit(url).hostname == OPENAI:
            return name
        return f"openai-chat:{model}"

    def _provider(self, name: str) -> Any:
        from inspect import signature

        import httpx2
        from pydantic_ai.providers import infer_provider_class

        if name not in PROVIDERS:  # the library would take a gateway for what is behind it
            message, hint = _stranger(name)
            raise RaisedError("Agent.InvalidInput", f"{message}: {hint}")
        kind = infer_provider_class(name)
        if self.client is None:
            limits = AnswerLimits(MAX_BYTES, MAX_VALUES, MAX_PIECE_VALUES)
            self.client = httpx2.AsyncClient(
                timeout=self.agent.timeout,
                headers=UNCOMPRESSED,
                event_hooks={"response": [redirect_hook(REFUSED), size_hook(REFUSED, limits)]},
            )
        given: dict[str, Any] = {"http_client": self.client}
        if name in (self._own_provider, self._spoken(f"{self._own_provider}:").rstrip(":")):
            # No other provider may see the key.
            given |= {"api_key": self.agent.key, "base_url": self.agent.url}
        takes = signature(kind.__init__).parameters
        for option, field in (("api_key", "key"), ("base_url", "url")):
            if given.get(option) is not None and option not in takes:
                raise RaisedError("Agent.InvalidInput", f"the provider {name!r} takes no {field!r}")
        options = {each: value for each, value in given.items() if each in takes and value}
        try:
            return kind(**options)
        except Exception as error:  # of the library of a provider: no key, no region
            variable = re.search(r"\b[A-Z][A-Z0-9_]*_API_KEY\b", str(error))
            if variable is not None and self.agent.key is None and "api_key" in takes:
                text = f"the provider {name!r} is given no key: set {variable[0]}"
                text += f", or write it into the agents file, key: ${{env:{variable[0]}}}"
                raise RaisedError("Agent.InvalidInput", text) from error
            raise RaisedError("Agent.InvalidInput", str(error)) from error

    @property
    def _own_provider(self) -> str:
        model = self.agent.model
        return model.partition(":")[0] if isinstance(model, str) else model.system

    def _settings(self, call: Call, request: ModelRequest) -> Any:
        # Retry says what is tried again, not the library of a provider.
        whole = {"timeout": self.agent.timeout, "request_timeout": self.agent.timeout}
        own = {**whole, **request.settings}
        return {**own, **call.generation, "max_retries": 0}

    def _asked(
        self, model: Model, request: ModelRequest, offers: list[ToolOffer]
    ) -> pydantic_ai.Agent[_Asking, Any]:
        from pydantic_ai import Agent, DeferredToolRequests, StructuredDict, ToolOutput

        output: Any = str
        if request.output is not None:
            output = ToolOutput(StructuredDict(object_schema(request.output)), name=ANSWER)
        returned = request.returns_calls and offers
        agent = Agent(
            model,
            output_type=[output, DeferredToolRequests] if returned else output,
            deps_type=_Asking,
            system_prompt=request.system or (),
            tools=[] if returned else [_tool(offer) for offer in offers],
            toolsets=[requested_tools(offers)] if returned else [],
            retries=self.agent.retries,
        )
        if request.output is not None:
            agent.output_validator(_validator(object_schema(request.output)))
        return agent

    async def close(self) -> None:
        """Close every connection."""
        self.models.clear()
        if self.client is not None:
            client, self.client = self.client, None
            await client.aclose()


@dataclass(slots=True)
class _Asking:
    """One call of a model."""

    call: Call
    last_correction: str = ""
    """The last correction sent to the model."""

    def fault(self, text: str) -> Exception:
        """Return the exception that asks the model to correct a fault."""
        from pydantic_ai import ModelRetry

        self.last_correction = text
        return ModelRetry(text)


def _tool(offer: ToolOffer) -> Any:
    """Return a tool of pydantic-ai that an offer answers."""
    from pydantic_ai import RunContext, Tool

    async def use(context: RunContext[_Asking], **arguments: Any) -> Json:
        asking = context.deps
        if has_more_values(arguments, MAX_ARGUMENTS):
            text = f"tool {offer.name!r}: the arguments have more than {MAX_ARGUMENTS:,} values"
            raise asking.fault(text)
        try:
            return await asking.call.tools.use(offer, arguments)
        except StateError as error:
            if error.name in FINAL:
                raise
            if error.name == "Agent.ToolRejected":
                return str(error.cause)  # no fault of the model: it may go on without the tool
            raise asking.fault(str(error.cause)) from error

    return Tool.from_schema(use, offer.name, offer.description, offer.input, takes_ctx=True)


def _validator(output: Mapping[str, Json]) -> Any:
    from pydantic_ai import RunContext

    def check(context: RunContext[_Asking], answer: Any) -> Any:
        if wrong := faults(output, context.deps.call.hide(answer)):
            raise context.deps.fault(f"the answer is wrong: {wrong}")
        return answer

    return check


# In an agents file


def _output_faults(output: Mapping[str, Json] | None) -> Iterator[Finding]:
    """Yield what is wrong with the schema of an answer; pointers begin there."""
    if output is None:
        return
    faults = [*schema_faults("AGENTS-01", output, "")]
    yield from faults
    if faults:
        return
    if output.get("type") != "object":
        yield Finding("AGENTS-01", "the answer is an object: its schema has the type 'object'", "")
    for name in REPORTED:
        if name in output.get("properties", {}):
            yield Finding(
                "AGENTS-01",
                f"{name!r} is reserved for the reported usage",
                f"/properties/{name}",
                at_key=True,
            )


def _stranger(provider: str) -> tuple[str, str]:
    """Return message and hint for an unknown provider."""
    message = f"pydantic-ai has no provider {provider!r}"
    return message, did_you_mean(provider, PROVIDERS) or OTHERWISE


def _check(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    for finding in _output_faults(spec.get("output")):
        yield finding._replace(pointer=f"/output{finding.pointer}")
    provider = spec["model"].partition(":")[0]
    if provider not in PROVIDERS:
        message, hint = _stranger(provider)
        yield Finding("AGENTS-09", message, "/model", hint)
    for index, name in enumerate(spec.get("tools", ())):
        yield from context.tool_faults(name, f"/tools/{index}")


def _build(spec: AgentSpec, context: FileContext) -> ModelAgent:
    options = dict(spec)
    if "tools" in spec:
        options["tools"] = [context.tool(name) for name in spec["tools"]]
    return ModelAgent(options.pop("model"), **options)


def _meant(name: Json) -> str | None:
    if type(name) is not str:
        return None
    provider, _, own = name.partition("/")
    if own and provider in PROVIDERS:
        return f"did you mean '{provider}:{own}'?"
    for family, provider in FAMILIES.items():
        if name.startswith(family):
            return f"did you mean '{provider}:{name}'?"
    return f"put its provider before it, as in openai:{name}"


MODEL = AgentKind("agents:Model", _build, _check, secrets=("key",), meant={"model": _meant})
