"""Parse the block structure of YAML with tolerance, line by line."""

import re
from dataclasses import dataclass
from typing import Final

from asl.editor.json_syntax import parse_flow, parse_json, plain_value, string_value
from asl.editor.syntax import SyntaxMember, SyntaxPart, SyntaxTree

__all__ = ["CURSOR", "parse_yaml", "parse_yaml_before"]

CURSOR: Final = "\x00"
"""The character that marks the cursor at the end of a text."""

_KEY: Final = re.compile(
    r"""("(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'"""
    r"""|(?!- |[{\[|>&*!"'\#])(?:[^:#\n]++|:(?!\s|$)|(?<!\s)\#)++)"""
    r"""[ \t]*:(?=\s|$)"""
)
_PROPERTIES: Final = re.compile(r"(?:[!&][^\s{}\[\]]*(?:[ \t]+|$))+")
_TYPED: Final = re.compile(rf"[^\s{CURSOR}]*{CURSOR}")
"""A word at the cursor, below a key without a value: the first key of an object."""
_BLOCK: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?$")
_COMMENT: Final = re.compile(r"[ \t]+#.*$|[ \t]+$")


def parse_yaml(text: str) -> SyntaxTree:
    """Parse a text; only its first document."""
    return _Lines(text).parse()


def parse_yaml_before(root: SyntaxPart, text: str, offset: int, end: str) -> SyntaxPart:
    """Parse the text before an offset and *end*, with what is known of the whole text.

    Only the lines of the last member before the offset are parsed again.

    Args:
        root: The root of the whole text.
        text: The whole text.
        offset: The offset.
        end: Text to parse after that before the offset.
    """
    lines = _Lines(text[:offset] + end)
    here = text.rfind("\n", 0, offset) + 1
    part, path = root, list[tuple[SyntaxPart, int]]()
    while part.members and text[part.start] not in "{[" and part.embedded is None:
        count = sum(_start(each) < here for each in part.members)
        if count == 0:
            break
        path.append((part, count))
        part = part.members[count - 1].value
    while path and not _begins_line(text, *path[-1]):
        path.pop()
    for depth, (part, count) in enumerate(path):
        is_last = depth == len(path) - 1
        before = part.members[: count - 1]
        indent = part.start - text.rfind("\n", 0, part.start) - 1
        lines.reopen(_Level(indent, SyntaxPart(part.kind, part.start, part.start, members=before)))
        if is_last:
            lines.at = text.rfind("\n", 0, _start(part.members[count - 1])) + 1
        else:
            missing = SyntaxPart("missing", part.start, part.start)
            before.append(SyntaxMember(part.members[count - 1].key, missing))
    return lines.parse().root


def _start(member: SyntaxMember) -> int:
    return (member.key or member.value).start


def _begins_line(text: str, part: SyntaxPart, count: int) -> bool:
    """Return whether a member, not the first one, begins its line, and so does its container."""
    if count == 1:
        return False
    prefixes = [
        text[text.rfind("\n", 0, at) + 1 : at]
        for at in (part.start, _start(part.members[count - 1]))
    ]
    marks = ("", "-") if part.kind == "array" else ("", "")
    return prefixes[1].strip(" ") == marks[1] and not prefixes[0].strip(" -")


@dataclass(slots=True)
class _Level:
    """An open object or array, and the column at which its members begin."""

    indent: int
    part: SyntaxPart


class _Lines:
    def __init__(self, text: str) -> None:
        self.text = text
        self.root = SyntaxPart("missing", 0, 0)
        self.levels: list[_Level] = []
        self.at = 0
        self.is_complete = True

    def reopen(self, level: _Level) -> None:
        """Open a container with members."""
        self._fill(level.part)
        self.levels.append(level)

    def parse(self) -> SyntaxTree:
        text = self.text
        while self.at < len(text):
            end = self._line_end(self.at)
            line = text[self.at : end]
            start, self.at = self.at, end + 1
            if line[:3] in ("---", "...") and not line[3:4].strip():
                if self.root.kind != "missing":
                    break
                continue
            content = line.lstrip(" ")
            if line.startswith("%") or not content.strip() or content[0] == "#":
                continue
            self._line(start, end - len(content), end)
        for level in self.levels:
            level.part.end = max(level.part.end, _end_of(level.part))
        return SyntaxTree(self.root, self.is_complete and self.root.kind != "missing")

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > start and self.text[end - 1] == "\r" else end

    def _line(self, line: int, start: int, end: int) -> None:
        """Parse the rest of a line from an offset on."""
        while self.text.startswith("-", start) and self.text[start + 1 : start + 2] in " \n\r\t":
            array = self._container("array", start - line, start)
            after = start + 1
            start = after + len(self.text[after:end]) - len(self.text[after:end].lstrip(" "))
            array.members.append(SyntaxMember(None, SyntaxPart("missing", after, after)))
            array.end = end
            if start >= end or self.text[start] == "#":
                return
        key = _KEY.match(self.text, start, end)
        if key is None:
            self._scalar(line, start, end)
            return
        part = self._container("object", start - line, start)
        name = key[1].strip(" \t") or key[1]
        value = string_value(name) if name[0] in "\"'" else name
        named = SyntaxPart("string", start, start + len(name), value)
        part.members.append(SyntaxMember(named, SyntaxPart("missing", key.end(), key.end())))
        part.end = end
        rest = self.text[key.end() : end].lstrip()
        if rest and rest[0] != "#":
            start = end - len(rest)
            self._value(start, end, start - line)

    def _container(self, kind: str, indent: int, start: int) -> SyntaxPart:
        """Return the object or array for a member at a column."""
        while self.levels and self.levels[-1].indent > indent:
            self._close()
        if self.levels and self.levels[-1].indent == indent:
            top = self.levels[-1].part
            if top.kind == kind:
                return top
            if top.kind == "array":
                self._close()  # a key ends the array at the same column
                if self.levels and self.levels[-1].indent == indent:
                    return self.levels[-1].part
        part = SyntaxPart(kind, start, start)
        if not self._fill(part):
            self.is_complete = False
            if self.levels and self.levels[-1].part.kind == kind:
                return self.levels[-1].part
        self.levels.append(_Level(indent, part))
        return part

    def _close(self) -> None:
        part = self.levels.pop().part
        part.end = _end_of(part)

    def _fill(self, part: SyntaxPart) -> bool:
        """Use a part as the value that is missing; return whether one was."""
        if not self.levels:
            if self.root.kind == "missing":
                self.root = part
                return True
            return False
        members = self.levels[-1].part.members
        if not members or members[-1].value.kind != "missing":
            return False
        members[-1] = SyntaxMember(members[-1].key, part)
        return True

    def _scalar(self, line: int, start: int, end: int) -> None:
        """Parse a line without a key: a value, the next line of one, or a key without its colon."""
        indent = start - line
        top = self.levels[-1] if self.levels else None
        is_typed = (
            top is not None
            and top.part.kind == "object"
            and (indent <= top.indent or _TYPED.fullmatch(self.text, start, end) is not None)
        )
        if not is_typed and (top is None or top.part.members):
            if self._is_missing(top) or top is None:
                self._value(start, end, indent)
            elif top.part.members[-1].value.kind == "string":
                top.part.members[-1].value.end = end
            return
        word = _COMMENT.sub("", self.text[start:end])
        self.is_complete = False
        value = string_value(word) if word[0] in "\"'" else word
        named = SyntaxPart("string", start, start + len(word), value)
        part = self._container("object", indent, start)
        part.members.append(SyntaxMember(named, SyntaxPart("missing", end, end)))
        part.end = end

    def _is_missing(self, top: _Level | None) -> bool:
        return top is None or bool(
            top.part.members and top.part.members[-1].value.kind == "missing"
        )

    def _value(self, start: int, end: int, column: int) -> None:
        """Parse a value that begins in this line, after its tags and anchors."""
        has_properties = self.text[start] in "!&"
        properties = _PROPERTIES.match(self.text, start, end) if has_properties else None
        start = properties.end() if properties else start
        if start >= end or self.text[start] == "#":
            return
        first = self.text[start]
        if first in "{[":
            part, after, is_complete = parse_flow(self.text, start)
            self.is_complete &= is_complete
            self._fill(part)
            if after > end:
                self.at = self._line_end(after) + 1
        elif first in "|>" and _BLOCK.match(self.text[start:end]):
            self._fill(self._block(start, end))
        elif first in "\"'":
            self._fill(self._quoted(start))
        elif properties and _KEY.match(self.text, start, end):
            self._line(start - column, start, end)
        else:
            word = _COMMENT.sub("", self.text[start:end])
            self._fill(SyntaxPart("string", start, start + len(word), plain_value(word)))

    def _quoted(self, start: int) -> SyntaxPart:
        pattern = _DOUBLE if self.text[start] == '"' else _SINGLE
        found = pattern.match(self.text, start)
        if found is None:  # not closed: only this line
            self.is_complete = False
            end = self._line_end(start)
            return SyntaxPart("string", start, end, self.text[start + 1 : end])
        self.at = max(self.at, self._line_end(found.end()) + 1)
        return SyntaxPart("string", start, found.end(), string_value(found[0]))

    def _block(self, start: int, end: int) -> SyntaxPart:
        """Parse a block scalar, and the definition in JSON that it may hold."""
        around = self.levels[-1].indent if self.levels else -1
        begin = self.at
        stop = end
        while self.at < len(self.text):
            line_end = self._line_end(self.at)
            line = self.text[self.at : line_end]
            if line.strip():
                if len(line) - len(line.lstrip(" ")) <= around:
                    break
                stop = line_end
            self.at = line_end + 1
        content = self.text[begin:stop] if stop > end else ""
        part = SyntaxPart("string", start, stop, content)
        if content.lstrip().startswith("{"):
            tree = parse_json(self.text, begin, stop)
            part.embedded = tree.root
            self.is_complete &= tree.is_complete
        return part


_DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SINGLE: Final = re.compile(r"'(?:[^']|'')*+'")


def _end_of(part: SyntaxPart) -> int:
    """Return the end of an object or array: that of its last member."""
    last = part.members[-1] if part.members else None
    if last is None:
        return part.end
    return max(last.value.end, last.key.end if last.key is not None else 0)
