"""The documents, what their agents answer, and what people decide."""

from dataclasses import dataclass
from typing import Any

from asl import StateError
from asl.effects.journaled.log import MIN_WEIGHT

Json = Any

WORK = {"Type": "Task", "Agent": "Work"}
FLAKY = [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 30, "MaxAttempts": 3, "BackoffRate": 2}]
ASK = {"Type": "Approval", "ResultPath": "$", "OutputPath": "$.approval"}
SPENT = "$$.Execution.TokensUsed"


def work(at: str, **parameters: Json) -> dict[str, Json]:
    """Return a task that says where it stands."""
    return {**WORK, "Parameters": {"at": at, **parameters}}


def machine(*states: tuple[str, dict[str, Json]]) -> dict[str, Json]:
    """Return a machine that goes through these states."""
    following = [name for name, _ in states[1:]] + [None]
    return {
        "StartAt": states[0][0],
        "States": {
            name: state
            if state["Type"] == "Choice"
            else {**state, **({"Next": next_} if next_ else {"End": True})}
            for (name, state), next_ in zip(states, following, strict=True)
        },
    }


def each(processor: dict[str, Json], items: str = "$", **fields: Json) -> dict[str, Json]:
    """Return a Map."""
    return {"Type": "Map", "ItemsPath": items, "ItemProcessor": processor, **fields}


DEEP = each(
    machine(("Deep", {**work("Deep", **{"n.$": "$"}), "Retry": FLAKY})),
    "$.below",
    ResultPath="$.deep",
)
ITEM = machine(
    ("One", work("One", **{"n.$": "$.n"}) | {"ResultPath": "$.one"}),
    ("Nap", {"Type": "Wait", "Seconds": 5}),
    ("Inner", DEEP),
    ("Two", work("Two", **{"n.$": "$.n", "deep.$": "$.deep"})),
)
ITEMS = each(ITEM, "$.items", MaxConcurrency=2)
GATE = machine(
    ("Gate", {**ASK, "Prompt": "Go on?"}),
    ("After", work("After", **{"gate.$": "$"})),
)
SIDE = machine(
    ("Left", work("Left")),
    ("Rest", {"Type": "Wait", "Seconds": 40}),
    ("Right", work("Right", **{"left.$": "$"})),
)
SHAKY = machine(("Shaky", work("Shaky", **{"retries.$": "$.retries"})))
PATIENT = machine(("Patient", {"Type": "Wait", "Seconds": 864_000}), ("Late", work("Late")))
SMALL = machine(("Small", work("Small", **{"n.$": "$"})))
VOTE = machine(("Vote", {**ASK, "Prompt": "{{ $ }}?"}))
TALK = {"Type": "Debate", "Agents": ["Optimist", "Sceptic"], "Rounds": 2,
        "Parameters": {"at": "Talk"}, "ResultPath": "$.talk"}  # fmt: skip
PARTS = (
    ("First", {**work("First"), "ResultPath": "$.first", "Assign": {"seen.$": "$.at"}}),
    ("Round", {**work("Round", **{"spent.$": SPENT}), "ResultPath": "$.round"}),
    ("Count", {"Type": "Pass", "Parameters": {"round.$": "States.MathAdd($.count.round, 1)"},
               "ResultPath": "$.count"}),
    ("Enough", {"Type": "Choice", "Default": "Both", "Choices": [
        {"Variable": "$.count.round", "NumericLessThan": 3, "Next": "Round"}]}),
    ("Both", {"Type": "Parallel", "Branches": [machine(("Items", ITEMS)), GATE, SIDE],
              "ResultPath": "$.both"}),
    ("Spent", {**work("Spent", **{"spent.$": SPENT}), "ResultPath": "$.spent"}),
    ("Torn", {"Type": "Parallel", "Branches": [PATIENT, SHAKY], "ResultPath": "$.never",
              "Parameters": {"retries.$": "$$.State.RetryCount"}, "Retry": FLAKY,
              "Catch": [{"ErrorEquals": ["Gone"], "ResultPath": "$.torn", "Next": "Large"}]}),
    ("Large", {**work("Large"), "ResultPath": "$.large"}),
    ("Few", each(SMALL, "$.few", ResultPath="$.fewer")),
    ("Pause", {"Type": "Wait", "Seconds": 600}),
    ("Talk", TALK),
    ("Shout", {**TALK, "Communication": {"Style": "simultaneous"}, "ResultPath": "$.shout"}),
    ("People", each(VOTE, "$.few", ResultPath="$.votes")),
    ("Nobody", {**ASK, "Prompt": "Anybody?", "Timeout": "1h", "Default": "Last",
                "TimeoutAction": "approve", "ResultPath": "$.nobody", "OutputPath": "$"}),
    ("Last", {**work("Last", **{"spent.$": SPENT, "seen.$": "$seen", "votes.$": "$.votes"}),
              "ResultPath": "$.last"}),
    ("Done", {"Type": "Pass", "Parameters": {
        "both.$": "$.both", "votes.$": "$.votes", "last.$": "$.last", "torn.$": "$.torn.Error",
        "large.$": "$.large.at", "talk.$": "$.talk.history", "shout.$": "$.shout.history",
        "nobody.$": "$.nobody.approval", "count.$": "$.count.round"}}),
)  # fmt: skip


CHILD = machine(
    ("Begin", {**work("Begin"), "ResultPath": "$.begin"}),
    ("Inside", {**ASK, "Prompt": "Inside 7?", "ResultPath": "$.inside", "OutputPath": "$"}),
    ("Finish", work("Finish", **{"inside.$": "$.inside.approval"})),
)
STARTED = {"StateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:child",
           "Input": {"n": 1}}  # fmt: skip
POST = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"}
SPREAD = {**machine(
    ("Far", work("Far", **{"n.$": "$"})),
    ("Rest", {"Type": "Wait", "Seconds": 3}),
    ("Near", work("Near", **{"n.$": "$.n"})),
), "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}  # fmt: skip
WIDE = (
    ("Saved", {"Type": "Checkpoint", "Name": "begun"}),
    ("Post", {**POST, "Parameters": {"at": "Post", "token.$": "$$.Task.Token"},
              "TimeoutSeconds": 86_400, "ResultPath": "$.post"}),
    ("Three", {"Type": "Parallel", "ResultPath": "$.three", "Branches": [
        machine(("Spread", each(SPREAD, "$.few", MaxConcurrency=2))),
        machine(("Child", {"Type": "Workflow", "WorkflowId": "child"})),
        machine(("Start", {"Type": "Task", "Parameters": STARTED,
                           "Resource": "arn:aws:states:::states:startExecution.sync:2",
                           "OutputPath": "$.Output"})),
    ]}),
    ("Posts", each(machine(("Each", {**POST, "Parameters": {
        "at": "Each", "n.$": "$", "token.$": "$$.Task.Token"}})), "$.few", ResultPath="$.posts")),
    # Longer than nobody runs: what is not handed over in its time is not handed over at all.
    ("Unheard", {**POST, "TimeoutSeconds": 86_400, "ResultPath": "$.unheard", "Parameters": {
        "at": "Unheard", "token.$": "$$.Task.Token"}, "Next": "Again", "Catch": [
        {"ErrorEquals": ["States.Timeout"], "ResultPath": "$.unheard", "Next": "Again"}]}),
    ("Again", {"Type": "Parallel", "ResultPath": "$.again", "Branches": [
        machine(("Kept", work("Kept")), ("Sure", work("Sure"))),
        machine(("Fragile", work("Fragile", **{"redrives.$": "$$.Execution.RedriveCount"}))),
    ]}),
    ("End", {**work("End", **{"spent.$": SPENT}), "ResultPath": "$.end"}),
    ("Come", {"Type": "Pass", "Parameters": {
        "posts.$": "$.posts", "post.$": "$.post", "three.$": "$.three",
        "unheard.$": "$.unheard.Error", "end.$": "$.end"}}),
)  # fmt: skip
BUDGETED = {**machine(*WIDE), "Budget": {"MaxTokens": 10_000_000, "OnExceed": "Fail"}}


@dataclass(frozen=True)
class Scene:
    """Executions of one document in one store."""

    name: str
    document: Json
    inputs: tuple[Json, ...]
    """One for each execution; they run at the same time."""
    sleeps: bool = True
    """Whether the executions need an event loop."""
    worth: int = 0
    """Bytes of answers up to which no position is taken; by 0 small documents take them, too."""
    spends: bool = True
    """Whether agents report usage; where none was, records say more and answers less."""


def whole_input(number: int) -> Json:
    """Return the input of one execution of the whole document."""
    items = [{"n": n, "below": [10 * n, 10 * n + 1]} for n in range(1, 4)]
    return {"n": number, "count": {"round": 0}, "few": [7, 8], "items": items}


CHAIN = machine(
    *((f"S{n}", work(f"S{n}", **{"spent.$": SPENT}) | {"ResultPath": f"$.s{n}"}) for n in range(8))
)

SCENES = {
    scene.name: scene
    for scene in (
        Scene("whole", machine(*PARTS), (whole_input(1),)),
        Scene("group", machine(*PARTS), tuple(whole_input(n) for n in range(3)), worth=MIN_WEIGHT),
        Scene("free", machine(*PARTS), (whole_input(1),), worth=MIN_WEIGHT, spends=False),
        Scene("wide", BUDGETED, (whole_input(1),)),
        Scene("chain", CHAIN, ({"n": 0},), sleeps=False),
    )
}


def answer(parameters: Json, attempt: int, spends: bool) -> Json:
    """Return what the agent answers to a call, and its usage, or raise what it fails with."""
    at = parameters["at"]
    if at == "Fragile" and not parameters["redrives"]:
        raise StateError("Broken", "not yet")
    if at == "Deep" and attempt <= parameters["n"] % 3:
        raise StateError("Flaky", "again")
    if at == "Shaky":
        raise StateError("Flaky" if parameters["retries"] < 2 else "Gone", "as said")
    if at == "Talk":
        heard = len(parameters["history"])
        usage = {"_tokens": 4} if spends else {}
        return {"response": f"I have heard {heard}.", "vote": "yes", **usage}
    text = {"text": "x" * 100_000} if at == "Large" else {}
    usage = {"_tokens": 1 + len(at), "_cost": 0.01} if spends else {}
    return {**parameters, **text, **usage}


def pause(parameters: Json) -> float:
    """Return the seconds that the agent takes."""
    return {"One": 3.0 * parameters.get("n", 0), "Deep": 1.0, "Left": 7.0, "Fragile": 50.0}.get(
        parameters["at"], 0
    )


def reply(task: Json) -> Json:
    """Return what comes to a task token, None where nothing does."""
    at = task["payload"]["at"]
    return None if at == "Unheard" else {"to": at, "of": task["payload"].get("n")}


def decision(request: Json) -> str | None:
    """Return what people decide, None where nobody does."""
    if request["state"] == "Nobody":
        return None
    return "approve" if "7" in request["prompt"] else "reject"
