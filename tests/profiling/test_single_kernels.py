"""Kernels of the compiler measured with the open tools: figures, checks, what is kept, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.single_kernels.area import _area, measure_area
from benchmarks.single_kernels.cycles import cycles_of
from benchmarks.single_kernels.measure import Measurement, measure_many
from benchmarks.single_kernels.requests import ATTRIBUTE, CoreRun, part_request, prepare
from benchmarks.single_kernels.shape import structural_key
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import Resources, load_platform
from penstock.profiling.model import parse_module
from penstock.profiling.open_rtl.device import Device, device_of
from penstock.profiling.protocol import ProfileRequest, ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from tests.profiling.cores import adding, streaming
from tests.profiling.open_tools import own_cache
from tests.schedule.gemms import gemm_program

PLATFORM, CLOCK = "ecp5-85k", 100.0


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield own_cache(tmp_path_factory.mktemp("home"), patch)


def whole(unroll: tuple[int, int, int] = (1, 2, 4), kind: str = "int8") -> ProfileRequest:
    design = Design(PLATFORM, CLOCK, {"fc": KernelDesign((1, 8, 16), unroll, (0, 1, 2))})
    return ProfileRequest("gemm", str(lower(gemm_program(4, 8, 16, kind), design).stream), PLATFORM, CLOCK)


def part(*tasks: str, unroll: tuple[int, int, int] = (1, 2, 4), kind: str = "int8") -> ProfileRequest:
    return part_request("part", parse_module(whole(unroll, kind)), tasks or ("fc",), PLATFORM, CLOCK)


def sound(found: list[Measurement | ProfilingError]) -> list[Measurement]:
    errors = [one for one in found if isinstance(one, ProfilingError)]
    assert not errors, errors
    return [one for one in found if isinstance(one, Measurement)]


def test_measured_cycles_are_the_schedules():
    requests = [part(unroll=unroll) for unroll in ((1, 1, 1), (1, 2, 4), (1, 1, 16))] + [part(kind="float32")]
    kernels = [prepare(request) for request in requests]
    for kernel, found in zip(kernels, sound(measure_many(kernels, ToolRunner())), strict=True):
        (schedule,) = kernel.schedules["fc"]
        assert (found.ii, found.depth) == (schedule.ii, schedule.depth)
        assert found.initial_delay == schedule.initial_delay
        assert found.latency == schedule.latency
        assert found.values == 3 * 4 * 8
        pattern = found.pattern["fc_to_pack_0"]
        (write,) = (port for port in schedule.ports if port.direction == "write")
        assert pattern == [schedule.cycle(write, token) for token in range(write.tokens)]


def test_a_request_may_name_tasks_and_a_part_is_another_content():
    request = part("fc", "unpack_x")
    assert ATTRIBUTE in request.text
    kernel = prepare(request)
    assert {task.sym_name.data for task in kernel.tasks} == {"fc", "unpack_x"}
    assert {port.kind for port in kernel.design.ports} == {"stream_in", "stream_out"}
    assert request.key("t", "1") != whole().key("t", "1")
    with pytest.raises(ProfilingError, match="no task 'fd'") as caught:
        prepare(part("fd"))
    assert caught.value.kind == "bad-request"


def test_cycles_are_kept_and_never_measured_twice():
    first = sound(cycles_of([part(), part(), replace(part(), name="another")]))
    assert first[0] == first[1] == first[2]
    (again,) = sound(cycles_of([part()]))
    assert not again.built
    assert (again.latency, again.pattern) == (first[0].latency, first[0].pattern)


def tampered(kernel: CoreRun) -> CoreRun:
    outputs = {name: values.copy() for name, values in kernel.outputs.items()}
    next(iter(outputs.values()))[3, 0] += 1
    return replace(kernel, outputs=outputs)


def test_one_wrong_number_is_found_and_named():
    good, bad = prepare(part()), tampered(prepare(part()))
    found = measure_many([good, bad], ToolRunner())
    assert isinstance(found[0], Measurement)
    assert isinstance(found[1], ProfilingError)
    assert found[1].kind == "wrong-result"
    assert "first lane 0 of token 3" in found[1].what


def test_a_starving_kernel_is_a_deadlock():
    kernel = prepare(part())
    name = next(port.name for port in kernel.design.ports if port.kind == "stream_in")
    files = {
        file: text.replace(f"({name}_tvalid)", "(1'b0)") if file == f"{kernel.design.top}.sv" else text
        for file, text in kernel.design.files.items()
    }
    assert files != dict(kernel.design.files)
    (found,) = measure_many([replace(kernel, design=replace(kernel.design, files=files))], ToolRunner())
    assert isinstance(found, ProfilingError)
    assert found.kind == "deadlock"
    assert f"{name}: 0 of" in found.limit


def test_one_bad_request_does_not_harm_the_others():
    found = cycles_of([replace(whole(), text="nothing"), part(), replace(part(), clock_mhz=9e9)])
    assert [type(one) for one in found] == [ProfilingError, Measurement, ProfilingError]


def test_a_library_of_another_route_is_refused():
    with pytest.raises(ProfilingError) as caught:
        prepare(replace(whole(), platform="u55c", clock_mhz=250.0))
    assert caught.value.kind == "bad-request"


def test_the_shape_knows_no_names_and_no_data():
    design = streaming()
    text = design.files["streaming.sv"].replace("module streaming", "module other").replace("tripled", "t")
    renamed = replace(design, top="other", files={"b.sv": text})
    assert structural_key(renamed) == structural_key(design)
    assert structural_key(adding([1] * 8)) == structural_key(adding([2] * 8))
    assert structural_key(streaming(8)) != structural_key(design)
    other = replace(design, files={"b.sv": design.files["streaming.sv"].replace("- 12'd1", "+ 12'd1")})
    assert structural_key(other) != structural_key(design)


def test_cells_are_counted_and_unknown_ones_refused():
    ecp5 = _area({"LUT4": 10, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "DP16KD": 1, "TRELLIS_FF": 7, "PFUMX": 2}, "ecp5", 1.0)
    assert ecp5.resources == Resources(lut=28, ff=7, bram18=1)
    assert ecp5.logic_lut == 10
    cells = {"LUT6": 4, "LUT2": 1, "RAM32M16": 1, "SRL16E": 2, "FDRE": 5, "DSP48E2": 3, "RAMB36E2": 2, "URAM288": 1}
    assert _area(cells, "xcup", 1.0).resources == Resources(lut=15, ff=5, dsp=3, bram18=4, uram=1)
    with pytest.raises(ProfilingError, match="NEWCELL") as caught:
        _area({"NEWCELL": 1}, "ecp5", 1.0)
    assert caught.value.kind == "report-unreadable"


def test_parts_are_named_as_the_tools_name_them():
    assert device_of(load_platform("ecp5-85k")) == Device("85k", "CABGA381", 6)
    with pytest.raises(ProfilingError, match="no open place and route"):
        device_of(load_platform("u55c"))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["ecp5", "xcup"])
def test_area_is_measured_once_a_shape(family):
    first = measure_area(adding([3] * 8), family)
    second = measure_area(adding([4] * 8), family)
    assert not first.cached
    assert second.cached
    assert second.resources == first.resources
    assert first.resources.ff >= 8


@pytest.mark.slow
def test_what_yosys_cannot_read_is_a_typed_failure():
    broken = replace(streaming(), files={"a.sv": "module streaming (input clk; endmodule\n"})
    with pytest.raises(ProfilingError) as caught:
        measure_area(broken, "ecp5")
    assert caught.value.kind == "tool-failed"
    assert "ERROR" in caught.value.log_tail


def test_data_is_drawn_by_a_fixed_seed():
    first, second = prepare(part()), prepare(part())
    for name, values in first.inputs.items():
        assert np.array_equal(values, second.inputs[name])
        assert len(np.unique(values)) > 10
