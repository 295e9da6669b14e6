"""Sections of a report that are computed: from a program, from arrays, from counts and a platform's offer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.host_check import at_largest
from penstock.compiler.host_parts import HostParts
from penstock.compiler.package.report import (
    Accuracy,
    Amount,
    Evidence,
    HostInfo,
    HostOperation,
    KernelResources,
    KernelTiming,
    ModelInfo,
    PlatformInfo,
    PortInfo,
    ResourceUse,
    SimulatedRun,
    TimeFigures,
    Timing,
)
from penstock.compiler.package.report_timing import LengthsTiming, ListTiming
from penstock.compiler.platforms import RESOURCE_NAMES, Platform
from penstock.compiler.program import EvaluationSet, Port, Program


def model_digest(program: Program) -> str:
    """Identifies what was compiled: graph, signature and every weight."""
    digest = hashlib.sha256(str(program.module).encode())
    digest.update(repr(program.signature).encode())
    if program.host is not None:
        digest.update(json.dumps(program.host.graph, sort_keys=True).encode())
    stored = {} if program.host is None else {f"host {name}": v for name, v in program.host.values.items()}
    for name, array in sorted({**program.params, **stored}.items()):
        values = np.ascontiguousarray(array)
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def model_section(program: Program, layers: int, quantisation: str | None) -> ModelInfo:
    return ModelInfo(
        name=program.name,
        digest=model_digest(program),
        layers=layers,
        parameters=sum(int(values.size) for values in program.params.values()),
        quantisation=quantisation,
        inputs=tuple(port_section(p) for p in program.signature.inputs),
        outputs=tuple(port_section(p) for p in program.signature.outputs),
    )


def host_section(parts: HostParts | None) -> HostInfo | None:
    if parts is None:
        return None
    graph = at_largest(parts.graph)

    def ports(documents: Sequence[Mapping[str, Any]]) -> tuple[PortInfo, ...]:
        return tuple(
            PortInfo(name=p["name"], shape=tuple(p["shape"]), dtype=p["dtype"], quantised=False) for p in documents
        )

    def operations(nodes: Sequence[Mapping[str, Any]]) -> tuple[HostOperation, ...]:
        return tuple(HostOperation(operation=n["op"], layer=n["layer"], why=n["why"]) for n in nodes)

    return HostInfo(
        inputs=ports(graph["inputs"]),
        outputs=ports(graph["outputs"]),
        before=operations(graph["before"]),
        between=tuple(operations(turn["operations"]) for turn in graph.get("between", ())),
        after=operations(graph["after"]),
        bytes=sum(int(values.nbytes) for values in parts.values.values()),
    )


def platform_section(platform: Platform) -> PlatformInfo:
    return PlatformInfo(name=platform.name, title=platform.title, part=platform.part, dies=len(platform.dies))


def timing_section(
    clock_mhz: float,
    measured: Sequence[TimeFigures],
    kernels: Sequence[KernelTiming],
    note: str = "",
    simulated: SimulatedRun | None = None,
    all_layers: ListTiming | None = None,
    lengths: LengthsTiming | None = None,
) -> Timing:
    """The strongest of what was measured, with all of it beside; `measured` goes from weak to strong."""
    best = measured[-1] if measured else None
    latency, interval = (best.latency_cycles, best.interval_cycles) if best else (None, None)
    return Timing(
        evidence=best.evidence if best else None,
        clock_mhz=clock_mhz,
        latency_cycles=latency,
        latency_us=None if latency is None else round(latency / clock_mhz, 4),
        interval_cycles=interval,
        inferences_per_second=round(clock_mhz * 1e6 / interval, 1) if interval else None,
        kernels=tuple(kernels),
        note=note,
        initial_delay_cycles=best.initial_delay_cycles if best else None,
        measured=tuple(measured),
        simulated=simulated,
        all_layers=all_layers,
        lengths=lengths,
    )


def resources_section(
    used: Mapping[str, int | None],
    platform: Platform,
    kernels: Sequence[KernelResources],
    evidence: Evidence | None,
    note: str = "",
) -> ResourceUse:
    """`used` by resource name; one that is missing there was not measured."""
    have, limits = platform.available.as_dict(), platform.limits.as_dict()
    amount = {name: _amount(used.get(name), have[name], limits[name]) for name in RESOURCE_NAMES}
    return ResourceUse(
        evidence=evidence,
        lut=amount["lut"],
        ff=amount["ff"],
        dsp=amount["dsp"],
        bram18=amount["bram18"],
        uram=amount["uram"],
        kernels=tuple(kernels),
        note=note,
    )


def accuracy_section(held_out: EvaluationSet, answers: Array, evidence: Evidence) -> Accuracy:
    """`answers` are the accelerator's, one row an example, as PyTorch's in `held_out.outputs`."""
    if len(answers) != len(held_out.labels):
        raise PenstockError(
            code="evaluation-rows", what=f"{len(answers)} answers for {len(held_out.labels)} examples",
            where=held_out.name, hint="run every example of the held-out set",
        )  # fmt: skip
    found, reference = classes(answers), classes(held_out.outputs)
    total = len(held_out.labels)
    return Accuracy(
        dataset=held_out.name,
        examples=total,
        float_accuracy=np.count_nonzero(reference == held_out.labels) / total,
        accelerator_accuracy=np.count_nonzero(found == held_out.labels) / total,
        agreement=np.count_nonzero(found == reference) / total,
        evidence=evidence,
    )


def classes(scores: Array) -> Array:
    """The class of every row: the index of its largest score, or its one whole number."""
    if scores.dtype.kind in "iu" and scores.size == len(scores):
        return scores.reshape(-1)
    return np.argmax(scores.reshape(len(scores), -1), axis=1)


def _amount(used: int | None, available: int, limit: int) -> Amount:
    share = used / available if used is not None and available > 0 else None
    return Amount(used=used, available=available, limit=limit, share=share)


def port_section(port: Port) -> PortInfo:
    return PortInfo(name=port.name, shape=port.shape, dtype=port.dtype, quantised=port.quant is not None)
