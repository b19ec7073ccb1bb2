"""Notifications of requests by each channel, and their failures."""

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.notifiers import CHANNELS, bind_channels, channels

pytestmark = pytest.mark.quick

ASK = {"Type": "Approval", "Prompt": "Publish {{ $.t }}?", "ResultPath": "$", "End": True}
ONE = {"StartAt": "Ask", "States": {"Ask": ASK}}


def asking(**fields: Any) -> dict[str, Any]:
    return {"StartAt": "Ask", "States": {"Ask": {**ASK, **fields}}}


def types(result: Any) -> list[str]:
    """The types of the events, but for those of pausing and going on."""
    aside = ("ExecutionPaused", "ExecutionResumed")
    return [event.type for event in result.events if event.type not in aside]


def failed(result: Any) -> list[dict[str, Any]]:
    """What the history tells of notifications that could not be sent."""
    return [event.details for event in result.events if event.type == "NotificationFailed"]


def broken(kind: str, request: Any, details: Any) -> None:
    raise OSError("no line")


class Ear:
    """Hears what is said."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, kind: str, request: dict[str, Any], details: dict[str, Any]) -> None:
        self.heard.append((kind, details))


def test_each_channel_is_a_function_and_a_row() -> None:
    """The table and the module agree; every form begins with its name."""
    assert channels.__all__ == sorted(CHANNELS)
    assert all(form.partition(":")[0] == name for name, form in CHANNELS.items())


@pytest.mark.parametrize(
    ("notify", "says"),
    [
        ("consol", "did you mean 'console'"),
        ("pigeon:x", "console, jsonl:FILE, apprise:URL"),
        ("jsonl", "jsonl:FILE"),
        ("console:x", "its form is .console."),
        ("apprise:nonsense", "does not support the address"),
        (7, "got 7"),
    ],
)
def test_unknown_channel_is_refused(notify: Any, says: str) -> None:
    """It is said before anything runs."""
    with pytest.raises(asl.AslError, match=says):
        asl.run(ONE, {"t": "x"}, notify=notify)


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line can be copied."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(asl.AslError, match=r"pip install '(agent-state-language|\.)\[apprise\]'"):
        bind_channels("apprise:mailto://x")


def test_console_channel_prints_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    """Who decides can name the request."""
    result = asl.run(ONE, {"t": "News"}, notify="console", name="n")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "asl: A decision is needed\n  Publish News?\n  approve | reject\n"
        "  workflow workflow, execution n, request /Ask@0.0\n"
    )
    assert result.pending[0]["requestId"].endswith(":workflow:n:/Ask@0.0")


LINK = "https://h/requests/{request}"


@pytest.mark.parametrize("express", [False, True])
def test_text_names_execution_and_link_without_account(express: bool, capsys: Any) -> None:
    asl.run(ONE, {"t": "News"}, notify="console", name="a:b", express=express, request_link=LINK)
    body, link = capsys.readouterr().err.rstrip().rsplit("\n", 1)
    assert body.endswith("  workflow workflow, execution a:b, request /Ask@0.0")
    assert "1111" not in body
    assert link.startswith("  https://h/requests/arn%3Aaws%3Astates%3A")
    assert link.endswith("%2FAsk%400.0")


@pytest.mark.parametrize("link", ["https://h", "h/{request}", "https://h/{id}", "https://{", 7])
def test_request_link_that_is_refused(link: Any) -> None:
    with pytest.raises(asl.AslError, match=r"'request_link' must be a URL with '\{request\}'"):
        asl.run(ONE, {"t": "x"}, request_link=link)


def test_text_of_a_request_in_a_child_execution(capsys: Any) -> None:
    parent = {"StartAt": "W", "States": {"W": {"Type": "Workflow", "WorkflowId": "c", "End": True}}}
    asl.run(parent, {"t": "x"}, workflows={"c": ONE}, notify="console", name="n")
    assert "workflow c, execution n." in capsys.readouterr().err


def test_lines_of_json(tmp_path: Path) -> None:
    """A line for each notification, appended."""
    file = tmp_path / "told.jsonl"
    for _ in range(2):
        result = asl.run(ONE, {"t": "News"}, notify=f"jsonl:{file}", clock="virtual", name="n")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 2
    assert lines[1] == {
        "kind": "request",
        "request": result.pending[0],
        "details": {
            "time": "2024-01-01T00:00:00.000Z",
            "workflow": "workflow",
            "execution": "n",
        },
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's own
def test_apprise_receives_notification(tmp_path: Path) -> None:
    """By any service that it knows; here one that a test adds."""
    apprise = pytest.importorskip("apprise")
    told: list[tuple[str, str]] = []

    @apprise.decorators.notify(on="aslheard")
    def hear(body: str, title: str, notify_type: Any, *args: Any, **more: Any) -> None:
        told.append((title, body))

    @apprise.decorators.notify(on="asldeaf")
    def deaf(body: str, title: str, notify_type: Any, *args: Any, **more: Any) -> bool:
        return False

    result = asl.run(ONE, {"t": "News"}, notify=["apprise:aslheard://", "apprise:asldeaf://"])
    ((title, body),) = told
    assert title == "A decision is needed"
    assert body.startswith("Publish News?")
    assert result.status == "PAUSED"
    assert "could not deliver" in failed(result)[0]["cause"]


def test_exception_of_notifier_is_recorded() -> None:
    """It stands in the history, and the execution waits as it would."""
    result = asl.run(ONE, {"t": "x"}, notify=broken)
    assert result.status == "PAUSED"
    assert types(result)[-2:] == ["ApprovalRequested", "NotificationFailed"]
    assert failed(result) == [
        {
            "requestId": result.pending[0]["requestId"],
            "kind": "request",
            "cause": "OSError: no line",
        }
    ]


@pytest.mark.parametrize("error", [SystemExit(3), RuntimeError(), asl.StateError("E", "c")])
def test_base_exception_of_notifier_is_recorded(error: BaseException) -> None:
    """Exits and workflow errors included."""

    def notify(kind: str, request: Any, details: Any) -> None:
        raise error

    assert asl.run(ONE, {"t": "x"}, notify=notify).status == "PAUSED"


def test_an_async_notifier_is_awaited() -> None:
    """It may take its time, but not forever."""
    heard = []

    async def notify(kind: str, request: Any, details: Any) -> None:
        heard.append(kind)

    assert asl.run(ONE, {"t": "x"}, notify=notify).status == "PAUSED"
    assert heard == ["request"]


def test_notifier_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The execution goes on without it."""
    monkeypatch.setattr("asl.effects.approval_process.PATIENCE", 0.01)

    async def notify(kind: str, request: Any, details: Any) -> None:
        import asyncio

        await asyncio.get_running_loop().create_future()

    result = asl.run(ONE, {"t": "x"}, notify=notify)
    assert [each["cause"] for each in failed(result)] == ["TimeoutError: not sent within 0.01 s"]


def test_notify_list_calls_all_channels(tmp_path: Path) -> None:
    """One that fails does not keep the others from it."""
    first, last = Ear(), Ear()
    result = asl.run(ONE, {"t": "x"}, notify=[first, broken, last])
    assert len(first.heard) == len(last.heard) == 1
    assert types(result).count("NotificationFailed") == 1


def test_escalations_and_reminders_are_notified() -> None:
    """In the order of their times, with whom and what they are for."""
    ear = Ear()

    async def late(request: Any, call: asl.Call) -> str:
        await call.sleep(5 * 3600)
        return "approve"

    sms = {"Type": "sms", "OnlyAfter": "1h"}
    document = asking(
        Timeout="2h",
        OnTimeout="Escalate",
        Escalation={
            "EscalateTo": "boss",
            "After": "30m",
            "Notify": ["lead"],
            "Message": "{{$.t}}!",
        },
        Notifications={"Channels": [{"Type": "mail"}, sms]},
        Catch=[{"ErrorEquals": ["States.Timeout"], "Next": "No"}],
    )
    document["States"]["No"] = {"Type": "Succeed"}
    asl.run(document, {"t": "x"}, approvals=late, notify=ear, clock="virtual", name="n")
    for _, details in ear.heard:
        assert (details.pop("workflow"), details.pop("execution")) == ("workflow", "n")
    assert ear.heard == [
        ("request", {"time": "2024-01-01T00:00:00.000Z", "channels": [{"Type": "mail"}]}),
        ("escalation",
         {"time": "2024-01-01T00:30:00.000Z", "notify": ["lead"], "message": "x!"}),
        ("reminder", {"time": "2024-01-01T01:00:00.000Z", "channel": sms}),
        ("escalation",
         {"time": "2024-01-01T02:00:00.000Z", "reason": "timeout", "notify": "boss"}),
    ]  # fmt: skip


def test_automatic_approval_level_is_notified(tmp_path: Path) -> None:
    """Once, also where the process dies before the next state."""
    ear, clock = Ear(), asl.VirtualClock()
    levels = [{"After": "1h", "Notify": "a"}, {"After": "2h", "Notify": "b", "AutoApprove": True}]
    document = asking(Escalation={"Levels": levels})
    with Store(tmp_path / "runs.db", clock=clock, notify=ear) as store:
        store.run(document, {"t": "x"}, name="a")
    clock.elapsed += 3 * 3600
    for _ in range(2):
        with Store(tmp_path / "runs.db", clock=clock, notify=ear) as store:
            assert store.resume("a").output["approver"] == "system:escalation"
    assert [(kind, details.get("notify")) for kind, details in ear.heard] == [
        ("request", None), ("escalation", "a"), ("escalation", "b"),
    ]  # fmt: skip


def test_store_sends_each_notification_once(tmp_path: Path) -> None:
    """Whoever resumes, however often; failures are told of in the history once, too."""
    ear, clock = Ear(), asl.VirtualClock()
    document = asking(Escalation={"After": "1h"})

    def notify(kind: str, request: Any, details: Any) -> None:
        ear(kind, request, details)
        raise OSError(kind)

    for hours in (0, 2, 0):
        with Store(tmp_path / "runs.db", clock=clock, notify=notify) as store:
            clock.elapsed += hours * 3600
            result = store.run(document, {"t": "x"}, name="a")
            assert result.status == "PAUSED"
    with Store(tmp_path / "runs.db", clock=clock, notify=notify) as store:
        store.answer(result.pending[0]["requestId"], "approve")
        assert store.resume("a").ok
        kept = store.result("a")
        assert list(store.faults()) == []
    assert [kind for kind, _ in ear.heard] == ["request", "escalation"]
    assert types(kept) == [
        "ExecutionStarted", "ApprovalStateEntered", "ApprovalRequested", "NotificationFailed",
        "ApprovalEscalated", "NotificationFailed", "ApprovalDecided", "ApprovalStateExited",
        "ExecutionSucceeded",
    ]  # fmt: skip


def test_overdue_escalation_is_notified_at_resume(tmp_path: Path) -> None:
    """With the time at which it was due, and only while there is no answer."""
    ear, clock = Ear(), asl.VirtualClock()
    with Store(tmp_path / "runs.db", clock=clock, notify=ear) as store:
        store.run(asking(Escalation={"After": "1h"}), {"t": "x"}, name="a")
        clock.elapsed += 9 * 3600
        store.resume("a")
    kind, details = ear.heard[-1]
    assert (kind, details["time"]) == ("escalation", "2024-01-01T01:00:00.000Z")


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), GeneratorExit()])
def test_notifier_and_approval_handler_that_raise_base_exceptions(error: BaseException) -> None:
    """A notice that fails does no harm; a handler that fails is the failure of its state."""

    def fails(*given: Any) -> None:
        raise error

    told = asl.run(APPROVAL, notify=fails, approvals=lambda request: "approve")
    assert told.ok
    result = asl.run(APPROVAL, approvals=fails)
    assert result.error == "States.TaskFailed"
    assert type(error).__name__ in str(result.cause)


def test_error_of_an_approval_handler_has_texts_as_name_and_cause() -> None:
    def fails(request: Any) -> None:
        raise asl.StateError(3, ["why"])  # type: ignore[arg-type]

    result = asl.run(APPROVAL, approvals=fails)
    assert (result.error, result.cause) == ("3", "['why']")
    assert str(asl.StateError(3, ["why"])) == "3: ['why']"  # type: ignore[arg-type]


APPROVAL = {"StartAt": "A", "States": {"A": {"Type": "Approval", "Prompt": "?", "End": True}}}


@pytest.mark.parametrize("channels", [1, 2])
def test_hanging_channel_is_abandoned(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain function runs in a thread: neither the execution nor the event loop waits for it."""
    monkeypatch.setattr("asl.effects.approval_process.PATIENCE", 0.05)
    release, ear = threading.Event(), Ear()

    def hang(kind: str, request: Any, details: Any) -> None:
        release.wait(60)

    async def run() -> tuple[asl.Result, list[str]]:
        turns: list[str] = []
        execution = asyncio.create_task(asl.arun(ONE, {"t": "x"}, notify=[hang] * channels + [ear]))
        while not execution.done():
            turns.append("another task")
            await asyncio.sleep(0.001)
        return await execution, turns

    result, turns = asyncio.run(run())
    release.set()
    assert result.status == "PAUSED"
    late = "TimeoutError: not sent within 0.05 s"
    assert [each["cause"] for each in failed(result)] == ["; ".join([late] * channels)]
    assert len(ear.heard) == 1
    assert len(turns) > 2


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), GeneratorExit()])
def test_no_exception_of_a_channel_fails_the_execution(error: BaseException) -> None:
    def refuse(kind: str, request: Any, details: Any) -> None:
        raise error

    async def refuse_later(kind: str, request: Any, details: Any) -> None:
        raise error

    for notify in (refuse, refuse_later):
        result = asl.run(ONE, {"t": "x"}, notify=notify)
        assert result.status == "PAUSED"
        (details,) = failed(result)
        assert type(error).__name__ in details["cause"]


def test_a_channel_gets_a_copy_of_the_request() -> None:
    def change(kind: str, request: Any, details: Any) -> None:
        request["options"].append("steal")
        details.clear()

    ear = Ear()
    (request,) = asl.run(ONE, {"t": "x"}, notify=[change, ear]).pending
    assert request["options"] == ["approve", "reject"]
    assert "workflow" in ear.heard[0][1]


def test_apprise_sends_a_button_for_each_option() -> None:
    """Every text of the request is escaped; services without markup get text with the link."""
    apprise = pytest.importorskip("apprise")
    sent: list[tuple[str, Any]] = []

    @apprise.decorators.notify(on="aslbuttons")
    def hear(body: str, title: str, notify_type: Any, *args: Any, **more: Any) -> None:
        sent.append((body, more["body_format"]))

    request = {
        "requestId": "arn:n:/Ask@0.0",
        "promptText": "<b>Publish</b>\n& send?",
        "options": ["<i>yes", "no"],
    }
    details = {
        "workflow": "w",
        "execution": "n",
        "link": "https://h/links/t",
        "actions": [
            {"option": each, "link": f"https://h/links/t?option={index}&x"}
            for index, each in enumerate(request["options"])
        ],
    }
    (channel,) = bind_channels("apprise:aslbuttons://")
    asyncio.run(channel("request", request, details))
    ((body, form),) = sent
    assert form == "html"
    assert "&gt; &lt;b&gt;Publish&lt;/b&gt;<br>&gt; &amp; send?" in body
    assert "<br>https://h/links/t</p>" in body
    assert '<a href="https://h/links/t?option=0&amp;x">[&lt;i&gt;yes]</a>' in body
