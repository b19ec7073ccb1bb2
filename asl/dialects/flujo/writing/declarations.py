"""The agents of a blueprint, from what a document says of them."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.values import Json
from asl.engine.definitions import AgentDefinition

__all__ = ["Declarations"]

MODEL: Final = "openai:gpt-4o"
"""The model of an agent whose document names none."""
_PROVIDERS: Final = {"google": "google-gla", "google-cloud": "google-vertex"}
"""Providers by their names in agents files, where a blueprint has another one."""


class Declarations(NamedTuple):
    """What is known of the agents of a document.

    Attributes:
        prompts: System prompts by the names of agents.
        agents: Definitions by the names of agents.
    """

    prompts: Mapping[str, str]
    agents: Mapping[str, AgentDefinition]

    def of(self, names: Mapping[str, str]) -> dict[str, Json]:
        """Return the declarations of agents, by their names in the blueprint.

        Args:
            names: Names in the blueprint, by those in the document.
        """
        return {own: self._declared(name, own) for name, own in names.items()}

    def _declared(self, name: str, own: str) -> dict[str, Json]:
        found = self.agents.get(name)
        prompt = self.prompts.get(name, "") or (found.prompt if found is not None else "")
        made: dict[str, Json] = {
            "model": MODEL,
            "system_prompt": prompt or own,
            "output_schema": {},
        }
        if found is None:
            return made
        if found.model:
            made["model"] = _model(found.model)
        made["output_schema"] = dict(found.output) if found.output else {"type": "string"}
        if found.settings:
            made["model_settings"] = dict(found.settings)
        return made

    def lost(self, names: Mapping[str, str]) -> Iterator[str]:
        """Yield what is unknown of agents, and what their declarations do not say."""
        unknown = [name for name in names if self._is_stub(name)]
        if unknown:
            yield "agents are stubs: the document does not define them" + (
                ", except for their prompts" if self.prompts.keys() >= {*unknown} else ""
            )
        for name, own in names.items():
            tools = self.agents[name].tools if name in self.agents else ()
            if tools:
                listed = ", ".join(each.name for each in tools)
                yield f"the tools of {own!r} are not declared: {listed}"

    def _is_stub(self, name: str) -> bool:
        found = self.agents.get(name)
        return found is None or not found.model


def _model(name: str) -> str:
    provider, colon, own = name.partition(":")
    return f"{_PROVIDERS.get(provider, provider)}:{own}" if colon else name
