"""`asl serve`: Step Functions as a service on this machine."""

import asyncio
import os
import re
import socket
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias

import click
from click.core import ParameterSource

from asl.agents.sections import is_agents_file
from asl.cli import console
from asl.cli.access_options import AccessOptions, access_options
from asl.cli.arguments import (
    Origin,
    origin_options,
    read_documents,
    read_folder,
    split_pair,
)
from asl.cli.binding_options import BindingOptions, Deployment, binding_options
from asl.cli.console import Exit
from asl.cli.project import is_from_project
from asl.cli.service_options import ServiceOptions, service_options
from asl.cli.stores import is_on_server
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import Document
from asl.core.environment import install_command
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.render.text import render_text
from asl.core.values import Json, compact
from asl.documents.checking import check
from asl.effects.task_tokens import TaskTokens
from asl.executions import Store
from asl.executions.retention import Retention
from asl.executions.store import open_store
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError
from asl.service.operations import perform
from asl.service.registration import register_document
from asl.service.retention import prune_regularly
from asl.service.service import ACCOUNT, REGION, StatesService
from asl.sources.repository import find_files, is_document_name

__all__ = ["serve_command"]

OWN: Final = (
    "arn:aws:states:::states:*",
    "arn:aws:states:::aws-sdk:sfn:*",
    "arn:aws:states:*:activity:*",
)
"""Resources that the service performs itself."""
_ACTIVITY: Final = re.compile(
    r'"Resource":"arn:[\w-]+:states:([\w-]+):([0-9]{12}):activity:([\w.-]{1,80})"'
)
WATCH: Final = 0.5
"""Seconds between two looks at the watched files."""
TEMPORARY: Final = Retention.read("90d", None, "1h")
"""Retention of a temporary store: that of AWS, which has no API for ended express executions."""


Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""What the server does besides answering requests."""


class ListenAddress(NamedTuple):
    """Where the server listens, and whom it serves."""

    host: str
    url: str
    socket: socket.socket
    scope: RequestScope
    keys: Mapping[str, str] | None


def _keys(
    ctx: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> Mapping[str, str] | None:
    """Return the secret keys by access key id; None without any."""
    for pair in pairs:
        if "=" not in pair.strip("="):
            raise click.BadParameter("write ACCESS_KEY_ID=SECRET", param_hint="--require-auth")
    return dict(pair.split("=", 1) for pair in pairs) or None


@click.command("serve")
@click.argument("documents", metavar="[DOC...]", nargs=-1)
@click.option(
    "--store",
    "store_file",
    metavar="FILE",
    help="Store of executions, a file or temporal://HOST:PORT/NAMESPACE; by default a temporary "
    "file, until the server ends.",
)
@click.option(
    "--keep",
    metavar="DURATION",
    help="Delete executions that ended longer ago: 30d, 12h; in a temporary store 90d.",
)
@click.option(
    "--keep-latest",
    metavar="N",
    type=click.IntRange(0),
    help="Delete ended executions beyond this number of the latest ones.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8083,
    show_default=True,
    help="Port to listen on; 0 for a free one.",
)
@click.option(
    "--account",
    metavar="ID",
    default=ACCOUNT,
    show_default=True,
    help="Account of the ARNs, also of those in templates.",
)
@click.option(
    "--region",
    metavar="NAME",
    envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
    default=REGION,
    show_default=True,
    help="Region of the ARNs, also of those in templates.",
)
@click.option(
    "--require-auth",
    "keys",
    metavar="ID=SECRET",
    multiple=True,
    callback=_keys,
    help="Accept only requests that are signed with this access key.",
)
@click.option(
    "--concurrency",
    metavar="N",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Maximum number of concurrent executions.",
)
@click.option(
    "--schedules",
    "with_schedules",
    is_flag=True,
    help="Start executions at the times that SAM and CloudFormation templates plan.",
)
@click.option("--watch", is_flag=True, help="Check and replace definitions when files change.")
@click.option(
    "--project",
    "project_pairs",
    metavar="NAME=STORE",
    multiple=True,
    help="Serve several stores, each as a project of its own below /projects/NAME.",
)
@service_options
@access_options
@origin_options
@binding_options
def serve_command(
    documents: tuple[str, ...],
    store_file: str | None,
    keep: str | None,
    keep_latest: int | None,
    host: str,
    port: int,
    account: str,
    region: str,
    keys: Mapping[str, str] | None,
    concurrency: int,
    with_schedules: bool,
    watch: bool,
    project_pairs: tuple[str, ...],
    service: ServiceOptions,
    access: AccessOptions,
    origin: Origin,
    binding: BindingOptions,
) -> Exit:
    """Serve the API of AWS Step Functions.

    Clients of AWS work unchanged with the URL of the server as their endpoint. DOC is a document, a
    template or a folder; its state machines are registered at the start.

    \b
        asl serve template.yaml --agents agents.yaml
        aws stepfunctions list-state-machines --endpoint-url http://127.0.0.1:8083

    \f
    Raises:
        UsageError: The options contradict each other.
        AslError: The packages of the extra "server" are missing, or the address is in use.
    """
    projects = dict(split_pair(each, "NAME=STORE", "--project") for each in project_pairs)
    has_store = store_file is not None and not is_from_project("store_file")
    if projects and (documents or has_store):
        raise click.UsageError(
            "--project names all stores: omit --store and DOC, publish documents"
        )
    on_servers = [*filter(is_on_server, filter(None, (store_file, *projects.values())))]
    if on_servers and Retention.read(keep, keep_latest) != Retention():
        raise click.UsageError(
            f"--keep and --keep-latest are for files: {on_servers[0]!r} deletes executions after "
            "the retention of its namespace"
        )
    address = _listen(host, port, RequestScope(account, region), keys)
    origin["defaults"] = {**_place(), **origin["defaults"]}
    binding = binding.with_templates(_templates(documents))
    bindings: dict[str, Any] = {
        "tokens": TaskTokens(),
        **binding.bindings(None, origin, watch=watch, deployment=Deployment(region, address.url)),
        "listener": service.listener,
    }
    retention = Retention.read(keep, keep_latest)
    if store_file is None and not projects:
        age = TEMPORARY.age if keep is None else retention.age
        retention = retention._replace(age=age, express=TEMPORARY.express)
    if projects:
        return _serve_projects(projects, address, access, service, concurrency, bindings, retention)
    with address.socket, _opened(store_file, bindings) as store:
        binding.record(store)
        machines = _RegisteredMachines(
            store, documents, origin, address.scope, bindings, with_schedules=with_schedules
        )
        if not asyncio.run(machines.register()):
            return Exit.INVALID
        works = [machines.watch] if watch else []
        if retention != Retention():
            works.append(partial(prune_regularly, store, retention))
        where = "in a temporary store" if store_file is None else f"on {store.path}"
        _serve({"default": store}, where, bindings, address, access, service, concurrency, works)
    return Exit.OK


def _serve_projects(
    projects: Mapping[str, str],
    address: ListenAddress,
    access: AccessOptions,
    service: ServiceOptions,
    concurrency: int,
    bindings: Mapping[str, Any],
    retention: Retention,
) -> Exit:
    """Serve several stores."""
    with address.socket, ExitStack() as opened:
        stores = {
            name: opened.enter_context(open_store(place, **bindings))
            for name, place in projects.items()
        }
        works: list[Work] = []
        if retention != Retention():
            works += [partial(prune_regularly, store, retention) for store in stores.values()]
        where = f"the projects {', '.join(stores)}"
        _serve(stores, where, bindings, address, access, service, concurrency, works)
    return Exit.OK


@contextmanager
def _opened(file: str | None, bindings: Mapping[str, Any]) -> Iterator[Store]:
    """Open a store; without a file a temporary one, which needs no memory for ended executions."""
    if file is not None:
        with open_store(file, **bindings) as store:
            yield store
        return
    with (
        TemporaryDirectory(prefix="asl-serve-") as folder,
        Store(os.path.join(folder, "executions.db"), synchronous="OFF", **bindings) as store,
    ):
        yield store


def _templates(files: Iterable[str]) -> Iterator[str]:
    """Yield the files that may be templates with functions."""
    for name in files:
        if os.path.isdir(name):
            yield from find_files(name)[0]
        elif not is_document_name(name):
            yield name


async def _together(works: Iterable[Work]) -> None:
    await asyncio.gather(*(work() for work in works))


def _place() -> dict[str, Json]:
    """Return account and region if they were chosen, as values of templates."""
    context = click.get_current_context()
    return {
        name: context.params[option]
        for option, name in (("account", "AWS::AccountId"), ("region", "AWS::Region"))
        if context.get_parameter_source(option) is not ParameterSource.DEFAULT
    }


def _listen(
    host: str, port: int, scope: RequestScope, keys: Mapping[str, str] | None
) -> ListenAddress:
    try:
        from asl.server.serving import listen
    except ModuleNotFoundError as missing:
        raise AslError(
            f"'asl serve' needs the package {missing.name!r}: {install_command('server')}"
        ) from None
    return ListenAddress(host, *listen(host, port), scope, keys)


def _serve(
    stores: Mapping[str, Store],
    where: str,
    bindings: Mapping[str, Any],
    address: ListenAddress,
    access: AccessOptions,
    service: ServiceOptions,
    concurrency: int,
    works: list[Work],
) -> None:
    from asl.server.serving import ServerSettings, access_settings, serve_stores

    host, url, listener, scope, keys = address
    settings = access_settings(host, **access._asdict())
    serve_stores(
        stores,
        ServerSettings(
            scope.account,
            scope.region,
            keys,
            settings,
            concurrency=concurrency,
            grace=service.grace,
        ),
        bindings,
        listener,
        ready=lambda: _announce(
            url, where, [*_warnings(host, keys, is_open=settings.is_open), *_unserved(stores)]
        ),
        background=partial(_together, works),
    )


def _warnings(host: str, keys: Mapping[str, str] | None, *, is_open: bool) -> Iterator[str]:
    """Yield what is open, or closed, to other machines."""
    if not is_open:
        yield "the REST interface and the pages refuse all requests: add --users FILE"
    if keys is None and host not in ("127.0.0.1", "localhost", "::1"):
        yield "the API of Step Functions accepts any credentials: add --require-auth ID=SECRET"


def _unserved(stores: Mapping[str, Store]) -> Iterator[str]:
    """Yield who performs the executions of stores on servers."""
    for store in stores.values():
        if store.runs_elsewhere and not store.workers():
            command = f"asl worker --store '{store.path}' --agents FILE"
            yield f"no worker performs the executions of {store.path}: start {command}"


def _announce(url: str, where: str, warnings: Iterable[str]) -> None:
    console.print_message(f"asl: Step Functions, {where}, at {url}")
    console.print_message(f"    export AWS_ENDPOINT_URL_SFN={url}")
    console.print_message("    export AWS_DISABLE_HOST_PREFIX_INJECTION=true")
    console.print_message(f"    pages at {url}/ui/, REST at {url}/api/v1")
    for warning in warnings:
        console.print_message(f"asl: {warning}", style="yellow")


class _RegisteredMachines:
    """The state machines of the given files, as registered resources.

    Args:
        store: The store.
        files: Documents, templates and folders.
        origin: How they are read.
        scope: Account and region of their ARNs.
        bindings: The bindings of their executions.
        with_schedules: Whether schedules of templates start executions.
    """

    def __init__(
        self,
        store: Store,
        files: tuple[str, ...],
        origin: Origin,
        scope: RequestScope,
        bindings: Mapping[str, Any],
        *,
        with_schedules: bool,
    ) -> None:
        self._with_schedules = with_schedules
        self.service = StatesService(store, "aws", bindings)
        self._native = StatesService(store, "default", bindings)
        self._files = files
        self._origin = origin
        self._scope = scope
        self.bindings = bindings

    async def register(self) -> bool:
        """Register all state machines and print them; return whether all of them are valid."""
        valid = True
        for document in self._documents():
            if isinstance(document, InvalidDocument):
                _print_report(document.report)
                valid = False
            elif not is_agents_file(document):
                valid = await self._register(document) and valid
        return valid

    def _documents(self) -> Iterator[Document | InvalidDocument]:
        for name in self._files:
            try:
                if os.path.isdir(name):
                    for _, found in read_folder(name, self._origin):
                        yield from found
                else:
                    yield from read_documents(name, self._origin)
            except InvalidDocument as refusal:
                yield refusal

    async def _register(self, document: Document) -> bool:
        """Register one state machine; return whether it is valid."""
        service, report = self.service, check(document, profile="aws")
        if not (report.ok or document.express):  # only AWS has express workflows
            service, report = self._native, check(document)
        if not report.ok:
            _print_report(report)
            return False
        name = document.deployed or document.name
        machine = await register_document(
            service, self._scope, name, document, express=document.express
        )
        arn = machine.arn
        if document.qualifiers:
            await self._publish(service, arn, document.qualifiers)
        for region, account, activity in _ACTIVITY.findall(compact(document.composed_value)):
            scope = RequestScope(account, region)
            await perform(service, "CreateActivity", {"name": activity}, scope)
        kind = "EXPRESS" if document.express else "STANDARD"
        console.write_line(f"{arn}  {kind}")
        self._plan(document, name)
        unbound = _unbound(document, service.profile, self.bindings)
        for message in unbound:
            console.print_message(f"    {message}", style="yellow")
        if document.deployed is not None and any(":lambda:" in message for message in unbound):
            hint = "add --functions to run the functions of the template from their code"
            console.print_message(f"    {hint}", style="yellow")
        services = [message for message in unbound if ":states:::" in message]
        if services and self.bindings.get("aws") is None:
            hint = "add --aws-endpoint URL to call an emulator of AWS, or --aws to call AWS"
            console.print_message(f"    {hint}", style="yellow")
        elif any(":http:" in message for message in services):
            hint = "list http under 'services' in the section 'aws' of an agents file"
            console.print_message(f"    {hint}", style="yellow")
        return True

    def _plan(self, document: Document, name: str) -> None:
        """Make the schedules of a template those of the store, if that is wanted."""
        if not document.planned_starts:
            return
        if not self._with_schedules:
            count = console.count_noun(len(document.planned_starts), "schedule")
            hint = f"add --schedules to start it by the {count} of the template"
            console.print_message(f"    {hint}", style="yellow")
            return
        from asl.server.local import local_access
        from asl.server.schedules import put_planned

        access = local_access(self.service.store, self._scope)
        for each in document.planned_starts:
            try:
                put_planned(access, name, each)
            except AslError as refusal:
                message = f"the schedule {each.name!r} cannot be used: {refusal}"
                console.print_message(f"    {message}", style="yellow")
            else:
                console.print_message(f"    schedule {each.name}: {each.expression}")

    async def _publish(self, service: StatesService, arn: str, qualifiers: Iterable[str]) -> None:
        """Publish a version of a state machine, and let its aliases route to it."""
        found = await perform(
            service, "PublishStateMachineVersion", {"stateMachineArn": arn}, self._scope
        )
        route = {"stateMachineVersionArn": found["stateMachineVersionArn"], "weight": 100}
        for name in qualifiers:
            if name.isdecimal():
                continue
            alias = {"name": name, "routingConfiguration": [route]}
            try:
                await perform(service, "CreateStateMachineAlias", alias, self._scope)
            except ServiceError as refusal:
                if refusal.code != "ConflictException":
                    raise
                update = {
                    "stateMachineAliasArn": f"{arn}:{name}",
                    "routingConfiguration": [route],
                }
                await perform(service, "UpdateStateMachineAlias", update, self._scope)

    async def watch(self) -> None:
        """Register the state machines again whenever a file changes."""
        seen = self._times()
        while True:
            await asyncio.sleep(WATCH)
            if (now := self._times()) != seen:
                seen = now
                await self.register()

    def _times(self) -> dict[str, int]:
        """Return the times of the last changes of all files."""
        found: dict[str, int] = {}
        for name in self._files:
            for path in _files_below(name):
                try:
                    found[path] = os.stat(path).st_mtime_ns
                except OSError:  # it was removed meanwhile
                    continue
        return found


def _files_below(name: str) -> Iterator[str]:
    """Yield a file and those in its folder, or the files of a folder and of the folders in it."""
    folder = name if os.path.isdir(name) else os.path.dirname(name) or "."
    for parent, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith((".", "node_modules"))]
        yield from (os.path.join(parent, file) for file in files)


def _print_report(report: Report) -> None:
    console.print_message(render_text([report]))


def _unbound(document: Document, profile: str | Profile, bindings: Mapping[str, Any]) -> list[str]:
    """Return a sentence about each agent and resource of a document that is not bound, once."""
    calls = bindings.get("aws")
    plain = {(each.pointer, each.message) for each in check(document, profile=profile)}
    bound = check(
        document,
        profile=profile,
        agents=bindings.get("agents") or {},
        resources=[
            *(bindings.get("resources") or ()),
            *(() if calls is None else calls.patterns),
            *OWN,
        ],
    )
    found = (each.message for each in bound if (each.pointer, each.message) not in plain)
    return [*dict.fromkeys(found)]
