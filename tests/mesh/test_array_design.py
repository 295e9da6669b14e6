"""Arrays that are found for shapes: within what is given, no slower than the shipped one, near the bound."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.jit import Compiled
from penstock.compiler.mesh.description import load_machine, machine_of, module_of_toml
from penstock.compiler.mesh.instructed.area import ArrayTable, area_of
from penstock.compiler.mesh.instructed.array import array_of
from penstock.compiler.mesh.instructed.design import ArrayDesign, description_of, design_array
from penstock.compiler.mesh.instructed.estimate import ProductShape
from penstock.compiler.mesh.instructed.planned import plan_product
from penstock.compiler.mesh.instructed.product import product_of
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.triton.blocks import programs_of
from penstock.compiler.mesh.triton.read import open_kernel
from penstock.compiler.platforms.loader import load_platform
from penstock.compiler.tasks.source import ProgramText
from penstock.services.cli.main import run
from tests.mesh.answers import EXAMPLES

LINEAR = EXAMPLES / "linear_int8.py"
SHAPES = ({"ROWS": 32, "INNER": 48, "WIDE": 40}, {"ROWS": 64, "INNER": 32, "WIDE": 16})
SHIPPED = "ecp5-85-4x4"


@pytest.fixture(scope="module")
def shapes() -> dict[str, list[TileProgram]]:
    text = ProgramText("linear_int8.py", LINEAR.read_text())
    return {str(one): programs_of(open_kernel(text, "", one), one, (4, 8, 16)) for one in SHAPES}


@pytest.fixture(scope="module")
def design(shapes: dict[str, list[TileProgram]]) -> ArrayDesign:
    return design_array(shapes, load_platform("ecp5-85k"), {"dsp": 64}, 2)


def test_the_area_is_that_which_yosys_counted() -> None:
    """29,324 LUT4, 6,032 CCU2C, 1,096 TRELLIS_DPR16X4, 22,143 TRELLIS_FF, 64 MULT18X18D, 160 DP16KD."""
    area = area_of(array_of(load_machine(SHIPPED)), load_platform("ecp5-85k"))
    assert area.lut == pytest.approx(29_324 + 2 * 6_032 + 6 * 1_096, rel=0.03)
    assert area.ff == pytest.approx(22_143, rel=0.03)
    assert (area.dsp, area.bram18) == (64, 160)


def test_what_is_found_is_within_its_limits_and_no_slower_than_the_shipped_array(
    design: ArrayDesign, shapes: dict[str, list[TileProgram]]
) -> None:
    machine = load_machine(SHIPPED)
    shipped = sum(plan_product(rows, machine, array_of(machine), 4).run.cycles for rows in shapes.values())
    assert design.bound <= design.best.cycles <= shipped
    assert design.best.cycles < 1.5 * design.bound
    for one in design.found:
        assert all(used <= have for (_, used), (_, have) in zip(one.area.items(), design.limits.items(), strict=True))
    assert design.limits.dsp == 64


def test_its_description_gives_the_same_array(design: ArrayDesign) -> None:
    for one in design.found:
        text = description_of(one.array, one.scratchpad, "found", "a chip")
        assert array_of(machine_of(module_of_toml(text, "found"))) == one.array


def test_the_estimate_is_near_what_is_simulated(design: ArrayDesign, shapes: dict[str, list[TileProgram]]) -> None:
    for one in design.found:
        table = ArrayTable.of([one.array])
        for name, rows in shapes.items():
            estimated = min(float(ProductShape.of(product_of(row)).cycles(table)[0]) for row in rows)
            assert np.isfinite(estimated)
            assert one.plans[name].run.cycles == pytest.approx(estimated, rel=0.25)


@pytest.mark.slow
def test_compiled_and_plain_engines_are_one(
    shapes: dict[str, list[TileProgram]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the planner and of the array: what is compiled takes seconds, and fast tests may do without it."""
    machine = load_machine(SHIPPED)
    for rows in shapes.values():
        found = []
        for left in (1 << 60, 0):
            monkeypatch.setattr(Compiled, "left", lambda _, left=left: left)
            plan = plan_product(rows, machine, array_of(machine), 2)
            found.append((plan.run, plan.modelled, plan.tried))
        assert found[0] == found[1]


def test_fewer_multipliers_take_longer(design: ArrayDesign, shapes: dict[str, list[TileProgram]]) -> None:
    name = next(iter(shapes))
    fewer = design_array({name: shapes[name]}, load_platform("ecp5-85k"), {"dsp": 8}, 1)
    assert fewer.best.array.multipliers <= 8
    assert fewer.best.cycles > 3 * design.best.plans[name].run.cycles


def test_the_command_finds_an_array_and_writes_its_description(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "array",
        str(LINEAR),
        "--shape=ROWS=16,INNER=16,WIDE=16",
        "--top=2",
        *(f"--set=BLOCK_{d}=4" for d in "MNK"),
    ]
    assert run([*words, "--design=ecp5-85k", "--limit=dsp=16", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "16 of 16 dsp" in said
    assert "dsp is scarcest" in said
    assert run([*words, f"--on={tmp_path / 'array.toml'}", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert f"{again['programs'][0]['cycles']:,} cycles [simulated]" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give --on MESH, or --design PLATFORM"),
        (["--design=nowhere"], "nowhere"),
        (["--design=ecp5-85k", "--limit=dsp"], "no RESOURCE=NUMBER"),
        (["--design=ecp5-85k", "--limit=lut=900"], "no array fits"),
        (["--on=ecp5-85-4x4", "--limit=dsp=4"], "limits are for --design"),
    ],
)
def test_mistakes_are_one_line(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["array", str(LINEAR), *options]) != 0
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1
