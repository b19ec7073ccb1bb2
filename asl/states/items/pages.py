"""Items read elsewhere: pages of a dataset as JSON, from the place of its buckets."""

from collections.abc import Generator, Iterator, Mapping
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.states.items.dataset import Dataset
from asl.states.map_data import MapEntry

__all__ = ["MAX_PAGES", "read_page", "take_pages"]

MAX_PAGES: Final = 100
"""Maximum number of pages of one dataset."""


def read_page(dataset: Dataset, skip: int, most: int) -> dict[str, Json]:
    """Return items of a dataset.

    Args:
        dataset: The dataset, from its beginning.
        skip: Number of its first items to leave out.
        most: Bytes after which the page ends.

    Returns:
        `groups` of items from one place, `count`, `more` (whether there may be further ones), and
        the `fault` that ends the dataset, if any.
    """
    groups: list[dict[str, Json]] = []
    size = count = 0
    page: dict[str, Json] = {"groups": groups, "more": False}
    try:
        for index, item in enumerate(dataset):
            if index < skip:
                continue
            entry = type(item) is MapEntry
            written = list(item) if entry else item
            size += len(compact(written))
            if count and size > most:
                page["more"] = True
                break
            if not groups or (groups[-1]["name"], groups[-1]["entries"]) != (dataset.name, entry):
                groups.append({"name": dataset.name, "entries": entry, "items": []})
            groups[-1]["items"].append(written)
            count += 1
    except StateError as error:
        page["fault"] = error.cause
    page["count"] = count
    return page


def take_pages(dataset: Dataset, pages: list[dict[str, Json]]) -> None:
    """Let a dataset yield the items of pages."""
    dataset.max_items = 0  # the pages have no more
    dataset.parts = _groups(dataset, pages)


def _groups(
    dataset: Dataset, pages: list[dict[str, Json]]
) -> Generator[Iterator[Json], None, None]:
    for page in pages:
        for group in page["groups"]:
            dataset.name = group["name"]
            yield _items(group)
        if "fault" in page:
            raise StateError("States.ItemReaderFailed", page["fault"])


def _items(group: Mapping[str, Json]) -> Iterator[Json]:
    items = group["items"]
    return (MapEntry(*each) for each in items) if group["entries"] else iter(items)
