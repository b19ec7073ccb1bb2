"""Interpreters behind a command."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from asl.conformance import Case, load_suite, run_suite
from asl.conformance.local import serve
from asl.core.environment import data_folder
from asl.core.errors import AslError

SERVE = (sys.executable, "-m", "asl.conformance.local")
EXAMPLES = load_suite(data_folder("conformance") / "examples")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _package_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started commands find this very package."""
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), path])))


def wrong(word: str) -> tuple[str, ...]:
    return (sys.executable, str(Path(__file__).with_name("wrong_interpreter.py")), word)


def test_the_second_bundled_command_agrees_with_the_first() -> None:
    """What runs in this process and what runs behind the protocol judge every case the same."""
    here, there = run_suite(EXAMPLES), run_suite(EXAMPLES, SERVE)
    assert [verdict.outcome for verdict in here.verdicts] == ["passed"] * len(EXAMPLES)
    for one, other in zip(here.verdicts, there.verdicts, strict=True):
        assert other.reasons == one.reasons
        assert json.loads(json.dumps(one.observation)).items() <= other.observation.items()


def test_jobs_share_the_cases_and_keep_their_order() -> None:
    """Several processes give the same report as one, and every verdict is heard once."""
    heard: list[str] = []
    report = run_suite(EXAMPLES, jobs=2, on_verdict=lambda verdict: heard.append(verdict.case.id))
    assert report.ok
    assert [verdict.case.id for verdict in report.verdicts] == [case.id for case in EXAMPLES]
    assert sorted(heard) == sorted(case.id for case in EXAMPLES)


def test_a_wrong_interpreter_is_caught_behind_the_protocol() -> None:
    """The planted bug fails its case, and only cases that depend on it."""
    failed = [each.case.id for each in run_suite(EXAMPLES, wrong("math-add-unrounded")).failed]
    assert failed == ["pitfalls/math-add"]


@pytest.mark.parametrize(
    ("word", "limit", "reason"),
    [
        ("dies", 60, "exit code 1"),
        ("babbles", 60, "the answer is not JSON: 'hello"),
        ("mute", 0.5, "no answer within 0.5 seconds"),
    ],
)
def test_an_interpreter_that_breaks_the_protocol_fails_the_case(
    word: str, limit: float, reason: str
) -> None:
    """The failure of an interpreter is a verdict; the next case gets a new process."""
    report = run_suite(EXAMPLES[:2], wrong(word), time_limit=limit)
    assert [verdict.outcome for verdict in report.verdicts] == ["failed", "failed"]
    for verdict in report.verdicts:
        assert reason in verdict.reasons[0]


def test_output_of_a_dead_interpreter_is_shown() -> None:
    """The end of standard error helps to find out why it died."""
    assert "out of luck" in run_suite(EXAMPLES[:1], wrong("dies")).failed[0].reasons[0]


def test_a_command_that_does_not_start_is_a_misuse() -> None:
    """Nothing is judged when there is no interpreter."""
    with pytest.raises(AslError, match="cannot start 'no-such-command-here'"):
        run_suite(EXAMPLES[:1], ["no-such-command-here"])


def test_an_answer_to_another_case_is_refused() -> None:
    """An answer carries the id of its request."""
    command = (sys.executable, "-c", 'input(); print(\'{"id": "other"}\')')
    (verdict,) = run_suite(EXAMPLES[:1], command).verdicts
    assert "no object with the id" in verdict.reasons[0]


def test_serve_answers_line_by_line() -> None:
    """The command reads requests and writes answers, one line each, in any script."""
    case = Case(
        "one",
        {"output": "ü"},
        document={"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}},
        input="ü",
    )
    answers = io.StringIO()
    serve(io.StringIO(json.dumps(case.request()) + "\n"), answers)
    assert json.loads(answers.getvalue()) == {"id": "one", "status": "SUCCEEDED", "output": "ü"}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("one", {"valid": True}, document={}, dialect="basic"), "'basic' is not supported"),
        (
            Case(
                "one",
                {"status": "SUCCEEDED"},
                document={
                    "StartAt": "A",
                    "States": {
                        "A": {
                            "Type": "Task",
                            "Agent": "A",
                            "Streaming": {"Buffer.$": "$.x"},
                            "End": True,
                        }
                    },
                },
            ),
            "'Streaming' is not executed",
        ),
    ],
)
def test_what_this_version_does_not_execute_is_skipped(case: Case, reason: str) -> None:
    """A gap is counted as a gap, never as a pass."""
    (verdict,) = run_suite([case]).verdicts
    assert verdict.outcome == "skipped"
    assert reason in verdict.reasons[0]


def test_a_fault_inside_our_interpreter_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the interpreter raises, the suite goes on."""
    import asl

    def broken(*arguments: object, **more: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(asl, "compile", broken)
    case = next(case for case in EXAMPLES if case.id == "examples/pass")
    (verdict,) = run_suite([case]).verdicts
    assert "ZeroDivisionError: oops" in verdict.reasons[0]


def test_null_is_an_input() -> None:
    """An explicit null input is not replaced by an empty object."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    assert run_suite([Case("one", {"output": None}, document=document, input=None)]).ok


def test_the_time_limit_holds_for_a_command_that_does_not_read() -> None:
    """A request larger than a pipe's buffer does not block the runner."""
    case = Case("one", {"valid": True}, document={}, input="x" * 300_000)
    sleeps = (sys.executable, "-c", "import time; time.sleep(60)")
    (verdict,) = run_suite([case], sleeps, time_limit=0.2).verdicts
    assert "no answer within 0.2 seconds" in verdict.reasons[0]
