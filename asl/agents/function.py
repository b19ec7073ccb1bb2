"""Agents that are Python functions: `(parameters)` or `(parameters, call)`, plain or async."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from asl.agents.typed_functions import json_function
from asl.core.errors import AslError
from asl.core.python_imports import import_object
from asl.core.values import Json
from asl.engine.agent import Agent, Call
from asl.engine.definitions import AgentDefinition
from asl.states.calls import Target, is_function
from asl.states.errors import RaisedError

__all__ = [
    "DocumentFunction",
    "FunctionAgent",
    "LambdaSettings",
    "function_agent",
    "is_awaited",
    "named_function",
    "second_name",
]


class LambdaSettings(NamedTuple):
    """The configuration of a function.

    Args:
        timeout: Seconds that a call may take; None for the longest that Lambda allows, which is
            not enforced.
        memory: Megabytes, for the context only.
    """

    timeout: float | None = None
    memory: int = 128


class FunctionAgent(Agent):
    """A function; a plain one may block, so it runs off the event loop."""

    __slots__ = (
        *("answer", "aws_lambda", "blocking", "direct", "folders", "function", "name"),
        *("needs_loop", "waits_outside", "settings", "takes_call"),
    )

    enforces_hosts = is_auditable = True
    """It is watched while it runs: what it may not reach, it does not reach."""

    def __init__(self, function: Callable[..., Any], *, takes_call: bool, plain: bool) -> None:
        answer: Any = function if takes_call else _without_call(function)
        self.answer = answer  # type: ignore[method-assign]  # without another step
        self.takes_call = takes_call
        self.blocking = self.waits_outside = plain
        self.needs_loop = not plain
        self.direct = None if plain or takes_call else function
        self.function = function
        self.name: str | None = None
        """`module:function`, where it was named so."""
        self.folders: tuple[Path, ...] = ()
        """Where its name was looked for."""
        self.aws_lambda: bool | None = None
        """Whether it is called as a Lambda handler; None for where AWS would do so."""
        self.settings: LambdaSettings | None = None
        """The configuration of the Lambda function."""

    def bound_to(
        self, target: Target, *, aws: bool, definition: AgentDefinition | None = None
    ) -> Agent:
        """Return the function as a Lambda handler, where it is one for the target.

        The function that a document names itself is called as its platform does.
        """
        if definition is not None and self.name == definition.code and definition.code:
            return DocumentFunction(import_object(definition.code, self.folders), definition)
        serves = aws or target.invokes or is_function(target.name)
        if self.aws_lambda is False or not (self.aws_lambda or serves):
            return self
        from asl.agents.aws_lambda import lambda_handler

        return lambda_handler(self, target, self.settings)

    async def confine(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the function in a sandbox, in a process that imports it by its name.

        Raises:
            RaisedError: `States.Permissions`; the function is not bound by its name.
        """
        if self.name is None:
            text = f"tool {tool!r}: in a sandbox a function is bound by its name, 'module:function'"
            raise RaisedError("States.Permissions", text)
        from asl.agents.sandbox import confined_function

        return await confined_function(self.name, self.folders, settings, tool)


class DocumentFunction(Agent):
    """A function that a document names, called as the platform of the document calls it."""

    enforces_hosts = is_auditable = True

    def __init__(self, function: Callable[..., Any], definition: AgentDefinition) -> None:
        self.function = function
        self.definition = definition
        self.blocking = self.waits_outside = not is_awaited(function)
        self.needs_loop = not self.blocking
        self.keywords = _keywords(function)

    def answer(self, payload: Json, call: Call | None) -> Any:
        """Call the function with the arguments of its platform."""
        assert self.definition.function_arguments is not None
        argument, given = self.definition.function_arguments(payload)
        takes = self.keywords
        keywords = {name: each for name, each in given.items() if takes is None or name in takes}
        return json_function(partial(self.function, **keywords))(argument)


def _keywords(function: Callable[..., Any]) -> set[str] | None:
    """Return the keyword arguments that a function takes after its first; None for any."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some built-in callables have no signature to read
        return set()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {each.name for each in parameters[1:] if each.kind in kinds}


def _without_call(function: Callable[[Json], Any]) -> Callable[[Json, Call | None], Any]:
    return lambda payload, call: function(payload)


def function_agent(
    function: Callable[..., Any],
    *,
    aws_lambda: bool | None = None,
    settings: LambdaSettings | None = None,
) -> FunctionAgent:
    """Wrap a callable that takes `(parameters)` or `(parameters, call)`.

    Args:
        function: The callable, plain or async.
        aws_lambda: Whether it is called as a Lambda handler; None for where AWS would do so: for
            Lambda functions, and under the profile `aws`.
        settings: The configuration of the Lambda function.

    Raises:
        AslError: It takes other arguments.
    """
    takes_call = _takes_call(function)
    function = json_function(function)
    agent = FunctionAgent(function, takes_call=takes_call, plain=not is_awaited(function))
    agent.aws_lambda, agent.settings = aws_lambda, settings
    if takes_call and second_name(function) == "context":
        from asl.agents.aws_lambda import with_context

        answer: Any = with_context(function, settings)
        agent.answer = answer  # type: ignore[method-assign]  # without another step
    return agent


def second_name(function: Callable[..., Any]) -> str | None:
    """Return the name of the second argument that a function takes by its place, if it does."""
    try:
        signature = inspect.signature(function)
        signature.bind("parameters", "call")
    except (TypeError, ValueError):  # it takes no second one, or cannot be read
        return None
    return [*signature.parameters, "*"][1]


def is_awaited(function: Callable[..., Any]) -> bool:
    """Whether a callable is an async function, or an object that is called as one."""
    called = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


_KNOWN: WeakKeyDictionary[FunctionType, bool] = WeakKeyDictionary()
"""Which functions take the call, too: each run that they are given to would look at them anew."""


def _takes_call(function: Callable[..., Any]) -> bool:
    if type(function) is not FunctionType:
        return _asks_for_call(function)
    known = _KNOWN.get(function)
    if known is None:
        known = _KNOWN[function] = _asks_for_call(function)
    return known


def _asks_for_call(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in callables have no signature to read
        return False
    for arguments, takes_call in ((("parameters", "call"), True), (("parameters",), False)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        # A second argument with a default belongs to the function, not to us, unless it is named.
        second = list(signature.parameters.values())[1:2]
        return takes_call and not (
            second and second[0].default is not inspect.Parameter.empty and second[0].name != "call"
        )
    name = getattr(function, "__qualname__", repr(function))
    raise AslError(
        f"an agent or a tool takes (parameters) or (parameters, call), not {name}{signature}"
    )


def named_function(name: str, folders: Iterable[Path] = ()) -> FunctionAgent:
    """Import `module:function` or `file.py:function` and wrap it.

    Args:
        name: As `asl.core.python_imports.import_object` takes it.
        folders: Where modules and files are looked for.

    Raises:
        AslError: There is no such function; the text says what is missing.
    """
    folders = tuple(folders)
    found = import_object(name, folders)
    if not callable(found):
        raise AslError(f"{name!r} is no function but {type(found).__name__}")
    agent = function_agent(found)
    agent.name, agent.folders = name, folders
    return agent
