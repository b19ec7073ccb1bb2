"""State machines in templates of SAM and CloudFormation, including those synthesized by CDK."""

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.document import Document, PlannedStart, invalid
from asl.core.pointers import pointer_to
from asl.core.source import Fault, Source, Span
from asl.core.values import Json
from asl.sources.aws_resources import MACHINE_ALIAS, MACHINE_VERSION, RESOURCES
from asl.sources.definition import (
    SourcePart,
    document_from_file,
    document_from_part,
    document_from_text,
    substitute,
)
from asl.sources.intrinsics import NESTED, Resolver, is_unknown, members
from asl.sources.read_context import DUPLICATE, Note, ReadContext, fault_notes
from asl.sources.schedules import planned_starts
from asl.sources.text import TrackedText, string_meaning

__all__ = ["CloudFormationTemplate"]

KINDS: Final = ("AWS::Serverless::StateMachine", "AWS::StepFunctions::StateMachine")
OBJECT, STRING, FILE, BUCKET = (
    "Definition",
    "DefinitionString",
    "DefinitionUri",
    "DefinitionS3Location",
)
TYPES: Final = ("StateMachineType", "Type")
"""Properties with the type of a state machine: of CloudFormation, and of SAM."""
DEFINITIONS: Final = (OBJECT, STRING, FILE, BUCKET)
"""Alternative properties for the definition of a state machine."""


class CloudFormationTemplate:
    """A template of SAM or CloudFormation."""

    def __init__(self, document: Document, faults: Iterable[Fault] = ()) -> None:
        self.value = document.value
        self.faults = [*faults]
        self.span = document.span
        self.source = document.source
        self.unreadable: dict[str, InvalidDocument] = {}
        """The faults of nested stacks by the name of the stack."""

    @cached_property
    def names(self) -> dict[str, frozenset[str]]:
        """Return the state machines with their other names; nested ones are `STACK/NAME`."""
        return self.machines(ReadContext({}))

    def machines(self, context: ReadContext) -> dict[str, frozenset[str]]:
        """Return the state machines of this template and of those nested in it."""
        found = {
            name: _constructs(resource)
            for name, resource in self.value["Resources"].items()
            if type(resource) is dict and resource.get("Type") in KINDS
        }
        for stack in self.stacks:
            try:
                nested = self.nested(stack, context)
            except InvalidDocument as refusal:
                self.unreadable[stack] = refusal
                continue
            if nested is not None:
                for name, others in nested[0].machines(nested[1]).items():
                    found[f"{stack}/{name}"] = others | {name}
                for name, fault in nested[0].unreadable.items():
                    self.unreadable[f"{stack}/{name}"] = fault
        return found

    def resolver(self, context: ReadContext) -> Resolver:
        """Return the resolver of the values of the template."""
        return Resolver(self.value, self.span, self.source, context)

    @property
    def stacks(self) -> list[str]:
        """The nested stacks by logical id."""
        resources = self.value["Resources"]
        return [name for name in resources if str(members(resources, name).get("Type")) in NESTED]

    def nested(
        self, stack: str, context: ReadContext
    ) -> "tuple[CloudFormationTemplate, ReadContext] | None":
        """Return the template of a nested stack and its context; None if it is elsewhere.

        Raises:
            InvalidDocument: It cannot be read.
        """
        found = self.resolver(context).nested_stack(stack)
        if found is None or not members(found.document.value, "Resources"):
            return None
        return CloudFormationTemplate(found.document, found.faults), found.reading

    def owner(
        self, name: str, context: ReadContext
    ) -> "tuple[CloudFormationTemplate, str, ReadContext]":
        """Return the template of a state machine, its name there, and the context of both."""
        stack, slash, rest = name.partition("/")
        nested = self.nested(stack, context) if slash else None
        return (self, name, context) if nested is None else nested[0].owner(rest, nested[1])

    def document(self, name: str, context: ReadContext) -> Document:
        """Return the definition of a state machine.

        Raises:
            InvalidDocument: The definition cannot be read.
        """
        template, name, context = self.owner(name, context)
        return template.own_document(name, context)

    def own_document(self, name: str, context: ReadContext) -> Document:
        """Return the definition of a state machine that is not in a nested template.

        Raises:
            InvalidDocument: The definition cannot be read.
        """
        own = f"{pointer_to(('Resources', name))}/"
        wrong = [
            fault
            for fault in self.faults
            if fault.code != DUPLICATE and f"{fault.pointer}/".startswith(own)
        ]
        if wrong:
            raise invalid(self.source, wrong)
        return _Machine(self, name, context).document()

    @cached_property
    def hints(self) -> dict[str, str]:
        """Return the ARN expression of each resource by logical id."""
        return {name: f"write !GetAtt {name}.Arn" for name in self.value["Resources"]}

    def deployed_name(self, name: str, context: ReadContext) -> str:
        """Return the name of a state machine in ARNs: its own, else its logical id."""
        template, name, context = self.owner(name, context)
        made = RESOURCES[template.value["Resources"][name]["Type"]]
        return template.resolver(context).resource_name(name, made) or name

    def is_express(self, name: str, context: ReadContext) -> bool:
        """Return whether a state machine is of the type EXPRESS."""
        machine = _Machine(*self.owner(name, context))
        for field in TYPES:
            if field in machine.properties:
                place = machine.span.member(field) or machine.span
                return bool(machine.resolver.string(machine.properties[field], place) == "EXPRESS")
        return False

    def qualifiers(self, name: str, context: ReadContext) -> tuple[str, ...]:
        """Return the versions and aliases of a state machine."""
        template, name, context = self.owner(name, context)
        resolver = template.resolver(context)
        arn = f"{resolver.resolve_name(name)}:"
        found = [resolver.property(name, "AutoPublishAlias")]
        for each in resolver.resources:
            if members(resolver.resources, each).get("Type") in (MACHINE_VERSION, MACHINE_ALIAS):
                try:
                    qualified = resolver.qualified_arn(each) or ""
                except InvalidDocument:  # a fault of that resource, not of the state machine
                    continue
                found.append(qualified.removeprefix(arn) if qualified.startswith(arn) else None)
        return tuple(dict.fromkeys(filter(None, found)))

    def planned_starts(self, name: str, context: ReadContext) -> tuple[PlannedStart, ...]:
        """Return the schedules that start a state machine."""
        template, name, context = self.owner(name, context)
        return tuple(planned_starts(template.resolver(context), name))

    @property
    def notes(self) -> Iterator[Note]:
        """Yield the faults of the template outside its state machines."""
        yield from fault_notes(self.source, self.faults)
        if self.names:  # they are collected with the names
            for stack, refusal in self.unreadable.items():
                reason = str(next(iter(refusal.report))).partition("\n")[0]
                yield Note("READ-19", f"the template of {stack} cannot be read: {reason}")


def _constructs(resource: Json) -> frozenset[str]:
    """Return the CDK names of a resource: its path, and the last part of it."""
    path = members(resource, "Metadata").get("aws:cdk:path")
    if type(path) is not str:
        return frozenset()
    path = path.removesuffix("/Resource")
    return frozenset((path, path.rpartition("/")[2]))


class _Machine:
    """One state machine of a template."""

    def __init__(self, template: CloudFormationTemplate, name: str, context: ReadContext) -> None:
        self.name = name
        self.source = template.source
        self.reading = context
        self.resolver = Resolver(template.value, template.span, template.source, context)
        condition = template.value["Resources"][name].get("Condition")
        self.resolver.assumed_condition = condition if type(condition) is str else None
        self.properties = members(template.value["Resources"][name], "Properties")
        self.span = template.span
        for step in ("Resources", name, "Properties"):
            self.span = self.span.member(step) or self.span
        self.substitutions = members(self.properties, "DefinitionSubstitutions")
        self.expanding: list[str] = []

    def document(self) -> Document:
        field, value, span = self.definition()
        if field in (FILE, BUCKET):
            return self.read_definition(self.file(value, span))
        if type(value) is dict and value.keys() == {"Fn::Transform"}:
            inner = span.member("Fn::Transform") or span
            return self.read_definition(self.resolver.included_file(value["Fn::Transform"], inner))
        part = self.resolver.resolve(value, span)
        if field == OBJECT:
            if isinstance(part.value, TrackedText) and not is_unknown(part):
                raise self.resolver.error(
                    span, f"{OBJECT} must be an object", f"use {STRING} for a string"
                )
            return document_from_part(
                self.fill_placeholders(part), self.source, self.reading, self.name
            )
        if not isinstance(part.value, TrackedText):
            raise self.resolver.error(
                span, f"{STRING} must be a string", f"use {OBJECT} for an object"
            )
        text = substitute(part.value, self.lookup, self.source, self.reading)
        return document_from_text(text, self.source, self.reading, self.name)

    def definition(self) -> tuple[str, Json, Span]:
        """Return the property with the definition, and its value."""
        given = [field for field in DEFINITIONS if field in self.properties]
        if len(given) != 1:
            near = next((did_you_mean(key, DEFINITIONS) for key in self.properties), None)
            message = f"{self.name} has {' and '.join(given) or 'no definition'}"
            hint = (
                "keep one of them" if given else near or f"give it one of {', '.join(DEFINITIONS)}"
            )
            raise self.reading.error(self.source, self.span.at, "READ-14", message, hint)
        (field,) = given
        return field, self.properties[field], self.span.member(field) or self.span

    def file(self, value: Json, span: Span) -> Source:
        """Return the local file with the definition, or CDK's copy of it."""
        key = value.get("Key") if type(value) is dict else None
        place = span.member("Key") or span
        if key is None and not (type(value) is dict and "Bucket" in value):
            return self.reading.file(self.resolver.string(value, span), self.source, span.at)
        if key is not None:
            asset = f"asset.{self.resolver.string(key, place)}"
            folder = os.path.dirname(self.source.name or "")
            if os.path.isfile(os.path.join(folder, asset)):
                return self.reading.file(asset, self.source, place.at)
        raise self.reading.error(
            self.source,
            span.at,
            "READ-18",
            f"the definition of {self.name} is in an S3 bucket",
            "name its file instead of the template, with --var for its placeholders",
        )

    def read_definition(self, file: Source) -> Document:
        """Return the definition of a file: JSON, or YAML with any file name."""
        try:
            return document_from_file(file, self.lookup, self.reading, self.name)
        except InvalidDocument as refusal:
            if file.format != "json":
                raise
            message = f"{os.path.basename(file.name or '')} is not JSON: it is read as YAML"
            fault = next(iter(refusal.report))
            self.reading.note("READ-19", message, f"line {fault.line}: {fault.message}")
            try:
                as_yaml = file._replace(format="yaml")
                return document_from_file(as_yaml, self.lookup, self.reading, self.name)
            except InvalidDocument:
                raise refusal from None

    def lookup(self, name: str) -> str | None:
        """Return the value of a placeholder of the definition."""
        given = self.reading.value(name)
        if given is not None:
            return given
        if name not in self.substitutions:
            return None
        place = self.span.member("DefinitionSubstitutions") or self.span
        span = place.member(name) or place
        if name in self.expanding:
            message = f"the substitutions {' and '.join(self.expanding)} refer to each other"
            raise self.resolver.error(span, message)
        self.expanding.append(name)
        text = self.resolver.text(self.substitutions[name], span)
        value = substitute(text, self.lookup, self.source, self.reading).string
        self.expanding.pop()
        return value

    def fill_placeholders(self, part: SourcePart) -> SourcePart:
        """Return a definition in the form of an object, with its placeholders filled.

        AWS inserts values into the JSON of the object, so they are parsed as contents of JSON
        strings.
        """
        value = part.value
        if isinstance(value, TrackedText):
            return SourcePart(self.substitute_text(value), part.at, part.key_at)
        if isinstance(value, list):
            return SourcePart(
                [self.fill_placeholders(item) for item in value], part.at, part.key_at
            )
        if isinstance(value, dict):
            each = {
                self.substitute_text(
                    TrackedText.at_offset(key, part.at)
                ).string: self.fill_placeholders(item)
                for key, item in value.items()
            }
            return SourcePart(each, part.at, part.key_at)
        return part

    def substitute_text(self, text: TrackedText) -> TrackedText:
        return substitute(text, self.resolve_reference, self.source, self.reading)

    def resolve_reference(self, name: str) -> str | None:
        value = self.lookup(name)
        return None if value is None else string_meaning(value)
