"""Templates of transform nodes: the subset of Jinja, its limits, and what is reported."""

from typing import Any

import pytest

import asl
from asl.core.errors import ExpressionFault
from asl.core.work import WorkExceeded, WorkMeter
from asl.dialects import load
from asl.dialects.codemie.functions.conditions import CodemieConditionError
from asl.dialects.codemie.functions.template_syntax import names_read, parse_template
from asl.dialects.codemie.functions.templates import render

NAMES: dict[str, Any] = {
    "items": [1, 2, 3],
    "names": ["b", "a", "B"],
    "user": {"name": "Ann", "tags": ["x", "y"]},
    "text": "Two words",
    "rows": [{"k": "a", "n": 2}, {"k": "b", "n": 1}],
    "zero": 0,
    "empty": [],
}
SHOWN = {
    "{% for i in items %}{{ i }},{% endfor %}": "1,2,3,",
    "{{ items | join(', ') }}": "1, 2, 3",
    "{{ names | sort | join }} {{ names | unique | join('-') }}": "abB b-a",
    "{{ text | upper }} {{ text | length }} {{ text.split(' ') | length }}": "TWO WORDS 9 2",
    "{{ missing }}{{ missing | default('d') }}{{ missing | upper }}": "d",
    "{{ user.name ~ '!' }} {{ user['tags'][0] }} {{ user.tags[-1] }}": "Ann! x y",
    "{% if items | length > 2 and not zero %}a{% elif zero %}b{% else %}c{% endif %}": "a",
    "{% for r in rows if r.n > 1 %}{{ loop.index }}{{ r.k }}{% else %}-{% endfor %}": "1a",
    "{% for i in empty %}x{% else %}none{% endfor %}": "none",
    "{% for k, v in rows[0].items() %}{{ k }}={{ v }};{% endfor %}": "k=a;n=2;",
    "{{ rows | selectattr('n', 'gt', 1) | map(attribute='k') | first }}": "a",
    "{{ rows | sort(attribute='n') | map(attribute='k') | join }}": "ba",
    "{% set x = items | sum %}{{ x * 2 + 1 }} {{ -1 | abs }} {{ 7 // 2 }}": "13 1 3",
    "{{ 'a' if zero else 'b' }}{{ 'a' if zero }}": "b",
    "{{ text | replace('Two', '2') | trim }}  {%- if 1 -%}   x {%- endif %}\n": "2 wordsx",
    "{# c #}{{ items[1:] | last }} {{ text[:3] }} {{ items | max }}": "3 Two 3",
    "{% if x is not defined and 2 in items and user is mapping %}y{% endif %}": "y",
    '{{ {"b": "<", "a": 1} | tojson }}': '{"a": 1, "b": "\\u003c"}',
    "{{ (1 + 2) * 3 }} {{ '3' | int + 1 }} {{ names | reverse | join }}": "9 4 Bab",
    "{{ text | title | truncate(255) }}": "Two Words",
}


@pytest.mark.parametrize("template", SHOWN)
def test_template_is_rendered(template: str) -> None:
    assert render(template, NAMES, WorkMeter()) == SHOWN[template]


@pytest.mark.parametrize("template", SHOWN)
def test_jinja_renders_the_same(template: str) -> None:
    jinja2 = pytest.importorskip("jinja2")
    assert jinja2.Environment().from_string(template).render(**NAMES) == SHOWN[template]


def test_values_other_than_texts_are_shown_as_json() -> None:
    assert render("{{ user }} {{ zero == 0 }}", NAMES, WorkMeter()) == (
        '{"name": "Ann", "tags": ["x", "y"]} true'
    )


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{{ x | attr('y') }}", "there is no filter 'attr'"),
        ("{{ a.__class__ }}", "the name of a member is missing"),
        ("{% include 'x' %}", "there is no block 'include'"),
        ("{{ lipsum() }}", "only methods can be called"),
        ("{% for x in y %}", "a block has no 'endfor'"),
        ("{{ a", "{{ has no }}"),
        ("{% endif %}", "'endif' ends no block"),
        ("{{ 1 ** 2 }}", "'*' is not supported here"),
        ("{{ " + "(" * 99 + " }}", "the expression is nested too deep"),
        ("{% if a %}" * 99, "the blocks are nested too deep"),
    ],
)
def test_template_beyond_the_subset_is_a_fault(template: str, fault: str) -> None:
    with pytest.raises(ExpressionFault) as raised:
        parse_template(template)
    assert raised.value.message == fault


@pytest.mark.parametrize(
    "template",
    [
        "{% set s = 'aaaaaaaa' %}" + "{% set s = s ~ s %}" * 60 + "{{ s }}",
        "{% set x = 9 %}" + "{% set x = x * x %}" * 60 + "{{ x }}",
        "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x | tojson }}",
        "{% for a in items %}" * 30 + "x" + "{% endfor %}" * 30,
        "{{ 'a' * 1000000000 }}",
        "{{ items | join('a' | replace('a', text) | replace('', text)) | replace('', text) }}"
        "{{ none_such.member }}",
    ],
)
def test_work_and_length_are_limited(template: str) -> None:
    with pytest.raises((CodemieConditionError, WorkExceeded)):
        render(template, NAMES, WorkMeter())


def test_names_that_a_template_reads() -> None:
    template = "{% for a in b if c %}{{ a ~ d }}{{ loop.index }}{% endfor %}{% set e = f %}{{ e }}"
    assert [*names_read(template)] == ["b", "c", "d", "f"]


def test_finding_is_at_the_fault() -> None:
    """With its place within the template, and as a Task of an agent instead."""
    mapping = {"output_field": "a", "type": "template", "template": "ab {{ x | attr('y') }}"}
    node = {"id": "t", "custom_node_id": "transform_node", "config": {"mappings": [mapping]}}
    states = [{"id": "s", "custom_node_id": "t", "next": {"state_id": "end"}}]
    document = load({"custom_nodes": [node], "states": states}, dialect="codemie")
    (found,) = [each for each in asl.check(document) if "template" in each.message]
    assert found.pointer == "/custom_nodes/0/config/mappings/0/template"
    assert "there is no filter 'attr'" in found.message
    assert document.value["States"]["s"]["Type"] == "Task"


def test_template_in_another_language() -> None:
    """Conditions and filters are expressions there, a loop is an error."""
    mapping = {"output_field": "a", "type": "template"}
    node = {"id": "t", "custom_node_id": "transform_node"}
    states = [{"id": "s", "custom_node_id": "t", "next": {"state_id": "end"}}]

    def converted(template: str) -> asl.Conversion:
        nodes = [{**node, "config": {"mappings": [{**mapping, "template": template}]}}]
        return asl.convert(load({"custom_nodes": nodes, "states": states}), "amazon")

    said = converted("{% if x %}Hi {{ x | upper }}{% else %}-{% endif %}")
    assert said.ok
    assert asl.run(said.text, {"x": "ann"}).output == {"x": "ann", "a": "Hi ANN"}
    assert [each.code for each in converted("{% for i in x %}{{ i }}{% endfor %}").losses.errors]


@pytest.mark.parametrize(
    "operation", ["{{ text%s }}".replace("%s", each * 5000) for each in (" ~ text", ".x", "[0]")]
)
def test_long_chain_of_operations_is_refused(operation: str) -> None:
    """An operand is within the next operation."""
    with pytest.raises(ExpressionFault, match="more than 100 operations"):
        parse_template(operation)


def test_long_chain_of_filters_is_refused() -> None:
    with pytest.raises(ExpressionFault, match="more than 100 operations"):
        parse_template("{{ text" + "| upper" * 5000 + " }}")
