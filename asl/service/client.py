"""Step Functions in this process: the methods of AWS's Python client, without a server."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Self

from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json
from asl.effects.task_tokens import TaskTokens
from asl.executions import Store
from asl.service.arns import RequestScope
from asl.service.definitions import run_state_test, validate_definition
from asl.service.errors import ServiceError
from asl.service.model import check_request, input_members
from asl.service.operations import OPERATIONS, perform
from asl.service.service import ACCOUNT, REGION, StatesService
from asl.stores.backend import StoreBackend

__all__ = ["StepFunctions", "method_name"]

_PAGED: Final = {
    "get_execution_history": "events",
    "list_activities": "activities",
    "list_executions": "executions",
    "list_map_runs": "mapRuns",
    "list_state_machines": "stateMachines",
    "list_state_machine_aliases": "stateMachineAliases",
    "list_state_machine_versions": "stateMachineVersions",
}
"""Methods that return pages, and the member with the elements."""


_DIRECT: Final[Mapping[str, Callable[[StatesService, Mapping[str, Any]], dict[str, Json]]]] = {
    "TestState": run_state_test,
    "ValidateStateMachineDefinition": validate_definition,
}


def method_name(operation: str) -> str:
    """Return the name of the method of an operation, such as `start_execution`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


class StepFunctions:
    """The methods of `boto3.client("stepfunctions")`, on a store of this process.

    Parameters and responses are AWS's: data are JSON texts, times are datetimes. A refused request
    raises a subclass of `ServiceError`, named like AWS's error (`client.exceptions`).

    Args:
        store: A store, or its path; by default a store in memory that ends with the client.
        account: Account of the ARNs.
        region: Region of the ARNs.
        profile: Profile of the definitions.
        concurrency: Maximum number of executions that run at the same time.
        bindings: As for `asl.run`: `agents`, `resources`, `tools`, ...
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | StoreBackend = "memory:",
        *,
        account: str = ACCOUNT,
        region: str = REGION,
        profile: str | Profile = "aws",
        concurrency: int = 100,
        **bindings: Any,
    ) -> None:
        bindings.setdefault("tokens", TaskTokens())
        self._own_store = not isinstance(store, Store)
        self._store = store if isinstance(store, Store) else Store(store)
        self._scope = RequestScope(account, region)
        self._bindings = {name: value for name, value in bindings.items() if value is not None}
        self._context = self._store.runner(concurrency=concurrency, **self._bindings)
        self._service = StatesService(self._store, profile, self._bindings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._starting = Lock()
        self.exceptions = ClientExceptions()
        """The errors by name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]: ...

    # Life cycle

    def close(self) -> None:
        """Stop the executions, which another runner of the store can continue."""
        if self._thread is not None and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._thread = None
        if self._own_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, ready: Event) -> None:
        async def main() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            async with self._context:
                ready.set()
                await self._stop.wait()

        try:
            with asyncio.Runner(loop_factory=self._store.clock.new_event_loop) as runner:
                runner.run(main())
        except BaseException as failure:  # raised by the next call
            self._failure = failure
        finally:
            ready.set()

    def _perform(self, operation: str, request: dict[str, Json]) -> dict[str, Any]:
        """Send a request and return the response."""
        if operation in _DIRECT:  # it needs neither the store nor an event loop
            try:
                return _DIRECT[operation](self._service, check_request(operation, request))
            except ServiceError as refusal:
                raise self._raised(refusal) from None
        with self._starting:
            if self._thread is None:
                begun = Event()
                self._thread = Thread(target=self._run, args=(begun,), daemon=True)
                self._thread.start()
                begun.wait()
        if self._failure is not None or self._loop is None:
            raise AslError(f"the client has ended: {self._failure}") from self._failure
        work = perform(self._service, operation, request, self._scope)
        try:
            answer = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except ServiceError as refusal:
            raise self._raised(refusal) from None
        return {name: _dated(name, value) for name, value in answer.items()}

    def _raised(self, refusal: ServiceError) -> ServiceError:
        """Return a refusal as an instance of the class of its code."""
        code, message = refusal.code, refusal.message
        return self.exceptions.of(code)(code, message, reason=refusal.reason, status=refusal.status)

    # Pages

    def can_paginate(self, operation_name: str) -> bool:
        """Return whether a method returns pages."""
        return operation_name in _PAGED

    def get_paginator(self, operation_name: str) -> Paginator:
        """Return the paginator of a method.

        Raises:
            AslError: The method returns no pages.
        """
        if operation_name not in _PAGED:
            raise AslError(f"{operation_name!r} returns no pages; there are {', '.join(_PAGED)}")
        return Paginator(getattr(self, operation_name))


class Paginator:
    """Sends the requests of all pages of a list."""

    def __init__(self, method: Callable[..., dict[str, Any]]) -> None:
        self._method = method

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Yield each page of a list.

        Args:
            request: The parameters of the method. `PaginationConfig` may set `PageSize`.
        """
        config = request.pop("PaginationConfig", None) or {}
        if "PageSize" in config:
            request["maxResults"] = config["PageSize"]
        while True:
            page = self._method(**request)
            yield page
            if "nextToken" not in page:
                return
            request["nextToken"] = page["nextToken"]


class ClientExceptions:
    """The errors of a client, as classes by AWS's names."""

    def __init__(self) -> None:
        self._known: dict[str, type[ServiceError]] = {}
        self.ClientError = ServiceError

    def of(self, code: str) -> type[ServiceError]:
        """Return the class of an error code."""
        if code not in self._known:
            self._known[code] = type(code, (ServiceError,), {"__module__": __name__})
        return self._known[code]

    def __getattr__(self, name: str) -> type[ServiceError]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.of(name)


def _dated(name: str, value: Any) -> Any:
    """Return a value of a response with times as datetimes."""
    if isinstance(value, dict):
        return {key: _dated(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_dated(name, each) for each in value]
    if isinstance(value, int | float) and (name.endswith("Date") or name == "timestamp"):
        return datetime.fromtimestamp(value, UTC)
    return value


def _method(operation: str) -> Callable[..., dict[str, Any]]:
    """Return the method of an operation, with its parameters by name."""

    def method(self: StepFunctions, **request: Any) -> dict[str, Any]:
        unknown = request.keys() - members
        if unknown:
            raise TypeError(
                f"{name}() takes {', '.join(members)}, not {', '.join(sorted(unknown))}"
            )
        return self._perform(operation, request)

    name, members = method_name(operation), input_members(operation)
    method.__name__, method.__qualname__ = name, f"StepFunctions.{name}"
    first, _, _ = (inspect.getdoc(OPERATIONS[operation]) or "").partition("\n")
    method.__doc__ = f"{first}\n\nRaises:\n    ServiceError: The request is refused.\n"
    keyword = inspect.Parameter.KEYWORD_ONLY
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(each, keyword, default=None) for each in members),
        ],
        return_annotation=dict[str, Any],
    )
    return method


for _operation in OPERATIONS:
    setattr(StepFunctions, method_name(_operation), _method(_operation))
