"""Workloads of blueprints: what rules cost, and what reading one costs beside its YAML.

Both sides of the first are the same machine, one whose rules lead on without conditions (which is a
direct `Next`), and one that tries a condition behind every state.
"""

import time
from itertools import count
from typing import Any

import asl
from asl.agents.registry import Registry
from asl.core.source import DEFAULT_LIMITS
from asl.core.yaml_text import PLATFORM, loads
from asl.dialects import yaml_writer
from asl.hosts.clock import WallClock
from asl.hosts.local import drive
from asl.hosts.run import execute
from benchmarks.workloads import Sides, Workload, program

Json = Any
HOPS = 100
CLOCK = WallClock()


def blueprint(length: int, when: str | None, number: int = 0, **more: Json) -> Json:
    """Return a machine of states that each ask one agent, with a condition behind each."""
    states, rules = {}, []
    for index in range(length):
        name, last = f"s{index}_{number}", index + 1 == length
        following = "done" if last else f"s{index + 1}_{number}"
        step = {"name": f"a{index}_{number}", "uses": "d:a", "config": {"max_retries": 0}, **more}
        states[name] = {"steps": [step]}
        if when is not None:
            rules.append({"from": name, "on": "success", "to": "failed", "when": when})
        rules.append({"from": name, "on": "success", "to": following})
    rules.append({"from": "*", "on": "failure", "to": "failed"})
    machine = {
        "kind": "StateMachine",
        "name": "m",
        "start_state": f"s0_{number}",
        "end_states": ["done", "failed"],
        "states": states,
        "transitions": rules,
    }
    return {"steps": [machine]}


def busy(parameters: Json) -> Json:
    """An agent that works for a millisecond."""
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        pass
    return 1


def rules() -> Sides:
    """Prepare the machine with and without conditions."""
    plain = program(asl.load(blueprint(HOPS, None)).value)
    ruled = program(asl.load(blueprint(HOPS, "output.last_output > 5")).value)

    def run(compiled: Any) -> None:
        registry = Registry({"d:a": busy})
        found = drive(execute(compiled, {"input": "x", "context": {}}, registry.find, CLOCK), CLOCK)
        assert found.ok

    return lambda: run(plain), lambda: run(ruled), HOPS


def reading() -> Sides:
    """Prepare reading, checking and compiling, beside the parse of the YAML alone."""
    numbers = count()

    def text() -> str:
        number = next(numbers)  # so that no query is known from before
        when = f"output.last_output > {number}"
        asked = {"input": f"Write the part {number}.\n\n" + PROSE}
        return yaml_writer.written(blueprint(12, when, number, **asked))

    def parse() -> None:
        loads(text(), DEFAULT_LIMITS, PLATFORM)

    return parse, lambda: asl.compile(asl.load(text().encode(), dialect="flujo")), 1


PROSE = "Read all that {{ context.project }} has, and keep to what it says.\n" * 8
"""As much text as the steps of published blueprints have."""


WORKLOADS = (
    Workload("FL1", "100 hops by rules, agents of 1 ms; vs direct Next", 1.01, rules),
    Workload("FL2", "read, check and compile a blueprint; vs its YAML alone", 3, reading),
)
