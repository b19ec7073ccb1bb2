"""Middleware: code of the user around each effect of an execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from asl.core.values import Json
from asl.states.effects import Frame

__all__ = ["Effect", "Middleware", "Proceed", "effect_of", "perform"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a state asks of the world, as middleware sees it; only `payload` may be replaced."""

    kind: str
    """`agent` or `resource` for the call of a state, `tool` for one that its agent makes, `service`
    for the memory, `timer` for a Wait or a delay before a retry, `request` for a question to
    people, `child` for an execution of another workflow."""
    name: str
    """The agent, resource, tool or workflow; for a request the kind of it, for a timer nothing."""
    payload: Json
    """What it is given: parameters, arguments, input; what people are shown; the epoch second at
    which a timer is over."""
    state: str
    """The name of the state."""
    path: tuple[str | int, ...]
    """Where the machine of the state stands: names of states and indices, outermost first."""
    attempt: int
    """1 for the first attempt of the state, 2 for its first retry."""
    execution_id: str
    key: str
    """The same for every attempt of one visit to the state, and for no other visit."""


Proceed: TypeAlias = Callable[[Effect], Awaitable[Json]]
"""Performs an effect: the next middleware, then whoever does it. Returns the answer."""


class Middleware(Protocol):
    """An async function around each effect.

    It awaits `proceed(effect)` and returns the answer; or returns another one, or raises
    `asl.StateError`, which the state can catch, without proceeding. In a store it runs when the
    effect is performed: not again where the answer is recorded. An exception of another class is a
    fault of the middleware and ends the run.
    """

    async def __call__(self, effect: Effect, proceed: Proceed, /) -> Json:
        """Return the answer to an effect."""
        ...


def effect_of(at: Frame, kind: str, name: str, payload: Json) -> Effect:
    """Return an effect of a machine, as middleware sees it."""
    key = f"{at.execution_id}:{at.visit_key}"
    state, attempt = at.step.name, at.retries + 1
    return Effect(kind, name, payload, state, at.place, attempt, at.execution_id, key)


def perform(around: Sequence[Middleware], effect: Effect, last: Proceed) -> Awaitable[Json]:
    """Return what an effect is awaited by: *last*, within middleware, the outermost first."""
    proceed = last
    for middleware in reversed(around):
        proceed = _within(middleware, proceed)
    return proceed(effect)


def _within(middleware: Middleware, proceed: Proceed) -> Proceed:
    def proceed_within(effect: Effect) -> Awaitable[Json]:
        return middleware(effect, proceed)

    return proceed_within
