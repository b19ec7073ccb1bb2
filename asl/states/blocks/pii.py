"""Personal data in text: e-mail, phone, card, bank and identity numbers, addresses of computers.

Numbers with check digits are checked, so that an order number is not taken for a card. The text is
read in a normal form: full-width digits, ligatures and invisible characters hide nothing.
"""

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from asl.core.work import Spend

__all__ = [
    "KINDS",
    "SHAPES",
    "TextSpan",
    "normal_form",
    "personal_finder",
    "personal_test",
    "remove_overlaps",
]


class TextSpan(NamedTuple):
    """A part of a text: its position and its label."""

    start: int
    end: int
    label: str


_LETTER, _DIGIT, _OTHER = b"a0 "
SHAPES: Final = bytes(
    _DIGIT if chr(each) in "0123456789" else _LETTER if chr(each).isalpha() else _OTHER
    for each in range(128)
) + bytes([_OTHER] * 128)
"""Makes the shape of a text: `a` for each letter of ASCII, `0` for each digit."""


def personal_finder(kinds: Iterable[str]) -> Callable[[str, Spend], list[TextSpan]]:
    """Return what finds the parts of a text that are personal data, without overlaps."""
    wanted = [KINDS[name] for name in kinds]
    signs = list(enumerate(sorted({kind.sign for kind in wanted if kind.sign})))
    most = max((int(kind.least) for kind in wanted if kind.least < math.inf), default=0)
    plans = [
        [
            [kind for kind in wanted if digits >= kind.least or kind.sign in _chosen(signs, there)]
            for digits in range(most + 1)
        ]
        for there in range(1 << len(signs))
    ]
    """What there may be in a text with these signs, and so many digits."""

    def find(text: str, spend: Spend) -> list[TextSpan]:
        normal, origins = (text, None) if text.isascii() else normal_form(text, spend)
        shape = normal.encode().translate(SHAPES)
        digits, there = shape.count(b"0"), 0
        for place, sign in signs:
            if sign in normal:
                there |= 1 << place
        plan = plans[there][digits if digits < most else most]
        if not plan:
            return []
        found = []
        for label, search, _, part, _ in plan:
            if shape.find(part) >= 0:
                found += [TextSpan(start, end, label) for start, end in search(normal, spend)]
        if not found:
            return found
        if origins is not None:
            found = [
                TextSpan(origins[start], origins[end - 1] + 1, each) for start, end, each in found
            ]
        return remove_overlaps(found)

    return find


def personal_test(kinds: Sequence[str]) -> Callable[[str, Spend], bool]:
    """Return whether there is personal data in a text of ASCII: most have too few digits."""
    wanted = [KINDS[name] for name in kinds]
    find = personal_finder(kinds)
    signs = tuple({kind.sign for kind in wanted if kind.sign})
    parts = tuple({kind.shape for kind in wanted if kind.shape})
    least = min((kind.least for kind in wanted if not kind.shape), default=math.inf)

    def holds(text: str, spend: Spend) -> bool:
        for sign in signs:
            if sign in text:
                return bool(find(text, spend))
        shape = text.encode().translate(SHAPES)
        for part in parts:
            if shape.find(part) >= 0:  # `in` asks bytes first whether it is a number
                return bool(find(text, spend))
        return shape.count(b"0") >= least and bool(find(text, spend))

    return holds


def _chosen(signs: list[tuple[int, str]], there: int) -> set[str]:
    return {sign for place, sign in signs if there >> place & 1}


def remove_overlaps(found: list[TextSpan]) -> list[TextSpan]:
    """Return spans in their order, without those that begin within another."""
    kept: list[TextSpan] = []
    for span in sorted(found, key=lambda each: (each.start, -each.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


PLAIN: Final = 6
"""Steps of the normal form of one character."""
TRIED: Final = 24
"""Steps of looking whether a match holds."""
UNSEEN: Final = ("Cc", "Cf", "Mn", "Me", "Cs")
"""Categories of characters that hide others: control characters, those of no width, soft hyphens,
marks on top and around; or half a character."""


def normal_form(text: str, spend: Spend) -> tuple[str, Sequence[int]]:
    """Return text without disguises, and for each of its characters the place it comes from.

    Compatibility forms such as full-width letters become plain ones; marks, invisible and control
    characters are dropped; every digit, dash and space is the one of ASCII.
    """
    spend(len(text) // 2)
    different = set(text)
    spend(PLAIN * len(different))
    forms = dict(zip(different, map(_plain, different), strict=True))
    parts = [forms[character] for character in text]
    if all(len(part) == 1 for part in forms.values()):
        return "".join(parts), range(len(parts))
    spend(sum(map(len, parts)) // 2)
    places = array("I")
    for place, part in enumerate(parts):
        for _ in part:
            places.append(place)
    return "".join(parts), places


@lru_cache(maxsize=1024)
def _plain(character: str) -> str:
    """Return the normal form of a character."""
    plain = ""
    for each in unicodedata.normalize("NFKD", character):
        category = unicodedata.category(each)
        if each.isdecimal():
            plain += str(unicodedata.decimal(each))
        elif each.isspace():
            plain += " "
        elif category == "Pd":
            plain += "-"
        elif category not in UNSEEN:
            plain += each
    return plain


_Find: TypeAlias = Callable[[str, Spend], Iterator[tuple[int, int]]]


class _Kind(NamedTuple):
    label: str
    find: _Find
    least: float = math.inf
    """How many digits there are in one at least, so that most texts are not searched for it."""
    shape: bytes = b""
    """What is in the shape of a text that has one by its digits."""
    sign: str = ""
    """A character by which there may be one with fewer digits, or none."""


def _matches(
    pattern: str, holds: Callable[[str], bool] = lambda found: True, read: int = 6
) -> _Find:
    """Find what a pattern matches and *holds*, neither begun nor continued by a letter or digit.

    Of a match that does not hold its beginnings are tried: more digits may follow a card's. A step
    reads *read* characters of any text.
    """
    bounded = rf"(?<![\w@])(?:{pattern})(?![\w@])"

    def find(text: str, spend: Spend) -> Iterator[tuple[int, int]]:
        spend(len(text) // read)
        compiled, at = re.compile(bounded, re.ASCII), 0
        while (match := compiled.search(text, at)) is not None:
            spend(TRIED)
            end = match.end()
            while match is not None and not holds(match.group()):
                match = _shorter(match)
                spend(TRIED)
            at = end if match is None else match.end()
            if match is not None:
                yield match.span()

    return find


def _shorter(match: re.Match[str]) -> re.Match[str] | None:
    """Return the longest match at the same place that ends before a blank or a hyphen."""
    start, end = match.span()
    for stop in range(end - 1, start, -1):
        if match.string[stop] in " -":
            shorter = match.re.match(match.string, start, stop)
            if shorter is not None:
                return shorter
    return None


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if each.isdecimal()]


def _is_card(text: str) -> bool:
    """Luhn's check digit."""
    digits = _digits(text)[::-1]
    doubled = (2 * each - 9 * (each > 4) for each in digits[1::2])
    return 13 <= len(digits) <= 19 and any(digits) and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """ISO 13616: the number that it spells leaves 1 when divided by 97."""
    plain = text.replace(" ", "").upper()
    spelt = "".join(str(int(each, 36)) for each in plain[4:] + plain[:4])
    return 15 <= len(plain) <= 34 and int(spelt) % 97 == 1


def _is_ssn(text: str) -> bool:
    area, group, serial = text[:3], text[4:6], text[7:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _is_ip(text: str) -> bool:
    if ":" not in text and "." not in text:
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_phone(text: str) -> bool:
    return 7 <= len(_digits(text)) <= 15


def _is_dni(text: str) -> bool:
    """Spain: the letter is the number modulo 23."""
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def _is_cpf(text: str) -> bool:
    """Brazil: two check digits modulo 11."""
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        total = sum((length + 1 - place) * digits[place] for place in range(length))
        if 10 * total % 11 % 10 != digits[length]:
            return False
    return True


def _is_nir(text: str) -> bool:
    """France: the last two digits are 97 minus the number modulo 97."""
    plain = text.replace(" ", "")
    number = plain[:13].replace("2A", "19").replace("2B", "18")
    return 97 - int(number) % 97 == int(plain[13:])


def _is_pesel(text: str) -> bool:
    """Poland: a date of birth, and a check digit modulo 10."""
    digits = _digits(text)
    weighted = zip((1, 3, 7, 9) * 3, digits, strict=False)
    month, day = int(text[2:4]) % 20, int(text[4:6])
    check = sum(weight * each for weight, each in [*weighted][:10])
    return 1 <= month <= 12 and 1 <= day <= 31 and (check + digits[10]) % 10 == 0


def _is_steuer_id(text: str) -> bool:
    """Germany: of the first ten digits one occurs twice or three times; ISO 7064, MOD 11,10."""
    digits = _digits(text)
    counts = sorted(Counter(digits[:10]).values())
    if digits[0] == 0 or counts[-1] not in (2, 3) or (len(counts) > 1 and counts[-2] > 1):
        return False
    product = 10
    for each in digits[:10]:
        product = 2 * ((each + product) % 10 or 10) % 11
    return (11 - product) % 10 == digits[10]


def _is_ahv(text: str) -> bool:
    """Switzerland: the check digit of an EAN."""
    digits = _digits(text)
    return (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


def _is_hetu(text: str) -> bool:
    """Finland: the last character is the number modulo 31."""
    number = int(text[:6] + text[7:10])
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == text[10]


def _is_belgian(text: str) -> bool:
    """Belgium: the last two digits are 97 minus the number modulo 97, with a 2 before it since
    2000."""
    plain = "".join(map(str, _digits(text)))
    number, check = plain[:9], int(plain[9:])
    return check in (97 - int(number) % 97, 97 - int(f"2{number}") % 97)


_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)


def _is_codice_fiscale(text: str) -> bool:
    """Italy: the last letter is a weighted sum of the others."""
    places = [int(each) if each.isdecimal() else ord(each) - ord("A") for each in text[:-1]]
    total = sum(_ODD[each] for each in places[::2]) + sum(places[1::2])
    return chr(ord("A") + total % 26) == text[-1]


def _national(text: str, spend: Spend) -> Iterator[tuple[int, int]]:
    for find in _NATIONAL:
        yield from find(text, spend)


_NATIONAL: Final = (
    _matches(r"[XYZ0-9][0-9]{7}[A-Z]", _is_dni),
    _matches(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _is_cpf),
    _matches(
        r"[12] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", _is_nir
    ),
    _matches(r"[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]", _is_codice_fiscale),
    _matches(r"[0-9]{11}", lambda text: _is_pesel(text) or _is_steuer_id(text)),
    _matches(r"[0-9]{2} [0-9]{3} [0-9]{3} [0-9]{3}", _is_steuer_id),
    _matches(r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", _is_ahv),
    _matches(r"[0-3][0-9][01][0-9]{3}[-+A-FU-Y][0-9]{3}[0-9A-Y]", _is_hetu),
    _matches(r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", _is_belgian),
)

_PHONE: Final = (
    r"(?<![0-9][ .-])(?:"
    + "|".join(
        (
            r"\+[0-9]{1,3}(?:[ ./-]?\(?[0-9]{1,5}\)?){2,6}",
            r"(?:1[ .-]?)?\([0-9]{3}\)[ .-]?[0-9]{3}[ .-]?[0-9]{4}",
            r"(?:1[ .-])?[0-9]{3}[ .-][0-9]{3}[ .-][0-9]{4}",
            r"[0-9]{3}-[0-9]{4}",
            r"0[1-9][0-9]{0,3}[ /-][0-9]{3,8}(?:[ -][0-9]{1,6}){0,3}",
        )
    )
    + ")"
)

KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "email": _Kind(
            "[EMAIL]",
            _matches(
                r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
                r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}",
                read=1,
            ),
            sign="@",
        ),
        "credit_card": _Kind(
            "[CREDIT_CARD]",
            _matches(
                r"[0-9](?:[ -]?[0-9]){12,18}"
                r"|[0-9]{4}(?P<gap>[._/\n]| {2,4})[0-9]{4}(?P=gap)[0-9]{4}(?P=gap)[0-9]{1,7}",
                _is_card,
                read=3,
            ),
            13,
        ),
        "iban": _Kind(
            "[IBAN]",
            _matches(
                r"[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}",
                _is_iban,
            ),
            2,
            b"aa00",
        ),
        "ssn": _Kind("[SSN]", _matches(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}", _is_ssn), 9),
        "ip": _Kind(
            "[IP]",
            _matches(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:]{2,39}(?::[0-9.]{7,15})?", _is_ip),
            4,
            sign=":",
        ),
        "national_id": _Kind("[NATIONAL_ID]", _national, 7),
        "phone": _Kind("[PHONE]", _matches(_PHONE, _is_phone, read=2), 7),
    }
)
"""The kinds of personal data, by their names in `Types`."""
