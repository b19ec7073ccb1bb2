"""Templates: files that define state machines, and the substitution of placeholders.

Imported for the first template, or document with placeholders.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.document import Document, PlannedStart, invalid
from asl.core.errors import AslError
from asl.core.source import Fault, Limits, Source
from asl.core.values import Json
from asl.sources import RESOURCES, SERVERLESS, TERRAFORM, cloudformation, definition, serverless
from asl.sources.intrinsics import SCHEMA
from asl.sources.read_context import Note, ReadContext, read_template

__all__ = [
    "ReadOptions",
    "Template",
    "fill_placeholders",
    "limit_reference_chains",
    "load",
    "load_each",
    "template_in",
]


class ReadOptions(NamedTuple):
    """The caller's options for templates.

    An unused value of `variables` draws a warning, one of `defaults` does not. Files that a
    template names are read below its own folder, or below `root`.
    """

    variables: Mapping[str, Json]
    defaults: Mapping[str, Json]
    limits: Limits
    root: str | None = None

    @property
    def values(self) -> dict[str, Json]:
        """All values by name."""
        return {**self.defaults, **self.variables}


class Template(Protocol):
    """A file that defines state machines."""

    @property
    def source(self) -> Source:
        """The text of the file."""

    @property
    def notes(self) -> Iterable[Note]:
        """Notes about the whole file."""

    @property
    def names(self) -> Mapping[str, frozenset[str]]:
        """The state machines, with their other names."""

    def document(self, name: str, context: ReadContext) -> Document:
        """Return the definition of a state machine.

        Raises:
            InvalidDocument: The definition cannot be read.
        """

    def deployed_name(self, name: str, context: ReadContext) -> str:
        """Return the name of a state machine in ARNs."""

    def is_express(self, name: str, context: ReadContext) -> bool:
        """Return whether a state machine is of the type EXPRESS."""

    def qualifiers(self, name: str, context: ReadContext) -> tuple[str, ...]:
        """Return the versions and aliases of a state machine."""

    def planned_starts(self, name: str, context: ReadContext) -> tuple[PlannedStart, ...]:
        """Return the schedules that start a state machine."""

    @property
    def hints(self) -> Mapping[str, str]:
        """Expressions to use instead of literal resource names, by resource."""


def template_in(found: Document | Source, limits: Limits) -> Template | None:
    """Return the template in a document or a text; None if it is not a template.

    Raises:
        InvalidDocument: The text looks like a template but cannot be read.
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
        with limit_reference_chains(found):
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
def limit_reference_chains(source: Source) -> Iterator[None]:
    """Turn a RecursionError into a finding: a chain of references is too long.

    Readers limit the nesting of the text, which does not limit such chains.

    Raises:
        InvalidDocument: The body raises RecursionError.
    """
    try:
        yield
    except RecursionError:
        message = "a chain of references is too long"
        raise invalid(source, [Fault("READ-03", message, 0)]) from None


def load(template: Template, resource: str | None, given: ReadOptions) -> Document:
    """Read the document that a template defines as a resource.

    Raises:
        InvalidDocument: It cannot be read.
        AslError: *resource* selects no state machine, or several.
    """
    reading = ReadContext(given.values, given.limits, given.root)
    reading.notes.update(dict.fromkeys(template.notes))
    chosen = _choose_machine(template, resource)
    with limit_reference_chains(template.source):
        document = template.document(chosen, reading)
        document = _deployed(document, template, chosen, given)
    return replace(
        _add_unused_findings(document, given.variables, reading),
        siblings=partial(_siblings, template, chosen, given),
    )


def _deployed(document: Document, template: Template, name: str, given: ReadOptions) -> Document:
    """Return a document with name, type, versions and aliases of its deployed state machine."""
    reading = ReadContext(given.values, given.limits, given.root)
    return replace(
        document,
        deployed=template.deployed_name(name, reading),
        express=template.is_express(name, reading),
        qualifiers=template.qualifiers(name, reading),
        planned_starts=template.planned_starts(name, reading),
        hints=template.hints,
    )


MAX_MACHINES: Final = 500
"""Maximum number of state machines of a template: CloudFormation's limit of resources."""


def load_each(
    template: Template, resource: str | None, given: ReadOptions, used: set[str] | None = None
) -> list[Document | InvalidDocument]:
    """Read all documents of a template; return an InvalidDocument for each unreadable one.

    Args:
        template: The template.
        resource: Name of a state machine; None for all.
        given: The caller's values, limits and root folder.
        used: Receives the real paths of the files that the template names.

    Raises:
        InvalidDocument: The template has more than MAX_MACHINES state machines.
    """
    several = resource is None and len(template.names) > 1
    if several and len(template.names) > MAX_MACHINES:
        message = f"more than {MAX_MACHINES} state machines"
        hint = "name one of them with --resource, or split the template"
        raise invalid(template.source, [Fault("READ-04", message, 0, hint)])
    read: list[Document | InvalidDocument] = []
    looked_up: set[str] = set()
    files = set() if used is None else used
    for each in template.names if several else [_choose_machine(template, resource)]:
        reading = ReadContext(given.values, given.limits, given.root, looked_up, files)
        reading.notes.update(dict.fromkeys(() if read else template.notes))
        try:
            with limit_reference_chains(template.source):
                read.append(_deployed(template.document(each, reading), template, each, given))
        except InvalidDocument as refusal:
            read.append(refusal)
    if isinstance(read[-1], Document):
        read[-1] = _add_unused_findings(read[-1], given.variables, reading)
    return read


def _siblings(template: Template, name: str, given: ReadOptions) -> dict[str, Document]:
    """Return the other readable state machines of a template, by name and by name in ARNs."""
    found: dict[str, Document] = {}
    for each in template.names:
        if each == name:
            continue
        reading = ReadContext(given.values, given.limits, given.root)
        try:
            with limit_reference_chains(template.source):
                document = template.document(each, reading)
                deployed = template.deployed_name(each, reading)
        except InvalidDocument:
            continue
        found |= {deployed: document, each: document}
    return found


def fill_placeholders(found: Document | Source, given: ReadOptions) -> Document:
    """Return a document that is not in a template, with its placeholders filled."""
    reading = ReadContext(given.values, given.limits)
    if isinstance(found, Source):
        document = definition.document_from_file(found, reading.value, reading, None)
    else:
        document = definition.document_from_value(found, reading.value, reading)
    return _add_unused_findings(document, given.variables, reading)


def _choose_machine(template: Template, resource: str | None) -> str:
    """Return the name of the requested state machine."""
    names, file = template.names, template.source.name or "the template"
    if not names:
        message = "the template defines no state machine"
        raise invalid(template.source, [Fault("READ-14", message, 0)])
    if resource is None:
        if len(names) == 1:
            return next(iter(names))
        raise AslError(
            f"{file} has {len(names)} state machines: name one with --resource "
            f"({_list_names(names)})"
        )
    if resource in names:
        return resource
    meant = [name for name, others in names.items() if resource in others]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise AslError(f"{resource!r} is the name of several resources: {_list_names(meant)}")
    hint = did_you_mean(resource, names) or f"there are {_list_names(names)}"
    raise AslError(f"{file} has no state machine {resource!r} ({hint})")


def _list_names(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:20])
    return shown if len(names) <= 20 else f"{shown}, ..."


def _add_unused_findings(
    document: Document, variables: Mapping[str, Json], context: ReadContext
) -> Document:
    """Return the document with a warning for every unused value."""
    unused = tuple(context.unused_findings(variables))
    return replace(document, findings=document.findings + unused) if unused else document
