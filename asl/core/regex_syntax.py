"""Parse regular expressions in the syntax of RE2, without rare Unicode scripts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NoReturn
from unicodedata import category

from asl.core.regex_scripts import script

__all__ = [
    "Alternatives",
    "Assertion",
    "Characters",
    "Concatenation",
    "Group",
    "Node",
    "Repetition",
    "parse",
]

MAX_DEPTH = 50
"""Groups within groups."""
MAX_COUNT = 1000
"""The largest count of a repetition, as in RE2."""

Test = Callable[[str], bool]
"""Whether a set has a character."""
Ranges = list[tuple[str, str]]
Place = Literal["text start", "text end", "line start", "line end", "boundary", "no boundary"]


@dataclass(frozen=True, slots=True)
class Characters:
    """A set that matches one character."""

    test: Test


@dataclass(frozen=True, slots=True)
class Assertion:
    """An empty match at a position."""

    place: Place


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Nodes one after another."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The first of several nodes that leads to a match."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A node *least* to *most* times; None for no upper bound."""

    item: "Node"
    minimum: int
    maximum: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A node whose span is recorded."""

    index: int
    item: "Node"


Node = Characters | Assertion | Concatenation | Alternatives | Repetition | Group

_CLASSES: dict[str, Ranges] = {
    "d": [("0", "9")],
    "s": [("\t", "\n"), ("\f", "\r"), (" ", " ")],
    "w": [("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")],
}
_NAMED: dict[str, Ranges] = {
    "alnum": [("0", "9"), ("A", "Z"), ("a", "z")],
    "alpha": [("A", "Z"), ("a", "z")],
    "ascii": [("\0", "\x7f")],
    "blank": [("\t", "\t"), (" ", " ")],
    "cntrl": [("\0", "\x1f"), ("\x7f", "\x7f")],
    "digit": _CLASSES["d"],
    "graph": [("!", "~")],
    "lower": [("a", "z")],
    "print": [(" ", "~")],
    "punct": [("!", "/"), (":", "@"), ("[", "`"), ("{", "~")],
    "space": [("\t", "\r"), (" ", " ")],
    "upper": [("A", "Z")],
    "word": _CLASSES["w"],
    "xdigit": [("0", "9"), ("A", "F"), ("a", "f")],
}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: dict[str, Place] = {
    "A": "text start",
    "z": "text end",
    "b": "boundary",
    "B": "no boundary",
}
_HEX = frozenset("0123456789abcdefABCDEF")
_CATEGORIES = {
    "C": "cfos",
    "L": "lmotu",
    "M": "cen",
    "N": "dlo",
    "P": "cdefios",
    "S": "ckmo",
    "Z": "lps",
}
"""The general categories of Unicode: the first letter, and the second ones."""


def parse(pattern: str, flags: str = "") -> tuple[Node, dict[str, int], int]:
    """Parse a regular expression.

    Args:
        pattern: Its text.
        flags: Letters of `i`, `m`, `s` and `U`.

    Returns:
        The node, the names of its groups and the number of its groups.

    Raises:
        ValueError: It is not a regular expression; the message says why.
    """
    parser = _Parser(pattern, frozenset(flags))
    node = parser.alternatives(0)
    if parser.at < len(pattern):
        parser.fail("unexpected )", pattern)
    return node, parser.names, parser.groups


class _Parser:
    def __init__(self, text: str, flags: frozenset[str]) -> None:
        self.text = text
        self.at = 0
        self.flags = flags
        self.groups = 0
        self.names: dict[str, int] = {}

    def fail(self, message: str, part: str) -> NoReturn:
        raise ValueError(f"{message}: {part}")

    def take(self, part: str) -> bool:
        """Read this text if it comes next."""
        found = self.text.startswith(part, self.at)
        self.at += len(part) if found else 0
        return found

    def until(self, end: str, message: str, start: int) -> str:
        """Read the text before *end*, and *end*."""
        stop = self.text.find(end, self.at)
        if stop < 0:
            self.fail(message, self.text[start:])
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    def alternatives(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.fail("expression nests too deeply", self.text)
        flags = self.flags
        items = [self.sequence(depth)]
        while self.take("|"):
            items.append(self.sequence(depth))
        self.flags = flags
        return items[0] if len(items) == 1 else Alternatives(tuple(items))

    def sequence(self, depth: int) -> Node:
        items: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.take(r"\Q"):
                stop = self.text.find(r"\E", self.at)
                stop = len(self.text) if stop < 0 else stop
                quoted, self.at = self.text[self.at : stop], stop + 2
                items += [self.characters([(each, each)]) for each in quoted[:-1]]
                if quoted:
                    items.append(self.repetition(self.characters([(quoted[-1], quoted[-1])])))
            elif (item := self.atom(depth)) is not None:
                items.append(self.repetition(item))
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def repetition(self, item: Node) -> Node:
        """Read the repetition behind a node."""
        start = self.at
        counts = self.counts()
        if counts is None:
            return item
        greedy = self.take("?") == ("U" in self.flags)
        stop = self.at
        if self.counts() is not None:
            self.fail("bad repetition operator", self.text[start : self.at])
        self.at = stop
        return Repetition(item, *counts, greedy)

    def counts(self) -> tuple[int, int | None] | None:
        """Read an operator of repetition if one comes next."""
        for operator, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.take(operator):
                return least, most
        start = self.at
        stop = self.text.find("}", start) if self.text.startswith("{", start) else -1
        first, comma, last = self.text[start + 1 : max(stop, start + 1)].partition(",")
        if not _is_count(first) or not (_is_count(last) or not last):
            return None
        self.at = stop + 1
        least, most = int(first[:5]), int(last[:5]) if last else None if comma else int(first[:5])
        if max(least, most or 0) > MAX_COUNT or (most is not None and most < least):
            self.fail("invalid repetition size", self.text[start : self.at])
        return least, most

    def atom(self, depth: int) -> Node | None:
        """Read what can be repeated; None for a change of the flags."""
        start = self.at
        if self.counts() is not None:
            self.fail("no argument for repetition operator", self.text[start : self.at])
        if self.take("("):
            return self.group(start, depth)
        if self.take("["):
            return self.set(start)
        if self.take("."):
            newline = "s" in self.flags
            return Characters(any_character if newline else "\n".__ne__)
        if self.take("^"):
            return Assertion("line start" if "m" in self.flags else "text start")
        if self.take("$"):
            return Assertion("line end" if "m" in self.flags else "text end")
        if not self.take("\\"):
            self.at += 1
            return self.characters([(self.text[start], self.text[start])])
        letter = self.text[self.at : self.at + 1]
        if letter in _PLACES:
            self.at += 1
            return Assertion(_PLACES[letter])
        ranges, tests = self.escape(start)
        return self.characters(ranges, tests)

    def group(self, start: int, depth: int) -> Node | None:
        flags, index = self.flags, 0
        if self.take("?P<") or (
            not self.text.startswith(("?<=", "?<!"), self.at) and self.take("?<")
        ):
            name = self.until(">", "invalid named capture group", start)
            if not name.isidentifier() or name in self.names:
                self.fail("invalid or repeated name of a group", name)
            index = self.groups = self.groups + 1
            self.names[name] = index
        elif self.take("?"):
            if not self.switch(start):
                return None
        else:
            index = self.groups = self.groups + 1
        item = self.alternatives(depth + 1)
        self.flags = flags
        if not self.take(")"):
            self.fail("missing )", self.text)
        return Group(index, item) if index else item

    def switch(self, start: int) -> bool:
        """Read the flags behind `(?`; return whether they begin a group."""
        flags, on = set(self.flags), True
        while not self.text.startswith((":", ")"), self.at):
            letter, self.at = self.text[self.at : self.at + 1], self.at + 1
            if letter == "-" and on:
                on = False
            elif letter and letter in "imsU":
                (flags.add if on else flags.discard)(letter)
            else:
                self.fail("invalid perl operator", self.text[start : self.at])
        self.flags = frozenset(flags)
        self.at += 1
        return self.text[self.at - 1] == ":"

    def set(self, start: int) -> Node:
        """Read a set behind its bracket."""
        negated = self.take("^")
        ranges: Ranges = []
        tests: list[Test] = []
        first = True
        while first or not self.take("]"):
            first = False
            at = self.at
            if at >= len(self.text):
                self.fail("missing ]", self.text[start:])
            if self.take("[:"):
                name = self.until(":]", "invalid character class range", at)
                if name.removeprefix("^") not in _NAMED:
                    self.fail("invalid character class range", self.text[at : self.at])
                found: tuple[Ranges, list[Test]] = _NAMED[name.removeprefix("^")], []
                if name.startswith("^"):
                    found = [], [self.outside(found[0])]
            else:
                found = self.member(at)
            more, other = found
            if len(more) == 1 and more[0][0] == more[0][1] and not other and self.range_follows():
                self.at += 1
                upper, _ = self.member(self.at)
                if len(upper) != 1 or upper[0][0] != upper[0][1] or upper[0][0] < more[0][0]:
                    self.fail("invalid character class range", self.text[at : self.at])
                more = [(more[0][0], upper[0][0])]
            ranges += more
            tests += other
        node = self.characters(ranges, tests)
        return Characters(_negated(node.test)) if negated else node

    def range_follows(self) -> bool:
        return self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at)

    def member(self, at: int) -> tuple[Ranges, list[Test]]:
        """Read a character or a class within a set."""
        if self.take("\\"):
            return self.escape(at)
        letter = self.text[self.at : self.at + 1]
        if not letter:
            self.fail("missing ]", self.text)
        self.at += 1
        return [(letter, letter)], []

    def escape(self, start: int) -> tuple[Ranges, list[Test]]:
        """Read the escape after a backslash: ranges, and sets that are no ranges."""
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter.lower() in _CLASSES and letter:
            ranges = _CLASSES[letter.lower()]
            return (ranges, []) if letter.islower() else ([], [self.outside(ranges)])
        if letter in "pP" and letter:
            return [], [self.unicode(letter == "P", start)]
        if letter == "x":
            digits = self.text[self.at : self.at + 2]
            if self.take("{"):
                digits = self.until("}", "invalid escape sequence", start)
            else:
                self.at += 2
            if not digits or not _HEX.issuperset(digits) or int(digits[:9], 16) > 0x10FFFF:
                self.fail("invalid escape sequence", self.text[start : self.at])
            character = chr(int(digits, 16))
        elif letter == "0" or (letter in "1234567" and self.text[self.at : self.at + 1] in _OCTAL):
            digits = letter
            while len(digits) < 3 and self.text[self.at : self.at + 1] in _OCTAL:
                digits, self.at = digits + self.text[self.at], self.at + 1
            character = chr(int(digits, 8))
        elif letter in _CONTROLS:
            character = _CONTROLS[letter]
        elif letter and letter.isascii() and not letter.isalnum():
            character = letter
        elif letter:
            self.fail("invalid escape sequence", self.text[start : self.at])
        else:
            self.fail("trailing \\", self.text)
        return [(character, character)], []

    def unicode(self, negated: bool, start: int) -> Test:
        """Read the category behind `\\p`."""
        if self.take("{"):
            name = self.until("}", "invalid character class range", start)
        else:
            name, self.at = self.text[self.at : self.at + 1], self.at + 1
        negated ^= name.startswith("^")
        name = name.removeprefix("^")
        found: Test | None
        if name[:1] in _CATEGORIES and name[1:] in ("", *_CATEGORIES[name[:1]]):
            found = lambda each: category(each).startswith(name)  # noqa: E731
        else:
            found = any_character if name == "Any" else script(name)
        if found is None:
            self.fail(
                "invalid character class range (rare scripts need the package google-re2)",
                self.text[start : self.at],
            )
        return _negated(found) if negated else found

    def outside(self, ranges: Ranges) -> Test:
        """Return the test of what is not in the ranges, in either case."""
        return _negated(self.characters(ranges).test)

    def characters(self, ranges: Ranges, tests: Iterable[Test] = ()) -> Characters:
        """Return the node of a set."""
        found = _inside(ranges)
        others = tuple(tests)
        if others:
            only = found

            def found(each: str) -> bool:
                return only(each) or any(test(each) for test in others)

        return Characters(_folded(found) if "i" in self.flags else found)


_OCTAL = frozenset("01234567")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def any_character(character: str) -> bool:
    return True


def _inside(ranges: Ranges) -> Test:
    return lambda each: any(low <= each <= high for low, high in ranges)


def _negated(test: Test) -> Test:
    return lambda each: not test(each)


def _folded(test: Test) -> Test:
    """Return the test of a set in either case."""
    return lambda character: any(map(test, _cases(character)))


_MANY_CASES: Final = (
    "Kk\u212a Ss\u017f \u00b5\u039c\u03bc \u00c5\u00e5\u212b \u01c4\u01c5\u01c6 "
    "\u01c7\u01c8\u01c9 \u01ca\u01cb\u01cc \u01f1\u01f2\u01f3 "
    "\u0345\u0399\u03b9\u1fbe \u0392\u03b2\u03d0 \u0395\u03b5\u03f5 "
    "\u0398\u03b8\u03d1\u03f4 \u039a\u03ba\u03f0 \u03a0\u03c0\u03d6 "
    "\u03a1\u03c1\u03f1 \u03a3\u03c2\u03c3 \u03a6\u03c6\u03d5 \u03a9\u03c9\u2126 "
    "\u0412\u0432\u1c80 \u0414\u0434\u1c81 \u041e\u043e\u1c82 \u0421\u0441\u1c83 "
    "\u0422\u0442\u1c84\u1c85 \u042a\u044a\u1c86 \u0462\u0463\u1c87 "
    "\u1c88\ua64a\ua64b \u1e60\u1e61\u1e9b \u00df\u1e9e \u0390\u1fd3 \u03b0\u1fe3 "
    "\ufb05\ufb06 \u0131"
)
"""Characters with cases that `str.upper`, `lower` and `title` of one of them do not return."""
_CASES: Final = {each: cases for cases in _MANY_CASES.split() for each in cases}


def _cases(character: str) -> Iterable[str]:
    """Return a character in all of its cases (Unicode, simple case folding)."""
    known = _CASES.get(character)
    if known is not None:
        return known
    cases = {character, character.upper(), character.lower(), character.title()}
    return [each for each in cases if len(each) == 1]
