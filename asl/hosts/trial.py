"""One state alone, as AWS's TestState runs it: compiled and interpreted like any other.

The state becomes a workflow of its own in which whatever it leads to is the end. A mock stands in
for its work; a retry ends the trial, since what would be retried is what is tested.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import urandom
from typing import Any

from asl.checks import check
from asl.checks.trial import check_context, check_mock
from asl.compiler import compile_workflow, open_state
from asl.compiler.stages import input_stages, result_stages
from asl.core.diagnostics import did_you_mean
from asl.core.document import Document, read
from asl.core.errors import AslError, InvalidTest, StateError
from asl.core.profile import Profile
from asl.core.values import Json, detached, is_integer
from asl.engine.agent import Find
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.interpreter import interpret
from asl.engine.records import CAUGHT, RETRIED, each_record
from asl.engine.result import Result
from asl.hosts.clock import Clock
from asl.hosts.local import LocalHost, drive
from asl.program import Program, Step, Work
from asl.states.host import ABSENT, Raised
from asl.states.host import Frame as StateFrame

__all__ = ["StateResult", "tested"]

UNNAMED = "StateName"
"""The name of a state that is given without one (AWS, recorded)."""
NOT_FOUND = "State not found in definition"
LEVELS = ("INFO", "DEBUG", "TRACE")
CONFIGURATION = (
    "retrierRetryCount",
    "mapIterationFailureCount",
    "errorCausedByState",
    "mapItemReaderData",
)


@dataclass(frozen=True, slots=True)
class StateResult:
    """What one state came to, in the words of AWS's TestState."""

    status: str
    """`SUCCEEDED`, `FAILED`, `RETRIABLE` or `CAUGHT_ERROR`."""
    output: Json = None
    """There if it succeeded or its error was caught."""
    next_state: str | None = None
    error: str | None = None
    cause: str | None = None
    inspection: dict[str, Json] = field(default_factory=dict)
    """What became of the data, stage by stage: `inspectionData`."""

    def to_json(self) -> dict[str, Json]:
        """Return the answer of TestState; values are JSON, not texts of JSON."""
        found: dict[str, Json] = {"status": self.status}
        if self.status in ("SUCCEEDED", "CAUGHT_ERROR"):
            found["output"] = self.output
        others = {"nextState": self.next_state, "error": self.error, "cause": self.cause}
        found |= {key: value for key, value in others.items() if value is not None}
        if self.inspection:
            found["inspectionData"] = self.inspection
        return found


def tested(
    document: Document,
    data: Json,
    *,
    state: str | None,
    mock: Mapping[str, Json] | None,
    context: Mapping[str, Json] | None,
    variables: Mapping[str, Json],
    level: str,
    reveal_secrets: bool,
    configuration: Mapping[str, Json],
    profile: Profile,
    find: Find,
    clock: Clock,
) -> StateResult:
    """Run one state of a document, or the state that the document is; see `asl.test_state`."""
    if level not in LEVELS:
        raise AslError(f"no level {level!r}; there are {', '.join(LEVELS)}")
    _known("a mock has", mock or {}, ("result", "errorOutput", "fieldValidationMode"))
    _known("a configuration has", configuration, CONFIGURATION)
    for count in ("retrierRetryCount", "mapIterationFailureCount"):
        number = configuration.get(count, 0)
        if not is_integer(number) or number < 0:
            raise AslError(f"{count} is a whole number from 0 up, not {number!r}")
    if reveal_secrets and mock is not None:
        raise InvalidTest("TestState does not support RevealSecrets when a mock is specified.")
    subject = _subject(document, state, profile)
    trial = Trial(subject, profile, mock, context, configuration)
    given = detached(dict(variables))
    return trial.run(detached(data), given, find, clock, inspect=level != "INFO")


def _known(what: str, given: Mapping[str, Json], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
            raise AslError(f"{what} no {name!r} ({hint})")


# The state and what is around it


@dataclass(frozen=True, slots=True)
class Subject:
    """A state, and what it takes from the machine around it."""

    name: str
    state: Mapping[str, Json]
    language: str
    in_map: bool = False
    """Whether it belongs to the processor of a Map."""


def _subject(document: Document, name: str | None, profile: Profile) -> Subject:
    """Return the state to test; raises InvalidDocument where the definition has errors."""
    definition = document.value
    if "States" not in definition and "Type" in definition:
        if name is not None:
            raise InvalidTest(NOT_FOUND)
        subject = Subject(UNNAMED, definition, "JSONPath")
        document = read(_alone(subject)[0], name=document.source.name)
        check(document, profile).raise_for_errors()
        return subject
    check(document, profile).raise_for_errors()
    subjects = {each.name: each for each in _states(definition, "JSONPath", False)}
    if name is None:
        raise AslError(f"name the state to test; there are {', '.join(subjects)}")
    if name not in subjects:
        raise InvalidTest(NOT_FOUND)
    return subjects[name]


def _states(machine: Mapping[str, Json], language: str, in_map: bool) -> Iterator[Subject]:
    language = machine.get("QueryLanguage", language)
    for name, state in machine["States"].items():
        yield Subject(name, state, language, in_map)
        for processor in ("ItemProcessor", "Iterator"):
            if processor in state:
                yield from _states(state[processor], language, True)
        for branch in state.get("Branches", ()):
            yield from _states(branch, language, in_map)


def _alone(subject: Subject) -> tuple[dict[str, Json], dict[str, str]]:
    """Return a workflow of the state alone, and the names of the states that it leads to.

    Each of them is an end by a name that no state has, so that a state may lead to itself.
    """
    names: dict[str, str] = {}

    def end(holder: Mapping[str, Json]) -> dict[str, Json]:
        led = dict(holder)
        for key in ("Next", "Default"):
            if key in led:
                led[key] = f"{subject.name} > {led[key]}"
                names[led[key]] = holder[key]
        return led

    state = end(subject.state)
    for several in ("Choices", "Catch"):
        if several in state:
            state[several] = [end(each) for each in state[several]]
    ends = {name: {"Type": "Succeed"} for name in names}
    workflow = {
        "QueryLanguage": subject.language,
        "StartAt": subject.name,
        "States": {subject.name: state, **ends},
    }
    return workflow, names


# The trial


class _Retriable(BaseException):
    """The state would be run again; nothing of the workflow sees this."""


class _Bench(LocalHost):
    """The host of one trial: it does not wait for a retry."""

    async def sleep_until(self, at: StateFrame, when: float) -> None:
        if at.step.type != "Wait":
            raise _Retriable
        await super().sleep_until(at, when)


class Trial:
    """One state, ready to be tested with a mock or without.

    *mock* holds `result`, or `errorOutput` with `error` and `cause`; *configuration* has AWS's
    names. Raises InvalidTest for a request that AWS refuses.
    """

    def __init__(
        self,
        subject: Subject,
        profile: Profile,
        mock: Mapping[str, Json] | None = None,
        context: Mapping[str, Json] | None = None,
        configuration: Mapping[str, Json] | None = None,
    ) -> None:
        check_mock(subject.state, mock)
        if context is not None:
            check_context(subject.state, context)
        self.subject = subject
        self.mock = mock
        self.context = context
        self.configuration = configuration or {}
        workflow, self.names = _alone(subject)
        self.program: Program = compile_workflow(workflow, profile, subject.name)
        self.compiler = open_state(workflow, subject.name, profile)
        self.step: Step = self.program.machine.start
        self.answer: Json = ABSENT
        """The raw result of the state's work."""
        if self.step.work is not None:
            self.step.work = self._watched(self.step.work if mock is None else self._mocked)

    def run(
        self, data: Json, variables: Mapping[str, Json], find: Find, clock: Clock, inspect: bool
    ) -> StateResult:
        """Run the state on this input; *inspect* asks for what became of the data on the way."""
        flat: list[Any] = []
        execution = Execution(
            self.program, data, urandom(16).hex(), clock.now(), flat.extend, express=True
        )
        execution.context = self.context
        host = _Bench(find, clock, self.program.profile.max_payload)
        frame = Frame(execution, host, self.step, data, execution.started, dict(variables))
        if self.subject.in_map:
            frame.item = data
        self._count_retries(frame)
        output, status, failure = None, "SUCCEEDED", None
        try:
            output = drive(interpret(frame), clock)
        except _Retriable:
            status = "RETRIABLE"
        except StateError as error:
            status, failure = "FAILED", error
        details: dict[str, Json] = {}
        for record in each_record(flat):
            if record[0] == RETRIED:
                failure, details = record[5], self._retry(record[5], record[6])
            elif record[0] == CAUGHT and status == "SUCCEEDED":
                status, failure = "CAUGHT_ERROR", record[5]
                details = self._catch(failure)
        told = Result(execution, flat, status, clock.now(), None, failure)
        following = dict(enumerate(told.visited)).get(1)
        seen: dict[str, Json] = {}
        if inspect:
            seen = self._inspected(frame, data, variables)
            seen |= {"errorDetails": details} if details else {}
        return StateResult(
            status,
            output,
            None if following is None else self.names[following],
            told.error,
            told.cause,
            seen,
        )

    def _retry(self, error: StateError, delay: float) -> dict[str, Json]:
        index = next(i for i, each in enumerate(self.step.retriers) if each.matches(error))
        seconds = int(delay) if delay == int(delay) else delay
        return {"retryIndex": index, "retryBackoffIntervalSeconds": seconds}

    def _catch(self, error: StateError) -> dict[str, Json]:
        index = next(i for i, each in enumerate(self.step.catchers) if each.matches(error))
        return {"catchIndex": index}

    def _count_retries(self, frame: Frame) -> None:
        """Pretend that the retrier of the mocked error has retried as often as it is said."""
        made = self.configuration.get("retrierRetryCount", 0)
        if not made or self.mock is None or "errorOutput" not in self.mock:
            return
        error = self._mocked_error()
        for index, retrier in enumerate(self.step.retriers):
            if retrier.matches(error):
                frame.attempts[index] = made, retrier.interval
                return

    # What stands in for the state's work

    def _watched(self, work: Work) -> Work:
        async def watched(data: Json, frame: StateFrame) -> Json:
            self.answer = await work(data, frame)
            return self.answer

        return watched

    async def _mocked(self, data: Json, frame: StateFrame) -> Json:
        """Do what comes before the work, so that its faults come first, then answer."""
        assert self.mock is not None
        for evaluate in (self.step.payload, self.step.limits):
            if evaluate is not None:
                evaluate(data, frame)
        if "errorOutput" in self.mock:
            raise self._mocked_error()
        return self.mock["result"]

    def _mocked_error(self) -> StateError:
        assert self.mock is not None
        error = self.mock["errorOutput"]
        return Raised(error.get("error"), error.get("cause"))

    # What became of the data

    def _inspected(
        self, frame: Frame, data: Json, variables: Mapping[str, Json]
    ) -> dict[str, Json]:
        at = frame.replayed(0, dict(variables), frame.execution.started, frame.usage, frame.retries)
        at.step, at.item, at.entered = self.step, frame.item, frame.execution.started
        seen: dict[str, Json] = {"input": data}
        with suppress(StateError):
            seen.update(input_stages(self.compiler, data, at))
            result = self._result(seen)
            if result is not ABSENT:
                seen.update(result_stages(self.compiler, data, result, at))
        if frame.variables:
            seen["variables"] = frame.variables
        return seen

    def _result(self, seen: Mapping[str, Json]) -> Json:
        """Return the raw result, `ABSENT` where there is none."""
        if self.step.type != "Pass":
            return self.answer
        return self.subject.state.get("Result", seen.get("afterParameters"))
