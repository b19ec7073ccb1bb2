"""Node functions in processes of their own."""

import shutil
from typing import Any

import pytest

from asl.functions.runtime_api import MAX_ANSWER
from tests.functions.conftest import Start, cause_of, invocation, run

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("mjs", "export const handler = async (event) => ({ got: event });"),
        ("js", "exports.handler = async (event) => ({ got: event });"),
        ("cjs", "exports.handler = (event, context, done) => done(null, { got: event });"),
    ],
)
def test_forms_of_modules(start: Start, ending: str, code: str) -> None:
    assert run(start(code, ending=ending), {"a": "ü"}).output == {"got": {"a": "ü"}}


def test_context_and_environment(start: Start, lines: list[str]) -> None:
    code = """
    export const handler = async (event, context) => {
      console.log("working");
      const left = context.getRemainingTimeInMillis();
      return [context.functionName, context.memoryLimitInMB, process.env.STAGE, process.cwd(),
              left > 20000 && left <= 30000];
    };
    """
    functions = start(code, ending="mjs", timeout=30.0, environment={"STAGE": "test"})
    (function,) = functions.agents
    assert run(functions).output == ["F", "128", "test", function.code, True]
    functions.close()
    assert lines == ["F: working"]


@pytest.mark.parametrize("direct", [True, False])
def test_error_has_name_message_and_trace(start: Start, direct: bool) -> None:
    code = """
    class Declined extends Error { constructor(text) { super(text); this.name = "Declined"; } }
    export const handler = async () => { throw new Declined("no"); };
    """
    result = run(start(code, ending="mjs"), document=None if direct else invocation("F"))
    cause = cause_of(result)
    assert result.error == "Declined"
    assert list(cause) == ["errorType", "errorMessage", "trace"]
    assert (cause["errorMessage"], cause["trace"][0]) == ("no", "Declined: no")
    assert "app.mjs:3:" in cause["trace"][1]


FAULTS = [
    ("import 'missing-library';", "Runtime.ImportModuleError"),
    ("export const handler = (", "Runtime.UserCodeSyntaxError"),
    ("export const other = 1;", "Runtime.HandlerNotFound"),
    ("export const handler = async () => { throw 'text'; };", "string"),
    (
        "export const handler = () => new Promise(() => { Promise.reject(new Error('lost')); });",
        "Runtime.UnhandledPromiseRejection",
    ),
    (
        "export const handler = () => "
        "new Promise(() => { setTimeout(() => { throw new Error(); }); });",
        "Error",
    ),
    ("export const handler = async () => process.exit(3);", "Runtime.ExitError"),
    ("export const handler = async () => 10n;", "Runtime.MarshalError"),
]


@pytest.mark.parametrize(("code", "name"), FAULTS)
def test_faults(start: Start, code: str, name: str) -> None:
    functions = start(code, ending="mjs", timeout=30.0)
    for _ in range(2):
        result = run(functions)
        assert (result.error, cause_of(result)["errorType"]) == (name, name)


def test_no_result_is_null(start: Start) -> None:
    for code in ("() => {}", "async () => {}", "() => new Promise(() => {})"):
        result = run(start(f"export const handler = {code};", ending="mjs"))
        assert (result.status, result.output) == ("SUCCEEDED", None)


def test_process_that_hangs(start: Start) -> None:
    code = "export const handler = async (event) => { while (event.hang); return process.pid; };"
    functions = start(code, ending="mjs", timeout=1.0)
    before = run(functions, {"hang": False}).output
    assert run(functions, {"hang": True}).error == "Sandbox.Timedout"
    assert run(functions, {"hang": False}).output != before


def test_answer_of_more_than_6_megabytes(start: Start) -> None:
    code = f"export const handler = async () => 'x'.repeat({MAX_ANSWER});"
    assert run(start(code, ending="mjs", timeout=30.0)).error == "Function.ResponseSizeTooLarge"


def test_layers(start: Start, tmp_path: Any) -> None:
    module = tmp_path / "layer" / "nodejs" / "node_modules" / "shared"
    module.mkdir(parents=True)
    (module / "index.js").write_text("exports.name = 'shared';", encoding="utf-8")
    code = "const { name } = require('shared'); exports.handler = async () => name;"
    functions = start(code, ending="js", layers=(str(tmp_path / "layer"),))
    assert run(functions).output == "shared"
