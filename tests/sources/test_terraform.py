"""State machines in Terraform files."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import asl
from asl.core.diagnostics import Severity
from asl.sources import load_each

FN = "arn:aws:lambda:us-east-1:111111111111:function:"
STATES = "arn:aws:states:us-east-1:111111111111:"
MACHINE = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}

AROUND = """
variable "plain" { default = "text" }
variable "count" {
  type    = number
  default = 3
}
variable "names" { default = ["b", "a"] }
variable "unset" { type = string }
variable "list" { type = list(string) }
locals {
  one    = 1
  object = { a = 1, b = { c = "deep" } }
  chain  = local.object.b.c
  pattern = "Hi $${name}: %%{ for x in n }$${x};%%{ endfor }"
}
"""


def written(expression: str, more: str = "") -> str:
    """A file with a state machine whose Pass state gives the value of an expression."""
    return f"""{AROUND}{more}
resource "aws_sfn_state_machine" "flow" {{
  definition = jsonencode({{
    StartAt = "A"
    States  = {{ A = {{ Type = "Pass", End = true, Result = {expression} }} }}
  }})
}}
"""


def result(document: asl.Document) -> Any:
    return document.value["States"]["A"]["Result"]


EXPRESSIONS: dict[str, Any] = {
    '"text"': "text",
    "12": 12,
    "1.5e3": 1500,
    "-2": -2,
    "true": True,
    "null": None,
    "[1, 2,]": [1, 2],
    "{ a = 1, 'b' : 2 }".replace("'", '"'): {"a": 1, "b": 2},
    '{ (var.plain) = 1, "${var.plain}-x" = 2 }': {"text": 1, "text-x": 2},
    r'"a\n\"\\\u00e9"': 'a\n"\\é',
    '"$${x} %%{y} $ % $$"': "${x} %{y} $ % $$",
    '"${1 + 2}"': 3,
    '"-${1 + 2}-${true}"': "-3-true",
    "1 + 2 * 3 - 4 / 2": 5,
    "(1 + 2) * 3 % 4": 1,
    "7 / 2": 3.5,
    '1 < 2 && !(1 >= 2) || "a" == "b"': True,
    "1 != 1.0": False,
    'var.count > 2 ? "many" : "few"': "many",
    "var.plain": "text",
    "var.count": 3,
    "var.names[1]": "a",
    "var.names.0": "b",
    "local.object.b.c": "deep",
    'local.object["a"]': 1,
    "local.chain": "deep",
    "[for name in var.names : upper(name)]": ["B", "A"],
    '[for i, name in var.names : i if name != "b"]': [1],
    "{ for i, name in var.names : name => i }": {"b": 0, "a": 1},
    "{ for name in var.names : length(name) => name... }": {"1": ["b", "a"]},
    '[{ n = "x" }, { n = "y" }][*].n': ["x", "y"],
    '"%{ for n in var.names }<${n}>%{ endfor }"': "<b><a>",
    '"%{ if var.count > 2 }yes%{ else }no%{ endif }"': "yes",
    '"a %{~ if false }x%{ endif ~} b"': "ab",
    'format("%s-%d-%%", "a", 3)': "a-3-%",
    'format("%03d|%-4s|%+.2f|%[1]v|%t|%q", 7, "a", 2.5, true, "s")': '007|a   |+2.50|7|true|"s"',
    'format("%x", 255)': "ff",
    'format("%v %#v", [1, "a"], "b")': '[1,"a"] "b"',
    'formatlist("%s-%s", ["a", "b"], "x")': ["a-x", "b-x"],
    'replace("a1b22", "/[0-9]+/", "#")': "a#b#",
    'replace("ab", "/(?P<x>a)(b)/", "$2-${x}-$$")': "b-a-$",
    'regex("[a-z]+", "12ab")': "ab",
    'regex("([a-z])([0-9])", "a1")': ["a", "1"],
    'regex("(?P<l>[a-z])", "1a")': {"l": "a"},
    'regexall("[0-9]", "a1b2")': ["1", "2"],
    "alltrue([true, false])": False,
    'anytrue(["false", true])': True,
    "chunklist([1, 2, 3], 2)": [[1, 2], [3]],
    "coalescelist([], [1])": [1],
    'index(["a", "b"], "b")': 1,
    'indent(2, "a\\nb")': "a\n  b",
    'parseint("ff", 16)': 255,
    "pow(2, 3)": 8,
    'setproduct(["a"], [1, 2])': [["a", 1], ["a", 2]],
    'setsubtract(["b", "a"], ["b"])': ["a"],
    'setunion(["b"], ["a"])': ["a", "b"],
    'setintersection(["a", "b"], ["b"])': ["b"],
    'md5("a")': "0cc175b9c0f1b6a831c399e269772661",
    "sum([1, 2])": 3,
    'transpose({ a = ["x", "y"], b = ["x"] })': {"x": ["a", "b"], "y": ["a"]},
    'urlencode("a b/c")': "a+b%2Fc",
    'csvdecode("a,b\\n1,2")': [{"a": "1", "b": "2"}],
    "can(local.object.z)": False,
    "can(local.object.a)": True,
    'join(",", sort(var.names))': "a,b",
    "merge({ a = 1 }, { b = 2 }, [{ c = 3 }]...)": {"a": 1, "b": 2, "c": 3},
    "concat([1], [2, 3])": [1, 2, 3],
    'lookup({ a = 1 }, "b", 2)': 2,
    'try(local.object.z, "else")': "else",
    'coalesce("", null, "x")': "x",
    'replace("a-b", "-", "+")': "a+b",
    "toset(var.names)": ["a", "b"],
    'tonumber("5")': 5,
    'jsonencode({ a = [1, "x"] })': '{"a":[1,"x"]}',
    'jsondecode("{\\"a\\": 1}")': {"a": 1},
    'yamldecode("a: [1, b]")': {"a": [1, "b"]},
    'cidrhost("10.12.112.0/20", 16)': "10.12.112.16",
    'cidrhost("10.12.112.0/20", -1)': "10.12.127.255",
    'cidrhost("fd00:fd12:3456:7890:00a2::/72", 34)': "fd00:fd12:3456:7890::22",
    'cidrnetmask("172.16.0.0/12")': "255.240.0.0",
    'cidrsubnet("172.16.0.0/12", 4, 2)': "172.18.0.0/16",
    'cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)': "fd00:fd12:3456:7800:a200::/72",
    'cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)': [
        "10.1.0.0/20",
        "10.1.16.0/20",
        "10.1.32.0/24",
        "10.1.48.0/20",
    ],
    "range(4, 1)": [4, 3, 2],
    "range(-2)": [0, -1],
    'title("hello WORLD of 2nd_x")': "Hello WORLD Of 2nd_x",
    'uuidv5("dns", "www.terraform.io")': "a5008fae-b28c-5ba5-96cd-82b4c53552d6",
    'uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.terraform.io")': (
        "a5008fae-b28c-5ba5-96cd-82b4c53552d6"
    ),
    "uuid()": "${uuid()}",
    'base64sha256("hello world")': "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=",
    'templatestring(local.pattern, { name = "Ada", n = [1, 2] })': "Hi Ada: 1;2;",
    'fileexists("gone.json")': False,
    'yamlencode({ foo = [1, { a = "b", c = "d" }, []], bar = "baz", n = null, o = {} })': (
        '"bar": "baz"\n"foo":\n- 1\n- "a": "b"\n  "c": "d"\n- []\n"n": null\n"o": {}\n'
    ),
    'yamlencode({ a = { b = { c = true } }, l = [[1, 2], "x"] })': (
        '"a":\n  "b":\n    "c": true\n"l":\n- - 1\n  - 2\n- "x"\n'
    ),
    'yamldecode(yamlencode({ t = "one\\n\\n two\\n", u = "x\\ny" }))': {
        "t": "one\n\n two\n",
        "u": "x\ny",
    },
    "path.module": ".",
    "terraform.workspace": "default",
    "aws_lambda_function.charge.arn": f"{FN}charge",
    "aws_lambda_function.charge[0].qualified_arn": f"{FN}charge",
    'aws_lambda_function.each["a"].arn': f"{FN}each-a",
    "aws_lambda_function.each[each.key].invoke_arn": f"{FN}each",
    "aws_lambda_function.charge.function_name": "charge",
    "aws_lambda_alias.live.arn": f"{FN}live",
    "data.aws_lambda_function.other.arn": f"{FN}other",
    "aws_sfn_state_machine.flow.arn": f"{STATES}stateMachine:flow",
    "aws_sfn_activity.desk.id": f"{STATES}activity:desk",
    "data.aws_region.current.name": "us-east-1",
    "data.aws_caller_identity.me.account_id": "111111111111",
    '"arn:${data.aws_partition.p.partition}:x"': "arn:aws:x",
    "aws_dynamodb_table.orders.name": "${aws_dynamodb_table.orders.name}",
    "module.queue.url": "${module.queue.url}",
    "var.unset": "${var.unset}",
    '"s3://${aws_s3_bucket.b.id}/x"': "s3://${aws_s3_bucket.b.id}/x",
    "var.unset == 1 ? 2 : 3": "${var.unset == 1 ? 2 : 3}",
    "bcrypt(var.plain)": "${bcrypt(var.plain)}",
    "aws_subnet.all[*].id": "${aws_subnet.all[*].id}",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_evaluated(expression: str) -> None:
    """An expression has its value; what only a deployment knows is a stand-in."""
    document = asl.load(written(expression), name="main.tf")
    assert result(document) == EXPRESSIONS[expression]
    assert type(result(document)) is type(EXPRESSIONS[expression])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_in_heredocs(expression: str) -> None:
    """In a heredoc the same value stands as text."""
    expected = EXPRESSIONS[expression]
    if type(expected) in (dict, list) or expected is None or '"' in str(expected):
        return
    text = f"""{AROUND}
resource "aws_sfn_state_machine" "flow" {{
  definition = <<-EOT
    {{"StartAt": "A", "States": {{"A": {{"Type": "Pass", "Result": "${{{expression}}}",
      "End": true}}}}}}
  EOT
}}
"""
    shown = expected if type(expected) is str else json.dumps(expected)
    assert result(asl.load(text, name="main.tf")) == shown


DEFINITIONS = {
    "heredoc": '<<EOF\n{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}\nEOF',
    "flush heredoc": (
        '<<-EOF\n  {"StartAt": "A",\n   "States": {"A": {"Type": "Pass", "End": true}}}\n  EOF'
    ),
    "quoted": json.dumps(json.dumps(MACHINE)),
    "jsonencode": f"jsonencode({json.dumps(MACHINE)})",
    "file": 'file("flow.json")',
    "file of the module": 'file("${path.module}/flow.json")',
    "templatefile": 'templatefile("./flow.tftpl", { type = "Pass", end = true })',
    "yaml": 'jsonencode(yamldecode(templatefile("flow.yaml", { type = "Pass" })))',
    "decoded": 'jsonencode(jsondecode(file("flow.json")))',
    "local": "local.flow",
    "data source": "data.template_file.flow.rendered",
    "data source of Terraform 0.11": '"${data.template_file.old.rendered}"',
    "choice": 'true ? local.flow : "no"',
    "trimmed": 'trimspace(file("flow.json"))',
    "variable": "var.flow",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.json").write_text(json.dumps(MACHINE, indent=1))
    text = json.dumps(MACHINE, indent=1).replace('"Pass"', '"${type}"').replace("true", "${end}")
    (tmp_path / "flow.tftpl").write_text(text)
    (tmp_path / "flow.yaml").write_text(
        "StartAt: A\nStates:\n  A:\n    Type: ${type}\n    End: true\n"
    )
    more = f"""
    locals {{ flow = jsonencode({json.dumps(MACHINE)}) }}
    variable "flow" {{ default = {json.dumps(json.dumps(MACHINE))} }}
    data "template_file" "flow" {{
      template = file("${{path.module}}/flow.tftpl")
      vars     = {{ type = "Pass", end = true }}
    }}
    data "template_file" "old" {{
      template = "${{file("${{path.module}}/flow.tftpl")}}"
      vars {{
        type = "Pass"
        end  = true
      }}
    }}
    """
    (tmp_path / "others.tf").write_text(dedent(more))
    return tmp_path


def main(folder: Path, definition: str) -> Path:
    file = folder / "main.tf"
    file.write_text(
        f'resource "aws_sfn_state_machine" "flow" {{\n  definition = {definition}\n}}\n'
    )
    return file


@pytest.mark.parametrize("case", DEFINITIONS)
def test_forms_of_a_definition(case: str, folder: Path) -> None:
    """A definition may be a text, a value, a file, a template, or the name of one of them."""
    document = asl.load(main(folder, DEFINITIONS[case]))
    assert document.value == MACHINE
    assert document.name == "flow"


@pytest.mark.parametrize(
    ("case", "file", "line"),
    [
        ("heredoc", "main.tf", 3),
        ("flush heredoc", "main.tf", 4),
        ("quoted", "main.tf", 2),
        ("jsonencode", "main.tf", 2),
        ("file", "flow.json", 6),
        ("templatefile", "flow.tftpl", 6),
        ("yaml", "flow.yaml", 5),
        ("decoded", "flow.json", 6),
        ("local", "others.tf", 2),
        ("data source", "flow.tftpl", 6),
    ],
)
def test_positions_in_the_file_of_a_definition(
    case: str, file: str, line: int, folder: Path
) -> None:
    """A finding points to the characters that the author wrote."""
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("End", "Edn"))
    definition = DEFINITIONS[case].replace("End", "Edn")
    (warning,) = asl.check(asl.load(main(folder, definition))).warnings
    assert (warning.code, warning.line) == ("V-TOP-09", line)
    assert warning.file == str(folder / file)
    text = (folder / file).read_text().split("\n")[line - 1]
    assert text[(warning.column or 0) - 1 :].lstrip('\\"').startswith("Edn")


def test_values_of_variables() -> None:
    """A value may be given for a variable, a local value, or whatever a deployment knows."""
    text = written('[var.unset, var.count, var.list, local.one, module.q.url, "${var.plain}"]')
    values = {
        "unset": "u",
        "var.count": "7",
        "list": '["x"]',
        "local.one": 2,
        "module.q.url": "http",
        "plain": "p",
    }
    document = asl.load(text, name="m.tf", variables=values)
    assert result(document) == ["u", 7, ["x"], 2, "http", "p"]
    assert asl.check(document).ok
    assert document.findings == ()


def test_value_of_another_type_is_an_error() -> None:
    """The error stands where the variable is used."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(written("var.count"), name="m.tf", variables={"count": "many"})
    (error,) = refusal.value.report
    assert (error.code, error.hint) == ("READ-16", "it is declared as a number")


def test_files_of_a_folder_are_one_module(tmp_path: Path) -> None:
    """Variables, local values and tfvars of other files are found; the first file wins."""
    (tmp_path / "main.tf").write_text(written("[var.plain, var.elsewhere, local.far, var.auto]"))
    (tmp_path / "variables.tf").write_text(
        'variable "elsewhere" { default = "e" }\nvariable "plain" { default = "second" }\n'
        'variable "auto" {}\nlocals { far = { a = [var.elsewhere] } }\n'
    )
    (tmp_path / "x.auto.tfvars").write_text('auto = "from tfvars"\n')
    document = asl.load(tmp_path / "main.tf")
    assert result(document) == ["text", "e", {"a": ["e"]}, "from tfvars"]


def test_fileset_makes_state_machines(tmp_path: Path) -> None:
    """One for each file of a folder; a definition that it reads is checked as used there."""
    (tmp_path / "flows").mkdir()
    for name in ("b", "a"):
        text = json.dumps(MACHINE).replace("true", 'true, "Result": "${self}"')
        (tmp_path / "flows" / f"{name}.asl.json").write_text(text)
    (tmp_path / "main.tf").write_text("""
resource "aws_sfn_state_machine" "flow" {
  for_each   = fileset("${path.module}/flows", "*.asl.json")
  definition = templatefile("${path.module}/flows/${each.value}", { self = each.key })
}
""")
    found = load_each(tmp_path / "main.tf")
    names = [each.resource for each in found if isinstance(each, asl.Document)]
    assert names == ['flow["a.asl.json"]', 'flow["b.asl.json"]']
    document = asl.load(tmp_path / "main.tf", resource=names[1])
    assert result(document) == "b.asl.json"


@pytest.mark.parametrize("over", ['jsondecode(file("gone.json"))', 'fileset("flows", "../*")'])
def test_fault_in_for_each_leaves_the_other_state_machines(tmp_path: Path, over: str) -> None:
    """Only the state machine of the block cannot be read."""
    block = 'resource "aws_sfn_state_machine" "many" {\n  for_each = OVER\n  definition = "{}"\n}\n'
    (tmp_path / "main.tf").write_text(written("1", block.replace("OVER", over)))
    assert result(asl.load(tmp_path / "main.tf", resource="flow")) == 1
    with pytest.raises(asl.InvalidDocument, match=r"gone\.json|fileset"):
        asl.load(tmp_path / "main.tf", resource="many")


def test_fileexists(tmp_path: Path) -> None:
    """`fileexists` looks beside the file that asks."""
    (tmp_path / "main.tf").write_text(written('fileexists("main.tf")'))
    assert result(asl.load(tmp_path / "main.tf")) is True


def test_undeclared_variable_is_a_warning() -> None:
    """A misspelt variable is found."""
    document = asl.load(written("[var.nowhere, local.nothing]"), name="m.tf")
    found = [(each.code, each.message) for each in asl.check(document).warnings]
    assert found == [
        ("READ-17", "no file of the folder declares var.nowhere"),
        ("READ-17", "no file of the folder declares local.nothing"),
    ]


def test_literal_placeholders_are_no_warning() -> None:
    """Terraform writes $${ for a text that stays, so there is nothing to warn about."""
    document = asl.load(written('"$${Name}"'), name="m.tf")
    assert result(document) == "${Name}"
    assert asl.check(document).of(Severity.WARNING) == ()


def test_module_with_a_definition() -> None:
    """The well-known module for state machines takes the definition as an argument."""
    text = f'module "flow" {{\n  source = "x"\n  definition = jsonencode({json.dumps(MACHINE)})\n}}'
    document = asl.load(text, name="m.tf")
    assert (document.value, document.name) == (MACHINE, "module.flow")


def test_resource_is_a_name_or_an_address() -> None:
    """By its name, or by its address."""
    text = f"""
    resource "aws_sfn_state_machine" "a" {{ definition = jsonencode({json.dumps(MACHINE)}) }}
    resource "aws_sfn_state_machine" "b" {{ definition = jsonencode({{}}) }}
    """
    for name in ("a", "aws_sfn_state_machine.a"):
        assert asl.load(text, name="m.tf", resource=name).value == MACHINE
    with pytest.raises(
        asl.AslError, match=r"m\.tf has 2 state machines: name one with --resource \(a, b\)"
    ):
        asl.load(text, name="m.tf")


def test_terraform_text_without_a_file_name() -> None:
    """Text on standard input needs no name that ends in .tf."""
    assert result(asl.load(written("1").lstrip())) == 1


REFUSED = {
    "no definition": ('role_arn = "x"', "READ-14", "flow has no definition"),
    "itself": ("definition = local.me", "READ-16", "the definition refers to itself"),
    "circle": ("definition = jsonencode({ a = local.x })", "READ-16", "local.x refers to itself"),
    "bucket": ('definition = file("../x.json")', "READ-14", "the file '../x.json' is outside"),
    "missing": ('definition = file("x.json")', "READ-14", "cannot read"),
    "no text": ("definition = [1]", "READ-16", "a string is expected here"),
    "member": ("definition = jsonencode({}.a)", "READ-16", "there is no member 'a'"),
    "item": ("definition = jsonencode([1][3])", "READ-16", "there is no member 3"),
    "sum": ('definition = jsonencode({ a = 1 + "x" })', "READ-16", "'+' needs two numbers"),
    "zero": ("definition = jsonencode({ a = 1 / 0 })", "READ-16", "'/' needs two numbers"),
    "test": (
        "definition = jsonencode({ a = 1 ? 2 : 3 })",
        "READ-16",
        "a condition must be true or",
    ),
    "function": (
        "definition = jsonencode({ a = lower(1) })",
        "READ-16",
        "the arguments of lower() are invalid",
    ),
    "arguments": (
        "definition = jsonencode({ a = merge(1) })",
        "READ-16",
        "the arguments of merge() are invalid",
    ),
    "loop": ("definition = jsonencode([for a in 1 : a])", "READ-16", "a list or an object is"),
    "outside": ('definition = fileexists("../x")', "READ-14", "the file '../x' is outside"),
    "prefix": (
        'definition = cidrhost("10.0.0.0", 1)',
        "READ-16",
        "the arguments of cidrhost() are invalid",
    ),
    "host": (
        'definition = cidrhost("10.0.0.0/30", 4)',
        "READ-16",
        "the arguments of cidrhost() are invalid",
    ),
    "mask": (
        'definition = cidrnetmask("fd00::/8")',
        "READ-16",
        "the arguments of cidrnetmask() are invalid",
    ),
    "subnet": (
        'definition = cidrsubnet("10.0.0.0/30", 3, 0)',
        "READ-16",
        "the arguments of cidrsubnet() are invalid",
    ),
    "subnets": (
        'definition = cidrsubnets("10.0.0.0/30", 1, 1, 1)',
        "READ-16",
        "the arguments of cidrsubnets() are",
    ),
    "namespace": (
        'definition = uuidv5("what", "x")',
        "READ-16",
        "the arguments of uuidv5() are invalid",
    ),
    "template": (
        "definition = templatestring(1, {})",
        "READ-16",
        "the arguments of templatestring() are invalid",
    ),
    "json": ('definition = "{"', "READ-01", "the text ends inside '{'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_expressions_are_refused(case: str, tmp_path: Path) -> None:
    """Every error has a rule, a place and a message."""
    line, code, message = REFUSED[case]
    file = tmp_path / "main.tf"
    file.write_text(
        "locals {\n  me = local.me\n  x = [local.y]\n  y = local.x\n}\n"
        f'resource "aws_sfn_state_machine" "flow" {{\n  {line}\n}}\n'
    )
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(file)
    error = refusal.value.report.errors[0]
    assert error.code == code
    assert error.message.startswith(message)
    assert error.line in (2, 3, 4, 6, 7)


SYNTAX = {
    'a = "open': (1, 10, "the string is not closed"),
    "a = <<EOF\nx\n": (1, 5, "the heredoc is not closed"),
    "a = [1, 2": (1, 10, "',' or ']' is expected, found the end of the line"),
    "a = {\n b = 1 c = 2\n}": (2, 8, "',' or the end of the line is expected, found 'c'"),
    "a = ": (1, 5, "a value is expected, found the end of the line"),
    "a = 1 +": (1, 8, "a value is expected, found the end of the line"),
    "a = 1 2": (1, 7, "the end of the line is expected, found '2'"),
    "a {": (1, 4, "a block is not closed"),
    "a = 1\na = 2": (2, 1, "'a' is given twice"),
    "= 1": (1, 1, "the name of an attribute or a block is expected, found '='"),
    'a = "${1"': (1, 9, "'}' is expected, found '\"'"),
    'a = "%{ if true }x"': (1, 20, "the string is not closed"),
    "a = <<E\n%{ if true }x\nE": (3, 1, "%{ if } is not closed"),
    'a = "%{ what }"': (1, 6, "there is no directive 'what' here"),
    r'a = "\q"': (1, 6, r"\q is not an escape"),
    "a = 1e999": (1, 5, "1e999 is too large for a number"),
    "a = b.": (1, 7, "an attribute is expected, found the end of the line"),
    "a = [for x of y : x]": (1, 12, "'in' is expected, found 'of'"),
    "a = /* never closed": (1, 5, "a value is expected, found '/'"),
}


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax_error_has_its_position(text: str) -> None:
    """What is not HCL is an error where it goes wrong."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(text.encode(), name="main.tf")
    (error,) = refusal.value.report
    assert (error.line, error.column, error.message) == SYNTAX[text]
    assert error.code == "READ-01"


def test_for_may_stand_on_the_next_line() -> None:
    """A line break or a comment may come before the word, in braces and in brackets."""
    loop = """{
      # by name
      for name in var.names : name => upper(name)
      if name != "b"
    }"""
    assert result(asl.load(written(loop).encode(), name="main.tf")) == {"a": "A"}
    loop = """[
      for name in var.names :
      name
    ]"""
    assert result(asl.load(written(loop).encode(), name="main.tf")) == ["b", "a"]


def test_key_in_parentheses_is_computed() -> None:
    """The value of a variable is the key, also that of a loop."""
    loop = "[for name in var.names : { (name) = 1, name = 2 }]"
    found = result(asl.load(written(loop).encode(), name="main.tf"))
    assert found == [{"b": 1, "name": 2}, {"a": 1, "name": 2}]


TYPED = """
variable "queues" {
  type = map(object({
    delay = optional(number, 5)
    arn   = optional(string)
    tags  = optional(list(object({ key = string, set = optional(bool, true) })), [{ key = 1 }])
    pair  = tuple([string, bool])
  }))
  default = {
    a = { delay = "3", pair = [1, "true"], other = 1 }
    b = { delay = null, tags = [], pair = ["x", false] }
  }
}
"""


def test_value_of_a_variable_has_its_declared_type() -> None:
    """Optional attributes have their defaults, undeclared ones are dropped, scalars converted."""
    queues = {
        "a": {"delay": 3, "arn": None, "tags": [{"key": "1", "set": True}], "pair": ["1", True]},
        "b": {"delay": 5, "arn": None, "tags": [], "pair": ["x", False]},
    }
    text = written("var.queues", TYPED).encode()
    assert result(asl.load(text, name="main.tf")) == queues
    given = {"queues": '{"c": {"pair": [true, "0"]}}'}
    with pytest.raises(asl.InvalidDocument, match="the value '0' of a variable is not of type"):
        asl.load(text, name="main.tf", variables=given)
    given = {"queues": '{"c": {"tags": [], "pair": [true, "false"]}}'}
    found = result(asl.load(text, name="main.tf", variables=given))
    assert found == {"c": {"delay": 5, "arn": None, "tags": [], "pair": ["true", False]}}


def test_declared_type_of_a_value_in_tfvars(tmp_path: Path) -> None:
    """The default of an attribute comes from the file of the variable."""
    (tmp_path / "variables.tf").write_text(TYPED)
    (tmp_path / "terraform.tfvars").write_text('queues = { d = { pair = ["y", true] } }')
    (tmp_path / "main.tf").write_text(written("var.queues.d"))
    tags = [{"key": "1", "set": True}]
    assert result(asl.load(tmp_path / "main.tf")) == {
        "delay": 5, "arn": None, "tags": tags, "pair": ["y", True],
    }  # fmt: skip


REPEATED = """
variable "unset" { type = map(string) }
resource "aws_sfn_state_machine" "flow" {
  for_each   = { eu = 5, us = 7 }
  definition = jsonencode({
    StartAt = "A"
    States  = { A = { Type = "Wait", Seconds = each.value, Comment = each.key, End = true } }
  })
}
resource "aws_sfn_state_machine" "pair" {
  count      = 2
  definition = jsonencode({
    StartAt = "A", States = { A = { Type = "Wait", Seconds = count.index, End = true } }
  })
}
resource "aws_sfn_state_machine" "single" {
  count      = var.enabled ? 1 : 0
  definition = jsonencode({ StartAt = "A", States = { A = { Type = "Succeed" } } })
}
resource "aws_sfn_state_machine" "unknown" {
  for_each   = var.unset
  definition = jsonencode({
    StartAt = "A"
    States  = { A = { Type = "Wait", Seconds = each.value.delay, End = true } }
  })
}
"""


def test_for_each_and_count_make_several_state_machines() -> None:
    """Each instance has its own values; one of unknown number is read once."""
    found = load_each(REPEATED.encode(), name="main.tf")
    assert [each.resource for each in found if isinstance(each, asl.Document)] == [
        'flow["eu"]', 'flow["us"]', "pair[0]", "pair[1]", "single", "unknown",
    ]  # fmt: skip
    seconds = [
        asl.load(REPEATED.encode(), name="main.tf", resource=name).value["States"]["A"]["Seconds"]
        for name in ('flow["us"]', 'aws_sfn_state_machine.flow["eu"]', "pair[1]", "unknown")
    ]
    assert seconds == [7, 5, 1, "${each.value.delay}"]
    unknown = asl.load(REPEATED.encode(), name="main.tf", resource="unknown")
    assert {each.code for each in asl.check(unknown)} == {"READ-12"}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("var.unset", "the definition is known only after deployment: ${var.unset}"),
        ("jsonencode(var.unset)", "the definition is known only after deployment: ${var.unset}"),
        ("module.x.definition", "the definition is known only after deployment: ${module.x.defin"),
        ('file("${var.unset}/x.json")', "the path '${var.unset}/x.json' is known only after depl"),
    ],
)
def test_definition_known_only_after_deployment(definition: str, message: str) -> None:
    """It is information that names what is missing."""
    text = f'{AROUND}\nresource "aws_sfn_state_machine" "flow" {{ definition = {definition} }}'
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(text.encode(), name="main.tf")
    (found,) = refusal.value.report
    assert (found.code, found.severity) == ("READ-18", Severity.INFO)
    assert found.message.startswith(message)


def test_text_functions_pass_stand_ins_on() -> None:
    """What is put into a text from elsewhere leaves the rest of it known."""
    found = result(asl.load(written('join("/", ["a", var.unset])').encode(), name="main.tf"))
    assert found == "a/${var.unset}"
    text = """
    resource "aws_sfn_state_machine" "flow" {
      definition = replace(jsonencode({
        StartAt = "A", States = { A = { Type = "Task", Resource = "FN", End = true } }
      }), "FN", module.fn.arn)
    }
    """
    document = asl.load(text.encode(), name="main.tf")
    assert document.value["States"]["A"]["Resource"] == "${module.fn.arn}"
    assert {each.code for each in asl.check(document, profile="aws")} == {"READ-12"}


def test_files_of_the_repository_are_read(tmp_path: Path) -> None:
    """Where the template is in a repository, any file of that is as near as its own folder."""
    folder = tmp_path / "repository" / "infra"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    for place in (tmp_path, tmp_path / "repository"):
        (place / "flow.json").write_text(json.dumps(MACHINE))
    file = folder / "main.tf"
    line = 'resource "aws_sfn_state_machine" "flow" { definition = file("${path.module}/%s") }'
    file.write_text(line % "../flow.json")
    assert asl.load(file).value == MACHINE
    file.write_text(line % "../../flow.json")
    with pytest.raises(asl.InvalidDocument, match="outside the repository"):
        asl.load(file)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('join(",", var.list)', "${var.list}"),
        ('{ for k, v in module.fns : k => v.arn }["one"]',
         '${( for k, v in module.fns : k => v.arn )["one"]}'),
    ],
)  # fmt: skip
def test_unknown_expression_is_one_placeholder(expression: str, text: str) -> None:
    """Also where it has braces or quotes itself, within a JSON text, too."""
    assert result(asl.load(written(expression).encode(), name="main.tf")) == text
    state = '{"Type": "Task", "Resource": "${' + expression + '}", "End": true}'
    machine = '{"StartAt": "A", "States": {"A": ' + state + "}}"
    block = f'resource "aws_sfn_state_machine" "flow" {{\n  definition = <<E\n{machine}\nE\n}}'
    document = asl.load(f"{AROUND}\n{block}".encode(), name="main.tf")
    assert {each.code for each in asl.check(document, profile="aws")} == {"READ-12"}


RESOURCES = """
variable "prefix" { default = "shop" }
variable "unknown" { type = string }
resource "aws_lambda_function" "charge" {
  function_name = "${var.prefix}-charge"
  timeout       = 30
}
resource "aws_lambda_function" "other" { function_name = "${var.unknown}-other" }
resource "aws_sqs_queue" "work" { name = local.work }
resource "aws_sqs_queue" "each" {
  for_each = toset(["a"])
  name     = "q-${each.key}"
}
locals { work = "${var.prefix}-work" }
resource "aws_dynamodb_table" "orders" { name = "orders" }
resource "aws_sns_topic" "people" { display_name = "People" }
"""
SQS = "https://sqs.us-east-1.amazonaws.com/111111111111"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (
            "aws_lambda_function.charge.arn",
            "arn:aws:lambda:us-east-1:111111111111:function:shop-charge",
        ),
        ("aws_lambda_function.charge.function_name", "shop-charge"),
        ("aws_lambda_function.charge.timeout", 30),
        ("aws_lambda_function.other.arn", "arn:aws:lambda:us-east-1:111111111111:function:other"),
        ("aws_sqs_queue.work.url", f"{SQS}/shop-work"),
        ('aws_sqs_queue.each["a"].id', f"{SQS}/q-a"),
        ("aws_dynamodb_table.orders.id", "orders"),
        ("aws_dynamodb_table.orders.arn", "arn:aws:dynamodb:us-east-1:111111111111:table/orders"),
        ("aws_dynamodb_table.orders.stream_arn", "${aws_dynamodb_table.orders.stream_arn}"),
        ("aws_sns_topic.people.arn", "${aws_sns_topic.people.arn}"),
    ],
)
def test_attributes_of_resources(expression: str, value: Any) -> None:
    """Arguments and names of blocks are known before a deployment, and what follows from them."""
    assert result(asl.load(written(expression, RESOURCES))) == value


def test_name_version_and_aliases_of_a_state_machine() -> None:
    text = """
variable "prefix" { default = "shop" }
resource "aws_sfn_state_machine" "flow" {
  for_each = toset(["a"])
  name = "${var.prefix}-${each.key}"
  publish = true
  definition = jsonencode({
    StartAt = "A"
    States = { A = { Type = "Pass", Result = aws_sfn_state_machine.flow["a"].arn, End = true } }
  })
}
resource "aws_sfn_alias" "live" {
  name = "live"
  routing_configuration {
    state_machine_version_arn = aws_sfn_state_machine.flow["a"].state_machine_version_arn
    weight = 100
  }
}
"""
    document = asl.load(text)
    assert (document.deployed, document.qualifiers) == ("shop-a", ("1", "live"))
    assert result(document) == "arn:aws:states:us-east-1:111111111111:stateMachine:shop-a"
