"""One contract for every profiler, and what the model says of whole designs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import EVIDENCE
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.model import DesignModel
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.protocol import Profile, Profiler, ProfileRequest, ProfilingError
from tests.profiling.model_profiler import ModelProfiler, model_design
from tests.schedule.gemms import gemm_program


def lowered_gemm(unroll: tuple[int, int, int] = (1, 2, 4), platform: str = "ecp5-85k") -> str:
    design = Design(platform, 100.0, {"fc": KernelDesign((1, 8, 64), unroll, (0, 1, 2))})
    return str(lower(gemm_program(16, 32, 64, "int8"), design).stream)


def request(**changes: object) -> ProfileRequest:
    return replace(ProfileRequest("gemm", lowered_gemm(), "ecp5-85k", 100.0), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("profiler", [ModelProfiler()], ids=lambda p: p.tool)
class TestContract:
    def test_it_is_a_profiler_with_a_known_evidence(self, profiler: Profiler):
        assert isinstance(profiler, Profiler)
        assert profiler.evidence in EVIDENCE
        assert profiler.tool
        assert profiler.version()

    def test_equal_requests_give_equal_profiles(self, profiler: Profiler):
        assert profiler.profile(request()) == profiler.profile(request())

    def test_a_profile_carries_its_evidence_and_its_key(self, profiler: Profiler):
        asked = request()
        profile = profiler.profile(asked)
        assert profile.evidence == profiler.evidence
        assert profile.key == asked.key(profiler.tool, profiler.version())
        assert 0 < profile.initial_delay_cycles <= profile.latency_cycles
        assert profile.interval_cycles > 0

    def test_a_profile_survives_the_database(self, profiler: Profiler):
        profile = profiler.profile(request())
        assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile

    def test_the_key_is_the_content(self, profiler: Profiler):
        def key(asked: ProfileRequest) -> str:
            return profiler.profile(asked).key

        assert key(request(name="another name")) == key(request())
        others = [request(text=lowered_gemm((1, 1, 1))), request(clock_mhz=90.0), request(platform="ecp5-45k")]
        assert len({key(request()), *map(key, others)}) == 4

    @pytest.mark.parametrize(
        "changes",
        [
            {"text": "not a module"},
            {"text": "builtin.module {\n}"},
            {"platform": "nowhere"},
            {"clock_mhz": 5000.0},
            {"clock_mhz": -1.0},
        ],
    )
    def test_what_cannot_be_measured_is_a_typed_failure(self, profiler: Profiler, changes: dict[str, object]):
        with pytest.raises(ProfilingError) as caught:
            profiler.profile(request(**changes))
        assert caught.value.kind == "bad-request"
        assert caught.value.code == "profile-bad-request"
        assert caught.value.where
        assert caught.value.hint


def test_a_single_kernel_has_an_ii_and_a_depth():
    profile = ModelProfiler().profile(request())
    assert profile.ii == 1
    assert profile.depth is not None
    assert profile.depth > 1


def test_a_profile_of_another_schema_is_refused():
    document = ModelProfiler().profile(request()).to_json()
    for bad in ({**document, "schema": "penstock.profile/0"}, {**document, "evidence": "hearsay"}):
        with pytest.raises(PenstockError, match="not a profile record"):
            Profile.from_json(bad)
    del document["latency_cycles"]
    with pytest.raises(PenstockError, match="latency_cycles"):
        Profile.from_json(document)


def gemm_network(unroll: tuple[int, int, int], platform: str, clock: float) -> TaskNetwork:
    design = Design(platform, clock, {"fc": KernelDesign((1, 32, 64), unroll, (0, 1, 2))})
    lowered = lower(gemm_program(16, 32, 64, "int8"), design)
    return network_of(lowered.top, load_library(load_platform(platform).operators, clock))


def test_a_product_on_the_open_route_takes_hardly_more_than_its_macs():
    """16 lanes: 2,048 cycles are the bound, 2,059 were measured for this shape."""
    figures = model_design(gemm_network((1, 1, 16), "ecp5-85k", 100.0), load_platform("ecp5-85k"), 100.0)
    assert 2_048 <= figures.latency <= 2_048 * 1.03
    assert figures.evidence == "modelled"
    assert figures.exact_times
    assert figures.bottleneck == "fc"


def test_the_parts_add_up():
    figures = model_design(gemm_network((1, 2, 4), "u55c", 250.0), load_platform("u55c"), 250.0)
    for resource, total in figures.resources.items():
        parts = [t.resources.as_dict()[resource] for t in figures.tasks]
        parts += [c.resources.as_dict()[resource] for c in figures.channels]
        assert total == sum(parts)
    assert figures.latency == max(t.end for t in figures.tasks)
    assert figures.interval == max(t.latency for t in figures.tasks)
    for task in figures.tasks:
        assert task.end == task.start + task.latency + task.waited


def test_external_memory_sets_the_pace_where_it_is_slow():
    """The same tasks behind a memory of a hundredth of the bandwidth: the load takes a hundred times as long."""
    board = load_platform("zu3eg")
    slow = replace(board, memories=tuple(replace(m, port_gb_s=m.port_gb_s / 500) for m in board.memories))
    network = gemm_network((1, 1, 4), "zu3eg", 200.0)
    fast_figures, slow_figures = model_design(network, board, 200.0), model_design(network, slow, 200.0)
    assert slow_figures.latency > 5 * fast_figures.latency
    assert slow_figures.bottleneck in ("load_x", "store_0")
    held_back = next(t for t in slow_figures.tasks if t.name == slow_figures.bottleneck)
    assert "external memory" in held_back.ii_reason
    assert fast_figures.bottleneck == "fc"  # a word feeds it for longer than the memory takes for the next


def test_depths_change_the_area_and_only_shallow_ones_the_time():
    board = load_platform("ecp5-85k")
    network = gemm_network((1, 1, 16), "ecp5-85k", 100.0)
    model = DesignModel(board, 100.0)
    free = model.figures(network, bounded=False)
    deep = model.with_depths(free, network, {"unpack_x__fc": 256})
    assert deep.latency == free.latency
    assert deep.resources.bram18 > free.resources.bram18
    again = model_design(network.with_depths({"unpack_x__fc": 256}), board, 100.0)
    # A load may wait a little before its reader does; what the design as a whole takes is the same.
    assert (deep.latency, deep.interval, deep.resources) == (again.latency, again.interval, again.resources)
    assert [c.resources for c in deep.channels] == [c.resources for c in again.channels]
