"""Executions as traces and metrics, held by OpenTelemetry's own exporters in memory."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import asl
from asl.telemetry import Telemetry, exporters

from ..agents.servers import serving

pytestmark = pytest.mark.quick

Json = Any


class Told:
    """A telemetry of its own, and what it was told."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        self.telemetry = Telemetry(
            tracer_provider=self.tracers, meter_provider=self.meters, **options
        )

    def run(self, document: Json, data: Json | None = None, **bindings: Any) -> asl.Result:
        bindings = {"clock": "virtual", "name": "e", "listener": self.telemetry, **bindings}
        return asl.run(document, {} if data is None else data, **bindings)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def tree(self) -> list[str]:
        """Return the way to each span, in the order in which they began."""
        spans = self.exporter.get_finished_spans()
        by_id = {span.context.span_id: span for span in spans}

        def way(span: ReadableSpan) -> str:
            outer = None if span.parent is None else by_id[span.parent.span_id]
            return span.name if outer is None else f"{way(outer)} > {span.name}"

        return [way(each) for each in sorted(spans, key=lambda span: span.context.span_id)]

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        """Return attributes and value (or count and sum) of every point of a metric."""
        data = json.loads(self.reader.get_metrics_data().to_json())
        found = [
            point
            for resource in data["resource_metrics"]
            for scope in resource["scope_metrics"]
            for each in scope["metrics"]
            if each["name"] == metric
            for point in each["data"]["data_points"]
        ]
        return [
            (each["attributes"], each.get("value", (each.get("count"), each.get("sum"))))
            for each in found
        ]


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    yield told
    told.tracers.shutdown()
    told.meters.shutdown()


def task(**fields: Json) -> Json:
    whole = {"Type": "Task", "Agent": "Writer", "End": True, **fields}
    return {"StartAt": "Write", "States": {"Write": whole}}


USED = {"text": "hi", "model": "m1", "_usage": {"input": 9, "output": 3}, "_cost": 0.5}


def test_span_of_call_is_child_of_state_span(told: Told) -> None:
    """With the times of the clock, and what was used."""
    told.run(task(), agents={"Writer": {"return": USED, "delay": 2}})
    spans = told.spans
    assert set(told.tree()) == {
        "execution workflow",
        "execution workflow > state Write",
        "execution workflow > state Write > invoke_agent Writer",
    }
    call, whole = spans["invoke_agent Writer"], spans["execution workflow"]
    assert call.end_time - call.start_time == 2_000_000_000
    assert call.kind.name == "CLIENT"
    assert dict(call.attributes) == {
        "asl.agent": "Writer",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Writer",
        "gen_ai.response.model": "m1",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 3,
        "asl.usage.tokens": 12,
        "asl.usage.cost": 0.5,
    }
    assert whole.attributes["asl.execution.id"].endswith(":e")
    assert whole.attributes["asl.status"] == "SUCCEEDED"
    assert whole.attributes["asl.usage.tokens"] == 12
    assert whole.status.is_ok or whole.status.is_unset
    assert spans["state Write"].attributes["asl.state.type"] == "Task"


def test_every_attempt_is_a_span(told: Told) -> None:
    """What failed says so; the retry is an event of the state."""
    script = {"sequence": [{"raise": {"Error": "Busy", "Cause": "private"}}, {"return": 1}]}
    told.run(task(Retry=[{"ErrorEquals": ["Busy"]}]), agents={"Writer": script})
    calls = [each for each in told.exporter.get_finished_spans() if "invoke" in each.name]
    assert [each.status.status_code.name for each in calls] == ["ERROR", "UNSET"]
    assert calls[0].attributes["error.type"] == calls[0].status.description == "Busy"
    state = told.spans["state Write"]
    assert [(each.name, dict(each.attributes)) for each in state.events] == [
        ("RetryScheduled", {"asl.retry": 1, "asl.delay": 1.0, "asl.error": "Busy"})
    ]
    assert told.points("asl.retries") == [({"asl.state": "Write"}, 1)]
    assert "private" not in repr([span.to_json() for span in told.exporter.get_finished_spans()])


def test_a_failure_ends_everything_with_its_error(told: Told) -> None:
    """No span is left open."""
    told.run(task(), agents={"Writer": {"raise": {"Error": "Bad"}}})
    for span in told.spans.values():
        assert (span.attributes["error.type"], span.end_time is not None) == ("Bad", True)
    assert len(told.spans) == 3
    (point,) = told.points("asl.executions")
    assert point == ({"asl.workflow": "workflow", "asl.status": "FAILED"}, 1)


def test_spans_of_iterations_are_children_of_state_span(told: Told) -> None:
    """Those that end late, or are cut off, as well."""
    inner = {"StartAt": "T", "States": {"T": {"Type": "Task", "Agent": "A", "End": True}}}
    slow = {"StartAt": "S", "States": {"S": {"Type": "Wait", "Seconds": 9, "End": True}}}
    bad = {"StartAt": "B", "States": {"B": {"Type": "Task", "Agent": "Bad", "End": True}}}
    states = {
        "M": {"Type": "Map", "ItemsPath": "$.n", "ItemProcessor": inner, "Next": "P"},
        "P": {
            "Type": "Parallel",
            "Branches": [slow, bad],
            "Catch": [{"ErrorEquals": ["E"], "Next": "Z"}],
            "End": True,
        },
        "Z": {"Type": "Succeed"},
    }
    agents = {"A": {"return": 1, "delay": 1}, "Bad": {"raise": {"Error": "E"}, "delay": 1}}
    assert told.run({"StartAt": "M", "States": states}, {"n": [1, 2]}, agents=agents).ok
    tree = sorted(told.tree())
    assert tree.count("execution workflow > state M > state T > invoke_agent A") == 2
    assert "execution workflow > state P > state B > invoke_agent Bad" in tree
    spans = told.exporter.get_finished_spans()
    assert {span.attributes["asl.path"] for span in spans if span.name == "state T"} == {
        "M/0/T",
        "M/1/T",
    }
    by_name = told.spans
    assert by_name["state S"].attributes["error.type"] == "E"
    assert by_name["state S"].end_time == by_name["state P"].end_time
    assert by_name["execution workflow"].attributes["asl.status"] == "SUCCEEDED"


def test_metrics(told: Told) -> None:
    """Counts, durations and usage, by agent and model."""
    for _ in range(2):
        told.run(task(), agents={"Writer": {"return": USED, "delay": 2}})
    succeeded = {"asl.workflow": "workflow", "asl.status": "SUCCEEDED"}
    used = {"asl.agent": "Writer", "asl.model": "m1"}
    assert told.points("asl.executions") == [(succeeded, 2)]
    assert told.points("asl.execution.duration") == [(succeeded, (2, 4.0))]
    assert told.points("asl.agent.duration") == [({"asl.agent": "Writer"}, (2, 4.0))]
    assert told.points("asl.tokens") == [(used, 24)]
    assert told.points("asl.cost") == [(used, 1.0)]


def test_prices_make_the_cost(told: Told) -> None:
    """An agent that reports tokens and a model need not know what they cost."""
    script = {"return": {"_tokens": 4, "model": "m"}}
    told.run(task(), agents={"Writer": script}, prices={"m": "0.25"})
    assert told.spans["invoke_agent Writer"].attributes["asl.usage.cost"] == 1.0


def test_span_of_tool_is_child_of_call_span(told: Told) -> None:
    """With its time and what it has used; one that is refused is an event of the state."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        for name in ("search", "broken", "forbidden"):
            with suppress(asl.StateError):
                await call.tools.call(name, {"q": "private"})
        return 1

    tools = {
        "search": {"return": {"_tokens": 7}, "delay": 0.5},
        "broken": {"raise": {"Error": "E"}},
        "forbidden": {"return": 1},
    }
    block = {"Denied": ["forbidden"]}
    told.run(task(Tools=block), agents={"Writer": agent}, tools=tools)
    tree = told.tree()
    outer = "execution workflow > state Write > invoke_agent Writer"
    assert f"{outer} > execute_tool search" in tree
    assert f"{outer} > execute_tool broken" in tree
    search, broken = (told.spans[f"execute_tool {name}"] for name in ("search", "broken"))
    assert search.end_time - search.start_time == 500_000_000
    assert dict(search.attributes) == {
        "asl.tool": "search",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "asl.usage.tokens": 7,
        "asl.usage.cost": 0.0,
    }
    assert broken.attributes["error.type"] == "Agent.ToolError"
    (refused,) = told.spans["state Write"].events
    assert (refused.name, refused.attributes["asl.tool"]) == ("ToolRefused", "forbidden")
    durations = told.points("asl.tool.duration")
    assert [(point[0]["asl.tool"], point[1][0]) for point in durations] == [
        ("search", 1), ("broken", 1)
    ]  # fmt: skip
    assert "private" not in "".join(each.to_json() for each in told.spans.values())


def test_content_option_adds_data_to_spans() -> None:
    """Input, parameters, output and cause, cut to a bearable length."""
    for content in (False, True):
        told = Told(content=content)
        told.run(task(), "x" * 10_000, agents={"Writer": {"raise": {"Error": "E"}}})
        told.run(task(), "data", agents={"Writer": {"return": "answer"}})
        shown = "".join(span.to_json() for span in told.exporter.get_finished_spans())
        assert ("xxx" in shown, "answer" in shown, "data" in shown) == (content,) * 3
        assert "x" * 8193 not in shown


def test_execution_span_is_child_of_current_span(told: Told) -> None:
    """A service that starts it sees it in its own trace."""
    tracer = told.tracers.get_tracer("service")
    with tracer.start_as_current_span("request"):
        told.run(task(), agents={"Writer": {"return": 1}})
    assert "request > execution workflow > state Write" in told.tree()


def test_executions_at_the_same_time_have_traces_of_their_own(told: Told) -> None:
    """One telemetry serves all of them."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        await asyncio.sleep(0)
        return parameters

    async def several() -> None:
        program = asl.compile(task())
        await asyncio.gather(
            *(
                asl.arun(
                    program, n, name=f"e{n}", agents={"Writer": agent}, listener=told.telemetry
                )
                for n in range(5)
            )
        )

    asyncio.run(several())
    spans = told.exporter.get_finished_spans()
    assert len({span.context.trace_id for span in spans}) == 5
    outer = "execution workflow > state Write > invoke_agent Writer"
    assert told.tree().count(outer) == 5


CHILD = {"StartAt": "B", "States": {"B": {"Type": "Task", "Agent": "A", "End": True}}}
STARTS = "arn:aws:states:::states:startExecution"
STARTING: dict[str, Json] = {
    "Workflow": {"Type": "Workflow", "WorkflowId": "child", "End": True},
    **{
        f"startExecution{form}": {
            "Type": "Task",
            "Resource": STARTS + form,
            "Parameters": {"StateMachineArn": "child", "Name": "kid", "Input": {}},
            "End": True,
        }
        for form in ("", ".sync:2")
    },
}


@pytest.mark.parametrize("how", STARTING)
@pytest.mark.parametrize("kept", [False, True])
def test_span_of_started_execution_is_child_of_state_span(
    told: Told, how: str, kept: bool, tmp_path: Path
) -> None:
    """An execution of its own within the span of the state, with its states and calls."""
    document = {"StartAt": "S", "States": {"S": STARTING[how]}}
    bindings: Any = {"workflows": {"child": CHILD}, "agents": {"A": {"return": {"_tokens": 3}}}}
    if kept:
        with asl.open_store(tmp_path / "s.db", **bindings) as store:
            assert store.run(document, {}, listener=told.telemetry).ok
    else:
        assert told.run(document, **bindings).ok
    tree = told.tree()
    assert sorted(each for each in tree if "child" in each) == [
        "execution workflow > state S > execution child",
        "execution workflow > state S > execution child > state B",
        "execution workflow > state S > execution child > state B > invoke_agent A",
    ]
    assert told.points("asl.tokens") == [({"asl.agent": "A"}, 3)]
    assert {each.context.trace_id for each in told.exporter.get_finished_spans()} == {
        told.spans["execution workflow"].context.trace_id
    }


def test_span_of_started_execution_is_child_of_iteration(told: Told) -> None:
    """And what those start, in theirs."""
    each = {"StartAt": "W", "States": {"W": {"Type": "Workflow", "WorkflowId": "m", "End": True}}}
    document = {
        "StartAt": "Each",
        "States": {"Each": {"Type": "Map", "ItemProcessor": each, "End": True}},
    }
    middle = {"StartAt": "V", "States": {"V": STARTING["Workflow"]}}
    workflows = {"m": middle, "child": CHILD}
    assert told.run(document, [1, 2], workflows=workflows, agents={"A": {"return": 1}}).ok
    way = "execution workflow > state Each > state W > execution m > state V > execution child"
    assert told.tree().count(f"{way} > state B > invoke_agent A") == 2


def distributed(processor: Json, **more: Json) -> Json:
    mode = {**processor, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    state = {"Type": "Map", "Label": "items", "ItemProcessor": mode, **more, "End": True}
    return {"StartAt": "Each", "States": {"Each": state}}


OUTER = "execution workflow > state Each > execution workflow/items"


@pytest.mark.parametrize("kept", [False, True])
def test_children_of_a_distributed_map_are_executions_in_it(
    told: Told, kept: bool, tmp_path: Path
) -> None:
    """Each with its states and calls, and with what it has used."""
    document, agents = distributed(CHILD), {"A": {"return": {"_tokens": 3}}}
    if kept:
        with asl.open_store(tmp_path / "s.db", agents=agents) as store:
            assert store.run(document, [1, 2], listener=told.telemetry).ok
    else:
        assert told.run(document, [1, 2], agents=agents).ok
    assert sorted(told.tree()) == [
        "execution workflow",
        "execution workflow > state Each",
        *[OUTER] * 2,
        *[f"{OUTER} > state B"] * 2,
        *[f"{OUTER} > state B > invoke_agent A"] * 2,
    ]
    spans = told.exporter.get_finished_spans()
    children = [each for each in spans if each.name == "execution workflow/items"]
    ids = {str((each.attributes or {})["asl.execution.id"]) for each in children}
    assert len(ids) == 2
    assert {(each.attributes or {})["asl.usage.tokens"] for each in children} == {3}
    assert (told.spans["execution workflow"].attributes or {})["asl.usage.tokens"] == 6
    paths = {(each.attributes or {}).get("asl.path") for each in spans}
    assert {"Each/0/B", "Each/1/B"} <= paths


def test_children_without_a_call_have_spans_too(told: Told) -> None:
    """Where they would share a frame if nobody looked."""
    each = {
        "StartAt": "B",
        "States": {"B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Pass", "End": True}},
    }
    result = told.run(distributed(each), [1, 2, 3])
    assert result.output == [1, 2, 3]
    assert told.tree().count(f"{OUTER} > state B") == told.tree().count(f"{OUTER} > state C") == 3


def test_failed_children_have_error_status(told: Told) -> None:
    """Tolerated or not; those that are given up are aborted."""
    table = [{"when": 1, "then": {"raise": {"Error": "E"}, "delay": 1}}, {"then": {"hang": True}}]
    result = told.run(distributed(CHILD), [1, 2], agents={"A": {"table": table}})
    assert result.status == "FAILED"
    spans = told.exporter.get_finished_spans()
    children = [each for each in spans if each.name == "execution workflow/items"]
    assert sorted(str((each.attributes or {})["asl.status"]) for each in children) == [
        "ABORTED",
        "FAILED",
    ]
    assert {(each.attributes or {})["error.type"] for each in children} == {"ABORTED", "E"}
    assert {each.end_time for each in children} == {children[0].end_time}


def test_children_that_wait_for_people_pause(told: Told, tmp_path: Path) -> None:
    """And go on in another trace, as the execution around them does."""
    each = {
        "StartAt": "Ask",
        "States": {"Ask": {"Type": "Approval", "Prompt": "?", "Options": ["yes"], "End": True}},
    }
    with asl.open_store(tmp_path / "s.db") as store:
        result = store.run(distributed(each), [1], name="e", listener=told.telemetry)
        assert result.status == "PAUSED"
        (span,) = [
            each
            for each in told.exporter.get_finished_spans()
            if each.name == "execution workflow/items"
        ]
        assert (span.attributes or {})["asl.status"] == "PAUSED"
        told.exporter.clear()
        store.answer(result.pending[0]["requestId"], "yes", by="ann")
        assert store.resume("e", listener=told.telemetry).ok
    assert "execution workflow > execution workflow/items > state Ask" in told.tree()


def test_span_of_execution_started_by_child_execution(told: Told) -> None:
    """A Map in a Map, and a Workflow in that."""
    inner = distributed({"StartAt": "S", "States": {"S": STARTING["Workflow"]}}, ItemsPath="$")
    inner["States"] = {"Inner": {**inner["States"].pop("Each"), "Label": "inner"}}
    inner["StartAt"] = "Inner"
    agents = {"A": {"return": 1}}
    assert told.run(distributed(inner), [[1]], workflows={"child": CHILD}, agents=agents).ok
    way = "state Inner > execution workflow/items/inner > state S > execution child > state B"
    assert f"{OUTER} > {way} > invoke_agent A" in told.tree()


def test_plain_listener_receives_own_execution_only() -> None:
    """The histories of others are theirs."""
    heard: list[str] = []
    document = {"StartAt": "S", "States": {"S": STARTING["Workflow"]}}
    asl.run(
        document,
        listener=lambda event: heard.append(event.type),
        workflows={"child": CHILD},
        agents={"A": {"return": 1}},
    )
    assert heard.count("ExecutionStarted") == 1


def test_a_pause_ends_the_trace(told: Told, tmp_path: Path) -> None:
    """What happens after the decision is a trace of its own."""
    states = {
        "Ask": {"Type": "Approval", "Prompt": "go?", "Next": "Write"},
        "Write": {"Type": "Task", "Agent": "Writer", "End": True},
    }
    document = {"StartAt": "Ask", "States": states}
    bindings: Json = {"agents": {"Writer": {"return": 1}}, "listener": told.telemetry}
    with asl.open_store(tmp_path / "s.db", **bindings) as store:
        store.run(document, {}, name="e")
        assert told.spans["execution workflow"].attributes["asl.status"] == "PAUSED"
        (request,) = store.pending()
        store.answer(request["requestId"], "approve")
        told.exporter.clear()
        assert store.resume("e").ok
    assert told.spans["execution workflow"].attributes["asl.status"] == "SUCCEEDED"
    assert "state Write" in told.spans


def test_redacted_data_is_in_no_span() -> None:
    """The history hides it from every reader, a trace included."""
    told = Told(content=True)
    block = {"LogLevel": "full", "Redact": ["$.card"]}
    told.run(task(Audit=block), {"card": "4111"}, agents={"Writer": {"echo": True}})
    shown = "".join(span.to_json() for span in told.exporter.get_finished_spans())
    assert "[REDACTED]" in shown
    state, call = told.spans["state Write"], told.spans["invoke_agent Writer"]
    assert "4111" not in state.to_json() + call.to_json()


def test_no_secret_reaches_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even with all content, from an agent that tells its secret in every way."""
    from asl.agents.file import load_bindings

    monkeypatch.setenv("THE_KEY", "geheim-17")
    code = "import json, os; r = json.loads(input()); print(json.dumps({%s}))"
    agents = {
        name: {
            "command": [sys.executable, "-c", code % answer],
            "environment": {"KEY": "${env:THE_KEY}"},
        }
        for name, answer in {
            "Tells": "'return': os.environ['KEY']",
            "Raises": "'error': os.environ['KEY'], 'cause': os.environ['KEY']",
        }.items()
    }
    (tmp_path / "agents.json").write_text(json.dumps({"agents": agents}))
    given = load_bindings(tmp_path / "agents.json").agents
    for name in agents:
        told = Told(content=True)
        told.run(task(Agent=name), agents=given)
        shown = "".join(span.to_json() for span in told.exporter.get_finished_spans())
        assert "***" in shown
        assert "geheim" not in shown + told.reader.get_metrics_data().to_json()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the line that installs it."""
    monkeypatch.setattr("asl.core.environment.find_spec", lambda name: None)
    with pytest.raises(asl.AslError, match=r"(agent-state-language|\.)\[telemetry\]"):
        Telemetry()


def test_a_collector_gets_it_from_the_command_line(tmp_path: Path) -> None:
    """Spans and metrics are sent before the command ends, to where the variables say."""
    import os
    import subprocess

    (tmp_path / "d.asl.json").write_text(json.dumps(task()))
    (tmp_path / "agents.yaml").write_text("Writer: {return: 1}\n")
    command = [sys.executable, "-m", "asl", "run", "d.asl.json", "--agents", "agents.yaml"]
    with serving(lambda exchange: exchange.answer(200)) as server:
        done = subprocess.run(
            [*command, "--telemetry", "otlp"],
            cwd=tmp_path,
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": server.url.rstrip("/")},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert done.stdout == "1\n"
    assert {each.path for each in server.requests} == {"/v1/traces", "/v1/metrics"}
    assert any(b"invoke_agent Writer" in each.body for each in server.requests)


def test_the_console_shows_it_on_standard_error(tmp_path: Path) -> None:
    """The output stays the only thing on standard output."""
    import subprocess

    (tmp_path / "d.asl.json").write_text(json.dumps(task()))
    (tmp_path / "agents.yaml").write_text("Writer: {return: 1}\n")
    command = [sys.executable, "-m", "asl", "run", "d.asl.json", "--agents", "agents.yaml"]
    done = subprocess.run(
        [*command, "--telemetry", "console"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "1\n"
    assert '"name": "state Write"' in done.stderr
    assert "asl.executions" in done.stderr


class Refusing(SpanProcessor):
    """Raises an exception for the start or the end of every span."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.error = error
        self.where = where

    def on_start(self, *arguments: Any, **options: Any) -> None:
        if self.where == "start":
            raise self.error

    def on_end(self, *arguments: Any, **options: Any) -> None:
        if self.where == "end":
            raise self.error


@pytest.mark.parametrize("where", ["start", "end"])
@pytest.mark.parametrize(
    "error", [ValueError("x"), asyncio.CancelledError(), SystemExit(3), StopIteration()]
)
def test_processors_that_raise_fail_no_execution(
    error: BaseException, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first failure is logged."""
    provider = TracerProvider()
    provider.add_span_processor(Refusing(error, where))
    document = {
        "StartAt": "A",
        "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "End": True}},
    }
    telemetry = Telemetry(tracer_provider=provider)
    assert asl.run(document, listener=telemetry).ok
    (record,) = caplog.records
    assert record.getMessage().startswith(f"telemetry is incomplete: {type(error).__name__}")
    assert telemetry.failed > 1


class Hanging(SpanExporter):
    """An exporter that never returns."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        self.release.wait(60)
        return SpanExportResult.SUCCESS


def test_hanging_exporter_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging = Hanging()
    made = {"console": lambda: (hanging, ConsoleMetricExporter(out=StringIO()))}
    monkeypatch.setattr(exporters, "EXPORTERS", made)
    monkeypatch.setattr(exporters, "PATIENCE", 0.05)
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    with exporters.export_telemetry("console") as telemetry:
        assert asl.run(document, listener=telemetry).ok
    hanging.release.set()
    (record,) = caplog.records
    assert "not everything was sent within 0.05 s" in record.getMessage()
