"""The models that people compile, at several tile sizes, fused whole and split into groups: every level agrees."""

from __future__ import annotations

from functools import cache
from itertools import cycle
from pathlib import Path

import pytest

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_pytorch
from penstock.compiler.program import Program
from tests.compiler.csim_batch import build_batch
from tests.compiler.designs import divisors

TINY = {
    "mlp": "zoo:mlp?inputs=12&hidden=8,6&outputs=4&batch=4",
    "one head": "zoo:attention?d=8&heads=1&seq=4",
    "two heads": "zoo:attention?d=8&heads=2&seq=4",
    "swiglu": "zoo:ffn?d=8&ffn=12&seq=4",
    "gpt2": "zoo:gpt2",
    "llama": "zoo:llama",
}
OF_256_BY_32 = {
    "mlp": "zoo:mlp?inputs=256&hidden=256&outputs=256&batch=32",
    "one head": "zoo:attention?d=256&heads=1&seq=32",
    "four heads": "zoo:attention?d=256&heads=4&seq=32",
    "swiglu": "zoo:ffn?d=256&ffn=512&seq=32",
    "gpt2": "zoo:gpt2?size=small",
    "llama": "zoo:llama?size=small",
}
PART = "xcu55c-fsvh2892-2L-e"


@cache
def canonical(model: str) -> Program:
    return prepare(import_model(model))


def tiled(program: Program, tile: int, lanes: int, group_of: int = 0) -> Design:
    """Tiles of at most `tile` in every dim, up to `lanes` lanes in the last; `group_of` operations a kernel, or all."""
    kernels: dict[str, KernelDesign] = {}
    groups: dict[str, int] = {}
    for number, operation in enumerate(read_graph(program.module).operations):
        tiles = tuple(max(d for d in divisors(trip) if d <= tile) for trip in operation.trips)
        unroll = tuple(
            max(d for d in divisors(t) if d <= (lanes if dim >= len(tiles) - 2 else 1)) for dim, t in enumerate(tiles)
        )
        kernels[operation.layer] = KernelDesign(tiles, unroll, tuple(range(len(tiles))))
        groups[operation.layer] = number // group_of if group_of else 0
    return Design(platform="u55c", clock_mhz=300.0, kernels=kernels, groups=groups, port_bits=512)


def variants(model: str, tiles: tuple[int, ...], lanes: int) -> list[Lowered]:
    program = canonical(model)
    operations = len(read_graph(program.module).operations)
    return [
        lower(program, tiled(program, tile, min(tile, lanes), group_of))
        for tile in tiles
        for group_of in (0, (operations + 2) // 3)
    ]


def check(batch: list[Lowered], folder: Path, *, random_sets: int = 1) -> None:
    """Every level of every variant, and all C simulations in one build."""
    folders = [folder / f"design_{number}" for number in range(len(batch))]
    frames = make_inputs(batch[0], random_sets=random_sets)
    for lowered, place in zip(batch, folders, strict=True):
        pytorch = verify_pytorch(lowered)
        assert pytorch is not None
        for comparison in (*verify_levels(lowered, frames), pytorch):
            assert comparison.equal, comparison
        emit(lowered, place, part=PART, clock_mhz=300.0)
    for lowered, csim in zip(batch, build_batch(folders, folder / "build"), strict=True):
        result = verify_csim(lowered, csim, frames)
        assert result.equal, result


@pytest.mark.parametrize("name", ["one head", "swiglu"])
def test_tiny_models_agree(name: str, tmp_path: Path) -> None:
    check(variants(TINY[name], (2, 4), 2)[1:3], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_tiny_models_agree_at_three_tile_sizes_whole_and_in_groups(name: str, tmp_path: Path) -> None:
    check(variants(TINY[name], (2, 4, 16), 2), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tile"), list(zip(OF_256_BY_32, cycle((8, 16, 64)), strict=False)))
def test_models_of_256_by_32_agree_whole_and_in_groups(name: str, tile: int, tmp_path: Path) -> None:
    """Each at one tile size in turn; the tiny ones above meet every size."""
    check(variants(OF_256_BY_32[name], (tile,), 8), tmp_path, random_sets=0)


ODD = "zoo:mlp?inputs=40&hidden=77&outputs=6&batch=3"


def test_odd_sizes_take_tiles_that_divide_them(tmp_path: Path) -> None:
    check(variants(ODD, (8,), 4), tmp_path)  # 77 in tiles of 7, 40 in tiles of 8


def test_odd_sizes_are_padded_for_tiles_that_divide_none_of_them(tmp_path: Path) -> None:
    program = canonical(ODD)
    layer, base = next((op.layer, op.trips) for op in read_graph(program.module).operations if op.reductions)
    kernels = tiled(program, 1, 1).kernels
    batch: list[Lowered] = []
    for dim, size, tile in ((1, 77, 16), (2, 40, 16), (0, 3, 2)):
        assert base[dim] == size
        tiles = tuple(tile if d == dim else 1 for d in range(len(base)))
        odd = KernelDesign(tiles, (1,) * len(base), tuple(range(len(base))))
        batch.append(lower(program, Design("u55c", 300.0, {**kernels, layer: odd})))
    check(batch, tmp_path)
