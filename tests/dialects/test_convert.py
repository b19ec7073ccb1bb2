"""Conversions between languages: the front door, the command line, and what is lost."""

import json
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.core.codes import all_codes
from asl.core.diagnostics import Severity
from asl.core.document import Document
from asl.core.values import Json
from asl.dialects import load, registry
from asl.dialects.base import Dialect, WriterResult
from asl.dialects.registry import dialect
from tests.dialects.features import FEATURES
from tests.dialects.law import convert_and_back
from tests.matrix_page import WRITTEN

FLOW = """\
assistants:
  - {id: writer, system_prompt: You write., model: m}
states:
  - id: draft
    assistant_id: writer
    task: |
      Write about {{topic}}.
      It's "short".
    retry_policy: {initial_interval: 0.5}
    next:
      condition: {expression: "score >= 7 or status == 'ok'", then: end, otherwise: draft}
"""

REFUND = {
    "StartAt": "Classify",
    "States": {
        "Classify": {
            "Type": "Task",
            "Agent": "Classifier",
            "Parameters": {"text.$": "$.message"},
            "ResultPath": "$.c",
            "Next": "Route",
        },
        "Route": {
            "Type": "Choice",
            "Choices": [
                {
                    "And": [
                        {"Variable": "$.c.intent", "StringEquals": "refund"},
                        {"Variable": "$.c.amount", "NumericGreaterThan": 100},
                    ],
                    "Next": "Human",
                }
            ],
            "Default": "Reply",
        },
        "Human": {
            "Type": "Approval",
            "Prompt": "Refund?",
            "Options": ["approve", "reject"],
            "Choices": [{"Variable": "$.approval", "StringEquals": "approve", "Next": "Refund"}],
            "Default": "Reply",
        },
        "Refund": {"Type": "Task", "Agent": "Refunds", "End": True},
        "Reply": {"Type": "Task", "Agent": "Replier", "End": True},
    },
}


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW, encoding="utf-8")
    return path


def codes(conversion: asl.Conversion) -> set[str]:
    return {each.code for each in conversion.losses}


def test_a_language_is_known_by_its_shape(flow: Path) -> None:
    """Of a file, a text or a value; what has no other shape is the language itself."""
    assert asl.detect(flow) == asl.detect(FLOW) == "codemie"
    assert asl.detect({"states": [], "assistants": []}) == "codemie"
    assert asl.detect(json.dumps(REFUND)) == asl.detect(REFUND) == asl.detect("a: 1\nb: 2") == "asl"
    with pytest.raises(asl.DocumentNotFound):
        asl.detect("no-such-file.yaml")


def test_a_workflow_becomes_a_document(flow: Path) -> None:
    """The document runs by itself, and says what is not in it."""
    conversion = asl.convert(flow, "asl")
    assert conversion.ok
    assert conversion.faithful
    assert codes(conversion) == {"L-ACTOR"}
    assert [(each.line, each.column) for each in conversion.losses] == [(1, 1)]
    document = json.loads(conversion.text)
    assert document == conversion.document
    result = asl.run(document, {"topic": "x"}, agents={"writer": {"return": {"score": 7}}})
    assert result.visited == ["draft", "draft:if", "end"]


def test_the_way_back_gives_the_workflow(flow: Path) -> None:
    """From YAML to a document and back nothing changes but the layout."""
    there = asl.convert(flow, "asl")
    back = asl.convert(there.text, "codemie")
    assert back.faithful
    assert len(back.losses) == 0
    document = asl.load(flow)
    assert document.composition is not None
    assert back.document == document.composition.written
    assert asl.load(back.text).value == document.value


def test_a_changed_document_changes_the_workflow(flow: Path) -> None:
    """A text that is changed in the document is changed; another machine is written anew."""
    document = json.loads(asl.convert(flow, "asl").text)
    document["States"]["draft"]["Arguments"]["task"] = "Write."
    changed = asl.convert(document, "codemie")
    assert changed.document["states"][0]["task"] == "Write."
    assert codes(changed) == set()
    document["States"]["draft:if"]["Default"] = "end"
    other = asl.convert(document, "codemie")
    assert "L-CHANGED" in codes(other)
    assert other.document["assistants"][0]["model"] == "m"


def test_implicit_retries_can_be_left_out(flow: Path) -> None:
    """What the workflow says itself stays."""
    text = FLOW.replace("    retry_policy: {initial_interval: 0.5}\n", "")
    assert "Retry" in asl.convert(text, "asl").text
    without = asl.convert(text, "asl", implicit_retry=False)
    assert "Retry" not in without.text
    assert asl.convert(without.text, "codemie").faithful
    assert "Retry" in asl.convert(FLOW, "asl", implicit_retry=False).text


def test_a_document_becomes_a_workflow_with_a_report() -> None:
    """What a workflow cannot say is told, with its place."""
    conversion = asl.convert(json.dumps(REFUND, indent=2), "codemie")
    assert not conversion.ok
    assert codes(conversion) == {
        "L-ACTOR",
        "L-APPROVAL",
        "L-COERCE",
        "L-PARAMETERS",
        "L-MISSING",
        "L-PROMPT",
        "L-RECORD",
        "L-REPLACE",
        "L-ROOTMERGE",
    }
    states = {each["id"]: each for each in conversion.document["states"]}
    assert states["Classify"]["next"] == {
        "output_key": "c",
        "condition": {
            "expression": "intent == 'refund' and amount > 100",
            "then": "Refund",
            "otherwise": "Reply",
        },
    }
    assert states["Classify"]["task"] == "text: {{message}}"
    assert list(states) == ["Classify", "Refund", "Reply"]
    assert states["Refund"]["interrupt_before"] is True
    assert all(
        each["retry_policy"] == {"max_attempts": 1} for each in states.values() if "task" in each
    )
    lost = next(each for each in conversion.losses if each.code == "L-APPROVAL")
    assert lost.severity is Severity.ERROR
    assert lost.pointer == "/States/Human/Options"
    assert (lost.line, lost.column) == (35, 7)


@pytest.mark.parametrize("amount", [50, 500])
def test_a_written_workflow_behaves_like_the_document(amount: int) -> None:
    """The same agents are asked the same."""
    asked: list[list[str]] = []
    for document in (REFUND, asl.load(asl.convert(REFUND, "codemie").text)):
        names: list[str] = []
        asked.append(names)

        def agent(name: str, names: list[str] = names) -> Any:
            return lambda parameters: names.append(name) or {"intent": "refund", "amount": amount}

        result = asl.run(
            document,
            {"message": "money back"},
            agents={name: agent(name) for name in ("Classifier", "Refunds", "Replier")},
            approvals=lambda request: request["options"][0],
        )
        assert result.ok, result.cause
    assert asked[0] == asked[1]


def behind(asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A document whose first Task, with a result at `$.r`, is followed by the state `X`."""
    task = {"Type": "Task", "Agent": "a", "Parameters": {"task": "t"}, "ResultPath": None}
    first = {**task, "Agent": "first", "ResultPath": "$.r", "Next": "X"}
    ends = {"Y": {**task, "Agent": "Y", "Next": "N"}, "N": {**task, "Agent": "N", "End": True}}
    return {"StartAt": "P", "States": {"P": first, "X": asked, **ends, **more}}


def when(rule: dict[str, Any]) -> dict[str, Any]:
    return behind({"Type": "Choice", "Choices": [{**rule, "Next": "Y"}], "Default": "N"})


def worker(name: str) -> dict[str, Any]:
    task = {"Type": "Task", "Agent": name, "Parameters": {"task": "t"}, "ResultPath": None}
    return {"StartAt": name, "States": {name: {**task, "End": True}}}


MERGED = {
    "present": when({"Variable": "$.r.x", "IsPresent": True}),
    "absent": when({"Variable": "$.r.x", "IsPresent": False}),
    "nested": when({"Variable": "$.r.u.age", "NumericGreaterThan": 3}),
    "nested and present": when({"Variable": "$.r.u.x", "IsPresent": False}),
    "text in a list": when({"Variable": "$.r.l[1]", "StringEquals": "2"}),
    "or": when(
        {
            "Or": [
                {"Variable": "$.r.x", "IsPresent": True},
                {"Variable": "$.r.k", "StringEquals": "b"},
            ]
        }
    ),
    "map": behind(
        {
            "Type": "Map",
            "ItemsPath": "$.r.l",
            "ItemProcessor": worker("Z"),
            "ResultPath": None,
            "Next": "Y",
        }
    ),
    "map of a deep list": behind(
        {
            "Type": "Map",
            "ItemsPath": "$.r.u.list",
            "ItemProcessor": worker("Z"),
            "ResultPath": None,
            "Next": "Y",
        }
    ),
    "parallel": behind(
        {
            "Type": "Parallel",
            "Branches": [worker("Z"), worker("W")],
            "ResultPath": None,
            "Next": "Y",
        }
    ),
}
ANSWERS = (
    {"x": 1, "k": "a", "u": {"age": 4, "list": [1]}, "l": ["1", "2"]},
    {"k": "b", "u": {"age": 3, "list": [], "x": None}, "l": ["2", "1", "3"]},
    {"k": "c", "u": {"age": 2, "list": [[], {}]}, "l": ["2", "2"]},
)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("document", MERGED.values(), ids=list(MERGED))
def test_a_state_does_itself_what_follows(document: Any, answer: Any) -> None:
    """No transformation stands in between, and the same agents are asked as often."""
    conversion = asl.convert(document, "codemie")
    assert "custom_nodes" not in conversion.document
    asked = []
    for each in (document, asl.load(conversion.text)):
        names: list[str] = []

        def agent(name: str, names: list[str] = names) -> Any:
            return lambda parameters: names.append(name) or answer

        result = asl.run(each, agents={name: agent(name) for name in ("first", *"YNZW")})
        assert result.ok, result.cause
        asked.append(names)
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "document",
    [
        when({"Variable": "$.other", "IsNull": True}),
        when({"Variable": "$.r.class", "IsPresent": True}),
        when({"Variable": "$.r", "IsNull": True}),
        behind(
            {
                "Type": "Choice",
                "Choices": [{"Variable": "$.r.x", "IsNull": True, "Next": "Y"}],
                "Default": "N",
            },
            Y={"Type": "Task", "Agent": "Y", "ResultPath": None, "Next": "X"},
        ),
        behind({"Type": "Map", "ItemsPath": "$.other", "Iterator": worker("Z"), "Next": "Y"}),
    ],
)
def test_what_does_not_lie_in_the_output_is_extracted(document: Any) -> None:
    """Other data, names that conditions cannot have, and states with several ways to them."""
    conversion = asl.convert(document, "codemie")
    assert any(each["id"] == "X" for each in conversion.document["custom_nodes"])


def test_each_branch_writes_a_key_of_its_own() -> None:
    """Who reads a place of the array of results reads what that branch has written."""
    fork = {
        "Type": "Parallel",
        "Branches": [worker("Z"), worker("W")],
        "ResultPath": "$.both",
        "Next": "Y",
    }
    document = behind(fork)
    for branch in document["States"]["X"]["Branches"]:
        for state in branch["States"].values():
            del state["ResultPath"]
    reading = {"text.$": "$.both[1].said", "note.$": "States.Format('{}!', $.kept)"}
    document["States"]["Y"]["Parameters"] = reading
    conversion = asl.convert(document, "codemie")
    states = {each["id"]: each for each in conversion.document["states"]}
    assert states["Z"]["next"] == {"state_id": "Y", "output_key": "both_0"}
    assert states["Y"]["task"] == "text: {{both_1.said}}\nnote: {{kept}}!"
    asked: list[Any] = []

    def agent(name: str) -> Any:
        return lambda parameters: asked.append((name, parameters["task"])) or {"said": name}

    agents = {name: agent(name) for name in ("first", *"YNZW")}
    result = asl.run(asl.load(conversion.text), {"kept": "k"}, agents=agents)
    assert result.ok, result.cause
    assert ("Y", "text: W\nnote: k!") in asked


def test_no_branch_clears_what_another_one_writes() -> None:
    """Nor does one of its states on the way whose result is all that the document goes on with."""

    def task(agent: str, **more: Any) -> Any:
        return {"Type": "Task", "Agent": agent, **more}

    document = {
        "StartAt": "P",
        "States": {
            "P": {
                "Type": "Parallel",
                "ResultPath": "$.p",
                "Branches": [
                    {"StartAt": "L", "States": {"L": task("l", End=True)}},
                    {
                        "StartAt": "R",
                        "States": {"R": task("r", Next="S"), "S": task("s", End=True)},
                    },
                ],
                "Next": "J",
            },
            "J": task(
                "j", Parameters={"task.$": "States.Format('{} {}', $.p[0], $.p[1])"}, End=True
            ),
        },
    }
    told = []
    agents = {each: lambda given, each=each: told.append(given["task"]) or each for each in "lrsj"}
    asl.run(asl.convert(document, "codemie").text, {"q": 1}, agents=agents)
    assert told[-1] == "l s"


def test_a_constant_is_written_to_its_key() -> None:
    """A text or a number as it is; an object gives its own keys."""
    states = {
        "P": {"Type": "Pass", "Result": "calm", "ResultPath": "$.mood", "Next": "A"},
        "A": {"Type": "Task", "Agent": "a", "Parameters": {"task.$": "$.mood"}, "End": True},
    }
    made = asl.convert({"StartAt": "P", "States": states}, "codemie")
    assert {"L-DEEP", "L-ROOTMERGE"}.isdisjoint(each.code for each in made.losses)
    told = []
    asl.run(made.text, {"q": 1}, agents={"a": lambda given: told.append(given["task"])})
    assert told == ["calm"]


def test_branches_that_join_within_a_branch_are_a_loss() -> None:
    """Where they meet at the end of the branch, there is nothing to tell."""
    inner = {"Type": "Parallel", "Branches": [worker("Z"), worker("W")], "ResultPath": None}
    after = worker("V")["States"]["V"]
    for following, told in (({"Next": "V"}, True), ({"End": True}, False)):
        states = {"I": {**inner, **following}, **({"V": after} if told else {})}
        branch = {"StartAt": "I", "States": states}
        fork = {"Type": "Parallel", "Branches": [branch, worker("U")], "Next": "Y"}
        conversion = asl.convert(behind(fork), "codemie")
        assert ("L-NESTEDJOIN" in codes(conversion)) is told
        report = asl.check(asl.load(conversion.text))
        assert ("CM-NESTED-JOIN" in {each.code for each in report}) is told


def test_a_workflow_begins_where_the_document_does() -> None:
    """What is added for a state stands behind it."""
    choice = {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsNull": True, "Next": "Y"}]}
    document = {"StartAt": "X", "States": {"X": choice, "Y": {"Type": "Pass", "End": True}}}
    conversion = asl.convert(document, "codemie")
    assert [each["id"] for each in conversion.document["states"]] == ["X", "X_unmatched"]
    assert codes(conversion) == {"L-COERCE", "L-MISSING", "L-NODEFAULT"}


def documents() -> Iterator[tuple[str, Any, set[str]]]:
    task = {"Type": "Task", "Agent": "a", "Parameters": {"task": "t"}, "ResultPath": None}
    yield "wait", {"W": {"Type": "Wait", "Seconds": 5, "Next": "A"}, "A": {**task}}, {"L-WAIT"}
    yield (
        "catch",
        {
            "A": {**task, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "B"}], "Next": "C"},
            "B": {**task},
            "C": {**task},
        },
        {"L-CATCH", "L-DROPPED"},
    )
    yield "timeout", {"A": {**task, "TimeoutSeconds": 5}}, {"L-TIMEOUT"}
    yield "output", {"A": {**task, "OutputPath": "$.x"}}, {"L-OUTPUT", "L-MISSING"}
    yield "block", {"A": {**task, "Budget": {"MaxCost": "$1"}}}, {"L-BLOCK"}
    yield "unknown field", {"A": {**task, "Surprise": 1}}, {"L-BLOCK"}
    yield "fail", {"A": {**task, "Next": "F"}, "F": {"Type": "Fail", "Error": "E"}}, {"L-FAIL"}
    yield "deep", {"A": {**task, "ResultPath": "$.a.b"}}, {"L-DEEP", "L-MISSING", "L-ROOTMERGE"}
    yield "replace", {"A": {**task, "ResultPath": "$", "Next": "B"}, "B": task}, {"L-REPLACE"}
    yield (
        "parallel",
        {
            "P": {
                "Type": "Parallel",
                "Branches": [
                    {"StartAt": "X", "States": {"X": task}},
                    {"StartAt": "Y", "States": {"Y": task}},
                ],
                "Next": "A",
            },
            "A": task,
        },
        {"L-PARRESULT"},
    )
    yield (
        "map",
        {
            "M": {
                "Type": "Map",
                "ItemsPath": "$.list",
                "ResultPath": "$.done",
                "ItemProcessor": {
                    "StartAt": "X",
                    "States": {"X": {**task, "Next": "Y"}, "Y": task},
                },
                "Next": "A",
            },
            "A": task,
        },
        {"L-MAPRESULT", "L-MISSING"},
    )
    yield (
        "debate",
        {
            "D": {
                "Type": "Debate",
                "Topic": "x",
                "Agents": ["a", "b"],
                "Rounds": 1,
                "ResultPath": None,
            }
        },
        {"L-DEBATE"},
    )


@pytest.mark.parametrize(
    ("states", "lost"), [each[1:] for each in documents()], ids=[each[0] for each in documents()]
)
def test_every_loss_is_reported(states: Any, lost: set[str]) -> None:
    """What comes out can be read, and what was lost is told."""
    for state in states.values():
        if state["Type"] not in ("Fail", "Choice") and "Next" not in state:
            state["End"] = True
    document = {"StartAt": next(iter(states)), "States": states}
    conversion = asl.convert(document, "codemie")
    assert codes(conversion) == lost | {"L-ACTOR"}
    assert asl.check(asl.load(conversion.text)).ok


def test_a_loss_has_a_rule() -> None:
    """Each code of a loss is explained."""
    known = {code.id for code in all_codes()}
    assert {each.code for each in asl.convert(REFUND, "codemie").losses} <= known


def test_the_command_writes_a_file_and_a_report(flow: Path) -> None:
    """The document goes to the file, what is lost to standard error."""
    run = CliRunner().invoke(cli, ["convert", "flow.yaml", "--to", "asl", "-o", "flow.asl.json"])
    assert run.exit_code == 0
    assert run.stdout == ""
    assert "flow.yaml:1:1: info L-ACTOR" in run.stderr
    assert asl.check("flow.asl.json").ok
    back = CliRunner().invoke(cli, ["convert", "flow.asl.json", "--to", "codemie", "--strict"])
    assert (back.exit_code, back.stderr) == (0, "")
    assert asl.load(back.stdout).dialect == "codemie"


def test_the_command_can_be_strict(flow: Path) -> None:
    """Nothing is written if something is lost; the report may be JSON."""
    flow.with_name("r.json").write_text(json.dumps(REFUND), encoding="utf-8")
    words = ["convert", "r.json", "--to", "codemie", "--strict", "--report", "json", "-o", "r.yaml"]
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == 3
    assert not flow.with_name("r.yaml").exists()
    assert "L-APPROVAL" in run.stderr
    json.loads(run.stderr)


def test_an_unknown_language_is_wrong_usage(flow: Path) -> None:
    """The message says which one may be meant."""
    run = CliRunner().invoke(cli, ["convert", "flow.yaml", "--to", "codeme"])
    assert run.exit_code == 2
    assert "did you mean 'codemie'?" in run.stderr
    with pytest.raises(asl.AslError, match="no dialect 'x'"):
        asl.load(flow, dialect="x")


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that offers entry points, given their names and values."""

    def offered(**points: str) -> None:
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda group: [EntryPoint(name, value, group) for name, value in points.items()],
        )

    registry._entries.cache_clear()
    yield offered
    registry._entries.cache_clear()
    registry._load.cache_clear()


def test_dialects_come_from_outside(offer: Callable[..., None]) -> None:
    """A package offers one under an entry point."""
    offer(shout=f"{__name__}:SHOUT")
    document = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    assert asl.convert(document, "shout").text == "A!"
    assert asl.run(asl.load("hello\nworld", dialect="shout")).visited == ["HELLO"]


def garbled(*args: Any, **options: Any) -> Any:
    return 3


NO_DIALECT = 3
BUILT_IN_NAME = dialect("codemie")
GARBLED = dialect("codemie")._replace(name="shout", namespace=None, read=garbled)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nosuchmodule:X", "'shout' of asl.dialects cannot be loaded: ModuleNotFoundError"),
        (f"{__name__}:NO_DIALECT", "'shout' of asl.dialects is no Dialect: 3"),
        (f"{__name__}:BUILT_IN_NAME", "cannot be used: the name of its dialect is 'codemie'"),
        (f"{__name__}:GARBLED", "the dialect 'shout' cannot read the document: .*3 is no Document"),
    ],
)
def test_broken_dialect_of_a_package_is_named(
    value: str, message: str, offer: Callable[..., None]
) -> None:
    offer(shout=value)
    with pytest.raises(asl.AslError, match=message):
        asl.load("hello\nworld", dialect="shout")


def test_broken_dialect_of_a_package_is_a_warning_for_others(offer: Callable[..., None]) -> None:
    """Only where the shape of a document is compared with all dialects."""
    offer(broken="nosuchmodule:X", shout=f"{__name__}:SHOUT")
    assert asl.load("hello\nworld", dialect="shout").dialect == "shout"
    with pytest.warns(UserWarning, match="'broken' of asl.dialects cannot be loaded"):
        assert asl.detect(b"hello: 1") == "asl"


AGENTS = {
    "StartAt": "Judge",
    "States": {
        "Judge": {"Type": "Task", "Agent": "Judge", "Budget": {"MaxCost": "$1"}, "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.list",
            "Iterator": {
                "StartAt": "One",
                "States": {"One": {"Type": "Task", "Agent": "Worker", "End": True}},
            },
            "ResultPath": "$.done",
            "Next": "Ask",
        },
        "Ask": {
            "Type": "Approval",
            "Prompt": "Go?",
            "Timeout": "1h",
            "Editable": {"Fields": ["$.x"]},
            "Choices": [{"Variable": "$.approval", "StringEquals": "approve", "Next": "Go"}],
            "Default": "Stop",
        },
        "Go": {"Type": "Checkpoint", "Name": "c", "Next": "Last"},
        "Last": {"Type": "Pass", "Parameters": {"h.$": "States.Merge($.a, $.b)"}, "End": True},
        "Stop": {"Type": "Fail", "Error": "Refused"},
    },
}


def test_agents_become_functions_of_amazon() -> None:
    """What Amazon's language lacks becomes the nearest it has; all of it is told."""
    conversion = asl.convert(json.dumps(AGENTS, indent=1), "amazon")
    assert codes(conversion) == {
        "L-RESOURCE",
        "L-RECORD",
        "L-BLOCK",
        "L-APPROVAL",
        "L-CHECKPOINT",
        "L-AWS",
    }
    states = conversion.document["States"]
    assert states["Judge"] == {
        "Type": "Task",
        "Resource": "arn:aws:lambda:us-east-1:123456789012:function:Judge",
        "Next": "Each",
    }
    assert states["Each"]["ItemProcessor"]["States"]["One"]["Resource"].endswith(":Worker")
    assert "Iterator" not in states["Each"]
    assert states["Ask"]["TimeoutSeconds"] == 3600
    assert states["Ask choose"]["Choices"] == [
        {"Variable": "$.approval", "StringEquals": "approve", "Next": "Go"}
    ]
    (refused,) = (each for each in conversion.losses if each.code == "L-AWS")
    assert refused.pointer == "/States/Last/Parameters/h.$"
    assert refused.line == 54


ARN = "arn:aws:lambda:eu-west-1:111122223333:function:"


def test_functions_have_the_names_of_the_option(tmp_path: Path) -> None:
    """There and back nothing changes but what Amazon cannot say."""
    agents = {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "One",
                    "States": {"One": {"Type": "Task", "Agent": "Worker", "End": True}},
                },
                "Next": "Both",
            },
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    {
                        "StartAt": name,
                        "States": {name: {"Type": "Task", "Agent": name, "End": True}},
                    }
                    for name in ("Ann", "Bob")
                ],
                "End": True,
            },
        },
    }
    names = {"Worker": f"{ARN}work", "Ann": f"{ARN}ann", "Bob": f"{ARN}bob"}
    there = asl.convert(agents, "amazon", names=names)
    assert there.faithful
    assert len(there.losses) == 0
    assert f"{ARN}bob" in there.text
    back = asl.convert(there.document, "asl", names={one: other for other, one in names.items()})
    assert back.document == agents
    given, file = tmp_path / "a.json", tmp_path / "names.yaml"
    given.write_text(json.dumps(agents), encoding="utf-8")
    file.write_text(f"Ann: {ARN}ann\nBob: {ARN}bob\n", encoding="utf-8")
    words = ["convert", str(given), "--to", "amazon", "--names", str(file)]
    run = CliRunner().invoke(cli, [*words, "--as", f"Worker={ARN}work"])
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == there.text


def test_a_name_of_nothing_is_wrong_usage() -> None:
    """The message says which one may be meant; so for an option."""
    with pytest.raises(asl.AslError, match="did you mean 'Judge'"):
        asl.convert(AGENTS, "amazon", names={"Juge": f"{ARN}judge"})
    with pytest.raises(asl.AslError, match="no option 'names'"):
        asl.convert(AGENTS, "codemie", names={"Judge": f"{ARN}judge"})


def test_integration_that_becomes_an_agent_is_a_loss() -> None:
    """Its parameters and its waiting are those of the integration."""
    states = {
        "A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "B"},
        "B": {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Next": "C"},
        "C": {"Type": "Task", "Resource": f"{ARN}c", "Next": "D"},
        "D": {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True},
    }
    names = {"arn:aws:states:::lambda:*": "a", "*.sync": "b", f"{ARN}c": "c"}
    conversion = asl.convert({"StartAt": "A", "States": states}, "asl", names=names)
    assert [each.pointer for each in conversion.losses] == [
        "/States/A/Resource",
        "/States/B/Resource",
    ]
    assert {each.code for each in conversion.losses} == {"L-INTEGRATION"}
    made = conversion.document["States"]
    assert [made[name].get("Agent") for name in states] == ["a", "b", "c", None]


def test_an_agent_can_be_a_tool() -> None:
    """Whoever converts knows what is an assistant."""
    conversion = asl.convert(REFUND, "codemie", tools=["Refunds"])
    assert [each["id"] for each in conversion.document["tools"]] == ["Refunds"]
    assert "Refunds" not in [each["id"] for each in conversion.document["assistants"]]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"Type": "Pass", "Retry": [{"ErrorEquals": ["E"]}]}, "L-DROPPED"),
        ({"Type": "Wait", "Seconds": 1, "Catch": [{"ErrorEquals": ["E"]}]}, "L-DROPPED"),
        ({"Type": "Pass", "Owner": "me"}, "L-DROPPED"),
        ({"Retry": [{"ErrorEquals": ["E"], "IntervalSeconds": 0.5}]}, "L-RETRY"),
        ({"Retry": [{"ErrorEquals": ["E"], "JitterStrategy": "DECORRELATED"}]}, "L-RETRY"),
        ({"Retry": [{"ErrorEquals": ["E"], "JitterStrategy": "full"}]}, ""),
        ({"Retry": [{"ErrorEquals": ["E"], "MaxIntervalSeconds": 9}]}, ""),
    ],
)
def test_losses_of_fields_in_a_document_for_amazon(state: dict[str, Any], code: str) -> None:
    """What has no effect, and other words for the same, are no reason to be refused."""
    whole = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True} | state
    if whole["Type"] != "Task":
        del whole["Resource"]
    conversion = asl.convert({"StartAt": "A", "States": {"A": whole}}, "amazon")
    assert asl.check(conversion.document, profile="aws").ok
    assert [each.code for each in conversion.losses] == ([code] if code else [])


def test_a_document_that_goes_round_may_be_stopped_elsewhere() -> None:
    """Platforms count the states that a run enters; a document does not."""
    good = {"Variable": "$.ok", "BooleanEquals": True, "Next": "C"}
    states: dict[str, Any] = {
        "A": {"Type": "Task", "Agent": "a", "ResultPath": "$.ok", "Next": "B"},
        "B": {"Type": "Choice", "Choices": [good], "Default": "A"},
        "C": {"Type": "Succeed"},
    }
    for target, place in (("codemie", "/States/A"), ("flujo", "/States/A"), ("contenox", "")):
        losses = asl.convert({"StartAt": "A", "States": states}, target).losses
        told = [each.pointer for each in losses if each.code == "L-LIMIT"]
        assert told == ([place] if place else [])
    states["B"]["Default"] = "C"
    losses = asl.convert({"StartAt": "A", "States": states}, "codemie").losses
    assert "L-LIMIT" not in [each.code for each in losses]


@pytest.mark.parametrize(("answer", "end"), [("approve", "Go"), ("reject", "Stop"), (None, "Stop")])
@pytest.mark.parametrize("path", ["absent", "$.review", "$"])
def test_people_answer_a_task_token(answer: str | None, end: str, path: str) -> None:
    """An Approval and what stands for it lead the same way, also when nobody answers."""
    ask: dict[str, Any] = {
        "Type": "Approval",
        "Prompt": "Go?",
        "Timeout": "1h",
        "Choices": [{"Variable": "$.approval", "StringEquals": "approve", "Next": "Go"}],
        "Default": "Stop",
    }
    if path != "absent":
        ask["ResultPath"] = path
    states = {"Ask": ask, "Go": {"Type": "Succeed"}, "Stop": {"Type": "Succeed"}}
    document = {"StartAt": "Ask", "States": states}
    conversion = asl.convert(document, "amazon")
    assert asl.check(conversion.document, profile="aws").ok
    record = {"approval": answer, "approver": "ann", "timestamp": "2030-01-01T00:00:00Z"}
    record |= {"comment": None}
    tokens = asl.TaskTokens()

    def people(parameters: Any) -> None:
        if answer is not None:
            tokens.send_task_success(parameters["Payload"]["token"], record)

    ours = asl.run(
        document, {"x": 1}, approvals=lambda request: answer and dict(record), clock="virtual"
    )
    theirs = asl.run(
        conversion.document,
        {"x": 1},
        resources={"*": people},
        tokens=tokens,
        profile="aws",
        clock="virtual",
    )
    assert theirs.visited[-1] == end
    if answer is not None:
        assert ours.visited[-1] == end
        also = {"approvalRecord": record} if path == "absent" else {}
        assert theirs.output == {**ours.output, **also}


def test_amazons_documents_stay_as_they_are() -> None:
    """They are documents of this language already."""
    document = asl.convert(AGENTS, "amazon").document
    assert asl.convert(document, "amazon").document == document
    assert asl.convert(document, "asl").document == document
    assert asl.load(document, dialect="amazon").value == document


def _shouted(document: Document) -> WriterResult:
    return WriterResult(None, f"{document.value['StartAt']}!")


def _heard(what: Any, limits: Any) -> Document:
    name = what.text.split()[0].upper()
    return Document({"StartAt": name, "States": {name: {"Type": "Succeed"}}}, what, "shout")


SHOUT = Dialect("shout", "Shouting", lambda text: False, lambda value: False, _heard, _shouted)


# --------------------------------------------------------------------------------------------
# Several documents, and several files


def converted_files(*words: str) -> Any:
    return CliRunner().invoke(cli, ["convert", *words])


def test_documents_are_converted_into_a_folder(flow: Path) -> None:
    """One with errors, or one that is not there, keeps no other from being written."""
    Path("other.yml").write_text(FLOW.replace("writer", "author"), encoding="utf-8")
    Path("wrong.yaml").write_text(FLOW.replace("then: end", "then: nowhere"), encoding="utf-8")
    run = converted_files("flow.yaml", "other.yml", "wrong.yaml", "--to", "asl", "-o", "made/")
    assert run.exit_code == 3
    assert "\nwrong.yaml:" in run.stderr
    assert run.stderr.endswith("asl: wrote 2 of 3 documents to made/\n")
    assert sorted(each.name for each in Path("made").iterdir()) == [
        "flow.asl.json",
        "other.asl.json",
    ]
    run = converted_files("flow.yaml", "gone.yaml", "--to", "asl", "-o", "made/")
    assert (run.exit_code, "gone.yaml" in run.stderr) == (2, True)
    run = converted_files("made/flow.asl.json", "--to", "codemie", "-o", "back/")
    assert (run.exit_code, asl.load("back/flow.yaml").value) == (0, asl.load("flow.yaml").value)


def test_the_report_of_several_is_one_for_programs(flow: Path) -> None:
    Path("wrong.yaml").write_text("states: 3", encoding="utf-8")
    words = ["flow.yaml", "wrong.yaml", "--to", "asl", "-o", "made/", "--report", "json"]
    run = CliRunner().invoke(cli, ["convert", *words, "--dialect", "codemie"])
    report = json.loads(run.stderr)
    assert (run.exit_code, report["ok"]) == (3, False)
    assert {each["file"] for each in report["diagnostics"]} == {"flow.yaml", "wrong.yaml"}


def test_nothing_is_replaced_unasked(flow: Path) -> None:
    """A named file is; one in a folder that says something else is not, nor is the document."""
    assert converted_files("flow.yaml", "--to", "asl", "-o", "made/").exit_code == 0
    assert converted_files("flow.yaml", "--to", "asl", "-o", "made/").exit_code == 0
    made = Path("made/flow.asl.json")
    text = made.read_text(encoding="utf-8")
    made.write_text("mine", encoding="utf-8")
    run = converted_files("flow.yaml", "--to", "asl", "-o", "made/")
    assert (run.exit_code, made.read_text(encoding="utf-8")) == (2, "mine")
    assert "--force" in run.stderr
    assert converted_files("flow.yaml", "--to", "asl", "-o", "made", "--force").exit_code == 0
    assert made.read_text(encoding="utf-8") == text
    assert converted_files("flow.yaml", "--to", "asl", "-o", str(made)).exit_code == 0
    for target in ("flow.yaml", "./"):
        run = converted_files("flow.yaml", "--to", "flujo", "-o", target)
        assert (run.exit_code, Path("flow.yaml").read_text(encoding="utf-8")) == (2, FLOW)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["flow.yaml", "flow.yml", "--to", "asl"], "add -o FOLDER/"),
        (["flow.yaml", "a/flow.yml", "--to", "asl", "-o", "made/"], "would both be written to"),
        (["-", "--to", "asl", "-o", "made/"], "add -o FILE"),
        (["flow.yaml", "other.yaml", "--to", "codeme", "-o", "made/"], "did you mean 'codemie'?"),
    ],
)
def test_where_several_go_must_be_clear(flow: Path, words: list[str], told: str) -> None:
    run = converted_files(*words)
    assert (run.exit_code, told in run.stderr, Path("made").exists()) == (2, True, False)


PARTS = {
    "main.yaml": "imports: {c: sub/c.yaml}\nsteps: [{name: a, uses: imports.c}]\n",
    "sub/c.yaml": "imports: {d: ./d.yaml}\nsteps: [{name: b, uses: imports.d}]\n",
    "sub/d.yaml": 'steps: [{name: say, input: "deep {{ previous_step }}"}]\n',
}


def test_what_a_blueprint_imports_is_written_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There and back, wherever the command is called."""
    monkeypatch.chdir(tmp_path)
    for path, text in PARTS.items():
        Path("in", path).parent.mkdir(parents=True, exist_ok=True)
        Path("in", path).write_text(text, encoding="utf-8")
    assert converted_files("in/main.yaml", "--to", "asl", "-o", "main.asl.json").exit_code == 0
    run = converted_files("main.asl.json", "--to", "flujo")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "(sub/c.yaml, sub/d.yaml): write all of them with -o FILE" in run.stderr
    assert converted_files("main.asl.json", "--to", "flujo", "-o", "out/").exit_code == 0
    assert asl.run("out/main.yaml", "x").output == {"output": "deep x", "context": {}}
    for path in PARTS:
        assert asl.load(f"out/{path}").value == asl.load(f"in/{path}").value
    Path("out/sub/d.yaml").write_text("mine", encoding="utf-8")
    assert converted_files("main.asl.json", "--to", "flujo", "-o", "out/main.yaml").exit_code == 2
    assert Path("out/sub/d.yaml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("steps", "codes"),
    [
        (["{name: b, input: '{{ steps.c }}'}", "{name: c, input: x}"], set()),
        (["{kind: loop, name: l, loop: {body: [{name: a, uses: 'd:a', input: '{{ steps.b }}'}, "
          "{name: b, uses: 'd:b'}], max_loops: 2, exit_expression: \"output == 'b'\"}}"],
         set()),
        (["{kind: loop, name: l, loop: {body: [{name: a, uses: 'd:a'}], max_loops: 2, "
          "state: {append: [{target: context.h, value: x}]}, exit_expression: \"output == 'b'\"}}"],
         set()),
        (["{kind: loop, name: l, loop: {body: [{name: a, uses: 'd:a'}], max_loops: 2, "
          "propagation: context, exit_expression: \"output == 'b'\"}}"], set()),
        (["{kind: loop, name: l, loop: {body: [{name: a, uses: 'd:a'}], max_loops: 2, "
          "state: {set: [{target: context.h, value: x}]}, exit_expression: \"output == 'b'\"}}"],
         set()),
        (["{name: i, uses: imports.c}"], set()),
        (["{name: i, uses: imports.c, updates_context: true}"], set()),
        (["{name: i, uses: imports.c, config: {input_to: both}}"], set()),
    ],
)  # fmt: skip
def test_fields_of_loops_and_imports_are_written_or_reported(
    steps: list[str], codes: set[str]
) -> None:
    """Each of these was passed over in silence once."""
    text = "imports: {c: c.yaml}\nsteps:\n" + "".join(f"  - {each}\n" for each in steps)
    files = {"c.yaml": 'steps: [{name: say, uses: "d:say"}]'}
    conversion = asl.convert(load(text, dialect="flujo", files=files), "amazon")
    told = {"L-REQUIRED", "L-TRANSFORM", "L-PARRESULT"}
    assert {each.code for each in conversion.losses} & told == codes
    assert asl.check(conversion.document, profile="aws").ok


def test_an_import_and_what_is_set_between_rounds_run_there() -> None:
    """An imported blueprint gets its input alone; the context has what was set last."""
    text = """
imports: {c: c.yaml}
steps:
  - kind: loop
    name: l
    loop:
      body: [{name: up, uses: "d:up"}]
      exit_expression: "output == 'b'"
      state: {set: [{target: context.last, value: "was {{ previous_step }}"}]}
  - {name: i, uses: imports.c, sink_to: got}
  - {name: end, uses: "d:end", input: "{{ context.last }}, {{ context.got }}"}
"""
    files = {"c.yaml": 'steps: [{name: say, uses: "d:say"}]'}
    machine = asl.convert(load(text, dialect="flujo", files=files), "amazon").document
    asked: list[Any] = []

    def answering(name: str, *answers: Json) -> Any:
        left = [*answers]

        def answer(given: Json) -> Json:
            asked.append((name, given))
            return left.pop(0)

        return answer

    resources = {
        f"arn:aws:lambda:us-east-1:123456789012:function:d-{name}": answering(name, *answers)
        for name, answers in {"up": "ab", "say": ["said"], "end": ["over"]}.items()
    }
    result = asl.run(machine, {"input": "x"}, resources=resources)
    assert result.output == "over"
    assert asked[2:] == [("say", {"input": "b"}), ("end", {"input": "was a, said"})]


@pytest.mark.parametrize("text", ["of {{kind}}", ""])
def test_text_that_a_platform_would_fill_in_is_a_loss(text: str) -> None:
    """Braces mean nothing in a document, and an empty text is one."""
    state = {"Type": "Task", "Agent": "A", "Parameters": {"task": text}, "End": True}
    conversion = asl.convert({"StartAt": "A", "States": {"A": state}}, "codemie", tools=["A"])
    (loss,) = (each for each in conversion.losses if each.code == "L-PARAMETERS")
    assert loss.pointer == "/States/A/Parameters/task"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"States.Format('{} of \{n: 1\}', $.x)", "{{x}} of {n: 1}"),
        (r"States.Format('{}\}', $.x)", "{{x}}}"),
        (r"States.Format('\{{}\}', $.x)", None),
        (r"States.Format('\{\{y\}\} {}', $.x)", None),
        (r"States.Format('\{\{ {}', $.x)", None),
    ],
)
def test_braces_beside_a_placeholder_stay_as_they_are(text: str, said: str | None) -> None:
    """Where something else would be filled in, the report says that the text is left."""
    state = {"Type": "Task", "Agent": "A", "Parameters": {"task.$": text}, "End": True}
    made = asl.convert({"StartAt": "A", "States": {"A": state}}, "codemie")
    assert ("L-INTRINSIC" in {each.code for each in made.losses}) is (said is None)
    assert made.document["states"][0]["task"] == (text if said is None else said)


def test_a_part_of_the_data_is_put_under_a_key() -> None:
    """By a transformation, which leaves its type as it is."""
    copy = {"Type": "Pass", "InputPath": "$.user.tags", "ResultPath": "$.tags", "Next": "S"}
    flow = {"StartAt": "P", "States": {"P": copy, "S": {"Type": "Succeed"}}}
    made = asl.convert(flow, "codemie")
    assert {each.code for each in made.losses}.isdisjoint({"L-TRANSFORM", "L-DROPPED"})
    result = asl.run(load(made.text, dialect="codemie"), {"user": {"tags": ["a"]}})
    assert result.output["tags"] == ["a"]


def test_an_item_as_a_whole_is_no_part_of_the_data() -> None:
    copy = {"Type": "Pass", "InputPath": "$.item", "ResultPath": "$.x", "End": True}
    processor = {"StartAt": "P", "States": {"P": copy}}
    mapped = {"Type": "Map", "ItemSelector": ITEM, "ItemProcessor": processor, "End": True}
    made = asl.convert({"StartAt": "M", "States": {"M": mapped}}, "codemie")
    (loss,) = (each for each in made.losses if each.code == "L-TRANSFORM")
    assert loss.pointer == "/States/M/ItemProcessor/States/P/InputPath"


ITEM = {"item.$": "$$.Map.Item.Value", "who.$": "$.user.name"}
TOLD = {"Type": "Task", "Agent": "w", "End": True}


@pytest.mark.parametrize(
    ("selected", "workers", "said"),
    [
        (ITEM, [{"task.$": "$.item"}], ["{{task}}"]),
        (
            ITEM,
            [{"task.$": "States.Format('{} for {}', $.item.id, $.who)"}],
            ["{{task.id}} for {{user.name}}"],
        ),
        ({"id.$": "$$.Map.Item.Value.id"}, [{"task.$": "$.id"}], ["{{task.id}}"]),
        (ITEM, [{"task.$": "$.item"}, {"task.$": "$.r"}], ["{{task}}", "{{r}}"]),
        (ITEM, [{"task.$": "$.who"}, {"task.$": "$.item"}], ["{{user.name}}", "{{task}}"]),
        ({"who": "all"}, [{"task.$": "$.who"}], ["all"]),
        ({"r.$": "$$.Map.Item.Value"}, [{"task": "x"}, {"task.$": "$.r"}], ["x", "{{r}}"]),
    ],
)
def test_worker_reads_the_selected_item(selected: Any, workers: list[Any], said: list[str]) -> None:
    """A worker reads the item, or the context, by the name that it has there."""
    states = {
        f"W{index}": {**TOLD, "Parameters": given, "ResultPath": "$.r"}
        for index, given in enumerate(workers)
    }
    if len(states) > 1:
        del states["W0"]["End"]
        states["W0"]["Next"] = "W1"
    mapped = {
        "Type": "Map",
        "ItemsPath": "$.list",
        "ItemSelector": selected,
        "ItemProcessor": {"StartAt": "W0", "States": states},
        "End": True,
    }
    made = asl.convert({"StartAt": "M", "States": {"M": mapped}}, "codemie")
    assert made.ok
    assert [each["task"] for each in made.document["states"] if "task" in each] == said


def test_branch_reads_the_selected_parameters() -> None:
    """As it is for the workers of a Map."""
    branch = {"StartAt": "T", "States": {"T": {**TOLD, "Parameters": {"task.$": "$.who"}}}}
    fork = {"Type": "Parallel", "Parameters": {"who.$": "$.user.name"}, "Branches": [branch]}
    made = asl.convert({"StartAt": "P", "States": {"P": {**fork, "End": True}}}, "codemie")
    assert made.ok
    assert made.document["states"][-1]["task"] == "{{user.name}}"


def test_what_replaced_a_selected_field_is_read() -> None:
    """A worker that keeps nothing of what it was given leaves its answer alone."""
    first = {"Type": "Task", "Agent": "v", "Parameters": {"task.$": "$.item"}, "Next": "W"}
    states = {"V": first, "W": {**TOLD, "Parameters": {"task.$": "$.item"}}}
    processor = {"StartAt": "V", "States": states}
    mapped = {"Type": "Map", "ItemSelector": ITEM, "ItemProcessor": processor, "End": True}
    made = asl.convert({"StartAt": "M", "States": {"M": mapped}}, "codemie")
    assert made.document["states"][-1]["task"] == "{{item}}"


def way(goto: str, **more: Any) -> dict[str, Any]:
    return {"transition": {"branches": [{"operator": "default", "goto": goto, **more}]}}


def picked(path: str) -> dict[str, Any]:
    """A chain that takes a variable out of its input, and comes to it a task later."""
    compose = {"with_var": "v", "strategy": f"json_path:{path}"}
    tasks = [
        {"id": "t", "handler": "noop", **way("s", compose=compose)},
        {"id": "s", "handler": "noop", "prompt_template": "away", **way("e")},
        {"id": "e", "handler": "noop", "input_var": "v"},
    ]
    return {"id": "c", "tasks": tasks}


def templated(template: str) -> dict[str, Any]:
    """A chain whose tool's answer is made a text, on which a branch decides."""
    tool = {"id": "t", "handler": "hook", "hook": {"name": "crm"}, "output_template": template}
    hit = {"operator": "equals", "when": "tier=gold", "goto": "hit"}
    branches = [hit, {"operator": "default", "goto": "end"}]
    tasks = [{**tool, "transition": {"branches": branches}}, {"id": "hit", "handler": "noop"}]
    return {"id": "c", "tasks": tasks}


def on_default(condition: str) -> dict[str, Any]:
    """A blueprint that goes one of two ways."""
    branches = {word: [{"name": word, "input": word}] for word in ("true", "false")}
    choice = {"kind": "conditional", "name": "c", "condition_expression": condition}
    return {"version": "0.1", "steps": [{**choice, "branches": branches}]}


@pytest.mark.parametrize(
    ("document", "dialect", "input", "answer", "output"),
    [
        (picked("$.u[0].id"), "contenox", {"input": {"u": [{"id": 1}]}}, None, 1),
        (templated("tier={{.tier}}"), "contenox", {"input": "x"}, {"tier": "gold"}, "tier=gold"),
        (templated("{{.tier}}"), "contenox", {"input": "x"}, {"tier": "gold"}, "gold"),
        (templated("{{toJson .tier}}"), "contenox", {"input": "x"}, {"tier": "é"}, '"é"'),
        (templated("<{{.tier | toJson}}>"), "contenox", {"input": "x"}, {"tier": [1]}, "<[1]>"),
        (on_default("context.o.get('k', 'd') == 'd'"), "flujo", {"o": {}}, None, "true"),
        (on_default("context.o.get('k', 'd') == 'd'"), "flujo", {"o": {"k": "e"}}, None, "false"),
        (on_default("context.o.get('k', 'd') == 'e'"), "flujo", {"o": {}}, None, "false"),
        (on_default("context.o.get('k', 'd') == 'e'"), "flujo", {"o": {"k": "e"}}, None, "true"),
        (on_default("context.o.get('k', 'd') != 'd'"), "flujo", {"o": {}}, None, "false"),
    ],
)
def test_amazon_does_what_a_chain_or_blueprint_says(
    document: Any, dialect: str, input: Json, answer: Json, output: Json
) -> None:
    conversion = asl.convert(load(document, dialect=dialect), "amazon")
    asked = dict.fromkeys(("arn:aws:lambda:us-east-1:123456789012:function:crm",), lambda _: answer)
    assert not {"L-TRANSFORM", "L-TEMPLATE", "L-CONDITION"} & codes(conversion)
    assert asl.run(conversion.text, input, resources=asked).output == output


def test_what_a_workflow_does_not_store_is_under_the_name_of_its_state() -> None:
    to = {"state_id": "end", "store_in_context": False, "output_key": "k"}
    assistant = {"id": "a", "system_prompt": "x"}
    config = {"assistants": [assistant], "states": [{"id": "s", "assistant_id": "a", "next": to}]}
    written = json.loads(asl.convert(load(config, dialect="codemie"), "amazon").text)
    output = "{% $merge([$states.input, {'s': $states.result}]) %}"
    assert written["States"]["s"]["Output"] == output


def test_output_of_a_wait_is_a_loss_in_a_blueprint() -> None:
    state = {"Type": "Wait", "Seconds": 5, "Output": {"at": "now"}, "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}
    losses = asl.convert(asl.load(machine), "flujo").losses
    assert ("FL-PATHS", "/States/A") in {(each.code, each.pointer) for each in losses.errors}


def test_tool_calls_that_no_task_makes_are_reported() -> None:
    chain = {"id": "c", "tasks": [{"id": "run", "handler": "execute_tool_calls"}]}
    losses = asl.convert(load(chain, dialect="contenox"), "amazon").losses
    assert ("L-REQUIRED", "/tasks/0/handler") in {(each.code, each.pointer) for each in losses}


def test_a_transition_that_is_no_text_is_refused() -> None:
    """To a state that is not there a document may lead, to what can be no state it may not."""
    rule = {"Variable": "$.a", "IsPresent": True, "Next": "Nowhere"}
    choice = {"Type": "Choice", "Choices": [rule], "Default": "End"}
    document = {"StartAt": "A", "States": {"A": choice, "End": {"Type": "Succeed"}}}
    assert "Nowhere" in asl.convert(document, "amazon").text
    rule["Next"] = {"": None}
    with pytest.raises(asl.InvalidDocument, match="'Next' must be a string"):
        asl.convert(document, "amazon")


@pytest.mark.parametrize("target", ["amazon", "codemie", "contenox", "flujo"])
@pytest.mark.parametrize("catch", [5, [None], [{"ErrorEquals": ["E"], "Next": {"a": 1}}]])
def test_result_of_a_catcher_that_is_not_read_may_be_anything(target: str, catch: Json) -> None:
    """On a Pass it is a warning, and no way to another state."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Catch": catch, "End": True}}}
    assert asl.convert(document, target).text


def test_a_placeholder_alone_is_a_text() -> None:
    """An assistant is told the JSON of a list, not the list."""
    flow = {
        "assistants": [{"id": "a", "system_prompt": "You help."}],
        "states": [
            {"id": "s", "assistant_id": "a", "task": "{{list}}", "next": {"state_id": "end"}}
        ],
    }
    made = asl.convert(load(flow, dialect="codemie"), "amazon").document
    assert made["States"]["s"]["Arguments"] == {"task": "{% '' & $states.input.list %}"}


def test_placeholder_alone_without_a_value_is_an_empty_text() -> None:
    """Its value may be an answer's member or a key of the input: no text may be missing."""
    states = [
        {"id": "s", "assistant_id": "a", "task": "List", "next": {"state_id": "t"}},
        {"id": "t", "assistant_id": "a", "task": "{{a.b}}", "next": {"state_id": "end"}},
    ]
    flow = {"assistants": [{"id": "a", "system_prompt": "You help."}], "states": states}
    made = asl.convert(load(flow, dialect="codemie"), "amazon").document
    tasks: list[str] = []

    def answer(parameters: dict[str, str]) -> str:
        tasks.append(parameters["task"])
        return "done"

    assert asl.run(made, {}, resources={made["States"]["s"]["Resource"]: answer}).ok
    assert tasks == ["List", ""]


@pytest.mark.parametrize("target", ["amazon", "contenox"])
def test_text_within_a_constant_text_takes_the_same_branch(target: str) -> None:
    then = [{"kind": "step", "name": "t", "agent": {"id": "t"}}]
    step = {"kind": "conditional", "name": "c", "condition_expression": "'es' in 'yes no'"}
    blueprint = {"version": "0.1", "steps": [{**step, "branches": {"true": then}}]}
    made = asl.convert(load(blueprint, dialect="flujo"), target)
    assert "'es' in" not in made.text
    assert "has " not in made.text


def test_blueprint_without_steps_reports_where_its_input_is() -> None:
    blueprint = load({"version": "0.1", "steps": []}, dialect="flujo")
    losses = asl.convert(blueprint, "amazon").losses
    assert [each.pointer for each in losses if each.code == "L-INPUT"] == ["/steps"]


def test_a_step_may_be_called_as_nothing_is() -> None:
    """What stands for an output that may not be there is no name of a step."""
    body = [{"name": "a"}]
    step = {"kind": "map", "name": "?", "map": {"iterable_input": "items", "body": body}}
    plain, other = (
        asl.convert(asl.load({"steps": [{**step, "name": name}]}, dialect="flujo"), "codemie")
        for name in ("?", "o")
    )
    assert [each.code for each in plain.losses if each.code != "L-NAME"] == [
        each.code for each in other.losses if each.code != "L-NAME"
    ]


@pytest.mark.parametrize("to", ["amazon", "codemie", "contenox", "flujo"])
@pytest.mark.parametrize(
    ("state", "place"),
    [
        ("{{p}}", "/States/X"),
        ({"Type": "{{p}}", "End": True}, "/States/X"),
        ({"Type": "Map", "Iterator": "{{p}}", "End": True}, "/States/X/Iterator"),
        ({"Type": "Parallel", "Branches": ["{{p}}"], "End": True}, "/States/X/Branches"),
        ({"Type": "Choice", "Choices": ["{{p}}"], "Default": "X"}, "/States/X/Choices"),
        ({"Type": "Task", "Agent": "a", "Catch": "{{p}}", "End": True}, "/States/X/Catch"),
        (
            {"Type": "Map", "Iterator": {"StartAt": "Y", "States": "{{p}}"}, "End": True},
            "/States/X/Iterator/States",
        ),
    ],
)
def test_what_only_a_parameter_knows_is_not_converted(to: str, state: Json, place: str) -> None:
    template = {"Parameters": {"p": {}}, "StartAt": "X", "States": {"X": state}}
    with pytest.raises(asl.AslError, match=f"there is a parameter at {place}:"):
        asl.convert(template, to)


@pytest.mark.parametrize("to", ["amazon", "codemie", "contenox", "flujo"])
def test_a_template_is_converted_with_its_parameters(to: str) -> None:
    template = {"Parameters": {"p": {}}, "StartAt": "X", "States": {"X": "{{p}}"}}
    filled = asl.load(template, parameters={"p": {"Type": "Pass", "End": True}})
    assert asl.convert(filled, to).text
    assert asl.convert(template, "asl").document == template


@pytest.mark.parametrize(("to", "said"), [("codemie", "a.$: $.x"), ("flujo", "a.$: $.x")])
def test_arguments_in_jsonata_have_no_paths(to: str, said: str) -> None:
    state = {"Type": "Task", "Agent": "t", "Arguments": {"a.$": "$.x", "b": True}, "End": True}
    flow = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}
    assert said in asl.convert(flow, to).text


def test_the_text_of_a_task_is_no_longer_after_a_trip() -> None:
    """What an agent of a blueprint is given as its input is its task, not a line with a name."""
    task = {"id": "a", "assistant_id": "w", "task": "Help.", "next": {"state_id": "end"}}
    workflow = {"assistants": [{"id": "w", "system_prompt": "You help."}], "states": [task]}
    there = asl.convert(load(workflow, dialect="codemie"), "flujo")
    back = asl.convert(load(there.text, dialect="flujo", files=there.files), "codemie")
    assert [each["task"] for each in back.document["states"] if "task" in each] == ["Help."]


def test_a_system_prompt_goes_along() -> None:
    """Where both languages say what agents are made of; the report says what is not known."""
    assistants = [{"id": "w", "system_prompt": "Be brief."}, {"id": "r", "assistant_id": "0f-12"}]
    states = [
        {"id": "a", "assistant_id": "w", "task": "do", "next": {"state_id": "b"}},
        {"id": "b", "assistant_id": "r", "task": "see", "next": {"state_id": "end"}},
    ]
    there = asl.convert({"assistants": assistants, "states": states}, "flujo")
    prompts = {name: each["system_prompt"] for name, each in there.document["agents"].items()}
    assert prompts == {"w": "Be brief.", "r": "r"}
    assert [each.hint for each in there.losses if each.code == "L-ACTOR"] == [
        "complete them under agents"
    ]
    home = asl.convert(there.text, "codemie")
    assert [each["system_prompt"] for each in home.document["assistants"]] == [
        "Be brief.",
        "You are r.",
    ]


def test_a_third_language_keeps_nothing_in_metadata() -> None:
    """So no report says that it does; and what is missing is told of once."""
    workflow = {
        "name": "w",
        "recursion_limit": 9,
        "enable_summarization_node": True,
        "tokens_limit_before_summarization": 9,
        "assistants": [{"id": "w", "system_prompt": "Be brief."}],
        "states": [{"id": "a", "assistant_id": "w", "task": "{{x}}", "next": {"state_id": "end"}}],
    }
    for target in ("amazon", "contenox", "flujo"):
        losses = [*asl.convert(workflow, target).losses]
        assert not [each for each in losses if "Metadata" in str(each.hint)]
        assert sum(each.code == "L-MISSING" for each in losses) == 1
    kept = asl.convert(workflow, "asl").losses
    assert all("Metadata" in str(each.hint) for each in kept if each.code == "L-SETTING")


NAMES = (
    *("Ä ü", "名前", "a'b\"c", "true", "null", "and", "end", "a.b", "a~2", "x" * 80, "x y " * 20),
    *("{{x}}", "{%x%}", "-", "_", "*"),
)
"""Names that a language may have a meaning of its own for."""


def path_to(name: str) -> str:
    """Return the path of a member."""
    return "$['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']"


def named(name: str) -> dict[str, Any]:
    """Return documents that have a name in many places, by their dialects."""
    second = f"{name}2"[-80:] if name.isascii() else "second"
    goes = {"expression": "'yes' in output", "then": second, "otherwise": "end"}
    on = [{"operator": "equals", "when": "yes", "goto": second}, {"operator": "default"}]
    return {
        "asl": {
            "StartAt": name,
            "States": {
                name: {"Type": "Task", "Agent": "w", "ResultPath": "$.r", "Next": "C"},
                "C": {
                    "Type": "Choice",
                    "Choices": [{"Variable": "$.r", "StringEquals": "yes", "Next": "T"}],
                    "Default": "D",
                },
                "T": {"Type": "Task", "Agent": name, "ResultPath": path_to(name), "Next": "D"},
                "D": {"Type": "Pass", "Parameters": {"a.$": path_to(name)}, "End": True},
            },
        },
        "codemie": {
            "assistants": [{"id": name, "system_prompt": "x"}],
            "states": [
                {"id": name, "assistant_id": name, "task": "do", "next": {"condition": goes}},
                {"id": second, "assistant_id": name, "task": "do", "next": {"state_id": "end"}},
            ],
        },
        "contenox": {
            "id": "c",
            "tasks": [
                {"id": name, "handler": "prompt_to_string", "transition": {"branches": on}},
                {"id": second, "handler": "tools", "tools": {"name": name}, "input_var": name},
            ],
        },
        "flujo": {
            "steps": [
                {
                    "kind": "StateMachine",
                    "name": "sm",
                    "start_state": name,
                    "end_states": ["e"],
                    "states": {name: [{"name": name, "agent": {"id": "w"}, "sink_to": "r"}]},
                    "transitions": [
                        {"from": name, "on": "success", "to": "e", "when": "context.r == 'yes'"},
                        {"from": "*", "on": "failure", "to": "e"},
                    ],
                }
            ]
        },
    }


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_read_where_it_is_written(name: str) -> None:
    """In every language, and on the way back; a name that is refused is so while reading."""
    for source, document in named(name).items():
        try:
            found = asl.load(document, dialect=source)
            asl.check(found).raise_for_errors()
        except asl.InvalidDocument:
            continue
        for target in WRITTEN:
            convert_and_back(found, target, source)


def test_loss_at_one_place_is_reported_once() -> None:
    """However many states of the document stand for it."""
    ways = [{"operator": "equals", "when": each, "goto": each} for each in ("b", "c")]
    tasks = [
        {"id": "a", "handler": "prompt_to_string", "transition": {"branches": ways}},
        {"id": "b", "handler": "prompt_to_string"},
        {"id": "c", "handler": "prompt_to_string"},
    ]
    for target in WRITTEN:
        losses = [*asl.convert({"id": "c", "tasks": tasks}, target).losses]
        told = {(each.code, each.pointer, each.message, each.hint) for each in losses}
        assert len(told) == len(losses)


SETTLED = (
    *("one agent after another", "an agent is told something", "a text is put together"),
    *("an agent is given a part of the data", "a result stands beside the data", "a retry"),
    *("a time limit", "a constant", "a wait", "a checkpoint"),
)
"""What stands still in every language after it has gone there and back once or twice."""
SETTLED_BETWEEN = {
    ("contenox", "codemie"): ("a failure on purpose",),
    ("codemie", "contenox"): ("a failure on purpose",),
    ("flujo", "amazon"): ("a choice on a text", "a choice on a number", "a loop"),
}
"""What does so on certain ways."""


@pytest.mark.parametrize("source", [*FEATURES])
def test_a_document_that_goes_there_and_back_grows_no_longer(source: str) -> None:
    """On the third way it is what it was before."""
    for target in WRITTEN:
        for feature in (*SETTLED, *SETTLED_BETWEEN.get((source, target), ())):
            if feature in FEATURES[source] and target != source:
                texts = [*trips(FEATURES[source][feature], source, target)]
                assert texts[-1] == texts[-2], (target, feature)


def trips(what: Any, source: str, target: str) -> Iterator[str]:
    """Yield a document as it comes home, three times."""
    for _ in range(3):
        there = asl.convert(load(what, dialect=source), target)
        what = asl.convert(load(there.text, dialect=target, files=there.files), source).text
        yield what


@pytest.mark.parametrize(
    ("feature", "condition"),
    [("a choice on a number", "n > 5")],
)
def test_a_condition_comes_home_from_a_template(feature: str, condition: str) -> None:
    """A chain has it in a template, from where it is read again each time."""
    texts = [*trips(FEATURES["codemie"][feature], "codemie", "contenox")]
    assert [text.count(condition) for text in texts] == [1, 1, 1]


def test_assistant_gets_the_last_message_before_it() -> None:
    """What a state keeps out of the conversation is none."""
    extract = {"mappings": [{"output_field": "n", "type": "extract", "source_path": "a.n"}]}
    quiet = {"include_in_llm_history": False, "store_in_context": False}
    made = asl.convert(
        {
            "assistants": [{"id": "w", "system_prompt": "Be brief."}],
            "custom_nodes": [{"id": "t", "custom_node_id": "transform_node", "config": extract}],
            "states": [
                {"id": "a", "assistant_id": "w", "task": "do", "next": {"state_id": "x"}},
                {"id": "x", "custom_node_id": "t", "next": {**quiet, "state_id": "b"}},
                {"id": "b", "assistant_id": "w", "task": "see", "next": {"state_id": "end"}},
            ],
        },
        "amazon",
    )
    given = {"task": "see", "history": "{% $states.input.a_2 %}"}
    assert made.document["States"]["b"]["Arguments"] == given


@pytest.mark.parametrize(
    "states",
    ["${x}", {"A": "${x}"}, {"A": {"Type": "Parallel", "Branches": "${x}", "End": True}}],
)
def test_a_placeholder_for_structure_needs_a_value(states: Json) -> None:
    """A machine, a state or its branches that are a placeholder cannot be converted or planned."""
    document = {"StartAt": "A", "States": states}
    for to in ("amazon", "codemie", "contenox", "flujo"):
        with pytest.raises(asl.InvalidDocument, match="give the placeholder a value"):
            asl.convert(document, to)
    with pytest.raises(asl.InvalidDocument, match="give the placeholder a value"):
        asl.plan(document)


@pytest.mark.parametrize("to", ["amazon", "codemie", "contenox", "flujo"])
@pytest.mark.parametrize(
    "state",
    [
        {"Type": "Task", "Agent": "a", "Next": "Nowhere"},
        {
            "Type": "Task",
            "Agent": "a",
            "End": True,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Nowhere"}],
        },
        {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "Nowhere"}]},
    ],
    ids=["next", "catch", "choice"],
)
def test_transition_to_a_missing_state_is_lost(to: str, state: Any) -> None:
    conversion = asl.convert({"StartAt": "A", "States": {"A": state}}, to)
    assert "L-TARGET" in codes(conversion)
    assert not conversion.ok


@pytest.mark.parametrize(
    "document",
    [
        {"id": "c", "tasks": [{"id": "t", "handler": "route", "retry_on_failure": 1}]},
        {"steps": [{"name": "a", "uses": "desk:a"}]},
        {
            "assistants": [{"id": "a", "system_prompt": "x"}],
            "states": [{"id": "s", "assistant_id": "a", "next": {"state_id": "end"}}],
        },
    ],
)
def test_interval_of_a_platform_is_no_finding(document: dict[str, Any]) -> None:
    """Its platform waits for no whole second; on AWS the document is refused as before."""
    converted = asl.convert(document, "asl").document
    assert "V-RETRY-06" not in {each.code for each in asl.check(converted)}
    assert "V-RETRY-06" in {each.code for each in asl.check(converted, profile="aws")}
    without = {key: each for key, each in converted.items() if key != "Metadata"}
    assert "V-RETRY-06" in {each.code for each in asl.check(without)}
