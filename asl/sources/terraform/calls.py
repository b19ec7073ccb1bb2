"""Calls of Terraform functions, including those that need the evaluator."""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from asl.core import yaml_text
from asl.core.diagnostics import InvalidDocument
from asl.core.opaque import PLACEHOLDER
from asl.core.source import Source
from asl.core.values import Json, compact
from asl.core.work import WorkExceeded
from asl.sources.definition import SourcePart, UnknownValue
from asl.sources.terraform import parser, syntax
from asl.sources.terraform.functions import FUNCTIONS, METERED, PAIRING
from asl.sources.terraform.scope import EvaluatorProtocol, HclScope, UnknownResult
from asl.sources.text import TrackedText

TEXT_FUNCTIONS: Final = frozenset(
    ("chomp", "format", "indent", "join", "replace", "trimprefix", "trimspace", "trimsuffix")
)
"""Functions of strings; their results may contain stand-ins."""

__all__ = ["call", "checked_arguments", "read_template_call", "render_template_file"]

COMPARED: Final = 32
"""Items compared in one step."""
MAX_MATCHES: Final = 1_000
"""Paths that a pattern may match."""
REFUSALS: Final = (TypeError, ValueError, LookupError, AttributeError, StopIteration)
"""Errors of functions for invalid arguments."""


def call(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    """Return the result of a call.

    Raises:
        UnknownResult: The function is not supported, or needs a value known after deployment.
        InvalidDocument: An argument is invalid.
    """
    name = node.name.removeprefix("core::")
    if name in EVALUATED_FUNCTIONS:
        return EVALUATED_FUNCTIONS[name](evaluator, node, scope)
    if name not in FUNCTIONS and name not in METERED:
        raise UnknownResult
    parts = [evaluator.value(each, scope) for each in node.arguments]
    if name in TEXT_FUNCTIONS:
        parts = [evaluator.fill_unknown(part, scope) for part in parts]
    values = [evaluator.json(part, scope) for part in parts]
    if name == "join":  # the placeholder of an unknown list is a string
        values[1:] = [value if type(value) is list else [value] for value in values[1:]]
    if node.spread and type(values[-1]) is list:
        values += values.pop()
    meter = evaluator.reading.meter
    try:
        if name in PAIRING:
            meter.spend(sum(map(_items, values)) ** 2 // COMPARED)
        result = METERED[name](meter, *values) if name in METERED else FUNCTIONS[name](*values)
    except WorkExceeded as error:
        raise evaluator.reading.error(scope.source, node.at, "READ-04", str(error)) from None
    except (ArithmeticError, *REFUSALS) as error:
        if name in TEXT_FUNCTIONS and PLACEHOLDER.search(compact(values)):
            raise UnknownResult from None
        raise _argument_error(evaluator, node, scope, str(error)) from None
    return evaluator.constant(result, scope, node.at)


def _items(value: Json) -> int:
    """Return the number of items in a list, or in the lists of an object."""
    if type(value) is dict:
        return sum(map(_items, value.values()))
    return len(value) if type(value) is list else 1


def _argument_error(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope, reason: str
) -> InvalidDocument:
    message = f"the arguments of {node.name}() are invalid"
    return evaluator.error(node, scope, message, reason or None)


def _argument_values(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope
) -> Iterator[SourcePart]:
    """Yield the values of the arguments; raises UnknownResult for an unknown one."""
    for index, argument in enumerate(node.arguments):
        part = evaluator.value(argument, scope)
        if isinstance(part.value, UnknownValue):
            raise UnknownResult
        if node.spread and index == len(node.arguments) - 1 and isinstance(part.value, list):
            yield from part.value
        else:
            yield part


def _merge(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    members: dict[str, SourcePart] = {}
    for part in _argument_values(evaluator, node, scope):
        if not isinstance(part.value, dict):
            raise _argument_error(evaluator, node, scope, "objects are expected")
        evaluator.reading.count(scope.source, node.at, len(part.value))
        members |= part.value
    return SourcePart(members, node.at)


def _concat(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    items: list[SourcePart] = []
    for part in _argument_values(evaluator, node, scope):
        if not isinstance(part.value, list):
            raise _argument_error(evaluator, node, scope, "lists are expected")
        evaluator.reading.count(scope.source, node.at, len(part.value))
        items += part.value
    return SourcePart(items, node.at)


def _encode_json(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    (argument,) = checked_arguments(evaluator, node, scope, 1)
    part = evaluator.fill_unknown(evaluator.value(argument, scope), scope)
    return evaluator.constant(compact(evaluator.json(part, scope)), scope, node.at)


def _decode_yaml(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    (argument,) = checked_arguments(evaluator, node, scope, 1)
    text = evaluator.json(evaluator.value(argument, scope), scope)
    value, _, faults = yaml_text.loads(str(text), evaluator.reading.limits)
    if faults:
        raise _argument_error(evaluator, node, scope, faults[0].message)
    return evaluator.constant(value, scope, node.at)


def _try(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    """`try`: the first argument that can be evaluated."""
    for argument in node.arguments[:-1]:
        try:
            return evaluator.value(argument, scope)
        except InvalidDocument:
            continue
    return evaluator.value(
        checked_arguments(evaluator, node, scope, len(node.arguments) or 1)[-1], scope
    )


def _can(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    """`can`: whether the argument can be evaluated."""
    (argument,) = checked_arguments(evaluator, node, scope, 1)
    try:
        evaluator.json(evaluator.value(argument, scope), scope)
    except InvalidDocument:
        return SourcePart(False, node.at)
    return SourcePart(True, node.at)


def _file_content(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope
) -> SourcePart:
    text, _ = read_template_call(evaluator, node, scope)
    return evaluator.constant(text.string, scope, node.at)


def _file_exists(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    (argument,) = checked_arguments(evaluator, node, scope, 1)
    path = evaluator.text(argument, scope).string
    return SourcePart(os.path.isfile(evaluator.reading.place(path, scope.source, node.at)), node.at)


def _file_set(evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope) -> SourcePart:
    """`fileset`: the files of a folder that match a pattern."""
    arguments = checked_arguments(evaluator, node, scope, 2)
    folder, pattern = (evaluator.text(each, scope).string for each in arguments)
    if PLACEHOLDER.search(folder) or "{" in pattern or pattern.count("**") > 1:
        raise UnknownResult
    if os.path.isabs(pattern) or ".." in pattern or not pattern:
        raise _argument_error(evaluator, node, scope, "a relative pattern is expected")
    root = Path(evaluator.reading.place(folder, scope.source, node.at))
    found = sorted(each for each in islice(root.glob(pattern), MAX_MATCHES) if each.is_file())
    names = [each.relative_to(root).as_posix() for each in found]
    return evaluator.constant(names, scope, node.at)


def _template_string(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope
) -> SourcePart:
    """`templatestring`: a text used as a template."""
    template, values = checked_arguments(evaluator, node, scope, 2)
    text = evaluator.json(evaluator.value(template, scope), scope)
    names = evaluator.value(values, scope)
    if type(text) is not str or not isinstance(names.value, dict):
        raise _argument_error(
            evaluator, node, scope, "a template and an object of its values are expected"
        )
    source = Source(f"<templatestring in {scope.source.name}>", text, "yaml")
    filled, _ = _render(evaluator, source, names.value)
    return evaluator.constant(filled.string, scope, node.at)


def checked_arguments(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope, *counts: int
) -> list[syntax.HclNode]:
    """Return the arguments of a call, checked for their number.

    Raises:
        InvalidDocument: The number of arguments is not in *counts*.
    """
    if len(node.arguments) not in counts:
        raise _argument_error(evaluator, node, scope, f"{counts[0]} are expected")
    return node.arguments


def read_template_call(
    evaluator: EvaluatorProtocol, node: syntax.HclCall, scope: HclScope
) -> tuple[TrackedText, Source]:
    """Return the text of `file` or `templatefile`, with its variables replaced.

    Raises:
        InvalidDocument: The arguments are invalid, or the file cannot be read.
    """
    path = evaluator.text(checked_arguments(evaluator, node, scope, 1, 2)[0], scope).string
    file = evaluator.reading.file(path, scope.source, node.at)
    if node.name == "file":
        return TrackedText.from_source(file.text or "", 0), file
    names = (
        evaluator.value(node.arguments[1], scope) if len(node.arguments) == 2 else SourcePart({}, 0)
    )
    if not isinstance(names.value, dict):
        raise _argument_error(evaluator, node, scope, "the values of a template are an object")
    return _render(evaluator, file, names.value)


def render_template_file(
    evaluator: EvaluatorProtocol, block: syntax.HclBlock, source: Source
) -> tuple[TrackedText, Source]:
    """Return the text of the data source `render_template_file`.

    Raises:
        InvalidDocument: Its template is not a call of `file`, or the file cannot be read.
    """
    scope, attributes = HclScope(source), block.body.attributes
    values = evaluator.value(attributes["vars"], scope).value if "vars" in attributes else {}
    for inner in block.body.blocks:  # Terraform 0.11 writes it as a block
        if inner.kind == "vars":
            values = {k: evaluator.value(v, scope) for k, v in inner.body.attributes.items()}
    template = attributes.get("template")
    match template:
        case syntax.TemplateExpression(quoted=True, parts=[syntax.HclNode() as only]):
            template = only
    if not isinstance(template, syntax.HclCall) or template.name != "file":
        at = template.at if template else block.at
        message = "'template' of the data source template_file must be file(...)"
        raise evaluator.reading.error(source, at, "READ-16", message)
    path = evaluator.text(checked_arguments(evaluator, template, scope, 1)[0], scope).string
    file = evaluator.reading.file(path, source, template.at)
    return _render(evaluator, file, values if isinstance(values, dict) else {})


def _render(
    evaluator: EvaluatorProtocol, file: Source, values: Mapping[str, SourcePart]
) -> tuple[TrackedText, Source]:
    """Return a file used as a template with the given names."""
    file = file._replace(format="json" if file.format == "json" else "yaml")
    names = dict(values)
    for name in names:
        given = evaluator.reading.given_value(name)
        if given is not None:
            names[name] = evaluator.constant(given, HclScope(file), 0)
    return evaluator.text(parser.parse_template(file), HclScope(file, template_values=names)), file


EVALUATED_FUNCTIONS: Final[
    Mapping[str, Callable[[EvaluatorProtocol, syntax.HclCall, HclScope], SourcePart]]
] = {
    "can": _can,
    "concat": _concat,
    "file": _file_content,
    "fileexists": _file_exists,
    "fileset": _file_set,
    "jsonencode": _encode_json,
    "merge": _merge,
    "templatefile": _file_content,
    "templatestring": _template_string,
    "try": _try,
    "yamldecode": _decode_yaml,
}
"""Functions that need positions, files, or unknown values."""
