"""The services of AWS behind the resources of a document."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from asl.aws.catalog import ACTIONS, SERVICES, ActionRow, ServiceRow
from asl.aws.clients import Clients
from asl.aws.errors import ErrorForm, modern_errors
from asl.aws.objects import S3Buckets
from asl.aws.operations import Operation
from asl.aws.requests import API_GATEWAY, HTTP, EndpointRequest, RequestKind, RequestService
from asl.aws.services import ActionService, FunctionService, JobService
from asl.checks.service_catalog import SDK_NAMES, action_of, sdk_services
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.effects.service_agent import Service, ServiceAgent
from asl.engine.agent import Agent
from asl.states.calls import Target, is_function
from asl.states.map_data import Bucket

if TYPE_CHECKING:
    from boto3.session import Session

__all__ = ["Integrations", "integrations", "resource_patterns"]


def integrations(
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    session: Session | None = None,
    services: Collection[str] | None = None,
) -> Integrations:
    """Return the binding `aws`: calls of AWS's services for resources without a binding.

    Args:
        endpoint_url: Address of an emulator for all services; None for AWS itself.
        region: The region; None for that of the session or the environment.
        session: The boto3 session with the credentials; None for those of the environment.
        services: The services that may be called, by their names in resources; None for all. With
            an *endpoint_url*, `http` has to be named, since it calls other hosts.

    Raises:
        AslError: The extra `aws` is not installed, there is no region, or a service is unknown.
    """
    allowed = _checked(services)
    return Integrations(Clients(session, region, endpoint_url), allowed)


def _checked(services: Collection[str] | None) -> frozenset[str] | None:
    if services is None:
        return None
    if isinstance(services, str):
        raise AslError(f"'services' must be a list of names, got {services!r}")
    known = {*_NAMES, *sdk_services()}
    for name in services:
        if name not in known:
            hint = did_you_mean(name, known)
            raise AslError(f"there is no service {name!r} of AWS{f' ({hint})' if hint else ''}")
    return frozenset(SDK_NAMES.get(name, name) for name in services)


_DIRECT: Final[Mapping[str, RequestKind]] = {
    "apigateway:invoke": API_GATEWAY,
    "http:invoke": HTTP,
}
"""Integrations that send requests to hosts of the document."""
_NAMES: Final = (*SERVICES, "apigateway", "http")
"""The services of optimized integrations."""


def resource_patterns(services: Collection[str] | None, *, endpoint: bool = False) -> list[str]:
    """Return patterns of the resources of services, all of them for None.

    Args:
        services: The services, by their names in resources.
        endpoint: Whether calls go to an endpoint of the user, so that `http` has to be named.

    Raises:
        AslError: A service is unknown.
    """
    names = _checked(services)
    if names is None:
        found = [f"arn:*:states:::{name}:*" for name in _NAMES if name != "http" or not endpoint]
        return ["arn:*:states:::aws-sdk:*", *found, "arn:*:lambda:*:function:*"]
    optimized = {SDK_NAMES.get(name, name): name for name in _NAMES}
    return [
        *(f"arn:*:states:::aws-sdk:{name}:*" for name in names),
        *(f"arn:*:states:::{optimized[name]}:*" for name in names if name in optimized),
        *(["arn:*:lambda:*:function:*"] if "lambda" in names else ()),
    ]


class Integrations:
    """Performs resources by calls of AWS's services; made by `asl.aws.integrations`."""

    def __init__(self, clients: Clients, services: frozenset[str] | None) -> None:
        self.clients = clients
        self.services = services

    @property
    def patterns(self) -> list[str]:
        """Patterns of the resources that are performed."""
        return resource_patterns(self.services, endpoint=self.clients.endpoint_url is not None)

    def buckets(self, bound: Mapping[str, Bucket]) -> Mapping[str, Bucket]:
        """Return the bound buckets, and those of S3 for other names."""
        return S3Buckets(bound, self.clients) if self._allows("s3") else bound

    def agent(self, target: Target) -> Agent | None:
        """Return the agent of a resource; None for one that is no call of a service."""
        found = self._service(target)
        return None if found is None else ServiceAgent(found)

    def _service(self, target: Target) -> Service | None:
        if is_function(target.name):
            return self._function(target.name) if self._allows("lambda") else None
        action = action_of(target.name)
        if action is None or not self._allows(action.service):
            return None
        if action.sdk:
            return self._sdk(action.service, action.name)
        label = f"{action.integration}:{action.name}"
        if label == "lambda:invoke":
            return self._function(None)
        if label in _DIRECT:
            return RequestService(EndpointRequest(self.clients, _DIRECT[label]))
        row = ACTIONS.get(label)
        return None if row is None else self._optimized(label, row, target.pattern)

    def _allows(self, service: str) -> bool:
        if self.services is not None:
            return service in self.services
        return service != "http" or self.clients.endpoint_url is None

    def _sdk(self, service: str, name: str) -> Service | None:
        model = sdk_services().get(service)
        if model is None:
            return None
        operation = Operation(self.clients, model.model, name, modern_errors)
        return ActionService(operation, ActionRow(), metadata=False)

    def _function(self, arn: str | None) -> Service:
        return FunctionService(self._operation(SERVICES["lambda"], "Invoke"), arn)

    def _optimized(self, label: str, row: ActionRow, pattern: str) -> Service | None:
        name, _, action = label.partition(":")
        service = SERVICES[name]
        if row.model:
            service = service._replace(model=row.model)
        metadata = row.metadata and service.legacy is not None
        start = ActionService(
            self._operation(service, row.operation or action),
            row,
            None if row.lookup is None else self._operation(service, row.lookup.operation),
            metadata=metadata,
        )
        if not pattern.startswith(".sync"):
            return start
        if row.job is None:
            return None
        stop = row.job.stop
        return JobService(
            start,
            row.job,
            self._operation(service, row.job.describe),
            None if stop is None else self._operation(service, stop[0]),
            parsed=pattern == ".sync:2",
        )

    def _operation(self, service: ServiceRow, name: str) -> Operation:
        def errors(service_id: str) -> ErrorForm:
            return service.errors or modern_errors(service_id, service.prefix)

        return Operation(self.clients, service.model, name, errors)
