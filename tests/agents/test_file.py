"""Agents files: who answers for the names in a document."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.file import Bindings, InvalidAgents, load_bindings

from .workflows import task


def written(folder: Path, text: str, name: str = "agents.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def faults(folder: Path, text: str) -> str:
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(written(folder, text))
    return str(refusal.value).replace(f"{folder}/", "")


def test_every_kind_of_agent_can_be_written_down(tmp_path: Path) -> None:
    """Functions, programs and scripts are bound in three sections."""
    command = json.dumps([sys.executable, "-c", "input(); print('{\"return\": 3}')"])
    bound = load_bindings(
        written(
            tmp_path,
            f"""
agents:
  One: builtins:len
  Two: {{function: builtins:len}}
  Three: {{command: {command}}}
  Four: {{return: 4}}
resources:
  "arn:*": {{return: 5}}
mocks:
  State: {{raise: {{Error: Busy}}}}
""",
        )
    )
    answers = [
        asl.run(task(Agent=name), {"a": 1}, agents=bound.agents).output for name in bound.agents
    ]
    assert answers == [1, 1, 3, 4]
    assert list(bound.resources) == ["arn:*"]
    assert list(bound.mocks) == ["State"]


def test_a_file_without_sections_binds_agents(tmp_path: Path) -> None:
    """The short form is the mapping of agents itself, in JSON as well."""
    bound = load_bindings(written(tmp_path, '{"A": {"return": 1}}', "agents.json"))
    assert asl.run(task(), agents=bound.agents).output == 1
    assert (bound.resources, bound.mocks) == ({}, {})


def test_functions_are_not_imported_where_names_suffice(tmp_path: Path) -> None:
    """A check needs names only; no code of the user runs."""
    file = written(tmp_path, "A: nowhere_at_all:f")
    assert load_bindings(file, import_functions=False).agents == {"A": "nowhere_at_all:f"}


def test_the_folder_of_a_program_is_relative_to_the_file(tmp_path: Path) -> None:
    """`folder` starts where the agents file stands, which is also the default."""
    (tmp_path / "tools").mkdir()
    script = "import os, json; input(); print(json.dumps({'return': os.getcwd()}))"
    command = json.dumps([sys.executable, "-c", script])
    text = f"A: {{command: {command}, folder: tools}}\nB: {{command: {command}}}"
    bound = load_bindings(written(tmp_path, text))
    for name, folder in (("A", tmp_path / "tools"), ("B", tmp_path)):
        output = asl.run(task(Agent=name), agents=bound.agents).output
        assert Path(output).samefile(folder)


def test_bindings_join_and_the_last_wins() -> None:
    """`|` merges section by section."""
    one = Bindings({"A": 1, "B": 1}, {"r": 1}, {})
    other = Bindings({"B": 2}, {}, {"s": 2})
    assert one | other == Bindings({"A": 1, "B": 2}, {"r": 1}, {"s": 2})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- A", "agents.yaml:1:1: an agents file is an object, not array"),
        ("A: 1", "agents.yaml:1:4: A: an agent is 'module:function', or an object"),
        ("A: nocolon", "agents.yaml:1:4: A: a function is written 'module:function'"),
        ("A: {function: 3}", "agents.yaml:1:15: A: a function is written"),
        ("A: nowhere_at_all:f", "agents.yaml:1:4: A: cannot import 'nowhere_at_all:f'"),
        ("A: {retrun: 1}", "agents.yaml:1:5: A: unknown key 'retrun' (did you mean 'return'?)"),
        ("A: {}", "agents.yaml:1:4: A: exactly one of return"),
        ("A: {return: 1, function: a:b}", "agents.yaml:1:5: A: 'return' does not go with"),
        ("A: {command: ls}", "agents.yaml:1:14: A: 'command' is a list"),
        ("A: {folder: x}", "agents.yaml:1:4: A: 'command' is a list"),
        ("A: {command: [ls], folder: nope}", "agents.yaml:1:28: A: 'folder' is no folder: 'nope'"),
        ("A: {command: [ls], environment: {N: 1}}", "agents.yaml:1:33: A: 'environment' holds"),
        ("A: {sequence: [{return: 1}, {delay: 1}]}", "agents.yaml:1:29: A: exactly one of"),
        ("A:\n  return: 1\n  delay: soon", "agents.yaml:3:10: A: a number of seconds above 0"),
        ("agents: [A]", "agents.yaml:1:9: names with their agents, not array"),
        ("agents: {}\nmock: {}", "agents.yaml:2:1: unknown key 'mock' (did you mean 'mocks'?)"),
        ("agnets:\n  A: a:b", "agents.yaml:2:3: agnets: unknown key 'A'"),
        ("agnets:\n  A: a:b", "(did you mean 'agents'?)"),
    ],
)
def test_a_fault_has_its_place(text: str, found: str, tmp_path: Path) -> None:
    """Every fault names file, line, column and agent, and what may have been meant."""
    assert found in faults(tmp_path, text)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """One line for each fault."""
    assert len(faults(tmp_path, "A: 1\nB: {}\nC: {return: 1}\nD: x").splitlines()) == 3


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("f = 3", "is no function but int"),
        ("def f(): pass", "an agent takes (parameters)"),
        ("def g(p): pass", "has no 'f'"),
    ],
)
def test_a_module_that_fails_is_no_crash(
    code: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong while a user's module is imported is said with the place in the file."""
    name = f"broken_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found = faults(tmp_path, f"A: {name}:f")
    assert found.startswith("agents.yaml:1:4: A: ")
    assert cause in found


def test_what_is_no_yaml_is_a_fault_of_reading(tmp_path: Path) -> None:
    """Syntax errors and missing files are reported as for documents."""
    with pytest.raises(asl.InvalidDocument):
        load_bindings(written(tmp_path, "A: [1"))
    with pytest.raises(asl.DocumentNotFound, match=r"agents\.yml"):
        load_bindings(tmp_path / "agents.yml")


def test_the_example_in_the_module_is_right(tmp_path: Path) -> None:
    """What the documentation shows can be read."""
    import asl.agents.file as module

    text = "\n".join(line[4:] for line in (module.__doc__ or "").splitlines()[2:-2])
    bound: Any = load_bindings(written(tmp_path, text), import_functions=False)
    assert set(bound.agents) == {"Reviewer", "Translator", "Critic"}
    assert set(bound.mocks) == {"AskTheBoss"}
