"""Why something that was asked for cannot be done; the API gives each such code its HTTP status."""

from __future__ import annotations

from penstock.compiler.errors import PenstockError


class RefusedError(PenstockError):
    """The asker can do something about it, or wait; nothing was changed."""

    def __init__(self, code: str, what: str, *, where: str = "", limit: str = "", hint: str = "") -> None:
        super().__init__(code=code, what=what, where=where, limit=limit, hint=hint)
