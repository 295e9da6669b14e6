"""Writing packages: as a folder, and as an archive whose bytes depend on nothing but its contents."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.compiler.package.contents import PackageContents
from penstock.compiler.runtime.penstock_runtime import PackageError, open_package
from penstock.compiler.runtime.penstock_runtime.package import MANIFEST

# The earliest time that a zip can say; the real one would change the bytes from run to run.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
PERMISSIONS = 0o100644 << 16
CREATED_ON_UNIX = 3


def write_archive(contents: PackageContents, folder: Path) -> Path:
    """Write `<name>-<digest>.penstock.zip` into `folder`: whole, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / contents.archive_name
    handle, partial = tempfile.mkstemp(dir=folder, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for path, data in contents.files.items():
                archive.writestr(_entry(path), data, zipfile.ZIP_DEFLATED, compresslevel=6)
        Path(partial).chmod(0o644)
        os.replace(partial, target)
    finally:
        Path(partial).unlink(missing_ok=True)
    return target


def write_folder(contents: PackageContents, folder: Path) -> None:
    """Write the unpacked package, replacing an older one; a folder with other files is refused."""
    for path in check_folder(folder):
        path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in contents.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def check_folder(folder: Path) -> list[Path]:
    """Make sure that a package may be written here: a new or empty folder, or an older package's.

    Returns the older package's files, which writing another one replaces.
    """
    if folder.exists() and not folder.is_dir():
        raise PenstockError(
            code="output-not-a-folder", what="there is a file of that name", where=str(folder),
            hint="choose another folder with -o",
        )  # fmt: skip
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    try:
        with open_package(folder) as package:
            paths = [folder / path for path in (*package.paths(), MANIFEST)]
            return [*paths, *folder.glob(f"{package.name}-*.penstock.zip")]
    except PackageError as error:
        raise PenstockError(
            code="output-not-empty", what="the folder holds other files", where=str(folder),
            hint="choose a new or empty folder, or one with an older package, with -o",
        ) from error  # fmt: skip


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, TIMESTAMP)
    entry.external_attr = PERMISSIONS
    entry.create_system = CREATED_ON_UNIX
    return entry
