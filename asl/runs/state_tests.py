"""Tests of single states, as with AWS's TestState, and mocks from Step Functions Local."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from asl.agents.mock_file import load_mocks as load
from asl.bindings import NO_INPUT, bind, refuse_running_loop, resolve_clock
from asl.checks.workflow import split_machines
from asl.core.document import Document, Loadable
from asl.core.profile import DEFAULT, Profile
from asl.core.values import Json
from asl.documents.loading import resolve_document, resolve_profile
from asl.effects.clock import Clock
from asl.effects.single_state import StateResult, run_single_state
from asl.engine.execution import ROLE
from asl.program import Program

__all__ = ["load_mocks", "test_state"]


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
    """Run a single state as AWS's TestState does; blocks the caller.

    Args:
        definition: A state, or a document in which `state` names one.
        input: Input of the state; `{}` by default.
        state: Name of the state, also one in a branch or an item processor; None if `definition`
            is a state.
        mock: Result instead of the state's work: `{"result": value}` or `{"errorOutput":
            {"error": ..., "cause": ...}}`. A Task without one calls its handler in `agents` or
            `resources`.
        context: The whole context object, None for a generated one.
        variables: Variables assigned before the state.
        level: `"INFO"` (default), or `"DEBUG"` or `"TRACE"` for the data after each step.
        reveal_secrets: Whether a TRACE shows secrets; False by default.
        configuration: Settings with AWS's names: `retrierRetryCount`, `mapIterationFailureCount`,
            `errorCausedByState`, `mapItemReaderData`.
        agents: Handlers by `Agent`, as for `asl.run`.
        resources: Handlers by `Resource`, as for `asl.run`.
        profile: Rules of the language; `"aws"` by default.
        clock: `"virtual"` (default), `"wall"` or a clock object.
        role: ARN of the role in the context object.

    Returns:
        The result; a state that fails is a result.

    Raises:
        InvalidTest: AWS refuses this test.
        InvalidDocument: The definition has errors.
        AslError: Another argument is invalid.
    """
    loaded, chosen_profile = resolve_document(definition), resolve_profile(profile)
    chosen = resolve_clock(clock)
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


def load_mocks(
    file: str | os.PathLike[str],
    case: str,
    *,
    machine: str | None = None,
    document: Program | Document | Loadable | None = None,
) -> dict[str, Any]:
    """Read a test case of a mock configuration file of Step Functions Local.

    Args:
        file: Path of the file.
        case: Name of the test case.
        machine: Name of the state machine; needed if the file has several and neither the name of
            the document nor that of the case identifies one.
        document: Document whose Task states the case may mock; None to accept any name.

    Returns:
        The mocks by state, for `asl.run(..., mocks=...)`.

    Raises:
        AslError: The file or the case is invalid; the message has a line with the place of each
            fault.
    """
    if document is None:
        return dict(load(file, case, machine=machine))
    if isinstance(document, Program):
        steps = [step for each in document.machines.values() for step in each.steps.values()]
        states, name = {step.name: step.type for step in steps}, document.name
    else:
        loaded = resolve_document(document)
        nodes = split_machines(loaded.value, DEFAULT).nodes()
        states, name = {node.name: node.value.get("Type", "") for node in nodes}, loaded.name
    return dict(load(file, case, machine=machine, states=states, workflow=name))
