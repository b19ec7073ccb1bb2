"""What blueprints look like that are written: as short as the document, and with its names."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import asl
from asl.dialects import load
from asl.dialects.flujo.engine import ENGINE
from asl.states.machines import nested_machines
from tests.dialects.features import FEATURES
from tests.dialects.law_cases import cases

Json = Any

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
EACH, COUNT = 3, 20
"""One document of so many of the corpora, and the number of generated ones."""
TASK: Json = {"Type": "Task", "Agent": "worker"}


def states(machine: Json) -> Iterator[tuple[str, Json]]:
    """Yield the states of a machine, and of the machines within."""
    for name, state in machine["States"].items():
        yield name, state
        for _, inner in nested_machines(state):
            if "States" in inner:
                yield from states(inner)


def elements(machine: Json) -> int:
    """Return the number of states, rules, handlers and retriers."""
    return sum(
        1 + sum(len(state.get(key) or ()) for key in ("Choices", "Catch", "Retry"))
        for _, state in states(machine)
    )


def parts(value: Json) -> Iterator[Json]:
    """Yield the steps and rules of a blueprint."""
    if isinstance(value, list):
        for each in value:
            yield from parts(each)
    elif isinstance(value, dict):
        if "name" in value or {"from", "on", "to"} <= value.keys():
            yield value
        for key, each in value.items():
            if key not in ("input", "agent", "config"):
                yield from parts(each)


def measured() -> Iterator[Any]:
    """Yield native documents, and those of the corpus if it is there."""
    for feature, document in FEATURES["asl"].items():
        yield pytest.param(document, id=feature)
    for path in sorted((CORPUS / "agent-asl").glob("*.json")):
        try:
            document = asl.load(path)
        except asl.InvalidDocument:
            continue
        filled = "{{" not in path.read_text(encoding="utf-8")
        if filled and asl.check(document).ok and "StartAt" in document.value:
            yield pytest.param(document.value, id=path.stem)


def ratio(document: Json) -> float:
    steps = asl.convert(document, "flujo").document["steps"]
    return len([*parts(steps)]) / elements(document)


AS_IN_THE_DOCUMENT = {
    *("FL-MISSING", "FL-UNREACHABLE", "FL-NO-END", "FL-DEAD-RULE", "FL-TEMPLATE", "V-ST-11"),
}
"""Findings about a blueprint that are about its document, too."""


@pytest.mark.parametrize("source", ["asl", "amazon", "codemie", "contenox"])
def test_a_written_blueprint_passes_the_rules_of_its_engine(source: str) -> None:
    for case in cases(source, EACH, COUNT):
        made = asl.convert(case.document, "flujo")
        assert made.document["x-engine"] == ENGINE
        findings = {each.code for each in asl.check(asl.load(made.text))} - AS_IN_THE_DOCUMENT
        lost = {each.code for each in made.losses}
        assert findings <= {"FL-ENGINE", "FL-NESTED"}, case.name
        assert "FL-ENGINE" not in findings or lost & {"FL-COERCE", "FL-RESERVED"}, case.name
        assert "FL-NESTED" not in findings or "FL-NESTED" in lost, case.name


STEP: Json = {"name": "s", "uses": "agents.worker"}
MACHINE: Json = {
    "kind": "StateMachine",
    "name": "m",
    "start_state": "a",
    "end_states": ["done"],
    "states": {"a": [STEP]},
    "transitions": [{"from": "*", "on": "failure", "to": "done"}],
}


def _when(text: str) -> Json:
    rule = {"from": "a", "on": "success", "to": "done", "when": text}
    return [{**MACHINE, "transitions": [rule, *MACHINE["transitions"]]}]


@pytest.mark.parametrize(
    "steps",
    [
        [{**STEP, "sink_to": "scratchpad.x"}],
        _when("context.scratchpad.x == 'a'"),
        _when("'404' in context.code"),
        _when("context.get('x') == 'a'"),
        [MACHINE, {"name": "p", "agent": {"id": "flujo.builtins.passthrough"}}],
        [
            {
                "kind": "conditional",
                "name": "c",
                "condition_expression": "previous_step",
                "branches": {"a": [{"kind": "hitl", "name": "h", "message": "?"}]},
            }
        ],
    ],
)
def test_a_named_engine_has_rules_of_its_own(steps: Json) -> None:
    blueprint = {"steps": steps}
    found = {each.code for each in asl.check(asl.load({**blueprint, "x-engine": ENGINE}))}
    assert "FL-ENGINE" in found
    assert "FL-ENGINE" not in {each.code for each in asl.check(asl.load(blueprint))}


@pytest.mark.parametrize("document", [*measured()])
def test_a_blueprint_is_at_most_twice_as_long(document: Json) -> None:
    """One element more is for the failures of all states, which a state machine has to name."""
    assert ratio(document) <= 2.0 + 3 / elements(document)


def test_a_blueprint_is_about_as_long_in_the_median() -> None:
    assert median(ratio(each.values[0]) for each in measured()) <= 2.0


@pytest.mark.parametrize("document", [*measured()])
def test_names_of_the_author_are_unchanged(document: Json) -> None:
    """Each state that works has its name; generated names are words."""
    text = asl.convert(document, "flujo").text
    written = {str(each.get("name")) for each in parts(asl.load(text).composition.written["steps"])}
    working = {name for name, state in states(document) if state["Type"] in ("Task", "Approval")}
    assert working <= written | {name.removesuffix("_step") for name in written}
    assert not [name for name in written if "~" in name or "__" in name or ":" in name]


def test_reports_are_short_in_the_median() -> None:
    assert median(len(warnings(each.values[0])) for each in measured()) <= 6


def warnings(document: Json) -> list[asl.Diagnostic]:
    losses = asl.convert(document, "flujo").losses
    return [each for each in losses if each.severity is not asl.Severity.INFO]


@pytest.mark.parametrize("document", [*measured()])
def test_a_blueprint_is_right_as_it_is_written(document: Json) -> None:
    made = asl.convert(document, "flujo")
    report = asl.check(load(made.text, dialect="flujo"))
    assert report.ok
    assert not [each for each in report if each.code in ("FL-NO-SUCCESS", "FL-NO-FAILURE")]


def test_a_linear_document_is_a_list_of_steps() -> None:
    names = ("Fetch", "Sum up", "Send")
    line = {
        name: {
            **TASK,
            "ResultPath": f"$.{name[0]}",
            **({"Next": after} if after else {"End": True}),
        }
        for name, after in zip(names, (*names[1:], None), strict=True)
    }
    steps = asl.convert({"StartAt": "Fetch", "States": line}, "flujo").document["steps"]
    assert [each["name"] for each in steps] == [*names]
    assert not [each for each in steps if "kind" in each]


def test_choices_are_conditional_steps() -> None:
    """Values of one field select branches; behind them the ways meet again."""
    choices = [
        {"Variable": "$.kind", "StringEquals": each, "Next": each.title()} for each in ("a", "b")
    ]
    machine = {
        "StartAt": "Ask",
        "States": {
            "Ask": {**TASK, "ResultPath": "$.kind", "Next": "Route"},
            "Route": {"Type": "Choice", "Choices": choices, "Default": "Last"},
            "A": {**TASK, "ResultPath": "$.a", "Next": "Last"},
            "B": {**TASK, "ResultPath": "$.b", "Next": "Last"},
            "Last": {**TASK, "ResultPath": "$.last", "End": True},
        },
    }
    ask, route, last = asl.convert(machine, "flujo").document["steps"]
    assert (ask["name"], last["name"]) == ("Ask", "Last")
    assert route["condition_expression"] == "context.kind"
    assert {key: each[0]["name"] for key, each in route["branches"].items()} == {"a": "A", "b": "B"}
    assert route["default_branch"] == []


def test_rounds_are_loop_steps() -> None:
    choices = [{"Variable": "$.a", "StringEquals": "yes", "Next": "Done"}]
    machine = {
        "StartAt": "Try",
        "States": {
            "Try": {**TASK, "ResultPath": "$.a", "Next": "Enough"},
            "Enough": {"Type": "Choice", "Choices": choices, "Default": "Try"},
            "Done": {"Type": "Succeed"},
        },
    }
    (loop,) = asl.convert(machine, "flujo").document["steps"]
    assert (loop["kind"], loop["name"]) == ("loop", "Enough")
    assert loop["loop"]["exit_expression"] == "context.a == 'yes'"


@pytest.mark.parametrize(
    ("condition", "printed"),
    [
        ("$contains($lowercase($states.input.kind), 'email')", "'email' in context.kind.lower()"),
        ("$states.input.kind in ['a', 'b']", "context.kind in ['a', 'b']"),
        ("$not($states.input.done)", "not context.done"),
        ("$boolean($states.input.list)", "context.list"),
        ("$count($states.input.list) > 0", "context.list"),
        ("$count($states.input.list) = 0", "not context.list"),
        ("$states.input.a = $states.input.b", "context.a == context.b"),
        ("$uppercase($states.input.kind) = 'A'", "context.kind.upper() == 'A'"),
        ("$trim($states.input.kind) = 'a'", "context.kind.strip() == 'a'"),
        ("$states.input.'a b'.c = 'x'", "context['a b'].c == 'x'"),
        ("$states.input.n >= 3 and $states.input.n < 5", "context.n >= 3 and context.n < 5"),
        (
            "$not($states.input.a = 'x' or $states.input.b = 'y')",
            "not (context.a == 'x' or context.b == 'y')",
        ),
    ],
)
def test_conditions_are_written_as_their_language_writes_them(condition: str, printed: str) -> None:
    choice = {
        "Type": "Choice",
        "Choices": [{"Condition": f"{{% {condition} %}}", "Next": "A"}],
        "Default": "B",
    }
    ways = {name: {"Type": "Task", "Agent": name, "End": True} for name in "AB"}
    machine = {"QueryLanguage": "JSONata", "StartAt": "C", "States": {"C": choice, **ways}}
    (step,) = asl.convert(machine, "flujo").document["steps"]
    assert step["condition_expression"].removesuffix(" and True") == printed


def test_agents_keep_their_models_and_prompts() -> None:
    workflow = """
assistants:
  - {id: writer, system_prompt: You write., model: gpt-4.1, temperature: 0.2}
states:
  - {id: draft, assistant_id: writer, task: Write., next: {state_id: end}}
"""
    made = asl.convert(load(workflow, dialect="codemie"), "flujo")
    assert made.document["agents"] == {
        "writer": {
            "model": "gpt-4.1",
            "system_prompt": "You write.",
            "output_schema": {"type": "string"},
            "model_settings": {"temperature": 0.2},
        }
    }
    assert "L-ACTOR" not in {each.code for each in made.losses}
