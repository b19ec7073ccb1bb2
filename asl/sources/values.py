"""Files that say what placeholders and parameters stand for."""

import os
from pathlib import Path

from asl.core.document import invalid, read_value
from asl.core.source import Fault
from asl.core.values import Json

__all__ = ["read_values"]


def read_values(path: str | os.PathLike[str]) -> dict[str, Json]:
    """Read values by name from a JSON or YAML file.

    The file is an object, the list of `ParameterKey` and `ParameterValue` that the AWS command line
    takes, or an object with either of them under `Parameters`. Raises as `read_value` does.
    """
    document = read_value(Path(path))
    value = document.value
    if type(value) is dict and type(value.get("Parameters")) in (dict, list):
        value = value["Parameters"]
    if type(value) is list and all(map(_is_pair, value)):
        return {pair["ParameterKey"]: pair["ParameterValue"] for pair in value}
    if type(value) is not dict:
        message = "values are an object: names with what they stand for"
        raise invalid(document.source, [Fault("READ-01", message, 0)])
    return value


def _is_pair(value: Json) -> bool:
    return (
        type(value) is dict and "ParameterValue" in value and type(value.get("ParameterKey")) is str
    )
