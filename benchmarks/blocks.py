"""Decoder blocks of real size in W8A8: cycles of the design that a search finds, and what memory and arithmetic allow.

Each block is searched as `penstock explore --quantize w8a8` does it, and its design simulated with its FIFOs.
`bandwidth_pct` is what passes through external memory, of what all banks together sustain, between the first word that
a load brings and the last one; `of_run_pct` the same over the whole run. `compute_pct` is how much of the time of the
design's DSPs the products of the model take. `memory_pct` compares what FIFOs and converters hold with the tensors
between the kernels, without the FIFOs that loads alone fill: `load_fifo_bits` are weights and caches that come while
others compute. A block that cannot be run has `null` for its figures, and the `reason`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

from benchmarks.registry import Figures, Value
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.simulator import Simulation
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search.explore import explore
from penstock.dse.space.fusion import tensor_bits
from penstock.profiling.bandwidth import external_bits, memory_ports
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design

FAMILIES = ("gpt2", "llama", "qwen", "gemma")
PREFILLS, CACHES = (32, 128), (32, 64, 128, 256, 512, 1024)
PLATFORM, TRIALS = "u55c", 8


@dataclass(frozen=True)
class BlockCase:
    family: str
    mode: str
    tokens: int
    """Of a prefill, or in the cache of a decode."""

    @property
    def label(self) -> str:
        return f"{self.family}/{self.mode}/{self.tokens}"

    @property
    def reference(self) -> str:
        sizes = f"seq={self.tokens}" if self.mode == "prefill" else f"seq=1&cache={self.tokens}"
        return f"zoo:{self.family}?size=real&mode={self.mode}&{sizes}"


def cases() -> list[BlockCase]:
    return [
        BlockCase(family, mode, tokens)
        for family in FAMILIES
        for mode, sizes in (("prefill", PREFILLS), ("decode", CACHES))
        for tokens in sizes
    ]


def run(only: str = "", limit: int | None = None) -> Figures:
    """`only` is a part of a case's name, as `gpt2/decode`, or a pattern."""
    wanted = [case for case in cases() if only in case.label or fnmatch(case.label, only)][:limit]
    rows = [_tried(case) for case in wanted]

    def of(mode: str, figure: str) -> list[float]:
        return [float(str(row[figure])) for row in rows if row["mode"] == mode and row.get(figure) is not None]

    summary: dict[str, Value] = {
        "decode_pct_of_bandwidth_min": min(of("decode", "bandwidth_pct"), default=None),
        "prefill_pct_of_compute_min": min(of("prefill", "compute_pct"), default=None),
        "memory_pct_max": max([*of("prefill", "memory_pct"), *of("decode", "memory_pct")], default=None),
        "max_explore_s": max([*of("prefill", "explore_s"), *of("decode", "explore_s")], default=None),
        "infeasible_defaults": sum(
            int(str(row["infeasible_defaults"])) for row in rows if "infeasible_defaults" in row
        ),
    }
    return Figures("simulated", rows, summary)


def _tried(case: BlockCase) -> Mapping[str, Value]:
    try:
        return _row(case)
    except PenstockError as error:
        return {"block": case.family, "mode": case.mode, "tokens": case.tokens, "cycles": None, "reason": str(error)}


def _row(case: BlockCase) -> Mapping[str, Value]:
    program = prepare(import_model(case.reference), "w8a8")
    evaluator = Evaluator.create(program, PLATFORM, quantize="w8a8")
    space = evaluator.space
    usual = [evaluator.evaluate(setting) for setting in (*space.paced_settings(), space.fitted_setting()) if setting]
    began = time.perf_counter()
    found = explore(evaluator, TRIALS)
    best = found.best.evaluation
    network = evaluator.assembler.network(best.design)
    depths = dict(best.design.fifo_depths)
    simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=depths)
    seconds = time.perf_counter() - began
    row: dict[str, Value] = {
        "block": case.family, "mode": case.mode, "tokens": case.tokens,
        "cycles": simulated.latency if simulated.deadlock is None else None,
        "modelled_cycles": best.figures.latency,
        "feasible": best.feasible,
        "bound": found.bound.value, "bound_reason": found.bound.reason,
        **_shares(evaluator, best, network, simulated),
        "stripes": best.design.stripes,
        "modelled": found.modelled,
        "infeasible_defaults": sum(not one.feasible for one in usual),
        "explore_s": round(seconds, 1),
    }  # fmt: skip
    print(f"blocks: {case.label}: {row['cycles']} cycles in {seconds:.0f} s", file=sys.stderr, flush=True)
    return row


def _shares(evaluator: Evaluator, best: Evaluation, network: TaskNetwork, simulated: Simulation) -> Mapping[str, Value]:
    """What the design takes of memory, of its DSPs' time, and of the chip for what lies between kernels."""
    memory, graph = evaluator.platform.fastest_memory, read_graph(evaluator.program.module)
    assert memory is not None, "the benchmark's platform has an external memory"
    sustained = memory.sustained_gb_s * 8e3 / evaluator.clock_mhz
    users = memory_ports(network, evaluator.platform)
    times = [simulated.processes[name] for part in network.groups for name in users if name in simulated.processes]
    streaming = max(one.end for one in times) - min(one.start for one in times)
    bits, run = external_bits(network), simulated.latency
    products = sum(op.work for op in graph.operations if any(graph.is_param(v) for v in op.inputs) and op.reductions)
    depths, loaded = best.design.fifo_depths, {c.name for c in best.figures.channels if c.prefetch is not None}
    bits_of = {n: c.bits * c.words * depths.get(n, c.depth) for n, c in network.channels.items()}
    held = sum(size for name, size in bits_of.items() if name not in loaded)
    between = sum(tensor_bits(op.result) for op in graph.operations if op.result not in graph.returned)
    return {
        "bandwidth_pct": round(100 * bits / sustained / streaming, 1),
        "of_run_pct": round(100 * bits / sustained / run, 1),
        "compute_pct": round(100 * products / max(1, best.figures.resources.dsp) / run, 1),
        "fifo_and_converter_bits": held,
        "load_fifo_bits": sum(bits_of[name] for name in loaded),
        "memory_pct": round(100 * held / between, 1),
        "dsp": best.figures.resources.dsp,
    }
