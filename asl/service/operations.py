"""The table of operations, and the way from a request to its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from asl.core.values import Json
from asl.service import (
    activities,
    definitions,
    executions,
    history,
    map_runs,
    state_machines,
    tags,
    versions,
)
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError
from asl.service.model import check_request
from asl.service.service import StatesService
from asl.stores.errors import StoreConflict

__all__ = ["OPERATIONS", "perform"]

Operation: TypeAlias = Callable[
    [StatesService, Mapping[str, Any], RequestScope], Awaitable[dict[str, Json]]
]
"""Performs a checked request of an account and region."""

OPERATIONS: Final[Mapping[str, Operation]] = {
    "CreateActivity": activities.create_activity,
    "CreateStateMachine": state_machines.create_state_machine,
    "CreateStateMachineAlias": versions.create_state_machine_alias,
    "DeleteActivity": activities.delete_activity,
    "DeleteStateMachine": state_machines.delete_state_machine,
    "DeleteStateMachineAlias": versions.delete_state_machine_alias,
    "DeleteStateMachineVersion": versions.delete_state_machine_version,
    "DescribeActivity": activities.describe_activity,
    "DescribeExecution": executions.describe_execution,
    "DescribeMapRun": map_runs.describe_map_run,
    "DescribeStateMachine": state_machines.describe_state_machine,
    "DescribeStateMachineAlias": versions.describe_state_machine_alias,
    "DescribeStateMachineForExecution": executions.describe_state_machine_for_execution,
    "GetActivityTask": activities.get_activity_task,
    "GetExecutionHistory": history.get_execution_history,
    "ListActivities": activities.list_activities,
    "ListExecutions": executions.list_executions,
    "ListMapRuns": map_runs.list_map_runs,
    "ListStateMachineAliases": versions.list_state_machine_aliases,
    "ListStateMachineVersions": versions.list_state_machine_versions,
    "ListStateMachines": state_machines.list_state_machines,
    "ListTagsForResource": tags.list_tags_for_resource,
    "PublishStateMachineVersion": versions.publish_state_machine_version,
    "RedriveExecution": executions.redrive_execution,
    "SendTaskFailure": activities.send_task_failure,
    "SendTaskHeartbeat": activities.send_task_heartbeat,
    "SendTaskSuccess": activities.send_task_success,
    "StartExecution": executions.start_execution,
    "StartSyncExecution": executions.start_sync_execution,
    "StopExecution": executions.stop_execution,
    "TagResource": tags.tag_resource,
    "TestState": definitions.test_state,
    "UntagResource": tags.untag_resource,
    "UpdateMapRun": map_runs.update_map_run,
    "UpdateStateMachine": state_machines.update_state_machine,
    "UpdateStateMachineAlias": versions.update_state_machine_alias,
    "ValidateStateMachineDefinition": definitions.validate_state_machine_definition,
}
"""The operations by name: all of the service model."""

_REGISTRATIONS: Final = frozenset(
    name
    for name in OPERATIONS
    if name.startswith(("Create", "Delete", "Publish", "Tag", "Untag", "Update"))
)
"""Operations that read and change registered resources, and wait for nothing meanwhile."""


ATTEMPTS: Final = 4
"""Maximum number of attempts before the last one."""


async def perform(
    service: StatesService, name: str, request: Json, scope: RequestScope
) -> dict[str, Json]:
    """Return the answer to a request, without members that have no value.

    Raises:
        ServiceError: The request is refused.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        raise ServiceError("UnknownOperationException", f"Unknown operation: {name:.100}")
    checked = check_request(name, request)
    if name in _REGISTRATIONS:  # servers of the same store perform them one after another
        answer = await _changed(service, operation, checked, scope)
    else:
        answer = await operation(service, checked, scope)
    return {member: value for member, value in answer.items() if value is not None}


async def _changed(
    service: StatesService, operation: Operation, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Perform an operation in a transaction, again if another server has changed what it read."""
    for _ in range(ATTEMPTS):
        with suppress(StoreConflict), service.store.session.transaction():
            return await operation(service, request, scope)
    with service.store.session.transaction():
        return await operation(service, request, scope)
