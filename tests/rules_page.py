"""docs/rules.md and docs/errors.md are made from catalogues: `python -m tests.rules_page`.

The table below is the only place that says which rules of the catalogue no check applies yet;
tests/test_agreement.py holds it against the code.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from asl.core.codes import Code, ErrorName, all_codes, all_error_names

DOCS = Path(__file__).resolve().parents[1] / "docs"

REPORTED_AS = {"V-ST-04": "`V-SUC-01` or `V-FAIL-02`", "V-MAP-14": "`V-ST-03`"}
"""Rules that another rule reports."""


NOT_APPLIED = {}
"""Rules about states and blocks that are not executed yet: they come with their execution."""

GROUPS = {
    "READ": "Reading a text",
    "V-TOP": "Document and machines",
    "V-ST": "Every state",
    "V-VAR": "Variables",
    "V-TXT": "Interpolated text",
    "V-INTR": "Intrinsic functions",
    "V-JSONATA": "JSONata",
    "V-RETRY": "Retriers",
    "V-CATCH": "Catchers",
    "V-TASK": "Task",
    "V-CHOICE": "Choice",
    "V-MAP": "Map",
    "V-PAR": "Parallel",
    "V-PASS": "Pass",
    "V-WAIT": "Wait",
    "V-SUC": "Succeed",
    "V-FAIL": "Fail",
    "V-APR": "Approval",
    "V-DEB": "Debate",
    "V-CKPT": "Checkpoint",
    "V-INC": "Include",
    "V-WF": "Workflow",
    "V-DUR": "Durations",
    "V-RSN": "Reasoning",
    "V-GRD": "Guardrails",
    "V-AUD": "Audit",
    "V-CACHE": "Cache",
    "V-GEN": "Generation",
    "V-MEM": "Memory",
    "V-CTX": "Context",
    "V-TOOLS": "Tools",
    "V-FB": "Feedback",
    "V-BUD": "Budget",
    "V-STR": "Streaming",
    "V-EVT": "Events",
    "V-RT": "RealTime",
    "V-PRG": "Progress",
    "V-IMP": "Imports",
    "V-TPL": "Templates",
    "V-MOD": "Modules",
    "V-OVR": "Override",
    "V-CKPG": "Checkpointing",
    "AGENTS": "Agents files",
    "POLICY": "Policies of the operator",
    "EXEC": "Not executed by this version",
    "CM": "CodeMie",
    "CX": "Contenox",
    "FL": "Flujo",
    "L": "Losses",
}

HEAD = """\
# Rules

Every diagnostic carries the code of a rule. `asl explain CODE` prints the same text as this page.

An error refuses the document. A warning or a piece of information does not, unless `--strict` (in
Python `strict=True`) turns warnings into errors. Where the `aws` profile judges otherwise, the
severity there is given too. This page is made from the catalogue in the code.
"""


ERRORS = """\
# Error names

A workflow that fails has the name of an error and a cause. These names are those of the language,
of the agents that come with it and of documents in other languages; any other name was given by a
document, an agent or a service.
`asl explain NAME` prints the same text as this page. How errors are retried and caught is in
[the language](language.md#errors), how to find out what went wrong in
[troubleshooting](troubleshooting.md).

This page is made from the catalogue in the code.
"""


def not_applied() -> set[str]:
    """Return the codes that no check of this version yields."""
    listed = {f"{group}-{number}" for group, numbers in NOT_APPLIED.items() for number in numbers}
    return listed | REPORTED_AS.keys()


def rules_page() -> str:
    """Return the text of docs/rules.md."""
    parts = [HEAD]
    for group, codes in groupby(all_codes(), lambda code: code.family):
        parts.append(f"## {GROUPS[group]}\n")
        for code in codes:
            parts.append("\n".join(_rule(code)))
    return "\n".join(parts)


def errors_page() -> str:
    """Return the text of docs/errors.md."""
    return "\n".join([ERRORS, *("\n".join(_error(failure)) for failure in all_error_names())])


def _error(failure: ErrorName) -> Iterator[str]:
    yield f"## {failure.name}\n"
    yield f"*{failure.title}.* {_plain(failure.explain)}\n"
    yield f"{_plain(failure.matched)}\n"
    if failure.hint is not None:
        yield f"What to do: {_plain(failure.hint)}.\n"


def _rule(code: Code) -> Iterator[str]:
    yield f"### {code.id}: {code.title}\n"
    severity = code.severity.capitalize()
    if code.aws_severity is not None:
        severity += f" ({code.aws_severity} under the `aws` profile)"
    if code.id in REPORTED_AS:
        severity += f"; reported as {REPORTED_AS[code.id]}"
    elif code.id in not_applied():
        severity += "; not checked by this version"
    if code.changes:
        severity += f"; may change: {', '.join(code.changes)}"
    yield f"*{severity}.*\n"
    for paragraph in code.explain.split("\n\n"):
        if paragraph.startswith(("Bad:", "Good:")):
            yield f"```text\n{paragraph}\n```\n"
        else:
            yield f"{_plain(paragraph)}\n"
    if code.hint is not None:
        yield f"What to do: {_plain(code.hint)}.\n"


def _plain(paragraph: str) -> str:
    """Keep what Markdown would take for markup."""
    for mark in "\\*_<":
        paragraph = paragraph.replace(mark, f"\\{mark}")
    return paragraph


PAGES = {"rules.md": rules_page, "errors.md": errors_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
