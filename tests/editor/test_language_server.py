"""The language server, by a client over stdio."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import indent

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.editor.client import MARK, EditorClient, applied, in_editor

Use = Callable[[EditorClient], Awaitable[None]]

DOCUMENT = """{
  "StartAt": "First",
  "States": {
    "First": {
      "Type": "Pass",
      "Result": {"order": {"id": 1, "lines": []}},
      "Next": "Second"
    },
    "Second": {
      "Type": "Choice",
      "Choices": [{"Variable": "$.order.id", "NumericEquals": 1, "Next": "Third"}],
      "Default": "First"
    },
    "Third": {"Type": "Succeed"}
  }
}
"""
YAML = """\
StartAt: First
States:
  First:
    Type: Pass
    Next: Second
  Second:
    Type: Succeed
"""


def test_diagnostics_follow_changes(tmp_path: Path) -> None:
    """A change is checked, with the place, the code and the hint of its findings."""

    async def use(editor: EditorClient) -> None:
        uri = await editor.open("a.asl.json", DOCUMENT)
        assert await editor.diagnostics(uri) == []
        editor.change(uri, "Secnd", lsp.Range(lsp.Position(6, 15), lsp.Position(6, 21)))
        found = {each.code: each for each in await editor.diagnostics(uri)}
        target = found["V-ST-03"]
        assert target.range == lsp.Range(lsp.Position(6, 14), lsp.Position(6, 21))
        assert "did you mean 'Second'?" in target.message
        actions = await editor.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(uri), target.range, lsp.CodeActionContext([target])
            )
        )
        assert actions is not None
        (action,) = actions
        assert isinstance(action, lsp.CodeAction)
        assert action.edit is not None
        assert action.edit.changes is not None
        (edit,) = action.edit.changes[uri]
        assert edit.new_text == '"Second"'
        editor.change(uri, "{")
        assert [each.code for each in await editor.diagnostics(uri)] == ["READ-01"]
        editor.change(uri, DOCUMENT)
        assert await editor.diagnostics(uri) == []

    in_editor(tmp_path, use)


def test_diagnostics_of_templates_and_dialects(tmp_path: Path) -> None:
    """Definitions in templates are checked; a file that is no document is not."""
    template = """\
Resources:
  Machine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Definition:
"""
    template += indent(YAML.replace("Next: Second", "Next: Secnd"), " " * 8)

    async def use(editor: EditorClient) -> None:
        uri = await editor.open("template.yaml", template)
        found = [each for each in await editor.diagnostics(uri) if each.code == "V-ST-03"]
        assert [each.range.start for each in found] == [lsp.Position(9, 18)]
        uri = await editor.open("package.json", '{"name": "x"}')
        assert await editor.diagnostics(uri) == []

    in_editor(tmp_path, use)


COMPLETIONS = {
    "target": (DOCUMENT.replace('"Second"\n', '"|"\n'), {"Second", "Third"}, {"First"}),
    "typed target without the rest": (
        DOCUMENT.partition('"Second"\n')[0] + '"Se|',
        set[str](),
        {"Zeroth"},
    ),
    "fields of a Pass": (
        DOCUMENT.replace('"Type": "Pass",', '"Type": "Pass",\n"|'),
        {"ResultPath", "Comment"},
        {"Retry", "Result", "Output"},
    ),
    "type": (DOCUMENT.replace('"Succeed"', '"|"'), {"Wait", "Map"}, set()),
    "known data": (DOCUMENT.replace("$.order.id", "$.order.|"), {"id", "lines"}, set()),
    "intrinsic functions": (
        DOCUMENT.replace('"Result":', '"Parameters": {"a.$": "States.|"}, "Result":'),
        {"States.Format", "States.UUID"},
        set(),
    ),
    "context": (
        DOCUMENT.replace('"Result":', '"Parameters": {"a.$": "$$.Execution.|"}, "Result":'),
        {"Id", "StartTime"},
        set(),
    ),
    "JSONata": (
        DOCUMENT.replace(
            '"Type": "Pass"',
            '"Type": "Pass", "QueryLanguage": "JSONata", "Assign": {"who": 1}, '
            '"Output": "{% $| %}"',
        ),
        {"$states", "$uppercase", "$who"},
        set(),
    ),
    "errors": (
        DOCUMENT.replace(
            '"Third": {"Type": "Succeed"}',
            '"Third": {"Type": "Task", "Resource": "r", "End": true, '
            '"Retry": [{"ErrorEquals": ["States.|"]}]}',
        ),
        {"States.ALL", "States.Timeout"},
        set(),
    ),
    "agents of the project": (
        DOCUMENT.replace('"Third": {"Type": "Succeed"}', '"Third": {"Type": "Task", "Agent": "|"}'),
        {"writer"},
        set(),
    ),
}


def test_completion(tmp_path: Path) -> None:
    """What may follow depends on the place."""
    (tmp_path / "asl.toml").write_text('agents = ["agents.yaml"]\n')
    (tmp_path / "agents.yaml").write_text("agents:\n  writer: {return: 1}\n")

    async def use(editor: EditorClient) -> None:
        for case, (text, wanted, others) in COMPLETIONS.items():
            labels = {*await editor.labels(f"{case}.asl.json", text)}
            assert wanted <= labels, case
            assert not others & labels, case

    in_editor(tmp_path, use)


def test_completion_in_yaml(tmp_path: Path) -> None:
    """YAML that is being typed has fields and targets."""

    async def use(editor: EditorClient) -> None:
        typed = YAML.replace("    Next: Second\n", "    Res|\n")
        assert "ResultPath" in await editor.labels("a.asl.yaml", typed)
        typed = YAML.replace("    Next: Second\n", "    Next: |\n")
        assert {"Second"} <= {*await editor.labels("b.asl.yaml", typed)}
        typed = YAML + "  Third:\n    Type: Wait\n    |"
        (item, *_) = [e for e in await editor.completion("c.asl.yaml", typed) if e.label == "Next"]
        assert isinstance(item.text_edit, lsp.TextEdit)
        assert applied(typed.replace(MARK, ""), [item.text_edit]).endswith("    Next: ")

    in_editor(tmp_path, use)


def test_hover(tmp_path: Path) -> None:
    """Fields, functions, states and data are explained."""

    async def use(editor: EditorClient) -> None:
        text = DOCUMENT.replace('"Type": "Pass"', '"Ty|pe": "Pass"')
        assert "state" in (await editor.hover("a.asl.json", text) or "")
        text = DOCUMENT.replace('"Default": "First"', '"Default": "Fi|rst"')
        assert await editor.hover("a.asl.json", text) == "**First**: Pass"
        text = DOCUMENT.replace("$.order.id", "$.or|der")
        assert "{id, lines}" in (await editor.hover("a.asl.json", text) or "")
        text = DOCUMENT.replace("$.order.id", "States.Ha|sh($.a, 'MD5')")
        assert "States.Hash(" in (await editor.hover("a.asl.json", text) or "")

    in_editor(tmp_path, use)


def test_navigation(tmp_path: Path) -> None:
    """A state has a definition, references, a new name, and a symbol."""

    async def use(editor: EditorClient) -> None:
        uri, place = await editor.open_marked(
            "a.asl.json", DOCUMENT.replace('"Default": "First"', '"Default": "Fi|rst"')
        )
        document = lsp.TextDocumentIdentifier(uri)
        found = await editor.client.text_document_definition_async(
            lsp.DefinitionParams(document, place)
        )
        assert isinstance(found, lsp.Location)
        assert found.range.start == lsp.Position(3, 5)
        references = await editor.client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(True), document, place)
        )
        assert [each.range.start.line for each in references or ()] == [3, 1, 11]
        renamed = await editor.client.text_document_rename_async(
            lsp.RenameParams(document, place, "Begin")
        )
        assert renamed is not None
        assert renamed.changes is not None
        wanted = DOCUMENT.replace('"First"', '"Begin"')
        assert applied(DOCUMENT, [*renamed.changes[uri]]) == wanted
        with pytest.raises(JsonRpcException, match="'Third'"):
            await editor.client.text_document_rename_async(
                lsp.RenameParams(document, place, "Third")
            )
        symbols = await editor.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(document)
        )
        assert [each.name for each in symbols or ()] == ["First", "Second", "Third"]
        folds = await editor.client.text_document_folding_range_async(
            lsp.FoldingRangeParams(document)
        )
        assert (3, 6) in {(each.start_line, each.end_line) for each in folds or ()}

    in_editor(tmp_path, use)


def test_formatting(tmp_path: Path) -> None:
    """A document is laid out; one with errors is left alone."""

    async def use(editor: EditorClient) -> None:
        compact = json.dumps(json.loads(DOCUMENT))
        for text, count in ((compact, 1), ("{", 0)):
            uri = await editor.open("a.asl.json", text)
            edits = await editor.client.text_document_formatting_async(
                lsp.DocumentFormattingParams(
                    lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(2, True)
                )
            )
            assert len(edits or ()) == count

    in_editor(tmp_path, use)


def test_lenses_and_drawing(tmp_path: Path) -> None:
    """The lenses are those of the editor's commands; the preview gets a drawing with places."""

    async def use(editor: EditorClient) -> None:
        uri = await editor.open("a.asl.json", DOCUMENT)
        lenses = await editor.client.text_document_code_lens_async(
            lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri))
        )
        commands = [each.command.command for each in lenses or () if each.command]
        assert commands == ["asl.run", *["asl.showReferences"] * 3]
        drawn = await editor.client.protocol.send_request_async(
            "asl/graph", {"textDocument": {"uri": uri}}
        )
        (graph,) = drawn.graphs
        assert graph.svg.startswith("<svg")
        assert [each.name for each in graph.states] == ["First", "Second", "Third"]
        closed = {"textDocument": {"uri": "file:///closed.json"}}
        drawn = await editor.client.protocol.send_request_async("asl/graph", closed)
        assert drawn.message == "the document is not open"

    in_editor(tmp_path, use)


def test_server_ends_without_an_error() -> None:
    """After `shutdown` and `exit` it exits with 0."""
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "shutdown"},
        {"jsonrpc": "2.0", "method": "exit"},
    )
    texts = [json.dumps(each) for each in messages]
    done = subprocess.run(
        [sys.executable, "-m", "asl", "lsp"],
        input="".join(f"Content-Length: {len(each)}\r\n\r\n{each}" for each in texts),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
