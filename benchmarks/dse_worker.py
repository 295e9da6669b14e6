"""One process of a shared search: `python -m benchmarks.dse_worker URL STUDY SEED WORKER TRIALS MODEL`.

It says that it is ready, waits for a line, and tries settings until the study has so many trials. Then it prints how
many it tried, how long it asked, modelled and told, and when it had told the last one.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.dse_speed import SPEEDS
from penstock.dse.search.study import Study


def main(url: str, name: str, seed: int, worker: int, trials: int, model: str) -> None:
    evaluator = SPEEDS[model].evaluator()
    space, goal = evaluator.space, evaluator.goal
    study = Study.create_or_load(
        name, space.choices, conditions=space.conditions, objectives=goal.objectives, storage_url=url, seed=seed,
        worker=worker, first=space.first_settings(), meaning=evaluator.means,
    )  # fmt: skip
    print("ready", flush=True)
    sys.stdin.readline()
    busy = time.process_time()
    done, asking, modelling, telling, ended = 0, 0.0, 0.0, 0.0, time.monotonic()
    while True:
        began = time.perf_counter()
        asked = study.ask()
        if asked.number >= trials:
            study.fail(asked.number, retry=False)
            break
        ready = time.perf_counter()
        found = evaluator.assume(asked.params)
        modelled = time.perf_counter()
        study.tell(asked.number, found.values, found.constraints)
        told = time.perf_counter()
        asking, modelling, telling = asking + ready - began, modelling + modelled - ready, telling + told - modelled
        done, ended = done + 1, time.monotonic()
    busy = time.process_time() - busy
    study.close()
    spent = {"ask_s": asking, "model_s": modelling, "tell_s": telling, "cpu_s": busy, "ended": ended}
    print(json.dumps({"trials": done, **spent}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
