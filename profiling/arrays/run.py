"""Programs on an array that was built once: its C++ by a compiler, its SystemVerilog in Verilator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.mesh.instructed.array import CoreArray
from penstock.compiler.mesh.instructed.cpp import cpp_files, memories
from penstock.compiler.mesh.instructed.images import memories_of, stored_of
from penstock.compiler.mesh.instructed.loading import packed, tokens_of
from penstock.compiler.mesh.instructed.programs import ArrayProgram
from penstock.compiler.mesh.instructed.rtl import PROGRAM, design_of
from penstock.profiling.csim import FLAGS, find_compiler
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.open_rtl.verilate import BuiltProgram, build
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner


@dataclass(frozen=True)
class ArrayMeasured:
    stored: Array
    cycles: int


@dataclass(frozen=True)
class ArrayInVerilator:
    array: CoreArray
    built: BuiltProgram
    tools: ToolRunner

    @staticmethod
    def of(array: CoreArray, tools: ToolRunner, *, long_run: bool = False) -> ArrayInVerilator:
        return ArrayInVerilator(array, build(design_of(array), tools, long_run=long_run), tools)

    def run(self, program: ArrayProgram, tensors: Mapping[str, Array]) -> ArrayMeasured:
        tokens = packed(tokens_of(program))
        design = design_of(self.array, program, len(tokens))
        inputs = {**memories_of(program, tensors), PROGRAM: tokens.view(np.int32).reshape(-1, 2)}
        run = simulate_rtl(design, inputs, program=self.built, tools=self.tools)
        if run.deadlocked or run.latency is None:
            raise ProfilingError(
                "tool-failed", what="the array stops", where=design.top, log_tail="\n".join(run.stuck),
                hint="this is a defect of its programs; please report it",
            )  # fmt: skip
        return ArrayMeasured(stored_of(program, run.outputs), run.latency)


@dataclass(frozen=True)
class ArrayInCpp:
    array: CoreArray
    folder: Path
    tools: ToolRunner

    @staticmethod
    def of(array: CoreArray, folder: Path, tools: ToolRunner) -> ArrayInCpp:
        """Builds in a folder what `cpp_files` says."""
        for name, text in cpp_files(array).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        argv = (find_compiler(), *FLAGS, "-I", "csim", "penstock_array.cpp", "main.cpp", "-o", "csim/array")
        logs = folder / "csim" / "build"
        logs.mkdir(exist_ok=True)
        result = tools.run(ToolCommand(argv, folder.resolve(), logs, timeout=600.0))
        if not result.ok:
            raise result.error("csim", "the C++ of the array is not accepted; its log is csim/build/stderr.log")
        return ArrayInCpp(array, folder.resolve(), tools)

    def run(self, program: ArrayProgram, tensors: Mapping[str, Array]) -> Array:
        work = self.folder / "csim" / "run"
        work.mkdir(exist_ok=True)
        packed(tokens_of(program)).tofile(work / "load.bin")
        filled = memories_of(program, tensors)
        arguments = ["load.bin"]
        for name, written in memories(self.array):
            arguments.append(str(program.words[name]) if written else f"{name}.bin")
            if not written:
                np.ascontiguousarray(filled[name]).tofile(work / f"{name}.bin")
        result = self.tools.run(ToolCommand((str(self.folder / "csim" / "array"), *arguments), work, work, timeout=600))
        if not result.ok:
            raise result.error("csim", "the C++ of the array failed at run time; its log is csim/run/stderr.log")
        outputs = {
            name: np.fromfile(work / f"{name}.bin", np.int8) for name, written in memories(self.array) if written
        }
        return stored_of(program, outputs)
