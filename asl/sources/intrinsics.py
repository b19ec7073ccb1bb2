"""Intrinsic functions of CloudFormation, with stand-ins for values known after deployment."""

import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.document import Document, parse_source
from asl.core.opaque import PLACEHOLDER
from asl.core.source import Fault, Source, Span
from asl.core.values import Json, compact, index_of
from asl.core.yaml_schema import yaml_1_1_schema
from asl.sources.aws_resources import MACHINE_ALIAS, MACHINE_VERSION, RESOURCES, ResourceType
from asl.sources.definition import SourcePart, document_from_part, json_from_part
from asl.sources.read_context import ReadContext, as_text, read_template
from asl.sources.text import TrackedText, join_texts, track_scalar

__all__ = ["NESTED", "SCHEMA", "TAGS", "Resolver", "is_unknown", "members"]

_STACK: Final = "11111111-1111-1111-1111-111111111111"
PSEUDO: Final = {
    "AWS::AccountId": "{account}",
    "AWS::NotificationARNs": "${{AWS::NotificationARNs}}",
    "AWS::Partition": "{partition}",
    "AWS::Region": "{region}",
    "AWS::StackId": "arn:{partition}:cloudformation:{region}:{account}:stack/stack/" + _STACK,
    "AWS::StackName": "stack",
    "AWS::URLSuffix": "amazonaws.com",
}

_ARNS: Final = ("Arn", "TopicArn")
_SUBSTITUTION: Final = re.compile(r"\$\{(!?)([^${}]+)\}")
_DYNAMIC: Final = re.compile(r"\{\{resolve:[^{}]+\}\}")

STEPS: Final = 5
"""Steps of evaluating one value: a name is evaluated each time it is used."""
REFERENCE_STEPS: Final = 120
"""Steps of a reference within a text."""
MAX_NESTED: Final = 10
"""Levels of nested stacks."""
READ_STEPS: Final = 4
"""Steps of reading a character of a nested template."""
NESTED: Final = {
    "AWS::CloudFormation::Stack": "TemplateURL",
    "AWS::Serverless::Application": "Location",
}
"""Resources that are templates of their own, and the property with their file."""
NOTHING: Final = SourcePart(None, -1)
"""The value of `AWS::NoValue`: its member is left out."""


class NestedStack(NamedTuple):
    """The template of a nested stack, and the context in which it is read."""

    document: Document
    faults: list[Fault]
    reading: ReadContext


class Resolver:
    """Evaluates the values of one template."""

    def __init__(self, template: Json, span: Span, source: Source, context: ReadContext) -> None:
        self.span = span
        self.source = source
        self.reading = context
        self.parameters = members(template, "Parameters")
        self.resources = members(template, "Resources")
        self.mappings = members(template, "Mappings")
        self.conditions = members(template, "Conditions")
        self.transformed = "Transform" in template
        self.open_conditions: list[str] = []
        self.assumed_condition: str | None = None
        """The condition under which the current resource exists."""
        self.open_names: list[str] = []

    def resolve(self, value: Json, span: Span) -> SourcePart:
        """Return the value without intrinsic functions; raises InvalidDocument."""
        self.reading.work(STEPS, self.source, span.at)
        places = span.members
        if isinstance(places, dict):
            if len(places) == 1:
                ((name, inner),) = places.items()
                if name in FUNCTIONS:
                    return FUNCTIONS[name](self, value[name], inner, span.at)
                if name.startswith("Fn::"):
                    return self.deployment_value(name, span)
            parts: dict[str, SourcePart] = {}
            for key, inner in places.items():
                part = self.resolve(value[key], inner)
                if part is not NOTHING:
                    parts[key] = SourcePart(part.value, part.at, inner.key_at)
            return SourcePart(parts, span.at)
        if places is not None:
            items = [self.resolve(item, at) for item, at in zip(value, places, strict=True)]
            return SourcePart([item for item in items if item is not NOTHING], span.at)
        return SourcePart(self.literal(value, span) if type(value) is str else value, span.at)

    def literal(self, value: str, span: Span) -> TrackedText:
        """Return a string of the template with its positions."""
        for found in _DYNAMIC.findall(value):
            self.reading.stand_in(found, found, "only a deployment fetches the value")
        if self.source.text is None:
            return TrackedText.at_offset(value, span.at)
        return track_scalar(value, self.source.text, span.at)

    def text(self, value: Json, span: Span) -> TrackedText:
        """Return the value as a tracked text.

        Raises:
            InvalidDocument: The value is an object, an array or null.
        """
        part = self.resolve(value, span)
        if isinstance(part.value, TrackedText):
            return part.value
        if isinstance(part.value, dict | list) or part.value is None:
            raise self.error(span, "a string is expected here")
        return TrackedText.at_offset(as_text(part.value), span.at)

    def string(self, value: Json, span: Span) -> str:
        """Return the value as a string."""
        return self.text(value, span).string

    def arguments(self, value: Json, span: Span, *counts: int) -> list[tuple[Json, Span]]:
        """Return the arguments of a function; *counts* are the allowed numbers.

        Raises:
            InvalidDocument: The number of arguments is wrong.
        """
        if not isinstance(span.members, list) or len(span.members) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.error(span, f"an array of {wanted} arguments is expected here")
        return list(zip(value, span.members, strict=True))

    def items(self, value: Json, span: Span) -> list[SourcePart]:
        """Return the items of an array, which may be the result of a function.

        An array known only after deployment has one unknown item.

        Raises:
            InvalidDocument: The value is not an array.
        """
        part = self.resolve(value, span)
        if is_unknown(part):
            return [part]
        if not isinstance(part.value, list):
            raise self.error(span, "an array is expected here")
        return part.value

    def deployment_value(self, name: str, span: Span) -> SourcePart:
        """Return the stand-in for a function's result known only after deployment.

        Raises:
            InvalidDocument: CloudFormation has no function with this name.
        """
        known = [*FUNCTIONS, *_OTHERS]
        if name.partition("::")[2].partition("::")[0] not in _OTHERS and name not in FUNCTIONS:
            raise self.error(span, f"there is no function {name}", did_you_mean(name, known))
        return self.constant(self.reading.stand_in(name, f"${{{name}}}"), span.at)

    def constant(self, value: Json, at: int) -> SourcePart:
        """Return a value without text of its own, at an offset of the template."""
        if type(value) is dict:
            return SourcePart({key: self.constant(item, at) for key, item in value.items()}, at, at)
        if type(value) is list:
            return SourcePart([self.constant(item, at) for item in value], at)
        if type(value) is str:
            return SourcePart(self.reading.insert(value, self.source, at), at)
        return SourcePart(value, at)

    def error(self, span: Span, message: str, hint: str | None = None) -> InvalidDocument:
        """Return the error at a place of the template."""
        return self.reading.error(self.source, span.at, "READ-16", message, hint)

    # Names ---------------------------------------------------------------------------------------

    def resolve_name(self, name: str) -> Json:
        """Return the value of `Ref name` or `${name}`, where *name* may have an attribute."""
        given = self.reading.given_value(name)
        if given is not None:
            return self.parameter_value(name, given)
        if name in PSEUDO:
            return self.reading.stand_in(name, self.reading.locate(PSEUDO[name]))
        if name in self.parameters:
            default = members(self.parameters, name).get("Default")
            if default is not None:
                return self.parameter_value(name, as_text(default))
            return self.reading.stand_in(name, f"${{{name}}}")
        base, _, attribute = name.partition(".")
        output = self.stack_output(base, attribute)
        if output is not None:
            return output
        qualified = self.qualified_arn(base)
        if qualified is not None:
            return self.reading.stand_in(name, qualified)
        made = RESOURCES.get(str(members(self.resources, base).get("Type")))
        own = None if made is None else self.resource_name(base, made)
        if made is None or (own is None and not made.called):
            return self.reading.stand_in(name, self.resource_placeholder(base, name))
        start = _start(made, attribute)
        if start is None:
            return self.reading.stand_in(name, f"${{{name}}}")
        if own is not None and not start:
            return own
        return self.reading.stand_in(name, self.reading.locate(start) + (own or base))

    def resource_name(self, resource: str, made: ResourceType) -> str | None:
        """Return the name of a resource in the template, None if the deployment chooses it."""
        span = self.span
        properties = members(self.resources[resource], "Properties")
        value = None if made.name is None else properties.get(made.name)
        if value is None or resource in self.open_names:
            return None
        for step in ("Resources", resource, "Properties", made.name):
            span = span.member(str(step)) or Span(span.at)
        self.open_names.append(resource)
        name = self.resolve(value, span).value
        self.open_names.pop()
        return name.string if isinstance(name, TrackedText) else None

    def property(self, resource: str, *steps: str) -> str | None:
        """Return a property of a resource as a text; None if it is absent."""
        value, span = self.resources[resource], self.span
        for step in ("Resources", resource):
            span = span.member(step) or Span(span.at)
        for step in ("Properties", *steps):
            if type(value) is list and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            elif type(value) is dict and step in value:
                value = value[step]
            else:
                return None
            span = span.member(step) or Span(span.at)
        return self.string(value, span)

    def nested_stack(self, resource: str) -> "NestedStack | None":
        """Return the template of a nested stack or application; None if it is not in the project.

        Raises:
            InvalidDocument: It cannot be read, or contains itself.
        """
        found = self.resources.get(resource)
        field = NESTED.get(str(members(self.resources, resource).get("Type")))
        if field is None:
            return None
        path = members(found, "Metadata").get("aws:asset:path") or self.property(resource, field)
        if type(path) is not str or "://" in path or PLACEHOLDER.search(path):
            return None
        try:
            file = self.reading.file(path, self.source, self.span.at)
        except InvalidDocument:  # it is missing, as before a build
            return None
        real = os.path.realpath(file.name or "")
        around = (*self.reading.ancestors, os.path.realpath(self.source.name or ""))
        if real in around or len(self.reading.ancestors) >= MAX_NESTED:
            message = f"the template {path!r} contains itself, or more than {MAX_NESTED} others"
            raise self.reading.error(self.source, self.span.at, "READ-16", message)
        self.reading.work(len(file.text or "") * READ_STEPS, self.source, self.span.at)
        document, faults = read_template(file, self.reading.limits, SCHEMA)
        given = {name: value for name, value in self.reading.given.items() if "::" in name}
        reading = replace(
            self.reading,
            given={**given, **self.stack_parameters(resource)},
            ancestors=around,
        )
        return NestedStack(document, faults, reading)

    def stack_parameters(self, resource: str) -> dict[str, Json]:
        """Return the parameters that a stack gives to a nested one."""
        value = members(members(self.resources[resource], "Properties"), "Parameters")
        span = self.span
        for step in ("Resources", resource, "Properties", "Parameters"):
            span = span.member(step) or Span(span.at)
        parts = {
            name: self.resolve(each, span.member(name) or span) for name, each in value.items()
        }
        return {name: json_from_part(part) for name, part in parts.items()}

    def stack_output(self, resource: str, attribute: str) -> Json:
        """Return an output of a nested stack; None if it is known only after deployment."""
        name = attribute.removeprefix("Outputs.")
        stack = None if name == attribute else self.nested_stack(resource)
        if stack is None:
            return None
        value = stack.document.value
        output = members(members(value, "Outputs"), name)
        if "Value" not in output:
            return None
        inner = Resolver(value, stack.document.span, stack.document.source, stack.reading)
        span = inner.span
        for step in ("Outputs", name, "Value"):
            span = span.member(step) or Span(span.at)
        return json_from_part(inner.resolve(output["Value"], span))

    def qualified_arn(self, resource: str) -> str | None:
        """Return the ARN of a version or an alias of a state machine; None for other resources.

        A version is the first one; only a deployment counts them.
        """
        kind = members(self.resources, resource).get("Type")
        if kind not in (MACHINE_VERSION, MACHINE_ALIAS) or resource in self.open_names:
            return None
        self.open_names.append(resource)
        if kind == MACHINE_VERSION:
            qualifier, of = "1", self.property(resource, "StateMachineArn")
        else:
            qualifier = self.property(resource, "Name") or resource
            version = self.property(
                resource, "RoutingConfiguration", "0", "StateMachineVersionArn"
            ) or self.property(resource, "DeploymentPreference", "StateMachineVersionArn")
            of = version and version.rpartition(":")[0]
        self.open_names.pop()
        return f"{of}:{qualifier}" if of else None

    def resource_placeholder(self, resource: str, name: str) -> str:
        """Return a stand-in text for a resource of an unknown type."""
        text = f"${{{name}}}"
        if "Type" not in members(self.resources, resource):
            self.note_unknown_resource(resource, text)
        return text

    def parameter_value(self, name: str, value: Json) -> Json:
        """Return the value of a parameter, split if it is a `CommaDelimitedList`."""
        kind = members(self.parameters, name).get("Type")
        if type(value) is str and type(kind) is str and "List" in kind:
            return [item.strip() for item in value.split(",")]
        return as_text(value) if kind is not None and type(value) is not list else value

    def note_unknown_resource(self, name: str, text: str) -> None:
        """Note a missing resource, unless a macro of the template may create it."""
        known = [*self.resources, *self.parameters]
        hint = did_you_mean(name, known)
        if hint or not self.transformed:
            message = f"the template has neither a resource nor a parameter {name!r}"
            self.reading.note("READ-17", message, hint, text)

    # Conditions ----------------------------------------------------------------------------------

    def decide(self, value: Json, span: Span) -> bool:
        """Evaluate a condition for the known values.

        Raises:
            InvalidDocument: The value is not a condition.
        """
        self.reading.work(STEPS, self.source, span.at)
        if type(value) is str:
            return self.decide_named(value, span)
        if isinstance(span.members, dict) and len(span.members) == 1:
            ((name, inner),) = span.members.items()
            argument = value[name]
            match name:
                case "Condition" if type(argument) is str:
                    return self.decide_named(argument, span)
                case "Fn::Equals":
                    one, other = self.arguments(argument, inner, 2)
                    return self.string(*one) == self.string(*other)
                case "Fn::Not":
                    return not self.decide(*self.arguments(argument, inner, 1)[0])
                case "Fn::And" | "Fn::Or":
                    each = self.arguments(argument, inner, *range(2, 11))
                    return (all if name == "Fn::And" else any)(self.decide(*one) for one in each)
        raise self.error(span, "the value is not a condition")

    def decide_named(self, name: str, span: Span) -> bool:
        """Evaluate a condition of the template by its name.

        Raises:
            InvalidDocument: There is no such condition, or it depends on itself.
        """
        if name == self.assumed_condition:
            return True
        if name not in self.conditions:
            raise self.error(
                span, f"there is no condition {name!r}", did_you_mean(name, self.conditions)
            )
        if name in self.open_conditions:
            raise self.error(span, f"the condition {name!r} depends on itself")
        self.open_conditions.append(name)
        conditions = self.span.member("Conditions") or span
        holds = self.decide(self.conditions[name], conditions.member(name) or span)
        self.open_conditions.pop()
        return holds

    # Functions -----------------------------------------------------------------------------------

    def ref(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Ref`: a parameter, or the reference of a resource.

        Raises:
            InvalidDocument: The argument is not a string.
        """
        if type(argument) is not str:
            raise self.error(span, "Ref takes the name of a parameter or a resource")
        if argument == "AWS::NoValue":
            return NOTHING
        return self.constant(self.resolve_name(argument), at)

    def get_att(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::GetAtt`: an attribute of a resource.

        Raises:
            InvalidDocument: The argument names no attribute.
        """
        if type(argument) is list:
            parts = self.arguments(argument, span, *range(2, 10))
            name = ".".join(self.string(*part) for part in parts)
        else:
            name = self.string(argument, span)
        if "." not in name:
            raise self.error(span, "Fn::GetAtt takes a resource and an attribute, as in Name.Arn")
        return self.constant(self.resolve_name(name), at)

    def sub(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Sub`: a text with `${Name}`, and values for further names.

        Raises:
            InvalidDocument: The second argument is not an object.
        """
        own: Mapping[str, tuple[Json, Span]] = {}
        if type(argument) is list:
            (argument, span), (values, places) = self.arguments(argument, span, 2)
            if not isinstance(places.members, dict):
                raise self.error(places, "an object with values is expected here")
            own = {name: (values[name], place) for name, place in places.members.items()}
        text = self.text(argument, span)
        pieces = []
        end = 0
        for found in _SUBSTITUTION.finditer(text.string):
            self.reading.work(REFERENCE_STEPS, self.source, span.at)
            literal, name = found.groups()
            pieces.append(text.part(end, found.start()))
            origin = text.origin(found.start())
            if literal:
                pieces += [text.part(found.start(), found.start() + 2)]
                pieces += [text.part(found.start() + 3, found.end())]
            elif name in own:
                pieces.append(self.reading.insert(self.string(*own[name]), self.source, origin))
            else:
                value = as_text(self.resolve_name(name))
                pieces.append(self.reading.insert(value, self.source, origin))
            end = found.end()
        pieces.append(text.part(end, len(text.string)))
        return SourcePart(join_texts(pieces, text.begin), at)

    def join(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Join`: texts with a delimiter between them.

        Raises:
            InvalidDocument: The delimiter or an item is not a string.
        """
        (delimiter, place), (values, places) = self.arguments(argument, span, 2)
        between = self.literal(delimiter, place) if type(delimiter) is str else None
        if between is None:
            raise self.error(place, "the delimiter must be a string")
        pieces: list[TrackedText] = []
        for item in self.items(values, places):
            if isinstance(item.value, dict | list) or item.value is None:
                raise self.error(Span(item.at), "a string is expected here")
            text = item.value
            pieces += [between] if pieces else []
            pieces.append(
                text
                if isinstance(text, TrackedText)
                else TrackedText.at_offset(as_text(text), item.at)
            )
        return SourcePart(join_texts(pieces, at), at)

    def split(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Split`: the pieces of a text.

        Raises:
            InvalidDocument: The delimiter is empty.
        """
        delimiter, text = self.arguments(argument, span, 2)
        between = self.string(*delimiter)
        if not between:
            raise self.error(delimiter[1], "the delimiter is empty")
        return self.constant(_split(self.string(*text), between), at)

    def select(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Select`: one item of an array.

        Raises:
            InvalidDocument: The array has no item with this index.
        """
        index, values = self.arguments(argument, span, 2)
        items = self.items(*values)
        digits = self.string(*index)
        place = index_of(digits, items)
        unknown = [item for item in items if is_unknown(item)]
        if place is None and unknown:  # its value may be several of these items
            return unknown[-1]
        if place is None:
            raise self.error(index[1], f"there is no item {digits!r} of {len(items)}")
        return items[place]

    def find_in_map(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::FindInMap`: a value of the section Mappings.

        Raises:
            InvalidDocument: The mapping has no value for the keys.
        """
        *keys, last = self.arguments(argument, span, 3, 4)
        keys = keys if type(last[0]) is dict and "DefaultValue" in last[0] else [*keys, last]
        value: Json = self.mappings
        for key, place in keys:
            name = self.string(key, place)
            if type(value) is not dict or name not in value:
                if len(keys) < len(argument):
                    inner = last[1].member("DefaultValue") or last[1]
                    return self.resolve(last[0]["DefaultValue"], inner)
                if self.is_computed(key):
                    return self.deployment_value("Fn::FindInMap", span)
                known = list(value) if type(value) is dict else []
                hint = did_you_mean(name, known) or f"there are {', '.join(known[:10])}"
                raise self.error(place, f"the mapping has no {name!r}", hint)
            value = value[name]
        return self.constant(value, at)

    def is_computed(self, value: Json) -> bool:
        """Return whether a value is the result of a function, not a value of the caller."""
        return type(value) is dict and value.get("Ref") not in self.reading.given

    def choose(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::If`: one of two values, by a condition."""
        condition, yes, no = self.arguments(argument, span, 3)
        return self.resolve(*(yes if self.decide(*condition) else no))

    def import_value(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::ImportValue`: an output of another stack."""
        name = self.string(argument, span)
        given = self.reading.value(name)
        return self.constant(given or self.reading.stand_in(name, f"${{{name}}}"), at)

    def base64(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Base64`."""
        return self.constant(b64encode(self.string(argument, span).encode()).decode(), at)

    def length(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Length`: the number of items of an array."""
        return SourcePart(len(self.items(argument, span)), at)

    def to_json_string(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::ToJsonString`: a value as JSON text."""
        part = self.resolve(argument, span)
        return self.constant(
            compact(document_from_part(part, self.source, self.reading, None).value), at
        )

    def transform(self, argument: Json, span: Span, at: int) -> SourcePart:
        """`Fn::Transform`: an included file; a stand-in for results of other macros."""
        if type(argument) is dict and argument.get("Name") != "AWS::Include":
            return self.deployment_value("Fn::Transform", span)
        file = self.included_file(argument, span)
        return self.constant(parse_source(file, self.reading.limits).value, at)

    def included_file(self, argument: Json, span: Span) -> Source:
        """Return the file included by the macro AWS::Include.

        Raises:
            InvalidDocument: The macro is not AWS::Include, or the file cannot be read.
        """
        name = argument.get("Name") if type(argument) is dict else None
        if name != "AWS::Include":
            message = f"the macro {name!r} runs only in a deployment"
            raise self.reading.error(self.source, span.at, "READ-18", message)
        place = span.member("Parameters") or span
        path = self.string(
            members(argument, "Parameters").get("Location"), place.member("Location") or place
        )
        return self.reading.file(path, self.source, place.at)


def _split(text: str, between: str) -> list[str]:
    """Return the pieces of a text without splitting placeholders."""
    pieces = [""]
    end = 0
    for found in PLACEHOLDER.finditer(text):
        first, *others = text[end : found.start()].split(between)
        pieces[-1] += first
        pieces += others
        pieces[-1] += found[0]
        end = found.end()
    first, *others = text[end:].split(between)
    pieces[-1] += first
    return pieces + others


def is_unknown(part: SourcePart) -> bool:
    """Return whether a part is a text with a value known only after deployment."""
    return isinstance(part.value, TrackedText) and PLACEHOLDER.search(part.value.string) is not None


def _start(made: ResourceType, attribute: str) -> str | None:
    """Return the prefix of an attribute's value ('' is `Ref`), None for an unknown one."""
    if not attribute:
        return made.arn if made.ref is None else made.ref
    if attribute in made.others:
        return made.others[attribute]
    if attribute == made.name or attribute.endswith("Name"):
        return ""
    return made.arn if made.called or attribute in _ARNS else None


Function = Callable[[Resolver, Json, Span, int], SourcePart]

FUNCTIONS: Final[Mapping[str, Function]] = {
    "Ref": Resolver.ref,
    "Fn::Base64": Resolver.base64,
    "Fn::FindInMap": Resolver.find_in_map,
    "Fn::GetAtt": Resolver.get_att,
    "Fn::If": Resolver.choose,
    "Fn::ImportValue": Resolver.import_value,
    "Fn::Join": Resolver.join,
    "Fn::Length": Resolver.length,
    "Fn::Select": Resolver.select,
    "Fn::Split": Resolver.split,
    "Fn::Sub": Resolver.sub,
    "Fn::ToJsonString": Resolver.to_json_string,
    "Fn::Transform": Resolver.transform,
}
"""The functions that can be evaluated without a deployment."""

_CONDITIONS = ("And", "Equals", "Not", "Or")
_OTHERS = ("Cidr", "ForEach", "GetAZs", "GetStackOutput")

TAGS: Final = {
    f"!{name.removeprefix('Fn::')}": name
    for name in (
        *FUNCTIONS,
        "Condition",
        *(f"Fn::{name}" for name in (*_CONDITIONS, *_OTHERS)),
    )
}
"""The short forms of functions in YAML."""

SCHEMA: Final = yaml_1_1_schema(TAGS)
"""The YAML of CloudFormation."""


def members(value: Json, key: str) -> dict[str, Json]:
    """Return the object under a key, empty without one."""
    found = value.get(key) if type(value) is dict else None
    return found if type(found) is dict else {}
