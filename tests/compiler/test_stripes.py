"""Tensors striped over banks: how they lie, which ports bring them, and what of it is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.hls.ports import interface_of, ports_of
from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.layout import Layout, pack
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.plan.planner import Planner
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime.layout import memory_for, to_memory
from penstock.compiler.schedule import load_library
from penstock.dse.evaluation.assemble import Assembler
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.profiling.network import network_of
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network
from tests.compiler.graphs import Case, GraphSpec, Step, build_graph, turned

PLATFORM, CLOCK = "u55c", 250.0


def two_layers(stripes: int, size: int = 64, port_bits: int = 128) -> tuple[Program, Design]:
    """Weights of `size` x `size` bytes, of which both layers take a row a cycle; a port brings 16 of them."""
    program = build_network("int8", None, size, (Dense(size, False, False), Dense(size, False, False)), seed=1)
    graph = read_graph(program.module)
    evaluator = Evaluator.create(program, PLATFORM)
    design = evaluator.space.design(evaluator.space.default_params())
    kernels = {
        op.layer: replace(
            design.kernels[op.layer],
            tile=op.trips,
            unroll=tuple(size if d in op.reductions else 1 for d in range(len(op.trips))),
            order=tuple(range(len(op.trips))),
            weights="stream",
        )
        for op in graph.operations
    }
    return program, Design(PLATFORM, CLOCK, kernels, port_bits=port_bits, stripes=stripes)


def lowered(stripes: int) -> Lowered:
    return lower(*two_layers(stripes))


@given(st.integers(0, 3), st.integers(0, 4))
def test_the_shares_of_all_banks_are_the_words(exponent: int, wider: int) -> None:
    stripes, lanes = 1 << exponent, 1 << (exponent + wider)
    whole = Layout((4, 2 * lanes), (1, lanes), stripes)
    values = np.arange(8 * 4 * lanes).reshape(8, 4 * lanes)
    shares = [pack(values, whole.part(i)) for i in range(stripes)]
    together = np.stack(shares, axis=-1).reshape(pack(values, whole).shape)
    assert (together == pack(values, whole)).all()
    entry = {"shape": [8, 4 * lanes], "dtype": "int64", "layout": {"tile": [4, 2 * lanes], "word": [1, lanes]}}
    for number, share in enumerate(shares):
        entry["layout"] |= {"stripes": stripes, "stripe": number}
        assert (to_memory(values, entry).reshape(-1) == share.reshape(-1)).all(), "the host packs as the compiler does"
        assert memory_for(entry).size == share.size


def test_weights_come_through_as_many_ports_as_their_reader_asks_for() -> None:
    found = lowered(8)
    names = [name.data for name in found.top.argument_names]
    assert [name for name in names if name.startswith("fc0.weight")] == [f"fc0.weight#{i}" for i in range(4)]
    assert all(comparison.equal for comparison in verify_levels(found, make_inputs(found, random_sets=1)))


@pytest.mark.parametrize(("few", "banks"), [(False, 8), (True, 4)])
def test_weights_may_come_through_as_many_ports_as_their_reader_takes_words(few: bool, banks: int) -> None:
    """A row is four words of a port, and a bank sustains 391 of the 512 bits of a word in a cycle."""
    program, design = two_layers(32, 256, 512)
    found = lower(program, replace(design, few_banks=few))
    names = [name.data for name in found.top.argument_names]
    assert [name for name in names if name.startswith("fc0.weight")] == [f"fc0.weight#{i}" for i in range(banks)]
    assert all(comparison.equal for comparison in verify_levels(found, make_inputs(found, random_sets=1)))
    document = replace(design, few_banks=few).to_json()
    assert Design.from_json(document).few_banks is few
    assert ("few_banks" in document) is few, "records of before are the same"


def test_few_banks_is_one_of_two() -> None:
    document = {**two_layers(1)[1].to_json(), "few_banks": "some"}
    with pytest.raises(PenstockError, match="neither true nor false"):
        Design.from_json(document)


def test_a_port_belongs_to_one_task_and_serves_one_layer_after_the_other() -> None:
    program, design = two_layers(8)
    found = lower(program, replace(design, stripes=32))
    tasks = [op for op in found.top.body.block.ops if isinstance(op, stream.TaskOp)]
    loading = {t.sym_name.data: t for t in tasks if t.sym_name.data.startswith("port")}
    assert len(loading) <= load_platform(PLATFORM).memories[0].ports
    ports = ports_of(found.top)
    readers: dict[int, set[str]] = {}
    for port in ports:
        for use in port.value.uses:
            around = use.operation.parent_op()
            task = around.parent_op() if around is not None else None
            if isinstance(use.operation, nest.LoadOp) and isinstance(task, stream.TaskOp):
                readers.setdefault(port.axi.bundle.data, set()).add(task.sym_name.data)
    assert all(len(names) == 1 for names in readers.values()), "HLS gives a bundle to one task of a dataflow"
    entries = interface_of(found.top, ports)["parameters"]
    shares = [e for e in entries if e["name"] == "fc1.weight"]
    assert [e["layout"]["stripe"] for e in shares] == list(range(len(shares)))
    assert len({e["bundle"] for e in shares}) == len(shares)
    assert len({e["index"] for e in shares}) == 1


def test_the_search_sees_the_tasks_that_are_written() -> None:
    program, design = two_layers(4)
    board = load_platform(PLATFORM)
    written = network_of(lower(program, design).top, load_library(board.operators, CLOCK))
    planned = Assembler(program, board, CLOCK).network(design)
    assert sorted(t.name for t in planned.tasks) == sorted(t.name for t in written.tasks)
    assert set(planned.channels) == set(written.channels)
    runs = [simulate_design(network, board, CLOCK, bounded=False) for network in (planned, written)]
    assert runs[0].latency == runs[1].latency


def test_without_ports_of_their_own_each_bank_still_fills_its_fifo() -> None:
    """A design that is made by hand may name no ports."""
    case = Case(GraphSpec("int32", 0, 4, 4, (Step("relu", 0, 0, 0),), False), (0, 0, 3, *[0] * 5, 1, *[0] * 21))
    found = lower(program := build_graph(case.graph), turned(program, case.knobs))
    assembler = Assembler(program, load_platform(found.design.platform), found.design.clock_mhz)
    assert found.design.stripes > 1
    assert assembler.network(found.design).ends() == network_of(found.top, assembler.library).ends()


def test_striped_loads_are_faster_and_run_through_with_small_fifos() -> None:
    program, design = two_layers(1)
    evaluator = Evaluator.create(program, PLATFORM, clock_mhz=CLOCK)
    board = load_platform(PLATFORM)
    latencies: list[int] = []
    for stripes in (1, 4):
        found = evaluator.evaluate_design(replace(design, stripes=stripes, prefetch_bits=0))
        network = evaluator.assembler.network(found.design)
        run = simulate_design(network, board, CLOCK, depths=dict(found.design.fifo_depths), frames=3)
        assert run.deadlock is None
        latencies.append(run.latency)
    assert latencies[1] < latencies[0]


def test_a_bank_that_is_too_small_for_its_share_is_named() -> None:
    program, design = two_layers(2)
    board = load_platform(PLATFORM)
    small = replace(board, memories=tuple(replace(m, gigabytes=m.ports * 1e-6) for m in board.memories))
    with pytest.raises(PenstockError, match="at least 5 banks") as caught:
        Planner(read_graph(program.module), small).plan(design)
    assert caught.value.code == "bank-too-small"
    assert caught.value.where == "load.fc0.1"


def test_more_banks_than_there_are_is_named() -> None:
    program, design = two_layers(64)
    with pytest.raises(PenstockError, match="hbm of u55c has 32") as caught:
        lower(program, design)
    assert caught.value.code == "bad-design"
    assert caught.value.where == "stripes"
