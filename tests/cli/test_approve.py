"""People decide on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from asl.cli.main import cli

ASK = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Approval",
            "Prompt": "Publish {{ $.title }}?",
            "Options": ["publish", "drop"],
            "Editable": {"Fields": ["$.title"], "ResultPath": "$.edited"},
            "ResultPath": "$.review",
            "End": True,
        }
    },
}
TWO = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": {
    "StartAt": "A", "States": {"A": {"Type": "Approval", "Prompt": "{{ $ }}?", "End": True}}},
    "End": True}}}  # fmt: skip


@pytest.fixture
def asl(tmp_path: Path) -> Any:
    """Call `asl` with a store of its own."""

    def call(*words: str, code: int = 0) -> Any:
        done = CliRunner().invoke(cli, words, env={"ASL_STORE": str(tmp_path / "runs.db")})
        assert done.exit_code == code, done.output
        return done

    call.document = tmp_path / "ask.asl.json"  # type: ignore[attr-defined]
    call.store = str(tmp_path / "runs.db")  # type: ignore[attr-defined]
    return call


def paused(asl: Any, document: Any, data: Any) -> Any:
    asl.document.write_text(json.dumps(document))
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "-i", json.dumps(data))
    return asl(*words, code=4)


def test_from_the_run_to_the_end(asl: Any) -> None:
    """Paused, listed, decided with an edit, gone on with."""
    assert "asl approve it" in paused(asl, ASK, {"title": "News"}).stderr
    assert "Publish News?" in asl("inbox").stdout
    words = ("approve", "it", "--as", "ann", "--comment", "good", "--edit", "title=Old")
    record = json.loads(asl(*words).stdout)
    assert (record["approval"], record["approver"]) == ("publish", "ann")
    output = json.loads(asl("resume", "it").stdout)
    assert output["edited"] == {"title": "Old"}
    assert output["review"]["comment"] == "good"
    assert "nothing waits" in asl("inbox").stderr


def test_a_bad_answer_is_wrong_usage(asl: Any) -> None:
    """It says why, and the execution stays paused."""
    paused(asl, ASK, {"title": "News"})
    assert "'publish', 'drop'" in asl("approve", "it", "--option", "maybe", code=2).stderr
    asl("resume", "it", code=4)


def test_several_requests_need_a_name(asl: Any) -> None:
    """Without one they are listed."""
    paused(asl, TWO, {"l": [1, 2]})
    listed = asl("approve", "it", code=2).stderr
    ids = [json.loads(line)["requestId"] for line in asl("inbox", "--json").stdout.splitlines()]
    assert len(ids) == 2
    assert all(each in listed for each in ids)
    for each in ids:
        asl("approve", "it", "--request", each, "--option", "reject")
    assert [each["approval"] for each in json.loads(asl("resume", "it").stdout)] == ["reject"] * 2


def test_a_run_that_is_not_kept_says_so(asl: Any) -> None:
    """Nobody could answer it."""
    asl.document.write_text(json.dumps(ASK))
    done = asl("run", str(asl.document), "-i", '{"title": "x"}', code=4)
    assert "--store FILE" in done.stderr
