"""Arrays that run programs: whatever a plan is, its program answers as NumPy does, in as many cycles as simulated."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import machine_of, module_of_toml
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.instructed.array import array_of
from penstock.compiler.mesh.instructed.cycles import simulate_program
from penstock.compiler.mesh.instructed.loading import tokens_of
from penstock.compiler.mesh.instructed.planned import plan_product
from penstock.compiler.mesh.instructed.product import product_of
from penstock.compiler.mesh.instructed.programs import ArrayProgram
from penstock.compiler.mesh.instructed.rtl import design_of
from penstock.compiler.mesh.instructed.tile_elements import answer_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import Reuse, all_plans
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.shipped import FOLDER
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.blocks import programs_of
from penstock.compiler.mesh.triton.read import open_kernel
from penstock.compiler.tasks.source import ProgramText
from penstock.profiling.arrays.run import ArrayInCpp, ArrayInVerilator
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.cli.main import run
from tests.mesh.answers import EXAMPLES

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
PLAIN = """def gemm(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0)
        y = tl.load(b + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N),
                    other=0)
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))
"""
LINEAR = """def linear(x, w, y, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(x + rows[:, None] * K + inner[None, :])
        right = tl.load(w + columns[:, None] * K + inner[None, :])
        total = tl.dot(left, tl.trans(right), total)
    tl.store(y + rows[:, None] * N + columns[None, :], total)
"""
BATCHED = """def batched(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr):
    at = tl.program_id(0)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(2) * BN + tl.arange(0, BN)
    inner = tl.arange(0, K)
    x = tl.load(a + at * M * K + rows[:, None] * K + inner[None, :])
    y = tl.load(b + at * K * N + inner[:, None] * N + columns[None, :])
    tl.store(c + at * M * N + rows[:, None] * N + columns[None, :], tl.dot(x, y))
"""
OUT = {LINEAR: "y"}
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "whole": (PLAIN, {"M": 16, "N": 16, "K": 8, "BM": 4, "BN": 4, "BK": 4}),
    "edges": (PLAIN, {"M": 13, "N": 21, "K": 11, "BM": 4, "BN": 2, "BK": 4}),
    "odd tiles": (PLAIN, {"M": 15, "N": 20, "K": 9, "BM": 3, "BN": 5, "BK": 3}),
    "one column": (PLAIN, {"M": 24, "N": 4, "K": 8, "BM": 4, "BN": 4, "BK": 8}),
    "transposed": (LINEAR, {"M": 16, "N": 24, "K": 8, "BM": 4, "BN": 4, "BK": 4}),
    "batched": (BATCHED, {"B": 4, "M": 8, "N": 12, "K": 6, "BM": 2, "BN": 4}),
}
GRIDS = {PLAIN: "-(-M // BM), -(-N // BN)", LINEAR: "M // BM, N // BN", BATCHED: "B, M // BM, N // BN"}


@dataclass(frozen=True)
class Product:
    text: str
    given: dict[str, int]

    def program(self) -> TileProgram:
        grid = GRIDS.get(self.text, GRIDS[PLAIN])
        constants = "".join(f"{name} = {value}\n" for name, value in self.given.items())
        text = constants + f"grid = ({grid},)\n" + HEAD + self.text
        types = dict.fromkeys("xw" if self.text == LINEAR else "ab", "int8") | {OUT.get(self.text, "c"): "int32"}
        return programs_of(open_kernel(ProgramText("kernel.py", text), "", types), types)[0]

    def answer(self, tensors: dict[str, Array]) -> Array:
        """In NumPy, of the whole tensors."""
        g = self.given
        wide = {name: value.astype(np.int64) for name, value in tensors.items()}
        if self.text == LINEAR:
            return (wide["x"].reshape(g["M"], g["K"]) @ wide["w"].reshape(g["N"], g["K"]).T).ravel()
        batch = g.get("B", 1)
        left, right = wide["a"].reshape(batch, g["M"], g["K"]), wide["b"].reshape(batch, g["K"], g["N"])
        return (left @ right).ravel()


def small(rows: int, columns: int, channels: int, mat: str = "[2, 2, 1]") -> Machine:
    text = (FOLDER / "ecp5-85-4x4.toml").read_text()
    text = text.replace("x = 4", f"x = {rows}").replace("y = 4", f"y = {columns}").replace("d = 4", f"d = {channels}")
    # every channel leads to a core, whatever the shape is
    text = text.replace('map = "(d0) -> (d0, 0)"', f'map = "(d0) -> (d0 mod {rows}, 0)"')
    return machine_of(module_of_toml(text.replace("[2, 2, 1]", mat), "small"))


MACHINES = {"2x2": small(2, 2, 2), "2x3": small(2, 3, 1, "[2, 2, 2]"), "1x4": small(1, 4, 4, "[4, 1, 1]")}


def drawn(program: TileProgram, seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    return {
        name: draw.integers(-128, 128, tensor.elements).astype(np.int8)
        for name, tensor in program.tensors.items() if name not in program.written
    }  # fmt: skip


def sampled(case: Product, machine: Machine, most: int) -> list[ArrayProgram]:
    """Plans of every kind: what is shared, kept and fetched again differs."""
    program, array = case.program(), array_of(machine)
    plans = list(all_plans(facts_of(program, machine), Traffic(machine), Reuse()))
    random.Random(3).shuffle(plans)
    found = dict[bytes, ArrayProgram]()
    for plan in plans[: 20 * most]:
        with suppress(PenstockError):  # what a core does not hold
            one = ArrayProgram(array, plan, product_of(program))
            found[tokens_of(one).tobytes()] = one
    return list(found.values())[:most]


@pytest.mark.parametrize("machine", ["2x3", *(pytest.param(m, marks=pytest.mark.slow) for m in ("2x2", "1x4"))])
def test_programs_of_all_plans_answer_on_one_build_as_numpy_does(machine: str, tmp_path: Path) -> None:
    built = ArrayInCpp.of(array_of(MACHINES[machine]), tmp_path, ToolRunner())
    tried = 0
    for seed, (text, given) in enumerate(CASES.values()):
        case = Product(text, given)
        for program in sampled(case, MACHINES[machine], 3):
            tensors = drawn(case.program(), seed)
            wanted = case.answer(tensors)
            np.testing.assert_array_equal(built.run(program, tensors), wanted)
            np.testing.assert_array_equal(answer_of(program.product, tensors), wanted)
            tried += 1
    assert tried >= 15


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["2x3", "1x4"])
def test_programs_take_in_verilator_the_cycles_that_are_simulated(machine: str) -> None:
    built = ArrayInVerilator.of(array_of(MACHINES[machine]), ToolRunner())
    for seed, (text, given) in enumerate(CASES.values()):
        case = Product(text, given)
        for program in sampled(case, MACHINES[machine], 5):
            tensors = drawn(case.program(), seed)
            measured = built.run(program, tensors)
            np.testing.assert_array_equal(measured.stored, case.answer(tensors))
            assert measured.cycles == simulate_program(program).cycles


REFUSED = {
    "a kernel that does more": (PLAIN.replace("total += tl.dot(x, y)", "total += tl.maximum(tl.dot(x, y), 0)"),
                                r"kernel.py:\d+: gemm is not a product.*it computes max"),
    "sums that begin elsewhere": (PLAIN.replace("tl.zeros((BM, BN), dtype=tl.int32)",
                                                "tl.full((BM, BN), 1, dtype=tl.int32)"), r"does not begin at 0"),
    "one operand twice": (PLAIN.replace("tl.dot(x, y)", "tl.dot(x, tl.trans(x))"), r"1 loads|not of two tiles"),
    "a sum that is added to itself": (PLAIN.replace("total += tl.dot(x, y)", "total = total + total + tl.dot(x, y)"),
                                      r"not the sum of its rounds"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_product_is_said_with_its_line(name: str) -> None:
    text, said = REFUSED[name]
    case = Product(PLAIN, CASES["whole"][1])
    with pytest.raises(PenstockError, match=said):
        product_of(replace(case, text=text).program())


DESCRIPTIONS = {
    "wide multipliers": ("[2, 2, 1]", "[32, 32, 32]", r"a step takes 1024 bytes"),
    "no multipliers": ('kind = "mat"', 'kind = "vec"', r"no unit of kind mat"),
    "a small scratchpad": ("bytes = 18432", "bytes = 40", r"too small"),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_what_no_array_is_made_of_is_said(name: str) -> None:
    old, new, said = DESCRIPTIONS[name]
    text = (FOLDER / "ecp5-85-4x4.toml").read_text()
    text = text.replace("shape = [2, 2, 1]", "shape = [4]", 1) if new == 'kind = "vec"' else text
    with pytest.raises(PenstockError, match=said):
        array_of(machine_of(module_of_toml(text.replace(old, new), "m")))


def test_a_core_that_holds_no_tile_says_so() -> None:
    machine = MACHINES["2x2"]
    case = Product(PLAIN, {"M": 256, "N": 256, "K": 8, "BM": 128, "BN": 128, "BK": 8})
    with pytest.raises(PenstockError, match=r"a tile of sums has 65,536 bytes.*1,024"):
        plan_product([case.program()], machine, array_of(machine), 4)


def test_what_is_too_long_to_simulate_is_said_at_once() -> None:
    case = Product(PLAIN, {"M": 1024, "N": 1024, "K": 8192, "BM": 16, "BN": 16, "BK": 16})
    machine = MACHINES["2x2"]
    with pytest.raises(PenstockError, match=r"more than 50,000,000 cycles is not simulated"):
        plan_product([case.program()], machine, array_of(machine), 1)


def test_the_hardware_knows_of_no_program() -> None:
    array = array_of(MACHINES["2x2"])
    programs = [sampled(Product(*case), MACHINES["2x2"], 1)[0] for case in (CASES["whole"], CASES["batched"])]
    files = [design_of(array, program, 7).files for program in programs]
    assert files[0] == files[1] == design_of(array).files
    assert tokens_of(programs[0]).tobytes() != tokens_of(programs[1]).tobytes()


def test_the_command_runs_three_shapes_on_one_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = tmp_path / "two.toml"
    text = (FOLDER / "ecp5-85-4x4.toml").read_text()
    machine.write_text(text.replace("x = 4", "x = 2").replace("y = 4", "y = 2").replace("d = 4", "d = 2"))
    shapes = ("M=16,N=16,K=8", "M=12,N=20,K=6", "M=8,N=8,K=4")
    blocks = [f"--set=BLOCK_{dim}={size}" for dim, size in (("M", 4), ("N", 4), ("K", 2))]
    code = run(["array", str(EXAMPLES / "gemm_int8.py"), f"--on={machine}", *blocks, *(f"--shape={s}" for s in shapes),
                "--run=cpp", "--json", "-o", str(tmp_path / "out")])  # fmt: skip
    programs = json.loads(capsys.readouterr().out)["programs"]
    assert code == 0
    assert [(one["name"], one["cpp_equal"]) for one in programs] == [(shape, True) for shape in shapes]
    assert all(one["cycles"] > one["bound_cycles"] > 0 for one in programs)
    assert (tmp_path / "out/rtl/penstock_array.sv").is_file()
    assert len(list((tmp_path / "out/programs").glob("*.load"))) == 3


@pytest.mark.slow
def test_eight_by_eight_cores_of_the_u55c_run_three_shapes_in_cpp_and_verilator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of docs/meshes.md, with the cycles that it says; other answers than NumPy's are an error of it."""
    shapes = {
        "M=128,N=128,K=128,BLOCK_M=16,BLOCK_N=16,BLOCK_K=64": 1052,
        "M=512,N=256,K=128,BLOCK_M=32,BLOCK_N=32,BLOCK_K=64": 5628,
        "M=192,N=320,K=96,BLOCK_M=24,BLOCK_N=40,BLOCK_K=32": 2700,
    }
    code = run(["array", str(EXAMPLES / "gemm_int8.py"), "--on=u55c-8x8", *(f"--shape={s}" for s in shapes),
                "--run=cpp", "--run=rtl", "--json", "-o", str(tmp_path)])  # fmt: skip
    assert code == 0
    programs = json.loads(capsys.readouterr().out)["programs"]
    assert {one["name"]: one["rtl_cycles"] for one in programs} == shapes
    assert all(one["cpp_equal"] and one["rtl_equal"] and one["cycles"] == one["rtl_cycles"] for one in programs)
    assert (tmp_path / "hls/penstock_array.cpp").is_file()
    assert (tmp_path / "rtl/penstock_array.sv").is_file()
    assert len({file.read_bytes() for file in (tmp_path / "programs").glob("*.load")}) == 3


@pytest.mark.parametrize("wrong", [["--run=fpga"], ["--shape=M"], ["--on=wormhole"]])
def test_mistakes_are_one_line(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["array", str(EXAMPLES / "gemm_int8.py"), "--on=ecp5-85-4x4", *wrong]) in (1, 2)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
