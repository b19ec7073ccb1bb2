"""The schemas as data: sound, closed, self-contained, hoverable, and right about documents."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource

from asl.cli.reference import bundle as bundled
from asl.states.registry import BUILT_IN

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "schemas"
CORPUS = ROOT.parent / "shared" / "corpus"
URN = "urn:asl:schema:"
RULE = re.compile(r"(V-[A-Z]+|AGENTS)-\d\d")
STATE_TYPES = {*BUILT_IN}

Schema = dict[str, Any]


SCHEMAS: dict[str, Schema] = {
    path.relative_to(FOLDER).as_posix(): json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.rglob("*.schema.json"))
}
REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)
every_schema = pytest.mark.parametrize("name", SCHEMAS)


def children(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Yield (pointer, schema) of the direct sub-schemas, without the questions under `if`."""
    for keyword in ("properties", "patternProperties", "$defs"):
        for key, child in schema.get(keyword, {}).items():
            yield f"/{keyword}/{key}", child
    for keyword in ("allOf", "anyOf"):
        for index, child in enumerate(schema.get(keyword, ())):
            yield f"/{keyword}/{index}", child
    for keyword in ("items", "additionalProperties", "propertyNames", "not", "then", "else"):
        if keyword in schema:
            yield f"/{keyword}", schema[keyword]


def walk(schema: Schema, pointer: str = "") -> Iterator[tuple[str, Schema]]:
    yield pointer, schema
    for step, child in children(schema):
        if isinstance(child, dict):
            yield from walk(child, pointer + step)


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": URN + name}, registry=REGISTRY)


def rule_of(name: str, error: ValidationError) -> str | None:
    """Name the rule a failure breaks, by the conventions of the schemas' README."""
    node: Any = {"$ref": URN + name}
    above = node
    rule = None
    for step in error.absolute_schema_path:
        if isinstance(node, dict):
            rule = node.get("x-rule", rule)
            while step not in node:
                node = REGISTRY.resolver().lookup(node["$ref"]).contents
                rule = node.get("x-rule", rule)
        above, node = node, node[step]
    if error.validator == "required":
        missing = error.message.split("'")[1]
        rule = above.get("x-required", {}).get(missing, rule)
    return "unknown" if error.validator == "additionalProperties" else rule


def broken(name: str, value: Any) -> set[tuple[str, str | None]]:
    """Return (JSON path, rule) of everything the named schema has against a value."""
    return {(error.json_path, rule_of(name, error)) for error in validator(name).iter_errors(value)}


# The files ------------------------------------------------------------------


@every_schema
def test_a_schema_is_valid_2020_12(name: str) -> None:
    """Every file is itself a valid schema of the dialect it names."""
    assert SCHEMAS[name]["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(SCHEMAS[name])


@every_schema
def test_a_file_name_matches_its_id(name: str) -> None:
    """`states/Task.schema.json` is `urn:asl:schema:states:Task`."""
    expected = URN + name.removesuffix(".schema.json").replace("/", ":")
    assert SCHEMAS[name]["$id"] == expected


@every_schema
def test_every_reference_is_an_absolute_urn_that_resolves_here(name: str) -> None:
    """References lead to files of this folder; nothing is ever fetched."""
    resolver = REGISTRY.resolver()
    for pointer, schema in walk(SCHEMAS[name]):
        if "$ref" in schema:
            assert schema["$ref"].startswith(URN), pointer
            resolver.lookup(schema["$ref"])


@every_schema
def test_a_reference_and_its_target_share_no_keyword(name: str) -> None:
    """A reported path stays unambiguous although it does not mention references."""
    annotations = {"$id", "$schema", "$ref", "title", "description"}
    for pointer, schema in walk(SCHEMAS[name]):
        target, keywords = schema, set(schema)
        while "$ref" in target:
            target = REGISTRY.resolver().lookup(target["$ref"]).contents
            shared = keywords & set(target) - annotations
            assert all(keyword.startswith("x-") for keyword in shared), pointer
            keywords |= set(target)


def test_every_schema_is_reached_from_the_root() -> None:
    """No file is left over: each one takes part in describing a document or an agents file."""
    by_id = {schema["$id"]: schema for schema in SCHEMAS.values()}
    reached: set[str] = set()
    waiting = [URN + "asl", URN + "agents"]
    while waiting:
        urn = waiting.pop()
        if urn not in reached:
            reached.add(urn)
            references = (s["$ref"] for _, s in walk(by_id[urn]) if "$ref" in s)
            waiting.extend(reference.partition("#")[0] for reference in references)
    assert reached == set(by_id)


def test_there_is_one_schema_per_state_type() -> None:
    """Files, dispatcher and `Type` values list the same types."""
    files = {Path(name).name.split(".")[0] for name in SCHEMAS if name.startswith("states/")}
    dispatcher = SCHEMAS["State.schema.json"]
    branches = {
        branch["if"]["properties"]["Type"]["const"]: branch["then"]["$ref"]
        for branch in dispatcher["allOf"]
    }
    assert files == STATE_TYPES == set(dispatcher["properties"]["Type"]["enum"])
    assert branches == {name: f"{URN}states:{name}" for name in STATE_TYPES}
    for name in STATE_TYPES:
        schema = SCHEMAS[f"states/{name}.schema.json"]
        assert schema["properties"]["Type"]["const"] == name
        assert {"Comment", "QueryLanguage", "Events"} <= set(schema["properties"])


@every_schema
def test_every_property_can_be_hovered(name: str) -> None:
    """Each property, and each schema as a whole, has a title and a one-line description."""
    hovers = [("", SCHEMAS[name])] + [
        (f"{pointer}/{key}", prop)
        for pointer, schema in walk(SCHEMAS[name])
        for keyword in ("properties", "patternProperties", "$defs")
        for key, prop in schema.get(keyword, {}).items()
    ]
    for pointer, hover in hovers:
        assert hover.get("title"), pointer
        assert hover.get("description", "").endswith("."), pointer
        assert "\n" not in hover["description"], pointer


@every_schema
def test_objects_are_closed(name: str) -> None:
    """An object with named fields refuses others; the exceptions belong to others than us."""
    left_open = {
        "/properties/Channels/items",  # of Notifications: handed to the notifier
        "/properties/Override",  # patches any top-level key of the template
    }
    for pointer, schema in walk(SCHEMAS[name]):
        if schema.get("type") == "object" and "properties" in schema and pointer not in left_open:
            assert schema.get("additionalProperties") is False, pointer


@every_schema
def test_annotations_name_rules(name: str) -> None:
    """`x-rule`, `x-required` and `x-unknown` hold rule ids and fit the keyword beside them."""
    for pointer, schema in walk(SCHEMAS[name]):
        if "x-rule" in schema:
            assert RULE.fullmatch(schema["x-rule"]), pointer
        if "x-required" in schema:
            assert set(schema["x-required"]) == set(schema["required"]), pointer
            assert all(map(RULE.fullmatch, schema["x-required"].values())), pointer
        if "x-unknown" in schema:
            assert schema["additionalProperties"] is False, pointer
            assert not set(schema["x-unknown"]) & set(schema["properties"]), pointer
            assert all(map(RULE.fullmatch, schema["x-unknown"].values())), pointer
        if "x-message" in schema:
            assert re.match(r"(must|a \w+ rule must|reads|is only) ", schema["x-message"]), pointer


def resolved(schema: Schema) -> Schema:
    """A schema with what it refers to."""
    target = REGISTRY.resolver().lookup(schema["$ref"]).contents if "$ref" in schema else {}
    return {**target, **schema}


@every_schema
def test_annotations_name_fields(name: str) -> None:
    """`x-meant` leads from words to fields that are there, `x-bare` to one of its object."""
    for pointer, schema in walk(SCHEMAS[name]):
        properties = schema.get("properties", {})
        assert schema.get("x-bare", "") in ("", *properties), pointer
        for word, way in schema.get("x-meant", {}).items():
            assert word not in properties, pointer
            holder = schema
            for step in way.split("."):
                holder = resolved(holder["properties"][step])


def test_every_failure_has_a_rule() -> None:
    """Each file but the shared pieces has a fallback rule at its root."""
    without = {name for name, schema in SCHEMAS.items() if "x-rule" not in schema}
    assert without == {"common.schema.json"}


@every_schema
def test_patterns_are_anchored_at_the_very_end(name: str) -> None:
    """No pattern accepts a trailing line break, which a lone `$` does in Python."""
    for pointer, schema in walk(SCHEMAS[name]):
        for pattern in [schema.get("pattern", "^env"), *schema.get("patternProperties", ())]:
            assert pattern.startswith("^"), pointer
            assert pattern.endswith(r"$(?!\n)") or pattern.startswith("^env"), pointer


# What they accept -----------------------------------------------------------

FORMATS: dict[str, tuple[list[Any], list[Any]]] = {
    "duration": (
        ["500ms", "30s", "15m", "24h", "7d", "2w", "60", "{% $states.input.wait %}"],
        ["", "1 h", "h", "-5m", "1.5h", "5m\n", "never", "1y", "٣s", 60],
    ),
    "retention": (["never", "7d"], ["Never", "7 d", 7]),
    "size": (["512", "64K", "10MB", "1G", "5B"], ["", "1T", "10mb", "1.5M", "K"]),
    "money": (["$5.00", "5", "0.50", 5, 0.5, "€3"], ["5$", "$", "-1", -1, "$1,000", "USD 5", None]),
    "percentage": (["80%", "0%", "100%", "12.5%", 80, 0], ["80", "101%", "100.5%", 101, -1]),
    "threshold": (
        ["Always", "BudgetAt80Percent", "TokensAt1Percent", "BudgetAt100Percent"],
        ["BudgetAt0Percent", "BudgetAt101Percent", "CostAt5Percent", "always", 80],
    ),
    "positiveSeconds": ([1, 99_999_999, 5.0, "{% 1 + 1 %}"], [0, 100_000_000, 1.5, "5", True]),
    "count": ([0, 7, "{% $n %}"], [-1, 0.5, "7", "{% $n", None]),
    "share": ([0.01, 1], [0, 1.01, "0.5"]),
    "errorNames": ([["States.ALL"], ["A", "B"]], [[], "A", [1]]),
    "nullablePath": (["$", "$.a", None], [1, {}]),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in FORMATS for v in FORMATS[n][0]])
def test_a_common_format_accepts(name: str, value: Any) -> None:
    """Each shared value format takes the forms the specification gives (8.0)."""
    assert validator(f"common#/$defs/{name}").is_valid(value)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in FORMATS for v in FORMATS[n][1]])
def test_a_common_format_refuses(name: str, value: Any) -> None:
    """Each shared value format refuses its near misses."""
    assert not validator(f"common#/$defs/{name}").is_valid(value)


def with_state(**fields: Any) -> Schema:
    return {"End": True, **fields}


GOOD_STATES = [
    with_state(Type="Task", Agent="A", Parameters=[1], ResultPath=None, TimeoutSeconds="{% $t %}"),
    with_state(Type="Task", Agent="A", **{"IdempotencyKey.$": "$.id"}, CacheTTL="never"),
    with_state(Type="Task", Agent="A", Memory={"Read": ["a"], "Write": [{"Key": "k", "Value": 1}]}),
    with_state(Type="Task", Agent="A", Memory={"Read": {"Query.$": "$.q", "TopK": 3}}),
    with_state(Type="Task", Agent="A", Budget={"MaxCost.$": "$.limit", "Priority": "low"}),
    with_state(Type="Task", Resource="arn:x", Comment=["any", "type"]),
    with_state(Type="Task", Agent="A",
               Tools={"Allowed": [], "RateLimits": {"*": {"MaxPerDay": 1}}}),
    with_state(Type="Map", Iterator={"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}),
    with_state(Type="Map", ItemProcessor={"StartAt": "B", "States": {"B": {"Type": "Succeed"}}},
               Items=[1, "{% 2 %}"], **{"ItemsPath.$": "States.Array(1)"}),
    with_state(Type="Pass", Result=None, InputPath=None),
    with_state(Type="Wait", Seconds=0),
    with_state(Type="Wait", Timestamp="2016-03-05T21:29:29.243167252Z"),
    with_state(Type="Wait", Timestamp="2016-03-05T21:29:29+01:00"),
    with_state(Type="Wait", Timestamp="{% $states.input.at %}"),
    {"Type": "Fail", "Error.$": "$.e", "Cause": "c", "InputPath": 7},
    with_state(Type="Approval", **{"Prompt.$": "States.Format('{}', $.x)"}),
    with_state(Type="Approval", Prompt={"Title": "t", "Any.$": "$.x"}, Timeout="4h",
               Escalation={"After": "1h", "Repeat": "30m"}),
    with_state(Type="Approval", Prompt="p",
               Escalation={"Levels": [{"After": "1h", "Notify": ["a"]}]},
               Notifications={"Channels": [{"Type": "sms", "To": ["+1"], "OnlyAfter": "30m"}]}),
    with_state(Type="Debate", Agents=["A", "B"], **{"Topic.$": "$.t", "Rounds.$": "$.n"}),
    with_state(Type="Checkpoint", **{"Name.$": "$.n"}, TTL="never", ResultPath=None),
    with_state(Type="Include", Template="t", Parameters={"a.$": "$.a"}, Override={"States": {}}),
    with_state(Type="Workflow", WorkflowId="w", Input=5, Timeout="1h"),
]  # fmt: skip


@pytest.mark.parametrize("state", GOOD_STATES, ids=lambda state: state["Type"])
def test_a_good_state_passes(state: Schema) -> None:
    """Forms the specification allows pass, those at its edges too."""
    assert broken("State", state) == set()


SUCCEED = {"Type": "Succeed"}
TASK = {"Type": "Task", "Agent": "A", "End": True}
APPROVAL = {"Type": "Approval", "Prompt": "p", "End": True}
DEBATE = {"Type": "Debate", "Agents": ["A", "B"], "End": True}

BAD_STATES: list[tuple[Schema, str, str]] = [
    ({}, "$", "V-ST-01"),
    ({"Type": "Taks"}, "$.Type", "V-ST-01"),
    ({"Type": 5}, "$.Type", "V-ST-01"),
    ({**TASK, "End": "true"}, "$.End", "V-ST-02"),
    ({**TASK, "Next": 5}, "$.Next", "V-ST-03"),
    ({**TASK, "InputPath": 5}, "$.InputPath", "V-ST-05"),
    ({**TASK, "ResultPath": []}, "$.ResultPath", "V-ST-05"),
    ({**TASK, "QueryLanguage": "jsonata"}, "$.QueryLanguage", "V-TOP-10"),
    ({**TASK, "Nxet": "B"}, "$", "unknown"),
    ({**TASK, "x-note": "B"}, "$", "unknown"),
    ({**TASK, "Agent.$": "$.a"}, "$", "unknown"),
    ({**TASK, "Agent": ""}, "$.Agent", "V-TASK-02"),
    ({**TASK, "TimeoutSeconds": 0}, "$.TimeoutSeconds", "V-TASK-05"),
    ({**TASK, "HeartbeatSeconds": "9"}, "$.HeartbeatSeconds", "V-TASK-05"),
    ({**TASK, "Credentials": None}, "$.Credentials", "V-TASK-06"),
    ({**TASK, "Assign": "{% 1 %}"}, "$.Assign", "V-VAR-01"),
    ({**TASK, "IdempotencyKey.$": 5}, "$['IdempotencyKey.$']", "V-ST-09"),
    ({**TASK, "Retry": {}}, "$.Retry", "V-RETRY-01"),
    ({**TASK, "Retry": [{}]}, "$.Retry[0]", "V-RETRY-01"),
    ({**TASK, "Retry": [{"ErrorEquals": []}]}, "$.Retry[0].ErrorEquals", "V-RETRY-01"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "MaxAttempts": -1}]},
     "$.Retry[0].MaxAttempts", "V-RETRY-03"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 0.5}]},
     "$.Retry[0].BackoffRate", "V-RETRY-04"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "MaxDelaySeconds": 31_622_400}]},
     "$.Retry[0].MaxDelaySeconds", "V-RETRY-05"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": -1}]},
     "$.Retry[0].IntervalSeconds", "V-RETRY-06"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "JitterStrategy": "SOME"}]},
     "$.Retry[0].JitterStrategy", "V-RETRY-07"),
    ({**TASK, "Retry": [{"ErrorEquals": ["A"], "Condition": "x"}]}, "$.Retry[0]", "unknown"),
    ({**TASK, "Catch": [{"ErrorEquals": ["A"]}]}, "$.Catch[0]", "V-CATCH-03"),
    ({**TASK, "Catch": [{"Next": "B"}]}, "$.Catch[0]", "V-CATCH-01"),
    ({**TASK, "Catch": [{"ErrorEquals": ["A"], "Next": "B", "ResultPath": 1}]},
     "$.Catch[0].ResultPath", "V-CATCH-04"),
    ({**TASK, "Reasoning": {"Format": "x"}}, "$.Reasoning.Format", "V-RSN-01"),
    ({**TASK, "Reasoning": {"Store": 1}}, "$.Reasoning.Store", "V-RSN-02"),
    ({**TASK, "Guardrails": {"Input": {"Rules": [{"Type": "x"}]}}},
     "$.Guardrails.Input.Rules[0].Type", "V-GRD-01"),
    ({**TASK, "Guardrails": {"Input": {"Rules": [{"Type": "regex"}]}}},
     "$.Guardrails.Input.Rules[0]", "V-GRD-02"),
    ({**TASK, "Guardrails": {"Output": {"MaxRetries": -1}}},
     "$.Guardrails.Output.MaxRetries", "V-GRD-06"),
    ({**TASK, "Audit": {"LogLevel": "all"}}, "$.Audit.LogLevel", "V-AUD-01"),
    ({**TASK, "Cache": {"TTL": "soon"}}, "$.Cache.TTL", "V-CACHE-01"),
    ({**TASK, "Cache": {"Key.$": 5}}, "$.Cache['Key.$']", "V-ST-09"),
    ({**TASK, "Cache": {"Scope": "all"}}, "$.Cache.Scope", "V-CACHE-03"),
    ({**TASK, "Generation": {"TopP": 0}}, "$.Generation.TopP", "V-GEN-01"),
    ({**TASK, "Memory": {"Write": {"Value": 1}}}, "$.Memory.Write", "V-MEM-01"),
    ({**TASK, "Memory": {"Write": [{"Key": "k", "TTL": 1}]}}, "$.Memory.Write[0].TTL", "V-MEM-02"),
    ({**TASK, "Memory": {"Read": "k"}}, "$.Memory.Read", "V-MEM-01"),
    ({**TASK, "Memory": {"Read": {"InjectAt": 1}}}, "$.Memory.Read.InjectAt", "V-MEM-03"),
    ({**TASK, "Context": {"MaxTokens": 0}}, "$.Context.MaxTokens", "V-CTX-01"),
    ({**TASK, "Context": {"Strategy": "semantic"}}, "$.Context", "V-CTX-02"),
    ({**TASK, "Tools": {"RateLimits": {"t": {"MaxPerDay": 0}}}},
     "$.Tools.RateLimits.t.MaxPerDay", "V-TOOLS-01"),
    ({**TASK, "Tools": {"FileSystem": {"MaxFileSize": "big"}}},
     "$.Tools.FileSystem.MaxFileSize", "V-TOOLS-07"),
    ({**TASK, "Feedback": {"Scale": [1]}}, "$.Feedback.Scale", "V-FB-01"),
    ({**TASK, "Budget": {"MaxTokens": -1}}, "$.Budget.MaxTokens", "V-BUD-01"),
    ({**TASK, "Budget": {"MaxCost": "5 dollars"}}, "$.Budget.MaxCost", "V-BUD-02"),
    ({**TASK, "Budget": {"MaxCost": "env.LIMIT"}}, "$.Budget.MaxCost", "V-BUD-08"),
    ({**TASK, "Streaming": {"Mode": "word"}}, "$.Streaming.Mode", "V-STR-01"),
    ({**TASK, "Progress": {"Milestones": [{"At": 101}]}},
     "$.Progress.Milestones[0].At", "V-PRG-01"),
    ({"Type": "Choice"}, "$", "V-CHOICE-01"),
    ({"Type": "Choice", "Choices": []}, "$.Choices", "V-CHOICE-01"),
    ({"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": True}]},
     "$.Choices[0]", "V-CHOICE-02"),
    ({"Type": "Choice", "Choices": [{"Not": {"Variable": "$.a", "IsNull": True, "Next": "B"},
                                     "Next": "B"}]}, "$.Choices[0].Not.Next", "V-CHOICE-02"),
    ({"Type": "Choice", "Choices": [{"And": [], "Next": "B"}]}, "$.Choices[0].And", "V-CHOICE-03"),
    ({"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEqual": "x", "Next": "B"}]},
     "$.Choices[0]", "unknown"),
    ({"Type": "Map", "End": True, "MaxConcurrency": -1}, "$.MaxConcurrency", "V-MAP-05"),
    ({"Type": "Map", "End": True, "Iterator": "x"}, "$.Iterator", "V-MAP-02"),
    ({"Type": "Map", "End": True, "Iterator": {"States": {"A": SUCCEED}}},
     "$.Iterator", "V-TOP-02"),
    ({"Type": "Map", "End": True, "Iterator": {"StartAt": "A", "States": {}}},
     "$.Iterator.States", "V-TOP-03"),
    ({"Type": "Map", "End": True, "ToleratedFailurePercentage": 101},
     "$.ToleratedFailurePercentage", "V-MAP-08"),
    ({"Type": "Map", "End": True, "ItemBatcher": {"MaxItemsPerBatch": 0}},
     "$.ItemBatcher.MaxItemsPerBatch", "V-MAP-10"),
    ({"Type": "Map", "End": True, "Label": "a b"}, "$.Label", "V-MAP-12"),
    ({"Type": "Parallel", "End": True}, "$", "V-PAR-01"),
    ({"Type": "Parallel", "End": True, "Branches": []}, "$.Branches", "V-PAR-01"),
    ({"Type": "Parallel", "End": True, "Branches": [5]}, "$.Branches[0]", "V-PAR-02"),
    ({"Type": "Wait", "End": True, "Seconds": 1.5}, "$.Seconds", "V-WAIT-02"),
    ({"Type": "Wait", "End": True, "Timestamp": "2016-03-05 21:29:29Z"},
     "$.Timestamp", "V-WAIT-03"),
    ({"Type": "Wait", "End": True, "SecondsPath": 5}, "$.SecondsPath", "V-WAIT-04"),
    ({"Type": "Succeed", "End": True}, "$", "unknown"),
    ({"Type": "Fail", "Cause": 5}, "$.Cause", "V-FAIL-03"),
    ({"Type": "Approval", "End": True}, "$", "V-APR-01"),
    ({**APPROVAL, "Options": ["a", "a"]}, "$.Options", "V-APR-02"),
    ({**APPROVAL, "Timeout": "soon"}, "$.Timeout", "V-APR-03"),
    ({**APPROVAL, "Escalation": {"Repeat": {"Every": "x"}}},
     "$.Escalation.Repeat.Every", "V-APR-03"),
    ({**APPROVAL, "BatchMode": {"MinApproved": 2}}, "$.BatchMode.MinApproved", "V-APR-10"),
    ({**APPROVAL, "OnTimeout": "Wait"}, "$.OnTimeout", "V-APR-14"),
    ({**DEBATE, "Agents": ["A"]}, "$.Agents", "V-DEB-01"),
    ({**DEBATE, "Rounds": 0}, "$.Rounds", "V-DEB-03"),
    ({**DEBATE, "Communication": {"Style": "chat"}}, "$.Communication.Style", "V-DEB-04"),
    ({**DEBATE, "Consensus": {"Threshold": 0}}, "$.Consensus.Threshold", "V-DEB-06"),
    ({"Type": "Checkpoint", "End": True}, "$", "V-CKPT-01"),
    ({"Type": "Checkpoint", "End": True, "Name": "n", "TTL": "x"}, "$.TTL", "V-CKPT-02"),
    ({"Type": "Include", "End": True}, "$", "V-INC-01"),
    ({"Type": "Workflow", "End": True, "WorkflowId": ""}, "$.WorkflowId", "V-WF-01"),
    ({"Type": "Workflow", "End": True, "WorkflowId": "w", "Timeout": 5}, "$.Timeout", "V-WF-03"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "path", "rule"), BAD_STATES)
def test_a_faulty_state_breaks_the_rule_at_its_place(state: Schema, path: str, rule: str) -> None:
    """The place and the rule of a fault can be read off the schema that refused it."""
    assert (path, rule) in broken("State", state)


def document(**fields: Any) -> Schema:
    return {"StartAt": "A", "States": {"A": SUCCEED}, **fields}


BAD_DOCUMENTS: list[tuple[Any, str, str]] = [
    ([], "$", "V-TOP-01"),
    ({"States": {"A": SUCCEED}}, "$", "V-TOP-02"),
    ({"StartAt": "A"}, "$", "V-TOP-03"),
    (document(States={}), "$.States", "V-TOP-03"),
    (document(States={"A": None}), "$.States.A", "V-TOP-03"),
    (document(States={"A" * 81: SUCCEED}), "$.States", "V-TOP-05"),
    (document(TimeoutSeconds="{% 5 %}"), "$.TimeoutSeconds", "V-TOP-07"),
    (document(QueryLanguage="SQL"), "$.QueryLanguage", "V-TOP-10"),
    (document(Colour="red"), "$", "unknown"),
    (document(Imports={"a": 5}), "$.Imports.a", "V-IMP-01"),
    (document(_lock={"a": 5}), "$['_lock'].a", "V-IMP-04"),
    (document(Parameters={"a": {"Type": "text"}}), "$.Parameters.a.Type", "V-TPL-01"),
    (document(Parameters={"a b": {}}), "$.Parameters", "V-TPL-01"),
    (document(Budget={"Alerts": [{"At": "half"}]}), "$.Budget.Alerts[0].At", "V-BUD-05"),
    (document(Budget={"Fallback": {"When": "Soon"}}), "$.Budget.Fallback.When", "V-BUD-03"),
    (document(Budget={"Fallback": {"Cascade": [{}]}}), "$.Budget.Fallback.Cascade[0]", "V-BUD-03"),
    (document(Memory={"Backend": "disk"}), "$.Memory.Backend", "V-MEM-02"),
    (document(Progress={"WeightedProgress": {"A": -1}}),
     "$.Progress.WeightedProgress.A", "V-PRG-01"),
    (document(ToolCategories={"a": "b"}), "$.ToolCategories.a", "V-TOOLS-01"),
    (document(Checkpointing={"Every": "often"}), "$.Checkpointing.Every", "V-CKPG-01"),
    (document(Exports="A"), "$.Exports", "V-MOD-01"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "path", "rule"), BAD_DOCUMENTS)
def test_a_faulty_document_breaks_the_rule_at_its_place(value: Any, path: str, rule: str) -> None:
    """Faults at the top level are named and placed like those in states."""
    assert (path, rule) in broken("asl", value)


def test_a_module_needs_no_start() -> None:
    """Specification 9.4: a module has States and Exports, no StartAt."""
    assert broken("asl", {"Module": True, "Exports": ["A"], "States": {"A": SUCCEED}}) == set()


def test_a_state_is_checked_alone_when_the_dispatcher_accepts_anything() -> None:
    """A checker that walks the machines itself replaces one urn and sees no nested fault twice."""
    alone = REGISTRY.with_resource(
        URN + "State", Resource.from_contents({"$schema": SCHEMAS["asl.schema.json"]["$schema"]})
    )
    value = document(States={"A": {"Type": "Nonsense"}})
    assert Draft202012Validator({"$ref": URN + "asl"}, registry=alone).is_valid(value)
    assert broken("asl", value) == {("$.States.A.Type", "V-ST-01")}


OPERANDS = {
    "String": ("x", 5), "Numeric": (1.5, "1"), "Boolean": (True, "true"),
    "Timestamp": ("2016-03-05T21:29:29Z", "2016-03-05"), "Is": (False, "false"),
}  # fmt: skip


def operators() -> list[str]:
    properties = SCHEMAS["ChoiceRule.schema.json"]["properties"]
    return [name for name in properties if name.startswith(tuple(OPERANDS))]


def test_there_are_39_operators() -> None:
    """Specification 6.2 counts thirty-nine comparison operators, sixteen of them Path twins."""
    assert len(operators()) == 39
    assert sum(name.endswith("Path") for name in operators()) == 16


@pytest.mark.parametrize("operator", operators())
def test_an_operand_fits_its_operator(operator: str) -> None:
    """An operand of the family's type passes; another one is V-CHOICE-04 at the operator."""
    family = next(family for family in OPERANDS if operator.startswith(family))
    good, bad = ("$.x", 5) if operator.endswith("Path") else OPERANDS[family]
    rule = {"Variable": "$.a", "Next": "B"}
    assert broken("ChoiceRule", {**rule, operator: good}) == set()
    assert broken("ChoiceRule", {**rule, operator: bad}) == {(f"$.{operator}", "V-CHOICE-04")}


def test_the_bundle_for_editors_judges_alike() -> None:
    """One file with all schemas accepts and refuses what they do."""
    bundle = bundled()
    Draft202012Validator.check_schema(bundle)
    whole = Draft202012Validator(bundle, registry=Registry())
    for state in GOOD_STATES:
        assert whole.is_valid(document(States={"A": state}))
    for state, path, _ in BAD_STATES:
        errors = whole.iter_errors(document(States={"A": state}))
        assert "$.States.A" + path.removeprefix("$") in {error.json_path for error in errors}


# Documents of others ---------------------------------------------------------

FROM_ANOTHER_LAYER = {
    "spec-10-composition.b09.asl.json": {"$.States.ExecuteWithRetry.Retry[0].MaxAttempts"},
    "asl-validator/valid-task-intrisic-function.json": {
        "$.States.RefResource.Resource",
        "$.States.GetAttResource.Resource",
    },
}
"""Values that are replaced before a document runs: template expressions, CloudFormation's Ref."""


def collected() -> Iterator[tuple[str, Any]]:
    """Yield (name, document) of the collected documents that are said to be valid."""
    for path in sorted((CORPUS / "agent-asl").glob("*.json")):
        yield path.name, json.loads(path.read_text(encoding="utf-8"))
    recorded = CORPUS / "aws" / "open.jsonl"
    if recorded.exists():
        for line in recorded.read_bytes().splitlines():
            case = json.loads(line)
            runs = case["kind"] == "execute"
            accepted = case["kind"] == "validate" and case["expected"].get("valid")
            if "definition" in case and (runs or accepted):
                yield case["id"], case["definition"]


@pytest.mark.skipif(not CORPUS.exists(), reason="collected documents are not here")
def test_collected_documents_pass() -> None:
    """Published agent documents and machines that ran on AWS have the shape of the language."""
    faults = {
        name: {error.json_path for error in validator("asl").iter_errors(value)}
        for name, value in collected()
    }
    assert {name: found for name, found in faults.items() if found} == FROM_ANOTHER_LAYER


# JSONata ---------------------------------------------------------------------------------------

READER = {"Resource": "arn:aws:states:::s3:getObject"}
TWINS: list[tuple[str, tuple[str, ...], Any]] = [
    ("states:Task", ("TimeoutSeconds",), 5),
    ("states:Task", ("HeartbeatSeconds",), 5),
    ("states:Wait", ("Seconds",), 5),
    ("states:Wait", ("Timestamp",), "2030-01-01T00:00:00Z"),
    ("states:Map", ("MaxConcurrency",), 5),
    ("states:Map", ("ToleratedFailureCount",), 5),
    ("states:Map", ("ToleratedFailurePercentage",), 12.5),
    ("states:Map", ("Items",), [1]),
    ("ItemBatcher", ("MaxItemsPerBatch",), 5),
    ("ItemBatcher", ("MaxInputBytesPerBatch",), 5),
    ("ItemReader", ("ReaderConfig", "MaxItems"), 5),
    ("ChoiceRule", ("Condition",), True),
]


@pytest.mark.parametrize(("name", "steps", "literal"), TWINS, ids=lambda value: str(value))
def test_a_value_may_be_an_expression_instead(
    name: str, steps: tuple[str, ...], literal: Any
) -> None:
    """The literal and a `{% %}` string are both right, any other text is not; hovers say so."""
    base: dict[str, Any] = dict(READER) if name == "ItemReader" else {}
    if name.startswith("states:"):
        base["Type"] = name.removeprefix("states:")

    def accepted(value: Any) -> bool:
        for step in reversed(steps):
            value = {step: value}
        return not broken(name, {**base, **value})

    assert accepted(literal)
    assert accepted("{% $states.input.n %}")
    assert accepted("{%\n  $x\n%}")
    for text in ("$.n", "{% $x", "$x %}", " {% $x %}", "{% $x %}\n"):
        assert not accepted(text), text
    schema: Any = REGISTRY.contents(URN + name)
    for step in steps:
        schema = schema["properties"][step]
    assert "{% expression %}" in schema["description"]
