"""Timestamps, durations and relative times."""

from datetime import UTC, datetime, timedelta, timezone
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.expr.times import (
    format_timestamp,
    instant,
    is_timestamp,
    parse_duration,
    parse_epoch,
    parse_relative,
    parse_timestamp,
    shift_time,
)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:00.0000000019Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2016-03-05T21:29:29.243167252Z", 1_457_213_369_243_167_252),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000_000_000),
    ],
)
def test_timestamp_parses_to_nanoseconds(text: str, expected: int) -> None:
    """Instants are nanoseconds since the epoch; finer fractions are cut off."""
    assert parse_timestamp(text) == expected
    assert is_timestamp(text)


NOT_TIMESTAMPS = [
    "",
    "2016-12-05 21:29:29Z",
    "2016-12-05T21:29:29",
    "2016-12-05t21:29:29Z",
    "2016-12-05T21:29:29z",
    "2016-12-05",
    "2016-12-05T21:29Z",
    "2016-12-05T21:29:29.Z",
    "2016-12-05T21:29:29,5Z",
    "2016-12-05T21:29:29+0100",
    "2016-12-05T21:29:29+01",
    "2016-12-05T21:29:29+24:00",
    "2016-12-05T21:29:29+01:60",
    "2016-12-05T24:00:00Z",
    "2016-12-05T23:60:00Z",
    "2016-12-05T23:59:60Z",
    "2016-13-05T21:29:29Z",
    "2016-00-05T21:29:29Z",
    "2016-12-00T21:29:29Z",
    "2016-11-31T21:29:29Z",
    "2023-02-29T21:29:29Z",
    "1900-02-29T21:29:29Z",
    "16-12-05T21:29:29Z",
    "20161205T212929Z",
    "2016-W49-1T21:29:29Z",
    "+2016-12-05T21:29:29Z",
    " 2016-12-05T21:29:29Z",
    "2016-12-05T21:29:29Z\n",
    "2016-12-05T21:29:29Z ",
    "٢٠١٦-12-05T21:29:29Z",
    "{% '2016-03-14T01:59:00Z' %}",
]


@pytest.mark.parametrize("text", NOT_TIMESTAMPS)
def test_timestamp_refuses_other_forms_and_dates(text: str) -> None:
    """Capital T and Z or an offset are mandatory; the calendar is checked."""
    assert instant(text) is None
    with pytest.raises(ExpressionFault) as caught:
        parse_timestamp(text)
    assert caught.value.code == "V-WAIT-03"


@pytest.mark.parametrize("value", [None, True, 0, 1.5, [], ["2016-12-05T21:29:29Z"], {}])
def test_timestamp_refuses_other_types(value: object) -> None:
    """Numbers and containers have no instant."""
    assert instant(value) is None
    assert not is_timestamp(value)


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
    st.integers(-1439, 1439),
)
def test_timestamp_offset_is_applied(moment: datetime, minutes: int) -> None:
    """The same moment written with another offset is the same instant."""
    utc = moment.replace(tzinfo=UTC)
    local = utc.astimezone(timezone(timedelta(minutes=minutes)))
    written = utc.isoformat().replace("+00:00", "Z")
    assert parse_timestamp(written) == parse_timestamp(local.isoformat())


MOMENTS = st.tuples(
    st.integers(1000, 9998), st.integers(1, 12), st.integers(1, 28), st.integers(0, 999_999_999)
)


@given(MOMENTS, MOMENTS)
def test_instants_order_by_date(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """In UTC the order of instants is that of year, month, day and nanosecond."""
    first, second = (
        parse_timestamp("{}-{:02}-{:02}T00:00:00.{:09}Z".format(*parts)) for parts in (one, other)
    )
    assert (first < second) is (one < other)
    assert (first == second) is (one == other)


@given(st.text() | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.Z+]{0,15}", fullmatch=True))
def test_timestamp_parser_raises_only_expression_fault(text: str) -> None:
    """Nothing but ExpressionFault is raised, and `instant` agrees."""
    found = instant(text)
    if found is None:
        with pytest.raises(ExpressionFault):
            parse_timestamp(text)
    else:
        assert parse_timestamp(text) == found


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_457_213_369.243, "2016-03-05T21:29:29.243Z"),
        (1_700_000_000, "2023-11-14T22:13:20.000Z"),
        (-0.5, "1969-12-31T23:59:59.500Z"),
        (9_230_969_426.56, "2262-07-08T22:10:26.560Z"),
    ],
)
def test_format_timestamp_utc_milliseconds(seconds: float, expected: str) -> None:
    """The form of `$$.Execution.StartTime`."""
    assert format_timestamp(seconds) == expected
    assert parse_epoch(expected) == seconds


@given(st.integers(0, 10**13))
def test_format_timestamp_round_trips(milliseconds: int) -> None:
    """Writing and reading loses nothing down to the millisecond."""
    written = format_timestamp(milliseconds / 1000)
    assert parse_timestamp(written) == milliseconds * 1_000_000


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("90s", 90),
        ("500ms", 0.5),
        ("9ms", 0.009),
        ("5m", 300),
        ("2h", 7200),
        ("7d", 604_800),
        ("1w", 604_800),
        (30, 30),
        (1.5, 1.5),
        (0, 0),
    ],
)
def test_duration_units(value: str | int | float, seconds: float) -> None:
    """Without a unit it is seconds; ms, s, m, h, d and w are units."""
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "s", "-5m", "+5m", "1.5h", "5 m", "5M", "5y", "never", "٥s", "5m\n", "9" * 400, -1, True],
)
def test_duration_refuses_other_texts(value: str | int) -> None:
    """Signs, fractions, blanks and other units are faults."""
    with pytest.raises(ExpressionFault) as caught:
        parse_duration(value)
    assert caught.value.code == "V-DUR-01"


@pytest.mark.parametrize("value", [inf, -inf, float("nan")])
def test_duration_refuses_infinity(value: float) -> None:
    """Infinity is written `never`."""
    with pytest.raises(ExpressionFault):
        parse_duration(value)


def test_duration_never_needs_allow_never() -> None:
    """Retention may be for ever."""
    assert parse_duration("never", allow_never=True) == inf
    assert parse_duration("5m", allow_never=True) == 300


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("-5m", -300),
        ("+2h", 7200),
        ("-500ms", -0.5),
        ("+1w", 604_800),
        ("5m", None),
        ("-5", None),
        ("-m", None),
        ("--5m", None),
        ("-5m\n", None),
        ("+" + "9" * 400 + "w", None),
        ("2016-12-05T21:29:29Z", None),
    ],
)
def test_relative_time_sign_and_unit(text: str, seconds: float | None) -> None:
    """`-5m` is five minutes ago."""
    assert parse_relative(text) == seconds


def test_shift_returns_instant() -> None:
    """The clock's seconds and instants compare."""
    assert shift_time(60.0, -300) == parse_timestamp("1969-12-31T23:56:00Z")


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.sampled_from(["Z", "+05:30", "-08:00"]),
)
def test_timestamp_parser_agrees_with_dateutil(moment: datetime, offset: str) -> None:
    """python-dateutil agrees on every date, fraction and offset that both can say."""
    from dateutil.parser import isoparse

    text = moment.isoformat() + offset
    elapsed = isoparse(text) - datetime(1970, 1, 1, tzinfo=UTC)
    assert parse_timestamp(text) == elapsed // timedelta(microseconds=1) * 1000
