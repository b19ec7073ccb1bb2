"""The language server: requests and notifications of the protocol, and the open documents."""

import asyncio
import os
from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from asl import __version__
from asl.core.errors import AslError
from asl.core.source import Source
from asl.dialects.formatter import format_document
from asl.editor.actions import code_actions
from asl.editor.completion import completion_items
from asl.editor.diagnostics import CheckedText, check_text, to_diagnostics
from asl.editor.edited import EditedDocument
from asl.editor.graph import GRAPH_REQUEST, DrawnDocument, draw_document
from asl.editor.hover import hover_at
from asl.editor.lenses import code_lenses
from asl.editor.navigation import (
    document_symbols,
    folding_ranges,
    inner_span,
    rename_edits,
    symbol_ranges,
)
from asl.editor.project import FindProject, ProjectNames
from asl.editor.states import state_at

__all__ = ["create_server"]

DEBOUNCE: Final = 0.2
"""Seconds without a change after which a document is checked."""

P = TypeVar("P")
R = TypeVar("R")


class PositionParams(Protocol):
    """The parameters of a request about a place in a document."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


class GraphParams(Protocol):
    """The parameters of `asl/graph`, whose names are those of the protocol."""

    textDocument: lsp.TextDocumentIdentifier  # noqa: N815


class _Session:
    """The open documents of a client, and their checks."""

    def __init__(self, server: LanguageServer, find_project: FindProject, debounce: float) -> None:
        self.server = server
        self.find_project = find_project
        self.debounce = debounce
        self.documents: dict[str, EditedDocument] = {}
        self.checks: dict[str, asyncio.Task[None]] = {}
        self.commands: Collection[str] = ()
        """The commands that the editor can perform."""
        self.refreshes_lenses = False
        """Whether the editor asks again for lenses when the server wants it."""

    def initialize(self, params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        commands = options.get("commands") if isinstance(options, dict) else None
        self.commands = commands if isinstance(commands, list) else ()
        workspace = params.capabilities.workspace
        lenses = None if workspace is None else workspace.code_lens
        self.refreshes_lenses = lenses is not None and bool(lenses.refresh_support)

    def open(self, item: lsp.TextDocumentItem) -> None:
        path = to_fs_path(item.uri) if item.uri.startswith("file:") else None
        self.documents[item.uri] = EditedDocument(item.uri, path, item.text, item.version)
        self.schedule(item.uri, 0)

    def change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            document.change(params.content_changes, params.text_document.version)
            self.schedule(document.uri, self.debounce)

    def close(self, uri: str) -> None:
        self.documents.pop(uri, None)
        task = self.checks.pop(uri, None)
        if task is not None:
            task.cancel()
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def schedule(self, uri: str, delay: float) -> None:
        """Check a document after a delay, instead of a check that has not begun yet."""
        before = self.checks.get(uri)
        if before is not None:
            before.cancel()
        self.checks[uri] = asyncio.ensure_future(self._check(uri, delay))

    async def _check(self, uri: str, delay: float) -> None:
        await asyncio.sleep(delay)
        document = self.documents[uri]
        version, number = document.current, document.version
        checked = await asyncio.to_thread(self._checked, document, version.text)
        if self.documents.get(uri) is not document or document.current is not version:
            return
        if checked.kind is not None and checked.kind != document.kind:
            document.kind = checked.kind
            if self.refreshes_lenses:
                self.server.workspace_code_lens_refresh(None)
        self.server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri, to_diagnostics(checked, version, document.path), number
            )
        )

    def _checked(self, document: EditedDocument, text: str) -> CheckedText:
        """Check a text; settings of the project that cannot be used are reported instead."""
        try:
            project = self.project(document)
        except AslError as error:
            return CheckedText(None, (), str(error))
        return check_text(text, document.path, document.format, project)

    def project(self, document: EditedDocument) -> ProjectNames:
        """Return the project around a document.

        Raises:
            AslError: Its settings or files cannot be read.
        """
        return self.find_project(os.path.dirname(document.path) if document.path else os.curdir)

    def names(self, document: EditedDocument) -> ProjectNames:
        """Return the project around a document; an empty one if it cannot be read."""
        try:
            return self.project(document)
        except AslError:
            return ProjectNames()

    def at(self, params: PositionParams) -> tuple[EditedDocument, int] | None:
        """Return the document and the offset of a request; None if it is not open."""
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return None
        return document, document.current.index.offset(params.position)

    def completion(self, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        place = self.at(params)
        return [] if place is None else completion_items(*place, self.names(place[0]))

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        place = self.at(params)
        return None if place is None else hover_at(*place)

    def definition(self, params: lsp.DefinitionParams) -> lsp.Location | None:
        place = self.at(params)
        use = None if place is None else state_at(*place)
        if place is None or use is None or use.key is None:
            return None
        span = inner_span(place[0].current.text, use.key)
        return lsp.Location(place[0].uri, place[0].current.index.range(*span))

    def references(self, params: lsp.ReferenceParams) -> list[lsp.Location]:
        place = self.at(params)
        use = None if place is None else state_at(*place)
        if place is None or use is None:
            return []
        ranges = symbol_ranges(place[0].current, use, params.context.include_declaration)
        return [lsp.Location(place[0].uri, each) for each in ranges]

    def prepare_rename(self, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        place = self.at(params)
        if place is None or place[0].kind != "asl" or state_at(*place) is None:
            return None
        version = place[0].current
        _, _, part = version.steps_at(place[1])
        return version.index.range(*inner_span(version.text, part))

    def rename(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        place = self.at(params)
        use = None if place is None else state_at(*place)
        if place is None or use is None:
            return None
        try:
            edits = rename_edits(place[0], use, params.new_name)
        except AslError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        return lsp.WorkspaceEdit({place[0].uri: edits})

    def symbols(self, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = self.documents.get(params.text_document.uri)
        return [] if document is None else document_symbols(document)

    def folding(self, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = self.documents.get(params.text_document.uri)
        return [] if document is None else folding_ranges(document.current)

    def formatting(self, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return None
        version = document.current
        try:
            text = format_document(Source(document.path, version.text, document.format))
        except AslError:
            return None  # a text with errors, which are diagnostics
        if text == version.text:
            return []
        return [lsp.TextEdit(version.index.range(0, len(version.text)), text)]

    def lenses(self, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = self.documents.get(params.text_document.uri)
        return [] if document is None else code_lenses(document, self.commands)

    async def graph(self, params: GraphParams) -> DrawnDocument:
        document = self.documents.get(params.textDocument.uri)
        if document is None:
            return {"graphs": [], "message": "the document is not open"}
        return await asyncio.to_thread(draw_document, document)

    def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = self.documents.get(params.text_document.uri)
        return [] if document is None else code_actions(document, params.context.diagnostics)


def create_server(find_project: FindProject, debounce: float = DEBOUNCE) -> LanguageServer:
    """Return the server, which serves one client.

    Args:
        find_project: Returns the project of a folder.
        debounce: Seconds without a change after which a document is checked.
    """
    server = LanguageServer("asl", __version__)
    session = _Session(server, find_project, debounce)

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        session.initialize(params)

    @server.feature(GRAPH_REQUEST)
    async def graph(params: GraphParams) -> DrawnDocument:
        return await session.graph(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        session.open(params.text_document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        session.change(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        for uri in session.documents:  # a saved file may be part of others
            session.schedule(uri, 0)

    for name, handle in (
        (lsp.TEXT_DOCUMENT_HOVER, session.hover),
        (lsp.TEXT_DOCUMENT_DEFINITION, session.definition),
        (lsp.TEXT_DOCUMENT_REFERENCES, session.references),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, session.symbols),
        (lsp.TEXT_DOCUMENT_FOLDING_RANGE, session.folding),
        (lsp.TEXT_DOCUMENT_FORMATTING, session.formatting),
        (lsp.TEXT_DOCUMENT_CODE_LENS, session.lenses),
        (lsp.TEXT_DOCUMENT_PREPARE_RENAME, session.prepare_rename),
    ):
        server.feature(name)(_as_function(handle))
    options = lsp.CompletionOptions(trigger_characters=['"', ".", "$", ":", " "])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)(_as_function(session.completion))
    server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))(
        _as_function(session.rename)
    )
    quick = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, quick)(_as_function(session.actions))
    return server


def _as_function(method: Callable[[P], R]) -> Callable[[P], R]:
    """Return a function for a method: the registration marks what it gets with attributes."""

    def handle(params: P) -> R:
        return method(params)

    return handle
