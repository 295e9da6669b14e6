"""The service's own key: what tokens are digested with, and what webhooks' secrets are made from."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

_KEY_LENGTH = 32


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
