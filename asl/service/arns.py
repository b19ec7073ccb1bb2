"""ARNs of Step Functions: their parts, and the kinds that an operation takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from asl.service.errors import invalid_arn

__all__ = ["Arn", "RequestScope", "parse_arn"]


async def _never() -> bool:
    return False


class RequestScope(NamedTuple):
    """Account, region and connection of a request.

    Attributes:
        account: The account.
        region: The region.
        is_disconnected: Returns whether the client has gone away.
    """

    account: str
    region: str
    is_disconnected: Callable[[], Awaitable[bool]] = _never

    @property
    def prefix(self) -> str:
        """The beginning of the ARNs of the account and region, without the last colon."""
        partition = "aws-cn" if self.region.startswith("cn-") else "aws"
        partition = "aws-us-gov" if self.region.startswith("us-gov-") else partition
        return f"arn:{partition}:states:{self.region}:{self.account}"


class Arn(NamedTuple):
    """A parsed ARN.

    Attributes:
        text: The whole ARN.
        prefix: Its beginning up to the account.
        kind: `stateMachine`, `execution`, `express`, `activity` or `mapRun`.
        name: Name of the state machine or activity.
        rest: What follows the name, such as a version, an alias or the name of an execution; None
            for nothing.
    """

    text: str
    prefix: str
    kind: str
    name: str
    rest: str | None

    @property
    def base(self) -> str:
        """The ARN without version or alias."""
        return f"{self.prefix}:{self.kind}:{self.name}"


def parse_arn(text: str, *kinds: str) -> Arn:
    """Return the parts of an ARN of one of the *kinds*.

    Raises:
        ServiceError: InvalidArn.
    """
    parts = text.split(":", 7)
    if parts[0] != "arn":
        raise invalid_arn(f"Invalid ARN prefix: {text}")
    if len(parts) < 7 or parts[2] != "states" or not all(parts[1:7]):
        raise invalid_arn(f"Invalid ARN: {text}")
    kind, name = parts[5], parts[6]
    if kind not in kinds:
        raise invalid_arn(f"Resource type not valid in this context: {kind}")
    rest = parts[7] if len(parts) == 8 else None
    if (kind in ("execution", "express")) and not rest:
        raise invalid_arn(f"Invalid ARN: {text}")
    return Arn(text, ":".join(parts[:5]), kind, name, rest or None)
