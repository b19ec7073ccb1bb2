"""A machine of states as a state machine of a blueprint: the pattern that its engine runs."""

import re
from collections.abc import Mapping
from typing import Any, Final

from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.dialects.flujo.blueprint import STEP
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.paths import condition, field_of
from asl.dialects.flujo.writing.states import Steps, asides
from asl.dialects.jsonpath_form import returned_to
from asl.dialects.names import FreshNames
from asl.states.schemas import known_fields

__all__ = ["written_machine"]

NAME: Final = "workflow"
State = Mapping[str, Any]

_OWN: Final = "current_state|next_state"
_RESERVED: Final = re.compile(rf"\"({_OWN})(?:\.\$)?\":|[.'\[]({_OWN})\b")
"""A field that a machine writes itself, as a key or in a path."""


def written_machine(value: Mapping[str, Any], losses: Losses) -> list[Json]:
    """Return the steps of a document: its machine, and what a run comes to."""
    return _Machine(value, losses).steps()


class _Machine:
    def __init__(self, value: Mapping[str, Any], losses: Losses) -> None:
        self.value = value
        self.losses = losses
        self.language: str = value.get("QueryLanguage", "JSONPath")
        self.taken = FreshNames(value["States"], "_")
        self.fields = {field_of(state.get("ResultPath")) for state in value["States"].values()}
        """The fields of the context that states write."""
        self.states: dict[str, Json] = {}
        self.rules: list[Json] = []
        self.ends: dict[str, None] = {}
        """The end states in which a run has succeeded."""
        self.fails: dict[str, None] = {}
        """The end states in which it has failed."""
        self.done: str | None = None
        self.failed: str | None = None

    def steps(self) -> list[Json]:
        for name, state in self.value["States"].items():
            self.state(name, state, f"/States/{escape(name)}")
        if self._works():
            self.rule("*", "failure", self.failure())
        if self.failed is not None:
            message = "a failure that nothing catches fails the run with an error of the platform"
            self.losses.add("FL-FAIL", message, "", "a message names the state, not the error")
        machine: dict[str, Json] = {
            "kind": "StateMachine",
            "name": self.name(NAME),
            "start_state": self.value["StartAt"],
            "end_states": [*self.ends, *self.fails],
            "states": self.states or {self.value["StartAt"]: []},
            "transitions": self.rules,
        }
        self.limited(len(machine["states"]))
        self.losses.add(
            "FL-OUTPUT",
            "the data of a run is its context, but for current_state and next_state, by which the "
            "machine is led; its output is the name of the end, or null",
            "",
            "give the input as {context: ...}",
        )
        return [machine, *self.verdict()]

    def limited(self, entries: int) -> None:
        """Report where a machine that goes round is stopped."""
        around = returned_to(self.value["StartAt"], self.value["States"])
        if around is not None:
            message = f"a machine that has entered {10 * entries} states stops, and has not failed"
            hint = "let one run do a part of the rounds"
            self.losses.add("L-LIMIT", message, f"/States/{escape(around)}", hint, at_key=True)

    def _works(self) -> bool:
        kinds = ("Task", "Parallel", "Map")
        return any(state["Type"] in kinds for state in self.value["States"].values())

    # Names

    def name(self, wanted: str) -> str:
        return self.taken.new(wanted)

    def end(self) -> str:
        """Return the end state of states that end the machine."""
        if self.done is None:
            self.done = self.name("done")
            self.ends[self.done] = None
        return self.done

    def failure(self) -> str:
        """Return the end state of failures that nothing catches."""
        if self.failed is None:
            self.failed = self.name("__failed")
            self.fails[self.failed] = None
        return self.failed

    def step_name(self, name: str) -> str:
        """Return the name of a state's step: one that no field of the context has."""
        return name if name not in self.fields else f"{name}{STEP}"

    # States

    def rule(self, source: str, event: str, target: str, when: str | None = None) -> None:
        rule: dict[str, Json] = {"from": source, "on": event, "to": target}
        self.rules.append(rule if when is None else {**rule, "when": when})

    def following(self, state: State) -> str:
        found: str = state["Next"] if "Next" in state else self.end()
        return found

    def state(self, name: str, state: State, pointer: str) -> None:
        reserved = _RESERVED.search(compact(state))
        if reserved is not None:
            message = f"a machine keeps where it stands in {reserved[1] or reserved[2]!r}"
            self.losses.add("FL-RESERVED", message, pointer, at_key=True)
        match state["Type"]:
            case "Succeed":
                asides(self.losses, state, pointer)
                self.ends[name] = None
                return
            case "Fail":
                self.fails[name] = None
                message = "a run that ends here fails with an error of the platform"
                self.losses.add("FL-FAIL", message, pointer, "Error and Cause are not kept")
                return
            case "Choice":
                asides(self.losses, state, pointer)
                self.states[name] = []
                self.choices(name, state, pointer)
                return
            case "Approval":
                self.approval(name, state, pointer)
                return
        own = state.get("QueryLanguage", self.language)
        steps = Steps(self.losses, own, line=False, outer=self.language)
        made: list[Json] = [*steps.of(self.step_name(name), state, pointer)]
        self.states[name] = made
        self.catchers(name, state, pointer)
        self.rule(name, "success", self.following(state))

    def catchers(self, name: str, state: State, pointer: str) -> None:
        if "Catch" not in known_fields(f"states:{state['Type']}"):
            return  # nobody heeds it there
        for index, catcher in enumerate(state.get("Catch", ())):
            where = f"{pointer}/Catch/{index}"
            names = catcher["ErrorEquals"]
            self.losses.add(
                "FL-ERROR",
                "of an error only the message is left, in output.last_step.feedback",
                where,
            )
            if "States.ALL" in names or "States.TaskFailed" in names:
                self.rule(name, "failure", catcher["Next"])
                continue
            tests = (f"{each!r} in output.last_step.feedback" for each in names)
            self.rule(name, "failure", catcher["Next"], " or ".join(tests))

    def choices(self, name: str, state: State, pointer: str) -> None:
        for index, rule in enumerate(state.get("Choices", ())):
            where = f"{pointer}/Choices/{index}"
            if "Assign" in rule or "Output" in rule:
                self.losses.add("FL-PATHS", "a rule only leads somewhere", where)
            said = condition(rule, where, self.losses)
            if said != "False":
                self.rule(name, "success", rule["Next"], said)
        self.rule(name, "success", state["Default"] if "Default" in state else self.failure())

    def approval(self, name: str, state: State, pointer: str) -> None:
        """Write an Approval: the platform asks again in a state that goes on in itself."""
        answer = self.name(f"{name}_answer")
        field = field_of(state.get("ResultPath")) or "approval"
        message = self.question(name, state.get("Prompt", state.get("Prompt.$")), pointer)
        question: dict[str, Json] = {
            "kind": "hitl",
            "name": self.step_name(name),
            "message": _message(message),
            "sink_to": field,
        }
        self.states[name] = [question]
        self.states[answer] = []
        self.rule(name, "pause", answer)
        asides(self.losses, state, pointer)
        message = "the answer is a text, without who gave it and when"
        self.losses.add("FL-APPROVAL", message, pointer)
        if "Options" in state or "Choices" in state:
            self.losses.add("FL-OPTIONS", "any answer is taken", pointer)
        answered = [_answered(rule, field) for rule in state.get("Choices", ())]
        default = state.get("Default", state.get("Next"))
        chosen = {"Choices": answered, "Default": default or self.end()}
        self.choices(answer, chosen, pointer)

    def question(self, name: str, prompt: Json, pointer: str) -> str:
        """Return the text of a prompt, which the platform shows as one."""
        if not isinstance(prompt, dict):
            return prompt if isinstance(prompt, str) else name
        shown = [str(prompt[key]) for key in ("Title", "Description") if key in prompt]
        for key in prompt:
            if key not in ("Title", "Description"):
                lost = f"a question is one text, without {key!r}"
                self.losses.add("FL-APPROVAL", lost, f"{pointer}/Prompt/{escape(key)}")
        return ": ".join(shown) or name

    def verdict(self) -> list[Json]:
        """Return the steps behind the machine, which fail the run where it has failed."""
        if not self.fails:
            return []
        ask: dict[str, Json] = {
            "name": self.name("verdict"),
            "agent": {"id": "flujo.builtins.stringify"},
            "input": "{{ context.current_state }}",
        }
        branches: dict[str, Json] = {
            end: [{"name": self.name(f"{end}_reached"), "agent": None}] for end in self.ends
        }
        outcome: dict[str, Json] = {
            "kind": "conditional",
            "name": self.name("outcome"),
            "condition_expression": "previous_step",
            "branches": branches,
        }
        return [ask, outcome]


def _message(text: str) -> str:
    import re

    return re.sub(r"\{\{\s*\$\.([\w.]+)\s*\}\}", r"{{ context.\1 }}", text)


def _answered(rule: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return a rule on a decision as one on the field that has the answer."""
    made = dict(rule)
    for word in ("And", "Or"):
        if word in made:
            made[word] = [_answered(each, field) for each in made[word]]
    if "Not" in made:
        made["Not"] = _answered(made["Not"], field)
    variable = made.get("Variable")
    if variable in ("$.approval", f"$.{field}.approval"):
        made["Variable"] = f"$.{field}"
    if isinstance(made.get("Condition"), str):
        for written in (f"$states.input.{field}.approval", "$states.input.approval"):
            made["Condition"] = made["Condition"].replace(written, f"$states.input.{field}")
    return made
