"""`asl show`: an execution and its history."""

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.failures import describe_item_failures
from asl.cli.progress import duration, look_up, wait_end
from asl.cli.state_paths import Path, definition, name_of
from asl.cli.stores import (
    LISTED,
    STORE,
    command_for,
    continue_command,
    digest_of,
    find_execution,
    open_store,
    prompt_of,
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
    """The states in which an execution is, what they report, and the Map that failed last."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.percentage: float | None = None
        """The progress of the workflow, None where it is not tracked."""
        self.failed_items: list[dict[str, Json]] = []
        """The distributed Map with failed items that ended last, as in `Result.failed_items`."""
        self._inside: dict[Path, Event] = {}
        """The events with which states were entered, by their machines."""
        self._progress: dict[Path, Event] = {}
        """The latest progress of the states that have not been left, by their paths."""
        for event in events:
            self._add(event)

    def states(self, most: int) -> list[Event]:
        """Return with which events the first states were entered that have not been left."""
        around = {each[:length] for each in self._inside for length in range(len(each))}
        find_execution = [event for event in self._inside.values() if event.path not in around]
        return sorted(find_execution, key=attrgetter("id"))[:most]

    def progress(self, entered: Event) -> Json:
        """Return what a state has reported of its progress since it was entered, None if nothing.

        Args:
            entered: The event with which it was entered.
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
            self._leave_within(event.path)
        elif event.type.startswith("MapIteration") and not event.type.endswith("Started"):
            self._inside.pop(event.path, None)
        elif event.type == "ExecutionResumed" and "checkpoint" in event.details:
            self._inside.clear()
        elif "itemCounts" in event.details:
            counts, failures = event.details["itemCounts"], event.details["failures"]
            self.failed_items = [{"path": [*event.path], **counts, "failures": failures}]

    def _leave_within(self, path: Path) -> None:
        """Leave the states within a state that has been left."""
        length = len(path)
        for each in [each for each in self._inside if each[:length] == path]:
            del self._inside[each]
        for each in [each for each in self._progress if each[:length] == path]:
            del self._progress[each]


PAGE = 1000
"""Events that are shown at once."""
SHOWN = 200
"""Characters of a value that are shown."""


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
def show_command(
    execution: str,
    store_file: str | None,
    as_json: bool,
    events: bool,
    limit: int | None,
    after: int,
) -> Exit:
    """Show the status, the outcome and the history of an execution."""
    if as_json and events:
        raise click.UsageError("--json and --events exclude each other")
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
                for line in _described(store, stored):
                    console.write_line(line)
            _print_history(store, stored, after, limit)
    return Exit.OK


def _described(store: "Store", stored: StoredExecution) -> Iterator[str]:
    """Yield the lines of the summary; the history is read unless the execution succeeded."""
    result = store.result(stored.name, with_history=False)
    standing = None if result.ok else ActiveStates(store.events(stored.name))
    decided = store.answered_requests(stored.name) if stored.status == "PAUSED" else []
    due = stored.status == "PAUSED" and store.root(stored.name) in store.due()
    go_on = continue_command(store, "resume", stored.name)
    nobody = stored.status == "RUNNING" and store.is_interrupted(stored.name)
    below = store.descendants(stored.name)
    yield from _summary(result, standing, below, decided, due, nobody, go_on)
    yield ""


def _print_history(store: "Store", stored: StoredExecution, after: int, limit: int | None) -> None:
    """Print a page of the history, and the command for the next one."""
    events = store.events(stored.name)
    timing = _Timing()
    for event in islice(events, after):
        timing.add(event)
    page = [*islice(events, limit or PAGE)]
    for line in _history(page, timing):
        console.write_line(line)
    if next(events, None) is not None:
        chosen = [] if limit is None else ["-n", str(limit)]
        following = command_for("show", stored.name, *chosen, "--after", str(after + len(page)))
        console.say(f"asl: there are more events: {following} shows the next ones")


def _summary(
    result: Result,
    standing: ActiveStates | None,
    below: list[StoredExecution],
    decided: list[dict[str, Json]],
    due: bool,
    nobody: bool,
    go_on: str,
) -> list[str]:
    """Say what is known of an execution; something is *due*, *nobody* is at work on it.

    *go_on* is the command that resumes it.
    """
    started = format_timestamp(result.execution.started)
    lines = [
        f"{result.name}  {result.status}",
        f"workflow  {result.execution.workflow}",
        f"started   {started}",
    ]
    again = result.execution.redriven
    if again is not None:
        times = console.count_of(result.execution.redrives, "time")
        lines.append(f"redriven  {times}, the last time {format_timestamp(again)}")
    if result.status == "SUCCEEDED":
        lines.append(f"output    {console.clip(result.output, SHOWN)}")
    elif result.error or result.cause:
        lines.append(f"error     {console.reason(result.error, result.cause)}")
        failed = [] if standing is None else standing.failed_items
        lines += [f"          {line}" for line in describe_item_failures(failed)]
    for each in below:
        lines.append(f"runs      {each.name}  {each.status}  {each.workflow}")
    if standing is not None:
        if standing.percentage is not None:
            lines.append(f"progress  {standing.percentage:g} %")
        lines += [
            f"state     {name_of(each.path)}{_since(each, result)}"
            f"{_how_far(standing.progress(each))}"
            for each in standing.states(LISTED)
        ]
    waits = [*map(_request, result.pending), *map(_task, result.pending_callbacks)]
    lines += [f"waits for {each}" for each in waits[:LISTED]]
    if len(waits) > LISTED:
        lines.append(f"waits for {len(waits) - LISTED} more: {command_for('inbox')} lists all")
    if nobody:
        lines.append(f"orphaned  its process has ended: {go_on} continues it")
    lines += [f"decided   {prompt_of(each)}: {go_on} continues it" for each in decided[:LISTED]]
    if due and not decided:
        lines.append(f"due       {go_on} continues it")
    for saved in result.checkpoints[-LISTED:]:
        lines.append(f"saved     {saved.name}  {format_timestamp(saved.created)}")
    spent = result.usage
    if spent["tokens"] or spent["cost"]:
        lines.append(f"spent     {spent['tokens']} tokens, {spent['cost']:g}")
    return lines


def _since(entered: Event, result: Result) -> str:
    """Say for how long it has stood there, and until when it waits."""
    if result.status not in ("RUNNING", "PAUSED"):
        return ""
    since = f"  for {duration(result.ended - entered.timestamp)}"
    if not entered.type.startswith("Wait"):
        return since
    state = definition(result.execution.program.document, entered.path)
    data = look_up(state.get("InputPath", "$"), entered.details["input"])
    until = wait_end(state, data, entered.timestamp)
    return since if until is None else f"{since}, until {format_timestamp(until)}"


def _how_far(reported: Json) -> str:
    """Return what a state has reported of its progress."""
    if reported is None or reported.get("percentage") is None:
        return ""
    said = reported.get("message")
    return f", at {reported['percentage']:g} %{f': {console.clip(said, SHOWN)}' if said else ''}"


def _request(request: dict[str, Json]) -> str:
    until = f", until {request['expiresAt']}" if "expiresAt" in request else ""
    options = " | ".join(request["options"])
    return f"{prompt_of(request)} ({options}){until}, digest {digest_of(request)}"


def _task(task: dict[str, Json]) -> str:
    until = f", until {task['expiresAt']}" if "expiresAt" in task else ""
    return f"the answer to the task token {task['taskToken']} ({task['state']}){until}"


class _Timing:
    """When an execution began, and when the states were entered that it is in."""

    def __init__(self) -> None:
        self.begin: float | None = None
        self.entered: dict[Path, float] = {}

    def add(self, event: Event) -> float | None:
        """Take note of the next event; returns how long a state took if it is its end."""
        if self.begin is None:
            self.begin = event.timestamp
        if event.type.endswith("StateEntered"):
            self.entered[event.path] = event.timestamp
        elif event.type.endswith("StateExited") and event.path in self.entered:
            return event.timestamp - self.entered.pop(event.path)
        return None


def _history(events: list[Event], timing: _Timing) -> Iterator[str]:
    """Yield a line for each event: when, what, where; and how long a state has taken.

    They stand in the order of their times. What people decide while nobody is at work is written
    only when the execution goes on, and yet was decided before that.
    """
    width = max((len(event.type) for event in events), default=0)
    for event in sorted(events, key=lambda event: event.timestamp):
        seconds = timing.add(event)
        assert timing.begin is not None
        when = f"{event.timestamp - timing.begin:>10.3f} s"
        took = "" if seconds is None else f"  ({seconds:.3f} s)"
        yield f"{when}  {event.type:<{width}}  {name_of(event.path)}{took}".rstrip()
