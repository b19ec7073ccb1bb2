"""Terraform functions of their arguments alone.

Arguments and results are JSON values; ValueError and TypeError report invalid arguments.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_interface, ip_network
from itertools import chain, product
from math import ceil, floor, prod
from posixpath import basename, dirname, normpath
from typing import Final
from urllib.parse import quote_plus

from orjson import loads

from asl.core.values import Json, compact
from asl.sources.terraform.formatting import format_text, regex, regex_all, replace, text_of

__all__ = [
    "FUNCTIONS",
    "METERED",
    "PAIRING",
    "cidr_host",
    "cidr_netmask",
    "cidr_subnet",
    "cidr_subnets",
    "encode_yaml",
    "text_of",
]

_BLOCK = re.compile(r"\S(?:(?s:.*)\S)?\n?")
"""A text that is unchanged as a YAML block scalar."""


def encode_yaml(value: Json) -> str:
    """`yamlencode`: block style, sorted keys, quoted strings."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Json) -> Iterator[str]:
    if type(value) is dict and value:
        for key in sorted(value):
            yield from _member(f"{compact(key)}:", value[key])
    elif type(value) is list and value:
        for item in value:
            first, *others = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" if line else line for line in others)
    elif type(value) is str and "\n" in value and _BLOCK.fullmatch(value):
        yield "|" if value.endswith("\n") else "|-"
        yield from (f"  {line}" if line else line for line in value.removesuffix("\n").split("\n"))
    else:
        yield compact(value)


def _member(key: str, value: Json) -> Iterator[str]:
    lines = list(_lines(value))
    if type(value) in (dict, list) and value:
        yield key
        inner = "  " if type(value) is dict else ""  # items of a list align with its key
        yield from (f"{inner}{line}" if line else line for line in lines)
    else:
        yield f"{key} {lines[0]}"
        yield from lines[1:]


MAX_ITEMS: Final = 10_000
"""Maximum number of items of a result."""


def _number(value: int | float | str) -> int | float:
    if isinstance(value, int | float):
        return value
    number = float(text_of(value))
    return int(number) if number.is_integer() else number


def _bool(value: Json) -> bool:
    if text_of(value) not in ("true", "false"):
        raise ValueError("true or false is expected")
    return text_of(value) == "true"


def _range(*limits: int) -> list[int]:
    """Return numbers up to a limit, or down to a lower one."""
    start, stop = limits[:2] if len(limits) > 1 else (0, *limits)
    numbers = range(start, stop, *(limits[2:] or (1 if start <= stop else -1,)))
    if len(numbers) > MAX_ITEMS:
        raise ValueError(f"more than {MAX_ITEMS} numbers")
    return list(numbers)


def _lookup(values: dict[str, Json], key: str, *default: Json) -> Json:
    return values[key] if key in values or not default else default[0]


def _flatten(values: list[Json]) -> list[Json]:
    return [
        inner for item in values for inner in (_flatten(item) if type(item) is list else [item])
    ]


def _coalesce(*values: Json) -> Json:
    return next(value for value in values if value not in (None, ""))


def _distinct(values: list[Json]) -> list[Json]:
    return list({compact(value): value for value in reversed(values)}.values())[::-1]


def _substr(text: str, start: int, length: int) -> str:
    start = max(0, start + len(text)) if start < 0 else start
    return text[start:] if length < 0 else text[start : start + length]


def _identity(value: Json) -> Json:
    return value


def _set(values: list[Json]) -> list[Json]:
    """Return the values of a set: each once, in order."""
    return sorted(_distinct(values), key=text_of)


def _chunks(values: list[Json], size: int) -> list[Json]:
    if size == 0:
        return [values]
    return [values[start : start + size] for start in range(0, len(values), size)]


def _format_list(template: str, *lists: Json) -> list[Json]:
    """`formatlist`: one text for each index of the lists; scalars are repeated."""
    length = max((len(each) for each in lists if type(each) is list), default=1)
    each = [given if type(given) is list else [given] * length for given in lists]
    return [format_text(template, *values) for values in zip(*each, strict=True)]


def _digest(algorithm: str) -> Callable[[str], str]:
    def digest(text: str) -> str:
        import hashlib

        return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()

    return digest


def _short_digest(algorithm: str) -> Callable[[str], str]:
    def digest(text: str) -> str:
        import hashlib

        found = hashlib.new(algorithm, text.encode(), usedforsecurity=False).digest()
        return b64encode(found).decode()

    return digest


def _title(text: str) -> str:
    return re.sub(r"\b[^\W\d_]", lambda first: first[0].upper(), text)


def _uuid_v5(namespace: str, name: str) -> str:
    """`uuidv5`: the id of a name in a namespace."""
    import uuid

    known = {"dns", "url", "oid", "x500"}
    space = getattr(uuid, f"NAMESPACE_{namespace.upper()}") if namespace in known else None
    return str(uuid.uuid5(space or uuid.UUID(namespace), name))


def _indent(spaces: int, text: str) -> str:
    if not 0 <= spaces <= 100:
        raise ValueError("0 to 100 spaces are expected")
    return text.replace("\n", "\n" + " " * spaces)


def _power(base: float, exponent: float) -> float:
    number: float = float(base) ** float(exponent)
    return int(number) if number.is_integer() else number


def _set_product(*sets: list[Json]) -> list[Json]:
    if prod(map(len, sets)) > MAX_ITEMS:
        raise ValueError(f"more than {MAX_ITEMS} combinations")
    return [list(each) for each in product(*sets)]


def _decode_csv(text: str) -> list[Json]:
    import csv

    return list(csv.DictReader(text.splitlines()))


def _transpose(lists: dict[str, list[str]]) -> dict[str, Json]:
    names = sorted({name for each in lists.values() for name in each})
    return {name: sorted(key for key in lists if name in lists[key]) for name in names}


def _network(prefix: str) -> tuple[int, int, int]:
    """Return the first address of a prefix, its length, and the length of an address."""
    if "/" not in prefix:
        raise ValueError(f"{prefix!r} has no length")
    network = ip_interface(prefix).network
    return int(network.network_address), network.prefixlen, network.max_prefixlen


def _network_text(address: int, length: int, bits: int) -> str:
    size = bits // 8
    return str(ip_network((address.to_bytes(size, "big"), length)))


def cidr_host(prefix: str, number: int) -> str:
    """`cidrhost`: the address of a host, counted from the end for a negative number.

    Raises:
        ValueError: The prefix is invalid or has no such host.
    """
    first, length, bits = _network(prefix)
    size = 1 << (bits - length)
    if not -size <= number < size:
        raise ValueError(f"{prefix} has no host {number}")
    return _network_text(first + number % size, bits, bits).partition("/")[0]


def cidr_netmask(prefix: str) -> str:
    """`cidrnetmask`: the mask of an IPv4 network.

    Raises:
        ValueError: The prefix is invalid or not IPv4.
    """
    network = ip_interface(prefix).network
    if network.version != 4:
        raise ValueError("only IPv4 has masks")
    return str(network.netmask)


def cidr_subnet(prefix: str, more: int, number: int) -> str:
    """`cidrsubnet`: one of the networks with a prefix longer by *more* bits.

    Raises:
        ValueError: The prefix is invalid or has no such network.
    """
    first, length, bits = _network(prefix)
    longer = length + more
    if more < 0 or longer > bits or not 0 <= number < 1 << more:
        raise ValueError(f"{prefix} has no network {number} with {more} bits more")
    return _network_text(first + (number << (bits - longer)), longer, bits)


def cidr_subnets(prefix: str, *sizes: int) -> list[Json]:
    """`cidrsubnets`: consecutive networks, each with its own number of additional bits.

    Raises:
        ValueError: The prefix is invalid or too short for the networks.
    """
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
        found.append(_network_text(at, longer, bits))
        at += size
    return found


FUNCTIONS: Final[Mapping[str, Callable[..., Json]]] = {
    "abs": abs,
    "abspath": normpath,
    "alltrue": lambda values: all(map(_bool, values)),
    "anytrue": lambda values: any(map(_bool, values)),
    "base64decode": lambda text: b64decode(text, validate=True).decode(),
    "base64encode": lambda text: b64encode(text.encode()).decode(),
    "base64sha256": _short_digest("sha256"),
    "base64sha512": _short_digest("sha512"),
    "basename": basename,
    "ceil": ceil,
    "chunklist": _chunks,
    "chomp": lambda text: text.rstrip("\r\n"),
    "cidrhost": cidr_host,
    "cidrnetmask": cidr_netmask,
    "cidrsubnet": cidr_subnet,
    "cidrsubnets": cidr_subnets,
    "coalesce": _coalesce,
    "coalescelist": lambda *lists: next(each for each in lists if each),
    "compact": lambda values: [value for value in values if value not in (None, "")],
    "contains": lambda values, value: value in values,
    "csvdecode": _decode_csv,
    "dirname": dirname,
    "distinct": _distinct,
    "element": lambda values, index: values[index % len(values)],
    "endswith": str.endswith,
    "flatten": _flatten,
    "floor": floor,
    "format": format_text,
    "formatlist": _format_list,
    "indent": _indent,
    "index": lambda values, value: values.index(value),
    "join": lambda between, *lists: between.join(map(text_of, chain(*lists))),
    "jsondecode": loads,
    "jsonencode": compact,
    "keys": sorted,
    "length": len,
    "lookup": _lookup,
    "lower": str.lower,
    "matchkeys": lambda values, keys, wanted: [
        value for value, key in zip(values, keys, strict=True) if key in wanted
    ],
    "max": max,
    "md5": _digest("md5"),
    "min": min,
    "nonsensitive": _identity,
    "one": lambda values: next(iter(values), None),
    "parseint": int,
    "pow": _power,
    "range": _range,
    "reverse": lambda values: values[::-1],
    "sensitive": _identity,
    "setintersection": lambda first, *others: _set(
        [value for value in first if all(value in each for each in others)]
    ),
    "setproduct": _set_product,
    "setsubtract": lambda values, others: _set([each for each in values if each not in others]),
    "setunion": lambda *sets: _set([*chain(*sets)]),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "sha512": _digest("sha512"),
    "signum": lambda number: (number > 0) - (number < 0),
    "slice": lambda values, start, end: values[start:end],
    "sort": sorted,
    "split": lambda between, text: text.split(between) if between else list(text),
    "startswith": str.startswith,
    "strrev": lambda text: text[::-1],
    "strcontains": lambda text, part: part in text,
    "substr": _substr,
    "sum": sum,
    "title": _title,
    "tobool": _bool,
    "tolist": _identity,
    "tomap": _identity,
    "tonumber": _number,
    "toset": _set,
    "tostring": text_of,
    "transpose": _transpose,
    "trim": str.strip,
    "trimprefix": str.removeprefix,
    "trimspace": str.strip,
    "trimsuffix": str.removesuffix,
    "upper": str.upper,
    "urlencode": lambda text: quote_plus(text),
    "uuidv5": _uuid_v5,
    "values": lambda values: [values[key] for key in sorted(values)],
    "yamlencode": encode_yaml,
    "zipmap": lambda keys, values: dict(zip(keys, values, strict=True)),
}

METERED: Final[Mapping[str, Callable[..., Json]]] = {
    "regex": regex,
    "regexall": regex_all,
    "replace": replace,
}
"""Functions that count their work; they take a WorkMeter first."""

PAIRING: Final = frozenset(("matchkeys", "setintersection", "setsubtract", "transpose"))
"""Functions that compare all pairs of items."""
