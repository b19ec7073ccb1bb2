"""Task tokens: answers to waiting states, and the tasks of activities.

One `TaskTokens` serves any number of executions, from any thread and any event loop. Its methods
have the names of AWS's API and of its Python client, so that a worker's code runs unchanged.
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
from asl.effects.threads import call_soon
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
"""Seconds that a worker waits for a task before it gets an empty answer, as with AWS."""
MAX_CLOSED = 10_000
"""Number of closed tokens whose outcome remains known."""

_TOKEN = lazy_pattern(r"[0-9a-f]{64}")
_ACTIVITY = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:activity:[^:]+")


class TokenError(AslError):
    """A task token cannot be used; the class is named after AWS's error."""


class InvalidToken(TokenError):
    """The argument is not a task token."""


class TaskDoesNotExist(TokenError):
    """No task has the token."""


class TaskTimedOut(TokenError):
    """The task is closed: it was answered, it timed out, or its execution has ended."""


class InvalidOutput(TokenError):
    """The answer is not JSON."""


class AnswerRecorder(Protocol):
    """Records answers to a task durably; called on its event loop."""

    def record_answer(self, answer: Json, failure: CallbackError | None) -> None:
        """Record the answer."""
        ...

    def record_heartbeat(self) -> None:
        """Record a heartbeat."""
        ...


class TaskTokenService(ABC):
    """Answers to task tokens, with the names of AWS's API and Python client."""

    exceptions = SimpleNamespace(
        InvalidToken=InvalidToken,
        TaskDoesNotExist=TaskDoesNotExist,
        TaskTimedOut=TaskTimedOut,
        InvalidOutput=InvalidOutput,
    )
    """The errors by name, as in AWS's client."""

    def send_task_success(self, taskToken: str, output: Json) -> dict[str, Json]:  # noqa: N803
        """Answer the task of a token.

        Args:
            taskToken: The token.
            output: The answer as JSON text, as with AWS, or as a JSON value other than a string.

        Raises:
            InvalidOutput: The text is not JSON.
            InvalidToken: The argument is not a task token.
            TaskDoesNotExist: No task has the token.
            TaskTimedOut: The task is closed.
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
            error: Name of the error; None for none.
            cause: Cause of the error; None for none.

        Raises:
            InvalidToken: The argument is not a task token.
            TaskDoesNotExist: No task has the token.
            TaskTimedOut: The task is closed.
        """
        for text in (error, cause):
            if not (text is None or isinstance(text, str)):
                raise AslError(f"'error' and 'cause' must be texts, got {text!r}")
        check_token(taskToken)
        self._settle(taskToken, None, CallbackError(error, cause))
        return {}

    def send_task_heartbeat(self, taskToken: str) -> dict[str, Json]:  # noqa: N803
        """Report that the work continues, which restarts the state's `HeartbeatSeconds`.

        Args:
            taskToken: The token.

        Raises:
            InvalidToken: The argument is not a task token.
            TaskDoesNotExist: No task has the token.
            TaskTimedOut: The task is closed.
        """
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
        """Poll for the next task of an activity; blocks.

        Args:
            activityArn: ARN of the activity.
            workerName: Name of the worker for the history; None for none.
            wait: Seconds to wait for a task; after `close()` the call returns immediately.

        Returns:
            `taskToken` and `input` (JSON text); both None without a task.

        Raises:
            AslError: The ARN is not one of an activity.
        """
        check_activity(activityArn)
        token, payload = self._taken(activityArn, workerName, monotonic() + wait)
        return {"taskToken": token, "input": None if token is None else compact(payload)}

    @abstractmethod
    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        """Answer or fail the task of a token."""

    @abstractmethod
    def _sign(self, token: str) -> None:
        """Restart the heartbeat timeout of a task."""

    @abstractmethod
    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        """Wait for the next task of an activity; return its token, None without one, and its
        payload.
        """


class TaskTokens(TaskTokenService):
    """Task tokens of executions in this process, and tasks for workers of activities; thread-safe.

    A virtual clock cannot predict the actions of other threads. It waits `patience` real seconds
    for them, again after each of their calls, before it jumps to the timeout of a waiting state.
    """

    def __init__(self, *, patience: float = PATIENCE) -> None:
        if not 0 <= patience < float("inf"):
            raise AslError(f"'patience' must be a number of seconds, got {patience!r}")
        self.patience = patience
        self._changed = threading.Condition()
        self._open: dict[str, TokenWait] = {}
        self._closed: dict[str, str] = {}
        self._tasks: dict[str, deque[TokenWait]] = {}
        self._is_closed = False

    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        with self._changed:
            wait = self._found(token)
            self._close(token, "it was answered already")
        wait.settle(output, failure)

    def _sign(self, token: str) -> None:
        with self._changed:
            wait = self._found(token)
        wait.heartbeat()

    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        with self._changed:
            while True:
                tasks = self._tasks.get(activity)
                while tasks:
                    task = tasks.popleft()
                    if task.begin(worker):
                        return task.token, task.payload
                remaining = until - monotonic()
                if self._is_closed or remaining <= 0:
                    return None, None
                self._changed.wait(remaining)

    def close(self) -> None:
        """Return an empty answer to polling workers immediately."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __enter__(self) -> TaskTokens:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # For effects

    def is_open(self, token: str) -> bool:
        """Return whether a state waits here for the answer to a token."""
        with self._changed:
            return token in self._open

    @contextmanager
    def open_token(
        self, call: Call, clock: Clock, kept: AnswerRecorder | None = None
    ) -> Iterator[TokenWait]:
        """Keep the token of a call open while the block runs, on the running event loop.

        Args:
            call: The call.
            clock: Clock of the execution.
            kept: Records an answer before its sender gets a reply; None to record nothing.

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
        clock.external_waits[wait] = self.patience
        try:
            yield wait
        finally:
            del clock.external_waits[wait]
            with self._changed:
                self._close(wait.token, "it timed out, or its execution has ended")
                for tasks in self._tasks.values():
                    if wait in tasks:
                        tasks.remove(wait)

    def offer(
        self,
        activity: str,
        wait: TokenWait,
        payload: Json,
        on_begin: Callable[[str | None], object],
    ) -> None:
        """Offer a task to the next worker of an activity.

        Args:
            activity: ARN of the activity.
            wait: The wait for its answer.
            payload: Input of the task.
            on_begin: Called on the event loop with the worker's name when it takes the task.
        """
        wait.payload, wait.on_begin = payload, on_begin
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

    def _close(self, token: str, reason: str) -> None:
        if self._open.pop(token, None) is None:
            return
        self._closed[token] = reason
        if len(self._closed) > MAX_CLOSED:
            del self._closed[next(iter(self._closed))]


class TokenWait:
    """A state that waits for the answer to its token, on the loop of its execution."""

    payload: Json = None

    def __init__(
        self, service: TaskTokens, call: Call, clock: Clock, recorder: AnswerRecorder | None = None
    ) -> None:
        from asyncio import get_running_loop

        self.recorder = recorder

        self.service = service
        self.token = call.token
        self.state = call.state_name
        self.clock = clock
        self.loop: asyncio.AbstractEventLoop = get_running_loop()
        self.answer: asyncio.Future[Json] = self.loop.create_future()
        self.on_heartbeat = call.heartbeat
        self.on_begin: Callable[[str | None], object] = lambda worker: None

    def settle(self, answer: Json, failure: CallbackError | None) -> None:
        """Set the answer, from any thread.

        Raises:
            TaskTimedOut: The execution has ended.
        """
        if self.recorder is None:
            heard = self._tell(self._settle, answer, failure)
        else:
            heard = self._tell_and_wait(self._settle, answer, failure)
        if not heard:
            raise TaskTimedOut(
                f"the task of the token {self.token} is closed: its execution has ended"
            )

    def heartbeat(self) -> None:
        """Take a heartbeat, from any thread.

        Raises:
            TaskTimedOut: The execution has ended.
        """
        self._tell(self._sign)

    def begin(self, worker: str | None) -> bool:
        """Set that a worker has taken the task; return False if it is no longer awaited."""
        return self._tell(self._begin, worker)

    def _tell(self, what: Callable[..., object], *arguments: Any) -> bool:
        try:
            call_soon(self.loop, what, *arguments)
        except RuntimeError:  # the loop is closed: the execution has ended
            return False
        return True

    def _tell_and_wait(self, what: Callable[..., object], *arguments: Any) -> bool:
        """Return when the answer is recorded; raise the exceptions of that."""
        if self.loop is _running_loop():
            what(*arguments)
            return True
        from concurrent.futures import Future

        done: Future[None] = Future()

        def hear() -> None:
            try:
                what(*arguments)
            except BaseException as error:  # raised in the calling thread
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
        if self.recorder is not None:
            self.recorder.record_heartbeat()
        self._arm()
        self.on_heartbeat()

    def _settle(self, answer: Json, failure: CallbackError | None) -> None:
        if self.answer.done():
            return
        if self.recorder is not None:
            self.recorder.record_answer(answer, failure)
        if failure is None:
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(failure)

    def _begin(self, worker: str | None) -> None:
        self._arm()
        self.on_begin(worker)

    def _arm(self) -> None:
        if self in self.clock.external_waits:
            self.clock.external_waits[self] = self.service.patience


OpenToken: TypeAlias = Callable[[Call], AbstractContextManager[TokenWait]]
"""Keeps the token of a call open while a block runs."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    from asyncio import _get_running_loop

    return _get_running_loop()


def check_activity(arn: str) -> None:
    """Check that an ARN is one of an activity.

    Raises:
        AslError: It is not.
    """
    if not isinstance(arn, str) or not _ACTIVITY.fullmatch(arn):
        raise AslError(
            f"{arn!r} is not the ARN of an activity: arn:aws:states:REGION:ACCOUNT:activity:NAME"
        )


def check_token(token: str) -> None:
    """Check that a text is a task token.

    Raises:
        InvalidToken: It is not.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidToken(f"not a task token: {token!r:.100}")


def read_output(output: Json) -> Json:
    """Return an answer that was passed as JSON text or as a value.

    Raises:
        InvalidOutput: The text is not JSON.
    """
    if not isinstance(output, str):
        try:
            return copy_foreign(output)
        except NotJson as fault:
            raise InvalidOutput(f"the output is not a JSON value: {fault}") from None
    try:
        return read_data(output)
    except ValueError as fault:
        raise InvalidOutput(
            f"the output is not JSON text ({fault}); a text itself is written with quotes: "
            f"{compact(replace_surrogates(output))!r:.100}"
        ) from None
