"""The writer of Amazon States Language: what the agent language adds becomes the nearest there is.

Amazon's documents are read without a detour, as documents of this language. On the way to Amazon
agents become Lambda functions, people answer a task token, and whatever AWS itself would refuse in
what was written is a loss.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import ceil
from typing import Any, Final

from asl.checks import check
from asl.checks.workflow import objects
from asl.core.codes import all_error_names
from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.profile import AWS
from asl.core.source import Source
from asl.core.values import Json
from asl.dialects.amazon.data_shapes import states_with_objects
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.expressions import TextReference, inserted, said
from asl.dialects.formatter import format_json
from asl.dialects.names import FreshNames, NameTable, renamed
from asl.dialects.registry import meanings_of
from asl.dialects.terms.expansion import expand_functions
from asl.dialects.transitions import reachable_states
from asl.expr.times import parse_duration
from asl.states import STATE_TYPES
from asl.states.blocks import AGENT_BLOCKS
from asl.states.machines import nested_machines
from asl.states.schemas import inert_fields, known_fields, native_fields

__all__ = ["coverage", "write"]

LAMBDA: Final = "arn:aws:lambda:us-east-1:123456789012:function:"
"""Placeholder for the location of the functions of agents; replace it before deployment."""
TOKEN: Final = "arn:aws:states:::lambda:invoke.waitForTaskToken"
RECORD: Final = "$.approvalRecord"
DECIDED: Final = "{% $merge([$states.input, $states.result]) %}"
"""The output of an Approval whose decision is merged into its input."""

_AWS_ERRORS: Final = frozenset(
    f"States.{name}"
    for name in (
        *("ALL", "TaskFailed", "Timeout", "HeartbeatTimeout", "Runtime", "DataLimitExceeded"),
        *("ParameterPathFailure", "IntrinsicFailure", "QueryEvaluationError", "Permissions"),
        *("ResultPathMatchFailure", "NoChoiceMatched", "BranchFailed", "ItemReaderFailed"),
        *("ExceedToleratedFailureThreshold", "ResultWriterFailed"),
    )
)
"""The error names that Amazon's language reserves."""


def _aws_error(name: str) -> str | None:
    """Return what AWS calls an error that only this interpreter raises, None if nothing."""
    if name == "States.RateLimitExceeded":
        return "Lambda.TooManyRequestsException"
    return None if name.startswith("States.") else "States.TaskFailed"


@cache
def _own_errors() -> Mapping[str, str | None]:
    """Return what takes the place of error names that AWS does not know."""
    names = (each.name for each in all_error_names() if each.name not in _AWS_ERRORS)
    return {name: _aws_error(name) for name in names}


_BLOCKS = frozenset((*AGENT_BLOCKS, "Events"))
_OF_DOCUMENT = frozenset(
    ("Comment", "QueryLanguage", "StartAt", "States", "TimeoutSeconds", "Version")
)
_CAP: Final = {"MaxIntervalSeconds": "MaxDelaySeconds"}
_ASKED = frozenset(("Prompt", "Prompt.$", "Options", "Timeout", "Choices", "Default"))
_KEPT = ("Comment", "QueryLanguage", "InputPath", "Retry")
_OF_PASS = ("Comment", "QueryLanguage", "OutputPath", "Next", "End")
_RECORDED = ("ResultPath", "Assign", "Output")
"""Fields of a Checkpoint that may hold its record."""
_COMMON = frozenset(
    ("Type", "Comment", "QueryLanguage", "Next", "End", "InputPath", "OutputPath", "Output")
) | {"Assign", "Retry", "Catch", "ResultPath"}


def write(document: Document, names: Mapping[str, str] | None = None) -> WriterResult:
    """Write a document in Amazon's language.

    Args:
        document: A document without errors.
        names: Names of functions by the names of agents and approvals.

    Raises:
        AslError: A name means nothing in the document.
    """
    failing: list[Finding] = []

    def report(pointer: str, expression: str) -> None:
        message = f"no expression of Amazon's language computes {expression!r}"
        failing.append(Finding("L-FUNCTION", message, pointer))

    whole = expand_functions(document.composed_value, meanings_of(document), report)
    writer = _Writer(whole, NameTable(names))
    value = writer.written()
    writer.resources.all_used()
    known = {each.pointer for each in failing}
    refused = [each for each in _refused(value, writer) if each.pointer not in known]
    losses = [*failing, *writer.losses, *refused]
    return WriterResult(value, format_json(value), tuple(losses))


def _refused(value: dict[str, Json], writer: "_Writer") -> list[Finding]:
    """Return what AWS refuses in a written document, at the places of the original document."""
    report = check(Document(value, Source()), AWS)
    # AWS accepts a query that calls an unknown function, and fails when it evaluates it.
    failing = [each for each in report if each.code == "V-JSONATA-05"]
    return [
        Finding(
            "L-AWS",
            f"AWS refuses this, or fails: {error.message}",
            writer.origin(error.pointer),
            error.hint,
            severity=Severity.ERROR,
        )
        for error in (*report.errors, *failing)
    ]


class _Writer:
    def __init__(self, value: Mapping[str, Any], resources: NameTable) -> None:
        self.value = value
        self.resources = resources
        """What the caller calls the functions of agents."""
        self.losses: list[Finding] = []
        self.origins: dict[str, str] = {}
        """JSON Pointers of what was written -> those in the document."""
        self.names = FreshNames(_names(value), " ")

    def origin(self, pointer: str) -> str:
        """Return the place in the original document of a place in the written one."""
        known = pointer
        while known and known not in self.origins:
            known = known.rpartition("/")[0]
        return self.origins.get(known, known) + pointer[len(known) :]

    def lost(self, code: str, message: str, pointer: str, instead: str | None = None) -> None:
        self.losses.append(Finding(code, message, pointer, instead, at_key=True))

    def written(self) -> dict[str, Json]:
        for field in self.value:
            if field not in _OF_DOCUMENT and field not in inert_fields("asl"):
                self.lost("L-BLOCK", f"Amazon's language has no {field!r}", f"/{field}")
        language = self.value.get("QueryLanguage", "JSONPath")
        kept = {key: self.value[key] for key in self.value if key in _OF_DOCUMENT}
        return {**kept, **self.machine(self.value, "", "", language)}

    def machine(
        self, machine: Mapping[str, Any], pointer: str, place: str, language: str
    ) -> dict[str, Json]:
        """Return a machine; *pointer* is its original place, *place* its place in the result."""
        states: dict[str, Json] = {}
        with_objects = states_with_objects(machine, language)
        for name, state in machine["States"].items():
            at, written = (f"{each}/States/{escape(name)}" for each in (pointer, place))
            kind = state["Type"]
            own = state.get("QueryLanguage", language)
            if kind == "Approval" and own != "JSONata" and name not in with_objects:
                self.unmerged(state, at)
            made = self.plain(state, at, written, language)
            handle = _KINDS.get(kind)
            more = {name: made} if handle is None else handle(self, name, made, at, own)
            states |= more
            for each in more:
                self.origins[f"{place}/States/{escape(each)}"] = at
        start = str(machine["StartAt"])
        known = reachable_states(start, states)
        for name in states:
            if name not in known:
                at = self.origins[f"{place}/States/{escape(name)}"]
                self.lost("L-DROPPED", "nothing leads there any more", at, "it is left out")
        kept = {name: state for name, state in states.items() if name in known}
        return {"StartAt": start, "States": kept}

    def unmerged(self, state: Mapping[str, Any], at: str) -> None:
        """Report the record of an Approval that AWS cannot merge into every input."""
        if "ResultPath" not in state:
            message = "AWS cannot add the record to an input that is no object, and fails"
            instead = "write the result in front into a field: give its state a ResultPath"
            finding = Finding("L-RECORD", message, at, instead, severity=Severity.ERROR)
            self.losses.append(finding)

    def plain(
        self, state: Mapping[str, Any], at: str, written: str, language: str
    ) -> dict[str, Json]:
        """Return a state with its machines written, and without agent blocks."""
        made: dict[str, Json] = {}
        native = native_fields(f"states:{state['Type']}")
        for field, value in state.items():
            if field.removesuffix(".$") in _BLOCKS:
                message = f"Amazon's language has no {field.removesuffix('.$')!r}"
                self.lost("L-BLOCK", message, f"{at}/{escape(field)}", "it is left out")
            elif field.removesuffix(".$") in native:
                pass  # reported as a field that is not written
            elif field == "Iterator":
                made["ItemProcessor"] = value
            elif not {field, field.removesuffix(".$")} & known_fields(f"states:{state['Type']}"):
                message = f"{field!r} has no effect in a {state['Type']} state"
                self.lost("L-DROPPED", message, f"{at}/{escape(field)}", "it is left out")
            elif field in ("Retry", "Catch"):
                write = self.retriers if field == "Retry" else self.catchers
                if handlers := write(state, f"{at}/{field}"):
                    made[field] = handlers
            else:
                made[field] = value
        for steps, inner in nested_machines(state):
            if steps[0] == "Template":
                continue
            way = "".join(f"/{step}" for step in steps)
            there = f"{written}{way.replace('Iterator', 'ItemProcessor')}"
            self.origins[there] = f"{at}{way}"
            found = self.machine(inner, f"{at}{way}", there, language)
            found = {**{key: each for key, each in inner.items() if key not in found}, **found}
            if steps[0] == "Branches":
                made["Branches"] = [
                    found if index == steps[1] else each
                    for index, each in enumerate(made["Branches"])
                ]
            else:
                made["ItemProcessor"] = found
        return made

    def retriers(self, state: Mapping[str, Any], at: str) -> list[Json]:
        """Return the retriers of a state, which pause for whole seconds, as AWS wants it."""
        return [
            self.retrier(retrier, names, f"{at}/{index}")
            for index, retrier in objects(state, "Retry")
            if (names := self.errors(retrier, f"{at}/{index}"))
        ]

    def catchers(self, state: Mapping[str, Any], at: str) -> list[Json]:
        """Return the catchers of a state, for errors that AWS has."""
        return [
            {**catcher, "ErrorEquals": [*names]}
            for index, catcher in objects(state, "Catch")
            if (names := self.errors(catcher, f"{at}/{index}"))
        ]

    def errors(self, handler: Mapping[str, Any], at: str) -> list[str]:
        """Return the error names of a retrier or catcher as AWS has them.

        Errors of agents and of other dialects are failures of a task there. That is a loss, unless
        the handler handles all of those anyway.
        """
        given, own = handler["ErrorEquals"], _own_errors()
        found = [*dict.fromkeys(own.get(name, name) for name in given)]
        names = [name for name in found if name is not None]
        if "States.TaskFailed" in names:
            names = [name for name in names if not name.startswith("Lambda.")]
        others = sorted(own.keys() & {*given})
        if others and "States.TaskFailed" not in given:
            more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
            message = f"AWS has no error {others[0]!r}{more}"
            instead = f"{', '.join(names)} instead" if names else "it is left out"
            place = f"{at}/ErrorEquals"
            self.losses.append(
                Finding("L-ERRORS", message, place, instead, severity=Severity.ERROR)
            )
        return names

    def retrier(self, retrier: Mapping[str, Any], names: list[str], at: str) -> dict[str, Json]:
        made = {_CAP.get(key, key): value for key, value in retrier.items()}
        made["ErrorEquals"] = [*names]
        interval = made.get("IntervalSeconds")
        if isinstance(interval, int | float) and interval != max(1, ceil(interval)):
            made["IntervalSeconds"] = max(1, ceil(interval))
            message = "AWS waits whole seconds between attempts, at least one"
            instead = f"after {made['IntervalSeconds']} s"
            self.lost("L-RETRY", message, f"{at}/IntervalSeconds", instead)
        jitter = made.get("JitterStrategy")
        if type(jitter) is str:
            made["JitterStrategy"] = "NONE" if jitter.upper() == "NONE" else "FULL"
            if jitter.upper() not in ("NONE", "FULL"):
                message = f"AWS has no JitterStrategy {jitter!r}"
                self.lost("L-RETRY", message, f"{at}/JitterStrategy", "JitterStrategy is FULL")
        return made

    def task(
        self, name: str, state: dict[str, Json], at: str, language: str
    ) -> dict[str, dict[str, Json]]:
        if "Agent" not in state:
            return {name: state}
        resource = self.function(str(state["Agent"]), f"{at}/Agent")
        return {name: renamed(state, "Agent", "Resource", resource)}

    def function(self, agent: str, at: str) -> str:
        """Return the resource that replaces an agent."""
        resource = self.resources.of(agent)
        if resource is None and agent.startswith("arn:"):
            return agent  # a tool elsewhere that is a function here
        if resource is None:
            resource = LAMBDA + _function(agent)
            self.lost(
                "L-RESOURCE",
                f"{agent!r} is a Lambda function there",
                at,
                f"{resource}: give its name, or put in region, account and name",
            )
        return resource

    def approval(
        self, name: str, state: dict[str, Json], at: str, language: str
    ) -> dict[str, dict[str, Json]]:
        for field in state:
            if field in ("Assign", "OutputPath") or field not in _ASKED | _COMMON:
                self.lost(
                    "L-APPROVAL", f"a task that waits for a token has no {field!r}", f"{at}/{field}"
                )
        function = self.resources.of(name) or _function(name)
        for index, rule in enumerate(state.get("Choices", ())):
            if type(rule) is not dict:
                continue
            hidden = "Condition" in rule and state.get("Output", DECIDED) != DECIDED
            if hidden or rule.keys() & {"Assign", "Output"}:
                where = f"{at}/Choices/{index}"
                self.lost(
                    "L-APPROVAL", "AWS may not have the values that this rule computes", where
                )
        self.lost(
            "L-RESOURCE",
            "people answer a task token there: with approval, approver, timestamp and comment",
            at,
            f"the function {function!r} sends them the token",
        )
        jsonata = language == "JSONata"
        unplaced = "ResultPath" not in state or (state["ResultPath"] is None and "Choices" in state)
        if not jsonata and unplaced:
            self.lost("L-RECORD", f"the record also stays at {RECORD}", at)
        payload: dict[str, Json] = {
            ("token" if jsonata else "token.$"): (
                "{% $states.context.Task.Token %}" if jsonata else "$$.Task.Token"
            ),
            "options": state.get("Options", ["approve", "reject"]),
            ("input" if jsonata else "input.$"): "{% $states.input %}" if jsonata else "$",
        }
        if isinstance(state.get("Prompt"), str) and not jsonata:
            ending, prompt = said(inserted(state["Prompt"]))
            payload[f"Prompt{ending}"] = prompt
        else:
            payload |= {key: state[key] for key in ("Prompt", "Prompt.$") if key in state}
        ask: dict[str, Json] = {"Type": "Task", "Resource": TOKEN}
        ask |= {key: state[key] for key in _KEPT if key in state}
        given: dict[str, Json] = {"FunctionName": function, "Payload": payload}
        ask["Arguments" if jsonata else "Parameters"] = given
        record = str(state.get("ResultPath", RECORD))
        if state.get("ResultPath", "") is None:
            record = RECORD
        if jsonata:
            ask["Output"] = state.get("Output", DECIDED)
        else:
            ask["ResultPath"] = record if unplaced else state["ResultPath"]
        if "Timeout" in state:
            self.limited(state, ask, at)
        return self.routed(name, state, ask, record, jsonata)

    def limited(self, state: Mapping[str, Any], ask: dict[str, Json], at: str) -> None:
        """Bound the time for an answer."""
        try:
            ask["TimeoutSeconds"] = int(parse_duration(state["Timeout"]))
        except (ExpressionFault, TypeError):
            self.lost("L-APPROVAL", "AWS does not compute this time limit", f"{at}/Timeout")
            return
        if "Default" in state and "OnTimeout" not in state:
            late = {"ErrorEquals": ["States.Timeout"], "Next": state["Default"]}
            path = {} if "Arguments" in ask else {"ResultPath": RECORD}
            ask["Catch"] = [{**late, **path}, *state.get("Catch", ())]

    def routed(
        self,
        name: str,
        state: Mapping[str, Any],
        ask: dict[str, Json],
        record: str,
        jsonata: bool,
    ) -> dict[str, dict[str, Json]]:
        """Return the Task that asks, and the states that decide where to go."""
        made = {name: ask}
        ask.setdefault("Catch", state.get("Catch", []))
        if not ask["Catch"]:
            del ask["Catch"]
        last = ask
        if not jsonata and "ResultPath" not in state:
            merge = self.name(f"{name} merge")
            last["Next"] = merge
            both = f"States.JsonMerge($, {record}, false)"
            last = made[merge] = {
                "Type": "Pass",
                "Parameters": {"merged.$": both},
                "OutputPath": "$.merged",
            }
        going = {key: state[key] for key in ("Next", "End") if key in state}
        if not state.get("Choices"):
            last |= going or {"Next": state["Default"]}
            return made
        choose = self.name(f"{name} choose")
        last["Next"] = choose
        merged = jsonata or "ResultPath" not in state or record == "$.approval"
        prefix = "$" if merged else record  # what lies at `$.approval` itself goes first
        default = state.get("Default", going.get("Next"))
        language = {key: state[key] for key in ("QueryLanguage",) if key in state}
        made[choose] = {
            "Type": "Choice",
            **language,
            "Choices": [_moved(rule, prefix) for rule in state["Choices"]],
        }
        if default is None and going:
            default = self.name(f"{name} end")
            made[default] = {"Type": "Succeed"}
        if default is not None:
            made[choose]["Default"] = default
        return made

    def name(self, text: str) -> str:
        """Return a name that no state has."""
        return self.names.new(text)

    def checkpoint(
        self, name: str, state: dict[str, Json], at: str, language: str
    ) -> dict[str, dict[str, Json]]:
        self.lost(
            "L-CHECKPOINT",
            "AWS stores executions without checkpoints",
            at,
            "a state without effect",
        )
        made = {"Type": "Pass"} | {key: state[key] for key in _OF_PASS if key in state}
        for field in ("Retry", "Catch"):
            if field in state:
                self.lost("L-CATCH", "a Pass state does not fail on AWS", f"{at}/{field}")
        used = [each for each in _RECORDED if state.get(each) is not None]
        if not used:
            return {name: made}
        if language == "JSONata":
            for field in used:
                self.lost("L-TRANSFORM", "AWS has no record of a checkpoint", f"{at}/{field}")
            return {name: made}
        told = "the id of a record does not count the checkpoints of its name"
        where = f"{at}/{used[0]}"
        self.losses.append(Finding("L-CHECKPOINT", told, where, severity=Severity.WARNING))
        placed = {"Parameters": _record(state), "ResultPath": state.get("ResultPath")}
        return {name: made | placed | {key: state[key] for key in ("Assign",) if key in state}}

    def stand_in(
        self, name: str, state: dict[str, Json], at: str, language: str
    ) -> dict[str, dict[str, Json]]:
        kind = str(state["Type"])
        code = "L-DEBATE" if kind == "Debate" else "L-INCLUDE"
        instead = "a Lambda function of its name"
        if kind != "Debate":
            instead += ": convert the other document too, and let that start it"
        self.lost(code, f"there are no {kind} states there", at, instead)
        kept = {key: state[key] for key in _COMMON if key in state and key != "Type"}
        return {name: {"Type": "Task", "Resource": self.function(name, at), **kept}}


def _names(machine: Mapping[str, Any]) -> list[str]:
    found = []
    for name, state in machine["States"].items():
        found.append(name)
        for _, inner in nested_machines(state):
            found += _names(inner)
    return found


def _function(name: str) -> str:
    """Return a name as Lambda functions have it."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:64] or "agent"


def _moved(rule: Any, prefix: str) -> Json:
    """Return a rule on an answer's record as one on the place of the record."""
    if type(rule) is not dict:
        return rule
    made: dict[str, Json] = {}
    for key, value in rule.items():
        if key in ("And", "Or"):
            made[key] = [_moved(each, prefix) for each in value]
        elif key == "Not":
            made[key] = _moved(value, prefix)
        elif key == "Variable" and value == "$.approval":
            made[key] = f"{prefix}.approval"
        else:
            made[key] = value
    return made


def _record(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return the template of the record of a Checkpoint."""
    path = state.get("Name.$")
    given = inserted(str(state.get("Name"))) if path is None else [TextReference(path)]
    listed = (("name", given), ("id", [TextReference("$$.Execution.Id"), "-", *given]))
    record = {f"{key}{ending}": value for key, parts in listed for ending, value in (said(parts),)}
    return {"checkpoint": {**record, "createdAt.$": "$$.State.EnteredTime"}}


_Handler = Callable[[_Writer, str, dict[str, Json], str, str], dict[str, dict[str, Json]]]
_KINDS: Final[Mapping[str, _Handler]] = {
    "Task": _Writer.task,
    "Approval": _Writer.approval,
    "Checkpoint": _Writer.checkpoint,
    "Debate": _Writer.stand_in,
    "Include": _Writer.stand_in,
    "Workflow": _Writer.stand_in,
}


def coverage() -> Coverage:
    """Return the fields that the writer supports."""
    theirs = (name for name, kind in STATE_TYPES.items() if kind.aws)
    states = {
        name: known_fields(f"states:{name}") - native_fields(f"states:{name}") for name in theirs
    }
    states["Approval"] = _ASKED | _COMMON
    states["Checkpoint"] = frozenset(("Type", *_OF_PASS, *_RECORDED, "Retry", "Catch"))
    for kind in ("Debate", "Include", "Workflow"):
        states[kind] = _COMMON
    replaced = frozenset(("Checkpoint", "Debate", "Include", "Workflow"))
    return Coverage(states, _OF_DOCUMENT, replaced)
