"""What the meanings of the functions of chains leave out, for the writers of other languages."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.errors import ExpressionFault
from asl.dialects.contenox.chain import Chain, Task
from asl.dialects.contenox.functions.chain_data import JSON_PATH
from asl.dialects.contenox.functions.templates import (
    Node,
    ShowAction,
    TemplateBlock,
    TemplateConstant,
    parse,
)
from asl.dialects.contenox.reader import METADATA

__all__ = ["meaning_losses"]

_ANSWERS: Final = {
    "condition_key": "one of the keys of 'valid_conditions' without blanks",
    "route": "one of the labels",
    "parse_number": "a whole number",
    "parse_score": "a number",
    "parse_range": "a range a-b without blanks",
    "prompt_to_string": "a text without blanks around it",
}
"""The answers that need no handler, by handlers."""


def meaning_losses(document: Document) -> Iterator[Finding]:
    """Yield what a chain does here and its meaning does not say.

    Args:
        document: A document that was read from a chain.

    Yields:
        A loss for each cause and task, with its place in the chain.
    """
    about = document.value["Metadata"][METADATA]
    chain = Chain(about["chain"], about["profile"])
    yield Finding(
        "L-INPUT",
        "the input is under the key 'input'",
        f"{chain.start.pointer}/id",
        'give the input as {"input": ...}',
    )
    for task in chain.tasks.values():
        yield from _of_task(task)
        if task.id in chain.rescuers and task.handler != "noop":
            message = "the cause of a later failure does not name the first one"
            yield Finding("L-CAUSE", message, f"{task.pointer}/id")


def _of_task(task: Task) -> Iterator[Finding]:
    place = f"{task.pointer}/{'handler' if 'handler' in task.value else 'type'}"
    if task.handler in _ANSWERS:
        message = f"the answer is used unchanged: it has to be {_ANSWERS[task.handler]}"
        decides = any(each.operator != "default" for each in task.branches)
        severity = Severity.ERROR if decides else Severity.WARNING
        yield Finding("L-ANSWER", message, place, severity=severity)
    if task.handler in ("chat_completion", "execute_tool_calls"):
        message = "prompts, answers and results are passed on without the conversation"
        yield Finding("L-HISTORY", message, place)
    if task.config:
        message = "a model is called without the settings of its task"
        yield Finding("L-MODEL", message, f"{task.pointer}/execute_config")
    if task.handler == "execute_tool_calls":
        message = "a run fails where the answer before has no tool calls"
        yield Finding("L-REQUIRED", message, place, severity=Severity.ERROR)
    if not task.echoes and _shows_values(task.value.get("output_template") or ""):
        message = "numbers, objects and missing values have another form in a text"
        at = f"{task.pointer}/output_template"
        yield Finding("CX-GOFMT", message, at, severity=Severity.ERROR)
    for compose, at in _compositions(task):
        yield from _of_composition(compose, at)
    if _shows_values(task.template):
        message = "numbers, objects and missing values have another form in a text"
        yield Finding("CX-GOFMT", message, f"{task.pointer}/prompt_template")


def _compositions(task: Task) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the compositions of a task with their places, that of the task itself first."""
    if task.value.get("compose"):
        yield task.value["compose"], f"{task.pointer}/compose"
    for branch in task.branches:
        if branch.compose is not None:
            yield branch.compose, f"{branch.pointer}/compose"


def _of_composition(compose: Mapping[str, Any], place: str) -> Iterator[Finding]:
    if str(compose.get("strategy") or "").startswith(JSON_PATH):
        message = "a part is selected of an object only: JSON in a text is not read"
        yield Finding("L-ANSWER", message, place)
    elif "/branches/" not in place:
        message = "two objects are merged at their first level only"
        yield Finding("L-TRANSFORM", message, place, severity=Severity.ERROR)


def _shows_values(template: str) -> bool:
    """Whether a text shows a value of the data."""
    try:
        return any(map(_shows_value, parse(template)))
    except ExpressionFault:
        return True


def _shows_value(node: Node) -> bool:
    match node:
        case ShowAction(value):
            return not isinstance(value, TemplateConstant)
        case TemplateBlock():
            return any(map(_shows_value, (*node.body, *node.otherwise)))
    return not isinstance(node, str)
