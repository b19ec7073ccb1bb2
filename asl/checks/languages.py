"""JSONPath or JSONata: V-ST-07, V-ST-08, and JSONata where a number is expected.

Specification 2.1, 3.6.
"""

from collections.abc import Iterator, Mapping

from asl.checks.meant import IN_JSONATA
from asl.checks.structure import declares, known_fields
from asl.checks.workflow import Workflow, below, handlers, objects
from asl.core import aws
from asl.core.diagnostics import Finding, Wording
from asl.core.pointers import escape, parted
from asl.core.values import Json
from asl.expr.rules import COMBINATORS, OPERATORS
from asl.expr.templates import SUFFIX
from asl.states import STATE_TYPES
from asl.states.base import Node
from asl.states.blocks import STATE_BLOCKS

__all__ = ["check", "is_jsonata", "other_language"]

JSONPATH_ONLY = frozenset(
    {
        "InputPath",
        "OutputPath",
        "ResultPath",
        "Parameters",
        "ResultSelector",
        "ItemsPath",
        "MaxConcurrencyPath",
        "ToleratedFailureCountPath",
        "ToleratedFailurePercentagePath",
        "TimeoutSecondsPath",
        "HeartbeatSecondsPath",
        "SecondsPath",
        "TimestampPath",
        "TopicPath",
        "ErrorPath",
        "CausePath",
    }
)
JSONATA_ONLY = frozenset({"Arguments", "Output", "Items"})
_TWINS = {**IN_JSONATA, **{there: here for here, there in IN_JSONATA.items()}}
"""What a field is called in the other language."""
_RULE_JSONPATH = frozenset({"Variable", "Variable.$", *COMBINATORS, *OPERATORS})
_RULE_JSONATA = frozenset({"Condition", "Output"})
_COMMUNICATION: Mapping[str, str] = {
    "Style": "V-DEB-04",
    "Order": "V-DEB-04",
    "VisibleHistory": "V-DEB-04",
}
_CONSENSUS: Mapping[str, str] = {
    "Required": "V-DEB-04",
    "Arbiter": "V-DEB-04",
    "Threshold": "V-DEB-06",
    "Method": "V-DEB-04",
    "RequiredMajority": "V-DEB-06",
    "VotingAgents": "V-DEB-07",
    "TieBreaker": "V-DEB-04",
    "MaxRoundsForConsensus": "V-DEB-03",
}
"""The fields of a Debate's blocks, which may be computed, and the rules they break elsewhere."""
_BLOCKS = (
    (("ItemReader",), ("Parameters",), ("Arguments",)),
    (("ItemReader", "ReaderConfig"), ("MaxItemsPath",), ()),
    (("ItemBatcher",), ("MaxItemsPerBatchPath", "MaxInputBytesPerBatchPath"), ()),
    (("ResultWriter",), ("Parameters",), ("Arguments",)),
)
"""`(way to an object, its fields of JSONPath, its fields of JSONata)`."""
_OF_TYPES = ("Policy", "BatchMode", "Escalation", "Notifications", "Communication", "Consensus")
"""The objects of single state types in which any field may be computed."""
_FREE = ("Metadata", "Attribution", "Value", "Default", "Filter", "Parameters", "Schema")
"""The fields of blocks that hold what the author wants, whatever its names."""
_NUMBERS: Mapping[str, str] = {
    "TimeoutSeconds": "V-TASK-05",
    "HeartbeatSeconds": "V-TASK-05",
    "Seconds": "V-WAIT-02",
    "Timestamp": "V-WAIT-03",
    "MaxConcurrency": "V-MAP-05",
    "ToleratedFailureCount": "V-MAP-05",
    "ToleratedFailurePercentage": "V-MAP-08",
    "Rounds": "V-DEB-03",
}
"""Fields whose value may be computed by JSONata, and the rule they break elsewhere."""
_BLOCK_NUMBERS: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = (
    (("ItemReader", "ReaderConfig"), {"MaxItems": "V-MAP-10"}),
    (
        ("ItemBatcher",),
        {"MaxItemsPerBatch": "V-MAP-10", "MaxInputBytesPerBatch": "V-MAP-10"},
    ),
    (("Communication",), _COMMUNICATION),
    (("Consensus",), _CONSENSUS),
)


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield the fields that belong to the other query language."""
    jsonata = workflow.value.get("QueryLanguage") == "JSONata"
    for node in workflow.nodes():
        if jsonata and node.value.get("QueryLanguage") == "JSONPath":
            yield _language(node)  # AWS says no more of its fields (recorded)
        else:
            yield from _fields(node)
        if node.query_language == "JSONPath":
            yield from _numbers(node)


def _language(node: Node) -> Finding:
    return Finding(
        "V-ST-08",
        "the document is written in JSONata, so its states are too",
        node.at("QueryLanguage"),
        "leave the top at JSONPath and set JSONata on single states",
        aws=Wording(
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
            at=node.pointer,
        ),
    )


def _fields(node: Node) -> Iterator[Finding]:
    kind = node.value.get("Type")
    if type(kind) is not str or kind not in STATE_TYPES:
        return
    jsonata = node.query_language == "JSONata"
    known = known_fields(f"states:{kind}")
    for field in node.value:
        label = field == "Output" and node.template and not STATE_TYPES[kind].terminal
        arguments = field == "Parameters" and kind == "Include"
        if label or arguments:
            continue
        if jsonata and field.endswith(SUFFIX):
            if declares(f"states:{kind}", field):
                yield other_language(field, node, node.at(field))
        elif field in known and field in (JSONPATH_ONLY if jsonata else JSONATA_ONLY):
            yield other_language(field, node, node.at(field))
    for name in (*STATE_BLOCKS, *_OF_TYPES) if jsonata else ():
        if name in node.value and name not in _FREE:
            for pointer, each in _computed(node.value[name], node.at(name)):
                yield other_language(each, node, pointer)
    surplus = _RULE_JSONPATH if jsonata else _RULE_JSONATA
    for index, rule in objects(node.value, "Choices"):
        for field in rule:
            if field in surplus:
                yield other_language(field, node, node.at("Choices", index, field))
    for index, catcher in handlers(node.value, "Catch"):
        field = "ResultPath" if jsonata else "Output"
        if field in catcher:
            yield other_language(field, node, node.at("Catch", index, field))
    for steps, of_jsonpath, of_jsonata in _BLOCKS:
        if steps[0] not in node.value:
            continue
        block = below(node.value, *steps)
        for field in of_jsonpath if jsonata else of_jsonata:
            if field in block:
                yield other_language(field, node, node.at(*steps, field))


def _computed(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a block that are computed as JSONPath does it: pointer and name."""
    if type(value) is dict:
        for field, part in value.items():
            here = f"{pointer}/{escape(field)}"
            if field.endswith(SUFFIX):
                yield here, field
            elif field not in _FREE:
                yield from _computed(part, here)
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _computed(part, f"{pointer}/{index}")


def other_language(field: str, node: Node, pointer: str) -> Finding:
    """Word that a field belongs to the query language that its state is not written in."""
    other = "JSONPath" if node.query_language == "JSONata" else "JSONata"
    twin = _TWINS.get(field)
    known = twin is not None and declares(f"states:{node.value['Type']}", twin)
    cure = f'write "{twin}"' if known else "rewrite the field"
    return Finding(
        "V-ST-07",
        f"{field!r} belongs to {other}, and this state is written in {node.query_language}",
        pointer,
        f'set "QueryLanguage": "{other}" on the state, or {cure}',
        at_key=True,
        aws=Wording(
            f"The QueryLanguage is set to '{node.query_language}', but field '{field}' is only "
            f"supported for the '{other}' QueryLanguage",
            at=parted(pointer)[0],
        ),
    )


def _numbers(node: Node) -> Iterator[Finding]:
    for field, rule in _NUMBERS.items():
        if is_jsonata(node.value.get(field)):
            words = aws.NO_TIMESTAMP if field == "Timestamp" else aws.expected("integer")
            yield _jsonata(rule, node, (field,), Wording(words))
    for steps, fields in _BLOCK_NUMBERS:
        if steps[0] not in node.value:
            continue
        block = below(node.value, *steps)
        for field, rule in fields.items():
            if is_jsonata(block.get(field)):
                yield _jsonata(rule, node, (*steps, field), Wording(aws.expected("integer")))


def _jsonata(rule: str, node: Node, steps: tuple[str, ...], wording: Wording) -> Finding:
    """Word that a state in JSONPath has an expression of JSONata."""
    message = f"{steps[-1]!r} is computed by JSONata only"
    hint = 'set "QueryLanguage": "JSONata" on the state'
    return Finding(rule, message, node.at(*steps), hint, aws=wording)


def is_jsonata(value: Json) -> bool:
    """Whether a value is a string that a JSONata state would evaluate."""
    return type(value) is str and value.startswith("{%") and value.endswith("%}")
