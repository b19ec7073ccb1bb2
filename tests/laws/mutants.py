"""Documents with a fault put into them: another value, key or text somewhere."""

import copy
import re
from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

__all__ = ["TEXTS", "VALUES", "mutant"]

Place: TypeAlias = tuple[Any, ...]

_LONG = "9" * 5000
TEXTS = (
    *(_LONG, f"-{_LONG}", "²", "٣", "1e999", "-0", "NaN", "", " ", "\x00", "\u2028", "\ufeff"),
    *("{{", "}}", "{%", "%}", "{% $ %}", "{{a." + _LONG + "}}", "${x}", "${", "{", "[[", "*", "?"),
    *("$", "$$", "$.", "$..", "$[", "$[0", f"$[{'9' * 30}]", f"$[-{'9' * 30}]", "$." + "a." * 300),
    *("States.", "States.Format('", "States.Array(" * 50 + ")" * 50, "(" * 500, "[" * 500),
    *("\\", "'", '"', "0x" + "f" * 5000, "1" * 400 + "s", f"PT{_LONG}S", f"{_LONG}GB", "P1Y"),
    *("2024-02-30T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "0000-00-00T00:00:00Z"),
    *("é", "👩‍👩‍👧", "\t\n", "__class__", "a.__class__", "None", "null", "true", "a" * 10_000),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.5, 10**30, -(10**30), 1e308, 5e-324, 2**31, 2**63),
    *("x", [], {}, [[]], [None], {"": None}, {"a.$": "$.b"}, [[[[[[[[]]]]]]]]),
)
_DIGITS = (_LONG, "9" * 25, "0" * 30, "٣", "²")


def mutant(value: Any, random: Random) -> Any:
    """Return a copy of a value with one to three faults in it."""
    changed = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = [*_places(changed)]
        if places:
            _change(changed, random.choice(places), random)
    return changed


def _places(value: Any, way: Place = ()) -> Iterator[Place]:
    if way:
        yield way
    members = value.items() if type(value) is dict else ()
    for key, member in [*members, *enumerate(value if type(value) is list else ())]:
        yield from _places(member, (*way, key))


def _change(value: Any, way: Place, random: Random) -> None:
    *steps, last = way
    for step in steps:
        value = value[step]
    if type(last) is str and random.random() < 0.3:
        member = value.pop(last)
        name = random.choice((None, f"{last}.$", f"{last}Path", last.lower(), last[:-2], *TEXTS))
        if name is not None:
            value[name] = member
    elif type(value[last]) is str and random.random() < 0.6:
        value[last] = _rewritten(value[last], random)
    else:
        value[last] = copy.deepcopy(random.choice((*TEXTS, *VALUES)))


def _rewritten(text: str, random: Random) -> str:
    at, to = sorted(random.randrange(len(text) + 1) for _ in range(2))
    match random.randrange(3):
        case 0:
            return re.sub(r"\d+", random.choice(_DIGITS), text, count=1)
        case 1:
            return text[:at] + random.choice(TEXTS) + text[at:]
        case _:
            return text[:at] + text[to:]
