"""A machine of a blueprint said again: each state by what its functions do to the data.

What moves along has no place of its own there, so it is followed along all ways to the states that
have made it.
"""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.flujo.blueprint import STEP
from asl.dialects.flujo.functions.control_flow import REDUCERS
from asl.dialects.flujo.functions.pipeline_data import ARTIFACTS
from asl.dialects.flujo.plain.conditions import Beyond
from asl.dialects.flujo.plain.effects import After, Effects
from asl.dialects.flujo.plain.frame import NO_BRANCH
from asl.dialects.flujo.plain.places import START, Env, Makers, joined
from asl.dialects.flujo.plain.terms import Call, Literal, Members, Term, term_of
from asl.dialects.flujo.plain.values import FAILED, NOBODY, Fields, Values, Whole
from asl.dialects.jsonpath_form import leads, path_to

__all__ = ["Machine"]

State = Mapping[str, Any]
PROMPT: Final = "initial_prompt"
"""The field of the context with the input of an imported blueprint, as text."""


class Machine:
    """One machine; *env* is what is known where it begins."""

    def __init__(
        self, whole: Whole, value: State, way: tuple[str | int, ...], env: Env, failing: str = ""
    ) -> None:
        self.whole = whole
        self.places = whole.places
        self.values = Values(whole, way, str(value["StartAt"]))
        self.effects = Effects(self.values)
        self.value = value
        self.start = str(value["StartAt"])
        self.way = way
        self.failing = failing
        """What becomes of a branch that fails: it has `failed`, `null` comes, or an `error`."""
        self.states: dict[str, Json] = {}
        self.envs: dict[str, Env] = {str(value["StartAt"]): env}
        self.ends: Env = {}

    def said(self) -> Fields:
        """Return the machine in plain JSONPath."""
        self.learn()
        for name in self.value["States"]:
            if name in self.envs:
                self.states[name] = self.state(name, self.envs[name])[0]
        passed = {name: each for name, each in self.states.items() if _only_leads(each)}

        def lead(name: Any) -> Any:
            seen: set[str] = set()
            while name in passed and name not in seen:
                seen.add(name)
                name = passed[name]["Next"]
            return name

        own = {step: name for name in passed if self._only_in(name, step := lead(name))}
        stay = (name for name in self.states if lead(name) == name)
        free = {*self.value["States"]} - {own.get(name, name) for name in stay}
        own |= {name: each for name, each in self.whole.authored.items() if each in free}
        kept = {name: each for name, each in self.states.items() if name not in own.values()}
        self.states = {own.get(name, name): each for name, each in kept.items()}
        for step, name in own.items():
            self.whole.made.renamed[self._at(name)] = self._at(step)

        def called(name: Any) -> Any:
            return own.get(lead(name), lead(name))

        for state in self.states.values():
            _led(state, called)
        return self.begins(self.begun(), called(self.start))

    def _only_in(self, name: str, step: str) -> bool:
        """Whether a state of the blueprint has no other step, so that this may have its name.

        Where it has none at all, its rules are all there is of it.
        """
        inside = (f"{name}/", f"{name}{STEP}")
        steps = [each for each in self.states if each.startswith(inside)]
        return steps == [step] or (not steps and step == f"{name}:success")

    def begins(self, passes: list[Fields], target: str) -> Fields:
        """Return the machine that begins with Passes of these fields, and goes on to a state."""
        first = self.via(After({}, passes), target, self.start)
        states = {name: self.states[name] for name in self._order(first)}
        return {"StartAt": first, "States": states}

    def begun(self) -> list[Fields]:
        """Return the Passes that copy the input of a run to wherever it is looked for."""
        copies = [] if self.way else self.places.copies(START)
        return [{"InputPath": here, "ResultPath": there} for here, there in copies]

    def _order(self, start: str) -> list[str]:
        """Return the states that are reached, as ways lead to them."""
        found: dict[str, None] = {}
        todo = [start]
        while todo:
            name = todo.pop(0)
            if name not in found:
                found[name] = None
                todo += [each for each in leads(self.states[name]) if each not in found]
        return [*found]

    def learn(self) -> None:
        """Follow the data along all ways, until nothing new is learnt."""
        looking, self.whole.looking = self.whole.looking, True
        todo = [*self.envs]
        while todo:
            name = todo.pop()
            for target, env in self.state(name, self.envs[name])[1]:
                old = self.envs.get(target)
                new = env if old is None else joined(old, env)
                if new != old:
                    self.envs[target] = new
                    todo.append(target)
        self.whole.looking = looking

    # States

    def state(self, name: str, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        """Return a state said again, and where it leads with what is known then."""
        state = self.value["States"][name]
        match state["Type"]:
            case "Choice":
                return self.choice(name, state, env)
            case "Succeed":
                self.ends = joined(self.ends, env) if self.ends else env
                return self.succeeded(name, state, env), []
            case "Fail":
                return self.failed(name, state, env), []
            case "Pass":
                return self.passed(name, state, env)
            case "Approval":
                made = self.question(name, state, env)
            case "Parallel":
                made = self.fork(name, state, env)
            case "Map":
                made = self.iteration(name, state, env)
            case _:
                made = self.task(name, state, env)
        after = self.effects.after(state.get("Output"), env, name)
        record = self.places.record(name) if name in self.places.values else None
        made.setdefault("ResultPath", record)
        made |= {key: state[key] for key in ("Comment",) if key in state}
        ways: list[tuple[str, Env]] = []
        catchers: list[Json] = []
        for catcher in state.get("Catch", ()):
            if self.failing == "failed" and self._hands_back(catcher["Next"]):
                continue  # its failure is that of all branches
            if self._fails_run(catcher["Next"]):
                message = f"the run fails with the error itself, instead of {NO_BRANCH!r}"
                self.values.lost("L-CATCH-FAIL", message, name, "Catch")
                continue
            behind = self.effects.after(catcher.get("Output"), env, name)
            ways.append((catcher["Next"], behind.env))
            caught = {"ErrorEquals": catcher["ErrorEquals"], "ResultPath": path_to(FAILED)}
            catchers.append({**caught, "Next": self.via(behind, catcher["Next"], name)})
        if catchers:
            made["Catch"] = catchers
        return self.leaving(made, state, after, name), ways + self._next(state, after)

    def _next(self, state: State, after: After) -> list[tuple[str, Env]]:
        if "Next" in state:
            return [(state["Next"], after.env)]
        self.ends = joined(self.ends, after.env) if self.ends else after.env
        return []

    def _hands_back(self, name: str) -> bool:
        output = self.value["States"][name].get("Output")
        term = term_of(output) if output is not None else None
        return isinstance(term, Members) and term.get("failed") is not None

    def _fails_run(self, name: str) -> bool:
        return bool(self.value["States"][name].get("Error") == NO_BRANCH)

    def leaving(self, made: Fields, state: State, after: After, name: str) -> Fields:
        """Return a state with where it goes: past the Passes behind it."""
        if "Next" in state:
            return {**made, "Next": self.via(after, state["Next"], name)}
        out: Fields = {"End": True}
        makers = after.env.get("previous_step", NOBODY)
        if makers:
            out["OutputPath"] = self.values.at(makers, after.env, name)
        elif self.way:  # what moves along is null
            after.passes.append({"Result": None})
        if not after.passes:
            return {**made, **out}
        *first, last = after.passes
        end = self.beside(f"{name}:end", {"Type": "Pass", **last, **out}, name)
        return {**made, "Next": self.via(After(after.env, first), end, name)}

    def via(self, after: After, target: str, name: str) -> str:
        """Return where to go for a target behind Passes."""
        for each in reversed(after.passes):
            target = self.beside(f"{name}:then", {"Type": "Pass", **each, "Next": target}, name)
        return target

    def beside(self, wanted: str, state: Fields, of: str) -> str:
        """Add a state that is a part of another one; return its name."""
        if self.whole.looking:
            return wanted
        name = self.whole.names.new(wanted)
        self.states[name] = state
        self.whole.made.beside[self._at(name)] = self._at(of)
        return name

    def _at(self, name: str) -> str:
        """Return the JSON Pointer of a state."""
        return "".join(f"/{escape(str(step))}" for step in (*self.way, "States", name))

    def succeeded(self, name: str, state: State, env: Env) -> Fields:
        term = term_of(state["Output"])
        made: Fields = {"Type": "Succeed"}
        makers = env.get("previous_step", NOBODY)
        if isinstance(term, Call) and term.name == "ended":
            self.values.lost("L-OUTPUT", "a run ends with all of its data", name, "Output")
            if env.get("updates", NOBODY):
                told = "an answer stands under a key of its own, not its members in the context"
                hint = "read them below the key of the step that gave them"
                self.values.lost("L-UPDATES", told, name, "Output", hint=hint)
        elif makers:
            if isinstance(term, Call):
                told = "a run ends with its last output, without the context"
                self.values.lost("L-OUTPUT", told, name, "Output")
            made["OutputPath"] = self.values.at(makers, env, name)
        elif self.way:
            return {"Type": "Pass", "Result": None, "End": True}
        return made

    def failed(self, name: str, state: State, env: Env) -> Fields:
        cause = term_of(state.get("Cause", ""))
        made: Fields = {"Type": "Fail", "Error": state["Error"]}
        if isinstance(cause, Literal):
            return {**made, "Cause": cause.value}
        told = isinstance(cause, Call) and cause.name == "string"
        if told and "failure" in env.get("event", NOBODY):
            return {**made, "CausePath": path_to(FAILED, "Cause")}
        return {**made, "Cause": "no branch or state of this name"}

    def passed(self, name: str, state: State, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        made: Fields = {"Type": "Pass"}
        made |= {key: state[key] for key in ("Comment",) if key in state}
        term = term_of(state.get("Output", "{% $states.input %}"))
        if isinstance(term, Members):  # a branch has failed
            self.ends = joined(self.ends, env) if self.ends else env
            if self.failing == "error":
                cause = path_to(FAILED, "Cause")
                return {**made, "Parameters": {"error.$": cause}, "End": True}, []
            return {**made, "Result": None, "End": True}, []
        if isinstance(term, Literal):
            return {**made, "Result": term.value, "End": True}, []
        after = self.effects.after(state.get("Output"), env, name)
        if after.passes:
            made |= after.passes.pop(0)
        return self.leaving(made, state, after, name), self._next(state, after)

    def task(self, name: str, state: State, env: Env) -> Fields:
        made: Fields = {"Type": "Task", "Agent": state["Agent"]}
        parameters: Fields = {}
        for key, each in state["Arguments"].items():
            if key == "context":
                message = "an agent is given its input, without the context"
                self.values.lost("L-SHARED", message, name, "Arguments", "context")
            elif key == "input":
                self.values.put(parameters, key, self.values.given(term_of(each), env, name))
            else:
                parameters[key] = each
        made["Parameters"] = parameters
        return made | {key: state[key] for key in ("TimeoutSeconds", "Retry") if key in state}

    def question(self, name: str, state: State, env: Env) -> Fields:
        made: Fields = {"Type": "Approval"}
        prompt = self.values.given(term_of(state["Prompt"]), env, name)
        self.values.put(made, "Prompt", prompt)
        return {**made, "Options": state["Options"]}

    # Branches and items

    def inner(
        self, name: str, machine: State, env: Env, failing: str, *way: str | int
    ) -> "Machine":
        """Return a machine within a state."""
        return Machine(self.whole, machine, (*self.way, "States", name, *way), env, failing)

    def fork(self, name: str, state: State, env: Env) -> Fields:
        output = term_of(state["Output"])
        call = _call(output, "join", "outer", "returned")
        if call is not None and call.name == "returned":
            return self.imported(name, state, env)
        flags = (call.literal(4) or {}) if call is not None else {}
        failing = "error" if flags.get("ignore") else "failed"
        begin = dict(env)
        if call is not None and call.name == "outer":
            failing = ""
            for key in ("state", "machine"):
                begin.pop(key, None)
        branches: list[Json] = []
        for index, machine in enumerate(state["Branches"]):
            inner = self.inner(name, machine, begin, failing, "Branches", index)
            if self.whole.looking:
                inner.learn()
            else:
                branches.append(inner.said())
        made: Fields = {"Type": "Parallel", "Branches": branches}
        message = "what branches write into the context, and their steps, stay within them"
        self.values.lost("L-PARRESULT", message, name, "Branches")
        if failing == "failed":
            message = "the other branches of one that fails are stopped"
            self.values.lost("FL-ABORT", message, name, "Branches")
        if call is None or call.name == "outer":
            return made
        names, reduce = call.literal(3), flags.get("reduce")
        if reduce is None:
            made["ResultSelector"] = {
                f"{each}.$": f"$[{index}]" for index, each in enumerate(names)
            }
        elif reduce in REDUCERS and reduce not in ("values", "first", "last"):
            message = f"nothing makes {reduce!r} of the outputs of branches"
            self.values.lost("L-TRANSFORM", message, name, "Output", hint="the outputs in a list")
        return made

    def imported(self, name: str, state: State, env: Env) -> Fields:
        """Return the Parallel of an imported blueprint, whose branch sees the context or not."""
        begun = term_of(state["Arguments"])
        assert isinstance(begun, Call)
        given, settings = begun.given[1], begun.literal(2) or {}
        text = isinstance(given, Call) and given.name == "text"
        found = self.values.given(given, env, name)
        maker, inherits = f"{name}:given", settings.get("inherit")
        before = After(dict(env))
        if inherits:
            self.effects.kept(before, name, maker, "given", found, text=text)
        else:
            self.places.made(maker, "given")
        self.places.made(f"{name}:branch", "branch")
        begin = {"previous_step": Makers((maker,))}
        inner = self.inner(name, state["Branches"][0], begin, "", "Branches", 0)
        if self.whole.looking:
            inner.learn()
            return {}
        self.told_input(name, settings)
        outside, self.whole.read = self.whole.read, set()
        branch, read = inner.said(), self.whole.read
        place = self.places.at(Makers((maker,)))
        made: Fields = {"Type": "Parallel", "Branches": [branch]}
        if inherits:
            if PROMPT in read:
                before.passes.append({"InputPath": place, "ResultPath": path_to(PROMPT)})
            made["Branches"] = [inner.begins(before.passes, str(branch["StartAt"]))]
            self.whole.read = outside | read
        else:
            copies = [there for _, there in self.places.copies(maker)]
            parameters: Fields = {}
            for each in (place, *copies, *([path_to(PROMPT)] if PROMPT in read else [])):
                key = each.removeprefix("$.")
                if isinstance(found, list) and text:
                    ending, value = self.values.text(found, name)
                    parameters[f"{key}{ending}"] = value
                else:
                    self.values.put(parameters, key, found)
            if ARTIFACTS in read:
                self.values.required(name, ("context", ARTIFACTS))
                parameters[f"{ARTIFACTS}.$"] = path_to(ARTIFACTS)
            self.whole.read = outside
            made = {"Type": "Parallel", "Parameters": parameters, "Branches": [branch]}
        return {**made, "ResultPath": self.places.record(f"{name}:branch")}

    def told_input(self, name: str, settings: Mapping[str, Any]) -> None:
        """Report what an imported blueprint is not given."""
        message = (
            "an imported blueprint is given its input as it is: not as text, or by an artifact"
        )
        self.values.lost("L-INPUT", message, name, "Arguments")
        to = settings.get("to", PROMPT)
        if to != PROMPT:
            holder = ARTIFACTS if to == "both" else to
            message = f"the input is not put into the {holder!r} of the imported blueprint"
            hint = "it moves along: let the first step there take it"
            self.values.lost("L-TRANSFORM", message, name, "Arguments", hint=hint)

    def iteration(self, name: str, state: State, env: Env) -> Fields:
        items = term_of(state["Items"])
        item = f"{name}:item"
        self.places.made(item, "item")
        inner = self.inner(
            name,
            state["ItemProcessor"],
            {**env, "previous_step": Makers((item,))},
            "null",
            "ItemProcessor",
        )
        if self.whole.looking:
            inner.learn()
            return {}
        outside, self.whole.read = self.whole.read, set()
        processor = inner.said()
        keys = [self.places.record(item), *(there for _, there in self.places.copies(item))]
        own = {self._key(each) for each in (item, *inner.envs) if each in self.places.values}
        used = sorted(self.whole.read - own - {*(each.removeprefix("$.") for each in keys)})
        self.whole.read = outside | self.whole.read
        selector: Fields = {f"{each.removeprefix('$.')}.$": "$$.Map.Item.Value" for each in keys}
        selector |= {f"{each}.$": path_to(each) for each in used}
        if used:
            message = "a value that is not there may fail the run"
            self.values.lost(
                "L-REQUIRED", message, name, "ItemSelector", hint=f"let there be {', '.join(used)}"
            )
        message = "what is done for an item, and its failure, stay within it"
        self.values.lost("L-MAPRESULT", message, name, "ItemProcessor")
        made: Fields = {"Type": "Map"}
        if isinstance(items, Call):
            made["ItemsPath"] = path_to(*str(items.literal(1)).removeprefix("context.").split("."))
        else:
            message = "items are data, none are written out"
            self.values.lost(
                "L-TRANSFORM", message, name, "Items", hint="they are taken from 'items'"
            )
            made["ItemsPath"] = path_to("items")
        return {
            **made,
            "ItemSelector": selector,
            "MaxConcurrency": 1,
            "ItemProcessor": processor,
        }

    def _key(self, maker: str) -> str:
        return self.places.record(maker).removeprefix("$.").partition(".")[0]

    # Choices

    def choice(self, name: str, state: State, env: Env) -> tuple[Fields, list[tuple[str, Env]]]:
        rules: list[Json] = []
        ways: list[tuple[str, Env]] = []
        last = {key: state[key] for key in ("Output", "Default") if key in state}
        for index, rule in enumerate(state["Choices"]):
            try:
                test = self.values.test(term_of(rule["Condition"]), env, name)
            except Beyond:
                message = "no rule says this condition, so it never holds"
                self.values.lost("L-CONDITION", message, name, "Choices", index)
                continue
            if test is False:
                continue
            if test is True:
                last = {"Default": rule["Next"], "Output": rule.get("Output")}
                break
            after = self.effects.after(rule.get("Output"), env, name)
            ways.append((rule["Next"], after.env))
            rules.append({**test, "Next": self.via(after, rule["Next"], name)})
        after = self.effects.after(last.get("Output"), env, name)
        target = str(last["Default"])
        ways.append((target, after.env))
        following = self.via(after, target, name)
        if not rules:
            return {"Type": "Pass", "Next": following}, ways
        return {"Type": "Choice", "Choices": rules, "Default": following}, ways


def _only_leads(state: Json) -> bool:
    return isinstance(state, dict) and state["Type"] == "Pass" and state.keys() <= {"Type", "Next"}


def _led(state: Any, lead: Any) -> None:
    """Let a state lead past those that do nothing."""
    for key in ("Next", "Default"):
        if key in state:
            state[key] = lead(state[key])
    for key in ("Choices", "Catch"):
        for each in state.get(key, ()):
            each["Next"] = lead(each["Next"])


def _call(term: Term, *names: str) -> Call | None:
    """Return the call of one of these functions that a term is, or is about."""
    while isinstance(term, Call):
        if term.name in names:
            return term
        if not term.given:
            return None
        term = term.given[0]
    return None
