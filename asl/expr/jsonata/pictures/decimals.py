"""Format decimals by pictures such as `#,##0.00`, `01%`, `0.0##e0` (XPath 3.1, 4.7)."""

from decimal import Decimal
from functools import reduce
from math import gcd, isfinite
from typing import NamedTuple

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.functions.numbers import round_number
from asl.expr.jsonata.javascript import UNDEFINED, Value, double
from asl.expr.jsonata.pictures import LONGEST
from asl.expr.jsonata.scopes import QueryScope

MOST_DECIMALS = 100
"""The largest number of decimals."""


class DecimalSymbols(NamedTuple):
    """The special characters of a picture."""

    decimal: str = "."
    grouping: str = ","
    exponent: str = "e"
    minus: str = "-"
    percent: str = "%"
    per_mille: str = "‰"
    zero: str = "0"
    digit: str = "#"
    pattern: str = ";"

    @property
    def digits(self) -> str:
        """The family of decimal digits."""
        return "".join(chr(ord(self.zero) + digit) for digit in range(10))

    @property
    def active(self) -> str:
        """The characters that belong to the number, not to the text around it."""
        return (
            self.digits + self.decimal + self.exponent + self.grouping + self.digit + self.pattern
        )


_NAMES = {
    "decimal-separator": "decimal",
    "grouping-separator": "grouping",
    "exponent-separator": "exponent",
    "minus-sign": "minus",
    "percent": "percent",
    "per-mille": "per_mille",
    "zero-digit": "zero",
    "digit": "digit",
    "pattern-separator": "pattern",
}


_LONGER = ("minus-sign", "percent", "per-mille")
"""The options that may have several characters."""


def format_number(
    scope: QueryScope, value: Value, picture: Value, options: Value = UNDEFINED
) -> Value:
    """`$formatNumber(number, picture, options)`.

    AWS prints the digits of the number's text, not the further ones of its double (AWS, measured).

    Raises:
        QueryFault: D3080 to D3093 for an invalid picture, T0410 for wrong options, D1001 for
            infinities.
    """
    if type(picture) is not str:
        raise fault("T0410", value=picture, index=2)
    if len(picture) > LONGEST:
        raise fault("D1013", what="picture string", limit=f"{LONGEST} characters")
    signs = _signs({} if options is UNDEFINED else options)
    texts = picture.split(signs.pattern)
    if len(texts) > 2:
        raise fault("D3080")
    exact = Decimal if scope.run.bounds.java else float
    parts = [_Part(text, signs, exact) for text in texts]
    for part in parts:
        part.check()
    number = double(value)
    if not isfinite(number):
        raise fault("D1001", value=value)
    if number >= 0 or len(parts) == 2:
        return parts[0 if number >= 0 else 1].format(number)
    return signs.minus + parts[0].format(number)


def _signs(options: dict[str, Value]) -> DecimalSymbols:
    chosen = {}
    for name, value in options.items():
        if name in _NAMES:
            single = name not in _LONGER
            if type(value) is not str or not value or (single and len(value) > 1):
                raise fault("T0410", value=options, index=3)
            chosen[_NAMES[name]] = value
    return DecimalSymbols(**chosen)


class _Part:
    """One parsed sub-picture."""

    def __init__(
        self, text: str, signs: DecimalSymbols, exact: type[float] | type[Decimal]
    ) -> None:
        self.text = text
        self.signs = signs
        self.exact = exact
        """Converts the text of a number to a value with the digits to print."""
        bounds = [
            place
            for place, character in enumerate(text)
            if character in signs.active and character != signs.exponent
        ]
        if not bounds:
            raise fault("D3086" if text else "D3085")
        self.prefix = text[: bounds[0]]
        self.suffix = text[bounds[-1] + 1 :]
        self.active = text[bounds[0] : bounds[-1] + 1]
        place = self.active.find(signs.exponent)
        self.mantissa = self.active if place == -1 else self.active[:place]
        self.exponent = None if place == -1 else self.active[place + 1 :]
        self.whole, _, self.fraction = self.mantissa.partition(signs.decimal)

    def check(self) -> None:
        """Raise the error of an invalid picture; the last of several counts."""
        for code, broken in self._rules():
            if broken:
                raise fault(code)

    def _rules(self) -> list[tuple[str, bool]]:
        text, signs = self.text, self.signs
        family = signs.digits
        exponent = self.exponent
        optional = self.whole.find(signs.digit)
        last_optional = self.fraction.rfind(signs.digit)
        point = text.find(signs.decimal)
        neighbors = (
            (text[max(point - 1, 0)], text[point + 1 : point + 2]) if point != -1 else ("", "")
        )
        scaled = signs.percent in text or signs.per_mille in text
        return [
            ("D3093", exponent is not None and not (exponent and set(exponent) <= set(family))),
            ("D3092", bool(exponent) and scaled),
            ("D3091", last_optional != -1 and _holds(self.fraction[last_optional:], family)),
            ("D3090", optional != -1 and _holds(self.whole[:optional], family)),
            ("D3089", signs.grouping * 2 in text),
            ("D3088", point == -1 and self.whole.endswith(signs.grouping)),
            ("D3087", signs.grouping in neighbors),
            ("D3086", not set(self.active) <= set(signs.active)),
            ("D3085", not _holds(self.mantissa, family + signs.digit)),
            ("D3084", signs.percent in text and signs.per_mille in text),
            ("D3083", text.count(signs.per_mille) > 1),
            ("D3082", text.count(signs.percent) > 1),
            ("D3081", text.count(signs.decimal) > 1),
        ]

    def format(self, number: float) -> str:
        """Return the formatted absolute value of a number."""
        signs = self.signs
        family = signs.digits
        least_whole = _count(self.whole, family)
        least_fraction = _count(self.fraction, family)
        most_fraction = _count(self.fraction, family + signs.digit)
        scale = least_whole
        if not least_whole and not most_fraction:
            if self.exponent is None:
                least_whole = 1
            else:
                least_fraction = most_fraction = 1
        if self.exponent is not None and not least_whole and signs.digit in self.whole:
            least_whole = 1
        if not least_whole and not least_fraction:
            least_fraction = 1
        if most_fraction > MOST_DECIMALS:
            raise fault("D1013", what="number", limit=f"{MOST_DECIMALS} decimals")
        if signs.percent in self.text:
            number *= 100
        elif signs.per_mille in self.text:
            number *= 1000
        number, power = self._scaled(abs(number), scale)
        whole, fraction = self._digits(number, most_fraction)
        whole = whole.lstrip(signs.zero).rjust(least_whole, signs.zero)
        fraction = fraction.rstrip(signs.zero).ljust(least_fraction, signs.zero)
        text = self._grouped_whole(whole)
        if fraction and signs.decimal in self.text:
            text += signs.decimal + self._grouped_fraction(fraction)
        if self.exponent is not None:
            digits = self._digits(abs(power), 0)[0].rjust(len(self.exponent), signs.zero)
            text += signs.exponent + (signs.minus if power < 0 else "") + digits
        return self.prefix + text + self.suffix

    def _scaled(self, number: float, scale: int) -> tuple[float, int]:
        """Return the mantissa with this many digits before the point, and the power of ten."""
        power = 0
        if self.exponent is not None and number:
            while number < 10.0 ** (scale - 1):
                number *= 10
                power -= 1
            while number > 10.0**scale:
                number /= 10
                power += 1
        return number, power

    def _digits(self, number: float, decimals: int) -> tuple[str, str]:
        text = f"{self.exact(repr(double(round_number(number, decimals)))):.{decimals}f}"
        if self.signs.zero != "0":
            text = text.translate(
                {ord("0") + digit: character for digit, character in enumerate(self.signs.digits)}
            )
        whole, _, fraction = text.partition(".")
        return whole, fraction

    def _grouped_whole(self, digits: str) -> str:
        grouping, members = self.signs.grouping, self.signs.digits + self.signs.digit
        places = [
            _count(self.whole[place:], members)
            for place, character in enumerate(self.whole)
            if character == grouping
        ]
        if not places:
            return digits
        width = reduce(gcd, places)
        if width and all(width * (n + 1) in places for n in range(len(places))):
            places = list(range(width, len(digits), width))
        end = len(digits)
        for place in sorted(places, reverse=True):
            if place < end:
                digits = (
                    digits[: len(digits) - place - 0] + grouping + digits[len(digits) - place :]
                )
        return digits

    def _grouped_fraction(self, digits: str) -> str:
        grouping, members = self.signs.grouping, self.signs.digits + self.signs.digit
        for place, character in enumerate(self.fraction):
            at = _count(self.fraction[:place], members)
            if character == grouping and at < len(digits.replace(grouping, "")):
                at += digits.count(grouping)
                digits = digits[:at] + grouping + digits[at:]
        return digits


def _holds(text: str, characters: str) -> bool:
    return any(character in characters for character in text)


def _count(text: str, characters: str) -> int:
    return sum(character in characters for character in text)
