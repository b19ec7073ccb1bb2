"""`asl lock`: pin what a document imports."""

import json
import sys
from pathlib import Path

import click

from asl.cli import console
from asl.cli.arguments import DOCUMENTS, ROOT, Origin, list_files, origin_options, read_document
from asl.cli.console import Exit
from asl.compose.imports import load_unlocked
from asl.compose.lock import LOCK, current_lock
from asl.core.diagnostics import place
from asl.core.document import Document, open_source
from asl.core.values import Json
from asl.dialects.layout import formatted, laid_out

__all__ = ["expand_command", "fmt_command", "lock_command"]


@click.command("lock")
@click.argument("document", metavar="DOC")
@click.option("--check", is_flag=True, help="Only say whether the lock is current.")
@ROOT
def lock_command(document: str, check: bool, root: str | None) -> Exit:
    """Pin what a document imports: write the digest of every file into its _lock.

    From then on the document is refused while a file that it imports, or one that those import,
    differs from what was locked. With --check, exits with 3 if the lock is not current.
    """
    read, given = load_unlocked(document, root)
    report = place(read, read.findings)
    if not report.ok:
        console.report(report)
        return Exit.INVALID
    wanted = current_lock(read)
    changed = [name for name in {**given, **wanted} if given.get(name) != wanted.get(name)]
    if not given and not wanted:
        console.say(f"asl: {document} imports nothing: there is nothing to lock")
    elif not changed:
        console.say(f"asl: the lock of {document} is current")
    elif check:
        names = ", ".join(map(repr, changed))
        console.say(f"asl: the lock of {document} is not current: {names}", style="red")
        return Exit.INVALID
    else:
        console.write_file(document, _with_member(read, LOCK, wanted))
        count = f"{len(wanted)} import{'s are' if len(wanted) != 1 else ' is'} locked"
        console.say(f"asl: {count} in {document}", style="green")
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


@click.command("expand")
@click.argument("document", metavar="DOC")
@origin_options
def expand_command(document: str, origin: Origin) -> Exit:
    """Print a document with all that it imports put in its place.

    Every Include holds its machine, with the parameters filled in that are known before a run. What
    is printed runs like DOC and needs no other file. Exits with 3 if something cannot be included.
    """
    read = read_document(document, origin)
    composing = () if read.composition is None else read.composition.findings
    report = place(read, [*read.findings, *composing])
    if not report.ok:
        console.report(report)
        return Exit.INVALID
    console.write_document(laid_out(read.whole))
    return Exit.OK


@click.command("fmt")
@DOCUMENTS
@click.option(
    "--check", is_flag=True, help="Change nothing; exit with 1 if something would change."
)
def fmt_command(documents: tuple[str, ...], check: bool) -> Exit:
    """Write documents in their usual layout; what they say stays the same.

    DOC is a file in JSON or YAML, which is changed in its place, or a folder: then what is named
    *.asl.json or *.agents.yaml (or the other way) below it. - is standard input, which is written
    to standard output. JSON is indented by two; YAML keeps its comments, quotes and styles.
    """
    changed = []
    for name in [file for each in documents for file in list_files(each)]:
        if name == "-":
            source = open_source(sys.stdin.buffer.read(), name="<stdin>")
        else:
            source = open_source(Path(name))
        text = formatted(source)
        if name == "-" and not check:
            console.write_document(text)
        elif text != source.text:
            changed.append(name)
            if not check:
                console.write_file(name, text)
    for name in changed:
        console.say(f"asl: {name} {'has another layout' if check else 'was laid out'}")
    return Exit.FAILED if check and changed else Exit.OK
