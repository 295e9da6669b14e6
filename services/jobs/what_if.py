"""What a change of a design would do: both designs modelled and simulated by the same rules, side by side."""

from __future__ import annotations

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import Simulation
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs import FRAMES, steady_interval
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import outlook_of, simulate_design
from penstock.services.run_summary import DesignLook, LongWait

MOST_EVENTS = 5_000_000
"""Of a simulation; so many take two seconds at worst. Beyond that only one input is simulated, or none."""
_MOST_WAITS = 3


def look_at(evaluator: Evaluator, design: Design) -> DesignLook:
    """What the model and the simulator say of a design. One that cannot be is refused in words, not raised."""
    try:
        found = evaluator.evaluate_design(design)
    except PenstockError as error:
        return DesignLook(refused=error.one_line())
    network = evaluator.assembler.network(found.design)
    frames = _frames(network, evaluator)
    run = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=frames) if frames else None
    return _look(found, run, evaluator)


def _frames(network: TaskNetwork, evaluator: Evaluator) -> int:
    """How many inputs in a row there is time for."""
    events = outlook_of(network, evaluator.platform, evaluator.clock_mhz).events
    return next((count for count in (FRAMES, 1) if events * count <= MOST_EVENTS), 0)


def _look(found: Evaluation, run: Simulation | None, evaluator: Evaluator) -> DesignLook:
    figures = found.figures
    simulated = run is not None and run.deadlock is None
    latency = run.latency if run is not None and simulated else figures.latency
    interval = steady_interval(run) if run is not None and simulated else figures.interval
    limits = evaluator.may_use.as_dict()
    return DesignLook(
        refused="",
        evidence="simulated" if simulated else "modelled",
        latency_cycles=latency,
        latency_us=latency / found.design.clock_mhz,
        interval_cycles=interval,
        used=figures.resources.as_dict(),
        limits=limits,
        used_evidence=found.evidence,
        fits=found.feasible,
        explanation=found.explanation,
        waits=_waits(run) if run is not None else [],
        digest=found.design.digest(),
    )


def _waits(run: Simulation) -> list[LongWait]:
    """The longest of all tasks, over the inputs that were simulated."""
    rows = [
        LongWait(task=task, channel=stall.channel, cause=stall.cause, cycles=stall.cycles)
        for task, times in run.processes.items()
        for stall in times.stalls
    ]
    return sorted(rows, key=lambda row: (-row.cycles, row.task))[:_MOST_WAITS]
