"""Lambda functions in Terraform files: `aws_lambda_function` with code that the files lead to."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from asl.core.diagnostics import InvalidDocument
from asl.core.source import Source
from asl.core.values import Json
from asl.sources.aws_resources import FUNCTION
from asl.sources.definition import json_from_part
from asl.sources.lambda_function import LambdaFunction, read_number
from asl.sources.read_context import ReadContext, as_text
from asl.sources.terraform import TerraformTemplate
from asl.sources.terraform.expressions import Evaluator
from asl.sources.terraform.scope import HclScope
from asl.sources.terraform.syntax import HclBlock, HclNode

__all__ = ["read_functions"]

_ARCHIVE = re.compile(r"data\.archive_file\.([\w-]+)\.output_path")
_LAYER = re.compile(r"aws_lambda_layer_version\.([\w-]+)\.arn")
_CODE: Final = ("source_dir", "source_file")
"""Arguments of `archive_file` with the code: a folder, or one file of it."""


def read_functions(template: TerraformTemplate, context: ReadContext) -> list[LambdaFunction]:
    """Return the functions of a folder; a function that cannot be read has a `problem`."""
    reader = _Reader(template, context)
    return [
        reader.function(block, source)
        for block, source in template.folder.resources("aws_lambda_function")
    ]


class _Reader:
    """Reads the functions of one folder."""

    def __init__(self, template: TerraformTemplate, context: ReadContext) -> None:
        self.folder = template.folder
        self.context = context
        self.evaluator = Evaluator(template.folder, context)

    def function(self, block: HclBlock, source: Source) -> LambdaFunction:
        """Return the function of a block."""
        label = block.labels[-1]
        function = LambdaFunction(label, label, ())
        try:
            own = self.value(block, "function_name", source)
            name = label if type(own) is not str or "${" in own else own
            arn = self.context.locate(FUNCTION)
            others = () if name == label else (label,)
            function = replace(function, name=name, arns=(arn + name,), other_names=others)
            return self.configured(function, block, source)
        except InvalidDocument as refusal:
            return replace(function, problem=next(iter(refusal.report)).message)

    def configured(
        self, function: LambdaFunction, block: HclBlock, source: Source
    ) -> LambdaFunction:
        """Return a function with its configuration and the place of its code."""
        if "image_uri" in block.body.attributes:
            return replace(function, problem="its code is a container image")
        layers = [*self.layers(block, source)]
        function = replace(
            function,
            runtime=as_text(self.value(block, "runtime", source) or ""),
            handler=as_text(self.value(block, "handler", source) or ""),
            timeout=self.number(block, "timeout", source, function.timeout),
            memory=int(self.number(block, "memory_size", source, function.memory)),
            environment=self.environment(block, source),
            layers=tuple(folder for _, folder in layers if folder is not None),
            missing_layers=tuple(shown for shown, folder in layers if folder is None),
        )
        if "filename" not in block.body.attributes:
            return replace(function, problem="its code is in an S3 bucket, not in the project")
        return replace(function, code=self.code(block.body.attributes["filename"], source))

    def value(self, block: HclBlock, name: str, source: Source) -> Json:
        """Return an argument of a block; None if it is absent."""
        node = block.body.attributes.get(name)
        return None if node is None else self.json(node, source)

    def json(self, node: HclNode, source: Source) -> Json:
        """Return the value of an expression, with stand-ins for what is known only later."""
        scope = HclScope(source)
        return json_from_part(self.evaluator.fill_unknown(self.evaluator.value(node, scope), scope))

    def number(self, block: HclBlock, name: str, source: Source, default: float) -> float:
        """Return an argument as a number; the default if it is absent or known only later."""
        return read_number(as_text(self.value(block, name, source)), default)

    def environment(self, block: HclBlock, source: Source) -> dict[str, str]:
        """Return the environment variables of a function."""
        found: dict[str, str] = {}
        for each in block.body.blocks:
            if each.kind == "environment":
                variables = self.value(each, "variables", source)
                if type(variables) is dict:
                    found |= {name: as_text(value) for name, value in variables.items()}
        return found

    def code(self, node: HclNode, source: Source) -> str:
        """Return the folder of the code in an archive that the files make, else the file itself.

        Raises:
            InvalidDocument: The place is outside the root, or known only after deployment.
        """
        archive = _ARCHIVE.fullmatch(HclScope(source).source_text(node))
        found = archive and self.folder.block("data", "archive_file", archive[1])
        if not found:
            return self.context.place(as_text(self.json(node, source)), source, node.at)
        block, inner = found
        for name in _CODE:
            if name in block.body.attributes:
                place = self.context.place(as_text(self.value(block, name, inner)), inner, block.at)
                return place if name == "source_dir" else os.path.dirname(place)
        message = f"the archive {block.labels[-1]!r} has neither {' nor '.join(_CODE)}"
        raise self.context.error(inner, block.at, "READ-18", message)

    def layers(self, block: HclBlock, source: Source) -> Iterator[tuple[str, str | None]]:
        """Yield name and folder of each layer; None for the folder of a layer from elsewhere."""
        node = block.body.attributes.get("layers")
        for name in _LAYER.findall("" if node is None else HclScope(source).source_text(node)):
            found = self.folder.block("resource", "aws_lambda_layer_version", name)
            file = None if found is None else found[0].body.attributes.get("filename")
            if found is None or file is None:
                yield name, None
            else:
                yield name, self.code(file, found[1])
