"""The operation GetExecutionHistory: events that AWS knows, numbered as if there were no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.engine.aws_events import export_event
from asl.engine.events import Event
from asl.service.arns import RequestScope
from asl.service.map_runs import find_child
from asl.service.model import enum_values, known_members
from asl.service.pages import next_token, page_size, token_position
from asl.service.service import REGION, StatesService, find_execution

__all__ = ["get_execution_history"]

_OF_STATE = lazy_pattern(r"[A-Z][A-Za-z]*State(Entered|Exited)")
AGENT: Final = {"resourceType": "agent", "resource": "call", "region": REGION}
"""Details, required by AWS, of the events of tasks without `Resource`."""
_HIDDEN: Final = frozenset(
    {"input", "output", "error", "cause", "inputDetails", "outputDetails", "parameters"}
)
"""Details with data of the execution."""


async def get_execution_history(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the history of an execution; of a child of a Map Run begin and end."""
    child = find_child(service, request["executionArn"])
    if child is not None:
        listed = _of_child(child)
        return {"events": listed[::-1] if request.get("reverseOrder") else listed}
    stored = find_execution(service, request["executionArn"])
    events = _known_to_aws(service.store.events(stored.name))
    if stored.profile != "aws":
        events = map(_in_form_of_aws, events)
    read = service.histories.read_back if request.get("reverseOrder") else service.histories.read
    position = token_position(request) or 0
    page, following = await read(stored.name, events, position, page_size(request))
    hides = request.get("includeExecutionData") is False
    listed = [_without_data(event) if hides else event for event in page]
    token = None if following is None else next_token(request, following)
    return {"events": listed, "nextToken": token}


def _of_child(child: Mapping[str, Any]) -> list[Json]:
    """Return the events of a child execution that its parent knows of."""
    begun = {"timestamp": child["startDate"], "type": "ExecutionStarted", "previousEventId": 0}
    found: list[Json] = [{**begun, "id": 1, "executionStartedEventDetails": {}}]
    if "stopDate" in child:
        kind = "".join(word.capitalize() for word in child["status"].split("_"))
        name, details = f"Execution{kind}", f"execution{kind}EventDetails"
        ended = {"timestamp": child["stopDate"], "type": name, "previousEventId": 0}
        found.append({**ended, "id": 2, details: {}})
    return found


def _known_to_aws(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """Yield the events of AWS's types in AWS's form.

    States of the agent language are reported as Tasks. Pauses and the events of agent blocks are
    left out, and the others are numbered without gaps.
    """
    types = enum_values("HistoryEventType")
    numbers = {0: 0}
    count = 0
    for event in events:
        kind = event.type
        if kind not in types and (state := _OF_STATE.fullmatch(kind)) is not None:
            kind = f"TaskState{state[1]}"
        if kind not in types:
            numbers[event.id] = numbers.get(event.previous, 0)
            continue
        count += 1
        numbers[event.id] = count
        yield {
            **export_event(event),
            "timestamp": event.timestamp,
            "type": kind,
            "id": count,
            "previousEventId": numbers.get(event.previous, 0),
        }


def _in_form_of_aws(event: dict[str, Json]) -> dict[str, Json]:
    """Return an event of an execution with agents with the members that AWS's events have."""
    kind = event["type"]
    if kind.startswith("Task") and "State" not in kind:
        details = f"t{kind[1:]}EventDetails"
        event = {**event, details: {**AGENT, **event.get(details, {})}}
    return known_members("HistoryEvent", event)


def _without_data(event: dict[str, Json]) -> dict[str, Json]:
    """Return an event without the data of the execution."""
    return {
        name: {key: item for key, item in value.items() if key not in _HIDDEN}
        if isinstance(value, dict)
        else value
        for name, value in event.items()
    }
