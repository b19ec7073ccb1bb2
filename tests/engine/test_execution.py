"""What is known of an execution as a whole."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import asl
from asl.engine.execution import Execution

pytestmark = pytest.mark.quick


def test_concurrent_threads_read_one_execution_name() -> None:
    """Calls in threads read their keys while nobody has named the execution yet."""
    program = asl.compile({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}})
    names, both = iter(["one", "other"]), Barrier(2)

    def draw() -> str:
        both.wait(timeout=60)
        return next(names)

    execution = Execution().init(program, {}, 0.0, [], draw=draw)

    def told() -> Iterator[str]:
        with ThreadPoolExecutor(2) as threads:
            for asked in [threads.submit(lambda: execution.name) for _ in range(2)]:
                yield asked.result()

    assert len({*told(), execution.name}) == 1
