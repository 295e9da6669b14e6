"""Random kernels mean what g++ says they mean: their nests, and the C++ that is written of these."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.profiling.kernels.values import check_values
from tests.hls_in.random_c import random_kernel

BEYOND = "no-nests"
"""Integers of more than 64 bits, say: refused by name, and no wrong value."""


def check(tmp_path: Path, seeds: range) -> int:
    """How many of the kernels could be compared."""
    compared = 0
    for seed in seeds:
        path = tmp_path / "kernel.cpp"
        path.write_text(random_kernel(seed))
        try:
            found = check_values(path, "top", sets=2)
        except PenstockError as error:
            if error.code != BEYOND:
                raise
            continue
        assert found.equal, (seed, found.levels[0].first)
        compared += 1
    return compared


def test_random_kernels_mean_what_a_compiler_says(tmp_path: Path) -> None:
    assert check(tmp_path, range(8)) >= 5


@pytest.mark.slow
def test_many_random_kernels_mean_what_a_compiler_says(tmp_path: Path) -> None:
    assert check(tmp_path, range(100, 220)) >= 80
