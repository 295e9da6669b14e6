"""Bearer tokens: made from randomness, recognisable by prefix and checksum, kept only as a keyed digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
import zlib

PREFIX = "penstock_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH = 32
_PUBLIC_LENGTH = 8
_CHECKSUM_LENGTH = 6


def make_token() -> str:
    """A new token: `penstock_`, 32 random letters (8 of them public), 6 letters of checksum."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return PREFIX + body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """Whether prefix, length and checksum fit: a typing error costs no question to the database."""
    body = token.removeprefix(PREFIX)
    if body == token or len(body) != _RANDOM_LENGTH + _CHECKSUM_LENGTH or not body.isascii():
        return False
    return hmac.compare_digest(body[_RANDOM_LENGTH:], _checksum(body[:_RANDOM_LENGTH]))


def public_part(token: str) -> str:
    """The beginning of a token, by which its row is found and people recognise it."""
    return token[: len(PREFIX) + _PUBLIC_LENGTH]


def digest(token: str, key: bytes) -> bytes:
    """What the database keeps in place of the token."""
    return hmac.new(key, token.encode(), hashlib.sha256).digest()


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    letters = ""
    for _ in range(_CHECKSUM_LENGTH):
        value, digit = divmod(value, len(_ALPHABET))
        letters = _ALPHABET[digit] + letters
    return letters
