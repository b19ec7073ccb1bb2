"""Regular deletion of ended executions while a server runs."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Final

from asl.core.errors import AslError
from asl.executions import Store
from asl.executions.retention import Retention

__all__ = ["prune_regularly"]

INTERVAL: Final = 10.0
"""Seconds between two deletions."""
PAUSE: Final = 20
"""Seconds of pause for each second that a deletion takes, so that it slows nothing down."""


async def prune_regularly(store: Store, retention: Retention) -> None:
    """Delete the executions that are not retained, until the task is cancelled."""
    pause = INTERVAL
    while True:
        await asyncio.sleep(pause)
        begun = monotonic()
        try:
            await asyncio.to_thread(store.retain, retention)
        except AslError:  # the disk may be full, and have room later
            logging.getLogger("asl").exception("ended executions cannot be deleted")
        pause = max(INTERVAL, PAUSE * (monotonic() - begun))
