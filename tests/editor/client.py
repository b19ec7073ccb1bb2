"""A language client over stdio for tests."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

SECONDS = 30
MARK = "|"
COMMANDS = ["asl.run", "asl.showReferences"]


class EditorClient:
    """An editor with a running server, and the diagnostics that it got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("tests", "1")
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

    async def open(self, name: str, text: str) -> str:
        uri = (self.folder / name).as_uri()
        self.versions[uri], self.texts[uri] = 1, text
        item = lsp.TextDocumentItem(uri, "json", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    async def open_marked(self, name: str, text: str) -> tuple[str, lsp.Position]:
        """Open a text with a mark at the cursor; return the place of the mark."""
        before = text.partition(MARK)[0]
        position = lsp.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)
        return await self.open(name, text.replace(MARK, "", 1)), position

    def change(self, uri: str, text: str, where: lsp.Range | None = None) -> None:
        self.versions[uri] += 1
        changed: lsp.TextDocumentContentChangeEvent
        if where is None:
            changed = lsp.TextDocumentContentChangeWholeDocument(text)
        else:
            changed = lsp.TextDocumentContentChangePartial(where, text)
        identifier = lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [changed]))

    async def diagnostics(self, uri: str) -> list[lsp.Diagnostic]:
        """Return the diagnostics of the current version of a document."""
        while True:
            found = await asyncio.wait_for(self.published.get(), SECONDS)
            if found.uri == uri and found.version == self.versions[uri]:
                return [*found.diagnostics]

    async def labels(self, name: str, text: str) -> list[str]:
        """Return the labels of the completion at the mark of a text."""
        return [each.label for each in await self.completion(name, text)]

    async def completion(self, name: str, text: str) -> list[lsp.CompletionItem]:
        uri, position = await self.open_marked(name, text)
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), position)
        )
        assert isinstance(found, list)
        return found

    async def hover(self, name: str, text: str) -> str | None:
        uri, position = await self.open_marked(name, text)
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(uri), position)
        )
        if found is None:
            return None
        assert isinstance(found.contents, lsp.MarkupContent)
        return found.contents.value


@asynccontextmanager
async def editor(folder: Path) -> AsyncIterator[EditorClient]:
    """Start `asl lsp` in a folder, and end it."""
    opened = EditorClient(folder)
    await opened.client.start_io(sys.executable, "-m", "asl", "lsp", cwd=folder)
    await opened.client.initialize_async(
        lsp.InitializeParams(
            lsp.ClientCapabilities(),
            root_uri=folder.as_uri(),
            initialization_options={"commands": COMMANDS},
        )
    )
    opened.client.initialized(lsp.InitializedParams())
    yield opened
    await opened.client.shutdown_async(None)
    opened.client.exit(None)
    await opened.client.stop()


def in_editor(folder: Path, use: Callable[[EditorClient], Awaitable[None]]) -> None:
    """Run a test with a server."""

    async def run() -> None:
        async with editor(folder) as opened:
            await use(opened)

    asyncio.run(run())


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    """Return a text with edits of an editor."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines) + 1)]
    for edit in sorted(edits, key=lambda each: each.range.start, reverse=True):
        start = starts[edit.range.start.line] + edit.range.start.character
        end = starts[edit.range.end.line] + edit.range.end.character
        text = text[:start] + edit.new_text + text[end:]
    return text
