"""Refusals of the service, with AWS's codes and messages."""

from __future__ import annotations

from asl.core.errors import AslError
from asl.core.values import Json

__all__ = ["ServiceError", "invalid_arn", "validation_error"]


class ServiceError(AslError):
    """A request that the service refuses.

    Args:
        code: AWS's error code, such as `StateMachineDoesNotExist`.
        message: AWS's message.
        reason: The member `reason` of a ValidationException; None for none.
        status: HTTP status.
    """

    def __init__(
        self, code: str, message: str, *, reason: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.status = status

    @property
    def response(self) -> dict[str, Json]:
        """The response in the form of `botocore.exceptions.ClientError`."""
        return {
            "Error": {"Code": self.code, "Message": self.message},
            "ResponseMetadata": {"HTTPStatusCode": self.status},
        }

    def to_json(self) -> dict[str, Json]:
        """Return the body of the response."""
        found: dict[str, Json] = {"__type": self.code, "message": self.message}
        return found if self.reason is None else {**found, "reason": self.reason}


def invalid_arn(what: str) -> ServiceError:
    """Return the refusal of an ARN."""
    return ServiceError("InvalidArn", f"Invalid Arn: '{what}'")


def validation_error(message: str, reason: str | None = None) -> ServiceError:
    """Return the refusal of a request that contradicts itself."""
    return ServiceError("ValidationException", message, reason=reason)
