"""The machine of a blueprint: its states, in JSONata.

A step becomes a Task of its name (a Pass where nobody is asked) whose `Output` puts the result into
the data. Each state of a state machine begins with a state of its name, its rules are a Choice
behind its last step; a question is an Approval, branches are a Parallel, items a Map, rounds a
Choice that leads back.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.flujo.blueprint import Blueprint, Body, Machine, Rule, Step
from asl.dialects.flujo.conditions import fails, plain, yields_boolean
from asl.dialects.flujo.options import Options
from asl.dialects.queries import literal, query
from asl.expr.flujo.forks import REDUCERS

__all__ = ["BUILTINS", "Built", "built"]

INPUT: Final = "$states.input"
RESULT: Final = "$states.result"
MAX_NAME: Final = 80
ROOM: Final = 16
"""Characters of a name that are left for what is put behind it."""
FAILED: Final = "Flujo.StepFailed"
DEFAULT_LOOPS: Final = 5
"""How often a loop runs that says when it is over, but not how often at most."""


class Built(NamedTuple):
    """A machine, where its parts were written, and what there is to say."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    machines: dict[str, Json]
    """The state machines by their names in the document: where each is written, and which of its
    states have another name there."""
    findings: list[Finding]


class Then(NamedTuple):
    """Where a step leads that has worked: None ends the machine that it stands in.

    `closes` are the steps that end with it, the innermost first: its output is theirs.
    """

    next: str | None
    closes: tuple[str, ...] = ()


class Failing(NamedTuple):
    """Where a step leads that has failed; as which step, if not as itself."""

    next: str
    step: str | None = None


def built(blueprint: Blueprint, options: Options) -> Built:
    """Build the machine of a blueprint without errors."""
    builder = _Builder(blueprint, options)
    return Built(builder.whole(), builder.origins, builder.machines, builder.findings)


class _Builder:
    def __init__(self, blueprint: Blueprint, options: Options) -> None:
        self.blueprint = blueprint
        self.options = options
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.findings: list[Finding] = []
        self.machines: dict[str, Json] = {}
        self.taken: set[str] = set()
        self.first: str | None = None
        """The state that is given the input of the execution as it is."""

    def whole(self) -> dict[str, Json]:
        top = _States(self)
        steps = self.blueprint.steps
        if not steps:
            output = query(f"$flujo_result({INPUT})")
            return {"StartAt": "end", "States": {"end": {"Type": "Succeed", "Output": output}}}
        for step in steps:
            top.name(step, "")
        self.first = top.entry(steps[0])
        start = top.sequence(steps, Then(top.end()), None)
        return top.machine(str(start))

    def name(self, text: str, within: str = "") -> str:
        """Return a name that no other state of the whole document has, with room for a part."""
        longest = MAX_NAME if ":" in text else MAX_NAME - ROOM
        base = text[:longest] or "_"
        if base in self.taken and within:
            base = f"{within}/{text}"[:longest]
        found, number = base, 1
        while found in self.taken:
            number += 1
            found = f"{base[: longest - 6]}~{number}"
        self.taken.add(found)
        return found


class _State(NamedTuple):
    """The state of a state machine whose steps are built."""

    machine: Machine
    name: str
    targets: Mapping[str, str]
    """The states of the document that its states begin with, and its end states."""


class _States:
    """The states of one machine of the document under construction."""

    def __init__(
        self, builder: _Builder, *, inside: bool = False, within: str = "", top: bool = True
    ) -> None:
        self.builder = builder
        self.options = builder.options
        self.states: dict[str, dict[str, Json]] = {}
        self.names: dict[str, str] = {}
        """The names of the states by the pointers of their steps."""
        self.inside = inside
        """Whether it stands in a state of a state machine."""
        self.within = within
        self.top = top
        self.state: _State | None = None
        self.ending: str | None = None
        self.questions: dict[tuple[str, str], str] = {}
        """The questions that lead to another state, by the step and that state."""

    # Parts

    def machine(self, start: str) -> dict[str, Json]:
        """Return the machine with the states that are reached."""
        reached: set[str] = set()
        todo = [start]
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached.add(name)
            if name == self.ending and name not in self.states:
                output = query(f"$flujo_result({INPUT})" if self.top else INPUT)
                self.states[name] = {"Type": "Succeed", "Output": output}
            todo += _targets(self.states[name])
        self.tell_unreached(reached)
        states = {name: state for name, state in self.states.items() if name in reached}
        return {"StartAt": start, "States": states}

    def tell_unreached(self, reached: set[str]) -> None:
        for pointer, name in self.names.items():
            asked = f"{name}:pause" in reached  # with another state behind it
            if name in self.states and name not in reached and not asked:
                message = f"the step {name!r} is never reached, so it is left out"
                self.builder.findings.append(Finding("FL-UNREACHABLE", message, pointer))

    def put(self, name: str, state: dict[str, Json], pointer: str) -> dict[str, Json]:
        self.states[name] = state
        self.builder.origins.append((state, pointer))
        return state

    def name(self, step: Step, within: str | None = None) -> str:
        """Return the name of a step's state."""
        if step.pointer not in self.names:
            inside = self.within if within is None else within
            self.names[step.pointer] = self.builder.name(step.name, inside)
        return self.names[step.pointer]

    def entry(self, step: Step) -> str:
        """Return the state that a step begins with."""
        if step.kind == "cache":
            return self.entry(step.wrapped)
        name = self.name(step)
        return f"{name}:pause" if step.kind == "hitl" and self.leaves(step) else name

    def end(self) -> str:
        """Return the state that ends this machine."""
        if self.ending is None:
            self.ending = self.builder.name("end", self.within)
        return self.ending

    def going(self, then: Then) -> dict[str, Json]:
        return {"End": True} if then.next is None else {"Next": then.next}

    def target(self, then: Then) -> str:
        return self.end() if then.next is None else then.next

    def closing(self, data: str, then: Then) -> str:
        """Return the data behind a step, and behind all steps that end with it."""
        return f"$flujo_close({data}, {literal([*then.closes])})" if then.closes else data

    def call(self, function: str, *arguments: Json) -> str:
        """Return the call of a function of the dialect; None at the end is left out."""
        given = [*arguments]
        while given and given[-1] in (None, {}):
            given.pop()
        return f"$flujo_{function}({', '.join([INPUT, *map(str, given)])})"

    def found(self, code: str, message: str, pointer: str, hint: str | None = None) -> None:
        self.builder.findings.append(Finding(code, message, pointer, hint))

    # Data

    def moving(self, name: str) -> str:
        """Return what moves along, as the state *name* sees it."""
        return f"$flujo_input({INPUT})" if name == self.builder.first else f"{INPUT}.previous_step"

    def context(self, name: str) -> str:
        return f"$flujo_context({INPUT})" if name == self.builder.first else f"{INPUT}.context"

    def text(self, template: str) -> str:
        return (
            f"$flujo_text({INPUT}, {literal(template)})" if "{{" in template else literal(template)
        )

    def given(self, step: Step, name: str) -> str:
        """Return the input of a step as an expression."""
        value = step.value.get("input")
        if value is None:
            return self.moving(name)
        return self.text(value) if isinstance(value, str) else literal(value)

    def mode(self) -> str | None:
        """Return the argument that says how values compare."""
        return literal(self.options.expressions) if self.options.expressions else None

    # Steps

    def sequence(
        self, steps: Iterable[Step], then: Then, failing: Failing | None, *, each: bool = False
    ) -> str | None:
        """Build steps that follow each other, and return where they begin.

        With *each* a failing step is followed by the next one, and only the last one has failed.
        """
        listed = [*steps]
        for step in listed:
            self.name(step)
        for index, step in enumerate(listed):
            last = index + 1 == len(listed)
            following = then if last else Then(self.entry(listed[index + 1]))
            way = failing
            if each and not last:
                way = Failing(self.entry(listed[index + 1]))
            self.built(step, following, way)
        return self.entry(listed[0]) if listed else then.next

    def built(self, step: Step, then: Then, failing: Failing | None) -> None:
        _KINDS[step.kind](self, step, then, failing)

    def work(self, step: Step, then: Then, failing: Failing | None) -> None:
        """Build a step of the usual kind."""
        name = self.name(step)
        agent = step.agent
        if agent is None:
            self.passing(step, self.given(step, name), then)
            return
        build = BUILTINS.get(agent.replace(":", "."))
        made = build(self, step, name) if build is not None else None
        if made is not None:
            made = self.closing(made, then)
            self.put(name, {"Type": "Pass", "Output": query(made)} | self.going(then), step.pointer)
            return
        arguments: dict[str, Json] = {
            "input": query(self.given(step, name)),
            "context": query(self.context(name)),
        }
        if step.params:
            arguments["params"] = _plain(dict(step.params))
        self.asking(step, name, agent, arguments, then, failing)

    def passing(self, step: Step, value: str, then: Then) -> None:
        """Build a step that asks nobody."""
        name = self.name(step)
        output = self.closing(self.done(step, value), then)
        self.put(name, {"Type": "Pass", "Output": query(output)} | self.going(then), step.pointer)

    def done(self, step: Step, result: str) -> str:
        flags = literal(step.flags) if step.flags else None
        return self.call("done", literal(step.name), result, flags)

    def asking(
        self,
        step: Step,
        name: str,
        agent: str,
        arguments: dict[str, Json],
        then: Then,
        failing: Failing | None,
        output: str | None = None,
    ) -> None:
        """Build the Task of an agent."""
        state: dict[str, Json] = {"Type": "Task", "Agent": agent, "Arguments": arguments}
        if step.timeout is not None and step.timeout > 0:
            state["TimeoutSeconds"] = max(1, math.ceil(step.timeout))
        if step.retries:
            state["Retry"] = [
                {
                    "ErrorEquals": ["States.ALL"],
                    "IntervalSeconds": 0,
                    "MaxAttempts": step.retries,
                    "BackoffRate": 1,
                }
            ]
        fallback = step.fallback
        if fallback is not None:
            state["Catch"] = [
                {
                    "ErrorEquals": ["States.ALL"],
                    "Output": query(INPUT),
                    "Next": self.rescue(step, fallback, arguments, then, failing),
                }
            ]
        elif failing is not None:
            state["Catch"] = self.catch(step, failing)
        found = self.done(step, RESULT) if output is None else output
        state["Output"] = query(self.closing(found, then))
        self.put(name, state | self.going(then), step.pointer)

    def rescue(
        self,
        step: Step,
        fallback: Step,
        arguments: dict[str, Json],
        then: Then,
        failing: Failing | None,
    ) -> str:
        """Build a fallback: it is given what the step was given, and its result counts."""
        name = self.name(fallback)
        agent = fallback.agent
        own = fallback.value.get("input") is not None
        value = self.given(fallback, name) if own else _unquoted(str(arguments["input"]))
        if agent is None or agent.replace(":", ".") in BUILTINS:
            output = self.closing(self.done(step, value), then)
            state = {"Type": "Pass", "Output": query(output)} | self.going(then)
            self.put(name, state, fallback.pointer)
            return name
        given = {**arguments, "input": query(value)}
        given.pop("params", None)
        if fallback.params:
            given["params"] = _plain(dict(fallback.params))
        way = failing and Failing(failing.next, failing.step or step.name)
        self.asking(fallback, name, agent, given, then, way, self.done(step, RESULT))
        return name

    def catch(self, step: Step, failing: Failing) -> list[Json]:
        reported = literal(failing.step or step.name)
        output = self.call("failed", reported, "$states.errorOutput")
        caught = {"ErrorEquals": ["States.ALL"], "Output": query(output), "Next": failing.next}
        return [caught]

    def fail(self, step: Step, failing: Failing | None, error: str, cause: str) -> dict[str, Json]:
        """Return the way of a rule to the failure of a step, which no Catch can hold."""
        if failing is None:
            name = self.builder.name(f"{self.name(step)}:failed")
            state: dict[str, Json] = {"Type": "Fail", "Error": error, "Cause": query(cause)}
            self.put(name, state, step.pointer)
            return {"Next": name}
        told = f"{{'Error': {literal(error)}, 'Cause': {cause}}}"
        output = self.call("failed", literal(failing.step or step.name), told)
        return {"Output": query(output), "Next": failing.next}

    # People

    def ways(self, step: Step) -> list[Rule]:
        """Return the rules of a pause, up to the first one that always holds."""
        if self.state is None:
            return []
        return self.state.machine.tried(self.state.name, "pause")

    def leaves(self, step: Step) -> bool:
        """Whether a pause may lead to another state."""
        return self.state is not None and any(
            rule.target != self.state.name for rule in self.ways(step)
        )

    def question(self, step: Step, then: Then, failing: Failing | None) -> None:
        name = self.name(step)
        flags = literal(step.flags) if step.flags else None
        answer = f"{RESULT}.approval"
        output = self.closing(self.call("answered", literal(step.name), answer, flags), then)
        self.put(name, self.approval(step, output) | self.going(then), step.pointer)
        if self.leaves(step):
            self.pausing(step, name, flags)

    def approval(self, step: Step, output: str) -> dict[str, Json]:
        message = step.value.get("message")
        if message is None and isinstance(step.value.get("input"), str):
            message = step.value["input"]
        prompt: str = message or step.name
        if "{{" in prompt or "{%" in prompt:
            prompt = query(self.text(prompt))
        return {"Type": "Approval", "Prompt": prompt, "Options": ["*"], "Output": query(output)}

    def pausing(self, step: Step, name: str, flags: str | None) -> None:
        """Build the rules of a pause, and the question for each state that they lead to."""
        assert self.state is not None
        state, entry = self.state, f"{name}:pause"
        self.builder.taken.add(entry)
        options = {
            key: value
            for key, value in (
                ("expressions", self.options.expressions),
                ("pause", self.options.pause if self.options.pause == "runtime" else ""),
            )
            if value
        }
        choices: list[Json] = []
        default: dict[str, Json] = {"Next": name}
        for rule in self.ways(step):
            way = self.paused(step, rule, name, flags) if rule.target != state.name else default
            if rule.when is None:
                default = way
                break
            said = literal(options) if options else None
            condition = self.call("pausing", literal(rule.when), said)
            made = {"Condition": query(condition), **way}
            self.builder.origins.append((made, rule.pointer))
            choices.append(made)
        if not choices:
            self.put(entry, {"Type": "Pass"} | default, step.pointer)
            return
        choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
        if "Output" in default:
            choice["Output"] = default["Output"]
        self.put(entry, choice | {"Default": default["Next"]}, step.pointer)

    def paused(self, step: Step, rule: Rule, name: str, flags: str | None) -> dict[str, Json]:
        """Return the way to a question whose answer begins another state."""
        assert self.state is not None
        asked = self.questions.get((name, rule.target))
        if asked is None:
            asked = self.builder.name(f"{name[:40]}>{rule.target}")
            self.questions[name, rule.target] = asked
            output = self.call("resume", f"{RESULT}.approval", flags)
            following = {"Next": self.state.targets[rule.target]}
            self.put(asked, self.approval(step, output) | following, step.pointer)
        return {"Output": query(self.call("pause", literal(rule.target))), "Next": asked}

    # Decisions

    def conditional(self, step: Step, then: Then, failing: Failing | None) -> None:
        name = self.name(step)
        inner = Then(then.next, (step.name, *then.closes))
        way = failing and Failing(failing.next, failing.step or step.name)
        choice: dict[str, Json] = {"Type": "Choice"}
        function = step.value.get("condition")
        condition = step.value.get("condition_expression")
        if condition is None and function:
            decided = f"{INPUT}.decision"
            if function.replace(":", ".").removesuffix("_sync") == CONFIRMATION:
                decided = f"$flujo_confirmed({INPUT})"
                self.put(name, choice, step.pointer)
            else:
                self.deciding(step, function, f"{name}:if", failing)
                self.put(f"{name}:if", choice, step.pointer)
        else:
            decided = self.call(
                "key", None if condition is None else literal(condition), self.mode()
            )
            self.put(name, choice, step.pointer)
        choices: list[Json] = []
        bodies = step.branches
        for branch, body in bodies.items():
            made = {"Condition": query(f"{decided} = {literal(branch)}")}
            said = self.lowered(step, name, condition, branch)
            if said is not None:
                made["Condition"] = query(said)
            choices.append(made | self.branch(step, body, inner, way))
            self.builder.origins.append((choices[-1], body.pointer))
        choice["Choices"] = choices
        self.otherwise(step, choice, decided, condition, inner, failing)

    def lowered(self, step: Step, name: str, condition: str | None, branch: str) -> str | None:
        """Return what decides for a branch where JSONata says so itself."""
        if condition is None or branch not in ("true", "false") or name == self.builder.first:
            return None
        if not yields_boolean(condition):
            return None
        said = plain(condition, "previous_step")
        return said if said is None or branch == "true" else f"$not({said})"

    def branch(
        self, step: Step, body: Body, then: Then, failing: Failing | None
    ) -> dict[str, Json]:
        """Build the steps behind a rule, and return its way there."""
        data = self.call("data") if self.name(step) == self.builder.first else INPUT
        start = self.sequence(body.steps, then, failing)
        if not body.steps:
            return {"Output": query(self.closing(data, then)), "Next": self.target(then)}
        return ({} if data == INPUT else {"Output": query(data)}) | {"Next": start}

    def otherwise(
        self,
        step: Step,
        choice: dict[str, Json],
        decided: str,
        condition: str | None,
        then: Then,
        failing: Failing | None,
    ) -> None:
        """Say what happens where no branch is named."""
        way = failing and Failing(failing.next, failing.step or step.name)
        choices = choice["Choices"]
        assert isinstance(choices, list)
        default = step.default
        unsaid = condition is None and not step.value.get("condition")
        if default is None and unsaid and step.branches:
            default = next(iter(step.branches.values()))
            choices.pop(0)
        elif default is None and condition is not None and self.both(step, condition):
            last = choices.pop()
            assert isinstance(last, dict)
            choice |= {key: last[key] for key in ("Output",) if key in last}
            choice["Default"] = last["Next"]
            return
        if default is not None:
            if condition is not None and (fails(condition, self.options.expressions)):
                cause = literal("the condition fails or names no branch")
                failed = self.fail(step, failing, "Flujo.NoBranch", cause)
                choices.insert(0, {"Condition": query(f"{decided} = null"), **failed})
            made = self.branch(step, default, then, way)
        else:
            cause = f"'No branch found for ' & $string({decided})"
            made = self.fail(step, failing, "Flujo.NoBranch", cause)
        if "Output" in made:
            choice["Output"] = made["Output"]
        choice["Default"] = made["Next"]
        if not choices:
            name = next(key for key, each in self.states.items() if each is choice)
            kept = {key: each for key, each in made.items() if key == "Output"}
            choice.clear()
            choice |= {"Type": "Pass", **kept, "Next": made["Next"]}
            self.states[name] = choice

    def both(self, step: Step, condition: str) -> bool:
        """Whether a condition always names one of two branches."""
        named = {*step.branches} == {"true", "false"} and [*step.branches][-1] in ("true", "false")
        return (
            named and yields_boolean(condition) and not fails(condition, self.options.expressions)
        )

    def deciding(self, step: Step, function: str, following: str, failing: Failing | None) -> None:
        """Build the Task of a function that decides."""
        name = self.name(step) if step.kind == "conditional" else f"{self.name(step)}:until"
        self.builder.taken.add(following)
        self.found(
            "FL-CODE",
            f"{function!r} is code, so an agent of its name is asked",
            step.at("condition")
            if step.kind == "conditional"
            else step.at("loop", "exit_condition"),
            "bind an agent of this name, or write an expression",
        )
        state: dict[str, Json] = {
            "Type": "Task",
            "Agent": function,
            "Arguments": {
                "input": query(self.moving(name)),
                "context": query(self.context(name)),
            },
        }
        if failing is not None:
            state["Catch"] = self.catch(step, failing)
        state |= {"Output": query(self.call("decide", RESULT)), "Next": following}
        self.put(name, state, step.pointer)

    # Rounds

    def loop(self, step: Step, then: Then, failing: Failing | None) -> None:
        name, spec = self.name(step), step.spec
        body = step.body("loop", "body")
        again = f"{name}:again"
        self.builder.taken.add(again)
        condition, function = spec.get("exit_expression"), spec.get("exit_condition")
        limited = condition is not None or function is not None
        most = spec.get("max_loops", DEFAULT_LOOPS if limited else 1)
        way = failing and Failing(failing.next, failing.step or step.name)
        following = f"{name}:until" if condition is None and function else again
        self.builder.taken.add(following)
        first = self.sequence(body.steps, Then(following), way)
        start = {"Type": "Pass", "Output": query(self.call("loop", literal(step.name)))}
        self.put(name, start | {"Next": first}, step.pointer)
        if following != again:
            self.deciding(step, str(function), again, failing)
        flags = literal(step.flags) if step.flags else None
        leaving = self.call("looped", literal(step.name), flags)
        output = query(self.closing(leaving, then))
        if not limited and most == 1:
            self.put(again, {"Type": "Pass", "Output": output} | self.going(then), step.pointer)
            return
        choices: list[Json] = []
        if condition is not None:
            over = self.call("until", literal(condition), self.mode())
            if fails(condition, self.options.expressions):
                cause = literal("the exit expression fails")
                failed = self.fail(step, failing, FAILED, cause)
                choices.append({"Condition": query(f"{over} = null"), **failed})
            said = plain(condition, "previous_step")
            holds = f"{over} = true" if said is None else said
            rule = {"Condition": query(holds), "Output": output, "Next": self.target(then)}
            choices.append(rule)
            self.builder.origins.append((rule, step.at("loop", "exit_expression")))
        elif function is not None:
            holds = f"{INPUT}.decision = 'true'"
            rule = {"Condition": query(holds), "Output": output, "Next": self.target(then)}
            choices.append(rule)
        rounds = self.call("rounds", literal(step.name))
        choices.append(
            {
                "Condition": query(f"{rounds} < {most}"),
                "Output": query(self.call("again", literal(step.name))),
                "Next": first,
            }
        )
        cause = literal(f"the loop is not over after {most} rounds")
        failed = self.fail(step, failing, FAILED, cause)
        choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
        if "Output" in failed:
            choice["Output"] = failed["Output"]
        self.put(again, choice | {"Default": failed["Next"]}, step.pointer)

    # Forks

    def fork(self, within: str) -> "_States":
        """Return the states of a machine within this one."""
        return _States(self.builder, inside=self.inside, within=within, top=False)

    def forked(self, body: Body, name: str, lead: dict[str, Json] | None = None) -> dict[str, Json]:
        """Build a branch; one that fails hands back its message, so that the others go on."""
        branch = self.fork(name)
        failed = self.builder.name(f"{name}:failed")
        for step in body.steps:
            branch.name(step)
        start = branch.sequence(body.steps, Then(None), Failing(failed))
        output = f"{{'failed': {INPUT}.output.last_step.feedback}}"
        branch.states[failed] = {"Type": "Pass", "Output": query(output), "End": True}
        if start is None:
            start = self.builder.name(f"{name}:nothing")
            branch.states[start] = {"Type": "Pass", "End": True}
        return branch.machine(start)

    def parallel(self, step: Step, then: Then, failing: Failing | None) -> None:
        name = self.name(step)
        bodies = step.branches
        if not bodies:
            self.passing(step, literal({}), then)
            return
        branches: list[Json] = [
            self.forked(body, branch if bodies else name) for branch, body in bodies.items()
        ]
        flags: dict[str, Json] = {**step.flags}
        reduce = step.value.get("reduce")
        if isinstance(reduce, dict):
            reduce = reduce.get("strategy", reduce.get("kind"))
        coded = isinstance(reduce, str) and reduce not in REDUCERS
        if reduce and not coded:
            flags["reduce"] = reduce
        merge = step.value.get("merge_strategy", "context_update")
        if merge != "context_update":
            flags["merge"] = merge
        if step.value.get("on_branch_failure") == "ignore":
            flags["ignore"] = True
        output = self.call(
            "join",
            literal(step.name),
            RESULT,
            literal([*bodies]),
            literal(flags) if flags else None,
        )
        state: dict[str, Json] = {"Type": "Parallel", "Branches": branches}
        if name == self.builder.first:
            state["Arguments"] = query(self.call("data"))
        if failing is not None:
            state["Catch"] = self.catch(step, failing)
        if coded:
            following = self.builder.name(f"{name}:reduce")
            state |= {"Output": query(output), "Next": following}
            self.put(name, state, step.pointer)
            self.reducing(step, following, str(reduce), then, failing)
            return
        state["Output"] = query(self.closing(output, then))
        self.put(name, state | self.going(then), step.pointer)

    def reducing(
        self, step: Step, name: str, function: str, then: Then, failing: Failing | None
    ) -> None:
        self.found(
            "FL-CODE",
            f"{function!r} is code, so an agent of its name is asked",
            step.at("reduce"),
            f"bind an agent of this name, or take one of {', '.join(REDUCERS)}",
        )
        arguments: dict[str, Json] = {
            "input": query(f"{INPUT}.previous_step"),
            "context": query(f"{INPUT}.context"),
        }
        self.asking(step, name, function, arguments, then, failing)

    def each(self, step: Step, then: Then, failing: Failing | None) -> None:
        """Build the Map of a map step."""
        name, source = self.name(step), step.spec["iterable_input"]
        body = step.body("map", "body")
        if len(body.steps) == 1:
            processor = self.forked(body, name)
        else:
            inner = self.fork(name)
            start = inner.sequence(body.steps, Then(None), None)
            if start is None:
                start = self.builder.name(f"{name}:nothing")
                inner.states[start] = {"Type": "Pass", "End": True}
            processor = inner.machine(start)
        items = literal(source) if isinstance(source, list) else self.call("items", literal(source))
        selector = f"$flujo_item({INPUT}, $states.context.Map.Item.Value)"
        state: dict[str, Json] = {
            "Type": "Map",
            "Items": query(items) if not isinstance(source, list) else source,
            "ItemSelector": query(selector),
            "MaxConcurrency": 1,
            "ItemProcessor": processor,
        }
        if failing is not None:
            state["Catch"] = self.catch(step, failing)
        flags = literal(step.flags) if step.flags else None
        output = self.call("collect", literal(step.name), RESULT, flags)
        state["Output"] = query(self.closing(output, then))
        self.put(name, state | self.going(then), step.pointer)

    def router(self, step: Step, then: Then, failing: Failing | None) -> None:
        """Build an agent that names branches, and those branches side by side."""
        name, agent = self.name(step), step.spec["router_agent"]
        if isinstance(agent, dict):
            agent = agent.get("id", agent.get("path", step.name))
        if not step.branches:
            self.passing(step, literal({}), then)
            return
        following = self.builder.name(f"{name}:branches")
        arguments: dict[str, Json] = {
            "input": query(self.given(step, name)),
            "context": query(self.context(name)),
        }
        routed = self.call("routed", literal(step.name), RESULT)
        chosen = str(agent).removeprefix("agents.")
        self.asking(step, name, chosen, arguments, Then(following), failing, routed)
        branches: list[Json] = []
        for branch, body in step.branches.items():
            machine = self.forked(body, branch)
            gate, skipped = (self.builder.name(f"{branch}:{each}") for each in ("if", "skipped"))
            asked = query(f"{literal(branch)} in {INPUT}.routes")
            machine["States"] |= {
                gate: {
                    "Type": "Choice",
                    "Choices": [{"Condition": asked, "Next": machine["StartAt"]}],
                    "Default": skipped,
                },
                skipped: {"Type": "Pass", "Output": {"skipped": True}, "End": True},
            }
            branches.append({"StartAt": gate, "States": machine["States"]})
        flags = literal(step.flags) if step.flags else None
        names = literal([*step.branches])
        output = self.call("join", literal(step.name), RESULT, names, flags)
        state: dict[str, Json] = {"Type": "Parallel", "Branches": branches}
        if failing is not None:
            state["Catch"] = self.catch(step, failing)
        state["Output"] = query(self.closing(output, then))
        self.put(following, state | self.going(then), step.pointer)

    def agentic(self, step: Step, then: Then, failing: Failing | None) -> None:
        name = self.name(step)
        self.found(
            "FL-AGENTIC",
            "the whole loop of planner and tools is one agent here",
            step.pointer,
            f"bind {step.value['planner']!r} to an agent that plans and calls its tools itself",
        )
        arguments: dict[str, Json] = {
            "input": query(self.given(step, name)),
            "context": query(self.context(name)),
        }
        registry = step.value.get("registry")
        if registry:
            arguments["registry"] = _plain(registry)
        self.asking(step, name, step.value["planner"], arguments, then, failing)

    def cached(self, step: Step, then: Then, failing: Failing | None) -> None:
        closes = Then(then.next, (step.name, *then.closes))
        self.built(step.wrapped, closes, failing)

    # State machines

    def orchestration(self, step: Step, then: Then, failing: Failing | None) -> None:
        """Build a state machine; one within a state of another has control fields of its own."""
        if not self.inside:
            _Orchestration(self, step, then, failing).built()
            return
        name = self.name(step)
        inner = self.fork(name)
        inner.inside = False
        start = _Orchestration(inner, step, Then(None), None).built(f"{name}:machine")
        output = self.call("outer", literal(step.name), f"{RESULT}[0]")
        state: dict[str, Json] = {
            "Type": "Parallel",
            "Arguments": query(self.call("inner")),
            "Branches": [inner.machine(start)],
        }
        if failing is not None:
            state["Catch"] = self.catch(step, failing)
        state["Output"] = query(self.closing(output, then))
        self.put(name, state | self.going(then), step.pointer)


class _Orchestration:
    """A state machine under construction."""

    def __init__(self, states: _States, step: Step, then: Then, failing: Failing | None) -> None:
        self.states = states
        self.builder = states.builder
        self.options = states.options
        self.step = step
        self.machine = step.machine
        self.then = then
        self.failing = failing
        self.name = self.enter = ""
        self.guarded = False
        """Whether the machine may go round and round."""
        self.targets: dict[str, str] = {}
        self.decided: dict[tuple[str, str], str] = {}
        """Where it goes behind each state at each event."""
        self.next: str | None = None
        """The state that looks for a `next_state`, where one may be needed."""
        self.stop: str | None = None

    def own(self, part: str) -> str:
        return self.builder.name(f"{self.name}:{part}")

    def built(self, name: str | None = None) -> str:
        """Build the states and return where the machine begins."""
        machine, states = self.machine, self.states
        self.name = states.name(self.step) if name is None else self.builder.name(name)
        self.enter = self.own("enter")
        for each in (*machine.states, *machine.ends):
            if each not in self.targets:
                self.targets[each] = self.builder.name(each, self.name)
        about: dict[str, Json] = {"at": self.step.pointer}
        renamed = {each: target for each, target in self.targets.items() if each != target}
        self.builder.machines[self.name] = about | ({"names": renamed} if renamed else {})
        start = states.call("start", literal(self.name), literal(machine.start))
        begin: dict[str, Json] = {"Type": "Pass", "Output": query(start), "Next": self.enter}
        states.put(self.name, begin, self.step.pointer)
        for each in machine.states:
            self.decide(each, "success")
            if any(map(_can_fail, machine.states[each].steps)):
                self.decide(each, "failure")
        self.guarded = self.next is not None or _cyclic(machine)
        self.dispatch()
        for each, body in machine.states.items():
            self.state(each, body)
        for each in dict.fromkeys(machine.ends):
            self.leave(self.targets[each], each)
        return self.name

    def dispatch(self) -> None:
        """Build the state that goes to the state that the context names."""
        choices: list[Json] = [
            {
                "Condition": query(f"{INPUT}.context.current_state = {literal(name)}"),
                "Next": target,
            }
            for name, target in self.targets.items()
        ]
        unknown = self.own("unknown")
        cause = f"'Unknown state: ' & {INPUT}.context.current_state"
        choice = {"Type": "Choice", "Choices": choices, "Default": unknown}
        self.states.put(self.enter, choice, self.step.pointer)
        way = self.states.fail(self.step, self.failing, "Flujo.UnknownState", cause)
        if self.failing is None:
            self.states.states[unknown] = self.states.states.pop(str(way["Next"]))
        else:
            self.states.put(unknown, {"Type": "Pass", **way}, self.step.pointer)

    def state(self, name: str, body: Body) -> None:
        """Build a state: what it begins with, and its steps."""
        states, target = self.states, self.targets[name]
        options: dict[str, Json] = {}
        if _asks(body.steps):
            options["asks"] = True
        if self.options.next_state == "engine":
            options["next_state"] = "engine"
        enter = states.call("enter", literal(name), literal(options) if options else None)
        outer = (states.state, states.inside, states.within)
        states.state = _State(self.machine, name, self.targets)
        states.inside, states.within = True, target
        success = self.decided[name, "success"]
        failing = None
        if (name, "failure") in self.decided:
            failing = Failing(self.decided[name, "failure"])
        each = self.options.event == "last-step"
        first = states.sequence(body.steps, Then(success), failing, each=each)
        states.state, states.inside, states.within = outer
        assert first is not None
        if not self.guarded:
            begin: dict[str, Json] = {"Type": "Pass", "Output": query(enter), "Next": first}
        else:
            capped = {
                "Condition": query(f"{INPUT}.machine.hops >= {self.machine.cap}"),
                "Output": query(states.call("capped", literal(name))),
                "Next": self.exhausted(),
            }
            begin = {
                "Type": "Choice",
                "Choices": [capped],
                "Output": query(enter),
                "Default": first,
            }
        states.put(target, begin, body.pointer)

    # Rules

    def decide(self, state: str, event: str) -> None:
        """Build the rules behind a state at an event, and remember where they begin."""
        choices: list[Json] = []
        default: str | None = None
        for rule in self.machine.tried(state, event):
            if rule.when is None:
                default = self.targets[rule.target]
                break
            made: dict[str, Json] = {
                "Condition": query(self.condition(rule.when)),
                "Next": self.targets[rule.target],
            }
            self.builder.origins.append((made, rule.pointer))
            choices.append(made)
        default = self.asked_for() if default is None else default
        if not choices:
            self.decided[state, event] = default
            return
        name = self.builder.name(f"{self.targets[state]}:{event}")
        choice = {"Type": "Choice", "Choices": choices, "Default": default}
        self.states.put(name, choice, f"{self.step.pointer}/transitions")
        self.decided[state, event] = name

    def condition(self, text: str) -> str:
        said = plain(text, "output")
        return said or self.states.call("when", literal(text), self.states.mode())

    def asked_for(self) -> str:
        """Return the state that goes on with a `next_state`, or stops."""
        if self.next is None:
            self.next = self.own("next")
            stop = {
                "Condition": query(f"{self.states.call('following')} = null"),
                "Next": self.stopped(),
            }
            choice: dict[str, Json] = {
                "Type": "Choice",
                "Choices": [stop],
                "Output": query(self.states.call("follow")),
                "Default": self.enter,
            }
            self.states.put(self.next, choice, self.step.pointer)
        return self.next

    # Ends

    def leave(self, name: str, state: str | None) -> None:
        """Build the end of the machine in an end state, or where it is."""
        states = self.states
        said = None if state is None else literal(state)
        if state in self.options.fail_states:
            failed: dict[str, Json] = {
                "Type": "Fail",
                "Error": f"Flujo.{state}",
                "Cause": query(f"$string({INPUT}.output.last_step.feedback)"),
            }
            states.put(name, failed, self.step.pointer)
        elif states.top and self.then == Then(states.ending):
            output = query(states.call("ended", said))
            states.put(name, {"Type": "Succeed", "Output": output}, self.step.pointer)
        else:
            output = query(states.closing(states.call("left", said), self.then))
            made = {"Type": "Pass", "Output": output} | states.going(self.then)
            states.put(name, made, self.step.pointer)

    def stopped(self) -> str:
        if self.stop is None:
            self.stop = self.own("stop")
            self.leave(self.stop, None)
        return self.stop

    def exhausted(self) -> str:
        """Return where the machine goes that has made all its hops."""
        if self.options.hop_cap != "fail":
            return self.stopped()
        name = f"{self.name}:hops"
        self.builder.taken.add(name)
        cause = f"the machine has made {self.machine.cap} hops"
        state: dict[str, Json] = {"Type": "Fail", "Error": "Flujo.MaxHops", "Cause": cause}
        self.states.put(name, state, self.step.pointer)
        return name


# --------------------------------------------------------------------------------------------
# What is known of steps


def _can_fail(step: Step) -> bool:
    if step.kind == "step":
        agent = step.agent
        return agent is not None and agent.replace(":", ".") not in BUILTINS
    return step.kind != "hitl"


def _asks(steps: Iterable[Step]) -> bool:
    """Whether a step asks people in the state itself, not within branches or items."""
    for step in steps:
        if step.kind == "hitl":
            return True
        if step.kind in ("conditional", "loop", "cache") and any(
            _asks(body.steps) for body in step.bodies()
        ):
            return True
    return False


def _cyclic(machine: Machine) -> bool:
    """Whether rules lead back to a state."""
    ways = {
        name: {rule.target for rule in machine.rules if rule.source in ("*", name)}
        & machine.states.keys()
        for name in machine.states
    }
    left = dict(ways)
    while True:
        ends = [name for name, targets in left.items() if not targets & left.keys()]
        if not ends:
            return bool(left)
        for name in ends:
            del left[name]


def _targets(state: Mapping[str, Any]) -> list[str]:
    found = [state[key] for key in ("Next", "Default") if key in state]
    for key in ("Choices", "Catch"):
        found += [each["Next"] for each in state.get(key, ())]
    return found


def _unquoted(expression: str) -> str:
    return expression.removeprefix("{% ").removesuffix(" %}")


def _plain(value: Json) -> Json:
    """Return a value that is handed over as it is: a text that looks like an expression is one."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str) and ("{%" in value or "%}" in value):
        return query(literal(value))
    return value


# --------------------------------------------------------------------------------------------
# Built-in skills


def _written(function: str) -> "Callable[[_States, Step, str], str | None]":
    def build(states: _States, step: Step, name: str) -> str | None:
        held = step.params or step.value.get("input")
        if not isinstance(held, dict) or not isinstance(held.get("path"), str):
            return None
        value = literal(held.get("value"))
        return states.call(function, literal(step.name), literal(held["path"]), value)

    return build


def _got(states: _States, step: Step, name: str) -> str | None:
    held = step.params or step.value.get("input")
    if not isinstance(held, dict) or not isinstance(held.get("path"), str):
        return None
    default = literal(held["default"]) if held.get("default") is not None else None
    return states.done(step, states.call("get", literal(held["path"]), default))


CONFIRMATION: Final = "flujo.builtins.check_user_confirmation"
BUILTINS: Final[Mapping[str, "Callable[[_States, Step, str], str | None]"]] = {
    "flujo.builtins.context_set": _written("set"),
    "flujo.builtins.context_merge": _written("merge"),
    "flujo.builtins.context_get": _got,
    "flujo.builtins.passthrough": lambda states, step, name: states.done(
        step, states.given(step, name)
    ),
    "flujo.builtins.stringify": lambda states, step, name: states.done(
        step, f"$flujo_stringify({states.given(step, name)})"
    ),
    CONFIRMATION: lambda states, step, name: states.done(step, states.call("confirmed")),
}
"""What built-in skills do that ask nobody, None where the step does not say enough."""

_KINDS: Final[Mapping[str, Callable[[_States, Step, Then, Failing | None], None]]] = {
    "step": _States.work,
    "hitl": _States.question,
    "conditional": _States.conditional,
    "loop": _States.loop,
    "parallel": _States.parallel,
    "map": _States.each,
    "dynamic_router": _States.router,
    "agentic_loop": _States.agentic,
    "cache": _States.cached,
    "StateMachine": _States.orchestration,
}
