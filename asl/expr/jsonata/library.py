"""Parse queries with the library jsonata-python, within limits.

The evaluator is our own (see docs/notes/jsonata.md). This module is imported for the first query
that `parser` does not parse itself, and for the first message of an error.
"""

import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

_LIMIT = sys.getrecursionlimit()

from jsonata.jexception import JException  # noqa: E402
from jsonata.parser import Parser  # noqa: E402

sys.setrecursionlimit(_LIMIT)  # the import raises it, for the whole process

from asl.expr.jsonata.analysis import (  # noqa: E402
    ParsedTree,
    bound_names,
    context_reads,
    references,
)
from asl.expr.jsonata.faults import fault, places  # noqa: E402
from asl.expr.jsonata.parser import syntax_error, too_deep  # noqa: E402
from asl.expr.jsonata.patterns import BadPattern, QueryPattern  # noqa: E402

__all__ = ["MESSAGES", "parse_with_library"]

MESSAGES: dict[str, str] = JException.error_codes
"""The library's messages by code."""

DEEPEST = 100
"""Levels of nested brackets."""

_TOKEN = re.compile(
    r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|["']|`[^`]*`|/\*.*?\*/|[][(){}]""", re.DOTALL
)
_BRACKET = re.compile(r"[][(){}]")


def parse_with_library(source: str, java: bool = False) -> ParsedTree:
    """Parse any source with the library.

    Args:
        source: The source.
        java: As in `parser.parse`.

    Raises:
        ExpressionFault: V-JSONATA-01, with the offset of the syntax error.
        RecursionError: Operators are nested too deeply for the stack.
    """
    _check_depth(source)
    parser = _idle(java)
    try:
        tree = parser.parse(source, partial(_pattern, java))
    except JException as error:
        offset = error.location if error.location >= 0 else _reached(parser)
        escape = error.error == "S0301" and error.current is not None
        code = "S0103" if escape else error.error  # the library confuses the two
        token = source[offset : offset + 20] if error.current is None else error.current
        fields = dict(zip(places(code), (token, error.expected), strict=False))
        raise syntax_error(str(fault(code, **fields)), min(offset, len(source))) from None
    except BadPattern as error:
        raise syntax_error(str(error), _reached(parser)) from None
    except KeyError as error:
        operator = error.args[0]  # without `??` the second `?` is an operand
        code = "S0211" if operator in _NEWER else "S0204"
        message = str(fault(code, token=operator[-1]))
        raise syntax_error(message, _reached(parser) - 1) from None
    except RecursionError:
        raise
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        # The library's parser fails on some malformed sources without naming the error.
        comment = source.rfind("/*")
        if isinstance(error, IndexError) and comment > source.rfind("*/"):
            raise syntax_error(str(fault("S0106")), comment) from None
        named = (code for code, text in MESSAGES.items() if text == str(error))
        raise syntax_error(str(fault(next(named, "S0207"))), _reached(parser)) from None
    _release(parser, java)
    return ParsedTree(tree, bound_names(tree), references(tree), context_reads(tree))


_NEWER = ("?:", "??")
"""The operators that JSONata 2.1 added."""

_IDLE: dict[bool, list[Any]] = {True: [], False: []}
"""Parsers for reuse, without and with the newer operators: their table of operators costs more than
parsing most sources.
"""


def _idle(java: bool) -> Any:
    try:
        return _IDLE[java].pop()
    except IndexError:  # not tested before: another thread might take the parser
        parser = Parser()
        for operator in _NEWER if java else ():
            del parser.symbol_table[operator]
        return parser


def _release(parser: Any, java: bool) -> None:
    """Store a parser for reuse."""
    parser.ancestor_label, parser.ancestor_index, parser.ancestry = 0, 0, []
    _IDLE[java].append(parser)


def _pattern(java: bool, source: str, flags: Any) -> QueryPattern:
    return QueryPattern(source, flags.case_insensitive, flags.multiline, java)


def _reached(parser: Any) -> int:
    """Return the position of the tokenizer."""
    position: int = parser.lexer.position
    end: int = parser.lexer.length
    return min(position, end)


def _tokens(source: str) -> Iterator[re.Match[str]]:
    """Yield texts, comments and brackets; after an unclosed quote, brackets only."""
    for match in _TOKEN.finditer(source):
        if match[0] in ("'", '"'):  # every further search would read up to the end again
            yield from _BRACKET.finditer(source, match.end())
            return
        yield match


def _check_depth(source: str) -> None:
    depth = 0
    for match in _tokens(source):
        token = match[0]
        depth += (token in "([{") - (token in ")]}")
        if depth > DEEPEST:
            raise too_deep(match.start())
