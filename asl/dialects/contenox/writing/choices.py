"""Choices: a task whose text says which rule holds, and a branch for each."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asl.core.values import Json
from asl.dialects.contenox.writing.chain import ANYTHING
from asl.dialects.contenox.writing.conditions import NEVER, condition
from asl.dialects.contenox.writing.knowledge import Env, renamed, renewed
from asl.dialects.contenox.writing.outputs import assigned, output
from asl.dialects.contenox.writing.state import State, Way, default
from asl.dialects.contenox.writing.templates import parses
from asl.dialects.contenox.writing.transitions import goto
from asl.dialects.contenox.writing.values import Moving, Part, moving, roots
from asl.dialects.names import FreshNames

__all__ = ["choice", "choosing"]


def choice(state: State) -> Iterator[Way]:
    """Write a Choice."""
    name, here = state.name, state
    grown = any(isinstance(root, Moving) for root in roots(state.env.data))
    if grown and moving(state.env.flow):
        # What moves along gets a name before the choice takes its place.
        name = f"{state.name}:if"
        state.add({"id": state.id, "handler": "noop"})
        state.then([default(state.chain.id(name))])
        here = state.knowing(renamed(state.env, state.id))
    yield from choosing(here, name, state.value["Choices"], state.value.get("Default"))


def choosing(state: State, name: str, rules: list[Any], otherwise: str | None) -> Iterator[Way]:
    """Add a task that says in its text which rule holds, and the branches behind it."""
    id = state.chain.id(name)
    ways: list[Way] = []
    text = ""
    labels: dict[str, str] = {}
    taken = FreshNames([ANYTHING], "_")
    branches: dict[str, Json] = {}
    env = renewed(state.env, id)
    for index, rule in enumerate(rules):
        test = _test(state, rule, state.at("Choices", index))
        following = str(rule["Next"])
        ways.append((following, _after(state, rule, env, id)))
        to = goto(state, following)
        label = labels[to] = labels.get(to) or _label(to, taken)
        branches.setdefault(to, {"operator": "equals", "when": label, "goto": to})
        text += f"{{{{{'else if' if text else 'if'} {test}}}}}{label}"
    last = ANYTHING
    if otherwise is not None:
        ways.append((otherwise, _after(state, state.value, env, id)))
        to = goto(state, otherwise)
        last = labels.get(to) or _label(to, taken)
        branches.pop(to, None)
        branches[to] = default(to)
    text = f"/{text}{{{{else}}}}{last}{{{{end}}}}"
    state.add({"id": id, "handler": "parse_transition", "prompt_template": text})
    state.then([*branches.values()])
    yield from ways


def _test(state: State, rule: Mapping[str, Any], where: str) -> str:
    """Return what a template asks for a rule."""
    test = condition(rule, where, state.reader(("CX-CHOICE", where)), state.lost)
    if parses(f"{{{{if {test}}}}}{{{{end}}}}"):
        return test
    state.lost("CX-OPERATOR", "no condition says this; it is never true", where)
    return NEVER


def _after(state: State, holder: Mapping[str, Any], env: Env, id: str) -> Env:
    """Return what is known behind a rule, or behind none."""
    here = state.knowing(Env(env.data, Part(id), env.variables))
    if state.value["Type"] == "Approval":
        return here.env
    data = here.raw if state.jsonata else output(here)
    if state.jsonata and "Output" in holder:
        why = ("CX-OUTPUT", state.at("Output"))
        data = here.reader(why).structure(holder["Output"])
    return Env(data, here.env.flow, assigned(here, holder, here.reader(None)))


def _label(goto: str, taken: FreshNames) -> str:
    """Return a new word for a target."""
    return taken.new(re.sub(r"[\s{}]+", "_", goto))
