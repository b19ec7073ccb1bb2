"""What is wrong with a chain beyond its shape, and what may surprise its author: CX-*."""

from collections.abc import Callable, Iterator
from typing import Final

from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.contenox.chain import END, HANDLERS, OPERATORS, SYNONYMS, Chain, ChainBranch, Task
from asl.dialects.contenox.data_types import check_data_types
from asl.dialects.contenox.functions.chain_data import JSON_PATH, STRATEGIES
from asl.dialects.contenox.functions.templates import (
    Macro,
    Node,
    find_macros,
    parse,
    variable_names,
)
from asl.dialects.contenox.functions.templates import TemplateBlock as TemplateBlock
from asl.dialects.contenox.operands import edge, number, range_of, seconds
from asl.dialects.contenox.tokens import aliases, evaluations, holds
from asl.dialects.names import computed
from asl.expr.paths.syntax import parse_path

__all__ = ["of_names", "of_tasks"]

CURRENT: Final = (
    "chat_completion", "execute_tool_calls", "tools", "route", "noop", "raise_error",
)  # fmt: skip
CURRENT_OPERATORS: Final = (
    "equals", "contains", "starts_with", "ends_with", "default", "edge_traversed_at_least",
)  # fmt: skip
"""What the engine of today knows: the profile `runtime`."""
LONGEST: Final = 99_999_999
"""Seconds that a task may be given."""
_WHENS: Final = {
    "gt": "a number: 5 or 0.5",
    "lt": "a number: 5 or 0.5",
    "in_range": "both ends: 3-5",
    "range": "both ends: 3,5",
    "edge_traversed_at_least": "a whole number: 3",
}
"""What the right-hand sides of operators look like."""
_MEANT: Final = {
    **dict.fromkeys(("==", "=", "eq", "is"), "equals"),
    **dict.fromkeys(("!=", "<>", "ne", "neq", "not"), "not_equals"),
    **dict.fromkeys(("includes", "in", "matches", "regex", "like"), "contains"),
    **dict.fromkeys(("greater_than", "greater", "more_than", "above"), "gt"),
    **dict.fromkeys(("less_than", "less", "smaller", "below"), "lt"),
    **dict.fromkeys(("between", "within"), "in_range"),
    **dict.fromkeys(("else", "otherwise", "always", "*"), "default"),
}
"""Operators as other languages call them."""
SEED_ONLY: Final = ("not_equals", "not_contains", "range")
"""Operators that are documented and that no engine has ever known."""


def of_names(chain: Chain) -> Iterator[Finding]:
    """Yield what is wrong with the tasks of a chain and their names; no reader can go on then."""
    listed = chain.value["tasks"]
    if not listed:
        message = "there are no tasks"
        yield Finding("CX-NO-TASKS", message, "/tasks", "the first task begins", at_key=True)
    first: dict[str, str] = {}
    for index, value in enumerate(listed):
        name, place = value["id"], f"/tasks/{index}/id"
        if name == "" or name == END:
            message = f"no task can be called {name!r}"
            yield Finding("CX-RESERVED-ID", message, place, "'end' ends the chain")
        elif computed(name):
            message = f"no task can be called {name[:60]!r}: its agent has the same name"
            hint = "a name of an agent never begins with '$.', '$$' or '{%'"
            yield Finding("CX-RESERVED-ID", message, place, hint)
        elif name in first:
            related = ((first[name], "the first one is here"),)
            yield Finding(
                "CX-DUPLICATE-ID",
                f"there are two tasks {name!r}",
                place,
                "give one of them another id",
                related=related,
            )
        first.setdefault(name, place)


def of_tasks(chain: Chain, *, external_exits: bool = False) -> Iterator[Finding]:
    """Yield what the tasks of a well-shaped chain have against each other."""
    for key in ("triggers", "routing_strategy"):
        if key in chain.value:
            message = f"{key!r} has no effect on a run"
            yield Finding("CX-META", message, f"/{key}", at_key=True)
    for task in chain.tasks.values():
        for target, place in task.targets():
            if target in chain.tasks or (external_exits and exits(target)):
                continue
            if target == END and not place.endswith("/on_failure"):
                continue
            yield _no_task(chain, target, place)
        for rule in _RULES:
            yield from rule(chain, task)
        said = evaluations(chain, task)
        for branch in task.branches:
            yield from _branch(chain, task, branch, said)
    yield from _variables(chain)
    yield from check_data_types(chain)


def exits(target: str) -> bool:
    """Whether a target is a place for something to be filled in: `__next_step__`."""
    return len(target) > 4 and target.startswith("__") and target.endswith("__")


def _no_task(chain: Chain, target: str, place: str) -> Finding:
    if target == END:
        message = "a failure cannot lead to 'end': that is no task"
        return Finding("CX-UNDEFINED-REF", message, place, "lead to a noop that ends the chain")
    hint = did_you_mean(target, [*chain.tasks, END])
    if hint is None and exits(target):
        hint = "a program replaces such a name; with the option external_exits it is an end"
    hint = hint or f"add a task of this name, or go to {END!r}"
    return Finding("CX-UNDEFINED-REF", f"there is no task {target!r}", place, hint)


# --------------------------------------------------------------------------------------------
# Tasks


def _handler(chain: Chain, task: Task) -> Iterator[Finding]:
    key = "handler" if "handler" in task.value else "type"
    place, written = f"{task.pointer}/{key}", task.written_handler
    if key not in task.value:
        message = f"the task {task.id!r} has no handler"
        hint = f"there are {', '.join(HANDLERS)}"
        yield Finding("CX-UNKNOWN-HANDLER", message, task.pointer, hint, at_key=True)
        return
    if task.handler not in HANDLERS:
        hint = did_you_mean(written, [*HANDLERS, *SYNONYMS]) or f"there are {', '.join(HANDLERS)}"
        yield Finding("CX-UNKNOWN-HANDLER", f"there is no handler {written!r}", place, hint)
        return
    if key == "type":
        message = "'type' is an old name"
        yield Finding("CX-DEPRECATED", message, place, "write handler", at_key=True)
    if chain.profile == "runtime" and written not in CURRENT:
        message = f"the current engine has no handler {written!r}"
        yield Finding("CX-RUNTIME", message, place, f"it has {', '.join(CURRENT)}")
    if task.handler == "tools" and not task.provider:
        message = f"the task {task.id!r} does not name the provider of its tool"
        holder = next((each for each in ("tools", "hook") if each in task.value), None)
        at = task.pointer if holder is None else f"{task.pointer}/{holder}"
        hint = f'add "{written}": {{"name": ..., "tool_name": ...}}'
        yield Finding("CX-NO-PROVIDER", message, at, hint, at_key=True)
    if task.handler == "condition_key" and not task.value.get("valid_conditions"):
        message = "without 'valid_conditions' every answer is a failure"
        hint = "list the valid answers in valid_conditions"
        yield Finding("CX-DEAD-BRANCH", message, place, hint)
    if task.handler == "route" and not any(each.operator == "equals" for each in task.branches):
        message = "without a branch by equals there is nothing to choose: every answer is a failure"
        hint = "add a branch with the operator equals for each label"
        yield Finding("CX-DEAD-BRANCH", message, place, hint)


def _limits(chain: Chain, task: Task) -> Iterator[Finding]:
    timeout = task.value.get("timeout")
    if timeout:
        place = f"{task.pointer}/timeout"
        try:
            limit = seconds(timeout)
        except ValueError as error:
            yield Finding("CX-DURATION", str(error), place, "write 500ms, 10s, 2m or 1h30m")
        else:
            if limit > LONGEST:
                message = f"{timeout!r} is longer than {LONGEST} seconds"
                yield Finding("CX-DURATION", message, place, "remove the timeout")
            elif limit != int(limit):
                message = f"{timeout!r} is rounded up to whole seconds"
                yield Finding("CX-SUBSECOND", message, place, "write whole seconds")
    for key, code, message in (
        ("print", "CX-PRINT", "nothing is printed: look at the history of the run instead"),
        (
            "input_max_bytes",
            "CX-INPUTCAP",
            "the input is not truncated here: the agent must do that",
        ),
    ):
        if task.value.get(key):
            yield Finding(code, message, f"{task.pointer}/{key}", at_key=True)
    if "on_failure_alert" in task.transition:
        place = f"{task.pointer}/transition/on_failure_alert"
        yield Finding("CX-META", "alerts have no effect on a run", place, at_key=True)


def _branches(chain: Chain, task: Task) -> Iterator[Finding]:
    defaults = [each for each in task.branches if each.operator == "default"]
    for later in defaults[1:]:
        related = ((defaults[0].pointer, "the first one is here"),)
        message = "only the first 'default' is ever taken"
        hint = "remove it, or give it a condition"
        yield Finding("CX-DEFAULT-ORDER", message, later.pointer, hint, related=related)
    if defaults and task.branches[-1] is not defaults[-1]:
        seed = chain.profile == "seed"
        message = "'default' matches first, so no later branch is ever taken"
        if not seed:
            message = (
                "'default' is tried last, wherever it is; the documentation describes another order"
            )
        hint = "put it last: then both readings are the same"
        yield Finding("CX-DEFAULT-ORDER", message, defaults[0].pointer, hint)
    seen: dict[tuple[str, str, str], ChainBranch] = {}
    for branch in task.branches:
        if branch.operator != "default" and branch.key in seen:
            related = ((seen[branch.key].pointer, "this one"),)
            message = "an earlier branch is the same, so this one is never taken"
            hint = "remove it, or compare with another value"
            yield Finding("CX-DEAD-BRANCH", message, branch.pointer, hint, related=related)
        seen.setdefault(branch.key, branch)
    if task.branches and not defaults and _open(chain, task):
        yield Finding(
            "CX-NO-DEFAULT",
            f"the value of {task.id!r} may match no branch, and then the run fails",
            f"{task.pointer}/transition/branches",
            "add a branch with the operator default",
            at_key=True,
        )


def _open(chain: Chain, task: Task) -> bool:
    """Whether a task without a default can evaluate to something that no branch takes."""
    said = evaluations(chain, task)
    if task.handler == "route":  # the model chooses among the labels
        return any(each.operator != "equals" for each in task.branches)
    if said is None:
        return True
    try:
        return not all(
            any(
                holds(branch, each, aliases(chain, task, branch.when))
                for branch in task.branches
                if branch.operator != "edge_traversed_at_least"
            )
            for each in said
        )
    except ValueError:
        return False  # another rule reports it


def _branch(
    chain: Chain, task: Task, branch: ChainBranch, said: tuple[str, ...] | None
) -> Iterator[Finding]:
    written, place = branch.value["operator"], f"{branch.pointer}/operator"
    if written not in OPERATORS:
        meant = _MEANT.get(written.lower())
        near = f"did you mean {meant!r}?" if meant else did_you_mean(written, OPERATORS)
        hint = near if near and written else f"there are {', '.join(OPERATORS)}"
        yield Finding("CX-UNKNOWN-OPERATOR", f"there is no operator {written!r}", place, hint)
        return
    if "alert_on_match" in branch.value:
        at = f"{branch.pointer}/alert_on_match"
        yield Finding("CX-META", "alerts have no effect on a run", at, at_key=True)
    yield from _when(chain, branch)
    if chain.profile == "runtime" and branch.operator not in CURRENT_OPERATORS:
        message = f"the current engine has no operator {written!r}"
        yield Finding("CX-RUNTIME", message, place, f"it has {', '.join(CURRENT_OPERATORS)}")
    elif branch.operator in SEED_ONLY:
        message = f"{written!r} is documented, but no engine implements it"
        yield Finding("CX-ENGINE", message, place, "it works here")
    if branch.compose is not None:
        yield from _compose(chain, branch.compose, f"{branch.pointer}/compose")
    if said is not None and branch.operator not in ("default", "edge_traversed_at_least"):
        yield from _dead(chain, task, branch, said)


def _when(chain: Chain, branch: ChainBranch) -> Iterator[Finding]:
    at = "when" if "when" in branch.value else "operator"
    try:
        if branch.operator in ("gt", "lt"):
            number(branch.when)
        elif branch.operator in ("in_range", "range"):
            range_of(branch.operator, branch.when)
        elif branch.operator == "edge_traversed_at_least" and not (
            branch.when.isascii() and branch.when.strip().isdecimal() and len(branch.when) < 16
        ):
            raise ValueError(f"{branch.when[:60]!r} is no whole number")
    except ValueError as error:
        form = f"write {_WHENS[branch.operator]}"
        yield Finding("CX-WHEN", str(error), f"{branch.pointer}/{at}", form)
    if branch.operator != "edge_traversed_at_least":
        return
    written = branch.value.get("edge", "")
    at = f"{branch.pointer}/edge" if "edge" in branch.value else branch.pointer
    try:
        ends = edge(written)
    except ValueError as error:
        message = str(error) if written else "the branch does not name the edge to count"
        form = 'write "edge": "work->check"'
        yield Finding("CX-EDGE", message, at, form, at_key=not written)
        return
    for name in ends:
        if name not in chain.tasks:
            hint = did_you_mean(name, chain.tasks) or f"there are {', '.join([*chain.tasks][:8])}"
            if name == END:
                hint = "transitions to 'end' are not counted"
            yield Finding("CX-EDGE", f"there is no task {name!r}", at, hint)


def _dead(
    chain: Chain, task: Task, branch: ChainBranch, said: tuple[str, ...]
) -> Iterator[Finding]:
    if chain.caught(task) is branch:
        message = "no engine tries branches after a failure; this follows the documentation"
        at = f"{branch.pointer}/when"
        yield Finding("CX-ENGINE", message, at, "on_failure leads there in both")
        return
    words = aliases(chain, task, branch.when)
    try:
        alive = any(holds(branch, each, words) for each in said)
    except ValueError:
        return  # another rule reports it
    if not alive:
        place = f"{branch.pointer}/{'when' if 'when' in branch.value else 'operator'}"
        known = ", ".join(said) or "nothing: it always fails"
        hint = did_you_mean(branch.when, said)
        if branch.when in ("failed", "error"):
            hint = "a failure takes on_failure, never a branch"
        elif task.handler == "condition_key" and branch.when in ("true", "false"):
            hint = "the answer itself is compared, not the boolean of its key"
        message = f"no branch like this is ever taken: {task.id!r} evaluates to {known}"
        hint = hint or "compare with one of these values, or remove the branch"
        yield Finding("CX-DEAD-BRANCH", message, place, hint)


def _composes(chain: Chain, task: Task) -> Iterator[Finding]:
    if "compose" in task.value:
        yield from _compose(chain, task.value["compose"], f"{task.pointer}/compose")


def _compose(chain: Chain, compose: Json, pointer: str) -> Iterator[Finding]:
    assert isinstance(compose, dict)
    strategy = str(compose.get("strategy") or "")
    place = f"{pointer}/strategy"
    if chain.profile == "runtime":
        yield Finding("CX-RUNTIME", "the current engine has no compositions", pointer, at_key=True)
    if strategy.startswith(JSON_PATH):
        message = "this strategy is documented, but no engine implements it"
        yield Finding("CX-ENGINE", message, place, "it works here")
        try:
            path = strategy.removeprefix(JSON_PATH)
            parse_path(path.strip())
        except ExpressionFault as fault:
            offset = fault.offset + strategy.index(path.strip(), len(JSON_PATH))
            hint = fault.hint or "a path is written $.user.id, $.items[0] or $.items[*].id"
            yield Finding("CX-COMPOSE", fault.message, place, hint, inside=offset)
    elif strategy not in STRATEGIES:
        known = [*filter(None, STRATEGIES)]
        near = did_you_mean(strategy.partition(":")[0] + ":", [JSON_PATH])
        near = near or did_you_mean(strategy, known)
        hint = near or f"there are {', '.join(known)} and json_path:$.path"
        yield Finding("CX-COMPOSE", f"there is no strategy {strategy!r}", place, hint)


# --------------------------------------------------------------------------------------------
# Texts


def _templates(chain: Chain, task: Task) -> Iterator[Finding]:
    for key in ("prompt_template", "output_template", "print"):
        written = task.value.get(key)
        if not written:
            continue
        place = f"{task.pointer}/{key}"
        try:
            nodes = parse(written)
        except ExpressionFault as fault:
            severity = Severity.WARNING if key == "print" else None
            yield Finding(
                fault.code,
                fault.message,
                place,
                fault.hint,
                severity=severity,
                inside=fault.offset,
            )
            continue
        for macro in _macros(nodes):
            yield from _macro(macro, place, written.find(macro.written))
    for key, written in _plain(task.value.get("execute_config"), f"{task.pointer}/execute_config"):
        for start, _, macro in find_macros(written):
            yield from _macro(macro, key, start)
    written = task.value.get("system_instruction", "")
    for start, _, macro in find_macros(written):
        yield from _macro(macro, f"{task.pointer}/system_instruction", start)


def _macros(nodes: tuple[Node, ...]) -> Iterator[Macro]:
    for node in nodes:
        if isinstance(node, Macro):
            yield node
        elif isinstance(node, TemplateBlock):
            yield from _macros(node.body)
            yield from _macros(node.otherwise)


def _macro(macro: Macro, place: str, at: int) -> Iterator[Finding]:
    if macro.name in ("host", "toolservice", "tools", "hookservice"):
        message = f"{macro.written} is not expanded: the engine's environment is unknown here"
        hint = "write its value, or take it from the input: {{var:name}}"
        yield Finding("CX-MACRO", message, place, hint, inside=at)
    elif macro.needed:
        name = macro.payload.split("|")[0].strip()
        message = f"a run needs {name!r} among 'vars' of its input"
        hint = f'the input is {{"input": ..., "vars": {{"{name}": ...}}}}'
        yield Finding("CX-VAR", message, place, hint, inside=at)


def _plain(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the texts within a value."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _plain(each, f"{pointer}/{escape(key)}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _plain(each, f"{pointer}/{index}")


def _variables(chain: Chain) -> Iterator[Finding]:
    """Warn of names that nothing in the chain makes."""
    known = {"input", "previous_output", "last_error", *chain.tasks}
    known |= {f"{name}_error" for name in chain.tasks}
    for task in chain.tasks.values():
        for branch in task.branches:
            if branch.compose is None:
                continue
            if str(branch.compose.get("strategy") or "").startswith(JSON_PATH):
                known.add(branch.compose["with_var"])
            else:
                said = branch.when.lower().replace(" ", "_").replace("-", "_")
                known.add(f"{task.id}_{said}_composed")
    for task in chain.tasks.values():
        if task.input_var and task.input_var not in known:
            yield _unknown(task.input_var, known, f"{task.pointer}/input_var", None)
        try:
            names = dict.fromkeys(variable_names(parse(task.template)))
        except ExpressionFault:
            continue  # another rule reports it
        for name in names:
            if name not in known:
                at = task.template.find(f".{name}")
                yield _unknown(name, known, f"{task.pointer}/prompt_template", at)


def _unknown(name: str, known: set[str], place: str, at: int | None) -> Finding:
    hint = (
        did_you_mean(name, known)
        or "define it with a compose that has this with_var, before this task"
    )
    return Finding("CX-UNKNOWN-VAR", f"there is no variable {name!r}", place, hint, inside=at)


_RULES: tuple[Callable[[Chain, Task], Iterator[Finding]], ...] = (
    _handler,
    _limits,
    _branches,
    _composes,
    _templates,
)
