"""The front door: load, check, compile, run and arun, and what they refuse."""

import ast
import asyncio
import copy
import inspect
import io
import json
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl

pytestmark = pytest.mark.quick

PASS = {"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True}}}
ASK = {"StartAt": "Ask", "States": {"Ask": {"Type": "Task", "Agent": "A", "End": True}}}
WAIT = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 90_000, "End": True}}}
DANGLING = {"StartAt": "Only", "States": {"Only": {"Type": "Pass", "Next": "Onyl"}}}
BOXED = {**PASS, "DefaultTools": {"Sandbox": {"Environment": "vm"}}}
YAML = "StartAt: Only\nStates:\n  Only: {Type: Pass, End: true}\n"


def shout(parameters: Any) -> Any:
    """An agent for `module:function`."""
    return {"shouted": parameters}


# Documents


def test_a_document_comes_from_anywhere(tmp_path: Path) -> None:
    """A path, a text, bytes, a dict, a stream of text or of bytes: all are the same document."""
    text = json.dumps(PASS)
    path = tmp_path / "only.asl.json"
    path.write_text(text)
    yaml = tmp_path / "only.asl.yaml"
    yaml.write_text(YAML)
    with path.open() as stream, path.open("rb") as binary:
        sources: list[Any] = [
            path, str(path), yaml, text, YAML, text.encode(), copy.deepcopy(PASS),
            io.StringIO(text), io.BytesIO(text.encode()), stream, binary,
        ]  # fmt: skip
        documents = [asl.load(source) for source in sources]
    assert all(document.value == PASS for document in documents)
    assert [asl.run(document, 7).output for document in documents] == [7] * len(sources)


@pytest.mark.parametrize("take", [asl.check, asl.compile, asl.run], ids=lambda f: f.__name__)
def test_every_function_takes_what_load_takes(take: Any, tmp_path: Path) -> None:
    """Loading first is never needed."""
    path = tmp_path / "only.asl.json"
    path.write_text(json.dumps(PASS))
    for what in (path, json.dumps(PASS), PASS, asl.load(PASS)):
        take(what)


def test_a_missing_file_is_named_with_its_neighbour(tmp_path: Path) -> None:
    """The hint is a file of a similar name."""
    (tmp_path / "review.asl.json").write_text("{}")
    with pytest.raises(asl.DocumentNotFound, match=r"did you mean 'review\.asl\.json'"):
        asl.load(tmp_path / "reveiw.asl.json")


@pytest.mark.parametrize(
    "text", ["{", "{]", '{"StartAt": }', '{"a": 1, "a": 2}', "a: [\n", "[1,\n2]"]
)
def test_a_text_that_cannot_be_read_carries_a_report(text: str) -> None:
    """With the place of every fault."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(text, name="broken")
    report = refusal.value.report
    assert not report.ok
    assert all(each.line is not None and each.file == "broken" for each in report)
    assert str(refusal.value).startswith("broken:")


@pytest.mark.parametrize("what", [None, 5, [], object()])
def test_what_is_no_document_at_all_is_misuse(what: Any) -> None:
    """The type that was given is named."""
    with pytest.raises(asl.AslError, match=type(what).__name__):
        asl.load(what)


def test_a_dict_that_is_not_json_is_refused_with_the_place() -> None:
    """As early as it is loaded."""
    with pytest.raises(asl.NotJson, match=r"\$\['States'\]\['Only'\]\['Result'\]"):
        asl.load({"StartAt": "Only", "States": {"Only": {"Type": "Pass", "Result": (1, 2)}}})


# Checking and compiling


def test_check_reports_and_does_not_raise() -> None:
    """A report knows whether there is an error, and yields its findings in order."""
    assert asl.check(PASS).ok
    report = asl.check(DANGLING)
    assert not report.ok
    assert [each.code for each in report.errors] == ["V-ST-03"]
    assert "'Onyl'" in report.errors[0].message
    assert len(report) == len(list(report))


def test_strict_makes_warnings_errors() -> None:
    """Without it a warning leaves the report in order."""
    risky = {
        "StartAt": "C",
        "States": {
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "IsNull": True, "Next": "E"}],
            },
            "E": {"Type": "Succeed"},
        },
    }
    assert asl.check(risky).ok
    assert asl.check(risky).warnings
    assert not asl.check(risky, strict=True).ok


def test_compile_refuses_what_check_finds() -> None:
    """The exception carries the report, and its text has one line for each error."""
    with pytest.raises(asl.InvalidDocument, match="V-ST-03") as refusal:
        asl.compile(DANGLING)
    assert refusal.value.report.errors == asl.check(DANGLING).errors
    assert isinstance(refusal.value, asl.AslError)


def test_what_is_not_executed_is_checked_but_not_compiled() -> None:
    """`EXEC-...` is information to a check, and an error to a run."""
    assert asl.check(BOXED).ok
    with pytest.raises(asl.InvalidDocument, match="EXEC-02"):
        asl.compile(BOXED)


def test_blocks_are_ignored_only_on_request() -> None:
    """A document with a block that is not executed does not run as if it had none."""
    with pytest.raises(asl.InvalidDocument, match="EXEC-02"):
        asl.run(BOXED)
    assert asl.run(BOXED, 1, ignore_blocks=True).output == 1


def test_a_program_is_reusable_and_named_after_its_file(tmp_path: Path) -> None:
    """One compilation, many runs."""
    path = tmp_path / "order.asl.json"
    path.write_text(json.dumps(PASS))
    program = asl.compile(path)
    assert program.name == "order"
    assert [asl.run(program, each).output for each in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("profile", ["default", "aws", "lenient"])
def test_profiles_go_by_name_or_object(profile: str) -> None:
    """Everywhere a profile is taken."""
    from asl.core.profile import PROFILES

    for each in (profile, PROFILES[profile]):
        assert asl.check(PASS, profile=each).ok
        assert asl.compile(PASS, profile=each).profile.name == profile
        assert asl.run(PASS, 1, profile=each).ok


@pytest.mark.parametrize("take", [asl.check, asl.compile, asl.run], ids=lambda f: f.__name__)
def test_an_unknown_profile_is_misuse(take: Any) -> None:
    """The message lists those there are."""
    with pytest.raises(asl.AslError, match=r"unknown profile 'strict'.*default, aws, lenient"):
        take(PASS, profile="strict")


def test_an_unknown_clock_is_misuse() -> None:
    """The message lists those there are."""
    with pytest.raises(asl.AslError, match=r"'clock' must be 'wall', 'virtual'.*'sun'"):
        asl.run(PASS, clock="sun")


async def _hears(event: Any, channel: Any = None) -> None:
    """Take an event, if anybody awaits it."""


MISUSES: list[tuple[Any, dict[str, Any], str]] = [
    (asl.load, {"source": "\ud800"}, "cannot read"),
    (asl.load, {"source": PASS, "dialect": 1}, "the name of a dialect must be text, got int"),
    (
        asl.load,
        {"source": PASS, "variables": 1},
        "'variables' must be a mapping from names to values",
    ),
    (
        asl.load,
        {"source": PASS, "variables": {1: 2}},
        "the names in 'variables' must be text, got int",
    ),
    (asl.convert, {"document": PASS, "to": []}, "the name of a dialect must be text, got list"),
    (asl.check, {"document": PASS, "agents": "Ada"}, "'agents' must be a list of names, got str"),
    (
        asl.check,
        {"document": PASS, "resources": [1]},
        "the names in 'resources' must be text, got int",
    ),
    (asl.check, {"document": PASS, "workflows": 1}, "'workflows' must be a list of names, got int"),
    (asl.plan, {"document": PASS, "prices": 1}, "'prices' must be a mapping from models to prices"),
    (asl.resume, {"result": None, "checkpoint": "c"}, "needs a Result, got NoneType"),
    (asl.run, {"workflow": PASS, "listener": 1}, "'listener' must be a function that takes"),
    (asl.run, {"workflow": PASS, "listener": _hears}, "'listener' must be a plain function"),
    (
        asl.run,
        {"workflow": PASS, "sinks": {"*": _hears}},
        r"the sink '\*' must be a plain function",
    ),
    (
        asl.run,
        {"workflow": PASS, "clock": asl.VirtualClock},
        "must be 'wall', 'virtual' or a clock",
    ),
    (asl.VirtualClock, {"start": "2024-01-01T00:00:00Z"}, "must be seconds since the epoch"),
    (asl.test_state, {"definition": PASS, "configuration": {1: 2}}, "a mapping from names"),
    *(
        (asl.run, {"workflow": PASS, name: ["x"]}, f"'{name}' must be a mapping from .*, got list")
        for name in ("agents", "tools", "workflows", "buckets", "pools", "sinks", "checkpoints")
    ),
    (asl.test_state, {"definition": PASS, "state": ["x"]}, "'state' must be the name of a state"),
    (asl.StepFunctions().test_state, {"definition": "\ud800"}, "INVALID_JSON_DESCRIPTION"),
    (asl.StepFunctions().test_state, {"definition": "{}", "mock": "x"}, r"at 'mock'"),
    (asl.TaskTokens().send_task_success, {"taskToken": "t", "output": "\ud800"}, "not JSON text"),
    (
        asl.run,
        {"workflow": PASS, "agents": {3: print}},
        "'agents' must be a mapping .*, got the key 3",
    ),
    (asl.open_store, {"path": ""}, "a store must be a file"),
    (
        asl.open_store,
        {"path": "s.db", "agents": ["x"]},
        "'agents' must be a mapping from .*, got list",
    ),
    (asl.open_store, {"path": "s.db", "listener": 1}, "'listener' must be a function that takes"),
    *(
        (asl.open_store, {"path": each}, "cannot be a store")
        for each in ("\0", "\ud800", "x" * 999)
    ),
]


@pytest.mark.parametrize(
    ("call", "arguments", "message"), MISUSES, ids=[str(number) for number in range(len(MISUSES))]
)
def test_error_of_misuse_shows_the_wrong_value(
    call: Any,
    arguments: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Never by an exception out of our depths; no file is created."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(asl.AslError, match=message):
        call(**arguments)
    assert [*tmp_path.iterdir()] == []


# Running


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "text", [], [1, [2]], {}, {"a": None}])
def test_any_json_value_is_input(value: Any) -> None:
    """Null, scalars, arrays and objects go through untouched."""
    result = asl.run(PASS, value)
    assert result.ok
    assert result.output == value
    assert type(result.output) is type(value)


def test_an_absent_input_is_an_empty_object() -> None:
    """Null has to be said."""
    assert asl.run(PASS).output == {}
    assert asl.run(PASS, None).output is None


def test_a_result_tells_what_happened() -> None:
    """Status, output, usage, route, time and events."""
    used = {"answer": 42, "_tokens": 10, "_cost": 0.25, "model": "m"}
    result = asl.run(ASK, {"q": 1}, agents={"A": {"return": used, "delay": 5}}, clock="virtual")
    assert result.ok
    assert result.to_json() == {
        "status": "SUCCEEDED",
        "output": used,
        "visited": ["Ask"],
        "usage": {
            "cost": 0.25,
            "tokens": 10,
            "byState": {"Ask": {"cost": 0.25, "tokens": 10}},
            "byModel": {"m": {"cost": 0.25, "tokens": 10}},
        },
        "elapsed": 5,
    }
    assert [event.type for event in result.events] == [
        "ExecutionStarted",
        "TaskStateEntered",
        "TaskScheduled",
        "TaskSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    json.dumps([event.to_json() for event in result.events], allow_nan=False)


def test_a_failed_workflow_is_a_result() -> None:
    """With error and cause, and no output."""
    result = asl.run(ASK, agents={"A": {"raise": {"Error": "Busy", "Cause": "later"}}})
    assert (result.status, result.error, result.cause) == ("FAILED", "Busy", "later")
    assert not result.ok
    told = result.to_json()
    assert told["error"] == "Busy"
    assert told["cause"] == "later"
    assert "output" not in told


def test_an_unbound_agent_fails_the_state_with_a_hint() -> None:
    """It is found when the state runs, as a failure of the workflow."""
    result = asl.run(ASK, agents={"B": {"return": 1}})
    assert result.error == "States.AgentNotFound"
    assert "'A'" in (result.cause or "")


@pytest.mark.parametrize(
    "agent",
    [shout, f"{__name__}:shout", {"return": {"shouted": 1}}],
    ids=["function", "name", "script"],
)
def test_an_agent_is_a_function_a_name_or_a_script(agent: Any) -> None:
    """All of them answer."""
    assert asl.run(ASK, 1, agents={"A": agent}).output == {"shouted": 1}


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("nowhere_at_all:f", "cannot import"),
        (f"{__name__}:shuot", "did you mean"),
        ("shout", "module:function"),
        (5, "int"),
        ({"retrun": 1}, "retrun"),
        (lambda: None, "takes"),
    ],
)
def test_a_binding_that_cannot_answer_is_misuse(agent: Any, message: str) -> None:
    """Before anything runs."""
    with pytest.raises(asl.AslError, match=message):
        asl.run(ASK, agents={"A": agent})


def test_resources_and_mocks_answer_for_tasks() -> None:
    """A mock of a state wins over the handler of its resource."""
    document = {
        "StartAt": "S",
        "States": {"S": {"Type": "Task", "Resource": "arn:aws:lambda:x:y:function:f", "End": True}},
    }
    resources = {"arn:aws:lambda:*:function:f": {"return": "handler"}}
    assert asl.run(document, resources=resources).output == "handler"
    mocked = asl.run(document, resources=resources, mocks={"S": {"return": "mock"}})
    assert mocked.output == "mock"


LITERALS = [
    {"Type": "Pass", "Result": {"a": [1]}},
    {"Type": "Pass", "Parameters": {"a": [1]}},
    {"Type": "Pass", "QueryLanguage": "JSONata", "Output": {"a": [1]}},
]


@pytest.mark.parametrize("state", LITERALS)
def test_what_a_run_returned_may_be_changed(state: dict[str, Any]) -> None:
    """It is no part of the document or the program, nor of the history."""
    document = asl.load({"StartAt": "A", "States": {"A": {**state, "End": True}}})
    program = asl.compile(document)
    result = asl.run(program)
    result.output["a"].append(2)
    assert asl.run(program).output == {"a": [1]}
    assert document.value["States"]["A"] == {**state, "End": True}
    assert result.events[-1].details == {"output": {"a": [1]}}


@pytest.mark.parametrize(
    "call", [lambda **more: asl.run(PASS, **more), partial(asl.open_store, "s.db")]
)
def test_unknown_option_is_refused_with_the_nearest(call: Any) -> None:
    """Of a store before anything is started, too."""
    text = r"\) got an unexpected keyword argument 'agnets'\. Did you mean 'agents'\?"
    with pytest.raises(TypeError, match=text):
        call(agnets={})
    with pytest.raises(TypeError, match=r"argument 'clokc'\. Did you mean 'clock'\?"):
        call(clokc="virtual")
    with pytest.raises(TypeError, match=r"argument 'xyzzy'$"):
        call(xyzzy=1)


@pytest.mark.parametrize("call", ["run", "resume", "redrive"])
def test_unknown_option_of_a_store_names_the_method(tmp_path: Path, call: str) -> None:
    """The method that was called, not the one that does its work."""
    with asl.Store(tmp_path / "s.db") as store:
        with pytest.raises(TypeError, match=rf"^Store\.{call}\(\) got an unexpected keyword"):
            getattr(store, call)("x", agnets={})
        with pytest.raises(TypeError, match=rf"^Store\.a{call}\(\) got an unexpected keyword"):
            asyncio.run(getattr(store, f"a{call}")("x", agnets={}))
        with pytest.raises(TypeError, match=r"^Store\.runner\(\) got an unexpected keyword"):
            store.runner(agnets={})  # type: ignore[misc]
        assert store.executions() == []


STORE = asl.Store
BLOCKING_AND_ASYNC = [(asl.run, asl.arun), (asl.resume, asl.aresume), (STORE.run, STORE.arun),
         (STORE.resume, STORE.aresume), (STORE.redrive, STORE.aredrive)]  # fmt: skip


@pytest.mark.parametrize("face", [*chain(*BLOCKING_AND_ASYNC), asl.open_store, STORE, STORE.runner])
def test_signature_has_every_option(face: Any) -> None:
    """By its name, with the type that `asl.Bindings` says and None for absent."""
    parameters = inspect.signature(face).parameters
    kinds = {each.kind for each in parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    for name, annotation in asl.Bindings.__annotations__.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].annotation == annotation.__forward_arg__
        assert parameters[name].default is None


@pytest.mark.parametrize(("blocking", "awaited"), BLOCKING_AND_ASYNC)
def test_blocking_and_async_take_the_same_options(blocking: Any, awaited: Any) -> None:
    """And in the same order."""
    assert str(inspect.signature(blocking)) == str(inspect.signature(awaited))


def test_option_none_is_that_of_the_store(tmp_path: Path) -> None:
    """None is the same as absent, and another takes the place of the store's for one run."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "W", "End": True}}}
    with asl.Store(tmp_path / "s.db", agents={"W": lambda data: 1}) as store:
        assert store.run(document, agents=None).output == 1
        assert store.run(document, agents={"W": lambda data: 2}).output == 2
        assert store.run(document).output == 1


def test_a_name_and_a_listener() -> None:
    """The execution bears its name; the listener hears every event of the history."""
    document = {
        "StartAt": "Only",
        "States": {
            "Only": {"Type": "Pass", "Parameters": {"n.$": "$$.Execution.Name"}, "End": True}
        },
    }
    heard: list[asl.Event] = []
    result = asl.run(document, name="mine", listener=heard.append)
    assert result.output == {"n": "mine"}
    assert heard == result.events


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=10,
)
CHANGING = {
    "StartAt": "Add",
    "States": {
        "Add": {"Type": "Pass", "Result": {"new": 1}, "ResultPath": "$.a.b", "Next": "Ask"},
        "Ask": {
            "Type": "Task",
            "Agent": "A",
            "ResultPath": "$.a.c",
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Each"}],
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "Put",
                "States": {
                    "Put": {"Type": "Pass", "Result": 0, "ResultPath": "$.put", "End": True}
                },
            },
            "End": True,
        },
    },
}


def spoil(parameters: Any) -> Any:
    """An agent that changes everything it gets, and returns it."""
    if isinstance(parameters, dict):
        for value in parameters.values():
            spoil(value)
        parameters["spoilt"] = True
    elif isinstance(parameters, list):
        for value in parameters:
            spoil(value)
        parameters.append("spoilt")
    return parameters


PROGRAM = asl.compile(CHANGING)


def test_a_result_that_is_printed_says_why() -> None:
    """Its output or its error and cause; both within some lines."""
    fail = {"Type": "Fail", "Error": "Late", "CausePath": "$.why"}
    document = {"StartAt": "F", "States": {"F": fail}}
    result = asl.run(document, {"why": "it rained"})
    assert repr(result) == "<Result FAILED error='Late' cause='it rained'>"
    assert len(repr(asl.run(document, {"why": "it rained " * 1000}))) < 500
    passes = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    assert repr(asl.run(passes, [1])) == "<Result SUCCEEDED output=[1]>"


@given(st.dictionaries(st.sampled_from(["a", "e", "x"]), JSON), st.lists(JSON, max_size=3))
def test_running_never_changes_the_input(data: Any, items: Any) -> None:
    """Whatever the states and their agents do to their own."""
    given_in = {**data, "items": items}
    before = copy.deepcopy(given_in)
    asl.run(PROGRAM, given_in, agents={"A": spoil})
    assert given_in == before


# Time and event loops


def test_virtual_time_takes_no_time() -> None:
    """By name or as an object, which says afterwards how late it is."""
    assert asl.run(WAIT, clock="virtual").elapsed == 90_000
    clock = asl.VirtualClock(start=1_000_000.0)
    assert asl.run(WAIT, clock=clock).ok
    assert clock.now() == 1_090_000.0


def test_wall_time_is_real() -> None:
    """A clock object serves as well as its name."""
    before = time.time()
    result = asl.run(PASS, clock=asl.WallClock())
    assert before <= result.execution.started <= result.ended <= time.time()


def test_run_inside_a_running_loop_is_refused() -> None:
    """It would block the loop; the message names the way out."""

    async def main() -> None:
        with pytest.raises(asl.AslError, match=r"await asl\.arun"):
            asl.run(PASS)

    asyncio.run(main())


def test_arun_runs_on_the_callers_loop() -> None:
    """Coroutines of agents share it with everybody else."""

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def agent(parameters: Any) -> Any:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            return parameters

        results = await asyncio.gather(*(asl.arun(ASK, n, agents={"A": agent}) for n in range(9)))
        assert [result.output for result in results] == list(range(9))

    asyncio.run(main())


def test_arun_on_the_virtual_clock_does_not_hold_up_the_loop() -> None:
    """It gets a loop of its own, in which a day passes at once."""

    async def main() -> None:
        results = await asyncio.wait_for(
            asyncio.gather(*(asl.arun(WAIT, clock="virtual") for _ in range(3))), 60
        )
        assert [result.elapsed for result in results] == [90_000] * 3

    asyncio.run(main())


def test_cancelling_arun_cancels_the_execution() -> None:
    """The agent that is being awaited is cancelled too."""

    async def main() -> None:
        stopped = asyncio.Event()
        entered = asyncio.Event()

        async def agent(parameters: Any) -> Any:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        task = asyncio.create_task(asl.arun(ASK, agents={"A": agent}))
        await asyncio.wait_for(entered.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stopped.is_set()

    asyncio.run(main())


def test_arun_refuses_as_run_does() -> None:
    """Documents with errors and unknown names."""

    async def main() -> None:
        with pytest.raises(asl.InvalidDocument):
            await asl.arun(DANGLING)
        with pytest.raises(asl.AslError, match="'clock' must be"):
            await asl.arun(PASS, clock="sun")
        with pytest.raises(asl.AslError, match="unknown profile"):
            await asl.arun(PASS, profile="strict")

    asyncio.run(main())


def test_the_module_has_what_it_promises_and_nothing_else() -> None:
    """Every name of `__all__` is there; any other is an AttributeError."""
    assert all(getattr(asl, name) is not None for name in asl.__all__)
    assert not hasattr(asl, "Interpreter")
    assert sorted(asl.__all__) == asl.__all__
    assert set(asl.__all__) <= {*dir(asl)}


def test_what_is_loaded_late_is_what_a_type_checker_sees() -> None:
    """The imports for type checkers name the same modules."""
    tree = ast.parse(inspect.getsource(asl))
    guards = [each for each in tree.body if isinstance(each, ast.If)]
    guarded = next(each for each in guards if ast.unparse(each.test) == "TYPE_CHECKING")
    imports = [each for each in guarded.body if isinstance(each, ast.ImportFrom)]
    seen = {name.name: each.module for each in imports for name in each.names}
    assert seen == asl._LAZY


def test_help_on_running_names_every_binding() -> None:
    """`help(asl.run)` and the help of `asl.Bindings` leave none out."""
    for name in asl.Bindings.__annotations__:
        assert f"\n    {name}: " in (inspect.getdoc(asl.run) or "")
        assert f"`{name}`" in (asl.Bindings.__doc__ or "")


@pytest.mark.parametrize("call", ["arun", "astart", "Store.arun"])
def test_large_documents_are_compiled_beside_the_event_loop(
    call: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A large document, as a value or as text, is compiled in a thread; a small one is not."""
    import threading

    threads: list[bool] = []
    compile_ = asl.documents.compiling.compile

    def compile_and_note(*given: Any, **named: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return compile_(*given, **named)

    monkeypatch.setattr("asl.documents.compiling.compile", compile_and_note)
    monkeypatch.setattr("asl.documents.compiling.SMALL", 200)
    states = {f"S{i}": {"Type": "Pass", "Next": f"S{i + 1}"} for i in range(20)}
    large = {"StartAt": "S0", "States": {**states, "S20": {"Type": "Succeed"}}}
    small = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}

    async def main() -> None:
        with asl.Store(tmp_path / "store") as store:
            start: Any = {"arun": asl.arun, "astart": store.astart, "Store.arun": store.arun}[call]
            for document in (large, json.dumps(large), small, json.dumps(small)):
                await start(document, 1)
            with pytest.raises(asl.InvalidDocument):
                await start(json.dumps({**large, "StartAt": "None"}), 1)

    asyncio.run(main())
    assert threads == [False, False, True, True, False]
