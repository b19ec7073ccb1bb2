"""State machines in `serverless.yml`, for the plugin serverless-step-functions.

Variables (`${self:custom.queue}`) are evaluated as far as possible without a deployment.
Definitions may also use the functions of CloudFormation.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.document import Document, PlannedStart, parse_source
from asl.core.source import Limits, Source, Span
from asl.core.values import Json
from asl.core.yaml_schema import CORE, Schema
from asl.sources.aws_resources import RESOURCES
from asl.sources.definition import (
    SourcePart,
    document_from_part,
    document_from_text,
    json_from_part,
    substitute,
)
from asl.sources.intrinsics import TAGS, Resolver, members
from asl.sources.read_context import (
    Note,
    ReadContext,
    as_text,
    fault_notes,
    read_template,
)
from asl.sources.text import TrackedText

__all__ = [
    "FilePlace",
    "ServerlessTemplate",
    "ServerlessVariables",
    "logical_name",
]

MAX_ROUNDS: Final = 20
"""Levels of nested variables, and of files that refer to files."""

_VARIABLE = re.compile(r"\$\{([A-Za-z]\w*(?:\(|:(?!:))[^{}$]*)\}")
_FILE = re.compile(r"file\(([^()]+)\)(?::(.+))?")
_SOURCE = re.compile(r"([A-Za-z]\w*):(.*)")
_STR_TO_BOOL = re.compile(r"strToBool\(\s*(?:(true|1)|(?:false|0))\s*\)", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"""\s*((?:'[^']*'|"[^"]*"|[^,'"])*)(?:,|$)""")
_PSEUDO = re.compile(r"#\{([A-Za-z]\w*(?:::\w+|\.\w+)*)\}")
"""The form of `Ref` in texts of an older plugin."""


class ServerlessTemplate:
    """A `serverless.yml`, and the state machines of its section `stepFunctions`."""

    def __init__(self, source: Source, limits: Limits) -> None:
        document, self.faults = read_template(source, limits, _SCHEMA)
        self.value = document.value
        self.span = document.span
        self.source = document.source
        variables = ServerlessVariables(self, ReadContext({}, limits))
        self.names = dict.fromkeys(variables.machines().value, frozenset[str]())
        for logical, name in variables.machine_ids.items():
            self.names[name] = variables.other_names(logical) - {name}
        self.hints = {
            name: f"write Fn::GetAtt: [{logical_name(function)}LambdaFunction, Arn]"
            for name, function in variables.functions.items()
        }
        """The ARN expression of each function by name."""

    def deployed_name(self, name: str, context: ReadContext) -> str:
        """Return the name of a state machine in ARNs: its own, else its key."""
        variables = ServerlessVariables(self, context)
        logical = next(key for key, each in variables.machine_ids.items() if each == name)
        return variables.machine_name(logical)

    def is_express(self, name: str, context: ReadContext) -> bool:
        """Return whether a state machine is of the type EXPRESS."""
        variables = ServerlessVariables(self, context)
        machine = variables.follow(variables.machines().member(name))
        return machine.has("type") and variables.follow(machine.member("type")).value == "EXPRESS"

    def qualifiers(self, name: str, context: ReadContext) -> tuple[str, ...]:
        """Return no versions and aliases: the plugin makes none."""
        return ()

    def planned_starts(self, name: str, context: ReadContext) -> tuple[PlannedStart, ...]:
        """Return no schedules: those of templates of SAM and CloudFormation are read."""
        return ()

    @property
    def notes(self) -> Iterator[Note]:
        """Yield the faults of the file outside its definitions."""
        return fault_notes(self.source, self.faults)

    def document(self, name: str, context: ReadContext) -> Document:
        """Return the definition of a state machine.

        Raises:
            InvalidDocument: The definition cannot be read.
        """
        variables = ServerlessVariables(self, context)
        machine = variables.follow(variables.machines().member(name))
        if type(machine.value) is not dict or "definition" not in machine.value:
            message = f"{name} has no 'definition'"
            raise context.error(machine.source, machine.span.at, "READ-14", message)
        found = variables.follow(machine.member("definition"))
        part = variables.resolver(found.source).resolve(found.value, found.span)
        if isinstance(part.value, TrackedText):
            return document_from_text(part.value, found.source, context, name)
        return document_from_part(part, found.source, context, name)


_SCHEMA: Final = Schema(CORE.words, TAGS, old=True)
"""The framework's YAML: that of YAML 1.2, with merge keys."""


class FilePlace:
    """A value with its position in one of the files."""

    __slots__ = ("source", "span", "value")

    def __init__(self, value: Json, span: Span, source: Source) -> None:
        self.value = value
        self.span = span
        self.source = source

    def member(self, step: str) -> "FilePlace":
        """Return an existing member."""
        value = self.value[int(step) if type(self.value) is list else step]
        return FilePlace(value, self.span.member(step) or self.span, self.source)

    def has(self, step: str) -> bool:
        """Return whether a member exists."""
        if type(self.value) is list:
            return step.isdecimal() and int(step) < len(self.value)
        return type(self.value) is dict and step in self.value


class ServerlessVariables:
    """The variables of a `serverless.yml`."""

    def __init__(self, template: ServerlessTemplate, context: ReadContext) -> None:
        self.reading = context
        self.root = FilePlace(template.value, template.span, template.source)
        self.open_variables: list[str] = []
        """The variables being evaluated."""
        self.open_settings: list[str] = []
        """The settings of the provider being evaluated."""
        self.results: dict[tuple[str, str | None], Json] = {}
        """Evaluated variables by file."""
        self.functions: dict[str, str] = {}
        """The functions by name and logical name."""
        self.machine_ids: dict[str, str] = {}
        """The state machines by the logical names of their resources."""
        self.resources: dict[str, Json] = {}
        """The CloudFormation resources, including those that the framework creates."""
        self.declare()

    def resolver(self, source: Source) -> "_Resolver":
        """Return the resolver for the values of a file."""
        template = {"Resources": self.resources, "Transform": "serverless"}
        return _Resolver(template, self.root.span, source, self.reading, self)

    def declare(self) -> None:
        """Collect the functions, state machines and resources of the file."""
        for place in self.objects("resources"):
            self.resources |= members(place.value, "Resources")
        for place in self.objects("functions"):
            for name in place.value:
                logical = f"{logical_name(name)}LambdaFunction"
                self.functions |= {name: name, logical: name}
                self.resources[name] = {"Type": "AWS::Lambda::Function"}
        machines = self.machines()
        for name in machines.value:
            found = self.readable_place(machines.member(name))
            machine = found.value if found is not None and type(found.value) is dict else {}
            logical = f"{logical_name(name)}StepFunctionsStateMachine"
            own = machine.get("id")
            if type(own) is str and not _VARIABLE.search(own):
                logical = own
            self.machine_ids[logical] = name
            called = machine.get("name", name)
            self.resources[logical] = _created_resource("StateMachine", "StateMachineName", called)
        for place in self.objects("stepFunctions", "activities"):
            for name in place.value if type(place.value) is list else ():
                logical = f"{logical_name(str(name))}StepFunctionsActivity"
                self.resources[logical] = _created_resource("Activity", "Name", str(name))

    def machine_name(self, logical: str) -> str:
        """Return the name of a state machine in ARNs: its own, else its key."""
        made = RESOURCES["AWS::StepFunctions::StateMachine"]
        resolver = self.resolver(self.root.source)
        return resolver.resource_name(logical, made) or self.machine_ids[logical]

    def other_names(self, logical: str) -> frozenset[str]:
        """Return the logical name of a state machine, and its own name if it can be evaluated."""
        try:
            return frozenset((logical, self.machine_name(logical)))
        except InvalidDocument:
            return frozenset((logical,))

    def objects(self, *steps: str) -> Iterator[FilePlace]:
        """Yield the objects of a section, one for each file of a list."""
        section = self.section(*steps)
        if section is None:
            return
        listed = type(section.value) is list and steps[-1] != "activities"
        for index in range(len(section.value)) if listed else ():
            part = self.readable_place(section.member(str(index)))
            if part is not None and type(part.value) is dict:
                yield part
        if type(section.value) is dict or (type(section.value) is list and not listed):
            yield section

    def section(self, *steps: str) -> FilePlace | None:
        """Return a section; None if it is absent or its file cannot be read."""
        place: FilePlace | None = self.root
        for step in steps:
            place = self.readable_place(place.member(step)) if place and place.has(step) else None
        return place

    def readable_place(self, place: FilePlace) -> FilePlace | None:
        """Return a place; None if its file cannot be read."""
        try:
            found = self.follow(place)
        except InvalidDocument:
            return None
        return None if type(found.value) is str else found

    def machines(self) -> FilePlace:
        """Return the object with the state machines."""
        place = self.root
        for step in ("stepFunctions", "stateMachines"):
            if not place.has(step):
                return FilePlace({}, place.span, place.source)
            place = self.follow(place.member(step))
        return place if type(place.value) is dict else FilePlace({}, place.span, place.source)

    def follow(self, place: FilePlace) -> FilePlace:
        """Return a place; for a single variable, the place that it refers to."""
        for _ in range(MAX_ROUNDS):
            whole = self.single_variable(place)
            found = None if whole is None else self.find_place(whole, place)
            if found is None:
                break
            place = found
        return place

    def single_variable(self, place: FilePlace) -> str | None:
        """Return the variable if a text consists of one, else None."""
        value = place.value
        if type(value) is not str or not value.startswith("${") or not _ends_with_its_brace(value):
            return None
        found = _VARIABLE.fullmatch(self.replace_nested(value, place))
        return None if found is None else found[1]

    def resolve_variable(self, expression: str, place: FilePlace) -> Json:
        """Return the value of a variable, or a stand-in."""
        key = expression, place.source.name
        if key not in self.results:
            self.results[key] = self.evaluate(expression, place)
        return self.results[key]

    def evaluate(self, expression: str, place: FilePlace) -> Json:
        """Evaluate a variable; raises InvalidDocument if it refers to itself or to nothing."""
        if expression in self.open_variables or len(self.open_variables) > MAX_ROUNDS:
            raise self.error(place, f"${{{expression}}} refers to itself")
        self.open_variables.append(expression)
        unknown = False
        try:
            *_, last = alternatives = [*_alternatives(expression)]
            for each in alternatives:
                literal = _LITERAL.fullmatch(each)
                if literal is not None:
                    return _parse_literal(each)
                truth = _STR_TO_BOOL.fullmatch(each)
                if truth is not None:
                    return truth[1] is not None
                given = self.reading.given_value(each)
                if given is not None:
                    return given
                try:
                    found = self.find_place(each, place)
                except InvalidDocument as refusal:  # a missing file or a program
                    if any(fault.code not in ("READ-14", "READ-18") for fault in refusal.report):
                        raise
                    found, unknown = None, True
                if found is not None:
                    resolver = self.resolver(found.source)
                    part = resolver.resolve(found.value, found.span)
                    return json_from_part(part)
                known = self.environment_value(each)
                if known is not None and (each == last or not each.startswith("opt:")):
                    return known
            if each.startswith("self:") and not unknown:
                raise self.error(place, f"the file has no {each.removeprefix('self:')!r}")
        finally:
            self.open_variables.pop()
        return self.reading.stand_in(expression, f"${{{expression}}}")

    def find_place(self, expression: str, place: FilePlace) -> FilePlace | None:
        """Return the place that a variable refers to, None if it is not in a file.

        Raises:
            InvalidDocument: The file cannot be read, or its value is known only after deployment.
        """
        file = _FILE.fullmatch(expression)
        if file is not None:
            path = file[1].strip()
            if not path.endswith((".json", ".yaml", ".yml")):
                message = f"{path!r} is a program: it runs only in a deployment"
                raise self.reading.error(place.source, place.span.at, "READ-18", message)
            source = self.reading.file(path, place.source, place.span.at)
            document = parse_source(source, self.reading.limits, _SCHEMA)
            found = FilePlace(document.value, document.span, document.source)
            return self.walk(found, file[2], place) if file[2] else found
        source_of = _SOURCE.fullmatch(expression)
        if source_of is not None and source_of[1] == "param":
            return self.parameter(source_of[2])
        if source_of is None or source_of[1] != "self":
            return None
        steps = source_of[2].split(".") if source_of[2] else []
        here = self.root
        for step in steps:
            here = self.follow(here)
            if self.single_variable(here) is not None:
                message = f"{here.value} is known only after deployment"
                raise self.reading.error(here.source, here.span.at, "READ-18", message)
            if not here.has(step):
                return None
            here = here.member(step)
        return here

    def parameter(self, name: str) -> FilePlace | None:
        """Return a parameter of the file: of the stage, else the default; None without one."""
        stage = as_text(self.resolve_variable("sls:stage", self.root))
        for each in (stage, "default"):
            for section in (("params", each), ("stages", each, "params")):
                place = self.section(*section)
                if place is not None and place.has(name):
                    return place.member(name)
        return None

    def walk(self, found: FilePlace, path: str, place: FilePlace) -> FilePlace:
        """Return the member at a path of a place; raises InvalidDocument if there is none."""
        for step in path.split("."):
            found = self.follow(found)
            if not found.has(step):
                known = list(found.value) if type(found.value) is dict else []
                raise self.error(place, f"the file has no {step!r}", did_you_mean(step, known))
            found = found.member(step)
        return found

    def replace_nested(self, value: str, place: FilePlace) -> str:
        """Return a variable with its nested variables replaced."""
        for _ in range(MAX_ROUNDS):
            if _VARIABLE.fullmatch(value) is not None:
                break
            value = _VARIABLE.sub(
                lambda found: as_text(self.resolve_variable(found[1], place)), value
            )
        return value

    def environment_value(self, expression: str) -> Json:
        """Return a value of the deployment's environment; None if it is unknown."""
        match expression:
            case "sls:stage" | "opt:stage" | "self:provider.stage":
                return self.provider_setting("stage", "dev")
            case "aws:region" | "opt:region" | "self:provider.region":
                return self.provider_setting("region", self.reading.locate("{region}"))
            case "aws:accountId":
                return self.reading.locate("{account}")
        return None

    def provider_setting(self, name: str, assumed: str) -> str:
        """Return a setting of the provider, *assumed* if it is known only after deployment."""
        place = self.section("provider")
        if place is None or not place.has(name) or name in self.open_settings:
            return assumed
        self.open_settings.append(name)
        found = place.member(name)
        try:
            value = self.resolver(found.source).string(found.value, found.span)
        except InvalidDocument:
            return assumed
        finally:
            self.open_settings.pop()
        return assumed if "${" in value else value

    def error(self, place: FilePlace, message: str, hint: str | None = None) -> Exception:
        return self.reading.error(place.source, place.span.at, "READ-16", message, hint)


class _Resolver(Resolver):
    """Evaluates the values of one file: variables first, then CloudFormation's functions."""

    def __init__(
        self,
        template: Json,
        span: Span,
        source: Source,
        context: ReadContext,
        variables: ServerlessVariables,
    ) -> None:
        super().__init__(template, span, source, context)
        self.variables = variables

    def resolve(self, value: Json, span: Span) -> SourcePart:
        self.reading.count(self.source, span.at)
        place = FilePlace(value, span, self.source)
        whole = self.variables.single_variable(place)
        if whole is None:
            return super().resolve(value, span)
        return self.constant(self.variables.resolve_variable(whole, place), span.at)

    def constant(self, value: Json, at: int) -> SourcePart:
        self.reading.count(self.source, at)
        return super().constant(value, at)

    def resolve_name(self, name: str) -> Json:
        if name == "AWS::Region" and self.reading.given_value(name) is None:
            return self.variables.environment_value("aws:region")
        base, dot, attribute = name.partition(".")
        return super().resolve_name(self.variables.functions.get(base, base) + dot + attribute)

    def literal(self, value: str, span: Span) -> TrackedText:
        text = super().literal(value, span)
        place = FilePlace(value, span, self.source)
        for _ in range(MAX_ROUNDS):
            filled = self.replace_innermost(text, place)
            if filled is text:
                break
            text = filled
        return text

    def replace_innermost(self, text: TrackedText, place: FilePlace) -> TrackedText:
        """Return the text with its innermost variables replaced."""

        def lookup(name: str) -> str | None:
            if _VARIABLE.fullmatch(f"${{{name}}}") is None:
                return None
            return as_text(self.variables.resolve_variable(name, place))

        text = substitute(text, lookup, self.source, self.reading)
        if "#{" not in text.string:
            return text
        pseudo = _PSEUDO.sub(lambda found: as_text(self.resolve_name(found[1])), text.string)
        return text if pseudo == text.string else TrackedText.at_offset(pseudo, text.begin)


def logical_name(name: str) -> str:
    """Return the start of the logical name that the framework gives a resource."""
    logical = name.replace("-", "Dash").replace("_", "Underscore")
    return f"{logical[:1].upper()}{logical[1:]}"


def _created_resource(kind: str, field: str, name: Json) -> Json:
    """Return a Step Functions resource as the framework creates it."""
    return {"Type": f"AWS::StepFunctions::{kind}", "Properties": {field: name}}


def _ends_with_its_brace(value: str) -> bool:
    """Return whether the last character closes the first brace of a text."""
    depth = 0
    for index, character in enumerate(value):
        depth += (character == "{") - (character == "}")
        if depth == 0 and character == "}":
            return index == len(value) - 1
    return False


def _alternatives(expression: str) -> Iterator[str]:
    """Yield a variable and its defaults: `opt:stage, self:custom.stage, 'dev'`."""
    for found in _ALTERNATIVE.finditer(expression):
        if found[1].strip():
            yield found[1].strip()


_LITERAL = re.compile(r"""'[^']*'|"[^"]*"|true|false|null|-?[0-9]+(?:\.[0-9]+)?""")
_WORDS: Final[Mapping[str, Json]] = {"true": True, "false": False, "null": None}


def _parse_literal(text: str) -> Json:
    if text[0] in "'\"":
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if "." in text else int(text)
