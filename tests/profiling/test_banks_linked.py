"""The banks of external memory that a design is modelled and placed with are those that it is linked to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.hls.link import bytes_of_banks
from penstock.compiler.dialects import stream
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.network import network_of


@pytest.mark.parametrize("model", ["zoo:mlp", "zoo:attention"])
def test_where_each_port_has_a_bank_it_is_the_one_that_is_linked(model: str, tmp_path: Path) -> None:
    """On four modules of one bank each, tensors of other sizes: what is largest comes neither first nor last."""
    platform = load_platform("u200")
    program = prepare(import_model(model), None)
    lowered = lower(program, default_design(read_graph(program.module), "u200", 250.0, None))
    top = next(op for op in lowered.stream.ops if isinstance(op, stream.TopOp))
    network = network_of(top, load_library(platform.operators, 250.0))
    banks = [memory.name for memory in platform.fastest_memories for _ in range(memory.ports)]
    [part] = network.groups
    modelled = {use.task.partition("_")[2]: banks[use.bank] for use in memory_ports(part, platform).values()}
    emit(lowered, tmp_path, part=platform.part, clock_mhz=250.0)
    lines = (tmp_path / "link" / "connectivity.cfg").read_text().splitlines()
    linked = {
        comment.split()[-1].removeprefix("output_"): bytes_of_banks(platform)[line.rpartition(":")[2]][0]
        for comment, line in pairwise(lines)
        if line.startswith("sp=")
    }
    assert linked == modelled
    assert len(set(linked.values())) == len(linked) > 1
