"""`asl show`: an execution and its history."""

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.failures import describe_item_failures
from asl.cli.progress import duration, look_up, wait_end
from asl.cli.remote import ENDPOINT, show_remote
from asl.cli.state_paths import Path, definition, state_name
from asl.cli.stores import (
    LISTED,
    STORE,
    command_for,
    continue_command,
    find_execution,
    open_store,
    prompt_text,
    short_digest,
)
from asl.core.values import Json
from asl.engine.events import Event
from asl.engine.result import Result
from asl.executions import Store
from asl.expr.times import format_timestamp
from asl.states.blocks.progress import UPDATED
from asl.stores.executions import StoredExecution

__all__ = ["ActiveStates", "show_command"]


class ActiveStates:
    """The active states of an execution, their progress, and the last failed Map."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.percentage: float | None = None
        """Progress of the workflow in percent; None if it is not reported."""
        self.failed_items: list[dict[str, Json]] = []
        """The last distributed Map with failed items, as in `Result.failed_items`."""
        self._inside: dict[Path, Event] = {}
        """The `StateEntered` events of active states by machine."""
        self._progress: dict[Path, Event] = {}
        """The latest progress events of active states by path."""
        for event in events:
            self._add(event)

    def states(self, most: int) -> list[Event]:
        """Return the `StateEntered` events of the innermost active states, oldest first.

        Args:
            most: Maximum number of events.
        """
        around = {each[:length] for each in self._inside for length in range(len(each))}
        outermost = [event for event in self._inside.values() if event.path not in around]
        return sorted(outermost, key=attrgetter("id"))[:most]

    def progress(self, entered: Event) -> Json:
        """Return the latest progress of an active state; None if it has reported none.

        Args:
            entered: The `StateEntered` event of the state.
        """
        reported = self._progress.get(entered.path)
        return None if reported is None else reported.details

    def _add(self, event: Event) -> None:
        machine = event.path[:-1]
        if event.type == UPDATED:
            if event.path:
                self._progress[event.path] = event
            else:
                self.percentage = event.details["percentage"]
        elif event.type.endswith("StateEntered"):
            self._inside[machine] = event
            self._progress.pop(event.path, None)
        elif event.type.endswith("StateExited"):
            self._inside.pop(machine, None)
            self._progress.pop(event.path, None)
            self._leave_inner(event.path)
        elif event.type.startswith("MapIteration") and not event.type.endswith("Started"):
            self._inside.pop(event.path, None)
        elif event.type == "ExecutionResumed" and "checkpoint" in event.details:
            self._inside.clear()
        elif "itemCounts" in event.details:
            counts, failures = event.details["itemCounts"], event.details["failures"]
            self.failed_items = [{"path": [*event.path], **counts, "failures": failures}]

    def _leave_inner(self, path: Path) -> None:
        """Remove the states inside a state that has been exited."""
        length = len(path)
        for each in [each for each in self._inside if each[:length] == path]:
            del self._inside[each]
        for each in [each for each in self._progress if each[:length] == path]:
            del self._progress[each]


PAGE = 1000
"""Default number of printed events."""
SHOWN = 200
"""Maximum number of printed characters of a value."""


@click.command("show")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object.")
@click.option("--events", is_flag=True, help="Print all events as lines of JSON.")
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    help=f"Maximum number of events; {PAGE} by default.",
)
@click.option(
    "--after",
    metavar="ID",
    type=click.IntRange(0),
    default=0,
    help="Continue after the event with this id.",
)
@ENDPOINT
def show_command(
    execution: str,
    store_file: str | None,
    endpoint: str | None,
    as_json: bool,
    events: bool,
    limit: int | None,
    after: int,
) -> Exit:
    """Show the status, the outcome and the history of an execution.

    \f
    Raises:
        UsageError: --json is combined with --events.
    """
    if as_json and events:
        raise click.UsageError("--json and --events cannot be combined")
    if endpoint is not None:
        return show_remote(endpoint, execution)
    with open_store(store_file) as store:
        stored = find_execution(store, execution)
        if events:
            last = None if limit is None else after + limit
            for event in islice(store.events(stored.name), after, last):
                console.write_result(console.as_text(event.to_json()))
        elif as_json:
            result = store.result(stored.name)
            console.write_result(console.as_text({"name": stored.name, **result.to_json()}))
        else:
            if after == 0:
                for line in _summary_lines(store, stored):
                    console.write_line(line)
            _print_history(store, stored, after, limit)
    return Exit.OK


def _summary_lines(store: "Store", stored: StoredExecution) -> Iterator[str]:
    """Yield the lines of the summary; the history is read unless the execution succeeded."""
    result = store.result(stored.name, with_history=False)
    standing = None if result.ok else ActiveStates(store.events(stored.name))
    decided = store.answered_requests(stored.name) if stored.status == "PAUSED" else []
    due = stored.status == "PAUSED" and store.root(stored.name) in store.due()
    go_on = continue_command(store, "resume", stored.name)
    interrupted = stored.status == "RUNNING" and store.is_interrupted(stored.name)
    below = store.descendants(stored.name)
    yield from _summary(result, standing, below, decided, due, interrupted, go_on)
    yield ""


def _print_history(store: "Store", stored: StoredExecution, after: int, limit: int | None) -> None:
    """Print a page of the history, and the command for the next one."""
    events = store.events(stored.name)
    timing = _Timing()
    for event in islice(events, after):
        timing.add(event)
    page = [*islice(events, limit or PAGE)]
    for line in _history_lines(page, timing):
        console.write_line(line)
    if next(events, None) is not None:
        chosen = [] if limit is None else ["-n", str(limit)]
        following = command_for("show", stored.name, *chosen, "--after", str(after + len(page)))
        console.print_message(f"asl: there are more events: {following} shows them")


def _summary(
    result: Result,
    standing: ActiveStates | None,
    below: list[StoredExecution],
    decided: list[dict[str, Json]],
    due: bool,
    interrupted: bool,
    go_on: str,
) -> list[str]:
    """Return the lines of the summary.

    Args:
        result: The result so far.
        standing: The active states; None for an execution that has succeeded.
        below: The executions that it has started.
        decided: The answered requests of a paused execution.
        due: Whether it can be resumed.
        interrupted: Whether the process that ran it has ended.
        go_on: The command that resumes it.
    """
    started = format_timestamp(result.execution.started)
    lines = [
        f"{result.name}  {result.status}",
        f"workflow  {result.execution.workflow}",
        f"started   {started}",
    ]
    again = result.execution.redriven
    if again is not None:
        times = console.count_noun(result.execution.redrives, "time")
        lines.append(f"redriven  {times}, the last time {format_timestamp(again)}")
    if result.status == "SUCCEEDED":
        lines.append(f"output    {console.clip(result.output, SHOWN)}")
    elif result.error or result.cause:
        lines.append(f"error     {console.error_text(result.error, result.cause)}")
        failed = [] if standing is None else standing.failed_items
        lines += [f"          {line}" for line in describe_item_failures(failed)]
    for each in below:
        lines.append(f"runs      {each.name}  {each.status}  {each.workflow}")
    if standing is not None:
        if standing.percentage is not None:
            lines.append(f"progress  {standing.percentage:g} %")
        lines += [
            f"state     {state_name(each.path)}{_duration_text(each, result)}"
            f"{_progress_text(standing.progress(each))}"
            for each in standing.states(LISTED)
        ]
    waits = [*map(_request_text, result.pending), *map(_task_text, result.pending_callbacks)]
    lines += [f"waits for {each}" for each in waits[:LISTED]]
    if len(waits) > LISTED:
        lines.append(f"waits for {len(waits) - LISTED} more: {command_for('inbox')} lists all")
    if interrupted:
        lines.append(f"orphaned  its process has ended: {go_on} continues it")
    lines += [f"decided   {prompt_text(each)}: {go_on} continues it" for each in decided[:LISTED]]
    if due and not decided:
        lines.append(f"due       {go_on} continues it")
    for saved in result.checkpoints[-LISTED:]:
        lines.append(f"saved     {saved.name}  {format_timestamp(saved.created)}")
    spent = result.usage
    if spent["tokens"] or spent["cost"]:
        lines.append(f"spent     {spent['tokens']} tokens, {spent['cost']:g}")
    return lines


def _duration_text(entered: Event, result: Result) -> str:
    """Return how long a state has been active, and until when it waits."""
    if result.status not in ("RUNNING", "PAUSED"):
        return ""
    since = f"  for {duration(result.ended - entered.timestamp)}"
    if not entered.type.startswith("Wait"):
        return since
    state = definition(result.execution.program.document, entered.path)
    data = look_up(state.get("InputPath", "$"), entered.details["input"])
    until = wait_end(state, data, entered.timestamp)
    return since if until is None else f"{since}, until {format_timestamp(until)}"


def _progress_text(reported: Json) -> str:
    """Return the progress of a state as text; empty if it has reported none."""
    if reported is None or reported.get("percentage") is None:
        return ""
    said = reported.get("message")
    return f", at {reported['percentage']:g} %{f': {console.clip(said, SHOWN)}' if said else ''}"


def _request_text(request: dict[str, Json]) -> str:
    until = f", until {request['expiresAt']}" if "expiresAt" in request else ""
    options = " | ".join(request["options"])
    return f"{prompt_text(request)} ({options}){until}, digest {short_digest(request)}"


def _task_text(task: dict[str, Json]) -> str:
    until = f", until {task['expiresAt']}" if "expiresAt" in task else ""
    return f"the answer to the task token {task['taskToken']} ({task['state']}){until}"


class _Timing:
    """The start of an execution and the times at which its active states were entered."""

    def __init__(self) -> None:
        self.begin: float | None = None
        self.entered: dict[Path, float] = {}

    def add(self, event: Event) -> float | None:
        """Record the next event; return the duration of the state that it exits, in seconds."""
        if self.begin is None:
            self.begin = event.timestamp
        if event.type.endswith("StateEntered"):
            self.entered[event.path] = event.timestamp
        elif event.type.endswith("StateExited") and event.path in self.entered:
            return event.timestamp - self.entered.pop(event.path)
        return None


def _history_lines(events: list[Event], timing: _Timing) -> Iterator[str]:
    """Yield a line for each event with its time, type and state, in the order of time.

    Answers to requests are recorded when the execution resumes, after later events, with the time
    of the answer.
    """
    width = max((len(event.type) for event in events), default=0)
    for event in sorted(events, key=lambda event: event.timestamp):
        seconds = timing.add(event)
        assert timing.begin is not None
        when = f"{event.timestamp - timing.begin:>10.3f} s"
        took = "" if seconds is None else f"  ({seconds:.3f} s)"
        yield f"{when}  {event.type:<{width}}  {state_name(event.path)}{took}".rstrip()
