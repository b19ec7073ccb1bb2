"""The command as a process of its own: signals, pipes, terminals, start."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import asl

PATIENCE = 60
ASL = [sys.executable, "-m", "asl"]

HANGING = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
for line in sys.stdin:
    time.sleep(1000)
"""


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that imports this checkout from any folder."""
    root = str(Path(asl.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": root, "TERM": "xterm"}


def test_python_m_asl(folder: Path, environment: dict[str, str]) -> None:
    """`python -m asl` is the command."""
    done = subprocess.run(
        [*ASL, "run", "pass.asl.json", "-i", '{"a":"ü"}'],
        capture_output=True, env=environment, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, '{"a":"ü"}\n', b"")


NOISY = """
import os, subprocess, sys
print("imported")
def greet(parameters):
    print("printed")
    sys.__stdout__.write("original")
    os.write(1, b"raw")
    os.system("echo shell")
    subprocess.run(["echo", "child"])
    return "hello"
"""


@pytest.mark.parametrize("option", ["--json", "--events", "--quiet"])
def test_agents_print_to_standard_error(
    option: str, folder: Path, environment: dict[str, str]
) -> None:
    """Also their modules and child processes."""
    (folder / "noisy.py").write_text(NOISY)
    done = subprocess.run(
        [*ASL, "run", "hello.asl.json", "-i", '{"name":1}', "--agent", "Greeter=noisy:greet",
         option],
        capture_output=True, text=True, env=environment, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0
    assert [json.loads(line) for line in done.stdout.splitlines()]
    for said in ("imported", "printed", "original", "raw", "shell", "child"):
        assert said in done.stderr


@pytest.fixture
def hanging(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A run whose agent is a program that never answers; it is under way."""
    (folder / "hang.py").write_text(HANGING)
    command = [sys.executable, "hang.py", "pid"]
    (folder / "hang.json").write_text(json.dumps({"Greeter": {"command": command}}))
    process = subprocess.Popen(
        [*ASL, "run", "hello.asl.json", "-i", '{"name":1}', "--agents", "hang.json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        # Whatever runs in the background of a shell is told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    yield process
    process.kill()
    process.communicate()


def until(happened: object) -> None:
    """Wait until something has happened."""
    assert callable(happened)
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sigint_and_sigterm_end_a_run_and_its_processes(
    number: signal.Signals, hanging: "subprocess.Popen[str]", folder: Path
) -> None:
    """The exit code is 5."""
    hanging.send_signal(number)
    stdout, stderr = hanging.communicate(timeout=PATIENCE)
    assert (hanging.returncode, stdout, stderr) == (5, "", "asl: aborted\n")
    agent = int((folder / "pid").read_text())
    until(lambda: not runs(agent))


def test_closed_pipe_prints_no_traceback(folder: Path, environment: dict[str, str]) -> None:
    """When nobody reads the output any more, the command ends without a word."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*ASL, "explain"], stdout=write, stderr=subprocess.PIPE, env=environment
    )
    os.close(write)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stderr) == (5, b"")


def on_terminal(words: list[str], environment: dict[str, str]) -> str:
    """Run the command with a terminal for both of its outputs; return what it shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*ASL, *words], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    process.wait(PATIENCE)
    return shown.decode().replace("\r\n", "\n")


def test_output_on_a_terminal_is_indented(folder: Path, environment: dict[str, str]) -> None:
    """Where a person reads, the output is laid out; a short run shows nothing else."""
    shown = on_terminal(["run", "pass.asl.json", "-i", '{"a":{"b":1}}'], environment)
    assert shown == '{\n  "a": {\n    "b": 1\n  }\n}\n'


def test_progress_on_a_terminal(folder: Path, environment: dict[str, str]) -> None:
    """With -q there is none."""
    words = ["run", "wait.asl.json", "-i", '{"seconds":1}']
    shown = on_terminal(words, environment)
    assert "Nap" in shown
    assert "waits" in shown
    assert "Nap" not in on_terminal([*words, "-q"], environment)


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_turns_colours_off(
    no_color: str, coloured: bool, folder: Path, environment: dict[str, str]
) -> None:
    """NO_COLOR turns colours off."""
    shown = on_terminal(["check", "wrong.asl.json"], {**environment, "NO_COLOR": no_color})
    assert ("\x1b[" in shown) is coloured


HEAVY = {"asyncio", "ruamel", "pydantic", "re2", "jsonpath_ng", "urllib.request", "http"}


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--help"], HEAVY | {"jsonschema", "asl.engine", "asl.checks"}),
        (["--version"], HEAVY | {"jsonschema", "asl.engine", "asl.checks"}),
        (["run", "pass.asl.json"], HEAVY),
        (["check", "pass.asl.json"], HEAVY | {"asl.engine.interpreter"}),
        (["ls", "--store", "runs.db"], HEAVY | {"asl.checks", "asl.dialects.base"}),
    ],
)
def test_modules_loaded_by_a_command(
    words: list[str], unwanted: set[str], folder: Path, environment: dict[str, str]
) -> None:
    """Heavy modules are not imported by what does not use them."""
    asl.open_store(folder / "runs.db").close()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "asl", *words],
        capture_output=True, text=True, env=environment, timeout=PATIENCE, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & unwanted


def test_output_is_utf_8_in_every_locale(folder: Path, environment: dict[str, str]) -> None:
    """The encoding of the terminal or locale does not change a result."""
    done = subprocess.run(
        [*ASL, "run", "pass.asl.json", "-i", '"žluťoučký 🐎"'],
        capture_output=True, env={**environment, "PYTHONIOENCODING": "ascii"}, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stdout.decode() == '"žluťoučký 🐎"\n'


def test_run_events_ends_with_its_reader(folder: Path, environment: dict[str, str]) -> None:
    """`asl run --events | head` prints no traceback."""
    (folder / "loop.json").write_text(
        '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"},'
        ' "B": {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsPresent": true, "Next": "C"}],'
        ' "Default": "A"}, "C": {"Type": "Succeed"}}}'
    )
    process = subprocess.Popen(
        [*ASL, "run", "loop.json", "--events"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"id":1,')
    process.stdout.close()
    assert process.wait(PATIENCE) == 5
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def left_on_screen(text: str) -> list[str]:
    """The lines that stay: a slow machine shows progress in between, and takes it away."""
    lines = [""]
    for part in re.split(r"(\n|\x1b\[\d+A\r)", text):
        if part == "\n":
            lines.append("")
        elif up := re.fullmatch(r"\x1b\[(\d+)A\r", part):
            lines[max(len(lines) - 1 - int(up[1]), 0) :] = [""]
        else:
            lines[-1] = f"{lines[-1]}{part}".rpartition("\r")[2]
    return [line for line in (re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", each) for each in lines) if line]


def test_screen_emulation_follows_the_cursor() -> None:
    text = "a\nb 0 s\nc\n\x1b[2A\r\x1b[Jdone\r\n"
    assert left_on_screen(text.replace("\r\n", "\n")) == ["a", "done"]


def test_streamed_text_on_a_terminal(folder: Path, environment: dict[str, str]) -> None:
    """Otherwise only the result is printed."""
    task = {"Type": "Task", "Agent": "A", "Streaming": {}, "End": True}
    (folder / "one.json").write_text(json.dumps({"StartAt": "A", "States": {"A": task}}))
    (folder / "agents.json").write_text(json.dumps({"A": {"return": "Dear Ada,\nbye."}}))
    words = ["run", "one.json", "--agents", "agents.json"]
    said = left_on_screen(on_terminal(words, environment))
    assert said == ["A:", "Dear Ada,", "bye.", '"Dear Ada,\\nbye."']
    assert on_terminal([*words, "-q"], environment) == '"Dear Ada,\\nbye."\n'
    done = subprocess.run(
        [*ASL, *words], capture_output=True, env=environment, timeout=PATIENCE, text=True
    )
    assert (done.stdout, done.stderr) == ('"Dear Ada,\\nbye."\n', "")


def test_inbox_folds_lines_at_the_width_of_a_terminal(
    folder: Path, environment: dict[str, str]
) -> None:
    """Ids are not broken."""
    ask = {"Type": "Approval", "Prompt": "May it be sent to the members " * 4, "End": True}
    (folder / "ask.asl.json").write_text(json.dumps({"StartAt": "Q", "States": {"Q": ask}}))
    words = ["run", "ask.asl.json", "--store", "s.db", "--name", "one"]
    subprocess.run([*ASL, *words], env=environment, stderr=subprocess.DEVNULL, check=False)
    shown = on_terminal(["inbox", "--store", "s.db"], {**environment, "COLUMNS": "40"})
    *lines, id, digest = shown.splitlines()
    assert digest.split()[0] == "digest"
    assert len(lines) > 3
    assert max(map(len, lines)) <= 40
    assert id.strip().endswith(":one:/Q@0.0")
    assert " " not in id.strip()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="nothing is full here")
@pytest.mark.parametrize("words", [["schema"], ["--help"], ["run", "--help"], ["--version"]])
def test_full_disk_prints_one_line(words: list[str], environment: dict[str, str]) -> None:
    """The disk is full: it is said in one line."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*ASL, *words], stdout=full, stderr=subprocess.PIPE, env=environment, timeout=PATIENCE
        )
    assert done.returncode == 2
    assert done.stderr == b"asl: cannot write to standard output: no space left on device\n"


@pytest.mark.parametrize(("closed", "code"), [("<&-", 3), (">&-", 3), ("2>&-", 3)])
def test_closed_streams(environment: dict[str, str], closed: str, code: int) -> None:
    """There is nothing to read, and nobody to tell."""
    command = f"{sys.executable} -m asl check - {closed}"
    given = None if closed == "<&-" else b""
    done = subprocess.run(
        ["sh", "-c", command], input=given, capture_output=True, env=environment, timeout=PATIENCE
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
