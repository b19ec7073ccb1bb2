"""Queries that are calls of a dialect's functions are evaluated without the machinery around."""

from typing import Any

import pytest

from asl.core.errors import StateError
from asl.expr.jsonata.query import UNDEFINED, QueryFault, parse
from tests.expr.jsonata.frames import still

DATA = {"previous_step": 1, "context": {"a": 1}, "steps": {}}
CHAIN: dict[str, Any] = {"input": "i", "output": None, "variables": {"t": 1}, "text": "7 t"}
LISTS = {**CHAIN, "l": [1], "text": ["a"], "output": {"messages": []}}
CALLED = [
    "$flujo_input($states.input)",
    "$flujo_key($states.input, 'context.a == 1')",
    "$flujo_text($states.input, '{{ context.a }}')",
    "$flujo_items($states.input, 'nope')",
    "$flujo_start($states.input, 'm', 's')",
    "$flujo_data($states.input)",
    "$flujo_start($states.input, 'm')",
    "$flujo_input($states.input.context)",
    "$flujo_key($states.input, $states.input.context.b)",
    "$contenox_done($states.input, 'a', $contenox_noop($states.input.output))",
    "$contenox_done($states.input, 'a', $contenox_noop($states.input.l))",
    "$contenox_done($states.input, 'a', $contenox_parse_number($states.input.text))",
    "$contenox_counted($contenox_done($states.input, 'a', $contenox_noop('x')), 'a->b')",
    "$contenox_chat($states.input.output, $contenox_text($states.input, '{{.input}}'))",
    "$contenox_variable($states.input, $states.input.text)",
    "$contenox_noop($states.result)",
]
EVALUATED = [
    "$flujo_done($states.input, 'one', 1)",
    "$contenox_calls($states.input, ['a'])",
    "$contenox_gt($states.input.eval, 1)",
    "$contenox_noop($states.context)",
    "$contenox_noop($states.input.a[0])",
    "$contenox_noop($states.input.*)",
    "$contenox_noop($other.input)",
    "$contenox_noop($states.input & 'a')",
    "$flujo_input($states.input)[0]",
    "$flujo_input()",
    "$codemie_context($states.input)",
    "$uppercase('a')",
]


def at_once(query: Any, data: Any) -> Any:
    """The same without the machinery, where that gives anything."""
    try:
        found = query.direct({"input": data})
    except (QueryFault, StateError) as failure:
        return str(failure)
    return value(query, data) if found is UNDEFINED else found


def value(query: Any, data: Any) -> Any:
    """What a query comes to, or how it fails."""
    try:
        return query({"states": {"input": data}}, still())
    except (QueryFault, StateError) as failure:
        return str(failure)


@pytest.mark.parametrize("text", CALLED)
@pytest.mark.parametrize("data", [DATA, CHAIN, LISTS, {"x": 1}, "text", None, [1], UNDEFINED])
def test_direct_call_agrees_with_evaluation(text: str, data: Any) -> None:
    """Called at once or evaluated, whatever the input."""
    query = parse(text)
    assert query.direct is not None
    assert at_once(query, data) == value(query, data)


@pytest.mark.parametrize("text", EVALUATED)
def test_other_queries_have_no_direct_call(text: str) -> None:
    """Other arguments, other functions, and whatever does not fit a signature."""
    assert parse(text).direct is None
