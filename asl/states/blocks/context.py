"""Context: the data of a state for the agent, within a number of tokens (8.8)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, takewhile
from math import ceil
from typing import Any, Final, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Profile
from asl.core.values import Json, measure
from asl.expr.intrinsics.numeric import BYTES_PER_TOKEN, tokens_of
from asl.expr.paths import Path, parse_path
from asl.expr.paths.nodes import Steps, locate, node_path, remove_nodes
from asl.expr.result_path import insert_at
from asl.expr.templates import SUFFIX
from asl.expr.text_matching import similarity
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings
from asl.states.settings import BlockSettings

__all__ = ["CONTEXT", "show_context"]

STRATEGIES: Final = ("sliding_window", "priority_based", "semantic", "summarize")
MOMENTS: Final = ("TokensExceed", "Always", "Never")
TOP_K: Final = 10
RATIO: Final = 0.25
COUNTED: Final = "States.TokenCount"
"""The function by which tokens are counted."""
DOTS: Final = b"..."
"""The end of a truncated text."""

_Candidate: TypeAlias = tuple[str, tuple[Steps, ...], Json]
"""`(displayed path, its nodes, value)`."""


def show_context(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the context of a call."""
    plan = _Plan(compiler)

    async def perform(attempt: Attempt) -> Json:
        attempt.set_call_attribute("context", await plan.build(attempt))
        return await inner(attempt)

    return perform


class _Plan:
    """The block of one state, compiled."""

    def __init__(self, compiler: Compiler) -> None:
        block = compiler.compiler_at("Context")
        self.state, self.profile = compiler.name, compiler.profile
        self.fields = compile_settings(
            compiler, "Context", ("Strategy", "MaxTokens", "TopK", "Query")
        )
        self.exclude, self.include, self.priority, self.candidates = (
            _paths(block.state.get(field, ()))
            for field in ("Exclude", "Include", "Priority", "Candidates")
        )
        self.summarizes = "Summarize" in block.state
        self.summary = compile_settings(
            compiler, "Context.Summarize", ("When", "Using", "Ratio", "Target")
        )

    async def build(self, attempt: Attempt) -> Json:
        """Return the context of an attempt.

        Raises:
            StateError: Agent.ContextOverflow if the included values have too many tokens.
        """
        found = self.fields(attempt.data, attempt.frame)
        most = found.count("MaxTokens")
        document = remove_nodes(
            attempt.data,
            (steps for path in self.exclude for steps, _ in locate(path, attempt.data)),
        )
        window = _Window(self.profile, most)
        for path in self.include:
            for candidate in _named(path, document):
                if not window.shows(candidate):
                    window.take(candidate)
        if window.over:
            cause = (
                f"state '{self.state}': what Context.Include names has {window.tokens} tokens, "
                f"more than {most}"
            )
            raise StateError("Agent.ContextOverflow", cause)
        if self.summarizes:
            document = await self._summarized(attempt, document, most)
        for candidate in self._candidates(document, found):
            if not window.add(candidate):
                break
        told = {"tokens": window.tokens, "parts": len(window.parts)}
        attempt.frame.note("ContextBuilt", told)
        return {"parts": window.parts, "tokens": window.tokens}

    # Candidates

    def _candidates(self, document: Json, found: BlockSettings) -> Iterable[_Candidate]:
        strategy = found.choice("Strategy", STRATEGIES)
        if strategy == "priority_based":
            return (each for path in self.priority for each in _named(path, document))
        if strategy == "semantic":
            return self._likest(document, found)
        return _pieces(document, reversed)

    def _likest(self, document: Json, found: BlockSettings) -> list[_Candidate]:
        """Return the candidates most similar to the query, the best first."""
        query = found.values.get("Query")
        if type(query) is not str:
            raise found.invalid_value("Query", "a text")
        pieces = [
            piece
            for path in self.candidates
            for steps, value in locate(path, document)
            for piece in _elements(steps, value)
        ]
        if not self.candidates:
            pieces = list(_pieces(document))
        pieces.sort(key=lambda piece: -similarity(query, piece[2]))
        return pieces[: found.count("TopK") or TOP_K]

    # Summaries

    async def _summarized(self, attempt: Attempt, document: Json, most: int | None) -> Json:
        """Return the document, with a summary in place of the target if it is due."""
        found = self.summary(attempt.data, attempt.frame)
        when = found.choice("When", MOMENTS)
        ratio, agent = found.fraction("Ratio") or RATIO, found.name("Using")
        exceeds = most is not None and tokens_of(COUNTED, document, self.profile) > most
        nodes = locate(_target(found), document)
        if when == "Never" or (when != "Always" and not exceeds) or not nodes:
            return document
        if agent is None:
            raise found.invalid_value("Using", "the name of an agent")
        ((steps, content),) = nodes
        wanted = max(1, ceil(tokens_of(COUNTED, content, self.profile) * ratio))
        request = {"content": content, "ratio": ratio, "targetTokens": wanted}
        try:
            summary = _summary(await attempt.call_helper(agent, request))
        except StateError as error:
            if error.name == "States.BudgetExceeded":
                raise
            reason = f"the summariser {agent!r} failed: {error}"
        else:
            if summary is not None:
                return insert_at(document, steps, summary)
            reason = f"the summariser {agent!r} answered without a summary"
        attempt.frame.note("ContextWarning", {"reason": reason})
        return document


def _target(found: BlockSettings) -> Path:
    """Return the path of the summarised node; by default the whole document."""
    text = found.name("Target") or "$"
    path = _path(text)
    if path is None or not path.reference:
        raise found.invalid_value("Target", "a path to one node, such as $.history")
    return path


def _summary(answer: Json) -> Json:
    """Return the summary in an answer, or None."""
    if type(answer) is dict:
        return answer.get("summary", answer.get("response"))
    return answer if type(answer) is str else None


def _paths(texts: Iterable[str]) -> tuple[Path, ...]:
    """Return the paths into the data; the check reports wrong ones."""
    return tuple(path for text in texts if (path := _path(text)) is not None)


def _path(text: str) -> Path | None:
    try:
        path = parse_path(text)
    except ExpressionFault:
        return None
    return path if path.root == "$" else None


def _named(path: Path, document: Json) -> Iterator[_Candidate]:
    """Yield the nodes of a path as one candidate, if there are any."""
    nodes = locate(path, document)
    if nodes:
        values = [value for _, value in nodes]
        value = values[0] if path.definite else values
        yield path.text, tuple(steps for steps, _ in nodes), value


_Order: TypeAlias = Callable[[Any], Iterator[Any]]
"""`iter`, or `reversed` for the latest first."""


def _pieces(document: Json, order: _Order = iter) -> Iterator[_Candidate]:
    """Yield the fields of a document and the elements of its arrays."""
    if type(document) is dict:
        for key in order(document):
            yield from _elements((key,), document[key], order)
    else:
        yield from _elements((), document, order)


def _elements(steps: Steps, value: Json, order: _Order = iter) -> Iterator[_Candidate]:
    """Yield the elements of an array, and any other value itself."""
    if type(value) is not list:
        yield node_path(steps), (steps,), value
        return
    for at in order(range(len(value))):
        here = (*steps, at)
        yield node_path(here), (here,), value[at]


# --------------------------------------------------------------------------------------------
# The window


class _Window:
    """The parts of the context so far, and the remaining tokens."""

    def __init__(self, profile: Profile, most: int | None) -> None:
        self.count: Callable[[Json], int] = lambda value: tokens_of(COUNTED, value, profile)
        self.most = most
        self.tokens = 0
        self.parts: list[dict[str, Json]] = []
        self.shown: set[Steps] = set()

    @property
    def over(self) -> bool:
        """Whether the parts exceed the limit."""
        return self.most is not None and self.tokens > self.most

    def shows(self, candidate: _Candidate) -> bool:
        """Return whether a candidate is included already, by itself or within another one."""
        return all(
            any(node[:end] in self.shown for end in range(len(node) + 1)) for node in candidate[1]
        )

    def take(self, candidate: _Candidate, truncated: bool = False) -> None:
        """Include a candidate, even beyond the limit."""
        path, nodes, value = candidate
        tokens = self.count(value)
        self.shown.update(nodes)
        self.tokens += tokens
        self.parts.append({"path": path, "value": value, "tokens": tokens, "truncated": truncated})

    def add(self, candidate: _Candidate) -> bool:
        """Include a candidate, or its part within the limit; return False for the last one."""
        path, nodes, value = candidate
        if self.shows(candidate):
            return True
        left = None if self.most is None else self.most - self.tokens
        if left is None or self.count(value) <= left:
            self.take(candidate)
            return True
        cut = _cut(value, left, self.count)
        if cut:
            self.take((path, nodes, cut), truncated=True)
        return False


def _cut(value: Json, tokens: int, count: Callable[[Json], int]) -> Json:
    """Return the part of a value within so many tokens, None for nothing."""
    room = tokens * BYTES_PER_TOKEN
    if type(value) is str and room > len(DOTS):
        text = value[:room].encode()[: room - len(DOTS)]
        return text.decode(errors="ignore") + DOTS.decode()
    if type(value) is not list:
        return None
    # Each element counts with its own size and a comma.
    sizes = accumulate(measure(each, room) + 1 for each in reversed(value))
    kept = sum(1 for _ in takewhile(lambda size: size + 1 <= room, sizes))
    return value[len(value) - kept :]


# --------------------------------------------------------------------------------------------
# Checking


FOR: Final[Mapping[str, str]] = {
    "Priority": "priority_based",
    "Candidates": "semantic",
    "Query": "semantic",
    "TopK": "semantic",
}
"""The fields of a single strategy."""


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Context"]
    yield from _idle(block, node)
    for field in ("Include", "Exclude", "Candidates", "Priority"):
        listed = block.get(field)
        for index, text in enumerate(listed if type(listed) is list else ()):
            if type(text) is str and _path(text) is None and not node.open(text):
                code = "V-CTX-03" if field == "Priority" else "V-CTX-01"
                message = f"{text!r} is not a path into the effective input"
                yield Finding(code, message, node.at("Context", field, index), "such as $.history")
    yield from _hidden(block, node)
    yield from _check_summary(block, node)


def _hidden(block: Mapping[str, Json], node: Node) -> Iterator[Finding]:
    """Find included paths that are excluded."""
    # An excluded element of an array moves the following ones to other nodes.
    excluded = [
        path
        for _, path in _written(block, "Exclude")
        if all(type(step) is str for step in path.segments)
    ]
    for index, path in _written(block, "Include"):
        if any(path.segments[: len(each.segments)] == each.segments for each in excluded):
            message = f"{path.text!r} is excluded, so it cannot be included"
            place, hint = node.at("Context", "Include", index), "remove it from one of the lists"
            yield Finding("V-CTX-04", message, place, hint)


def _written(block: Mapping[str, Json], field: str) -> Iterator[tuple[int, Path]]:
    """Yield the paths of a list, each with its index."""
    listed = block.get(field)
    for index, text in enumerate(listed if type(listed) is list else ()):
        path = _path(text) if type(text) is str else None
        if path is not None:
            yield index, path


def _idle(block: Mapping[str, Json], node: Node) -> Iterator[Finding]:
    """Find fields without effect."""
    names = {field.removesuffix(SUFFIX) for field in block}
    strategy = block.get("Strategy", STRATEGIES[0])
    known = "Strategy.$" not in block and strategy in STRATEGIES
    for field in block if known else ():
        needed = FOR.get(field.removesuffix(SUFFIX), strategy)
        if needed != strategy:
            message = f"{field!r} has no effect on the strategy {strategy}"
            place, hint = node.at("Context", field), f'"Strategy": "{needed}"'
            yield Finding("V-CTX-04", message, place, hint, at_key=True)
    if strategy == "priority_based" and "Priority" not in names:
        message = "'Priority' is missing, so only the paths in 'Include' are in the context"
        yield Finding("V-CTX-04", message, node.at("Context", "Strategy"), "add Priority")
    summary = block.get("Summarize")
    if type(summary) is not dict or "MaxTokens" in names or "When.$" in summary:
        return
    if summary.get("When", MOMENTS[0]) == MOMENTS[0]:
        message = "'Summarize' has no effect without 'MaxTokens': no number of tokens is exceeded"
        place, hint = node.at("Context", "Summarize"), 'add MaxTokens, or "When": "Always"'
        yield Finding("V-CTX-04", message, place, hint, at_key=True)


def _check_summary(block: Mapping[str, Json], node: Node) -> Iterator[Finding]:
    summary = block.get("Summarize")
    if summary is None and block.get("Strategy") == "summarize":
        message = "the strategy 'summarize' needs 'Summarize'"
        yield Finding("V-CTX-01", message, node.at("Context", "Strategy"), "add Summarize")
    if type(summary) is not dict:
        return
    if {"Using", "Using.$"}.isdisjoint(summary) and summary.get("When") != "Never":
        message = "'Using' is missing: the agent that summarises"
        yield Finding(
            "V-CTX-01", message, node.at("Context", "Summarize"), "add Using", at_key=True
        )
    target = summary.get("Target")
    if type(target) is str and not node.is_computed(target):
        path = _path(target)
        if path is None or not path.reference:
            message = f"'Target' must select one node, not {target!r}"
            pointer = node.at("Context", "Summarize", "Target")
            yield Finding("V-CTX-01", message, pointer, "a path such as $.history")


CONTEXT = Block(
    "Context",
    _check,
    lacks=(
        "Priority.$",
        "Include.$",
        "Exclude.$",
        "Candidates.$",
        "Summarize.$",
    ),
)
