"""Operations on the tags of state machines and activities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.executions.registrations import MACHINE
from asl.service.arns import RequestScope, parse_arn
from asl.service.errors import ServiceError
from asl.service.service import StatesService
from asl.stores.resources import Resource, find_resource, put_resource

__all__ = ["ACTIVITY", "check_tags", "list_tags_for_resource", "tag_resource", "tags_of"]
__all__ += ["untag_resource"]

ACTIVITY: Final = "activity"
"""Kind of the resource of an activity."""
MAX_TAGS: Final = 50
"""Quota of AWS for one resource."""


def tags_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a request by their keys."""
    listed = request.get("tags") or []
    return {tag.get("key", ""): tag.get("value", "") for tag in listed}


def check_tags(tags: Mapping[str, str], arn: str = "") -> None:
    """Check the number of the tags of a resource.

    Raises:
        ServiceError: TooManyTags.
    """
    if len(tags) > MAX_TAGS:
        message = f"A resource has at most {MAX_TAGS} tags: '{arn}'"
        raise ServiceError("TooManyTags", message)


def _tagged(service: StatesService, arn: str) -> Resource:
    """Return the resource of an ARN that can have tags.

    Raises:
        ServiceError: ResourceNotFound or InvalidArn.
    """
    parse_arn(arn, MACHINE, ACTIVITY)
    found = find_resource(service.store.session, arn)
    if found is None or found.kind not in (MACHINE, ACTIVITY):
        raise ServiceError("ResourceNotFound", f"Resource not found: '{arn}'")
    return found


async def tag_resource(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Add tags, or change those with the same keys."""
    resource = _tagged(service, request["resourceArn"])
    tags = {**resource.body["tags"], **tags_of(request)}
    check_tags(tags, resource.arn)
    put_resource(service.store.session, resource._replace(body={**resource.body, "tags": tags}))
    return {}


async def untag_resource(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Remove the tags of some keys."""
    resource = _tagged(service, request["resourceArn"])
    removed = request["tagKeys"]
    tags = {key: value for key, value in resource.body["tags"].items() if key not in removed}
    put_resource(service.store.session, resource._replace(body={**resource.body, "tags": tags}))
    return {}


async def list_tags_for_resource(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return the tags of a resource."""
    resource = _tagged(service, request["resourceArn"])
    tags: list[Json] = [
        {"key": key, "value": value} for key, value in resource.body["tags"].items()
    ]
    return {"tags": tags}
