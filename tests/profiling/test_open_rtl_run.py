"""Cores written by hand in Verilator: numbers, times, stalls, frames, deadlocks, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.backend.rtl.design import RtlPort
from penstock.compiler.errors import PenstockError
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.open_rtl.verilate import BuiltProgram, build, build_many
from penstock.profiling.open_rtl.words import decode, encode, stride_of
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from tests.profiling.cores import adding, streaming
from tests.profiling.open_tools import own_cache


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield own_cache(tmp_path_factory.mktemp("home"), patch)


TOKENS = np.random.default_rng(5).integers(-128, 128, (32, 3)).astype(np.int8)


def test_tokens_and_their_cycles():
    run = simulate_rtl(streaming(), {"x": TOKENS}, frames=2)
    assert np.array_equal(run.outputs["y"], 3 * TOKENS.astype(np.int16) - 1)
    assert run.outputs["y"].dtype == np.int16
    assert (run.latency, run.initial_delay, run.interval) == (18, 2, 16)
    assert run.ports["x"].times is not None
    assert run.ports["x"].times.tolist() == list(range(32))
    assert run.ports["y"].times is not None
    assert run.ports["y"].times.tolist() == list(range(2, 34))
    assert run.high_water == {"inner": 7}
    assert run.evidence == "open-rtl"
    assert not run.deadlocked


def test_stalls_by_seed_change_times_and_no_number():
    latencies = set()
    for seed in range(4):
        runs = [simulate_rtl(streaming(), {"x": TOKENS[:16]}, stall_seed=seed, frames=2) for _ in range(2)]
        wanted = np.concatenate([3 * TOKENS[:16].astype(np.int16) - 1] * 2)
        assert np.array_equal(runs[0].outputs["y"], wanted)
        assert runs[0].latency == runs[1].latency
        latencies.add(runs[0].latency)
    assert len(latencies) > 1


def test_ports_may_have_underscores_in_a_row():
    """As those of an argument `input` have, which is a word of Verilog and gets one."""
    core = adding()
    renamed = core.files["adding.sv"].replace("a_", "input___8_").replace("b_", "_out__")
    ports = tuple(replace(port, name={"a": "input___8", "b": "_out_"}[port.name]) for port in core.ports)
    values = np.arange(8, dtype=np.int32)[:, None]
    run = simulate_rtl(replace(core, files={"adding.sv": renamed}, ports=ports), {"a": values})
    assert np.array_equal(run.outputs["b"], values + 10 * np.arange(8)[:, None])


def test_memories_and_frames():
    values = np.arange(8, dtype=np.int32)[:, None] * -1000
    run = simulate_rtl(adding(), {"a": values}, frames=3)
    assert np.array_equal(run.outputs["b"], values + 10 * np.arange(8)[:, None])
    assert run.interval == 8
    assert len(run.done) == 3


def test_frames_one_by_one_may_read_other_data():
    values = np.random.default_rng(1).integers(-1000, 1000, (3, 8, 1)).astype(np.int32)
    run = simulate_rtl(adding(), {"a": values}, frames=3, one_by_one=True)
    assert np.array_equal(run.outputs["b"], values + 10 * np.arange(8)[:, None])
    assert run.interval is not None
    assert run.interval > 8


def test_memory_contents_are_no_part_of_the_program():
    tools, values = ToolRunner(), np.zeros((8, 1), np.int32)
    first, second = (simulate_rtl(adding([n] * 8), {"a": values}, tools=tools) for n in (1, 2))
    assert second.program.cached
    assert (first.outputs["b"][0, 0], second.outputs["b"][0, 0]) == (1, 2)


def test_a_deadlock_says_who_waits():
    run = simulate_rtl(streaming(limit=5), {"x": TOKENS[:16]}, idle_cycles=500)
    assert run.deadlocked
    assert run.latency is None
    assert run.cycles < 1000
    assert len(run.outputs["y"]) < 16
    assert any(line.startswith("x:") and "does not take" in line for line in run.stuck)
    assert "inner: holds 0" in run.stuck


def test_what_a_core_does_beyond_its_ports_is_an_error():
    design = replace(streaming(), ports=(*streaming().ports[:1], replace(streaming().ports[1], words=10)))
    with pytest.raises(ProfilingError, match="16 tokens came out of y, 10 were expected") as caught:
        simulate_rtl(design, {"x": TOKENS[:16]})
    assert caught.value.kind == "wrong-result"
    small = replace(adding(), ports=tuple(replace(port, words=5) for port in adding().ports))
    with pytest.raises(ProfilingError, match="accesses beyond the 5 words"):
        simulate_rtl(small, {"a": np.zeros((5, 1), np.int32)})


def test_data_that_does_not_fit_is_refused():
    with pytest.raises(PenstockError, match="the core takes 16 tokens of 3 lanes"):
        simulate_rtl(streaming(), {"x": TOKENS[:9]})
    with pytest.raises(PenstockError, match="the core takes \\['x'\\]"):
        simulate_rtl(streaming(), {"z": TOKENS})


def test_time_limits_hold():
    with pytest.raises(ProfilingError) as caught:
        simulate_rtl(streaming(limit=5), {"x": TOKENS[:16]}, most_cycles=100)
    assert caught.value.kind == "timeout"
    with pytest.raises(ProfilingError) as caught:
        simulate_rtl(streaming(limit=5), {"x": TOKENS[:16]}, idle_cycles=10**12, most_cycles=10**12, timeout=0.5)
    assert caught.value.kind == "timeout"


def test_one_that_cannot_be_built_does_not_harm_the_others():
    good = [streaming(100 + n) for n in range(3)]
    broken = replace(streaming(), files={"a.sv": "module streaming (input logic clk); asign x = 1; endmodule\n"})
    no_port = replace(streaming(200), ports=(RtlPort("missing", "stream_in", 8, 1, "i8", None),))
    found = build_many([*good, broken, no_port], ToolRunner())
    assert [isinstance(one, BuiltProgram) for one in found] == [True, True, True, False, False]
    assert isinstance(found[3], ProfilingError)
    assert found[3].kind == "tool-failed"
    assert "%Error" in found[3].limit
    assert all(isinstance(one, BuiltProgram) and one.cached for one in build_many(good, ToolRunner()))


def test_a_cancelled_tool_is_a_cancelled_measurement():
    runner = ToolRunner()
    runner.cancel_all()
    with pytest.raises(ProfilingError) as caught:
        simulate_rtl(streaming(), {"x": TOKENS}, frames=2, tools=runner)
    assert caught.value.kind == "cancelled"


def test_two_that_want_the_same_build_it_once():
    design = streaming(77)
    with ThreadPoolExecutor(2) as pool:
        found = [job.result() for job in [pool.submit(build, design, ToolRunner()) for _ in range(2)]]
    assert sorted(one.cached for one in found) == [False, True]


@pytest.mark.parametrize("element", ["i1", "i4", "i8", "i12", "i16", "i20", "i32", "i48", "i64", "f32"])
@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_words_go_there_and_back(element: str, lanes: int):
    bits = int(element[1:])
    rng = np.random.default_rng(bits + lanes)
    if element == "f32":
        values = rng.standard_normal((7, lanes)).astype(np.float32)
    elif bits == 1:
        values = rng.integers(0, 2, (7, lanes)).astype(bool)
    else:
        values = rng.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, (7, lanes), endpoint=True)
    port = RtlPort("p", "stream_in", bits * lanes, 7, element, None)
    data = encode(values, port)
    assert len(data) == 7 * stride_of(port.width)
    assert np.array_equal(decode(data, port), values)
    word = int.from_bytes(data[: stride_of(port.width)], "little")
    assert word < 1 << port.width  # the unused bits of a word are 0, as Verilator wants them
    if bits > 1 and element != "f32":
        assert word & ((1 << bits) - 1) == int(values[0, 0]) & ((1 << bits) - 1)  # lane 0 lies lowest
