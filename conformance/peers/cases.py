"""The cases that every interpreter of Amazon States Language can be asked."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from asl.conformance import Case
from asl.conformance.case import CHECK_FACTS
from asl.conformance.local import LocalImplementation
from asl.conformance.runner import run_case
from asl.core.values import Json, compact

__all__ = ["Question", "questions"]

FACTS = ("status", "output", "error", "cause")
"""What every interpreter reports of a run."""

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
SURROUNDINGS = {
    "answers": "task tokens, activities and jobs",
    "workflows": "nested executions",
    "resume": "redrives",
    "files": "imports",
    "tools": "agents",
    "pools": "agents",
    "memory": "agents",
    "prices": "agents",
    "parameters": "templates",
}
"""What a case needs besides its document, and how the page names it."""

TOP = frozenset({"Comment", "QueryLanguage", "StartAt", "States", "TimeoutSeconds", "Version"})
"""Fields of a document of Amazon States Language."""

TIMED = frozenset({"delay", "hang", "heartbeat", "reports", "use", "offered"})
"""Keys of scripts that do more than answer immediately."""

STATES = ("Task", "Pass", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map")

OUTSIDE = re.compile(r"waitForTaskToken|:activity:|\.sync\b")
"""Tasks that somebody outside the interpreter ends."""

CLOCK = re.compile(r"StartTime|EnteredTime|\$now\(|\$millis\(|States\.UUID|\$uuid\(|\$random")
"""Documents whose output depends on the clock or on chance."""

FIELDS = {
    "Assign": "Variables",
    "Retry": "Retry",
    "Catch": "Catch",
    "ItemReader": "ItemReader",
    "ItemBatcher": "ItemBatcher",
    "ResultWriter": "ResultWriter",
    "ResultSelector": "ResultSelector",
    "Credentials": "Credentials",
    "TimeoutSeconds": "Timeouts",
    "TimeoutSecondsPath": "Timeouts",
    "HeartbeatSeconds": "Heartbeats",
    "HeartbeatSecondsPath": "Heartbeats",
    "ToleratedFailureCount": "Tolerated failures",
    "ToleratedFailureCountPath": "Tolerated failures",
    "ToleratedFailurePercentage": "Tolerated failures",
    "ToleratedFailurePercentagePath": "Tolerated failures",
}
"""Features by the field that uses them."""

TEXTS = {
    "Intrinsic functions": re.compile(r"^\s*States\.[A-Z]"),
    "Context object": re.compile(r"\$\$|\$states\.context"),
    "Service integrations": re.compile(r"^arn:aws:states:::"),
}
"""Features by a string of the document."""


@dataclass(frozen=True)
class Question:
    """A case in the form of Amazon States Language, with facts that any interpreter reports.

    Attributes:
        case: The case, under the profile `aws`, with Lambda functions in place of agents.
        source: The case as the suite has it.
    """

    case: Case
    source: Case

    @property
    def is_validation(self) -> bool:
        """Whether the document is only validated."""
        return "valid" in self.case.expect

    @cached_property
    def features(self) -> frozenset[str]:
        """Names of the features that the document uses."""
        return frozenset(self._features())

    @cached_property
    def obstacle(self) -> str | None:
        """Why an interpreter without this project's virtual clock and history cannot be asked."""
        source = self.source
        if self.is_validation:
            return None
        for name, reason in SURROUNDINGS.items():
            if getattr(source, name):
                return reason
        scripts = [*source.agents.values(), *source.resources.values(), *source.mocks.values()]
        expected = compact(self.case.expect)
        if any("Error" not in each.get("raise", {"Error": ""}) for each in _objects(scripts)):
            return "errors without a name"
        if any(not TIMED.isdisjoint(each) for each in _objects(scripts)):
            return "tasks that take virtual time"
        if OUTSIDE.search(compact(self.case.document)):
            return "task tokens, activities and jobs"
        if any(not self._is_scripted(name, state) for name, state in _tasks(self.case.document)):
            return "resources that are bound by a pattern, by a part of their name, or not at all"
        if "TIMED_OUT" in expected or "States.Timeout" in expected or "Heartbeat" in expected:
            return "tasks that take virtual time"
        if "ItemReader" in self.features and not source.buckets:
            return "objects that a script reads"
        if not self.case.expect:
            return "history, elapsed time or written objects alone"
        if CLOCK.search(compact(self.case.document)):
            return "values of the clock or of chance"
        if "arn:aws:states" in expected:
            return "names of executions that this project chooses"
        return None

    def without_cause(self) -> Case:
        """Return the case without its exact cause."""
        expect = {name: each for name, each in self.case.expect.items() if name != "cause"}
        return replace(self.case, expect=expect or {"status": "FAILED"})

    def _is_scripted(self, name: str, state: Mapping[str, Json]) -> bool:
        names = {state.get("Resource"), "*"}
        return name in self.case.mocks or not names.isdisjoint(self.case.resources)

    def _features(self) -> Iterator[str]:
        document = self.case.document
        objects = list(_objects(document))
        languages = {each["QueryLanguage"] for each in objects if "QueryLanguage" in each}
        if objects[0].get("QueryLanguage") != "JSONata":
            languages.add("JSONPath")
        yield from [each for each in ("JSONPath", "JSONata") if each in languages]
        for each in objects:
            yield from (FIELDS[name] for name in each if name in FIELDS)
            if each.get("Type") in STATES:
                yield each["Type"]
            if each.get("Mode") == "DISTRIBUTED":
                yield "Distributed Map"
        for text in _strings(document):
            yield from (name for name, pattern in TEXTS.items() if pattern.search(text))
        if self.is_validation:
            yield "Validation"
            if any(TEXTS["Service integrations"].search(text) for text in _strings(document)):
                yield "Validation of service integrations"
        elif "error" in self.case.expect or self.case.expect.get("status") == "FAILED":
            yield "Failed executions"


def questions(cases: Iterable[Case]) -> list[Question]:
    """Return the cases that are questions about Amazon States Language."""
    found = (_question(case) for case in cases if case.document is not None)
    return [each for each in found if each is not None]


def _question(source: Case) -> Question | None:
    """Return a case as a question, None if it is not one of Amazon States Language."""
    if source.dialect != "asl" or source.profile == "lenient":
        return None
    case = _in_amazon_form(source)
    of_amazon = Path(source.file).parent.name == "amazon"
    if source.expect.keys() <= CHECK_FACTS:
        if not of_amazon:
            return None
        case = replace(case, expect={"valid": _is_valid(source.expect)})
        return Question(case, source) if _passes(case) else None
    expect = _only(source.expect, (*FACTS, "visited"))
    if not TOP.issuperset(source.document or ()) or not (
        _passes(replace(case, expect=expect)) if expect else of_amazon
    ):
        return None
    return Question(replace(case, expect=_only(source.expect, FACTS)), source)


def _in_amazon_form(source: Case) -> Case:
    """Return a case with Lambda functions in place of agents, under the profile `aws`."""
    functions = {_function(name): script for name, script in source.agents.items()}
    return replace(
        source,
        document=_with_functions(source.document),
        agents={},
        resources={**source.resources, **functions},
        profile="aws",
    )


def _function(agent: str) -> str:
    return agent if agent.startswith("arn:") else FUNCTION + re.sub(r"[^A-Za-z0-9_-]", "-", agent)


def _with_functions(value: Json) -> Json:
    if isinstance(value, list):
        return [_with_functions(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    fields = {name: _with_functions(each) for name, each in value.items()}
    if fields.get("Type") == "Task" and type(fields.get("Agent")) is str:
        fields["Resource"] = _function(fields.pop("Agent"))
    return fields


def _passes(case: Case) -> bool:
    return run_case(case, LocalImplementation()).outcome == "passed"


def _is_valid(expect: Mapping[str, Json]) -> bool:
    if "valid" in expect:
        return bool(expect["valid"])
    return all(each.get("severity") in ("warning", "info") for each in expect["diagnostics"])


def _only(expect: Mapping[str, Json], names: tuple[str, ...]) -> dict[str, Json]:
    return {name: expect[name] for name in names if name in expect}


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield a value and all within it that are objects, outer ones first."""
    if isinstance(value, Mapping):
        yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _tasks(document: Json) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the Task states of a document by their names."""
    for each in _objects(document):
        states = each.get("States")
        for name, state in states.items() if isinstance(states, Mapping) else ():
            if isinstance(state, Mapping) and state.get("Type") == "Task":
                yield name, state


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)
