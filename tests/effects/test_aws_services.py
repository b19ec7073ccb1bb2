"""Executions that states start: what happens between them and the run."""

import asyncio
from typing import Any

import pytest

import asl
from asl.agents.process import ProcessAgent
from asl.effects.runtime import MAX_NESTED

from ..agents.workflows import program

STATES = "arn:aws:states:::states:startExecution"
FUNCTION = "arn:aws:lambda:us-east-1:111111111111:function:F"


def starting(name: str = "Child", form: str = ".sync:2", **fields: Any) -> dict[str, Any]:
    """Return a workflow that starts another one."""
    machine = f"arn:aws:states:us-east-1:111111111111:stateMachine:{name}"
    state = {
        "Type": "Task",
        "Resource": STATES + form,
        "Parameters": {"StateMachineArn": machine, "Input.$": "$"},
        "End": True,
        **fields,
    }
    return {"StartAt": "Start", "States": {"Start": state}}


def calling(**fields: Any) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": FUNCTION, "End": True, **fields}
    return {"StartAt": "Call", "States": {"Call": state}}


PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_workflow_is_a_document_or_a_program(clock: str, compiled: bool) -> None:
    """Documents are compiled like the one that starts them."""
    child = asl.compile(PASS) if compiled else PASS
    result = asl.run(starting(), {"a": 1}, workflows={"Child": child}, clock=clock)
    assert result.output["Output"] == {"a": 1}


def test_a_workflow_is_a_path(tmp_path: Any) -> None:
    """As everywhere."""
    (tmp_path / "child.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}'
    )
    result = asl.run(starting(), 7, workflows={"Child": str(tmp_path / "child.asl.json")})
    assert result.output["Output"] == 7


def test_a_wrong_document_is_refused_before_the_start() -> None:
    """All workflows are checked at once, whether they will be started or not."""
    with pytest.raises(asl.InvalidDocument):
        asl.run(PASS, workflows={"Child": {"StartAt": "Nowhere", "States": {}}})


@pytest.mark.parametrize("workflows", [[PASS], "child.asl.json", 7])
def test_workflows_have_names(workflows: Any) -> None:
    """Anything but a mapping is misuse."""
    with pytest.raises(asl.AslError, match="mapping"):
        asl.run(PASS, workflows=workflows)


def test_the_run_ends_after_the_executions_it_started() -> None:
    """Nobody waits for them, and nothing of them is lost."""
    done = []

    async def work(parameters: Any, call: asl.Call) -> None:
        await call.sleep(60)
        done.append(parameters)

    document = {
        "StartAt": "Each",
        "States": {"Each": {"Type": "Map", "ItemProcessor": starting(form=""), "End": True}},
    }
    result = asl.run(
        document,
        [1, 2, 3],
        resources={FUNCTION: work},
        workflows={"Child": calling()},
        clock="virtual",
    )
    assert (result.elapsed, sorted(done)) == (0, [1, 2, 3])


def test_detached_execution_may_start_others() -> None:
    """The run ends with the last of a chain."""
    done = []
    first = starting("Second", "")
    result = asl.run(
        starting("First", ""),
        1,
        resources={FUNCTION: done.append},
        workflows={"First": first, "Second": calling()},
        clock="virtual",
    )
    assert (result.ok, done) == (True, [1])


def test_a_run_that_fails_leaves_the_others_alone() -> None:
    """An execution that nobody waits for does not depend on the one that started it."""
    done = []
    document = starting(form="", Next="No")
    del document["States"]["Start"]["End"]
    document["States"]["No"] = {"Type": "Fail", "Error": "No"}
    result = asl.run(document, 1, resources={FUNCTION: done.append}, workflows={"Child": calling()})
    assert (result.error, done) == ("No", [1])


def test_cancelling_the_run_cancels_all_of_it() -> None:
    """Those that are waited for and those that are not."""
    cancelled = []

    async def main() -> None:
        begun: asyncio.Queue[Any] = asyncio.Queue()

        async def work(parameters: Any) -> None:
            begun.put_nowait(parameters)
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled.append(parameters)
                raise

        document = starting(form="", Next="Wait", ResultPath=None)
        del document["States"]["Start"]["End"]
        document["States"]["Wait"] = starting()["States"]["Start"]
        run = asyncio.ensure_future(
            asl.arun(document, 1, resources={FUNCTION: work}, workflows={"Child": calling()})
        )
        await begun.get()
        await begun.get()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert cancelled == [1, 1]


def test_an_execution_that_is_waited_for_ends_with_its_task() -> None:
    """A timeout of the Task cancels it; what it would have done does not happen."""
    done = []

    async def work(parameters: Any, call: asl.Call) -> None:
        await call.sleep(60)
        done.append(parameters)

    result = asl.run(
        starting(TimeoutSeconds=5),
        resources={FUNCTION: work},
        workflows={"Child": calling()},
        clock="virtual",
    )
    assert (result.error, result.elapsed, done) == ("States.Timeout", 5, [])


def test_agents_are_closed_once_by_the_run(tmp_path: Any) -> None:
    """A program that both workflows call serves both, and ends with the run."""
    agent: ProcessAgent = program(tmp_path, "echo")
    both = starting(Next="Call")
    del both["States"]["Start"]["End"]
    both["States"]["Call"] = calling()["States"]["Call"]
    both["States"]["Start"]["ResultPath"] = "$.first"
    result = asl.run(both, {}, resources={FUNCTION: agent}, workflows={"Child": calling()})
    first = result.output["got"]["first"]["Output"]["pid"]
    assert result.output["pid"] == first
    assert not agent.alive


def test_task_tokens_serve_all_executions_of_the_run() -> None:
    """A token of an execution that was started is answered at the same desk."""
    tokens = asl.TaskTokens()
    child = calling(
        Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        Parameters={"token.$": "$$.Task.Token"},
    )

    def handler(parameters: Any) -> None:
        tokens.send_task_success(parameters["token"], {"n": 1})

    result = asl.run(
        starting(),
        resources={"arn:aws:states:::sqs:*": handler},
        tokens=tokens,
        workflows={"Child": child},
    )
    assert result.output["Output"] == {"n": 1}


def test_depth_is_bounded() -> None:
    """An execution that starts itself comes to an end, whether it waits or not."""
    calls = []
    state = starting("Loop", "")["States"]["Start"]
    loop = calling(Next="Start", ResultPath=None)
    del loop["States"]["Call"]["End"]
    loop["States"]["Start"] = state
    result = asl.run(
        loop,
        1,
        resources={FUNCTION: calls.append},
        workflows={"Loop": loop},
        clock="virtual",
    )
    assert (result.ok, len(calls)) == (True, MAX_NESTED + 1)


def test_result_started_lists_started_executions() -> None:
    """Also of executions that nobody waited for; nothing of one that was cut short."""
    broken = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Broken"}}}
    document = starting("Broken", "", Next="Again", ResultPath=None)
    del document["States"]["Start"]["End"]
    document["States"]["Again"] = starting("Child", ".sync", TimeoutSeconds=5)["States"]["Start"]
    slow = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": True}}}
    result = asl.run(document, workflows={"Broken": broken, "Child": slow}, clock="virtual")
    (only,) = result.started
    assert (result.error, only.error) == ("States.Timeout", "Broken")
    assert only.execution.workflow == "Broken"


def test_prices_hold_for_all_executions() -> None:
    """What a model costs is known to those that are started, too."""
    child = {
        "StartAt": "P",
        "States": {
            "P": {
                "Type": "Pass",
                "Parameters": {"c.$": "States.EstimateCost('abcd', 'm')"},
                "End": True,
            }
        },
    }
    result = asl.run(starting(), workflows={"Child": child}, prices={"m": "0.5"})
    assert result.output["Output"] == {"c": 0.5}


def test_listener_receives_events_of_the_run_only() -> None:
    """Executions that are started have histories of their own."""
    heard: list[str] = []
    asl.run(starting(), workflows={"Child": PASS}, listener=lambda event: heard.append(event.type))
    assert heard.count("ExecutionStarted") == heard.count("ExecutionSucceeded") == 1


def test_names_are_repeated_with_the_execution() -> None:
    """The same execution starts others of the same names."""
    runs = [asl.run(starting(), {}, workflows={"Child": PASS}, name="n").output for _ in range(2)]
    assert runs[0]["Name"] == runs[1]["Name"]


@pytest.mark.parametrize("value", [1, None, [1], "x", {}])
def test_the_payload_may_be_anything(value: Any) -> None:
    """What is no object names no state machine, and that is an error of the Task."""
    result = asl.run(starting(Parameters=value), workflows={"Child": PASS})
    assert result.error == "StepFunctions.ValidationException"
