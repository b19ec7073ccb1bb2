"""asl/checks/services is made from AWS's models: `python tests/service_models.py` rewrites it.

The models are those of `botocore` (Apache-2.0), which `boto3` brings. Of each only what stands here
is kept: what the actions answer, of which types the fields are, and which of them are required; and
the names of what the actions are given.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "asl" / "checks" / "services"
MODELS = {
    "athena": "athena",
    "batch": "batch",
    "bedrockruntime": "bedrock-runtime",
    "codebuild": "codebuild",
    "dynamodb": "dynamodb",
    "ecs": "ecs",
    "events": "events",
    "glue": "glue",
    "kms": "kms",
    "lambda": "lambda",
    "rdsdata": "rds-data",
    "redshiftdata": "redshift-data",
    "s3": "s3",
    "scheduler": "scheduler",
    "secretsmanager": "secretsmanager",
    "sesv2": "sesv2",
    "sns": "sns",
    "sqs": "sqs",
    "ssm": "ssm",
    "states": "stepfunctions",
    "sts": "sts",
    "textract": "textract",
}
"""File -> botocore's name of the service."""
NUMBERS = ("integer", "long", "float", "double")


def named(field: str) -> str:
    """Return a field's name as Step Functions writes it: with a capital letter."""
    return field[:1].upper() + field[1:]


def reduced(model: dict[str, Any]) -> dict[str, Any]:
    """Return what the actions of a service answer, and what they are given.

    `actions`: action -> shape, `shapes`: shape -> what it may be, `requests`: action -> names.
    """
    shapes: dict[str, Any] = {}

    def shape(name: str) -> str:
        own = model["shapes"][name]
        kind = own["type"]
        limits = {key: own[key] for key in ("min", "max") if key in own and kind in NUMBERS}
        if kind in ("timestamp", "blob") or (kind == "string" and "enum" not in own):
            return "string"
        if kind in NUMBERS and not limits:
            return "number"
        if kind == "boolean":
            return kind
        if own.get("document"):
            return "any"
        if name not in shapes:
            shapes[name] = None
            shapes[name] = whole(own) if kind not in NUMBERS else limits
        return name

    def whole(own: dict[str, Any]) -> dict[str, Any]:
        if own["type"] == "string":
            return {"enum": own["enum"]}
        if own["type"] == "list":
            return {"items": shape(own["member"]["shape"])}
        if own["type"] == "map":
            return {"values": shape(own["value"]["shape"])}
        required = {"required": list(map(named, own["required"]))} if own.get("required") else {}
        fields = {named(name): shape(each["shape"]) for name, each in own["members"].items()}
        return {"fields": fields, **required}

    def request(operation: dict[str, Any]) -> dict[str, Any]:
        own = model["shapes"][operation["input"]["shape"]] if "input" in operation else {}
        required = {"required": list(map(named, own["required"]))} if own.get("required") else {}
        return {"fields": list(map(named, own.get("members", ()))), **required}

    operations = {
        name[:1].lower() + name[1:]: operation for name, operation in model["operations"].items()
    }
    actions = {
        name: shape(operation["output"]["shape"])
        for name, operation in operations.items()
        if "output" in operation
    }
    requests = {name: request(operation) for name, operation in operations.items()}
    return {"actions": actions, "shapes": shapes, "requests": requests}


def main() -> None:
    """Write all files."""
    from botocore.loaders import Loader

    for file, service in MODELS.items():
        model = reduced(Loader().load_service_model(service, "service-2"))
        text = json.dumps(model, separators=(",", ":"))
        (FOLDER / f"{file}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
