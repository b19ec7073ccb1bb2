"""Adapters: what a user binds to a name becomes an agent.

Each form of binding is one row of `ADAPTERS`. An agent of another framework is recognized by the
names of its classes, so that no framework is imported for any other binding.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from asl.agents.agent_kinds import AgentKind, AgentSpec, FileContext
from asl.agents.function import FunctionAgent, LambdaSettings, function_agent, named_function
from asl.agents.scripted import ScriptedAgent
from asl.core.diagnostics import Finding, Severity
from asl.core.errors import AslError
from asl.core.python_imports import MissingModule, check_import, import_object, probable
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Openable

__all__ = ["ADAPTERS", "FUNCTION", "Adapter", "as_agent", "named_agent"]


class Adapter(NamedTuple):
    """One form of binding.

    Args:
        form: Its name in messages.
        accepts: Whether a value has this form.
        make: Makes an agent of such a value; raises AslError if it cannot be one.
    """

    form: str
    accepts: Callable[[Any], bool]
    make: Callable[[Any], Agent | Openable]


def as_agent(value: Any, name: str) -> Agent | Openable:
    """Return the agent for a binding.

    Args:
        value: What is bound.
        name: The name that it is bound to.

    Raises:
        AslError: It cannot be an agent.
    """
    for adapter in ADAPTERS:
        if adapter.accepts(value):
            return adapter.make(value)
    *forms, last = (adapter.form for adapter in ADAPTERS)
    raise AslError(
        f"{name!r} is bound to {type(value).__name__}; an agent is {', '.join(forms)} or {last}"
    )


def named_agent(name: str, folders: Iterable[Path] = ()) -> Agent | Openable:
    """Import `module:name` or `file.py:name` and make an agent of it.

    Args:
        name: As `asl.core.python_imports.import_object` takes it.
        folders: Where modules and files are looked for.

    Raises:
        AslError: There is no such object, or it cannot be an agent.
    """
    folders = tuple(folders)
    found = import_object(name, folders)
    if isinstance(found, str | Mapping) or not any(each.accepts(found) for each in OBJECTS):
        return named_function(name, folders)
    return as_agent(found, name)


def _is_agent(value: Any) -> bool:
    return isinstance(value, Agent) or hasattr(value, "open_agent")


def _returned(value: Any) -> Any:
    return value


def _has_class(package: str, name: str, value: Any) -> bool:
    """Whether a value is an instance of a class of a package that is loaded."""
    return package in sys.modules and any(
        each.__name__ == name and each.__module__.partition(".")[0] == package
        for each in type(value).__mro__
    )


def _is_openai_agent(value: Any) -> bool:
    """Whether a value is an agent of the SDK, whose package has a name that others may have."""
    return _has_class("agents", "AgentBase", value) and hasattr(sys.modules["agents"], "Runner")


def _made(module: str, kind: str, value: Any) -> Agent:
    agent: Agent = getattr(import_module(f"asl.agents.{module}"), kind)(value)
    return agent


OBJECTS: Final = (
    Adapter("an agent object", _is_agent, _returned),
    Adapter(
        "an agent of pydantic-ai",
        partial(_has_class, "pydantic_ai", "AbstractAgent"),
        partial(_made, "pydantic_agent", "PydanticAgent"),
    ),
    Adapter(
        "a compiled graph of LangGraph",
        partial(_has_class, "langgraph", "Pregel"),
        partial(_made, "graph_agent", "GraphAgent"),
    ),
    Adapter(
        "an agent of the OpenAI Agents SDK",
        _is_openai_agent,
        partial(_made, "openai_agent", "OpenAiAgent"),
    ),
)
"""Agents as objects: those of `asl.agents`, and those of other frameworks."""

ADAPTERS: Final = (
    Adapter("'module:function'", lambda value: isinstance(value, str), named_agent),
    Adapter(
        "a script (an object with 'return', 'raise', ...)",
        lambda value: isinstance(value, Mapping),
        ScriptedAgent,
    ),
    OBJECTS[0],
    Adapter("a function", callable, function_agent),
    *OBJECTS[1:],
)
"""The forms of bindings; the first that accepts a value makes the agent."""


def _hint(name: Json) -> str | None:
    if type(name) is not str:
        return None
    if form := probable(name):
        return f"did you mean {form!r}?"
    return f"write module:function, or {compact({'return': name})} for an answer as it is"


def _build(spec: AgentSpec, context: FileContext) -> Agent | Openable:
    agent = named_agent(spec["function"], context.code)
    written = spec.get("lambda")
    if written is not None:
        if not isinstance(agent, FunctionAgent):
            raise AslError(f"'lambda' configures a function, and {spec['function']!r} is none")
        agent.aws_lambda = written is not False
        agent.settings = LambdaSettings(**written) if isinstance(written, dict) else None
    return agent


def _check(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    if context.imports:
        return
    try:
        check_import(str(spec["function"]), context.code)
    except MissingModule as error:  # it may be there where the file is used
        yield Finding("AGENTS-04", str(error), "/function", severity=Severity.WARNING)
    except AslError as error:
        yield Finding("AGENTS-04", str(error), "/function")


FUNCTION = AgentKind(
    "agents:Function",
    _build,
    _check,
    meant={"function": _hint},
)
