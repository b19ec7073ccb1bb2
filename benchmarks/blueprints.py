"""Workloads of blueprints: what rules cost, and what reading one costs beside its YAML.

Both sides of the first are the same machine, one whose rules lead on without conditions (which is a
direct `Next`), and one that tries a condition behind every state.
"""

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import asl
from asl.agents.registry import AgentRegistry
from asl.core.source import DEFAULT_LIMITS
from asl.core.yaml_schema import PLATFORM
from asl.core.yaml_text import loads
from asl.dialects import yaml_writer
from asl.effects.clock import WallClock
from asl.effects.driver import drive
from asl.effects.run import execute
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


AGENT = 1000.0
"""Microseconds that an agent is at work."""


def processor(action: Callable[[], None]) -> float:
    """Return the microseconds of processor time that a hop takes, with its agent."""
    shortest = float("inf")
    for _ in range(60):
        begun = time.process_time()
        action()
        shortest = min(shortest, time.process_time() - begun)
    return AGENT + shortest / HOPS * 1e6


def rules() -> Sides:
    """Prepare the machine with and without conditions; what its agents work is not waited for."""
    plain = program(asl.load(blueprint(HOPS, None)).value)
    ruled = program(asl.load(blueprint(HOPS, "output.last_output > 5")).value)

    def run(compiled: Any) -> None:
        registry = AgentRegistry({"d:a": lambda parameters: 1})
        found = drive(execute(compiled, {"input": "x", "context": {}}, registry.find, CLOCK), CLOCK)
        assert found.ok

    return lambda: processor(lambda: run(plain)), lambda: processor(lambda: run(ruled)), HOPS


def reading() -> Sides:
    """Prepare reading, checking and compiling, beside the parse of the YAML alone."""
    numbers = count()

    def text() -> str:
        number = next(numbers)  # so that no query is known from before
        when = f"output.last_output > {number}"
        asked = {"input": f"Write the part {number}.\n\n" + PROSE}
        return yaml_writer.to_yaml(blueprint(12, when, number, **asked))

    def parse() -> None:
        loads(text(), DEFAULT_LIMITS, PLATFORM)

    return parse, lambda: asl.compile(asl.load(text().encode(), dialect="flujo")), 1


PROSE = "Read all that {{ context.project }} has, and keep to what it says.\n" * 8
"""As much text as the steps of published blueprints have."""


WORKLOADS = (
    Workload(
        "FLH",
        "a hop by rules of 100, agent of 1 ms; vs direct Next",
        1.02,
        rules,
        gives="us",
    ),
    Workload("FL", "read, check and compile a blueprint; vs its YAML alone", 3, reading),
)
