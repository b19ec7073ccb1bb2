"""Names that writers make: few steps each, however many collide."""

from collections.abc import Hashable
from typing import Any

import pytest

import asl
from asl.dialects.names import FreshNames


class Counted(set[Any]):
    """A set that counts how often it is asked."""

    asked = 0

    def __contains__(self, name: Hashable) -> bool:
        Counted.asked += 1
        return super().__contains__(name)


def test_new_names_go_on_behind_the_last_number() -> None:
    names = FreshNames(["a", "a_2", "b_2"], "_")
    assert [names.new(each) for each in ("a", "a", "b", "b", "b")] == [
        *("a_3", "a_4"),
        *("b", "b_3", "b_4"),
    ]
    names.add("c")
    assert names.new("c") == "c_2"
    assert "c_2" in names


def test_steps_are_linear_in_the_names() -> None:
    names = FreshNames()
    names._taken = Counted()
    for _ in range(5000):
        names.new("a")
    assert Counted.asked <= 3 * 5000


def colliding(count: int) -> Any:
    """Return a document whose states and agents differ in signs that other languages lack."""
    names = [f"a{chr(0x4E00 + number)}" for number in range(count)]
    states = {
        name: {"Type": "Task", "Agent": name, "Next": following}
        for name, following in zip(names, [*names[1:], "End"], strict=True)
    }
    return {"StartAt": names[0], "States": {**states, "End": {"Type": "Succeed"}}}


@pytest.mark.parametrize("dialect", ["amazon", "codemie", "contenox", "flujo"])
def test_colliding_names_stay_apart(dialect: str) -> None:
    """Each state and agent has a name of its own in the text that is written."""
    text = asl.convert(asl.load(colliding(40)), dialect).text
    again = asl.load(text, dialect=dialect).value
    assert sum(state["Type"] == "Task" for state in again["States"].values()) == 40
