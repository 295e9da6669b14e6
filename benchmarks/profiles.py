"""Kept profiles: how many a second are found again, and how often a tool runs when several workers want the same.

The tool is a small process that notes each of its runs in a file, so runs are counted and not believed.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.registry import WALL_CLOCK, Figures, Value
from penstock.compiler.platforms import Resources
from penstock.db import Database, lifecycle
from penstock.db.migrate import migrate
from penstock.profiling.protocol import Profile
from penstock.profiling.store import FolderProfiles, ProfileStore
from penstock.profiling.tool_runner import ToolCommand, ToolRunner
from penstock.services.profiles import SharedProfiles
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres

KERNELS, HITS = 12, 200
WORKERS = (1, 2, 4)
TOOL = "import sys, time; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10)); time.sleep(0.05)"


def run() -> Figures:
    folder = open_folder()
    server = EmbeddedPostgres(folder / "pg", folder / "s")
    try:
        server.start()
        migrate(server.url)
        run_id = _run_id(server.url)
        rows = [
            _measure(kind, server.url, run_id, folder, workers)
            for kind in ("folder", "postgres")
            for workers in WORKERS
        ]
    finally:
        server.stop()
        shutil.rmtree(folder)
    worst = max(int(str(row["tool_runs"])) for row in rows)
    hits = {str(row["store"]): row["hits_per_s"] for row in rows if row["workers"] == 1}
    summary = {
        "tool_runs_a_kernel": worst / KERNELS,
        "tool_runs_when_kept": max(int(str(row["tool_runs_when_kept"])) for row in rows),
        **{f"hits_per_s_{kind}": value for kind, value in hits.items()},
    }
    return Figures(WALL_CLOCK, rows, summary)


def _measure(kind: str, url: str, run_id: str, folder: Path, workers: int) -> Mapping[str, Value]:
    """All workers want the same kernels at the same time, and then all of them once more."""
    ran = folder / f"ran-{kind}-{workers}"
    ran.touch()
    job = (kind, url, run_id, str(folder / f"kept-{workers}"), str(ran), f"{kind}-{workers}")
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers) as pool:
        began = time.monotonic()
        pool.map(_want, [(*job, 1)] * workers, chunksize=1)
        first = time.monotonic() - began
        made = len(ran.read_text().split())
        seconds = max(pool.map(_want, [(*job, HITS // KERNELS)] * workers, chunksize=1))
    return {
        "store": kind, "workers": workers, "kernels": KERNELS, "tool_runs": made,
        "tool_runs_when_kept": len(ran.read_text().split()) - made, "first_s": round(first, 2),
        "hits_per_s": round(workers * KERNELS * (HITS // KERNELS) / seconds, 1),
    }  # fmt: skip


def _want(job: tuple[str, str, str, str, str, str, int]) -> float:
    """Asks for every kernel so many times; the seconds that it took."""
    kind, url, run_id, root, ran, prefix, times = job
    database = Database(url, pool_size=2)
    store: ProfileStore = FolderProfiles(Path(root)) if kind == "folder" else SharedProfiles(database, run_id)
    began = time.monotonic()
    for _ in range(times):
        for number in range(KERNELS):
            key = f"{prefix}-{number}"
            store.fetch(key, lambda key=key: _tool(key, Path(ran)))
    seconds = time.monotonic() - began
    database.close()
    return seconds


def _tool(key: str, ran: Path) -> Profile:
    command = ToolCommand((sys.executable, "-c", TOOL, str(ran), key), ran.parent, ran.parent / "logs" / key)
    result = ToolRunner().run(command)
    if not result.ok:
        raise result.error("tool")
    return Profile(
        key=key, name=key, tool="bench", tool_version="1", evidence="modelled", clock_mhz=100.0, latency_cycles=1,
        interval_cycles=1, initial_delay_cycles=1, ii=1, depth=1, resources=Resources(),
    )  # fmt: skip


def _run_id(url: str) -> str:
    database = Database(url)
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:mlp")
        made = lifecycle.submit(tx, model_id=model.id, name="r", steps=(), options={}, owner=None)
    database.close()
    return made.id
