"""What published workflows remember from one execution to the next, and what they show.

The documents lie beside the repository; without them these tests are skipped.
"""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.memories.sqlite import SqliteMemory

DOCUMENTS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "agent-asl"

pytestmark = pytest.mark.skipif(not DOCUMENTS.exists(), reason="the documents are not here")

Json = Any


def kept(memory: SqliteMemory, key: str) -> Any:
    entry = memory.get("memory:default", key, 0)
    assert entry is not None
    return entry


def test_customers_are_known_the_second_time(tmp_path: Path) -> None:
    """Their history grows by what every execution logs, for as long as the document says."""
    asked: list[Json] = []

    def load(parameters: Json) -> Json:
        asked.append(parameters["customerContext"])
        return {"customerId": "c", "message": "m", "customerContext": parameters["customerContext"]}

    agents = {
        "ContextLoader": load,
        "IntentClassifier": {"return": {"category": "refund"}},
        "RefundAgent": {"return": {"autoApprove": False, "amount": 200, "reason": "broken"}},
        "RefundProcessor": {"return": {"message": "ok"}},
        "InteractionLogger": {
            "sequence": [{"return": {"interaction": [number]}} for number in (1, 2)]
        },
    }
    memory = SqliteMemory(tmp_path / "m.db")
    for _ in range(2):
        result = asl.run(
            DOCUMENTS / "example-customer-support.asl.json",
            {"customerId": "c", "message": "m"},
            agents=agents,
            profile="lenient",
            clock="virtual",
            memory={"redis": memory},
            approvals=lambda request: {"approval": "partial", "partialAmount": 20},
        )
        assert result.ok, (result.error, result.cause)
    told = [
        (event.type, event.details["keys"]) for event in result.events if "Memory" in event.type
    ]
    assert told == [("MemoryRead", ["customer_history"]), ("MemoryWritten", ["customer_history"])]
    assert asked[0] == {"isNew": True}
    assert asked[1] == {"isNew": True, "customer_history": [1]}
    entry = kept(memory, "customer_history")
    assert entry.expires - entry.written == 30 * 86_400


def test_a_conversation_goes_on_where_it_was(tmp_path: Path) -> None:
    """The next execution reads what the last has kept, and the assistant is shown what matters."""
    shown: list[Json] = []

    def load(parameters: Json) -> Json:
        known = parameters["_memory"]
        return {
            "isNewUser": "history" not in known,
            "preferences": known.get("preferences", {"tone": "formal"}),
            "history": known.get("history", []),
        }

    def assist(parameters: Json, call: asl.Call) -> Json:
        shown.append(call.context)
        return {"message": "Hi", "newInteraction": parameters["userMessage"]}

    def update(parameters: Json) -> Json:
        history = [*parameters["history"], parameters["newInteraction"]]
        return {
            "historyCount": len(history),
            "userProfile": {"name": "Ann"},
            "preferences": {"tone": "casual"},
            "updatedHistory": history,
        }

    agents = {"ContextLoaderAgent": load, "AssistantAgent": assist, "HistoryUpdaterAgent": update}
    memory = SqliteMemory(tmp_path / "m.db")
    outputs = [
        asl.run(
            DOCUMENTS / "tutorial-06-memory-and-context.b01.asl.json",
            {"userId": "u", "userMessage": message},
            agents=agents,
            clock="virtual",
            memory=memory,
        ).output
        for message in ("hello", "me again")
    ]
    assert [(each["isNewUser"], each["interactionCount"]) for each in outputs] == [
        (True, 1),
        (False, 2),
    ]
    assert kept(memory, "history").value == ["hello", "me again"]
    assert [(part["path"], part["value"]) for part in shown[1]["parts"]] == [
        ("$.userMessage", "me again"),
        ("$.userContext.preferences", {"tone": "casual"}),
        ("$.userContext.history", ["hello"]),
    ]
    assert shown[1]["tokens"] == 2 + 5 + 3
    days = {key: kept(memory, key).expires / 86_400 for key in ("user_profile", "history")}
    written = kept(memory, "history").written / 86_400
    assert {key: each - written for key, each in days.items()} == {
        "user_profile": 365,
        "history": 90,
    }
