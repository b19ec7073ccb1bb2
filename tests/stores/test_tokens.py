"""Task tokens of kept executions: answered by any process, at any time before they time out."""

import threading
from typing import Any

import pytest

import asl
from asl.effects.task_tokens import InvalidOutput, InvalidToken, TaskDoesNotExist, TaskTimedOut
from asl.executions import BindingsMissing, Store
from asl.stores.statements import Select
from asl.stores.tables import REQUEST
from tests.stores.conftest import Place

SEND = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
SIGN = "arn:aws:states:us-east-1:123456789012:activity:Sign"


def callback(**fields: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": SEND,
        "Parameters": {"token.$": "$$.Task.Token", "of.$": "$"},
        "End": True,
        **fields,
    }


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


class World:
    """A handler that counts what was sent, on a clock that the test moves."""

    def __init__(self, place: Place) -> None:
        self.path = place
        self.clock = asl.VirtualClock()
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def store(self, **bindings: Any) -> Store:
        given = {"resources": {"arn:aws:states:::sqs:*": self.send}, **bindings}
        return Store(self.path, clock=self.clock, synchronous="OFF", **given)


@pytest.fixture
def world(place: Place) -> World:
    return World(place)


def test_an_answer_comes_from_another_process(world: World) -> None:
    """The handler is called once; what the task came to at that time counts."""
    with world.store() as store:
        result = store.run(machine(Ask=callback()), {"n": 1}, name="e")
    assert (result.status, result.pending) == ("PAUSED", [])
    (task,) = result.pending_callbacks
    assert (task["type"], task["state"]) == ("token", "Ask")
    assert task["payload"]["of"] == {"n": 1}
    with world.store() as other:
        assert other.due() == []
        assert (
            other.pending_callbacks("e")
            == other.pending_callbacks()
            == [{**task, "execution": "e"}]
        )
        world.clock.elapsed += 5
        other.tokens.send_task_success(task["taskToken"], '{"yes": true}')
        assert other.due() == ["e"]
        assert other.pending_callbacks() == []
        assert list(other.faults()) == []
    world.clock.elapsed += 5
    with world.store() as store:
        result = store.resume("e")
        assert store.result("e").output == result.output == {"yes": True}
        (answered,) = (each for each in result.events if each.type == "TaskSucceeded")
    assert len(world.sent) == 1
    assert answered.timestamp - result.execution.started == 10  # no time of a history goes back


def test_answers_are_refused_by_name(world: World) -> None:
    """An answer that is no JSON, a token that is none, one that was answered, one of nobody."""
    with world.store() as store:
        (task,) = store.run(machine(Ask=callback()), name="e").pending_callbacks
        token, desk = task["taskToken"], store.tokens
        for output, error in (("{", InvalidOutput), ("1", None), ("1", TaskTimedOut)):
            if error is None:
                desk.send_task_success(token, output)
                continue
            with pytest.raises(error):
                desk.send_task_success(token, output)
        with pytest.raises(InvalidToken):
            desk.send_task_heartbeat("token")
        with pytest.raises(TaskDoesNotExist):
            desk.send_task_failure("0" * 64, "E")
        with pytest.raises(asl.AslError, match="must be texts"):
            desk.send_task_failure(token, 5)  # type: ignore[arg-type]
        assert store.resume("e").output == 1
        with pytest.raises(TaskTimedOut, match="answered already"):
            desk.send_task_success(token, "2")


def test_a_failure_is_retried_with_a_new_token(world: World) -> None:
    """Each attempt has a token of its own; the second is handed over, too."""
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    with world.store() as store:
        (task,) = store.run(machine(Ask=callback(Retry=retry)), name="e").pending_callbacks
        store.tokens.send_task_failure(task["taskToken"], "Busy", "later")
        (again,) = store.resume("e").pending_callbacks
        assert again["taskToken"] != task["taskToken"]
        store.tokens.send_task_failure(again["taskToken"], "Busy", "still")
        result = store.resume("e")
    assert (result.error, result.cause) == ("Busy", "still")
    assert [each["token"] for each in world.sent] == [task["taskToken"], again["taskToken"]]


@pytest.mark.parametrize(
    ("limits", "missed", "name"),
    [
        ({"TimeoutSeconds": 60}, "no answer within 60 s", "States.Timeout"),
        (
            {"TimeoutSeconds": 99, "HeartbeatSeconds": 60},
            "no sign of life within 60 s",
            "States.HeartbeatTimeout",
        ),
    ],
)
def test_deadlines_stay_where_they_are(
    world: World, limits: dict[str, int], missed: str, name: str
) -> None:
    """They count from the call of the handler, whoever is there meanwhile."""
    caught = {"Catch": [{"ErrorEquals": [name], "ResultPath": "$.why", "Next": "Late"}]}
    document = machine(
        Ask=callback(**limits, **caught), Late={"Type": "Task", "Agent": "Now", "End": True}
    )
    agents = {"Now": lambda data: data["why"]["Cause"]}
    with world.store() as store:
        (task,) = store.run(document, name="e").pending_callbacks
        world.clock.elapsed += 59
        assert store.due() == []
        world.clock.elapsed += 1000
        assert store.due() == ["e"]
        with pytest.raises(TaskTimedOut, match="it timed out"):
            store.tokens.send_task_success(task["taskToken"], "1")
        result = store.resume("e", agents=agents)
        assert missed in result.output
        (left,) = (each for each in result.events if each.type == "TaskTimedOut")
        assert left.timestamp - result.execution.started == 1059  # when somebody was there
        with pytest.raises(TaskTimedOut):
            store.tokens.send_task_success(task["taskToken"], "1")


def test_heartbeats_from_elsewhere_start_the_countdown_anew(world: World) -> None:
    """Also where nobody runs."""
    document = machine(Ask=callback(HeartbeatSeconds=60))
    with world.store() as store:
        (task,) = store.run(document, name="e").pending_callbacks
        for _ in range(3):
            world.clock.elapsed += 50
            with world.store() as other:
                other.tokens.send_task_heartbeat(task["taskToken"])
        assert store.resume("e").status == "PAUSED"
        assert store.get("e").wake == world.clock.now() + 60
        world.clock.elapsed += 60
        assert store.resume("e").error == "States.Timeout"


def test_the_end_of_the_execution_ends_the_waiting(world: World) -> None:
    """Its own time limit stands above that of the task."""
    document = {"TimeoutSeconds": 100, **machine(Ask=callback(TimeoutSeconds=500))}
    with world.store() as store:
        (task,) = store.run(document, name="e").pending_callbacks
        world.clock.elapsed += 200
        assert store.due() == ["e"]
        assert store.resume("e").status == "TIMED_OUT"
        with pytest.raises(TaskTimedOut, match="its execution has ended"):
            store.tokens.send_task_success(task["taskToken"], "1")


def test_tokens_in_a_map_are_answered_in_any_order(world: World) -> None:
    """Each by a process of its own; each handler is called once."""
    document = machine(
        All={
            "Type": "Map",
            "ItemProcessor": machine(Ask=callback()),
            "ItemsPath": "$.items",
            "End": True,
        }
    )
    with world.store() as store:
        result = store.run(document, {"items": list(range(50))}, name="e")
    assert [each["payload"]["of"] for each in result.pending_callbacks] == list(range(50))
    for sent in [*world.sent[::2], *world.sent[1::2]]:
        with world.store() as other:
            other.tokens.send_task_success(sent["token"], {"of": sent["of"]})
            result = other.resume("e")
    assert result.output == [{"of": number} for number in range(50)]
    assert len(world.sent) == 50


def test_a_redrive_hands_out_all_that_failed(world: World) -> None:
    """Also where only one of the failures was gone on with; what was answered well stays."""
    document = machine(All={"Type": "Map", "ItemProcessor": machine(Ask=callback()), "End": True})
    with world.store() as store:
        store.run(document, [0, 1, 2, 3], name="e")
        for sent in world.sent[:3]:
            store.tokens.send_task_failure(sent["token"], "Bad")
        store.tokens.send_task_success(world.sent[3]["token"], {"of": 3})
        assert store.resume("e").error == "Bad"
        assert [each["payload"]["of"] for each in store.redrive("e").pending_callbacks] == [0, 1, 2]
        for sent in world.sent[4:]:
            store.tokens.send_task_success(sent["token"], {"of": sent["of"]})
        assert store.resume("e").output == [{"of": number} for number in range(4)]
        assert list(store.faults()) == []


def test_a_handler_that_answers_by_itself_need_not_wait(world: World) -> None:
    """By `call.tokens`, before it returns."""

    def at_once(message: Any, call: asl.Call) -> None:
        call.tokens.send_task_success(call.token, {"done": message["of"]})

    with world.store(resources={"*": at_once}) as store:
        result = store.run(machine(Ask=callback()), {"n": 2}, name="e")
        assert result.output == {"done": {"n": 2}}
        assert store.resume("e").output == {"done": {"n": 2}}


def test_a_handler_that_fails_closes_its_request(world: World) -> None:
    """Nobody can answer for what was not handed over."""

    def broken(message: Any) -> None:
        raise asl.StateError("Sqs.Down", message["token"])

    with world.store(resources={"*": broken}) as store:
        result = store.run(machine(Ask=callback()), name="e")
        assert result.error == "Sqs.Down"
        assert store.pending_callbacks() == []
        with pytest.raises(TaskTimedOut):
            store.tokens.send_task_success(result.cause or "", "1")


def test_a_desk_of_the_run_is_waited_for(world: World) -> None:
    """Its answer is in the store before whoever gave it goes on."""
    desk = asl.TaskTokens()
    seen: list[Any] = []
    has_looked = threading.Event()

    def send(message: dict[str, Any]) -> None:
        def later() -> None:
            desk.send_task_success(message["token"], {"by": "a thread"})
            with world.store() as other:
                seen.extend(other.session.select(Select(REQUEST, ("status",))))
            has_looked.set()

        threading.Timer(0.05, later).start()

    with Store(world.path, resources={"*": send}, tokens=desk, synchronous="OFF") as store:
        assert store.run(machine(Ask=callback()), name="e").output == {"by": "a thread"}
        assert has_looked.wait(60)
    assert seen == [("answered",)]


def test_what_another_process_answers_is_heard_at_a_desk(world: World) -> None:
    """A process that waits at a desk of its own looks at the store, too."""

    def send(message: dict[str, Any]) -> None:
        def later() -> None:
            with Store(world.path, synchronous="OFF") as other:
                other.tokens.send_task_success(message["token"], {"by": "another"})

        threading.Timer(0.05, later).start()

    with Store(world.path, tokens=asl.TaskTokens(), resources={"*": send}) as store:
        assert store.run(machine(Ask=callback()), name="e").output == {"by": "another"}


def test_a_state_answers_the_token_of_another_execution(world: World) -> None:
    """Of the same store; `sendTaskSuccess` finds it there."""
    answers = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sfn:sendTaskSuccess",
        "Parameters": {"TaskToken.$": "$.token", "Output": "7"},
        "End": True,
    }
    with world.store() as store:
        (task,) = store.run(machine(Ask=callback()), name="e").pending_callbacks
        assert store.run(machine(Answer=answers), {"token": task["taskToken"]}).ok
        assert store.resume("e").output == 7


def test_an_activity_has_workers_in_other_processes(world: World) -> None:
    """Each task is taken once; a worker's heartbeat counts from when it took it."""
    document = machine(
        Both={
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": machine(
                Sign={"Type": "Task", "Resource": SIGN, "HeartbeatSeconds": 60, "End": True}
            ),
            "End": True,
        }
    )
    with world.store() as store:
        assert store.run(document, {"items": [1, 2]}, name="e").status == "PAUSED"
        world.clock.elapsed += 1000  # nobody has taken them: no heartbeat is due
        assert store.due() == []
    with world.store() as worker:
        desk = worker.tokens
        assert desk.get_activity_task(SIGN.replace("Sign", "Other"), wait=0)["taskToken"] is None
        taken = [desk.get_activity_task(SIGN, "bob", wait=0) for _ in range(3)]
        assert [each["input"] for each in taken] == ["1", "2", None]
        for task in taken[:2]:
            desk.send_task_success(str(task["taskToken"]), f'"signed {task["input"]}"')
        with pytest.raises(asl.AslError, match="is not the ARN of an activity"):
            desk.get_activity_task("Sign", wait=0)
    with world.store() as store:
        result = store.resume("e")
        assert result.output == ["signed 1", "signed 2"]
        started = [each for each in result.events if each.type == "TaskStarted"]
        assert [each.details for each in started] == [{"workerName": "bob"}] * 2


def test_cancelled_branch_has_no_pending_requests(world: World) -> None:
    """Neither for an answer by token nor for a decision."""
    asking = machine(Approve={"Type": "Approval", "Prompt": "Yes?", "End": True})
    failing = machine(Nap={"Type": "Wait", "Seconds": 1, "Next": "No"}, No={"Type": "Fail"})
    last = {"Type": "Approval", "Prompt": "After?", "End": True}
    document = machine(
        Three={
            "Type": "Parallel",
            "Branches": [machine(Ask=callback()), asking, failing],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Last"}],
            "End": True,
        },
        Last=last,
    )
    with world.store() as store:
        result = store.run(document, name="e")
        assert [each["state"] for each in result.pending] == ["Last"]
        assert [each["state"] for each in store.pending()] == ["Last"]
        assert store.pending_callbacks() == []
    in_memory = asl.run(document, clock="virtual", resources={"*": lambda message, call: None})
    assert [each["state"] for each in in_memory.pending] == ["Last"]


def test_what_was_gone_on_with_is_not_due_again(world: World) -> None:
    """An execution that waits for its second decision has nothing to go on with."""
    ask = {"Type": "Approval", "Prompt": "Yes?"}
    document = machine(One={**ask, "Next": "Two"}, Two={**ask, "Next": "Three"}, Three=callback())
    with world.store() as store:
        (request,) = store.run(document, name="e").pending
        store.answer(request["requestId"], "approve")
        (request,) = store.resume("e").pending
        assert store.due() == []
        store.answer(request["requestId"], "approve")
        (task,) = store.resume("e").pending_callbacks
        assert store.due() == []
        store.tokens.send_task_success(task["taskToken"], "1")
        assert store.due() == ["e"]


@pytest.mark.parametrize("pattern", [".waitForTaskToken", ".sync"])
def test_what_was_answered_is_not_called_again(world: World, pattern: str) -> None:
    """A resource that the document names must be there all the same."""
    resource = SEND.replace(".waitForTaskToken", pattern)
    ask = {"Type": "Approval", "Prompt": "Yes?", "ResultPath": "$", "End": True}
    document = machine(Send=callback(Resource=resource, End=False, Next="Ask"), Ask=ask)
    with world.store() as store:
        for task in store.run(document, name="e").pending_callbacks:
            store.tokens.send_task_success(task["taskToken"], "1")
            store.resume("e")
        (request,) = store.pending()
    with world.store(resources={}) as store, pytest.raises(BindingsMissing, match="sqs"):
        store.resume("e")
    with world.store() as store:
        assert store.resume("e").pending == [request]
        store.answer(request["requestId"], "approve")
        result = store.resume("e")
        assert result.ok
        told = [each.type for each in result.events if each.type.startswith("Task")]
        assert told == ["TaskStateEntered", "TaskScheduled", "TaskSubmitted", "TaskSucceeded",
                        "TaskStateExited"]  # fmt: skip
        assert [each.type for each in store.result("e").events if "Task" in each.type] == told
    assert len(world.sent) == 1


def test_what_was_handed_over_goes_on_only_with_its_resource(world: World) -> None:
    """Another attempt calls it again: without it the execution stays as it is."""
    retried = callback(Retry=[{"ErrorEquals": ["Later"]}])
    with world.store() as store:
        (task,) = store.run(machine(Ask=retried), name="e").pending_callbacks
    with world.store(resources={}) as store:
        store.tokens.send_task_failure(task["taskToken"], "Later")
        with pytest.raises(BindingsMissing):
            store.resume("e")
        assert store.get("e").status == "PAUSED"
    with world.store() as store:
        assert len(store.resume("e").pending_callbacks) == 1
    assert len(world.sent) == 2
