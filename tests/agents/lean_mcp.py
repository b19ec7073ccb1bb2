"""The least that is a server of the Model Context Protocol: fast to start, free to misbehave."""

import json
import os
import signal
import sys
import time
from typing import Any

ANYTHING = {"type": "object"}


def tool(name: str, description: str = "A tool.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": ANYTHING}


OUTPUTS: dict[str, Any] = {
    "pattern": {"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}},
    "circle": {"type": "object", "$ref": "#"},
    "no schema": {"type": "object", "minProperties": "x"},
}
"""Output schemas with which a validation would not end, or not begin."""


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], **more}


def reply(message: dict[str, Any]) -> dict[str, Any] | None:
    """Answer a message; None where there is no answer."""
    if "id" not in message:
        return None
    method, parameters = message["method"], message.get("params", {})
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        return answer | {
            "result": {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lean", "version": "1"},
            }
        }
    if method == "tools/list":
        key = os.environ.get("THE_KEY", "nothing")
        described = os.environ.get("DESCRIBED", f"Looks with {key}.")
        described = described.replace("{pid}", str(os.getpid()))
        pages = {None: [tool("look", described), tool("two")], "2": [tool("fail"), tool("die")]}
        page: dict[str, Any] = {"tools": pages[parameters.get("cursor")]}
        return answer | {"result": page if "cursor" in parameters else page | {"nextCursor": "2"}}
    if method == "tools/call":
        return answer | called(parameters["name"], parameters["arguments"])
    return answer | {"error": {"code": -32601, "message": f"no method {method}"}}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    key = os.environ.get("THE_KEY", "nothing")
    if name == "look":
        seen = {"pid": os.getpid(), "folder": os.getcwd(), "environment": sorted(os.environ)}
        return {"result": text("seen", structuredContent={**arguments, **seen, "key": key})}
    if name == "two":
        return {"result": text("one", "two")}
    if name == "fail":
        return {"result": text(f"not with {key}", isError=True)}
    if name == "die":
        sys.stderr.write(f"gone with {key}")
        sys.stderr.flush()
        os._exit(7)
    return {"error": {"code": -32602, "message": f"no tool {name}"}}


def things(message: dict[str, Any]) -> dict[str, Any] | None:
    """Answer as `mcp_server.py` does when it is asked for its tools, or to add."""
    if message["method"] == "tools/list":
        tools = [tool("add", "Adds two numbers."), tool("broken", "Fails."), tool("steps")]
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}
    if message["method"] == "tools/call" and message["params"]["name"] == "add":
        sum = message["params"]["arguments"]["a"] + message["params"]["arguments"]["b"]
        return {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": text("", structuredContent={"result": sum}),
        }
    return reply(message)


def main(mode: str) -> None:
    if mode == "silent":
        time.sleep(1000)
    if mode == "garbage":
        print("hello, I am no server", flush=True)
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if mode == "hang" and message.get("method") == "tools/call":
            continue
        answer = things(message) if mode == "things" else reply(message)
        if mode == "nonsense" and message.get("method") == "tools/call":
            print("{nonsense", flush=True)
            continue
        if mode == "odd" and message.get("method") == "tools/call":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        if mode == "parts" and message.get("method") == "tools/call":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": text(*["a"] * 500_000)}
        if mode == "wordy" and message.get("method") == "tools/call":
            error = {"code": 1, "message": "x" * 100_000}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        if mode == "endless" and message.get("method") == "tools/list":
            page = {"tools": [], "nextCursor": "more"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": page}
        if mode in OUTPUTS and message.get("method") == "tools/list":
            page = {"tools": [tool("look") | {"outputSchema": OUTPUTS[mode]}]}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": page}
        if mode in OUTPUTS and message.get("method") == "tools/call":
            answer["result"]["structuredContent"] = {"x": "a" * 40 + "!"}
        if mode == "vast" and message.get("method") == "tools/list":
            page = {"tools": [tool("look", "x" * 300_000)], "nextCursor": "2"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": page}
        if answer is not None:
            print(json.dumps(answer), flush=True)
    if mode == "stubborn":
        time.sleep(1000)


if __name__ == "__main__":
    main((sys.argv[1:] or ["good"])[0])
