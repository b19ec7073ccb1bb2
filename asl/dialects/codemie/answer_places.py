"""Where another language has the values that a workflow reads: each answer under its own key.

The context of a workflow has the members of all answers side by side. Other languages store the
answer of each state under a key of its own. So the reader notes, for every name that a state reads,
the answers that may have it.
"""

import ast
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.codemie.config import END, CodemieState, Config
from asl.dialects.codemie.functions.conditions import parse
from asl.dialects.codemie.functions.outputs import parse_output, parse_schema
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.functions.template_syntax import names_read
from asl.dialects.codemie.transforms import sayable
from asl.dialects.names import FreshNames

__all__ = ["ITEM", "AnswerPlaces", "argument_names", "mapped_names", "names_in"]

ITEM: Final = "task"
"""The key of the item of an iteration, and the placeholder for it."""
_CANDIDATES: Final = 3
"""Answers that are searched for one name."""
_VISITED: Final = 200
"""States that are passed on the way back from one that reads a name."""

Places = dict[str, Json]
"""Names that a state reads, each with a place or several: keys parted by dots."""


class AnswerPlaces:
    """The keys of the answers of a workflow, and the answers that have what a state reads."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.before: dict[str, list[str]] = {name: [] for name in config.states}
        for name, state in config.states.items():
            for target, _ in state.targets():
                if target in self.before and name not in self.before[target]:
                    self.before[target].append(name)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The key of the answer of each state; empty if its members are at the root of the data."""
        own = ((name, self._own_key(name)) for name in self.config.states)
        found = {name: key for name, key in own if key is not None}
        names = FreshNames([*found.values(), ITEM, *self._names_read], "_")
        for name in self.config.states:
            wanted = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "state"
            wanted = f"state_{wanted}" if wanted[0].isdigit() else wanted
            if name not in found:
                found[name] = names.new(wanted)
        return found

    def _own_key(self, name: str) -> str | None:
        """Return the key under which the author stores an answer."""
        state = self.config.states[name]
        key = state.next.get("output_key")
        if not _stores(state):
            return None
        return key if type(key) is str and key else "" if self._is_root(state) else None

    def _is_root(self, state: CodemieState) -> bool:
        """Whether the members of an answer are known and stored at the root of the data."""
        actor = self.config.actor(state)
        simple = not state.next.get("append_to_context") and "output_schema" not in actor.get(
            "config", {}
        )
        if "custom_node_id" not in state.value or not sayable(actor) or not simple:
            return False
        # A condition reads the members of the answer, and nothing else of the data.
        made = {each["output_field"] for each in actor.get("config", {}).get("mappings", ())}
        return all(made.issuperset(_expression_names(text)) for text, _, _ in state.conditions())

    @cached_property
    def _readings(self) -> Mapping[str, frozenset[str]]:
        """The names that each state reads."""
        return {
            name: frozenset(_names_read(self.config, state))
            for name, state in self.config.states.items()
        }

    @cached_property
    def _names_read(self) -> frozenset[str]:
        return frozenset[str]().union(*self._readings.values())

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The names that are known to be stored in the context."""
        fields = (each for each in self._fields.values() if each is not None)
        return self._own_keys.union(*fields)

    @cached_property
    def _own_keys(self) -> frozenset[str]:
        keys = (self._own_key(name) for name in self.config.states)
        return frozenset(key for key in keys if key)

    @cached_property
    def _fields(self) -> Mapping[str, frozenset[str] | None]:
        """The members of the answer of each state, None where they are not known."""
        return {name: self._members(state) for name, state in self.config.states.items()}

    def _members(self, state: CodemieState) -> frozenset[str] | None:
        if not _stores(state):
            return frozenset()
        actor = self.config.actor(state)
        if "custom_node_id" in state.value and sayable(actor):
            return frozenset(each["output_field"] for each in actor["config"].get("mappings", ()))
        schema = parse_schema(str(state.value.get("output_schema", "")))
        if schema is not None:
            return frozenset(schema["properties"])
        example = parse_output(str(state.value.get("output_schema", "")))
        return frozenset(example) if isinstance(example, dict) else None

    # What a state reads

    def places(self, names: Iterator[str], state: CodemieState, *, item: bool) -> Places:
        """Return the names that are not at the root of the data, with the places of each.

        Args:
            names: Names that the state reads.
            state: The state.
            item: Whether it runs for an item.
        """
        found: Places = {}
        for name in dict.fromkeys(names):
            is_task = name == ITEM and name not in self._stored
            places = self._task(state, item) if is_task else self._name(name, state, item)
            places = places or ([name] if name == ITEM and not is_task else [])
            if places and (places != [name] or name == ITEM):
                found[name] = places[0] if len(places) == 1 else [*places]
        return found

    def is_read(self, key: str, state: CodemieState, *, item: bool) -> bool:
        """Whether the task of a state reads an answer, or the item, under its key."""
        names = [*names_in(state.value.get("task", ""))]
        places = self.places(iter(names), state, item=item)
        listed = [each for found in places.values() for each in _listed(found)]
        own = (name for name in names if name not in places)
        return key in {*own, *(each.split(".")[0] for each in listed)}

    def message(self, state: CodemieState, *, item: bool) -> str | None:
        """Return the key of the last message before a state, None if it may be one of several."""
        passed: set[str] = set()
        while state.id not in passed:
            passed.add(state.id)
            before = self.before[state.id]
            if len(before) != 1 or state.id == self.config.start.id:
                return None
            state = self.config.states[before[0]]
            if state.iter_key and not item:
                return None
            if state.recorded:
                return ITEM if state.iter_key else self.keys[state.id] or None
        return None

    def _task(self, state: CodemieState, item: bool) -> list[str]:
        """Return the places of the item, or of all answers that may be the latest."""
        before = [self.config.states[each] for each in self.before[state.id]]
        if item:
            changed = [each for each in before if each.next.get("override_task")]
            return [key for each in changed if (key := self.keys[each.id])] or [ITEM]
        if any("state_ids" in each.next or each.iter_key for each in before):
            return []
        again = [each for each in before if self._leads(state.id, each.id)]
        ordered = [*again, *(each for each in before if each not in again)]
        if len(ordered) > _CANDIDATES or (again and len(ordered) == len(again) > 1):
            return []
        keys = [self.keys[each.id] for each in ordered]
        return keys if all(keys) else []

    def _name(self, name: str, state: CodemieState, item: bool) -> list[str]:
        """Return the places of a name of the context, the latest first."""
        if name in self._own_keys:
            return []
        found, certain = self._providers(name, state.id, frozenset())
        if state.id == self.config.start.id and not item and not certain:
            return []  # the input has it
        places = [f"{self.keys[each]}.{name}" if self.keys[each] else name for each in found]
        if item:
            places = [*(places if certain else ()), f"{ITEM}.{name}", *(() if certain else places)]
        return places if certain and not item else [*places, name] if places else []

    def _providers(self, name: str, start: str, passed: frozenset[str]) -> tuple[list[str], bool]:
        """Return the states whose answers may have a name, and whether one is known to have it.

        A state that reads the name has found it before, so the search ends there.
        """
        found: list[str] = []
        readers: list[str] = []
        todo = deque(self.before[start])
        seen = {*todo}
        while todo and len(found) < _CANDIDATES and len(seen) < _VISITED:
            each = todo.popleft()
            members = self._fields[each]
            if members is not None and name in members:
                return [*found, each] if found else [each], not found
            if each != start and name in self._readings[each]:
                readers.append(each)
                continue
            if members is None and not self.config.states[each].iter_key:
                found.append(each)
            todo += [other for other in self.before[each] if other not in seen]
            seen.update(self.before[each])
        if readers and not found and readers[0] not in passed:
            return self._providers(name, readers[0], passed | {start})
        return found, False

    def _leads(self, start: str, end: str) -> bool:
        """Whether a state can be reached from another one."""
        seen, todo = {start}, [start]
        while todo and len(seen) < _VISITED:
            name = todo.pop()
            if name == end:
                return True
            new = [
                target
                for target, _ in self.config.states[name].targets()
                if target != END and target not in seen
            ]
            seen.update(new)
            todo += new
        return False


def _listed(value: Json) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def names_in(value: Json) -> Iterator[str]:
    """Yield the names of the placeholders in a value."""
    if isinstance(value, dict):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each)
    elif isinstance(value, str):
        yield from (each.steps[0] for each in find_placeholders(value) if each.steps)


def _stores(state: CodemieState) -> bool:
    """Whether an answer is stored in the context."""
    to = state.next
    return to.get("store_in_context") is not False and to.get("clear_context_store") is not True


def argument_names(arguments: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names that the arguments of a tool read; an empty one reads its own name."""
    yield from names_in(dict(arguments))
    yield from (key for key, each in arguments.items() if each in (None, ""))


def _names_read(config: Config, state: CodemieState) -> Iterator[str]:
    """Yield the names of the context that a state reads."""
    actor = config.actor(state)
    kind = state.actor[0]
    if kind == "assistant_id" or state.gated:
        yield from names_in(state.value.get("task", ""))
    if kind == "tool_id":
        arguments = state.value.get("tool_args") or actor.get("tool_args") or {}
        yield from argument_names(arguments)
        yield from names_in(f"{{{{{actor.get('input_key', '')}}}}}")
    if kind == "custom_node_id" and sayable(actor):
        yield from mapped_names(actor.get("config", {}))


def mapped_names(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the context that a transform node reads."""
    if isinstance(config.get("input_key"), str):
        yield config["input_key"].split(".")[0]
        return
    made: set[str] = set()
    for mapping in config.get("mappings", ()):
        for name in _mapping_names(mapping):
            if name not in made:
                yield name
        made.add(mapping["output_field"])


def _mapping_names(mapping: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(mapping.get("source_path"), str):
        yield mapping["source_path"].split(".")[0]
    yield from names_read(mapping.get("template", ""))
    for field in ("condition", "filter_condition", "script"):
        yield from _expression_names(str(mapping.get(field, "")))


def _expression_names(text: str) -> list[str]:
    """Return the names in an expression, none if it is not supported."""
    try:
        tree = parse(text, members=True)
    except ExpressionFault:
        return []
    return [each.id for each in ast.walk(tree) if isinstance(each, ast.Name)]
