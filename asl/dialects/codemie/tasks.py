"""The Task of a state: what its actor gets, how often it is tried, where its answer is written."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.codemie.answer_places import (
    ITEM,
    AnswerPlaces,
    argument_names,
    mapped_names,
    names_in,
)
from asl.dialects.codemie.config import END, CodemieState, Config
from asl.dialects.codemie.functions.outputs import parse_schema
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.options import CodemieOptions
from asl.dialects.codemie.transforms import never_made, sayable
from asl.dialects.expressions import handed, query
from asl.expr.jsonata.javascript import literal

__all__ = ["INPUT", "RETRIED", "Tasks"]

INPUT: Final = "$states.input"
RETRIED: Final = "CodeMie.Retryable"
"""Errors that another attempt may mend (`errors.toml`)."""
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
    """Builds the Tasks of a workflow.

    *limits* is how many states a run may enter, by the states behind which that is checked.
    """

    def __init__(self, config: Config, options: CodemieOptions, limits: Mapping[str, int]) -> None:
        self.config = config
        self.options = options
        self.limits = limits
        self.answers = AnswerPlaces(config)
        self.findings: list[Finding] = []

    def task(self, state: CodemieState, name: str, *, item: bool) -> dict[str, Json]:
        """Return the Task of a state (a Pass for a transformation), without its transition.

        It is called *name*, and runs with *item* for one.
        """
        kind, agent = state.actor
        actor = self.config.actor(state)
        if kind == "custom_node_id" and sayable(actor):
            made_of = actor.get("config", {})
            missing = never_made(made_of)
            if missing is not None:
                return {"Type": "Fail", "Error": "CM.TransformFailed", "Cause": handed(missing)}
            parts = [INPUT, literal(made_of)]
            parts += self.sources(mapped_names(made_of), state, item=item)
            result = f"$codemie_transform({', '.join(parts)})"
            return {"Type": "Pass", "Output": self.stored(state, result, item=item)}
        arguments, result = self.arguments(state, actor, item=item), "$states.result"
        made: dict[str, Json] = {"Type": "Task", "Agent": agent, "Arguments": arguments}
        schema = self.schema(state)
        policy = self.config.policy(state)
        if policy["max_attempts"] > 1 and (self.options.implicit_retry or self.has_policy(state)):
            made["Retry"] = [_retrier(policy)]
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
        made["Output"] = self.stored(state, result, item=item)
        return made

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
                    "'output_schema' is no JSON Schema, so answers are not validated",
                    f"{state.pointer}/output_schema",
                    "an object with 'type' and 'properties', in JSON, is a schema",
                )
            )
        return schema

    def arguments(self, state: CodemieState, actor: Mapping[str, Any], *, item: bool) -> Json:
        kind = state.actor[0]
        if kind == "tool_id":
            return self.tool_arguments(state, actor, item=item)
        made: dict[str, Json] = {"task": handed(state.value.get("task", ""))}
        if kind == "custom_node_id":
            made |= {
                "config": handed(actor.get("config", {})),
                "context": query(f"$codemie_context({INPUT})"),
            }
        else:
            made["task"] = self.text(state, item=item)
            if "output_schema" in state.value:
                schema = parse_schema(state.value["output_schema"])
                written = state.value["output_schema"] if schema is None else schema
                made["output_schema"] = handed(written)
                if schema is not None:
                    made["errors"] = query(f"$codemie_errors({INPUT})")
            made["history"] = query(f"$codemie_history({', '.join(self.heard(state, item=item))})")
        if item:
            unread = not self.answers.is_read(ITEM, state, item=True)
            key = f", {literal(ITEM)}" if kind == "custom_node_id" or unread else ""
            made["item"] = query(f"$codemie_item({INPUT}{key})")
        return made

    def text(self, state: CodemieState, *, item: bool = False) -> Json:
        """Return the task text of an assistant: an expression if there is something to resolve."""
        task: str = state.value.get("task", "")
        resolves = state.value.get("resolve_dynamic_values_in_prompt") is not False
        if resolves and any(each.steps for each in find_placeholders(task)):
            parts = [INPUT, literal(task), *self.sources(names_in(task), state, item=item)]
            return query(f"$codemie_text({', '.join(parts)})")
        return handed(task)

    def sources(
        self,
        names: Iterator[str],
        state: CodemieState,
        *,
        item: bool,
        options: Mapping[str, Json] | None = None,
    ) -> Iterator[str]:
        """Yield the last argument of a function that reads names, if there is something to say.

        Args:
            names: The names of the context.
            state: The state that reads them.
            item: Whether it runs for an item.
            options: Further members of the argument.
        """
        made = dict(options or {})
        if found := self.answers.places(names, state, item=item):
            made["from"] = found
        if self.options.expand_values:
            made["deep"] = True
        if made:
            yield literal(made)

    def heard(self, state: CodemieState, *, item: bool) -> Iterator[str]:
        """Yield the arguments of the function for the messages before a state."""
        yield INPUT
        last = self.answers.message(state, item=item)
        if last is not None and not self.answers.is_read(last, state, item=item):
            yield literal(last)

    def tool_arguments(self, state: CodemieState, tool: Mapping[str, Any], *, item: bool) -> Json:
        arguments: dict[str, Json] = state.value.get("tool_args") or tool.get("tool_args") or {}
        if not arguments:
            return query(f"$codemie_context({INPUT})")
        if not any(map(_open, _leaves(arguments))):
            return arguments
        key = tool.get("input_key")
        options = {"input_key": key} if key else {}
        read = names_in(f"{{{{{key}}}}}") if key else argument_names(arguments)
        parts = [INPUT, literal(arguments)]
        parts += self.sources(read, state, item=item, options=options)
        return query(f"$codemie_arguments({', '.join(parts)})")

    def picked(self, tool: Mapping[str, Any], result: str) -> str:
        """Return what is left of a tool's result."""
        if tool.get("tool_result_json_pointer"):
            result = f"$codemie_at({result}, {literal(tool['tool_result_json_pointer'])})"
        if tool.get("resolve_dynamic_values_in_response"):
            deep = ", {'deep': true}" if self.options.expand_values else ""
            result = f"$codemie_text({INPUT}, {result}{deep})"
        return result

    def stored(self, state: CodemieState, result: str, *, item: bool) -> str:
        """Return the Output of a state: its answer is written into the data."""
        to = state.next
        flags = {key: to[key] for key in STORED if key in to}
        if not state.recorded:
            flags["include_in_llm_history"] = False
        if state.value.get("result_as_human_message"):
            flags["result_as_human_message"] = True
        if state.id in self.limits and self.goes_on(state):
            flags["recursion_limit"] = self.limits[state.id]
        if not self.config.talks:
            for flag in ("include_in_llm_history", "result_as_human_message"):
                flags.pop(flag, None)
            flags.pop("clear_prior_messages", None)
            flags["history"] = False
        if self.answers.keys[state.id] != to.get("output_key", state.id):
            flags["key"] = self.answers.keys[state.id]
        if item and any(to.get(flag) for flag in ("append_to_context", "clear_context_store")):
            flags["item"] = True
        parts = [INPUT, result, literal(state.id)]
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
        "ErrorEquals": [RETRIED],
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
