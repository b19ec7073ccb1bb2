"""Work of an evaluation: steps, bytes and levels are counted, and end it with one error."""

import pytest

from asl.core.work import LIMITS, WorkExceeded, WorkLimits, WorkMeter

SMALL = WorkLimits(steps=10, bytes=100, levels=3)


def test_steps_up_to_the_limit_are_free() -> None:
    meter = WorkMeter(SMALL)
    meter.spend()
    meter.spend(9)
    assert meter.steps == 0


def test_steps_beyond_the_limit_raise() -> None:
    meter = WorkMeter(SMALL)
    meter.spend(10)
    with pytest.raises(WorkExceeded, match="takes more than 10 steps"):
        meter.spend()


def test_bytes_are_counted_apart_from_steps() -> None:
    meter = WorkMeter(SMALL)
    meter.spend_bytes(100)
    assert (meter.steps, meter.bytes) == (10, 0)
    with pytest.raises(WorkExceeded, match="builds more than 100 bytes"):
        meter.spend_bytes(1)


def test_levels_beyond_the_limit_raise() -> None:
    meter = WorkMeter(SMALL)
    meter.enter(3)
    with pytest.raises(WorkExceeded, match="deeper than 3 levels"):
        meter.enter(4)


def test_error_names_the_quantity_and_the_limit() -> None:
    with pytest.raises(WorkExceeded) as caught:
        WorkMeter(SMALL).exceed("bytes")
    assert (caught.value.quantity, caught.value.limit) == ("bytes", 100)


def test_meter_without_limits_takes_the_shared_ones() -> None:
    meter = WorkMeter()
    assert (meter.steps, meter.bytes) == (LIMITS.steps, LIMITS.bytes)
