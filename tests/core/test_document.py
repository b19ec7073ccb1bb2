"""Reading documents: what is accepted, what is refused, and where."""

import io
import json
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, read, read_value
from asl.core.errors import AslError, DocumentNotFound, NotJson
from asl.core.pointers import escape
from asl.core.source import Limits, Place
from asl.core.values import MAX_DEPTH, compact, json_equal

pytestmark = pytest.mark.quick

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=4)


def faults(
    text: str | bytes, format: str, **limits: int
) -> list[tuple[str, int | None, int | None]]:
    """Code, line and column of everything that is wrong with a text."""
    with pytest.raises(InvalidDocument) as caught:
        read(
            text.encode() if isinstance(text, str) else text, format=format, limits=Limits(**limits)
        )
    return [(each.code, each.line, each.column) for each in caught.value.report]


def codes(raw: bytes, format: str | None) -> set[str]:
    """The codes of what is wrong with a text, none if it is sound."""
    try:
        read_value(raw, format=format)
    except InvalidDocument as error:
        return {each.code for each in error.report}
    return set()


def pointers(value: Any, at: str = "") -> list[tuple[str, Any]]:
    """Every JSON Pointer into a value, with what it points to."""
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    below = [pair for key, item in members for pair in pointers(item, f"{at}/{escape(str(key))}")]
    return [(at, value), *below]


# ---------------------------------------------------------------------------- laws


@given(OBJECT, st.sampled_from([None, 2]))
def test_reading_what_was_written_gives_the_same_value(value: Any, indent: int | None) -> None:
    """JSON that anybody wrote is read as the same value, as bytes or as text."""
    text = json.dumps(value, indent=indent, ensure_ascii=indent is None)
    assert json_equal(read(text.encode()).value, value)
    assert json_equal(read(text).value, value)


@given(OBJECT)
def test_json_is_read_alike_as_yaml(value: Any) -> None:
    """A JSON text without odd characters is also a YAML text of the same value."""
    assert json_equal(read(json.dumps(value).encode(), format="yaml").value, value)


@given(OBJECT, st.sampled_from([None, 2]), st.sampled_from(["json", "yaml"]))
def test_every_value_and_key_is_found_in_the_text(
    value: Any, indent: int | None, format: str
) -> None:
    """The place of a pointer is where the text of that value, or of its key, begins."""
    text = json.dumps(value, indent=indent)
    document = read(text.encode(), format=format)
    for pointer, item in pointers(value):
        found, _ = json.JSONDecoder().raw_decode(text[document.offset(pointer) :])
        assert json_equal(found, item)
        steps = pointer.split("/")
        if len(steps) > 1 and pointer:
            at = document.offset(pointer, at_key=True)
            if text[at] == '"' and not isinstance(_parent(value, pointer), list):
                key, _ = json.JSONDecoder().raw_decode(text[at:])
                assert escape(key) == steps[-1]


def _parent(value: Any, pointer: str) -> Any:
    return dict(pointers(value))[pointer.rpartition("/")[0]]


@given(st.binary(max_size=60), st.sampled_from([None, "json", "yaml"]))
def test_random_bytes_never_crash(raw: bytes, format: str | None) -> None:
    """Whatever is read, it is a value or it is refused with a report."""
    codes(raw, format)


SHREDS = st.sampled_from(
    [
        *"{}[],:\"'\\?-#|%aé \t\n\x85\ufeff\x00",
        *(
            "\\u",
            "\\UFFFFFFFF",
            "&x ",
            "*x ",
            "!t ",
            "!!int ",
            "!<",
            "%YAML 1.1\n",
            "---\n",
            "...",
            "<<: ",
        ),
        *(
            "0x1",
            "1e999",
            ".nan",
            "NaN",
            "01",
            "null",
            "true",
            "\n  ",
            "a: ",
            "- ",
            "? ",
            ">-\n",
            "|\n",
        ),
    ]
)


@given(st.lists(SHREDS, max_size=20).map("".join), st.sampled_from(["json", "yaml"]))
def test_shreds_of_syntax_never_crash(text: str, format: str) -> None:
    """Fragments in any order are a value or are refused."""
    codes(text.encode(), format)


@given(OBJECT, TEXT, JSON, JSON)
def test_a_duplicate_key_is_refused_at_the_second(
    value: dict[str, Any], key: str, one: Any, two: Any
) -> None:
    """The place is the second key, the related place the first."""
    value.pop(key, None)
    start = "{" + "".join(f"{compact(k)}: {compact(v)}, " for k, v in value.items())
    first = f"{start}{compact(key)}: {compact(one)}, "
    with pytest.raises(InvalidDocument) as caught:
        read(f"{first}{compact(key)}: {compact(two)}}}")
    (found,) = caught.value.report
    assert (found.code, found.line, found.column) == ("V-TOP-01", 1, len(first) + 1)
    assert found.related[0].column == len(start) + 1


@given(st.text(max_size=40))
def test_the_judge_agrees_with_the_fast_parser(text: str) -> None:
    """What orjson accepts is refused only for duplicate keys or for size; the rest is refused."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        accepted = False
    else:
        accepted = True
    assert bool(codes(text.encode("utf-8", "surrogatepass"), "json") - {"V-TOP-01"}) is not accepted


# ---------------------------------------------------------------------------- facts of JSON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,}', ("READ-01", 1, 8)),
        ("{'a': 1}", ("READ-01", 1, 2)),
        ('{\n  "a": 1\n  "b": 2\n}', ("READ-01", 2, 9)),
        ("{a: 1}", ("READ-01", 1, 2)),
        ('{"a": True}', ("READ-01", 1, 7)),
        ('{"a": 1 // why\n}', ("READ-01", 1, 9)),
        ('{"a": 01}', ("READ-01", 1, 7)),
        ('{"a": .5}', ("READ-01", 1, 7)),
        ('{"a": "x\ny"}', ("READ-01", 1, 7)),
        ('{"a": "\t"}', ("READ-01", 1, 8)),
        ('{"a": "\\q"}', ("READ-01", 1, 8)),
        ('{"a" 1}', ("READ-01", 1, 5)),
        ('{"a": [1, 2', ("READ-01", 1, 12)),
        ('{"a": [1, 2}', ("READ-01", 1, 12)),
        ('{"a": }', ("READ-01", 1, 7)),
        ("", ("READ-01", 1, 1)),
        ('{"a": 1} x', ("READ-01", 1, 10)),
        ('{"a": NaN}', ("READ-02", 1, 7)),
        ('{"a": -Infinity}', ("READ-02", 1, 7)),
        ('{"a": 1e999}', ("READ-02", 1, 7)),
        ('{"a": ' + "1" * 4001 + "}", ("READ-02", 1, 7)),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", ("READ-03", 1, 206)),
        ('{"é": "\\ud800"}', ("READ-09", 1, 7)),
        ('{"a": 1}\n{"a": 2}', ("READ-10", 2, 1)),
        ("[]", ("V-TOP-01", 1, 1)),
        ("null", ("V-TOP-01", 1, 1)),
    ],
)
def test_faults_of_json_have_a_code_and_a_place(text: str, expected: tuple[str, int, int]) -> None:
    """Lines and columns count characters from 1."""
    assert faults(text, "json") == [expected]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"a": 1,}', "no comma after the last member"),
        ("{'a': 1}", 'strings take double quotes: "..."'),
        ("{“a”: 1}", 'strings take double quotes: "..."'),
        ('{"a": 1 "b": 2}', "separate members with ','"),
        ("{a: 1}", 'put it in double quotes: "a"'),
        ('{"a": False}', "write false"),
        ('{"a": None}', "write null"),
        ("{# x\n}", 'JSON has no comments; put the text into a "Comment" field'),
        ('{"a": [1', "add the closing ']'"),
    ],
)
def test_usual_mistakes_get_a_hint(text: str, hint: str) -> None:
    """The hint says how to mend it."""
    with pytest.raises(InvalidDocument) as caught:
        read(text, format="json")
    assert [each.hint for each in caught.value.report] == [hint]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("A:\n\tB: 1\n", "indent with blanks, not with tabs"),
        ("A:\n    B: 1\n   C: 2\n", "indent it like its neighbours"),
        ("A: {% 1 %}\n", "put text with special characters in quotes"),
        ("A: [*]\n", "put text with special characters in quotes"),
        ("A: *.txt\n", "put text with special characters in quotes"),
        ("A: @ann\n", "put text with special characters in quotes"),
        ("A: Publish {{$.a}}: now?\n", "put text with a colon and a blank in quotes"),
        (
            'A: "\\d+"\n',
            "in double quotes a backslash begins an escape: use single quotes, or write two",
        ),
    ],
)
def test_usual_mistakes_in_yaml_get_a_hint(text: str, hint: str) -> None:
    """What the parser says of them is for those who know its grammar."""
    with pytest.raises(InvalidDocument) as caught:
        read(text, format="yaml")
    assert [each.hint for each in caught.value.report] == [hint]


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_is_called_empty(format: str, text: str) -> None:
    """In either format."""
    with pytest.raises(InvalidDocument, match="the document is empty"):
        read(text.encode(), format=format)


def test_a_document_is_shown_by_its_name() -> None:
    """All that it says would bury what it is shown with."""
    assert repr(read('{"A": 1}', name="review.asl.json")) == "<Document 'review' in asl>"


def test_all_faults_are_reported_not_only_the_first() -> None:
    """Faults after which reading can go on are gathered, in the order of the text."""
    found = faults('{"a": NaN, "b": 1e999, "a": "\\udc00", "c": [1,]}', "json")
    assert [code for code, _, _ in found] == [
        "READ-02",
        "READ-02",
        "V-TOP-01",
        "READ-09",
        "READ-01",
    ]


def test_large_integers_stay_exact() -> None:
    """An integer beyond 64 bits is not rounded to a float."""
    text = '{"n": 123456789012345678901234567890, "m": -18446744073709551616}'
    assert read(text).value == {"n": 123456789012345678901234567890, "m": -(2**64)}


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("digits", [308, 400, 4000])
def test_integers_that_no_double_holds_are_read(digits: int, format: str) -> None:
    """Up to the limit of digits, as they are within a dict."""
    number = int("9" * digits)
    text = f'{{"a": [-{number}, {number}]}}'
    assert read(text.encode(), format=format).value == {"a": [-number, number]}


def test_the_deepest_document_is_read() -> None:
    """Containers may be nested as deep as the limit says, and no deeper."""
    text = '{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    assert read(text).value
    assert read(text.encode(), format="yaml").value


# ---------------------------------------------------------------------------- facts of YAML


def test_yaml_scalars_follow_the_core_schema() -> None:
    """Only JSON's own types are recognised, in the spelling of YAML 1.2."""
    text = """\
        on: off
        yes: no
        octal: [010, 0o10, 0x10]
        date: 2030-01-02
        time: 12:30:45
        null: [~, null, NULL, ]
        floats: [1.5, .5, 1e3, -0.0]
        quoted: ["1", 'true']
        tagged: [!!str 1, !!int "7", !!float 2]
        under: 1_000
        """
    assert read(text.replace("null: [", "nulls: [")).value == {
        "on": "off",
        "yes": "no",
        "octal": [10, 8, 16],
        "date": "2030-01-02",
        "time": "12:30:45",
        "nulls": [None, None, None],
        "floats": [1.5, 0.5, 1000.0, -0.0],
        "quoted": ["1", "true"],
        "tagged": ["1", 7, 2.0],
        "under": "1_000",
    }


def test_aliases_repeat_values() -> None:
    """An alias stands for the anchored value, and its members are found where they are written."""
    document = read("a: &x {b: 1}\nc: *x\n")
    assert document.value == {"a": {"b": 1}, "c": {"b": 1}}
    assert document.locate("/c") == Place(2, 4)
    assert document.locate("/c/b") == Place(1, 11)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\nb: 2\n", ("READ-01", 2, 2)),
        ("a:\n\tb: 1\n", ("READ-01", 2, 1)),
        ("a: *x\n", ("READ-01", 1, 4)),
        ('a: "\\UFFFFFFFF"\n', ("READ-01", 1, 1)),
        ("a: \x07\n", ("READ-01", 1, 4)),
        ("a: .nan\n", ("READ-02", 1, 4)),
        ("a: -.inf\n", ("READ-02", 1, 4)),
        ("a: 1e999\n", ("READ-02", 1, 4)),
        ("a: 0x" + "f" * 3999 + "\n", ("READ-02", 1, 4)),
        ("a: " + "[" * 200 + "]" * 200, ("READ-03", 1, 203)),
        ("a: &x [*x]\n", ("READ-06", 1, 8)),
        ("a: !foo 1\n", ("READ-07", 1, 4)),
        ("a: !!set {b}\n", ("READ-07", 1, 4)),
        ("a: !!int x\n", ("READ-07", 1, 4)),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ("READ-07", 3, 3)),
        ("1: x\n", ("READ-08", 1, 1)),
        ("true: x\n", ("READ-08", 1, 1)),
        ("a: 1\n~: x\n", ("READ-08", 2, 1)),
        ("? [a]\n: x\n", ("READ-08", 1, 3)),
        ("a: {{x}}\n", ("READ-08", 1, 5)),
        ('a: "\\ud800"\n', ("READ-09", 1, 4)),
        ("a: 1\n---\nb: 2\n", ("READ-10", 2, 1)),
        ("a: 1\nb: 2\na: 3\n", ("V-TOP-01", 3, 1)),
        ("a:\n  b: 1\n  'b': 2\n", ("V-TOP-01", 3, 3)),
        ("- a\n", ("V-TOP-01", 1, 1)),
        ("# nothing\n", ("V-TOP-01", 1, 1)),
    ],
)
def test_faults_of_yaml_have_a_code_and_a_place(text: str, expected: tuple[str, int, int]) -> None:
    """Lines and columns count characters from 1."""
    assert faults(text, "yaml") == [expected]


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


def deep_bomb() -> str:
    lines = ["a0: &a0 [" + "[" * 60 + "]" * 60 + "]"]
    lines += [f"a{i}: &a{i} [{'[' * 60}*a{i - 1}{']' * 60}]" for i in range(1, 5)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (bomb(10, 9), "READ-05"),
        (bomb(2, 150), "READ-05"),
        (deep_bomb(), "READ-03"),
        ("[" * 100_000, "READ-03"),
        ("- " * 50_000, "READ-03"),
        ("a: !" + "!" * 100_000 + "\n", "READ-07"),
    ],
)
def test_yaml_bombs_are_refused_quickly(text: str, code: str) -> None:
    """A small text that stands for a huge value costs a moment, not the machine."""
    started = time.process_time()
    assert faults(text, "yaml")[0][0] == code
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "format", "limits"),
    [
        ('{"a": "xxxxxxxxxxxxxxxxxxxx"}', "json", {"max_bytes": 20}),
        ('{"a": "éééééééé"}', "json", {"max_bytes": 20}),
        ("a: xxxxxxxxxxxxxxxxxxxx\n", "yaml", {"max_yaml_bytes": 20}),
        ('{"a": [1, 2, 3, 4, 5]}', "json", {"max_values": 5}),
        ("a: [1, 2, 3, 4, 5]\n", "yaml", {"max_yaml_values": 5}),
    ],
)
def test_what_is_too_large_is_refused(text: str, format: str, limits: dict[str, int]) -> None:
    """Bytes and values are bounded; bytes count in UTF-8."""
    assert [code for code, _, _ in faults(text, format, **limits)] == ["READ-04"]


def test_the_limit_of_values_is_exact() -> None:
    """Commas in strings do not count as values."""
    document = read('{"a": ",,,,,,,,", "b": [1]}', limits=Limits(max_values=4))
    assert document.value == {"a": ",,,,,,,,", "b": [1]}


# ---------------------------------------------------------------------------- sources


def test_a_string_is_a_path_or_a_text(tmp_path: Path) -> None:
    """Text begins with a brace or has several lines; anything else is a path."""
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    assert read(str(path)).value == read(path).value == read('\ufeff {"a": 1}').value == {"a": 1}
    assert read("a: 1\n").value == {"a": 1}
    assert read(path).source.name == str(path)


@pytest.mark.parametrize("stream", [io.StringIO('{"a": 1}'), io.BytesIO(b'{"a": 1}')])
def test_open_files_are_read(stream: Any) -> None:
    """Text and binary streams give the same document."""
    assert read(stream, name="x.json").value == {"a": 1}


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.json", "{}", "json"),
        ("a.yml", "a: 1", "yaml"),
        ("a.YAML", "{a: 1}", "yaml"),
        ("a.asl", '{"a": 1}', "json"),
        ("a.asl", "a: 1\n", "yaml"),
        (None, "a: 1\n", "yaml"),
    ],
)
def test_format_follows_suffix_or_shape(name: str | None, text: str, format: str) -> None:
    """A known suffix decides; otherwise JSON begins with a bracket."""
    assert read(text.encode(), name=name).source.format == format


def test_a_dict_is_a_document_without_text() -> None:
    """It is copied, has no places, and must be JSON."""
    value = {"a": {"b": [1]}}
    document = read(value)
    value["a"]["b"].append(2)
    assert document.value == {"a": {"b": [1]}}
    assert document.locate("/a/b") == Place(None, None)
    with pytest.raises(NotJson, match=r"\$\['a'\]"):
        read({"a": (1,)})


@pytest.mark.parametrize(
    ("raw", "place"), [(b'{"a": "\xff"}', (1, 8)), ('{\n"é": "x'.encode() + b"\xe9", (2, 8))]
)
def test_bytes_that_are_not_utf8_are_refused(raw: bytes, place: tuple[int, int]) -> None:
    """The place counts the characters before the first bad byte."""
    assert faults(raw, "json") == [("READ-09", *place)]


def test_a_text_with_a_lone_surrogate_is_refused() -> None:
    """Python strings can hold half a character; documents cannot."""
    with pytest.raises(InvalidDocument) as caught:
        read('{"a": "\ud800"}')
    assert [(each.code, each.column) for each in caught.value.report] == [("READ-09", 8)]


def test_a_missing_file_names_a_near_one(tmp_path: Path) -> None:
    """The error has the path and a file of the folder with a similar name."""
    (tmp_path / "review.asl.json").write_text("{}")
    with pytest.raises(DocumentNotFound, match=r"did you mean 'review\.asl\.json'\?"):
        read(tmp_path / "reveiw.asl.json")
    with pytest.raises(DocumentNotFound, match=r"did you mean 'review\.asl\.json'\?"):
        read(tmp_path / "review.yaml")
    with pytest.raises(DocumentNotFound, match="is a directory"):
        read(tmp_path)
    with pytest.raises(DocumentNotFound):
        read("a\0b")


@pytest.mark.parametrize("what", [3, None, ["a"]])
def test_other_values_are_misuse(what: Any) -> None:
    """Only paths, texts, bytes, dicts and streams can be read."""
    with pytest.raises(AslError, match="cannot read a document"):
        read(what)
    with pytest.raises(AslError, match="unknown format"):
        read("{}", format="toml")


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_a_missing_member_is_placed_at_its_parent(format: str) -> None:
    """The nearest ancestor stands in, by its key if it has one."""
    document: Document = read(b'{"States": {\n  "A": {"Type": "Pass"}}}', format=format)
    assert document.locate("/States/A") == Place(2, 8)
    assert document.locate("/States/A", at_key=True) == Place(2, 3)
    assert document.locate("/States/A/Next") == Place(2, 3)
    assert document.locate("/States/A/Type/0/x") == Place(2, 9)
    assert document.locate("/nope") == Place(1, 1)
    assert document.locate("") == Place(1, 1)
