"""A history has the form, the words and the chain of events that AWS records."""

import json
from typing import Any

import pytest

import asl
from asl.compiler import compile_workflow
from asl.core.profile import AWS

pytestmark = pytest.mark.quick

LAMBDA = "arn:aws:states:::lambda:invoke"
FUNCTION = "arn:aws:lambda:us-east-1:111111111111:function:f"
ACTIVITY = "arn:aws:states:us-east-1:111111111111:activity:a"
BUSY = {"raise": {"Error": "Busy", "Cause": "later"}}


def one(state: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"StartAt": "A", "States": {"A": state, **others}}


def task(resource: str = LAMBDA, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": resource, "End": True, **fields}


def history(document: Any, input: Any = None, **mocks: Any) -> list[dict[str, Any]]:
    program = compile_workflow(document, AWS, "w")  # what is not checked may repeat names
    result = asl.run(program, {} if input is None else input, mocks=mocks, clock="virtual")
    events: list[dict[str, Any]] = result.history()["events"]
    assert json.loads(json.dumps(events)) == events
    return events


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def previous(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(event["type"], event["previousEventId"]) for event in events]


def details(events: list[dict[str, Any]], kind: str) -> Any:
    event = next(event for event in events if event["type"] == kind)
    return next((part for key, part in event.items() if key.endswith("EventDetails")), None)


def test_values_are_texts_of_json() -> None:
    """Input, output and variables are written as AWS writes them."""
    events = history(one({"Type": "Pass", "Assign": {"x": ["é"]}, "End": True}), {"a": 1})
    assert events[2] == {
        "timestamp": "2024-01-01T00:00:00.000Z",
        "type": "PassStateExited",
        "id": 3,
        "previousEventId": 2,
        "stateExitedEventDetails": {
            "name": "A",
            "output": '{"a":1}',
            "outputDetails": {"truncated": False},
            "assignedVariables": {"x": '["é"]'},
            "assignedVariablesDetails": {"truncated": False},
        },
    }


def test_previous_event_id_of_first_state_is_zero() -> None:
    """The start of the execution leads to no event, as AWS has it."""
    events = history(one({"Type": "Pass", "End": True}))
    assert previous(events) == [
        ("ExecutionStarted", 0),
        ("PassStateEntered", 0),
        ("PassStateExited", 2),
        ("ExecutionSucceeded", 3),
    ]


def test_each_branch_has_a_chain_of_its_own() -> None:
    """Branches begin at the fork; its success leads to nothing, so the exit follows a branch."""
    branch = one({"Type": "Pass", "End": True})
    events = history(one({"Type": "Parallel", "Branches": [branch, branch], "End": True}))
    assert previous(events)[2:] == [
        ("ParallelStateStarted", 2),
        ("PassStateEntered", 3),
        ("PassStateExited", 4),
        ("PassStateEntered", 3),
        ("PassStateExited", 6),
        ("ParallelStateSucceeded", 7),
        ("ParallelStateExited", 7),
        ("ExecutionSucceeded", 9),
    ]


def test_failed_iteration_event_has_no_successor() -> None:
    """What follows it follows the last event inside."""
    failing = one({"Type": "Fail", "Error": "Bad"})
    events = history(one({"Type": "Map", "ItemProcessor": failing, "End": True}), [1])
    assert previous(events)[1:] == [
        ("MapStateEntered", 0),
        ("MapStateStarted", 2),
        ("MapIterationStarted", 3),
        ("FailStateEntered", 4),
        ("MapIterationFailed", 5),
        ("MapStateFailed", 5),
        ("ExecutionFailed", 7),
    ]
    assert details(events, "MapStateStarted") == {"length": 1}
    assert details(events, "MapIterationFailed") == {"name": "A", "index": 0}


def test_aborted_siblings_follow_the_failure() -> None:
    """Branches and iterations that are stopped follow the last event of the one that failed."""
    failing = {
        "StartAt": "W",
        "States": {
            "W": {"Type": "Wait", "Seconds": 1, "Next": "F"},
            "F": {"Type": "Fail", "Error": "Bad"},
        },
    }
    waiting = one({"Type": "Wait", "Seconds": 9, "End": True})
    events = history(one({"Type": "Parallel", "Branches": [waiting, failing], "End": True}))
    assert previous(events)[5:] == [
        ("WaitStateExited", 5),
        ("FailStateEntered", 6),
        ("WaitStateAborted", 7),
        ("ParallelStateFailed", 7),
        ("ExecutionFailed", 9),
    ]


def test_aborted_execution_event_has_no_predecessor() -> None:
    """The execution's time is over whatever the states do."""
    document = {"TimeoutSeconds": 1, **one({"Type": "Wait", "Seconds": 9, "End": True})}
    assert previous(history(document))[1:] == [("WaitStateEntered", 0), ("ExecutionTimedOut", 0)]


def test_the_success_of_a_run_leads_to_that_of_its_map_alone() -> None:
    """What comes after follows the start of the run."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one({"Type": "Pass", "End": True}),
    }
    events = history(one({"Type": "Map", "ItemProcessor": processor, "End": True}), [1, 2])
    assert previous(events)[2:] == [
        ("MapStateStarted", 2),
        ("MapRunStarted", 3),
        ("MapRunSucceeded", 4),
        ("MapStateSucceeded", 5),
        ("MapStateExited", 4),
        ("ExecutionSucceeded", 7),
    ]


def test_what_a_fork_does_with_its_result_fails_behind_its_success() -> None:
    """Measured on AWS; the success of a fork that goes on leads to nothing."""
    ahead = {"Type": "Parallel", "Branches": [one({"Type": "Succeed"})], "Next": "B"}
    state = {
        "Type": "Parallel",
        "Branches": [one({"Type": "Pass", "End": True})],
        "ResultSelector": {"m.$": "$.nope"},
        "End": True,
    }
    events = history(one(ahead, B=state))
    assert previous(events)[7:] == [
        ("ParallelStateEntered", 7),
        ("ParallelStateStarted", 8),
        ("PassStateEntered", 9),
        ("PassStateExited", 10),
        ("ParallelStateSucceeded", 11),
        ("ExecutionFailed", 12),
    ]


def test_a_fork_that_has_not_succeeded_fails_behind_its_branch() -> None:
    """The success of an earlier one means nothing to it."""
    ahead = {"Type": "Parallel", "Branches": [one({"Type": "Succeed"})], "Next": "B"}
    bad = one({"Type": "Pass", "Parameters": {"m.$": "$.nope"}, "End": True})
    events = history(one(ahead, B={"Type": "Parallel", "Branches": [bad], "End": True}))
    assert previous(events)[8:] == [
        ("ParallelStateStarted", 8),
        ("PassStateEntered", 9),
        ("ExecutionFailed", 10),
    ]


def test_a_catcher_that_fails_goes_on_from_before_the_failure() -> None:
    """The first failure of the fork leads to nothing."""
    catcher = {
        "ErrorEquals": ["States.ALL"],
        "Output": "{% $states.input.missing %}",
        "Next": "B",
    }
    state = {
        "Type": "Parallel",
        "QueryLanguage": "JSONata",
        "Branches": [one({"Type": "Fail", "Error": "Bad"})],
        "Catch": [catcher],
        "End": True,
    }
    events = history(one(state, B={"Type": "Succeed"}))
    assert previous(events)[3:] == [
        ("FailStateEntered", 3),
        ("ParallelStateFailed", 4),
        ("EvaluationFailed", 4),
        ("ParallelStateFailed", 6),
        ("ExecutionFailed", 7),
    ]


def test_a_pure_loop_fills_the_history() -> None:
    """The last event that AWS takes is the failure."""
    rule = {"Variable": "$.n", "NumericEquals": 1, "Next": "A"}
    events = history(one({"Type": "Choice", "Choices": [rule]}), {"n": 1})
    assert events[-1]["type"] == "ExecutionFailed"
    assert (events[-1]["id"], events[-1]["previousEventId"]) == (25_000, 24_999)
    assert events[-2]["type"] == "ChoiceStateExited"


def test_a_retried_fork_starts_anew_and_fails_once() -> None:
    """It fails only when no retrier takes the error any more."""
    state = {
        "Type": "Map",
        "ItemProcessor": one({"Type": "Fail", "Error": "Bad"}),
        "Retry": [{"ErrorEquals": ["Bad"], "MaxAttempts": 1}],
        "End": True,
    }
    events = types(history(one(state), [1]))
    assert events.count("MapStateStarted") == events.count("MapIterationFailed") == 2
    assert events.count("MapStateFailed") == 1
    assert events[-2:] == ["MapStateFailed", "ExecutionFailed"]


def test_a_caught_fork_fails_and_exits() -> None:
    """A catcher does not hide that a branch failed."""
    state = {
        "Type": "Parallel",
        "Branches": [one(task())],
        "Catch": [{"ErrorEquals": ["Busy"], "Next": "B"}],
        "End": True,
    }
    events = history(one(state, B={"Type": "Succeed"}), A=BUSY)
    assert types(events)[5:10] == [
        "TaskStarted",
        "TaskFailed",
        "TaskStateAborted",
        "ParallelStateFailed",
        "ParallelStateExited",
    ]


def test_runtime_error_ends_execution_without_further_events() -> None:
    """No iteration and no Map fails before the execution does."""
    inside = one({"Type": "Pass", "Parameters": {"x.$": "$.nothing"}, "End": True})
    events = history(one({"Type": "Map", "ItemProcessor": inside, "End": True}), [1])
    assert types(events)[-2:] == ["PassStateEntered", "ExecutionFailed"]
    assert "(entered at the event id #5)" in details(events, "ExecutionFailed")["cause"]


def test_interrupted_task_is_aborted() -> None:
    """When a branch fails, so do the tasks, waits and forks of the others."""
    branches = [
        one(task(), B={"Type": "Succeed"}),
        one({"Type": "Wait", "Seconds": 9, "End": True}),
    ]
    events = history(
        one({"Type": "Parallel", "Branches": branches, "End": True}), A={**BUSY, "delay": 1}
    )
    assert types(events)[-5:] == [
        "TaskFailed",
        "TaskStateAborted",
        "WaitStateAborted",
        "ParallelStateFailed",
        "ExecutionFailed",
    ]


def test_an_attempt_that_never_called_is_no_failed_task() -> None:
    """Parameters that cannot be built fail the state, not the task."""
    state = task(Parameters={"x.$": "States.StringToJson('{')"})
    assert types(history(one(state))) == [
        "ExecutionStarted",
        "TaskStateEntered",
        "ExecutionFailed",
    ]


def test_a_task_succeeds_even_if_its_result_cannot_be_used() -> None:
    """What OutputPath cannot filter fails the state after the task's end."""
    events = history(one(task(OutputPath="$.nothing")), A={"return": {"ok": True}})
    assert types(events)[-2:] == ["TaskSucceeded", "ExecutionFailed"]
    assert details(events, "TaskSucceeded")["output"] == '{"ok":true}'


@pytest.mark.parametrize(
    ("resource", "prefix", "scheduled"),
    [
        (
            "arn:aws:states:::sqs:sendMessage",
            "Task",
            {"resourceType": "sqs", "resource": "sendMessage", "region": "us-east-1"}
            | {"parameters": '{"n":1}'},
        ),
        (
            "arn:aws:states:::aws-sdk:dynamodb:putItem",
            "Task",
            {"resourceType": "aws-sdk:dynamodb", "resource": "putItem", "region": "us-east-1"}
            | {"parameters": '{"n":1}'},
        ),
        (
            FUNCTION,
            "LambdaFunction",
            {"resource": FUNCTION, "input": '{"n":1}', "inputDetails": {"truncated": False}},
        ),
        (
            ACTIVITY,
            "Activity",
            {"resource": ACTIVITY, "input": '{"n":1}', "inputDetails": {"truncated": False}},
        ),
    ],
)
def test_event_names_of_each_kind_of_task(
    resource: str, prefix: str, scheduled: dict[str, Any]
) -> None:
    """Functions, activities and integrations are told of in three ways, with their limits."""
    document = one(task(resource, TimeoutSeconds=9, HeartbeatSeconds=3))
    events = history(document, {"n": 1}, A={"return": 1})
    assert types(events)[2:5] == [
        f"{prefix}{what}" for what in ("Scheduled", "Started", "Succeeded")
    ]
    limits = {"timeoutInSeconds": 9, "heartbeatInSeconds": 3}
    assert details(events, f"{prefix}Scheduled") == scheduled | limits
    assert details(events, f"{prefix}Succeeded")["output"] == "1"


@pytest.mark.parametrize("form", ["sync", "sync:2", "waitForTaskToken"])
@pytest.mark.parametrize(("answer", "end"), [({"return": 1}, "Succeeded"), (BUSY, "Failed")])
def test_wait_for_task_token_emits_task_submitted(form: str, answer: Any, end: str) -> None:
    """The call has been answered before the task ends, well or badly."""
    events = history(one(task(f"arn:aws:states:::x:do.{form}")), A=answer)
    assert types(events)[4:6] == ["TaskSubmitted", f"Task{end}"]
    assert details(events, "TaskSubmitted") == {"resourceType": "x", "resource": f"do.{form}"}


def test_evaluation_failed_is_emitted_once() -> None:
    """EvaluationFailed says where; the causes name the event with which the state was entered."""
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": {"x": "{% $nothing %}"}}
    events = history(one({**state, "End": True}))
    assert types(events)[2:] == ["EvaluationFailed", "ExecutionFailed"]
    assert details(events, "EvaluationFailed") == {
        **details(events, "ExecutionFailed"),
        "location": "Output/x",
        "state": "A",
    }


def test_every_chain_leads_back_to_the_start() -> None:
    """Each event follows an earlier one, also where iterations run at the same time."""
    nested = one(task(Retry=[{"ErrorEquals": ["Busy"]}]))
    document = one({"Type": "Map", "ItemProcessor": nested, "End": True})
    events = history(
        document, [1, 2, 3], A={"sequence": [BUSY, {"return": 1, "delay": 5}, {"return": 2}]}
    )
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert all(event["previousEventId"] < event["id"] for event in events)


def test_other_profiles_have_the_same_form() -> None:
    """Types that AWS has not are exported by the same rule."""
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "X", "Retry": [{"ErrorEquals": ["Busy"]}], "End": True}
        },
    }
    result = asl.run(document, agents={"X": {"sequence": [BUSY, {"return": 1}]}}, clock="virtual")
    retried = result.history()["events"][4]
    assert retried["retryScheduledEventDetails"]["delay"] == 1
