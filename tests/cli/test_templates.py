"""Documents with placeholders and documents in templates, on the command line."""

import json
import shutil
from pathlib import Path

import pytest

from .conftest import Asl

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "templates"
RUN = ("--agents", "handlers.yaml", "--virtual-time", "-q")


@pytest.fixture
def examples(folder: Path) -> Path:
    """The current folder, with the examples of templates in it."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("words", "data", "output"),
    [
        (("sam/template.yaml", "--resource", "OrderWorkflow"), {"id": "o"}, {"receipt": "r-17"}),
        (("sam/template.yaml", "--resource", "Reminder"), {}, {"Payload": "r-17"}),
        (("cloudformation/template.yaml",), {"pictures": [1, 2]}, ["small.png"] * 2),
        (("cdk.out/OrderStack.template.json", "--resource", "OrderFlow"), {}, "r-17"),
        (("cdk.out/OrderStack.template.json", "--resource", "FromFile0D6E1C42"), {}, "r-17"),
        (("terraform/main.tf", "--resource", "order"), {}, "r-17"),
        (("terraform/main.tf", "--resource", "refund"), {"order": 1}, "r-17"),
        (("terraform/main.tf", "--resource", "aws_sfn_state_machine.cleanup"), {}, "r-17"),
    ],
)
def test_templates_of_the_examples_run(
    words: tuple[str, ...], data: object, output: object, asl: Asl, examples: Path
) -> None:
    """Each example runs unchanged, with stand-ins for what is deployed with it."""
    done = asl("run", *words, *RUN, "-i", json.dumps(data))
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found == ({**data, **output} if isinstance(data, dict) and "id" in data else output)  # type: ignore[dict-item]


def test_run_of_several_state_machines_needs_resource_option(asl: Asl, examples: Path) -> None:
    """Without a name it is not clear which is meant: wrong usage."""
    done = asl("run", "terraform/main.tf")
    assert done.exit_code == 2
    assert done.stderr == (
        "asl: terraform/main.tf has 3 state machines: name one with --resource "
        "(order, refund, cleanup)\n"
    )


def test_check_of_a_template_checks_all_state_machines(asl: Asl, examples: Path) -> None:
    """A check looks at every state machine of a template, unless one is named."""
    for file, names in {"sam/template.yaml": 2, "terraform/main.tf": 3}.items():
        everything = json.loads(asl("check", file, "--format", "json").stdout)
        assert (everything["ok"], everything["warnings"]) == (True, 0)
        one = json.loads(
            asl("check", file, "--resource", "order", "--format", "json").stdout or "{}"
        )
        assert names > 1
        assert len(one.get("diagnostics", [])) < everything["infos"]


def test_unreadable_state_machine_does_not_stop_the_check(asl: Asl, examples: Path) -> None:
    """Every state machine of a template has its own report."""
    (examples / "sam" / "statemachine" / "order.asl.json").unlink()
    template = examples / "sam" / "template.yaml"
    template.write_text(template.read_text().replace("Next: Remind", "Nxt: Remind"))
    done = asl("check", "sam/template.yaml")
    assert done.exit_code == 3
    assert "sam/template.yaml:24:22: error READ-14: cannot read" in done.stdout
    assert "sam/template.yaml:44:13: warning V-TOP-09" in done.stdout


def test_var_overrides_vars(asl: Asl, folder: Path) -> None:
    """`--var` wins over `--vars`, a later file over an earlier one."""
    result = {"a": "${A}", "b": "${B}", "c": "${C}", "n": "@"}
    state = {"Type": "Pass", "Result": result, "End": True}
    text = json.dumps({"StartAt": "P", "States": {"P": state}}).replace('"@"', "${N}")
    (folder / "doc.asl.json").write_text(text)
    (folder / "one.yaml").write_text("A: file\nB: file\nN: 1\nUnused: x\n")
    (folder / "two.json").write_text('{"B": "later", "N": {"deep": [true]}}')
    done = asl(
        "run", "doc.asl.json", "--vars", "one.yaml", "--vars", "two.json", "--var", "A=a=b",
        "--var", "C=",
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout) == {"a": "a=b", "b": "later", "c": "", "n": {"deep": [True]}}


@pytest.mark.parametrize(
    "text",
    [
        '[{"ParameterKey": "A", "ParameterValue": "x"}]',
        '{"Parameters": {"A": "x"}}',
        '{"Parameters": [{"ParameterKey": "A", "ParameterValue": "x"}]}',
        "A: x",
    ],
)
def test_vars_reads_parameter_files_of_aws(text: str, asl: Asl, folder: Path) -> None:
    """The files that `aws cloudformation deploy` and pipelines take will do."""
    (folder / "doc.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "${A}", "End": true}}}'
    )
    (folder / "values").write_text(text)
    assert asl("run", "doc.asl.json", "--vars", "values").stdout == '"x"\n'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--var", "A"), "'A' does not have the form NAME=VALUE"),
        (("--var", "=1"), "'=1' does not have the form NAME=VALUE"),
        (("--vars", "none.json"), "cannot read 'none.json'"),
        (("--vars", "list.json"), "list.json:1:1: error READ-01: the file must be an object"),
        (("--resource", "A"), "there is no resource 'A'"),
    ],
)
def test_invalid_options_of_templates_exit_with_2(
    words: tuple[str, ...], message: str, asl: Asl, folder: Path
) -> None:
    """What cannot be used is said, and nothing runs."""
    (folder / "list.json").write_text("[1]")
    done = asl("run", "pass.asl.json", *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert message in done.stderr


def test_unused_var_is_a_warning(asl: Asl, folder: Path) -> None:
    """One that was given with --var, and to the only document there is."""
    done = asl("run", "pass.asl.json", "--var", "A=1")
    assert "warning READ-13: the value 'A' is not used" in done.stderr
    assert asl("run", "pass.asl.json", "--var", "A=1", "--strict").exit_code == 3
    (folder / "vars.json").write_text('{"A": 1}')
    assert asl("run", "pass.asl.json", "--vars", "vars.json", "--strict").stderr == ""
    assert asl("check", "pass.asl.json", "wait.asl.json", "--var", "A=1", "--strict").exit_code == 0


def test_root_allows_files_outside_the_folder(asl: Asl, examples: Path) -> None:
    """--root allows what a template names outside of its own folder."""
    shutil.move(examples / "sam" / "statemachine", examples / "statemachine")
    template = examples / "sam" / "template.yaml"
    template.write_text(template.read_text().replace("statemachine/", "../statemachine/"))
    words = ("check", "sam/template.yaml", "--resource", "OrderWorkflow", "-q")
    refused = asl(*words)
    assert refused.exit_code == 3
    assert "allow it with --root FOLDER" in refused.stdout
    assert asl(*words, "--root", ".").exit_code == 0


def test_failure_has_its_position_in_the_template(asl: Asl, examples: Path) -> None:
    """The place of the state that failed is that of the template."""
    done = asl("run", "sam/template.yaml", "--resource", "Reminder", "--virtual-time", "-q")
    assert done.exit_code == 1
    assert "in Remind at sam/template.yaml:45:11" in done.stderr


def test_record_of_a_template_contains_the_definition(asl: Asl, examples: Path) -> None:
    """The case of a recorded run holds the definition, and needs the template no more."""
    words = ("sam/template.yaml", "--resource", "OrderWorkflow", *RUN, "-i", '{"id": "o"}')
    assert asl("run", *words, "--record", "case.json").exit_code == 0
    case = json.loads((examples / "case.json").read_text())
    assert case["id"] == "OrderWorkflow"
    assert case["document"]["States"]["Think it over"]["Seconds"] == 3600
    assert asl("test", "case.json").exit_code == 0


def test_case_takes_its_document_from_a_template(asl: Asl, examples: Path) -> None:
    """A suite names the template, the resource and the values."""
    assert "3 passed" in asl("test", "order.asl-test.yaml").stdout
    case = "id: a\ndocument_file: sam/template.yaml\nresource: Nope\nexpect: {output: 1}\n"
    (examples / "wrong.asl-test.yaml").write_text(case)
    done = asl("test", "wrong.asl-test.yaml")
    assert done.exit_code == 2
    assert "wrong.asl-test.yaml:1: sam/template.yaml has no state machine 'Nope'" in done.stderr


def test_template_on_standard_input(asl: Asl, examples: Path) -> None:
    """It may not name files."""
    text = (examples / "cloudformation" / "template.yaml").read_text()
    assert asl("check", "-", "-q", stdin=text).exit_code == 0
    text = (examples / "sam" / "template.yaml").read_text()
    done = asl("check", "-", stdin=text)
    assert done.exit_code == 3
    assert "is not read: the template is not a file itself" in done.stdout


def test_test_state_of_a_template(asl: Asl, examples: Path) -> None:
    """`asl test-state` takes the same options."""
    words = ("--resource", "OrderWorkflow", "--state", "Charge", "--mock-result", '"r"')
    done = asl("test-state", "sam/template.yaml", *words, "-i", '{"id": 1}')
    assert done.exit_code == 0
    assert json.loads(done.stdout)["output"] == {"id": 1, "receipt": "r"}
