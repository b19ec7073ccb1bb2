"""State of a loop or a map between its rounds: operations on the context, inputs, outputs.

Unsupported operations are errors; settings of a conversation are reported, and have no effect.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.json_text import read_data
from asl.core.pointers import escape
from asl.core.values import Json, type_name
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.functions.pipeline_data import MAX_PATH
from asl.dialects.flujo.functions.templates import parse

__all__ = ["LoopState", "read_loop_state"]

CODE: Final = "FL-LOOPSTATE"
VERBS: Final = ("append", "set", "merge")
"""The operations, in the order in which they are carried out."""
PRESETS: Final = ("context", "previous_output", "auto")
"""Words for the input of the next round."""


class LoopState(NamedTuple):
    """Operations around the rounds of a step, in the form that the functions take."""

    first: list[Json]
    """Operations before the first round."""
    between: dict[str, Json]
    """Operations between two rounds, and the next input."""
    output: Json
    """Template of the output, None for the output of the last round."""
    findings: list[Finding]


def read_loop_state(step: BlueprintStep) -> LoopState:
    """Return the loop state of a step of kind loop or map."""
    return _Reader(step).rounds()


class _Reader:
    def __init__(self, step: BlueprintStep) -> None:
        self.step = step
        self.spec = step.spec
        self.findings: list[Finding] = []

    def rounds(self) -> LoopState:
        loop = self.step.kind == "loop"
        first = self.operations("init")
        between: dict[str, Json] = {}
        if loop and (operations := self.operations("state")):
            between["state"] = operations
        if loop and (given := self.next_input()) is not None:
            between["next_input"] = given
        output = self.output(self.spec, self.step.at("loop")) if loop else self.finalized()
        return LoopState(first, between, output, self.findings)

    def refuse(self, message: str, place: str, hint: str | None = None, key: bool = False) -> None:
        self.findings.append(Finding(CODE, message, place, hint, at_key=key))

    def at(self, *keys: str) -> str:
        return self.step.at(self.step.kind, *keys)

    # Operations

    def operations(self, key: str) -> list[Json]:
        value, place = self.spec.get(key), self.at(key)
        found: dict[str, list[Json]] = {verb: [] for verb in VERBS}
        if isinstance(value, dict):
            for verb, listed in value.items():
                self.listed(verb, listed, f"{place}/{escape(verb)}", found)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                self.entry(each, f"{place}/{index}", found)
        elif value is not None:
            self.refuse(f"{key!r} is a list of operations, not {type_name(value)}", place, _SHAPE)
        return [each for verb in VERBS for each in found[verb]]

    def listed(self, verb: str, listed: Json, place: str, found: dict[str, list[Json]]) -> None:
        """Read all operations of one kind: `append: [{target: ..., value: ...}]`."""
        if verb == "history":
            self.conversation("init.history", place)
        elif verb not in VERBS:
            hint = did_you_mean(verb, VERBS) or f"there are {', '.join(VERBS)}"
            self.refuse(f"there is no operation {verb!r}", place, hint, key=True)
        elif isinstance(listed, list):
            for index, each in enumerate(listed):
                if isinstance(each, dict):
                    self.operation(verb, each, f"{place}/{index}", found)
                else:
                    message = f"an operation is an object, not {type_name(each)}"
                    self.refuse(message, f"{place}/{index}", _SHAPE)
        elif listed is not None:
            message = f"{verb!r} is a list of operations, not {type_name(listed)}"
            self.refuse(message, place, f"write {verb}: [{{target: context.name, value: ...}}]")

    def entry(self, entry: Json, place: str, found: dict[str, list[Json]]) -> None:
        """Read an operation: `set: context.name`, `value: ...`, or `set: {target, value}`."""
        verbs = [verb for verb in VERBS if isinstance(entry, dict) and verb in entry]
        if not isinstance(entry, dict) or len(verbs) != 1:
            message = "no operation on the context"
            if len(verbs) > 1:
                message = f"an operation has one verb, not {' and '.join(verbs)}"
            keys = [*entry] if isinstance(entry, dict) else []
            near = next((did_you_mean(key, VERBS) for key in keys), None)
            self.refuse(message, place, (None if verbs else near) or _SHAPE)
            return
        (verb,) = verbs
        held = entry[verb]
        if not isinstance(held, dict):
            held = {"target": held, **{key: entry[key] for key in entry if key != verb}}
            places = {"target": f"{place}/{verb}", "value": f"{place}/value"}
            self.operation(verb, held, place, found, places)
        else:
            self.operation(verb, held, f"{place}/{verb}", found)

    def operation(
        self,
        verb: str,
        held: Mapping[str, Json],
        place: str,
        found: dict[str, list[Json]],
        places: Mapping[str, str] | None = None,
    ) -> None:
        at = places or {key: f"{place}/{key}" for key in ("target", "value")}
        for key in held:
            if key not in ("target", "value"):
                message = f"{key!r} is not a key of an operation"
                hint = did_you_mean(key, ("target", "value")) or "it has a target and a value"
                self.refuse(message, f"{place}/{escape(key)}", hint, key=True)
        if "target" not in held:
            self.refuse(f"{verb!r} has no target", place, _TARGET, key=True)
            return
        target = held["target"]
        if not _is_target(target):
            shown = repr(target)[:60] if isinstance(target, str) else type_name(target)
            self.refuse(f"{shown} is not a path in the context", at["target"], _TARGET)
            return
        value = held.get("value", "{}" if verb == "merge" else "")
        if verb == "merge" and not _may_be_object(value):
            hint = """write an object, or one in JSON: '{"count": 1}'"""
            self.refuse("only an object can be merged", at["value"], hint)
            return
        self.template(value, at["value"])
        path = str(target).removeprefix("context.")
        found[verb].append({"op": verb, "path": path, "value": value})

    # Inputs and outputs

    def next_input(self) -> str | None:
        """Return the input of the next round, None for the output of the previous one."""
        value, place = self.spec.get("propagation"), self.at("propagation")
        if isinstance(value, dict):
            for key in value:
                if key != "next_input":
                    message = f"{key!r} is not a key of 'propagation'"
                    self.refuse(
                        message, f"{place}/{escape(key)}", "the key is next_input", key=True
                    )
            value, place = value.get("next_input"), f"{place}/next_input"
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            message = f"the next input is a word or a template, not {type_name(value)}"
            self.refuse(message, place, f"there are {', '.join(PRESETS)}, and templates")
            return None
        word = value.strip().lower()
        if word == "auto":
            word = "context" if self.updates() else "previous_output"
        if word in PRESETS:
            return word if word == "context" else None
        if "{{" not in value:
            hint = did_you_mean(word, PRESETS) or f"there are {', '.join(PRESETS)}, and templates"
            self.refuse(f"{value.strip()[:60]!r} is not a known input", place, hint)
            return None
        self.template(value, place)
        return value.strip()

    def updates(self) -> bool:
        """Whether a step of the body writes into the context."""
        body = self.step.body("loop", "body")
        return any(each.value.get("updates_context") is True for each in body.steps)

    def finalized(self) -> Json:
        value, place = self.spec.get("finalize"), self.at("finalize")
        if value is None:
            return None
        if not isinstance(value, dict):
            message = f"'finalize' is an object, not {type_name(value)}"
            self.refuse(message, place, "write finalize: {output: {name: '{{ previous_step }}'}}")
            return None
        for key in value:
            if key not in ("output", "output_template"):
                message = f"{key!r} is not a key of 'finalize'"
                near = did_you_mean(key, ("output", "output_template"))
                hint = near or "it has output or output_template"
                self.refuse(message, f"{place}/{escape(key)}", hint, key=True)
        return self.output(value, place)

    def output(self, spec: Mapping[str, Any], place: str) -> Json:
        """Return the template of an output, or one for each of its members."""
        template, mapping = spec.get("output_template"), spec.get("output")
        if template is not None and not isinstance(template, str):
            message = f"'output_template' is a text, not {type_name(template)}"
            self.refuse(
                message, f"{place}/output_template", "write output: {name: ...} for several"
            )
        elif template:
            self.template(template, f"{place}/output_template")
            if mapping:
                message = "'output' has no effect together with 'output_template'"
                warning = Severity.WARNING
                at, hint = f"{place}/output", "remove one of them"
                found = Finding(CODE, message, at, hint, severity=warning, at_key=True)
                self.findings.append(found)
            return template
        if mapping is None:
            return None
        if not isinstance(mapping, dict):
            message = f"'output' is an object, not {type_name(mapping)}"
            self.refuse(message, f"{place}/output", "write output_template for a single text")
            return None
        if mapping.get("text") == "conversation_history":
            self.conversation("output", f"{place}/output")
            return None
        for name, each in mapping.items():
            at = f"{place}/output/{escape(name)}"
            if not isinstance(each, str):
                message = f"{name!r} is a template, not {type_name(each)}"
                self.refuse(message, at, "write a template: '{{ previous_step }}'")
            self.template(each, at)
        return mapping or None

    def conversation(self, name: str, place: str) -> None:
        message = f"{name!r} has no effect here: conversations belong to the agents"
        warning = Severity.WARNING
        hint = "put the earlier turns into the input of the agent"
        self.findings.append(Finding(CODE, message, place, hint, severity=warning, at_key=True))

    def template(self, value: Json, place: str) -> None:
        if not isinstance(value, str) or "{{" not in value:
            return
        try:
            parse(value)
        except ExpressionFault as fault:
            message = f"{fault.message}, so the whole text is ignored"
            found = Finding("FL-TEMPLATE", message, place, fault.hint, inside=fault.offset)
            self.findings.append(found)


_SHAPE: Final = "write {set: {target: context.name, value: ...}}; there are append, set and merge"
_TARGET: Final = "write the target as context.name"


def _is_target(value: Json) -> bool:
    if not isinstance(value, str) or not value.startswith("context."):
        return False
    names = value.split(".")[1:]
    return all(names) and len(names) <= MAX_PATH


def _may_be_object(value: Json) -> bool:
    """Whether a value is an object or, filled in, may be the JSON of one."""
    if not isinstance(value, str):
        return isinstance(value, dict)
    if "{{" in value:
        return True
    try:
        return isinstance(read_data(value), dict)
    except ValueError:
        return False
