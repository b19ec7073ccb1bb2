"""What a failing query says: the code and the words of the reference implementation."""

from contextlib import suppress

import pytest

from asl.core.errors import ExpressionFault
from asl.expr.jsonata import QueryFault, parse
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.scopes import AWS_LIMITS
from tests.expr.jsonata.frames import evaluate, still

FAULTS = {
    "$randomSeeded(1)": "T1006: Attempted to invoke a non-function",
    "$eval('1')": "T1006: Attempted to invoke a non-function",
    "sum(1)": "T1005: Attempted to invoke a non-function. Did you mean $sum?",
    "nope(1)": "T1006: Attempted to invoke a non-function",
    "sum(?)": "T1007: Attempted to partially apply a non-function. Did you mean $sum?",
    "'a' + 1": 'T2001: The left side of the "+" operator must evaluate to a number',
    "1 - 'a'": 'T2002: The right side of the "-" operator must evaluate to a number',
    "-'a'": 'D1002: Cannot negate a non-numeric value: "a"',
    "[1.5..3]": "T2003: The left side of the range operator (..) must evaluate to an integer",
    "[1..'a']": "T2004: The right side of the range operator (..) must evaluate to an integer",
    "1 ~> 2": "T2006: The right side of the function application operator ~> must be a function",
    "1 < 'a'": (
        'T2009: The values 1 and "a" either side of operator "<" must be of the same data type'
    ),
    "[] >= 1": (
        'T2010: The expressions either side of operator ">=" must evaluate to numeric or string '
        "values"
    ),
    "{1: 2}": "T1003: Key in object structure must evaluate to a string; got: 1",
    "{'a': 1, 'a': 2}": 'D1009: Multiple key definitions evaluate to same key: "a"',
    "[{'a': 1}, {'a': 'b'}]^(a)": (
        'T2007: Type mismatch when comparing values 1 and "b" in order-by clause'
    ),
    "{'a': 1} ~> |$|5|": (
        "T2011: The insert/update clause of the transform expression must evaluate to an object: 5"
    ),
    "$uppercase(1)": 'T0410: Argument 1 of function "uppercase" does not match function signature',
    "$substring('a', 1, 2, 3)": (
        'T0410: Argument 4 of function "substring" does not match function signature'
    ),
    "$range('0', 4, 1)": (
        'T0410: Argument 1 of function "range" does not match function signature'
    ),
    "$range(0, 4, 1, 2)": (
        'T0410: Argument 4 of function "range" does not match function signature'
    ),
    "[1].$uppercase()": (
        'T0411: Context value is not a compatible type with argument 1 of function "uppercase"'
    ),
    "$sum(['a'])": 'T0412: Argument 1 of function "sum" must be an array of "numbers"',
    "$number('x')": 'D3030: Unable to cast value to a number: "x"',
    "$sqrt(-1)": "D3060: The sqrt function cannot be applied to a negative number: -1",
    "$power(10, 999)": (
        "D3061: The power function has resulted in a value that cannot be represented as a JSON "
        "number: base=10, exponent=999"
    ),
    "$single([1, 2])": (
        "D3138: The $single() function expected exactly 1 matching result.  Instead it matched "
        "more."
    ),
    "$error('because')": "D3137: because",
    "$error()": "D3137: $error() function evaluated",
    "$assert(false)": "D3141: $assert() statement failed",
    "$decodeUrl('%')": 'D3140: Malformed URL passed to $decodeUrl(): "%"',
    "$toMillis('x')": (
        "D3110: The argument of the toMillis function must be an ISO 8601 formatted timestamp. "
        'Given "x"'
    ),
    "$formatNumber(1, '0.0.0')": (
        "D3081: The sub-picture must not contain more than one instance of the "
        "'decimal-separator' character"
    ),
    "$fromMillis(0, '[q]')": ('D3132: Unknown component specifier "q" in date/time picture string'),
    "$split('ab', /x*/)": "D1004: Regular expression matches zero length string",
    "$hash('a', 'CRC')": (
        "D3137: Hash algorithm 'CRC' must be one of SHA-1, SHA-384, SHA-256, SHA-512, MD5"
    ),
    "$partition([1], -1)": "D3137: Second argument must be zero or greater",
    "$parse('{')": "D3137: Invalid JSON",
    "1 / 0": "D1001: Number out of range: null",
    "0 / 0 & ''": "D3001: Attempting to invoke string function on Infinity or NaN",
    "$pad('a', 1 / 0)": "D1001: Number out of range: null",
    "$fromMillis(0 / 0)": "D1001: Number out of range: null",
    "$formatInteger(1 / 0, 'w')": "D1001: Number out of range: null",
    "$formatNumber(0 / 0, '0')": "D1001: Number out of range: null",
    "$split('a,b', ',', 0 / 0)": "D1001: Number out of range: null",
    "$sum": "D1016: The result of the expression has no JSON form: a function",
    "{'a': /a/}": "D1016: The result of the expression has no JSON form: a function",
    "'\\ud83d'": (
        "D1014: The result of the expression has no JSON form: half of a surrogate pair is no "
        "character"
    ),
}


@pytest.mark.parametrize(("source", "words"), FAULTS.items(), ids=list(FAULTS))
def test_fault_messages(source: str, words: str) -> None:
    """The code, a colon and the message, with values as JSON."""
    with pytest.raises(QueryFault) as raised:
        evaluate(source)
    assert str(raised.value) == words


@pytest.mark.parametrize("number", ["0 / 0", "1 / 0", "-1 / 0"])
@pytest.mark.parametrize("name", sorted({*NATIVES} - {"error"}))
def test_functions_accept_non_finite_numbers(name: str, number: str) -> None:
    """It passes the number on, or raises a fault."""
    for arguments in ("N", "[N]", "1, N", "N, 1", "'a', N", "N, '0'", "'a', 'a', N", "1, 1, N"):
        query = parse(f"${name}({arguments.replace('N', number)})", AWS_LIMITS)
        with suppress(QueryFault):
            query({}, still())


def test_fault_message_truncates_values() -> None:
    """A message stays short whatever it tells of."""
    with pytest.raises(QueryFault) as raised:
        evaluate("-$states.input", ["x" * 100_000])
    assert len(str(raised.value)) < 2000


REFUSED = {
    "1 +": ("S0207", 3),
    "(1": ("S0203", 2),
    "[1, 2": ("S0203", 5),
    "1 2": ("S0201", 2),
    "'abc": ("S0101", 0),
    "`abc": ("S0105", 0),
    "'\\y'": ("S0103", 2),
    "/abc": ("S0302", 0),
    "1 /* no end": ("S0106", 2),
    "x[1!2]": ("S0204", 3),
    "1 := 2": ("S0212", 0),
    "function(x) { 1 }": ("S0208", 9),
    "a.%.%.b": ("S0217", 0),
    "function($a)<n<s>> { 1 }": ("S0401", 0),
    "/(?=a)/": ("look-around is not supported", 0),
    "/(?<!a)b/": ("look-around is not supported", 0),
    "/(a)\\1/": ("back-references are not supported", 0),
    "/a{2,1}/": ("the regular expression cannot be used", 0),
    "/*a": ("S0106", 0),
}


@pytest.mark.parametrize(("source", "why"), REFUSED.items(), ids=list(REFUSED))
def test_syntax_errors(source: str, why: tuple[str, int]) -> None:
    """Whatever is wrong with a text has a name and a place that is not before the fault."""
    words, least = why
    with pytest.raises(ExpressionFault) as raised:
        parse(source)
    assert raised.value.message.startswith(words)
    assert least <= raised.value.offset <= len(source)
    assert raised.value.code == "V-JSONATA-01"
