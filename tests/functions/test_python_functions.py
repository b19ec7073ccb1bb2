"""Python functions in processes of their own."""

import json
import os
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import asl
from asl.functions.runtime_api import MAX_ANSWER
from tests.functions.conftest import Start, cause_of, invocation, run

ECHO = "def handler(event, context):\n    return event\n"


def test_event_and_answer_are_json(start: Start) -> None:
    event: Any = {"text": "Grüße \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")}
    event |= {"number": 2**70, "list": [None, True, 1.5]}
    assert run(start(ECHO), event).output == event


def test_context_has_what_lambda_documents(start: Start) -> None:
    names = (
        *("function_name", "function_version", "memory_limit_in_mb", "invoked_function_arn"),
        *("log_group_name", "aws_request_id", "client_context"),
    )
    code = (
        "def handler(event, context):\n"
        f"    found = {{name: getattr(context, name) for name in {names}}}\n"
        "    return {**found, 'left': context.get_remaining_time_in_millis()}\n"
    )
    found = run(start(code, memory=512, timeout=30.0)).output
    assert 20_000 < found.pop("left") <= 30_000
    assert len(found.pop("aws_request_id")) == 36
    assert found == {
        "function_name": "F",
        "function_version": "$LATEST",
        "memory_limit_in_mb": "512",
        "invoked_function_arn": "arn:aws:lambda:us-east-1:111111111111:function:F",
        "log_group_name": "/aws/lambda/F",
        "client_context": None,
    }


def test_environment_and_layers(start: Start, tmp_path: Path) -> None:
    built, plain = tmp_path / "built", tmp_path / "plain"
    for folder, name in ((built / "python", "shared"), (plain, "other")):
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
    code = (
        "import os, other, shared\n"
        "def handler(event, context):\n"
        "    return [os.environ['STAGE'], os.environ['AWS_LAMBDA_FUNCTION_NAME'], os.getcwd(),\n"
        "            other.NAME, shared.NAME]\n"
    )
    functions = start(code, environment={"STAGE": "test"}, layers=(str(built), str(plain)))
    assert run(functions).output == ["test", "F", str(tmp_path), "other", "shared"]


def test_state_of_the_module_lives_on(start: Start) -> None:
    code = "calls = []\ndef handler(event, context):\n    calls.append(1)\n    return len(calls)\n"
    functions = start(code)
    assert [run(functions).output, run(functions).output] == [1, 2]


def test_output_is_logged_with_the_name(start: Start, lines: list[str]) -> None:
    code = (
        "import os, sys\n"
        "def handler(event, context):\n"
        "    print('one')\n"
        "    os.write(1, b'{\"return\": 5}\\n')\n"
        "    print('two', file=sys.stderr)\n"
        "    return 1\n"
    )
    functions = start(code)
    assert run(functions).output == 1
    functions.close()
    assert sorted(lines) == ["F: one", "F: two", 'F: {"return": 5}']


@pytest.mark.parametrize("direct", [True, False])
def test_exception_is_error_by_its_class(start: Start, lines: list[str], direct: bool) -> None:
    code = (
        "class Declined(Exception): pass\ndef handler(event, context):\n    raise Declined('no')\n"
    )
    functions = start(code)
    result = run(functions, document=None if direct else invocation("F"))
    assert result.error == "Declined"
    cause = cause_of(result)
    assert list(cause) == ["errorMessage", "errorType", "requestId", "stackTrace"]
    assert (cause["errorMessage"], cause["errorType"]) == ("no", "Declined")
    (frame,) = cause["stackTrace"]
    assert frame.endswith("app.py\", line 3, in handler\n    raise Declined('no')\n")
    blank = " " if direct else ""
    assert result.cause is not None
    assert f'"errorMessage":{blank}"no",{blank}"errorType"' in result.cause
    assert run(functions).error == "Declined"
    functions.close()
    assert lines[:2] == ["F: [ERROR] Declined: no", "F: Traceback (most recent call last):"]


FAULTS = [
    ("import missing_library", "app.handler", "Runtime.ImportModuleError"),
    ("def handler(:", "app.handler", "Runtime.UserCodeSyntaxError"),
    ("x = 1", "app.handler", "Runtime.HandlerNotFound"),
    ("x = missing_name", "app.handler", "NameError"),
]


@pytest.mark.parametrize(("code", "handler", "name"), FAULTS)
def test_code_that_cannot_be_imported(start: Start, code: str, handler: str, name: str) -> None:
    functions = start(code, handler=handler)
    for _ in range(2):  # each event imports it again
        result = run(functions)
        assert (result.error, cause_of(result)["errorType"]) == (name, name)
        assert len(cause_of(result)["requestId"]) == 36


def test_message_of_a_missing_module(start: Start) -> None:
    cause = cause_of(run(start("import missing_library")))
    expected = "Unable to import module 'app': No module named 'missing_library'"
    assert (cause["errorMessage"], cause["stackTrace"]) == (expected, [])


@pytest.mark.parametrize("value", ["object()", "{1}", "float('nan')", "'\\ud800'"])
def test_result_that_is_no_json(start: Start, value: str) -> None:
    functions = start(f"def handler(event, context):\n    return {value}\n")
    result = run(functions)
    assert result.error == "Runtime.MarshalError"
    assert cause_of(result)["errorMessage"].startswith("Unable to marshal response: ")


ENDS = [
    ("sys.exit(3)", "with error: exit status 3"),
    ("os._exit(0)", "without providing a reason"),
    ("os.kill(os.getpid(), 11)", "with error: signal: segmentation fault"),
    ("os.kill(os.getpid(), 9)", "with error: signal: killed"),
]


@pytest.mark.parametrize(("call", "reason"), ENDS)
def test_process_that_ends_is_replaced(start: Start, call: str, reason: str) -> None:
    code = (
        "import os, sys\n"
        "def handler(event, context):\n"
        f"    return {call} if event['end'] else os.getpid()\n"
    )
    functions = start(code)
    before = run(functions, {"end": False}).output
    result = run(functions, {"end": True})
    cause = cause_of(result)
    text = f"RequestId: {cause['errorMessage'].split()[1]} Error: Runtime exited {reason}"
    assert result.error == "Runtime.ExitError"
    assert cause == {"errorType": "Runtime.ExitError", "errorMessage": text}
    assert run(functions, {"end": False}).output != before


def test_process_that_ends_while_it_starts(start: Start) -> None:
    functions = start("import os\nos._exit(4)\n")
    assert cause_of(run(functions))["errorMessage"].endswith("with error: exit status 4")


def test_process_that_ends_between_two_events(start: Start) -> None:
    code = "import os\ndef handler(event, context):\n    return os.getpid()\n"
    functions = start(code)
    first = run(functions).output
    os.kill(first, 9)
    with suppress(ChildProcessError):  # its end has been seen already
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert run(functions).output not in (None, first)


def test_process_that_hangs_is_replaced(start: Start) -> None:
    code = (
        "import os, time\n"
        "def handler(event, context):\n"
        "    if event['hang']: time.sleep(60)\n"
        "    return os.getpid()\n"
    )
    functions = start(code, timeout=0.5)
    before = run(functions, {"hang": False}).output
    result = run(functions, {"hang": True})
    assert result.error == "Sandbox.Timedout"
    assert cause_of(result)["errorMessage"].endswith("Error: Task timed out after 0.50 seconds")
    assert run(functions, {"hang": False}).output != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_timeout_of_the_state_ends_the_process(start: Start) -> None:
    code = (
        "import os, time, pathlib\n"
        "def handler(event, context):\n"
        "    pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    functions = start(code, timeout=60.0)
    document = {
        "StartAt": "A",
        "States": {
            "A": {
                "Type": "Task",
                "Resource": "arn:aws:lambda:eu-west-1:222222222222:function:F",
                "TimeoutSeconds": 1,
                "End": True,
            }
        },
    }
    assert run(functions, document=document).error == "States.Timeout"
    functions.close()
    (function,) = functions.agents
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path(function.code, "pid").read_text(encoding="utf-8")), 0)


def test_answer_of_more_than_6_megabytes(start: Start) -> None:
    code = (
        "import os\n"
        "def handler(event, context):\n"
        f"    return 'x' * {MAX_ANSWER} if event['large'] else os.getpid()\n"
    )
    functions = start(code)
    result = run(functions, {"large": True})
    assert result.error == "Function.ResponseSizeTooLarge"
    assert cause_of(result)["errorMessage"] == (
        "Response payload size exceeded maximum allowed payload size (6291556 bytes)."
    )
    assert type(run(functions, {"large": False}).output) is int


MEET = """\
import os, pathlib, time
def handler(event, context):
    pathlib.Path(f"in-{event}").touch()
    while len(list(pathlib.Path().glob("in-*"))) < 3:
        time.sleep(0.005)
    return os.getpid()
"""


def fan_out(items: int) -> dict[str, Any]:
    inner = {"Type": "Task", "Resource": "arn:aws:lambda:x:1:function:F", "End": True}
    state = {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "B", "States": {"B": inner}},
        "End": True,
    }
    return {"StartAt": "A", "States": {"A": state}, "Comment": f"{items} items"}


def test_events_at_the_same_time_have_processes_of_their_own(start: Start) -> None:
    found = run(start(MEET, timeout=30.0), [0, 1, 2], fan_out(3)).output
    assert len(set(found)) == 3


def test_number_of_processes_is_bounded(start: Start) -> None:
    code = "import os\ndef handler(event, context):\n    return os.getpid()\n"
    found = run(start(code, limit=2), [*range(12)], fan_out(12)).output
    assert len(found) == 12
    assert len(set(found)) <= 2


def test_changed_code_is_loaded_again(start: Start, tmp_path: Path) -> None:
    code = "import part\ndef handler(event, context):\n    return part.VALUE\n"
    part = tmp_path / "part.py"
    part.write_text("VALUE = 1\n", encoding="utf-8")
    functions = start(code, watch=True)
    assert run(functions).output == 1
    part.write_text("VALUE = 22\n", encoding="utf-8")
    assert run(functions).output == 22


def test_code_is_loaded_once_without_watch(start: Start, tmp_path: Path) -> None:
    functions = start(ECHO)
    assert run(functions, 1).output == 1
    (tmp_path / "app.py").write_text("def handler(event, context): return 2\n", encoding="utf-8")
    assert run(functions, 1).output == 1


def test_client_context(start: Start) -> None:
    code = "def handler(event, context):\n    return context.client_context.custom\n"
    document = invocation("F")
    context = b64encode(json.dumps({"custom": {"tenant": "ä"}}).encode()).decode()
    document["States"]["A"]["Parameters"]["ClientContext"] = context
    assert run(start(code), {}, document).output == {"tenant": "ä"}


def is_gone(number: int) -> bool:
    """Return whether a process has ended; it may wait for its parent to read its status."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] in "ZX"


def test_children_of_a_function_end_with_it(start: Start) -> None:
    code = (
        "import subprocess, sys\n"
        "def handler(event, context):\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "    return subprocess.Popen(command, start_new_session=True).pid\n"
    )
    functions = start(code)
    child = run(functions).output
    functions.close()
    for _ in range(1000):  # a killed process takes a moment to end
        if is_gone(child):
            break
        sleep(0.01)
    assert is_gone(child)


def test_runs_share_processes(start: Start) -> None:
    functions = start("import os\ndef handler(event, context):\n    return os.getpid()\n")
    found = {asl.run(fan_out(1), [1], resources=functions.resources).output[0] for _ in range(3)}
    assert len(found) == 1
