"""Model and Generation: which model an agent is to use, and how (Specification 8.6)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.values import Json
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, settings
from asl.states.settings import Settings

__all__ = ["GENERATION", "MODEL", "choose_model", "tell_generation"]

FALL_BACK_ON: Final = ["BudgetExceeded", "RateLimitExceeded"]
_READ: Final[Mapping[str, tuple[str, Callable[[Settings, str], Json]]]] = {
    "Temperature": ("temperature", lambda found, field: found.number(field, 0, 2)),
    "TopP": ("top_p", Settings.share),
    "MaxTokens": ("max_tokens", Settings.count),
    "StopSequences": ("stop_sequences", Settings.texts),
}
"""The fields of Generation: what the call has them by, and how they are read."""


def choose_model(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the preferred model and, for some errors, the others after it."""
    errors = compiler.within("Model").state.get("FallbackOn", FALL_BACK_ON)
    matches = compiler.matcher(errors)
    wanted = settings(compiler, "Model", ("Preferred", "Fallback"))

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        preferred, others = found.name("Preferred"), [*found.one_or_more("Fallback")]
        if preferred is not None:
            attempt.tell("model", preferred)
        if others:
            attempt.may_repeat()
        while True:
            try:
                return await inner(attempt)
            except StateError as error:
                if not others or not matches(error):
                    raise
                model = others.pop(0)
                details = {"model": model, "error": error.name}
                attempt.frame.note("FallbackApplied", details)
                attempt.tell("model", model)

    return perform


def tell_generation(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what the model is told about its answer."""
    wanted = settings(compiler, "Generation", tuple(_READ))

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        told = {name: read(found, field) for field, (name, read) in _READ.items() if field in found}
        attempt.tell("generation", told)
        return await inner(attempt)

    return perform


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Model"]
    errors = block.get("FallbackOn")
    if errors is None:
        return
    if {"Fallback", "Fallback.$"}.isdisjoint(block):
        message, hint = "there is no other model to ask", "add Fallback"
    elif errors == []:
        message, hint = "no error leads to another model", "leave it out, or name errors"
    else:
        return
    yield Finding("V-GEN-02", message, node.at("Model", "FallbackOn"), hint, at_key=True)


MODEL = Block("Model", _check, lacks=("FallbackOn.$",))
GENERATION = Block("Generation")
