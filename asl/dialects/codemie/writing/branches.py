"""Maps and Parallels: iterations and forks."""

import re
from collections.abc import Iterable
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.machine import Machine, State, passes
from asl.dialects.codemie.writing.results import ITEM, Result, key_of, path_of, steps
from asl.dialects.codemie.writing.workflow import branch_key
from asl.expr.templates import SUFFIX

__all__ = ["fork", "forked", "forks", "iterated", "iterates", "iteration"]

ITEMS: Final = "items"
"""The key under which a Map's items are handed to its first state."""


def _nested(machine: Machine, name: str, state: State) -> None:
    """Report branches within a branch that meet before it ends."""
    within = machine.last is not None and not machine.item
    if within and "Next" in state and machine.lead(state["Next"]) is not None:
        machine.lost(
            "L-NESTEDJOIN",
            "the platform may run what follows the outer branches twice",
            machine.at(name),
            "let all branches end together",
        )


# --------------------------------------------------------------------------------------------
# Map


def iteration(machine: Machine, name: str, state: State) -> None:
    """Write a Map: a transformation gives the items, its workers are chained by their key."""
    where, path = machine.at(name), _items(state)
    if machine.item:
        machine.lost("L-NESTED", "an iteration within one ends with the outer one", where)
    way = machine.way(path)
    if not way:
        machine.lost(
            "L-PATH",
            f"no key of the context is {path!r}"[:200],
            where,
            "items are taken from 'value'",
        )
    to = {**_region(machine, name, state, ITEMS), "store_in_context": False}
    given = {"output_field": ITEMS, "type": "extract", "source_path": ".".join(way or ("value",))}
    if machine.item:
        to["include_in_llm_history"] = False
        machine.node(name, {"mappings": [given]}, to, finish_iteration=True)
    else:
        machine.node(name, {"mappings": [given]}, to)


def iterates(machine: Machine, state: State, result: Result) -> bool:
    """Whether the items of a Map lie in the result of the state in front of it."""
    return not machine.item and "InputPath" not in state and _key(state, result) is not None


def iterated(machine: Machine, name: str, state: State, result: Result) -> dict[str, Json]:
    """Return where a state goes whose result has the items of a Map."""
    return _region(machine, name, state, str(_key(state, result)))


def _items(state: State) -> Json:
    return state.get("ItemsPath", state.get("Items", "$"))


def _key(state: State, result: Result) -> str | None:
    """Return the key under which a result has the items, None if it does not."""
    way = result.within(_items(state))
    if way is None:
        return None
    if not way:
        return "."
    return way[0] if len(way) == 1 and not way[0].isdecimal() else "/" + "/".join(way)


def _region(machine: Machine, name: str, state: State, key: str) -> dict[str, Json]:
    """Return how its workers are entered, which follow the state that is being written."""
    where = machine.at(name)
    _nested(machine, name, state)
    processor = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
    if type(state.get("MaxConcurrency")) is int:
        machine.workflow.concurrency.append(state["MaxConcurrency"])
    following = machine.next(state)
    after = str(following.pop("state_id"))
    keys = re.findall(r"[A-Za-z_]\w*", str(state.get("ResultPath", "$")))
    if keys:
        following = {"output_key": keys[0], "append_to_context": True}
        message = "the results are texts, appended to a key"
        machine.lost("L-MAPRESULT", message, where, f"{keys[0]!r}")
    else:
        machine.lost("L-MAPRESULT", "the array of results is not written anywhere", where)
    selected = _selected(machine, name, state, state[processor]["States"].values())
    place = machine.at(name, processor)
    inner = machine.inner(
        state[processor], place, after, item=True, last=following, selected=selected
    )
    first = machine.followed(inner)
    _chained(machine, machine.behind, key, after, where)
    return {"state_id": first, "iter_key": key}


def _selected(
    machine: Machine, name: str, state: State, workers: Iterable[State]
) -> dict[str, str]:
    """Return the fields that a Map or Parallel selects, with the paths that stand for them."""
    fields = ("ItemSelector", "Parameters", "Arguments")
    field = next((each for each in fields if each in state), None)
    if field is None:
        return {}
    given = state[field] if type(state[field]) is dict else {}
    workers = [*workers]
    places = [steps(each.get("ResultPath")) for each in workers]
    changed = {place[0] for place in places if place}
    found: dict[str, str] = {}
    for key, value in given.items() if all(map(_keeps, workers)) else ():
        plain, path = key.removesuffix(SUFFIX), path_of(value)
        computed = plain != key or path != value
        if not computed or type(path) is not str or plain in changed:
            continue
        of_item = path.startswith(ITEM) and steps(f"${path.removeprefix(ITEM)}") is not None
        if of_item or (steps(path) and not machine.item):
            found[plain] = path
    if len(found) == len(given) > 0 and any(path.startswith(ITEM) for path in found.values()):
        message = "the item is {{task}}, unless the context has a field of that name"
        machine.lost("L-SELECTOR", message, machine.at(name, field), "let none be called 'task'")
    else:
        message = "workers and branches get the context"
        machine.lost("L-SELECTOR", message, machine.at(name, field))
    return found


def _keeps(state: State) -> bool:
    """Whether what a worker was given is still there behind one of its states."""
    if "Next" not in state or passes(state):
        return True
    reshaped = "Output" in state or "OutputPath" in state
    return not reshaped and "ResultPath" in state and state["ResultPath"] != "$"


def _chained(
    machine: Machine, workers: list[dict[str, Any]], key: str, after: str, where: str
) -> None:
    """Let the item go on from worker to worker, and mark the last ones where it chooses."""
    plain = all("state_id" in each["next"] and "iter_key" not in each["next"] for each in workers)
    if not plain:
        message = "the platform leaves the iteration where it chooses or forks"
        machine.lost("L-PERITEM", message, where)
    for each in workers:
        to = each["next"]
        if "state_id" not in to or "iter_key" in to:
            continue
        if to["state_id"] != after:
            to["iter_key"] = key
        elif not plain and after != END:
            each["finish_iteration"] = True


# --------------------------------------------------------------------------------------------
# Parallel


def fork(machine: Machine, name: str, state: State) -> None:
    """Write a Parallel: a transformation that gives nothing leads to all its branches."""
    to = forked(machine, name, state)
    machine.node(name, {"mappings": []}, {**to, "store_in_context": False})


def forks(machine: Machine, state: State, result: Result) -> bool:
    """Whether a state can lead to the branches of a Parallel itself: any can."""
    return bool(state.get("Branches"))


def forked(
    machine: Machine, name: str, state: State, result: Result | None = None
) -> dict[str, Json]:
    """Return where a state goes that leads to the branches of a Parallel."""
    after = str(machine.next(state)["state_id"])
    key = key_of(state)
    _nested(machine, name, state)
    machine.lost(
        "L-PARRESULT",
        "the array of results is not written; each branch writes its own",
        machine.at(name),
        None if key is None else f"to {branch_key(key, 0)!r} and so on",
    )
    heads: list[Json] = []
    workers = [each for branch in state.get("Branches", ()) for each in branch["States"].values()]
    selected = _selected(machine, name, state, workers)
    for index, branch in enumerate(state.get("Branches", ())):
        place = machine.at(name, "Branches", index)
        last: dict[str, Json] = {} if key is None else {"output_key": branch_key(key, index)}
        inner = machine.inner(branch, place, after, item=machine.item, last=last, selected=selected)
        heads.append(machine.followed(inner))
    return {"state_ids": heads}
