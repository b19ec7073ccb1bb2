"""Replace the parameters of a template by arguments (Specification 9.2).

An argument may be open until the template around this one is filled, or until the Include runs.
References to it keep their braces, and the result is still a template.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from asl.compose.placeholders import (
    RULE,
    ParameterReference,
    Part,
    escape_braces,
    member,
    parse,
    sole_reference,
    unescape_braces,
)
from asl.compose.shapes import DOCUMENT, Shape, StringUse
from asl.core.diagnostics import Finding, did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.expr.query_protocol import query_source
from asl.expr.templates import SUFFIX

__all__ = ["MAX_INSERTED", "Argument", "OpenArgument", "Substitution", "TooLarge"]

MAX_INSERTED = 16 * 1024 * 1024
"""Characters that may be inserted into one template."""

FOREIGN = ("Imports", "Parameters", "_lock", "Metadata", "Observability", "Comment")
"""Fields of a template that are not part of its machine."""


class TooLarge(Exception):
    """The result is larger than a document may be."""


@dataclass(frozen=True, slots=True)
class OpenArgument:
    """An argument that is not known yet."""

    dynamic: bool
    """Whether it depends on the data of a run."""


Argument: TypeAlias = Json | OpenArgument


class Substitution:
    """The substitution of one template.

    `arguments` has a value or an open argument for every parameter. With `data` the values come
    from a run.
    """

    def __init__(self, arguments: Mapping[str, Argument], *, data: bool = False) -> None:
        self.arguments = arguments
        self.data = data
        self.open = any(isinstance(each, OpenArgument) for each in arguments.values())
        self.findings: list[Finding] = []
        self.renamed: dict[str, str] = {}
        """JSON Pointers of members whose names were filled in, and how they are written."""
        self.whole: dict[str, str] = {}
        """JSON Pointers of texts that are a parameter and nothing else, and its name."""
        self.inserted = 0
        self.checked = False
        """Whether an argument from data is at a place that restricts its values."""

    def document(self, template: Mapping[str, Json]) -> dict[str, Json]:
        """Replace the parameters in a document's machine."""
        own = {key: value for key, value in template.items() if key not in FOREIGN}
        filled = self._value(own, "", DOCUMENT, "JSONPath")
        return {**template, **filled}

    def _value(self, value: Json, pointer: str, shape: Shape, language: str) -> Json:
        if type(value) is str:
            return self._text(value, pointer, shape.place, language) if "{{" in value else value
        if type(value) is list:
            return [
                self._value(each, f"{pointer}/{index}", shape, language)
                for index, each in enumerate(value)
            ]
        if type(value) is dict:
            return self._members(value, pointer, shape, language)
        return value

    def _members(
        self, value: Mapping[str, Json], pointer: str, shape: Shape, language: str
    ) -> dict[str, Json]:
        if "QueryLanguage" in shape.members:
            language = self._language(value, language)
        filled: dict[str, Json] = {}
        for key, part in value.items():
            place = f"{pointer}/{escape(key)}"
            name = key
            if "{{" in key:
                name = self._name(key, place)
                self.renamed[f"{pointer}/{escape(name)}"] = place
            inner = shape.of(key, part, language)
            if key == "Template" and type(part) is dict and "Template" in shape.members:
                filled[name] = part  # names in it are its own
            elif key == "Variable" and key in shape.members and type(part) is str:
                name, part = self._compared(part, place)
                filled[name] = part
            else:
                filled[name] = self._value(part, place, inner, language)
        if len(filled) < len(value):
            message = "members have the same name once the parameters are filled in"
            self.findings.append(Finding("V-TPL-02", message, pointer, at_key=True))
        return filled

    def _language(self, holder: Mapping[str, Json], otherwise: str) -> str:
        chosen = holder.get("QueryLanguage")
        if type(chosen) is str and "{{" in chosen:
            chosen = Substitution(self.arguments)._filled(chosen, "", StringUse.STRUCTURE)
        return chosen if chosen in ("JSONPath", "JSONata") else otherwise

    # Strings

    def _name(self, key: str, pointer: str) -> str:
        filled = self._filled(key, pointer, StringUse.STRUCTURE)
        return filled if type(filled) is str else compact(filled)

    def _text(self, text: str, pointer: str, place: StringUse, language: str) -> Json:
        computed = place in (StringUse.SETTING, StringUse.PAYLOAD, StringUse.TEXT)
        if computed and language == "JSONata" and query_source(text) is not None:
            place = StringUse.EXPRESSION
        filled = self._filled(text, pointer, place)
        if self.data and computed and _evaluated(filled, language):
            message = "a value from the data would be read as an expression here"
            self.findings.append(Finding("V-TPL-04", message, pointer))
        return filled

    def _filled(self, text: str, pointer: str, place: StringUse) -> Json:
        """Replace the parameters in a text; a sole reference becomes the value itself."""
        try:
            written = parse(text)
            parts = [self._part(part, text, pointer, place) for part in written]
        except ExpressionFault as fault:
            if place is not StringUse.REMARK:
                self.findings.append(Finding(fault.code, fault.message, pointer, fault.hint))
            return text
        if len(parts) == 1:
            if isinstance(written[0], ParameterReference):
                self.whole[pointer] = written[0].name
            return parts[0]
        return "".join(part if type(part) is str else compact(part) for part in parts)

    def _part(self, part: Part, text: str, pointer: str, place: StringUse) -> Json:
        """Return the replacement of a part of a text; raises ExpressionFault."""
        braces = self.open or place is StringUse.TEXT
        if isinstance(part, str):
            if (fault := member(part, self.arguments)) is not None:
                raise fault
            return part if braces else unescape_braces(part)
        given = self._given(part)
        if not isinstance(given, OpenArgument):
            value = part.value(given)
            self.inserted += _length(value)
            if self.inserted > MAX_INSERTED:
                raise TooLarge
            return escape_braces(value) if braces else value
        if given.dynamic and place in _FIXED:
            message = f"{part.name!r} is known only when the Include runs, and this is"
            finding = Finding("V-TPL-04", f"{message} {place.value}", pointer, _FIXED[place])
            self.findings.append(finding)
        self.checked |= given.dynamic and place is StringUse.SETTING
        return text[part.start : part.end]

    def _given(self, part: ParameterReference) -> Argument:
        if part.name in self.arguments:
            return self.arguments[part.name]
        near = did_you_mean(part.name, self.arguments)
        hint = near or f"declare it in 'Parameters', or write {{{{$.{part.name}}}}} for data"
        raise ExpressionFault(f"there is no parameter {part.name!r}", part.start, RULE, hint)

    def _compared(self, text: str, pointer: str) -> tuple[str, Json]:
        """Replace the parameters in a `Variable`; a value that is no path is compared itself."""
        reference = sole_reference(text)
        if reference is None or reference.name not in self.arguments:
            return "Variable", self._filled(text, pointer, StringUse.EXPRESSION)
        given = self.arguments[reference.name]
        if isinstance(given, OpenArgument):
            self.checked |= given.dynamic
            return "Variable", text
        value = self._filled(text, pointer, StringUse.PAYLOAD)
        path = type(value) is str and value.startswith("$") and not self.data
        if path or type(value) in (dict, list):
            return "Variable", value
        quoted = compact(value).replace("\\", r"\\").replace("'", r"\'")
        return "Variable.$", f"States.StringToJson('{quoted}')"


_FIXED = {
    StringUse.STRUCTURE: "pass a literal, or decide with a Choice",
    StringUse.EXPRESSION: "pass a literal, or read the value from the input of the template",
}
"""Where no value of the data may stand, and what to do instead."""


def _length(value: Json) -> int:
    return len(value if type(value) is str else compact(value))


def _evaluated(value: Json, language: str) -> bool:
    """Return whether any part of a value would be evaluated in a template field."""
    if type(value) is str:
        return language == "JSONata" and query_source(value) is not None
    if type(value) is list:
        return any(_evaluated(item, language) for item in value)
    if type(value) is dict:
        computed = language == "JSONPath" and any(key.endswith(SUFFIX) for key in value)
        return computed or any(_evaluated(item, language) for item in value.values())
    return False
