"""Checkpoints and redrives of an execution after its end, with a death at every instant."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import instants, lived
from tests.stores.conftest import Place

SAVING = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "Costly", "ResultPath": "$.a", "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "after-a", "TTL": "7d", "Next": "B"},
        "B": {"Type": "Task", "Agent": "Flaky", "ResultPath": "$.b", "End": True},
    },
}
COSTLY = {"Costly": {"return": {"v": 1, "_cost": 2}}}
BOOM = {**COSTLY, "Flaky": {"raise": {"Error": "Boom", "Cause": "no luck"}}}
LUCK = {"Flaky": {"return": {"ok": True}}}


def opened(path: Place, **bindings: Any) -> Store:
    return Store(path, synchronous="OFF", clock=asl.VirtualClock(), **bindings)


@pytest.fixture
def store(place: Place) -> Any:
    with opened(place) as store:
        yield store


def types(result: Any) -> list[str]:
    return [event.type for event in result.events]


def blocking(store: Store, call: str, *args: Any, **options: Any) -> asl.Result:
    """Call a method of a store."""
    result: asl.Result = getattr(store, call)(*args, **options)
    return result


def awaited(store: Store, call: str, *args: Any, **options: Any) -> asl.Result:
    """Await the async method of a store that does the same."""
    return asyncio.run(getattr(store, f"a{call}")(*args, **options))


either_face = pytest.mark.parametrize("face", [blocking, awaited])
either_form = pytest.mark.parametrize("form", [dict, asl.compile])
Face = Callable[..., asl.Result]


# Checkpoints


def test_another_process_resumes_from_a_checkpoint(place: Place) -> None:
    """Only what came after it is done; what was spent stays spent."""
    with opened(place, agents=BOOM) as store:
        failed = store.run(SAVING, {}, name="it")
        assert (failed.error, [each.name for each in failed.checkpoints]) == ("Boom", ["after-a"])
    with opened(place, agents=LUCK) as store:
        (checkpoint,) = store.checkpoints("it")
        assert (checkpoint.next, checkpoint.data) == ("B", {"a": {"v": 1, "_cost": 2}})
        result = store.resume("it", from_checkpoint="after-a")
        assert result.output == {"a": {"v": 1, "_cost": 2}, "b": {"ok": True}}
        assert result.visited == ["A", "Save", "B"]
        assert result.usage["cost"] == 2
        kept = store.result("it")
        assert (kept.status, kept.output, kept.visited) == (
            "SUCCEEDED",
            result.output,
            result.visited,
        )
        assert types(kept) == types(result)
        assert types(kept)[-8:] == [
            "TaskFailed", "ExecutionFailed", "ExecutionResumed", "TaskStateEntered",
            "TaskScheduled", "TaskSucceeded", "TaskStateExited", "ExecutionSucceeded",
        ]  # fmt: skip
        assert store.get("it").redrives == 1


def test_a_checkpoint_is_resumed_as_often_as_wanted(store: Store) -> None:
    """Each time it is a redrive more, and the redrives are seen by the states."""
    states = {**SAVING["States"], "B": {**SAVING["States"]["B"], "Parameters.$": "$"}}  # type: ignore[dict-item]
    states["B"] = {**SAVING["States"]["B"], "Parameters": {"n.$": "$$.Execution.RedriveCount"}}  # type: ignore[index]
    seen: list[Any] = []

    def flaky(parameters: Any) -> Any:
        seen.append(parameters["n"])
        if parameters["n"] < 3:
            raise asl.StateError("Boom")
        return parameters

    agents = {**COSTLY, "Flaky": flaky}
    store.run({**SAVING, "States": states}, {}, name="it", agents=agents)
    for _ in range(3):
        result = store.resume("it", from_checkpoint="after-a", agents=agents)
    assert seen == [0, 1, 2, 3]
    assert (result.status, result.visited) == ("SUCCEEDED", ["A", "Save", "B"])
    shown = [
        e.details["parameters"] for e in store.result("it").events if e.type == "TaskScheduled"
    ]
    assert shown[1:] == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("name", "later", "document", "refusal"),
    [
        ("after-b", 0, None, asl.CheckpointNotFound),
        ("after-a", 8 * 86400, None, asl.CheckpointExpired),
        ("after-a", 0, {**SAVING, "Comment": "other"}, asl.CheckpointIncompatible),
    ],
)
def test_what_cannot_be_resumed_is_refused(
    name: str, later: float, document: Any, refusal: type[Exception], store: Store
) -> None:
    """Nothing changes by that."""
    store.run(SAVING, {}, name="it", agents=BOOM)
    store.clock.elapsed += later  # type: ignore[attr-defined]
    with pytest.raises(refusal):
        store.resume("it", from_checkpoint=name, document=document, agents=LUCK)
    assert (store.get("it").status, store.get("it").redrives) == ("FAILED", 0)


@either_face
@either_form
def test_another_document_is_taken_by_force(store: Store, face: Face, form: Any) -> None:
    """History before it is still told by the old one."""
    store.run(SAVING, {"n": 1}, name="it", agents=BOOM)
    states = {"B": {"Type": "Pass", "Result": "new", "ResultPath": "$.b", "End": True}}
    other = {"StartAt": "B", "States": states}
    result = face(
        store, "resume", "it", from_checkpoint="after-a", document=form(other), force=True
    )
    assert result.output["b"] == "new"
    kept = store.result("it")
    assert types(kept) == types(result)
    assert kept.visited == ["A", "Save", "B"]


@pytest.mark.parametrize("answers", [None, "approve"])
def test_what_is_paused_or_has_succeeded_is_not_resumed(answers: Any, store: Store) -> None:
    """A pause is answered, a success is final."""
    states = {
        "S": {"Type": "Checkpoint", "Name": "n", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "?", "End": True},
    }
    store.run({"StartAt": "S", "States": states}, {}, name="it", approvals=lambda _: answers)
    with pytest.raises(asl.NotResumable):
        store.resume("it", from_checkpoint="n")


def test_a_crashed_execution_is_resumed_from_a_checkpoint(place: Place) -> None:
    """Its process has died: it is not running any more."""

    def die(parameters: Any) -> None:
        raise KeyboardInterrupt

    store = opened(place, agents={**COSTLY, "Flaky": die})
    with pytest.raises(KeyboardInterrupt):
        store.run(SAVING, {}, name="it")
    store.session.crash()
    store.close()
    with opened(place, agents=LUCK) as store:
        assert store.get("it").status == "RUNNING"
        result = store.resume("it", from_checkpoint="after-a")
        assert result.status == "SUCCEEDED"
        assert "ExecutionFailed" not in types(result)


def test_checkpoints_may_lie_in_files(tmp_path: Path) -> None:
    """Beside the store, where a missing one is said to be missing."""
    states = {**SAVING["States"], "Save": {**SAVING["States"]["Save"], "Storage": "file"}}  # type: ignore[index]
    with opened(tmp_path / "runs.db", agents=BOOM) as store:
        store.run({**SAVING, "States": states}, {"x": "y"}, name="it")
        (file,) = (tmp_path / "runs.db.checkpoints").iterdir()
        text = file.read_text()
        assert '"name":"after-a"' in text
        file.unlink()
        with pytest.raises(asl.CheckpointNotFound, match="the storage 'file' has no"):
            store.resume("it", from_checkpoint="after-a")
        file.write_text(text)
        assert store.resume("it", from_checkpoint="after-a", agents=LUCK).output["x"] == "y"


def test_the_names_of_checkpoints_go_on_over_processes(place: Place) -> None:
    """Automatic ones are counted, repeated ones are numbered."""
    document = {
        "Checkpointing": {},
        "StartAt": "A",
        "States": {
            "A": {"Type": "Checkpoint", "Name": "n", "Next": "B"},
            "B": {"Type": "Task", "Agent": "Flaky", "Next": "C"},
            "C": {"Type": "Checkpoint", "Name": "n", "End": True},
        },
    }
    with opened(place, agents=BOOM) as store:
        store.run(document, {}, name="it")
    with opened(place, agents=LUCK) as store:
        store.resume("it", from_checkpoint="auto-1")
        found = [(each.name, each.id.rpartition("it-")[2]) for each in store.checkpoints()]
    assert found == [("n", "n"), ("auto-1", "auto-1"), ("auto-2", "auto-2"), ("n", "n-2")]


# Redrives


def test_a_failed_state_is_tried_anew(store: Store) -> None:
    """With fresh retries; states before it are not repeated."""
    task = {
        "Type": "Task",
        "Agent": "Flaky",
        "Retry": [{"ErrorEquals": ["Boom"], "MaxAttempts": 2}],
    }
    document = {**SAVING, "States": {**SAVING["States"], "B": {**task, "End": True}}}  # type: ignore[dict-item]
    attempts: list[int] = []

    def flaky(parameters: Any, call: Any) -> Any:
        attempts.append(call.attempt)
        if len(attempts) < 6:
            raise asl.StateError("Boom")
        return "done"

    agents = {**COSTLY, "Flaky": flaky}
    assert store.run(document, {}, name="it", agents=agents).error == "Boom"
    result = store.redrive("it", agents={"Flaky": flaky})
    assert (result.status, result.output) == ("SUCCEEDED", "done")
    assert attempts == [1, 2, 3, 1, 2, 3]
    assert result.visited == ["A", "Save", "B"]
    assert result.usage["cost"] == 2
    kept = store.result("it")
    assert types(kept) == types(result)
    assert types(kept).count("ExecutionRedriven") == 1
    assert list(store.faults()) == []


@pytest.mark.parametrize("within", [False, True])
def test_a_fork_whose_result_was_too_large_is_done_again_as_a_whole(
    within: bool, store: Store
) -> None:
    """Its iterations have succeeded, and would come to the same again (AWS, redrive)."""
    size, calls = [100_000], []
    resource = "arn:aws:lambda:us-east-1:123456789012:function:f"
    work = {"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": resource, "End": True}}}
    each = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": work, "End": True}
    document = {"StartAt": "M", "States": {"M": each}}
    if within:
        both = {"Type": "Parallel", "Branches": [document], "End": True}
        document = {"StartAt": "P", "States": {"P": both}}

    def answer(parameters: Any) -> str:
        calls.append(parameters)
        return "x" * size[0]

    bound = {"resources": {"*": answer}}
    result = store.run(document, [1, 2, 3], name="it", profile="aws", **bound)
    assert result.error == "States.DataLimitExceeded"
    size[0] = 10
    assert store.redrive("it", **bound).ok
    assert sorted(calls) == [1, 1, 2, 2, 3, 3]
    assert types(store.result("it")).count("MapIterationSucceeded") == 6
    assert list(store.faults()) == []


def test_what_has_succeeded_is_not_redriven(store: Store) -> None:
    """In AWS's words; so is nothing that runs or waits."""
    store.run(SAVING, {}, name="it", agents={**COSTLY, **LUCK})
    with pytest.raises(asl.ExecutionNotRedrivable) as refusal:
        store.redrive("it")
    assert str(refusal.value) == "Execution is SUCCEEDED and cannot be redriven"


@either_face
@either_form
def test_a_corrected_document_goes_on_where_the_old_one_failed(
    store: Store, face: Face, form: Any
) -> None:
    """The failed state has another definition now, the ones before it keep their results."""
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "Costly", "ResultPath": "$.a", "Next": "B"},
            "B": {"Type": "Pass", "InputPath": "$.missing", "Next": "C"},
            "C": {"Type": "Pass", "End": True},
        },
    }
    assert store.run(document, {}, name="it", agents=COSTLY).error == "States.Runtime"
    assert face(store, "redrive", "it").error == "States.Runtime"
    states = {**document["States"], "B": {"Type": "Pass", "InputPath": "$.a.v", "Next": "C"}}  # type: ignore[dict-item]
    result = face(store, "redrive", "it", document=form({**document, "States": states}))
    assert (result.status, result.output) == ("SUCCEEDED", 1)
    assert result.visited == ["A", "B", "C"]
    assert types(store.result("it")) == types(result)
    assert store.get("it").redrives == 2
    with pytest.raises(asl.ExecutionExists):
        store.run(document, {}, name="it")


@either_face
def test_redrive_refuses_a_program_of_another_profile(store: Store, face: Face) -> None:
    """Nothing has changed then."""
    failing = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}
    store.run(failing, {}, name="it")
    refusal = "profile 'aws', and the execution 'it' has the profile 'default'"
    with pytest.raises(asl.AslError, match=refusal):
        face(store, "redrive", "it", document=asl.compile(failing, profile="aws"))
    assert store.get("it").redrives == 0


def test_a_document_without_the_failed_state_is_refused(store: Store) -> None:
    """What is missing is named by its pointer."""
    each = {
        "Type": "Map",
        "ItemsPath": "$",
        "ItemProcessor": {
            "StartAt": "In",
            "States": {"In": {"Type": "Task", "Agent": "Flaky", "End": True}},
        },
        "End": True,
    }
    store.run({"StartAt": "Each", "States": {"Each": each}}, [1], name="it", agents=BOOM)
    inner = {"StartAt": "Inn", "States": {"Inn": {"Type": "Pass", "End": True}}}
    other = {"StartAt": "Each", "States": {"Each": {**each, "ItemProcessor": inner}}}
    with pytest.raises(asl.ExecutionNotRedrivable, match=r"/States/Each/ItemProcessor/States/In$"):
        store.redrive("it", document=other)
    assert store.get("it").redrives == 0


def test_branches_that_have_ended_keep_their_places(store: Store) -> None:
    """What they came to is known by those, so another order would mix it up."""
    one, other, bad = (
        {"StartAt": name, "States": {name: {"Type": "Task", "Agent": agent, "End": True}}}
        for name, agent in (("One", "Costly"), ("Other", "Costly"), ("Bad", "Flaky"))
    )
    agents: dict[str, Any] = {**COSTLY, **BOOM}

    def document(*branches: Any) -> dict[str, Any]:
        state = {"Type": "Parallel", "Branches": list(branches), "End": True}
        return {"StartAt": "All", "States": {"All": state}}

    store.run(document(one, other, bad), {}, name="it", agents=agents)
    for branches in ((other, one, bad), (one, bad)):
        with pytest.raises(asl.ExecutionNotRedrivable, match=r"/States/All"):
            store.redrive("it", document=document(*branches), agents=agents)
    assert store.get("it").redrives == 0
    right = document(one, other, {**bad, "States": {"Bad": {"Type": "Pass", "End": True}}})
    assert store.redrive("it", document=right, agents=agents).ok


def test_a_timed_out_execution_goes_on_where_it_was_cut_off(store: Store) -> None:
    """Its time begins anew."""
    document = {**SAVING, "TimeoutSeconds": 60}
    agents: dict[str, Any] = {**COSTLY, "Flaky": {"hang": True}}
    assert store.run(document, {}, name="it", agents=agents).status == "TIMED_OUT"
    store.clock.elapsed += 3600  # type: ignore[attr-defined]
    result = store.redrive("it", agents={"Flaky": {"return": 1, "delay": 50}})
    assert (result.status, result.output["b"]) == ("SUCCEEDED", 1)


def test_an_aborted_execution_asks_again(store: Store) -> None:
    """The request that nobody has decided on is closed; the new one can be answered."""
    document = {
        "StartAt": "Ask",
        "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}},
    }
    store.run(document, {}, name="it")
    store.cancel("it")
    (request,) = store.redrive("it").pending
    store.answer(request["requestId"], "approve", by="ann")
    assert store.resume("it").output["approver"] == "ann"


def test_a_failed_approval_is_another_request(store: Store) -> None:
    """An answer that comes too late does not count for it."""
    ask = {"Type": "Approval", "Prompt": "?", "Timeout": "1h", "End": True}
    (first,) = store.run({"StartAt": "Ask", "States": {"Ask": ask}}, {}, name="it").pending
    store.clock.elapsed += 7200  # type: ignore[attr-defined]
    assert store.resume("it").error == "States.Timeout"
    (second,) = store.redrive("it").pending
    assert first["requestId"] != second["requestId"]
    with pytest.raises(asl.AnswerRefused):
        store.answer(first["requestId"], "approve")
    store.answer(second["requestId"], "approve")
    assert store.resume("it").status == "SUCCEEDED"


@pytest.mark.parametrize("child", [False, True], ids=["item", "child"])
def test_a_redrive_asks_anew_about_all_items(child: bool, place: Place) -> None:
    """Those that nobody asked about when it failed are not late the moment that they are."""
    ask = {"Type": "Approval", "Prompt": "?", "Timeout": "1h", "End": True}
    item = {"StartAt": "Ask", "States": {"Ask": ask}}
    start = {"Type": "Workflow", "WorkflowId": "item", "Timeout": "2h", "End": True}
    inner = {"StartAt": "Start", "States": {"Start": start}} if child else item
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    with opened(place, workflows={"item": item}) as store:
        store.run({"StartAt": "Each", "States": {"Each": each}}, [1, 2, 3], name="it")
        store.clock.elapsed += 7200  # type: ignore[attr-defined]
        assert store.resume("it").error == "States.Timeout"
        store.clock.elapsed += 7200  # type: ignore[attr-defined]
        asked = store.redrive("it").pending
        assert len(asked) == 3
        store.clock.elapsed += 3599  # type: ignore[attr-defined]
        for request in asked:
            store.answer(request["requestId"], "approve")
        assert store.resume("it").ok


# Redrives at every instant

LEAF = {
    "StartAt": "Leaf",
    "States": {
        "Leaf": {
            "Type": "Task",
            "Agent": "Work",
            "Parameters": {"at": "Leaf", "n.$": "$"},
            "End": True,
        }
    },
}
ITEM = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Task", "Agent": "Work", "Parameters": {"at": "First", "n.$": "$"},
                  "ResultPath": None, "Next": "Fan"},
        "Fan": {"Type": "Parallel", "Branches": [LEAF, {**LEAF, "StartAt": "Other", "States": {
            "Other": {"Type": "Task", "Agent": "Work", "Parameters": {"at": "Other", "n.$": "$"},
                      "Retry": [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 5}], "End": True}}}],
            "End": True},
    },
}  # fmt: skip
TREE = {
    "StartAt": "Begin",
    "States": {
        "Begin": {"Type": "Task", "Agent": "Work", "Parameters": {"at": "Begin", "n": 0},
                  "ResultPath": "$.begin", "Next": "Each"},
        "Each": {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": ITEM,
                 "ResultPath": "$.each", "Next": "Done"},
        "Done": {"Type": "Task", "Agent": "Work", "Parameters": {"at": "Done", "n": 0},
                 "ResultPath": "$.done", "End": True},
    },
}  # fmt: skip


class World:
    """Fails one leaf of one item until it is mended; remembers what was answered."""

    def __init__(self) -> None:
        self.mended = False
        self.answered: list[str] = []

    async def work(self, parameters: Any, call: Any) -> Any:
        at, n = parameters["at"], parameters["n"]
        if at == "Other" and n == 2 and not self.mended:
            await call.sleep(1)
            raise asl.StateError("Broken")
        if at == "Leaf" and n == 3:
            await call.sleep(100)
        self.answered.append(f"{at}{n}")
        return {"at": at, "n": n, "_tokens": 1}


def life(path: Place, world: World, die_at: int | None, redriven: bool) -> Any:
    """Start or redrive, or go on with either, up to the *die_at*-th instant; None for a death."""
    store = opened(path, agents={"Work": world.work})

    def live() -> Any:
        if not redriven:
            result = store.run(TREE, {"items": [1, 2, 3]}, name="it")
        elif store.get("it").status == "FAILED":
            result = store.redrive("it")
        else:
            result = store.resume("it")
        _ = result.events  # they are read from the file
        return result

    return lived(store, live, die_at)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Any]:
    """The agents and the result of an execution that is redriven, and that nothing interrupts."""
    world, folder = World(), tmp_path_factory.mktemp("whole")
    assert life(folder / "whole.db", world, None, False).error == "Broken"
    world.mended = True
    result = life(folder / "whole.db", world, None, True)
    assert result.status == "SUCCEEDED", (result.error, result.cause)
    return world, result


def test_finished_iterations_and_branches_are_not_repeated(whole: tuple[World, Any]) -> None:
    """What failed and what was cut off is done, and nothing else, at any depth."""
    world, result = whole
    assert sorted(world.answered) == sorted(
        [f"{at}{n}" for at in ("First", "Leaf", "Other") for n in (1, 2, 3)] + ["Begin0", "Done0"]
    )
    assert result.usage["tokens"] == 11
    assert result.visited == ["Begin", "Each", "Done"]


@pytest.mark.parametrize("die_at", instants(range(1, 60), 5))
def test_a_redrive_goes_on_after_a_crash(
    die_at: int, whole: tuple[World, Any], tmp_path: Path
) -> None:
    """Wherever the redriven execution dies, it comes to the same."""
    _, expected = whole
    world = World()
    life(tmp_path / "it.db", world, None, False)
    world.mended = True
    first = life(tmp_path / "it.db", world, die_at, True)
    result = life(tmp_path / "it.db", world, None, True) if first is None else first
    assert (result.status, result.output) == ("SUCCEEDED", expected.output)
    assert result.usage["tokens"] == expected.usage["tokens"]
    assert len(world.answered) - len(set(world.answered)) <= 3
    with opened(tmp_path / "it.db") as store:
        kept = store.result("it")
        assert types(kept) == types(result)
        assert types(kept).count("ExecutionRedriven") == 1
        assert (kept.visited, store.get("it").redrives) == (expected.visited, 1)
        assert list(store.faults()) == []


@pytest.mark.parametrize("die_at", instants(range(1, 60, 2), 5))
def test_a_crash_before_the_redrive_changes_nothing(
    die_at: int, whole: tuple[World, Any], tmp_path: Path
) -> None:
    """Wherever the failing execution died before, its redrive comes to the same."""
    _, expected = whole
    world = World()
    first = life(tmp_path / "it.db", world, die_at, False)
    failed = life(tmp_path / "it.db", world, None, False) if first is None else first
    assert failed.error == "Broken"
    world.mended = True
    result = life(tmp_path / "it.db", world, None, True)
    assert (result.status, result.output) == ("SUCCEEDED", expected.output)
    assert result.usage["tokens"] == expected.usage["tokens"]


@pytest.mark.parametrize("die_at", instants(range(1, 60, 3), 4))
def test_a_crashed_execution_that_was_stopped_is_redriven(
    die_at: int, whole: tuple[World, Any], tmp_path: Path
) -> None:
    """It goes on where its machines stood; what was acknowledged is not done again."""
    _, expected = whole
    world = World()
    world.mended = True
    if life(tmp_path / "it.db", world, die_at, False) is not None:
        return
    with opened(tmp_path / "it.db") as store:
        if not store.executions():
            return
        store.cancel("it", error="Stopped")
        assert (store.result("it").status, store.result("it").error) == ("ABORTED", "Stopped")
    with opened(tmp_path / "it.db", agents={"Work": world.work}) as store:
        result = store.redrive("it")
        assert (result.status, result.output) == ("SUCCEEDED", expected.output)
        assert result.usage["tokens"] == expected.usage["tokens"]
        assert types(store.result("it")) == types(result)
        assert "ExecutionAborted" in types(result)
        assert list(store.faults()) == []
    assert len(world.answered) - len(set(world.answered)) <= 3


def test_a_distributed_map_redrives_the_children_that_failed(store: Store) -> None:
    """Each from its failed state, though children leave no records."""
    child = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "One",
        "States": {
            "One": {"Type": "Task", "Agent": "One", "Next": "Two"},
            "Two": {"Type": "Task", "Agent": "Two", "End": True},
        },
    }
    each = {"Type": "Map", "MaxConcurrency": 1, "ToleratedFailureCount": 1, "ItemProcessor": child}
    calls: list[Any] = []
    mended = False

    def one(item: Any) -> Any:
        calls.append(("One", item))
        return item

    def two(item: Any) -> Any:
        calls.append(("Two", item))
        if item < 3 and not mended:
            raise asl.StateError("Boom")
        return item * 10

    agents = {"One": one, "Two": two}
    document = {"StartAt": "Each", "States": {"Each": {**each, "End": True}}}
    failed = store.run(document, [3, 1, 2, 4], name="it", agents=agents)
    assert failed.error == "States.ExceedToleratedFailureThreshold"
    calls.clear()
    mended = True
    result = store.redrive("it", agents=agents)
    assert result.output == [30, 10, 20, 40]
    assert calls == [("Two", 1), ("Two", 2), ("One", 4), ("Two", 4)]


def test_what_waits_beside_a_failure_waits_on_after_a_redrive(store: Store) -> None:
    """A branch that asks is asked about again, one that was cut off goes on."""
    branches = [
        {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 50, "End": True}}},
        {"StartAt": "Try", "States": {"Try": {"Type": "Task", "Agent": "Flaky", "End": True}}},
        {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "ResultPath": None,
                                              "End": True}}},
    ]  # fmt: skip
    document = {
        "StartAt": "Fork",
        "States": {"Fork": {"Type": "Parallel", "Branches": branches, "End": True}},
    }
    assert store.run(document, 1, name="it", agents=BOOM).error == "Boom"
    assert store.pending() == []
    (request,) = store.redrive("it", agents=LUCK).pending
    store.answer(request["requestId"], "approve")
    result = store.resume("it", agents=LUCK)
    assert result.output == [1, {"ok": True}, 1]
    assert types(store.result("it")) == types(result)


@pytest.mark.parametrize("lives", [1, 2])
def test_redrive_keeps_outputs_of_branches_that_ended(place: Place, lives: int) -> None:
    """A branch without effects gives what it gave before; a failed one sees the new count."""
    count = {"Parameters": {"n.$": "$$.Execution.RedriveCount"}, "End": True}
    branches = [
        {"StartAt": "P", "States": {"P": {"Type": "Pass", **count}}},
        {"StartAt": "W", "States": {"W": {"Type": "Task", "Agent": "Flaky", **count}}},
    ]
    fork = {
        "StartAt": "Fork",
        "States": {"Fork": {"Type": "Parallel", "Branches": branches, "End": True}},
    }
    for life in range(lives):
        with opened(place, agents=BOOM) as store:
            failed = store.redrive("it") if life else store.run(fork, name="it")
            assert failed.error == "Boom"
    with opened(place, agents={"Flaky": {"echo": True}}) as store:
        result = store.redrive("it")
        assert result.output == [{"n": 0}, {"n": lives}]
        (exited,) = (event for event in result.events if event.type == "PassStateExited")
        assert exited.details["output"] == {"n": 0}
        assert store.result("it").output == result.output
