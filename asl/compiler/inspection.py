"""The data of a state after each stage, as AWS's TestState shows it (AWS, recorded).

A stage is evaluated as in the state itself: by a compiler of the same state with only the fields up
to this one. Stages have the names of `inspectionData`. The error of a stage (StateError) ends the
stages.
"""

from collections.abc import Iterator

from asl.compiler.state import StateCompiler
from asl.core.values import Json
from asl.states import STATE_TYPES
from asl.states.effects import StateFrame
from asl.states.item_sources import compile_batcher, compile_source, iteration_input
from asl.states.iteration import compile_items, compile_tolerance, is_distributed
from asl.states.numbers import compile_number
from asl.states.schemas import known_fields

__all__ = ["input_stages", "map_items", "result_stages", "tolerates"]


def input_stages(
    compiler: StateCompiler, data: Json, frame: StateFrame, read: bool
) -> Iterator[tuple[str, Json]]:
    """Yield the stages from the raw input to the work of the state.

    Args:
        compiler: Compiler of the state.
        data: The raw input.
        frame: The machine.
        read: Whether the content for an `ItemReader` is configured.
    """
    kind = STATE_TYPES[compiler.own.type]
    fields = known_fields(f"states:{kind.name}")
    if "ItemProcessor" in kind.machines:
        yield from map_stages(compiler, data, frame, read)
    elif kind.machines:
        return
    elif compiler.jsonata:
        if "Arguments" in fields:
            yield "afterArguments", compiler.payload()(data, frame)
    elif "Result" not in compiler.state:
        yield "afterInputPath", compiler.input()(data, frame)
        if "Parameters" in fields:
            yield "afterParameters", compiler.payload()(data, frame)


def result_stages(
    compiler: StateCompiler, data: Json, result: Json, frame: StateFrame
) -> Iterator[tuple[str, Json]]:
    """Yield the stages from the raw result to the output."""
    kind = STATE_TYPES[compiler.own.type]
    if (kind.effect and not kind.machines) or "Result" in compiler.state:
        yield "result", result
    if compiler.jsonata or "ResultPath" not in known_fields(f"states:{kind.name}"):
        return
    for stage, *fields in (
        ("afterResultSelector", "ResultSelector"),
        ("afterResultPath", "ResultSelector", "ResultPath"),
    ):
        finish = compiler.only(*fields).finish()
        yield stage, result if finish is None else finish(data, result, frame)


def map_items(compiler: StateCompiler, data: Json, frame: StateFrame) -> list[tuple[Json, str]]:
    """Return the items with their sources.

    Raises:
        StateError: There are none.
    """
    effective = compiler.input()(data, frame)
    if not is_distributed(compiler.state, _processor(compiler)):
        return [(item, "") for item in compile_items(compiler)(effective, frame)]
    source = compile_source(compiler)(effective, frame)
    try:
        return [(item, source.name) for item in source]
    finally:
        source.close()


def map_stages(
    compiler: StateCompiler, data: Json, frame: StateFrame, read: bool
) -> Iterator[tuple[str, Json]]:
    """Yield the stages of a Map; *read* as for `input_stages`."""
    effective = compiler.input()(data, frame)
    if not compiler.jsonata:
        yield "afterInputPath", effective
    if read or "ItemReader" not in compiler.state:
        yield from _items(compiler, data, effective, frame)
    numerals = compiler.profile.aws
    limit = compile_number(compiler, "MaxConcurrency", 0, numerals=numerals)
    yield "maxConcurrency", 0 if limit is None else int(limit(effective, frame))
    count = compile_number(compiler, "ToleratedFailureCount", 0, numerals=numerals)
    if count is not None:
        yield "toleratedFailureCount", int(count(effective, frame))
    share = compile_number(
        compiler, "ToleratedFailurePercentage", 0, 100, whole=False, numerals=numerals
    )
    if share is not None:
        yield "toleratedFailurePercentage", float(share(effective, frame))


def _items(
    compiler: StateCompiler, data: Json, effective: Json, frame: StateFrame
) -> Iterator[tuple[str, Json]]:
    state = compiler.state
    items = map_items(compiler, data, frame)
    if "ItemReader" not in state:
        if not compiler.jsonata:
            yield "afterItemsPath", compile_items(compiler, objects=True)(effective, frame)
    elif "ItemsPointer" in state["ItemReader"].get("ReaderConfig", {}):
        yield "afterItemsPointer", [item for item, _ in items]
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    run = frame.run(
        compiler.machine(_processor(compiler)),
        compiler.name,
        express=False,
        pure=False,
        emits=False,
    )
    inputs = [
        iteration_input(selector, effective, run, index, item, source)
        for index, (item, source) in enumerate(items)
    ]
    if selector is not None:
        yield "afterItemSelector", inputs
    batcher = compile_batcher(compiler)
    if batcher is not None:
        yield "afterItemBatcher", list(batcher(effective, frame)(iter(inputs)))


def _processor(compiler: StateCompiler) -> str:
    return "ItemProcessor" if "ItemProcessor" in compiler.state else "Iterator"


def tolerates(
    compiler: StateCompiler, failures: int, items: int, data: Json, frame: StateFrame
) -> bool:
    """Return whether a Map tolerates so many failed iterations; one without a bound does (AWS,
    recorded).
    """
    tolerance = compile_tolerance(compiler)
    if tolerance is None:
        return True
    return failures <= tolerance(compiler.input()(data, frame), frame)(items)
