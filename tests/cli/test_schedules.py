"""`asl schedules` and `asl webhooks`: what starts executions."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cronsim")
pytest.importorskip("starlette")

from .conftest import Asl

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})


def test_schedules_by_commands(asl: Asl, folder: Path) -> None:
    """A file is published with its schedule."""
    (folder / "report.asl.json").write_text(PASS)
    words = ("--store", "runs.db")
    added = asl(
        "schedules", "add", "nightly", "cron(30 2 * * ? *)", "report.asl.json", *words,
        "--timezone", "Europe/Berlin", "--input", '{"at": "<aws.scheduler.scheduled-time>"}',
        "--start", "2030-03-30", "--end", "2030-04-01",
    )  # fmt: skip
    assert (added.exit_code, added.stderr) == (
        0,
        "asl: nightly starts next at 2030-03-30T01:30:00.000Z\n",
    )
    listed = asl("schedules", "ls", *words).stdout
    assert listed == (
        "nightly  2030-03-30T01:30:00.000Z  report  cron(30 2 * * ? *) Europe/Berlin\n"
    )
    assert asl("schedules", "next", "nightly", *words).stdout == "2030-03-30T01:30:00.000Z\n"
    assert "is paused" in asl("schedules", "pause", "nightly", *words).stderr
    assert json.loads(asl("schedules", "ls", "--json", *words).stdout)["paused"] is True
    assert asl("schedules", "resume", "nightly", *words).exit_code == 0
    wrong = asl("schedules", "add", "x", "cron(30 2 1W * ? *)", "report", *words)
    assert (wrong.exit_code, "'LW' only" in wrong.stderr) == (2, True)
    assert asl("schedules", "rm", "nightly", *words).exit_code == 0
    assert "there are no schedules" in asl("schedules", "ls", *words).stderr
    assert asl("schedules", "rm", "nightly", *words).exit_code == 2


def test_webhooks_by_commands(asl: Asl, folder: Path) -> None:
    """The secret is a reference, which only the service reads."""
    (folder / "review.asl.json").write_text(PASS)
    words = ("--store", "runs.db")
    secret = ("--scheme", "github", "--secret", "${env:GITHUB_SECRET}")
    added = asl("webhooks", "add", "push", "review.asl.json", *secret, *words)
    assert (added.exit_code, added.stderr) == (0, "asl: POST /hooks/push starts executions\n")
    listed = asl("webhooks", "ls", *words).stdout
    assert listed == "push  review  github  ${env:GITHUB_SECRET}\n"
    plain = asl("webhooks", "add", "x", "review", "--scheme", "github", "--secret", "s3", *words)
    assert (plain.exit_code, "is a reference" in plain.stderr) == (2, True)
    assert asl("webhooks", "rm", "push", *words).exit_code == 0
    assert "there are no webhooks" in asl("webhooks", "ls", *words).stderr
