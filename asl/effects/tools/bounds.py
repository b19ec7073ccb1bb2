"""Bounds of a tool call: the hosts and files that it may reach (8.9).

Hosts and files in the arguments are checked before the call. A host is checked by its name and by
the address: the connecting code resolves the address here, and connects to no other. Functions,
which connect and open files themselves, are checked while they run
(`asl.effects.tools.audit_hook`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from asl.core.values import Json
from asl.effects.tools.addresses import (
    hosts_at,
    is_address,
    is_public,
    matches_host,
    naming_patterns,
    normalize_host,
    reached_address,
)
from asl.effects.tools.argument_scan import MAX_PATH, hosts_in, is_path, texts_in
from asl.effects.tools.file_bounds import FileBounds
from asl.states.blocks.tool_policy import AccessBounds
from asl.states.errors import RaisedError

__all__ = ["CallBounds"]


class CallBounds:
    """The bounds of one call, from all policies around it (protocol
    `asl.engine.agent.ToolBounds`).
    """

    def __init__(
        self,
        tool: str,
        hosts: Sequence[AccessBounds],
        files: Sequence[AccessBounds],
        folder: str | None,
    ) -> None:
        self.tool = tool
        self.hosts = tuple(hosts)
        self.folder = folder or (os.getcwd() if files else "")
        self.files = [FileBounds(each, self.folder) for each in files]
        self.limits_network = bool(hosts)
        self.latest_refusal: RaisedError | None = None
        """The latest refusal of a function's action."""
        self.named_hosts: list[str] = []
        """Hosts that the call names or has looked up."""

    def __bool__(self) -> bool:
        return bool(self.hosts or self.files)

    # Arguments

    def check(self, arguments: Json) -> None:
        """Check the arguments of a call.

        Raises:
            RaisedError: States.Permissions; an argument has a forbidden target.
        """
        for key, text in texts_in(arguments):
            if self.hosts:
                for host in hosts_in(key, text):
                    self.name(host)
                    self.named_hosts.append(host)
            if self.files and is_path(key, text, self.folder):
                self.path(text, reading=True)

    # Hosts

    def name(self, host: str) -> None:
        """Check a host by its name.

        Raises:
            RaisedError: States.Permissions; it may not be reached.
        """
        name = normalize_host(host)
        for reach in self.hosts:
            if matches_host(name, reach.denied):
                raise self.refusal(f"the host {host!r} is denied")
            if reach.allowed is not None and not matches_host(name, reach.allowed):
                raise self.refusal(f"the host {host!r} is not allowed")

    def admit(self, host: str, address: str) -> None:
        """Check that *host* may be reached at this address.

        Raises:
            RaisedError: States.Permissions; it may not.
        """
        self.name(host)
        found = reached_address(address)
        text, name = str(found), normalize_host(host)
        for reach in self.hosts:
            if matches_host(text, reach.denied):
                raise self.refusal(f"the host {host!r} is at {text}, which is denied")
            if is_public(found) or matches_host(text, [*naming_patterns(reach.allowed)]):
                continue
            if (
                name == "localhost"
                and found.is_loopback
                and matches_host(name, reach.allowed or ())
            ):
                continue
            raise self.refusal(
                f"the host {host!r} is at {text}, an address of this machine or of a private "
                "network, which must be allowed itself"
            )

    async def address(self, host: str, port: int) -> str:
        """Return the address to connect to.

        Raises:
            RaisedError: States.Permissions; the host is not allowed, or has no allowed address.
        """
        from asyncio import get_running_loop

        self.name(host)
        try:
            found = await get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise RaisedError("Agent.NetworkError", f"{host}: {error.strerror or error}") from None
        refusal: RaisedError | None = None
        denied = await self._denied_addresses()
        for *_, place in found:
            try:
                self.admit(host, str(place[0]))
                if (other := denied.get(str(reached_address(str(place[0]))))) is not None:
                    raise self.refusal(f"the host {host!r} is {other!r}, which is denied")
            except RaisedError as error:
                refusal = error
            else:
                return str(place[0])
        raise refusal or RaisedError("Agent.NetworkError", f"{host}: it has no address")

    async def _denied_addresses(self) -> dict[str, str]:
        """Return the addresses of the hosts that are denied by name."""
        from asyncio import get_running_loop

        addresses: dict[str, str] = {}
        for host in dict.fromkeys(name for reach in self.hosts for name in reach.denied):
            if "*" in host or is_address(normalize_host(host)):
                continue
            try:
                found = await get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError:
                continue  # it has no address to share with another name
            addresses.update((str(reached_address(str(place[0]))), host) for *_, place in found)
        return addresses

    def connects(self, address: object) -> None:
        """Check the address to which a socket is about to connect.

        Raises:
            RaisedError: States.Permissions; it is not allowed.
        """
        if not self.hosts:
            return
        if type(address) is not tuple:
            raise self.refusal("it connects to a socket of this machine")
        place = str(address[0])
        if not is_address(place):
            raise self.refusal(f"it connects to {place!r}, which is no address")
        allowed = [host for each in self.hosts for host in each.allowed or ()]
        denied = [host for each in self.hosts for host in each.denied]
        host = next(hosts_at(place, [*denied, *self.named_hosts, *allowed]), place)
        self.admit(host, place)

    def looks_up(self, host: object) -> None:
        """Register a host whose name is looked up, if it may be reached."""
        if self.hosts and isinstance(host, str | bytes):
            name = host if isinstance(host, str) else host.decode(errors="replace")
            self.name(name)
            self.named_hosts.append(name)

    # Files

    def path(self, path: str, *, reading: bool) -> None:
        """Check a file that is about to be read or written.

        Raises:
            RaisedError: States.Permissions; it is not allowed.
        """
        if path.lower().startswith("file:"):
            path = urlsplit(path).path
        if "\0" in path or len(path) > MAX_PATH:
            raise self.refusal("a path that no file can have")
        for each in self.files:
            fault = each.fault(path, reading)
            if fault is not None:
                raise self.refusal(f"{path!r} {fault}")

    def refusal(self, reason: str) -> RaisedError:
        """Return the error for a forbidden action of the tool."""
        return RaisedError("States.Permissions", f"tool {self.tool!r}: {reason}")
