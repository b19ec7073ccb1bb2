"""User feedback on results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from asl.bindings import resolve_clock
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json, copy_foreign
from asl.effects.clock import Clock
from asl.engine.memory import Memory, MemoryEntry
from asl.engine.result import Result
from asl.expr.times import format_timestamp
from asl.memories import bind_memory
from asl.states.blocks.feedback import validate_answer

__all__ = ["give_feedback"]


def give_feedback(
    result: Result,
    feedback_id: str,
    answer: Json,
    *,
    memory: str | os.PathLike[str] | Memory | Mapping[str, Any],
    by: str = "anonymous",
    clock: str | Clock = "wall",
) -> dict[str, Json]:
    """Store a user's feedback on a result.

    Args:
        result: Result of a run or from a store.
        feedback_id: Id of one of the requests in `result.feedback`.
        answer: Answer in the form that the request asks for.
        memory: Storage, as `memory` of `asl.run`. The feedback is stored in the namespace that the
            request names (`store`), where Memory blocks find it; a later answer of the same user
            replaces it.
        by: Name of the user; `"anonymous"` by default.
        clock: Clock that gives the time of the answer; `"wall"` by default.

    Returns:
        The stored record: `feedbackId`, `answer`, `by`, `answeredAt` and `question`.

    Raises:
        AnswerRefused: The answer does not fit the request.
        AslError: The result has no request with this id.
    """
    asked = {request["feedbackId"]: request for request in result.feedback}
    if feedback_id not in asked:
        hint = did_you_mean(feedback_id, asked)
        raise AslError(
            f"the result has no feedback request {feedback_id!r}" + (f" ({hint})" if hint else "")
        )
    request, now = asked[feedback_id], resolve_clock(clock).now()
    record: dict[str, Json] = {
        "feedbackId": feedback_id,
        "answer": validate_answer(request, copy_foreign(answer)),
        "by": by,
        "answeredAt": format_timestamp(now),
    }
    if "question" in request:
        record["question"] = request["question"]
    entry = MemoryEntry(f"{feedback_id}/{by}", record, now, None)
    place = f"memory:{request['store']}"
    bind_memory(memory)["memory"].change(place, entry.key, now, lambda known: entry)
    return record
