"""Mock configuration files of Step Functions Local."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.agents.mock_file import InvalidMocks

INVOKE = "arn:aws:states:::lambda:invoke"
SEND = "arn:aws:states:::sqs:sendMessage"
DOCUMENT = {
    "StartAt": "LambdaState",
    "States": {
        "LambdaState": {
            "Type": "Task",
            "Resource": INVOKE,
            "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 3}],
            "ResultPath": "$.lambda",
            "Next": "SQSState",
        },
        "SQSState": {"Type": "Task", "Resource": SEND, "ResultPath": "$.sqs", "Next": "Note"},
        "Note": {"Type": "Pass", "End": True},
    },
}
FILE = """{
  "StateMachines": {
    "LambdaSQSIntegration": {
      "TestCases": {
        "HappyPath": {"LambdaState": "Success", "SQSState": "Sent"},
        "RetryPath": {"LambdaState": "Retry", "SQSState": "Sent"},
        "HybridPath": {"LambdaState": "Success"},
        "Empty": {}
      }
    }
  },
  "MockedResponses": {
    "Success": {"0": {"Return": {"StatusCode": 200, "Payload": {"body": "Hello!"}}}},
    "Sent": {"0": {"Return": {"MessageId": "1"}}},
    "Retry": {
      "0": {"Throw": {"Error": "Lambda.ResourceNotReadyException", "Cause": "not ready"}},
      "1-2": {"Throw": {"Error": "Lambda.TimeoutException", "Cause": "timed out"}},
      "3": {"Return": {"StatusCode": 200}}
    }
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "MockConfigFile.json"
    path.write_text(FILE)
    return path


def run(mocks: Any, **options: Any) -> asl.Result:
    return asl.run(DOCUMENT, mocks=mocks, clock="virtual", **options)


def test_a_case_answers_for_its_states(file: Path) -> None:
    """Each state gets the response that the case names."""
    result = run(asl.load_mocks(file, "HappyPath"))
    assert result.output == {
        "lambda": {"StatusCode": 200, "Payload": {"body": "Hello!"}},
        "sqs": {"MessageId": "1"},
    }


def test_attempts_have_answers_of_their_own(file: Path) -> None:
    """`0` is the first attempt, `1-2` the first two retries."""
    result = run(asl.load_mocks(file, "RetryPath"))
    assert result.output["lambda"] == {"StatusCode": 200}
    failed = [event.details["error"] for event in result.events if event.type == "TaskFailed"]
    assert failed == [
        "Lambda.ResourceNotReadyException",
        "Lambda.TimeoutException",
        "Lambda.TimeoutException",
    ]


def each(state: dict[str, object]) -> dict[str, object]:
    """Return a workflow that runs a Task for each item."""
    task = {"Type": "Task", "Resource": SEND, "End": True, **state}
    processor = {"StartAt": "T", "States": {"T": task}}
    return {
        "StartAt": "Each",
        "States": {"Each": {"Type": "Map", "ItemProcessor": processor, "End": True}},
    }


def test_calls_are_counted_through_the_execution(tmp_path: Path) -> None:
    """Retries, iterations and later visits of a state take the next response."""
    document = each({"Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 1}]})
    mocks = loaded(
        tmp_path,
        {"0": {"Throw": {"Error": "Busy"}}, "1": {"Return": "one"}, "2-3": {"Return": "two"}},
    )
    for _ in range(2):  # a further execution begins with the first response
        result = asl.run(document, [1, 2, 3], mocks=mocks, clock="virtual")
        assert sorted(result.output) == ["one", "two", "two"]


def test_second_iteration_takes_second_response(tmp_path: Path) -> None:
    """A response of its own for each item of a Map."""
    mocks = loaded(tmp_path, {"0": {"Return": 1}, "1-3": {"Throw": {"Error": "Busy"}}})
    assert asl.run(each({}), [1, 2], mocks=mocks, clock="virtual").error == "Busy"


def test_state_entered_again_takes_next_response(tmp_path: Path) -> None:
    """A loop polls a job until it is done."""
    document = {
        "StartAt": "T",
        "States": {
            "T": {"Type": "Task", "Resource": SEND, "Next": "C"},
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "StringEquals": "busy", "Next": "T"}],
                "Default": "D",
            },
            "D": {"Type": "Succeed"},
        },
    }
    mocks = loaded(tmp_path, {"0-2": {"Return": "busy"}, "3": {"Return": "done"}})
    result = asl.run(document, mocks=mocks, clock="virtual")
    assert (result.output, result.visited.count("T")) == ("done", 4)


def test_states_without_an_entry_call_their_handler(file: Path) -> None:
    """A case need not mock everything."""
    result = run(asl.load_mocks(file, "HybridPath"), resources={SEND: {"return": "real"}})
    assert result.output["sqs"] == "real"


def test_an_attempt_that_is_not_listed_ends_the_execution(tmp_path: Path) -> None:
    """Neither a retrier nor a catcher hides that the file has no answer."""
    document = {
        "StartAt": "T",
        "States": {
            "T": {
                "Type": "Task",
                "Resource": SEND,
                "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 5}],
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "T"}],
                "End": True,
            }
        },
    }
    mocks = loaded(tmp_path, {"0": {"Throw": {"Error": "Busy"}}})
    result = asl.run(document, mocks=mocks, clock="virtual")
    assert result.error == "States.Runtime"
    assert "nothing for call 1 of state 'T'" in (result.cause or "")
    assert "mocks.json:1:" in (result.cause or "")


@pytest.mark.parametrize(
    ("throw", "error", "cause"),
    [
        ({"Error": "E", "Cause": "C"}, "E", "C"),
        ({"Error": "E"}, "E", None),
        ({}, "States.TaskFailed", None),
    ],
)
def test_what_is_thrown_is_the_error(tmp_path: Path, throw: Any, error: str, cause: Any) -> None:
    """Error and cause may be missing."""
    result = asl.run(single(SEND), mocks=loaded(tmp_path, {"0": {"Throw": throw}}))
    assert (result.error, result.cause) == (error, cause)


@pytest.mark.parametrize(
    "resource",
    [
        f"{SEND}.waitForTaskToken",
        "arn:aws:states:::batch:submitJob.sync",
        "arn:aws:states:us-east-1:123456789012:activity:A",
        "arn:aws:lambda:us-east-1:123456789012:function:F",
    ],
)
def test_every_kind_of_task_can_be_mocked(tmp_path: Path, resource: str) -> None:
    """What is returned is the answer of the Task, whatever it would wait for."""
    mocks = loaded(tmp_path, {"0": {"Return": None}})
    assert asl.run(single(resource), mocks=mocks).output is None


def single(resource: str) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": resource, "End": True}
    return {"StartAt": "T", "States": {"T": state}}


def loaded(folder: Path, response: Any, states: Any = None) -> Any:
    """Read a file in which the state `T` has this response."""
    path = folder / "mocks.json"
    machines = {"M": {"TestCases": {"C": {"T": "R"} if states is None else states}}}
    path.write_text(json.dumps({"StateMachines": machines, "MockedResponses": {"R": response}}))
    return asl.load_mocks(path, "C")


# Which machine -----------------------------------------------------------------------------------

TWO = """{"StateMachines": {
  "Orders": {"TestCases": {"Happy": {"T": "Order"}, "Sad": {"T": "Order"}}},
  "Refunds": {"TestCases": {"Happy": {"T": "Refund"}, "Slow": {"T": "Refund"}}}},
 "MockedResponses": {
  "Order": {"0": {"Return": "order"}},
  "Refund": {"0": {"Return": "refund"}}}}
"""


@pytest.mark.parametrize(
    ("case", "options", "answer"),
    [
        ("Happy", {"machine": "Refunds"}, "refund"),
        ("Refunds/Happy", {}, "refund"),
        ("Sad", {}, "order"),
        ("Slow", {}, "refund"),
    ],
)
def test_the_machine_is_named_or_the_only_one(
    tmp_path: Path, case: str, options: Any, answer: str
) -> None:
    """A case that only one machine has needs no more."""
    path = tmp_path / "mocks.json"
    path.write_text(TWO)
    assert asl.run(single(SEND), mocks=asl.load_mocks(path, case, **options)).output == answer


def test_the_machine_is_that_of_the_documents_name(tmp_path: Path) -> None:
    """`Refunds.asl.json` is the state machine `Refunds`."""
    path, document = tmp_path / "mocks.json", tmp_path / "Refunds.asl.json"
    path.write_text(TWO)
    document.write_text(json.dumps(single(SEND)))
    for what in (document, asl.load(document), asl.compile(document)):
        mocks = asl.load_mocks(path, "Happy", document=what)
        assert asl.run(document, mocks=mocks).output == "refund"


# Faults ------------------------------------------------------------------------------------------

GOOD = {"0": {"Return": 1}}


def faults(tmp_path: Path, text: str, case: str = "C", **options: Any) -> list[str]:
    path = tmp_path / "mocks.json"
    path.write_text(text)
    with pytest.raises(InvalidMocks) as refusal:
        asl.load_mocks(path, case, **options)
    return str(refusal.value).replace(f"{tmp_path}/", "").split("\n")


@pytest.mark.parametrize(
    ("text", "case", "fault"),
    [
        ("[]", "C", "mocks.json:1:1: a mock file is an object, not array"),
        ('{"StateMachines": {}}', "C", "mocks.json:1:1: 'MockedResponses' is missing"),
        (
            '{"StateMachine": {}, "MockedResponses": {}}',
            "C",
            "mocks.json:1:2: unknown key 'StateMachine' (did you mean 'StateMachines'?)",
        ),
        (TWO, "Happy", "mocks.json:1:19: which state machine is meant?"),
        (TWO, "Order/Happy", "no state machine 'Order' (did you mean 'Orders'?)"),
        (TWO, "Orders/Happi", "mocks.json:2:27: 'Orders' has no test case 'Happi' (did you mean"),
        (TWO, "Nothing", "which state machine is meant?"),
        ('{"StateMachines": {"M": {}}, "MockedResponses": {}}', "C", "'TestCases' is missing"),
        (
            '{"StateMachines": {"M": 1}, "MockedResponses": {}}',
            "C",
            "mocks.json:1:25: this is an object with 'TestCases', not number",
        ),
        (
            '{"StateMachines": {"M": {"TestCases": {"C": []}}}, "MockedResponses": {}}',
            "C",
            "mocks.json:1:45: a test case is an object of states and responses, not array",
        ),
    ],
)
def test_a_fault_of_the_file_has_a_place(tmp_path: Path, text: str, case: str, fault: str) -> None:
    """What is missing or unknown is said with file, line and column."""
    assert fault in "\n".join(faults(tmp_path, text, case))


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ([], "a mocked response is an object of attempts, not array"),
        ({"x": {"Return": 1}}, "attempts are written '0' or '1-3', not 'x'"),
        ({"-1": {"Return": 1}}, "not '-1'"),
        ({"3-1": {"Return": 1}}, "not '3-1'"),
        ({"0-2": {"Return": 1}, "2": {"Return": 1}}, "'2' are listed already, by '0-2'"),
        ({"0": {"Return": 1, "Throw": {}}}, "either 'Return' or 'Throw'"),
        ({"0": {}}, "either 'Return' or 'Throw'"),
        ({"0": 1}, "either 'Return' or 'Throw'"),
        ({"0": {"Retrun": 1}}, "(did you mean 'Return'?)"),
        ({"0": {"Throw": "E"}}, "'Throw' is an object with the texts Error and Cause"),
        ({"0": {"Throw": {"Error": 1}}}, "'Throw' is an object with the texts Error and Cause"),
        ({"0": {"Throw": {"Eror": "E"}}}, "unknown key 'Eror' (did you mean 'Error'?)"),
    ],
)
def test_a_fault_of_a_response_has_a_place(tmp_path: Path, response: Any, fault: str) -> None:
    """Only the responses of the case are looked at."""
    text = json.dumps(
        {
            "StateMachines": {"M": {"TestCases": {"C": {"T": "R"}, "D": {"T": "S"}}}},
            "MockedResponses": {"R": response, "S": GOOD},
        }
    )
    (said,) = faults(tmp_path, text)
    assert said.startswith("mocks.json:1:")
    assert fault in said
    assert list(asl.load_mocks(tmp_path / "mocks.json", "D")) == ["T"]


def test_a_response_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    """With what may have been meant."""
    text = json.dumps(
        {
            "StateMachines": {"M": {"TestCases": {"C": {"T": "Sucess", "U": 1}}}},
            "MockedResponses": {"Success": GOOD},
        }
    )
    first, second = faults(tmp_path, text)
    assert "there is no mocked response \"Sucess\" (did you mean 'Success'?)" in first
    assert "there is no mocked response 1 (" in second


def test_a_state_that_the_document_has_not_is_a_fault(file: Path) -> None:
    """Only Tasks of the document can be mocked."""
    document = json.loads(json.dumps(DOCUMENT).replace("SQSState", "SqsState"))
    with pytest.raises(InvalidMocks, match=r":5:49: the document has no state 'SQSState' \(did"):
        asl.load_mocks(file, "HappyPath", document=document)


def test_a_state_that_calls_nothing_is_a_fault(tmp_path: Path) -> None:
    """A Pass has nothing to mock."""
    loaded(tmp_path, GOOD, {"Note": "R"})
    with pytest.raises(InvalidMocks, match="'Note' is a Pass: only a Task can be mocked"):
        asl.load_mocks(tmp_path / "mocks.json", "C", document=DOCUMENT)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    """As a document would be."""
    path = tmp_path / "mocks.json"
    path.write_text("{")
    with pytest.raises(asl.InvalidDocument):
        asl.load_mocks(path, "C")
    with pytest.raises(asl.DocumentNotFound):
        asl.load_mocks(tmp_path / "none.json", "C")


names = st.sampled_from(["T", "R", "C", "M", "Return", "Throw", "Error", "0", "1-2", "TestCases"])
values = st.recursive(
    st.none() | st.integers(0, 3) | names,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(values, values, st.sampled_from(["C", "M/C", "", "/", "M/"]))
def test_no_file_does_harm(machines: Any, responses: Any, case: str) -> None:
    """Whatever stands in a file, it is read or refused with a place."""
    text = json.dumps({"StateMachines": machines, "MockedResponses": responses})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mocks.json"
        path.write_text(text)
        try:
            mocks = asl.load_mocks(path, case)
        except InvalidMocks as refusal:
            assert all(":1:" in line for line in str(refusal).split("\n"))
        else:
            assert all(isinstance(state, str) for state in mocks)
