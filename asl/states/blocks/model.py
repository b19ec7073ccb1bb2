"""Model and Generation: which model an agent is to use, and how (Specification 8.6)."""

from collections.abc import Mapping
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json, is_integer, is_number
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Block, Perform, given

__all__ = ["GENERATION", "MODEL", "choose_model", "tell_generation"]

FALL_BACK_ON: Final = ["BudgetExceeded", "RateLimitExceeded"]
NAMES: Final[Mapping[str, str]] = {
    "Temperature": "temperature",
    "TopP": "top_p",
    "MaxTokens": "max_tokens",
    "StopSequences": "stop_sequences",
}
"""The fields of Generation, and what the call has them by."""


def choose_model(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the preferred model and, for some errors, the others after it."""
    block = compiler.within("Model")
    wanted = given(block, ("Preferred", "Fallback"))
    matches = compiler.matcher(block.state.get("FallbackOn", FALL_BACK_ON))

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        fallback = found.get("Fallback", [])
        others = list(fallback) if type(fallback) is list else [fallback]
        if "Preferred" in found:
            attempt.tell("model", found["Preferred"])
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
    wanted, state = given(compiler.within("Generation"), tuple(NAMES)), compiler.name

    async def perform(attempt: Attempt) -> Json:
        found = wanted(attempt.data, attempt.frame)
        for field, value in found.items():
            if not _fits(field, value):
                cause = f"state '{state}': Generation.{field} is out of range: {value!r}"
                raise StateError("States.Runtime", cause)
        attempt.tell("generation", {NAMES[field]: value for field, value in found.items()})
        return await inner(attempt)

    return perform


def _fits(field: str, value: Json) -> bool:
    """Whether a computed value is what the schema demands of a written one."""
    if field == "MaxTokens":
        return is_integer(value) and value >= 1
    if field == "StopSequences":
        return type(value) is list and all(type(each) is str for each in value)
    least, most = (0, 2) if field == "Temperature" else (0, 1)
    return is_number(value) and least <= value <= most and (field != "TopP" or value > 0)


MODEL = Block("Model", lacks=("FallbackOn.$",))
GENERATION = Block("Generation")
