"""The looks of texts and values in which state machines may be defined."""

import re
from typing import Final

from asl.core.document import Document
from asl.core.source import Source

__all__ = ["RESOURCES", "SERVERLESS", "TERRAFORM", "may_be_template"]

RESOURCES: Final = r"""^["']?Resources["']?[ \t]*:"""
SERVERLESS: Final = r"^stepFunctions[ \t]*:"
TERRAFORM: Final = r'^[ \t]*resource[ \t]+"aws_sfn_state_machine"'
_ANY: Final = "|".join((RESOURCES, SERVERLESS, TERRAFORM))


def may_be_template(found: Document | Source) -> bool:
    """Whether state machines may be defined in what is read, which is not looked at closely."""
    if isinstance(found, Document):
        return "Resources" in found.value
    text = found.text or ""
    if found.format == "json":
        return '"Resources"' in text
    return (found.name or "").endswith(".tf") or re.search(_ANY, text, re.MULTILINE) is not None
