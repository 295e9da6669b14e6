"""The correctness chain on random networks under random designs: linalg = itensor = stream = csim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.pipeline import lower
from compiler.pipeline.emit import emit
from compiler.pipeline.verify import compare, make_inputs, verify_levels
from profiling.csim import build_csim
from profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network, designs, networks

PART = "xcu55c-fsvh2892-2L-e"
RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


@settings(RELAXED, max_examples=60)
@given(data=st.data())
def test_levels_agree(data: st.DataObject) -> None:
    program = data.draw(networks())
    lowered = lower(program, data.draw(designs(program.module)))
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison


@pytest.mark.slow
@settings(RELAXED, max_examples=240)
@given(data=st.data())
def test_levels_agree_on_many_more(data: st.DataObject) -> None:
    program = data.draw(networks())
    lowered = lower(program, data.draw(designs(program.module)))
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison


def check_csim(data: st.DataObject, folder: Path, *, sanitize: bool) -> None:
    program = data.draw(networks())
    lowered = lower(program, data.draw(designs(program.module)))
    frames = make_inputs(lowered, random_sets=3)
    emit(lowered, folder, part=PART, clock_mhz=300.0)
    got = build_csim(folder, ToolRunner(), sanitize=sanitize).run_frames(frames)
    wanted = [lowered.run_itensor(frame) for frame in frames]
    result = compare("csim", "interpreter", [a for f in got for a in f], [a for f in wanted for a in f])
    assert result.equal, result


@settings(RELAXED, max_examples=6)
@given(data=st.data())
def test_csim_agrees(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim(data, tmp_path_factory.mktemp("csim"), sanitize=False)


@pytest.mark.slow
@settings(RELAXED, max_examples=60)
@given(data=st.data())
def test_csim_agrees_on_many_more(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim(data, tmp_path_factory.mktemp("csim"), sanitize=False)


@pytest.mark.slow
@settings(RELAXED, max_examples=20)
@given(data=st.data())
def test_csim_is_clean_under_sanitizers(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim(data, tmp_path_factory.mktemp("csim"), sanitize=True)


def test_a_broken_schedule_is_noticed() -> None:
    """The chain can fail: accumulating with another start value is seen at the next level."""
    program = build_network("int8", 2, 4, (Dense(4, False, False),), seed=1)
    from compiler.analysis.graph import read_graph
    from compiler.design.default import default_design

    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0))
    (comparison, _) = verify_levels(lowered, make_inputs(lowered, random_sets=1))
    assert comparison.equal
    wrong = [np.asarray(a) + 1 for a in lowered.run_itensor(make_inputs(lowered, random_sets=1)[0])]
    right = lowered.run_itensor(make_inputs(lowered, random_sets=1)[0])
    assert not compare("itensor", "linalg", wrong, right).equal
