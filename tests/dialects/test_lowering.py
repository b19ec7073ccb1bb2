"""Lowering: states as steps with terms, exits of a Choice folded, steps arranged in blocks."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.dialects.lowering import Flow, fold, lower
from asl.dialects.lowering.structure import Block, Branch, Loop, structure
from asl.dialects.terms import (
    INPUT,
    RESULT,
    Comparison,
    DataPath,
    Literal,
    Placement,
    Record,
    placement,
)
from tests.bundled import bundled

pytestmark = pytest.mark.quick


def machine(start: str, **states: Any) -> dict[str, Any]:
    return {"StartAt": start, "States": states}


def task(following: str | None = None, **fields: Any) -> dict[str, Any]:
    ends = {"End": True} if following is None else {"Next": following}
    return {"Type": "Task", "Agent": "a", **fields, **ends}


def choice(*targets: str, default: str | None = None) -> dict[str, Any]:
    rules = [{"Variable": "$.x", "StringEquals": each, "Next": each} for each in targets]
    return {"Type": "Choice", "Choices": rules, **({"Default": default} if default else {})}


def test_stages_of_a_jsonpath_state_become_two_terms() -> None:
    state = task(
        InputPath="$.in",
        Parameters={"p.$": "$.q"},
        ResultSelector={"r.$": "$.s"},
        ResultPath="$.out",
    )
    step = lower(machine("A", A=state)).steps["A"]
    assert step.input == Record(None, (("p", DataPath(INPUT, ("in", "q"))),))
    assert placement(step.output) == Placement(
        ("out",), Record(None, (("r", DataPath(RESULT, ("s",))),))
    )


@pytest.mark.parametrize(
    ("fields", "placed"),
    [
        ({}, Placement((), DataPath(RESULT))),
        ({"ResultPath": None}, None),
        ({"ResultPath": "$.a.b"}, Placement(("a", "b"), DataPath(RESULT))),
        ({"ResultPath": "$.a", "OutputPath": "$.a.x"}, Placement((), DataPath(RESULT, ("x",)))),
        ({"OutputPath": None}, Placement((), Literal({}))),
    ],
)
def test_output_of_a_jsonpath_task(fields: dict[str, Any], placed: Placement | None) -> None:
    assert placement(lower(machine("A", A=task(**fields))).steps["A"].output) == placed


def test_both_query_languages_give_the_same_step() -> None:
    by_path = task(Parameters={"p.$": "$.q"}, ResultPath="$.r")
    by_query = task(
        QueryLanguage="JSONata",
        Arguments={"p": "{% $states.input.q %}"},
        Output="{% $merge([$states.input, {'r': $states.result}]) %}",
    )
    one, other = (lower(machine("A", A=each)).steps["A"] for each in (by_path, by_query))
    assert (one.input, one.output, one.exits) == (other.input, other.output, other.exits)


def test_handler_hands_on_the_error() -> None:
    state = task(Catch=[{"ErrorEquals": ["E"], "ResultPath": "$.e", "Next": "A"}])
    (caught,) = lower(machine("A", A=state)).steps["A"].handlers
    assert (caught.errors, caught.target, caught.pointer) == (("E",), "A", "/States/A/Catch/0")
    assert placement(caught.output) == Placement(("e",), DataPath("error"))


def test_choice_is_folded_into_the_step_in_front() -> None:
    flow = fold(lower(machine("A", A=task("C"), C=choice("B", default="D"), B=task(), D=task())))
    assert [*flow.steps] == ["A", "B", "D"]
    step = flow.steps["A"]
    assert step.choice == "/States/C"
    assert [each.target for each in step.exits] == ["B", "D"]
    assert step.exits[0].condition == Comparison(
        "=", DataPath(INPUT, ("x",)), Literal("B"), "string"
    )
    assert step.exits[0].pointer == "/States/C/Choices/0"


def test_choice_with_two_predecessors_stays_a_state() -> None:
    states = {"A": task("C"), "C": choice("B", default="D"), "B": task("C"), "D": task()}
    assert "C" in fold(lower(machine("A", **states))).steps


def test_second_choice_behind_a_default_is_folded_too() -> None:
    states = {"A": task("C"), "C": choice("X", default="D"), "D": choice("Y", default="Z")}
    flow = fold(lower(machine("A", **states, X=task(), Y=task(), Z=task())))
    assert [each.target for each in flow.steps["A"].exits] == ["X", "Y", "Z"]


def test_states_that_only_pass_on_are_left_out() -> None:
    states = {
        "P": {"Type": "Pass", "Next": "A"},
        "A": task("Q"),
        "Q": {"Type": "Pass", "Next": "B"},
    }
    flow = fold(lower(machine("P", **states, B=task())))
    assert (flow.start, [*flow.steps]) == ("A", ["A", "B"])
    assert [*flow.steps["A"].targets] == ["B"]


def test_cycle_of_pass_states_stays() -> None:
    states = {"P": {"Type": "Pass", "Next": "Q"}, "Q": {"Type": "Pass", "Next": "P"}}
    assert fold(lower(machine("P", **states))).steps


# Structure --------------------------------------------------------------------------------------


def shape(block: Block | None) -> Any:
    """Return the names of a block: a branch is a tuple, a loop a list."""
    if block is None:
        return None
    return " ".join(map(str, (_shape(each) for each in block)))


def _shape(part: Any) -> Any:
    if isinstance(part, Branch):
        cases = " | ".join(shape(body) for _, body in part.cases)
        return f"{part.step.name}({cases})"
    if isinstance(part, Loop):
        return f"[{' '.join(filter(None, (shape(part.body), part.decides.name)))}]"
    return part.name


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"A": task("B"), "B": task()}, "A B"),
        (
            {
                "A": task("C"),
                "C": choice("X", default="Y"),
                "X": task("Z"),
                "Y": task("Z"),
                "Z": task(),
            },
            "A(X | Y) Z",
        ),
        ({"A": task("C"), "C": choice("X", default="Y"), "X": task(), "Y": task()}, "A(X | Y)"),
        ({"A": task("C"), "C": choice("X", default="Z"), "X": task("Z"), "Z": task()}, "A(X | ) Z"),
        ({"A": task("C"), "C": choice("A", default="Z"), "Z": task()}, "[A] Z"),
        (
            {"A": task("B"), "B": task("C"), "C": choice("A", default="Z"), "Z": task()},
            "[A B] Z",
        ),
        (
            {
                "A": task("C"),
                "C": choice("X", default="Y"),
                "X": task("B"),
                "Y": task("B"),
                "B": task("D"),
                "D": choice("A", default="Z"),
                "Z": task(),
            },
            "[A(X | Y) B] Z",
        ),
        (
            {
                "A": task("B"),
                "B": task("C"),
                "C": choice("B", default="D"),
                "D": task("E"),
                "E": choice("A", default="Z"),
                "Z": task(),
            },
            "[A [B] D] Z",
        ),
        (  # two ways out of the loop
            {
                "A": task("C"),
                "C": choice("X", default="B"),
                "X": task(),
                "B": task("D"),
                "D": choice("A", default="Z"),
                "Z": task(),
            },
            None,
        ),
        (  # ways that cross
            {
                "A": task("C"),
                "C": choice("X", default="Y"),
                "X": task("D"),
                "Y": task("Z"),
                "D": choice("Y", default="Q"),
                "Q": task("Z"),
                "Z": task(),
            },
            None,
        ),
    ],
)
def test_steps_are_arranged(states: dict[str, Any], expected: str | None) -> None:
    assert shape(structure(fold(lower(machine("A", **states))))) == expected


def test_a_failure_is_no_way_that_meets_others() -> None:
    """What follows a Choice that may fail is not within its branch; a loop may fail, too."""
    fail = {"Type": "Fail"}
    flow = lower(machine("A", A=choice("F", default="B"), B=task(), F=fail))
    block = structure(flow)
    assert block is not None
    assert [part.step.name if isinstance(part, Branch) else part for part in block] == [
        "A",
        flow.steps["B"],
    ]
    states = {"A": choice("F", default="B"), "B": task("C"), "C": choice("A", default="D")}
    (loop, _) = structure(lower(machine("A", **states, D=task(), F=fail))) or (None, None)
    assert isinstance(loop, Loop)


def test_a_choice_without_a_default_is_a_branch() -> None:
    flow = lower(machine("A", A=choice("B"), B=task()))
    branch, _ = structure(flow) or (None, None)
    assert isinstance(branch, Branch)


NAMES = "ABCDEFG"
GRAPHS = st.dictionaries(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from([*NAMES, None]), min_size=1, max_size=3, unique=True),
    min_size=1,
)


@given(GRAPHS)
def test_block_has_every_reachable_step_once(graph: dict[str, list[str | None]]) -> None:
    start = min(graph)
    states = {}
    for name, targets in graph.items():
        known = [each for each in targets if each in graph]
        default = known.pop() if known and None not in targets else None
        if known:
            states[name] = choice(*known, default=default or "END")
        else:
            states[name] = task(default)
    states["END"] = {"Type": "Succeed"}
    flow = lower(machine(start, **states))
    block = structure(flow)
    if block is not None:
        found = [*names(block)]
        assert sorted(found) == sorted(reachable(flow))


def names(block: Block) -> Iterator[str]:
    for part in block:
        if isinstance(part, Branch):
            yield part.step.name
            for _, body in part.cases:
                yield from names(body)
        elif isinstance(part, Loop):
            yield from names(part.body)
            yield part.decides.name
        else:
            yield part.name


def reachable(flow: Flow) -> set[str]:
    found: set[str] = set()
    todo = [flow.start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += (each.target for each in flow.steps[name].exits if each.target)
    return found


def test_every_bundled_machine_is_lowered() -> None:
    """The documents of the core suite that have no errors, in their own dialect."""
    count = 0
    for case in (each for each in bundled("core", 3) if each.document is not None):
        try:
            document = asl.load(case.document)
        except asl.InvalidDocument:
            continue
        known = "States" in document.composed_value and "Parameters" not in document.composed_value
        if known and asl.check(document).ok:
            structure(fold(lower(document.composed_value)))
            count += 1
    assert count > 300


def test_approval_merges_its_decision_into_the_data() -> None:
    rule = {"Variable": "$.approval", "StringEquals": "hold", "Next": "B"}
    state = {"Type": "Approval", "Prompt": "Go?", "Choices": [rule], "Next": "B"}
    step = lower(machine("A", A=state, B=task())).steps["A"]
    assert isinstance(step.output, Record)
    assert step.output.base == DataPath(INPUT)
    assert dict(step.output.members)["approval"] == DataPath(RESULT, ("approval",))
    assert step.exits[0].condition == Comparison(
        "=", DataPath(RESULT, ("approval",)), Literal("hold"), "string"
    )


def test_rule_of_an_approval_reads_its_decision_at_result_path() -> None:
    rule = {"Variable": "$.r.approval", "StringEquals": "hold", "Next": "B"}
    state = {"Type": "Approval", "Prompt": "Go?", "ResultPath": "$.r", "Choices": [rule]}
    step = lower(machine("A", A={**state, "Next": "B"}, B=task())).steps["A"]
    assert placement(step.output) == Placement(("r",), DataPath(RESULT))
    assert step.exits[0].condition == Comparison(
        "=", DataPath(RESULT, ("approval",)), Literal("hold"), "string"
    )


def test_checkpoint_hands_on_its_input() -> None:
    state = {"Type": "Checkpoint", "Name": "c", "Next": "B"}
    assert placement(lower(machine("A", A=state, B=task())).steps["A"].output) is None


@pytest.mark.parametrize("language", ["JSONPath", "JSONata"])
def test_result_of_a_pass_is_its_output_in_both_query_languages(language: str) -> None:
    state = {"Type": "Pass", "QueryLanguage": language, "Result": {"a": "{% 1 %}"}, "End": True}
    assert lower(machine("A", A=state)).steps["A"].output == Literal({"a": "{% 1 %}"})
