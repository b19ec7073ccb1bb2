"""Commands about the users of a service: token, rotate-secret and audit."""

import json
from collections.abc import Iterator

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.stores import STORE, open_store
from asl.core.environment import install_command
from asl.core.errors import AslError, ExpressionFault
from asl.core.printable import printable
from asl.core.values import Json, compact
from asl.expr.times import format_timestamp, parse_duration, parse_epoch
from asl.stores.audit import AuditEntry, AuditFilter, list_entries

__all__ = ["audit_command", "rotate_secret_command", "token_command"]


@click.command("token")
@click.argument("user", metavar="USER")
@click.option(
    "--role",
    "roles",
    metavar="ROLE",
    multiple=True,
    help="viewer, operator, approver, or a role that policies of approvals name.",
)
@click.option(
    "--project", "projects", metavar="NAME", multiple=True, help="Project; by default all."
)
def token_command(user: str, roles: tuple[str, ...], projects: tuple[str, ...]) -> Exit:
    """Make a token for a user of a service.

    The token goes to standard error, once; the lines for the file of 'asl serve --users' go to
    standard output and have the hash of the token only.

    \\b
        asl token ann --role operator --role approver >> users.toml

    \\f
    Raises:
        AslError: The name is empty or has invisible characters, or a package is missing.
    """
    try:
        from asl.server.access.users import hash_of, is_user_name, new_token
    except ModuleNotFoundError as missing:
        raise _without_extra("asl token", missing) from None
    if not is_user_name(user):
        raise AslError(f"{user!r} is no name: it is empty or has invisible characters")
    token = new_token()
    rows = [f"[users.{_quoted(user)}]", f"token = {_quoted(hash_of(token))}"]
    rows.append(f"roles = [{', '.join(map(_quoted, roles or ('viewer',)))}]")
    if projects:
        rows.append(f"projects = [{', '.join(map(_quoted, projects))}]")
    for row in rows:
        console.write_line(row)
    console.print_message(f"asl: the token of {printable(user)}, which is shown once:")
    console.print_message(token)
    return Exit.OK


def _without_extra(command: str, missing: ModuleNotFoundError) -> AslError:
    return AslError(f"{command!r} needs {missing.name!r}: {install_command('server')}")


def _quoted(text: str) -> str:
    """Return a text as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


@click.command("rotate-secret")
@STORE
@click.option("--secret-file", metavar="FILE", help="The file of 'asl serve --secret-file'.")
def rotate_secret_command(store_file: str | None, secret_file: str | None) -> Exit:
    """Change the secret that signs the sessions and links of a service.

    All sessions and links end; a running server uses the new secret from its next request on.

    \f
    Raises:
        AslError: The secret cannot be written, or a package is missing.
    """
    try:
        from asl.server.access.secret import FileSecret, StoreSecret
    except ModuleNotFoundError as missing:
        raise _without_extra("asl rotate-secret", missing) from None
    if secret_file is not None:
        FileSecret(secret_file).rotate()
    else:
        with open_store(store_file) as store:
            StoreSecret(store).rotate()
    console.print_message("asl: the secret was changed: all sessions and links have ended")
    return Exit.OK


@click.command("audit")
@STORE
@click.option("--user", metavar="USER", help="List only actions of this user.")
@click.option(
    "--action", metavar="ACTION", help="List only this action, or those that begin with it."
)
@click.option("--target", metavar="TEXT", help="List only actions on targets with this text.")
@click.option("--since", metavar="TIME", help="List only actions since a time, or a duration ago.")
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Maximum number of entries.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each entry as a line of JSON.")
def audit_command(
    store_file: str | None,
    user: str | None,
    action: str | None,
    target: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> Exit:
    """List what users did with a service, the newest first; 'asl doctor' verifies the log."""
    with open_store(store_file) as store:
        begin = None if since is None else _time(since, store.clock.now())
        found = list_entries(
            store.session, limit=limit, wanted=AuditFilter(user, action, target, begin)
        )
    if not found:
        console.print_message("asl: there are no such entries in the audit log")
    for line in map(_json, found) if as_json else _table(found):
        console.write_result(line)
    return Exit.OK


def _time(text: str, now: float) -> float:
    """Return the time of `--since`: a timestamp, or a duration before now."""
    try:
        return parse_epoch(text) if "T" in text else now - parse_duration(text)
    except ExpressionFault:
        message = f"{text!r} is no time such as 2030-01-31T13:45:00Z and no duration such as 7d"
        raise click.BadParameter(message, param_hint="--since") from None


def _json(entry: AuditEntry) -> str:
    fields: dict[str, Json] = {
        "id": entry.id,
        "time": format_timestamp(entry.time),
        "user": entry.user,
        "method": entry.method,
        "action": entry.action,
        "target": entry.target,
        "details": entry.details,
        "hash": entry.hash.hex(),
    }
    return console.as_text(fields)


def _table(entries: list[AuditEntry]) -> Iterator[str]:
    """Yield a line for each entry, in columns."""
    rows = [
        (
            format_timestamp(each.time),
            f"{each.user or '-'} ({each.method})",
            each.action,
            each.target,
        )
        for each in entries
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row, entry in zip(rows, entries, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        more = f"  {compact(entry.details)}" if entry.details else ""
        yield printable(f"{'  '.join(cells)}  {row[3]}{more}")
