"""Agents files: who answers for the names in a document."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.file import InvalidAgents, load_bindings
from asl.agents.registry import FileBindings

from .workflows import task

pytestmark = pytest.mark.quick


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
    """A check needs names only; no code of the user runs, no secret is looked up."""
    text = "A: nowhere_at_all:f\nB: {command: [x], environment: {K: '${env:NOT_THERE}'}}"
    bound = load_bindings(written(tmp_path, text), build=False)
    assert bound.agents["A"] == "nowhere_at_all:f"
    assert bound.agents["B"]["environment"] == {"K": "${env:NOT_THERE}"}


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
    one = FileBindings({"A": 1, "B": 1}, {"r": 1}, {})
    other = FileBindings({"B": 2}, {}, {"s": 2})
    assert one | other == FileBindings({"A": 1, "B": 2}, {"r": 1}, {"s": 2})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- A", "agents.yaml:1:1: error AGENTS-01: an agents file must be an object, not an array"),
        ("A: 1", "agents.yaml:1:4: error AGENTS-03: an agent is 'module:function' or an object"),
        ("A: nocolon", "agents.yaml:1:4: error AGENTS-01: 'function' must be 'module:function'"),
        (
            "A: {function: 3}",
            "1:15: error AGENTS-01: 'function' must be 'module:function'",
        ),
        ("A: {retrun: 1}", "agents.yaml:1:5: error AGENTS-02: there is no field 'retrun' here"),
        ("A: {retrun: 1}", "(did you mean 'return'?)"),
        ("A: hi", '(write module:function, or {"return":"hi"} for an answer as it is)'),
        ("A: billing.charge", "(did you mean 'billing:charge'?)"),
        ("A: nowhere/at_all.py:f", "there is no file"),
        (
            "A: {command: 'python3 p.py \"a b\"'}",
            '(put it in an array: ["python3","p.py","a b"])',
        ),
        ("A: {raise: Busy}", '(write {"Error":"Busy"})'),
        ("A: {model: gpt-5}", "(did you mean 'openai:gpt-5'?)"),
        ("A: {model: openai/gpt-5}", "(did you mean 'openai:gpt-5'?)"),
        ("A: {model: llama}", "(put its provider before it, as in openai:llama)"),
        ("A: {}", "agents.yaml:1:4: error AGENTS-03: the kind of agent is missing"),
        ("A: {delay: 3}", "agents.yaml:1:4: error AGENTS-03: the kind of agent is missing"),
        ("A: {return: 1, function: a:b}", "AGENTS-03: 'function' and 'return' exclude each other"),
        ("A: {return: 1, folder: x}", "agents.yaml:1:16: error AGENTS-02: there is no field"),
        ("A: {return: 1, echo: true}", "agents.yaml:1:4: error AGENTS-03: exactly one of return"),
        ("A: {command: ls}", "agents.yaml:1:14: error AGENTS-01: 'command' must be an array"),
        ("A: {command: []}", "agents.yaml:1:14: error AGENTS-01: 'command' must not be empty"),
        (
            "A: {command: [ls], folder: nope}",
            "1:28: error AGENTS-04: 'folder' is no folder",
        ),
        ("A: {command: [ls], environment: {N: 1}}", "1:37: error AGENTS-01: 'N' must be a string"),
        ("A: {sequence: [{return: 1}, {delay: 1}]}", "1:29: error AGENTS-03: exactly one of"),
        ("A: {raise: Busy}", "agents.yaml:1:12: error AGENTS-01: 'raise' must be an object"),
        ("A: {raise: {error: Busy}}", "1:13: error AGENTS-02: there is no field 'error' here"),
        ("A:\n  return: 1\n  delay: soon", "3:10: error AGENTS-01: 'delay' must be a number"),
        ("agents: [A]", "agents.yaml:1:9: error AGENTS-01: 'agents' must be an object"),
        ("agents: {}\nmock: {}", "agents.yaml:2:1: error AGENTS-02: there is no field 'mock' here"),
        ("agents: {}\nmock: {}", "(did you mean 'mocks'?)"),
        ("agnets:\n  A: a:b", "agents.yaml:2:3: error AGENTS-03: the kind of agent is missing"),
        ("agnets:\n  A: a:b", "(did you mean 'agents'?)"),
    ],
)
def test_a_fault_has_its_place(text: str, found: str, tmp_path: Path) -> None:
    """Every fault names file, line, column and agent, and what may have been meant."""
    assert found in faults(tmp_path, text)


def test_no_fault_is_one_of_aws(tmp_path: Path) -> None:
    """AWS knows no agents files, whatever it says of the types of fields."""
    with pytest.raises(InvalidAgents) as caught:
        load_bindings(written(tmp_path, "A: {command: ls}"))
    assert [each.aws for each in caught.value.report] == [None]


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """One line for each fault."""
    assert len(faults(tmp_path, "A: 1\nB: {}\nC: {return: 1}\nD: x").splitlines()) == 3


def test_an_installed_module_goes_before_a_file_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def mine(p): return p")
    assert "installed module 'json' has no 'mine' (a file of yours is json.py:mine)" in faults(
        tmp_path, "A: json:mine"
    )


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("f = 3", "is no function but int"),
        ("def f(): pass", "an agent or a tool takes (parameters)"),
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
    assert found.startswith("agents.yaml:1:4: error AGENTS-04: ")
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

    text = "\n".join(
        line[4:] for line in (module.__doc__ or "").splitlines() if line.startswith("    ")
    )
    bound: Any = load_bindings(written(tmp_path, text), build=False)
    assert set(bound.agents) == {
        *("Reviewer", "Translator", "Editor", "Writer", "Reader", "Critic"),
    }
    assert set(bound.mocks) == {"AskTheBoss"}
