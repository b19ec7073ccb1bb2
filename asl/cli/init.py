"""`asl init`: a first document with its agents file and test cases."""

import os
import re
import shlex
from pathlib import Path

import click

from asl.cli import console
from asl.cli.arguments import DEFAULT_ORIGIN, read_document
from asl.cli.console import Exit
from asl.core.document import Document
from asl.core.environment import data_folder
from asl.core.errors import AslError
from asl.documents.agents_file import draft_agents_file

__all__ = ["init_command"]

DOCUMENT = """\
{
  "Comment": "Judges a text and sorts it by its score.",
  "StartAt": "Judge",
  "States": {
    "Judge": {
      "Type": "Task",
      "Agent": "Judge",
      "Parameters": { "prompt.$": "States.Format('Judge this text from 0 to 10: {}', $.text)" },
      "ResultPath": "$.judgement",
      "TimeoutSeconds": 60,
      "Retry": [
        { "ErrorEquals": ["States.RateLimitExceeded"], "IntervalSeconds": 5, "MaxAttempts": 3 }
      ],
      "Catch": [
        { "ErrorEquals": ["States.ALL"], "ResultPath": "$.problem", "Next": "ByHand" }
      ],
      "Next": "Sort"
    },
    "Sort": {
      "Type": "Choice",
      "Choices": [
        { "Variable": "$.judgement.score", "NumericGreaterThanEquals": 7, "Next": "Accepted" }
      ],
      "Default": "Rejected"
    },
    "Accepted": { "Type": "Pass", "Result": "accepted", "ResultPath": "$.verdict", "End": true },
    "Rejected": { "Type": "Pass", "Result": "rejected", "ResultPath": "$.verdict", "End": true },
    "ByHand": { "Type": "Pass", "Result": "by hand", "ResultPath": "$.verdict", "End": true }
  }
}
"""

AGENTS = """\
# The agents of the document. This one is a table of fixed answers. Replace it by a language model;
# the document does not change:
#
#   Judge:
#     model: openai:gpt-5
#     key: ${env:OPENAI_API_KEY}
#     output: { type: object, properties: { score: { type: integer } }, required: [score] }
#
# or by a Python function (my_module:judge), a program or an HTTP endpoint.
agents:
  Judge:
    table:
      - when: { prompt: { $like: ".*poem.*" } }
        then: { return: { score: 9 } }
      - then: { return: { score: 4 } }
"""

CASES = """\
# Test cases of the document. Run them with asl test or pytest.
suite: {name}
document_file: {name}.asl.json
cases:
  - id: {name}/accepted
    title: A text with a good score is accepted
    input: {{ text: A poem. }}
    agents: {{ Judge: {{ return: {{ score: 7 }} }} }}
    expect:
      visited: [Judge, Sort, Accepted]
      output: {{ text: A poem., judgement: {{ score: 7 }}, verdict: accepted }}

  - id: {name}/rejected
    title: A text with a lower score is rejected
    input: {{ text: Bla. }}
    agents: {{ Judge: {{ return: {{ score: 6 }} }} }}
    expect: {{ visited: [Judge, Sort, Rejected] }}

  - id: {name}/by-hand
    title: A judge that fails is replaced
    input: {{ text: Bla. }}
    agents: {{ Judge: {{ raise: {{ Error: Agent.ModelError }} }} }}
    expect: {{ visited: [Judge, ByHand] }}
"""


EXAMPLES = ("article", "change", "goal", "question", "review", "support")
"""The examples in `docs/examples`."""


@click.command("init")
@click.argument("folder", metavar="[FOLDER]", default=".")
@click.option(
    "--example",
    type=click.Choice(EXAMPLES),
    help="Create an example with agents, budgets, tools, memory and approvals instead.",
)
@click.option(
    "--from",
    "source",
    metavar="DOC",
    help="Write an agents file for this document of any language instead.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Base name of the files; by default judge, or that of the example.",
)
def init_command(folder: str, example: str | None, source: str | None, name: str | None) -> Exit:
    """Create a first document with its agents file and test cases; print how to run them.

    With --from, create an agents file that lists the agents, tools and MCP servers of a document.

    Existing files are not overwritten.

    \f
    Raises:
        BadParameter: The name has other characters.
        AslError: A file exists.
    """
    if example is not None and source is not None:
        raise click.UsageError("--example and --from exclude each other")
    document = None if source is None else read_document(source, DEFAULT_ORIGIN)
    name = name or example or ("judge" if document is None else _base_name(document))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise click.BadParameter(
            f"{name!r} must be letters, digits, '-' and '_', with a letter or digit first",
            param_hint="--name",
        )
    if document is not None:
        texts, commands = _agents_file(document, str(source), name, folder)
    else:
        texts, commands = _first_files(name) if example is None else _example_files(example, name)
    place = Path(folder)
    there = [file for file in texts if os.path.lexists(place / file)]
    if there:
        raise AslError(f"{', '.join(there)} would be overwritten: choose another --name or folder")
    console.make_folder(folder)
    for file, text in texts.items():
        # Agents files may hold secrets.
        console.write_file(str(place / file), text, private=file.endswith(".agents.yaml"))
    console.print_message(f"asl: wrote {', '.join(texts)}", style="green")
    where = [] if folder == "." else [f"cd {shlex.quote(folder)}"]
    console.write_result("\n".join([*where, *commands]))
    return Exit.OK


def _first_files(name: str) -> tuple[dict[str, str], list[str]]:
    """Return the files of the first document, and commands to use them."""
    document, agents, cases = f"{name}.asl.json", f"{name}.agents.yaml", f"{name}.asl-test.yaml"
    texts = {document: DOCUMENT, agents: AGENTS, cases: CASES.format(name=name)}
    return texts, [
        f"asl check {document} {agents}",
        f'asl run {document} --agents {agents} --input \'{{"text": "A poem."}}\'',
        f"asl test {cases}",
    ]


def _base_name(document: Document) -> str:
    """Return the name of a document as a base name of files."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", document.name).strip("-_") or "document"


def _agents_file(
    document: Document, source: str, name: str, folder: str
) -> tuple[dict[str, str], list[str]]:
    """Return the agents file of a document, and commands to use it."""
    agents, path = f"{name}.agents.yaml", os.path.relpath(source, folder)
    return {agents: draft_agents_file(document)}, [
        f"asl check {shlex.quote(path)} --agents {agents}",
        f"asl run {shlex.quote(path)} --agents {agents}",
    ]


def _example_files(example: str, name: str) -> tuple[dict[str, str], list[str]]:
    """Return the files of an example, and commands to use them."""
    document, agents, data = (f"{name}.{end}" for end in _EXAMPLE_ENDINGS)
    texts = {
        f"{name}.{end}": (data_folder("examples") / f"{example}.{end}").read_text(encoding="utf-8")
        for end in _EXAMPLE_ENDINGS
    }
    return texts, [
        f"asl check {document} {agents}",
        f"asl plan {document}",
        f"asl run {document} --agents {agents} --input @{data} --virtual-time",
        f"asl test init {document}",
    ]


_EXAMPLE_ENDINGS = ("asl.json", "agents.yaml", "input.json")
