"""Answers to requests by authenticated users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asl.core.errors import AslError
from asl.core.values import Json
from asl.server.audit import record_action
from asl.server.projects import Access
from asl.states.approval_answers import AUTHENTICATION

__all__ = ["give_answer"]

_OF_THE_USER: Final = frozenset(
    {"approver", "by", "roles", "timestamp", "system_user", AUTHENTICATION, "request_id"}
)
"""Fields of an answer that the service sets: a user cannot answer in another name."""


def give_answer(access: Access, request_id: str, fields: Mapping[str, Json]) -> Json:
    """Answer a request as the authenticated user.

    Args:
        access: The project and the user.
        request_id: The request.
        fields: The answer: `approval`, `comment`, `edited`, `digest`, items of a batch, and
            further fields of the record.

    Returns:
        The record of the decision, None while more approvals are needed.

    Raises:
        AnswerRefused: The rules do not allow the answer, or it is too late.
        RequestNotFound: There is no such request.
        AslError: A field is one that the service sets.
    """
    try:
        record = _answer(access, request_id, fields)
    except AslError as refusal:
        action = "request.answer.refused"
        record_action(access, action, request_id[:300], _chosen(fields), reason=str(refusal))
        raise
    record_action(access, "request.answer", request_id, _chosen(fields))
    return record


def _chosen(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the option of an answer, shortened: an answer may be a text of any length."""
    return {"approval": str(fields.get("approval"))[:100]}


def _answer(access: Access, request_id: str, fields: Mapping[str, Json]) -> Json:
    for name in sorted(_OF_THE_USER.intersection(fields)):
        raise AslError(f"{name!r} cannot be given: it is that of the authenticated user")
    given, principal = dict(fields), access.principal
    approval = given.pop("approval", None)
    comment = given.pop("comment", None)
    edited = given.pop("edited", None)
    given[AUTHENTICATION] = principal.method
    return access.store.answer(
        request_id,
        approval,
        by=principal.user,
        comment=comment,
        edited=edited,
        roles=principal.approval_roles,
        **given,
    )
