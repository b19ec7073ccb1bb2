"""Upgrades: executions move to the current version of the workers; histories of earlier versions
are replayed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from asl.temporal.payloads import ROLL
from asl.temporal.worker import make_worker
from tests.temporal.servers import QUEUE, Server, find_binary, run


async def set_current(server: Server, build: str) -> None:
    """Make a version of the workers the current one, once the server knows it."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace="default", deployment_name=QUEUE, build_id=build
    )
    async with asyncio.timeout(20):
        while True:
            try:
                await server.client.workflow_service.set_worker_deployment_current_version(request)
                return
            except RPCError:
                await asyncio.sleep(0.1)


def test_waiting_execution_moves_to_the_current_version() -> None:
    document: Any = {
        "StartAt": "Wait",
        "States": {
            "Wait": {"Type": "Wait", "Seconds": 6, "Next": "Call"},
            "Call": {"Type": "Task", "Agent": "version", "End": True},
        },
    }

    async def scene() -> None:
        binary = find_binary("temporal")
        async with await WorkflowEnvironment.start_local(
            dev_server_existing_path=binary, dev_server_log_level="error"
        ) as env:
            server = Server(env.client)

            def worker(build: str) -> Any:
                agents = {"version": lambda value: build}
                return make_worker(env.client, QUEUE, {"agents": agents}, build=build)

            async with worker("1"):
                await set_current(server, "1")
                handle = await server.start(document)
                while (await handle.describe()).history_length < 4:
                    await asyncio.sleep(0.1)
                async with worker("2"):
                    await set_current(server, "2")
                    while len(await server.runs(handle.id)) == 1:
                        await handle.signal(ROLL)
                        await asyncio.sleep(0.3)
            async with worker("2"):
                assert await handle.result() == "2"

    run(scene())


def test_recorded_histories_replay_with_another_hash_seed() -> None:
    replayed = subprocess.run(
        [sys.executable, "-m", "tests.temporal.histories"],
        env={"PYTHONHASHSEED": "random"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stderr
