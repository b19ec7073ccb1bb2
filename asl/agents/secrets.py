"""Secrets: texts that an agents file references and that must not appear elsewhere.

`${env:NAME}` is a variable of the environment, `${file:PATH}` the content of a file. They
are looked up when the file is loaded and handed to the agent that needs them. What the agents of
the file tell passes through `hiding`, so that an echo of a secret ends as `***`.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from asl.core.errors import AslError, StateError
from asl.core.pointers import escape
from asl.core.values import Json, compact, copy_foreign
from asl.engine.agent import Agent, AgentWrapper, Call, Openable, OpenAgents, open_agent
from asl.engine.definitions import AgentDefinition
from asl.engine.exception_mapping import (
    describe_exception,
    is_cancellation,
    is_control_flow,
    unwrap_group,
)
from asl.states.calls import Target
from asl.states.errors import RaisedError

__all__ = [
    "LEAST",
    "PLACEHOLDER",
    "SecretFilter",
    "find_placeholders",
    "looked_up",
    "secret_filter",
    "secrets_in",
    "secrets_of",
]

PLACEHOLDER = re.compile(r"\$\{(?:(env|file):)?([^{}]*)\}|\$([A-Z][A-Z0-9_]*)")
"""`${env:NAME}`, `${file:PATH}`, and what was probably meant to be one: `${NAME}`, `$NAME`."""
MAX_SECRET = 8192
"""Characters of a secret."""
HIDDEN = "***"
LEAST = 16
"""Characters of a text given in Python that is a secret: a server of one's own wants `none`."""
LEAST_ENCODED = 10
"""Characters of an encoded secret that is hidden: shorter ones may be part of anything."""
SECRETIVE = re.compile("auth|cookie|credential|key|pass|secret|signature|token", re.IGNORECASE)
"""What is in the names of headers and variables that hold secrets."""
SCHEME = re.compile(r"\A(?:Basic|Bearer|Token) +", re.IGNORECASE)
"""The scheme before the secret in a header."""


def secrets_of(named: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets among headers or variables: by their names, and long enough.

    Of `Bearer KEY` it is the key.
    """
    texts = (SCHEME.sub("", text) for name, text in named.items() if SECRETIVE.search(name))
    return frozenset(text for text in texts if len(text) >= LEAST)


def find_placeholders(value: Json, pointer: str = "") -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the JSON Pointer of every text that has placeholders, with each of them."""
    if type(value) is str:
        yield from ((pointer, match) for match in PLACEHOLDER.finditer(value))
    elif type(value) is dict:
        for key, each in value.items():
            yield from find_placeholders(each, f"{pointer}/{escape(key)}")
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from find_placeholders(each, f"{pointer}/{index}")


def looked_up(text: str, folder: Path, *, quoted: bool = False) -> str:
    """Return a text with its secrets in it, in a URL *quoted*; raises AslError."""

    def secret(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        value = _secret(match, folder)
        return quote(value, safe="") if quoted else value

    return PLACEHOLDER.sub(secret, text)


def secrets_in(value: Json, folder: Path) -> frozenset[str]:
    """Return all secrets that a value names, as far as they are there."""
    known: set[str] = set()
    for _, match in find_placeholders(value):
        with suppress(AslError):  # reported at its place
            if match[1] is not None:
                known.add(_secret(match, folder))
    return frozenset(known)


def _secret(match: re.Match[str], folder: Path) -> str:
    if not match[2]:
        raise AslError(f"{match[0]} names no {'variable' if match[1] == 'env' else 'file'}")
    return _variable(match[2]) if match[1] == "env" else _file(folder / match[2])


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


Hide: TypeAlias = Callable[[Json], Json]


def secret_filter(secrets: Iterable[str]) -> Hide:
    """Return a function that takes secrets out of a value: its texts, keys and numbers.

    They are known as they are, as JSON, Python, HTML, URLs and headers write them, and in
    hexadecimal, Base64 and Base32, also within a longer text.
    """
    known = frozenset(secrets)
    forms = {form for secret in known for form in _forms(secret)}
    if not forms:
        return lambda value: value
    pattern = re.compile("|".join(re.escape(each) for each in sorted(forms, key=len, reverse=True)))

    def hide(value: Json) -> Json:
        if isinstance(value, str):
            return pattern.sub(HIDDEN, value)
        if type(value) is list:
            return [hide(each) for each in value]
        if type(value) is dict:
            return {hide(key): hide(each) for key, each in value.items()}
        if type(value) in (int, float) and compact(value) in known:
            return HIDDEN
        return value

    return hide


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
    from html import escape as in_html

    yield secret
    yield secret.strip() or secret  # as a header has it
    yield secret.encode().decode("latin-1")  # and as its bytes are read
    for text in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield text
        yield json.dumps(text)[1:-1]  # JSON in a text in JSON
    yield repr(secret)[1:-1]
    yield ascii(secret)[1:-1]
    yield repr(secret.encode())[2:-1]
    yield from (in_html(secret), in_html(secret, quote=False))
    for text in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield text
        yield re.sub("%..", lambda code: code[0].lower(), text)
    yield from (form for form in _encoded(secret.encode()) if len(form) >= LEAST_ENCODED)


def _encoded(secret: bytes) -> Iterator[str]:
    """Yield a secret in the usual encodings of bytes: hexadecimal, Base64, Base32 and escapes."""
    for digits in (secret.hex(), secret.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        yield digits
        yield from (mark.join(pairs) for mark in (" ", ":", "-"))
        yield from ("".join(f"{lead}{pair}" for pair in pairs) for lead in ("%", r"\x", r"\u00"))
    yield b32encode(secret).decode().rstrip("=")
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):  # bytes of another text that share the first group
            digits = encode(bytes(before) + secret).decode().rstrip("=")
            first, last = -(-before * 8 // 6), (before + len(secret)) * 8 // 6
            yield digits[first:last]


class SecretFilter:
    """An agent that knows secrets, or sees what does, and lets none of them out."""

    def __init__(self, agent: Agent | Openable, secrets: Iterable[str]) -> None:
        self.agent = agent
        self.secrets = frozenset(secrets)

    @cached_property
    def hide(self) -> Hide:
        """Takes the secrets out of a value."""
        return secret_filter(self.secrets)

    @cached_property
    def longest(self) -> int:
        """How many characters one may have."""
        return max(len(form) for secret in self.secrets for form in _forms(secret))

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent of one run, which lets no secret out either."""
        return _discreet(open_agent(self.agent, open_agents), self.hide, self.longest)


def _discreet(agent: Agent, hide: Hide, longest: int) -> Agent:
    kind = _DiscreetFunction if agent.blocking else _Discreet
    return kind(agent, hide, longest)


class _Discreet(AgentWrapper):
    """The same for one run."""

    def __init__(self, agent: Agent, hide: Hide, longest: int) -> None:
        super().__init__(agent)
        self.hide = hide
        self.longest = longest

    def bound_to(
        self, target: Target, *, aws: bool, definition: AgentDefinition | None = None
    ) -> Agent:
        """Return the agent for a target, which lets no secret out either."""
        agent = self.agent.bound_to(target, aws=aws, definition=definition)
        return _discreet(agent, self.hide, self.longest)

    async def confine(self, settings: Mapping[str, Json], tool: str) -> Agent:
        """Return the agent in a sandbox, which lets no secret out either."""
        agent = await self.agent.confine(settings, tool)
        return _discreet(agent, self.hide, self.longest)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Ask the agent; what it returns, raises or reports has no secret in it."""
        with self._hiding(call):
            return self.hide(copy_foreign(await self.agent.answer(payload, call)))

    @contextmanager
    def _hiding(self, call: Call | None) -> Iterator[None]:
        """Take the secrets out of what is raised, and out of what is reported meanwhile."""
        pieces: _Piecewise | None = None
        if call is not None:
            hide, before = self.hide, call.hide
            call.hide = lambda text: hide(before(text))
            if call.listener is not None:
                pieces = _Piecewise(hide, self.longest, call.listener)
                call.listener = pieces.take
        try:
            yield
            if pieces is not None:
                pieces.end()
        except BaseException as raised:  # whatever foreign code raises may show a secret
            error = unwrap_group(raised)
            if is_control_flow(error) or is_cancellation(error):
                raise
            raise self._hidden(error) from None

    def _hidden(self, error: BaseException) -> RaisedError:
        """Return the same error without secrets: also the text of a foreign one may show them."""
        if not isinstance(error, StateError):
            return RaisedError("States.TaskFailed", self.hide(describe_exception(error)))
        name, cause = (None if text is None else self.hide(str(text)) for text in error.args)
        hidden = RaisedError(name, cause)
        hidden.usage = None if error.usage is None else self.hide(dict(error.usage))
        hidden.lost = error.lost
        return hidden


class _DiscreetFunction(_Discreet):
    """The same of a plain function, which answers when it returns."""

    def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the function; what it returns, raises or reports has no secret in it."""
        with self._hiding(call):
            return self.hide(copy_foreign(self.agent.answer(payload, call)))
