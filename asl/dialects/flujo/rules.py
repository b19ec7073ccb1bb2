"""Rules for blueprints beyond their structure: the findings FL-*."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json, type_name
from asl.dialects.flujo.blueprint import ANY, USES, Blueprint, BlueprintMachine, BlueprintStep, Rule
from asl.dialects.flujo.functions.conditions import compile_expression
from asl.dialects.flujo.functions.control_flow import MERGES
from asl.dialects.flujo.functions.templates import parse, paths_in
from asl.dialects.flujo.loop_state import read_loop_state
from asl.dialects.flujo.options import FlujoOptions
from asl.dialects.names import computed

__all__ = ["of_blueprint"]

SKILLS: Final = frozenset(
    f"flujo.builtins.{name}"
    for name in (
        "aggregate_plan", "analyze_project", "ask_user", "capture_ask_user",
        "check_user_confirmation", "check_user_confirmation_sync", "context_get", "context_merge",
        "context_set", "discover_skills", "discover_skills_async", "echo", "escape_sql_string",
        "exit_when_yaml_valid", "extract_decomposed_steps", "extract_from_text",
        "extract_yaml_text", "fs_write_file", "http_get", "normalize_tool_plan", "passthrough",
        "repair_yaml_ruamel", "select_by_yaml_shape", "select_validity_branch", "stringify",
        "text_to_yaml", "validate_yaml", "validation_report_to_flag", "web_search",
        "welcome_agent", "wrap_dict",
    )
)  # fmt: skip
"""Skills that are known to come with the platform."""


MAX_TRIALS: Final = 20_000
"""Maximum number of pairs of a rule from `*` and a state."""


def of_blueprint(blueprint: Blueprint, options: FlujoOptions) -> Iterator[Finding]:
    """Yield errors and warnings about the steps of a well-shaped blueprint."""
    for child in blueprint.imported.values():
        yield from of_blueprint(child, options)
    for step in blueprint.all_steps:
        yield from _uses(blueprint, step)
        yield from _importing(blueprint, step)
        yield from _conditions(step, options)
        yield from _texts(step)
        yield from _asides(step)
        if step.kind == "StateMachine":
            yield from _machine(step.machine, options)
    yield from _trials(blueprint)
    yield from _two_machines(blueprint.steps)
    yield from _forked(blueprint.steps)
    yield from _nested(blueprint.steps)


# --------------------------------------------------------------------------------------------
# Agents


def _uses(blueprint: Blueprint, step: BlueprintStep) -> Iterator[Finding]:
    uses = step.value.get("uses")
    if isinstance(uses, str) and uses:
        yield from _used(blueprint, uses, step.at("uses"))
    agent = step.value.get("agent")
    if isinstance(agent, dict) and step.agent is None:
        message = "the agent has no id"
        yield Finding("FL-USES", message, step.at("agent"), "write {id: ...}", at_key=True)
    elif step.agent is not None and not uses:
        key = "id" if isinstance(agent, dict) and "id" in agent else "path"
        place = step.at("agent", key) if isinstance(agent, dict) else step.at("agent")
        yield from _skill(step.agent, place)
    for name, place in _asked(step):
        if isinstance(name, str) and computed(name):
            hint = "a name of an agent never begins with '$.', '$$' or '{%'"
            yield Finding("FL-USES", f"{name[:60]!r} is not the name of an agent", place, hint)


def _asked(step: BlueprintStep) -> Iterator[tuple[Json, str]]:
    """Yield what names an agent in a step, but for `uses`, and where."""
    value, agent = step.value, step.value.get("agent")
    if isinstance(agent, dict):
        yield agent.get("id"), step.at("agent", "id")
        yield agent.get("path"), step.at("agent", "path")
    for key in ("agent", "planner", "reduce", "condition"):
        yield value.get(key), step.at(key)
    yield step.spec.get("router_agent"), step.at("router", "router_agent")
    yield step.spec.get("exit_condition"), step.at("loop", "exit_condition")


def _used(blueprint: Blueprint, uses: str, place: str) -> Iterator[Finding]:
    holder, _, name = uses.partition(".")
    if not USES.fullmatch(uses):
        hint = "write agents.NAME, imports.NAME, package.module or package.module:name"
        yield Finding("FL-USES", f"{uses!r} is not the name of an agent", place, hint)
    elif holder == "agents":
        if "." in name or ":" in name or not name:
            hint = "write agents.NAME"
            yield Finding("FL-USES", f"{uses!r} is not the name of an agent", place, hint)
        elif name not in blueprint.agents:
            message = f"there is no agent {name!r} under agents"
            hint = did_you_mean(name, blueprint.agents) or "bind an agent to this name"
            yield Finding("FL-AGENT", message, place, hint)
    elif holder == "imports":
        if name not in blueprint.imports:
            hint = did_you_mean(name, blueprint.imports) or "name its file under imports"
            yield Finding("FL-AGENT", f"there is no import {name!r}", place, hint)
        elif name not in blueprint.imported:
            source = blueprint.imports[name]
            yield Finding(
                "FL-IMPORT",
                f"the file {source!r} does not exist, so an agent {uses!r} is called",
                place,
                "put the file there, or bind an agent that runs the other blueprint",
            )
    else:
        yield from _skill(uses, place)


INPUT_TO: Final = ("initial_prompt", "import_artifacts", "scratchpad", "both")
ON_FAILURE: Final = ("abort", "skip", "continue_with_default")
OF_IMPORTS: Final = (
    "inherit_context", "input_to", "input_scratchpad_key", "outputs", "on_failure",
)  # fmt: skip
"""Keys of the settings of an import."""


def _importing(blueprint: Blueprint, step: BlueprintStep) -> Iterator[Finding]:
    """Yield what is wrong with how a step runs another blueprint."""
    config = step.config
    if blueprint.of(step) is None:
        for key in OF_IMPORTS:
            if config.get(key):
                message = f"{key!r} has no effect, because the step runs no other blueprint"
                hint = "name the file of a blueprint under imports, and it is run"
                yield Finding("FL-IMPORT", message, step.at("config", key), hint, at_key=True)
        return
    for key, words in (("input_to", INPUT_TO), ("on_failure", ON_FAILURE)):
        word = config.get(key)
        if word is not None and word not in words:
            hint = did_you_mean(str(word), words) or f"there are {', '.join(words)}"
            message = f"{key!r} cannot be {str(word)[:60]!r}"
            yield _refused(message, step.at("config", key), hint)
    name = config.get("input_scratchpad_key")
    if name is not None and not isinstance(name, str):
        hint = "write the name of the field for the input"
        yield _refused("the value is not a name", step.at("config", "input_scratchpad_key"), hint)
    yield from _outputs(config.get("outputs"), step.at("config", "outputs"))
    if config.get("outputs") and step.value.get("updates_context") is not True:
        message = "'outputs' has no effect without updates_context"
        hint = "add updates_context: true to the step"
        place = step.at("config", "outputs")
        yield Finding("FL-IMPORT", message, place, hint, at_key=True)


def _outputs(outputs: Json, place: str) -> Iterator[Finding]:
    hint = "write outputs: [{child: path, parent: path}]"
    listed: Iterable[tuple[str | int, Json]] = ()
    if isinstance(outputs, dict):
        listed = ((key, {"child": key, "parent": value}) for key, value in outputs.items())
    elif isinstance(outputs, list):
        listed = enumerate(outputs)
    elif outputs is not None:
        yield _refused(f"'outputs' is a list or an object, not {type_name(outputs)}", place, hint)
    for key, each in listed:
        held = each if isinstance(each, dict) else {}
        ways = held.get("child", held.get("from")), held.get("parent", held.get("to"))
        if not all(isinstance(way, str) and all(way.split(".")) for way in ways):
            message = "an output maps a path of the other context to a path of this context"
            yield _refused(message, f"{place}/{escape(str(key))}", hint)


def _refused(message: str, place: str, hint: str) -> Finding:
    return Finding("FL-IMPORT", message, place, hint, severity=Severity.ERROR)


def _skill(name: str, place: str) -> Iterator[Finding]:
    dotted = name.replace(":", ".")
    if dotted.startswith("flujo.builtins.") and dotted not in SKILLS:
        message = f"the built-in skill {name!r} is not known"
        hint = did_you_mean(dotted, SKILLS) or "bind an agent to this name"
        yield Finding("FL-BUILTIN", message, place, hint)


# --------------------------------------------------------------------------------------------
# Expressions and templates


def _conditions(step: BlueprintStep, options: FlujoOptions) -> Iterator[Finding]:
    if step.kind == "conditional":
        yield from _condition(step.value.get("condition_expression"), step, options, False)
    elif step.kind == "loop":
        yield from _condition(step.spec.get("exit_expression"), step, options, True)
    elif step.kind == "StateMachine":
        for rule in step.machine.rules:
            if rule.when is not None:
                yield from _expression(rule.when, f"{rule.pointer}/when", options, "never matches")


def _condition(
    text: Json, step: BlueprintStep, options: FlujoOptions, loop: bool
) -> Iterator[Finding]:
    if isinstance(text, str):
        keys = ("loop", "exit_expression") if loop else ("condition_expression",)
        yield from _expression(text, step.at(*keys), options, "fails the step")


def _expression(text: str, place: str, options: FlujoOptions, effect: str) -> Iterator[Finding]:
    try:
        found = compile_expression(text, options.expressions)
    except ExpressionFault as fault:
        yield Finding(fault.code, fault.message, place, fault.hint, inside=fault.offset)
        return
    for offset, reason, hint in found.doomed:
        message = f"{reason}: if it is evaluated, it {effect}"
        yield Finding("FL-WHEN-FAILS", message, place, hint or _KNOWN, inside=offset)


_KNOWN: Final = "write names of the context, output or steps, comparisons, and, or, not, in"


def _texts(step: BlueprintStep) -> Iterator[Finding]:
    for key in ("input", "message"):
        text = step.value.get(key)
        if not isinstance(text, str) or "{{" not in text:
            continue
        try:
            parts = parse(text)
        except ExpressionFault as fault:
            message = f"{fault.message}, so the whole text is ignored"
            yield Finding("FL-TEMPLATE", message, step.at(key), fault.hint, inside=fault.offset)
            continue
        last = text.rfind("{{")
        if "}}" not in text[last:] and text[last - 1 : last] != "\\":
            message = "'{{' is not closed, so it stays in the text"
            yield Finding("FL-TEMPLATE", message, step.at(key), "close it with }}", inside=last)
        for steps, offset in paths_in(parts):
            if steps == ("context",) or steps == ("steps",):
                yield Finding(
                    "FL-MISSING",
                    f"{steps[0]!r} as a whole is written as JSON",
                    step.at(key),
                    f"write a member of it: {steps[0]}.name",
                    inside=offset,
                )


# --------------------------------------------------------------------------------------------
# Keys without effect


_CHAT: Final = (
    "conversation", "history_management", "ai_turn_source", "user_turn_sources", "named_steps",
    "history_template", "stop_when",
)  # fmt: skip
_MAPPERS: Final = ("initial_input_mapper", "iteration_input_mapper", "loop_output_mapper")


def _asides(step: BlueprintStep) -> Iterator[Finding]:
    spec = step.spec
    for key in _CHAT if step.kind == "loop" else ():
        if spec.get(key):
            message = f"{key!r} has no effect here: conversations belong to the agents"
            yield Finding("FL-CHAT", message, step.at("loop", key), at_key=True)
    if step.kind in ("loop", "map"):
        yield from read_loop_state(step).findings
    for key in _MAPPERS if step.kind == "loop" else ():
        if spec.get(key):
            message = f"{key!r} is code, which is not run here"
            hint = "compute the value in a step before, in or after the body"
            place = step.at("loop", key)
            yield Finding("FL-CODE", message, place, hint, severity=Severity.ERROR, at_key=True)
    if step.kind == "loop":
        yield from _once(step)
    if step.kind == "cache":
        message = "the step runs each time, nothing is cached"
        yield Finding("FL-CACHE", message, step.at("kind"), "give the Task a Cache block")
    if step.kind == "hitl" and step.value.get("input_schema"):
        message = "answers are not validated by the schema"
        yield Finding("FL-SCHEMA", message, step.at("input_schema"), at_key=True)
    if step.kind == "parallel":
        yield from _merging(step)
    if step.fallback is not None and step.fallback.kind != "step":
        message = f"a fallback of kind {step.fallback.kind!r} runs as a plain step"
        yield Finding("FL-SHAPE", message, step.at("fallback", "kind"), "write a step with uses")


def _once(step: BlueprintStep) -> Iterator[Finding]:
    spec = step.spec
    ends = spec.get("exit_expression") or spec.get("exit_condition")
    if not ends and spec.get("max_loops", 1) == 1:
        message = "the loop has no exit condition, so it runs once"
        yield Finding("FL-LOOP-ONCE", message, step.at("loop"), "add exit_expression", at_key=True)
    elif not ends:
        message = "the loop has no exit condition, so it fails after its last round"
        hint = "add exit_expression"
        yield Finding("FL-LOOP-ONCE", message, step.at("loop", "max_loops"), hint, at_key=True)


def _merging(step: BlueprintStep) -> Iterator[Finding]:
    merge = step.value.get("merge_strategy")
    if merge is not None and merge not in MERGES:
        hint = did_you_mean(merge, MERGES) or f"there are {', '.join(MERGES)}"
        message = f"the merge strategy {merge!r} does not exist"
        yield Finding("FL-MERGE", message, step.at("merge_strategy"), hint, severity=Severity.ERROR)
    failing = step.value.get("on_branch_failure")
    if failing not in (None, "propagate", "ignore"):
        message = f"'on_branch_failure' cannot be {failing!r}"
        hint = "write propagate or ignore"
        yield Finding("FL-SHAPE", message, step.at("on_branch_failure"), hint)


# --------------------------------------------------------------------------------------------
# State machines


def _trials(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a finding if rules from any state apply to too many states in total."""
    tried = 0
    for step in blueprint.all_steps:
        if step.kind == "StateMachine":
            anywhere = sum(rule.source == ANY for rule in step.machine.rules)
            tried += anywhere * len(step.machine.states)
            if tried > MAX_TRIALS:
                message = f"rules from '*' expand to more than {MAX_TRIALS} rules of single states"
                yield Finding("READ-04", message, f"{step.pointer}/transitions", "name the states")
                return


def _machine(machine: BlueprintMachine, options: FlujoOptions) -> Iterator[Finding]:
    known = {*machine.states, *machine.ends}
    if machine.start not in known:
        yield Finding(
            "FL-START-UNKNOWN",
            f"the state {machine.start!r} does not exist, so the machine fails immediately",
            f"{machine.pointer}/start_state",
            did_you_mean(machine.start, known) or f"there are {', '.join(sorted(known)[:8])}",
        )
    yield from _reach(machine)
    for rule in machine.rules:
        yield from _dead(machine, rule)
    if machine.rules:
        for name, body in machine.states.items():
            yield from _open(machine, name, body.steps, body.pointer)
    for name, body in machine.states.items():
        yield from _hidden(name, body.steps, options)


def _reach(machine: BlueprintMachine) -> Iterator[Finding]:
    """Yield states that no rule leads to, where nothing but rules leads anywhere."""
    if not machine.rules:
        return
    ways: dict[str, set[str]] = {name: set() for name in machine.states}
    for rule in machine.rules:
        source = machine.start if rule.source == ANY else rule.source
        if source in ways:
            ways[source].add(rule.target)
    reached = _closure(ways, {machine.start})
    for name, body in machine.states.items():
        if name not in reached and machine.start in machine.states:
            message = f"no rule leads to {name!r}"
            hint = "only next_state or a stored current_state can lead there"
            yield Finding("FL-UNREACHABLE", message, body.pointer, hint, at_key=True)
    if machine.start in machine.states and not reached & {*machine.ends}:
        message = "no path leads to an end state"
        hint = "add a rule to one of end_states"
        yield Finding("FL-NO-END", message, f"{machine.pointer}/transitions", hint, at_key=True)


def _closure(ways: dict[str, set[str]], begun: set[str]) -> set[str]:
    reached: set[str] = set()
    todo = [*begun]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += ways.get(name, ())
    return reached


def _dead(machine: BlueprintMachine, rule: Rule) -> Iterator[Finding]:
    if (earlier := machine.hiding(rule)) is not None:
        yield Finding(
            "FL-DEAD-RULE",
            "an earlier rule always matches before this one",
            rule.pointer,
            "move it before the other one, or add a when to the other one",
            related=((earlier.pointer, "the earlier rule"),),
        )
    if rule.source in machine.ends:
        message = f"{rule.source!r} is an end state, so no rule leads on from it"
        hint = "remove it from end_states, or the rule from transitions"
        yield Finding("FL-END-RULE", message, f"{rule.pointer}/from", hint)
    if rule.event == "pause" and rule.target == rule.source:
        yield Finding(
            "FL-PAUSE-SELF",
            "here the state continues after its question; the platform asks again forever",
            rule.pointer,
            "for the platform, lead to another state that uses the answer",
        )


def _open(
    machine: BlueprintMachine, name: str, steps: tuple[BlueprintStep, ...], pointer: str
) -> Iterator[Finding]:
    leads = bool(steps) and steps[-1].requested is not None
    if not leads and not machine.covers(name, "success") and not _only_asks(machine, name, steps):
        yield Finding(
            "FL-NO-SUCCESS",
            f"if no rule matches a success of {name!r}, the machine stops there",
            pointer,
            f"add {{from: {name}, on: success, to: ...}} without a when",
            at_key=True,
        )
    may_fail = any(
        (step.kind != "hitl" and step.agent is not None) or step.kind not in ("hitl", "step")
        for step in steps
    )
    if may_fail and not machine.tried(name, "failure"):
        yield Finding(
            "FL-NO-FAILURE",
            f"no rule handles a failure of {name!r}: the machine stops there and succeeds",
            pointer,
            'add {from: "*", on: failure, to: ...}',
            at_key=True,
        )


def _only_asks(machine: BlueprintMachine, name: str, steps: tuple[BlueprintStep, ...]) -> bool:
    """Whether the first step of a state is a question whose rules always leave the state."""
    if not steps or steps[0].kind != "hitl":
        return False
    ways = machine.tried(name, "pause")
    return bool(ways) and ways[-1].when is None and all(each.target != name for each in ways)


def _hidden(
    name: str, steps: tuple[BlueprintStep, ...], options: FlujoOptions
) -> Iterator[Finding]:
    if options.event != "last-step":
        return
    for step in steps[:-1]:
        if step.kind == "step" and step.agent is not None and not _built_in(step):
            yield Finding(
                "FL-LAST-STEP",
                f"a failure of {step.name!r} is ignored: the last step of {name!r} decides",
                step.pointer,
                "move the step to its own state, or read with the option event=fail-fast",
            )


def _built_in(step: BlueprintStep) -> bool:
    return str(step.agent).replace(":", ".").startswith("flujo.builtins.")


def _two_machines(steps: tuple[BlueprintStep, ...]) -> Iterator[Finding]:
    for first, second in pairwise(steps):
        if first.kind == second.kind == "StateMachine":
            yield Finding(
                "FL-TWO-MACHINES",
                f"{second.name!r} starts in the state in which {first.name!r} ended",
                second.pointer,
                "put a step between them that clears current_state in the context",
            )


def _forked(steps: Iterable[BlueprintStep], forked: bool = False) -> Iterator[Finding]:
    for step in steps:
        if forked and step.kind == "hitl":
            yield Finding(
                "FL-PAUSE-INSIDE",
                f"{step.name!r} asks within branches or items, where no rule on pause is tried",
                step.pointer,
                "ask before the branches",
            )
        inside = forked or step.kind in ("parallel", "map", "dynamic_router")
        for body in step.bodies():
            yield from _forked(body.steps, inside)


def _nested(steps: Iterable[BlueprintStep], inside: bool = False) -> Iterator[Finding]:
    for step in steps:
        machine = step.kind == "StateMachine"
        if machine and inside:
            yield Finding(
                "FL-NESTED",
                f"{step.name!r} has its own control fields here; on the platform it shares "
                "those of the outer machine and fails",
                step.pointer,
                "merge the machines, or import the inner one as a blueprint",
            )
        for body in step.bodies():
            yield from _nested(body.steps, inside or machine)
