"""An array for shapes of a kernel: of a description or found, with a program for each shape, and the files of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.compiler.mesh.instructed.array import CoreArray, array_of
from penstock.compiler.mesh.instructed.cpp import cpp_files
from penstock.compiler.mesh.instructed.design import ArrayDesign, description_of, design_array
from penstock.compiler.mesh.instructed.listing import design_lines, listing_of, record_of
from penstock.compiler.mesh.instructed.loading import packed, tokens_of
from penstock.compiler.mesh.instructed.planned import BLOCKS, ArrayPlan, plan_product
from penstock.compiler.mesh.instructed.rtl import design_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.triton.blocks import KernelValues, programs_of
from penstock.compiler.mesh.triton.read import open_kernel
from penstock.compiler.platforms.platform import Platform
from penstock.compiler.tasks.source import ProgramText


@dataclass(frozen=True)
class ArrayMade:
    """`description` says the array as a mesh, if it was found."""

    array: CoreArray
    plans: Mapping[str, ArrayPlan]
    design: ArrayDesign | None = None
    platform: Platform | None = None
    description: str = ""

    @property
    def lines(self) -> list[str]:
        """What is said of an array that was found."""
        return [] if self.design is None or self.platform is None else design_lines(self.design, self.platform)

    def programs(self) -> dict[str, dict[str, object]]:
        return {key: record_of(key, plan) for key, plan in self.plans.items()}

    def found(self) -> dict[str, Any] | None:
        """For programs of others: how the array was found, and what it takes."""
        if self.design is None or self.platform is None:
            return None
        best, have = self.design.best, self.design.limits.as_dict()
        return {
            "platform": self.platform.name, "cycles": best.cycles, "evidence": "simulated",
            "considered": self.design.considered, "bound": self.design.bound, "bound_reason": self.design.reason,
            "area": {name: [used, have[name]] for name, used in best.area.items() if used},
            "area_evidence": "modelled", "scratchpad_bytes": best.scratchpad, "lines": self.lines,
        }  # fmt: skip

    def write(self, out: Path) -> None:
        """What the hardware is made of, and what is loaded into it."""
        if self.description:
            out.mkdir(parents=True, exist_ok=True)
            (out / "array.toml").write_text(self.description)
        design_of(self.array).write(out / "rtl")
        for name, text in cpp_files(self.array).items():
            (out / "hls" / name).parent.mkdir(parents=True, exist_ok=True)
            (out / "hls" / name).write_text(text)
        folder = out / "programs"
        folder.mkdir(exist_ok=True)
        for number, (name, plan) in enumerate(self.plans.items()):
            program = plan.program
            places = {key: (program.memory(key), at) for key, at in program.regions.items()}
            regions = [f"{key[0]} {max(key[1:])}: {memory} from word {at}" for key, (memory, at) in places.items()]
            (folder / f"{number}.txt").write_text("\n".join([name, *listing_of(program), "", *regions]) + "\n")
            packed(tokens_of(program)).tofile(folder / f"{number}.load")


def kernel_in_shapes(text: ProgramText, name: str, shapes: Mapping[str, KernelValues]) -> dict[str, list[TileProgram]]:
    """The kernel in every shape, with all blocks that it leaves open."""
    found: dict[str, list[TileProgram]] = {}
    for key, values in shapes.items():
        kernel = open_kernel(text, name, values)
        found[key or kernel.kernel.name] = programs_of(kernel, values, BLOCKS)
    return found


def array_on(machine: Machine, shapes: Mapping[str, list[TileProgram]], top: int) -> ArrayMade:
    """The array of a description, with the best program for each shape."""
    array = array_of(machine)
    return ArrayMade(array, {name: plan_product(programs, machine, array, top) for name, programs in shapes.items()})


def array_for(
    platform: Platform, limits: Mapping[str, int], shapes: Mapping[str, list[TileProgram]], top: int
) -> ArrayMade:
    """The array that is the best for all shapes together within what a platform has, or less."""
    design = design_array(shapes, platform, limits, top)
    best = design.best
    text = description_of(best.array, best.scratchpad, f"array-on-{platform.name}", platform.title)
    return ArrayMade(best.array, best.plans, design, platform, text)
