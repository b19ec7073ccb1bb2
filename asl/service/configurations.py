"""The configurations of a state machine: logging, tracing and encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.service.errors import ServiceError

__all__ = ["encryption_of", "logging_of", "tracing_of"]

OWNED_KEY: Final = "AWS_OWNED_KEY"


def logging_of(request: Mapping[str, Any]) -> dict[str, Json]:
    """Return the logging configuration of a request, with AWS's defaults.

    Raises:
        ServiceError: InvalidLoggingConfiguration.
    """
    given = request.get("loggingConfiguration") or {}
    destinations = given.get("destinations") or []
    level = given.get("level", "OFF")
    if level != "OFF" or destinations:
        if len(destinations) != 1:
            raise _refused("Must specify exactly one Log Destination.")
        arn = (destinations[0].get("cloudWatchLogsLogGroup") or {}).get("logGroupArn", "")
        if ":log-group:" not in arn or not arn.startswith("arn:"):
            raise _refused("Log Destination not found.")
    found: dict[str, Json] = {
        "level": level,
        "includeExecutionData": given.get("includeExecutionData", False),
    }
    return {**found, "destinations": destinations} if "destinations" in given else found


def _refused(reason: str) -> ServiceError:
    return ServiceError("InvalidLoggingConfiguration", f"Invalid Logging Configuration: {reason}")


def tracing_of(request: Mapping[str, Any]) -> dict[str, Json]:
    """Return the tracing configuration of a request, with AWS's default."""
    given = request.get("tracingConfiguration") or {}
    return {"enabled": given.get("enabled", False)}


def encryption_of(request: Mapping[str, Any]) -> dict[str, Json]:
    """Return the encryption configuration of a request, with AWS's default.

    Raises:
        ServiceError: InvalidEncryptionConfiguration.
    """
    given = request.get("encryptionConfiguration") or {"type": OWNED_KEY}
    owned = given["type"] == OWNED_KEY
    if owned and len(given) > 1:
        raise _unencrypted("kmsKeyId and kmsDataKeyReusePeriodSeconds need a customer managed key")
    if not owned and "kmsKeyId" not in given:
        raise _unencrypted("kmsKeyId is required for CUSTOMER_MANAGED_KMS_KEY")
    return dict(given) if owned else {"kmsDataKeyReusePeriodSeconds": 300, **given}


def _unencrypted(reason: str) -> ServiceError:
    message = f"Invalid Encryption Configuration: {reason}"
    return ServiceError("InvalidEncryptionConfiguration", message)
