"""Parse queries: common ones by `fast_parser`, all others by the bounded parser of the library."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from asl.core.errors import ExpressionFault
from asl.expr.jsonata import fast_parser
from asl.expr.jsonata.analysis import ParsedTree, bound_names, references
from asl.expr.jsonata.context import context_reads
from asl.expr.jsonata.faults import fault, places
from asl.expr.jsonata.patterns import BadPattern, Pattern

CODE = "V-JSONATA-01"

LONGEST = 65_536
"""Characters of a source."""

DEEPEST = 100
"""Brackets that may be open at once."""

_TOKEN = re.compile(
    r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|["']|`[^`]*`|/\*.*?\*/|[][(){}]""", re.DOTALL
)
_BRACKET = re.compile(r"[][(){}]")


def parse(source: str, java: bool = False) -> ParsedTree:
    """Return the tree of a source with its analysis.

    Args:
        source: The source.
        java: As in `QueryLimits`: no operators of JSONata 2.1, and Java's patterns.

    Raises:
        ExpressionFault: V-JSONATA-01, with the offset of the syntax error.
        RecursionError: Operators are nested too deeply for the stack.
    """
    check_length(source)
    return fast_parser.parse_common(source) or parse_with_library(source, java)


def check_length(source: str) -> None:
    """Raise ExpressionFault(V-JSONATA-01) for a source that is too long."""
    if len(source) > LONGEST:
        raise ExpressionFault(f"the expression is longer than {LONGEST} characters", LONGEST, CODE)


def parse_with_library(source: str, java: bool = False) -> ParsedTree:
    """Parse any source with the library; raises as `parse` does."""
    from asl.expr.jsonata import library

    _check_depth(source)
    parser = _idle(java)
    try:
        tree = parser.parse(source, partial(_pattern, java))
    except library.JException as error:
        offset = error.location if error.location >= 0 else _reached(parser)
        escape = error.error == "S0301" and error.current is not None
        code = "S0103" if escape else error.error  # the library confuses the two
        token = source[offset : offset + 20] if error.current is None else error.current
        fields = dict(zip(places(code), (token, error.expected), strict=False))
        raise _refused(str(fault(code, **fields)), min(offset, len(source))) from None
    except BadPattern as error:
        raise _refused(str(error), _reached(parser)) from None
    except KeyError as error:
        operator = error.args[0]  # `??` is a `?` where an operand is due, for who knows no `??`
        code = "S0211" if operator in _NEWER else "S0204"
        message = str(fault(code, token=operator[-1]))
        raise _refused(message, _reached(parser) - 1) from None
    except RecursionError:
        raise
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        # The library's parser trips over some broken texts instead of naming what is wrong.
        comment = source.rfind("/*")
        if isinstance(error, IndexError) and comment > source.rfind("*/"):
            raise _refused(str(fault("S0106")), comment) from None
        named = (code for code, text in library.MESSAGES.items() if text == str(error))
        raise _refused(str(fault(next(named, "S0207"))), _reached(parser)) from None
    _keep(parser, java)
    return ParsedTree(tree, bound_names(tree), references(tree), context_reads(tree))


_NEWER = ("?:", "??")
"""The operators that JSONata 2.1 added."""

_IDLE: dict[bool, list[Any]] = {True: [], False: []}
"""Parsers that have read their source, without and with the newer operators: their table of
operators costs more than most sources."""


def _idle(java: bool) -> Any:
    try:
        return _IDLE[java].pop()
    except IndexError:  # asked first, another thread might take it in between
        from asl.expr.jsonata import library

        parser = library.Parser()
        for operator in _NEWER if java else ():
            del parser.symbol_table[operator]
        return parser


def _keep(parser: Any, java: bool) -> None:
    """Store a parser for reuse."""
    parser.ancestor_label, parser.ancestor_index, parser.ancestry = 0, 0, []
    _IDLE[java].append(parser)


def too_deep(offset: int) -> ExpressionFault:
    """Return the error of an expression that nests too deeply."""
    return _refused("the expression is nested too deeply", offset)


def _refused(message: str, offset: int) -> ExpressionFault:
    return ExpressionFault(message, offset, CODE)


def _pattern(java: bool, source: str, flags: Any) -> Pattern:
    return Pattern(source, flags.case_insensitive, flags.multiline, java)


def _reached(parser: Any) -> int:
    """Return the position of the tokenizer."""
    position: int = parser.lexer.position
    end: int = parser.lexer.length
    return min(position, end)


def _tokens(source: str) -> Iterator[re.Match[str]]:
    """Yield texts, comments and brackets; after an unclosed quote, brackets only."""
    for match in _TOKEN.finditer(source):
        if match[0] in ("'", '"'):  # the next one would be looked for up to the end again
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
