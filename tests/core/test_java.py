"""How Java prints values and orders the members of a set."""

import pytest

from asl.core.java import java_text, sort_by_hash
from asl.core.values import Json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1, "b": ["x", None, True]}, "{a=1, b=[x, null, true]}"),
        ({}, "{}"),
        ([[], 1.5], "[[], 1.5]"),
        ("text", "text"),
    ],
)
def test_containers_are_printed_as_java_prints_them(value: Json, expected: str) -> None:
    """Texts have no quotes, keys stand before a `=`."""
    assert java_text(value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 2], [1, 2, 3]),
        ([17, 16, 1], [16, 17, 1]),
        ([-2, 0], [0, -2]),
        ([True, False], [False, True]),
        (["b", "a", None], [None, "a", "b"]),
        ([[1, 2], [2, 1]], [[2, 1], [1, 2]]),
        ([{"a": 2}, {}], [{}, {"a": 2}]),
        ([1.5, 2**32], [2**32, 1.5]),
    ],
)
def test_members_stand_by_their_hash_codes(values: list[Json], expected: list[Json]) -> None:
    """The values of `hashCode` are those of Java's documentation."""
    assert sort_by_hash(values) == expected


def test_a_set_that_is_three_quarters_full_doubles() -> None:
    """Sixteen buckets hold twelve members; 16 stands in the first of them, or in its own."""
    assert sort_by_hash([16, *range(11)])[:2] == [16, 0]
    assert sort_by_hash([16, *range(12)]) == [*range(12), 16]
