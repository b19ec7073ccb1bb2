"""Agents by their name in Python: `module:name` or `file.py:name` in an agents file."""

from collections.abc import Iterator

from asl.agents.adapters import named_agent
from asl.agents.function import FunctionAgent, LambdaSettings
from asl.agents.kind import Home, Kind, Spec
from asl.core.diagnostics import Finding, Severity
from asl.core.errors import AslError
from asl.core.python_imports import MissingModule, check_import, probable
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Openable

__all__ = ["FUNCTION"]


def _hint(name: Json) -> str | None:
    if type(name) is not str:
        return None
    if form := probable(name):
        return f"did you mean {form!r}?"
    return f"write module:function, or {compact({'return': name})} for an answer as it is"


def _build(spec: Spec, home: Home) -> Agent | Openable:
    agent = named_agent(spec["function"], home.code)
    written = spec.get("lambda")
    if written is not None:
        if not isinstance(agent, FunctionAgent):
            raise AslError(f"'lambda' configures a function, and {spec['function']!r} is none")
        agent.aws_lambda = written is not False
        agent.settings = LambdaSettings(**written) if isinstance(written, dict) else None
    return agent


def _check(spec: Spec, home: Home) -> Iterator[Finding]:
    if home.imports:
        return
    try:
        check_import(str(spec["function"]), home.code)
    except MissingModule as error:  # it may be there where the file is used
        yield Finding("AGENTS-04", str(error), "/function", severity=Severity.WARNING)
    except AslError as error:
        yield Finding("AGENTS-04", str(error), "/function")


FUNCTION = Kind(
    "agents:Function",
    _build,
    _check,
    meant={"function": _hint},
)
