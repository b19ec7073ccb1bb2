"""Tables, schemas, documentation and conformance cases speak of the same things."""

import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from asl.checks.handlers import ERROR_NAMES
from asl.cli.console import MEANINGS, Exit
from asl.cli.main import COMMANDS, cli
from asl.conformance import Case
from asl.core.codes import all_codes, all_error_names
from asl.core.diagnostics import InvalidDocument
from asl.core.document import read
from asl.core.profile import PROFILES
from asl.core.values import compact
from asl.expr.choice_rules import OPERATORS
from asl.expr.intrinsics import FUNCTIONS
from asl.states import STATE_TYPES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CODE = re.compile(
    r"\b(?:(?:V-[A-Z]+|READ|AGENTS|POLICY|EXEC)-\d\d|(?:CM|CX|FL|L)-[A-Z]+(?:-[A-Z]+)*)\b"
)
CASES_PER_TYPE = 5
NOT_APPLIED = runpy.run_path(str(Path(__file__).with_name("rules_page.py")))["not_applied"]()

Json = Any


def page(path: str) -> str:
    return (DOCS / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def documents(bundled: list[Case]) -> list[Json]:
    """The documents of the bundled cases that can be read."""
    return [value for case in bundled if (value := document_of(case)) is not None]


def document_of(case: Case) -> Json:
    if case.document is not None:
        return case.document
    try:
        return read((case.document_text or "").encode()).value
    except InvalidDocument:
        return None


@pytest.fixture(scope="module")
def texts(documents: list[Json]) -> list[str]:
    return [compact(document) for document in documents]


def states(machine: Json) -> Iterator[Json]:
    """Yield the states of a machine and of all machines inside it."""
    found = machine.get("States") if isinstance(machine, dict) else None
    for state in found.values() if isinstance(found, dict) else ():
        if isinstance(state, dict):
            yield state
            yield from states(state.get("ItemProcessor"))
            yield from states(state.get("Iterator"))
            branches = state.get("Branches")
            for branch in branches if isinstance(branches, list) else ():
                yield from states(branch)


# State types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STATE_TYPES)
def test_a_state_type_has_a_schema_and_a_page(name: str) -> None:
    """Every state type of the language is described to editors and to people."""
    assert (ROOT / "schemas" / "states" / f"{name}.schema.json").is_file()
    text = page(f"states/{name.lower()}.md")
    assert text.startswith(f"# {name}\n")
    assert "not executed by this version**" not in text


def test_an_executed_state_type_has_cases(documents: list[Json]) -> None:
    """Each state type that runs stands in several conformance cases."""
    counted = Counter(
        kind for each in documents for kind in {str(state.get("Type")) for state in states(each)}
    )
    assert [name for name in STATE_TYPES if counted[name] < CASES_PER_TYPE] == []


@pytest.mark.parametrize("name", STATE_TYPES)
def test_a_page_names_every_field(name: str) -> None:
    """The page of a state type has every field that its schema has, or says where it is told."""
    schema = read((ROOT / "schemas" / "states" / f"{name}.schema.json").read_bytes()).value
    text = page(f"states/{name.lower()}.md")
    shared = page("states/README.md")
    told = {*re.findall(r"`([^`\n]+)`", text), *re.findall(r"`([^`\n]+)`", shared)}
    assert schema["properties"].keys() - told == set()


# Rules -------------------------------------------------------------------------------------------


def used_codes() -> set[str]:
    files = [
        *(ROOT / "asl").rglob("*.py"),
        *(ROOT / "asl" / "dialects").rglob("*.json"),
        *(ROOT / "schemas").rglob("*.json"),
    ]
    return {code for file in files for code in CODE.findall(file.read_text(encoding="utf-8"))}


def test_every_rule_is_applied_or_listed() -> None:
    """A rule of the catalogue is yielded by a check or a schema, or listed as not applied yet."""
    catalogue = {code.id for code in all_codes()}
    assert catalogue - used_codes() == NOT_APPLIED


def test_every_applied_rule_is_in_the_catalogue() -> None:
    """No check yields a code that cannot be explained."""
    assert used_codes() - {code.id for code in all_codes()} == set()


# Error names -----------------------------------------------------------------------------------


ERROR = re.compile(r'"((?:States|Agent|CM|CodeMie|Contenox|Flujo)\.[A-Z]\w*)"')
OF_AGENTS = {
    *("CM.Unauthorized", "CM.Forbidden", "CM.NotFound", "CM.InvalidCredentials"),
    *("CM.TruncatedOutput", "CM.ServerError", "CM.RateLimit", "CM.Timeout", "CM.Connection"),
    "CM.TaskFailed",
}
"""Names of dialects that only agents raise."""


def test_every_error_name_can_be_explained() -> None:
    """The catalogue has the names that the code raises and those that the language reserves."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "asl").rglob("*.py")]
    raised = {name for text in texts for name in ERROR.findall(text)}
    functions = FUNCTIONS.keys()
    catalogue = {failure.name for failure in all_error_names()}
    assert (raised - functions) | ERROR_NAMES | OF_AGENTS == catalogue


# States ---------------------------------------------------------------------------------------


SHARED_FIELDS = ("Parameters", "ResultSelector", "ResultPath", "Assign", "Retry", "Catch",
                 "Arguments", "Output", "Next")  # fmt: skip


@pytest.mark.parametrize("field", SHARED_FIELDS)
def test_the_states_of_a_shared_field_are_documented(field: str) -> None:
    """Its row names the state types whose schemas have it."""
    rows = [line.split(" | ") for line in page("states/README.md").splitlines()]
    (where,) = (row[1] for row in rows if f"`{field}`" in row[0])
    names = set(re.findall(r"[A-Z]\w+", where))
    schemas = {
        name: read(ROOT / "schemas" / "states" / f"{name}.schema.json").value
        for name in STATE_TYPES
    }
    have = {name for name, schema in schemas.items() if field in schema["properties"]}
    assert have == (set(STATE_TYPES) - names if where.startswith("all") else names)


# Expressions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_intrinsic_function_has_a_case_and_a_row(name: str, texts: list[str]) -> None:
    """Each intrinsic function is called in a conformance case and documented."""
    assert any(f"{name}(" in text for text in texts)
    assert f"| `{name}(" in page("language.md")


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_a_case_and_is_documented(name: str, texts: list[str]) -> None:
    """Each comparison operator stands in a conformance case and on the page of Choice."""
    assert any(f'"{name}":' in text for text in texts)
    assert f"`{name}`" in page("states/choice.md")


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_documented(name: str) -> None:
    """Each profile has a row in the page on the language."""
    assert f"| `{name}` |" in page("language.md")


# Command line ------------------------------------------------------------------------------------

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
SHARED = "How a document is read"


def section(*of: str) -> str:
    """The sections of the page on the command line whose headings name one of these."""
    parts = re.split(r"^## (.*)\n", page("cli.md"), flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return "".join(text for head, text in found if not set(of).isdisjoint(head.split("`")))


def options(name: str) -> list[click.Option]:
    """The options of a command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [each for each in command.params if isinstance(each, click.Option)]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented(name: str) -> None:
    """Each command is told about."""
    assert f"`asl {name}" in page("cli.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    """Where its command is, or where the options are that many commands share."""
    told = {*OPTION.findall(section(f"asl {name}", SHARED))}
    assert [each for option in options(name) for each in option.opts if each not in told] == []


def test_every_documented_option_is_there() -> None:
    """A section of the page names options of its commands, and no others."""
    parts = re.split(r"^## (.*)\n", page("cli.md"), flags=re.MULTILINE)
    shared = {*OPTION.findall(section(SHARED))}
    for head, text in zip(parts[1::2], parts[2::2], strict=True):
        names = [each.removeprefix("asl ") for each in head.split("`") if each.startswith("asl ")]
        known = {each for name in names for option in options(name) for each in option.opts}
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        spans = " ".join(each for each in re.findall(r"`([^`]*)`", prose))
        if names:
            assert {*OPTION.findall(spans)} - known - shared == set(), head


def test_repeatable_options_are_documented() -> None:
    """They are written NAME=VALUE, or listed at the beginning of the page."""
    listed = page("cli.md").partition("## Exit codes")[0]
    for name in COMMANDS:
        for option in options(name):
            if option.multiple and "=" not in (option.metavar or ""):
                assert f"`{option.opts[0]}`" in listed, (name, option.opts)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    """It says what it is for, and what it takes by a name of its own."""
    for option in options(name):
        assert option.help, option.opts
        if not option.is_flag and not isinstance(option.type, click.Choice):
            assert option.metavar, option.opts


@pytest.mark.parametrize("code", Exit)
def test_an_exit_code_is_documented(code: Exit) -> None:
    """The table of exit codes has a row for each, with what it means."""
    rows = [line for line in page("cli.md").splitlines() if re.match(rf"\| `?{code:d}`? \|", line)]
    assert len(rows) == 1
    assert code in MEANINGS


def test_no_exit_code_too_many_is_documented() -> None:
    """The table of exit codes has no row that the command does not know."""
    rows = re.findall(r"^\| `?(\d+)`? \|", page("cli.md"), re.MULTILINE)
    assert sorted(map(int, rows)) == sorted(Exit)
