"""A workflow in its three forms, and its states as the reader sees them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.foreign_documents import Part

__all__ = ["ACTORS", "END", "FORMS", "CodemieState", "Config"]

END: Final = "end"
"""The target that ends a run."""
ACTORS: Final[Mapping[str, str]] = {
    "assistant_id": "assistants",
    "tool_id": "tools",
    "custom_node_id": "custom_nodes",
}
"""The keys that say what a state runs, and the lists in which that is defined."""
FORMS: Final = ("state_id", "state_ids", "condition", "switch")
"""The keys of `next` that say where to go."""


class CodemieState(Part):
    """One state."""

    @property
    def next(self) -> Mapping[str, Any]:
        """Where it goes, and what becomes of its output."""
        found: Mapping[str, Any] = self.value["next"]
        return found

    @property
    def gated(self) -> bool:
        """Whether people are asked before it runs."""
        return bool(
            self.value.get("interrupt_before") or self.value.get("wait_for_user_confirmation")
        )

    @property
    def iter_key(self) -> str | None:
        """Under which key its output has items, None where it does not iterate."""
        return self.next.get("iter_key") if self.next.get("state_id") != END else None

    @property
    def finishes(self) -> bool:
        """Whether it is marked as the last one of an iteration."""
        return bool(self.value.get("finish_iteration"))

    @property
    def recorded(self) -> bool:
        """Whether its output becomes a message of the conversation."""
        to = self.next
        return to.get("include_in_llm_history", to.get("keep_history", True)) is not False

    @property
    def actor(self) -> tuple[str, str]:
        """The key that says what it runs, and the name there."""
        return next((key, self.value[key]) for key in ACTORS if key in self.value)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the states it may go to, each with its place below `next`."""
        to = self.next
        if "state_id" in to:
            yield to["state_id"], "state_id"
        for index, each in enumerate(to.get("state_ids", ())):
            yield each, f"state_ids/{index}"
        if "condition" in to:
            yield to["condition"]["then"], "condition/then"
            yield to["condition"]["otherwise"], "condition/otherwise"
        if "switch" in to:
            for index, case in enumerate(to["switch"]["cases"]):
                yield case["state_id"], f"switch/cases/{index}/state_id"
            yield to["switch"]["default"], "switch/default"

    def conditions(self) -> Iterator[tuple[str, str, str]]:
        """Yield its conditions in order: the text, where it leads, its place below `next`."""
        to = self.next
        if "condition" in to:
            yield to["condition"]["expression"], to["condition"]["then"], "condition/expression"
        for index, case in enumerate(to.get("switch", {}).get("cases", ())):
            yield case["condition"], case["state_id"], f"switch/cases/{index}/condition"

    @property
    def otherwise(self) -> str:
        """Where it goes when no condition holds."""
        to = self.next
        target: str = to["condition"]["otherwise"] if "condition" in to else to["switch"]["default"]
        return target


@dataclass(frozen=True)
class Config:
    """A workflow without its wrapping; `base` is its JSON Pointer."""

    value: Mapping[str, Any]
    base: str
    form: str = "bare"
    about: Mapping[str, Json] | None = None
    """The keys of the wrapping."""

    @cached_property
    def states(self) -> dict[str, CodemieState]:
        """The states by their names, in order."""
        return {
            state["id"]: CodemieState(state, f"{self.base}/states/{index}")
            for index, state in enumerate(self.value["states"])
        }

    @property
    def start(self) -> CodemieState:
        """The first state."""
        return next(iter(self.states.values()))

    @cached_property
    def talks(self) -> bool:
        """Whether there are messages: a workflow with an assistant keeps a history."""
        return any("assistant_id" in state.value for state in self.states.values())

    def actor(self, state: CodemieState) -> Mapping[str, Any]:
        """Return the definition of what a state runs."""
        key, name = state.actor
        listed: list[dict[str, Any]] = self.value.get(ACTORS[key], [])
        return next(each for each in listed if each["id"] == name)

    @property
    def prompts(self) -> dict[str, str]:
        """The system prompts of assistants, by their names."""
        listed: list[dict[str, Any]] = self.value.get(ACTORS["assistant_id"], [])
        return {each["id"]: each["system_prompt"] for each in listed if "system_prompt" in each}

    def policy(self, state: CodemieState) -> dict[str, float]:
        """Return how often a state is tried: its own policy over the workflow's over defaults."""
        own = state.value.get("retry_policy", {})
        return {**_DEFAULTS, **self.value.get("retry_policy", {}), **own}


_DEFAULTS: Final = {
    "max_attempts": 10,
    "initial_interval": 0.5,
    "backoff_factor": 2.0,
    "max_interval": 128.0,
}
