"""What the blocks of published agent workflows do: every event of theirs, and no other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import asl
from asl.engine.memory import ProcessMemory

from .test_agent_documents import CONTENT, COSTS, DOCUMENTS, TABLE, WATCHED, path_of, script

pytestmark = pytest.mark.skipif(not DOCUMENTS.exists(), reason="the documents are not here")

Json = Any
TOLD = {
    *("GuardrailWarning", "GuardrailViolation", "ReasoningWarning", "AuditRecorded", "CacheHit"),
    *("MemoryRead", "MemoryWritten", "ContextBuilt", "ContextWarning", "FallbackApplied"),
    *("BudgetAlert", "BudgetExceeded", "StreamChunk", "StreamWarning", "FeedbackRequested"),
    *("ProgressUpdated", "MilestoneReached", "EventEmitted"),
}
"""The events that blocks tell."""


Told = tuple[str, str, dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Did:
    """An execution, and what blocks did in it.

    `events` are all that they have told: each by its type, the place (the states, without the
    numbers between them) and some of its details. `end` is the status, or the error.
    """

    name: str
    events: tuple[Told, ...]
    agents: Mapping[str, Json] = field(default_factory=dict)
    """Who answers otherwise than in the first run of the table."""
    people: Mapping[str, Json] = field(default_factory=dict)
    end: str = "SUCCEEDED"
    output: Mapping[tuple[str, ...], Json] = field(default_factory=dict)
    """What paths find in the output of states: what their blocks have put there, or taken out."""
    then: tuple[Told, ...] | None = None
    """The events of a second execution, which remembers the first."""


def paid(answer: Json, cost: float) -> Json:
    return {**answer, "_cost": cost, "_tokens": 10}


ITEM = ("ProgressUpdated", "AnalyzeSections")
KEYS = {"keys": ["user_profile", "preferences", "history"]}
DID = [
    Did(
        "example-content-pipeline",
        (("GuardrailWarning", "ModerateContent", {"direction": "output"}),),
        agents={
            "ContentModerator": {"flagged": True, "note": "ask ann@example.org of competitor_names"}
        },
        output={
            ("GenerateContent", "generationReasoning"): {"steps": []},
            ("ModerateContent", "moderation", "note"): "ask  of competitor_names",
        },
    ),
    Did(
        "example-content-pipeline",
        (("GuardrailViolation", "ModerateContent", {"direction": "output"}),),
        agents={"harmful_content": True},
        end="Agent.GuardrailViolation",
    ),
    Did(
        "example-content-pipeline",
        (),
        agents={"ContentGenerator": {"title": "T", "content": "C"}},
        end="Agent.InvalidOutput",
    ),
    Did(
        "example-content-pipeline",
        (("BudgetAlert", "ModerateContent", {"at": 75, "limit": "MaxCost", "spent": 1.2}),),
        agents={
            "ContentGenerator": paid(CONTENT["ContentGenerator"], 0.6),
            "ContentModerator": paid(CONTENT["ContentModerator"], 0.6),
        },
    ),
    Did(
        "example-customer-support",
        (
            ("MemoryRead", "LoadCustomerContext", {"keys": []}),
            ("MemoryWritten", "SaveInteraction", {"keys": ["customer_history"]}),
        ),
        then=(
            ("MemoryRead", "LoadCustomerContext", {"keys": ["customer_history"]}),
            ("MemoryWritten", "SaveInteraction", {"keys": ["customer_history"]}),
        ),
    ),
    Did(
        "example-research-assistant",
        (),
        agents={"Verifier": {"confidence": 0.5, "concerns": ["c"]}},
        end="Agent.InvalidOutput",
    ),
    Did(
        "example-research-assistant",
        (("BudgetExceeded", "QuickFactCheck", {"limit": "MaxCost", "max": 2, "spent": 2.5}),),
        agents={"FactChecker": paid({"summary": "s"}, 2.5)},
        end="States.BudgetExceeded",
    ),
    Did(
        "spec-06-human-in-the-loop.b19",
        (("FeedbackRequested", "Publish", {"type": "rating", "scale": [1, 5]}),),
        people={"HumanReview": "approve"},
    ),
    Did(
        "spec-07-cost-budget.b17",
        (("BudgetExceeded", "StandardResearch", {"limit": "MaxCost", "max": 2, "spent": 2.5}),),
        agents={"QuickResearcher": paid({"found": "air"}, 2.5)},
        end="States.BudgetExceeded",
    ),
    Did(
        "spec-09-streaming-progress.b18",
        (
            ("EventEmitted", "ParseDocument", {"type": "started_parsing", "on": "enter"}),
            ("ProgressUpdated", "ParseDocument", {"percentage": 60}),
            ("MilestoneReached", "ParseDocument", {"at": 50}),
            ("EventEmitted", "ParseDocument", {"type": "parsing_halfway", "on": "milestone"}),
            ("ProgressUpdated", "ParseDocument", {"percentage": 100}),
            ("MilestoneReached", "ParseDocument", {"at": 100}),
            ("EventEmitted", "ParseDocument", {"type": "parsing_complete", "on": "milestone"}),
            ("EventEmitted", "ParseDocument", {"type": "finished_parsing", "on": "exit"}),
            ("ProgressUpdated", "", {"percentage": 10, "completed": 1}),
            ("ProgressUpdated", "", {"percentage": 30, "completed": 2}),
            (*ITEM, {"total": 2, "completed": 0, "percentage": 0}),
            ("StreamChunk", "AnalyzeSections AnalyzeSection", {"chunk": "good"}),
            (*ITEM, {"percentage": 100}),
            (*ITEM, {"total": 2, "completed": 1, "percentage": 50}),
            ("StreamChunk", "AnalyzeSections AnalyzeSection", {"chunk": "good"}),
            (*ITEM, {"percentage": 100}),
            (*ITEM, {"total": 2, "completed": 2, "percentage": 100}),
            ("ProgressUpdated", "", {"percentage": 80, "completed": 3}),
            ("StreamChunk", "GenerateSummary", {"chunk": "All good. "}),
            ("StreamChunk", "GenerateSummary", {"chunk": "The end."}),
            ("MilestoneReached", "GenerateSummary", {"at": 100, "name": "final"}),
            ("EventEmitted", "GenerateSummary", {"type": "summary_complete", "on": "milestone"}),
            ("ProgressUpdated", "", {"percentage": 100, "completed": 4}),
        ),
        agents={
            "DocumentParser": {"return": "text", "reports": [{"progress": 60}]},
            "SectionExtractor": {"sections": ["one", "two"]},
            "SectionAnalyzer": "good",
            "Summarizer": "All good. The end.",
            "StreamToClient": None,
        },
    ),
    Did(
        "specification.b30",
        (("BudgetExceeded", "AnalyzeCode", {"limit": "MaxCost", "max": 2, "spent": 2.5}),),
        agents={"CodeAnalyzer": paid({"severity": "critical"}, 2.5)},
        end="States.BudgetExceeded",
    ),
    Did(
        "tutorial-06-memory-and-context.b01",
        (
            ("MemoryRead", "LoadUserContext", {"keys": []}),
            ("ContextBuilt", "ProcessRequest", {"parts": 2, "tokens": 3}),
            ("MemoryWritten", "SaveToMemory", KEYS),
        ),
        then=(
            ("MemoryRead", "LoadUserContext", KEYS),
            ("ContextBuilt", "ProcessRequest", {"parts": 2, "tokens": 3}),
            ("MemoryWritten", "SaveToMemory", KEYS),
        ),
    ),
    Did(
        "tutorial-10-cost-management.b01",
        (),
        agents=COSTS,
        then=(("CacheHit", "DeepAnalysis", {"scope": "workflow"}),),
    ),
    Did(
        "tutorial-10-cost-management.b01",
        (
            ("BudgetAlert", "DeepAnalysis", {"at": 50, "limit": "MaxCost"}),
            ("BudgetAlert", "DeepAnalysis", {"at": 80, "limit": "MaxCost"}),
            ("BudgetExceeded", "DeepAnalysis", {"level": "DeepAnalysis", "max": 2, "spent": 4.5}),
        ),
        agents={**COSTS, "DocumentAnalyzerAgent": {"analysis": "deep", "_cost": 4.5}},
        end="States.BudgetExceeded",
    ),
]


@pytest.mark.parametrize("did", DID, ids=lambda did: did.name)
def test_the_blocks_of_a_document_do_their_part(did: Did) -> None:
    """They tell this, in this order, and nothing else."""
    memory = ProcessMemory()
    for expected in (did.events, did.then):
        if expected is not None:
            result = executed(did, memory)
            assert did.end == (result.status if result.ok else result.error), result.cause
            assert_told(result, expected)
            left = {
                e.path[-1]: e.details["output"] for e in result.events if "StateExited" in e.type
            }
            for (state, *steps), value in did.output.items():
                found = left[state]
                for step in steps:
                    found = found[step]
                assert found == value


def executed(did: Did, memory: ProcessMemory) -> asl.Result:
    entry = TABLE[did.name]
    assert isinstance(entry, list)
    run, people = entry[0], {**entry[0].people, **did.people}
    answers = {**run.agents, **did.agents}
    return asl.run(
        path_of(did.name),
        run.input,
        agents={name: each if _is_script(each) else script(each) for name, each in answers.items()},
        profile="lenient",
        clock="virtual",
        prices=run.prices,
        memory={"redis": memory, "memory": memory},
        approvals=lambda request: people.get(request["state"]),
    )


def _is_script(answer: Json) -> bool:
    return isinstance(answer, dict) and "reports" in answer


def assert_told(result: asl.Result, expected: tuple[Told, ...]) -> None:
    told = [event for event in result.events if event.type in TOLD]
    places = [(event.type, [step for step in event.path if type(step) is str]) for event in told]
    assert places == [(type, place.split()) for type, place, _ in expected]
    for event, (_, _, details) in zip(told, expected, strict=True):
        assert {name: event.details[name] for name in details} == details


def test_no_block_is_unwatched() -> None:
    """Every document with a block that tells of itself is in a table; tools have their own."""
    blocks = ("Guardrails", "Reasoning", "Memory", "Context", "Budget", "Cache", "Feedback")
    found = {
        name
        for name, entry in TABLE.items()
        if isinstance(entry, list)
        and any(f'"{block}":' in path_of(name).read_text() for block in (*blocks, "Progress"))
    }
    assert found == {each.name for each in DID} | WATCHED.keys()
