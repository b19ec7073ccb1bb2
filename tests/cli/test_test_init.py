"""`asl test init`."""

from pathlib import Path

from .conftest import Asl


def test_a_case_for_each_way_is_written_and_passes(asl: Asl, folder: Path) -> None:
    """Into a file beside the document, which is then a suite."""
    asl("init", "--name", "first")
    (folder / "first.asl-test.yaml").unlink()
    done = asl("test", "init", "first.asl.json")
    assert done.exit_code == 0
    assert "wrote 3 cases to first.asl-test.yaml" in done.stderr
    assert asl("test", "first.asl-test.yaml").stdout.startswith("3 passed")
    assert asl("test", "init", "first.asl.json").exit_code == 2
    (folder / "cases").mkdir()
    assert asl("test", "init", "first.asl.json", "-o", "cases/a.asl-test.yaml").exit_code == 0
    assert asl("test", "cases").stdout.startswith("3 passed")


def test_what_was_not_found_is_said(asl: Asl, folder: Path) -> None:
    """A way without a case is named; a limit that was reached, too."""
    asl("init", "--name", "first")
    done = asl("test", "init", "first.asl.json", "-o", "x.asl-test.yaml", "--limit", "2")
    assert "there are more than 2 ways" in done.stderr
    document = (folder / "first.asl.json").read_text()
    selector = '"ResultSelector": { "score.$": "States.MathAdd($.n, 1)" },\n      "Next": "Sort"'
    (folder / "second.asl.json").write_text(document.replace('"Next": "Sort"', selector))
    done = asl("test", "init", "second.asl.json")
    assert (
        "no data was found that leads through Judge > Sort > Accepted: it goes on to ByHand "
        "instead of Sort" in done.stderr
    )
    assert "wrote 1 case to" in done.stderr
