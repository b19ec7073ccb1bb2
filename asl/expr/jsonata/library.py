"""The parser and messages of the library jsonata-python.

The evaluator is our own (see docs/notes/jsonata.md). This module is imported for the first query
that `fast_parser` does not parse.
"""

import sys

_LIMIT = sys.getrecursionlimit()

from jsonata.datetimeutils import DateTimeUtils  # noqa: E402
from jsonata.functions import Functions  # noqa: E402
from jsonata.jexception import JException  # noqa: E402
from jsonata.parser import Parser  # noqa: E402
from jsonata.tokenizer import Tokenizer  # noqa: E402

sys.setrecursionlimit(_LIMIT)  # the import raises it, for the whole process

MESSAGES: dict[str, str] = JException.error_codes

__all__ = ["MESSAGES", "DateTimeUtils", "Functions", "JException", "Parser", "Tokenizer"]
