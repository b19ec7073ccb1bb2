"""Features of the language server on documents in memory."""

import json
import random
from pathlib import Path

import pytest

from asl.editor.actions import code_actions
from asl.editor.completion import completion_items
from asl.editor.diagnostics import check_text, to_diagnostics
from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.graph import draw_document
from asl.editor.hover import hover_at
from asl.editor.json_syntax import parse_json
from asl.editor.lenses import GRAPH, REFERENCES, RUN, TEST, code_lenses
from asl.editor.navigation import document_symbols
from asl.editor.project import ProjectNames
from asl.editor.states import named_states, state_at
from asl.editor.yaml_syntax import CURSOR, parse_yaml
from tests.editor.client import MARK, applied
from tests.editor.test_language_server import DOCUMENT, YAML
from tests.editor.test_syntax import DOCUMENTS, ROOT

COMMANDS = (RUN, TEST, GRAPH, REFERENCES)
CHAIN = ROOT / "tests/dialects/documents/contenox/routing.json"


def opened(text: str, name: str = "a.asl.json") -> EditedDocument:
    """Open a text and find out its language."""
    document = EditedDocument(f"file:///{name}", None, text, 1)
    checked = check_text(text, None, document.format, ProjectNames())
    document.kind = checked.kind or document.kind
    return document


def marked(text: str, name: str = "a.asl.json") -> tuple[EditedDocument, int]:
    return opened(text.replace(MARK, "", 1), name), text.index(MARK)


# Lenses


def test_lenses_of_a_document() -> None:
    """A workflow is run and drawn; a state shows its references."""
    found = [each.command for each in code_lenses(opened(DOCUMENT), COMMANDS)]
    assert [(each.title, each.command) for each in found if each] == [
        ("Run", RUN),
        ("Graph", GRAPH),
        ("2 references", REFERENCES),
        ("1 reference", REFERENCES),
        ("1 reference", REFERENCES),
    ]
    assert code_lenses(opened(DOCUMENT), ()) == []


def test_lens_of_a_definition_in_a_template() -> None:
    """It names the resource."""
    text = "Resources:\n  Machine:\n    Properties:\n      Definition:\n"
    text += "".join(f"        {line}\n" for line in YAML.splitlines())
    (lens,) = code_lenses(EditedDocument("file:///t.yaml", None, text, 1), (RUN,))
    assert lens.command is not None
    assert lens.command.arguments == ["file:///t.yaml", "Machine"]
    assert lens.range.start.line == 4


def test_lenses_of_test_cases(tmp_path: Path) -> None:
    """A document has a lens for its cases, and each case one for itself."""
    suite = tmp_path / "a.asl-test.yaml"
    suite.write_text("cases:\n  - id: first\n    title: One\n  - title: Two\n")
    path = tmp_path / "a.asl.json"
    document = EditedDocument(path.as_uri(), str(path), DOCUMENT, 1)
    (lens,) = code_lenses(document, (TEST,))
    assert lens.command is not None
    assert lens.command.arguments == [suite.as_uri(), None]
    cases = EditedDocument(suite.as_uri(), str(suite), suite.read_text(), 1)
    found = [each.command.arguments for each in code_lenses(cases, (TEST,)) if each.command]
    assert [each[1] for each in found if each] == [None, "first", "Two"]


# Drawings


@pytest.mark.parametrize(("text", "name"), [(DOCUMENT, "a.asl.json"), (YAML, "a.asl.yaml")])
def test_drawing(text: str, name: str) -> None:
    """Each state of the drawing has its place in the text."""
    document = opened(text, name)
    (drawn,) = draw_document(document)["graphs"]
    for state in drawn["states"]:
        assert f'data-pointer="{state["pointer"]}"' in drawn["svg"]
        at = document.current.index.offset(state["range"].start)
        assert text[at:].lstrip('"').startswith(state["name"])
    assert len(drawn["states"]) == len(named_states(document))


def test_drawing_of_a_text_with_errors() -> None:
    """What is written is drawn; a text without a workflow has a message."""
    typed = opened(DOCUMENT.partition('"Third"')[0])
    (drawn,) = draw_document(typed)["graphs"]
    assert [each["name"] for each in drawn["states"]] == ["First", "Second"]
    assert draw_document(opened("{}"))["message"] == "there is no workflow in this document"
    assert draw_document(opened("tasks: ["))["graphs"] == []


def test_drawing_of_another_language() -> None:
    """The boxes of a chain lead to its tasks."""
    text = CHAIN.read_text(encoding="utf-8")
    document = opened(text, "routing.json")
    (drawn,) = draw_document(document)["graphs"]
    places = {each["name"]: each["range"].start for each in drawn["states"]}
    assert text[document.current.index.offset(places["billing"]) :].startswith("{")
    assert {"topic", "billing", "remind"} <= places.keys()


# States of other languages


def test_states_of_another_language() -> None:
    """They are completed, found and listed, but not renamed."""
    text = CHAIN.read_text(encoding="utf-8")
    document = opened(text, "routing.json")
    assert document.kind == "contenox"
    at = text.index('"goto": "') + len('"goto": "')
    found = state_at(document, at)
    assert found is not None
    assert found.key is not None
    assert text[at:].startswith(found.name)
    symbols = [each.name for each in document_symbols(document)]
    assert symbols == [each.name for each in named_states(document)]
    assert found.name in {each.label for each in completion_items(document, at, ProjectNames())}


# Data


def test_members_of_variables() -> None:
    """A variable with a literal value has members and a shape."""
    text = DOCUMENT.replace('"Type": "Pass"', '"Type": "Pass", "Assign": {"cart": {"sum.$": "$"}}')
    document, at = marked(text.replace("$.order.id", f"$cart.{MARK}"))
    assert {each.label for each in completion_items(document, at, ProjectNames())} == {"sum"}
    document, at = marked(text.replace("$.order.id", f"$ca{MARK}rt"))
    hover = hover_at(document, at)
    assert hover is not None
    assert "`$cart`: variable" in str(hover.contents)
    assert "{sum}" in str(hover.contents)


# Actions

FIXES = {
    "key of a path": (
        {"Type": "Pass", "Parameters": {"x": "$.a"}, "End": True},
        {"Type": "Pass", "Parameters": {"x.$": "$.a"}, "End": True},
    ),
    "delimiters of an expression": (
        {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "$states.input", "End": True},
        {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $states.input %}", "End": True},
    ),
    "array of a Map": (
        {"Type": "Map", "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Succeed"}}},
         "End": True},
        {"ItemsPath": "$", "Type": "Map", "ItemProcessor": {"StartAt": "B", "States": {
            "B": {"Type": "Succeed"}}}, "End": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FIXES)
def test_action_writes_a_member(case: str) -> None:
    """The change that a hint names is made."""
    before, after = ({"StartAt": "A", "States": {"A": each}} for each in FIXES[case])
    text = json.dumps(before, indent=2)
    document = opened(text)
    checked = check_text(text, None, "json", ProjectNames())
    found = to_diagnostics(checked, document.current, None)
    (action,) = code_actions(document, found)
    assert action.edit is not None
    assert action.edit.changes is not None
    assert json.loads(applied(text, [*action.edit.changes[document.uri]])) == after


# The cursor


def test_cursor_is_that_of_the_text_before_it() -> None:
    """What is known of the whole text spares the parsing of the text before the cursor."""
    chance = random.Random(5)
    for _ in range(300):
        path = chance.choice(DOCUMENTS)
        version = TextVersion(path.read_text(encoding="utf-8"), path.suffix != ".json")
        offset = chance.randrange(len(version.text) + 1)
        alone = TextVersion(version.text[:offset], version.is_yaml)
        alone.__dict__["tree"] = (parse_yaml if version.is_yaml else parse_json)(CURSOR)
        assert version.cursor(offset) == alone.cursor(offset), (path.name, offset)
