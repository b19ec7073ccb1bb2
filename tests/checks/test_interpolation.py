"""Texts with `{{ }}` (Specification 3.8)."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.expr.templates import Insertion, InterpolationPart, check_text, compile_text, parse_text

NO_FRAME = cast(ExpressionFrame, None)


def path(text: str) -> Evaluate:
    return compile_path(parse_path(text), PathUse("Prompt", "Ask"))


def filled(text: str, data: Any) -> Any:
    return compile_text(text, path)(data, NO_FRAME)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("no braces { } here", "no braces { } here"),
        ("Review #{{$.n}}", "Review #7"),
        ("{{ $.s }}{{$.s}}", "a'ba'b"),
        ("{{$.list}} {{$.object}}", '[1,"ä"] {"k":null}'),
        ("{{$.t}}/{{$.z}}", "true/null"),
        (r"\{{ $.n }}", None),
        (r"\{{ literal", "{{ literal"),
        ("{{$['}}']}}", "brace"),
    ],
)
def test_values_are_inserted(text: str, value: str | None) -> None:
    """Strings stand as they are, everything else as compact JSON; `\\{{` is two braces."""
    data = {"n": 7, "s": "a'b", "list": [1, "ä"], "object": {"k": None}, "t": True, "z": None,
            "}}": "brace"}  # fmt: skip
    if value is None:
        with pytest.raises(ExpressionFault):
            parse_text(text)
    else:
        check_text(text)
        assert filled(text, data) == value


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("a {{ $.b", 2),
        ("a }} b", 2),
        ("{{}}", 0),
        ("ab{{  }}", 2),
        ("{{ name }}", 3),
        ("{{ $.a[ }}", 7),
        ("{{ States.Nope() }}", 3),
        ("{{ States.Array($.a[x]) }}", 20),
    ],
)
def test_a_fault_is_placed(text: str, offset: int) -> None:
    """V-TXT-01 with the offset in the text."""
    with pytest.raises(ExpressionFault) as caught:
        check_text(text)
    assert (caught.value.code, caught.value.offset) == ("V-TXT-01", offset)


@given(st.text())
def test_inserted_text_is_never_read_again(value: str) -> None:
    """A user's text cannot bring expressions of its own."""
    assert filled("<{{$.v}}>", {"v": value}) == f"<{value}>"


@given(st.text(alphabet="{}\\ $.a'"))
def test_every_text_is_either_read_or_refused(text: str) -> None:
    """Nothing but the named fault is raised, and what is read covers the text."""
    fault: ExpressionFault | None = None
    parts: tuple[InterpolationPart, ...] = ()
    try:
        parts = parse_text(text)
    except ExpressionFault as found:
        fault = found
    assert fault is None or (fault.code == "V-TXT-01" and 0 <= fault.offset <= len(text))
    for part in parts:
        if isinstance(part, Insertion):
            assert text[part.offset :].startswith(part.text)
