"""What a state does to its data, stage by stage, as AWS's TestState shows it (AWS, recorded).

A stage is evaluated as the state itself evaluates it: by a compiler of the same state that has no
more than the fields up to this one. Each has the name that it has in `inspectionData`. The error of
a stage (StateError) ends the stages.
"""

from collections.abc import Iterator

from asl.compiler.map_stages import map_stages
from asl.compiler.state import StateCompiler
from asl.core.values import Json
from asl.states import STATE_TYPES
from asl.states.effects import Frame
from asl.states.schemas import known_fields

__all__ = ["input_stages", "result_stages"]


def input_stages(
    compiler: StateCompiler, data: Json, frame: Frame, read: bool
) -> Iterator[tuple[str, Json]]:
    """Yield what becomes of the raw input before the state does its work.

    *read* says that what an `ItemReader` reads is there.
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
    compiler: StateCompiler, data: Json, result: Json, frame: Frame
) -> Iterator[tuple[str, Json]]:
    """Yield what becomes of a raw result, given the raw input."""
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
