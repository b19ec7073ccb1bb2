"""Transform nodes: which of them the functions of the dialect can say."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.values import Json
from asl.dialects import schema
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.functions.transforms import MAPPINGS
from asl.dialects.codemie.schema import CODES
from asl.dialects.schema import OBJECT, TEXT, TEXTS, ListSchema, ObjectSchema, anything

__all__ = ["misfits", "sayable"]

_HINT: Final = "as it is, the node is a Task for an agent called 'transform_node'"

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "extract": ("source_path",),
    "array_map": ("source_path",),
    "condition": ("condition", "then_value", "else_value"),
    "constant": ("value",),
    "script": ("script",),
    "template": ("template",),
}
"""Keys that a mapping needs in addition to its field, by its type."""


def _type(value: Json) -> str | None:
    known = type(value) is str and value in MAPPINGS
    return None if known else f"must be one of {', '.join(MAPPINGS)}"


def _template(value: Json) -> str | None:
    if type(value) is not str:
        return "must be a string"
    known = all(each.steps for each in find_placeholders(value))
    return None if known else "has a placeholder that is not understood"


_KEYS: Final = {
    "output_field": TEXT,
    "type": _type,
    "source_path": TEXT,
    "item_field": TEXT,
    "filter_condition": TEXT,
    "condition": TEXT,
    "script": TEXT,
    "template": _template,
    **dict.fromkeys(("default", "then_value", "else_value", "value"), anything),
}
_CONFIG: Final = ObjectSchema(
    {
        "mappings": ListSchema(ObjectSchema(_KEYS, ("output_field", "type"))),
        "input_source": TEXT,
        "input_key": TEXT,
        "on_error": TEXT,
        "default_output": anything,
        "output_schema": ObjectSchema({"required": TEXTS, "properties": OBJECT}),
    },
    ("mappings",),
)


def sayable(node: Mapping[str, Any]) -> bool:
    """Whether a custom node is a transformation that the functions of the dialect can say."""
    return _is_transform(node) and not any(misfits(node, ""))


def misfits(node: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    """Yield, as warnings, why the functions of the dialect cannot say a transform node."""
    if not _is_transform(node):
        return
    config, pointer = node.get("config", {}), f"{pointer}/config"
    found = schema.check(config, _CONFIG, pointer, CODES)
    yield from (
        each._replace(severity=Severity.WARNING, hint=_HINT)
        for each in found
        if each.code == CODES.misfit
    )
    mappings = config.get("mappings") if type(config) is dict else None
    for index, mapping in enumerate(mappings if type(mappings) is list else ()):
        kind = mapping.get("type") if type(mapping) is dict else None
        for key in _NEEDED.get(kind, ()) if type(kind) is str else ():
            if key not in mapping:
                yield Finding(
                    CODES.misfit,
                    f"{key!r} is missing: a mapping of the type {kind!r} needs it",
                    f"{pointer}/mappings/{index}",
                    _HINT,
                    severity=Severity.WARNING,
                    at_key=True,
                )


def _is_transform(node: Mapping[str, Any]) -> bool:
    kind: Json = node.get("custom_node_id", node.get("id"))
    return bool(kind == "transform_node")
