"""PolyBench as plain C, explored within the resources of HIDA's designs, beside what was published of four tools."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.profiling.kernels.explore.search import explore_kernel

FOLDER = Path(__file__).with_name("polybench")
CLOCK_MHZ = 100.0


@dataclass(frozen=True)
class PublishedKernel:
    """HIDA's table 7: LUTs, FFs, DSPs of HIDA, and runs a second; None where a tool has none."""

    lut: int
    ff: int
    dsp: int
    hida: float
    scalehls: float
    soff: float | None
    vitis: float


PUBLISHED = {
    "2mm": PublishedKernel(38_800, 27_400, 269, 239.22, 122.39, 30.67, 1.23),
    "3mm": PublishedKernel(38_700, 27_800, 243, 175.43, 92.33, None, 1.04),
    "atax": PublishedKernel(44_600, 34_600, 260, 1_021.39, 932.26, 2_173.17, 103.18),
    "bicg": PublishedKernel(16_000, 15_100, 61, 2_869.69, 2_869.61, 2_295.75, 104.19),
    "correlation": PublishedKernel(14_500, 12_300, 66, 67.33, 59.77, 3.96, 1.32),
    "gesummv": PublishedKernel(34_200, 22_800, 232, 31_685.68, 31_685.68, 3_466.70, 266.65),
    "jacobi-2d": PublishedKernel(91_400, 56_600, 352, 257.27, 128.63, None, 2.71),
    "mvt": PublishedKernel(23_800, 16_500, 162, 9_979.04, 4_989.02, 870.01, 62.13),
    "seidel-2d": PublishedKernel(5_500, 2_500, 4, 0.14, 0.14, None, 0.11),
    "symm": PublishedKernel(14_900, 9_500, 74, 2.62, 2.62, None, 2.02),
    "syr2k": PublishedKernel(14_300, 12_800, 78, 27.68, 27.67, None, 1.44),
}


def run(only: str | None = None) -> Figures:
    rows = [_row(name, them) for name, them in PUBLISHED.items() if only is None or only in name]
    ratios = [ratio for row in rows if isinstance(ratio := row.get("over_hida"), float)]
    return Figures(
        "simulated", rows,
        {
            "n": len(rows), "ahead_of_hida": sum(ratio > 1 for ratio in ratios),
            "ahead_of_all": sum(row.get("ahead_of_all") is True for row in rows),
            "geomean_over_hida": statistics.geometric_mean(ratios) if ratios else None,
        },
    )  # fmt: skip


def _row(name: str, them: PublishedKernel) -> Mapping[str, Value]:
    device = load_platform("zu3eg")
    whole = device.dies[0].resources.as_dict()
    limits = {"dsp": them.dsp, "lut": min(them.lut, int(whole["lut"])), "ff": them.ff, "bram18": int(whole["bram18"])}
    row: dict[str, Value] = {
        "kernel": name, "hida_per_s": them.hida, "scalehls_per_s": them.scalehls, "soff_per_s": them.soff,
        "vitis_per_s": them.vitis,
    }  # fmt: skip
    started = time.process_time()
    try:
        found = explore_kernel(
            FOLDER / f"{name}.cpp", "kernel_" + name.replace("-", "_"), CLOCK_MHZ, device.part, limits,
            objective="throughput",
        )  # fmt: skip
    except PenstockError as error:
        return {**row, "refused": error.one_line()}
    rate = CLOCK_MHZ * 1e6 / found.interval
    others = [them.hida, them.scalehls, them.vitis, *([them.soff] if them.soff is not None else [])]
    return {
        **row, "cycles_before": found.latency_before, "cycles": found.latency, "interval": found.interval,
        "tasks": found.tasks, "per_s": rate, "plain_per_s": CLOCK_MHZ * 1e6 / found.interval_before,
        "over_hida": rate / them.hida, "ahead_of_all": found.equal and rate > max(others),
        **{name.upper(): value for name, value in found.area.items()},
        **{f"limit_{name.upper()}": value for name, value in limits.items()},
        "equal": found.equal, "trials": found.trials, "seconds": time.process_time() - started,
    }  # fmt: skip
