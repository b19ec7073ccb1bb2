"""A debate goes on after its process has died, at whatever instant that was."""

import os
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import instants_of_kinds

DEBATE = {
    "Type": "Debate",
    "Agents": ["Ann", "Bob", "Cid"],
    "Topic": "{{ $.topic }}",
    "Parameters": {"id.$": "States.UUID()"},
    "Rounds": 2,
    "Consensus": {
        "Required": True,
        "Arbiter": "Judge",
        "Threshold": 0.9,
        "MaxRoundsForConsensus": 3,
    },
    "TimeoutSeconds": 600,
    "Retry": [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 30}],
    "ResultPath": "$.debate",
}
PREPARE = {"Type": "Task", "Agent": "Ann", "ResultPath": "$.before", "Next": "Talk"}
LAST = {"Type": "Pass", "End": True}
STYLES = ("turn_based", "simultaneous", "reactive")
INPUT = {"topic": "Tea?"}
INSTANTS = 215


def workflow(style: str) -> dict[str, Any]:
    debate = {**DEBATE, "Communication": {"Style": style}}
    states = {"First": PREPARE, "Talk": {**debate, "Next": "Last"}, "Last": LAST}
    return {"StartAt": "First", "States": states}


def in_a_map(style: str) -> dict[str, Any]:
    debate = {**DEBATE, "Communication": {"Style": style}, "End": True}
    processor = {"StartAt": "Talk", "States": {"Talk": debate}}
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    return {"StartAt": "Each", "States": {"Each": each}}


class World:
    """Agents that remember whom they have answered, over the deaths of processes."""

    def __init__(self, folder: Path, shaky: bool = True) -> None:
        self.shaky = shaky
        """Whether Bob fails once."""
        self.log = folder / "answered.txt"
        self.agents = {name: self.speak(name) for name in ("Ann", "Bob", "Cid", "Judge")}

    @property
    def answered(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def speak(self, name: str) -> Any:
        async def agent(parameters: dict[str, Any], call: Any) -> Any:
            fails = self.shaky and (name, parameters.get("round"), call.attempt) == ("Bob", 2, 1)
            await call.sleep(5 if fails else 2)  # it is the last one: nobody is cut off
            with self.log.open("a") as log:
                log.write(f"{call.idempotency_key}#{call.attempt}\n")
            if fails:
                raise asl.StateError("Flaky", "again")
            heard = len(parameters.get("history", ()))
            said = {"heard": heard, "id": parameters.get("id"), "attempt": call.attempt}
            return {"response": said, "vote": name, "decision": "tea", "_tokens": 1}

        return agent


def run(
    path: Path, world: World, document: Any, data: Any, reached: Any = lambda point: None
) -> Any:
    """Run until the end; *reached* is told of every instant."""
    store = Store(path, clock="virtual", synchronous="OFF", agents=world.agents)
    store.session.on_fail_point = reached
    result = store.run(document, data, name="it")
    _ = result.events  # they are read from the file
    store.close()
    return result


def dies(
    path: Path, world: World, document: Any, data: Any, at: int, instant: str | None = None
) -> bool:
    """Run in a process of its own, which is gone at the *at*-th instant; whether it came to that.

    *instant* names those that count, None for all.
    """
    process = os.fork()
    if process == 0:
        instants = count(1)

        def reached(point: str) -> None:
            if instant in (None, point) and next(instants) == at:
                os._exit(9)

        try:
            run(path, world, document, data, reached)
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, 9)
    return code == 9


def told(result: Any) -> list[Any]:
    return [(event.type, event.path, event.details) for event in result.events]


@pytest.mark.parametrize(("die_at", "style"), instants_of_kinds(range(1, INSTANTS + 1), STYLES, 12))
def test_a_debate_goes_on_where_it_was(die_at: int, style: str, tmp_path: Path) -> None:
    """The result is the same; only turns that were in flight are taken a second time."""
    document, (whole, once) = workflow(style), undisturbed(style)
    path, world = tmp_path / "it.db", World(tmp_path)
    dies(path, world, document, INPUT, die_at)
    before = world.answered
    result = run(path, world, document, INPUT)
    after = world.answered[len(before) :]
    assert result.output == whole.output
    assert result.usage == whole.usage
    assert result.visited == whole.visited
    in_flight = before[-3:] if style == "simultaneous" else before[-1:]
    assert set(before) & set(after) <= set(in_flight)
    assert set(before) | set(after) == set(once)
    assert sorted(map(str, told(result))) == sorted(map(str, told(whole)))
    with Store(path) as store:
        assert told(store.result("it")) == told(result)


@cache
def undisturbed(style: str) -> tuple[Any, list[str]]:
    """Return what a debate comes to that nothing interrupts, and who has answered."""
    with TemporaryDirectory() as folder:
        world, points = World(Path(folder)), count()
        path = Path(folder, "it.db")
        whole = run(path, world, workflow(style), INPUT, lambda point: next(points))
        answered = world.answered
    assert whole.status == "SUCCEEDED", (whole.error, whole.cause)
    assert next(points) <= INSTANTS, "the deaths do not reach the end of the debate"
    assert len(answered) == len(set(answered))
    return whole, answered


@pytest.mark.parametrize(("die_at", "style"), instants_of_kinds(range(1, 300, 17), STYLES, 2))
def test_debates_of_a_map_go_on(die_at: int, style: str, tmp_path: Path) -> None:
    """Every iteration has its own debate, and keeps its own answers."""
    document, data = in_a_map(style), {"items": [{"topic": "Tea?"}, {"topic": "Milk?"}]}
    (apart := tmp_path / "whole").mkdir()
    whole = run(apart / "it.db", World(apart), document, data)
    path, world = tmp_path / "it.db", World(tmp_path)
    dies(path, world, document, data, die_at)
    result = run(path, world, document, data)
    assert result.output == whole.output
    assert result.usage == whole.usage
    assert len(world.answered) - len(set(world.answered)) <= 6


@pytest.mark.parametrize(("die_at", "style"), instants_of_kinds(range(1, 16), STYLES, 2))
def test_a_debate_keeps_its_budget(die_at: int, style: str, tmp_path: Path) -> None:
    """What was spent before a death counts, and what calls under way then may have spent."""
    document = workflow(style)
    document["States"]["Talk"] |= {"Budget": {"MaxTokens": 6}, "Rounds": 2}
    document["States"]["Talk"]["Consensus"] = {"Required": True, "Arbiter": "Judge"}
    del document["States"]["Talk"]["Retry"]
    path, world = tmp_path / "it.db", World(tmp_path, shaky=False)
    dies(path, world, document, INPUT, die_at, "effect.ready")
    result = run(path, world, document, INPUT)
    used, assumed = result.usage["tokens"], result.usage["assumed"]["tokens"]
    assert result.error == "States.BudgetExceeded"
    assert used + 3 * assumed > 6
    assert used <= 8  # the arbiter's call is one too many


@pytest.mark.parametrize("die_at", [3, 4])
def test_who_was_missing_is_not_missed_again(die_at: int, tmp_path: Path) -> None:
    """That an agent was not there is kept like any answer, and only a retry looks again."""
    document = workflow("turn_based")
    missing = {"ErrorEquals": ["States.AgentNotFound"], "IntervalSeconds": 60, "MaxAttempts": 1}
    document["States"]["Talk"]["Retry"] = [missing]
    path, world = tmp_path / "it.db", World(tmp_path)
    judge = world.agents.pop("Judge")
    assert dies(path, world, document, INPUT, die_at, "effect.ready")
    assert len(world.answered) == 1
    world.agents["Judge"] = judge
    result = run(path, world, document, INPUT)
    assert result.status == "SUCCEEDED"
    assert [event.details["retry"] for event in result.events if "Retry" in event.type] == [1]
