"""Trusted proxies: which requests they send, from which address and by which scheme."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.requests import HTTPConnection

from asl.core.errors import AslError

__all__ = ["TrustedProxies"]


class TrustedProxies:
    """Addresses whose headers about the original request are believed.

    Args:
        networks: Addresses or networks.

    Raises:
        AslError: One of them is no address and no network.
    """

    def __init__(self, networks: Sequence[str] = ()) -> None:
        try:
            self._networks = [ipaddress.ip_network(each, strict=False) for each in networks]
        except ValueError as error:
            raise AslError(f"a proxy is an address or a network: {error}") from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def sends(self, request: HTTPConnection) -> bool:
        """Return whether a proxy has sent a request."""
        return request.client is not None and self._has(request.client.host)

    def address_of(self, request: HTTPConnection) -> str:
        """Return the address of the client: the last one in X-Forwarded-For that is no proxy."""
        address = "" if request.client is None else request.client.host
        if self.sends(request):
            listed = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
            for each in reversed(listed):
                if each.strip():
                    address = each.strip()[:100]
                    if not self._has(address):
                        break
        return address

    def is_secure(self, request: HTTPConnection) -> bool:
        """Return whether the client uses HTTPS, as far as this server or a proxy can see."""
        return request.url.scheme in ("https", "wss") or self.sends(request)

    def _has(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:  # a socket of the file system
            return False
        return any(found in network for network in self._networks)
