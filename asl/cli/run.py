"""`asl run`: run a document and print its output."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast

import click

import asl
from asl.bindings import Bindings
from asl.cli import console
from asl.cli.arguments import (
    PROFILE,
    QUOTA,
    Origin,
    origin_options,
    read_agents_files,
    read_document,
    read_input,
    select_profile,
)
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit, exit_of_status
from asl.cli.failures import describe_failure
from asl.cli.project import is_from_project
from asl.cli.stores import (
    command_for,
    default_store,
    is_on_server,
    open_store,
    print_paused,
    print_redrive_hint,
)
from asl.compiler import compile_workflow
from asl.compose import compose_runnable
from asl.core.diagnostics import InvalidDocument, Report, Severity
from asl.core.document import Document
from asl.core.errors import AslError, ExpressionFault
from asl.core.pointers import resolve_pointer, tokens
from asl.core.profile import Profile
from asl.core.values import Json
from asl.documents.defined_agents import (
    check_definitions,
    names_answered_by_tools,
    unbound_code,
)
from asl.effects.clock import Clock, VirtualClock, WallClock
from asl.effects.runtime import Listener
from asl.engine.events import Event
from asl.engine.execution import Execution
from asl.engine.result import Result
from asl.expr.times import parse_epoch
from asl.program import Program

if TYPE_CHECKING:
    from asl.executions import Store

__all__ = ["run_command"]

UNBOUND = "V-TASK-03"
"""The finding for a name without a binding."""
ACTIVITIES = "arn:*:states:*:activity:*"
"""Resources whose workers may poll a store for tasks."""
STARTS = ("arn:*:states:*:states:startExecution*", "arn:*:states:*:aws-sdk:sfn:start*")
"""Resources that start workflows; served if any workflow is bound."""


@click.command("run")
@click.argument("document", metavar="DOC")
@click.option(
    "-i", "--input", "input_", metavar="JSON", help="Input as JSON, @FILE, or - for standard input."
)
@click.option("--input-file", metavar="FILE", help="Read the input from a JSON or YAML file.")
@binding_options
@PROFILE
@QUOTA
@origin_options
@click.option("--virtual-time", is_flag=True, help="Skip the time of waits, timeouts and retries.")
@click.option("--clock", metavar="TIME", help="Start virtual time at this RFC 3339 timestamp.")
@click.option(
    "--store",
    "store_file",
    metavar="FILE",
    is_flag=False,
    flag_value="",
    help="Save the execution in a store; by default $ASL_STORE, or the store of the user.",
)
@click.option(
    "--synchronous",
    type=click.Choice(("OFF", "NORMAL", "FULL", "EXTRA"), case_sensitive=False),
    help="Durability of the store: FULL survives power loss, NORMAL a crash of the process.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Queue the execution for a worker of the --store, print its name and exit.",
)
@click.option("--name", metavar="NAME", help="Name of the execution; random if absent.")
@click.option(
    "--requestor",
    metavar="USER",
    help="User who starts the execution; a Policy may exclude them as approver.",
)
@click.option("--strict", is_flag=True, help="Refuse a document with warnings.")
@click.option("--ignore-blocks", is_flag=True, help="Ignore agent blocks that are not supported.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object.")
@click.option(
    "--events", is_flag=True, help="Print each event as a line of JSON while the workflow runs."
)
@click.option("--trace", is_flag=True, help="Print the input and output of every state.")
@click.option(
    "--telemetry",
    type=click.Choice(("console", "otlp")),
    help="Export OpenTelemetry spans to standard error or to a collector.",
)
@click.option(
    "--history",
    metavar="FILE",
    help="Write the history in the format of GetExecutionHistory of AWS; - for standard output.",
)
@click.option(
    "--record", metavar="FILE", help="Record the run as a test case in a .yaml or .json file."
)
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings and no progress.")
def run_command(
    document: str,
    input_: str | None,
    input_file: str | None,
    binding: BindingOptions,
    profile: str,
    quotas: tuple[str, ...],
    origin: Origin,
    virtual_time: bool,
    clock: str | None,
    store_file: str | None,
    synchronous: str | None,
    detach: bool,
    name: str | None,
    requestor: str | None,
    strict: bool,
    ignore_blocks: bool,
    as_json: bool,
    events: bool,
    trace: bool,
    telemetry: str | None,
    history: str | None,
    record: str | None,
    quiet: bool,
) -> Exit:
    """Run a document and print its output.

    DOC is a JSON or YAML file, a SAM, CloudFormation or Terraform template with state machines, or
    - for standard input.

    \b
        asl run review.asl.json --input '{"code": "x"}' --agents agents.yaml
        asl run order.asl.json --agent Charge=billing:charge --virtual-time --trace
        asl run template.yaml --resource Order --var Stage=test

    \f
    Raises:
        UsageError: The options contradict each other.
    """
    if as_json + events + (history == "-") > 1:
        raise click.UsageError("--json, --events and --history - cannot be combined")
    if store_file is not None and (virtual_time or clock or ignore_blocks):
        if is_from_project("store_file"):
            store_file = None
        else:
            raise click.UsageError(
                "--store cannot be combined with --virtual-time, --clock or --ignore-blocks"
            )
    if synchronous is not None and store_file is None:
        raise click.UsageError("--synchronous needs --store")
    if detach and store_file is None:
        raise click.UsageError(
            "--detach needs --store, whose worker runs the execution; without FILE it is the store "
            "in $ASL_STORE or the user's store"
        )
    if detach and (as_json or events or history or record or trace):
        raise click.UsageError(
            "--detach cannot be combined with --json, --events, --history, --record or --trace: "
            "follow the execution with 'asl logs'"
        )
    for file in (record, history):
        if file is not None and file != "-":
            console.require_writable(file)
    chosen = _make_clock(virtual_time, clock)
    data = _read_input(document, input_, input_file)
    loaded = compose_runnable(read_document(document, origin))
    binding = binding.with_templates((document,))
    bound = binding.bindings(loaded, origin, quiet=quiet)
    served = [
        *(STARTS if bound["workflows"] else ()),
        *(() if store_file is None else (ACTIVITIES,)),
        *(() if bound["aws"] is None else bound["aws"].patterns),
    ]
    read_as = select_profile(profile, quotas)
    program = _compile(
        loaded,
        bound,
        served,
        read_as,
        strict,
        ignore_blocks,
        quiet,
        detach or (store_file is not None and is_on_server(store_file or default_store())),
        read_agents_files(binding.agent_files).agents,
    )
    if requestor is None and not quiet:
        _warn_missing_requestor(program)
    with ExitStack() as stack:  # the messages read from the store, so it stays open for them
        options: dict[str, Any] = {"clock": chosen}
        if store_file is not None:
            kept = open_store(
                store_file,
                make=True,
                synchronous=(synchronous or "FULL").upper(),
                bindings=bound if detach else None,
            )
            options = {"store": stack.enter_context(kept)}
            binding.record(kept)
        options |= {"name": name, "requestor": requestor}
        if detach:
            return _detach(options["store"], program, data, name, requestor)
        with _hint_resume_on_abort(store_file, binding), ExitStack() as watching:
            listeners = _listeners(watching, loaded, program, chosen, events, trace, quiet)
            if telemetry is not None:
                from asl.telemetry.exporters import export_telemetry

                listeners.append(watching.enter_context(export_telemetry(telemetry)))
            if listeners:
                bound["listener"] = _Listeners(listeners)
            result = _run(program, loaded, data, bound, record, **options)
        _print_result(result, history, as_json=as_json, silent=events)
        if not result.ok:
            _print_end(result, loaded, options.get("store"))
        if not quiet:
            _warn_undelivered(result)
    return exit_of_status(result.status)


def _detach(
    store: "Store", program: "Program", data: Json, name: str | None, requestor: str | None
) -> Exit:
    """Queue an execution for a worker; print its name."""
    handle = store.start(program, data, name=name, requestor=requestor)
    console.write_line(handle.name)
    if not store.workers():
        worker = command_for("worker")
        console.print_message(f"asl: no worker runs: {worker} runs the execution", style="yellow")
    return Exit.OK


def _print_result(result: "Result", history: str | None, *, as_json: bool, silent: bool) -> None:
    """Print the output, the result or the history of an execution."""
    if history == "-":
        console.write_result(console.as_text(result.history()))
        return
    if history is not None:
        console.write_file(history, _indent_json(result.history()), private=True)
    if as_json:
        console.write_result(console.as_text(result.to_json()))
    elif result.ok and not silent:
        console.write_result(console.as_text(result.output))


@contextmanager
def _hint_resume_on_abort(store_file: str | None, binding: BindingOptions) -> Iterator[None]:
    """Print how to resume the executions of a store if a run is interrupted."""
    try:
        yield
    except (KeyboardInterrupt, AslError) as stop:
        if store_file is not None and _leaves_execution(stop):
            console.print_message(f"asl: {_continuation(store_file, binding)}", style="yellow")
        raise


def _continuation(store_file: str, binding: BindingOptions) -> str:
    """Return a sentence with the command that continues interrupted executions."""
    if is_on_server(store_file):
        return f"{command_for('worker', *binding.options)} continues the interrupted execution"
    due = command_for("resume", "--due", *binding.options)
    return f"{due} resumes the interrupted executions"


def _warn_missing_requestor(program: "Program") -> None:
    """Warn if an Approval excludes the requestor, who is not named."""
    excludes = any(
        resolve_pointer(program.document, step.pointer).get("Policy", {}).get("ExcludeRequestor")
        is True
        for machine in program.machines.values()
        for step in machine.steps.values()
        if step.type == "Approval"
    )
    if excludes:
        text = "asl: 'ExcludeRequestor' excludes no user: name the requestor with --requestor USER"
        console.print_message(text, style="yellow")


def _leaves_execution(stop: BaseException) -> bool:
    """Return whether an interruption leaves an execution that the same bindings continue."""
    from asl.stores.errors import ExecutionWaits, StoreError

    return isinstance(stop, KeyboardInterrupt | StoreError) and not isinstance(stop, ExecutionWaits)


def _print_end(result: "Result", document: "Document", store: "Store | None") -> None:
    """Print why there is no output, and how to continue an execution in a *store*."""
    if result.status == "PAUSED":
        print_paused(result, store)
        return
    console.print_message(describe_failure(result, document), style="red")
    if store is not None:
        print_redrive_hint(result, store)


def _warn_undelivered(result: "Result") -> None:
    """Warn about channels that did not receive all of their events."""
    for name, report in result.deliveries.items():
        lost = report["failed"] + report["dropped"]
        if lost:
            why = f": {report['error']}" if "error" in report else ""
            text = f"asl: the channel {name!r} has lost {console.count_noun(lost, 'event')}{why}"
            console.print_message(text, style="yellow")


def _read_input(document: str, given: str | None, file: str | None) -> Json:
    if given is not None and file is not None:
        raise click.UsageError("--input and --input-file cannot be combined")
    if file is not None:
        given = f"@{file}"
    if given == "-" and document == "-":
        raise click.UsageError("document and input cannot both be read from standard input")
    return {} if given is None else read_input(given)


def _compile(
    document: "Document",
    bound: "Bindings",
    served: list[str],
    profile: "Profile",
    strict: bool,
    ignore_blocks: bool,
    quiet: bool,
    for_worker: bool,
    specs: Mapping[str, Json],
) -> "Program":
    """Check and compile a document; warn about names without a binding.

    *for_worker*, such names are no finding: the worker binds them.
    """
    from asl.checks import check

    specs = {**dict.fromkeys(bound["agents"] or {}, ""), **specs}
    tools, code = bound["tools"] or {}, unbound_code(document.composed_value, bound["agents"] or {})
    answered = [*names_answered_by_tools(document, tools), *code]
    report = check(
        document,
        profile,
        strict=strict,
        agents=[*(bound["agents"] or ()), *answered],
        resources=[*(bound["resources"] or ()), *served],
        workflows=bound["workflows"] or {},
        for_run=True,
        ignore_blocks=ignore_blocks,
    )
    report = Report(
        tuple(
            each
            for each in report
            if not (
                _is_mocked(each.code, each.pointer, bound) or (for_worker and each.code == UNBOUND)
            )
        ),
        document,
    )
    if not report.ok:
        raise InvalidDocument(report)
    defined = check_definitions(document, specs, tools, strict=strict)
    defined.raise_for_errors()
    for found in (report, defined):
        warnings = Report(found.of(Severity.WARNING), found.document)
        if warnings and not quiet:
            console.print_warnings(warnings)
    return compile_workflow(document.composed_value, profile, document.name)


def _is_mocked(code: str, pointer: str, bound: "Bindings") -> bool:
    """Return whether a finding is a name without a binding in a mocked state."""
    if code != UNBOUND or not bound["mocks"]:
        return False
    *_, state, _field = tokens(pointer)
    return state in bound["mocks"]


def _make_clock(virtual_time: bool, start: str | None) -> "Clock":
    if start is None:
        return VirtualClock() if virtual_time else WallClock()
    try:
        return VirtualClock(parse_epoch(start))
    except ExpressionFault as fault:
        raise click.BadParameter(str(fault), param_hint="--clock") from None


def _listeners(
    stack: ExitStack,
    document: "Document",
    program: "Program",
    clock: "Clock",
    events: bool,
    trace: bool,
    quiet: bool,
) -> "list[Listener]":
    """Return the listeners for the events of the run; none unless an option needs them."""
    listeners: list[Listener] = []
    if events:
        stdout = sys.stdout
        listeners.append(
            lambda event: console.write_result(console.json_line(event.to_json()), stdout)
        )
    if trace:
        from asl.cli.trace import Trace

        coloured = console.has_colour(sys.stderr)
        trace_lines = Trace(document, program.profile, console.print_styled, colour=coloured)
        listeners.append(trace_lines.listen)
    elif not (quiet or events) and console.is_terminal(sys.stderr):
        from asl.cli.progress import Progress

        listeners.append(stack.enter_context(Progress(document, clock)).listen)
    return listeners


class _Listeners:
    """Several listeners as one; `of` asks each for its listener of an execution."""

    def __init__(self, listeners: "list[Listener]") -> None:
        self.listeners = listeners

    def of(self, execution: "Execution") -> "_Listeners":
        return _Listeners(
            [each.of(execution) if hasattr(each, "of") else each for each in self.listeners]
        )

    def __call__(self, event: "Event") -> None:
        for listener in self.listeners:
            listener(event)


def _run(
    program: "Program",
    document: "Document",
    data: Json,
    bound: "Bindings",
    record: str | None,
    store: "Store | None" = None,
    **options: Any,
) -> "Result":
    if record is not None:
        from asl.conformance import Recording

        recording = Recording()
        for field in ("agents", "resources", "mocks"):
            bound[field] = recording.wrap(bound[field] or {})
    with console.stdout_to_stderr():
        result = (asl.run if store is None else store.run)(program, data, **bound, **options)
    if record is not None:
        workflows = cast("Mapping[str, Document] | None", bound["workflows"])  # as options give it
        case = recording.case(program.name, document, data, result, workflows)
        _write_case(record, case)
    return result


def _indent_json(value: Json) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _write_case(file: str, case: dict[str, Json]) -> None:
    if file.endswith((".yaml", ".yml")):
        from io import StringIO

        from ruamel.yaml import YAML

        text = StringIO()
        YAML().dump(case, text)
        console.write_file(file, text.getvalue(), private=True)
    else:
        console.write_file(file, _indent_json(case), private=True)
    console.print_message(f"asl: recorded the run in {file}", style="green")
