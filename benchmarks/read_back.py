"""Our own emitted C++ of the zoo read back by the front end for other people's: nests, II and depth side by side."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.registry import Value
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.dialects import stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.kernels.read_back import ReadBack, read_back

MODELS = ("mlp", "attention", "ffn", "gpt2", "llama", "lenet5", "resnet8")
QUANTISATIONS = (None, "w8a8")
_PLATFORM, _CLOCK_MHZ = "u55c", 300.0


def own_rows(wanted: str) -> Iterator[Mapping[str, Value]]:
    """A row a model of the zoo at its defaults, as it is and in W8A8."""
    for model in MODELS:
        for quantize in QUANTISATIONS:
            name = model if quantize is None else f"{model} {quantize}"
            if wanted in name:
                yield _row(name, model, quantize)


def _row(name: str, model: str, quantize: str | None) -> Mapping[str, Value]:
    started = time.process_time()
    try:
        found = read_lowered(_lowered(model, quantize))
    except PenstockError as error:
        return {"design": name, "better": None, "refused": error.one_line()}
    nests = found.nests
    near = sum(one.deeper is not None and abs(one.deeper) <= 1 for one in nests)
    return {
        "design": name, "nests": len(nests), "same_nests": sum(one.same_nest for one in nests),
        "same_ii": sum(one.same_ii for one in nests), "same_depth": sum(one.deeper == 0 for one in nests),
        "depth_within_1": near, "other_tokens": len(found.other_tokens), "better": found.same,
        "seconds": time.process_time() - started,
    }  # fmt: skip


def _lowered(model: str, quantize: str | None) -> Lowered:
    program = prepare(import_model(f"zoo:{model}"), quantize)
    return lower(program, default_design(read_graph(program.module), _PLATFORM, _CLOCK_MHZ, quantize))


def read_lowered(lowered: Lowered) -> ReadBack:
    """A lowered design written as C++, and read back."""
    platform = load_platform(lowered.design.platform)
    clock = platform.check_clock(lowered.design.clock_mhz)
    top = next(op for op in lowered.stream.ops if isinstance(op, stream.TopOp))
    with tempfile.TemporaryDirectory(prefix="penstock-read-back-") as folder:
        emit(lowered, Path(folder), part=platform.part, clock_mhz=clock)
        return read_back(top, load_library(platform.operators, clock), Path(folder))
