"""A data folder for each test that every user of the stack can enter, as pytest's own cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.services.supervisor.folders import open_folder
from tests.supervisor.stacks import remove


@pytest.fixture
def folder() -> Iterator[Path]:
    made = open_folder("penstock-test-")
    yield made
    remove(made)


@pytest.fixture
def public_folder(folder: Path) -> Path:
    """One that any user may write to."""
    os.chmod(folder, 0o777)
    return folder
