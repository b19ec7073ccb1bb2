"""Transform nodes: values computed from the context by mappings."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json
from asl.core.work import WorkMeter, fail_beyond_limits
from asl.dialects.codemie.functions.conditions import CodemieConditionError, evaluate, holds, parse
from asl.dialects.codemie.functions.context_store import context_of, history, last_output
from asl.dialects.codemie.functions.outputs import NOTHING, follow_steps, parse_output
from asl.dialects.codemie.functions.templates import render

__all__ = ["MAPPINGS", "transform"]

FAILED: Final = "CM.TransformFailed"


class _Missing(Exception):
    """A mapping has no value."""


def transform(data: Json, config: Mapping[str, Any]) -> Json:
    """Return the output of a transform node.

    Args:
        data: The data of the execution.
        config: The configuration of the node.

    Raises:
        StateError: CM.TransformFailed if a mapping fails and `on_error` is `fail`.
    """
    with fail_beyond_limits():
        return _transform(data, config, WorkMeter())


def _transform(data: Json, config: Mapping[str, Any], meter: WorkMeter) -> Json:
    policy = config.get("on_error", "fail")
    found: dict[str, Json] = {}
    try:
        source = _source(data, config, meter)
        for mapping in config.get("mappings", ()):
            meter.spend(4 + (len(source) + len(found) >> 2))
            try:
                found[mapping["output_field"]] = MAPPINGS[mapping["type"]](
                    mapping, {**source, **found}, meter
                )
            except (_Missing, CodemieConditionError) as fault:
                if policy != "partial":
                    raise _Missing(f"{mapping['output_field']}: {fault}") from None
        return _apply_schema(found, config.get("output_schema"))
    except _Missing as fault:
        if policy == "skip":
            return {}
        if policy == "default":
            return config.get("default_output", {})
        raise StateError(FAILED, str(fault)) from None


def _source(data: Json, config: Mapping[str, Any], meter: WorkMeter) -> dict[str, Json]:
    kind = config.get("input_source", "context_store")
    source: Json = context_of(data)
    if kind == "messages":
        source = {"messages": history(data)}
    elif kind == "user_input":
        source = last_output(data)
    elif kind == "state_schema":
        source = {"context_store": source, "messages": history(data)}
    if "input_key" in config:
        source = _follow_path(source, config["input_key"], meter)
        source = parse_output(source) if isinstance(source, str) else source
    return source if isinstance(source, dict) else {"value": source}


def _follow_path(source: Json, path: str, meter: WorkMeter) -> Json:
    found = follow_steps(source, path.split("."), meter)
    if found is NOTHING:
        raise _Missing(f"there is nothing at {path!r}")
    return found


def _extract(mapping: Mapping[str, Any], source: Mapping[str, Json], meter: WorkMeter) -> Json:
    try:
        return _follow_path(source, mapping["source_path"], meter)
    except _Missing:
        return mapping.get("default")


def _array_map(mapping: Mapping[str, Any], source: Mapping[str, Json], meter: WorkMeter) -> Json:
    values = _follow_path(source, mapping["source_path"], meter)
    if not isinstance(values, list):
        raise _Missing(f"{mapping['source_path']!r} is no list")
    found = []
    meter.spend(4 * len(values))
    for item in values:
        if "filter_condition" in mapping:
            meter.spend(len(source) >> 2)
            if not _true(mapping["filter_condition"], {**source, "item": item}, meter):
                continue
        value = item
        if "item_field" in mapping:
            try:
                value = _follow_path(item, mapping["item_field"], meter)
            except _Missing:
                value = None
        if value is not None:
            found.append(value)
    return found


def _true(text: str, names: Mapping[str, Json], meter: WorkMeter) -> bool:
    return holds(text, names, members=True, meter=meter)


def _condition(mapping: Mapping[str, Any], source: Mapping[str, Json], meter: WorkMeter) -> Json:
    return mapping["then_value" if _true(mapping["condition"], source, meter) else "else_value"]


def _script(mapping: Mapping[str, Any], source: Mapping[str, Json], meter: WorkMeter) -> Json:
    try:
        return _as_json(evaluate(parse(mapping["script"], members=True), source, meter))
    except ExpressionFault as fault:
        raise CodemieConditionError(fault.message) from None


def _as_json(value: Any) -> Json:
    if isinstance(value, dict):
        return {str(key): _as_json(each) for key, each in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return [_as_json(each) for each in value]


def _template(mapping: Mapping[str, Any], source: Mapping[str, Json], meter: WorkMeter) -> Json:
    return render(mapping["template"], source, meter)


Mapped: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Json], WorkMeter], Json]
"""`(mapping, values by name, meter) -> value`."""

MAPPINGS: Final[Mapping[str, Mapped]] = {
    "extract": _extract,
    "array_map": _array_map,
    "condition": _condition,
    "constant": lambda mapping, source, meter: mapping["value"],
    "script": _script,
    "template": _template,
}
"""The value of a mapping by its type."""

_COERCED: Final[Mapping[str, Callable[[Any], Json]]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
}


def _apply_schema(found: dict[str, Json], schema: Json) -> Json:
    """Return the values converted to the simple types of a schema; raises _Missing."""
    if not isinstance(schema, dict):
        return found
    for name in schema.get("required", ()):
        if name not in found:
            raise _Missing(f"{name!r} is required")
    shaped = dict(found)
    for name, wanted in schema.get("properties", {}).items():
        coerce = _COERCED.get(str(wanted.get("type"))) if isinstance(wanted, dict) else None
        if name in shaped and coerce is not None and isinstance(shaped[name], str | int | float):
            try:
                shaped[name] = coerce(shaped[name])
                if isinstance(shaped[name], float) and not isfinite(shaped[name]):
                    raise ValueError(name)
            except (ValueError, OverflowError):
                raise _Missing(f"{name!r} is no {wanted['type']}") from None
    return shaped
