"""docs/dialects/matrix.md is made by converting: `python tests/matrix_page.py` rewrites it.

Each language has a small document for each of its features (tests/dialects/features.py). What
becomes of it in every other language is a cell; tests/dialects/test_matrix.py holds that the two
behave the same, unless the cell says otherwise.
"""

from collections.abc import Iterator
from pathlib import Path

import asl
from asl.core.diagnostics import Severity
from tests.dialects.features import FEATURES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dialects" / "matrix.md"

WRITTEN = ("asl", "amazon", "codemie", "contenox", "flujo")
"""The languages that any document can be written in."""

HEAD = """\
# What is kept from language to language

Every document of every language can be written in every other; this page tells what becomes of it.
It is made by the tests from one small document for each feature: each is converted, both are run
with the same scripted agents, and nothing may change that the report does not tell.

* **kept**: it does the same.
* **about**: approximated, as the codes say.
* **lost**: something else happens, or nothing, as the codes say.

A cell lists the codes beyond information; [rules](../rules.md#losses) explains each. A feature that
a language has no words for is not in its table. Where a document is converted back to the language
from which it was read, and has not been changed, it is the original again.
"""


def cell(source: str, feature: str, target: str) -> str:
    """Return what becomes of a feature."""
    losses = converted(source, feature, target).losses
    lost = sorted({each.code for each in losses.of(Severity.ERROR)})
    about = sorted({each.code for each in losses.of(Severity.WARNING)} - {*lost})
    if lost:
        return f"**lost** {' '.join(lost + about)}"
    return f"about {' '.join(about)}" if about else "kept"


def converted(source: str, feature: str, target: str) -> asl.Conversion:
    """Convert the document of a feature."""
    return asl.convert(asl.load(FEATURES[source][feature], dialect=source), target)


def matrix_page() -> str:
    """Return the text of docs/dialects/matrix.md."""
    return "\n".join([HEAD, *(line for source in FEATURES for line in _table(source))])


def _table(source: str) -> Iterator[str]:
    targets = [each for each in WRITTEN if each != source]
    yield f"## From {source}\n"
    yield f"| | {' | '.join(f'to {each}' for each in targets)} |"
    yield f"| --- |{' --- |' * len(targets)}"
    for feature in FEATURES[source]:
        cells = (cell(source, feature, target) for target in targets)
        yield f"| {feature} | {' | '.join(cells)} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(matrix_page(), encoding="utf-8")
