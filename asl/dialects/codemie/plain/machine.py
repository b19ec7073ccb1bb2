"""The states of a workflow in plain JSONPath."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.dialects.codemie.available_results import AvailableResults, last_of
from asl.dialects.codemie.conditions import NoJsonataEquivalent
from asl.dialects.codemie.config import END, CodemieState, Config
from asl.dialects.codemie.functions.outputs import parse_schema
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.plain.choices import NEVER, rule
from asl.dialects.codemie.round_trip import owners
from asl.dialects.codemie.transforms import sayable
from asl.dialects.expressions import TextReference, query, said, texted
from asl.dialects.jsonpath_form import JsonPathForm, leads, path_to, reached, returned_to
from asl.dialects.names import FreshNames

__all__ = ["Machine"]

ITEM: Final = "task"
"""The key of an item; a placeholder of this name is one."""


class Machine:
    """Writes the machine of one workflow."""

    def __init__(self, config: Config, value: Mapping[str, Any]) -> None:
        self.config = config
        self.value = value
        self.made = JsonPathForm()
        self.owners = owners(value)
        self.keys = _keys(config)
        self.rooted = _rooted(config, self.keys)
        self.answered = AvailableResults(value, self.keys, self.owners)
        self.pointer = ""

    def written(self) -> tuple[dict[str, Json], JsonPathForm]:
        """Return the machine, and what it does not say."""
        self.made.prompts = self.config.prompts
        start = self.value["StartAt"]
        kept = {key: self.value[key] for key in ("Comment",) if key in self.value}
        machine = self.machine(self.value, "", item=False)
        self.made.unrefused(start)
        message = "an answer stands under a key of its own, as it is and without its keys beside it"
        hint = "read them there; a state without output_key has its id as the key"
        self.made.lost("L-ROOTMERGE", message, start, hint=hint)
        message = "a text is no input: it would be the first message of a conversation"
        self.made.lost("L-INPUT", message, start, hint="give an object as the input")
        if self.conversation(start):
            message = "an assistant is told what was answered just before it, not all messages"
            self.made.lost("L-HISTORY", message, start)
        return {**kept, **machine}, self.made

    def conversation(self, start: str) -> bool:
        """Whether an assistant may get messages other than the input and the last answer."""
        assistants = [each for each in self.config.states.values() if "assistant_id" in each.value]
        again = returned_to(start, self.value["States"]) is not None
        return len(assistants) > 2 or bool(assistants and again)

    def lost(self, code: str, message: str, name: str, *way: str, hint: str | None = None) -> None:
        steps = [each for each in self.pointer.split("/") if each]
        self.made.lost_at(code, message, [*steps, "States", name, *way], hint=hint)

    # Machines

    def machine(self, machine: Mapping[str, Any], pointer: str, *, item: bool) -> dict[str, Json]:
        outer, self.pointer = self.pointer, pointer
        states: dict[str, Json] = {}
        for name, state in machine["States"].items():
            found = self.config.states.get(self.owners.get(name, ""))
            states[name] = self.state(name, state, found, item=item)
        for name in [*states]:
            found = self.config.states.get(self.owners.get(name, ""))
            if found is not None and found.next.get("store_in_context") is False:
                _merged(states, name)
        known = reached(machine["StartAt"], states)
        for name in states:
            if name not in known:
                self.lost("L-DROPPED", "nothing leads there any more", name, hint="it is left out")
        states = {name: state for name, state in states.items() if name in known}
        self.pointer = outer
        return {"StartAt": machine["StartAt"], "States": states}

    def state(
        self, name: str, state: Mapping[str, Any], found: CodemieState | None, *, item: bool
    ) -> dict[str, Json]:
        if found is None:  # an end
            return {key: each for key, each in state.items() if key != "Output"}
        going = {key: state[key] for key in ("Next", "End") if key in state}
        match state["Type"]:
            case "Choice":
                return self.choice(name, state, found)
            case "Parallel":
                return {**self.fork(name, state, item=item), **going}
            case "Map":
                return {**self.iteration(name, state, found), **going}
            case "Approval":
                return {**self.gate(name, state, found, item=item), **going}
        never = _never(self.config, found)
        if never is not None:
            return {"Type": "Fail", "Error": "CM.TransformFailed", "Cause": never}
        return {**self.work(name, state, found, item=item), **going}

    # Tasks

    def work(
        self, name: str, state: Mapping[str, Any], found: CodemieState, *, item: bool
    ) -> dict[str, Json]:
        to, place = found.next, path_to(self.keys[found.id])
        for flag in ("clear_context_store", "reset_keys_in_context_store"):
            if to.get(flag):
                self.lost("L-REPLACE", "what is there stays there", name, "Output")
        if "recursion_limit" in str(state.get("Output")):
            self.lost("L-LIMIT", "a run may enter any number of states", name, "Output")
        if to.get("append_to_context") and not item:
            self.lost("L-TRANSFORM", "no answer is appended to others", name, "Output")
        if state["Type"] == "Pass":
            fields = self.alone(found, self.transformed(name, found, item=item))
            return {"Type": "Pass", **fields, "ResultPath": place}
        if "Catch" in state:
            self.lost("L-ANSWER", "no answer is held against a schema", name, "Output")
        if "codemie_at" in str(state["Output"]):
            self.lost("L-ANSWER", "no part of an answer is taken", name, "Output")
        kind, agent = found.actor
        made: dict[str, Json] = {"Type": "Task", "Agent": agent}
        if kind == "tool_id":
            given = found.value.get("tool_args") or self.config.actor(found).get("tool_args")
            if given:
                made["Parameters"] = self.arguments(name, given, found, item=item)
        else:
            made["Parameters"] = self.told(name, found, item=item)
        if "Retry" in state:  # what is not tried again happens on the platform alone
            made["Retry"] = state["Retry"][-1:]
        return {**made, "ResultPath": place}

    def told(self, name: str, found: CodemieState, *, item: bool) -> dict[str, Json]:
        """Return what an assistant, or a custom node, is given."""
        made: dict[str, Json] = {}
        text = found.value.get("task", "")
        resolves = found.value.get("resolve_dynamic_values_in_prompt") is not False
        parts = [*self.filled(name, text, found, item=item)] if resolves else [text]
        ending, value = texted(parts)
        made[f"task{ending}"] = value
        if found.actor[0] == "custom_node_id":
            made |= {"config": self.config.actor(found).get("config", {}), "context.$": "$"}
            return made
        before = self.heard(found)
        if before is not None and path_to(self.keys[before]) not in parts:
            made["last.$"] = path_to(self.keys[before])
        if "output_schema" in found.value:
            schema = parse_schema(found.value["output_schema"])
            made["output_schema"] = found.value["output_schema"] if schema is None else schema
        if item and path_to(ITEM) not in parts:
            made["item.$"] = path_to(ITEM)
        return made

    def heard(self, found: CodemieState) -> str | None:
        """Return the state whose answer is the last message in front of a state, if one must be."""
        passed: set[str] = set()
        before = self.before(found)
        while before is not None and not self.config.states[before].recorded:
            passed.add(before)
            before = self.before(self.config.states[before])
            if before in passed:
                return None
        return before

    def before(self, found: CodemieState) -> str | None:
        """Return the state whose answer is the last one in front of a state, None if any may be."""
        sources = [
            each
            for each in self.config.states.values()
            if any(target == found.id for target, _ in each.targets())
        ]
        if len(sources) != 1 or found.id == self.config.start.id or sources[0].iter_key:
            return None
        return sources[0].id

    def arguments(self, name: str, given: Json, found: CodemieState, *, item: bool) -> Any:
        if isinstance(given, dict):
            made: dict[str, Json] = {}
            for key, each in given.items():
                if each == "":  # the value of this name, if there is one
                    made[f"{key}.$"] = self.path(name, (key,), found, item=item)
                elif isinstance(each, str):
                    ending, value = said(self.filled(name, each, found, item=item))
                    made[f"{key}{ending}"] = value
                else:
                    made[key] = self.arguments(name, each, found, item=item)
            return made
        return given

    def transformed(self, name: str, found: CodemieState, *, item: bool) -> dict[str, Json]:
        """Return what a transformation makes."""
        config = self.config.actor(found).get("config", {})
        made: dict[str, Json] = {}
        for mapping in config.get("mappings", ()):
            field = mapping["output_field"]
            match mapping["type"]:
                case "constant":
                    made[field] = mapping["value"]
                case "extract":
                    steps = tuple(str(mapping["source_path"]).split("."))
                    made[f"{field}.$"] = self.path(name, steps, found, item=item)
                case "template":
                    parts = self.filled(name, str(mapping["template"]), found, item=item)
                    ending, value = said(parts)
                    made[f"{field}{ending}"] = value
                case _:
                    self.lost("L-TRANSFORM", f"nothing computes {field!r}", name, "Output")
        if config.get("output_schema"):
            self.lost("L-ANSWER", "what is made is not held against a schema", name, "Output")
        if any(key.endswith(".$") for key in made):
            return {"Parameters": made}
        return {"Result": made}

    def alone(self, found: CodemieState, made: dict[str, Json]) -> dict[str, Json]:
        """Return what a transformation makes, of one that has one field just its value."""
        field = _alone(self.config, found)
        if field is None:
            return made
        held = next(iter(made.values()))
        assert isinstance(held, dict)
        (value,) = held.values()
        return {"Result": value} if "Result" in made else {"InputPath": value}

    # Texts

    def filled(self, name: str, text: str, found: CodemieState, *, item: bool) -> Iterator[str]:
        at = 0
        for each in find_placeholders(text):
            yield text[at : each.start]
            if each.steps is None:
                yield text[each.start : each.end]
            else:
                yield TextReference(self.path(name, each.steps, found, item=item))
            at = each.end
        yield text[at:]

    def path(self, name: str, steps: tuple[str, ...], found: CodemieState, *, item: bool) -> str:
        """Return where steps lead that begin with a name in scope."""
        first, *way = steps
        rest = [int(each) if each.isdecimal() and len(each) < 16 else each for each in way]
        answer = first in self.keys.values() and not rest
        if answer and first in self.answered.before.get(name, ()):
            return path_to(first)
        message = "a placeholder without value does not stay: it is empty, or fails the run"
        self.lost("L-REQUIRED", message, name, hint=f"let there be {'.'.join(steps)!r}")
        if first == ITEM and not item:
            before = self.before(found)
            if before is not None:
                return path_to(self.keys[before], *rest)
        if first in self.rooted and not answer:
            return path_to(self.rooted[first], first, *rest)
        return path_to(first, *rest)

    # Choices

    def choice(self, name: str, state: Mapping[str, Any], found: CodemieState) -> dict[str, Json]:
        answer = self.keys[found.id]
        rules: list[Json] = []
        conditions = [text for text, _, _ in found.conditions()]
        for index, (text, written) in enumerate(zip(conditions, state["Choices"], strict=True)):
            place = ("Choices", str(index))
            try:
                said = rule(text, answer)
            except (ExpressionFault, NoJsonataEquivalent):
                message = f"no rule says {text!r}, so it never holds"
                self.lost("L-CONDITION", message, name, *place)
                continue
            message = "an answer is compared as it is: no text in it is read as a value"
            hint = "let the answer be an object, with numbers and booleans that are no texts"
            self.lost("L-COERCE", message, name, *place, hint=hint)
            if said != NEVER:
                rules.append({**said, "Next": written["Next"]})
        if not rules:
            return {"Type": "Pass", "Next": state["Default"]}
        return {"Type": "Choice", "Choices": rules, "Default": state["Default"]}

    # Forks, iterations, gates

    def fork(self, name: str, state: Mapping[str, Any], *, item: bool) -> dict[str, Json]:
        branches = [
            self.machine(each, f"{self.pointer}/States/{name}/Branches/{index}", item=item)
            for index, each in enumerate(state["Branches"])
        ]
        return {
            "Type": "Parallel",
            "QueryLanguage": "JSONata",
            "Branches": [*branches],
            "Output": query("$merge([$states.input, $states.result])"),
        }

    def iteration(
        self, name: str, state: Mapping[str, Any], found: CodemieState
    ) -> dict[str, Json]:
        way = str(found.iter_key)
        steps = [] if way == "." else [*filter(None, way.split("/"))]
        items = path_to(self.keys[found.id], *steps)
        inner = self.machine(
            state["ItemProcessor"], f"{self.pointer}/States/{name}/ItemProcessor", item=True
        )
        last = last_of(state, self.owners)
        message = "answers for items become a list, under the key of the last one"
        self.lost("L-MAPRESULT", message, name, "Output")
        made: dict[str, Json] = {"Type": "Map", "QueryLanguage": "JSONata"}
        made["Items"] = query(f"$states.input{items[1:]}")
        made["ItemSelector"] = query(
            f"$merge([$states.input, {{'{ITEM}': $states.context.Map.Item.Value}}])"
        )
        made |= {key: state[key] for key in ("MaxConcurrency",) if key in state}
        made["ItemProcessor"] = inner
        if last is not None:
            told = f"{{'{self.keys[last]}': [$states.result.{self.keys[last]}]}}"
            made["Output"] = query(f"$merge([$states.input, {told}])")
        else:
            made["Output"] = query("$states.input")
        return made

    def gate(
        self, name: str, state: Mapping[str, Any], found: CodemieState, *, item: bool
    ) -> dict[str, Json]:
        prompt: dict[str, Json] = {"Title": f"Continue with {found.id}?"}
        if found.value.get("task"):
            ending, value = said(self.filled(name, found.value["task"], found, item=item))
            prompt[f"Description{ending}"] = value
        record = path_to(f"{self.keys[found.id]}_gate")
        message = f"what people answer stays in the data, at {record}"
        self.lost("L-RECORD", message, name, hint="nothing reads it but the gate itself")
        (cancelled,) = state["Choices"]
        return {
            "Type": "Approval",
            "Prompt": prompt,
            "Options": state["Options"],
            "ResultPath": record,
            "Choices": [
                {
                    "Variable": f"{record}.approval",
                    "StringEquals": "cancel",
                    "Next": cancelled["Next"],
                }
            ],
        }


def _never(config: Config, state: CodemieState) -> str | None:
    """Return what a transformation requires and never makes, None where it can succeed."""
    made = _transform(config, state)
    if made is None or made.get("on_error", "fail") != "fail":
        return None
    mapped = {each["output_field"] for each in made["mappings"]}
    required = made.get("output_schema", {}).get("required", ())
    return next((each for each in required if each not in mapped), None)


def _transform(config: Config, state: CodemieState) -> Mapping[str, Any] | None:
    """Return the config of a transformation, None for any other state."""
    if state.actor[0] != "custom_node_id" or not sayable(config.actor(state)):
        return None
    made: Mapping[str, Any] = config.actor(state)["config"]
    return made


def _merged(states: dict[str, Any], name: str) -> None:
    """Let a Choice read what a Pass in front has only taken out of the data, and stand for it."""
    state = states.get(name, {})
    choice = states.get(state.get("Next"), {})
    place = state.get("ResultPath")
    taken = state.get("Parameters", {})
    plain = state.keys() == {"Type", "Parameters", "ResultPath", "Next"} and taken
    if not plain or state["Type"] != "Pass" or choice.get("Type") != "Choice":
        return
    paths = {f"{place}.{key.removesuffix('.$')}": each for key, each in taken.items()}
    own = all(key.endswith(".$") and str(each).startswith("$.") for key, each in taken.items())
    made = _reading(choice, paths)
    others = {each: other for each, other in states.items() if each not in (name, state["Next"])}
    if own and f'"{place}' not in compact([made, *others.values()]):
        entered = [each for other in others.values() for each in leads(other)]
        if state["Next"] not in entered:
            states[name] = made
            del states[state["Next"]]


def _reading(rule: Any, paths: Mapping[str, str]) -> Any:
    """Return rules in which other paths stand for some."""
    if isinstance(rule, list):
        return [_reading(each, paths) for each in rule]
    if not isinstance(rule, dict):
        return rule
    found = {key: _reading(each, paths) for key, each in rule.items()}
    variable = found.get("Variable")
    if isinstance(variable, str):
        for path, other in paths.items():
            if variable == path or variable.startswith((f"{path}.", f"{path}[")):
                found["Variable"] = other + variable.removeprefix(path)
    return found


def _keys(config: Config) -> dict[str, str]:
    """Return under which key the answer of each state stands."""
    found: dict[str, str] = {}
    for name, state in config.states.items():
        own = state.next.get("output_key")
        if type(own) is str and own and state.next.get("store_in_context") is not False:
            found[name] = own
    names = FreshNames([*found.values(), ITEM], "_")
    for name in config.states:
        wanted = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "state"
        wanted = f"state_{wanted}" if wanted[0].isdigit() else wanted
        if name not in found:
            found[name] = _alone(config, config.states[name]) or names.new(wanted)
    return found


def _alone(config: Config, state: CodemieState) -> str | None:
    """Return the field of a transformation that makes one, under whose name it stands."""
    made = _transform(config, state)
    if made is None or len(made["mappings"]) != 1 or "output_key" in state.next:
        return None
    mapping = made["mappings"][0]
    simple = mapping["type"] in ("constant", "extract") and "state_id" in state.next
    return str(mapping["output_field"]) if simple and not state.iter_key else None


def _rooted(config: Config, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the names that answers are known to have, with the key where each stands."""
    found: dict[str, str] = {}
    for name, state in config.states.items():
        if state.next.get("store_in_context") is False or name == END:
            continue
        fields: list[str] = []
        made = _transform(config, state)
        if made is not None:
            fields = [each["output_field"] for each in made["mappings"]]
            fields = [each for each in fields if each != _alone(config, state)]
        schema = parse_schema(str(state.value.get("output_schema", "")))
        if schema is not None:
            fields = [*schema["properties"]]
        for field in fields:
            found.setdefault(field, keys[name])
    return found
