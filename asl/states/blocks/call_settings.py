"""Settings passed on with a call: Model, Generation, Metadata, Idempotent (8.4 to 8.6)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings
from asl.states.settings import BlockSettings

__all__ = [
    "GENERATION",
    "IDEMPOTENCY_KEY",
    "IDEMPOTENT",
    "METADATA",
    "MODEL",
    "choose_model",
    "pass_generation",
    "pass_idempotency_key",
    "pass_metadata",
]

FALL_BACK_ON: Final = ["BudgetExceeded", "RateLimitExceeded"]
GENERATION_FIELDS: Final[Mapping[str, tuple[str, Callable[[BlockSettings, str], Json]]]] = {
    "Temperature": ("temperature", lambda found, field: found.number(field, 0, 2)),
    "TopP": ("top_p", BlockSettings.fraction),
    "MaxTokens": ("max_tokens", BlockSettings.count),
    "StopSequences": ("stop_sequences", BlockSettings.texts),
}
"""The fields of Generation: their names in the call, and the functions that read them."""


def choose_model(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the preferred model, and the fallback models for some errors."""
    errors = compiler.compiler_at("Model").state.get("FallbackOn", FALL_BACK_ON)
    matches = compiler.matcher(errors)
    wanted = compile_settings(compiler, "Model", ("Preferred", "Fallback"))

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        preferred, others = found.name("Preferred"), [*found.one_or_more("Fallback")]
        if preferred is not None:
            attempt.set_call_attribute("model", preferred)
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
                attempt.set_call_attribute("model", model)

    return perform


def pass_generation(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the generation settings of the model."""
    wanted = compile_settings(compiler, "Generation", tuple(GENERATION_FIELDS))

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        told = {
            name: read(found, field)
            for field, (name, read) in GENERATION_FIELDS.items()
            if field in found
        }
        attempt.set_call_attribute("generation", told)
        return await inner(attempt)

    return perform


def _check_model(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Model"]
    errors = block.get("FallbackOn")
    if errors is None:
        return
    if {"Fallback", "Fallback.$"}.isdisjoint(block):
        message, hint = "'FallbackOn' has no effect without a fallback model", "add Fallback"
    elif errors == []:
        message, hint = "no error selects a fallback model", "remove it, or name errors"
    else:
        return
    yield Finding("V-GEN-02", message, node.at("Model", "FallbackOn"), hint, at_key=True)


MODEL = Block("Model", _check_model, lacks=("FallbackOn.$",))
GENERATION = Block("Generation")


def pass_idempotency_key(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the idempotency key; the default is the key of the visit."""
    fields = compile_settings(compiler, "", ("Idempotent", "IdempotencyKey"))

    async def perform(attempt: Attempt) -> Json:
        found = fields(attempt.data, attempt.frame)
        if found.flag("Idempotent", absent=True):
            key = found.values.get("IdempotencyKey")
            if key is not None:
                attempt.set_call_attribute(
                    "idempotency_key", key if type(key) is str else compact(key)
                )
        return await inner(attempt)

    return perform


IDEMPOTENT = Block("Idempotent", scalar=True)
IDEMPOTENCY_KEY = Block("IdempotencyKey", scalar=True)


def pass_metadata(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the metadata of the call."""
    metadata = compiler.template("Metadata")
    assert metadata is not None

    async def perform(attempt: Attempt) -> Json:
        attempt.set_call_attribute("metadata", metadata(attempt.data, attempt.frame))
        return await inner(attempt)

    return perform


METADATA = Block("Metadata")
