"""What is made when it is first asked for is one for all threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from asl.core.lazy import shared_cached_property
from asl.effects.services import Services


class Whole:
    """Makes a new part whenever it makes one, and waits in that until somebody else does."""

    def __init__(self) -> None:
        self.both = Barrier(2)

    @shared_cached_property
    def part(self) -> list[int]:
        """A part."""
        self.both.wait(timeout=60)
        return []


def test_threads_that_ask_at_once_get_the_same() -> None:
    """Though both have made one."""
    whole = Whole()
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(lambda: whole.part) for _ in range(2)]
    one, other = (each.result() for each in asked)
    assert one is other
    assert one is whole.part


def test_a_run_has_one_of_each_service() -> None:
    """What is counted, answered and remembered is the same for agents in all threads."""
    for name in ("tools", "task_token_service", "memory_service"):
        assert isinstance(vars(Services)[name], shared_cached_property)
