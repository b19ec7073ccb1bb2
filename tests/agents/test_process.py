"""Agents that are programs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from select import select
from typing import Any

import pytest

import asl
from asl.agents.process import ProcessAgent
from asl.core.profile import PROFILES

from .workflows import caught, for_each, program, retried, task


def test_a_program_answers(tmp_path: Path) -> None:
    """A program gets parameters and call as a line of JSON and answers with one."""
    agent = program(tmp_path, "echo")
    result = asl.run(task(), {"a": ["ü", 1]}, agents={"A": agent}, name="pr-17")
    assert result.output["got"] == {"a": ["ü", 1]}
    assert result.output["call"]["state"] == "T"
    assert result.output["call"]["attempt"] == 1
    assert result.output["call"]["execution"].endswith(":pr-17")
    assert result.output["call"]["key"].startswith(result.output["call"]["execution"])


def test_one_program_serves_calls_one_after_another(tmp_path: Path) -> None:
    """A process is kept for the next call of the execution, and ends with the execution."""
    agent = program(tmp_path, "echo")
    workflow = for_each(20, MaxConcurrency=1)
    output = asl.run(workflow, list(range(20)), agents={"A": agent}).output
    assert [each["got"] for each in output] == list(range(20))
    assert len({each["pid"] for each in output}) == 1
    assert not agent.alive


def test_calls_at_once_have_programs_of_their_own(tmp_path: Path) -> None:
    """No process answers two calls at a time."""
    agent = program(tmp_path, "echo")
    output = asl.run(for_each(8), list(range(8)), agents={"A": agent}).output
    assert [each["got"] for each in output] == list(range(8))
    assert not agent.alive


def test_folder_and_environment_are_those_of_the_binding(tmp_path: Path) -> None:
    """A program runs in its folder, with its variables over those of this process."""
    agent = program(
        tmp_path, "environment", folder=str(tmp_path), environment={"WHO": "the program"}
    )
    output = asl.run(task(), agents={"A": agent}).output
    assert output["WHO"] == "the program"
    assert Path(output["folder"]).samefile(tmp_path)


def answering(code: str) -> ProcessAgent:
    """Return an agent that runs this code for each line that it reads, as `request`."""
    loop = "import json, os, select, sys\nfor line in iter(sys.stdin.readline, ''):\n"
    body = "".join(f"    {each}\n" for each in ("request = json.loads(line)", *code.splitlines()))
    return ProcessAgent([sys.executable, "-c", loop + body])


ECHO = "print(json.dumps({'return': request['parameters']}), flush=True)"


@pytest.mark.parametrize(
    "more",
    ['{"return": "done"}', "finished", '{"progress": 100}', '{"error": "Late"}', '{"re'],
)
def test_what_a_program_says_after_its_answer_is_no_answer_to_another_call(more: str) -> None:
    """It belongs to no call any more; another program takes the next one."""
    agent = answering(
        f"sys.stdout.write(json.dumps({{'return': request['parameters']}}) + '\\n' + {more!r})\n"
        "sys.stdout.flush()"
    )
    result = asl.run(for_each(3, MaxConcurrency=1), ["a", "b", "c"], agents={"A": agent})
    assert result.output == ["a", "b", "c"]
    assert not agent.alive


@pytest.mark.parametrize("what", ["print('finished', flush=True)", "pass"])
def test_program_that_writes_or_ends_between_calls_is_replaced(what: str, tmp_path: Path) -> None:
    """Whatever it did, the next call meets a program that waits for it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    after = f"open({str(gate)!r}, 'w').close()"
    agent = answering(f"{ECHO}\n{what}\nos.close(1) if {what!r} == 'pass' else 0\n{after}")
    twice = {
        "StartAt": "One",
        "States": {
            "One": {"Type": "Task", "Agent": "A", "Next": "Gate"},
            "Gate": {"Type": "Task", "Agent": "Gate", "ResultPath": None, "Next": "Two"},
            "Two": {"Type": "Task", "Agent": "A", "End": True},
        },
    }
    agents = {"A": agent, "Gate": lambda parameters: gate.read_text()}
    assert asl.run(twice, "asked", agents=agents).output == "asked"


def test_late_output_of_a_program_belongs_to_its_call() -> None:
    """However late it says it: no call is sent to a program that does not read yet."""
    agent = answering(f"{ECHO}\nselect.select([0], [], [])\nprint('finished', flush=True)")
    result = asl.run(for_each(3, MaxConcurrency=1), ["a", "b", "c"], agents={"A": agent})
    assert result.output == ["a", "b", "c"]


def test_a_program_may_end_after_each_answer() -> None:
    """One that ends without having read the call never had it, and is replaced."""
    agent = answering(f"{ECHO}\nselect.select([0], [], [])\nsys.exit()")
    result = asl.run(for_each(3, MaxConcurrency=1), ["a", "b", "c"], agents={"A": agent})
    assert result.output == ["a", "b", "c"]


def test_a_program_that_ends_with_a_call_in_its_hands_has_failed() -> None:
    """Nobody knows what it has done of it, so no other is asked."""
    agent = answering(f"if request['parameters'] == 'b': sys.exit(4)\n{ECHO}")
    result = asl.run(for_each(3, MaxConcurrency=1), ["a", "b", "c"], agents={"A": agent})
    assert result.error == "States.TaskFailed"
    assert result.cause == "the process ended with exit code 4 before it answered"


def test_a_call_that_the_program_has_not_ended_ends_the_program() -> None:
    """What it says of that call answers no other."""
    chunk = "print(json.dumps({'chunk': 'x' * 600}), flush=True)"
    agent = answering(f"{chunk}\n{chunk}\n{ECHO}")
    workflow = {
        "StartAt": "One",
        "States": {
            "One": {
                "Type": "Task",
                "Agent": "A",
                "Parameters": "first",
                "Streaming": {"Enabled": True},
                "Catch": [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Two"}],
                "End": True,
            },
            "Two": {"Type": "Task", "Agent": "A", "Parameters": "second", "End": True},
        },
    }
    profile = PROFILES["default"].with_limits(max_payload=1000)
    result = asl.run(workflow, agents={"A": agent}, profile=profile)
    assert result.output == "second"


def test_a_line_may_say_which_call_it_belongs_to() -> None:
    """What an earlier call left behind is passed over, however late it comes."""
    late = "print(json.dumps({'id': request['id'] - 1, 'return': 'late'}), flush=True)"
    answer = "{'id': request['id'], 'return': request['parameters']}"
    agent = answering(f"if request['id'] > 1: {late}\nprint(json.dumps({answer}), flush=True)")
    result = asl.run(for_each(3, MaxConcurrency=1), ["a", "b", "c"], agents={"A": agent})
    assert result.output == ["a", "b", "c"]


FAULTS = [
    ("error", "Quota.Exceeded", "try tomorrow"),
    ("die", "States.TaskFailed", "exit code 7 before it answered: out of coffee"),
    ("stillborn", "States.TaskFailed", "no licence found"),
    ("garbage", "States.TaskFailed", "no JSON object: 'Traceback: this is not JSON'"),
    ("garbage", "States.TaskFailed", 'an answer as one line {"return": VALUE}, and all else to'),
    ("garbage-and-die", "States.TaskFailed", "ended with exit code 7: out of coffee"),
    ("list", "States.TaskFailed", "no JSON object: '[1, 2]'"),
    ("nan", "States.TaskFailed", "no JSON object"),
    ("nothing-known", "States.TaskFailed", "none of return, error, progress, chunk, heartbeat"),
]


@pytest.mark.parametrize(("mode", "name", "cause"), FAULTS)
def test_what_goes_wrong_in_a_program_is_an_error_of_the_state(
    mode: str, name: str, cause: str, tmp_path: Path
) -> None:
    """A program that fails, dies or writes nonsense fails the Task with a name and a cause."""
    agent = program(tmp_path, mode)
    result = asl.run(caught(name), agents={"A": agent})
    assert result.status == "SUCCEEDED"
    assert result.output["Error"] == name
    assert cause in result.output["Cause"]
    assert not agent.alive


@pytest.mark.parametrize("mode", ["error", "die", "garbage"])
def test_retry_starts_a_dead_program_again(mode: str, tmp_path: Path) -> None:
    """Every retry asks a program that is alive."""
    agent = program(tmp_path, mode)
    name = "Quota.Exceeded" if mode == "error" else "States.TaskFailed"
    result = asl.run(retried(name), agents={"A": agent}, clock="virtual")
    assert result.status == "FAILED"
    assert [event.type for event in result.events].count("TaskFailed") == 3
    assert not agent.alive


def test_a_program_that_cannot_be_started_fails_the_task() -> None:
    """The cause names the program."""
    agent = ProcessAgent(["./no-such-program"])
    result = asl.run(caught("States.TaskFailed"), agents={"A": agent})
    assert "cannot start './no-such-program'" in result.output["Cause"]


def test_a_folder_that_is_not_there_fails_the_task(tmp_path: Path) -> None:
    """The cause blames it, and not the program."""
    agent = ProcessAgent([sys.executable], folder=str(tmp_path / "gone"))
    result = asl.run(caught("States.TaskFailed"), agents={"A": agent})
    assert f"in the folder '{tmp_path}/gone': No such file" in result.output["Cause"]


@pytest.mark.parametrize("command", ["python3 p.py", []])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    """A text, or nothing, is refused where it is written."""
    with pytest.raises(asl.AslError, match=r"such as \['python3', 'agent.py'\], not"):
        ProcessAgent(command)


def test_usage_beside_a_returned_value_is_refused() -> None:
    """It would be lost there; it is counted, and the cause says where it belongs."""
    agent = answering("print(json.dumps({'return': 'x', '_tokens': 50}), flush=True)")
    result = asl.run(task(), {}, agents={"A": agent})
    assert result.error == "States.TaskFailed"
    assert 'as in {"return":{"_tokens":50}}' in str(result.cause)
    assert result.usage["tokens"] == 50


def test_the_values_of_an_answer_are_bounded() -> None:
    """An answer with too many values is refused before it is read."""
    agent = answering("print('{\"return\": [' + '1,' * 100_000 + '1]}', flush=True)")
    result = asl.run(task(), {}, agents={"A": agent})
    assert (result.error, result.cause) == (
        "States.TaskFailed",
        "an answer of more than 100000 values",
    )
    assert not agent.alive


def test_a_program_that_closes_its_output_has_failed() -> None:
    """Nobody waits until it ends; it is ended."""
    code = "import os, time; input(); os.close(1); time.sleep(600)"
    agent = ProcessAgent([sys.executable, "-c", code])
    result = asl.run(task(), {}, agents={"A": agent})
    assert result.error == "States.TaskFailed"
    assert result.cause == "the process closed its output before it answered"
    assert not agent.alive


def test_signs_of_life_are_no_answers(tmp_path: Path) -> None:
    """Progress, heartbeats and empty lines may come before the answer."""
    agent = program(tmp_path, "alive")
    workflow = task(HeartbeatSeconds=30, TimeoutSeconds=60)
    assert asl.run(workflow, agents={"A": agent}).output == "done"


def test_a_large_answer_passes(tmp_path: Path) -> None:
    """Requests and answers of a megabyte go through a pipe unharmed."""
    agent = program(tmp_path, "echo")
    data = {"text": "x" * 1_000_000}
    assert asl.run(task(), data, agents={"A": agent}).output["got"] == data


def test_a_program_of_any_language_will_do(tmp_path: Path) -> None:
    """What counts is the lines of JSON, not who writes them."""
    script = "import sys; input(); print(sys.argv[1])"
    command = [sys.executable, "-c", script, json.dumps({"return": 42})]
    assert asl.run(task(), agents={"A": ProcessAgent(command)}).output == 42


@pytest.mark.parametrize("turns", range(24))
@pytest.mark.parametrize("everything", [False, True])
def test_no_program_outlives_a_run_that_is_cut_short(
    turns: int, everything: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever turn of the event loop a cancellation comes in, its own or one of all tasks."""
    started: list[subprocess.Popen[bytes]] = []

    class Started(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Started)
    agent = ProcessAgent(["sleep", "1000"])

    async def cut_short() -> None:
        running = asyncio.create_task(asl.arun(for_each(2), [1, 2], agents={"A": agent}))
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelled = asyncio.all_tasks() - {asyncio.current_task()} if everything else {running}
        for each in cancelled:
            each.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(cut_short())
    assert not agent.alive
    assert all(each.returncode == -signal.SIGKILL for each in started)
    assert started or turns < 5


LEAVING = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        MORE
        with open('starting', 'w') as file:
            file.write(str(os.getpid()))
        os.rename('starting', 'started')
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('started'):
    time.sleep(0.01)
print(json.dumps({'return': int(open('started').read())}), flush=True)
END
"""


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, within ten seconds after it was killed."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select([process], [], [], 10)[0])
    finally:
        os.close(process)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
@pytest.mark.parametrize(
    ("more", "end"),
    [
        ("pass", ""),
        ("pass", "os._exit(0)"),
        ("os.close(0); os.close(1); os.close(2)", ""),
        ("subprocess.Popen(['setsid', 'sleep', '600'])", ""),
    ],
)
def test_a_process_that_a_program_detaches_ends_with_the_run(
    more: str, end: str, tmp_path: Path
) -> None:
    """A process in a session of its own, without a parent, is found and killed."""
    code = LEAVING.replace("MORE", more).replace("END", end)
    agent = answering(code)
    agent.command[2] = "import subprocess, time\n" + agent.command[2]
    agent.folder = str(tmp_path)
    result = asl.run(task(), {}, agents={"A": agent})
    assert has_ended(result.output)


def test_runs_that_share_an_agent_share_no_process(tmp_path: Path) -> None:
    """The end of one run ends its own processes only."""
    agent = program(tmp_path, "echo")

    async def main() -> list[asl.Result]:
        begun, gate = asyncio.Event(), asyncio.Event()
        twice = {
            "StartAt": "One",
            "States": {
                "One": {"Type": "Task", "Agent": "A", "ResultPath": "$.one", "Next": "Gate"},
                "Gate": {"Type": "Task", "Agent": "Gate", "ResultPath": None, "Next": "Two"},
                "Two": {"Type": "Task", "Agent": "A", "ResultPath": "$.two", "End": True},
            },
        }

        async def pass_gate(parameters: object) -> None:
            begun.set()
            await gate.wait()

        slow = asyncio.create_task(asl.arun(twice, agents={"A": agent, "Gate": pass_gate}))
        await begun.wait()
        short = await asl.arun(for_each(1), [1], agents={"A": agent})
        gate.set()
        return [short, await slow]

    short, slow = asyncio.run(main())
    assert (short.status, slow.status) == ("SUCCEEDED", "SUCCEEDED")
    assert slow.output["one"]["pid"] == slow.output["two"]["pid"] != short.output[0]["pid"]
    assert not agent.alive


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**64) - 1, 10**40])
def test_integers_are_exact(number: int, tmp_path: Path) -> None:
    """JSON has integers of any length, so there and back they are the same."""
    got = asl.run(task(), {"n": number}, agents={"A": program(tmp_path, "echo")}).output["got"]
    assert got == {"n": number}
    assert type(got["n"]) is int
