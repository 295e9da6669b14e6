"""The emitted C++ under strict eyes: sanitizers, more warnings, AMD's published headers in place of ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.hls import emit_hls
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import stream
from penstock.compiler.frontend.context import make_context
from penstock.compiler.layout import Layout, pack
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.pipeline.verify import compare, make_inputs
from penstock.compiler.program import Program
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.profiling.csim import FLAGS, build_csim, find_compiler
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network
from tests.compiler.test_hls import HEADER_TEST, INCLUDE
from tests.compiler.test_wide_tokens import wide

HEADERS = "PENSTOCK_HLS_HEADERS"
PART = "xcu55c-fsvh2892-2L-e"
MORE_WARNINGS = ("-Wshadow", "-Wconversion", "-Wpedantic", "-Wcast-align")


def with_lanes(program: Program, *, weights: str = "rom", port_bits: int = 8, split: bool = False) -> Lowered:
    """Lanes along every dim, so that tokens are vectors and orders differ; `split` gives each layer a kernel."""
    design = default_design(read_graph(program.module), "u55c", 300.0)
    lanes = {3: ((2, 8, 8), (1, 4, 2), (2, 0, 1)), 2: ((2, 4), (1, 2), (0, 1)), 1: ((2,), (1,), (0,))}
    kernels = {
        name: KernelDesign(*lanes[len(kernel.tile)], weights="stream" if weights == "stream" else "rom")
        for name, kernel in design.kernels.items()
    }
    groups = {name: number for number, name in enumerate(kernels)} if split else {}
    return lower(program, replace(design, kernels=kernels, groups=groups, port_bits=port_bits))


def network(kind: str, *, rotate: bool = False) -> Program:
    """Two layers of 16 with a residual sum; `rotate` cuts the result in two and joins the parts again."""
    layers = (Dense(16, False, False), Dense(16, False, True))
    return build_network(kind, 4, 16, layers, seed=11, tap=True, rotate=rotate)


DESIGNS: dict[str, Callable[[], Lowered]] = {
    "int8, wide ports": lambda: with_lanes(network("int8"), weights="stream", port_bits=512),
    "int8, the widest ports": lambda: with_lanes(network("int8"), weights="stream", port_bits=1024),
    "float32, wide ports, parts": lambda: with_lanes(network("float32", rotate=True), port_bits=256),
    "int8, parts": lambda: with_lanes(network("int8", rotate=True), weights="stream"),
    "float32, a kernel a layer": lambda: with_lanes(network("float32"), split=True, port_bits=512),
    "int8, tokens in pieces": lambda: wide("int8", 600),
    "float32, tokens in pieces": lambda: wide("float32", 131),
}


@pytest.fixture(scope="module", params=DESIGNS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def emitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lowered, Path]:
    lowered, folder = DESIGNS[request.param](), tmp_path_factory.mktemp("strict")
    emit(lowered, folder, part=PART, clock_mhz=300.0)
    return lowered, folder


def check(lowered: Lowered, folder: Path, *, sanitize: bool = False, headers: Path | None = None) -> None:
    frames = make_inputs(lowered, random_sets=2)
    got = build_csim(folder, ToolRunner(), sanitize=sanitize, headers=headers).run_frames(frames)
    wanted = [lowered.run_itensor(frame) for frame in frames]
    result = compare("csim", "interpreter", [a for f in got for a in f], [a for f in wanted for a in f])
    assert result.equal, result


def vendor_headers() -> Path:
    named = os.environ.get(HEADERS)
    if not named:
        pytest.skip(f"{HEADERS} does not name a folder with AMD's ap_int.h and hls_stream.h")
    folder = Path(named)
    missing = [name for name in ("ap_int.h", "hls_stream.h") if not (folder / name).is_file()]
    assert not missing, f"{HEADERS}={named} has no {missing}"
    return folder


@pytest.mark.slow
def test_clean_under_sanitizers(emitted: tuple[Lowered, Path]) -> None:
    check(*emitted, sanitize=True)


@pytest.mark.slow
def test_the_same_with_the_vendors_headers(emitted: tuple[Lowered, Path]) -> None:
    check(*emitted, headers=vendor_headers())


@pytest.mark.slow
def test_scalar_operations_with_the_vendors_headers(tmp_path: Path) -> None:
    (tmp_path / "t.cpp").write_text(HEADER_TEST)
    include = ["-isystem", str(vendor_headers()), "-isystem", str(INCLUDE), "-I", str(INCLUDE)]
    subprocess.run([find_compiler(), *FLAGS, *include, "t.cpp", "-o", "t"], cwd=tmp_path, check=True)
    assert subprocess.run(["./t"], cwd=tmp_path, capture_output=True, text=True).stdout == "0\n"


@pytest.mark.slow
def test_no_warning_however_strict(emitted: tuple[Lowered, Path]) -> None:
    _, folder = emitted
    sources = ["hls/penstock_top.cpp", "csim/penstock_csim.cpp", "csim/csim_main.cpp"]
    for source in sources:
        command = [find_compiler(), *FLAGS, *MORE_WARNINGS, "-fsyntax-only", "-I", "csim/include", "-I", "hls", source]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr


GUARDED = """
"stream.top"() <{sym_name = "penstock_top", argument_names = ["x", "y"], argument_kinds = ["input", "output"],
    layouts = [#itensor.layout<tile: [2, 4], word: [1, 4]>, #itensor.layout<tile: [2, 4], word: [2, 4]>]}> ({
^bb0(%x: memref<2x2x2x1xvector<1x4xi8>>, %y: memref<2x2x1x1xvector<2x4xi8>>):
  %c = stream.stream "c" : !stream.stream<vector<2x4xi8>, depth: 2>
  "stream.task"() <{sym_name = "fill", layer = "x", group = #builtin.int<0>}> ({
    %line = stream.buffer "line" : memref<2x4xi8>
    "nest.nest"() <{sym_name = "fill", loops = #nest.loops<a: 2, b: 2, r: 2>, block_loops = #builtin.int<0>}> ({
      %v = "nest.load"(%x) <{address = affine_map<(d0, d1, d2) -> (d0, d1, d2, 0)>, when = #nest.when<d1 eq 0>}>
        : (memref<2x2x2x1xvector<1x4xi8>>) -> vector<1x4xi8>
      "nest.store"(%v, %line) <{address = affine_map<(d0, d1, d2) -> (d2, 0)>, when = #nest.when<d1 eq 0>}>
        : (vector<1x4xi8>, memref<2x4xi8>) -> ()
      %w = "nest.load"(%line) <{address = affine_map<(d0, d1, d2) -> (0, 0)>, when = #nest.when<d2 eq 1>}>
        : (memref<2x4xi8>) -> vector<2x4xi8>
      "nest.write"(%w, %c) <{when = #nest.when<d2 eq 1>}>
        : (vector<2x4xi8>, !stream.stream<vector<2x4xi8>, depth: 2>) -> ()
    }) : () -> ()
  }) : () -> ()
  "stream.task"() <{sym_name = "store", layer = "y", group = #builtin.int<0>}> ({
    "nest.nest"() <{sym_name = "store", loops = #nest.loops<a: 2, b: 2>, block_loops = #builtin.int<0>}> ({
      %t = "nest.read"(%c) <{when = #nest.when<>}>
        : (!stream.stream<vector<2x4xi8>, depth: 2>) -> vector<2x4xi8>
      "nest.store"(%t, %y) <{address = affine_map<(d0, d1) -> (d0, d1, 0, 0)>, when = #nest.when<>}>
        : (vector<2x4xi8>, memref<2x2x1x1xvector<2x4xi8>>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
"""
"""Loads a word where its guard holds, stores it before it loads all of them, and sends each pair of rows twice."""


def test_guarded_loads_of_words(tmp_path: Path) -> None:
    module = ModuleOp([Parser(make_context(), GUARDED).parse_op()])
    module.verify()
    module = GenerateDirectives(Design("u55c", 300.0, {})).apply(module)
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    emit_hls(top, {}, tmp_path, title="guards", part=PART, clock_ns=3.333)
    text = (tmp_path / "hls/penstock_top.cpp").read_text()
    assert "value0 = x[a * 4 + b * 2 + r];" in text
    assert "const hls::vector<int8_t, 4> *x" in text
    x = np.random.default_rng(0).integers(-128, 127, (4, 8), dtype=np.int8)
    (got,) = build_csim(tmp_path, ToolRunner(), sanitize=True)([x])
    left = x[:, :4]  # the tile that the guard lets through
    assert (got == np.concatenate([left, left], axis=1)).all()
    packed = pack(x, Layout((2, 4), (1, 4))).reshape(-1, 4)
    assert (packed[:2] == left[:2]).all()  # the first words of the first tile
