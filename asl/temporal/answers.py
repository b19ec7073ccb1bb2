"""Answers that clients send to a workflow, applied to a store that holds its execution."""

from __future__ import annotations

import orjson

from asl.core.values import Json
from asl.executions.approvals import record_answer
from asl.executions.control import StoreControl
from asl.temporal.payloads import AnswerMessage, TokenMessage

__all__ = ["apply_answer", "apply_token_answer"]


def apply_answer(store: StoreControl, message: AnswerMessage) -> Json:
    """Record an answer to a request; return the record, None while more are needed.

    Raises:
        AslError: The answer is refused.
    """
    answer = orjson.loads(message["answer"])
    return record_answer(store.session, message["request"], answer, message["given"])


def apply_token_answer(store: StoreControl, message: TokenMessage) -> None:
    """Record an answer to a task token, a heartbeat, or the worker that takes its task.

    Raises:
        AslError: The token is not open.
    """
    tokens, token = store.tokens, message["token"]
    tokens.now = lambda: message["given"]
    if "worker" in message:
        tokens.take(token, message["worker"])
    elif message.get("heartbeat"):
        tokens.send_task_heartbeat(token)
    elif "failure" in message:
        tokens.send_task_failure(token, *message["failure"])
    else:
        tokens.send_task_success(token, message["output"])
