"""Tools.RequireApproval: people approve tool calls before they are made."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import asl
from asl.agents import ModelAgent, Tool
from asl.executions import Store
from tests.deaths import lived

from .workflows import task, told

Json = Any
POLICY = {"RequireApproval": ["delete*"]}
PROGRAM = """
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    found = []
    for tool in ("read", "delete"):
        print(json.dumps({"tool": tool, "arguments": {"path": "a"}}), flush=True)
        found.append(json.loads(sys.stdin.readline()))
    print(json.dumps({"return": found}), flush=True)
"""


class Desk:
    """Tools that remember their calls, and agents that use them."""

    def __init__(self) -> None:
        self.calls: list[Json] = []

    def bindings(self, agent: Any) -> Json:
        """Return the bindings of an execution whose agent `A` is this one."""
        return {
            "agents": {"A": agent, "Inner": self.plain},
            "tools": {
                "read": lambda given: self.used("read", given),
                "delete": lambda given: self.used("delete", given),
            },
        }

    def used(self, tool: str, given: Json) -> Json:
        self.calls.append([tool, *given.values()])
        return {"did": tool, "_tokens": 5}

    def plain(self, parameters: Json, call: asl.Call) -> Json:
        """Use one tool after another."""
        self.calls.append("agent")
        found = [call.tools.call("read", {"path": "a"})]
        try:
            found.append(call.tools.call("delete", {"path": "a"}))
        except asl.StateError as error:
            found.append([error.name, error.cause])
        return {"found": found, "_tokens": 10}

    async def together(self, parameters: Json, call: asl.Call) -> Json:
        """Use several tools at the same time."""
        self.calls.append("agent")
        wanted = [("read", "a"), ("delete", "a"), ("delete", "b")]
        calls = (call.tools.call(tool, {"path": path}) for tool, path in wanted)
        found = await asyncio.gather(*calls, return_exceptions=True)
        return [each.name if isinstance(each, asl.StateError) else each for each in found]


def opened(folder: Path, **bindings: Any) -> Store:
    return Store(folder / "runs.db", synchronous="OFF", **{"clock": "virtual", **bindings})


def answered(store: Store, option: str, index: int = 0, **how: Any) -> None:
    store.answer(store.pending()[index]["requestId"], option, **{"by": "ann", **how})


@pytest.mark.parametrize("option", ["approve", "reject"])
def test_a_call_pauses_the_execution_until_people_decide(tmp_path: Path, option: str) -> None:
    """What was called before the pause is not called again; a rejection is told to the agent."""
    desk = Desk()
    bindings = desk.bindings(desk.plain)
    with opened(tmp_path, **bindings) as store:
        result = store.run(task(POLICY), {}, name="e")
        assert (result.status, desk.calls) == ("PAUSED", ["agent", ["read", "a"]])
        (request,) = result.pending
        shown = {key: request[key] for key in ("type", "state", "agent", "tool", "arguments")}
        assert shown == {
            "type": "tool",
            "state": "T",
            "agent": "A",
            "tool": "delete",
            "arguments": {"path": "a"},
        }
        assert request["options"] == ["approve", "reject"]
        assert '{"path":"a"}' in request["promptText"]
    with opened(tmp_path, **bindings) as store:
        assert store.resume("e").status == "PAUSED"
        assert desk.calls == ["agent", ["read", "a"]]  # nobody has decided: no call is made
        answered(store, option, comment="sure")
    with opened(tmp_path, **bindings) as store:
        result = store.resume("e")
        types = [event.type for event in result.events]
        assert list(store.faults()) == []
    done = [["delete", "a"]] if option == "approve" else []
    assert desk.calls == ["agent", ["read", "a"], "agent", *done]
    read, last = result.output["found"]
    assert read == {"did": "read", "_tokens": 5}
    if option == "approve":
        assert last == {"did": "delete", "_tokens": 5}
    else:
        cause = "tool 'delete': ann has rejected the call ('reject'): sure"
        assert last == ["Agent.ToolRejected", cause]
    assert result.usage["tokens"] == 10 + 5 + 5 * len(done)
    assert types[3:-3] == [
        "ToolCalled",
        "ApprovalRequested",
        "ExecutionPaused",
        "ExecutionResumed",
        "ApprovalDecided",
        "ToolCalled" if option == "approve" else "ToolRefused",
    ]


def test_calls_at_the_same_time_are_asked_together(tmp_path: Path) -> None:
    """Each is made as soon as it is approved, and once; the turn waits for all."""
    desk = Desk()
    bindings = desk.bindings(desk.together)
    with opened(tmp_path, **bindings) as store:
        result = store.run({**task(POLICY), "Budget": {"MaxTokens": 99}}, {}, name="e")
        assert [request["arguments"]["path"] for request in result.pending] == ["a", "b"]
        answered(store, "approve")
        assert store.resume("e").status == "PAUSED"
        assert desk.calls == ["agent", ["read", "a"], "agent", ["delete", "a"]]
        answered(store, "reject")
        result = store.resume("e")
        assert [event.type for event in result.events].count("ToolCalled") == 2
    assert result.output == [
        {"did": "read", "_tokens": 5},
        {"did": "delete", "_tokens": 5},
        "Agent.ToolRejected",
    ]
    assert desk.calls == ["agent", ["read", "a"], "agent", ["delete", "a"], "agent"]
    assert (result.usage["tokens"], result.usage["assumed"]["tokens"]) == (10, 0)


@pytest.mark.parametrize("die_at", range(1, 40))
def test_no_instant_of_death_makes_an_approved_call_twice(tmp_path: Path, die_at: int) -> None:
    """A process may die anywhere: what people have decided is decided, what is recorded is done."""
    desk, asked = Desk(), set()
    bindings = desk.bindings(desk.plain)

    def live(store: Store) -> asl.Result:
        if not store.executions():
            store.run(task(POLICY), {}, name="e")
        for request in store.pending():
            asked.add(request["requestId"])
            store.answer(request["requestId"], "approve", by="ann")
        if store.get("e").status != "SUCCEEDED":
            store.resume("e")
        return store.result("e")

    first, second = opened(tmp_path, **bindings), None
    lived(first, lambda: live(first), die_at)
    second = opened(tmp_path, **bindings)
    lived(second, lambda: live(second), die_at)
    with opened(tmp_path, **bindings) as store:
        while (result := live(store)).status == "PAUSED":
            pass
        types = [event.type for event in result.events]
        assert list(store.faults()) == []
    assert result.output["found"][1] == {"did": "delete", "_tokens": 5}
    assert len(asked) <= 1
    assert types.count("ApprovalRequested") == types.count("ApprovalDecided") == 1
    assert types.count("ToolCalled") == 2


def test_a_handler_decides_while_the_agent_waits() -> None:
    """No pause is needed; the time that it takes passes on the clock of the run."""
    desk, seen = Desk(), []

    async def handler(request: Json, call: asl.Call) -> str:
        await call.sleep(100)
        seen.append(request["tool"])
        return "approve"

    bindings = {**desk.bindings(desk.together), "approvals": handler, "clock": "virtual"}
    result = asl.run(task(POLICY), {}, **bindings)
    assert (result.status, seen, result.elapsed) == ("SUCCEEDED", ["delete", "delete"], 100)


def test_without_anybody_to_ask_nothing_is_called() -> None:
    """As with an Approval, silence is no consent."""
    desk = Desk()
    result = asl.run(task(POLICY), {}, **desk.bindings(desk.together))
    assert (result.status, len(result.pending)) == ("PAUSED", 2)
    assert desk.calls == ["agent", ["read", "a"]]


def test_a_program_is_started_again_and_finds_what_its_tools_answered(tmp_path: Path) -> None:
    """It cannot be frozen, so it is ended."""
    desk, script = Desk(), tmp_path / "agent.py"
    script.write_text(PROGRAM)
    bindings = desk.bindings(asl.agents.ProcessAgent([sys.executable, str(script)]))
    with Store(tmp_path / "runs.db", **bindings) as store:
        assert store.run(task(POLICY), {}, name="e").status == "PAUSED"
        answered(store, "approve")
        result = store.resume("e")
    assert [each["return"]["did"] for each in result.output] == ["read", "delete"]
    assert desk.calls == [["read", "a"], ["delete", "a"]]


def test_a_model_is_not_asked_again_for_what_it_has_answered(tmp_path: Path) -> None:
    """And it goes on after a rejection."""
    desk, asked = Desk(), []
    turns: list[Json] = [
        [ToolCallPart("read", {"path": "a"}), ToolCallPart("delete", {"path": "a"})],
        [TextPart("done")],
    ]

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = sum(isinstance(each, ModelResponse) for each in messages)
        asked.append([str(part.content) for part in messages[-1].parts])
        return ModelResponse(turns[number])

    bindings = desk.bindings(ModelAgent(FunctionModel(model)))
    bindings["tools"] = {name: Tool(name, name, tool) for name, tool in bindings["tools"].items()}
    document = task({"Allowed": ["read", "delete"], **POLICY})
    with Store(tmp_path / "runs.db", **bindings) as store:
        assert store.run(document, {"prompt": "go"}, name="e").status == "PAUSED"
        answered(store, "reject")
        result = store.resume("e")
        assert told(result)[-1] == ("ToolRefused", "delete", "Agent.ToolRejected")
    assert result.output["response"] == "done"
    assert asked[0] == ["go"]
    assert asked[1][1] == "tool 'delete': ann has rejected the call ('reject')"
    assert len(asked) == 2


TERMS = {
    "Tools": ["delete"],
    "Options": ["go", "later", "never"],
    "Timeout": "2h",
    "Policy": {"Approvers": {"Users": ["ann", "bo"]}, "RequiredApprovals": 2},
    "Notifications": {"Channels": [{"Type": "mail"}]},
}


def test_terms_are_those_of_an_approval(tmp_path: Path) -> None:
    """Options, approvers and how many of them must approve."""
    desk, sent = Desk(), []
    bindings = {**desk.bindings(desk.plain), "notify": lambda kind, *_: sent.append(kind)}
    with opened(tmp_path, **bindings) as store:
        (request,) = store.run(task({"RequireApproval": TERMS}), {}, name="e").pending
        assert (request["options"], request["timeout"]) == (["go", "later", "never"], "2h")
        with pytest.raises(asl.AnswerRefused, match="may not decide"):
            answered(store, "go", by="eve")
        answered(store, "go")
        assert store.resume("e").status == "PAUSED"
        answered(store, "go", by="bo")
        assert store.resume("e").output["found"][1]["did"] == "delete"
    assert sent == ["request"]


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (None, "Agent.ToolRejected"),
        ("AutoReject", "Agent.ToolRejected"),
        ("AutoApprove", "delete"),
        ("Fail", "States.Timeout"),
        ("Escalate", "Agent.ToolRejected"),
    ],
)
def test_on_timeout_decides(tmp_path: Path, action: str | None, outcome: str) -> None:
    """Without a word the call is rejected; an escalation starts the time once more."""
    desk, clock = Desk(), asl.VirtualClock()
    rule = {"Tools": ["delete"], "Timeout": "2h"} | ({"OnTimeout": action} if action else {})
    with opened(tmp_path, clock=clock, **desk.bindings(desk.plain)) as store:
        store.run(task({"RequireApproval": [rule]}), {}, name="e")
        wake = store.get("e").wake
        assert wake == clock.now() + 7200
        clock.elapsed += 7201
        assert store.due() == ["e"]
        result = store.resume("e")
        if action == "Escalate":
            assert (result.status, store.get("e").wake) == ("PAUSED", wake + 7200)
            clock.elapsed += 7200
            result = store.resume("e")
            assert "ApprovalEscalated" in [event.type for event in result.events]
    found = result.output["found"][1]
    assert (found["did"] if type(found) is dict else found[0]) == outcome
    assert desk.calls.count("agent") == 2


def test_the_timeout_of_the_state_goes_on(tmp_path: Path) -> None:
    """While people are asked as at any other time."""
    desk, clock = Desk(), asl.VirtualClock()
    with opened(tmp_path, clock=clock, **desk.bindings(desk.plain)) as store:
        result = store.run(task(POLICY, TimeoutSeconds=60), {}, name="e")
        assert result.pending[0]["expiresAt"] is not None
        assert store.get("e").wake == clock.now() + 60
        clock.elapsed += 59
        assert store.resume("e").status == "PAUSED"
        clock.elapsed += 2
        result = store.resume("e")
    assert (result.status, result.error) == ("FAILED", "States.Timeout")
    assert desk.calls == ["agent", ["read", "a"]]


def test_every_policy_around_asks(tmp_path: Path) -> None:
    """That of the document and that of the state together, equal terms once."""
    desk = Desk()
    finance = {"Tools": ["del*"], "Policy": {"Approvers": {"Roles": ["finance"]}}}
    document = {
        **task({"RequireApproval": ["delete", finance]}),
        "DefaultTools": {"RequireApproval": ["delete"]},
    }
    rule = {"Tools": ["delete"], "Options": ["ok", "no"]}
    operator = {"Tools": {"RequireApproval": rule}}
    seen = []

    def handler(request: Json) -> Json:
        seen.append([request["options"][0], "policy" in request])
        return {"approval": request["options"][0], "roles": ["finance"], "approver": "fin"}

    result = asl.run(document, {}, **desk.bindings(desk.plain), approvals=handler, policy=operator)
    assert result.output["found"][1]["did"] == "delete"
    assert seen == [["ok", False], ["approve", False], ["approve", True]]


def test_consent_is_needed_within_tools_hooks_and_child_executions() -> None:
    """Rights only shrink on the way down."""
    desk = Desk()
    bindings = desk.bindings({"use": [{"tool": "inner"}]})
    bindings["tools"]["inner"] = desk.plain
    result = asl.run(task(POLICY), {}, **bindings)
    assert [each["tool"] for each in result.pending] == ["delete"]
    document = {
        "StartAt": "C",
        "DefaultTools": POLICY,
        "States": {"C": {"Type": "Workflow", "WorkflowId": "child", "End": True}},
    }
    bindings = desk.bindings(desk.plain)
    result = asl.run(document, {}, workflows={"child": task()}, **bindings)
    assert (result.status, result.pending[0]["tool"]) == ("PAUSED", "delete")
    hooked = task({**POLICY, "Hooks": {"Before": {"Agent": "Inner"}}})
    bindings = desk.bindings({"use": [{"tool": "read"}]})
    bindings["agents"]["Inner"] = {"use": [{"tool": "delete"}]}
    result = asl.run(hooked, {}, **bindings)
    assert [each["tool"] for each in result.pending] == ["delete"]


def test_a_retry_asks_again(tmp_path: Path) -> None:
    """An attempt is a turn of its own."""
    desk = Desk()
    agent = {"use": [{"tool": "delete", "arguments": {"path": "a"}}]}
    retry = [{"ErrorEquals": ["Agent.ToolRejected"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    with opened(tmp_path, **desk.bindings(agent)) as store:
        store.run(task(POLICY, Retry=retry), {}, name="e")
        answered(store, "reject")
        assert store.resume("e").status == "PAUSED"
        answered(store, "approve")
        assert store.resume("e").status == "SUCCEEDED"
    assert desk.calls == [["delete", "a"]]


def test_a_request_on_which_nothing_depends_is_withdrawn(tmp_path: Path) -> None:
    """An agent may end while it waits for a tool."""
    desk = Desk()

    async def hasty(parameters: Json, call: asl.Call) -> Json:
        waiting = asyncio.ensure_future(call.tools.call("delete", {"path": "a"}))
        while not call.at.effects.runtime.pending:
            await asyncio.sleep(0)
        waiting.cancel()
        return "done"

    with opened(tmp_path, **desk.bindings(hasty)) as store:
        assert store.run(task(POLICY), {}, name="e").output == "done"
        assert store.pending() == []
    assert desk.calls == []


def test_branches_pause_by_themselves(tmp_path: Path) -> None:
    """Others go on; each item of a Map has a request of its own."""
    desk = Desk()
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": task(POLICY), "End": True}},
    }
    with opened(tmp_path, **desk.bindings(desk.plain)) as store:
        result = store.run(document, [1, 2, 3], name="e")
        assert len(result.pending) == 3
        for _ in range(3):
            answered(store, "approve")
        result = store.resume("e")
    assert [each["found"][1]["did"] for each in result.output] == ["delete"] * 3
    assert desk.calls.count(["read", "a"]) == desk.calls.count(["delete", "a"]) == 3


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("delete", "V-TOOLS-01"),
        ([3], "V-TOOLS-01"),
        ({"Timeout": "2h"}, "V-TOOLS-09"),
        ({"Tools": ["x"], "Prompt": "?"}, "V-TOP-09"),
        ({"Tools": ["x"], "Options": []}, "V-TOOLS-09"),
        ({"Tools": ["x"], "Options": ["*", "no"]}, "V-TOOLS-09"),
        ({"Tools": ["x"], "Timeout": "soon"}, "V-APR-03"),
        ({"Tools": ["x"], "OnTimeout": "Fail"}, "V-APR-17"),
        ({"Tools": ["x"], "Timeout": "2h", "OnTimeout": "AutoApprove"}, "V-APR-14"),
        (
            {
                "Tools": ["x"],
                "Policy": {"Approvers": {"Users": ["ann"]}, "RequiredApprovals": 2},
            },
            "V-APR-10",
        ),
        (["delete_file"], "V-TOOLS-02"),
    ],
)
def test_terms_that_do_not_fit_are_found(written: Json, code: str) -> None:
    """In a list as in the object alone."""
    policies = [written, [written]] if type(written) is dict else [written]
    for each in policies:
        report = asl.check(task({"RequireApproval": each, "Denied": ["delete*"]}))
        assert code in [finding.code for finding in report], each


def test_computed_terms_that_do_not_fit_fail_the_state() -> None:
    """As every computed field of a policy does."""
    for wrong in ("x", [3], {"Tools": "x"}, {"Tools": ["x"], "Timeout": "soon"}):
        document = task({"RequireApproval.$": "$.who"})
        result = asl.run(document, {"who": wrong}, agents={"A": {"offered": True}})
        assert (result.error, "RequireApproval" in str(result.cause)) == ("States.Runtime", True)


def closed(request: Json) -> Json:
    raise asl.StateError("Desk.Closed", "no approver today")


@pytest.mark.parametrize(
    ("approvals", "error"),
    [
        (lambda request: "perhaps", "States.InvalidApproval"),
        (lambda request: {"approval": "approve", "approver": 1}, "States.InvalidApproval"),
        (closed, "Desk.Closed"),
    ],
)
def test_failed_consent_is_recorded_as_refused_under_its_error(approvals: Any, error: str) -> None:
    """The tool is not called, and the history names the error of the request."""
    called: list[Json] = []
    agents = {"A": {"use": [{"tool": "tool"}]}}
    document = task({"RequireApproval": ["tool"]})
    result = asl.run(document, agents=agents, tools={"tool": called.append}, approvals=approvals)
    assert (result.error, called) == (error, [])
    assert told(result) == [("ToolRefused", "tool", error)]
