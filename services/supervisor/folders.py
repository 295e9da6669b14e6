"""Folders that the embedded servers can use: reachable by their user, with room for a socket's path."""

from __future__ import annotations

import tempfile
from pathlib import Path

from penstock.services.supervisor.identity import server_user


def open_folder(prefix: str = "penstock-") -> Path:
    """A new temporary folder that the server user can enter; remove it yourself.

    As root the servers run as another user, and tempfile's own folders are closed to it.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if server_user().changed:
        folder.chmod(0o711)
    return folder
