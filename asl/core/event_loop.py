"""Whether an event loop is running, found out without importing one."""

import sys

__all__ = ["has_running_loop"]


def has_running_loop() -> bool:
    """Whether an event loop is running in this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
