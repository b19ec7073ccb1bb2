"""`asl inbox`: what people are asked and have not decided, and the task tokens that are open."""

from collections.abc import Iterator

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.stores import (
    STORE,
    command_for,
    continue_command,
    digest_of,
    find_execution,
    open_store,
    prompt_of,
)
from asl.core.errors import AslError
from asl.core.values import Json, compact, excerpt
from asl.executions import Store
from asl.executions.errors import RequestNotFound
from asl.states.approval_request import request_digest

__all__ = ["inbox_command"]

PAGE = 50
"""Requests that are listed at once."""
SHOWN = 400
"""Characters that an item may have to be shown."""


@click.command("inbox")
@click.argument("execution", metavar="[EXECUTION]", required=False)
@STORE
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=PAGE,
    show_default=True,
    help="Maximum number of entries.",
)
@click.option("--after", metavar="ID", help="Continue after this request id or task token.")
@click.option("--json", "as_json", is_flag=True, help="Print each request as a line of JSON.")
def inbox_command(
    execution: str | None, store_file: str | None, limit: int, after: str | None, as_json: bool
) -> Exit:
    """List open approval requests, then open task tokens.

    With EXECUTION, only those of this execution and of the executions that it started.
    """
    with open_store(store_file) as store:
        of = None if execution is None else find_execution(store, execution).name
        damaged: list[str] = []
        asked, awaited = _page(store, of, after, limit + 1, damaged)
        ids = [each["requestId"] for each in asked] + [each["taskToken"] for each in awaited]
        requests = [_named(store, each) for each in asked[:limit]]
        due = set(store.due())
        tops = [store.root(request["execution"]) for request in requests]
        go_on = {name: continue_command(store, "resume", name) for name in {*tops} & due}
        shown = awaited[: limit - len(requests)]
        tasks = [(store.root(task["execution"]), task) for task in shown]
    for each in damaged:
        console.say(f"asl: {each}; {command_for('doctor')} says more", style="red")
    for name, request in zip(tops, requests, strict=True):
        if as_json:
            console.write_result(console.as_text({**request, "digest": request_digest(request)}))
            continue
        for line in _lines(_label(name, request), request, go_on.get(name)):
            console.write_line(line, fold=True)
    for name, task in tasks:
        if as_json:
            console.write_result(console.as_text(task))
            continue
        for line in _task(_label(name, task), task):
            console.write_line(line, fold=True)
    if not (requests or tasks or damaged):
        console.say("asl: nothing waits for a decision")
    if len(ids) > limit:
        chosen = [] if execution is None else [execution]
        chosen += [] if limit == PAGE else ["-n", str(limit)]
        following = command_for("inbox", *chosen, "--after", ids[limit - 1])
        console.say(f"asl: there are more: {following} lists the next ones")
    return Exit.OK


def _page(
    store: "Store", of: str | None, after: str | None, size: int, damaged: list[str]
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return the next requests of people, and behind the last of them those by task token."""
    asked: list[dict[str, Json]] = []
    if after is None or _is_of_people(store, after):
        asked = store.pending(of, limit=size, after=after, damaged=damaged)
        after = None
    if len(asked) == size:
        return asked, []
    try:
        return asked, store.pending_callbacks(
            of, limit=size - len(asked), after=after, damaged=damaged
        )
    except RequestNotFound:
        raise AslError(
            f"there is no request {after!r}, so nothing follows it: "
            f"{command_for('inbox')} lists what waits"
        ) from None


def _is_of_people(store: "Store", id: str) -> bool:
    """Whether a request is one that people answer, not the holder of a task token."""
    try:
        store.request(id)
    except RequestNotFound:
        return False
    return True


def _named(store: "Store", request: dict[str, Json]) -> dict[str, Json]:
    """Return a request with the name of the execution that has made it."""
    return {**request, "execution": store.execution_of(request["requestId"])}


def _label(top: str, request: dict[str, Json]) -> str:
    """Name the execution that waits, and the one that has led to it."""
    name = request["execution"]
    return top if name == top else f"{name} (started by {top})"


def _task(name: str, task: dict[str, Json]) -> Iterator[str]:
    """Yield what waits for which answer and until when, and its token."""
    until = f"  (until {task['expiresAt']})" if "expiresAt" in task else ""
    yield f"{name}  {task['state']}{until}  {excerpt(task['payload'], SHOWN)}"
    yield f"  task token  {task['taskToken']}"


def _lines(name: str, request: dict[str, Json], go_on: str | None) -> Iterator[str]:
    """Yield who asks what and until when, what may be decided on and by whom, and the id.

    *go_on* is the command that resumes the execution, None if nothing is due.
    """
    until = f"  (until {request['expiresAt']})" if "expiresAt" in request else ""
    yield f"{name}  {prompt_of(request)}{until}"
    for index, item in enumerate(request.get("items", ())):
        yield f"  {index:>3}  {excerpt(item, SHOWN)}"
    fields = request.get("editable", {}).get("fields", {})
    if fields:
        listed = ", ".join(f"{key} = {excerpt(value, SHOWN)}" for key, value in fields.items())
        yield f"  editable: {listed}"
    if rules := _rules(request.get("policy", {})):
        yield f"  {rules}"
    if "escalatedTo" in request:
        yield f"  escalated to {compact(request['escalatedTo'])}"
    yield f"  {' | '.join(request['options'])}  {request['requestId']}"
    yield f"  digest {digest_of(request)}"
    if go_on is not None:
        yield f"  due: {go_on} continues it"


def _rules(policy: dict[str, Json]) -> str:
    """Say who may decide, how many have to, who has, and what they must say."""
    approvers = policy.get("approvers", {})
    roles = [f"the role {role}" for role in approvers.get("roles", ())]
    rules = []
    if who := [*approvers.get("users", ()), *roles]:
        rules.append(f"by {' or '.join(who)}")
    if "excludes" in policy:
        rules.append(f"not by {policy['excludes']}, who asked for it")
    if (needed := policy.get("requiredApprovals", 1)) > 1:
        given = [_approver(each) for each in policy["received"]]
        rules.append(
            f"{len(given)} of {needed} approvals" + (f": {', '.join(given)}" * bool(given))
        )
    if policy.get("requireReason"):
        rules.append("a reason is required (--comment)")
    return "; ".join(rules)


def _approver(answer: dict[str, Json]) -> str:
    """Name who approved, and the user of the operating system who did so for them."""
    by = answer.get("system_user")
    return str(answer["approver"]) + (f" (by {by})" if by is not None else "")
