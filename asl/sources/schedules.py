"""Schedules in templates of SAM and CloudFormation that start a state machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from asl.core.diagnostics import InvalidDocument
from asl.core.document import PlannedStart
from asl.core.values import Json
from asl.sources.intrinsics import Resolver, members

__all__ = ["planned_starts"]

EVENTS: Final = {"Schedule": "Schedule", "ScheduleV2": "ScheduleExpression"}
"""Types of events of SAM's state machines, with the property of the expression."""
SCHEDULE: Final = "AWS::Scheduler::Schedule"
RULE: Final = "AWS::Events::Rule"
_OFF: Final = ("DISABLED", "false", "False")


def planned_starts(resolver: Resolver, machine: str) -> Iterator[PlannedStart]:
    """Yield the schedules of a template that start a state machine.

    Args:
        resolver: Resolves the values of the template.
        machine: Logical id of the state machine.

    Raises:
        InvalidDocument: A value cannot be resolved.
    """
    resources = resolver.resources
    properties = members(members(resources, machine), "Properties")
    for event, value in members(properties, "Events").items():
        kind = EVENTS.get(str(members(members(properties, "Events"), event).get("Type")))
        if kind is not None and type(value) is dict:
            read = partial(resolver.property, machine, "Events", event, "Properties")
            yield _planned(read("Name") or f"{machine}-{event}", read(kind), read, ("Input",))
    arn = resolver.resolve_name(machine)
    for name in resources:
        kind = members(resources, name).get("Type")
        read = partial(resolver.property, name)
        if kind == SCHEDULE and _is_target(read, ("Target",), arn):
            yield _planned(
                read("Name") or name, read("ScheduleExpression"), read, ("Target", "Input")
            )
        if kind == RULE:
            for index, _ in enumerate(_items(members(members(resources, name), "Properties"))):
                target = "Targets", str(index)
                if _is_target(read, target, arn) and read("ScheduleExpression") is not None:
                    own = f"{read('Name') or name}-{index}" if index else read("Name") or name
                    yield _planned(own, read("ScheduleExpression"), read, (*target, "Input"))


def _planned(
    name: str, expression: str | None, read: partial[str | None], data: tuple[str, ...]
) -> PlannedStart:
    state = read("State") or read("Enabled")
    return PlannedStart(
        name,
        expression or "",
        read("ScheduleExpressionTimezone") or "UTC",
        read(*data),
        read("StartDate"),
        read("EndDate"),
        state in _OFF,
    )


def _is_target(read: partial[str | None], place: tuple[str, ...], arn: Json) -> bool:
    """Return whether a target is a state machine, or one of its versions and aliases."""
    try:
        target = read(*place, "Arn")
    except InvalidDocument:  # a fault of that resource, not of the state machine
        return False
    return target is not None and (target == arn or target.startswith(f"{arn}:"))


def _items(properties: dict[str, Json]) -> list[Json]:
    targets = properties.get("Targets")
    return targets if type(targets) is list else []
