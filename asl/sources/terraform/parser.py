"""Parse HCL: the native syntax of Terraform.

It covers blocks, attributes, expressions, templates, heredocs and comments.
"""

import re
from typing import Final

from asl.core.diagnostics import InvalidDocument
from asl.core.document import invalid
from asl.core.source import Fault, Source
from asl.core.values import MAX_DIGITS, Json
from asl.sources.terraform.syntax import (
    ITEM,
    HclAttribute,
    HclBlock,
    HclBody,
    HclCall,
    HclCondition,
    HclFor,
    HclIndex,
    HclLiteral,
    HclName,
    HclNode,
    HclObject,
    HclOperation,
    HclRepeat,
    HclSplat,
    HclTuple,
    TemplateExpression,
)
from asl.sources.text import TrackedText, join_texts

__all__ = ["parse", "parse_template"]

MAX_NESTING: Final = 100
"""Levels of nested expressions, templates and blocks."""

_BLANKS = re.compile(r"(?:[ \t\r]+|(?:#|//)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LINES = re.compile(r"(?:\s+|(?:#|//)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d][\w-]*")
_FUNCTION = re.compile(r"[^\W\d][\w-]*(?:::[^\W\d][\w-]*)*(?=\()")
_FOR = re.compile(r"for(?=\s+[^\W\d])")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OPERATOR = re.compile(r"==|!=|<=|>=|&&|\|\||[-+*/%<>]")
_RANKS = {
    operator: rank
    for rank, operators in enumerate(("||", "&&", "==,!=", "<,>,<=,>=", "+,-", "*,/,%"))
    for operator in operators.split(",")
}
_HEREDOC = re.compile(r"<<(-?)([^\W\d][\w-]*)[ \t]*\r?\n")
_QUOTED = re.compile(r'(?:[^"\\$%\n]+|\$(?!\$?\{)|%(?!%?\{))+')
_BARE = re.compile(r"(?:[^$%]+|\$(?!\$?\{)|%(?!%?\{))+")
_ESCAPE = re.compile(r'\\(?:([nrt"\\])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))')
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_CONSTANTS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_DIGITS = re.compile(r"[0-9]+")
_STOPS = {"if": ("else", "endif"), "for": ("endfor",)}
_MARGIN = re.compile(r"[ \t]*")
_LABEL = re.compile(r'"([^"\\\n]*)"')
_WORD = re.compile(r"[\w.-]+|\S")


def parse(source: Source) -> HclBody:
    """Parse a file; raises InvalidDocument."""
    return _Parser(source).body(closed=False)


def parse_template(source: Source) -> TemplateExpression:
    """Parse a file for `templatefile`; raises InvalidDocument."""
    parser = _Parser(source)
    return TemplateExpression(0, len(parser.text), parser.parts(len(parser.text)))


class _Parser:
    def __init__(self, source: Source) -> None:
        assert source.text is not None
        self.source = source
        self.text = source.text
        self.at = 0
        self.nesting = 0
        self.bracketed = False
        """Whether line ends are blanks, as within brackets."""
        self.margin = 0
        """Blanks at the start of a line that are removed (`<<-`)."""
        self.trimmed = False
        """Whether the next blanks are removed (`~}`)."""
        self.stopped = ""
        """The directive at which `parts` stopped."""

    # Words ---------------------------------------------------------------------------------------

    def error(self, message: str, at: int, hint: str | None = None) -> InvalidDocument:
        return invalid(self.source, [Fault("READ-01", message, at, hint)])

    def expected_error(self, what: str, hint: str | None = None) -> InvalidDocument:
        self.skip()
        word = _WORD.match(self.text, self.at)
        found = repr(word[0]) if word else "the end of the line"
        return self.error(f"{what} is expected, found {found}", self.at, hint)

    def skip(self, lines: bool = False) -> None:
        """Skip blanks and comments, and insignificant line ends."""
        found = (_LINES if lines or self.bracketed else _BLANKS).match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip blanks and consume a match, if there is one."""
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def take(self, word: str) -> bool:
        """Skip blanks and consume a word, if it is next."""
        self.skip()
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.expected_error(repr(word))

    def identifier(self, what: str = "a name") -> str:
        found = self.match(_IDENTIFIER)
        if found is None:
            raise self.expected_error(what)
        return found[0]

    def keyword(self, word: str) -> bool:
        """Consume an identifier if it is this one."""
        at = self.at
        found = self.match(_IDENTIFIER)
        if found is not None and found[0] == word:
            return True
        self.at = at
        return False

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            fault = Fault("READ-03", f"nested deeper than {MAX_NESTING} levels", self.at)
            raise invalid(self.source, [fault])

    # Blocks --------------------------------------------------------------------------------------

    def body(self, closed: bool) -> HclBody:
        """Read attributes and blocks, up to a closing brace or the end."""
        body = HclBody()
        while True:
            self.skip(lines=True)
            if closed and self.take("}"):
                return body
            if self.at == len(self.text):
                if closed:
                    raise self.error("a block is not closed", self.at, "add the closing '}'")
                return body
            at = self.at
            name = self.identifier("the name of an attribute or a block")
            if not self.take("="):
                body.blocks.append(self.block(name, at))
            elif name in body.attributes:
                raise self.error(f"{name!r} is given twice", at, "keep one of them")
            else:
                body.attributes[name] = self.expression()
            self.skip()
            if self.at < len(self.text) and self.text[self.at] not in "\n}":
                raise self.expected_error("the end of the line")

    def block(self, kind: str, at: int) -> HclBlock:
        labels = []
        while not self.take("{"):
            found = self.match(_LABEL) or self.match(_IDENTIFIER)
            if found is None:
                raise self.expected_error("'=' or '{'")
            labels.append(found[found.lastindex or 0])
        self.enter()
        body = self.body(closed=True)
        self.nesting -= 1
        return HclBlock(at, kind, labels, body)

    # Expressions ---------------------------------------------------------------------------------

    def expression(self) -> HclNode:
        self.enter()
        node = self.operation(0)
        if self.take("?"):
            yes = self.expression()
            self.need(":")
            no = self.expression()
            node = HclCondition(node.at, no.end, node, yes, no)
        self.nesting -= 1
        return node

    def operation(self, rank: int) -> HclNode:
        """Read terms and operators that bind at least as strongly as the rank."""
        self.skip()
        at = self.at
        if self.text.startswith(("!", "-"), at):
            self.enter()
            self.at += 1
            right = self.operation(len(_RANKS))
            self.nesting -= 1
            node: HclNode = HclOperation(at, right.end, self.text[at], None, right)
        else:
            node = self.term()
        while True:
            self.skip()
            found = _OPERATOR.match(self.text, self.at)
            if found is None or _RANKS[found[0]] < rank:
                return node
            self.at = found.end()
            right = self.operation(_RANKS[found[0]] + 1)
            node = HclOperation(node.at, right.end, found[0], node, right)

    def term(self) -> HclNode:
        """Read a value with its attributes, indices and splats."""
        self.skip()
        at, first = self.at, self.text[self.at : self.at + 1]
        node: HclNode
        if first == '"':
            self.at += 1
            parts = self.parts(None)
            node = TemplateExpression(at, self.at, parts, quoted=True)
        elif first == "<":
            node = self.heredoc()
        elif first and first in _BRACKETS:
            self.at += 1
            node = self.bracket(at, first)
        elif number := _NUMBER.match(self.text, at):
            self.at = number.end()
            node = HclLiteral(at, self.at, self.number(number[0], at))
        elif function := _FUNCTION.match(self.text, at):
            self.at = function.end() + 1
            node = self.call(at, function[0])
        elif name := _IDENTIFIER.match(self.text, at):
            self.at = name.end()
            constant = name[0] in _CONSTANTS
            node = (
                HclLiteral(at, self.at, _CONSTANTS[name[0]])
                if constant
                else HclName(at, self.at, name[0])
            )
        else:
            raise self.expected_error("a value")
        return self.postfix(node)

    def number(self, digits: str, at: int) -> Json:
        if digits.isdigit() and len(digits) <= MAX_DIGITS:
            return int(digits)
        value = float(digits)
        if value == float("inf"):
            raise self.error(f"{digits[:40]} is too large for a number", at)
        return int(value) if value.is_integer() and value < 2**53 else value

    def bracket(self, at: int, opener: str) -> HclNode:
        """Read the rest of a bracketed expression."""
        outer, self.bracketed = self.bracketed, opener != "{"
        self.skip(lines=True)
        if opener == "(":
            node = self.expression()
            self.need(")")
        elif self.match(_FOR):
            node = self.for_expression(at, _BRACKETS[opener])
        elif opener == "[":
            items, _ = self.items("]")
            node = HclTuple(at, self.at, items)
        else:
            node = self.object(at)
        self.bracketed = outer
        return node

    def postfix(self, node: HclNode) -> HclNode:
        """Read the attributes and indices after a value."""
        while True:
            self.skip()
            if self.text.startswith("...", self.at):
                return node
            if self.take("["):
                outer, self.bracketed = self.bracketed, True
                key = None if self.take("*") else self.expression()
                self.need("]")
                self.bracketed = outer
                if key is None:
                    return self.splat(node)
                node = HclIndex(node.at, self.at, node, key)
            elif not self.take("."):
                return node
            elif self.take("*"):
                return self.splat(node)
            elif digits := self.match(_DIGITS):
                key = HclLiteral(digits.start(), self.at, int(digits[0]))
                node = HclIndex(node.at, self.at, node, key)
            else:
                name = self.identifier("an attribute")
                node = HclAttribute(node.at, self.at, node, name)

    def splat(self, of: HclNode) -> HclNode:
        self.enter()
        each = self.postfix(HclName(self.at, self.at, ITEM))
        self.nesting -= 1
        return HclSplat(of.at, self.at, of, each)

    def call(self, at: int, name: str) -> HclNode:
        outer, self.bracketed = self.bracketed, True
        arguments, spread = self.items(")")
        self.bracketed = outer
        return HclCall(at, self.at, name, arguments, spread)

    def items(self, closer: str) -> tuple[list[HclNode], bool]:
        """Read comma-separated expressions up to a bracket, and whether dots follow the last."""
        items: list[HclNode] = []
        spread = False
        while not self.take(closer):
            items.append(self.expression())
            spread = self.take("...")
            if not self.take(",") and not self.text.startswith(closer, self.at):
                raise self.expected_error(f"',' or {closer!r}")
        return items, spread

    def object(self, at: int) -> HclNode:
        items: list[tuple[HclNode, HclNode]] = []
        while True:
            self.skip(lines=True)
            if self.take("}"):
                return HclObject(at, self.at, items)
            computed = self.text.startswith("(", self.at)
            key = self.expression()
            if isinstance(key, HclName) and not computed:
                key = HclLiteral(key.at, key.end, key.name)
            if not self.take("=") and not self.take(":"):
                raise self.expected_error("'=' after a key")
            self.skip(lines=True)
            items.append((key, self.expression()))
            if not self.take(",") and self.text[self.at : self.at + 1] not in ("\n", "}"):
                raise self.expected_error("',' or the end of the line")

    def for_expression(self, at: int, closer: str) -> HclNode:
        """Read a for expression after its first word."""
        self.bracketed = True
        names, over = self.loop()
        self.need(":")
        key = None
        value = self.expression()
        if closer == "}":
            self.need("=>")
            key, value = value, self.expression()
        grouped = self.take("...")
        test = self.expression() if self.keyword("if") else None
        self.need(closer)
        return HclFor(at, self.at, names, over, key, value, test, grouped)

    def loop(self) -> tuple[list[str], HclNode]:
        """Read the names and the collection of a loop."""
        names = [self.identifier()]
        if self.take(","):
            names.append(self.identifier())
        if not self.keyword("in"):
            raise self.expected_error("'in'")
        return names, self.expression()

    # Templates -----------------------------------------------------------------------------------

    def heredoc(self) -> HclNode:
        at = self.at
        opening = _HEREDOC.match(self.text, at)
        if opening is None:
            raise self.expected_error("a value")
        marker = re.escape(opening[2])
        closing = re.compile(rf"^[ \t]*{marker}(?=[ \t]*\r?$)", re.MULTILINE).search(
            self.text, opening.end()
        )
        if closing is None:
            hint = f"end it with {opening[2]} on a line of its own"
            raise self.error("the heredoc is not closed", at, hint)
        outer, self.margin = self.margin, 0
        if opening[1]:
            lines = self.text[opening.end() : closing.start()].split("\n")
            self.margin = min((_indent(line) for line in lines if line.strip()), default=0)
        self.at = opening.end()
        parts = self.parts(closing.start())
        self.margin = outer
        self.at = closing.end()
        return TemplateExpression(at, self.at, parts)

    def parts(self, end: int | None, directive: str = "") -> list[TrackedText | HclNode]:
        """Read the parts of a template up to an offset, or to the closing quote.

        Within a directive they end at the next one that belongs to it, which is stored in
        `stopped`.
        """
        parts: list[TrackedText | HclNode] = []
        limit = len(self.text) if end is None else end
        while self.at < limit:
            at = self.at
            opener = self.text[at : at + 2]
            if end is None and opener[0] == '"':
                self.at += 1
                return parts
            if opener in ("${", "%{"):
                self.at += 2
                if self.text.startswith("~", self.at):
                    self.at += 1
                    _strip_end(parts)
                node = self.interpolation(opener, at, end, directive)
                if node is None:
                    return parts
                parts.append(node)
            else:
                parts.append(self.literal(end, limit))
        if end is None:
            raise self.error("the string is not closed", self.at, "add the closing quote")
        if directive:
            raise self.error(
                f"%{{ {directive} }} is not closed", self.at, f"add %{{ end{directive} }}"
            )
        return parts

    def interpolation(
        self, opener: str, at: int, end: int | None, directive: str
    ) -> HclNode | None:
        """Read the contents of braces; None for a directive that ends the enclosing one."""
        outer, self.bracketed = self.bracketed, True
        node: HclNode | None = None
        self.enter()
        if opener == "${":
            node = self.expression()
            self.end_braces()
        elif self.keyword("if"):
            node = self.condition(at, end)
        elif self.keyword("for"):
            names, over = self.loop()
            self.end_braces()
            body = self.part(end, "for")
            node = HclRepeat(at, self.at, names, over, body)
        else:
            self.stopped = self.identifier("a directive")
            if self.stopped not in _STOPS.get(directive, ()):
                raise self.error(f"there is no directive {self.stopped!r} here", at)
            self.end_braces()
        self.nesting -= 1
        self.bracketed = outer
        return node

    def end_braces(self) -> None:
        self.trimmed = self.take("~")
        self.need("}")

    def condition(self, at: int, end: int | None) -> HclNode:
        test = self.expression()
        self.end_braces()
        yes = self.part(end, "if")
        no: HclNode = TemplateExpression(self.at, self.at, [])
        if self.stopped == "else":
            no = self.part(end, "if")
        return HclCondition(at, self.at, test, yes, no)

    def part(self, end: int | None, directive: str) -> TemplateExpression:
        """Read the body of a directive."""
        outer, self.bracketed = self.bracketed, False
        at = self.at
        parts = self.parts(end, directive)
        self.bracketed = outer
        return TemplateExpression(at, self.at, parts)

    def literal(self, end: int | None, limit: int) -> TrackedText:
        """Read the text up to the next expression, escape or end."""
        at = self.at
        trimmed, self.trimmed = self.trimmed, False
        if found := (_QUOTED if end is None else _BARE).match(self.text, at, limit):
            self.at = found.end()
            text = self.source_text(at, self.at)
            return _lstrip(text) if trimmed else text
        if self.text.startswith(("$${", "%%{"), at):
            self.at += 3
            return TrackedText.from_source(self.text[at + 1 : at + 3], at + 1)
        escape = _ESCAPE.match(self.text, at)
        if escape is None:
            if self.text[at] == "\n":
                raise self.error("the string is not closed", at, "add the closing quote")
            raise self.error(f"{self.text[at : at + 2]} is not an escape", at)
        self.at = escape.end()
        letter, *digits = escape.groups()
        try:
            character = _ESCAPES[letter] if letter else chr(int(digits[0] or digits[1], 16))
        except ValueError:
            raise self.error(f"{escape[0]} is not a character", at) from None
        return TrackedText.from_source(character, at)

    def source_text(self, start: int, end: int) -> TrackedText:
        """Return the text between two offsets, its lines without their margins."""
        if not self.margin:
            return TrackedText.from_source(self.text[start:end], start)
        lines = []
        while start < end:
            if self.text[start - 1] == "\n":
                start += min(self.margin, _indent(self.text, start))
            stop = self.text.find("\n", start, end) + 1 or end
            lines.append(TrackedText.from_source(self.text[start:stop], start))
            start = stop
        return join_texts(lines, start)


def _indent(text: str, at: int = 0) -> int:
    """Return the number of blanks at the start of a line."""
    blanks = _MARGIN.match(text, at)
    return blanks.end() - at if blanks else 0


def _lstrip(text: TrackedText) -> TrackedText:
    return text.part(len(text.string) - len(text.string.lstrip()), len(text.string))


def _strip_end(parts: list[TrackedText | HclNode]) -> None:
    """Remove trailing blanks of the last part, if it is a text."""
    if parts and isinstance(parts[-1], TrackedText):
        parts[-1] = parts[-1].part(0, len(parts[-1].string.rstrip()))
