"""Arguments that are arrays on the chip: cut into banks in the C++, met in one cycle, padded where tiles are uneven."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import workloads
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.platforms import load_platform, parse_platform
from penstock.compiler.schedule import load_library, schedule_nest
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner

KERNELS = {
    "mm": KernelDesign((3, 6, 8), (3, 1, 4), (0, 1, 2), bindings={"arith.addf": "fabric"}),
    "mul_2.add": KernelDesign((3, 6), (1, 1), (0, 1)),
}


def lowered():
    module, inputs = workloads.gemm(10, 12, 16)
    program = prepare(import_loaded(LoadedModel("gemm", "workloads.py:gemm", module, inputs)))
    return lower(program, Design("xcu280", 300.0, KERNELS))


def test_cpp_has_arrays_in_banks_and_computes_the_same(tmp_path: Path):
    design = lowered()
    emit(design, tmp_path, part="xcu280-fsvh2892-2L-e", clock_mhz=300.0)
    text = (tmp_path / "hls" / "penstock_top.cpp").read_text()
    assert "const float inputs_0[12][16]" in text, "ten rows are walked by three, so there are twelve"
    assert "#pragma HLS ARRAY_PARTITION variable=inputs_0 cyclic factor=3 dim=1" in text
    assert "#pragma HLS ARRAY_PARTITION variable=inputs_0 cyclic factor=4 dim=2" in text
    assert "m_axi" not in text
    assert "s_axilite" not in text
    assert "pk::scale<-1>(" in text, "a half needs no multiplier"
    samples = design.program.samples
    assert samples is not None
    answer = build_csim(tmp_path, ToolRunner())(samples.inputs)
    assert np.array_equal(answer[0], design.run_stream(samples.inputs)[0])
    assert np.allclose(answer[0], samples.outputs[0], atol=1e-4)


def test_a_load_from_an_array_is_as_quick_as_a_memory():
    design = lowered()
    library = load_library("vitis-ultrascale-plus", 300.0)
    schedules = {task.sym_name.data: schedule_nest(nest, library) for task, nest in design.nests}
    loads = [s for name, s in schedules.items() if name.startswith("load")]
    assert loads
    assert all(s.depth < library.memory.external_load_latency for s in loads)
    assert not any(port.kind == "external" for s in schedules.values() for port in s.ports)


def test_a_platform_says_what_arguments_are():
    assert load_platform("xcu280").has_array_arguments
    assert not load_platform("u280").has_array_arguments
    text = (Path(workloads.__file__).parents[1] / "compiler/platforms/data/xcu280.toml").read_text()
    with pytest.raises(PenstockError, match="arguments"):
        parse_platform(text.replace('"arrays"', '"somewhere"'), "edited")
