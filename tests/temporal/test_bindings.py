"""Bindings that the workflow of an execution itself needs come with its start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.stores.errors import StoreError

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

INNER: Any = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "inner", "End": True}}}
OUTER: Any = {
    "StartAt": "W",
    "States": {"W": {"Type": "Workflow", "WorkflowId": "Inner", "Next": "X"},
               "X": {"Type": "Task", "Agent": "X", "End": True}},
}  # fmt: skip


def fail(data: Any) -> Any:
    raise ValueError("no")


def test_a_detached_run_gives_its_workflows(address: str, tmp_path: Path) -> None:
    for file, document in {"inner": INNER, "outer": OUTER}.items():
        (tmp_path / f"{file}.json").write_text(json.dumps(document))
    name = uuid4().hex  # the tests of a process share a server
    words = ["--workflow", f"Inner={tmp_path / 'inner.json'}", "--name", name, "--detach"]
    CliRunner().invoke(cli, ["run", str(tmp_path / "outer.json"), "--store", address, *words])
    with asl.open_store(address, agents={"X": lambda data: data}) as store, store.runner():
        assert store.handle(name).result(20).output == "inner"


def test_a_redriven_or_forked_execution_has_the_workflows_of_its_start(address: str) -> None:
    with asl.open_store(address, agents={"X": fail}) as store:
        failed = store.run(OUTER, {}, name=uuid4().hex, workflows={"Inner": INNER})
    with asl.open_store(address, agents={"X": lambda data: data}) as store:
        assert store.redrive(failed.name).output == "inner"
        assert store.resume(store.fork(failed.name, "W").name).output == "inner"


def test_the_budget_of_a_policy_limits_the_execution(address: str) -> None:
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "X", "Next": "B"},
            "B": {"Type": "Task", "Agent": "X", "End": True},
        },
    }
    agents = {"X": lambda data: {"_cost": 2}}
    policy = {"Budget": {"MaxCost": 1}}
    with asl.open_store(address, agents=agents) as store:
        found = store.run(document, {}, policy=policy)
    assert (found.status, found.error) == ("FAILED", "States.BudgetExceeded")


def test_a_function_that_decides_is_refused(address: str) -> None:
    with pytest.raises(StoreError, match="'approvals' has no effect on Temporal: answer"):
        asl.open_store(address, approvals=lambda request, call: "approve")


def test_notifications_have_the_link_of_the_worker(address: str) -> None:
    ask: Any = {"Type": "Approval", "Prompt": "ok?", "End": True}
    sent = list[Any]()
    given: Any = {
        "notify": lambda kind, request, details: sent.append(details["link"]),
        "request_link": "https://host/{request}",
    }
    with asl.open_store(address, **given) as store:
        store.run({"StartAt": "A", "States": {"A": ask}}, {})
        (request,) = store.pending()
    assert sent == [f"https://host/{quote(request['requestId'], safe='')}"]
