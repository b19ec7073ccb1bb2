"""Lambda functions in templates of SAM, CloudFormation, CDK, Serverless and Terraform."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from asl.core.document import open_source
from asl.core.errors import AslError
from asl.core.source import DOCUMENT_LIMITS, Limits
from asl.core.values import Json
from asl.sources import cloudformation_functions, serverless_functions, terraform_functions
from asl.sources.cloudformation import CloudFormationTemplate
from asl.sources.lambda_function import LambdaFunction
from asl.sources.read_context import ReadContext
from asl.sources.serverless import ServerlessTemplate
from asl.sources.templates import limit_reference_chains, template_in
from asl.sources.terraform import TerraformTemplate

__all__ = ["load_functions"]

_FUNCTIONS: Final = re.compile(r"^functions[ \t]*:", re.MULTILINE)
"""The section of a `serverless.yml`, which need not have state machines."""


def load_functions(
    path: str | os.PathLike[str],
    *,
    variables: Mapping[str, Json],
    root: str | None = None,
    limits: Limits = DOCUMENT_LIMITS,
) -> list[LambdaFunction]:
    """Return the Lambda functions that a template defines.

    Args:
        path: The file of the template.
        variables: Values of parameters and other references.
        root: The folder that contains all code; by default the repository of the template.
        limits: Bounds of the text and its values.

    Raises:
        InvalidDocument: The template cannot be read.
        DocumentNotFound: There is no such file.
        AslError: The file is no template with Lambda functions.
    """
    source = open_source(Path(path), limits=limits)
    context = ReadContext(variables, limits, root)
    template = template_in(source, limits)
    with limit_reference_chains(source):
        if template is None and source.format == "yaml" and _FUNCTIONS.search(source.text or ""):
            template = ServerlessTemplate(source, limits)
        match template:
            case CloudFormationTemplate():
                return cloudformation_functions.read_functions(template, context)
            case TerraformTemplate():
                return terraform_functions.read_functions(template, context)
            case ServerlessTemplate():
                return serverless_functions.read_functions(template, context)
    raise AslError(
        f"{os.fspath(path)!r} is no template with Lambda functions: "
        "name a template of SAM, CloudFormation, CDK, Serverless or Terraform"
    )
