"""Scores of interpreters by feature, and the page that shows them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from asl.conformance.runner import SuiteReport, judge, run_suite
from conformance.peers.cases import Question
from conformance.peers.interpreters import Peer

__all__ = ["Score", "page", "score"]

GROUPS = {
    "Query language": ("JSONPath", "JSONata"),
    "State type": (
        *("Pass", "Task", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map"),
        "Distributed Map",
    ),
    "Data": ("Intrinsic functions", "Variables", "Context object", "ResultSelector"),
    "Tasks": ("Service integrations", "Credentials", "Timeouts", "Heartbeats"),
    "Errors": ("Retry", "Catch", "Failed executions"),
    "Large Maps": ("ItemReader", "ItemBatcher", "ResultWriter", "Tolerated failures"),
    "Documents": ("Validation", "Validation of service integrations"),
}
"""Features in the order of the page."""


@dataclass(frozen=True)
class Score:
    """What an interpreter answered.

    Attributes:
        peer: The interpreter.
        asked: The questions that it was asked.
        right: Ids of cases with the right outcome: status, output and name of the error.
        exact: Ids of cases whose cause was right too, among those that expect one.
    """

    peer: Peer
    asked: Sequence[Question]
    right: frozenset[str]
    exact: frozenset[str]
    report: SuiteReport

    def by_feature(self, feature: str) -> tuple[int, int]:
        """Return how many cases of a feature have the right outcome, and how many were asked."""
        ids = [each.case.id for each in self.asked if feature in each.features]
        return sum(id in self.right for id in ids), len(ids)


def score(peer: Peer, questions: Sequence[Question]) -> Score:
    """Ask an interpreter all questions without features that it does not claim."""
    possible = (each for each in questions if each.obstacle is None)
    asked = [each for each in possible if peer.unclaimed.isdisjoint(each.features)]
    report = run_suite([each.case for each in asked], peer.command, time_limit=TIME_LIMIT)
    verdicts = list(zip(asked, report.verdicts, strict=True))
    right = frozenset(
        question.case.id
        for question, verdict in verdicts
        if judge(question.without_cause(), verdict.observation).outcome == "passed"
    )
    exact = frozenset(each.case.id for each in report.passed if "cause" in each.case.expect)
    return Score(peer, asked, right, exact, report)


TIME_LIMIT = 15.0
"""Seconds that an interpreter has for a case."""

TEMPLATE = Path(__file__).with_name("page.md")


def page(scores: Sequence[Score], questions: Sequence[Question], day: date) -> str:
    """Return the text of docs/comparison.md."""
    possible = [each for each in questions if each.obstacle is None]
    return TEMPLATE.read_text(encoding="utf-8").format(
        count=len(possible),
        day=day.isoformat(),
        totals="\n".join(_totals(scores)),
        features="\n".join(_features(scores)),
        obstacles="\n".join(_obstacles(questions)),
        claims="\n".join(_claims(scores, len(possible))),
    )


def _totals(scores: Sequence[Score]) -> Iterator[str]:
    yield "| interpreter | version | asked | outcome | cause |"
    yield "| --- | --- | --: | --: | --: |"
    for each in scores:
        causes = sum("cause" in question.case.expect for question in each.asked)
        yield (
            f"| {each.peer.name} | {each.peer.version} | {len(each.asked):,} "
            f"| {_share(len(each.right), len(each.asked))} | {_share(len(each.exact), causes)} |"
        )


def _features(scores: Sequence[Score]) -> Iterator[str]:
    yield f"| | {' | '.join(each.peer.name for each in scores)} |"
    yield f"| --- |{' --: |' * len(scores)}"
    for group, features in GROUPS.items():
        yield f"| **{group}** |{' |' * len(scores)}"
        for feature in features:
            cells = (_share(*each.by_feature(feature)) for each in scores)
            yield f"| {feature} | {' | '.join(cells)} |"


def _obstacles(questions: Sequence[Question]) -> Iterator[str]:
    yield "| needs | cases |"
    yield "| --- | --: |"
    reasons = Counter(each.obstacle for each in questions if each.obstacle is not None)
    for reason, count in reasons.most_common():
        yield f"| {reason} | {count} |"


def _claims(scores: Sequence[Score], possible: int) -> Iterator[str]:
    yield "| interpreter | does not claim | cases | by |"
    yield "| --- | --- | --: | --- |"
    for each in scores:
        names = ", ".join(sorted(each.peer.unclaimed))
        if names:
            left = possible - len(each.asked)
            yield f"| {each.peer.name} | {names} | {left} | {each.peer.claims} |"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part // whole}%)" if whole else "not asked"
