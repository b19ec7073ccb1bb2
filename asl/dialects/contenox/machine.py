"""The machine of a chain: its states, in JSONata.

Each task becomes a Task of its name (a Pass if it calls no agent, a Fail if it raises), whose
`Output` puts the answer into the data; branches become a Choice behind it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.contenox.chain import END, RAISED, Chain, ChainBranch, StateNames, Task
from asl.dialects.contenox.functions.templates import Macro, find_macros
from asl.dialects.contenox.operands import edge, number, range_of, seconds
from asl.dialects.contenox.rules import exits
from asl.dialects.contenox.tokens import aliases, tool_token
from asl.dialects.expressions import handed, query
from asl.expr.jsonata.javascript import literal

__all__ = ["ContenoxMachine", "build_machine"]

INPUT: Final = "$states.input"
RESULT: Final = "$states.result"
NOW: Final = "$states.context.State.EnteredTime"
OWN: Final = ("parse_transition", "parse_key_value", "convert_to_openai_chat_response")
"""Handlers that call no agent, and may fail."""


class ContenoxMachine(NamedTuple):
    """A machine, where its parts were written, and what there is to say."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    reached: frozenset[str]
    findings: list[Finding]


def build_machine(chain: Chain, approve: tuple[str, ...] = ()) -> ContenoxMachine:
    """Build the machine of a chain without errors.

    *approve* are the tools, or their providers, about whose calls people are asked.
    """
    machine = _Machine(chain, approve)
    return machine.build_machine()


class _Machine:
    def __init__(self, chain: Chain, approve: tuple[str, ...]) -> None:
        self.chain = chain
        self.approve = approve
        self.edges = _edges_read(chain)
        self.needed = _needed(chain)
        self.states: dict[str, Json] = {}
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.findings: list[Finding] = []
        self.name = StateNames(chain.tasks).name
        self.todo: list[str] = []
        self.entered: set[str] = set()
        self.ends = False

    def build_machine(self) -> ContenoxMachine:
        start = self.target(self.chain.start.id)
        while self.todo:
            self.task(self.chain.tasks[self.todo.pop(0)])
        if self.ends:
            source = self.chain.last
            moved = (
                f"$contenox_variable({INPUT}, {literal(source)})" if source else f"{INPUT}.output"
            )
            output = query(moved)
            self.states[self.name(END)] = {"Type": "Succeed", "Output": output}
        machine: dict[str, Json] = {"StartAt": start, "States": self.states}
        return ContenoxMachine(machine, self.origins, frozenset(self.entered), self.findings)

    def target(self, name: str) -> str:
        """Return the state to enter for a task, which is then built as well."""
        if name == END or (name not in self.chain.tasks and exits(name)):
            self.ends = True
            return self.name(END)
        if name not in self.entered:
            self.entered.add(name)
            self.todo.append(name)
        task = self.chain.tasks[name]
        return self.name(name, "gate") if self.gated(task) else self.name(name)

    def gated(self, task: Task) -> bool:
        return bool(self.approve) and task.handler == "execute_tool_calls"

    def put(self, name: str, state: dict[str, Json], pointer: str) -> dict[str, Json]:
        self.origins.append((state, pointer))
        self.states[name] = state
        return state

    # Tasks

    def task(self, task: Task) -> None:
        name = self.name(task.id)
        if self.gated(task):
            self.gate(task, name)
        if task.handler == "raise_error":
            self.raising(task, name)
            return
        state = self.put(name, self.work(task), task.pointer)
        if task.handler in OWN and task.on_failure is not None:
            self.tried(task, state)
        else:
            self.leave(task, state)

    def raising(self, task: Task, name: str) -> None:
        given = self.given(task)
        message = f"$contenox_prompt({given})"
        error = f"{{'Error': '{RAISED}', 'Cause': {message}}}"
        if task.on_failure is None:
            if task.id in self.chain.rescuers:
                message = f"{self.after(task, error)}.Cause"
            state: dict[str, Json] = {
                "Type": "Fail",
                "Error": RAISED,
                "Cause": query(message),
            }
        else:
            failed = f"$contenox_failed({INPUT}, {literal(task.id)}, {error}, {given})"
            state = {
                "Type": "Pass",
                "Output": query(self.passing(failed, task.id, task.on_failure)),
                "Next": self.target(task.on_failure),
            }
        self.put(name, _commented(task, state), task.pointer)

    def after(self, task: Task, error: str) -> str:
        """Return the error of a task that may follow a failure: the first one leads."""
        return f"$contenox_after({INPUT}, {literal(task.id)}, {error})"

    def failing(self, task: Task) -> str:
        """Return the state that fails the run with the error that it is given."""
        name = self.name(END, "failed")
        if name not in self.states:
            error, cause = query(f"{INPUT}.Error"), query(f"{INPUT}.Cause")
            self.put(name, {"Type": "Fail", "Error": error, "Cause": cause}, task.pointer)
        return name

    def work(self, task: Task) -> dict[str, Json]:
        """Return the state of a task, without where it goes."""
        given = self.given(task)
        if task.handler == "noop":
            return _commented(
                task, {"Type": "Pass", "Output": self.done(task, _call("noop", given))}
            )
        if task.echoes:
            shown = f"$contenox_echo({given})"
            return _commented(task, {"Type": "Pass", "Output": self.done(task, shown)})
        if task.handler in OWN:
            found = self.done(task, _call(task.handler, given))
            own = ", ".join((INPUT, literal(task.id), literal(task.handler), given))
            if task.on_failure is not None:
                found = f"$contenox_tried({own})"
                if "compose" in task.value:  # unless it has failed
                    composed = self.composed(task, "$tried")
                    found = f"($tried := {found}; $exists($tried.eval) ? {composed} : $tried)"
            elif task.id in self.chain.rescuers:
                found = self.composed(task, f"$contenox_own({own})")
            return _commented(task, {"Type": "Pass", "Output": found})
        state = _commented(
            task, {"Type": "Task", "Agent": task.id, "Arguments": self.arguments(task, given)}
        )
        if task.value.get("timeout"):
            state["TimeoutSeconds"] = max(1, math.ceil(seconds(task.value["timeout"])))
        if task.retries:
            state["Retry"] = [
                {
                    "ErrorEquals": ["States.ALL"],
                    "IntervalSeconds": 0,
                    "MaxAttempts": task.retries,
                    "BackoffRate": 1,
                }
            ]
        rescue = self.chain.rescue(task)
        if rescue is None and task.id in self.chain.rescuers:
            error = self.after(task, "$states.errorOutput")
            state["Catch"] = [
                {"ErrorEquals": ["States.ALL"], "Output": query(error), "Next": self.failing(task)}
            ]
        elif rescue is not None:
            parts = [INPUT, literal(task.id), "$states.errorOutput"]
            if task.template or task.input_var:
                parts.append(given)
            failed = f"$contenox_failed({', '.join(parts)})"
            state["Catch"] = [
                {
                    "ErrorEquals": ["States.ALL"],
                    "Output": query(self.passing(failed, task.id, rescue)),
                    "Next": self.target(rescue),
                }
            ]
        state["Output"] = self.done(task, self.handled(task, given))
        return state

    def given(self, task: Task) -> str:
        """Return the effective input of a task as an expression."""
        given = self.moved(task)
        if task.id != self.chain.start.id or not self.needed:
            return given
        return f"$contenox_begun({INPUT}, {literal(self.needed)}, {given})"

    def moved(self, task: Task) -> str:
        """Return the same, whatever a run has to be given."""
        if task.template:
            return self.text(task.template, "text")
        if task.input_var:
            return f"$contenox_variable({INPUT}, {literal(task.input_var)})"
        source = self.chain.source(task)
        if source is None and task.id == self.chain.start.id:
            return f"$contenox_input({INPUT})"
        return _moving(source)

    def text(self, written: str, function: str) -> str:
        """Return a text that is filled in as an expression."""
        filled, timed = self.filled(written)
        if "{{" not in filled:
            return literal(filled)
        arguments = [INPUT, literal(filled), *([NOW] if timed else [])]
        return f"$contenox_{function}({', '.join(arguments)})"

    def filled(self, written: str) -> tuple[str, bool]:
        """Return a text with the id of the chain filled in, and whether it needs the time."""
        chain_id = str(self.chain.value.get("id") or "")
        parts, at, timed = [], 0, False
        for start, end, macro in find_macros(written):
            if _is_chain_id(macro):
                parts += [written[at:start], chain_id]
                at = end
            timed = timed or macro.name in ("now", "date")
        return "".join([*parts, written[at:]]), timed

    def passed(self, task: Task, given: str, source: str) -> Json:
        """Return the field with an expression over the input of a task, as a text if it is one."""
        text = self.filled(task.template)[0]
        return handed(text) if text and given == literal(text) else query(source)

    def plain(self, value: Json) -> Json:
        """Return a value for agents: texts with macros become expressions."""
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each) for each in value]
        if isinstance(value, str) and (find_macros(value) or "{%" in value or "%}" in value):
            return query(self.text(value, "expanded"))
        return value

    def arguments(self, task: Task, given: str) -> Json:
        """Return what the agent of a task is given."""
        handler = task.handler
        made: dict[str, Json] = {}
        if handler == "tools":
            made = {"input": self.passed(task, given, given), "provider": handed(task.provider)}
            for key, name in (("tool_name", "tool"), ("args", "args")):
                if key in task.tool:
                    made[name] = self.plain(task.tool[key])
            return made
        if handler == "execute_tool_calls":
            tools = "" if task.tools is None else f", {literal(task.tools)}"
            return {"calls": query(f"$contenox_calls({given}{tools})")}
        if handler == "chat_completion":
            made["messages"] = query(f"{self.chat(task, given)}.messages")
        else:
            made["prompt"] = self.passed(task, given, _prompt(task, given))
            if task.value.get("system_instruction"):
                made["system"] = self.plain(task.value["system_instruction"])
        if handler == "condition_key":
            made["conditions"] = handed([*(task.value.get("valid_conditions") or {})])
        elif handler == "route":
            made["labels"] = handed(_labels(task))
        if task.config:
            made["config"] = self.plain(dict(task.config))
        return made

    def chat(self, task: Task, given: str) -> str:
        system = task.value.get("system_instruction")
        told = f", {self.text(system, 'expanded')}" if system else ""
        return f"$contenox_chat({given}{told})"

    def handled(self, task: Task, given: str) -> str:
        """Return what a task makes of its answer, as an expression."""
        handler = task.handler
        seed = ", 'seed'" if self.chain.profile == "seed" else ""
        if handler == "tools":
            template = task.value.get("output_template")
            more = f", {literal(template)}" if template else ""
            return f"$contenox_tool({RESULT}, {literal(tool_token(self.chain, task))}{more})"
        if handler == "chat_completion":
            return f"$contenox_chat_completion({self.chat(task, given)}, {RESULT}{seed})"
        if handler == "execute_tool_calls":
            tools = literal(task.tools) if task.tools is not None or seed else None
            more = "" if tools is None else f", {tools}{seed}"
            return f"$contenox_execute_tool_calls({given}, {RESULT}{more})"
        if handler == "condition_key":
            conditions = literal(task.value.get("valid_conditions") or {})
            return f"$contenox_condition_key({RESULT}, {conditions})"
        if handler == "route":
            return f"$contenox_route({given}, {RESULT}, {literal(_labels(task))})"
        if handler == "text_to_embedding":
            return f"$contenox_answer({RESULT}, 'ok')"
        return _call(handler, RESULT)

    def done(self, task: Task, handled: str) -> str:
        """Return the Output of a task: what it made is put into the data."""
        return self.composed(task, f"$contenox_done({INPUT}, {literal(task.id)}, {handled})")

    def composed(self, task: Task, found: str) -> str:
        """Return the data behind a task, composed where the task itself says so."""
        if "compose" in task.value:
            compose = literal(task.value["compose"])
            found = f"$contenox_compose({found}, {literal(task.id)}, {compose})"
        return found

    # Transitions

    def leave(self, task: Task, state: dict[str, Json]) -> None:
        explicit, default = self.chain.ordered(task)
        caught = self.chain.caught(task)
        explicit = [each for each in explicit if each is not caught]
        output = str(state["Output"])
        if explicit:
            state["Output"] = query(output)
            state["Next"] = self.choice(task, explicit, default)
        elif default is None:
            state["Output"] = query(output)
            if caught is None:
                state["Next"] = self.target(END)
            else:  # nothing is left that a success could take
                state["Next"] = self.choice(task, [caught], None)
        else:
            state["Output"] = query(self.going(task, default, output))
            state["Next"] = self.target(default.goto)

    def tried(self, task: Task, state: dict[str, Json]) -> None:
        """Choose between the transitions of a task without a Catch: it calls no agent."""
        state["Output"] = query(str(state["Output"]))
        explicit, default = self.chain.ordered(task)
        state["Next"] = name = self.choice(task, explicit, default)
        choice = self.states[name]
        assert isinstance(choice, dict)
        assert task.on_failure is not None
        rules = choice["Choices"]
        assert isinstance(rules, list)
        rule: dict[str, Json] = {"Condition": query(f"$not($exists({INPUT}.eval))")}
        passed = self.passing(INPUT, task.id, task.on_failure)
        if passed != INPUT:
            rule["Output"] = query(passed)
        rule["Next"] = self.target(task.on_failure)
        rules.insert(0, rule)
        if not explicit and default is None:
            choice["Default"] = self.target(END)

    def choice(self, task: Task, explicit: list[ChainBranch], default: ChainBranch | None) -> str:
        name = self.name(task.id, "if")
        choice: dict[str, Json] = {"Type": "Choice"}
        self.put(name, choice, f"{task.pointer}/transition")
        rules: list[Json] = []
        choice["Choices"] = rules
        for branch in explicit:
            rule: dict[str, Json] = {"Condition": query(self.condition(task, branch))}
            self.origins.append((rule, branch.pointer))
            rules.append(self.rule(task, branch, rule))
        if default is not None:
            last = self.rule(task, default, {})
            if "Output" in last:
                choice["Output"] = last["Output"]
            choice["Default"] = last["Next"]
        return name

    def rule(self, task: Task, branch: ChainBranch, rule: dict[str, Json]) -> dict[str, Json]:
        passed = self.going(task, branch, INPUT)
        if passed != INPUT:
            rule["Output"] = query(passed)
        rule["Next"] = self.target(branch.goto)
        return rule

    def going(self, task: Task, branch: ChainBranch, data: str) -> str:
        """Return the data on the way along a branch: composed, and the transition counted."""
        if branch.compose is not None:
            parts = [data, literal(task.id), literal(dict(branch.compose)), literal(branch.when)]
            data = f"$contenox_compose({', '.join(parts)})"
        return self.passing(data, task.id, branch.goto)

    def passing(self, data: str, source: str, target: str) -> str:
        """Return the data after a transition, counted if anybody asks how often it is made."""
        if (source, target) not in self.edges or target == END:
            return data
        return f"$contenox_counted({data}, {literal(f'{source}->{target}')})"

    def condition(self, task: Task, branch: ChainBranch) -> str:
        """Return the condition of a branch in JSONata."""
        said, when = f"{INPUT}.eval", literal(branch.when)
        match branch.operator:
            case "equals" | "not_equals":
                words = [*aliases(self.chain, task, branch.when)]
                same = f"{said} in {literal(words)}" if len(words) > 1 else f"{said} = {when}"
                if branch.operator == "equals":
                    return same
                return f"$not({same})" if len(words) > 1 else f"{said} != {when}"
            case "contains":
                return f"$contains({said}, {when})"
            case "not_contains":
                return f"$not($contains({said}, {when}))"
            case "starts_with":
                return f"$substring({said}, 0, {len(branch.when)}) = {when}"
            case "ends_with" if branch.when:
                return f"$substring({said}, -{len(branch.when)}) = {when}"
            case "ends_with":
                return "true"
            case "gt" | "lt" as operator:
                return f"$contenox_{operator}({said}, {literal(number(branch.when))})"
            case "in_range" | "range":
                least, most = range_of(branch.operator, branch.when)
                return f"$contenox_in_range({said}, {literal(least)}, {literal(most)})"
        counted = "->".join(edge(branch.value["edge"]))
        return f"$contenox_edge_count({INPUT}, {literal(counted)}) >= {int(branch.when)}"

    # People

    def gate(self, task: Task, name: str) -> None:
        """Put a question in front of a task that runs tools: is this call allowed?"""
        gate, ask, denied = (self.name(task.id, each) for each in ("gate", "ask", "denied"))
        given = self.given(task)
        asked = f"$contenox_asked({given}, {literal([*self.approve])})"
        self.put(
            gate,
            {
                "Type": "Choice",
                "Choices": [{"Condition": query(asked), "Next": ask}],
                "Default": name,
            },
            task.pointer,
        )
        self.put(
            ask,
            {
                "Type": "Approval",
                "Prompt": {
                    "Title": f"Run the tools of {task.id}?",
                    "Calls": query(f"$contenox_calls({given})"),
                },
                "Options": ["approve", "deny"],
                "Choices": [{"Condition": query(f"{INPUT}.approval = 'deny'"), "Next": denied}],
                "Output": query(INPUT),
                "Next": name,
            },
            task.pointer,
        )
        self.put(
            denied,
            {
                "Type": "Fail",
                "Error": "Contenox.Denied",
                "Cause": "a tool call was denied",
            },
            task.pointer,
        )


def _moving(source: str | None) -> str:
    """Return what moves along as an expression: the variable of the task that has made it."""
    if source is None:
        return f"{INPUT}.output"
    return f"$contenox_variable({INPUT}, {literal(source)})"


def _prompt(task: Task, given: str) -> str:
    """Return the prompt of a task; that of prompt_to_string may not be empty."""
    if task.handler == "prompt_to_string":
        return f"$contenox_prompt({given}, true)"
    return given if task.template else f"$contenox_prompt({given})"


def _call(handler: str, argument: str) -> str:
    return f"$contenox_{handler}({argument})"


def _commented(task: Task, state: dict[str, Json]) -> dict[str, Json]:
    description = task.value.get("description")
    if not description:
        return state
    kind = state.pop("Type")
    return {"Type": kind, "Comment": description, **state}


def _labels(task: Task) -> list[Json]:
    """Return what a route may choose among: what its branches compare with."""
    labels = (each.when for each in task.branches if each.operator == "equals")
    return [*dict.fromkeys(labels)]


def _is_chain_id(macro: Macro) -> bool:
    return macro.name == "chain" and macro.payload == "id"


def _edges_read(chain: Chain) -> set[tuple[str, str]]:
    """Return the transitions that a branch or a macro asks about."""
    found: set[tuple[str, str]] = set()
    for task in chain.tasks.values():
        for branch in task.branches:
            if branch.operator == "edge_traversed_at_least":
                found.add(edge(branch.value["edge"]))
        for key in ("prompt_template", "system_instruction"):
            for _, _, macro in find_macros(task.value.get(key) or ""):
                if macro.name == "edge_count" and "->" in macro.payload:
                    source, _, target = macro.payload.partition("->")
                    found.add((source.strip(), target.strip()))
    return found


def _needed(chain: Chain) -> list[Json]:
    """Return what `{{var:...}}` name that a run cannot do without, wherever in the chain."""
    found: dict[Json, None] = {}
    for task in chain.tasks.values():
        value = task.value
        texts = [value.get("prompt_template"), value.get("system_instruction"), task.config]
        for text in _texts([*texts, task.tool.get("args")]):
            for _, _, macro in find_macros(text):
                if macro.needed:
                    found[macro.payload] = None
    return [*found]


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
