"""What tasks evaluate to, and which branches that satisfies."""

from collections.abc import Iterable, Mapping
from typing import Final

from asl.dialects.contenox.chain import Chain, ChainBranch, Task
from asl.dialects.contenox.functions.handlers import TOKENS
from asl.dialects.contenox.functions.texts import is_between, is_greater, is_less
from asl.dialects.contenox.operands import number, range_of

__all__ = ["ALIASING", "aliases", "evaluations", "holds", "tool_token"]

ALIASING: Final = ("chat_completion", "execute_tool_calls", "tools", "noop")
_SAME: Final = (
    ("stop", "executed"),
    ("tool-call", "tool_call"),
    ("ok", "tools_executed"),
    ("error", "failed"),
    ("noop", "no_op"),
)
"""Tokens that count as the same text, outside of the profile seed."""
_WORDS: Final = {
    word: (word, *(each for each in same if each != word)) for same in _SAME for word in same
}
_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "noop": ("noop",),
    "raise_error": (),
    "prompt_to_js": ("ok", "empty_js"),
    "text_to_embedding": ("ok",),
    "convert_to_openai_chat_response": ("converted",),
    "parse_key_value": ("parsed",),
}


def aliases(chain: Chain, task: Task, word: str) -> tuple[str, ...]:
    """Return the texts that count as a word where a task is compared with it, itself first."""
    if chain.profile == "seed" or task.handler not in ALIASING or task.value.get("output_template"):
        return (word,)
    return _WORDS.get(word, (word,))


def tool_token(chain: Chain, task: Task) -> str:
    """Return what a tool's task evaluates to."""
    if chain.profile == "seed" or task.written_handler == "hook":
        return "ok"
    return "tools_executed"


def evaluations(chain: Chain, task: Task) -> tuple[str, ...] | None:
    """Return all that a task can evaluate to, None where that may be any text."""
    handler, words = task.handler, TOKENS[chain.tokens]
    if handler in _FIXED:
        return _FIXED[handler]
    if handler == "tools":
        return None if task.value.get("output_template") else (tool_token(chain, task),)
    if handler == "chat_completion":
        return tuple(dict.fromkeys(words[each] for each in ("call", "stop", "length")))
    if handler == "execute_tool_calls":
        return tuple(dict.fromkeys((words["ran"], words["none"], "noop")))
    if handler == "condition_key":
        return tuple(task.value.get("valid_conditions") or ())
    return None


def holds(branch: ChainBranch, said: str, words: Iterable[str]) -> bool:
    """Whether a branch is taken for a text, as far as it is known without a run.

    *words* are those that count as the branch's `when`.
    """
    when = branch.when
    match branch.operator:
        case "equals":
            return said in words
        case "not_equals":
            return said not in words
        case "contains":
            return when in said
        case "not_contains":
            return when not in said
        case "starts_with":
            return said.startswith(when)
        case "ends_with":
            return said.endswith(when)
        case "gt":
            return bool(is_greater(said, number(when)))
        case "lt":
            return bool(is_less(said, number(when)))
        case "in_range" | "range":
            return bool(is_between(said, *range_of(branch.operator, when)))
    return True
