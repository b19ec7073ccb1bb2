"""`asl explain`, `asl schema`, help and version."""

import json

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

import asl as front_door
from asl.cli.console import MEANINGS, Exit, exit_of_status
from asl.cli.main import COMMANDS, SECTIONS
from asl.core.codes import all_codes, all_error_names

from .conftest import HELLO, WRONG, Asl


def test_explain_a_rule(asl: Asl) -> None:
    """Each code gives its title and text, in any case of letters."""
    for code in all_codes():
        done = asl("explain", code.id.lower())
        assert done.exit_code == 0
        assert done.stdout.startswith(f"{code.id}: {code.title}\n")
        assert code.explain in done.stdout


def test_explain_several_rules(asl: Asl) -> None:
    """Explanations follow each other in the order asked for."""
    text = asl("explain", "V-TOP-03", "V-TOP-01").stdout
    assert 0 <= text.index("V-TOP-03") < text.index("V-TOP-01")


def test_explain_an_error(asl: Asl) -> None:
    """Each name gives its title, what matches it and what leads to it, in any case of letters."""
    for failure in all_error_names():
        text = asl("explain", failure.name.lower()).stdout
        assert text.startswith(f"{failure.name}: {failure.title}\n")
        assert failure.explain in text
        assert failure.matched in text


def names(listed: str) -> list[str]:
    return [line.split()[0] for line in listed.splitlines() if line]


def test_explain_lists_all_without_a_code(asl: Asl) -> None:
    """The list has a line for each."""
    rules = [code.id for code in all_codes()]
    errors = [failure.name for failure in all_error_names()]
    assert names(asl("explain").stdout) == [*rules, *errors]


@pytest.mark.parametrize(("family", "first"), [("v-wait", "V-WAIT-01"), ("Agent.", "Agent.I")])
def test_explain_lists_a_prefix(family: str, first: str, asl: Asl) -> None:
    """In any case, with or without the separator at the end."""
    listed = names(asl("explain", family).stdout)
    assert listed[0].startswith(first)
    assert len({name[:5] for name in listed}) == 1


def test_explain_an_unknown_rule_exits_with_2(asl: Asl) -> None:
    """A near code is suggested."""
    done = asl("explain", "V-TOP-99")
    assert done.exit_code == 2
    assert "did you mean 'V-TOP-0" in done.stderr


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("asl", "asl"),
        ("State", "State"),
        ("states/Task", "states:Task"),
        ("task", "states:Task"),
        ("Budget", "blocks:Budget"),
    ],
)
def test_schema_by_name(name: str, id: str, asl: Asl) -> None:
    """The folder may be omitted."""
    assert json.loads(asl("schema", name).stdout)["$id"] == f"urn:asl:schema:{id}"


def test_schema_of_documents_is_the_default(asl: Asl) -> None:
    """Without a name the schema of documents is printed."""
    assert asl("schema").stdout == asl("schema", "asl").stdout


def test_schema_list(asl: Asl) -> None:
    """Each listed name can be printed."""
    names = asl("schema", "--list").stdout.split()
    assert {"asl", "states/Task", "blocks/Budget", "common"} <= set(names)
    assert all(asl("schema", name).exit_code == 0 for name in names)


def test_unknown_schema_exits_with_2(asl: Asl) -> None:
    """A near name is suggested."""
    done = asl("schema", "Tsk")
    assert done.exit_code == 2
    assert "did you mean 'Task'?" in done.stderr


def test_schema_bundle_needs_no_other_file(asl: Asl) -> None:
    """One schema judges documents without any other file."""
    bundle = json.loads(asl("schema", "--bundle").stdout)
    Draft202012Validator.check_schema(bundle)
    validator = Draft202012Validator(bundle, registry=Registry())
    assert validator.is_valid(HELLO)
    assert not validator.is_valid(WRONG)


@pytest.mark.parametrize("command", [*COMMANDS])
def test_every_command_has_help(command: str, asl: Asl) -> None:
    """`--help` and `-h` explain each command."""
    done = asl(command, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: asl {command}")
    assert asl(command, "-h").stdout == done.stdout


def test_help_lists_commands_and_exit_codes(asl: Asl) -> None:
    """The table of commands and that of exit codes are what is printed."""
    text = asl("--help").stdout
    assert all(f"  {name} " in text for name in COMMANDS)
    assert [text.index(f"\n{title}:\n") for title in SECTIONS] == sorted(
        text.index(f"\n{title}:\n") for title in SECTIONS
    )
    assert all(meaning in text for meaning in MEANINGS.values())


def test_version_option(asl: Asl) -> None:
    """`asl --version` is short."""
    assert asl("--version").stdout == f"asl {front_door.__version__}\n"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("runn", "did you mean 'run'?"),
        ("hello.asl.json", "did you mean 'asl run hello.asl.json'?"),
        ("xyzzy", "there is no command 'xyzzy'"),
    ],
)
def test_unknown_command_exits_with_2(word: str, message: str, asl: Asl) -> None:
    """A near command, or `asl run` for a file, is suggested."""
    done = asl(word)
    assert done.exit_code == 2
    assert message in done.stderr


def test_exit_codes_never_change() -> None:
    """The published table."""
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "INVALID": 3,
        "PAUSED": 4,
        "ENDED_EARLY": 5,
    }
    assert set(MEANINGS) == set(Exit)
    assert exit_of_status("SUCCEEDED") is Exit.OK
    assert exit_of_status("PAUSED") is Exit.PAUSED
    assert exit_of_status("ABORTED") is exit_of_status("TIMED_OUT") is Exit.ENDED_EARLY
