"""What is given out of a finished design, whether a search chose it or it was given: its record, figures, pictures."""

from __future__ import annotations

import json
from typing import Any

from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.report import SynthesisInfo
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.fifo import total_bits
from penstock.dse.finishing.finish import Finished
from penstock.dse.memory import memory_svg
from penstock.dse.partition import partition_svg
from penstock.dse.rungs import Measured
from penstock.services.steps.result import Output

DESIGN, DIES, MEMORIES, SYNTHESIS = "design.json", "dies.svg", "memories.svg", "synthesis.json"
SVG = "image/svg+xml"


def figures_of(finished: Finished, figures: Measured, unsized: Evaluation) -> dict[str, Any]:
    """The design's figures with their evidence, as the run's page shows them; `unsized` is it before its FIFOs were."""
    clock = finished.design.clock_mhz
    bits = {c.name: c.bits for c in unsized.figures.channels if c.kind == "stream"}
    equalised = finished.evaluation.equalised
    normal = {} if equalised is None else {
        "normal_fifo_bits": equalised.normal_bits, "normal_latency_cycles": equalised.normal_latency,
    }  # fmt: skip
    return {
        "evidence": figures.evidence,
        "latency_cycles": figures.latency,
        "latency_us": figures.latency / clock,
        "initial_delay_cycles": figures.initial_delay,
        "interval_cycles": figures.interval,
        "modelled_latency_cycles": unsized.figures.latency,
        "fifo_bits": total_bits(finished.design.fifo_depths, bits),
        "unsized_fifo_bits": total_bits(unsized.design.fifo_depths, bits),
        "retimed_latency_cycles": figures.retimed.latency if figures.retimed else None,
        "resource_share": max(finished.evaluation.shares.values()),
        "share_evidence": finished.evaluation.evidence,
        "dies": len(set(finished.design.dies.values())),
        **normal,
    }


def design_outputs(finished: Finished, synthesis: SynthesisInfo | None) -> dict[str, Output]:
    """The record and its pictures, and what tools said of it where they measured it."""
    record = json.dumps(finished.design.to_json(), indent=1, sort_keys=True) + "\n"
    placed, drawing = finished.placement, Decorating()
    pictures = {
        DIES: drawing.make(DIES, lambda: partition_svg(placed.partition), ""),
        MEMORIES: drawing.make(MEMORIES, lambda: memory_svg(placed.allocation), ""),
    }
    found = {DESIGN: Output(record.encode(), "application/json")}
    found |= {name: Output(picture.encode(), SVG) for name, picture in pictures.items() if picture}
    if synthesis is not None:
        found[SYNTHESIS] = Output(synthesis.model_dump_json(indent=1).encode(), "application/json")
    return found
