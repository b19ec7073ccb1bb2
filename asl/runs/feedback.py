"""Feedback of people about results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from asl.bindings import clock_of
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json, copy_foreign
from asl.effects.clock import Clock
from asl.engine.memory import Memory, MemoryEntry
from asl.engine.result import Result
from asl.expr.times import format_timestamp
from asl.memories import bound
from asl.states.blocks.feedback import judged

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
    """Keep what somebody says about a result, and return it as it is kept.

    `feedback_id` is one of `result.feedback`; `result` comes from a run or from a store. It is kept
    in `memory` (what `run` takes by this name) under the namespace that the request calls `store`,
    where Memory blocks find it; of each person the latest answer.

    Raises AnswerRefused for an answer that does not fit, AslError for an unknown request.
    """
    asked = {request["feedbackId"]: request for request in result.feedback}
    if feedback_id not in asked:
        hint = did_you_mean(feedback_id, asked)
        raise AslError(
            f"nobody asked for the feedback {feedback_id!r}" + (f" ({hint})" if hint else "")
        )
    request, now = asked[feedback_id], clock_of(clock).now()
    record: dict[str, Json] = {
        "feedbackId": feedback_id,
        "answer": judged(request, copy_foreign(answer)),
        "by": by,
        "answeredAt": format_timestamp(now),
    }
    if "question" in request:
        record["question"] = request["question"]
    entry = MemoryEntry(f"{feedback_id}/{by}", record, now, None)
    place = f"memory:{request['store']}"
    bound(memory)["memory"].change(place, entry.key, now, lambda known: entry)
    return record
