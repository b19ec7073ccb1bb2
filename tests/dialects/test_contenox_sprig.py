"""The functions of sprig in templates: a closed list, bounded by their data."""

from typing import Any

import pytest

import asl
from asl.core.codes import lookup
from asl.core.errors import ExpressionFault, StateError
from asl.dialects.contenox.functions.rendering import render_result
from asl.dialects.contenox.functions.sprig import SPRIG
from asl.dialects.contenox.functions.templates import parse

DATA: Any = {
    "word": "Red tea",
    "n": 7,
    "list": ["b", "a", "b"],
    "deep": {"x": {"y": 1}},
    "none": None,
}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ('{{trimPrefix "Red " .word}}', "tea"),
        ('{{trimSuffix "tea" .word}}|', "Red |"),
        ('{{trimAll "Ra" .word}}', "ed te"),
        ('{{title "red tea"}} {{untitle .word}}', "Red Tea red tea"),
        ('{{repeat 3 "ab"}}', "ababab"),
        ("{{substr 0 3 .word}}", "Red"),
        ("{{nospace .word}} {{initials .word}}", "Redtea Rt"),
        ('{{.word | replace " " "-" | lower}}', "red-tea"),
        ('{{indent 2 "a\\nb"}}', "  a\n  b"),
        ("{{cat 1 .word}}", "1 Red tea"),
        ('{{plural "one" "many" 2}}', "many"),
        ('{{snakecase "FirstName"}} {{kebabcase "FirstName"}}', "first_name first-name"),
        ('{{splitList " " .word | join ","}}', "Red,tea"),
        ("{{first .list}}{{last .list}}", "bb"),
        ("{{rest .list}} {{initial .list}}", "[a b] [b a]"),
        ('{{append .list "c"}} {{prepend .list "c"}}', "[b a b c] [c b a b]"),
        ("{{sortAlpha .list}} {{uniq .list}} {{reverse .list}}", "[a b b] [b a] [b a b]"),
        ('{{without .list "b"}} {{has "a" .list}}', "[a] true"),
        ('{{compact (list 1 0 "")}} {{until 3}}', "[1] [0 1 2]"),
        ('{{get .deep "z"}}|{{hasKey .deep "x"}}', "|true"),
        ('{{toJson (set (deepCopy .deep) "z" 2)}}', '{"x":{"y":1},"z":2}'),
        (
            '{{keys .deep}} {{toJson (pick .deep "x")}} {{toJson (omit .deep "x")}}',
            '[x] {"x":{"y":1}} {}',
        ),
        ('{{toJson (merge (dict "a" 1) (dict "a" 2 "b" 3))}}', '{"a":1,"b":3}'),
        ('{{dig "x" "y" 0 .deep}} {{dig "x" "z" 5 .deep}}', "1 5"),
        ("{{add 1 .n}} {{sub 1 .n}} {{mul 2 .n}} {{div -7 2}} {{mod -7 2}}", "8 -6 14 -3 -1"),
        ("{{max 1 .n}} {{min 1 .n}} {{floor 1.7}} {{ceil 1.2}} {{round 1.26 1}}", "7 1 1 2 1.3"),
        ('{{atoi "12"}} {{int 3.9}}', "12 3"),
        ("{{kindOf .list}} {{kindOf .none}} {{kindOf .n}}", "slice invalid float64"),
        ('{{(fromJson "[1,2]") | last}}', "2"),
        ('{{b64enc "a"}} {{b64dec "YQ=="}}', "YQ== a"),
        ('{{and false (fromJson "odd")}} {{or .n (fromJson "odd")}}', "false 7"),
    ],
)
def test_function_in_a_template(template: str, shown: str) -> None:
    assert render_result(DATA, template) == shown


@pytest.mark.parametrize(
    "template",
    [
        '{{repeat 1000000000 "ab"}}',
        "{{until 1000000000}}",
        '{{indent 1000000000 "ab"}}',
        "{{range until 9999}}{{range until 9999}}{{end}}{{end}}",
        '{{range until 9999}}{{title (repeat 9999 "a ")}}{{end}}',
        "{{div 1 0}}",
        '{{hasKey .word "x"}}',
        '{{b64dec "%"}}',
        '{{fromJson "odd"}}',
        "{{first .n}}",
    ],
)
def test_function_with_a_wrong_value_ends_the_run(template: str) -> None:
    with pytest.raises(StateError) as caught:
        render_result(DATA, template)
    assert caught.value.name == "States.Runtime"


@pytest.mark.parametrize("name", ["now", "env", "randAlpha", "uuidv4", "regexMatch", "htmlDate"])
def test_impure_function_is_refused(name: str) -> None:
    with pytest.raises(ExpressionFault):
        parse(f'{{{{{name} "x"}}}}')


def test_hint_of_an_unknown_function_is_near_or_absent() -> None:
    def hint(name: str) -> str:
        with pytest.raises(ExpressionFault) as caught:
            parse(f"{{{{{name} .x}}}}")
        return str(caught.value.hint)

    assert "'upper'" in hint("uper")
    assert "did you mean" not in hint("genCA")


def test_rule_of_templates_lists_every_function() -> None:
    text = lookup("CX-TEMPLATE").explain
    assert [name for name in SPRIG if f"{name}," not in text and f"{name} and" not in text] == [
        "sha256sum"
    ]


def test_prompt_is_filled_in_with_functions() -> None:
    task = {"id": "a", "handler": "noop", "prompt_template": '{{list "x" .input | toJson | upper}}'}
    result = asl.run(asl.load({"id": "c", "tasks": [task]}), "tea")
    assert result.output == '["X","TEA"]'
