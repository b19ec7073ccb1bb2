"""A chain said again: each task by whom it asks, or by what it puts into the data."""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.contenox.chain import END, RAISED, Chain, StateNames, Task
from asl.dialects.contenox.plain.choices import Choices
from asl.dialects.contenox.plain.keys import FAILED, INPUT, TEXT, asked, ends, leaves
from asl.dialects.contenox.plain.values import Values
from asl.dialects.contenox.plain.ways import Ways
from asl.dialects.contenox.template_choices import cases
from asl.dialects.expressions import TextReference, said
from asl.dialects.jsonpath_form import path_to, reached

__all__ = ["Machine"]

_ASKING: Final = ("prompt_to_string", "prompt_to_js", "text_to_embedding", "chat_completion")


class Machine:
    """One machine."""

    def __init__(self, chain: Chain, value: Mapping[str, Any]) -> None:
        self.chain = chain
        self.value = value
        self.naming = StateNames(chain.tasks)
        self.values = Values(chain, value)
        self.made = self.values.made
        self.ways = Ways(self.values, self.naming)
        self.choices = Choices(self.ways)
        self.asked = asked(chain)

    def written(self) -> dict[str, Json]:
        machine = {key: self.value[key] for key in ("Comment",) if key in self.value}
        for name, state in self.value["States"].items():
            found = self.naming.task(name, "if")
            if found is None:
                continue  # an end, or a question
            task = self.chain.tasks[found]
            self.made.states[name] = {}  # in front of what stands beside it
            decides = cases(self.chain, task)
            if decides is not None and state["Type"] != "Choice":
                self.made.states[name] = self.choices.decision(name, state, task, decides)
            elif decides is not None:
                del self.made.states[name]
            elif state["Type"] == "Choice":
                self.made.states[name] = self.choices.choice(name, state, task)
            else:
                self.made.states[name] = self.state(name, state, task)
        failing = self.naming.name(END, "failed")
        for name, state in self.value["States"].items():
            if name == failing:
                self.unled(name)
            elif name not in self.made.states and state["Type"] in ("Fail", "Approval", "Choice"):
                self.made.states[name] = {**state, "QueryLanguage": "JSONata"}
        start = self.value["StartAt"]
        message = f"the input has a name: it is {path_to(INPUT)}"
        self.made.named(message, start, 'give the input as {"input": ...}')
        self.made.unrefused(start)
        known = reached(start, self.made.states)
        for name in self.value["States"]:
            if name in self.made.states and name not in known:
                message = "nothing leads there any more"
                self.made.lost("L-DROPPED", message, name, hint="it is left out")
        states = {name: each for name, each in self.made.states.items() if name in known}
        return {**machine, "StartAt": start, "States": states}

    def unled(self, name: str) -> None:
        message = "a failure behind another tells nothing of the first one"
        hint = "the first one is in the history of the run"
        self.made.lost("L-CAUSE", message, name, hint=hint)

    def state(self, name: str, state: Mapping[str, Any], task: Task) -> dict[str, Json]:
        kept = {key: state[key] for key in ("Comment", "Retry", "TimeoutSeconds") if key in state}
        if task.id not in self.asked and ends(task):
            own = self.values.variable(name, task.input_var) if task.input_var else None
            return {"Type": "Succeed", **kept, "OutputPath": own or self.values.at(("", task.id))}
        if task.handler == "raise_error":
            return {**kept, **self.raising(name, state, task)}
        if state["Type"] == "Pass":
            placing = self.passing(name, task)
            made = {"Type": "Pass", **kept, **placing.pop(0)}
        else:
            placing = self.templated(name, task)
            made = {"Type": "Task", **kept, **self.asking(name, task)}
            made["ResultPath"] = path_to(self.values.keys[task.id])
            if self.chain.rescue(task) is not None:
                caught = {"ErrorEquals": ["States.ALL"], "ResultPath": path_to(FAILED)}
                made["Catch"] = [
                    {**caught, "Next": self.failed(name, task, each["Next"])}
                    for each in state["Catch"]
                ]
        placing += self.ways.composition(name, task, task.value.get("compose"))
        following = state["Next"]
        if self.value["States"][following]["Type"] != "Choice":
            _, default = self.chain.ordered(task)
            following = self.ways.along(name, task, default, following)
        return {**made, "Next": self.ways.via(placing, name, following)}

    def raising(self, name: str, state: Mapping[str, Any], task: Task) -> dict[str, Json]:
        ending, cause = said(self.values.given(name, task))
        error = {"Error": RAISED}
        if task.on_failure is None:
            if task.id in self.chain.rescuers:
                self.unled(name)
            return {"Type": "Fail", **error, ("CausePath" if ending else "Cause"): cause}
        return {
            "Type": "Pass",
            "Parameters": {**error, f"Cause{ending}": cause},
            "ResultPath": path_to(FAILED),
            "Next": self.failed(name, task, state["Next"]),
        }

    def failed(self, name: str, task: Task, following: str) -> str:
        """Return where the failure of a task leads.

        On the way its message is kept, and its input under its name, where anybody asks for them.
        """
        made: list[dict[str, Json]] = []
        for key in (f"{task.id}_error", FAILED):
            if key in self.asked:
                ending, text = said([f"task {task.id}: ", TextReference(path_to(FAILED, "Cause"))])
                parameters = {f"{TEXT}{ending}": text}
                made.append({"Parameters": parameters, "ResultPath": path_to(key)})
        if leaves(task, self.asked):
            made += self.ways.placing([*self.values.given(name, task)], self.values.keys[task.id])
        return self.ways.via(made, name, following)

    def passing(self, name: str, task: Task) -> list[dict[str, Json]]:
        """Say what a task makes that asks nobody."""
        if task.handler != "noop":
            message = f"nothing does what {task.handler!r} does"
            self.made.lost("L-TRANSFORM", message, name, hint="its input is handed on")
        return self.ways.placing([*self.values.given(name, task)], self.values.keys[task.id])

    def templated(self, name: str, task: Task) -> list[dict[str, Json]]:
        """Return the fields of the Passes that make a text of the answer of a tool."""
        template = task.value.get("output_template")
        if task.handler != "tools" or not template:
            return []
        key = self.values.keys[task.id]

        def find(names: tuple[str, ...]) -> str:
            self.values.within(name, names)
            return TextReference(path_to(key, *names))

        placing = self.ways.placing([*self.values.filled(name, template, find)], key)
        return [each for each in placing if each]

    def asking(self, name: str, task: Task) -> dict[str, Json]:
        """Say whom a task asks, and what it hands over."""
        given = [*self.values.given(name, task)]
        match task.handler:
            case "tools":
                agent, parameters = task.provider or task.id, self.of_tool(name, task, given)
            case "execute_tool_calls":
                agent, parameters = task.id, self.of_calls(name, given)
            case _:
                agent, parameters = task.id, self.of_model(name, task, given)
                self.unread(name, task)
        return {"Agent": agent, "Parameters": parameters}

    def of_tool(self, name: str, task: Task, given: list[str]) -> dict[str, Json]:
        """Return what a tool is given."""
        parameters: dict[str, Json] = {}
        _put(parameters, "input", given)
        if "tool_name" in task.tool:
            parameters["tool"] = task.tool["tool_name"]
        args: dict[str, Json] = {}
        for key, each in (task.tool.get("args") or {}).items():
            if isinstance(each, str):
                _put(args, key, self.values.expanded(name, each))
            else:
                args[key] = each
        return {**parameters, "args": args} if args else parameters

    def of_calls(self, name: str, given: list[str]) -> dict[str, Json]:
        """Return what is given to whoever runs the calls that a model has asked for."""
        message = "what a tool answers is no message of a conversation"
        self.made.lost("L-HISTORY", message, name)
        message = "the calls are read out of the answer before; without any the run fails"
        hint = "let there be 'tool_calls' in it, a list"
        self.made.lost("L-REQUIRED", message, name, hint=hint)
        return {"calls.$": f"{given[0]}.tool_calls" if given else "$"}

    def of_model(self, name: str, task: Task, given: list[str]) -> dict[str, Json]:
        """Return what a model is given."""
        parameters: dict[str, Json] = {}
        _put(parameters, "prompt", given)
        system = task.value.get("system_instruction")
        if system:
            _put(parameters, "system", self.values.expanded(name, system))
        if task.handler == "condition_key":
            parameters["conditions"] = [*(task.value.get("valid_conditions") or {})]
        return parameters

    def unread(self, name: str, task: Task) -> None:
        """Report what becomes of a model's configuration, conversation and answer."""
        if task.handler == "chat_completion":
            message = "a model is told what moves along, without the messages before"
            self.made.lost("L-HISTORY", message, name)
            message = "what moves on is the answer alone, not the conversation with it"
            self.made.lost("L-ANSWER", message, name)
        if task.config:
            message = "what a model is called with is not handed on"
            hint = "say it where the agent is defined"
            self.made.lost("L-MODEL", message, name, hint=hint)
        if task.handler not in _ASKING:
            message = f"nothing reads the answer as {task.handler!r} does"
            self.made.lost("L-ANSWER", message, name, hint="let the agent answer just that")
        elif task.handler == "prompt_to_string":
            message = "an answer that is no text stays what it is"
            self.made.lost("L-ANSWER", message, name, hint="let the agent answer a text")


def _put(members: dict[str, Json], key: str, parts: list[str]) -> None:
    ending, value = said(parts)
    members[f"{key}{ending}"] = value
