"""The files of a run: what people take home first, everything else below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.web import text
from penstock.web.text import Document

_INLINE = ("text/html", "application/json", "text/plain", "image/svg+xml", "image/png")


@dataclass(frozen=True)
class FileRow:
    name: str
    url: str
    step: str
    size: str
    media_type: str
    sha256: str
    shows_inline: bool


@dataclass(frozen=True)
class Files:
    package: FileRow | None
    report: FileRow | None
    pictures: tuple[FileRow, ...]
    why: FileRow | None
    array: FileRow | None
    description: FileRow | None
    """Of an array of cores: its hardware and programs; what it is, if it was found."""
    all: tuple[FileRow, ...]


def view_files(artifacts: Sequence[Document]) -> Files:
    """Artifacts come with the newest first: of several turns the last one counts."""
    rows = tuple(_file_row(artifact) for artifact in artifacts)

    def newest(ending: str) -> FileRow | None:
        return next((row for row in rows if row.name.endswith(ending)), None)

    pictures = (newest("dies.svg"), newest("memories.svg"))
    return Files(
        package=newest(".penstock.zip"),
        report=newest("report.html"),
        pictures=tuple(row for row in pictures if row is not None),
        why=newest("why.svg"),
        array=newest("array.zip"),
        description=newest("array.toml"),
        all=rows,
    )


def _file_row(artifact: Document) -> FileRow:
    media = str(artifact["media_type"]).partition(";")[0]
    return FileRow(
        name=artifact["name"],
        url=artifact["url"],
        step=artifact["step"],
        size=text.size(artifact["size"]),
        media_type=media,
        sha256=artifact["sha256"],
        shows_inline=media in _INLINE,
    )
