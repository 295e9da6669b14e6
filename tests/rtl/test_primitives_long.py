"""More operands than the fast tests have time for and the instantiated DSP cells."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.rtl.primitive_bench import HERE, build, measure
from tests.rtl.primitive_cases import CASES

pytestmark = pytest.mark.slow
ECP5_CELLS = files("penstock.compiler.backend.rtl.shell").joinpath("simulation", "ecp5_cells.sv")


def test_sums_and_products_on_five_million_operands(tmp_path: Path):
    cases = [case for case in CASES if case.name in ("add", "sub", "mul")]
    for name, outcome in measure(build(cases, tmp_path), vectors=5_000_000, seed=2).items():
        assert outcome.checked > 5_000_000, name
        assert outcome.inexact == 0, (name, outcome)


@pytest.mark.parametrize("family", ["ECP5", "XILINX"])
def test_instantiated_cells_do_what_their_twins_do(tmp_path: Path, family: str):
    text = ECP5_CELLS.read_text() if family == "ECP5" else (HERE / "dsp48e2_model.sv").read_text()
    start = text.index(f"module {'MULT18X18D' if family == 'ECP5' else 'DSP48E2'} ")
    cell = text[start : text.index("endmodule", start)] + "endmodule\n"
    names = ("mul", "exp", "muli_8_8_16", "muli_18_18_36", "muli_32_32_64")
    cases = [case for case in CASES if case.name in names]
    outcomes = measure(build(cases, tmp_path, cell, [f"PENSTOCK_{family}"]), vectors=200_000, seed=4)
    assert set(outcomes) == set(names)
    for name, outcome in outcomes.items():
        assert outcome.error <= (2 if name == "exp" else 0), (name, outcome)
