"""Task tokens and activities: answers from outside, on both clocks, and their wrong use."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import asl
from asl.effects.task_tokens import MAX_CLOSED

ARN = "arn:aws:states:::sqs:sendMessage"
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:Sign"
both_clocks = pytest.mark.parametrize("clock", ["wall", "virtual"])


def asking(**fields: Any) -> dict[str, Any]:
    """Return a workflow whose state `Ask` waits for the answer to its token."""
    state = {
        "Type": "Task",
        "Resource": f"{ARN}.waitForTaskToken",
        "Parameters": {"token.$": "$$.Task.Token"},
        "End": True,
        **fields,
    }
    return {"StartAt": "Ask", "States": {"Ask": state}}


def signing(**fields: Any) -> dict[str, Any]:
    """Return a workflow whose state `Sign` is an activity."""
    state = {"Type": "Task", "Resource": ACTIVITY, "End": True, **fields}
    return {"StartAt": "Sign", "States": {"Sign": state}}


@pytest.fixture
def tokens() -> Iterator[asl.TaskTokens]:
    with asl.TaskTokens() as desk:
        yield desk


def in_a_thread(function: Callable[..., object], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


# Who may answer ----------------------------------------------------------------------------------


@both_clocks
def test_the_handler_answers_before_it_returns(tokens: asl.TaskTokens, clock: str) -> None:
    """The answer is kept until the handler has returned; what it returns is dropped."""

    def handler(parameters: Any) -> str:
        tokens.send_task_success(parameters["token"], {"ok": True})
        return "dropped"

    result = asl.run(asking(), resources={ARN: handler}, tokens=tokens, clock=clock)
    assert result.output == {"ok": True}


@both_clocks
def test_another_thread_answers(tokens: asl.TaskTokens, clock: str) -> None:
    """A virtual clock stands still for a thread that is about to answer."""

    def handler(parameters: Any) -> None:
        in_a_thread(tokens.send_task_success, parameters["token"], [1])

    document = asking(TimeoutSeconds=3600)
    result = asl.run(document, resources={ARN: handler}, tokens=tokens, clock=clock)
    assert (result.output, result.elapsed < 3600) == ([1], True)


@both_clocks
def test_a_thread_keeps_a_task_alive(tokens: asl.TaskTokens, clock: str) -> None:
    """Heartbeats come from any thread, on a virtual clock, too."""

    def work(token: str) -> None:
        for _ in range(100):
            tokens.send_task_heartbeat(token)
        tokens.send_task_success(token, {"done": True})

    def handler(parameters: Any) -> None:
        in_a_thread(work, parameters["token"])

    document = asking(HeartbeatSeconds=1, TimeoutSeconds=600)
    result = asl.run(document, resources={ARN: handler}, tokens=tokens, clock=clock)
    assert result.output == {"done": True}


def test_another_event_loop_answers(tokens: asl.TaskTokens) -> None:
    """A desk is not bound to the loop of the execution."""

    async def answering(token: str) -> None:
        tokens.send_task_success(token, 1)

    def handler(parameters: Any) -> None:
        in_a_thread(asyncio.run, answering(parameters["token"]))

    assert asl.run(asking(), resources={ARN: handler}, tokens=tokens).output == 1


@both_clocks
def test_the_loop_of_the_caller_answers(tokens: asl.TaskTokens, clock: str) -> None:
    """With `arun` the coroutine beside it may answer."""
    asked: asyncio.Queue[str] = asyncio.Queue()

    async def main() -> Any:
        loop = asyncio.get_running_loop()

        def handler(parameters: Any) -> None:
            loop.call_soon_threadsafe(asked.put_nowait, parameters["token"])

        run = asyncio.ensure_future(
            asl.arun(asking(), resources={ARN: handler}, tokens=tokens, clock=clock)
        )
        tokens.send_task_success(await asked.get(), {"from": "beside"})
        return await run

    assert asyncio.run(main()).output == {"from": "beside"}


def test_a_handler_answers_by_its_call() -> None:
    """Without a desk of the caller's own, a run has one that handlers see."""

    def handler(parameters: Any, call: asl.Call) -> None:
        assert call.token == parameters["token"]
        in_a_thread(call.tokens.send_task_failure, call.token, "No", "because")

    result = asl.run(asking(), resources={ARN: handler})
    assert (result.error, result.cause) == ("No", "because")


def test_task_tokens_serve_many_executions(tokens: asl.TaskTokens) -> None:
    """Tokens are told apart by execution."""

    async def handler(parameters: Any, call: asl.Call) -> None:
        tokens.send_task_success(parameters["token"], [call.execution_id.rpartition(":")[2]])

    async def main() -> list[Any]:
        runs = [
            asl.arun(asking(), name=f"n{i}", resources={ARN: handler}, tokens=tokens)
            for i in range(20)
        ]
        return [result.output for result in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [[f"n{i}"] for i in range(20)]


def test_each_attempt_has_a_token_of_its_own(tokens: asl.TaskTokens) -> None:
    """The token of a failed attempt is of no use for the next one."""
    seen: list[str] = []

    def handler(parameters: Any) -> None:
        seen.append(parameters["token"])
        if len(seen) == 1:
            tokens.send_task_failure(seen[0], "Again")
        else:
            with pytest.raises(tokens.exceptions.TaskTimedOut):
                tokens.send_task_success(seen[0], 0)
            tokens.send_task_success(seen[1], 1)

    document = asking(Retry=[{"ErrorEquals": ["Again"], "MaxAttempts": 1}])
    result = asl.run(document, resources={ARN: handler}, tokens=tokens, clock="virtual")
    assert (result.output, len(set(seen))) == (1, 2)


def test_the_same_execution_has_the_same_tokens(tokens: asl.TaskTokens) -> None:
    """A token is made of execution, place and attempt; a finished one may run again."""
    seen = []

    def handler(parameters: Any) -> None:
        seen.append(parameters["token"])
        tokens.send_task_success(parameters["token"], 1)

    for _ in range(2):
        asl.run(asking(), name="same", resources={ARN: handler}, tokens=tokens)
    assert len(set(seen)) == 1


# Nobody answers ----------------------------------------------------------------------------------


@both_clocks
def test_wait_without_possible_answer_fails_immediately(clock: str) -> None:
    """The cause names the state, its token, and what to do."""
    result = asl.run(asking(), resources={ARN: lambda parameters: None}, clock=clock, name="x")
    assert (result.error, result.elapsed < 1) == ("States.Timeout", True)
    assert "state 'Ask': no one can answer the task token" in (result.cause or "")
    assert "tokens=" in (result.cause or "")


def test_wait_without_answer_times_out() -> None:
    """On a virtual clock that is no time at all."""
    result = asl.run(
        asking(TimeoutSeconds=10**6),
        resources={ARN: lambda parameters: None},
        tokens=asl.TaskTokens(patience=0),
        clock="virtual",
    )
    assert (result.error, result.elapsed) == ("States.Timeout", 10**6)


def test_patience_has_an_end() -> None:
    """A virtual clock waits for others once, and no longer than it was told."""
    document = asking(
        TimeoutSeconds=1000, Retry=[{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 2}]
    )
    result = asl.run(
        document,
        resources={ARN: lambda parameters: None},
        tokens=asl.TaskTokens(patience=0.01),
        clock="virtual",
    )
    assert result.elapsed >= 3000


def test_patience_applies_only_to_pending_tokens() -> None:
    """Once a token is answered, the clock jumps as ever."""
    tokens = asl.TaskTokens(patience=10**6)
    document = asking(Next="Rest")
    del document["States"]["Ask"]["End"]
    document["States"]["Rest"] = {"Type": "Wait", "Seconds": 10**7, "End": True}

    def handler(parameters: Any) -> None:
        tokens.send_task_success(parameters["token"], 1)

    assert asl.run(document, resources={ARN: handler}, tokens=tokens, clock="virtual").ok


@pytest.mark.parametrize("patience", [-1, float("inf"), float("nan")])
def test_patience_must_be_seconds(patience: float) -> None:
    """What is no number of seconds is refused."""
    with pytest.raises(asl.AslError, match="patience"):
        asl.TaskTokens(patience=patience)


# Wrong use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "abc", "x" * 3000, None, 7, {}, "A" * 64])
def test_invalid_token_is_refused(tokens: asl.TaskTokens, token: Any) -> None:
    """InvalidToken, as with AWS."""
    with pytest.raises(tokens.exceptions.InvalidToken, match="not a task token"):
        tokens.send_task_success(token, {})
    with pytest.raises(tokens.exceptions.InvalidToken):
        tokens.send_task_failure(token)
    with pytest.raises(tokens.exceptions.InvalidToken):
        tokens.send_task_heartbeat(token)


def test_a_token_of_no_task_does_not_exist(tokens: asl.TaskTokens) -> None:
    """TaskDoesNotExist, as with AWS: one of another desk, for example."""
    with pytest.raises(tokens.exceptions.TaskDoesNotExist, match="tokens="):
        tokens.send_task_heartbeat("0" * 64)


def used(tokens: asl.TaskTokens, **fields: Any) -> tuple[str, asl.Result]:
    """Run to the end and return the token that was used, answered at once if there is no limit."""
    seen = []

    def handler(parameters: Any) -> None:
        seen.append(parameters["token"])
        if not fields:
            tokens.send_task_success(parameters["token"], 1)

    result = asl.run(asking(**fields), resources={ARN: handler}, tokens=tokens, clock="virtual")
    return seen[0], result


def test_a_token_is_used_once(tokens: asl.TaskTokens) -> None:
    """TaskTimedOut says that it was answered already; the first answer holds."""
    token, result = used(tokens)
    for send in (tokens.send_task_heartbeat, tokens.send_task_failure):
        with pytest.raises(tokens.exceptions.TaskTimedOut, match="answered already"):
            send(token)
    with pytest.raises(asl.AslError, match="closed"):
        tokens.send_task_success(token, 2)
    assert result.output == 1


def test_the_token_of_a_task_that_timed_out_is_closed() -> None:
    """TaskTimedOut, as with AWS."""
    tokens = asl.TaskTokens(patience=0)
    token, result = used(tokens, TimeoutSeconds=5)
    assert result.error == "States.Timeout"
    with pytest.raises(tokens.exceptions.TaskTimedOut, match="timed out"):
        tokens.send_task_success(token, 1)


class Unknown:
    """Something that JSON cannot say."""


@pytest.mark.parametrize(
    "output", ["not json", "", "{", "NaN", "[1,]", {1, 2}, Unknown(), float("nan"), b"{}"]
)
def test_output_that_is_not_json_is_refused(tokens: asl.TaskTokens, output: Any) -> None:
    """InvalidOutput, as with AWS; the task still waits for a better answer."""

    def handler(parameters: Any) -> None:
        with pytest.raises(tokens.exceptions.InvalidOutput):
            tokens.send_task_success(parameters["token"], output)
        tokens.send_task_success(parameters["token"], "1")

    result = asl.run(asking(), resources={ARN: handler}, tokens=tokens)
    assert result.output == 1, result.cause


@pytest.mark.parametrize(
    ("output", "answer"),
    [('"text"', "text"), ('{"a": [1]}', {"a": [1]}), ("null", None), (None, None), ([1.5], [1.5])],
)
def test_output_is_json_text_or_a_value(tokens: asl.TaskTokens, output: Any, answer: Any) -> None:
    """A text is JSON text, as with AWS; everything else is the value itself."""
    handler = {"arn:*": lambda parameters: tokens.send_task_success(parameters["token"], output)}
    assert asl.run(asking(), resources=handler, tokens=tokens).output == answer


def test_the_answer_is_a_copy(tokens: asl.TaskTokens) -> None:
    """Who answers may go on working with the value."""
    value = {"n": [1]}

    def handler(parameters: Any) -> None:
        tokens.send_task_success(parameters["token"], value)
        value["n"].append(2)

    assert asl.run(asking(), resources={ARN: handler}, tokens=tokens).output == {"n": [1]}


def test_error_and_cause_are_texts(tokens: asl.TaskTokens) -> None:
    """Anything else is misuse."""
    with pytest.raises(asl.AslError, match="texts"):
        tokens.send_task_failure("0" * 64, 7)  # type: ignore[arg-type]


def test_tokens_must_be_task_tokens() -> None:
    """Something else given as `tokens` is misuse."""
    with pytest.raises(asl.AslError, match="TaskTokens"):
        asl.run(asking(), tokens={})  # type: ignore[arg-type]


def test_executions_of_one_id_cannot_share_task_tokens(tokens: asl.TaskTokens) -> None:
    """Their tokens would be the same; the second one fails and says why."""

    def handler(parameters: Any) -> None:
        second = asl.run(asking(), name="same", resources={ARN: handler}, tokens=tokens)
        tokens.send_task_success(parameters["token"], [second.error, second.cause])

    first = asl.run(asking(), name="same", resources={ARN: handler}, tokens=tokens)
    error, cause = first.output
    assert (error, "names of their own" in cause) == ("States.TaskFailed", True)


def test_max_closed_tokens_are_remembered(tokens: asl.TaskTokens) -> None:
    """A desk that lives long does not grow."""
    for number in range(MAX_CLOSED + 10):
        tokens._open[f"{number:064}"] = object()  # type: ignore[assignment]
        tokens._close(f"{number:064}", "it was answered already")
    assert len(tokens._closed) == MAX_CLOSED
    with pytest.raises(tokens.exceptions.TaskDoesNotExist):
        tokens.send_task_heartbeat("0" * 64)


def test_answer_to_ended_execution_is_refused(tokens: asl.TaskTokens) -> None:
    """A run that was cancelled does not take answers any more."""
    asked: asyncio.Queue[str] = asyncio.Queue()

    async def handler(parameters: Any) -> None:
        asked.put_nowait(parameters["token"])

    async def main() -> str:
        run = asyncio.ensure_future(asl.arun(asking(), resources={ARN: handler}, tokens=tokens))
        token = await asked.get()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return token

    token = asyncio.run(main())
    with pytest.raises(tokens.exceptions.TaskTimedOut):
        tokens.send_task_success(token, 1)


def test_a_handlers_own_answer_need_not_be_json(tokens: asl.TaskTokens) -> None:
    """It is dropped; the history shows it where it can."""

    def handler(parameters: Any) -> object:
        tokens.send_task_success(parameters["token"], 1)
        return Unknown()

    result = asl.run(asking(), resources={ARN: handler}, tokens=tokens)
    assert result.output == 1
    submitted = next(event for event in result.events if event.type == "TaskSubmitted")
    assert submitted.details == {}


# Activities --------------------------------------------------------------------------------------


def serve(client: asl.TaskTokens, answer: Callable[[Any], Any] = lambda task: task) -> None:
    """Work as the code of AWS's users does, until there are no more tasks."""
    while True:
        task = client.get_activity_task(activityArn=ACTIVITY, workerName="w")
        if not task["taskToken"]:
            return
        client.send_task_success(
            taskToken=task["taskToken"], output=json.dumps(answer(json.loads(task["input"] or "")))
        )


@both_clocks
def test_a_polling_worker_gets_the_tasks(tokens: asl.TaskTokens, clock: str) -> None:
    """The code of a worker runs unchanged in a thread."""
    worker = in_a_thread(serve, tokens, lambda task: {"signed": task["by"]})
    document = signing(TimeoutSeconds=60)
    result = asl.run(document, {"by": "Ada"}, tokens=tokens, clock=clock, profile="aws")
    assert result.output == {"signed": "Ada"}
    started = next(event for event in result.events if event.type == "ActivityStarted")
    assert started.details["workerName"] == "w"
    tokens.close()
    worker.join(timeout=60)
    assert not worker.is_alive()


def test_workers_share_the_tasks(tokens: asl.TaskTokens) -> None:
    """Each task is taken once, whoever is first."""
    for _ in range(3):
        in_a_thread(serve, tokens, lambda n: n * 2)
    document = {
        "StartAt": "Each",
        "States": {"Each": {"Type": "Map", "ItemProcessor": signing(), "End": True}},
    }
    assert asl.run(document, list(range(50)), tokens=tokens).output == list(range(0, 100, 2))


def test_get_activity_task_without_task_returns_none(tokens: asl.TaskTokens) -> None:
    """A worker hears so after the time that it would wait."""
    assert tokens.get_activity_task(ACTIVITY, wait=0) == {"taskToken": None, "input": None}


def test_get_activity_task_after_close_returns_none(tokens: asl.TaskTokens) -> None:
    """A worker that waits hears at once that there will be none."""
    heard: list[Any] = []
    worker = in_a_thread(lambda: heard.append(tokens.get_activity_task(ACTIVITY)))
    tokens.close()
    worker.join(timeout=60)
    assert heard == [{"taskToken": None, "input": None}]


def test_a_task_that_timed_out_is_not_offered_any_more() -> None:
    """It was taken back from the queue; its token is closed."""
    tokens = asl.TaskTokens(patience=0)
    result = asl.run(signing(TimeoutSeconds=5), tokens=tokens, clock="virtual")
    assert result.error == "States.Timeout"
    assert tokens.get_activity_task(ACTIVITY, wait=0)["taskToken"] is None


def test_late_worker_gets_task_timed_out() -> None:
    """The task was taken, timed out, and is closed."""
    tokens = asl.TaskTokens(patience=0.5)
    taken: list[Any] = []

    def slow() -> None:
        taken.append(tokens.get_activity_task(ACTIVITY))

    in_a_thread(slow)
    result = asl.run(signing(TimeoutSeconds=5), tokens=tokens, clock="virtual", profile="aws")
    assert [event.type for event in result.events][-3:] == [
        "ActivityStarted",
        "ActivityTimedOut",
        "ExecutionFailed",
    ]
    with pytest.raises(tokens.exceptions.TaskTimedOut):
        tokens.send_task_success(taken[0]["taskToken"], "{}")


@pytest.mark.parametrize("arn", ["", "Sign", ARN, None])
def test_an_activity_has_an_arn(tokens: asl.TaskTokens, arn: Any) -> None:
    """Anything else is misuse."""
    with pytest.raises(asl.AslError, match="not the ARN of an activity"):
        tokens.get_activity_task(arn)


def test_concurrent_answers_one_is_accepted(tokens: asl.TaskTokens) -> None:
    """However they race: one is taken, the others hear that they came too late."""
    outcomes: list[Any] = []

    def race(token: str, number: int) -> None:
        try:
            tokens.send_task_success(token, number)
        except asl.AslError as error:
            outcomes.append(type(error))
        else:
            outcomes.append(number)

    def handler(parameters: Any) -> None:
        racers = [in_a_thread(race, parameters["token"], number) for number in range(20)]
        for racer in racers:
            racer.join()

    result = asl.run(asking(), resources={ARN: handler}, tokens=tokens)
    (winner,) = [each for each in outcomes if isinstance(each, int)]
    assert result.output == winner
    assert outcomes.count(tokens.exceptions.TaskTimedOut) == 19
