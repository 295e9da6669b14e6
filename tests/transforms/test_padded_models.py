"""Models of odd sizes whose norms and softmax run over padded dims: every level agrees, and with PyTorch."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels, verify_pytorch
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import load_library
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.evaluation.assemble import Assembler
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.profiling.network import network_of
from tests.compiler.test_chain import check_csim
from tests.dse.test_evaluate import shape_of
from tests.rtl.rtl_batch import Core, build, check_whole

ATTENTION = "zoo:attention?d=12&heads=3&seq=5"
ODD = {
    "mlp": "zoo:mlp?inputs=13&hidden=11,7&outputs=5&batch=3",
    "attention of 12": "zoo:attention?d=24&heads=3&seq=12",
    "attention of 20": "zoo:attention?d=12&heads=3&seq=20",
    "gpt2": "zoo:gpt2?d=50&heads=5&ffn=27&seq=6",
    "llama": "zoo:llama?d=15&heads=3&kv=1&head=6&ffn=27&seq=7",
}


@cache
def canonical(model: str, quantize: str | None = None) -> Program:
    return prepare(import_model(model), quantize=quantize)


def padded(program: Program, unit: int, lanes: int, quantize: str | None = None) -> Design:
    """Every dim that may be padded has tiles of so many, in an order of its own, and so many lanes in the last."""
    graph, generator = read_graph(program.module), random.Random(unit)
    dims, kernels = Dims(graph), dict[str, KernelDesign]()
    sizes = {n: -(-size // unit) * unit for n, size in dims.sizes.items() if n in dims.paddable and 2 * size > unit}
    for operation in graph.operations:
        numbers = [dims.of_loop(operation, d) for d in range(len(operation.trips))]
        tile = [unit if n in sizes else trip for n, trip in zip(numbers, operation.trips, strict=True)]
        unroll = [lanes if d == len(tile) - 1 and t % lanes == 0 else 1 for d, t in enumerate(tile)]
        order = generator.sample(range(len(tile)), len(tile))
        kernels[operation.layer] = KernelDesign(tuple(tile), tuple(unroll), tuple(order))
    return Design(platform="u55c", clock_mhz=300.0, kernels=kernels, quantize=quantize)


def check(lowered: Lowered) -> Lowered:
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
    comparison = verify_pytorch(lowered)
    assert comparison is not None
    assert comparison.equal, comparison
    return lowered


def test_attention_needs_one_mask_a_dim() -> None:
    """The lowest number before the maximum: what the exponential makes of the rest meets the model's own mask."""
    program = canonical(ATTENTION)
    dims = Dims(read_graph(program.module))
    sequence = dims.of_loop(dims.graph.by_layer["amax"], 2)
    assert [(mask.layer, float(mask.value)) for mask in dims.masks([sequence])] == [("mul_2.add", float("-inf"))]


def test_a_norm_needs_a_mask_where_the_mean_is_taken_off() -> None:
    """The root of a variance plus something is finite, so that what is zero stays zero behind it."""
    dims = Dims(read_graph(canonical("zoo:gpt2?d=10&heads=1&ffn=6&seq=3").module))
    features = dims.of_loop(dims.graph.by_layer["ln_1.sum"], 1)
    masks = {mask.layer for mask in dims.masks([features])}
    assert "ln_1.mul_2" in masks
    assert not masks & {"ln_1.sum", "ln_1.sub", "ln_1.add"}


def test_the_search_offers_it() -> None:
    """A sequence of 15 is a sequence of 16 in every layer, the softmax's too."""
    program = canonical("zoo:attention?d=12&heads=3&seq=15")
    evaluator = Evaluator.create(program, "u55c")
    assert evaluator.space.choices["padding"] == (False, True)
    settings = {name: values[0] for name, values in evaluator.space.choices.items()}
    found = evaluator.evaluate({**settings, "default_tile_size": 16, "padding": True})
    dims = Dims(read_graph(program.module))
    sequence = dims.of_loop(dims.graph.by_layer["amax"], 2)
    assert dims.padded(found.design)[sequence] == 16
    assert dims.masks(dims.padded(found.design))


@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_attention_over_a_padded_sequence(quantize: str | None) -> None:
    """Every level, PyTorch, and the pieces that the search puts together."""
    program = canonical(ATTENTION, quantize)
    design = padded(program, 4, 2, quantize)
    lowered = check(lower(program, design))
    library = load_library(load_platform("u55c").operators, 300.0)
    assembled = Assembler(program, load_platform("u55c"), 300.0).network(design)
    assert shape_of(assembled) == shape_of(network_of(lowered.top, library))


def test_masks_as_systemverilog() -> None:
    """Bits, cycles and high-water marks of a padded attention in int8: masks are flags of the loops' counters."""
    program = canonical(ATTENTION, "w8a8")
    core = Core(lower(program, padded(program, 4, 2, "w8a8")), ATTENTION)
    check_whole(core, build([core])[0])


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
@pytest.mark.parametrize("model", ODD)
def test_odd_models_agree_at_every_level(model: str, quantize: str | None, tmp_path: Path) -> None:
    program = canonical(ODD[model], quantize)
    batch = [check(lower(program, padded(program, unit, lanes, quantize))) for unit, lanes in ((4, 2), (8, 4), (4, 1))]
    check_csim(batch, tmp_path)


@pytest.mark.slow
def test_a_padded_block_as_systemverilog() -> None:
    program = canonical(ODD["attention of 12"], "w8a8")
    core = Core(lower(program, padded(program, 8, 4, "w8a8")), "attention of 12")
    check_whole(core, build([core])[0])
