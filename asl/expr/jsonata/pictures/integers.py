"""Format and parse integers by pictures (XPath 3.1, 4.6).

Examples are `#,##0`, `A`, `i` and `w`, optionally followed by `;o`.
"""

import re
from functools import reduce
from math import floor, gcd, log10, nan
from typing import NamedTuple

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value, double, number_text
from asl.expr.jsonata.pictures import LONGEST
from asl.expr.jsonata.scopes import QueryScope
from asl.expr.jsonata.values import finite, normal

_FEW = """
Zero One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen
Sixteen Seventeen Eighteen Nineteen
"""
_ORDINALS = """
Zeroth First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth Eleventh Twelfth Thirteenth
Fourteenth Fifteenth Sixteenth Seventeenth Eighteenth Nineteenth
"""
FEW, ORDINALS = _FEW.split(), _ORDINALS.split()
DECADES = ("Twenty", "Thirty", "Forty", "Fifty", "Sixty", "Seventy", "Eighty", "Ninety")
MAGNITUDES = ("Thousand", "Million", "Billion", "Trillion")
ROMAN = {
    "m": 1000,
    "cm": 900,
    "d": 500,
    "cd": 400,
    "c": 100,
    "xc": 90,
    "l": 50,
    "xl": 40,
    "x": 10,
    "ix": 9,
    "v": 5,
    "iv": 4,
    "i": 1,
}
LONGEST_ROMAN = 1_000_000
"""The largest number in Roman numerals: it already takes a thousand letters."""

ZEROS = (
    *(0x30, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6),
    *(0x0D66, 0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0),
    *(0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0),
    *(0xAA50, 0xABF0, 0xFF10),
)
"""The zeros of the families of decimal digits."""


class IntegerPicture(NamedTuple):
    """A parsed picture: `primary` is A, a, I, i, W, Ww, w, 0 for digits, or another token."""

    primary: str
    ordinal: bool = False
    zero: int = 0x30
    mandatory: int = 0
    optional: int = 0
    regular: int = 0
    """The width of groups if they are all equal."""
    separators: tuple[tuple[int, str], ...] = ()
    """Separators by the number of digits on their right."""

    def at_least(self, digits: int) -> "IntegerPicture":
        """Return the picture with this many mandatory digits."""
        return self._replace(mandatory=digits)


def parse(text: str) -> IntegerPicture:
    """Parse a picture.

    Raises:
        QueryFault: D3131 for digits of several families, D1013 for a picture that is too long.
    """
    if len(text) > LONGEST:
        raise fault("D1013", what="picture string", limit=f"{LONGEST} characters")
    primary, semicolon, modifier = text.rpartition(";")
    if not semicolon:
        primary, modifier = text, ""
    ordinal = modifier.startswith("o")
    if primary in ("A", "a", "I", "i", "W", "Ww", "w"):
        return IntegerPicture(primary, ordinal)
    zero, mandatory, optional, place = None, 0, 0, 0
    separators: list[tuple[int, str]] = []
    for character in reversed(primary):
        family = next((each for each in ZEROS if each <= ord(character) <= each + 9), None)
        if family is not None:
            if zero not in (None, family):
                raise fault("D3131")
            zero = family
            mandatory += 1
            place += 1
        elif character == "#":
            optional += 1
            place += 1
        else:
            separators.append((place, character))
    if zero is None:
        return IntegerPicture(primary, ordinal)
    regular = _repeat(separators)
    return IntegerPicture("0", ordinal, zero, mandatory, optional, regular, tuple(separators))


def _repeat(separators: list[tuple[int, str]]) -> int:
    if len({character for _, character in separators}) != 1:
        return 0
    places = [place for place, _ in separators]
    width = reduce(gcd, places)
    return width if all(width * (n + 1) in places for n in range(len(places))) else 0


def format_integer(value: Value, picture: Value) -> Value:
    """`$formatInteger(number, picture)`.

    Raises:
        QueryFault: T0410 for a picture that is no string, D3130 for an unsupported one.
    """
    if type(picture) is not str:
        raise fault("T0410", value=picture, index=2)
    return format_by_picture(floor(finite(value)), parse(picture))


def format_by_picture(value: int, picture: IntegerPicture) -> str:
    """Return a formatted integer.

    Raises:
        QueryFault: D3130 for an unsupported sequence.
    """
    size = abs(value)
    if picture.primary == "0":
        text = _digits(size, picture)
    elif picture.primary in ("A", "a"):
        text = _letters(size, picture.primary)
    elif picture.primary in ("I", "i"):
        text = _roman(size)
        text = text.upper() if picture.primary == "I" else text
    elif picture.primary in ("W", "Ww", "w"):
        text = _words(double(size), False, picture.ordinal)
        text = {"W": text.upper(), "w": text.lower()}.get(picture.primary, text)
    else:
        raise fault("D3130", value=picture.primary)
    return f"-{text}" if value < 0 else text


def _digits(value: int, picture: IntegerPicture) -> str:
    text = number_text(value).rjust(picture.mandatory, "0")
    if picture.zero != 0x30:
        text = "".join(chr(ord(digit) + picture.zero - 0x30) for digit in text)
    if picture.regular:
        places = range(picture.regular, len(text), picture.regular)
        breaks = [(place, picture.separators[0][1]) for place in places]
    else:
        breaks = [each for each in picture.separators if each[0] <= len(text)]
    end = len(text)
    for place, character in breaks:  # from the right, so that earlier places remain valid
        text = text[: end - place] + character + text[end - place :]
    if not picture.ordinal:
        return text
    suffix = {"1": "st", "2": "nd", "3": "rd"}.get(text[-1:], "th")
    return text + ("th" if text[-2:-1] == "1" else suffix)


def _letters(value: int, first: str) -> str:
    letters = ""
    while value > 0:
        value, letter = divmod(value - 1, 26)
        letters = chr(ord(first) + letter) + letters
    return letters


def _roman(value: int) -> str:
    if value > LONGEST_ROMAN:
        raise fault("D1013", what="Roman numeral", limit=LONGEST_ROMAN)
    text = ""
    for letters, worth in ROMAN.items():
        count, value = divmod(value, worth)
        text += letters * count
    return text


def _words(value: float, follows: bool, ordinal: bool) -> str:
    if value < 20:
        return (" and " if follows else "") + (ORDINALS if ordinal else FEW)[int(value)]
    if value < 100:
        tens, rest = divmod(value, 10)
        word = (" and " if follows else "") + DECADES[int(tens) - 2]
        if rest:
            return f"{word}-{_words(rest, False, ordinal)}"
        return f"{word[:-1]}ieth" if ordinal else word
    if value < 1000:
        hundreds, rest = divmod(value, 100)
        word = (", " if follows else "") + FEW[int(hundreds)] + " Hundred"
    else:
        magnitude = min(int(log10(value) / 3), len(MAGNITUDES))
        factor = 1000**magnitude
        mantissa = floor(value / factor)
        rest = value - float(mantissa) * factor
        word = (", " if follows else "") + _words(mantissa, False, False)
        word += " " + MAGNITUDES[magnitude - 1]
    return word + (_words(rest, True, ordinal) if rest > 0 else "th" if ordinal else "")


# Reading -----------------------------------------------------------------------------------------


def _word_values() -> dict[str, int]:
    values = {word.lower(): number for number, word in enumerate(FEW)}
    values |= {word.lower(): number for number, word in enumerate(ORDINALS)}
    for number, word in enumerate([*DECADES, "Hundred"], 2):
        values[word.lower()] = number * 10
        values[word[:-1].lower() + "ieth"] = number * 10
    values["hundredth"] = 100
    for power, word in enumerate(MAGNITUDES, 1):
        values[word.lower()] = values[f"{word.lower()}th"] = 1000**power
    return values


WORD_VALUES = _word_values()


def parse_integer(scope: QueryScope, text: str, picture: Value = UNDEFINED) -> Value:
    """`$parseInteger(text, picture)`; undefined for a text without such a number, on AWS NaN.

    Raises:
        QueryFault: T0410 for a picture that is no string, D1013 for a text that is too long.
    """
    if type(picture) is not str:
        raise fault("T0410", value=picture, index=2)
    if len(text) > LONGEST:
        raise fault("D1013", what="number", limit=f"{LONGEST} characters")
    found = parse_by_picture(text, parse(picture))
    return UNDEFINED if found != found and scope.run.bounds.finite else found


def parse_by_picture(text: str, picture: IntegerPicture) -> int | float:
    """Return the integer of a text; NaN if it has none.

    Raises:
        QueryFault: D3130 for an unsupported picture.
    """
    primary = picture.primary
    if primary == "0":
        return _read_digits(text, picture)
    if primary in ("A", "a"):
        places = enumerate(reversed(text))
        return normal(
            double(sum((ord(each) - ord(primary) + 1) * 26**place for place, each in places))
        )
    if primary in ("I", "i"):
        return _read_roman(text if primary == "I" else text.upper())
    if primary in ("W", "Ww", "w"):
        return _read_words(text.lower())
    raise fault("D3130", value=primary)


def _read_digits(text: str, picture: IntegerPicture) -> int | float:
    digits = text[:-2] if picture.ordinal else text
    for _, character in ((0, ","),) if picture.regular else picture.separators:
        digits = digits.replace(character, "")
    if picture.zero != 0x30:
        digits = "".join(chr(max(0, ord(each) - picture.zero + 0x30)) for each in digits)
    leading = re.match(r"\s*([-+]?[0-9]+)", digits)
    return nan if leading is None else normal(double(int(leading[1])))


def _read_roman(text: str) -> int | float:
    total, largest = 0, 1
    for letter in reversed(text):
        value = ROMAN.get(letter.lower()) if letter.isupper() else None
        if value is None:
            return nan
        total += -value if value < largest else value
        largest = max(largest, value)
    return total


def _read_words(text: str) -> int | float:
    parts = [0]
    for word in re.split(r",\s|\sand\s|[\s\-]", text):
        value = WORD_VALUES.get(word)
        if value is None:
            return nan
        if value >= 100:
            parts.append(parts.pop() * value)
        elif parts[-1] >= 1000:
            parts.append(value)
        else:
            parts.append(parts.pop() + value)
    return normal(double(sum(parts)))
