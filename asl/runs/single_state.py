"""Tests of one state alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.bindings import NO_INPUT, bind, clock_of, refuse_running_loop
from asl.core.document import Document, Loadable
from asl.core.profile import Profile
from asl.core.values import Json
from asl.documents.loading import document_of, profile_of
from asl.effects.clock import Clock
from asl.effects.single_state import StateResult, run_single_state
from asl.engine.execution import ROLE

__all__ = ["test_state"]


def test_state(
    definition: Document | Loadable,
    input: Json = NO_INPUT,
    *,
    state: str | None = None,
    mock: Mapping[str, Any] | None = None,
    context: Mapping[str, Json] | None = None,
    variables: Mapping[str, Json] | None = None,
    level: str = "INFO",
    reveal_secrets: bool = False,
    configuration: Mapping[str, Any] | None = None,
    agents: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    profile: str | Profile = "aws",
    clock: str | Clock = "virtual",
    role: str | None = ROLE,
) -> StateResult:
    """Run one state alone, as AWS's TestState does; blocks the caller.

    `definition` is a state, or a document in which `state` names one, in a branch or a processor as
    well. `mock` answers instead of its work: `{"result": value}` or `{"errorOutput": {"error": ...,
    "cause": ...}}`; a Task without one asks `agents` and `resources`. `context` is the whole
    context object, `variables` are there before the state. `level` is `INFO`, or `DEBUG` or `TRACE`
    for what becomes of the data on the way. `configuration` has AWS's names: `retrierRetryCount`,
    `mapIterationFailureCount`, `errorCausedByState`, `mapItemReaderData`. `role` is the role that
    the context object names.

    A state that fails is a result. Raises InvalidTest for what AWS refuses to test, InvalidDocument
    for a definition with errors, and AslError for other misuse.
    """
    loaded, chosen_profile = document_of(definition), profile_of(profile)
    chosen = clock_of(clock)
    refuse_running_loop()
    return run_single_state(
        loaded,
        input,
        state=state,
        mock=mock,
        context=context,
        variables=variables or {},
        level=level,
        reveal_secrets=reveal_secrets,
        configuration=configuration or {},
        profile=chosen_profile,
        find=bind({"agents": agents, "resources": resources}).find,
        clock=chosen,
        role=role,
    )


test_state.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for one of its own
