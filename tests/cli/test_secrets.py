"""Secrets of an agents file find no way out of the command: not on a stream, not into a file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from asl.cli.console import Exit

from .conftest import Asl

SECRET = 'tok-"ö\\7'
TELLS = """
import json, os, sys
for line in sys.stdin:
    secret = os.environ["KEY"]
    for message in MESSAGES(secret):
        print(json.dumps(message), flush=True)
    sys.stderr.write(secret)
    sys.exit(3)
"""
MODES = {
    "returns": "lambda s: [{'return': {'a': ['Bearer ' + s], s: 1}}]",
    "raises": "lambda s: [{'error': 'Denied.' + s, 'cause': 'bad key ' + s}]",
    "reports": "lambda s: [{'progress': 10, 'message': 'with ' + s}, {'return': s * 2}]",
    "dies": "lambda s: []",
    "nonsense": "lambda s: [{s: s}]",
}
DOCUMENT: Any = {
    "StartAt": "A",
    "Progress": {"Enabled": True},
    "States": {
        "A": {
            "Type": "Task",
            "Agent": "A",
            "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "IntervalSeconds": 0}],
            "Memory": {"Write": {"Key": "k"}},
            "Cache": {"Key": "c"},
            "Audit": {"LogLevel": "full"},
            "Progress": {"Enabled": True},
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Ask"}],
            "Next": "Ask",
        },
        "Ask": {"Type": "Approval", "Prompt.$": "$", "Next": "F"},
        "F": {"Type": "Fail", "ErrorPath": "$.Error", "CausePath": "$.Cause"},
    },
}
WAYS = {
    "streams": ("--trace", "--json", "--telemetry", "console"),
    "files": ("--events", "--history", "h.json", "--record", "c.yaml", "--memory", "m.db"),
    "store": ("--store", "s.db", "--notify", "jsonl:n.jsonl", "--memory", "m.db"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_secrets_are_masked_in_every_output(
    mode: str, way: str, asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its agent does with it; nothing holds it, in any form, nor a part of it."""
    monkeypatch.setenv("THE_KEY", SECRET)
    (folder / "d.asl.json").write_text(json.dumps(DOCUMENT))
    (folder / "tells.py").write_text(f"MESSAGES = {MODES[mode]}\n{TELLS}")
    agent = {"command": [sys.executable, "tells.py"], "environment": {"KEY": "${env:THE_KEY}"}}
    (folder / "a.json").write_text(json.dumps({"agents": {"A": agent}}))
    ran = asl("run", "d.asl.json", "--agents", "a.json", "--name", "e", *WAYS[way])
    said = [ran.output]
    if way == "store":
        said += [asl(*words, "--store", "s.db").output for words in (["show", "e"], ["inbox"])]
        said.append(asl("logs", "e", "--store", "s.db").output)
    assert ran.exit_code == Exit.PAUSED, ran.output
    written = [path.read_bytes() for path in folder.iterdir() if path.is_file()]
    everything = "\n".join(said).encode() + b"\n".join(written)
    for form in (SECRET, "tok-", "tok%2D", json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1]):
        assert form.encode() not in everything
    if mode in ("returns", "raises"):
        assert b"***" in everything
