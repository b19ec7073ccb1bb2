"""Chains in plain JSONPath: every task's output under its name, conditions on that.

What moves along is what the task before has left. Where several lead to one task, they leave their
output under one name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from asl.core.document import Document
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.contenox.chain import END, RAISED, Branch, Chain, Task
from asl.dialects.contenox.deciding import Beyond, Case, cases, rule
from asl.dialects.contenox.naming import Naming
from asl.dialects.contenox.reading import METADATA
from asl.dialects.contenox.tokens import aliases, tool_token
from asl.dialects.contenox.whens import number, range_of
from asl.dialects.formats import Path, said
from asl.dialects.names import fresh
from asl.dialects.plain import Plain, path_to, reached
from asl.expr.contenox.composing import JSON_PATH
from asl.expr.contenox.templates import Call, Constant, Field, Macro, Show, macros_in, parse
from asl.expr.contenox.texts import shown

__all__ = ["plain"]

INPUT: Final = "input"
FAILED: Final = "last_error"
TEXT: Final = "text"
"""The member of an object that holds a text which is put together."""
_ASKING: Final = ("prompt_to_string", "prompt_to_js", "text_to_embedding", "chat_completion")
_READING: Final = ("parse_number", "parse_score", "parse_range", "condition_key", "route")


def plain(document: Document) -> tuple[dict[str, Json], Plain]:
    """Return the machine of a chain in plain JSONPath, and what it does not say."""
    about = document.value["Metadata"][METADATA]
    writer = _Writer(Chain(about["chain"], about["profile"]), document.value)
    return writer.written(), writer.made


class _Writer:
    def __init__(self, chain: Chain, value: Mapping[str, Any]) -> None:
        self.chain = chain
        self.value = value
        self.made = Plain()
        self.keys = _keys(chain)
        self.ends: dict[str, str] = {}
        """The states that end a run, by the key of what it comes to."""
        self.naming = Naming(chain.tasks)
        self.asked = _asked(chain)
        self.picks = _picks(chain)
        self.composed: frozenset[str] = frozenset()
        """Keys of objects that hold a text which is put together."""
        self.composed = frozenset(self.composing())
        self.made = Plain()

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
                self.made.states[name] = self.decision(name, state, task, decides)
            elif decides is not None:
                del self.made.states[name]
            elif state["Type"] == "Choice":
                self.made.states[name] = self.choice(name, state, task)
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

    # States

    def state(self, name: str, state: Mapping[str, Any], task: Task) -> dict[str, Json]:
        kept = {key: state[key] for key in ("Comment", "Retry", "TimeoutSeconds") if key in state}
        if task.id not in self.asked and _ends(task):
            own = self.variable(name, task.input_var) if task.input_var else None
            return {"Type": "Succeed", **kept, "OutputPath": own or self.at(("", task.id))}
        if task.handler == "raise_error":
            return {**kept, **self.raising(name, state, task)}
        if state["Type"] == "Pass":
            placing = self.passing(name, task)
            made = {"Type": "Pass", **kept, **placing.pop(0)}
        else:
            placing = self.templated(name, task)
            made = {"Type": "Task", **kept, **self.asking(name, task)}
            made["ResultPath"] = path_to(self.keys[task.id])
            if self.chain.rescue(task) is not None:
                caught = {"ErrorEquals": ["States.ALL"], "ResultPath": path_to(FAILED)}
                made["Catch"] = [
                    {**caught, "Next": self.failed(name, task, each["Next"])}
                    for each in state["Catch"]
                ]
        placing += self.composition(name, task, task.value.get("compose"))
        following = state["Next"]
        if self.value["States"][following]["Type"] != "Choice":
            _, default = self.chain.ordered(task)
            following = self.along(name, task, default, following)
        return {**made, "Next": self.via(placing, name, following)}

    def along(self, name: str, task: Task, branch: Branch | None, following: str) -> str:
        """Return where a branch leads: by way of what is composed on it."""
        composition = self.composition(name, task, branch.compose if branch else None)
        return self.via(composition, name, self.target(task, following))

    def composition(
        self, name: str, task: Task, compose: Mapping[str, Any] | None
    ) -> list[dict[str, Json]]:
        """Return the fields of the Passes that take a variable out of what a task has left."""
        if not compose:
            return []
        variable, path = compose["with_var"], _picked(compose)
        if path is None or variable not in self.picks:
            self.made.lost("L-TRANSFORM", "nothing is composed", name, "Output")
            return []
        message = f"{path!r} finds nothing in a text of JSON, which fails the run"
        self.made.lost("L-REQUIRED", message, name, hint="let it be an object or a list")
        place = path_to(self.keys[variable])
        return [{"InputPath": self.at(task.id) + path[1:], "ResultPath": place}]

    def via(self, passes: list[dict[str, Json]], name: str, following: str) -> str:
        """Return where to go for a state behind Passes with these fields."""
        for each in reversed(passes):
            state: dict[str, Json] = {"Type": "Pass", **each, "Next": following}
            following = self.made.add(f"{name}:then", state, name, self.value["States"])
        return following

    def end(self, task: Task) -> str:
        """Return the state that ends a run behind a task."""
        key = self.keys[task.id]
        if key not in self.ends:
            state: dict[str, Json] = {"Type": "Succeed", "OutputPath": self.at(task.id)}
            taken = {*self.value["States"]} - {END}
            self.ends[key] = self.made.add(END, state, self.naming.name(END), taken)
        return self.ends[key]

    def raising(self, name: str, state: Mapping[str, Any], task: Task) -> dict[str, Json]:
        ending, cause = said(self.given(name, task))
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
                ending, text = said([f"task {task.id}: ", Path(path_to(FAILED, "Cause"))])
                parameters = {f"{TEXT}{ending}": text}
                made.append({"Parameters": parameters, "ResultPath": path_to(key)})
        if _leaves(task, self.asked):
            made += self.placing([*self.given(name, task)], self.keys[task.id])
        return self.via(made, name, following)

    def passing(self, name: str, task: Task) -> list[dict[str, Json]]:
        """Say what a task makes that asks nobody."""
        if task.handler != "noop":
            message = f"nothing does what {task.handler!r} does"
            self.made.lost("L-TRANSFORM", message, name, hint="its input is handed on")
        return self.placing([*self.given(name, task)], self.keys[task.id])

    def templated(self, name: str, task: Task) -> list[dict[str, Json]]:
        """Return the fields of the Passes that make a text of the answer of a tool."""
        template = task.value.get("output_template")
        if task.handler != "tools" or not template:
            return []
        key = self.keys[task.id]

        def find(names: tuple[str, ...]) -> str:
            self.within(name, names)
            return Path(path_to(key, *names))

        return [each for each in self.placing([*self.filled(name, template, find)], key) if each]

    def placing(self, parts: list[str], key: str) -> list[dict[str, Json]]:
        """Return the fields of the Passes that put a text of these parts under a key."""
        place = path_to(key)
        if parts == [place]:
            return [{}]
        ending, value = said(parts)
        if not ending:
            return [{"Result": value, "ResultPath": place}]
        if str(value).startswith("$"):
            return [{"InputPath": value, "ResultPath": place}]
        made: dict[str, Json] = {"Parameters": {f"{TEXT}.$": value}, "ResultPath": place}
        if key in self.composed:
            return [made]
        return [made, {"InputPath": f"{place}.{TEXT}", "ResultPath": place}]

    def asking(self, name: str, task: Task) -> dict[str, Json]:
        """Say whom a task asks, and what it hands over."""
        parameters: dict[str, Json] = {}
        given = [*self.given(name, task)]
        if task.handler == "tools":
            self.put(parameters, "input", given)
            if "tool_name" in task.tool:
                parameters["tool"] = task.tool["tool_name"]
            args: dict[str, Json] = {}
            for key, each in (task.tool.get("args") or {}).items():
                if isinstance(each, str):
                    self.put(args, key, self.expanded(name, each))
                else:
                    args[key] = each
            if args:
                parameters["args"] = args
            return {"Agent": task.provider or task.id, "Parameters": parameters}
        if task.handler == "execute_tool_calls":
            parameters["calls.$"] = f"{given[0]}.tool_calls" if given else "$"
            message = "what a tool answers is no message of a conversation"
            self.made.lost("L-HISTORY", message, name)
            message = "the calls are read out of the answer before; without any the run fails"
            hint = "let there be 'tool_calls' in it, a list"
            self.made.lost("L-REQUIRED", message, name, hint=hint)
            return {"Agent": task.id, "Parameters": parameters}
        self.put(parameters, "prompt", given)
        system = task.value.get("system_instruction")
        if system:
            self.put(parameters, "system", self.expanded(name, system))
        if task.handler == "condition_key":
            parameters["conditions"] = [*(task.value.get("valid_conditions") or {})]
        elif task.handler == "chat_completion":
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
        return {"Agent": task.id, "Parameters": parameters}

    def put(self, members: dict[str, Json], key: str, parts: list[str]) -> None:
        ending, value = said(parts)
        members[f"{key}{ending}"] = value

    # Values

    def composing(self) -> Iterator[str]:
        """Yield the keys under which one task alone leaves a text that it puts together."""
        makers: dict[str, list[Task]] = {}
        for task in self.chain.tasks.values():
            makers.setdefault(self.keys[task.id], []).append(task)
        for key, tasks in makers.items():
            if key != self.keys[INPUT] and len(tasks) == 1 and tasks[0].handler == "noop":
                _, value = said(self.given(tasks[0].id, tasks[0]))
                if str(value).startswith("States."):
                    yield key

    def at(self, task: Any, *way: str) -> str:
        """Return where the output of a task stands; for `("", task)` what moves along to it."""
        key = self.keys[task]
        return path_to(key, *((TEXT,) if key in self.composed else ()), *way)

    def given(self, name: str, task: Task) -> Iterator[str]:
        """Yield the parts of a task's effective input."""
        if task.template:
            yield from self.filled(name, task.template, lambda names: self.known(name, task, names))
        else:
            own = self.variable(name, task.input_var) if task.input_var else None
            yield Path(own or self.at(("", task.id)))

    def filled(
        self, name: str, template: str, find: Callable[[tuple[str, ...]], str | None]
    ) -> Iterator[str]:
        """Yield the parts of a template; *find* returns what its fields show."""
        try:
            nodes = parse(template)
        except ExpressionFault:
            nodes = (template,)
        for node in nodes:
            match node:
                case str():
                    yield node
                case Show(Constant(value)):
                    yield shown(value)
                case Show(Field(names)) if (part := find(names)) is not None:
                    message = "what is no text is shown in another way"
                    self.made.lost("CX-GOFMT", message, name, hint="let it be a text")
                    yield part
                case Show(Call("toJson", (Field(names),))) if isinstance(part := find(names), Path):
                    message = "JSON is written with its keys in the order that they have"
                    self.made.lost("CX-GOFMT", message, name, hint="let them be in order")
                    yield Path(f"States.JsonToString({part})")
                case Macro():
                    yield self.macro(name, node)
                case _:
                    message = "no placeholder says this part of a template"
                    self.made.lost("L-TEMPLATE", message, name, hint="it is left out")

    def known(self, name: str, task: Task, names: tuple[str, ...]) -> str | None:
        """Return what a field of a task's template shows, None where nothing says that."""
        if not names:
            return None
        root, *way = names
        self.within(name, way)
        if root == "previous_output":
            first = task.id == self.chain.start.id and not self.entered(task.id)
            return "<no value>" if first else Path(self.at(("", task.id), *way))
        found = self.variable(name, root)
        return Path(found + path_to(*way)[1:]) if found else ""

    def within(self, name: str, way: Sequence[str]) -> None:
        """Report that a run needs what lies on a way within a value."""
        if way:
            message = "a value that is not there may fail the run"
            self.made.lost("L-REQUIRED", message, name, hint=f"let there be {way[-1]!r}")

    def expanded(self, name: str, text: str) -> list[str]:
        parts, at = [], 0
        for start, end, macro in macros_in(text):
            parts += [text[at:start], self.macro(name, macro)]
            at = end
        return [*parts, text[at:]]

    def macro(self, name: str, macro: Macro) -> str:
        if macro.name == "chain" and macro.payload == "id":
            return str(self.chain.value.get("id") or "")
        if macro.name == "var":
            key, bar, default = macro.payload.partition("|")
            if not bar:
                return Path(path_to("vars", key.strip()))
            self.made.lost("L-TEMPLATE", f"nothing is given for {key!r}", name, hint=default)
            return default
        message = f"nothing says {macro.written}"
        self.made.lost("L-TEMPLATE", message, name, hint="the text is left")
        return macro.written

    def variable(self, name: str, wanted: str) -> str | None:
        """Return the path of what a task has left, or of the input; None of what may be nothing."""
        message = f"{wanted!r} may not be there, which fails the run"
        if wanted == FAILED or wanted.endswith("_error"):
            self.made.lost("L-REQUIRED", message, name, hint="let there be a failure before")
            return path_to(wanted, TEXT)
        key = self.keys.get(wanted)
        if key is None:
            self.made.lost("L-TEMPLATE", f"no task leaves {wanted!r}", name)
            return None
        if wanted in self.picks:
            hint = f"let {wanted!r} be composed before"
            self.made.lost("L-REQUIRED", message, name, hint=hint)
        elif wanted in self.chain.tasks and name in self.past(wanted):
            self.made.lost("L-REQUIRED", message, name, hint=f"let {wanted!r} run before")
        if sum(1 for each in self.keys.values() if each == key) > 2 and _shared(self.keys, key):
            message = f"what {wanted!r} has left may be what another task left after it"
            self.made.lost("L-TEMPLATE", message, name)
        return self.at(wanted)

    def entered(self, name: str) -> bool:
        """Whether any task leads to one."""
        tasks = self.chain.tasks.values()
        targets = [each.on_failure for each in tasks]
        return name in targets or any(each.goto == name for task in tasks for each in task.branches)

    def past(self, name: str) -> set[str]:
        """Return the states that a run may come to without this one, or in it first."""
        states = {each: state for each, state in self.value["States"].items() if each != name}
        return {name, *reached(self.value["StartAt"], states)}

    # Choices

    def choice(self, name: str, state: Mapping[str, Any], task: Task) -> dict[str, Json]:
        explicit, default = self.chain.ordered(task)
        caught = self.chain.caught(task)
        explicit = [each for each in explicit if each is not caught]
        written = state["Choices"][-len(explicit) :] if explicit else []
        rules: list[Json] = []
        otherwise = state.get("Default")
        for index, (branch, each) in enumerate(zip(explicit, written, strict=False)):
            test = self.test(name, task, branch, index)
            if test is True:
                otherwise, default = each["Next"], branch
                break
            if test:
                rules.append({**test, "Next": self.along(name, task, branch, each["Next"])})
        if not rules:
            if otherwise is None:
                return {**_UNMATCHED}
            return {"Type": "Pass", "Next": self.along(name, task, default, otherwise)}
        made: dict[str, Json] = {"Type": "Choice", "Choices": rules}
        if otherwise is not None:
            made["Default"] = self.along(name, task, default, otherwise)
        return made

    def decision(
        self, name: str, state: Mapping[str, Any], task: Task, decides: list[Case]
    ) -> dict[str, Json]:
        """Return the Choice of a task that fills in where to go."""
        explicit, default = self.chain.ordered(task)
        choice = self.value["States"][state["Next"]]
        written = [each["Next"] for each in choice["Choices"][-len(explicit) :]]
        targets: dict[Branch | None, str | None] = {default: choice.get("Default")}
        targets.update(zip(explicit, written, strict=True))
        rules: list[Json] = []
        otherwise = None
        for case in decides:
            test: dict[str, Json] | bool = True
            try:
                if case.test is not None:
                    test = rule(case.test, lambda names: self.known(name, task, names))
            except Beyond:
                message = "no rule says a condition of the template, so it never holds"
                self.made.lost("L-CONDITION", message, name)
                continue
            following = targets[case.branch]
            if test is False or following is None:
                continue
            following = self.via(self.word(task, case.text), name, self.target(task, following))
            if test is True:
                otherwise = following
                break
            rules.append({**test, "Next": following})
        kept = {key: state[key] for key in ("Comment",) if key in state}
        if not rules:
            return {"Type": "Pass", **kept, "Next": otherwise} if otherwise else {**_UNMATCHED}
        made: dict[str, Json] = {"Type": "Choice", **kept, "Choices": rules}
        return {**made, "Default": otherwise} if otherwise is not None else made

    def word(self, task: Task, text: str) -> list[dict[str, Json]]:
        """Return the fields of the Pass that leaves what a task has filled in, if anybody asks."""
        behind = {each.goto for each in task.branches}
        taken = END in behind or any(_takes(self.chain.tasks[each]) for each in behind - {END})
        if not taken and task.id not in self.asked:
            return []
        return [{"Result": text, "ResultPath": path_to(self.keys[task.id])}]

    def target(self, task: Task, name: str) -> str:
        return self.end(task) if self.value["States"][name]["Type"] == "Succeed" else name

    def test(self, name: str, task: Task, branch: Branch, index: int) -> dict[str, Json] | bool:
        """Return the rule of a branch on what the task has answered; a truth where it is known."""
        answer = self.at(task.id)
        operator, when = branch.operator, branch.when
        fixed = self.fixed(task)
        if fixed is not None and operator in ("equals", "not_equals"):
            words = aliases(self.chain, task, when)
            if task.handler == "chat_completion":
                calls = any("call" in each for each in words) == (operator == "equals")
                return self.calling(name, f"{answer}.finish_reason", calls)
            return any(each in fixed for each in words) == (operator == "equals")
        if fixed is not None:
            self.made.lost("L-CONDITION", "no rule says this branch", name, "Choices", index)
            return False
        match operator:
            case "equals":
                return {"Variable": answer, "StringEquals": when}
            case "not_equals":
                return {"Not": {"Variable": answer, "StringEquals": when}}
            case "gt" | "lt":
                word = "NumericGreaterThan" if operator == "gt" else "NumericLessThan"
                self.numeric(name)
                return {"Variable": answer, word: number(when)}
            case "in_range" | "range":
                least, most = range_of(operator, when)
                self.numeric(name)
                return {
                    "And": [
                        {"Variable": answer, "NumericGreaterThanEquals": least},
                        {"Variable": answer, "NumericLessThanEquals": most},
                    ]
                }
        pattern = _PATTERNS.get(operator)
        if pattern is None or re.search(r"[*\\]", when):
            self.made.lost("L-CONDITION", "no rule says this branch", name, "Choices", index)
            return False
        test = {"Variable": answer, "StringMatches": pattern.format(when)}
        return {"Not": test} if operator == "not_contains" else test

    def calling(self, name: str, path: str, calls: bool) -> dict[str, Json]:
        """Return the rule that a model calls tools, or that it does not."""
        message = "a model calls tools whose answer says so in its finish_reason"
        hint = "let the agent answer {content, tool_calls, finish_reason: tool_calls}"
        self.made.lost("L-ANSWER", message, name, hint=hint)
        present = {"Variable": path, "IsPresent": True}
        test: dict[str, Json] = {"And": [present, {"Variable": path, "StringEquals": "tool_calls"}]}
        return test if calls else {"Not": test}

    def numeric(self, name: str) -> None:
        message = "only a number is compared, not the first number of a text"
        self.made.lost("L-ANSWER", message, name, hint="let the agent answer a number")

    def fixed(self, task: Task) -> tuple[str, ...] | None:
        """Return what a task evaluates to whatever it is answered, None where that counts."""
        if task.handler == "tools" and not task.value.get("output_template"):
            return (tool_token(self.chain, task), "ok", "tools_executed")
        if task.handler == "noop":
            return ("noop", "no_op")
        if task.handler == "text_to_embedding":
            return ("ok",)
        if task.handler == "prompt_to_js":
            message = "an answer without text counts as one with it"
            self.made.lost("L-ANSWER", message, task.id, hint="let the agent answer a text")
            return ("ok",)
        if task.handler == "execute_tool_calls":
            message = "tools count as run where none are called"
            self.made.lost("L-ANSWER", message, task.id, hint="let a task before call some")
        if task.handler in ("chat_completion", "execute_tool_calls"):
            return ("executed", "stop", "tools_executed", "ok")
        return None


_UNMATCHED: Final[dict[str, Json]] = {
    "Type": "Fail",
    "Error": "States.NoChoiceMatched",
    "Cause": "no branch matches",
}
_PATTERNS: Final = {
    "contains": "*{}*",
    "not_contains": "*{}*",
    "starts_with": "{}*",
    "ends_with": "*{}",
}


def _shared(keys: Mapping[Any, str], key: str) -> bool:
    """Whether several tasks leave their output under one key."""
    return sum(1 for task, each in keys.items() if each == key and isinstance(task, str)) > 1


def _asked(chain: Chain) -> frozenset[str]:
    """Return the names that inputs and templates of tasks may ask for."""
    found = {task.input_var for task in chain.tasks.values() if task.input_var}
    for task in chain.tasks.values():
        found |= {*re.findall(r"\w+", task.template or "")}
    return frozenset(found)


def _picks(chain: Chain) -> frozenset[str]:
    """Return the variables that are taken out of an output on the way, under keys of their own."""
    ways = [each.value.get("compose") for each in chain.tasks.values()]
    ways += [branch.compose for each in chain.tasks.values() for branch in each.branches]
    found = {each["with_var"] for each in ways if each and _picked(each) is not None}
    return frozenset(
        each for each in found - {INPUT, FAILED, *chain.tasks} if not each.endswith("_error")
    )


def _picked(compose: Mapping[str, Any]) -> str | None:
    """Return the path by which a composition takes a variable out of an output, if it does."""
    strategy = compose.get("strategy") or ""
    path = str(strategy).removeprefix(JSON_PATH).strip()
    # A second root would be that of the data.
    return path if path != strategy and path.rfind("$") == 0 else None


def _takes(task: Task) -> bool:
    """Whether a task is given what moves along to it."""
    return not task.input_var and (not task.template or "previous_output" in task.template)


def _ends(task: Task) -> bool:
    """Whether a task only ends the chain, with a variable or what moves along."""
    behind = [(each.operator, each.goto, each.compose) for each in task.branches]
    plain = task.handler == "noop" and not task.template and not task.value.get("compose")
    return plain and task.on_failure is None and behind == [("default", END, None)]


def _leaves(task: Task, asked: frozenset[str]) -> bool:
    """Whether a task that fails leaves its input under its name, not just where it moves along."""
    return bool(task.template or task.input_var) or task.id in asked


def _keys(chain: Chain) -> dict[Any, str]:
    """Return under which keys tasks leave their output; for `("", task)` what moves along to it.

    What several tasks hand on to one stands under one key.
    """
    group: dict[Any, Any] = {}

    def top(each: Any) -> Any:
        while group.get(each, each) != each:
            each = group[each]
        return each

    def join(one: Any, other: Any) -> None:
        one, other = top(one), top(other)
        if one != other:
            group[other] = one

    used = {task.id for task in chain.tasks.values() if _takes(task)}
    for task in chain.tasks.values():
        if task.handler == "noop" and not task.template and not task.input_var:
            join(("", task.id), task.id)
    if chain.start.id in used:
        join(INPUT, ("", chain.start.id))
    asked = _asked(chain)
    for task in chain.tasks.values():
        caught = chain.caught(task)
        rescue = chain.rescue(task)
        goes = {each.goto for each in task.branches if each is not caught}
        for goto in goes - {END}:
            if goto in used:
                join(("", goto), task.id)
        if rescue in used:
            join(("", rescue), task.id if _leaves(task, asked) else ("", task.id))
    found: dict[Any, str] = {}
    named: dict[Any, str] = {top(INPUT): INPUT}
    for each in (*chain.tasks, *(("", name) for name in chain.tasks), *sorted(_picks(chain))):
        if top(each) not in named:
            name = each if isinstance(each, str) else f"before_{each[1]}"
            wanted = re.sub(r"\W+", "_", name, flags=re.ASCII) or "task"
            wanted = wanted if not wanted[0].isdigit() else f"task_{wanted}"
            named[top(each)] = fresh(wanted, named.values(), "_")
        found[each] = named[top(each)]
    return {INPUT: INPUT, **found}
