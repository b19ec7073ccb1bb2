"""The workflow under construction: its states, its actors, its settings, and what is lost."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.codemie.config import END, CodemieState
from asl.dialects.codemie.round_trip import kept
from asl.dialects.codemie.rules import RESERVED_IDS
from asl.dialects.missing_values import missing_value_loss
from asl.dialects.names import FreshNames, provider_of
from asl.dialects.transitions import find_cycle

__all__ = ["Workflow"]

_OF_MACHINE: Final = frozenset(
    ("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata")
)
_PARTS: Final = ("Parameters", "Module", "Imports")
LEAST_STEPS, MOST_STEPS = 50, 5000
"""Bounds of `recursion_limit`: what the platform takes it for, and the largest that it takes."""


class Workflow:
    """One workflow under construction.

    Args:
        value: Value of the document.
        tools: The agents that are tools; all others are assistants.
        prompts: The system prompts of agents, by their names.
        keys: The keys of the data of the document.
        answers: Those under which the text of an answer is.
    """

    def __init__(
        self,
        value: Mapping[str, Any],
        tools: frozenset[str],
        prompts: Mapping[str, str],
        keys: Iterable[str] = (),
        answers: Iterable[str] = (),
    ) -> None:
        self.value = value
        self.prompts = prompts
        self._losses: dict[Finding, None] = {}
        self.states: list[dict[str, Json]] = []
        self.ids = FreshNames(RESERVED_IDS, "_")
        self.assistants: dict[str, dict[str, Json]] = {}
        self.tools: dict[str, dict[str, Json]] = {}
        self.actor_ids = {True: FreshNames(mark="_"), False: FreshNames(mark="_")}
        """The names of tools, and of assistants."""
        self.nodes: dict[str, dict[str, Json]] = {}
        self.concurrency: list[int] = []
        self.about = kept(value)
        self.own_tools = tools
        self.keys = FreshNames(keys, "_")
        """The keys of the context."""
        self.answers = frozenset(answers)
        self.places: dict[str, str] = {}
        """Where the states stand in the document, by their names in the workflow."""

    def lost(
        self,
        code: str,
        message: str,
        pointer: str,
        instead: str | None = None,
        severity: Severity | None = None,
        *,
        key: bool = True,
    ) -> None:
        """Report what the workflow does not say."""
        found = Finding(code, message, pointer, instead, severity=severity, at_key=key)
        self._losses[found] = None

    @property
    def losses(self) -> tuple[Finding, ...]:
        """What the workflow does not say."""
        return tuple(self._losses)

    def begun(self) -> None:
        """Report what is next to the states of the document."""
        if self.about is not None:
            self.lost(
                "L-CHANGED",
                "the document has changed since it was read from a workflow",
                "/Metadata",
                "a new workflow is written",
            )
        for field in self.value:
            if field == "TimeoutSeconds":
                self.lost("L-TIMEOUT", "a workflow has no time limit", "/TimeoutSeconds")
            elif field in _PARTS:
                self.lost("L-INCLUDE", f"a workflow has no {field!r}", f"/{field}")
            elif field not in _OF_MACHINE:
                self.lost("L-BLOCK", f"a workflow has no {field!r}", f"/{field}")
        self._losses |= dict.fromkeys(missing_value_loss(self.value))

    def config(self) -> dict[str, Json]:
        """Return the workflow, now that its states are written."""
        if not self.states:
            self.tail("nothing", END)
        config: dict[str, Json] = {"enable_summarization_node": False}
        if type(self.value.get("Comment")) is str:
            config["description"] = self.value["Comment"]
        if self.concurrency and min(self.concurrency) > 0:
            config["max_concurrency"] = min(100, max(self.concurrency))
        if len(set(self.concurrency)) > 1:
            self.lost("L-CONCURRENCY", "a workflow has one limit for all iterations", "/States")
        states = self.reached()
        config["recursion_limit"] = self.steps()
        for key, actors in (
            ("assistants", self.assistants),
            ("tools", self.tools),
            ("custom_nodes", self.nodes),
        ):
            if actors:
                config[key] = list(actors.values())
        return {**config, "states": states}

    def steps(self) -> int:
        """Return how many states a run may enter: all of them, or as many as the platform takes."""
        states = self.value["States"]
        around = find_cycle(self.value["StartAt"], states)
        if around is None:
            return max(LEAST_STEPS, min(MOST_STEPS, len(self.states) + 1))
        message = f"a run that enters more than {MOST_STEPS} states fails"
        hint = "split the loop over several executions"
        self.lost("L-LIMIT", message, f"/States/{escape(around)}", hint)
        return MOST_STEPS

    def reached(self) -> list[dict[str, Json]]:
        """Return the states that can be reached; only catchers may have led to the others."""
        known: dict[str, Any] = {str(each["id"]): each for each in self.states}
        found: set[str] = set()
        todo = [str(self.states[0]["id"])]
        while todo:
            name = todo.pop()
            if name in known and name not in found:
                found.add(name)
                todo += [target for target, _ in CodemieState(known[name], "").targets()]
        for name, state in known.items():
            if name in found:
                continue
            if "custom_node_id" in state:
                del self.nodes[state["custom_node_id"]]
            if name in self.places:
                self.lost(
                    "L-DROPPED",
                    "no transition of the workflow leads to the state",
                    self.places[name],
                    "the state is left out",
                )
        return [each for name, each in known.items() if name in found]

    # States

    def id(self, name: str) -> str:
        """Return a name for a state that no other has and that the platform takes."""
        return self.ids.new(_slug(name) or "state")

    def node(self, name: str, config: dict[str, Json], to: dict[str, Json]) -> str:
        """Add a state that transforms; return its name."""
        id = self.id(name)
        self.states.append(self.transforming(id, config, to))
        return id

    def transforming(self, id: str, config: dict[str, Json], to: dict[str, Json]) -> dict[str, Any]:
        """Return a state that transforms; its node is defined with it."""
        self.nodes[id] = {"id": id, "custom_node_id": "transform_node", "config": config}
        return {"id": id, "custom_node_id": id, "next": to}

    def tail(self, name: str, target: str) -> str:
        """Add a state that does nothing; return its name."""
        return self.node(name, {"mappings": []}, {"state_id": target, "store_in_context": False})

    # Actors

    def actor(self, name: str, tool: bool, pointer: str) -> str:
        """Return the name of an actor, which is defined where it is met first."""
        actors = self.tools if tool else self.assistants
        if name not in actors:
            defined = self.defined("tools" if tool else "assistants", name)
            if defined is not None:
                self.actor_ids[tool].add(str(defined["id"]))
            actors[name] = defined or self.stub(name, tool, pointer)
        return str(actors[name]["id"])

    def stub(self, name: str, tool: bool, pointer: str) -> dict[str, Json]:
        """Return the definition of an actor from its name, and its prompt if there is one."""
        id = self.actor_ids[tool].new(_slug(provider_of(name)) or "actor")
        prompt = None if tool else self.prompts.get(name)
        known = "does not define" if prompt is None else "defines only the prompt of"
        self.lost(
            "L-ACTOR",
            f"the document {known} {name!r}",
            pointer,
            f"the {'tool' if tool else 'assistant'} {id!r} is a stub: complete it",
            key=False,
        )
        if tool:
            return {"id": id, "tool": name}
        return {"id": id, "system_prompt": prompt or f"You are {name}."}

    def defined(self, key: str, name: str) -> dict[str, Json] | None:
        """Return the definition of an actor that was kept from a workflow."""
        listed = self.about["config"].get(key, []) if self.about is not None else []
        return next((each for each in listed if each.get("id") == name), None)

    def is_tool(self, name: str) -> bool:
        """Whether an agent is a tool: the caller or the workflow that it came from says so."""
        return name in self.own_tools or self.defined("tools", name) is not None


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")
