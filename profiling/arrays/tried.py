"""Programs of an array tried on random tensors, all on the one build of its hardware, and held to NumPy."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.instructed.array import CoreArray
from penstock.compiler.mesh.instructed.planned import ArrayPlan
from penstock.compiler.mesh.instructed.tile_elements import answer_of
from penstock.profiling.arrays.run import ArrayInCpp, ArrayInVerilator
from penstock.profiling.tool_runner import ToolRunner

CPP, RTL = "cpp", "rtl"
WAYS = (CPP, RTL)


def try_programs(
    array: CoreArray, plans: Mapping[str, ArrayPlan], ways: Sequence[str], out: Path | None = None
) -> dict[str, dict[str, object]]:
    """What is known of every program afterwards. Other answers than NumPy's, or other cycles, are an error."""
    if not ways:
        return {}
    tools, found = ToolRunner(), dict[str, dict[str, object]]()
    with tempfile.TemporaryDirectory() as scratch:
        cpp = ArrayInCpp.of(array, Path(scratch) if out is None else out / "hls", tools) if CPP in ways else None
        rtl = ArrayInVerilator.of(array, tools) if RTL in ways else None
        for name, plan in plans.items():
            draw = np.random.default_rng(0)
            kernel = plan.program.product.program
            tensors = {
                n: draw.integers(-128, 128, t.elements).astype(np.int8)
                for n, t in kernel.tensors.items() if n not in kernel.written
            }  # fmt: skip
            wanted = answer_of(plan.program.product, tensors)
            said: dict[str, object] = {}
            if cpp is not None:
                said["cpp_equal"] = bool(np.array_equal(cpp.run(plan.program, tensors), wanted))
            if rtl is not None:
                measured = rtl.run(plan.program, tensors)
                said |= {"rtl_equal": bool(np.array_equal(measured.stored, wanted)), "rtl_cycles": measured.cycles}
            if not all(said[key] for key in said if key.endswith("_equal")):
                raise PenstockError(
                    code="array-differs", what=f"{name}: what the array answers is not what NumPy does",
                    where=kernel.name, hint="this is a defect of its program; please report it",
                )  # fmt: skip
            if rtl is not None and said["rtl_cycles"] != plan.run.cycles:
                raise PenstockError(
                    code="array-differs", what=f"{name}: {said['rtl_cycles']} cycles in Verilator",
                    where=kernel.name, limit=f"{plan.run.cycles} simulated",
                    hint="this is a defect of the simulator; please report it",
                )  # fmt: skip
            found[name] = said
    return found
