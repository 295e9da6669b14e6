"""Platforms as data: one TOML file a board under `data/`, and the loader that turns them into records.

Nothing here needs more than the standard library, so every process may import it.
"""

from penstock.compiler.platforms.board import Board, BoardPin
from penstock.compiler.platforms.families import FAMILIES, Family
from penstock.compiler.platforms.loader import load_platform, parse_platform, platform_names
from penstock.compiler.platforms.platform import MEMORY_EFFICIENCY, Die, DieLink, ExternalMemory, Platform
from penstock.compiler.platforms.resources import RESOURCE_NAMES, Resources, total

__all__ = [
    "FAMILIES",
    "MEMORY_EFFICIENCY",
    "RESOURCE_NAMES",
    "Board",
    "Die",
    "Family",
    "DieLink",
    "ExternalMemory",
    "BoardPin",
    "Platform",
    "Resources",
    "load_platform",
    "parse_platform",
    "platform_names",
    "total",
]
