"""The agents of a blueprint as its language models and functions are given them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from asl.core.diagnostics import is_error
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.reader import METADATA
from asl.dialects.flujo.schema import check
from asl.dialects.foreign_documents import kept
from asl.engine.definitions import AgentDefinition, DefinedTool, ModelRequest, Unsupported

__all__ = ["definitions"]

_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "stop_sequences", "seed")
"""The members of `model_settings` that a model is given."""
_PROVIDERS: Final = {"google-gla": "google", "google-vertex": "google-cloud"}
"""Providers by their names in blueprints, where an agents file has another one."""
_BUILTINS: Final = "flujo.builtins."


def definitions(document: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """Return the agents of the blueprint that a document was read from, by their names.

    Args:
        document: Value of the document that runs.
    """
    about = kept(document, METADATA, "blueprint")
    if about is None:
        return {}
    found: dict[str, AgentDefinition] = {}
    imported = about.get("imports")
    others = imported.values() if type(imported) is dict else ()
    for value in (about["blueprint"], *others):
        if any(map(is_error, check(value))):
            continue  # metadata may be anything
        blueprint = Blueprint(value)
        for name, declared in blueprint.agents.items():
            found.setdefault(name, _declared(name, declared, f"/agents/{escape(name)}"))
        for step in blueprint.all_steps:
            for each in _used(step):
                found.setdefault(each.name, each)
            if step.agent in found:
                definition = found[step.agent]
                unsupported = (*definition.unsupported, *_of_step(step))
                found[step.agent] = replace(definition, unsupported=unsupported)
    return found


def _of_step(step: BlueprintStep) -> Iterator[Unsupported]:
    """Yield the settings of a step that the model of its agent is not given."""
    for key in ("temperature", "top_p", "top_k"):
        if step.config.get(key) is not None:
            message = f"the setting {key!r} of the step {step.name!r} is not passed to its model"
            hint = "write it into model_settings of the agent"
            yield Unsupported(step.at("config", key), message, hint)


def _declared(name: str, agent: Mapping[str, Any], pointer: str) -> AgentDefinition:
    written, schema = agent.get("system_prompt"), agent.get("output_schema")
    prompt = written if isinstance(written, str) else ""
    output = None if not schema or schema.get("type") == "string" else schema
    held = agent.get("model_settings") or {}
    settings = {key: held[key] for key in _SETTINGS if held.get(key) is not None}
    tools = tuple(_tools(agent.get("tools"), f"{pointer}/tools"))
    model = _model(agent.get("model"))
    names = tuple(each.name for each in tools)
    return AgentDefinition(
        name,
        pointer,
        prompt=prompt,
        model=model,
        settings=settings,
        output=output,
        tools=tools,
        unsupported=tuple(_unsupported(name, agent, pointer)),
        request=partial(_request, ModelRequest(None, prompt, model, settings, output, names)),
    )


def _model(name: Json) -> str | None:
    if not isinstance(name, str) or not name:
        return None
    provider, colon, own = name.partition(":")
    return f"{_PROVIDERS.get(provider, provider)}:{own}" if colon else name


def _tools(listed: Json, pointer: str) -> Iterator[DefinedTool]:
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        name = each.get("name", each.get("id")) if isinstance(each, dict) else each
        if isinstance(name, str):
            yield DefinedTool(name, f"{pointer}/{index}")


def _unsupported(name: str, agent: Mapping[str, Any], pointer: str) -> Iterator[Unsupported]:
    if isinstance(agent.get("system_prompt"), dict):
        message = f"the prompt of {name!r} is in another file, which is not read"
        hint = f"write it into the agents file: {name}: {{system: ...}}"
        yield Unsupported(f"{pointer}/system_prompt", message, hint)
    for key in agent.get("model_settings") or {}:
        if key not in _SETTINGS:
            message = f"the setting {key!r} of {name!r} is not passed to its model"
            hint = f"there are {', '.join(_SETTINGS)}"
            yield Unsupported(f"{pointer}/model_settings/{escape(key)}", message, hint)
    if agent.get("timeout"):
        message = f"'timeout' of {name!r} is not passed to its model"
        hint = "write it into the config of the steps, or into the agents file"
        yield Unsupported(f"{pointer}/timeout", message, hint)


def _used(step: BlueprintStep) -> Iterator[AgentDefinition]:
    """Yield the code and the skills that a step uses."""
    value, spec = step.value, step.spec
    key = "uses" if value.get("uses") else "agent"
    named = [(step.agent, step.at(key))]
    named += [(value.get(each), step.at(each)) for each in ("planner", "condition")]
    named += [(spec.get("exit_condition"), step.at("loop", "exit_condition"))]
    for name, pointer in named:
        if not isinstance(name, str) or name.startswith("imports.") or not name:
            continue
        code = name if ":" in name and not name.startswith(_BUILTINS) else None
        yield AgentDefinition(
            name,
            pointer,
            "agent",
            code=code,
            function_arguments=_arguments if code else None,
            request=_of_input,
        )


class FunctionContext(dict[str, Any]):
    """The context of a pipeline as its functions read it: fields are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _arguments(payload: Json) -> tuple[Json, Mapping[str, Json]]:
    """Return what the engine calls a function with: the input of the step."""
    given: dict[str, Any] = payload if isinstance(payload, dict) else {"input": payload}
    return given.get("input"), {
        "context": FunctionContext(given.get("context") or {}),
        **(given.get("params") or {}),
    }


def _of_input(payload: Json) -> ModelRequest:
    return _request(ModelRequest(None), payload)


def _request(asked: ModelRequest, payload: Json) -> ModelRequest:
    """Return what the model of an agent is asked: the input of its step."""
    given = payload if isinstance(payload, dict) else {"input": payload}
    return asked._replace(parameters={"prompt": given.get("input")})
