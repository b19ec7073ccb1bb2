"""Documents as they lie in repositories: with placeholders, or within a template.

A definition may hold placeholders (`${Name}`) for what only a deployment knows, and it may stand in
a template of SAM or CloudFormation, in a Terraform file or a `serverless.yml`. `load` finds it,
fills in what is given, and every place points to where the author wrote it.

What only such documents need is imported when one of them comes.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.document import Document, What, as_object, invalid, opened, parsed, read
from asl.core.errors import AslError, InvalidDocument
from asl.core.source import DOCUMENT_LIMITS, Fault, Limits, Source
from asl.core.values import Json, compact

if TYPE_CHECKING:
    from asl.sources.reading import Note, Reading

__all__ = ["is_template", "load", "load_each"]

Values: TypeAlias = Mapping[str, Json]

Foreign: TypeAlias = Callable[[Source | Document, Limits], Document | None]
"""Reads what is written in another language; None for what is not."""

_NONE: Values = {}
_YAML_TEMPLATE = r"""(?m)^["']?Resources["']?[ \t]*:"""
_SERVERLESS = r"(?m)^stepFunctions[ \t]*:"
_TERRAFORM = r'(?m)^[ \t]*resource[ \t]+"aws_sfn_state_machine"'


class Template(Protocol):
    """A file in which state machines are defined."""

    @property
    def source(self) -> Source:
        """The text of the file."""

    @property
    def remarks(self) -> "Iterable[Note]":
        """What is to be told of the file, whichever state machine is read."""

    @property
    def names(self) -> Mapping[str, frozenset[str]]:
        """The state machines, and what they may be called beside their names."""

    def document(self, name: str, reading: "Reading") -> Document:
        """The definition of a state machine; raises InvalidDocument."""

    def deployed_name(self, name: str, reading: "Reading") -> str:
        """The name of a state machine in ARNs."""

    @property
    def hints(self) -> Mapping[str, str]:
        """What to write for the names of resources that are written as they are."""


def load(
    what: What,
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
    found = _found(what, name, format, limits, foreign)
    if isinstance(found, Document | Source):
        return _plain(found, resource, variables, defaults, limits)
    from asl.sources.reading import Reading

    reading = Reading({**defaults, **variables}, limits, root)
    reading.notes.update(dict.fromkeys(found.remarks))
    chosen = _chosen(found, resource)
    values = {**defaults, **variables}
    with _refused_if_endless(found.source):
        document = found.document(chosen, reading)
        deployed = found.deployed_name(chosen, Reading(values, limits, root))
    return replace(
        _with_unused(document, variables, reading),
        deployed=deployed,
        hints=found.hints,
        siblings=partial(_siblings, found, chosen, values, limits, root),
    )


MAX_MACHINES: Final = 500
"""State machines of one template that are read together: CloudFormation's bound of resources."""


def load_each(
    what: What,
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
    found = _found(what, name, format, limits, foreign)
    if templates_only and (isinstance(found, Document | Source) or not found.names):
        return []
    if isinstance(found, Document | Source):
        return [_plain(found, resource, variables, defaults, limits)]
    from asl.sources.reading import Reading

    several = resource is None and len(found.names) > 1
    if several and len(found.names) > MAX_MACHINES:
        message = f"more than {MAX_MACHINES} state machines"
        hint = "name one of them with --resource, or split the template"
        raise invalid(found.source, [Fault("READ-04", message, 0, hint)])
    read: list[Document | InvalidDocument] = []
    asked: set[str] = set()
    files = set() if used is None else used
    for each in found.names if several else [_chosen(found, resource)]:
        reading = Reading({**defaults, **variables}, limits, root, asked, files)
        reading.notes.update(dict.fromkeys(() if read else found.remarks))
        try:
            with _refused_if_endless(found.source):
                read.append(replace(found.document(each, reading), hints=found.hints))
        except InvalidDocument as refusal:
            read.append(refusal)
    if isinstance(read[-1], Document):
        read[-1] = _with_unused(read[-1], variables, reading)
    return read


def _siblings(
    template: Template, name: str, values: Values, limits: Limits, root: str | None
) -> dict[str, Document]:
    """The other state machines of a template that can be read, by their names and ARNs' names."""
    from asl.sources.reading import Reading

    found: dict[str, Document] = {}
    for each in template.names:
        if each == name:
            continue
        reading = Reading(values, limits, root)
        try:
            with _refused_if_endless(template.source):
                document = template.document(each, reading)
                deployed = template.deployed_name(each, reading)
        except InvalidDocument:
            continue
        found |= {deployed: document, each: document}
    return found


def is_template(what: What) -> bool:
    """Whether state machines are defined in what is read: it is no document itself.

    Raises InvalidDocument and DocumentNotFound as `load` does.
    """
    return not isinstance(_found(what, None, None, DOCUMENT_LIMITS, None), Document | Source)


def _found(
    what: What, name: str | None, format: str | None, limits: Limits, foreign: Foreign | None
) -> Document | Source | Template:
    """What is to be read: a value, a text that is not parsed yet, or a template."""
    if isinstance(what, dict):
        value = read(what, name=name)
        other = None if foreign is None else foreign(value, limits)
        return _template(value) if other is None else other
    source = opened(what, name=name, format=format, limits=limits)
    other = None if foreign is None else foreign(source, limits)
    if other is not None:
        return other
    text = source.text
    assert text is not None
    if source.format == "json" and '"Resources"' not in text:
        return source
    if (source.name or "").endswith(".tf") or (
        source.format == "yaml" and re.search(_TERRAFORM, text)
    ):
        from asl.sources import terraform

        return terraform.Template(source._replace(format="hcl"), limits)
    if source.format == "yaml" and re.search(_SERVERLESS, text):
        from asl.sources import serverless

        with _refused_if_endless(source):
            return serverless.Template(source, limits)
    if source.format == "yaml" and not re.search(_YAML_TEMPLATE, text):
        return source
    from asl.sources.intrinsics import SCHEMA
    from asl.sources.tolerant import read_template

    try:
        found = _template(*read_template(source, limits, SCHEMA))
    except InvalidDocument:
        if source.format == "json":  # its placeholders may still make it a document
            return source
        raise
    return source if isinstance(found, Document) else found


@contextmanager
def _refused_if_endless(source: Source) -> Iterator[None]:
    """Refuse a template whose values refer to each other in a longer chain than can be followed.

    The readers count levels of nesting; a chain of references has no depth that the text shows.
    """
    try:
        yield
    except RecursionError:
        message = "its values refer to each other over too many steps"
        raise invalid(source, [Fault("READ-03", message, 0)]) from None


def _template(document: Document, faults: Iterable[Fault] = ()) -> Document | Template:
    """The template that a document is by its shape, else the document."""
    value = document.value
    if type(value) is not dict or "States" in value or type(value.get("Resources")) is not dict:
        return document
    from asl.sources import cloudformation

    return cloudformation.Template(document, faults)


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
        return as_object(parsed(found, limits) if isinstance(found, Source) else found)
    from asl.sources import definition
    from asl.sources.reading import Reading

    reading = Reading({**defaults, **variables}, limits)
    if isinstance(found, Source):
        document = definition.of_file(found, reading.value, reading, None)
    else:
        document = definition.of_value(found, reading.value, reading)
    return _with_unused(document, variables, reading)


def _chosen(template: Template, resource: str | None) -> str:
    """The name of the state machine that is meant."""
    names, file = template.names, template.source.name or "the template"
    if not names:
        message = "no state machine is defined here"
        raise invalid(template.source, [Fault("READ-14", message, 0)])
    if resource is None:
        if len(names) == 1:
            return next(iter(names))
        raise AslError(f"{file} has {len(names)} state machines, name one: {_listed(names)}")
    if resource in names:
        return resource
    meant = [name for name, others in names.items() if resource in others]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise AslError(f"{resource!r} is the name of several resources: {_listed(meant)}")
    hint = did_you_mean(resource, names) or f"there are {_listed(names)}"
    raise AslError(f"{file} has no state machine {resource!r} ({hint})")


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:20])
    return shown if len(names) <= 20 else f"{shown}, ..."


def _with_unused(document: Document, variables: Values, reading: "Reading") -> Document:
    """The document, with a warning for every value that nothing refers to."""
    unused = tuple(reading.unused(variables))
    return replace(document, findings=document.findings + unused) if unused else document
