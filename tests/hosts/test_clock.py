"""The virtual clock and what does not follow it."""

import asyncio
from typing import Any

import asl
from asl.engine.agent import Agent


class Threaded(Agent):
    """An agent whose library works in the event loop's own threads."""

    needs_loop = real = True

    async def answer(self, payload: Any, call: Any) -> Any:
        return await asyncio.to_thread(sum, payload)


def test_the_threads_of_a_library_end_on_the_virtual_clock() -> None:
    """No timer ends them: the end of the event loop waits for them as it does in real time."""
    state = {"Type": "Task", "Agent": "A", "End": True}
    document = {"StartAt": "T", "States": {"T": state}}
    for _ in range(20):
        result = asl.run(document, [1, 2], agents={"A": Threaded()}, clock="virtual")
        assert result.output == 3
