"""The hand-made package, put together once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.package import PackageContents, write_archive, write_folder
from tests.package import hand_made


@pytest.fixture(scope="session")
def contents(tmp_path_factory: pytest.TempPathFactory) -> PackageContents:
    return hand_made.contents(tmp_path_factory.mktemp("emitted"))


@pytest.fixture(scope="session")
def archive(contents: PackageContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(contents, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="session")
def built(contents: PackageContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked package that tests share: they may compile its library, and change nothing."""
    folder = tmp_path_factory.mktemp("built") / "package"
    write_folder(contents, folder)
    return folder


@pytest.fixture
def package(contents: PackageContents, tmp_path: Path) -> Path:
    """A package of one's own, to be broken."""
    write_folder(contents, tmp_path / "package")
    return tmp_path / "package"
