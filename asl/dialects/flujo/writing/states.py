"""States as steps: what is asked with what, and where the result goes."""

import json
from collections.abc import Mapping
from typing import Any, Final

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.expressions import TextReference, computes
from asl.dialects.flujo.writing.held import Held
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.paths import field_of, referred
from asl.dialects.flujo.writing.texts import Template, members, shown, template_of, written
from asl.dialects.names import lost_integration
from asl.expr.templates import SUFFIX

__all__ = ["Steps", "asides", "steps_of_line"]

_SAID: Final = frozenset(
    (
        *("Type", "Comment", "QueryLanguage", "Next", "End", "Catch", "Retry"),
        *("Agent", "Resource", "Parameters", "Arguments", "Result", "ResultPath", "Output"),
        *("Choices", "Default", "Branches", "ItemProcessor", "Iterator", "Items", "ItemsPath"),
        *("MaxConcurrency", "Seconds", "SecondsPath", "Timestamp", "TimestampPath"),
        *("Prompt", "Prompt.$", "Options", "Error", "Cause", "ErrorPath", "CausePath"),
        *("Name", "Name.$", "Storage", "Storage.$", "TTL", "TTL.$"),
    )
)
"""Fields that the writers of states deal with."""
JOINED: Final = "{% $merge([$states.input, $states.result]) %}"
"""The output of a Parallel whose branches each give their data back."""
_FILTERS: Final = (
    *("InputPath", "OutputPath", "ResultSelector", "Assign"),
    *("ItemSelector", "ItemBatcher", "ItemReader", "ResultWriter"),
)
_MERGED: Final = (
    "an object is merged into the context, instead of being all that is left; any other value is "
    "left out"
)
Step = dict[str, Json]
State = Mapping[str, Any]


class Steps:
    """Writes the steps of states; *line* says that each is given what the one before came to."""

    def __init__(
        self,
        losses: Losses,
        language: str,
        *,
        line: bool,
        outer: str | None = None,
        held: Held | None = None,
    ) -> None:
        self.losses = losses
        self.language = language
        self.outer = outer or language
        """The query language of the machine around: that of inner ones that do not say."""
        self.line = line
        self.held = held or Held()

    def of(self, name: str, state: State, pointer: str) -> list[Step]:
        """Return the steps of a state that works; none for one that only leads on."""
        asides(self.losses, state, pointer)
        match state["Type"]:
            case "Task":
                return [self._task(name, state, pointer)]
            case "Pass":
                return self._pass(name, state, pointer)
            case "Parallel":
                return self._parallel(name, state, pointer)
            case "Map":
                return self._map(name, state, pointer)
            case "Wait":
                self.losses.add(
                    "FL-WAIT", "a blueprint does not wait, or fail because it cannot", pointer
                )
            case "Debate":
                self.losses.add("FL-DEBATE", "a blueprint has no debates", pointer)
            case "Checkpoint":
                message = "the platform keeps runs by itself"
                self.losses.add("FL-CHECKPOINT", message, pointer)
                for key in state.keys() & {"ResultPath", "Output"}:
                    message = "there is no record of what was saved"
                    self.losses.add("FL-PATHS", message, f"{pointer}/{key}", at_key=True)
            case "Include" | "Workflow" as kind:
                message = f"a state of type {kind} cannot be said"
                hint = "convert the other document too, and let a step import it"
                self.losses.add("FL-KIND", message, pointer, hint)
        return []

    # Tasks

    def _task(self, name: str, state: State, pointer: str) -> Step:
        step: Step = {"name": name}
        key = "Agent" if "Agent" in state else "Resource"
        named = state.get(key)
        message = lost_integration(str(named))
        if message is not None:
            self.losses.add("L-INTEGRATION", message, f"{pointer}/{key}", "an agent of its name")
        step["uses"] = self.losses.agent(str(named), f"{pointer}/{key}")
        given = self._input(state, pointer)
        if given is not None:
            step["input"] = given
        step |= self._result(state, pointer)
        step["config"] = self._config(state, pointer)
        return step

    def _config(self, state: State, pointer: str) -> dict[str, Json]:
        config: dict[str, Json] = {"max_retries": 0}
        retriers = state.get("Retry") or []
        if retriers:
            first = retriers[0]
            config["max_retries"] = first.get("MaxAttempts", 3)
            plain = first.get("ErrorEquals") == ["States.ALL"] and first.get("IntervalSeconds") == 0
            if len(retriers) > 1 or not plain:
                self.losses.add(
                    "FL-RETRY",
                    "a blueprint repeats at once, and after any error",
                    f"{pointer}/Retry",
                    f"{config['max_retries']} repetitions",
                    at_key=True,
                )
        if isinstance(state.get("TimeoutSeconds"), int):
            config["timeout"] = state["TimeoutSeconds"]
        return config

    def _input(self, state: State, pointer: str) -> Json:
        """Return the input of a step: a text, into which values are put."""
        key = "Arguments" if "Arguments" in state else "Parameters"
        payload = state.get(key)
        place = f"{pointer}/{key}" if key in state else pointer
        if payload is None:
            if not self.line:
                message = "an agent is given the context beside its input, not as its parameters"
                self.losses.add("FL-PAYLOAD", message, place)
            return None
        found = _given(payload, self.held, template=key == "Parameters")
        if found is not None:
            return found
        if not isinstance(payload, dict):
            self.losses.add("FL-INTRINSIC", "the parameters cannot be said", place, at_key=True)
            return None
        if key == "Arguments":  # a name there has no meaning in its end
            made = {name: self._part(each) for name, each in payload.items()}
        else:
            made = {
                name.removesuffix(SUFFIX): template_of(each, self.held)
                if name.endswith(SUFFIX)
                else self._part(each)
                for name, each in payload.items()
            }
        if "input" in payload and "context" in payload and len(payload) == 2:
            return None
        if any(each is None for each in made.values()):
            message = "some of the parameters cannot be said, and are left out"
            self.losses.add("FL-INTRINSIC", message, place, at_key=True)
        parts = {key: each for key, each in made.items() if each is not None}
        alone = len(made) == 1 and parts
        text = written(shown(*parts.values()) if alone else members(parts))
        if text is None:
            message = "braces in the parameters would begin a value that is put in"
            hint = "let an agent put the text together"
            self.losses.add("FL-INTRINSIC", message, place, hint, at_key=True)
            return None
        message = "an agent is given one text, which has the parameters in it"
        self.losses.add("FL-PAYLOAD", message, place, at_key=True)
        return text

    def _part(self, value: Json) -> str | Template | None:
        """Return a value that is written out, as JSON, or the template of one; None for others."""
        path = referred(value)
        if path is not None:
            found = self.held.path(f"${path.removeprefix('context')}")
            return None if found is None else Template((TextReference(found),), value=True)
        if isinstance(value, str):
            return None if value.startswith("{%") else Template((value,))
        if computes(value, jsonata=self.language == "JSONata"):
            return None
        return json.dumps(value, ensure_ascii=False)

    # Results

    def _result(self, state: State, pointer: str) -> Step:
        """Return where the result of a step goes."""
        if self.language == "JSONata":
            return self._output(state, pointer)
        path = state.get("ResultPath", "$")
        if path != "$" and self.line:
            self._goes_on(pointer)
        if path is None:
            return {}
        field = field_of(path)
        if field is not None:
            return {"sink_to": field}
        if path != "$":
            message = f"a result goes into a field of the context, not to {path!r}"
            self.losses.add("FL-RESULTPATH", message, f"{pointer}/ResultPath", at_key=True)
            return {"sink_to": str(path).removeprefix("$.").replace("['", ".").replace("']", "")}
        if self.line:
            return {}
        message = _MERGED
        self.losses.add("FL-RESULTPATH", message, pointer)
        return {"updates_context": True}

    def _goes_on(self, pointer: str) -> None:
        message = "the next step is given the result alone, not the data with it"
        place = f"{pointer}/ResultPath"
        self.losses.add("FL-RESULTPATH", message, place, "read it from the context", at_key=True)

    def _output(self, state: State, pointer: str) -> Step:
        output = state.get("Output")
        if output is None:
            if self.line:
                return {}
            message = _MERGED
            self.losses.add("FL-RESULTPATH", message, pointer)
            return {"updates_context": True}
        if output == JOINED:
            return {}  # what branches write is merged into the context
        field = _merged(output)
        if field is not None:
            return {"sink_to": field}
        message = "what becomes of the result cannot be said: an object is merged into the context"
        self.losses.add("FL-PATHS", message, f"{pointer}/Output", at_key=True)
        return {"updates_context": True}

    def _sunk(self, name: str, steps: list[Step], state: State, pointer: str) -> list[Step]:
        """Return steps whose last result goes where the state says; a fork has no such key."""
        result = self._result(state, pointer)
        if not result:
            return steps
        sink: Step = {"name": f"{name}_result", "agent": {"id": "flujo.builtins.passthrough"}}
        return [*steps, {**sink, **result}]

    # Others

    def _pass(self, name: str, state: State, pointer: str) -> list[Step]:
        key = next((each for each in ("Result", "Parameters", "Output") if each in state), None)
        if key is None:
            if state.get("ResultPath", "$") not in ("$", None):
                message = "no copy of the data is put into it"
                where = f"{pointer}/ResultPath"
                self.losses.add("FL-RESULTPATH", message, where, at_key=True)
            return []
        value = state[key]
        where = f"{pointer}/{key}"
        if key != "Result" and computes(value, jsonata=self.language == "JSONata"):
            message = "a blueprint computes no values"
            self.losses.add("FL-INTRINSIC", message, where, "let an agent do it", at_key=True)
            return []
        path = state.get("ResultPath", "$") if self.language == "JSONPath" else "$"
        if path != "$" and self.line:
            self._goes_on(pointer)
        if path is None:
            return []
        field = field_of(path)
        if field is not None:
            return [_set(name, "context_set", field, value)]
        fields = isinstance(value, dict)
        message = (
            "the fields of the value are merged into the context"
            if fields
            else "the context is an object, which cannot become another value"
        )
        self.losses.add("FL-RESULTPATH", message, where, at_key=True)
        if not fields:
            return []
        return [_set(f"{name}_{each}", "context_set", each, value[each]) for each in value]

    def _parallel(self, name: str, state: State, pointer: str) -> list[Step]:
        branches: dict[str, Json] = {}
        given = next((each for each in ("Parameters", "Arguments") if each in state), None)
        held = self.held if given is None else self.held.selected(state[given])
        if given is not None:
            message = f"a blueprint has no {given!r} for branches"
            self.losses.add("FL-PATHS", message, f"{pointer}/{given}", at_key=True)
        for index, branch in enumerate(state["Branches"]):
            where = f"{pointer}/Branches/{index}"
            branches[f"{name}_{index + 1}"] = steps_of_line(branch, where, self, held)
        message = "the other branches of one that fails go on to their end"
        self.losses.add("FL-ABORT", message, pointer)
        step: Step = {"kind": "parallel", "name": name, "branches": branches, "reduce": "values"}
        return self._sunk(name, [step], state, pointer)

    def _map(self, name: str, state: State, pointer: str) -> list[Step]:
        key = "Items" if "Items" in state else "ItemsPath"
        value = state.get(key, "$")
        path = referred(value) if key == "Items" else str(value)
        if key == "Items" and path is not None:
            path = f"${path.removeprefix('context')}"
        found = None if path is None else self.held.path(path)
        within = found is not None and found.startswith("context")
        source = str(found if within else "context.items").removeprefix("context.")
        if not within or "." in source or "[" in source:
            message = "the items are a field of the context"
            self.losses.add("FL-MAP", message, f"{pointer}/{key}" if key in state else pointer)
        if state.get("MaxConcurrency") != 1:
            limit = "MaxConcurrency" in state
            place = f"{pointer}/MaxConcurrency" if limit else pointer
            self.losses.add("FL-MAP", "items come one after the other", place, at_key=limit)
        holder = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
        items = self.held.of_items(state.get("ItemSelector", state.get("Parameters")))
        body = steps_of_line(state[holder], f"{pointer}/{holder}", self, items)
        if len(body) == 1:
            message = "an item that fails gives null, and the others go on"
            self.losses.add("FL-PARTIAL", message, pointer)
        inner: dict[str, Json] = {"iterable_input": source, "body": body}
        step: Step = {"kind": "map", "name": name, "map": inner}
        return self._sunk(name, [step], state, pointer)


def asides(losses: Losses, state: State, pointer: str) -> None:
    """Report the fields of a state that nothing says."""
    for key in state:
        place = f"{pointer}/{escape(key)}"
        if key in _FILTERS:
            if state[key] != "$":
                losses.add("FL-PATHS", f"a blueprint has no {key!r}", place, at_key=True)
        elif key == "TimeoutSeconds" and state["Type"] == "Task" and type(state[key]) is int:
            continue
        elif key not in _SAID:
            losses.add("FL-META", f"a blueprint has no {key!r}", place, at_key=True)
    if "Retry" in state and state["Type"] != "Task":
        message = "only a step that asks an agent is tried again"
        losses.add("FL-RETRY", message, f"{pointer}/Retry", at_key=True)
    if state["Type"] in ("Choice", "Succeed", "Wait") and "Output" in state:
        message = "a state that only leads somewhere leaves the context as it is"
        losses.add("FL-PATHS", message, f"{pointer}/Output", at_key=True)


def steps_of_line(
    machine: State, pointer: str, steps: Steps, held: Held | None = None
) -> list[Json]:
    """Return the steps of a machine that is one line; what is not is a loss.

    *held* is where the data stands at its beginning: as it does where its state is, if not said.
    """
    held = held or steps.held
    language = machine.get("QueryLanguage", steps.outer)
    made: list[Json] = []
    seen: set[str] = set()
    name = machine["StartAt"]
    while isinstance(name, str) and name in machine["States"] and name not in seen:
        seen.add(name)
        state, where = machine["States"][name], f"{pointer}/States/{escape(name)}"
        if state["Type"] not in ("Task", "Pass", "Parallel", "Map", "Succeed") or "Catch" in state:
            message = "branches and items are a line of steps here"
            steps.losses.add("FL-NESTED", message, where, "let it be a workflow of its own")
        own = state.get("QueryLanguage", language)
        inner = Steps(steps.losses, own, line=True, outer=language, held=held)
        made += inner.of(name, state, where)
        merged = _merged(state.get("Output"))
        held = held.after(state, jsonata=own == "JSONata", merged=merged)
        name = state.get("Next")
    if name in seen or len(seen) < len(machine["States"]):
        message = "branches and items are a line of steps here"
        steps.losses.add("FL-NESTED", message, pointer, "let it be a workflow of its own")
    return made


def _set(name: str, skill: str, path: str, value: Json) -> Step:
    return {
        "name": name,
        "agent": {"id": f"flujo.builtins.{skill}"},
        "input": {"path": path, "value": value},
        "updates_context": True,
    }


def _given(payload: Json, held: Held, *, template: bool) -> str | None:
    """Return the template of an agent's input, where that is all that it is asked with."""
    if isinstance(payload, dict) and payload.keys() <= {"input", "input.$", "context", "context.$"}:
        for key, value in payload.items():
            if key == "input.$" and template:
                filled = template_of(value, held)
                return None if filled is None else written(shown(filled))
            if key == "input":
                path = referred(value)
                found = None if path is None else held.path(f"${path.removeprefix('context')}")
                if found is not None:
                    return written([TextReference(found)])
                return value if isinstance(value, str) and "{" not in value else None
    return None


def _merged(output: Json) -> str | None:
    """Return the field of `{% $merge([$states.input, {'x': $states.result}]) %}`."""
    import re

    pattern = (
        r"\{%\s*\$merge\(\[\s*\$states\.input\s*,\s*\{\s*['\"](\w+)['\"]\s*:\s*"
        r"(?:\$states\.result|\[\$states\.result\.\1\])\s*\}\s*\]\)\s*%\}"
    )
    match = re.fullmatch(pattern, output) if isinstance(output, str) else None
    return match[1] if match else None
