"""Types of the data of a chain: find tasks whose input has a type that they cannot take."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.dialects.contenox.chain import Chain, ChainBranch, Task
from asl.dialects.contenox.functions.chain_data import JSON_PATH

__all__ = ["check_data_types"]

Kinds = frozenset[str]

TEXT, NUMBER, BOOLEAN, CHAT, OTHER = "a text", "a number", "a boolean", "a chat", "something else"
ANY: Final = frozenset((TEXT, NUMBER, BOOLEAN, CHAT, OTHER))
_WORDS: Final = ANY - {OTHER}
"""Types with a form as text."""
_TAKEN: Final[Mapping[str, Kinds]] = {
    "noop": ANY,
    "tools": ANY,
    "execute_tool_calls": frozenset((CHAT,)),
    "chat_completion": frozenset((TEXT, CHAT)),
    "convert_to_openai_chat_response": frozenset((TEXT, CHAT)),
}
"""Input types of handlers; all others take every type with a form as text."""
_MADE: Final[Mapping[str, Kinds]] = {
    "chat_completion": frozenset((CHAT,)),
    "execute_tool_calls": frozenset((CHAT,)),
    "tools": ANY,
    "condition_key": frozenset((BOOLEAN,)),
    "parse_number": frozenset((NUMBER,)),
    "parse_score": frozenset((NUMBER,)),
    "parse_range": frozenset((TEXT,)),
    "prompt_to_string": frozenset((TEXT,)),
    "prompt_to_js": frozenset((TEXT, NUMBER, BOOLEAN)),
    "parse_key_value": frozenset((OTHER,)),
    "text_to_embedding": frozenset((OTHER,)),
    "convert_to_openai_chat_response": frozenset((OTHER,)),
    "raise_error": frozenset(),
}
"""Output types of handlers; all others pass on their input."""
_NEEDS: Final = {
    "execute_tool_calls": "a chat",
    "chat_completion": "a text or a chat",
    "convert_to_openai_chat_response": "a text or a chat",
}


class _Way(NamedTuple):
    """One source of the input of a task."""

    kinds: Kinds
    source: str
    pointer: str


def check_data_types(chain: Chain) -> Iterator[Finding]:
    """Yield warnings about transitions, and tasks, whose input has an unsupported type."""
    flow = _Flow(chain)
    for task in chain.tasks.values():
        ways = [each for each in flow.ways(task) if each.kinds]
        taken = _TAKEN.get(task.handler, _WORDS)
        wrong = [each for each in ways if taken.isdisjoint(each.kinds)]
        needs = f"{task.id!r} needs {_NEEDS.get(task.handler, 'a text, a number or a chat')}"
        if wrong and len(wrong) == len(ways):
            message = f"{needs}, and never gets one"
            hint = "put it after a chat_completion, or name one in input_var"
            if taken != {CHAT}:
                hint = "set its input with prompt_template or input_var"
            place = f"{task.pointer}/{'handler' if 'handler' in task.value else 'type'}"
            yield Finding("CX-TYPES", message, place, hint)
            continue
        for each in wrong:
            message = f"{needs}, and {each.source!r} returns {' or '.join(sorted(each.kinds))}"
            hint = "add a task between them, or set an input_var"
            yield Finding("CX-TYPES", message, each.pointer, hint)


class _Flow:
    """What every task is given and makes, by the ways of the chain."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.leading: dict[str, list[tuple[Task, ChainBranch | None]]] = {}
        """By the name of a task, what leads to it: branches, and failures (None)."""
        for source in chain.tasks.values():
            for branch in source.branches:
                self.leading.setdefault(branch.goto, []).append((source, branch))
            if source.on_failure:
                self.leading.setdefault(source.on_failure, []).append((source, None))
        self.given: dict[str, Kinds] = dict.fromkeys(chain.tasks, frozenset())
        before: object = None
        while before != self.given:
            before = dict(self.given)
            for task in chain.tasks.values():
                self.given[task.id] = frozenset().union(*(each.kinds for each in self.ways(task)))

    def ways(self, task: Task) -> Iterator[_Way]:
        """Yield the sources of the input of a task."""
        if task.template:
            yield _Way(frozenset((TEXT,)), task.id, f"{task.pointer}/prompt_template")
            return
        if task.input_var:
            left = self.left(task.input_var)
            yield _Way(left, task.input_var, f"{task.pointer}/input_var")
            return
        if task.id == self.chain.start.id:
            yield _Way(ANY, "", task.pointer)
        for source, branch in self.leading.get(task.id, ()):
            if branch is None:
                place = f"{source.pointer}/transition/on_failure"
                yield _Way(self.given[source.id], source.id, place)
                continue
            caught = branch is self.chain.caught(source)
            kinds = self.given[source.id] if caught else self.made(source)
            composes = branch.compose is not None and _replaces(branch.compose)
            yield _Way(ANY if composes else kinds, source.id, f"{branch.pointer}/goto")

    def made(self, task: Task) -> Kinds:
        """Return the output types of a task."""
        if "compose" in task.value and _replaces(task.value["compose"]):
            return ANY
        if task.handler == "tools" and task.value.get("output_template"):
            return frozenset((TEXT,))
        return _MADE.get(task.handler, self.given[task.id])

    def left(self, name: str) -> Kinds:
        """Return the types of a variable."""
        task = self.chain.tasks.get(name)
        if task is None or any(each.compose is not None for each in task.branches):
            return ANY
        return self.made(task) | (self.given[name] if self.chain.rescue(task) else frozenset())


def _replaces(compose: Mapping[str, object]) -> bool:
    """Whether a composition replaces the output."""
    return not str(compose.get("strategy") or "").startswith(JSON_PATH)
