"""The layout of documents says what they have said."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.cli.main import cli
from asl.core.source import Source
from asl.dialects.formatter import format_document

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_json_keeps_its_value_and_its_layout(value: dict[str, Any]) -> None:
    """Laid out twice is laid out once."""
    text = format_document(Source("a.json", json.dumps(value), "json"))
    assert json.dumps(json.loads(text)) == json.dumps(value)
    assert format_document(Source("a.json", text, "json")) == text


def test_what_fits_stands_on_a_line() -> None:
    """Objects without others in them stay together."""
    states = '{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Choice","Choices":[]}}'
    text = f'{{"StartAt":"A","States":{states}}}'
    assert format_document(Source("a.json", text, "json")) == (
        '{\n  "StartAt": "A",\n  "States": {\n'
        '    "A": { "Type": "Pass", "Next": "B" },\n'
        '    "B": { "Type": "Choice", "Choices": [] }\n  }\n}\n'
    )


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ('{"ErrorEquals":["States.ALL","Busy"],"Next":"A"}', 1),
        ('{"a":{"b":1}}', 3),
        ('[["a"],["b"]]', 4),
        ('{"a":[["b"]]}', 5),
        ('[{"a":["b"]}]', 3),
        (f'{{"a":"{"x" * 89}"}}', 1),  # 100 columns
        (f'{{"a":"{"x" * 90}"}}', 3),
    ],
)
def test_lists_of_plain_values_stay_with_their_object(value: str, lines: int) -> None:
    """A line holds no object in another one, no list in another one, and 100 columns."""
    text = format_document(Source("a.json", value, "json"))
    assert len(text.splitlines()) == lines


def test_a_folder_is_laid_out(tmp_path: Path, monkeypatch: Any) -> None:
    """Documents and agents files below it, and nothing else."""
    monkeypatch.chdir(tmp_path)
    Path("flows").mkdir()
    for name in ("flows/a.asl.json", "b.agents.json", "package.json"):
        Path(name).write_text('{"a":1}', encoding="utf-8")
    done = CliRunner().invoke(cli, ["fmt", "."])
    assert done.stderr == "asl: b.agents.json reformatted\nasl: flows/a.asl.json reformatted\n"
    assert Path("package.json").read_text(encoding="utf-8") == '{"a":1}'
    none = CliRunner().invoke(cli, ["fmt", "--check", "flows", "."])
    assert none.exit_code == 0


def test_yaml_keeps_comments_and_styles() -> None:
    """Only the indentation changes."""
    text = (
        "# flow\nstates:\n- id: a  # first\n  task: |\n      do\n      it\n"
        "  next: {state_id: 'end'}\n"
    )
    done = format_document(Source("a.yaml", text, "yaml"))
    assert done == (
        "# flow\nstates:\n  - id: a # first\n    task: |\n      do\n      it\n"
        "    next: {state_id: 'end'}\n"
    )
    assert format_document(Source("a.yaml", done, "yaml")) == done


def test_a_document_with_faults_is_left_alone(tmp_path: Path, monkeypatch: Any) -> None:
    """It cannot be laid out, and the place says why."""
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('{"a": 1,}', encoding="utf-8")
    run = CliRunner().invoke(cli, ["fmt", "a.json"])
    assert run.exit_code == 3
    assert "a.json:1:8" in run.stderr
    assert Path("a.json").read_text(encoding="utf-8") == '{"a": 1,}'
    with pytest.raises(asl.InvalidDocument):
        format_document(Source("a.json", '{"a": 1, "a": 2}', "json"))


def test_the_command_changes_files_or_checks_them(tmp_path: Path, monkeypatch: Any) -> None:
    """With --check it only says which would change."""
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('{"a":1}', encoding="utf-8")
    run = CliRunner().invoke(cli, ["fmt", "--check", "a.json"])
    assert (run.exit_code, run.stderr) == (1, "asl: a.json would be reformatted\n")
    assert Path("a.json").read_text(encoding="utf-8") == '{"a":1}'
    assert CliRunner().invoke(cli, ["fmt", "a.json"]).exit_code == 0
    assert Path("a.json").read_text(encoding="utf-8") == '{ "a": 1 }\n'
    assert CliRunner().invoke(cli, ["fmt", "--check", "a.json"]).exit_code == 0
    piped = CliRunner().invoke(cli, ["fmt", "-"], input='{"a":[1,2]}')
    assert piped.stdout == '{ "a": [1, 2] }\n'


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "null"])
def test_a_text_that_says_nothing_is_no_document(text: str) -> None:
    """It is refused, so a file that is still empty does not become a null."""
    with pytest.raises(asl.InvalidDocument):
        format_document(Source("a.yaml", text, "yaml"))
