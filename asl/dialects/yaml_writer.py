"""Write JSON values as YAML that people like to read, and that YAML 1.1 and 1.2 read alike."""

import json
import re
from collections.abc import Iterator
from typing import Final

from asl.core.printable import is_printable
from asl.core.values import Json

__all__ = ["to_yaml"]

_PLAIN: Final = re.compile(r"[A-Za-z_/$][A-Za-z0-9_./$()@+-]*(?: [A-Za-z0-9_./$()@+=<>-]+)*")
_WORDS: Final = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n", "~"))
SHORT: Final = 80
LONGEST: Final = 1024
"""Characters of a key that YAML reads without a mark before it (YAML 1.2, 7.4.2)."""


def to_yaml(value: Json) -> str:
    """Return a value as YAML; texts of several lines are blocks, small containers are inline."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Json) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            name = _scalar(key)
            if len(name) > LONGEST:
                yield f"? {name}"
                yield from _member(":", each)
            else:
                yield from _member(f"{name}:", each)
    elif isinstance(value, list) and value:
        for each in value:
            yield from _item(each)
    else:
        yield _inline(value)


def _member(head: str, value: Json) -> Iterator[str]:
    if isinstance(value, str) and (block := _block(value)) is not None:
        mark, *lines = block
        yield f"{head} {mark}"
        yield from (f"  {line}" if line else "" for line in lines)
    elif not isinstance(value, dict | list) or not value or _small(value):
        yield f"{head} {_inline(value)}"
    else:
        yield head
        yield from (f"  {line}" if line else "" for line in _lines(value))


def _item(value: Json) -> Iterator[str]:
    if isinstance(value, str) and _block(value) is not None:
        yield from _member("-", value)
        return
    first, *rest = [_inline(value)] if _small(value) else list(_lines(value))
    yield f"- {first}"
    yield from (f"  {line}" if line else "" for line in rest)


def _small(value: Json) -> bool:
    if not isinstance(value, dict | list):
        return True
    parts = value.values() if isinstance(value, dict) else value
    if any(isinstance(each, dict | list) and each for each in parts):
        return False
    return len(value) <= 4 and "\n" not in str(value) and len(_inline(value)) <= SHORT - 20


def _inline(value: Json) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_scalar(key)}: {_inline(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return _scalar(value)


def _scalar(value: Json) -> str:
    if not isinstance(value, str):
        text = json.dumps(value)
        # YAML 1.1 only knows exponents behind a point and with a sign.
        return re.sub(r"^(-?\d+)e", r"\1.0e", text) if isinstance(value, float) else text
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    shown = json.dumps(value, ensure_ascii=not is_printable(value))
    return f"'{value}'" if shown == f'"{value}"' and "'" not in value else shown


def _block(text: str) -> list[str] | None:
    """Return the mark and the lines of a text that is written as a block, else None."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    if "\n" not in text or not body:
        return None
    lines = body.split("\n")
    if lines[0][:1] in ("", " ") or not all(map(is_printable, lines)):
        return None
    if any(line and not line.strip() for line in lines):
        return None
    return ["|-" if ends == 0 else "|" if ends == 1 else "|+", *lines, *[""] * (ends - 1)]
