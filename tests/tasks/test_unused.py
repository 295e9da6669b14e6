"""What a program gets, computes or keeps and does not use: it costs no hardware, and its C++ has no complaint of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.compiler.dialects import nest
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.cli.main import run
from tests.tasks.programs import answered, drawn, read

PROGRAM = """
@program
def p(A: int8[16], B: float32[4]):
    s, left = Stream[int8], Stream[int8]

    @task
    def load():
        never: int32 = 0
        for i in range(16):
            x = A[i]
            never += x
            s.put(x)
            left.put(x)

    @task
    def drop():
        for i in range(16):
            x = left.get()

    @task
    def square():
        for i in range(4):
            z: float32 = 1.0
            for _ in range(4):
                y = s.get()
                unused = z * 2.0
                z = z * z * 0.5 + float32(y)
            B[i] = z
"""


def test_it_is_left_out_and_all_levels_are_equal(tmp_path: Path) -> None:
    network = read(PROGRAM)
    inputs = drawn(network)
    wanted = np.ones(4, np.float32)
    for k in range(4):
        wanted = wanted * wanted * np.float32(0.5) + inputs["A"].reshape(4, 4)[:, k].astype(np.float32)
    np.testing.assert_allclose(answered(network, inputs), wanted, rtol=1e-5)

    path = tmp_path / "p.py"
    path.write_text("from penstock.tasks import *\n\n" + PROGRAM)
    program = prepare(import_model(str(path)))
    evaluator = Evaluator.create(program, "ecp5-85k")
    lowered = lower(program, evaluator.space.design(evaluator.space.default_params()))
    bodies = {task.sym_name.data: [type(op) for op in one.body.block.ops] for task, one in lowered.nests}
    assert bodies["drop"] == [nest.ReadOp]
    assert bodies["load"] == [nest.LoadOp, nest.WriteOp, nest.WriteOp]
    given = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, given))
    out = tmp_path / "out"
    emit(lowered, out, part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(out, ToolRunner()), given).equal


def test_its_ir_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text("from penstock.tasks import *\n\n" + PROGRAM)
    assert run(["compile", str(path), "--platform", "ecp5-85k", "--print-ir"]) == 0
    assert run(["compile", str(path), "--platform", "ecp5-85k", "--print-ir", "--stop-after", "kernels"]) == 2
