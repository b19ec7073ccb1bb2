"""The readers of a distributed Map's data: one function for each `InputType`, one row each.

A reader is pure: it takes an open file and yields items, one after the other and only as they are
asked for. Which files there are, and how one is opened, is the business of `dataset`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from asl.states.items.base import DataFault, DataFormat, Reader
from asl.states.items.csv_file import read_csv
from asl.states.items.json_file import map_entries, read_json
from asl.states.items.lines import read_json_lines
from asl.states.items.parquet_file import read_parquet

__all__ = ["READERS", "DataFault", "DataFormat", "Reader", "map_entries"]

READERS: Mapping[str, Reader] = MappingProxyType(
    {"CSV": read_csv, "JSON": read_json, "JSONL": read_json_lines, "PARQUET": read_parquet}
)
