"""Elements on a grid of places: their streams over neighbours where that is possible, and what does not fit."""

from __future__ import annotations

from itertools import permutations

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.mapping.apply import elements, placed
from penstock.compiler.tasks.mapping.place import GridPlacement, place
from penstock.compiler.tasks.network import Instances, tokens
from penstock.compiler.tasks.schedules import GridOfPlaces
from tests.tasks.programs import EXAMPLES, opened, read

CHAIN, SHARED = (
    (EXAMPLES / f"{name}.py").read_text().partition("import ")[2].partition("\n")[2]
    for name in ("daisy_chain", "shared_elements")
)


def cost(network: Instances, at: dict[str, tuple[int, int]]) -> int:
    """Tokens times hops, counted stream by stream."""
    ends: dict[str, list[tuple[str, int]]] = {}
    for one in network.instances:
        for (port, _), count in tokens(one.body).items():
            ends.setdefault(one.channels[port], []).append((one.name, count))
    return sum(
        count * (abs(at[one][0] - at[other][0]) + abs(at[one][1] - at[other][1]))
        for (one, count), (other, _) in ends.values()
    )


def checked(network: Instances, grid: GridOfPlaces) -> GridPlacement:
    found = place(network, grid)
    assert set(found.at) == {one.name for one in network.instances}
    assert len(set(found.at.values())) == len(found.at)
    assert all(0 <= row < grid.rows and 0 <= column < grid.columns for row, column in found.at.values())
    assert cost(network, dict(found.at)) == found.cost
    assert found.cost >= found.bound
    return found


@pytest.mark.parametrize("name", ["attention", "dot", "ffn", "heat", "linear", "mlp"])
def test_no_other_placement_of_a_small_program_costs_less(name: str) -> None:
    network = opened(name)
    count = len(network.instances)
    grid = GridOfPlaces(2, -(-count // 2))
    found = checked(network, grid)
    names = [one.name for one in network.instances]
    spots = [(row, column) for row in range(grid.rows) for column in range(grid.columns)]
    assert found.cost == min(cost(network, dict(zip(names, at, strict=True))) for at in permutations(spots, count))


def test_a_chain_runs_over_neighbours() -> None:
    found = checked(opened("daisy_chain"), GridOfPlaces(2, 3, links=1, neighbours=True))
    assert set(found.hops.values()) == {1}
    assert (found.cost, found.most_on_a_link) == (found.bound, 1)


def test_the_same_placement_every_time() -> None:
    network = opened("systolic")
    one, other = (checked(network, GridOfPlaces(7, 7)) for _ in range(2))
    assert dict(one.at) == dict(other.at)
    assert one.cost < 1.4 * one.bound


def test_a_program_that_says_so_is_placed_after_its_mapping() -> None:
    found = placed(elements(read(SHARED + "    place_on(rows=2, columns=2)\n"), ()))
    assert found is not None
    assert (len(found.at), found.cost) == (4, found.bound)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("rows=1, columns=3", "6 elements do not fit 1 x 3 places"),
        ("rows=4", "place_on takes a grid, once"),
        ("rows=0, columns=3", "rows is 0"),
        ("rows=100, columns=100", "the grid is too large"),
        ("rows=2, columns=3, neighbours=2", "place_on takes a grid, once"),
        ("rows=2, columns=3, hops=1", "hops is no argument of it"),
    ],
)
def test_a_grid_that_does_not_fit(said: str, wrong: str) -> None:
    with pytest.raises(PenstockError) as error:
        elements(read(CHAIN + f"    place_on({said})\n"), ())
    assert wrong in error.value.one_line()


def test_streams_that_lead_too_far_or_share_a_link_are_named() -> None:
    """A place has four neighbours at most."""
    network = opened("gemv")
    with pytest.raises(PenstockError, match="hops") as error:
        place(network, GridOfPlaces(3, 3, neighbours=True))
    assert "only neighbours are linked" in error.value.limit
    with pytest.raises(PenstockError, match="streams go from row") as error:
        place(network, GridOfPlaces(1, 7, links=1))
    assert "1 a link" in error.value.limit
