"""Layer 4: a checked document becomes an immutable program.

Everything that a state's JSON says is turned into closures here, once; the interpreter only calls.
Each query language is one module that knows how its fields are compiled; the state types ask for
what they need and hardly notice which of them answers (Specification 3.1, 3.6).
"""

from collections.abc import Mapping
from functools import partial

from asl.compiler.handlers import compile_retrier
from asl.compiler.jsonpath import JsonPathCompiler
from asl.compiler.state import EFFECTS, StateCompiler
from asl.core.diagnostics import escape
from asl.core.profile import Profile
from asl.core.values import Json
from asl.program import Machine, Program, Step
from asl.states import STATE_TYPES

__all__ = ["compile_workflow", "open_state"]


def compile_workflow(workflow: Mapping[str, Json], profile: Profile, name: str) -> Program:
    """Compile a workflow that has been checked and has no errors."""
    machines: dict[str, Machine] = {}
    machine = _machine(profile, machines, "JSONPath", workflow, "")
    timeout = workflow.get("TimeoutSeconds")
    return Program(machine, profile, name, timeout, machines, workflow)


def open_state(workflow: Mapping[str, Json], name: str, profile: Profile) -> StateCompiler:
    """Return the compiler of one state of the top machine, for whoever looks into the state."""
    steps = _steps(workflow["States"], "")
    language = workflow.get("QueryLanguage", "JSONPath")
    return _opened(profile, {}, language, workflow["States"][name], steps[name], steps)


def _machine(
    profile: Profile,
    machines: dict[str, Machine],
    language: str,
    definition: Mapping[str, Json],
    pointer: str,
) -> Machine:
    """Compile one machine; *language* is the query language of the one around it."""
    states = definition["States"]
    steps = _steps(states, pointer)
    machine = machines[pointer] = Machine(steps[definition["StartAt"]], steps, pointer)
    language = definition.get("QueryLanguage", language)
    for name, state in states.items():
        step = steps[name]
        compiler = _opened(profile, machines, language, state, step, steps)
        if "Next" in state:
            step.next = steps[state["Next"]]
        elif not compiler.jsonata and type(state.get("Output")) is str:
            step.label = state["Output"]
        STATE_TYPES[step.type].compile(compiler, step)
        if step.type in EFFECTS:  # elsewhere both have no effect (V-ST-10)
            step.retriers = tuple(
                compile_retrier(entry, profile) for entry in state.get("Retry", ())
            )
            count = len(state.get("Catch", ()))
            step.catchers = tuple(compiler.within("Catch", i).catcher() for i in range(count))
    return machine


def _steps(states: Mapping[str, Json], pointer: str) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for name, state in states.items():
        steps[name] = Step(name, state["Type"], f"{pointer}/States/{escape(name)}", steps)
    return steps


def _opened(
    profile: Profile,
    machines: dict[str, Machine],
    language: str,
    state: Mapping[str, Json],
    step: Step,
    steps: Mapping[str, Step],
) -> StateCompiler:
    """Return the compiler of a state; *language* is the query language of its machine."""
    inner = partial(_machine, profile, machines, language)
    if step.type == "Include":  # what it holds is a document of its own
        kept = {} if state["Template"].get("Parameters") else machines
        inner = partial(_machine, profile, kept, "JSONPath")
    own_language = _compiler_of(state.get("QueryLanguage", language))
    return own_language(state, step, steps, profile, inner)


def _compiler_of(language: str) -> type[StateCompiler]:
    if language == "JSONPath":
        return JsonPathCompiler
    from asl.compiler.jsonata import JsonataCompiler

    return JsonataCompiler
