"""Documents as they lie in repositories: with placeholders, or within a template.

A definition may hold placeholders (`${Name}`) for what only a deployment knows, and it may stand in
a template of SAM or CloudFormation, in a Terraform file or a `serverless.yml`. `load` finds it,
fills in what is given, and every place points to where the author wrote it.

What only such documents need (`templates`) is imported when one of them comes.
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
    """Whether state machines may be defined in what is read, which is not looked at closely."""
    if isinstance(found, Document):
        return "Resources" in found.value
    text = found.text or ""
    if found.format == "json":
        return '"Resources"' in text
    return (found.name or "").endswith(".tf") or re.search(_ANY, text, re.MULTILINE) is not None


Values: TypeAlias = Mapping[str, Json]

Foreign: TypeAlias = Callable[[Source | Document, Limits], Document | None]
"""Reads what is written in another language; None for what is not."""

_NONE: Values = {}


def load(
    what: Loadable,
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
    """Read a document, or the one that a template holds under the name of a resource.

    `variables` are the values of placeholders and of whatever else a template refers to; one that
    nothing refers to draws a warning (READ-13), which is not so for those of `defaults`. Files that
    a template names are read below its own folder, or below `root`. `foreign` is asked first.

    Raises `InvalidDocument` for what cannot be read, `DocumentNotFound` for a path without a file,
    and `AslError` where it is not clear which state machine is meant.
    """
    found, suspected = _opened(what, name, format, limits, foreign)
    if suspected:
        from asl.sources import templates

        template = templates.template_in(found, limits)
        if template is not None:
            values = templates.ReadOptions(variables, defaults, limits, root)
            return templates.load(template, resource, values)
    return _plain(found, resource, variables, defaults, limits)


def load_each(
    what: Loadable,
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
    """Read a document, or all that a template holds: each one, or why it cannot be read.

    With `templates_only` that is nothing for what is no template, and for one without state
    machines. `used` takes up the real paths of the files that a template names. Everything else is
    as in `load`.
    """
    found, suspected = _opened(what, name, format, limits, foreign)
    if suspected:
        from asl.sources import templates

        template = templates.template_in(found, limits)
        if template is not None:
            if templates_only and not template.names:
                return []
            values = templates.ReadOptions(variables, defaults, limits, root)
            return templates.load_each(template, resource, values, used)
    return [] if templates_only else [_plain(found, resource, variables, defaults, limits)]


def is_template(what: Loadable) -> bool:
    """Whether state machines are defined in what is read: it is no document itself.

    Raises InvalidDocument and DocumentNotFound as `load` does.
    """
    found, suspected = _opened(what, None, None, DOCUMENT_LIMITS, None)
    if not suspected:
        return False
    from asl.sources import templates

    return templates.template_in(found, DOCUMENT_LIMITS) is not None


def _opened(
    what: Loadable, name: str | None, format: str | None, limits: Limits, foreign: Foreign | None
) -> tuple[Document | Source, bool]:
    """What is to be read, a text not parsed yet, and whether it may be a template."""
    found: Document | Source
    if isinstance(what, dict):
        found = read(what, name=name)
    else:
        found = open_source(what, name=name, format=format, limits=limits)
    other = None if foreign is None else foreign(found, limits)
    return (found, may_be_template(found)) if other is None else (other, False)


def _plain(
    found: Document | Source,
    resource: str | None,
    variables: Values,
    defaults: Values,
    limits: Limits,
) -> Document:
    """A document that is no template, with the values of its placeholders."""
    if resource is not None:
        raise AslError(f"there is no resource {resource!r}: this is a document and no template")
    if isinstance(found, Document) and found.dialect != "asl":
        return found  # no other language has these placeholders
    text = found.text or "" if isinstance(found, Source) else compact(found.value)
    if not variables and "${" not in text:
        return as_object(parse_source(found, limits) if isinstance(found, Source) else found)
    from asl.sources import templates

    return templates.fill_placeholders(found, templates.ReadOptions(variables, defaults, limits))
