"""What the functions of chains compute: as terms, and as documents without these functions."""

from pathlib import Path as File
from typing import Any

import pytest

import asl
from asl.dialects.contenox.functions.table import TABLE
from asl.dialects.contenox.meaning_losses import meaning_losses
from asl.dialects.contenox.meanings import MEANINGS
from asl.dialects.lowering import Flow, fold, lower
from asl.dialects.terms import Term, Unknown, walk
from asl.dialects.terms.expansion import expand_functions
from asl.dialects.terms.jsonata import print_jsonata, read_jsonata

CORPUS = File(__file__).resolve().parents[3] / "shared" / "corpus" / "contenox"
WITHOUT_MEANING = 7
"""Published chains with a part that no term says, such as the environment of the engine."""


def shown(source: str) -> str | None:
    return print_jsonata(read_jsonata(source, MEANINGS))


def text(template: str) -> str | None:
    return shown(f"$contenox_text($states.input, '{template}')")


def default(goto: str) -> dict[str, Any]:
    return {"branches": [{"operator": "default", "goto": goto}]}


def test_every_function_has_a_meaning() -> None:
    assert {f"contenox_{name}" for name in TABLE} == MEANINGS.keys()


@pytest.mark.parametrize(
    ("template", "query"),
    [
        ("plain", "'plain'"),
        ("to {{.input}}!", "'to ' & $states.input.input & '!'"),
        ("{{.a.b}}", "'' & $states.input.a.b"),
        ("{{.previous_output}}", "'' & $states.input.output"),
        ("{{.eval}}", "'' & $states.input.eval_output"),
        ("{{if .a.flag}}x{{else}}y{{end}}", "($states.input.a.flag ? 'x' : 'y')"),
        ("{{if eq .a 1}}x{{end}}", "($states.input.a = 1 ? 'x' : '')"),
        ("{{if ne .a nil}}x{{end}}", "($exists($states.input.a) ? 'x' : '')"),
        ("{{upper .a}}", "$uppercase($states.input.a)"),
        ("{{var:x}}", "'' & $states.input.vars.x"),
        ("{{now}}", "'' & $states.context.State.EnteredTime"),
        ("{{host:os}}", "'{{host:os}}'"),
        ("{{range .a}}x{{end}}", None),
    ],
)
def test_template_as_a_query(template: str, query: str | None) -> None:
    assert text(template) == query


def test_branch_of_a_chat_asks_for_tool_calls() -> None:
    chain = {
        "id": "c",
        "tasks": [
            {
                "id": "ask",
                "handler": "chat_completion",
                "transition": {
                    "branches": [
                        {"operator": "equals", "when": "tool_call", "goto": "run"},
                        {"operator": "default", "goto": "end"},
                    ]
                },
            },
            {"id": "run", "handler": "execute_tool_calls", "transition": default("ask")},
        ],
    }
    step = lowered(asl.load(chain)).steps["ask"]
    output = print_jsonata(step.output)
    assert output is not None
    assert "'eval': ($exists($states.result.tool_calls) ? 'tool_call' : 'executed')" in output
    condition = step.exits[0].condition
    assert condition is not None
    assert print_jsonata(condition) == "$states.input.eval in ['tool_call', 'tool-call']"


def test_finish_reasons_of_the_seed_are_kept_apart() -> None:
    found = shown("$contenox_chat_completion($states.input, $states.result, 'seed').eval")
    assert found == (
        "($exists($states.result.tool_calls) ? 'tool-call' : "
        "($states.result.finish_reason = 'length' ? 'length' : 'stop'))"
    )


def lowered(document: asl.Document) -> Flow:
    return fold(lower(document.composed_value, MEANINGS))


def terms(flow: Flow) -> list[Term]:
    found: list[Term] = []
    for step in flow.steps.values():
        found += [step.input, step.output, *step.fields.values(), *step.assign.values()]
        found += [each.condition for each in step.exits if each.condition is not None]
        found += [each.output for each in step.exits if each.output is not None]
        found += [each.output for each in step.handlers]
    return found


@pytest.mark.skipif(not CORPUS.exists(), reason="the documents are not here")
def test_published_chains_have_meanings() -> None:
    without = []
    for path in sorted(CORPUS.glob("*.json")):
        try:
            flow = lowered(asl.load(path))
        except asl.InvalidDocument:
            continue
        if any(isinstance(part, Unknown) for term in terms(flow) for part in walk(term)):
            without.append(path.name)
    assert len(without) <= WITHOUT_MEANING, without


def tools(id: str, goto: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "handler": "tools",
        "tools": {"name": id},
        "transition": default(goto),
        **more,
    }


CHAINS = {
    "tools": [tools("a", "b"), tools("b", "end", prompt_template="{{.a}} of {{.input}}")],
    "failure": [
        {**tools("a", "end"), "transition": {"on_failure": "b", **default("end")}},
        tools("b", "end", prompt_template="{{.last_error}}"),
    ],
    "loop": [
        tools("a", "b"),
        {
            **tools("b", "a"),
            "transition": {
                "branches": [
                    {
                        "operator": "edge_traversed_at_least",
                        "edge": "a->b",
                        "when": "2",
                        "goto": "end",
                    },
                    {"operator": "default", "goto": "a"},
                ]
            },
        },
    ],
    "noop": [
        {"id": "a", "handler": "noop", "prompt_template": "x", "transition": default("b")},
        tools("b", "end", input_var="a"),
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_without_its_functions_does_the_same(name: str) -> None:
    document = asl.load({"id": "c", "tasks": CHAINS[name]})
    reported: list[tuple[str, str]] = []
    plain = expand_functions(document.value, MEANINGS, lambda *place: reported.append(place))
    assert reported == []
    one, other = run(document.value, "tea"), run(plain, {"input": "tea"})
    assert one == other
    assert "$contenox" not in str({**plain, "Metadata": {}})


def run(document: dict[str, Any], input: Any) -> tuple[Any, ...]:
    asked: list[Any] = []

    def agent(name: str) -> Any:
        def answer(parameters: Any) -> str:
            asked.append((name, parameters))
            if name == "a" and "on_failure" in str(document["Metadata"]):
                raise asl.StateError("Odd", "gone")
            return f"{name} {len(asked)}"

        return answer

    result = asl.run(document, input, agents={each: agent(each) for each in "ab"}, clock="virtual")
    return result.status, result.output, asked


def test_losses_of_meanings_name_the_input_and_answers() -> None:
    chain = {"id": "c", "tasks": [{"id": "rate", "handler": "parse_number"}]}
    found = {each.code: each.hint for each in meaning_losses(asl.load(chain))}
    assert found.keys() == {"L-INPUT", "L-ANSWER"}
    assert found["L-INPUT"] == 'give the input as {"input": ...}'
