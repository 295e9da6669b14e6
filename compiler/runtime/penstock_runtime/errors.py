"""The one error of the host runtime."""

from __future__ import annotations


class PackageError(Exception):
    """What is wrong with the package, the input or the machine, and what to do about it, on one line."""

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(f"{what} - {hint}" if hint else what)
