"""People decide on executions in a store: singly, in any order, from any process."""

import asyncio
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.compiler import compile_workflow
from asl.core.profile import DEFAULT
from asl.core.values import encode
from asl.effects.journaled.log import MIN_WEIGHT
from asl.executions import Store
from tests.deaths import lived
from tests.stores.conftest import Place

START = asl.VirtualClock().now()
ASK = {"Type": "Approval", "Prompt": "{{ $ }}?", "ResultPath": "$", "OutputPath": "$.approval"}
ONE = {"StartAt": "Ask", "States": {"Ask": {**ASK, "End": True}}}
EACH = {
    "StartAt": "Each",
    "States": {"Each": {"Type": "Map", "ItemsPath": "$", "ItemProcessor": ONE, "End": True}},
}


def opened(path: Place, **bindings: Any) -> Store:
    return Store(path, synchronous="OFF", clock=asl.VirtualClock(), **bindings)


def asking(**fields: Any) -> dict[str, Any]:
    """A workflow of one Approval, which goes to `Other` at a timeout."""
    ask = {"Type": "Approval", "Prompt": "?", "Default": "Other", **fields}
    return {"StartAt": "Ask", "States": {"Ask": ask, "Other": {"Type": "Succeed"}}}


@pytest.fixture
def store(place: Place) -> Any:
    with opened(place) as store:
        yield store


def test_request_is_stored_before_its_notification(place: Place) -> None:
    """Who is told can answer at once, from another process."""

    def notify(kind: str, request: dict[str, Any], details: Any) -> None:
        with opened(place) as other:
            told.append((kind, other.pending() == [request]))

    told: list[Any] = []
    with opened(place, notify=notify) as store:
        assert store.run(ONE, "it", name="a").status == "PAUSED"
        store.resume("a")
    assert told == [("request", True)]


def test_an_answer_lets_it_go_on(store: Store) -> None:
    """The decision is kept without running anything; resuming uses it."""
    (request,) = store.run(ONE, "it", name="a").pending
    assert store.due() == []
    record = store.answer(request["requestId"], "reject", by="ann", comment="no")
    assert record["approver"] == "ann"
    assert store.pending() == []
    assert store.due() == ["a"]
    assert store.get("a").status == "PAUSED"
    result = store.resume("a")
    assert (result.status, result.output) == ("SUCCEEDED", "reject")
    kept = store.result("a")
    assert [event.type for event in kept.events] == [
        "ExecutionStarted", "ApprovalStateEntered", "ApprovalRequested", "ExecutionPaused",
        "ExecutionResumed", "ApprovalDecided", "ApprovalStateExited", "ExecutionSucceeded",
    ]  # fmt: skip


def test_a_bad_answer_changes_nothing(store: Store) -> None:
    """It is refused with the reason, and the execution stays paused."""
    (request,) = store.run(ONE, "it", name="a").pending
    with pytest.raises(asl.AnswerRefused, match="'approve', 'reject'"):
        store.answer(request["requestId"], "maybe")
    assert store.pending() == [request]
    assert store.resume("a").pending == [request]
    with pytest.raises(asl.RequestNotFound):
        store.answer("other", "approve")


def test_the_same_answer_twice_is_one(store: Store) -> None:
    """Another answer to an answered request is refused, also after the execution went on."""
    (request,) = store.run(ONE, "it", name="a").pending
    first = store.answer(request["requestId"], "approve", by="ann")
    assert store.answer(request["requestId"], "approve", by="ann") == first
    with pytest.raises(asl.AnswerRefused, match="answered already"):
        store.answer(request["requestId"], "reject", by="ann")
    assert store.resume("a").output == "approve"
    with pytest.raises(asl.AnswerRefused, match="answered already"):
        store.answer(request["requestId"], "approve", by="bo")


def test_approvals_are_collected(store: Store) -> None:
    """Until there are enough of them the request stays open and shows them."""
    document = asking(Policy={"RequiredApprovals": 2}, ResultPath="$")
    (request,) = store.run(document, {}, name="a").pending
    assert store.answer(request["requestId"], "approve", by="ann") is None
    assert store.answer(request["requestId"], "approve", by="ann") is None
    (shown,) = store.resume("a").pending
    assert [each["approver"] for each in shown["policy"]["received"]] == ["ann"]
    assert store.answer(request["requestId"], "approve", by="bo") is not None
    output = store.resume("a").output
    assert [each["approver"] for each in output["approvals"]] == ["ann", "bo"]


def test_the_same_answer_twice_is_one_of_each_approver(store: Store) -> None:
    """Also when others have decided meanwhile; any other answer comes too late."""
    document = asking(Policy={"RequiredApprovals": 2})
    id = store.run(document, {}, name="a").pending[0]["requestId"]
    assert store.answer(id, "approve", by="ann", comment="fine") is None
    record = store.answer(id, "approve", by="bo")
    assert store.answer(id, "approve", by="ann", comment="fine") == record
    assert store.answer(id, "approve", by="bo") == record
    for other in ({"by": "ann"}, {"by": "bo", "note": 1}, {"by": "cy"}, {"by": ""}):
        with pytest.raises(asl.AnswerRefused, match="answered already"):
            store.answer(id, "approve", **other)  # type: ignore[arg-type]


def test_the_requestor_may_be_excluded(store: Store) -> None:
    """Who started the execution is known to every later process."""
    document = asking(Policy={"ExcludeRequestor": True})
    (request,) = store.run(document, {}, name="a", requestor="ann").pending
    with pytest.raises(asl.AnswerRefused, match="'ann'") as refusal:
        store.answer(request["requestId"], "approve", by="ann")
    assert refusal.value.forbidden


def test_what_waits_is_listed_as_it_was_asked(place: Place) -> None:
    """Items in their order, not by their digits, in a later process, too."""
    items = list(range(12))
    with opened(place) as store:
        result = store.run(EACH, items, name="a")
        asked = [each["input"] for each in result.pending]
        assert asked == [each["input"] for each in store.pending()] == items
    with opened(place) as store:
        assert [each["input"] for each in store.result("a").pending] == items


def test_what_is_due_happens_on_resuming(place: Place) -> None:
    """Escalations and the timeout count from the request, whoever resumes whenever."""
    told: list[str] = []
    document = asking(Timeout="48h", Escalation={"After": "4h"})
    clock = asl.VirtualClock()

    def notify(kind: str, request: Any, details: Any) -> None:
        told.append(kind)

    with Store(place, clock=clock, notify=notify) as store:
        store.run(document, {}, name="a")
        assert store.get("a").wake == clock.now() + 4 * 3600
        clock.elapsed += 5 * 3600
        assert store.due() == ["a"]
        assert store.resume("a").status == "PAUSED"
        assert store.due() == []
        clock.elapsed += 100 * 3600
        with pytest.raises(asl.AnswerRefused, match="too late"):
            store.answer(store.pending()[0]["requestId"], "approve")
        result = store.resume("a")
        assert result.output["timestamp"] == "2024-01-03T00:00:00.000Z"
        assert result.visited == ["Ask", "Other"]
        assert told == ["request", "escalation"]
        types = [event.type for event in store.result("a").events]
        assert types.count("ApprovalEscalated") == types.count("ApprovalTimedOut") == 1


def test_the_end_of_an_execution_closes_its_requests(store: Store) -> None:
    """Nobody decides on what has ended."""
    (request,) = store.run(ONE, "it", name="a").pending
    store.cancel("a")
    assert store.pending() == []
    with pytest.raises(asl.AnswerRefused, match="closed"):
        store.answer(request["requestId"], "approve")


def test_a_handler_answers_for_executions_of_a_store(place: Place) -> None:
    """What it decides is kept like any other answer."""
    with opened(place, approvals=lambda request: "approve") as store:
        assert store.run(ONE, "it", name="a").output == "approve"
        assert store.pending() == []


NESTED = {
    "StartAt": "Out",
    "States": {
        "Out": {
            "Type": "Map",
            "ItemsPath": "$",
            "ItemProcessor": {
                "StartAt": "In",
                "States": {
                    "In": {
                        "Type": "Parallel",
                        "Branches": [EACH, {"StartAt": "Beside", "States": {"Beside": {
                            **ASK, "End": True}}}],
                        "End": True,
                    }
                },
            },
            "End": True,
        }
    },
}  # fmt: skip
"""Maps within branches within a Map."""

DECIDE = """
import sys
import asl
store = asl.open_store(sys.argv[1], synchronous="OFF", clock=asl.VirtualClock())
for line in sys.stdin.read().splitlines():
    name, option, request = line.split(" ", 2)
    store.answer(request, option)
    result = store.resume(name)
    assert result.status == ("PAUSED" if result.pending else "SUCCEEDED"), result
store.close()
"""


@pytest.mark.parametrize("alone", [76, pytest.param(876, marks=pytest.mark.full)])
def test_hundreds_wait_and_are_resumed_singly_in_any_order(alone: int, tmp_path: Path) -> None:
    """Alone, in Maps, in Maps within branches within Maps; by processes that come and go."""
    path, order = tmp_path / "runs.db", random.Random(7)
    with opened(path) as store:
        for number in range(alone):
            store.run(ONE, number, name=f"one-{number}")
        for number in range(2):
            store.run(EACH, list(range(20)), name=f"map-{number}")
        for number in range(6):
            store.run(NESTED, [[1, 2, 3]] * 3 + [[]] * 2, name=f"deep-{number}")
        requests = store.pending()
    assert len({each["requestId"] for each in requests}) == len(requests) == alone + 124
    order.shuffle(requests)
    chosen: dict[str, str] = {}
    for first in range(4):
        lines = []
        for each in requests[first::4]:
            name = each["requestId"].split(":/")[0].rpartition(":")[2]
            chosen[each["requestId"]] = option = order.choice(["approve", "reject"])
            lines.append(f"{name} {option} {each['requestId']}")
        command = [sys.executable, "-c", DECIDE, str(path)]
        subprocess.run(command, input="\n".join(lines), text=True, check=True, timeout=100)
    with opened(path) as store:
        assert store.pending() == []
        assert {each.status for each in store.executions(limit=2000)} == {"SUCCEEDED"}
        for number in (0, alone - 1):
            result = store.result(f"one-{number}")
            (request,) = [key for key in chosen if key.startswith(f"{result.id}:/")]
            assert result.output == chosen[request]
        deep = store.result("deep-3")
        keys = [f"{deep.id}:/Out@0.0[{out}]/In@0.0[0]/Each@0.0[{index}]/Ask@0.0"
                for out in range(3) for index in range(3)]  # fmt: skip
        inner = [value for branches in deep.output[:3] for value in branches[0]]
        assert inner == [chosen[key] for key in keys]


def test_nothing_stays_in_memory_while_it_waits(store: Store) -> None:
    """No coroutine, no frame of a machine, no task; only what the caller keeps."""
    import gc
    import types

    from asl.engine.frame import Frame

    def alive() -> int:
        gc.collect()
        kinds = (Frame, types.CoroutineType, types.AsyncGeneratorType)
        return sum(isinstance(each, kinds) for each in gc.get_objects())

    before = alive()
    for number in range(5):
        assert store.run(NESTED, [[1, 2, 3]] * 3, name=f"deep-{number}").status == "PAUSED"
    assert alive() == before
    for request in store.pending():
        store.answer(request["requestId"], "approve")
    assert alive() == before


def test_the_time_of_the_whole_execution_goes_on(place: Place) -> None:
    """Its end is due like a timeout; nobody can answer after it."""
    clock = asl.VirtualClock()
    with Store(place, clock=clock) as store:
        document = {**asking(Timeout="3h"), "TimeoutSeconds": 7200}
        (request,) = store.run(document, {}, name="a").pending
        assert store.get("a").wake == clock.now() + 7200
        assert request["expiresAt"] == "2024-01-01T02:00:00.000Z"
        assert store.pending() == [request]
        clock.elapsed += 7201
        assert store.due() == ["a"]
        with pytest.raises(asl.AnswerRefused, match="too late: resume the execution 'a'"):
            store.answer(request["requestId"], "approve")
        result = store.resume("a")
        assert (result.status, result.error) == ("TIMED_OUT", "States.Timeout")
        assert store.pending() == []


def test_an_answer_in_time_counts_whenever_it_is_used(place: Place) -> None:
    """What it led to before the end of the execution's time has happened then."""
    clock = asl.VirtualClock()
    with Store(place, clock=clock) as store:
        document = {**asking(Timeout="3h"), "TimeoutSeconds": 7200}
        (request,) = store.run(document, {}, name="a").pending
        clock.elapsed += 7000
        record = store.answer(request["requestId"], "approve")
        clock.elapsed += 7000
        assert record["timestamp"] == "2024-01-01T01:56:40.000Z"
        assert store.resume("a").output["approval"] == "approve"


def then(state: Any) -> Any:
    """A workflow that goes on to another state when people have decided."""
    ask = {"Type": "Approval", "Prompt": "?", "ResultPath": "$.ask", "Next": "Then"}
    return {"StartAt": "Ask", "States": {"Ask": ask, "Then": {**state, "End": True}}}


@pytest.mark.parametrize(
    "state",
    [
        {"Type": "Task", "Agent": "Bank", "ResultPath": "$.paid"},
        {"Type": "Approval", "Prompt": "Sure?", "Notification": {"Channels": ["desk"]}},
    ],
)
def test_nothing_is_begun_when_the_time_of_the_execution_is_over(place: Place, state: Any) -> None:
    """Neither a call nor a request, though the decision that leads to it was taken in time."""
    clock, done = asl.VirtualClock(), []
    bindings: Any = {
        "agents": {"Bank": done.append},
        "notify": lambda kind, *more: done.append(kind),
    }
    with Store(place, clock=clock, **bindings) as store:
        (request,) = store.run({**then(state), "TimeoutSeconds": 100}, {}, name="a").pending
        store.answer(request["requestId"], "approve")
        clock.elapsed += 101
        done.clear()
        assert (store.resume("a").status, done) == ("TIMED_OUT", [])
        store.redrive("a")
        assert len(done) == 1


def test_a_request_is_made_when_people_can_see_it(place: Place) -> None:
    """Not when that was decided which has led to it."""
    clock = asl.VirtualClock()
    with Store(place, clock=clock) as store:
        document = then({"Type": "Approval", "Prompt": "Sure?", "Timeout": "1h"})
        (request,) = store.run(document, {}, name="a").pending
        store.answer(request["requestId"], "approve")
        clock.elapsed += 7200
        (request,) = store.resume("a").pending
        assert request["createdAt"] == "2024-01-01T02:00:00.000Z"


def test_what_was_spent_is_known_behind_a_decision(place: Place) -> None:
    """Also where the process dies that has gone on with it."""
    look = {"Type": "Pass", "Parameters": {"spent.$": "$$.Execution.TokensUsed"}, "Next": "Work"}
    work = {"Type": "Task", "Agent": "Work", "End": True}
    ask = {"Type": "Approval", "Prompt": "?", "ResultPath": None, "Next": "Look"}
    states = {"First": {**work, "Next": "Ask"}, "Ask": ask, "Look": look, "Work": work}
    del states["First"]["End"]
    path, seen = place, []

    def agent(data: Any) -> Any:
        seen.append(data)
        return {"_tokens": 5}

    def again() -> Store:
        return opened(path, agents={"Work": agent})

    with again() as store:
        (request,) = store.run({"StartAt": "First", "States": states}, {}, name="a").pending
        store.answer(request["requestId"], "approve")
    for store in (again(), again()):
        assert lived(store, partial(store.resume, "a"), 1, "effect.done") is None
    with again() as store:
        assert store.resume("a").ok
    assert seen == [{}, *[{"spent": 5}] * 3]


def test_an_escalated_request_is_addressed_anew(place: Place) -> None:
    """And its time begins once more; who decides is shown the same request."""
    clock = asl.VirtualClock()
    with Store(place, clock=clock) as store:
        document = asking(Timeout="1h", OnTimeout="Escalate", Escalation={"EscalateTo": "boss"})
        (first,) = store.run(document, {}, name="a").pending
        assert first["expiresAt"] == "2024-01-01T01:00:00.000Z"
        clock.elapsed += 3600
        (second,) = store.resume("a").pending
        assert second == {**first, "expiresAt": "2024-01-01T02:00:00.000Z", "escalatedTo": "boss"}
        assert store.pending() == [second]
        clock.elapsed += 3599
        store.answer(first["requestId"], "approve")
        assert store.resume("a").output["approval"] == "approve"


def shown(request: Any) -> str:
    """Return the digest of a request as it is shown."""
    from hashlib import sha256

    from asl.core.values import compact

    return sha256(compact(request).encode()).hexdigest()


def test_the_digest_is_of_what_the_last_one_saw(store: Store) -> None:
    """With the approvals of others before."""
    document = asking(Policy={"RequiredApprovals": 2})
    (request,) = store.run(document, name="a").pending
    store.answer(request["requestId"], "approve", by="ann")
    (then,) = store.pending()
    assert [each["approver"] for each in then["policy"]["received"]] == ["ann"]
    store.answer(request["requestId"], "approve", by="bob")
    details = next(each for each in store.resume("a").events if each.type == "ApprovalDecided")
    assert details.details["digest"] == shown(then) != shown(request)


def test_the_history_says_what_was_shown(store: Store) -> None:
    """By the digest of the request, which is that of the store."""
    (request,) = store.run(ONE, "it", name="a").pending
    store.answer(request["requestId"], "approve", by="ann")
    decided = [each for each in store.resume("a").events if each.type == "ApprovalDecided"]
    assert decided[0].details == {
        "requestId": request["requestId"],
        "approval": "approve",
        "approver": "ann",
        "digest": shown(request),
    }


def test_the_time_of_entry_stays_that_of_the_first(place: Place) -> None:
    """However often the execution is resumed."""
    clock = asl.VirtualClock()
    document = {
        "StartAt": "Nap",
        "States": {
            "Nap": {"Type": "Wait", "Seconds": 60, "Next": "Ask"},
            "Ask": {**ASK, "ResultPath": None, "OutputPath": "$$.State.EnteredTime", "End": True},
        },
    }
    with Store(place, clock=clock) as store:
        (request,) = store.run(document, "x", name="a").pending
        clock.elapsed += 3600
        store.resume("a")
        store.answer(request["requestId"], "approve")
        result = store.resume("a")
        assert result.output == "2024-01-01T00:01:00.000Z"
        assert result.visited == ["Nap", "Ask"]


def test_another_process_goes_on(tmp_path: Path) -> None:
    """Nothing of a paused execution is in memory."""
    with opened(tmp_path / "runs.db") as store:
        (request,) = store.run(ONE, "it", name="a").pending
    program = (
        "import sys, asl\n"
        "with asl.open_store(sys.argv[1]) as store:\n"
        "    store.answer(sys.argv[2], 'approve')\n"
        "    print(store.resume('a').output)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "runs.db"), request["requestId"]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "approve\n"


def test_a_decision_about_a_budget_is_due_once(place: Place) -> None:
    """When it was gone on with, nothing is to be done until there is another one."""
    document = {
        "Budget": {"MaxTokens": 5, "OnExceed": "PauseAndNotify"},
        "StartAt": "One",
        "States": {
            "One": {"Type": "Task", "Agent": "Work", "Next": "Two"},
            "Two": {"Type": "Task", "Agent": "Work", "Next": "Ask"},
            "Ask": {"Type": "Approval", "Prompt": "Good?", "End": True},
        },
    }
    with opened(place, agents={"Work": lambda data: {"_tokens": 7}}) as store:
        (request,) = store.run(document, {}, name="a").pending
        assert store.due() == []
        store.answer(request["requestId"], "approve", MaxTokens=100)
        assert (store.due(), store.answered_requests("a")) == (["a"], [request])
        (request,) = store.resume("a").pending
        assert request["state"] == "Ask"
        assert (store.due(), store.answered_requests("a")) == ([], [])
        store.answer(request["requestId"], "approve")
        assert store.resume("a").ok


def test_of_two_answers_at_the_same_instant_one_counts(place: Place) -> None:
    """The other one is refused, and nobody is thanked for what is lost."""
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    path, together = place, Barrier(2)
    with opened(path) as store:
        requests = store.run(EACH, list(range(10)), name="a").pending

    def decide(who: str) -> set[str]:
        """Answer all; returns the requests for which somebody was thanked."""
        thanked = set()
        with opened(path) as store:
            for each in requests:
                together.wait()
                try:
                    store.answer(each["requestId"], "approve" if who == "ann" else "reject", by=who)
                except asl.AnswerRefused as refusal:
                    assert "answered already" in str(refusal)
                else:
                    thanked.add(each["requestId"])
        return thanked

    with ThreadPoolExecutor(2) as threads:
        ann, bo = threads.map(decide, ["ann", "bo"])
    assert ann | bo == {each["requestId"] for each in requests}
    assert not ann & bo
    with opened(path) as store:
        output = store.resume("a").output
        assert output == ["approve" if each["requestId"] in ann else "reject" for each in requests]


def test_large_answer_can_be_repeated_after_a_failed_write(store: Store) -> None:
    """All of it is written then, though it was to be before."""
    ask = {"Type": "Approval", "Prompt": "?", "Editable": {"Fields": ["$.text"]}, "End": True}
    asked = {"StartAt": "Ask", "States": {"Ask": {**ask, "ResultPath": None}}}
    (request,) = store.run(asked, {"text": ""}, name="it").pending
    edited = {"text": "x" * 100_000}

    def full(point: str) -> None:
        if point == "commit.written":
            raise asl.StoreError("the disk is full")

    store.session.on_fail_point = full
    with pytest.raises(asl.StoreError):
        store.answer(request["requestId"], "approve", by="ann", edited=edited)
    store.session.on_fail_point = lambda point: None
    store.answer(request["requestId"], "approve", by="ann", edited=edited)
    assert store.resume("it").output["editedContent"] == edited
    assert list(store.faults()) == []


def answered_while_waiting(path: Place, at: float, **fields: Any) -> list[tuple[str, float]]:
    """Return the events of an Approval that another process answers while a handler waits."""

    async def handler(request: dict[str, Any]) -> None:
        await asyncio.sleep(at)
        clock = asl.VirtualClock(START + at)
        with Store(path, synchronous="OFF", clock=clock) as other:
            other.answer(request["requestId"], "approve", by="ann")
        await asyncio.sleep(3600)

    with opened(path, approvals=handler) as store:
        ran = store.run(asking(**fields), name="a")
        assert store.due() == list(store.faults()) == []
        kept = store.result("a")
        assert [event.to_json() for event in kept.events] == [each.to_json() for each in ran.events]
        return [(event.type, event.timestamp - START) for event in ran.events]


def test_answer_in_time_wins_over_the_timeout(place: Place) -> None:
    """Also where the process that waits finds it only when the time is over."""
    events = answered_while_waiting(place, 5, Timeout="15s", OnTimeout="AutoReject")
    assert ("ApprovalDecided", 5) in events
    assert "ApprovalTimedOut" not in dict(events)


def test_answer_in_time_follows_earlier_events(place: Place) -> None:
    """Times of a history never go back."""
    escalation = {"After": "10s", "Notify": "boss"}
    fields = {"Timeout": "15s", "OnTimeout": "Fail", "Escalation": escalation}
    events = answered_while_waiting(place, 5, **fields)
    times = [time for _, time in events]
    assert times == sorted(times)
    assert ("ApprovalDecided", 10) in events


def test_a_started_document_is_not_checked_again(place: Place) -> None:
    """A later version may have stricter rules."""
    document = {**ONE, "States": {**ONE["States"], "Lost": {"Type": "Succeed"}}}
    assert not asl.check(document).ok
    with opened(place) as store:
        (request,) = store.run(compile_workflow(document, DEFAULT, "w"), "it", name="a").pending
    with opened(place) as store:
        store.answer(request["requestId"], "approve", by="ann")
        assert store.resume("a").ok
    with opened(place) as store:
        assert store.result("a").visited == ["Ask"]


def test_an_answer_is_weighed_as_a_whole_after_a_restart(place: Place) -> None:
    """Restarts do not put off the position that makes answers of the past disappear."""
    wait = {
        "StartAt": "Nap",
        "States": {
            "Nap": {"Type": "Wait", "Seconds": 86400, "Next": "Count"},
            "Count": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "Q"},
            "Q": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericLessThan": 365, "Next": "Nap"}],
                "Default": "Done",
            },
            "Done": {"Type": "Succeed"},
        },
    }
    path = place
    for _ in range(7):
        store = opened(path)
        lived(store, partial(store.run, wait, {"n": 0}, name="a"), 50, "effect.ready")
    with opened(path) as store:
        journal = store._reader.journal(store.get("a"))
        assert len(encode(list(journal.answers.items()))) < 2 * MIN_WEIGHT
