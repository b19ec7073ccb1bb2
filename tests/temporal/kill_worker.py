"""A worker that tests kill: `python -m tests.temporal.kill_worker PORT`."""

import asyncio
import random
import sys
import time
from datetime import timedelta

from asl.core.errors import StateError
from asl.core.values import Json
from asl.temporal import activities, claims, remote
from asl.temporal.addresses import TemporalAddress
from asl.temporal.worker import connect, make_worker
from tests.temporal.servers import QUEUE


def work(value: Json) -> Json:
    """Return the value after a moment."""
    time.sleep(random.uniform(0, 0.2))
    return value


def flaky(value: Json) -> Json:
    """Return the value, or fail."""
    time.sleep(random.uniform(0, 0.1))
    if random.random() < 0.3:
        raise StateError("Flaky", "again")
    return value


def pay(value: Json) -> Json:
    """Cost one dollar, after a moment."""
    time.sleep(random.uniform(0, 0.2))
    return {"_cost": 1}


async def main(port: str) -> None:
    """Run until the process is killed."""
    claims.MAX_EVENTS = 60
    remote.HEARTBEAT, activities.BEAT = timedelta(seconds=3), 1.0
    remote.ATTEMPTS = 30  # workers die far more often than calls take
    while True:
        try:
            client = await connect(TemporalAddress(f"127.0.0.1:{port}"))
            agents = {"work": work, "flaky": flaky, "pay": pay}
            async with make_worker(client, QUEUE, {"agents": agents, "pools": {"p": 1000}}):
                await asyncio.Event().wait()
        except Exception as error:  # the server is away for a moment
            print(f"again: {error}", file=sys.stderr)
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
