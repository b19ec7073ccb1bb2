"""Under which keys of the data the tasks of a chain leave their output.

What moves along has no place of its own there. Where several tasks lead to one, they leave their
output under one key.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from asl.dialects.contenox.chain import END, Chain, Task
from asl.dialects.contenox.functions.chain_data import JSON_PATH
from asl.dialects.names import FreshNames

__all__ = [
    "FAILED",
    "INPUT",
    "TEXT",
    "asked",
    "ends",
    "is_shared",
    "keys",
    "leaves",
    "picked",
    "picks",
    "takes",
]

INPUT: Final = "input"
FAILED: Final = "last_error"
TEXT: Final = "text"
"""The member of an object that holds a text which is put together."""


def keys(chain: Chain) -> dict[Any, str]:
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

    used = {task.id for task in chain.tasks.values() if takes(task)}
    for task in chain.tasks.values():
        if task.handler == "noop" and not task.template and not task.input_var:
            join(("", task.id), task.id)
    if chain.start.id in used:
        join(INPUT, ("", chain.start.id))
    names = asked(chain)
    for task in chain.tasks.values():
        caught = chain.caught(task)
        rescue = chain.rescue(task)
        goes = {each.goto for each in task.branches if each is not caught}
        for goto in goes - {END}:
            if goto in used:
                join(("", goto), task.id)
        if rescue in used:
            join(("", rescue), task.id if leaves(task, names) else ("", task.id))
    found: dict[Any, str] = {}
    named: dict[Any, str] = {top(INPUT): INPUT}
    taken = FreshNames([INPUT], "_")
    for each in (*chain.tasks, *(("", name) for name in chain.tasks), *sorted(picks(chain))):
        if top(each) not in named:
            name = each if isinstance(each, str) else f"before_{each[1]}"
            wanted = re.sub(r"\W+", "_", name, flags=re.ASCII) or "task"
            wanted = wanted if not wanted[0].isdigit() else f"task_{wanted}"
            named[top(each)] = taken.new(wanted)
        found[each] = named[top(each)]
    return {INPUT: INPUT, **found}


def is_shared(keys: Mapping[Any, str], key: str) -> bool:
    """Whether several tasks leave their output under one key."""
    return sum(1 for task, each in keys.items() if each == key and isinstance(task, str)) > 1


def asked(chain: Chain) -> frozenset[str]:
    """Return the names that inputs and templates of tasks may ask for."""
    found = {task.input_var for task in chain.tasks.values() if task.input_var}
    for task in chain.tasks.values():
        found |= {*re.findall(r"\w+", task.template or "")}
    return frozenset(found)


def picks(chain: Chain) -> frozenset[str]:
    """Return the variables that are taken out of an output on the way, under keys of their own."""
    ways = [each.value.get("compose") for each in chain.tasks.values()]
    ways += [branch.compose for each in chain.tasks.values() for branch in each.branches]
    found = {each["with_var"] for each in ways if each and picked(each) is not None}
    return frozenset(
        each for each in found - {INPUT, FAILED, *chain.tasks} if not each.endswith("_error")
    )


def picked(compose: Mapping[str, Any]) -> str | None:
    """Return the path by which a composition takes a variable out of an output, if it does."""
    strategy = compose.get("strategy") or ""
    path = str(strategy).removeprefix(JSON_PATH).strip()
    # A second root would be that of the data.
    return path if path != strategy and path.rfind("$") == 0 else None


def takes(task: Task) -> bool:
    """Whether a task is given what moves along to it."""
    return not task.input_var and (not task.template or "previous_output" in task.template)


def ends(task: Task) -> bool:
    """Whether a task only ends the chain, with a variable or what moves along."""
    behind = [(each.operator, each.goto, each.compose) for each in task.branches]
    plain = task.handler == "noop" and not task.template and not task.value.get("compose")
    return plain and task.on_failure is None and behind == [("default", END, None)]


def leaves(task: Task, asked: frozenset[str]) -> bool:
    """Whether a task that fails leaves its input under its name, not just where it moves along."""
    return bool(task.template or task.input_var) or task.id in asked
