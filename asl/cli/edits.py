"""Commands that rewrite documents: fmt, expand and lock."""

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
from asl.dialects.formatter import format_document, format_json

__all__ = ["expand_command", "fmt_command", "lock_command"]


@click.command("lock")
@click.argument("document", metavar="DOC")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 3 if the lock is out of date."
)
@ROOT
def lock_command(document: str, check: bool, root: str | None) -> Exit:
    """Write the digests of all imported files to the _lock of a document.

    A locked document is refused if a file that it imports, directly or not, has changed.
    """
    read, given = load_unlocked(document, root)
    report = place(read, read.findings)
    if not report.ok:
        console.print_report(report)
        return Exit.INVALID
    wanted = current_lock(read)
    changed = [name for name in {**given, **wanted} if given.get(name) != wanted.get(name)]
    if not given and not wanted:
        console.print_message(f"asl: {document} has no imports to lock")
    elif not changed:
        console.print_message(f"asl: the lock of {document} is current")
    elif check:
        names = ", ".join(map(repr, changed))
        console.print_message(
            f"asl: the lock of {document} is out of date for {names}: run 'asl lock {document}'",
            style="red",
        )
        return Exit.INVALID
    else:
        console.write_file(document, _set_member(read, LOCK, wanted))
        count = console.count_noun(len(wanted), "import")
        console.print_message(f"asl: locked {count} of {document}", style="green")
    return Exit.OK


def _set_member(document: Document, key: str, value: Json) -> str:
    """Return the text of a document with a new or changed member, otherwise unchanged."""
    text = document.source.text or ""
    if document.source.format == "yaml":
        return _set_yaml_member(text, key, value)
    if key in document.value:
        start = document.offset(f"/{key}")
        return (
            text[:start]
            + _indent_json(value, _margin(text, start))
            + text[_value_end(text, start) :]
        )
    start = document.offset("/Imports", at_key=True)
    margin, after = _margin(text, start), _value_end(text, document.offset("/Imports"))
    return (
        f"{text[:after]},\n{margin}{json.dumps(key)}: {_indent_json(value, margin)}{text[after:]}"
    )


def _margin(text: str, offset: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _value_end(text: str, offset: int) -> int:
    """Return the end of the JSON value at an offset."""
    return json.JSONDecoder().raw_decode(text, offset)[1]


def _indent_json(value: Json, margin: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", f"\n{margin}")


def _set_yaml_member(text: str, key: str, value: Json) -> str:
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
    """Print a document with its imports inlined.

    Every Include state contains its machine, with known parameters filled in. The result runs like
    DOC and needs no other file. Exits with 3 if an import fails.
    """
    read = read_document(document, origin)
    composing = () if read.composition is None else read.composition.findings
    report = place(read, [*read.findings, *composing])
    if not report.ok:
        console.print_report(report)
        return Exit.INVALID
    console.write_document(format_json(read.composed_value))
    return Exit.OK


@click.command("fmt")
@DOCUMENTS
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
def fmt_command(documents: tuple[str, ...], check: bool) -> Exit:
    """Format documents in place.

    DOC is a JSON or YAML file, a folder, or - to format standard input to standard output. In a
    folder the files *.asl.json, *.asl.yaml, *.agents.json and *.agents.yaml are formatted. JSON is
    indented by two spaces; YAML keeps comments, quotes and styles.
    """
    changed = []
    for name in [file for each in documents for file in list_files(each)]:
        if name == "-":
            source = open_source(sys.stdin.buffer.read(), name="<stdin>")
        else:
            source = open_source(Path(name))
        text = format_document(source)
        if name == "-" and not check:
            console.write_document(text)
        elif text != source.text:
            changed.append(name)
            if not check:
                console.write_file(name, text)
    for name in changed:
        console.print_message(f"asl: {name} {'would be reformatted' if check else 'reformatted'}")
    return Exit.FAILED if check and changed else Exit.OK
