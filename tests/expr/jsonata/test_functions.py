"""The built-in functions by group, and those of AWS."""

import pytest

from asl.core.values import Json
from asl.expr.jsonata import UNDEFINED, parse
from tests.expr.jsonata.frames import evaluate, still

pytestmark = pytest.mark.quick


def facts(rows: dict[str, Json]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("source", "value"), rows.items(), ids=list(rows))


def check(source: str, value: Json) -> None:
    found = evaluate(source)
    assert found == value
    assert type(found) is type(value)


@facts(
    {
        "$string(5)": "5",
        "$string(1.0)": "1",
        "$string(0.1 + 0.2)": "0.3",
        "$string(1e21)": "1e+21",
        "$string(0.000001)": "0.000001",
        "$string(1e-7)": "1e-7",
        "$string(123456789012345678)": "123456789012346000",
        "$string([1, null, {'a': 'é\\n'}])": '[1,null,{"a":"é\\n"}]',
        "$string({'f': $sum})": '{"f":""}',
        "$string({'a': [1]}, true)": '{\n  "a": [\n    1\n  ]\n}',
        "$string($nothing)": UNDEFINED,
        "$length('añ😀')": 3,
        "$substring('hello', 1)": "ello",
        "$substring('hello', 1, 3)": "ell",
        "$substring('hello', -3, 2)": "ll",
        "$substring('hello', -9)": "hello",
        "$substringBefore('a-b-c', '-')": "a",
        "$substringBefore('abc', '-')": "abc",
        "$substringAfter('a-b-c', '-')": "b-c",
        "$uppercase('ß')": "SS",
        "$lowercase('ÀB')": "àb",
        "$trim('  a \\n b ')": "a b",
        "$pad('a', 3) & '|'": "a  |",
        "$pad('a', -3, '#')": "##a",
        "$pad('a', 6, 'xyz')": "axyzxy",
        "$contains('abc', 'b')": True,
        "$contains('abc', /B/i)": True,
        "$contains('abc', /^b/)": False,
        "$split('a,b,,c', ',')": ["a", "b", "", "c"],
        "$split('a, b;c', /[,;]\\s*/, 2)": ["a", "b"],
        "$split('abc', '')": ["a", "b", "c"],
        "$join(['a', 'b'], '-')": "a-b",
        "$join('a')": "a",
        "$match('ab12cd3', /[a-z]+(\\d+)/)": [
            {"match": "ab12", "index": 0, "groups": ["12"]},
            {"match": "cd3", "index": 4, "groups": ["3"]},
        ],
        "$match('abc', /x/)": UNDEFINED,
        "$replace('a.b.c', '.', '-')": "a-b-c",
        "$replace('a.b.c', '.', '-', 1)": "a-b.c",
        "$replace('John Smith', /(\\w+)\\s(\\w+)/, '$2, $1')": "Smith, John",
        "$replace('265USD', /([0-9]+)USD/, '$$$1')": "$265",
        "$replace('abc', /b/, function($m) { '[' & $m.match & ']' })": "a[b]c",
        "$base64encode('myuser:mypass')": "bXl1c2VyOm15cGFzcw==",
        "$base64decode('bXl1c2VyOm15cGFzcw==')": "myuser:mypass",
        "$encodeUrlComponent('?x=te st')": "%3Fx%3Dte%20st",
        "$encodeUrl('https://a.b/?x=té')": "https://a.b/?x=t%C3%A9",
        "$decodeUrlComponent('%3Fx%3Dtest')": "?x=test",
        "$decodeUrl('a%20b%2Fc')": "a b%2Fc",
        "$uppercase($nothing)": UNDEFINED,
    }
)
def test_strings(source: str, value: Json) -> None:
    """Functions on strings count characters, not code units."""
    check(source, value)


@facts(
    {
        "$number('-1.5e2')": -150,
        "$number('0x1F')": 31,
        "$number(true)": 1,
        "$abs(-5)": 5,
        "$floor(-5.3)": -6,
        "$ceil(5.3)": 6,
        "$round(2.5)": 2,
        "$round(3.5)": 4,
        "$round(1.005, 2)": 1,
        "$round(125, -1)": 120,
        "$power(2, 10)": 1024,
        "$sqrt(2)": 2**0.5,
        "$sum([1, 2.5])": 3.5,
        "$sum(4)": 4,
        "$sum([])": 0,
        "$max([1, 3, 2])": 3,
        "$min([])": UNDEFINED,
        "$average([1, 2])": 1.5,
        "$formatBase(255, 16)": "ff",
        "$formatNumber(12345.6, '#,###.00')": "12,345.60",
        "$formatNumber(-2, '0.0;(0.0)')": "(2.0)",
        "$formatNumber(0.14, '01%')": "14%",
        "$formatNumber(1234.5678, '00.000e0')": "12.346e2",
        "$formatInteger(2789, 'w')": "two thousand, seven hundred and eighty-nine",
        "$formatInteger(1999, 'I')": "MCMXCIX",
        "$formatInteger(28, 'A')": "AB",
        "$formatInteger(22, '0;o')": "22nd",
        "$formatInteger(1234567, '#,##0')": "1,234,567",
        "$parseInteger('twelve thousand, four hundred and seventy-six', 'w')": 12476,
        "$parseInteger('12,345', '#,##0')": 12345,
        "$parseInteger('MCMXCIX', 'I')": 1999,
    }
)
def test_numbers(source: str, value: Json) -> None:
    """Numbers are doubles that are written without a needless fraction."""
    check(source, value)


@facts(
    {
        "$count([1, 2])": 2,
        "$count($nothing)": 0,
        "$append([1], [2, 3])": [1, 2, 3],
        "$append(1, 2)": [1, 2],
        "$append($nothing, 1)": 1,
        "$sort([3, 1, 2])": [1, 2, 3],
        "$sort([3, 1, 2], function($a, $b) { $a < $b })": [3, 2, 1],
        "$reverse([1, 2])": [2, 1],
        "$distinct([1, 2, 1, true, {'a': 1}, {'a': 1}])": [1, 2, True, {"a": 1}],
        "$zip([1, 2, 3], ['a', 'b'])": [[1, "a"], [2, "b"]],
        "$map([1, 2], function($v, $i) { $v * $i })": [0, 2],
        "$map([5], function($v) { $v })": 5,
        "$map(['a'], $uppercase)": "A",
        "$filter([1, 2, 3], function($v) { $v > 1 })": [2, 3],
        "$filter([1], function($v) { $v > 1 })": UNDEFINED,
        "$single([1, 2], function($v) { $v = 2 })": 2,
        "$reduce([1, 2, 3], function($a, $v) { $a + $v })": 6,
        "$reduce([1, 2], function($a, $v) { $a & $v }, '')": "12",
        "$keys({'a': 1, 'b': 2})": ["a", "b"],
        "$keys([{'a': 1}, {'b': 2, 'a': 3}])": ["a", "b"],
        "$lookup({'a': 1}, 'a')": 1,
        "$lookup([{'a': 1}, {'a': 2}], 'a')": [1, 2],
        "$spread({'a': 1, 'b': 2})": [{"a": 1}, {"b": 2}],
        "$merge([{'a': 1}, {'a': 2, 'b': 3}])": {"a": 2, "b": 3},
        "$each({'a': 1, 'b': 2}, function($v, $k) { $k & $v })": ["a1", "b2"],
        "$sift({'a': 1, 'b': 2}, function($v) { $v > 1 })": {"b": 2},
        "$exists($nothing)": False,
        "$exists(null)": True,
        "$boolean([0])": False,
        "$boolean([[0], [1]])": True,
        "$boolean({})": False,
        "$boolean($sum)": False,
        "$not(0)": True,
        "$not($nothing)": UNDEFINED,
        "$type([])": "array",
        "$type(null)": "null",
        "$type($sum)": "function",
        "$type($nothing)": UNDEFINED,
        "$clone({'a': [1]})": {"a": [1]},
        "$assert(true, 'x')": UNDEFINED,
    }
)
def test_arrays_and_objects(source: str, value: Json) -> None:
    """Functions on containers, and those that call a function for each item."""
    check(source, value)


@facts(
    {
        "$now()": "2023-11-14T22:13:20.123Z",
        "$now('[D1o] [MNn] [Y]')": "14th November 2023",
        "$millis()": 1700000000123,
        "$fromMillis(0)": "1970-01-01T00:00:00.000Z",
        "$fromMillis(1510067557121, '[M01]/[D01]/[Y0001] [h#1]:[m01][P]')": "11/07/2017 3:12pm",
        "$fromMillis(1510067557121, '[H01]:[m01] [z]', '-0500')": "10:12 GMT-05:00",
        "$fromMillis(1510067557121, '[FNn], [W], [X], [w], [d]')": "Tuesday, 45, 2017, 2, 311",
        "$fromMillis(-1)": "1969-12-31T23:59:59.999Z",
        "$toMillis('2017-11-07T15:07:54.972Z')": 1510067274972,
        "$toMillis('2017-11-07')": 1510012800000,
        "$toMillis('2017-11-07T15:07:54+0200')": 1510060074000,
        "$toMillis('7th Nov 2017', '[D1o] [MNn,3-3] [Y]')": 1510012800000,
        "$toMillis('2017-311', '[Y]-[d]')": 1510012800000,
        "$toMillis('11:30 pm', '[h]:[m] [P]')": 1700004600000,
        "$toMillis('nonsense', '[Y]')": UNDEFINED,
        "$toMillis('9', '[h]')": 1699952400000,
        "$toMillis('13 am', '[h] [P]')": 1699966800000,
        "$toMillis('2020-IX', '[Y]-[MI]')": 1598918400000,
        "$toMillis('2020-q', '[Y]-[MI]')": UNDEFINED,
        "$toMillis('2020-ix', '[Y]-[MI]')": UNDEFINED,
        "$fromMillis(0, '[YI,3]')": "MCMLXX",
        "$fromMillis(0, '[Y1,3] [Y,*-3]')": "970 970",
    }
)
def test_datetimes(source: str, value: Json) -> None:
    """Time is the frame's; missing parts on the left are those of now."""
    check(source, value)


@facts(
    {
        "$partition([1, 2, 3, 4, 5], 2)": [[1, 2], [3, 4], [5]],
        "$partition([0], 1)": [[0]],
        "$partition([0], 4)": [[0]],
        "$exists($partition([], 2))": False,
        "$range(0, 9, 3)": [0, 3, 6, 9],
        "$range(9, 0, -4)": [9, 5, 1],
        "$range(1, 9, 9)": 1,
        "$range(1.9, 3.9, 1)": [1, 2, 3],
        "$range(1, 3, 0)": UNDEFINED,
        "$range(3, 1, 1)": UNDEFINED,
        "$range(1, 3)": UNDEFINED,
        "$count($range(1, 2000, 1))": 2000,
        "$hash('input data', 'SHA-1')": "aaff4a450a104cd177d28d18d74485e8cae074b7",
        "$hash('a', 'MD5')": "0cc175b9c0f1b6a831c399e269772661",
        "$length($hash($string({'a': 1}), 'SHA-512'))": 128,
        "$parse('-0')": 0,
        "$parse('{\"a\": [1.5, null]}')": {"a": [1.5, None]},
        "$random(1) = $random(1)": True,
        "$random(1) = $random(2)": False,
    }
)
def test_aws_functions(source: str, value: Json) -> None:
    """What AWS adds: the last of a range is inclusive, and a range of one is its number."""
    check(source, value)


def test_random_functions_use_frame_entropy() -> None:
    """Two frames in the same state make the same numbers, and one makes different ones."""
    query = parse("[$random(), $random(), $uuid(), $uuid()]")
    one, other = query({}, still()), query({}, still())
    assert one == other
    assert len(set(one)) == 4
    assert all(0 <= number < 1 for number in one[:2])
    assert all(text[14] == "4" and text[19] in "89ab" for text in one[2:])
    assert sorted(evaluate("$shuffle([1..20])")) == list(range(1, 21))
