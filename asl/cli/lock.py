"""`asl lock`: pin what a document imports."""

import json

import click

from asl.cli import streams
from asl.cli.arguments import ROOT
from asl.cli.exits import Exit
from asl.compose.imports import load_unlocked
from asl.compose.lock import LOCK, current_lock
from asl.core.diagnostics import place
from asl.core.document import Document
from asl.core.values import Json

__all__ = ["command"]


@click.command("lock")
@click.argument("document", metavar="DOC")
@click.option("--check", is_flag=True, help="Only say whether the lock is current.")
@ROOT
def command(document: str, check: bool, root: str | None) -> Exit:
    """Pin what a document imports: write the digest of every file into its _lock.

    From then on the document is refused while a file that it imports, or one that those import,
    differs from what was locked. With --check, exits with 3 if the lock is not current.
    """
    read, given = load_unlocked(document, root)
    report = place(read, read.findings)
    if not report.ok:
        streams.report(report)
        return Exit.INVALID
    wanted = current_lock(read)
    changed = [name for name in {**given, **wanted} if given.get(name) != wanted.get(name)]
    if not given and not wanted:
        streams.say(f"asl: {document} imports nothing: there is nothing to lock")
    elif not changed:
        streams.say(f"asl: the lock of {document} is current")
    elif check:
        names = ", ".join(map(repr, changed))
        streams.say(f"asl: the lock of {document} is not current: {names}", style="red")
        return Exit.INVALID
    else:
        streams.write_file(document, _with_member(read, LOCK, wanted))
        count = f"{len(wanted)} import{'s are' if len(wanted) != 1 else ' is'} locked"
        streams.say(f"asl: {count} in {document}", style="green")
    return Exit.OK


def _with_member(document: Document, key: str, value: Json) -> str:
    """Return the text of a document with another member, and everything else as it was."""
    text = document.source.text or ""
    if document.source.format == "yaml":
        return _in_yaml(text, key, value)
    if key in document.value:
        start = document.offset(f"/{key}")
        return text[:start] + _shown(value, _margin(text, start)) + text[_end(text, start) :]
    start = document.offset("/Imports", at_key=True)
    margin, after = _margin(text, start), _end(text, document.offset("/Imports"))
    return f"{text[:after]},\n{margin}{json.dumps(key)}: {_shown(value, margin)}{text[after:]}"


def _margin(text: str, offset: int) -> str:
    """The blanks at the beginning of the line in which an offset lies."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _end(text: str, offset: int) -> int:
    """Where the JSON value ends that begins at an offset."""
    return json.JSONDecoder().raw_decode(text, offset)[1]


def _shown(value: Json, margin: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", f"\n{margin}")


def _in_yaml(text: str, key: str, value: Json) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    document = yaml.load(text)
    document[key] = value
    written = StringIO()
    yaml.dump(document, written)
    return written.getvalue()
