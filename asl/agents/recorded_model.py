"""A language model whose answers are recorded, so that a repeated turn does not ask it again."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asl.core.values import Json
from asl.engine.agent import Call
from asl.engine.turns import PausableTurn

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["recorded_model"]


def recorded_model(model: Model, call: Call, turn: PausableTurn) -> Model:
    """Return a model that answers as before what a turn had asked until it was paused.

    Its answers are whole: what is said of them piece by piece is each text at its end.

    Args:
        model: The model to ask.
        call: A call within the turn.
        turn: The turn, which has recorded the earlier answers.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_ai.models.wrapper import WrapperModel

    what = f"model.{sha256(call.idempotency_key.encode()).hexdigest()[:24]}"

    class RecordedModel(WrapperModel):
        async def request(self, *args: Any, **options: Any) -> Any:
            async def perform() -> Json:
                response = await self.wrapped.request(*args, **options)
                return ModelMessagesTypeAdapter.dump_python([response], mode="json")

            written = await turn.once(what, perform)
            (response,) = ModelMessagesTypeAdapter.validate_python(written)
            for part in response.parts:
                if part.part_kind == "text":
                    call.report_chunk(part.content)
            return response

    return RecordedModel(model)
