"""JSONPath or JSONata: V-ST-07, V-ST-08, and JSONata where a number is expected.

Specification 2.1, 3.6.
"""

from collections.abc import Iterator
from typing import Final

from asl.checks.structure import declares
from asl.checks.suggestions import IN_JSONATA
from asl.checks.workflow import CheckedWorkflow, objects
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.pointers import escape, split_pointer
from asl.core.values import Json
from asl.expr.choice_rules import COMBINATORS, OPERATORS
from asl.expr.templates import SUFFIX
from asl.states import UNKNOWN, type_of
from asl.states.base import Node
from asl.states.fields import FieldIndex, Reading
from asl.states.schemas import free_fields

__all__ = ["check", "is_jsonata", "other_language"]

_FOREIGN: Final = {
    "JSONPath": FieldIndex(lambda field: field.language == "JSONata"),
    "JSONata": FieldIndex(lambda field: field.language == "JSONPath"),
}
"""A query language -> the fields that belong to the other one."""
_TWINS = {**IN_JSONATA, **{there: here for here, there in IN_JSONATA.items()}}
"""What a field is called in the other language."""
_RULE_JSONPATH = frozenset({"Variable", "Variable.$", *COMBINATORS, *OPERATORS})
"""The fields of a choice rule that belong to JSONPath, at any depth."""
_COMPUTED: Final = FieldIndex(
    lambda field: field.jsonpath is Reading.BLOCK and field.jsonata == "template"
)
"""The objects in which any field may be computed."""
_VALUES: Final = FieldIndex(lambda field: field.jsonata in ("number", "timestamp", "value"))
"""The fields that only JSONata computes: elsewhere an expression is no value of theirs."""


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
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
        "keep JSONPath at the top and set JSONata on single states",
        aws=Wording(
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
            at=node.pointer,
        ),
    )


def _fields(node: Node) -> Iterator[Finding]:
    kind = type_of(node.value)
    if kind is UNKNOWN:
        return
    jsonata = node.query_language == "JSONata"
    label = node.template and not kind.terminal
    for field, steps, _ in _FOREIGN[node.query_language].of(node.value):
        if not (label and steps == ("Output",)):
            yield other_language(field.name, node, node.at(*steps))
    if not jsonata:
        return
    for name in node.value:
        if name.endswith(SUFFIX) and declares(f"states:{kind.name}", name):
            yield other_language(name, node, node.at(name))
    for _, steps, value in _COMPUTED.of(node.value):
        for pointer, name in _computed(value, node.at(*steps)):
            yield other_language(name, node, pointer)
    for index, rule in objects(node.value, "Choices"):
        for name in _RULE_JSONPATH.intersection(rule):
            yield other_language(name, node, node.at("Choices", index, name))


def _computed(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a block that are computed as JSONPath does it: pointer and name."""
    if type(value) is dict:
        for field, part in value.items():
            here = f"{pointer}/{escape(field)}"
            if field.endswith(SUFFIX):
                yield here, field
            elif field not in free_fields():
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
            at=split_pointer(pointer)[0],
        ),
    )


def _numbers(node: Node) -> Iterator[Finding]:
    for field, steps, value in _VALUES.of(node.value):
        if is_jsonata(value):
            words = (
                aws_messages.NO_TIMESTAMP
                if field.jsonata == "timestamp"
                else aws_messages.wrong_type("integer")
            )
            message = f"{field.name!r} is computed by JSONata only"
            hint = 'set "QueryLanguage": "JSONata" on the state'
            yield Finding(field.rule, message, node.at(*steps), hint, aws=Wording(words))


def is_jsonata(value: Json) -> bool:
    """Whether a value is a string that a JSONata state would evaluate."""
    return type(value) is str and value.startswith("{%") and value.endswith("%}")
