"""State machines of serverless.yml: variables, functions of CloudFormation, files."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.core.source import Limits
from asl.sources import load

pytestmark = pytest.mark.quick

FN = "arn:aws:lambda:us-east-1:111111111111:function:"
HEAD = """\
service: shop
provider: {name: aws, stage: "${opt:stage, 'dev'}", region: eu-west-1}
custom:
  prefix: ${self:service}-${self:provider.stage}
  wait: {dev: 5, prod: 60}
  list: [a, '${self:service}']
  again: ${self:custom.again}
  a0: [1, 2]
functions:
  charge-card: {handler: a.b}
resources:
  Resources: {Orders: {Type: AWS::DynamoDB::Table}}
"""


def written(result: str) -> str:
    return f"""{HEAD}
stepFunctions:
  stateMachines:
    orders:
      name: Orders
      definition:
        StartAt: A
        States:
          A:
            Type: Pass
            Result: {result}
            End: true
"""


def result(document: Document) -> Any:
    return document.value["States"]["A"]["Result"]


VALUES: dict[str, Any] = {
    "plain": "plain",
    "${self:service}": "shop",
    "'${self:custom.prefix}-${sls:stage}'": "shop-dev-dev",
    "${self:custom.wait.${self:provider.stage}}": 5,
    "${self:custom.wait}": {"dev": 5, "prod": 60},
    "${self:custom.list.1}": "shop",
    "${self:custom.nope, 'else'}": "else",
    "${strToBool(${self:custom.nope, 'false'})}": False,
    "${strToBool(1)}": True,
    "${opt:none, self:custom.nope, 7}": 7,
    "${env:HOME, true}": True,
    '"${aws:region} ${aws:accountId}"': "eu-west-1 111111111111",
    '"#{AWS::Region}"': "eu-west-1",
    '!Sub "${AWS::Region}/${self:service}/${!kept}"': "eu-west-1/shop/${kept}",
    "!GetAtt charge-card.Arn": f"{FN}charge-card",
    "!GetAtt ChargeDashcardLambdaFunction.Arn": f"{FN}charge-card",
    "{ 'Fn::GetAtt': [charge-card, Arn] }": f"{FN}charge-card",
    "!Ref Orders": "${Orders}",
    "${ssm:/a/b}": "${ssm:/a/b}",
}


@pytest.mark.parametrize("value", VALUES)
def test_variables_are_evaluated(value: str) -> None:
    """What needs no deployment has its value; the rest stays as it is written."""
    assert result(asl.load(written(value))) == VALUES[value]


def test_values_override_variables() -> None:
    """They go by the name that the variable has in the file."""
    document = asl.load(written("${self:custom.wait.${self:provider.stage}}"), variables={
        "opt:stage": "prod"
    })  # fmt: skip
    assert result(document) == 60
    assert result(asl.load(written("${ssm:/a/b}"), variables={"ssm:/a/b": "x"})) == "x"


@pytest.mark.parametrize(
    ("value", "message", "place"),
    [
        ("${self:custom.nope}", "the file has no 'custom.nope'", (23, 21)),
        ("${self:custom.again}", "refers to itself", (7, 10)),
    ],
)
def test_invalid_variables_are_refused(value: str, message: str, place: tuple[int, int]) -> None:
    """The refusal points to what was written."""
    with pytest.raises(asl.InvalidDocument, match=message) as refusal:
        asl.load(written(value))
    (found,) = refusal.value.report
    assert (found.line, found.column) == place


def test_state_machines_and_definitions_in_files(tmp_path: Path) -> None:
    """Places are those in the files; the state machines are named by the first file."""
    (tmp_path / "serverless.yml").write_text(
        "service: shop\nstepFunctions:\n  stateMachines: ${file(machines.yml):all}\n"
    )
    (tmp_path / "machines.yml").write_text(
        "all:\n  one: ${file(one.yml)}\n  two: {definition: '${file(two.asl.json)}'}\n"
    )
    (tmp_path / "one.yml").write_text(
        "name: One\ndefinition:\n  StartAt: A\n  States:\n    A: {Type: Pass, Next: Bb}\n"
        "    B: {Type: Succeed}\n"
    )
    (tmp_path / "two.asl.json").write_text(
        '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "${self:service}",'
        ' "End": true}}}'
    )
    path = tmp_path / "serverless.yml"
    assert result(asl.load(path, resource="two")) == "shop"
    found = asl.check(asl.load(path, resource="One")).errors[0]
    assert (found.code, found.line, found.column) == ("V-ST-03", 5, 27)
    assert str(found).partition(":")[0].endswith("one.yml")


def test_size_of_evaluated_values_is_limited() -> None:
    """Values are counted while they are put together."""
    doubled = "".join(
        f"  a{n}: ['${{self:custom.a{n - 1}}}', '${{self:custom.a{n - 1}}}']\n"
        for n in range(1, 19)
    )
    text = written("${self:custom.a18}").replace("functions:", f"{doubled}functions:")
    with pytest.raises(asl.InvalidDocument, match="READ-04"):
        load(text, limits=Limits(max_values=10_000))


def test_file_without_state_machines_is_an_error() -> None:
    """It is no document either."""
    with pytest.raises(asl.InvalidDocument, match="the template defines no state machine"):
        asl.load("service: x\nstepFunctions:\n  validate: true\n")


def test_files_are_yaml_1_2_with_merge_keys() -> None:
    """The framework reads `Yes` and `on` as texts, and follows merge keys."""
    text = written("Yes").replace("Type: Pass", "Type: Pass\n            <<: { Comment: off }")
    document = asl.load(text)
    assert result(document) == "Yes"
    assert document.value["States"]["A"]["Comment"] == "off"


def test_references_to_resources_of_the_framework(tmp_path: Path) -> None:
    """Functions of another file, activities and state machines are known by their resources."""
    (tmp_path / "functions.yml").write_text("create-order: { handler: app.create }\n")
    (tmp_path / "serverless.yml").write_text(
        "functions:\n  - ${file(functions.yml)}\n  - ${file(missing.yml)}\n"
        "stepFunctions:\n  activities: [myTask]\n  stateMachines:\n    one:\n      definition:\n"
        "        StartAt: A\n        States:\n"
        "          A:\n            Type: Task\n            Next: B\n"
        "            Resource: !GetAtt CreateDashorderLambdaFunction.Arn\n"
        "          B: { Type: Task, Resource: !Ref MyTaskStepFunctionsActivity, End: true }\n"
        "    two:\n      definition:\n        StartAt: A\n        States:\n"
        "          A:\n            Type: Task\n            End: true\n"
        "            Resource: arn:aws:states:::states:startExecution\n"
        "            Parameters: { StateMachineArn: !Ref OneStepFunctionsStateMachine }\n"
    )
    states = asl.load(tmp_path / "serverless.yml", resource="one").value["States"]
    prefix = "arn:aws:lambda:us-east-1:111111111111:function:"
    assert states["A"]["Resource"] == f"{prefix}create-order"
    assert states["B"]["Resource"] == "arn:aws:states:us-east-1:111111111111:activity:myTask"
    states = asl.load(tmp_path / "serverless.yml", resource="two").value["States"]
    machine = "arn:aws:states:us-east-1:111111111111:stateMachine:one"
    assert states["A"]["Parameters"]["StateMachineArn"] == machine


def test_missing_file_has_a_stand_in(tmp_path: Path) -> None:
    """A program or a missing file has a stand-in, and a default applies before."""
    file = tmp_path / "serverless.yml"
    file.write_text(written("${file(values.js):size}"))
    document = asl.load(file)
    assert result(document) == "${file(values.js):size}"
    assert {each.code for each in asl.check(document)} == {"READ-12"}
    file.write_text(
        written("${self:custom.secrets.key}-${self:custom.remote.a.b}").replace(
            "custom:\n", "custom:\n  secrets: ${file(missing.yml)}\n  remote: ${ssm:/remote}\n"
        )
    )
    document = asl.load(file)
    assert result(document) == "${self:custom.secrets.key}-${self:custom.remote.a.b}"
    assert {each.code for each in asl.check(document)} == {"READ-12"}
    file.write_text(written("${file(missing.yml):size, 5}"))
    assert result(asl.load(file)) == 5


def test_name_of_a_function_as_resource_has_a_hint(tmp_path: Path) -> None:
    """The framework puts no ARN in its place: the hint says how to refer to it."""
    text = written("x").replace("Type: Pass", "Type: Task\n            Resource: charge-card")
    document = load(text.replace("            Result: x\n", "").encode(), name="serverless.yml")
    (found,) = asl.check(document, profile="aws").errors
    hint = "write Fn::GetAtt: [ChargeDashcardLambdaFunction, Arn]"
    assert (found.code, found.hint) == ("V-TASK-02", hint)


@pytest.mark.parametrize(
    ("section", "given", "value"),
    [
        ("params: {default: {topic: 'all-${sls:stage}'}, prod: {topic: p}}", {}, "all-dev"),
        ("params: {default: {topic: 'all-${sls:stage}'}, prod: {topic: p}}", "prod", "p"),
        ("stages: {default: {params: {topic: d}}, prod: {params: {}}}", "prod", "d"),
        ("params: {default: {}}", {}, "${param:topic}"),
    ],
)
def test_parameters_of_a_stage(section: str, given: Any, value: str) -> None:
    variables = {"opt:stage": given} if given else {}
    text = f"{section}\n{written('${param:topic}')}"
    assert result(asl.load(text, variables=variables)) == value


@pytest.mark.parametrize(
    ("stage", "value"),
    [
        ("${opt:stage, 'test'}", "test"),
        ("${opt:stage}", "dev"),
        ("${opt:stage, self:custom.prefix}", "dev"),
        ("${env:STAGE}", "dev"),
    ],
)
def test_stage_of_the_provider(stage: str, value: str) -> None:
    text = written("${sls:stage}").replace("${opt:stage, 'dev'}", stage, 1)
    assert result(asl.load(text)) == value


def test_program_of_one_state_machine_leaves_the_others(tmp_path: Path) -> None:
    """Only the state machine of the program cannot be read."""
    file = tmp_path / "serverless.yml"
    file.write_text(written("1") + "    coded: ${file(machines.js):coded}\n")
    assert result(asl.load(file, resource="orders")) == 1
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(file, resource="coded")
    assert [each.code for each in refusal.value.report] == ["READ-18"]


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("id: OrderFlow\n      name: Orders-${sls:stage}", ["OrderFlow", "Orders-dev"]),
        ("id: [1]\n      name: Orders", ["OrdersStepFunctionsStateMachine", "Orders"]),
    ],
)
def test_other_names_of_a_state_machine(tmp_path: Path, head: str, names: list[str]) -> None:
    """A state machine is found by its logical name and its evaluated name."""
    file = tmp_path / "serverless.yml"
    text = written("1").replace("name: Orders", head)
    other = "    other: {definition: {StartAt: A, States: {A: {Type: Succeed}}}}\n"
    file.write_text(text + other)
    assert asl.load(file, resource="other").value["StartAt"] == "A"
    assert [result(asl.load(file, resource=name)) for name in names] == [1] * len(names)


@pytest.mark.parametrize("functions", ["1", "[1]", "text", "null"])
def test_section_of_another_type(functions: str) -> None:
    """A section of functions that is no object declares none."""
    text = written("1").replace("\n  charge-card: {handler: a.b}", f" {functions}")
    assert result(load(text.encode(), name="serverless.yml")) == 1


def test_name_that_cannot_be_evaluated(tmp_path: Path) -> None:
    """The fault concerns only the state machine of the name."""
    file = tmp_path / "serverless.yml"
    other = "    other: {definition: {StartAt: A, States: {A: {Type: Succeed}}}}\n"
    file.write_text(written("1").replace("name: Orders", "name: '${self:custom.nope}'") + other)
    assert asl.load(file, resource="other").value["StartAt"] == "A"
    with pytest.raises(asl.InvalidDocument, match=r"no 'custom\.nope'"):
        asl.load(file, resource="orders")
