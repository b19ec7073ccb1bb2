"""Templates: files in which state machines are defined, and what fills in their placeholders.

Imported when one of them comes, and for a document with placeholders.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.document import Document, invalid
from asl.core.errors import AslError
from asl.core.source import Fault, Limits, Source
from asl.core.values import Json
from asl.sources import RESOURCES, SERVERLESS, TERRAFORM, cloudformation, definition, serverless
from asl.sources.intrinsics import SCHEMA
from asl.sources.read_context import Note, ReadContext, read_template

__all__ = ["ReadOptions", "Template", "fill_placeholders", "load", "load_each", "template_in"]


class ReadOptions(NamedTuple):
    """What a caller gives for what a template refers to.

    A value of `variables` that nothing refers to draws a warning, one of `defaults` does not. Files
    that a template names are read below its own folder, or below `root`.
    """

    variables: Mapping[str, Json]
    defaults: Mapping[str, Json]
    limits: Limits
    root: str | None = None

    @property
    def values(self) -> dict[str, Json]:
        """All values by their names."""
        return {**self.defaults, **self.variables}


class Template(Protocol):
    """A file in which state machines are defined."""

    @property
    def source(self) -> Source:
        """The text of the file."""

    @property
    def remarks(self) -> Iterable[Note]:
        """What is to be told of the file, whichever state machine is read."""

    @property
    def names(self) -> Mapping[str, frozenset[str]]:
        """The state machines, and what they may be called beside their names."""

    def document(self, name: str, reading: ReadContext) -> Document:
        """The definition of a state machine; raises InvalidDocument."""

    def deployed_name(self, name: str, reading: ReadContext) -> str:
        """The name of a state machine in ARNs."""

    @property
    def hints(self) -> Mapping[str, str]:
        """What to write for the names of resources that are written as they are."""


def template_in(found: Document | Source, limits: Limits) -> Template | None:
    """The template that a document or a text is by its shape, None for what is none.

    Raises InvalidDocument for a text that is meant as one and cannot be read.
    """
    if isinstance(found, Document):
        return _template(found)
    text = found.text or ""
    if (found.name or "").endswith(".tf") or (
        found.format == "yaml" and re.search(TERRAFORM, text, re.MULTILINE)
    ):
        from asl.sources import terraform

        return terraform.TerraformTemplate(found._replace(format="hcl"), limits)
    if found.format == "yaml" and re.search(SERVERLESS, text, re.MULTILINE):
        with _refused_if_endless(found):
            return serverless.ServerlessTemplate(found, limits)
    if found.format == "yaml" and not re.search(RESOURCES, text, re.MULTILINE):
        return None
    try:
        return _template(*read_template(found, limits, SCHEMA))
    except InvalidDocument:
        if found.format == "json":  # its placeholders may still make it a document
            return None
        raise


def _template(document: Document, faults: Iterable[Fault] = ()) -> Template | None:
    value = document.value
    if type(value) is not dict or "States" in value or type(value.get("Resources")) is not dict:
        return None
    return cloudformation.CloudFormationTemplate(document, faults)


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


def load(template: Template, resource: str | None, given: ReadOptions) -> Document:
    """Read the document that a template holds under the name of a resource.

    Raises InvalidDocument, and AslError where it is not clear which state machine is meant.
    """
    reading = ReadContext(given.values, given.limits, given.root)
    reading.notes.update(dict.fromkeys(template.remarks))
    chosen = _chosen(template, resource)
    with _refused_if_endless(template.source):
        document = template.document(chosen, reading)
        deployed = template.deployed_name(
            chosen, ReadContext(given.values, given.limits, given.root)
        )
    return replace(
        _with_unused(document, given.variables, reading),
        deployed=deployed,
        hints=template.hints,
        siblings=partial(_siblings, template, chosen, given),
    )


MAX_MACHINES: Final = 500
"""State machines of one template that are read together: CloudFormation's bound of resources."""


def load_each(
    template: Template, resource: str | None, given: ReadOptions, used: set[str] | None = None
) -> list[Document | InvalidDocument]:
    """Read all documents that a template holds: each one, or why it cannot be read.

    `used` takes up the real paths of the files that the template names.
    """
    several = resource is None and len(template.names) > 1
    if several and len(template.names) > MAX_MACHINES:
        message = f"more than {MAX_MACHINES} state machines"
        hint = "name one of them with --resource, or split the template"
        raise invalid(template.source, [Fault("READ-04", message, 0, hint)])
    read: list[Document | InvalidDocument] = []
    asked: set[str] = set()
    files = set() if used is None else used
    for each in template.names if several else [_chosen(template, resource)]:
        reading = ReadContext(given.values, given.limits, given.root, asked, files)
        reading.notes.update(dict.fromkeys(() if read else template.remarks))
        try:
            with _refused_if_endless(template.source):
                read.append(replace(template.document(each, reading), hints=template.hints))
        except InvalidDocument as refusal:
            read.append(refusal)
    if isinstance(read[-1], Document):
        read[-1] = _with_unused(read[-1], given.variables, reading)
    return read


def _siblings(template: Template, name: str, given: ReadOptions) -> dict[str, Document]:
    """The other state machines of a template that can be read, by their names and ARNs' names."""
    found: dict[str, Document] = {}
    for each in template.names:
        if each == name:
            continue
        reading = ReadContext(given.values, given.limits, given.root)
        try:
            with _refused_if_endless(template.source):
                document = template.document(each, reading)
                deployed = template.deployed_name(each, reading)
        except InvalidDocument:
            continue
        found |= {deployed: document, each: document}
    return found


def fill_placeholders(found: Document | Source, given: ReadOptions) -> Document:
    """A document that is no template, with the values of its placeholders."""
    reading = ReadContext(given.values, given.limits)
    if isinstance(found, Source):
        document = definition.of_file(found, reading.value, reading, None)
    else:
        document = definition.of_value(found, reading.value, reading)
    return _with_unused(document, given.variables, reading)


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


def _with_unused(
    document: Document, variables: Mapping[str, Json], reading: ReadContext
) -> Document:
    """The document, with a warning for every value that nothing refers to."""
    unused = tuple(reading.unused(variables))
    return replace(document, findings=document.findings + unused) if unused else document
