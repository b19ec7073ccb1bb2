"""Where the items of a distributed Map come from, and what an iteration gets of them."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from asl.core.values import Json, measure
from asl.expr.frame import Evaluate, constant
from asl.states.base import Compiler
from asl.states.effects import DistributedRun, StateFrame
from asl.states.items import map_entries
from asl.states.items.dataset import Dataset
from asl.states.iteration import compile_items
from asl.states.map_data import ItemSource, MapEntry
from asl.states.numbers import NO_BOUND, compile_number

__all__ = ["MakeBatches", "compile_batcher", "compile_source", "iteration_input", "make_batches"]


def make_batches(
    items: Iterator[Json], most: float, most_bytes: float, shared: dict[str, Json]
) -> Iterator[Json]:
    """Yield the inputs of iterations: `{**shared, "Items": [...]}`, lazily.

    None has more than *most* items, nor more than *most_bytes* of compact JSON; an item that is
    larger alone is a batch by itself.
    """
    limit = int(min(most_bytes, 1 << 53))
    empty = measure({**shared, "Items": []}, limit) - 1  # the first item has no comma
    batch: list[Json] = []
    size = empty
    for item in items:
        added = measure(item, limit) + 1 if most_bytes < 1 << 53 else 0
        if batch and size + added > limit:
            yield {**shared, "Items": batch}
            batch, size = [], empty
        batch.append(item)
        size += added
        if len(batch) >= most:
            yield {**shared, "Items": batch}
            batch, size = [], empty
    if batch:
        yield {**shared, "Items": batch}


MakeBatches: TypeAlias = Callable[[Iterator[Json]], Iterator[Json]]
"""Inputs of single items to inputs of batches."""


def compile_source(compiler: Compiler) -> Callable[[Json, StateFrame], ItemSource]:
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
        return iter(items) if type(items) is list else map_entries(items)

    def close(self) -> None:
        """Nothing is open."""


def _state_data(compiler: Compiler) -> Callable[[Json, StateFrame], ItemSource]:
    items_of = compile_items(compiler, objects=True)
    return lambda effective, frame: StateData(items_of(effective, frame))


def _reader(compiler: Compiler) -> Callable[[Json, StateFrame], ItemSource]:
    reader, profile = compiler.state["ItemReader"], compiler.profile
    arguments = compiler.compiler_at("ItemReader").payload()
    config = compiler.compiler_at("ItemReader", "ReaderConfig")
    # A path may lead to a negative number: the run begins, and its reader fails (recorded).
    least = 0 if compiler.jsonata else -NO_BOUND
    most = compile_number(config, "MaxItems", least, numerals=profile.aws)

    def source(effective: Json, frame: StateFrame) -> ItemSource:
        return Dataset(
            reader,
            arguments(effective, frame),
            frame.effects.runtime.bucket,
            int(most(effective, frame)) if most else 0,
            profile.max_payload,
            profile.aws,
            frame.execution.count_received,
        )

    return source


def compile_batcher(compiler: Compiler) -> Callable[[Json, StateFrame], MakeBatches] | None:
    """Compile `ItemBatcher`: effective input to what makes batches; None where there is none."""
    if "ItemBatcher" not in compiler.state:
        return None
    inner, numerals = compiler.compiler_at("ItemBatcher"), compiler.profile.aws
    most = compile_number(inner, "MaxItemsPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    size = compile_number(inner, "MaxInputBytesPerBatch", 1, numerals=numerals) or constant(
        NO_BOUND
    )
    shared = inner.template("BatchInput")

    def batched(effective: Json, frame: StateFrame) -> MakeBatches:
        items, width = most(effective, frame), size(effective, frame)
        common = {} if shared is None else {"BatchInput": shared(effective, frame)}
        return lambda inputs: make_batches(inputs, items, width, common)

    return batched


def iteration_input(
    selector: Evaluate | None,
    effective: Json,
    run: DistributedRun,
    index: int,
    item: Json,
    source: str,
) -> Json:
    """Return the input of the iteration of one item."""
    if selector is not None:
        return selector(effective, run.item_selector_frame(index, item, source))
    return item.input if type(item) is MapEntry else item
