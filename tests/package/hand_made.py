"""A tiny accelerator written by hand: one int8 dense layer of 16 inputs and 4 outputs, with its package.

The C interface of a package is tested against this one, so that a change of the emitter cannot hide a
change of the interface.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.arrays import Array
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.package import Expected, PackageContents, Report, collect_package
from penstock.compiler.package.report import (
    BitstreamInfo,
    ChannelInfo,
    CsimCheck,
    DesignInfo,
    ExplorationReport,
    KernelInfo,
    KernelResources,
    KernelTiming,
    LevelCheck,
    Product,
    PytorchCheck,
    TimeFigures,
    TrialInfo,
    Verify,
)
from penstock.compiler.package.sections import (
    accuracy_section,
    model_section,
    platform_section,
    resources_section,
    timing_section,
)
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import EvaluationSet, Port, Program, Quantisation, Samples, Signature

IN_SCALE = 0.125
OUT_SCALE = (0.01, 0.02, 0.03, 0.04)
TOLERANCE = 4.0

TOP_CPP = """
#include "weights.h"
void penstock_top(const signed char *x, const int *bias, int *y) {
  for (int row = 0; row < ROWS; row++)
    for (int i = 0; i < 4; i++) {
      int sum = bias[i];
      for (int k = 0; k < 16; k++) sum += int(x[row * 16 + k]) * int(WEIGHTS[i][k]);
      y[row * 4 + i] = sum;
    }
}
"""
MAIN_CPP = """
void penstock_top(const signed char *x, const int *bias, int *y);
extern "C" int penstock_csim(const void *const *inputs, const void *const *parameters, void *const *outputs) {
  penstock_top(static_cast<const signed char *>(inputs[0]), static_cast<const int *>(parameters[0]),
               static_cast<int *>(outputs[0]));
  return 0;
}
"""


def weights() -> tuple[Array, Array]:
    random = np.random.default_rng(7)
    return random.integers(-100, 100, (4, 16)).astype(np.int8), random.integers(-500, 500, 4).astype(np.int32)


def exact(rows: Array) -> Array:
    """What the accelerator must answer, row by row."""
    matrix, bias = weights()
    quantised = np.clip(np.rint(rows.astype(np.float32) / np.float32(IN_SCALE)), -128, 127).astype(np.int32)
    return (quantised @ matrix.T.astype(np.int32) + bias).astype(np.int32)


def answers(rows: Array) -> Array:
    """What the host must make of `exact`."""
    return (exact(rows).astype(np.float32) * np.asarray(OUT_SCALE, np.float32)).astype(np.float32)


def program(batch: int = 1) -> Program:
    matrix, bias = weights()
    random = np.random.default_rng(3)
    rows = random.uniform(-4, 4, (20, 16)).astype(np.float32)
    scale = np.asarray(OUT_SCALE, np.float32)
    reference = (rows / IN_SCALE) @ matrix.T.astype(np.float32) * scale + bias * scale
    sample = rows[:batch]
    return Program(
        name="hand made",
        module=ModuleOp([]),
        params={"weight": matrix, "bias": bias},
        signature=Signature(
            (Port("x", (batch, 16), "int8", Quantisation(IN_SCALE, "int8")),),
            (Port("scores", (batch, 4), "int32", Quantisation(OUT_SCALE, "int32")),),
        ),
        samples=Samples((sample,), (reference[:batch].astype(np.float32),)),
        evaluation=EvaluationSet("hand-made set", rows, np.argmax(reference, axis=1), reference.astype(np.float32)),
    )


def write_emitted(folder: Path, batch: int = 1) -> None:
    """What the HLS backend leaves behind, in its simplest form."""
    matrix, bias = weights()
    for part in ("hls", "csim/include", "parameters", "ir"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    rows = ",".join("{" + ",".join(map(str, row)) + "}" for row in matrix.tolist())
    (folder / "hls" / "weights.h").write_text(
        f"enum {{ ROWS = {batch} }};\nstatic const signed char WEIGHTS[4][16] = {{{rows}}};\n"
    )
    (folder / "hls" / "penstock_top.cpp").write_text(TOP_CPP)
    (folder / "csim" / "csim_main.cpp").write_text(MAIN_CPP)
    (folder / "csim" / "include" / "ap_int.h").write_text("// nothing is needed here\n")
    (folder / "parameters" / "bias.bin").write_bytes(bias.astype("<i4").tobytes())
    (folder / "ir" / "1-linalg.mlir").write_text("builtin.module {\n}\n")
    (folder / "interface.json").write_text(json.dumps({
        "top": "penstock_top",
        "inputs": [{"name": "x", "argument": "x", "position": 0, "index": 0, "dtype": "int8",
                    "shape": [16] if batch == 1 else [batch, 16]}],
        "parameters": [{"name": "bias", "argument": "bias", "position": 1, "index": 0, "shape": [4], "dtype": "int32",
                        "file": "parameters/bias.bin"}],
        "outputs": [{"name": "scores", "argument": "y", "position": 2, "index": 0, "dtype": "int32",
                     "shape": [4] if batch == 1 else [batch, 4]}],
    }))  # fmt: skip


def design() -> Design:
    return Design("zcu104", 200.0, {"fc": KernelDesign((4, 16), (1, 4), (0, 1))}, quantize="w8a8")


def report(model: Program) -> Report:
    """A report with every section; figures that this design does not have are left unmeasured."""
    platform = load_platform("zcu104")
    evaluation, samples = model.evaluation, model.samples
    assert evaluation is not None
    assert samples is not None
    largest = float(np.max(np.abs(answers(samples.inputs[0]) - samples.outputs[0])))
    kernels = [KernelTiming(kernel="fc", nest="fc.compute", ii=1, depth=9, trips=16, latency_cycles=25,
                            initial_delay_cycles=12, evidence="modelled")]  # fmt: skip
    trials = tuple(
        TrialInfo(number=i, state="complete" if i != 3 else "infeasible", latency_cycles=100 // (i + 1),
                  resource_share=0.02 * (i + 1), evidence="modelled", on_front=i < 3, chosen=i == 2)
        for i in range(5)
    )  # fmt: skip
    return Report(
        product=Product(version="0.0.test"),
        name=model.name,
        model=model_section(model, layers=1, quantisation="w8a8"),
        platform=platform_section(platform),
        design=DesignInfo(
            digest=design().digest(),
            clock_mhz=200.0,
            kernels=(KernelInfo(name="fc", operation="dense 16 → 4", trips=(4, 16), tile=(4, 16),
                                unroll=(1, 4), order=(0, 1), weights="rom"),),
            channels=(
                ChannelInfo(name="x", source="", target="fc", kind="fifo",
                            token="vector<4xi8>", width_bits=32, depth=2),
                ChannelInfo(name="y", source="fc", target="", kind="fifo",
                            token="vector<1xi32>", width_bits=32, depth=2),
            ),
        ),
        verify=Verify(
            csim=CsimCheck(equal=True, values=4, bits_equal=4, samples=1, evidence="simulated"),
            pytorch=PytorchCheck(
                max_abs_error=largest, tolerance=TOLERANCE, ok=True, samples=1, evidence="simulated"
            ),
            levels=(LevelCheck(level="stream", against="linalg", equal=True, values=4),),
        ),
        timing=timing_section(200.0, [TimeFigures(evidence="modelled", latency_cycles=25)], kernels),
        resources=resources_section(
            {"lut": 900, "ff": 1200, "dsp": 4, "uram": None}, platform,
            [KernelResources(kernel="fc", lut=900, ff=1200, dsp=4, evidence="modelled")], "modelled",
        ),
        accuracy=accuracy_section(evaluation, answers(evaluation.inputs), "simulated"),
        exploration=ExplorationReport(trials=trials, complete=4, infeasible=1, failed=0, sampler="TPE", seed=1),
        tools={"g++": "test"},
    )  # fmt: skip


def collect(model: Program, emitted: Path, bitstream: BitstreamInfo | None = None) -> PackageContents:
    """A package of the model with the sources that lie in `emitted`."""
    assert model.samples is not None
    assert model.evaluation is not None
    expected = Expected((exact(model.samples.inputs[0]),), exact(model.evaluation.inputs))
    found = report(model).model_copy(update={"bitstream": bitstream})
    files = {bitstream.path: b"\x01\x02"} if bitstream and bitstream.path else None
    return collect_package(model, design(), emitted, found, expected, files)


def contents(folder: Path, batch: int = 1) -> PackageContents:
    """The whole package of the hand-made design, with its sources written below `folder`."""
    write_emitted(folder, batch)
    return collect(program(batch), folder)
