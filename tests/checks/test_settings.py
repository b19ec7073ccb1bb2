"""What a caller of a check can choose: profile, strictness, known agents, running or looking."""

from typing import Any

import pytest

from asl.checks import check
from asl.core.diagnostics import Severity
from asl.core.document import read
from asl.core.profile import AWS, DEFAULT, LENIENT, PROFILES

Json = Any

S = "/States/S"
LAMBDA = "arn:aws:lambda:us-east-1:1:function:f"


def machine(**state: Json) -> Json:
    return {"StartAt": "S", "States": {"S": {"End": True, **state}}}


def resource(**fields: Json) -> Json:
    return machine(**{"Type": "Task", "Resource": LAMBDA, **fields})


PROCESSOR = {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}
READER = {"Resource": "arn:aws:states:::s3:getObject"}
ACTIVITY = "arn:aws:states:us-east-1:1:activity:a"


def mapping(**fields: Json) -> Json:
    return machine(**{"Type": "Map", "ItemsPath": "$", "ItemProcessor": PROCESSOR, **fields})


def levels(document: Json, **settings: Any) -> dict[tuple[str, str], Severity]:
    return {(each.code, each.pointer): each.severity for each in check(read(document), **settings)}


# Strictness -----------------------------------------------------------------------------------


def test_a_warning_does_not_make_a_document_bad() -> None:
    """Only errors stop a document."""
    report = check(read(machine(Type="Pass", Colour="red")))
    assert report.ok
    assert [each.code for each in report.warnings] == ["V-TOP-09"]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_strict_turns_every_warning_into_an_error(profile: Any) -> None:
    """Specification 0.4: information stays information."""
    document = {**machine(Type="Pass", Colour="red"), "Version": "2"}
    document["States"]["S"]["Retry"] = [{"ErrorEquals": ["States.Runtime"], "IntervalSeconds": 0}]
    report = check(read(document), profile, strict=True)
    assert not report.warnings
    assert not report.ok


def test_strict_does_not_touch_information() -> None:
    """A remark that is no warning stays one."""
    assert levels({**machine(Type="Pass"), "Version": "2"}, strict=True) == {
        ("V-TOP-08", "/Version"): Severity.INFO
    }


# Agents ---------------------------------------------------------------------------------------


def test_unregistered_agent_is_a_warning() -> None:
    """V-TASK-03 names the nearest agent; without a list of agents nothing is said."""
    document = machine(Type="Task", Agent="Reviwer")
    assert levels(document) == {}
    (found,) = check(read(document), agents=["Reviewer"])
    assert (found.code, found.severity) == ("V-TASK-03", Severity.WARNING)
    assert found.pointer == f"{S}/Agent"
    assert found.hint == "did you mean 'Reviewer'?"
    assert levels(document, agents=["Reviwer"]) == {}


def test_agents_of_a_debate_are_looked_up_too() -> None:
    """V-DEB-08 points at the one that is missing."""
    document = machine(Type="Debate", Agents=["A", "B"], Topic="t")
    assert ("V-DEB-08", f"{S}/Agents/1") in levels(document, agents=["A"])


def test_those_who_decide_a_debate_are_looked_up_too() -> None:
    """An arbiter and a tie breaker need not be among the agents; the word Arbiter is no agent."""
    consensus = {"Arbiter": "Judje", "TieBreaker": "Elder"}
    document = machine(Type="Debate", Agents=["A", "B"], Topic="t", Consensus=consensus)
    found = check(read(document), agents=["A", "B", "Judge"])
    (arbiter, breaker) = [each for each in found if each.code == "V-DEB-08"]
    assert (arbiter.pointer, arbiter.hint) == (f"{S}/Consensus/Arbiter", "did you mean 'Judge'?")
    assert breaker.pointer == f"{S}/Consensus/TieBreaker"
    consensus = {"Method": "voting", "Arbiter": "Judge", "TieBreaker": "Arbiter"}
    document = machine(Type="Debate", Agents=["A", "B"], Topic="t", Consensus=consensus)
    assert levels(document, agents=["A", "B", "Judge"]) == {}


NAMED: dict[str, tuple[Json, str]] = {
    "/Context/Summarize/Using": ({"Context": {"Summarize": {"Using": "B"}}}, "V-TASK-03"),
    "/Tools/Hooks/Before/Agent": ({"Tools": {"Hooks": {"Before": {"Agent": "B"}}}}, "V-TASK-03"),
    "/Tools/Hooks/After/Agent": ({"Tools": {"Hooks": {"After": {"Agent": "B"}}}}, "V-TASK-03"),
    "/Guardrails/Input/Validator": ({"Guardrails": {"Input": {"Validator": "B"}}}, "V-TASK-03"),
    "/Guardrails/Output/Validator": ({"Guardrails": {"Output": {"Validator": "B"}}}, "V-TASK-03"),
    **{
        f"/Guardrails/{side}/Rules/0/{field}": (
            {"Guardrails": {side: {"Rules": [{"Type": "custom", field: "B"}]}}},
            code,
        )
        for side in ("Input", "Output")
        for field, code in (
            ("Check", "V-GRD-05"),
            ("Validator", "V-TASK-03"),
            ("Agent", "V-TASK-03"),
        )
    },
}


@pytest.mark.parametrize("place", NAMED)
def test_agents_that_blocks_name_are_looked_up_too(place: str) -> None:
    """Each draws a warning at its place, if nobody has its name."""
    fields, code = NAMED[place]
    document = machine(Type="Task", Agent="A", **fields)
    assert (code, f"{S}{place}") in levels(document, agents=["A"])
    assert (code, f"{S}{place}") not in levels(document, agents=["A", "B"])


def test_what_is_computed_names_no_agent() -> None:
    """Who arbitrates is known when the state runs."""
    consensus = {"Arbiter": "{% $judge %}"}
    fields = {"Type": "Debate", "Agents": ["A", "B"], "Topic": "t", "Consensus": consensus}
    found = levels(machine(QueryLanguage="JSONata", **fields), agents=["A", "B"])
    assert "V-DEB-08" not in {code for code, _ in found}


@pytest.mark.parametrize(("known", "draws"), [([LAMBDA], 0), (["arn:*:f"], 0), (["arn:*:g"], 1)])
def test_resources_may_be_registered_by_pattern(known: list[str], draws: int) -> None:
    """A star in a registered name stands for any run of characters."""
    assert len(levels(resource(), resources=known)) == draws


# Running --------------------------------------------------------------------------------------

WATCHED = {
    **machine(Type="Task", Agent="A", Streaming={"Buffer.$": "$.buffer"}),
    "Progress": {"WeightedProgress.$": "$.tracked"},
}


def test_what_is_not_executed_is_information_to_a_reader() -> None:
    """A check alone does not mind what only a run would need."""
    report = check(read(WATCHED))
    assert report.ok
    assert {each.severity for each in report if each.code == "EXEC-02"} == {Severity.INFO}


def test_what_is_not_executed_is_an_error_to_a_runner() -> None:
    """A run must not start when it would leave out a limit."""
    report = check(read(WATCHED), for_run=True)
    assert [each.pointer for each in report.errors] == [
        f"{S}/Streaming/Buffer.$",
        "/Progress/WeightedProgress.$",
    ]


def test_blocks_can_be_ignored_knowingly() -> None:
    """The run goes on with a warning that says what is missing, in strict mode too."""
    report = check(read(WATCHED), for_run=True, ignore_blocks=True, strict=True)
    assert report.ok
    assert all("limits are not enforced" in each.message for each in report.warnings)


@pytest.mark.parametrize(
    "document",
    [
        {"Module": True, "Exports": ["S"], "States": {"S": {"Type": "Pass", "End": True}}},
    ],
)
def test_only_blocks_can_be_ignored(document: Json) -> None:
    """A state that cannot be executed is never skipped."""
    assert not check(read(document), for_run=True, ignore_blocks=True).ok


def test_metadata_at_the_top_is_nothing_to_execute() -> None:
    """Specification 1.1: it has no effect, so nothing is missing."""
    document = {**machine(Type="Pass"), "Metadata": {"a": 1}, "Observability": {}}
    assert levels(document, for_run=True) == {}


# The aws profile ------------------------------------------------------------------------------

AGENT_ONLY: list[tuple[Json, str, str]] = [
    (machine(Type="Task", Agent="A"), "V-TASK-01", f"{S}/Agent"),
    (machine(Type="Checkpoint", Name="n"), "V-ST-01", f"{S}/Type"),
    (resource(Memory={}), "V-TOP-09", f"{S}/Memory"),
    (machine(Type="Pass", Events={}), "V-TOP-09", f"{S}/Events"),
    ({**machine(Type="Pass"), "Budget": {}}, "V-TOP-09", "/Budget"),
    ({**machine(Type="Pass"), "Metadata": {}}, "V-TOP-09", "/Metadata"),
    (machine(Type="Pass", Colour=1), "V-TOP-09", f"{S}/Colour"),
    ({**machine(Type="Pass"), "Version": "2.0"}, "V-TOP-08", "/Version"),
    (machine(Type="Pass", Comment=5), "V-TOP-14", f"{S}/Comment"),
    (machine(Type="Pass", Catch=[]), "V-ST-10", f"{S}/Catch"),
    (machine(Type="Pass", Parameters={"x.$": "States.Merge($, $)"}), "V-INTR-01",
     f"{S}/Parameters/x.$"),
    (machine(Type="Pass", Parameters={"x.$": "States.MathAdd(1, 2, 3)"}), "V-INTR-06",
     f"{S}/Parameters/x.$"),
    (resource(Resource="echo"), "V-TASK-02", f"{S}/Resource"),
    (resource(Credentials={"Role": "r"}), "V-TASK-06", f"{S}/Credentials"),
    (resource(Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": 1.5}]), "V-RETRY-06",
     f"{S}/Retry/0/IntervalSeconds"),
    (resource(Retry=[{"ErrorEquals": ["A"], "MaxIntervalSeconds": 9}]), "V-RETRY-05",
     f"{S}/Retry/0/MaxIntervalSeconds"),
    (resource(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "DECORRELATED"}]), "V-RETRY-07",
     f"{S}/Retry/0/JitterStrategy"),
    (resource(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "full"}]), "V-RETRY-07",
     f"{S}/Retry/0/JitterStrategy"),
    (resource(Retry=[{"ErrorEquals": ["A"], "Condition": True}]), "V-RETRY-08",
     f"{S}/Retry/0/Condition"),
    ({"StartAt": "S", "States": {"S": {"Type": "Fail", "InputPath": "$"}}}, "V-FAIL-02",
     f"{S}/InputPath"),
    ({"StartAt": "S", "States": {"S": {"Type": "Fail", "Cause.$": "$.c"}}}, "V-TOP-09",
     f"{S}/Cause.$"),
    (resource(Resource="arn:aws:states:::lambda:invoke.sync"), "V-TASK-02", f"{S}/Resource"),
    (resource(Resource="arn:aws:states:::ecs:runTask.sync:2"), "V-TASK-02", f"{S}/Resource"),
    (resource(Resource="arn:aws:states:::aws-sdk:s3:getObject.sync"), "V-TASK-02", f"{S}/Resource"),
    (resource(Resource="arn:aws:states:::glue:startJobRun.waitForTaskToken"), "V-TASK-02",
     f"{S}/Resource"),
    (resource(Resource=ACTIVITY, Credentials={"RoleArn": "r"}), "V-TASK-06", f"{S}/Credentials"),
    (mapping(ItemProcessor={**PROCESSOR, "QueryLanguage": "JSONPath"}), "V-TOP-09",
     f"{S}/ItemProcessor/QueryLanguage"),
    (mapping(ItemProcessor={**PROCESSOR,
                            "ProcessorConfig": {"Mode": "INLINE", "ExecutionType": "STANDARD"}}),
     "V-MAP-07", f"{S}/ItemProcessor/ProcessorConfig/ExecutionType"),
    (mapping(MaxConcurrencyPath="$$.Execution.Input.n"), "V-MAP-05", f"{S}/MaxConcurrencyPath"),
    (mapping(ItemBatcher={"MaxItemsPerBatchPath": "$$.Execution.Input.n"}), "V-MAP-05",
     f"{S}/ItemBatcher/MaxItemsPerBatchPath"),
    (mapping(ItemReader={"Resource": "arn:aws:states:::s3:putObject"}), "V-MAP-16",
     f"{S}/ItemReader/Resource"),
    (mapping(ResultWriter={"Resource": "arn:aws:states:::s3:get", "Parameters": {}}), "V-MAP-16",
     f"{S}/ResultWriter/Resource"),
    (mapping(ResultWriter={}), "V-MAP-16", f"{S}/ResultWriter"),
    (mapping(ItemReader={**READER, "ReaderConfig": {"InputType": "CSV"}}), "V-MAP-09",
     f"{S}/ItemReader/ReaderConfig"),
    (machine(Type="Pass", QueryLanguage="JSONata", Result=1), "V-ST-07", f"{S}/Result"),
    (machine(Type="Pass", QueryLanguage="JSONata", Output="{% 1"), "V-JSONATA-02", f"{S}/Output"),
    ({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"},
                                 "B": {"Type": "Pass", "Next": "A"}}}, "V-TOP-12", "/States"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "rule", "pointer"), AGENT_ONLY)
def test_what_aws_does_not_know_is_an_error_there(document: Json, rule: str, pointer: str) -> None:
    """Specification 0.3: agent-native forms and extensions are errors under `aws`."""
    assert levels(document, profile=AWS)[rule, pointer] is Severity.ERROR


@pytest.mark.parametrize(("document", "rule", "pointer"), AGENT_ONLY)
@pytest.mark.parametrize("profile", [DEFAULT, LENIENT], ids=lambda profile: profile.name)
def test_it_is_no_error_elsewhere(profile: Any, document: Json, rule: str, pointer: str) -> None:
    """The same documents run under the other profiles."""
    assert check(read(document), profile).ok


def test_aws_profile_has_no_advice_about_agent_tools() -> None:
    """`ItemsPath` may be left out on AWS without a remark."""
    inner = {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}
    assert levels(machine(Type="Map", ItemProcessor=inner), profile=AWS) == {}


DISTRIBUTED = {**PROCESSOR, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}
JOB = {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "End": True}

EXPRESS: list[tuple[Json, str, str, str]] = [
    (resource(Resource=JOB["Resource"]), "V-TASK-02", f"{S}/Resource",
     "Express state machine does not support '.sync' service integration"),
    (resource(Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken",
              Parameters={"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"}), "V-TASK-02",
     f"{S}/Resource",
     "Express state machine does not support '.waitForTaskToken' service integration "),
    (resource(Resource=ACTIVITY), "V-TASK-02", f"{S}/Resource",
     "Express state machine does not support Activity ARN"),
    (mapping(ItemProcessor=DISTRIBUTED), "V-MAP-07", f"{S}/ItemProcessor/ProcessorConfig/Mode",
     "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "rule", "pointer", "words"), EXPRESS)
def test_an_express_workflow_can_do_less(
    document: Json, rule: str, pointer: str, words: str
) -> None:
    """AWS refuses jobs, callbacks, activities and distributed Maps in express workflows only."""
    assert check(read(document), AWS).ok
    (found,) = check(read(document), AWS, express=True).errors
    assert (found.code, found.pointer) == (rule, pointer)
    assert found.aws is not None
    assert found.aws.message == words


def test_children_of_a_distributed_map_may_be_express() -> None:
    """Then the same holds for them, whatever the workflow around them is."""
    for kind, accepted in (("STANDARD", True), ("EXPRESS", False)):
        config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
        processor = {"StartAt": "J", "States": {"J": JOB}, "ProcessorConfig": config}
        assert check(read(mapping(ItemProcessor=processor)), AWS).ok is accepted


# Workflows ------------------------------------------------------------------------------------


def starting(workflow: Json = "child", **states: Json) -> Json:
    state = {"Type": "Workflow", "WorkflowId": workflow, "End": True}
    return {"StartAt": next(iter(states), "S"), "States": {**states, "S": state}}


def test_workflows_are_known_to_the_caller() -> None:
    """V-WF-02 names a near one; without a registry nothing is said."""
    assert levels(starting("chidl")) == {}
    assert levels(starting("child"), workflows=["child"]) == {}
    report = check(read(starting("chidl")), workflows=["child"])
    assert [(each.code, each.hint) for each in report] == [("V-WF-02", "did you mean 'child'?")]
    (finding,) = check(read(starting("zzz")), workflows=["child"])
    assert finding.hint == "give it one: --workflow zzz=FILE"
    assert [*levels(starting("{% $x %}"), workflows=["child"])] == [
        ("V-ST-11", "/States/S/WorkflowId")
    ]


DECIDE = {
    "Type": "Choice",
    "Choices": [{"Variable": "$.n", "IsNull": True, "Next": "S"}],
    "Default": "D",
}
PASS = {"Type": "Pass", "Next": "S"}


@pytest.mark.parametrize(
    ("document", "endless"),
    [
        (starting(), True),
        (starting(P=PASS), True),
        (starting(P=DECIDE, D={"Type": "Succeed"}), False),
        (starting("other"), False),
        (machine(Type="Parallel", Branches=[starting()]), True),
        (mapping(ItemProcessor=starting()), False),
    ],
)
def test_a_workflow_that_always_starts_itself(document: Json, endless: bool) -> None:
    """V-WF-04: a Choice decides, and a Map may have no items."""
    codes = {each.code for each in check(read(document, name="child.asl.json"))}
    assert ("V-WF-04" in codes) is endless
