"""One state alone: what the recordings of AWS's TestState do not show."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.engine.agent import Agent

LAMBDA = "arn:aws:states:::lambda:invoke"
READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
    "Parameters": {"Bucket": "b", "Key": "k"},
}


def task(**fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": LAMBDA, "End": True, **fields}


def each(distributed: bool = False, **fields: Any) -> dict[str, Any]:
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"} if distributed else {}
    inner = {"StartAt": "Inner", "States": {"Inner": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": config or {"Mode": "INLINE"}, **inner}
    return {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}


def debugged(state: Any, input: Any = None, **more: Any) -> dict[str, Any]:
    """Return the stages of a state that succeeds."""
    result = asl.test_state(state, {} if input is None else input, level="DEBUG", **more)
    assert result.status == "SUCCEEDED", (result.error, result.cause)
    return result.inspection


def failed(name: str | None = "Bad", cause: str | None = "why") -> dict[str, Any]:
    named = {"error": name, "cause": cause}
    return {"errorOutput": {key: text for key, text in named.items() if text is not None}}


# What it leads to


def test_a_state_may_lead_to_itself() -> None:
    """It is run once, whatever comes next."""
    state = {"Type": "Pass", "Next": "StateName"}
    assert asl.test_state(state, 1).to_json() == {
        "status": "SUCCEEDED",
        "output": 1,
        "nextState": "StateName",
    }


def test_a_chain_of_tests_walks_through_a_document() -> None:
    """Output and next state of one test are input and name of the next one."""
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Parameters": {"n": 3}, "Next": "B"},
            "B": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericGreaterThan": 2, "Next": "C"}],
            },
            "C": {"Type": "Wait", "Seconds": 9, "End": True},
        },
    }
    name: str | None = "A"
    data: Any = {}
    walked = []
    while name is not None:
        walked.append(name)
        result = asl.test_state(document, data, state=name)
        data, name = result.output, result.next_state
    assert (walked, data) == (["A", "B", "C"], {"n": 3})


def test_a_state_within_a_map_sees_its_input_as_the_item() -> None:
    """The context object has the first item; the query language is that of the machine."""
    inner = {"Type": "Pass", "Output": "{% $states.context.Map.Item %}", "End": True}
    outer = each()
    outer["ItemProcessor"]["States"]["Inner"] = inner
    document = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": outer}}
    result = asl.test_state(document, "x", state="Inner")
    assert result.output == {"Index": 0, "Value": "x"}


@pytest.mark.parametrize(
    ("state", "input", "error"),
    [
        ({"Type": "Pass", "Parameters": {"x.$": "$.no"}, "End": True}, {}, "States.Runtime"),
        ({"Type": "Fail", "Error": "E"}, {}, "E"),
    ],
)
def test_a_state_that_fails_is_a_result(state: Any, input: Any, error: str) -> None:
    """It has no output and no next state."""
    result = asl.test_state(state, input, level="DEBUG")
    assert (result.status, result.error, result.next_state) == ("FAILED", error, None)
    assert "output" not in result.to_json()
    assert result.inspection == {"input": {}, "afterInputPath": {}}


# Retry and Catch


@pytest.mark.parametrize(
    ("retries", "status", "seconds"),
    [(0, "RETRIABLE", 2), (2, "RETRIABLE", 8), (3, "FAILED", None)],
)
def test_the_retries_made_so_far_decide(retries: int, status: str, seconds: int | None) -> None:
    """The interval grows with each of them, up to the last."""
    state = task(
        Retry=[
            {"ErrorEquals": ["Other"]},
            {"ErrorEquals": ["Bad"], "IntervalSeconds": 2, "MaxAttempts": 3},
        ]
    )
    result = asl.test_state(
        state, mock=failed(), level="DEBUG", configuration={"retrierRetryCount": retries}
    )
    assert result.status == status
    delay = {} if seconds is None else {"retryBackoffIntervalSeconds": seconds}
    assert result.inspection.get("errorDetails") == {"retryIndex": 1, **delay}


def test_a_caught_error_goes_where_the_catcher_leads() -> None:
    """The output has the error by ResultPath; variables are those of the catcher."""
    catcher = {
        "ErrorEquals": ["States.ALL"],
        "ResultPath": "$.e",
        "Assign": {"seen.$": "$.Error"},
        "Next": "Mend",
    }
    result = asl.test_state(task(Catch=[catcher]), {"a": 1}, mock=failed(), level="DEBUG")
    assert result.to_json() == {
        "status": "CAUGHT_ERROR",
        "output": {"a": 1, "e": {"Error": "Bad", "Cause": "why"}},
        "nextState": "Mend",
        "error": "Bad",
        "cause": "why",
        "inspectionData": {
            "input": {"a": 1},
            "afterInputPath": {"a": 1},
            "afterParameters": {"a": 1},
            "variables": {"seen": "Bad"},
            "errorDetails": {"catchIndex": 0},
        },
    }


@pytest.mark.parametrize("caught", [False, True])
def test_a_cause_names_no_event_where_there_is_no_history(caught: bool) -> None:
    """The answers of TestState begin with the fault (floci-io/floci pull requests 2684, 2689)."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "End"}] if caught else []
    state = task(QueryLanguage="JSONata", Arguments="{% $states.input.absent %}", Catch=catch)
    result = asl.test_state(state, {}, mock={"result": {}})
    cause = (
        "The JSONata expression '$states.input.absent' specified for the field 'Arguments' "
        "returned nothing (undefined)."
    )
    assert (result.error, result.cause) == ("States.QueryEvaluationError", cause)
    assert result.output == ({"Error": result.error, "Cause": cause} if caught else None)


def test_a_fault_before_the_work_comes_before_its_mock() -> None:
    """What cannot be handed over is not answered."""
    result = asl.test_state(
        task(Parameters={"FunctionName": "f", "x.$": "$.no"}), mock={"result": 1}, level="DEBUG"
    )
    assert (result.status, result.error) == ("FAILED", "States.Runtime")
    assert result.inspection == {"input": {}, "afterInputPath": {}}


# Without a mock


def test_task_without_mock_calls_its_handler() -> None:
    """What is registered answers as in an execution."""
    state = task(Parameters={"FunctionName": "f", "n.$": "$.n"}, ResultSelector={"double.$": "$.x"})
    seen = debugged(state, {"n": 2}, resources={LAMBDA: lambda given: {"x": 2 * given["n"]}})
    assert seen["afterParameters"] == {"FunctionName": "f", "n": 2}
    assert (seen["result"], seen["afterResultSelector"]) == ({"x": 4}, {"double": 4})


def test_agents_are_tested_in_their_own_profile() -> None:
    """The languages of this project and of AWS are both there."""
    result = asl.test_state(
        {"Type": "Task", "Agent": "A", "End": True},
        1,
        agents={"A": {"echo": True}},
        profile="default",
    )
    assert result.output == 1


def test_variables_before_and_after_the_state() -> None:
    """Those that were given and those that the state assigns."""
    state = {"Type": "Pass", "Output": "{% $a + 1 %}", "Assign": {"b": "{% $a %}"}, "End": True}
    result = asl.test_state(
        {**state, "QueryLanguage": "JSONata"}, variables={"a": 1}, level="TRACE"
    )
    assert result.output == 2
    assert result.inspection == {"input": {}, "variables": {"a": 1, "b": 1}}


# Map


def test_the_inputs_of_iterations_are_shown() -> None:
    """Items, what ItemSelector makes of them, and batches."""
    state = each(
        distributed=True,
        ItemsPath="$.list",
        ItemSelector={"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "all.$": "$.all"},
        ItemBatcher={"MaxItemsPerBatch": 2, "BatchInput": {"b": 1}},
        MaxConcurrencyPath="$.most",
        ToleratedFailurePercentage=50,
    )
    data = {"list": ["x", "y", "z"], "all": True, "most": 4}
    seen = debugged(state, data, mock={"result": []})
    inputs = [{"i": i, "v": v, "all": True} for i, v in enumerate("xyz")]
    assert seen["afterItemsPath"] == ["x", "y", "z"]
    assert seen["afterItemSelector"] == inputs
    assert seen["afterItemBatcher"] == [
        {"BatchInput": {"b": 1}, "Items": inputs[:2]},
        {"BatchInput": {"b": 1}, "Items": inputs[2:]},
    ]
    assert (seen["maxConcurrency"], seen["toleratedFailurePercentage"]) == (4, 50.0)


def test_data_of_an_item_reader_is_given_as_text() -> None:
    """In its original form, as it lies in the bucket."""
    state = each(distributed=True, ItemReader=READER, ItemSelector={"row.$": "$$.Map.Item.Value"})
    seen = debugged(
        state, mock={"result": []}, configuration={"mapItemReaderData": "a,b\n1,2\n3,4\n"}
    )
    assert seen["afterItemSelector"] == [
        {"row": {"a": "1", "b": "2"}},
        {"row": {"a": "3", "b": "4"}},
    ]
    assert "afterItemSelector" not in debugged(state, mock={"result": []})


@pytest.mark.parametrize(("failures", "status"), [(1, "SUCCEEDED"), (2, "FAILED")])
def test_a_map_fails_beyond_what_it_tolerates(failures: int, status: str) -> None:
    """The share counts among the items."""
    state = each(distributed=True, ToleratedFailurePercentage=40)
    result = asl.test_state(
        state,
        [1, 2, 3],
        mock={"result": [1, 2, 3]},
        configuration={"mapIterationFailureCount": failures},
    )
    assert result.status == status
    if status == "FAILED":
        assert result.error == "States.ExceedToleratedFailureThreshold"


# Wrong requests


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"level": "LOUD"}, "no level 'LOUD'; there are INFO, DEBUG, TRACE"),
        ({"mock": {"results": 1}}, "a mock has no 'results' (did you mean 'result'?)"),
        ({"mock": {}}, "a mock has a 'result', or an 'errorOutput'"),
        ({"mock": {"errorOutput": {"error": 5}}}, "'error' and 'cause' are texts, not 5"),
        ({"mock": 5}, "mock must be a mapping, not 5"),
        (
            {"configuration": {"retrierRetryCont": 1}},
            "a configuration has no 'retrierRetryCont' (did you mean 'retrierRetryCount'?)",
        ),
        (
            {"configuration": {"retrierRetryCount": -1}},
            "retrierRetryCount must be a whole number from 0 up, not -1",
        ),
        (
            {"mock": {"result": 1, "errorOutput": {}}},
            "A test mock should have only one of the following fields: [result, errorOutput].",
        ),
        (
            {"configuration": {"mapIterationFailureCount": 0}},
            "TestState does not support MapIterationFailureCount when a mock is not specified.",
        ),
        ({"state": "A"}, "State not found in definition"),
        ({"context": {"State": {"RetryCount": "1"}}}, "State.RetryCount must be a number"),
        ({"context": {"Execution": []}}, "Execution must be an object"),
    ],
)
def test_invalid_test_request_is_refused(request_: dict[str, Any], message: str) -> None:
    """What is wrong is named, before anything runs."""
    with pytest.raises(asl.AslError) as refusal:
        asl.test_state(task(), **request_)
    assert message in str(refusal.value)


def test_a_document_needs_the_name_of_a_state() -> None:
    """The names are listed."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    with pytest.raises(asl.AslError, match="name the state to test; there are A"):
        asl.test_state(document)


def test_faults_of_a_state_have_their_place_in_it() -> None:
    """The state is a document of its own."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.test_state('{"Type": "Pass",\n "InputPth": "$", "End": true}')
    (fault,) = refusal.value.report.errors
    assert (fault.code, fault.pointer, fault.line, fault.column) == ("V-TOP-09", "/InputPth", 2, 2)


def test_an_agent_that_holds_something_is_closed() -> None:
    """Programs and connections do not outlive the test."""

    class Held(Agent):
        has_resources = True
        closed = False

        async def answer(self, payload: Any, call: Any) -> Any:
            return payload

        async def close(self) -> None:
            self.closed = True

    held = Held()
    asl.test_state(task(), 1, resources={LAMBDA: held})
    assert held.closed


def test_items_of_inline_map_are_an_array() -> None:
    """An object is no items, whatever the mock says (AWS, recorded)."""
    processor = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    state = {"Type": "Map", "ItemsPath": "$.x", "ItemProcessor": processor, "End": True}
    result = asl.test_state(state, {"x": {"a": 1}}, mock={"result": [1]})
    assert (result.status, result.error) == ("FAILED", "States.Runtime")
    assert result.cause == 'Reference path "$.x" must point to array.'


@pytest.mark.parametrize("role", ["arn:aws:iam::123456789012:role/tester", None])
def test_role_arn_in_context_object(role: str | None) -> None:
    """The role of the request, null without one (AWS, recorded)."""
    state = {"Type": "Pass", "Parameters": {"role.$": "$$.Execution.RoleArn"}, "End": True}
    assert asl.test_state(state, role=role).output == {"role": role}


# Templates


def including(folder: Path) -> Path:
    """Write a document that includes a template, and return its path."""
    template = {
        "StartAt": "Greet",
        "States": {
            "Greet": {"Type": "Pass", "Parameters": {"hello.$": "$.name"}, "Next": "Each"},
            "Each": each(ItemsPath="$.items"),
        },
    }
    document = {
        "Imports": {"welcome": "welcome.asl.json"},
        "StartAt": "Use",
        "States": {"Use": {"Type": "Include", "Template": "welcome", "End": True}},
    }
    (folder / "welcome.asl.json").write_text(json.dumps(template))
    path = folder / "main.asl.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("state", "input", "output", "next_state"),
    [
        ("Greet", {"name": "Ann"}, {"hello": "Ann"}, "Each"),
        ("Inner", 3, 3, None),
    ],
)
def test_a_state_within_an_included_template_is_found_by_name(
    state: str, input: Any, output: Any, next_state: str | None, tmp_path: Path
) -> None:
    """The template of an Include is a machine like the processor of a Map."""
    result = asl.test_state(including(tmp_path), input, state=state, profile="default")
    assert (result.status, result.output, result.next_state) == ("SUCCEEDED", output, next_state)
