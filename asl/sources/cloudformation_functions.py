"""Lambda functions in templates of SAM and CloudFormation, including those synthesized by CDK."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from asl.core.diagnostics import InvalidDocument
from asl.core.document import clip, parse_source
from asl.core.errors import DocumentNotFound
from asl.core.source import Span
from asl.core.values import Json
from asl.sources.aws_resources import RESOURCES
from asl.sources.cloudformation import CloudFormationTemplate
from asl.sources.intrinsics import Resolver, members
from asl.sources.lambda_function import LambdaFunction, read_number
from asl.sources.read_context import ReadContext
from asl.sources.text import TrackedText

__all__ = ["read_functions"]

SAM: Final = "AWS::Serverless::Function"
FUNCTIONS: Final = (SAM, "AWS::Lambda::Function")
QUALIFIERS: Final = ("AWS::Lambda::Alias", "AWS::Lambda::Version")
"""Resources whose ARN calls a function, named by the property `FunctionName`."""
LAYERS: Final = {
    "AWS::Serverless::LayerVersion": "ContentUri",
    "AWS::Lambda::LayerVersion": "Content",
}
"""Types of layers, with the property of their contents."""
_STAND_IN = re.compile(r"\$\{([\w:]+)(?:\.\w+)?\}")


def read_functions(template: CloudFormationTemplate, context: ReadContext) -> list[LambdaFunction]:
    """Return the functions of a template; a function that cannot be read has a `problem`."""
    reader = _Reader(template, context)
    functions = [
        reader.function(name)
        for name, resource in reader.resolver.resources.items()
        if type(resource) is dict and str(resource.get("Type")) in FUNCTIONS
    ]
    aliases = [*reader.aliases()]
    found = [
        replace(each, arns=(*each.arns, *(arn for arn, named in aliases if _is_named(each, named))))
        for each in functions
    ]
    for stack in template.stacks:
        nested = template.nested(stack, context)
        found += [] if nested is None else read_functions(*nested)
    return found


def _is_named(function: LambdaFunction, named: str) -> bool:
    """Return whether this is the name or an ARN of a function."""
    return named == function.name or named in function.arns


class _Value:
    """A value of the template with its position."""

    def __init__(self, value: Json, span: Span) -> None:
        self.value = value
        self.span = span

    def member(self, key: str) -> "_Value | None":
        """Return a member of an object; None if it is absent."""
        if type(self.value) is not dict or key not in self.value:
            return None
        return _Value(self.value[key], self.span.member(key) or self.span)


class _Reader:
    """Reads the functions of one template."""

    def __init__(self, template: CloudFormationTemplate, context: ReadContext) -> None:
        self.source = template.source
        self.context = context
        self.resolver = Resolver(template.value, template.span, template.source, context)
        self.root = _Value(template.value, template.span)

    def find(self, *steps: str) -> _Value | None:
        """Return a value of the template by its path."""
        found: _Value | None = self.root
        for step in steps:
            found = None if found is None else found.member(step)
        return found

    def properties(self, name: str, key: str) -> Iterator[_Value]:
        """Yield a property of a resource: of SAM's globals first, then its own."""
        kind = self.resolver.resources[name]["Type"]
        shared = self.find("Globals", "Function", key) if kind == SAM else None
        for found in (shared, self.find("Resources", name, "Properties", key)):
            if found is not None:
                yield found

    def property(self, name: str, key: str) -> _Value | None:
        """Return a property of a resource, or else that of SAM's globals."""
        return next(reversed([*self.properties(name, key)]), None)

    def text(self, name: str, key: str) -> str:
        """Return a property as a text; "" if it is absent."""
        found = self.property(name, key)
        return "" if found is None else self.resolver.string(found.value, found.span)

    def function(self, name: str) -> LambdaFunction:
        """Return the function of a resource."""
        made = RESOURCES[self.resolver.resources[name]["Type"]]
        function = LambdaFunction(name, name, ())
        try:
            own = self.resolver.resource_name(name, made) or name
            arn = str(self.resolver.resolve_name(f"{name}.Arn"))
            others = () if own == name else (name,)
            function = replace(function, name=own, arns=(arn,), other_names=others)
            return self.read_function(function)
        except InvalidDocument as refusal:
            return replace(function, problem=next(iter(refusal.report)).message)

    def read_function(self, function: LambdaFunction) -> LambdaFunction:
        """Return a function with its configuration and the place of its code."""
        name = function.logical
        packaged = self.text(name, "PackageType") == "Image"
        if packaged or self.property(name, "ImageUri") is not None:
            return replace(function, problem="its code is a container image")
        function = replace(
            function,
            runtime=self.text(name, "Runtime"),
            handler=self.text(name, "Handler"),
            timeout=self.number(name, "Timeout", function.timeout),
            memory=int(self.number(name, "MemorySize", function.memory)),
            environment=self.environment(name),
        )
        layers = [*self.layers(name)]
        function = replace(
            function,
            layers=tuple(folder for _, folder in layers if folder is not None),
            missing_layers=tuple(shown for shown, folder in layers if folder is None),
        )
        inline = self.inline(name)
        if inline is not None:
            return replace(function, inline=inline)
        code = self.folder(name, "Code" if self.property(name, "Code") else "CodeUri")
        if code is None:
            return replace(function, problem="its code is in an S3 bucket, not in the project")
        return replace(function, code=code)

    def number(self, name: str, key: str, default: float) -> float:
        """Return a property as a number; the default if it is absent or known only later."""
        return read_number(self.text(name, key), default)

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment variables of a function, with those of SAM's globals."""
        variables: dict[str, str] = {}
        for found in self.properties(name, "Environment"):
            each = found.member("Variables")
            part = None if each is None else self.resolver.resolve(each.value, each.span).value
            for key, value in part.items() if isinstance(part, dict) else ():
                text = value.value
                variables[key] = text.string if isinstance(text, TrackedText) else _as_text(text)
        return variables

    def inline(self, name: str) -> str | None:
        """Return the code that the template contains, None without any."""
        found = self.property(name, "InlineCode")
        code = self.property(name, "Code")
        if found is None and code is not None:
            found = code.member("ZipFile")
        return None if found is None else self.resolver.string(found.value, found.span)

    def folder(self, name: str, key: str) -> str | None:
        """Return the local place of a resource's code; None if it is only in a bucket.

        Raises:
            InvalidDocument: The place is outside the root, or known only after deployment.
        """
        found = self.property(name, key)
        at = self.root.span.at if found is None else found.span.at
        metadata = members(self.resolver.resources[name], "Metadata")
        path = metadata.get("aws:asset:path")
        if type(path) is str:
            return self.context.place(path, self.source, at)
        if found is None:
            return self.context.place(".", self.source, at)
        if type(found.value) is dict and not found.value.keys().isdisjoint(("S3Key", "Key")):
            stored = found.member("S3Key") or found.member("Key")
            assert stored is not None
            asset = self.asset(self.resolver.string(stored.value, stored.span))
            return None if asset is None else self.context.place(asset, self.source, at)
        path = self.resolver.string(found.value, found.span)
        if "://" in path:
            return None
        if "${" in path:
            message = f"the path {clip(path)!r} is known only after deployment"
            raise self.context.error(self.source, at, "READ-18", message)
        return self.context.place(path, self.source, at)

    def asset(self, key: str) -> str | None:
        """Return the path of an asset by its key in the bucket, from CDK's manifest of assets."""
        stem = os.path.basename(self.source.name or "").partition(".template.")[0]
        try:
            file = self.context.file(f"{stem}.assets.json", self.source, 0)
        except (DocumentNotFound, InvalidDocument):
            return None
        files = members(parse_source(file, self.context.limits).value, "files")
        for each in files.values():
            path = members(each, "source").get("path")
            places = members(each, "destinations").values()
            keys = [place.get("objectKey") for place in places if type(place) is dict]
            if type(path) is str and key in keys:
                return path
        return None

    def layers(self, name: str) -> Iterator[tuple[str, str | None]]:
        """Yield name and folder of each layer; None for the folder of a layer from elsewhere."""
        for found in self.properties(name, "Layers"):
            for part in self.resolver.items(found.value, found.span):
                shown = part.value.string if isinstance(part.value, TrackedText) else "?"
                named = _STAND_IN.fullmatch(shown)
                layer = named[1] if named else ""
                key = LAYERS.get(str(members(self.resolver.resources, layer).get("Type")))
                yield (layer or shown), (None if key is None else self.folder(layer, key))

    def aliases(self) -> Iterator[tuple[str, str]]:
        """Yield the ARN of each alias and version, with the function as it names it."""
        for name, resource in self.resolver.resources.items():
            if type(resource) is not dict or str(resource.get("Type")) not in QUALIFIERS:
                continue
            called = self.find("Resources", name, "Properties", "FunctionName")
            if called is None:
                continue
            try:
                function = self.resolver.string(called.value, called.span)
            except InvalidDocument:
                continue
            yield str(self.resolver.resolve_name(name)), function


def _as_text(value: object) -> str:
    """Return the text of an environment variable for a value that is no text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else ""
