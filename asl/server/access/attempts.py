"""Bound on wrong credentials, by the address that sends them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from asl.core.errors import AslError

__all__ = ["AttemptLimiter", "TooManyAttempts"]

MOST: Final = 10
"""Wrong credentials of one address within `WINDOW`."""
WINDOW: Final = 60.0
"""Seconds."""
ADDRESSES: Final = 10_000
"""Addresses that are remembered."""


class TooManyAttempts(AslError):
    """An address has sent too many wrong credentials; it has to wait.

    Attributes:
        seconds: How long, at least 1.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"too many wrong credentials: try again in {self.seconds} s")


class AttemptLimiter:
    """Counts wrong credentials by address, in windows of a minute.

    Args:
        now: Returns epoch seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Check that an address may send credentials.

        Raises:
            TooManyAttempts: It has to wait.
        """
        with self._lock:
            begun, count = self._windows.get(address, (0.0, 0))
        left = begun + WINDOW - self._now()
        if count >= MOST and left > 0:
            raise TooManyAttempts(left)

    def add(self, address: str) -> None:
        """Count wrong credentials."""
        now = self._now()
        with self._lock:
            begun, count = self._windows.pop(address, (now, 0))
            self._windows[address] = (begun, count + 1) if now < begun + WINDOW else (now, 1)
            if len(self._windows) > ADDRESSES:
                self._windows.popitem(last=False)
