"""Names and addresses of hosts: comparison, and the address that is reached."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from asl.expr.text_matching import cached_glob

__all__ = [
    "hosts_at",
    "is_address",
    "is_public",
    "matches_host",
    "naming_patterns",
    "normalize_host",
    "reached_address",
]

EMBEDDING: Final = tuple(
    map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96"))
)
"""IPv6 networks whose last 32 bits are the IPv4 address that is reached, as in NAT64."""
NUMBERS: Final = re.compile(r"[0-9][0-9a-fx.]*")
"""An IPv4 address as the C library reads it: `127.1`, `0x7f000001`, `2130706433`."""


def naming_patterns(patterns: Sequence[str] | None) -> Iterator[str]:
    """Yield the patterns with a letter or digit: `*` alone allows no private address."""
    return (each for each in patterns or () if any(map(str.isalnum, each)))


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to the internet: not private, loopback or multicast."""
    return address.is_global and not address.is_multicast


def matches_host(name: str, patterns: Sequence[str]) -> bool:
    """Return whether one of the patterns matches a normalized host."""
    return any(cached_glob(normalize_host(each))(name) for each in patterns)


def hosts_at(place: str, hosts: list[str]) -> Iterator[str]:
    """Yield the hosts whose names resolve to an address."""
    for host in hosts:
        if "*" in host or is_address(host):
            continue
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            continue
        if any(reached_address(str(each[-1][0])) == reached_address(place) for each in found):
            yield host


def normalize_host(host: str) -> str:
    """Return a host in lower case, without brackets and the last dot, to compare it."""
    host = host.strip("[]").rstrip(".").lower()
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return host
    return str(reached_address(host)) if is_address(host) else host


def is_address(host: str) -> bool:
    """Return whether a host is an IP address rather than a name."""
    try:
        _read(host)
    except ValueError:
        return False
    return True


def _read(host: str) -> IPv4Address | IPv6Address:
    """Return the address in a host.

    Raises:
        ValueError: The host is a name.
    """
    if NUMBERS.fullmatch(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            raise ValueError(f"{host!r} is no address") from None
    return ip_address(host.partition("%")[0])


def reached_address(address: str) -> IPv4Address | IPv6Address:
    """Return the address that a connection reaches: an IPv6 address may embed an IPv4 one."""
    found = _read(address)
    if isinstance(found, IPv6Address):
        if int(found) > 1 and any(found in network for network in EMBEDDING):
            found = IPv4Address(int(found) & 0xFFFFFFFF)
        else:
            found = found.ipv4_mapped or found.sixtofour or found
    if found.is_unspecified:  # leads to this machine
        return IPv4Address("127.0.0.1") if found.version == 4 else IPv6Address("::1")
    return found
