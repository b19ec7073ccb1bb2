"""Signatures of requests: AWS Signature Version 4 in the header `Authorization`."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from asl.service.errors import ServiceError

__all__ = ["check_signature"]

ALGORITHM: Final = "AWS4-HMAC-SHA256"
VALID: Final = 15 * 60
"""Seconds for which a signature is valid."""
_HEADER = re.compile(
    rf"{ALGORITHM} +Credential=([^/,\s]+)/(\d{{8}})/([^/,\s]+)/([^/,\s]+)/aws4_request, *"
    r"SignedHeaders=([^,\s]+), *Signature=([0-9a-f]{64})"
)
_SPACES = re.compile(r" +")


def check_signature(
    headers: Mapping[str, str], body: bytes, keys: Mapping[str, str], now: float
) -> None:
    """Check the signature of a request to `POST /`.

    Args:
        headers: Headers by lower-case name.
        body: The body.
        keys: Secret access keys by access key id.
        now: Time in epoch seconds.

    Raises:
        ServiceError: The request has no valid signature by one of the keys.
    """
    found = _HEADER.fullmatch(headers.get("authorization", ""))
    if found is None:
        code = "MissingAuthenticationTokenException"
        raise ServiceError(code, "Missing Authentication Token")
    key_id, day, region, service, signed, signature = found.groups()
    secret = keys.get(key_id)
    if secret is None:
        message = "The security token included in the request is invalid."
        raise ServiceError("UnrecognizedClientException", message)
    time = headers.get("x-amz-date", "")
    _check_time(time, day, now)
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, time, scope, _sha256(_canonical(headers, signed, body))))
    expected = _signing_key(secret, day, region, service)
    if not hmac.compare_digest(_hmac(expected, text).hex(), signature):
        raise ServiceError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check "
            "your AWS Secret Access Key and signing method. Consult the service documentation for "
            "details.",
        )


def _check_time(time: str, day: str, now: float) -> None:
    try:
        signed = datetime.strptime(time, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        signed = None
    if signed is None or not time.startswith(day) or abs(now - signed) > VALID:
        raise ServiceError(
            "InvalidSignatureException", f"Signature expired: {time[:20]!r} is not the present time"
        )


def _canonical(headers: Mapping[str, str], signed: str, body: bytes) -> str:
    """Return the canonical request."""
    names = signed.split(";")
    lines = [f"{name}:{_SPACES.sub(' ', headers.get(name, '').strip())}\n" for name in names]
    return "\n".join(("POST", "/", "", "".join(lines), signed, hashlib.sha256(body).hexdigest()))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key
