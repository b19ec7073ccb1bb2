"""The examples of the documentation: each runs to its end, and does what its blocks say."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.agents.file import load_bindings
from asl.cli.main import cli

Json = Any
EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an example: what goes in, what people answer, and what comes of it.

    `did` are events that its blocks make, in order: type, state, and some of the details.
    """

    input: Json
    route: str
    output: Json
    did: list[tuple[str, str, Json]] = field(default_factory=list)
    usage: Json = field(default_factory=dict)
    people: Json = field(default_factory=dict)
    status: str = "SUCCEEDED"


def tool(state: str, name: str) -> tuple[str, str, Json]:
    return "ToolCalled", state, {"tool": name}


DONE = {"text": "Your money is on its way.", "topic": "refund"}
BEES = {
    "title": "The dance of the bees",
    "tags": ["bees", "dance"],
    "text": "Bees dance. Write to .",
}
KEY = {"severity": 3, "text": "the key stands in the code"}
LOOP = {"severity": 1, "text": "a loop in a loop"}
RUNS: dict[str, list[Run]] = {
    "support": [
        Run(
            {"customer": "ada", "message": "Where is my invoice?"},
            "Classify Route FindInvoice Answer Remember Reply",
            {"topic": "invoice", "text": "It was sent to [EMAIL] in May."},
            [
                ("MemoryRead", "Classify", {}),
                tool("FindInvoice", "find_invoice"),
                ("MemoryWritten", "Remember", {}),
            ],
            {"cost": 0.12, "tokens": 240},
        ),
        Run(
            {"customer": "ada", "message": "I want my money back"},
            "Classify Route FindOrder IsMuch AskForRefund PayBack Answer Remember Reply",
            DONE,
            [tool("FindOrder", "find_order"), ("ApprovalDecided", "AskForRefund", {})],
            people={"AskForRefund": "pay"},
        ),
        Run(
            {"customer": "ada", "message": "I want my money back"},
            "Classify Route FindOrder IsMuch AskForRefund Answer Remember Reply",
            {"topic": "refund", "text": "We cannot pay this back."},
            people={"AskForRefund": "deny"},
        ),
        Run(
            {"customer": "ada", "message": "I want my money back"},
            "Classify Route FindOrder IsMuch AskForRefund",
            None,
            status="PAUSED",
        ),
    ],
    "article": [
        Run(
            {"topic": "bees", "readers": "children"},
            "Write Moderate IsFine Dress Publish",
            BEES,
            [
                ("BudgetAlert", "Title", {"at": 50.0}),
                ("TaskScheduled", "Publish", {"metadata": {"topic": "bees"}}),
            ],
            {"cost": 0.85, "byCategory": {"dress": {"cost": 0.25, "tokens": 0},
                                          "uncategorized": {"cost": 0.6, "tokens": 0}}},
        ),
    ],
    "change": [
        Run(
            {"change": 17},
            "Load Review Weigh IsSerious RequestChanges Tell",
            {"verdict": "changes", "issues": [LOOP]},
            [
                tool("Load", "read_file"),
                ("FallbackApplied", "Security", {"model": "small", "error": "Agent.ModelError"}),
            ],
            {"cost": 0.7, "tokens": 900},
        ),
        Run(
            {"change": 18},
            "Load Review Weigh IsSerious AskSenior Approve Tell",
            {"verdict": "approved", "issues": [KEY, LOOP]},
            [("ApprovalRequested", "AskSenior", {}), ("ApprovalDecided", "AskSenior", {})],
            {"byCategory": {"security": {"cost": 0.8, "tokens": 900},
                            "uncategorized": {"cost": 0.3, "tokens": 400}}},
            people={"AskSenior": "approve"},
        ),
        Run(
            {"change": 18},
            "Load Review Weigh IsSerious AskSenior RequestChanges Tell",
            {"verdict": "changes", "issues": [KEY, LOOP]},
            people={"AskSenior": "request_changes"},
        ),
    ],
    "question": [
        Run(
            {"question": "Why do bees dance?"},
            "Plan Search Check IsSure Write Reply",
            {"answer": "To tell where the flowers are.", "confidence": 0.9, "cost": 0.3},
            [tool("LookUp", "search")] * 3,
            {"cost": 0.3, "tokens": 400},
        ),
        Run(
            {"question": "Do bees really dance?"},
            "Plan Search Check IsSure AskPerson Search Check IsSure Write Reply",
            {"answer": "To tell where the flowers are.", "confidence": 0.8, "cost": 0.4},
            [tool("LookUp", "search")] * 6,
            people={"AskPerson": "search_again"},
        ),
    ],
    "goal": [
        Run(
            {"goal": "move house"},
            "Begin Clarify IsClear " + 3 * "Split Gather IsDone " + "Reply",
            {
                "goal": "move house",
                "tasks": ["drive", "books", "plates"],
                "left": [],
                "tokens": 590,
            },
            usage={"tokens": 590},
        ),
        Run(
            {"goal": "do something"},
            "Begin Clarify IsClear AskPerson Split Gather IsDone Reply",
            {"goal": "do something", "tasks": ["do something"], "left": [], "tokens": 110},
            [("ApprovalDecided", "AskPerson", {"approval": "sleep"})],
            people={"AskPerson": "sleep"},
        ),
    ],
}  # fmt: skip


def holds(part: Json, value: Json) -> bool:
    """Whether an object has at least the members of *part*."""
    return all(key in value and value[key] == each for key, each in part.items())


@pytest.mark.parametrize(
    ("name", "run"), [(name, run) for name, entry in RUNS.items() for run in entry]
)
def test_an_example_runs(name: str, run: Run) -> None:
    """It takes its way to its output, and its blocks do their part."""
    bound = load_bindings(EXAMPLES / f"{name}.agents.yaml")
    result = asl.run(
        EXAMPLES / f"{name}.asl.json",
        run.input,
        agents=bound.agents,
        tools=bound.tools,
        approvals=lambda request: run.people.get(request["state"]),
        clock="virtual",
    )
    assert (result.status, " ".join(result.visited)) == (run.status, run.route), result.cause
    assert result.output == run.output
    assert holds(run.usage, result.usage)
    events = iter(result.events)
    for type, state, details in run.did:
        assert any(
            event.type == type and event.path[-1:] == (state,) and holds(details, event.details)
            for event in events
        ), (type, state)


@pytest.mark.parametrize("name", RUNS)
def test_an_example_is_run_from_the_command_line(name: str) -> None:
    """The files beside it are all it needs, and nothing is remarked on it."""
    file, agents = (str(EXAMPLES / f"{name}.{kind}") for kind in ("asl.json", "agents.yaml"))
    checked = CliRunner().invoke(cli, ["check", "--strict", "--agents", agents, file, agents])
    assert checked.exit_code == 0, checked.output
    given = ["--agents", agents, "--input", f"@{EXAMPLES / f'{name}.input.json'}"]
    ran = CliRunner().invoke(cli, ["run", file, *given, "--virtual-time", "-q"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout) == RUNS[name][0].output


@pytest.mark.parametrize("name", RUNS)
def test_an_example_never_costs_more_than_its_plan(name: str) -> None:
    """Where the plan knows a bound."""
    most = asl.plan(EXAMPLES / f"{name}.asl.json").cost.maximum
    spent = [run.usage.get("cost", 0) for run in RUNS[name]]
    assert most is None or max(spent) <= most


@pytest.mark.parametrize("document", sorted(EXAMPLES.glob("*.asl.json")), ids=lambda f: f.name)
def test_an_example_has_the_usual_layout(document: Path) -> None:
    """What `asl fmt` would write is what is there."""
    laid_out = CliRunner().invoke(cli, ["fmt", "--check", str(document)])
    assert laid_out.exit_code == 0, laid_out.output
