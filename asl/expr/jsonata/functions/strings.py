"""Functions on strings."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from math import ceil, trunc
from urllib.parse import quote, unquote_to_bytes

from asl.expr.jsonata import operators
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.patterns import PatternMatch, QueryPattern
from asl.expr.jsonata.scopes import READ, QueryRun, QueryScope
from asl.expr.jsonata.values import QueryFunction, ResultSequence, finite


def string(scope: QueryScope, value: Value, pretty: Value = UNDEFINED) -> Value:
    """`$string(value, prettify)`."""
    return operators.string(value, scope.run, pretty is True)


def substring(text: str, start: Value = UNDEFINED, length: Value = UNDEFINED) -> Value:
    """`$substring(text, start, length)`; a negative start counts from the end."""
    size = len(text)
    if start is UNDEFINED:
        return text if length is UNDEFINED else ""
    if size + start < 0:
        start = 0
    if length is UNDEFINED:
        return text[_whole(start) :]
    if length <= 0:
        return ""
    end = start + length if start >= 0 else size + start + length
    return text[_whole(start) : _whole(end)]


def _whole(position: int | float) -> int:
    """Return a position within a string, rounded towards zero."""
    return int(max(-(2**31), min(position, 2**31)))


def substring_before(text: str, characters: Value) -> Value:
    """`$substringBefore(text, characters)`; the whole text if they are absent."""
    return text if characters is UNDEFINED else text.partition(characters)[0] if characters else ""


def substring_after(text: str, characters: Value) -> Value:
    """`$substringAfter(text, characters)`; the whole text if they are absent."""
    if characters is UNDEFINED or characters not in text:
        return text
    return text[text.index(characters) + len(characters) :]


PART = 64
"""Bytes of a part of a string, besides its characters."""


def trim(scope: QueryScope, text: str) -> Value:
    """`$trim(text)`: remove outer blanks, and reduce inner ones to single spaces."""
    scope.run.spend(len(text) >> 2)
    return re.sub("[ \t\n\r]+", " ", text).strip(" ")


def pad(scope: QueryScope, text: str, width: Value, characters: Value = UNDEFINED) -> Value:
    """`$pad(text, width, characters)`: on the right, or on the left for a negative width.

    AWS truncates a fractional width (measured by users).
    """
    if width is UNDEFINED:
        return text
    width = trunc(finite(width)) if scope.run.bounds.java else finite(width)
    missing = abs(width) - len(text)
    if missing <= 0:
        return text
    size = ceil(missing) if missing < 2**53 else 2**53
    scope.run.write(size)
    filler = " " if characters is UNDEFINED or not characters else characters
    padding = (filler * (size // len(filler) + 1))[: int(missing) if len(filler) > 1 else size]
    return text + padding if width > 0 else padding + text


def contains(scope: QueryScope, text: str, token: Value) -> Value:
    """`$contains(text, string or pattern)`."""
    if type(token) is str:
        return token in text
    return next(_matches(scope, token, text, 2), None) is not None


def match(scope: QueryScope, text: str, pattern: Value, limit: Value = UNDEFINED) -> Value:
    """`$match(text, pattern, limit)`: an object for every match."""
    most = _limit(scope, limit, "D3040")
    found = ResultSequence()
    if most:
        for each in _first(most, _matches(scope, pattern, text, 2)):
            found.append({"match": each.text, "index": each.start, "groups": list(each.groups)})
    return found


def split(scope: QueryScope, text: str, separator: Value, limit: Value = UNDEFINED) -> Value:
    """`$split(text, string or pattern, limit)`."""
    most = _limit(scope, limit, "D3020")
    if most == 0:
        return []
    if type(separator) is str:
        count = text.count(separator) + 1 if separator else len(text)
        scope.run.spend(count)
        scope.run.spend_bytes(PART * count + len(text))
        parts = text.split(separator) if separator else list(text)
        return parts if limit is UNDEFINED else parts[: int(limit)]
    parts, start = [], 0
    scope.run.spend_bytes(len(text))
    for each in _first(most, _matches(scope, separator, text, 2)):
        parts.append(text[start : each.start])
        start = each.end
    return parts if len(parts) >= most else [*parts, text[start:]]


def replace(
    scope: QueryScope, text: str, pattern: Value, replacement: Value, limit: Value = UNDEFINED
) -> Value:
    """`$replace(text, string or pattern, string or function, limit)`.

    Raises:
        QueryFault: D3010 for an empty pattern, D3011 for a negative limit, D3012 for a replacement
            that is no string, T0410 for a wrong argument.
    """
    if pattern == "":
        raise fault("D3010", value=pattern, index=2)
    most = _limit(scope, limit, "D3011")
    if most == 0:
        return text
    if type(pattern) is str:
        if type(replacement) is not str:
            raise fault("T0410", value=replacement, index=3)
        count = min(text.count(pattern), most)
        scope.run.write(len(text) + int(count) * max(0, len(replacement) - len(pattern)))
        return text.replace(pattern, replacement, int(count))
    substitute = _substitute(scope, replacement)
    parts: list[str] = []
    position, size = 0, len(text)
    for each in _first(most, _matches(scope, pattern, text, 2)):
        new = substitute(each)
        if type(new) is not str:
            raise fault("D3012", value=new)
        parts += [text[position : each.start], new]
        position = each.start + len(each.text)
        size += len(new)
        scope.run.spend(4 + (len(new) >> READ))
        if size > scope.run.bounds.characters:
            break
    scope.run.write(size)
    return "".join([*parts, text[position:]])


INFINITE = float("inf")


def _limit(scope: QueryScope, limit: Value, code: str) -> int | float:
    """Return the largest number of matches: unlimited if undefined.

    AWS truncates a fractional limit (measured by users).
    """
    if limit is UNDEFINED:
        return INFINITE
    if limit < 0:
        raise fault(code, value=limit)
    whole: int = trunc(finite(limit)) if scope.run.bounds.java else ceil(finite(limit))
    return whole


def _first(most: int | float, matches: Iterator[PatternMatch]) -> Iterator[PatternMatch]:
    """Yield at most this many matches; the next one is searched as well, and may raise."""
    for count, each in enumerate(matches):
        if count >= most:
            return
        yield each


def _matches(scope: QueryScope, matcher: Value, text: str, place: int) -> Iterator[PatternMatch]:
    """Yield the matches of a pattern, or of a function with the same protocol."""
    if isinstance(matcher, QueryPattern):
        yield from matcher.matches(text, scope.run)
        return
    if not isinstance(matcher, QueryFunction):
        raise fault("T0410", value=matcher, index=place)
    found = matcher.apply([text], None, scope)
    while found is not UNDEFINED:
        if type(found) is not dict or not (
            isinstance(found.get("groups"), list) or isinstance(found.get("next"), QueryFunction)
        ):
            raise fault("T1010")
        try:
            each = PatternMatch(
                found["match"], found["start"], found["end"], tuple(found["groups"])
            )
        except (KeyError, TypeError):
            raise fault("T1010") from None
        if type(each.text) is not str or type(each.start) is not int or type(each.end) is not int:
            raise fault("T1010")
        yield each
        scope.run.spend(8)
        following = found.get("next", UNDEFINED)
        if not isinstance(following, QueryFunction):
            raise fault("T1010")
        found = following.apply([], None, scope)


def _substitute(scope: QueryScope, replacement: Value) -> Callable[[PatternMatch], Value]:
    """Return the replacement for a match: `$1` in a string is a group, `$0` the match."""
    if isinstance(replacement, QueryFunction):

        def call(match: PatternMatch) -> Value:
            groups = list(match.groups)
            found = {"match": match.text, "start": match.start, "end": match.end, "groups": groups}
            return replacement.apply([found], None, scope)

        return call
    if type(replacement) is not str:
        raise fault("T0410", value=replacement, index=3)
    return lambda match: "".join(_expanded(replacement, match, scope.run))


def _expanded(template: str, match: PatternMatch, run: QueryRun) -> Iterator[str]:
    position = 0
    groups = match.groups
    while (dollar := template.find("$", position)) != -1:
        run.spend(3)
        yield template[position:dollar]
        position = dollar + 1
        following = template[position : position + 1]
        if following == "$":
            yield "$"
            position += 1
        elif following == "0":
            yield match.text
            position += 1
        else:
            width = len(str(len(groups))) if groups else 1
            digits = re.match("[0-9]*", template[position : position + width])
            number = digits[0] if digits is not None else ""
            if width > 1 and number and int(number) > len(groups):
                number = number[:-1]
            if number:
                index = int(number)
                if 0 < index <= len(groups) and groups[index - 1] is not UNDEFINED:
                    yield groups[index - 1]
                position += len(str(index))
            else:
                yield "$"
    yield template[position:]


def join(scope: QueryScope, texts: list[str], separator: Value = UNDEFINED) -> Value:
    """`$join(strings, separator)`."""
    between = "" if separator is UNDEFINED else separator
    scope.run.write(sum(map(len, texts)) + len(between) * max(0, len(texts) - 1))
    return between.join(texts)


def base64encode(scope: QueryScope, text: str) -> Value:
    """`$base64encode(text)`: of the low bytes of UTF-16 code units; on AWS of UTF-8."""
    scope.run.write(2 * len(text))
    if scope.run.bounds.java:
        return b64encode(text.encode("utf-8", "replace")).decode()
    return b64encode(text.encode("utf-16-le", "surrogatepass")[::2]).decode()


def base64decode(scope: QueryScope, text: str) -> Value:
    """`$base64decode(text)`: every byte is a character, invalid characters are skipped.

    On AWS the bytes are UTF-8, and invalid characters an internal error (AWS, measured).

    Raises:
        QueryFault: D1015 for invalid characters on AWS.
    """
    java = scope.run.bounds.java
    scope.run.spend(len(text) >> 3)
    if java and re.search("[^A-Za-z0-9+/=]", text):
        raise fault("D1015")
    cleaned = re.sub("[^A-Za-z0-9+/]", "", text.partition("=")[0].translate(_URL_SAFE))
    if len(cleaned) % 4 == 1:
        cleaned = cleaned[:-1]
    try:
        content = b64decode(cleaned + "=" * (-len(cleaned) % 4))
    except NotBase64:
        return ""
    return content.decode("utf-8", "replace") if java else content.decode("latin-1")


_URL_SAFE = str.maketrans("-_", "+/")
_BROKEN = re.compile("%(?![0-9A-Fa-f]{2})")
_COMPONENT = "-_.!~*'()"
_WHOLE = _COMPONENT + ";/?:@&=+$,#"


def encoder(name: str, safe: str) -> Callable[[QueryScope, str], Value]:
    """Return `$encodeUrl` or `$encodeUrlComponent`; raises D3140 for a lone surrogate."""

    def encode(scope: QueryScope, text: str) -> Value:
        scope.run.spend(len(text) >> 2)
        scope.run.spend_bytes(3 * len(text))
        try:
            return quote(text, safe=safe)
        except UnicodeEncodeError:
            raise fault("D3140", value=text, name=name) from None

    return encode


def decode_url_component(scope: QueryScope, text: str) -> Value:
    """`$decodeUrlComponent(text)`; on AWS + is a blank and all bytes are valid (measured)."""
    if not scope.run.bounds.java or _BROKEN.search(text):
        return _decoded_component(scope, text)
    scope.run.spend(text.count("%"))
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def decoder(name: str, kept: str) -> Callable[[QueryScope, str], Value]:
    """Return `$decodeUrl` or `$decodeUrlComponent`; raises D3140 for an invalid URL."""
    reserved = re.compile("%(" + "|".join(f"{ord(each):02x}" for each in kept) + ")", re.I)

    def decode(scope: QueryScope, text: str) -> Value:
        scope.run.spend(2 * text.count("%"))
        if _BROKEN.search(text):
            raise fault("D3140", value=text, name=name)
        kept_text = reserved.sub(r"%25\1", text) if kept else text
        try:
            return unquote_to_bytes(kept_text).decode()
        except UnicodeError:
            raise fault("D3140", value=text, name=name) from None

    return decode


encode_url_component = encoder("encodeUrlComponent", _COMPONENT)
encode_url = encoder("encodeUrl", _WHOLE)
_decoded_component = decoder("decodeUrlComponent", "")
decode_url = decoder("decodeUrl", ";/?:@&=+$,#")
