"""The workloads: a document, and the same data work written by hand.

"By hand" is the plainest fast Python: a copied spine for every write, a dict for a result, no
checks, no history. Ours has the whole history readable afterwards.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import asl
from asl.agents.registry import AgentRegistry
from asl.buckets import bind_buckets
from asl.compiler import compile_workflow
from asl.core.profile import DEFAULT
from asl.effects.clock import WallClock
from asl.effects.driver import drive
from asl.effects.run import execute
from asl.engine.execution import Identity
from asl.engine.result import Result
from asl.expr.jsonata import parse
from asl.program import Program

Json = Any
Sides = tuple[Callable[[], Any], Callable[[], Any], int]
"""By hand, ours, and how many units of work one call of each does."""


@dataclass(frozen=True)
class Workload:
    """One row of the table. The two sides are timed, or give figures of a unit."""

    name: str
    what: str
    limit: float
    prepare: Callable[[], Sides]
    gives: str | None = None
    """The unit of what the sides return, where they are not timed."""
    quick: Callable[[], Sides] | None = None
    """What `--quick` prepares instead, where the workload is long."""


def program(document: Json) -> Program:
    return compile_workflow(document, DEFAULT, "benchmark")


async def echo(payload: Json) -> Json:
    return {"seen": True}


async def nap(payload: Json) -> Json:
    await asyncio.sleep(0.01)
    return {"seen": True}


def start(compiled: Program, data: Json, agents: dict[str, Any]) -> Awaitable[Result]:
    registry = AgentRegistry(agents)
    return execute(compiled, data, registry.find, CLOCK, in_event_loop=True)


CLOCK = WallClock()
NAMED = Identity("n")
LOOP = asyncio.new_event_loop()


def run_inline(compiled: Program, data: Json) -> Result:
    registry = AgentRegistry()
    return drive(execute(compiled, data, registry.find, CLOCK), CLOCK)


# W1: a chain of Pass states, each writes one field


def chain_document(length: int, path: str) -> Json:
    states = {
        f"S{i}": {
            "Type": "Pass",
            "Result": i,
            "ResultPath": path.format(i % 10),
            **({"Next": f"S{i + 1}"} if i + 1 < length else {"End": True}),
        }
        for i in range(length)
    }
    return {"StartAt": "S0", "States": states}


def chain() -> Sides:
    compiled = program(chain_document(100, "$.f{}"))
    keys = [f"f{i % 10}" for i in range(100)]

    def by_hand() -> Json:
        data: Json = {"a": 1}
        for value, key in enumerate(keys):
            data = {**data, key: value}
        return data

    return times(20, by_hand), times(20, lambda: run_inline(compiled, {"a": 1})), 2000


# J1: the same in JSONata; "by hand" is the bare evaluation of the same expressions

EXPRESSIONS = (
    "$merge([$states.input, {'n': $states.input.n + 1}])",
    "$states.input ~> |$|{'total': $sum(items.price)}|",
    "{'n': $states.input.n, 'items': $states.input.items, 'name': $uppercase($states.input.name)}",
    "{'n': $states.input.n, 'items': $states.input.items[price > 1], 'name': $name}",
    "$exists($states.input.missing) ? null : $states.input",
)


def queried() -> Sides:
    order = {
        "n": 0,
        "name": "ada",
        "items": [{"id": f"i{i}", "price": i, "tags": ["a", "b"]} for i in range(5)],
    }
    sources = [EXPRESSIONS[i % len(EXPRESSIONS)] for i in range(100)]
    states = {
        f"S{i}": {
            "Type": "Pass",
            "Output": f"{{% {source} %}}",
            **({"Next": f"S{i + 1}"} if i + 1 < len(sources) else {"End": True}),
        }
        for i, source in enumerate(sources)
    }
    states["First"] = {"Type": "Pass", "Assign": {"name": "ada"}, "Next": "S0"}
    compiled = program({"QueryLanguage": "JSONata", "StartAt": "First", "States": states})
    queries = [parse(source) for source in sources]
    frame: Any = None

    def by_hand() -> Json:
        data: Json = order
        for query in queries:
            data = query({"states": {"input": data}, "name": "ada"}, frame)
        return data

    return times(5, by_hand), times(5, lambda: run_inline(compiled, order)), 500


# W2: a counting loop


def counting() -> Sides:
    compiled = program(
        {
            "StartAt": "More",
            "States": {
                "More": {
                    "Type": "Choice",
                    "Choices": [{"Variable": "$.i", "NumericLessThan": 10_000, "Next": "Add"}],
                    "Default": "Done",
                },
                "Add": {
                    "Type": "Pass",
                    "Parameters": {"i.$": "States.MathAdd($.i, 1)"},
                    "Next": "More",
                },
                "Done": {"Type": "Succeed"},
            },
        }
    )

    def by_hand() -> Json:
        data = {"i": 0}
        while data["i"] < 10_000:
            data = {"i": data["i"] + 1}
        return data

    return by_hand, lambda: run_inline(compiled, {"i": 0}), 20_000


# W3: Map


def map_document(limit: int) -> Json:
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "MaxConcurrency": limit,
                "ItemProcessor": {
                    "StartAt": "Mark",
                    "States": {
                        "Mark": {
                            "Type": "Pass",
                            "Result": True,
                            "ResultPath": "$.marked",
                            "Next": "Ask",
                        },
                        "Ask": {"Type": "Task", "Agent": "A", "ResultPath": "$.r", "End": True},
                    },
                },
                "End": True,
            }
        },
    }


def items(length: int) -> Json:
    return [{"n": i} for i in range(length)]


def mapped(limit: int, agent: Callable[[Json], Awaitable[Json]], pool: int) -> Sides:
    compiled = program(map_document(limit))
    data = items(10_000)

    async def one(item: Json) -> Json:
        marked = {**item, "marked": True}
        return {**marked, "r": await agent(marked)}

    async def gathered() -> Json:
        return await asyncio.gather(*(one(item) for item in data))

    async def pooled() -> Json:
        results: list[Json] = [None] * len(data)
        numbered = iter(enumerate(data))

        async def worker() -> None:
            for index, item in numbered:
                results[index] = await one(item)

        await asyncio.gather(*(worker() for _ in range(pool)))
        return results

    return (
        lambda: LOOP.run_until_complete(pooled() if pool else gathered()),
        lambda: LOOP.run_until_complete(start(compiled, data, {"A": agent})),
        10_000,
    )


# W4: Parallel


def parallel() -> Sides:
    branches = [chain_document(5, "$.f{}") for _ in range(50)]
    for number, branch in enumerate(branches):
        branch["States"] = {
            f"B{number}{name}": {
                **state,
                **({"Next": f"B{number}{state['Next']}"} if "Next" in state else {}),
            }
            for name, state in branch["States"].items()
        }
        branch["StartAt"] = f"B{number}S0"
    compiled = program(
        {
            "StartAt": "P",
            "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}},
        }
    )
    keys = [f"f{i}" for i in range(5)]

    def branch_by_hand(data: Json) -> Json:
        for value, key in enumerate(keys):
            data = {**data, key: value}
        return data

    def by_hand() -> Json:
        return [branch_by_hand({"a": 1}) for _ in range(50)]

    return (
        times(20, by_hand),
        times(20, lambda: run_inline(compiled, {"a": 1})),
        20 * 250,
    )


# W5: short executions with one agent call


SHORT = {
    "StartAt": "Number",
    "States": {
        "Number": {"Type": "Pass", "Result": 1, "ResultPath": "$.n", "Next": "Label"},
        "Label": {"Type": "Pass", "Result": "new", "ResultPath": "$.label", "Next": "Ask"},
        "Ask": {"Type": "Task", "Agent": "A", "ResultPath": "$.answer", "Next": "Seen"},
        "Seen": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.answer.seen", "BooleanEquals": True, "Next": "Note"}],
            "Default": "Note",
        },
        "Note": {"Type": "Pass", "Result": "yes", "ResultPath": "$.note", "End": True},
    },
}


def by_hand_once(agent: Callable[[Json], Awaitable[Json]]) -> Callable[[Json], Awaitable[Json]]:
    async def once(data: Json) -> Json:
        data = {**data, "n": 1}
        data = {**data, "label": "new"}
        data = {**data, "answer": await agent(dict(data))}
        if data["answer"]["seen"] is True:
            data = {**data, "note": "yes"}
        return {"status": "SUCCEEDED", "output": data}

    return once


def short() -> Sides:
    compiled = program(SHORT)
    once = by_hand_once(echo)
    registry = AgentRegistry({"A": echo})
    data = {"question": "why"}

    async def by_hand() -> None:
        for _ in range(1000):
            await once(data)

    async def ours() -> None:
        for _ in range(1000):
            await execute(compiled, data, registry.find, CLOCK, NAMED, in_event_loop=True)

    return (
        lambda: LOOP.run_until_complete(by_hand()),
        lambda: LOOP.run_until_complete(ours()),
        1000,
    )


def at_once() -> Sides:
    compiled = program(SHORT)
    once = by_hand_once(nap)
    registry = AgentRegistry({"A": nap})
    data = {"question": "why"}

    async def by_hand() -> None:
        await asyncio.gather(*(once(data) for _ in range(1000)))

    async def ours() -> None:
        await asyncio.gather(
            *(
                execute(compiled, data, registry.find, CLOCK, in_event_loop=True)
                for _ in range(1000)
            )
        )

    return (
        lambda: LOOP.run_until_complete(by_hand()),
        lambda: LOOP.run_until_complete(ours()),
        1000,
    )


# B: agents with blocks

BUDGET: Json = {
    "MaxCost": 10**6,
    "MaxTokens": 10**12,
    "Alerts": [{"At": "90%"}],
    "Fallback": {"When": "BudgetAt95Percent", "Agent": "A"},
}
GUARDRAILS: Json = {
    "Input": {
        "Rules": [
            {"Type": "length", "Max": 10_000},
            {"Type": "pattern", "Block": ["secret", "password"]},
            {"Type": "pii", "Action": "mask"},
        ]
    },
    "Output": {
        "Rules": [
            {"Type": "length", "Max": 10_000},
            {"Type": "regex", "Pattern": "token-[0-9]+"},
            {"Type": "pii"},
        ]
    },
}


TOOLS: Json = {
    "Allowed": ["search", "read_*"],
    "Denied": ["delete_*"],
    "RateLimits": {"search": {"MaxPerMinute": 60}},
}


def guarded(seconds: float, limit: int, blocks: bool) -> Sides:
    """Agent calls of so many seconds, one after the other or all at once; by hand the calls."""
    count = 1000 if limit == 0 else 100
    task: Json = {"Type": "Task", "Agent": "A", "End": True}
    document: Json = {
        "StartAt": "M",
        "States": {
            "M": {
                "Type": "Map",
                "MaxConcurrency": limit,
                "ItemProcessor": {"StartAt": "T", "States": {"T": task}},
                "End": True,
            }
        },
    }
    if blocks:
        document["Budget"] = BUDGET
        task |= {"Budget": {"MaxTokens": 1000, "Category": "c"}, "Guardrails": GUARDRAILS}
        task["Tools"] = TOOLS
    compiled = program(document)
    data = [{"prompt": f"Say something nice about item {i}, in a few words."} for i in range(count)]

    async def agent(payload: Json) -> Json:
        await asyncio.sleep(seconds)
        return {"text": "An answer of some length.", "_tokens": 12, "_cost": 0.001}

    async def equipped(payload: Json, call: Any) -> Json:
        return await agent(payload)

    async def by_hand() -> None:
        if limit == 0:
            await asyncio.gather(*map(agent, data))
        else:
            for item in data:
                await agent(item)

    return (
        lambda: LOOP.run_until_complete(by_hand()),
        lambda: LOOP.run_until_complete(
            start(compiled, data, {"A": equipped if blocks else agent})
        ),
        count,
    )


def heap_bytes(make: Callable[[], Awaitable[Any]], count: int = 2000) -> float:
    """Return the heap bytes of one execution that waits in its agent."""

    async def waiting() -> float:
        tasks = [asyncio.ensure_future(make()) for _ in range(10)]
        await asyncio.sleep(0)
        before = tracemalloc.get_traced_memory()[0]
        tasks += [asyncio.ensure_future(make()) for _ in range(count)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        after = tracemalloc.get_traced_memory()[0]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return (after - before) / count

    tracemalloc.start()
    try:
        return LOOP.run_until_complete(waiting())
    finally:
        tracemalloc.stop()


def heap() -> Sides:
    compiled = program(SHORT)
    data = {"question": "why"}

    async def waits(payload: Json) -> None:
        await LOOP.create_future()

    once, registry = by_hand_once(waits), AgentRegistry({"A": waits})

    def ours() -> Awaitable[Result]:
        return execute(compiled, data, registry.find, CLOCK, in_event_loop=True)

    return lambda: heap_bytes(lambda: once(data)), lambda: heap_bytes(ours), 1


# W8: large documents


def large(size: int) -> Callable[[], Sides]:
    def prepare() -> Sides:
        compiled = program(chain_document(100, "$.own.f{}"))
        filler = [{"text": "x" * 80, "n": n} for n in range(size // 100)]
        data = {"filler": filler, "own": {}}
        keys = [f"f{i % 10}" for i in range(100)]

        def by_hand() -> Json:
            value: Json = data
            for number, key in enumerate(keys):
                value = {**value, "own": {**value["own"], key: number}}
            return value

        return times(20, by_hand), times(20, lambda: run_inline(compiled, data)), 2000

    return prepare


# W7: the whole process


COMMAND = "import sys; from asl.cli.main import main; sys.exit(main())"
"""What the installed command `asl` runs."""


def command_line(*arguments: str) -> Callable[[], Sides]:
    """Return the preparation of a whole process of `asl` with the path of a small document.

    Args:
        arguments: The words of the command line; `DOC` is the document.
    """

    def prepare() -> Sides:
        return _processes(arguments)

    return prepare


def _processes(arguments: Sequence[str]) -> Sides:
    folder = Path(tempfile.mkdtemp(prefix="asl-benchmark-"))
    document = folder / "hello.asl.json"
    document.write_text(
        '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "hello", "End": true}}}'
    )
    root = Path(asl.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode

    def process(*words: str) -> Callable[[], None]:
        command = [sys.executable, *words]
        return lambda: subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env=environment
        ).check_returncode()

    own = (str(document) if each == "DOC" else each for each in arguments)
    return process("-c", "pass"), process("-c", COMMAND, *own), 1


# W9: a distributed Map over a file of JSON Lines, results to a file


def distributed_document() -> Json:
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemReader": {
                    "Resource": "arn:aws:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "JSONL"},
                    "Parameters": {"Bucket": "data", "Key": "rows.jsonl"},
                },
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                    "StartAt": "Go",
                    "States": {"Go": {"Type": "Pass", "End": True}},
                },
                "ResultWriter": {
                    "Resource": "arn:aws:states:::s3:putObject",
                    "Parameters": {"Bucket": "data", "Prefix": "out"},
                    "WriterConfig": {"Transformation": "COMPACT", "OutputType": "JSONL"},
                },
                "End": True,
            }
        },
    }


def rows(lines: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="asl-benchmark-"))
    with (folder / "rows.jsonl").open("wb") as file:
        for n in range(lines):
            row = {"id": n, "name": f"customer {n}", "amount": n * 1.25, "tags": ["a", "b"]}
            file.write(orjson.dumps(row) + b"\n")
    return folder


def distributed(lines: int) -> Callable[[], Sides]:
    def prepare() -> Sides:
        compiled, folder = program(distributed_document()), rows(lines)
        buckets, registry = bind_buckets({"data": folder}), AgentRegistry()

        def by_hand() -> None:
            with (
                (folder / "rows.jsonl").open("rb") as source,
                (folder / "out.jsonl").open("wb") as results,
            ):
                for line in source:
                    results.write(orjson.dumps(orjson.loads(line)) + b"\n")

        def ours() -> None:
            work = execute(compiled, {}, registry.find, CLOCK, buckets=buckets)
            assert drive(work, CLOCK).ok

        return by_hand, ours, lines

    return prepare


PEAK = """
import json, re, sys
import asl

def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1]) * 1024

asl.run({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
before = peak()
assert asl.run(json.loads(sys.argv[1]), buckets={"data": sys.argv[2]}).ok
print(peak() - before)
"""
"""Prints how many bytes a distributed Map needs beyond what the interpreter needs (on Linux)."""
MEMORY = 200_000_000


def memory(lines: int) -> Callable[[], Sides]:
    def prepare() -> Sides:
        document, folder = json.dumps(distributed_document()), rows(lines)

        def ours() -> int:
            command = [sys.executable, "-c", PEAK, document, str(folder)]
            return int(subprocess.run(command, check=True, capture_output=True).stdout)

        return lambda: MEMORY, ours, 1

    return prepare


# Compiling, against a fixed price of 5 us a state


def compiling() -> Sides:
    document = chain_document(100, "$.f{}")

    def by_hand() -> None:
        # The unit is one microsecond a state, spun by hand, so that the ratio reads as us a state.
        import time

        until = time.perf_counter() + 100e-6
        while time.perf_counter() < until:
            pass

    return by_hand, lambda: program(document), 100


def times(count: int, action: Callable[[], Any]) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(count):
            action()

    return repeated


WORKLOADS = (
    Workload("W1", "chain of 100 Pass states, each writes one field", 2.2, chain),
    Workload("J1", "chain of 100 JSONata Pass states; vs bare evaluation", 1.3, queried),
    Workload("W2", "counting loop Choice + Pass, 10,000 rounds", 13, counting),
    Workload(
        "W3a",
        "Map, 10,000 items, agent returns at once; vs gather",
        0.75,
        lambda: mapped(0, echo, 0),
    ),
    Workload(
        "W3b", "the same, MaxConcurrency 10; vs a pool of 10", 8, lambda: mapped(10, echo, 10)
    ),
    Workload(
        "W3e", "Map, 10,000 items, agent sleeps 10 ms; vs gather", 1.2, lambda: mapped(0, nap, 0)
    ),
    Workload("W4", "Parallel, 50 branches of 5 Pass states", 3, parallel),
    Workload("W5", "five states, one agent call, one after another", 6.2, short),
    Workload("W5c", "1,000 such executions at once, agent sleeps 10 ms", 1.6, at_once),
    Workload(
        "B1",
        "agent calls of 2 ms with budget, guardrails and tools; vs the calls",
        1.25,
        lambda: guarded(0.002, 1, blocks=True),
    ),
    Workload(
        "B2",
        "1,000 agent calls of 10 ms at once; vs gather",
        1.3,
        lambda: guarded(0.01, 0, blocks=False),
    ),
    Workload("heap", "bytes of an execution that waits in its agent", 2.2, heap, gives="B"),
    Workload(
        "W7",
        "asl run of a hello-world, whole process; vs python -c pass",
        14,
        command_line("run", "DOC"),
    ),
    Workload("W7c", "the same with asl check", 11.5, command_line("check", "DOC")),
    Workload("W7h", "the same with asl --help", 6.5, command_line("--help")),
    Workload("W8-10k", "W1 over 10 kB, nested writes", 2.5, large(10_000)),
    Workload("W8-1M", "W1 over 1 MB, nested writes", 2.5, large(1_000_000)),
    Workload("W8-10M", "W1 over 10 MB, nested writes", 2.5, large(10_000_000)),
    Workload(
        "W9",
        "distributed Map over 1,000,000 JSON Lines, results to a file; vs a loop",
        2,
        distributed(1_000_000),
        quick=distributed(200_000),
    ),
    Workload(
        "W9-peak",
        "bytes it needs at most; vs 200 MB",
        1,
        memory(1_000_000),
        quick=memory(200_000),
        gives="B",
    ),
    Workload("compile", "us a state", 5, compiling),
)
