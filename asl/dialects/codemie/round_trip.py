"""Restoration of the workflow that a document was read from.

The workflow is stored in the `Metadata`. It is used only if reading it again gives the same
document: a changed document is written anew.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from asl.core.diagnostics import Finding, InvalidDocument
from asl.core.document import Document
from asl.core.source import Source
from asl.core.values import Json
from asl.dialects import foreign_documents
from asl.dialects.codemie.config import Config
from asl.dialects.codemie.machine import build_machine
from asl.dialects.codemie.options import NAMES, CodemieOptions
from asl.dialects.codemie.reader import METADATA, read
from asl.dialects.codemie.tasks import INPUT
from asl.dialects.yaml_writer import to_yaml
from asl.states.machines import nested_machines

__all__ = ["kept", "lost", "owners", "restored", "workflow", "wrapped"]

_TEXT = re.compile(
    rf"\{{% \$codemie_text\({re.escape(INPUT)}, "
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:, \{.*\})?\) %\}""",
    re.DOTALL,
)
_SETTINGS = (
    "enable_summarization_node",
    "messages_limit_before_summarization",
    "tokens_limit_before_summarization",
    "verbose",
    "type",
    "max_iteration_key_output_limit",
)


def kept(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a document says of the workflow that it was, None if nothing."""
    return foreign_documents.kept(value, METADATA, "config")


def restored(value: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the workflow that a document was read from, None if it is another one by now."""
    about = kept(value)
    if about is None:
        return None
    texts = dict(_texts(value))
    config = dict(about["config"])
    if type(config.get("states")) is not list:
        return None
    config["states"] = [_with_task(state, texts) for state in config["states"]]
    whole = wrapped(config, about)
    try:
        again = read(Document(whole, Source()), options=_options(about))
    except InvalidDocument:
        return None
    return whole if foreign_documents.same(again.value, value) else None


def workflow(value: Mapping[str, Any]) -> Config:
    """Return the workflow that a document was read from, which has it in its `Metadata`."""
    about = value["Metadata"][METADATA]
    texts = dict(_texts(value))
    states = [_with_task(each, texts) for each in about["config"]["states"]]
    return Config({**about["config"], "states": states}, _base(about))


def _base(about: Mapping[str, Any]) -> str:
    """Return the JSON Pointer of the workflow in its wrapping."""
    return "/execution_config" if about.get("form") == "wrapped" else ""


def owners(value: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the states of the workflow to which those of a document belong."""
    return build_machine(workflow(value), _options(value["Metadata"][METADATA])).owners


def _options(about: Mapping[str, Any]) -> CodemieOptions:
    """Return how the workflow was read."""
    told = about.get("reading")
    known = told.items() if type(told) is dict else ()
    return CodemieOptions(
        **{name: each for name, each in known if name in NAMES and type(each) is bool}
    )


def _with_task(state: Any, texts: Mapping[str, str]) -> Json:
    if type(state) is not dict or "task" in state or not texts.get(str(state.get("id"))):
        return state
    found: dict[str, Json] = {}
    for key, each in state.items():
        if key == "next":
            found["task"] = texts[state["id"]]
        found[key] = each
    return found


def _texts(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of Tasks by their names."""
    for name, state in machine["States"].items():
        arguments = state.get("Arguments")
        task = arguments.get("task") if type(arguments) is dict else None
        if type(task) is str:
            yield name, _said(task)
        for _, inner in nested_machines(state):
            yield from _texts(inner)


def _said(text: str) -> str:
    """Return the text of an expression that the reader has written."""
    if not (text.startswith("{% ") and text.endswith(" %}")):
        return text
    match = _TEXT.fullmatch(text)
    inner = text[3:-3] if match is None else match[1]
    if inner[:1] == "'":
        inner = '"' + inner[1:-1].replace('"', '\\"') + '"'
    try:
        found = json.loads(inner)
    except ValueError:
        return text
    return found if type(found) is str else text


def wrapped(config: dict[str, Json], about: Mapping[str, Any]) -> dict[str, Json]:
    """Return a workflow in the form that it had."""
    if about.get("form") == "wrapped":
        return {**about.get("about", {}), "execution_config": config}
    if about.get("form") == "api":
        return {**about.get("about", {}), "yaml_config": to_yaml(config)}
    return config


def lost(document: Document) -> Iterator[Finding]:
    """Yield what a document that was read from a workflow does not say, or says otherwise."""
    about = kept(document.value)
    if about is None:
        return
    base = _base(about)
    config = about["config"]
    for key in _SETTINGS:
        if key in config:
            yield Finding(
                "L-SETTING",
                f"{key!r} has no effect on a run of the document",
                f"{base}/{key}",
                "it is stored under 'Metadata'",
                at_key=True,
            )
    for key in ("assistants", "tools"):
        if config.get(key):
            yield Finding(
                "L-ACTOR",
                f"a document names its agents, without the definitions of the {key}",
                f"{base}/{key}",
                "the definitions are stored under 'Metadata'; bind agents by their names",
                at_key=True,
            )
