"""Documents with one Task, and programs that answer it well or badly."""

import sys
from pathlib import Path
from typing import Any

from asl.agents.process import ProcessAgent

PROGRAM = """
import json, os, sys, time
mode = sys.argv[1]
if mode == "stillborn":
    sys.stderr.write("no licence found")
    sys.exit(3)
for line in sys.stdin:
    request = json.loads(line)
    parameters, call = request["parameters"], request["call"]
    if mode == "echo":
        answer = {"return": {"got": parameters, "call": call, "pid": os.getpid()}}
    elif mode == "environment":
        answer = {"return": {"WHO": os.environ.get("WHO"), "folder": os.getcwd()}}
    elif mode == "error":
        answer = {"error": "Quota.Exceeded", "cause": "try tomorrow"}
    elif mode == "hang":
        time.sleep(1000)
    elif mode == "die":
        sys.stderr.write("out of coffee")
        sys.exit(7)
    elif mode == "garbage":
        print("Traceback: this is not JSON", flush=True)
        continue
    elif mode == "garbage-and-die":
        print("Traceback: this is not JSON", flush=True)
        sys.stderr.write("out of coffee")
        sys.exit(7)
    elif mode == "list":
        print("[1, 2]", flush=True)
        continue
    elif mode == "nothing-known":
        answer = {"result": 1}
    elif mode == "nan":
        print('{"return": NaN}', flush=True)
        continue
    elif mode == "alive":
        for percent in (10, 20):
            print(json.dumps({"progress": percent, "message": "on it"}), flush=True)
        print(json.dumps({"heartbeat": True}), flush=True)
        print(flush=True)
        answer = {"return": "done"}
    print(json.dumps(answer), flush=True)
"""


def task(**fields: Any) -> dict[str, Any]:
    """Return a workflow with the single Task `T`, which calls the agent `A`."""
    state = {"Type": "Task", "Agent": "A", **fields}
    return {"StartAt": "T", "States": {"T": state if "Next" in state else {**state, "End": True}}}


def caught(*names: str, **fields: Any) -> dict[str, Any]:
    """Return a workflow that ends in its catcher if `T` fails with one of these errors."""
    workflow = task(Catch=[{"ErrorEquals": list(names), "Next": "Caught"}], **fields)
    workflow["States"]["Caught"] = {"Type": "Succeed"}
    return workflow


def retried(name: str, times: int = 2, **fields: Any) -> dict[str, Any]:
    """Return a workflow that tries `T` again so many times after this error."""
    return task(Retry=[{"ErrorEquals": [name], "MaxAttempts": times}], **fields)


def for_each(count: int, **fields: Any) -> dict[str, Any]:
    """Return a workflow that calls the agent `A` once for each number below *count*."""
    state = {"Type": "Map", "ItemProcessor": task(), "ItemsPath": "$", "End": True, **fields}
    return {"StartAt": "Each", "States": {"Each": state}}


def program(tmp_path: Path, mode: str, **options: Any) -> ProcessAgent:
    """Return an agent that is a program with this behaviour."""
    script = tmp_path / "answer.py"
    script.write_text(PROGRAM)
    return ProcessAgent([sys.executable, str(script), mode], **options)
