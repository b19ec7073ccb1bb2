"""Intrinsic functions on strings: formatting, splitting, encoding, hashing (Specification 5.2)."""

import re
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from asl.core.java import java_text, json_text
from asl.core.lazy import lazy_pattern
from asl.core.profile import Profile
from asl.core.values import Json, compact
from asl.expr.frame import ExpressionFrame
from asl.expr.intrinsics.arguments import SMALL, encodable, failure, number, string, text_of

FORMAT = "States.Format"
ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
"""Hash algorithms: canonical names to Python's."""


class FormatPlaceholder(NamedTuple):
    """`{}`, or `{:.Nf}` with `decimals`, which AWS does not have."""

    decimals: int | None = None


_FOREIGN = "[^A-Za-z0-9+/]"
_URL_SAFE = str.maketrans("-_", "+/")

Template: TypeAlias = tuple[str | FormatPlaceholder, ...]

_TEMPLATE = lazy_pattern(
    r"""(?P<text>[^\\{]++)
    | \\(?P<escaped>['\\{}])
    | (?P<place>\{(?::\.(?P<decimals>[0-9]{1,2})f)?\})
    | (?P<literal>.)""",
    re.VERBOSE | re.DOTALL,
)


def template(text: str) -> Template:
    """Split a format template, escapes included, at its placeholders.

    A `{` without a placeholder and a backslash without an escape are literal.
    """
    parts: list[str | FormatPlaceholder] = []
    literal: list[str] = []
    for found in _TEMPLATE.finditer(text):
        if found["place"] is None:
            literal.append(found["text"] or found["escaped"] or found["literal"])
            continue
        parts.append("".join(literal))
        literal.clear()
        decimals = found["decimals"]
        parts.append(FormatPlaceholder(None if decimals is None else int(decimals)))
    parts.append("".join(literal))
    return tuple(part for part in parts if part != "")


def stray_brace(text: str, profile: Profile) -> int | None:
    """Return the offset of the first `{` in a template that is an error on AWS, None without one.

    That is one without a placeholder; in the `aws` profile `{:.Nf}` is no placeholder.
    """
    for found in _TEMPLATE.finditer(text):
        if found["literal"] == "{" or (profile.aws and found["decimals"] is not None):
            return found.start()
    return None


def unmatched_brace(text: str) -> str | None:
    """Return AWS's message for a brace that is neither a placeholder nor escaped, else None."""
    for found in _TEMPLATE.finditer(text):
        if found["literal"] == "{" or found["decimals"] is not None:
            return "matching '}' not found for '{'."
        if found["literal"] is None and "}" in (found["text"] or ""):
            return "matching '{' not found for '}'."
    return None


def format_(profile: Profile, text: Json, *values: Json) -> Json:
    """`States.Format(template, a, ...)` with a template known only at run time.

    Raises:
        StateError: States.IntrinsicFailure for an invalid template or a wrong number of arguments.
    """
    text = string(FORMAT, 1, text)
    if profile.aws and (words := unmatched_brace(text)) is not None:
        raise failure(FORMAT, words, f"Invalid template in {FORMAT}: {words}")
    return fill(profile, template(text), *values)


def fill(profile: Profile, parts: Template, *values: Json) -> str:
    """Insert the values, in order, into the placeholders of a template.

    Raises:
        StateError: States.IntrinsicFailure for another number of values.
    """
    places = sum(type(part) is not str for part in parts)
    if places != len(values):
        raise failure(FORMAT, f"the template has {places} places for {len(values)} arguments")
    following = enumerate(values, 2)
    remaining = profile.max_payload
    pieces = []
    for part in parts:
        piece = part if type(part) is str else _printed(part, *next(following), profile, remaining)
        remaining -= len(piece)
        pieces.append(piece)
    return "".join(pieces)


def _printed(
    place: str | FormatPlaceholder, position: int, value: Json, profile: Profile, limit: int
) -> str:
    if isinstance(place, FormatPlaceholder) and place.decimals is not None:
        exact = Decimal(repr(number(FORMAT, position, value)))
        return f"{exact:.{place.decimals}f}"  # Decimal rounds halves to even
    return text_of(FORMAT, value, limit, java_text if profile.java_format else compact)


def split(frame: ExpressionFrame, text: Json, delimiters: Json) -> Json:
    """`States.StringSplit(s, delimiters)`: the non-empty pieces between the listed characters."""
    text = string("States.StringSplit", 1, text)
    delimiters = string("States.StringSplit", 2, delimiters)
    if not delimiters:
        return [text] if text else []
    if len(text) > SMALL:
        pieces = sum(map(text.count, set(delimiters)))
        frame.work.spend(len(text) * len(set(delimiters)) // 4096 + pieces // 2)
    if len(delimiters) > 1:
        text = text.translate(dict.fromkeys(map(ord, delimiters), delimiters[0]))
    return [piece for piece in text.split(delimiters[0]) if piece]


def base64_encode(text: Json) -> Json:
    """`States.Base64Encode(s)` of the string's UTF-8 bytes."""
    name = "States.Base64Encode"
    return b2a_base64(encodable(name, string(name, 1, text)).encode(), newline=False).decode()


def base64_decode(profile: Profile, text: Json) -> Json:
    """`States.Base64Decode(s)` to the encoded UTF-8 text.

    AWS ignores invalid characters and missing padding.

    Raises:
        StateError: States.IntrinsicFailure for a text that is no Base64 or no UTF-8.
    """
    name = "States.Base64Decode"
    text = encodable(name, string(name, 1, text))
    if profile.aws:
        return _readable(text).decode(errors="replace")
    try:
        return a2b_base64(text, strict_mode=True).decode()
    except UnicodeDecodeError:
        raise failure(name, "the decoded bytes are not UTF-8 text") from None
    except (NotBase64, ValueError) as error:  # ValueError: not ASCII
        raise failure(name, f"not Base64: {error}") from None


def _readable(text: str) -> bytes:
    """Return the valid characters up to the padding, without a lone last one."""
    digits = re.sub(_FOREIGN, "", text.partition("=")[0].translate(_URL_SAFE))
    whole = digits[:-1] if len(digits) % 4 == 1 else digits
    return a2b_base64(whole + "=" * (-len(whole) % 4))


def canonical_algorithm(name: str) -> str | None:
    """Return the canonical name of a spelling such as `sha256`; None for an unknown one."""
    python = name.lower().replace("-", "").replace("_", "")
    return next((known for known, wanted in ALGORITHMS.items() if wanted == python), None)


def hash_(profile: Profile, frame: ExpressionFrame, data: Json, algorithm: Json) -> Json:
    """`States.Hash(data, algorithm)` in lower-case hexadecimal; non-strings as compact JSON.

    Raises:
        StateError: States.IntrinsicFailure for an unknown algorithm.
    """
    import hashlib

    name = "States.Hash"
    wanted = string(name, 2, algorithm)
    known = wanted if profile.aws else canonical_algorithm(wanted)
    if known not in ALGORITHMS:
        raise failure(name, f"{wanted!r} is none of {', '.join(ALGORITHMS)}")
    write = json_text if profile.java_format else compact
    text = encodable(name, text_of(name, data, profile.max_payload, write, frame.work))
    return hashlib.new(ALGORITHMS[known], text.encode(), usedforsecurity=False).hexdigest()


def uuid(frame: ExpressionFrame) -> Json:
    """`States.UUID()`: a random (version 4) UUID in lower case."""
    from uuid import UUID

    return str(UUID(int=frame.entropy(), version=4))
