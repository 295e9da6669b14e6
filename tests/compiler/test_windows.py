"""Convolutions and poolings through every level: linalg = itensor = stream = C simulation = SystemVerilog = PyTorch."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import f32
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.live_range import live_maximum
from penstock.compiler.analysis.spatial import frame_lanes
from penstock.compiler.analysis.walks import SliceWalk
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.window import Slide
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels, verify_pytorch
from penstock.compiler.program import Program
from penstock.compiler.schedule import load_library, schedule_nest
from tests.compiler.designs import divisors
from tests.compiler.frames import FRAMES, imported
from tests.compiler.test_chain import check_csim
from tests.goldens import check_golden
from tests.rtl.rtl_batch import Core, build, check_whole

GOLDENS = Path(__file__).parent / "goldens" / "windows"
WITH_LANES = ("groups", "residual", "into dense", "depthwise", "largest, overlapping", "batch norms")


@cache
def model(name: str) -> Program:
    """One of the models on frames; no pass changes what it is given."""
    layer, shape = FRAMES[name]
    return imported(layer(), shape)


def plain(program: Program, quantize: str | None = None) -> Lowered:
    return lower(program, default_design(read_graph(program.module), "u55c", 300.0, quantize))


def with_lanes(program: Program, seed: int, quantize: str | None = None) -> Lowered:
    """Random lanes and tiles in all dims, rows and columns too, in random orders."""
    generator, kernels = random.Random(seed), dict[str, KernelDesign]()
    for op in read_graph(program.module).operations:
        tile = [generator.choice(divisors(trip)) for trip in op.trips]
        unroll = [generator.choice([d for d in divisors(size) if d <= 3]) for size in tile]
        order = generator.sample(range(len(tile)), len(tile))
        kernels[op.layer] = KernelDesign(tuple(tile), tuple(unroll), tuple(order))
    return lower(program, Design("u55c", 300.0, kernels, quantize))


def check(lowered: Lowered) -> None:
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
    answers = verify_pytorch(lowered)
    assert answers is not None
    assert answers.equal, answers


@pytest.mark.parametrize("name", FRAMES)
def test_levels_agree_with_pytorch(name: str) -> None:
    program = model(name)
    check(plain(prepare(program)))
    check(plain(prepare(program, "w8a8"), "w8a8"))
    if name in WITH_LANES:
        check(with_lanes(prepare(program), seed=len(name)))


def test_csim_agrees(tmp_path: Path) -> None:
    batch: list[Lowered] = []
    for name in WITH_LANES:
        program = model(name)
        batch += [with_lanes(prepare(program), 1), plain(prepare(program, "w8a8"), "w8a8")]
    batch.append(side_by_side(prepare(in_columns(), "w8a8"), 4))
    batch += [plain(prepare(model(name), "w8a8"), "w8a8") for name in ("long rows", "shuffled channels")]
    check_csim(batch, tmp_path)


def test_rtl_agrees_cycle_by_cycle() -> None:
    """Integer models, two frames one after the other: the lines of the first are gone when the second comes."""
    cores: list[Core] = []
    for name in ("stride", "residual", "into dense", "long rows", "shuffled channels"):
        lowered = plain(prepare(model(name), "w8a8"), "w8a8")
        cores.append(Core(lowered, name))
    cores.append(Core(side_by_side(prepare(in_columns(), "w8a8"), 4), "columns"))
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program, frames=2)


def test_golden() -> None:
    """A convolution, its line buffers included, at the levels below linalg."""
    torch.manual_seed(0)
    lowered = plain(prepare(imported(nn.Conv2d(1, 2, 3, stride=2, padding=1, bias=False), (1, 1, 5, 5), "conv")))
    for level, module in (("itensor", lowered.itensor), ("stream", lowered.stream)):
        check_golden(GOLDENS / f"{level}.mlir", str(module) + "\n")
        Parser(make_context(), str(module)).parse_module().verify()


def slides(lowered: Lowered) -> list[stream.TaskOp]:
    tasks = [op for op in lowered.stream.walk() if isinstance(op, stream.TaskOp)]
    return [task for task in tasks if "windows" in (name := task.sym_name.data) and "convert" not in name]


def test_lines_hold_what_is_alive() -> None:
    """Rows into 3 x 3 windows on 16 x 16: two rows and two columns of a window; 35 are alive where windows are slices.

    The three that are more stand in the window and in the rows before it too. Two frames would be 512.
    """
    lowered = plain(prepare(imported(nn.MaxPool2d(3, 1), (1, 1, 16, 16), "pool")))
    lines = [op for one in slides(lowered) for op in one.walk() if isinstance(op, stream.BufferOp)]
    sizes = [op.result.type.element_count() for op in lines]
    assert sizes == [16, 16, 3, 3]
    rows = SliceWalk((1, 1), ((16, 1, 0), (16, 1, 1)))
    windows = SliceWalk((3, 3), ((14, 1, 0), (14, 1, 1)))
    assert live_maximum(rows, windows) == 35 == sum(sizes) - 3


def test_long_lines_are_one_memory() -> None:
    """Two rows of 136 places are one block RAM, whose words hold a place of each; a window's columns stay apart."""
    lowered = plain(prepare(model("long rows"), "w8a8"), "w8a8")
    library = load_library("vitis-ultrascale-plus", 300.0)
    nests = [op for task in slides(lowered) for op in task.walk() if isinstance(op, nest.NestOp)]
    memories = [memory for one in nests for memory in schedule_nest(one, library).memories]
    assert [(m.name, m.shape.words, m.shape.word_bits, m.area.bram18) for m in memories] == [
        ("lines", 136, 16, 1), ("line_0", 1, 24, 0), ("line_1", 1, 24, 0),
    ]  # fmt: skip


def test_a_layer_begins_after_the_rows_of_its_first_window() -> None:
    """Three convolutions take little longer than one: none waits for a frame."""

    def stacked(layers: int) -> Lowered:
        body = nn.Sequential(*(nn.Conv2d(2, 2, 3, padding=1) for _ in range(layers)))
        return plain(prepare(imported(body, (1, 2, 16, 16)), "w8a8"), "w8a8")

    assert cycles(stacked(3)) < 1.4 * cycles(stacked(1))


def test_a_window_larger_than_its_frame_is_refused_by_name() -> None:
    with pytest.raises(PenstockError, match="Kernel size can't be greater than actual input size"):
        prepare(imported(nn.Conv2d(1, 1, 5), (1, 1, 4, 4)))


@pytest.mark.parametrize("quantize", [None, "w8a8"])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), (1, 2, 4, 4)),
        (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), (1, 2, 7, 7)),
    ],
)
def test_what_becomes_other_windows_computes_the_same(
    layer: type[nn.Module], shape: tuple[int, ...], quantize: str | None
) -> None:
    check(plain(prepare(imported(layer(), shape), quantize), quantize))


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (Slide(2, 1, 1), "of a tensor of shape"),
        (Slide(0, 0, 1), "of a tensor of shape"),
        (Slide(0, 2, 3), "have shape"),
        (Slide(0, 2, 2, before=-1), "of a tensor of shape"),
    ],
)
def test_windows_that_mean_nothing(by: Slide, words: str) -> None:
    made = f"window.slide %0 by <{by}> fill 0.0 : {f32} : tensor<4x4xf32> -> tensor<3x4x2xf32>"
    text = f"%0 = tensor.empty() : tensor<4x4xf32>\n%1 = {made}"
    with pytest.raises(Exception, match=words):
        Parser(make_context(), text).parse_module().verify()


def test_several_columns_a_cycle() -> None:
    """Lanes along the columns: windows leave side by side, also padded or with a stride, in two thirds of the time."""
    program = prepare(in_columns(), "w8a8")
    allowed = frame_lanes(read_graph(program.module))
    assert [lanes[max(lanes)] for layer, lanes in allowed.items() if layer in ("0", "2")] == [(1, 2, 4, 8, 16), (1, 2)]
    one, four = (side_by_side(program, lanes) for lanes in (1, 4))
    check(four)
    assert 3 * cycles(four) < 2 * cycles(one)


@cache
def in_columns() -> Program:
    body = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 2, 3))
    return imported(body, (1, 2, 8, 16))


def side_by_side(program: Program, most: int) -> Lowered:
    """As many lanes along the columns as windows keep in step with, up to `most`, and all lanes along the rest."""
    graph = read_graph(program.module)
    design, allowed = default_design(graph, "u55c", 300.0, "w8a8"), frame_lanes(graph)
    kernels = dict(design.kernels)
    for op in graph.operations:
        lanes = {d: max(n for n in numbers if n <= most) for d, numbers in allowed.get(op.layer, {}).items()}
        tile = tuple(lanes.get(d, trip) for d, trip in enumerate(op.trips))
        kernels[op.layer] = replace(kernels[op.layer], tile=tile, unroll=tile)
    return lower(program, replace(design, kernels=kernels))


def cycles(lowered: Lowered) -> int:
    return sum(one.latency for one in Core(lowered, 0).simulations())
