"""Documents with placeholders and documents in deployment templates.

A definition may have placeholders (`${Name}`) for values of a deployment. It may be part of a
template of SAM or CloudFormation, a Terraform file or a `serverless.yml`. `load` finds it and
inserts the caller's values; positions refer to the author's text.

The code for templates (`templates`) is imported on first use.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, Loadable, as_object, open_source, parse_source, read
from asl.core.errors import AslError
from asl.core.source import DOCUMENT_LIMITS, Limits, Source
from asl.core.values import Json, compact

__all__ = [
    "RESOURCES",
    "SERVERLESS",
    "TERRAFORM",
    "is_template",
    "load",
    "load_each",
    "may_be_template",
]

RESOURCES: Final = r"""^["']?Resources["']?[ \t]*:"""
SERVERLESS: Final = r"^stepFunctions[ \t]*:"
TERRAFORM: Final = r'^[ \t]*resource[ \t]+"aws_sfn_state_machine"'
_ANY: Final = "|".join((RESOURCES, SERVERLESS, TERRAFORM))


def may_be_template(found: Document | Source) -> bool:
    """Return whether a text or value may be a template, by a quick search."""
    if isinstance(found, Document):
        return "Resources" in found.value
    text = found.text or ""
    if found.format == "json":
        return '"Resources"' in text
    return (found.name or "").endswith(".tf") or re.search(_ANY, text, re.MULTILINE) is not None


Values: TypeAlias = Mapping[str, Json]

Foreign: TypeAlias = Callable[[Source | Document, Limits], Document | None]
"""Reads a document of another language; returns None for any other text."""

_NONE: Values = {}


def load(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    resource: str | None = None,
    variables: Values = _NONE,
    defaults: Values = _NONE,
    root: str | None = None,
    limits: Limits = DOCUMENT_LIMITS,
    foreign: Foreign | None = None,
) -> Document:
    """Read a document, or the one that a template defines as a resource.

    Args:
        source: A path, a text, bytes, a dict or an open file.
        name: The file name in diagnostics.
        format: `json` or `yaml`; guessed by default.
        resource: The name of the state machine in a template.
        variables: Values of placeholders and other references; an unused one draws a warning
            (READ-13).
        defaults: The same without the warning.
        root: The folder of files that a template may name; the template's own by default.
        limits: Bounds of the text and the value.
        foreign: Reads documents of other languages; called first.

    Raises:
        InvalidDocument: It cannot be read.
        DocumentNotFound: There is no such file.
        AslError: The template has several state machines and *resource* selects none.
    """
    found, suspected = _open(source, name, format, limits, foreign)
    if suspected:
        from asl.sources import templates

        template = templates.template_in(found, limits)
        if template is not None:
            values = templates.ReadOptions(variables, defaults, limits, root)
            return templates.load(template, resource, values)
    return _read_plain(found, resource, variables, defaults, limits)


def load_each(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    resource: str | None = None,
    variables: Values = _NONE,
    defaults: Values = _NONE,
    root: str | None = None,
    templates_only: bool = False,
    used: set[str] | None = None,
    limits: Limits = DOCUMENT_LIMITS,
    foreign: Foreign | None = None,
) -> list[Document | InvalidDocument]:
    """Read a document, or all of a template; return an InvalidDocument for each unreadable one.

    Args:
        templates_only: Whether to return nothing for other files, and for templates without state
            machines.
        used: Receives the real paths of the files that a template names.

    The other arguments are those of `load`.
    """
    found, suspected = _open(source, name, format, limits, foreign)
    if suspected:
        from asl.sources import templates

        template = templates.template_in(found, limits)
        if template is not None:
            if templates_only and not template.names:
                return []
            values = templates.ReadOptions(variables, defaults, limits, root)
            return templates.load_each(template, resource, values, used)
    return [] if templates_only else [_read_plain(found, resource, variables, defaults, limits)]


def is_template(source: Loadable) -> bool:
    """Return whether an input is a template; raises the errors of `load`."""
    found, suspected = _open(source, None, None, DOCUMENT_LIMITS, None)
    if not suspected:
        return False
    from asl.sources import templates

    return templates.template_in(found, DOCUMENT_LIMITS) is not None


def _open(
    source: Loadable, name: str | None, format: str | None, limits: Limits, foreign: Foreign | None
) -> tuple[Document | Source, bool]:
    """Return the unparsed text or the value, and whether it may be a template."""
    found: Document | Source
    if isinstance(source, dict):
        found = read(source, name=name)
    else:
        found = open_source(source, name=name, format=format, limits=limits)
    other = None if foreign is None else foreign(found, limits)
    return (found, may_be_template(found)) if other is None else (other, False)


def _read_plain(
    found: Document | Source,
    resource: str | None,
    variables: Values,
    defaults: Values,
    limits: Limits,
) -> Document:
    """Return a document that is not in a template, with its placeholders filled."""
    if resource is not None:
        raise AslError(f"there is no resource {resource!r}: the file is not a template")
    if isinstance(found, Document) and found.dialect != "asl":
        return found  # no other language has these placeholders
    text = found.text or "" if isinstance(found, Source) else compact(found.value)
    if not variables and "${" not in text:
        return as_object(parse_source(found, limits) if isinstance(found, Source) else found)
    from asl.sources import templates

    return templates.fill_placeholders(found, templates.ReadOptions(variables, defaults, limits))
