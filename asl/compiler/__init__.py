"""Layer 4: the compiler, which turns a checked document into an immutable program.

The fields of a state become closures here, once; the interpreter only calls them. Each query
language is one module that compiles its fields; state types use them through one interface
(Specification 3.1, 3.6).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from asl.compiler.jsonpath import JsonPathCompiler
from asl.compiler.state import StateCompiler, bound_output, compile_retrier
from asl.core.dialect_parts import DialectPart
from asl.core.pointers import escape
from asl.core.profile import Profile
from asl.core.values import Json
from asl.program import ComputeBlocks, DocumentScope, EntryEvents, Machine, Program, Step
from asl.states import STATE_TYPES
from asl.states.base import mentions
from asl.states.blocks import DOCUMENT_BLOCKS, budget, tools
from asl.states.blocks.budget_limits import CompileLimits, has_limits
from asl.states.blocks.events import compile_hooks
from asl.states.checkpoint import automatic

__all__ = ["compile_workflow", "open_state"]


def compile_workflow(workflow: Mapping[str, Json], profile: Profile, name: str) -> Program:
    """Compile a workflow that has been checked and has no errors."""
    machines: dict[str, Machine] = {}
    machine = _machine(profile, machines, "JSONPath", workflow, "")
    steps = [step for each in machines.values() for step in each.steps.values()]
    includes = any(step.type == "Include" for step in steps)

    def late(*blocks: str) -> bool:
        """Return whether an Include compiled at run time may have one of these blocks."""
        return includes and mentions(workflow, *blocks)

    limits, opens = _budget(workflow, profile), late("Channels", "RealTime")
    return Program(
        machine,
        profile,
        name,
        timeout=workflow.get("TimeoutSeconds"),
        machines=machines,
        document=workflow,
        budget=limits,
        budgeted=limits is not None
        or any(step.budget is not None for step in steps)
        or late("Budget", "MaxCalls", "MaxCalls.$"),
        entry_events=None if profile.aws else _entry_events(workflow.get("Metadata")),
        tracks_progress="Progress" in workflow
        or any(step.progress is not None for step in steps)
        or late("Progress"),
        has_hooks=any(step.hooks is not None or step.feedback is not None for step in steps)
        or late("Events", "Feedback"),
        has_channels=not workflow.keys().isdisjoint(("Events", "RealTime")) or opens,
        may_open_channels=opens,
        tools=_default_tools(workflow, profile),
        after_transition=automatic(workflow["Checkpointing"])
        if "Checkpointing" in workflow
        else None,
        settle=_settle(workflow, profile),
    )


HISTORY_EVENTS: Final = DialectPart[Callable[[Json], EntryEvents | None]]("history_events")


def _entry_events(metadata: Json) -> EntryEvents | None:
    """Return the additional history events of a converted document, None if it has none."""
    for namespace, data in metadata.items() if isinstance(metadata, dict) else ():
        events_of = HISTORY_EVENTS.of_namespace(namespace) if isinstance(data, dict) else None
        events = None if events_of is None else events_of(data)
        if events is not None:
            return events
    return None


def _budget(workflow: Mapping[str, Json], profile: Profile) -> CompileLimits | None:
    if not has_limits(workflow, "DefaultTools"):
        return None
    return budget.compile_workflow_budget(_whole(workflow, profile))


SETTLED = ("Memory", "Progress", "Events", "RealTime")
"""Blocks of a document that are read once per execution."""


def _settle(document: Mapping[str, Json], profile: Profile) -> ComputeBlocks | None:
    """Compile the blocks of these that have computed fields, None without any."""
    if document.keys().isdisjoint(SETTLED):
        return None
    whole = _whole(document, profile)
    found = {name: whole.computed_block(name) for name in SETTLED if name in document}
    computed = [(name, settled) for name, settled in found.items() if settled is not None]
    if not computed:
        return None
    return lambda data, frame: {name: settled(data, frame) for name, settled in computed}


def _default_tools(document: Mapping[str, Json], profile: Profile) -> tools.CompileRules | None:
    if "DefaultTools" not in document:
        return None
    return tools.compile_rules(_whole(document, profile), "DefaultTools")


def _whole(workflow: Mapping[str, Json], profile: Profile) -> StateCompiler:
    """Return the compiler of the blocks of a document."""
    language = _compiler_of(workflow.get("QueryLanguage", "JSONPath"))
    step = Step("the workflow", "Task", "")
    return language(workflow, step, {}, profile, _no_machine, {})


def _no_machine(definition: Mapping[str, Json], pointer: str) -> Machine:
    raise AssertionError("a block of the workflow holds no machine")


def open_state(workflow: Mapping[str, Json], name: str, profile: Profile) -> StateCompiler:
    """Return the compiler of one state of the top machine, for inspection."""
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
    """Compile one machine; *language* is the query language of the enclosing one."""
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
        kind = STATE_TYPES[step.type]
        step.forks, step.machines = kind.forks, kind.machines
        kind.compile(compiler, step)
        if profile.checks_every_state:
            bound_output(step, profile.max_payload, first=step is machine.start)
        if "Events" in state:
            step.hooks = compile_hooks(compiler)
        if kind.budgeted and has_limits(state, "Tools"):
            step.budget = budget.compile_state_budget(compiler)
        if kind.effect:  # elsewhere both have no effect (V-ST-10)
            step.retriers = tuple(
                compile_retrier(entry, profile) for entry in state.get("Retry", ())
            )
            count = len(state.get("Catch", ()))
            step.catchers = tuple(compiler.compiler_at("Catch", i).catcher() for i in range(count))
    return machine


def _included(
    profile: Profile, machines: dict[str, Machine], definition: Mapping[str, Json], pointer: str
) -> Machine:
    """Compile the machine of an included document."""
    machine = _machine(profile, machines, "JSONPath", definition, pointer)
    if not definition.keys().isdisjoint(DOCUMENT_BLOCKS):
        scope = DocumentScope(
            definition,
            _default_tools(definition, profile),
            _settle(definition, profile),
            _budget(definition, profile),
        )
        machine = machines[pointer] = replace(machine, scope=scope)
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
    if step.type == "Include":  # an Include contains a document of its own
        machines = {} if state["Template"].get("Parameters") else machines
        inner = partial(_included, profile, machines)
    own_language = _compiler_of(state.get("QueryLanguage", language))
    return own_language(state, step, steps, profile, inner, machines)


def _compiler_of(language: str) -> type[StateCompiler]:
    if language == "JSONPath":
        return JsonPathCompiler
    from asl.compiler.jsonata import JsonataCompiler

    return JsonataCompiler
