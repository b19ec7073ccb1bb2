"""The structure of a chain: its keys and the types of their values."""

import os
from typing import Final

from asl.dialects.schema import Codes, DialectSchema

__all__ = ["SCHEMA"]

SCHEMA: Final = DialectSchema(
    os.path.join(os.path.dirname(__file__), "schema.json"),
    Codes("CX-SCHEMA", "CX-NEAR-MISS", "CX-UNKNOWN-KEY"),
)
