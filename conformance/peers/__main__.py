"""Compare interpreters of Amazon States Language: `python -m conformance.peers`."""

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from conformance.peers.cases import questions
from conformance.peers.interpreters import ROOT, Peer, installed
from conformance.peers.scores import Score, page, score

PAGE = ROOT / "docs" / "comparison.md"


def main() -> None:
    """Run the questions on the chosen interpreters, and write the page or show what failed."""
    parser = argparse.ArgumentParser(prog="python -m conformance.peers", description=__doc__)
    parser.add_argument("--peer", metavar="NAME", action="append", help="only this interpreter")
    parser.add_argument(
        "--adapter", metavar="NAME=COMMAND", action="append", default=[], help="another one"
    )
    parser.add_argument("--under", default="", help="only cases of a file below conformance/")
    parser.add_argument("--failed", action="store_true", help="show failed cases, write no page")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page (%(default)s)")
    options = parser.parse_args()
    peers = [*installed(), *map(_adapter, options.adapter)]
    chosen = [each for each in peers if not options.peer or each.name in options.peer]
    found = questions(options.under)
    scores = []
    for peer in chosen:
        scores.append(score(peer, found))
        print(f"{peer.name}: {len(scores[-1].right)} of {len(scores[-1].asked)}", flush=True)
    if options.failed:
        print(*(line for each in scores for line in _failed(each)), sep="\n")
    else:
        text = page(scores, found, datetime.now(tz=UTC).date())
        options.page.write_text(text, encoding="utf-8")


def _adapter(text: str) -> Peer:
    name, _, command = text.partition("=")
    return Peer(name, "", tuple(shlex.split(command)))


def _failed(result: Score) -> Iterator[str]:
    for verdict in result.report.failed:
        kind = "cause" if verdict.case.id in result.right else "outcome"
        yield f"{result.peer.name} {kind} {verdict.case.id}: {verdict.reasons[0]}"


if __name__ == "__main__":
    main()
