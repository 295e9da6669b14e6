"""Partition on three dies: crossing bits of the exact one against the greedy one, at equal balance."""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks.registry import Figures, Value
from benchmarks.task_graphs import SHAPES, random_graph
from penstock.compiler.platforms import load_platform
from penstock.dse.partition import greedy_partition, partition, site_of

PLATFORMS = ("u55c", "u280")
TASKS = (18, 30)


def run() -> Figures:
    rows: list[Mapping[str, Value]] = []
    for platform in PLATFORMS:
        site = site_of(load_platform(platform))
        for tasks in TASKS:
            for shape in SHAPES:
                graph = random_graph(shape, tasks, seed=1)
                greedy = greedy_partition(graph, site)
                began = time.perf_counter()
                exact = partition(graph, site, balance_weight=0, peak=greedy.peak, gap=0)
                rows.append(
                    {
                        "platform": platform,
                        "graph": f"{shape}-{tasks}",
                        "bits_greedy": greedy.crossing_bits,
                        "bits_exact": exact.crossing_bits,
                        "peak_greedy": round(greedy.peak, 4),
                        "peak_exact": round(exact.peak, 4),
                        "proven": exact.proven,
                        "seconds": round(time.perf_counter() - began, 2),
                    }
                )
    pairs = [(int(str(r["bits_greedy"])), int(str(r["bits_exact"]))) for r in rows]
    return Figures(
        evidence="modelled",
        rows=rows,
        summary={
            "graphs": len(rows),
            "better": sum(exact < greedy for greedy, exact in pairs),
            "bits_saved_pct": round(100 * (1 - sum(e for _, e in pairs) / sum(g for g, _ in pairs)), 1),
            "seconds_max": max(float(str(r["seconds"])) for r in rows),
        },
    )
