"""What compiling a state has in common in both query languages."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Self, TypeAlias

from asl.compiler.computed_blocks import compile_computed_block
from asl.core.errors import StateError, too_large
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.profile import Missing, Profile
from asl.core.values import Json, measure
from asl.expr.choice_rules import Predicate
from asl.expr.frame import Evaluate, Frame
from asl.expr.result_path import Place
from asl.program import Catcher, Finish, Machine, MachineOf, Retrier, Step, Work
from asl.states import STATE_TYPES
from asl.states.errors import HeartbeatMissed

__all__ = ["CompileMachine", "StateCompiler", "bound_output", "compile_matcher", "compile_retrier"]

NEVER_MATCHED = "States.Runtime"
HEARTBEAT = "States.HeartbeatTimeout"
DATA_LIMIT = "States.DataLimitExceeded"
BARE_NAMES = ("RateLimitExceeded", "BudgetExceeded")
"""Errors that documents write with and without `States.` (register C-14)."""


def compile_retrier(entry: Mapping[str, Json], profile: Profile) -> Retrier:
    """Return one entry of `Retry` with the defaults for what it does not say (4.3)."""
    return Retrier(
        matches=compile_matcher(entry["ErrorEquals"], profile),
        interval=entry.get("IntervalSeconds", 1),
        max_attempts=entry.get("MaxAttempts", 3),
        backoff_rate=entry.get("BackoffRate", 2.0),
        max_delay=entry.get("MaxDelaySeconds", entry.get("MaxIntervalSeconds")),
        jitter=entry.get("JitterStrategy", "NONE").upper(),
    )


def compile_matcher(names: list[str], profile: Profile) -> Callable[[StateError], bool]:
    """Compile `ErrorEquals` (Specification 4.1, 4.2)."""
    listed = set(names)
    for bare in BARE_NAMES:
        if listed & {bare, f"States.{bare}"}:
            listed |= {bare, f"States.{bare}"}
    listed.discard(NEVER_MATCHED)
    exempt = {NEVER_MATCHED}
    if not profile.wildcard_matches_data_limit:
        exempt.add(DATA_LIMIT)
    if "States.ALL" in listed:
        return lambda error: error.name in listed or error.name not in exempt
    if "States.TaskFailed" in listed:
        exempt |= {"States.Timeout", "States.QueryEvaluationError" if profile.aws else DATA_LIMIT}
        return lambda error: _listed(error, listed) or error.name not in exempt
    return lambda error: _listed(error, listed)


def _listed(error: StateError, names: set[str]) -> bool:
    return error.name in names or (HEARTBEAT in names and isinstance(error, HeartbeatMissed))


_WITH_TOKEN = lazy_pattern(r"\.(?:waitForTaskToken|sync|sync:2)\Z")

MAX_ALIVE = 10 * 1024 * 1024
"""Bytes that all variables of a machine may have together under such a profile."""

CompileMachine: TypeAlias = Callable[[Mapping[str, Json], str], Machine]
"""Compile the machine with this definition, at this JSON Pointer."""


class StateCompiler(ABC):
    """Compiles the fields of one state (protocol `asl.states.base.Compiler`)."""

    jsonata = False

    def __init__(
        self,
        state: Mapping[str, Json],
        step: Step,
        steps: Mapping[str, Step],
        profile: Profile,
        compile_machine: CompileMachine,
        machines: dict[str, Machine],
    ) -> None:
        self.state = state
        self.name = step.name
        self.own = step
        self.effect = STATE_TYPES[step.type].effect
        """Whether it takes `Retry` and `Catch`, so that the context object counts retries."""
        self.token = bool(_WITH_TOKEN.search(str(state.get("Resource"))))
        """Whether the context object has a task token."""
        self.steps = steps
        self.profile = profile
        self.compile_machine = compile_machine
        self.machines = machines
        """Every machine of the workflow so far, by the JSON Pointer of its object."""
        self.whole = state
        """The whole state, where `state` is an object below it."""
        self.place = ""
        """The way from the state to the object that is being compiled: `ItemReader/`."""

    def limited(self, assign: Evaluate | None) -> Evaluate | None:
        """Bound the size of what is assigned, where the profile bounds it (Specification 1.2)."""
        if assign is None or not self.profile.checks_every_state:
            return assign
        limit, evaluate = self.profile.max_payload, assign

        def assigned(data: Json, frame: Frame) -> Json:
            values = evaluate(data, frame)
            everything = {**frame.variables, **values}
            if measure(values, limit) > limit or measure(everything, MAX_ALIVE) > MAX_ALIVE:
                raise too_large(self.name)
            return values

        return assigned

    def step(self, name: str) -> Step:
        """Return the state *name* of the same machine."""
        return self.steps[name]

    def within(self, *steps: str | int) -> Self:
        """Return a compiler of the object below the state, empty where there is none."""
        inner = self._twin()
        found: Json = self.state
        for step in steps:
            if type(step) is int:
                found = found[step]
                inner.place = f"{inner.place[:-1]}[{step}]/"
            else:
                found = found.get(step, {})
                inner.place += f"{step}/"
        inner.state = found
        return inner

    def after(self) -> Self:
        """Return a compiler of what is evaluated once the state has succeeded."""
        return self

    def only(self, *fields: str) -> Self:
        """Return a compiler of the same state as if it had no more than these fields."""
        partial = self._twin()
        partial.state = {field: self.state[field] for field in fields if field in self.state}
        return partial

    def _twin(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def machine(self, *steps: str | int) -> Machine:
        """Compile the sub-machine at *steps* below the state."""
        definition: Json = self.state
        pointer = self.own.pointer
        for step in steps:
            definition = definition[step]
            pointer += f"/{escape(str(step))}"
        return self.compile_machine(definition, pointer)

    def task(self, name: str, work: Work, *steps: str | int) -> Machine:
        """Make a machine of one Task at *steps* below the state."""
        pointer = self.own.pointer + "".join(f"/{escape(str(step))}" for step in steps)
        only = Step(name, "Task", f"{pointer}/States/{escape(name)}", work=work)
        only.siblings = {name: only}
        machine = self.machines[pointer] = Machine(only, only.siblings, pointer)
        return machine

    def included(self) -> MachineOf:
        """Compile what an Include holds."""
        from asl.compiler.include import compile_include

        pointer = f"{self.own.pointer}/Template"
        return compile_include(
            self.own,
            self.state["Template"],
            self.profile,
            lambda definition: self.compile_machine(definition, pointer),
            self.machines,
        )

    @abstractmethod
    def input(self) -> Evaluate:
        """Compile the way from raw to effective input."""

    @abstractmethod
    def payload(self) -> Evaluate:
        """Compile the way from raw input to what the work is given."""

    @abstractmethod
    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile the template in *field*, None where the field is absent."""

    @abstractmethod
    def computed(self, field: str, kind: str) -> Evaluate | None:
        """Compile a field whose value is an expression, None where it is not."""

    @abstractmethod
    def reference(self, field: str) -> Evaluate:
        """Compile the reference path in *field*."""

    @abstractmethod
    def expression(self, field: str, text: str) -> Evaluate:
        """Compile a path of any kind or an intrinsic call that stands in *field*."""

    @abstractmethod
    def condition(self) -> Predicate:
        """Compile what decides whether a choice rule holds; the rule is the object at hand."""

    @abstractmethod
    def text(self, field: str) -> Evaluate | None:
        """Compile a text into which values are inserted, None where the field is absent."""

    @abstractmethod
    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile a field that may be computed, None where it is absent."""

    def settled(self, field: str) -> Evaluate | None:
        """Compile a block that is read once its fields are computed, None where none of them is."""
        return compile_computed_block(self, field, self.own, self.whole)

    def matcher(self, names: list[str]) -> Callable[[StateError], bool]:
        """Compile error names as `ErrorEquals` has them."""
        return compile_matcher(names, self.profile)

    @abstractmethod
    def finish(
        self, absent: Place | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        """Compile the way of a result to the output, None for no change."""

    @abstractmethod
    def placed(self, inserts: tuple[Finish, ...]) -> Finish | None:
        """Compile the way of a result to what `OutputPath` sees, None for no change."""

    @abstractmethod
    def leave(self) -> Finish | None:
        """Compile the way out of a state without a result of its own, None for no change."""

    @abstractmethod
    def constant_result(self, result: Json) -> Evaluate | None:
        """Compile a state that only places a literal, None for any other."""

    @abstractmethod
    def catcher(self) -> Catcher:
        """Compile an entry of `Catch`, which is the object at hand."""


def bound_output(step: Step, limit: int, *, first: bool) -> None:
    """Let a pure state fail where its output is too large.

    What it hands on unchanged is measured only in the *first* state of a machine: elsewhere the
    state before has been.
    """
    transform, choose = step.transform, step.choose

    def check(data: Json, output: Json) -> None:
        if (first or output is not data) and measure(output, limit) > limit:
            raise too_large(step.name)

    if transform is not None:

        def transform_within(data: Json, frame: Frame) -> Json:
            output = transform(data, frame)
            check(data, output)
            return output

        step.transform = transform_within
    elif choose is not None:

        def choose_within(data: Json, frame: Frame) -> tuple[Step | None, Json]:
            following, output = choose(data, frame)
            check(data, output)
            return following, output

        step.choose = choose_within
