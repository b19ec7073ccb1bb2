"""What is taken out of the answers of tools: what nobody sees in a text."""

from __future__ import annotations

import re
from typing import Final

from asl.core.values import Json

__all__ = ["sanitized"]

ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Controls and characters that nobody sees; line breaks and tabs stay."""


def sanitized(value: Json) -> Json:
    """Return a value whose texts hold nothing that is not seen."""
    if type(value) is str:
        return UNSEEN.sub("", ESCAPES.sub("", value))
    if type(value) is list:
        return [sanitized(each) for each in value]
    if type(value) is dict:
        return {sanitized(key): sanitized(each) for key, each in value.items()}
    return value
