"""Descriptions: shipped ones are whole in both forms, overlays fit the devices of our tables, broken ones are named."""

from __future__ import annotations

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import load_machine, machine_of, module_of_text, module_of_toml
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.shipped import FOLDER, machine_names
from penstock.compiler.mesh.triton.read import open_kernel, read_kernel
from penstock.compiler.platforms import load_platform, total
from penstock.compiler.tasks.source import ProgramText
from tests.mesh.answers import EXAMPLES

LINK = '[[network]]\nof = "l1"\nto = "l1"\nmap = "(d0, d1) -> (d0, d1 + 1)"\nbandwidth = 1.0\nopen = true\n'
NETWORKS = "".join(f'{LINK}name = "n{i}"\n\n' for i in range(200))
BROKEN = {
    "dangling": ("((d0 + 1) mod 8, d1)", "(d0 + 1, d1)", "which is nowhere"),
    "no bandwidth": ("bandwidth = 28.0", "bandwidth = 0", "bandwidth is 0"),
    "wrong dims": ("((d0 + 1) mod 8, d1)", "((d0 + 1) mod 8)", "takes 2 dims to 1"),
    "no map": ("((d0 + 1) mod 8, d1)", "d0 d1", "is no affine map"),
    "unknown field": ("interleaved = true", "interleaving = true", "has no field"),
    "unknown part": ('to = "dram"', 'to = "drum"', "nowhere described"),
    "unknown numbers": ('kind = "mat"', 'kind = "mat"\ntypes = ["int7"]', "'int7' is no number type"),
    "numbers that are no text": ('kind = "mat"', 'kind = "mat"\ntypes = [8]', "types is 8"),
    "cores beyond memory": ("x = 8\ny = 8", "x = 1000000\ny = 1000000", "1000000000000 cores are too many"),
    "channels beyond memory": ("d = 4", "d = 1000000000", "1000000000 places of dram are too many"),
    "not TOML": ("[dims]", "[dims", "not TOML"),
    "not TOML for all its brackets": ("[dims]", f"q = {'[' * 3000}{']' * 3000}\n[dims]", "not TOML"),
    "a division by 0": ("(d0 + 1) mod 8", "(d0 + 1) mod 0", "divide by numbers above 0"),
    "a division by a place": ("(d0 + 1) mod 8", "8 mod d0", "is no affine map"),
    "a number from nowhere": ("(d0, d1) -> ((d0 + 1) mod 8", "(d0, d1)[s0] -> (s0 mod 8", "divide by numbers above 0"),
    "a map in brackets": ("((d0 + 1) mod 8", f"({'(' * 900}d0{')' * 900}", "is no affine map"),
    "no clock": ("clock_mhz = 1000.0", "clock_mhz = nan", "clock_mhz is nan"),
    "no word of a clock": ("clock_mhz = 1000.0", "", "clock_mhz is missing"),
    "a start without end": ("start = 0.0", "start = inf", "start is inf"),
    "bytes beyond numbers": ("bytes = 1499136", f"bytes = {'9' * 400}", "bytes is too large"),
    "networks without end": ("[[mux]]", NETWORKS + "[[mux]]", "203 networks are too many"),
    "cores with channels each": ("y = 8\nd = 4", "y = 512\nd = 64", "4096 cores with 64 channels"),
}


@pytest.mark.parametrize("name", machine_names())
def test_shipped_machines_are_the_same_as_toml_and_as_mlir(name: str) -> None:
    module = module_of_toml((FOLDER / f"{name}.toml").read_text(), name)
    assert machine_of(module_of_text(str(module), name)) == load_machine(name)


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named(old: str, new: str, said: str) -> None:
    text = (FOLDER / "mesh-8x8.toml").read_text()
    assert old in text
    with pytest.raises(PenstockError, match=said):
        machine_of(module_of_toml(text.replace(old, new), "mine"))


def test_a_memory_that_no_core_reaches_is_named() -> None:
    text = (FOLDER / "mesh-8x8.toml").read_text()
    at = text.index('[[network]]\nname = "to_dram"')
    with pytest.raises(PenstockError, match=r"no path leads from dram\[0\] to l1"):
        machine_of(module_of_toml(text[:at], "mine"))


@pytest.mark.parametrize(
    ("mesh", "platform", "kind", "bytes_each"),
    [("ecp5-85-4x4", "ecp5-85k", "bram18", 2304), ("u55c-8x8", "u55c", "uram", 36864)],
)
def test_overlays_fit_the_devices_of_our_tables(mesh: str, platform: str, kind: str, bytes_each: int) -> None:
    machine, device = load_machine(mesh), load_platform(platform)
    mat = machine.unit("mat")
    assert mat is not None
    there = total(die.resources for die in device.dies)
    kept = total(die.reserved for die in device.dies)
    cores, fill = len(machine.cores), dict(device.fill)
    multipliers = (there.dsp - kept.dsp) * fill["dsp"] / cores
    size = mat.shape[0] * mat.shape[1]
    assert size <= multipliers < 4 * size  # a larger square does not fit
    memories = (getattr(there, kind) - getattr(kept, kind)) * fill[kind] / cores
    assert machine.capacity <= memories * bytes_each < 1.5 * machine.capacity
    assert machine.clock_mhz == device.clock_mhz
    for memory in device.memories:
        per_channel = memory.port_gb_s * 1e3 / machine.clock_mhz * 0.85
        assert machine.outside_bandwidth == pytest.approx(per_channel * memory.ports)


def test_a_unit_multiplies_the_numbers_it_is_for() -> None:
    machine = load_machine("ryzen-ai-npu")
    cycles = {kind: _cycles_of_a_product(machine, kind) for kind in ("int8", "bfloat16", "int16")}
    assert cycles == {"int8": 128, "bfloat16": 256, "int16": 512}  # 32 x 32 x 32 products, 256, 128 or 64 a cycle
    assert _cycles_of_a_product(machine, "float32") == 32**3 / 16  # the vector unit, since no other knows them


def _cycles_of_a_product(machine: Machine, kind: str) -> float:
    path = EXAMPLES / "linear_int8.py"
    given: dict[str, int | float | str] = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "x": kind, "w": kind}
    if kind not in ("int8", "int16"):
        given["y"] = "float32"
    program = read_kernel(open_kernel(ProgramText(path.name, path.read_text())), given)
    return next(phase.cycles for phase in facts_of(program, machine).phases if phase.cycles)


def test_what_no_unit_computes_is_refused() -> None:
    text = (FOLDER / "mesh-8x8.toml").read_text()
    machine = machine_of(module_of_toml(text.replace('kind = "vec"', 'kind = "vec"\ntypes = ["int8"]'), "mine"))
    program = read_kernel(
        open_kernel(ProgramText("mlp.py", (EXAMPLES / "mlp.py").read_text())), {"BLOCK_M": 32, "BLOCK_H": 32}
    )
    with pytest.raises(PenstockError, match=r"cannot do .* on float32"):
        facts_of(program, machine)
