"""From a document of the state language to a workflow, and what that cannot say.

The dialect has less control and no routes for errors. What it has no words for becomes the nearest
that it has, or nothing, and is reported either way.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, escape
from asl.core.document import Document
from asl.core.values import Json, compact
from asl.dialects.base import Written
from asl.dialects.codemie.choices import Reads, expression
from asl.dialects.codemie.config import END, State
from asl.dialects.codemie.restoring import kept, restored
from asl.dialects.codemie.rules import RESERVED_IDS
from asl.dialects.yaml_writer import written

__all__ = ["write"]

ITEMS: Final = "items"
"""The key under which a Map's items are handed to its first state."""
_PATH = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])+)")
_QUERY = re.compile(r"\{%\s*\$states\.input((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])+)\s*%\}")
_FORMAT = re.compile(r"States\.Format\('((?:[^'\\{}]|\{\})*)'((?:,\s*\$(?:\.[A-Za-z_]\w*)+)*)\)")
_SHAPING = {
    "InputPath": "$",
    "OutputPath": "$",
    "ResultSelector": None,
    "Output": None,
    "Assign": None,
}
"""Fields that shape data -> the value without effect."""
_MAP_FIELDS = frozenset(
    (
        "ItemReader",
        "ItemBatcher",
        "ResultWriter",
        "ToleratedFailureCount",
        "ToleratedFailurePercentage",
        "ToleratedFailureCountPath",
        "ToleratedFailurePercentagePath",
    )
)
_APPROVAL_FIELDS = frozenset(
    (
        "Timeout",
        "OnTimeout",
        "Escalation",
        "Editable",
        "Policy",
        "RequiredApprovers",
        "Notifications",
        "ItemsPath",
        "BatchMode",
    )
)
_LIMITS = frozenset(
    ("TimeoutSeconds", "HeartbeatSeconds", "TimeoutSecondsPath", "HeartbeatSecondsPath")
)
_OF_MACHINE = frozenset(("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata"))
_PARTS = ("Parameters", "Module", "Imports")
_OF_ALL = frozenset(("Type", "Comment", "QueryLanguage", "Next", "End", "Catch"))
_SAID: Final[Mapping[str, frozenset[str]]] = {
    "Task": frozenset(("Agent", "Resource", "Parameters", "Arguments", "ResultPath", "Retry")),
    "Choice": frozenset(("Choices", "Default")),
    "Pass": frozenset(("Result", "Parameters", "ResultPath")),
    "Map": frozenset(
        ("ItemProcessor", "Iterator", "ItemsPath", "Items", "MaxConcurrency", "ResultPath")
    ),
    "Parallel": frozenset(("Branches", "ResultPath")),
    "Approval": frozenset(("Prompt", "Prompt.$", "Options", "Choices", "Default", "ResultPath")),
    "Fail": frozenset(("Error", "Cause")),
    "Succeed": frozenset(),
}
"""The fields of each type that its writer deals with; for others the whole state is reported."""
_STANDS_IN = {
    "Debate": "L-DEBATE",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}


def write(document: Document, tools: Collection[str] = ()) -> Written:
    """Write a document as a workflow; one that was read from a workflow becomes that again.

    The agents of *tools* are tools there, all others assistants.
    """
    found = restored(document.value)
    if found is not None:
        return Written(found, written(found))
    writer = _Writer(document.whole, frozenset(tools))
    config = writer.config()
    return Written(config, written(config), tuple(writer.losses))


class _Writer:
    """One workflow under construction."""

    def __init__(self, value: Mapping[str, Any], own_tools: frozenset[str]) -> None:
        self.value = value
        self.own_tools = own_tools
        self.losses: list[Finding] = []
        self.states: list[dict[str, Json]] = []
        self.ids: set[str] = set()
        self.assistants: dict[str, dict[str, Json]] = {}
        self.tools: dict[str, dict[str, Json]] = {}
        self.nodes: dict[str, dict[str, Json]] = {}
        self.concurrency: list[int] = []
        self.about = kept(value)
        self.places: dict[str, str] = {}
        """Where the states stand in the document, by their names in the workflow."""

    def lost(
        self, code: str, message: str, pointer: str, instead: str | None = None, key: bool = True
    ) -> None:
        self.losses.append(Finding(code, message, pointer, instead, at_key=key))

    def config(self) -> dict[str, Json]:
        value = self.value
        if self.about is not None:
            self.lost(
                "L-CHANGED",
                "the document is not the one that was read from a workflow any more",
                "/Metadata",
                "the workflow is written anew",
            )
        for field in value:
            if field not in _OF_MACHINE and field not in ("TimeoutSeconds", *_PARTS):
                self.lost("L-BLOCK", f"a workflow has no {field!r}", f"/{field}")
        if "TimeoutSeconds" in value:
            self.lost("L-TIMEOUT", "a workflow has no time limit", "/TimeoutSeconds")
        for part in _PARTS:
            if part in value:
                self.lost("L-INCLUDE", f"a workflow has no {part!r}", f"/{part}")
        if type(value.get("States")) is dict:
            _Machine(self, value, "", END).written()
        if not self.states:
            self.tail("nothing", END)
        config: dict[str, Json] = {"enable_summarization_node": False}
        if type(value.get("Comment")) is str:
            config["description"] = value["Comment"]
        if self.concurrency and min(self.concurrency) > 0:
            config["max_concurrency"] = min(100, max(self.concurrency))
        if self.concurrency and len(set(self.concurrency)) > 1:
            self.lost("L-CONCURRENCY", "a workflow has one limit for all iterations", "/States")
        states = self.reached()
        config["recursion_limit"] = max(50, min(5000, len(self.states) + 1))
        for key, actors in (
            ("assistants", self.assistants),
            ("tools", self.tools),
            ("custom_nodes", self.nodes),
        ):
            if actors:
                config[key] = list(actors.values())
        return {**config, "states": states}

    def reached(self) -> list[dict[str, Json]]:
        """Return the states that can be reached; only catchers may have led to the others."""
        known: dict[str, Any] = {str(each["id"]): each for each in self.states}
        found: set[str] = set()
        todo = [str(self.states[0]["id"])]
        while todo:
            name = todo.pop()
            if name in known and name not in found:
                found.add(name)
                todo += [target for target, _ in State(known[name], "").targets()]
        for name, state in known.items():
            if name in found:
                continue
            if "custom_node_id" in state:
                del self.nodes[state["custom_node_id"]]
            if name in self.places:
                self.lost(
                    "L-DROPPED",
                    "no transition of the workflow leads here any more",
                    self.places[name],
                    "the state is left out",
                )
        return [each for name, each in known.items() if name in found]

    def tail(self, name: str, target: str) -> str:
        """Add a state that does nothing; return its name."""
        return self.node(name, {"mappings": []}, {"state_id": target, "store_in_context": False})

    def node(self, name: str, config: dict[str, Json], to: dict[str, Json]) -> str:
        """Add a state that transforms; return its name."""
        id = self.id(name)
        self.nodes[id] = {"id": id, "custom_node_id": "transform_node", "config": config}
        self.states.append({"id": id, "custom_node_id": id, "next": to})
        return id

    def id(self, name: str) -> str:
        """Return a name for a state that no other has and that the platform takes."""
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "state"
        found, number = base, 1
        while found in self.ids or found in RESERVED_IDS:
            number += 1
            found = f"{base}_{number}"
        self.ids.add(found)
        return found

    def actor(self, name: str, tool: bool, pointer: str) -> str:
        """Return the name of an actor, which is defined where it is met first."""
        actors = self.tools if tool else self.assistants
        if name not in actors:
            known = {each["id"] for each in actors.values()}
            id = base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "actor"
            while id in known:
                id = f"{base}_{len(known)}"
            actors[name] = (
                {"id": id, "tool": name}
                if tool
                else {"id": id, "system_prompt": f"You are {name}."}
            )
            defined = self.defined("tools" if tool else "assistants", name)
            if defined is not None:
                actors[name] = defined
            else:
                self.lost(
                    "L-ACTOR",
                    f"nothing says what {name!r} is made of",
                    pointer,
                    f"the {'tool' if tool else 'assistant'} {id!r} is a stub: complete it",
                    key=False,
                )
        return str(actors[name]["id"])

    def defined(self, key: str, name: str) -> dict[str, Json] | None:
        """Return the definition of an actor that was kept from a workflow."""
        listed = self.about["config"].get(key, []) if self.about is not None else []
        return next((each for each in listed if each.get("id") == name), None)

    def is_tool(self, name: str) -> bool:
        return name in self.own_tools or self.defined("tools", name) is not None


class _Machine:
    """The states of one machine; where it ends, control goes to `after`."""

    def __init__(
        self,
        writer: _Writer,
        machine: Mapping[str, Any],
        pointer: str,
        after: str,
        *,
        item: bool = False,
        last: Mapping[str, Json] | None = None,
    ) -> None:
        self.writer = writer
        self.machine = machine
        self.pointer = pointer
        self.after = after
        self.item = item
        self.last: Mapping[str, Json] = last or {}
        """What goes into `next` of each state that ends the machine."""
        self.states: Mapping[str, Any] = machine["States"]
        self.ids: dict[str, str] = {}
        self.gates: dict[str, tuple[str, str]] = {}
        """Prompts of the gates in front of states, and where they are asked."""
        self.marked: set[str] = set()

    def written(self) -> str:
        """Write the machine; return the name of its first state."""
        start = self.machine["StartAt"]
        for name, state in self.states.items():
            if state.get("Type") == "Approval":
                self.gate(name, state)
        first = self.target(start)
        if first in (END, self.after):
            return self.writer.tail(f"{start}_pass", first)
        order = [*self.states]
        entry = next((name for name in order if self.ids.get(name) == first), start)
        order.remove(entry)
        for name in [entry, *order]:
            self.state(name, self.states[name])
        return first

    def at(self, name: str, *steps: str | int) -> str:
        way = "".join(f"/{escape(str(step))}" for step in steps)
        return f"{self.pointer}/States/{escape(name)}{way}"

    def lost(
        self, code: str, message: str, pointer: str, instead: str | None = None, key: bool = True
    ) -> None:
        self.writer.lost(code, message, pointer, instead, key)

    # Names and transitions

    def id(self, name: str) -> str:
        if name not in self.ids:
            self.ids[name] = id = self.writer.id(name)
            self.writer.places[id] = self.at(name)
            if id != name:
                self.lost(
                    "L-NAME", f"{name!r} is no name of a state there", self.at(name), f"{id!r}"
                )
        return self.ids[name]

    def target(self, name: str) -> str:
        """Return where a transition to a state leads; states without a counterpart are passed."""
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            state = self.states.get(name)
            if state is None or state.get("Type") == "Succeed":
                return self.after
            if not self.passes(state):
                return self.id(name)
            following = self.approved(state) if state["Type"] == "Approval" else state.get("Next")
            if following is None:
                return self.after
            name = following
        return self.after

    def passes(self, state: Mapping[str, Any]) -> bool:
        """Whether a state does nothing that a workflow could say."""
        kind = state.get("Type")
        if kind == "Pass":
            return not any(key in state for key in ("Result", "Parameters", "Output"))
        return kind in ("Wait", "Approval", "Checkpoint")

    def next(self, state: Mapping[str, Any]) -> dict[str, Json]:
        if "Next" in state and self.target(state["Next"]) != self.after:
            return {"state_id": self.target(state["Next"])}
        return {"state_id": self.after, **self.last}

    # States

    def state(self, name: str, state: Mapping[str, Any]) -> None:
        kind = str(state.get("Type"))
        self.shared(name, state, kind)
        handle = _KINDS.get(kind)
        if handle is not None:
            handle(self, name, state)

    def shared(self, name: str, state: Mapping[str, Any], kind: str) -> None:
        """Report every field that no state of a workflow has."""
        if kind not in _SAID:
            return  # all of it is reported by what stands in
        for field in state:
            where = self.at(name, field)
            if field in _OF_ALL or field in _SAID[kind]:
                continue
            if field in _SHAPING:
                if state[field] != _SHAPING[field] and not (kind == "Pass" and field == "Output"):
                    message = f"no state of a workflow has {field!r}"
                    self.lost("L-TRANSFORM", message, where, "it is left out")
            elif field in _LIMITS:
                self.lost("L-TIMEOUT", "no state has a time limit", where)
            elif kind == "Map" and field in _MAP_FIELDS:
                self.lost("L-MAP", f"an iteration has no {field!r}", where)
            elif kind == "Approval" and field in _APPROVAL_FIELDS:
                self.lost("L-APPROVAL", f"a gate has no {field!r}", where)
            elif field in ("ItemSelector", "Parameters", "Arguments"):
                self.lost("L-SELECTOR", "workers and branches get the context", where)
            else:
                self.lost("L-BLOCK", f"no state has {field.removesuffix('.$')!r}", where)
        catchers = state.get("Catch")
        if type(catchers) is list and catchers:
            targets = [self.states.get(str(each.get("Next")), {}) for each in catchers]
            failing = all(each.get("Type") == "Fail" for each in targets)
            code = "L-CATCH-FAIL" if failing else "L-CATCH"
            self.lost(code, "a failure fails the whole run there", self.at(name, "Catch"))

    def add(self, name: str, state: dict[str, Json]) -> None:
        """Add a state that runs an actor, behind its gate if it has one."""
        if name in self.gates:
            prompt, pointer = self.gates[name]
            state["interrupt_before"] = True
            if prompt:
                state["task"] = f"{prompt}\n\n{state.get('task', '')}".rstrip("\n")
                self.lost(
                    "L-PROMPT",
                    "a gate shows the task of its state",
                    pointer,
                    "the prompt is part of it",
                )
        to = state.pop("next")
        self.writer.states.append({**state, "next": to})

    def task(self, name: str, state: Mapping[str, Any]) -> None:
        agent = state.get("Agent", state.get("Resource"))
        tool = "Agent" not in state or self.writer.is_tool(str(agent))
        if not tool and self.writer.defined("custom_nodes", str(agent)) is not None:
            tool = False
        field = "Agent" if "Agent" in state else "Resource"
        actor = self.writer.actor(str(agent), tool, self.at(name, field))
        made: dict[str, Json] = {"id": self.id(name), "tool_id" if tool else "assistant_id": actor}
        given = state.get("Arguments", state.get("Parameters"))
        where = self.at(name, "Arguments" if "Arguments" in state else "Parameters")
        if tool:
            if type(given) is dict:
                made["tool_args"] = self.arguments(given, where)
            elif given is not None:
                self.lost(
                    "L-PARAMETERS", "a tool takes an object", where, "the tool gets the context"
                )
        else:
            made["task"] = self.instruction(name, state, given, where)
            made["resolve_dynamic_values_in_prompt"] = True
        made["retry_policy"] = self.policy(name, state)
        made["next"] = {**self.flags(name, state), **self.next(state)}
        self.add(name, made)

    def instruction(self, name: str, state: Mapping[str, Any], given: Json, where: str) -> str:
        lines: list[str] = []
        if type(given) is dict:
            for key, each in given.items():
                plain = key.removesuffix(".$")
                text = self.filled(each, f"{where}/{escape(key)}", dynamic=key.endswith(".$"))
                if plain in ("task", "prompt", "instruction"):
                    lines.insert(0, text)
                else:
                    lines.append(f"{plain}: {text}")
        elif given is not None:
            lines.append(self.filled(given, where, dynamic=False))
        if not lines:
            self.lost(
                "L-PARAMETERS",
                "an assistant gets a text, not the data",
                self.at(name),
                "the text is the comment, or the name of the state",
            )
            lines.append(str(state.get("Comment") or name))
        return "\n".join(lines)

    def arguments(self, given: Mapping[str, Json], where: str) -> dict[str, Json]:
        made: dict[str, Json] = {}
        for key, each in given.items():
            place = f"{where}/{escape(key)}"
            if key.endswith(".$") or type(each) is str:
                made[key.removesuffix(".$")] = self.filled(each, place, dynamic=key.endswith(".$"))
            elif type(each) is dict:
                made[key] = self.arguments(each, place)
            else:
                made[key] = each
        return made

    def filled(self, value: Json, pointer: str, *, dynamic: bool) -> str:
        """Return a value as a text with placeholders."""
        if type(value) is not str:
            if dynamic or "$" in compact(value):
                self.lost(
                    "L-PARAMETERS",
                    "only texts and paths are filled in",
                    pointer,
                    "it is text",
                    key=False,
                )
            return compact(value)
        if value.startswith("{%") and value.endswith("%}"):
            match = _QUERY.fullmatch(value)
            if match is not None:
                return f"{{{{{match[1][1:]}}}}}"
            self.lost(
                "L-JSONATA", "a workflow has no JSONata", pointer, "the text is left", key=False
            )
            return value
        if not dynamic:
            return value
        if match := _PATH.fullmatch(value):
            return f"{{{{{match[1].lstrip('.')}}}}}"
        if match := _FORMAT.fullmatch(value):
            paths = re.findall(r"\$\.([A-Za-z_][\w.]*)", match[2])
            parts = match[1].split("{}")
            if len(parts) == len(paths) + 1:
                filled = [f"{part}{{{{{path}}}}}" for part, path in zip(parts, paths, strict=False)]
                return "".join(filled) + parts[-1]
        if value.startswith("$$.Map.Item.Value") and self.item:
            return "{{task" + value.removeprefix("$$.Map.Item.Value") + "}}"
        if value == "$" and self.item:
            return "{{task}}"
        code = (
            "L-CONTEXT" if value.startswith("$$") else "L-INTRINSIC" if "(" in value else "L-PATH"
        )
        self.lost(
            code, f"no placeholder says {value!r}"[:200], pointer, "the text is left", key=False
        )
        return value

    def flags(self, name: str, state: Mapping[str, Any]) -> dict[str, Json]:
        """Return where the result goes."""
        where = self.at(name, "ResultPath")
        if "ResultPath" not in state or state["ResultPath"] == "$":
            if "Next" in state:
                pointer = where if "ResultPath" in state else self.at(name)
                self.lost("L-REPLACE", "the platform keeps the context from before", pointer)
            return {"clear_context_store": "keep_current"}
        path = state["ResultPath"]
        if path is None:
            return {"store_in_context": False}
        keys = re.findall(r"[A-Za-z_]\w*", str(path))
        if not keys:
            self.lost("L-DEEP", f"no key of the context is {path!r}", where, "nothing is written")
            return {"store_in_context": False}
        if len(keys) > 1 or "[" in str(path):
            self.lost(
                "L-DEEP", "results are written to keys of the context", where, f"to {keys[0]!r}"
            )
        self.lost("L-ROOTMERGE", "keys of a result are written to the context as well", where)
        return {"output_key": keys[0]}

    def policy(self, name: str, state: Mapping[str, Any]) -> dict[str, Json]:
        retriers = [
            each
            for each in state.get("Retry", ())
            if type(each) is dict and _number(each, "MaxAttempts", 3) != 0
        ]
        if not retriers:
            if state.get("Retry"):
                self.lost("L-RETRY-NAMES", "a policy has no error names", self.at(name, "Retry"))
            return {"max_attempts": 1}
        widest = max(retriers, key=lambda each: _number(each, "MaxAttempts", 3))
        names = {error for each in state["Retry"] for error in each.get("ErrorEquals", ())}
        if len(state["Retry"]) > 1 or not names & {"States.ALL", "States.TaskFailed"}:
            self.lost(
                "L-RETRY-NAMES",
                "a policy has no error names",
                self.at(name, "Retry"),
                "one policy for all errors, with the most attempts",
            )
        made: dict[str, Json] = {
            "max_attempts": min(100, int(_number(widest, "MaxAttempts", 3)) + 1),
            "initial_interval": _number(widest, "IntervalSeconds", 1),
            "backoff_factor": min(10, max(1, _number(widest, "BackoffRate", 2.0))),
        }
        longest = "MaxDelaySeconds" if "MaxDelaySeconds" in widest else "MaxIntervalSeconds"
        if longest in widest:
            made["max_interval"] = _number(widest, longest, 128)
        return made

    def choice(self, name: str, state: Mapping[str, Any]) -> None:
        reads = Reads()
        rules = []
        for index, rule in enumerate(state.get("Choices", ())):
            where = self.at(name, "Choices", index)
            text = expression(rule, where, reads, self.lost)
            rules.append({"condition": text, "state_id": self.goto(rule.get("Next"))})
            if "Assign" in rule or "Output" in rule:
                self.lost("L-TRANSFORM", "a case only leads somewhere", where)
        if "Default" in state:
            otherwise = self.goto(state["Default"])
        else:
            where = self.at(name)
            self.lost("L-NODEFAULT", "a switch always leads somewhere", where, "a state that fails")
            otherwise = self.failing(f"{name}_unmatched", "States.NoChoiceMatched")
        self.node(
            name,
            {"mappings": reads.mappings()},
            {
                "store_in_context": False,
                "include_in_llm_history": False,
                "switch": {"cases": rules, "default": otherwise},
            },
        )

    def goto(self, name: Json) -> str:
        return self.target(name) if type(name) is str else self.after

    def node(self, name: str, config: dict[str, Json], to: dict[str, Json]) -> None:
        """Write a state as a transformation."""
        id = self.id(name)
        self.writer.nodes[id] = {"id": id, "custom_node_id": "transform_node", "config": config}
        self.add(name, {"id": id, "custom_node_id": id, "next": to})

    def failing(self, name: str, error: str) -> str:
        """Add a state that fails; return its name."""
        return self.writer.node(
            name,
            {"mappings": [], "on_error": "fail", "output_schema": {"required": [error]}},
            {"state_id": END},
        )

    def fail(self, name: str, state: Mapping[str, Any]) -> None:
        where = self.at(name)
        error = str(state.get("Error", "Failed"))
        cause = str(state.get("Cause", ""))
        self.lost(
            "L-FAIL", "no state fails on purpose", where, "a transformation that cannot succeed"
        )
        config: dict[str, Json] = {
            "mappings": [],
            "on_error": "fail",
            "output_schema": {"required": [f"{error}: {cause}" if cause else error]},
        }
        self.node(name, config, {"state_id": END})

    def pass_(self, name: str, state: Mapping[str, Any]) -> None:
        if self.passes(state):
            return
        if "Output" in state:
            self.lost(
                "L-JSONATA",
                "a workflow has no JSONata",
                self.at(name, "Output"),
                "nothing is written",
            )
        given = state.get("Result", state.get("Parameters"))
        where = self.at(name, "Result" if "Result" in state else "Parameters")
        mappings: list[Json] = []
        if type(given) is dict:
            mappings = [
                self.mapping(key, each, where, "Result" in state) for key, each in given.items()
            ]
        elif given is not None:
            mappings = [{"output_field": "value", "type": "constant", "value": given}]
            self.lost("L-DEEP", "what a transformation gives is an object", where, "under 'value'")
        to = {**self.flags(name, state), **self.next(state)}
        self.node(name, {"mappings": mappings}, to)

    def mapping(self, key: str, value: Json, where: str, constant: bool) -> dict[str, Json]:
        plain = key if constant else key.removesuffix(".$")
        if constant or (plain == key and "$" not in compact(value)):
            return {"output_field": plain, "type": "constant", "value": value}
        if plain != key and type(value) is str and (match := _PATH.fullmatch(value)):
            path = match[1].lstrip(".").replace("[", ".").replace("]", "")
            return {"output_field": plain, "type": "extract", "source_path": path}
        text = self.filled(value, f"{where}/{escape(key)}", dynamic=plain != key)
        return {"output_field": plain, "type": "template", "template": text}

    def map(self, name: str, state: Mapping[str, Any]) -> None:
        where = self.at(name)
        processor = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
        limit = state.get("MaxConcurrency")
        if type(limit) is int:
            self.writer.concurrency.append(limit)
        if self.item:
            self.lost("L-NESTED", "an iteration within one ends with the outer one", where)
        path = str(state.get("ItemsPath", state.get("Items", "$")))
        match = _PATH.fullmatch(path) or _QUERY.fullmatch(path)
        source = "value"
        if match is not None:
            source = match[1].lstrip(".").replace("[", ".").replace("]", "")
        else:
            self.lost(
                "L-PATH",
                f"no key of the context is {path!r}"[:200],
                where,
                "items are taken from 'value'",
            )
        following = self.next(state)
        last = {key: each for key, each in following.items() if key != "state_id"}
        keys = re.findall(r"[A-Za-z_]\w*", str(state.get("ResultPath", "$")))
        if keys:
            last = {"output_key": keys[0], "append_to_context": True}
            self.lost(
                "L-MAPRESULT", "the results are texts, appended to a key", where, f"{keys[0]!r}"
            )
        else:
            self.lost("L-MAPRESULT", "the array of results is not written anywhere", where)
        inner = _Machine(
            self.writer,
            state[processor],
            self.at(name, processor),
            str(following["state_id"]),
            item=True,
            last=last,
        )
        begun = len(self.writer.states)
        first = inner.written()
        workers = self.writer.states[begun:]
        del self.writer.states[begun:]
        self.chained(workers, str(following["state_id"]), where)
        config: dict[str, Json] = {
            "mappings": [{"output_field": ITEMS, "type": "extract", "source_path": source}]
        }
        to: dict[str, Json] = {"state_id": first, "iter_key": ITEMS, "store_in_context": False}
        if self.item:
            to["include_in_llm_history"] = False
        self.node(name, config, to)
        if self.item:
            self.writer.states[-1]["finish_iteration"] = True
        self.writer.states += workers

    def chained(self, workers: list[dict[str, Any]], after: str, where: str) -> None:
        """Let the item go on from worker to worker, and mark the last ones where it chooses."""
        plain = all(
            "state_id" in each["next"] and "iter_key" not in each["next"] for each in workers
        )
        if not plain:
            self.lost(
                "L-PERITEM", "the platform leaves the iteration where it chooses or forks", where
            )
        for each in workers:
            to = each["next"]
            if "state_id" not in to or "iter_key" in to:
                continue
            if to["state_id"] != after:
                to["iter_key"] = ITEMS
            elif not plain and after != END:
                each["finish_iteration"] = True

    def parallel(self, name: str, state: Mapping[str, Any]) -> None:
        where = self.at(name)
        following = self.next(state)
        after = str(following["state_id"])
        self.lost(
            "L-PARRESULT", "the array of results is not written; each branch writes its own", where
        )
        heads = []
        begun = len(self.writer.states)
        for index, branch in enumerate(state.get("Branches", ())):
            inner = _Machine(
                self.writer, branch, self.at(name, "Branches", index), after, item=self.item
            )
            heads.append(inner.written())
        branches = self.writer.states[begun:]
        del self.writer.states[begun:]
        to: dict[str, Json] = {"state_ids": heads, "store_in_context": False}
        self.node(name, {"mappings": []}, to)
        self.writer.states += branches

    def approved(self, state: Mapping[str, Any]) -> str | None:
        """Return where an Approval leads when it is approved."""
        options = state.get("Options")
        first = options[0] if type(options) is list and options else "approve"
        for rule in state.get("Choices", ()):
            if first in (rule.get("StringEquals"),) or repr(first) in str(rule.get("Condition")):
                return str(rule["Next"])
        found = state.get("Next", state.get("Default"))
        if found is None and state.get("Choices"):
            found = state["Choices"][0].get("Next")
        return None if found is None else str(found)

    def gate(self, name: str, state: Mapping[str, Any]) -> None:
        where = self.at(name)
        prompt = state.get("Prompt", state.get("Prompt.$", ""))
        shown = prompt if type(prompt) is str else compact(prompt)
        approved = self.approved(state)
        gated = self.states.get(approved) if approved is not None else None
        others = {rule.get("Next") for rule in state.get("Choices", ())} | {state.get("Default")}
        others -= {approved, None}
        ends = all(
            self.states.get(str(each), {}).get("Type") in ("Fail", "Succeed") for each in others
        )
        options = state.get("Options")
        many = type(options) is list and len(options) > 2
        if gated is None or self.passes(gated) or gated.get("Type") in ("Succeed", "Fail"):
            self.lost("L-APPROVAL", "nothing runs behind this gate", where, "nobody is asked")
            return
        if many or not ends:
            self.lost(
                "L-APPROVAL",
                "a gate can only go on or cancel the run",
                where,
                f"going on leads to {approved!r}",
            )
        if approved is not None:
            self.gates[approved] = (shown if "{%" not in shown else "", where)

    def skipped(self, name: str, state: Mapping[str, Any]) -> None:
        """Report a state that has no counterpart; transitions to it lead on."""
        kind = state["Type"]
        if kind == "Wait":
            self.lost("L-WAIT", "no state waits", self.at(name), "it is left out")
        elif kind == "Checkpoint":
            self.lost(
                "L-CHECKPOINT", "the platform keeps runs by itself", self.at(name), "it is left out"
            )

    def succeed(self, name: str, state: Mapping[str, Any]) -> None:
        """A transition to it ends the run."""

    def stand_in(self, name: str, state: Mapping[str, Any]) -> None:
        """Put an assistant where something stands that has no counterpart."""
        kind = str(state["Type"])
        where = self.at(name)
        self.lost(
            _STANDS_IN[kind],
            f"there is nothing like a {kind} state",
            where,
            "an assistant of its name",
        )
        actor = self.writer.actor(name, False, where)
        topic = state.get("Topic", state.get("Comment", name))
        made: dict[str, Json] = {
            "id": self.id(name),
            "assistant_id": actor,
            "task": topic if type(topic) is str else name,
            "retry_policy": self.policy(name, state),
            "next": {**self.flags(name, state), **self.next(state)},
        }
        self.add(name, made)


def _number(retrier: Mapping[str, Any], field: str, default: float) -> float:
    """Return a number of a retrier, the default where it is a parameter that is not filled in."""
    value = retrier.get(field, default)
    return value if type(value) in (int, float) else default


_Handler = Callable[[_Machine, str, Mapping[str, Any]], None]
_KINDS: Final[Mapping[str, _Handler]] = {
    "Task": _Machine.task,
    "Choice": _Machine.choice,
    "Map": _Machine.map,
    "Parallel": _Machine.parallel,
    "Pass": _Machine.pass_,
    "Wait": _Machine.skipped,
    "Checkpoint": _Machine.skipped,
    "Approval": _Machine.skipped,
    "Succeed": _Machine.succeed,
    "Fail": _Machine.fail,
    "Debate": _Machine.stand_in,
    "Include": _Machine.stand_in,
    "Workflow": _Machine.stand_in,
}
