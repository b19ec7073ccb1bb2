"""Processes that outlive the program that has started them: found by a mark, and ended.

A process that has left its group (`setsid`) and has no parent any more still holds the environment
with which the program was started. Linux shows it; elsewhere only the group of a program is ended.
A process that has cleared its environment is not found: a sandbox ends that, too.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

__all__ = ["MARK", "end_strays", "new_mark"]

MARK: Final = "ASL_PROCESS"
"""The variable that holds the mark of a program."""
ROUNDS: Final = 20
"""How often strays are looked for: one that is about to end may start others."""


def new_mark() -> str:
    """Return a mark that no other program has."""
    return os.urandom(16).hex()


def end_strays(mark: str) -> None:
    """Kill all processes of this user that were started under a mark."""
    sought = f"{MARK}={mark}".encode()
    for _ in range(ROUNDS):
        found = [number for number in _numbers() if _has(number, sought)]
        if not found:
            return
        for number in found:
            with suppress(OSError):  # it has ended by itself
                _kill(number, sought)


def _numbers() -> Iterator[int]:
    """Yield the numbers of all processes but this one, none where the system does not show them."""
    with suppress(OSError):
        own = os.getpid()
        yield from (
            int(each) for each in os.listdir("/proc") if each.isdigit() and int(each) != own
        )


def _has(number: int, sought: bytes) -> bool:
    """Whether a variable is in the environment of a process, as far as that can be read."""
    try:
        with open(f"/proc/{number}/environ", "rb", buffering=0) as file:
            return sought in file.read().split(b"\0")
    except OSError:
        return False


def _kill(number: int, sought: bytes) -> None:
    """Kill a process, unless its number belongs to another one by now."""
    handle = os.pidfd_open(number)
    try:
        if _has(number, sought):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
