"""The branches of a task as a Choice on what it has answered, or has filled in."""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.contenox.chain import END, Branch, Task
from asl.dialects.contenox.functions.templates import TemplateField
from asl.dialects.contenox.operands import number, range_of
from asl.dialects.contenox.plain.keys import asked, takes
from asl.dialects.contenox.plain.ways import Ways
from asl.dialects.contenox.template_choices import NoRuleEquivalent, TemplateCase, rule
from asl.dialects.contenox.tokens import aliases, tool_token
from asl.dialects.jsonpath_form import path_to
from asl.expr.text_matching import escape_glob

__all__ = ["Choices"]

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


class Choices:
    """The choices of one chain."""

    def __init__(self, ways: Ways) -> None:
        self.ways = ways
        self.values = ways.values
        self.made = ways.made
        self.chain = ways.values.chain

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
                rules.append({**test, "Next": self.ways.along(name, task, branch, each["Next"])})
        if not rules:
            if otherwise is None:
                return {**_UNMATCHED}
            return {"Type": "Pass", "Next": self.ways.along(name, task, default, otherwise)}
        made: dict[str, Json] = {"Type": "Choice", "Choices": rules}
        if otherwise is not None:
            made["Default"] = self.ways.along(name, task, default, otherwise)
        return made

    def decision(
        self, name: str, state: Mapping[str, Any], task: Task, decides: list[TemplateCase]
    ) -> dict[str, Json]:
        """Return the Choice of a task that fills in where to go."""
        explicit, default = self.chain.ordered(task)
        choice = self.ways.states[state["Next"]]
        written = [each["Next"] for each in choice["Choices"][-len(explicit) :]]
        targets: dict[Branch | None, str | None] = {default: choice.get("Default")}
        targets.update(zip(explicit, written, strict=True))
        rules: list[Json] = []
        otherwise = None
        for case in decides:
            test: dict[str, Json] | bool = True
            try:
                if case.test is not None:
                    test = rule(case.test, lambda names: self.values.known(name, task, names))
            except NoRuleEquivalent:
                message = "no rule says a condition of the template, so it never holds"
                self.made.lost("L-CONDITION", message, name)
                continue
            following = targets[case.branch]
            if test is False or following is None:
                continue
            following = self.ways.via(
                self.word(name, task, case.text), name, self.ways.target(task, following)
            )
            if test is True:
                otherwise = following
                break
            rules.append({**test, "Next": following})
        kept = {key: state[key] for key in ("Comment",) if key in state}
        if not rules:
            return {"Type": "Pass", **kept, "Next": otherwise} if otherwise else {**_UNMATCHED}
        made: dict[str, Json] = {"Type": "Choice", **kept, "Choices": rules}
        return {**made, "Default": otherwise} if otherwise is not None else made

    def word(self, name: str, task: Task, text: str | TemplateField) -> list[dict[str, Json]]:
        """Return the fields of the Pass that leaves what a task has filled in, if anybody asks."""
        behind = {each.goto for each in task.branches}
        taken = END in behind or any(takes(self.chain.tasks[each]) for each in behind - {END})
        if not taken and task.id not in asked(self.chain):
            return []
        place: dict[str, Json] = {"ResultPath": path_to(self.values.keys[task.id])}
        if isinstance(text, str):
            return [{"Result": text, **place}]
        message = "what is no text is shown in another way"
        self.made.lost("CX-GOFMT", message, name, hint="let it be a text")
        known = self.values.known(name, task, text.names)
        return [{"InputPath": str(known), **place}] if known else []

    def test(self, name: str, task: Task, branch: Branch, index: int) -> dict[str, Json] | bool:
        """Return the rule of a branch on what the task has answered; a truth where it is known."""
        answer = self.values.at(task.id)
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
        if pattern is None:
            self.made.lost("L-CONDITION", "no rule says this branch", name, "Choices", index)
            return False
        test = {"Variable": answer, "StringMatches": pattern.format(escape_glob(when))}
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
