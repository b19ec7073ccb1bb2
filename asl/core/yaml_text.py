"""Read YAML text as YAML 1.2 with the core schema, and nothing more than JSON can say.

The parser's events are turned into values here, so that every bound holds while reading. Only
JSON's types are known: `on`, `yes` and dates stay text, `010` is ten, keys are strings. Aliases
are followed within limits. Merge keys (`<<`) are not part of YAML 1.2 and are refused.
"""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from asl.core import json_text
from asl.core.pointers import pointer_to
from asl.core.source import DEFAULT_LIMITS, MAX_FAULTS, Fault, Limits, Span
from asl.core.values import MAX_DIGITS, MAX_INTEGER, SURROGATE, Json
from asl.core.yaml_schema import CORE, Schema

_SPECIAL = ("{%", "%", "@", "`", "*", "&", "!", "{{")
"""What begins no text in YAML."""
QUOTED = "put text with special characters in quotes"
_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASES = {"0o": 8, "0x": 16}
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}


def core_scalar(text: str) -> Json:
    """The value of a plain scalar in YAML 1.2; text where it is no finite number."""
    return _Builder(DEFAULT_LIMITS, CORE).plain(text)


def loads(text: str, limits: Limits, schema: Schema = CORE) -> tuple[Json, Span, list[Fault]]:
    """The value of a YAML text and where its parts stand, or the faults it has."""
    builder = _Builder(limits, schema)
    try:
        for event in _events(text):
            builder.feed(event)
    except _Stop:
        pass
    except _NotYaml as error:
        offset = builder.at if error.offset is None else min(error.offset, len(text))
        builder.faults.append(
            Fault(
                "READ-01", str(error), offset, _advice(str(error), text, offset), builder.pointer()
            )
        )
    return builder.value, builder.root, builder.faults


class _NotYaml(Exception):
    """The parser met a syntax error; `offset` is None where it does not say the place."""

    def __init__(self, message: str, offset: int | None) -> None:
        super().__init__(message)
        self.offset = offset


def _events(text: str) -> Iterator[Any]:
    """The events of ruamel's parser, with its many errors made one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise _NotYaml(problem, mark.index if mark else None) from None
    except ReaderError as error:
        character = f"the character U+{error.character:04X} is not allowed in YAML"
        raise _NotYaml(character, error.position) from None
    except (ValueError, OverflowError):  # from chr(): no character of Unicode has this number
        raise _NotYaml("an escape names no character", None) from None


def _advice(problem: str, text: str, offset: int) -> str | None:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "indent with blanks, not with tabs"
    if problem.endswith("found '<tag>'"):
        return "a value takes one tag: write the outer one as a key, such as Fn::GetAZs: !Ref Name"
    if problem.startswith("expected <block end>") or (
        problem.startswith("mapping values") and _is_deeper(line, text[: start - 1])
    ):
        return "indent it like its neighbours"
    if problem.startswith("mapping values") and ": " in line[: offset - start]:
        return "put text with a colon and a blank in quotes"
    if problem.startswith("found unknown escape"):
        return "in double quotes a backslash begins an escape: use single quotes, or write two"
    special = line.lstrip().startswith(_SPECIAL) or text.startswith(_SPECIAL, offset)
    unnamed = problem.startswith("expected alphabetic or numeric")  # after * or &
    return QUOTED if special or unnamed or ": {" in line else None


def _is_deeper(line: str, before: str) -> bool:
    """Whether a line is indented deeper than the one before it, which has its value already."""
    last = before.rstrip().rpartition("\n")[2]
    deeper = len(line) - len(line.lstrip()) > len(last) - len(last.lstrip())
    return deeper and not last.endswith(":")


def _tag(event: Any) -> str | None:
    """The tag of a node. ruamel decodes long tags in quadratic time; no known one is long."""
    if event.ctag is None:
        return None
    suffix = event.ctag.suffix or ""
    return str(event.tag) if len(suffix) <= 100 else f"!{suffix[:100]}"


class _Stop(Exception):
    """Nothing may be read after this point."""


class _Anchor:
    """A finished node that aliases may repeat, with what it weighs when written out."""

    __slots__ = ("height", "nodes", "span", "value")

    def __init__(self, value: Json, span: Span, nodes: int, height: int) -> None:
        self.value = value
        self.span = span
        self.nodes = nodes
        self.height = height


class _Open:
    """A mapping or sequence whose end has not been read."""

    __slots__ = ("anchor", "height", "key", "key_at", "nodes", "span", "value", "wrapper")

    def __init__(
        self, value: Json, span: Span, anchor: str | None, wrapper: str | None = None
    ) -> None:
        self.value = value
        self.span = span
        self.anchor = anchor
        self.wrapper = wrapper
        self.key: str | None = None
        self.key_at = span.at
        self.nodes = 1
        self.height = 1


def _wrapped(value: Json, span: Span, key: str) -> tuple[dict[str, Json], Span]:
    """Return the object with one member for a tagged node."""
    return {key: value}, Span(span.at, {key: span})


def _merge(value: dict[str, Json], members: dict[str, Span]) -> None:
    """Take over the members of a merge key (YAML 1.1); those that are written out win."""
    span, given = members.pop("<<"), value.pop("<<")
    pairs = [(given, span)]
    if isinstance(span.members, list):
        pairs = list(zip(given, span.members, strict=True))
    for each, at in pairs:
        for key, place in at.members.items() if isinstance(at.members, dict) else ():
            if key not in value:
                value[key], members[key] = each[key], place


class _Builder:
    def __init__(self, limits: Limits, schema: Schema) -> None:
        self.limits = limits
        self.schema = schema
        self.faults: list[Fault] = []
        self.value: Json = None
        self.root = Span(0)
        self.at = 0
        self.documents = 0
        self.aliases = 0
        self.nodes = 0
        self.written = 0
        self.open: list[_Open] = []
        self.anchors: dict[str, _Anchor | None] = {}

    def feed(self, event: Any) -> None:
        """Take one parser event; ruamel's classes are distinguished by their names."""
        self.at = event.start_mark.index
        self.written += 1 + (getattr(event, "anchor", None) is not None)
        if self.written > self.limits.max_yaml_nodes:
            self.stop(
                "READ-04",
                f"the document has more than {self.limits.max_yaml_nodes} keys and values",
                "write large documents as JSON",
            )
        match type(event).__name__:
            case "ScalarEvent":
                self.scalar(event)
            case "MappingStartEvent":
                self.start(event, "map")
            case "SequenceStartEvent":
                self.start(event, "seq")
            case "MappingEndEvent" | "SequenceEndEvent":
                self.finish()
            case "AliasEvent":
                self.alias(event.anchor)
            case "DocumentStartEvent":
                self.documents += 1
                if self.documents > 1:
                    self.stop("READ-10", "a second document follows", "keep one per file")

    def start(self, event: Any, kind: str) -> None:
        if len(self.open) >= self.limits.max_depth:
            self.too_deep()
        if self.awaits_key():
            self.stop(
                "READ-08",
                "a key must be a string, not a collection",
                "put text that begins with { or [ in quotes",
            )
        tag = _tag(event)
        wrapper = None if tag is None else self.schema.tags.get(tag)
        if tag not in (None, "!", _TAG + kind) and wrapper is None:
            self.unknown_tag(tag)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        is_map = kind == "map"
        span = Span(self.at, {} if is_map else [])
        self.open.append(_Open({} if is_map else [], span, event.anchor, wrapper))

    def finish(self) -> None:
        done = self.open.pop()
        value, span, nodes, height = done.value, done.span, done.nodes, done.height
        if self.schema.old and type(value) is dict and "<<" in value:
            assert isinstance(span.members, dict)
            _merge(value, span.members)
        if done.wrapper is not None:
            value, span = _wrapped(value, span, done.wrapper)
            nodes, height = nodes + 1, height + 1
        if done.anchor is not None:
            self.anchors[done.anchor] = _Anchor(value, span, nodes, height)
        self.count(1)
        self.put(value, span, nodes, height)

    def scalar(self, event: Any) -> None:
        value = self.resolve_scalar(event)
        span = Span(self.at)
        wrapper = None if event.ctag is None else self.schema.tags.get(_tag(event) or "")
        nodes, height = 1, 0
        if wrapper is not None:
            value, span = _wrapped(value, span, wrapper)
            nodes, height = 2, 1
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchor(value, span, nodes, height)
        if self.awaits_key():
            if event.value == "<<" and event.style is None and not self.schema.old:
                self.add(
                    "READ-07",
                    "merge keys (<<) are not part of YAML 1.2",
                    "write the members out, or repeat a whole value with an alias",
                )
            if self.schema.old and type(value) is not str:
                value = event.value
            self.key(value, value if type(value) is str else event.value)
        else:
            self.count(1)
            self.put(value, span, nodes, height)

    def alias(self, name: str) -> None:
        self.aliases += 1
        if self.aliases > self.limits.max_aliases:
            self.stop("READ-05", f"more than {self.limits.max_aliases} aliases")
        if name not in self.anchors:
            self.stop("READ-01", f"no anchor &{name} before this alias", QUOTED)
        anchor = self.anchors[name]
        if anchor is None:
            self.stop("READ-06", f"*{name} is inside the value that it repeats")
        if len(self.open) + anchor.height > self.limits.max_depth:
            self.too_deep()
        if self.awaits_key():
            self.key(anchor.value, str(anchor.value))
        else:
            self.count(anchor.nodes)
            # The text behind the alias is the anchor's, its own place is here.
            self.put(anchor.value, Span(self.at, anchor.span.members), anchor.nodes, anchor.height)

    def awaits_key(self) -> bool:
        return bool(self.open) and type(self.open[-1].value) is dict and self.open[-1].key is None

    def key(self, value: Json, text: str) -> None:
        parent = self.open[-1]
        if type(value) is not str:
            self.add(
                "READ-08", "a key must be a string", f'put it in quotes: "{text}"' if text else None
            )
        elif text in parent.value:
            first = parent.span.members
            assert isinstance(first, dict)
            self.add(
                "V-TOP-01",
                f"the key {text!r} is given twice",
                "keep one of them",
                (first[text].key_at or 0, "it is first given here"),
                step=text,
            )
        parent.key = text
        parent.key_at = self.at

    def put(self, value: Json, span: Span, nodes: int, height: int) -> None:
        """Place a finished node in the container that holds it."""
        if not self.open:
            self.value, self.root = value, span
            return
        parent = self.open[-1]
        parent.nodes += nodes
        parent.height = max(parent.height, height + 1)
        if type(parent.value) is list:
            assert isinstance(parent.span.members, list)
            parent.value.append(value)
            parent.span.members.append(span)
        else:
            assert isinstance(parent.span.members, dict)
            assert parent.key is not None
            span.key_at = parent.key_at
            parent.value[parent.key] = value
            parent.span.members[parent.key] = span
            parent.key = None

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > self.limits.max_yaml_values:
            what = "with its aliases written out " if nodes > 1 else ""
            self.stop(
                "READ-05" if nodes > 1 else "READ-04",
                f"the document {what}has more than {self.limits.max_yaml_values} values",
                hint="write it as several documents, or let aliases repeat less",
            )

    def resolve_scalar(self, event: Any) -> Json:
        """The value of a scalar by the core schema (YAML 1.2, chapter 10.3)."""
        text = self.join_surrogates(event.value)
        if self.schema.expand is not None:
            text = self.schema.expand(text)
        tag = _tag(event)
        if (tag is None and event.style is not None) or tag in ("!", _TAG + "str"):
            return text
        if tag in self.schema.tags:
            return text
        if tag is None:
            return self.written_out(text) if self.schema.expand else self.plain(text)
        wanted = _TYPES.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
        if wanted is None:
            self.unknown_tag(tag)
            return text
        value = self.plain(text)
        if type(value) not in wanted:
            self.add("READ-07", f"{text!r} is no {tag.removeprefix(_TAG)}")
        return float(value) if float in wanted and type(value) is int else value

    def join_surrogates(self, text: str) -> str:
        """Join surrogate pairs, as JSON writes characters beyond U+FFFF; refuse single ones."""
        if text.isascii() or not SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.add("READ-09", "a lone surrogate is not a character", json_text.ALONE)
            return SURROGATE.sub("\ufffd", text)

    def written_out(self, text: str) -> Json:
        """The value of a plain scalar that was rewritten, perhaps into a collection in JSON."""
        if text.startswith(("[", "{")):
            value, faults = json_text.loads(text, self.limits)
            if not faults:
                return value
        return self.plain(text)

    def plain(self, text: str) -> Json:
        if text in self.schema.words:
            return self.schema.words[text]
        if text[0] not in "+-.0123456789":
            return text
        if self.schema.number is not None:
            found = self.schema.number(text)
            if type(found) is not float or abs(found) != float("inf"):
                return found
        if _INTEGER.fullmatch(text):
            return self.integer(text)
        if _NOT_FINITE.fullmatch(text):
            self.add("READ-02", f"{text} is not a JSON number", "use null or a string")
        elif _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                self.add("READ-02", f"{text} is too large for a number", json_text.QUOTED)
            return number
        return text

    def integer(self, text: str) -> int:
        base = _BASES.get(text[:2])
        if len(text) <= MAX_DIGITS + 1:
            value = int(text[2:], base) if base else int(text)
            if -MAX_INTEGER <= value <= MAX_INTEGER:
                return value
        self.add("READ-02", f"an integer of more than {MAX_DIGITS} digits", json_text.QUOTED)
        return 0

    def unknown_tag(self, tag: str) -> None:
        shown = tag.replace(_TAG, "!!")
        self.add("READ-07", f"the tag {shown} is not known here", "only JSON's own types are")

    def pointer(self) -> str:
        steps = [
            str(len(each.value)) if type(each.value) is list else each.key for each in self.open
        ]
        return pointer_to(step for step in steps if step is not None)

    def add(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        related: tuple[int, str] | None = None,
        step: str | None = None,
    ) -> None:
        pointer = self.pointer()
        if step is not None:
            pointer += pointer_to([step])
        self.faults.append(Fault(code, message, self.at, hint, pointer, related))
        if len(self.faults) >= MAX_FAULTS:
            raise _Stop

    def too_deep(self) -> NoReturn:
        message = f"nested deeper than {self.limits.max_depth} levels"
        self.stop("READ-03", message, json_text.TOO_DEEP)

    def stop(self, code: str, message: str, hint: str | None = None) -> NoReturn:
        self.add(code, message, hint)
        raise _Stop
