"""Parameters and results of the services that workflows call most, by AWS's own models.

`python tests/service_models.py` packs them into the folder `services`. A service without a model is
not checked.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from asl.checks.catalog import FOLDER, SDK_NAMES

__all__ = ["Action", "action_of", "model_of"]

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
