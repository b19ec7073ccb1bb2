"""Where the items of a distributed Map come from, and what an iteration gets of them."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from asl.core.values import Json
from asl.expr.frame import Evaluate, constant
from asl.states.base import Compiler
from asl.states.batches import batches
from asl.states.effects import DistributedRun, Frame, ItemSource, MapEntry
from asl.states.items import members
from asl.states.items.dataset import Dataset
from asl.states.iteration import compile_items
from asl.states.numbers import NO_BOUND, number

__all__ = ["Batched", "compile_batcher", "compile_source", "input_of"]

Batched: TypeAlias = Callable[[Iterator[Json]], Iterator[Json]]
"""Inputs of single items to inputs of batches."""


def compile_source(compiler: Compiler) -> Callable[[Json, Frame], ItemSource]:
    """Compile where the items of a run come from, by the effective input."""
    return _reader(compiler) if "ItemReader" in compiler.state else _state_data(compiler)


class StateData:
    """The items that stand in the data of the state: an array or an object."""

    name = "STATE_DATA"

    def __init__(self, items: Json) -> None:
        self.items = items
        self.length: int | None = len(items)

    def __iter__(self) -> Iterator[Json]:
        items = self.items
        return iter(items) if type(items) is list else members(items)

    def close(self) -> None:
        """Nothing is open."""


def _state_data(compiler: Compiler) -> Callable[[Json, Frame], ItemSource]:
    items_of = compile_items(compiler, objects=True)
    return lambda effective, frame: StateData(items_of(effective, frame))


def _reader(compiler: Compiler) -> Callable[[Json, Frame], ItemSource]:
    reader, profile = compiler.state["ItemReader"], compiler.profile
    arguments = compiler.within("ItemReader").payload()
    config = compiler.within("ItemReader", "ReaderConfig")
    # A path may lead to a negative number: the run begins, and its reader fails (recorded).
    least = 0 if compiler.jsonata else -NO_BOUND
    most = number(config, "MaxItems", least, numerals=profile.aws)

    def source(effective: Json, frame: Frame) -> ItemSource:
        return Dataset(
            reader,
            arguments(effective, frame),
            frame.effects.runtime.bucket,
            int(most(effective, frame)) if most else 0,
            profile.max_payload,
            profile.aws,
        )

    return source


def compile_batcher(compiler: Compiler) -> Callable[[Json, Frame], Batched] | None:
    """Compile `ItemBatcher`: effective input to what makes batches; None where there is none."""
    if "ItemBatcher" not in compiler.state:
        return None
    inner, numerals = compiler.within("ItemBatcher"), compiler.profile.aws
    most = number(inner, "MaxItemsPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    size = number(inner, "MaxInputBytesPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    shared = inner.template("BatchInput")

    def batched(effective: Json, frame: Frame) -> Batched:
        items, width = most(effective, frame), size(effective, frame)
        common = {} if shared is None else {"BatchInput": shared(effective, frame)}
        return lambda inputs: batches(inputs, items, width, common)

    return batched


def input_of(
    selector: Evaluate | None,
    effective: Json,
    run: DistributedRun,
    index: int,
    item: Json,
    source: str,
) -> Json:
    """Return the input of the iteration of one item."""
    if selector is not None:
        return selector(effective, run.selected(index, item, source))
    return item.input if type(item) is MapEntry else item
