"""Every field of every state type, converted to every dialect: it is written or reported."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

from asl.core.codes import lookup
from asl.core.document import Document
from asl.core.source import Source
from asl.dialects import load
from asl.dialects.base import Conversion, Coverage, Dialect, WriterResult
from asl.dialects.conversion import convert_document
from asl.dialects.coverage import write
from asl.dialects.registry import BUILT_IN, dialect
from tests.dialects.law import each_loss

Json = Any

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
DOCUMENT: Final = "document"
FILES: Final = {
    DOCUMENT: SCHEMAS / "asl.schema.json",
    **{
        path.name.removesuffix(".schema.json"): path
        for path in sorted((SCHEMAS / "states").glob("*.schema.json"))
    },
}
FIELDS: Final = {
    kind: json.loads(path.read_text(encoding="utf-8"))["properties"].keys()
    for kind, path in FILES.items()
}
MEANINGLESS: Final = {
    "Type": "without it there is no state",
    "States": "without them there is no document",
    "StartAt": "only a module has none, and a module cannot be converted",
    "Module": "a module cannot be converted",
    "Exports": "only a module has them",
    "QueryLanguage": "it says how other fields are written, which are converted by it",
    "Parameters of the document": "a template is converted once they are filled in",
}
"""Fields whose presence cannot be compared, with the reason."""

INNER: Final[dict[str, Json]] = {
    "StartAt": "I",
    "States": {"I": {"Type": "Task", "Agent": "worker", "End": True}},
}
OTHER: Final[dict[str, Json]] = {"StartAt": "J", "States": {"J": INNER["States"]["I"]}}
MODULE = {
    "Module": True,
    "Exports": ["I", "J"],
    "Parameters": {"k": {"Type": "string", "Default": "x"}},
    "States": {**INNER["States"], **OTHER["States"]},
}
RETRY = [{"ErrorEquals": ["E"], "MaxAttempts": 2}]
CATCH = [{"ErrorEquals": ["States.ALL"], "Next": "Y"}]
STATES: Final[dict[str, dict[str, Json]]] = {
    "Task": {"Agent": "worker"},
    "Choice": {"Choices": [{"Variable": "$.a", "StringEquals": "x", "Next": "Z"}], "Default": "Y"},
    "Map": {"ItemProcessor": INNER},
    "Parallel": {"Branches": [INNER]},
    "Pass": {},
    "Wait": {"Seconds": 5},
    "Succeed": {},
    "Fail": {},
    "Approval": {"Prompt": "May it?"},
    "Debate": {"Agents": ["a", "b"]},
    "Checkpoint": {"Name": "saved"},
    "Include": {"Template": MODULE, "EntryPoint": "I"},
    "Workflow": {"WorkflowId": "other"},
}
"""The least state of each type, without what follows it."""
ENDS: Final = ("Choice", "Succeed", "Fail")
VALUES: Final[dict[str, Json]] = {
    "Comment": "a remark",
    "QueryLanguage": "JSONata",
    "InputPath": "$.a",
    "OutputPath": "$.a",
    "ResultPath": "$.r",
    "ResultSelector": {"k.$": "$.x"},
    "Assign": {"v.$": "$.a"},
    "Output": "{% $states.input.a %}",
    "Retry": RETRY,
    "Catch": CATCH,
    "Next": "Z",
    "End": True,
    "Parameters": {"k.$": "$.a"},
    "Arguments": {"k": "{% $states.input.a %}"},
    "TimeoutSeconds": 30,
    "TimeoutSecondsPath": "$.a",
    "HeartbeatSeconds": 10,
    "HeartbeatSecondsPath": "$.a",
    "Events": {"OnEnter": {"Type": "e"}},
    "Budget": {"MaxCost": "$1.00"},
    "Progress": {"Enabled": True},
    "Memory": {"Read": ["k"]},
    # Approval
    "Prompt": "May it?",
    "Prompt.$": "$.a",
    "Options": ["ship", "hold"],
    "Timeout": "1h",
    "Timeout.$": "$.a",
    "OnTimeout": "AutoReject",
    "Escalation": {"After": "30m", "EscalateTo": ["boss"]},
    "Editable": {"Fields": ["$.a"]},
    "Choices": [{"Variable": "$.approval", "StringEquals": "hold", "Next": "Y"}],
    "Default": "Y",
    "ItemsPath": "$.a",
    "ItemsPath.$": "$.a",
    "BatchMode": {"Enabled": True},
    "Notifications": {"Channels": []},
    "Policy": {"Approvers": {"Users": ["a"]}},
    "RequiredApprovers": 2,
    # Checkpoint, Debate, Fail, Include, Map
    "Name": "saved",
    "Name.$": "$.a",
    "Storage": "persistent",
    "TTL": "1d",
    "Agents": STATES["Debate"]["Agents"],
    "Topic": "whether",
    "Topic.$": "$.a",
    "TopicPath": "$.a",
    "Rounds": 2,
    "Rounds.$": "$.a",
    "Communication": {"Style": "simultaneous"},
    "Consensus": {"Method": "voting"},
    "Error": "E",
    "ErrorPath": "$.a",
    "Error.$": "$.a",
    "Cause": "because",
    "CausePath": "$.a",
    "Cause.$": "$.a",
    "Template": MODULE,
    "EntryPoint": "I",
    "ExitPoint": "I",
    "Override": {"States": {"I": {"Agent": "other"}}},
    "ItemProcessor": INNER,
    "Iterator": INNER,
    "Items": "{% $states.input.a %}",
    "ItemSelector": {"k.$": "$$.Map.Item.Value"},
    "MaxConcurrency": 3,
    "MaxConcurrencyPath": "$.a",
    "ItemReader": {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON"},
        "Parameters": {"Bucket": "b", "Key": "k"},
    },
    "ItemBatcher": {"MaxItemsPerBatch": 2},
    "ResultWriter": {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "b", "Prefix": "p"},
    },
    "ToleratedFailureCount": 1,
    "ToleratedFailureCountPath": "$.a",
    "ToleratedFailurePercentage": 10,
    "ToleratedFailurePercentagePath": "$.a",
    "Label": "label",
    "Branches": [INNER],
    "Result": {"k": 1},
    # Task
    "Agent": "worker",
    "Resource": "arn:aws:lambda:us-east-1:123456789012:function:f",
    "Credentials": {"RoleArn": "arn:aws:iam::123456789012:role/r"},
    "Context": {"Strategy": "sliding_window", "MaxTokens": 9},
    "Tools": {"Allowed": ["search"]},
    "Guardrails": {"Input": {}},
    "Reasoning": {"Required": True},
    "Model": {"Preferred": "m"},
    "Generation": {"Temperature": 0.5},
    "Audit": {"LogLevel": "full"},
    "Metadata": {"owner": "me"},
    "Cache": {"Enabled": True},
    "Idempotent": True,
    "IdempotencyKey": "key",
    "CacheResult": True,
    "CacheTTL": "1h",
    "Feedback": {"Collect": True},
    "Streaming": {"Enabled": True},
    "Seconds": 5,
    "SecondsPath": "$.a",
    "Timestamp": "2030-01-01T00:00:00Z",
    "TimestampPath": "$.a",
    "WorkflowId": "other",
    "WorkflowId.$": "$.a",
    "Input": {"k": 1},
    # Document
    "Version": "1.0",
    "Checkpointing": {"Enabled": True},
    "Imports": {"part": "./part.asl.json"},
    "DefaultTools": {"Allowed": ["search"]},
    "ToolCategories": {"all": ["search"]},
    "RealTime": {"Transport": "sse"},
    "_lock": {"part": "registry:x/part@1.0.0"},
    "Observability": {"trace": True},
}
"""A value for each field."""

JSONATA: Final = ("Arguments", "Output", "Items")
"""Fields that only JSONata has."""
RULE: Final = {"Variable": "$.b", "StringEquals": "x", "Next": "Z"}
OTHERS: Final[Mapping[str, dict[str, Json]]] = {
    "Agent": {"Resource": VALUES["Resource"]},
    "Agents": {"Agents": ["a", "c"]},
    "Assign": {"Assign": {"v.$": "$.b"}},
    "Branches": {"Branches": [INNER, OTHER]},
    "Choices": {"Choices": [RULE]},
    "End": {"Next": "Z"},
    "EntryPoint": {"EntryPoint": "J"},
    "ItemProcessor": {"Iterator": OTHER},
    "Iterator": {"ItemProcessor": OTHER},
    "Name": {"Name.$": "$.a"},
    "Name.$": {"Name": "saved"},
    "Next": {"End": True},
    "Prompt": {"Prompt.$": "$.a"},
    "Prompt.$": {"Prompt": "May it?"},
    "Resource": {"Agent": "worker"},
    "Seconds": {"Timestamp": VALUES["Timestamp"]},
    "SecondsPath": {"Seconds": 5},
    "Template": {"Template": {**MODULE, "Exports": ["I"]}},
    "Timestamp": {"Seconds": 5},
    "TimestampPath": {"Seconds": 5},
    "WorkflowId": {"WorkflowId.$": "$.a"},
    "WorkflowId.$": {"WorkflowId": "other"},
}
"""What a state has in place of a field that it cannot be without, or not usefully."""
WITH: Final[Mapping[str, dict[str, Json]]] = {
    "OnTimeout": {"Timeout": "1h"},
    "Escalation": {"Timeout": "1h"},
    "IdempotencyKey": {"Idempotent": True},
    "CacheTTL": {"CacheResult": True},
    "HeartbeatSeconds": {"TimeoutSeconds": 60},
    "BatchMode": {"ItemsPath": "$.a"},
}
"""What else a state has that has a field."""


def state_of(kind: str, field: str, *, present: bool) -> dict[str, Json]:
    """Return a state with a field, or the same one without it."""
    state = {**STATES[kind], **WITH.get(field, {})}
    if kind not in ("Choice", "Succeed", "Fail"):
        state["Next"] = "Z"
    if field in JSONATA:
        state["QueryLanguage"] = "JSONata"
        if kind == "Choice":
            state["Choices"] = [{"Condition": "{% $states.input.flag = 1 %}", "Next": "Z"}]
    given = {field: VALUES[field]}
    others = {} if (kind, field) == ("Approval", "Choices") else OTHERS.get(field, {})
    for each in (*given, *others):
        state.pop(each, None)
    return {"Type": kind, **state, **(given if present else others)}


def document_of(state: dict[str, Json], *, routed: bool) -> dict[str, Json]:
    """Return a document of a state and those that it leads to, behind a Choice if *routed*."""
    text = json.dumps(state)
    read = {"Parameters": {"v.$": "$v"}} if "Assign" in state else {}
    others = {
        name: {"Type": "Task", "Agent": name, **read, "End": True}
        for name in "YZ"
        if f'"{name}"' in text
    }
    states = {"S": state, **others}
    if not routed:
        return {"StartAt": "S", "States": states}
    rule = {"Variable": "$.go", "IsPresent": True, "Next": "S"}
    first = {"Type": "Choice", "Choices": [rule], "Default": "Else"}
    last = {"Type": "Task", "Agent": "last", "End": True}
    return {"StartAt": "First", "States": {"First": first, **states, "Else": last}}


def pair(kind: str, field: str, *, routed: bool) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return a document that has a field, and the same one without it."""
    if kind == DOCUMENT:
        without = document_of({"Type": "Task", "Agent": "worker", "End": True}, routed=routed)
        return {**without, field: VALUES[field]}, without
    one, other = (state_of(kind, field, present=each) for each in (True, False))
    return document_of(one, routed=routed), document_of(other, routed=routed)


def told(made: Conversion) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the text and the losses, but for the general remark on all that is read."""
    losses = [each for each in each_loss(made.losses) if each.code != "L-MISSING"]
    return made.text, [(each.code, each.message, each.pointer) for each in losses]


def names(made: Conversion, kind: str, field: str) -> bool:
    """Whether a loss stands at a field, or names it at the state that is lost with it."""
    place = "" if kind == DOCUMENT else "/States/S"
    losses = [each for each in each_loss(made.losses) if each.code != "L-MISSING"]
    named = any(each.pointer == place and repr(field) in each.message for each in losses)
    return named or f"{place}/{field}" in {each.pointer for each in losses}


def written(value: Json, to: str) -> Conversion:
    return _written(json.dumps(value), to)


@lru_cache
def _written(text: str, to: str) -> Conversion:
    return convert_document(Document(json.loads(text), Source()), to)


@pytest.mark.parametrize("to", BUILT_IN)
@pytest.mark.parametrize("kind", FILES)
def test_a_field_is_written_or_reported(kind: str, to: str) -> None:
    """With and without it the conversions differ, or a loss names it."""
    silent = []
    for field in FIELDS[kind]:
        if field in MEANINGLESS or f"{field} of the {kind}" in MEANINGLESS:
            continue
        for routed in (False, True):
            one, other = pair(kind, field, routed=routed)
            made = written(one, to)
            if told(made) == told(written(other, to)) and not names(made, kind, field):
                silent.append((field, routed))
    assert silent == []


@pytest.mark.parametrize("kind", FILES)
def test_every_field_of_a_schema_has_a_value_here(kind: str) -> None:
    assert FIELDS[kind] <= VALUES.keys() | MEANINGLESS.keys()


# --------------------------------------------------------------------------------------------
# Fields without effect


def test_comments_are_one_entry() -> None:
    """With the places where they are lost, not where they are written."""
    states = {
        name: {"Type": "Wait", "Seconds": 1, "Comment": f"wait {name}", "Next": following}
        for name, following in (("A", "B"), ("B", "C"))
    }
    last = {"C": {"Type": "Task", "Agent": "worker", "Comment": "work", "End": True}}
    made = written({"Comment": "All", "StartAt": "A", "States": {**states, **last}}, "codemie")
    (loss,) = (each for each in made.losses if each.code == "L-INERT")
    assert (loss.severity, loss.pointer) == ("info", "/States/A/Comment")
    assert loss.message == "'Comment' is not carried over"
    assert [each.pointer for each in loss.places] == ["/States/A/Comment", "/States/B/Comment"]


@pytest.mark.parametrize("to", ["codemie", "contenox", "flujo"])
def test_a_comment_that_is_no_text_is_reported(to: str) -> None:
    state = {"Type": "Task", "Agent": "worker", "End": True}
    made = written({"Comment": {"by": "me"}, "StartAt": "S", "States": {"S": state}}, to)
    assert "/Comment" in {each.pointer for each in each_loss(made.losses) if each.code == "L-INERT"}


@pytest.mark.parametrize("to", ["codemie", "contenox", "flujo"])
def test_a_document_that_comes_home_has_lost_nothing(to: str) -> None:
    state = {"Type": "Task", "Agent": "worker", "Comment": "work", "ResultPath": "$.r", "End": True}
    there = written({"Version": "1.0", "StartAt": "S", "States": {"S": state}}, to)
    here = convert_document(load(there.text, dialect=to), "asl").document
    assert isinstance(here, dict)
    assert list(written(here, to).losses) == []


# --------------------------------------------------------------------------------------------
# Fields of objects within a state


CHOICE: Final = {
    "Type": "Choice",
    "Choices": [{"Variable": "$.a", "StringEquals": "x", "Next": "Z"}],
    "Default": "Y",
}
ASK: Final = {
    "Type": "Approval",
    "Prompt": {"Title": "May it?"},
    "Choices": [{"Variable": "$.approval", "StringEquals": "hold", "Next": "Y"}],
    "Default": "Z",
}
EACH: Final = {"Type": "Map", "ItemProcessor": INNER, "Next": "Z"}
SIDES: Final = {"Type": "Parallel", "Branches": [INNER], "Next": "Z"}
CALL: Final = {"Type": "Task", "Agent": "worker", "Retry": RETRY, "Catch": CATCH, "Next": "Z"}
SPREAD: Final = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}


@pytest.mark.parametrize(
    ("state", "place", "value", "lost"),
    [
        (CALL, "Retry/0/Comment", "note", {"codemie": "L-INERT", "flujo": "L-INERT"}),
        (CALL, "Retry/0/JitterStrategy", "FULL", {"codemie": "L-FIELD"}),
        (CALL, "Catch/0/Comment", "note", {"contenox": "L-INERT", "flujo": "L-INERT"}),
        (CHOICE, "Choices/0/Comment", "note", {"codemie": "L-INERT", "flujo": "L-INERT"}),
        (CHOICE, "Choices/0/Assign", {"v": 1}, {"contenox": ""}),
        (ASK, "Choices/0/Assign", {"v": 1}, {"codemie": "L-FIELD"}),
        (ASK, "Prompt/Context", "long", {"flujo": "FL-APPROVAL"}),
        (EACH, "ItemProcessor/Comment", "note", {"codemie": "L-INERT", "flujo": "L-INERT"}),
        (EACH, "ItemProcessor/ProcessorConfig", SPREAD, {"codemie": "L-FIELD", "flujo": "L-FIELD"}),
        (EACH, "ItemProcessor/ProcessorConfig", {"Mode": "INLINE"}, {"codemie": "", "flujo": ""}),
        (SIDES, "Branches/0/Comment", "note", {"codemie": "L-INERT", "flujo": "L-INERT"}),
    ],
)
def test_a_field_within_a_state_is_reported(
    state: dict[str, Json], place: str, value: Json, lost: Mapping[str, str]
) -> None:
    """Of retriers, catchers, choice rules, prompts and machines; what means nothing is not."""
    made = json.loads(json.dumps(state))
    holder, *_, name = made, *place.split("/")
    for step in place.split("/")[:-1]:
        holder = holder[int(step) if step.isdigit() else step]
    holder[name] = value
    for to, code in lost.items():
        losses = written(document_of(made, routed=True), to).losses
        found = [each.code for each in each_loss(losses) if each.pointer == f"/States/S/{place}"]
        assert found == ([code] if code else []), to


@pytest.mark.parametrize("state", [EACH, SIDES])
def test_amazon_keeps_the_comment_of_a_machine(state: dict[str, Json]) -> None:
    commented = {**INNER, "Comment": "note"}
    held = {"ItemProcessor": commented} if "ItemProcessor" in state else {"Branches": [commented]}
    assert (
        '"Comment": "note"' in written(document_of({**state, **held}, routed=True), "amazon").text
    )


# --------------------------------------------------------------------------------------------
# Approvals of CodeMie


HELD = {"Variable": "$.r.approval", "StringEquals": "hold", "Next": "Hold"}


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"Options": ["ship", "hold"], "Next": "Which"}, "'hold'"),
        ({"Options": ["ship", "hold", "ask"], "Next": "Which"}, "'hold'"),
        ({"Options": ["*"], "Next": "Which"}, "'*'"),
        (
            {
                "Options": ["*"],
                "Choices": [{"Variable": "$.approval", "StringEquals": "hold", "Next": "Hold"}],
                "Default": "Ship",
            },
            "'*'",
        ),
        ({"Options": ["ship"], "Next": "Which"}, None),
        (
            {
                "Options": ["ship", "hold"],
                "Choices": [{"Variable": "$.approval", "StringEquals": "ship", "Next": "Ship"}],
                "Default": "Stop",
            },
            None,
        ),
    ],
)
def test_an_option_that_a_gate_does_not_offer_is_an_error(
    more: dict[str, Json], lost: str | None
) -> None:
    """Behind a gate the run goes on; any other answer cancels it."""
    document = {
        "StartAt": "Ask",
        "States": {
            "Ask": {"Type": "Approval", "Prompt": "May it?", "ResultPath": "$.r", **more},
            "Which": {"Type": "Choice", "Choices": [HELD], "Default": "Ship"},
            "Ship": {"Type": "Task", "Agent": "shipper", "End": True},
            "Hold": {"Type": "Task", "Agent": "holder", "End": True},
            "Stop": {"Type": "Fail", "Error": "Stopped"},
        },
    }
    made = written(document, "codemie")
    found = [each for each in each_loss(made.losses) if each.code == "L-APPROVAL"]
    assert [each.severity for each in found] == ([] if lost is None else ["error"])
    if lost is not None:
        assert found[0].pointer == "/States/Ask/Options"
        assert f"the answer {lost} is not offered" in found[0].message


# --------------------------------------------------------------------------------------------
# State types and dialects that declare nothing


ECHO = {"Type": "Echo", "Words": "hello", "Retry": RETRY, "ResultPath": "$.e", "Next": "Z"}
LAST = {"Type": "Task", "Agent": "last", "End": True}


@pytest.mark.parametrize("to", ["amazon", "codemie", "contenox", "flujo"])
@pytest.mark.parametrize("nested", [False, True])
def test_an_unknown_state_type_is_an_error(to: str, nested: bool) -> None:
    """A Task whose agent has its name stands in its place, with the fields that it has too."""
    states = {"S": ECHO, "Z": LAST}
    place = "/States/S"
    machine: dict[str, Json] = {"StartAt": "S", "States": states}
    if nested:
        outer = {"Type": "Parallel", "Branches": [machine], "End": True}
        machine = {"StartAt": "P", "States": {"P": outer}}
        place = "/States/P/Branches/0/States/S"
    found = dialect(to)
    made = write(
        found, Document(machine, Source()), **({"prompts": {}} if found.takes_prompts else {})
    )
    (loss,) = (each for each in made.losses if each.code == "L-TYPE")
    assert loss.pointer == place
    assert loss.message == "there are no Echo states there; 'Words' is lost with it"
    assert lookup("L-TYPE").severity == "error"


def test_an_unknown_type_stays_in_the_language_itself() -> None:
    document = {"StartAt": "S", "States": {"S": ECHO, "Z": LAST}}
    assert write(dialect("asl"), Document(document, Source())).value == document


def test_a_dialect_that_declares_nothing_is_an_error() -> None:
    """Whoever writes a dialect says what it carries; else nobody knows what is lost."""

    def shouted(document: Document) -> WriterResult:
        return WriterResult(None, f"{document.value['StartAt']}!")

    shout = Dialect("shout", "Shouting", lambda text: False, lambda value: False, None, shouted)
    document = Document({"StartAt": "Z", "States": {"Z": LAST}}, Source())
    (loss,) = write(shout, document).losses
    assert (loss.code, loss.pointer) == ("L-FIELD", "")

    def declared() -> Coverage:
        fields = frozenset(("Type", "End"))
        return Coverage({"Task": fields}, frozenset(("StartAt", "States")))

    losses = write(shout._replace(coverage=declared), document).losses
    assert [(each.code, each.pointer) for each in losses] == [("L-FIELD", "/States/Z/Agent")]
