"""`asl fmt`: the usual layout of documents."""

import sys
from pathlib import Path

import click

from asl.cli import streams
from asl.cli.arguments import DOCUMENTS, files_of
from asl.cli.exits import Exit
from asl.core.document import open_source
from asl.dialects.layout import formatted

__all__ = ["command"]


@click.command("fmt")
@DOCUMENTS
@click.option(
    "--check", is_flag=True, help="Change nothing; exit with 1 if something would change."
)
def command(documents: tuple[str, ...], check: bool) -> Exit:
    """Write documents in their usual layout; what they say stays the same.

    DOC is a file in JSON or YAML, which is changed in its place, or a folder: then what is named
    *.asl.json or *.agents.yaml (or the other way) below it. - is standard input, which is written
    to standard output. JSON is indented by two; YAML keeps its comments, quotes and styles.
    """
    changed = []
    for name in [file for each in documents for file in files_of(each)]:
        if name == "-":
            source = open_source(sys.stdin.buffer.read(), name="<stdin>")
        else:
            source = open_source(Path(name))
        text = formatted(source)
        if name == "-" and not check:
            streams.document(text)
        elif text != source.text:
            changed.append(name)
            if not check:
                streams.write_file(name, text)
    for name in changed:
        streams.say(f"asl: {name} {'has another layout' if check else 'was laid out'}")
    return Exit.FAILED if check and changed else Exit.OK
