"""Bad templates: whatever they are, reading them ends, with findings that have places."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.core.document import Document
from asl.core.source import Limits
from asl.sources import load, load_each

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "templates"
TEXTS = {
    path.relative_to(EXAMPLES).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(EXAMPLES.rglob("*"))
    if path.is_file()
}


def refusal(what: Any, name: str = "main.tf", **options: Any) -> asl.Diagnostic:
    """The first finding of a text that is refused."""
    with pytest.raises(asl.InvalidDocument) as refused:
        load(what, name=name, **options)
    assert refused.value.report.errors[0].line is not None
    return refused.value.report.errors[0]


def terraform(definition: str, more: str = "") -> bytes:
    return (
        f'{more}\nresource "aws_sfn_state_machine" "m" {{\n definition = {definition}\n}}'.encode()
    )


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_damaged_files_are_read_or_refused(name: str, data: st.DataObject) -> None:
    """A file with a piece cut out, doubled or replaced gives documents or findings, no more."""
    text = TEXTS[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    filler = data.draw(
        st.sampled_from(["", text[start:end] * 2, "${", "}", '"', "\n", "{", "!Sub"])
    )
    damaged = text[:start] + filler + text[end:]
    try:
        read = load_each(damaged.encode(), name=f"<{name}>" if name[-3:] != ".tf" else name)
    except asl.InvalidDocument as refused:
        read = [refused]
    for each in read:
        report = each.report if isinstance(each, asl.InvalidDocument) else asl.check(each)
        lines = damaged.count("\n") + 1
        assert all(1 <= (found.line or 1) <= lines for found in report if found.file != "order")


@settings(max_examples=100, deadline=None)
@given(st.text('ab1${}[]()"=.,:?!&|<>%~-*/#\n \\<<EOT', max_size=60))
def test_hcl_parser_fails_only_with_findings(text: str) -> None:
    """No text makes the reader of Terraform files fail in another way than by a finding."""
    with suppress(asl.AslError):
        load(terraform(f"jsonencode({text})", text), name="main.tf")


DEEP = {
    "brackets": "[" * 5000,
    "parentheses": "(" * 5000,
    "objects": "{ a = " * 5000,
    "signs": "!" * 5000,
    "templates": '"${' * 5000,
    "conditions": "a ? b : " * 5000,
    "calls": "f(" * 5000,
    "splats": "a" + "[*]" * 5000,
    "splats of attributes": "a" + ".*.b" * 800,
    "sums": "1" + " + 1" * 3000,
    "powers": "1" + " == 1 && 1" * 3000,
    "directives": '"' + "%{ if true }" * 3000,
}


@pytest.mark.parametrize("case", DEEP)
def test_depth_of_expressions_is_limited(case: str) -> None:
    """Nesting is bounded, in what is read and in what is worked out."""
    error = refusal(terraform(f"jsonencode({{ a = {DEEP[case]} }})"))
    assert error.code in ("READ-01", "READ-03", "READ-16", "V-TOP-01")


def test_length_of_a_reference_is_not_limited() -> None:
    """A reference may have any number of steps."""
    document = load(terraform(f"jsonencode({{ a = {'a' + '.b[0]' * 3000} }})"), name="main.tf")
    assert document.value["a"].endswith("b[0]}")
    assert all(len(each.message) < 500 for each in document.findings)


GROWTH = {
    "locals": "locals {\n"
    + "".join(f'  x{n} = "${{local.x{n + 1}}}${{local.x{n + 1}}}"\n' for n in range(60))
    + '  x60 = "x"\n}',
    "lists": "locals {\n"
    + "".join(f"  x{n} = [local.x{n + 1}, local.x{n + 1}]\n" for n in range(60))
    + "  x60 = []\n}",
    "concat": "locals {\n"
    + "".join(f"  x{n} = concat(local.x{n + 1}, local.x{n + 1})\n" for n in range(60))
    + "  x60 = [1]\n}",
    "join": "locals {\n"
    + "".join(f'  x{n} = join("x", [local.x{n + 1}, local.x{n + 1}])\n' for n in range(60))
    + '  x60 = "x"\n}',
    "replace": 'locals {\n  x0 = replace("' + "a" * 9000 + '", "a", "' + "b" * 9000 + '")\n}',
    "range": "locals {\n  x0 = range(0, 100000000)\n}",
    "loop": "locals {\n  x0 = [for a in range(0, 9000) : [for b in range(0, 9000) : a]]\n}",
    "text": 'locals {\n  x0 = [for a in range(0, 9000) : "' + "a" * 9000 + '${a}"]\n}',
    "chain": "locals {\n"
    + "".join(f"  x{n} = local.x{n + 1}\n" for n in range(5000))
    + "  x5000 = 1\n}",
    "pattern": 'locals {\n  y = join("", [for a in range(0, 9000) : "'
    + "a" * 40
    + '"])\n  x0 = length(regexall("a[^b]*b|a", local.y))\n}',
    "replaced pattern": 'locals {\n  y = join("", [for a in range(0, 9000) : "'
    + "a" * 40
    + '"])\n  x0 = replace(local.y, "/a[^b]*b|a/", "")\n}',
    "sets": 'locals {\n  y = [for a in range(0, 9000) : "a${a}"]\n'
    '  z = [for a in range(0, 9000) : "b${a}"]\n  x0 = setintersection(local.y, local.z)\n}',
    "circle": "locals {\n  x0 = [local.x1]\n  x1 = local.x0\n}",
}


@pytest.mark.parametrize("case", GROWTH)
def test_growing_expressions_are_limited(case: str) -> None:
    """Doubling, repeating and referring in circles end in a finding, not in a full memory."""
    limits = Limits(max_values=200_000, max_bytes=2_000_000)
    error = refusal(terraform("jsonencode({ a = local.x0 })", GROWTH[case]), limits=limits)
    assert error.code in ("READ-03", "READ-04", "READ-16")


def test_nested_definition_substitutions_are_limited() -> None:
    """Values of DefinitionSubstitutions may refer to each other, within limits."""
    names = {f"X{n}": f"${{X{n + 1}}}${{X{n + 1}}}" for n in range(60)}
    machine = {"DefinitionString": '{"a": "${X0}"}', "DefinitionSubstitutions": names}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    limits = Limits(max_bytes=200_000)
    text = json.dumps({"Resources": {"M": resource}}).encode()
    assert refusal(text, name="t.json", limits=limits).code in ("READ-04", "READ-16")


def chained(section: str, count: int) -> bytes:
    """Return a template whose values refer to each other in a chain."""
    names = range(count)
    parts: dict[str, Any] = {
        "Conditions": {f"C{n}": {"Fn::Not": [{"Condition": f"C{n + 1}"}]} for n in names}
        | {f"C{count}": {"Fn::Equals": ["a", "a"]}},
        "Resources": {
            f"C{n}": {
                "Type": "AWS::Lambda::Function",
                "Properties": {"FunctionName": {"Fn::Sub": f"${{C{n + 1}}}"}},
            }
            for n in names
        },
    }
    used = {"Fn::If": ["C0", "a", "b"]} if section == "Conditions" else {"Ref": "C0"}
    machine: dict[str, Any] = {"Definition": {"StartAt": "A", "States": {}, "Comment": used}}
    if section == "Substitutions":
        machine["Definition"]["Comment"] = "${C0}"
        machine["DefinitionSubstitutions"] = {f"C{n}": f"${{C{n + 1}}}" for n in names}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    template = {"Resources": {}} | ({} if section == "Substitutions" else {section: parts[section]})
    template["Resources"] = {**template["Resources"], "M": resource}
    return json.dumps(template).encode()


def doubled_functions() -> Any:
    """Return a text that `Fn::Sub` doubles 40 times."""
    value: Any = ""
    for _ in range(40):
        value = {"Fn::Sub": ["${A}${A}", {"A": value}]}
    return value


@pytest.mark.parametrize("case", ["conditions", "names", "functions"])
def test_repeated_evaluation_is_limited(case: str) -> None:
    """What is worked out twice on each of 40 levels counts, though it makes no values."""
    names = range(40)
    condition: Any = {
        f"C{n}": {"Fn::And": [{"Condition": f"C{n + 1}"}, {"Condition": f"C{n + 1}"}]}
        for n in names
    }
    resources: Any = {
        f"F{n}": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"FunctionName": {"Fn::Sub": f"${{F{n + 1}}}${{F{n + 1}}}"}},
        }
        for n in names
    }
    used = {
        "conditions": {"Fn::If": ["C0", "a", "b"]},
        "names": {"Ref": "F0"},
        "functions": doubled_functions(),
    }
    definition = {"StartAt": "A", "States": {}, "Comment": used[case]}
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"Definition": definition}}
    template = {
        "Conditions": condition | {"C40": {"Fn::Equals": ["a", "a"]}},
        "Resources": resources | {"M": machine},
    }
    assert refusal(json.dumps(template).encode(), name="t.json").code == "READ-04"


@pytest.mark.parametrize("section", ["Conditions", "Resources", "Substitutions"])
def test_chains_of_references_are_limited(section: str) -> None:
    """Values that refer to each other over thousands of steps are refused."""
    assert load(chained(section, 20), name="t.json").value["StartAt"] == "A"
    assert refusal(chained(section, 3000), name="t.json").code == "READ-03"


def test_values_nested_over_locals_are_limited() -> None:
    """Locals that are known already nest deeper than any expression does."""
    names = "".join(f"  x{n} = [local.x{n - 1}]\n" for n in range(1, 2000))
    known = ", ".join(f"length(local.x{n})" for n in range(2000))
    text = terraform(
        f"jsonencode({{ a = [{known}], b = local.x1999 }})", f"locals {{\n  x0 = [1]\n{names}}}"
    )
    assert refusal(text, limits=Limits()).code == "READ-03"


def test_length_of_inserted_values_is_limited() -> None:
    """A long value for many placeholders is refused before it fills the memory."""
    texts = {
        "x.json": '{"a": [' + ", ".join(['"${X}"'] * 1000) + "]}",
        "x.yaml": "a:\n" + "  - ${X}\n" * 1000,
    }
    for name, text in texts.items():
        error = refusal(text.encode(), name=name, variables={"X": "x" * 100_000})
        assert error.code == "READ-04"


def test_templates_have_the_depth_limit_of_documents() -> None:
    """The depth that documents may have is reached in templates, too."""
    value: Any = "end"
    for _ in range(90):
        value = [{"Fn::Select": [0, [value]]}]
    machine = {"Definition": {"StartAt": "A", "States": {}, "Deep": value}}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    with pytest.raises(asl.InvalidDocument) as refused:
        load(json.dumps({"Resources": {"M": resource}}).encode(), name="t.json")
    assert [each.code for each in refused.value.report] == ["READ-03"]
    value = "end"
    for _ in range(60):
        value = {"Fn::Join": ["", [value]]}
    machine = {"Definition": {"StartAt": "A", "States": {}, "Deep": value}}
    assert load({"Resources": {"M": {**resource, "Properties": machine}}}).value["Deep"] == "end"


def test_large_template_is_read() -> None:
    """Ten megabytes around a definition are looked through."""
    rest = {
        f"R{n}": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "b" * 900}}
        for n in range(10_000)
    }
    machine = {"Definition": {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}}
    flow = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    text = json.dumps({"Resources": {**rest, "Flow": flow}})
    assert len(text) > 9_500_000
    assert load(text.encode(), name="t.json").name == "Flow"


def test_terraform_files_have_the_limits_of_yaml() -> None:
    """Both have parsers of their own, which are slow."""
    with pytest.raises(asl.InvalidDocument) as refused:
        load(b"# " + b"x" * 1_100_000, name="main.tf")
    assert [each.code for each in refused.value.report] == ["READ-04"]


def test_number_of_state_machines_is_limited() -> None:
    """All of them are read together only up to a bound; each can be read by its name."""
    machine = {"Definition": {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine}
    text = json.dumps({"Resources": {f"M{n}": resource for n in range(501)}}).encode()
    with pytest.raises(asl.InvalidDocument, match="more than 500 state machines"):
        load_each(text, name="t.json")
    assert load(text, name="t.json", resource="M500").name == "M500"


def test_machines_of_a_template_share_its_hints() -> None:
    """A template of many resources is not copied for each of its state machines."""
    definition = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"Definition": definition}}
    one, two = load_each({"Resources": {"One": machine, "Two": machine}})
    assert isinstance(one, Document)
    assert isinstance(two, Document)
    assert one.hints is two.hints
