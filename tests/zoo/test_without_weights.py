"""A model whose weights were not loaded compiles down to C++; what would need their numbers is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, lower, prepare

PART = "xcu55c-fsvh2892-2L-e"


def test_streamed_parameters_need_no_numbers(tmp_path: Path) -> None:
    program = prepare(import_model("zoo:mlp?inputs=6&hidden=4&outputs=2", weights=False))
    assert not program.has_weights
    graph = read_graph(program.module)
    emit(lower(program, default_design(graph, "u55c", 300.0, weights="stream")), tmp_path, part=PART, clock_mhz=300.0)
    assert not (tmp_path / "parameters").exists()
    described = json.loads((tmp_path / "interface.json").read_text())["parameters"]
    assert {p["name"]: p["shape"] for p in described}["head.weight"] == [4, 2]
    with pytest.raises(PenstockError, match="lies on the chip and has no numbers") as caught:
        emit(lower(program, default_design(graph, "u55c", 300.0)), tmp_path, part=PART, clock_mhz=300.0)
    assert caught.value.code == "no-weights"


def test_parameters_lie_on_the_chip_where_they_fit() -> None:
    small = prepare(import_model("zoo:mlp?inputs=6&hidden=4&outputs=2"))
    large = prepare(import_model("zoo:mlp?inputs=4096&hidden=4096", weights=False))
    for program, placement in ((small, "rom"), (large, "stream")):
        design = default_design(read_graph(program.module), "u55c", 300.0)
        assert {kernel.weights for kernel in design.kernels.values()} == {placement}
