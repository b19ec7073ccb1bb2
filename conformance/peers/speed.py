"""How fast interpreters are: `python -m conformance.peers.speed docs/benchmarks.md`."""

import argparse
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from asl.conformance import Case
from asl.conformance.external import ExternalImplementation
from asl.core.values import Json
from conformance.peers.interpreters import Peer, installed

__all__ = ["WORKLOADS", "Workload", "page"]

TEMPLATE = Path(__file__).with_name("speed.md")
TIME_LIMIT = 60.0
STARTS, ROUNDS = 3, 5
"""How often a process is started, and a workload is run; the fastest counts."""


@dataclass(frozen=True)
class Workload:
    """A document, and how many states an execution of it enters."""

    title: str
    document: Json
    states: int
    input: Json

    @property
    def case(self) -> Case:
        """The case that runs it."""
        return Case(
            "speed", {"output": None}, document=self.document, input=self.input, profile="aws"
        )


def _chain(length: int) -> Json:
    names = [f"S{index}" for index in range(length)]
    states: dict[str, Json] = {name: {"Type": "Pass"} for name in names}
    for name, following in zip(names, [*names[1:], None], strict=True):
        states[name] |= {"End": True} if following is None else {"Next": following}
    return {"StartAt": "S0", "States": states}


def _loop(rounds: int) -> Json:
    more = {"Variable": "$.n", "NumericLessThan": rounds, "Next": "Add"}
    return {
        "StartAt": "More",
        "States": {
            "More": {"Type": "Choice", "Choices": [more], "Default": "Done"},
            "Add": {
                "Type": "Pass",
                "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
                "Next": "More",
            },
            "Done": {"Type": "Succeed"},
        },
    }


def _map() -> Json:
    item = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": item, "End": True}
    return {"StartAt": "Each", "States": {"Each": each}}


def _parallel(count: int) -> Json:
    names = [f"B{index}" for index in range(count)]
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}} for name in names
    ]
    split = {"Type": "Parallel", "Branches": branches, "End": True}
    return {"StartAt": "Split", "States": {"Split": split}}


HELLO = Workload("hello", _chain(1), 1, {})
WORKLOADS = (
    Workload("a chain of 100 Pass states", _chain(100), 100, {"text": "x" * 100}),
    Workload("a loop of 500 rounds, Choice and Pass", _loop(500), 1002, {"n": 0}),
    Workload("a Map over 200 items, a Pass each", _map(), 201, {"items": [*range(200)]}),
    Workload("a Parallel of 20 branches, a Pass each", _parallel(20), 21, {}),
)


def start_time(peer: Peer) -> float:
    """Return the seconds from the start of a process to its first answer."""
    return min(_start_time(peer) for _ in range(STARTS))


def _start_time(peer: Peer) -> float:
    began = perf_counter()
    implementation = ExternalImplementation(peer.command, TIME_LIMIT)
    try:
        _run(implementation, HELLO)
        return perf_counter() - began
    finally:
        implementation.close()


def run_times(peer: Peer, workloads: Sequence[Workload]) -> Iterator[float]:
    """Yield the seconds of each workload in one process, from the document to the output."""
    implementation = ExternalImplementation(peer.command, TIME_LIMIT)
    try:
        for workload in workloads:
            yield min(_run(implementation, workload) for _ in range(ROUNDS))
    finally:
        implementation.close()


def _run(implementation: ExternalImplementation, workload: Workload) -> float:
    began = perf_counter()
    observation = implementation.observe(workload.case)
    seconds = perf_counter() - began
    if observation.get("status") != "SUCCEEDED":
        raise RuntimeError(f"{workload.title}: {observation}")
    return seconds


def page(peers: Sequence[Peer], workloads: Sequence[Workload] = WORKLOADS) -> str:
    """Measure interpreters and return the text of docs/benchmarks.md."""
    starts = [start_time(peer) for peer in peers]
    times = [list(run_times(peer, workloads)) for peer in peers]
    return TEMPLATE.read_text(encoding="utf-8").format(
        day=datetime.now(tz=UTC).date().isoformat(),
        system=f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        versions="\n".join(f"| {each.name} | {each.version} |" for each in peers),
        table="\n".join(_table(peers, starts, times, workloads)),
    )


def _table(
    peers: Sequence[Peer],
    starts: Sequence[float],
    times: Sequence[Sequence[float]],
    workloads: Sequence[Workload],
) -> Iterator[str]:
    yield f"| | {' | '.join(each.name for each in peers)} |"
    yield f"| --- |{' --: |' * len(peers)}"
    yield f"| start of the process to the first output | {' | '.join(map(_ms, starts))} |"
    for index, workload in enumerate(workloads):
        cells = (
            f"{_ms(each[index])}, {each[index] / workload.states * 1e6:.0f} us" for each in times
        )
        yield f"| {workload.title} | {' | '.join(cells)} |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m conformance.peers.speed", description=__doc__)
    parser.add_argument("page", type=Path, help="the page: docs/benchmarks.md")
    parser.parse_args().page.write_text(page([*installed()]), encoding="utf-8")


if __name__ == "__main__":
    main()
