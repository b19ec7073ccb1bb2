"""The functions of Terraform that take networks apart: `cidrsubnet` and its like."""

from ipaddress import ip_interface, ip_network

from asl.core.values import Json

__all__ = ["host", "mask", "subnet", "subnets"]


def _network(prefix: str) -> tuple[int, int, int]:
    """The first address of a prefix, how many bits are given, and how many there are."""
    if "/" not in prefix:
        raise ValueError(f"{prefix!r} has no length")
    network = ip_interface(prefix).network
    return int(network.network_address), network.prefixlen, network.max_prefixlen


def _written(address: int, length: int, bits: int) -> str:
    size = bits // 8
    return str(ip_network((address.to_bytes(size, "big"), length)))


def host(prefix: str, number: int) -> str:
    """`cidrhost`: the address of a host, counted from the end for a negative number."""
    first, length, bits = _network(prefix)
    size = 1 << (bits - length)
    if not -size <= number < size:
        raise ValueError(f"{prefix} has no host {number}")
    return _written(first + number % size, bits, bits).partition("/")[0]


def mask(prefix: str) -> str:
    """`cidrnetmask`: the mask of an IPv4 network."""
    network = ip_interface(prefix).network
    if network.version != 4:
        raise ValueError("only IPv4 has masks")
    return str(network.netmask)


def subnet(prefix: str, more: int, number: int) -> str:
    """`cidrsubnet`: one of the networks whose prefixes have so many bits more."""
    first, length, bits = _network(prefix)
    longer = length + more
    if more < 0 or longer > bits or not 0 <= number < 1 << more:
        raise ValueError(f"{prefix} has no network {number} with {more} bits more")
    return _written(first + (number << (bits - longer)), longer, bits)


def subnets(prefix: str, *sizes: int) -> list[Json]:
    """`cidrsubnets`: networks one behind the other, each with its own number of bits more."""
    first, length, bits = _network(prefix)
    end = first + (1 << (bits - length))
    found: list[Json] = []
    at = first
    for more in sizes:
        longer = length + more
        if more < 1 or longer > bits:
            raise ValueError(f"{prefix} has no networks with {more} bits more")
        size = 1 << (bits - longer)
        at = -(-at // size) * size
        if at + size > end:
            raise ValueError(f"{prefix} has no room for all of them")
        found.append(_written(at, longer, bits))
        at += size
    return found
