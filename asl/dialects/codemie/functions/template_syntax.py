"""Syntax of the templates of transform nodes: a subset of Jinja.

A template has texts, `{{ expression }}`, `{% if %}`, `{% for %}`, `{% set %}` and comments.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.codemie.functions.conditions import METHODS
from asl.dialects.codemie.functions.outputs import unescape
from asl.dialects.codemie.functions.template_filters import FILTERS, TESTS

__all__ = [
    "Application",
    "Assignment",
    "Condition",
    "Constant",
    "Expression",
    "ForEach",
    "Node",
    "TemplateOperation",
    "TemplateOutput",
    "Variable",
    "names_read",
    "parse_template",
]

MAX_DEPTH: Final = 40
"""Levels of blocks and of expressions."""
MAX_OPERATIONS: Final = 100
"""Operators, filters and members in one expression."""
FAULT: Final = "CM-TEMPLATE"


# Nodes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written out."""

    value: Json


@dataclass(frozen=True, slots=True)
class Variable:
    """The value of a name."""

    name: str


@dataclass(frozen=True, slots=True)
class TemplateOperation:
    """An operator, or the making of a list or an object, with its operands.

    Attributes:
        operator: The operator, `list`, `dict`, `if`, `member` or `slice`.
        operands: The operands; None for one that is left out.
    """

    operator: str
    operands: tuple["Expression | None", ...]


@dataclass(frozen=True, slots=True)
class Application:
    """A filter, a test or a method with its arguments.

    Attributes:
        kind: `filter`, `test` or `method`.
        name: Its name.
        arguments: The value that it is applied to, and the positional arguments.
        named: The arguments with names.
    """

    kind: str
    name: str
    arguments: tuple["Expression", ...]
    named: tuple[tuple[str, "Expression"], ...] = ()


Expression: TypeAlias = Constant | Variable | TemplateOperation | Application


@dataclass(frozen=True, slots=True)
class TemplateOutput:
    """An expression whose value is shown."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Assignment:
    """A name that gets a value."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Condition:
    """Nodes that are rendered if a condition holds, and others if not."""

    test: Expression
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ForEach:
    """Nodes that are rendered for each item, and others if there is none."""

    targets: tuple[str, ...]
    items: Expression
    test: Expression | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


Node: TypeAlias = str | TemplateOutput | Assignment | Condition | ForEach


# Parsing ------------------------------------------------------------------------------------------

_TAG: Final = re.compile(r"\{\{-?|\{%-?|\{#")
_CLOSE: Final[Mapping[str, re.Pattern[str]]] = {
    "{{": re.compile(
        r"""(?:[^'"}-]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\}(?!\})|-(?!\}\}))*""", re.S
    ),
    "{%": re.compile(
        r"""(?:[^'"%-]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|%(?!\})|-(?!%\}))*""", re.S
    ),
}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![A-Za-z0-9_])
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<sign>//|==|!=|<=|>=|[-+*/%~<>()\[\]{}.,:|=]))""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: Final[Mapping[str, Json]] = {
    "true": True,
    "false": False,
    "none": None,
    "True": True,
    "False": False,
    "None": None,
}
_WORDS: Final = frozenset((*_CONSTANTS, "and", "or", "not", "in", "is", "if", "else"))
_COMPARED: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))


class _Tag(NamedTuple):
    """A part of a template between delimiters."""

    kind: str
    text: str
    offset: int


@lru_cache(maxsize=256)
def parse_template(text: str) -> tuple[Node, ...]:
    """Parse a template.

    Raises:
        ExpressionFault: The template is beyond the subset; with the place in the text.
    """
    return _BlockParser(text).template()


def _parts(text: str) -> Iterator[str | _Tag]:
    """Yield the texts and tags of a template."""
    at, strip = 0, False
    if text.endswith("\n"):
        text = text[:-1]
    while True:
        match = _TAG.search(text, at)
        before = text[at : match.start()] if match else text[at:]
        before = before.lstrip() if strip else before
        yield before.rstrip() if match and match[0].endswith("-") else before
        if match is None:
            return
        kind, start = match[0][:2], match.end()
        closing = {"{{": "}}", "{%": "%}", "{#": "#}"}[kind]
        inner = None if kind == "{#" else _CLOSE[kind].match(text, start)
        end = text.find(closing, start) if inner is None else inner.end()
        strip = text.startswith(f"-{closing}", end)
        if end < 0 or not text.startswith(closing, end + strip):
            _fail(f"{kind} has no {closing}", match.start())
        if kind != "{#":
            yield _Tag(kind, text[start:end], start)
        at = end + strip + len(closing)


def _fail(message: str, offset: int) -> NoReturn:
    raise ExpressionFault(message, offset, FAULT)


class _BlockParser:
    """Parses the blocks of one template."""

    def __init__(self, text: str) -> None:
        self.parts = _parts(text)
        self.depth = 0

    def template(self) -> tuple[Node, ...]:
        nodes, end = self.block(())
        if end is not None:
            _fail(f"{end.name!r} ends no block", end.offset)
        return nodes

    def block(self, ends: tuple[str, ...]) -> tuple[tuple[Node, ...], "_ExpressionParser | None"]:
        """Return the nodes up to one of some tags, and the parser of that tag."""
        nodes: list[Node] = []
        for part in self.parts:
            if isinstance(part, str):
                nodes += [part] if part else []
                continue
            parser = _ExpressionParser(part.text, part.offset)
            if part.kind == "{{":
                nodes.append(TemplateOutput(parser.whole()))
                continue
            word = parser.word()
            if word in ("elif", "else", "endif", "endfor", "endset"):
                if word not in ends:
                    _fail(f"{word!r} ends no block", part.offset)
                return tuple(nodes), parser
            nodes.append(self.statement(word, parser))
        if ends:
            _fail(f"a block has no {ends[-1]!r}", 0)
        return tuple(nodes), None

    def statement(self, word: str, parser: "_ExpressionParser") -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            _fail("the blocks are nested too deep", parser.offset)
        match word:
            case "if":
                found = self.condition(parser)
            case "for":
                found = self.loop(parser)
            case "set":
                name = parser.target()
                parser.expect("=")
                found = Assignment(name, parser.whole())
            case _:
                _fail(f"there is no block {word!r}", parser.offset)
        self.depth -= 1
        return found

    def condition(self, parser: "_ExpressionParser") -> Node:
        test = parser.whole()
        body, end = self.block(("elif", "else", "endif"))
        otherwise: tuple[Node, ...] = ()
        if end is not None and end.name == "elif":
            otherwise = (self.condition(end),)
        elif end is not None and end.name == "else":
            otherwise, _ = self.block(("endif",))
        return Condition(test, body, otherwise)

    def loop(self, parser: "_ExpressionParser") -> Node:
        targets = [parser.target()]
        while parser.took(","):
            targets.append(parser.target())
        parser.expect("in")
        items = parser.disjunction()
        test = parser.disjunction() if parser.took("if") else None
        parser.end()
        body, end = self.block(("else", "endfor"))
        otherwise: tuple[Node, ...] = ()
        if end is not None and end.name == "else":
            otherwise, _ = self.block(("endfor",))
        return ForEach(tuple(targets), items, test, body, otherwise)


class _ExpressionParser:
    """Parses one expression, by the precedence of Jinja."""

    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.start = offset
        self.at = 0
        self.depth = 0
        self.operations = 0
        self.kind, self.token = "", ""
        self.name = ""
        """The first word of a tag."""
        self.advance()

    @property
    def offset(self) -> int:
        """Where the current token ends in the template."""
        return self.start + self.at

    def operation(self, name: str, operands: tuple[Expression | None, ...]) -> TemplateOperation:
        self.count()
        return TemplateOperation(name, operands)

    def application(
        self,
        kind: str,
        name: str,
        operands: tuple[Expression, ...],
        named: tuple[tuple[str, Expression], ...] = (),
    ) -> Application:
        self.count()
        return Application(kind, name, operands, named)

    def count(self) -> None:
        """Count an operation: each may be within the next one."""
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            _fail(f"the expression has more than {MAX_OPERATIONS} operations", self.offset)

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            if self.text[self.at :].strip():
                _fail("the expression is not supported", self.offset)
            self.kind, self.token = "", ""
            return
        self.at = match.end()
        self.kind = str(match.lastgroup)
        self.token = match[self.kind]

    def took(self, token: str) -> bool:
        if self.kind in ("sign", "name") and self.token == token:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.took(token):
            _fail(f"{token!r} is missing", self.offset)

    def end(self) -> None:
        if self.kind:
            _fail(f"{self.token!r} is not supported here", self.offset)

    def word(self) -> str:
        self.name = self.token if self.kind == "name" else ""
        if self.name:
            self.advance()
        return self.name

    def target(self) -> str:
        name = self.token
        if self.kind != "name" or name in _WORDS or name == "loop":
            _fail("a name is missing", self.offset)
        self.advance()
        return name

    # Expressions, from the loosest operator to the tightest

    def whole(self) -> Expression:
        found = self.ternary()
        self.end()
        return found

    def ternary(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            _fail("the expression is nested too deep", self.offset)
        found = self.disjunction()
        while self.took("if"):
            test = self.disjunction()
            last = self.ternary() if self.took("else") else None
            found = self.operation("if", (test, found, last))
        self.depth -= 1
        return found

    def disjunction(self) -> Expression:
        found = self.conjunction()
        while self.took("or"):
            found = self.operation("or", (found, self.conjunction()))
        return found

    def conjunction(self) -> Expression:
        found = self.negation()
        while self.took("and"):
            found = self.operation("and", (found, self.negation()))
        return found

    def negation(self) -> Expression:
        negated = False
        while self.took("not"):
            negated = not negated
        found = self.comparison()
        return self.operation("not", (found,)) if negated else found

    def comparison(self) -> Expression:
        tests: list[Expression] = []
        left = self.sum()
        found = left
        while True:
            sign = self.token
            if self.kind == "sign" and sign in _COMPARED:
                self.advance()
            elif self.took("in"):
                sign = "in"
            elif self.kind == "name" and sign == "not" and self.followed_by("in"):
                self.advance()
                self.advance()
                sign = "not in"
            else:
                return found
            right = self.sum()
            tests.append(self.operation(sign, (left, right)))
            found = tests[0] if len(tests) == 1 else self.operation("and", (found, tests[-1]))
            left = right

    def followed_by(self, word: str) -> bool:
        match = _TOKEN.match(self.text, self.at)
        return match is not None and match["name"] == word

    def sum(self) -> Expression:
        return self.chain(("+", "-"), lambda: self.chain(("~",), self.product))

    def product(self) -> Expression:
        return self.chain(("*", "/", "//", "%"), self.sign)

    def chain(self, signs: Sequence[str], operand: Callable[[], Expression]) -> Expression:
        found = operand()
        while self.kind == "sign" and self.token in signs:
            sign = self.token
            self.advance()
            found = self.operation(sign, (found, operand()))
        return found

    def sign(self) -> Expression:
        return self.applied(self.signed())

    def signed(self) -> Expression:
        signs = 0
        while self.kind == "sign" and self.token in ("-", "+"):
            signs += self.token == "-"
            self.advance()
        found = self.postfix(self.atom())
        return self.operation("-", (Constant(0), found)) if signs % 2 else found

    def applied(self, found: Expression) -> Expression:
        """Return an expression with the filters and tests behind it."""
        while True:
            if self.took("|"):
                found = self.filtered(found)
            elif self.took("is"):
                found = self.tested(found)
            else:
                return found

    def filtered(self, value: Expression) -> Expression:
        name = self.word()
        if name not in FILTERS:
            _fail(f"there is no filter {name or self.token!r}", self.offset)
        arguments, named = self.arguments() if self.took("(") else ((), ())
        return self.application("filter", name, (value, *arguments), named)

    def tested(self, value: Expression) -> Expression:
        negated = self.took("not")
        name = self.word()
        if name not in TESTS:
            _fail(f"there is no test {name or self.token!r}", self.offset)
        arguments, _ = self.arguments() if self.took("(") else ((), ())
        found: Expression = self.application("test", name, (value, *arguments))
        return self.operation("not", (found,)) if negated else found

    def arguments(
        self,
    ) -> tuple[tuple[Expression, ...], tuple[tuple[str, Expression], ...]]:
        """Return the arguments of a call, behind its parenthesis."""
        listed: list[Expression] = []
        named: list[tuple[str, Expression]] = []
        while not self.took(")"):
            match = _TOKEN.match(self.text, self.at)
            if self.kind == "name" and match is not None and match["sign"] == "=":
                name = self.word()
                self.advance()
                named.append((name, self.ternary()))
            else:
                listed.append(self.ternary())
            if not self.took(","):
                self.expect(")")
                break
        return tuple(listed), tuple(named)

    def postfix(self, found: Expression) -> Expression:
        while True:
            if self.took("."):
                found = self.attribute(found)
            elif self.took("["):
                found = self.subscript(found)
            elif self.kind == "sign" and self.token == "(":
                _fail("only methods can be called", self.offset)
            else:
                return found

    def attribute(self, value: Expression) -> Expression:
        name = self.token
        if self.kind not in ("name", "number") or name.startswith("_"):
            _fail("the name of a member is missing", self.offset)
        self.advance()
        if self.kind == "sign" and self.token == "(":
            if name not in METHODS:
                _fail(f"there is no method .{name}()", self.offset)
            self.advance()
            arguments, _ = self.arguments()
            return self.application("method", name, (value, *arguments))
        step: Json = int(name) if name.isdecimal() else name
        return self.operation("member", (value, Constant(step)))

    def subscript(self, value: Expression) -> Expression:
        ends: list[Expression | None] = []
        while True:
            empty = self.kind == "sign" and self.token in (":", "]")
            ends.append(None if empty else self.ternary())
            if not self.took(":"):
                break
        self.expect("]")
        if len(ends) == 1 and ends[0] is not None:
            return self.operation("member", (value, ends[0]))
        if len(ends) == 1 or len(ends) > 3:
            _fail("the subscript is not supported", self.offset)
        return self.operation("slice", (value, *ends))

    def atom(self) -> Expression:
        kind, token = self.kind, self.token
        self.advance()
        match kind, token:
            case "number", _:
                return Constant(int(token) if token.isdecimal() else float(token))
            case "text", _:
                return Constant(unescape(token[1:-1]))
            case "name", _ if token in _CONSTANTS:
                return Constant(_CONSTANTS[token])
            case "name", _ if token not in _WORDS:
                return Variable(token)
            case "sign", "(":
                found = self.ternary()
                self.expect(")")
                return found
            case "sign", "[":
                return self.operation("list", tuple(self.listed("]")))
            case "sign", "{":
                return self.operation("dict", tuple(self.pairs()))
        _fail(
            f"{token!r} is not supported here" if token else "an expression is missing", self.offset
        )

    def listed(self, end: str) -> Iterator[Expression]:
        while not self.took(end):
            yield self.ternary()
            if not self.took(","):
                self.expect(end)
                return

    def pairs(self) -> Iterator[Expression]:
        while not self.took("}"):
            yield self.ternary()
            self.expect(":")
            yield self.ternary()
            if not self.took(","):
                self.expect("}")
                return


# Names --------------------------------------------------------------------------------------------


def names_read(text: str) -> Iterator[str]:
    """Yield the names of a template that it does not set itself; none for a faulty template."""
    try:
        nodes = parse_template(text)
    except ExpressionFault:
        return
    yield from _names(nodes, frozenset(("loop",)))


def _names(nodes: Sequence[Node], known: frozenset[str]) -> Iterator[str]:
    for node in nodes:
        match node:
            case TemplateOutput(value):
                yield from _variables(value, known)
            case Assignment(name, value):
                yield from _variables(value, known)
                known |= {name}
            case Condition(test, body, otherwise):
                yield from _variables(test, known)
                yield from _names(body, known)
                yield from _names(otherwise, known)
            case ForEach(targets, items, test, body, otherwise):
                yield from _variables(items, known)
                inner = known | {*targets}
                if test is not None:
                    yield from _variables(test, inner)
                yield from _names(body, inner)
                yield from _names(otherwise, known)


def _variables(node: Expression | None, known: frozenset[str]) -> Iterator[str]:
    match node:
        case Variable(name) if name not in known:
            yield name
        case TemplateOperation(_, operands):
            for each in operands:
                yield from _variables(each, known)
        case Application(_, _, arguments, named):
            for each in (*arguments, *(value for _, value in named)):
                yield from _variables(each, known)
