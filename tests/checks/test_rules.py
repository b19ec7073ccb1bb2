"""For every rule a document that breaks it, at which place, and a near twin that does not."""

from typing import Any

import pytest

import asl
from asl.checks import check
from asl.core.codes import all_codes
from asl.core.document import read
from asl.core.profile import DEFAULT

pytestmark = pytest.mark.quick

Json = Any
Case = tuple[str, Json, str, Json]

DONE = {"Type": "Succeed"}
TASK = {"Type": "Task", "Agent": "A", "End": True}
PASS = {"Type": "Pass", "End": True}
RETRIER = {"ErrorEquals": ["Busy"]}
CATCHER = {"ErrorEquals": ["Busy"], "Next": "Z"}
PROCESSOR = {"StartAt": "I", "States": {"I": DONE}}
DISTRIBUTED = {**PROCESSOR, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}
MAP = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": PROCESSOR, "End": True}
PARALLEL = {"Type": "Parallel", "Branches": [PROCESSOR], "End": True}
RULE = {"Variable": "$.a", "IsNull": True}


def machine(**states: Json) -> Json:
    """A document that starts at its first state."""
    return {"StartAt": next(iter(states)), "States": states}


def task(**fields: Json) -> Json:
    return machine(S={**TASK, **fields})


def passing(**fields: Json) -> Json:
    return machine(S={**PASS, **fields})


def calling(resource: str) -> Json:
    return machine(S={"Type": "Task", "Resource": resource, "End": True})


def sending(**fields: Json) -> Json:
    resource = "arn:aws:states:::sqs:sendMessage"
    return machine(S={"Type": "Task", "Resource": resource, "End": True, **fields})


def awaiting(**fields: Json) -> Json:
    return sending(Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken", **fields)


def computed(expression: Json) -> Json:
    return passing(Parameters={"x.$": expression})


def retrying(*retriers: Json) -> Json:
    return task(Retry=list(retriers))


def retrier(**fields: Json) -> Json:
    return retrying({**RETRIER, **fields})


def catching(*catchers: Json) -> Json:
    return machine(S={**TASK, "Catch": list(catchers)}, Z=DONE)


def choice(*rules: Json, **fields: Json) -> Json:
    rules = tuple({**rule, "Next": "Z"} for rule in rules)
    return machine(S={"Type": "Choice", "Choices": list(rules), "Default": "Z", **fields}, Z=DONE)


def comparing(**operator: Json) -> Json:
    return choice({"Variable": "$.a", **operator})


def mapping(**fields: Json) -> Json:
    return machine(S={**MAP, **fields})


def reading(**config: Json) -> Json:
    return mapping(ItemReader={"Resource": "arn:x", "ReaderConfig": config})


def without(value: Json, *fields: str) -> Json:
    return {key: part for key, part in value.items() if key not in fields}


def parallel(*branches: Json, **fields: Json) -> Json:
    return machine(S={**PARALLEL, "Branches": list(branches), **fields})


def waiting(**fields: Json) -> Json:
    return machine(S={"Type": "Wait", "End": True, **fields})


def failing(**fields: Json) -> Json:
    return machine(S={"Type": "Fail", **fields})


def approval(**fields: Json) -> Json:
    return machine(S={"Type": "Approval", "Prompt": "p", **fields})


def debate(**fields: Json) -> Json:
    return machine(S={"Type": "Debate", "Agents": ["A", "B"], "Topic": "t", "End": True, **fields})


def jsonata(**fields: Json) -> Json:
    return passing(QueryLanguage="JSONata", **fields)


S = "/States/S"
TOP: list[Case] = [
    ("V-TOP-02", {"States": {"A": DONE}}, "", machine(A=DONE)),
    ("V-TOP-02", {**machine(A=DONE), "StartAt": 5}, "/StartAt", machine(A=DONE)),
    ("V-TOP-03", {"StartAt": "A"}, "", machine(A=DONE)),
    ("V-TOP-03", {"StartAt": "A", "States": []}, "/States", machine(A=DONE)),
    ("V-TOP-03", machine(A="Succeed"), "/States/A", machine(A=DONE)),
    ("V-TOP-04", {**machine(A=DONE), "StartAt": "a"}, "/StartAt", machine(A=DONE)),
    ("V-TOP-04", mapping(ItemProcessor={**PROCESSOR, "StartAt": "S"}),
     f"{S}/ItemProcessor/StartAt", mapping()),
    ("V-TOP-05", machine(**{"n" * 81: DONE}), f"/States/{'n' * 81}", machine(**{"n" * 80: DONE})),
    ("V-TOP-05", machine(**{"": DONE}), "/States/", machine(**{" ": DONE})),
    ("V-TOP-06", machine(I={**MAP}), "/States/I/ItemProcessor/States/I", mapping()),
    ("V-TOP-07", {**passing(), "TimeoutSeconds": 0}, "/TimeoutSeconds",
     {**passing(), "TimeoutSeconds": 99_999_999}),
    ("V-TOP-08", {**passing(), "Version": "2.0"}, "/Version", {**passing(), "Version": "1.0"}),
    ("V-TOP-09", {**passing(), "Coment": "x"}, "/Coment", {**passing(), "Comment": "x"}),
    ("V-TOP-09", passing(Coment="x"), f"{S}/Coment", passing(Comment="x")),
    ("V-TOP-10", passing(QueryLanguage="jsonpath"), f"{S}/QueryLanguage",
     passing(QueryLanguage="JSONPath")),
    ("V-TOP-11", machine(S=PASS, Z=DONE), "/States/Z",
     machine(S={"Type": "Pass", "Next": "Z"}, Z=DONE)),
    ("V-TOP-11", machine(S=PASS, A={"Type": "Pass", "Next": "A"}), "/States/A", passing()),
    ("V-TOP-12", machine(A={"Type": "Pass", "Next": "B"}, B={"Type": "Pass", "Next": "A"}),
     "/States", machine(A={"Type": "Pass", "Next": "B"}, B=DONE)),
    ("V-TOP-13", machine(S={"Type": "Pass", "Next": "{{n}}"}), f"{S}/Next",
     {**machine(S={"Type": "Pass", "Next": "{{n}}"}), "Parameters": {"n": {}}}),
    ("V-TOP-14", passing(Comment=["x"]), f"{S}/Comment", passing(Comment="x")),
    ("V-TOP-14", retrier(Comment=5), f"{S}/Retry/0/Comment", retrier(Comment="")),
]  # fmt: skip

COMMON: list[Case] = [
    ("V-ST-11", passing(Parameters={"a": {"b": "$.c"}}), f"{S}/Parameters/a/b",
     passing(Parameters={"a": {"b.$": "$.c"}})),
    ("V-ST-11", mapping(ItemReader={"Resource": "arn:x", "Parameters": {"Bucket": "$.b"}}),
     f"{S}/ItemReader/Parameters/Bucket",
     mapping(ItemReader={"Resource": "arn:x", "Parameters": {"Bucket.$": "$.b"}})),
    ("V-ST-11", passing(Assign={"a": "States.UUID()"}), f"{S}/Assign/a",
     passing(Assign={"a.$": "States.UUID()"})),
    ("V-ST-11", passing(Parameters={"a": "{% 1 %}"}), f"{S}/Parameters/a",
     jsonata(Output={"a": "{% 1 %}"})),
    ("V-ST-11", jsonata(Output="$states.input.a"), f"{S}/Output",
     jsonata(Output="{% $states.input.a %}")),
    ("V-ST-11", jsonata(Output={"a.$": "$.a"}), f"{S}/Output/a.$", jsonata(Output={"a.$": "$5"})),
    ("V-ST-12", choice({"Variable": "$.a", "StringEquals": "$.b"}), f"{S}/Choices/0/StringEquals",
     choice({"Variable": "$.a", "StringEqualsPath": "$.b"})),
    ("V-ST-12", failing(Error="$.e"), f"{S}/Error", failing(ErrorPath="$.e")),
    ("V-ST-01", machine(S={"End": True}), S, passing()),
    ("V-ST-01", passing(Type="pass"), f"{S}/Type", passing()),
    ("V-ST-02", machine(S={"Type": "Pass"}), S, passing()),
    ("V-ST-02", machine(S={"Type": "Pass", "End": False}), S, passing()),
    ("V-ST-02", machine(S={**PASS, "Next": "Z"}, Z=DONE), S,
     machine(S={"Type": "Pass", "Next": "Z", "End": False}, Z=DONE)),
    ("V-ST-02", passing(End="true"), f"{S}/End", passing()),
    ("V-ST-03", machine(S={"Type": "Pass", "Next": "z"}, Z=DONE), f"{S}/Next",
     machine(S={"Type": "Pass", "Next": "Z"}, Z=DONE)),
    ("V-ST-03", choice({"Variable": "$.a", "IsNull": True}, Default="Q"), f"{S}/Default",
     choice(RULE)),
    ("V-ST-03", catching({**CATCHER, "Next": "S2"}), f"{S}/Catch/0/Next", catching(CATCHER)),
    ("V-ST-03", parallel({"StartAt": "B", "States": {"B": {"Type": "Pass", "Next": "S"}}}),
     f"{S}/Branches/0/States/B/Next", parallel(PROCESSOR)),
    ("V-ST-05", passing(InputPath="a"), f"{S}/InputPath", passing(InputPath="$.a")),
    ("V-ST-05", passing(OutputPath="States.UUID()"), f"{S}/OutputPath", passing(OutputPath=None)),
    ("V-ST-05", passing(ResultPath="$.a[*]"), f"{S}/ResultPath", passing(ResultPath="$.a[0]")),
    ("V-ST-05", passing(ResultPath="null"), f"{S}/ResultPath", passing(ResultPath=None)),
    ("V-ST-05", passing(ResultPath="$$.a"), f"{S}/ResultPath", passing(ResultPath="$['$'].a")),
    ("V-ST-05", passing(ResultPath="$a"), f"{S}/ResultPath", passing(ResultPath="$.a")),
    ("V-ST-06", waiting(Seconds=1, Parameters={}), f"{S}/Parameters", waiting(Seconds=1)),
    ("V-ST-07", jsonata(InputPath="$"), f"{S}/InputPath", jsonata()),
    ("V-ST-07", task(Arguments={}), f"{S}/Arguments", task(Parameters={})),
    ("V-ST-07", choice({"Condition": "{% true %}"}), f"{S}/Choices/0/Condition", choice(RULE)),
    ("V-ST-07", choice(RULE, QueryLanguage="JSONata"), f"{S}/Choices/0/Variable",
     choice({"Condition": "{% true %}"}, QueryLanguage="JSONata")),
    ("V-ST-08", {**passing(QueryLanguage="JSONPath"), "QueryLanguage": "JSONata"},
     f"{S}/QueryLanguage", {**passing(), "QueryLanguage": "JSONata"}),
    ("V-ST-09", computed(5), f"{S}/Parameters/x.$", computed("$.a")),
    ("V-ST-09", computed("a"), f"{S}/Parameters/x.$", computed("$a")),
    ("V-ST-09", computed("$.a["), f"{S}/Parameters/x.$", computed("$.a[0]")),
    ("V-ST-09", computed("States.Array($.a[x])"), f"{S}/Parameters/x.$",
     computed("States.Array($.a)")),
    ("V-ST-09", passing(Parameters={".$": "$.a"}), f"{S}/Parameters/.$",
     passing(Parameters={"$": "$.a"})),
    ("V-ST-09", passing(Parameters=[{"x": 1, "x.$": "$"}]), f"{S}/Parameters/0/x.$",
     passing(Parameters=[{"x": 1, "y.$": "$"}])),
    ("V-ST-09", task(Assign={"v.$": "v"}), f"{S}/Assign/v.$", task(Assign={"v": "v"})),
    ("V-ST-09", catching({**CATCHER, "Assign": {"v.$": 1}}), f"{S}/Catch/0/Assign/v.$",
     catching({**CATCHER, "Assign": {"v.$": "$.Error"}})),
    ("V-ST-09", task(Budget={"MaxCost": 1, "MaxCost.$": "$.m"}), f"{S}/Budget/MaxCost.$",
     task(Budget={"MaxCost.$": "$.m"})),
    ("V-ST-09", mapping(**{"ItemsPath.$": "$.a"}), f"{S}/ItemsPath.$",
     machine(S={**without(MAP, "ItemsPath"), "ItemsPath.$": "$.a"})),
    ("V-ST-09", choice({**RULE, "Variable": "a"}), f"{S}/Choices/0/Variable", choice(RULE)),
    ("V-ST-10", passing(Retry=[RETRIER]), f"{S}/Retry", retrying(RETRIER)),
    ("V-VAR-01", task(Assign={"1st": 1}), f"{S}/Assign/1st", task(Assign={"_1st": 1})),
    ("V-VAR-01", task(Assign={"states": 1}), f"{S}/Assign/states", task(Assign={"state": 1})),
    ("V-VAR-01", task(Assign={"$v": 1}), f"{S}/Assign/$v", task(Assign={"ä": 1})),
    ("V-VAR-01", task(Assign={"v" * 81 + ".$": "$"}), f"{S}/Assign/{'v' * 81}.$",
     task(Assign={"v" * 80 + ".$": "$"})),
    ("V-VAR-02", parallel({"StartAt": "B", "States": {"B": {**PASS, "Assign": {"v": 1}}}},
                          Assign={"v": 2}),
     f"{S}/Branches/0/States/B/Assign/v",
     parallel({"StartAt": "B", "States": {"B": {**PASS, "Assign": {"v": 1}}}}, Assign={"w": 2})),
    ("V-VAR-03", computed("$v.a"), f"{S}/Parameters/x.$",
     machine(A={"Type": "Pass", "Assign": {"v": 1}, "Next": "S"},
             S={**PASS, "Parameters": {"x.$": "$v.a"}})),
    ("V-VAR-03", computed("States.Array($v)"), f"{S}/Parameters/x.$",
     computed("States.Array($.v)")),
    ("V-TXT-01", approval(Prompt="Ask {{ name }}", End=True), f"{S}/Prompt",
     approval(Prompt=r"Ask {{ $.name }} \{{", End=True)),
    ("V-TXT-01", approval(Prompt={"Title": "{{}}"}, End=True), f"{S}/Prompt/Title",
     approval(Prompt={"Title.$": "$.t"}, End=True)),
    ("V-TXT-01", debate(Topic="}} {{ $.a }}"), f"{S}/Topic", debate(Topic="{{ $['}}'] }}")),
    ("V-TXT-01", task(Memory={"Namespace": "u_{{$.id"}), f"{S}/Memory/Namespace",
     task(Memory={"Namespace": "u_{{$.id}}"})),
    ("V-INTR-01", computed("States.Fromat('a')"), f"{S}/Parameters/x.$",
     computed("States.Format('a')")),
    ("V-INTR-02", computed('States.Array("a")'), f"{S}/Parameters/x.$",
     computed("States.Array('a')")),
    ("V-INTR-03", computed("States.UUID(1)"), f"{S}/Parameters/x.$", computed("States.UUID()")),
    ("V-INTR-04", computed("States.Array(" * 11 + ")" * 11), f"{S}/Parameters/x.$",
     computed("States.Array(" * 10 + ")" * 10)),
    ("V-INTR-05", computed("States.Format('{a {}', 1)"), f"{S}/Parameters/x.$",
     computed(r"States.Format('\{a {}', 1)")),
    ("V-INTR-06", computed("States.Hash('a', 'sha256')"), f"{S}/Parameters/x.$",
     computed("States.Hash('a', 'SHA-256')")),
    ("V-INTR-07", computed("States.Format('{}')"), f"{S}/Parameters/x.$",
     computed("States.Format('{}', 1)")),
]  # fmt: skip

ERRORS: list[Case] = [
    ("V-RETRY-01", retrying({}), f"{S}/Retry/0", retrying(RETRIER)),
    ("V-RETRY-02", retrying({"ErrorEquals": ["States.ALL", "A"]}), f"{S}/Retry/0/ErrorEquals",
     retrying({"ErrorEquals": ["States.ALL"]})),
    ("V-RETRY-02", retrying({"ErrorEquals": ["States.ALL"]}, RETRIER), f"{S}/Retry/0/ErrorEquals",
     retrying(RETRIER, {"ErrorEquals": ["States.ALL"]})),
    ("V-RETRY-03", retrier(MaxAttempts=1.5), f"{S}/Retry/0/MaxAttempts", retrier(MaxAttempts=0)),
    ("V-RETRY-04", retrier(BackoffRate=0.9), f"{S}/Retry/0/BackoffRate", retrier(BackoffRate=1)),
    ("V-RETRY-05", retrier(IntervalSeconds=5, MaxDelaySeconds=5), f"{S}/Retry/0/MaxDelaySeconds",
     retrier(IntervalSeconds=5, MaxDelaySeconds=6)),
    ("V-RETRY-05", retrier(MaxIntervalSeconds=5), f"{S}/Retry/0/MaxIntervalSeconds",
     retrier(MaxDelaySeconds=5)),
    ("V-RETRY-06", retrier(IntervalSeconds=0), f"{S}/Retry/0/IntervalSeconds",
     retrier(IntervalSeconds=1)),
    ("V-RETRY-06", retrier(IntervalSeconds="1"), f"{S}/Retry/0/IntervalSeconds",
     retrier(IntervalSeconds=1.0)),
    ("V-RETRY-07", retrier(JitterStrategy="full"), f"{S}/Retry/0/JitterStrategy",
     retrier(JitterStrategy="FULL")),
    ("V-RETRY-08", retrier(Condition=True), f"{S}/Retry/0/Condition", retrier()),
    ("V-RETRY-09", retrying({"ErrorEquals": ["States.Runtime"]}), f"{S}/Retry/0/ErrorEquals/0",
     retrying({"ErrorEquals": ["States.Timeout"]})),
    ("V-RETRY-10", retrier(MaxAttempts=18), f"{S}/Retry/0",
     retrier(MaxAttempts=18, MaxDelaySeconds=60)),
    ("V-RETRY-11", retrying(RETRIER, {"ErrorEquals": ["A", "Busy"]}), f"{S}/Retry/1/ErrorEquals/1",
     retrying(RETRIER, {"ErrorEquals": ["A", "busy"]})),
    ("V-RETRY-11", catching({**CATCHER, "ErrorEquals": ["States.TaskFailed"]}, CATCHER),
     f"{S}/Catch/1/ErrorEquals/0",
     catching({**CATCHER, "ErrorEquals": ["States.TaskFailed"]},
              {**CATCHER, "ErrorEquals": ["States.Timeout"]})),
    ("V-CATCH-01", catching({"Next": "Z"}), f"{S}/Catch/0", catching(CATCHER)),
    ("V-CATCH-02", catching({**CATCHER, "ErrorEquals": ["States.ALL"]}, CATCHER),
     f"{S}/Catch/0/ErrorEquals", catching(CATCHER, {**CATCHER, "ErrorEquals": ["States.ALL"]})),
    ("V-CATCH-03", machine(S={**TASK, "Catch": [RETRIER]}), f"{S}/Catch/0", catching(CATCHER)),
    ("V-CATCH-04", catching({**CATCHER, "ResultPath": "$$.e"}), f"{S}/Catch/0/ResultPath",
     catching({**CATCHER, "ResultPath": "$.e"})),
    ("V-CATCH-05", catching({**CATCHER, "ErrorEquals": ["States.Timout"]}),
     f"{S}/Catch/0/ErrorEquals/0", catching({**CATCHER, "ErrorEquals": ["States.Timeout"]})),
    ("V-CATCH-05", retrying({"ErrorEquals": ["Agent."]}), f"{S}/Retry/0/ErrorEquals/0",
     retrying({"ErrorEquals": ["Agent"]})),
]  # fmt: skip

TASKS: list[Case] = [
    ("V-TASK-01", machine(S={"Type": "Task", "End": True}), S, task()),
    ("V-TASK-01", task(Resource="arn:x"), S, task()),
    ("V-TASK-02", task(Agent=""), f"{S}/Agent", task(Agent="a")),
    ("V-TASK-02", task(Agent="$.agent"), f"{S}/Agent", task(Agent="agent")),
    ("V-TASK-04", task(TimeoutSeconds=5, TimeoutSecondsPath="$.t"), f"{S}/TimeoutSecondsPath",
     task(TimeoutSecondsPath="$.t")),
    ("V-TASK-05", task(TimeoutSeconds=0), f"{S}/TimeoutSeconds", task(TimeoutSeconds=1)),
    ("V-TASK-05", task(TimeoutSeconds="{% 5 %}"), f"{S}/TimeoutSeconds",
     task(TimeoutSeconds="{% 5 %}", QueryLanguage="JSONata")),
    ("V-TASK-05", task(HeartbeatSecondsPath="$..h"), f"{S}/HeartbeatSecondsPath",
     task(HeartbeatSecondsPath="$.h")),
    ("V-TASK-06", task(Credentials={}), f"{S}/Credentials",
     machine(S={"Type": "Task", "Resource": "arn:x", "Credentials": {}, "End": True})),
    ("V-TASK-07", task(TimeoutSeconds=5, HeartbeatSeconds=5), f"{S}/HeartbeatSeconds",
     task(TimeoutSeconds=6, HeartbeatSeconds=5)),
    ("V-TASK-08", machine(S={"Type": "Task", "Resource": "arn:x", "Memory": {}, "End": True}),
     f"{S}/Memory", task(Memory={})),
    ("V-TASK-09", task(Parameters=["a"]), f"{S}/Parameters", task(Parameters={"a": 1})),
    ("V-TASK-10", awaiting(Parameters={"a": 1}), f"{S}/Resource",
     awaiting(Parameters={"a": [{"t.$": "$$.Task.Token"}]})),
    ("V-TASK-10", awaiting(Arguments={"a": 1}, QueryLanguage="JSONata"), f"{S}/Resource",
     awaiting(Arguments={"a": "{% $states.context.Task.Token %}"}, QueryLanguage="JSONata")),
    ("V-TASK-10", awaiting(), f"{S}/Resource", awaiting(Parameters={"all.$": "$$"})),
    ("V-TASK-11", sending(Parameters={"t.$": "$$.Task.Token"}), f"{S}/Parameters/t.$",
     awaiting(Parameters={"t.$": "$$.Task.Token"})),
    ("V-TASK-12", sending(Parameters={"QueueUrl": "q", "messageBody.$": "$.b"}),
     f"{S}/Parameters/messageBody.$",
     sending(Parameters={"QueueUrl": "q", "MessageBody.$": "$.b"})),
    ("V-TASK-12", awaiting(Parameters={"QueueUrl": "q", "MessageBody.$": "$$.Task.Token", "To": 1}),
     f"{S}/Parameters/To",
     awaiting(Parameters={"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"})),
    ("V-TASK-12", sending(Arguments={"MessageBody": "b"}, QueryLanguage="JSONata"),
     f"{S}/Arguments",
     sending(Arguments={"QueueUrl": "{% $q %}", "MessageBody": "b"}, QueryLanguage="JSONata")),
]  # fmt: skip

CHOICES: list[Case] = [
    ("V-CHOICE-01", choice(), f"{S}/Choices", choice(RULE)),
    ("V-CHOICE-02", machine(S={"Type": "Choice", "Choices": [RULE], "Default": "Z"}, Z=DONE),
     f"{S}/Choices/0", choice(RULE)),
    ("V-CHOICE-02", choice({"Not": {**RULE, "Next": "Z"}}), f"{S}/Choices/0/Not/Next",
     choice({"Not": RULE})),
    ("V-CHOICE-03", choice({"And": [RULE], "Or": [RULE]}), f"{S}/Choices/0",
     choice({"And": [RULE, {"Or": [RULE]}]})),
    ("V-CHOICE-03", choice({"And": [RULE], **RULE}), f"{S}/Choices/0",
     choice({"And": [RULE]})),
    ("V-CHOICE-03", choice({**RULE, "IsString": True}), f"{S}/Choices/0", choice(RULE)),
    ("V-CHOICE-03", choice({"IsNull": True}), f"{S}/Choices/0", choice(RULE)),
    ("V-CHOICE-03", choice({"Not": {"Variable": "$.a"}}), f"{S}/Choices/0/Not", choice(RULE)),
    ("V-CHOICE-03", choice({}, QueryLanguage="JSONata"), f"{S}/Choices/0",
     choice({"Condition": True}, QueryLanguage="JSONata")),
    ("V-CHOICE-04", comparing(NumericEquals="5"), f"{S}/Choices/0/NumericEquals",
     comparing(NumericEquals=5)),
    ("V-CHOICE-04", comparing(TimestampEquals="2030-02-30T12:00:00Z"),
     f"{S}/Choices/0/TimestampEquals", comparing(TimestampEquals="2030-02-28T12:00:00Z")),
    ("V-CHOICE-04", comparing(StringEqualsPath="$.a[*]"), f"{S}/Choices/0/StringEqualsPath",
     comparing(StringEqualsPath="$.a[0]")),
    ("V-CHOICE-05", choice(RULE, End=True), f"{S}/End", choice(RULE)),
    ("V-CHOICE-06", machine(S={"Type": "Choice", "Choices": [{**RULE, "Next": "Z"}]}, Z=DONE), S,
     choice(RULE)),
    ("V-CHOICE-07", comparing(TimestampLessThan="-5m"), f"{S}/Choices/0/TimestampLessThan",
     comparing(TimestampLessThan="2030-02-28T12:00:00Z")),
    ("V-CHOICE-07", choice({"Variable.$": "$.a", "IsNull": True}), f"{S}/Choices/0/Variable.$",
     choice(RULE)),
    ("V-CHOICE-08", choice(RULE, {**RULE, "Comment": "again"}), f"{S}/Choices/1",
     choice(RULE, {**RULE, "IsNull": False})),
    ("V-CHOICE-09", comparing(StringEqual="x"), f"{S}/Choices/0/StringEqual",
     comparing(StringEquals="x")),
    ("V-CHOICE-10", comparing(StringMatches="a?"), f"{S}/Choices/0/StringMatches",
     comparing(StringMatches="a*")),
]  # fmt: skip

MAPS: list[Case] = [
    ("V-MAP-01", machine(S=without(MAP, "ItemProcessor")), S, mapping()),
    ("V-MAP-01", mapping(Iterator={"StartAt": "J", "States": {"J": DONE}}), S, mapping()),
    ("V-MAP-02", mapping(ItemProcessor=[]), f"{S}/ItemProcessor", mapping()),
    ("V-MAP-03", mapping(ItemsPath="$.a[*]"), f"{S}/ItemsPath", mapping(ItemsPath="$$.a")),
    ("V-MAP-03", mapping(Items=[1]), f"{S}/Items", mapping()),
    ("V-MAP-04", mapping(ItemSelector={}, Parameters={}), f"{S}/Parameters",
     mapping(ItemSelector={})),
    ("V-MAP-05", mapping(MaxConcurrency=-1), f"{S}/MaxConcurrency", mapping(MaxConcurrency=0)),
    ("V-MAP-05", mapping(MaxConcurrency=1, MaxConcurrencyPath="$.m"), f"{S}/MaxConcurrencyPath",
     mapping(MaxConcurrencyPath="$.m")),
    ("V-MAP-05", mapping(ToleratedFailureCountPath="t"), f"{S}/ToleratedFailureCountPath",
     mapping(ToleratedFailureCountPath="$.t")),
    ("V-MAP-06", mapping(Label="L"), f"{S}/Label", mapping(ItemProcessor=DISTRIBUTED, Label="L")),
    ("V-MAP-06", mapping(ToleratedFailureCount=1), f"{S}/ToleratedFailureCount", mapping()),
    ("V-MAP-07", mapping(ItemProcessor={**PROCESSOR, "ProcessorConfig": {"Mode": "DISTRIBUTED"}}),
     f"{S}/ItemProcessor/ProcessorConfig", mapping(ItemProcessor=DISTRIBUTED)),
    ("V-MAP-08", mapping(ToleratedFailurePercentage=100.1), f"{S}/ToleratedFailurePercentage",
     mapping(ToleratedFailurePercentage=100)),
    ("V-MAP-09", reading(CSVHeaderLocation="GIVEN"), f"{S}/ItemReader/ReaderConfig",
     reading(CSVHeaderLocation="FIRST_ROW")),
    ("V-MAP-09", reading(CSVHeaders=["a", "a"]), f"{S}/ItemReader/ReaderConfig/CSVHeaders/1",
     reading(CSVHeaders=["a", "b"])),
    ("V-MAP-10", mapping(ItemBatcher={}), f"{S}/ItemBatcher",
     mapping(ItemBatcher={"MaxItemsPerBatch": 1})),
    ("V-MAP-11", machine(S=without(MAP, "ItemsPath")), S, mapping()),
    ("V-MAP-12", mapping(ItemProcessor=DISTRIBUTED, Label="a*"), f"{S}/Label",
     mapping(ItemProcessor=DISTRIBUTED, Label="a")),
    ("V-MAP-13", machine(S={**without(MAP, "ItemProcessor"), "Iterator": PROCESSOR}),
     f"{S}/Iterator", mapping()),
    ("V-MAP-13", mapping(Parameters={}), f"{S}/Parameters", mapping(ItemSelector={})),
    ("V-MAP-05", reading(MaxItems=1, MaxItemsPath="$.m"),
     f"{S}/ItemReader/ReaderConfig/MaxItemsPath", reading(MaxItemsPath="$.m")),
    ("V-MAP-07",
     mapping(ItemProcessor={**PROCESSOR, "ProcessorConfig": {"ExecutionType": "EXPRESS"}}),
     f"{S}/ItemProcessor/ProcessorConfig/ExecutionType", mapping(ItemProcessor=DISTRIBUTED)),
    ("V-MAP-09", reading(InputType="CSV"), f"{S}/ItemReader/ReaderConfig",
     reading(InputType="CSV", CSVHeaderLocation="FIRST_ROW")),
    ("V-MAP-09", reading(InputType="JSON", CSVDelimiter="TAB"),
     f"{S}/ItemReader/ReaderConfig/CSVDelimiter", reading(InputType="JSON")),
    ("V-MAP-10", mapping(ItemBatcher={"MaxItemsPerBatch": 1, "MaxItemsPerBatchPath": "$.m"}),
     f"{S}/ItemBatcher/MaxItemsPerBatchPath",
     mapping(ItemBatcher={"MaxItemsPerBatchPath": "$.m", "MaxInputBytesPerBatch": 5})),
    ("V-MAP-10", mapping(ItemBatcher={"MaxItemsPerBatch": "{% 5 %}"}),
     f"{S}/ItemBatcher/MaxItemsPerBatch",
     mapping(ItemBatcher={"MaxItemsPerBatch": "{% 5 %}"}, QueryLanguage="JSONata")),
    ("V-MAP-15", machine(S={"Type": "Pass", "Next": "A"}, A={**MAP, "Label": "L", "Next": "B"},
                         B={**MAP, "Label": "L"}), "/States/B/Label",
     machine(A={**MAP, "Label": "L", "Next": "B"}, B={**MAP, "Label": "M"})),
    ("V-MAP-16", mapping(ResultWriter={}), f"{S}/ResultWriter",
     mapping(ResultWriter={"WriterConfig": {"OutputType": "JSON", "Transformation": "NONE"}})),
    ("V-MAP-16", mapping(ResultWriter={"Resource": "arn:x"}), f"{S}/ResultWriter",
     mapping(ResultWriter={"Resource": "arn:x", "Parameters": {"Bucket": "b"}})),
]  # fmt: skip

DECIDED = {"Variable": "$.approval", "StringEquals": "approve", "Next": "Z"}


def deciding(rule: Json, **fields: Json) -> Json:
    """An Approval with one rule."""
    return asking(Choices=[{**rule, "Next": "Z"}], **fields)


def asking(**fields: Json) -> Json:
    return machine(S={"Type": "Approval", "Prompt": "p", "Default": "Z", **fields}, Z=DONE)


def routing(variable: str, wanted: str, **fields: Json) -> Json:
    """An Approval, and a Choice behind it."""
    rule = {"Variable": variable, "StringEquals": wanted, "Next": "Z"}
    return machine(
        S={"Type": "Approval", "Prompt": "p", "Next": "C", **fields},
        C={"Type": "Choice", "Choices": [rule], "Default": "Z"},
        Z=DONE,
    )


def child(**fields: Json) -> Json:
    return machine(S={"Type": "Workflow", "End": True, **fields})


def levels(*times: str) -> Json:
    return asking(Escalation={"Levels": [{"After": time} for time in times]})


R = f"{S}/Choices/0"
LATER = "/States/C/Choices/0"
SEEKING = {"Required": True, "Arbiter": "B"}
DEBATES: list[Case] = [
    ("V-DEB-01", debate(Agents=["A"]), f"{S}/Agents", debate()),
    ("V-DEB-01", debate(Agents=["A", "A"]), f"{S}/Agents", debate()),
    ("V-DEB-01", debate(Agents=["A", ""]), f"{S}/Agents/1", debate()),
    ("V-DEB-02", debate(TopicPath="$.t"), f"{S}/TopicPath", debate()),
    ("V-DEB-02", debate(**{"Topic.$": "$.t"}), f"{S}/Topic.$", debate()),
    (
        "V-DEB-02",
        without(debate(), "Topic")
        | machine(S={"Type": "Debate", "Agents": ["A", "B"], "End": True}),
        S,
        debate(),
    ),
    ("V-DEB-03", debate(Rounds=0), f"{S}/Rounds", debate(Rounds=1)),
    (
        "V-DEB-03",
        debate(Consensus={"MaxRoundsForConsensus": 1.5}),
        f"{S}/Consensus/MaxRoundsForConsensus",
        debate(Consensus={"MaxRoundsForConsensus": 2}),
    ),
    (
        "V-DEB-03",
        debate(Rounds="{% 2 %}"),
        f"{S}/Rounds",
        debate(QueryLanguage="JSONata", Rounds="{% 2 %}"),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Style": "loud"}),
        f"{S}/Communication/Style",
        debate(Communication={"Style": "reactive"}),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Style": "{% 'reactive' %}"}),
        f"{S}/Communication/Style",
        debate(QueryLanguage="JSONata", Communication={"Style": "{% 'reactive' %}"}),
    ),
    (
        "V-DEB-04",
        debate(Communication={"VisibleHistory": "some"}),
        f"{S}/Communication/VisibleHistory",
        debate(Communication={"VisibleHistory": "own"}),
    ),
    (
        "V-DEB-04",
        debate(Consensus={"Method": "dice"}),
        f"{S}/Consensus/Method",
        debate(Consensus={"Method": "arbiter"}),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Order": ["B"]}),
        f"{S}/Communication/Order",
        debate(Communication={"Order": ["B", "A"]}),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Order": ["B", "A", "C"]}),
        f"{S}/Communication/Order/2",
        debate(Communication={"Order": ["B", "A"]}),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Order": ["B", "A"]}, Consensus=SEEKING),
        f"{S}/Communication/Order/0",
        debate(Communication={"Order": ["A"]}, Consensus=SEEKING),
    ),
    (
        "V-DEB-04",
        debate(Communication={"Order": ["C"]}, Consensus={"Required.$": "$.r"}),
        f"{S}/Communication/Order",
        debate(Communication={"Order": ["A"]}, Consensus={"Required.$": "$.r"}),
    ),
    (
        "V-DEB-05",
        debate(Consensus={"Required": True}),
        f"{S}/Consensus/Required",
        debate(Consensus={"Required": True, "Arbiter": "C"}),
    ),
    (
        "V-DEB-05",
        debate(Consensus={"Required": True}),
        f"{S}/Consensus/Required",
        debate(Consensus={"Required": True, "Arbiter.$": "$.a"}),
    ),
    (
        "V-DEB-06",
        debate(Consensus={"Threshold": 0}),
        f"{S}/Consensus/Threshold",
        debate(Consensus={"Threshold": 0.01}),
    ),
    (
        "V-DEB-06",
        debate(Consensus={"RequiredMajority": 1}),
        f"{S}/Consensus/RequiredMajority",
        debate(Consensus={"RequiredMajority": 0.99}),
    ),
    (
        "V-DEB-07",
        debate(Consensus={"VotingAgents": ["C"]}),
        f"{S}/Consensus/VotingAgents/0",
        debate(Consensus={"VotingAgents": ["B"]}),
    ),
    ("V-DEB-09", debate(MaxRounds=5), f"{S}/MaxRounds", debate(Rounds=5)),
    (
        "V-DEB-09",
        debate(Consensus={"Arbitre": "B"}),
        f"{S}/Consensus/Arbitre",
        debate(Consensus={"Arbiter": "B"}),
    ),
    (
        "V-DEB-10",
        debate(Consensus={"Arbiter": "C"}),
        f"{S}/Consensus",
        debate(Consensus={"Arbiter": "C", "Method": "voting"}),
    ),
    (
        "V-ST-07",
        debate(QueryLanguage="JSONata", Consensus={"Required.$": "$.r"}),
        f"{S}/Consensus/Required.$",
        debate(QueryLanguage="JSONata", Consensus={"Required": "{% true %}", "Arbiter": "B"}),
    ),
    (
        "V-TASK-04",
        debate(HeartbeatSeconds=1, HeartbeatSecondsPath="$.h"),
        f"{S}/HeartbeatSecondsPath",
        debate(HeartbeatSeconds=1),
    ),
    (
        "V-TASK-07",
        debate(TimeoutSeconds=9, HeartbeatSeconds=9),
        f"{S}/HeartbeatSeconds",
        debate(TimeoutSeconds=9, HeartbeatSeconds=8),
    ),
]

APPROVALS: list[Case] = [
    ("V-APR-01", without(approval(End=True), "Prompt") | machine(
        S={"Type": "Approval", "End": True}), S, approval(**{"Prompt.$": "$.p"}) | machine(
        S={"Type": "Approval", "Prompt.$": "$.p", "End": True})),
    ("V-APR-01", approval(Prompt=["p"], End=True), f"{S}/Prompt",
     approval(Prompt={"Title": "p"}, End=True)),
    ("V-APR-02", asking(Options=[]), f"{S}/Options", asking(Options=["a"])),
    ("V-APR-02", asking(Options=["a", "a"]), f"{S}/Options", asking(Options=["a", "A"])),
    ("V-APR-02", asking(Options=["a", 1]), f"{S}/Options/1", asking(Options=["a", "1"])),
    ("V-APR-03", asking(Timeout="1 day"), f"{S}/Timeout", asking(Timeout="1d")),
    ("V-APR-03", asking(Escalation={"After": "soon"}), f"{S}/Escalation/After",
     asking(Escalation={"After": "90"})),
    ("V-APR-03", asking(Escalation={"After": "1h", "Repeat": {"Every": "x"}}),
     f"{S}/Escalation/Repeat/Every", asking(Escalation={"After": "1h", "Repeat": {"Every": "1h"}})),
    ("V-APR-03", asking(Escalation={"After": "1h", "Repeat": {"Every": "0s"}}),
     f"{S}/Escalation/Repeat/Every", asking(Escalation={"After": "0s", "Repeat": {"Every": "1s"}})),
    ("V-APR-03", asking(Escalation={"After": "1h", "Repeat": "0"}), f"{S}/Escalation/Repeat",
     asking(Escalation={"After": "1h", "Repeat": "1"})),
    ("V-APR-03", asking(Notifications={"Channels": [{"Type": "sms", "OnlyAfter": "x"}]}),
     f"{S}/Notifications/Channels/0/OnlyAfter",
     asking(Notifications={"Channels": [{"Type": "sms", "OnlyAfter": "1h"}]})),
    ("V-APR-04", approval(), S, approval(Choices=[{**RULE, "Next": "Z"}])),
    ("V-APR-05", machine(S={"Type": "Approval", "Prompt": "p", "Choices": [DECIDED]}, Z=DONE), S,
     machine(S={"Type": "Approval", "Prompt": "p", "Choices": [DECIDED], "End": True}, Z=DONE)),
    ("V-APR-06", deciding({"Variable": "$.approval", "StringEquals": "aprove"}),
     f"{R}/StringEquals", deciding({"Variable": "$.approval", "StringEquals": "approve"})),
    ("V-APR-06", deciding({"Variable": "$.r.approval", "StringEquals": "ok"}, ResultPath="$.r"),
     f"{R}/StringEquals",
     deciding({"Variable": "$.r.approval", "StringEquals": "ok"}, ResultPath="$.r",
              Options=["ok"])),
    ("V-APR-06", deciding({"Not": {"Variable": "$.approval", "StringEquals": "no"}}),
     f"{R}/Not/StringEquals", deciding({"Not": {"Variable": "$.n", "StringEquals": "no"}})),
    ("V-APR-06", deciding({"Variable": "$.approval", "StringEquals": "timeout"}, Timeout="1h"),
     f"{R}/StringEquals",
     routing("$.r.approval", "timeout", ResultPath="$.r", Timeout="1h", OnTimeout="Fail")),
    ("V-APR-06", routing("$.r.approval", "ok", ResultPath="$.r"), f"{LATER}/StringEquals",
     routing("$.r.approval", "ok", ResultPath="$.q")),
    ("V-APR-07", approval(Timeout="1h", End=True), f"{S}/Timeout", asking(Timeout="1h")),
    ("V-APR-07", approval(Timeout="1h", End=True), f"{S}/Timeout",
     machine(S={"Type": "Approval", "Prompt": "p", "Timeout": "1h", "Catch": [CATCHER],
                "Next": "Z"}, Z=DONE)),
    ("V-APR-07", approval(**{"Timeout.$": "$.t", "End": True}), f"{S}/Timeout.$",
     approval(**{"Timeout.$": "$.t", "End": True, "OnTimeout": "Fail"})),
    ("V-APR-08", asking(Editable={"Fields": ["$.a"]}), f"{S}/Editable",
     asking(Editable={"Fields": ["$.a"], "ResultPath": "$.e"})),
    ("V-APR-09", asking(Editable={"Fields": ["$.a[*]"]}), f"{S}/Editable/Fields/0",
     asking(Editable={"Fields": ["$.a[0]"]})),
    ("V-APR-09", asking(Editable={"Fields": ["$.b", "a"]}), f"{S}/Editable/Fields/1",
     asking(Editable={"Fields": ["$.b", "$.a"]})),
    ("V-APR-10", asking(Policy={"RequiredApprovals": 0}), f"{S}/Policy/RequiredApprovals",
     asking(Policy={"RequiredApprovals": 1})),
    ("V-APR-10", asking(RequiredApprovers=1.5), f"{S}/RequiredApprovers",
     asking(RequiredApprovers=2)),
    ("V-APR-10", asking(RequiredApprovers=2, Policy={"RequiredApprovals": 1}),
     f"{S}/RequiredApprovers", asking(RequiredApprovers=2, Policy={"RequiredApprovals": 2})),
    ("V-APR-10", asking(Policy={"RequiredApprovals.$": "$.n", "RequiredApprovers": 2}),
     f"{S}/Policy/RequiredApprovers", asking(Policy={"RequiredApprovers": 2})),
    ("V-APR-10", asking(RequiredApprovers=2, Policy={"Approvers": {"Users": ["a", "a"]}}),
     f"{S}/Policy/Approvers/Users",
     asking(RequiredApprovers=2, Policy={"Approvers": {"Users": ["a", "b"]}})),
    ("V-APR-10", asking(Policy={"Approvers": {"Users": []}}), f"{S}/Policy/Approvers/Users",
     asking(Policy={"Approvers": {"Users": [], "Roles": ["r"]}})),
    ("V-APR-10", asking(ItemsPath="$.l", BatchMode={"MinApproved": 1.1}),
     f"{S}/BatchMode/MinApproved", asking(ItemsPath="$.l", BatchMode={"MinApproved": 1})),
    ("V-APR-11", deciding({"Variable": "$.decision", "StringEquals": "approve"}), f"{R}/Variable",
     deciding({"Variable": "$.approval", "StringEquals": "approve"})),
    ("V-APR-11", deciding({"Variable": "$.r.decision", "IsPresent": True}, ResultPath="$.r"),
     f"{R}/Variable", deciding({"Variable": "$.q.decision", "IsPresent": True}, ResultPath="$.r")),
    ("V-APR-11", routing("$.r.decision", "approve", ResultPath="$.r"), f"{LATER}/Variable",
     routing("$.r.approval", "approve", ResultPath="$.r")),
    ("V-APR-11", routing("$.r.decision", "approve", ResultPath="$.r"), f"{LATER}/Variable",
     {**(other := routing("$.r.decision", "approve", ResultPath="$.r", Next="P")),
      "States": {**other["States"], "P": {"Type": "Pass", "ResultPath": "$.r", "Next": "C"}}}),
    ("V-APR-12", asking(Escalation={"After": "1h", "Levels": [{"After": "2h"}]}),
     f"{S}/Escalation/Levels", asking(Escalation={"Levels": [{"After": "1h"}, {"After": "2h"}]})),
    ("V-APR-12", levels("2h", "120m"), f"{S}/Escalation/Levels/1/After", levels("2h", "121m")),
    ("V-APR-13", asking(Timeout="1h", Escalation={"After": "60m"}), f"{S}/Escalation/After",
     asking(Timeout="1h", Escalation={"After": "59m"})),
    ("V-APR-13", asking(Timeout="1h", Escalation={"Levels": [{"After": "1m"}, {"After": "2h"}]}),
     f"{S}/Escalation/Levels/1/After",
     asking(Timeout="1h", OnTimeout="Escalate",
            Escalation={"Levels": [{"After": "1m"}, {"After": "119m"}]})),
    ("V-APR-14", asking(Timeout="1h", OnTimeout="Wait"), f"{S}/OnTimeout",
     asking(Timeout="1h", OnTimeout="AutoReject")),
    ("V-APR-14", asking(Timeout="1h", OnTimeout="AutoApprove"), f"{S}/OnTimeout",
     asking(Timeout="1h", OnTimeout="Fail")),
    ("V-APR-15", mapping(ItemProcessor=machine(A={"Type": "Approval", "Prompt": "p", "End": True})),
     f"{S}/ItemProcessor/States/A", approval(End=True)),
    ("V-APR-15", parallel(machine(A={"Type": "Approval", "Prompt": "p", "End": True})),
     f"{S}/Branches/0/States/A", parallel(PROCESSOR)),
    ("V-APR-16", asking(Notifications="sms"), f"{S}/Notifications",
     asking(Notifications={"Channels": [{"Type": "sms"}]})),
    ("V-APR-17", asking(OnTimeout="Fail"), f"{S}/OnTimeout",
     asking(OnTimeout="Fail", Timeout="1h")),
    ("V-APR-17", asking(**{"OnTimeout.$": "$.then"}), f"{S}/OnTimeout.$",
     asking(**{"OnTimeout.$": "$.then", "Timeout.$": "$.time"})),
    ("V-APR-17", asking(Timeout="1h", OnTimeout="Escalate"), f"{S}/OnTimeout",
     asking(Timeout="1h", OnTimeout="Escalate", Escalation={"EscalateTo": "m"})),
    ("V-APR-17", asking(BatchMode={}), f"{S}/BatchMode", asking(BatchMode={}, ItemsPath="$.l")),
    ("V-APR-17", asking(Escalation={"Repeat": "1h"}), f"{S}/Escalation/Repeat",
     asking(Escalation={"Repeat": "1h", "After": "1h"})),
    ("V-APR-17", asking(Escalation={"After": "1h", "Repeat": {"MaxTimes": 2}}),
     f"{S}/Escalation/Repeat/MaxTimes",
     asking(Escalation={"After": "1h", "Repeat": {"Every": "1h", "MaxTimes": 2}})),
    ("V-APR-17", asking(Escalation={"Message": "m"}), f"{S}/Escalation/Message",
     asking(Escalation={"Message": "m", "Levels": [{"After": "1h"}]})),
    ("V-APR-17", asking(Escalation={"Notify": "m", "Levels": [{"After": "1h"}]}),
     f"{S}/Escalation/Notify", asking(Escalation={"Notify": "m", "After": "1h"})),
    ("V-APR-17", asking(Timeout="1h", Escalation={"EscalateTo": "m"}),
     f"{S}/Escalation/EscalateTo",
     asking(Timeout="1h", Escalation={"EscalateTo": "m"}, OnTimeout="Escalate")),
    ("V-APR-17", asking(Timeout="1h", OnTimeout="Fail", Escalation={"EscalateTo": "m"}),
     f"{S}/Escalation/EscalateTo",
     asking(Timeout="1h", Escalation={"EscalateTo": "m"}, **{"OnTimeout.$": "$.then"})),
]  # fmt: skip
OTHERS: list[Case] = [
    ("V-PAR-01", parallel(), f"{S}/Branches", parallel(PROCESSOR)),
    ("V-PAR-02", parallel("B"), f"{S}/Branches/0", parallel(PROCESSOR)),
    ("V-PAR-03", parallel({**PROCESSOR, "Agent": "A"}), f"{S}/Branches/0/Agent",
     parallel({**PROCESSOR, "Comment": "A"})),
    ("V-PAR-03", parallel({**PROCESSOR, "ProcessorConfig": {}}), f"{S}/Branches/0/ProcessorConfig",
     parallel(PROCESSOR)),
    ("V-PASS-01", passing(Result=1, Parameters={}), f"{S}/Parameters", passing(Result=1)),
    ("V-PASS-02", passing(Result={"a": ["$.b"]}), f"{S}/Result/a/0", passing(Result={"a": "$5"})),
    ("V-PASS-02", passing(Result={"a.$": "$.b"}), f"{S}/Result/a.$", passing(Result={"a.$": 1})),
    ("V-PASS-02", passing(Result="States.UUID()"), f"{S}/Result", passing(Result="States.UUID")),
    ("V-WAIT-01", waiting(), S, waiting(Seconds=0)),
    ("V-WAIT-01", waiting(Seconds=0, SecondsPath="$.s"), S,
     waiting(SecondsPath="$.s")),
    ("V-WAIT-02", waiting(Seconds=-1), f"{S}/Seconds", waiting(Seconds=99_999_999)),
    ("V-WAIT-02", waiting(Seconds="{% 1 %}"), f"{S}/Seconds",
     waiting(Seconds="{% 1 %}", QueryLanguage="JSONata")),
    ("V-WAIT-03", waiting(Timestamp="2030-01-01 00:00:00Z"), f"{S}/Timestamp",
     waiting(Timestamp="2030-01-01T00:00:00Z")),
    ("V-WAIT-03", waiting(Timestamp="2030-13-01T00:00:00Z"), f"{S}/Timestamp",
     waiting(Timestamp="2030-12-01T00:00:00+01:00")),
    ("V-WAIT-04", waiting(SecondsPath="$[?(@.a)]"), f"{S}/SecondsPath",
     waiting(SecondsPath="$$.Execution.Input.a")),
    ("V-SUC-01", machine(S={**DONE, "Next": "S"}), f"{S}/Next", machine(S=DONE)),
    ("V-FAIL-01", failing(Error="e", ErrorPath="$.e"), f"{S}/ErrorPath", failing(ErrorPath="$.e")),
    ("V-FAIL-01", failing(**{"Cause": "c", "Cause.$": "$.c"}), f"{S}/Cause.$",
     failing(**{"Cause.$": "$.c"})),
    ("V-FAIL-02", failing(Next="S"), f"{S}/Next", failing()),
    ("V-FAIL-02", failing(Catch=[]), f"{S}/Catch", failing()),
    ("V-FAIL-02", failing(OutputPath="$"), f"{S}/OutputPath", failing()),
    ("V-FAIL-03", failing(ErrorPath="$.e[*]"), f"{S}/ErrorPath", failing(ErrorPath="$.e[0]")),
    ("V-FAIL-03", failing(CausePath="States.MathAdd(1, 1)"), f"{S}/CausePath",
     failing(CausePath="States.Format('{}', 1)")),
    ("V-FAIL-04", failing(Error="States.Mine"), f"{S}/Error", failing(Error="Mine")),
    *DEBATES,
    *APPROVALS,
    ("V-WF-01", child(), S, child(WorkflowId="w")),
    ("V-WF-01", child(WorkflowId=""), f"{S}/WorkflowId", child(**{"WorkflowId.$": "$.w"})),
    ("V-WF-03", child(WorkflowId="w", Timeout="1 h"), f"{S}/Timeout",
     child(WorkflowId="w", Timeout="1h")),
    ("V-TPL-05", {**machine(S={"Type": "Pass", "Output": "done"}), "Parameters": {}}, f"{S}/Output",
     {**passing(), "Parameters": {}}),
    ("V-MOD-01", {"Module": True, "Exports": ["Z"], "States": {"S": {"Type": "Pass"}}},
     "/Exports/0", {"Module": True, "Exports": ["S"], "States": {"S": {"Type": "Pass"}}}),
    ("V-MOD-02", {**passing(), "Module": True}, "/StartAt",
     {"Module": True, "States": {"S": PASS}}),
    ("EXEC-02", task(Streaming={"Buffer.$": "$.x"}), f"{S}/Streaming/Buffer.$",
     machine(S={"Type": "Task", "Resource": "arn:x", "Streaming": {"Buffer.$": "$.x"},
                "End": True})),
    ("EXEC-02", {**passing(), "Progress": {"WeightedProgress.$": "$.x"}},
     "/Progress/WeightedProgress.$", {**passing(), "Progress": {"Enabled.$": "$.x"}}),
    ("EXEC-02", task(Model={"FallbackOn.$": "$.x"}), f"{S}/Model/FallbackOn.$",
     task(Model={"Preferred.$": "$.x"})),
    ("EXEC-05", {**without(passing(), "StartAt"), "Module": True}, "/Module", passing()),
]  # fmt: skip

CASES = [*TOP, *COMMON, *ERRORS, *TASKS, *CHOICES, *MAPS, *OTHERS]
cases = pytest.mark.parametrize(
    ("rule", "bad", "pointer", "good"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)

ELSEWHERE = {
    "V-TOP-01": "the reader",
    "V-ST-04": "reported as V-SUC-01 or V-FAIL-02",
    "V-MAP-14": "reported as V-ST-03",
    "V-TASK-03": "test_settings.py",
    "V-TOP-15": "tests/engine/test_history_quota.py",
    "EXEC-04": "tests/items/test_parquet.py",
}
"""Rules of sections 1 to 6.8 that need another kind of test."""

SECTIONS = ("TOP", "ST", "VAR", "TXT", "INTR", "RETRY", "CATCH", "TASK", "CHOICE", "MAP", "PAR",
            "PASS", "WAIT", "SUC", "FAIL", "APR")  # fmt: skip


def found(document: Json) -> set[tuple[str, str]]:
    return {(each.code, each.pointer) for each in check(read(document), DEFAULT)}


@cases
def test_a_broken_rule_is_reported_at_its_place(
    rule: str, bad: Json, pointer: str, good: Json
) -> None:
    """The document on the left breaks the rule, at this pointer."""
    assert (rule, pointer) in found(bad)


@cases
def test_a_near_twin_does_not_break_the_rule(
    rule: str, bad: Json, pointer: str, good: Json
) -> None:
    """The document on the right does not break it anywhere."""
    assert rule not in {code for code, _ in found(good)}


@cases
def test_a_fault_is_reported_once(rule: str, bad: Json, pointer: str, good: Json) -> None:
    """No rule names the same place twice."""
    places = [(each.code, each.pointer, each.message) for each in check(read(bad), DEFAULT)]
    assert len(places) == len(set(places))
    assert [place[:2] for place in places].count((rule, pointer)) == 1


@pytest.mark.parametrize(
    ("resource", "parameters"),
    [
        ("aws-sdk:s3:getObject", {"Bucket": "b", "Key.$": "$.k", "SseCustomerKey": "k"}),
        ("states:startExecution.sync:2", {"StateMachineArn": "m", "AssociateWithParent": True}),
        ("bedrock:invokeModel", {"ModelId": "m", "Input": {"S3Uri": "s3://b/k"}}),
        ("aws-sdk:nobody:knowsIt", {"what": 1}),
        ("sqs:knowsItNot", {"what": 1}),
    ],
)
def test_parameters_of_services_are_those_of_the_integration(
    resource: str, parameters: Json
) -> None:
    """V-TASK-12: larger letters within a name, names of its own, and services without a model."""
    document = sending(Resource=f"arn:aws:states:::{resource}", Parameters=parameters)
    assert "V-TASK-12" not in {code for code, _ in found(document)}


def test_finding_names_the_parameter() -> None:
    """V-TASK-12: whatever its letters are, or as it is nearly written."""
    given = {"queueUrl": "q", "MesageBody": "b"}
    report = check(read(sending(Parameters=given)), DEFAULT)
    assert [(each.message, each.hint) for each in report] == [
        ("sqs:sendMessage needs the parameter 'MessageBody'", None),
        ("sqs:sendMessage has no parameter 'queueUrl'", "write 'QueueUrl'"),
        ("sqs:sendMessage has no parameter 'MesageBody'", "did you mean 'MessageBody'?"),
    ]


def test_every_rule_of_the_executed_language_has_a_case() -> None:
    """No rule of these sections of the specification is without an example."""
    wanted = {
        code.id
        for code in all_codes()
        if code.id.startswith("EXEC-")
        or (code.id.startswith("V-") and code.id.split("-")[1] in SECTIONS)
    }
    assert wanted - set(ELSEWHERE) == {case[0] for case in CASES if case[0] in wanted}


def test_context_object_is_no_token() -> None:
    """A task may send all of it for the sake of the rest."""
    for path, codes in (("$$", []), ("$$.Task", []), ("$$.Task.Token", ["V-TASK-11"])):
        document = sending(Parameters={"MessageBody.$": path, "QueueUrl": "u"})
        found = [each.code for each in check(read(document), DEFAULT)]
        assert [code for code in found if code == "V-TASK-11"] == codes


def test_matched_names_of_a_retrier_are_reported_once() -> None:
    """One finding for an entry, with all of its names."""
    document = retrying({"ErrorEquals": ["A", "B"]}, {"ErrorEquals": ["B", "C", "A"]})
    (found,) = [each for each in check(read(document), DEFAULT) if each.code == "V-RETRY-11"]
    assert found.message == "an earlier entry already matches 'B', 'A'"


def test_empty_error_name_is_a_warning() -> None:
    """AWS accepts it, though no error has such a name."""
    for code, document in (
        ("V-RETRY-01", retrying({"ErrorEquals": ["A", ""]})),
        ("V-CATCH-01", catching({**CATCHER, "ErrorEquals": ["A", ""]})),
    ):
        found = check(read(document), DEFAULT)
        assert found.ok
        assert code in [each.code for each in found]


def test_started_workflow_is_set_by_an_option() -> None:
    """The hint at a resource that starts an execution names the workflow."""
    arn = "arn:aws:states:us-east-1:111111111111:stateMachine:Ship"
    for given, name in ((arn, "Ship"), ("{% $states.input.arn %}", "NAME")):
        state = {"Parameters": {"StateMachineArn": given}, "End": True, "Type": "Task"}
        document = machine(S={**state, "Resource": "arn:aws:states:::states:startExecution.sync:2"})
        found = check(read(document), DEFAULT, resources=[])
        (hint,) = [each.hint for each in found if each.code == "V-TASK-03"]
        assert hint == f"give it the workflow: --workflow {name}=FILE"


def test_rules_behind_an_approval_without_result_path() -> None:
    """Its record is merged into the input, where a Choice right behind it looks."""
    ask = {"Type": "Approval", "Prompt": "?", "Options": ["yes", "no"], "Next": "C"}
    rules = [
        {"Variable": "$.decision", "StringEquals": "yes", "Next": "Z"},
        {"Variable": "$.approval", "StringEquals": "yess", "Next": "Z"},
    ]
    choice = {"Type": "Choice", "Choices": rules, "Default": "Z"}
    codes = [each.code for each in check(read(machine(S=ask, C=choice, Z=DONE)), DEFAULT)]
    assert codes == ["V-APR-11", "V-APR-06"]
    between = {"Type": "Pass", "Next": "C"}
    document = machine(S={**ask, "Next": "B"}, B=between, C=choice, Z=DONE)
    assert not check(read(document), DEFAULT)


def test_filled_template_may_leave_a_state_unreachable() -> None:
    """Another value of its parameter leads there."""
    template = {
        "Parameters": {"Next": {"Type": "string", "Default": "B"}},
        **machine(A={"Type": "Pass", "Next": "{{Next}}"}, B=PASS, C=PASS),
    }
    found = check(asl.load(template, parameters={"Next": "C"}), DEFAULT)
    assert [(each.code, each.pointer) for each in found.warnings] == [("V-TOP-11", "/States/B")]
    assert found.ok


def test_a_type_in_small_letters_is_seen() -> None:
    """V-ST-01: what is missing stands there under another name."""
    (found,) = check(
        read({"StartAt": "S", "States": {"S": {"type": "Pass", "End": True}}}), DEFAULT
    )
    assert (found.code, found.message) == ("V-ST-01", "'Type' is missing")
    assert found.hint == "write \"Type\" for 'type': fields begin with a capital"
