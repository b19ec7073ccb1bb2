"""`asl run --detach` and `asl worker`: an execution is left to a worker."""

import json
import os
import subprocess
import sys
from pathlib import Path

DOCUMENT = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "W", "End": True}}}


def asl(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "asl", *words],
        cwd=folder,
        env={**os.environ, "ASL_STORE": str(folder / "runs.db")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_detach_queues_an_execution_for_a_worker(tmp_path: Path) -> None:
    """What it needs is bound there, so nothing warns of that before."""
    (tmp_path / "d.asl.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "agent.py").write_text("def work(data):\n    return 'done'\n")
    left = asl(tmp_path, "run", "d.asl.json", "--store", "--detach", "--name", "one")
    assert (left.returncode, left.stdout) == (0, "one\n")
    assert "asl worker" in left.stderr
    assert "V-TASK-03" not in left.stderr
    asl(tmp_path, "worker", "--until-idle")
    assert asl(tmp_path, "ls", "--stuck").stdout.startswith("one  state 'A': no agent 'W'")
    worked = asl(tmp_path, "worker", "--until-idle", "--agent", "W=agent:work")
    assert (worked.returncode, worked.stdout) == (0, "one  SUCCEEDED\n")


def test_detach_cannot_be_combined_with_outputs(tmp_path: Path) -> None:
    """Nor used without a store."""
    (tmp_path / "d.asl.json").write_text(json.dumps(DOCUMENT))
    for words in (["--detach"], ["--detach", "--store", "--json"]):
        refused = asl(tmp_path, "run", "d.asl.json", *words)
        assert refused.returncode == 2
        assert "--detach " in refused.stderr
