"""Agents that are Python functions: `(parameters)` or `(parameters, call)`, plain or async."""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from asl.agents.kind import Kind
from asl.agents.typed import typed
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json, compact
from asl.engine.agent import Agent, Call
from asl.states.errors import Raised

__all__ = [
    "FUNCTION",
    "FunctionAgent",
    "function_agent",
    "imported",
    "is_awaited",
    "named_function",
]


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class FunctionAgent(Agent):
    """A function; a plain one may block, so it runs off the event loop."""

    __slots__ = ("answer", "blocking", "direct", "name", "needs_loop", "real", "takes_call")

    keeps_hosts = watched = True
    """It is watched while it runs: what it may not reach, it does not reach."""

    def __init__(self, function: Callable[..., Any], *, takes_call: bool, plain: bool) -> None:
        answer: Any = function if takes_call else _without_call(function)
        self.answer = answer  # type: ignore[method-assign]  # without another step
        self.takes_call = takes_call
        self.blocking = self.real = plain
        self.needs_loop = not plain
        self.direct = None if plain or takes_call else function
        self.name: str | None = None
        """`module:function`, where it was named so."""

    async def confined(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the function in a sandbox: in a process that knows it by its name."""
        if self.name is None:
            text = f"tool {tool!r}: in a sandbox a function is bound by its name, 'module:function'"
            raise Raised("States.Permissions", text)
        from asl.agents.sandbox import confined_function

        return await confined_function(self.name, settings, tool)


def _without_call(function: Callable[[Json], Any]) -> Callable[[Json, Call | None], Any]:
    return lambda payload, call: function(payload)


def function_agent(function: Callable[..., Any]) -> FunctionAgent:
    """Wrap a callable that takes `(parameters)` or `(parameters, call)`; raises AslError."""
    takes_call = _takes_call(function)
    function = typed(function)
    return FunctionAgent(function, takes_call=takes_call, plain=not is_awaited(function))


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


def named_function(name: str) -> FunctionAgent:
    """Import `module:function` and wrap it; raises AslError that says what is missing."""
    found = imported(name)
    if not callable(found):
        raise AslError(f"{name!r} is no function but {type(found).__name__}")
    agent = function_agent(found)
    agent.name = name
    return agent


def imported(name: str) -> Any:
    """Import what `module:name` names; raises AslError that says what is missing."""
    module_name, _, path = name.partition(":")
    if not _NAME.fullmatch(module_name) or not path:
        raise AslError(f"{name!r} is not of the form 'module:function'{_aside(name)}")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _unimportable(name, error) from error  # a module that the user's own one needs
        text = f"cannot import {name!r}: there is no module {error.name!r}{_aside(name)}"
        raise AslError(text) from None
    except (Exception, SystemExit) as error:  # whatever the user's module does meanwhile
        raise _unimportable(name, error) from error
    for part in path.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [each for each in dir(found) if not each.startswith("_")])
            raise AslError(
                f"module {module_name!r} has no {path!r}" + (f" ({hint})" if hint else "")
            )
        found = getattr(found, part)
    return found


def _probable(name: str) -> str | None:
    """Return `module:function` for a name that is written with a file or with dots alone."""
    module, colon, path = name.partition(":")
    if not colon and not name.endswith(".py"):
        module, _, path = name.rpartition(".")
    module = module.removesuffix(".py").replace("/", ".")
    probable = f"{module}:{path}"
    is_one = _NAME.fullmatch(module) and _NAME.fullmatch(path) and probable != name
    return probable if is_one else None


def _aside(name: str) -> str:
    probable = _probable(name)
    return "" if probable is None else f" (did you mean {probable!r}?)"


def _meant(name: Json) -> str | None:
    if type(name) is not str:
        return None
    if probable := _probable(name):
        return f"did you mean {probable!r}?"
    return f"write module:function, or {compact({'return': name})} for an answer as it is"


def _unimportable(name: str, error: BaseException) -> AslError:
    text = f"cannot import {name!r}: {type(error).__name__}: {error}{_where(error)}"
    if isinstance(error, SystemExit):
        text += "; put what ends the program under: if __name__ == '__main__'"
    return AslError(text)


def _where(error: BaseException) -> str:
    """Say where in the user's own code an import failed."""
    if isinstance(error, SyntaxError):
        return ""  # its text names file and line
    from traceback import extract_tb

    last = extract_tb(error.__traceback__)[-1]
    return f" ({last.filename}:{last.lineno})"


FUNCTION = Kind(
    "agents:Function",
    lambda spec, home: named_function(spec["function"]),
    meant={"function": _meant},
)
