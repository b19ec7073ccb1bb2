"""Python's garbage collector while thousands of machines run at once.

It looks for unreachable cycles whenever 700 objects more have come than have gone. A machine that
waits is a dozen objects, which live until its end: with thousands of these the looks find nothing,
and take a fifth of the time.
"""

import gc
from threading import Lock
from typing import Final

__all__ = ["RARELY", "rarely"]

RARELY: Final = 50_000
"""New objects between two looks: a few megabytes."""


class _Rarely:
    """While anybody is within it, the collector of the process looks rarely.

    Behind the last one it looks as often as before, unless somebody else has set that meanwhile.
    """

    def __init__(self) -> None:
        self.within = 0
        self.before = 0
        """New objects between two looks before, 0 where nothing was changed."""
        self.lock = Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.within += 1
            usual = gc.get_threshold()[0]
            if self.within == 1 and 0 < usual < RARELY:  # 0 is never
                self.before = usual
                gc.set_threshold(RARELY)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.within -= 1
            if not self.within and self.before:
                if gc.get_threshold()[0] == RARELY:
                    gc.set_threshold(self.before)
                self.before = 0


rarely: Final = _Rarely()
"""Of the process, as the collector is."""
