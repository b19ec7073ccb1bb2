"""Streams: from threads, programs and models, under a store, in pieces of any size."""

import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.agents.file import load_bindings
from asl.states.blocks.chunks import LONGEST, MODES, Buffer, Chunker
from tests.deaths import Died

Json = Any


def task(**fields: Json) -> Json:
    """A workflow of one Task that streams."""
    return {
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Agent": "A", "Streaming": {}, "End": True, **fields}},
    }


def chunks(result: asl.Result) -> list[str]:
    """What has been shown."""
    return [event.details["chunk"] for event in result.events if event.type == "StreamChunk"]


@given(
    st.lists(st.text(max_size=20)), st.sampled_from(sorted(MODES)), st.integers(1, 30),
    st.integers(1, 40), st.booleans(),
)  # fmt: skip
def test_chunks_are_the_text(
    pieces: list[str], mode: str, least: int, size: int, on_newline: bool
) -> None:
    """However a text comes and is cut, the chunks are the text: whole, in order, long enough."""
    chunker, buffer = Chunker(mode, least), Buffer(size, on_newline)
    cut = [chunk for piece in pieces for chunk in chunker.feed(piece)]
    assert all(len(chunk) >= least for chunk in cut)
    assert mode != "chunk" or all(len(chunk) == least for chunk in cut)
    assert mode != "line" or all(chunk.endswith("\n") for chunk in cut)
    sent = [text for chunk in cut for text in buffer.put(chunk)]
    assert "".join(cut) + chunker.rest() == "".join(pieces)
    assert "".join(sent) + buffer.flush() == "".join(cut)


def test_chunks_are_bounded() -> None:
    """A line without an end is cut, and after many chunks they become longer."""
    assert [len(chunk) for chunk in Chunker("line", 1).feed("x" * 3 * LONGEST)] == 3 * [LONGEST]
    chunker = Chunker("token", 1)
    count = sum(1 for _ in range(100_000) for _ in chunker.feed("x"))
    assert count < 30_000


def test_an_agent_may_speak_from_any_thread() -> None:
    """What a plain function and threads of its own say comes in order, before the answer."""

    def speak(parameters: Json, call: asl.Call) -> Json:
        for number in range(50):
            helper = threading.Thread(target=call.report_chunk, args=(f"{number} ",))
            helper.start()
            helper.join()
        return "done"

    result = asl.run(task(), agents={"A": speak}, clock="virtual")
    assert "".join(chunks(result)) == "".join(f"{number} " for number in range(50))
    assert [event.type for event in result.events][-3] == "TaskSucceeded"


def test_task_without_streaming_has_no_chunk_events() -> None:
    """Without Streaming a piece of the answer is a sign of life, and nothing else."""

    def speak(parameters: Json, call: asl.Call) -> Json:
        assert call.listener is None
        call.report_chunk("x")
        return 1

    document = task()
    del document["States"]["A"]["Streaming"]
    assert chunks(asl.run(document, agents={"A": speak})) == []


@pytest.mark.parametrize("piece", [1, None, b"x"])
def test_a_piece_is_text(piece: Json) -> None:
    """Anything else is the agent's fault."""
    result = asl.run(task(), agents={"A": lambda parameters, call: call.report_chunk(piece)})
    assert result.error == "States.TaskFailed"
    assert "'text' must be text" in str(result.cause)


def test_half_a_character_does_no_harm(tmp_path: Path) -> None:
    """A lone surrogate is replaced: it could not be kept."""

    def speak(parameters: Json, call: asl.Call) -> Json:
        call.report_chunk("a\ud800b")
        return 1

    with asl.open_store(tmp_path / "runs.db", agents={"A": speak}) as store:
        assert chunks(store.run(task(), name="x")) == ["a?b"]


def test_an_answer_with_half_a_character_is_shown_and_refused() -> None:
    """What has been shown of it can be told all the same."""
    result = asl.run(task(), agents={"A": lambda parameters: "a\ud800b"})
    assert result.error == "States.TaskFailed"
    assert [event.to_json() for event in result.events]
    assert chunks(result) == ["a?b"]


def test_an_agent_cannot_say_more_than_an_answer_may_have() -> None:
    """It fails, even if it does not care."""
    said = 0

    def babble(parameters: Json, call: asl.Call) -> Json:
        nonlocal said
        for _ in range(100):
            try:
                call.report_chunk("x" * 1_000_000)
                said += 1
            except asl.StateError:
                pass
        return 1

    result = asl.run(task(), agents={"A": babble})
    assert result.error == "States.DataLimitExceeded"
    assert 0 < said < 70
    assert max(map(len, chunks(result))) <= LONGEST


def test_a_slow_callback_gets_everything_in_larger_pieces() -> None:
    """What has piled up is joined; nothing is lost and nothing grows without bound."""
    heard: list[str] = []

    async def slow(parameters: Json, call: asl.Call) -> None:
        await call.sleep(1)
        heard.append(parameters["chunk"])

    async def fast(parameters: Json, call: asl.Call) -> str:
        for _ in range(10_000):
            call.report_chunk("x")
        return "done"

    document = task(Streaming={"Callbacks": {"OnChunk": "Slow"}})
    result = asl.run(document, agents={"A": fast, "Slow": slow}, clock="virtual")
    assert result.ok
    assert "".join(heard) == "x" * 10_000
    assert len(heard) <= 66


def test_a_callback_that_raises_anything_is_a_warning() -> None:
    """It does not matter what."""

    def awful(parameters: Json) -> Json:
        raise SystemExit("now")

    document = task(Streaming={"Callbacks": {"OnChunk": "Awful", "OnComplete": "Awful"}})
    result = asl.run(document, agents={"A": {"return": "x"}, "Awful": awful}, clock="virtual")
    assert result.output == "x"
    warnings = [event.details for event in result.events if event.type == "StreamWarning"]
    assert [each["callback"] for each in warnings] == ["OnChunk", "OnComplete"]


def test_a_callback_cannot_stream_itself() -> None:
    """Its own pieces go nowhere."""

    def echo(parameters: Json, call: asl.Call) -> None:
        call.report_chunk("again")

    document = task(Streaming={"Callbacks": {"OnChunk": "Echo"}})
    agents = {"A": {"return": "x"}, "Echo": echo}
    assert chunks(asl.run(document, agents=agents, clock="virtual")) == ["x"]


PROGRAM = """
import json, os, sys
for line in sys.stdin:
    for piece in json.loads(line)["parameters"]["pieces"]:
        piece = piece.replace("KEY", os.environ.get("KEY", ""))
        print(json.dumps({"chunk": piece}), flush=True)
    print(json.dumps({"return": "done"}), flush=True)
"""


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_a_program_streams_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A secret is taken out, also where it comes in pieces."""
    monkeypatch.setenv("THE_KEY", "sesame")
    (tmp_path / "speak.py").write_text(PROGRAM)
    spec = {"A": {"command": [sys.executable, "speak.py"],
                  "environment": {"KEY": "${env:THE_KEY}"}}}  # fmt: skip
    (tmp_path / "agents.json").write_text(json.dumps(spec))
    text = "before sesame between sesamesesame sesam after"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    bound = load_bindings(tmp_path / "agents.json")
    result = asl.run(task(), {"pieces": pieces}, agents=bound.agents)
    assert result.ok, result.cause
    assert "".join(chunks(result)) == "before *** between ****** sesam after"


def test_a_program_says_text() -> None:
    """A chunk that is none breaks the protocol."""
    from asl.agents import ProcessAgent

    agent = ProcessAgent([sys.executable, "-c", "print('{\"chunk\": 5}', flush=True)\ninput()"])
    result = asl.run(task(), agents={"A": agent})
    assert result.error == "States.TaskFailed"
    assert "chunk" in str(result.cause)


def test_a_language_model_streams() -> None:
    """What the model says is shown as it says it; the result is the whole."""
    models = pytest.importorskip("pydantic_ai.models.function")
    from asl.agents import ModelAgent

    async def write(messages: Any, info: Any) -> AsyncIterator[str]:
        for piece in ("Dear ", "Ada, ", "bye."):
            yield piece

    agent = ModelAgent(models.FunctionModel(stream_function=write))
    result = asl.run(task(), {"prompt": "write"}, agents={"A": agent})
    assert result.ok, result.cause
    assert result.output["response"] == "Dear Ada, bye."
    assert chunks(result) == ["Dear ", "Ada, ", "bye."]


def recovered(path: Path, document: Json, first: Any, then: Any) -> tuple[asl.Result, list[str]]:
    """Start an execution that dies, go on with it, and return what the second life has shown."""
    with asl.open_store(path, agents=first) as store, pytest.raises(Died):
        store.run(document, {}, name="x")
    heard: list[str] = []

    def listen(event: asl.Event) -> None:
        if event.type == "StreamChunk":
            heard.append(event.details["chunk"])

    with asl.open_store(path, agents=then, listener=listen) as store:
        result = store.resume("x")
        assert result.events  # some of them stand in the store
        return result, heard


def after_a_stream(guardrails: Json | None = None) -> Json:
    document = task(**({} if guardrails is None else {"Guardrails": guardrails}), Next="B")
    del document["States"]["A"]["End"]
    document["States"]["B"] = {"Type": "Task", "Agent": "B", "End": True}
    return document


GUARDED = {"Output": {"Rules": [{"Type": "pattern", "Block": ["x"], "Action": "mask"}]}}


@pytest.mark.parametrize("guardrails", [None, GUARDED])
def test_a_finished_stream_is_not_shown_again(tmp_path: Path, guardrails: Json) -> None:
    """An execution that is recovered behind it has its chunks in the history, once."""

    def die(parameters: Json) -> Json:
        raise Died

    script = {"return": "ab", "reports": [{"chunk": "a"}, {"chunk": "b"}]}
    then = {"A": {"raise": {}}, "B": {"return": 1}}
    document = after_a_stream(guardrails)
    result, heard = recovered(tmp_path / "runs.db", document, {"A": script, "B": die}, then)
    assert result.ok
    assert heard == []
    assert chunks(result) == (["a", "b"] if guardrails is None else ["ab"])


def test_a_stream_that_was_cut_by_the_end_of_its_process_begins_again(tmp_path: Path) -> None:
    """The history holds what the answer that counts has said, and nothing of the first one."""

    def die(parameters: Json, call: asl.Call) -> Json:
        call.report_chunk("old 1, ")
        call.report_chunk("old 2, ")
        raise Died

    script = {"return": "new", "reports": [{"chunk": "new 1, "}, {"chunk": "new 2"}]}
    result, heard = recovered(tmp_path / "runs.db", task(), {"A": die}, {"A": script})
    assert result.ok
    assert heard == chunks(result) == ["new 1, ", "new 2"]


def test_a_guarded_stream_survives_between_its_answer_and_its_chunks(tmp_path: Path) -> None:
    """What was held back is kept with the answer: it is shown by whoever goes on."""

    def die(parameters: Json) -> Json:
        raise Died

    rules = {"Output": {"Validator": "V"}}
    document = task(Guardrails=rules)
    script = {"return": {"n": 1}, "reports": [{"chunk": "held"}]}
    then = {"A": {"raise": {}}, "V": {"return": {"valid": True}}}
    result, heard = recovered(tmp_path / "runs.db", document, {"A": script, "V": die}, then)
    assert result.ok, result.cause
    assert heard == chunks(result) == ["held"]
