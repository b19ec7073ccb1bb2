"""Laws of the Contenox dialect, on templates, branches and chains that nobody has written."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.core.document import Document
from asl.core.errors import ExpressionFault, StateError
from asl.core.source import Source
from asl.dialects.contenox.chain import Chain, ChainBranch
from asl.dialects.contenox.functions.rendering import MAX_LENGTH, render
from asl.dialects.contenox.functions.templates import parse
from asl.dialects.contenox.reader import read
from asl.dialects.contenox.round_trip import restored
from asl.dialects.contenox.tokens import aliases, holds
from tests.dialects.spoilt import read_or_refused, spoilt
from tests.examples import examples

PARTS = st.sampled_from(
    [
        *("{{", "}}", "{{-", "-}}", ".input", ".a.b", "$", ".", "|", "(", ")", '"', "`", "\\", "'"),
        *("if", "else", "end", "range", "with", "eq", "index", "toJson", "trunc", "nope", "var:x"),
        *("/*", "*/", " ", "\n", "1", "-1", "1.5", "x", "{", "}", "edge_count:a->b", "now", "é"),
        *("{{if .input}}", "{{else}}", "{{end}}", "{{range .input}}", "{{.input}}", "{{.}}"),
    ]
)
TEMPLATES = st.lists(PARTS, max_size=14).map("".join)
SCALARS = st.sampled_from([None, True, False, 0, 1, -2, 2.5, "", "x", "1", "{{.input}}"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(TEMPLATES, VALUES)
@settings(deadline=None, max_examples=examples(85))
def test_a_template_is_filled_in_refused_or_ends_the_run(text: str, value: Any) -> None:
    """Whatever it holds, and whatever there is to be filled in."""
    try:
        parse(text)
    except ExpressionFault as fault:
        assert fault.code == "CX-TEMPLATE"
        assert 0 <= fault.offset <= len(text)
        return
    try:
        assert len(render(value, text, "2024-01-01T00:00:00Z")) <= MAX_LENGTH
    except StateError as error:
        assert error.name == "States.Runtime"
        assert error.cause


@pytest.mark.parametrize(
    "text",
    [
        "{{range .input}}{{range $.input}}{{range $.input}}x{{end}}{{end}}{{end}}",
        "{{range .input}}{{toJson $.input}}{{end}}",
    ],
)
def test_a_template_that_grows_is_stopped(text: str) -> None:
    """Loops within each other do not go on for ever."""
    with pytest.raises(StateError) as stopped:
        render(list(range(2000)), text)
    assert stopped.value.name == "States.Runtime"


@pytest.mark.parametrize("text", ["{{if .a}}" * 200, "{{" + "(" * 200, "{{" * 50_000])
def test_a_template_that_is_too_deep_is_refused(text: str) -> None:
    """Before the stack ends."""
    with pytest.raises(ExpressionFault):
        parse(text)


def test_a_long_action_is_read_in_bearable_time() -> None:
    """Minutes would pass, were the tokens behind each one copied."""
    with pytest.raises(ExpressionFault):
        parse("{{" + '""' * 200_000 + "}}")


OPERATORS = st.sampled_from(
    ["equals", "not_equals", "contains", "not_contains", "starts_with", "ends_with"]
)
WORDS = st.text(st.sampled_from("ab*\\'\" 1-.é😀"), max_size=5)
NUMERIC = st.one_of(
    st.tuples(st.sampled_from(["gt", "lt", ">", "<"]), st.sampled_from(["1", "-2", "2.5", "0"])),
    st.tuples(st.just("in_range"), st.sampled_from(["1-3", "-5--1", "0.5-0.5"])),
    st.tuples(st.just("range"), st.sampled_from(["1,3", "-5, -1", "0,0"])),
)
ASKED = st.tuples(OPERATORS, WORDS) | NUMERIC
SAID = WORDS | st.sampled_from(["1", "-2", "score: 2.5", "1-3", "none", "+0", ".5", "1e3", "-"])


@given(ASKED, SAID)
@settings(deadline=None, max_examples=examples(50))
def test_a_branch_in_jsonata_decides_like_the_operator(asked: Any, said: str) -> None:
    """What runs and what the checks foresee are the same."""
    operator, when = asked
    branch = {"operator": operator, "when": when, "goto": "hit"}
    default = {"operator": "default", "when": "", "goto": "end"}
    tasks: list[dict[str, Any]] = [
        {
            "id": "ask",
            "handler": "prompt_to_string",
            "transition": {"branches": [branch, default]},
        },
        {"id": "hit", "handler": "noop"},
    ]
    chain = Chain({"id": "c", "tasks": tasks}, "union")
    words = aliases(chain, chain.start, when)
    result = asl.run(_document(chain.value), "x", agents={"ask": lambda parameters: said})
    assert result.ok, result.cause
    assert ("hit" in result.visited) == holds(ChainBranch(branch, ""), said.strip(), words)


def _document(chain: Any) -> Document:
    return read(Document(chain, Source()), profile="union")


CHAIN: dict[str, Any] = {
    "id": "c",
    "tasks": [
        {
            "id": "a",
            "handler": "chat_completion",
            "execute_config": {"model": "m", "tools": ["*"]},
            "transition": {
                "on_failure": "b",
                "branches": [
                    {"operator": "equals", "when": "tool_call", "goto": "b"},
                    {
                        "operator": "edge_traversed_at_least",
                        "edge": "a->b",
                        "when": "2",
                        "goto": "end",
                    },
                    {
                        "operator": "default",
                        "when": "",
                        "goto": "c",
                        "compose": {"with_var": "v", "strategy": "json_path:$.x"},
                    },
                ],
            },
        },
        {"id": "b", "handler": "execute_tool_calls", "input_var": "a", "timeout": "1s"},
        {"id": "c", "handler": "noop", "prompt_template": "{{.a}}", "valid_conditions": {}},
    ],
}


@given(st.data(), VALUES)
@settings(deadline=None, max_examples=examples(50))
def test_a_spoilt_chain_is_read_or_refused(data: st.DataObject, value: Any) -> None:
    """Any value in any place: a document that is right, or findings with known codes."""
    read_or_refused(spoilt(data, CHAIN, value), "CX-", read, restored)
