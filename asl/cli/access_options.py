"""Options of `asl serve` about users: who they are, and how they are authenticated."""

from functools import wraps
from typing import Any, Final, NamedTuple

import click

from asl.cli.arguments import Command, with_options

__all__ = ["AccessOptions", "access_options"]

OPTIONS: Final = (
    click.option(
        "--users",
        "users_file",
        metavar="FILE",
        help="Users of the REST interface and the pages, as 'asl token' prints them.",
    ),
    click.option(
        "--public-url",
        metavar="URL",
        help="URL of the service for other machines; notifications have links to it.",
    ),
    click.option(
        "--secret-file",
        metavar="FILE",
        help="File with the secret that signs sessions and links; by default in the store.",
    ),
    click.option("--oidc", "issuer", metavar="URL", help="Identity provider (OpenID Connect)."),
    click.option("--oidc-client-id", "client_id", metavar="ID", help="Id of this service there."),
    click.option(
        "--oidc-secret-file",
        "client_secret_file",
        metavar="FILE",
        help="Secret of this service there; by default $ASL_OIDC_SECRET.",
    ),
    click.option(
        "--oidc-user-claim",
        "user_claim",
        metavar="NAME",
        default="preferred_username",
        show_default=True,
        help="Claim with the name of the user.",
    ),
    click.option(
        "--oidc-roles-claim",
        "roles_claim",
        metavar="NAME",
        default="roles",
        show_default=True,
        help="Claim with the roles; dots lead into objects.",
    ),
    click.option(
        "--proxy",
        "proxies",
        metavar="ADDRESS",
        multiple=True,
        help="Address or network of a trusted proxy.",
    ),
    click.option(
        "--proxy-user-header",
        "proxy_header",
        metavar="NAME",
        help="Header in which a trusted proxy names the user.",
    ),
    click.option(
        "--proxy-roles-header",
        "proxy_roles_header",
        metavar="NAME",
        help="Header in which a trusted proxy names the roles of the user.",
    ),
)


class AccessOptions(NamedTuple):
    """The values of the options."""

    users_file: str | None
    public_url: str | None
    secret_file: str | None
    issuer: str | None
    client_id: str | None
    client_secret_file: str | None
    user_claim: str
    roles_claim: str
    proxies: tuple[str, ...]
    proxy_header: str | None
    proxy_roles_header: str | None

    def check(self) -> None:
        """Check that the options fit together.

        Raises:
            UsageError: They do not.
        """
        if (self.issuer is None) != (self.client_id is None):
            raise click.UsageError("--oidc and --oidc-client-id are given together")
        if self.proxy_header is not None and not self.proxies:
            raise click.UsageError("--proxy-user-header needs --proxy ADDRESS")
        if self.proxy_roles_header is not None and self.proxy_header is None:
            raise click.UsageError("--proxy-roles-header needs --proxy-user-header")
        if self.public_url is not None and not self.public_url.startswith(("http://", "https://")):
            raise click.UsageError("--public-url begins with https:// or http://")


def access_options(command: Command) -> Command:
    """Add the options to a command, which receives them as `access`."""

    @wraps(command)
    def with_access(*args: Any, **options: Any) -> Any:
        access = AccessOptions(*[options.pop(field) for field in AccessOptions._fields])
        access.check()
        return command(*args, access=access, **options)

    return with_options(OPTIONS, with_access)
