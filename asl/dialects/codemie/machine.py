"""The machine of a workflow: its states, in JSONata.

Each state becomes a Task whose `Output` writes its answer into the context. A condition or a switch
becomes a Choice behind it, a fork a Parallel, an iteration a Map, a gate an Approval in front.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.codemie.conditions import translated
from asl.dialects.codemie.config import END, Config, State
from asl.dialects.codemie.graph import Ambiguous, Graph
from asl.dialects.codemie.options import DEFAULT, Options
from asl.dialects.names import fresh
from asl.dialects.queries import literal, query
from asl.expr.codemie.placeholders import placeholders
from asl.expr.codemie.schemas import usable
from asl.expr.codemie.transforms import MAPPINGS

__all__ = ["Built", "built"]

INPUT: Final = "$states.input"
MAX_NAME: Final = 80
RECURSION_LIMIT: Final = 50
"""How many states a run may enter where the workflow does not say."""
MAX_DEPTH: Final = 30
"""How deep iterations and forks may stand in each other."""
RETRIED: Final = (
    "CM.ServerError",
    "CM.RateLimit",
    "CM.Timeout",
    "CM.Connection",
    "CM.TaskFailed",
    "States.Timeout",
    "States.RateLimitExceeded",
    "Agent.NetworkError",
    "Agent.APIError",
    "Agent.ModelError",
    "Agent.ToolError",
)
"""Errors that another attempt may mend: the platform's, and what our agents call the same.

A wildcard would also retry what no attempt mends, CM.Unauthorized first of all.
"""
STORED: Final = (
    "store_in_context",
    "output_key",
    "append_to_context",
    "clear_context_store",
    "reset_keys_in_context_store",
    "clear_prior_messages",
    "override_task",
)
"""The flags of `next` that `$codemie_store` heeds, beside those of the history."""


class Built(NamedTuple):
    """A machine, where its parts were written, and what there is to say."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    reached: frozenset[str]
    findings: list[Finding]


class Scope(NamedTuple):
    """Where a machine stands: what ends it, and whether it runs for an item."""

    stop: str = END
    item: bool = False
    depth: int = 0


def built(config: Config, options: Options = DEFAULT) -> Built:
    """Build the machine of a workflow without errors."""
    builder = _Builder(config, options)
    machine = builder.machine(config.start.id, Scope())
    return Built(machine, builder.origins, frozenset(builder.reached), builder.findings)


class _Builder:
    def __init__(self, config: Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.graph = Graph(config.states)
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.reached: set[str] = set()
        self.findings: list[Finding] = []
        self.waiting: set[str] = set()
        """States that were reported to wait while others do."""
        self.names: set[str] = set()
        self.left = 20 * len(config.states) + 200
        limit = config.value.get("recursion_limit", RECURSION_LIMIT)
        self.limit = limit if self.graph.longest > limit else None
        """How many states a run may enter, None where no run can enter more."""

    def name(self, text: str) -> str:
        """Return a name that no other state of the whole document has."""
        found = fresh(text if len(text) <= MAX_NAME else text[: MAX_NAME - 6], self.names)
        self.names.add(found)
        return found

    def found(self, code: str, message: str, pointer: str, hint: str | None = None) -> None:
        self.findings.append(Finding(code, message, pointer, hint))

    def written(self, value: dict[str, Json], pointer: str) -> dict[str, Json]:
        """Remember where an object of the machine is written."""
        self.origins.append((value, pointer))
        return value

    def machine(self, start: str, scope: Scope, *, asked: bool = False) -> dict[str, Json]:
        """Build the machine that begins with a state; *asked* says that its gate is behind us."""
        return _Machine(self, scope).built(start, asked)

    def parted(self, state: State, scope: Scope) -> dict[str, Json]:
        """Build the machine of items that part at once, as the state says that they come from."""
        return _Machine(self, scope).parted(state)

    def fits(self, state: State, heads: Iterable[str], stop: str, scope: Scope) -> bool:
        """Whether the states from *heads* on can stand in a machine of their own."""
        if state.id in self.graph.reachable(heads, stop) or scope.depth >= MAX_DEPTH:
            self.found(
                "CM-UNSTRUCTURED",
                f"a branch leads back to {state.id!r}, which has started it",
                f"{state.pointer}/next",
                f"let the branches meet first, and go back from there ({stop!r} is where they do)",
            )
            return False
        return True

    def waits(self, name: str, meeting: str) -> None:
        """Report a state that waits for others while branches are on their way to another one."""
        if meeting == END or name in self.waiting:
            return
        self.waiting.add(name)
        self.found(
            "CM-NESTED-JOIN",
            f"{name!r} waits for others while {meeting!r} does; the platform may run that twice",
            f"{self.config.states[name].pointer}/id",
            f"let all branches meet in {meeting!r}",
        )


class _Machine:
    """One machine under construction."""

    def __init__(self, builder: _Builder, scope: Scope) -> None:
        self.builder = builder
        self.config = builder.config
        self.scope = scope
        self.states: dict[str, Json] = {}
        self.tasks: dict[str, str] = {}
        """The names of the Tasks by state."""
        self.gates: dict[str, str] = {}
        self.todo: list[str] = []
        self.ending: str | None = None
        self.cancelled: str | None = None

    def built(self, start: str, asked: bool) -> dict[str, Json]:
        entry = self.task(start) if asked else self.entry(start)
        if entry is None:  # a branch without states
            entry = self.builder.name(END)
            self.states[entry] = {"Type": "Pass", "End": True}
        return self.closed(entry)

    def parted(self, state: State) -> dict[str, Json]:
        to = state.next
        entry = self.fork(state, to["state_ids"]) if "state_ids" in to else self.choice(state)
        return self.closed(entry)

    def closed(self, entry: str) -> dict[str, Json]:
        """Build what is still to be built of the machine that begins here."""
        while self.todo:
            self.state(self.config.states[self.todo.pop(0)])
        if self.ending is not None:
            self.states[self.ending] = {"Type": "Succeed"}
        if self.cancelled is not None:
            self.states[self.cancelled] = {
                "Type": "Fail",
                "Error": "CM.Aborted",
                "Cause": "somebody has cancelled the run",
            }
        return {"StartAt": entry, "States": self.states}

    # Names

    def task(self, name: str) -> str:
        """Return the name of a state's Task, which is to be built in this machine."""
        if name not in self.tasks:
            self.tasks[name] = self.builder.name(name)
            self.todo.append(name)
        return self.tasks[name]

    def entry(self, name: str) -> str | None:
        """Return where to go for a state: its gate, if it has one; None where this machine ends."""
        if name in (self.scope.stop, END):
            return None
        state = self.config.states[name]
        if not state.gated:
            return self.task(name)
        if name not in self.gates:
            # The Task is named first: it has the author's name.
            task = self.task(name)
            self.gates[name] = self.gate(state, task)
            if self.scope.item:
                self.builder.found(
                    "CM-PERITEM-GATE",
                    f"{name!r} runs for every item, so people are asked for every item",
                    state.pointer,
                )
        return self.gates[name]

    def target(self, name: str) -> str:
        """Return the name of the state that a Choice leads to."""
        entry = self.entry(name)
        if entry is not None:
            return entry
        if self.ending is None:
            self.ending = self.builder.name(END)
        return self.ending

    def going(self, name: str) -> dict[str, Json]:
        """Return the transition to a state."""
        entry = self.entry(name)
        return {"End": True} if entry is None else {"Next": entry}

    # States

    def state(self, state: State) -> None:
        builder = self.builder
        builder.reached.add(state.id)
        builder.left -= 1
        if builder.left < 0:
            builder.found(
                "CM-UNSTRUCTURED",
                "the branches of this workflow lead into each other",
                state.pointer,
            )
            self.todo.clear()
            return
        made = self.written(state, self.work(state))
        self.states[self.tasks[state.id]] = made
        to = state.next
        if state.iter_key is not None and (state.finishes or not self.scope.item):
            self.iterated(state, made)
        elif "condition" in to or ("switch" in to and to["switch"]["cases"]):
            made["Next"] = self.choice(state)
        elif len(to.get("state_ids", ())) > 1:
            made["Next"] = self.fork(state, to["state_ids"])
        else:  # a switch without cases, a fork of one branch, or a plain transition
            ((target, _),) = state.targets()
            made |= self.going(target)

    def written(self, state: State, value: dict[str, Json], below: str = "") -> dict[str, Json]:
        return self.builder.written(value, f"{state.pointer}{below}")

    def work(self, state: State) -> dict[str, Json]:
        """Return the Task of a state (a Pass for a transformation), without its transition."""
        kind, name = state.actor
        actor = self.config.actor(state)
        if kind == "custom_node_id" and _transforms(actor):
            result = f"$codemie_transform({INPUT}, {literal(actor.get('config', {}))})"
            return {"Type": "Pass", "Output": self.stored(state, result)}
        arguments, result = self.arguments(state, actor), "$states.result"
        made: dict[str, Json] = {"Type": "Task", "Agent": name, "Arguments": arguments}
        schema = self.schema(state)
        policy = self.config.policy(state)
        if policy["max_attempts"] > 1 and (
            self.builder.options.implicit_retry or self.has_policy(state)
        ):
            made["Retry"] = [_retrier(policy)]
        if schema is not None:
            limit = int(policy["max_attempts"])
            result = f"$codemie_valid({result}, {literal(schema)})"
            refused = f"$codemie_refuse({INPUT}, $states.errorOutput, {limit})"
            made["Catch"] = [
                {
                    "ErrorEquals": ["CM.OutputSchema"],
                    "Output": query(refused),
                    "Next": self.tasks[state.id],
                }
            ]
        if kind == "tool_id":
            result = self.picked(actor, result)
        made["Output"] = self.stored(state, result)
        return made

    def has_policy(self, state: State) -> bool:
        return "retry_policy" in state.value or "retry_policy" in self.config.value

    def schema(self, state: State) -> dict[str, Json] | None:
        """Return the JSON Schema that a state's answers must fit, None for a mere hint."""
        text = state.value.get("output_schema")
        if text is None or "assistant_id" not in state.value:
            return None
        schema = usable(text)
        if schema is None:
            self.builder.found(
                "CM-OUTPUT-HINT",
                "this is no JSON Schema, so answers are not held against it",
                f"{state.pointer}/output_schema",
                "an object with 'type' and 'properties', in JSON, is a schema",
            )
        return schema

    def arguments(self, state: State, actor: Mapping[str, Any]) -> Json:
        kind = state.actor[0]
        if kind == "tool_id":
            return self.tool_arguments(state, actor)
        task = state.value.get("task", "")
        made: dict[str, Json] = {"task": task}
        if kind == "custom_node_id":
            made |= {
                "config": actor.get("config", {}),
                "context": query(f"$codemie_context({INPUT})"),
            }
        else:
            made["task"] = self.text(state)
            if "output_schema" in state.value:
                schema = usable(state.value["output_schema"])
                made["output_schema"] = state.value["output_schema"] if schema is None else schema
                if schema is not None:
                    made["errors"] = query(f"$codemie_errors({INPUT})")
            made["history"] = query(f"$codemie_history({INPUT})")
        if self.scope.item:
            made["item"] = query(f"{INPUT}.cm.item")
        return made

    def text(self, state: State) -> str:
        """Return the task text of an assistant: an expression if there is something to resolve."""
        task: str = state.value.get("task", "")
        resolves = state.value.get("resolve_dynamic_values_in_prompt") is not False
        if resolves and any(each.steps for each in placeholders(task)):
            return query(self.filled(literal(task)))
        if task.startswith("{%") or task.endswith("%}"):
            return query(literal(task))
        return task

    def filled(self, text: str) -> str:
        """Return the call that resolves the placeholders of a text."""
        deep = "" if self.builder.options.expand_values else ", false"
        return f"$codemie_text({INPUT}, {text}{deep})"

    def tool_arguments(self, state: State, tool: Mapping[str, Any]) -> Json:
        arguments: dict[str, Json] = state.value.get("tool_args") or tool.get("tool_args") or {}
        if not arguments:
            return query(f"$codemie_context({INPUT})")
        if not any(map(_open, _leaves(arguments))):
            return arguments
        parts = [INPUT, literal(arguments)]
        if not self.builder.options.expand_values:
            parts += [literal(tool.get("input_key")), "false"]
        elif tool.get("input_key"):
            parts.append(literal(tool["input_key"]))
        return query(f"$codemie_arguments({', '.join(parts)})")

    def picked(self, tool: Mapping[str, Any], result: str) -> str:
        """Return what is left of a tool's result."""
        if tool.get("tool_result_json_pointer"):
            result = f"$codemie_at({result}, {literal(tool['tool_result_json_pointer'])})"
        if tool.get("resolve_dynamic_values_in_response"):
            result = self.filled(result)
        return result

    def stored(self, state: State, result: str) -> str:
        """Return the Output of a state: its answer is written into the data."""
        to = state.next
        flags = {key: to[key] for key in STORED if key in to}
        if to.get("include_in_llm_history", to.get("keep_history", True)) is False:
            flags["include_in_llm_history"] = False
        if state.value.get("result_as_human_message"):
            flags["result_as_human_message"] = True
        if self.builder.limit is not None and self.goes_on(state):
            flags["recursion_limit"] = self.builder.limit
        if not self.config.talks:
            for flag in ("include_in_llm_history", "result_as_human_message"):
                flags.pop(flag, None)
            flags.pop("clear_prior_messages", None)
        parts = [INPUT, result]
        if self.config.talks or flags:
            parts.append(literal(state.id if self.config.talks else None))
        if flags:
            parts.append(literal(flags))
        return query(f"$codemie_store({', '.join(parts)})")

    def goes_on(self, state: State) -> bool:
        """Whether another state follows for certain."""
        to = state.next
        heads = to.get("state_ids", [to["state_id"]] if "state_id" in to else [])
        return bool(heads) and set(heads) != {END}

    # Transitions

    def choice(self, state: State) -> str:
        """Build the Choice of a state's conditions; return its name."""
        name = self.builder.name(f"{state.id}:if")
        self.states[name] = choice = self.written(state, {"Type": "Choice"}, "/next")
        choice["Choices"] = [
            self.written(
                state,
                {
                    "Condition": translated(text),
                    **self.counted(target),
                    "Next": self.target(target),
                },
                f"/next/{place}",
            )
            for text, target, place in state.conditions()
        ]
        choice |= {**self.counted(state.otherwise), "Default": self.target(state.otherwise)}
        if self.scope.item:
            self.builder.found(
                "CM-PERITEM-BRANCH",
                f"{state.id!r} chooses for every item; the platform runs each target once",
                f"{state.pointer}/next",
            )
        return name

    def counted(self, target: str) -> dict[str, Json]:
        """Return what a Choice does to hold the bound on states."""
        if self.builder.limit is None or target == END:
            return {}
        return {"Output": query(f"$codemie_step({INPUT}, {self.builder.limit})")}

    def fork(self, state: State, heads: list[str]) -> str:
        """Build the Parallel of a state's branches; return its name."""
        builder, scope = self.builder, self.scope
        meeting = builder.graph.meeting(heads)
        name = builder.name(f"{state.id}:fork")
        if not builder.fits(state, heads, meeting, scope):
            return name
        for each in sorted(builder.graph.reachable(heads, meeting)):
            if builder.graph.entries[each] > 1:
                builder.waits(each, meeting)
        inner = Scope(meeting, scope.item, scope.depth + 1)
        self.states[name] = fork = self.written(
            state,
            {
                "Type": "Parallel",
                "Arguments": query(f"$codemie_branch({INPUT})"),
                "Branches": [],
                "Output": query(f"$codemie_join({INPUT}, $states.result)"),
            },
            "/next",
        )
        going = self.going(meeting)  # what follows has the plain names
        fork["Branches"] = [builder.machine(head, inner) for head in heads]
        fork |= going
        return name

    def iterated(self, state: State, made: dict[str, Json]) -> None:
        builder, scope = self.builder, self.scope
        worker, key = state.next.get("state_id"), state.next["iter_key"]
        heads = [target for target, _ in state.targets()]
        try:
            graph = builder.graph
            meeting = graph.parting(state.id) if worker is None else graph.join(worker)
        except Ambiguous as targets:
            builder.found(
                "CM-AMBIGUOUS-JOIN",
                f"the last states of this iteration go to different states: {targets}",
                f"{state.pointer}/next",
                "let all states that are marked 'finish_iteration' go to the same one",
            )
            return
        if not builder.fits(state, heads, meeting, scope):
            return
        if scope.depth and meeting not in (scope.stop, END):
            builder.waits(meeting, scope.stop)
        name = builder.name(f"{state.id}:each")
        include = state.next.get("include_in_iterator_context")
        parts = [INPUT, "$states.context.Map.Item.Value"]
        if include is not None:
            parts.append(literal(include))
        each = self.written(
            state,
            {
                "Type": "Map",
                "Items": query(f"$codemie_items({INPUT}, {literal(key)})"),
                "ItemSelector": query(f"$codemie_branch({', '.join(parts)})"),
            },
            "/next",
        )
        if "max_concurrency" in self.config.value:
            each["MaxConcurrency"] = self.config.value["max_concurrency"]
        inner = Scope(meeting, True, scope.depth + 1)
        made["Next"] = name
        if worker is None:
            each["ItemProcessor"] = builder.parted(state, inner)
        else:
            first = self.config.states[worker]
            each["ItemProcessor"] = builder.machine(worker, inner, asked=True)
            if first.gated:
                made["Next"] = self.gate(first, name)
            self._mismatches(worker, key)
        self.states[name] = each
        each["Output"] = query(f"$codemie_join({INPUT}, $states.result)")
        each |= self.going(meeting)

    def _mismatches(self, worker: str, key: str) -> None:
        seen: set[str] = set()
        name = worker
        while name != END and name not in seen:
            seen.add(name)
            each = self.config.states[name]
            if each.iter_key is None or each.finishes:
                return
            if each.iter_key != key:
                self.builder.found(
                    "CM-ITER-MISMATCH",
                    f"the item goes on; {each.iter_key!r} of this output is not iterated",
                    f"{each.pointer}/next/iter_key",
                    "mark the state with 'finish_iteration' to iterate its own output",
                )
            name = each.next["state_id"]

    def gate(self, state: State, following: str) -> str:
        """Put a gate in front of a state; return its name."""
        builder = self.builder
        name = builder.name(f"{state.id}:gate")
        if self.cancelled is None:
            self.cancelled = builder.name("cancelled")
        prompt: dict[str, Json] = {"Title": f"Continue with {state.id}?"}
        if state.value.get("task"):
            prompt["Description"] = self.text(state)
        parts = [INPUT, "$states.result"]
        if self.config.talks:
            prompt["History"] = query(f"$codemie_history({INPUT})")
            parts.append(literal(state.id))
        self.states[name] = self.written(
            state,
            {
                "Type": "Approval",
                "Prompt": prompt,
                "Options": ["continue", "cancel"],
                "Choices": [
                    {"Condition": query(f"{INPUT}.approval = 'cancel'"), "Next": self.cancelled}
                ],
                "Output": query(f"$codemie_resume({', '.join(parts)})"),
                "Next": following,
            },
        )
        return name


def _retrier(policy: Mapping[str, float]) -> dict[str, Json]:
    interval = max(1, math.ceil(policy["initial_interval"]))
    retrier: dict[str, Json] = {
        "ErrorEquals": [*RETRIED],
        "IntervalSeconds": interval,
        "MaxAttempts": int(policy["max_attempts"]) - 1,
        "BackoffRate": policy["backoff_factor"],
    }
    longest = math.floor(policy["max_interval"])
    if longest > interval:
        retrier["MaxDelaySeconds"] = longest
    return retrier


def _leaves(value: Json) -> Iterator[Json]:
    if type(value) is dict or type(value) is list:
        for each in value.values() if type(value) is dict else value:
            yield from _leaves(each)
    else:
        yield value


def _open(value: Json) -> bool:
    """Whether an argument is to be filled in, or would be taken for an expression."""
    return value in (None, "") or (type(value) is str and ("{{" in value or "{%" in value))


def _transforms(node: Mapping[str, Any]) -> bool:
    """Whether a custom node is a transformation that the functions of the dialect can say."""
    if node.get("custom_node_id", node["id"]) != "transform_node":
        return False
    mappings = node.get("config", {}).get("mappings")
    if type(mappings) is not list:
        return False
    return all(
        type(each) is dict
        and each.get("type") in MAPPINGS
        and _NEEDED[each["type"]] <= each.keys()
        and (
            each["type"] != "template"
            or all(one.steps for one in placeholders(str(each["template"])))
        )
        for each in mappings
    )


_NEEDED: Final[Mapping[str, set[str]]] = {
    "extract": {"output_field", "source_path"},
    "array_map": {"output_field", "source_path"},
    "condition": {"output_field", "condition", "then_value", "else_value"},
    "constant": {"output_field", "value"},
    "script": {"output_field", "script"},
    "template": {"output_field", "template"},
}
"""What a mapping needs, by its type."""
