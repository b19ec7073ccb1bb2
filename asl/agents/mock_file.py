"""Mock configuration files, as Step Functions Local knows them, read unchanged.

    {"StateMachines": {"Orders": {"TestCases": {"Happy": {"Charge": "Charged"}}}},
     "MockedResponses": {"Charged": {"0": {"Throw": {"Error": "Busy", "Cause": "later"}},
                                     "1-2": {"Return": {"StatusCode": 200}}}}}

A test case names the response of each state that is mocked; a response says what each call of the
state gets. The calls of a state are numbered from 0 through the whole execution: attempts, visits
and iterations alike. States that a case does not name call what is bound to them.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from asl.core.diagnostics import did_you_mean, misspelt
from asl.core.document import Document, read_value
from asl.core.errors import AslError
from asl.core.pointers import escape
from asl.core.values import Json, excerpt, type_name
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["InvalidMocks", "MockedState", "load_mocks"]

SECTIONS = ("StateMachines", "MockedResponses")
MAX_FAULTS = 50
"""Faults that are reported, at most."""
MAX_NEAR = 500
"""Names among which a similar one is looked for, at most."""
_ATTEMPTS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class InvalidMocks(AslError):
    """A mock file lacks what is asked of it; a line `file:line:column: ...` for each fault."""


@dataclass(frozen=True, slots=True)
class _Response:
    """The answer to the calls of a state from *first* to *last*."""

    first: int
    last: int
    give: Callable[[], Json]


class MockedState(Agent):
    """A Task state whose answers a mock file gives, by the number of the call."""

    def __init__(self, name: str, where: str, responses: list[_Response]) -> None:
        self.name = name
        self.where = where
        self.responses = responses
        self.calls: Counter[str] = Counter()
        """Calls so far, by the execution."""

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Return the response listed for this call.

        Raises:
            RaisedError: `States.Runtime`; the file lists no response for it.
        """
        assert call is not None
        number = self.calls[call.execution_id]
        self.calls[call.execution_id] += 1
        for response in self.responses:
            if response.first <= number <= response.last:
                return response.give()
        raise RaisedError(
            "States.Runtime",
            f"{self.where}: the mocked response {self.name!r} has nothing for call {number} of "
            f"state '{call.state_name}'",
        )


def load_mocks(
    path: str | os.PathLike[str],
    case: str,
    *,
    machine: str | None = None,
    states: Mapping[str, str] | None = None,
    workflow: str | None = None,
) -> dict[str, MockedState]:
    """Read one test case of a mock file, as the `mocks` of a run.

    *machine* is the state machine of the case. Without one it is that called *workflow*, or the
    only one there is, or the only one with such a case; *case* may also be `Machine/Case`.
    *states* are those of the document with their types: a case that mocks another one is refused.

    Raises InvalidMocks with every fault and its place, `InvalidDocument` for a file that is neither
    JSON nor YAML, `DocumentNotFound` for a missing one.
    """
    reader = _Reader(read_value(Path(path)))
    mocks = reader.read(case, machine, states, workflow)
    if reader.faults:
        raise InvalidMocks("\n".join(reader.faults))
    return mocks


def _cases(machine: Json) -> Mapping[str, Json]:
    cases = machine.get("TestCases") if type(machine) is dict else None
    return cases if type(cases) is dict else {}


class _Stop(Exception):
    """Nothing sensible can be read after the fault that was just noted."""


class _Reader:
    """Reads one test case and gathers what is wrong with it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[str] = []

    def read(
        self,
        case: str,
        machine: str | None,
        states: Mapping[str, str] | None,
        workflow: str | None,
    ) -> dict[str, MockedState]:
        try:
            machines, responses = self.sections()
            machine, case = self.select_case(machines, case, machine, workflow)
            pointer = f"/StateMachines/{escape(machine)}"
            cases = self.member(machines[machine], "TestCases", pointer)
            pointer += "/TestCases"
            if case not in cases:
                self.stop(pointer, f"{machine!r} has no test case {case!r}", case, cases)
            pointer += f"/{escape(case)}"
            mocked = self.object(
                cases[case], pointer, "a test case is an object of states and responses"
            )
        except _Stop:
            return {}
        return dict(self.mocks(mocked, responses, pointer, states))

    def mocks(
        self,
        mocked: Mapping[str, Json],
        responses: Mapping[str, Json],
        pointer: str,
        states: Mapping[str, str] | None,
    ) -> Iterator[tuple[str, MockedState]]:
        for state, name in mocked.items():
            at = f"{pointer}/{escape(state)}"
            if states is not None and states.get(state) != "Task":
                kind = states.get(state)
                text = f"the document has no state {state!r}"
                if kind is not None:
                    text = f"{state!r} is a {kind}: only a Task can be mocked"
                self.fault(at, text, state, states, at_key=True)
            elif type(name) is not str or name not in responses:
                text = f"there is no mocked response {excerpt(name, 100)}"
                self.fault(at, text, name, responses)
            else:
                below = f"/MockedResponses/{escape(name)}"
                given = sorted(self.responses(responses[name], below), key=lambda each: each.first)
                yield state, MockedState(name, self.where(below, at_key=True), given)

    # The parts

    def sections(self) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
        value = self.object(self.document.value, "", "a mock file is an object")
        for key in value:
            if key not in SECTIONS:
                self.fault(f"/{escape(key)}", f"unknown key {key!r}", key, SECTIONS, at_key=True)
        machines, responses = (self.member(value, key, "") for key in SECTIONS)
        return machines, responses

    def select_case(
        self,
        machines: Mapping[str, Json],
        case: str,
        machine: str | None,
        workflow: str | None,
    ) -> tuple[str, str]:
        """Return the machine and the case that are meant."""
        first, _, rest = case.partition("/")
        known = [first in machines, *(rest in _cases(each) for each in machines.values())]
        if machine is None and rest and any(known):
            machine, case = first, rest
        if machine is not None:
            if machine not in machines:
                self.stop("/StateMachines", f"no state machine {machine!r}", machine, machines)
            return machine, case
        if workflow is not None and workflow in machines:
            return workflow, case
        having = [name for name, each in machines.items() if case in _cases(each)]
        if len(machines) != 1 and len(having) != 1:
            text = f"which state machine is meant? Name it, as in 'Machine/{case}'"
            self.stop("/StateMachines", text, "", having or machines)
        return (having or list(machines))[0], case

    def responses(self, value: Json, pointer: str) -> Iterator[_Response]:
        taken: list[tuple[int, int, str]] = []
        try:
            given = self.object(value, pointer, "a mocked response is an object of attempts")
        except _Stop:
            return
        for attempts, response in given.items():
            at = f"{pointer}/{escape(attempts)}"
            form = _ATTEMPTS.fullmatch(attempts)
            first = int(form[1]) if form else 0
            last = int(form[2] or first) if form else -1
            if last < first:
                text = f"attempts are written '0' or '1-3', not {attempts!r}"
                self.fault(at, text, at_key=True)
                continue
            other = next((key for low, high, key in taken if first <= high and low <= last), None)
            if other is not None:
                text = f"the attempts {attempts!r} are listed already, by {other!r}"
                self.fault(at, text, at_key=True)
            taken.append((first, last, attempts))
            give = self.answer(response, at)
            if give is not None:
                yield _Response(first, last, give)

    def answer(self, response: Json, pointer: str) -> Callable[[], Json] | None:
        """Return what gives the answer, None if it is not written as it should be."""
        kinds = list(response) if type(response) is dict else []
        if kinds == ["Return"]:
            value = response["Return"]
            return lambda: value
        if kinds != ["Throw"]:
            unknown = next((key for key in kinds if key not in ("Return", "Throw")), None)
            text = "a response has either 'Return' or 'Throw'"
            self.fault(pointer, text, unknown, ("Return", "Throw") if unknown else ())
            return None
        thrown = response["Throw"]
        if type(thrown) is not dict or not all(type(text) is str for text in thrown.values()):
            self.fault(f"{pointer}/Throw", "'Throw' is an object with the texts Error and Cause")
            return None
        for key in thrown:
            if key not in ("Error", "Cause"):
                at = f"{pointer}/Throw/{escape(key)}"
                self.fault(at, f"unknown key {key!r}", key, ("Error", "Cause"), at_key=True)

        def give() -> Json:
            raise RaisedError(thrown.get("Error"), thrown.get("Cause"))

        return give

    # Faults

    def member(self, value: Json, key: str, pointer: str) -> Mapping[str, Json]:
        holder = self.object(value, pointer, f"this is an object with {key!r}")
        if key not in holder:
            hint = misspelt(key, [*holder])
            self.stop(pointer, f"{key!r} is missing" + (f" ({hint})" if hint else ""))
        return self.object(holder[key], f"{pointer}/{key}", f"{key!r} is an object")

    def object(self, value: Json, pointer: str, needed: str) -> Mapping[str, Json]:
        if type(value) is not dict:
            self.stop(pointer, f"{needed}, not {type_name(value)}")
        found: Mapping[str, Json] = value
        return found

    def stop(
        self, pointer: str, message: str, word: Json = None, near: Collection[str] = ()
    ) -> NoReturn:
        self.fault(pointer, message, word, near)
        raise _Stop

    def fault(
        self,
        pointer: str,
        message: str,
        word: Json = None,
        near: Collection[str] = (),
        *,
        at_key: bool = False,
    ) -> None:
        if len(self.faults) >= MAX_FAULTS:
            return
        hint = did_you_mean(word, near) if type(word) is str and len(near) <= MAX_NEAR else None
        if hint is None and near and len(near) <= 10:
            hint = f"there are {', '.join(near)}"
        text = f"{self.where(pointer, at_key=at_key)}: {message}"
        self.faults.append(f"{text} ({hint})" if hint else text)

    def where(self, pointer: str, *, at_key: bool = False) -> str:
        place = self.document.locate(pointer, at_key)
        return f"{self.document.source.name}:{place.line}:{place.column}"
