"""Reader of workflows: a document of Agent State Language with its source positions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from asl.core.diagnostics import Finding, is_error, raise_for_errors
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json, type_name
from asl.dialects.codemie import rules
from asl.dialects.codemie.config import Config
from asl.dialects.codemie.machine import CodemieMachine, build_machine
from asl.dialects.codemie.options import DEFAULT, CodemieOptions
from asl.dialects.foreign_documents import as_platform, document, reinterpreted_scalars

__all__ = ["METADATA", "config_of", "read"]

METADATA: Final = "CodeMie"
"""The member of the document's `Metadata` that holds what the language cannot say."""
FAULT: Final = "CM-YAML"


def read(
    what: Source | Document, limits: Limits = DEFAULT_LIMITS, options: CodemieOptions = DEFAULT
) -> Document:
    """Read a workflow as a document; raises InvalidDocument with all that is wrong with it."""
    foreign = what if isinstance(what, Document) else as_platform(what, limits, FAULT)
    foreign = replace(foreign, dialect="codemie")
    _insist_on_object(foreign)
    foreign, config = config_of(foreign, limits)
    findings = [*reinterpreted_scalars(foreign, "CM-YAML-SCALAR"), *_mode(config)]
    if not findings or all(each.code != "CM-AUTONOMOUS" for each in findings):
        findings += rules.of_shape(config, options)
        faulty = [each.pointer for each in findings if is_error(each)]
        findings += rules.of_states(config, faulty)
    raise_for_errors(foreign, findings)
    made = build_machine(config, options)
    findings += made.findings
    findings += _unreachable(config, made)
    raise_for_errors(foreign, findings)
    return document(foreign, _document(config, made, options), made.origins, findings)


def _insist_on_object(foreign: Document) -> None:
    if foreign.value is None:
        raise_for_errors(foreign, [Finding("CM-NO-STATES", "the document is empty", "")])
    if type(foreign.value) is not dict:
        shown = type_name(foreign.value)
        raise_for_errors(foreign, [Finding(FAULT, f"a workflow is an object, not {shown}", "")])


def config_of(foreign: Document, limits: Limits = DEFAULT_LIMITS) -> tuple[Document, Config]:
    """Unwrap a workflow: out of `execution_config`, or out of the text in `yaml_config`."""
    value: dict[str, Any] = foreign.value
    if type(value.get("execution_config")) is dict:
        about = {key: each for key, each in value.items() if key != "execution_config"}
        return foreign, Config(value["execution_config"], "/execution_config", "wrapped", about)
    if type(value.get("yaml_config")) is str:
        about = {key: each for key, each in value.items() if key != "yaml_config"}
        name = f"{foreign.source.name or '<document>'} (yaml_config)"
        inner = as_platform(Source(name, value["yaml_config"], "yaml"), limits, FAULT)
        _insist_on_object(inner)
        return replace(inner, dialect="codemie"), Config(inner.value, "", "api", about)
    return foreign, Config(value, "")


def _mode(config: Config) -> Iterator[Finding]:
    for about, base in ((config.about, ""), (config.value, config.base)):
        if about is not None and about.get("mode") == "Autonomous":
            yield Finding(
                "CM-AUTONOMOUS",
                "an autonomous workflow has no states: a model decides what runs",
                f"{base}/mode" if config.form != "api" or about is config.value else "",
                "list the states, and set mode: Sequential",
            )
            return


# --------------------------------------------------------------------------------------------
# The document


def _unreachable(config: Config, made: CodemieMachine) -> Iterator[Finding]:
    for name, state in config.states.items():
        if name not in made.reached:
            yield Finding(
                "CM-UNREACHABLE",
                f"no transition leads to {name!r}, so it is left out",
                f"{state.pointer}/id",
            )


def _document(config: Config, made: CodemieMachine, options: CodemieOptions) -> dict[str, Json]:
    about = config.about or {}
    comment = about.get("description", config.value.get("description"))
    value: dict[str, Json] = {} if type(comment) is not str else {"Comment": comment}
    value |= {"QueryLanguage": "JSONata", **made.machine}
    kept: dict[str, Json] = {"form": config.form}
    if about:
        kept["about"] = about
    if options.said():
        kept["reading"] = options.said()
    kept["config"] = {
        key: [_kept(state, made) for state in each] if key == "states" else each
        for key, each in config.value.items()
    }
    return {**value, "Metadata": {METADATA: kept}}


def _kept(state: Mapping[str, Json], made: CodemieMachine) -> Json:
    """Return the stored part of a state: all but the text of the task, which the machine has."""
    if state["id"] not in made.reached or "assistant_id" not in state or len(state["id"]) > 70:
        return state
    return {key: value for key, value in state.items() if key != "task" or value == ""}
