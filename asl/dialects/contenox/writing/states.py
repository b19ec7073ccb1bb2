"""How each type of step is written: as the call of a tool, or as a task without effect."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from asl.core.codes import is_anonymous
from asl.core.diagnostics import Severity
from asl.core.values import Json, compact
from asl.dialects.contenox.chain import ECHO, ECHOED, END, RAISED
from asl.dialects.contenox.functions.templates import find_macros
from asl.dialects.contenox.writing.branches import BranchRule, default, select
from asl.dialects.contenox.writing.chain import LEFT_OUT
from asl.dialects.contenox.writing.failures import catch, retries
from asl.dialects.contenox.writing.knowledge import (
    GIVEN,
    Cause,
    Knowledge,
    Lost,
    assign,
    is_moving,
    is_variable,
    name_flow,
    renew,
    variable,
)
from asl.dialects.contenox.writing.steps import Fields, TaskWriter
from asl.dialects.contenox.writing.templates import Printer
from asl.dialects.contenox.writing.transitions import (
    ChainTransition,
    branch,
    is_needed,
    leave,
    output,
    rules,
    set_selection,
    set_transition,
)
from asl.dialects.lowering import StepExit
from asl.dialects.names import lost_integration, provider_of
from asl.dialects.terms import INPUT, DataPath, Literal, Record, Term, Text, paths_of
from asl.engine.definitions import AgentDefinition

__all__ = ["CALLED", "FIELDS", "write_step"]

_INPUT: Final = "input"
"""The key under which a tool is given its input."""
CALLED: Final[Mapping[str, str]] = {
    "Parallel": "CX-PARALLEL",
    "Map": "CX-MAP",
    "Debate": "CX-DEBATE",
    "Approval": "CX-APPROVAL",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}
"""Types that become the call of a tool, with the code of what that loses."""
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "Task": frozenset(("Agent", "Resource", "TimeoutSeconds", "Retry", "Catch")),
    "Choice": frozenset(("Choices", "Default")),
    "Pass": frozenset(("Result",)),
    "Wait": frozenset(),
    "Checkpoint": frozenset(),
    "Succeed": frozenset(),
    "Fail": frozenset(("Error", "Cause", "ErrorPath", "CausePath")),
}
"""The fields of types that are written, in addition to those of all states."""


def write_step(writer: TaskWriter) -> Iterator[ChainTransition]:
    """Add the tasks of a step to the chain, and yield where it leads."""
    kind = writer.step.kind
    match kind:
        case "Task":
            yield from _task(writer)
        case "Choice":
            yield from _choice(writer)
        case "Succeed":
            _succeed(writer)
        case "Fail":
            _fail(writer)
        case "Pass":
            yield from _pass(writer)
        case "Wait":
            told = "no task waits, or fails for an invalid time"
            writer.report("CX-WAIT", told, None, "a task without effect")
            yield from _pass(writer)
        case "Checkpoint":
            told = "the engine stores runs itself"
            writer.report("CX-CHECKPOINT", told, None, "a task without effect")
            yield from _pass(writer)
        case _:
            told = f"there are no {kind} states there"
            writer.report(CALLED[kind], told, None, "register a tool with this name")
            place = writer.at("InputPath")
            written = writer.step.state.keys() & {"Parameters", "Arguments"}
            data = DataPath(INPUT) if written else writer.step.input
            payload = writer.resolve(data, Cause("CX-INPUTPATH", place))
            yield from _call(writer, writer.step.name, payload, place)


# Calls ----------------------------------------------------------------------------------------


def _task(writer: TaskWriter) -> Iterator[ChainTransition]:
    """Write a Task: its agent, or its resource, becomes a tool."""
    state = writer.step.state
    field = "Agent" if "Agent" in state else "Resource"
    agent = str(state.get(field))
    writer.report(
        "L-RESOURCE",
        f"{agent!r} is a tool there",
        writer.at(field),
        "it gets its input under 'input' and constant arguments under 'args'",
    )
    made_of = _parts(writer.chain.agents.get(agent))
    if made_of:
        needed = f"the tool {agent!r} must provide {', '.join(made_of)} of the agent"
        instead = "configure them where the tool is defined"
        writer.report("L-ACTOR", needed, writer.at(field), instead, Severity.WARNING)
    told = lost_integration(agent)
    if told is not None:
        writer.report("L-INTEGRATION", told, writer.at("Resource"), "a tool of the same name")
    place = writer.at("Arguments", "Parameters", "InputPath")
    code = "CX-INPUTPATH" if place.endswith("/InputPath") else "CX-PARAMS"
    payload = writer.resolve(writer.step.input, Cause(code, place))
    yield from _call(writer, provider_of(agent), payload, place)


def _parts(definition: AgentDefinition | None) -> list[str]:
    """Return what the definition of an agent has that no tool of a chain says."""
    if definition is None:
        return []
    parts = {
        "the prompt": definition.prompt,
        f"the model {definition.model!r}": definition.model,
        "the settings": definition.settings,
        "the output schema": definition.output,
        "the tools": definition.tools or definition.servers,
    }
    return [name for name, value in parts.items() if value]


def _call(writer: TaskWriter, tool: str, payload: Term, place: str) -> Iterator[ChainTransition]:
    """Write the call of a tool, which selects among the exits of the step."""
    id = writer.id
    called, value = _arguments(writer, tool, payload, place)
    fields, value = writer.given(value, "CX-PARAMS", place)
    word = "hook" if writer.chain.seed else "tools"
    task: dict[str, Json] = {"id": id, "handler": word, **fields, word: called}
    limit = writer.step.state.get("TimeoutSeconds")
    if type(limit) is int:
        task["timeout"] = f"{limit}s"
    elif limit is not None:
        told = "a time limit cannot be computed"
        writer.report("CX-META", told, writer.at("TimeoutSeconds"), LEFT_OUT, Severity.ERROR)
    attempts = retries(writer)
    if attempts:
        task["retry_on_failure"] = attempts
    task = writer.add(task)
    yield from catch(writer, task, value)
    after = TaskWriter(writer.chain, writer.step, renew(writer.known, id))
    if any(each.condition is not None for each in writer.step.exits):
        yield from _selecting(after, task)
    else:
        known = _behind(after, variable(id))
        yield from branch(after, task, known)


def _behind(writer: TaskWriter, result: Term) -> Knowledge:
    """Return what is known behind a call."""
    cause = Cause("CX-OUTPUT", writer.at("Assign"))
    new = {name: writer.resolve(term, cause, result) for name, term in writer.step.assign.items()}
    data = output(writer, result)
    return Knowledge(data, variable(writer.id), assign(writer.known, new))


def _selecting(writer: TaskWriter, task: dict[str, Json]) -> Iterator[ChainTransition]:
    """Let a tool select among the exits of a step, by a text that its answer is shown as.

    That text is all that is left of the answer: if anything else of it is read, the Choice behind
    the step gets a task of its own in the next attempt.
    """
    answer = DataPath(f"!{writer.id}")
    printer = Printer(answer, answer.root, lenient=writer.step.jsonata)
    behind = _behind(writer, answer).data
    exits = _possible(writer, rules(writer, behind, answer), printer)
    choice = writer.step.choice
    if choice is not None and len(exits) < len(writer.step.exits):
        writer.chain.apart.add(writer.step.name)
    writer = TaskWriter(writer.chain, replace(writer.step, exits=exits), writer.known)
    if all(each.condition is None for each in exits):
        yield from branch(writer, task, _behind(writer, variable(writer.id)))
        return
    place = choice or writer.step.pointer
    if choice is not None:
        writer.chain.selecting[place] = writer.step.name
    known = _behind(writer, Lost("", Cause("CX-SELECTOR", place)))
    selection = select(rules(writer, behind, answer, known), printer)
    assert selection is not None
    set_selection(selection, task)
    yield from leave(writer, known)


def _possible(
    writer: TaskWriter, found: list[BranchRule], printer: Printer
) -> tuple[StepExit, ...]:
    """Return the exits that templates can select; report the others, which are never taken."""
    kept = []
    for rule, exit in zip(found, writer.step.exits, strict=True):
        if rule.condition is None or select([rule], printer) is not None:
            kept.append(exit)
        else:
            told = "no condition there expresses this; it is never true"
            writer.report("CX-OPERATOR", told, exit.pointer, None, Severity.ERROR)
    return tuple(kept)


def _arguments(
    writer: TaskWriter, tool: str, payload: Term, place: str
) -> tuple[dict[str, Json], Term]:
    """Return a tool with its written arguments, and the rest of what it is given."""
    called: dict[str, Json] = {"name": tool}
    members = _members(payload)
    if members is None:
        return called, payload
    if not members:
        told = "a tool always gets the current data"
        writer.report("CX-PARAMS", told, place, None, Severity.WARNING)
    of_chain = _of_chain(members)
    if of_chain is not None:
        extra, constant = of_chain
        called |= extra
        others = {_INPUT: members[_INPUT]}
    else:
        constant = {key: each.value for key, each in members.items() if isinstance(each, Literal)}
        others = {key: each for key, each in members.items() if key not in constant}
    args: Fields = {key: _argument(writer, each, place) for key, each in constant.items()}
    if args:
        called["args"] = args
    if not others:  # the input is the same on every path
        flow = writer.known.flow
        return called, GIVEN if is_moving(flow) else flow
    if len(others) == 1:
        return called, next(iter(others.values()))
    return called, Record(None, tuple(others.items()))


def _of_chain(members: Mapping[str, Term]) -> tuple[Fields, dict[str, Json]] | None:
    """Return a tool and its arguments where a call is that of a chain, None for any other."""
    if _INPUT not in members or not members.keys() <= {_INPUT, "provider", "tool", "args"}:
        return None
    provider, tool, args = (members.get(key) for key in ("provider", "tool", "args"))
    named: Fields = {}
    for key, value in (("name", provider), ("tool_name", tool)):
        if value is None:
            continue
        if not isinstance(value, Literal) or not isinstance(value.value, str):
            return None
        named[key] = value.value
    if args is None:
        return named, {}
    if not isinstance(args, Literal) or not isinstance(args.value, dict):
        return None
    return named, args.value


def _members(payload: Term) -> dict[str, Term] | None:
    """Return the members of an object that is written out, None for anything else."""
    match payload:
        case Record(None, members):
            return dict(members)
        case Literal(dict(value)):
            return {key: Literal(each) for key, each in value.items()}
    return None


def _argument(writer: TaskWriter, value: Json, place: str) -> str:
    """Return a value as an argument of a tool, which is a text."""
    if isinstance(value, str):
        if any(find_macros(value)):
            writer.report("CX-PARAMS", "this text is expanded there", place)
        return value
    text = compact(value)
    told = f"arguments of tools are texts, and {text[:60]} is not a text"
    writer.report("CX-PARAMS", told, place, "its JSON", Severity.WARNING)
    return text


# Decisions ------------------------------------------------------------------------------------


def _choice(writer: TaskWriter) -> Iterator[ChainTransition]:
    """Write a Choice as a call of the tool that returns its input: the text that decides."""
    id, name = writer.id, writer.step.name
    known = writer.known
    if is_moving(known.flow) and any(is_moving(each) for each in paths_of(known.data)):
        # What moves along gets a name before the choice takes its place.
        id = writer.chain.id(f"{name} choice")
        task = writer.add({"id": writer.id, "handler": "noop"})
        set_transition(task, [default(id)])
        writer = TaskWriter(writer.chain, writer.step, name_flow(known, writer.id))
    exits = _possible(writer, rules(writer, output(writer), None), writer.printer)
    writer = TaskWriter(writer.chain, replace(writer.step, exits=exits), writer.known)
    selection = select(rules(writer, output(writer), None), writer.printer)
    assert selection is not None
    if all(each.condition is None for each in exits):
        task = writer.add({"id": id, "handler": "noop"})
        set_transition(task, selection.branches)
        after = name_flow(writer.known, id)
    else:
        word = "hook" if writer.chain.seed else "tools"
        shown = {"prompt_template": selection.template, word: {"name": ECHO}}
        task = writer.add({"id": id, "handler": word, **shown})
        set_selection(selection._replace(template=ECHOED), task)
        known = renew(writer.known, id)
        after = Knowledge(known.data, variable(id), known.variables)
    yield from _decided(TaskWriter(writer.chain, writer.step, after))


def _decided(writer: TaskWriter) -> Iterator[ChainTransition]:
    """Yield where a Choice leads. In JSONata it shapes the data only where no rule holds."""
    known, cause = writer.known, Cause("CX-OUTPUT", writer.at("Output", "Assign"))
    shaped = output(writer)
    new = {name: writer.resolve(term, cause) for name, term in writer.step.assign.items()}
    for each in writer.step.exits:
        plain = writer.step.jsonata and each.condition is not None
        variables = known.variables if plain else assign(known, new)
        behind = Knowledge(known.data if plain else shaped, known.flow, variables)
        one = replace(writer.step, exits=(each,))
        yield from leave(TaskWriter(writer.chain, one, known), behind)


# States without a call --------------------------------------------------------------------------


def _pass(writer: TaskWriter) -> Iterator[ChainTransition]:
    """Write a state that only hands on data."""
    id = writer.id
    data = output(writer)
    place = writer.at("Result", "Parameters", "Output", "InputPath", "OutputPath")
    fields: Fields = {}
    if _is_handed_on(data):
        fields, _ = writer.given(data, "CX-PASS", place)
    cause = Cause("CX-PASS", writer.at("Assign"))
    new = {name: writer.resolve(term, cause) for name, term in writer.step.assign.items()}
    task = writer.add({"id": id, "handler": "noop", **fields})
    flow = data if fields else writer.known.flow
    known = Knowledge(data, flow, assign(writer.known, new))
    if flow != variable(id):
        known = name_flow(known, id)
    yield from branch(writer, task, known)


def _is_handed_on(data: Term) -> bool:
    """Return whether a Pass can hand on its data exactly; else the step that uses it reports."""
    if isinstance(data, Literal):
        return isinstance(data.value, str)
    return isinstance(data, Text) or is_variable(data)


def _succeed(writer: TaskWriter) -> None:
    """Write a Succeed as a task without effect, where one is needed."""
    if not is_needed(writer.chain, writer.step.name):
        return
    data = output(writer)
    place = writer.at("Output", "OutputPath", "InputPath")
    fields = writer.express(data, "CX-OUTPUT", place, ends=True) or {}
    task = writer.add({"id": writer.id, "handler": "noop", **fields})
    set_transition(task, [default(END)])


def _fail(writer: TaskWriter) -> None:
    """Write a Fail: its error and its cause are one message."""
    error = writer.step.fields.get("Error")
    name = str(error.value) if isinstance(error, Literal) else ""
    named = error is not None and not is_anonymous(name)
    if name != RAISED:
        instead = "the name is added to the message" if named else "the message remains"
        writer.report("L-FAIL", "an error has no name there", None, instead)
    fields = ("Error", "Cause") if named else ("Cause",)
    message = ": ".join(filter(None, (_message(writer, each) for each in fields)))
    task = {"id": writer.id, "handler": "raise_error", "prompt_template": message or "failed"}
    writer.add({**task})


def _message(writer: TaskWriter, field: str) -> str:
    """Return a field of a Fail as a template; its name for a value that no template has."""
    term = writer.step.fields.get(field)
    if term is None:
        return ""
    value = writer.resolve(term, Cause("L-FAIL", writer.step.pointer))
    shown = None if isinstance(value, Record) else writer.printer.text(value)
    return f"({field.lower()})" if shown is None else shown
