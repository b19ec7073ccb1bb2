"""Declarations of template parameters (Specification 9.2)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.pointers import escape
from asl.core.values import Json, compact, is_integer, is_number, json_equal, type_name

__all__ = ["Parameter", "check", "declared_parameters"]

_KINDS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "string": lambda value: type(value) is str,
    "number": is_number,
    "integer": is_integer,
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declaration; an absent or malformed part of it sets no constraint."""

    type: str | None = None
    required: bool = False
    default: Json = None
    enum: tuple[Json, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None

    @classmethod
    def read(cls, declaration: Json) -> "Parameter":
        """Return the valid parts of a declaration."""
        given = declaration if type(declaration) is dict else {}
        kind, enum = given.get("Type"), given.get("Enum")
        least, most = given.get("Min"), given.get("Max")
        return cls(
            kind if type(kind) is str and kind in _KINDS else None,
            given.get("Required") is True,
            given.get("Default"),
            tuple(enum) if type(enum) is list else None,
            least if is_number(least) else None,
            most if is_number(most) else None,
        )

    def violation(self, value: Json) -> str | None:
        """Return how a value violates the declaration; None if it fits."""
        if self.type is not None and not _KINDS[self.type](value):
            return f"must be of type {self.type}, and is of type {type_name(value)}"
        if self.enum is not None and not any(json_equal(value, each) for each in self.enum):
            return f"must be one of {', '.join(map(_shown, self.enum))}, not {_shown(value)}"
        if is_number(value):
            if self.minimum is not None and value < self.minimum:
                return f"must be at least {self.minimum}, not {_shown(value)}"
            if self.maximum is not None and value > self.maximum:
                return f"must be at most {self.maximum}, not {_shown(value)}"
        return None


def declared_parameters(template: Mapping[str, Json]) -> dict[str, Parameter]:
    """Return the parameters that a document declares, by name."""
    parameters = template.get("Parameters")
    if type(parameters) is not dict:
        return {}
    return {name: Parameter.read(declaration) for name, declaration in parameters.items()}


def check(template: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """Yield contradictions within declarations (V-TPL-01)."""
    for name, parameter in declared_parameters(template).items():
        place = f"{pointer}/Parameters/{escape(name)}"
        if parameter.default is not None and (misfit := parameter.violation(parameter.default)):
            yield Finding("V-TPL-01", f"the default of {name!r} {misfit}", f"{place}/Default")
        least, most = parameter.minimum, parameter.maximum
        if parameter.type not in (None, "number", "integer"):
            for key in ("Min", "Max"):
                if key in template["Parameters"][name]:
                    message = f"{key!r} bounds numbers, and {name!r} is of type {parameter.type}"
                    hint = "remove it: it has no effect"
                    yield Finding(
                        "V-TPL-01",
                        message,
                        f"{place}/{key}",
                        hint,
                        at_key=True,
                        severity=Severity.WARNING,
                    )
        if least is not None and most is not None and least > most:
            message = f"no number is at least {least} and at most {most}"
            yield Finding("V-TPL-01", message, f"{place}/Min")
        for index, value in enumerate(parameter.enum or ()):
            if parameter.type is not None and not _KINDS[parameter.type](value):
                message = f"{_shown(value)} is not of type {parameter.type}"
                yield Finding("V-TPL-01", message, f"{place}/Enum/{index}")


def _shown(value: Json) -> str:
    text = compact(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
