"""Compiled code is made once for a machine, which is no part of what a benchmark times."""

from __future__ import annotations

import sys

from penstock.compiler.simulator.simulate import ENGINE
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.rungs import simulated
from penstock.dse.rungs.rung import Bench
from penstock.profiling.in_order import FOLLOW
from penstock.services.jobs.model import load_program

_COMPILED = (ENGINE, FOLLOW)
_MODEL, _PLATFORM = "zoo:resnet8?side=16", "vu9p-slr"


def compile_all() -> None:
    """The simulator and the model of frames that follow each other, where this machine does not have them yet."""
    missing = [one for one in _COMPILED if not one.is_on_disk()]
    if not missing:
        return
    print("compiling the simulator, once for this machine", file=sys.stderr, flush=True)
    for one in missing:
        one.count(one.before_compiling)  # so that plain Python is done with
    program = load_program(_MODEL, "w8a8")
    evaluator = Evaluator.create(program, _PLATFORM, quantize="w8a8", goal=Goal.of(("throughput",), ()))
    simulated(evaluator, evaluator.evaluate(evaluator.space.fitted_setting()), Bench())
