"""The structure of a workflow: its keys and the types of their values."""

import os
from typing import Final

from asl.dialects.schema import Codes, DialectSchema

__all__ = ["CODES", "SCHEMA"]

CODES: Final = Codes("CM-SCHEMA", "CM-NEAR-MISS", "CM-UNKNOWN-KEY")
SCHEMA: Final = DialectSchema(os.path.join(os.path.dirname(__file__), "schema.json"), CODES)
