"""A decoder block as `penstock compile --quantize w8a8` chooses and finishes it, simulated, and its figures.

`bandwidth_pct` is what passes through external memory, of what all banks together sustain, between the first word that
a load brings and the last one; `of_run_pct` the same over the whole run. `compute_pct` is how much of the time of the
design's DSPs the products of the model take. `memory_pct` compares what FIFOs and converters hold of the tensors
between the kernels with these tensors (`dse/evaluation/waiting.py`). Not in it are `load_fifo_bits`, weights, caches
and inputs that come while others compute, and `store_fifo_bits`, results on their way out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.registry import Value
from penstock.compiler.analysis.graph import Graph, read_graph
from penstock.compiler.platforms.platform import ExternalMemory
from penstock.compiler.program import Program
from penstock.compiler.simulator import Simulation
from penstock.dse.bounds.bound import LowerBound
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.evaluation.waiting import between_kernels, held_as_sized
from penstock.dse.rungs import Bench
from penstock.dse.search.explore import explore
from penstock.dse.search.second import second_process
from penstock.dse.support.budgets import SIMULATIONS
from penstock.profiling.bandwidth import external_bits, memory_ports
from penstock.profiling.handed_over import loaded_channels, stored_channels
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design
from penstock.services.jobs.search import choose

PLATFORM, TRIALS = "u55c", 8
_BUFFERS = 5


@dataclass(frozen=True)
class Searched:
    evaluator: Evaluator
    best: Evaluation
    bound: LowerBound
    network: TaskNetwork
    simulated: Simulation
    modelled: int
    """Designs that the search looked at."""
    seconds: float

    @staticmethod
    def of(
        program: Program,
        quantize: str = "w8a8",
        trials: int = TRIALS,
        limits: Sequence[str] = (),
        objectives: Sequence[str] = (),
        fifo_simulations: int = SIMULATIONS,
        fifo_slack: float = 0.0,
    ) -> Searched:
        """The best of a search of a prepared program under limits, simulated; for the usual objectives, or others."""
        evaluator = Evaluator.create(program, PLATFORM, quantize=quantize, goal=Goal.of(objectives, limits))
        began = time.perf_counter()
        with second_process(wanted=True) as second:
            found = explore(evaluator, trials, second=second)
            trials_of = {one.number: one.evaluation for one in found.tried}
            bench = Bench(fifo_simulations=fifo_simulations, fifo_slack=fifo_slack, elsewhere=second)
            best = choose(evaluator, trials_of, bench=bench).finished.evaluation
        network = evaluator.assembler.network(best.design)
        depths = dict(best.design.fifo_depths)
        simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=depths)
        seconds = time.perf_counter() - began
        return Searched(evaluator, best, found.bound, network, simulated, found.modelled, seconds)

    @property
    def cycles(self) -> int | None:
        return self.simulated.latency if self.simulated.deadlock is None else None

    def energy_uj(self, cycles: int) -> float:
        """Of a run, modelled for the time that was simulated."""
        return self.best.measures_at(cycles, cycles)["energy_uj"]

    @cached_property
    def graph(self) -> Graph:
        return read_graph(self.evaluator.program.module)

    @cached_property
    def memory(self) -> ExternalMemory:
        memory = self.evaluator.platform.fastest_memory
        assert memory is not None, "the benchmarks' platform has an external memory"
        return memory

    @property
    def products(self) -> int:
        """Of activations with weights, which are parameters, or inputs where layers share the accelerator."""
        layers, graph = self.evaluator.program.layers, self.graph
        held = set(layers.weights[0]) if layers else set[str]()
        weights = {v for v in graph.arguments if graph.is_param(v) or graph.name(v) in held}
        return sum(op.work for op in graph.operations if op.reductions and weights.intersection(op.inputs))

    @property
    def figures(self) -> Mapping[str, Value]:
        """Shares and bounds, resources beside what the card has, and the largest buffers that remain."""
        used, limits = self.best.figures.resources.as_dict(), self.evaluator.platform.limits.as_dict()
        largest = sorted(self.held.items(), key=lambda item: -item[1])[:_BUFFERS]
        return {
            "objectives": ", ".join(self.evaluator.goal.objectives),
            "cycles": self.cycles, "clock_mhz": self.evaluator.clock_mhz, **self.shares, "between_bits": self.between,
            "largest_buffers": ", ".join(f"{name} {bits:,} bits" for name, bits in largest),
            "bound_cycles": self.bound.value, "bound_reason": self.bound.reason,
            "feasible": self.best.feasible, "platform": PLATFORM, "resources_and_energy_evidence": "modelled",
            "energy_uj": None if self.cycles is None else round(self.energy_uj(self.cycles), 1),
            "explore_s": round(self.seconds, 1),
            **{f"{name}_used": count for name, count in used.items()},
            **{f"{name}_available": limits[name] for name in used},
        }  # fmt: skip

    @property
    def shares(self) -> Mapping[str, Value]:
        """What the design takes of memory, of its DSPs' time, and of the chip for what lies between kernels."""
        bits, run, resources = external_bits(self.network), self.simulated.latency, self.best.figures.resources
        sustained = self.memory.sustained_gb_s * 8e3 / self.evaluator.clock_mhz
        users, processes = memory_ports(self.network, self.evaluator.platform), self.simulated.processes
        times = [processes[name] for part in self.network.groups for name in users if name in processes]
        streaming = max(one.end for one in times) - min(one.start for one in times)
        held = sum(self.held.values())
        return {
            "bandwidth_pct": round(100 * bits / sustained / streaming, 1),
            "of_run_pct": round(100 * bits / sustained / run, 1),
            "compute_pct": round(100 * self.products / max(1, resources.dsp) / run, 1),
            "fifo_and_converter_bits": held,
            "load_fifo_bits": sum(self._bits[name] for name in self._loaded),
            "store_fifo_bits": sum(self._bits[name] for name in self._stored),
            "memory_pct": round(100 * held / self.between, 1),
            "dsp": resources.dsp,
        }

    @cached_property
    def between(self) -> int:
        return between_kernels(self.graph)

    @cached_property
    def held(self) -> Mapping[str, int]:
        """Bits of each FIFO and converter that holds a tensor between kernels."""
        return held_as_sized(self.evaluator, self.best.design)

    @cached_property
    def _bits(self) -> Mapping[str, int]:
        depths = self.best.design.fifo_depths
        return {n: c.bits * c.words * depths.get(n, c.depth) for n, c in self.network.channels.items()}

    @cached_property
    def _loaded(self) -> frozenset[str]:
        return loaded_channels(self.network)

    @cached_property
    def _stored(self) -> frozenset[str]:
        return stored_channels(self.network) - self._loaded
