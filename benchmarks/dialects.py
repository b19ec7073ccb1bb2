"""The workloads of foreign workflows: from text to a program, against its bare parse."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import asl
from asl.core.json_text import scan
from asl.core.source import DEFAULT_LIMITS
from asl.core.yaml_schema import PLATFORM
from asl.core.yaml_text import loads
from benchmarks.workloads import Sides, Workload

__all__ = ["WORKLOADS"]

STAGES = 4
"""Of four states each: as many states as the largest template that is published has."""
HEAD = """\
name: Benchmark {number}
description: Workflow {number}, of the size of the largest templates that there are.
mode: Sequential
execution_config:
  max_concurrency: 10
  enable_summarization_node: false
  assistants:
    - id: writer
      model: gpt
      system_prompt: |
        You write what you are asked for, in workflow {number}.
        Nothing but JSON is ever an answer, and every answer has all keys.
  tools:
    - id: reader
      tool: read_file
  states:
"""
STAGE = """\
    - id: plan_{stage}
      assistant_id: writer
      task: |
        Plan the stage {stage} of the workflow {number} for {{{{project}}}}.
{prose}
      output_schema: |
        {{"items": ["the first of stage {stage}", "..."], "count": 2}}
      next:
        include_in_llm_history: false
        state_id: read_{stage}
        iter_key: items
    - id: read_{stage}
      tool_id: reader
      tool_args:
        path: "{{{{project}}}}/{number}/{{{{task}}}}"
      next:
        state_id: write_{stage}
    - id: write_{stage}
      assistant_id: writer
      task: |
        Write the stage {stage} of the workflow {number} for {{{{project}}}}.
{prose}
      retry_policy:
        max_attempts: 3
        initial_interval: 2
      next:
        store_in_context: false
        state_id: judge_{stage}
    - id: judge_{stage}
      assistant_id: writer
      task: |
        Judge the stage {stage} of the workflow {number}.
{prose}
      next:
        condition:
          expression: "ok == True or score >= {number} and 'done' in keys"
          then: {following}
          otherwise: plan_{stage}
"""
PROSE = "\n".join(["        Read all that was written before, and keep to what it says."] * 12)


def workflow(number: int) -> str:
    """Return a workflow whose every query is its own, so that none is known from before."""
    names = [*(f"plan_{stage}" for stage in range(1, STAGES)), "end"]
    stages = (
        STAGE.format(stage=stage, number=number, following=following, prose=PROSE)
        for stage, following in enumerate(names)
    )
    return HEAD.format(number=number) + "".join(stages)


def reading() -> Sides:
    texts: Iterator[str] = map(workflow, count())

    def by_hand() -> None:
        value, _, faults = loads(next(texts), DEFAULT_LIMITS, PLATFORM)
        assert value
        assert not faults

    return by_hand, lambda: asl.compile(asl.load(next(texts))), 1


def chain(number: int) -> str:
    """Return a chain as large as the largest that is published, most of its tasks chats."""
    tasks = []
    for stage in range(10):
        chat = stage % 4 != 3
        after = f"task_{stage + 1}" if stage < 9 else "end"
        task: dict[str, Any] = {
            "id": f"task_{stage}",
            "handler": "chat_completion" if chat else "execute_tool_calls",
            "transition": {
                "on_failure": "task_9" if stage < 9 else "",
                "branches": [
                    {"operator": "equals", "when": "tool_call", "goto": "task_3"},
                    {"operator": "contains", "when": f"{number}", "goto": "task_0"},
                    {"operator": "default", "when": "", "goto": after},
                ],
            },
        }
        if chat:
            task["system_instruction"] = f"Stage {stage} of the chain {number}. {PROSE}"
            task["execute_config"] = {"model": "{{var:model|large}}", "tools": ["*"]}
        tasks.append(task)
    return json.dumps({"id": f"chain-{number}", "tasks": tasks}, indent=2)


def reading_a_chain() -> Sides:
    """Prepare a chain beside the parse that gives every value its place, as that of YAML does."""
    texts: Iterator[str] = map(chain, count())

    def by_hand() -> None:
        span, faults = scan(next(texts), DEFAULT_LIMITS)
        assert span.members
        assert not faults

    return by_hand, lambda: asl.compile(asl.load(next(texts))), 1


WORKLOADS = (
    Workload("CM", "read, check and compile a CodeMie workflow; vs its YAML parse", 3, reading),
    Workload(
        "CX",
        "read, check and compile a Contenox chain; vs its JSON parse with places",
        4,
        reading_a_chain,
    ),
)
