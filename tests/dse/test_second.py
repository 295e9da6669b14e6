"""The second process of a search: it finds nothing else, whatever becomes of it, and nothing is left of it."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.explaining import looks as looks_module
from penstock.dse.explaining.looks import Looks, around_of, look_at
from penstock.dse.explaining.sensitivity import explain
from penstock.dse.rungs import Bench, Measured, measure_all
from penstock.dse.rungs.history import FolderHistory
from penstock.dse.rungs.kinds import RUNGS, simulated
from penstock.dse.search import descent
from penstock.dse.search import second as second_module
from penstock.dse.search.descent import Descended, descend
from penstock.dse.search.second import SecondProcess, second_process
from penstock.dse.search.shared import shared
from penstock.dse.search.worth import foretell, rank_of
from penstock.dse.space.fitted import SHARE
from penstock.dse.space.tiling import Params
from tests.compiler.designs import Dense, build_network
from tests.fixtures.waiting import wait_until

SETTINGS = 60
NEVER = (math.inf,)
"""What every setting is better than, so that all are looked at closely."""


def evaluator() -> Evaluator:
    layers = (Dense(16, True, True), Dense(8, False, False))
    return Evaluator.create(build_network("int8", 4, 8, layers, seed=1), "zcu104")


class Watched:
    """What an evaluator was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.params: list[Params] = []
        outlook = Evaluator.outlook

        def watched(evaluator: Evaluator, params: Params):
            self.params.append(params)
            return outlook(evaluator, params)

        monkeypatch.setattr(Evaluator, "outlook", watched)


def outcome(found: Descended | None) -> tuple[object, ...]:
    assert found is not None
    timed = [(dict(one.params), one.values) for one in found.timed]
    return found.tried, dict(found.best.params), found.best.design, found.best.values, timed


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(descent, "_MOST_TRIED", SETTINGS)
    monkeypatch.setattr(second_module, "processors", lambda: 2)
    return Watched(monkeypatch)


@pytest.fixture
def second(watched: Watched) -> Iterator[SecondProcess]:
    with second_process(wanted=True) as started:
        assert started is not None
        yield started


def at_work(second: SecondProcess, evaluator: Evaluator) -> None:
    second.work_for(evaluator)
    wait_until(lambda: second.takes_more)


def gone(pid: int) -> bool:
    """Whether a process has ended; what its parent has not waited for yet has."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_it_says_of_a_setting_what_this_process_does(watched: Watched, second: SecondProcess) -> None:
    alone, other = evaluator(), evaluator()
    expected = outcome(descend(alone))
    tried = list(watched.params)
    base = tried[0]
    at_work(second, other)
    second.look_at(list(enumerate(tried)), base, NEVER)
    wait_until(lambda: second.said(len(tried) - 1) is not None)
    for number, params in enumerate(tried):
        assert second.said(number) == foretell(alone, params, NEVER, in_full=True), params
    assert outcome(descend(other, second=second)) == expected


def test_what_it_has_said_is_not_modelled_again(watched: Watched, second: SecondProcess) -> None:
    expected = outcome(descend(evaluator()))
    tried, watched.params = watched.params, []
    other = evaluator()
    at_work(second, other)
    second.look_at([(tuple(p[name] for name in sorted(p)), p) for p in tried], tried[0], NEVER)
    wait_until(lambda: all(second.said(tuple(p[name] for name in sorted(p))) is not None for p in tried))
    assert outcome(descend(other, second=second)) == expected
    assert len(watched.params) < len(tried) / 2


def test_what_is_good_enough_comes_whole(second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, other = evaluator(), evaluator()
    setting = alone.space.fitted_setting()
    expected = alone.assume(setting)
    at_work(second, other)
    second.look_at([("better", setting)], {}, NEVER)
    wait_until(lambda: second.said("better") is not None)
    second.look_at([("no better", setting)], {}, rank_of(expected))
    wait_until(lambda: second.said("no better") is not None)
    better, worse = second.said("better"), second.said("no better")
    assert better is not None
    assert worse is not None
    assert worse.found is None
    assert better.found is not None
    assert better.found == expected
    monkeypatch.setattr(Evaluator, "outlook_of", lambda *_: pytest.fail("it is known"))
    other.is_told(better.found)
    assert other.assume(setting) == expected


def test_settings_that_are_all_wanted_are_modelled_by_both(second: SecondProcess) -> None:
    alone, other = evaluator(), evaluator()
    simple, shares = alone.space.fitted_setting(), alone.space.choices[SHARE]
    settings = [{**simple, SHARE: share} for share in shares]
    assert len(settings) > 3
    at_work(second, other)
    told = list[Params]()
    for params in shared(other, settings, second):
        if not told:
            told.append(params)
            wait_until(lambda: second.said(tuple(sorted(settings[-1].items()))) is not None)
        assert other.assume(params) == alone.assume(params)
    assert list(shared(other, settings, None)) == settings


def test_it_simulates_the_next_design_while_this_process_simulates_one(
    second: SecondProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here, other = evaluator(), evaluator()
    candidates = [here.assume({**here.space.fitted_setting(), SHARE: share}) for share in (100, 40, 14, 5)]
    expected = measure_all(here, candidates, "simulated", Bench(history=FolderHistory(tmp_path / "alone")))
    at_work(second, other)
    by_itself = list[Evaluation]()

    def simulate(asked: Evaluator, one: Evaluation, bench: Bench) -> Measured:
        wait_until(lambda: second.answer(len(by_itself)) is not None)
        by_itself.append(one)
        return simulated(asked, one, bench)

    monkeypatch.setitem(RUNGS, "simulated", simulate)
    found = measure_all(other, candidates, "simulated", Bench(history=FolderHistory(tmp_path), elsewhere=second))
    assert found == expected
    assert len(by_itself) == len(candidates) / 2


def test_designs_are_simulated_here_where_it_has_died(second: SecondProcess, tmp_path: Path) -> None:
    here = evaluator()
    candidates = [here.assume({**here.space.fitted_setting(), SHARE: share}) for share in (100, 40)]
    expected = measure_all(here, candidates, "simulated", Bench(history=FolderHistory(tmp_path / "alone")))
    at_work(second, here)
    os.kill(second.pid, signal.SIGKILL)
    bench = Bench(history=FolderHistory(tmp_path), elsewhere=second)
    assert measure_all(here, candidates, "simulated", bench) == expected


def test_a_choice_is_explained_by_what_it_looked_at_ahead(
    second: SecondProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched, fresh = evaluator(), evaluator()
    found = descend(searched)
    assert found is not None
    chosen = searched.proven(found.best)
    expected = explain(searched, chosen, [])
    at_work(second, fresh)
    looks = Looks(fresh, second)
    looks.think_of(chosen.params)
    ahead = around_of(fresh.space, chosen.params)
    wait_until(lambda: second.answer(len(ahead) - 1) is not None)
    here: list[Params] = []
    monkeypatch.setattr(looks_module, "look_at", lambda _, params: here.append(params) or look_at(searched, params))
    assert explain(fresh, chosen, [], looks) == expected
    assert not [params for params in here if params in ahead]
    assert len(ahead) > 4


def test_a_choice_is_explained_without_it_when_it_has_died(second: SecondProcess) -> None:
    here = evaluator()
    found = descend(here)
    assert found is not None
    chosen = here.proven(found.best)
    at_work(second, here)
    looks = Looks(here, second)
    looks.think_of(chosen.params)
    os.kill(second.pid, signal.SIGKILL)
    assert explain(here, chosen, [], looks) == explain(here, chosen, [])


def test_at_rest_it_does_nothing_more(watched: Watched, second: SecondProcess) -> None:
    descend(evaluator())
    at_work(second, evaluator())
    second.look_at(list(enumerate(watched.params)), watched.params[0], NEVER)
    second.rest()
    number = second.call(look_at, [(watched.params[0],)])[0]
    wait_until(lambda: second.answer(number) is not None)
    assert second.said(len(watched.params) - 1) is None


def test_what_it_is_to_do_first_costs_nothing_that_it_was_asked_before(watched: Watched, second: SecondProcess) -> None:
    here = evaluator()
    descend(here)
    at_work(second, evaluator())
    before = second.call(look_at, [(params,) for params in watched.params])
    [number] = second.call(look_at, [(watched.params[0],)], first=True)
    wait_until(lambda: second.answer(number) is not None)
    assert second.answer(before[-1]) is None
    wait_until(lambda: second.answer(before[-1]) is not None)
    said = [second.answer(one) for one in before]
    assert said == [look_at(here, params) for params in watched.params]


@pytest.mark.parametrize("batches", [0, 2])
def test_one_that_dies_costs_no_result(
    watched: Watched, second: SecondProcess, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    expected = outcome(descend(evaluator()))
    other = evaluator()
    at_work(second, other)
    look_at, asked = second.look_at, list[int]()

    def deadly(settings: Sequence[tuple[object, Params]], base: Params, below: tuple[float, ...]) -> None:
        if len(asked) == batches:
            os.kill(second.pid, signal.SIGKILL)
        asked.append(len(settings))
        look_at(settings, base, below)

    monkeypatch.setattr(second, "look_at", deadly)
    assert outcome(descend(other, second=second)) == expected
    assert len(asked) >= batches
    wait_until(lambda: gone(second.pid))
    assert not second.takes_more


def test_there_is_none_on_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_module, "processors", lambda: 1)
    with second_process(wanted=True) as second:
        assert second is None


def test_there_is_none_that_is_not_wanted() -> None:
    with second_process(wanted=False) as second:
        assert second is None


def test_a_killed_search_leaves_none_behind() -> None:
    """Killed the hard way, while the second process still looks for its modules."""
    script = (
        "import time\n"
        "from penstock.dse.search import second\n"
        "second.processors = lambda: 2\n"
        "print(second.SecondProcess.start().pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as search:
        assert search.stdout is not None
        pid = int(search.stdout.readline())
        assert not gone(pid)
        search.kill()
    wait_until(lambda: gone(pid))
