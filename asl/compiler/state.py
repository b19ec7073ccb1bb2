"""The common part of the compilers of both query languages, and `Retry` and `ErrorEquals`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Self, TypeAlias

from asl.compiler.computed_blocks import compile_computed_block
from asl.core.codes import ErrorName, error_group
from asl.core.errors import StateError, too_large
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.profile import Missing, Profile
from asl.core.values import Json, measure
from asl.expr.choice_rules import Predicate
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.result_path import InsertResult
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
    """Return one entry of `Retry` with defaults for absent fields (4.3)."""
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
    for name in names:
        if (group := error_group(name)) is not None:
            return _matcher_of_group(group, [each for each in names if each != name], profile)
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


def _matcher_of_group(
    group: ErrorName, others: list[str], profile: Profile
) -> Callable[[StateError], bool]:
    matches = compile_matcher([*group.matches], profile)
    listed = compile_matcher(others, profile)
    return lambda error: listed(error) or (error.name not in group.excludes and matches(error))


def _listed(error: StateError, names: set[str]) -> bool:
    return error.name in names or (HEARTBEAT in names and isinstance(error, HeartbeatMissed))


_WITH_TOKEN = lazy_pattern(r"\.(?:waitForTaskToken|sync|sync:2)\Z")

MAX_ALIVE = 10 * 1024 * 1024
"""Maximum size of all variables of a machine in bytes under such a profile."""

CompileMachine: TypeAlias = Callable[[Mapping[str, Json], str], Machine]
"""Compiles the machine of a definition at a JSON Pointer."""


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
        """Whether the state takes `Retry` and `Catch`, so that the context object counts
        retries."""
        self.token = bool(_WITH_TOKEN.search(str(state.get("Resource"))))
        """Whether the context object has a task token."""
        self.steps = steps
        self.profile = profile
        self.compile_machine = compile_machine
        self.machines = machines
        """Every machine of the workflow so far, by the JSON Pointer of its object."""
        self.whole = state
        """The whole state, if `state` is an object within it."""
        self.place = ""
        """Path from the state to the compiled object: `ItemReader/`."""

    def limit_variables(self, assign: Evaluate | None) -> Evaluate | None:
        """Limit the size of assigned variables if the profile does (Specification 1.2)."""
        if assign is None or not self.profile.checks_every_state:
            return assign
        limit, evaluate = self.profile.max_payload, assign

        def assigned(data: Json, frame: ExpressionFrame) -> Json:
            values = evaluate(data, frame)
            everything = {**frame.variables, **values}
            if measure(values, limit) > limit or measure(everything, MAX_ALIVE) > MAX_ALIVE:
                raise too_large(self.name)
            return values

        return assigned

    def step(self, name: str) -> Step:
        """Return the state *name* of the same machine."""
        return self.steps[name]

    def compiler_at(self, *steps: str | int) -> Self:
        """Return a compiler of an object within the state, empty if it is absent."""
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

    def compiler_after(self) -> Self:
        """Return a compiler of fields that are evaluated after the state has succeeded."""
        return self

    def only(self, *fields: str) -> Self:
        """Return a compiler of the same state with only these fields."""
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
        """Create a machine of one Task at *steps* below the state."""
        pointer = self.own.pointer + "".join(f"/{escape(str(step))}" for step in steps)
        only = Step(name, "Task", f"{pointer}/States/{escape(name)}", work=work)
        only.siblings = {name: only}
        machine = self.machines[pointer] = Machine(only, only.siblings, pointer)
        return machine

    def included_machine(self) -> MachineOf:
        """Compile the document of an Include."""
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
        """Compile the steps from raw to effective input."""

    @abstractmethod
    def payload(self) -> Evaluate:
        """Compile the steps from raw input to the payload of the work."""

    @abstractmethod
    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile the template in *field*, None if the field is absent."""

    @abstractmethod
    def computed_field(self, field: str, kind: str) -> Evaluate | None:
        """Compile a field whose value is an expression, None if it is not."""

    @abstractmethod
    def reference(self, field: str) -> Evaluate:
        """Compile the reference path in *field*."""

    @abstractmethod
    def expression(self, field: str, text: str) -> Evaluate:
        """Compile a path of any kind or an intrinsic call in *field*."""

    @abstractmethod
    def condition(self) -> Predicate:
        """Compile the condition of a choice rule, which is the compiled object."""

    @abstractmethod
    def text(self, field: str) -> Evaluate | None:
        """Compile a text with interpolated values, None if the field is absent."""

    @abstractmethod
    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile a field that may be computed, None if it is absent."""

    def computed_block(self, field: str) -> Evaluate | None:
        """Compile a block that is read as a whole once its fields are computed, None if none is."""
        return compile_computed_block(self, field, self.own, self.whole)

    def matcher(self, names: list[str]) -> Callable[[StateError], bool]:
        """Compile error names in the form of `ErrorEquals`."""
        return compile_matcher(names, self.profile)

    @abstractmethod
    def finish(
        self, absent: InsertResult | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        """Compile the steps from a result to the output, None for no change."""

    @abstractmethod
    def placement(self, inserts: tuple[Finish, ...]) -> Finish | None:
        """Compile the steps from a result to the input of `OutputPath`, None for no change."""

    @abstractmethod
    def leave(self) -> Finish | None:
        """Compile the output of a state without a result of its own, None for no change."""

    @abstractmethod
    def constant_result(self, result: Json) -> Evaluate | None:
        """Compile a state that only places a literal, None for any other."""

    @abstractmethod
    def catcher(self) -> Catcher:
        """Compile an entry of `Catch`, which is the compiled object."""


def bound_output(step: Step, limit: int, *, first: bool) -> None:
    """Fail a pure state whose output is too large.

    An unchanged output is measured only in the *first* state of a machine; elsewhere the previous
    state has measured it.
    """
    transform, choose = step.transform, step.choose

    def check(data: Json, output: Json) -> None:
        if (first or output is not data) and measure(output, limit) > limit:
            raise too_large(step.name)

    if transform is not None:

        def transform_within(data: Json, frame: ExpressionFrame) -> Json:
            output = transform(data, frame)
            check(data, output)
            return output

        step.transform = transform_within
    elif choose is not None:

        def choose_within(data: Json, frame: ExpressionFrame) -> tuple[Step | None, Json]:
            following, output = choose(data, frame)
            check(data, output)
            return following, output

        step.choose = choose_within
