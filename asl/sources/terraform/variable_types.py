"""Convert values of input variables to their declared types."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asl.core.opaque import PLACEHOLDER
from asl.sources.definition import SourcePart
from asl.sources.terraform import syntax
from asl.sources.terraform.functions import FUNCTIONS, text_of
from asl.sources.terraform.scope import EvaluatorProtocol, HclScope
from asl.sources.text import TrackedText

__all__ = ["TypeConverter"]

SCALARS: Final = ("bool", "number", "string")


@dataclass(frozen=True, slots=True)
class TypeConverter:
    """Converts a value to a type, and fills in the defaults of optional attributes."""

    evaluator: EvaluatorProtocol
    scope: HclScope
    """Scope of the value."""
    types: HclScope
    """Scope of the type."""

    def convert(self, part: SourcePart, kind: syntax.HclNode | None) -> SourcePart:
        """Return a value in its declared type.

        Raises:
            InvalidDocument: A text is no number or no truth value.
        """
        value = part.value
        match kind, value:
            case syntax.HclName(name=name), bool() | int() | float() | TrackedText():
                return self.convert_scalar(part, name, kind)
            case syntax.HclCall(name="object", arguments=[syntax.HclObject() as declared]), dict():
                value = dict(self.attributes(part, value, declared))
            case syntax.HclCall(name="map", arguments=[item_kind]), dict():
                value = {name: self.convert(item, item_kind) for name, item in value.items()}
            case syntax.HclCall(name="list" | "set", arguments=[item_kind]), list():
                value = [self.convert(item, item_kind) for item in value]
            case syntax.HclCall(name="tuple", arguments=[syntax.HclTuple() as declared]), list():
                pairs = zip(value, declared.items, strict=False)
                value = [self.convert(item, item_kind) for item, item_kind in pairs]
        return SourcePart(value, part.at, part.key_at)

    def attributes(
        self, part: SourcePart, members: dict[str, SourcePart], kind: syntax.HclObject
    ) -> Iterator[tuple[str, SourcePart]]:
        """Yield the declared attributes of an object."""
        for key, declared in kind.items:
            name = self.evaluator.text(key, self.types).string
            found = members.get(name)
            if isinstance(declared, syntax.HclCall) and declared.name == "optional":
                declared, *default = declared.arguments
                if found is None or (found.value is None and default):
                    found = self.default(default, part.at)
            if found is not None:
                yield name, self.convert(found, declared)

    def default(self, nodes: list[syntax.HclNode], at: int) -> SourcePart:
        """Return the value of an attribute that is absent: its default, else null."""
        values = [self.evaluator.value(node, self.types) for node in nodes]
        json = [self.evaluator.json(value, self.types) for value in values]
        return self.evaluator.constant(json[0] if json else None, self.scope, at)

    def convert_scalar(self, part: SourcePart, name: str, kind: syntax.HclNode) -> SourcePart:
        """Return a text, number or truth value in a scalar type.

        Raises:
            InvalidDocument: The text is no number or no truth value.
        """
        value = part.value.string if isinstance(part.value, TrackedText) else part.value
        text = text_of(value)
        if name not in SCALARS or PLACEHOLDER.search(text):
            return part
        try:
            converted = FUNCTIONS[f"to{name}"](value)
        except ValueError:
            message = f"the value {text!r} of a variable is not of type {name}"
            raise self.evaluator.error(kind, self.types, message) from None
        if type(converted) is type(value):
            return part
        return SourcePart(
            self.evaluator.constant(converted, self.scope, part.at).value, part.at, part.key_at
        )
