"""Layer 4: a checked document becomes an immutable program.

Everything that a state's JSON says is turned into closures here, once; the interpreter only calls.
The input and output processing that all state types share (Specification 3.1) is composed here,
and only of the steps that a state really has.
"""

from collections.abc import Callable, Mapping

from asl.core.diagnostics import escape
from asl.core.errors import StateError
from asl.core.profile import Missing, Profile
from asl.core.values import Json
from asl.expr import intrinsics
from asl.expr.frame import Evaluate, Frame, constant, identity
from asl.expr.paths import Use, compile_path, parse_path
from asl.expr.references import Place, compile_constant_at, compile_result_path
from asl.expr.rules import Operand
from asl.expr.templates import compile_template
from asl.program import Catcher, Finish, Machine, Program, Retrier, Step
from asl.states import STATE_TYPES
from asl.states.host import HeartbeatMissed

__all__ = ["compile_workflow"]

NEVER_MATCHED = "States.Runtime"
HEARTBEAT = "States.HeartbeatTimeout"
EFFECTS = ("Task", "Map", "Parallel")
"""The state types that take `Retry` and `Catch`, so that the context object counts retries."""
BARE_NAMES = ("RateLimitExceeded", "BudgetExceeded")
"""Errors that documents write with and without `States.` (register C-14)."""


def compile_workflow(workflow: Mapping[str, Json], profile: Profile, name: str) -> Program:
    """Compile a workflow that has been checked and has no errors."""
    machines: dict[str, Machine] = {}
    machine = _machine(workflow, "", profile, machines)
    timeout = workflow.get("TimeoutSeconds")
    return Program(machine, profile, name, timeout, machines)


def _machine(
    definition: Mapping[str, Json], pointer: str, profile: Profile, machines: dict[str, Machine]
) -> Machine:
    states = definition["States"]
    steps = {
        name: Step(name, state["Type"], f"{pointer}/States/{escape(name)}")
        for name, state in states.items()
    }
    machine = machines[pointer] = Machine(steps[definition["StartAt"]], steps, pointer)
    for name, state in states.items():
        step = steps[name]
        compiler = _StateCompiler(state, step, steps, profile, machines)
        if "Next" in state:
            step.next = steps[state["Next"]]
        STATE_TYPES[step.type].compile(compiler, step)
        if step.type in EFFECTS:  # elsewhere both have no effect (V-ST-10)
            step.retriers = tuple(_retrier(entry, profile) for entry in state.get("Retry", ()))
            step.catchers = tuple(compiler.catcher(entry) for entry in state.get("Catch", ()))
    return machine


class _StateCompiler:
    """Compiles the fields of one state; see `asl.states.base.Compiler`."""

    __slots__ = ("effect", "machines", "name", "own", "profile", "state", "steps")

    def __init__(
        self,
        state: Mapping[str, Json],
        step: Step,
        steps: Mapping[str, Step],
        profile: Profile,
        machines: dict[str, Machine],
    ) -> None:
        self.state = state
        self.name = step.name
        self.own = step
        self.effect = step.type in EFFECTS
        self.steps = steps
        self.profile = profile
        self.machines = machines

    def step(self, name: str) -> Step:
        return self.steps[name]

    def machine(self, *steps: str | int) -> Machine:
        definition: Json = self.state
        pointer = self.own.pointer
        for step in steps:
            definition = definition[step]
            pointer += f"/{escape(str(step))}"
        return _machine(definition, pointer, self.profile, self.machines)

    # One text each

    def reference(self, field: str) -> Evaluate:
        return self._path(field, self.state[field])

    def expression(self, field: str, text: str) -> Evaluate:
        # Fail has no result to build, so a missing path there is a fault of the definition.
        missing = Missing.RUNTIME if self.own.type == "Fail" else self.profile.template
        return self._expression(field, text, missing)

    def operand(self) -> Operand:
        return Operand(self._variable, self._computed_variable, self._compared)

    def _path(self, field: str, text: str, missing: Missing = Missing.RUNTIME) -> Evaluate:
        return compile_path(parse_path(text), Use(field, self.name, missing, self.effect))

    def _variable(self, text: str, strict: bool) -> Evaluate:
        if not strict:
            return self._path("Variable", text, self.profile.variable)
        path = self._path("Variable", text)
        return path if parse_path(text).definite else _some(path, text)

    def _compared(self, text: str) -> Evaluate:
        return self._path("Variable", text)

    def _computed_variable(self, text: str) -> Evaluate:
        return self._expression("Variable.$", text, self.profile.variable)

    def _expression(self, field: str, text: str, missing: Missing) -> Evaluate:
        if text.startswith("$"):
            return self._path(field, text, missing)

        def argument(path: str, offset: int) -> Evaluate:
            return self._path(field, path, missing)

        def optional(path: str, offset: int) -> Evaluate:
            return self._path(field, path, Missing.NULL)

        return intrinsics.compile(intrinsics.parse(text), argument, optional, self.profile)

    # Input

    def input(self) -> Evaluate:
        return self._filter("InputPath") or identity

    def payload(self) -> Evaluate:
        effective, parameters = self.input(), self.template("Parameters")
        if parameters is None:
            return effective
        if "InputPath" not in self.state:
            return parameters
        template = parameters
        return lambda data, frame: template(effective(data, frame), frame)

    def output(self) -> Evaluate | None:
        return self._filter("OutputPath")

    def _filter(self, field: str) -> Evaluate | None:
        if field not in self.state:
            return None
        text = self.state[field]
        return constant({}) if text is None else self._path(field, text)

    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        if field not in self.state:
            return None
        return self._template(self.state[field], missing or self.profile.template)

    def _template(self, template: Json, missing: Missing) -> Evaluate:
        return compile_template(
            template, lambda field, text: self._expression(field, text, missing)
        )

    # Output

    def assign(self, holder: Mapping[str, Json]) -> Evaluate | None:
        if "Assign" not in holder:
            return None
        return self._template(holder["Assign"], self.profile.template)

    def finish(self) -> Finish | None:
        return _finish(
            self.template("ResultSelector"),
            _result_path(self.state),
            self.assign(self.state),
            self.output(),
        )

    def constant_result(self, result: Json) -> Evaluate | None:
        shaping = {"ResultSelector", "Assign", "OutputPath"}
        if shaping & self.state.keys() or self.state.get("ResultPath") is None:
            return None
        return compile_constant_at(parse_path(self.state["ResultPath"]), result)

    def catcher(self, entry: Mapping[str, Json]) -> Catcher:
        output = _finish(None, _result_path(entry), self.assign(entry), None)
        return Catcher(
            _matcher(entry["ErrorEquals"], self.profile),
            output or (lambda raw, error_output, frame: error_output),
            self.steps[entry["Next"]],
        )


def _some(nodes: Evaluate, text: str) -> Evaluate:
    """Make an indefinite path that matches nothing a missing value, for `IsPresent`."""

    def some(data: Json, frame: Frame) -> Json:
        found = nodes(data, frame)
        if not found:
            raise StateError("States.Runtime", f"'{text}' matches nothing")
        return found

    return some


def _result_path(holder: Mapping[str, Json]) -> Place | None:
    if "ResultPath" not in holder:
        return None
    text = holder["ResultPath"]
    return compile_result_path(None if text is None else parse_path(text))


def _finish(
    select: Evaluate | None,
    place: Place | None,
    assign: Evaluate | None,
    output: Evaluate | None,
) -> Finish | None:
    """Compose the way of a result to the output of only those steps that are there."""
    if select is None and assign is None and output is None:
        return place

    def finish(raw: Json, result: Json, frame: Frame) -> Json:
        if select is not None:
            result = select(result, frame)
        outcome = result if place is None else place(raw, result, frame)
        if output is not None:
            outcome = output(outcome, frame)
        if assign is not None:
            # All expressions of a state see the values from before it (Specification 3.7).
            frame.variables = {**frame.variables, **assign(result, frame)}
        return outcome

    return finish


# --------------------------------------------------------------------------------------------
# Retry and Catch


def _retrier(entry: Mapping[str, Json], profile: Profile) -> Retrier:
    return Retrier(
        matches=_matcher(entry["ErrorEquals"], profile),
        interval=entry.get("IntervalSeconds", 1),
        max_attempts=entry.get("MaxAttempts", 3),
        backoff_rate=entry.get("BackoffRate", 2.0),
        max_delay=entry.get("MaxDelaySeconds", entry.get("MaxIntervalSeconds")),
        jitter=entry.get("JitterStrategy", "NONE").upper(),
    )


def _matcher(names: list[str], profile: Profile) -> Callable[[StateError], bool]:
    """Compile `ErrorEquals` (Specification 4.1, 4.2)."""
    listed = set(names)
    for bare in BARE_NAMES:
        if listed & {bare, f"States.{bare}"}:
            listed |= {bare, f"States.{bare}"}
    listed.discard(NEVER_MATCHED)
    exempt = {NEVER_MATCHED}
    if not profile.wildcard_matches_data_limit:
        exempt.add("States.DataLimitExceeded")
    if "States.ALL" in listed:
        return lambda error: error.name in listed or error.name not in exempt
    if "States.TaskFailed" in listed:
        exempt |= {"States.Timeout", "States.DataLimitExceeded"}
        return lambda error: _listed(error, listed) or error.name not in exempt
    return lambda error: _listed(error, listed)


def _listed(error: StateError, names: set[str]) -> bool:
    return error.name in names or (HEARTBEAT in names and isinstance(error, HeartbeatMissed))
