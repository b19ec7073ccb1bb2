"""A secret in every place of an agents file, told in every way: no output of a command holds it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from asl.cli.console import Exit

from ..agents import lean_mcp
from ..agents.servers import Exchange, HttpServer, serving
from ..agents.test_model import completion, streamed
from .conftest import Asl

pytest.importorskip("mcp")
pytest.importorskip("redis")

HARD = '"ö\\<7&'
SECRETS = {
    "P_KEY": f"prcs-3tr{HARD} plq",  # of a program
    "N_KEY": "7301926485",  # the same, which looks like a number
    "T_KEY": "tlxw-9vbt-bnzk",  # of a tool
    "H_KEY": 'hdrv-8cxs"<&\\kqj',  # of an endpoint
    "K_KEY": "sk-mdlz-4gwy-pfrt",  # of a provider
    "M_KEY": f"mcpj-5ydr{HARD}vwk",  # of a server that is a program
    "U_KEY": "urlq-2nhf-xzgc",  # of a server that is a URL
    "R_KEY": "rdsk-6mbl/@:cvn",  # of a memory
}
PROGRAM = """
import json, os, sys, time
def say(**line):
    print(json.dumps(line), flush=True)
for line in sys.stdin:
    mode, s = json.loads(line)["parameters"]["mode"], os.environ[KEY]
    if mode == "returns":
        say(**{"return": {"a": ["Bearer " + s], s: json.dumps({"k": s}), "n": N}})
    elif mode == "raises":
        say(error="Denied." + s, cause=repr(s) + ascii(s) + repr(s.encode()))
    elif mode == "usage":
        say(**{"return": {"_usage": s, "_cost": s, "_tokens": s, "model": s}})
    elif mode == "reports":
        say(progress=s, message=s)
        say(progress=50, message="half of " + s)
        say(**{"return": 1})
    elif mode == "streams":
        for piece in ("x" + s[:3], s[3:5], s[5:] + "y" + s[:4], s[4:]):
            say(chunk=piece)
        say(**{"return": s})
    elif mode == "breaks":
        say(chunk="so far " + s[:7])
        say(error="Broken", cause=s)
    elif mode == "uses":
        for tool, arguments in ((s, {}), ("Tool", {"mode": "returns", "x": s}), ("Tool", s),
                                ("Tool", {"mode": "raises"}), (("x" * 195) + s, {s: s})):
            say(tool=tool, arguments=arguments)
            answer = sys.stdin.readline()
        say(**{"return": answer})
    elif mode == "garbage":
        print("x" * 190 + s * 50, flush=True)
    elif mode == "nonsense":
        say(**{s: s})
    elif mode == "dies":
        sys.stderr.write(s[3:] + (s * 9000) + "the end")
        sys.exit(3)
"""
MCP = """
import json, sys
sys.path.insert(0, FOLDER)
import lean_mcp
key = lean_mcp.os.environ["THE_KEY"]
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call" and message["params"]["name"] == "two":
        token = message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1, "total": 2, "message": key}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    answer = lean_mcp.reply(message)
    if message["method"] == "tools/list" and "nextCursor" not in answer["result"]:
        named = lean_mcp.tool("of-" + key.encode().hex())
        named["inputSchema"] = {"type": "object", "properties": {key: {"description": key}}}
        answer["result"]["tools"] += [named, lean_mcp.tool(key)]
    if answer is not None:
        print(json.dumps(answer), flush=True)
"""


def endpoint(exchange: Exchange) -> None:
    """Answer as an endpoint that tells everybody its header."""
    key, mode = exchange.headers["x-key"], exchange.json["mode"]
    if mode == "returns":
        exchange.answer(200, {"headers": {"x-key": key}, "text": f"<{key}>"})
    elif mode == "raises":
        exchange.answer(500, {"error": f"No.{key}", "cause": key})
    elif mode == "fails":
        exchange.answer(500, f"<p>{key.replace('&', '&amp;').replace('<', '&lt;')}</p>".encode())
    elif mode == "limits":
        exchange.answer(429, key.encode() * 9000, Retry_After=key)
    elif mode == "redirects":
        exchange.answer(302, b"", Location=f"http://elsewhere.example/{key}")
    else:
        exchange.answer(200, b"no JSON: " + b"x" * 480 + key.encode() * 9000)


def tells(parameters: Any) -> Any:
    """Answer as a function that finds all secrets by itself."""
    known = [os.environ[name] for name in SECRETS]
    if parameters["mode"] == "raises":
        raise ValueError(known)
    return {"found": known, **dict.fromkeys(known)}


def provider(exchange: Exchange) -> None:
    """Answer as a provider that tells everybody the key that it is asked with."""
    key = exchange.headers["authorization"].removeprefix("Bearer ")
    messages = exchange.json["messages"]
    last = next(each for each in messages[::-1] if each["role"] == "user")["content"]
    used = messages[-1]["role"] == "tool"
    body: Any = {"error": {"message": f"Incorrect key: {key}", "code": key}}
    status, kind = 200, "application/json"
    if "denies" in last:
        status = 401
    elif "tool" in last and not used:
        body = completion(None, **{"x" * 195 + key: {key: key}})
    elif "arguments" in last and not used:
        body = completion(None, Tool={"mode": "returns", "x": key})
    elif "streams" in last:
        head, tail = key[:5], key[5:]
        body, kind = b"".join(streamed(f"it is {head}", tail, f" or {key}")), "text/event-stream"
    else:
        body = completion(f"it is {key}")
        body["usage"]["prompt_tokens_details"] = {"cached_tokens": 1}
    exchange.answer(status, body, Content_Type=kind, Connection="close")


def remote(exchange: Exchange) -> None:
    """Answer as an MCP server that tells everybody its header."""
    key = exchange.headers["x-key"]
    message = exchange.json if exchange.body else {}
    name = message.get("params", {}).get("name")
    known = "method" in message and name is None
    reply = lean_mcp.reply(message) if known else None
    if reply is None and name is None:
        exchange.answer(202 if exchange.method == "POST" else 405)
    elif name == "fail":
        exchange.answer(500, key.encode())
    elif name == "die":
        exchange.answer(200, b'{"jsonrpc": "2.0", "x": ' + key.encode(), Content_Type=JSON)
    elif name == "two":
        body = b"event: message\ndata: {" + key.encode() + b"\n\n"
        exchange.answer(200, body, Content_Type="text/event-stream")
    elif name == "look":
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        told = lean_mcp.text(f"with {key}", isError=True)
        exchange.answer(200, {**answer, "result": told}, Content_Type=JSON)
    else:
        exchange.answer(200, reply, Content_Type=JSON)


JSON = "application/json"
CALLS: tuple[tuple[str, str], ...] = (
    *(
        ("Program", mode)
        for mode in (
            [
                "returns",
                "raises",
                "usage",
                "reports",
                "streams",
                "breaks",
                "uses",
                "garbage",
                "nonsense",
                "dies",
            ]
        )
    ),
    ("Number", "returns"),
    ("Heir", "returns"),
    ("Function", "returns"),
    ("Function", "raises"),
    *(
        ("Endpoint", mode)
        for mode in ("returns", "raises", "fails", "limits", "redirects", "babbles")
    ),
    *(("Model", mode) for mode in ("says", "denies", "tool", "arguments", "streams")),
    *((name, "calls") for name in ("look", "two", "fail", "die", "far", "far2", "far3", "far4")),
)


def document() -> Any:
    """Return a workflow that makes all calls, whatever comes of them."""
    states: dict[str, Any] = {}
    for number, (agent, mode) in enumerate(CALLS):
        following = f"S{number + 1}" if number + 1 < len(CALLS) else "Ask"
        caught = {"ErrorEquals": ["States.ALL"], "Next": following}
        states[f"S{number}"] = {
            "Type": "Task",
            "Agent": agent,
            "Parameters": {"mode": mode},
            "Memory": {"Write": {"Key": f"k{number}"}},
            "Cache": {"Key": f"c{number}", "Scope": "workflow"},
            "Audit": {"LogLevel": "full"},
            "Progress": {"Enabled": True},
            "Tools": {"Allowed": ["*"], "Audit": {"LogLevel": "full"}},
            "ResultPath": f"$.r{number}",
            "Catch": [{**caught, "ResultPath": f"$.r{number}"}],
            "Next": following,
            **({"Streaming": {"Enabled": True}} if mode in ("streams", "breaks") else {}),
        }
    states["Ask"] = {"Type": "Approval", "Prompt.$": "$", "End": True}
    return {
        "StartAt": "S0",
        "Budget": {"MaxTokens": 10**9, "OnExceed": "Continue"},
        "States": states,
    }


REMEMBERS = {
    "StartAt": "A",
    "Memory": {"Backend": "redis"},
    "States": {"A": {"Type": "Task", "Agent": "Number", "Memory": {"Read": ["k"]}, "End": True}},
}


def agents_file(folder: Path, urls: dict[str, HttpServer]) -> Any:
    def program(name: str, variable: str, number: Any = None) -> list[str]:
        (folder / f"{name}.py").write_text(f"KEY, N = {variable!r}, {number!r}\n{PROGRAM}")
        return [sys.executable, f"{name}.py"]

    (folder / "server.py").write_text(f"FOLDER = {str(Path(lean_mcp.__file__).parent)!r}\n{MCP}")

    def secret(name: str) -> dict[str, str]:
        return {name: f"${{env:{name}}}"}

    number = program("number", "N_KEY", int(SECRETS["N_KEY"]))
    return {
        "agents": {
            "Program": {"command": program("p", "P_KEY"), "environment": secret("P_KEY")},
            "Number": {"command": number, "environment": secret("N_KEY")},
            "Heir": {"command": program("heir", "P_KEY")},
            "Function": f"{__name__}:tells",
            "Endpoint": {
                "url": urls["endpoint"].url,
                "headers": {"X-Key": "${env:H_KEY}"},
            },
            "Model": {
                "model": "openai-chat:tiny",
                "key": "${env:K_KEY}",
                "url": f"{urls['provider'].url}/v1",
                "tools": ["Tool", "near/*"],
            },
            **{name: {"server": "near", "tool": name} for name in ("look", "two", "fail", "die")},
            "far": {"server": "far", "tool": "look"},
            "far2": {"server": "far", "tool": "two"},
            "far3": {"server": "far", "tool": "fail"},
            "far4": {"server": "far", "tool": "die"},
        },
        "tools": {
            "Tool": {
                "description": "Tells.",
                "agent": {"command": program("tool", "T_KEY"), "environment": secret("T_KEY")},
            }
        },
        "servers": {
            "near": {
                "command": [sys.executable, "server.py"],
                "environment": {"THE_KEY": "${env:M_KEY}"},
            },
            "far": {"url": f"{urls['far'].url}/mcp", "headers": {"X-Key": "${env:U_KEY}"}},
        },
        "memory": {"redis": "redis://:${env:R_KEY}@127.0.0.1:1/0"},
    }


def leaks(told: bytes) -> dict[str, str]:
    """Return the secrets of which six characters in a row were told, with what is around them."""
    found = {}
    for name, secret in SECRETS.items():
        for start in range(len(secret) - 5):
            part = secret[start : start + 6]
            for form in (part.encode(), json.dumps(part)[1:-1].encode(), repr(part)[1:-1].encode()):
                at = told.find(form)
                if at >= 0:
                    found[name] = told[max(0, at - 200) : at + 200].decode(errors="replace")
    return found


@pytest.mark.full
def test_secrets_are_masked_in_outputs_files_and_logs(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in what commands say, nor in what they write, nor in what libraries log."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    work = folder / "work"
    work.mkdir()
    (work / "d.asl.json").write_text(json.dumps(document()))
    (work / "m.asl.json").write_text(json.dumps(REMEMBERS))
    with serving(endpoint) as first, serving(provider) as second, serving(remote) as third:
        urls = {"endpoint": first, "provider": second, "far": third}
        agents = folder / "a.json"
        agents.write_text(json.dumps(agents_file(folder, urls)))
        given = ("work/d.asl.json", "--agents", "a.json")
        ways = {
            "streams": ("--trace", "--json", "--telemetry", "console"),
            "files": ("--events", "--history", "work/h.json", "--record", "work/c.yaml"),
            "store": ("--store", "work/s.db", "--notify", "jsonl:work/n.jsonl", "--name", "e"),
        }
        said = []
        for name, way in ways.items():
            ran = asl("run", *given, "--memory", f"work/{name}.db", *way)
            said += [ran.output, ran.stderr, repr(ran.exception)]
            assert ran.exit_code == Exit.PAUSED
        down = asl("run", "work/m.asl.json", "--agents", "a.json")
        assert "States.MemoryNotConfigured" in down.output
        said.append(down.output)
        for words in (("check",), ("plan",)):
            said.append(asl(*words, *given).output)
    for words in (("show", "e"), ("logs", "e"), ("inbox",), ("costs", "e"), ("ls",), ("doctor",)):
        said.append(asl(*words, "--store", "work/s.db").output)
    written = [path.read_bytes() for path in work.rglob("*") if path.is_file()]
    own = SECRETS["K_KEY"].encode()  # of which the provider is reminded by what it has said itself
    asked = [each.body.replace(own, b"") for each in second.requests]
    told = b"\n".join([*written, *asked, "\n".join([*said, caplog.text]).encode()])
    assert leaks(told) == {}
    paused = json.loads((work / "n.jsonl").read_text().splitlines()[0])["request"]["prompt"]
    silent = {"reports", "two", "far2", "far3", "far4"}  # which tell it beside their answers
    for number, call in enumerate(CALLS):
        assert "***" in json.dumps(paused[f"r{number}"]) or not silent.isdisjoint(call), call
