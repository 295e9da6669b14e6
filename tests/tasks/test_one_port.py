"""Several loads or stores of one tensor in a round: each has the port in a cycle of its own, in hardware too."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels, verify_rtl
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.simulated import simulate_design

PROGRAM = """
from penstock.tasks import *


@program
def spread(X: int8[8], W: int8[24, 4], C: int32[3, 8]):
    xs = Stream[int8]
    rows = Stream[int32][3]

    @task
    def inputs():
        for r in range(8):
            xs.put(X[r])

    @task
    def load():
        for r in range(8):
            {first}
            for p in unroll(3):
                {load}
            {last}

    @task
    def store():
        for r in range(8):
            for p in unroll(3):
                C[p, r] = rows[p].get()
"""
FORMS = {
    "before the front": {"first": "pass", "load": "rows[p].put(sum(W[p * 8 + r, :]))", "last": "xs.get()"},
    "behind it": {"first": "x = xs.get()", "load": "rows[p].put(sum(W[p * 8 + r, :]) * x)", "last": "pass"},
    "some of them": {
        "first": "x = xs.get()",
        "load": "if r % 2 == p % 2:\n                    rows[p].put(sum(W[p * 8 + r, :]))\n"
        "                else:\n                    rows[p].put(int32(x))",
        "last": "pass",
    },
}


def test_a_task_may_load_and_store_numbers_of_several_types(tmp_path: Path) -> None:
    """Each has a port of its own to the memory of a card."""
    (tmp_path / "program.py").write_text("""from penstock.tasks import *

@program
def wider(X: int8[16], Y: int32[16]):
    @task
    def work():
        for n in range(16):
            Y[n] = X[n] + 1
""")
    evaluator = Evaluator.create(import_model(str(tmp_path / "program.py")), "u280")
    network = evaluator.assembler.network(evaluator.evaluate(evaluator.space.default_params()).design)
    assert simulate_design(network, evaluator.platform, evaluator.clock_mhz).latency >= 16


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_has_the_port_in_its_own_cycle(form: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(**FORMS[form]))
    evaluator = Evaluator.create(prepare(import_model(str(tmp_path / "program.py"))), "ecp5-85k")
    evaluation = evaluator.evaluate(evaluator.space.default_params())
    lowered = lower(evaluator.program, finish(evaluator, evaluation).design)
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    core = WholeCore.of(lowered, evaluator.platform)
    assert verify_rtl(lowered, core.answers(inputs), inputs).equal
    simulated = simulate_design(evaluator.assembler.network(lowered.design), evaluator.platform, evaluator.clock_mhz)
    assert core.run(inputs[0]).latency == simulated.latency
