"""How fast designs are modelled, what asking and telling takes beside it, and how two processes share a study."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.registry import Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.study import Study
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[1]
SEED = 0
SHARED_SEEDS = (1, 2, 3)
TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class Speed:
    """A model whose designs are modelled, for at most so many designs and seconds."""

    name: str
    model: str
    quantize: str | None
    designs: int
    seconds: float

    def evaluator(self) -> Evaluator:
        program = prepare(import_model(self.model, weights=self.quantize is not None), self.quantize)
        return Evaluator.create(program, "u55c", quantize=self.quantize)


MLP = Speed("mlp", "zoo:mlp?inputs=64&hidden=32,32", "w8a8", 1500, 60.0)
GPT2 = Speed("gpt2", "zoo:gpt2?size=real&mode=prefill&seq=128", None, 300, 90.0)
"""The block of real size, 1,024 wide with 16 heads, prefill of 128 tokens, as in the other benchmarks."""
SPEEDS = {case.name: case for case in (MLP, GPT2)}


def speed_row(case: Speed) -> dict[str, Value]:
    """Distinct designs at random, by a process that knows none; a setting that means one again is drawn anew.

    The first ones cost most: whatever they have in common is found with them.
    """
    evaluator, chance = case.evaluator(), random.Random(SEED)
    seen: set[Hashable] = set()
    refused = 0
    began, busy = time.perf_counter(), time.process_time()
    halfway = (0, began)
    while len(seen) < case.designs and time.perf_counter() - began < case.seconds:
        params = {name: chance.choice(values) for name, values in evaluator.space.choices.items()}
        try:
            key = evaluator.means(params)
            if key in seen:
                continue
            evaluator.assume(params)
            seen.add(key)
        except PenstockError:
            refused += 1
        if time.perf_counter() - began < case.seconds / 2 and len(seen) <= case.designs // 2:
            halfway = (len(seen), time.perf_counter())
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    later = (len(seen) - halfway[0]) / (began + seconds - halfway[1])
    return {
        "part": "speed",
        "model": case.model,
        "platform": "u55c",
        "designs": len(seen),
        "refused": refused,
        "seconds": round(seconds, 2),
        "modelled_per_s": round(len(seen) / seconds, 1),
        "modelled_per_s_second_half": round(later, 1),
        "modelled_per_cpu_s": round(len(seen) / busy, 1),
    }


def study_row(trials: int) -> dict[str, Value]:
    """A search in one process and memory: which share of the time the study takes."""
    evaluator = MLP.evaluator()
    space, goal = evaluator.space, evaluator.goal
    study = Study.create_or_load(
        "speed", space.choices, conditions=space.conditions, objectives=goal.objectives, seed=SEED,
        first=space.first_settings(), meaning=evaluator.means,
    )  # fmt: skip
    asking = modelling = telling = 0.0
    busy = time.process_time()
    for _ in range(trials):
        began = time.perf_counter()
        asked = study.ask()
        ready = time.perf_counter()
        found = evaluator.assume(asked.params)
        modelled = time.perf_counter()
        study.tell(asked.number, found.values, found.constraints)
        asking, modelling = asking + ready - began, modelling + modelled - ready
        telling += time.perf_counter() - modelled
    busy = time.process_time() - busy
    total = asking + modelling + telling
    return {
        "part": "study",
        "store": "memory",
        "trials": trials,
        "ask_ms": round(1e3 * asking / trials, 2),
        "model_ms": round(1e3 * modelling / trials, 2),
        "tell_ms": round(1e3 * telling / trials, 2),
        "study_share_pct": round(100 * (asking + telling) / total, 1),
        "cpu_ms_a_trial": round(1e3 * busy / trials, 2),
    }


def scaling_rows(case: Speed, trials: int) -> list[dict[str, Value]]:
    """The same number of trials by one and by two processes that share a study in Postgres, for each of some seeds.

    From the start until the last trial was told; how long the processes take to begin and end is no part of it. No two
    searches try the same designs, and designs differ in what they take: hence several, in turn, since a machine is not
    equally fast all the time.
    """
    folder = open_folder()
    server = EmbeddedPostgres(folder / "pg", folder / "s")
    try:
        server.start()
        searches: dict[int, list[Counter[str]]] = {1: [], 2: []}
        for number, seed in enumerate(SHARED_SEEDS):
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                searches[workers].append(_shared(server.url, case, workers, trials, seed))
        return [_row(case, workers, found) for workers, found in searches.items()]
    finally:
        server.stop()
        shutil.rmtree(folder)


def _shared(url: str, case: Speed, workers: int, trials: int, seed: int) -> Counter[str]:
    """One search: the seconds that it took, and the sums of what its processes say."""
    processes = [_worker(url, case, seed, workers, number, trials) for number in range(workers)]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise PenstockError(code="bench-failed", what="a worker did not start", where="dse scaling")
        began = time.monotonic()  # which all processes share
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [json.loads(process.communicate(timeout=TIMEOUT_SECONDS)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    found: Counter[str] = Counter(seconds=max(a["ended"] for a in answers) - began)
    for answer in answers:
        found.update(answer)
    return found


def _row(case: Speed, workers: int, searches: Sequence[Counter[str]]) -> dict[str, Value]:
    found: Counter[str] = Counter()
    for search in searches:
        found.update(search)
    done, seconds, studying = found["trials"], found["seconds"], found["ask_s"] + found["tell_s"]
    return {
        "part": "scaling",
        "model": case.model,
        "store": "postgres",
        "workers": workers,
        "searches": len(searches),
        "trials": done,
        "seconds": round(seconds, 2),
        "trials_per_s": round(done / seconds, 1),
        "ask_ms": round(1e3 * found["ask_s"] / done, 2),
        "model_ms": round(1e3 * found["model_s"] / done, 2),
        "tell_ms": round(1e3 * found["tell_s"] / done, 2),
        "study_share_pct": round(100 * studying / (studying + found["model_s"]), 1),
        "cpu_ms_a_trial": round(1e3 * found["cpu_s"] / done, 2),
        "cores_in_use": round(found["cpu_s"] / seconds, 2),
    }


def _worker(url: str, case: Speed, seed: int, workers: int, number: int, trials: int) -> subprocess.Popen[str]:
    study = f"{case.name}-{seed}-{workers}"
    command = [sys.executable, "-m", "benchmarks.dse_worker", url, study, str(seed), str(number), str(trials)]
    command += [case.name]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
