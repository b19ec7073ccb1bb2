"""Actions of services that AWS Step Functions can call, with their parameters and results.

The data is in the folder `services`: `optimized.toml` lists the optimized integrations,
`actions.txt` the actions of `aws-sdk`, and `NAME.json` holds AWS's model of a service that
workflows call often. `python tests/service_models.py` packs the latter two. Calls of a service
without a model are not checked.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = [
    "FOLDER",
    "RETIRED",
    "SDK_NAMES",
    "Action",
    "Integration",
    "SdkService",
    "action_of",
    "model_of",
    "optimized_integrations",
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
def optimized_integrations() -> Mapping[str, Mapping[str, Integration]]:
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


_ACTION = re.compile(
    r"arn:[^:]+:states:[^:]*:[^:]*:(?:(aws-sdk):)?([\w-]+):(\w+)(\.sync(?::2)?|\.waitForTaskToken)?"
)


class Action(NamedTuple):
    """The action that a resource names."""

    integration: str | None
    """The optimized integration that it belongs to, None for an action of the AWS SDK."""
    service: str
    """The service in the AWS SDK, which is the name of its model."""
    name: str
    waits: bool
    """Whether the task waits for a job or a callback, so that the result is not the action's."""

    @property
    def sdk(self) -> bool:
        """Whether it is called by `aws-sdk`."""
        return self.integration is None


def action_of(resource: str) -> Action | None:
    """Return the action of a service that a resource names, None for another resource."""
    match = _ACTION.fullmatch(resource)
    if match is None:
        return None
    sdk, named, name, pattern = match.groups()
    if sdk:
        return Action(None, named, name, pattern is not None)
    return Action(named, SDK_NAMES.get(named, named), name, pattern is not None)


@cache
def model_of(service: str) -> Mapping[str, Any]:
    """Return `actions`, `shapes` and `requests` of a service; of an unknown one none."""
    path = FOLDER / f"{service}.json"
    if not path.is_file():
        return {"actions": {}, "shapes": {}, "requests": {}}
    model: Mapping[str, Any] = json.loads(path.read_bytes())
    return model
