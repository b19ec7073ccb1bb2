"""Run the benchmarks: `python -m benchmarks [NAME ...] [--quick] [--json FILE]`.

Each workload alternates between the hand-written limit and the interpreter, takes the best of
several rounds of each, and compares the ratio with its limit. A workload above its limit is
measured again in a process of its own, twice at most: the layout of a process alone moves a ratio
by up to half. Exit code 1 if a limit is exceeded each time.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from benchmarks import (
    blueprints,
    dialects,
    durability,
    editor,
    server,
    service,
    temporal,
    workers,
    workloads,
)
from benchmarks.workloads import Workload

WORKLOADS = (
    *workloads.WORKLOADS,
    *durability.WORKLOADS,
    *workers.WORKLOADS,
    *dialects.WORKLOADS,
    *blueprints.WORKLOADS,
    *service.WORKLOADS,
    *server.WORKLOADS,
    *editor.WORKLOADS,
    *temporal.WORKLOADS,
)

REPEATS = 2
"""How often a workload above its limit is measured again."""

Figure: TypeAlias = dict[str, Any]
"""The result of one workload: name, what, by_hand, ours, unit, ratio, limit, met."""


def best(action: Callable[[], object], rounds: int) -> float:
    """Return the shortest of *rounds* runs, in seconds."""
    shortest = float("inf")
    for _ in range(rounds):
        gc.collect()
        begun = time.perf_counter()
        action()
        shortest = min(shortest, time.perf_counter() - begun)
    return shortest


def measure(workload: Workload, quick: bool) -> Figure:
    """Measure one workload; the two sides alternate so that a drift of the machine hits both."""
    gc.collect()
    gc.freeze()  # what earlier workloads left behind burdens neither side
    prepare = workload.quick if quick and workload.quick else workload.prepare
    by_hand, ours, units = prepare()
    by_hand()
    ours()
    if workload.gives is not None:
        hand, own, unit = by_hand(), ours(), workload.gives
    else:
        hand, own, unit = float("inf"), float("inf"), "us"
        rounds, seconds = (3, 0.5) if quick else (8, 2.0)
        begun, count = time.perf_counter(), 0
        while count < rounds or time.perf_counter() - begun < seconds:  # short ones many times
            count += 1
            hand = min(hand, best(by_hand, 3) / units * 1e6)
            own = min(own, best(ours, 3) / units * 1e6)
    ratio = own / hand
    return {
        "name": workload.name,
        "what": workload.what,
        "by_hand": hand,
        "ours": own,
        "unit": unit,
        "ratio": ratio,
        "limit": workload.limit,
        "met": ratio <= workload.limit,
    }


def measure_again(name: str, quick: bool) -> Figure:
    """Measure one workload in a process of its own."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "figure.json")
        command = [sys.executable, "-m", "benchmarks", name, "--once", "--json", str(file)]
        subprocess.run([*command, *(["--quick"] if quick else [])], capture_output=True)
        (figure,) = json.loads(file.read_text(encoding="utf-8"))
    return dict(figure)


def show(figure: Figure) -> None:
    """Print the row of a workload."""
    print(
        f"{figure['name']:<9}{figure['ratio']:7.2f}x  limit {figure['limit']:5.2f}x"
        f"  by hand {figure['by_hand']:10.3f} {figure['unit']:<2}"
        f"  ours {figure['ours']:10.3f} {figure['unit']:<2}"
        f"  {'' if figure['met'] else 'MISSED  '}{figure['what']}",
        flush=True,
    )


def main() -> int:
    """Run the chosen workloads and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="which workloads (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--once", action="store_true", help="measure each workload once only")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args()
    figures = []
    for workload in WORKLOADS:
        if options.names and workload.name not in options.names:
            continue
        figure = measure(workload, options.quick)
        show(figure)
        repeats = 0 if options.once else REPEATS
        while not figure["met"] and repeats:
            figure = measure_again(workload.name, options.quick)
            show(figure)
            repeats -= 1
        figures.append(figure)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
    return 0 if all(figure["met"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
