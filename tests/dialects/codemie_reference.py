"""A second interpreter of CodeMie workflows, as plain as can be: what documents are held against.

It walks the workflow itself, state by state, and knows nothing of the state language. Only outputs
are parsed and conditions evaluated by the same code, which has laws of its own.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from asl.dialects.codemie.functions.conditions import holds
from asl.dialects.codemie.functions.outputs import NOTHING, coerce_literals, parse_output

Actor = Callable[[str, tuple[int, ...]], str]
"""Gives the answer of a state; the numbers say in which branches of branches it stands."""
LIMIT = 50


class Failed(Exception):
    """The run has failed with the error of this name."""


class Reference:
    """One run of a workflow, with the answers of an actor."""

    def __init__(self, workflow: dict[str, Any], actor: Actor) -> None:
        self.states = {state["id"]: state for state in workflow["states"]}
        self.limit = workflow.get("recursion_limit", LIMIT)
        self.actor = actor

    def run(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return what was visited and the data in the end; raises Failed."""
        data = {"context": given, "history": [], "last": "", "steps": 0, "writes": [], "way": ()}
        trace: list[Any] = []
        self.walk(next(iter(self.states)), "end", data, trace)
        return trace, data

    def walk(
        self, name: str, stop: str, data: dict[str, Any], trace: list[Any], *, asked: bool = False
    ) -> None:
        """Run from a state on until *stop* or the end."""
        while name not in (stop, "end"):
            state = self.states[name]
            if data["steps"] >= self.limit:
                raise Failed("CM.RecursionLimit")
            if state.get("interrupt_before") and not asked:
                trace.append({"approval": name})
            asked = False
            trace.append(name)
            raw = self.actor(name, data["way"])
            self.store(state, raw, data)
            name = self.follow(state, raw, data, trace)

    def follow(self, state: Any, raw: str, data: dict[str, Any], trace: list[Any]) -> str:
        """Go on from a state; return the state behind it, or behind its branches."""
        to = state["next"]
        heads = to.get("state_ids", [])
        if "condition" in to or "switch" in to:
            return decided(to, raw)
        if heads:
            if len(heads) == 1:
                return str(heads[0])
            if set(heads) != {"end"} and data["steps"] >= self.limit:
                raise Failed("CM.RecursionLimit")
            join = self.meeting(heads)
            branches = [self.begun(data, index) for index in range(len(heads))]
            traces: list[list[Any]] = [[] for _ in heads]
            trace.append({"parallel": traces})
            for head, branch, own in zip(heads, branches, traces, strict=True):
                self.walk(head, join, branch, own)
            self.merge(data, branches)
            return join
        key = to.get("iter_key")
        splits = "item" not in data or state.get("finish_iteration")
        if key is None or to["state_id"] == "end" or not splits:
            return str(to["state_id"])
        if data["steps"] >= self.limit:
            raise Failed("CM.RecursionLimit")
        worker = to["state_id"]
        join = self.behind(worker)
        if self.states[worker].get("interrupt_before"):
            trace.append({"approval": worker})
        branches, traces = [], []
        items = listed(raw, key)
        trace.append({"each": traces})
        for index, item in enumerate(items):
            branch, own = self.begun(data, index), []
            include = to.get("include_in_iterator_context", ["*"])
            if "*" not in include:
                branch["context"] = {k: v for k, v in branch["context"].items() if k in include}
            if isinstance(item, dict):
                branch["context"] = {**branch["context"], **item}
            branch |= {"item": item, "entered": True}
            traces.append(own)
            self.walk(worker, join, branch, own, asked=True)
            branches.append(branch)
        self.merge(data, branches)
        return join

    # Data

    def store(self, state: Any, raw: str, data: dict[str, Any]) -> None:
        """Write an answer into the context and the history."""
        to, value = state["next"], parse_output(raw)
        kept = to.get("store_in_context", True)
        append = "append" if to.get("append_to_context") else "set"
        writes: list[Any] = []
        if to.get("clear_context_store"):
            writes.append(("clear", None, None))
        if to.get("clear_context_store") is not True:
            writes += [("remove", key, None) for key in to.get("reset_keys_in_context_store", [])]
            if kept:
                writes += [(append, key, each) for key, each in roots(value).items()]
                if "output_key" in to:
                    writes.append((append, to["output_key"], raw))
        for write in writes:
            apply(data["context"], *write)
        first = data.pop("entered", False)
        if first and isinstance(data["item"], dict) and kept:
            writes = [*((append, key, each) for key, each in data["item"].items()), *writes]
        data["writes"] += writes
        if to.get("clear_prior_messages"):
            data["history"], data["inherited"] = [], 0
        if to.get("include_in_llm_history", True):
            if first:
                data["history"].append(said("human", text(data["item"]), state["id"]))
            role = "human" if state.get("result_as_human_message") else "ai"
            data["history"].append(said(role, raw, state["id"]))
        data["last"] = raw
        if to.get("override_task") and "item" in data:
            data["item"] = raw
        data["steps"] += 1

    def begun(self, data: dict[str, Any], index: int) -> dict[str, Any]:
        """Return the data of a new branch."""
        begun = {"writes": [], "inherited": len(data["history"]), "way": (*data["way"], index)}
        return {**deepcopy(data), **begun}

    def merge(self, data: dict[str, Any], branches: list[dict[str, Any]]) -> None:
        """Replay what branches have written, one after the other."""
        for branch in branches:
            for write in branch["writes"]:
                apply(data["context"], *write)
            data["writes"] += branch["writes"]
            data["history"] += branch["history"][branch["inherited"] :]
            data["steps"] = max(data["steps"], branch["steps"])
        data["last"] = json.dumps([branch["last"] for branch in branches])

    # Where branches meet

    def targets(self, name: str) -> list[str]:
        """Return the states to which a state leads."""
        to = self.states[name]["next"]
        if "condition" in to:
            return [to["condition"]["then"], to["condition"]["otherwise"]]
        if "switch" in to:
            cases = [case["state_id"] for case in to["switch"]["cases"]]
            return [*cases, to["switch"]["default"]]
        return list(to.get("state_ids", [to.get("state_id")]))

    def ends(self, heads: list[str], without: str) -> bool:
        """Whether the end can be reached from any of these without passing a state."""
        seen, todo = set(), list(heads)
        while todo:
            name = todo.pop()
            if name == without or name in seen:
                continue
            if name == "end":
                return True
            seen.add(name)
            todo += self.targets(name)
        return False

    def meeting(self, heads: list[str]) -> str:
        """Return the first state that every way from all of these to the end passes."""
        common = [
            each for each in self.states if all(not self.ends([head], each) for head in heads)
        ]
        for each in common:
            if all(other == each or not self.ends([each], other) for other in common):
                return each
        return "end"

    def marked(self, names: list[str]) -> set[str]:
        """Return where the first marked states behind these lead: they end an iteration."""
        found, seen, todo = set(), set(), list(names)
        while todo:
            name = todo.pop()
            if name == "end" or name in seen:
                continue
            seen.add(name)
            state = self.states[name]
            split = "iter_key" in state["next"] and state["next"].get("state_id") != "end"
            if state.get("finish_iteration") and not split:
                found |= set(self.targets(name))
            else:
                todo += self.targets(name)
        return found

    def behind(self, worker: str) -> str:
        """Return where an iteration meets again that begins with a state."""
        seen, name = set(), worker
        while name != "end" and name not in seen:
            seen.add(name)
            to = self.states[name]["next"]
            if "condition" in to or "switch" in to:
                targets = self.targets(name)
                return next(iter(self.marked(targets)), self.meeting(targets))
            if "state_ids" in to:
                name = self.meeting(to["state_ids"])
            elif to.get("iter_key") is None:
                return str(to["state_id"])
            else:
                name = to["state_id"]
        return "end"


def decided(to: dict[str, Any], raw: str) -> str:
    """Return the target of a condition or a switch."""
    value = parse_output(raw)
    names = coerce_literals(value) if isinstance(value, dict) else None
    if "condition" in to:
        condition = to["condition"]
        met = names is not None and holds(condition["expression"], names)
        return str(condition["then"] if met else condition["otherwise"])
    for case in to["switch"]["cases"]:
        if names is not None and holds(case["condition"], names):
            return str(case["state_id"])
    return str(to["switch"]["default"])


def listed(raw: str, key: str) -> list[Any]:
    """Return the items of an output."""
    value = parse_output(raw)
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and key != ".":
        if key not in value:
            raise Failed("CM.IterKey")
        value = value[key]
        return value if isinstance(value, list) else [value]
    return [raw if value is NOTHING else value]


def roots(value: Any) -> dict[str, Any]:
    """Return the keys that an output writes."""
    if isinstance(value, dict):
        return value
    return dict(pair for each in pieces(value) for pair in each.items())


def pieces(value: Any) -> Iterator[dict[str, Any]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def apply(context: dict[str, Any], how: str, key: Any, value: Any) -> None:
    """Change a context by one write."""
    if how == "clear":
        context.clear()
    elif how == "remove":
        context.pop(key, None)
    elif how == "set":
        context[key] = value
    else:
        old = context.get(key)
        before = old if isinstance(old, list) else [] if old is None else [old]
        context[key] = [*before, value]


def said(role: str, content: str, state: str) -> dict[str, str]:
    """Return a message."""
    return {"role": role, "content": content, "state": state}


def text(value: Any) -> str:
    """Return an item as a text."""
    return value if isinstance(value, str) else json.dumps(value)
