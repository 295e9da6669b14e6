"""A lowered task program as SystemVerilog on an ECP5: equal values, in as many cycles as were simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.compiler.pipeline import Lowered
from penstock.compiler.pipeline.verify import verify_rtl
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.simulated import simulate_design


def assert_equal_in_verilator(lowered: Lowered, inputs: Sequence[Any], board: str = "ecp5-85k") -> None:
    """Verilator comes with the environment of the tests: where it is missing, this fails."""
    evaluator = Evaluator.create(lowered.program, board)
    core = WholeCore.of(lowered, evaluator.platform)
    assert verify_rtl(lowered, core.answers(inputs), inputs).equal
    network = evaluator.assembler.network(lowered.design)
    assert core.run(inputs[0]).latency == simulate_design(network, evaluator.platform, evaluator.clock_mhz).latency
