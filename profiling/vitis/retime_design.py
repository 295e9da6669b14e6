"""A scheduled design with the II and depth that csynth reached, for all that works on schedules: FIFO sizing above all.

Depths sized for planned pipelines may be too small, or larger than needed, for those that were built. With the report
of a first synthesis they are sized again, and the design is synthesised again with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.compiler.schedule import Bound, NestSchedule, PortSchedule
from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.vitis.records import ReportedLoop, SynthesisReport
from penstock.profiling.vitis.retime import PhaseTiming, fitting_loops, reported_figures


@dataclass(frozen=True)
class RetimedDesign:
    """`kept` are the tasks whose loops the report does not have: their figures are still the planned ones."""

    network: TaskNetwork
    nests: tuple[PhaseTiming, ...]
    kept: tuple[str, ...]


def retime_design(network: TaskNetwork, report: SynthesisReport) -> RetimedDesign:
    """Put the report's figures into the schedules of a design; area stays the model's."""
    tasks: list[Task] = []
    nests: list[PhaseTiming] = []
    kept: list[str] = []
    for task in network.tasks:
        loops = fitting_loops(report, task.name, [nest.run_iterations for nest in task.nests])
        if loops is None:
            kept.append(task.name)
            loops = [None] * len(task.nests)
        changed = tuple(_set(nest, loop) for nest, loop in zip(task.nests, loops, strict=True))
        tasks.append(replace(task, nests=changed))
        nests += [
            PhaseTiming(
                task.name, index, loop.name if loop is not None else None, nest.ii, nest.depth, nest.initial_delay,
                "csynth" if loop is not None else "modelled",
            )
            for index, (nest, loop) in enumerate(zip(changed, loops, strict=True))
        ]  # fmt: skip
    return RetimedDesign(replace(network, tasks=tuple(tasks)), tuple(nests), tuple(kept))


def _set(nest: NestSchedule, loop: ReportedLoop | None) -> NestSchedule:
    figures = reported_figures(loop) if loop is not None else None
    if loop is None or figures is None:
        return nest
    ii, depth = figures
    bound = Bound("pipeline", ii, f"csynth reached II = {ii} for {loop.name}")
    return replace(
        nest, ii=ii, depth=depth, bounds=(bound,), ports=tuple(_moved(port, depth) for port in nest.ports),
        flushes=loop.flushes(nest.flushes),
    )  # fmt: skip


def _moved(port: PortSchedule, depth: int) -> PortSchedule:
    """Vitis reads in the stage after loop control and writes in the last one (compiler/simulator, rule 1)."""
    return replace(port, stage=depth - 1 if port.direction == "write" else min(1, depth - 1))
