"""Small designs as SystemVerilog: what it says, what it computes, how long it takes, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, VectorType, i32
from xdsl.ir import Block, Operation, Region
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser

from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.backend.rtl.hazards import SharedUse, check_apart, check_order
from penstock.compiler.design import Design, KernelDesign, WeightStore
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.schedule import load_library
from penstock.profiling.open_rtl.run import simulate_rtl
from tests.compiler.designs import Dense, build_network
from tests.goldens import check_golden
from tests.rtl.gemm import gemm
from tests.rtl.rtl_batch import LIBRARY, Core, build, check_part, check_whole, inner_tasks

GOLDENS = Path(__file__).parent / "goldens"


def dense(lanes: int = 2, placement: WeightStore = "rom", groups: int = 1) -> Lowered:
    """A dense layer with bias, relu and requantisation, and the sum with its input."""
    program = build_network("int8", 4, 8, (Dense(8, transposed=True, skip=True),), 3)
    kernels = {
        layer: KernelDesign(tile, tuple(lanes for _ in tile), tuple(range(len(tile))), placement)
        for layer, tile in {"fc0": (4, 8, 8), "fc0.relu": (4, 8), "fc0.sum": (4, 8)}.items()
    }
    names = {layer: min(number, groups - 1) for number, layer in enumerate(kernels)}
    return lower(program, Design(platform="ecp5-85k", clock_mhz=100.0, kernels=kernels, groups=names, port_bits=64))


def test_a_task_reads_like_its_nest() -> None:
    lowered = dense()
    design = emit_rtl(lowered.stream, LIBRARY, lowered.program.params)
    for name in ("task_fc0.sv", "task_fc0_relu.sv", "penstock_core.sv"):
        check_golden(GOLDENS / name, design.files[name])


def test_the_text_is_the_same_every_time() -> None:
    texts = [emit_rtl(one.stream, LIBRARY, one.program.params) for one in (dense(), dense())]
    assert texts[0] == texts[1]


def test_dense_layers_with_weights_on_chip_or_streamed_in_one_kernel_or_several() -> None:
    designs: list[tuple[int, WeightStore, int]] = [(1, "rom", 1), (2, "rom", 3), (4, "stream", 1), (2, "stream", 2)]
    cores = [Core(dense(*one), f"lanes, weights, groups: {one}") for one in designs]
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program)
        check_whole(core, program, frames=3)


def test_stalls_change_no_bit_and_idle_time_is_no_deadlock() -> None:
    lowered = dense()
    core = Core(lowered, "inner tasks", inner_tasks(lowered))
    (program,) = build([core])
    calm = check_part(core, program, 3).cycles
    assert {check_part(core, program, seed).cycles for seed in range(8)} != {calm}


def test_gemm_takes_as_many_cycles_as_it_has_products() -> None:
    """16 x 32 x 64: an unroll of U gives a U-th of the cycles, and the first result after one row."""
    cores = [Core(gemm(16, 32, 64, lanes), lanes, ["gemm"]) for lanes in (1, 4, 16)]
    for core, program in zip(cores, build(cores), strict=True):
        (source,) = (p for p in core.design.ports if p.kind == "stream_in")
        (target,) = (p for p in core.design.ports if p.kind == "stream_out")
        x = np.random.default_rng(1).integers(-128, 127, (16, 64), endpoint=True).astype(np.int8)
        run = simulate_rtl(core.design, {source.name: x}, program=program)
        weight = core.lowered.program.params["gemm.weight"].astype(np.int64)
        assert np.array_equal(run.outputs[target.name].reshape(16, 32), x.astype(np.int64) @ weight)
        assert run.latency == 32_768 // int(str(core.label)) + 4
        assert run.initial_delay == 67


def test_fifos_take_the_depths_that_are_given() -> None:
    lowered = dense()
    design = emit_rtl(lowered.stream, LIBRARY, lowered.program.params, depths={"fc0__fc0_relu": 77})
    assert '.DEPTH(77), .NAME("fc0__fc0_relu")' in design.files["penstock_core.sv"]


def test_a_part_of_a_design_has_streams_where_it_was_cut() -> None:
    lowered = dense()
    design = emit_rtl(lowered.stream, LIBRARY, lowered.program.params, tasks=["fc0"])
    assert [(p.name, p.kind, p.channel) for p in design.ports] == [
        ("unpack_x_to_fc0", "stream_in", "unpack_x__fc0"), ("fc0_to_fc0_relu", "stream_out", "fc0__fc0_relu"),
    ]  # fmt: skip
    assert not any("fc0_relu" in name for name in design.files)


def test_a_block_channel_is_never_cut() -> None:
    lowered = dense()
    writer = next(task.sym_name.data for task in lowered.tasks if task.sym_name.data.endswith("_write"))
    design = emit_rtl(lowered.stream, LIBRARY, lowered.program.params, tasks=[writer])
    assert f"task_{writer.removesuffix('_write')}_read.sv" in design.files


def refused(code: str, **changed: Any) -> PenstockError:
    lowered = dense()
    arguments: dict[str, Any] = {"library": LIBRARY, "parameters": lowered.program.params, **changed}
    with pytest.raises(PenstockError) as caught:
        emit_rtl(lowered.stream, **arguments)
    assert caught.value.code == code
    return caught.value


def test_bad_requests_are_named() -> None:
    assert "fc9" in str(refused("unknown-task", tasks=["fc9"]))
    assert "vitis" in str(refused("unsupported-library", library=load_library("vitis-ultrascale-plus", 300.0)))
    assert "fc0.weight" in str(refused("missing-parameter", parameters={}))


def test_a_library_that_is_not_the_cores_own_is_refused() -> None:
    """An fp32 sum has the stages of its core; a library that says otherwise would give wrong bits."""
    program = build_network("float32", 2, 4, (Dense(4, transposed=True, skip=False),), 1)
    kernels = {"fc0": KernelDesign((2, 4, 4), (1, 1, 1), (0, 1, 2)), "fc0.relu": KernelDesign((2, 4), (1, 1), (0, 1))}
    lowered = lower(program, Design(platform="ecp5-85k", clock_mhz=100.0, kernels=kernels, port_bits=64))
    rows = tuple(replace(row, latency=3) if "arith.addf" in row.ops else row for row in LIBRARY.operators)
    with pytest.raises(PenstockError, match=r"arith\.addf has \d+ stages") as caught:
        emit_rtl(lowered.stream, replace(LIBRARY, operators=rows), program.params)
    assert caught.value.where == "fc0.compute"


def accesses(loads: int, stores: int) -> tuple[nest.NestOp, list[Operation]]:
    """A nest of one loop that stores into a memory and loads from it, in this order."""
    memory = stream.BufferOp("kept", MemRefType(i32, [8]))
    kind, body, ops = VectorType(i32, [1]), Block(), list[Operation]()
    value = nest.ConstantOp(arith.ConstantOp.from_int_and_width(3, 32).value, kind)
    body.add_op(value)
    for count, make in ((stores, nest.StoreOp), (loads, nest.LoadOp)):
        for _ in range(count):
            at = AffineMap.from_callable(lambda i: (i,))
            if make is nest.StoreOp:
                ops.append(nest.StoreOp(value.result, memory.result, at, ALWAYS))
            else:
                ops.append(nest.LoadOp(memory.result, at, ALWAYS, kind))
            body.add_op(ops[-1])
    return nest.NestOp("compute", [Loop("i", 8)], Region(body)), ops


def use(op: nest.NestOp, access: Operation, stage: int, ii: int = 1) -> SharedUse:
    assert isinstance(access, nest.LoadOp | nest.StoreOp)
    return SharedUse(op, access, stage, ii, 0, "task.compute")


def test_orders_that_a_pipeline_would_change_are_refused() -> None:
    op, (store, load) = accesses(1, 1)
    assert check_order(use(op, load, 1), [use(op, store, 1)], "kept")
    assert not check_order(use(op, load, 2), [use(op, store, 1)], "kept")
    with pytest.raises(PenstockError, match="is not the nest's") as caught:
        check_order(use(op, load, 0), [use(op, store, 2)], "kept")
    assert caught.value.where == "task.compute"


def test_two_stores_in_one_cycle_are_refused_unless_their_guards_exclude_each_other() -> None:
    op, (first, second) = accesses(0, 2)
    with pytest.raises(PenstockError, match="fall into the same cycle"):
        check_apart([use(op, first, 3), use(op, second, 3)], "kept")
    check_apart([use(op, first, 3, ii=2), use(op, second, 4, ii=2)], "kept")
    first.properties["when"], second.properties["when"] = (GuardAttr((Term(0, c, 2),)) for c in ("eq", "ne"))
    check_apart([use(op, first, 3), use(op, second, 3)], "kept")


SUM = """func.func @main(%x: tensor<4x5x5xKIND> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4xKIND> {
  %zero = arith.constant ZERO : KIND
  %empty = tensor.empty() : tensor<4xKIND>
  %start = linalg.fill ins(%zero : KIND) outs(%empty : tensor<4xKIND>) -> tensor<4xKIND>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>],
      iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x5x5xKIND>) outs(%start : tensor<4xKIND>) attrs = {penstock.layer = "sum"} {
  ^bb0(%a: KIND, %c: KIND):
    %s = ADD %c, %a : KIND
    linalg.yield %s : KIND
  } -> tensor<4xKIND>
  func.return %y : tensor<4xKIND>
}"""


def test_trees_over_two_odd_dims_are_those_of_the_interpreter() -> None:
    """Five by five lanes are three levels a dim, which for floats is part of the meaning."""
    cores: list[Core] = []
    for kind, zero, add, dtype in (("i32", "0", "arith.addi", "int32"), ("f32", "0.0", "arith.addf", "float32")):
        text = SUM.replace("KIND", kind).replace("ZERO", zero).replace("ADD", add)
        ports = Signature((Port("x", (4, 5, 5), dtype),), (Port("y", (4,), dtype),))
        program = Program("sum", Parser(make_context(), text).parse_module(), {}, ports)
        kernel = KernelDesign((4, 5, 5), (2, 5, 5), (0, 1, 2))
        design = Design(platform="ecp5-85k", clock_mhz=100.0, kernels={"sum": kernel}, port_bits=64)
        cores.append(Core(lower(program, design), kind))
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program)


def test_small_functions_are_tables() -> None:
    """exp(x / 16) of an int8 has no core, and the bits of the interpreter."""
    text = """func.func @main(%x: tensor<16xi8> {penstock.name = "x", penstock.kind = "input"}) -> tensor<16xf32> {
      %empty = tensor.empty() : tensor<16xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x : tensor<16xi8>) outs(%empty : tensor<16xf32>)
          attrs = {penstock.layer = "power"} {
      ^bb0(%a: i8, %old: f32):
        %step = arith.constant 0.0625 : f32
        %real = arith.sitofp %a : i8 to f32
        %scaled = arith.mulf %real, %step : f32
        %power = math.exp %scaled : f32
        linalg.yield %power : f32
      } -> tensor<16xf32>
      func.return %y : tensor<16xf32>
    }"""
    ports = Signature((Port("x", (16,), "int8"),), (Port("y", (16,), "float32"),))
    program = Program("power", Parser(make_context(), text).parse_module(), {}, ports)
    design = Design(
        platform="ecp5-85k", clock_mhz=100.0, kernels={"power": KernelDesign((16,), (2,), (0,))}, port_bits=64
    )
    core = Core(lower(program, design), "power")
    assert not any(name.startswith("fp32") for name in core.design.files)
    (built,) = build([core])
    check_whole(core, built)
