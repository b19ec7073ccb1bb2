"""What holds for every document, however broken."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.checks import check
from asl.compiler import compile_workflow
from asl.core.document import Document
from asl.core.profile import PROFILES, Profile
from asl.core.source import Source

Json = Any

SEED: Json = {
    "Comment": "every executed type",
    "StartAt": "Each",
    "TimeoutSeconds": 60,
    "States": {
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemSelector": {"n.$": "$$.Map.Item.Value"},
            "MaxConcurrency": 2,
            "ItemProcessor": {
                "StartAt": "Ask",
                "States": {
                    "Ask": {
                        "Type": "Task",
                        "Agent": "A",
                        "TimeoutSeconds": 9,
                        "Parameters": {"t.$": "States.Format('{}', $.n)", "v.$": "$v"},
                        "ResultSelector": {"r.$": "$.x[0]"},
                        "ResultPath": "$.r",
                        "Retry": [{"ErrorEquals": ["Busy"], "JitterStrategy": "FULL"}],
                        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Sorry"}],
                        "End": True,
                    },
                    "Sorry": {"Type": "Fail", "Error": "E", "CausePath": "$.Cause"},
                },
            },
            "Assign": {"v.$": "$[0]"},
            "Next": "Which",
        },
        "Which": {
            "Type": "Choice",
            "Choices": [
                {"And": [{"Variable": "$[0]", "IsPresent": True}], "Next": "Wait"},
                {"Not": {"Variable": "$v", "StringMatches": "a*"}, "Next": "Both"},
                {"Variable": "$.t", "TimestampLessThanPath": "$.u", "Next": "Both"},
            ],
            "Default": "Done",
        },
        "Wait": {"Type": "Wait", "SecondsPath": "$.s", "Next": "Done"},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": 1, "End": True}}}
            ],
            "OutputPath": "$[0]",
            "Next": "Done",
        },
        "Done": {"Type": "Succeed", "InputPath": None},
    },
}

QUERIES: Json = {
    "QueryLanguage": "JSONata",
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "Items": "{% $states.input.items %}",
            "ItemSelector": {"n": "{% $states.context.Map.Item.Value %}"},
            "MaxConcurrency": "{% 2 %}",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {
                    "InputType": "CSV",
                    "CSVHeaderLocation": "GIVEN",
                    "CSVHeaders": ["a"],
                    "MaxItems": "{% 5 %}",
                },
                "Arguments": {"Bucket": "b", "Key": "{% $states.input.key %}"},
            },
            "ItemBatcher": {"MaxItemsPerBatch": 2, "BatchInput": {"x": "{% $states.input.x %}"}},
            "ResultWriter": {
                "Resource": "arn:aws:states:::s3:putObject",
                "Arguments": {"Bucket": "b", "Prefix": "p"},
                "WriterConfig": {"OutputType": "JSONL", "Transformation": "FLATTEN"},
            },
            "Label": "L",
            "ToleratedFailurePercentage": 5,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Ask",
                "States": {
                    "Ask": {
                        "Type": "Task",
                        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                        "Arguments": {"t": "{% $states.context.Task.Token %}"},
                        "TimeoutSeconds": "{% $states.input.t %}",
                        "Output": "{% $states.result %}",
                        "Assign": {"v": "{% $states.result.x %}"},
                        "Catch": [
                            {
                                "ErrorEquals": ["States.ALL"],
                                "Output": "{% $states.errorOutput %}",
                                "Next": "Sorry",
                            }
                        ],
                        "Next": "Wait",
                    },
                    "Wait": {"Type": "Wait", "Seconds": "{% $v %}", "End": True},
                    "Sorry": {"Type": "Fail", "Cause": "{% $states.input.Cause %}"},
                },
            },
            "Output": {"all": ["{% $states.result %}", 1]},
            "Next": "Which",
        },
        "Which": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $count($states.input.all) > 1 %}", "Next": "Done"},
                {"Condition": False, "Assign": {"w": 1}, "Output": "{% 1 %}", "Next": "Done"},
            ],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed", "Output": "{% $states.input %}"},
    },
}
SEEDS = (SEED, QUERIES)

Place = tuple[str | int, ...]


def places(value: Json, place: Place = ()) -> list[Place]:
    parts: Any = value.items() if type(value) is dict else ()
    if type(value) is list:
        parts = enumerate(value)
    return [place, *(inner for key, part in parts for inner in places(part, (*place, key)))]


def names(value: Json) -> set[str]:
    return {step for place in places(value) for step in place if type(step) is str}


NAMES = sorted(
    names(SEED)
    | names(QUERIES)
    | {"Iterator", "QueryLanguage", "Budget", "Variable.$", "Error", "Items"}
)
SCALARS = st.sampled_from(
    [
        *(None, True, False, 0, -1, 1.5, 10**400, 1e300, "", "n" * 81, "\\", "{{x}}", "JSONata"),
        *("$", "$.a[*]", "$$", "$v", "States.ALL", "States.Format('{}')", "{% 1 %}"),
        *("{%", "{%%}", "{% a.b %}", "{% $f(1) %}", "{% $states.result %}", "{% ( %}", "${P}"),
        "2030-02-30T00:00:00Z",
    ]
) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> Json:
    """A seed with a few values replaced, renamed, added or removed."""
    document = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        choices = [place for place in places(document) if place]
        if not choices:
            break
        *path, last = draw(st.sampled_from(choices))
        holder = document
        for step in path:
            holder = holder[step]
        change = draw(st.sampled_from(["replace", "remove", "rename", "add"]))
        if change == "replace" or type(holder) is list:
            holder[last] = draw(VALUES)
        elif change == "remove":
            del holder[last]
        elif change == "rename":
            holder[draw(st.sampled_from(NAMES))] = holder.pop(last)
        else:
            holder[draw(st.sampled_from(NAMES))] = draw(VALUES)
    return document


profiles = st.sampled_from(list(PROFILES.values()))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_sound(seed: Json) -> None:
    """What the laws start from has no errors."""
    report = check(Document(seed, Source(None)), for_run=True)
    assert report.ok, report.errors


@given(documents(), profiles, st.booleans())
def test_a_check_never_raises(document: Json, profile: Profile, strict: bool) -> None:
    """A document may hold anything anywhere."""
    check(Document(document, Source(None)), profile, strict=strict, agents=["A"], resources=["*"])


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_a_check_never_raises_for_nonsense(document: Json) -> None:
    """Not even the shape of a workflow is needed, nor that it is an object."""
    check(Document(document, Source(None)))
    check(Document([document], Source(None)))


@given(documents(), profiles)
def test_what_passes_can_be_compiled(document: Json, profile: Profile) -> None:
    """The compiler never meets a document that it cannot compile."""
    report = check(Document(document, Source(None)), profile, for_run=True)
    if report.ok:
        compile_workflow(document, profile, "w")


@given(documents(), profiles)
def test_strict_finds_the_same(document: Json, profile: Profile) -> None:
    """Strictness changes severities, never what is found."""
    lax, strict = (
        check(Document(document, Source(None)), profile, strict=strict) for strict in (False, True)
    )
    assert [(e.code, e.pointer) for e in lax] == [(e.code, e.pointer) for e in strict]
    assert not strict.warnings
