"""Equal tasks of a grid share one module of SystemVerilog, with each one's own channels at its pins."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from tests.rtl.rtl_batch import LIBRARY

SYSTOLIC = Path(__file__).resolve().parents[2] / "examples" / "tasks" / "systolic.py"


def test_sixteen_elements_are_four_modules() -> None:
    """Those inside the array, at its right, at its lower edge, and at the corner differ; what drains differs by row."""
    lowered = lower(prepare(import_model(str(SYSTOLIC))), Design("ecp5-85k", 100.0, {}))
    design = emit_rtl(lowered.stream, LIBRARY, {})
    core = design.files["penstock_core.sv"]
    for task, modules in (("element", 4), ("drain", 4)):
        used = re.findall(rf"^\s*(task_{task}_\d_\d) {task}_\d_\d \(", core, re.MULTILINE)
        assert len(used) == 16
        assert len(set(used)) == modules
        assert {name for name in design.files if name.startswith(f"task_{task}")} == {f"{m}.sv" for m in set(used)}
    inner = re.search(r"task_element_0_0 element_2_1 \((.*?)\);", core, re.DOTALL)
    assert inner is not None
    wires = dict(re.findall(r"\.(\w+)\((\w+)\)", inner[1]))
    assert (wires["a_0_0_tdata"], wires["a_0_1_tdata"], wires["b_1_0_tdata"]) == (
        "a_2_1_out_tdata", "a_2_2_in_tdata", "b_3_1_in_tdata",
    )  # fmt: skip
