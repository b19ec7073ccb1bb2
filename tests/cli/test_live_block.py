"""The block of lines at the bottom of a terminal."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.cli.live_block import LiveBlock, fit


def test_text_appears_above_the_block() -> None:
    """The block is cleared, the text written, and the block drawn below it."""
    stream = io.StringIO()
    block = LiveBlock(stream, lambda: ["one", "two"])
    block._draw()
    block.write_above("text\n")
    block._draw()
    assert stream.getvalue() == "one\ntwo\n\x1b[2A\r\x1b[Jtext\none\ntwo\n"


def test_partial_line_is_not_overwritten() -> None:
    """The block waits for the end of the line."""
    stream = io.StringIO()
    block = LiveBlock(stream, lambda: ["one"])
    block.write_above("text")
    block._draw()
    assert stream.getvalue() == "text"


def test_streams_are_replaced_until_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing goes above the block; a second stop changes nothing."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    block = LiveBlock(err, list)
    block.start()
    print("hello")
    block.stop()
    block.stop()
    assert (sys.stdout, sys.stderr) == (out, err)
    assert out.getvalue() == "hello\n"


@pytest.mark.parametrize(("line", "columns", "shown"), [
    ("hello", 3, "hel"), ("hello", 9, "hello"), ("日本語", 5, "日本"), ("e\u0301x", 1, "e\u0301"),
])  # fmt: skip
def test_fit_counts_columns(line: str, columns: int, shown: str) -> None:
    assert fit(line, columns) == shown


@given(st.text(), st.integers(0, 50))
def test_fit_returns_a_prefix(line: str, columns: int) -> None:
    assert line.startswith(fit(line, columns))
