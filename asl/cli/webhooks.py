"""Commands about webhooks: signed requests that start executions."""

from typing import TYPE_CHECKING

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.schedules import NAME, opened_service, published_name
from asl.cli.stores import STORE
from asl.core.printable import printable

if TYPE_CHECKING:
    from asl.server.webhooks.signatures import Scheme

__all__ = ["webhooks_add_command", "webhooks_ls_command", "webhooks_rm_command"]


@click.command("webhooks add")
@NAME
@click.argument("document", metavar="DOC")
@STORE
@click.option(
    "--scheme",
    type=click.Choice(["github", "standard", "header"]),
    required=True,
    help="How requests are signed: as by GitHub, by Standard Webhooks, or the secret in a header.",
)
@click.option(
    "--secret",
    "secrets",
    metavar="REFERENCE",
    multiple=True,
    required=True,
    help="${env:NAME} or ${file:/PATH}; the service reads it. Two while one replaces the other.",
)
@click.option("--header", metavar="NAME", help="Header with the secret (X-Webhook-Secret).")
@click.option(
    "--delivery-header",
    metavar="NAME",
    help="Header with the id of a delivery; a repeated one starts nothing.",
)
@click.option(
    "--with-header",
    "headers",
    metavar="NAME",
    multiple=True,
    help="Header that the input has, in 'headers'; the body is in 'body'.",
)
@click.option(
    "--content-type",
    "content_types",
    metavar="TYPE",
    multiple=True,
    help="Allowed type of bodies; by default application/json.",
)
@click.option(
    "--max-bytes",
    metavar="N",
    type=click.IntRange(1, 1024 * 1024),
    default=256 * 1024,
    show_default=True,
    help="Largest body.",
)
def webhooks_add_command(
    name: str,
    document: str,
    store_file: str | None,
    scheme: "Scheme",
    secrets: tuple[str, ...],
    header: str | None,
    delivery_header: str | None,
    headers: tuple[str, ...],
    content_types: tuple[str, ...],
    max_bytes: int,
) -> Exit:
    """Register a webhook, or replace the one of this name.

    DOC is a file, which is published, or a published document. 'asl serve' answers
    POST /hooks/NAME: a request with the right signature starts an execution, with its body as the
    input.

    \b
        asl webhooks add push review.asl.json --scheme github --secret '${env:GITHUB_SECRET}'
    """
    with opened_service(store_file, "'asl webhooks'", make=True) as access:
        from asl.server.webhooks import registry

        registry.put_webhook(
            access,
            name,
            published_name(access, document),
            scheme,
            secrets,
            header=header,
            delivery_header=delivery_header,
            headers=headers,
            content_types=content_types,
            max_bytes=max_bytes,
        )
    console.print_message(f"asl: POST /hooks/{name} starts executions")
    return Exit.OK


@click.command("webhooks ls")
@STORE
def webhooks_ls_command(store_file: str | None) -> Exit:
    """List the webhooks of a store."""
    with opened_service(store_file, "'asl webhooks'") as access:
        from asl.server.webhooks import registry

        found = registry.list_webhooks(access.store.session)
    for each in found:
        secrets = " ".join(each.secrets)
        console.write_line(printable(f"{each.name}  {each.document}  {each.scheme}  {secrets}"))
    if not found:
        console.print_message("asl: there are no webhooks")
    return Exit.OK


@click.command("webhooks rm")
@NAME
@STORE
def webhooks_rm_command(name: str, store_file: str | None) -> Exit:
    """Delete a webhook; its executions stay."""
    with opened_service(store_file, "'asl webhooks'") as access:
        from asl.server.webhooks import registry

        registry.delete_webhook(access, name)
    console.print_message(f"asl: {name} is deleted")
    return Exit.OK
