"""Transform nodes: which of them the functions of the dialect can say."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.codemie.functions.template_syntax import parse_template
from asl.dialects.codemie.schema import CODES, SCHEMA

__all__ = ["misfits", "never_made", "sayable"]

_HINT: Final = "as it is, the node is a Task for an agent called 'transform_node'"


def sayable(node: Mapping[str, Any]) -> bool:
    """Whether a custom node is a transformation that the functions of the dialect can say."""
    return _is_transform(node) and not any(misfits(node, ""))


def never_made(config: Mapping[str, Any]) -> str | None:
    """Return what a transformation requires and never makes, None where it can succeed."""
    if config.get("on_error", "fail") != "fail" or config.get("mappings"):
        return None
    return next(iter(config.get("output_schema", {}).get("required", ())), None)


def misfits(node: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    """Yield, as warnings, why the functions of the dialect cannot say a transform node."""
    if not _is_transform(node):
        return
    config, pointer = node.get("config", {}), f"{pointer}/config"
    for each in SCHEMA.check(config, pointer, "transform"):
        if each.code == CODES.misfit:
            yield each._replace(severity=Severity.WARNING, hint=_HINT)
    mappings = config.get("mappings") if type(config) is dict else None
    for index, mapping in enumerate(mappings if type(mappings) is list else ()):
        template = mapping.get("template") if type(mapping) is dict else None
        if type(template) is str and (fault := _fault(template)) is not None:
            yield Finding(
                CODES.misfit,
                f"'template' is not supported: {fault.message}",
                f"{pointer}/mappings/{index}/template",
                _HINT,
                severity=Severity.WARNING,
                inside=fault.offset,
            )


def _fault(template: str) -> ExpressionFault | None:
    try:
        parse_template(template)
    except ExpressionFault as fault:
        return fault
    return None


def _is_transform(node: Mapping[str, Any]) -> bool:
    kind: Json = node.get("custom_node_id", node.get("id"))
    return bool(kind == "transform_node")
