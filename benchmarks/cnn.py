"""Convolutional networks in W8A8 under published budgets of DSPs, blocks of them in fp32 beside Stream-HLS' designs.

Each row is searched as `penstock explore --quantize w8a8 --objective throughput --limit dsp<=N` does it, with a second
process where the machine has two processors: `compile_s` is time on the clock, `compile_cpu_s` what both took, without
what is compiled once for a machine. The published papers name networks without their frames, so ours are chosen, and
the work of a frame need not be theirs. HIDA's throughput, efficiency and DSPs at 200 MHz say how many products its
frames take; for ResNet-18 that is 2.17 G, where the network has 1.81 G at 224 pixels. Compare `dsp_efficiency_pct`,
and frames a second only beside `macs`.
HIDA's MLP is not described either: a made-up one stands for it. `dsp_efficiency_pct` is products a DSP and cycle, so a
pair of int8 products in a DSP makes it up to 200, and `multipliers` of fabric, which take LUTs instead, any figure.

A row of Stream-HLS is one of its two CNN blocks beside one of its designs, under the DSPs and LUTs of that one: as the
rows of `bench kernels` that are called rivals, on the same bare device, for the latency of one frame.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.asked import is_asked_for
from benchmarks.kernel_designs import CNN_BLOCKS, PLATFORM, Workload
from benchmarks.kernels import rival_row
from benchmarks.published import Published, rivals
from benchmarks.registry import Figures, Value
from benchmarks.warm import compile_all
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.lanes.binding import MULTIPLIERS
from penstock.dse.rungs import Bench, Ranked, rank
from penstock.dse.rungs.history import FolderHistory
from penstock.dse.search.explore import explore
from penstock.dse.search.second import SecondProcess, second_process
from penstock.profiling.simulated import outlook_of
from penstock.services.jobs.model import load_program

MOST_EVENTS = 100_000_000
"""The best designs are simulated with several frames, back to back, where so many events are enough for each."""
STREAM_HLS = "Stream-HLS"
BRAM_BITS, URAM_BITS = 18 * 1024, 288 * 1024


@dataclass(frozen=True)
class Network:
    """A row: the model, where it runs, and what was published for it."""

    name: str
    model: str
    source: str
    platform: str
    dsp: int | None
    """None where no count was published: the device's own limit."""
    frames_a_second: float
    efficiency_pct: float | None = None
    clock_mhz: float | None = None


NETWORKS = (
    Network("resnet18", "zoo:resnet18", "HIDA", "vu9p-slr", 667, 45.4, 73.8),
    Network("mobilenet", "zoo:mobilenet_v1", "HIDA", "vu9p-slr", 518, 137.4, 75.5),
    Network("zfnet", "zoo:zfnet", "HIDA", "vu9p-slr", 639, 90.4, 82.8),
    Network("vgg16", "zoo:vgg16?side=128", "HIDA", "vu9p-slr", 1118, 48.3, 102.1),
    Network("yolo", "zoo:tiny_yolo?side=512", "HIDA", "vu9p-slr", 904, 33.7, 94.3),
    Network("mlp", "zoo:mlp?inputs=3072&hidden=4096,4096,512", "HIDA", "vu9p-slr", 164, 938.9, 90.0),
    Network("resnet18", "zoo:resnet18", "CODO", "u280", 1236, 89.6, 66.0, clock_mhz=200.0),
    Network("resnet8", "zoo:resnet8", "nn2FPGA", "kv260", None, 30153),
    Network("resnet20", "zoo:resnet20", "nn2FPGA", "kv260", 636, 7601),
)


def run(only: str = "", limit: int | None = None) -> Figures:
    """`only` is a part of `source/name`, or a pattern."""
    labels: list[tuple[str, Callable[[], Mapping[str, Value]]]] = [
        *((f"{n.source}/{n.name}", partial(_row, n)) for n in NETWORKS),
        *(
            (f"{STREAM_HLS}/{w.name}", partial(_block_row, w, one))
            for w in CNN_BLOCKS.values()
            for one in rivals(w.name)
        ),
    ]
    wanted = [row for label, row in labels if is_asked_for(label, only)]
    if wanted:
        compile_all()
    rows = [row() for row in wanted[:limit]]
    networks = [row for row in rows if row["source"] != STREAM_HLS]
    known = [float(str(row["dsp_efficiency_pct"])) for row in networks if row["dsp_efficiency_pct"] is not None]
    summary: dict[str, Value] = {
        "rows_total": len(rows),
        "rows_ahead": sum(row["ahead"] is True for row in rows),
        "min_dsp_efficiency_pct": min(known) if len(known) == len(networks) and networks else None,
        "max_compile_s": max((float(str(row["compile_s"])) for row in networks), default=None),
    }
    simulated = bool(rows) and all(row["evidence"] == "simulated" for row in rows)
    return Figures("simulated" if simulated else "modelled", rows, summary)


def _row(network: Network) -> Mapping[str, Value]:
    row: dict[str, Value] = {
        "network": network.name, "model": network.model, "source": network.source, "platform": network.platform,
        "dsp_allowed": network.dsp, "published_frames_a_second": network.frames_a_second,
        "published_dsp_efficiency_pct": network.efficiency_pct,
    }  # fmt: skip
    began, cpu_began = time.perf_counter(), _processor_seconds()
    with second_process(wanted=True) as second:
        program = load_program(network.model, "w8a8")
        goal = Goal.of(("throughput",), [] if network.dsp is None else [f"dsp<={network.dsp}"])
        evaluator = Evaluator.create(program, network.platform, clock_mhz=network.clock_mhz, quantize="w8a8", goal=goal)
        try:
            best = _best(evaluator, second)
        except PenstockError as error:
            if error.code != "nothing-fits":
                raise
            row |= dict.fromkeys(("frames_a_second", "interval_cycles", "dsp", "dsp_efficiency_pct", "on_chip_bits"))
            row |= {"feasible": False, "ahead": False, "evidence": "modelled", "why_not": error.limit}
        else:
            row |= _figures(network, evaluator, best)
    row |= {
        "compile_s": round(time.perf_counter() - began, 1),
        "compile_cpu_s": round(_processor_seconds() - cpu_began, 1),
    }
    print(f"cnn: {network.source}/{network.name}: {row['frames_a_second']} frames/s", file=sys.stderr, flush=True)
    return row


def _processor_seconds() -> float:
    """Of this process, and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _block_row(workload: Workload, rival: Published) -> Mapping[str, Value]:
    """One block beside one published design, under its DSPs and its LUTs."""
    began, cpu_began = time.perf_counter(), time.process_time()
    found = dict(rival_row(workload, rival))
    row: dict[str, Value] = {
        "network": found.pop("workload"), "model": f"benchmarks/workloads.py:{workload.model.__name__}",
        "source": STREAM_HLS, "platform": PLATFORM, "ahead": found.pop("beats_all"), "macs": workload.macs,
        "evidence": "simulated", **found, "published_dsp": rival.dsp, "published_lut": rival.lut,
        "compile_s": round(time.perf_counter() - began, 1),
        "compile_cpu_s": round(time.process_time() - cpu_began, 1),
    }  # fmt: skip
    print(f"cnn: {STREAM_HLS}/{workload.name}: {row['cycles']} of {rival.cycles} cycles", file=sys.stderr, flush=True)
    return row


def _best(evaluator: Evaluator, second: SecondProcess | None) -> Ranked:
    """As `explore` chooses: the best trials by simulation, or by the model where that would take hours."""
    found = explore(evaluator, second=second)
    best, platform, clock = found.best.evaluation, evaluator.platform, evaluator.clock_mhz
    few = outlook_of(evaluator.assembler.network(best.design), platform, clock).events <= MOST_EVENTS
    trials = [one.evaluation for one in found.tried]
    with TemporaryDirectory() as folder:  # of this search alone: what earlier ones saw changes no row
        bench = Bench(history=FolderHistory(Path(folder)), elsewhere=second)
        return rank(evaluator, trials if few else [best], "simulated" if few else "modelled", bench)[0]


def _figures(network: Network, evaluator: Evaluator, ranked: Ranked) -> Mapping[str, Value]:
    best, measured = ranked.candidate, ranked.measured
    if measured is None:
        raise ranked.error or AssertionError(ranked.failure)
    interval, evidence = measured.times.interval or best.figures.interval, measured.evidence
    used, clock = best.figures.resources, evaluator.clock_mhz
    graph = read_graph(evaluator.program.module)
    macs = sum(op.work for op in graph.operations if op.reductions and any(graph.is_param(v) for v in op.inputs))
    frames = clock * 1e6 / interval
    efficiency = 100 * macs / interval / max(used.dsp, 1)
    ahead = frames > network.frames_a_second and (network.efficiency_pct is None or efficiency > network.efficiency_pct)
    return {
        "frames_a_second": round(frames, 1), "interval_cycles": interval,
        "modelled_interval_cycles": best.figures.interval, "latency_cycles": measured.latency,
        "macs": macs, "dsp": used.dsp, "dsp_efficiency_pct": round(efficiency, 1),
        "on_chip_bits": used.bram18 * BRAM_BITS + used.uram * URAM_BITS, "lut": used.lut,
        "clock_mhz": clock, "feasible": best.feasible, "ahead": best.feasible and ahead, "evidence": evidence,
        "binding_resource": best.binding_resource, "multipliers": str(best.params.get(MULTIPLIERS, "dsp")),
    }  # fmt: skip
