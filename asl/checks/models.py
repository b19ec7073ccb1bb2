"""What the services that workflows call most take and answer, by AWS's own models.

`python tests/service_models.py` makes the folder `services` from these. What is not there is not
checked.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Action", "action_of", "model_of"]

_ACTION = re.compile(
    r"arn:[^:]+:states:[^:]*:[^:]*:(?:(aws-sdk):)?([\w-]+):(\w+)(\.sync(?::2)?|\.waitForTaskToken)?"
)
_OF_THE_SDK = {"eventbridge": "events", "sfn": "states"}
"""The names of services that `aws-sdk` calls otherwise."""
_INTEGRATED = {"bedrock": "bedrockruntime"}
"""The models of integrations that are called otherwise than those of `aws-sdk`."""
_FOLDER = Path(__file__).parent / "services"


class Action(NamedTuple):
    """The action that a resource names."""

    service: str
    """The name of its model."""
    name: str
    sdk: bool
    """Whether it is called by `aws-sdk`, not by an integration of its own."""
    waits: bool
    """Whether the task has the result of something else: of a job, or of whoever has its token."""


def action_of(resource: str) -> Action | None:
    """Return the action of a service that a resource names, None for another resource."""
    match = _ACTION.fullmatch(resource)
    if match is None:
        return None
    sdk, named, name, pattern = match.groups()
    service = (_OF_THE_SDK if sdk else _INTEGRATED).get(named, named)
    return Action(service, name, sdk is not None, pattern is not None)


@cache
def model_of(service: str) -> Mapping[str, Any]:
    """Return `actions`, `shapes` and `requests` of a service; of an unknown one none."""
    path = _FOLDER / f"{service}.json"
    if not path.is_file():
        return {"actions": {}, "shapes": {}, "requests": {}}
    model: Mapping[str, Any] = json.loads(path.read_bytes())
    return model
