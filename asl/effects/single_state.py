"""Run a single state, as AWS's TestState does.

The state becomes a workflow of its own. A mock replaces its work; a retry ends the test, which
reports that the state would be retried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO

from asl.checks import check
from asl.checks.state_test_request import (
    check_configuration,
    check_context,
    check_iterations,
    check_mock,
)
from asl.compiler import compile_workflow, open_state
from asl.compiler.inspection import input_stages, map_items, result_stages, tolerates
from asl.compiler.single_state import SingleState, isolate_state, states_of
from asl.core.diagnostics import Diagnostic, Report, did_you_mean
from asl.core.document import Document, read
from asl.core.errors import AslError, InvalidTest, StateError
from asl.core.profile import Profile
from asl.core.values import Json, compact, copy_foreign, is_integer
from asl.effects.agent_caller import AgentCaller
from asl.effects.clock import Clock
from asl.effects.driver import drive
from asl.effects.local import LocalEffects
from asl.effects.run import drawn_name, execute
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Find
from asl.engine.execution import Execution, Identity
from asl.engine.frame import Frame
from asl.engine.interpreter import interpret
from asl.engine.records import CAUGHT, RETRIED, each_record
from asl.engine.result import Result
from asl.program import Catcher, Retrier, Work
from asl.states.effects import ABSENT, Record, StateFrame
from asl.states.errors import RaisedError
from asl.states.iteration import tolerance_error
from asl.states.map_data import Bucket, ObjectFault, StoredObject

__all__ = ["StateResult", "run_single_state"]

UNNAMED = "StateName"
"""Name of a state that is passed without one (AWS, recorded)."""
NOT_FOUND = "State not found in definition"
_EXPRESS = Identity(express=True)
LEVELS = ("INFO", "DEBUG", "TRACE")
CONFIGURATION = (
    "retrierRetryCount",
    "mapIterationFailureCount",
    "errorCausedByState",
    "mapItemReaderData",
)


@dataclass(frozen=True, slots=True)
class StateResult:
    """The result of a state test, with the terms of AWS's TestState."""

    status: str
    """`SUCCEEDED`, `FAILED`, `RETRIABLE` or `CAUGHT_ERROR`."""
    output: Json = None
    """Present if it succeeded or its error was caught."""
    next_state: str | None = None
    error: str | None = None
    cause: str | None = None
    inspection: dict[str, Json] = field(default_factory=dict)
    """The data after each stage: `inspectionData`."""

    def to_json(self) -> dict[str, Json]:
        """Return the response of TestState; values are JSON, not JSON texts."""
        found: dict[str, Json] = {"status": self.status}
        if self.status in ("SUCCEEDED", "CAUGHT_ERROR"):
            found["output"] = self.output
        others = {"nextState": self.next_state, "error": self.error, "cause": self.cause}
        found |= {key: value for key, value in others.items() if value is not None}
        if self.inspection:
            found["inspectionData"] = self.inspection
        return found


def run_single_state(
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
    role: str | None,
) -> StateResult:
    """Run one state of a document, or a document that is a state; see `asl.test_state`.

    Raises:
        InvalidTest: AWS refuses the request, or there is no such state.
        AslError: An argument is invalid.
    """
    if level not in LEVELS:
        raise AslError(f"no level {level!r}; there are {', '.join(LEVELS)}")
    for what, given in (
        ("mock", mock),
        ("context", context),
        ("variables", variables),
        ("configuration", configuration),
    ):
        if given is not None and not isinstance(given, Mapping):
            raise AslError(f"{what} must be a mapping, not {given!r}")
        if given is not None and not all(isinstance(name, str) for name in given):
            raise AslError(f"{what} is a mapping from names")
    _check_configuration(configuration)
    if reveal_secrets and mock is not None:
        raise InvalidTest("TestState does not support RevealSecrets when a mock is specified.")
    subject = _subject(document, state, profile)
    check_configuration(configuration, mock)
    check_mock(subject.state, mock)
    if context is not None:
        check_context(subject.state, context)
    trial = _SingleState(
        subject, profile, None if mock is None else _Mock.of(mock), configuration, role
    )
    known = copy_foreign(dict(variables))
    return trial.run(find, clock, copy_foreign(data), known, context, inspect=level != "INFO")


def _check_configuration(configuration: Mapping[str, Json]) -> None:
    _known("a configuration has", configuration, CONFIGURATION)
    for count in ("retrierRetryCount", "mapIterationFailureCount"):
        number = configuration.get(count, 0)
        if not is_integer(number) or number < 0:
            raise AslError(f"{count} must be a whole number from 0 up, not {number!r}")


def _known(what: str, given: Mapping[str, Json], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or _listed(names)
            raise AslError(f"{what} no {name!r} ({hint})")


def _subject(document: Document, name: str | None, profile: Profile) -> SingleState:
    """Return the state to test.

    Raises:
        InvalidDocument: The definition has errors.
    """
    definition = document.value
    if "States" not in definition and "Type" in definition:
        subject = SingleState(UNNAMED, definition)
        report = check(read(isolate_state(subject)[0], name=document.source.name), profile)
        _of_state(report, document).raise_for_errors()
        if name is not None:
            raise InvalidTest(NOT_FOUND, hint="it is a state alone: name none")
        return subject
    check(document, profile).raise_for_errors()
    subjects = {each.name: each for each in states_of(definition)}
    if name is None:
        raise AslError(f"name the state to test; {_listed(subjects)}")
    if not isinstance(name, str):
        raise AslError(f"'state' must be the name of a state, got {type(name).__name__}")
    if name not in subjects:
        raise InvalidTest(NOT_FOUND, hint=did_you_mean(name, subjects) or _listed(subjects))
    return subjects[name]


def _listed(names: Iterable[str]) -> str:
    return f"there are {', '.join(names)}"


def _of_state(report: Report, document: Document) -> Report:
    """Return the findings of an unnamed state's workflow with their places in the state."""

    def moved(found: Diagnostic) -> Diagnostic:
        pointer = found.pointer.removeprefix(f"/States/{UNNAMED}")
        place = document.locate(pointer, at_key=True)
        return found._replace(pointer=pointer, line=place.line, column=place.column)

    return Report(tuple(map(moved, report)), document)


@dataclass(frozen=True, slots=True)
class _Mock:
    """The mocked result or error of a state's work."""

    result: Json = ABSENT
    error: StateError | None = None

    @staticmethod
    def of(mock: Mapping[str, Json]) -> "_Mock":
        _known("a mock has", mock, ("result", "errorOutput", "fieldValidationMode"))
        if "result" in mock:
            return _Mock(copy_foreign(mock["result"]))
        error = mock.get("errorOutput")
        if not isinstance(error, Mapping):
            raise AslError("a mock has a 'result', or an 'errorOutput' with 'error' and 'cause'")
        _known("an errorOutput has", error, ("error", "cause"))
        for text in error.values():
            if not isinstance(text, str | None):
                raise AslError(f"'error' and 'cause' are texts, not {text!r}")
        return _Mock(error=RaisedError(error.get("error"), error.get("cause")))


# The environment of a test


class _Retriable(BaseException):
    """Ends a test whose state would be retried; states cannot catch it."""


class _FixedBucket:
    """A read-only bucket with the same content under every key (protocol
    `asl.states.objects.Bucket`).
    """

    def __init__(self, content: Json) -> None:
        self.content = content

    def open(self, key: str) -> BinaryIO:
        text = self.content if type(self.content) is str else compact(self.content)
        return BytesIO(text.encode())

    def create(self, key: str) -> BinaryIO:
        raise ObjectFault("a state test cannot write objects")

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        return iter(())


class _AnyBucket(dict[str, Bucket]):
    """Buckets of any name whose objects have the configured content."""

    def __init__(self, reading: Json) -> None:
        super().__init__()
        self.reading = reading

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Bucket:
        return _FixedBucket(self.reading)


def _record(flat: list[Any], record: Record) -> None:
    """Take a record; a retry ends the test."""
    flat.extend(record)
    if record[0] is RETRIED:
        raise _Retriable


# The test


class _SingleStateExecution(Execution):
    """An execution of one state without a history.

    So causes do not name the event of the state's entry, as in responses of TestState
    (floci-io/floci pull requests 2684 and 2689).
    """

    __slots__ = ()
    has_history = False


class _SingleState:
    """One state, ready to be tested."""

    def __init__(
        self,
        subject: SingleState,
        profile: Profile,
        mock: _Mock | None,
        configuration: Mapping[str, Json],
        role: str | None,
    ) -> None:
        self.role = role
        self.subject = subject
        self.mock = mock
        self.configuration = configuration
        workflow, self.stands_for = isolate_state(subject)
        self.program = compile_workflow(workflow, profile, subject.name)
        self.compiler = open_state(workflow, subject.name, profile)
        self.step = self.program.machine.start
        self.answer: Json = ABSENT
        """Raw result of the state's work."""
        if self.step.work is not None:
            work = self.step.work if mock is None else self._mocked(mock)
            self.step.work, self.step.call = self._watched(work), None

    @property
    def read(self) -> bool:
        """Whether the content for an `ItemReader` is configured."""
        return "mapItemReaderData" in self.configuration

    def run(
        self,
        find: Find,
        clock: Clock,
        data: Json,
        variables: dict[str, Json],
        context: Mapping[str, Json] | None,
        inspect: bool,
    ) -> StateResult:
        """Run the state.

        Args:
            find: Returns the agent of a target.
            clock: Clock of the test.
            data: Input of the state.
            variables: Variables assigned before.
            context: The context object, None for a generated one.
            inspect: Whether to inspect the data of each stage.
        """
        flat: list[Any] = []
        runtime = RuntimeContext().init(
            execute, clock, _AnyBucket(self.configuration.get("mapItemReaderData"))
        )
        caller = AgentCaller().init(runtime, find, self.program.profile.max_payload)
        started = runtime.now()
        execution = _SingleStateExecution().init(
            self.program, data, started, flat, _EXPRESS._replace(role=self.role), drawn_name
        )
        execution.context = context
        execution.emit = partial(_record, flat)
        effects = LocalEffects().init(runtime, caller, execution.emit)
        frame = Frame().init(execution, effects, self.step, data, started, variables)
        if self.subject.in_map:
            frame.item = data
        self._count_retries(frame)
        output, status, failure = None, "SUCCEEDED", None
        try:
            output = drive(_interpreted(frame, runtime), clock)
        except _Retriable:
            status = "RETRIABLE"
        except StateError as error:
            status, failure = "FAILED", error
        status, failure, handled = self._handled(flat, status, failure)
        result = Result().init(execution, flat, status, runtime.now(), output, failure)
        inspection = self._inspected(frame, data, variables) | handled if inspect else {}
        names = result.visited
        following = self.stands_for[names[1]] if len(names) > 1 else None
        cause = None if failure is None else failure.cause
        return StateResult(status, output, following, result.error, cause, inspection)

    def _handled(
        self, flat: list[Any], status: str, failure: StateError | None
    ) -> tuple[str, StateError | None, dict[str, Json]]:
        """Return status, error and the details of the retrier or catcher that handled the error."""
        details: dict[str, Json] = {}
        for kind, _, _, _, _, *rest in each_record(flat):
            if kind == RETRIED:
                failure, delay, _ = rest
                details["retryBackoffIntervalSeconds"] = round(delay)
            elif kind == CAUGHT and status == "SUCCEEDED":
                failure, status = rest[0], "CAUGHT_ERROR"
                details["catchIndex"] = _handler(self.step.catchers, failure)
        tried = None if failure is None else _handler(self.step.retriers, failure)
        if tried is not None:  # including an exhausted retrier
            details["retryIndex"] = tried
        return status, failure, {"errorDetails": details} if details else {}

    def _count_retries(self, frame: Frame) -> None:
        """Set the retry count of the retrier of the mocked error."""
        made = self.configuration.get("retrierRetryCount", 0)
        if made and self.mock is not None and self.mock.error is not None:
            for index, retrier in enumerate(self.step.retriers):
                if retrier.matches(self.mock.error):
                    frame.attempts[index] = made, retrier.interval
                    return

    # The mocked work

    def _watched(self, work: Work) -> Work:
        async def watched(data: Json, frame: StateFrame) -> Json:
            self.answer = await work(data, frame)
            return self.answer

        return watched

    def _mocked(self, mock: _Mock) -> Work:
        """Return work that evaluates the fields before the call, for their errors, and returns the
        mock.
        """
        step = self.step

        async def answer(data: Json, frame: StateFrame) -> Json:
            if step.payload is not None:
                step.payload(data, frame)
            if step.limits is not None:
                step.limits(data, frame)
            bears = step.type != "Map" or self._bears(data, mock.result, frame)
            if mock.error is not None:
                raise mock.error
            if not bears:
                raise tolerance_error()
            return mock.result

        return answer

    def _bears(self, data: Json, result: Json, frame: StateFrame) -> bool:
        """Return whether the Map tolerates the configured number of failed iterations."""
        for _ in input_stages(self.compiler, data, frame, self.read):
            pass  # for its errors
        failures = self.configuration.get("mapIterationFailureCount", 0)
        if self.read or "ItemReader" not in self.subject.state:
            items = len(map_items(self.compiler, data, frame))
        else:
            items = len(result) if type(result) is list else failures
        check_iterations(failures, items)
        return tolerates(self.compiler, failures, items, data, frame)

    # Inspection data

    def _inspected(self, frame: Frame, data: Json, variables: dict[str, Json]) -> dict[str, Json]:
        at = frame.frame_at(0, variables, frame.execution.started, frame.usage, frame.retries)
        at.step, at.item, at.entered = self.step, frame.item, frame.execution.started
        seen: dict[str, Json] = {"input": data}
        with suppress(StateError):
            seen.update(input_stages(self.compiler, data, at, self.read))
            result = self._result(seen)
            if result is not ABSENT:
                seen.update(result_stages(self.compiler, data, result, at))
        if frame.variables:
            seen["variables"] = dict(frame.variables)
        return seen

    def _result(self, seen: Mapping[str, Json]) -> Json:
        """Return the raw result, `ABSENT` without one."""
        if self.step.type != "Pass":
            return self.answer
        return self.subject.state.get("Result", seen.get("afterParameters"))


async def _interpreted(frame: Frame, runtime: RuntimeContext) -> Json:
    try:
        return await interpret(frame)
    finally:
        if runtime.holds:
            await runtime.close()


def _handler(handlers: Sequence[Retrier | Catcher], error: StateError) -> int | None:
    """Return the index of the first retrier or catcher that matches the error, None without one."""
    return next((index for index, each in enumerate(handlers) if each.matches(error)), None)
