"""Searches the designs that `penstock bench kernels` shows, and keeps them as records.

`python -m benchmarks.kernel_search [NAME ...] [--missing]`: each workload under the budgets of the tables, and
under the number of DSPs of every published design. With `--missing`, records that are there already are kept.
"""

from __future__ import annotations

import sys
import time

from benchmarks.kernel_designs import WORKLOADS, load_designs, save_designs, search
from benchmarks.published import BUDGETS, rivals


def allowances(workload: str) -> list[int]:
    """The numbers of DSPs that designs are compared at, the budgets first."""
    return list(dict.fromkeys([*BUDGETS, *sorted(one.dsp for one in rivals(workload))]))


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name != "--missing"]
    for name in names or list(WORKLOADS):
        designs = load_designs(name) if "--missing" in arguments else {}
        for dsp in allowances(name):
            if dsp in designs:
                continue
            began = time.perf_counter()
            found = search(name, dsp)
            best = found.best.evaluation
            designs[dsp] = best.design
            seconds, gap = time.perf_counter() - began, found.bound.gap(best.values[0])
            print(
                f"{name} {dsp}: {best.figures.latency} cycles, {gap:.1%} above the bound, "
                f"{best.figures.resources.dsp} DSP, in {seconds:.1f} s", flush=True,
            )  # fmt: skip
            save_designs(name, designs)


if __name__ == "__main__":
    main(sys.argv[1:])
