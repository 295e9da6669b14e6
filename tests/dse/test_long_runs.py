"""FIFOs of networks whose runs are too long to be made often: a few runs, fewer bits, nothing later than before."""

from __future__ import annotations

import pytest

from benchmarks.fifo_networks import attention, random_network
from penstock.compiler.simulator import OPEN_RTL, VITIS, Network, Rules, Simulator
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.fifo import Effort, long_runs, of_design, size_design, total_bits
from penstock.dse.fifo.long_runs import INPUTS, size_long
from penstock.dse.fifo.size import Sizing
from tests.compiler.designs import Dense, build_network
from tests.dse.test_latest import windows

NOTHING = Effort(0, 0)


@pytest.fixture
def all_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no budget had room for runs of any network."""
    monkeypatch.setattr(long_runs, "SIMULATIONS", 0)


def ends(network: Network, rules: Rules, depths: dict[str, int]) -> tuple[int, ...]:
    return Simulator(network, rules).outcome(depths, frames=INPUTS).frame_ends


def sized(network: Network, rules: Rules, start: dict[str, int]) -> Sizing:
    found = size_long(network, rules, start, effort=NOTHING, least=2, frames=16)
    assert found is not None
    return found


@pytest.mark.usefixtures("all_long")
@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL])
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_later_than_with_the_depths_before_and_nothing_deeper_than_a_run_showed(rules: Rules, seed: int):
    network = random_network(8 + seed, seed)
    bits = {c.name: c.bits for c in network.channels}
    for slots in (10**6, 3):  # room for everything, and so little that it costs time or stops for ever
        start = {name: min(tokens, slots) for name, tokens in network.tokens().items()}
        before = ends(network, rules, start)
        if not before:
            assert size_long(network, rules, start, effort=NOTHING, least=2, frames=16) is None
            continue
        found = sized(network, rules, start)
        after = ends(network, rules, dict(found.depths))
        assert len(after) == INPUTS
        assert all(now <= then for now, then in zip(after, before, strict=True))
        most = total_bits({name: max(2, depth) for name, depth in start.items()}, bits)
        assert found.bits == total_bits(found.depths, bits) <= most
        assert found.latency == after[0]
        assert found.simulations <= 4
        assert set(found.open) == {name for name, depth in found.depths.items() if depth > 2}


@pytest.mark.usefixtures("all_long")
def test_the_latest_schedule_is_taken_where_it_holds_less():
    """Words wait before they become windows."""
    network = windows()
    start = dict(network.tokens())
    bits = {c.name: c.bits for c in network.channels}
    high = Simulator(network, VITIS).outcome(start, frames=INPUTS).high_water
    found = sized(network, VITIS, start)
    assert found.bits < total_bits(high, bits) / 2
    assert ends(network, VITIS, dict(found.depths)) == ends(network, VITIS, start)


def test_short_runs_are_shrunk_as_ever(monkeypatch: pytest.MonkeyPatch):
    network = attention(3)
    start = dict(network.tokens())
    assert size_long(network, VITIS, start, effort=Effort.of(1), least=2, frames=1) is None
    monkeypatch.setattr(long_runs, "SIMULATIONS", 0)
    events = Simulator(network, VITIS).outcome(start).work
    few = Effort(1000, long_runs.FEW * events)
    assert size_long(network, VITIS, start, effort=few, least=2, frames=1) is None
    assert size_long(network, VITIS, start, effort=Effort(1000, few.work // 2), least=2, frames=1) is not None


def test_a_design_of_long_runs_is_simulated_a_few_times(monkeypatch: pytest.MonkeyPatch):
    program = build_network("int8", None, 8, (Dense(8, False, True), Dense(8, False, False)), seed=3)
    evaluator = Evaluator.create(program, "u55c")
    design = evaluator.evaluate({}).design
    network, said = evaluator.assembler.network(design), list[str]()

    def size() -> of_design.DesignSizing:
        return size_design(
            network, evaluator.platform, evaluator.clock_mhz, simulations=0, start=design.fifo_depths,
            progress=said.append,
        )  # fmt: skip

    thorough = size()
    said.clear()
    monkeypatch.setattr(long_runs, "SIMULATIONS", 0)
    quick = size()
    assert quick.kernels[0].simulations <= 4
    assert quick.latency == thorough.latency
    assert said[0] == "simulating the depths that the search had"
    assert quick.note.startswith("FIFO sizing stopped after")
