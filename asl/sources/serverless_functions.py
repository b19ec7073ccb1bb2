"""Lambda functions of a `serverless.yml`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from asl.core.diagnostics import InvalidDocument
from asl.core.values import Json
from asl.sources.definition import json_from_part
from asl.sources.lambda_function import LambdaFunction, read_number
from asl.sources.read_context import ReadContext, as_text
from asl.sources.serverless import (
    FilePlace,
    ServerlessTemplate,
    ServerlessVariables,
    logical_name,
)

__all__ = ["read_functions"]

TIMEOUT: Final = 6.0
MEMORY: Final = 1024
"""The framework's defaults."""


def read_functions(template: ServerlessTemplate, context: ReadContext) -> list[LambdaFunction]:
    """Return the functions of a file; a function that cannot be read has a `problem`."""
    reader = _Reader(template, context)
    return [
        reader.function(name, place.member(name))
        for place in reader.variables.objects("functions")
        for name in place.value
    ]


class _Reader:
    """Reads the functions of one file."""

    def __init__(self, template: ServerlessTemplate, context: ReadContext) -> None:
        self.template = template
        self.context = context
        self.variables = ServerlessVariables(template, context)
        self.provider = self.variables.section("provider")
        self.layer_paths = dict(self.read_layers())

    def function(self, name: str, place: FilePlace) -> LambdaFunction:
        """Return the function of this name."""
        resolver = self.variables.resolver(self.template.source)
        arn = str(resolver.resolve_name(f"{name}.Arn"))
        function = LambdaFunction(name, name, (arn,), timeout=TIMEOUT, memory=MEMORY)
        try:
            return self.read_function(function, self.variables.follow(place))
        except InvalidDocument as refusal:
            return replace(function, problem=next(iter(refusal.report)).message)

    def read_function(self, function: LambdaFunction, place: FilePlace) -> LambdaFunction:
        """Return a function with its configuration and the place of its code."""
        key = function.logical
        deployed = self.value(place, "name") or f"{self.service()}-{self.stage()}-{key}"
        function = replace(function, name=str(deployed), other_names=(key,))
        if place.has("image"):
            return replace(function, problem="its code is a container image")
        layers = self.setting(place, "layers")
        names = [str(each) for each in layers] if type(layers) is list else []
        found = [(each, self.layer_paths.get(each)) for each in names]
        return replace(
            function,
            runtime=as_text(self.setting(place, "runtime") or ""),
            handler=as_text(self.value(place, "handler") or ""),
            timeout=read_number(as_text(self.setting(place, "timeout")), TIMEOUT),
            memory=int(read_number(as_text(self.setting(place, "memorySize")), MEMORY)),
            environment=self.environment(place),
            code=self.context.place(".", self.template.source, 0),
            layers=tuple(folder for _, folder in found if folder is not None),
            missing_layers=tuple(each for each, folder in found if folder is None),
        )

    def value(self, place: FilePlace | None, key: str) -> Json:
        """Return a member of an object with its variables evaluated; None if it is absent."""
        if place is None or not place.has(key):
            return None
        found = self.variables.follow(place.member(key))
        resolver = self.variables.resolver(found.source)
        return json_from_part(resolver.resolve(found.value, found.span))

    def setting(self, place: FilePlace, key: str) -> Json:
        """Return a setting of a function, or else that of the provider."""
        own = self.value(place, key)
        return self.value(self.provider, key) if own is None else own

    def environment(self, place: FilePlace) -> dict[str, str]:
        """Return the environment variables of a function, with those of the provider."""
        variables: dict[str, str] = {}
        for found in (self.value(self.provider, "environment"), self.value(place, "environment")):
            if type(found) is dict:
                variables |= {
                    name: as_text(value) for name, value in found.items() if value is not None
                }
        return variables

    def service(self) -> str:
        """Return the name of the service."""
        found = self.value(self.variables.root, "service")
        return as_text(found.get("name", "service") if type(found) is dict else found)

    def stage(self) -> str:
        """Return the stage of the deployment."""
        return as_text(self.variables.resolve_variable("sls:stage", self.variables.root))

    def read_layers(self) -> Iterator[tuple[str, str]]:
        """Yield the layers of the file: how functions refer to each, and its folder."""
        for place in self.variables.objects("layers"):
            for name in place.value:
                try:
                    path = self.value(self.variables.follow(place.member(name)), "path")
                    folder = self.context.place(as_text(path), self.template.source, place.span.at)
                except InvalidDocument:
                    continue
                yield f"${{{logical_name(name)}LambdaLayer}}", folder
