"""Secrets and signatures as the Standard Webhooks specification has them.

A secret is made from the service's own key and the webhook's id, so it is kept nowhere; a backup with the key brings it
back. After a rotation the one before is signed with for a day, too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime, timedelta

OVERLAP = timedelta(hours=24)
_PREFIX = "whsec_"


def secret_of(key: bytes, webhook_id: str, generation: int) -> str:
    """What the receiver checks signatures with."""
    raw = hmac.new(key, f"webhook:{webhook_id}:{generation}".encode(), hashlib.sha256).digest()
    return _PREFIX + base64.b64encode(raw).decode()


def secrets_at(now: datetime, key: bytes, webhook_id: str, generation: int, rotated_at: datetime | None) -> list[str]:
    """All that are good at this moment, the newest first."""
    good = [secret_of(key, webhook_id, generation)]
    if rotated_at is not None and now - rotated_at < OVERLAP:
        good.append(secret_of(key, webhook_id, generation - 1))
    return good


def headers_of(message_id: str, at: int, body: str, secrets: list[str]) -> dict[str, str]:
    """`webhook-id` stays the same however often it is sent: receivers drop what they have seen."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature(secret, message_id, at, body)}" for secret in secrets),
    }


def signature(secret: str, message_id: str, at: int, body: str) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return base64.b64encode(hmac.new(key, f"{message_id}.{at}.{body}".encode(), hashlib.sha256).digest()).decode()
