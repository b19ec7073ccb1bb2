"""Guardrails: what counts as personal data, and that nothing that is found survives a cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.states.blocks.personal import KINDS, personal_finder

find_personal = personal_finder(KINDS)


def masked(text: str) -> str:
    for span in reversed(find_personal(text)):
        text = text[: span.start] + span.label + text[span.end :]
    return text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12345678Z", "[NATIONAL_ID]"),
        ("X1234567L", "[NATIONAL_ID]"),
        ("529.982.247-25", "[NATIONAL_ID]"),
        ("529.982.247-26", "529.982.247-26"),
        ("111.111.111-11", "111.111.111-11"),
        ("RSSMRA85T10A562S", "[NATIONAL_ID]"),
        ("RSSMRA85T10A562T", "RSSMRA85T10A562T"),
        ("1 84 12 76 451 089 46", "[NATIONAL_ID]"),
        ("44051401359", "[NATIONAL_ID]"),
        ("44051401358", "44051401358"),
        ("44131401359", "44131401359"),
        ("86095742719", "[NATIONAL_ID]"),
        ("86 095 742 719", "[NATIONAL_ID]"),
        ("86095742718", "86095742718"),
        ("756.9217.0769.85", "[NATIONAL_ID]"),
        ("756.9217.0769.84", "756.9217.0769.84"),
        ("131052-308T", "[NATIONAL_ID]"),
        ("131052-308U", "131052-308U"),
        ("85.07.30-033.28", "[NATIONAL_ID]"),
        ("85.07.30-033.29", "85.07.30-033.29"),
        ("4111.1111.1111.1111", "[CREDIT_CARD]"),
        ("4111_1111_1111_1111", "[CREDIT_CARD]"),
        ("4111\n1111\n1111\n1111", "[CREDIT_CARD]"),
        ("GB29 NWBK 6016 1331 9268 19", "[IBAN]"),
        ("4111111111111111", "[CREDIT_CARD]"),
        ("5500-0000-0000-0004,", "[CREDIT_CARD],"),
        ("0000000000000000", "0000000000000000"),
        ("+1 (555) 123-4567", "[PHONE]"),
        ("030 1234567", "[PHONE]"),
        ("call 555-1234", "call [PHONE]"),
        ("::1", "[IP]"),
        ("a:b", "a:b"),
        ("\uff14\uff11\uff11\uff11 1111 1111 1111", "[CREDIT_CARD]"),
        ("4111\u200b1111\u20601111\ufeff1111", "[CREDIT_CARD]"),
        ("4\ufe0f\u20e31111111 11111111", "[CREDIT_CARD]"),
        ("4\u03011111111 11111111", "[CREDIT_CARD]"),
        ("\u0664\u0661\u0661\u0661111111111111", "[CREDIT_CARD]"),
        ("DE89\u200b370400440532013000", "[IBAN]"),
        ("DE89 3704 0044 0532 0130 0\u200d0", "[IBAN]"),
        ("GB29 NWBK 6016 1331 9268 18", "GB29 NWBK 6016 1331 9268 18"),
        ("ann\u00ad@ex\u200bample.org", "[EMAIL]"),
        ("\uff10\uff17\uff18-\uff10\uff15-\uff11\uff11\uff12\uff10", "[SSN]"),
        ("000-12-3456", "000-12-3456"),
        ("x.y+z@sub.example.co.uk!", "[EMAIL]!"),
    ],
)
def test_what_is_personal(text: str, expected: str) -> None:
    """Numbers count where their check digits are right."""
    assert masked(text) == expected


def luhn(digits: list[int]) -> int:
    """The digit that completes a card's number."""
    total = sum(
        each if place % 2 else each * 2 - 9 * (each > 4)
        for place, each in enumerate(reversed(digits))
    )
    return -total % 10


@given(
    st.lists(st.integers(0, 9), min_size=12, max_size=18).filter(any),
    st.sampled_from(["", " ", "-"]),
    st.text(max_size=10),
    st.text(max_size=10),
)
def test_every_card_is_found(digits: list[int], gap: str, before: str, after: str) -> None:
    """Whatever stands around a card's number, nothing of it is left."""
    number = gap.join(map(str, [*digits, luhn(digits)]))
    assert number not in masked(f"{before}. {number} .{after}")


@given(st.text(alphabet="0123456789 .-@:+()abcXYZ\u200b\uff11", max_size=400))
def test_a_cut_leaves_nothing(text: str) -> None:
    """What is left has no personal data of the kinds that were cut."""
    spans = find_personal(text)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(0 <= each.start < each.end <= len(text) for each in spans)


@pytest.mark.parametrize("piece", ["1 ", "1-", "a.", "a@", "0 ", "(1)", "+1 ", "AA00 ", ":", "1"])
def test_long_texts_take_no_time_to_speak_of(piece: str) -> None:
    """No text makes the search slow: a hundred thousand characters are read at once."""
    find_personal(piece * (100_000 // len(piece)))


@given(st.text(alphabet="0123456789 .-@:+()ABCXYZabcde\uff11", max_size=60))
def test_nothing_is_passed_over(text: str) -> None:
    """A text that is not searched for a kind, as it has too few digits, holds none of it."""
    for kind in KINDS.values():
        if any(kind.find(text)):
            digits = sum(map(text.count, "0123456789"))
            assert digits >= kind.least or (kind.sign and kind.sign in text)
