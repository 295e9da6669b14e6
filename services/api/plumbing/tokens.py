"""Bearer tokens: made from randomness, recognisable by prefix and checksum, kept only as a keyed digest."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import string
import tempfile
import zlib
from pathlib import Path

PREFIX = "penstock_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH = 32
_PUBLIC_LENGTH = 8
_CHECKSUM_LENGTH = 6
_KEY_LENGTH = 32


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


def load_key(path: Path) -> bytes:
    """The key of the digests, made at the first use and readable by its owner only.

    Processes that start together agree on one key: it appears under its name whole, and only once.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_LENGTH))
        with contextlib.suppress(FileExistsError):  # another process was first: its key counts
            os.link(name, path)
        os.unlink(name)
    key = path.read_bytes()
    if len(key) < _KEY_LENGTH:
        raise ValueError(f"{path} is too short for a key: remove it to have a new one made")
    return key


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    letters = ""
    for _ in range(_CHECKSUM_LENGTH):
        value, digit = divmod(value, len(_ALPHABET))
        letters = _ALPHABET[digit] + letters
    return letters
