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
            designs[dsp] = found.evaluation.design
            figures, seconds = found.evaluation.figures, time.perf_counter() - began
            print(
                f"{name} {dsp}: {figures.latency} cycles, {figures.resources.dsp} DSP, "
                f"{found.modelled} designs modelled in {seconds:.1f} s", flush=True,
            )  # fmt: skip
            save_designs(name, designs)


if __name__ == "__main__":
    main(sys.argv[1:])
