"""Signatures of webhooks: those of GitHub, of Standard Webhooks, and a plain secret."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from asl.core.errors import AslError
from asl.server.access.principal import Unauthorized

__all__ = ["DELIVERY_HEADERS", "SCHEMES", "SECRET_HEADER", "Scheme", "check_webhook_signature"]

Scheme: TypeAlias = Literal["github", "standard", "header"]
SCHEMES: Final[Mapping[Scheme, str]] = {
    "github": "HMAC-SHA256 of the body in X-Hub-Signature-256, as GitHub sends it",
    "standard": "Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature",
    "header": "the secret itself in a header",
}
DELIVERY_HEADERS: Final[Mapping[Scheme, str]] = {
    "github": "X-GitHub-Delivery",
    "standard": "webhook-id",
    "header": "Idempotency-Key",
}
"""Headers with the id of a delivery, which is the same when it is repeated."""
SECRET_HEADER: Final = "X-Webhook-Secret"
"""Default header of the scheme `header`."""
WINDOW: Final = 300
"""Seconds by which the time of a request of Standard Webhooks may differ."""
_PREFIX: Final = "whsec_"
_REFUSAL: Final = "the signature is missing or wrong"


def check_webhook_signature(
    scheme: Scheme,
    secrets: Iterable[str],
    header: str,
    headers: Mapping[str, str],
    body: bytes,
    now: float,
) -> None:
    """Check that a request was sent by who knows one of the secrets.

    Args:
        scheme: Form of the signature.
        secrets: The secrets; several while one replaces another.
        header: Header of the scheme `header`.
        headers: Headers of the request.
        body: Body of the request.
        now: Current time in epoch seconds.

    Raises:
        Unauthorized: The signature is missing or wrong, or the request is too old.
        AslError: A secret of Standard Webhooks is not Base64.
    """
    if scheme == "github":
        given = [headers.get("x-hub-signature-256", "")]
        expected = [f"sha256={_digest(each.encode(), body).hex()}" for each in secrets]
    elif scheme == "header":
        given, expected = [headers.get(header, "")], [*secrets]
    else:
        text = headers.get("webhook-timestamp", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 16):
            raise Unauthorized(_REFUSAL)
        if abs(now - int(text)) > WINDOW:
            raise Unauthorized(f"the request is more than {WINDOW} seconds old or early")
        signed = b"%s.%s.%s" % (headers.get("webhook-id", "").encode(), text.encode(), body)
        given = headers.get("webhook-signature", "").split(" ")[:10]
        keys = [_standard_key(each) for each in secrets]
        expected = [f"v1,{b64encode(_digest(key, signed)).decode()}" for key in keys]
    pairs = [(one, other) for one in given for other in expected]
    found = [hmac.compare_digest(_bytes(one), _bytes(other)) for one, other in pairs]
    if not any(found):
        raise Unauthorized(_REFUSAL)


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _standard_key(secret: str) -> bytes:
    try:
        return b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise AslError("a secret of Standard Webhooks is 'whsec_' and Base64") from None
