"""`asl inbox`: open approval requests and task tokens."""

from collections.abc import Iterator

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.stores import (
    STORE,
    command_for,
    continue_command,
    find_execution,
    open_store,
    prompt_text,
    short_digest,
)
from asl.core.errors import AslError
from asl.core.values import Json, compact, excerpt
from asl.executions import Store
from asl.executions.errors import RequestNotFound
from asl.states.approval_request import request_digest

__all__ = ["inbox_command"]

PAGE = 50
"""Default number of listed requests."""
SHOWN = 400
"""Maximum number of printed characters of an item."""


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
        requests = [_with_execution(store, each) for each in asked[:limit]]
        due = set(store.due())
        tops = [store.root(request["execution"]) for request in requests]
        go_on = {name: continue_command(store, "resume", name) for name in {*tops} & due}
        shown = awaited[: limit - len(requests)]
        tasks = [(store.root(task["execution"]), task) for task in shown]
    for each in damaged:
        console.print_message(f"asl: {each}; {command_for('doctor')} shows details", style="red")
    for name, request in zip(tops, requests, strict=True):
        if as_json:
            console.write_result(console.as_text({**request, "digest": request_digest(request)}))
            continue
        for line in _request_lines(_execution_label(name, request), request, go_on.get(name)):
            console.write_line(line, fold=True)
    for name, task in tasks:
        if as_json:
            console.write_result(console.as_text(task))
            continue
        for line in _task_lines(_execution_label(name, task), task):
            console.write_line(line, fold=True)
    if not (requests or tasks or damaged):
        console.print_message("asl: no approval request and no task token is open")
    if len(ids) > limit:
        chosen = [] if execution is None else [execution]
        chosen += [] if limit == PAGE else ["-n", str(limit)]
        following = command_for("inbox", *chosen, "--after", ids[limit - 1])
        console.print_message(f"asl: there are more requests: {following} lists them")
    return Exit.OK


def _page(
    store: "Store", of: str | None, after: str | None, size: int, damaged: list[str]
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return the next approval requests, and after the last one the next open task tokens."""
    asked: list[dict[str, Json]] = []
    if after is None or _is_approval(store, after):
        asked = store.pending(of, limit=size, after=after, damaged=damaged)
        after = None
    if len(asked) == size:
        return asked, []
    try:
        return asked, store.pending_callbacks(
            of, limit=size - len(asked), after=after, damaged=damaged
        )
    except RequestNotFound:
        raise AslError(f"there is no request {after!r}: {command_for('inbox')} lists all") from None


def _is_approval(store: "Store", id: str) -> bool:
    """Return whether an id is that of an approval request."""
    try:
        store.request(id)
    except RequestNotFound:
        return False
    return True


def _with_execution(store: "Store", request: dict[str, Json]) -> dict[str, Json]:
    """Return a request with the name of its execution."""
    return {**request, "execution": store.execution_of(request["requestId"])}


def _execution_label(top: str, request: dict[str, Json]) -> str:
    """Return the name of the execution, with the one that started it."""
    name = request["execution"]
    return top if name == top else f"{name} (started by {top})"


def _task_lines(name: str, task: dict[str, Json]) -> Iterator[str]:
    """Yield the lines of an open task token."""
    until = f"  (until {task['expiresAt']})" if "expiresAt" in task else ""
    yield f"{name}  {task['state']}{until}  {excerpt(task['payload'], SHOWN)}"
    yield f"  task token  {task['taskToken']}"


def _request_lines(name: str, request: dict[str, Json], go_on: str | None) -> Iterator[str]:
    """Yield the lines of an approval request.

    Args:
        name: Name of the execution.
        request: The request.
        go_on: The command that resumes the execution; None if it is not due.
    """
    until = f"  (until {request['expiresAt']})" if "expiresAt" in request else ""
    yield f"{name}  {prompt_text(request)}{until}"
    for index, item in enumerate(request.get("items", ())):
        yield f"  {index:>3}  {excerpt(item, SHOWN)}"
    fields = request.get("editable", {}).get("fields", {})
    if fields:
        listed = ", ".join(f"{key} = {excerpt(value, SHOWN)}" for key, value in fields.items())
        yield f"  editable: {listed}"
    if rules := _policy_text(request.get("policy", {})):
        yield f"  {rules}"
    if "escalatedTo" in request:
        yield f"  escalated to {compact(request['escalatedTo'])}"
    yield f"  {' | '.join(request['options'])}  {request['requestId']}"
    yield f"  digest {short_digest(request)}"
    if go_on is not None:
        yield f"  due: {go_on} continues the execution"


def _policy_text(policy: dict[str, Json]) -> str:
    """Describe the policy of a request: approvers, received approvals and the need for a reason."""
    approvers = policy.get("approvers", {})
    roles = [f"the role {role}" for role in approvers.get("roles", ())]
    rules = []
    if who := [*approvers.get("users", ()), *roles]:
        rules.append(f"by {' or '.join(who)}")
    if "excludes" in policy:
        rules.append(f"not by {policy['excludes']}, the requestor")
    if (needed := policy.get("requiredApprovals", 1)) > 1:
        given = [_approver_text(each) for each in policy["received"]]
        rules.append(
            f"{len(given)} of {needed} approvals" + (f": {', '.join(given)}" * bool(given))
        )
    if policy.get("requireReason"):
        rules.append("a reason is required (--comment)")
    return "; ".join(rules)


def _approver_text(answer: dict[str, Json]) -> str:
    """Return the approver, with the user of the operating system."""
    by = answer.get("system_user")
    return str(answer["approver"]) + (f" (by {by})" if by is not None else "")
