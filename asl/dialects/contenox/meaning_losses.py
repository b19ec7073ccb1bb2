"""What the meanings of the functions of chains leave out, for the writers of other languages."""

from collections.abc import Iterator
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.dialects.contenox.chain import Chain, Task
from asl.dialects.contenox.reader import METADATA

__all__ = ["meaning_losses"]

_READ: Final = {
    "condition_key": "one of the keys of 'valid_conditions', and nothing else",
    "route": "one of the labels, and nothing else",
    "parse_number": "a whole number",
    "parse_score": "a number",
    "parse_range": "a range a-b",
    "prompt_to_string": "a text without blanks around it",
    "chat_completion": "a text, or {content, tool_calls}",
}
"""What the agents of handlers have to answer."""


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
        "the input has a name: it is $.input",
        f"{chain.start.pointer}/id",
        'give the input as {"input": ...}',
    )
    for task in chain.tasks.values():
        yield from _of_task(task)
        if task.id in chain.rescuers and task.handler != "noop":
            told = "a failure behind another does not name the first one"
            yield Finding("L-CAUSE", told, f"{task.pointer}/id")


def _of_task(task: Task) -> Iterator[Finding]:
    place = f"{task.pointer}/{'handler' if 'handler' in task.value else 'type'}"
    if task.handler in _READ:
        told = f"no handler reads the answer: it has to be {_READ[task.handler]}"
        yield Finding("L-ANSWER", told, place, severity=Severity.ERROR)
    if task.handler == "chat_completion":
        told = "a model is given what moves along, without the messages before it"
        yield Finding("L-HISTORY", told, place)
    if task.handler == "execute_tool_calls":
        told = "the results of tools are no messages of the conversation"
        yield Finding("L-HISTORY", told, place)
        told = "the calls are those of the answer before; without any the run fails"
        yield Finding("L-REQUIRED", told, place, severity=Severity.ERROR)
    if task.value.get("output_template"):
        told = "a template shows numbers, objects and missing values in its own way"
        at = f"{task.pointer}/output_template"
        yield Finding("CX-GOFMT", told, at, severity=Severity.ERROR)
    if "{{" in task.template:
        told = "a template shows numbers, objects and missing values in its own way"
        yield Finding("CX-GOFMT", told, f"{task.pointer}/prompt_template")
