"""Reading of buffered input pauses for the event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from asl.agents.child_process import ProgramOutput
from asl.agents.http import AnswerLimits, limited_chunks
from asl.core.work import PIECE, READ_AT_ONCE, ReadingPace


async def turns_while(reading: Awaitable[object]) -> int:
    """Return how often the event loop went on while something was read without waiting."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(others())
    await reading
    task.cancel()
    return turns


def test_input_that_has_arrived_is_read_with_pauses() -> None:
    """A pause comes after so many bytes, and after so many pieces, however small they are."""

    async def read(count: int, size: int) -> None:
        pace = ReadingPace()
        for _ in range(count):
            await pace.count(size)

    assert asyncio.run(turns_while(read(10, 100))) <= 1
    assert asyncio.run(turns_while(read(100_000, 1))) >= 100_000 * PIECE // READ_AT_ONCE
    assert asyncio.run(turns_while(read(100, READ_AT_ONCE))) >= 100


def test_lines_of_a_program_are_read_with_pauses() -> None:
    """It may have written very many of them while it was not listened to."""

    async def read() -> None:
        lines = ProgramOutput(1 << 20)
        lines.feed_data(b"\n" * 50_000)
        lines.feed_eof()
        while await lines.readline():
            pass
        assert lines.unread == 0

    assert asyncio.run(turns_while(read())) >= 100


@pytest.mark.parametrize("size", [1, 50_000])
def test_parts_of_an_answer_are_read_with_pauses(size: int) -> None:
    """A server may have sent very many of them at a time, and a library gets small ones."""
    count = 100_000 // size

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b" " * size

    async def read() -> None:
        pieces = [
            len(each) async for each in limited_chunks(parts(), AnswerLimits(100_000), ValueError)
        ]
        assert (sum(pieces), max(pieces)) == (100_000, min(size, READ_AT_ONCE))

    assert asyncio.run(turns_while(read())) >= 6
