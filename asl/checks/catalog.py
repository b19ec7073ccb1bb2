"""Actions of services that AWS Step Functions can call.

`services/optimized.toml` lists the optimized integrations. `services/actions.txt` lists what
`aws-sdk` can call and is packed by `python tests/service_models.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "FOLDER",
    "RETIRED",
    "SDK_NAMES",
    "Integration",
    "SdkService",
    "optimized",
    "sdk_services",
]

FOLDER: Final = Path(__file__).parent / "services"
RETIRED: Final = frozenset(
    {
        "alexaforbusiness",
        "codestar",
        "elasticinference",
        "elastictranscoder",
        "evidently",
        "honeycode",
        "iot1clickprojects",
        "iotanalytics",
        "iotevents",
        "ioteventsdata",
        "iotfleethub",
        "lookoutvision",
        "opsworks",
        "opsworkscm",
        "panorama",
        "qldb",
        "qldbsession",
        "robomaker",
        "sms",
    }
)
"""Services that AWS has closed and that its models lack; deployed documents still name them."""

SDK_NAMES: Final = {
    "bedrock": "bedrockruntime",
    "bedrock-agentcore": "bedrockagentcore",
    "elasticmapreduce": "emr",
    "emr-containers": "emrcontainers",
    "emr-serverless": "emrserverless",
    "events": "eventbridge",
    "states": "sfn",
}
"""Optimized integrations -> the names of their services in the AWS SDK, where they differ."""


class Integration(NamedTuple):
    """An action of an optimized integration; `services/optimized.toml` explains the fields."""

    patterns: Sequence[str] = ()
    fields: Collection[str] = ()
    required: Collection[str] = ()
    alternatives: Mapping[str, str] = {}


class SdkService(NamedTuple):
    """A service as `aws-sdk` calls it."""

    model: str
    """The name of the service in botocore and the AWS CLI."""
    actions: str
    """The names of its actions, separated by blanks."""


@cache
def optimized() -> Mapping[str, Mapping[str, Integration]]:
    """Return the optimized integrations: service, then action."""
    import tomllib

    listed = tomllib.loads((FOLDER / "optimized.toml").read_text(encoding="utf-8"))
    return {
        service: {name: Integration(**each) for name, each in actions.items()}
        for service, actions in listed.items()
    }


@cache
def sdk_services() -> Mapping[str, SdkService]:
    """Return the services that `aws-sdk` can call, by the names that resources have for them."""
    lines = (FOLDER / "actions.txt").read_text(encoding="utf-8").splitlines()
    parted = (line.split(" ", 2) for line in lines)
    return {name: SdkService(model, actions) for name, model, actions in parted}
