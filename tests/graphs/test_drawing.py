"""Drawings: every state and every transition is there, nothing overlaps, whatever the names."""

import json
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.documents.drawing import FORMATS
from asl.graphs.labels import rule_words
from asl.graphs.layout import Box, Link, place_boxes
from asl.graphs.model import graph_of
from asl.graphs.svg import Marking, embedded_svg

Json = Any
EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.asl.json"))
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "agent-asl"
SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "path", [*EXAMPLES, *sorted(CORPUS.glob("*.asl.json"))], ids=lambda path: path.name
)
def test_real_documents_are_drawn_whole(path: Path) -> None:
    """Each state has its box and its name; each transition its arrow; in all formats."""
    document = asl.load(path)
    graph = graph_of(document.composed_value)
    states = [*graph.all_states()]
    drawing = ElementTree.fromstring(asl.graph(document, format="svg"))
    boxes = [each for each in drawing.iter() if each.get("class") == "state"]
    assert len(boxes) == len(states) > 0
    assert {state.name for state in states if len(state.name) < 50} <= set(
        texts(asl.graph(document, format="svg"))
    )
    arrows = [each for each in drawing.iter(f"{SVG}path") if each.get("class") == "way"]
    machines = [graph, *(machine for state in states for machine in state.machines)]
    count = sum(len(machine.transitions) for machine in machines)
    assert len(arrows) == count
    assert len(re.findall(r"-->|-\.->", asl.graph(document))) == count
    assert len(re.findall(r" -> ", asl.graph(document, format="dot"))) >= count


NAMES = st.text(max_size=12) | st.sampled_from(['"', "<b>", "]", "a\nb", "end", "--", "\x00", "{%"])


@st.composite
def machines(draw: st.DrawFn, depth: int = 2) -> Json:
    """Draw a machine whose states lead anywhere, nowhere included."""
    names = draw(st.lists(NAMES, min_size=0, max_size=5, unique=True))
    states: dict[str, Json] = {}
    for name in names:
        kind = draw(
            st.sampled_from(["Pass", "Task", "Choice", "Map", "Parallel", "Fail", "Odd", 3])
        )
        state: dict[str, Json] = {"Type": kind, "Comment": draw(NAMES), "Agent": draw(NAMES)}
        target = st.sampled_from([*names, "nowhere"])
        if draw(st.booleans()):
            state["Next"] = draw(target)
        if kind == "Choice":
            rule = {"Variable": draw(NAMES), "StringEquals": draw(NAMES), "Next": draw(target)}
            state["Choices"] = [rule, draw(NAMES)]
        if depth and kind == "Map":
            state["ItemProcessor"] = draw(machines(depth=depth - 1))
        if depth and kind == "Parallel":
            state["Branches"] = draw(st.lists(machines(depth=depth - 1), max_size=2))
        states[name] = state
    start = draw(st.sampled_from([*names, "nowhere"]))
    return {"StartAt": start, "States": states}


@given(machines())
def test_anything_is_drawn(machine: Json) -> None:
    """Whatever the names hold and wherever transitions lead: the text keeps its form."""
    graph = graph_of(machine)
    drawing = ElementTree.fromstring(FORMATS["svg"](graph))
    assert len([each for each in drawing.iter() if each.get("class") == "state"]) == len(
        [*graph.all_states()]
    )
    for line in FORMATS["mermaid"](graph).splitlines():
        assert line.count('"') % 2 == 0
    dot = FORMATS["dot"](graph)
    bare = re.sub(r'"(?:[^"\\\n]|\\.)*"', "", dot)
    assert '"' not in bare
    assert bare.count("{") == bare.count("}")


@given(st.integers(1, 12), st.data())
def test_nothing_overlaps(count: int, data: st.DataObject) -> None:
    """Boxes keep apart and inside; arrows begin and end at their boxes."""
    sizes = st.floats(1, 200)
    boxes = [Box(data.draw(sizes), data.draw(sizes)) for _ in range(count)]
    index = st.integers(0, count - 1)
    links = [
        Link(data.draw(index), data.draw(index), data.draw(st.sampled_from([0.0, 60.0])), 15.0)
        for _ in range(data.draw(st.integers(0, 2 * count)))
    ]
    found = place_boxes(boxes, links)
    for box in boxes:
        assert box.x - box.width / 2 >= -0.01
        assert box.x + box.width / 2 <= found.width + 0.01
        assert box.y - box.height / 2 >= -0.01
        assert box.y + box.height / 2 <= found.height + 0.01
    for one, other in combinations(boxes, 2):
        across = abs(one.x - other.x) >= (one.width + other.width) / 2 - 0.01
        assert across or abs(one.y - other.y) >= (one.height + other.height) / 2 - 0.01
    for link, way in zip(links, found.ways, strict=True):
        for (x, y), box in ((way[0], boxes[link.source]), (way[-1], boxes[link.target])):
            assert abs(x - box.x) <= box.width / 2 + 0.01
            assert abs(y - box.y) <= box.height / 2 + 0.01
        if link.source != link.target:
            assert not any(crossed(*ends, box) for ends in pairwise(way) for box in boxes)


def crossed(one: tuple[float, float], other: tuple[float, float], box: Box) -> bool:
    """Whether a piece of a transition may run through a box."""
    (left, right), (top, bottom) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    across = right > box.x - box.width / 2 + 0.01 and left < box.x + box.width / 2 - 0.01
    return across and bottom > box.y - box.height / 2 + 0.01 and top < box.y + box.height / 2 - 0.01


def test_a_chain_stands_straight() -> None:
    """One below the other, in the order of the transitions."""
    boxes = [Box(10.0 * (index + 1), 20.0) for index in range(6)]
    place_boxes(boxes, [Link(index, index + 1) for index in range(5)])
    assert all(upper.y < lower.y for upper, lower in pairwise(boxes))
    assert len({round(box.x, 1) for box in boxes}) == 1


def test_what_leads_back_stands_beside_what_leads_on() -> None:
    """At both of its ends, and past the chain that it closes, which stays straight."""
    boxes = [Box(60.0, 20.0) for _ in range(8)]
    chain = [Link(index, index + 1) for index in range(7)]
    found = place_boxes(boxes, [*chain, Link(7, 0, 50.0, 15.0)])
    assert len({round(box.x, 1) for box in boxes[1:-1]}) == 1
    (leaving, *_), (arriving, _) = found.ways[7][0], found.ways[7][-1]
    assert abs(leaving - boxes[7].x) == abs(arriving - boxes[0].x) == 15


def test_a_large_document_is_drawn() -> None:
    """Every state may fall back to the last one: no bend for each layer of each of these."""
    count = 1500
    states = {
        f"S{index}": {
            "Type": "Task",
            "Agent": "A",
            "Next": f"S{index + 1}",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": f"S{count}"}],
        }
        for index in range(count)
    }
    states[f"S{count}"] = {"Type": "Succeed"}
    drawing = asl.graph({"StartAt": "S0", "States": states}, format="svg")
    assert len(texts(drawing)) > 3 * count


def test_a_state_that_is_not_there_is_drawn_as_missing() -> None:
    """A document with errors is drawn as far as it goes."""
    graph = graph_of({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "Nowhere"}}})
    assert [state.type for state in graph.states] == ["Pass", "missing"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"Variable": "$.a", "NumericGreaterThanEquals": 7}, "$.a ≥ 7"),
        ({"Variable": "$.a", "StringEquals": "x"}, '$.a = "x"'),
        ({"Variable": "$.a", "StringEqualsPath": "$.b"}, "$.a = $.b"),
        ({"Variable": "$.a", "IsPresent": False}, "$.a is absent"),
        ({"Not": {"Variable": "$.a", "IsNull": True}}, "not $.a is null"),
        (
            {
                "And": [
                    {"Variable": "$.a", "StringMatches": "x*"},
                    {"Or": [{"Variable": "$.b", "IsString": True}, {"Variable": "$.c"}]},
                ]
            },
            '$.a matches "x*" and ($.b is a string or $.c)',
        ),
        ({"Condition": "{% $states.input.n > 3 %}"}, "$states.input.n > 3"),
        ({"Condition": True}, "true"),
    ],
)
def test_label_of_a_rule_is_readable(rule: Json, words: str) -> None:
    """Operators are signs; expressions lose their delimiters."""
    assert rule_words(rule) == words


def test_an_unknown_format_is_refused() -> None:
    """With the formats that there are."""
    with pytest.raises(asl.AslError, match="mermaid, dot, svg"):
        asl.graph(json.dumps({"StartAt": "A", "States": {}}), format="png")


def test_a_drawing_needs_no_browser() -> None:
    """Other viewers know no variables of CSS: without them all is black."""
    drawing = asl.graph({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}, format="svg")
    assert "var(" not in drawing
    assert "#fff" in drawing.partition("@media")[0]


def test_a_chain_is_drawn_in_its_own_words() -> None:
    task = {"id": "a", "handler": "parse_score", "retry_on_failure": 1}
    branches = [
        {"operator": "in_range", "when": "1-5", "goto": "b"},
        {"operator": ">", "when": 7, "goto": "b"},
        {"operator": "edge_traversed_at_least", "edge": "b->a", "when": "3", "goto": "end"},
        {"operator": "default", "goto": "end"},
    ]
    own = {"on_failure": "a", "branches": [{"operator": "equals", "when": "go", "goto": "a"}]}
    tasks = [
        {**task, "transition": {"branches": branches}},
        {"id": "b", "handler": "parse_transition", "transition": own},
    ]
    drawing = asl.graph({"id": "c", "tasks": tasks})
    labels = re.findall(r'\|"(.*)"\|', drawing)
    edge = "edge_traversed_at_least b-&gt;a 3"
    assert labels == [
        "catch",
        "in_range 1-5",
        "&gt; 7",
        edge,
        "otherwise",
        "on_failure",
        "equals go",
    ]
    assert "a<br/>parse_score<br/>Retry" in drawing
    assert "$" not in drawing


def test_a_blueprint_is_drawn_in_its_own_words() -> None:
    machine = {
        "kind": "StateMachine",
        "name": "m",
        "start_state": "s",
        "end_states": ["done"],
        "states": {"s": [{"kind": "hitl", "name": "ask", "message": "Go?"}]},
        "transitions": [
            {"from": "s", "on": "pause", "to": "done", "when": "context.n == 3"},
            {"from": "s", "on": "success", "to": "done", "when": "output.last_output > 2"},
        ],
    }
    key = {
        "condition_expression": "context.kind",
        "branches": {"a": [], "b": []},
        "default_branch": [],
    }
    loop = {"body": [{"name": "x"}], "exit_expression": "output.n > 1", "max_loops": 3}
    router = {"router_agent": "desk:r", "branches": {"left": []}}
    steps = [
        {"kind": "conditional", "name": "which", **key},
        {"kind": "loop", "name": "again", "loop": loop},
        {"kind": "dynamic_router", "name": "route", "router": router},
        machine,
    ]
    drawing = asl.graph({"steps": steps})
    labels = {*re.findall(r'\|"(.*)"\|', drawing)}
    rules = {"context.n == 3", "output.last_output &gt; 2", "s", "done", "10 hops", "no next_state"}
    others = {
        "unknown state",
        "it fails",
        "a",
        "b",
        "output.n &gt; 1",
        "fewer than 3 rounds",
        "left",
        "otherwise",
    }
    assert labels == rules | others


def test_svg_has_a_bound() -> None:
    """A document of thousands of states is refused as SVG, and drawn in the other formats."""
    branch = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    state = {"Type": "Parallel", "Branches": [branch] * 1_700, "End": True}
    document = {"StartAt": "P", "States": {"P": state}}
    with pytest.raises(asl.AslError, match="at most 5000 states and transitions, this one 5103"):
        asl.graph(document, format="svg")
    assert asl.graph(document, format="dot").count(" -> ") >= 1_700


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_drawing_for_a_page_has_links_and_no_style(path: Path) -> None:
    """Each state is a link with its pointer and its status; links are not within each other."""
    graph = graph_of(asl.load(path).composed_value)
    text = embedded_svg(graph, lambda state: Marking(f"#{state.name}", "FAILED", "✕"))
    drawing = ElementTree.fromstring(text)
    assert "style" not in text
    nodes = [each for each in drawing.iter(f"{SVG}g") if "data-pointer" in each.attrib]
    assert [each.get("data-pointer") for each in nodes] != []
    assert {each.get("data-pointer") for each in nodes} == {
        state.pointer for state in graph.all_states()
    }
    assert {each.get("data-status") for each in nodes} == {"FAILED"}
    links = [*drawing.iter(f"{SVG}a")]
    assert len(links) == len(nodes)
    assert not [inner for link in links for inner in link.iter(f"{SVG}a") if inner is not link]


def test_a_drawing_for_a_page_escapes_names_and_links() -> None:
    name = "a\"b'<i>&"
    document = {"StartAt": name, "States": {name: {"Type": name, "End": True}}}
    mark = Marking('"><script>', '"><b>', "<")
    drawing = ElementTree.fromstring(embedded_svg(graph_of(document), lambda state: mark))
    (link,) = drawing.iter(f"{SVG}a")
    assert link.get("href") == '"><script>'
    assert not [*drawing.iter(f"{SVG}script"), *drawing.iter(f"{SVG}i"), *drawing.iter(f"{SVG}b")]


FLUJO = """steps:
  - kind: conditional
    name: c
    condition_expression: context.score >= 7
    branches:
      true: [{kind: step, name: b, uses: "desk:b"}]
      false: [{kind: step, name: d, uses: "desk:d"}]
"""
CODEMIE = """assistants: [{id: w, assistant_id: x}]
states:
  - id: a
    assistant_id: w
    task: t
    next: {condition: {expression: "kind.strip() in ['high']", then: b, otherwise: end}}
  - {id: b, assistant_id: w, task: t, next: {state_id: e, iter_key: items}}
  - {id: e, assistant_id: w, task: t, next: {state_id: end}}
"""


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (FLUJO, ["context.score &gt;= 7"]),
        (CODEMIE, ["kind.strip() in ['high']", "iter_key items"]),
    ],
)
def test_labels_of_foreign_documents_are_the_words_of_their_authors(
    text: str, labels: list[str]
) -> None:
    """Also after a conversion."""
    document = asl.load(text)
    for each in (document, asl.convert(document, "asl").document):
        drawing = asl.graph(each)
        assert [label for label in labels if label not in drawing] == []
        assert "$flujo" not in drawing
        assert "$codemie" not in drawing
