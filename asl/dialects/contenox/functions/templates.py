"""The grammar of templates: a subset of Go's template language, and macros.

A template is text with actions between double braces. An action shows a value, or is a macro:

    {{.task.field}} {{. | toJson}} {{"text"}} {{if eq .a "x"}}..{{else}}..{{end}}
    {{range .list}}..{{end}} {{with .field}}..{{end}} {{/* comment */}} {{- .trimmed -}}
    {{var:name|text}} {{now:2006-01-02}} {{date}} {{chain:id}} {{edge_count:a->b}}

It has no variables, definitions and methods.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.contenox.functions.sprig import SPRIG

__all__ = [
    "FUNCTIONS",
    "MACROS",
    "Macro",
    "Node",
    "ShowAction",
    "TemplateBlock",
    "TemplateCall",
    "TemplateConstant",
    "TemplateField",
    "find_macros",
    "parse",
    "variable_names",
]

CODE: Final = "CX-TEMPLATE"
MAX_DEPTH: Final = 32
"""Levels of nested blocks and parentheses."""
MAX_CALLS: Final = 100
"""Levels of nested calls, including piped ones."""
MACROS: Final = frozenset(
    ("var", "now", "date", "chain", "edge_count", "host", "toolservice", "tools", "hookservice")
)
FUNCTIONS: Final[dict[str, tuple[int, int]]] = {
    "eq": (2, 9),
    "ne": (2, 2),
    "lt": (2, 2),
    "le": (2, 2),
    "gt": (2, 2),
    "ge": (2, 2),
    "and": (1, 9),
    "or": (1, 9),
    "not": (1, 1),
    "len": (1, 1),
    "index": (2, 9),
    "print": (0, 9),
    "printf": (1, 9),
    "default": (2, 2),
    "coalesce": (1, 9),
    "empty": (1, 1),
    "ternary": (3, 3),
    "toJson": (1, 1),
    "trunc": (2, 2),
    "upper": (1, 1),
    "lower": (1, 1),
    "trim": (1, 1),
    "quote": (1, 1),
    "join": (2, 2),
    "contains": (2, 2),
    "hasPrefix": (2, 2),
    "hasSuffix": (2, 2),
    "kindIs": (2, 2),
    "has": (2, 2),
    "dict": (0, 99),
    **{name: (least, most) for name, (_, least, most) in SPRIG.items()},
}
"""The functions, with their minimum and maximum numbers of arguments."""


@dataclass(frozen=True, slots=True)
class TemplateConstant:
    """A literal value."""

    value: Json


@dataclass(frozen=True, slots=True)
class TemplateField:
    """`.a.b`, or `$.a.b` for the root instead of the current value."""

    names: tuple[str, ...]
    root: bool = False


@dataclass(frozen=True, slots=True)
class TemplateCall:
    """A function and its arguments."""

    name: str
    arguments: tuple["Expression", ...]
    depth: int = 1
    """Levels of nested calls."""


Expression: TypeAlias = TemplateConstant | TemplateField | TemplateCall


@dataclass(frozen=True, slots=True)
class ShowAction:
    """An action that shows a value."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Macro:
    """`{{name:payload}}`; `written` is its text."""

    name: str
    payload: str
    written: str

    @property
    def needed(self) -> bool:
        """Whether it is a value of the caller without an alternative text."""
        others = self.payload.split("|")[1:]
        return self.name == "var" and all(each.strip().startswith("var:") for each in others)


@dataclass(frozen=True, slots=True)
class TemplateBlock:
    """`if`, `with` or `range` with its body and its `else` part."""

    kind: str
    value: Expression
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


Node: TypeAlias = str | ShowAction | Macro | TemplateBlock
Tokens: TypeAlias = deque[tuple[str, str]]
"""The remaining tokens of an action, each with its kind."""

_ACTION: Final = re.compile(
    r"\{\{(?P<left>-(?=[ \t\r\n]))?"
    r"(?:\s*/\*.*?\*/\s*|(?P<body>(?:[^\"`{}]|\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`)*?))"
    r"(?P<right>(?<=[ \t\r\n])-)?\}\}",
    re.DOTALL,
)
_MACRO: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::(.*))?", re.DOTALL)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`)"
    r"|(?P<number>[-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?![\w.]))"
    r"|(?P<field>\$?(?:\.[^\W\d]\w*)+|\$(?!\w)|\.(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*)|(?P<mark>[()|]))"
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "nil": None}
_OPENING: Final = ("if", "with", "range")


def parse_macro(body: str, written: str) -> Macro | None:
    """Return the macro between braces, None for anything else."""
    match = _MACRO.fullmatch(body)
    if match is None or match[1] not in MACROS:
        return None
    return Macro(match[1], (match[2] or "").strip(), written)


_BRACES: Final = re.compile(r"\{\{([^{}]*)\}\}")


def find_macros(text: str) -> Sequence[tuple[int, int, Macro]]:
    """Return the macros of a text that is no template, with their starts and ends."""
    return _find_macros(text) if "{{" in text else ()


@lru_cache(maxsize=512)
def _find_macros(text: str) -> tuple[tuple[int, int, Macro], ...]:
    return tuple(
        (match.start(), match.end(), found)
        for match in _BRACES.finditer(text)
        if (found := parse_macro(match[1], match[0])) is not None
    )


@lru_cache(maxsize=512)
def parse(text: str) -> tuple[Node, ...]:
    """Parse a template.

    Raises:
        ExpressionFault: CX-TEMPLATE for a malformed template.
    """
    return _Parser(text).template()


def variable_names(nodes: tuple[Node, ...]) -> Iterator[str]:
    """Yield the variables of a template outside of `with` and `range`."""
    for node in nodes:
        if isinstance(node, ShowAction):
            yield from _expression_names(node.value)
        elif isinstance(node, TemplateBlock):
            yield from _expression_names(node.value)
            if node.kind == "if":
                yield from variable_names(node.body)
            yield from variable_names(node.otherwise)


def _expression_names(value: Expression) -> Iterator[str]:
    if isinstance(value, TemplateField) and value.names:
        yield value.names[0]
    elif isinstance(value, TemplateCall):
        for each in value.arguments:
            yield from _expression_names(each)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.trimming = False

    def fault(self, message: str, at: int, hint: str | None = None) -> ExpressionFault:
        hint = hint or "use fields, if, with, range, else, end and the functions of the dialect"
        return ExpressionFault(message, at, CODE, hint)

    def template(self) -> tuple[Node, ...]:
        nodes, closing, at = self.nodes()
        if closing is not None:
            message = f"{{{{{closing}}}}} closes no block"
            raise self.fault(message, at, "remove it, or open a block with if, with or range")
        return nodes

    def nodes(self) -> tuple[tuple[Node, ...], str | None, int]:
        """Read up to the end, or to an `end` or `else`: return the nodes, that action and its
        offset.
        """
        found: list[Node] = []
        while True:
            start = self.text.find("{{", self.at)
            literal = self.text[self.at : start if start >= 0 else len(self.text)]
            if self.trimming:
                literal = literal.lstrip(" \t\r\n")
            if start < 0:
                self.at = len(self.text)
                found += [literal] if literal else []
                return tuple(found), None, self.at
            match = _ACTION.match(self.text, start)
            if match is None:
                hint = 'close it with }}, or write {{"{{"}} for literal braces'
                raise self.fault("this action is not closed, or contains a brace", start, hint)
            if match["left"]:
                literal = literal.rstrip(" \t\r\n")
            found += [literal] if literal else []
            self.trimming, self.at = match["right"] is not None, match.end()
            body = match["body"]
            if body is None:
                continue
            word = body.split(None, 1)[0] if body.strip() else ""
            if word in ("end", "else"):
                return tuple(found), body.strip(), start
            found.append(self.action(body, word, match))

    def action(self, body: str, word: str, match: re.Match[str]) -> Node:
        named = parse_macro(body, match[0])
        if named is not None:
            return named
        if word in _OPENING:
            return self.block(word, body.split(None, 1)[1:], match.start("body"))
        return ShowAction(self.expression(body, match.start("body")))

    def block(self, kind: str, rest: list[str], at: int) -> TemplateBlock:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"blocks are nested deeper than {MAX_DEPTH} levels"
            raise self.fault(message, at, "close them with {{end}}, or compute a part in a task")
        value = self.expression(rest[0] if rest else "", at)
        body, closing, place = self.nodes()
        otherwise: tuple[Node, ...] = ()
        if closing is not None and closing.startswith("else"):
            more = closing[4:].split(None, 1)
            if more and more[0] in ("if", "with") and more[0] == kind:
                otherwise = (self.block(kind, more[1:], place),)
                self.depth -= 1
                return TemplateBlock(kind, value, body, otherwise)
            if more:
                raise self.fault(f"{{{{{closing}}}}} is not supported", place)
            otherwise, closing, place = self.nodes()
        if closing != "end":
            message = f"{{{{{kind}}}}} is not closed by {{{{end}}}}"
            raise self.fault(message, place, "add {{end}} after its content")
        self.depth -= 1
        return TemplateBlock(kind, value, body, otherwise)

    def expression(self, body: str, at: int) -> Expression:
        tokens = deque(self.tokens(body, at))
        value = self.pipeline(tokens, at, 0)
        if tokens:
            raise self.fault(f"unexpected {tokens[0][1]!r}", at)
        return value

    def tokens(self, body: str, at: int) -> Iterator[tuple[str, str]]:
        place, end = 0, len(body.rstrip())
        while place < end:
            match = _TOKEN.match(body, place)
            if match is None or match.lastgroup is None:
                hint = "templates have no variables; use the field" if "$" in body else None
                raise self.fault(f"{body[place:end][:40]!r} is not supported", at, hint)
            yield match.lastgroup, match[match.lastgroup]
            place = match.end()

    def pipeline(self, tokens: Tokens, at: int, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            message = f"parentheses are nested deeper than {MAX_DEPTH} levels"
            raise self.fault(message, at, "compute a part in a task")
        value: Expression | None = None
        while True:
            value = self.command(tokens, value, at, depth)
            if not tokens or tokens[0] != ("mark", "|"):
                return value
            tokens.popleft()

    def command(self, tokens: Tokens, piped: Expression | None, at: int, depth: int) -> Expression:
        """Read a value, or a function with its arguments; a piped value is the last one."""
        operands: list[Expression] = []
        name: str | None = None
        while tokens and tokens[0] not in (("mark", "|"), ("mark", ")")):
            kind, text = tokens[0]
            if kind == "word" and text not in _WORDS:
                if operands or name is not None:
                    raise self.fault(f"{text!r} is a function; put its call in parentheses", at)
                name = text
                tokens.popleft()
                continue
            operands.append(self.operand(tokens, at, depth))
        if piped is not None:
            operands.append(piped)
        if name is not None:
            return self.call(name, tuple(operands), at)
        if len(operands) != 1 or piped is not None:
            what = "the action is empty" if not operands else "only functions take arguments"
            hint = "write a value, such as {{.input}}" if not operands else "write the field alone"
            raise self.fault(what, at, hint)
        return operands[0]

    def call(self, name: str, arguments: tuple[Expression, ...], at: int) -> TemplateCall:
        if name not in FUNCTIONS:
            near = None if arguments else f"write {{{{.{name}}}}} for a field"
            close = [each for each in FUNCTIONS if abs(len(each) - len(name)) < 2]
            hint = did_you_mean(name, close) or near or f"the rule {CODE} lists the functions"
            raise self.fault(f"there is no function {name!r}", at, hint)
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            many = str(least) if least == most else f"{least} to {most}"
            message = f"{name!r} takes {many} arguments, not {len(arguments)}"
            raise self.fault(message, at, "change the number of arguments")
        depth = 1 + max(
            (each.depth for each in arguments if isinstance(each, TemplateCall)), default=0
        )
        if depth > MAX_CALLS:
            message = f"calls are nested deeper than {MAX_CALLS} levels"
            raise self.fault(message, at, "compute a part in a task")
        return TemplateCall(name, arguments, depth)

    def operand(self, tokens: Tokens, at: int, depth: int) -> Expression:
        kind, text = tokens.popleft()
        if kind == "string":
            return TemplateConstant(_unquote(text))
        if kind == "number":
            return TemplateConstant(float(text) if "." in text else int(text))
        if kind == "word":
            return TemplateConstant(_WORDS[text])
        if kind == "field":
            names = tuple(each for each in text.removeprefix("$").split(".") if each)
            return TemplateField(names, text.startswith("$"))
        value = self.pipeline(tokens, at, depth + 1)
        if not tokens:
            raise self.fault("a parenthesis is not closed", at)
        tokens.popleft()
        return value


def _unquote(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]

    def meant(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] in "ux" and len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(meant, text[1:-1])
