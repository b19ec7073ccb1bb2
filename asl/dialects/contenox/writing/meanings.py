"""What paths, payload templates and queries of a document mean for a chain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.contenox.writing.values import (
    Constant,
    Members,
    Part,
    Text,
    Unknown,
    Value,
    Why,
    at,
    flat,
    made,
    merged,
)
from asl.expr.intrinsics import grammar
from asl.expr.intrinsics.strings import FormatPlaceholder, template
from asl.expr.jsonata.parser import parse
from asl.expr.paths.syntax import parse_path
from asl.expr.query_protocol import query_source
from asl.expr.templates import SUFFIX

__all__ = ["CAUGHT", "Reader"]

UNKNOWN: Final = Unknown()
CAUGHT: Final = Members(None, (("Error", Part("last_error")), ("Cause", Part("last_error"))))
"""What a catcher is given: a chain keeps one text."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what a state says about data; what no chain can say is Unknown."""

    env: Env
    input: Value
    """What `$`, or `$states.input`, is."""
    result: Value = UNKNOWN
    why: Why = None
    caught: bool = False

    # Payload templates, and queries in structures

    def template(self, template: Json) -> Value:
        """Return what a payload template gives."""
        if isinstance(template, dict):
            members = {
                key.removesuffix(SUFFIX): self.expression(each)
                if key.endswith(SUFFIX)
                else self.template(each)
                for key, each in template.items()
            }
            return made(members, self.why)
        if isinstance(template, list):
            return self._listed([self.template(each) for each in template])
        return Constant(template)

    def structure(self, value: Json) -> Value:
        """Return what a structure with queries gives."""
        if isinstance(value, dict):
            return made({key: self.structure(each) for key, each in value.items()}, self.why)
        if isinstance(value, list):
            return self._listed([self.structure(each) for each in value])
        source = query_source(value) if isinstance(value, str) else None
        return Constant(value) if source is None else self.query(source)

    def _listed(self, items: list[Value]) -> Value:
        if all(isinstance(each, Constant) for each in items):
            return Constant([each.value for each in items if isinstance(each, Constant)])
        return Unknown(self.why)

    # Paths and intrinsic functions

    def expression(self, text: Json) -> Value:
        """Return what a path or an intrinsic call gives."""
        if not isinstance(text, str):
            return Unknown(self.why)
        try:
            return self.path(text) if text.startswith("$") else self._call(grammar.parse(text))
        except ExpressionFault:
            return Unknown(self.why)

    def path(self, text: str) -> Value:
        """Return what a path leads to; raises ExpressionFault."""
        path = parse_path(text)
        steps = tuple(each for each in path.segments if isinstance(each, str | int))
        if len(steps) < len(path.segments):
            return Unknown(self.why)
        if path.root == "$":
            return self._known(at(self.input, steps))
        if path.root == "$$":
            return self._context(steps)
        return self._known(at(self.env.variable(path.root), steps))

    def _context(self, steps: tuple[str | int, ...]) -> Value:
        if steps[:2] == ("Execution", "Input"):
            return Part("input", steps[2:])
        return Unknown(self.why)

    def _known(self, value: Value) -> Value:
        if not isinstance(value, Unknown):
            return value
        return replace(value, why=value.why or self.why)

    def _call(self, call: grammar.Argument) -> Value:
        if isinstance(call, grammar.LiteralArgument | grammar.TextArgument):
            return Constant(call.value)
        if isinstance(call, grammar.PathArgument):
            return self.path(call.text)
        if call.name != "States.Format" or not isinstance(call.arguments[0], grammar.TextArgument):
            return Unknown(self.why)
        given = [self._call(each) for each in call.arguments[1:]]
        parts = template(call.arguments[0].raw)
        places = [each for each in parts if isinstance(each, FormatPlaceholder)]
        if len(places) != len(given) or any(each.decimals is not None for each in places):
            return Unknown(self.why)
        if any(isinstance(each, Unknown | Members) for each in given):
            return Unknown(self.why)
        coming = iter(given)
        return flat(tuple(Constant(p) if isinstance(p, str) else next(coming) for p in parts))

    # Queries

    def query(self, source: str) -> Value:
        """Return what a query gives."""
        try:
            return self.node(parse(source).tree)
        except (ExpressionFault, RecursionError):
            return Unknown(self.why)

    def node(self, node: Any) -> Value:
        """Return what a node of a query gives."""
        if node.predicate or (node.type != "path" and node.group is not None):
            return Unknown(self.why)
        handle = _NODES.get(node.type)
        return Unknown(self.why) if handle is None else handle(self, node)

    def _constant(self, node: Any) -> Value:
        return Constant(node.value)

    def _variable(self, node: Any) -> Value:
        if node.value in ("", "$", "states"):
            return Unknown(self.why)
        return self._known(self.env.variable(node.value))

    def _steps(self, node: Any) -> Value:
        first, *rest = node.steps
        names = [step.value for step in rest]
        if first.type != "variable" or any(
            step.type != "name" or step.predicate or step.stages or step.focus or step.index
            for step in rest
        ):
            return Unknown(self.why)
        if first.predicate or first.stages or node.group is not None:
            return Unknown(self.why)
        if first.value != "states":
            return self._known(at(self._variable(first), tuple(names)))
        if names[:3] == ["context", "Execution", "Input"]:
            return Part("input", tuple(names[3:]))
        known: Mapping[str, Value] = {"input": self.input, "result": self.result}
        if self.caught:
            known = {"input": self.input, "errorOutput": CAUGHT}
        if names and names[0] in known:
            return self._known(at(known[names[0]], tuple(names[1:])))
        return Unknown(self.why)

    def _binary(self, node: Any) -> Value:
        if node.value != "&":
            return Unknown(self.why)
        parts = self.node(node.lhs), self.node(node.rhs)
        if any(isinstance(each, Unknown | Members) for each in parts):
            return Unknown(self.why)
        return flat(parts)

    def _unary(self, node: Any) -> Value:
        if node.value == "[":
            return self._listed([self.node(each) for each in node.expressions])
        if node.value != "{":
            return Unknown(self.why)
        pairs = [(self.node(key), self.node(each)) for key, each in node.lhs_object]
        if not all(isinstance(key, Constant) and isinstance(key.value, str) for key, _ in pairs):
            return Unknown(self.why)
        return made({key.value: each for key, each in pairs if isinstance(key, Constant)}, self.why)

    def _block(self, node: Any) -> Value:
        return self.node(node.expressions[0]) if len(node.expressions) == 1 else Unknown(self.why)

    def _function(self, node: Any) -> Value:
        arguments = node.arguments
        name = node.procedure.value if node.procedure.type == "variable" else None
        if name == "string" and len(arguments) == 1:
            value = self.node(arguments[0])
            return (
                flat((value,)) if isinstance(value, Part | Text | Constant) else Unknown(self.why)
            )
        if name != "merge" or len(arguments) != 1 or arguments[0].value != "[":
            return Unknown(self.why)
        found: Value | None = None
        for each in arguments[0].expressions:
            value = self.node(each)
            if found is None:
                found = value
            elif isinstance(value, Members) and value.base is None:
                found = merged(found, dict(value.members), self.why)
            elif isinstance(value, Constant) and isinstance(value.value, dict):
                new = {key: Constant(item) for key, item in value.value.items()}
                found = merged(found, new, self.why)
            else:
                return Unknown(self.why)
        return found or Constant({})


_Handler = Callable[[Reader, Any], Value]
_NODES: Final[Mapping[str, _Handler]] = {
    "string": Reader._constant,
    "number": Reader._constant,
    "value": Reader._constant,
    "variable": Reader._variable,
    "path": Reader._steps,
    "binary": Reader._binary,
    "unary": Reader._unary,
    "block": Reader._block,
    "function": Reader._function,
}
