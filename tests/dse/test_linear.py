"""Integer programs whose effort is counted: what is cut off is cut off at the same place on any machine."""

from __future__ import annotations

import random
from itertools import product

import pulp  # pyright: ignore[reportMissingTypeStubs]
import pytest

from penstock.compiler.errors import PenstockError
from penstock.dse.support import linear
from penstock.dse.support.linear import LinearProgram, Solution


def knapsacks(rows: int, largest: int, *, full: bool = False) -> LinearProgram:
    """Fifty choices. Where all rows are to be filled exactly, hardly any of 2^50 does."""
    draw = random.Random(1)
    program = LinearProgram("knapsacks")
    choices = [program.choice(-draw.randint(10, 100)) for _ in range(50)]
    for _ in range(rows):
        row = {choice: float(draw.randint(1, largest)) for choice in choices}
        some = sum(row[choice] for choice in choices[::2])
        program.row(row, "==" if full else "<=", some)
    return program


def test_what_is_cut_off_is_the_same_every_time_and_known_not_to_be_the_best() -> None:
    whole = knapsacks(20, 60).solve()
    assert whole is not None
    assert whole.proven
    short = [knapsacks(20, 60).solve(1e-4) for _ in range(2)]
    assert short[0] == short[1]
    assert short[0] is not None
    assert not short[0].proven
    assert short[0].bound <= whole.objective <= short[0].objective


def test_a_solver_that_has_found_nothing_yet_does_not_pass_for_one_that_chose_nothing() -> None:
    """Its values are all 0 then, which keeps no row."""
    with pytest.raises(PenstockError, match="no solution of 'knapsacks' was found") as caught:
        knapsacks(3, 9999, full=True).solve(1e-9)
    assert caught.value.code == "solver-failed"


def _covering(seed: int) -> LinearProgram:
    """What choices of a random cost must cover."""
    draw, program = random.Random(seed), LinearProgram("covering")
    choices = [program.choice(draw.uniform(1, 10)) for _ in range(draw.randint(8, 14))]
    for _ in range(draw.randint(2, 5)):
        program.row({one: draw.uniform(0.1, 5) for one in choices if draw.random() < 0.8}, ">=", draw.uniform(1, 6))
    return program


def test_a_bound_is_below_the_least_where_what_is_near_it_is_enough() -> None:
    ended_early = 0
    for seed in range(40):
        exact, near = _covering(seed).solve(gap=1e-9), _covering(seed).solve(gap=0.3)
        assert exact is not None
        assert near is not None
        assert near.bound <= exact.objective + 1e-6
        assert near.bound >= 0.69 * near.objective
        assert exact.bound == pytest.approx(exact.objective)
        ended_early += near.objective > exact.objective + 1e-6
    assert ended_early >= 3  # else nothing was asked


def test_a_variable_that_no_row_speaks_of_is_as_low_as_it_may_be() -> None:
    """As the lanes of an operation that needs no operators: PuLP gives such a variable no value."""
    program = LinearProgram("alone")
    first, alone = program.variable(cost=1), program.variable(3)
    program.row({first: 1}, ">=", 2)
    found = program.solve(presolve=False)
    assert found is not None
    assert (found.values[first], found.values[alone], found.objective) == (2, 3, 2)


@pytest.mark.parametrize("seed", range(6))
def test_a_program_handed_over_at_once_is_the_one_that_pulp_hands_over(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of equally good solutions the same one, to the bit."""

    def solved() -> Solution | None:
        chance, program = random.Random(seed), LinearProgram("shares")
        crowding = program.variable(0, None, cost=10)
        rows: dict[int, dict[int, float]] = {resource: {} for resource in range(3)}
        for _ in range(12):
            ways = [program.variable(0, chance.choice([None, 4]), whole=seed % 2 == 0) for _ in range(3)]
            program.row(dict.fromkeys(ways, 1.0), "==", chance.randint(1, 4))
            for way, row in product(ways, rows.values()):
                row[way] = chance.choice([0.0, chance.random()])
                program.add_cost(way, row[way])
        for row in rows.values():
            program.row({**row, crowding: -1.0}, "<=", 3)
            program.row(row, ">=", 0.5)
        return program.solve(gap=0.01)

    at_once = solved()
    monkeypatch.setattr(linear, "_AtOnce", pulp.HiGHS)
    assert at_once is not None
    assert solved() == at_once
