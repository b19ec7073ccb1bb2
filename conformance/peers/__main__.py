"""Compare interpreters of Amazon States Language: `python -m conformance.peers`."""

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from asl.conformance import load_suite
from conformance.peers.cases import questions
from conformance.peers.interpreters import Peer, installed
from conformance.peers.scores import Score, page, score

SUITES = Path(__file__).resolve().parents[1]


def main() -> None:
    """Ask the chosen interpreters all questions, and show their scores."""
    parser = argparse.ArgumentParser(prog="python -m conformance.peers", description=__doc__)
    parser.add_argument("--peer", metavar="NAME", action="append", help="only this interpreter")
    parser.add_argument(
        "--adapter",
        type=_adapter,
        metavar="NAME=COMMAND",
        action="append",
        default=[],
        help="another one",
    )
    parser.add_argument(
        "--under",
        action="append",
        metavar="PATH",
        help="only cases of a file or folder of the suite",
    )
    parser.add_argument("--failed", action="store_true", help="show the failed cases")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write a page: docs/comparison.md"
    )
    options = parser.parse_args()
    peers = [*installed(), *options.adapter]
    names = [each.name for each in peers]
    for name in options.peer or ():
        if name not in names:
            parser.error(f"no interpreter {name!r} is installed; there are {', '.join(names)}")
    chosen = [each for each in peers if not options.peer or each.name in options.peer]
    suites = (load_suite(SUITES / each) for each in options.under or ("amazon", "core"))
    found = questions(case for suite in suites for case in suite)
    scores = []
    for peer in chosen:
        scores.append(score(peer, found))
        print(f"{peer.name}: {len(scores[-1].right)} of {len(scores[-1].asked)}", flush=True)
    if options.failed:
        print(*(line for each in scores for line in _failed(each)), sep="\n")
    if options.page:
        text = page(scores, found, datetime.now(tz=UTC).date())
        options.page.write_text(text, encoding="utf-8")


def _adapter(text: str) -> Peer:
    name, _, command = text.partition("=")
    if not name or not command.strip():
        raise argparse.ArgumentTypeError(f"{text!r} must have the form NAME=COMMAND")
    return Peer(name, "", tuple(shlex.split(command)))


def _failed(result: Score) -> Iterator[str]:
    for verdict in result.report.failed:
        kind = "cause" if verdict.case.id in result.right else "outcome"
        yield f"{result.peer.name} {kind} {verdict.case.id}: {verdict.reasons[0]}"


if __name__ == "__main__":
    main()
