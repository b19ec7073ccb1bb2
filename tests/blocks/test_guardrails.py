"""Guardrails: what counts as personal data, and that nothing that is found survives a cut."""

import re
import unicodedata
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.core.values import compact
from asl.core.work import WorkLimits, WorkMeter
from asl.states.blocks.pii import KINDS, SHAPES, TextSpan, personal_finder

FIND = personal_finder(KINDS)


def find_personal(text: str) -> list[TextSpan]:
    return FIND(text, WorkMeter(WorkLimits(steps=10_000_000)).spend)


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
        if any(kind.find(text, WorkMeter().spend)):
            digits, shape = sum(map(text.count, "0123456789")), text.encode().translate(SHAPES)
            by_digits = digits >= kind.least and kind.shape in shape
            assert by_digits or (kind.sign and kind.sign in text)


WORDS = ("secret", "Kelvin", "ß", "a b", "\0")
PATTERNS = (
    "token-[0-9]+",
    "^ab?",
    "ab$",
    "x*y",
    "a|key",
    "(?i)Ab",
    "se?c",
    "^$",
    "a.b",
    "\\bab\\b",
)
LENGTHS = ((0, 3), (2, 9), (8, None))
LEAVES = st.lists(
    st.sampled_from((*WORDS, "SECRET", "\u212aelvin", "token-7", "token-", *"ay\n", "ab", "key")),
    max_size=3,
).map("".join)  # fmt: skip
CONTENTS = LEAVES | st.fixed_dictionaries(
    {"text": LEAVES}, optional={"more": st.lists(LEAVES, max_size=2), "n": st.just(1)}
)


def judged(rule: dict[str, Any], side: str = "Output") -> asl.Program:
    guard = {side: {"Rules": [rule]}}
    task = {"Type": "Task", "Agent": "A", "Guardrails": guard, "End": True}
    return asl.compile({"StartAt": "T", "States": {"T": task}})


def violated(program: asl.Program, content: Any) -> bool:
    result = asl.run(program, {}, agents={"A": lambda _: content})
    assert result.status == "SUCCEEDED" or result.error == "Agent.GuardrailViolation"
    return result.status == "FAILED"


def leaves(content: Any) -> list[str]:
    return [content] if type(content) is str else [content["text"], *content.get("more", [])]


BY_WORD = {word: judged({"Type": "pattern", "Block": [word]}) for word in WORDS}
BY_PATTERN = {each: judged({"Type": "regex", "Pattern": each}) for each in PATTERNS}
BY_LENGTH = {
    (least, most): judged(
        {"Type": "length", "Min": least} | ({} if most is None else {"Max": most})
    )
    for least, most in LENGTHS
}


@given(CONTENTS, st.sampled_from(WORDS))
def test_a_blocked_word_is_found_wherever_it_stands(content: Any, word: str) -> None:
    plain = comparable(word)  # empty for a word of invisible characters, which stands for itself
    texts = [comparable(text) if plain else text for text in leaves(content)]
    assert violated(BY_WORD[word], content) == any((plain or word) in text for text in texts)


def comparable(text: str) -> str:
    """Return a text without disguises: one case, plain letters, visible characters."""
    plain = unicodedata.normalize("NFKD", text)
    hidden = ("Cc", "Cf", "Mn", "Me", "Cs")
    seen = [each for each in plain if each.isspace() or unicodedata.category(each) not in hidden]
    dashes = "".join("-" if unicodedata.category(each) == "Pd" else each for each in seen)
    return re.sub(r"\s+", " ", dashes).lower()


WORD = "drop table"
DISGUISES = (
    *("DROP TABLE", "dr\u200bop table", "ｄｒｏｐ ｔａｂｌｅ", "drop\ntable"),
    *("drop \r\n\t table", "d\u00adrop table", "dróp tablè", "dro\u0301p table", "drop\u00a0table"),
    *(
        "drop\u2003table",
        "𝐝𝐫𝐨𝐩 𝓽𝓪𝓫𝓵𝓮",
        "drop\x00 table",
        "dr\x08op table",
        "ⓓⓡⓞⓟ table",
        "\u202edrop table",
    ),
    *("d\u2060r\ufeffo\u200dp table", "drop\u2028table", "drop\u3000table", "d\ufe0frop table"),
)


@pytest.mark.parametrize("text", DISGUISES)
@pytest.mark.parametrize("place", ["{}", "please {} now", "schön: {}!"])
def test_pattern_block_sees_through_disguises(text: str, place: str) -> None:
    """Invisible and combining characters, other forms of letters and blanks, line breaks."""
    program = judged({"Type": "pattern", "Block": [WORD]})
    assert violated(program, {"text": place.format(text)})
    assert violated(judged({"Type": "pattern", "Block": ["drop", "none"]}), place.format(text))


def test_pattern_mask_cuts_a_disguised_word_as_written() -> None:
    """The mask takes the place of all characters of the word, the invisible ones included."""
    program = judged({"Type": "pattern", "Block": ["secret"], "Action": "mask"})
    texts = {"a": "my s\u200be\u0301cret key", "b": "my se\x00cret\x01 key"}
    result = asl.run(program, {}, agents={"A": lambda _: texts})
    assert result.output == {"a": "my [MASKED] key", "b": "my [MASKED]\x01 key"}


@given(CONTENTS, st.sampled_from(PATTERNS))
def test_a_pattern_is_held_against_each_text_alone(content: Any, pattern: str) -> None:
    found = any(re.search(pattern.replace("$", r"\Z"), text) for text in leaves(content))
    assert violated(BY_PATTERN[pattern], content) == found


@given(CONTENTS, st.sampled_from(LENGTHS))
def test_a_length_is_that_of_the_text_or_of_the_json(content: Any, bounds: tuple[int, int]) -> None:
    least, most = bounds
    text = content if type(content) is str else compact(content)
    length = len(text)
    expected = length < least or (most is not None and length > most)
    assert violated(BY_LENGTH[bounds], content) == expected


@given(CONTENTS, st.sampled_from(("x@y.example", "4111 1111 1111 1111", "4111", "1111")))
def test_what_is_personal_stands_within_one_text(content: Any, part: str) -> None:
    texts = [*leaves(content), part]
    assert violated(BY_PII, {"text": texts}) == any(map(find_personal, texts))


BY_PII = judged({"Type": "pii"})


def _doubled(times: int) -> Any:
    value: Any = ["secret"]
    for _ in range(times):
        value = [value, value]
    return value


HOSTILE: dict[str, tuple[dict[str, Any], Any]] = {
    "pii of many digits": ({"Type": "pii"}, "4111 1111 1111 1112 " * 500),
    "pii of disguised letters": ({"Type": "pii"}, "\u200b" * 250_000),
    "pii of a form that grows": ({"Type": "pii"}, "\ufdfa" * 20_000),
    "pattern in disguised text": ({"Type": "pattern", "Block": ["secret"]}, "é" * 250_000),
    "pattern found everywhere": (
        {"Type": "pattern", "Block": ["s"], "Action": "mask"},
        "s" * 10_000,
    ),
    "regex that repeats its parts": (
        {"Type": "regex", "Pattern": "(a|b)*a(a|b){500}c"},
        "ab" * 5_000,
    ),
    "regex that searches to the end": ({"Type": "regex", "Pattern": ".*b|a"}, "a" * 3_000),
    "regex found everywhere": ({"Type": "regex", "Pattern": "s", "Action": "redact"}, "s" * 4_000),
    "values that share parts": ({"Type": "length", "Max": 10}, _doubled(40)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_of_guardrails_is_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A content that takes too much work does not pass."""
    meter = partial(WorkMeter, WorkLimits(steps=100_000))
    monkeypatch.setattr("asl.engine.execution.WorkMeter", meter)
    rule, content = HOSTILE[name]
    result = asl.run(judged(rule, "Input"), content, agents={"A": lambda _: "reached"})
    assert result.error == "States.Runtime"
    assert "the guardrails of the input: the evaluation " in str(result.cause)


@pytest.mark.parametrize("rule", [{"Type": "length", "Max": 10}, {"Type": "pii"}])
def test_contents_nested_too_deep_do_not_pass(rule: dict[str, Any]) -> None:
    states: dict[str, Any] = {
        f"S{index}": {"Type": "Pass", "Parameters": {"a.$": "$"}, "Next": f"S{index + 1}"}
        for index in range(250)
    }
    guards = {"Input": {"Rules": [rule]}}
    states["S250"] = {"Type": "Task", "Agent": "A", "Guardrails": guards, "End": True}
    result = asl.run({"StartAt": "S0", "States": states}, agents={"A": lambda _: "reached"})
    assert result.error == "States.Runtime"
    assert "nested deeper than 200 levels" in str(result.cause)


def test_long_texts_pass_guardrails() -> None:
    """Half a million characters, and a pattern of two hundred words."""
    words = [f"word{index}x" for index in range(200)]
    for rule in ({"Type": "pattern", "Block": words}, {"Type": "pii"}):
        for text in ("plain text of letters. " * 22_000, "schöner Text: grün. " * 25_000):
            assert not violated(judged(rule), text)
