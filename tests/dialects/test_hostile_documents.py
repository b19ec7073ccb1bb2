"""Documents of other languages that nest, repeat or multiply: each ends in a finding."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.json_text import read_data
from asl.core.work import WorkExceeded, WorkMeter
from asl.dialects.codemie.functions.outputs import parse_output
from asl.dialects.codemie.functions.placeholders import MAX_LENGTH, fill
from asl.dialects.flujo.rules import MAX_TRIALS

Made = dict[str, Any]


def codemie(expression: str) -> Made:
    """Return a workflow that decides by an expression."""
    condition = {"expression": expression, "then": "end", "otherwise": "end"}
    state = {"id": "s", "assistant_id": "a", "task": "hi", "next": {"condition": condition}}
    assistant = {"id": "a", "model": "m", "system_prompt": "p"}
    return {"assistants": [assistant], "states": [state]}


def contenox(template: str) -> Made:
    """Return a chain with a template."""
    branches = [{"operator": "default", "goto": "end"}]
    task = {"id": "a", "handler": "prompt_to_string", "prompt_template": template}
    return {"id": "c", "tasks": [{**task, "transition": {"branches": branches}}]}


def flujo(expression: str) -> Made:
    """Return a blueprint that decides by an expression."""
    branches = {name: [{"name": name, "agent": {"id": "a"}}] for name in ("true", "false")}
    step = {"name": "c", "kind": "conditional", "condition_expression": expression}
    return {"version": "0.1", "name": "f", "steps": [{**step, "branches": branches}]}


HOSTILE = {
    "nested lists": codemie(f"{'[' * 400}{']' * 400} == {'[' * 400}{']' * 400}"),
    "nested calls": codemie("str([" * 300 + "1" + "])" * 300),
    "negations": codemie("not " * 100_000 + "x"),
    "pipes": contenox("{{.input" + "|quote" * 1_000 + "}}"),
    "encodings": contenox("{{.input" + "|toJson" * 10_000 + "}}"),
    "parentheses": contenox("{{" + "(" * 100_000 + ".input" + ")" * 100_000 + "}}"),
    "ranges": contenox("{{range .a}}" * 20_000 + "{{end}}" * 20_000),
    "else ifs": contenox("{{if .a}}x" + "{{else if .b}}y" * 30_000 + "{{end}}"),
    "sums": flujo("+".join(["1"] * 100_000)),
    "terms": contenox("{{.input" + "|quote" * 20_000 + "}}"),
    "deep path": flujo("context" + ".a" * 100_000),
    "deep parentheses": flujo("(" * 1_500 + "1" + ")" * 1_500),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_deep_and_long_expressions_are_refused(case: str) -> None:
    """An expression that no evaluator could bear is an error of the document."""
    with pytest.raises(asl.InvalidDocument) as refused:
        asl.check(HOSTILE[case]).raise_for_errors()
    assert refused.value.report.errors


def state_machine(states: int, rules: list[Made]) -> Made:
    """Return a blueprint with one state machine."""
    steps = {f"s{n}": [{"name": f"x{n}", "agent": {"id": "a"}}] for n in range(states)}
    machine = {"name": "m", "kind": "StateMachine", "start_state": "s0", "end_states": ["e"]}
    machine |= {"states": {**steps, "e": []}, "transitions": rules}
    return {"version": "0.1", "name": "f", "steps": [machine]}


def test_rules_for_any_state_multiply_within_a_bound() -> None:
    """Rules from `*` stand behind every state, so their product counts."""
    rules = [
        {"from": "*", "on": "success", "when": f"context.a == {n}", "to": "e"} for n in range(201)
    ]
    with pytest.raises(asl.InvalidDocument, match=f"more than {MAX_TRIALS} rules"):
        asl.load(state_machine(100, rules))
    assert asl.load(state_machine(100, rules[:20])).dialect == "flujo"


def test_rules_hidden_by_earlier_ones_are_found() -> None:
    """A rule is hidden by an earlier one of its state or of any, with its condition or none."""

    def rule(source: str, when: str | None = None) -> Made:
        made = {"from": source, "on": "success", "to": "e"}
        return made if when is None else {**made, "when": when}

    rules = [
        *(rule("s0", "context.a"), rule("*", "context.a"), rule("s0", "context.a")),
        *(rule("s1", "context.b"), rule("s1"), rule("s1", "context.c"), rule("*")),
    ]
    report = asl.check(asl.load(state_machine(3, rules)))
    hidden = [each for each in report if each.code == "FL-DEAD-RULE"]
    assert [each.pointer for each in hidden] == [
        "/steps/0/transitions/2",
        "/steps/0/transitions/5",
    ]
    assert [each.related[0].pointer for each in hidden] == [
        "/steps/0/transitions/0",
        "/steps/0/transitions/4",
    ]


def blueprint(template: str) -> Made:
    """Return a blueprint whose only agent is given a template."""
    step = {"name": "c", "agent": {"id": "a"}, "input": template}
    return {"version": "0.1", "name": "f", "steps": [step]}


@pytest.mark.parametrize(
    "document",
    [
        contenox("{{.input" + "|quote" * 40 + "}}"),
        contenox("{{.input" + "|toJson" * 40 + "}}"),
        contenox("{{.input" + "|toJson|quote" * 20 + "}}"),
        contenox("{{printf `%q%q` .input .input" + '|printf "%q%q" .input' * 40 + "}}"),
        blueprint("{{ previous_step" + " | tojson" * 40 + " }}"),
    ],
    ids=["quote", "toJson", "both", "printf", "tojson"],
)
def test_escapes_that_double_end_in_an_error(document: Made) -> None:
    """Each pipe escapes the escapes of the one before; sizes are checked before a text is built."""
    result = asl.run(document, '"\\"', agents={"a": lambda data: data})
    assert result.error == "States.Runtime"


DOUBLED = {f"p{n}": f"{{{{p{n + 1}}}}}" * 2 for n in range(60)} | {"p60": "x" * 1_000}
ALL = {f"p{n}": "".join(f"{{{{p{each}}}}}" for each in range(20)) for n in range(20)}
SELF = {"p0": "{{p0}}" * 50_000}


@pytest.mark.parametrize("scope", [DOUBLED, ALL, SELF], ids=["doubled", "all", "self"])
def test_placeholders_within_placeholders_are_bounded(scope: Made) -> None:
    """Values that refer to each other's placeholders grow up to a length, and no further."""
    meter = WorkMeter()
    try:
        length = len(fill("{{p0}}", scope, deep=True, meter=meter))
    except WorkExceeded:
        return
    assert length < 2 * MAX_LENGTH


@pytest.mark.parametrize("scope", [DOUBLED, ALL, SELF], ids=["doubled", "all", "self"])
def test_placeholders_in_values_are_not_resolved(scope: Made) -> None:
    """What is put in is text, whatever it holds."""
    assert fill("{{p0}}", scope) == scope["p0"]


BRACES = ("{", '{"', '{"a":', "[", "{}{", "{'a':", '"{', "{{", "```json\n{", '{\\"')


@pytest.mark.parametrize("piece", BRACES)
def test_answers_of_braces_alone_are_texts(piece: str) -> None:
    """An answer that only begins to be JSON is read in steps that its length bounds."""
    answer = piece * (100_000 // len(piece))
    scanned, most = 0, 10_000

    class Counting(WorkMeter):
        def spend(self, steps: int = 1) -> None:
            nonlocal scanned
            scanned += steps
            super().spend(steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asl.dialects.codemie.functions.outputs.WorkMeter", Counting)
        patch.setattr("asl.dialects.codemie.functions.outputs.MAX_MARKS", most)
        parse_output(answer)
    assert scanned <= most + 1
    with pytest.raises(ValueError):  # noqa: PT011
        read_data(answer)


@pytest.mark.parametrize("piece", ["{", '{"a":'])
@pytest.mark.parametrize(
    "document",
    [
        {**contenox("{{.input}}")},
        blueprint("{{ previous_step }}"),
        {**codemie("x == 1")},
    ],
    ids=["contenox", "flujo", "codemie"],
)
def test_steps_go_on_with_such_an_answer(document: Made, piece: str) -> None:
    """Whatever a model answers, its step ends with a result or a named error."""
    answer = piece * (50_000 // len(piece))
    agents = {name: lambda data: answer for name in ("a", "m", "prompt", "contenox:prompt")}
    result = asl.run(document, "x", agents=agents)
    assert result.ok or result.error


def importing(folder: Path, *paths: str) -> Made:
    """Return the document of a blueprint with an import, and claim that it has more of them."""
    part = {
        "version": "0.1",
        "name": "part",
        "steps": [{"kind": "step", "name": "a", "uses": "m:f"}],
    }
    whole = {
        "version": "0.1",
        "name": "whole",
        "imports": {"p": "./part.yaml"},
        "steps": [{"name": "b", "uses": "imports.p"}],
    }
    (folder / "part.yaml").write_text(json.dumps(part))
    (folder / "whole.yaml").write_text(json.dumps(whole))
    found: Made = json.loads(asl.convert(folder / "whole.yaml", to="asl").text)
    found["Metadata"]["Flujo"]["imports"] |= {path: {"a": 1} for path in paths}
    return found


@pytest.mark.parametrize(
    "path",
    ["../part.yaml", "/tmp/part.yaml", "a/../../part.yaml", "a\nb.yaml", "a\0b.yaml", "..\\a.yaml"],
)
def test_files_of_a_conversion_stay_in_its_folder(path: str, tmp_path: Path) -> None:
    """A document chooses their names, and whoever converts it writes them."""
    with pytest.raises(asl.AslError, match="not in its folder or below"):
        asl.convert(importing(tmp_path, path), to="flujo")


def test_files_of_a_conversion(tmp_path: Path) -> None:
    files = asl.convert(importing(tmp_path, "more/other.yaml"), to="flujo").files
    assert sorted(files) == ["more/other.yaml", "part.yaml"]
