"""`asl graph`, `asl diff` and `asl plan`."""

import json
from pathlib import Path
from typing import Any

DOCUMENT = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}


def saved(folder: Path, name: str, document: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_output_suffix_selects_the_format(asl: Any, tmp_path: Path) -> None:
    """--format overrides it."""
    path = saved(tmp_path, "a.asl.json", DOCUMENT)
    for name, start in (("a.svg", "<svg"), ("a.dot", "digraph"), ("a.gv", "digraph"),
                        ("a.md", "flowchart")):  # fmt: skip
        result = asl("graph", path, "-o", tmp_path / name)
        assert (result.exit_code, result.stdout) == (0, "")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    result = asl("graph", path, "--format", "svg", "-o", tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text(encoding="utf-8").startswith("<svg")


def test_unknown_output_suffix_exits_with_2(asl: Any, tmp_path: Path) -> None:
    """With --format any suffix is accepted."""
    path = saved(tmp_path, "a.asl.json", DOCUMENT)
    result = asl("graph", path, "-o", tmp_path / "a.png")
    assert (result.exit_code, (tmp_path / "a.png").exists()) == (2, False)
    assert "there is no format for '.png'" in result.stderr
    assert asl("graph", path, "-o", tmp_path / "a.png", "--format", "dot").exit_code == 0


def test_graph_prints_to_standard_output(asl: Any, tmp_path: Path) -> None:
    """And nothing else does."""
    result = asl("graph", saved(tmp_path, "a.asl.json", DOCUMENT))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("flowchart TD\n")


def test_graph_of_an_unreadable_text_exits_with_3(asl: Any, tmp_path: Path) -> None:
    """With its place, as `asl check` does."""
    path = tmp_path / "a.asl.json"
    path.write_text("{", encoding="utf-8")
    for words in (("graph", path), ("diff", path, path)):
        result = asl(*words)
        assert (result.exit_code, result.stdout) == (3, "")
        assert "a.asl.json:1:2" in result.stderr


def test_differences_as_json(asl: Any, tmp_path: Path) -> None:
    """One object a line, with pointers into both documents; 1 where they differ."""
    one = saved(tmp_path, "one.asl.json", DOCUMENT)
    state = {**DOCUMENT["States"]["A"], "Result": 1}  # type: ignore[index]
    other = saved(tmp_path, "other.asl.json", {"StartAt": "A", "States": {"A": state}})
    result = asl("diff", one, other, "--json")
    assert result.exit_code == 1
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "kind": "added",
            "about": "data flow",
            "place": "A",
            "text": "Result: 1",
            "before": None,
            "after": "/States/A/Result",
        }
    ]
    assert asl("diff", one, other).stderr == "1 difference\n"
    same = asl("diff", one, one)
    assert (same.exit_code, same.stdout) == (0, "")
    assert same.stderr == "no differences\n"


def test_plan_names_the_state_whose_call_may_exceed_the_budget(asl: Any, tmp_path: Path) -> None:
    state = {"Type": "Task", "Agent": "Writer", "End": True}
    document = {"StartAt": "Discuss", "Budget": {"MaxCost": 1}, "States": {"Discuss": state}}
    result = asl("plan", saved(tmp_path, "a.asl.json", document))
    assert "cost: at most 1 USD, plus one call of the state Discuss\n" in result.stdout
