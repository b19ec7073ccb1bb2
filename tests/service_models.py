"""Pack AWS's service models into the package: `python tests/service_models.py`.

The models are those of `botocore` (Apache-2.0), which `boto3` brings. `actions.txt` has the names
of all services and their actions. Of the services in `MODELS` more is packed: the types of what
their actions answer, which fields are required, and the names of their parameters.
`asl/service/model.json` has the operations of Step Functions itself, with all constraints.
"""

import json
import re
from pathlib import Path
from typing import Any

API = Path(__file__).resolve().parents[1] / "asl" / "service" / "model.json"
CONSTRAINTS = ("min", "max", "pattern", "enum", "sensitive", "required")
FOLDER = Path(__file__).resolve().parents[1] / "asl" / "checks" / "services"
MODELS = {
    "athena": "athena",
    "batch": "batch",
    "bedrockruntime": "bedrock-runtime",
    "codebuild": "codebuild",
    "dynamodb": "dynamodb",
    "ecs": "ecs",
    "eventbridge": "events",
    "glue": "glue",
    "kms": "kms",
    "lambda": "lambda",
    "rdsdata": "rds-data",
    "redshiftdata": "redshift-data",
    "s3": "s3",
    "scheduler": "scheduler",
    "secretsmanager": "secretsmanager",
    "sesv2": "sesv2",
    "sfn": "stepfunctions",
    "sns": "sns",
    "sqs": "sqs",
    "ssm": "ssm",
    "sts": "sts",
    "textract": "textract",
}
"""Name of the service in `aws-sdk` resources -> botocore's name of it."""
LIMITS = {("lambda", "MemorySize"): {"min": 128, "max": 10240}}
"""Limits of shapes that the service has and the model does not (AWS, recorded)."""
NUMBERS = ("integer", "long", "float", "double")


STREAMS = "eventstream"
"""The mark of what arrives in pieces, which no task can send or receive."""


def service_name(id: str) -> str:
    """Return the name of a service in `aws-sdk` resources: that of the AWS SDK for Java 2.x."""
    words = "".join(word[:1].upper() + word[1:] for word in re.split(r"[ _-]+", id))
    return re.sub(r"^(?:Amazon|A[Ww][Ss])(?=.)|(?<=.)Service$", "", words).lower()


def action_name(operation: str) -> str:
    """Return the name of an operation in resources."""
    return operation[:1].lower() + operation[1:]


def is_streaming(model: dict[str, Any], operation: dict[str, Any]) -> bool:
    """Return whether a request or a response is a stream of events."""
    shapes = model["shapes"]
    sides = [shapes[operation[side]["shape"]] for side in ("input", "output") if side in operation]
    members = [member for side in sides for member in side.get("members", {}).values()]
    return any(shapes[member["shape"]].get(STREAMS) for member in members)


def catalog(loader: Any) -> str:
    """Return a line for each service: its name, botocore's name of it, its actions."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for service in loader.list_available_services("service-2"):
        model = loader.load_service_model(service, "service-2")
        # Two services of one name are versions of one service.
        known, actions = found.setdefault(
            service_name(model["metadata"]["serviceId"]), (set(), set())
        )
        known.add(service)
        actions.update(
            action_name(name)
            for name, operation in model["operations"].items()
            if not is_streaming(model, operation)
        )
    lines = (
        " ".join((name, min(known), *sorted(actions)))
        for name, (known, actions) in sorted(found.items())
    )
    return "".join(f"{line}\n" for line in lines)


def named(field: str) -> str:
    """Return a field's name as Step Functions writes it: with a capital letter."""
    return field[:1].upper() + field[1:]


def reduced(service: str, model: dict[str, Any]) -> dict[str, Any]:
    """Return what the actions of a service answer, and what they are given.

    `actions`: action -> shape, `shapes`: shape -> what it may be, `requests`: action -> names.
    """
    shapes: dict[str, Any] = {}

    def shape(name: str) -> str:
        own = model["shapes"][name]
        kind = own["type"]
        limits = {key: own[key] for key in ("min", "max") if key in own and kind in NUMBERS}
        limits = LIMITS.get((service, name), limits)
        if kind in ("timestamp", "blob") or (kind == "string" and "enum" not in own):
            return "text" if own.get("min") else "string"  # a text has at least one character
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

    operations = {action_name(name): each for name, each in model["operations"].items()}
    actions = {
        name: shape(operation["output"]["shape"])
        for name, operation in operations.items()
        if "output" in operation
    }
    requests = {name: request(operation) for name, operation in operations.items()}
    return {"actions": actions, "shapes": shapes, "requests": requests}


def operations(model: dict[str, Any]) -> dict[str, Any]:
    """Return the operations and shapes of a service, without documentation and errors."""

    def shape(own: dict[str, Any]) -> dict[str, Any]:
        found = {"type": own["type"], **{key: own[key] for key in CONSTRAINTS if key in own}}
        if "members" in own:
            found["members"] = {name: each["shape"] for name, each in own["members"].items()}
        for part in ("member", "key", "value"):
            if part in own:
                found[part] = own[part]["shape"]
        return found

    return {
        "operations": {
            name: {"input": each["input"]["shape"], "output": each["output"]["shape"]}
            for name, each in sorted(model["operations"].items())
        },
        "shapes": {
            name: shape(own)
            for name, own in sorted(model["shapes"].items())
            if not own.get("exception")
        },
    }


def main() -> None:
    """Write all files."""
    from botocore.loaders import Loader

    loader = Loader()
    (FOLDER / "actions.txt").write_text(catalog(loader), encoding="utf-8")
    api = operations(loader.load_service_model("stepfunctions", "service-2"))
    API.write_text(json.dumps(api, indent=1) + "\n", encoding="utf-8")
    for file, service in MODELS.items():
        model = reduced(service, loader.load_service_model(service, "service-2"))
        text = json.dumps(model, separators=(",", ":"))
        (FOLDER / f"{file}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
