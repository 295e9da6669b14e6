"""FIFOs of convolutional networks, sized, beside STE4FIFO's: bytes, and seconds that sizing took.

Each network is searched in W8A8 as `penstock explore --quantize w8a8 --objective throughput` does it, and the FIFOs of
its best design are sized so that frames in a row leave as early as with FIFOs without limits. Of STE4FIFO only the
bytes are known: neither its frames, widths and lanes, nor what it counts as a FIFO. So ours are counted twice: the
FIFOs, and with them the lines that windows wait in, which other flows may keep in FIFOs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.registry import Value
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search.explore import explore
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import outlook_of
from penstock.services.jobs.model import load_program

MOST_EVENTS = 100_000_000
"""A run of more takes minutes to simulate: its FIFOs stay as the search had them, and the row says `modelled`."""
TRIALS = 4


@dataclass(frozen=True)
class Cnn:
    """A network, where it runs, and the published bytes."""

    name: str
    model: str
    platform: str
    published: int
    dsp: int | None = None


CNNS = (
    Cnn("cnn/resnet8", "zoo:resnet8", "kv260", 39_809),
    Cnn("cnn/resnet20", "zoo:resnet20", "kv260", 57_952, dsp=636),
    Cnn("cnn/mobilenet_v2", "zoo:mobilenet_v2", "zcu104", 341_344),
    Cnn("cnn/yolov5n", "zoo:yolov5n", "zcu104", 1_465_118),
)


def row_of(network: Cnn) -> Mapping[str, Value]:
    began = time.process_time()
    program = load_program(network.model, "w8a8")
    goal = Goal.of(("throughput",), [] if network.dsp is None else [f"dsp<={network.dsp}"])
    evaluator = Evaluator.create(program, network.platform, quantize="w8a8", goal=goal)
    try:
        best = evaluator.proven(explore(evaluator, TRIALS).best.evaluation)
    except PenstockError as error:
        if error.code != "nothing-fits":
            raise
        print(f"fifo: {network.name}: {error.limit}", file=sys.stderr, flush=True)
        return {
            "network": network.name, "model": network.model, "platform": network.platform, "bytes_fifo": None,
            "bytes_published": network.published, "search_cpu_s": round(time.process_time() - began, 1),
            "note": error.limit, "evidence": "modelled",
        }  # fmt: skip
    searched, sizing_began = time.process_time() - began, time.process_time()
    planned = evaluator.assembler.network(best.design)
    few = outlook_of(planned, evaluator.platform, evaluator.clock_mhz).events <= MOST_EVENTS
    sized = evaluator.tightened(best) if few else best
    seconds = time.process_time() - sizing_began
    before, after = (fifo_bytes(planned, one.design.fifo_depths) for one in (best, sized))
    print(f"fifo: {network.name}: {after} bytes", file=sys.stderr, flush=True)
    return {
        "network": network.name, "model": network.model, "edges": len(planned.channels), "platform": network.platform,
        "interval_cycles": sized.figures.interval, "dsp": sized.figures.resources.dsp,
        "bytes_before": before, "bytes_fifo": after, "bytes_with_lines": after + line_bytes(planned),
        "bytes_published": network.published, "sizing_cpu_s": round(seconds, 1), "search_cpu_s": round(searched, 1),
        "note": sized.sizing_note, "evidence": "simulated" if few else "modelled",
    }  # fmt: skip


def fifo_bytes(network: TaskNetwork, depths: Mapping[str, int]) -> int:
    """Of all FIFOs, those behind loads too."""
    fifos = [channel for channel in network.channels.values() if channel.kind == "stream"]
    return sum(channel.bits * depths.get(channel.name, channel.depth) for channel in fifos) // 8


def line_bytes(network: TaskNetwork) -> int:
    """Of what waits elsewhere: rows and columns in front of windows, and blocks between two tasks."""
    kept = {(task.name, m.name): m for task in network.tasks for nest in task.nests for m in nest.memories}
    lines = sum(memory.shape.bits for (_, name), memory in kept.items() if name.startswith("line"))
    blocks = [channel for channel in network.channels.values() if channel.kind != "stream"]
    return (lines + sum(channel.bits * channel.words * channel.depth for channel in blocks)) // 8
