"""Agents of other frameworks: their requests to models, their results and their failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from asl.agents.conversation import Conversation, Message, message_json
from asl.core.errors import StateError, cause_for, causes
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Call
from asl.engine.exception_mapping import describe_exception
from asl.engine.usage import RequestTokens, request_tokens, requests_usage
from asl.states.errors import RaisedError

__all__ = [
    "FrameworkAgent",
    "RequestLog",
    "failures_reported",
    "framework_result",
    "named_exception",
    "prompt_parts",
    "waits_for_person",
]

REPORTED: Final = frozenset({"_tokens", "_usage", "_cost", "model"})
"""The keys of a result that report usage: no output of an agent may hold them."""
STATUSES: Final = {
    401: "States.Permissions",
    403: "States.Permissions",
    408: "States.Timeout",
    429: "States.RateLimitExceeded",
    504: "States.Timeout",
}
"""Errors by the status with which a provider refuses a request."""
SHOWN: Final = 2000
"""Characters of a provider's message that the cause of an error shows."""


class FrameworkAgent(Agent):
    """An agent of a framework, which runs on the event loop of the execution.

    It brings its own tools; those of the document are not offered to it.
    """

    needs_loop = waits_outside = takes_call = True


class _Request(NamedTuple):
    model: str | None
    tokens: RequestTokens


class RequestLog:
    """The requests to models that one call of an agent makes."""

    def __init__(self) -> None:
        self.answered: list[_Request] = []
        self.open = 0
        """How many requests have no answer yet."""

    def begin(self) -> None:
        """Record the start of a request."""
        self.open += 1

    def end(self, model: object, used_input: object, used_output: object) -> None:
        """Record the answer to a request.

        Args:
            model: The name of the model, if the provider reports one.
            used_input: The tokens of the request, as the provider reports them.
            used_output: The tokens of the answer, likewise.
        """
        self.open -= 1
        tokens = request_tokens(used_input, used_output)
        self.answered.append(_Request(model if isinstance(model, str) else None, tokens))

    def usage(self, call: Call, *, complete: bool = True) -> dict[str, Json]:
        """Return the usage of the call in the form of a result; empty if no model was asked.

        Args:
            call: The call.
            complete: Whether requests without an answer have used nothing.
        """
        requests = self.answered
        unknown = self.open > 0 and not complete
        if not requests and not unknown:
            return {}
        report = requests_usage((each.tokens for each in requests), complete=not unknown)
        models = {each.model for each in requests}
        if len(models) == 1 and None not in models:
            return {**report, "model": models.pop()}
        cost = _cost(requests, call.at.execution)
        return report if cost is None else {**report, "_cost": float(cost)}


def _cost(requests: Iterable[_Request], execution: Any) -> Decimal | None:
    """Return what requests to several models have cost; None if a price is unknown."""
    total = Decimal(0)
    for each in requests:
        price = None if each.model is None else execution.prices.get(each.model)
        if price is None:
            return None
        total += price.input * each.tokens.input + price.output * each.tokens.output
    return total


def prompt_parts(conversation: Conversation, context: Json) -> list[str]:
    """Return the parts of the document's context, then the prompt if there is one."""
    shown = () if context is None else context["parts"]
    found = ((part["path"], part["value"]) for part in shown)
    texts = [f"{path}: {value if type(value) is str else compact(value)}" for path, value in found]
    return texts if conversation.prompt is None else [*texts, conversation.prompt]


def framework_result(
    output: Any, conversation: Conversation, added: Iterable[Message], usage: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the result of an agent.

    Args:
        output: The output of the framework: a text, a model of pydantic, a dataclass or JSON.
        conversation: What the agent was asked.
        added: The messages that the call adds to a conversation.
        usage: The usage of the call.

    Raises:
        RaisedError: `Agent.InvalidOutput`; the output is not JSON.
    """
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        value = to_jsonable_python(output, by_alias=True)
    except PydanticSerializationError as error:
        raise RaisedError("Agent.InvalidOutput", f"the output is no JSON: {error}") from None
    result = value if type(value) is dict else {"response": value}
    own = {key: each for key, each in result.items() if key not in REPORTED}
    if conversation.continued:
        own = {"messages": [message_json(each) for each in added], **own}
    return {**own, **usage}


def waits_for_person(what: str) -> RaisedError:
    """Return the failure of a framework's agent that pauses for a person's decision."""
    return RaisedError(
        "Agent.InvalidOutput",
        f"{what} waits for a person's decision: ask in an Approval state instead",
    )


@contextmanager
def failures_reported(call: Call, log: RequestLog, errors: Mapping[str, str]) -> Iterator[None]:
    """Turn what a framework raises into an error of the state, and keep what the call has used.

    Args:
        call: The call.
        log: Its requests to models.
        errors: Errors of the state by the names of the framework's exceptions.

    Raises:
        StateError: The framework, a provider or a tool of the agent has raised something.
    """
    try:
        yield
    except Exception as error:  # all of it is foreign code
        failure = _failure(error, call, log, errors)
        raise failure from cause_for(failure, error)
    except BaseException:  # cancelled in the middle of a request, which has used something
        call.usage = log.usage(call, complete=False) or None
        raise


def _failure(error: Exception, call: Call, log: RequestLog, names: Mapping[str, str]) -> StateError:
    """Return the failure of a state for an exception of a framework, with the usage before it.

    Args:
        error: The exception.
        call: The call.
        log: The requests of the call.
        names: Names of errors by the names of the framework's exceptions.
    """
    failure, refused = named_exception(error, call, names)
    failure.usage = failure.usage or log.usage(call, complete=refused) or None
    return failure


def named_exception(
    error: Exception, call: Call, names: Mapping[str, str]
) -> tuple[StateError, bool]:
    """Return the failure for an exception, and whether it shows that the last request is over.

    The exceptions of providers are recognized by the status in them, those of connections by their
    names; any other is that of the user's own code.
    """
    for each in causes(error):
        if isinstance(each, StateError):
            return each, True
        kinds = [kind.__name__ for kind in type(each).__mro__]
        name = next((names[kind] for kind in kinds if kind in names), None)
        status: Any = getattr(each, "status_code", None)
        refused = type(status) is int and status >= 400
        if name is None and refused:
            name = STATUSES.get(status, "Agent.ModelError")
        elif name is None and any("Timeout" in kind for kind in kinds):
            name = "States.Timeout"
        elif name is None and any("ConnectionError" in k or k == "ConnectError" for k in kinds):
            name = "Agent.NetworkError"
        if name is not None:
            text = str(call.hide(f"{type(each).__name__}: {each}"))
            return RaisedError(name, text if len(text) <= SHOWN else f"{text[:SHOWN]}…"), refused
    return RaisedError("States.TaskFailed", describe_exception(error)), False
