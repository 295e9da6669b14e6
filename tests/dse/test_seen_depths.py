"""Depths that a schedule says suffice are seen to, or more is said to be held, where loads share ports."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.simulator import Simulator
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.waiting import held_as_modelled, held_as_needed, held_between, needs_more_than
from penstock.dse.fifo import prefetched, seen_depths, waiting_depths
from penstock.dse.space.external import FEW_BANKS, STRIPES
from penstock.dse.space.fitted import SHARE
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.simulated import rules_of, simulated_kernels

GATED = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(256, 1024, bias=False), nn.Linear(256, 1024, bias=False)
        self.down = nn.Linear(1024, 256, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.gate(x)) * self.up(x))


def model():
    torch.manual_seed(0)
    return Gated().eval(), (torch.randn(1, 256),)
"""


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Evaluator:
    source = tmp_path_factory.mktemp("gated") / "gated.py"
    source.write_text(GATED)
    program = prepare(import_model(f"{source}:model"), "w8a8")
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


@pytest.mark.parametrize("few_banks", [False, True])
@pytest.mark.parametrize("share", [10, 40])
def test_depths_that_are_seen_suffice(evaluator: Evaluator, share: int, few_banks: bool) -> None:
    """Through all banks one product's weights come before those of the other, so that its results wait for these."""
    setting = evaluator.space.fitted_setting()
    flowing = evaluator.space.fitting.flowing(evaluator.space.settings(setting))
    one = evaluator.assume({**setting, **flowing, STRIPES: 32, FEW_BANKS: few_banks, SHARE: share})
    network = evaluator.assembler.network(one.design)
    most = prefetched(one.figures.channels, one.design.prefetch_bits)
    (part,) = simulated_kernels(network, evaluator.platform, evaluator.clock_mhz)
    simulator = Simulator(part, rules_of(evaluator.platform, evaluator.clock_mhz))
    free = simulator.outcome({c.name: most.get(c.name) for c in part.channels if c.kind == "fifo"})
    of_network = network, evaluator.platform, evaluator.clock_mhz
    told = waiting_depths(*of_network, one.figures.latency, most)
    assert told is not None
    held = held_as_modelled(evaluator, one, network)

    def between(depths: Mapping[str, int]) -> int:
        return sum(
            (held | {name: network.channels[name].bits * depths[name] for name in held if name in depths}).values()
        )

    def ends(depths: Mapping[str, int]) -> tuple[int, ...]:
        least = {name: max(2, depth, free.high_water[name] if name in most else 0) for name, depth in depths.items()}
        return simulator.outcome(least).frame_ends

    assert ends(told)[0] <= free.frame_ends[0] * 1.01, "memories are known by their pace alone"
    too_little = dict.fromkeys(told, 1)
    one_after_the_other = not few_banks and share == 40
    assert (ends(too_little) == free.frame_ends) != one_after_the_other
    for waiting in (told, too_little):
        seen = seen_depths(*of_network, waiting, most)
        assert ends(seen) == free.frame_ends
        assert (seen == waiting) == (ends(waiting) == free.frame_ends)
    assert held_between(evaluator, one, held_as_needed) == between(told)
    assert needs_more_than(between(told) - 1, evaluator, one)
    more = between(seen_depths(*of_network, told, most))
    assert not needs_more_than(more, evaluator, one, seen=True)
    assert more == between(told) or needs_more_than(more - 1, evaluator, one, seen=True)
