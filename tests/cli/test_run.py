"""`asl run`."""

import json
from pathlib import Path

import pytest

from .conftest import HELLO, PASS, Asl

pytestmark = pytest.mark.quick


def test_run_prints_its_output_as_json(asl: Asl) -> None:
    """A run prints its output as one line of JSON and exits with 0."""
    done = asl("run", "hello.asl.json", "--input", '{"name":"Ann"}', "--agents", "agents.yaml")
    assert done.exit_code == 0
    assert done.stdout == '{"name":"Ann","greeting":{"text":"hello"}}\n'
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "stdin", "output"),
    [
        (("pass.asl.json",), None, {}),
        (("pass.asl.json", "-i", "[1]"), None, [1]),
        (("pass.asl.json", "-i", "null"), None, None),
        (("pass.asl.json", "-i", '"text"'), None, "text"),
        (("pass.asl.json", "-i", "-"), '{"from": "stdin"}', {"from": "stdin"}),
        (("pass.asl.json", "-i", "@data.yaml"), None, {"from": "file"}),
        (("pass.asl.json", "--input-file", "data.yaml"), None, {"from": "file"}),
        (("-", "-i", "3"), json.dumps(PASS), 3),
    ],
)
def test_input_option(
    words: tuple[str, ...], stdin: str | None, output: object, asl: Asl, folder: Path
) -> None:
    """Input is JSON, a file or standard input, `{}` if absent."""
    (folder / "data.yaml").write_text("from: file\n")
    done = asl("run", *words, stdin=stdin)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing argument 'DOC'"),
        (("nope.asl.json",), "cannot read 'nope.asl.json': no such file or directory"),
        (("helo.asl.json",), "did you mean 'hello.asl.json'?"),
        (("https://example.com/a.json",), "'https://example.com/a.json': DOC must be a file"),
        (("pass.asl.json", "-i", "{"), "--input:1:2: error READ-01"),
        (("pass.asl.json", "-i", "@no.json"), "cannot read 'no.json'"),
        (("pass.asl.json", "-i", "agents.yaml"), "is a file: use --input @agents.yaml"),
        (("pass.asl.json", "-i", "{}", "--input-file", "x"), "cannot be combined"),
        (("-", "-i", "-"), "cannot both be read from standard input"),
        (("pass.asl.json", "--profile", "azure"), "'azure' is not one of"),
        (("pass.asl.json", "--clock", "noon"), "--clock"),
        (("pass.asl.json", "--json", "--events"), "cannot be combined"),
        (("pass.asl.json", "--agent", "Greeter"), "does not have the form NAME=module:function"),
        (("pass.asl.json", "--agent", "Greeter=nowhere_at_all:f"), "no module 'nowhere_at_all'\n"),
        (("pass.asl.json", "--agent", "Greeter=greetings.far:f"), "no module 'greetings.far'"),
        (("pass.asl.json", "--agent", "Greeter=needy:f"), "needy.py:2)"),
        (("pass.asl.json", "--agent", "Greeter=greetings:gret"), "did you mean 'greet'?"),
        (("pass.asl.json", "--agents", "agnets.yaml"), "did you mean 'agents.yaml'?"),
        (("pass.asl.json", "--agents", "broken.yaml"), "broken.yaml:1:5: error AGENTS-02"),
        (("pass.asl.json", "--agents", "torn.yaml"), "torn.yaml:2:1: error READ-01"),
        (("pass.asl.json", "--record", "no/such/folder.json"), "cannot write"),
        (("pass.asl.json", "--verbos"), "No such option"),
    ],
)
def test_wrong_usage_of_run_exits_with_2(
    words: tuple[str, ...], message: str, asl: Asl, folder: Path
) -> None:
    """There is no traceback."""
    (folder / "broken.yaml").write_text("A: {retrun: 1}\n")
    (folder / "torn.yaml").write_text("A: [1\n")
    (folder / "needy.py").write_text("\nimport not_installed\n")
    done = asl("run", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_run_of_an_invalid_document_exits_with_3(asl: Asl) -> None:
    """Nothing runs."""
    done = asl("run", "wrong.asl.json")
    assert done.exit_code == 3
    assert done.stdout == ""
    assert "wrong.asl.json:4:5: error V-ST-02" in done.stderr
    assert "did you mean 'Next'?" in done.stderr


def test_run_of_text_that_is_not_json_exits_with_3(asl: Asl, folder: Path) -> None:
    """A fault of reading has a place, too."""
    (folder / "torn.json").write_text('{"StartAt": }')
    done = asl("run", "torn.json")
    assert done.exit_code == 3
    assert "torn.json:1:13: error READ-01" in done.stderr


def test_failed_workflow_exits_with_1(asl: Asl) -> None:
    """Error, cause, state and position are printed."""
    done = asl("run", "fail.asl.json")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr == ("asl: workflow failed: Refused: why\n  in No at fail.asl.json:4:5\n")


def test_exception_of_an_agent_has_its_position(asl: Asl, folder: Path) -> None:
    """In the code of the agent, not of a library; an error raised by name has none."""
    (folder / "faulty.py").write_text(
        "import json, asl\n"
        "def reads(parameters):\n"
        "    return json.loads('{')\n"
        "def refuses(parameters):\n"
        "    raise asl.StateError('No', 'no')\n"
        "async def groups(parameters):\n"
        "    import asyncio\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(asyncio.to_thread(reads, parameters))\n"
    )
    for agent in ("faulty:reads", "faulty:groups"):
        done = asl("run", "hello.asl.json", "-i", '{"name":1}', "--agent", f"Greeter={agent}")
        assert done.stderr.endswith(f"  raised at {folder / 'faulty.py'}:3 in reads\n")
    for agent in ("faulty:refuses", "math:sqrt"):
        done = asl("run", "hello.asl.json", "-i", '{"name":1}', "--agent", f"Greeter={agent}")
        assert (done.exit_code, "raised at" in done.stderr) == (1, False)


def test_failure_in_a_branch_or_item_names_its_state(asl: Asl, folder: Path) -> None:
    """The state that failed first is named, with the item that it worked on."""
    inner = {"StartAt": "Ask", "States": HELLO["States"]}
    each = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": inner, "End": True}
    document = {"StartAt": "Each", "States": {"Each": each}}
    (folder / "map.json").write_text(json.dumps(document, indent=2))
    done = asl("run", "map.json", "-i", '[{"name":"Ann"},{}]', "--agents", "agents.yaml")
    assert done.exit_code == 1
    assert "in Each[1] / Ask at map.json:10:11" in done.stderr


def test_unbound_agent_is_a_warning_with_a_hint(asl: Asl) -> None:
    """Before the run a warning with its place; after the failure what to do."""
    done = asl("run", "hello.asl.json", "-i", '{"name":1}')
    assert done.exit_code == 1
    assert "hello.asl.json:6:16: warning V-TASK-03" in done.stderr
    assert "workflow failed: States.AgentNotFound" in done.stderr
    assert "--agents FILE" in done.stderr
    quiet = asl("run", "hello.asl.json", "-i", '{"name":1}', "-q")
    assert "V-TASK-03" not in quiet.stderr


def test_mocked_state_needs_no_agent(asl: Asl, folder: Path) -> None:
    """A mock by the state's name silences the warning."""
    (folder / "mocks.yaml").write_text("mocks:\n  Ask: {return: mocked}\n")
    done = asl("run", "hello.asl.json", "-i", '{"name":1}', "--agents", "mocks.yaml")
    assert done.stdout == '{"name":1,"greeting":"mocked"}\n'
    assert done.stderr == ""


def test_strict_treats_warnings_as_errors(asl: Asl) -> None:
    """With --strict a warning is an error, so nothing runs."""
    done = asl("run", "hello.asl.json", "--strict")
    assert done.exit_code == 3
    assert "error V-TASK-03" in done.stderr


def test_agent_option_imports_from_the_current_folder(asl: Asl) -> None:
    """`--agent NAME=module:function` imports from here; what it prints is not the result."""
    words = ("hello.asl.json", "-i", '{"name":"Ann"}', "--agent", "Greeter=greetings:greet")
    done = asl("run", *words)
    assert done.stdout == '{"name":"Ann","greeting":"hi Ann"}\n'
    assert done.stderr == "working\n"


def test_agents_file_imports_from_its_folder(asl: Asl, folder: Path) -> None:
    """The folder of an agents file is searched for its modules."""
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "beside_the_file.py").write_text("def f(parameters):\n    return 1\n")
    (folder / "elsewhere" / "agents.yaml").write_text("Greeter: beside_the_file:f\n")
    done = asl("run", "hello.asl.json", "-i", '{"name":1}', "--agents", "elsewhere/agents.yaml")
    assert json.loads(done.stdout)["greeting"] == 1


def test_last_binding_of_a_name_counts(asl: Asl, folder: Path) -> None:
    """Several agents files and pairs are merged in order."""
    (folder / "more.yaml").write_text("Greeter: {return: more}\n")
    words = ("hello.asl.json", "-i", '{"name":"A"}', "--agents", "agents.yaml")
    done = asl("run", *words, "--agents", "more.yaml")
    assert json.loads(done.stdout)["greeting"] == "more"
    done = asl("run", *words, "--agent", "Greeter=greetings:greet")
    assert json.loads(done.stdout)["greeting"] == "hi A"


def test_virtual_time_skips_waits(asl: Asl) -> None:
    """--clock sets the start."""
    year = '{"seconds": 31536000}'
    done = asl("run", "wait.asl.json", "-i", year, "--virtual-time", "--json")
    assert json.loads(done.stdout)["elapsed"] == 31536000
    done = asl("run", "wait.asl.json", "-i", year, "--clock", "2030-01-01T00:00:00Z", "--events")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["timestamp"] == "2031-01-01T00:00:00.000Z"


def test_json_prints_the_result(asl: Asl) -> None:
    """For a failure as well."""
    done = asl("run", "pass.asl.json", "--json")
    assert json.loads(done.stdout)["status"] == "SUCCEEDED"
    done = asl("run", "fail.asl.json", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == "Refused"


def test_events_prints_lines_of_json(asl: Asl) -> None:
    """--events prints every event, the last of which carries the result."""
    done = asl("run", "pass.asl.json", "-i", "3", "--events")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events] == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "ExecutionSucceeded",
    ]
    assert events[-1]["details"] == {"output": 3}


def test_history_writes_the_format_of_aws(asl: Asl, folder: Path) -> None:
    """To a file, or to standard output instead of the output."""
    done = asl("run", "pass.asl.json", "-i", "3", "--history", "history.json")
    assert done.stdout == "3\n"
    written = json.loads((folder / "history.json").read_text())
    assert written["events"][-1]["executionSucceededEventDetails"]["output"] == "3"
    shown = json.loads(asl("run", "fail.asl.json", "--history", "-").stdout)
    assert [event["type"] for event in shown["events"]][-1] == "ExecutionFailed"
    assert asl("run", "pass.asl.json", "--history", "-", "--json").exit_code == 2


def test_name_option_is_in_the_context_object(asl: Asl, folder: Path) -> None:
    """--name is what the context object says."""
    state = {"Type": "Pass", "Parameters": {"n.$": "$$.Execution.Name"}, "End": True}
    (folder / "name.json").write_text(json.dumps({"StartAt": "A", "States": {"A": state}}))
    assert asl("run", "name.json", "--name", "pr-17").stdout == '{"n":"pr-17"}\n'


def test_timed_out_workflow_exits_with_5(asl: Asl, folder: Path) -> None:
    """The document's own TimeoutSeconds is not a failure of a state."""
    document = {**json.loads((folder / "wait.asl.json").read_text()), "TimeoutSeconds": 5}
    (folder / "late.json").write_text(json.dumps(document))
    done = asl("run", "late.json", "-i", '{"seconds": 9}', "--virtual-time")
    assert done.exit_code == 5
    assert "asl: workflow timed out after 5 s" in done.stderr


def test_ignore_blocks_runs_unsupported_blocks(asl: Asl, folder: Path) -> None:
    """What this version cannot enforce is not silently left out."""
    document = {**PASS, "DefaultTools": {"Sandbox": {"Environment": "vm"}}}
    (folder / "boxed.json").write_text(json.dumps(document))
    done = asl("run", "boxed.json")
    assert done.exit_code == 3
    assert "EXEC-02" in done.stderr
    done = asl("run", "boxed.json", "--ignore-blocks")
    assert done.exit_code == 0
    assert "warning EXEC-02" in done.stderr


def test_record_writes_a_test_case(asl: Asl) -> None:
    """`asl test` runs it without the agents."""
    words = ("hello.asl.json", "-i", '{"name":"Ann"}', "--agents", "agents.yaml")
    for file in ("case.asl-test.yaml", "case.json"):
        done = asl("run", *words, "--record", file)
        assert done.exit_code == 0
        assert f"recorded the run in {file}" in done.stderr
        assert asl("test", file).exit_code == 0


DISTRIBUTED = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSONL"},
                "Parameters": {"Bucket": "data", "Key": "in/rows.jsonl"},
            },
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                "StartAt": "Go",
                "States": {"Go": {"Type": "Pass", "End": True}},
            },
            "End": True,
        }
    },
}


def test_bucket_option(asl: Asl, folder: Path) -> None:
    """The last one of a name counts; a URL is an object store."""
    (folder / "each.asl.json").write_text(json.dumps(DISTRIBUTED))
    (folder / "store" / "in").mkdir(parents=True)
    (folder / "store" / "in" / "rows.jsonl").write_text("1\n2\n")
    for where in ("store", f"local://{folder}/store"):
        done = asl("run", "each.asl.json", "--bucket", "data=.", "--bucket", f"data={where}")
        assert (done.exit_code, done.stdout) == (0, "[1,2]\n")


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("data", "'data' does not have the form NAME=FOLDER"),
        ("=store", "'=store' does not have the form NAME=FOLDER"),
        ("data=", "'data=' does not have the form NAME=FOLDER"),
        ("data=nowhere", "the bucket 'data' is mapped to 'nowhere', which is not a folder"),
    ],
)
def test_invalid_bucket_option_exits_with_2(
    bucket: str, message: str, asl: Asl, folder: Path
) -> None:
    """Nothing runs."""
    (folder / "each.asl.json").write_text(json.dumps(DISTRIBUTED))
    done = asl("run", "each.asl.json", "--bucket", bucket)
    assert done.exit_code == 2
    assert message in done.stderr


REMEMBERS = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Pass",
            "Memory": {
                "Read": {"Keys": ["n"], "Default": {"n": []}},
                "Write": {"Key": "n", "Value": [1], "Merge": True},
            },
            "Parameters": {"n.$": "$._memory.n"},
            "End": True,
        }
    },
}


@pytest.mark.parametrize(
    ("backend", "place"),
    [
        ("memory", "m.db"),
        ("file", "m.db"),
        ("file", "./m=m.db"),
        ("redis", "redis=m.db"),
        ("custom", "custom=shelf:Shelf"),
        ("custom", "custom=shelf:ONE"),
    ],
)
def test_memory_option(backend: str, place: str, asl: Asl, folder: Path) -> None:
    """It names a file or a backend, and lasts from run to run."""
    (folder / "r.asl.json").write_text(json.dumps({**REMEMBERS, "Memory": {"Backend": backend}}))
    (folder / "shelf.py").write_text(
        "from asl.memories.sqlite import SqliteMemory\n"
        "def Shelf(): return SqliteMemory('m.db')\n"
        "ONE = Shelf()\n"
    )
    seen = [asl("run", "r.asl.json", "--memory", place).stdout for _ in range(3)]
    assert seen == ['{"n":[]}\n', '{"n":[1]}\n', '{"n":[1,1]}\n']


def test_unknown_memory_backend_exits_with_2(asl: Asl, folder: Path) -> None:
    """A word before `=` is a backend, and its name is one of those that there are."""
    (folder / "r.asl.json").write_text(json.dumps(REMEMBERS))
    run = asl("run", "r.asl.json", "--memory", "redsi=m.db")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "unknown memory backend 'redsi' (did you mean 'redis'?)" in run.stderr
    run = asl("run", "r.asl.json", "--memory", "redis")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "'redis' has no place: use redis=WHERE" in run.stderr
