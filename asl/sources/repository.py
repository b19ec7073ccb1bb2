"""Workflows of a folder: templates, definition files and agents files."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from asl.core.document import contents, invalid, read_value
from asl.core.errors import DocumentNotFound
from asl.core.source import DEFAULT_LIMITS, Fault
from asl.core.values import Json

__all__ = ["DOCUMENT_ENDINGS", "find_files", "is_document_name", "read_values"]

DOCUMENT_ENDINGS: Final = tuple(
    f".{kind}.{form}" for kind in ("asl", "agents") for form in ("json", "yaml", "yml")
)
"""Endings of the names of documents and agents files."""
_ENDINGS: Final = (".json", ".yaml", ".yml", ".template", ".asl", ".tf")
_SKIPPED: Final = frozenset(("__pycache__", "node_modules", "site-packages", "venv"))
"""Folders of third-party code. Hidden folders are skipped too."""
_TEMPLATE: Final = re.compile(
    rb"AWS::(?:StepFunctions|Serverless)::StateMachine|^stepFunctions[ \t]*:", re.MULTILINE
)
_TERRAFORM: Final = re.compile(
    rb'^[ \t]*resource[ \t]+"aws_sfn_state_machine"|^[ \t]+definition[ \t]*=', re.MULTILINE
)
_DOCUMENT: Final = re.compile(
    rb'\A\s*\{\s*"(?:Comment|QueryLanguage|StartAt|States|TimeoutSeconds|Version)"\s*:'
    rb"|^(?:StartAt|States)[ \t]*:",
    re.MULTILINE,
)
_GENERATED: Final = re.compile(rb"^[ \t]*\{%", re.MULTILINE)
"""The mark of a source for a template engine."""


def is_document_name(path: str) -> bool:
    """Return whether a file name has the ending of a document or an agents file."""
    return path.endswith(DOCUMENT_ENDINGS)


def find_files(
    folder: str, is_marked: Callable[[bytes], bool] = lambda text: False
) -> tuple[list[str], list[str]]:
    """Return the possible templates and the possible documents of a folder, sorted.

    Files are selected by name or content; only reading them decides.

    Args:
        folder: The folder.
        is_marked: Whether a text may be a document of another language.
    """
    templates: list[str] = []
    documents: list[str] = []
    for path in sorted(_files(folder)):
        if is_document_name(path):
            documents.append(path)
            continue
        try:
            text = contents(path)
        except DocumentNotFound:
            continue
        if len(text) > DEFAULT_LIMITS.max_bytes or _GENERATED.search(text):
            continue
        if (_TERRAFORM if path.endswith(".tf") else _TEMPLATE).search(text):
            templates.append(path)
        elif _is_document(text) or is_marked(text):
            documents.append(path)
    return templates, documents


def _is_document(text: bytes) -> bool:
    return b"StartAt" in text and b"States" in text and _DOCUMENT.search(text) is not None


def _files(folder: str) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in _SKIPPED]
        for name in names:
            if name.endswith(_ENDINGS) and "{{" not in here:
                yield os.path.join(here, name)


def read_values(path: str | os.PathLike[str]) -> dict[str, Json]:
    """Read values by name from a JSON or YAML file.

    The file is an object, the list of `ParameterKey` and `ParameterValue` of the AWS command line,
    or an object with either of them under `Parameters`. Raises as `read_value` does.
    """
    document = read_value(Path(path))
    value = document.value
    if type(value) is dict and type(value.get("Parameters")) in (dict, list):
        value = value["Parameters"]
    if type(value) is list and all(map(_is_pair, value)):
        return {pair["ParameterKey"]: pair["ParameterValue"] for pair in value}
    if type(value) is not dict:
        message = "the file must be an object of names and values"
        raise invalid(document.source, [Fault("READ-01", message, 0)])
    return value


def _is_pair(value: Json) -> bool:
    return (
        type(value) is dict and "ParameterValue" in value and type(value.get("ParameterKey")) is str
    )
