"""Dims padded so that tiles are whole: what becomes of the program, who may be padded, and what is refused by name."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.pipeline import emit, lower
from penstock.compiler.pipeline.verify import FLOAT_TOLERANCE, compare, make_inputs, verify_levels
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.schedule import load_library
from penstock.compiler.transforms.pad_dims import Dims, PadDims, pad_module
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network
from tests.compiler.test_chain import check_csim
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens"


def prime_layer(kind: str = "int8") -> Program:
    """Three rows of seven to five."""
    return build_network(kind, 3, 7, (Dense(5, False, False),), seed=3)


def tiled(program: Program, **tiles: tuple[int, ...]) -> Design:
    """Whole dims, but for some layers' tiles; everything in a tile on one lane but two of the innermost dim."""
    design = default_design(read_graph(program.module), "u55c", 100.0)
    names = {name.replace("_", "."): tile for name, tile in tiles.items()}
    kernels = {
        name: replace(kernel, tile=names.get(name, kernel.tile), unroll=tuple(
            2 if name in names and t % 2 == 0 else 1 for t in names.get(name, kernel.tile)))
        for name, kernel in design.kernels.items()
    }  # fmt: skip
    return replace(design, kernels=kernels)


def lanes(design: Design, count: int) -> Design:
    """So many lanes along the innermost dim of every layer."""
    kernels = {n: replace(k, unroll=(*k.unroll[:-1], count)) for n, k in design.kernels.items()}
    return replace(design, kernels=kernels)


def masks_of(program: Program, design: Design) -> list[tuple[str, int, float]]:
    dims = Dims(read_graph(program.module))
    return [(mask.layer, mask.loop, float(mask.value)) for mask in dims.masks(dims.padded(design))]


def of_body(body: str, reduction: str, start: str) -> Program:
    """A reduction over the seven columns of three rows, of anything made of an input and a parameter beside it."""
    text = f"""
func.func @main(%x: tensor<3x7xf32> {{penstock.name = "x", penstock.kind = "input"}},
                %w: tensor<7xf32> {{penstock.name = "w", penstock.kind = "param"}}) -> tensor<3xf32> {{
  %start = arith.constant {start} : f32
  %e = tensor.empty() : tensor<3x7xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i, k)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x, %w : tensor<3x7xf32>, tensor<7xf32>) outs(%e : tensor<3x7xf32>)
      attrs = {{penstock.layer = "body"}} {{
  ^bb0(%a: f32, %b: f32, %old: f32):
    {body}
    linalg.yield %t : f32
  }} -> tensor<3x7xf32>
  %e2 = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%start : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {{indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%y : tensor<3x7xf32>) outs(%f : tensor<3xf32>)
      attrs = {{penstock.layer = "sum"}} {{
  ^bb0(%a: f32, %r: f32):
    %n = {reduction} %r, %a : f32
    linalg.yield %n : f32
  }} -> tensor<3xf32>
  func.return %s : tensor<3xf32>
}}"""  # noqa: E501
    module = Parser(make_context(), text).parse_module()
    params = {"w": np.linspace(0.5, 2.0, 7, dtype=np.float32)}
    signature = Signature((Port("x", (3, 7), "float32"),), (Port("y", (3,), "float32"),))
    return Program("reduced", module, params, signature)


def test_golden() -> None:
    program = prime_layer()
    padded = PadDims(tiled(program, fc0=(2, 2, 4), fc0_relu=(2, 2))).run(program)
    check_golden(GOLDENS / "padded.mlir", str(padded.module) + "\n")
    assert padded.params["fc0.weight"].shape == (6, 8)
    assert not padded.params["fc0.weight"][5:].any()
    assert not padded.params["fc0.weight"][:, 7:].any()
    assert (padded.params["fc0.weight"][:5, :7] == program.params["fc0.weight"]).all()


def test_golden_of_masks(tmp_path: Path) -> None:
    """What a person reads of a mask: in linalg, in C++ and in SystemVerilog."""
    program = of_body("%t = math.exp %a : f32", "arith.addf", "0.0")
    lowered = lower(program, tiled(program, body=(3, 4), sum=(3, 4)))
    check_golden(GOLDENS / "masked.mlir", str(lowered.padded.module) + "\n")
    emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=100.0)
    code = (tmp_path / "hls" / "penstock_top.cpp").read_text()
    check_golden(GOLDENS / "masked.cpp", code[code.index("void body(") :].partition("\n}\n")[0] + "\n}\n")
    library = load_library("open-ecp5", 100.0)
    core = emit_rtl(lowered.stream, library, lowered.padded.params)
    check_golden(GOLDENS / "masked.sv", core.files["task_body.sv"])


def test_whole_tiles_change_nothing() -> None:
    program = prime_layer()
    assert PadDims(tiled(program, fc0=(3, 5, 7))).run(program) is program


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_every_level_agrees_with_the_unpadded_model(kind: str, tmp_path: Path) -> None:
    """The reference is linalg as it was before; the C simulation is called with the model's own shapes."""
    program = prime_layer(kind)
    lowered = lower(program, tiled(program, fc0=(2, 2, 4), fc0_relu=(2, 2)))
    frames = make_inputs(lowered, random_sets=3)
    for comparison in verify_levels(lowered, frames):
        assert comparison.equal, comparison
    emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=100.0)
    csim = build_csim(tmp_path, ToolRunner())
    got = [a for frame in csim.run_frames(frames) for a in frame]
    wanted = [a for frame in frames for a in linalg_interpreter.run(program, frame)]
    assert [a.shape for a in got] == [a.shape for a in wanted]
    assert compare("csim", "linalg", got, wanted, 0.0 if kind == "int8" else FLOAT_TOLERANCE).equal


@pytest.mark.parametrize(
    ("body", "reduction", "start"),
    [
        ("%t = arith.mulf %a, %b : f32", "arith.addf", "0.0"),
        ("%u = math.tanh %a : f32\n %t = arith.mulf %u, %b : f32", "arith.addf", "0.0"),
        ("%u = arith.addf %a, %b : f32\n %t = arith.mulf %u, %u : f32", "arith.addf", "0.0"),
    ],
)
def test_a_sum_whose_padding_is_zero(body: str, reduction: str, start: str) -> None:
    program = of_body(body, reduction, start)
    lowered = lower(program, tiled(program, body=(3, 4), sum=(3, 4)))
    assert lowered.padded is not program
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=3)):
        assert comparison.equal, comparison


@pytest.mark.parametrize(
    ("body", "reduction", "start", "mask"),
    [
        ("%t = math.exp %a : f32", "arith.addf", "0.0", 0.0),
        ("%t = arith.mulf %a, %b : f32", "arith.maximumf", "0xFF800000", -np.inf),
        ("%t = arith.divf %a, %b : f32", "arith.addf", "0.0", 0.0),
        ("%t = arith.subf %a, %b : f32", "arith.minimumf", "0x7F800000", np.inf),
    ],
)
def test_a_reduction_that_would_see_the_padding_is_masked(
    body: str, reduction: str, start: str, mask: float, tmp_path: Path
) -> None:
    """Once, in what it reads; with two lanes, four and one, in tiles that the dim ends in and at."""
    program = of_body(body, reduction, start)
    batch = [
        lower(program, tiled(program, body=(3, 4), sum=(3, 8))),
        lower(program, lanes(tiled(program, body=(2, 8), sum=(2, 8)), 4)),
        lower(program, lanes(tiled(program, body=(3, 2), sum=(3, 4)), 1)),
    ]
    for lowered in batch:
        assert masks_of(program, lowered.design) == [("body", 1, mask)]
        for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=3)):
            assert comparison.equal, comparison
    check_csim(batch, tmp_path)


def test_a_term_is_masked_where_nothing_before_it_can_be() -> None:
    """An input's zeros are no neutral elements of a maximum; there is no operation before it to change them."""
    program = of_body("%t = arith.addf %a, %b : f32", "arith.maximumf", "0xFF800000")
    graph = read_graph(program.module)
    before = graph.by_layer["body"]
    before.result.replace_all_uses_with(graph.arguments[0])
    Rewriter.erase_op(before.op)
    design = tiled(program, sum=(3, 4))
    assert masks_of(program, design) == [("sum", 1, -np.inf)]
    lowered = lower(program, design)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=3)):
        assert comparison.equal, comparison


def test_a_reduction_without_neutral_element_is_refused() -> None:
    program = of_body("%t = arith.addf %a, %b : f32", "arith.mulf", "1.0")
    with pytest.raises(PenstockError) as caught:
        lower(program, tiled(program, body=(3, 4), sum=(3, 4)))
    assert caught.value.code == "tile-does-not-divide"
    assert "arith.mulf over the dim knows no padding" in caught.value.limit
    assert "divisor of 7" in caught.value.hint
    rows = lower(program, tiled(program, body=(2, 7), sum=(2, 7)))  # the rows may be padded all the same
    assert all(c.equal for c in verify_levels(rows, make_inputs(rows, random_sets=2)))


def test_dims_that_are_cut_are_refused() -> None:
    program = build_network("int8", 3, 7, (Dense(6, False, False),), seed=3, rotate=True)
    with pytest.raises(PenstockError, match="cannot be padded"):
        lower(program, tiled(program, fc0=(3, 4, 7)))
    dims = Dims(read_graph(program.module))
    fc0 = dims.graph.by_layer["fc0"]
    assert [dims.of_loop(fc0, d) in dims.unfit for d in range(3)] == [False, True, False]


def test_neighbours_that_tile_apart_are_refused() -> None:
    program = prime_layer()
    with pytest.raises(PenstockError, match="with the tiles of its neighbours") as caught:
        lower(program, tiled(program, fc0=(3, 5, 7), fc0_relu=(3, 4)))
    assert caught.value.where == "fc0.relu"
    assert "padded to 20" in caught.value.limit


def test_a_model_without_weights_is_padded_without_memory() -> None:
    program = prime_layer()
    seen = {name: np.broadcast_to(np.zeros((), array.dtype), array.shape) for name, array in program.params.items()}
    bare = replace(program, params=seen, has_weights=False)
    padded = PadDims(tiled(bare, fc0=(2, 2, 4), fc0_relu=(2, 2))).run(bare)
    assert not any(any(array.strides) for array in padded.params.values())
    assert padded.params["fc0.weight"].shape == (6, 8)


def test_the_host_runtime_pads_and_crops(tmp_path: Path) -> None:
    import json

    from penstock.compiler.runtime.penstock_runtime.layout import from_memory, memory_for, to_memory

    program = prime_layer()
    lowered = lower(program, tiled(program, fc0=(2, 2, 4), fc0_relu=(2, 2)))
    emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=100.0)
    interface = json.loads((tmp_path / "interface.json").read_text())
    entry, result = interface["inputs"][0], interface["outputs"][0]
    assert (entry["shape"], entry["valid"]) == ([4, 8], [3, 7])
    assert (result["shape"], result["valid"]) == ([4, 6], [3, 5])
    values = np.arange(21, dtype=np.int8).reshape(3, 7)
    there = to_memory(values, entry)
    assert there.size == 32
    assert sorted(there.reshape(-1)) == sorted([*range(21), *[0] * 11])
    assert (from_memory(there.reshape(-1), entry) == values).all()
    assert from_memory(memory_for(result), result).shape == (3, 5)


def test_networks_deeper_than_pythons_stack_are_padded() -> None:
    """EfficientNet's 238 operations went back to the input one within the other, and no design could be made."""
    program = build_network("int8", None, 3, tuple(Dense(3, True, False) for _ in range(60)), seed=1)
    dims = Dims(read_graph(program.module))
    last = read_graph(program.module).operations[-2]
    sizes = {dims.of_loop(last, last.reductions[0]): 4}  # of its sum alone: what lies before is read only for that
    limit, deep = sys.getrecursionlimit(), len(inspect.stack())
    sys.setrecursionlimit(deep + 150)
    try:
        padded = pad_module(dims, sizes)
    finally:
        sys.setrecursionlimit(limit)
    assert any(4 in op.trips for op in read_graph(padded).operations)
