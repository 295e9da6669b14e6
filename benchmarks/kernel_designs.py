"""Designs of the published workloads: found by the search, kept as records, and taken from there again."""

from __future__ import annotations

import json
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
from penstock.dse.search.explore import Exploration, explore
from penstock.dse.space.tiling import TilingOptions

PLATFORM = "xcu280"
RECORDS = Path(__file__).parent / "data" / "kernel_designs"


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


@cache
def evaluator_of(workload: str) -> Evaluator:
    """The workload through the product's front end, on the bare device: arguments and weights in on-chip arrays."""
    function = WORKLOADS[workload].model
    model = load_model(parse_reference(f"{function.__code__.co_filename}:{function.__name__}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about its internals
        program = prepare(import_loaded(model))
    return Evaluator.create(program, PLATFORM, options=TilingOptions(weights="rom"))


def limited(evaluator: Evaluator, dsp: int, lut: int | None = None) -> Evaluator:
    """The same under a limit on DSPs, as a user would give it, and one on LUTs where that is asked for."""
    limits = [f"dsp<={dsp}", *([f"lut<={lut}"] if lut is not None else [])]
    return replace(evaluator, goal=Goal.of((), limits).on(evaluator.platform))


def search(workload: str, dsp: int, lut: int | None = None) -> Exploration:
    """The fastest design with at most so many DSPs: what `penstock explore` finds."""
    return explore(limited(evaluator_of(workload), dsp, lut))


def load_designs(workload: str) -> dict[int, Design]:
    """The designs that a search has left, by the number of DSPs that they were allowed; none before the first."""
    path = RECORDS / f"{workload}.json"
    document = json.loads(path.read_text()) if path.exists() else {}
    return {int(dsp): Design.from_json(record, f"{workload}.{dsp}") for dsp, record in document.items()}


def save_designs(workload: str, designs: Mapping[int, Design]) -> None:
    """FIFO depths are left out: they follow from the rest."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    records = {str(dsp): designs[dsp].with_fifo_depths({}).to_json() for dsp in sorted(designs)}
    lines = [f' "{dsp}": {json.dumps(record, sort_keys=True)}' for dsp, record in records.items()]
    (RECORDS / f"{workload}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
