"""A search's section says why its design, how far the rungs were off, and which faster designs found no place."""

from __future__ import annotations

from penstock.compiler.package.report import ExplorationReport, ProfileUse
from penstock.compiler.platforms import load_platform
from penstock.profiling.store import Counts
from penstock.services.jobs.explanation import in_words, passed_over, use_of
from penstock.services.jobs.search import find_design
from penstock.services.jobs.search_settings import SearchSettings
from tests.compiler.designs import Dense, build_network


def test_a_search_in_this_process_explains_itself() -> None:
    program = build_network("int8", None, 32, (Dense(32, False, True), Dense(16, False, False)), seed=3)
    board = load_platform("ecp5-25k")
    choice, section = find_design(
        program, board, board.clock_mhz, None, 14, SearchSettings(), lambda _done, _most: None
    )
    assert section.why is not None
    assert section.why.sentences[0].startswith(f"{choice.finished.evaluation.figures.bottleneck} sets the pace")
    assert section.why.picture.startswith("<svg ")
    own = [e for e in section.rung_errors if e.this_model and e.stronger == "simulated"]
    assert len(own) == 1
    assert own[0].designs >= sum(bool(t.measured) for t in section.trials) > 0
    assert section.profiles is None, "no tool was asked"
    words = in_words(section)
    assert words["why"] == list(section.why.sentences)
    assert [error["sentence"] for error in words["rung_errors"]] == [error.sentence for error in own]
    assert "measurements" not in words
    assert ExplorationReport.model_validate_json(section.model_dump_json()) == section


def test_what_tools_were_spared_is_said() -> None:
    assert use_of(Counts(failures=1)) is None
    use = use_of(Counts(hits=3, misses=2, waits=1, seconds_saved=4.5678))
    assert use == ProfileUse(measured=2, kept=3, waited=1, seconds_saved=4.568)
    section = ExplorationReport(trials=(), complete=0, infeasible=0, failed=0, profiles=use)
    expected = "2 by tools, 3 known from before, 1 made by other workers meanwhile"
    assert in_words(section) == {"measurements": expected}


def test_a_faster_design_that_was_passed_over_is_named() -> None:
    program = build_network("int8", None, 16, (Dense(8, False, False),), seed=3)
    board = load_platform("ecp5-25k")
    _, section = find_design(
        program, board, board.clock_mhz, None, 4, SearchSettings(), lambda _done, _most: None, evidence="modelled"
    )
    assert section.correction == ""
    assert section.why is not None
    assert not any("passed over" in sentence for sentence in section.why.sentences)
    faster = section.trials[0].model_copy(
        update={"number": 9, "latency_cycles": 1, "note": "no die is free", "chosen": False}
    )
    noted = section.model_copy(update={"trials": (*section.trials, faster)})
    assert passed_over(noted) == ["Trial 9 would take 1 cycles and was passed over: no die is free."]
