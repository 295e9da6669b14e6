"""The rungs csynth and cosim, and what follows from them, against the stand-in for AMD's tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs import RUNGS, rank, usable
from penstock.dse.rungs.rung import Bench, Measured
from penstock.dse.rungs.vitis import kept_report, profile_of, retimed
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.store import FolderProfiles
from penstock.profiling.vitis.kept_report import report_from_json, report_to_json
from penstock.services.jobs.search import Choice, choose, take
from tests.compiler.designs import Dense, build_network
from tests.standin.install import Installation
from tests.vitis.corpus import SAMPLE, synthesised

SLOW = {"slow": {"fc0": 3}}


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    made = Installation(tmp_path / "tools", "2023.2")
    for name, value in (made.environment | {"PENSTOCK_VITIS": str(made.root)}).items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    """Two layers with a connection around both: what goes around waits for what goes through."""
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    board = load_platform("u55c")
    return Evaluator(program, board, board.clock_mhz)


def candidates(evaluator: Evaluator) -> dict[int, Evaluation]:
    return {number: evaluator.evaluate({"overall_unroll_size": size}) for number, size in enumerate((8, 64, 16))}


def bench(folder: Path) -> Bench:
    """One that has measured nothing yet."""
    return Bench(profiles=FolderProfiles(Path(mkdtemp(dir=folder))))


def chosen(evaluator: Evaluator, tools: Bench) -> Choice:
    return choose(evaluator, candidates(evaluator), "csynth", bench=tools)


def csynths(installation: Installation) -> int:
    return sum(call[0] == "vitis_hls" for call in installation.calls())


def test_csynth_measures_the_whole_top_once(installation: Installation, evaluator: Evaluator) -> None:
    """Its own latency, and beside it the simulator's with the report's II and depth: two figures, told apart."""
    tools, one = bench(installation.root), evaluator.evaluate({"overall_unroll_size": 64})
    found = RUNGS["csynth"](evaluator, one, tools)
    assert found.evidence == "csynth"
    assert found.resources is not None
    assert found.retimed is not None
    assert found.times == found.retimed
    assert Measured.from_json(found.to_json()) == found
    assert RUNGS["csynth"](evaluator, one, tools) == found
    assert csynths(installation) == 1
    assert tools.profiles.counts.misses == 1


def test_ranking_goes_by_what_was_synthesised(installation: Installation, evaluator: Evaluator) -> None:
    """A loop that HLS made three times as slow as planned takes its time in the simulated figure."""
    planned = RUNGS["csynth"](evaluator, candidates(evaluator)[0], bench(installation.root))
    installation.behave(SLOW)
    slowed = RUNGS["csynth"](evaluator, candidates(evaluator)[0], bench(installation.root))
    assert planned.retimed is not None
    assert slowed.retimed is not None
    assert slowed.retimed.latency > 1.5 * planned.retimed.latency
    ranked = rank(evaluator, list(candidates(evaluator).values()), "csynth", bench(installation.root))
    latencies = [one.measured.times.latency for one in ranked if one.measured]
    assert latencies == sorted(latencies)


def test_fifos_are_sized_for_what_was_synthesised_and_it_is_synthesised_again(
    installation: Installation, evaluator: Evaluator
) -> None:
    """The final figures are of the second synthesis, which has the depths that the first one's report asked for."""
    installation.behave(SLOW)
    tools = bench(installation.root)
    choice = chosen(evaluator, tools)
    before = candidates(evaluator)[choice.trial]
    after, section = choice.finished.evaluation, choice.synthesis
    network = retimed(evaluator, before, profile_of(evaluator, before, tools, "csynth")).network
    wanted = evaluator.tightened(before, network=network).design.fifo_depths
    assert after.design.fifo_depths == wanted
    assert choice.figures.profiles != choice.measured[choice.trial].profiles
    kept = kept_report(profile_of(evaluator, after, tools, "csynth"))
    reported = {fifo.name.removesuffix("_U"): fifo.depth for fifo in kept.fifos}
    assert wanted.items() <= reported.items()
    assert section is not None
    assert section.times.latency_cycles == choice.figures.latency
    assert section.after.fifo_bits < section.before.fifo_bits
    slow = [loop for loop in section.loops if loop.task == "fc0"]
    assert [loop.ii for loop in slow] == [3 * (loop.planned_ii or 0) for loop in slow] != []
    assert (section.times.evidence, section.retimed.evidence) == ("csynth", "simulated")


@pytest.mark.slow
def test_a_design_that_fails_is_passed_over_and_noted(
    installation: Installation, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the first synthesis failed or the one with sized FIFOs."""
    tools = bench(installation.root)
    ranked = rank(evaluator, list(candidates(evaluator).values()), "csynth", tools)
    best, other = [r.candidate for r in ranked[:2]]
    honest = RUNGS["csynth"]

    def csynth(evaluator: Evaluator, one: Evaluation, tools: Bench) -> Measured:
        if one.design.kernels == best.design.kernels and one.design.fifo_depths != best.design.fifo_depths:
            raise ProfilingError("timeout", what="the tool was stopped at its time limit", where="csynth")
        return honest(evaluator, one, tools)

    monkeypatch.setitem(RUNGS, "csynth", csynth)  # type: ignore[arg-type]
    numbers = dict(enumerate([one.candidate for one in ranked]))
    choice = take(evaluator, numbers, ranked, "csynth", tools)
    assert numbers[choice.trial].design.kernels == other.design.kernels
    assert "with its FIFOs sized" in choice.notes[0]
    assert "time limit" in choice.notes[0]


@pytest.mark.parametrize(("behaviour", "kind"), [("source-error", "source-error"), ("licence-missing", "licence")])
def test_where_all_fail_their_cause_is_the_error(
    behaviour: str, kind: str, installation: Installation, evaluator: Evaluator
) -> None:
    installation.behave({"csynth": behaviour})
    with pytest.raises(ProfilingError) as caught:
        chosen(evaluator, bench(installation.root))
    assert caught.value.kind == kind
    assert caught.value.to_dict()["log_tail"]


def test_without_vitis_the_next_rung_is_taken_with_the_reason(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_VITIS", str(tmp_path))
    evidence, why = usable("cosim", evaluator.platform, evaluator.clock_mhz)
    assert evidence == "simulated"
    assert "cosim figures were asked for, but Vitis was not found" in why
    choice = chosen(evaluator, bench(tmp_path))
    assert (choice.evidence, choice.synthesis) == ("simulated", None)
    assert "Vitis was not found" in choice.fallback
    with pytest.raises(PenstockError, match="AMD's tools know no") as caught:
        usable("csynth", load_platform("ecp5-85k"), 50.0)
    assert caught.value.code == "no-vitis-route"


@pytest.mark.slow
def test_cosim_ranks_by_what_it_simulated(installation: Installation, evaluator: Evaluator) -> None:
    tools, one = bench(installation.root), evaluator.evaluate({"overall_unroll_size": 64})
    found = RUNGS["cosim"](evaluator, one, tools)
    assert found.evidence == "cosim"
    assert found.retimed is not None
    assert found.times.latency == found.latency


@pytest.mark.parametrize("design", sorted(path.name for path in SAMPLE.iterdir() if path.is_dir())[:4])
def test_what_is_kept_of_a_real_report_is_what_it_said(design: str) -> None:
    report = synthesised(SAMPLE / design)
    again = report_from_json(report_to_json(report))
    left_out = replace(report, modules=(), instances=(), memories=(), operators=())
    assert again == left_out
