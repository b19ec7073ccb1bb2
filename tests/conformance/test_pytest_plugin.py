"""Suites as pytest items."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = "pytester"

PLUGIN = ("-p", "no:asl", "-p", "asl.conformance.plugin", "-p", "no:cacheprovider")
SUITE = """
suite: Greeting
document: { StartAt: A, States: { A: { Type: Task, Agent: Greeter, End: true } } }
cases:
  - id: greet/works
    title: The greeter is asked
    tags: [quick]
    agents: { Greeter: { return: hello } }
    expect: { output: hello }
  - id: greet/differs
    title: Another greeting
    agents: { Greeter: { return: hello } }
    expect: { output: bye }
"""


def run(pytester: pytest.Pytester, *more: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*PLUGIN, *more)


def test_cases_are_collected_and_failures_read_well(pytester: pytest.Pytester) -> None:
    """A failing case shows its title, its place and the difference, and no traceback."""
    pytester.makefile(".asl-test.yaml", greeting=SUITE)
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Another greeting*",
            "failed greet/differs: Another greeting",
            "*greeting.asl-test.yaml:9*",
            '*output: expected "bye", got "hello"',
        ]
    )
    result.stdout.no_fnmatch_line("*runtest*")


def test_tags_select_cases(pytester: pytest.Pytester) -> None:
    """A tag is a word for -k."""
    pytester.makefile(".asl-test.yml", greeting=SUITE)
    run(pytester, "-k", "quick").assert_outcomes(passed=1, deselected=1)


def test_a_malformed_suite_is_a_collection_error(pytester: pytest.Pytester) -> None:
    """The error names file and line."""
    pytester.makefile(".asl-test.json", bad='{"suite": "Bad", "cases": []}')
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*bad.asl-test.json:1:*"])


def test_other_files_are_left_alone(pytester: pytest.Pytester) -> None:
    """Only the ending makes a suite."""
    pytester.makefile(".yaml", greeting=SUITE)
    run(pytester).assert_outcomes()


def test_what_cannot_be_run_yet_is_skipped(pytester: pytest.Pytester) -> None:
    """A case for a feature that this version does not execute is no failure."""
    text = """
    id: later
    document:
      StartAt: A
      States:
        A: { Type: Task, Agent: A, Streaming: { Buffer.$: $.x }, End: true }
    expect: { status: SUCCEEDED }
    """
    pytester.makefile(".asl-test.yaml", later=text)
    run(pytester).assert_outcomes(skipped=1)


def test_asl_run_is_a_fixture(pytester: pytest.Pytester) -> None:
    """Tests in Python run documents on the virtual clock."""
    pytester.makepyfile(
        """
        def test_wait(asl_run):
            wait = {"Type": "Wait", "Seconds": 86400, "End": True}
            assert asl_run({"StartAt": "W", "States": {"W": wait}}).elapsed == 86400
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_is_light() -> None:
    """A pytest start without suites imports nothing of the interpreter."""
    code = (
        "import asl.conformance.plugin, sys;"
        "print([m for m in sys.modules if m.startswith('asl.') "
        "and m.split('.')[1] not in ('bindings', 'core', 'conformance', 'documents', 'runs')"
        " or m in ('orjson', 'jsonschema', 'ruamel.yaml')])"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_coverage_is_in_the_summary(pytester: pytest.Pytester) -> None:
    """`--asl-coverage` names what no case takes; without it nothing is said."""
    pytester.makefile(".asl-test.yaml", greeting=SUITE)
    assert "coverage of documents" not in run(pytester).stdout.str()
    told = run(pytester, "--asl-coverage").stdout
    told.fnmatch_lines(["*coverage of documents*", "* of * states and * transitions are taken"])


def test_coverage_counts_what_asl_run_takes(pytester: pytest.Pytester) -> None:
    """Tests in Python and cases of the same run are reported together."""
    pytester.makefile(
        ".asl.json",
        flow="""{"StartAt": "A", "States": {
            "A": {"Type": "Choice", "Choices": [
                {"Variable": "$.a", "IsPresent": true, "Next": "B"}], "Default": "C"},
            "B": {"Type": "Succeed"},
            "C": {"Type": "Map", "ItemProcessor": {"StartAt": "D", "States": {
                "D": {"Type": "Pass", "End": true}}}, "End": true}}}""",
    )
    pytester.makepyfile(
        """
        import asl

        def test_path(asl_run):
            assert asl_run("flow.asl.json", {"a": 1}).ok

        def test_program(asl_run):
            once = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
            assert asl_run(asl.compile(once), profile=None).ok
        """
    )
    assert "coverage of documents" not in run(pytester).stdout.str()
    told = run(pytester, "--asl-coverage")
    told.assert_outcomes(passed=2)
    told.stdout.fnmatch_lines(
        [
            "flow.asl.json: 2 of 4 states and 1 of 2 transitions are taken",
            "*'A' never goes to 'C' (otherwise)",
            "*'C' is never entered",
            "workflow: 1 of 1 states and 0 of 0 transitions are taken",
        ]
    )
