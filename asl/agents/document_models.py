"""What language models are given and answer for documents that define their agents themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asl.agents.model_runs import text_result, use_arguments
from asl.core.values import Json
from asl.engine.definitions import ModelRequest
from asl.engine.tools import ToolOffer
from asl.expr.agent_answers import ANSWER

__all__ = ["document_result", "object_schema", "requested_tools"]

_VALUE: Final = "value"
"""The member of a structured answer that holds one which is no object."""


def _is_object(schema: Mapping[str, Json]) -> bool:
    return schema.get("type") in (None, "object")


def object_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return the schema of an object for that of an answer: providers know only objects."""
    if _is_object(schema):
        return {"type": "object", **schema}
    return {"type": "object", "properties": {_VALUE: dict(schema)}, "required": [_VALUE]}


def requested_tools(offers: list[ToolOffer]) -> Any:
    """Return tools that a model may ask for and that the document performs itself."""
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    return ExternalToolset(
        [
            ToolDefinition(
                name=each.name,
                description=each.description,
                parameters_json_schema=dict(each.input or {}),
            )
            for each in offers
        ]
    )


def document_result(output: Any, request: ModelRequest, messages: list[Any]) -> dict[str, Json]:
    """Return the answer of a model as the raw result of a call: `response` and its usage.

    Args:
        output: Text, structured value, or requests for tools.
        request: What the document asked.
        messages: The messages of the run.
    """
    if type(output) is str:
        return text_result(output, messages)
    calls = getattr(output, "calls", None)
    if calls is not None:
        text = messages[-1].text or "" if hasattr(messages[-1], "text") else ""
        requested = [
            {
                "id": each.tool_call_id,
                "name": each.tool_name,
                "arguments": use_arguments(each) or {},
            }
            for each in calls
        ]
        return {ANSWER: text, "tool_calls": requested}
    wraps = request.output is not None and not _is_object(request.output)
    return {ANSWER: output[_VALUE] if wraps else output}
