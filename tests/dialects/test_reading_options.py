"""Options of readers that list names: of tools that people are asked about, of states that fail."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("mail", True),
        ("mail, files", True),
        (["mail"], True),
        ('["mail"]', False),
        (5, False),
        ([""], False),
    ],
)
def test_names_of_tools_are_listed_or_refused(given: object, known: bool) -> None:
    """A list that is taken for its letters would ask nobody."""
    chain = {"id": "c", "tasks": [{"id": "run", "handler": "execute_tool_calls"}]}
    if known:
        states = asl.load(chain, dialect="contenox", reading={"approve": given}).value["States"]
        assert '["mail"' in states["run:gate"]["Choices"][0]["Condition"].replace("'", '"')
    else:
        with pytest.raises(asl.AslError, match="approve"):
            asl.load(chain, dialect="contenox", reading={"approve": given})


def test_end_states_that_fail_are_known() -> None:
    machine = {"kind": "StateMachine", "name": "sm", "start_state": "a", "end_states": ["failed"]}
    blueprint = {"steps": [{**machine, "states": {"a": []}}]}
    read = asl.load(blueprint, dialect="flujo", reading={"fail_states": "failed"})
    assert read.value["Metadata"]["Flujo"]["reading"] == {"fail_states": ["failed"]}
    with pytest.raises(asl.AslError, match="did you mean 'failed'"):
        asl.load(blueprint, dialect="flujo", reading={"fail_states": "faild"})


CHAIN: dict[str, Any] = {
    "id": "c",
    "tasks": [
        {
            "id": "run",
            "handler": "execute_tool_calls",
            "transition": {"branches": [{"operator": "default", "when": "", "goto": "__next__"}]},
        }
    ],
}
STEPS: dict[str, Any] = {
    "steps": [
        {
            "kind": "StateMachine",
            "name": "sm",
            "start_state": "a",
            "end_states": ["failed"],
            "states": {"a": []},
        }
    ]
}


@pytest.mark.parametrize(
    ("document", "dialect", "reading", "told"),
    [
        (
            CHAIN,
            "contenox",
            {"profile": "seed", "external_exits": True, "approve": "mail, web"},
            ["profile=seed", "external_exits", "approve=mail,web"],
        ),
        (CHAIN, "contenox", {"profile": "union", "external_exits": True}, ["external_exits"]),
        (
            STEPS,
            "flujo",
            {"pause": "runtime", "fail_states": "failed"},
            ["pause=runtime", "fail_states=failed"],
        ),
        (STEPS, "flujo", {"pause": "main"}, []),
    ],
)
def test_reading_options_are_a_loss_when_written_back(
    document: Any, dialect: str, reading: dict[str, Any], told: list[str]
) -> None:
    """Nothing in the text says them, and without them it would do something else."""
    back = asl.convert(asl.load(document, dialect=dialect, reading=reading), dialect)
    assert back.document == document
    assert [each.code for each in back.losses] == ["L-READING"] * len(told)
    assert [each.hint for each in back.losses] == [f"read it with --reading {one}" for one in told]


def test_chain_without_an_end_is_reported_once() -> None:
    """Not as a machine of states, too, which nobody has written."""
    leading = {"branches": [{"operator": "default", "when": "", "goto": "a"}]}
    chain = {"id": "c", "tasks": [{"id": "a", "handler": "noop", "transition": leading}]}
    assert [each.code for each in asl.check(asl.load(chain))] == ["CX-NO-END"]


def test_document_of_the_language_has_no_reading_options(tmp_path: Path) -> None:
    """An unknown option is an error for a native document as for others."""
    native = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}'
    for text in (native, f"# native\n{native}", "StartAt: A\nStates: {A: {Type: Succeed}}\n"):
        (tmp_path / "flow.yaml").write_text(text)
        with pytest.raises(
            asl.AslError, match="no option 'accept_legacy' for a document read as asl"
        ):
            asl.load(tmp_path / "flow.yaml", reading={"accept_legacy": True})
    run = CliRunner().invoke(cli, ["check", str(tmp_path / "flow.yaml"), "--reading", "profile=x"])
    assert run.exit_code == 2
    assert "no option 'profile'" in run.stderr


@pytest.mark.parametrize(
    ("dialect", "value"),
    [
        ("codemie", {"states": [{"id": "a", "assistant_id": "w", "next": {"state_id": "end"}}],
                     "assistants": [{"id": "w", "system_prompt": "x", "model": "m"}]}),
        ("contenox", {"id": "c", "tasks": [{"id": "a", "handler": "noop"}]}),
        ("flujo", {"steps": [{"name": "a", "uses": "x:y"}]}),
        ("asl", {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("head", ["", "# comment\n", "---\n"])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_in_a_yaml_file_is_detected(
    dialect: str, value: Any, head: str, indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(head + json.dumps(value, indent=indent))
    assert asl.detect(path) == dialect
    assert asl.load(path).dialect == dialect
