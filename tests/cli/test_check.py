"""`asl check`."""

import json
from pathlib import Path

import pytest

from .conftest import PASS, WRONG, Asl

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("pass.asl.json",), 0),
        (("wrong.asl.json",), 3),
        (("pass.asl.json", "wrong.asl.json"), 3),
        (("pass.asl.json", "nope.json"), 2),
        ((), 2),
        (("hello.asl.json", "--agents", "agents.yaml"), 0),
        (("hello.asl.json", "--agents", "none.json"), 0),
        (("hello.asl.json", "--agents", "none.json", "--strict"), 3),
        (("hello.asl.json", "--profile", "aws"), 3),
    ],
)
def test_check_exit_codes(words: tuple[str, ...], code: int, asl: Asl, folder: Path) -> None:
    """0 without errors, 3 with errors, 2 for wrong usage; warnings count with --strict only."""
    (folder / "none.json").write_text("{}")
    assert asl("check", *words).exit_code == code


def test_finding_has_position_source_line_and_hint(asl: Asl) -> None:
    """Findings go to standard output with place, source line, caret and hint."""
    done = asl("check", "wrong.asl.json")
    assert "wrong.asl.json:6:7: warning V-TOP-09: there is no field 'Nxt' here" in done.stdout
    assert '6 |       "Nxt": "B"' in done.stdout
    assert "= hint: did you mean 'Next'?" in done.stdout
    assert done.stderr == ""


def test_document_without_findings_prints_one_line(asl: Asl) -> None:
    """With -q nothing."""
    assert asl("check", "pass.asl.json").stdout == "pass.asl.json: no findings\n"
    assert asl("check", "pass.asl.json", "-q").stdout == ""


def test_folder_checks_its_documents_and_agents_files(asl: Asl, folder: Path) -> None:
    """In alphabetical order; a folder without any is wrong usage."""
    inner = folder / "flows" / "orders"
    inner.mkdir(parents=True)
    for name in ("b.asl.yaml", "a.asl.json"):
        (inner / name).write_text('{"StartAt": "B", "States": {"A": {"Type": "Succeed"}}}')
    (folder / "flows" / "z.agents.yaml").write_text("A: {retrun: 1}")
    (inner / "input.json").write_text("[")
    found = json.loads(asl("check", "flows", "--format", "json").stdout)
    files = ["flows/orders/a.asl.json", "flows/orders/b.asl.yaml", "flows/z.agents.yaml"]
    assert list(dict.fromkeys(each["file"] for each in found["diagnostics"])) == files
    (folder / "empty").mkdir()
    done = asl("check", "empty")
    assert (done.exit_code, "the folder 'empty' has no" in done.stderr) == (2, True)


SAM = """\
Resources:
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: states/flow.asl.json
      DefinitionSubstitutions: { Delay: !Ref Delay, Fn: !GetAtt Work.Arn }
  Work: { Type: AWS::Serverless::Function, Runtime: a, Runtime: b }
Parameters:
  Delay: { Type: Number, Default: 5 }
"""
FLOW = """{
  "StartAt": "A",
  "States": {
    "A": {"Type": "Wait", "Seconds": ${Delay}, "Next": "B"},
    "B": {"Type": "Task", "Resource": "${Fn}", "End": true}
  }
}"""
TERRAFORM = """
resource "aws_sfn_state_machine" "this" {
  definition = templatefile("${path.module}/../states/other.json", { Fn = "arn:aws:lambda:::f" })
}
resource "aws_sfn_state_machine" "that" { definition = var.definition }
"""
OTHER = '{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "${Fn}", "End": true}}}'


def test_folder_checks_definitions_with_the_values_of_their_template(
    asl: Asl, folder: Path
) -> None:
    """Templates are found, and a definition is checked once, with the values that it has there."""
    files = {
        "template.yaml": SAM,
        "states/flow.asl.json": FLOW,
        "states/other.json": OTHER,
        "infra/main.tf": TERRAFORM,
        "infra/iam.tf": 'resource "aws_iam_role" "r" { name = "x" }',
        "package.json": '{"name": "x"}',
        "cdk.out/tree.json": '{"tree": {"type": "AWS::StepFunctions::StateMachine"}}',
        "cdk.out/S.template.json": json.dumps(
            {
                "Resources": {
                    "M": {
                        "Type": "AWS::StepFunctions::StateMachine",
                        "Properties": {
                            "DefinitionS3Location": {"Bucket": "b", "Key": "abc.json"},
                            "DefinitionSubstitutions": {"Fn": "arn:aws:lambda:::f"},
                        },
                    }
                }
            }
        ),
        "cdk.out/asset.abc.json": OTHER,
        "node_modules/x/wrong.asl.json": "[",
        ".aws-sam/build/wrong.asl.json": "[",
        "values.yaml": "Resources: {}\nStartAt: 1\n",
    }
    for name, text in files.items():
        file = folder / "app" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = asl("check", "app", "--profile", "aws", "--format", "json")
    found = [
        (each["code"], each["severity"], each["file"])
        for each in json.loads(done.stdout)["diagnostics"]
    ]
    assert found == [
        ("READ-18", "info", "app/infra/main.tf"),
        ("READ-19", "warning", "app/states/flow.asl.json"),
        ("READ-12", "info", "app/states/flow.asl.json"),
    ]
    assert done.exit_code == 0


def test_folder_checks_definitions_without_a_template(asl: Asl, folder: Path) -> None:
    """Whatever their file names."""
    (folder / "app").mkdir()
    (folder / "app" / "flow.json").write_text(OTHER.replace("Task", "Tsk"))
    (folder / "app" / "torn.json").write_text(OTHER[:-2])
    (folder / "app" / "cases.json").write_text(json.dumps({"cases": [{"document": PASS}]}))
    done = asl("check", "app", "--format", "json")
    found = [(each["code"], each["file"]) for each in json.loads(done.stdout)["diagnostics"]]
    assert [each for each in found if each[0] != "READ-11"] == [
        ("V-ST-01", "app/flow.json"),
        ("READ-01", "app/torn.json"),
    ]
    assert done.exit_code == 3


def test_repeated_finding_is_reported_once(asl: Asl, folder: Path) -> None:
    """Two templates use one definition."""
    (folder / "app").mkdir()
    (folder / "app" / "flow.json").write_text(json.dumps(WRONG))
    for name in ("one", "two"):
        resources = {"M": {"Type": "AWS::Serverless::StateMachine",
                           "Properties": {"DefinitionUri": "flow.json"}}}  # fmt: skip
        (folder / "app" / f"{name}.json").write_text(json.dumps({"Resources": resources}))
    found = json.loads(asl("check", "app", "--format", "json").stdout)["diagnostics"]
    assert [each["code"] for each in found].count("V-ST-02") == 1


def test_quiet_prints_errors_only(asl: Asl) -> None:
    """With -q only errors are shown."""
    done = asl("check", "wrong.asl.json", "-q")
    assert "V-ST-02" in done.stdout
    assert "V-TOP-09" not in done.stdout


def test_missing_document_does_not_stop_the_check(asl: Asl) -> None:
    """The other documents are reported, and a near name is suggested."""
    done = asl("check", "wrong.asl.json", "pas.asl.json")
    assert "V-ST-02" in done.stdout
    assert "cannot read 'pas.asl.json'" in done.stderr
    assert "did you mean 'pass.asl.json'?" in done.stderr


def test_unreadable_document_is_a_finding(asl: Asl, folder: Path) -> None:
    """Text that is not JSON has a code and a position, and exit code 3."""
    (folder / "torn.json").write_text('{"StartAt": "A", "StartAt": "B", ]}')
    done = asl("check", "torn.json", "--format", "json")
    assert done.exit_code == 3
    codes = {each["code"] for each in json.loads(done.stdout)["diagnostics"]}
    assert "READ-01" in codes


def test_dash_reads_standard_input(asl: Asl) -> None:
    """`-` reads the document from standard input."""
    done = asl("check", "-", stdin=json.dumps(WRONG))
    assert done.exit_code == 3
    assert done.stdout.startswith("<stdin>:1:")


@pytest.mark.parametrize(
    ("format_", "start"),
    [("text", "wrong"), ("json", "{"), ("sarif", "{"), ("github", "::error file=wrong.asl.json")],
)
def test_every_format_reports_the_same(format_: str, start: str, asl: Asl) -> None:
    """Text, JSON, SARIF and GitHub annotations carry the code; the exit code does not change."""
    done = asl("check", "wrong.asl.json", "--format", format_)
    assert done.exit_code == 3
    assert done.stdout.startswith(start)
    assert "V-ST-02" in done.stdout


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_json_formats_without_findings_are_complete(format_: str, asl: Asl) -> None:
    """A program that reads the report always gets one."""
    done = asl("check", "pass.asl.json", "--format", format_, "-q")
    assert json.loads(done.stdout)


def test_unsupported_feature_is_information(asl: Asl, folder: Path) -> None:
    """A valid document that this version cannot run has no errors."""
    document = {
        "StartAt": "A",
        "States": {"A": {"Type": "Pass", "End": True}},
        "DefaultTools": {"Sandbox": {"Environment": "vm"}},
    }
    (folder / "later.json").write_text(json.dumps(document))
    done = asl("check", "later.json")
    assert done.exit_code == 0
    assert "info EXEC-02" in done.stdout


JOB = {
    "StartAt": "A",
    "States": {"A": {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "End": True}},
}


def test_express_option(asl: Asl, folder: Path) -> None:
    """AWS refuses a job in an Express Workflow, with its own words."""
    (folder / "job.json").write_text(json.dumps(JOB))
    assert asl("check", "job.json", "--profile", "aws").exit_code == 0
    done = asl("check", "job.json", "--profile", "aws", "--express")
    assert done.exit_code == 3
    assert (
        "= aws: SCHEMA_VALIDATION_FAILED: Express state machine does not support '.sync' service "
        "integration at /States/A/Resource" in done.stdout
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "template.yaml",
            "Resources: {{M: {{Type: 'AWS::Serverless::StateMachine', Properties: "
            "{{Type: {kind}, Definition: {job}}}}}}}",
        ),
        (
            "template.json",
            '{{"Resources": {{"M": {{"Type": "AWS::StepFunctions::StateMachine", "Properties": '
            '{{"StateMachineType": "{kind}", "Definition": {job}}}}}}}}}',
        ),
        (
            "main.tf",
            'resource "aws_sfn_state_machine" "m" {{\n  type = "{kind}"\n  definition = <<EOT\n'
            "{job}\nEOT\n}}",
        ),
        (
            "serverless.yml",
            "service: s\nstepFunctions:\n  stateMachines:\n    m: {{type: {kind}, "
            "definition: {job}}}",
        ),
    ],
)
def test_the_type_of_a_template_decides(asl: Asl, folder: Path, file: str, text: str) -> None:
    for kind, code in (("STANDARD", 0), ("EXPRESS", 3)):
        (folder / file).write_text(text.format(kind=kind, job=json.dumps(JOB)))
        assert asl("check", file, "--profile", "aws").exit_code == code


def test_format_aws_prints_the_fields_of_aws(asl: Asl, folder: Path) -> None:
    """It needs --profile aws."""
    (folder / "empty.json").write_text("{}")
    done = asl("check", "empty.json", "--profile", "aws", "--format", "aws")
    assert json.loads(done.stdout) == {
        "result": "FAIL",
        "diagnostics": [
            {
                "severity": "ERROR",
                "code": "SCHEMA_VALIDATION_FAILED",
                "message": "These fields are required: [States, StartAt]",
                "location": "/",
            }
        ],
    }
    done = asl("check", "pass.asl.json", "--profile", "aws", "--format", "aws")
    assert json.loads(done.stdout) == {"result": "OK", "diagnostics": []}
    (folder / "broken.json").write_text("{not json")
    done = asl("check", "broken.json", "--profile", "aws", "--format", "aws")
    assert json.loads(done.stdout)["diagnostics"][0]["code"] == "INVALID_JSON_DESCRIPTION"
    assert asl("check", "empty.json", "--format", "aws").exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("agents.yaml", "A: {return: 1}", 0),
        ("my.agents.json", '{"A": {"retrun": 1}}', 3),
        ("who.yaml", "agents: {A: {retrun: 1}}", 3),
        ("who.yaml", "agents: {A: 'nowhere_at_all:f'}", 0),
        ("agents.yaml", "A: {command: [x], environment: {K: '${env:NOT_THERE}'}}", 0),
        ("agents.yaml", "A: {command: [x], environment: {K: '${KEY}'}}", 0),
        ("agents.yaml", "StartAt: A\nStates: {A: {Type: Pass, End: true}}", 0),
    ],
)
def test_an_agents_file_is_checked_like_a_document(
    name: str, text: str, code: int, asl: Asl, folder: Path
) -> None:
    """By its name or its sections; nothing is imported."""
    (folder / name).write_text(text)
    done = asl("check", name)
    assert done.exit_code == code
    if code:
        assert "error AGENTS-02: there is no field 'retrun' here" in done.stdout


def test_strict_applies_to_agents_files(asl: Asl, folder: Path) -> None:
    """A value that may be a secret is a warning."""
    (folder / "a.agents.yaml").write_text("A: {command: [x], environment: {K: '<${KEY}>'}}")
    done = asl("check", "a.agents.yaml", "--strict")
    assert done.exit_code == 3
    assert "a.agents.yaml:1:36: error AGENTS-07: '${KEY}' is not filled in" in done.stdout
    assert "hint: write ${env:KEY}" in done.stdout


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("opnai:gpt-5", "warning AGENTS-09: pydantic-ai has no provider 'opnai'"),
        ("opnai:gpt-5", "hint: did you mean 'openai'?"),
        ("mine:gpt-5", "hint: a server that speaks OpenAI's protocol is openai-chat, with its url"),
        ("openai:gpt-5", None),
    ],
)
@pytest.mark.parametrize("words", [("a.agents.yaml",), ("hello.asl.json", "--agents")])
def test_unknown_model_provider_is_a_warning(
    words: tuple[str, ...], model: str, found: str | None, asl: Asl, folder: Path
) -> None:
    """A later version of the library may have it; --agents checks the file too."""
    (folder / "a.agents.yaml").write_text(f"agents:\n  Greeter: {{model: '{model}'}}\n")
    words = words if len(words) == 1 else (*words, "a.agents.yaml")
    done, strict = asl("check", *words), asl("check", *words, "--strict")
    assert (done.exit_code, strict.exit_code) == (0, 0 if found is None else 3)
    assert ("AGENTS" in done.stdout) == (found is not None)
    assert (found or "") in done.stdout


@pytest.mark.parametrize("words", [("a.agents.yaml",), ("hello.asl.json", "--agents")])
@pytest.mark.parametrize(
    ("secret", "found"),
    [
        ("${env:NOT_THERE}", "info AGENTS-06: the environment has no variable 'NOT_THERE'"),
        ("${file:not-there}", "not-there' cannot be read: no such file or directory"),
        ("${env:THERE}", None),
    ],
)
def test_missing_secret_is_information(
    words: tuple[str, ...],
    secret: str,
    found: str | None,
    asl: Asl,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another environment may have it, so it is not a warning even with --strict."""
    monkeypatch.setenv("THERE", "s3cr3t")
    (folder / "a.agents.yaml").write_text(
        f"agents:\n  Greeter: {{command: [x], environment: {{K: 'a {secret}'}}}}\n"
    )
    words = words if len(words) == 1 else (*words, "a.agents.yaml")
    for done in (asl("check", *words), asl("check", *words, "--strict")):
        assert done.exit_code == 0
        assert ("a.agents.yaml:2:44: info AGENTS-06" in done.stdout) == (found is not None)
        assert (found or "") in done.stdout
        assert "s3cr3t" not in done.stdout + done.stderr
    assert "AGENTS" not in asl("check", *words, "--quiet").stdout


@pytest.mark.parametrize("written", ["${KEY}", "${ENV:KEY}", "$KEY"])
def test_run_warns_about_an_unfilled_secret(written: str, asl: Asl, folder: Path) -> None:
    """A key that is sent as it is written is no key."""
    (folder / "doc.json").write_text('{"StartAt":"S","States":{"S":{"Type":"Succeed"}}}')
    environment = {"K": f"<{written}>"}
    (folder / "a.agents.yaml").write_text(
        json.dumps({"A": {"command": ["x"], "environment": environment}})
    )
    done = asl("run", "doc.json", "--agents", "a.agents.yaml")
    assert done.exit_code == 0
    assert f"warning AGENTS-07: {written!r} is not filled in" in done.stderr
    assert "hint: write ${env:KEY}" in done.stderr
    assert "AGENTS" not in asl("run", "doc.json", "--agents", "a.agents.yaml", "--quiet").stderr


def test_aws_binds_the_resources_that_a_run_calls(asl: Asl, folder: Path) -> None:
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
    document = {"StartAt": "A", "States": {"A": state}}
    (folder / "send.asl.json").write_text(json.dumps(document), encoding="utf-8")
    check = ("check", "send.asl.json", "--agents", "agents.yaml")
    assert "V-TASK-03" in asl(*check).stdout
    assert "V-TASK-03" not in asl(*check, "--aws").stdout
    assert asl("check", "send.asl.json", "--aws").exit_code == 2
