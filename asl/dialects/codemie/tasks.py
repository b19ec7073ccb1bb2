"""The Task of a state: what its actor gets, how often it is tried, where its answer is written."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.codemie.config import END, CodemieState, Config
from asl.dialects.codemie.functions.outputs import parse_schema
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.options import CodemieOptions
from asl.dialects.codemie.transforms import sayable
from asl.dialects.expressions import query
from asl.expr.jsonata.javascript import literal

__all__ = ["INPUT", "REFUSED", "RETRIED", "Tasks"]

INPUT: Final = "$states.input"
RETRIED: Final = ("States.TaskFailed", "States.Timeout")
"""Errors that another attempt may mend: every failure of an actor that is not `REFUSED`."""
REFUSED: Final = (
    "CM.Unauthorized",
    "CM.Forbidden",
    "CM.NotFound",
    "CM.InvalidCredentials",
    "CM.TruncatedOutput",
)
"""Failures of actors that no other attempt mends."""
STORED: Final = (
    "store_in_context",
    "output_key",
    "append_to_context",
    "clear_context_store",
    "reset_keys_in_context_store",
    "clear_prior_messages",
    "override_task",
)
"""The flags of `next` that `$codemie_store` uses, in addition to those of the history."""


class Tasks:
    """Builds the Tasks of a workflow; *limit* is how many states a run may enter, None if all."""

    def __init__(self, config: Config, options: CodemieOptions, limit: int | None) -> None:
        self.config = config
        self.options = options
        self.limit = limit
        self.findings: list[Finding] = []

    def task(self, state: CodemieState, name: str, *, item: bool) -> dict[str, Json]:
        """Return the Task of a state (a Pass for a transformation), without its transition.

        It is called *name*, and runs with *item* for one.
        """
        kind, agent = state.actor
        actor = self.config.actor(state)
        if kind == "custom_node_id" and sayable(actor):
            result = f"$codemie_transform({INPUT}, {literal(actor.get('config', {}))})"
            return {"Type": "Pass", "Output": self.stored(state, result)}
        arguments, result = self.arguments(state, actor, item=item), "$states.result"
        made: dict[str, Json] = {"Type": "Task", "Agent": agent, "Arguments": arguments}
        schema = self.schema(state)
        policy = self.config.policy(state)
        if policy["max_attempts"] > 1 and (self.options.implicit_retry or self.has_policy(state)):
            made["Retry"] = [
                {"ErrorEquals": [*REFUSED, *self.faults(state, actor)], "MaxAttempts": 0},
                _retrier(policy),
            ]
        if schema is not None:
            limit = int(policy["max_attempts"])
            result = f"$codemie_valid({result}, {literal(schema)})"
            refused = f"$codemie_refuse({INPUT}, $states.errorOutput, {limit})"
            made["Catch"] = [
                {
                    "ErrorEquals": ["CM.OutputSchema"],
                    "Output": query(refused),
                    "Next": name,
                }
            ]
        if kind == "tool_id":
            result = self.picked(actor, result)
        made["Output"] = self.stored(state, result)
        return made

    def faults(self, state: CodemieState, actor: Mapping[str, Any]) -> Iterator[str]:
        """Yield the errors of the document itself that its Task may fail with."""
        if state.actor[0] == "tool_id":
            yield "CM.ToolArguments"
        if actor.get("tool_result_json_pointer"):
            yield "CM.ResultPointer"
        if "output_schema" in state.value:
            yield "CM.OutputSchema"
        if self.limit is not None:
            yield "CM.RecursionLimit"

    def has_policy(self, state: CodemieState) -> bool:
        return "retry_policy" in state.value or "retry_policy" in self.config.value

    def schema(self, state: CodemieState) -> dict[str, Json] | None:
        """Return the JSON Schema that a state's answers must fit, None for a mere hint."""
        text = state.value.get("output_schema")
        if text is None or "assistant_id" not in state.value:
            return None
        schema = parse_schema(text)
        if schema is None:
            self.findings.append(
                Finding(
                    "CM-OUTPUT-HINT",
                    "this is no JSON Schema, so answers are not held against it",
                    f"{state.pointer}/output_schema",
                    "an object with 'type' and 'properties', in JSON, is a schema",
                )
            )
        return schema

    def arguments(self, state: CodemieState, actor: Mapping[str, Any], *, item: bool) -> Json:
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
                schema = parse_schema(state.value["output_schema"])
                made["output_schema"] = state.value["output_schema"] if schema is None else schema
                if schema is not None:
                    made["errors"] = query(f"$codemie_errors({INPUT})")
            made["history"] = query(f"$codemie_history({INPUT})")
        if item:
            made["item"] = query(f"{INPUT}.cm.item")
        return made

    def text(self, state: CodemieState) -> str:
        """Return the task text of an assistant: an expression if there is something to resolve."""
        task: str = state.value.get("task", "")
        resolves = state.value.get("resolve_dynamic_values_in_prompt") is not False
        if resolves and any(each.steps for each in find_placeholders(task)):
            return query(self.filled(literal(task)))
        if task.startswith("{%") or task.endswith("%}"):
            return query(literal(task))
        return task

    def filled(self, text: str) -> str:
        """Return the call that resolves the placeholders of a text."""
        deep = ", true" if self.options.expand_values else ""
        return f"$codemie_text({INPUT}, {text}{deep})"

    def tool_arguments(self, state: CodemieState, tool: Mapping[str, Any]) -> Json:
        arguments: dict[str, Json] = state.value.get("tool_args") or tool.get("tool_args") or {}
        if not arguments:
            return query(f"$codemie_context({INPUT})")
        if not any(map(_open, _leaves(arguments))):
            return arguments
        parts = [INPUT, literal(arguments)]
        if self.options.expand_values:
            parts += [literal(tool.get("input_key")), "true"]
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

    def stored(self, state: CodemieState, result: str) -> str:
        """Return the Output of a state: its answer is written into the data."""
        to = state.next
        flags = {key: to[key] for key in STORED if key in to}
        if not state.recorded:
            flags["include_in_llm_history"] = False
        if state.value.get("result_as_human_message"):
            flags["result_as_human_message"] = True
        if self.limit is not None and self.goes_on(state):
            flags["recursion_limit"] = self.limit
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

    def goes_on(self, state: CodemieState) -> bool:
        """Whether another state follows for certain."""
        to = state.next
        heads = to.get("state_ids", [to["state_id"]] if "state_id" in to else [])
        return bool(heads) and set(heads) != {END}


def _retrier(policy: Mapping[str, float]) -> dict[str, Json]:
    longest = policy["max_interval"]
    interval = min(policy["initial_interval"], longest)
    retrier: dict[str, Json] = {
        "ErrorEquals": [*RETRIED],
        "IntervalSeconds": int(interval) if interval == int(interval) else interval,
        "MaxAttempts": int(policy["max_attempts"]) - 1,
        "BackoffRate": policy["backoff_factor"] if interval < longest else 1,
    }
    if math.floor(longest) > interval:
        retrier["MaxDelaySeconds"] = math.floor(longest)
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
