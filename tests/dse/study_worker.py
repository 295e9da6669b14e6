"""A process that works on a shared study: asks, answers a simple function of the setting, tells.

    python -m tests.dse.study_worker URL NAME WORKER COUNT [hang]

With `hang` it asks for one trial, prints its number, and waits to be killed.
"""

from __future__ import annotations

import sys
import time

from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Params, Value

CHOICES: dict[str, tuple[Value, ...]] = {
    "size": (1, 2, 4, 8, 16),
    "lanes": (1, 2, 4, 8, 16, 32),
    "order": ("in", "out"),
    "connect": (True, False),
}


def answer(params: Params) -> tuple[tuple[float, float], dict[str, float]]:
    lanes, size = int(params["lanes"]), int(params["size"])
    values = 1000.0 / lanes + size + (params["order"] == "out"), lanes / 16
    return values, {"dsp": lanes / 16 - 1, "lut": size / 64 - 1}


def main() -> None:
    url, name, worker, count, *rest = sys.argv[1:]
    study = Study.create_or_load(name, CHOICES, storage_url=url, seed=1, worker=int(worker))
    for _ in range(int(count)):
        asked = study.ask()
        sys.stdout.write(f"{asked.number}\n")
        sys.stdout.flush()
        if rest:
            time.sleep(300)
        values, constraints = answer(asked.params)
        assert study.tell(asked.number, values, constraints)
    study.close()


if __name__ == "__main__":
    main()
