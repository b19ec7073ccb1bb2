"""JSONata in documents: templates with expressions in `{% ... %}` strings.

The closures take `$states` as their data: an object with `input`, and `result` or `errorOutput`
where it exists; `context` is added for expressions that read it (Specification 3.6).
"""

from functools import partial
from typing import NamedTuple

from asl.core.errors import EvaluationFailed
from asl.core.values import Json, excerpt, type_name
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.expr.jsonata import UNDEFINED, Query, QueryFault, limits, parse
from asl.expr.jsonata.faults import INTERNAL, OF_AWS, UNSUPPORTED
from asl.expr.jsonata.functions.dialects import DirectCall
from asl.expr.paths.closures import whole_context
from asl.expr.query_protocol import query_source

__all__ = ["ExpressionSite", "compile_template", "compile_typed", "query_source"]


class ExpressionSite(NamedTuple):
    """The place of an expression: its field and its state."""

    field: str
    state: str
    effect: bool
    """Whether the state performs an effect, so it can be retried."""
    token: bool
    """Whether the state has a task token."""
    aws: bool = False
    """Whether limits and messages are AWS's."""

    def parse(self, source: str) -> Query:
        """Return the query with this source."""
        return parse(source, limits(self.aws))


def compile_template(template: Json, site: ExpressionSite) -> Evaluate:
    """Compile JSON with expressions; parts without any are shared between evaluations."""
    return _compile_part(template, site, site.field) or constant(template)


def _compile_part(template: Json, site: ExpressionSite, field: str) -> Evaluate | None:
    """Compile the part of a template at *field*, None for a part without expressions."""
    if type(template) is str:
        source = query_source(template)
        if source is None:
            return None
        here = site if field == site.field else site._replace(field=field)
        return _compile_query(here.parse(source), here)
    if type(template) is list:
        items = [_compile_part(part, site, f"{field}[{i}]") for i, part in enumerate(template)]
        if not any(items):
            return None
        parts = [made or constant(part) for made, part in zip(items, template, strict=True)]
        return lambda states, frame: [part(states, frame) for part in parts]
    if type(template) is not dict:
        return None
    members = {key: _compile_part(part, site, f"{field}/{key}") for key, part in template.items()}
    if not any(members.values()):
        return None
    fields = [(key, made or constant(template[key])) for key, made in members.items()]
    return lambda states, frame: {key: value(states, frame) for key, value in fields}


def compile_typed(text: str, site: ExpressionSite, kind: str) -> Evaluate:
    """Compile an expression with a required JSON type: `number`, `array`, ..."""
    source = query_source(text)
    assert source is not None
    query = site.parse(source)
    return partial(_typed, query, site, kind, _compile_query(query, site))


def _typed(
    query: Query,
    site: ExpressionSite,
    kind: str,
    evaluate: Evaluate,
    states: Json,
    frame: ExpressionFrame,
) -> Json:
    value = evaluate(states, frame)
    if type_name(value) != kind:
        raise EvaluationFailed(
            f"{_describe(query, site)} returned an unexpected result type. Expected '{kind}', "
            f"but was '{type_name(value)}' for value: {excerpt(value)}",
            site.field,
        )
    return value


def _compile_query(query: Query, site: ExpressionSite) -> Evaluate:
    # A document may have hundreds of them; a closure's cells are many times as many objects.
    evaluate = partial(_evaluate, query, site)
    return evaluate if query.direct is None else partial(_call_directly, query.direct, evaluate)


def _evaluate(query: Query, site: ExpressionSite, states: Json, frame: ExpressionFrame) -> Json:
    shape = query.shape
    if shape.in_context:
        states = {**states, "context": whole_context(frame, site)}
    variables = frame.variables
    bindings = {name: variables[name] for name in shape.names if name in variables}
    bindings["states"] = states
    try:
        value = query(bindings, frame, frame.work)
    except QueryFault as fault:
        raise EvaluationFailed(
            f"{_describe(query, site)} {_error_text(fault, site)}", site.field
        ) from fault
    if value is UNDEFINED:
        raise EvaluationFailed(
            f"{_describe(query, site)} returned nothing (undefined).", site.field
        )
    return value


def _error_text(fault: QueryFault, site: ExpressionSite) -> str:
    if site.aws and fault.code == INTERNAL:
        return "threw an internal error during evaluation."
    if site.aws and fault.code == UNSUPPORTED:
        return "returned an unsupported result type."
    words = OF_AWS.get(fault.code) if site.aws else None
    return "threw an error during evaluation" + (f". {fault}" if words is None else f": {words}")


def _describe(query: Query, site: ExpressionSite) -> str:
    return f"The JSONata expression '{query.source}' specified for the field '{site.field}'"


def _call_directly(
    direct: DirectCall, evaluate: Evaluate, states: Json, frame: ExpressionFrame
) -> Json:
    value = direct(states)
    return evaluate(states, frame) if value is UNDEFINED else value
