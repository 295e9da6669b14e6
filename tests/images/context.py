"""What of the checkout a build may see: .dockerignore, and how COPY lays it down."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tests.images.dockerfile import DockerfileError


def seen_by_builds(root: Path) -> Callable[[PurePosixPath], bool]:
    """The last line that fits a path, or a folder that it is in, decides."""
    file = root / ".dockerignore"
    lines = [line.strip() for line in file.read_text().splitlines()] if file.exists() else []
    rules = [(_pattern(line.removeprefix("!")), line.startswith("!")) for line in lines if line and line[0] != "#"]

    def seen(path: PurePosixPath) -> bool:
        kept = True
        whole = [str(path), *(str(parent) for parent in path.parents if parent != PurePosixPath("."))]
        for pattern, keeps in rules:
            if any(pattern.fullmatch(part) for part in whole):
                kept = keeps
        return kept

    return seen


def _pattern(line: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    words = re.split(r"(\*\*/|\*\*|\*|\?)", line.strip("/"))
    return re.compile("".join(parts.get(word, re.escape(word)) for word in words))


def copy_in(
    sources: list[str], target: str, origin: Path, root: Path, work_folder: str, seen: Callable[[PurePosixPath], bool]
) -> None:
    """COPY: files below a folder that ends in a slash, a folder's content instead of the folder."""
    into = root / (PurePosixPath(work_folder) / target).relative_to("/")
    if len(sources) > 1 and not target.endswith("/"):
        raise DockerfileError(f"COPY of {len(sources)} sources: {target!r} must end in a slash")
    for source in sources:
        found = origin / source.lstrip("/")
        name = PurePosixPath(source.lstrip("/"))
        if not found.exists() or not seen(name):
            raise DockerfileError(f"COPY {source}: not there, or kept back by .dockerignore")
        if found.is_dir():
            _copy_folder(found, into, name, seen)
        else:
            to = into / found.name if target.endswith("/") or into.is_dir() else into
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, to)


def _copy_folder(found: Path, into: Path, name: PurePosixPath, seen: Callable[[PurePosixPath], bool]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for child in sorted(found.iterdir()):
        below = name / child.name
        if child.is_dir() and not child.is_symlink():
            if seen(below):
                _copy_folder(child, into / child.name, below, seen)
        elif seen(below):
            shutil.copy2(child, into / child.name, follow_symlinks=False)
