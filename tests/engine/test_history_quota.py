"""Quotas of AWS: events of a history, durations, lengths of inputs and definitions (V-TOP-15)."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.profile import AWS, profile_named

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:F"
PASSES = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Pass", "Next": "B"},
        "B": {"Type": "Pass", "Next": "C"},
        "C": {"Type": "Pass", "End": True},
    },
}
ENDLESS = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Pass", "Next": "B"},
        "B": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.end", "IsPresent": True, "Next": "C"}],
            "Default": "A",
        },
        "C": {"Type": "Succeed"},
    },
}
FULL = "The execution reached the maximum number of history events ({})."


def wait(seconds: int, **fields: Any) -> dict[str, Any]:
    state = {"Type": "Wait", "Seconds": seconds, "End": True}
    return {"StartAt": "W", "States": {"W": state}, **fields}


def mapping(processor: dict[str, Any], **config: str) -> dict[str, Any]:
    processor = {**processor, "ProcessorConfig": config} if config else processor
    state = {"Type": "Map", "ItemProcessor": processor, "End": True}
    return {"StartAt": "M", "States": {"M": state}}


def run(document: Any, data: Any = None, profile: Any = "aws", **options: Any) -> Any:
    given = {} if data is None else data
    return asl.run(document, given, profile=profile, clock="virtual", **options)


@pytest.mark.parametrize("items", range(10, 15))
def test_history_events_counts_iterations_of_inline_map(items: int) -> None:
    """Each item has eight events, the Map and the execution have six."""
    result = run(mapping(PASSES), list(range(items)), AWS.with_quotas(history_events=100))
    fits = 6 + 8 * items <= 100
    assert (result.ok, len(result.events)) == (fits, 6 + 8 * items if fits else 100)
    assert result.cause == (None if fits else FULL.format(100))


def test_history_events_of_aws_is_25000() -> None:
    """3,124 items fit, 3,125 do not."""
    assert run(mapping(PASSES), list(range(3_124))).ok
    result = run(mapping(PASSES), list(range(3_125)))
    assert (result.error, result.cause) == ("States.Runtime", FULL.format("25000"))
    assert len(result.events) == 25_000
    assert result.events[-1].type == "ExecutionFailed"


@pytest.mark.parametrize("most", range(40, 52))
def test_history_events_counts_attempts_of_tasks(most: int) -> None:
    """A loop of Tasks that are retried never writes more events than the quota."""
    document = {
        "StartAt": "T",
        "States": {
            "T": {
                "Type": "Task",
                "Resource": FUNCTION,
                "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 2}],
                "Next": "C",
            },
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.end", "IsPresent": True, "Next": "D"}],
                "Default": "T",
            },
            "D": {"Type": "Succeed"},
        },
    }
    answers = [{"raise": {"Error": "Busy"}}, {"return": {}}] * 30
    mocks = {"T": {"sequence": answers}}
    result = run(document, None, AWS.with_quotas(history_events=most), mocks=mocks)
    assert result.cause == FULL.format(most)
    assert most - 3 < len(result.events) <= most


def test_history_events_cannot_be_caught() -> None:
    """The end of the history ends the execution."""
    document = mapping(ENDLESS)
    document["States"]["M"]["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "E"}]
    document["States"]["E"] = {"Type": "Succeed"}
    result = run(document, [1], AWS.with_quotas(history_events=60))
    assert (result.status, result.cause) == ("FAILED", FULL.format(60))


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_children_of_distributed_map_have_histories_of_their_own(kind: str) -> None:
    """The Map itself has eight events."""
    document = mapping(PASSES, Mode="DISTRIBUTED", ExecutionType=kind)
    assert run(document, list(range(50)), AWS.with_quotas(history_events=10)).ok


def test_history_events_of_distributed_child() -> None:
    """A child that fills its history fails with the same cause."""
    document = mapping(ENDLESS, Mode="DISTRIBUTED", ExecutionType="STANDARD")
    result = run(document, [1, 2], AWS.with_quotas(history_events=1_000))
    assert result.error == "States.ExceedToleratedFailureThreshold"
    (failed,) = result.failed_items
    assert failed["failures"][0]["cause"] == FULL.format(1_000)


def test_express_execution_has_no_quota_of_events() -> None:
    """It is ended by its duration alone."""
    assert run(mapping(PASSES), list(range(4_000)), express=True).ok


@pytest.mark.parametrize(
    ("seconds", "express", "profile", "status"),
    [
        (299, True, "aws", "SUCCEEDED"),
        (301, True, "aws", "TIMED_OUT"),
        (301, False, "aws", "SUCCEEDED"),
        (301, True, "default", "SUCCEEDED"),
        (301, True, "aws:express_seconds=none", "SUCCEEDED"),
        (301, True, "aws:express_seconds=200", "TIMED_OUT"),
        (31_535_999, False, "aws", "SUCCEEDED"),
        (31_536_001, False, "aws", "TIMED_OUT"),
        (31_536_001, False, "aws:standard_seconds=none", "SUCCEEDED"),
    ],
)
def test_duration_quota(seconds: int, express: bool, profile: str, status: str) -> None:
    """Express and standard executions time out after their quotas."""
    assert run(wait(seconds), None, profile, express=express).status == status


@pytest.mark.parametrize(
    ("kind", "profile", "output"),
    [
        ("EXPRESS", "aws", [10, {"Status": "TIMED_OUT", "Error": "States.Timeout"}]),
        ("EXPRESS", "aws:express_seconds=none", [10, 301]),
        ("EXPRESS", "default", [10, 301]),
        ("STANDARD", "aws", [10, 301]),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_duration_quota_of_express_children(
    kind: str, profile: str, output: Any, stored: bool, tmp_path: Path
) -> None:
    """A child of a distributed Map has five minutes of its own; no catcher within sees its end."""
    inner = {"StartAt": "W", "States": {"W": {"Type": "Wait", "SecondsPath": "$", "End": True}}}
    branches = {
        "Type": "Parallel",
        "Branches": [inner],
        "OutputPath": "$[0]",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}],
        "End": True,
    }
    states = {"P": branches, "C": {"Type": "Pass", "Result": "caught", "End": True}}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": kind},
        "StartAt": "P",
        "States": states,
    }
    each = {"Type": "Map", "ToleratedFailureCount": 1, "ItemProcessor": processor, "End": True}
    document = {"StartAt": "M", "States": {"M": each}}
    if not stored:
        assert run(document, [10, 301], profile).output == output
        return
    with asl.open_store(tmp_path / "s.db", clock=asl.VirtualClock()) as store:
        assert store.run(document, [10, 301], profile=profile).output == output


def test_input_over_quota_is_refused_before_it_starts() -> None:
    """262,144 characters of compact JSON are taken."""
    assert run(PASSES, "x" * 262_142).ok
    with pytest.raises(asl.AslError, match="the input has 262,145 characters"):
        run(PASSES, "x" * 262_143)


def warnings(document: Any, **options: Any) -> list[tuple[str, str, str]]:
    report = asl.check(document, **{"profile": "aws", **options})
    return [(each.code, each.severity, each.pointer) for each in report]


def test_definition_over_quota_is_refused() -> None:
    """A definition has at most 1,048,576 characters."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "x" * 1_048_576}}}
    document["States"]["A"]["End"] = True  # type: ignore[index]
    assert warnings(document) == [("V-TOP-15", "error", "")]
    assert warnings(document, profile="aws:definition_characters=none") == []
    assert warnings(document, profile="default") == []


def test_express_timeout_over_quota_draws_a_warning() -> None:
    """Of the workflow, of a Wait, and of express children of a distributed Map."""
    document = wait(400, TimeoutSeconds=1000)
    assert warnings(document) == []
    assert {*warnings(document, express=True)} == {
        ("V-TOP-15", "warning", "/TimeoutSeconds"),
        ("V-TOP-15", "warning", "/States/W/Seconds"),
    }
    children = mapping(wait(400), Mode="DISTRIBUTED", ExecutionType="EXPRESS")
    (found,) = warnings(children)
    assert found[2] == "/States/M/ItemProcessor/States/W/Seconds"


def test_profile_with_quotas_is_found_by_its_name() -> None:
    """The name holds what differs from the profile."""
    profile = AWS.with_quotas(history_events=None, express_seconds=10)
    assert profile.name == "aws:history_events=none:express_seconds=10"
    assert profile_named(profile.name) == profile
    assert profile.with_quotas(history_events=25_000, express_seconds=300) == AWS
    with pytest.raises(asl.AslError, match="there is no quota 'events'"):
        AWS.with_quotas(events=1)
    with pytest.raises(asl.AslError, match="positive integer or None"):
        AWS.with_quotas(history_events=0)
    with pytest.raises(asl.AslError, match="positive integer or 'none'"):
        profile_named("aws:history_events=many")
