"""Task tokens: answers to waiting states, and the tasks of activities.

One `TaskTokens` serves any number of executions, from any thread and any event loop. Its methods
have the names of AWS's API and of its Python client, so the code of a worker runs unchanged.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from asl.core.errors import AslError, NotJson
from asl.core.json_text import read_data
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact, copy_foreign, replace_surrogates
from asl.effects.clock import Clock
from asl.engine.agent import Call
from asl.states.errors import CallbackError

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "POLL",
    "AnswerRecorder",
    "InvalidOutput",
    "InvalidToken",
    "OpenToken",
    "TaskDoesNotExist",
    "TaskTimedOut",
    "TaskTokenService",
    "TaskTokens",
    "TokenError",
    "TokenWait",
    "check_activity",
    "check_token",
    "read_output",
]

PATIENCE = 1.0
POLL = 60.0
"""Seconds that a worker waits for a task before it hears that there is none, as with AWS."""
MAX_CLOSED = 10_000
"""Closed tokens that are remembered, to say what became of them."""

_TOKEN = lazy_pattern(r"[0-9a-f]{64}")
_ACTIVITY = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:activity:[^:]+")


class TokenError(AslError):
    """A task token cannot be used as it was; the type says why, by the name that AWS uses."""


class InvalidToken(TokenError):
    """What was given is no task token at all."""


class TaskDoesNotExist(TokenError):
    """No task has the token."""


class TaskTimedOut(TokenError):
    """The task is closed: it was answered, it timed out, or its execution has ended."""


class InvalidOutput(TokenError):
    """What was given as the answer is not JSON."""


class AnswerRecorder(Protocol):
    """Keeps what comes for a task so that it survives the process; called on its event loop."""

    def keep(self, answer: Json, failure: CallbackError | None) -> None:
        """Keep the answer."""
        ...

    def signed(self) -> None:
        """Keep a sign of life."""
        ...


class TaskTokenService(ABC):
    """Answers to task tokens, by the names of AWS's API and Python client."""

    exceptions = SimpleNamespace(
        InvalidToken=InvalidToken,
        TaskDoesNotExist=TaskDoesNotExist,
        TaskTimedOut=TaskTimedOut,
        InvalidOutput=InvalidOutput,
    )
    """The errors by name, as AWS's client has them."""

    def send_task_success(self, taskToken: str, output: Json) -> dict[str, Json]:  # noqa: N803
        """Answer the task of a token.

        *output* is the answer as JSON text, as with AWS, or any JSON value that is no text. Raises
        InvalidOutput, InvalidToken, TaskDoesNotExist, or TaskTimedOut for a task that is closed.
        """
        answer = read_output(output)
        check_token(taskToken)
        self._settle(taskToken, answer, None)
        return {}

    def send_task_failure(
        self,
        taskToken: str,  # noqa: N803
        error: str | None = None,
        cause: str | None = None,
    ) -> dict[str, Json]:
        """Fail the task of a token.

        Args:
            taskToken: The token.
            error: The name of the error; None for none.
            cause: Its cause; None for none.

        Raises:
            InvalidToken: It is no task token.
            TaskDoesNotExist: No task has it.
            TaskTimedOut: The task is closed.
        """
        for text in (error, cause):
            if not (text is None or isinstance(text, str)):
                raise AslError(f"error and cause of a failure are texts, not {text!r}")
        check_token(taskToken)
        self._settle(taskToken, None, CallbackError(error, cause))
        return {}

    def send_task_heartbeat(self, taskToken: str) -> dict[str, Json]:  # noqa: N803
        """Say that the work goes on: the state's `HeartbeatSeconds` starts anew."""
        check_token(taskToken)
        self._sign(taskToken)
        return {}

    def get_activity_task(
        self,
        activityArn: str,  # noqa: N803
        workerName: str | None = None,  # noqa: N803
        *,
        wait: float = POLL,
    ) -> dict[str, str | None]:
        """Take the next task of an activity: its `taskToken`, and its `input` as JSON text.

        Blocks for *wait* seconds at most, then both are None: there is no task. This is immediate
        after `close()`.
        """
        check_activity(activityArn)
        token, payload = self._taken(activityArn, workerName, monotonic() + wait)
        return {"taskToken": token, "input": None if token is None else compact(payload)}

    @abstractmethod
    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        """Answer or fail the task of a token."""

    @abstractmethod
    def _sign(self, token: str) -> None:
        """Let the time of a heartbeat start anew."""

    @abstractmethod
    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        """Wait for the next task of an activity: its token and payload; no token if none came."""


class TaskTokens(TaskTokenService):
    """Answers to task tokens, and tasks for the workers of activities; safe from any thread.

    A virtual clock cannot know what other threads are about to do. It gives them `patience` real
    seconds, anew with every sign of them, before it jumps ahead to the timeout of a waiting state.
    """

    def __init__(self, *, patience: float = PATIENCE) -> None:
        if not 0 <= patience < float("inf"):
            raise AslError(f"patience is a number of seconds, not {patience!r}")
        self.patience = patience
        self._changed = threading.Condition()
        self._open: dict[str, TokenWait] = {}
        self._closed: dict[str, str] = {}
        self._tasks: dict[str, deque[TokenWait]] = {}
        self._shut = False

    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        with self._changed:
            wait = self._found(token)
            self._close(token, "it was answered already")
        wait.settle(output, failure)

    def _sign(self, token: str) -> None:
        with self._changed:
            wait = self._found(token)
        wait.sign()

    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        with self._changed:
            while True:
                tasks = self._tasks.get(activity)
                while tasks:
                    task = tasks.popleft()
                    if task.begin(worker):
                        return task.token, task.payload
                remaining = until - monotonic()
                if self._shut or remaining <= 0:
                    return None, None
                self._changed.wait(remaining)

    def close(self) -> None:
        """Tell polling workers immediately that there is no task."""
        with self._changed:
            self._shut = True
            self._changed.notify_all()

    def __enter__(self) -> TaskTokens:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # For effects

    def waits(self, token: str) -> bool:
        """Whether a state waits for the answer to a token at this desk."""
        with self._changed:
            return token in self._open

    @contextmanager
    def waiting(
        self, call: Call, clock: Clock, kept: AnswerRecorder | None = None
    ) -> Iterator[TokenWait]:
        """Keep the token of a call open while the block runs, on the running event loop.

        *kept* records an answer before its sender gets a reply.

        Raises:
            AslError: Another execution of the same id waits for the token.
        """
        wait = TokenWait(self, call, clock, kept)
        with self._changed:
            if wait.token in self._open:
                raise AslError(
                    f"an execution of the id {call.execution_id!r} waits for this token already: "
                    "executions at the same time need names of their own"
                )
            self._closed.pop(wait.token, None)
            self._open[wait.token] = wait
        clock.outside[wait] = self.patience
        try:
            yield wait
        finally:
            del clock.outside[wait]
            with self._changed:
                self._close(wait.token, "it timed out, or its execution has ended")
                for tasks in self._tasks.values():
                    if wait in tasks:
                        tasks.remove(wait)

    def offer(
        self, activity: str, wait: TokenWait, payload: Json, begun: Callable[[str | None], object]
    ) -> None:
        """Let the next worker of *activity* have a task; *begun* hears of it on the event loop."""
        wait.payload, wait.begun = payload, begun
        with self._changed:
            self._tasks.setdefault(activity, deque()).append(wait)
            self._changed.notify_all()

    def _found(self, token: str) -> TokenWait:
        if token in self._closed:
            raise TaskTimedOut(f"the task of the token {token} is closed: {self._closed[token]}")
        if token not in self._open:
            raise TaskDoesNotExist(
                f"no task has the token {token}: answer it with the TaskTokens that its execution "
                "was started with (tokens=...)"
            )
        return self._open[token]

    def _close(self, token: str, why: str) -> None:
        if self._open.pop(token, None) is None:
            return
        self._closed[token] = why
        if len(self._closed) > MAX_CLOSED:
            del self._closed[next(iter(self._closed))]


class TokenWait:
    """One state that waits for the answer to its token; it lives on the loop of its execution."""

    payload: Json = None

    def __init__(
        self, desk: TaskTokens, call: Call, clock: Clock, kept: AnswerRecorder | None = None
    ) -> None:
        from asyncio import get_running_loop

        self.kept = kept

        self.desk = desk
        self.token = call.token
        self.state = call.state_name
        self.clock = clock
        self.loop: asyncio.AbstractEventLoop = get_running_loop()
        self.answer: asyncio.Future[Json] = self.loop.create_future()
        self.beat = call.heartbeat
        self.begun: Callable[[str | None], object] = lambda worker: None

    def settle(self, answer: Json, failure: CallbackError | None) -> None:
        """Set the answer, from any thread; raises TaskTimedOut for an execution that has ended."""
        if self.kept is None:
            heard = self._tell(self._settle, answer, failure)
        else:
            heard = self._tell_and_wait(self._settle, answer, failure)
        if not heard:
            raise TaskTimedOut(
                f"the task of the token {self.token} is closed: its execution has ended"
            )

    def sign(self) -> None:
        """Hear that somebody is at work, from any thread."""
        self._tell(self._sign)

    def begin(self, worker: str | None) -> bool:
        """Hear that a worker has taken the task; return False if it is no longer awaited."""
        return self._tell(self._begin, worker)

    def _tell(self, what: Callable[..., object], *arguments: Any) -> bool:
        try:
            self.loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:  # the loop is closed: the execution has ended
            return False
        return True

    def _tell_and_wait(self, what: Callable[..., object], *arguments: Any) -> bool:
        """Return when it was heard, and kept; raises what that raises."""
        if self.loop is _running_loop():
            what(*arguments)
            return True
        from concurrent.futures import Future

        done: Future[None] = Future()

        def hear() -> None:
            try:
                what(*arguments)
            except BaseException as error:  # flies on in the thread that asked
                done.set_exception(error)
            else:
                done.set_result(None)

        if not self._tell(hear):
            return False
        while True:
            try:
                done.result(PATIENCE)
                return True
            except TimeoutError:
                if self.loop.is_closed():
                    return False

    def _sign(self) -> None:
        if self.kept is not None:
            self.kept.signed()
        self._arm()
        self.beat()

    def _settle(self, answer: Json, failure: CallbackError | None) -> None:
        if self.answer.done():
            return
        if self.kept is not None:
            self.kept.keep(answer, failure)
        if failure is None:
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(failure)

    def _begin(self, worker: str | None) -> None:
        self._arm()
        self.begun(worker)

    def _arm(self) -> None:
        if self in self.clock.outside:
            self.clock.outside[self] = self.desk.patience


OpenToken: TypeAlias = Callable[[Call], AbstractContextManager[TokenWait]]
"""Keeps the token of a call open while a block runs."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    from asyncio import _get_running_loop

    return _get_running_loop()


def check_activity(arn: str) -> None:
    """Raise AslError for what names no activity."""
    if not isinstance(arn, str) or not _ACTIVITY.fullmatch(arn):
        raise AslError(f"{arn!r} is no activity: arn:aws:states:REGION:ACCOUNT:activity:NAME")


def check_token(token: str) -> None:
    """Raise InvalidToken for what is no task token."""
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidToken(f"this is no task token: {token!r:.100}")


def read_output(output: Json) -> Json:
    """Return the answer that was passed as JSON text or as a value; raises InvalidOutput."""
    if not isinstance(output, str):
        try:
            return copy_foreign(output)
        except NotJson as fault:
            raise InvalidOutput(f"the output is no JSON value: {fault}") from None
    try:
        return read_data(output)
    except ValueError as fault:
        raise InvalidOutput(
            f"the output is no JSON text ({fault}); a text itself is written with quotes: "
            f"{compact(replace_surrogates(output))!r:.100}"
        ) from None
