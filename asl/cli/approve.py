"""`asl approve`: decide on what an execution asks."""

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
    find_execution,
    open_store,
    prompt_of,
)
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions import RequestNotFound, Store
from asl.states.approval_answers import ANYTHING, SYSTEM_USER, AnswerRefused
from asl.states.approval_request import request_digest

__all__ = ["approve_command"]

RESERVED = (
    *("approval", "decision", "by", "approver", "comment", "edited", "edited_content", "roles"),
    *("approved", "rejected", "request_id", "digest", "system_user"),
)
"""The keys that `--set` may not give."""
LISTED = 20
"""Requests that a message lists."""


def _digits(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Return the beginning of a digest, in lower case."""
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
    callback=_digits,
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
    """
    if misplaced:
        raise click.UsageError(
            f"the decision is an option: --option {shlex.quote(' '.join(misplaced))}"
        )
    items = _items(approved=approved, rejected=rejected)
    if items and option is not None:
        raise click.UsageError("--option decides on all items: leave out --approved and --rejected")
    more, edited = _extras(extras), _values("--edit", edits)
    if user is not None:
        more[SYSTEM_USER] = _user()
    if request_id is None and ":/" in execution:  # the id of the request, as the inbox shows it
        execution, request_id = execution.partition(":/")[0], execution
    with open_store(store_file) as store:
        name = find_execution(store, execution).name
        request = _request(store, name, request_id)
        if digest is not None:
            whole = request_digest(request)
            more["digest"] = whole if whole.startswith(digest) else digest
        try:
            record = store.answer(
                request["requestId"],
                _first(request) if option is None and not items else option,
                by=_user() if user is None else user,
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
            raise AslError(f"the answer comes too late; {go_on} continues without it") from None
        policy = store.request(request["requestId"]).get("policy", {})
        go_on = "a worker" if store.workers() else continue_command(store, "resume", name)
    if record is None:
        count, needed = len(policy["received"]), policy["requiredApprovals"]
        console.say(f"asl: {count} of {needed} approvals: {name} waits for more", style="yellow")
        return Exit.PAUSED
    console.write_result(console.as_text(record))
    console.say(f"asl: decided; {go_on} continues it")
    return Exit.OK


def _user() -> str:
    """Return the user of the operating system, `user` where it has no name."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return "user"


def _first(request: dict[str, Json]) -> str:
    """Return the decision where none is named: the first option."""
    option: str = request["options"][0]
    if option == ANYTHING:
        raise click.UsageError("this asks for an answer in your own words: --option ANSWER")
    return option


def _request(store: "Store", name: str, request_id: str | None) -> dict[str, Json]:
    """Return the request that is meant, which must be clear."""
    open_ones = store.pending(name)
    decided = store.answered_requests(name)  # the same answer twice is one
    if request_id is not None:
        return _named(store, name, request_id, [*open_ones, *decided])
    asked = open_ones or decided
    if len(asked) == 1:
        return asked[0]
    if not open_ones:
        raise AslError(f"{name} asks nothing that is open: see {command_for('inbox')}")
    raise AslError(
        f"{name} has several open requests; name one by --request (the end of it is enough):"
        + _listed(open_ones)
    )


def _listed(requests: list[dict[str, Json]]) -> str:
    lines = [f"\n  {each['requestId']}  {prompt_of(each)}" for each in requests[:LISTED]]
    more = len(requests) - LISTED
    return "".join(lines) + (f"\n  and {more} more: see {command_for('inbox')}" if more > 0 else "")


def _named(
    store: "Store", name: str, request_id: str, known_ones: list[dict[str, Json]]
) -> dict[str, Json]:
    """Return a request by its id or the end of it; one that was answered may be so again."""
    meant = [each for each in known_ones if each["requestId"].endswith(request_id)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise AslError(f"several requests of {name} end in {request_id!r}:{_listed(meant)}")
    try:
        known = store.root(store.execution_of(request_id)) == store.root(name)
    except RequestNotFound:
        known = False
    if not known:
        hint = did_you_mean(request_id, [each["requestId"] for each in known_ones])
        listed = f"; it has:{_listed(known_ones)}" if known_ones else ""
        raise AslError(f"{name} has no request {request_id!r}" + (f" ({hint})" if hint else listed))
    return store.request(request_id)


def _items(**given: str | None) -> dict[str, Json]:
    """Return the decisions on the items of a batch, as far as they are given."""
    return {key: _indices(f"--{key}", text) for key, text in given.items() if text is not None}


def _indices(option: str, text: str) -> list[Json]:
    """Return the numbers in `0,2,3`; none in an empty text."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not of the form 0,2,3", param_hint=option)
    return [int(part) for part in parts]


def _extras(texts: Sequence[str]) -> dict[str, Json]:
    extras = _values("--set", texts)
    for key in extras:
        if key in RESERVED:
            raise click.BadParameter(f"{key!r} has an option of its own", param_hint="--set")
    return extras


def _values(option: str, texts: Sequence[str]) -> dict[str, Json]:
    """Return values by their keys, each given once; one that is no JSON is a text."""
    values: dict[str, Json] = {}
    for text in texts:
        key, value = split_pair(text, "KEY=VALUE", option, empty=True)
        if key in values:
            raise click.BadParameter(f"{key!r} is given twice", param_hint=option)
        values[key] = value_or_text(value)
    return values
