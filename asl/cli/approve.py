"""`asl approve`: answer the approval requests of an execution."""

import re
import shlex
from collections.abc import Sequence

import click

from asl.cli import console
from asl.cli.arguments import split_pair, value_or_text
from asl.cli.console import Exit
from asl.cli.stores import (
    DIGITS,
    STORE,
    command_for,
    continue_command,
    continued_by,
    find_execution,
    open_store,
    prompt_text,
)
from asl.core.diagnostics import did_you_mean
from asl.core.environment import user_name
from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions import RequestNotFound, Store
from asl.states.approval_answers import ANYTHING, SYSTEM_USER, AnswerRefused
from asl.states.approval_request import request_digest

__all__ = ["approve_command"]

RESERVED = (
    *("approval", "decision", "by", "approver", "comment", "edited", "edited_content", "roles"),
    *("approved", "rejected", "request_id", "digest", "system_user", "authentication"),
)
"""Keys that `--set` must not set."""
LISTED = 20
"""Maximum number of requests in a message."""


def _check_digest(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Return the first digits of a digest in lower case."""
    if text is not None and not re.fullmatch(f"[0-9a-fA-F]{{{DIGITS},64}}", text):
        message = f"{text!r} is not {DIGITS} hexadecimal digits or more"
        raise click.BadParameter(message, param_hint="--digest")
    return None if text is None else text.lower()


@click.command("approve")
@click.argument("execution", metavar="EXECUTION")
@click.argument("misplaced", nargs=-1, metavar="")
@STORE
@click.option(
    "--request", "request_id", metavar="ID", help="Id of the request, if several are open."
)
@click.option(
    "--option", metavar="OPTION", help="Decision; by default the first option, which approves."
)
@click.option("--comment", metavar="TEXT", help="Reason for the decision.")
@click.option(
    "--edit", "edits", metavar="KEY=VALUE", multiple=True, help="Change an editable value."
)
@click.option(
    "--set",
    "extras",
    metavar="KEY=VALUE",
    multiple=True,
    help="Add a field to the approval record.",
)
@click.option("--approved", metavar="INDEX,...", help="Items of a batch to approve.")
@click.option("--rejected", metavar="INDEX,...", help="Items of a batch to reject.")
@click.option(
    "--as", "user", metavar="USER", help="Approver; by default the user of the operating system."
)
@click.option(
    "--digest",
    metavar="DIGITS",
    callback=_check_digest,
    help="Digest from 'asl inbox'; the answer is refused if the request has changed.",
)
@click.option("--role", "roles", metavar="ROLE", multiple=True, help="Role of the approver.")
def approve_command(
    execution: str,
    misplaced: tuple[str, ...],
    store_file: str | None,
    request_id: str | None,
    option: str | None,
    comment: str | None,
    edits: tuple[str, ...],
    extras: tuple[str, ...],
    approved: str | None,
    rejected: str | None,
    user: str | None,
    digest: str | None,
    roles: tuple[str, ...],
) -> Exit:
    """Answer an approval request of a paused execution; 'asl resume' continues it.

    \b
        asl approve order-17 --as ann --comment "fine by me"
        asl approve order-17 --option reject
        asl approve batch-3 --approved 0,2,3 --rejected 1

    \f
    Raises:
        UsageError: The options contradict each other.
        AslError: There is no such request, or its answer is refused.
    """
    if misplaced:
        raise click.UsageError(
            f"the decision is an option: --option {shlex.quote(' '.join(misplaced))}"
        )
    items = _parse_items(approved=approved, rejected=rejected)
    if items and option is not None:
        raise click.UsageError("--option decides all items: omit --approved and --rejected")
    more, edited = _parse_extras(extras), _parse_pairs("--edit", edits)
    if user is not None:
        more[SYSTEM_USER] = user_name()
    if request_id is None and ":/" in execution:  # a request id, copied from 'asl inbox'
        execution, request_id = execution.partition(":/")[0], execution
    with open_store(store_file) as store:
        name = find_execution(store, execution).name
        request = _choose_request(store, name, request_id)
        if digest is not None:
            whole = request_digest(request)
            more["digest"] = whole if whole.startswith(digest) else digest
        try:
            record = store.answer(
                request["requestId"],
                _first_option(request) if option is None and not items else option,
                by=user_name() if user is None else user,
                comment=comment,
                edited=edited or None,
                roles=roles,
                **items,
                **more,
            )
        except AnswerRefused as refusal:
            if not refusal.late:
                raise
            go_on = continue_command(store, "resume", store.root(name))
            raise AslError(f"the answer is too late: {go_on} continues without it") from None
        policy = store.request(request["requestId"]).get("policy", {})
        go_on = continued_by(store, name)
    if record is None:
        count, needed = len(policy["received"]), policy["requiredApprovals"]
        console.print_message(
            f"asl: {name} waits: it has {count} of {needed} approvals", style="yellow"
        )
        return Exit.PAUSED
    console.write_result(console.as_text(record))
    console.print_message(f"asl: the request is answered; {go_on} continues {name}")
    return Exit.OK


def _first_option(request: dict[str, Json]) -> str:
    """Return the default decision: the first option of the request."""
    option: str = request["options"][0]
    if option == ANYTHING:
        raise click.UsageError("the request has no fixed options: use --option ANSWER")
    return option


def _choose_request(store: "Store", name: str, request_id: str | None) -> dict[str, Json]:
    """Return the request with an id, or the only one of the execution."""
    open_ones = store.pending(name)
    decided = store.answered_requests(name)  # repeating an answer is allowed
    if request_id is not None:
        return _find_request(store, name, request_id, [*open_ones, *decided])
    asked = open_ones or decided
    if len(asked) == 1:
        return asked[0]
    if not open_ones:
        raise AslError(f"{name} has no open request: {command_for('inbox')} lists all")
    raise AslError(
        f"{name} has several open requests: select one with --request ID, or the end of its id:"
        + _list_requests(open_ones)
    )


def _list_requests(requests: list[dict[str, Json]]) -> str:
    lines = [f"\n  {each['requestId']}  {prompt_text(each)}" for each in requests[:LISTED]]
    more = len(requests) - LISTED
    rest = f"\n  and {more} more: {command_for('inbox')} lists all" if more > 0 else ""
    return "".join(lines) + rest


def _find_request(
    store: "Store", name: str, request_id: str, known_ones: list[dict[str, Json]]
) -> dict[str, Json]:
    """Return the request whose id ends with *request_id*, open or answered."""
    meant = [each for each in known_ones if each["requestId"].endswith(request_id)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise AslError(f"several requests of {name} end in {request_id!r}:{_list_requests(meant)}")
    try:
        known = store.root(store.execution_of(request_id)) == store.root(name)
    except RequestNotFound:
        known = False
    if not known:
        hint = did_you_mean(request_id, [each["requestId"] for each in known_ones])
        listed = f"; it has:{_list_requests(known_ones)}" if known_ones else ""
        raise AslError(f"{name} has no request {request_id!r}" + (f" ({hint})" if hint else listed))
    return store.request(request_id)


def _parse_items(**given: str | None) -> dict[str, Json]:
    """Return the decisions on the items of a batch by option; None is left out."""
    return {
        key: _parse_indices(f"--{key}", text) for key, text in given.items() if text is not None
    }


def _parse_indices(option: str, text: str) -> list[Json]:
    """Parse numbers such as `0,2,3`; an empty text has none."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not of the form 0,2,3", param_hint=option)
    return [int(part) for part in parts]


def _parse_extras(texts: Sequence[str]) -> dict[str, Json]:
    extras = _parse_pairs("--set", texts)
    for key in extras:
        if key in RESERVED:
            raise click.BadParameter(f"{key!r} has an option of its own", param_hint="--set")
    return extras


def _parse_pairs(option: str, texts: Sequence[str]) -> dict[str, Json]:
    """Parse `KEY=VALUE` pairs with distinct keys; a value that is not JSON is a text."""
    values: dict[str, Json] = {}
    for text in texts:
        key, value = split_pair(text, "KEY=VALUE", option, empty=True)
        if key in values:
            raise click.BadParameter(f"{key!r} is given twice", param_hint=option)
        values[key] = value_or_text(value)
    return values
