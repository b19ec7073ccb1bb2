"""Channels: who gets which events, and that no sink does any harm."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.effects import delivery
from tests.deaths import Died

pytestmark = pytest.mark.quick

Json = Any
EVENTS = {
    "Channels": {"log": {"Type": "file", "Format": "json"}, "web": {"Type": "webhook"}},
    "OnStateChange": {"Channel": "log"},
    "OnProgress": {"Channel": "web"},
    "OnComplete": {"Channel": "web"},
}
STATES = {
    "A": {"Type": "Task", "Agent": "A", "Progress": {}, "Next": "B"},
    "B": {"Type": "Succeed", "Events": {"OnEnter": {"Type": "last", "Include": ["$.n"]}}},
}
AGENTS = {"A": {"return": {"n": 1}, "reports": [{"progress": 50}]}}


def document(**fields: Json) -> Json:
    return {"StartAt": "A", "States": STATES, **fields}


class Heard:
    """Sinks that remember what they are given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.channels: list[Json] = []

    def __call__(self, event: Json, channel: Json) -> None:
        self.events.append((channel["name"], event["type"]))
        self.channels.append(channel)


def test_each_channel_gets_what_it_is_for() -> None:
    """Changes of states, progress, the end; an event of the document's own goes to all."""
    heard = Heard()
    result = asl.run(document(Events=EVENTS), agents=AGENTS, sinks={"*": heard}, clock="virtual")
    assert result.ok
    of = {name: [kind for each, kind in heard.events if each == name] for name in ("log", "web")}
    assert of["log"] == [
        "TaskStateEntered", "TaskStateExited", "SucceedStateEntered", "EventEmitted",
        "SucceedStateExited",
    ]  # fmt: skip
    assert of["web"] == ["ProgressUpdated", "ProgressUpdated", "EventEmitted", "ExecutionSucceeded"]
    assert {"name": "log", "Type": "file", "Format": "json"} in heard.channels
    assert result.deliveries["log"] == {"delivered": 5, "failed": 0, "dropped": 0}


def test_sinks_go_by_name_and_by_type() -> None:
    """The name wins."""
    log, web = Heard(), Heard()
    sinks = {"log": log, "webhook": web, "file": web}
    asl.run(document(Events=EVENTS), agents=AGENTS, sinks=sinks, clock="virtual")
    assert {name for name, _ in log.events} == {"log"}
    assert {name for name, _ in web.events} == {"web"}


def test_channel_without_a_sink_is_refused_before_the_run() -> None:
    """The refusal names it, and says what to give; none of the network is there by itself."""
    with pytest.raises(asl.AslError, match=r"channel 'log'.*sinks=\{'file'"):
        asl.run(document(Events=EVENTS), agents=AGENTS)
    with pytest.raises(asl.AslError, match="'websocket'"):
        asl.run(document(RealTime={"Transport": "websocket"}), agents=AGENTS)
    asl.run(document(RealTime={"Transport": "sse", "Enabled": False}), agents=AGENTS)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_a_sink_that_raises_does_no_harm(error: BaseException) -> None:
    """It is counted; the other channels get theirs."""
    heard = Heard()

    def broken(event: Json, channel: Json) -> None:
        raise error

    sinks = {"log": broken, "web": heard}
    result = asl.run(document(Events=EVENTS), agents=AGENTS, sinks=sinks, clock="virtual")
    assert result.ok
    assert result.deliveries["log"]["failed"] == 5
    assert type(error).__name__ in result.deliveries["log"]["error"]
    assert len(heard.events) == 4


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_sink_that_returns_an_awaitable_fails() -> None:
    """Its thread has no event loop."""

    async def send() -> None:
        """Never run."""

    sinks = {"log": lambda event, channel: send(), "web": Heard()}
    result = asl.run(document(Events=EVENTS), agents=AGENTS, sinks=sinks, clock="virtual")
    assert result.ok
    assert result.deliveries["log"]["failed"] == 5
    assert "must be a plain function" in result.deliveries["log"]["error"]


def test_a_sink_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it is bounded, and so is the time that the end waits."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.05)
    monkeypatch.setattr(delivery, "WAITING", 2)
    go = threading.Event()
    sinks = {"log": lambda event, channel: go.wait(20), "web": Heard()}
    result = asl.run(document(Events=EVENTS), agents=AGENTS, sinks=sinks, clock="virtual")
    go.set()
    assert result.ok
    assert result.deliveries["log"]["delivered"] + result.deliveries["log"]["dropped"] <= 5
    assert result.deliveries["log"]["dropped"] >= 2


def test_a_sink_cannot_change_what_happens() -> None:
    """It gets copies."""

    def vandal(event: Json, channel: Json) -> None:
        event["details"].clear()
        channel.clear()

    result = asl.run(document(Events=EVENTS), agents=AGENTS, sinks={"*": vandal}, clock="virtual")
    assert result.output == {"n": 1}
    assert all(event.details for event in result.events)


def test_hostile_names_of_channels_are_names() -> None:
    """Whatever they are made of."""
    name = "../../etc\x1b[31m'\"{{$.x}}\n"
    events = {"Channels": {name: {"Type": "x"}}, "OnComplete": {"Channel": name}}
    heard = Heard()
    result = asl.run(document(Events=events), agents=AGENTS, sinks={"x": heard}, clock="virtual")
    assert result.deliveries[name]["delivered"] == len(heard.events) == 2


def test_live_updates_are_those_that_are_listed() -> None:
    """By the names of the engine and of the document; all of them where none is listed."""
    for names, expected in (
        (["ProgressUpdated", "last"], {"ProgressUpdated", "EventEmitted"}),
        ([], set()),
        (None, None),
    ):
        heard = Heard()
        block = {"Transport": "callback", "Endpoint": "e", "Authentication": {"Token": "t"}}
        block |= {} if names is None else {"Events": names}
        made = document(RealTime=block)
        result = asl.run(made, agents=AGENTS, sinks={"callback": heard}, clock="virtual")
        kinds = {kind for _, kind in heard.events}
        assert kinds == (expected if expected is not None else {e.type for e in result.events})
        if heard.channels:
            assert heard.channels[0]["Authentication"] == {"Token": "t"}
            assert heard.channels[0]["Endpoint"] == "e"


def test_a_workflow_that_is_started_has_channels_of_its_own() -> None:
    """They are served by the same sinks, and missed before the run begins."""
    starting = {
        "StartAt": "W",
        "States": {"W": {"Type": "Workflow", "WorkflowId": "w", "End": True}},
    }
    inner = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}, "Events": EVENTS}
    heard = Heard()
    result = asl.run(starting, workflows={"w": inner}, sinks={"*": heard}, clock="virtual")
    assert result.ok, result.cause
    assert ("web", "ExecutionSucceeded") in heard.events
    with pytest.raises(asl.AslError, match="'log'"):
        asl.run(starting, workflows={"w": inner})


def test_events_are_sent_once(tmp_path: Path) -> None:
    """An execution that is recovered sends what is new."""

    def die(parameters: Json) -> Json:
        raise Died

    states = {**STATES, "B": {"Type": "Task", "Agent": "B", "End": True}}
    made = {**document(Events=EVENTS), "States": states}
    heard = Heard()
    path = tmp_path / "runs.db"
    for agents in ({**AGENTS, "B": die}, {**AGENTS, "B": {"return": 1}}):
        with asl.open_store(path, agents=agents, sinks={"*": heard}) as store:
            try:
                store.run(made, {}, name="x")
            except Died:
                continue
    assert heard.events.count(("log", "TaskStateExited")) == 2
    assert heard.events.count(("web", "ExecutionSucceeded")) == 1


def test_stdout_is_there_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """As lines of JSON or of text."""
    for form in ("json", "text"):
        events = {"Channels": {"out": {"Type": "stdout", "Format": form}},
                  "OnComplete": {"Channel": "out"}}  # fmt: skip
        asl.run(document(Events=events), agents=AGENTS, clock="virtual")
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["details"]["type"] == "last"
    assert lines[2].split(" ", 1)[1].startswith("last B ")


def test_sinks_may_be_named(tmp_path: Path) -> None:
    """A file of lines of JSON, or a function of a module."""
    sinks = {"log": f"jsonl:{tmp_path / 'log'}", "web": "json:dumps"}
    asl.run(document(Events=EVENTS), agents=AGENTS, sinks=sinks, clock="virtual")
    lines = (tmp_path / "log").read_text().splitlines()
    assert json.loads(lines[0])["type"] == "TaskStateEntered"
    for wrong in ("nowhere", "json:nothing", 5):
        with pytest.raises(asl.AslError):
            asl.run(document(Events=EVENTS), agents=AGENTS, sinks={"*": wrong})


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"Events": {"Channels": {"o": {"Type": "stdout", "Format": "xml"}}}},
         "/Events/Channels/o/Format"),
        ({"Events": {"Channels": {"o": {"Type": "stdout", "Url": "x"}}}}, "/Events/Channels/o/Url"),
        ({"Events": {"OnComplete.$": "$.x"}}, "/Events/OnComplete.$"),
        ({"RealTime": {"Transport": "sse", "Events.$": "$.x"}}, "/RealTime/Events.$"),
    ],
)  # fmt: skip
def test_what_a_field_cannot_do_is_refused(fields: Json, pointer: str) -> None:
    """At its place, before anything runs."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.compile(document(**fields))
    assert {(each.code, each.pointer) for each in refusal.value.report.errors} == {
        ("EXEC-02", pointer)
    }


def test_a_computed_channel_needs_somebody_who_serves_it() -> None:
    """Else nothing runs; what is served gets its events."""
    channel = {"Type.$": "$.kind", "Url.$": "$.at"}
    events = {"Channels": {"out": channel}, "OnComplete": {"Channel.$": "$.to"}}
    given: list[tuple[Json, Json]] = []
    sinks = {"pigeon": lambda event, settings: given.append((event["type"], settings))}

    def run(kind: str) -> asl.Result:
        data = {"kind": kind, "at": "loft", "to": "out"}
        return asl.run(document(Events=events), data, agents=AGENTS, sinks=sinks, clock="virtual")

    assert run("pigeon").ok
    assert given[-1] == (
        "ExecutionSucceeded",
        {"name": "out", "Type": "pigeon", "Url": "loft"},
    )
    refused = run("raven")
    assert (refused.status, refused.error, refused.visited) == ("FAILED", "States.Runtime", [])
    assert "no sink is bound for the channel 'out'" in str(refused.cause)


def test_the_events_of_a_distributed_map_are_delivered() -> None:
    """What the children of the Map emit goes to the channels of the document."""
    inner = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "P",
        "States": {"P": {"Type": "Pass", "Events": {"OnEnter": {"Type": "in"}}, "End": True}},
    }
    made = {
        "Events": {"Channels": {"c": {"Type": "webhook"}}},
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}},
    }
    sent: list[Json] = []
    sinks = {"webhook": lambda event, channel: sent.append(event["path"])}
    asl.run(made, [1, 2], sinks=sinks)
    assert sent == [["M", 0, "P"], ["M", 1, "P"]]


def test_a_run_on_the_command_line_sends_events(tmp_path: Path) -> None:
    """To what the command line names; what is lost is said at the end."""
    from click.testing import CliRunner

    from asl.cli.main import cli

    (tmp_path / "d.json").write_text(json.dumps(document(Events=EVENTS)))
    (tmp_path / "agents.json").write_text(json.dumps(AGENTS))
    words = ["run", str(tmp_path / "d.json"), "--agents", str(tmp_path / "agents.json")]
    sinks = ["--sink", f"log=jsonl:{tmp_path / 'log'}", "--sink", "webhook=json:nothing"]
    refused = CliRunner().invoke(cli, [*words, *sinks])
    assert "there is no sink 'json:nothing'" in refused.stderr
    sinks[-1] = f"webhook=jsonl:{tmp_path / 'none' / 'x'}"
    done = CliRunner().invoke(cli, [*words, *sinks])
    assert done.exit_code == 0
    assert "the channel 'web' has lost 4 events: FileNotFoundError" in done.stderr
    assert len((tmp_path / "log").read_text().splitlines()) == 5
