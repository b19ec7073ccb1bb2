"""What handlers make of the answer of a model or tool: an output, and what it evaluates to.

Each gives `{"output", "eval"}`, or fails as its task would.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.contenox.rendering import of_result
from asl.expr.contenox.texts import handed

__all__ = [
    "Handled",
    "command",
    "condition",
    "handled",
    "number",
    "pairs",
    "range_of",
    "route",
    "score",
    "text",
    "tool",
]

Handled = dict[str, Json]

_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_RANGE: Final = re.compile(r"([0-9]{1,300})(?:-([0-9]{1,300}))?")


def handled(output: Json, evaluated: str) -> Handled:
    """Return an output with what it evaluates to."""
    return {"output": output, "eval": evaluated}


def text(answer: Json) -> Handled:
    """prompt_to_string: the trimmed answer is both."""
    found = handed(answer).strip()
    return handled(found, found)


def condition(answer: Json, conditions: Mapping[str, Json]) -> Handled:
    """condition_key: the answer is one of the keys, and the output what stands under it."""
    found = handed(answer).strip()
    if found not in conditions:
        known = ", ".join(conditions) or "the valid conditions: there are none"
        raise StateError("Contenox.Condition", f"{found[:200]!r} is none of {known}")
    return handled(conditions[found], found)


def number(answer: Json) -> Handled:
    """parse_number: a whole number, the first one that the answer holds."""
    found = _first(handed(answer), "a whole number")
    try:
        whole = Decimal(found)
    except InvalidOperation:  # pragma: no cover - the pattern gives numbers only
        raise _no_number(found, "a whole number") from None
    if whole != whole.to_integral_value() or abs(whole) >= 2**63:
        raise _no_number(found, "a whole number")
    return handled(int(whole), str(int(whole)))


def score(answer: Json) -> Handled:
    """parse_score: a number; it evaluates to its text with two decimals."""
    found = float(_first(handed(answer), "a number"))
    if not math.isfinite(found):
        raise _no_number(handed(answer), "a number")
    return handled(found, f"{found:.2f}")


def range_of(answer: Json) -> Handled:
    """parse_range: `a-b` without spaces and quotes; one number is a range of itself."""
    written = re.sub(r"[\s\"']", "", handed(answer))
    match = _RANGE.fullmatch(written)
    if match is None:
        raise _no_number(written, "one number or two")
    found = f"{match[1]}-{match[2] or match[1]}"
    return handled(found, found)


def _first(answer: str, wanted: str) -> str:
    match = _NUMBER.search(answer[:10_000])
    if match is None:
        raise _no_number(answer, wanted)
    return match[0]


def _no_number(answer: str, wanted: str) -> StateError:
    return StateError("Contenox.Number", f"{answer[:200]!r} does not say {wanted}")


def route(given: Json, answer: Json, labels: list[str]) -> Handled:
    """route: the label that the answer is, or the first one in it; its input moves on."""
    if not labels:
        raise StateError("Contenox.Route", "there is no label to choose: no branch is by equals")
    said = handed(answer).strip()
    plain = said.casefold()
    exact = (each for each in labels if each.casefold() == plain)
    within = (each for each in labels if each and each.casefold() in plain)
    return handled(given, next(exact, None) or next(within, said))


def command(given: Json) -> Handled:
    """parse_transition: the word behind `/`; `pass` without one; the input moves on."""
    written = handed(given).strip()
    if not written.startswith("/"):
        return handled(given, "pass" if written else "")
    word = written[1:].split(None, 1)
    if not word or written[1:2].isspace():
        raise StateError("Contenox.Command", "there is no word behind the slash")
    return handled(given, word[0])


def pairs(given: Json) -> Handled:
    """parse_key_value: an object of pairs, parted by `;`, else by lines, else by `,`."""
    written = handed(given).strip()
    mark = next((each for each in (";", "\n") if each in written), ",")
    found: dict[str, Json] = {}
    for part in filter(None, (each.strip() for each in written.split(mark))):
        sign = "=" if "=" in part else ":"
        key, middle, value = part.partition(sign)
        if not middle:
            raise StateError("Contenox.KeyValue", f"{part[:200]!r} is no pair")
        found[key.strip().strip("\"'")] = _meant(value.strip())
    return handled(found, "parsed")


def _meant(written: str) -> Json:
    if written in ("true", "false"):
        return written == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", written):
        return int(written)
    if re.fullmatch(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", written):
        return float(written)
    return written.strip("\"'")


def tool(result: Json, evaluated: str, template: str | None = None) -> Handled:
    """hook and tools: the result; with an output template its text is both."""
    if template is None:
        return handled(result, evaluated)
    shown = of_result(result, template)
    return handled(shown, shown)
