"""The data of an execution: the output and the variables of a chain.

`input` is the input of the chain, `output` the output of the last task, `eval` its selecting text
(after a failure there is `failure` instead, the message of the first one), `variables` the outputs
of tasks by name, `vars` the values of the caller for `{{var:name}}`, and `edges` the number of
times that counted transitions were taken. The input of an execution is that of the chain, or an
object with only `input` and `vars`.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from asl.core.errors import ExpressionFault, StateError
from asl.core.json_text import read_data
from asl.core.values import Json
from asl.dialects.contenox.functions.texts import is_chat
from asl.expr.paths.selection import select
from asl.expr.paths.syntax import parse_path

__all__ = [
    "JSON_PATH",
    "STRATEGIES",
    "Data",
    "complete_task",
    "compose_output",
    "count_transition",
    "fail_task",
    "final_error",
    "get_variable",
    "input_of",
    "open_data",
    "runtime_error",
    "transition_count",
    "variables",
]

Data: TypeAlias = dict[str, Any]


def runtime_error(cause: str) -> StateError:
    """Return an error that is no failure of a task: it is neither retried nor caught."""
    return StateError("States.Runtime", cause)


def open_data(data: Json) -> Data:
    """Return the data of an execution; an input becomes the data at the start of a chain."""
    if isinstance(data, dict):
        if "input" in data and "output" in data and isinstance(data.get("variables"), dict):
            return data
        if data.keys() == {"input", "vars"} and isinstance(data["vars"], dict):
            given = data["input"]
            return {"input": given, "output": given, "variables": {}, "vars": data["vars"]}
    return {"input": data, "output": data, "variables": {}}


def input_of(data: Json) -> Json:
    """Return the input of the next task."""
    found: Json = open_data(data)["output"]
    return found


def variables(data: Json) -> dict[str, Json]:
    """Return the variables of templates by name."""
    found = open_data(data)
    named = {"input": found["input"], **found["variables"]}
    if found["variables"]:
        named["previous_output"] = found["output"]
    return named


def get_variable(data: Json, name: str) -> Json:
    """Return a variable.

    Raises:
        StateError: States.Runtime if there is none with this name.
    """
    named = variables(data)
    if name not in named:
        raise runtime_error(f"there is no variable {name!r}")
    return named[name]


def complete_task(data: Json, task: str, handled: Mapping[str, Json]) -> Data:
    """Return the data after a task with a result of its handler."""
    found = open_data(data)
    named = {**found["variables"], task: handled["output"]}
    new = {**found, "output": handled["output"], "eval": handled["eval"], "variables": named}
    new.pop("failure", None)  # a success forgets it
    return new


def fail_task(data: Json, task: str, error: Json, given: Json) -> Data:
    """Return the data after a failed task: its input is the next input."""
    message = _message(task, error)
    found = {key: value for key, value in open_data(data).items() if key != "eval"}
    found.setdefault("failure", message)
    errors = {"last_error": message, f"{task}_error": message}
    return {**found, "output": given, "variables": {**found["variables"], task: given, **errors}}


def final_error(data: Json, task: str, error: Json) -> Json:
    """Return the error of an execution; after an earlier failure its cause starts with that one."""
    first = open_data(data).get("failure")
    if first is None or not isinstance(error, dict):
        return error
    return {**error, "Cause": f"{first}; then {_message(task, error)}"}


def _message(task: str, error: Json) -> str:
    told = error if isinstance(error, dict) else {}
    return f"task {task}: {told.get('Cause') or told.get('Error') or 'failed'}"


def count_transition(data: Json, edge: str) -> Data:
    """Return the data after a counted transition."""
    found = open_data(data)
    edges = found.get("edges", {})
    return {**found, "edges": {**edges, edge: edges.get(edge, 0) + 1}}


def transition_count(data: Json, edge: str) -> int:
    """Return the number of times that a transition was taken."""
    found: int = open_data(data).get("edges", {}).get(edge, 0)
    return found


JSON_PATH: Final = "json_path:"
STRATEGIES: Final[Mapping[str, str]] = {
    "": "",
    "auto": "",
    "override": "override",
    "merge_chat_histories": "merge",
    "append_string_to_chat_history": "append",
    "append_string": "append",
}
"""The engine's strategies by their names in documents."""


def compose_output(
    data: Json, task: str, compose: Mapping[str, Any], when: str | None = None
) -> Data:
    """Return the data after a composition.

    With `json_path:...` a part of the output becomes a new variable; any other strategy combines
    the output with the variable `with_var`.

    Args:
        data: The data after the task.
        task: Name of the task.
        compose: The composition.
        when: The condition of its branch; None for the composition of the task.

    Raises:
        StateError: States.Runtime if it fails.
    """
    found = open_data(data)
    name, strategy = compose["with_var"], compose.get("strategy") or ""
    if strategy.startswith(JSON_PATH):
        value = _select_json_path(found["output"], strategy.removeprefix(JSON_PATH).strip())
        return {**found, "variables": {**found["variables"], name: value}}
    named = variables(data)
    if name not in named:
        raise runtime_error(f"'with_var' names no variable: {name!r}")
    value = _combine(STRATEGIES[strategy], found["output"], named[name], of_task=when is None)
    new = {task: value}
    if when is not None:
        said = when.lower().replace(" ", "_").replace("-", "_")
        new[f"{task}_{said}_composed"] = value
    return {**found, "output": value, "variables": {**found["variables"], **new}}


def _select_json_path(output: Json, path: str) -> Json:
    if isinstance(output, str):
        try:
            output = read_data(output)
        except ValueError:
            raise runtime_error(
                f"{JSON_PATH}{path} finds nothing: the output is not JSON"
            ) from None
    try:
        parsed = parse_path(path)
        nodes = select(parsed.segments, output, output)
    except (ExpressionFault, StateError) as fault:
        raise runtime_error(f"{JSON_PATH}{path}: {fault}") from None
    if not nodes:
        raise runtime_error(f"{JSON_PATH}{path} finds nothing in the output")
    return nodes[0] if parsed.definite else nodes


def _combine(strategy: str, left: Json, right: Json, *, of_task: bool) -> Json:
    if strategy == "":
        strategy = _choose_strategy(left, right)
    if strategy == "merge":
        return _merge_chats(left, right)
    if strategy == "append":
        return _append_text(left, right, of_task)
    objects = [each for each in (left, right) if isinstance(each, dict)]
    if of_task:
        if len(objects) < 2:
            raise runtime_error("override needs two objects")
        return _merge_deep(cast(dict[str, Json], left), cast(dict[str, Json], right))
    if len(objects) == 2:
        return {**cast(dict[str, Json], right), **cast(dict[str, Json], left)}
    return objects[0] if objects else left


def _choose_strategy(left: Json, right: Json) -> str:
    chats = is_chat(left), is_chat(right)
    if all(chats):
        return "merge"
    texts = isinstance(left, str), isinstance(right, str)
    return "append" if any(chats) and any(texts) else "override"


def _merge_chats(left: Json, right: Json) -> Json:
    if not is_chat(left) or not is_chat(right):
        raise runtime_error("merge_chat_histories needs two chats")
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


def _append_text(left: Json, right: Json, of_task: bool) -> Json:
    text, chat = (left, right) if isinstance(left, str) else (right, left)
    if not isinstance(text, str) or not is_chat(chat):
        raise runtime_error("append_string_to_chat_history needs a text and a chat")
    found = cast(dict[str, Any], chat)
    if of_task:
        messages = [{"role": "system", "content": text}, *found["messages"]]
    else:
        messages = [*found["messages"], {"role": "assistant", "content": text}]
    return {**found, "messages": messages}


def _merge_deep(left: Mapping[str, Json], right: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(left)
    for key, value in right.items():
        own = merged.get(key)
        both = isinstance(own, dict) and isinstance(value, dict)
        merged[key] = (
            _merge_deep(cast(dict[str, Json], own), cast(dict[str, Json], value)) if both else value
        )
    return merged
