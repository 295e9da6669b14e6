"""The machines that Penstock brings along, by name. Light: the API names them too."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data"


def machine_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
