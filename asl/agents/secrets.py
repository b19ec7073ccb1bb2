"""Secrets: texts that an agents file names, and that nobody may see anywhere else.

`${env:NAME}` stands for a variable of the environment, `${file:PATH}` for what a file says. They
are looked up when the file is loaded and handed to the agent that needs them. What this agent tells
passes through `hiding`, so that an echo of a secret ends as `***`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from asl.core.diagnostics import escape
from asl.core.errors import AslError, StateError
from asl.core.values import Json
from asl.engine.agent import Agent, Call, Deputy, Held, Openable, opened
from asl.states.host import Raised

__all__ = ["PLACEHOLDER", "Discreet", "found", "hiding", "looked_up"]

PLACEHOLDER = re.compile(r"\$\{(?:(env|file):)?([^{}]*)\}|\$([A-Z][A-Z0-9_]*)")
"""`${env:NAME}`, `${file:PATH}`, and what was probably meant to be one: `${NAME}`, `$NAME`."""
MAX_SECRET = 8192
"""Characters of a secret."""
HIDDEN = "***"


def found(value: Json, pointer: str = "") -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the JSON Pointer of every text that has placeholders, with each of them."""
    if type(value) is str:
        yield from ((pointer, match) for match in PLACEHOLDER.finditer(value))
    elif type(value) is dict:
        for key, each in value.items():
            yield from found(each, f"{pointer}/{escape(key)}")
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from found(each, f"{pointer}/{index}")


def looked_up(text: str, folder: Path, secrets: set[str], *, quoted: bool = False) -> str:
    """Return a text with its secrets in it, and add them to *secrets*; raises AslError.

    In a URL they are *quoted*.
    """

    def secret(match: re.Match[str]) -> str:
        source, name, _ = match.groups()
        if source is None:
            return match[0]
        value = _variable(name) if source == "env" else _file(folder / name)
        secrets.add(value)
        return quote(value, safe="") if quoted else value

    return PLACEHOLDER.sub(secret, text)


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise AslError(f"the environment has no variable {name!r}")
    return _bounded(value, f"the variable {name!r}")


def _file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            value = file.read(4 * MAX_SECRET + 3).decode()
    except UnicodeDecodeError:
        raise AslError(f"the file {str(path)!r} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AslError(f"the file {str(path)!r} cannot be read: {reason.lower()}") from None
    return _bounded(value.rstrip("\r\n"), f"the file {str(path)!r}")


def _bounded(value: str, what: str) -> str:
    if not value:
        raise AslError(f"{what} is empty")
    if len(value) > MAX_SECRET:
        raise AslError(f"{what} holds more than {MAX_SECRET} characters")
    return value


Hide = Callable[[str], str]


def hiding(secrets: Iterable[str]) -> Hide:
    """Return a function that takes secrets out of a text, as they are and as they are quoted."""
    forms = {form for secret in secrets for form in _forms(secret)}
    pattern = re.compile("|".join(re.escape(each) for each in sorted(forms, key=len, reverse=True)))
    return lambda text: pattern.sub(HIDDEN, text)


class _Piecewise:
    """Takes secrets out of a text that comes in pieces; what may be part of one waits."""

    def __init__(self, hide: Hide, longest: int, listener: Callable[[str], object]) -> None:
        self.hide = hide
        self.longest = longest
        self.listener = listener
        self.waiting = ""

    def take(self, text: str) -> None:
        """Pass on all that cannot be the beginning of a secret."""
        whole = self.waiting + text
        safe = max(0, len(whole) - self.longest + 1)
        done, rest = whole[:safe], whole[safe:]
        if safe and self.hide(done) + self.hide(rest) != self.hide(whole):
            done, rest = "", whole  # a whole secret lies across: the next pieces free it
        self.waiting = rest
        if done:
            self.listener(self.hide(done))

    def end(self) -> None:
        """Pass on what has waited."""
        if self.waiting:
            self.listener(self.hide(self.waiting))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="")


class Discreet:
    """An agent that knows secrets, and lets none of them out."""

    def __init__(self, agent: Agent | Openable, secrets: Iterable[str]) -> None:
        self.agent = agent
        known = list(secrets)
        self.hide = hiding(known)
        self.longest = max(len(form) for secret in known for form in _forms(secret))

    def opened(self, held: Held) -> Agent:
        """Return the agent of one run, which lets no secret out either."""
        return _Discreet(opened(self.agent, held), self.hide, self.longest)


class _Discreet(Deputy):
    """The same for one run."""

    def __init__(self, agent: Agent, hide: Hide, longest: int) -> None:
        super().__init__(agent)
        self.hide = hide
        self.longest = longest

    async def confined(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the agent in a sandbox, which lets no secret out either."""
        agent = await self.agent.confined(settings, tool)
        return _Discreet(agent, self.hide, self.longest)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask the agent; what it returns, raises or reports has no secret in it."""
        pieces: _Piecewise | None = None
        if call is not None:
            hide, before = self.hide, call.hide
            call.hide = lambda text: hide(before(text))
            if call.listener is not None:
                pieces = _Piecewise(hide, self.longest, call.listener)
                call.listener = pieces.take
        try:
            answer = await self.agent.answer(payload, call)
            if pieces is not None:
                pieces.end()
            return self._without(answer)
        except StateError as error:
            name, cause = (None if text is None else self.hide(str(text)) for text in error.args)
            hidden = Raised(name, cause)
            hidden.usage = error.usage
            raise hidden from None
        except Exception as error:  # of a library: its text may show what it was given
            cause = self.hide(f"{type(error).__name__}: {error}")
            raise Raised("States.TaskFailed", cause) from None

    def _without(self, value: Json) -> Json:
        if type(value) is str:
            return self.hide(value)
        if type(value) is list:
            return [self._without(each) for each in value]
        if type(value) is dict:
            return {self._without(key): self._without(each) for key, each in value.items()}
        return value
