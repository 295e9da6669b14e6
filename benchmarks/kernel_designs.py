"""Designs of the published workloads, as the public search finds them; what was searched is cached by its content."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path

from benchmarks import workloads
from benchmarks.workloads import Loaded
from penstock.compiler.design import Design
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.reference import parse_reference
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search.explore import explore
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.cache import CacheStore, content_key
from penstock.services.steps.version import evaluation_version

PLATFORM = "xcu280"
_EARLIER = Path(__file__).parent / "data" / "kernel_cycles.csv"
_STORE = CacheStore("kernel-designs", keep=1000)


@dataclass(frozen=True)
class Workload:
    """One row of the published tables. `products` are its matrix products, as (rows, columns, depth, how many)."""

    name: str
    model: Callable[[], Loaded]
    products: tuple[tuple[int, ...], ...]

    @property
    def macs(self) -> int:
        return sum(prod(product) for product in self.products)


_AUTOENCODER = (784, 256, 128, 64, 128, 256, 784)
WORKLOADS: Mapping[str, Workload] = {
    w.name: w
    for w in (
        Workload("gemm", workloads.gemm, ((200, 220, 240),)),
        Workload("2mm", workloads.two_mm, ((180, 190, 210), (180, 220, 190))),
        Workload("3mm", workloads.three_mm, ((180, 190, 200), (190, 210, 220), (180, 210, 190))),
        Workload("atax", workloads.atax, ((390, 410), (410, 390))),
        Workload("bicg", workloads.bicg, ((410, 390), (390, 410))),
        Workload("gesummv", workloads.gesummv, ((250, 250, 2),)),
        Workload("mvt", workloads.mvt, ((400, 400, 2),)),
        Workload("FeedForward", workloads.feed_forward, ((512, 256, 128, 2),)),
        Workload(
            "MultiHeadSelfAttention1", workloads.self_attention, ((64, 128, 128, 4), (8, 64, 64, 16), (8, 64, 16, 64))
        ),
        Workload(
            "ResMLP", workloads.residual_mlp, ((8, 512, 1024), (8, 512, 512), (8, 256, 512), (8, 10, 256))
        ),
        Workload(
            "Autoencoder", workloads.autoencoder,
            tuple((32, wide, narrow) for narrow, wide in pairwise(_AUTOENCODER)),
        ),
    )
}  # fmt: skip

CNN_BLOCKS: Mapping[str, Workload] = {
    w.name: w
    for w in (
        Workload(
            "DepthwiseSeparableConvBlock", workloads.depthwise_block, ((112 * 112, 8, 9), (112 * 112, 8, 8))
        ),
        Workload("ResidualBlock", workloads.residual_block, ((56 * 56, 16, 16 * 9, 2),)),
    )
}  # fmt: skip
"""Rows of `penstock bench cnn`."""


@cache
def evaluator_of(workload: str) -> Evaluator:
    """The workload through the product's front end, on the bare device: arguments and weights in on-chip arrays."""
    function = {**WORKLOADS, **CNN_BLOCKS}[workload].model
    model = load_model(parse_reference(f"{function.__code__.co_filename}:{function.__name__}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about its internals
        program = prepare(import_loaded(model))
    return Evaluator.create(program, PLATFORM, options=TilingOptions(weights="rom"))


def limited(evaluator: Evaluator, dsp: int, lut: int | None = None) -> Evaluator:
    """The same under a limit on DSPs, as a user would give it, and one on LUTs where that is asked for."""
    limits = [f"dsp<={dsp}", *([f"lut<={lut}"] if lut is not None else [])]
    return replace(evaluator, goal=Goal.of((), limits).on(evaluator.platform))


@dataclass(frozen=True)
class KernelDesign:
    """What `penstock explore` finds under limits, and what no design of the space can be below there."""

    design: Design
    bound: float
    bound_reason: str


def search(workload: str, dsp: int, lut: int | None = None) -> KernelDesign:
    """The fastest design with at most so many DSPs and LUTs: searched once for each model, limits and code."""
    evaluator = limited(evaluator_of(workload), dsp, lut)
    limits = [limit.text for limit in evaluator.goal.limits]
    key = content_key(str(evaluator.program.module), PLATFORM, limits, evaluation_version())
    with _STORE.making(key):
        kept = _STORE.read(key)
        if kept is None:
            found = explore(evaluator)
            design, bound = found.best.evaluation.design.with_fifo_depths({}), found.bound
            kept = {"design": design.to_json(), "bound": bound.value, "bound_reason": bound.reason}
            _STORE.write(key, kept)
    return KernelDesign(Design.from_json(kept["design"], workload), kept["bound"], kept["bound_reason"])


@cache
def earlier_cycles(workload: str) -> Mapping[int, int]:
    """Cycles that a search has reached before, by the DSPs that it was allowed: a later one is to be as good."""
    with _EARLIER.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] == workload]
    return {int(row["dsp"]): int(row["cycles"]) for row in rows}


def earlier_best(workload: str, dsp: int) -> int | None:
    """The fewest of them with at most so many DSPs; None where none was so small."""
    return min((cycles for allowed, cycles in earlier_cycles(workload).items() if allowed <= dsp), default=None)
