"""The C++ that people read: goldens of one small design, the headers, and what the compiler says of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.hls.scalar_cpp import literal
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.layout import Layout, pack
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.program import Program
from penstock.profiling.csim import FLAGS, build_csim, find_compiler
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens"
INCLUDE = Path(__file__).resolve().parents[2] / "compiler/backend/hls/include"


def small() -> Lowered:
    """One int8 layer with lanes along both dims, and its relu, which goes column by column: a converter between."""
    program = build_network("int8", 4, 4, (Dense(6, False, False),), seed=3)
    kernels = {
        "fc0": KernelDesign(tile=(2, 6, 4), unroll=(1, 3, 2), order=(0, 1, 2)),
        "fc0.relu": KernelDesign(tile=(2, 6), unroll=(1, 2), order=(1, 0)),
    }
    return lower(program, Design(platform="u55c", clock_mhz=300.0, kernels=kernels))


def emitted(lowered: Lowered, folder: Path) -> Path:
    emit(lowered, folder, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    return folder


@pytest.mark.parametrize(
    "name",
    ["hls/penstock_top.cpp", "hls/weights.h", "hls/penstock_top.h", "hls/run_hls.tcl", "hls/hls_config.cfg",
     "csim/penstock_csim.cpp", "interface.json", "ir/2-itensor.mlir", "ir/3-stream.mlir"],
)  # fmt: skip
def test_goldens(name: str, tmp_path: Path) -> None:
    check_golden(GOLDENS / Path(name).name, (emitted(small(), tmp_path) / name).read_text())


def test_streamed_weights_are_packed(tmp_path: Path) -> None:
    program = build_network("int8", 2, 4, (Dense(6, False, False),), seed=3)
    base = default_design(read_graph(program.module), "u55c", 300.0)
    kernels = {n: KernelDesign(k.tile, k.unroll, k.order, "stream") for n, k in base.kernels.items()}
    folder = emitted(lower(program, Design("u55c", 300.0, kernels)), tmp_path)
    packed = np.fromfile(folder / "parameters/fc0_weight.bin", np.int8)
    entries = json.loads((folder / "interface.json").read_text())["parameters"]
    found = next(entry["layout"] for entry in entries if entry["name"] == "fc0.weight")
    layout = Layout(tuple(found["tile"]), tuple(found["word"]))
    assert layout.lanes > 1
    assert (packed == pack(program.params["fc0.weight"], layout).reshape(-1)).all()


def test_csim_names_what_is_wrong(tmp_path: Path) -> None:
    """A short input file ends in a message, not in garbage."""
    folder = emitted(small(), tmp_path)
    csim = build_csim(folder, ToolRunner())
    (folder / "short.bin").write_bytes(b"123")
    answer = subprocess.run(
        [str(csim.program), "short.bin", "--", "out.bin"], cwd=folder, capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert "short.bin holds 3 bytes, one frame is 16" in answer.stderr
    usage = subprocess.run([str(csim.program)], cwd=folder, capture_output=True, text=True)
    assert usage.returncode == 2


def test_csim_checks_what_is_expected(tmp_path: Path) -> None:
    """As a test bench, from anywhere below the folder: exit code 0 for the right outputs alone."""
    lowered = small()
    folder = emitted(lowered, tmp_path)
    csim = build_csim(folder, ToolRunner())
    csim.run_frames(make_inputs(lowered, random_sets=2))
    deep = folder / "hls" / "work" / "deep"
    deep.mkdir(parents=True)
    files = ["csim/run/in0.bin", "--", "csim/run/rtl0.bin", "--", "csim/run/out0.bin"]
    assert subprocess.run([str(csim.program), *files], cwd=deep).returncode == 0
    assert (folder / "csim/run/rtl0.bin").read_bytes() == (folder / "csim/run/out0.bin").read_bytes()
    wrong = bytearray((folder / "csim/run/out0.bin").read_bytes())
    wrong[0] ^= 1
    (folder / "csim/run/out0.bin").write_bytes(wrong)
    answer = subprocess.run([str(csim.program), "-C", str(folder), *files], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "output 0 is not what csim/run/out0.bin holds" in answer.stderr
    assert " ".join(files) in (folder / "hls/run_hls.tcl").read_text()


def test_an_input_that_nobody_reads_has_no_port(tmp_path: Path) -> None:
    """Neither in the C++ nor for the host, which finds the others among the model's inputs by their index."""
    lowered = small()
    assert [port.name for port in lowered.program.signature.inputs] == ["unread", "x"]
    folder = emitted(lowered, tmp_path)
    described = json.loads((folder / "interface.json").read_text())
    assert [(e["name"], e["argument"], e["position"], e["index"]) for e in described["inputs"]] == [("x", "x", 0, 1)]
    assert [(e["argument"], e["position"]) for e in described["outputs"]] == [("output_0", 1)]
    for name in ("hls/penstock_top.cpp", "hls/penstock_top.h", "link/connectivity.cfg"):
        assert "unread" not in (folder / name).read_text()


def test_the_script_names_its_steps(tmp_path: Path) -> None:
    """The Tcl in an interpreter whose HLS commands write down what they are called with."""
    tclsh = shutil.which("tclsh")
    if tclsh is None:
        pytest.skip("tclsh is not installed")
    hls = emitted(small(), tmp_path) / "hls"
    recorder = "proc unknown {args} { puts [join $args] }\nsource run_hls.tcl\n"

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        where = {"PATH": os.environ["PATH"], **environment}
        return subprocess.run([tclsh], cwd=hls, input=recorder, capture_output=True, text=True, env=where)

    assert run().stdout.splitlines()[-1] == "csynth_design"
    lines = run(PENSTOCK_HLS_STEPS="csynth cosim").stdout.splitlines()
    assert lines[-1].startswith(f"cosim_design -argv -C {tmp_path} csim/run/in0.bin")
    assert "set_clock_uncertainty 27%" in lines
    assert "unknown step magic" in run(PENSTOCK_HLS_STEPS="magic").stderr


def test_unsupported_operation_is_named(tmp_path: Path) -> None:
    program = _with_division()
    with pytest.raises(PenstockError, match=r"fc0\.relu: the HLS backend cannot write arith\.floordivsi"):
        emitted(lower(program, default_design(read_graph(program.module), "u55c", 300.0)), tmp_path)


def _with_division() -> Program:
    program = build_network("int8", None, 4, (Dense(4, False, False),), seed=3)
    text = str(program.module).replace("arith.shrsi", "arith.floordivsi")
    return program.with_module(Parser(make_context(), text).parse_module())


HEADER_TEST = r"""
#include <cstdio>
#include <cmath>
#include "penstock_ops.h"
#include "hls_vector.h"
#include "hls_streamofblocks.h"
typedef int block_t[2][3];
int main() {
    int bad = 0;
    for (long long x = -300; x <= 300; ++x) {
        ap_int<5> s = x;
        ap_uint<5> u = x;
        long long wrapped = ((x % 32) + 32) % 32;
        bad += (long long)u != wrapped;
        bad += (long long)s != (wrapped >= 16 ? wrapped - 32 : wrapped);
        bad += (long long)pk::add<int8_t>((int8_t)x, (int8_t)100) != (long long)(int8_t)(x + 100);
        bad += (long long)pk::mul<int8_t>((int8_t)x, (int8_t)37) != (long long)(int8_t)((int8_t)x * 37);
        bad += (long long)pk::mul<ap_int<5> >(s, s) != (long long)ap_int<5>((long long)s * (long long)s);
    }
    bad += pk::add<int32_t>(INT32_MAX, 1) != INT32_MIN;
    bad += pk::mul<int64_t>(INT64_MAX, 2) != -2;
    bad += pk::sext<int32_t>(true) != -1;
    bad += pk::zext<int32_t>((int8_t)-1) != 255;
    bad += pk::trunc<int8_t>((int32_t)300) != 44;
    bad += pk::trunc<bool>((int32_t)2) != false;
    bad += pk::lshr<int8_t>((int8_t)-128, (int8_t)7) != 1;
    bad += pk::to_int<int8_t>(1e9f) != 127;
    bad += pk::to_int<int8_t>(-1e9f) != -128;
    bad += pk::to_int<int8_t>(-1.9f) != -1;
    bad += pk::to_int<int32_t>(NAN) != 0;
    bad += pk::maximum(1.0f, 2.0f) != 2.0f;
    bad += !(pk::maximum(NAN, 2.0f) != pk::maximum(NAN, 2.0f));
    bad += pk::maxnum(NAN, 2.0f) != 2.0f;
    hls::stream_of_blocks<block_t> blocks;
    for (int i = 0; i < 2; ++i) { hls::write_lock<block_t> b(blocks); b[1][2] = 10 + i; }
    for (int i = 0; i < 2; ++i) { hls::read_lock<block_t> b(blocks); bad += b[1][2] != 10 + i; }
    bad += !blocks.empty();
    std::printf("%d\n", bad);
    return bad != 0;
}
"""


def test_headers_mean_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "t.cpp").write_text(HEADER_TEST)
    build = [find_compiler(), *FLAGS, "-fsanitize=undefined", "-fno-sanitize-recover=all", "-I", str(INCLUDE), "t.cpp"]
    subprocess.run([*build, "-o", "t"], cwd=tmp_path, check=True)
    assert subprocess.run(["./t"], cwd=tmp_path, capture_output=True, text=True).stdout == "0\n"


@pytest.mark.parametrize("value", [0.1, 1e-40, -3.4028235e38, 1.0, 16777216.0, 1 / 3, float("inf"), 2.0**-149])
def test_float_literals_read_back(value: float) -> None:
    from xdsl.dialects.builtin import f32

    text = literal(np.float32(value), f32)
    assert text.endswith("f") or text == "INFINITY"
    if text != "INFINITY":
        assert np.float32(text[:-1]) == np.float32(value)
        assert any(c in text[:-1] for c in ".e")


def test_layers_may_be_called_as_they_like(tmp_path: Path) -> None:
    """Layers named after C++'s words, functions of math.h and the generator's own names."""
    program = build_network("int8", 2, 4, (Dense(6, False, False), Dense(4, False, False)), seed=3)
    text = str(program.module)
    renamed = {'"fc0"': '"double"', '"fc0.relu"': '"log"', '"fc1"': '"kernel_0"', '"fc1.relu"': '"x0"', '"x"': '"w0"'}
    for old, new in renamed.items():
        text = text.replace(f"penstock.layer = {old}", f"penstock.layer = {new}")
        text = text.replace(f"penstock.name = {old}", f"penstock.name = {new}")
    program = program.with_module(Parser(make_context(), text).parse_module())
    design = default_design(read_graph(program.module), "u55c", 300.0)
    lowered = lower(program, replace(design, groups={"kernel_0": 1, "x0": 1}))
    csim = build_csim(emitted(lowered, tmp_path), ToolRunner())
    frame = make_inputs(lowered, random_sets=1)[0]
    assert all((got == wanted).all() for got, wanted in zip(csim(frame), lowered.run_itensor(frame), strict=True))
