"""Intrinsic functions: grammar, static remarks, results, and what AWS was recorded doing."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import AWS, DEFAULT, Profile
from asl.core.values import compact, json_equal
from asl.core.work import WorkMeter
from asl.expr.frame import Evaluate
from asl.expr.intrinsics import (
    ALLOWED_IN_ERROR_PATH,
    FUNCTIONS,
    IntrinsicCall,
    PathArgument,
    check,
    compile,
    parse,
)

Json = Any


@dataclass
class Spent:
    """What the execution has spent."""

    cost: Decimal = Decimal("0.30")
    tokens: int = 1200
    max_cost: Decimal | None = Decimal("1.00")


@dataclass
class Running:
    """The least a frame needs for intrinsic functions."""

    usage: Spent = field(default_factory=Spent)
    variables: dict[str, Json] = field(default_factory=dict)
    contexts: dict[str, Json] = field(default_factory=dict)
    bits: int = 0x0123456789ABCDEF0123456789ABCDEF
    now: float = 0.0
    work: WorkMeter = field(default_factory=WorkMeter)

    def context(self, root: str, state: str) -> Json:
        return self.contexts[root]

    def entropy(self) -> int:
        return self.bits

    def price(self, model: str) -> Decimal | None:
        return {"small": Decimal("0.000001")}.get(model)


STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def definite(text: str, offset: int) -> Evaluate:
    """Compile `$.a.b[0]`, `$$.Root.a` and `$name.a`, all that these tests need."""
    root = re.match(r"\$(\$|\w+)?", text)
    assert root is not None, text
    steps = [name or int(index) for name, index in STEP.findall(text[root.end() :])]

    def evaluate(data: Json, frame: Any) -> Json:
        value = {None: data, "$": frame.contexts}.get(root[1], frame.variables.get(root[1]))
        try:
            for step in steps:
                value = value[step]
        except (KeyError, IndexError, TypeError):
            raise StateError("States.ParameterPathFailure", text) from None
        return value

    return evaluate


def optional(text: str, offset: int) -> Evaluate:
    """Like `definite`, but a missing value is null."""
    path = definite(text, offset)

    def evaluate(data: Json, frame: Any) -> Json:
        try:
            return path(data, frame)
        except StateError:
            return None

    return evaluate


def evaluate(
    text: str, data: Json = None, profile: Profile = DEFAULT, frame: Running | None = None
) -> Json:
    """Parse, compile and evaluate a call."""
    compiled = compile(parse(text), definite, optional, profile)
    return compiled(data, frame or Running())


def exactly(value: Json) -> str:
    """JSON text, which tells 1 from 1.0 and true from 1."""
    return compact(value)


# --------------------------------------------------------------------------------------------
# Results

DATA = {
    "i": 5,
    "f": 2.5,
    "s": "text",
    "n": None,
    "t": True,
    "a": [1, "a", None, [1, {"x": 1}], {"k": "v"}],
    "e": [],
    "o": {"a": 1, "b": {"c": [1], "d": 1}, "n": None},
    "quote": "it's {} \\",
    "template": "<{}|\\{|{:.1f}>",
}

RESULTS = [
    # Format
    ("States.Format('plain')", "plain"),
    ("States.Format('')", ""),
    ("States.Format('{}', 'x')", "x"),
    ("States.Format('{}{}', 1, 2.50)", "12.5"),
    ("States.Format('{} {} {}', true, false, null)", "true false null"),
    ("States.Format('{}', $.a)", '[1,"a",null,[1,{"x":1}],{"k":"v"}]'),
    ("States.Format('{}', $.o)", '{"a":1,"b":{"c":[1],"d":1},"n":null}'),
    ("States.Format('{}', $.quote)", "it's {} \\"),
    (r"States.Format('it\'s \{{}\} \\{}', 1, 2)", "it's {1} \\2"),
    ("States.Format('{\"type\": {}}', 1)", '{"type": 1}'),
    ("States.Format('{ } {x} {', 1)", StateError),
    ("States.Format('{ } {x} { }')", "{ } {x} { }"),
    ("States.Format('{:.2f}', 2.675)", "2.68"),
    ("States.Format('{:.2f}', 0.125)", "0.12"),
    ("States.Format('{:.2f}', 0.375)", "0.38"),
    ("States.Format('{:.0f} {:.1f}', 2.5, 1)", "2 1.0"),
    ("States.Format('{:.3f}', 1e300)", "1" + "0" * 300 + ".000"),
    ("States.Format('{:.2f}', 'x')", StateError),
    ("States.Format('{:.2f}', true)", StateError),
    ("States.Format('{:2f} {:.f}')", "{:2f} {:.f}"),
    ("States.Format($.template, 1, 2)", "<1|{|2.0>"),
    ("States.Format(States.Format('\\{\\}{}', 'x'), 'y')", "yx"),
    ("States.Format('line\nbreak {}', 'é€😀')", "line\nbreak é€😀"),
    ("States.Format('{}')", StateError),
    ("States.Format('{}', 1, 2)", StateError),
    ("States.Format($.i)", StateError),
    # JSON text
    ("States.StringToJson('')", None),
    ("States.StringToJson(' \t\n')", None),
    ("States.StringToJson('-0')", 0),
    ("States.StringToJson('-0.5')", -0.5),
    ("States.StringToJson(' [1, 2.0, \"x\"] ')", [1, 2.0, "x"]),
    ('States.StringToJson(\'{"a": {"b": null}}\')', {"a": {"b": None}}),
    (r"""States.StringToJson('{"a": "it\'s"}')""", {"a": "it's"}),
    ("States.StringToJson('12345678901234567890123')", 12345678901234567890123),
    ("States.StringToJson('{a: 1}')", StateError),
    ("States.StringToJson('[1,]')", StateError),
    ("States.StringToJson('NaN')", StateError),
    ("States.StringToJson('1e999')", StateError),
    ("States.StringToJson('1 2')", StateError),
    ('States.StringToJson("x")', ExpressionFault),
    ("States.StringToJson($.n)", StateError),
    ("States.StringToJson($.i)", StateError),
    ("States.JsonToString('x')", '"x"'),
    ("States.JsonToString('say \"é\"')", '"say \\"é\\""'),
    ("States.JsonToString(1.0)", "1.0"),
    ("States.JsonToString(null)", "null"),
    ("States.JsonToString($.o)", '{"a":1,"b":{"c":[1],"d":1},"n":null}'),
    # Arrays
    ("States.Array()", []),
    (
        "States.Array('Foo', 2020, $.o.b, null, true, -1.5)",
        ["Foo", 2020, DATA["o"]["b"], None, True, -1.5],
    ),
    ("States.Array($.i, $.s)", [5, "text"]),
    ("States.Array($.i, 1, $.s)", [5, 1, "text"]),
    ("States.Array(1, $.i)", [1, 5]),
    ("States.ArrayPartition(States.ArrayRange(1, 7, 1), 3)", [[1, 2, 3], [4, 5, 6], [7]]),
    ("States.ArrayPartition($.e, 4)", []),
    ("States.ArrayPartition(States.Array(1, 2, 3), 1.5)", [[1, 2], [3]]),
    ("States.ArrayPartition($.a, 0)", StateError),
    ("States.ArrayPartition($.a, -1)", StateError),
    ("States.ArrayPartition($.a, '2')", StateError),
    ("States.ArrayPartition($.s, 2)", StateError),
    ("States.ArrayContains($.a, 1)", True),
    ("States.ArrayContains($.a, 1.0)", True),
    ("States.ArrayContains($.a, '1')", False),
    ("States.ArrayContains($.a, true)", False),
    ("States.ArrayContains($.a, null)", True),
    ("States.ArrayContains($.a, States.StringToJson('[1.0, {\"x\": 1}]'))", True),
    ('States.ArrayContains($.a, States.StringToJson(\'{"k": "V"}\'))', False),
    ("States.ArrayContains($.s, 't')", StateError),
    ("States.ArrayRange(0, 9, 3)", [0, 3, 6, 9]),
    ("States.ArrayRange(1, 3)", [1, 2, 3]),
    ("States.ArrayRange(0, 0)", [0]),
    ("States.ArrayRange(3, 1, -1)", [3, 2, 1]),
    ("States.ArrayRange(3, 1, 1)", []),
    ("States.ArrayRange(1, 3, -1)", []),
    ("States.ArrayRange(0.4, 2.5, 0.5)", [0, 1, 2, 3]),
    ("States.ArrayRange(1, 3, 0)", StateError),
    ("States.ArrayRange(1, 1000, 1)", list(range(1, 1001))),
    ("States.ArrayRange(1, 1001, 1)", StateError),
    ("States.ArrayRange(1, '3', 1)", StateError),
    ("States.ArrayGetItem($.a, 1)", "a"),
    ("States.ArrayGetItem($.a, 1.0)", "a"),
    ("States.ArrayGetItem($.a, -1)", {"k": "v"}),
    ("States.ArrayGetItem($.a, -5)", 1),
    ("States.ArrayGetItem($.a, -6)", StateError),
    ("States.ArrayGetItem($.a, 5)", StateError),
    ("States.ArrayGetItem($.a, 1.5)", StateError),
    ("States.ArrayGetItem($.a, true)", StateError),
    ("States.ArrayGetItem($.o, 0)", StateError),
    ("States.ArrayLength($.a)", 5),
    ("States.ArrayLength($.e)", 0),
    ("States.ArrayLength($.s)", StateError),
    ("States.ArrayLength($.o)", StateError),
    ("States.ArrayUnique($.e)", []),
    (
        "States.ArrayUnique(States.Array(1, 1.0, '1', true, 1, null, false, 0, null))",
        [1, "1", True, None, False, 0],
    ),
    (
        'States.ArrayUnique(States.StringToJson(\'[{"a":[1],"b":2},{"b":2.0,"a":[1]},[[]],[[]],[]]\'))',
        [{"a": [1], "b": 2}, [[]], []],
    ),
    ("States.ArrayUnique($.s)", StateError),
    ("States.ArrayConcat($.e, $.a, 'x', null, $.e)", [*DATA["a"], "x", None]),
    ("States.ArrayConcat($.i)", [5]),
    # Strings
    ("States.Base64Encode('')", ""),
    ("States.Base64Encode('é')", "w6k="),
    ("States.Base64Encode($.i)", StateError),
    ("States.Base64Decode('w6k=')", "é"),
    ("States.Base64Decode('w6k')", StateError),
    ("States.Base64Decode('w6 k=')", StateError),
    ("States.Base64Decode('/w==')", StateError),
    ("States.Base64Decode('é')", StateError),
    ("States.Base64Decode(null)", StateError),
    ("States.Hash('abc', 'MD5')", "900150983cd24fb0d6963f7d28e17f72"),
    ("States.Hash('abc', 'SHA-1')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
        "States.Hash('abc', 'SHA-256')",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    (
        "States.Hash('abc', 'sha256')",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    (
        "States.Hash('abc', 'SHA-384')",
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
        "8086072ba1e7cc2358baeca134c825a7",
    ),
    (
        "States.Hash('abc', 'SHA-512')",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ),
    ("States.Hash($.e, 'MD5')", "d751713988987e9331980363e24189ce"),
    ("States.Hash('abc', 'CRC32')", StateError),
    ("States.Hash('abc', 5)", StateError),
    ("States.StringSplit('1,2,,3', ',')", ["1", "2", "3"]),
    ("States.StringSplit('a.b+c', '.+')", ["a", "b", "c"]),
    ("States.StringSplit('a^b]c-d', '^]-')", ["a", "b", "c", "d"]),
    ("States.StringSplit('abc', '')", ["abc"]),
    ("States.StringSplit('', ',')", []),
    ("States.StringSplit(',,', ',')", []),
    ("States.StringSplit($.i, ',')", StateError),
    ("States.StringSplit('a', null)", StateError),
    ("States.UUID()", "01234567-89ab-4def-8123-456789abcdef"),
    # Numbers
    ("States.MathAdd(1.49, 1.5)", 3),
    ("States.MathAdd(-0.5, 0.5)", 1),
    ("States.MathAdd(-1.5, 0)", -1),
    ("States.MathAdd(0.49999999999999994, 0)", 0),
    ("States.MathAdd($.i, -1)", 4),
    ("States.MathAdd($.f, $.f)", 6),
    ("States.MathAdd($.i, 1, 2, 3.5)", 12),
    ("States.MathAdd(2147483647, 0)", 2147483647),
    ("States.MathAdd(2147483647, 1)", StateError),
    ("States.MathAdd(-2147483648, -1)", StateError),
    ("States.MathAdd(2147483648, -1)", StateError),
    ("States.MathAdd(1e300, 0)", StateError),
    ("States.MathAdd($.t, 1)", StateError),
    ("States.MathAdd($.s, 1)", StateError),
    ("States.MathAdd(1, null)", StateError),
    ("States.MathSubtract(0.3, 0.1)", 0.2),
    ("States.MathSubtract(5, 7)", -2),
    ("States.MathSubtract(1.5, 0.5)", 1),
    ("States.MathSubtract(5.0, 0.35)", 4.65),
    ("States.MathSubtract(1e308, -1e308)", StateError),
    ("States.MathSubtract(12345678901234567890, 1)", 12345678901234567889),
    ("States.MathSubtract('5', 1)", StateError),
    ("States.MathSubtract(true, 1)", StateError),
    ("States.MathMultiply(0.1, 3)", 0.3),
    ("States.MathMultiply(1.1, 1.1)", 1.21),
    ("States.MathMultiply(3, 4)", 12),
    ("States.MathMultiply(9007199254740993, 9007199254740993)", 81129638414606699710187514626049),
    ("States.MathMultiply(1e-200, 1e-200)", 0.0),
    ("States.MathMultiply(null, 1)", StateError),
    ("States.MathRandom()", 0x2468ACF13579 / 2**53),
    ("States.MathRandom(1, 2)", 1),
    ("States.MathRandom(0.5, 1.5)", 1),
    ("States.MathRandom(2, 2)", StateError),
    ("States.MathRandom(3, 2)", StateError),
    ("States.MathRandom('a', 2)", StateError),
    ("States.MathRandom(1)", StateError),
    # Objects
    (
        'States.JsonMerge($.o, States.StringToJson(\'{"b": 2, "z": 3}\'), false)',
        {"a": 1, "b": 2, "n": None, "z": 3},
    ),
    ("States.JsonMerge($.o, $.o, true)", StateError),
    ("States.JsonMerge($.o, $.o, 0)", StateError),
    ("States.JsonMerge($.o, $.a, false)", StateError),
    ("States.JsonMerge($.n, $.o, false)", StateError),
    (
        'States.Merge($.o, null, States.StringToJson(\'{"b": {"c": [2], "d": 2}, "a": [1]}\'))',
        {"a": [1], "b": {"c": [1, 2], "d": 2}, "n": None},
    ),
    ("States.Merge(null)", {}),
    ("States.Merge($.o, $.a)", StateError),
    ("States.Pick($.o, 'n', 'a', 'missing')", {"n": None, "a": 1}),
    ("States.Pick($.o, 1)", StateError),
    ("States.Pick($.a, 'a')", StateError),
    ("States.Omit($.o, 'b', 'missing')", {"a": 1, "n": None}),
    ("States.Omit($.s, 'b')", StateError),
    ("States.Coalesce($.missing, $.n, 'x', 'y')", "x"),
    ("States.Coalesce($.missing.deeper, null)", None),
    ("States.Coalesce(false, 1)", False),
    ("States.Coalesce(0)", 0),
    # Tokens and money
    ("States.TokenCount('')", 0),
    ("States.TokenCount('a')", 1),
    ("States.TokenCount('abcd')", 1),
    ("States.TokenCount('abcdé')", 2),
    ("States.TokenCount('€€')", 2),
    ("States.TokenCount($.e)", 1),
    ("States.TokenCount(12345)", 2),
    ("States.Truncate('abcdefghi', 2)", "abcdefgh..."),
    ("States.Truncate('abcdefgh', 2)", "abcdefgh"),
    ("States.Truncate('a€€', 1)", "a€..."),
    ("States.Truncate('€€', 1)", "€..."),
    ("States.Truncate('', 0)", ""),
    ("States.Truncate('abc', 0)", "..."),
    ("States.Truncate($.e, 1)", "[]"),
    ("States.Truncate($.o.b, 1)", '{"c"...'),
    ("States.Truncate('abc', -1)", StateError),
    ("States.Truncate('abc', 1.5)", StateError),
    ("States.CurrentCost()", 0.3),
    ("States.CurrentTokens()", 1200),
    ("States.RemainingBudget()", 0.7),
    ("States.MathSubtract(5.0, States.CurrentCost())", 4.7),
    ("States.EstimateCost('abcdefgh', 'small')", 0.000002),
    ("States.EstimateCost('abcdefgh', 'huge')", StateError),
    ("States.EstimateCost('abcdefgh', 1)", StateError),
    # Nested and missing
    (
        "States.ArrayGetItem(States.StringSplit('a-b-c', '-'), "
        "States.MathAdd(States.ArrayLength(States.StringSplit('a-b-c', '-')), -1))",
        "c",
    ),
    ("States.Format('{}', $.missing)", StateError),
    ("States.Coalesce(States.ArrayLength($.missing))", StateError),
]


@pytest.mark.parametrize(("text", "expected"), RESULTS, ids=[text[:70] for text, _ in RESULTS])
def test_intrinsic_results_and_failures(text: str, expected: Json) -> None:
    """Specification 5.2 and 5.3, value by value; an exception stands for a failure."""
    if isinstance(expected, type):
        with pytest.raises(expected):
            evaluate(text, DATA)
    else:
        assert exactly(evaluate(text, DATA)) == exactly(expected)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "States.ArrayLength('abc')",
            'States.ArrayLength: argument 1 must be an array, found string "abc"',
        ),
        (
            "States.MathAdd(1, null)",
            "States.MathAdd: argument 2 must be a number, found null",
        ),
        (
            "States.ArrayGetItem(States.Array(1), 3)",
            "States.ArrayGetItem: index 3 is outside an array of 1 elements",
        ),
        (
            "States.Format('{}')",
            "States.Format: the template has 1 places for 0 arguments",
        ),
    ],
)
def test_intrinsic_failure_cause(text: str, cause: str) -> None:
    """The error is States.IntrinsicFailure, its cause written for people."""
    with pytest.raises(StateError) as caught:
        evaluate(text)
    assert (caught.value.name, caught.value.cause) == ("States.IntrinsicFailure", cause)


def test_constant_call_fails_at_run_time() -> None:
    """A call of constants is computed early, but fails only when its state runs."""
    compiled = compile(parse("States.MathAdd('a', 1)"), definite, optional, DEFAULT)
    with pytest.raises(StateError):
        compiled(None, Running())


def test_constant_call_is_computed_once() -> None:
    """Two evaluations share the value, as data is never edited in place."""
    compiled = compile(parse("States.ArrayRange(1, 3, 1)"), definite, optional, DEFAULT)
    assert compiled(None, Running()) is compiled(None, Running())


# --------------------------------------------------------------------------------------------
# Randomness, limits, profiles


def test_math_random_seed() -> None:
    """The same seed gives the same number whatever the execution's entropy."""
    text = "States.MathRandom(0, 1000000, 42)"
    assert evaluate(text, frame=Running(bits=1)) == evaluate(text, frame=Running(bits=2)) == 670487


@given(st.integers(0, 2**128 - 1), st.integers(-1000, 1000), st.integers(1, 1000))
def test_math_random_range(bits: int, start: int, width: int) -> None:
    """The start is inclusive, the end exclusive."""
    frame = Running(bits=bits)
    found = evaluate(f"States.MathRandom({start}, {start + width})", frame=frame)
    assert start <= found < start + width
    assert 0 <= evaluate("States.MathRandom()", frame=frame) < 1


@given(st.integers(0, 2**128 - 1))
def test_uuid_version_4(bits: int) -> None:
    """Version and variant bits are set, letters are lower case."""
    found = evaluate("States.UUID()", frame=Running(bits=bits))
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", found
    )


def test_remaining_budget_null_or_not_negative() -> None:
    """Null without MaxCost, 0 once it is overspent."""
    unlimited, overspent = Running(Spent(max_cost=None)), Running(Spent(cost=Decimal(2)))
    assert evaluate("States.RemainingBudget()", frame=unlimited) is None
    assert evaluate("States.RemainingBudget()", frame=overspent) == 0


@pytest.mark.parametrize(
    "text",
    ["States.Base64Encode($)", "States.Base64Decode($)", "States.Hash($, 'MD5')"],
)
def test_hash_and_base64_length_limit(text: str) -> None:
    """Specification 1.2."""
    evaluate(text, "A" * 10_000)
    with pytest.raises(StateError) as caught:
        evaluate(text, "A" * 10_004)
    assert caught.value.name == "States.IntrinsicFailure"


@pytest.mark.parametrize(
    "text",
    [
        "States.JsonToString($)",
        "States.Format('{}', $)",
        "States.Format('{}{}{}', $[0], $[0], $[0])",
        "States.Hash($, 'MD5')",
        "States.Truncate($, 1)",
        "States.TokenCount($)",
        "States.ArrayUnique($)",
        "States.Merge($[1], $[1])",
    ],
)
def test_intrinsics_payload_limit(text: str) -> None:
    """The size is measured before the text is built, even where lists are shared."""
    shared: Json = ["x" * 50]
    for _ in range(100):
        shared = [shared, shared]
    data = ["y" * 400, {"shared": shared}]
    with pytest.raises(StateError) as caught:
        evaluate(text, data, DEFAULT.with_limits(max_payload=1000))
    assert caught.value.name == "States.DataLimitExceeded"


@pytest.mark.parametrize(
    "text",
    ["States.JsonToString($)", "States.ArrayUnique($)", "States.Merge($[0], $[0])"],
)
def test_intrinsics_depth_limit(text: str) -> None:
    """A value that a loop has nested ever deeper is never walked recursively."""
    deep: Json = {}
    for _ in range(50_000):
        deep = {"in": deep}
    with pytest.raises(StateError) as caught:
        evaluate(text, [deep])
    assert caught.value.name == "States.IntrinsicFailure"


@pytest.mark.parametrize(("depth", "sound"), [(200, True), (201, False), (900, False)])
def test_string_to_json_depth_limit(depth: int, sound: bool) -> None:
    """StringToJson refuses what could not have come in either."""
    text = "[" * depth + "]" * depth
    if sound:
        assert compact(evaluate("States.StringToJson($)", text)) == text
    else:
        with pytest.raises(StateError):
            evaluate("States.StringToJson($)", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("States.Format('{}', $.o)", "{a=1, b={c=[1], d=1}, n=null}"),
        ("States.Format('{}', $.a)", "[1, a, null, [1, {x=1}], {k=v}]"),
        ("States.Format('{} {}', $.s, $.t)", "text true"),
        ("States.JsonToString($.e)", "[]"),
        ("States.ArrayGetItem($.a, -1)", StateError),
        ("States.Hash('abc', 'sha256')", StateError),
    ],
)
def test_intrinsics_aws_profile(text: str, expected: Json) -> None:
    """Java's way to print containers; no extensions of argument values."""
    if isinstance(expected, type):
        with pytest.raises(expected):
            evaluate(text, DATA, AWS)
    else:
        assert evaluate(text, DATA, AWS) == expected


# --------------------------------------------------------------------------------------------
# Grammar


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "$$",
        "$$.Execution.Id",
        "$name.field[0]",
        "$.a['x,y)']",
        '$.a["x,(y"]',
        r"$.a['it\'s,)']",
        "$.a[?(@.b == 'x),')].c",
        "$.a[?(@.b =~ /x,)y\\/]/)]",
        "$.a[1,2]",
        "$..a[*].b[-1:]",
        "$.a[?(@.b > 1 && (@.c || !@.d))]",
    ],
)
def test_path_argument_ends_after_brackets(path: str) -> None:
    """Commas and parentheses within brackets, quotes and filters belong to the path."""
    path = path.replace("\\\\", "\\")
    call = parse(f"States.Array( {path} , 1,{path})")
    assert call.arguments[0] == PathArgument(path, 14)
    assert call.arguments[2] == PathArgument(path, 14 + len(path) + 5)


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("States.Formt('{}')", "V-INTR-01", 0),
        ("states.Format('{}')", "V-INTR-01", 0),
        ("Format('{}')", "V-INTR-01", 0),
        ("States.Array(States.Nope())", "V-INTR-01", 13),
        ("", "V-INTR-02", 0),
        (" States.UUID()", "V-INTR-02", 0),
        ("States.UUID() ", "V-INTR-02", 13),
        ("States.UUID()x", "V-INTR-02", 13),
        ("States.UUID", "V-INTR-02", 11),
        ("States.UUID ()", "V-INTR-02", 11),
        ("States.UUID(", "V-INTR-02", 12),
        ("States.Array(1", "V-INTR-02", 14),
        ("States.Array(1 2)", "V-INTR-02", 15),
        ("States.Array(1,)", "V-INTR-02", 15),
        ("States.Array(,1)", "V-INTR-02", 13),
        ("States.Array(01)", "V-INTR-02", 14),
        ("States.Array(-)", "V-INTR-02", 13),
        ("States.Array(+1)", "V-INTR-02", 13),
        ("States.Array(1e999)", "V-INTR-02", 13),
        ("States.Array(abc)", "V-INTR-02", 13),
        ("States.Array(True)", "V-INTR-02", 13),
        ("States.Array([1])", "V-INTR-02", 13),
        ('States.Array("a")', "V-INTR-02", 13),
        ("States.Array('a)", "V-INTR-02", 13),
        ("States.Array('it's')", "V-INTR-02", 17),
        (r"States.Array('a\n')", "V-INTR-02", 15),
        (r"States.Array('a\"')", "V-INTR-02", 15),
        ("States.Array('a\\", "V-INTR-02", 15),
        ("States.Array($.a[0)", "V-INTR-02", 13),
    ],
)
def test_intrinsic_syntax_error_code_and_offset(text: str, code: str, offset: int) -> None:
    """Unknown functions are V-INTR-01, anything else V-INTR-02."""
    with pytest.raises(ExpressionFault) as caught:
        parse(text)
    assert (caught.value.code, caught.value.offset) == (code, offset)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("States.Formt('{}')", "did you mean 'States.Format'?"),
        ("states.format('{}')", "did you mean 'States.Format'?"),
        ("Format('{}')", "write 'States.Format'"),
        ('States.Array("a")', "use single quotes"),
        ("States.Array(abc)", "write 'abc' for a string or $.abc for a path"),
    ],
)
def test_intrinsic_syntax_error_hints(text: str, hint: str) -> None:
    """The hint says what to write."""
    with pytest.raises(ExpressionFault) as caught:
        parse(text)
    assert caught.value.hint == hint


def test_intrinsic_nesting_limit() -> None:
    """Specification 1.2: the eleventh level is a fault at its place."""
    deepest = "States.Array(" * 10 + ")" * 10
    assert isinstance(parse(deepest), IntrinsicCall)
    with pytest.raises(ExpressionFault) as caught:
        parse(f"States.Array({deepest})")
    assert (caught.value.code, caught.value.offset) == ("V-INTR-04", 130)


@given(
    st.text()
    | st.lists(
        st.sampled_from(
            [
                *FUNCTIONS,
                "(",
                ")",
                ",",
                "'",
                "\\",
                "{}",
                " ",
                "$",
                ".a",
                "[",
                "]",
                "1",
                "null",
                "-",
                '"',
            ]
        )
    ).map("".join)
)
def test_intrinsic_parser_raises_only_expression_fault(text: str) -> None:
    """Nothing but ExpressionFault is raised, at an offset within the text."""
    try:
        places = [remark.offset for remark in check(parse(text), DEFAULT)]
    except ExpressionFault as fault:
        places = [fault.offset]
    assert all(0 <= place <= len(text) for place in places)


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_string_argument_escapes(text: str) -> None:
    """With backslashes and quotes escaped, any text is an argument."""
    escaped = re.sub(r"(['\\])", r"\\\1", text)
    assert evaluate(f"States.Array('{escaped}')") == [text]


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_format_template_escapes(text: str) -> None:
    """With braces escaped too, a template prints itself."""
    escaped = re.sub(r"(['\\{}])", r"\\\1", text)
    assert evaluate(f"States.Format('{escaped}')") == text


# --------------------------------------------------------------------------------------------
# Static remarks


@pytest.mark.parametrize(
    ("text", "default", "aws"),
    [
        ("States.Array()", [], []),
        ("States.Format('{} {}', $.a, 1)", [], []),
        ("States.MathSubtract(1, 2)", [], ["V-INTR-01"]),
        ("States.Array(States.Coalesce($.a))", [], ["V-INTR-01"]),
        ("States.UUID(1)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.Format()", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.ArrayLength($.a, $.b)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.JsonMerge($.a, $.b)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.JsonMerge($.a, $.b, true)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.JsonMerge($.a, $.b, false)", [], []),
        ("States.JsonMerge($.a, $.b, $.c)", [], []),
        ("States.JsonMerge('a', $.b, false)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.MathAdd(1, '-1')", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.MathAdd(true, null)", ["V-INTR-03"] * 2, ["V-INTR-03"] * 2),
        ("States.MathAdd(1, 2, 3)", ["V-INTR-06"], ["V-INTR-06"]),
        ("States.ArrayRange(1, 2)", ["V-INTR-06"], ["V-INTR-06"]),
        ("States.ArrayRange(1, 2, 0)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.MathRandom()", [], ["V-INTR-03"]),
        ("States.MathRandom(1)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.MathRandom(1, 2)", [], []),
        ("States.Hash($.a, 'sha256')", ["V-INTR-06"], ["V-INTR-06"]),
        ("States.Hash($.a, 'CRC')", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.Hash($.a, $.b)", [], []),
        ("States.Format('{')", ["V-INTR-05"], ["V-INTR-05"]),
        ("States.Format('{\"a\": {}}', 1)", ["V-INTR-05"], ["V-INTR-05"]),
        (r"States.Format('\{\"a\": {}\}', 1)".replace('\\"', '"'), [], []),
        ("States.StringToJson('{\"a\": 1}')", [], []),
        ("States.Format('{:.2f}', 1)", [], ["V-INTR-05"]),
        ("States.Format('{}')", ["V-INTR-07"], ["V-INTR-07"]),
        ("States.Format('x', 1)", ["V-INTR-07"], ["V-INTR-07"]),
        ("States.Format($.a, 1)", [], []),
        ("States.Format(1)", ["V-INTR-03"], ["V-INTR-03"]),
        ("States.Merge($.a, null)", [], ["V-INTR-01"]),
        ("States.Merge($.a, 1)", ["V-INTR-03"], ["V-INTR-01"]),
    ],
)
def test_static_findings_of_calls(text: str, default: list[str], aws: list[str]) -> None:
    """Rule ids under the default and the aws profile."""
    call = parse(text)
    assert [remark.code for remark in check(call, DEFAULT)] == default
    assert [remark.code for remark in check(call, AWS)] == aws


def test_static_finding_offset() -> None:
    """The offset of a stray brace is that of the brace in the call's text."""
    text = "States.Format('a{} { ', States.Hash(1, 'md5'))"
    places = {remark.code: remark.offset for remark in check(parse(text), DEFAULT)}
    assert places == {"V-INTR-05": text.index("{ "), "V-INTR-06": text.index("'md5'")}


def test_compile_refuses_wrong_argument_count() -> None:
    """A call that was never checked is refused before it runs."""
    with pytest.raises(ExpressionFault) as caught:
        compile(parse("States.ArrayLength()"), definite, optional, DEFAULT)
    assert caught.value.code == "V-INTR-03"
    assert caught.value.message == "States.ArrayLength takes 1 argument, not 0"


def test_allowed_in_error_path_exist() -> None:
    """The set and the table agree."""
    assert set(FUNCTIONS) >= ALLOWED_IN_ERROR_PATH


def test_every_function_is_tested() -> None:
    """No function goes untested."""
    returning = " ".join(text for text, expected in RESULTS if not isinstance(expected, type))
    assert [name for name in FUNCTIONS if f"{name}(" not in returning] == []


# --------------------------------------------------------------------------------------------
# Laws

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=12
)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(-1e15, 1e15)


@given(VALUES)
def test_string_to_json_inverts_json_to_string(value: Json) -> None:
    """StringToJson undoes JsonToString."""
    assert json_equal(evaluate("States.StringToJson(States.JsonToString($))", value), value)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=1000))
def test_base64_round_trip(text: str) -> None:
    """Base64Decode undoes Base64Encode."""
    assert evaluate("States.Base64Decode(States.Base64Encode($))", text) == text


@given(st.lists(VALUES), st.integers(1, 10))
def test_array_partition_chunks(items: list[Json], size: int) -> None:
    """All chunks but the last have the wanted size."""
    chunks = evaluate(f"States.ArrayPartition($, {size})", items)
    assert [item for chunk in chunks for item in chunk] == items
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert all(chunks)


@given(st.lists(VALUES))
def test_array_unique(items: list[Json]) -> None:
    """ArrayUnique keeps one of each, is idempotent and loses no value."""
    once = evaluate("States.ArrayUnique($)", items)
    assert evaluate("States.ArrayUnique($)", once) == once
    for at, item in enumerate(once):
        assert not any(json_equal(item, other) for other in once[:at])
    for item in items:
        assert evaluate("States.ArrayContains($.all, $.one)", {"all": once, "one": item})


@given(st.lists(st.text("abc", min_size=1)), st.sampled_from([",", ";", "-"]))
def test_string_split_inverts_join(pieces: list[str], delimiter: str) -> None:
    """StringSplit undoes joining pieces that are not empty."""
    data = {"text": delimiter.join(pieces), "by": ",;-"}
    assert evaluate("States.StringSplit($.text, $.by)", data) == pieces


@given(NUMBERS, NUMBERS)
def test_math_subtract_and_multiply_are_exact(one: float, other: float) -> None:
    """Differences and products are the exact decimal ones, rounded once to a double."""
    exact = Decimal(repr(one)) - Decimal(repr(other))
    found = evaluate("States.MathSubtract($[0], $[1])", [one, other])
    assume(abs(exact) < 10**25)
    assert float(found) == float(exact)
    assert evaluate("States.MathMultiply($[0], $[1])", [one, 1]) == one


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_math_add_32_bit_limit(one: int, other: int) -> None:
    """Sums outside 32 bits fail."""
    if -(2**31) <= one + other < 2**31:
        assert evaluate("States.MathAdd($[0], $[1])", [one, other]) == one + other
    else:
        with pytest.raises(StateError):
            evaluate("States.MathAdd($[0], $[1])", [one, other])


@given(TEXT, st.integers(0, 20))
def test_truncate_token_limit(text: str, tokens: int) -> None:
    """What remains is a prefix of at most that many tokens."""
    found = evaluate(f"States.Truncate($, {tokens})", text)
    if found != text:
        assert found.endswith("...")
        assert text.startswith(found[:-3])
        assert len(found[:-3].encode()) <= 4 * tokens < len(text.encode())


@given(st.dictionaries(TEXT, VALUES), st.lists(TEXT, min_size=1, max_size=3))
def test_pick_and_omit_partition_object(value: dict[str, Json], keys: list[str]) -> None:
    """Pick and Omit with the same keys share nothing and lose nothing."""
    quoted = ", ".join("'" + re.sub(r"(['\\])", r"\\\1", key) + "'" for key in keys)
    picked = evaluate(f"States.Pick($, {quoted})", value)
    omitted = evaluate(f"States.Omit($, {quoted})", value)
    assert not picked.keys() & omitted.keys()
    assert {**picked, **omitted} == value


# --------------------------------------------------------------------------------------------
# What AWS was recorded doing

RECORDINGS = Path(__file__).parents[3] / "shared/corpus/aws/open.jsonl"


def recorded() -> Iterator[Any]:
    """Recorded executions of one Pass state whose Parameters are intrinsic calls."""
    if not RECORDINGS.exists():
        yield pytest.param({}, marks=pytest.mark.skip("the recordings are not here"))
        return
    for line in RECORDINGS.read_bytes().splitlines():
        case = json.loads(line)
        if case["kind"] != "execute" or not case["family"].startswith("intrinsic_functions/"):
            continue
        if "jsonata" not in case["tags"]:
            yield pytest.param(case, id=case["id"].split("::")[-1])


@pytest.mark.parametrize("case", list(recorded()))
def test_intrinsics_match_recorded_aws_output(case: Json) -> None:
    """Each call, evaluated alone under the aws profile, yields what AWS answered."""
    (state,) = case["definition"]["States"].values()
    frame = Running(
        contexts={"Execution": {"Input": case["input"]}, "StateMachine": {"Name": "some-machine"}}
    )
    output = {
        key.removesuffix(".$"): evaluate(text, case["input"], AWS, frame)
        for key, text in state["Parameters"].items()
    }
    for text in state["Parameters"].values():
        assert list(check(parse(text), AWS)) == []
    if state.get("OutputPath"):
        output = definite(state["OutputPath"], 0)({"result_path": output}, frame)
    expected = case["expected"]["output"]
    result = expected.get("FunctionResult") if isinstance(expected, dict) else None
    if isinstance(result, dict) and "$like" in result:
        assert re.fullmatch(result["$like"], str(output["FunctionResult"]))
    else:
        assert json_equal(output, expected)
