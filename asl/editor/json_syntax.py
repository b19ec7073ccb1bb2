"""Parse JSON with tolerance, and flow collections of YAML."""

import json
import re
from typing import Final

from asl.core.values import MAX_DEPTH, Json
from asl.editor.syntax import SyntaxMember, SyntaxPart, SyntaxTree

__all__ = ["parse_flow", "parse_json", "parse_json_before", "plain_value", "string_value"]

_JSON: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*+\\?"?|[{}\[\],:]|[^\s{}\[\],:"]+')
_FLOW: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+"?|'(?:[^']|'')*+'?|[{}\[\],]|:(?=[\s,\]}"'{\[]|\Z)|\#[^\n]*"""
    r"""|(?:[^\s{}\[\],:"'\#]|:(?![\s,\]}]|\Z))(?:[^{}\[\],:\n]|:(?![\s,\]}]|\Z))*""",
    re.DOTALL,
)
_CLOSERS: Final = {"}": "object", "]": "array"}
_OPENED: Final = frozenset(_CLOSERS.values())
_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")


def parse_json(text: str, start: int = 0, end: int | None = None) -> SyntaxTree:
    """Parse the JSON text from one offset to another.

    A key without a value has a missing one; brackets that are not closed end with the text, and a
    string ends with its line.
    """
    parser = _Parser()
    for found in _JSON.finditer(text, start, len(text) if end is None else end):
        parser.feed(found[0], found.start(), found.end())
    return parser.finish(len(text) if end is None else end)


def parse_json_before(root: SyntaxPart, text: str, offset: int, end: str) -> SyntaxPart:
    """Parse the text before an offset and *end*, with what is known of the whole text.

    Only the last members before the offset are parsed again.

    Args:
        root: The root of the whole text.
        text: The whole text.
        offset: The offset.
        end: Text to parse after that before the offset.
    """
    parser, at, member = _Parser(), 0, SyntaxMember(None, root)
    while (part := member.value).kind in _OPENED and part.start < offset < part.end:
        if parser.keys:
            parser.keys[-1] = member.key
        before = [each for each in part.members if each.value.end < offset]
        parser.reopen(part.kind, part.start, before)
        at = before[-1].value.end if before else part.start + 1
        if len(before) == len(part.members):
            break
        member = part.members[len(before)]
    for found in _JSON.finditer(text[:offset] + end, at):
        parser.feed(found[0], found.start(), found.end())
    return parser.finish(offset + len(end)).root


def parse_flow(text: str, start: int) -> tuple[SyntaxPart, int, bool]:
    """Parse a flow collection of YAML; return it, its end, and whether it is complete."""
    parser = _Parser()
    for found in _FLOW.finditer(text, start):
        if found[0].startswith("#"):
            continue
        token = found[0].rstrip()
        parser.feed(token, found.start(), found.start() + len(token))
        if not parser.open:
            return parser.root, found.end(), parser.is_complete
    tree = parser.finish(len(text))
    return tree.root, len(text), tree.is_complete


def string_value(token: str) -> str:
    """Return the text of a string in quotes, which may lack the closing one."""
    quote = token[0]
    if quote == "'":
        return token[1 : -1 if len(token) > 1 and token.endswith("'") else None].replace("''", "'")
    if "\\" in token:
        try:
            return str(json.loads(token, strict=False))
        except ValueError:
            pass
    return token[1 : -1 if len(token) > 1 and token.endswith('"') else None]


def plain_value(token: str) -> Json:
    """Return the value of a word without quotes."""
    if token in _WORDS:
        return _WORDS[token]
    if _NUMBER.fullmatch(token):
        return float(token) if "." in token else int(token)
    return token


class _Parser:
    """Builds parts of tokens; `open` are the containers that are not closed yet."""

    def __init__(self) -> None:
        self.root = SyntaxPart("missing", 0, 0)
        self.open: list[SyntaxPart] = []
        self.keys: list[SyntaxPart | None] = []
        """The key of each open container that waits for its value."""
        self.is_complete = True
        self._after_colon = False

    def reopen(self, kind: str, start: int, members: list[SyntaxMember]) -> None:
        """Open a container with members."""
        part = SyntaxPart(kind, start, start, members=members)
        self._add(part)
        self.open.append(part)
        self.keys.append(None)

    def feed(self, token: str, start: int, end: int) -> None:
        if token == ":":
            self._after_colon = True
        elif token == ",":
            self._end_member(start)
        elif token in _CLOSERS:
            self._close(_CLOSERS[token], end)
        elif token in "{[":
            if len(self.open) >= MAX_DEPTH:
                self.is_complete = False
                return
            part = SyntaxPart("object" if token == "{" else "array", start, end)
            self._add(part)
            self.open.append(part)
            self.keys.append(None)
        else:
            is_quoted = token[0] in "\"'"
            if is_quoted and (len(token) == 1 or token[-1] != token[0]):
                self.is_complete = False
            value = string_value(token) if is_quoted else plain_value(token)
            part = SyntaxPart("string", start, end, value)
            in_object = bool(self.open) and self.open[-1].kind == "object"
            if in_object and (self.keys[-1] is None or not self._after_colon):
                self._end_member(start)
                self.keys[-1] = part
            else:
                self._add(part)

    def _add(self, part: SyntaxPart) -> None:
        self._after_colon = False
        if not self.open:
            if self.root.kind == "missing":
                self.root = part
            else:
                self.is_complete = False
            return
        self.open[-1].members.append(SyntaxMember(self.keys[-1], part))
        if self.open[-1].kind == "object" and self.keys[-1] is None:
            self.is_complete = False
        self.keys[-1] = None

    def _end_member(self, at: int) -> None:
        if self.keys and self.keys[-1] is not None:
            self.is_complete = False
            self.open[-1].members.append(SyntaxMember(self.keys[-1], SyntaxPart("missing", at, at)))
            self.keys[-1] = None
        self._after_colon = False

    def _close(self, kind: str, end: int) -> None:
        if all(each.kind != kind for each in self.open[-2:]):
            self.is_complete = False
            return
        while True:
            self._end_member(end - 1)
            self.keys.pop()
            closed = self.open.pop()
            closed.end = end
            if closed.kind == kind:
                return
            self.is_complete = False

    def finish(self, end: int) -> SyntaxTree:
        if self.open or self.root.kind == "missing":
            self.is_complete = False
        while self.open:
            self._end_member(end)
            self.keys.pop()
            self.open.pop().end = end
        return SyntaxTree(self.root, self.is_complete)
