"""Middleware: user code around each effect of an execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from asl.core.errors import AslError, NotJson, StateError, cause_for
from asl.core.values import Json, copy_result
from asl.engine.exception_mapping import (
    bounded_error,
    describe_exception,
    is_cancellation,
    is_control_flow,
    unwrap_group,
)
from asl.engine.frame import Frame

__all__ = ["Effect", "Middleware", "Proceed", "effect_of", "perform"]

ONCE: Final = frozenset({"child", "request"})
"""Kinds of effects that a store identifies by key, so that they cannot be repeated."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect as middleware sees it; only `payload` may be replaced."""

    kind: str
    """`agent` or `resource` for the call of a state, `tool` for a call by its agent, `service` for
    the memory, `timer` for a Wait or a retry delay, `request` for a request to approvers, `child`
    for an execution of another workflow."""
    name: str
    """The agent, resource, tool or workflow; the kind of a request; empty for a timer."""
    payload: Json
    """Parameters, arguments or input; the content of a request; the epoch second at which a timer
    ends."""
    state: str
    """Name of the state."""
    path: tuple[str | int, ...]
    """Path of the state's machine: names of states and indices, outermost first."""
    attempt: int
    """1 for the first attempt of the state, 2 for its first retry."""
    execution_id: str
    key: str
    """Key shared by all attempts of one visit to the state, and no other visit."""


Proceed: TypeAlias = Callable[[Effect], Awaitable[Json]]
"""Performs an effect with the next middleware or the effect handler, and returns the answer."""


class Middleware(Protocol):
    """An async function around each effect.

    It awaits `proceed(effect)` and returns the answer. Without proceeding it may return another
    answer or raise `asl.StateError`, which the state can catch. The decision of a request is
    returned unchanged. `proceed` may be called again for another attempt, except for a request and
    a child. In a store it runs when the effect is performed, not for a recorded answer. An
    exception of another class, or an answer that is not a JSON value, is a fault of the middleware
    and ends the run with an AslError that names it.
    """

    async def __call__(self, effect: Effect, proceed: Proceed, /) -> Json:
        """Return the answer to an effect."""
        ...


def effect_of(frame: Frame, kind: str, name: str, payload: Json) -> Effect:
    """Return an effect of a machine, as middleware sees it."""
    key = f"{frame.execution_id}:{frame.visit_key}"
    state, attempt = frame.step.name, frame.retries + 1
    return Effect(kind, name, payload, state, frame.place, attempt, frame.execution_id, key)


async def perform(around: Sequence[Middleware], effect: Effect, last: Proceed, limit: int) -> Json:
    """Perform an effect within middleware.

    Args:
        around: The middleware, outermost first.
        effect: The effect.
        last: Performs the effect.
        limit: Maximum size of an answer in bytes of compact JSON.

    Raises:
        AslError: Middleware raised an exception other than StateError, returned a value that is not
            JSON, or called `proceed` too often.
        StateError: Middleware refused the effect or returned too large an answer, or the effect
            failed.
    """
    proceed = last
    for middleware in reversed(around):
        proceed = _Layer(middleware, proceed, limit)
    return await proceed(effect)


class _Layer:
    """One middleware around one effect."""

    def __init__(self, middleware: Middleware, proceed: Proceed, limit: int) -> None:
        self.middleware = middleware
        self.proceed = proceed
        self.limit = limit
        self.payload: Json = None
        """Payload of the effect before the middleware."""
        self.begun = 0
        """Number of calls of `proceed`."""
        self.answers: list[Json] = []
        self.failures: list[BaseException] = []
        """Exceptions of the effect, which are no faults of this middleware."""

    async def __call__(self, effect: Effect) -> Json:
        """Perform an effect within the middleware."""
        self.payload = effect.payload
        try:
            answer = await self.middleware(effect, self._proceed)
            self._check(effect, answer)
            return copy_result(answer, self.limit, effect.name or effect.state)
        except BaseException as error:  # user code; other exceptions propagate
            failure = unwrap_group(error)
            if any(failure is each or error is each for each in self.failures):
                raise
            if is_control_flow(failure) or (is_cancellation(failure) and _is_cancelled()):
                raise failure from error.__cause__
            if isinstance(failure, StateError):
                refusal = bounded_error(failure)
                raise refusal from cause_for(refusal, failure)
            fault = AslError(self._blame(effect, failure))
            raise fault from cause_for(fault, failure)
        finally:
            self.failures.clear()  # breaks a reference cycle

    async def _proceed(self, effect: Effect) -> Json:
        if not isinstance(effect, Effect):
            raise TypeError(f"proceed() needs an asl.Effect, got {type(effect).__name__}")
        if effect.payload is not self.payload:
            effect = replace(effect, payload=self._payload(effect))
        self.begun += 1
        if self.begun > 1 and effect.kind in ONCE:
            raise RuntimeError(f"proceed() performs a {effect.kind} only once")
        try:
            answer = await self.proceed(effect)
        except BaseException as error:  # recorded to distinguish it from the middleware's own
            self.failures.append(error)
            raise
        self.answers.append(answer)
        return answer

    def _payload(self, effect: Effect) -> Json:
        """Return a copy of the payload from the middleware."""
        try:
            return copy_result(effect.payload, self.limit, effect.name or effect.state)
        except NotJson as error:
            raise TypeError(f"the payload is not a JSON value: {error}") from None

    def _check(self, effect: Effect, answer: Json) -> None:
        """Raise TypeError for an invalid answer of the middleware."""
        if effect.kind == "request" and not any(answer is each for each in self.answers):
            raise TypeError("the decision differs from that of `proceed`")

    def _blame(self, effect: Effect, failure: BaseException) -> str:
        name = getattr(self.middleware, "__qualname__", type(self.middleware).__qualname__)
        what = f"{effect.kind} {effect.name!r}" if effect.name else effect.kind
        where = f"the {what} of state {effect.state!r}"
        if isinstance(failure, NotJson):
            return f"middleware {name!r} around {where} returned no JSON value: {failure}"
        return f"middleware {name!r} failed around {where}: {describe_exception(failure)}"


def _is_cancelled() -> bool:
    """Return whether the running task was cancelled."""
    from asyncio import current_task

    task = current_task()
    return task is not None and task.cancelling() > 0
