"""`ItemBatcher`: several items for one iteration (Specification 6.3)."""

from collections.abc import Iterator

from asl.core.values import Json, measure

__all__ = ["batches"]


def batches(
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
