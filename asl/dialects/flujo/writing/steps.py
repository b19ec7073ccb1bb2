"""States as steps: their agents, inputs and the places of their results."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Severity
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.flujo.writing.layout import (
    WORKING,
    DataLayout,
    Put,
    Where,
    answer_field,
    branch_names,
    map_environment,
)
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.places import (
    CONTEXT,
    FLOW,
    STEPS,
    Environment,
    is_in_context,
    print_path,
    resolve,
)
from asl.dialects.flujo.writing.templates import print_input, print_text
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.names import lost_integration
from asl.dialects.terms import (
    INPUT,
    RESULT,
    Choose,
    Comparison,
    DataPath,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Record,
    Term,
    Text,
    placement,
)

__all__ = ["Body", "Step", "StepWriter", "failing_step", "failure_message"]

Step = dict[str, Json]


class Body(NamedTuple):
    """The steps of a machine within a state.

    Attributes:
        steps: The steps.
        exact: Whether the output of the last one is the output of the machine.
    """

    steps: list[Json]
    exact: bool


BodyWriter = Callable[[Flow, Environment], Body]
"""Writes a machine within a state, from the environment in front of it."""
_PASSED: Final = {"id": "flujo.builtins.passthrough"}


class StepWriter:
    """Writes the steps of the states of one machine."""

    def __init__(
        self,
        losses: Losses,
        layout: DataLayout,
        body: BodyWriter,
        fallbacks: Mapping[str, WorkStep],
    ) -> None:
        self.losses = losses
        self.fallbacks = fallbacks
        self.layout = layout
        self.names = layout.names
        self.body = body
        self._made: dict[str, Step] = {}
        """The steps with an output that may be put into the context, by their names."""

    def of(self, step: WorkStep) -> list[Step]:
        """Return the steps of a state that works; none for one that only leads on."""
        environment = self.layout.before[step.name]
        put = self.layout.placed(step, environment)
        match step.kind:
            case "Task":
                made = [self._task(step, environment, put)]
            case "Pass":
                made = self._pass(step, put)
            case "Parallel":
                made = self._parallel(step, environment, put)
            case "Map":
                made = self._map(step, environment, put)
            case "Approval":
                made = [self._approval(step, environment)]
            case _:
                _lose(self.losses, step)
                return []
        self._asides(step, environment, put)
        return [*self._parents(step, put), *made]

    # Tasks

    def _task(self, step: WorkStep, environment: Environment, put: Put) -> Step:
        made = self._call(step) | self._input(step, environment) | _sink(put)
        made["config"] = self._config(step)
        fallback = self.fallbacks.get(step.name)
        if fallback is not None:
            made["fallback"] = self._call(fallback) | {"config": self._config(fallback)}
        self._made[str(made["name"])] = made
        return made

    def _call(self, step: WorkStep) -> Step:
        """Return the call of an agent."""
        key = "Agent" if "Agent" in step.state else "Resource"
        named = str(step.state.get(key))
        message = lost_integration(named)
        if message is not None:
            place = f"{step.pointer}/{key}"
            self.losses.add("L-INTEGRATION", message, place, "an agent of its name")
        uses = self.losses.agent(named, f"{step.pointer}/{key}")
        return {"name": self.names.of(step), "uses": uses}

    def _config(self, step: WorkStep) -> dict[str, Json]:
        config: dict[str, Json] = {"max_retries": 0}
        retriers = step.state.get("Retry") or []
        if retriers:
            first = retriers[0]
            config["max_retries"] = first.get("MaxAttempts", 3)
            plain = first.get("ErrorEquals") == ["States.ALL"] and first.get("IntervalSeconds") == 0
            if len(retriers) > 1 or not plain:
                message = "a blueprint retries immediately, and after any error"
                hint = f"{config['max_retries']} repetitions"
                self.losses.add("FL-RETRY", message, f"{step.pointer}/Retry", hint, at_key=True)
        if isinstance(step.state.get("TimeoutSeconds"), int):
            config["timeout"] = step.state["TimeoutSeconds"]
        return config

    def _input(self, step: WorkStep, environment: Environment) -> Step:
        """Return the input of a step; none where the output of the one before is the input."""
        key = next((key for key in ("Arguments", "Parameters") if key in step.state), None)
        place = step.pointer if key is None else f"{step.pointer}/{key}"
        term = resolve(step.input, environment)
        if term == environment[FLOW]:
            return {}
        if is_in_context(term):
            self._whole(step, term)
            term = DataPath(CONTEXT)
        found = print_input(term)
        if not found.complete:
            message = "computed or unavailable parts of the input are left out"
            self.losses.add("FL-INTRINSIC", message, place, at_key=key is not None)
        elif found.text:
            message = "the agent gets the values as one text"
            self.losses.add("FL-PAYLOAD", message, place, at_key=key is not None)
        return {} if found.value is None else {"input": found.value}

    def _whole(self, step: WorkStep, data: Term) -> None:
        """Report members of data that the context does not have."""
        members = data.members if isinstance(data, Record) else ()
        lost = [key for key, value in members if value != Record(None, _answer(key))]
        if lost:
            message = f"{', '.join(map(repr, lost))} cannot be passed with the context"
            hint = "compute it in an agent with a ResultPath"
            error = Severity.ERROR
            self.losses.add("FL-PATHS", message, step.pointer, hint, severity=error)

    # Places of results

    def _parents(self, step: WorkStep, put: Put) -> list[Step]:
        """Return the step that makes the objects in which a result is put."""
        if put.where is not Where.SINK or len(put.path) < 2:
            return []
        name = self.names.new(f"{step.name}_place")
        return [_skill(name, "context_merge", ".".join(put.path[:-1]), {})]

    def _sunk(self, step: WorkStep, made: Step, put: Put) -> list[Step]:
        """Return a step that has no key for the place of its output, and one that puts it there."""
        sink = _sink(put)
        if not sink:
            return [made]
        name = self.names.new(f"{step.name}_result")
        return [made, {"name": name, "agent": dict(_PASSED), **sink}]

    def _asides(self, step: WorkStep, environment: Environment, put: Put) -> None:
        """Report what is lost of the data behind a step, and fields without a counterpart."""
        if put.where is Where.MERGE and step.output == DataPath(RESULT):
            message = (
                "an object is merged into the context instead of replacing it; any "
                "other value is dropped"
            )
            self.losses.add("FL-RESULTPATH", message, step.pointer)
        if put.where is Where.ELSEWHERE and step.kind == "Pass":
            self._computed(step, environment)

    def _computed(self, step: WorkStep, environment: Environment) -> None:
        """Report what a Pass computes and no template can."""
        term = resolve(step.output, environment)
        if isinstance(term, Text) or is_in_context(term):
            return
        found = print_input(term)
        if not found.complete:
            keys = ("Parameters", "Output", "Result")
            key = next((each for each in keys if each in step.state), None)
            place = step.pointer if key is None else f"{step.pointer}/{key}"
            message = "a blueprint computes no values"
            hint = "compute the value in an agent"
            self.losses.add("FL-INTRINSIC", message, place, hint, at_key=key is not None)

    # Others

    def _pass(self, step: WorkStep, put: Put) -> list[Step]:
        name = self.names.of(step)
        if put.where is Where.VALUE:
            sink = _sink(Put(Where.SINK, put.path)) if put.path else {}
            text = isinstance(put.value, Literal) and isinstance(put.value.value, str)
            value = print_text(put.value) if text else _known(put.value)
            return [{"name": name, "input": value, **sink}]
        if put.where is not Where.SET:
            return []
        path = ".".join(put.path)
        match put.value:
            case Literal(value):
                return [_skill(name, "context_set", path, value)]
            case DataPath(_, steps):
                held = {"path": ".".join(map(str, steps))}
                skill = {"id": "flujo.builtins.context_get"}
                return [{"name": name, "agent": skill, "input": held, "sink_to": path}]
        return [{"name": name, "input": print_text(put.value), "sink_to": path}]

    def _approval(self, step: WorkStep, environment: Environment) -> Step:
        prompt = resolve(step.fields.get("Prompt", Literal(step.name)), environment)
        message = "the answer is a text, without its user and time"
        self.losses.add("FL-APPROVAL", message, step.pointer)
        found = placement(step.output)
        direct = found is not None and found.value == DataPath(RESULT)
        for key in (*_FILTERS, *(() if direct else ("Output",))):
            if step.state.get(key, "$") != "$":
                place = f"{step.pointer}/{key}"
                message = f"the question of a blueprint has no {key!r}"
                self.losses.add("FL-PATHS", message, place, at_key=True)
        if "Options" in step.state or "Choices" in step.state:
            self.losses.add("FL-OPTIONS", "any answer is accepted", step.pointer)
        return {
            "kind": "hitl",
            "name": self.names.of(step),
            "message": self._question(step, prompt),
            "sink_to": answer_field(step),
        }

    def _question(self, step: WorkStep, prompt: Term) -> str:
        """Return the text of a prompt, which the platform shows as one."""
        parts = [prompt]
        if isinstance(prompt, Literal) and isinstance(prompt.value, dict):
            parts = [Literal(prompt.value[key]) for key in _SHOWN if key in prompt.value]
            for key in prompt.value:
                if key not in _SHOWN:
                    lost = f"a question is one text, without {key!r}"
                    place = f"{step.pointer}/Prompt/{escape(key)}"
                    self.losses.add("FL-APPROVAL", lost, place)
        texts = [print_text(each) for each in parts]
        if None in texts:
            message = "the question is computed, so the name of the state is asked"
            self.losses.add("FL-INTRINSIC", message, step.pointer)
        return ": ".join(each for each in texts if each) or step.name

    def _parallel(self, step: WorkStep, environment: Environment, put: Put) -> list[Step]:
        given = {**environment, INPUT: resolve(step.input, environment)}
        branches: dict[str, Json] = {}
        named = branch_names(step)
        exact = True
        for (_, index), branch in step.machines.items():
            body = self.body(branch, given)
            exact = exact and body.exact
            name = branch.start if branch.start not in branches else f"{branch.start}_{index}"
            if named is not None:
                name = named[int(index)]
            branches[name] = body.steps
        self._continued(step)
        if not exact:
            self._inexact(step, "the result of a branch is the output of its last step")
        name = self.names.of(step)
        made: Step = {"kind": "parallel", "name": name, "branches": branches}
        if named is None:
            made["reduce"] = "values"
        return self._sunk(step, made, put)

    def _continued(self, step: WorkStep) -> None:
        """Report that other branches continue behind a failure, an error if they call more then."""
        branches = step.machines.values()
        if len(branches) < 2:
            return
        severity = Severity.ERROR if any(map(_calls_again, branches)) else None
        message = "if one branch fails, the others run to their end"
        self.losses.add("FL-ABORT", message, step.pointer, severity=severity)

    def _inexact(self, step: WorkStep, message: str) -> None:
        hint = "return the required data from the last state of each"
        self.losses.add("FL-PATHS", message, step.pointer, hint)

    def _map(self, step: WorkStep, environment: Environment, put: Put) -> list[Step]:
        items = _as_list(resolve(step.fields.get("Items", DataPath(INPUT)), environment))
        before, source = self._items(step, items)
        if source is None:
            source = "items"
            key = next((each for each in ("Items", "ItemsPath") if each in step.state), None)
            place = step.pointer if key is None else f"{step.pointer}/{key}"
            message = f"the items are {_shown(items)}, not a field of the context"
            error, at_key = Severity.ERROR, key is not None
            self.losses.add("FL-MAP", message, place, severity=error, at_key=at_key)
        if step.state.get("MaxConcurrency") != 1:
            limit = "MaxConcurrency" in step.state
            place = f"{step.pointer}/MaxConcurrency" if limit else step.pointer
            self.losses.add("FL-MAP", "items run one after the other", place, at_key=limit)
        item = self.names.new("item")
        first: Step = {"name": item}
        self._made[item] = first
        (machine,) = step.machines.values()
        body = self.body(machine, map_environment(step, environment, item))
        if not body.exact:
            self._inexact(step, "the result of an item is the output of its last step")
        inner: dict[str, Json] = {"iterable_input": source, "body": [first, *body.steps]}
        made: Step = {"kind": "map", "name": self.names.of(step), "map": inner}
        return [*before, *self._sunk(step, made, put)]

    def _items(self, step: WorkStep, items: Term) -> tuple[list[Step], Json]:
        """Return the field of the context with the items of a Map, and what puts them there."""
        if isinstance(items, Literal) and isinstance(items.value, list):
            return [], items.value
        path = self._in_context(items)
        if path is None or len(path) == 1:
            return [], None if path is None else path[0]
        field = self.names.field(f"{step.name}_items")
        made: Step = {
            "name": self.names.new(f"{step.name}_list"),
            "agent": {"id": "flujo.builtins.context_get"},
            "input": {"path": ".".join(path)},
            "sink_to": field,
        }
        return [made], field

    def _in_context(self, value: Term) -> list[str] | None:
        """Return the path of a value in the context; the step that made it puts it there."""
        if not isinstance(value, DataPath) or not value.steps:
            return None
        names = [str(each) for each in value.steps]
        if any(isinstance(each, int) or "." in each or not each for each in value.steps):
            return None
        if value.root == CONTEXT:
            return names if len(names) > 1 or names[0].isidentifier() else None
        maker = self._made.get(names[0]) if value.root == STEPS else None
        if maker is None or "updates_context" in maker:
            return None
        sink = maker.setdefault("sink_to", None)
        if sink is None:
            sink = maker["sink_to"] = self.names.field(f"{names[0]}_output")
        return [*str(sink).split("."), *names[1:]]


def _calls_again(branch: Flow) -> bool:
    """Whether a branch may call anything behind its first call, which all branches begin with."""
    working = [each for each in branch.steps.values() if each.kind in WORKING]
    return len(working) > 1 or any(
        each.kind != "Task" or each.state.get("Retry") for each in working
    )


_SHOWN: Final = ("Title", "Description")
_FILTERS: Final = ("InputPath", "OutputPath", "ResultSelector", "Assign")


def _as_list(items: Term) -> Term:
    """Return items without what turns a JSON text, or a single value, into a list."""
    match items:
        case Items(
            (
                Choose(
                    Logic("and", (Comparison("=", FunctionCall("type")), *_)),
                    _,
                    DataPath() as found,
                ),
            )
        ):
            return found
        case Items(
            (Choose(_, _, Choose(Comparison("=", FunctionCall("type")), DataPath() as found, _)),)
        ):
            return found
    return items


def _answer(field: str) -> tuple[tuple[str, Term], ...]:
    """Return the members of the record of an answer in a field of the context."""
    return (("approval", DataPath(CONTEXT, (field,))),)


def _shown(term: Term) -> str:
    found = print_path(term) if isinstance(term, DataPath) else None
    return found or "computed"


def _known(term: Term) -> Json:
    return term.value if isinstance(term, Literal) else None


def _sink(put: Put) -> Step:
    if put.where is Where.SINK:
        return {"sink_to": ".".join(put.path)}
    return {"updates_context": True} if put.where is Where.MERGE else {}


def _skill(name: str, skill: str, path: str, value: Json) -> Step:
    """Return a step that calls a built-in skill to write into the context."""
    return {
        "name": name,
        "agent": {"id": f"flujo.builtins.{skill}"},
        "input": {"path": path, "value": value},
        "updates_context": True,
    }


def failure_message(step: WorkStep) -> str:
    """Return the message of a Fail state."""
    known = (step.fields.get(key) for key in ("Error", "Cause"))
    texts = [str(each.value) for each in known if isinstance(each, Literal) and each.value]
    return ": ".join(texts) or step.name


def failing_step(name: str, message: str) -> Step:
    """Return a step that fails: a conditional step that has no branch for a message."""
    return {
        "kind": "conditional",
        "name": name,
        "condition_expression": repr(message),
        "branches": {"never": []},
    }


def _lose(losses: Losses, step: WorkStep) -> None:
    """Report a state that a blueprint has nothing for."""
    match step.kind:
        case "Wait":
            message = "a blueprint does not wait, and does not fail for an invalid time"
            losses.add("FL-WAIT", message, step.pointer)
        case "Debate":
            losses.add("FL-DEBATE", "a blueprint has no debates", step.pointer)
        case "Checkpoint":
            losses.add("FL-CHECKPOINT", "the platform stores runs itself", step.pointer)
            for key in step.state.keys() & {"ResultPath", "Output"}:
                message = "a blueprint has no record of the checkpoint"
                losses.add("FL-PATHS", message, f"{step.pointer}/{key}", at_key=True)
        case "Include" | "Workflow" as kind:
            message = f"a blueprint has no state of type {kind}"
            hint = "convert the other document too, and import it in a step"
            losses.add("FL-KIND", message, step.pointer, hint)


def unwritten(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a state that a blueprint has no counterpart for."""
    yield from (key for key in state if key not in _WRITTEN)


_WRITTEN: Final = frozenset(
    (
        *("Type", "Comment", "QueryLanguage", "Next", "End", "Catch", "Retry", "Assign"),
        *("Agent", "Resource", "Parameters", "Arguments", "Result", "ResultPath", "Output"),
        *("InputPath", "OutputPath", "ResultSelector", "ItemSelector", "TimeoutSeconds"),
        *("Choices", "Default", "Branches", "ItemProcessor", "Iterator", "Items", "ItemsPath"),
        *("MaxConcurrency", "Seconds", "SecondsPath", "Timestamp", "TimestampPath"),
        *("Prompt", "Prompt.$", "Options", "Error", "Cause", "ErrorPath", "CausePath"),
        *("Name", "Name.$", "Storage", "Storage.$", "TTL", "TTL.$"),
    )
)
"""Fields that the writer deals with."""
