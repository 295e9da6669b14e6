"""All kernels before a place of a model, or behind it: which these are, and what favouring them together is worth."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn

from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.sides import favoured, sides_of, stepped
from penstock.dse.space.fitted import FAVOUR
from tests.compiler.designs import Dense, build_network


class Attention(nn.Module):
    """One head: a row of it cannot begin before all keys are there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax(self.query(x) @ self.key(x).T, dim=-1)
        return scores @ self.value(x)


@cache
def evaluator() -> Evaluator:
    torch.manual_seed(0)
    loaded = LoadedModel("attention", "attention.py", Attention(8).eval(), (torch.randn(12, 8),))
    return Evaluator.create(prepare(import_loaded(loaded)), "u280")


def test_a_side_is_closed_and_parts_what_feeds_it_from_what_it_feeds() -> None:
    graph = evaluator().space.graph
    sides = sides_of(graph, graph.operations)
    names = [op.layer for op in graph.operations]
    softmax = next(name for name in names if "exp" in name)
    before = next(side for side in sides if softmax in side and "query" in side and names[-1] not in side)
    assert {"query", "key"} <= before
    assert "value" not in before
    behind = next(side for side in sides if softmax in side and not {"query", "key"} & side)
    assert names[-1] in behind
    assert not {"query", "key", "value"} & behind
    assert len(sides) == len(set(sides))
    assert all(1 < len(side) < len(names) for side in sides)


def test_each_side_is_favoured_by_a_step_more_and_one_less() -> None:
    space = evaluator().space
    params, side = space.fitted_setting(), frozenset({"query", "key"})
    names, values = [f"{FAVOUR}.key", f"{FAVOUR}.query"], space.choices[f"{FAVOUR}.key"]
    here = values.index(params[names[0]])
    found = list(favoured(space.choices, params, [side]))
    assert [{name: state[name] for name in names} for state in found] == [
        dict.fromkeys(names, values[here + step]) for step in (-1, 1)
    ]
    assert all({n: v for n, v in state.items() if n not in names} ==
               {n: v for n, v in params.items() if n not in names} for state in found)  # fmt: skip
    last = dict.fromkeys(names, values[-1])
    assert stepped(space.choices, {**params, **last}, names, 1) == {}, "there is nothing beyond the ends"


def test_of_a_chain_the_first_place_has_no_side_that_is_not_all_of_it() -> None:
    chain = Evaluator.create(
        build_network("int8", 4, 8, (Dense(16, True, True), Dense(8, False, False)), seed=1), "u280"
    )
    graph = chain.space.graph
    assert sides_of(graph, graph.operations[:1]) == []
    assert sides_of(graph, graph.operations), "of those in the middle there are some"
