"""Scripted answers to task tokens and approvals: the `answers` of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from asl.agents.scripted import ScriptedAgent
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.effects.clock import Clock
from asl.effects.task_tokens import AnswerRecorder, TaskTokens, TokenWait
from asl.engine.agent import Call

__all__ = ["ScriptedTaskTokens"]


class ScriptedTaskTokens(TaskTokens):
    """Answers an open token by the script of its state, on the virtual clock."""

    def __init__(self, scripts: Mapping[str, Json]) -> None:
        super().__init__(patience=0)
        self.scripts = {state: ScriptedAgent(script) for state, script in scripts.items()}

    @contextmanager
    def open_token(
        self, call: Call, clock: Clock, kept: AnswerRecorder | None = None
    ) -> Iterator[TokenWait]:
        """Open a token and run its script."""
        script = self.scripts.get(call.state_name)
        with super().open_token(call, clock, kept) as wait:
            if script is None:
                yield wait
                return
            from asyncio import ensure_future

            task = ensure_future(self._answer(wait.token, script))
            try:
                yield wait
            finally:
                task.cancel()

    def offer(
        self,
        activity: str,
        wait: TokenWait,
        payload: Json,
        on_begin: Callable[[str | None], object],
    ) -> None:
        """Give the task to a worker immediately if the state has a script."""
        super().offer(activity, wait, payload, on_begin)
        if wait.state in self.scripts:
            self.get_activity_task(activity, "worker", wait=0)

    async def decide(self, request: dict[str, Json], call: Call) -> Json:
        """Answer an approval by the script of the state; None if it has none."""
        script = self.scripts.get(request["state"])
        return None if script is None else await script.answer(request, call)

    async def _answer(self, token: str, script: ScriptedAgent) -> None:
        outside = cast("Call", _Outside(self, token))
        try:
            answer = await script.answer(None, outside)
        except StateError as error:
            self.send_task_failure(token, error.name, error.cause)
        else:
            self.send_task_success(token, compact(answer))


class _Outside:
    """The part of a call that a script uses."""

    def __init__(self, tokens: TaskTokens, token: str) -> None:
        self.tokens = tokens
        self.token = token

    async def sleep(self, seconds: float) -> None:
        from asyncio import sleep

        await sleep(seconds)

    def heartbeat(self) -> None:
        self.tokens.send_task_heartbeat(self.token)
