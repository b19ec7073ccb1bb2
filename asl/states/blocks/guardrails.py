"""Guardrails: checks of the input and output of an agent (Specification 8.2)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.errors import StateError
from asl.core.regex import linear
from asl.core.values import Json, is_integer
from asl.core.work import Spend, WorkExceeded
from asl.expr.templates import SUFFIX
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform
from asl.states.blocks.guardrail_rules import (
    CUTTABLE,
    ContentVerdict,
    Inspect,
    NeedsInspection,
    Prefilter,
    always,
    collect_texts,
    compile_cutter,
    compile_prefilter,
    content_rule,
    length_rule,
    personal_kind,
)
from asl.states.blocks.pii import KINDS
from asl.states.blocks.verdicts import UnclearVerdict, rejection
from asl.states.schemas import typed_fields

__all__ = ["GUARDRAILS", "guard_input", "guard_output"]

WARNS: Final = ("warn", "flag")
CUTS: Final = ("redact", "mask")
FLAGS: Final = "ims"

_Judge: TypeAlias = Callable[[Attempt, Json], Awaitable[ContentVerdict]]
"""Judges a content by an agent."""


class _Rule(NamedTuple):
    """One rule, compiled."""

    place: str
    """Its name in messages: `rule 2 (regex)`."""
    type: str
    action: str
    clue: Prefilter | None = None
    """None if every content needs inspection."""
    look: Inspect | None = None
    judge: _Judge | None = None
    """The judge of a rule without an inspection."""
    cut: Callable[[Json, Spend], Json] | None = None
    """Removes or masks its matches, for the actions `redact` and `mask`."""
    optional: bool = False
    """Whether it is skipped if its checker is not registered."""


class _Again(Exception):
    """An output rule requires another answer."""


# --------------------------------------------------------------------------------------------
# The two sides


def guard_input(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the guardrails of the parameters of a call."""
    if "Input" not in compiler.state["Guardrails"]:
        return inner
    written, computed = _compile_guard(compiler, "Input")

    async def guarded(attempt: Attempt, guard: _Guard) -> Json:
        attempt.payload = await guard.apply(attempt, attempt.payload, False)
        return await inner(attempt)

    def perform(attempt: Attempt) -> Awaitable[Json]:
        guard = written or computed(attempt)
        doubtful = guard.is_doubtful(attempt, attempt.payload)
        return guarded(attempt, guard) if doubtful else inner(attempt)

    return perform


def guard_output(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the guardrails of the raw result, which may call the agent again."""
    if "Output" not in compiler.state["Guardrails"]:
        return inner
    written, computed = _compile_guard(compiler, "Output")

    async def perform(attempt: Attempt) -> Json:
        guard = written or computed(attempt)
        attempt.judge = guard.apply_once
        left = guard.retries
        if guard.repeats:
            attempt.may_repeat()
        while True:
            result = attempt.answer = await inner(attempt)
            if not guard.is_doubtful(attempt, result):
                return result
            try:
                return await guard.apply(attempt, result, left > 0)
            except _Again:
                left -= 1

    return perform


def _compile_guard(
    compiler: Compiler, side: str
) -> tuple["_Guard | None", Callable[[Attempt], "_Guard"]]:
    """Compile one side: a constant guard, or a function that makes one for each attempt."""
    state, settled = compiler.name, compiler.computed_block("Guardrails")
    if settled is not None:
        block = settled
        return None, lambda attempt: _Guard(
            block(attempt.data, attempt.frame)[side], state, side.lower()
        )
    guard = _Guard(compiler.state["Guardrails"][side], state, side.lower())
    return guard, lambda attempt: guard


class _Guard:
    """The rules and the validator of one side."""

    def __init__(self, side: Mapping[str, Json], state: str, direction: str) -> None:
        self.state = state
        self.direction = direction
        self.written: list[Json] = side.get("Rules", [])
        self.rules = [
            rule
            for index, written in enumerate(self.written)
            if (rule := _rule(written, index, self)) is not None
        ]
        self.repeats = any(rule.action == "retry" for rule in self.rules)
        self.retries = int(side.get("MaxRetries", 1)) if direction == "output" else 0
        """Maximum repetitions of the call in one attempt."""
        self.validator: str | None = side.get("Validator")
        self.warns = side.get("OnFail") == "warn"
        clues = [rule.clue for rule in self.rules]
        asked = None in clues or self.validator is not None
        self.doubts: NeedsInspection = (
            always if asked else compile_prefilter([each for each in clues if each])
        )
        """Whether a content needs inspection; most do not."""

    async def apply_once(self, attempt: Attempt, content: Json) -> Json:
        """Return a content after the guardrails, without repeating the call."""
        return await self.apply(attempt, content, False)

    def is_doubtful(self, attempt: Attempt, content: Json) -> bool:
        """Return whether a content needs inspection; raises StateError for too much work."""
        try:
            return self.doubts(content, attempt.frame.work.spend)
        except WorkExceeded as exceeded:
            raise self.work_error(exceeded) from None

    def work_error(self, exceeded: WorkExceeded) -> StateError:
        """Return the error of a content that needs too much work."""
        cause = f"state '{self.state}': the guardrails of the {self.direction}: {exceeded}"
        return StateError("States.Runtime", cause)

    async def apply(self, attempt: Attempt, content: Json, may_retry: bool) -> Json:
        """Return the content after the guardrails; raises StateError, or _Again if *may_retry*."""
        try:
            return await self._passed(attempt, content, may_retry)
        except WorkExceeded as exceeded:
            raise self.work_error(exceeded) from None

    async def _passed(self, attempt: Attempt, content: Json, may_retry: bool) -> Json:
        texts: list[str] | None = None
        spend = attempt.frame.work.spend
        for rule in self.rules:
            if rule.look is not None:
                if texts is None:
                    texts = collect_texts(content, spend)
                verdict = rule.look(content, texts, spend)
            else:
                verdict = await self._judged(rule, attempt, content)
            if verdict is None:
                continue
            texts = None
            if verdict.reason is not None:
                reason = f"{rule.place}: {verdict.reason}"
                if rule.action in WARNS:
                    self.warn(attempt, reason)
                    continue
                if rule.action == "retry" and may_retry:
                    raise _Again
                if rule.cut is not None and verdict.cuttable:
                    content = rule.cut(content, spend)
                    continue
                self.fail(attempt, reason)
            if verdict.content:
                (content,) = verdict.content
        if self.validator is not None:
            verdict = await self.ask_agent(attempt, self.validator, content)
            if verdict.reason is not None:
                self.fail(attempt, f"validator {self.validator!r}: {verdict.reason}")
            if verdict.content:
                (content,) = verdict.content
        return content

    async def _judged(self, rule: _Rule, attempt: Attempt, content: Json) -> ContentVerdict | None:
        assert rule.judge is not None
        try:
            return await rule.judge(attempt, content)
        except StateError as error:
            if error.name != "States.AgentNotFound" or rule.type != "semantic":
                raise
            if rule.optional:
                self.warn(attempt, f"{rule.place}: its checker is not registered")
                return None
            return ContentVerdict("its checker is not registered")

    async def ask_agent(self, attempt: Attempt, agent: str, content: Json) -> ContentVerdict:
        """Return the verdict of an agent on a content."""
        answer = await attempt.call_helper(
            agent,
            {
                "content": content,
                "direction": self.direction,
                "state": self.state,
                "rules": self.written,
            },
        )
        if type(answer) is bool:  # True if the checker has found a violation
            return ContentVerdict("it says so" if answer else None)
        replaces = type(answer) is dict and "content" in answer
        try:
            # An answer with new content accepts it.
            reason = rejection({"valid": True, **answer} if replaces else answer)
        except UnclearVerdict as unclear:
            raise self.unclear(agent, unclear.wanted, unclear.found) from None
        new = (answer["content"],) if replaces else ()
        return ContentVerdict(reason, new)

    def unclear(self, agent: str, wanted: str, found: str) -> StateError:
        """Return the error of a judge whose answer is no verdict; the content is rejected."""
        cause = f"state '{self.state}': {agent!r} must answer {wanted}, not {found}"
        return StateError("Agent.InvalidOutput", cause)

    def warn(self, attempt: Attempt, reason: str) -> None:
        """Record a warning."""
        details = {"direction": self.direction, "reason": reason}
        attempt.frame.note("GuardrailWarning", details)

    def fail(self, attempt: Attempt, reason: str) -> None:
        """Raise StateError for a violation, or record a warning."""
        if self.warns:
            self.warn(attempt, reason)
            return
        details = {"direction": self.direction, "reason": reason}
        attempt.frame.note("GuardrailViolation", details)
        cause = f"state '{self.state}': {self.direction} {reason}"
        raise StateError("Agent.GuardrailViolation", cause)


# --------------------------------------------------------------------------------------------
# Rules


def _rule(written: Mapping[str, Json], index: int, guard: _Guard) -> _Rule | None:
    kind = written["Type"]
    action = written.get("Action", "block")
    place = f"rule {index + 1} ({kind})"
    if kind == "pii" and written.get("Detect") is False:
        return None
    if kind in CUTTABLE:
        find, clue, look = content_rule(written)
        cut = compile_cutter(find, action) if action in CUTS else None
        return _Rule(place, kind, action, clue, look, cut=cut)
    if kind == "length":
        return _Rule(place, kind, action, *length_rule(written))
    agent = (
        written["Check"] if kind == "semantic" else written.get("Validator", written.get("Agent"))
    )

    async def judge(attempt: Attempt, content: Json) -> ContentVerdict:
        return await guard.ask_agent(attempt, agent, content)

    optional = "Action" not in written or action in WARNS
    return _Rule(place, kind, action, judge=judge, optional=optional)


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    for side in ("Input", "Output"):
        guard = node.value["Guardrails"].get(side)
        rules = guard.get("Rules") if type(guard) is dict else None
        if side == "Output" and type(guard) is dict:
            yield from _idle_retries(guard, node)
        for index, rule in enumerate(rules if type(rules) is list else ()):
            if type(rule) is dict:
                yield from _check_rule(
                    node, rule, side, node.at("Guardrails", side, "Rules", index)
                )


def _idle_retries(guard: Mapping[str, Json], node: Node) -> Iterator[Finding]:
    """Find a number of retries without a rule that retries."""
    rules: Json = guard.get("Rules", [])
    most: Json = guard.get("MaxRetries")
    if not is_integer(most) or most < 1 or "Rules.$" in guard or type(rules) is not list:
        return
    for rule in filter(lambda each: type(each) is dict, rules):
        action = rule.get("Action")
        if action == "retry" or node.is_computed(action) or "Action.$" in rule:
            return
    message = "'MaxRetries' has no effect without a rule with the action 'retry'"
    place, hint = node.at("Guardrails", "Output", "MaxRetries"), 'set "Action": "retry" in a rule'
    yield Finding("V-GRD-07", message, place, hint, at_key=True)


def _check_rule(node: Node, rule: Mapping[str, Json], side: str, pointer: str) -> Iterator[Finding]:
    kind, action = rule.get("Type"), rule.get("Action")
    if action == "flag":
        yield Finding("V-GRD-03", "'flag' is another word for 'warn'", f"{pointer}/Action", "warn")
    if action == "retry" and side == "Input":
        yield Finding(
            "V-GRD-04",
            "'retry' calls the agent again, which does not change its input",
            f"{pointer}/Action",
            severity=Severity.ERROR,
        )
    known = "Type" in rule and not node.is_computed(kind)
    blocks = "Block" in rule or "Block.$" in rule
    if action in CUTS and known and (kind not in CUTTABLE or (kind == "pattern" and not blocks)):
        message = f"{action!r} has no matches to remove in this rule, so it acts as 'block'"
        yield Finding("V-GRD-04", message, f"{pointer}/Action", "block")
    fields = typed_fields("blocks:GuardrailRule")
    own = fields.get(kind, ()) if type(kind) is str else ()
    others = {each for names in fields.values() for each in names}.difference(own)
    for field in rule if own else ():
        if field.removesuffix(SUFFIX) in others:
            message = f"{field!r} has no effect in a rule of the type {kind}"
            hint = f"it takes {' and '.join(own)}"
            yield Finding("V-GRD-07", message, f"{pointer}/{field}", hint, at_key=True)
    for field in ("Block", "Types"):
        sought = rule.get(field)
        if type(sought) is list and (not sought or "" in sought):
            message = "an empty text is never found" if sought else f"{field!r} is empty"
            yield Finding("V-GRD-07", message, f"{pointer}/{field}", "add a text, or remove it")
    if kind == "length":
        yield from _check_length(rule, pointer)
    if kind == "regex":
        yield from _check_regex(node, rule, pointer)
    types = rule.get("Types")
    for index, name in enumerate(types if kind == "pii" and type(types) is list else ()):
        if type(name) is str and personal_kind(name) not in KINDS and not node.is_computed(name):
            message = f"{name!r} is not a kind of personal data"
            hint = did_you_mean(personal_kind(name), KINDS) or f"one of {', '.join(KINDS)}"
            yield Finding("V-GRD-02", message, f"{pointer}/Types/{index}", hint)


def _check_length(rule: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    least: Json = rule.get("Min")
    most: Json = rule.get("Max")
    if is_integer(least) and is_integer(most) and least > most:
        message = f"'Min' {least} is above 'Max' {most}"
        yield Finding("V-GRD-02", message, f"{pointer}/Min", "swap them, or remove one")


def _check_regex(node: Node, rule: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    pattern, flags = rule.get("Pattern"), rule.get("Flags", "")
    flags = "" if node.is_computed(flags) else flags
    if type(flags) is str and not set(flags) <= set(FLAGS):
        message = f"unknown flags {flags!r}"
        yield Finding("V-GRD-02", message, f"{pointer}/Flags", "letters of i, m and s")
    elif type(pattern) is str and type(flags) is str and not node.is_computed(pattern):
        try:
            linear(pattern, flags)
        except ValueError as fault:
            message = f"{pattern!r} is not a regular expression: {fault}"
            hint = "there are no back-references and no look-around"
            yield Finding("V-GRD-02", message, f"{pointer}/Pattern", hint)


GUARDRAILS = Block("Guardrails", _check, lacks=("Input/Rules.$", "Output/Rules.$"))
