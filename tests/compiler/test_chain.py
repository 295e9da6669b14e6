"""The correctness chain on random networks under random designs: linalg = itensor = stream = csim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.pipeline.emit import emit
from penstock.compiler.pipeline.verify import compare, make_inputs, verify_levels
from tests.compiler.csim_batch import build_batch
from tests.compiler.designs import Dense, build_network, designs, networks
from tests.compiler.graphs import Case, build_graph, cases, turned

PART = "xcu55c-fsvh2892-2L-e"
RELAXED = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # no explaining: it traces every line
)


def check_levels(lowered: Lowered) -> None:
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison


@settings(RELAXED, max_examples=60)
@given(case=cases())
def test_levels_agree(case: Case) -> None:
    check_levels(case.lowered())


@pytest.mark.slow
@settings(RELAXED, max_examples=240)
@given(case=cases())
def test_levels_agree_on_many_more(case: Case) -> None:
    check_levels(case.lowered())


def check_groupings(case: Case) -> None:
    """One kernel an operation, or one for all, packed or plain: all sum in one order, so every bit is the same."""
    program = build_graph(case.graph)
    design = turned(program, case.knobs)
    apart = {layer: number for number, layer in enumerate(design.kernels)}
    first, *later = [
        lower(program, replace(design, groups=groups, port_bits=port_bits))
        for groups, port_bits in ((apart, 8), ({}, 8), (apart, 512), (design.groups, 64))
    ]
    (frame,) = make_inputs(first, random_sets=1)
    wanted = first.run_itensor(frame)
    for lowered in later:
        result = compare("itensor", "kernels apart", flat([lowered.run_itensor(frame)]), flat([wanted]))
        assert result.equal, result


@settings(RELAXED, max_examples=10)
@given(case=cases())
def test_every_grouping_agrees(case: Case) -> None:
    check_groupings(case)


@pytest.mark.slow
@settings(RELAXED, max_examples=80)
@given(case=cases())
def test_every_grouping_agrees_on_many_more(case: Case) -> None:
    check_groupings(case)


@settings(RELAXED, max_examples=10)
@given(data=st.data())
def test_levels_agree_on_layers(data: st.DataObject) -> None:
    """Dense layers whose sums are wider than their inputs, with parameters and inputs that nobody reads."""
    program = data.draw(networks())
    check_levels(lower(program, data.draw(designs(program.module, wide=True))))


@pytest.mark.slow
@settings(RELAXED, max_examples=80)
@given(data=st.data())
def test_levels_agree_on_many_more_layers(data: st.DataObject) -> None:
    program = data.draw(networks())
    check_levels(lower(program, data.draw(designs(program.module, wide=True))))


def check_csim(batch: list[Lowered], folder: Path, labels: Sequence[object] = (), *, sanitize: bool = False) -> None:
    """All designs of a batch in one C++ build, each bit for bit what the interpreter says. A failure names it."""
    folders = [folder / f"design_{number}" for number in range(len(batch))]
    for lowered, place in zip(batch, folders, strict=True):
        emit(lowered, place, part=PART, clock_mhz=300.0)
    batch_csim = build_batch(folders, folder / "build", sanitize=sanitize)
    for number, (lowered, csim) in enumerate(zip(batch, batch_csim, strict=True)):
        frames = make_inputs(lowered, random_sets=3)
        wanted = [lowered.run_itensor(frame) for frame in frames]
        try:
            result = compare("csim", "interpreter", flat(csim.run_frames(frames)), flat(wanted))
            assert result.equal, result
        except Exception as error:
            error.add_note(f"this is design {number} of the batch: {labels[number] if labels else lowered.design}")
            raise


def flat(frames: list[list[np.ndarray]]) -> list[np.ndarray]:
    return [array.reshape(-1) for frame in frames for array in frame]


BUILDS = settings(RELAXED, phases=[Phase.explicit, Phase.reuse, Phase.generate])
"""To shrink by building C++ would take minutes; the failure names the one design of its batch."""


def batches(size: int) -> st.SearchStrategy[list[Case]]:
    return st.lists(cases(), min_size=1, max_size=size)


@settings(BUILDS, max_examples=2)
@given(batch=batches(8))
def test_csim_agrees(batch: list[Case], tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim([case.lowered() for case in batch], tmp_path_factory.mktemp("csim"), batch)


@pytest.mark.slow
@settings(BUILDS, max_examples=8)
@given(batch=batches(16))
def test_csim_agrees_on_many_more(batch: list[Case], tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim([case.lowered() for case in batch], tmp_path_factory.mktemp("csim"), batch)


@pytest.mark.slow
@settings(BUILDS, max_examples=5)
@given(data=st.data())
def test_csim_agrees_on_layers(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    programs = data.draw(st.lists(networks(), min_size=1, max_size=6))
    batch = [lower(program, data.draw(designs(program.module, wide=True))) for program in programs]
    check_csim(batch, tmp_path_factory.mktemp("csim"))


@pytest.mark.slow
@settings(BUILDS, max_examples=5)
@given(batch=batches(8))
def test_csim_is_clean_under_sanitizers(batch: list[Case], tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim([case.lowered() for case in batch], tmp_path_factory.mktemp("csim"), batch, sanitize=True)


def test_a_broken_schedule_is_noticed() -> None:
    """The chain can fail: accumulating with another start value is seen at the next level."""
    program = build_network("int8", 2, 4, (Dense(4, False, False),), seed=1)
    from penstock.compiler.analysis.default_design import default_design
    from penstock.compiler.analysis.graph import read_graph

    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0))
    (comparison, _) = verify_levels(lowered, make_inputs(lowered, random_sets=1))
    assert comparison.equal
    wrong = [np.asarray(a) + 1 for a in lowered.run_itensor(make_inputs(lowered, random_sets=1)[0])]
    right = lowered.run_itensor(make_inputs(lowered, random_sets=1)[0])
    assert not compare("itensor", "linalg", wrong, right).equal
