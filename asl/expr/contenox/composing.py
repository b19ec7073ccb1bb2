"""Compositions: what a branch makes of a task's output on its way."""

from collections.abc import Mapping
from typing import Any, Final, cast

from asl.core.errors import ExpressionFault, StateError
from asl.core.json_text import read_data
from asl.core.values import Json
from asl.expr.contenox.data import Data, opened, refusal, variables
from asl.expr.contenox.texts import is_chat
from asl.expr.paths.selection import select
from asl.expr.paths.syntax import parse_path

__all__ = ["JSON_PATH", "STRATEGIES", "composed"]

JSON_PATH: Final = "json_path:"
STRATEGIES: Final[Mapping[str, str]] = {
    "": "",
    "auto": "",
    "override": "override",
    "merge_chat_histories": "merge",
    "append_string_to_chat_history": "append",
    "append_string": "append",
}
"""The strategies of the engine by the names that they are written with."""


def composed(data: Json, task: str, compose: Mapping[str, Any], when: str | None = None) -> Data:
    """Return the data after a composition; what fails ends the run.

    With `json_path:...` a new variable is made of the output; any other strategy puts the output
    and the variable `with_var` together. *when* is that of the branch, None for the composition of
    a task itself.
    """
    found = opened(data)
    name, strategy = compose["with_var"], compose.get("strategy") or ""
    if strategy.startswith(JSON_PATH):
        value = _picked(found["output"], strategy.removeprefix(JSON_PATH).strip())
        return {**found, "variables": {**found["variables"], name: value}}
    named = variables(data)
    if name not in named:
        raise refusal(f"there is no variable {name!r} to compose with")
    value = _together(STRATEGIES[strategy], found["output"], named[name], of_task=when is None)
    new = {task: value}
    if when is not None:
        said = when.lower().replace(" ", "_").replace("-", "_")
        new[f"{task}_{said}_composed"] = value
    return {**found, "output": value, "variables": {**found["variables"], **new}}


def _picked(output: Json, path: str) -> Json:
    if isinstance(output, str):
        try:
            output = read_data(output)
        except ValueError:
            raise refusal(f"{JSON_PATH}{path} finds nothing: the output is no JSON") from None
    try:
        parsed = parse_path(path)
        nodes = select(parsed.segments, output, output)
    except (ExpressionFault, StateError) as fault:
        raise refusal(f"{JSON_PATH}{path}: {fault}") from None
    if not nodes:
        raise refusal(f"{JSON_PATH}{path} finds nothing in the output")
    return nodes[0] if parsed.definite else nodes


def _together(strategy: str, left: Json, right: Json, *, of_task: bool) -> Json:
    if strategy == "":
        strategy = _chosen(left, right)
    if strategy == "merge":
        return _merged(left, right)
    if strategy == "append":
        return _appended(left, right, of_task)
    objects = [each for each in (left, right) if isinstance(each, dict)]
    if of_task:
        if len(objects) < 2:
            raise refusal("override needs two objects")
        return _deep(cast(dict[str, Json], left), cast(dict[str, Json], right))
    if len(objects) == 2:
        return {**cast(dict[str, Json], right), **cast(dict[str, Json], left)}
    return objects[0] if objects else left


def _chosen(left: Json, right: Json) -> str:
    chats = is_chat(left), is_chat(right)
    if all(chats):
        return "merge"
    texts = isinstance(left, str), isinstance(right, str)
    return "append" if any(chats) and any(texts) else "override"


def _merged(left: Json, right: Json) -> Json:
    if not is_chat(left) or not is_chat(right):
        raise refusal("merge_chat_histories needs two chats")
    one, other = cast(dict[str, Any], left), cast(dict[str, Any], right)
    merged = {**other, **one, "messages": [*other["messages"], *one["messages"]]}
    for count in ("input_tokens", "output_tokens", "inputTokens", "outputTokens"):
        if count in one or count in other:
            merged[count] = _tokens(one.get(count)) + _tokens(other.get(count))
    if one.get("model") != other.get("model"):
        merged["model"] = ""
    return merged


def _tokens(value: Json) -> float:
    return value if type(value) is int or type(value) is float else 0


def _appended(left: Json, right: Json, of_task: bool) -> Json:
    text, chat = (left, right) if isinstance(left, str) else (right, left)
    if not isinstance(text, str) or not is_chat(chat):
        raise refusal("append_string_to_chat_history needs a text and a chat")
    found = cast(dict[str, Any], chat)
    if of_task:
        messages = [{"role": "system", "content": text}, *found["messages"]]
    else:
        messages = [*found["messages"], {"role": "assistant", "content": text}]
    return {**found, "messages": messages}


def _deep(left: Mapping[str, Json], right: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(left)
    for key, value in right.items():
        own = merged.get(key)
        both = isinstance(own, dict) and isinstance(value, dict)
        merged[key] = (
            _deep(cast(dict[str, Json], own), cast(dict[str, Json], value)) if both else value
        )
    return merged
